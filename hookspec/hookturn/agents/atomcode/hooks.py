"""AtomCode's hook protocols: payloads of both generations to our moments, what hooks said to their answers.

Sources: the documents of its HookEngine (generation 1) and of its cc_hooks (generation 2). Generation 1 puts the
payload in ``ATOMCODE_HOOK_CONTEXT`` and writes nothing to standard input (but for a prompt), takes ``{"action":
...}`` as the whole of standard output, and ignores what it cannot parse. Generation 2 writes to standard input and
reads the last line; a decision there beats the exit code, so ours is always 0. Their events have different names
here, so that each has rows of its own: generation 1 says ``pre_tool_use``, generation 2 ``PreToolUse``.
"""

from __future__ import annotations

from ..bridge import BridgeAnswer
from ..moments import Moment, Row, Said
from ..payloads import answer_of, call_of, calls_us, object_of, prompt_of, text_of
from .tools import TOOLS as TOOLS  # part of what AgentHooks asks for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAME = "atomcode"
PROJECT_VARIABLE = "ATOMCODE_PROJECT_DIR"
PID_VARIABLE = ""
NOTHING = b""
"""Not ``{}``: at SessionStart, generation 2 would give that to the model."""

CONTEXT = "ATOMCODE_HOOK_CONTEXT"
"""Holds generation 1's payload; with ``_FILE``, the path of a file with one that was too large."""

_MOST = 64 * 1024 * 1024
_SECONDS = 10.0


def _first(event: str, does: str, can: str = "", note: str = "") -> Row:
    """A row of generation 1: ``hookturn install`` writes the names of generation 2, which both know."""
    return Row(event=event, does=does, can=can.split(), seconds=_SECONDS, install=False, note=note)


_ROWS = (
    Row(
        event="SessionStart",
        does="session_start",
        can=["inject"],
        seconds=_SECONDS,
        note="A Block is kept: every prompt of the session is refused.",
    ),
    Row(
        event="UserPromptSubmit",
        does="prompt",
        can=["deny", "inject"],
        seconds=_SECONDS,
        note="Both generations. The prompt cannot be changed; a Reply refuses the prompt and is its reason.",
    ),
    Row(
        event="PreToolUse",
        does="tool",
        can=["deny", "ask", "allow", "args"],
        seconds=_SECONDS,
        note="An Inject is given after the call; after a Block, later calls of the turn are refused.",
    ),
    Row(
        event="PostToolUse",
        does="tool_end",
        can=["deny", "result", "inject"],
        seconds=_SECONDS,
        request=True,
        note="Context is appended to the result.",
    ),
    Row(
        event="PostToolUseFailure",
        does="tool_end",
        can=["deny", "result", "inject"],
        seconds=_SECONDS,
        request=True,
        note="Also of calls that AtomCode or its user refused: post_tool_execution with status denied.",
    ),
    Row(
        event="Stop",
        does="idle",
        seconds=_SECONDS,
        note="AtomCode reads no answer: a Continue is told on standard error. It does not tell the turn's text: "
        "`text` is empty.",
    ),
    Row(event="StopFailure", does="turn_failed", seconds=_SECONDS),
    Row(event="SessionEnd", does="session_end", seconds=_SECONDS),
    _first(
        "session_start",
        "session_start",
        note="Its answer is ignored: context is given with the first prompt.",
    ),
    _first(
        "pre_tool_use",
        "tool",
        "deny allow",
        "An Ask is a deny that says so. A Rewrite is impossible: this generation shows changed arguments to its user "
        "and runs the tool with the old ones.",
    ),
    _first("post_tool_use", "tool_end", note="Its answer is ignored: context is given with the next prompt."),
    _first("session_end", "session_end"),
)

EVENTS: dict[str, Row] = {row.event: row for row in _ROWS}
"""AtomCode's events. Time limit: its default."""

UNKNOWN = Row(
    event="unknown", does="event", type="atomcode.unknown", can=[], accepts=["Inject"], seconds=_SECONDS
)

_COMMON = ("session_id", "transcript_path", "hook_event_name", "event", "cwd", "working_dir")


def given(environ: Mapping[str, str]) -> bytes | None:
    """Return generation 1's payload, which stands in the environment, with the event's name and the folder where
    generation 2 has them; None when it is on standard input."""
    text = environ.get(CONTEXT)
    if text is not None:
        data = text.encode("utf-8", "surrogateescape")
    elif environ.get(f"{CONTEXT}_FILE"):
        from ...runners.module import read as read_file

        try:
            data = read_file(environ[f"{CONTEXT}_FILE"], _MOST)
        except (OSError, ValueError):
            return b""  # answered as a payload that cannot be read
    else:
        return None
    return _complete(data, environ)


def _complete(data: bytes, environ: Mapping[str, str]) -> bytes:
    import json

    try:
        payload = json.loads(data)
    except (ValueError, RecursionError):
        return data
    if not isinstance(payload, dict):
        return data
    payload["hook_event_name"] = text_of(payload, "event") or environ.get("ATOMCODE_HOOK_EVENT", "")
    payload.setdefault("cwd", payload.get("working_dir"))
    return json.dumps(payload).encode()


def caller(payload: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return ``atomcode``: nobody else runs its files."""
    return NAME


def has_entry(event: str, project: str, environ: Mapping[str, str]) -> bool:
    """Tell whether a hook file of the user or the project calls ``hookturn bridge`` for an event."""
    from os.path import join

    home = environ.get("ATOMCODE_HOME") or join(environ.get("HOME", ""), ".atomcode")
    return calls_us([join(home, "hooks.json"), join(project, ".hooks.json")], event)


def event_name(payload: Mapping[str, Any], entry: str = "") -> str:
    """Return ``hook_event_name``; both generations say UserPromptSubmit in the same way."""
    name = text_of(payload, "hook_event_name") or entry
    return "UserPromptSubmit" if name == "user_prompt_submit" else name


def read(row: Row, payload: Mapping[str, Any], environ: Mapping[str, str]) -> Moment:
    """Translate a payload (see ``AgentHooks.read``)."""
    fields: dict[str, Any] = {
        "session_id": text_of(payload, "session_id"),
        "cwd": text_of(payload, "cwd"),
        "transcript_path": text_of(payload, "transcript_path"),
        "properties": {key: value for key, value in payload.items() if key not in _COMMON},
    }
    if row.does in ("tool", "tool_end"):
        fields |= _call(row, payload)
    elif row.does == "prompt":
        fields["text"] = prompt_of(payload)
    elif row.does in ("idle", "turn_failed"):
        fields["reason"] = text_of(payload, "stop_reason")
    return Moment(**fields)


def _call(row: Row, payload: Mapping[str, Any]) -> dict[str, Any]:
    ended = row.does == "tool_end"
    if "tool_args" in payload:  # generation 1: JSON as text, or an object
        payload = {**payload, "tool_input": object_of(payload["tool_args"])}
    refused = row.event == "PostToolUseFailure" and payload.get("tool_name") is None
    tool, args = ("", None) if refused else call_of(payload, ended=ended)
    fields: dict[str, Any] = {"tool": tool, "args": args, "call_id": text_of(payload, "call_id")}
    if not ended:
        return fields
    result = payload.get("tool_response", payload.get("tool_result"))
    fields["result"] = result
    if refused:
        fields |= {"status": "denied", "reason": text_of(payload, "tool_response")}
    elif row.event == "PostToolUseFailure" or payload.get("tool_success") is False:
        fields |= {"status": "error", "error": result if isinstance(result, str) else "failed"}
    return fields


# -- answers ----------------------------------------------------------------------------------------


def write(row: Row, moment: Moment, said: Said, environ: Mapping[str, str]) -> BridgeAnswer:
    """Translate what hooks said (see ``AgentHooks.write``)."""
    if row.event == "pre_tool_use":
        return BridgeAnswer(stdout=answer_of(_action(said), NOTHING))
    data: dict[str, Any] = {}
    own: dict[str, Any] = {}
    if row.does == "tool":
        if said.decision:
            own |= {"permissionDecision": said.decision, "permissionDecisionReason": said.reason}
        if said.args is not None:
            own["updatedInput"] = said.args
    elif row.does == "tool_end":
        if said.changed or said.inject:
            own["updatedToolOutput"] = _result(moment.result, said)
    else:
        if said.decision == "deny":
            data |= {"decision": "block", "reason": said.reason}
        if said.inject:
            own["additionalContext"] = "\n\n".join(said.inject)
    if own:
        data["hookSpecificOutput"] = {"hookEventName": row.event, **own}
    return BridgeAnswer(stdout=answer_of(data, NOTHING))


def _action(said: Said) -> dict[str, Any]:
    if said.decision == "deny":
        return {"action": "block", "reason": said.reason}
    return {"action": "allow"} if said.decision == "allow" else {}


def _result(result: Any, said: Said) -> str:
    from ...spec.tools import result_text_of

    text = said.reason if said.withheld else result_text_of(said.result if said.changed else result)
    return "\n\n".join(filter(None, [text, *said.inject]))


def refusal(row: Row | None, reason: str) -> BridgeAnswer:
    """Return a refusal where nothing else is known: each generation ignores the other's words."""
    if row is not None:
        said = Said()
        said.refuse(reason)
        said.withheld = said.changed = row.does == "tool_end"
        return write(row, Moment(), said, {})
    own = {"permissionDecision": "deny", "permissionDecisionReason": reason}
    data = {"action": "block", "decision": "block", "reason": reason, "hookSpecificOutput": own}
    return BridgeAnswer(stdout=answer_of(data, NOTHING))
