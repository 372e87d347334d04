"""``run: {answer: ...}``: a hook that gives the same answer each time, and runs no code of anybody's."""

from __future__ import annotations

from ..spec.answers import DECISIONS, WIRE, Ask, Block, Deny, Warn, from_json
from ..spec.markers import hookimpl
from ..spec.record import thaw
from .entry import Configured

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..spec.answers import Answer
    from ..spec.timings import Timing
    from .entry import HookEntry

TIGHTENING = (Deny, Ask, Block, Warn)
"""Answers that can only tighten: the ones that a guard may give, and an untrusted project file too."""


KEYS = (*WIRE, "advice", "code", "config")
"""All keys of an answer."""

_EXAMPLE = 'Write {deny: "why"}, say.'


def check(data: object, timings: list[Timing], *, guard: bool = False) -> tuple[str, str]:
    """Return what is wrong with a fixed answer for these timings and what to do about it, or two empty strings.

    Parameters:
        data: the answer as JSON, such as ``{"deny": "Open a PR."}``.
        timings: the timings that would give it.
        guard: whether a guard would give it.
    """
    from ..spec.errors import AnswerError, EventError

    try:
        answers = from_json(thaw(data))
    except (AnswerError, EventError) as error:
        return str(error), _EXAMPLE
    if not answers:
        return "the answer says nothing", "Give one of those that its timings take."
    if sum(isinstance(answer, DECISIONS) for answer in answers) > 1:
        return "an answer holds at most one of allow, ask, deny and block", "Keep one of them."
    for answer in answers:
        kind = type(answer)
        if guard and kind not in TIGHTENING:
            wrong = f"{_word(kind)} is no answer of a guard, which takes {_words(TIGHTENING)}"
            return wrong, "Give one of these, or drop 'guard: true'."
        for timing in timings:
            if kind not in timing.answers:
                wrong = f"{_word(kind)} is no answer of {timing.name}, which takes {_words(timing.answers)}"
                return wrong, "Give one of these, or name another timing."
    return "", ""


def tightens(data: object) -> bool:
    """Tell whether a fixed answer can only tighten (deny, ask, block and warn), so that it needs no trust."""
    return (
        isinstance(data, dict)
        and bool(data)
        and data.keys() <= {"deny", "advice", "code", "ask", "block", "warn"}
    )


def _word(kind: type[Answer]) -> str:
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in kind.__name__).lstrip("_")


def _words(kinds: Any) -> str:
    return ", ".join(_word(kind) for kind in kinds)


def make(entry: HookEntry, config: Mapping[str, Any] | None = None) -> Configured:
    """Return the plugin of an entry whose ``run`` is an answer.

    Parameters:
        entry: the configured hook; ``entry.run`` has been checked.
        config: not used: a fixed answer has no settings.

    Raises:
        AnswerError: when the answer cannot be read.
    """
    answers = from_json(thaw(entry.run))
    fixed: Any = answers[0] if len(answers) == 1 else answers
    return Configured(entry.name, {timing: _hook(fixed) for timing in entry.timings})


def _hook(fixed: Any) -> Any:
    @hookimpl
    def give() -> Any:
        return fixed

    return give
