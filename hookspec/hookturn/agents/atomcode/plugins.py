"""AtomCode's installed plugins: where their hooks stand, and whether the user trusts them. Runs nothing.

Source: AtomCode's ``installed_plugins.json`` (version 1) and ``hook_trust.json``.
"""

from __future__ import annotations

import os

from ...paths import UnsafePathError, inside
from ...quick import loads
from ..dialect import HookFile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any

    from ...runners.entry import HookEntry

MANIFESTS = (".atomcode-plugin/plugin.json", ".claude-plugin/plugin.json", "plugin.json")
LIST = "installed_plugins.json"
"""Name of the file that lists a folder's plugins."""

TRUST = "hook_trust.json"
"""Name of the file, beside the user's plugins, that tells which plugins AtomCode's user trusts."""

FILES = ("hooks/hooks.json", "hooks.json")
"""Where a plugin keeps hooks that its manifest does not name; the first that is there counts."""

_MOST = 1_000_000  # bytes of a manifest, a list of plugins or a trust store


def read_object(path: str) -> dict[str, Any]:
    """Return a JSON file's object, or an empty one when there is none that can be read."""
    from ...runners.module import read

    try:
        data = loads(read(path, _MOST))
    except (OSError, ValueError, RecursionError):
        return {}  # not there, or broken: nothing is installed, and nothing is trusted
    return data if isinstance(data, dict) else {}


def trust_hash(hooks: Iterable[tuple[str, str, str]]) -> str:
    """Return AtomCode's hash of a plugin's hooks.

    Parameters:
        hooks: event in PascalCase, matcher or an empty text, command.
    """
    from hashlib import sha256

    digest = sha256()
    for triple in sorted(tuple(field.encode("utf-8", "surrogatepass") for field in hook) for hook in hooks):
        for field in triple:
            digest.update(len(field).to_bytes(8, "little"))
            digest.update(field)
    return digest.hexdigest()


def hash_of(entries: Iterable[HookEntry]) -> str:
    """Return AtomCode's hash of a plugin's hooks, each counted once."""
    return trust_hash({triple_of(entry) for entry in entries})


def triple_of(entry: HookEntry) -> tuple[str, str, str]:
    """Return what makes two hooks of a plugin the same."""
    return entry.extra["event"], entry.extra["matcher"] or "", entry.run or ""


def files(root: str, layer: str, label: str, trust: dict[str, Any]) -> list[HookFile]:
    """Return the hook files of the plugins that are installed below a folder.

    Parameters:
        root: the folder ``plugins``.
        layer: user or project.
        label: how messages show the folder.
        trust: plugin -> trusted hash.
    """
    found: list[HookFile] = []
    for plugin, base in _installed(root):
        trusted = trust.get(plugin)
        extra = {
            "plugin": plugin,
            "plugin_root": base,
            "trusted": trusted if isinstance(trusted, str) else "",
        }
        for path in _paths(base):
            shown = os.path.join(label, os.path.relpath(path, os.path.realpath(root)))
            found.append(HookFile(path, shown, layer, "json", "plugin", base, extra))
    return found


def watched(root: str) -> list[str]:
    """Return the files whose change may bring other hooks of plugins, or trust in them.

    Parameters:
        root: the folder ``plugins``.
    """
    names = (*MANIFESTS, *FILES)
    return [
        os.path.join(root, LIST),
        os.path.join(root, TRUST),
        *(os.path.join(base, name) for _, base in _installed(root) for name in names),
    ]


def _installed(root: str) -> Iterator[tuple[str, str]]:
    """Yield the installed plugins, in the order of their names, each with its folder."""
    listed = read_object(os.path.join(root, LIST)).get("plugins")
    for plugin, about in sorted((listed if isinstance(listed, dict) else {}).items()):
        folder = about.get("plugin_dir") if isinstance(about, dict) else None
        if not isinstance(folder, str) or not folder:
            continue
        try:
            yield plugin, str(inside(root, folder))
        except (UnsafePathError, ValueError):  # out of the plugins' folder: not one that AtomCode installed
            continue


def _paths(base: str) -> list[str]:
    """Return the files that hold one plugin's hooks."""
    manifest = next((path for name in MANIFESTS if os.path.isfile(path := os.path.join(base, name))), "")
    declared = read_object(manifest).get("hooks") if manifest else None
    if isinstance(declared, str):
        try:
            return [str(inside(base, declared))]
        except (UnsafePathError, ValueError):
            return []
    paths = [manifest] if isinstance(declared, dict) else []
    return paths + [path for name in FILES if os.path.isfile(path := os.path.join(base, name))][:1]
