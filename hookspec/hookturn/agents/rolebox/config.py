"""role.yaml of rolebox: what its hooks, functions and switches mean here. See ``agents/dialect.py`` for the shape."""

from __future__ import annotations

import os

from ...platform import agent_environ
from ...runners.entry import HookEntry
from ..dialect import HookFile, Reading
from . import roles
from .roles import NAME as NAME  # these two are part of what Dialect asks for
from .roles import recognises as recognises

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

    from ...runners.entry import Configured, Wrong
    from ...spec.timings import Timing
    from ..dialect import Source

SETTINGS: dict[str, Sequence[Any]] = {}


def files(project: str, environ: Mapping[str, str], settings: Mapping[str, Any]) -> list[HookFile]:
    """Return the role.yaml files of the user's platforms and of the project."""
    found = roles.find(project, environ)
    made = []
    for item in found:
        label = os.path.relpath(item.path, project) if item.layer == "project" else item.path
        made.append(
            HookFile(
                path=item.path,
                label=label,
                layer=item.layer,
                format="yaml",
                kind="role",
                base_dir=os.path.dirname(item.path),
                extra={"role": item.role, "alone": item.alone, "project": project},
            )
        )
    return made


def watched(project: str, environ: Mapping[str, str]) -> list[str]:
    """Return the files and folders whose change may bring another role, or other functions of one."""
    parents = [os.path.join(project, roles.FOLDER), *roles.platform_folders(environ)]
    paths = [roles.functions_folder(environ), *parents]
    # Not the folder of the project or of a role itself: agents write files there.
    for folder in (project, *(folder for parent in parents for folder in roles.folders(parent))):
        role = os.path.join(folder, roles.ROLE_FILE)
        paths.append(role)
        if os.path.isfile(role):  # many a project has a folder of that name
            paths.append(os.path.join(folder, "functions"))
    return paths


def place(path: str, project: str, data: Mapping[str, Any]) -> HookFile | None:
    """Return a file as a role.yaml; one of another name when it holds a role."""
    if os.path.basename(path) != roles.ROLE_FILE and not roles.is_role(data):
        return None
    inside = path.startswith(os.path.join(project, ""))
    folder = os.path.dirname(path)
    return HookFile(
        path=path,
        label=os.path.relpath(path, project) if inside else path,
        layer="project" if inside else "user",
        format="yaml",
        kind="role",
        base_dir=folder,
        extra={
            "role": os.path.basename(folder),
            "alone": folder == project,
            "project": project,
            "others": [],
        },
    )


def read(file: HookFile, source: Source, settings: Mapping[str, Any]) -> Reading:
    """Return what a role declares: its own hooks, its functions, recovery and guards."""
    from .reading import read

    return read(file, source)


def effective(entries: Iterable[HookEntry]) -> list[tuple[HookEntry, str]]:
    """Return all entries; a role counts once, the project's before the user's.

    The only role's hooks run for every agent. Which is the only one is told by the entries that are in force: a
    role that nobody has trusted must not take another's hooks off the agents that they watch.
    """
    entries = list(entries)
    owner: dict[str, HookEntry] = {}
    for entry in entries:
        role = entry.extra["role"]
        if role not in owner or (entry.layer == "project" and owner[role].layer != "project"):
            owner[role] = entry
    result = []
    for entry in entries:
        first = owner[entry.extra["role"]]
        why = "" if first.file == entry.file else f"{first.file} declares the role {entry.extra['role']}, too"
        if not why and len(owner) > 1:
            entry = entry.but(options={**entry.options, "agents": entry.extra["agents"]})
        result.append((entry, why))
    return result


def make(
    entry: HookEntry, config: Mapping[str, Any], timings: Mapping[str, Timing], *, live: bool = False
) -> Configured:
    """Return the plugin of an entry of ``hooks.custom``."""
    settings = roles.interpolated(dict(config), agent_environ())
    if entry.kind == "javascript":
        from . import javascript

        return javascript.make(entry, settings, module_path(entry), live=live)
    from . import module

    return module.make(entry, settings)


def own_files(entry: HookEntry, project: str) -> list[str]:
    """Return the module of a hook, or the files of functions."""
    if entry.kind == "plugin":
        return list(entry.extra.get("files", ()))
    return [module_path(entry)]


def module_path(entry: HookEntry) -> str:
    """Return the absolute path of an entry's module."""
    return os.path.abspath(os.path.join(entry.base_dir, os.path.expanduser(entry.run)))


def words_of(entry: HookEntry) -> str:
    """Return what an entry does, for people."""
    if entry.kind != "plugin":
        return f"runs {entry.declared['module']} at {', '.join(entry.extra['events'])}"
    if entry.run == "functions":
        texts = ", ".join(entry.extra["texts"])
        told = f"puts {texts} into the system prompt when called" if texts else "takes |name| off messages"
        auto = ", ".join(entry.config["auto_activate"])
        return f"{told}{f'; calls {auto} at the first message' if auto else ''}"
    on = ", ".join(key for key, value in entry.config.items() if value is True)
    return f"switches on {entry.run}: {on}"


def wrongs(entry: HookEntry, project: str) -> list[Wrong]:
    """Return what is wrong with a hook's module and filter, as far as their text tells."""
    if entry.kind == "plugin":
        return []
    from .checks import of_filter, of_javascript, of_python

    path = module_path(entry)
    found = of_javascript(entry, path) if entry.kind == "javascript" else of_python(entry, path)
    return [*found, *of_filter(entry.extra["tools"])]
