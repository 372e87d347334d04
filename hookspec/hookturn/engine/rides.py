"""Runs a fire's synchronous hooks on a thread that can be left behind, all of them on the same one.

Handing each hook to a thread of its own costs two wake-ups a hook (some 100
microseconds together); here the fire itself moves to another thread, calls hook
after hook there, and the caller only watches the time of the one that runs. When
it is over, the thread is left behind with that hook, and the caller throws the
TimeoutError into the fire, which goes on with the next hook on another thread.
"""

from __future__ import annotations

import os
from _thread import allocate_lock
from contextvars import copy_context
from time import monotonic

from .engine import thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator
    from typing import Any

    from .engine import Engine, Wait

MOST_PARKED = 16
"""Threads that wait for the next fire; further ones end."""

TICK = 0.05
"""Seconds between looks at the time: a hook may have less than the one before it."""

DRIVING = float("inf")
"""No hook runs: the fire itself is at work, which takes no time to speak of."""

_parked: list[_Thread] = []


class _Thread:
    """A daemon thread that does one piece of work after another."""

    def __init__(self) -> None:
        from threading import Thread

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


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_parked.clear)  # they live in the parent only


class Ride:
    """One fire under way.

    Parameters:
        engine: waits for coroutine hooks.
        steps: the fire, a generator that has not begun.
    """

    def __init__(self, engine: Engine, steps: Generator[Wait, Any, Any]) -> None:
        self._engine = engine
        self._steps = steps
        # The fire sets and resets context variables, so every step must run in the same context.
        self._context = copy_context()
        self._guard = allocate_lock()
        self._arrived = allocate_lock()
        self._arrived.acquire()
        self._thread = 0  # number of the thread that drives; what another one has does not count any more
        self._hook_end = DRIVING  # when the hook that runs must be done, by the monotonic clock
        self._limit = 0.0
        self._result: Any = None
        self._error: BaseException | None = None

    def run(self) -> Any:
        """Run the fire to its end and return its result; raises what it raises."""
        move = self._step(None, None)
        if move is None:
            return self._outcome()
        self._go_on(move)
        interrupt: BaseException | None = None
        while True:
            arrived = False
            try:
                arrived = self._arrived.acquire(timeout=min(max(self._hook_end - monotonic(), 0.0), TICK))
            except BaseException as problem:  # Ctrl-C: it goes through the fire, as it does without threads
                interrupt = problem
            if arrived:
                return self._outcome()
            with self._guard:
                if self._hook_end == DRIVING or (interrupt is None and monotonic() < self._hook_end):
                    continue
                self._thread += 1
                self._hook_end = DRIVING
            error = interrupt or TimeoutError(f"no answer within {self._limit:g} s")
            interrupt = None
            move = self._step(None, error)
            if move is None:
                return self._outcome()
            self._go_on(move)

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
                value = self._engine._wait(awaitable, seconds)
            except BaseException as problem:  # thrown into the fire, which says what it means
                error = thrown(problem)

    def _go_on(self, move: tuple[Callable[[], Any], float]) -> None:
        self._hook_end = monotonic() + move[1]
        self._limit = move[1]
        number = self._thread
        _begin(lambda: self._hooks(number, move))

    def _hooks(self, number: int, move: tuple[Callable[[], Any], float] | None) -> None:
        """Call hook after hook until the fire ends, or the time of one is over."""
        me = os.getpid()
        while move is not None:
            value: Any = None
            error: BaseException | None = None
            try:
                value = self._context.copy().run(move[0])
            except BaseException as problem:  # as above
                error = thrown(problem)
            if os.getpid() != me:  # the hook forked, and its child came back: who waits for it is elsewhere
                os._exit(0)
            with self._guard:
                if number != self._thread:
                    return  # too late: the fire goes on elsewhere
                self._hook_end = DRIVING
            move = self._step(value, error)
            if move is not None:
                with self._guard:
                    self._limit = move[1]
                    self._hook_end = monotonic() + move[1]
        self._arrived.release()
