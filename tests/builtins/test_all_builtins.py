"""All builtins together in a real repository: odd session ids, two sessions at once, kill -9 at random moments."""

from __future__ import annotations

import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hookturn.paths import config_root

IDS = [
    "../../x",
    "/etc/x",
    "x" * 5000,
    "é" * 5000,
    "two\nlines",
    "",
    "CON",
    "con.txt",
    ".",
    "..",
    "a/b\\c",
    "\0",
    "\ud800",
    "-rf",
    "a..b",
    "x.lock",
    "@{1}",
    "`touch y`",
    "$(touch y)",
    "<script>alert(1)</script>",
]

PLUGINS = """
plugins:
  audit-log: true
  turn-stats: true
  auto-commit: {every: 1, target: session}
  session-summary: true
  error-report: true
  response-validation: {forbidden: ['(?i)lorem\\s+ipsum']}
"""

SESSION = """
import json, sys
from hookturn import Engine, hookimpl

class Host:
    @hookimpl
    def on_outcome(self, event):
        for failure in event.outcome.failures:
            print("FAILURE", failure, flush=True)

project, session_id, turns = sys.argv[1], json.loads(sys.argv[2]), int(sys.argv[3])
with Engine.from_project(project) as engine:
    assert not engine.failed, engine.failed
    engine.register(Host(), "host")
    with engine.session(session_id=session_id, agent="coder", cwd=project, model="m") as session:
        print("go", flush=True)
        for number in range(turns):
            session.submit(f"do the work {number}")
            with session.turn() as turn:
                turn.system_prompt(["You are a coder."])
                turn.model_response(text="I look.", usage={"input_tokens": 10, "output_tokens": 2})
                name = f"file-{sys.argv[4]}-{number % 10}.txt"
                def write(path, text):
                    with open(f"{project}/{path}", "w") as file:
                        file.write(text)
                turn.call_tool("write", {"path": name, "text": f"{number}"}, write)
                turn.begin_tool(f"c{number}", "bash", {"command": "make check"})
                turn.end_tool(f"c{number}", status="error" if number % 7 == 0 else "ok", error="it broke", result="x" * 500)
                turn.model_response(text=f"I updated `{name}`.", usage={"input_tokens": 10, "output_tokens": 2})
                end = turn.complete(f"I updated `{name}`.")
                for warning in end.warnings:
                    print("WARNING", warning, flush=True)
            print("turn", number, flush=True)
print("done", flush=True)
"""


@pytest.fixture
def project(tmp_path: Path, monkeypatch) -> Path:
    """A project with a repository, in a folder that has another one beside it; every builtin is on."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)
    folder = tmp_path / "around" / "project"
    folder.mkdir(parents=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ann")
    git(folder, "config", "user.email", "ann@example.org")
    git(folder, "commit", "-q", "--allow-empty", "-m", "base")
    config_root().mkdir(parents=True)
    (config_root() / "hookturn.yaml").write_text(PLUGINS)
    return folder


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done
    return os.fsdecode(done.stdout).rstrip("\n")


def start(project: Path, session_id: str, turns: int, mark: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen(
        [sys.executable, "-c", SESSION, str(project), json.dumps(session_id), str(turns), mark],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )


def told(process: subprocess.Popen[bytes], turns: int) -> list[str]:
    """Wait for the end of a session that must end well; returns what the user was warned of."""
    out, err = process.communicate(timeout=250)
    lines = out.decode("utf-8", "replace").split("\n")
    assert process.returncode == 0, err.decode("utf-8", "replace")
    assert [line for line in lines if line.startswith("FAILURE")] == []
    assert lines.count("done") == 1
    assert sum(line.startswith("turn ") for line in lines) == turns
    return [line for line in lines if line.startswith("WARNING")]


def hookturn(project: Path, *words: str) -> object:
    done = subprocess.run(
        [sys.executable, "-m", "hookturn", words[0], "--json", *words[1:]],
        cwd=project,
        capture_output=True,
        check=False,
    )
    assert done.returncode == 0, done
    return json.loads(done.stdout)


def sound(project: Path) -> None:
    """Check that every file that the builtins keep is whole, and the repository too."""
    hookturn(project, "audit", "verify")
    for name in ("stats", "errors"):
        connection = sqlite3.connect(project / ".hookturn" / f"{name}.sqlite")
        assert connection.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        connection.close()
    for line in (project / ".hookturn" / "auto-commit.jsonl").read_bytes().splitlines():
        json.loads(line)
    done = subprocess.run(
        ["git", "fsck", "--strict"], cwd=project, capture_output=True, text=True, check=False
    )
    assert (done.returncode, "error" in done.stderr) == (0, False), done
    assert not list((project / ".git").rglob("*.lock"))


def everything(folder: Path, *without: Path) -> set[str]:
    return {
        str(path.relative_to(folder))
        for path in folder.rglob("*")
        if not any(path == skipped or skipped in path.parents for skipped in without)
    }


def test_odd_session_ids_are_harmless(project: Path, tmp_path: Path) -> None:
    state = Path(os.environ["HOOKTURN_STATE_DIR"])
    outside = everything(tmp_path, project)
    for number, session_id in enumerate(IDS):
        warned = told(start(project, session_id, 1, str(number)), 1)
        assert len(warned) == 1, (session_id, warned)
        assert "auto-commit: committed" in warned[0]
    sound(project)
    assert everything(tmp_path, project) - {"home"} == outside - {"home"}
    # In the project: what the tools wrote, our folder, and nothing else.
    kept = everything(project, project / ".hookturn", project / ".git")
    assert kept == {f"file-{number}-0.txt" for number in range(len(IDS))}
    for folder in (project / ".hookturn", state):
        for path in folder.rglob("*"):
            assert len(path.name) <= 120
            assert path.name.isascii()
            assert path.name.isprintable()
    folders = {path.name for path in (project / ".hookturn" / "sessions").iterdir()}
    assert len(folders) == len(IDS)
    refs = git(project, "for-each-ref", "--format=%(refname)").split("\n")
    assert refs[0] == "refs/heads/main"
    assert len(refs) == len(IDS) + 1
    assert all(ref.startswith("refs/hookturn/") and ref.count("/") == 2 for ref in refs[1:])
    # And each is found again by its id.
    for session_id in IDS:
        if session_id and "\0" not in session_id and "\ud800" not in session_id and "/" not in session_id:
            found = hookturn(project, "report", "--", session_id)
            assert isinstance(found, dict)
            assert found["session_id"] == session_id


def test_two_sessions_in_one_project_do_not_disturb_each_other(project: Path) -> None:
    both = {name: start(project, name, 15, name) for name in ("one", "two")}
    for name, process in both.items():
        warned = told(process, 15)
        assert len(warned) == 15
        assert all("auto-commit: committed" in warning for warning in warned), warned
        assert all(f"refs/hookturn/{name}" in warning for warning in warned), warned
    sound(project)
    for name in both:
        report = hookturn(project, "report", name)
        assert isinstance(report, dict)
        assert report["totals"]["turns"] == 15
        assert report["totals"]["tool_calls"] == 30
        # Each commit holds its own session's file and nothing of the other's.
        names = set(git(project, "log", "--format=", "--name-only", f"refs/hookturn/{name}").split("\n")) - {
            ""
        }
        assert names == {f"file-{name}-{number}.txt" for number in range(10)}
        assert git(project, "rev-list", "--count", f"refs/hookturn/{name}") == "16"
    assert git(project, "rev-list", "--count", "main") == "1"
    connection = sqlite3.connect(project / ".hookturn" / "stats.sqlite")
    rows = connection.execute(
        "SELECT session_id, count(*) FROM turns GROUP BY session_id ORDER BY 1"
    ).fetchall()
    connection.close()
    assert [row[1] for row in rows] == [15, 15]


TURNS = 200
ROUNDS = int(os.environ.get("FAULT_ROUNDS", "6"))
"""How often the session is killed; ``make full`` kills it 50 times."""


def settle(project: Path) -> None:
    """Wait until a git that outlived its session is over: it ends by itself."""
    end = time.monotonic() + 30
    quiet = 0
    while quiet < 5 and time.monotonic() < end:
        busy = list((project / ".git").rglob("*.lock"))
        for entry in os.listdir("/proc"):
            try:
                here = os.readlink(f"/proc/{entry}/cwd") if entry.isdigit() else ""
                busy += [entry] if here == str(project) else []
            except OSError:
                continue
        quiet = 0 if busy else quiet + 1
        time.sleep(0.02)


@pytest.mark.fault
@pytest.mark.timeout(3000)
@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs /proc")
def test_a_long_session_killed_at_random_moments(project: Path) -> None:
    config = config_root() / "hookturn.yaml"
    config.write_text(config.read_text().replace("every: 1", "every: 5"))
    begun = time.monotonic()
    assert len(told(start(project, "whole", TURNS, "whole"), TURNS)) == TURNS // 5
    whole = time.monotonic() - begun
    sound(project)
    seed = int(os.environ.get("FAULT_SEED", "0")) or random.randrange(1, 1 << 32)
    print(f"seed {seed}; a whole session takes {whole:.1f} s")
    chance = random.Random(seed)
    for number in range(ROUNDS):
        process = start(project, "killed", TURNS, "killed")
        time.sleep(chance.uniform(0, whole))
        process.send_signal(signal.SIGKILL)
        out, err = process.communicate()
        lines = out.decode().split("\n")
        last = sum(line.startswith("turn ") for line in lines)
        print(f"round {number}: killed after {last} turns")
        assert b"Traceback" not in err, err.decode()
        assert [line for line in lines if line.startswith("FAILURE")] == []
        # What was committed when its session was killed has nothing new to commit.
        fine = ("auto-commit: committed", "auto-commit: nothing to do")
        assert [
            line for line in lines if line.startswith("WARNING") and not any(w in line for w in fine)
        ] == []
        settle(project)
        sound(project)
    # What is left is as good as new.
    warned = told(start(project, "killed", 5, "killed"), 5)
    assert len(warned) in (1, 2)  # turns since the last commit of the killed ones count
    sound(project)
    for command in (("stats",), ("errors",), ("report", "killed"), ("report", "whole"), ("audit", "stats")):
        assert hookturn(project, *command)
    report = hookturn(project, "report", "whole")
    assert isinstance(report, dict)
    assert report["totals"]["turns"] == TURNS
