"""Old sessions are removed from the state folder: a bounded number, never an open one, safe beside other processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from hookturn import Engine, hookimpl
from hookturn.engine import sweep as sweeping
from hookturn.engine.sweep import AGE, AGE_OPEN, sweep
from hookturn.paths import FileLock


class Counting:
    @hookimpl
    def on_session_start(self, ctx):
        ctx.state.add("starts")


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def session(state, name, *, age=0.0, end=True):
    """Begin, and maybe end, a session of an engine of its own; then let some seconds have passed."""
    engine = Engine([Counting()], state_dir=state)
    session = engine.attach(name)
    session.start()
    if end:
        session.end()
    engine.close()
    for path in state.glob(f"*/{name}/*"):
        os.utime(path, times=(time.time() - age,) * 2)


def names(state):
    return sorted(path.name for path in (state / "runs").iterdir())


def again(state):
    """Let the pause between two sweeps be over."""
    (state / "swept").unlink(missing_ok=True)


def test_ended_sessions_go_when_they_are_old_with_all_that_hooks_kept_in_them(state):
    session(state, "old", age=AGE + 60)
    session(state, "young", age=AGE - 60)
    assert (state / "sessions/old").is_dir()
    assert sweep(state) == ["old"]
    assert names(state) == ["young"]
    assert [path.name for path in (state / "sessions").iterdir()] == ["young"]


def test_a_session_without_an_end_stays_much_longer(state):
    session(state, "open", age=AGE + 60, end=False)
    session(state, "forgotten", age=AGE_OPEN + 60, end=False)
    assert sweep(state) == ["forgotten"]


def test_what_an_agent_has_open_stays(state):
    session(state, "open", age=AGE_OPEN + 60, end=False)
    assert sweep(state, keep=lambda: ["open"]) == []


@pytest.mark.parametrize("lock", ["runs/old/session.lock", "sessions/old/Counting.lock"])
def test_what_somebody_holds_stays(state, lock):
    session(state, "old", age=AGE + 60)
    (path,) = state.glob(f"{lock.rpartition('/')[0]}/*.lock")
    with FileLock(path):
        assert sweep(state) == []
    again(state)
    assert sweep(state) == ["old"]


def test_a_sweep_is_bounded_and_the_next_one_goes_on(state, monkeypatch):
    for number in range(7):
        session(state, f"s{number}", age=AGE + 60)
    monkeypatch.setattr(sweeping, "MOST_REMOVED", 3)
    assert [len(sweep(state)) for _ in range(2)] == [3, 0], "not again at once"
    again(state)
    assert len(sweep(state)) == 3
    again(state)
    assert sweep(state, until=time.monotonic() - 1) == []
    again(state)
    monkeypatch.setattr(sweeping, "MOST_LOOKED_AT", 1)
    assert len(sweep(state)) == 1
    assert names(state) == []


def test_nothing_but_sessions_is_touched(state, tmp_path):
    session(state, "old", age=AGE + 60)
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "session.jsonl").write_text('{"state": {"ended": true}}\n')
    os.utime(outside / "session.jsonl", times=(0, 0))
    (state / "runs/link").symlink_to(outside)
    (state / "runs/file").write_text("x")
    (state / "runs/old/folder").mkdir()
    sweep(state)
    assert (outside / "session.jsonl").exists()
    assert {"file", "link", "old"} <= set(names(state))


def test_a_session_that_began_again_is_open_whatever_came_before(state, monkeypatch):
    session(state, "again", age=0)
    session(state, "again", age=AGE + 60, end=False)
    assert sweep(state) == []
    again(state)
    whole = state / "runs/again/session.jsonl"
    monkeypatch.setattr(sweeping, "MOST_READ", whole.read_bytes().index(b"\n") + 1)
    assert sweep(state) == [], "nobody reads all of it"


def test_no_state_folder_is_no_matter(state):
    assert sweep(state) == []
    assert not state.exists()


BEGIN = """
import sys, time
from hookturn import Engine, hookimpl

class Counting:
    @hookimpl
    def on_session_start(self, ctx):
        ctx.state.add("starts")

for number in range(int(sys.argv[2])):
    engine = Engine([Counting()], state_dir=sys.argv[1])
    session = engine.attach("same")
    session.start()
    session.end()
    engine.close()
    print(session.id, flush=True)
"""


def test_sessions_that_begin_again_while_they_are_swept_fail_nowhere(state, monkeypatch):
    monkeypatch.setattr(sweeping, "AGE", -1.0)
    monkeypatch.setattr(sweeping, "PAUSE", 0.0)
    process = subprocess.Popen(
        [sys.executable, "-c", BEGIN, str(state), "150"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    removed = 0
    while process.poll() is None:
        removed += len(sweep(state))
    out, err = process.communicate()
    assert (process.returncode, out.split()) == (0, [b"same"] * 150), err
    assert removed
    for path in state.glob("*/*/*.json*"):
        assert [json.loads(line) for line in path.read_text().splitlines()]


ENDS = {
    "long ago": (b'{"state": {"ended": true}}\n' + b'{"changes": [["x"]]}\n' * 50_000, True),
    "far behind, in a line of its own": (b'{"all": {"ended": true, "x": "' + b"x" * 900_000 + b'"}}\n', True),
    "not any more": (
        b'{"all": {"ended": true}}\n{"state": {"ended": false}}\n' + b'{"changes": []}\n' * 9,
        False,
    ),
    "in a line that was never finished": (b'{"state": {"ended": false}}\n{"state": {"ended": true}}', False),
    "before one that was never finished": (b'{"state": {"ended": true}}\n{"state": {"ended": fal', True),
    "before damage": (b'{"state": {"ended": true}}\n\xff\x00\n[]\n{"state": 5}\n\n', True),
    "after more than is ever read": (b"x" * 60_000_000 + b'\n{"state": {"ended": true}}\n', True),
    "before more than is ever read": (b'{"state": {"ended": true}}\n' + b"x" * 60_000_000 + b"\n", False),
    "never": (b"", False),
}


@pytest.mark.parametrize("kind", ENDS)
def test_the_last_finished_line_with_a_state_says_whether_a_session_has_ended(state, kind):
    content, gone = ENDS[kind]
    session(state, "old", age=AGE + 60)
    file = state / "runs/old/session.jsonl"
    file.write_bytes(content)
    os.utime(file, times=(time.time() - AGE - 60,) * 2)
    assert sweep(state) == (["old"] if gone else [])


def test_no_more_of_a_file_is_read_than_its_end(state):
    session(state, "old", age=AGE + 60)
    file = state / "runs/old/session.jsonl"
    content = file.read_bytes()
    with file.open("wb") as opened:  # a hole that no disk could hold
        opened.seek(2**36)
        opened.write(b"\n" + content)
    os.utime(file, times=(time.time() - AGE - 60,) * 2)
    assert sweep(state) == ["old"]
