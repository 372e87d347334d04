"""Figures of processes that end in the middle of a turn, as each call of an agent without a resident process does."""

from __future__ import annotations

import os
import sqlite3
import stat
import sys
import threading
from contextlib import closing
from pathlib import Path

import pytest

from hookturn import Engine, events
from hookturn.paths import FileLock
from hookturn_builtins.turn_stats import plugin
from hookturn_builtins.turn_stats.reading import read

SECRET = "ghp_" + "a1B2c3D4e5" * 3 + "f6G7h8"


def call(project: Path, number: int, session: str = "s") -> None:
    """Do what one call's process does: a tool call ends, and the engine is closed."""
    with Engine(project_dir=project) as engine:
        engine.register(plugin(), "turn-stats", layer="builtin")
        engine.fire(
            events.PostToolExecution(
                session_id=session, turn=1, tool="Bash", kind="bash", args={}, call_id=f"c{number}", status="ok",
                duration=0.5, time=1000.0 + number,
            )
        )  # fmt: skip


def complete(project: Path) -> list[str]:
    """Do what the last call of a turn does; returns what the user is told."""
    with Engine(project_dir=project) as engine:
        engine.register(plugin(), "turn-stats", layer="builtin")
        event = events.TurnComplete(
            session_id="s", turn=1, duration=9.0, usage={"input_tokens": 3}, time=2000.0
        )
        return [str(warning) for warning in engine.fire(event).warnings]


def file_of(project: Path) -> Path:
    return project / ".hookturn" / "stats.sqlite"


def waiting(project: Path) -> list[Path]:
    return sorted((project / ".hookturn").glob("stats.sqlite.waiting*"))


def calls(project: Path) -> int:
    count: int = read(str(file_of(project)))["totals"]["tool_calls"]
    return count


def test_what_waits_is_counted_once_by_who_reads(tmp_path: Path) -> None:
    for number in range(4):
        call(tmp_path, number)
    [file] = waiting(tmp_path)
    assert len(file.read_bytes().splitlines()) == 3  # the first call made the statistics file
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [calls(tmp_path), calls(tmp_path)] == [4, 4]
    assert waiting(tmp_path) == []
    call(tmp_path, 4)
    assert calls(tmp_path) == 5


def test_the_turns_own_totals_come_last(tmp_path: Path) -> None:
    for number in range(3):
        call(tmp_path, number)
    complete(tmp_path)
    assert waiting(tmp_path) == []
    [turn] = read(str(file_of(tmp_path)), "s")["turns"]
    assert (turn["tool_calls"], turn["input_tokens"], turn["seconds"], turn["started"]) == (3, 3, 9.0, 1000.0)


def test_a_kill_before_or_after_it_is_counted_counts_nothing_twice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        call(tmp_path, number)
    with monkeypatch.context() as killed:
        killed.setattr("hookturn_builtins.turn_stats.spool.drop", lambda files: None)
        assert calls(tmp_path) == 3
    assert len(waiting(tmp_path)) == 1  # counted, and still there
    call(tmp_path, 3)
    assert calls(tmp_path) == 4
    assert waiting(tmp_path) == []

    call(tmp_path, 4)
    [file] = waiting(tmp_path)
    file.rename(f"{file}-0123456789abcdef")  # named, and not counted
    assert [calls(tmp_path), waiting(tmp_path)] == [5, []]


def test_lines_that_are_none_of_ours_cost_only_themselves(tmp_path: Path) -> None:
    call(tmp_path, 0)
    call(tmp_path, 1)
    [file] = waiting(tmp_path)
    good = file.read_bytes()
    wrong = good.replace(b'"hooks": {}', b'"hooks": {"x": 1}').replace(b'"turn": 1', b'"turn": 7')
    assert wrong != good
    file.write_bytes(b"[]\n{}\n\xff\n" + wrong + good + good[:-20])
    assert calls(tmp_path) == 2
    assert [turn["turn"] for turn in read(str(file_of(tmp_path)), "s")["turns"]] == [1]


def test_too_much_that_waits_is_counted_by_who_ends(tmp_path: Path) -> None:
    call(tmp_path, 0)
    call(tmp_path, 1)
    [file] = waiting(tmp_path)
    with file.open("ab") as opened:
        opened.write(b"\n" * 300_000)
    call(tmp_path, 2)
    assert waiting(tmp_path) == []
    assert calls(tmp_path) == 3


def test_a_secret_does_not_wait_either(tmp_path: Path) -> None:
    call(tmp_path, 0)
    call(tmp_path, 1, session=SECRET)
    [file] = waiting(tmp_path)
    assert SECRET.encode() not in file.read_bytes()
    assert read(str(file_of(tmp_path)))["totals"]["tool_calls"] == 2


def test_a_link_is_not_followed(tmp_path: Path) -> None:
    call(tmp_path, 0)
    mine = tmp_path / "mine"
    mine.write_text("mine")
    (tmp_path / ".hookturn" / "stats.sqlite.waiting").symlink_to(mine)
    call(tmp_path, 1)
    assert calls(tmp_path) == 1
    call(tmp_path, 2)
    assert (calls(tmp_path), mine.read_text()) == (2, "mine")


def test_what_cannot_be_removed_costs_nothing(tmp_path: Path) -> None:
    for number in range(3):
        call(tmp_path, number)
    (file_of(tmp_path).parent / "stats.sqlite.waiting-1").mkdir()
    assert [complete(tmp_path), complete(tmp_path)] == [[], []]
    assert calls(tmp_path) == 3


def test_what_was_counted_is_not_remembered_for_ever(tmp_path: Path) -> None:
    call(tmp_path, 0)
    for number in range(1, 6):
        call(tmp_path, number)
        assert calls(tmp_path) == number + 1
    with closing(sqlite3.connect(file_of(tmp_path))) as connection:
        assert connection.execute("SELECT count(*) FROM taken").fetchone()[0] <= 1
        assert connection.execute("PRAGMA user_version").fetchone()[0] == 3


def test_a_file_of_before_that_remembers_what_was_counted_goes_on(tmp_path: Path) -> None:
    for number in range(3):
        call(tmp_path, number)
    with pytest.MonkeyPatch.context() as killed:
        killed.setattr("hookturn_builtins.turn_stats.spool.drop", lambda files: None)
        assert calls(tmp_path) == 3
    with closing(sqlite3.connect(file_of(tmp_path))) as connection:
        connection.execute("PRAGMA user_version = 2")
    call(tmp_path, 3)
    assert [calls(tmp_path), waiting(tmp_path)] == [4, []]


def test_who_waits_for_the_files_lock_holds_up_no_other_writer(tmp_path: Path) -> None:
    with Engine(project_dir=tmp_path) as engine:
        engine.register(plugin(), "turn-stats", layer="builtin")
        engine.fire(events.TurnComplete(session_id="s", turn=1, time=2000.0))  # the file stays open
        call(tmp_path, 0)
        assert waiting(tmp_path)
        last = events.TurnComplete(session_id="s", turn=2, time=3000.0)
        counting = threading.Thread(target=engine.fire, args=(last,))
        with closing(sqlite3.connect(file_of(tmp_path), timeout=0, isolation_level=None)) as connection:
            # As who opens the file: its lock first, then SQLite's.
            with FileLock(f"{file_of(tmp_path)}.lock", timeout=5):
                counting.start()
                for _ in range(20):
                    connection.execute("BEGIN IMMEDIATE")
                    connection.execute("ROLLBACK")
                    counting.join(0.02)
                assert counting.is_alive()
            counting.join()
        assert waiting(tmp_path) == []
    assert calls(tmp_path) == 1


@pytest.mark.skipif(sys.platform != "linux", reason="names of files are bytes there")
def test_an_odd_name_costs_nothing(tmp_path: Path) -> None:
    for number in range(2):
        call(tmp_path, number)
    odd = os.fsencode(file_of(tmp_path)) + b".waiting-\xff"
    with open(odd, "wb"):
        assert calls(tmp_path) == 2
    assert waiting(tmp_path) == []
