"""What can happen to the resident process at any moment, with real signals: no decision may be lost."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.fault

SLOW = """
import pathlib, time
from hookturn import Deny, hookimpl

@hookimpl(guard=True)
def pre_tool_execution(event, ctx):
    with open(pathlib.Path(ctx.project_dir, "ran"), "a") as file:
        file.write("x")
    time.sleep(0.7)
    if "rm" in event.command:
        return Deny("slow but sure")
"""


def test_24_cold_starts_give_one_process_and_24_answers(home):
    home.hook(home.GUARD)
    calls = [home.begin("rm -rf /") for _ in range(24)]
    answers = [home.end(call) for call in calls]
    assert [(code, home.decision(answer)) for code, answer, _ in answers] == [(0, "deny")] * 24
    home.wait_for(lambda: home.status()["running"])
    assert len(home.running()) == 1


def test_a_socket_left_by_kill_9_is_survived(home):
    home.hook(home.GUARD)
    pid = home.serve()["pid"]
    os.kill(pid, signal.SIGKILL)
    home.wait_for(lambda: not home.running())
    assert home.decision(home.call("rm -rf /")[1]) == "deny"
    home.wait_for(lambda: home.status()["running"])
    assert home.decision(home.call("rm -rf /")[1]) == "deny"
    assert home.status()["calls"] == 1


def test_kill_9_in_the_middle_of_a_call_loses_no_decision(home):
    home.hook(SLOW)
    pid = home.serve()["pid"]
    call = home.begin("rm x")
    home.wait_for((home.project / "ran").exists)
    os.kill(pid, signal.SIGKILL)
    code, answer, _ = home.end(call)
    assert (code, home.decision(answer)) == (0, "deny")


def test_kill_9_at_any_moment_loses_no_decision_and_no_audit_record(home):
    home.hook(home.GUARD)
    (home.project / "hookturn.yaml").write_text("plugins: {audit-log: true}\n")
    answered = []

    def agent(number):
        for step in range(15):
            name = f"toolu_{number}_{step}"
            code, answer, err = home.call("rm -rf /", tool_use_id=name, session_id=f"s{number}")
            assert (code, home.decision(answer)) == (0, "deny"), err
            answered.append(name)

    agents = [threading.Thread(target=agent, args=(number,)) for number in range(3)]
    for thread in agents:
        thread.start()
    while any(thread.is_alive() for thread in agents):
        for pid in home.running():
            with contextlib.suppress(ProcessLookupError):  # it lost the race for the lock and is gone
                os.kill(pid, signal.SIGKILL)
        time.sleep(0.15)
    assert len(answered) == 45
    records = list((home.project / ".hookturn").glob("audit*.jsonl"))
    text = "".join(path.read_text() for path in records)
    assert all(name in text for name in answered)
    assert home.hookturn("audit", "verify")["exit_code"] == 0


@pytest.mark.parametrize("closed", [True, False])
def test_a_stopped_process_is_answered_by_policy_at_the_deadline(home, closed):
    home.hook(home.GUARD if closed else home.GUARD.replace("guard=True", ""))
    if not closed:
        home.configure(plugins={"self-protection": False})  # a guard, too
        (home.project / "hookturn.yaml").write_text("permissions: {}\n")  # no rule that denies
    pid = home.serve()["pid"]
    assert home.decision(home.call("ls")[1]) == ""
    os.kill(pid, signal.SIGSTOP)
    begun = time.monotonic()
    code, answer, err = home.call("ls", "--timeout", "3.5")
    taken = time.monotonic() - begun
    assert (code, home.decision(answer)) == (0, "deny" if closed else "")
    assert err
    assert 2.5 < taken < 3.5
    # The stopped one was of no use to anybody: the next call has another.
    home.wait_for(lambda: pid not in home.running())
    assert home.decision(home.call("rm -rf /")[1]) == "deny"


def test_a_stopped_process_that_goes_on_in_time_answers(home):
    home.hook(home.GUARD)
    pid = home.serve()["pid"]
    home.call("ls")
    os.kill(pid, signal.SIGSTOP)
    call = home.begin("rm -rf /", "--timeout", "8")
    time.sleep(0.5)
    os.kill(pid, signal.SIGCONT)
    assert home.decision(home.end(call)[1]) == "deny"
    assert home.running() == [pid]


def test_a_hook_that_hangs_is_left_behind(home):
    home.hook(
        "import time\n" + home.GUARD.replace("    if", "    time.sleep(600)\n    if"), name="hang", timeout=1
    )
    home.hook(home.GUARD, name="late")
    home.serve()
    code, answer, _ = home.call("rm -rf /", "--timeout", "8")
    assert (code, home.decision(answer)) == (0, "deny")
    assert home.status()["calls"] == 1


def test_a_hook_that_ends_the_process_loses_no_decision(home):
    home.hook(
        """
import os
from hookturn import hookimpl

@hookimpl
def pre_tool_execution(event, ctx):
    if "--foreground" in open("/proc/self/cmdline").read():
        os.kill(os.getpid(), 9)
""",
        name="bomb",
    )
    home.hook(home.GUARD)
    home.serve()
    assert home.decision(home.call("rm -rf /")[1]) == "deny"


def test_a_hook_that_leaves_by_exit_costs_its_own_answer_only(home):
    """With the resident process and, when that is gone, without."""
    home.hook(
        """
import os
from hookturn import hookimpl

@hookimpl
def on_tool_call_start(event, ctx):
    os._exit(0)
""",
        name="leaver",
    )
    home.hook(home.GUARD)
    home.serve()
    (pid,) = home.running()
    assert home.decision(home.call("rm -rf /")[1]) == "deny"
    assert home.running() == [pid]


@pytest.mark.parametrize("asynchronous", ["", "async "], ids=["sync", "async"])
def test_a_child_that_a_hook_forks_keeps_nobody_waiting_and_no_place(home, asynchronous):
    """It holds what the resident process has open: the caller's connection, the lock, the sockets."""
    home.hook(
        f"""
import os, time
from hookturn import hookimpl

@hookimpl
{asynchronous}def on_tool_call_start(event, ctx):
    if "worker" in event.command and os.fork() == 0:
        time.sleep(60)
        os._exit(0)
""",
        name="worker",
    )
    home.hook(home.GUARD)
    port = home.serve()["http"]
    (pid,) = home.running()
    begun = time.monotonic()
    assert home.decision(home.call("worker; rm -rf /")[1]) == "deny"
    assert time.monotonic() - begun < 30
    assert len(home.running()) == 2
    os.kill(pid, signal.SIGKILL)
    assert home.decision(home.call("rm -rf /")[1]) == "deny"
    home.wait_for(lambda: home.status().get("http") == port)


def test_a_child_that_a_coroutine_hook_forks_ends_when_it_comes_back(home):
    home.hook(
        """
import asyncio, os
from hookturn import Deny, hookimpl

@hookimpl(timeout=5)
async def pre_tool_execution(event, ctx):
    os.fork()
    if "wait" in event.command:
        await asyncio.sleep(0.1)
    return Deny(str(os.getpid()))
""",
        name="forks",
    )
    home.serve()
    (pid,) = home.running()
    for command in ("ls", "wait", "ls"):
        code, answer, _ = home.call(command)
        assert code == 0 and str(pid) in json.dumps(answer)
    home.wait_for(lambda: home.running() == [pid])


@pytest.mark.parametrize("number", [0, 1, 2])
def test_a_hook_that_closes_a_standard_stream_hangs_up_on_nobody(home, number):
    """The next connection would get the stream's number: what hooks print would go there, and be no answer."""
    home.hook(
        f"""
import contextlib, os
from hookturn import hookimpl

@hookimpl
def on_tool_call_start(event, ctx):
    with contextlib.suppress(OSError):
        os.write({number}, b"words of a hook")
    with contextlib.suppress(OSError):
        os.close({number})
""",
        name="closes",
    )
    home.hook(home.GUARD)
    web = home.http()
    (pid,) = home.running()
    for command, decision in (("rm -rf /", "deny"), ("ls", ""), ("rm -rf /", "deny")) * 2:
        status, body = web.post(home.payload(command))
        assert (status, home.decision(json.loads(body or "{}"))) == (200, decision)
        assert home.decision(home.call(command)[1]) == decision
    assert home.running() == [pid]


def test_a_home_that_cannot_be_written(home):
    home.hook(home.GUARD)
    (home.state).parent.mkdir(exist_ok=True)
    home.state.write_text("no folder")
    code, answer, _ = home.call("rm -rf /")
    assert (code, home.decision(answer)) == (0, "deny")
    assert home.running() == []


def test_a_foreign_folder_in_tmp_is_not_used(home, tmp_path):
    """Anybody can make a folder there first."""
    from hookturn.serve import start

    folder = tmp_path / "hookturn-0"
    folder.symlink_to(tmp_path)
    with pytest.raises(OSError, match="symbolic link"):
        start.prepare(str(folder / "x.sock"))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_another_user_is_not_answered(home):
    with tempfile.TemporaryDirectory() as folder:
        home.environ["HOOKTURN_STATE_DIR"] = f"{folder}/state"
        home.state = Path(folder, "state")
        status = home.serve()
        for path in (folder, f"{folder}/state", f"{folder}/state/serve"):
            os.chmod(path, 0o755)
        os.chmod(status["socket"], 0o666)
        script = (
            "import os, socket, sys; os.setgid(65534); os.setuid(65534); s = socket.socket(socket.AF_UNIX);"
            "s.connect(sys.argv[1]); s.sendall(b'HT1 1 0 6 0 0 0\\nstatus'); sys.stdout.write(repr(s.recv(99)))"
        )
        done = subprocess.run(
            ["/usr/bin/env", "python3", "-c", script, status["socket"]], capture_output=True, text=True
        )
        home.close()
    assert done.stdout == "b''" or "ConnectionReset" in done.stderr or "BrokenPipe" in done.stderr


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
@pytest.mark.parametrize("guard", [True, False])
def test_a_full_disk_costs_no_decision(home, tmp_path, guard):
    home.hook(home.GUARD if guard else home.GUARD.replace("(guard=True)", ""))
    small = tmp_path / "small"
    small.mkdir()
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(small)]).returncode:
        pytest.skip("tmpfs cannot be mounted here")
    try:
        home.environ["HOOKTURN_STATE_DIR"] = str(small / "state")
        home.state = small / "state"
        home.serve()
        assert home.decision(home.call("rm -rf /")[1]) == "deny"
        with open(small / "fill", "wb", buffering=0) as file, pytest.raises(OSError):
            while True:
                file.write(b"x" * 4096)
        for _ in range(3):
            code, answer, _ = home.call("rm -rf /")
            assert (code, home.decision(answer)) == (0, "deny")
        for pid in home.running():
            os.kill(pid, signal.SIGKILL)
        code, answer, _ = home.call("rm -rf /")
        assert (code, home.decision(answer)) == (0, "deny")
        code, answer, told = home.call("rm -rf /", session_id="new")
        assert (code, home.decision(answer)) == (0, "deny")
        assert "No space left on device" in told
        assert home.decision(home.call("ls", session_id="new")[1]) == ""
        os.unlink(small / "fill")
        for _ in range(2):
            code, answer, told = home.call("rm -rf /", session_id="new")
            assert (code, home.decision(answer)) == (0, "deny")
        assert "No space" not in told
        assert list(small.rglob("session.jsonl"))
    finally:
        home.close()
        subprocess.run(["umount", "-l", str(small)], check=True)


def test_connections_that_say_nothing_do_not_keep_others_waiting(home):
    home.hook(home.GUARD)
    status = home.serve()
    door = json.loads(Path(home.state, "serve", "http.json").read_text())
    silent = []
    try:
        for _ in range(60):
            for kind, address in (
                (socket.AF_UNIX, status["socket"]),
                (socket.AF_INET, ("127.0.0.1", door["port"])),
            ):
                sock = socket.socket(kind)
                sock.connect(address)
                silent.append(sock)
        assert home.decision(home.call("rm -rf /")[1]) == "deny"
        assert home.status()["calls"] == 1
    finally:
        for sock in silent:
            sock.close()
