"""``hookturn bridge`` as agents call it: processes, exit codes, standard streams, many at once, killed at any moment."""

from __future__ import annotations

import json
import os
import random
import shlex
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from claude_answers import check

from hookturn.engine.journal import Journal

CAPTURES = Path(__file__).parent.parent / "data/captures/claude"
PRE = json.loads((CAPTURES / "PreToolUse.json").read_text())

GUARD = """
from hookturn import Deny, Inject, hookimpl

@hookimpl(guard=True, tools=["bash"])
def pre_tool_execution(event):
    print("a hook prints")
    if "rm" in event.command:
        return Deny("No rm.")

@hookimpl
def system_prompt():
    return Inject("Write tests.")
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    """A user with a guard in their own configuration, and a project."""
    config = Path(os.environ["HOOKTURN_CONFIG_DIR"])
    config.mkdir(parents=True)
    (config / "guard.py").write_text(GUARD)
    (config / "hookturn.yaml").write_text(
        "hooks:\n  - name: no-rm\n    timings: [pre_tool_execution, system_prompt]\n    run: {module: guard.py}\n"
    )
    folder = tmp_path / "my project"
    folder.mkdir()
    for name in [*os.environ]:
        if name.startswith(("CLAUDE", "COPILOT", "GEMINI", "QWEN")):
            monkeypatch.delenv(name)
    return folder


def stored(path):
    """Return the state of a session."""
    with Journal(path, path.parents[2]) as data:
        return data


def call(project, payload, *words, agent=("claude-code",), stdin=True, **environ):
    data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
    return subprocess.run(
        [sys.executable, "-m", "hookturn", "bridge", *agent, *words],
        input=data if stdin else None,
        stdin=None if stdin else subprocess.DEVNULL,
        capture_output=True,
        cwd=project,
        env={**os.environ, **environ},
        timeout=120,
    )


class Said:
    def __init__(self, done):
        self.stdout, self.stderr, self.exit_code = done.stdout, done.stderr, done.returncode


def denied(done):
    own = check("PreToolUse", Said(done)).get("hookSpecificOutput", {})
    return own.get("permissionDecision") == "deny"


def payload(project, command="ls", call_id="toolu_1", **more):
    return {**PRE, "cwd": str(project), "tool_input": {"command": command}, "tool_use_id": call_id, **more}


def test_a_guard_of_the_user_denies(project):
    done = call(project, payload(project, "rm -rf /"))
    assert denied(done)
    assert b"No rm." in done.stdout
    assert b"a hook prints" in done.stderr  # and nowhere else


def test_what_passes_says_nothing(project):
    done = call(project, payload(project))
    assert (done.returncode, done.stdout) == (0, b"")


@pytest.mark.parametrize(
    "python", [{"PYTHONUTF8": "0", "PYTHONIOENCODING": "cp932"}, {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0"}]
)
def test_the_locale_has_no_say(project, python):
    text = 'rm "表\ud83d"'
    done = call(project, payload(project, text), **python)
    assert denied(done)
    done = call(project, json.dumps(payload(project, 'rm "表"'), ensure_ascii=False).encode(), **python)
    assert denied(done)


@pytest.mark.parametrize(
    ("agent", "words"),
    [
        ((), ()),
        (("clod-code",), ()),
        (("claude-code", "another"), ()),
        (("claude-code",), ("--no-such-option",)),
        (("claude-code",), ("--timeout", "soon")),
        (("claude-code",), ("--timeout", "-3")),
        (("claude-code",), ("--timeout",)),
        (("claude-code",), ("--json",)),
        (("claude-code",), ("--project", "/nowhere")),
    ],
)
def test_a_wrong_command_line_is_never_a_refusal(project, agent, words):
    done = call(project, payload(project), *words, agent=agent)
    assert (done.returncode, done.stdout) == (0, b""), done.stderr
    assert b"Traceback" not in done.stderr
    if words != ("--json",):
        assert words == ("--project", "/nowhere") or words == ("--timeout",) or b"hookturn: " in done.stderr


@pytest.mark.parametrize(
    "words", [["--timeout", "30"], ["--timeout=30"], ["--event", "PreToolUse"], ["--new-option"]]
)
def test_options_leave_the_guard_in_place(project, words):
    assert denied(call(project, payload(project, "rm x"), *words))


def test_words_in_another_order_and_wrong_ones_among_them(project):
    for words in (
        ["--project", str(project), "bridge", "claude-code"],
        ["--json", "bridge", "claude-code", "--bogus"],
    ):
        done = subprocess.run(
            [sys.executable, "-m", "hookturn", *words],
            input=b"{}",
            capture_output=True,
            cwd=project,
            timeout=120,
        )
        assert done.returncode == 0, words


def test_help_is_help():
    done = subprocess.run(
        [sys.executable, "-m", "hookturn", "bridge", "--help"], capture_output=True, timeout=120
    )
    assert done.returncode == 0
    assert b"AGENT" in done.stdout


@pytest.mark.parametrize("content", [b"", b"null", b"{", b"\xff\xfe", b"x" * 1_000_000])
def test_no_traceback_whatever_comes(project, content):
    call(project, payload(project))
    done = call(project, content)
    assert done.returncode == 0
    assert b"Traceback" not in done.stderr
    assert json.loads(done.stdout)["decision"] == "block"  # the guard fails closed


def test_no_standard_streams_at_all(project):
    script = f"exec {shlex.quote(sys.executable)} -m hookturn bridge claude-code"
    for closed in ("<&-", "2>&-", "<&- 2>&-", ">&-", "<&- >&- 2>&-"):
        done = subprocess.run(
            ["sh", "-c", f"{script} {closed}"], input=json.dumps(payload(project)).encode(), capture_output=True,
            cwd=project, timeout=120,
        )  # fmt: skip
        assert done.returncode == 0, closed


def test_an_agent_that_does_not_end_its_payload_is_answered(project):
    process = subprocess.Popen(
        [sys.executable, "-m", "hookturn", "bridge", "claude-code", "--timeout", "3"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=project,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdin.write(json.dumps(payload(project, "rm x")).encode())
    process.stdin.flush()
    assert process.wait(60) == 0
    assert b"No rm." in process.stdout.read()
    process.stdin.close()
    process.stdout.close()
    process.stderr.close()


def test_an_agent_that_went_away_is_no_matter(project):
    process = subprocess.Popen(
        [sys.executable, "-m", "hookturn", "bridge", "claude-code"],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=project,
    )  # fmt: skip
    assert process.stdin is not None and process.stdout is not None and process.stderr is not None
    process.stdout.close()
    process.stdin.write(json.dumps(payload(project, "rm x")).encode())
    process.stdin.close()
    assert process.wait(60) == 0
    assert b"Traceback" not in process.stderr.read()
    process.stderr.close()


def test_a_hook_that_hangs_holds_up_neither_answer_nor_process(project):
    config = Path(os.environ["HOOKTURN_CONFIG_DIR"])
    (config / "guard.py").write_text(
        GUARD + "\nimport time\n\n@hookimpl\ndef on_tool_call_start():\n    time.sleep(100)\n"
    )
    (config / "hookturn.yaml").write_text(
        "hooks:\n  - name: slow\n    timings: [pre_tool_execution, on_tool_call_start]\n    run: {module: guard.py}\n"
    )
    begun = time.monotonic()
    done = call(project, payload(project, "rm x"), "--timeout", "4")
    assert time.monotonic() - begun < 30
    assert denied(done)


def test_separate_processes_share_turns_context_and_calls(project):
    def send(name, **more):
        fields = json.loads((CAPTURES / f"{name}.json").read_text())
        done = call(project, {**fields, "cwd": str(project), **more})
        return check(name, Said(done)).get("hookSpecificOutput", {}).get("additionalContext", "")

    assert send("SessionStart") == ""
    assert send("UserPromptSubmit") == "Write tests."
    send("PreToolUse")
    send("PostToolUse")
    assert send("PostToolBatch") == ""
    send("Stop")
    assert send("UserPromptSubmit") == ""
    (state,) = Path(os.environ["HOOKTURN_STATE_DIR"]).glob("projects/*/runs/*/session.jsonl")
    assert stored(state)["turn"] == 2
    assert state.stat().st_mode & 0o777 == 0o600
    send("SessionEnd")


@pytest.mark.fault
def test_parallel_calls_of_one_session_lose_nothing(project):
    call(project, {**json.loads((CAPTURES / "UserPromptSubmit.json").read_text()), "cwd": str(project)})
    count = 16

    def one(number):
        command = "rm x" if number % 2 else "ls"
        begun = call(project, payload(project, command, f"toolu_{number}"))
        if not denied(begun):
            done = {**json.loads((CAPTURES / "PostToolUse.json").read_text()), "cwd": str(project)}
            call(project, {**done, "tool_use_id": f"toolu_{number}"})
        return denied(begun)

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(one, range(count))) == [bool(number % 2) for number in range(count)]
    (state,) = Path(os.environ["HOOKTURN_STATE_DIR"]).glob("projects/*/runs/*/session.jsonl")
    data = stored(state)
    assert data["turn"] == 1
    turn = data["turns"][""]
    assert not turn["open"]
    assert {row["call_id"]: row["status"] for row in turn["calls"]} == {
        f"toolu_{number}": "denied" if number % 2 else "ok" for number in range(count)
    }


@pytest.mark.fault
def test_a_bridge_that_is_killed_at_any_moment_harms_no_later_call(project):
    """Killed calls may leave anything half done but the state: the next call decides and each call ends once."""
    draw = random.Random(7)
    call(project, {**json.loads((CAPTURES / "UserPromptSubmit.json").read_text()), "cwd": str(project)})
    begun = time.monotonic()
    call(project, payload(project, "ls", "toolu_measure"))
    usual = time.monotonic() - begun
    for number in range(25):
        process = subprocess.Popen(
            [sys.executable, "-m", "hookturn", "bridge", "claude-code"], stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd=project, start_new_session=True,
        )  # fmt: skip
        assert process.stdin is not None
        process.stdin.write(json.dumps(payload(project, "rm x", f"toolu_{number}")).encode())
        process.stdin.close()
        time.sleep(draw.uniform(0.3, 1.1) * usual)
        process.send_signal(signal.SIGKILL)
        process.wait()
        assert denied(call(project, payload(project, "rm x", f"toolu_{number}"))), number
    call(project, {**json.loads((CAPTURES / "Stop.json").read_text()), "cwd": str(project)})
    trail = [json.loads(line) for line in (project / ".hookturn/audit.jsonl").read_text().splitlines()]
    posts = [row["call_id"] for row in trail if row["timing"] == "post_tool_execution"]
    denies = {row["call_id"] for row in trail if row.get("decision") == "deny"}
    assert {f"toolu_{number}" for number in range(25)} <= denies
    assert len(posts) == len(set(posts))
    (state,) = Path(os.environ["HOOKTURN_STATE_DIR"]).glob("projects/*/runs/*/session.jsonl")
    assert not stored(state)["turns"]
    assert not list(state.parent.glob("*.damaged"))


def test_an_event_that_is_not_known_is_told_once_and_never_refused(project):
    odd = {**PRE, "hook_event_name": "PreToolUes", "tool_input": {"command": "rm x"}}
    first, again, other = (
        call(project, odd),
        call(project, odd),
        call(project, {**odd, "hook_event_name": "Nova"}),
    )
    for done in (first, again, other):
        assert (done.returncode, done.stdout) == (0, first.stdout)
        assert b"deny" not in done.stdout
    assert (
        first.stderr.decode()
        == "hookturn: the event 'PreToolUes' of claude-code is not known (did you mean 'PreToolUse'?): "
        "no hook can decide it, and on_event hooks see it as 'claude-code.pre_tool_ues'\n"
    )
    assert again.stderr == b""
    assert "the event 'Nova' of claude-code is not known: no hook" in other.stderr.decode()


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"tool_input": ["ls"]}, "tool_input is an array, not an object"),
        ({"tool_input": None}, "tool_input is missing, not an object"),
        ({"tool_name": {}}, "tool_name is an object, not a name"),
        ({"tool_name": 5}, "tool_name is a number, not a name"),
    ],
    ids=["array", "missing", "object", "number"],
)
def test_an_odd_payload_is_described_in_the_words_of_json(project, change, words):
    assert words in call(project, {**PRE, **change}).stderr.decode()
