"""Small things that the translators of several agents share: rows of their tables, fields of payloads, words of
answers, answers as JSON, whether a configuration calls us.
"""

from __future__ import annotations

from ..quick import dumps, loads
from ..spec.errors import json_kind
from .bridge import Malformed
from .moments import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from typing import Any

    from .moments import Said

_MOST = 1_000_000
"""Bytes of a configuration that are looked at."""


def watched(event: str, type: str, does: str = "event", note: str = "") -> Row:
    """Return the row of an event of opencode's bus, or of a host that is one: it can be watched, no more.

    Parameters:
        event: the agent's name of the event.
        type: dotted type, for what becomes on_event.
        does: what it is for us, a word of ``moments.DOES``.
        note: what is worth knowing.
    """
    return Row(event=event, does=does, type=type, can=["warn"], accepts=["Inject"], system=False, note=note)


def text_of(payload: Mapping[str, Any], key: str) -> str:
    """Return a text of a payload, or "" when it is missing or something else."""
    value = payload.get(key)
    return value if isinstance(value, str) else ""


def table_of(payload: Mapping[str, Any], key: str) -> dict[str, Any]:
    """Return an object of a payload, or an empty one when it is missing or something else."""
    value = payload.get(key)
    return value if isinstance(value, dict) else {}


def object_of(value: Any) -> Any:
    """Return arguments that some agents write as JSON text as what they say; all else as it is."""
    if not isinstance(value, str):
        return value
    try:
        return loads(value)
    except (ValueError, RecursionError):
        return value


def common_of(payload: Mapping[str, Any], common: Collection[str]) -> dict[str, Any]:
    """Return the fields of a Moment that a payload in Claude Code's style has at every event.

    Parameters:
        payload: the payload.
        common: its keys that are no properties of the event.
    """
    agent_id = text_of(payload, "agent_id")
    return {
        "session_id": text_of(payload, "session_id"),
        "agent_id": agent_id,
        "agent": text_of(payload, "agent_type") or ("subagent" if agent_id else ""),
        "cwd": text_of(payload, "cwd"),
        "transcript_path": text_of(payload, "transcript_path"),
        "model": text_of(payload, "model"),
        "properties": {key: value for key, value in payload.items() if key not in common},
    }


def failure_of(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of a Moment that a StopFailure has."""
    text = text_of(payload, "last_assistant_message")
    return {
        "reason": text_of(payload, "error"),
        "text": text,
        "error": text_of(payload, "error_details") or text,
    }


def running_of(payload: Mapping[str, Any], is_agent: Callable[[Mapping[str, Any]], bool]) -> list[str]:
    """Return the ids of sub-agents in the background, which outlive the turn, from ``background_tasks``.

    Parameters:
        payload: the payload.
        is_agent: whether a task is a sub-agent.
    """
    tasks = payload.get("background_tasks")
    rows = [task for task in tasks if isinstance(task, dict)] if isinstance(tasks, list) else []
    ids = [task.get("id") for task in rows if is_agent(task) and task.get("status") == "running"]
    return [text for text in ids if isinstance(text, str)]


def ended_of(payload: Mapping[str, Any], status: str) -> dict[str, Any]:
    """Return the fields of a Moment that tell how a call ended, from ``tool_response``, ``error``, ``duration_ms``.

    Parameters:
        payload: the payload.
        status: what the event's name says.
    """
    error = text_of(payload, "error")
    fields: dict[str, Any] = {
        "status": "cancelled" if payload.get("is_interrupt") is True else status,
        "error": error,
        "reason": text_of(payload, "reason"),
        "result": error or payload.get("tool_response"),
    }
    millis = payload.get("duration_ms")
    if isinstance(millis, (int, float)) and not isinstance(millis, bool) and 0 <= millis < 1e12:
        fields["duration"] = millis / 1000
    return fields


def parts_of(payload: Mapping[str, Any], where: str) -> list[str]:
    """Return the parts of the system prompt, from ``system``.

    Parameters:
        payload: what holds them.
        where: its key in the payload, for messages.

    Raises:
        Malformed: when it is no array of strings.
    """
    system = payload.get("system")
    if not isinstance(system, list) or not all(isinstance(part, str) for part in system):
        raise Malformed(f"{where}.system is no array of strings")
    return system


def prompt_of(payload: Mapping[str, Any]) -> str:
    """Return the user's words.

    Raises:
        Malformed: when ``prompt`` is no text.
    """
    prompt = payload.get("prompt", "")
    if not isinstance(prompt, str):
        raise Malformed(f"prompt is {_kind(prompt)}, not a string")
    return prompt


def call_of(payload: Mapping[str, Any], *, ended: bool) -> tuple[str, Any]:
    """Return a tool call's name and arguments, from ``tool_name`` and ``tool_input``.

    Parameters:
        payload: the payload.
        ended: whether the call is over, so that nothing depends on its arguments.

    Raises:
        Malformed: when hooks could not judge the call.
    """
    tool, args = payload.get("tool_name"), payload.get("tool_input")
    if not isinstance(tool, str) or not tool:
        raise Malformed(f"tool_name is {_kind(tool)}, not a name")
    if not isinstance(args, dict) and not ended:
        raise Malformed(f"tool_input is {_kind(args)}, not an object")
    return tool, args


def _kind(value: object) -> str:
    return "missing" if value is None else json_kind(value)


def result_words(said: Said) -> str:
    """Return a changed result as the text that the model reads; a blank one would be read as no answer."""
    from ..spec.tools import result_text_of

    text = result_text_of(said.result)
    return text if text.strip() else "(no output)"


def reply_words(said: Said) -> str:
    """Return a Reply as text."""
    return said.reply if isinstance(said.reply, str) else str(said.reply)


def answer_of(data: Mapping[str, Any], nothing: bytes) -> bytes:
    """Return an answer as one line of plain ASCII JSON: lone surrogates stay valid, whatever the locale.

    Parameters:
        data: the answer; an empty one says nothing.
        nothing: what stands for that.
    """
    if not data:
        return nothing
    from ..spec.record import jsonable

    return dumps(jsonable(data), allow_nan=False).encode() + b"\n"


def calls_us(files: Iterable[str], *events: str) -> bool:
    """Tell whether one of some configuration files calls ``hookturn bridge`` for an event, whatever it is about.

    What is not understood does not count: answering twice is better than not at all.

    Parameters:
        files: JSON, or TOML by their ending.
        events: the event's names.
    """
    for path in files:
        data = _configuration(path)
        hooks = data.get("hooks")
        if not isinstance(hooks, dict) or data.get("disableAllHooks"):
            continue
        for key, value in hooks.items():
            named = key in events or (isinstance(value, dict) and value.get("event") in events)
            if named and _always_ours(value):
                return True
    return False


def _configuration(path: str) -> dict[str, Any]:
    """Return what a configuration file holds; nothing for one that its agent could not read, either."""
    import json

    from .json_text import without_comments
    from .toml_text import parse_toml

    try:
        with open(path, "rb") as file:
            text = file.read(_MOST).decode("utf-8-sig")
        if path.endswith(".toml"):
            data: Any = parse_toml(text)
        else:
            data = json.loads(without_comments(text))
    except (OSError, ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


_NO_CONDITION = frozenset(
    ("type", "event", "matcher", "hooks", "command", "bash", "url", "headers", "name", "description", "cwd", "env",
     "timeout", "timeoutSec", "timeout_ms")
)  # fmt: skip
"""Keys of an entry that do not keep it from being run, but for ``matcher``."""


def _always_ours(value: Any) -> bool:
    """Tell whether our handler is in an event's value, and runs at every such event."""
    from .installing import is_ours

    if isinstance(value, list):
        return any(_always_ours(item) for item in value)
    if not isinstance(value, dict) or not _NO_CONDITION.issuperset(value):
        return False
    if value.get("matcher") not in (None, "", "*", ".*"):
        return False
    return is_ours(value) or _always_ours(value.get("hooks"))
