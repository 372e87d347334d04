"""What AtomCode's hooks answer, in JSON: found in their output, checked, and as plain decisions. Runs nothing."""

from __future__ import annotations

import json
import re

from ...runners.wire import NoAnswer, last_words, shown
from ...spec.errors import did_you_mean
from ...spec.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...runners.wire import Ended

DECIDING = ("action", "decision", "hookSpecificOutput", "result")
"""Keys that make a JSON object an answer of one of AtomCode's formats."""

_REFUSING = re.compile(
    r"""["'](?:action|decision|permissionDecision|result)["']\s*:\s*["'](?:block|deny|ask|modify)["']"""
)
"""What stands in an output that meant to refuse or to change something, however it is spoilt."""

NO_REASON = "the hook gave no reason"
"""What the model reads where a hook refuses without words."""

_NOT_STARTED = (
    "can't open file",
    "command not found",
    "cannot execute",
    "ModuleNotFoundError",
    "No module named",
    "ImportError",
)


class Decision(Record):
    """What one JSON answer says.

    Parameters:
        kind: deny, ask, allow, or an empty string for no decision.
        reason: its words, or an empty string.
        args: the call's new arguments, or None.
        output: the tool's new output, or None.
        context: text for the model, or an empty string.
    """

    kind: str = ""
    reason: str = ""
    args: Any = None
    output: Any = None
    context: str = ""

    @property
    def says_something(self) -> bool:
        """Whether it decides or changes anything."""
        return bool(self.kind or self.context) or self.args is not None or self.output is not None


def text_of(ended: Ended) -> str:
    """Return a program's output as text, without a byte-order mark and blanks around it.

    Raises:
        NoAnswer: when there was more than is kept.
    """
    if ended.truncated:
        raise NoAnswer(f"it printed more than the {len(ended.stdout):,} bytes that an answer may have")
    text = bytes(ended.stdout).decode("utf-8", "replace").replace("\0", "")
    return text.removeprefix("\ufeff").strip()


def find_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that an output is, or that its last line is, or None.

    Raises:
        NoAnswer: for an answer with other text around it, and for the hook's own input.
    """
    data = plain_object(text)
    if data is None or not any(key in data for key in DECIDING):
        check_spoilt(text)
    return data


def check_spoilt(text: str) -> None:
    """Refuse an output with a refusal in it that is not found: a banner before it must not let a call pass in silence.

    Parameters:
        text: an output without an answer.

    Raises:
        NoAnswer: telling where it stands.
    """
    spoilt = _REFUSING.search(text)
    if spoilt is not None:
        place = len(text[: spoilt.start()].encode("utf-8", "replace"))
        raise NoAnswer(
            f"{shown(spoilt[0])} stands after {place} bytes of its output, where it is no answer; "
            "print one JSON object and nothing else, or print it last, in one line"
        )


def plain_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object that an output is, or that its last line is, or None, as ``find_object``.

    For outputs that decide nothing, or also in words.

    Raises:
        NoAnswer: for an answer in one line with other text behind it, and for the hook's own input.
    """
    data = _object(text)
    if data is None:
        lines = [line.strip() for line in text.splitlines()]
        data = _object(lines[-1]) if lines else None
        if data is None:
            for number, line in enumerate(lines, 1):
                if line.startswith("{") and any(key in (_object(line) or ()) for key in DECIDING):
                    raise NoAnswer(
                        f"an answer stands in line {number} of its output, and more text follows "
                        f"({shown(lines[-1])[:60]!r}); print the JSON last"
                    )
            return None
    if "hook_event_name" in data and "session_id" in data:
        raise NoAnswer("it printed its own input back; print an answer, or nothing")
    return data


def _object(text: str) -> dict[str, Any] | None:
    if not text.startswith("{") or not text.endswith("}"):
        return None
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def decision(data: dict[str, Any]) -> Decision:
    """Return what a JSON answer of generation 2 says; generation 1's ``action`` counts, too.

    Raises:
        NoAnswer: for a word that is none of the format's: a misspelt refusal must not pass in silence.
    """
    action = _word(data, "action", ("allow", "block", "modify"))
    old = _word(data, "decision", ("block", "allow", "approve"))
    special = data.get("hookSpecificOutput")
    if special is not None and not isinstance(special, dict):
        raise NoAnswer("'hookSpecificOutput' must be an object")
    special = special or {}
    permission = _word(special, "permissionDecision", ("allow", "deny", "ask"))
    kind = permission
    if "block" in (action, old) or permission == "deny":
        kind = "deny"
    elif not kind and action == "allow":
        kind = "allow"
    args = special.get("updatedInput")
    if args is None and action == "modify":
        args = data.get("args")
        if args is None:
            raise NoAnswer("'action' is 'modify', and 'args' is missing")
    if args is not None and not isinstance(args, dict):
        raise NoAnswer("the new arguments must be an object")
    output = special.get("updatedToolOutput")
    if output is not None and not isinstance(output, str):
        raise NoAnswer("'updatedToolOutput' must be a string")
    reason = _text(special.get("permissionDecisionReason")) or _text(data.get("reason"))
    return Decision(kind, reason, args, output, _text(special.get("additionalContext")))


def _word(data: dict[str, Any], key: str, known: tuple[str, ...]) -> str:
    value = data.get(key)
    if value is None:
        return ""
    if not isinstance(value, str) or value not in known:
        near = did_you_mean(value, known) if isinstance(value, str) else ""
        raise NoAnswer(f"unknown {key} {value!r}{near}; it takes {', '.join(known)}"[:300])
    return value


def _text(value: object) -> str:
    return value.strip() if isinstance(value, str) else ""


def refusal_by_exit_code(ended: Ended, text: str, event: Any) -> str:
    """Return the reason of a program that ended with 2, which refuses where it gives one.

    Parameters:
        ended: how it ended; exit code 2.
        text: its output, which is preferred to its standard error.
        event: what it was about. Words of the event itself that a guard repeats do not say that it could not run.

    Raises:
        NoAnswer: without a reason, or with one that says that it could not run.
    """
    reason = text or ended.said
    if not reason:
        raise NoAnswer("exit code 2 without a reason, so it is no refusal")
    if any(phrase in reason for phrase in _NOT_STARTED) and not _repeats(event):
        raise NoAnswer(f"exit code 2, but it could not run{last_words(reason.encode('utf-8', 'replace'))}")
    return reason


def _repeats(event: Any) -> bool:
    """Tell whether an event has such words in it. They have no character that JSON would change."""
    texts = " ".join(json.dumps(event.to_json(), ensure_ascii=False).split())
    return any(phrase in texts for phrase in _NOT_STARTED)


def failed(ended: Ended, text: str = "") -> NoAnswer:
    """Return the failure of a program that ended with another code than 0 and decided nothing."""
    words = last_words(ended.stderr) or last_words(text.encode("utf-8", "replace"))
    return NoAnswer(f"the command {ended.ended}{words}")
