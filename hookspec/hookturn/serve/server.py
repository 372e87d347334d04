"""The resident process: accepts calls on a Unix socket and on loopback HTTP, and lets the bridge answer them.

Not an event loop: an answer is synchronous work, and handing it from a loop to a
thread and back costs more (two wake-ups, 50 microseconds each) than the answer.
``turns`` says who works when.
"""

from __future__ import annotations

import os
import signal
import socket
import sys
import threading
from contextlib import suppress
from time import monotonic, sleep, time

from .. import __version__, platform
from . import door, start, thin, wire
from .calls import Calls, Options
from .engines import Engines, check_files, installation
from .turns import Gate, Guest, Pace, Turns

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .calls import Reply

IDLE = 900.0
"""Seconds without a call after which the process ends."""

DRAIN = 10.0
"""Seconds that calls have to end when the process is told to."""

TICK = 5.0
"""Seconds between looks at what nobody tells: whether the socket is still ours, and the log not too long."""

MAX_LOG = 4 * 1024 * 1024
"""Bytes of the log; a longer one begins anew."""

REQUEST_SECONDS = 30.0
"""Seconds in which a thin client must have sent its request."""


def note(text: str) -> None:
    """Write a line to the log (standard error)."""
    from ..spec.events import rfc3339

    with suppress(OSError, ValueError):
        sys.stderr.write(f"{rfc3339(time())} hookturn serve: {text}\n")
        sys.stderr.flush()


class Server:
    """The resident process.

    Parameters:
        path: the Unix socket to listen at.
        lock: descriptor of the lock, which is held; it is given back at the end.
        idle: seconds without a call after which it ends.
        http: whether to speak HTTP, too.
        engines: keeps the engines; default: those of the projects.
        bridge: answers calls, as the module ``agents.bridge`` does.
    """

    def __init__(
        self,
        path: str,
        lock: int,
        *,
        idle: float = IDLE,
        http: bool = True,
        engines: Engines | None = None,
        bridge: Any = None,
    ) -> None:
        self.path = path
        self.idle = idle
        self.http = http
        self.door: door.Door | None = None
        self.engines = engines or Engines()
        self.calls = Calls(self.engines, bridge)
        self.started = time()
        self._lock = lock
        self._identity = thin.identity()
        self._installation = installation()
        self._reader = wire.Reader()
        self._stop = threading.Event()
        self._why = ""
        self._inode = 0
        self._turns = Turns(self.calls.look, note)
        self._pace = Pace()
        self._retreat = threading.Lock()
        self._listening = False

    # -- life -------------------------------------------------------------------------------------

    def run(self) -> str:
        """Serve until told to stop, or idle; return why it ended.

        Raises:
            OSError: when the socket cannot be made.
        """
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            signal.signal(number, lambda *_: self.finish("told to"))
        os.register_at_fork(after_in_child=self._let_go)
        self._listen()
        note(f"{__version__} serves at {self.path}" + (f" and {self.door.url}" if self.door else ""))
        while not self._stop.wait(self._pause()):
            if not self._still_there():
                self.finish("the socket is gone")
            elif self.calls.running == 0 and monotonic() - self.calls.last >= self.idle:
                self.finish("idle")
            self._shorten_log()
        self._close()
        end = monotonic() + DRAIN
        while (self.calls.running or self._turns.waiting()) and monotonic() < end:
            sleep(0.01)
        self.engines.close()
        note(f"ends: {self._why}")
        return self._why

    def _pause(self) -> float:
        return max(0.01, min(TICK, self.idle - (monotonic() - self.calls.last)))

    def finish(self, why: str) -> None:
        """Take no more calls; those that run come to their end."""
        self._why = self._why or why
        self._stop.set()

    def _listen(self) -> None:
        own = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        temporary = f"{self.path}.new"
        with suppress(FileNotFoundError):
            os.unlink(temporary)
        before = os.umask(0o177)
        try:
            own.bind(temporary)
        finally:
            os.umask(before)
        own.listen(256)
        self._inode = os.stat(temporary).st_ino
        # In one step in place of the socket of a process that was killed.
        os.rename(temporary, self.path)
        self._listening = True
        self._turns.add(Gate(own, lambda connection: _Command(connection, self._pace, self._command)))
        if self.http:
            self._listen_http()
        self._turns.begin()

    def _listen_http(self) -> None:
        from .visits import Visits

        try:
            found = door.ensure()
            sock = socket.socket(socket.AF_INET, socket.SOCK_STREAM)
            try:
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                sock.bind((door.HOST, found.port))
                sock.listen(256)
            except BaseException:
                sock.close()
                raise
        except OSError as error:
            note(f"no HTTP: {error}")
            return
        self.door = found
        self._turns.add(Gate(sock, Visits(found, self.calls, self._fresh).greet))

    def _still_there(self) -> bool:
        try:
            return os.stat(self.path).st_ino == self._inode
        except OSError:
            return False

    def _shorten_log(self) -> None:
        with suppress(OSError, ValueError):
            about = os.fstat(2)
            if about.st_size > MAX_LOG and os.path.samestat(about, os.stat(start.log_path(self.path))):
                os.ftruncate(2, 0)

    def _close(self) -> None:
        """Take no more calls, and let another process begin. Safe to repeat, on any thread."""
        with self._retreat:
            if not self._listening:
                return
            self._listening = False
            if self._still_there():
                with suppress(OSError):
                    os.unlink(self.path)
            self._turns.close()
            platform.unlock(self._lock)
            os.close(self._lock)

    def _let_go(self) -> None:
        """Close in a child that a hook forked what tells others that this process lives."""
        if self._listening:
            os.close(self._lock)  # not given back: our parent has it
        self._turns.let_go()

    def _fresh(self) -> bool:
        """Whether this process runs what is installed now. If not, it makes way for another one."""
        if self._listening and self._installation.same(monotonic()):
            return True
        return self._make_way("the installation has changed")

    def _make_way(self, why: str) -> bool:
        was_listening = self._listening
        self._close()
        if was_listening and not self._stop.is_set():
            with suppress(OSError):
                start.start(self.path)
        self.finish(why)
        return False

    # -- calls ------------------------------------------------------------------------------------

    def _command(self, connection: socket.socket, leave: Callable[[], None]) -> bool:
        """Serve a thin client.

        Parameters:
            connection: to it.
            leave: closes the connection; for when the answer is given elsewhere.

        Returns:
            whether it is served; False when it is, elsewhere.
        """
        connection.settimeout(REQUEST_SECONDS)
        try:
            if not thin.peer_is_me(connection):
                note("refused a connection of another user")
                return True
            request = self._reader.read(connection.recv)
        except (wire.WireError, OSError):
            return True
        if request.words[0] in ("status", "stop"):
            with suppress(OSError):
                connection.sendall(wire.BEGUN + wire.reply(0, self._status(), b""))
            if request.words[0] == "stop":
                self.finish("told to")
            return True
        with self.calls.begin() as ticket:

            def elsewhere(reply: Reply) -> None:
                with suppress(OSError):
                    connection.sendall(wire.reply(*reply))
                ticket.end()
                leave()

            served = self._call(connection, request, elsewhere)
            ticket.handed_on = not served
            return served

    def _call(
        self, connection: socket.socket, request: wire.Request, elsewhere: Callable[[Reply], None]
    ) -> bool:
        """Answer a call of an agent; False when it is answered elsewhere."""
        if request.identity != self._identity:
            self._make_way("another version is installed")
        if not self._listening or not self._fresh():
            connection.sendall(wire.STALE)
            return True
        if not Options(request.words).known or wire.client_left(connection):
            return True  # the client's own process knows more, or nobody waits
        try:
            check_files()
        except OSError:
            return True  # the client's own process has files to open
        connection.sendall(wire.BEGUN)
        reply = self.calls.command(request, elsewhere)
        if reply is None:
            return False
        connection.sendall(wire.reply(*reply))
        return True

    def _status(self) -> bytes:
        import json

        from ..spec.events import rfc3339

        about = {
            "pid": os.getpid(),
            "version": __version__,
            "python": sys.version.split()[0],
            "executable": sys.executable,
            "socket": self.path,
            "http": self.door.url if self.door else None,
            "started": rfc3339(self.started),
            "idle_seconds": self.idle,
            "calls": self.calls.total,
            "in_flight": self.calls.running,
            "engines_made": self.engines.made,
            "projects": self.engines.projects(),
        }
        return json.dumps(about).encode()


class _Command(Guest):
    """A thin client: one request."""

    __slots__ = ("_answer",)

    def __init__(
        self,
        connection: socket.socket,
        pace: Pace,
        answer: Callable[[socket.socket, Callable[[], None]], bool],
    ) -> None:
        super().__init__(connection, REQUEST_SECONDS, pace)
        self._answer = answer

    def serve(self) -> bool | None:
        """Answer it."""
        try:
            return False if self._answer(self.sock, self.leave) else None
        except OSError:  # the other side may go away at any time
            return False
