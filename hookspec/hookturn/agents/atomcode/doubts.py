"""What looks wrong with an entry of AtomCode's hook files, for ``hookturn check``. Runs nothing."""

from __future__ import annotations

import os
import re

from ...runners import command
from ...runners.command import Wrong
from ...runners.programs import find_program
from ...spec.errors import did_you_mean
from .matcher import TOOL_EVENTS
from .tools import TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    from ...runners.entry import HookEntry

FOLDERS = ("ATOMCODE_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "ATOMCODE_PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT")
"""Variables that hold a folder, whose name may have blanks in it."""

VARIABLES = (
    *FOLDERS,
    "ATOMCODE_HOOK_EVENT",
    "ATOMCODE_HOOK_CONTEXT",
    "ATOMCODE_HOOK_CONTEXT_FILE",
    "ATOMCODE_TOOL_NAME",
    "ATOMCODE_HOME",
)
"""Variables of AtomCode's that a hook may find."""

_VARIABLE = re.compile(r"\$(?:\{(\w+)|(\w+))")
_BASH = re.compile(
    r"(?:^|[\s;&|(])(\[\[|source|function|declare|local -\w|shopt|mapfile|readarray)\s|(<<<)|(<\()|(&>)|(\$\{\w+(?:,,|\^\^|\[))|(pipefail)"
)
_LONG, _SHORT_MS = 600, 100
_MOST = 200_000  # bytes of a script that are looked at


def wrongs(entry: HookEntry, project: str) -> list[Wrong]:
    """Return what is wrong with an entry here and now.

    Parameters:
        entry: an entry that is on.
        project: the project's folder.
    """
    if entry.kind == "webhook":
        from ...runners import webhook

        found: list[Wrong] = webhook.problems(entry)
        return found
    if entry.kind != "command":
        return []
    if entry.extra["group"] == "hooks":
        return [*_script(entry), *_timeout(entry, "timeout_secs")]
    return [
        *command.problems(entry, project),
        *_variables(entry.run),
        *_bash(entry.run, "the command"),
        *_matcher(entry),
        *_timeout(entry, "timeout" if "plugin" in entry.extra else "timeout_ms"),
    ]


def _script(entry: HookEntry) -> Iterable[Wrong]:
    yield from command.problems(entry)
    program, path = entry.run
    if program == "sh" and not wants_bash(path):
        try:
            with open(path, "rb") as file:
                text = file.read(_MOST).decode("utf-8", "replace")
        except OSError:
            return  # told above
        lines = (line for line in text.split("\n") if not line.lstrip().startswith("#"))
        yield from _bash("\n".join(lines), f"{path}")


def wants_bash(path: str) -> bool:
    """Tell whether a script's first line names bash, and bash is there."""
    try:
        with open(path, "rb") as file:
            first = file.read(256).partition(b"\n")[0].decode("utf-8", "replace")
    except OSError:
        return False
    return bool(re.match(r"#!.*\bbash\b", first)) and not find_program("bash", os.environ, os.sep)[1]


def _bash(text: str, what: str) -> Iterable[Wrong]:
    if what == "the command" and re.match(r"\s*(?:\S*/)?bash\s", text):
        return
    hit = _BASH.search(text)
    if hit is not None:
        word = next(group for group in hit.groups() if group)
        remedy = "Run it with bash: script_type = \"bash\", or `bash -c '...'`."
        yield Wrong(
            f"{what} has {word!r}, which bash knows and sh may not", remedy, certain=False, severity="warning"
        )


def _variables(line: str) -> Iterable[Wrong]:
    for match in _VARIABLE.finditer(line):
        name = match[1] or match[2]
        quote = _quote_at(line, match.start())
        if quote == "'":
            continue
        if name in FOLDERS and not quote:
            yield Wrong(
                f"${name} stands without quotes: it breaks where the folder's name has a blank",
                f'Write "${name}".',
                certain=False,
                severity="warning",
            )
        elif name.startswith(("ATOMCODE_", "CLAUDE_")) and name not in VARIABLES and f"{name}=" not in line:
            near = did_you_mean(name, VARIABLES)
            yield Wrong(
                f"nobody sets ${name}{near}", "The hook reads the event on standard input.", certain=False
            )


def _quote_at(line: str, place: int) -> str:
    """Return the quote that a place of a shell line stands in, or an empty string."""
    quote, at = "", 0
    while at < place:
        char = line[at]
        if char == "\\" and quote != "'":
            at += 1
        elif char == quote:
            quote = ""
        elif not quote and char in "'\"":
            quote = char
        at += 1
    return quote


def _matcher(entry: HookEntry) -> Iterable[Wrong]:
    matcher = entry.extra["matcher"]
    if not matcher or matcher == "*" or entry.extra["event"] not in TOOL_EVENTS:
        return
    if entry.extra["generation"] == 1:
        if "|" in matcher or "*" in matcher[:-1]:
            cause = (
                f"the matcher {matcher!r} matches nothing: generation 1 takes one name, or a begin and '*'"
            )
            yield Wrong(cause, "Make it one entry for each tool.", certain=False, severity="warning")
        return
    for part in (part.strip() for part in matcher.split("|")):
        yield from _alternative(part)


def _alternative(part: str) -> Iterable[Wrong]:
    remedy = "Write tools' names, '*' for any text in them, and '|' between them."
    if not part:
        yield Wrong(
            "the matcher has an empty alternative, which matches no tool",
            remedy,
            certain=False,
            severity="warning",
        )
    elif "(" in part:
        cause = f"the matcher {part!r} is a permission rule: it matches no tool"
        yield Wrong(
            cause,
            "Write the tool's name; the command reads the arguments.",
            certain=False,
            severity="warning",
        )
    elif ".*" in part or part[0] == "^" or part[-1] == "$" or "[" in part or "\\" in part:
        yield Wrong(
            f"the matcher {part!r} is a regular expression: it matches no tool", remedy, certain=False
        )
    elif part.startswith("mcp__") and "*" not in part and part.count("__") < 2:
        yield Wrong(
            f"the matcher {part!r} is no tool's name",
            f"Write {part}__*, say.",
            certain=False,
            severity="warning",
        )
    elif "*" not in part and part not in TOOLS and part.lower() in TOOLS:
        cause = f"the matcher {part!r} matches no tool (did you mean {part.lower()!r}?)"
        yield Wrong(cause, "Case counts.", certain=False, severity="warning")


def _timeout(entry: HookEntry, key: str) -> Iterable[Wrong]:
    seconds = float(entry.options.get("timeout", 0))
    if key == "timeout_ms" and seconds * 1000 < _SHORT_MS:
        cause = f"timeout_ms is {seconds * 1000:.0f}: no program is that fast (are these seconds?)"
        yield Wrong(cause, f"Write {seconds * 1_000_000:.0f}, say.", certain=False, severity="warning")
    elif seconds > _LONG:
        what = "(are these microseconds?)" if key == "timeout_ms" else "(are these milliseconds?)"
        yield Wrong(
            f"{key} lets the agent wait {seconds / 60:.0f} minutes {what}", "Correct it.", certain=False
        )
