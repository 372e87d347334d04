"""What an agent waits for a decision: the thin client, HTTP, and the start of everything without a resident process.

Six plugins and the audit trail are on. The rows of one kind take turns in one run.
"""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import sys
import tempfile
import venv
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter
from typing import Any

from harness import Row

ROUNDS = 31
REQUESTS = 1_000
SESSIONS = 4
FIRST, MANY = 50_000, 100_000
COLD = 24
GUARD = """
from hookturn import Deny, hookimpl


@hookimpl
def pre_tool_execution(event):
    if "rm -rf" in event.command:
        return Deny("no recursive delete")
"""


class Place:
    """A user with six plugins, a project with an audit trail, and payloads."""

    def __init__(self, folder: Path) -> None:
        self.project = folder / "project"
        config = folder / "config"
        for made in (self.project, config):
            made.mkdir(parents=True)
        (self.project / ".git").mkdir()
        hooks = []
        for number in range(6):
            (config / f"plugin_{number}.py").write_text(GUARD)
            hooks.append({"name": f"plugin-{number}", "run": {"module": f"plugin_{number}.py"}})
        (config / "hookturn.yaml").write_text(json.dumps({"hooks": hooks, "plugins": {"audit-log": True}}))
        self.environ = {
            key: value
            for key, value in os.environ.items()
            if key != "PYTHONDONTWRITEBYTECODE" and not key.startswith("HOOKTURN_")
        }
        self.environ.update(HOOKTURN_STATE_DIR=str(folder / "state"), HOOKTURN_CONFIG_DIR=str(config))
        self.state = folder / "state"
        import hookturn.serve.client as client

        self.client = [sys.executable, "-I", "-S", client.__file__, "bridge", "claude-code"]
        self.bridge = [os.path.join(os.path.dirname(sys.executable), "hookturn"), "bridge", "claude-code"]
        bare = folder / "bare"
        venv.create(bare, with_pip=False, symlinks=True)
        self.bare = [str(bare / "bin" / "python"), "-c", "pass"]
        self._number = 0

    def payload(self, event: str = "PreToolUse", session: str = "s", number: int | None = None) -> bytes:
        """Return a payload; each PreToolUse is another call unless a number is given."""
        self._number += number is None
        data: dict[str, Any] = {
            "session_id": session,
            "transcript_path": "",
            "cwd": str(self.project),
            "hook_event_name": event,
            "tool_name": "Bash",
            "tool_input": {"command": "git status --short"},
            "tool_use_id": f"toolu_{session}_{self._number if number is None else number}",
        }
        if event == "PostToolUse":
            data["tool_response"] = {"stdout": " M a.py", "stderr": "", "interrupted": False}
        return json.dumps(data).encode()

    def run(self, argv: list[str], payload: bytes) -> float:
        """Run a program to its end and return the seconds that it took."""
        begun = perf_counter()
        subprocess.run(
            argv, input=payload, check=True, stdout=subprocess.DEVNULL, env=self.environ, cwd=self.project
        )
        return perf_counter() - begun

    def serve(self, *words: str) -> dict[str, Any]:
        """Run ``hookturn serve`` and return what it says."""
        argv = [sys.executable, "-I", "-m", "hookturn", "serve", "--json", *words]
        done = subprocess.run(argv, check=True, capture_output=True, env=self.environ, cwd=self.project)
        found: dict[str, Any] = json.loads(done.stdout)
        return found


def rows() -> list[Row]:
    """Measure and return the rows."""
    folder = Path(tempfile.mkdtemp(prefix="hb"))
    place = Place(folder)
    try:
        return [*_cold(place), *_starts(place), *_instructions(place), *_http(place), _memory(place)]
    finally:
        place.serve("--stop")
        shutil.rmtree(folder)


def _cold(place: Place) -> list[Row]:
    """Many calls at once where nothing runs yet."""
    calls = [
        subprocess.Popen(
            place.client,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            env=place.environ,
            cwd=place.project,
        )
        for _ in range(COLD)
    ]
    for call in calls:
        call.communicate(place.payload())
    answers = sum(call.returncode == 0 for call in calls)
    place.serve()
    mark = os.fsencode(place.state)
    alive = 0
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                words = (entry / "cmdline").read_bytes()
            except OSError:
                continue
            alive += b"--foreground" in words and mark in words
    return [
        Row(f"{COLD} simultaneous cold starts: answers", answers, "answers", "", COLD, less=False),
        Row(f"{COLD} simultaneous cold starts: resident processes", alive, "processes", "", 1),
    ]


def _starts(place: Place) -> list[Row]:
    taken: dict[str, list[float]] = {"bare": [], "thin": [], "alone": []}
    for _ in range(ROUNDS):
        taken["bare"].append(place.run(place.bare, b""))
        taken["thin"].append(place.run(place.client, place.payload()))
        taken["alone"].append(place.run(place.bridge, place.payload(session="alone")))
    middle = {name: median(values) for name, values in taken.items()}
    return [
        Row("thin client, resident process", middle["thin"] / middle["bare"], "x", "python -c pass", 1.0),
        Row(
            "hookturn bridge, no resident process",
            middle["alone"] / middle["bare"],
            "x",
            "python -c pass",
            4.0,
        ),
    ]


def _instructions(place: Place) -> list[Row]:
    valgrind = shutil.which("valgrind")
    if valgrind is None:
        return []

    def count(argv: list[str], payload: bytes) -> int:
        done = subprocess.run(
            [valgrind, "--tool=callgrind", "--callgrind-out-file=/dev/null", *argv],
            input=payload, capture_output=True, check=True, env=place.environ, cwd=place.project,
        )  # fmt: skip
        line = next(line for line in done.stderr.splitlines() if b"Collected" in line)
        return int(line.split()[-1])

    ratio = count(place.client, place.payload()) / count(place.bare, b"")
    return [Row("thin client, resident process: instructions", ratio, "x", "python -c pass", 0.8)]


class Agent:
    """Asks over one keep-alive connection, with as little work as possible: it is on the measured machine."""

    def __init__(self, place: Place) -> None:
        self._place = place
        door = json.loads((place.state / "serve" / "http.json").read_text())
        self._head = (
            f"POST /hooks/claude-code HTTP/1.1\r\nHost: 127.0.0.1:{door['port']}\r\n"
            f"Authorization: Bearer {door['token']}\r\nContent-Type: application/json\r\nContent-Length: "
        ).encode()
        self._connection = socket.create_connection(("127.0.0.1", door["port"]))
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    def ask(self, payload: bytes) -> None:
        """Ask, and expect that nobody objects."""
        self._connection.sendall(b"%s%d\r\n\r\n%s" % (self._head, len(payload), payload))
        answer = self._connection.recv(65_536)
        if not answer.startswith(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"):
            raise RuntimeError(f"another answer than none: {answer!r}")

    def work(self, session: str, calls: int, times: list[float] | None = None) -> None:
        """Sessions of twenty calls, one after another: decisions and, not timed, their ends."""
        for number in range(calls):
            name = f"{session}-{number // 20}"
            payload = self._place.payload(session=name, number=number)
            begun = perf_counter()
            self.ask(payload)
            if times is not None:
                times.append(perf_counter() - begun)
            self.ask(self._place.payload("PostToolUse", name, number))

    def close(self) -> None:
        self._connection.close()


def _memory(place: Place) -> Row:
    """What many calls leave in the resident process once it keeps as many sessions as it may (1,000)."""
    place.serve()
    pid = place.serve("--status")["pid"]
    agent = Agent(place)

    def resident() -> int:
        return int(Path(f"/proc/{pid}/statm").read_text().split()[1])

    agent.work("first", FIRST // 2)
    before = resident()
    agent.work("many", MANY // 2)
    agent.close()
    return Row(f"memory after {MANY:,} further calls", resident() / before, "x", f"{FIRST:,} calls", 1.1)


def _http(place: Place) -> list[Row]:
    """Decisions over keep-alive connections: one agent that waits for each, then several at once."""
    place.serve()

    def agent(session: str, calls: int, times: list[float] | None = None) -> None:
        asks = Agent(place)
        asks.work(session, calls, times)
        asks.close()

    agent("warm", 40)
    times: list[float] = []
    agent("one", REQUESTS, times)
    cuts = quantiles(times, n=100)
    rate = max(_rate(agent, round_) for round_ in range(5))
    return [
        Row("HTTP decision, six plugins and audit: p50", cuts[49] * 1e3, "ms", "", 0.5),
        Row("HTTP decision, six plugins and audit: p99", cuts[98] * 1e3, "ms", "", 5.0),
        Row(
            f"HTTP requests over {SESSIONS} connections, best of 5 rounds",
            rate,
            "a second",
            "",
            3_000,
            less=False,
        ),
    ]


def _rate(agent: Callable[[str, int], None], round_: int) -> float:
    """Requests a second. Other programs on the machine can only lessen it, so the best round counts."""
    begun = perf_counter()
    with ThreadPoolExecutor(SESSIONS) as pool:
        list(pool.map(lambda number: agent(f"r{round_}s{number}", REQUESTS // SESSIONS), range(SESSIONS)))
    return 2 * REQUESTS / (perf_counter() - begun)


if __name__ == "__main__":
    for row in rows():
        print(*row.cells(), sep=" | ")
