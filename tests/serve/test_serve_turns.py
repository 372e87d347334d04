"""Many connections at once: none waits for a slow one, whatever makes it slow, and nothing costs while nobody asks."""

from __future__ import annotations

import os
import re
import resource
import signal
import socket
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from hookturn.serve.turns import Gate, Guest, Pace, Turns

SLOW = 12
"""More than threads are kept for."""

HOLD = """
import os, pathlib, time
from hookturn import hookimpl

@hookimpl
def pre_tool_execution(event, ctx):
    if event.command.startswith("hold"):
        folder = pathlib.Path(ctx.project_dir)
        (folder / event.command.replace(" ", "-")).touch()
        while not (folder / "go").exists():
            time.sleep(0.01)
"""

QUICK = """
import sys
from hookturn.serve import turns, visits

visits.HEAD_SECONDS = visits.BODY_SECONDS = 0.3
visits.QUIET_SECONDS = 0.6
turns.MOST_GUESTS = 20
from hookturn.cli import main

sys.exit(main(["serve", "--foreground"]))
"""


@pytest.fixture
def quick(home):
    """HTTP to a resident process with little patience and little room."""
    home.hook(home.GUARD)
    process = subprocess.Popen(
        [sys.executable, "-c", QUICK], cwd=home.project, env=home.environ, stderr=subprocess.DEVNULL
    )
    home.wait_for(lambda: home.hookturn("serve", "--status").get("http"))
    yield home.http()
    process.terminate()
    process.wait()


def connect(web) -> socket.socket:
    return socket.create_connection(("127.0.0.1", web.port), timeout=30)


def ask(web, sock, command, **fields) -> None:
    body = web.home.payload(command, **fields)
    sock.sendall(web.request(body, f"Content-Length: {len(body)}"))


def answer(sock) -> bytes:
    """Return one whole answer; nothing when the connection ends."""
    head = b""
    while not head.endswith(b"\r\n\r\n"):
        part = sock.recv(1)  # not more: the next answer may follow
        if not part:
            return head
        head += part
    length = int(re.search(rb"Content-Length: (\d+)", head)[1])
    body = b""
    while len(body) < length:
        body += sock.recv(length - len(body))
    return head + body


def threads(pid) -> int:
    return len(os.listdir(f"/proc/{pid}/task"))


def switches(pid) -> int:
    """Return how often threads of a process have gone to sleep."""
    found = [Path(f"/proc/{pid}/task/{task}/status").read_text() for task in os.listdir(f"/proc/{pid}/task")]
    return sum(int(re.search(r"^voluntary_ctxt_switches:\s+(\d+)", text, re.M)[1]) for text in found)


def seconds(pid) -> float:
    """Return the processor time of a process."""
    words = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(words[11]) + int(words[12])) / os.sysconf("SC_CLK_TCK")


def sockets(pid) -> int:
    """Return how many sockets a process has."""
    found = 0
    for fd in os.listdir(f"/proc/{pid}/fd"):
        with suppress(FileNotFoundError):
            found += os.readlink(f"/proc/{pid}/fd/{fd}").startswith("socket:")
    return found


def test_nobody_waits_for_slow_hooks_and_their_connections_go_on(web, home):
    home.hook(HOLD, name="hold")
    pid = home.status()["pid"]
    with ExitStack() as stack:
        slow = [stack.enter_context(connect(web)) for _ in range(SLOW)]
        fast = stack.enter_context(connect(web))
        for again in range(2):  # the second time it is known that they are slow
            for number, sock in enumerate(slow):
                ask(web, sock, f"hold {again} {number}", session_id=f"slow{number}")
            for number in range(SLOW):
                home.wait_for((home.project / f"hold-{again}-{number}").exists)
            for command in ("ls", "rm -rf /"):
                ask(web, fast, command, session_id="fast")
                assert (b"deny" in answer(fast)) is (command != "ls")
            assert home.decision(home.call("rm -rf /", session_id="thin")[1]) == "deny"
            (home.project / "go").touch()
            assert [b" 200 " in answer(sock) for sock in slow] == [True] * SLOW
            (home.project / "go").unlink()
        for sock in slow:
            ask(web, sock, "rm -rf /")
            assert b"deny" in answer(sock)
        # Threads of hooks stay, those that served do not.
        home.wait_for(lambda: threads(pid) < 2 * SLOW)


def test_a_hook_that_hangs_costs_its_time_only(web, home):
    """Its thread is left behind: who comes after it still decides, and the process is as before."""
    home.hook(HOLD.replace("@hookimpl", "@hookimpl(timeout=0.3)"), name="hold")
    pid = home.status()["pid"]
    try:
        for number in range(2):
            with connect(web) as sock:
                ask(web, sock, f"hold {number}; rm -rf x")
                assert b"deny" in answer(sock)
            assert (home.project / f"hold-{number};-rm--rf-x").exists()
        assert home.decision(home.call("hold 3; rm -rf x")[1]) == "deny"
        home.wait_for(lambda: home.status()["in_flight"] == 0)
        assert sockets(pid) < 6
    finally:
        (home.project / "go").touch()
    assert b"deny" in web.post(home.payload("rm -rf /"))[1]
    home.wait_for(lambda: threads(pid) < 12)
    assert home.status()["pid"] == pid


GREEDY = """
import sys, time, pathlib
from hookturn import hookimpl

@hookimpl(timeout=LIMIT)
def pre_tool_execution(event, ctx):
    if event.command.startswith("hold"):
        before = sys.getswitchinterval()
        sys.setswitchinterval(60)  # as a regular expression does that takes its time: nobody else runs
        end = time.monotonic() + 0.8
        while time.monotonic() < end:
            pass
        sys.setswitchinterval(before)
        while not (pathlib.Path(ctx.project_dir) / "go").exists():
            time.sleep(0.01)
"""


@pytest.mark.parametrize(("limit", "query"), [("30", "?timeout=1"), ("0.3", "")], ids=["agents", "hooks"])
def test_a_hook_that_lets_nobody_run_and_then_hangs_costs_its_time_only(web, home, limit, query):
    """All that watches sees too late what it waits for: the connection may be closed before the leader changes."""
    home.hook(GREEDY.replace("LIMIT", limit), name="greedy")
    home.status()
    try:
        for number in range(8):
            assert (
                web.post(home.payload("hold", session_id=f"s{number}"), f"/hooks/claude-code{query}")[0]
                == 200
            )
            assert b"deny" in web.post(home.payload("rm -rf /"))[1]
        home.wait_for(lambda: limit == "30" or home.status()["in_flight"] == 0)
    finally:
        (home.project / "go").touch()
    home.wait_for(lambda: home.status()["in_flight"] == 0)


EDGE = """
import time
from hookturn import hookimpl

@hookimpl(timeout=0.1)
def pre_tool_execution(event):
    time.sleep(0.1 + int(event.command.split(";")[0].split()[1]) * 0.01)
"""

BEHIND = """
import time
from hookturn import hookimpl

@hookimpl
def pre_tool_execution(event):
    time.sleep(0.1)
"""


def test_a_hook_that_comes_back_when_its_time_is_just_over_costs_no_answer(web, home):
    """The thread that was left behind closes nothing that the answer still has to go through."""
    home.hook(EDGE, name="edge")
    home.hook(BEHIND, name="behind")
    home.status()

    def one(number):
        command = f"edge {number % 16}; rm -rf x"
        if number % 4 == 0:
            return home.decision(home.call(command, session_id=f"s{number}")[1]) == "deny"
        with connect(web) as sock:
            ask(web, sock, command, session_id=f"s{number}")
            return b"deny" in answer(sock)

    with ThreadPoolExecutor(16) as pool:
        assert all(pool.map(one, range(64)))
    home.wait_for(lambda: home.status()["in_flight"] == 0)


def test_nobody_waits_for_slow_senders(web, home):
    with ExitStack() as stack:
        slow = [stack.enter_context(connect(web)) for _ in range(SLOW)]
        body = home.payload("rm -rf /")
        request = web.request(body, f"Content-Length: {len(body)}")
        head = len(request) - len(body)
        cuts = [20 if number % 2 else head + 5 for number in range(SLOW)]
        for sock, cut in zip(slow, cuts, strict=True):
            sock.sendall(request[:cut])
        assert home.decision(home.call("rm -rf /")[1]) == "deny"
        assert b"deny" in web.post(home.payload("rm -rf /"))[1]
        for sock, cut in zip(slow, cuts, strict=True):
            for place in range(cut, len(request), 50):
                sock.sendall(request[place : place + 50])
            assert b"deny" in answer(sock)


def test_two_requests_in_one_packet_are_both_answered_on_an_open_connection(web, home):
    bodies = [home.payload(command) for command in ("ls", "rm -rf /")]
    requests = [web.request(body, f"Content-Length: {len(body)}") for body in bodies]
    with connect(web) as sock:
        for split in (0, 30):  # the third: its beginning comes with the first two, its end later
            sock.sendall(b"".join(requests) + requests[1][:split])
            assert b"deny" not in answer(sock)
            assert b"deny" in answer(sock)
        sock.sendall(requests[1][30:])
        assert b"deny" in answer(sock)


def test_200_idle_connections_and_one_that_asks(web, home):
    with ExitStack() as stack:
        idle = [stack.enter_context(connect(web)) for _ in range(200)]
        assert b"deny" in web.post(home.payload("rm -rf /"))[1]
        for sock in (idle[0], idle[100], idle[199]):
            ask(web, sock, "rm -rf /")
            assert b"deny" in answer(sock)


def test_connections_that_go_away_in_any_way_leave_nothing(web, home):
    pid = home.status()["pid"]
    web.post(home.payload("ls"))
    before = sockets(pid)
    for number in range(30):
        sock = connect(web)
        if number % 3:
            ask(web, sock, "ls")
        if number % 2:  # a reset, the answer unread
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        sock.close()
    assert b"deny" in web.post(home.payload("rm -rf /"))[1]
    home.wait_for(lambda: sockets(pid) <= before)
    assert home.status()["pid"] == pid


def test_a_connection_may_be_quiet_for_its_time_only(quick, home):
    with connect(quick) as silent, connect(quick) as used:
        ask(quick, used, "rm -rf /")
        assert b"deny" in answer(used)
        assert (silent.recv(1), used.recv(1)) == (b"", b"")


@pytest.mark.parametrize("part", ["head", "body"])
def test_a_request_that_does_not_arrive_in_time_is_refused(quick, home, part):
    body = home.payload("ls")
    request = quick.request(body, f"Content-Length: {len(body)}")
    with connect(quick) as sock:
        sock.sendall(request[: 20 if part == "head" else -5])
        assert b" 408 " in answer(sock)
        assert sock.recv(1) == b""


def test_more_connections_than_there_is_room_for_wait_until_others_leave(quick, home):
    with ExitStack() as stack:
        for _ in range(40):
            stack.enter_context(connect(quick))
        pid = home.status()["pid"]
        home.wait_for(lambda: sockets(pid) >= 20)
        assert sockets(pid) < 30
        assert b"deny" in quick.post(home.payload("rm -rf /"))[1]
        assert home.decision(home.call("rm -rf /")[1]) == "deny"


def test_a_process_that_may_open_no_more_files_serves_again_when_it_may(web, home):
    pid = home.status()["pid"]
    web.post(home.payload("ls"))
    number, old = len(os.listdir(f"/proc/{pid}/fd")) + 5, resource.prlimit(pid, resource.RLIMIT_NOFILE)
    resource.prlimit(pid, resource.RLIMIT_NOFILE, (number, old[1]))
    with ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(connect(web))
        late = stack.enter_context(connect(web))
        ask(web, late, "rm -rf /")
        home.wait_for(lambda: len(os.listdir(f"/proc/{pid}/fd")) >= number)
        before = seconds(pid)
        time.sleep(0.5)
        assert seconds(pid) - before < 0.3  # it does not try again and again
        resource.prlimit(pid, resource.RLIMIT_NOFILE, old)
        assert b"deny" in answer(late)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGKILL])
def test_the_end_while_it_is_busy(web, home, number):
    """Calls that run come to their end, and so do those that wait for their turn; kill -9 ends all at once."""
    home.hook(HOLD, name="hold")
    status = home.status()
    pid = status["pid"]
    with ExitStack() as stack:
        slow, other = stack.enter_context(connect(web)), stack.enter_context(connect(web))
        ask(web, slow, "hold")
        home.wait_for((home.project / "hold").exists)
        os.kill(pid, number)
        if number == signal.SIGTERM:
            home.wait_for(lambda: not Path(status["socket"]).exists())
            ask(web, other, "rm -rf /", session_id="other")
            found = answer(other)
            assert b"deny" in found and b"Connection: close" in found
            (home.project / "go").touch()
            assert b" 200 " in answer(slow)
        else:
            with pytest.raises(ConnectionError):
                if not slow.recv(1):
                    raise ConnectionResetError
        home.wait_for(lambda: not home.running())
    assert b"deny" in home.http().post(home.payload("rm -rf /"))[1]


def test_an_idle_process_does_nothing(web, home):
    """A watch that ticks would wake up hundreds of times in this second."""
    pid = home.status()["pid"]
    with connect(web) as sock:
        ask(web, sock, "ls")
        answer(sock)
        time.sleep(0.5)
        before = switches(pid)
        time.sleep(1.0)
        assert switches(pid) - before < 20


def test_a_connection_whose_descriptor_somebody_closed_costs_no_other_one_its_turn():
    class Caller(Guest):
        def serve(self):
            words = self.sock.recv(100)
            if words == b"close":
                os.close(self.sock.fileno())
            elif words:
                self.sock.sendall(b"here")
            return words == b"hello"

    notes = []
    gate = socket.create_server(("127.0.0.1", 0))
    port = gate.getsockname()[1]
    turns = Turns(lambda: None, notes.append)
    turns.add(Gate(gate, lambda connection: Caller(connection, 60, Pace())))
    turns.begin()
    for words, answer in ((b"hello", b"here"), (b"close", b""), (b"hello", b"here")):
        with socket.create_connection(("127.0.0.1", port), timeout=20) as sock:
            sock.sendall(words)
            assert sock.recv(100) == answer
    turns.close()
    assert notes == []
