"""The error-report plugin in a real engine: its records, counting, redaction, bounds, many writers, faults."""

from __future__ import annotations

import json
import os
import random
import sqlite3
import stat
import string
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn import Block, Engine, events, hookimpl
from hookturn.paths import config_root
from hookturn_builtins.error_report import Config, plugin
from hookturn_builtins.error_report.record import make
from hookturn_builtins.error_report.store import MAX_SESSIONS, read

TOKEN = "ghp_" + "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=36))


def engine(project: Path, *plugins: object, config: Config | None = None, **options: object) -> Engine:
    made = Engine(plugins=plugins, project_dir=project, **options)  # type: ignore[arg-type]
    made.register(plugin(config), "error-report", layer="builtin")
    return made


def errors(project: Path, session: str = "") -> list[dict]:
    return read(str(project / ".hookturn" / "errors.sqlite"), session)


def error(message: str = "it broke", **fields: object) -> events.Error:
    about = {"error_type": "SomeError", "session_id": "s1", **fields}
    return events.Error(message=message, **about)  # type: ignore[arg-type]


def raised(function, *arguments: object) -> BaseException:
    try:
        function(*arguments)
    except BaseException as problem:
        return problem
    raise AssertionError("it did not fail")


class Bad:
    hookturn_name = "bad"

    @hookimpl
    def pre_tool_execution(self, event):
        local_of_the_hook = "a value of no concern"
        raise ValueError(f"no such thing: {len(local_of_the_hook)}")


# -- records ------------------------------------------------------------------------------------------


def test_a_failing_hook_is_reported_like_any_error_and_once(tmp_path: Path, hook_log) -> None:
    with (
        engine(tmp_path, Bad()) as made,
        made.session(session_id="s1", agent="coder", host="h") as session,
        session.turn() as turn,
    ):
        assert turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "a").status == "ok"
    [found] = errors(tmp_path)
    assert {
        name: found[name] for name in ("type", "message", "phase", "hook", "session_id", "agent", "turn", "count")
    } == {
        "type": "ValueError", "message": "no such thing: 21", "phase": "hook", "hook": "bad", "session_id": "s1",
        "agent": "coder", "turn": 1, "count": 1,
    }  # fmt: skip
    frame = found["trace"][-1]["frames"][-1]
    assert (Path(frame["file"]).name, frame["function"]) == ("test_error_report.py", "pre_tool_execution")
    assert "raise ValueError" in frame["code"]
    assert found["environment"]["host"] == "h"
    assert found["environment"]["python"].endswith(".".join(map(str, sys.version_info[:3])))
    assert found["environment"]["hookturn"] and found["environment"]["platform"]


def test_a_tool_a_model_a_turn_and_a_session_fail(tmp_path: Path) -> None:
    made = engine(tmp_path)
    with pytest.raises(LookupError), made.session(session_id="s1") as session:
        with pytest.raises(RuntimeError), session.turn() as turn:
            turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: 1 / 0)
            turn.fail("overloaded", "try again later")
            raise RuntimeError("the turn")
        raise LookupError("the session")
    made.close()
    found = {row["phase"]: row for row in errors(tmp_path)}
    assert {phase: (row["type"], row["message"], row["count"]) for phase, row in found.items()} == {
        "tool": ("ZeroDivisionError", "division by zero", 1),
        "model": ("overloaded", "try again later", 1),
        "turn": ("RuntimeError", "the turn", 1),
        "session": ("LookupError", "the session", 1),
    }
    assert (found["tool"]["tool"], bool(found["tool"]["call_id"])) == ("bash", True)
    assert found["model"]["trace"] == []


def test_nothing_is_made_where_nothing_fails(tmp_path: Path) -> None:
    with engine(tmp_path) as made, made.session(session_id="s1") as session, session.turn() as turn:
        turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "a")
    assert not (tmp_path / ".hookturn").exists()


def test_the_plugin_loads_nothing_before_the_first_error() -> None:
    code = (
        "import sys; before = set(sys.modules); import hookturn_builtins.error_report as e; e.plugin();"
        "print(*(set(sys.modules) - before))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    for heavy in ("sqlite3", "traceback", "linecache", "re", "json", "typing", "sentry_sdk", "dataclasses"):
        assert heavy not in loaded.split()


def first():
    raise KeyError("first")


def second():
    try:
        first()
    except KeyError as cause:
        raise ValueError("second") from cause


def third():
    try:
        second()
    except ValueError:
        raise OSError("third")  # noqa: B904 - a context, no cause


def test_the_chain_of_an_exception_is_told_first_to_last() -> None:
    trace = make(error(exception=raised(third)), b"k", 1000)["trace"]
    assert [(item["type"], item["led_to"]) for item in trace] == [
        ("KeyError", "cause"), ("ValueError", "context"), ("OSError", ""),
    ]  # fmt: skip
    assert [frame["function"] for frame in trace[0]["frames"]] == ["second", "first"]


def test_a_chain_that_bites_its_tail_ends() -> None:
    one, two = ValueError("1"), ValueError("2")
    one.__cause__, two.__cause__ = two, one
    assert [item["message"] for item in make(error(exception=one), b"k", 1000)["trace"]] == ["2", "1"]


def deep(left: int) -> None:
    if left:
        deep(left - 1)
    raise RecursionError("too deep")


def test_a_deep_traceback_keeps_both_ends() -> None:
    [item] = make(error(exception=raised(deep, 500)), b"k", 1000)["trace"]
    assert len(item["frames"]) == 41
    assert item["frames"][10] == {"omitted": 462}
    assert item["frames"][0]["function"] == "raised"


class Odd(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no text")


class Group(Exception):
    """Looks like an exception group of any Python version."""

    exceptions = tuple(ValueError(str(number)) for number in range(100))


@pytest.mark.parametrize(
    "exception",
    [
        Odd(),
        Group("g"),
        ValueError("\ud800\0\x1b"),
        ValueError("x" * 10**6),
        SystemExit(3),
        "no exception",
        7,
    ],
    ids=lambda value: type(value).__name__,
)
def test_odd_exceptions_are_recorded(tmp_path: Path, exception: object) -> None:
    with engine(tmp_path) as made:
        out = made.fire(error("x" * 10**6 + "\ud800", exception=exception))
    assert (out.failures, out.warnings) == ((), ())
    [found] = errors(tmp_path)
    assert len(json.dumps(found)) < 20_000
    assert len(found["trace"]) == isinstance(exception, BaseException)
    if isinstance(exception, Group):
        assert found["trace"][0]["members"] == [f"ValueError: {number}" for number in range(5)]


@pytest.mark.parametrize(
    "session", ["../../x", "a\nb", "x" * 5000, "\ud800", "a\0b", "'; DROP TABLE errors; --"]
)
def test_hostile_session_ids_are_harmless(tmp_path: Path, session: str) -> None:
    with engine(tmp_path) as made:
        made.fire(error(session_id=session))
        made.fire(error("another", session_id="s2"))
    [found] = errors(tmp_path, session)
    assert found["message"] == "it broke"
    assert sorted(path.name for path in tmp_path.iterdir()) == [".hookturn"]


@pytest.mark.parametrize("value", [10**30, -1])
def test_odd_numbers_do_no_harm(tmp_path: Path, value: int) -> None:
    with engine(tmp_path) as made:
        made.fire(error(turn=value, time=value))
        made.fire(error("another", time=float("nan")))
    assert len(errors(tmp_path)) == 2


# -- secrets ------------------------------------------------------------------------------------------


def test_no_secret_and_no_local_variable_is_stored(tmp_path: Path) -> None:
    def fails(argument: str) -> None:
        kept_in_a_local = "only-in-a-local-variable"
        if kept_in_a_local:
            raise ValueError(f"refused {argument}")

    problem = raised(fails, TOKEN)
    with engine(tmp_path) as made:
        made.fire(error(f"{'x' * 3990} {TOKEN}", exception=problem, tool=TOKEN))
        made.fire(error(f"Authorization: Bearer {TOKEN}", error_type=TOKEN, hook=f"h {TOKEN}"))
        raw = b"".join(path.read_bytes() for path in (tmp_path / ".hookturn").iterdir())
    assert b"refused" in raw
    for word in (TOKEN.encode(), TOKEN[:20].encode(), b"only-in-a-local"):
        assert word not in raw


def test_equal_secrets_have_equal_marks_and_are_one_error(tmp_path: Path) -> None:
    for _ in range(2):  # the key outlives the process
        with engine(tmp_path) as made:
            made.fire(error(f"bad token {TOKEN}"))
    other = TOKEN[:-8] + TOKEN[-8:][::-1]
    with engine(tmp_path) as made:
        made.fire(error(f"bad token {other}"))
    [found] = errors(tmp_path)
    assert found["count"] == 3
    assert found["message"].startswith("bad token [REDACTED:")


# -- counting -----------------------------------------------------------------------------------------


def test_equal_errors_are_counted(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        for number in range(5):
            made.fire(
                error(
                    f"no file /tmp/a{number}/b.txt (pid {number}, 'x{number}')",
                    turn=number,
                    time=100.0 + number,
                )
            )
        made.fire(error("no file at all", time=50.0))
    one, two = errors(tmp_path)
    assert (one["count"], one["first_seen"], one["last_seen"], one["turn"]) == (5, 100.0, 104.0, 4)
    assert "a4/b.txt" in one["message"]
    assert (two["count"], two["id"], one["id"]) == (1, 2, 1)


@pytest.mark.parametrize("field", ["error_type", "phase", "tool", "hook"])
def test_errors_that_differ_are_told_apart(tmp_path: Path, field: str) -> None:
    with engine(tmp_path) as made:
        made.fire(error())
        made.fire(error(**{field: "other"}))
        made.fire(error("something else broke"))
    assert len(errors(tmp_path)) == 3


def test_errors_from_other_places_are_told_apart_and_other_line_numbers_are_not(tmp_path: Path) -> None:
    def at(lines: int, name: str) -> BaseException:
        names: dict = {}
        exec(compile("\n" * lines + f"def {name}():\n    raise ValueError('x')", "a.py", "exec"), names)
        return raised(names[name])

    with engine(tmp_path) as made:
        for problem in (at(0, "f"), at(9, "f"), at(0, "g")):
            made.fire(error("x", exception=problem))
    assert sorted(row["count"] for row in errors(tmp_path)) == [1, 2]


VARIED = st.sampled_from(["'{}'", '"{}"', "/tmp/{}", "0x{}", "{}7", "C:\\{}\\x"])


@given(st.lists(VARIED, max_size=6), st.text("abcdef019", max_size=8), st.text("abcdef019", max_size=8))
def test_what_varies_makes_no_other_error(shapes: list[str], one: str, two: str) -> None:
    def print_of(filled: str) -> str:
        message = " and ".join(shape.format(filled) for shape in shapes)
        return make(error(f"failed with {message}"), b"k", 1000)["fingerprint"]

    assert print_of(one) == print_of(two)


@given(st.text(max_size=300))
def test_any_message_has_a_record(message: str) -> None:
    record = make(error(message), b"k", 1000)
    assert len(record["fingerprint"]) == 16
    json.dumps(record)


def test_the_number_of_errors_and_of_their_sessions_is_bounded(tmp_path: Path) -> None:
    config = Config()
    config.max_errors = 3
    with engine(tmp_path, config=config) as made:
        for name in "abcde":
            made.fire(error(f"failed in {name}"))
        for number in range(MAX_SESSIONS + 20):
            made.fire(error("failed in e", session_id=f"s{number}", time=2e9 + number))
    found = errors(tmp_path)
    assert [row["message"][-1] for row in found] == ["e", "d", "c"]
    assert found[0]["count"] == MAX_SESSIONS + 21
    seen = [row["session_id"] for row in found[0]["sessions"]]
    assert seen == [f"s{number}" for number in range(MAX_SESSIONS + 19, 19, -1)]
    connection = sqlite3.connect(tmp_path / ".hookturn" / "errors.sqlite")
    assert connection.execute("SELECT count(DISTINCT error) FROM sessions").fetchone() == (3,)
    connection.close()


# -- writers and faults -------------------------------------------------------------------------------

PROCESS = """
import sys
from hookturn import Engine, events
from hookturn_builtins.error_report import plugin
with Engine(project_dir=sys.argv[1]) as engine:
    engine.register(plugin(), "error-report", layer="builtin")
    for number in range(20):
        engine.fire(events.Error(error_type="E", message=sys.argv[2], session_id=sys.argv[2]))
        engine.fire(events.Error(error_type="E", message="shared", session_id=sys.argv[2]))
        print(number, flush=True)
"""


def test_processes_share_the_file(tmp_path: Path) -> None:
    words = [sys.executable, "-c", PROCESS, str(tmp_path)]
    children = [subprocess.Popen([*words, name], stdout=subprocess.DEVNULL) for name in "abcdef"]
    assert [child.wait() for child in children] == [0] * 6
    counts = {row["message"]: row["count"] for row in errors(tmp_path)}
    assert counts == {**dict.fromkeys("abcdef", 20), "shared": 120}


def test_threads_share_the_plugin(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        work = [threading.Thread(target=lambda: [made.fire(error()) for _ in range(25)]) for _ in range(6)]
        for thread in work:
            thread.start()
        for thread in work:
            thread.join()
    assert errors(tmp_path)[0]["count"] == 150


@pytest.mark.fault
def test_a_killed_process_loses_nothing(tmp_path: Path) -> None:
    endless = PROCESS.replace("range(20)", "range(10**9)")
    seen = 0
    for run in range(8):
        words = [sys.executable, "-c", endless, str(tmp_path), "k"]
        child = subprocess.Popen(words, stdout=subprocess.PIPE)
        assert child.stdout is not None
        for _ in range(10 + run):
            child.stdout.readline()
        child.kill()
        seen += 10 + run + len(child.stdout.readlines())
        child.stdout.close()
        child.wait()
        counts = {row["message"]: row["count"] for row in errors(tmp_path)}
        assert seen <= counts["shared"] <= counts["k"] <= seen + run + 1
    connection = sqlite3.connect(tmp_path / ".hookturn" / "errors.sqlite")
    assert connection.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    connection.close()


@pytest.mark.fault
@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="mounting a small disk needs root"
)
def test_a_full_disk_is_said_once_and_caught_up_later(tmp_path: Path, hook_log) -> None:
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=400k", "none", tmp_path], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip("no tmpfs can be mounted here")
    try:
        with engine(tmp_path) as made:
            made.fire(error("before"))
            ballast = tmp_path / "ballast"
            with open(ballast, "wb", buffering=0) as file:
                try:
                    while file.write(b"x" * 4096):
                        pass
                except OSError:
                    pass
            warnings = [
                text for n in range(60) for text in made.fire(error(f"while full {'y' * 3000} {n}")).warnings
            ]
            assert len(warnings) == 1 and "cannot be written" in warnings[0]
            ballast.unlink()
            assert made.fire(error("after")).warnings == ()
        counts = {row["message"][:10]: row["count"] for row in errors(tmp_path)}
        assert counts == {"before": 1, "while full": 60, "after": 1}
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def test_a_file_that_cannot_be_written_is_said_once_and_caught_up_later(tmp_path: Path, hook_log) -> None:
    (tmp_path / ".hookturn" / "errors.sqlite").mkdir(parents=True)
    with engine(tmp_path) as made:
        warnings = [text for _ in range(3) for text in made.fire(error()).warnings]
        assert len(warnings) == 1 and "cannot be written" in warnings[0]
        assert len(hook_log.of("error-report")) == 1
        (tmp_path / ".hookturn" / "errors.sqlite").rmdir()
    assert errors(tmp_path)[0]["count"] == 3


def test_a_damaged_file_is_kept_and_begun_anew(tmp_path: Path, hook_log) -> None:
    path = tmp_path / ".hookturn" / "errors.sqlite"
    path.parent.mkdir()
    path.write_bytes(b"damaged, as after a bad disk. " * 500)
    with engine(tmp_path) as made:
        warnings = [text for _ in range(2) for text in made.fire(error()).warnings]
    assert len(warnings) == 1 and "errors.sqlite.damaged-1" in warnings[0]
    assert errors(tmp_path)[0]["count"] == 2


def test_files_are_private_and_links_are_not_followed(tmp_path: Path, hook_log) -> None:
    with engine(tmp_path / "p") as made:
        made.fire(error())
        for path in (tmp_path / "p" / ".hookturn").glob("errors.sqlite*"):
            assert stat.S_IMODE(path.stat().st_mode) == 0o600, path
    linked = tmp_path / "q" / ".hookturn"
    linked.mkdir(parents=True)
    (linked / "errors.sqlite").symlink_to(tmp_path / "victim")
    with engine(tmp_path / "q") as made:
        assert "cannot be written" in made.fire(error()).warnings[0]
    assert not (tmp_path / "victim").exists()


def test_a_dry_run_writes_only_below_its_own_folder(tmp_path: Path) -> None:
    project, output = tmp_path / "p", tmp_path / "out"
    project.mkdir()
    with engine(project, dry_run=True, output_dir=output) as made:
        made.fire(error())
    assert list(project.iterdir()) == []
    assert not os.path.exists(os.environ["HOOKTURN_STATE_DIR"])
    assert read(str(output / "errors.sqlite"))[0]["count"] == 1


def test_an_error_hook_that_answers_is_not_disturbed(tmp_path: Path) -> None:
    class Other:
        hookturn_name = "other"

        @hookimpl
        def on_user_prompt_submit(self, event):
            return Block("stop") if event.prompt == "stop" else 1 / 0

    with engine(tmp_path, Other()) as made:
        assert made.fire(events.UserPromptSubmit(prompt="stop")).decision == "block"
        assert made.fire(events.UserPromptSubmit(prompt="go")).decision is None
    assert [row["hook"] for row in errors(tmp_path)] == ["other"]


# -- settings -----------------------------------------------------------------------------------------


def test_it_is_on_once_a_project_has_a_configuration(tmp_path: Path) -> None:
    (tmp_path / "hookturn.yaml").write_text("permissions: {deny: ['bash(rm *)']}\n")
    with Engine.from_project(tmp_path) as made:
        made.fire(error())
    assert errors(tmp_path)[0]["message"] == "it broke"


def test_settings_come_from_the_configuration(tmp_path: Path) -> None:
    config_root().mkdir(parents=True)
    (config_root() / "hookturn.yaml").write_text(
        "plugins:\n  error-report: {path: deep/e.sqlite, max_errors: 1, max_chars: 100}\n"
    )
    with Engine.from_project(tmp_path) as made:
        made.fire(error("first"))
        made.fire(error("x" * 200))
    [found] = read(str(tmp_path / "deep" / "e.sqlite"))
    assert found["message"] == "x" * 100 + "..."


@pytest.mark.parametrize(
    ("field", "value"),
    [("path", ""), ("path", "a\0b"), ("max_errors", 0), ("max_chars", 99), ("sentry", "no DSN of hunter2")],
)
def test_wrong_settings_are_refused(field: str, value: object) -> None:
    config = Config()
    setattr(config, field, value)
    with pytest.raises(ValueError, match=field) as caught:
        config.validate()
    assert "hunter2" not in str(caught.value)
