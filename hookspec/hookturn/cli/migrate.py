"""``hookturn migrate``: a hook file in another format, with what could not be carried over."""

from __future__ import annotations

import os

from .output import CommandError, UsageError, clean, complain, emit, os_error, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from ..project.migrate import Moved

FORMATS = ("hooks.toml", ".hooks.json", "hookturn.yaml")


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    names = ", ".join(FORMATS)
    parser = subparsers.add_parser(
        "migrate",
        help="turn a hook file into another format",
        description=f"Turn a hook file ({names}) into another of these formats, and tell what cannot be carried over. "
        "The old file stays.",
    )
    parser.add_argument("source", metavar="FROM", help="the old file; the end of its name tells its format")
    parser.add_argument("target", metavar="TO", help="the new file; the end of its name tells its format")
    parser.add_argument("--dry-run", action="store_true", help="print the new file and write nothing")
    parser.add_argument("-o", "--output", metavar="FILE", help="write to FILE instead of TO; - prints it")
    parser.add_argument("--force", action="store_true", help="overwrite files that are there")
    parser.set_defaults(func=run)


def run(args: Namespace) -> int:
    """Migrate."""
    from ..project import migrate
    from ..project.document import MAX_BYTES
    from ..runners.module import read

    for path in (args.source, args.target):
        if not migrate.format_of(path):
            raise UsageError(f"{path}: the name ends in none of {', '.join(migrate.FORMATS)}")
    try:
        content = read(args.source, MAX_BYTES)
    except (OSError, ValueError) as error:
        cause = os_error(error) if isinstance(error, OSError) else str(error)
        raise CommandError(f"{args.source} cannot be read: {cause}") from None
    target = args.target if args.output in (None, "-") else args.output
    if migrate.format_of(target) != migrate.format_of(args.target):
        raise UsageError(f"{target} and {args.target} have different formats")
    moved = migrate.migrate(content, args.source, target)
    dry = args.dry_run or args.output == "-"
    if not dry:
        _write(moved, force=args.force)
    lost = bool(moved.problems) or any(note.lost for note in moved.notes)
    if args.json:
        emit(
            {
                "schema": 1,
                "from": args.source,
                "to": target,
                "entries": moved.entries,
                "files": [{"path": path, "text": text} for path, text in moved.files.items()],
                "notes": [note.to_json() for note in moved.notes],
                "problems": [problem.to_json() for problem in moved.problems],
                "written": not dry,
            }
        )
    else:
        _show(args.source, moved, dry=dry)
    return 1 if lost else 0


def _write(moved: Moved, *, force: bool) -> None:
    """Write the new files, or none of them when one is there.

    Raises:
        CommandError: when one is there, or cannot be written.
    """
    there = [path for path in moved.files if os.path.lexists(path)]
    if there and not force:
        raise CommandError(f"{there[0]} is there; nothing was written. --force overwrites it.")
    for path, text in moved.files.items():
        try:
            os.makedirs(os.path.dirname(os.path.abspath(path)), exist_ok=True)
            _replace(path, text)
        except OSError as error:
            raise CommandError(f"{path} cannot be written: {os_error(error)}") from None


def _replace(path: str, text: str) -> None:
    from tempfile import mkstemp

    from ..paths import write_all

    # A new file under the old name: a link there is replaced, not followed.
    fd, new = mkstemp(prefix=".hookturn-", dir=os.path.dirname(os.path.abspath(path)))
    try:
        try:
            write_all(fd, text.encode("utf-8"))
            os.fchmod(fd, 0o755 if path.endswith(".sh") else 0o644)
        finally:
            os.close(fd)
        os.replace(new, path)
    except BaseException:
        os.unlink(new)
        raise


def _show(source: str, moved: Moved, *, dry: bool) -> None:
    for path, text in moved.files.items():
        if not dry:
            say(f"wrote {clean(path)}")
            continue
        if len(moved.files) > 1:
            say(f"# {clean(path)}")
        for line in text.rstrip("\n").split("\n"):
            say(clean(line))
    for problem in moved.problems:
        complain(str(problem))
    for note in moved.notes:
        word = "left behind" if note.lost else "changed"
        complain(clean(f"{source}:{note.line}: {note.name}: {word}: {note.text}"))
