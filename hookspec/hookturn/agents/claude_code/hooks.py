"""Claude Code's hook protocol: its payloads to our moments, what hooks said to its answers.

Sources: https://code.claude.com/docs/en/hooks, and version 2.1.332 as run. Facts that decide here: JSON on
standard output with exit code 0 is read for every event, unknown fields are ignored, but a wrong type or a
wrong ``hookEventName`` voids the whole answer and the action goes on; ``continue: false`` before a tool does
not keep the tool from running, so a deny goes with it.
"""

from __future__ import annotations

from ..bridge import BridgeAnswer
from ..moments import Moment, Row, Said
from ..payloads import (
    answer_of,
    call_of,
    calls_us,
    common_of,
    ended_of,
    failure_of,
    prompt_of,
    running_of,
    text_of,
)
from .tools import TOOLS as TOOLS  # part of what AgentHooks asks for
from .tools import mcp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAME = "claude-code"
PROJECT_VARIABLE = "CLAUDE_PROJECT_DIR"
PID_VARIABLE = "CLAUDE_PID"
NOTHING = b""

_LONG = 600.0
_BLOCK = ["Deny", "Block", "Inject"]


def _event(event: str, type: str, can: str = "", accepts: list[str] | None = None, **more: Any) -> Row:
    """A row for on_event: warnings always reach the user, injected texts the next request."""
    can_do = [*can.split(), "warn"]
    return Row(
        event=event,
        does=more.pop("does", "event"),
        type=type,
        can=can_do,
        accepts=["Inject"] if accepts is None else accepts,
        seconds=more.pop("seconds", _LONG),
        **more,
    )


_ROWS = (
    Row(
        event="SessionStart",
        does="session_start",
        can=["inject", "env", "warn"],
        seconds=_LONG,
        note="A Block is kept: every prompt of the session is refused.",
    ),
    Row(
        event="UserPromptSubmit",
        does="prompt",
        can=["deny", "inject", "warn"],
        seconds=30.0,
        note="The prompt cannot be changed; a Reply refuses the prompt and is shown to the user.",
    ),
    Row(event="PreToolUse", does="tool", can=["deny", "stop", "ask", "allow", "args", "inject", "warn"], seconds=_LONG),
    Row(
        event="PreSkillShellCommand",
        does="tool",
        can=["deny", "stop", "inject", "warn"],
        seconds=_LONG,
        note="A shell command inside a skill. Claude Code tells no end of it: its post_tool_execution comes "
        "with the next batch's or the turn's end, status unknown.",
    ),
    Row(
        event="PermissionRequest",
        does="permission",
        can=["deny", "allow", "warn"],
        seconds=_LONG,
        note="Without an answer Claude Code asks its user; a headless run refuses.",
    ),
    Row(
        event="PostToolUse",
        does="tool_end",
        can=["deny", "result", "inject", "warn"],
        seconds=_LONG,
        note="A changed result keeps the shape of the tool's own.",
    ),
    Row(
        event="PostToolUseFailure",
        does="tool_end",
        can=["inject", "warn"],
        seconds=_LONG,
        note="A failed call's text cannot be changed or withheld.",
    ),
    Row(
        event="PermissionDenied",
        does="tool_end",
        can=["warn"],
        seconds=_LONG,
        note="Claude Code's own classifier refused: post_tool_execution with status denied.",
    ),
    Row(event="PostToolBatch", does="batch_end", can=["stop", "inject", "warn"], seconds=_LONG),
    Row(
        event="MessageDisplay",
        does="message",
        can=["text"],
        seconds=10.0,
        note="A Rewrite changes what is shown, not what the model reads later; a Block refuses the turn's tool calls.",
    ),
    Row(
        event="Stop",
        does="turn_end",
        can=["again", "warn"],
        seconds=_LONG,
        note="The answer is shown already. Claude Code itself lets a turn go on 8 times at most.",
    ),
    Row(event="StopFailure", does="turn_failed", can=["warn"], seconds=_LONG),
    Row(event="SubagentStart", does="subagent_start", can=["inject", "warn"], seconds=_LONG),
    Row(
        event="SubagentStop",
        does="subagent_end",
        can=["again", "warn"],
        seconds=_LONG,
        type="subagent.stop",
    ),
    Row(event="SessionEnd", does="session_end", can=[], seconds=1.5),
    _event("PreCompact", "compaction.before", "deny", _BLOCK),
    _event("PostCompact", "compaction.after", does="compacted"),
    _event("Setup", "session.setup", "inject env", ["Inject", "SetEnv"]),
    _event("InstructionsLoaded", "instructions.loaded"),
    _event("UserPromptExpansion", "prompt.expansion", "deny inject", _BLOCK),
    _event("Notification", "notification"),
    _event("TaskCreated", "task.created", "deny", _BLOCK),
    _event("TaskCompleted", "task.completed", "deny stop", _BLOCK),
    _event("TeammateIdle", "teammate.idle", "again stop", ["Continue", "Block", "Inject"]),
    _event("PreModelSwitch", "model.before_switch", "deny ask allow", ["Allow", "Ask", *_BLOCK]),
    _event("PostModelSwitch", "model.switched", "inject"),
    _event("ConfigChange", "config.changed", "deny", _BLOCK),
    _event("CwdChanged", "cwd.changed", "env", ["Inject", "SetEnv"]),
    _event("FileChanged", "file.changed", "env", ["Inject", "SetEnv"], install=False, note="Needs a matcher with the names of files."),
    _event("DirectoryAdded", "directory.added"),
    _event(
        "WorktreeCreate",
        "worktree.create",
        "reply",
        ["Reply"],
        install=False,
        note="A hook here takes over: it must Reply with the folder that it made.",
    ),
    _event("WorktreeRemove", "worktree.remove", install=False, note="A hook here takes over."),
    _event("Elicitation", "elicitation", "deny reply", ["Deny", "Block", "Reply", "Inject"], note="A Reply is the content of the form."),
    _event("ElicitationResult", "elicitation.result", "deny reply", ["Deny", "Block", "Reply", "Inject"]),
)  # fmt: skip

EVENTS: dict[str, Row] = {row.event: row for row in _ROWS}
"""Claude Code's events. Time limits: its defaults."""

UNKNOWN = Row(event="unknown", does="event", type="claude-code.unknown", can=["warn"], accepts=["Inject"])

_STATUS = {"PostToolUse": "ok", "PostToolUseFailure": "error", "PermissionDenied": "denied"}

_COMMON = (
    "session_id",
    "transcript_path",
    "cwd",
    "hook_event_name",
    "prompt_id",
    "permission_mode",
    "agent_id",
    "agent_type",
)


def given(environ: Mapping[str, str]) -> bytes | None:
    """Claude Code writes to standard input."""
    return None


def caller(payload: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return ``copilot`` for GitHub's Copilot CLI, which runs the hooks of ``.claude/settings.json``, too.

    Its payloads have ``sessionId`` or a ``timestamp``, which Claude Code's never have; the environment alone
    does not tell, for one agent may run inside the other's shell.
    """
    if ("timestamp" in payload or "sessionId" in payload) and _copilot(environ):
        return "copilot"
    return NAME


def _copilot(environ: Mapping[str, str]) -> bool:
    return any(environ.get(name) for name in ("COPILOT_CLI", "COPILOT_PROJECT_DIR", "COPILOT_HOOK_DIR"))


def has_entry(event: str, project: str, environ: Mapping[str, str]) -> bool:
    """Tell whether a settings file of the user or the project calls ``hookturn bridge`` for an event."""
    from os.path import join

    home = environ.get("CLAUDE_CONFIG_DIR") or join(environ.get("HOME", ""), ".claude")
    ours = join(project, ".claude")
    return calls_us(
        [join(home, "settings.json"), join(ours, "settings.json"), join(ours, "settings.local.json")], event
    )


def event_name(payload: Mapping[str, Any], entry: str = "") -> str:
    """Return ``hook_event_name`` (see ``AgentHooks.event_name``)."""
    return text_of(payload, "hook_event_name") or entry


def read(row: Row, payload: Mapping[str, Any], environ: Mapping[str, str]) -> Moment:
    """Translate a payload (see ``AgentHooks.read``)."""
    fields = common_of(payload, _COMMON)
    fields["session_id"] = fields["session_id"] or environ.get("CLAUDE_CODE_SESSION_ID", "")
    if row.does in ("tool", "permission", "tool_end"):
        fields |= _call(row, payload)
    elif row.does == "session_start":
        fields["source"] = text_of(payload, "source") or "startup"
    elif row.does == "prompt":
        fields["text"] = prompt_of(payload)
    elif row.does == "message":
        fields["text"] = text_of(payload, "delta")
        fields["message_id"] = text_of(payload, "message_id")
        fields["last"] = payload.get("final") is not False
    elif row.does in ("turn_end", "subagent_end"):
        fields["text"] = text_of(payload, "last_assistant_message")
        fields["running"] = running_of(payload, lambda task: task.get("type") == "subagent")
    elif row.does == "turn_failed":
        fields |= failure_of(payload)
    elif row.does == "session_end":
        fields["reason"] = text_of(payload, "reason")
    return Moment(**fields)


def _call(row: Row, payload: Mapping[str, Any]) -> dict[str, Any]:
    ended = row.does == "tool_end"
    tool, args = call_of(payload, ended=ended)
    fields: dict[str, Any] = {"tool": tool, "args": args, "call_id": text_of(payload, "tool_use_id")}
    server = payload.get("mcp_server")
    if isinstance(server, dict) and isinstance(server.get("name"), str):
        known = mcp_of(tool)
        fields["mcp"] = (server["name"], known[1] if known else tool)
    if not ended:
        return fields
    return fields | ended_of(payload, _STATUS.get(row.event, "ok"))


# -- answers ----------------------------------------------------------------------------------------


def write(row: Row, moment: Moment, said: Said, environ: Mapping[str, str]) -> BridgeAnswer:
    """Translate what hooks said (see ``AgentHooks.write``)."""
    if row.event == "WorktreeCreate":
        return _folder(said)
    data: dict[str, Any] = {}
    own: dict[str, Any] = {}
    if said.env:
        _export(said, environ)
    if said.changed and not _keeps_shape(moment, said):
        said.changed = False
        said.warnings.append(
            f"the result of {moment.tool} has no text that could be changed: the model has it as it was"
        )
    if said.inject:
        own["additionalContext"] = "\n\n".join(said.inject)
    _WRITERS.get(row.event, _plain)(row, said, data, own)
    if said.stop:
        data["continue"] = False
        data["stopReason"] = said.reason
    if said.warnings:
        data["systemMessage"] = "\n".join(said.warnings)
    if own:
        data["hookSpecificOutput"] = {"hookEventName": row.event, **own}
    code, stderr = 0, ""
    if row.event in _BY_EXIT_CODE and (said.decision == "deny" or said.again):
        # These two take a refusal by exit code 2 only; standard error is what the model reads.
        code, stderr = 2, f"{said.again or said.reason}\n"
    return BridgeAnswer(stdout=answer_of(data, NOTHING), stderr=stderr, exit_code=code)


_BY_EXIT_CODE = ("TaskCompleted", "TeammateIdle")


def _plain(row: Row, said: Said, data: dict[str, Any], own: dict[str, Any]) -> None:
    words = said.reason if said.decision == "deny" else said.again
    if words and row.event not in _BY_EXIT_CODE:
        data["decision"], data["reason"] = "block", words


def _permission(row: Row, said: Said, data: dict[str, Any], own: dict[str, Any]) -> None:
    if said.decision:
        own["permissionDecision"] = said.decision
        own["permissionDecisionReason"] = said.reason
    if said.args is not None:
        own["updatedInput"] = said.args


def _request(row: Row, said: Said, data: dict[str, Any], own: dict[str, Any]) -> None:
    if said.decision == "allow":
        own["decision"] = {"behavior": "allow"}
    elif said.decision == "deny":
        own["decision"] = {"behavior": "deny", "message": said.reason}


def _result(row: Row, said: Said, data: dict[str, Any], own: dict[str, Any]) -> None:
    if said.changed:
        own["updatedToolOutput"] = said.result
    _plain(row, said, data, own)


def _keeps_shape(moment: Moment, said: Said) -> bool:
    """Whether a changed result has the shape of the tool's own; another one is ignored, as run."""
    return isinstance(said.result, dict) or not isinstance(moment.result, dict)


def _display(row: Row, said: Said, data: dict[str, Any], own: dict[str, Any]) -> None:
    if said.text is not None:
        own["displayContent"] = said.text


def _elicitation(row: Row, said: Said, data: dict[str, Any], own: dict[str, Any]) -> None:
    if said.decision == "deny":
        own["action"] = "decline"
    elif said.replied and isinstance(said.reply, dict):
        own["action"], own["content"] = "accept", said.reply
    elif said.replied:
        said.lost.append("a Reply to an elicitation must be an object, the content of its form")


_WRITERS = {
    "PreToolUse": _permission,
    "PreSkillShellCommand": _permission,
    "PreModelSwitch": _permission,
    "PermissionRequest": _request,
    "PostToolUse": _result,
    "MessageDisplay": _display,
    "Elicitation": _elicitation,
    "ElicitationResult": _elicitation,
}


def _folder(said: Said) -> BridgeAnswer:
    """The last line of standard output is the folder of the worktree."""
    if said.replied and isinstance(said.reply, str) and said.reply:
        return BridgeAnswer(stdout=said.reply.encode("utf-8", "replace") + b"\n")
    return BridgeAnswer(stderr="hookturn: no hook made a worktree: take hookturn out of WorktreeCreate\n")


def _export(said: Said, environ: Mapping[str, str]) -> None:
    """Set variables for the agent's commands: lines of shell in the file that the agent named."""
    import os
    import re
    import shlex

    from ...paths import open_private, write_all

    path = environ.get("CLAUDE_ENV_FILE", "")
    lines = []
    for name, value in said.env.items():
        if re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            lines.append(f"export {name}={shlex.quote(value)}\n")
        else:
            said.warnings.append(f"{name!r:.60} cannot be set: it is no variable of a shell")
    if not path:
        said.warnings.append(f"{', '.join(sorted(said.env))} cannot be set: Claude Code named no file for it")
        return
    try:
        fd = open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            write_all(fd, "".join(lines).encode("utf-8", "replace"))
        finally:
            os.close(fd)
    except (OSError, ValueError) as error:
        said.warnings.append(f"{', '.join(sorted(said.env))} cannot be set: {error}")


def refusal(row: Row | None, reason: str) -> BridgeAnswer:
    """Return a refusal where nothing else is known."""
    said = Said()
    said.refuse(reason)
    if row is None:
        # Every event that can be refused takes this form; the others ignore it.
        return BridgeAnswer(stdout=answer_of({"decision": "block", "reason": said.reason}, NOTHING))
    if "deny" not in row.can:
        said.decision, said.stop = None, True
    return write(row, Moment(), said, {})
