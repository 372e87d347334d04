"""``hookturn undo``: takes the last auto-commit back."""

from __future__ import annotations

import os

from hookturn import HookturnError

from ..console import emit, printable, project_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command to ``hookturn``."""
    parser = subparsers.add_parser("undo", help="take the last auto-commit back")
    parser.add_argument("--session", default="", metavar="ID", help="the last one of this session")
    parser.add_argument(
        "--discard", action="store_true", help="put the files back as they were before it, too"
    )
    parser.add_argument("--dry-run", action="store_true", help="only tell what would be done")
    parser.set_defaults(func=run)


def run(args: Any) -> int:
    """Undo; 0 when it was (or could be) done, 1 with the reason when it cannot."""
    from .journal import NAME
    from .undo import undo

    try:
        project = os.path.dirname(os.path.dirname(project_file(args, "auto-commit", NAME)))
    except HookturnError as error:
        raise HookturnError(f"nothing was undone: no auto-commit was made here ({error})") from None
    try:
        done = undo(project, os.environ, session=args.session, discard=args.discard, dry_run=args.dry_run)
    except OSError as error:
        raise HookturnError(f"nothing was undone: {error.strerror or error}: {error.filename}") from error
    if args.json:
        emit({"schema": 1, **vars(done)})
        return 0
    ref = printable(done.ref.removeprefix("refs/heads/"), 120)
    said = "would be undone" if done.dry_run else "was undone"
    where = f"{ref} is at {done.parent[:10]}" if done.parent else f"{ref} has no commit"
    print(f"The auto-commit {done.commit[:10]} {said}: {where}.")
    if done.discarded:
        print("Its files are put back as they were before it:")
    else:
        print("Its files keep their content, which is uncommitted work again:")
    for path in done.paths:
        print(f"  {printable(path)}{'  (stays as you staged it)' if path in done.kept_staged else ''}")
    if done.discarded:
        print(f"`git cherry-pick {done.commit[:10]}` brings them again.")
    return 0
