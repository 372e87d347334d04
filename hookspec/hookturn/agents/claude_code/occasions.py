"""Claude Code's hook events as data: where each fires here, what its matcher looks at, what its hooks may do."""

from __future__ import annotations

from ...spec.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...spec.events import Event

COMMAND = ("command", "mcp_tool")
REST = ("command", "http", "mcp_tool")
ALL = ("command", "http", "mcp_tool", "prompt", "agent")
KINDS = ALL
"""All types of handlers."""

RUN = ("command", "http")
"""Those that can be run without Claude Code."""


class Occasion(Record):
    """One of Claude Code's hook events.

    Parameters:
        name: its name.
        timing: the timing at which it fires here.
        types: types of ``on_event`` that are this event; more general ones first.
        field: the payload's field that a matcher looks at; empty where a matcher is ignored.
        kinds: types of handlers that it takes.
        timeout: seconds that a command or an HTTP handler has.
        blocks: exit code 2 blocks.
        tells: the model reads the standard error of exit code 2.
        plain: plain text on standard output is context.
        mode: the payload has a permission mode.
        seen: something here tells of it; else only a host that sends such an ``on_event`` does.
    """

    name: str
    timing: str = "on_event"
    types: list[str] = []
    field: str = ""
    kinds: tuple[str, ...] = REST
    timeout: float = 600.0
    blocks: bool = False
    tells: bool = False
    plain: bool = False
    mode: bool = False
    seen: bool = False

    @property
    def is_tool(self) -> bool:
        """Whether it is about a tool call."""
        return self.field == "tool_name" or self.name == "PreSkillShellCommand"


def _other(name: str, kind: str, field: str = "", **more: Any) -> Occasion:
    return Occasion(name, types=[kind], field=field, **more)


_TABLE = (
    Occasion("SessionStart", "on_session_start", field="source", kinds=COMMAND, plain=True, seen=True),
    Occasion("SessionEnd", "on_session_end", field="reason", timeout=1.5, seen=True),
    Occasion(
        "UserPromptSubmit",
        "on_user_prompt_submit",
        kinds=ALL,
        timeout=30.0,
        blocks=True,
        plain=True,
        mode=True,
        seen=True,
    ),
    Occasion(
        "PreToolUse", "pre_tool_execution", field="tool_name", kinds=ALL, blocks=True, mode=True, seen=True
    ),
    Occasion(
        "PostToolUse", "post_tool_execution", field="tool_name", kinds=ALL, tells=True, mode=True, seen=True
    ),
    Occasion(
        "PostToolUseFailure",
        "post_tool_execution",
        field="tool_name",
        kinds=ALL,
        tells=True,
        mode=True,
        seen=True,
    ),
    Occasion(
        "PermissionRequest", "on_permission_request", field="tool_name", kinds=ALL, mode=True, seen=True
    ),
    Occasion("Stop", "on_turn_complete", kinds=ALL, blocks=True, mode=True, seen=True),
    Occasion(
        "SubagentStop", "on_turn_complete", field="agent_type", kinds=ALL, blocks=True, mode=True, seen=True
    ),
    Occasion("StopFailure", "on_error", field="error", seen=True),
    Occasion("MessageDisplay", "on_model_response", timeout=10.0, seen=True),
    _other("SubagentStart", "subagent.start", "agent_type", seen=True),
    _other("PreCompact", "compaction.before", "trigger", blocks=True, seen=True),
    _other("PostCompact", "compaction.after", "trigger", seen=True),
    _other("Notification", "notification", "notification_type", seen=True),
    _other("PermissionDenied", "permission.denied", "tool_name", kinds=ALL, mode=True),
    _other("PreSkillShellCommand", "skill.command", mode=True),
    _other(
        "UserPromptExpansion",
        "prompt.expansion",
        "command_name",
        kinds=ALL,
        blocks=True,
        plain=True,
        mode=True,
    ),
    _other("PostToolBatch", "tool.batch", kinds=ALL, blocks=True, mode=True),
    _other("Setup", "session.setup", "trigger", kinds=COMMAND),
    _other("InstructionsLoaded", "instructions.loaded", "load_reason"),
    _other("TaskCreated", "task.created", kinds=ALL, blocks=True),
    _other("TaskCompleted", "task.completed", kinds=ALL, blocks=True),
    _other("TeammateIdle", "teammate.idle", kinds=ALL, blocks=True),
    _other("PreModelSwitch", "model.before_switch"),
    _other("PostModelSwitch", "model.switched"),
    _other("ConfigChange", "config.changed", "source", blocks=True),
    _other("CwdChanged", "cwd.changed"),
    _other("FileChanged", "file.changed", "file_path"),
    _other("DirectoryAdded", "directory.added", "source"),
    _other("WorktreeCreate", "worktree.create"),
    _other("WorktreeRemove", "worktree.remove"),
    _other("Elicitation", "elicitation", "mcp_server_name", blocks=True),
    _other("ElicitationResult", "elicitation.result", "mcp_server_name", blocks=True),
)

OCCASIONS: dict[str, Occasion] = {occasion.name: occasion for occasion in _TABLE}
"""By Claude Code's name. Source: its hooks reference, and version 2.1.332 as run."""

OTHERS = {
    "BeforeTool": "PreToolUse", "AfterTool": "PostToolUse", "BeforeAgent": "UserPromptSubmit", "AfterAgent": "Stop",
    "PreCompress": "PreCompact", "BeforeModel": "UserPromptSubmit", "AfterModel": "MessageDisplay",
    "BeforeToolSelection": "PreToolUse",
    "preToolUse": "PreToolUse", "postToolUse": "PostToolUse", "postToolUseFailure": "PostToolUseFailure",
    "userPromptSubmitted": "UserPromptSubmit", "sessionStart": "SessionStart", "sessionEnd": "SessionEnd",
    "agentStop": "Stop", "subagentStop": "SubagentStop", "subagentStart": "SubagentStart", "preCompact": "PreCompact",
    "permissionRequest": "PermissionRequest", "notification": "Notification", "errorOccurred": "StopFailure",
    "beforeSubmitPrompt": "UserPromptSubmit", "beforeShellExecution": "PreToolUse", "afterShellExecution": "PostToolUse",
    "beforeMCPExecution": "PreToolUse", "afterMCPExecution": "PostToolUse", "beforeReadFile": "PreToolUse",
    "afterFileEdit": "PostToolUse", "stop": "Stop",
    "pre_tool": "PreToolUse", "post_tool": "PostToolUse", "post_turn": "Stop",
    "tool.execute.before": "PreToolUse", "tool.execute.after": "PostToolUse", "chat.message": "UserPromptSubmit",
    "pre_run_command": "PreToolUse", "post_run_command": "PostToolUse", "pre_write_code": "PreToolUse",
    "post_write_code": "PostToolUse", "pre_user_prompt": "UserPromptSubmit", "Interrupt": "Stop",
    "agentSpawn": "SessionStart",
}  # fmt: skip
"""Events of other agents -> the one of Claude Code that is nearest."""

_FAILED = ("error", "timeout", "cancelled", "unknown")
_END_REASONS = ("clear", "resume", "logout", "prompt_input_exit", "other")


def why_not(occasion: Occasion, event: Event) -> str:
    """Return why an event is none of this kind, or an empty string when it is.

    Parameters:
        occasion: Claude Code's event.
        event: an event of the timing ``occasion.timing``.
    """
    seen: Any = event
    if occasion.timing == "on_event":
        if seen.type in occasion.types or _raw_name(event) == occasion.name:
            return ""
        return f"{occasion.name} is on_event of type {' or '.join(occasion.types)}, not {seen.type}"
    if occasion.name == "PostToolUse" and seen.status != "ok":
        return f"PostToolUse is for calls that went well; this one's status is {seen.status}"
    if occasion.name == "PostToolUseFailure" and seen.status not in _FAILED:
        return f"PostToolUseFailure is for calls that failed; this one's status is {seen.status}"
    if occasion.name == "Stop" and seen.agent_id:
        return "Stop is for the main agent; a sub-agent's turn is SubagentStop"
    if occasion.name == "SubagentStop" and not seen.agent_id:
        return "SubagentStop is for sub-agents; the main agent's turn is Stop"
    if occasion.name == "StopFailure" and seen.phase not in ("model", "turn"):
        return f"StopFailure is for errors of the model; this one's phase is {seen.phase or 'unknown'}"
    if occasion.name == "MessageDisplay" and not seen.text:
        return "MessageDisplay is for answers with a text"
    return ""


def value_of(occasion: Occasion, event: Event) -> str:
    """Return what a matcher of this event looks at (tool names apart)."""
    seen: Any = event
    if occasion.name == "SessionStart":
        return str(seen.source)
    if occasion.name == "SessionEnd":
        return end_reason(seen.reason)
    if occasion.name == "StopFailure":
        return str(seen.error_type)
    if occasion.name == "SubagentStop":
        return str(seen.agent)
    about = about_of(event)
    if occasion.field == "agent_type":
        value = about.get("agent_type") or about.get("agent") or event.agent
    elif occasion.field == "file_path":
        value = str(about.get("file_path") or about.get("path") or "").rpartition("/")[2]
    else:
        value = about.get(occasion.field, "auto" if occasion.field == "trigger" else "")
    return value if isinstance(value, str) else ""


def end_reason(reason: str) -> str:
    """Return a session's end in Claude Code's words."""
    return reason if reason in _END_REASONS else "other"


def about_of(event: Any) -> dict[str, Any]:
    """Return what a host's own event tells: Claude Code's own payload, else the event's properties."""
    about = dict(event.properties)
    if isinstance(event.raw, dict) and isinstance(event.raw.get("hook_event_name"), str):
        about = {**event.raw, **about}
    return about


def _raw_name(event: Event) -> Any:
    return event.raw.get("hook_event_name") if isinstance(event.raw, dict) else None
