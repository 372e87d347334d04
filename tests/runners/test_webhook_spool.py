"""Webhooks that nobody waits for: stored on the disk, sent in the background, by this process or a later one."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import signal
import stat
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from hookturn import events
from hookturn.redact import Secret
from hookturn.runners import courier, webhook
from hookturn.runners import spool as room
from hookturn.runners.spool import Damaged, Spool


def _shared():
    spec = importlib.util.spec_from_file_location("webhook_servers", Path(__file__).parent / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_servers = _shared()
reply, tool_call = _servers.reply, _servers.tool_call

pytestmark = pytest.mark.usefixtures("no_leak")

TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"


@pytest.fixture
def hasty(monkeypatch):
    """Shorten the pauses between tries."""
    monkeypatch.setattr(webhook, "SPOOL_BACKOFF", 0.01)


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def end(text="done"):
    return events.SessionEnd(reason=text, session_id="s1")


def until(condition):
    """Wait until a condition holds."""
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < 20, "it never came"
        time.sleep(0.01)


def hang(connection, request, server):
    """Say nothing until the other side goes, or the test is over."""
    server.stopping.wait(20)


def ids(server):
    return [request.headers["webhook-id"] for request in server.requests]


# -- who waits --------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("timing", "event"),
    [
        ("on_session_end", end()),
        ("post_turn", events.PostTurn(session_id="s1")),
        ("on_event", events.Event(type="file.changed", session_id="s1")),
    ],
)
def test_nobody_waits_where_no_answer_counts(serve, remote, timing, event):
    release = threading.Event()

    def late(connection, request, server):
        release.wait(20)
        connection.sendall(reply(200, {"deny": "x"}))

    server = serve(late)
    hook = remote(server, timings=[timing])
    outcome = hook.fire(event)  # returns although the server has said nothing
    assert (outcome.decision, outcome.failures) == (None, ())
    release.set()
    hook.engine.close()
    assert server.requests[0].json["timing"] == timing


def test_nobody_waits_for_an_observer(serve, remote, state):
    server = serve(reply(200, {"deny": "x"}))
    hook = remote(server, observe=True)
    assert hook.fire().decision is None
    hook.engine.close()
    assert server.requests[0].json["timing"] == "pre_tool_execution"
    assert Spool(state).waiting() == [] and Spool(state).dead() == []


def test_order(serve, remote):
    server = serve()
    hook = remote(server, observe=True)
    for number in range(20):
        hook.fire(command=str(number))
    hook.engine.close()
    assert [request.json["event"]["command"] for request in server.requests] == [str(n) for n in range(20)]


def test_in_a_coroutine(serve, remote):
    server = serve()
    hook = remote(server, observe=True)

    async def main():
        await hook.engine.afire(tool_call())
        hook.engine.close()

    asyncio.run(main())
    assert len(server.requests) == 1


def test_without_a_thread_what_is_stored_is_sent_with_the_next(serve, remote, monkeypatch):
    server = serve()
    hook = remote(server, observe=True)
    start = threading.Thread.start

    def none_for_us(thread):
        if thread.name == "hookturn-courier":
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none_for_us)
        for number in range(2):
            assert hook.fire(command=str(number)).failures == ()
    hook.fire(command="2")
    hook.engine.close()
    assert [request.json["event"]["command"] for request in server.requests] == ["0", "1", "2"]


def test_dry_events_are_not_stored(serve, remote, state):
    hook = remote(serve(), observe=True)
    hook.fire(tool_call(dry_run=True))
    assert not state.exists()


# -- on the disk ------------------------------------------------------------------------------------


def test_what_is_stored(serve, remote, state):
    server = serve(hang)
    hook = remote(
        server,
        observe=True,
        headers={"Authorization": Secret("Bearer opensesame", "authorization")},
        secret="whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw",
    )
    hook.fire(command=f"echo {TOKEN} \ud800\0")
    (file,) = (state / "webhooks/spool").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    for folder in (state, state / "webhooks", state / "webhooks/spool"):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    text = file.read_text()
    data = json.loads(text)
    for secret in (TOKEN, "opensesame", "url-secret", "MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"):
        assert secret not in text
    assert data["hook"] == "remote" and data["origin"] == f"http://127.0.0.1:{server.port}"
    assert json.loads(data["body"])["event"]["command"].endswith(" \ud800\0")


def test_nothing_is_written_through_a_link(serve, remote, state, tmp_path):
    state.mkdir(mode=0o700)
    (tmp_path / "elsewhere").mkdir()
    (state / "webhooks").symlink_to(tmp_path / "elsewhere")
    message = remote(serve(), observe=True).failure()
    assert "the event could not be stored, and was not sent" in message
    assert list((tmp_path / "elsewhere").iterdir()) == []


def test_too_many(serve, remote, monkeypatch, state):
    monkeypatch.setattr(room, "MOST", 3)
    hook = remote(serve(hang), observe=True)
    for _ in range(3):
        assert hook.fire().failures == ()
    assert "deliveries wait already" in hook.failure()
    assert len(Spool(state).waiting()) == 3


def test_files_that_are_none(serve, remote, state, hook_log):
    server = serve()
    spool = state / "webhooks/spool"
    spool.mkdir(parents=True, mode=0o700)
    for folder in (state, state / "webhooks"):
        folder.chmod(0o700)
    (spool / "0-bad.json").write_text("{")
    (spool / "1-old.json").write_text('{"schema": 99}')
    (spool / "2-list.json").write_text("[]")
    (spool / "3-deep.json").write_text("[" * 100_000)
    (spool / "4-type.json").write_text('{"schema": 1, "id": 7, "body": "x"}')
    (spool / "5-link.json").symlink_to("/etc/passwd")
    (spool / ".x.tmp").write_text("half")
    (spool / "notes.txt").write_text("mine")
    hook = remote(server, observe=True)
    hook.fire()
    hook.engine.close()
    assert len(server.requests) == 1
    assert sorted(path.name for path in spool.iterdir()) == [".x.tmp", "5-link.json", "notes.txt"]
    assert len(Spool(state).dead()) == 5
    with pytest.raises(Damaged):
        Spool(state).load("0-bad.json", dead=True)
    assert any("is no delivery" in line for line in hook_log.of("webhooks"))


def test_old_temporary_files_go(serve, remote, state):
    hook = remote(serve(), observe=True)
    hook.fire()
    hook.engine.close()
    old, new = state / "webhooks/spool/.a.tmp", state / "webhooks/spool/.b.tmp"
    old.write_text("x")
    new.write_text("x")
    os.utime(old, (1, 1))
    hook = remote(serve(), observe=True)
    hook.fire()
    hook.engine.close()
    assert (old.exists(), new.exists()) == (False, True)


# -- tries ------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("hasty")
def test_it_is_tried_again_with_the_same_id(serve, remote):
    server = serve(reply(500), b"", reply(429, Retry_After="0"), reply(204))
    hook = remote(server, observe=True)
    hook.fire()
    server.wait(4)
    hook.engine.close()
    assert len(set(ids(server))) == 1 and len(server.requests) == 4


@pytest.mark.usefixtures("hasty")
def test_it_is_dead_after_the_last_try(serve, remote, state, hook_log):
    server = serve(reply(500, b"oh no", kind="text/plain"))
    hook = remote(server, observe=True, retries=2)
    hook.fire()
    until(Spool(state).dead)
    hook.engine.close()
    assert len(server.requests) == 3
    dead = Spool(state).load(Spool(state).dead()[0], dead=True)
    assert (dead.tried, dead.id) == (3, ids(server)[0])
    assert "answered 500: oh no" in dead.error
    lines = hook_log.of("webhooks")
    assert len([line for line in lines if "was not delivered, and is tried again" in line]) == 1
    assert len([line for line in lines if "is dead" in line]) == 1


def test_what_never_will_arrive_is_dead_at_once(serve, remote, state):
    for status in (400, 302, 410):
        server = serve(reply(status))
        hook = remote(server, observe=True)
        hook.fire()
        until(Spool(state).dead)
        hook.engine.close()
        assert len(server.requests) == 1
        Spool(state).done(Spool(state).load(Spool(state).dead()[0], dead=True), dead=True)


def test_410_ends_it_for_the_process(serve, remote, state):
    server = serve(reply(410))
    hook = remote(server, observe=True)
    hook.fire()
    until(Spool(state).dead)
    until(lambda: hook.plugin.webhook.gone)
    assert hook.fire().failures == ()
    hook.engine.close()
    assert len(server.requests) == 1 and Spool(state).waiting() == []


def test_a_server_that_fails_is_left_alone_for_a_while(serve, remote, state):
    """One try, not one for each event that waits."""
    server = serve(reply(503, Retry_After="3600"))
    hook = remote(server, observe=True)
    for _ in range(5):
        hook.fire()
    hook.engine.close()
    assert len(server.requests) == 1
    assert len(Spool(state).waiting()) == 5


def test_one_server_does_not_hold_up_another(serve, remote):
    bad, good = serve(reply(503, Retry_After="3600")), serve()
    first, second = remote(bad, observe=True), remote(good, observe=True)
    # Two hooks of one project: they differ by name.
    second.plugin.webhook.key = "another"
    first.fire()
    second.fire()
    good.wait(1)
    assert len(bad.requests) == 1


# -- ends and later processes -------------------------------------------------------------------------


def test_a_close_does_not_wait_for_ever(serve, remote, state, monkeypatch):
    monkeypatch.setattr(courier, "FLUSH", 0.3)
    server = serve(hang)
    hook = remote(server, observe=True)
    hook.fire()
    hook.fire()
    server.wait(1)
    hook.engine.close()
    assert len(Spool(state).waiting()) == 2


def test_a_later_process_sends_what_is_left(serve, remote, state, monkeypatch):
    monkeypatch.setattr(courier, "FLUSH", 0.2)
    server = serve(hang, reply(204))
    hook = remote(server, observe=True)
    hook.fire(command="first")
    server.wait(1)
    hook.engine.close()
    later = remote(server, observe=True)
    later.fire(command="second")
    server.wait(3)
    later.engine.close()
    sent = [request.json["event"]["command"] for request in server.requests]
    assert sent == ["first", "first", "second"]
    assert ids(server)[0] == ids(server)[1]
    assert Spool(state).waiting() == []


def test_an_event_does_not_go_to_a_url_that_it_was_not_meant_for(serve, remote, state, monkeypatch):
    monkeypatch.setattr(courier, "FLUSH", 0.2)
    first, second = serve(hang), serve()
    hook = remote(first, observe=True)
    hook.fire(command="old")
    first.wait(1)
    hook.engine.close()
    hook = remote(second, observe=True)
    hook.fire(command="new")
    hook.engine.close()
    assert [request.json["event"]["command"] for request in second.requests] == ["new"]
    (dead,) = [Spool(state).load(file, dead=True) for file in Spool(state).dead()]
    assert dead.error == "the hook has another URL now"


def test_an_engine_that_goes_on_after_another_closed(serve, remote):
    server = serve()
    first, second = remote(server, observe=True), remote(server, observe=True)
    first.fire(command="1")
    second.fire(command="2")
    first.engine.close()
    second.fire(command="3")
    second.engine.close()
    assert sorted(request.json["event"]["command"] for request in server.requests) == ["1", "2", "3"]
    assert len(set(ids(server))) == 3


CHILD = """
import sys
from hookturn import Engine, events
from hookturn.runners import webhook
from hookturn.runners.addresses import Network
from hookturn.runners.entry import HookEntry
url, state, name, count = sys.argv[1:]
entry = HookEntry(name="remote", kind="webhook", run={"url": url, "observe": True}, timings=["pre_tool_execution"],
                  file="hookturn.yaml", line=7, base_dir="/project", network=Network(["127.0.0.1"]))
engine = Engine(project_dir="/", state_dir=state)
engine.register(webhook.make(entry, state_dir=state), "remote")
for number in range(int(count)):
    engine.fire(events.PreToolExecution(tool="bash", args={"command": f"{name}-{number}"}, session_id="s"))
    print(f"{name}-{number}", flush=True)
engine.close()
"""


def test_processes_share_the_spool(serve, state):
    """Several deliver, one at a time: each event arrives exactly once."""
    server = serve()
    children = [
        subprocess.Popen(
            [sys.executable, "-c", CHILD, server.url, str(state), name, "15"], stdout=subprocess.DEVNULL
        )
        for name in "abc"
    ]
    for child in children:
        assert child.wait(60) == 0
    sent = [request.json["event"]["command"] for request in server.requests]
    left = len(Spool(state).waiting())  # of one whose time to flush went by while another delivered
    assert len(sent) == len(set(sent)) and len(sent) + left == 45


@pytest.mark.fault
def test_kill_9_loses_nothing_that_was_stored(serve, state):
    """Killed at any moment: what was acknowledged arrives, by that process or the next; nothing is damaged."""
    server = serve()
    acknowledged = set()
    for number in range(30):
        child = subprocess.Popen(
            [sys.executable, "-c", CHILD, server.url, str(state), f"p{number}", "1000"],
            stdout=subprocess.PIPE,
        )
        first = child.stdout.readline()
        time.sleep(0.003 * number)
        child.send_signal(signal.SIGKILL)
        rest = child.stdout.read()
        child.wait()
        child.stdout.close()
        words = (first + rest).decode().split("\n")
        acknowledged |= {word for word in words[:-1] if word}
    last = subprocess.run(
        [sys.executable, "-c", CHILD, server.url, str(state), "last", "1"], check=True, capture_output=True
    )
    spool = Spool(state)
    assert spool.dead() == []
    waiting = {json.loads(spool.load(file).body)["event"]["command"] for file in spool.waiting()}
    sent = {request.json["event"]["command"] for request in server.requests}
    acknowledged.add(last.stdout.decode().strip())
    assert len(acknowledged) > 30
    assert acknowledged <= sent | waiting


STORE = """
import sys
from hookturn.runners.spool import Spool
spool = Spool(sys.argv[1])
for number in range(4):
    made = spool.add(id=f"msg_{number}", key="k", hook="h", source="s", origin="o", fingerprint="f", headers={},
                     body=b"x" * 2000)
    sys.stdout.write(f"{made.id}\\n")
    sys.stdout.flush()
"""


@pytest.mark.fault
@pytest.mark.parametrize("call", ["openat", "write", "fsync", "rename", "mkdir"])
def test_kill_9_at_each_system_call_of_storing(call, tmp_path):
    import shutil

    if shutil.which("strace") is None:
        pytest.skip("there is no strace")

    def store(state, *options):
        return subprocess.run(
            ["strace", "-f", "-qq", "-e", f"trace={call}", *options, sys.executable, "-c", STORE, state],
            capture_output=True,
            check=False,
        )

    log = tmp_path / "log"
    assert store(tmp_path / "whole", "-o", log).returncode == 0
    calls = log.read_text().splitlines()
    # What comes before is the interpreter's own start; a write shows no path, and Python writes nothing else.
    begin = next((place for place, line in enumerate(calls) if str(tmp_path) in line), 0)
    killed = 0
    for number in range(begin + 1, len(calls) + 1):
        state = tmp_path / str(number)
        done = store(state, "-o", "/dev/null", "-e", f"inject={call}:signal=SIGKILL:when={number}")
        killed += done.returncode != 0
        spool = Spool(state)
        stored = [spool.load(file).id for file in spool.waiting()]  # none is damaged
        assert set(done.stdout.decode().split()) <= set(stored)
        assert len(stored) == len(set(stored)) <= 4
    assert killed == len(calls) - begin > 0


@pytest.mark.fault
def test_a_full_disk(serve, remote, tmp_path):
    if os.geteuid() != 0:
        pytest.skip("only root mounts a small disk")
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode:
        pytest.skip("a tmpfs cannot be mounted here")
    try:
        server = serve()
        hook = remote(server, observe=True, state_dir=disk / "state")
        hook.fire(command="before")
        server.wait(1)
        until(lambda: Spool(disk / "state").waiting() == [])
        filler = disk / "filler"
        with pytest.raises(OSError), filler.open("wb") as stream:
            while True:
                stream.write(b"x" * 4096)
                stream.flush()
        message = hook.failure(command="full")
        assert "the event could not be stored, and was not sent: No space left on device" in message
        filler.unlink()
        assert hook.fire(command="after").failures == ()
        hook.engine.close()
        sent = [request.json["event"]["command"] for request in server.requests]
        assert sent == ["before", "after"]
        assert [path.name for path in (disk / "state/webhooks/spool").iterdir()] == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)
