"""One running Node process: its line to us, its words, and its end. POSIX only.

The line is a pair of sockets of our own, so that whatever a hook prints cannot
disturb it. One thread reads it. When either side is gone the other notices:
Node ends itself with all that it started, and we take its number and answer
whoever still waits.
"""

from __future__ import annotations

import os
from itertools import count
from threading import Event, Lock, Thread, current_thread
from time import monotonic, sleep
from weakref import WeakSet, WeakValueDictionary

from ...platform import O_CLOEXEC, how_it_ended, spawn
from ..wire import FailedToStart, last_words

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from queue import SimpleQueue
    from typing import Any

    Box = SimpleQueue[tuple[str, bytes]]
    Note = Callable[[str, bytes], None]

HOST = os.path.join(os.path.dirname(os.path.abspath(__file__)), "host.mjs")
"""What Node runs."""

OLDEST = (20, 10)
"""The oldest Node that will do."""

MEMORY = 256
"""MB of heap that a module may have."""

DATA = 2 * 1024**3
"""Bytes that the whole process may have in buffers and heaps (Linux)."""

LONGEST_LINE = 64_000_000
"""Bytes; Node sends no such line unless something is very wrong with it."""

LINE = 3
"""The number of the line in Node."""

_KEPT = 4_000  # bytes of its own output, for the words with which it ended
_ENDING = 0.5  # seconds in which a process that was told to end should be gone

_running: WeakSet[Process] = WeakSet()


class Broken(Exception):
    """Nothing can be sent: the process is gone, or does not read."""


class Process:
    """A Node process.

    Parameters:
        program: the path of Node.
        folder: where it runs.
        env: its environment.

    Attributes:
        env: its environment.
        pid: its number.
        born: when it was started, by the monotonic clock.
        ready: set when it has said hello, or has ended.
        ended: how it ended, in words, or "".
        version: Node's version, once it is ready.

    Raises:
        FailedToStart: when the system does not start it.
    """

    def __init__(self, program: str, folder: str, env: Mapping[str, str]) -> None:
        import json
        import socket

        from ..programs import not_started

        self.program = program
        self.env = dict(env)
        self.born = monotonic()
        self.ready = Event()
        self.ended = ""
        self.version = ""
        self.too_old = False
        self.numbers = count(1)
        self.calls: dict[int, Box] = {}
        self.notes: WeakValueDictionary[int, Any] = WeakValueDictionary()  # module number -> the module
        self._why = ""
        self._deaf = False
        self._lock = Lock()
        self._forgotten = False  # we are a fork: the process is our parent's
        self._words = bytearray()
        settings = json.dumps({"memory": MEMORY, "minimum": OLDEST, "folder": folder})
        self._line, theirs = socket.socketpair()
        output, their_output = os.pipe()
        try:
            nothing = os.open(os.devnull, os.O_RDONLY | O_CLOEXEC)
            try:
                # Node keeps its children from inheriting the first 16 descriptors only (libuv), so the line
                # must be among them: a child that holds it would keep us from seeing Node's end.
                fds = {0: nothing, 1: their_output, 2: their_output, LINE: theirs.fileno()}
                self.pid = spawn(program, [program, HOST, str(LINE), settings], self.env, fds)
            finally:
                os.close(nothing)
        except BaseException as error:
            self._line.close()
            os.close(output)
            self._forgotten = True
            if isinstance(error, (OSError, ValueError)):
                raise FailedToStart(f"Node could not start: {not_started(error, program, folder)}") from None
            raise
        finally:
            theirs.close()
            os.close(their_output)
        self._output = output
        self._line.setblocking(False)
        _limit(self.pid)
        self._thread = Thread(target=self._read, name="hookturn-node", daemon=True)
        _running.add(self)
        self._thread.start()

    @property
    def alive(self) -> bool:
        """Whether it can take calls, as far as we know."""
        return not (self.ended or self._why or self._deaf or self._forgotten)

    # -- what we say --------------------------------------------------------------------------------

    def open(self, box: Box) -> int:
        """Return a number for a call whose answers go into a box."""
        number = next(self.numbers)
        self.calls[number] = box
        if self.ended or self._forgotten:  # nobody else would tell
            box.put(("dead", b""))
        return number

    def send(self, line: bytes, end: float, module: Any = None) -> None:
        """Send a line, before it, once, what a module is.

        Parameters:
            line: with its line end.
            end: until when it must be gone, by the monotonic clock; else the process is stopped.
            module: what the line is about: has ``number`` and ``declaration()``.

        Raises:
            Broken: when the process is gone or does not read.
        """
        if not self._lock.acquire(timeout=max(0.0, end - monotonic())):
            raise Broken("the line to Node is busy")
        try:
            if not self.alive:
                raise Broken("Node is gone")
            if module is not None and module.number not in self.notes:
                self.notes[module.number] = module
                line = module.declaration() + line
            self._send(memoryview(line), end)
        finally:
            self._lock.release()

    def _send(self, rest: memoryview, end: float) -> None:
        from select import POLLOUT, poll
        from socket import MSG_NOSIGNAL

        while rest:
            try:
                rest = rest[self._line.send(rest, MSG_NOSIGNAL) :]
            except BlockingIOError:
                poller = poll()
                poller.register(self._line, POLLOUT)
                if not poller.poll(max(0.0, end - monotonic()) * 1000):
                    self.stop("it did not read")  # half a line stands on the way
                    raise Broken("Node does not read") from None
            except OSError as error:
                self._deaf = True  # the thread that reads will see to the rest
                raise Broken(f"Node is gone: {error.strerror}") from None

    def say(self, line: bytes) -> None:
        """Send a line that nothing depends on; at most a moment is spent on it."""
        from contextlib import suppress

        with suppress(Broken):
            self.send(line, monotonic() + 0.05)

    def stop(self, why: str) -> None:
        """Kill the process and all in its group. Whoever waits is answered by the thread that reads.

        Parameters:
            why: in words, for those whose calls it costs.
        """
        from signal import SIGKILL

        if self._forgotten or self.ended:
            return
        self._why = self._why or why
        _signal_group(self.pid, SIGKILL)
        self._shut()

    def close(self, *, wait: bool = True) -> None:
        """End the process; it kills its own group when it sees that the line is closed.

        Parameters:
            wait: until it is gone (at most a second).
        """
        if self._forgotten or self.ended:
            return
        self._why = self._why or "it was closed"
        self._shut()
        if wait and self._thread is not current_thread():
            self._thread.join(1.0)

    def _shut(self) -> None:
        from contextlib import suppress
        from socket import SHUT_RDWR

        with suppress(OSError):
            self._line.shutdown(SHUT_RDWR)

    # -- what it says -------------------------------------------------------------------------------

    def _read(self) -> None:
        """Pass on what comes until the line is closed; then see to the end."""
        try:
            self._pass_on()
        finally:
            self._end()

    def _pass_on(self) -> None:
        from select import POLLIN, poll

        poller = poll()
        poller.register(self._line, POLLIN)
        poller.register(self._output, POLLIN)
        line = self._line.fileno()
        parts: list[bytes] = []
        size = 0
        while True:
            for fd, _ in poller.poll():
                if fd != line:
                    if not self._listen():
                        poller.unregister(fd)
                    continue
                try:
                    data = self._line.recv(262_144)
                except BlockingIOError:
                    continue
                except OSError:
                    return
                if not data:
                    return
                *whole, rest = data.split(b"\n")
                for text in whole:
                    parts.append(text)
                    self._heard(b"".join(parts) if len(parts) > 1 else text)
                    parts, size = [], 0
                if rest:
                    parts.append(rest)
                    size += len(rest)
                    if size > LONGEST_LINE:
                        self.stop("it sent a line without an end")
                        return

    def _listen(self) -> bool:
        """Keep the last of what the process itself prints."""
        data = os.read(self._output, 65_536)
        self._words += data
        del self._words[:-_KEPT]
        return bool(data)

    def _heard(self, line: bytes) -> None:
        words = line.split(b" ", 3)
        if len(words) < 4 or not (words[1].isdigit() and words[2].isdigit()):
            self.stop("it sent something that is no line of ours")
            return
        kind, text = words[0].decode("ascii", "replace"), words[3]
        if kind in ("ready", "old"):
            self._greet(text, old=kind == "old")
            return
        number = int(words[2])
        if number:
            box = self.calls.get(number)
            if box is not None:
                box.put((kind, text))
                return
        if kind == "log":
            module = self.notes.get(int(words[1]))
            if module is not None:
                module.note(text)

    def _greet(self, text: bytes, *, old: bool) -> None:
        import json

        self.version = str(json.loads(text).get("node", ""))
        self.too_old = old
        self.ready.set()

    def _end(self) -> None:
        """Take the process's number, let go of everything, and answer whoever waits."""
        from signal import SIGKILL

        pid = self.pid
        if not self._forgotten:
            how = self._wait(pid)
            # Children in its group may be left.
            _signal_group(pid, SIGKILL)
            self._reap(how)
            while self._listening() and self._listen():
                pass
            self.ended = self._words_of_end(how)
            with self._lock:  # nobody sends while the descriptors go
                self._line.close()
            os.close(self._output)
        self.ready.set()
        for box in list(self.calls.values()):
            box.put(("dead", b""))

    def _wait(self, pid: int) -> tuple[int | None, int | None, bool] | None:
        """Return how it ended; one that does not is killed."""
        from signal import SIGKILL

        end = monotonic() + (0.0 if self._why.startswith("it did") else _ENDING)
        while (how := how_it_ended(pid)) is None and monotonic() < end:
            sleep(0.002)
        if how is None:
            _signal_group(pid, SIGKILL)
            end = monotonic() + _ENDING
            while (how := how_it_ended(pid)) is None and monotonic() < end:
                sleep(0.002)
        return how

    def _reap(self, how: tuple[int | None, int | None, bool] | None) -> None:
        if how is None:  # it hangs in the kernel; somebody must take it when it comes out
            Thread(target=self._take, daemon=True, name="hookturn-reaper").start()
        elif not how[2]:
            self._take()

    def _take(self) -> None:
        from contextlib import suppress

        with suppress(ChildProcessError):  # somebody else took it
            os.waitpid(self.pid, 0)

    def _listening(self) -> bool:
        from select import POLLIN, poll

        poller = poll()
        poller.register(self._output, POLLIN)
        return bool(poller.poll(0))

    def _words_of_end(self, how: tuple[int | None, int | None, bool] | None) -> str:
        from ..process import ProcessResult

        if self._why:
            return f"the Node process was stopped, since {self._why}"
        result = ProcessResult()
        result.exit_code, result.signal = how[:2] if how is not None else (None, None)
        return f"the Node process {result.ended}{fatal(self._words) or last_words(self._words)}"

    def forget(self) -> None:
        """Let go of a process that belongs to the parent of this fork, without touching it."""
        from contextlib import suppress

        if self.ended or self._forgotten:
            return
        self._forgotten = True
        self.ended = "the Node process belongs to the parent of this one"
        self._line.close()  # no shutdown: the parent still uses it
        with suppress(OSError):  # the parent's thread may just have done it
            os.close(self._output)


def fatal(words: bytes | bytearray) -> str:
    """Return the line in which Node says why it gave up, for a message, or an empty string."""
    for line in bytes(words).decode("utf-8", "replace").splitlines():
        if line.startswith(("FATAL ERROR:", "Error:", "# Fatal error")):
            return last_words(line.encode())
    return ""


def _signal_group(pid: int, number: int) -> None:
    from contextlib import suppress

    with suppress(ProcessLookupError, PermissionError):
        os.killpg(pid, number)


def _limit(pid: int) -> None:
    """Bound the process's memory (buffers are in no heap) and spare the disk its core dumps."""
    try:
        from resource import RLIM_INFINITY, RLIMIT_CORE, RLIMIT_DATA, prlimit
    except ImportError:  # not Linux
        return
    from contextlib import suppress

    for what, most in ((RLIMIT_DATA, DATA), (RLIMIT_CORE, 0)):
        with suppress(OSError, ValueError):
            _, hard = prlimit(pid, what)
            bound = most if hard == RLIM_INFINITY else min(most, hard)
            prlimit(pid, what, (bound, bound))


def after_fork() -> None:
    """In a child of a fork: close the lines of our parent's processes, else these would outlive it."""
    for process in list(_running):
        process.forget()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=after_fork)
