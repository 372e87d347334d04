"""The turn-stats plugin in a real engine: its figures, many writers, early ends, files that cannot be written."""

from __future__ import annotations

import json
import os
import sqlite3
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hookturn import Continue, Deny, Engine, Inject, Rewrite, Warn, events, hookimpl
from hookturn.paths import config_root
from hookturn_builtins.turn_stats import Config, plugin
from hookturn_builtins.turn_stats.reading import read


def engine(project: Path, *plugins: object, **options: object) -> Engine:
    made = Engine(plugins=plugins, project_dir=project, **options)  # type: ignore[arg-type]
    made.register(plugin(), "turn-stats", layer="builtin")
    return made


def figures(project: Path, session: str = "") -> dict:
    return read(str(project / ".hookturn" / "stats.sqlite"), session)


class Guarded:
    hookturn_name = "guarded"

    @hookimpl
    def pre_tool_execution(self, event):
        if "rm" in event.command:
            return Deny("no")
        if "ls" in event.command:
            return [Rewrite(command="ls -l"), Warn("rewritten")]
        return None

    @hookimpl
    def on_user_prompt_submit(self, event):
        return Inject("hint")


USAGE = {"input_tokens": 100, "output_tokens": 20, "cache_read_tokens": 7, "cache_write_tokens": 3}


def play(made: Engine, session_id: str = "s1", turns: int = 1) -> None:
    with made.session(session_id=session_id, agent="coder") as session:
        for _ in range(turns):
            session.submit("do it")
            with session.turn() as turn:
                turn.model_response(text="", usage=USAGE, model="m-1")
                turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "a")
                turn.call_tool("bash", {"command": "rm -rf /"}, execute=lambda **_: "a")
                turn.call_tool("write", {"file_path": "/p/a.txt", "content": "x"}, execute=lambda **_: "ok")
                turn.call_tool("bash", {"command": "boom"}, execute=lambda **_: 1 / 0)
                turn.model_response(text="done", usage=USAGE)


def test_a_turns_figures(tmp_path: Path) -> None:
    with engine(tmp_path, Guarded()) as made:
        play(made)
    found = figures(tmp_path, "s1")
    [turn] = found["turns"]
    assert {name: turn[name] for name in ("turn", "agent", "model", "input_tokens", "output_tokens", "cache_read_tokens",
                                          "cache_write_tokens", "denials", "rewrites", "injections", "warnings", "failures", "edited")} == {
        "turn": 1, "agent": "coder", "model": "m-1", "input_tokens": 200, "output_tokens": 40, "cache_read_tokens": 14,
        "cache_write_tokens": 6, "denials": 1, "rewrites": 1, "injections": 1, "warnings": 1, "failures": 0,
        "edited": ["/p/a.txt"],
    }  # fmt: skip
    assert turn["ended"] >= turn["started"] > 0
    assert turn["seconds"] > 0
    assert 0 < turn["hook_seconds"] < turn["seconds"] + 1
    tools = {row["tool"]: row for row in found["tools"]}
    assert tools["bash"]["by_status"] == {"ok": 1, "denied": 1, "error": 1}
    assert tools["write"]["calls"] == 1
    assert 0 <= tools["bash"]["p50"] <= tools["bash"]["p90"] <= tools["bash"]["p99"] <= tools["bash"]["max"]
    assert {name: found["hooks"][0][name] for name in ("hook", "answers", "denials", "failures")} == {
        "hook": "guarded", "answers": 4, "denials": 1, "failures": 0,
    }  # fmt: skip


def test_totals_over_turns_and_sessions(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        play(made, "s1", turns=3)
        play(made, "s2", turns=2)
    totals = figures(tmp_path)["totals"]
    assert (totals["sessions"], totals["turns"], totals["tool_calls"], totals["input_tokens"]) == (
        2,
        5,
        20,
        1000,
    )
    assert totals["edited_files"] == 1
    assert [
        row["turns"] for row in sorted(figures(tmp_path)["sessions"], key=lambda row: row["session_id"])
    ] == [3, 2]


def test_a_turn_is_written_when_it_ends(tmp_path: Path) -> None:
    made = engine(tmp_path)
    session = made.session(session_id="s1").__enter__()
    with session.turn() as turn:
        turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "")
        assert not (tmp_path / ".hookturn" / "stats.sqlite").exists()
    assert figures(tmp_path)["totals"]["tool_calls"] == 1
    session.__exit__(None, None, None)
    made.close()


def test_a_continued_turn_is_one_turn(tmp_path: Path) -> None:
    class Again:
        @hookimpl
        def on_turn_complete(self, event):
            return Continue("once more") if event.continued == 0 else None

    with engine(tmp_path, Again()) as made, made.session(session_id="s1") as session, session.turn() as turn:
        turn.model_response(text="", usage=USAGE)
        assert turn.complete("one").again
        turn.model_response(text="", usage=USAGE)
        turn.complete("two")
    [row] = figures(tmp_path, "s1")["turns"]
    assert (row["input_tokens"], row["continued"]) == (200, 1)


def test_sub_agents_have_rows_of_their_own(tmp_path: Path) -> None:
    with (
        engine(tmp_path) as made,
        made.session(session_id="s1", agent="coder") as session,
        session.turn() as turn,
    ):
        for _ in range(2):
            with turn.subagent("reviewer", agent_id="r1") as sub:
                sub.model_response(text="", usage=USAGE)
                sub.call_tool("bash", {"command": "ls"}, execute=lambda **_: "")
    rows = {row["agent_id"]: row for row in figures(tmp_path, "s1")["turns"]}
    assert (rows["r1"]["agent"], rows["r1"]["parent_agent"], rows["r1"]["input_tokens"]) == (
        "reviewer",
        "coder",
        200,
    )
    assert rows[""]["agent"] == "coder"
    assert figures(tmp_path)["totals"]["turns"] == 1
    assert figures(tmp_path)["totals"]["sub_turns"] == 1


def test_nothing_is_lost_when_a_session_ends_early(tmp_path: Path) -> None:
    made = engine(tmp_path)
    with pytest.raises(KeyboardInterrupt), made.session(session_id="s1") as session, session.turn() as turn:
        turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "")
        raise KeyboardInterrupt
    made.close()
    assert figures(tmp_path)["totals"]["tool_calls"] == 1


def test_what_is_open_is_written_at_dispose_and_other_processes_add_to_it(tmp_path: Path) -> None:
    # A bridge without a resident process: one short engine for each event.
    for number in range(3):
        with engine(tmp_path) as made:
            made.fire(
                events.PostToolExecution(tool="bash", args={}, call_id=f"c{number}", session_id="s1", turn=4)
            )
    with engine(tmp_path) as made:
        made.fire(
            events.TurnComplete(session_id="s1", turn=4, usage=USAGE, duration=2.5, edited_files=["/a"])
        )
    [row] = figures(tmp_path, "s1")["turns"]
    assert (row["turn"], row["input_tokens"], row["seconds"], row["edited"]) == (4, 100, 2.5, ["/a"])
    assert figures(tmp_path)["totals"]["tool_calls"] == 3


def test_a_very_long_turn_is_written_in_parts(tmp_path: Path) -> None:
    with engine(tmp_path) as made, made.session(session_id="s1") as session, session.turn() as turn:
        for _ in range(1100):
            turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "")
        assert figures(tmp_path)["totals"]["tool_calls"] == 1000
        turn.model_response(text="", usage=USAGE)
    totals = figures(tmp_path)["totals"]
    assert (totals["turns"], totals["tool_calls"], totals["input_tokens"]) == (1, 1100, 100)


def test_threads_and_sessions_at_once(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        threads = [threading.Thread(target=play, args=(made, f"s{number}", 5)) for number in range(6)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    totals = figures(tmp_path)["totals"]
    assert (totals["sessions"], totals["turns"], totals["tool_calls"]) == (6, 30, 120)


PROCESS = """
import sys
from hookturn import Engine
from hookturn_builtins.turn_stats import plugin
with Engine(project_dir=sys.argv[1]) as engine:
    engine.register(plugin(), "turn-stats", layer="builtin")
    with engine.session(session_id=sys.argv[2]) as session:
        for _ in range(10):
            with session.turn() as turn:
                turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "")
"""


def test_processes_share_the_file(tmp_path: Path) -> None:
    children = [subprocess.Popen([sys.executable, "-c", PROCESS, str(tmp_path), f"s{n}"]) for n in range(6)]
    assert [child.wait() for child in children] == [0] * 6
    totals = figures(tmp_path)["totals"]
    assert (totals["sessions"], totals["turns"], totals["tool_calls"]) == (6, 60, 60)


@pytest.mark.fault
def test_a_killed_process_leaves_a_file_that_opens(tmp_path: Path) -> None:
    endless = PROCESS.replace("range(10)", "range(10**9)").replace(
        "with session.turn()", "print(flush=True)\n            with session.turn()"
    )
    for _ in range(8):
        child = subprocess.Popen([sys.executable, "-c", endless, str(tmp_path), "s1"], stdout=subprocess.PIPE)
        assert child.stdout is not None
        for _ in range(30):
            child.stdout.readline()
        child.kill()
        child.stdout.close()
        child.wait()
    with engine(tmp_path) as made:
        play(made, "s2")
    connection = sqlite3.connect(tmp_path / ".hookturn" / "stats.sqlite")
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()
    assert figures(tmp_path)["totals"]["sessions"] == 2


def test_files_are_private(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        play(made)
        for path in (tmp_path / ".hookturn").glob("stats.sqlite*"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path


@pytest.mark.parametrize(
    "session", ["../../x", "a\nb", "x" * 5000, "\ud800", "a\0b", "'; DROP TABLE turns; --"]
)
def test_hostile_session_ids_are_harmless(tmp_path: Path, session: str) -> None:
    with engine(tmp_path) as made:
        play(made, session)
    assert figures(tmp_path, session)["totals"]["turns"] == 1


@pytest.mark.parametrize(
    "usage", [{"input_tokens": "many"}, {"input_tokens": float("nan")}, {"input_tokens": None}, {"other": 3}]
)
def test_odd_usage_counts_nothing(tmp_path: Path, usage: dict) -> None:
    with engine(tmp_path) as made:
        out = made.fire(events.TurnComplete(session_id="s1", turn=1, usage=usage))
    assert out.failures == ()
    assert figures(tmp_path)["totals"]["input_tokens"] == 0


def test_a_dry_run_writes_only_below_its_own_folder(tmp_path: Path) -> None:
    project, output = tmp_path / "p", tmp_path / "out"
    project.mkdir()
    with engine(project, dry_run=True, output_dir=output) as made:
        play(made)
    assert list(project.iterdir()) == []
    assert read(str(output / "stats.sqlite"))["totals"]["turns"] == 1


def test_a_file_that_cannot_be_written_is_said_once_and_caught_up_later(tmp_path: Path, hook_log) -> None:
    (tmp_path / ".hookturn" / "stats.sqlite").mkdir(parents=True)
    warned: list[str] = []
    with engine(tmp_path) as made, made.session(session_id="s1") as session:
        for number in range(3):
            if number == 2:
                (tmp_path / ".hookturn" / "stats.sqlite").rmdir()
            turn = session.turn().__enter__()
            turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "")
            warned += turn.complete("").warnings
    assert len(warned) == 1 and "cannot be written" in warned[0]
    assert len(hook_log.of("turn-stats")) == 1
    totals = figures(tmp_path)["totals"]
    assert (totals["turns"], totals["tool_calls"]) == (3, 3)


def test_a_linked_file_is_not_followed(tmp_path: Path, hook_log) -> None:
    project = tmp_path / "p"
    (project / ".hookturn").mkdir(parents=True)
    (project / ".hookturn" / "stats.sqlite").symlink_to(tmp_path / "victim")
    with engine(project) as made:
        play(made)
    assert not (tmp_path / "victim").exists()
    assert len(hook_log.of("turn-stats")) == 1


def test_the_plugin_comes_by_its_entry_point_with_checked_settings(tmp_path: Path) -> None:
    config_root().mkdir(parents=True)
    (config_root() / "hookturn.yaml").write_text("plugins:\n  turn-stats: {path: deep/figures.sqlite}\n")
    with Engine.from_project(tmp_path) as made:
        play(made)
    assert read(str(tmp_path / "deep" / "figures.sqlite"))["totals"]["turns"] == 1


def test_an_empty_path_is_refused() -> None:
    made = Config()
    made.path = ""
    with pytest.raises(ValueError, match="path"):
        made.validate()


# -- the command --------------------------------------------------------------------------------------


def hookturn(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hookturn", *words],
        capture_output=True,
        text=True,
        cwd=cwd,
        check=False,
        env=os.environ,
    )


def test_the_command_prints_tables_and_json(tmp_path: Path) -> None:
    with engine(tmp_path, Guarded()) as made:
        play(made, "s\x1b[31m1")
    done = hookturn("stats", cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 session, 1 turn, 4 tool calls, 1 denial," in done.stdout
    assert "bash" in done.stdout and "guarded" in done.stdout and "\x1b" not in done.stdout
    as_json = json.loads(hookturn("stats", "--json", "--session", "s\x1b[31m1", cwd=tmp_path).stdout)
    assert as_json["totals"]["tool_calls"] == 4
    assert as_json["turns"][0]["turn"] == 1


def test_the_command_reads_what_it_may_not_write(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        play(made)
    path = tmp_path / ".hookturn" / "stats.sqlite"
    os.chmod(path, 0o400)
    assert "4 tool calls" in hookturn("stats", str(path), cwd=tmp_path).stdout


def test_the_command_says_what_is_missing_or_wrong(tmp_path: Path) -> None:
    done = hookturn("stats", cwd=tmp_path)
    assert done.returncode == 1 and "stats.sqlite" in done.stderr
    (tmp_path / "x").write_text("no database at all, but long enough to be read as one" * 100)
    done = hookturn("stats", "x", cwd=tmp_path)
    assert done.returncode == 1 and "no statistics file" in done.stderr
