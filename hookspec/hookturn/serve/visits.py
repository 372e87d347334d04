"""HTTP visits: an agent's hook as a request to ``/hooks/AGENT``, its answer as the response."""

from __future__ import annotations

import socket
from contextlib import suppress
from time import monotonic
from urllib.parse import parse_qsl

from ..agents.bridge import AGENTS, MAX_BYTES
from . import web
from .calls import seconds
from .door import admit

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .calls import Calls
    from .door import Door
    from .web import Head, Stream

PREFIX = "/hooks/"

HEAD_SECONDS = 10.0
"""Seconds in which a request's head must arrive once it has begun, and each part of its body."""

BODY_SECONDS = 60.0

QUIET_SECONDS = 300.0
"""Seconds that a connection may stay open between requests."""


class Visits:
    """Serves HTTP connections.

    Parameters:
        door: who is let in.
        calls: runs the calls.
        fresh: asked before each call; makes way for another process when this one is outdated.
    """

    def __init__(self, door: Door, calls: Calls, fresh: Callable[[], bool]) -> None:
        self._door = door
        self._calls = calls
        self._fresh = fresh

    def serve(self, connection: socket.socket) -> None:
        """Answer the requests of a connection, one after another."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        time = _Time(connection)
        stream = web.Stream(time.receive)
        while True:
            time.begin(QUIET_SECONDS, HEAD_SECONDS)
            try:
                head = stream.head()
                if head is None:
                    return
                admit(self._door, head)
                with self._calls:
                    if not self._visit(connection, stream, head, time):
                        return
            except web.BadRequest as error:
                self._refuse(connection, error.status, error.why)
                return
            except TimeoutError:
                if time.begun:
                    self._refuse(connection, 408, "the request did not arrive in time")
                return
            except OSError:
                return

    def _refuse(self, connection: socket.socket, status: int, why: str) -> None:
        with suppress(OSError):
            connection.sendall(web.response(status, f"{why}\n".encode(), keep_alive=False, kind="text/plain"))
            # Closing with unread input would take the answer back (a reset).
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(1.0)
            left = 1_048_576
            while left > 0 and (part := connection.recv(65536)):
                left -= len(part)

    def _visit(self, connection: socket.socket, stream: Stream, head: Head, time: _Time) -> bool:
        """Answer one request; whether another may follow."""
        path, _, query = head.target.partition("?")
        agent = path.removeprefix(PREFIX)
        if not path.startswith(PREFIX) or agent not in AGENTS:
            raise web.BadRequest(404, "hooks are at /hooks/AGENT")
        if head.method != "POST":
            raise web.BadRequest(405, "POST the payload")
        expected = head.one("expect")
        if expected is not None:
            if expected.lower() != "100-continue":
                raise web.BadRequest(417, "only 100-continue can be expected")
            connection.sendall(web.CONTINUE)
        time.begin(BODY_SECONDS, BODY_SECONDS)
        payload = stream.body(head, MAX_BYTES)
        connection.settimeout(BODY_SECONDS)
        fresh = self._fresh()  # an outdated process answers this one all the same: nobody else can
        options = dict(parse_qsl(query))
        environ, cwd = self._calls.environment(payload)
        about: dict[str, Any] = {"environ": environ, "cwd": cwd, "event": options.get("event", "")}
        timeout = seconds(options.get("timeout", ""))
        keep_alive = head.keep_alive and fresh

        def too_late() -> None:
            answer = self._calls.late(agent, payload, **about)
            with suppress(OSError):
                connection.sendall(_response(answer, keep_alive=False))
                connection.shutdown(socket.SHUT_RDWR)

        late = self._calls.in_time(timeout, too_late)
        try:
            answer = self._calls.run(agent, payload, timeout=timeout, **about)
        except Exception as error:  # a caller without an answer would let the call through
            answer = self._calls.late(
                agent, payload, cause=f"hookturn failed: {type(error).__name__}", **about
            )
        finally:
            answered = self._calls.done(late)
        if answered:
            connection.sendall(_response(answer, keep_alive=keep_alive))
        return answered and keep_alive


def _response(answer: Any, *, keep_alive: bool) -> bytes:
    """Return an agent's answer as HTTP; the exit code, where there is one, is a header."""
    body = answer.stdout
    raw = web.response(200, body, keep_alive=keep_alive)
    if answer.exit_code:
        line, _, rest = raw.partition(b"\r\n")
        raw = line + f"\r\nHookturn-Exit-Code: {answer.exit_code}\r\n".encode() + rest
    return raw


class _Time:
    """Receives with a limit for the first byte and one for all of a request: slow senders hold no thread."""

    def __init__(self, connection: socket.socket) -> None:
        self._connection = connection
        self.begun = False
        self._whole = 0.0
        self._end = 0.0

    def begin(self, first: float, whole: float) -> None:
        """Begin a request, or a part of one: seconds until something comes, and until all must be there."""
        self.begun = False
        self._whole = whole
        self._connection.settimeout(first)

    def receive(self, size: int) -> bytes:
        """Return what has come, at most ``size`` bytes."""
        if self.begun:
            self._connection.settimeout(max(self._end - monotonic(), 0.001))
        part = self._connection.recv(size)
        if not self.begun:
            self.begun = True
            self._end = monotonic() + self._whole
        return part
