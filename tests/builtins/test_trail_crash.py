"""The audit trail under strace: a writer killed, or refused by the system, at every call it makes."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from hookturn_builtins.audit_log.anchors import Anchors
from hookturn_builtins.audit_log.trail import Trail, segments
from hookturn_builtins.audit_log.verify import verify

pytestmark = [
    pytest.mark.fault,
    pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed"),
]

# Says before and after each record: what was said after is acknowledged.
WRITER = """
import sys
from hookturn_builtins.audit_log.trail import Trail
trail = Trail(sys.argv[1], max_bytes=int(sys.argv[2]), durability=sys.argv[3])
for number in range(int(sys.argv[4]), int(sys.argv[4]) + 6):
    try:
        trail.append({"agent": "a", "args": "x" * 150, "schema": 1, "turn": number})
        print(number, flush=True)
    except OSError as error:
        print("refused", flush=True)
"""


def run(path: Path, start: int, max_bytes: int, durability: str, inject: str) -> tuple[bool, list[int], int]:
    """Run a writer with a fault; returns whether it ended by itself, what it acknowledged, and its refusals."""
    command = [
        "strace",
        "-f",
        "-o",
        "/dev/null",
        "-P",
        str(path),
        "-P",
        str(path.parent),
        "-e",
        f"inject={inject}",
    ]
    command += [sys.executable, "-c", WRITER, str(path), str(max_bytes), durability, str(start)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    words = done.stdout.split()
    numbers = [int(word) for word in words if word != "refused"]
    return done.returncode == 0, numbers, words.count("refused")


def turns(path: Path) -> list[int]:
    found = []
    for file in [*segments(path), path]:
        for line in Path(file).read_bytes().splitlines():
            try:
                found.append(json.loads(line)["turn"])
            except ValueError:
                continue
    return found


def check(path: Path, acknowledged: list[int], where: str) -> None:
    trail = Trail(path)
    trail.append({"agent": "check", "schema": 1, "turn": -1})
    trail.close()
    report = verify(path)
    assert report.ok, (where, report.file, report.line, report.cause)
    assert set(acknowledged) <= set(turns(path)), where


def can_trace() -> bool:
    done = subprocess.run(["strace", "-o", "/dev/null", "true"], capture_output=True, check=False)
    return done.returncode == 0


@pytest.mark.timeout(900)
def test_killed_at_every_system_call(tmp_path: Path) -> None:
    if not can_trace():
        pytest.skip("strace may not trace here")
    points = 0
    for number, (max_bytes, durability) in enumerate(
        [(700, "kernel"), (0, "kernel"), (1000, "always"), (500, "kernel"), (1, "kernel"), (300, "interval")]
        * 8
    ):
        path = tmp_path / str(number) / "audit.jsonl"
        acknowledged: list[int] = []
        at = 0
        ended = False
        while not ended:
            at += 1
            ended, numbers, _ = run(path, at * 10, max_bytes, durability, f"all:signal=SIGKILL:when={at}")
            acknowledged += numbers
            check(path, acknowledged, f"call {at}, max_bytes {max_bytes}, {durability}")
        points += at - 1
        if points >= 1000:
            break
    assert points >= 1000


@pytest.mark.timeout(600)
@pytest.mark.parametrize("error", ["EIO", "ENOSPC", "EROFS", "EMFILE", "EINTR"])
def test_refused_at_every_system_call(tmp_path: Path, error: str) -> None:
    if not can_trace():
        pytest.skip("strace may not trace here")
    refusals = 0
    for calls in (
        "write,ftruncate",
        "openat",
        "flock",
        "rename",
        "newfstatat,fstat,lstat",
        "getdents64,read,lseek",
        "fdatasync",
    ):
        path = tmp_path / calls / "audit.jsonl"
        acknowledged: list[int] = []
        for at in range(1, 9):
            inject = f"{calls}:error={error}:when={at}"
            ended, numbers, refused = run(
                path, at * 10, 700, "always" if calls == "fdatasync" else "kernel", inject
            )
            assert ended, inject
            refusals += refused
            acknowledged += numbers
            check(path, acknowledged, inject)
    assert refusals or error == "EINTR"


ANCHORER = """
import sys
from hookturn_builtins.audit_log.anchors import Anchors
Anchors(sys.argv[1]).add()
print("done", flush=True)
"""


@pytest.mark.timeout(600)
def test_killed_at_every_system_call_of_anchoring(tmp_path: Path) -> None:
    if not can_trace():
        pytest.skip("strace may not trace here")
    path = tmp_path / "audit.jsonl"
    trail = Trail(path)
    trail.append({"agent": "a", "schema": 1, "turn": 0})
    anchors = Anchors(path)
    at = acknowledged = 0
    done = False
    while not done:
        at += 1
        if at % 8 == 0:  # the first anchor, with its key, and later ones
            shutil.rmtree(anchors.folder)
            acknowledged = 0
        trail.append({"agent": "a", "schema": 1, "turn": at})
        command = ["strace", "-f", "-o", "/dev/null", "-P", str(path), "-P", anchors.folder]
        for name in ("anchors", "anchors.key", "lock"):
            command += ["-P", str(Path(anchors.folder, name))]
        command += ["-e", f"inject=all:signal=SIGKILL:when={at}", sys.executable, "-c", ANCHORER, str(path)]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        done = run.returncode == 0
        kept = anchors.read()
        if "done" in run.stdout:
            acknowledged += 1
        assert len(kept) >= acknowledged, at
        report = verify(path, [(anchor.number, anchor.hash) for anchor in kept])
        assert report.ok, (at, report.cause)
    assert at > 10
    assert anchors.add() is not None
