"""``hookturn stats``: the figures of a project's sessions."""

from __future__ import annotations

from hookturn import HookturnError

from ..console import count, emit, moment, newest, printable, project_file, table
from .plots import bars

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, NoReturn

NAME = "stats.sqlite"
SHOWN = 20
SEEN = 0.0001
"""Seconds from which on a plot shows where they went."""

PARTS = ("model", "tool", "hook")
"""What the time of turns is spent on, as far as it is known."""

"""Seconds of the units that ``--since`` takes."""


def add_parser(subparsers: Any) -> None:
    """Add the command to ``hookturn``."""
    parser = subparsers.add_parser("stats", help="figures of turns, tools and hooks")
    parser.add_argument(
        "paths",
        metavar="PATH",
        nargs="*",
        help="the file, of several the newest; default: the project's .hookturn/stats.sqlite",
    )
    parser.add_argument("--session", default="", metavar="ID", help="only this session, with its turns")
    parser.add_argument(
        "--since", default="", metavar="WHEN", help="only turns begun since: 30m, 12h, 7d, or a date or time"
    )
    parser.add_argument("--prometheus", action="store_true", help="print Prometheus' text format")
    parser.set_defaults(func=lambda args: run(args, parser.error))


def run(args: Any, misused: Callable[[str], NoReturn]) -> int:
    """Print the figures.

    Parameters:
        args: the command line.
        misused: raises the error of a wrong command line.
    """
    import sqlite3

    from .reading import read

    if args.json and args.prometheus:
        misused("--json and --prometheus exclude each other")
    since = moment(args.since) if args.since else 0.0
    if since is None:
        misused(
            f"--since takes 30m, 12h, 7d, or a time such as 2026-11-30 or 2026-11-30T18:00:00Z, not {args.since!r}"
        )
    path = newest(args.paths) or project_file(args, "turn-stats", NAME)
    try:
        figures = read(path, args.session, since)
    except OSError as error:
        raise HookturnError(f"{path}: {error.strerror or error}") from error
    except sqlite3.Error as error:
        raise HookturnError(f"{path} is no statistics file that can be read: {error}") from error
    if args.json:
        emit({"schema": 1, "path": path, **figures})
    elif args.prometheus:
        _expose(figures)
    else:
        if not args.paths:
            print(f"{printable(path)}:")
        _print(figures)
    return 0


def _expose(figures: dict[str, Any]) -> None:
    import sys

    from .prometheus import exposition

    reconfigure = getattr(sys.stdout, "reconfigure", None)
    if reconfigure is not None:  # the format is UTF-8 whatever the locale is
        reconfigure(encoding="utf-8", newline="\n")
    print(exposition(figures), end="")


def _print(figures: dict[str, Any]) -> None:
    totals = figures["totals"]
    things = ("session", "turn", "tool_call", "denial", "rewrite", "warning")
    parts = [count(totals[f"{thing}s"], thing.replace("_", " ")) for thing in things]
    parts.append(f"{count(totals['failures'], 'failure')} of hooks")
    parts.append(count(totals["edited_files"], "edited file"))
    print(", ".join(parts))
    print(
        f"tokens: {totals['input_tokens']:,} in, {totals['output_tokens']:,} out, "
        f"{totals['cache_read_tokens']:,} from the cache, {totals['cache_write_tokens']:,} into it"
    )
    print(
        f"time: turns {_seconds(totals['seconds'])}, model {_seconds(totals['model_seconds'])}, "
        f"tools {_seconds(totals['tool_seconds'])}, hooks {_seconds(totals['hook_seconds'])}"
    )
    for part in (_sessions, _models, _tools, _hooks, _turns, _plots):
        part(figures)


def _sessions(figures: dict[str, Any]) -> None:
    rows = figures["sessions"]
    _section(
        ("session", "agent", "turns", "in", "out", "denials", "warnings", "seconds"),
        [
            (
                row["session_id"],
                row["agent"],
                row["turns"],
                f"{row['input_tokens']:,}",
                f"{row['output_tokens']:,}",
                row["denials"],
                row["warnings"],
                _seconds(row["seconds"]),
            )
            for row in rows[:SHOWN]
        ],
        texts=2,
    )
    if len(rows) > SHOWN:
        print(f"... and {len(rows) - SHOWN:,} older ones (--json shows all)")


def _models(figures: dict[str, Any]) -> None:
    _section(
        ("model", "answers", "in", "out", "from cache", "into cache", "time"),
        [
            (
                row["model"],
                row["responses"],
                f"{row['input_tokens']:,}",
                f"{row['output_tokens']:,}",
                f"{row['cache_read_tokens']:,}",
                f"{row['cache_write_tokens']:,}",
                _seconds(row["model_seconds"]),
            )
            for row in figures["models"]
        ],
    )


def _tools(figures: dict[str, Any]) -> None:
    _section(
        ("tool", "kind", "calls", "status", "p50", "p90", "p99", "max"),
        [
            (
                row["tool"],
                row["kind"],
                row["calls"],
                " ".join(f"{printable(name)}:{number}" for name, number in sorted(row["by_status"].items())),
                *(_seconds(row[name]) for name in ("p50", "p90", "p99", "max")),
            )
            for row in figures["tools"]
        ],
        texts=2,
    )


def _hooks(figures: dict[str, Any]) -> None:
    _section(
        ("hook", "answers", "denials", "failures", "calls", "time", "share"),
        [
            (
                row["hook"],
                row["answers"],
                row["denials"],
                row["failures"],
                row["calls"],
                _seconds(row["seconds"]),
                "-" if row["share"] is None else f"{row['share']:.0%}",
            )
            for row in figures["hooks"]
        ],
    )


def _turns(figures: dict[str, Any]) -> None:
    _section(
        (
            "turn",
            "agent",
            "in",
            "out",
            "calls",
            "denials",
            "rewrites",
            "seconds",
            "model",
            "tools",
            "hooks",
            "edited",
        ),
        [
            (
                row["turn"],
                row["agent"],
                f"{row['input_tokens']:,}",
                f"{row['output_tokens']:,}",
                row["tool_calls"],
                row["denials"],
                row["rewrites"],
                *(
                    _seconds(row[name])
                    for name in ("seconds", "model_seconds", "tool_seconds", "hook_seconds")
                ),
                len(row["edited"]),
            )
            for row in figures.get("turns", ())
        ],
        texts=2,
    )


def _plots(figures: dict[str, Any]) -> None:
    if "turns" in figures:
        what, rows = "turn", [(f"{row['turn']} {row['agent']}", row) for row in figures["turns"][-SHOWN:]]
    else:
        what, rows = "session", [(row["session_id"], row) for row in figures["sessions"][:SHOWN]]
    tokens = [(label, row["input_tokens"] + row["output_tokens"]) for label, row in rows]
    bars(f"tokens by {what}, in and out", [(label, number, f"{number:,}") for label, number in tokens])
    totals = figures["totals"]
    bars(
        "where time went",
        [(name, totals[f"{name}_seconds"] or 0.0, _seconds(totals[f"{name}_seconds"])) for name in PARTS],
    )
    for title, name in (("tool", "tools"), ("timing", "timings")):
        spent = [row for row in figures[name] if row["seconds"] >= SEEN]
        spent = sorted(spent, key=lambda row: -row["seconds"])[:SHOWN]
        bars(
            f"time in {'tools' if title == 'tool' else 'hooks'}, by {title}",
            [(row[title], row["seconds"], _seconds(row["seconds"])) for row in spent],
        )


def _section(headers: tuple[str, ...], rows: list[tuple[object, ...]], *, texts: int = 1) -> None:
    """Print a table below an empty line, unless it has no rows."""
    if rows:
        print()
        table(headers, rows, texts=texts)


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    if value < 1:
        return f"{value * 1000:.1f} ms"
    return f"{value:.1f} s"
