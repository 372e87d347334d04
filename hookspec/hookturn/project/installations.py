"""Where hookturn has been installed as a bridge: a list in the user's state folder, for ``doctor`` and for the
builtins that are on where a bridge is.
"""

from __future__ import annotations

from ..spec.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = 1


class Installation(Record):
    """One agent that calls us.

    Parameters:
        agent: its name.
        project: the project's real folder, or "" for the user's own configuration.
        http: it calls the resident process directly.
        time: when, RFC 3339.
        folder: where, for what is configured by folder (a role of rolebox), or "".
    """

    agent: str
    project: str = ""
    http: bool = False
    time: str = ""
    folder: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {name: getattr(self, name) for name in self._fields}


def _path() -> str:
    from os.path import join

    from ..paths import state_folder

    return join(state_folder(), "installed.json")


def known() -> list[Installation]:
    """Return what is installed; nothing when the list is missing or damaged (the next install mends it)."""
    from ..quick import loads
    from ..runners.module import read

    try:
        data = loads(read(_path()))
        return [Installation(**item) for item in data["installed"]] if data["schema"] == SCHEMA else []
    except (OSError, ValueError, TypeError, KeyError, RecursionError):
        return []


def covers(project: str) -> bool:
    """Tell whether an agent calls us in a project."""
    from os.path import realpath

    return any(item.project in ("", realpath(project)) for item in known())


def note(agent: str, project: str, *, http: bool = False, gone: bool = False, folder: str = "") -> None:
    """Remember an installation, or that it is gone.

    Parameters:
        agent: the agent.
        project: the project's folder, or "" for the user's own configuration.
        http: it calls the resident process directly.
        gone: it was taken out.
        folder: where, for what is configured by folder.

    Raises:
        OSError: when the list cannot be written.
    """
    import json
    import os
    from time import time

    from ..paths import FileLock, private_folder, state_folder, write_private
    from ..spec.events import rfc3339

    project = os.path.realpath(project) if project else ""
    root = private_folder(state_folder())
    with FileLock(os.path.join(root, "installed.lock"), timeout=30):
        kept = [
            item for item in known() if (item.agent, item.project, item.folder) != (agent, project, folder)
        ]
        if not gone:
            kept.append(Installation(agent, project, http, rfc3339(time()), folder))
        data = {"schema": SCHEMA, "installed": [item.to_json() for item in kept]}
        write_private(_path(), json.dumps(data, indent=1).encode(), base=root)
