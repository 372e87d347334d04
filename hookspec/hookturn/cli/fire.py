"""``hookturn fire``: one event through the project's hooks and permission rules, for real."""

from __future__ import annotations

from .outcomes import outcome_json, show_outcome
from .output import emit, hooks_at_work
from .project import add_options, note_problems, open_project
from .reading import add_event_options, make_event, read_fields, timing_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any


HOST = "hookturn-fire"
"""Host of an event that names no session: it was tried by hand, and is left out of what sessions add up to."""


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "fire",
        help="send one event through the hooks, for real",
        description="Send one event through the project's hooks and permission rules, for real, and print "
        "what they decided.",
    )
    add_event_options(parser)
    add_options(parser)
    parser.set_defaults(func=run)


def run(args: Namespace) -> int:
    """Fire the event and print its outcome."""
    fields, source = read_fields(args.event)
    with hooks_at_work():
        assembled = open_project(args)
        with assembled.engine as engine:
            spec = timing_of(engine, args.timing)
            if not fields.get("session_id"):
                fields.setdefault("host", HOST)
            event = make_event(spec, fields, source, args.agent)
            outcome = engine.decide(event, measure=True)
            pending = engine.take_injected(event.session_id)
    note_problems(assembled)
    if args.json:
        emit(outcome_json(outcome, pending))
    else:
        show_outcome(outcome, pending)
    return 0
