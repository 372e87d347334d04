"""A resident process of its own for each test that asks for one, and the thin client as an agent runs it."""

from __future__ import annotations

import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

import hookturn.serve.client as client_module

CLIENT = client_module.__file__
GUARD = """
from hookturn import Deny, hookimpl


@hookimpl(guard=True)
def pre_tool_execution(event):
    if "rm -rf" in event.command:
        return Deny("no recursive delete")
"""


def wait_for(condition, seconds=20.0):
    """Wait until a condition holds, and return what it gave."""
    end = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < end, "it did not happen"
        time.sleep(0.01)
    return found


class Home:
    """One user's hookturn: folders, a project with hooks, calls and the resident process.

    Attributes:
        project: the project's folder.
        state, config: the user's folders.
        environ: what an agent's hook gets.
    """

    GUARD = GUARD
    wait_for = staticmethod(wait_for)

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.state = Path(os.environ["HOOKTURN_STATE_DIR"])
        self.config = Path(os.environ["HOOKTURN_CONFIG_DIR"])
        self.config.mkdir(parents=True, exist_ok=True)
        self.project = folder / "project"
        self.project.mkdir()
        (self.project / "hookturn.yaml").write_text('permissions: {deny: ["bash(dd *)"]}\n')
        self.environ = {
            key: value
            for key, value in os.environ.items()
            if not key.startswith(("CLAUDE", "GEMINI", "PYTEST"))
        }
        self.number = 0

    def hook(self, source: str, name: str = "guard", **more) -> Path:
        """Add a module of hooks to the user's configuration."""
        path = self.config / f"{name}.py"
        path.write_text(source)
        hooks = [hook for hook in self.hooks if hook["name"] != name]
        self.configure(hooks=[*hooks, {"name": name, "run": {"module": path.name}, **more}])
        return path

    @property
    def hooks(self) -> list[dict]:
        """The hooks of the user's configuration."""
        return self._configured().get("hooks", [])

    def _configured(self) -> dict:
        known = self.config / "hookturn.yaml"
        return json.loads(known.read_text()) if known.exists() else {}

    def configure(self, **settings) -> None:
        """Change the user's configuration."""
        (self.config / "hookturn.yaml").write_text(json.dumps({**self._configured(), **settings}))

    def payload(self, command="ls", **fields) -> bytes:
        """Return a PreToolUse payload of Claude Code, each call another one."""
        self.number += 1
        data = {
            "session_id": "s1",
            "transcript_path": "",
            "cwd": str(self.project),
            "hook_event_name": "PreToolUse",
            "tool_name": "Bash",
            "tool_input": {"command": command},
            "tool_use_id": f"toolu_{os.getpid()}_{self.number}",
        }
        return json.dumps({**data, **fields}).encode()

    def argv(self, *words) -> list[str]:
        """Return the thin client's command line."""
        return [sys.executable, "-I", "-S", CLIENT, "bridge", "claude-code", *words]

    def begin(self, command="ls", *words, payload=None, **fields):
        """Start a thin client without waiting for it."""
        process = subprocess.Popen(
            self.argv(*words),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            cwd=self.project,
            env=self.environ,
        )
        process.stdin.write(self.payload(command, **fields) if payload is None else payload)
        process.stdin.close()
        process.stdin = None
        return process

    def call(self, command="ls", *words, payload=None, **fields):
        """Call hookturn as the agent does; returns (exit code, answer as JSON or None, standard error)."""
        return self.end(self.begin(command, *words, payload=payload, **fields))

    def hookturn(self, *words) -> dict:
        """Run a command with ``--json`` and return its document."""
        done = subprocess.run(
            [sys.executable, "-I", "-m", "hookturn", *words, "--json"],
            cwd=self.project,
            env=self.environ,
            capture_output=True,
            timeout=60,
        )
        assert done.stdout, done.stderr
        return {**json.loads(done.stdout), "exit_code": done.returncode}

    def status(self) -> dict:
        """Return what ``serve --status`` says."""
        return self.hookturn("serve", "--status")

    def serve(self, *words) -> dict:
        """Start the resident process and return its status."""
        return self.hookturn("serve", *words)

    def http(self) -> Http:
        """Start the resident process, and speak HTTP to it."""
        self.serve()
        return Http(self)

    def running(self) -> list[int]:
        """Return the resident processes of this home, by the process table and not by what they say."""
        mark = str(self.state).encode()
        found = []
        for entry in os.listdir("/proc"):
            if entry.isdigit():
                try:
                    words = Path(f"/proc/{entry}/cmdline").read_bytes().split(b"\0")
                except OSError:
                    continue
                if b"--foreground" in words and any(mark in word for word in words):
                    found.append(int(entry))
        return found

    @staticmethod
    def end(process):
        """Wait for a thin client; returns (exit code, answer as JSON or None, standard error)."""
        out, err = process.communicate(timeout=60)
        return process.returncode, json.loads(out) if out.strip() else None, err.decode()

    @staticmethod
    def decision(answer) -> str:
        """Return the permission decision of an answer, "" for none."""
        return (answer or {}).get("hookSpecificOutput", {}).get("permissionDecision", "")

    def close(self) -> None:
        """End what is left."""
        for pid in self.running():
            for number in (signal.SIGCONT, signal.SIGKILL):
                try:
                    os.kill(pid, number)
                except ProcessLookupError:
                    continue
        wait_for(lambda: not self.running())


class Http:
    """Speaks HTTP to a home's resident process."""

    def __init__(self, home) -> None:
        door = json.loads(Path(home.state, "serve", "http.json").read_text())
        self.port, self.token = door["port"], door["token"]
        self.home = home

    def headers(self, **more) -> dict:
        """Return the headers of a request that is let in; None takes one out."""
        usual = {"Authorization": f"Bearer {self.token}", "Content-Type": "application/json"}
        return {key: value for key, value in {**usual, **more}.items() if value is not None}

    def post(self, body, path="/hooks/claude-code", *, method="POST", **headers):
        """Send one request; returns (status, body)."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=30)
        try:
            connection.request(method, path, body, self.headers(**headers))
            answer = connection.getresponse()
            return answer.status, answer.read()
        finally:
            connection.close()

    def raw(self, data: bytes) -> bytes:
        """Send bytes and return all that comes until the other side closes."""
        with socket.create_connection(("127.0.0.1", self.port), timeout=30) as sock:
            sock.sendall(data)
            sock.shutdown(socket.SHUT_WR)
            return b"".join(iter(lambda: sock.recv(65536), b""))

    def request(self, body: bytes, *lines: str) -> bytes:
        """Return a request that is let in, with more header lines."""
        head = [
            "POST /hooks/claude-code HTTP/1.1",
            f"Host: 127.0.0.1:{self.port}",
            f"Authorization: Bearer {self.token}",
            *lines,
        ]
        return "\r\n".join(head).encode() + b"\r\n\r\n" + body


@pytest.fixture
def home(tmp_path):
    """A user's hookturn with a project; what runs at the end of the test is ended."""
    made = Home(tmp_path)
    yield made
    made.close()


@pytest.fixture
def web(home):
    """HTTP to a resident process with a guard."""
    home.hook(home.GUARD)
    return home.http()
