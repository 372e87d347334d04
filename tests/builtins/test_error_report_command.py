"""``hookturn errors``."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hookturn import Engine, events
from hookturn_builtins.error_report import plugin


def hookturn(*words: str, cwd: Path) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hookturn", *words],
        capture_output=True, text=True, cwd=cwd, check=False, env=os.environ,
    )  # fmt: skip


def failing() -> None:
    try:
        raise KeyError("first")
    except KeyError as cause:
        raise ValueError("bad\x1b[31m\nsecond line") from cause


@pytest.fixture
def project(tmp_path: Path) -> Path:
    with Engine(project_dir=tmp_path) as made:
        made.register(plugin(), "error-report", layer="builtin")

        def fire(session: str, **fields: object) -> None:
            made.fire(events.Error(session_id=session, turn=3, agent="coder", **fields))  # type: ignore[arg-type]

        try:
            failing()
        except ValueError as problem:
            fire(
                "s1",
                error_type="ValueError",
                message=str(problem),
                phase="hook",
                hook="g\x1b[31m",
                exception=problem,
                time=1.0,
            )
        for session in ("s1", "s2"):
            fire(session, error_type="Overloaded", message="later", phase="model", time=2.0)
    return tmp_path


def test_errors_are_listed_newest_first(project: Path) -> None:
    done = hookturn("errors", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0] == "2 errors, seen 3 times"
    assert lines[3].split() == ["2", "2", "1970-01-01T00:00:02Z", "model", "Overloaded:", "later"]
    assert (
        lines[4].startswith("1")
        and "hook g\\x1b[31m" in lines[4]
        and "bad\\x1b[31m\\nsecond line" in lines[4]
    )
    assert "\x1b" not in done.stdout


def test_errors_of_a_session(project: Path) -> None:
    done = hookturn("errors", "--session", "s2", "--json", cwd=project)
    [found] = json.loads(done.stdout)["errors"]
    assert (found["type"], found["count"], found["last_seen"]) == (
        "Overloaded",
        2,
        "1970-01-01T00:00:02.000Z",
    )
    assert [row["session_id"] for row in found["sessions"]] == ["s1", "s2"]
    assert "trace" not in found


def test_one_error_is_shown_with_its_traceback(project: Path) -> None:
    done = hookturn("errors", "show", "1", cwd=project)
    assert (done.returncode, done.stderr) == (0, "")
    assert "\x1b" not in done.stdout
    for text in ("hook g\\x1b[31m", "s1, turn 3", "KeyError: 'first'", "That was the cause of:",
                 'raise KeyError("first")', "in failing", "ValueError: bad\\x1b[31m\n  second line"):  # fmt: skip
        assert text in done.stdout
    shown = json.loads(hookturn("errors", "show", "1", "--json", cwd=project).stdout)["error"]
    assert [item["type"] for item in shown["trace"]] == ["KeyError", "ValueError"]
    assert "and 1 other session" in hookturn("errors", "show", "2", cwd=project).stdout


def test_errors_are_forgotten(project: Path) -> None:
    assert hookturn("errors", "--clear", "--session", "s2", cwd=project).stdout == "1 error forgotten\n"
    [left] = json.loads(hookturn("errors", "--json", cwd=project).stdout)["errors"]
    assert left["type"] == "ValueError"
    assert json.loads(hookturn("errors", "--clear", "--json", cwd=project).stdout)["cleared"] == 1
    assert hookturn("errors", cwd=project).stdout == "no errors\n"
    assert hookturn("errors", "--clear", cwd=project).stdout == "0 errors forgotten\n"


def test_a_file_is_named(project: Path, tmp_path_factory) -> None:
    away = tmp_path_factory.mktemp("away")
    path = str(project / ".hookturn" / "errors.sqlite")
    assert "2 errors" in hookturn("errors", "--file", path, cwd=away).stdout
    for words in (["--file", path, "show", "2"], ["show", "2", "--file", path]):
        assert "Overloaded: later" in hookturn("errors", *words, cwd=away).stdout


def test_what_is_missing_or_wrong_is_said(project: Path, tmp_path_factory) -> None:
    away = tmp_path_factory.mktemp("away")
    (away / "x").write_text("no database at all, but long enough to be read as one" * 100)
    for words, cause in (
        (["errors"], "there is no .hookturn"),
        (["errors", "--file", "y"], "there is no such file"),
        (["errors", "--file", "x"], "no error report"),
        (["errors", "--file", "x", "--clear"], "no error report"),
    ):
        done = hookturn(*words, cwd=away)
        assert done.returncode == 1
        assert cause in done.stderr
    done = hookturn("errors", "show", "9", cwd=project)
    assert done.returncode == 1 and "there is no error 9" in done.stderr
    assert hookturn("errors", "show", "nine", cwd=project).returncode == 2


def test_a_project_in_which_nothing_failed_has_no_errors(tmp_path: Path) -> None:
    (tmp_path / ".hookturn").mkdir()
    done = hookturn("errors", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "no errors\n")
    assert json.loads(hookturn("errors", "--json", cwd=tmp_path).stdout)["errors"] == []
    assert list((tmp_path / ".hookturn").iterdir()) == []
