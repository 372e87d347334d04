"""Where builtins keep what they write, and the key that their redacted texts share. Imports nothing heavy."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from hookturn import Context
    from hookturn.events import Event

    Place = tuple[str, str]


BUSY_SECONDS = 2.0
"""How long other processes are waited for; the agent waits as well."""

OWN = ".hookturn"
"""The project's folder for what hooks write."""

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
    head, _, rest = path.replace(os.sep, "/").partition("/")
    if head == OWN and rest and not in_project(ctx):
        return os.path.abspath(os.path.join(ctx.output_dir, rest)), os.path.dirname(ctx.output_dir)
    return os.path.abspath(os.path.join(base, path)), base


def in_project(ctx: Context) -> bool:
    """Tell whether builtins write to the project's ``.hookturn``; where there is no project, it is another folder."""
    return os.path.abspath(ctx.output_dir) == os.path.abspath(os.path.join(ctx.project_dir, OWN))


def make_folder(path: str, base: str) -> str | None:
    """Make the folder of a file that is about to be opened, and check the way there.

    Parameters:
        path: the file.
        base: a folder that is trusted as it is; nothing below it may be a symbolic link.

    Returns:
        the base by which the file is to be opened: None where it lies outside of it.

    Raises:
        OSError: when it cannot be made, or leads where it must not.
    """
    from hookturn.paths import hookturn_folder, private_folder, refuse_links

    folder = os.path.dirname(path)
    if folder == os.path.join(os.path.abspath(base), OWN):
        hookturn_folder(base)
    elif not os.path.isdir(folder):
        private_folder(folder, base=base if os.path.isdir(base) else None)
    within = None if os.path.relpath(path, base).startswith(os.pardir) else base
    refuse_links(path, base=within)
    return within


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


def project_key(project: str, *, dry_run: bool) -> bytes:
    """Return the key for redacting: the project's, so that equal secrets have equal marks.

    Parameters:
        project: the project's folder.
        dry_run: nothing may be written; the key is then a new one.
    """
    from hookturn.paths import project_state
    from hookturn.redact import workspace_key

    if not dry_run:
        try:
            return workspace_key(project_state(project))
        except OSError:
            # Without a state folder nothing can be compared between processes; records matter more.
            return os.urandom(32)
    return os.urandom(32)
