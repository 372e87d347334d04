"""Finds role.yaml files and tells a role of rolebox from other files of that name. Runs nothing."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAME = "rolebox"
"""The dialect's name."""

ROLE_FILE = "role.yaml"

FOLDER = "rolebox"
"""Folder of roles in a project, and below a platform's configuration."""

SUBAGENT = "--"
"""Separates a role from its sub-agent in an agent's name, so it stands in no role's own."""

MOST = 200
"""Roles of one folder that are looked at."""

FOREIGN_KEYS = ("apiVersion", "kind", "metadata", "rules")
"""Keys of Kubernetes' role.yaml, which is the usual file of this name."""

TIMING_OF = {
    "chat.message": "on_message_received",
    "tool.execute.before": "pre_tool_execution",
    "tool.execute.after": "post_tool_execution",
    "system.transform": "system_prompt",
    "event": "on_event",
}
"""Event of role.yaml -> our timing."""

HOOK_KEYS = ("custom", "builtin", "recovery")
"""Keys of ``hooks``."""

OWN = "hookturn.mjs"
"""Name of our module's file in a role."""

# Compiled when a file is there: most projects have none, and an agent's call would wait for it.
_NOT_OURS = rb"(?m)^(?:%s)[ \t]*:" % b"|".join(key.encode() for key in FOREIGN_KEYS)
_NAME = rb"(?m)^name[ \t]*:"
_ROLE = rb"(?m)^(?:prompt|prompt_file|auto_activate|disable_functions)[ \t]*:"
_HOOKS = rb"(?m)^hooks[ \t]*:"
_HOOK_KEY = rb"(?m)^(?:[ \t{]|hooks[ \t]*:).*\b(?:custom|builtin|recovery)[ \t]*:"
_ENV = r"\{env:([A-Za-z_][A-Za-z0-9_]*)\}"


class Found:
    """A role.yaml that was found.

    Attributes:
        path: the file, absolute.
        role: the role's id: its folder's name.
        layer: project or user.
        alone: whether it lies in the project's root, where the folder's name says nothing.
    """

    __slots__ = ("alone", "layer", "path", "role")

    def __init__(self, path: str, layer: str, *, alone: bool = False) -> None:
        self.path = path
        self.role = os.path.basename(os.path.dirname(path))
        self.layer = layer
        self.alone = alone


def find(project: str, environ: Mapping[str, str]) -> list[Found]:
    """Return the role files of the user's platforms, then the project's: ``role.yaml`` and ``rolebox/*/role.yaml``.

    Parameters:
        project: the project's folder.
        environ: says where the platforms keep their files.
    """
    found = []
    for folder in platform_folders(environ):
        # Installed roles are symbolic links there.
        found += [Found(path, "user") for path in _roles(folder, links=True)]
    root = os.path.join(project, ROLE_FILE)
    if os.path.lexists(root):
        found.append(Found(root, "project", alone=True))
    found += [Found(path, "project") for path in _roles(os.path.join(project, FOLDER), links=False)]
    return found


def platform_folders(environ: Mapping[str, str]) -> list[str]:
    """Return where the programs that rolebox runs in keep roles: opencode, pi, dsh. Source: its ``sync`` command."""
    home = environ.get("HOME") or os.path.expanduser("~")
    config = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    folders = [
        os.path.join(config, "opencode"),
        environ.get("PI_CODING_AGENT_DIR") or os.path.join(home, ".pi", "agent"),
        environ.get("DSH_HOME") or os.path.join(home, ".dsh"),
    ]
    return [os.path.join(folder, FOLDER) for folder in folders]


def functions_folder(environ: Mapping[str, str]) -> str:
    """Return where functions for all of the user's roles lie."""
    return os.path.join(os.path.dirname(platform_folders(environ)[0]), "functions")


def config_folder(environ: Mapping[str, str]) -> str:
    """Return where rolebox keeps its lock file."""
    home = environ.get("HOME") or os.path.expanduser("~")
    base = environ.get("XDG_CONFIG_HOME") or os.path.join(home, ".config")
    return environ.get("ROLEBOX_CONFIG_DIR") or os.path.join(base, FOLDER)


def data_folder(environ: Mapping[str, str]) -> str:
    """Return where rolebox keeps installed roles."""
    home = environ.get("HOME") or os.path.expanduser("~")
    base = environ.get("XDG_DATA_HOME") or os.path.join(home, ".local", "share")
    return environ.get("ROLEBOX_DATA_DIR") or os.path.join(base, FOLDER)


def folders(parent: str, *, links: bool = True) -> list[str]:
    """Return the folders that may be roles, in order.

    Parameters:
        parent: the folder of roles.
        links: whether symbolic links count.
    """
    try:
        with os.scandir(parent) as entries:
            names = sorted(entry.name for entry in entries if entry.is_dir(follow_symlinks=links))
    except OSError:
        return []  # no such folder: the usual case
    return [os.path.join(parent, name) for name in names[:MOST]]


def _roles(parent: str, *, links: bool) -> list[str]:
    paths = (os.path.join(folder, ROLE_FILE) for folder in folders(parent, links=links))
    return [path for path in paths if os.path.isfile(path)]


def recognises(content: bytes) -> bool:
    """Tell from its text whether a file is one of rolebox's, so that others cost nothing and are not complained about."""
    from re import search

    if search(_NOT_OURS, content):
        return False
    if search(_HOOKS, content) and search(_HOOK_KEY, content):
        return True
    return bool(search(_NAME, content.removeprefix(b"\xef\xbb\xbf")) and search(_ROLE, content))


def is_ours(entry: Any) -> bool:
    """Tell whether an entry of ``hooks.custom`` is the one that ``hookturn install rolebox`` wrote: it leads to us."""
    module = entry.get("module") if isinstance(entry, dict) else None
    return isinstance(module, str) and module.replace("\\", "/").rpartition("/")[2] == OWN


def is_role(data: Mapping[str, Any]) -> bool:
    """Tell whether the content of a role.yaml is a role of rolebox."""
    if any(key in data for key in FOREIGN_KEYS):
        return False
    hooks = data.get("hooks")
    if isinstance(hooks, dict) and any(key in hooks for key in HOOK_KEYS):
        return True
    if not isinstance(data.get("name"), str):
        return False
    if any(isinstance(data.get(key), str) for key in ("prompt", "prompt_file")):
        return True
    return isinstance(data.get("auto_activate"), list) or isinstance(data.get("disable_functions"), list)


def interpolated(value: Any, environ: Mapping[str, str]) -> Any:
    """Return a value with ``{env:NAME}`` in its texts replaced; a name that is not set stays as it stands."""
    if isinstance(value, str):
        if "{env:" not in value:
            return value
        import re

        return re.sub(_ENV, lambda match: environ.get(match[1], match[0]), value)
    if isinstance(value, dict):
        return {key: interpolated(item, environ) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [interpolated(item, environ) for item in value]
    return value
