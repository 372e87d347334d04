"""``hookturn plugins``: what is installed and configured, and what became of it."""

from __future__ import annotations

from .output import clean, count, emit, say, table
from .project import add_options, dry_project, note_problems

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "plugins",
        help="list plugins and configured hooks, with the reason for each that is not loaded",
        description="List builtins, installed plugins and configured hooks: whether they are loaded, else why not.",
    )
    add_options(parser)
    parser.set_defaults(func=run)


def run(args: Namespace) -> int:
    """List the plugins."""
    from ..project.survey import CALLS_US

    with dry_project(args) as assembled:
        rows = list(assembled.plugins)
    note_problems(assembled)
    if args.json:
        emit({"schema": 1, "project": assembled.root, "plugins": [row.to_json() for row in rows]})
        return 0
    ours = [row for row in rows if row.reason == CALLS_US]
    table(
        ("name", "kind", "state", "distribution", "source", "hooks", "reason"),
        [
            (row.name, row.kind, row.state, row.distribution, row.source, ", ".join(row.hooks), row.reason)
            for row in rows
            if row.reason != CALLS_US
        ],
        styles={"loaded": "green", "failed": "red", "untrusted": "yellow", "blocked": "yellow"},
        indent="",
    )
    if ours:
        files = ", ".join(dict.fromkeys(row.source.rpartition(":")[0] or row.source for row in ours))
        call = "entry that calls" if len(ours) == 1 else "entries that call"
        say(f"{len(ours):,} {call} hookturn itself, in {clean(files)}: not run from here")
    loaded = sum(row.state == "loaded" for row in rows)
    say(f"{count(loaded, 'plugin')} of {len(rows) - len(ours):,} loaded in {assembled.root}")
    return 0
