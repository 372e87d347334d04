"""``hookturn hooks``: the hooks in force, timing by timing, in the order in which they are called."""

from __future__ import annotations

from .output import emit, paint, say, table
from .project import add_options, dry_project, note_problems
from .reading import timing_of
from .steps import filters_text, notes_text, step_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "hooks",
        help="list the hooks in force, in order",
        description="List the hooks in force, timing by timing, in the order in which they are called.",
    )
    parser.add_argument("timing", metavar="TIMING", nargs="?", help="only this timing")
    parser.add_argument("--all", action="store_true", help="name timings without hooks, too")
    add_options(parser)
    parser.set_defaults(func=run)


def run(args: Namespace) -> int:
    """List the hooks."""
    with dry_project(args) as assembled:
        engine = assembled.engine
        names = [timing_of(engine, args.timing).name] if args.timing else list(engine.registry.timings)
        plans = {name: engine.plan(name) for name in names}
    note_problems(assembled)
    steps = {name: plan.steps if plan is not None else () for name, plan in plans.items()}
    if not (args.all or args.timing):
        steps = {name: found for name, found in steps.items() if found}
    if args.json:
        emit(
            {
                "schema": 1,
                "project": assembled.root,
                "timings": {name: [step_json(step) for step in found] for name, found in steps.items()},
            }
        )
        return 0
    if not steps:
        say("No hook is in force here. `hookturn plugins` tells what is installed and configured.")
    for name, found in steps.items():
        say(paint(name, "bold"))
        if not found:
            say("  no hook")
            continue
        table(
            ("tier", "priority", "hook", "source", "filters", "notes"),
            [
                (
                    step.tier_name,
                    str(step.priority),
                    step.name,
                    step.source,
                    filters_text(step),
                    notes_text(step),
                )
                for step in found
            ],
            right=("priority",),
        )
    return 0
