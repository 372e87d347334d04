"""Puts hookturn into agents' own configurations, and takes it out: plans changes, shows them, writes them safely."""

from __future__ import annotations

from ..agents.bridge import AGENTS, UnknownAgent
from ..agents.installing import BACKUP, CannotInstall, Change, Endpoint, Request, backup_place, called_at
from ..spec.errors import did_you_mean

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..agents.installing import AgentInstall

MAX_BYTES = 5_000_000
"""A larger configuration is refused: no agent's is."""

MOST_EVENTS = 6
"""Names of events that a summary lists."""


def installer_of(agent: str) -> AgentInstall:
    """Return an agent's install module.

    Raises:
        UnknownAgent: when there is none.
    """
    from importlib import import_module

    folder = AGENTS.get(agent)
    if folder is None:
        near = did_you_mean(agent, AGENTS)
        raise UnknownAgent(f"unknown agent {agent!r}{near}. One of {', '.join(AGENTS)}.")
    module: Any = import_module(f"hookturn.agents.{folder}.install")
    return module  # type: ignore[no-any-return]


def plan(
    agent: str,
    *,
    project: str,
    user: bool,
    environ: Mapping[str, str],
    remove: bool = False,
    http: Endpoint | None = None,
    closed: Iterable[str] = (),
    folder: str = "",
) -> list[Change]:
    """Return what would change in an agent's configuration. Changes nothing.

    Parameters:
        agent: the agent.
        project: the project's folder.
        user: the user's own configuration, not the project's.
        environ: the environment, which may say where an agent keeps its files.
        remove: take our entries out.
        http: let the agent call the resident process directly, where it can.
        closed: events that stay commands even so.
        folder: the folder to install in, for agents that are configured by folder.

    Raises:
        UnknownAgent, CannotInstall: when it cannot be done.
    """

    def read(path: str) -> bytes | None:
        return current(path, "" if user else folder or project)

    request = Request(
        project=project,
        user=user,
        environ=environ,
        command=lambda seconds: command_line(agent, seconds),
        read=read,
        remove=remove,
        http=http,
        closed=closed,
        folder=folder,
    )
    return installer_of(agent).changes(request)


KEPT_COMMANDS = ("tool", "permission", "session_start")
"""What an event is for us (``Row.does``) that must not fail open while any hook fails closed."""


def closed_events(agent: str, project: str, environ: Mapping[str, str]) -> frozenset[str]:
    """Return the agent's events that must not fail open in a project: none while no hook there fails closed.

    The builtin guard that protects hookturn's own files does not count: it is in every project.

    Parameters:
        agent: the agent.
        project: the project's folder.
        environ: the agent's environment.

    Raises:
        UnknownAgent: when there is no such agent.
    """
    from ..agents.bridge import hooks_of
    from ..agents.memory import strict
    from .assemble import assemble

    rows = hooks_of(agent).EVENTS
    with assemble(project, agent=agent, environ=environ, dry_run=True, log=False).engine as engine:
        # What watches outcomes is asked about every event; only an audit that must not be missed counts.
        watchers = engine.plan("on_outcome")
        must = any(
            getattr(step.owner.config, "on_failure", "") == "deny"
            for step in (watchers.steps if watchers is not None else ())
        )
        deciding = [name for name in engine.registry.timings if name != "on_outcome"]
        if not must and not strict(engine, deciding):
            return frozenset()
    return frozenset(event for event, row in rows.items() if row.does in KEPT_COMMANDS)


def opens(agent: str, closed: Iterable[str]) -> str:
    """Return what fails open when an agent calls the resident process over HTTP, for people."""
    what = f"every event but {', '.join(sorted(closed))}" if closed else "every event"
    return (
        f"Over HTTP, {what} fails open: when the resident process cannot be reached, {agent} goes on without "
        "its hooks. Run the command again when you add a guard: what must not fail open then becomes a command."
    )


def command_line(agent: str, seconds: int) -> str:
    """Return the shell line with which an agent calls us: this very installation, wherever it lies."""
    import shlex
    import sys
    from os.path import dirname, join

    client = join(dirname(dirname(__file__)), "serve", "client.py")
    return shlex.join([sys.executable, "-I", "-S", client, "bridge", agent, "--timeout", str(seconds)])


def current(path: str, project: str = "") -> bytes | None:
    """Return a file's bytes, or None when it is not there.

    Parameters:
        path: the file; a symbolic link is followed.
        project: a folder that links may not lead out of, or "".

    Raises:
        CannotInstall: when it is no regular file, cannot be read, or lies elsewhere.
    """
    import os

    from ..runners.module import read

    real = os.path.realpath(path)
    root = os.path.realpath(project) if project else ""
    if root and os.path.commonpath([real, root]) != root:
        raise CannotInstall(f"{path} is a link out of the project, to {real}. Change that file yourself.")
    try:
        return read(path, MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(path):
            raise CannotInstall(f"{path} is a symbolic link to nothing. Mend or delete it.") from None
        return None
    except (OSError, ValueError) as error:
        words = getattr(error, "strerror", None) or str(error)
        raise CannotInstall(f"{path} cannot be read: {words}") from None


def summary(change: Change) -> str:
    """Return what a change does, in one line for people."""
    before, after = called_at(change.old), called_at(change.new)
    if change.new is None:
        what = f"entries at {_events(before)}" if before else "own"
        return f"{change.label} goes, for it holds nothing but hookturn's {what}"
    new, gone = [name for name in after if name not in before], [name for name in before if name not in after]
    words = []
    if new:
        words.append(f"hookturn is called at {_events(new)}")
    if gone:
        words.append(f"hookturn is not called any more at {_events(gone)}")
    if after and not (new or gone):
        words.append(f"how hookturn is called at {_events(after)}")
    if change.path.endswith((".js", ".mjs")):
        words.append("a module of hookturn's own")
    return f"{change.label} {'is new' if change.old is None else 'changes'}{': ' if words else ''}{'; '.join(words)}"


def _events(names: list[str]) -> str:
    if len(names) <= MOST_EVENTS:
        return ", ".join(names)
    return f"{len(names)} events ({', '.join(names[:MOST_EVENTS])}, ...)"


def difference(change: Change, context: int = 3) -> str:
    """Return a change as a unified diff, without secrets.

    Parameters:
        change: the change.
        context: lines around each difference that stay as they are.
    """
    from difflib import unified_diff

    from ..redact import redact

    def lines(content: bytes | None) -> list[str]:
        text = (content or b"").decode("utf-8", "replace")
        return [line + "\n" for line in redact(text).splitlines()]

    before = "/dev/null" if change.old is None else change.label
    after = "/dev/null" if change.new is None else change.label
    return "".join(unified_diff(lines(change.old), lines(change.new), before, after, n=context))


def backup_beside(change: Change) -> str:
    """Return where the old form of a file is kept beside it, or "" where it is not: there is none, it holds a secret
    that would end in the repository, or something else stands there.
    """
    return "" if change.old is None or change.private else backup_place(change.path)


def _holds(path: str, content: bytes | None) -> bool:
    if content is None:
        return False
    try:
        with open(path, "rb") as file:
            return file.read(len(content) + 1) == content
    except OSError:  # as a rule, it is not there
        return False


def write(change: Change) -> str:
    """Make one change: the old form is kept beside it (or in the user's state folder, see ``backup_beside``), the new
    one is put in its place at once.

    Parameters:
        change: from ``plan``.

    Returns:
        the backup's path, or "" when there was nothing to keep: no old form, or one that becomes again what its backup
        holds, which a run that is killed must find there next time.

    Raises:
        CannotInstall: when the file is no longer what the plan was made for, or cannot be written.
    """
    import os

    from ..paths import FileLock, private_dir, safe_component, state_root, write_private
    from ..platform import user_id

    real = os.path.realpath(change.path)
    folder = os.path.dirname(real)
    try:
        locks = private_dir(state_root())
        with FileLock(os.path.join(locks, "install.lock"), timeout=30):
            if current(change.path) != change.old:
                raise CannotInstall(
                    f"{change.label} was changed by somebody else meanwhile. Run the command again."
                )
            backup = ""
            mode = 0o600 if change.private else 0o644
            if change.old is not None:
                owner = os.stat(real).st_uid
                if user_id() not in (None, owner):
                    raise CannotInstall(
                        f"{change.label} belongs to another user (number {owner}), who could no longer change it. "
                        "Run the command as that user."
                    )
                mode = os.stat(real).st_mode & (0o700 if change.private else 0o777)
                backup = backup_beside(change)
                kept_in = folder
                if not backup:
                    kept_in = os.fspath(private_dir(locks / "backups", base=locks))
                    backup = os.path.join(kept_in, safe_component(real) + BACKUP)
                if _holds(backup, change.new):
                    backup = ""
                else:
                    write_private(backup, change.old, base=kept_in, durable=True)
            if change.new is None:
                os.unlink(real)
                return backup
            os.makedirs(folder, exist_ok=True)
            write_private(real, change.new, base=folder, durable=True)
            os.chmod(real, mode)
            return backup
    except OSError as error:
        words = error.strerror or type(error).__name__
        raise CannotInstall(
            f"{change.label} cannot be written: {words}. Nothing of it was changed."
        ) from None
