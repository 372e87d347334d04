"""GitHub Copilot CLI's hook protocol: its payloads to our moments, what hooks said to its answers.

Sources: https://docs.github.com/copilot/reference/hooks-configuration, and version 1.0.102 as run. Facts that
decide here: before a tool any exit code but 0 is a deny whose words nobody reads, so the answer is always JSON
with exit code 0; an entry whose event key begins in lower case gets payloads without the event's name, told by
their fields; one in upper case gets payloads like Claude Code's, except for sub-agents' starts, permissions and
notices; hooks of one event run one after another until one refuses; every event of a sub-agent has a session id
of the sub-agent's own, but for permissions, and tells who started it.
"""

from __future__ import annotations

from ..bridge import BridgeAnswer, Malformed
from ..moments import Moment, Row, Said
from ..payloads import answer_of, calls_us, object_of, prompt_of, reply_words, text_of
from .tools import TOOLS as TOOLS  # part of what AgentHooks asks for
from .tools import mcp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAME = "copilot"
PROJECT_VARIABLE = "COPILOT_PROJECT_DIR"
PID_VARIABLE = ""
NOTHING = b""

SUBAGENT_TURN = "agentStop.subagent"
"""Our name of the agentStop of a sub-agent, after which subagentStop follows."""

_SECONDS = 30.0

_ROWS = (
    Row(
        event="sessionStart",
        does="session_start",
        can=["inject"],
        seconds=_SECONDS,
        overtaken=True,
        note="Runs beside the first prompt's hooks, which wait for it here. A Block is kept: every prompt of the session is refused. Copilot shows no warnings: they go to "
        "standard error.",
    ),
    Row(
        event="userPromptSubmitted",
        does="prompt",
        can=["deny", "prompt", "inject"],
        seconds=_SECONDS,
        note="A sub-agent's task comes here, too, and is no message of the user.",
    ),
    Row(
        event="userPromptTransformed",
        does="event",
        type="prompt.transformed",
        can=["reply"],
        accepts=["Reply", "Inject"],
        seconds=_SECONDS,
        note="What Copilot made of the prompt; a Reply with a text goes to the model in its place.",
    ),
    Row(
        event="preToolUse",
        does="tool",
        can=["deny", "ask", "allow", "args", "inject"],
        seconds=_SECONDS,
        note="A headless run refuses what is asked. A Block refuses the turn's later calls, too.",
    ),
    Row(
        event="permissionRequest",
        does="permission",
        can=["deny", "allow"],
        seconds=_SECONDS,
        note="Copilot names the call in other words here (edit for create, a diff for the text).",
    ),
    Row(
        event="postToolUse",
        does="tool_end",
        can=["deny", "result", "inject"],
        seconds=_SECONDS,
        request=True,
        note="A command that fails counts as a success: its exit code stands in the text.",
    ),
    Row(
        event="postToolUseFailure",
        does="tool_end",
        can=["inject"],
        seconds=_SECONDS,
        request=True,
        note="A failed call's text cannot be changed or withheld.",
    ),
    Row(
        event="agentStop",
        does="turn_end",
        can=["again"],
        seconds=_SECONDS,
        note="The answer is shown already; its text stands at the end of Copilot's recording. Copilot itself lets a turn go on 8 times at most.",
    ),
    Row(
        event=SUBAGENT_TURN,
        does="event",
        type="subagent.turn_end",
        seconds=_SECONDS,
        install=False,
        note="The agentStop of a sub-agent: subagentStop follows, and is where it can be made to go on.",
    ),
    Row(event="subagentStart", does="subagent_start", can=["inject"], seconds=_SECONDS),
    Row(
        event="subagentStop",
        does="subagent_end",
        type="subagent.stop",
        can=["again", "text"],
        seconds=_SECONDS,
    ),
    Row(event="errorOccurred", does="error", seconds=_SECONDS, note="The turn may go on, or end untold."),
    Row(
        event="preCompact",
        does="compacted",
        type="compaction.before",
        accepts=["Inject"],
        seconds=_SECONDS,
        note="Copilot tells no end of it: what the model was told is given again with the next context.",
    ),
    Row(
        event="notification",
        does="event",
        type="notification",
        can=["inject"],
        accepts=["Inject"],
        seconds=_SECONDS,
    ),
    Row(event="sessionEnd", does="session_end", seconds=_SECONDS),
)

PASCAL = {
    "SessionStart": "sessionStart",
    "SessionEnd": "sessionEnd",
    "UserPromptSubmit": "userPromptSubmitted",
    "PreToolUse": "preToolUse",
    "PermissionRequest": "permissionRequest",
    "PostToolUse": "postToolUse",
    "PostToolUseFailure": "postToolUseFailure",
    "Stop": "agentStop",
    "SubagentStart": "subagentStart",
    "SubagentStop": "subagentStop",
    "ErrorOccurred": "errorOccurred",
    "PreCompact": "preCompact",
    "Notification": "notification",
}
"""Event keys in the style of Claude Code -> Copilot's own."""

EVENTS: dict[str, Row] = {row.event: row for row in _ROWS}
EVENTS |= {key: EVENTS[own].replaced(event=key, install=False, note="") for key, own in PASCAL.items()}
"""Copilot's events, under both keys. Time limit: its default, 30 seconds."""

UNKNOWN = Row(event="unknown", does="event", type="copilot.unknown", accepts=["Inject"], seconds=_SECONDS)

_COMMON = frozenset(
    ("sessionId", "session_id", "timestamp", "cwd", "hookName", "hook_event_name", "transcriptPath",
     "transcript_path", "agentId", "agent_id", "agentType", "agent_type", "parentAgentId", "parent_agent_id")
)  # fmt: skip

_STATUS = {"success": "ok", "denied": "denied", "rejected": "denied"}


def given(environ: Mapping[str, str]) -> bytes | None:
    """Copilot writes to standard input."""
    return None


def caller(payload: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return ``copilot``: nobody else reads its files."""
    return NAME


def has_entry(event: str, project: str, environ: Mapping[str, str]) -> bool:
    """Tell whether a hook file or settings of the user or the repository call ``hookturn bridge`` for an event."""
    from glob import escape, glob
    from os.path import join

    home = environ.get("COPILOT_HOME") or join(environ.get("HOME", ""), ".copilot")
    repository = join(project, ".github")
    files = [
        *glob(join(escape(home), "hooks", "*.json")),
        *glob(join(escape(repository), "hooks", "*.json")),
        join(home, "settings.json"),
        join(repository, "copilot", "settings.json"),
        join(repository, "copilot", "settings.local.json"),
    ]
    own = "agentStop" if event == SUBAGENT_TURN else PASCAL.get(event, event)
    return calls_us(files, own, *(key for key, name in PASCAL.items() if name == own))


def _field(payload: Mapping[str, Any], name: str) -> Any:
    """Return a field, whichever way its name is written."""
    if name in payload:
        return payload[name]
    return payload.get("".join(f"_{c.lower()}" if c.isupper() else c for c in name))


def _text(payload: Mapping[str, Any], name: str) -> str:
    value = _field(payload, name)
    return value if isinstance(value, str) else ""


def event_name(payload: Mapping[str, Any], entry: str = "") -> str:
    """Return the event's name: as the payload has it, else as the entry has it, else by its fields, which a later
    version may have more of (a guard must not be left out because of one)."""
    told = text_of(payload, "hook_event_name") or text_of(payload, "hookName")
    name = told or (entry if entry in EVENTS else "") or _by_fields(payload) or entry
    if name in ("agentStop", "Stop") and _text(payload, "agentId"):
        return SUBAGENT_TURN
    return name


def _by_fields(payload: Mapping[str, Any]) -> str:
    for field, name in _TELLING:
        if field in payload:
            return name
    if "agentName" in payload:
        return "subagentStop" if "stopReason" in payload else "subagentStart"
    return "agentStop" if "stopReason" in payload else ""


_TELLING = (
    ("toolResult", "postToolUse"),
    ("errorContext", "errorOccurred"),
    ("transformedPrompt", "userPromptTransformed"),
    ("prompt", "userPromptSubmitted"),
    ("source", "sessionStart"),
    ("reason", "sessionEnd"),
    ("customInstructions", "preCompact"),
    ("notification_type", "notification"),
    ("toolInput", "permissionRequest"),
    ("error", "postToolUseFailure"),
    ("toolName", "preToolUse"),
)
"""Field -> the event whose payload has it; the first that is there tells."""


def read(row: Row, payload: Mapping[str, Any], environ: Mapping[str, str]) -> Moment:
    """Translate a payload (see ``AgentHooks.read``)."""
    agent_id = _text(payload, "agentId")
    agent = _text(payload, "agentName") or _text(payload, "agentType")
    fields: dict[str, Any] = {
        "session_id": _text(payload, "sessionId"),
        "agent_id": agent_id,
        "agent": agent or ("subagent" if agent_id else ""),
        "parent_id": _text(payload, "parentAgentId") if agent_id else "",
        "cwd": text_of(payload, "cwd"),
        "transcript_path": "" if agent_id else _text(payload, "transcriptPath"),
        "properties": {key: value for key, value in payload.items() if key not in _COMMON},
    }
    if row.does in ("tool", "permission", "tool_end"):
        fields |= _call(row, payload)
    elif row.does == "session_start":
        source = text_of(payload, "source")
        fields["source"] = "startup" if source in ("", "new") else source
    elif row.does == "prompt":
        fields["text"] = prompt_of(payload)
    elif row.does == "turn_end":
        from .last_words import last_words

        fields["text"] = last_words(fields["transcript_path"]) if fields["transcript_path"] else ""
    elif row.does == "subagent_end":
        fields["text"] = text_of(payload, "response") or _text(payload, "lastAssistantMessage")
    elif row.does == "error":
        error = payload.get("error")
        error = error if isinstance(error, dict) else {"message": error}
        fields["reason"] = text_of(error, "name")
        fields["error"] = text_of(error, "message")
    elif row.does == "session_end":
        fields["reason"] = text_of(payload, "reason")
    return Moment(**fields)


def _call(row: Row, payload: Mapping[str, Any]) -> dict[str, Any]:
    tool, args = _field(payload, "toolName"), _field(payload, "toolArgs")
    if args is None:
        args = _field(payload, "toolInput")
    args = object_of(args)  # Copilot's coding agent writes JSON text
    ended = row.does == "tool_end"
    if not isinstance(tool, str) or not tool:
        raise Malformed("it does not name the tool")
    if not isinstance(args, dict) and not ended:
        raise Malformed("the tool's arguments are no object")
    mcp = mcp_of(tool, payload)
    if mcp is not None and "/" in tool:  # as a permission writes what elsewhere is server-tool
        tool = "-".join(mcp)
    fields: dict[str, Any] = {"tool": tool, "args": args, "mcp": mcp}
    if not ended:
        return fields
    result = _field(payload, "toolResult")
    if isinstance(result, dict):
        kind = _text(result, "resultType")
        fields["status"] = _STATUS.get(kind, "error") if kind else "ok"
        result = _field(result, "textResultForLlm")
    error = text_of(payload, "error")
    if error or row.event.lower() == "posttoolusefailure":
        fields["status"], fields["error"], result = "error", error, error
    fields["result"] = result
    return fields


# -- answers ----------------------------------------------------------------------------------------


def write(row: Row, moment: Moment, said: Said, environ: Mapping[str, str]) -> BridgeAnswer:
    """Translate what hooks said (see ``AgentHooks.write``)."""
    name = PASCAL.get(row.event, row.event)
    data: dict[str, Any] = {}
    if said.inject:
        data["additionalContext"] = "\n\n".join(said.inject)
    if name == "preToolUse":
        if said.decision:
            data |= {"permissionDecision": said.decision, "permissionDecisionReason": said.reason}
        if row.event != name:
            _as_claude(row.event, said, data)
        elif said.args is not None:
            data["modifiedArgs"] = said.args
    elif name == "permissionRequest":
        if said.decision == "deny":
            data |= {"behavior": "deny", "message": said.reason}
        elif said.decision == "allow":
            data["behavior"] = "allow"
    elif name == "postToolUse" and said.changed and not said.withheld:
        kind = "failure" if moment.status == "error" else "success"
        data["modifiedResult"] = {"resultType": kind, "textResultForLlm": _result(said)}
    elif name == "userPromptTransformed":
        if said.replied:
            data["modifiedTransformedPrompt"] = reply_words(said)
    elif said.decision == "deny":
        data |= {"decision": "block", "reason": said.reason}
    elif said.again:
        data |= {"decision": "block", "reason": said.again}
    elif said.text is not None:
        data["modifiedPrompt" if name == "userPromptSubmitted" else "modifiedResponse"] = said.text
    return BridgeAnswer(stdout=answer_of(data, NOTHING))


def _as_claude(event: str, said: Said, data: dict[str, Any]) -> None:
    """Where the key is PascalCase, changed arguments and what goes with them are read here only."""
    own = dict(data)
    if said.args is not None:
        own["updatedInput"] = said.args
    if own:
        data["hookSpecificOutput"] = {"hookEventName": event, **own}


def _result(said: Said) -> str:
    from ...spec.tools import result_text_of

    return result_text_of(said.result)


def refusal(row: Row | None, reason: str) -> BridgeAnswer:
    """Return a refusal where nothing else is known."""
    said = Said()
    said.refuse(reason)
    if row is not None:
        return write(row, Moment(), said, {})
    # Not even the event is known: each that can be refused reads its own of these.
    data = {
        "permissionDecision": "deny",
        "permissionDecisionReason": said.reason,
        "behavior": "deny",
        "message": said.reason,
        "decision": "block",
        "reason": said.reason,
    }
    return BridgeAnswer(stdout=answer_of(data, NOTHING))
