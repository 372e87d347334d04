"""``hookturn audit verify`` and ``hookturn audit tail``."""

from __future__ import annotations

import os

from hookturn import HookturnError

from ..console import count, emit, printable, project_file

TYPE_CHECKING = False
if TYPE_CHECKING:
    import argparse
    from typing import Any

NAME = "audit.jsonl"


def add_parser(subparsers: Any) -> None:
    """Add the command to ``hookturn``."""
    parser = subparsers.add_parser("audit", help="verify and read the audit trail")
    parser.set_defaults(func=lambda args: _usage(parser))
    commands = parser.add_subparsers(title="commands", metavar="COMMAND")
    verify = commands.add_parser("verify", help="check the chain and name the first bad line")
    verify.add_argument("path", nargs="?", help="the trail; default: the project's .hookturn/audit.jsonl")
    verify.set_defaults(func=run_verify)
    tail = commands.add_parser("tail", help="print the newest records")
    tail.add_argument("path", nargs="?", help="the trail; default: the project's .hookturn/audit.jsonl")
    tail.add_argument("-n", "--lines", type=int, default=20, metavar="N", help="how many (default 20)")
    tail.set_defaults(func=run_tail)


def _usage(parser: argparse.ArgumentParser) -> int:
    parser.print_help()
    return 2


def _path(args: Any) -> str:
    path: str | None = args.path
    if path is None:
        return project_file(args.project, NAME)
    return os.path.join(path, ".hookturn", NAME) if os.path.isdir(path) else path


def run_verify(args: Any) -> int:
    """Verify a trail; 0 when it is whole, 1 when it is not."""
    from .verify import verify

    path = _path(args)
    try:
        report = verify(path)
    except OSError as error:
        raise HookturnError(f"{path}: {error.strerror or error}") from error
    if args.json:
        emit(report.to_json())
        return 0 if report.ok else 1
    if report.ok:
        amount = f"{count(report.records, 'record')} in {count(len(report.files), 'file')}"
        print(f"{printable(path)}: {amount}, the chain is whole")
        if report.pruned:
            print(f"  older records were removed: it continues {printable(report.pruned)}")
        if report.torn:
            print(f"  {count(report.torn, 'line')} cut off by crashes, kept as evidence")
        print(f"  head {report.head}")
        return 0
    print(f"{printable(report.file)}:{report.line}: {report.cause}")
    print(f"  {count(report.records, 'record')} before it as written")
    return 1


def run_tail(args: Any) -> int:
    """Print the newest records, oldest of them first."""
    from collections import deque
    from json import loads

    from .trail import segments

    path = _path(args)
    lines: deque[bytes] = deque(maxlen=max(args.lines, 0))
    try:
        # Older files are read only as far as the newest one has too few lines.
        for file in reversed([*segments(path), path]):
            with open(file, "rb") as source:
                newer = list(lines)
                lines = deque(source, maxlen=max(args.lines - len(newer), 0))
                lines = deque([*lines, *newer])
            if len(lines) >= args.lines:
                break
    except OSError as error:
        raise HookturnError(f"{path}: {error.strerror or error}") from error
    records = []
    for line in lines:
        try:
            records.append(loads(line))
        except ValueError:
            records.append(
                {"timing": "(a torn line)", "reason": printable(line.decode("utf-8", "replace"), 60)}
            )
    if args.json:
        emit({"schema": 1, "path": path, "records": records})
        return 0
    for record in records:
        print(_summary(record))
    return 0


def _summary(record: dict[str, Any]) -> str:
    what = record.get("tool") or ""
    said = record.get("decision") or record.get("status") or ""
    if not said:
        done = ("rewrites", "reply", "injected", "warnings", "continue_reason", "env", "recover", "failures")
        said = ", ".join(name for name in done if record.get(name))
    by = f"by {record['by']}" if record.get("by") else ""
    parts = [record.get("time", ""), record.get("timing", ""), what, said, by, record.get("reason", "")]
    return "  ".join(printable(part, 120) for part in parts if part)
