"""A webhook's round trip on the loopback against ``http.client`` doing the same; storing one against a bare fsync."""

from __future__ import annotations

import http.client
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import Row, side_by_side

from hookturn import Engine, events
from hookturn.runners import webhook
from hookturn.runners.addresses import Network
from hookturn.runners.entry import HookEntry
from hookturn.runners.spool import Spool

SERVER = r"""
import socket
with socket.create_server(("127.0.0.1", 0), backlog=64) as listener:
    print(listener.getsockname()[1], flush=True)
    while True:
        connection, _ = listener.accept()
        with connection:
            data = connection.recv(65536)
            while data and not data.endswith(b"}"):
                data += connection.recv(65536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 2\r\n\r\n{}")
"""
SECRET = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"


def rows() -> list[Row]:
    """Measure and return the rows."""
    command = [sys.executable, "-I", "-S", "-c", SERVER]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as server, tempfile.TemporaryDirectory() as folder:
        try:
            assert server.stdout is not None
            return _rows(int(server.stdout.readline()), folder)
        finally:
            server.kill()


def _rows(port: int, folder: str) -> list[Row]:
    run = {"url": f"http://127.0.0.1:{port}/hook", "secret": SECRET}
    entry = HookEntry(
        name="remote",
        kind="webhook",
        run=run,
        timings=["pre_tool_execution"],
        base_dir="/",
        network=Network([f"127.0.0.1:{port}"]),
    )
    engine = Engine(project_dir="/")
    engine.register(webhook.make(entry, state_dir=folder), "remote")
    event = events.PreToolExecution(tool="bash", args={"command": "ls -l src"}, session_id="bench")
    body = webhook.make(entry).webhook.wire.request(entry, None, event, None, None)  # type: ignore[arg-type]
    spool = Spool(folder)
    bare = Path(folder, "bare")

    def raw() -> None:
        connection = http.client.HTTPConnection("127.0.0.1", port, timeout=10)
        connection.request("POST", "/hook", body, {"Content-Type": "application/json", "Connection": "close"})
        assert connection.getresponse().read() == b"{}"
        connection.close()

    def fire() -> None:
        assert not engine.fire(event).failures

    def store() -> None:
        made = spool.add(
            id="msg_x", key="k", hook="h", source="s", origin="o", fingerprint="f", headers={}, body=body
        )
        spool.done(made)

    def fsync() -> None:
        with bare.open("wb") as stream:
            stream.write(body)
            stream.flush()
            os.fsync(stream.fileno())
        bare.unlink()

    figures = side_by_side({"raw": raw, "fire": fire, "store": store, "fsync": fsync}, rounds=40, span=0.02)
    return [
        Row("webhook, signed and redacted, on the loopback", figures["fire"] / 1e6, "ms"),
        Row("webhook, signed and redacted, on the loopback", figures["fire"] / figures["raw"], "x", "http.client"),
        Row("webhook that nobody waits for, stored", figures["store"] / 1e6, "ms"),
        Row("webhook that nobody waits for, stored", figures["store"] / figures["fsync"], "x", "write, fsync"),
    ]  # fmt: skip


if __name__ == "__main__":
    for row in rows():
        print(*row.cells(), sep=" | ")
