"""``hookturn audit``: verify, anchor, tail, query, export and stats."""

from __future__ import annotations

import os

from hookturn import HookturnError

from ..console import count, emit, moment, plugin_file, printable, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from collections.abc import Callable
    from typing import Any

    from .anchors import Anchors
    from .index import Filters
    from .verify import Report

NAME = "audit.jsonl"
SHOWN = 50
"""Records that ``query`` shows without ``--limit``."""


def add_parser(subparsers: Any) -> None:
    """Add the command to ``hookturn``."""
    parser = subparsers.add_parser("audit", help="verify and read the audit trail")
    parser.set_defaults(func=lambda args: _usage(parser))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")

    verify = _add(commands, "verify", run_verify, "check chain and anchors, and name the first bad line")
    verify.add_argument("--anchor", metavar="FILE", help="check an anchor that was kept elsewhere, too")

    verify.add_argument(
        "--head",
        type=_hash,
        action="append",
        default=[],
        metavar="HASH",
        help="there has to be a record of this hash, as a commit's trailer names it; may be repeated",
    )

    anchor = _add(
        commands, "anchor", run_anchor, "keep the trail's head outside the checkout now, and print it"
    )
    anchor.add_argument(
        "--afresh",
        action="store_true",
        help="put the anchors so far aside: the trail was removed or shortened on purpose",
    )

    tail = _add(commands, "tail", run_tail, "print the newest records")
    tail.add_argument("-n", "--lines", type=_number, default=20, metavar="N", help="how many (default 20)")
    tail.add_argument("-f", "--follow", action="store_true", help="go on with new records as they come")

    query = _add(commands, "query", run_query, "find records")
    _add_filters(query)
    query.add_argument(
        "--text", default="", metavar="TEXT", help="with this text anywhere, whatever the case"
    )
    query.add_argument(
        "--limit",
        type=_number,
        default=SHOWN,
        metavar="N",
        help=f"only the newest N (default {SHOWN}; 0 for all)",
    )

    from .export import FORMATS

    export = _add(commands, "export", run_export, "print records in a form that other systems read")
    export.add_argument("--format", choices=FORMATS, default="jsonl", help="the form (default jsonl)")
    export.add_argument("--output", metavar="FILE", help="write into this new file instead (mode 0600)")
    _add_filters(export)
    export.add_argument(
        "--text", default="", metavar="TEXT", help="with this text anywhere, whatever the case"
    )
    export.add_argument(
        "--limit", type=_number, default=0, metavar="N", help="only the newest N; default: all"
    )

    stats = _add(commands, "stats", run_stats, "count records by timing, decision, tool and hook")
    _add_filters(stats)


def _add(commands: Any, word: str, run: Callable[..., int], text: str) -> Any:
    parser = commands.add_parser(word, help=text)
    parser.add_argument(
        "path", nargs="?", help="the trail, or a project's folder; default: the project's trail"
    )
    parser.set_defaults(func=run, misused=parser.error)
    return parser


def _add_filters(parser: Any) -> None:
    for name, what in (
        ("session", "of this session"),
        ("tool", "of this tool or kind of tools"),
        ("decision", "with this decision, or status of a tool call's end"),
        ("hook", "in which this hook had a part"),
        ("timing", "of this timing"),
    ):
        metavar = "ID" if name == "session" else "NAME"
        parser.add_argument(f"--{name}", default="", metavar=metavar, help=f"{what}; * stands for anything")
    parser.add_argument(
        "--since", default="", metavar="WHEN", help="from then on: 30m, 12h, 7d ago, or a date or time"
    )
    parser.add_argument("--until", default="", metavar="WHEN", help="before then")


def _number(text: str) -> int:
    from argparse import ArgumentTypeError

    if not (text.isascii() and text.isdigit() and len(text) < 10):
        raise ArgumentTypeError(f"{text!r} is no number")
    return int(text)


def _hash(text: str) -> str:
    from argparse import ArgumentTypeError
    from re import fullmatch

    if not fullmatch("[0-9a-f]{64}", text):
        raise ArgumentTypeError(f"{text!r} is no SHA-256 of 64 hexadecimal digits")
    return text


def _usage(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 2


def _path(args: Any) -> str:
    from . import Config

    path: str | None = args.path
    if path is not None and not os.path.isdir(path):
        return path
    return plugin_file(args, "audit-log", Config, NAME, folder=path)


def _existing(args: Any) -> str:
    from .reading import files

    path = _path(args)
    if not files(path):
        raise HookturnError(f"{path}: there is no trail")
    return path


def _unreadable(path: str, error: OSError) -> HookturnError:
    return HookturnError(f"{path}: {error.strerror or error}")


def _filters(args: Any) -> Filters:
    from hookturn.spec.events import rfc3339

    from .index import Filters

    times = {}
    for name in ("since", "until"):
        text = getattr(args, name)
        seconds = moment(text) if text else None
        if text and seconds is None:
            args.misused(f"--{name} {text}: expected how long ago (30m, 12h, 7d), or a date or time")
        times[name] = "" if seconds is None else rfc3339(seconds)
    return Filters(
        session=args.session,
        tool=args.tool,
        decision=args.decision,
        hook=args.hook,
        timing=args.timing,
        text=getattr(args, "text", ""),
        **times,
    )


# -- verify and anchor ------------------------------------------------------------------------------


def run_verify(args: Any) -> int:
    """Verify a trail; 0 when it is whole, 1 when it is not."""
    from .anchors import Anchors, DamagedAnchorsError
    from .verify import Report, verify

    path = _path(args)
    anchors = Anchors(path)
    try:
        kept = anchors.read()
        if args.anchor is not None:
            kept += anchors.read_copy(args.anchor)
        report = verify(path, [(anchor.number, anchor.hash) for anchor in kept], args.head)
    except DamagedAnchorsError as error:
        report = Report().bad(error.file, error.line, error.cause)
    except OSError as error:
        raise _unreadable(error.filename or path, error) from error
    elsewhere = _elsewhere(args)
    if args.json:
        emit({**report.to_json(), "elsewhere": elsewhere})
    elif report.ok:
        _print_whole(path, report, anchors)
    else:
        where = f":{report.line}" if report.line else ""
        print(f"{printable(report.file)}{where}: {report.cause}")
        if report.records:
            print(f"  {count(report.records, 'record')} read before that")
    if elsewhere and not args.json:
        print(f"  records that could not be written here are in {printable(elsewhere)}")
    return 0 if report.ok else 1


def _elsewhere(args: Any) -> str:
    """Return the project's second trail, which gets what the first one cannot take, or "" when there is none."""
    from . import second_trail

    if args.path is not None and not os.path.isdir(args.path):
        return ""
    root, _ = args.settings("audit-log", args.path)
    path = second_trail(root)
    return path if os.path.lexists(path) else ""


def _print_whole(path: str, report: Report, anchors: Anchors) -> None:
    amount = f"{count(report.records, 'record')} in {count(len(report.files), 'file')}"
    print(f"{printable(path)}: {amount}, the chain is whole")
    if report.anchors:
        print(f"  {count(report.anchors, 'anchor')} checked ({printable(anchors.file)})")
    else:
        print("  no anchor: a cut-off end would not be seen")
    if report.older:
        print(f"  {count(report.older, 'anchor')} of older records that are no longer there")
    if report.pruned:
        print(f"  older records were removed: it continues {printable(report.pruned)}")
    if report.torn:
        print(f"  {count(report.torn, 'line')} cut off by crashes, kept as evidence")
    print(f"  head {report.head}")


def run_anchor(args: Any) -> int:
    """Anchor the trail's head."""
    from .anchors import Anchors, DamagedAnchorsError

    path = _path(args)
    anchors = Anchors(path)
    try:
        made = anchors.add(afresh=args.afresh)
    except DamagedAnchorsError as error:
        raise HookturnError(f"{error}. --afresh puts them aside.") from error
    except OSError as error:
        raise _unreadable(error.filename or path, error) from error
    if made is None:
        raise HookturnError(f"{path}: there is no record to anchor")
    if args.json:
        facts = {"file": anchors.file, "written": made.number, "hash": made.hash, "note": made.note}
        emit({"schema": 1, "path": path, **facts})
    else:
        print(made.note, end="")
    return 0


# -- tail -------------------------------------------------------------------------------------------


def run_tail(args: Any) -> int:
    """Print the newest records, oldest of them first; with ``--follow`` go on until it is interrupted."""
    from .reading import POLL_SECONDS, Follower

    path = _path(args) if args.follow else _existing(args)
    follower = Follower(path)
    try:
        lines = follower.begin(args.lines)
        if not args.follow:
            lines = [*lines, *follower.unfinished()]
            _show(path, lines[-args.lines :] if args.lines else [], args.json)
            return 0
        from sys import stdout
        from time import sleep

        while True:
            for line in lines:
                print(_json_line(line) if args.json else _summary(_readable(line)))
            stdout.flush()
            lines = follower.read()
            if not lines:
                sleep(POLL_SECONDS)
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise _unreadable(path, error) from error
    finally:
        follower.close()


def _show(path: str, lines: list[bytes], as_json: bool) -> None:
    records = [_readable(line) for line in lines]
    if as_json:
        emit({"schema": 1, "path": path, "records": records})
        return
    for record in records:
        print(_summary(record))


def _readable(line: bytes) -> dict[str, Any]:
    """Return a line's record, or something like one for a torn line."""
    from .reading import record_of

    record = record_of(line)
    if record is None:
        return {"timing": "(a torn line)", "reason": printable(line.decode("utf-8", "replace"), 60)}
    return record


def _json_line(line: bytes) -> str:
    from .chain import canonical

    return canonical(_readable(line))


def _summary(record: dict[str, Any]) -> str:
    said = record.get("decision") or record.get("status") or ""
    if not said:
        done = ("rewrites", "reply", "injected", "warnings", "continue_reason", "env", "recover", "failures")
        said = ", ".join(name for name in done if record.get(name))
    by = f"by {record['by']}" if record.get("by") else ""
    parts = [record.get("time"), record.get("timing"), record.get("tool"), said, by, record.get("reason")]
    return "  ".join(printable(part, 120) for part in parts if part)


# -- query, export, stats ---------------------------------------------------------------------------


def run_query(args: Any) -> int:
    """Print the records that fit, oldest first."""
    from .index import search

    path = _existing(args)
    filters = _filters(args)
    try:
        records = search(path, filters, args.limit)
        if args.json:
            emit({"schema": 1, "path": path, "records": list(records)})
        else:
            for record in records:
                print(_summary(record))
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise _unreadable(path, error) from error
    return 0


def run_export(args: Any) -> int:
    """Print or write the records that fit in another form."""
    from sys import stdout

    from hookturn.paths import open_private

    from .export import write
    from .index import search

    path = _existing(args)
    records = search(path, _filters(args), args.limit)
    written = 0
    made: list[dict[str, Any]] = []
    try:
        if args.output is not None:
            # A new file only: a trail, of all files, must not be written over.
            fd = open_private(args.output, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
            with open(fd, "w", encoding="utf-8", newline="") as output:
                written = sum(1 for _ in write(args.format, path, records, output.write))
        elif args.json:
            made = list(write(args.format, path, records, len))
        else:
            for _ in write(args.format, path, records, stdout.write):
                pass
    except OSError as error:
        if isinstance(error, BrokenPipeError):
            raise
        raise _unreadable(error.filename or path, error) from error
    if args.json:
        about = {"records": made} if args.output is None else {"output": args.output, "written": written}
        emit({"schema": 1, "path": path, "format": args.format, **about})
    elif args.output is not None:
        print(f"{printable(args.output)}: {count(written, 'record')}")
    return 0


def run_stats(args: Any) -> int:
    """Count the records that fit."""
    from .index import figures

    path = _existing(args)
    try:
        found = figures(path, _filters(args))
    except OSError as error:
        raise _unreadable(path, error) from error
    if args.json:
        emit({"schema": 1, "path": path, **found})
        return 0
    amount = f"{count(found['records'], 'record')} of {count(found['sessions'], 'session')}"
    print(f"{amount}, {count(found['bytes'], 'byte')}, {count(found['failures'], 'failure')} of hooks")
    if found["first"]:
        print(f"from {printable(found['first'])} to {printable(found['last'])}")
    for title, name in (
        ("timing", "by_timing"),
        ("decision", "by_decision"),
        ("status", "by_status"),
        ("tool", "by_tool"),
        ("hook", "by_hook"),
    ):
        if found[name]:
            print()
            table((title, "records"), [(key, f"{number:,}") for key, number in found[name].items()])
    return 0
