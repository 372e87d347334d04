"""A call of a JavaScript hook against a bare echo of the same line by Node; a fire through it against the call alone."""

from __future__ import annotations

import json
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

from harness import Row, side_by_side

from hookturn import Engine, events
from hookturn.runners import javascript
from hookturn.runners.entry import HookEntry
from hookturn.runners.node.resident import Node

ECHO = """
const net = require('node:net');
const line = new net.Socket({ fd: Number(process.argv[1]), readable: true, writable: true });
line.on('data', (chunk) => line.write(chunk)).on('close', () => process.exit());
"""
HOOK = "export const preToolExecution = (event) => event.command === 'rm' ? { deny: 'no' } : undefined;"
REACH = 0.5  # milliseconds over the bare echo
EVENT = events.PreToolExecution(tool="bash", args={"command": "ls"}, session_id="bench")


class Echo:
    """Node with nothing of ours: sends back what it reads."""

    def __init__(self, node: str) -> None:
        self.line, theirs = socket.socketpair()
        argv = [node, "-e", ECHO, str(theirs.fileno())]
        self.process = subprocess.Popen(argv, pass_fds=(theirs.fileno(),))
        theirs.close()

    def trip(self, line: bytes) -> None:
        """Send a line and wait for it to come back."""
        self.line.sendall(line)
        got = 0
        while got < len(line):
            got += len(self.line.recv(65536))

    def close(self) -> None:
        """End it."""
        self.line.close()
        self.process.wait()


def rows() -> list[Row]:
    """Measure and return the rows; none without Node."""
    node = shutil.which("node")
    if node is None:
        print("no node in PATH: JavaScript hooks are not measured")
        return []
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "hook.mjs")
        path.write_text(HOOK)
        timing = ["pre_tool_execution"]
        entry = HookEntry(name="hook", kind="javascript", run=str(path), timings=timing, base_dir=folder)
        engine = Engine(project_dir=folder)
        engine.register(javascript.make(entry), "hook")
        module = Node.for_project(folder).load(str(path), hook_name="hook", contract="hookturn")
        payload = EVENT.to_json()
        line = json.dumps(payload).encode() + b"\n"
        echo = Echo(node)
        env = dict(os.environ)
        try:
            figures = side_by_side(
                {
                    "echo": lambda: echo.trip(line),
                    "call": lambda: module.call("preToolExecution", payload, env=env),
                    "fire": lambda: engine.fire(EVENT),
                },
                rounds=60,
                span=0.05,
            )
        finally:
            echo.close()
            module.close()
            engine.close()
    over = (figures["call"] - figures["echo"]) / 1e6
    return [
        Row("JavaScript hook, one call", figures["call"] / 1e6, "ms"),
        Row("JavaScript hook, one call", over, "ms", "over a bare echo by Node", REACH),
        Row("fire through a JavaScript hook", figures["fire"] / figures["call"], "x", "the call alone", 2),
    ]


if __name__ == "__main__":
    for row in rows():
        print(*row.cells(), sep=" | ")
