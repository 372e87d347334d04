"""``hookturn explain``: the order of a timing's hooks and, for an event, what each would say, without effect."""

from __future__ import annotations

from .outcomes import outcome_json, said, show_result
from .output import DECISION_STYLES, UsageError, emit, paint, pairs, say, short, table
from .project import add_live, add_options, dry_project, note_problems
from .reading import add_event_options, make_event, read_fields, timing_of
from .steps import filters_text, notes_text, step_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

    from ..agents.telling import Told
    from ..engine.engine import Engine
    from ..engine.outcome import HookRecord, Outcome
    from ..engine.plan import Step
    from ..project.assemble import Assembled
    from ..spec.events import Event


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "explain",
        help="show the order of a timing's hooks, and what they would say of an event",
        description="Show the hooks of a timing in their order. With --event, call them with a dry event and "
        "show which match, what each says, the merged result and the time that each takes.",
    )
    add_event_options(parser)
    add_live(parser)
    add_options(parser)
    parser.set_defaults(func=run)


def run(args: Namespace) -> int:
    """Explain a timing."""
    fields, source = read_fields(args.event)
    event = outcome = rule = told = None
    pending = ""
    program, agent = _who(args.agent)
    with dry_project(args, live=args.live) as assembled:
        engine = assembled.engine
        spec = timing_of(engine, args.timing)
        plan = engine.plan(spec.name)
        steps = plan.steps if plan is not None else ()
        if args.event is not None:
            event = make_event(spec, fields, source, agent)
            outcome = engine.decide(event, measure=True)
            _mark_dry(outcome, assembled)
            rule = _rule(engine, outcome.event)
            pending = engine.take_injected(event.session_id)
            told = _told(program, outcome, engine)
    note_problems(assembled)
    rows = [(step, _record(step, outcome, agent)) for step in steps]
    if args.json:
        emit(
            {
                "schema": 1,
                "timing": spec.name,
                "hooks": [_row_json(step, record, outcome is not None) for step, record in rows],
                "rule": rule,
                "outcome": outcome_json(outcome, pending) if outcome is not None else None,
                "told": [item.to_json() for item in told] if told is not None else None,
            }
        )
        return 0
    say(f"{paint(spec.name, 'bold')}: {_count_text(len(steps))}")
    _table(rows, outcome is not None)
    if rule is not None:
        say(f"  rule: {rule['decision']}, {short(rule['reason'])}")
    if outcome is not None:
        say()
        show_result(outcome, pending)
    if told is not None:
        _show_told(program, told)
    return 0


def _who(name: str | None) -> tuple[str, str | None]:
    """Return the agent program that ``--agent`` names, or "", and the agent's name in the event, or None."""
    from ..agents.bridge import AGENTS

    return (name, None) if name in AGENTS else ("", name)


def _told(program: str, outcome: Outcome, engine: Engine) -> list[Told] | None:
    if not program:
        return None
    from ..agents.bridge import UnknownAgent
    from ..agents.telling import tell

    try:
        return tell(program, outcome, engine)
    except UnknownAgent as error:
        raise UsageError(f"--agent {program}: {error}") from None


def _show_told(program: str, told: list[Told]) -> None:
    """Print what the agent program would be told."""
    say()
    if not told:
        say(f"{paint(program, 'bold')} is told nothing of it")
    for item in told:
        answer = item.answer
        output = answer.stdout.decode("utf-8", "replace").strip()
        say(
            f"{paint(program, 'bold')} is told at {item.event}: {'' if output or answer.stderr else 'nothing'}".rstrip()
        )
        rows = [("stdout", output), ("stderr", answer.stderr.strip())]
        rows += [("exit code", str(answer.exit_code))] if answer.exit_code else []
        rows += [("environment", f"{name}={value}") for name, value in item.env.items()]
        rows += [("later", text) for text in item.later] + [("lost", text) for text in item.lost]
        pairs(rows)


def _mark_dry(outcome: Outcome, assembled: Assembled) -> None:
    """Let the hooks that did not run because all is dry say so."""
    dry = {row.name: row.reason for row in assembled.plugins if row.state == "dry"}
    for record in outcome.hooks:
        if record.matched and record.plugin in dry:
            record.matched, record.why = False, dry[record.plugin]


def _rule(engine: Engine, event: Event) -> dict[str, str] | None:
    """Return what the permission rules alone say of the call as rewritten, or None."""
    from ..engine.engine import LADDER_TIMINGS

    if engine.permissions is None or event.timing not in LADDER_TIMINGS:
        return None
    vote = engine.permissions.vote(event)  # type: ignore[arg-type]
    if vote is None:
        return None
    return {"decision": vote.decision, "by": vote.by, "reason": vote.reason}


def _record(step: Step, outcome: Outcome | None, agent: str | None) -> HookRecord:
    """Return what became of a hook; without an event, only whether it listens to the agent."""
    if outcome is not None:
        for record in outcome.hooks:
            if record.plugin == step.plugin:
                return record
    from ..engine.match import Filter
    from ..engine.outcome import HookRecord
    from ..spec.events import Event

    why = ""
    if outcome is None and agent is not None and step.filter is not None:
        why = Filter(agents=step.filter.agents).why_not(Event(type="explain", agent=agent))
    return HookRecord(
        step.name, step.plugin, step.source, step.tier_name, step.priority, matched=not why, why=why
    )


def _row_json(step: Step, record: HookRecord, called: bool) -> dict[str, Any]:
    row = {**step_json(step), **record.to_json()}
    if not called:
        row["matched"] = None if record.matched else False
    return row


def _count_text(number: int) -> str:
    if not number:
        return "no hook is registered here"
    return "1 hook" if number == 1 else f"{number} hooks, in this order"


def _table(rows: list[tuple[Step, HookRecord]], called: bool) -> None:
    if not rows:
        return
    table(
        ("#", "tier", "priority", "hook", "source", "filters", "notes", "micros", "said" if called else ""),
        [
            (
                str(number),
                step.tier_name,
                str(step.priority),
                step.name,
                step.source,
                filters_text(step),
                notes_text(step),
                f"{record.micros:.0f}" if called and record.matched else "",
                said(record) if called else record.why and f"not called: {record.why}",
            )
            for number, (step, record) in enumerate(rows, 1)
        ],
        right=("#", "priority", "micros"),
        styles=DECISION_STYLES,
    )
