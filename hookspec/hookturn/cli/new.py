"""``hookturn new``: a plugin project to start from."""

from __future__ import annotations

from .output import CommandError, UsageError, clean, complain, emit, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "new",
        help="make a plugin project to start from, with a test that passes",
        description="Make a plugin project: a hook, its entry point, and a test that passes.",
    )
    parser.add_argument("name", metavar="NAME", help="the plugin's name, such as no-force-push")
    parser.add_argument(
        "--directory", metavar="DIR", help="where to make the project's folder; default: the current one"
    )
    parser.set_defaults(func=run)


def run(args: Namespace) -> int:
    """Make the project."""
    from shlex import quote

    from ..testing.scaffold import ScaffoldError, create, names

    try:
        name, _ = names(args.name)
    except ScaffoldError as error:
        raise UsageError(str(error)) from None
    try:
        files = create(args.name, args.directory or args.project or ".")
    except ScaffoldError as error:
        raise CommandError(str(error)) from None
    if name != args.name:
        complain(f"{args.name} becomes {name}, the normal form of a distribution's name")
    if args.json:
        emit({"schema": 1, "name": name, "files": [str(file) for file in files]})
        return 0
    for file in files:
        say(clean(str(file)))
    folder = files[0].parent
    say(f"next: cd {clean(quote(str(folder)))} && pip install -e '.[test]' && pytest")
    return 0
