"""A hook file of another agent that somebody names: whose it is, and what is wrong with it. Runs nothing of it."""

from __future__ import annotations

from .foreign import DIALECTS, dialect, parse, read_file
from .role_lock import changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..agents.dialect import Dialect, HookFile
    from .problems import Problem

FORMATS = {".json": "json", ".toml": "toml", ".yaml": "yaml", ".yml": "yaml"}
"""How a file is read, by its ending."""


class Named:
    """A hook file that was named.

    Attributes:
        module: its dialect.
        place: where it lies.
        own: whether the project or the user has it in its usual place, so that a look at the project covers it.
    """

    def __init__(self, module: Dialect, place: HookFile, *, own: bool) -> None:
        self.module = module
        self.place = place
        self.own = own


def find(path: str, root: str, environ: Mapping[str, str]) -> Named | None:
    """Return whose hook file a path is, or None for one that is no other agent's.

    Parameters:
        path: the file, as messages shall show it.
        root: the folder of the project around it.
        environ: says where agents keep their files.
    """
    import os

    from ..agents.dialect import HookFile

    label, path = path, os.path.abspath(path)
    modules = [dialect(name) for name in DIALECTS]
    for module in modules:
        for place in module.files(root, environ, {}):
            if os.path.exists(place.path) and os.path.samefile(place.path, path):
                return Named(module, place, own=True)
    data = _data(path)
    for module in modules:
        named = module.place(path, root, data)
        if named is not None:
            fields = {name: getattr(named, name) for name in named._fields}
            return Named(module, HookFile(**{**fields, "label": label}), own=False)
    return None


def file_in(folder: str) -> str:
    """Return the hook file of a folder that is a plugin, or a role in somebody's project; else an empty string."""
    import os

    from ..agents.atomcode.plugins import MANIFESTS
    from .layers import project_root

    hooks = os.path.join(folder, "hooks", "hooks.json")
    if os.path.isfile(hooks) and any(os.path.isfile(os.path.join(folder, name)) for name in MANIFESTS):
        return hooks
    role = os.path.join(folder, "role.yaml")
    return role if os.path.isfile(role) and project_root(folder) != os.path.abspath(folder) else ""


def _data(path: str) -> dict[str, Any]:
    """Return what a file holds; one that cannot be read, which is told later, holds nothing."""
    from os.path import splitext

    from ..runners.module import read
    from .document import MAX_BYTES

    form = FORMATS.get(splitext(path)[1].lower())
    if form is None:
        return {}
    try:
        content = read(path, MAX_BYTES)
    except (OSError, ValueError):
        return {}
    document = parse(content, path, form)
    return {} if document.broken else document.data


def problems(named: Named, root: str) -> list[Problem]:
    """Return what is wrong with a file and with each hook in it, as far as reading tells.

    Parameters:
        named: the file.
        root: the folder of the project around it.
    """
    import os

    found: list[Problem] = []
    if named.module.NAME == "rolebox":
        other = changed(named.place, os.environ)
        found += [other] if other is not None else []
    file = read_file(named.module, named.place, {}, found)
    if file is None:
        return found
    project = named.place.extra.get("project", root)
    for entry in file.entries:
        if entry.enabled and entry.kind:
            found += [
                file.document.problem(entry.where, wrong.cause, wrong.remedy, severity=wrong.severity)
                for wrong in named.module.wrongs(entry, project)
            ]
    return found
