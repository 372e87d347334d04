"""The audit trail, records of 512 bytes without secrets, each figure beside the bare system calls.

One writer, four at once, opening and closing the file each time, with each record brought to the disk, and
verifying. In a folder of the working tree, so that it is a real disk; where the disk alone
is slower than what is to be reached with each record on it, 0.8x of the disk is.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from statistics import median
from time import perf_counter

from harness import Row, side_by_side

from hookturn_builtins.audit_log.trail import Trail
from hookturn_builtins.audit_log.verify import verify

SIZE = 512
WRITERS = 4
RECORDS = 5_000  # of each of the four
LINES = 100_000  # verified
RECORD = {
    "agent": "coder",
    "args": {"command": "ls -la src"},
    "by": "",
    "call_id": "call_01",
    "decision": None,
    "duration": 0.012345,
    "failures": [],
    "hooks": [],
    "host": "claude-code",
    "id": "01a22e1feab87185a679546ecf70ad0e",
    "kind": "bash",
    "reason": "",
    "schema": 1,
    "session_id": "0b8a1c5e",
    "status": "ok",
    "time": "2026-11-30T20:22:53.359Z",
    "timing": "post_tool_execution",
    "tool": "bash",
    "turn": 3,
}
FLAGS = os.O_RDWR | os.O_APPEND | os.O_CREAT

WRITER = """
import json, os, sys
kind, path, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
if kind == "trail":
    from hookturn_builtins.audit_log.trail import Trail
    record = json.loads(sys.argv[4])
    trail = Trail(path)
    write = lambda: trail.append(record)
else:
    fd = os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    line = b"x" * 511 + b"\\n"
    write = lambda: os.write(fd, line)
print("ready", flush=True)
sys.stdin.readline()
for _ in range(count):
    write()
"""


def fitted(folder: Path) -> dict[str, object]:
    """Return the record, filled up so that its line has SIZE bytes."""
    trail = Trail(folder / "fit.jsonl")
    trail.append({**RECORD, "result": ""})
    trail.close()
    return {**RECORD, "result": "x" * (SIZE - (folder / "fit.jsonl").stat().st_size)}


def opened(path: Path, record: dict[str, object]) -> Callable[[], None]:
    def append() -> None:
        trail = Trail(path)
        trail.append(record)
        trail.close()

    return append


def raw_opened(path: Path, line: bytes) -> Callable[[], None]:
    def write() -> None:
        fd = os.open(path, FLAGS, 0o600)
        os.write(fd, line)
        os.close(fd)

    return write


def synced(path: Path, line: bytes) -> Callable[[], None]:
    fd = os.open(path, FLAGS, 0o600)

    def write() -> None:
        os.write(fd, line)
        os.fdatasync(fd)

    return write


def at_once(kind: str, folder: Path, record: dict[str, object], number: int) -> float:
    """Return the records a second of all writers together."""
    import json

    path = folder / f"{kind}{number}.jsonl"
    argv = [sys.executable, "-c", WRITER, kind, str(path), str(RECORDS), json.dumps(record)]
    writers = [
        subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for _ in range(WRITERS)
    ]
    for writer in writers:
        assert writer.stdout is not None
        writer.stdout.readline()
    begun = perf_counter()
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("\n")
        writer.stdin.flush()
    codes = [writer.wait() for writer in writers]
    seconds = perf_counter() - begun
    assert codes == [0] * WRITERS, codes
    if kind == "trail":
        report = verify(path)
        assert (report.ok, report.records) == (True, WRITERS * RECORDS)
    return WRITERS * RECORDS / seconds


def read(path: Path) -> Callable[[], int]:
    def lines() -> int:
        with open(path, "rb") as file:
            return sum(1 for _ in file)

    return lines


def pairs(folder: Path, record: dict[str, object]) -> Iterator[tuple[str, float, float, str, float]]:
    """Yield what, figure, the bare system calls' figure, their name, and the figure to reach."""
    line = b"x" * (SIZE - 1) + b"\n"
    fd = os.open(folder / "raw", FLAGS, 0o600)
    for what, ours, raw, name, reach in (
        ("one process", Trail(folder / "a.jsonl"), lambda: os.write(fd, line), "write", 20_000),
        (
            "open and close each time",
            opened(folder / "b.jsonl", record),
            raw_opened(folder / "raw2", line),
            "open, write, close",
            10_000,
        ),
        (
            "on the disk each (durability always)",
            Trail(folder / "c.jsonl", durability="always"),
            synced(folder / "raw3", line),
            "write, fdatasync",
            2_000,
        ),
    ):
        call = ours if not isinstance(ours, Trail) else (lambda trail=ours: trail.append(record))
        figures = side_by_side({"ours": call, "raw": raw}, rounds=9, span=0.05)
        raw_figure = 1e9 / figures["raw"]
        yield what, 1e9 / figures["ours"], raw_figure, name, min(reach, 0.8 * raw_figure)
    both = [(at_once("trail", folder, record, n), at_once("raw", folder, record, n)) for n in range(3)]
    yield (
        f"{WRITERS} processes at once",
        median(ours for ours, _ in both),
        median(raw for _, raw in both),
        "write",
        15_000,
    )
    path = folder / "verified.jsonl"
    trail = Trail(path)
    for _ in range(LINES):
        trail.append(record)
    trail.close()
    figures = side_by_side({"ours": lambda: verify(path), "raw": read(path)}, rounds=5, span=0.0)
    yield "verified", LINES * 1e9 / figures["ours"], LINES * 1e9 / figures["raw"], "read lines", 100_000


def rows() -> list[Row]:
    """Measure and return the rows."""
    with tempfile.TemporaryDirectory(dir=Path(__file__).parent) as name:
        folder = Path(name)
        record = fitted(folder)
        return [
            Row(
                f"audit records of {SIZE} bytes, {what}",
                ours,
                "records/s",
                f"{raw:,.0f} {against}",
                reach,
                less=False,
            )
            for what, ours, raw, against, reach in pairs(folder, record)
        ]


if __name__ == "__main__":
    for row in rows():
        print(*row.cells(), sep=" | ")
