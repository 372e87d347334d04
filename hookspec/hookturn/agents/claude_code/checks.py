"""What makes a declared hook one that can never say no, found without running it; in the words of Claude Code's files."""

from __future__ import annotations

import re

from ...runners.command import Wrong
from ...spec.errors import did_you_mean
from .occasions import KINDS, OCCASIONS, OTHERS
from .tools import TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


LONG = 1_000.0
"""Seconds from which on a time limit is taken for one of milliseconds."""

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
_VARIABLES = (
    "CLAUDE_PROJECT_DIR", "CLAUDE_PLUGIN_ROOT", "CLAUDE_PLUGIN_DATA", "CLAUDE_ENV_FILE", "CLAUDE_CODE_SESSION_ID",
    "CLAUDE_CODE_ENTRYPOINT", "CLAUDE_CODE_REMOTE", "CLAUDE_CONFIG_DIR", "CLAUDE_PID", "CLAUDE_EFFORT",
    "CLAUDE_CODE_CHILD_SESSION", "CLAUDE_CODE_SESSION_ATTENDED",
)  # fmt: skip
_NEVER_SET = re.compile(
    r"\$\{?((?:CLAUDE_(?:TOOL|FILE|HOOK|EVENT|SESSION|PROMPT|USER|NOTIFICATION|TRANSCRIPT|AGENT|CWD|WORKING)\w*)"
    r"|TOOL_(?:INPUT|NAME|ARGS|OUTPUT|RESULT|RESPONSE)\w*|HOOK_(?:INPUT|EVENT|TOOL)\w*|FILE_PATHS?)\b"
)
_PLACES = re.compile(r"\$(?:\{CLAUDE_(?:PROJECT_DIR|PLUGIN_ROOT)\}|CLAUDE_(?:PROJECT_DIR|PLUGIN_ROOT)\b)")
_BASHISMS = (
    (r"(?:^|[\s;&|({!])\[\[", "[[ ... ]]"),
    (r"<<<", "<<<"),
    (r"(?<![<>&])[<>]\(", "<( ... )"),
    (r"(?<!&)&>>?(?!&)", "&>"),
    (r"(?:^|[\s;&|({])source\s", "source"),
    (r"(?:^|[\s;&|({])function\s+\w+", "function"),
    (r"(?:^|[\s;&|({])(?:declare|typeset|shopt|mapfile|readarray)\s", "declare and its like"),
    (r"(?:^|[\s;])\w+=\(", "arrays"),
    (r"\$\{\w+(?:\^|,|//|/[^}]|:\d)", "${x//a/b} and its like"),
    (r"\$\{!?\w+\[|\$\{!\w", "${x[0]} and ${!x}"),
    (r"(?:^|\s)\[\s[^]]*\s==\s", "== in [ ... ]"),
    (r"=~", "=~"),
)


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
    if isinstance(timeout, (int, float)) and timeout >= LONG:
        shown = f"{timeout / 3600:.1f} hours" if timeout >= 3600 else f"{timeout / 60:.0f} minutes"
        yield (
            "timeout",
            f"timeout is in seconds: {timeout:g} are {shown}",
            f"Write {timeout / 1000:g} if milliseconds were meant.",
        )
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


def of_line(line: str, *, shell: str) -> Iterator[Wrong]:
    """Yield what is odd about a shell line.

    Parameters:
        line: the command.
        shell: the shell that reads it.
    """
    bare = without_quoted(line, keep_double=False)
    if shell == "sh":
        words = [word for pattern, word in _BASHISMS if re.search(pattern, bare)]
        if words:
            yield Wrong(
                f"the line is read by sh, which does not know {', '.join(words)}: it may fail, or never say no",
                'Write "shell": "bash", or call a script.',
                certain=False,
            )
    place = _PLACES.search(bare)
    if place is not None:
        yield Wrong(
            f"{place[0]} stands without quotes: a folder with a blank in its name breaks the command",
            f'Write "{place[0]}" in double quotes.',
            certain=False,
            severity="warning",
        )
    for name in dict.fromkeys(_NEVER_SET.findall(without_quoted(line, keep_double=True))):
        if name in _VARIABLES or re.search(rf"(?:^|[\s;&(]){name}=|\bread\b[^;|&]*\b{name}\b", line):
            continue
        yield Wrong(
            f"nobody sets the variable {name}: it is empty",
            "Read the JSON on standard input: jq -r .tool_input.command, say.",
            certain=False,
        )


def without_quoted(line: str, *, keep_double: bool) -> str:
    """Return a shell line with a blank in place of each quoted text.

    Parameters:
        line: the line.
        keep_double: keep what stands in double quotes, where variables count.
    """
    out, quote, at = [], "", 0
    while at < len(line):
        c = line[at]
        if c == "\\" and quote != "'":
            at += 2
            out.append(" ")
            continue
        if quote:
            if c == quote:
                quote = ""
            elif quote == '"' and keep_double:
                out.append(c)
        elif c in "'\"":
            quote = c
            out.append("_")
        else:
            out.append(c)
        at += 1
    return "".join(out)
