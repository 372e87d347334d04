"""What in-process hooks leave behind, or do to the process that answers: the agent has the guard's answer, at once."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

ODD = """
import os, subprocess, sys, threading, time
from hookturn import hookimpl

@hookimpl
def on_tool_call_start(event):
    {}
"""
GUARD = """
from hookturn import Deny, hookimpl

@hookimpl(guard=True)
def pre_tool_execution(event):
    return Deny("No.")
"""
PAYLOAD = {
    "hook_event_name": "PreToolUse",
    "session_id": "s",
    "tool_name": "Bash",
    "tool_input": {"command": "ls"},
    "tool_use_id": "t1",
}
NOTE = "open('pid', 'a').write(f'{%s}\\n')"


@pytest.fixture
def call(tmp_path):
    """Call a bridge whose first hook runs some statements, as an agent that reads its pipes to their end."""
    config = Path(os.environ["HOOKTURN_CONFIG_DIR"])
    config.mkdir(parents=True)
    (config / "guard.py").write_text(GUARD)
    (config / "hookturn.yaml").write_text(
        "hooks:\n  - {name: odd, timings: [on_tool_call_start], run: {module: odd.py}}\n"
        "  - {name: guard, timings: [pre_tool_execution], run: {module: guard.py}}\n"
    )

    def run(statements):
        (config / "odd.py").write_text(ODD.format(statements))
        return subprocess.run(
            [sys.executable, "-m", "hookturn", "bridge", "claude-code", "--event", "PreToolUse"],
            input=json.dumps({**PAYLOAD, "cwd": str(tmp_path)}).encode(),
            capture_output=True,
            cwd=tmp_path,
            timeout=100,
        )

    yield run
    pids = tmp_path / "pid"
    for pid in pids.read_text().split() if pids.exists() else ():
        assert int(pid) > 1
        with suppress(ProcessLookupError):
            os.kill(int(pid), signal.SIGKILL)


def denied(done):
    own = json.loads(done.stdout)["hookSpecificOutput"]
    return done.returncode == 0 and own["permissionDecision"] == "deny"


@pytest.mark.parametrize(
    "statements",
    [
        f"p = subprocess.Popen(['sleep', '300']); {NOTE % 'p.pid'}",
        "subprocess.call('sleep 300 & echo $! >> pid', shell=True)",
        f"pid = os.fork(); {NOTE % 'pid or os.getpid()'}; pid or (time.sleep(300), os._exit(0))",
    ],
    ids=["a program", "a program of a shell", "a child of its own"],
)
def test_what_a_hook_leaves_running_does_not_keep_the_agent_waiting(call, statements):
    assert denied(call(statements))  # within the 100 seconds: what it left lives for 300


def test_a_child_that_comes_back_answers_nothing(call):
    assert denied(call(f"pid = os.fork(); {NOTE % 'pid or os.getpid()'}"))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.parametrize("then", ["None", "1 / 0"])
def test_a_child_that_comes_back_ends(call, tmp_path, then):
    from fcntl import LOCK_EX, LOCK_NB, flock

    held = "held = os.open('held', os.O_RDWR | os.O_CREAT); import fcntl; fcntl.flock(held, fcntl.LOCK_EX)"
    assert denied(call(f"{held}; pid = os.fork(); {NOTE % 'pid or os.getpid()'}; {then}"))
    until = time.monotonic() + 100
    with open(tmp_path / "held") as file:
        while True:  # the child holds it, too, until it is gone
            try:
                return flock(file, LOCK_EX | LOCK_NB)
            except BlockingIOError:
                assert time.monotonic() < until, "it is still there"
                time.sleep(0.02)


@pytest.mark.parametrize(
    "statements",
    [
        "os._exit(0)",
        "os._exit(3)",
        "sys.exit(0)",
        "t = threading.Thread(target=os._exit, args=(0,)); t.start(); t.join()",
    ],
)
def test_leaving_costs_the_hook_its_own_answer_only(call, statements):
    done = call(statements)
    assert denied(done)
    assert b"SystemExit" in done.stderr or "Thread" in statements  # a thread ends by it in silence


@pytest.mark.parametrize("first", [0, 3])
def test_an_answer_whose_pipe_a_hook_closed_is_a_refusal_by_exit_code(call, first):
    assert call(f"os.closerange({first}, 256)").returncode == 2


def test_a_plugin_that_is_let_go_changes_no_exit_code(call):
    dispose = "\n\n@hookimpl\ndef on_dispose():\n    os._exit(0)"
    assert call(f"os.closerange(0, 256){dispose}").returncode == 2


@pytest.mark.parametrize("last", [4, 5, 6, 7])
def test_no_file_that_takes_the_number_of_a_closed_pipe_is_written_to(call, tmp_path, last):
    statements = (
        f"os.closerange(3, {last}); "
        "[os.open(f'taken{n}', os.O_RDWR | os.O_CREAT) for n in range(5)]; "
        "sys.stderr.write('said'); os.write(2, b'said'); time.sleep(0.1)"
    )
    call(statements)
    assert {file.name: file.read_bytes() for file in tmp_path.glob("taken*")} == {
        f"taken{number}": b"" for number in range(5)
    }


def test_all_that_hooks_print_arrives(call):
    done = call("sys.stderr.write('x' * 300_000); os.write(2, b'y' * 300_000); os.write(1, b'z' * 300_000)")
    assert denied(done)
    assert [done.stderr.count(letter) for letter in (b"x", b"y", b"z")] == [300_000] * 3
