"""What looks wrong with an entry of AtomCode's hook files, for ``hookturn check``. Runs nothing."""

from __future__ import annotations

import os
import re

from ...runners import command
from ...runners import doubts as common
from ...runners.entry import Wrong
from ...runners.programs import find_program
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
    found = list(command.problems(entry, project))
    if not found:
        root = entry.extra.get("plugin_root", "")
        places = {name: root if "PLUGIN" in name else project for name in FOLDERS}
        found += common.missing(entry.run, places, project)
    return [
        *found,
        *common.of_line(entry.run, folders=FOLDERS, known=VARIABLES),
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
        yield from common.of_script(path, text)


def wants_bash(path: str) -> bool:
    """Tell whether a script's first line names bash, and bash is there."""
    try:
        with open(path, "rb") as file:
            first = file.read(256).partition(b"\n")[0].decode("utf-8", "replace")
    except OSError:
        return False
    return bool(re.match(r"#!.*\bbash\b", first)) and not find_program("bash", os.environ, os.sep)[1]


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
    value, unit = (seconds * 1000, "milliseconds") if key == "timeout_ms" else (seconds, "seconds")
    for cause, remedy in common.of_wait(key, value, unit=unit):
        yield Wrong(cause, remedy, certain=False, severity="warning")
