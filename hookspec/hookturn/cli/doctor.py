"""``hookturn doctor``: do agents really call, is each guard reached, and does every hook answer."""

from __future__ import annotations

from .output import clean, count, emit, paint, say, severity, table
from .project import add_live, add_options, dry_project

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from collections.abc import Mapping
    from typing import Any

    from ..engine.outcome import HookRecord
    from ..project.doctor import Found, Guard
    from .output import Style

_STYLES: Mapping[str, Style] = {
    "ok": "green",
    "changed": "yellow",
    "twice": "yellow",
    "gone": "red",
    "broken": "red",
}


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "doctor",
        help="tell whether agents really call, and every hook answers",
        description="Look at a project at work: are the agents' configurations as `hookturn install` wrote "
        "them, when did they last call, is each guard reached, does any matcher match nothing, do two hooks do "
        "the same; and call every hook at every timing with a sample event that is marked as dry. Commands, "
        "webhooks and JavaScript are called with --live only. The exit code is 1 when something is wrong.",
    )
    add_live(parser)
    add_options(parser)
    parser.set_defaults(func=run)


def run(args: Namespace) -> int:
    """Look at the project."""
    import os

    from ..project import doctor
    from ..project.doubts import doubts

    with dry_project(args, live=args.live) as assembled:
        found = doctor.installations(assembled.root, os.environ, _endpoint)
        guards = doctor.guards(assembled)
        warnings = doubts(assembled)
        records = _probe(assembled.engine, args)
        errors = [item for item in (*assembled.problems, *warnings) if item.severity == "error"]
        trouble = doctor.trouble(assembled.root)
    failed = [(timing, record) for timing, record in records if record.error]
    bad = bool(errors or failed or any(item.state != "ok" for item in found))
    if args.json:
        emit(
            {
                "schema": 1,
                "project": assembled.root,
                "ok": not bad,
                "installations": [item.to_json() for item in found],
                "resident": _resident(found),
                "guards": [item.to_json() for item in guards],
                "hooks": [{"timing": timing, **record.to_json()} for timing, record in records],
                "problems": [problem.to_json() for problem in [*assembled.problems, *warnings]],
                "trouble": trouble,
            }
        )
        return 1 if bad else 0
    _show_agents(found)
    _show_guards(guards, found)
    _show_hooks(records, assembled)
    for problem in [*assembled.problems, *warnings]:
        say(f"{severity(problem)}: {clean(str(problem))}")
    for row in trouble:
        what = (
            f"{_ago(row.get('time'))}: {row.get('agent', '')} {row.get('event', '')}: {row.get('cause', '')}"
        )
        say(f"{paint('trouble', 'yellow')}: {clean(what)}")
    if bad:
        parts = [count(len(errors), "error"), count(len(failed), "failing hook"),
                count(sum(item.state != "ok" for item in found), "installation") + " to mend"]  # fmt: skip
        say(f"{paint('wrong', 'red')}: {', '.join(parts)}")
    else:
        say(
            f"{paint('fine', 'green')}: {count(len(records), 'hook')} answered, {count(len(found), 'installation')}"
        )
    return 1 if bad else 0


def _endpoint(agent: str) -> Any:
    from ..agents.installing import Endpoint
    from ..serve.door import load

    door = load()
    return Endpoint(url=f"{door.url}/hooks/{agent}", token=door.token) if door is not None else None


def _resident(found: list[Found]) -> bool | None:
    """Return whether the resident process answers, or None where no agent needs it."""
    if not any(item.http for item in found):
        return None
    import socket

    from ..serve.door import load

    door = load()
    if door is None:
        return False
    try:
        socket.create_connection(("127.0.0.1", door.port), timeout=1.0).close()
    except OSError:
        return False
    return True


def _probe(engine: Any, args: Namespace) -> list[tuple[str, HookRecord]]:
    """Call every hook with a sample event of its timing."""
    from ..testing import make

    records: list[tuple[str, HookRecord]] = []
    for timing in engine.registry.timings:
        sample = getattr(make, timing, None)
        if sample is not None and engine.plan(timing) is not None:
            event = sample().replace(dry_run=True, session_id="doctor", cwd=str(engine.project_dir or ""))
            records += [(timing, record) for record in engine.probe(event)]
    return records


def _show_agents(found: list[Found]) -> None:
    if not found:
        say("No agent calls hookturn here. `hookturn install AGENT` changes that.")
        return
    rows = []
    for item in found:
        last = max(item.calls.values(), default=None)
        rows.append(
            (
                item.agent,
                item.scope + (", http" if item.http else ""),
                item.state,
                _ago(last),
                clean(f"{item.cause}. {item.remedy}" if item.cause else ""),
            )
        )
    table(("agent", "where", "state", "last call", ""), rows, styles=_STYLES)
    for item in found:
        if item.elsewhere:
            say(
                f"{item.agent} was last answered by another hookturn, {clean(item.answered_by)}, with its own plugins: "
                "what is told here is about this one. Run its `hookturn doctor`, or `hookturn install` of this one."
            )
    resident = _resident(found)
    if resident is not None:
        words = (
            "answers" if resident else "does not answer: what is not a command fails open until it is started"
        )
        say(f"The resident process {words}.")


def _show_guards(guards: list[Guard], found: list[Found]) -> None:
    if guards:
        say("")
        table(
            ("guard", "timing", "source", "last reached"),
            [(item.name, item.timing, clean(item.source), _reached(item)) for item in guards],
        )
        if not found:
            again = "protect nothing any more" if any(item.last for item in guards) else "protect nothing yet"
            say(f"No agent calls, so these guards {again}.")


def _reached(guard: Guard) -> str:
    if guard.answered_by:
        return clean(f"not by this hookturn ({_ago(guard.last)} {guard.answered_by} answered)")
    return _ago(guard.last)


def _show_hooks(records: list[tuple[str, HookRecord]], assembled: Any) -> None:
    from ..project.survey import ONLY_LIVE

    dry = {row.name for row in assembled.plugins if row.state == "dry"}
    say("")
    table(
        ("timing", "hook", "said", "ms"),
        [
            (
                timing,
                record.name,
                ONLY_LIVE if record.name in dry else _said(record),
                f"{record.micros / 1000:.2f}",
            )
            for timing, record in records
        ],
        right=("ms",),
        styles={"failed": "red"},
    )


def _said(record: HookRecord) -> str:
    if record.error:
        return clean(f"failed: {record.error}")[:120]
    if not record.matched:
        return clean(f"not called: {record.why}")[:120]
    return clean(str(record.answer))[:120] if record.answer else "nothing"


def _ago(seconds: Any) -> str:
    """Return a time as people say it."""
    from time import time

    if not isinstance(seconds, (int, float)):
        return "never"
    passed = max(time() - seconds, 0.0)
    for size, unit in ((86_400, "day"), (3_600, "hour"), (60, "minute")):
        if passed >= 2 * size:
            return f"{passed // size:.0f} {unit}s ago"
    return f"{passed:.0f} s ago"
