"""rolebox's lock file, which knows the digest of every installed role. Reads only."""

from __future__ import annotations

from .problems import Problem

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

    from ..agents.dialect import HookFile

_COLUMNS = ("role", "registry", "version", "installedAt", "integrity")


def lock_rows(environ: Mapping[str, str]) -> dict[str, dict[str, str]]:
    """Return the rows of the lock file by role; an unreadable one has none.

    Parameters:
        environ: says where rolebox keeps its files.
    """
    from os.path import join

    from ..agents.rolebox import roles
    from ..runners.module import read
    from .yaml_document import read_yaml

    path = join(roles.config_folder(environ), "rolebox.lock")
    try:
        document = read_yaml(read(path, 1_000_000), path)
    except (OSError, ValueError):
        return {}
    rows = document.data.get("roles")
    return {
        row["role"]: {key: row[key] for key in _COLUMNS}
        for row in (rows if isinstance(rows, list) else [])
        if isinstance(row, dict) and all(isinstance(row.get(key), str) for key in _COLUMNS)
    }


def changed(place: HookFile, environ: Mapping[str, str]) -> Problem | None:
    """Return a problem when an installed role is not as rolebox installed it.

    Parameters:
        place: its role.yaml; one that lies outside of rolebox's own folder is nobody's installed role.
        environ: says where rolebox keeps its files.
    """
    import os

    from ..agents.rolebox import roles
    from ..agents.rolebox.integrity import integrity

    folder = os.path.realpath(os.path.dirname(place.path))
    installed = os.path.realpath(roles.data_folder(environ))
    if not folder.startswith(os.path.join(installed, "")):
        return None
    row = lock_rows(environ).get(os.path.basename(folder).partition("@")[0])
    if row is None:
        return None
    actual = integrity(folder)
    if actual == row["integrity"]:
        return None
    cause = (
        f"the role is not as it was installed: its digest is {actual}, the lock file has {row['integrity']}"
    )
    return Problem(place.label, 0, 0, "", cause, "Look at what changed, or install it again.")
