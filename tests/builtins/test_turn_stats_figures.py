"""What turn-stats can tell: percentiles, times, shares, ranges; older files; plots and Prometheus' text."""

from __future__ import annotations

import json
import os
import re
import sqlite3
import subprocess
import sys
from array import array
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn import Engine, Warn, events, hookimpl
from hookturn_builtins.console import moment
from hookturn_builtins.turn_stats import plugin
from hookturn_builtins.turn_stats.plots import bar
from hookturn_builtins.turn_stats.reading import quantile, read
from hookturn_builtins.turn_stats.store import Store

USAGE = {"input_tokens": 100, "output_tokens": 20}

# A file of the first version, as `sqlite3 .dump` tells it.
FIRST_VERSION = """
CREATE TABLE turns (
    session_id TEXT NOT NULL, agent_id TEXT NOT NULL, turn INTEGER NOT NULL,
    agent TEXT NOT NULL, parent_agent TEXT NOT NULL, host TEXT NOT NULL, model TEXT NOT NULL,
    started REAL NOT NULL, ended REAL, seconds REAL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL, cache_write_tokens INTEGER NOT NULL,
    denials INTEGER NOT NULL, rewrites INTEGER NOT NULL, replies INTEGER NOT NULL, injections INTEGER NOT NULL,
    warnings INTEGER NOT NULL, failures INTEGER NOT NULL, continued INTEGER NOT NULL,
    fires INTEGER NOT NULL, hook_seconds REAL NOT NULL, edited TEXT NOT NULL,
    PRIMARY KEY (session_id, agent_id, turn)
);
CREATE TABLE calls (
    session_id TEXT NOT NULL, agent_id TEXT NOT NULL, turn INTEGER NOT NULL,
    time REAL NOT NULL, call_id TEXT NOT NULL, tool TEXT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL,
    seconds REAL NOT NULL
);
CREATE INDEX calls_by_turn ON calls (session_id, agent_id, turn);
CREATE TABLE hooks (
    session_id TEXT NOT NULL, agent_id TEXT NOT NULL, turn INTEGER NOT NULL, hook TEXT NOT NULL,
    answers INTEGER NOT NULL, denials INTEGER NOT NULL, failures INTEGER NOT NULL, would INTEGER NOT NULL,
    PRIMARY KEY (session_id, agent_id, turn, hook)
);
INSERT INTO turns VALUES('old','',1,'coder','','','m-1',1700000000.0,1700000009.0,9.0,100,20,0,0,1,0,0,0,0,0,0,12,0.5,'["/a"]');
INSERT INTO calls VALUES('old','',1,1700000001.0,'c1','bash','bash','ok',2.0);
INSERT INTO hooks VALUES('old','',1,'guard',3,1,0,0);
PRAGMA user_version = 1;
"""


def engine(project: Path, *plugins: object, **options: object) -> Engine:
    made = Engine(plugins=plugins, project_dir=project, **options)  # type: ignore[arg-type]
    made.register(plugin(), "turn-stats", layer="builtin")
    return made


def file_of(project: Path) -> str:
    return str(project / ".hookturn" / "stats.sqlite")


def old_file(project: Path) -> Path:
    (project / ".hookturn").mkdir()
    path = project / ".hookturn" / "stats.sqlite"
    connection = sqlite3.connect(path)
    connection.executescript(FIRST_VERSION)
    connection.close()
    return path


def hookturn(*words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hookturn", *words],
        capture_output=True, text=True, encoding="utf-8", cwd=cwd, check=False, env={**os.environ, **env},
    )  # fmt: skip


# -- figures ------------------------------------------------------------------------------------------


def test_latencies_are_by_tool_turn_and_session(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        for turn, seconds in ((1, range(1, 101)), (2, [7])):
            for number in seconds:
                made.fire(
                    events.PostToolExecution(
                        tool="bash",
                        args={},
                        call_id=f"{turn}.{number}",
                        session_id="s1",
                        turn=turn,
                        duration=number,
                    )
                )
            made.fire(
                events.PostToolExecution(tool="bash", args={}, session_id="s1", turn=turn, status="denied")
            )
            made.fire(events.TurnComplete(session_id="s1", turn=turn))
        made.fire(events.PostToolExecution(tool="bash", args={}, session_id="s2", turn=1, duration=1000))
    figures = read(file_of(tmp_path), "s1")
    first, second = figures["turns"]
    assert {name: first["tools"][0][name] for name in ("calls", "by_status", "ran", "p50", "p90", "p99", "max")} == {
        "calls": 101, "by_status": {"ok": 100, "denied": 1}, "ran": 100, "p50": 50, "p90": 90, "p99": 99, "max": 100,
    }  # fmt: skip
    assert (second["tools"][0]["p99"], second["tool_seconds"], second["tool_calls"]) == (7, 7, 2)
    assert (figures["tools"][0]["max"], figures["totals"]["tool_seconds"]) == (100, 5057)
    assert read(file_of(tmp_path))["tools"][0]["max"] == 1000


def test_a_call_whose_end_was_never_told_took_no_known_time(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        for status, seconds in (("ok", 2), ("unknown", 40_000), ("denied", 0)):
            made.fire(
                events.PostToolExecution(
                    tool="bash",
                    args={},
                    call_id=status,
                    session_id="s1",
                    turn=1,
                    status=status,
                    duration=seconds,
                )
            )
        made.fire(events.TurnComplete(session_id="s1", turn=1))
    figures = read(file_of(tmp_path), "s1")
    row = figures["tools"][0]
    assert (row["calls"], row["ran"], row["seconds"], row["max"]) == (3, 2, 2, 2)
    assert figures["totals"]["tool_seconds"] == figures["turns"][0]["tool_seconds"] == 2


@given(
    st.lists(st.floats(0, 1e9), min_size=1, max_size=300).map(sorted), st.sampled_from([0.5, 0.9, 0.99, 1.0])
)
def test_a_quantile_is_the_smallest_value_that_enough_do_not_exceed(
    values: list[float], share: float
) -> None:
    found = quantile(array("d", values), share)
    assert found in values
    exact = Fraction(str(share))
    assert Fraction(sum(value <= found for value in values), len(values)) >= exact
    assert Fraction(sum(value < found for value in values), len(values)) < exact


def test_the_models_time_is_what_passes_before_its_answers(tmp_path: Path) -> None:
    with engine(tmp_path) as made:

        def fire(kind: type[events.Event], time: float, **fields: object) -> None:
            made.fire(kind(session_id="s1", turn=1, time=time, **fields))  # type: ignore[arg-type]

        fire(events.TurnStart, 1000.0)
        fire(events.SystemPrompt, 1001.0, parts=[])
        fire(events.ModelResponse, 1005.0, model="m-1", usage=USAGE)
        fire(events.PostToolExecution, 1010.0, tool="bash", args={}, duration=5.0)
        fire(events.ModelResponse, 1013.0, model="m-2")
        fire(events.TurnComplete, 1014.0, duration=14.0)
    [turn] = read(file_of(tmp_path), "s1")["turns"]
    # Less the time of the hooks before it.
    assert 6.9 < turn["model_seconds"] <= 7.0
    assert (turn["responses"], turn["tool_seconds"], turn["model"]) == (2, 5.0, "m-2")


def test_the_models_time_is_unknown_where_nobody_saw_it_begin(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        made.fire(events.ModelResponse(session_id="s1", turn=1, usage=USAGE))
    figures = read(file_of(tmp_path), "s1")
    assert figures["turns"][0]["model_seconds"] is None
    assert figures["totals"]["model_seconds"] is None
    assert figures["turns"][0]["responses"] == 1


def test_a_replays_system_prompt_is_no_begin_of_the_model(tmp_path: Path) -> None:
    with engine(tmp_path, dry_run=True, output_dir=tmp_path / "out") as made:
        about = {"session_id": "s1", "turn": 1}
        made.fire(events.TurnStart(**about, time=1000.0))
        made.fire(events.SystemPrompt(**about, time=1005.0, parts=[]))
        made.fire(events.ModelResponse(**about, time=1005.0))
    assert read(str(tmp_path / "out" / "stats.sqlite"))["totals"]["model_seconds"] == 5.0


class Slow:
    hookturn_name = "slow"

    @hookimpl
    def pre_tool_execution(self, event):
        return Warn("x" if sum(range(200_000)) else "y")


class Quiet:
    hookturn_name = "quiet"

    @hookimpl
    def pre_tool_execution(self, event):
        return None


@pytest.mark.parametrize("measure", [False, True])
def test_each_hooks_share_is_told(tmp_path: Path, measure: bool) -> None:
    call = events.PreToolExecution(tool="bash", args={}, session_id="s1", turn=1)
    with engine(tmp_path, Slow(), Quiet()) as made:
        made.fire(call, measure=measure)
        made.fire(call, measure=measure)
        made.fire(events.TurnComplete(session_id="s1", turn=1))
    slow, quiet = read(file_of(tmp_path))["hooks"]
    assert (slow["hook"], slow["answers"], slow["calls"]) == ("slow", 2, 2)
    assert (quiet["hook"], quiet["answers"], quiet["calls"]) == ("quiet", 0, 2)
    assert slow["share"] + quiet["share"] == pytest.approx(1)
    assert slow["share"] > quiet["share"] > 0
    [timing] = [row for row in read(file_of(tmp_path))["timings"] if row["timing"] == "pre_tool_execution"]
    assert timing["fires"] == 2
    assert timing["seconds"] > slow["seconds"]


def test_only_turns_that_began_since_then(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        for turn in (1, 2, 3):
            about = {"session_id": "s1", "turn": turn}
            made.fire(events.TurnStart(**about, time=1000.0 * turn))
            made.fire(events.PostToolExecution(**about, tool=f"t{turn}", args={}, time=1000.0 * turn + 1))
            made.fire(events.TurnComplete(**about, time=1000.0 * turn + 2, usage=USAGE))
    figures = read(file_of(tmp_path), since=2000.0)
    assert [row["tool"] for row in figures["tools"]] == ["t2", "t3"]
    assert (figures["totals"]["turns"], figures["totals"]["input_tokens"]) == (2, 200)
    shown = json.loads(hookturn("stats", "--json", "--since", "1970-01-01T00:50:00Z", cwd=tmp_path).stdout)
    assert [row["tool"] for row in shown["tools"]] == ["t3"]
    assert json.loads(hookturn("stats", "--json", "--since", "1h", cwd=tmp_path).stdout)["sessions"] == []


def test_times_that_since_takes() -> None:
    import time

    now = time.time()
    for text, seconds in (("90s", 90), ("30m", 1800), ("12h", 43_200), ("7d", 604_800), ("2w", 1_209_600)):
        assert moment(text) == pytest.approx(now - seconds, abs=60)
    assert moment("1970-01-02T00:00:00Z") == 86_400
    assert moment("9" * 400 + "w") == 0
    for text in ("yesterday", "d", "-3d", "3y", "²d"):
        assert moment(text) is None


@pytest.mark.parametrize("value", [float("nan"), float("inf"), -1.0, 10**30])
def test_odd_numbers_of_a_host_do_not_stop_the_rest(tmp_path: Path, value: float) -> None:
    with engine(tmp_path) as made:
        made.fire(
            events.PostToolExecution(
                tool="bash", args={}, session_id="s1", turn=1, duration=value, time=value
            )
        )
        made.fire(
            events.TurnComplete(
                session_id="s1",
                turn=10**30 if isinstance(value, int) else 1,
                usage={"input_tokens": value},
                duration=value,
            )
        )
        made.fire(events.TurnComplete(session_id="s2", turn=1, usage=USAGE))
    figures = read(file_of(tmp_path))
    assert figures["totals"]["sessions"] == 2
    assert figures["tools"][0]["calls"] == 1


# -- older, newer and damaged files ----------------------------------------------------------------------


def test_an_older_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = old_file(tmp_path)
    before = path.read_bytes()
    figures = read(str(path), "old")
    assert figures["totals"]["tool_calls"] == 1
    assert figures["turns"][0]["model_seconds"] is None
    assert (figures["hooks"][0]["answers"], figures["hooks"][0]["share"]) == (3, None)
    assert path.read_bytes() == before


def test_an_older_file_is_migrated_when_it_is_written(tmp_path: Path) -> None:
    path = old_file(tmp_path)
    with engine(tmp_path) as made:
        made.fire(events.TurnComplete(session_id="new", turn=1, usage=USAGE))
    figures = read(str(path))
    assert (figures["totals"]["sessions"], figures["totals"]["input_tokens"]) == (2, 200)
    assert figures["totals"]["hook_seconds"] >= 0.5
    assert {row["session_id"] for row in figures["sessions"]} == {"old", "new"}


def test_many_processes_may_migrate_at_once(tmp_path: Path) -> None:
    path = old_file(tmp_path)
    code = (
        "import sys; from hookturn_builtins.turn_stats.store import Store;"
        "Store(sys.argv[1], sys.argv[2]).close()"
    )
    words = [sys.executable, "-c", code, str(path), str(tmp_path)]
    children = [subprocess.Popen(words) for _ in range(6)]
    assert [child.wait() for child in children] == [0] * 6
    assert read(str(path))["totals"]["tool_calls"] == 1


def test_a_newer_file_is_left_alone(tmp_path: Path, hook_log) -> None:
    path = old_file(tmp_path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with engine(tmp_path) as made:
        out = made.fire(events.TurnComplete(session_id="s1", turn=1))
    assert "a newer hookturn made it" in out.warnings[0]
    assert sorted(item.name for item in path.parent.glob("stats.sqlite.d*")) == []
    done = hookturn("stats", cwd=tmp_path)
    assert done.returncode == 1
    assert "a newer hookturn made it" in done.stderr


def test_a_damaged_file_is_kept_and_begun_anew(tmp_path: Path, hook_log) -> None:
    path = old_file(tmp_path)
    path.write_bytes(b"damaged, as after a bad disk. " * 500)
    with engine(tmp_path) as made:
        first = made.fire(events.TurnComplete(session_id="s1", turn=1))
        second = made.fire(events.TurnComplete(session_id="s1", turn=2))
    assert "stats.sqlite.damaged-1" in first.warnings[0]
    assert second.warnings == ()
    assert (path.parent / "stats.sqlite.damaged-1").read_bytes().startswith(b"damaged")
    assert read(str(path))["totals"]["turns"] == 2


def test_turns_of_sessions_that_never_end_do_not_wait_for_ever(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        for number in range(700):
            for turn in (1, 1):
                made.fire(events.ModelResponse(session_id=f"s{number}", turn=turn, usage=USAGE))
        totals = read(file_of(tmp_path))["totals"]
        assert 100 <= totals["turns"] <= 250
        made.fire(events.ModelResponse(session_id="s0", turn=1, usage=USAGE))
    totals = read(file_of(tmp_path))["totals"]
    assert (totals["turns"], totals["input_tokens"]) == (700, 1401 * 100)


def test_another_programs_database_is_no_statistics_file(tmp_path: Path) -> None:
    connection = sqlite3.connect(tmp_path / "x.sqlite")
    connection.execute("CREATE TABLE other (a)")
    connection.close()
    done = hookturn("stats", "x.sqlite", cwd=tmp_path)
    assert done.returncode == 1
    assert "no statistics file" in done.stderr


def test_a_folder_that_cannot_be_written_is_read(tmp_path: Path) -> None:
    Store(str(tmp_path / "stats.sqlite"), str(tmp_path)).close()
    os.chmod(tmp_path, 0o500)
    try:
        assert read(str(tmp_path / "stats.sqlite"))["totals"]["sessions"] == 0
    finally:
        os.chmod(tmp_path, 0o700)


# -- the command ----------------------------------------------------------------------------------------

HOSTILE = 'a"b\\c\nd\x1b[31m{}=\ud800é'


@pytest.fixture
def played(tmp_path: Path) -> Path:
    with engine(tmp_path, Slow()) as made, made.session(session_id="s1", agent="coder") as session:
        for _ in range(2):
            with session.turn() as turn:
                turn.system_prompt([])
                turn.model_response(text="", usage=USAGE, model="m-1")
                turn.call_tool(HOSTILE, {}, execute=lambda: "")
                turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: 1 / 0)
                turn.model_response(text="done", usage=USAGE)
    return tmp_path


def test_plots_are_drawn_with_blocks_or_in_ascii(played: Path) -> None:
    drawn = hookturn("stats", "--session", "s1", cwd=played, LC_ALL="C.UTF-8", COLUMNS="100").stdout
    assert re.search(r"tokens by turn, in and out\n  1 coder  █{40}  240\n  2 coder  █{40}  240\n", drawn)
    assert "where time went" in drawn
    for locale in ("C", "POSIX"):
        plain = hookturn("stats", "--session", "s1", cwd=played, LC_ALL=locale, COLUMNS="100").stdout
        assert re.search(r"\n  1 coder  #{40}  240\n", plain)
        assert not re.search("[▏▎▍▌▋▊▉█]", plain)
    narrow = hookturn("stats", cwd=played, LC_ALL="C", COLUMNS="40").stdout
    assert re.search(r"\n  s1  #{8,30}  480\n", narrow)
    assert "\x1b" not in drawn + plain


@given(st.floats(0, 1), st.integers(1, 200), st.booleans())
def test_bars_are_as_long_as_their_share(share: float, width: int, blocks: bool) -> None:
    drawn = bar(share, width, blocks=blocks)
    assert len(drawn) <= width
    assert bool(drawn) == (share > 0)
    assert abs(len(drawn) - share * width) <= 1
    assert drawn.isascii() or blocks


SAMPLE = re.compile(
    r'(?P<name>[a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(?P<labels>[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*"'
    r'(?:,[a-zA-Z_]\w*="(?:[^"\\\n]|\\[\\"n])*")*)\})? (?P<value>[0-9.e+-]+)'
)


def test_prometheus_gets_its_text_format(played: Path) -> None:
    done = hookturn("stats", "--prometheus", cwd=played, LC_ALL="C", PYTHONUTF8="0")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.endswith("\n")
    kinds: dict[str, str] = {}
    samples: dict[str, float] = {}
    for line in done.stdout[:-1].split("\n"):
        if line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert name not in kinds, "a family's lines stand together"
            kinds[name] = kind
        elif not line.startswith("# HELP "):
            match = SAMPLE.fullmatch(line)
            assert match, line
            family = list(kinds)[-1]
            assert match["name"] in (family, f"{family}_sum", f"{family}_count")
            assert line.rpartition(" ")[0] not in samples
            samples[line.rpartition(" ")[0]] = float(match["value"])
    assert kinds["hookturn_tool_duration_seconds"] == "summary"
    assert all(kind == "counter" for name, kind in kinds.items() if name.endswith("_total"))
    assert samples['hookturn_tool_calls_total{tool="bash",kind="bash",status="error"}'] == 2
    assert samples['hookturn_tokens_total{kind="input"}'] == 400
    assert samples['hookturn_hook_answers_total{hook="slow"}'] == 4
    spelled = 'a\\"b\\\\c\\\\nd\\\\x1b[31m{}=\\\\ud800é'
    assert samples[f'hookturn_tool_calls_total{{tool="{spelled}",kind="other",status="ok"}}'] == 2
    assert samples[f'hookturn_tool_duration_seconds_count{{tool="{spelled}",kind="other"}}'] == 2


def test_of_several_files_the_newest_is_shown(played: Path) -> None:
    new = file_of(played)
    old = played / "old.sqlite"
    old.write_bytes(b"")
    os.utime(old, (1, 1))
    for words in ([str(old), new], [new, str(old), str(played / "gone")]):
        done = hookturn("stats", *words, "--json", cwd=played)
        assert json.loads(done.stdout)["path"] == new
        assert done.stderr == f"hookturn: the newest of {len(words)}: {new}\n"


def test_events_that_were_tried_by_hand_are_in_no_figures(tmp_path: Path) -> None:
    from hookturn.cli.fire import HOST
    from hookturn_builtins.places import TRIED

    assert HOST == TRIED
    with engine(tmp_path) as made:
        for host, session in ((TRIED, ""), ("", "s1")):
            made.fire(
                events.PostToolExecution(tool="bash", args={}, host=host, session_id=session, status="ok")
            )
            made.fire(events.SessionEnd(host=host, session_id=session))
    found = read(file_of(tmp_path))
    assert [row["session_id"] for row in found["sessions"]] == ["s1"]
    assert (found["totals"]["sessions"], found["totals"]["tool_calls"]) == (1, 1)


def test_the_command_line_is_checked(tmp_path: Path) -> None:
    for words in (["--json", "--prometheus"], ["--since", "yesterday"]):
        done = hookturn("stats", *words, cwd=tmp_path)
        assert done.returncode == 2
        assert "usage: hookturn stats" in done.stderr
