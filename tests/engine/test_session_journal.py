"""A session's state: appended to a file that several processes follow, cut short and killed at any moment."""

from __future__ import annotations

import errno
import fcntl
import json
import os
import signal
import subprocess
import sys
import threading
import time
from copy import deepcopy
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookturn.engine import journal
from hookturn.engine.history import KEPT_CALLS
from hookturn.engine.state import OWN_AREA, LiveValues, Stores

TURN = {"number": 1, "begun": 5.0, "usage": {}, "calls": [], "edited": {}, "open": {}, "closed": {}}


def opened(folder):
    return Stores(folder).values(OWN_AREA, "session", "s")


def whole(store):
    with store as data:
        return deepcopy(data)


def begin(store, agent="", begun=5.0):
    with store as data:
        data.setdefault("turns", {})[agent] = deepcopy({**TURN, "begun": begun})


agents = st.sampled_from(["", "a"])
ids = st.sampled_from(["1", "2", "3"])
steps = st.one_of(
    st.tuples(st.just("set"), st.sampled_from(["turn", "pending", "host"]), st.integers(0, 3)),
    st.tuples(st.just("turn"), agents, st.floats(0, 3)),
    st.tuples(st.just("usage"), agents, st.integers(0, 3)),
    st.tuples(st.just("end"), agents),
    st.tuples(st.just("open"), agents, ids, st.dictionaries(st.sampled_from(["tool", "args"]), st.text())),
    st.tuples(st.just("close"), agents, ids, st.dictionaries(st.just("status"), st.text())),
    st.tuples(st.just("call"), agents, ids, st.lists(st.text(), max_size=2)),
    st.tuples(st.just("fails"), agents),
)


def carry_out(store, step):
    kind, name, *rest = step
    if kind == "fails":
        with pytest.raises(ZeroDivisionError), store as data:
            data["turns"] = {}
            raise ZeroDivisionError
        return
    with store as data:
        turns = data.setdefault("turns", {})
        if kind == "set":
            data[name] = rest[0]
        elif kind == "turn":
            turns.setdefault(name, deepcopy({**TURN, "begun": rest[0]}))
        elif kind == "end":
            turns.pop(name, None)
        elif name in turns and kind == "usage":
            turns[name]["usage"]["in"] = rest[0]
        elif name in turns:
            store.change([kind, name, *rest])


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 2), steps), max_size=40), st.sampled_from([0, 200, 1 << 20]))
def test_whoever_changes_it_all_know_what_one_memory_would(tmp_path_factory, course, rewrite):
    folder = tmp_path_factory.mktemp("j")
    before, journal.REWRITE = journal.REWRITE, rewrite
    try:
        stores, memory = [opened(folder) for _ in range(2)], LiveValues()
        for who, step in course:
            # A third process is new at each step.
            carry_out(opened(folder) if who == 2 else stores[who], step)
            if step[0] != "fails":
                carry_out(memory, step)
            assert all(
                store.get("turns") == memory.get("turns") and store.get("turn") == memory.get("turn")
                for store in stores
            )
        expected = whole(memory)
        assert all(whole(store) == expected for store in [*stores, opened(folder)])
        for store in stores:
            store.close()
    finally:
        journal.REWRITE = before


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.sampled_from(["", "write", "part", "make", "all"]), steps), max_size=30),
    st.sampled_from([0, 200, 1 << 20]),
)
def test_what_cannot_be_written_is_known_here_and_stored_as_soon_as_it_can_be(
    tmp_path_factory, course, rewrite
):
    """A disk that is full now and then: at a write, in the middle of one, when files are made."""
    folder = tmp_path_factory.mktemp("full")
    real = journal.write_all, journal.open_private, journal.private_folder, journal.REWRITE
    full = ""

    def write_all(fd, data):
        if full == "part":
            os.write(fd, data[: len(data) // 2])
        if full in ("write", "part", "all"):
            raise OSError(errno.ENOSPC, "No space left on device")
        real[0](fd, data)

    def open_private(path, flags=os.O_RDONLY, **more):
        if full in ("make", "all") and flags & os.O_CREAT and not os.path.exists(path):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real[1](path, flags, **more)

    def private_folder(path, **more):
        if full == "all" and not os.path.isdir(path):
            raise OSError(errno.ENOSPC, "No space left on device")
        return real[2](path, **more)

    journal.write_all, journal.open_private, journal.private_folder = write_all, open_private, private_folder
    journal.REWRITE = rewrite
    try:
        store, memory = opened(folder), LiveValues()
        for how, step in course:
            full = how
            carry_out(store, step)
            if step[0] != "fails":
                carry_out(memory, step)
            assert whole(store) == whole(memory)
        full = ""
        assert whole(store) == whole(opened(folder)) == whole(memory)
        assert store.trouble == ""
        store.close()
    finally:
        journal.write_all, journal.open_private, journal.private_folder, journal.REWRITE = real


def test_a_relative_folder_that_cannot_be_made(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("state").write_text("a file in its place")
    store = opened("state")
    store.set("turn", 1)
    assert store.get("turn") == 1


def test_what_others_could_store_meanwhile_counts(tmp_path, monkeypatch):
    one, other = opened(tmp_path), opened(tmp_path)
    one.set("turn", 1)
    with monkeypatch.context() as full:

        def fails(fd, data):
            raise OSError(errno.ENOSPC, "No space left on device")

        full.setattr(journal, "write_all", fails)
        one.set("turn", 2)
        assert one.get("turn") == 2
    other.set("turn", 3)
    assert one.get("turn") == 3
    one.set("host", {})
    assert whole(other) == whole(one) == {"turn": 3, "host": {}}


def test_what_cannot_be_read_is_no_empty_state(tmp_path, monkeypatch):
    """It may hold a refusal."""
    opened(tmp_path).set("turn", 1)
    one = opened(tmp_path)

    def fails(*_, **__):
        raise OSError(errno.EMFILE, "Too many open files")

    monkeypatch.setattr(journal, "open_private", fails)
    for use in (lambda: one.get("turn"), lambda: whole(one), lambda: one.set("turn", 2)):
        with pytest.raises(OSError, match="Too many open files"):
            use()


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.sampled_from("abcr"), st.booleans()), max_size=25), st.booleans())
def test_who_heeds_keeps_what_he_did_until_he_asks_what_others_did(tmp_path_factory, course, apart):
    """A disk that is full now and then; ``a`` and ``b`` change, ``c`` is a heeding one, ``r`` its end of a call."""
    folder = tmp_path_factory.mktemp("heeded")
    real = journal.write_all
    full = False

    def write_all(fd, data):
        if full:
            os.write(fd, data[: len(data) // 2])
            raise OSError(errno.ENOSPC, "No space left on device")
        real(fd, data)

    journal.write_all = write_all
    try:
        one, other = opened(folder), opened(folder)
        one.heeded = other.heeded = True
        mine = {}
        for number, (full, who, idle) in enumerate(course):
            if who in "ac":
                one.set(who, number)
                mine[who] = number
            elif who == "b":
                other.set(who, number)
                other.retry()
            else:
                stored = one.retry()
                assert stored or full or one.drops
                mine = {}
            if idle and apart:
                one.idle()
                other.idle()
            known = whole(one)
            assert {key: known[key] for key in mine} == mine
        full = False
        one.retry()
        other.retry()
        assert whole(one) == whole(other) == whole(opened(folder))
        assert one.trouble == other.trouble == ""
        one.close()
        other.close()
    finally:
        journal.write_all = real


def test_what_is_heeded_is_told_by_nobody_else(tmp_path, hook_log):
    (tmp_path / "runs").write_text("a file in its place")
    for heeded in (True, False):
        one = opened(tmp_path)
        one.heeded = heeded
        one.set("turn", 1)
        one.set("turn", 2)
        assert str(tmp_path / "runs") in one.trouble
        assert len(hook_log) == (not heeded)
    assert "make room" in hook_log[0]["message"]


def test_a_log_that_cannot_be_loaded_costs_nothing(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "loguru", None)
    (tmp_path / "runs").write_text("a file in its place")
    one = opened(tmp_path)
    one.set("turn", 1)
    assert one.get("turn") == 1


def test_a_line_without_its_end_never_happened(tmp_path):
    one = opened(tmp_path)
    begin(one)
    with one as data:
        data["turn"] = 7
    good = Path(one.path).read_bytes()
    with Path(one.path).open("ab") as file:
        file.write(b'{"state":{"turn":8}}')
    assert one.get("turn") == opened(tmp_path).get("turn") == 7
    with opened(tmp_path) as data:
        data["turn"] += 2
    assert one.get("turn") == opened(tmp_path).get("turn") == 9
    assert Path(one.path).read_bytes().startswith(good)
    assert all(json.loads(line) for line in Path(one.path).read_text().splitlines())


@settings(max_examples=100, deadline=None)
@given(where=st.floats(0, 1, exclude_max=True), bit=st.integers(0, 7))
def test_a_bit_that_flips_makes_no_other_state(where, bit, tmp_path_factory):
    """What is read is what was once stored, or nothing: never a state that nobody wrote."""
    folder = tmp_path_factory.mktemp("flip")
    one = opened(folder)
    known = [{}]
    begin(one)
    known.append(whole(one))
    for number in range(3):
        with one as data:
            data["blocked"] = ["a guard", f"no {number}"]
            one.change(["open", "", f"c{number}", {"tool": "Bash", "args": {}}])
        known.append(whole(one))
    one.close()
    path = Path(one.path)
    content = bytearray(path.read_bytes())
    content[int(where * len(content))] ^= 1 << bit
    path.write_bytes(content)
    assert whole(opened(folder)) in known


@pytest.mark.parametrize(
    "line", [b"[]\n", b"\0\0\0\n", b'{"all":3}\n', b'{"changes":[["open","x","1",{}]]}\n', b"\n"]
)
def test_a_damaged_file_is_put_aside(tmp_path, line):
    one = opened(tmp_path)
    one.set("turn", 7)
    with Path(one.path).open("ab") as file:
        file.write(line)
    assert opened(tmp_path).get("turn") is None
    assert one.get("turn") is None
    assert Path(one.path).with_suffix(".damaged").exists()
    one.set("turn", 1)
    assert opened(tmp_path).get("turn") == 1


def test_it_stays_small_over_many_calls_and_a_turn_forgets_its_calls(tmp_path):
    one, other = opened(tmp_path), opened(tmp_path)
    for number in range(30):
        begin(one, begun=float(number))
        for call in range(40):
            for store, change in (
                (one, ["open", "", str(call), {"tool": "bash", "args": {"command": "x" * 100}}]),
                (other, ["close", "", str(call), {"status": "ok"}]),
            ):
                with store:
                    store.change(change)
        assert len(other.get("turns")[""]["closed"]) == 40
        assert Path(one.path).stat().st_size < 2 * journal.REWRITE
    assert whole(one) == whole(other) == whole(opened(tmp_path))


def test_closed_calls_are_remembered_up_to_a_number(tmp_path):
    one = opened(tmp_path)
    begin(one)
    for number in range(KEPT_CALLS + 5):
        with one:
            one.change(["close", "", str(number), {}])
    assert list(opened(tmp_path).get("turns")[""]["closed"]) == [str(n) for n in range(5, KEPT_CALLS + 5)]


def test_a_change_that_changes_nothing_writes_nothing(tmp_path):
    one = opened(tmp_path)
    one.set("turn", 1)
    size = Path(one.path).stat().st_size
    os.utime(one.path, (1, 1))
    with one:
        pass
    assert Path(one.path).stat().st_size == size
    assert time.time() - Path(one.path).stat().st_mtime < 60  # but the session is alive
    one.set("turn", 1)
    assert Path(one.path).stat().st_size == size


def test_what_json_cannot_hold_changes_nothing(tmp_path):
    one = opened(tmp_path)
    one.set("turn", 1)
    for value in (object(), float("nan")):
        with pytest.raises((TypeError, ValueError)):
            one.set("turn", value)
        assert one.get("turn") == opened(tmp_path).get("turn") == 1


def test_files_stay_open_up_to_a_number(tmp_path):
    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    if not Path("/proc/self/fd").is_dir():
        pytest.skip("counts in /proc")
    stores = Stores(tmp_path)
    before = descriptors()
    for _ in range(2):
        for number in range(200):
            with stores.values(OWN_AREA, "session", str(number)) as data:
                data["turn"] = data.get("turn", 0) + 1
            stores.values(OWN_AREA, "session", str(number)).get("turn")
    assert descriptors() <= before + 2 * journal.MOST_OPEN
    assert all(stores.values(OWN_AREA, "session", str(number)).get("turn") == 2 for number in range(200))
    for number in range(200):
        stores.forget(str(number))
    assert descriptors() <= before


def test_a_lock_that_is_never_given_back_costs_its_time_once_and_no_change(tmp_path, monkeypatch, hook_log):
    """Its holder was stopped. What others had stored is known, and stays."""
    monkeypatch.setattr(journal, "PATIENCE", 0.2)
    mine, others = opened(tmp_path), opened(tmp_path)
    with others as data:
        data["turn"] = 3
    (lock,) = tmp_path.rglob("*.lock")
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with mine as data:
            data["pending"] = data["turn"] + 1
        assert "locked by somebody else" in mine.trouble
        assert mine.get("pending") == 4
    with mine as data:
        data["host"] = 5
    assert mine.trouble == ""
    known = opened(tmp_path)
    assert [known.get(key) for key in ("turn", "pending", "host")] == [3, 4, 5]
    assert len(hook_log.of("hookturn")) == 1


def test_a_symbolic_link_is_not_written_through(tmp_path):
    one = opened(tmp_path / "state")
    Path(one.path).parent.mkdir(parents=True)
    (tmp_path / "mine").write_text("mine")
    Path(one.path).symlink_to(tmp_path / "mine")
    with pytest.raises(OSError, match="symbolic link"):
        one.set("turn", 1)
    assert (tmp_path / "mine").read_text() == "mine"


def test_threads_exclude_each_other(tmp_path):
    stores = [opened(tmp_path) for _ in range(2)]

    def count(store):
        for _ in range(200):
            with store as data:
                data["n"] = data.get("n", 0) + 1

    threads = [threading.Thread(target=count, args=(store,)) for store in stores * 2]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert stores[0].get("n") == stores[1].get("n") == 800


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_forked_child_excludes_its_parent(tmp_path):
    one = opened(tmp_path)
    one.set("n", 0)
    children = []
    for _ in range(3):
        child = os.fork()
        if child == 0:
            try:
                for _ in range(100):
                    with one as data:
                        data["n"] += 1
            finally:
                os._exit(0)
        children.append(child)
    for _ in range(100):
        with one as data:
            data["n"] += 1
    for child in children:
        os.waitpid(child, 0)
    assert one.get("n") == 400


WRITER = """
import sys
from hookturn.engine import journal
from hookturn.engine.state import OWN_AREA, Stores

journal.REWRITE = 2000
store = Stores(sys.argv[1]).values(OWN_AREA, "session", "s")
print("begun", flush=True)
while True:
    with store as data:
        data["n"] = data.get("n", 0) + 1
        store.change(["open", "", str(data["n"]), {"args": "x" * 300}])
        store.change(["close", "", str(data["n"]), {}])
        n = data["n"]
    sys.stdout.write(f"{n}\\n")
    sys.stdout.flush()
"""


@pytest.mark.fault
def test_what_was_stored_survives_the_kill_of_its_writers(tmp_path):
    one = opened(tmp_path)
    begin(one)
    for number in range(12):
        writers = [
            subprocess.Popen([sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE)
            for _ in range(2)
        ]
        for writer in writers:
            assert writer.stdout is not None
            writer.stdout.readline()
        time.sleep(0.01 + 0.003 * number)
        said = []
        for writer in writers:
            writer.send_signal(signal.SIGKILL)
        for writer in writers:
            assert writer.stdout is not None
            lines = writer.stdout.read().split(b"\n")[:-1]
            writer.wait()
            writer.stdout.close()
            said += [int(line) for line in lines]
        assert len(said) == len(set(said)), "two writers stored the same number"
        state = whole(opened(tmp_path))
        assert state == whole(one)
        assert state.get("n", 0) >= max(said, default=0)
        closed = [int(key) for key in state["turns"][""]["closed"]]
        assert closed == list(range(max(1, state.get("n", 0) - KEPT_CALLS + 1), state.get("n", 0) + 1))
        assert not state["turns"][""]["open"]
    assert not list(Path(one.path).parent.glob("*.damaged"))
