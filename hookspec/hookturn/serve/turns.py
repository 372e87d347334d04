"""Serves many connections, one request after another: the thread that leads waits for all, and answers itself.

A thread for each connection costs more than the answer: threads hand the
interpreter to each other at every system call. So one thread leads: it waits
until something comes, serves it, and waits again. Nobody waits for a slow
request, though: a watch sees that the leader has been at one for some
milliseconds, and lets another thread lead; the slow one ends its request and
gives the connection back. The watch ticks only while something happens.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from errno import EMFILE, ENFILE, ENOBUFS, ENOMEM
from math import inf
from queue import SimpleQueue
from select import POLLIN, poll
from threading import Event, Lock, Thread
from time import monotonic, sleep

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

PATIENCE = 0.003
"""Seconds for which others wait for one request; after that (and before twice that) another thread leads."""

CALM = 16
"""Ticks without a request after which the watch goes to sleep."""

SOON = 0.05
"""Seconds between looks while nothing comes but a slow request is being served."""

SPARES = 4
"""Threads that are kept for leading; further ones end when their request does."""

MOST_GUESTS = 256
"""Connections of one gate; further ones wait in the system's queue."""

CROWDED = (EMFILE, ENFILE, ENOBUFS, ENOMEM)
"""What accept gives when there is no room, which passes."""

CROWDED_SECONDS = 0.05


class Pace:
    """Whether the last request was slow: the next one like it is not waited for at all."""

    __slots__ = ("slow",)

    def __init__(self) -> None:
        self.slow = False


class Guest:
    """A connection.

    Parameters:
        sock: the connection, which does not block.
        quiet: seconds that it may say nothing.
        pace: of its requests; guests of one request each share one.

    Attributes:
        leave: closes the connection, on any thread; for one whose own thread may never come back. Given by
            ``Turns``, as are the others.
        until: when it will have said nothing for too long.
        gate: where it came in.
        gone: whether it is closed.
    """

    __slots__ = ("gate", "gone", "leave", "pace", "quiet", "sock", "until")

    gate: Gate
    leave: Callable[[], None]
    until: float

    def __init__(self, sock: socket.socket, quiet: float, pace: Pace) -> None:
        self.sock = sock
        self.quiet = quiet
        self.pace = pace
        self.gone = False

    def serve(self) -> bool | None:
        """Answer what has come, and return whether the connection stays. It may block: see above.

        None when another thread has taken the connection over, and leaves it itself.
        """
        raise NotImplementedError


class Gate:
    """A listening socket.

    Parameters:
        sock: the socket.
        greet: makes a guest of a connection.
    """

    __slots__ = ("greet", "guests", "open", "sock")

    def __init__(self, sock: socket.socket, greet: Callable[[socket.socket], Guest]) -> None:
        sock.setblocking(False)
        self.sock = sock
        self.greet = greet
        self.guests = 0
        self.open = False


class Turns:
    """Takes connections, and gives each its turn when it says something.

    Parameters:
        look: called by the watch at each tick, for what else must be watched while requests are served.
        note: is told of what went wrong.
    """

    def __init__(self, look: Callable[[], None], note: Callable[[str], None]) -> None:
        self._look = look
        self._note = note
        self._lock = Lock()
        self._poll = poll()
        self._gates: dict[int, Gate] = {}
        self._guests: dict[int, Guest] = {}  # those that are waited for
        self._there: set[Guest] = set()  # those, and those that are served
        self._away = 0  # those that threads serve that do not lead any more
        self._leader = 0  # the number of the thread that leads; only it polls
        self._turn = 0
        self._served: Guest | None = None  # by the leader
        self._next = inf  # when a guest may have been quiet for too long, or a gate opens again
        self._active = Event()
        self._spare = 0
        self._orders: SimpleQueue[int] = SimpleQueue()
        self._ear, self._bell = os.pipe()
        for end in (self._ear, self._bell):
            os.set_blocking(end, False)
        self._poll.register(self._ear, POLLIN)

    def add(self, gate: Gate) -> None:
        """Take a gate's connections from now on."""
        self._gates[gate.sock.fileno()] = gate
        self._open(gate)

    def begin(self) -> None:
        """Start to serve."""
        Thread(target=self._watch, name="hookturn-watch", daemon=True).start()
        self._start()

    def close(self) -> None:
        """Take no more connections. Those that are there go on."""
        with self._lock:
            gates = list(self._gates.values())
            self._gates.clear()
            for gate in gates:
                if gate.open:
                    self._poll.unregister(gate.sock)
                    gate.open = False
        for gate in gates:
            with suppress(OSError):
                gate.sock.shutdown(socket.SHUT_RDWR)  # the leader's wait may hold it open otherwise
            gate.sock.close()
        self._ring()

    def let_go(self) -> None:
        """Close all of it in a child that a hook forked: what it holds open, our closing would not end."""
        for gate in self._gates.values():
            gate.sock.close()
        for guest in self._there:
            guest.sock.close()

    def waiting(self) -> bool:
        """Whether somebody has said something that is not served yet, or not to its end but by slow threads."""
        look = poll()
        with self._lock:
            if self._served is not None:
                return True
            for fd in self._guests:
                look.register(fd, POLLIN)
            return bool(look.poll(0))

    # -- the thread that leads ----------------------------------------------------------------------

    def _run(self, mine: int) -> None:
        while True:
            try:
                self._lead(mine)
            except Exception as error:  # a hook may do anything to what we hold: somebody has to lead
                self._note(f"a turn failed: {type(error).__name__}: {error}")
                with self._lock:
                    leads = self._leader == mine
                    if leads:
                        self._served = None
                if leads:
                    sleep(CROWDED_SECONDS)
                    continue
            with self._lock:
                if self._spare >= SPARES:
                    return
                self._spare += 1
            mine = self._orders.get()

    def _lead(self, mine: int) -> None:
        """Serve until another thread leads."""
        while True:
            rest = self._next - monotonic()
            try:
                ready = self._poll.poll(None if rest == inf else max(rest * 1000, 0) + 1)
            except OSError as error:  # no memory: it passes
                self._note(f"cannot wait: {error}")
                sleep(CROWDED_SECONDS)
                continue
            for fd, _ in ready:
                guest = self._guests.get(fd)
                if guest is not None:
                    if not self._serve(guest, mine):
                        return
                elif fd == self._ear:
                    with suppress(BlockingIOError):
                        os.read(fd, 4096)
                elif (gate := self._gates.get(fd)) is not None:
                    self._accept(gate)
            if monotonic() >= self._next:
                self._sweep()

    def _serve(self, guest: Guest, mine: int) -> bool:
        """Serve a guest, and return whether this thread still leads."""
        self._turn += 1  # first: else the watch could take it for the turn before
        self._served = guest
        if not self._active.is_set():
            self._active.set()
        begun = 0.0
        if guest.pace.slow:
            begun = monotonic()
            self._pass_on(self._turn)
        try:
            stays: bool | None = guest.serve()
        except BaseException as error:  # costs this connection; the thread serves the next
            self._note(f"a connection failed: {type(error).__name__}: {error}")
            stays = False
        now = monotonic()
        if begun:
            guest.pace.slow = now - begun > PATIENCE
        with self._lock:
            leads = self._leader == mine
            if leads:
                self._served = None
            else:
                self._away -= 1
        if not stays:
            if stays is not None:
                self._leave(guest)
            return leads
        guest.until = now + guest.quiet
        if not leads:
            self._wait_for(guest)
            self._ring()
        return leads

    def _accept(self, gate: Gate) -> None:
        try:
            connection, _ = gate.sock.accept()
        except OSError as error:  # nobody is there any more, or the gate is closed
            if error.errno in CROWDED:
                self._shut(gate)
                self._next = min(self._next, monotonic() + CROWDED_SECONDS)
            return
        try:
            connection = _above_streams(connection)
            connection.setblocking(False)
            guest = gate.greet(connection)
        except Exception as error:  # as a rule it has gone already
            self._note(f"a connection failed: {type(error).__name__}: {error}")
            connection.close()
            return
        guest.gate = gate
        guest.leave = lambda: self._leave(guest)
        guest.until = monotonic() + guest.quiet
        with self._lock:
            gate.guests += 1
            self._there.add(guest)
        if gate.guests >= MOST_GUESTS:
            self._shut(gate)
        self._wait_for(guest)

    def _sweep(self) -> None:
        """Close what was quiet for too long, and open the gates."""
        now = monotonic()
        with self._lock:
            over = [guest for guest in self._guests.values() if guest.until <= now]
        for guest in over:
            self._leave(guest)
        with self._lock:
            self._next = min((guest.until for guest in self._guests.values()), default=inf)
            for gate in self._gates.values():
                self._open(gate)

    # -- who is waited for ---------------------------------------------------------------------------

    def _wait_for(self, guest: Guest) -> None:
        with self._lock:
            fd = guest.sock.fileno()
            self._guests[fd] = guest
            self._poll.register(fd, POLLIN)
            self._next = min(self._next, guest.until)

    def _leave(self, guest: Guest) -> None:
        """Close a connection, if it is not closed."""
        with self._lock:
            if guest.gone:
                return
            guest.gone = True
            fd = guest.sock.fileno()
            if self._guests.pop(fd, None) is not None:
                self._poll.unregister(fd)
            self._there.discard(guest)
            with suppress(OSError):  # a hook closed it
                guest.sock.close()
            guest.gate.guests -= 1
            opens = not guest.gate.open and guest.gate.sock.fileno() in self._gates
            if opens:
                self._open(guest.gate)
        if opens:
            self._ring()

    def _open(self, gate: Gate) -> None:
        if not gate.open and gate.guests < MOST_GUESTS:
            gate.open = True
            self._poll.register(gate.sock, POLLIN)

    def _shut(self, gate: Gate) -> None:
        with self._lock:
            if gate.open:
                gate.open = False
                self._poll.unregister(gate.sock)

    def _ring(self) -> None:
        """Have the leader look anew at whom it waits for."""
        with suppress(BlockingIOError):  # it is about to
            os.write(self._bell, b".")

    # -- the watch -----------------------------------------------------------------------------------

    def _watch(self) -> None:
        seen, still = self._turn, 0
        while True:
            if self._turn != seen:
                seen, still = self._turn, 0
            elif self._served is not None:
                self._pass_on(seen)
            else:
                still += 1
            try:
                self._look()
            except Exception as error:  # without a watch nobody would be relieved of a slow request
                self._note(f"a late call could not be answered: {type(error).__name__}: {error}")
            if still >= CALM:
                self._active.clear()
                if self._turn == seen:  # nobody came in between
                    self._active.wait(SOON if self._away else None)
            sleep(PATIENCE)

    def _pass_on(self, turn: int) -> None:
        """Let another thread lead, unless that turn is over; the leader keeps its guest until it is served."""
        with self._lock:
            guest = self._served
            if guest is None or self._turn != turn:
                return
            fd = guest.sock.fileno()
            # It may have been answered elsewhere, and closed: its thread is in the hook all the same.
            there = self._guests.pop(fd, None) is not None
            if there:
                self._poll.unregister(fd)
            # Before the other thread runs: it leads at once.
            self._leader += 1
            self._served = None
            self._away += 1
            guest.pace.slow = True
            if self._spare:
                self._spare -= 1
                self._orders.put(self._leader)
                return
            try:
                self._start()
            except RuntimeError:  # no thread to be had: others wait
                self._leader -= 1
                self._served = guest
                self._away -= 1
                if there:
                    self._guests[fd] = guest
                    self._poll.register(fd, POLLIN)

    def _start(self) -> None:
        Thread(target=self._run, args=(self._leader,), name="hookturn-turn", daemon=True).start()


def _above_streams(connection: socket.socket) -> socket.socket:
    """Return a connection that is no standard stream: one that a hook has closed gives its number to what comes next.

    What hooks print would go to an agent, and the next hook that closes its output would hang up.
    """
    number = connection.fileno()
    if number > 2:
        return connection
    from fcntl import F_DUPFD_CLOEXEC, fcntl

    moved = socket.socket(fileno=fcntl(number, F_DUPFD_CLOEXEC, 3))
    connection.detach()
    nothing = os.open(os.devnull, os.O_RDWR)
    os.dup2(nothing, number)
    if nothing > 2:
        os.close(nothing)
    return moved
