"""Tells whether a file that an answer names is in the workspace; nothing outside of it is looked at."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

MAX_ENTRIES = 20_000
"""Entries of a workspace that are looked through; in a larger one, a file may be anywhere."""

_SKIPPED = frozenset(
    [
        ".git",
        ".hg",
        ".svn",
        ".hookturn",
        "node_modules",
        "__pycache__",
        ".venv",
        "venv",
        ".tox",
        ".mypy_cache",
    ]
)


def roots(cwd: str, project: str) -> list[str]:
    """Return the real folders of a workspace, the session's first; none when it is not on this machine.

    Parameters:
        cwd: the session's folder, or "".
        project: the project's folder.
    """
    folder = cwd or project
    if not os.path.isabs(folder) or not os.path.isdir(folder):
        return []
    real = os.path.realpath(folder)
    if os.path.dirname(real) == real or real == os.path.realpath(os.path.expanduser("~")):
        return []  # a whole disk, or everything that the user has, is no workspace
    found = [real]
    whole = os.path.realpath(project)
    if real.startswith(os.path.join(whole, "")):
        found.append(whole)
    return found


def missing(names: Iterable[str], folders: list[str]) -> list[str]:
    """Return those of the names that no file or folder in the workspace has.

    Parameters:
        names: paths with ``/``, absolute, or relative to the workspace or any folder in it.
        folders: what ``roots`` gave; the last one holds the others.
    """
    absent = [name for name in names if not _there(name, folders)]
    if not absent:
        return []
    ends = _ends(folders[-1])
    if ends is None:
        return []
    return [name for name in absent if not _found(name, folders, ends)]


def _there(name: str, folders: list[str]) -> bool:
    """Tell whether a file exists, or lies where we do not look."""
    outside = True
    for folder in folders:
        path = os.path.normpath(os.path.join(folder, name))
        if not path.startswith(os.path.join(folder, "")):
            continue
        # A link on the way may lead out of the workspace.
        above = os.path.realpath(os.path.dirname(path))
        if above != folder and not above.startswith(os.path.join(folder, "")):
            continue
        outside = False
        if os.path.lexists(path):
            return True
    return outside


def _found(name: str, folders: list[str], ends: set[str]) -> bool:
    if os.path.isabs(name):
        folder = next((folder for folder in folders if name.startswith(os.path.join(folder, ""))), "")
        name = os.path.relpath(name, folder) if folder else name
    return os.path.normpath(name).lstrip("./").lower().replace(os.sep, "/") in ends


def _ends(top: str) -> set[str] | None:
    """Return all endings of all paths below a folder in lower case (``c``, ``b/c``, ``a/b/c``); None for too many."""
    ends: set[str] = set()
    count = 0
    waiting = [(top, "")]
    while waiting:
        folder, prefix = waiting.pop()
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    count += 1
                    if count > MAX_ENTRIES:
                        return None
                    path = f"{prefix}{entry.name}".lower()
                    parts = path.split("/")
                    ends.update("/".join(parts[at:]) for at in range(max(0, len(parts) - 8), len(parts)))
                    if entry.is_dir(follow_symlinks=False) and entry.name not in _SKIPPED:
                        waiting.append((entry.path, f"{prefix}{entry.name}/"))
        except OSError:
            return None  # what cannot be looked at may hold it
    return ends
