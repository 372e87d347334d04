"""What makes a declared hook one that can never say no, found without running it; in the words of Claude Code's files."""

from __future__ import annotations

from ...runners.doubts import of_wait
from ...spec.errors import did_you_mean
from .occasions import KINDS, OCCASIONS, OTHERS
from .tools import TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


FIELDS: dict[str, tuple[str, ...]] = {
    "": ("type", "if", "timeout", "statusMessage", "once"),
    "command": ("command", "args", "async", "asyncRewake", "shell"),
    "http": ("url", "headers", "allowedEnvVars"),
    "mcp_tool": ("server", "tool", "input"),
    "prompt": ("prompt", "model", "continueOnBlock"),
    "agent": ("prompt", "model"),
}
"""Fields of a handler: of all types, and of each. Source: the hooks reference."""

_OTHER_FIELDS = {
    "timeout_ms": "timeout (in seconds)",
    "timeoutMs": "timeout (in seconds)",
    "timeoutSec": "timeout",
    "timeout_secs": "timeout",
    "timeoutSeconds": "timeout",
    "bash": "command",
    "exec": "command",
    "env": "variables before the command: NAME=value program",
    "matcher": "matcher of the group, one level up",
}
FOLDERS = ("CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT")
"""Variables that hold a folder."""

VARIABLES = (
    *FOLDERS, "CLAUDE_PLUGIN_DATA", "CLAUDE_ENV_FILE", "CLAUDE_CODE_SESSION_ID", "CLAUDE_CODE_ENTRYPOINT",
    "CLAUDE_CODE_REMOTE", "CLAUDE_CONFIG_DIR", "CLAUDE_PID", "CLAUDE_EFFORT", "CLAUDE_CODE_CHILD_SESSION",
    "CLAUDE_CODE_SESSION_ATTENDED",
)  # fmt: skip
"""Variables that a command may find. Source: the hooks reference, and what version 2.1.332 sets."""


def unknown_event(name: str) -> tuple[str, str]:
    """Return cause and remedy for an event that Claude Code does not have."""
    if name in OTHERS:
        return f"{name!r} is an event of another agent: it never fires", f"Claude Code's is {OTHERS[name]}."
    if name in TOOLS or name.startswith("mcp__"):
        return (
            f"{name!r} is a tool, not an event: it never fires",
            'Write it as the "matcher" of a group of PreToolUse or PostToolUse.',
        )
    near = did_you_mean(name, OCCASIONS)
    return f"unknown event {name[:60]!r}{near}: it never fires", "Correct its name; case counts."


def of_fields(handler: dict[str, Any]) -> Iterator[tuple[str, str, str]]:
    """Yield (key, cause, remedy) of what is odd about a handler's fields; none of it keeps the hook from running."""
    kind = handler.get("type")
    known = (*FIELDS[""], *FIELDS.get(kind if isinstance(kind, str) else "", ()))
    for key in handler:
        if key in known:
            continue
        if key in _OTHER_FIELDS:
            yield key, f"there is no field {key!r} here, so it has no effect", f"Write {_OTHER_FIELDS[key]}."
        elif any(key in fields for fields in FIELDS.values()):
            yield key, f"{key!r} is no field of a hook of type {kind}, so it has no effect", "Take it out."
        else:
            yield key, f"unknown field {key!r}{did_you_mean(key, known)}, which has no effect", "Correct it."
    timeout = handler.get("timeout")
    if isinstance(timeout, (int, float)):
        for cause, remedy in of_wait("timeout", timeout):
            yield "timeout", cause, remedy
    if handler.get("once") is True:
        yield "once", "'once' counts in skills only; here the hook runs each time", "Take it out."
    if handler.get("asyncRewake") is True:
        yield "asyncRewake", "asyncRewake wakes nobody here: the hook runs in the background", "Take it out."


def no_kind(kind: object) -> tuple[str, str]:
    """Return cause and remedy for a handler's type that does not exist."""
    if not isinstance(kind, str):
        return 'a hook needs a "type"', 'Write "type": "command".'
    near = did_you_mean(kind, KINDS)
    return f"there is no hook of type {kind[:40]!r}{near}", f"Known are {', '.join(KINDS)}."
