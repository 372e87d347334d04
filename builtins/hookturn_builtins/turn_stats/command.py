"""``hookturn stats``: the figures of a project's sessions."""

from __future__ import annotations

from hookturn import HookturnError

from ..console import count, emit, printable, project_file, table

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "stats.sqlite"
SHOWN = 20


def add_parser(subparsers: Any) -> None:
    """Add the command to ``hookturn``."""
    parser = subparsers.add_parser("stats", help="figures of turns, tools and hooks")
    parser.add_argument("path", nargs="?", help="the file; default: the project's .hookturn/stats.sqlite")
    parser.add_argument("--session", default="", metavar="ID", help="only this session, with its turns")
    parser.set_defaults(func=run)


def run(args: Any) -> int:
    """Print the figures."""
    import sqlite3

    from .store import read

    path = args.path or project_file(args.project, NAME)
    try:
        figures = read(path, args.session)
    except OSError as error:
        raise HookturnError(f"{path}: {error.strerror or error}") from error
    except sqlite3.Error as error:
        raise HookturnError(f"{path} is no statistics file that can be read: {error}") from error
    if args.json:
        emit({"schema": 1, "path": path, **figures})
        return 0
    _print(figures)
    return 0


def _print(figures: dict[str, Any]) -> None:
    totals = figures["totals"]
    things = ("session", "turn", "tool_call", "denial", "rewrite", "warning")
    parts = [count(totals[f"{thing}s"], thing.replace("_", " ")) for thing in things]
    parts.append(f"{count(totals['failures'], 'failure')} of hooks")
    parts.append(count(totals["edited_files"], "edited file"))
    print(", ".join(parts))
    print(
        f"tokens: {totals['input_tokens']:,} in, {totals['output_tokens']:,} out, "
        f"{totals['cache_read_tokens']:,} from the cache, {totals['cache_write_tokens']:,} into it; "
        f"time in hooks: {_seconds(totals['hook_seconds'])}"
    )
    if figures["sessions"]:
        print()
        table(
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
                for row in figures["sessions"][:SHOWN]
            ],
            texts=2,
        )
        if len(figures["sessions"]) > SHOWN:
            print(f"... and {len(figures['sessions']) - SHOWN:,} older ones (--json shows all)")
    if figures["tools"]:
        print()
        table(
            ("tool", "kind", "calls", "status", "p50", "p95", "max"),
            [
                (
                    row["tool"],
                    row["kind"],
                    row["calls"],
                    " ".join(
                        f"{printable(name)}:{count}" for name, count in sorted(row["by_status"].items())
                    ),
                    _seconds(row["p50"]),
                    _seconds(row["p95"]),
                    _seconds(row["max"]),
                )
                for row in figures["tools"]
            ],
            texts=2,
        )
    if figures["hooks"]:
        print()
        table(
            ("hook", "answers", "denials", "failures"),
            [(row["hook"], row["answers"], row["denials"], row["failures"]) for row in figures["hooks"]],
        )
    if figures.get("turns"):
        print()
        table(
            ("turn", "agent", "in", "out", "denials", "rewrites", "seconds", "edited"),
            [
                (
                    row["turn"],
                    row["agent"],
                    f"{row['input_tokens']:,}",
                    f"{row['output_tokens']:,}",
                    row["denials"],
                    row["rewrites"],
                    _seconds(row["seconds"]),
                    len(row["edited"]),
                )
                for row in figures["turns"]
            ],
            texts=2,
        )


def _seconds(value: float | None) -> str:
    if value is None:
        return "-"
    if value < 1:
        return f"{value * 1000:.1f} ms"
    return f"{value:.1f} s"
