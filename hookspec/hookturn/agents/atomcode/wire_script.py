"""How a script of hooks.toml is spoken to and understood: text, JSON and exit code."""

from __future__ import annotations

import json

from ...runners.wire import NoAnswer, Wire
from ...spec.answers import Block, Deny, Inject, Rewrite, Warn
from ...spec.errors import did_you_mean
from . import decisions, payload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...runners.entry import HookEntry
    from ...runners.wire import Ended
    from ...spec.answers import Answer
    from ...spec.events import Event
    from ...spec.timings import Timing

RESULTS = ("ok", "warning", "deny", "modify")
"""What ``result`` may say, in scripts' and webhooks' answers."""

_PREFIXES = {
    "warning:": "warning",
    "WARN:": "warning",
    "deny:": "deny",
    "DENY:": "deny",
    "modify:": "modify",
    "MODIFY:": "modify",
}
"""Begin of a line of text -> result. Exactly these spellings."""


class ScriptWire(Wire):
    """The wire of ``[[hooks]]``: HookCtx on standard input, no variables."""

    def request(self, entry: HookEntry, timing: Timing, event: Event, ctx: Any, config: Any) -> bytes:
        """Return the context that AtomCode's documents give for the trigger."""
        return payload.dumps(payload.of_script(timing.name, event, ctx)).encode("utf-8")

    def environment(self, entry: HookEntry, timing: Timing, event: Event, ctx: Any) -> dict[str, str]:
        """Return nothing: such scripts have no variables of their own."""
        return {}

    def answers(self, entry: HookEntry, timing: Timing, event: Event, ctx: Any, ended: Ended) -> list[Answer]:
        """Return what a script's end means. A refusal counts whatever its exit code.

        Raises:
            NoAnswer: it failed, or cannot be understood.
        """
        text = decisions.text_of(ended)
        if timing.name == "system_prompt":
            if ended.exit_code != 0:
                raise decisions.failed(ended, text)
            return [Inject(text)] if text else []
        result, words = _result(text)
        if ended.exit_code != 0 and result != "deny":
            raise decisions.failed(ended, text)
        return answers_of(result, words, timing)


def _result(text: str) -> tuple[str, str]:
    """Return result and words of a script's output.

    Raises:
        NoAnswer: for JSON that is no answer.
    """
    if not text:
        return "ok", ""
    data = decisions.plain_object(text)
    if data is not None:
        if not any(key in data for key in decisions.DECIDING):
            decisions.check_spoilt(text)
        return result_of(data)
    lines = text.split("\n")
    for number, line in enumerate(lines):
        result = next((result for prefix, result in _PREFIXES.items() if line.startswith(prefix)), "")
        if result:
            return result, "\n".join(lines[number:]).partition(":")[2].strip()
    decisions.check_spoilt(text)
    return "ok", ""


def result_of(data: dict[str, Any]) -> tuple[str, str]:
    """Return result and words of a JSON answer ``{"result": ...}``; the answers of .hooks.json count, too.

    Raises:
        NoAnswer: for another result.
    """
    result = data.get("result")
    if not isinstance(result, str):
        said = decisions.decision(data)
        if said.kind == "deny":
            return "deny", said.reason
        if said.args is not None:
            return "modify", json.dumps(said.args)
        return "ok", ""
    if result not in RESULTS:
        raise NoAnswer(
            f"unknown result {result!r}{did_you_mean(result, RESULTS)}; it takes {', '.join(RESULTS)}"[:300]
        )
    keys = ("modified_content", "message", "reason") if result == "modify" else ("message", "reason")
    value = next((data[key] for key in keys if data.get(key) is not None), "")
    # The documents show the new arguments as text; an object means the same.
    return result, value if isinstance(value, str) else json.dumps(value)


def answers_of(result: str, words: str, timing: Timing) -> list[Answer]:
    """Return the answers that a result is.

    Parameters:
        result: one of RESULTS.
        words: its text; for ``modify`` the new arguments as JSON.
        timing: where; what has no effect there is told to the user.

    Raises:
        NoAnswer: for new arguments that are no JSON object.
    """
    if result == "ok":
        return []
    if result == "warning":
        return [Warn(words or "the hook warned without words")]
    if result == "deny":
        if timing.name in ("pre_tool_execution", "on_tool_call_start"):
            return [Deny(words or decisions.NO_REASON)]
        if timing.name == "on_message_received":
            return [Block(words or decisions.NO_REASON)]
        return [
            Warn(f"the hook refused, which has no effect at {timing.name}: {words or decisions.NO_REASON}")
        ]
    if timing.name == "pre_tool_execution":
        return [Rewrite(_arguments(words))]
    if timing.name == "on_message_received":
        return [Rewrite(words)]
    if timing.name in ("on_session_start", "system_prompt"):
        return [Inject(words)]
    return [Warn(f"the hook changed something, which has no effect at {timing.name}")]


def _arguments(words: str) -> dict[str, Any]:
    """Return the new arguments of a tool call."""
    try:
        args = json.loads(words)
    except (ValueError, RecursionError):
        args = None
    if not isinstance(args, dict):
        raise NoAnswer("'modify' needs the tool's new arguments as a JSON object")
    return args
