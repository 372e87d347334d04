"""Claude Code's hook files: its settings and plugins' ``hooks/hooks.json``, read in place and run with their meaning.

Source: https://code.claude.com/docs/en/hooks and version 2.1.332 as run; ``docs/dialects/claude-code.md`` says what is
done otherwise here. Light: projects without such files pay for this module only.
"""

from __future__ import annotations

import os

from ..dialect import HookFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ...runners.entry import Configured, HookEntry, Wrong
    from ...spec.timings import Timing
    from ..dialect import Reading, Source

NAME = "claude-code"

MANAGED = {
    "linux": "/etc/claude-code/managed-settings.json",
    "darwin": "/Library/Application Support/ClaudeCode/managed-settings.json",
}
"""The administrator's settings. Source: https://code.claude.com/docs/en/settings."""


def _plugin_folders(value: Any) -> str:
    """Return what is wrong with the option ``plugins``, or an empty string."""
    if isinstance(value, list) and all(isinstance(item, str) and item for item in value):
        return ""
    return "expected a list of plugins' folders"


BACKGROUND = 4
"""Processes of one hook with ``async: true`` that run at a time, unless the option ``background`` says otherwise."""

MOST_BACKGROUND = 64


def _background(value: Any) -> str:
    """Return what is wrong with the option ``background``, or an empty string."""
    if isinstance(value, int) and not isinstance(value, bool) and 1 <= value <= MOST_BACKGROUND:
        return ""
    return f"expected a number of processes from 1 to {MOST_BACKGROUND}"


SETTINGS: dict[str, Any] = {"plugins": _plugin_folders, "background": _background}


def files(project: str, environ: Mapping[str, str], settings: Mapping[str, Any]) -> list[HookFile]:
    """Return the settings of the administrator, the user and the project, and the plugins that are named."""
    import sys

    found = []
    managed = MANAGED.get(sys.platform)
    if managed:
        found.append(_file(managed, managed, "managed", "managed", os.path.dirname(managed), project))
    folder = environ.get("CLAUDE_CONFIG_DIR") or (
        os.path.join(environ["HOME"], ".claude") if environ.get("HOME") else ""
    )
    if folder:
        folder = os.path.abspath(folder)
        path = os.path.join(folder, "settings.json")
        if os.path.realpath(path) != os.path.realpath(os.path.join(project, ".claude", "settings.json")):
            found.append(_file(path, path, "user", "user", folder, project))
    for kind, name in (("project", "settings.json"), ("local", "settings.local.json")):
        label = f".claude/{name}"
        found.append(_file(os.path.join(project, ".claude", name), label, "project", kind, project, project))
    label = ".claude/hooks/hooks.json"
    found.append(_file(os.path.join(project, label), label, "project", "nobody", project, project))
    for named in settings.get("plugins", ()):
        root = os.path.abspath(os.path.join(project, os.path.expanduser(named)))
        inside = os.path.realpath(root).startswith(os.path.join(os.path.realpath(project), ""))
        path = os.path.join(root, "hooks", "hooks.json")
        label = os.path.relpath(path, project) if inside else path
        data = os.path.join(folder, "plugins", "data", os.path.basename(root)) if folder else ""
        extra = {"project": project, "plugin_root": root, "plugin_data": data}
        # What a project names, or where a folder of it leads, may change with the next pull.
        own = os.path.isabs(os.path.expanduser(named)) and settings.get("said_by") != "project"
        layer = "user" if own and not inside else "project"
        found.append(HookFile(path, label, layer, "json", f"plugin-{os.path.basename(root)}", root, extra))
    return found


def place(path: str, project: str, data: Mapping[str, Any]) -> HookFile | None:
    """Return a file as settings, or as a plugin's hooks when it lies in a folder ``hooks`` that is not ``.claude/hooks``."""
    folder, name = os.path.split(path)
    hooks = data.get("hooks")
    maps = (
        isinstance(hooks, dict) and bool(hooks) and all(isinstance(value, list) for value in hooks.values())
    )
    if not (name in ("settings.json", "settings.local.json") or (name.endswith(".json") and maps)):
        return None
    above = os.path.dirname(folder)
    if os.path.basename(folder) == ".claude":
        return _file(path, path, "project", "named", above, above)
    if os.path.basename(folder) == "hooks" and os.path.basename(above) == ".claude":
        return _file(path, path, "project", "nobody", os.path.dirname(above), os.path.dirname(above))
    if os.path.basename(folder) == "hooks":
        extra = {"project": project, "plugin_root": above, "plugin_data": ""}
        return HookFile(path, path, "project", "json", f"plugin-{os.path.basename(above)}", above, extra)
    return _file(path, path, "project", "named", project, project)


def _file(path: str, label: str, layer: str, kind: str, base_dir: str, project: str) -> HookFile:
    return HookFile(path, label, layer, "json", kind, base_dir, {"project": project})


def read(file: HookFile, source: Source, settings: Mapping[str, Any]) -> Reading:
    """Return the hooks of one file, in order. A bad group or hook costs only itself."""
    from .reading import read

    return read(file, source, settings.get("background", BACKGROUND))


def effective(entries: Iterable[HookEntry]) -> list[tuple[HookEntry, str]]:
    """Return the hooks of all files with why one does not count: switched off, declared twice, or none of ours."""
    from .reading import effective

    return effective(entries)


def make(
    entry: HookEntry, config: Mapping[str, Any], timings: Mapping[str, Timing], *, live: bool = False
) -> Configured:
    """Return a hook's plugin.

    Raises:
        RegistrationError: when it certainly cannot run.
    """
    from .running import make

    return make(entry, config, timings, live=live)


def own_files(entry: HookEntry, project: str) -> list[str]:
    """Return the scripts and programs of the project that a command runs."""
    from .running import own_files

    return own_files(entry, project)


def words_of(entry: HookEntry) -> str:
    """Return what an entry does, for people."""
    from .running import words_of

    return words_of(entry)


def wrongs(entry: HookEntry, project: str) -> list[Wrong]:
    """Return what is wrong with a hook here and now; runs nothing."""
    from .running import wrongs

    return wrongs(entry, project)
