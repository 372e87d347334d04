"""AtomCode's hook files as hooks: ``hooks.toml``, ``.hooks.json`` and the hooks of its plugins.

Sources: the documents of its HookEngine (hooks.toml, generation 1) and of its cc_hooks (generation 2).
Light: projects without such files pay for this module only.
"""

from __future__ import annotations

import os

from ..dialect import HookFile, Reading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ...runners.entry import Configured, HookEntry, Wrong
    from ...spec.timings import Timing
    from ..dialect import Source

NAME = "atomcode"

SETTINGS: dict[str, tuple[Any, ...]] = {
    "generation": (2, 1),
    "merge": ("name", "concatenate"),
    "triggers": ("exact", "substring"),
}
"""``generation``: rules of hooks.json. ``merge``: whether a project's entry replaces the user's of its name.
``triggers``: how a webhook's trigger is read."""


def files(project: str, environ: Mapping[str, str], settings: Mapping[str, Any]) -> list[HookFile]:
    """Return where AtomCode's hook files may lie, in order of registration."""
    home = environ.get("HOME") or os.path.expanduser("~")
    own = _own(environ)
    found = [
        HookFile(
            os.path.join(own, "hooks.json"), os.path.join(own, "hooks.json"), "user", "json", "named", own
        ),
        HookFile(os.path.join(project, ".hooks.json"), ".hooks.json", "project", "json", "named", project),
    ]
    stores = [store for store in _stores(project, own) if os.path.isdir(store[0])]
    if stores:
        from . import plugins

        trust = plugins.read_object(os.path.join(own, "plugins", plugins.TRUST))
        for folder, layer, label in stores:
            found += plugins.files(folder, layer, label, trust)
    toml = os.path.join(home, ".atomcode", "hooks")
    local = os.path.join(project, ".atomcode", "hooks")
    found.append(
        HookFile(
            os.path.join(toml, "hooks.toml"), os.path.join(toml, "hooks.toml"), "user", "toml", "toml", toml
        )
    )
    if os.path.realpath(local) != os.path.realpath(toml):
        path = os.path.join(local, "hooks.toml")
        found.append(HookFile(path, ".atomcode/hooks/hooks.toml", "project", "toml", "toml", local))
    return found


def watched(project: str, environ: Mapping[str, str]) -> list[str]:
    """Return the files whose change may bring other plugins, or trust in them."""
    paths = []
    for folder, _, _ in _stores(project, _own(environ)):
        if os.path.isdir(folder):
            from . import plugins

            paths += plugins.watched(folder)
        else:
            paths.append(folder)
    return paths


def _own(environ: Mapping[str, str]) -> str:
    """Return AtomCode's own folder."""
    home = environ.get("HOME") or os.path.expanduser("~")
    return os.path.abspath(environ.get("ATOMCODE_HOME") or os.path.join(home, ".atomcode"))


def _stores(project: str, own: str) -> list[tuple[str, str, str]]:
    """Return the folders of plugins, each with its layer and as messages show it; they need not be there."""
    store = os.path.join(own, "plugins")
    stores = [(store, "user", store)]
    for name in (".atomcode/plugins", ".atomcode/plugins/local"):
        folder = os.path.join(project, name)
        if os.path.realpath(folder) != os.path.realpath(store):
            stores.append((folder, "project", name))
    return stores


def place(path: str, project: str, data: Mapping[str, Any]) -> HookFile | None:
    """Return a file as hooks.toml, as named entries, or as the hooks of a plugin of AtomCode's."""
    folder, name = os.path.split(path)
    if name.endswith(".toml"):
        tables = any(isinstance(data.get(key), list) for key in ("hooks", "webhooks", "async_webhooks"))
        return (
            HookFile(path, path, "project", "toml", "toml", folder)
            if tables or name == "hooks.toml"
            else None
        )
    if not name.endswith(".json"):
        return None
    hooks = data.get("hooks")
    named = isinstance(hooks, dict) and any(
        isinstance(value, dict) and ({"event", "command"} & value.keys()) for value in hooks.values()
    )
    if named or name == ".hooks.json":
        return HookFile(path, path, "project", "json", "named", folder)
    from . import plugins

    root = os.path.dirname(folder) if os.path.basename(folder) == "hooks" else folder
    if not os.path.isfile(os.path.join(root, plugins.MANIFESTS[0])):
        return None
    extra = {"plugin": os.path.basename(root), "plugin_root": root, "trusted": ""}
    return HookFile(path, path, "project", "json", "plugin", root, extra)


def read(file: HookFile, source: Source, settings: Mapping[str, Any]) -> Reading:
    """Return what one file declares. A bad entry costs only itself, and leaves a problem."""
    reading = Reading()
    if file.format == "toml":
        from .hooks_toml import TomlFile

        TomlFile(file, source, settings, reading, NAME).read()
    else:
        from .hooks_json import JsonFile

        JsonFile(file, source, settings, reading, NAME).read()
    return reading


def effective(entries: Iterable[HookEntry]) -> list[tuple[HookEntry, str]]:
    """Return the entries with why they do not count after all, or "".

    A project's entry replaces the user's of its name, and switches it off where it is off itself. The same
    hook in two files runs once. A plugin's hooks count when the user trusts them in AtomCode.
    """
    given = list(entries)
    hashes = _hashes(given)
    why = [_untrusted(entry, hashes) for entry in given]
    last = {_name_of(entry): index for index, entry in enumerate(given)}
    for index, entry in enumerate(given):
        other = last[_name_of(entry)]
        if other != index and not why[index]:
            by = given[other]
            why[index] = f"{'replaced by' if by.enabled else 'switched off by'} {by.source}"
        elif not entry.enabled and not why[index]:
            why[index] = f"switched off in {entry.source}"
    counted: dict[str, HookEntry] = {}
    for index in reversed(range(len(given))):  # of two scopes the later counts
        entry = given[index]
        if why[index]:
            continue
        twin = counted.setdefault(repr(_what_of(entry)), entry)
        # Two entries in one file are meant to be two, but for a plugin's.
        if twin is not entry and ("plugin" in entry.extra or twin.file != entry.file):
            why[index] = f"the same hook as {twin.source}"
    ends = [
        index for index, entry in enumerate(given) if not why[index] and entry.extra.get("event") == "Stop"
    ]
    for index in ends if len(ends) > 1 else ():
        given[index] = given[index].but(extra={**given[index].extra, "several": True})
    return list(zip(given, why, strict=True))


def _hashes(entries: Iterable[HookEntry]) -> dict[tuple[str, str], str]:
    """Return AtomCode's hash of each plugin's hooks, by plugin and layer."""
    hooks: dict[tuple[str, str], list[HookEntry]] = {}
    for entry in entries:
        if "plugin" in entry.extra and entry.kind == "command":
            hooks.setdefault((entry.extra["plugin"], entry.layer), []).append(entry)
    from . import plugins

    return {key: plugins.hash_of(found) for key, found in hooks.items()}


def _untrusted(entry: HookEntry, hashes: Mapping[tuple[str, str], str]) -> str:
    """Return why a plugin's entry is not trusted, or an empty string."""
    plugin = entry.extra.get("plugin")
    if plugin is None or entry.extra["trusted"] == hashes.get((plugin, entry.layer)):
        return ""
    before = "its hooks have changed since" if entry.extra["trusted"] else "not yet"
    return f"the plugin {plugin} is not trusted ({before}): run `atomcode plugin trust {plugin.partition('@')[0]}`"


def _name_of(entry: HookEntry) -> tuple[Any, ...]:
    """Return what a project's entry replaces: entries of one kind and name."""
    if "plugin" in entry.extra or entry.extra["merge"] == "concatenate":
        return (entry.file, entry.where)
    return (entry.extra["group"], entry.extra.get("name", entry.name))


def _what_of(entry: HookEntry) -> tuple[Any, ...]:
    """Return what makes two entries the same hook."""
    extra = entry.extra
    about = (extra.get("event"), extra.get("matcher") or "", extra.get("trigger"), extra.get("plugin"))
    return (entry.kind, entry.timings, entry.run, *about)


def make(
    entry: HookEntry, config: Mapping[str, Any], timings: Mapping[str, Timing], *, live: bool = False
) -> Configured:
    """Return an entry's plugin.

    Raises:
        RegistrationError: when it certainly cannot run.
    """
    from .making import make

    return make(entry, config, timings, live=live)


def own_files(entry: HookEntry, project: str) -> list[str]:
    """Return the files that make out what an entry does: trust covers their content."""
    from .making import own_files

    return own_files(entry, project)


def words_of(entry: HookEntry) -> str:
    """Return what an entry runs, for people."""
    from .making import words_of

    return words_of(entry)


def wrongs(entry: HookEntry, project: str) -> list[Wrong]:
    """Return what is wrong with an entry here and now, for ``hookturn check``; runs nothing."""
    from . import checks

    return checks.wrongs(entry, project)
