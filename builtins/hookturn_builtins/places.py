"""Where builtins keep what they write, and the key that their redacted texts share. Imports nothing heavy."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hookturn import Context
    from hookturn.events import Event

    Place = tuple[str, str]


TRIED = "hookturn-fire"
"""Host of events that `hookturn fire` sends without a session: they belong to no session's figures or report."""


def place(path: str, event: Event, ctx: Context) -> Place:
    """Return a file and the folder that is trusted as it is: the project's, in a dry run the run's own.

    Parameters:
        path: the file as the settings name it, relative to the project's folder.
        event: what happened.
        ctx: the hook's.
    """
    if event.dry_run:
        base = ctx.output_dir
        return os.path.abspath(os.path.join(base, os.path.basename(path))), base
    base = ctx.project_dir
    return os.path.abspath(os.path.join(base, path)), base


def session_name(session_id: str) -> str:
    """Return the id of a session or an agent as it is stored, also in names of files: one with a secret is hashed.

    Parameters:
        session_id: any text.
    """
    from hookturn.redact import find

    if not find(session_id):
        return session_id
    from hashlib import sha256

    return f"secret-{sha256(session_id.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def state_folder(project: str) -> str:
    """Return the project's folder in the user's state folder; it may not exist yet."""
    from hookturn import paths

    return os.path.join(paths.state_folder(), "projects", paths.project_hash(project))


def project_key(project: str, *, dry_run: bool) -> bytes:
    """Return the key for redacting: the project's, so that equal secrets have equal marks.

    Parameters:
        project: the project's folder.
        dry_run: nothing may be written; the key is then a new one.
    """
    from hookturn.redact import workspace_key

    if not dry_run:
        try:
            return workspace_key(state_folder(project))
        except OSError:
            # Without a state folder nothing can be compared between processes; records matter more.
            return os.urandom(32)
    return os.urandom(32)
