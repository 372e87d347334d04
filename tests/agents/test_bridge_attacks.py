"""What hooks, streams, clocks and folders may do to a bridge: a guard's answer is not lost by it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hookturn import Engine, hookimpl
from hookturn.agents import bridge

DATA = Path(__file__).parent.parent / "data/captures"
PRE = json.loads((DATA / "claude/PreToolUse.json").read_text())

GUARD = """
import os, sys
from hookturn import Deny, hookimpl

@hookimpl(guard=True)
def pre_tool_execution(event):
    return Deny("No.")

@hookimpl
def on_tool_call_start(event):
    {body}
"""

PLAIN = """
from hookturn import Deny, hookimpl

@hookimpl
def pre_tool_execution(event):
    print("looking")
    return Deny("No.")
"""

YAML = "hooks:\n  - name: a-guard\n    timings: [pre_tool_execution, on_tool_call_start]\n    run: {module: guard.py}\n"


class Project:
    """A project of a user whose configuration holds a hook."""

    def __init__(self, folder):
        self.folder = folder / "project"
        self.folder.mkdir()
        self.config = Path(os.environ["HOOKTURN_CONFIG_DIR"])
        self.config.mkdir(parents=True)
        self.hook()

    def hook(self, body="pass", *, text="", yaml=YAML):
        (self.config / "guard.py").write_text(text or GUARD.format(body=body))
        (self.config / "hookturn.yaml").write_text(yaml)

    def payload(self, **more):
        return json.dumps({**PRE, "cwd": str(self.folder), **more}).encode()

    def start(self, *words, **streams):
        streams = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "cwd": self.folder, **streams}
        return subprocess.Popen(
            [sys.executable, "-m", "hookturn", "bridge", "claude-code", *words],
            stdin=subprocess.PIPE,
            **streams,
        )

    def call(self, *words, payload=None, **streams):
        with self.start(*words, **streams) as process:
            out, err = process.communicate(payload or self.payload(), timeout=60)
        return process.returncode, out, err or b""


@pytest.fixture
def project(tmp_path, monkeypatch):
    for name in [*os.environ]:
        if name.startswith(("CLAUDE", "COPILOT", "GEMINI", "QWEN")):
            monkeypatch.delenv(name)
    return Project(tmp_path)


def denied(done):
    code, out, _ = done
    assert code == 0
    return bool(out) and json.loads(out)["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.parametrize("seconds", ["1e300", "1e12", "9" * 400, "nan", "-inf", "0"])
def test_whatever_the_time_limit_is(project, seconds):
    project.call()
    assert denied(project.call("--timeout", seconds))


@pytest.mark.parametrize(
    "body",
    [
        "raise KeyboardInterrupt",
        "import asyncio; raise asyncio.CancelledError",
        "raise GeneratorExit",
        "raise BaseException",
        "sys.exit(2)",
        "sys.__stderr__.close(); raise ValueError",
        "sys.stderr.close()",
        "os.close(2); raise ValueError",
        "sys.stdout = sys.stderr = sys.__stderr__ = None",
        "import signal, time; os.kill(os.getpid(), signal.SIGINT); time.sleep(1)",
        "os.chdir('/'); os.environ.clear()",
        "sys.setrecursionlimit(70)",
    ],
)
def test_whatever_another_hook_does(project, body):
    project.call()
    project.hook(body)
    assert denied(project.call())


@pytest.mark.parametrize(
    "body",
    [
        "import threading, time; threading.Thread(target=time.sleep, args=(600,)).start()",
        "import atexit, time; atexit.register(time.sleep, 600)",
        "sys.stderr.write('x' * 500_000)",
        "from hookturn import Warn; return Warn('x' * 500_000)",
    ],
)
def test_nothing_holds_the_process_up_after_its_answer(project, body):
    """Standard error is a pipe that nobody reads, as some agents leave it until the process ends."""
    project.hook(body)
    read, write = os.pipe()
    begun = time.monotonic()
    try:
        done = project.call("--timeout", "4", stderr=write)
    finally:
        os.close(read)
        os.close(write)
    assert denied(done)
    assert time.monotonic() - begun < 30


def test_a_reader_of_errors_that_went_away_changes_no_answer(project):
    """Neither a hook that prints nor a problem that is told fails by it."""
    yaml = YAML.replace(", on_tool_call_start", "") + "  - nme: wrong\n"
    project.hook(text=PLAIN, yaml=yaml)
    read, write = os.pipe()
    os.close(read)
    try:
        done = project.call(stderr=write)
    finally:
        os.close(write)
    assert denied(done)


@pytest.mark.parametrize("closed", ["2>&-", "<&- 2>&-"])
def test_what_hooks_print_never_reaches_the_answer_or_a_file(project, closed):
    project.hook("os.write(1, b'NOISE'); os.write(2, b'NOISE'); os.system('echo NOISE')")
    project.call()
    done = subprocess.run(
        ["sh", "-c", f'exec "$0" -m hookturn bridge claude-code {closed}', sys.executable],
        input=project.payload(), capture_output=True, cwd=project.folder, timeout=60,
    )  # fmt: skip
    assert done.returncode == 0
    assert b"NOISE" not in done.stdout
    assert json.loads(done.stdout)
    for path in Path(os.environ["HOOKTURN_STATE_DIR"]).rglob("*"):
        assert not path.is_file() or b"NOISE" not in path.read_bytes()


def test_an_agent_that_keeps_the_pipe_open_is_answered_at_once(project):
    begun = time.monotonic()
    with project.start() as process:
        process.stdin.write(project.payload())
        process.stdin.flush()
        code = process.wait(60)
        took = time.monotonic() - begun
        out = process.stdout.read()
        process.stdin.close()
    assert denied((code, out, b""))
    assert took < 8


def test_a_payload_that_comes_in_pieces_is_waited_for(project):
    whole = project.payload(tool_input={"command": "ls", "x": {"y": 1}})
    with project.start() as process:
        for part in (whole[:30], whole[30 : whole.index(b"}") + 1], whole[whole.index(b"}") + 1 :]):
            process.stdin.write(part)
            process.stdin.flush()
            time.sleep(0.5)
        out, _ = process.communicate(timeout=60)
    assert denied((process.returncode, out, b""))


def test_a_payload_that_never_comes_leaves_time_for_the_answer(project):
    project.call()
    begun = time.monotonic()
    with project.start("--timeout", "4") as process:
        code = process.wait(60)
        took = time.monotonic() - begun
        out = process.stdout.read()
        process.stdin.close()
    assert code == 0
    assert json.loads(out)["decision"] == "block"
    assert took < 3.9


def test_a_folder_that_was_removed(project, tmp_path):
    gone = tmp_path / "gone"
    gone.mkdir()
    done = subprocess.run(
        ["sh", "-c", f'cd "{gone}" && rmdir "{gone}" && exec "$0" -m hookturn bridge claude-code', sys.executable],
        input=project.payload(cwd=str(gone)), capture_output=True, timeout=60,
    )  # fmt: skip
    assert denied((done.returncode, done.stdout, done.stderr))


def test_no_home_at_all(project, monkeypatch):
    """The system knows no home of this user either: nothing is remembered, and the hooks of the project count."""
    monkeypatch.delenv("HOOKTURN_STATE_DIR")
    monkeypatch.setenv("HOME", "")
    code, _, err = project.call()
    assert code == 0
    assert b"Traceback" not in err


START = """
import os, time
from hookturn import hookimpl

@hookimpl
def on_session_start(event):
    while os.path.exists({flag!r}):
        time.sleep(0.05)
"""


@pytest.fixture
def starting(project, tmp_path):
    """The bridge of a session's start, whose hook runs until the flag is gone."""
    flag = tmp_path / "flag"
    flag.write_text("")
    (project.config / "start.py").write_text(START.format(flag=str(flag)))
    yaml = YAML + "  - name: start\n    timings: [on_session_start]\n    run: {module: start.py}\n"
    project.hook(yaml=yaml)
    payload = json.loads((DATA / "claude/SessionStart.json").read_text())
    process = project.start()
    process.stdin.write(
        json.dumps({**payload, "session_id": PRE["session_id"], "cwd": str(project.folder)}).encode()
    )
    process.stdin.close()
    state = Path(os.environ["HOOKTURN_STATE_DIR"])
    until = time.monotonic() + 30
    while not list(state.glob("projects/*/runs/*/session.json*")) and time.monotonic() < until:
        time.sleep(0.05)
    yield process, flag
    flag.unlink(missing_ok=True)
    process.kill()
    process.wait()
    process.stdout.close()
    process.stderr.close()


def test_a_start_that_was_killed_holds_no_later_call_up(project, starting):
    process, flag = starting
    process.kill()
    process.wait()
    flag.unlink()
    begun = time.monotonic()
    assert denied(project.call())
    assert time.monotonic() - begun < 15


def test_a_start_that_lives_is_waited_for(project, starting):
    _, flag = starting
    with project.start() as call:
        call.stdin.write(project.payload())
        call.stdin.close()
        with pytest.raises(subprocess.TimeoutExpired):
            call.wait(2)
        flag.unlink()
        assert call.wait(30) == 0
        assert b"No." in call.stdout.read()


# -- payloads that cannot be read ---------------------------------------------------------------------


def guarded(folder, *, raises=None):
    @hookimpl(guard=True)
    def pre_tool_execution(event):
        return None

    plugin = type("Plugin", (), {"pre_tool_execution": staticmethod(pre_tool_execution)})()

    def engine_for(place):
        if raises is not None:
            raise raises
        return Engine([("a-guard", plugin)], state_dir=folder / "state", threaded=True)

    return engine_for


def ask(folder, payload, agent="claude-code", **more):
    more.setdefault("engine_for", guarded(folder))
    more.update(environ={}, cwd=str(folder), memory=folder / "memory")
    if more.pop("here", False):
        return bridge.answer_here(agent, payload, elsewhere=pytest.fail, **more)
    return bridge.answer(agent, payload, **more)


NESTED = b"[" * 300 + b"]" * 300


def test_the_first_call_of_a_project_is_refused_when_it_cannot_be_read(tmp_path):
    answer = ask(tmp_path, b'{"hook_event_name": "PreToolUse", "tool_name": "Ba')
    assert json.loads(answer.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"


@pytest.mark.parametrize("cut", [0, 3])
@pytest.mark.parametrize(
    "inner",
    [
        b'{"hook_event_name": "Notification", "a": %s}' % NESTED,
        b'{"a": [{"hook_event_name": "Notification"}, %s]}' % NESTED,
        b'{"a": "}}", "hook_event_name": "Notification", "b": %s}' % NESTED,
        b'{"a": "\\"hook_event_name\\": \\"Notification\\"", "b": %s}' % NESTED,
    ],
)
def test_a_model_cannot_name_another_event(tmp_path, inner, cut):
    payload = b'{"tool_input": %s, "hook_event_name": "PreToolUse"}' % inner
    answer = ask(tmp_path, payload[: len(payload) - cut])
    said = json.loads(answer.stdout)
    assert said.get("decision") == "block" or said["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_an_event_that_decides_nothing_needs_no_engine(tmp_path):
    answer = ask(tmp_path, b'{"hook_event_name": "Notification", ', engine_for=None)
    assert answer.stdout == b""


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit(), BaseException("odd")])
def test_a_failure_of_any_kind_is_answered(tmp_path, error):
    ask(tmp_path, json.dumps(PRE).encode())
    answer = ask(tmp_path, json.dumps(PRE).encode(), engine_for=guarded(tmp_path, raises=error))
    assert json.loads(answer.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_ctrl_c_is_ctrl_c(tmp_path):
    with pytest.raises(KeyboardInterrupt):
        ask(
            tmp_path,
            json.dumps(PRE).encode(),
            here=True,
            engine_for=guarded(tmp_path, raises=KeyboardInterrupt()),
        )
    said = []
    thread = threading.Thread(
        target=lambda: said.append(
            ask(
                tmp_path,
                json.dumps(PRE).encode(),
                here=True,
                engine_for=guarded(tmp_path, raises=KeyboardInterrupt()),
            )
        )
    )
    thread.start()
    thread.join(30)
    assert "KeyboardInterrupt" in said[0].stderr


def test_time_that_is_over_is_no_time_for_hooks(tmp_path):
    ask(tmp_path, json.dumps(PRE).encode())
    begun = time.monotonic()
    answer = ask(
        tmp_path, json.dumps(PRE).encode(), timeout=50, spent=60, engine_for=lambda place: time.sleep(20)
    )
    assert time.monotonic() - begun < 10
    assert json.loads(answer.stdout)["hookSpecificOutput"]["permissionDecision"] == "deny"


# -- rules ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tool", ["tool_name", "nothing"])
def test_a_rule_that_denies_fails_closed(tmp_path, tool):
    """It stands above every guard, so no failure of ours may lift it."""

    def engine_for(place):
        return Engine([], permissions={"deny": ["bash(rm *)"]}, state_dir=tmp_path / "file" / "state")

    (tmp_path / "file").symlink_to(tmp_path / "a disk that is not there")
    payload = json.dumps({**PRE, "tool_input": {"command": "rm x"}}).encode()
    answer = ask(tmp_path, payload if tool == "tool_name" else payload[:-9], engine_for=engine_for)
    said = json.loads(answer.stdout)["hookSpecificOutput"]
    assert said["permissionDecision"] == "deny"
    assert "bash(rm *) fails closed" in said["permissionDecisionReason"]


@pytest.mark.parametrize("rules", [{"ask": ["bash"]}, {"always_allow": ["bash"]}])
def test_other_rules_do_not(tmp_path, rules):
    def engine_for(place):
        return Engine([], permissions=rules, state_dir=tmp_path / "file" / "state")

    (tmp_path / "file").symlink_to(tmp_path / "a disk that is not there")
    answer = ask(tmp_path, json.dumps(PRE).encode(), engine_for=engine_for).stdout
    assert b"deny" not in answer
    assert b"allow" not in answer
    assert (b'"ask"' in answer) == ("ask" in rules)
