"""Ordinary hooks are asked whatever happens to the state folder, by the resident process and without it."""

from __future__ import annotations

import contextlib
import json
import os
import resource
import signal
import subprocess
import sys
import threading
import time

import pytest

pytestmark = pytest.mark.fault

# It fills the disk itself on demand: in the middle of a call, after the session's state was opened.
HOOK = """
import errno, os
from hookturn import Deny, hookimpl


@hookimpl
def pre_tool_execution(event, ctx):
    if "fill" in event.command:
        with open(event.command.partition("fill ")[2], "wb", buffering=0) as file:
            try:
                while True:
                    file.write(b"x" * 512)
            except OSError as error:
                assert error.errno == errno.ENOSPC
    if "rm -rf" in event.command:
        return Deny("no recursive delete" + " " * 5000)  # more than what is left of a block
"""


@pytest.fixture(params=["resident", "alone"])
def caller(request, home):
    """Calls by the thin client, or by a process of its own each."""
    home.hook(HOOK)
    home.configure(plugins={"self-protection": False})
    (home.project / "hookturn.yaml").unlink()  # no rule that denies: nothing fails closed
    if request.param == "alone":
        words = [sys.executable, "-I", "-m", "hookturn", "bridge", "claude-code"]
        home.argv = lambda *more: [*words, *more]
    home.resident = request.param == "resident"
    return home


@pytest.fixture
def small(caller, tmp_path):
    """The state folder on a disk of 600 kB."""
    disk = tmp_path / "small"
    disk.mkdir()
    if os.geteuid() or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", disk]).returncode:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        caller.state = disk / "state"
        caller.environ["HOOKTURN_STATE_DIR"] = str(caller.state)
        if caller.resident:
            caller.serve()
        yield disk
    finally:
        caller.close()
        while os.path.ismount(disk):
            subprocess.run(["umount", "-l", disk], check=True)


def fill(disk):
    with open(disk / "fill", "wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(b"x" * 512)


def decide(home, command, decision, **fields):
    """Call, and return what was said on standard error."""
    code, answer, told = home.call(command, **fields)
    assert (code, home.decision(answer)) == (0, decision), told
    return told


def intact(home):
    """Whether all that was stored is whole; the number of sessions."""
    files = list((home.state / "projects").rglob("*"))
    assert not [path for path in files if path.suffix in (".damaged", ".tmp")]
    for path in files:
        if path.suffix == ".json":
            json.loads(path.read_bytes() or b"{}")
        if path.name == "session.jsonl":
            assert [json.loads(line) for line in path.read_bytes().splitlines()]
    return sum(path.name == "session.jsonl" for path in files)


def test_a_disk_that_fills_in_the_middle_of_a_call(caller, small):
    for session in ("known", "new"):
        if session == "known":
            assert decide(caller, "ls", "", session_id=session) == ""
        told = decide(caller, f"rm -rf / && fill {small / 'fill'}", "deny", session_id=session)
        assert told.count(str(caller.state)) == 1
        assert "No space left on device" in told
        decide(caller, "rm -rf /", "deny", session_id=session)
        decide(caller, "ls", "", session_id=session)
        (small / "fill").unlink()
        assert decide(caller, "rm -rf /", "deny", session_id=session) == ""
        assert decide(caller, "ls", "", session_id=session) == ""
    assert intact(caller) == 2


def test_parallel_calls_and_kills_on_a_full_disk(caller, small):
    decide(caller, "ls", "", session_id="s0")
    fill(small)
    wrong = []

    def agent(number):
        for step in range(6):
            command, decision = [("rm -rf /", "deny"), ("ls", "")][step % 2]
            code, answer, told = caller.call(command, session_id=f"s{number % 2}")
            if (code, caller.decision(answer)) != (0, decision):
                wrong.append((command, code, answer, told))
            if number == 0 and step == 3:
                (small / "fill").unlink()

    agents = [threading.Thread(target=agent, args=(number,)) for number in range(4)]
    for thread in agents:
        thread.start()
    for pid in caller.running():
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    for thread in agents:
        thread.join()
    assert not wrong
    for number in range(2):
        assert decide(caller, "rm -rf /", "deny", session_id=f"s{number}") == ""
    assert intact(caller) == 2


def test_a_folder_that_becomes_read_only(caller, small):
    decide(caller, "ls", "")
    for options in (["--bind", small], ["-o", "remount,ro,bind"]):
        subprocess.run(["mount", *options, small], check=True)
    for session in ("new",) if caller.resident else ("s1", "new"):  # it may write to what it has open
        told = decide(caller, "rm -rf /", "deny", session_id=session)
        assert "Read-only file system" in told
        assert told.count("HOOKTURN_STATE_DIR") == 1
        decide(caller, "ls", "", session_id=session)
    subprocess.run(["umount", "-l", small], check=True)
    for session in ("s1", "new"):
        for _ in range(2):
            told = decide(caller, "rm -rf /", "deny", session_id=session)
        assert told == ""
    assert intact(caller) == 2


@pytest.mark.parametrize("guard", [False, True])
def test_a_file_in_the_place_of_a_session(caller, guard):
    if guard:
        caller.hook(caller.GUARD, name="other")
    caller.serve()
    decide(caller, "ls", "")
    (path,) = caller.state.rglob("session.jsonl")
    kept = path.rename(path.with_name("kept"))
    path.mkdir()
    told = decide(caller, "rm -rf /", "deny")
    assert str(path) in told
    decide(caller, "ls", "deny" if guard else "")  # it may have been a refusal
    path.rmdir()
    kept.rename(path)
    assert decide(caller, "rm -rf /", "deny") == ""
    assert decide(caller, "ls", "") == ""


@pytest.mark.parametrize("left", [0, 1, 2, 3, 6, 10])
@pytest.mark.parametrize("young", [False, True])
def test_a_resident_process_without_files_to_open(home, left, young):
    """Some are left beside the connection itself: for what it has not loaded yet, for its configuration, for states,
    for the loop of a coroutine, for a program."""
    home.hook(HOOK)
    home.hook(home.GUARD, name="other")
    home.hook(HOOK.replace("\ndef pre", "\nasync def pre").replace("rm -rf", "mkfs"), name="coroutine")
    program = {"command": """case "$(cat)" in *shred*) echo no shred >&2; exit 2;; esac"""}
    home.configure(
        hooks=[*home.hooks, {"name": "program", "timings": ["pre_tool_execution"], "run": program}]
    )
    home.configure(plugins={"self-protection": False})
    (home.project / "hookturn.yaml").unlink()
    pid = home.serve()["pid"]
    decide(home, "ls", "")
    if not young:  # else it looks at its configuration anew
        time.sleep(0.1)
        decide(home, "ls", "")
    fds = {int(name) for name in os.listdir(f"/proc/{pid}/fd")}
    free = [fd for fd in range(256) if fd not in fds][left + 1]
    before = resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (free, before[1]))
    for session in ("s1", "new", "s1"):
        for command in ("rm -rf /", "mkfs /dev/sda", "shred x"):
            decide(home, command, "deny", session_id=session)
        decide(home, "ls", "", session_id=session)
    assert home.running() == [pid]
    resource.prlimit(pid, resource.RLIMIT_NOFILE, before)
    for session in ("s1", "new"):
        decide(home, "ls", "", session_id=session)
        assert decide(home, "rm -rf /", "deny", session_id=session) == ""
    intact(home)


@pytest.mark.parametrize("caller", ["resident"], indirect=True)
def test_ordinary_hooks_are_asked_over_http(caller, small):
    web, home = caller.http(), caller
    fill(small)
    status, body = web.post(home.payload("rm -rf /"))
    assert (status, home.decision(json.loads(body))) == (200, "deny")
    status, body = web.post(home.payload("rm -rf /", session_id="new"))
    assert (status, home.decision(json.loads(body))) == (200, "deny")
    assert home.decision(json.loads(web.post(home.payload("ls"))[1] or b"{}")) == ""
