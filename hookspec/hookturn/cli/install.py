"""``hookturn install`` and ``hookturn uninstall``: our entries in an agent's own configuration."""

from __future__ import annotations

import sys

from .output import CommandError, UsageError, clean, emit, paint, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping
    from typing import Any

    from ..agents.installing import Change, Endpoint
    from ..project.installations import Installation
    from .output import Style


MOST_LINES = 20
"""Lines of a change that are shown, unless nothing else is asked for: an entry and what stands around it."""

MOST_REST = 10
"""Further lines that are not worth a word."""

_STYLES: Mapping[str, Style] = {"+": "green", "-": "red", "@": "cyan"}


def add_parser(subparsers: Any) -> None:
    """Add the parsers of both commands."""
    from ..agents.bridge import AGENTS

    names = ", ".join(AGENTS)
    for word, help_text, description, func in (
        (
            "install",
            "let an agent call your hooks",
            "Write hookturn's entries into an agent's own configuration, so that all your hooks run in it. "
            "Whatever else stands there is kept. The changes are shown before anything is written, and the "
            "old file is kept beside the new one.",
            run,
        ),
        (
            "uninstall",
            "take hookturn out of an agent's configuration",
            "Take hookturn's entries out of an agent's own configuration; whatever else stands there is kept.",
            run_uninstall,
        ),
    ):
        parser = subparsers.add_parser(word, help=help_text, description=description)
        parser.add_argument("agent", metavar="AGENT", help=f"one of {names}")
        parser.add_argument(
            "folder",
            metavar="ROLE_DIR",
            nargs="?",
            help="for rolebox: the role's folder; default: the project",
        )
        parser.add_argument(
            "--user",
            action="store_true",
            help="the user's own configuration, for all projects; default: the project's",
        )
        if word == "install":
            parser.add_argument(
                "--http",
                action="store_true",
                help="let the agent call the resident process over loopback HTTP where that can be done; what "
                "must not fail open stays a command",
            )
        parser.add_argument("--dry-run", action="store_true", help="show the changes and write nothing")
        parser.add_argument("--yes", action="store_true", help="write without asking")
        parser.set_defaults(func=func)


def run(args: Namespace) -> int:
    """Install."""
    return _change(args, remove=False)


def run_uninstall(args: Namespace) -> int:
    """Uninstall."""
    return _change(args, remove=True)


def _change(args: Namespace, *, remove: bool) -> int:
    import os

    from ..agents.bridge import UnknownAgent
    from ..agents.installing import RUN_TWICE, WHERE_STARTED
    from ..project import installations, installer
    from ..project.layers import project_root

    project = project_root(args.project)
    if args.folder and args.agent != "rolebox":
        raise UsageError(f"{args.agent} takes no folder; --project names another project.")
    folder = os.path.abspath(args.folder) if args.folder else ""
    notes: list[str] = []
    if not (remove or args.user or folder) and os.path.realpath(project) == os.path.realpath(
        os.path.expanduser("~")
    ):
        raise UsageError(
            f"{project} is your home folder, whose configuration counts for all projects. Add --user if that is "
            "what you want, or go to a project, a folder with .git or hookturn.yaml."
        )
    if args.agent in WHERE_STARTED and not (remove or args.user):
        notes.append(
            f"{args.agent} reads these settings only when it is started in {project} itself; --user counts in "
            "sub folders, too."
        )
    if args.agent in RUN_TWICE and not remove:
        notes += _twice(args.agent, project, user=args.user, known=installations.known())
    endpoint, closed = None, frozenset[str]()
    try:
        if not remove:
            closed = installer.closed_events(args.agent, project, os.environ)
        if not remove and args.http:
            endpoint = _endpoint(args)
            notes.append(installer.opens(args.agent, closed))
        changes = installer.plan(
            args.agent,
            project=project,
            user=args.user,
            environ=os.environ,
            remove=remove,
            http=endpoint,
            closed=closed,
            folder=folder,
        )
    except UnknownAgent as error:
        raise UsageError(str(error)) from None
    notes += [note for change in changes for note in change.notes]
    if not args.user:
        notes += _shared(project, changes, remove=remove)
    report: dict[str, Any] = {
        "schema": 1,
        "agent": args.agent,
        "scope": "user" if args.user else "project",
        "project": project,
        "changes": [_json(change) for change in changes],
        "notes": notes,
        "applied": False,
    }
    if not args.json:
        _show(args, changes, notes, remove=remove)
    if changes and not args.dry_run:
        _agree(args, report)
        for change, row in zip(changes, report["changes"], strict=True):
            row["backup"] = installer.write(change)
        report["applied"] = True
    if not args.dry_run:
        where = "" if args.user else project
        installations.note(args.agent, where, http=endpoint is not None, gone=remove, folder=folder)
        if remove:
            from ..agents.memory import forgive, memory_folder

            forgive(memory_folder(), args.agent, where)
    if args.json:
        emit(report)
    elif report["applied"]:
        _done(args, report, remove=remove)
    return 0


def _twice(agent: str, project: str, *, user: bool, known: list[Installation]) -> list[str]:
    """Return a note where the agent would run our entries of the other scope, too."""
    from os.path import realpath

    scopes = {item.project for item in known if item.agent == agent}
    if (realpath(project) if user else "") not in scopes:
        return []
    other, option = ("this project", "") if user else ("the user", " --user")
    return [
        f"hookturn is in {agent} for {other}, too, and {agent} runs both: hooks hear everything twice. "
        f"`hookturn uninstall {agent}{option}` takes the other one out."
    ]


def _shared(project: str, changes: list[Change], *, remove: bool) -> list[str]:
    """Return a note each for our files, which hold paths of this machine, and for copies of old ones, where they would
    get into the project's commits."""
    from ..project.installer import backup_beside

    ours = [] if remove else [change.path for change in changes if change.new is not None]
    copies = [path for path in map(backup_beside, changes) if path]
    loose = _not_ignored(project, [*ours, *copies])
    notes = []
    names = " and ".join(loose[path] for path in ours if path in loose)
    if names:
        notes.append(
            f"git does not ignore {names}, which names this installation by paths of this machine: leave it out of "
            "commits (a line in .git/info/exclude), or use --user."
        )
    names = " and ".join(loose[path] for path in copies if path in loose)
    if names:
        notes.append(
            f"git does not ignore {names}, the copy of what stood there: leave it out of commits, and delete it when "
            "you need it no more."
        )
    return notes


def _not_ignored(project: str, paths: list[str]) -> dict[str, str]:
    """Return those of some files that lie in a repository that does not ignore them, with their names in the project."""
    import os
    from shutil import which
    from subprocess import DEVNULL, TimeoutExpired, run

    git = which("git")
    if git is None:
        return {}
    env = {**os.environ, "GIT_NO_LAZY_FETCH": "1", "GIT_ALLOW_PROTOCOL": "none"}
    told = {}
    for path in paths:
        # Nothing that the repository's own configuration names is to run: no monitor, no remote that lacks a file.
        words = [git, "-C", project, "-c", "core.fsmonitor=false", "check-ignore", "-q", "--", path]
        try:
            done = run(words, env=env, stdin=DEVNULL, stdout=DEVNULL, stderr=DEVNULL, timeout=10, check=False)  # noqa: S603
        except (OSError, TimeoutExpired):
            return {}
        if done.returncode == 1:  # in a repository, and not ignored
            told[path] = os.path.relpath(os.path.realpath(path), os.path.realpath(project))
    return told


def _endpoint(args: Namespace) -> Endpoint:
    """Return where the resident process listens; port and token are made the first time."""
    from ..agents.installing import Endpoint
    from ..serve.door import ensure

    door = ensure()
    return Endpoint(url=f"{door.url}/hooks/{args.agent}", token=door.token)


def _json(change: Change) -> dict[str, Any]:
    from ..project.installer import difference, summary

    action = "create" if change.old is None else "delete" if change.new is None else "change"
    return {
        "path": change.path,
        "action": action,
        "summary": summary(change),
        "diff": difference(change),
        "backup": "",
    }


def _show(args: Namespace, changes: list[Change], notes: list[str], *, remove: bool) -> None:
    from ..project.installer import difference, summary

    if not changes:
        where = "is not installed" if remove else "is installed already, and nothing has to change"
        say(f"hookturn {where} in {clean(args.agent)} ({'user' if args.user else 'project'}).")
    for change in changes:
        say(paint(clean(summary(change)), "bold"))
        lines = difference(change, 3 if args.dry_run else 1).splitlines()
        more = len(lines) - MOST_LINES
        if args.dry_run or more <= MOST_REST:
            more = 0
        for line in lines[: len(lines) - more]:
            say(paint(clean(line), _STYLES.get(line[:1], "")))
        if more:
            say(f"... {more} more lines; --dry-run shows all")
    for note in notes:
        say(f"{paint('note', 'yellow')}: {clean(note)}")


def _agree(args: Namespace, report: dict[str, Any]) -> None:
    """Ask whether to write.

    Raises:
        UsageError: where nobody can answer.
        CommandError: when the answer is no.
    """
    if args.yes:
        return
    if args.json or sys.stdin is None or not sys.stdin.isatty():
        raise UsageError(
            "nobody can be asked here. Look at the changes (--dry-run), then run the command with --yes.",
            report=report,
        )
    if sys.stdout is not None:
        sys.stdout.flush()
    print("Write this? [y/N] ", end="", file=sys.stderr, flush=True)
    if sys.stdin.readline().strip().lower() not in ("y", "yes"):
        raise CommandError("nothing was written", report=report)


def _done(args: Namespace, report: dict[str, Any], *, remove: bool) -> None:
    for row in report["changes"]:
        kept = f" (the old file: {clean(row['backup'])})" if row["backup"] else ""
        verb = {"create": "wrote", "change": "changed", "delete": "deleted"}[row["action"]]
        say(f"{paint(verb, 'green')} {clean(row['path'])}{kept}")
    if not remove:
        say("`hookturn doctor` tells whether the agent really calls, `hookturn hooks` what it will run.")
    else:
        say(f"hookturn is out of {clean(args.agent)}.")
