"""Runs synchronous hooks on a thread that can be left behind, all hooks of a fire on the same one.

Handing each hook to a thread of its own costs two wake-ups a hook (some 100
microseconds together); here the fire itself moves to another thread, calls hook
after hook there, and the caller only watches the time of the one that runs. When
it is over, the thread is left behind with that hook, and the caller throws the
TimeoutError into the fire, which goes on with the next hook on another thread.

A caller that can be left behind itself (the resident process) needs no second
thread until then: see ``Ride.go``.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from contextvars import copy_context
from threading import Event, Thread
from time import monotonic, sleep

from .waiting import hooks_own, thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator
    from typing import Any

    from .engine import Engine
    from .waiting import Wait

MOST_PARKED = 16
"""Threads that wait for the next fire; further ones end."""

TICK = 0.05
"""Seconds between looks at the time: a hook may have less than the one before it."""

LULL = 20
"""Looks without anything to look at after which nobody looks until the next ride."""

DRIVING = float("inf")
"""No hook runs: the fire itself is at work, which takes no time to speak of."""

_parked: list[_Thread] = []


class _Thread:
    """A daemon thread that does one piece of work after another."""

    def __init__(self) -> None:
        self._wake = allocate_lock()
        self._wake.acquire()
        self._work: Callable[[], None] | None = None
        Thread(target=self._run, daemon=True, name="hookturn-hook").start()

    def _run(self) -> None:
        while True:
            self._wake.acquire()
            work, self._work = self._work, None
            assert work is not None
            work()
            del work
            if len(_parked) >= MOST_PARKED:
                return
            _parked.append(self)

    def begin(self, work: Callable[[], None]) -> None:
        self._work = work
        self._wake.release()


def _begin(work: Callable[[], None]) -> None:
    try:
        thread = _parked.pop()
    except IndexError:
        thread = _Thread()
    thread.begin(work)


async def _contained(awaitable: Awaitable[Any]) -> Any:
    try:
        return await awaitable
    except (Exception, SystemExit):
        raise
    except BaseException as problem:  # as of synchronous hooks
        raise hooks_own(problem) from problem


class Ride:
    """Steps under way: a fire, or all that a call of an agent asks for.

    Parameters:
        engine: waits for coroutine hooks.
        steps: a generator that has not begun.
    """

    def __init__(self, engine: Engine, steps: Generator[Wait, Any, Any]) -> None:
        self._engine = engine
        self._steps = steps
        # The fire sets and resets context variables, so every step must run in the same context.
        self._context = copy_context()
        self._guard = allocate_lock()
        self._thread = 0  # number of the thread that drives; what another one has does not count any more
        self._hook_end = DRIVING  # when the hook that runs must be done, by the monotonic clock
        self._limit = 0.0
        self._result: Any = None
        self._error: BaseException | None = None
        self._elsewhere: Callable[[Callable[[], Any]], None] | None = None

    def run(self) -> Any:
        """Run the steps to their end and return their result; raises what they raise.

        The caller waits; synchronous hooks run on other threads.
        """
        move = self._step(None, None)
        if move is None:
            return self._outcome()
        arrived = allocate_lock()
        arrived.acquire()
        self._go_on(move, arrived.release)
        interrupt: BaseException | None = None
        while True:
            there = False
            try:
                there = arrived.acquire(timeout=min(max(self._hook_end - monotonic(), 0.0), TICK))
            except BaseException as problem:  # Ctrl-C: it goes through the fire, as it does without threads
                interrupt = problem
            if there:
                return self._outcome()
            if not self._leave(even_now=interrupt is not None):
                continue
            error = interrupt or self._late()
            interrupt = None
            move = self._step(None, error)
            if move is None:
                return self._outcome()
            self._go_on(move, arrived.release)

    def go(self, elsewhere: Callable[[Callable[[], Any]], None]) -> Callable[[], Any] | None:
        """Run the steps on this thread, hooks and all; it is left behind with a hook that takes too long.

        No thread is woken up unless that happens, which is most of the cost of ``run``.

        Parameters:
            elsewhere: called on another thread at the end of steps that went on there, with what ``go`` would have
                returned.

        Returns:
            a function that returns the steps' result, or raises what they raised; None for a thread that was left
            behind, which must not touch anything of the call any more.
        """
        self._elsewhere = elsewhere
        _watch(self)
        if not self._hooks(0, self._step(None, None)):
            return None
        _riding.discard(self)
        return self._outcome

    def take_over(self, now: float) -> None:
        """Leave the thread of ``go`` behind when the time of its hook is over, and go on without it."""
        if self._hook_end > now or not self._leave():
            return
        number = self._thread
        try:
            _begin(lambda: self._went_on(number))
        except RuntimeError:  # no thread to be had: the next look tries again
            self._hook_end = now

    def _went_on(self, number: int) -> None:
        if self._hooks(number, self._step(None, self._late())):
            _riding.discard(self)
            assert self._elsewhere is not None
            self._elsewhere(self._outcome)

    def _leave(self, *, even_now: bool = False) -> bool:
        """Leave the thread that drives behind; not while the steps themselves are at work on it."""
        with self._guard:
            if self._hook_end == DRIVING or (not even_now and monotonic() < self._hook_end):
                return False
            self._thread += 1
            self._hook_end = DRIVING
        return True

    def _late(self) -> TimeoutError:
        return TimeoutError(f"no answer within {self._limit:g} s")

    def _outcome(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._result

    def _step(self, value: Any, error: BaseException | None) -> tuple[Callable[[], Any], float] | None:
        """Drive the fire up to the next synchronous hook and return that with its limit; None at the fire's end."""
        send, throw, run = self._steps.send, self._steps.throw, self._context.run
        while True:
            try:
                awaitable, function, seconds = run(throw, error) if error is not None else run(send, value)
            except StopIteration as stop:
                self._result = stop.value
                return None
            except BaseException as problem:  # raised where the fire is waited for
                self._error = problem
                return None
            if awaitable is None:
                assert function is not None
                return function, seconds
            value = error = None
            try:
                value = self._engine._wait(_contained(awaitable), seconds)
            except BaseException as problem:  # thrown into the fire, which says what it means
                error = thrown(problem)

    def _go_on(self, move: tuple[Callable[[], Any], float], arrived: Callable[[], None]) -> None:
        self._hook_end = monotonic() + move[1]
        self._limit = move[1]
        number = self._thread

        def work() -> None:
            if self._hooks(number, move):
                arrived()

        _begin(work)

    def _hooks(self, number: int, move: tuple[Callable[[], Any], float] | None) -> bool:
        """Call hook after hook until the steps end; False when the time of one was over before."""
        me = os.getpid()
        while move is not None:
            value: Any = None
            error: BaseException | None = None
            with self._guard:
                if number != self._thread:
                    return False  # this thread came too late
                self._limit = move[1]
                self._hook_end = monotonic() + self._limit
            try:
                value = self._context.copy().run(move[0])
            except BaseException as problem:  # as above
                error = hooks_own(problem)
            if os.getpid() != me:  # the hook forked, and its child came back: who waits for it is elsewhere
                os._exit(0)
            with self._guard:
                if number != self._thread:
                    return False  # too late: the steps go on elsewhere
                self._hook_end = DRIVING
            move = self._step(value, error)
        return True


_riding: set[Ride] = set()  # those that ``go``
_busy = Event()  # whether there are any, or were just now
_watcher: Thread | None = None
_guard = allocate_lock()


def _watch(ride: Ride) -> None:
    """Have somebody look at the time of a ride."""
    global _watcher
    if _watcher is None:
        with _guard:
            if _watcher is None:
                watcher = Thread(target=_look, daemon=True, name="hookturn-time")
                watcher.start()
                _watcher = watcher
    _riding.add(ride)
    if not _busy.is_set():
        _busy.set()


def _alone() -> None:
    """Forget the threads: they live in the parent only."""
    global _watcher, _busy
    _parked.clear()
    _riding.clear()
    _watcher, _busy = None, Event()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_alone)


def _look() -> None:
    """Look at the time of all rides now and then, while there are any."""
    quiet = 0
    while True:
        _busy.wait()
        now = monotonic()
        for ride in tuple(_riding):
            ride.take_over(now)
        quiet = 0 if _riding else quiet + 1
        if quiet > LULL:
            _busy.clear()
            if _riding:  # it came just before
                _busy.set()
        sleep(TICK)
