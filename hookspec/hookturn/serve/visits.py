"""HTTP visits: an agent's hook as a request to ``/hooks/AGENT``, its answer as the response."""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from time import monotonic
from urllib.parse import parse_qsl

from ..agents.bridge import AGENTS, MAX_BYTES
from . import web
from .calls import seconds
from .door import admit
from .turns import Guest, Pace

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .calls import Calls, Ticket
    from .door import Door
    from .web import Head

PREFIX = "/hooks/"

HEAD_SECONDS = 10.0
"""Seconds in which a request's head must arrive once it has begun."""

BODY_SECONDS = 60.0
"""Seconds in which all of a body must arrive, and for each step of sending an answer."""

QUIET_SECONDS = 300.0
"""Seconds that a connection may stay open between requests."""

LEAVING_SECONDS = 1.0
"""Seconds that the other side has to read why it is refused."""


class Visits:
    """Serves HTTP connections.

    Parameters:
        door: who is let in.
        calls: runs the calls.
        fresh: asked before each call; makes way for another process when this one is outdated.
    """

    def __init__(self, door: Door, calls: Calls, fresh: Callable[[], bool]) -> None:
        self.door = door
        self.calls = calls
        self.fresh = fresh

    def greet(self, connection: socket.socket) -> Visit:
        """Begin to serve a connection, which does not block."""
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return Visit(connection, self)


class Visit(Guest):
    """A connection: when something has come, it is a request, or several one after another."""

    __slots__ = ("_head", "_line", "_stream", "_visits", "_way")

    def __init__(self, connection: socket.socket, visits: Visits) -> None:
        super().__init__(connection, QUIET_SECONDS, Pace())
        self._visits = visits
        self._line = _Line(connection)
        self._stream = web.Stream(self._line.receive)
        self._head: Head | None = None  # the last that was let in, and where it goes
        self._way: _Way

    def serve(self) -> bool | None:
        """Answer what has come, and return whether more may come (see ``Guest``)."""
        try:
            while True:
                self._line.begin(HEAD_SECONDS)
                head = self._stream.head()
                if head is None:
                    return False
                if head is not self._head:
                    admit(self._visits.door, head)
                    self._way = _Way(head)
                    self._head = head
                with self._visits.calls.begin() as ticket:
                    stays = self._answer(head, self._way, ticket)
                if not stays:
                    return stays
                if not self._stream.waiting():
                    return True
        except web.BadRequest as error:
            self._refuse(error.status, error.why)
        except TimeoutError:
            self._refuse(408, "the request did not arrive in time")
        except OSError:  # the other side may go away at any time
            return False
        return False

    def _refuse(self, status: int, why: str) -> None:
        with suppress(OSError):
            self.sock.settimeout(LEAVING_SECONDS)
            self.sock.sendall(web.response(status, f"{why}\n".encode(), keep_alive=False, kind="text/plain"))
            # Closing with unread input would take the answer back (a reset).
            self.sock.shutdown(socket.SHUT_WR)
            end = monotonic() + LEAVING_SECONDS
            while self.sock.recv(65536) and monotonic() < end:
                continue

    def _answer(self, head: Head, way: _Way, ticket: Ticket) -> bool | None:
        """Answer one request; whether another may follow. None when it is answered elsewhere."""
        line, calls, agent, timeout = self._line, self._visits.calls, way.agent, way.timeout
        if way.waits:
            line.send(web.CONTINUE)
        line.begin(BODY_SECONDS)
        payload = self._stream.body(head, MAX_BYTES)
        fresh = self._visits.fresh()  # an outdated process answers this one all the same: nobody else can
        about: dict[str, Any] = {"environ": calls.environment, "cwd": os.sep, "event": way.event}
        keep_alive = head.keep_alive and fresh

        def last(answer: Any) -> None:
            """Send it from another thread than the one that is to go on here, without waiting for a slow reader."""
            with suppress(OSError):
                self.sock.sendall(_response(answer, keep_alive=False))
                self.sock.shutdown(socket.SHUT_RDWR)
            self.leave()

        late = calls.in_time(timeout, lambda: last(calls.late(agent, payload, **about)))

        def elsewhere(answer: Any) -> None:
            if calls.done(late):
                with suppress(OSError):
                    self.sock.settimeout(BODY_SECONDS)
                last(answer)
            ticket.end()

        try:
            answer = calls.run(agent, payload, elsewhere, timeout=timeout, **about)
        except Exception as error:  # a caller without an answer would let the call through
            answer = calls.late(agent, payload, cause=f"hookturn failed: {type(error).__name__}", **about)
        if answer is None:
            ticket.handed_on = True
            return None
        if not calls.done(late):
            return None
        line.send(_response(answer, keep_alive=keep_alive))
        return keep_alive


class _Way:
    """What a request's head says of the call.

    Parameters:
        head: a request that is let in.

    Attributes:
        agent, event: "" for an event that is not told.
        timeout: seconds of the agent's limit, or None.
        waits: whether the sender wants to be told to send the body.

    Raises:
        BadRequest: when it leads nowhere.
    """

    __slots__ = ("agent", "event", "timeout", "waits")

    def __init__(self, head: Head) -> None:
        path, _, query = head.target.partition("?")
        self.agent = path.removeprefix(PREFIX)
        if not path.startswith(PREFIX) or self.agent not in AGENTS:
            raise web.BadRequest(404, "hooks are at /hooks/AGENT")
        if head.method != "POST":
            raise web.BadRequest(405, "POST the payload")
        expected = head.one("expect")
        if expected is not None and expected.lower() != "100-continue":
            raise web.BadRequest(417, "only 100-continue can be expected")
        self.waits = expected is not None
        options = dict(parse_qsl(query))
        self.event = options.get("event", "")
        self.timeout = seconds(options.get("timeout", ""))


def _response(answer: Any, *, keep_alive: bool) -> bytes:
    """Return an agent's answer as HTTP; the exit code, where there is one, is a header."""
    body = answer.stdout
    raw = web.response(200, body, keep_alive=keep_alive)
    if answer.exit_code:
        line, _, rest = raw.partition(b"\r\n")
        raw = line + f"\r\nHookturn-Exit-Code: {answer.exit_code}\r\n".encode() + rest
    return raw


class _Line:
    """A connection's two directions, with a limit for all of a part: slow senders hold no thread for long.

    The time counts from the first wait on: what is there already is read at once.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._sock = sock
        self._whole = 0.0
        self._end = 0.0

    def begin(self, whole: float) -> None:
        """Begin a part of a request: seconds until all of it must be there."""
        self._whole = whole
        self._end = 0.0

    def receive(self, size: int) -> bytes:
        """Return what has come, at most ``size`` bytes.

        Raises:
            TimeoutError: when the time is over.
        """
        try:
            return self._sock.recv(size)
        except BlockingIOError:
            pass
        now = monotonic()
        if not self._end:
            self._end = now + self._whole
        self._sock.settimeout(max(self._end - now, 0.001))
        try:
            return self._sock.recv(size)
        finally:
            self._sock.setblocking(False)

    def send(self, data: bytes) -> None:
        """Send all of it."""
        try:
            sent = self._sock.send(data)
        except BlockingIOError:
            sent = 0
        if sent < len(data):
            self._sock.settimeout(BODY_SECONDS)
            try:
                self._sock.sendall(data[sent:])
            finally:
                self._sock.setblocking(False)
