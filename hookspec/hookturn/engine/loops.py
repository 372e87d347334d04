"""Event loops on threads of their own, on which ``fire`` runs coroutine hooks from synchronous code."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import os
import threading
from contextlib import suppress
from time import monotonic

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

CLEANUP_SECONDS = 0.2
"""How long a cancelled hook is waited for; one that does not give up is left alone."""

PATIENCE = 1.0
"""Seconds, but never more than a quarter of its own, for which a hook waits for another one to let go of the loop."""

_here = threading.local()  # .loop: the helper loop whose thread this is


class _Occupied(Exception):
    """The loop did not get to it: another one has to."""


async def _boxed(awaitable: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """Await; an exit or interrupt comes back as a value, since raised in a task it would end the whole loop."""
    try:
        return await awaitable, None
    except (SystemExit, KeyboardInterrupt) as error:
        return None, error


def _end_child() -> None:
    """Have a child that a hook forked on a helper loop end when it comes back there: nobody waits for it, and what
    wakes the parent's loop up would wake up the child's instead."""
    helper: HelperLoop | None = getattr(_here, "loop", None)
    if helper is not None:
        helper.end_process()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_end_child)


def _heard(task: asyncio.Task[Any]) -> None:
    """Look at a task's exception, so that asyncio does not report one that nobody waits for any more."""
    if not task.cancelled():
        task.exception()


def too_late(seconds: float | None) -> TimeoutError:
    """Return the error of a hook that took too long."""
    return TimeoutError(f"no answer within {seconds or 0:g} s")


async def bounded(awaitable: Awaitable[Any], seconds: float | None) -> Any:
    """Await on the current loop; at the time limit it is cancelled, and left behind if it does not give up.

    Raises:
        TimeoutError: when it is not done in time.
        BaseException: whatever it raises.
    """
    task = asyncio.ensure_future(_boxed(awaitable))
    task.add_done_callback(_heard)
    try:
        await asyncio.wait({task}, timeout=seconds)
    except asyncio.CancelledError:  # our caller is cancelled, and so is the hook
        task.cancel()
        await asyncio.wait({task}, timeout=CLEANUP_SECONDS)
        raise
    if not task.done():
        task.cancel()
        await asyncio.wait({task}, timeout=CLEANUP_SECONDS)
        raise too_late(seconds)
    value, error = task.result()
    if error is not None:
        raise error
    return value


class HelperLoop:
    """One event loop on one daemon thread."""

    def __init__(self) -> None:
        self.blocked = False  # its thread waits for another loop
        self._stuck = False  # a hook has not let go of the thread yet
        self._closing = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True, name="hookturn-loop")
        self._thread.start()

    def _run(self) -> None:
        _here.loop = self
        asyncio.set_event_loop(self._loop)
        try:
            while not self._closing:
                # A task of a hook's own may stop it, or raise an exit through it: the other hooks' go on.
                with suppress(SystemExit, KeyboardInterrupt):
                    self._loop.run_forever()
            tasks = asyncio.all_tasks(self._loop)
            for task in tasks:
                task.cancel()
            if tasks:
                self._loop.run_until_complete(asyncio.wait(tasks, timeout=CLEANUP_SECONDS))
            self._loop.run_until_complete(self._loop.shutdown_asyncgens())
        finally:
            self._loop.close()

    @property
    def alive(self) -> bool:
        """Whether the thread runs (after a fork it does not)."""
        return self._thread.is_alive()

    @property
    def free(self) -> bool:
        """Whether the loop can take work."""
        return not self.blocked and not self._stuck and self._thread.is_alive()

    def end_process(self) -> None:
        """End the process as soon as the hook that runs lets go of the loop; to be called by that hook's thread."""
        self._loop.call_soon(os._exit, 0)

    def run(self, awaitable: Awaitable[Any], seconds: float | None, until: float | None) -> Any:
        """Wait for an awaitable, in the caller's context variables; at the time limit it is cancelled.

        Parameters:
            awaitable: what is waited for.
            seconds: the limit.
            until: when that is over, by the monotonic clock.

        Raises:
            _Occupied: when the loop did not begin with it.
            TimeoutError: when it is not done in time.
            BaseException: whatever it raises.
        """
        claim = [None]  # whoever takes it begins with the awaitable, or takes it back
        result: concurrent.futures.Future[Any] = concurrent.futures.Future()
        tasks: list[asyncio.Task[Any]] = []

        def settle(task: asyncio.Task[Any]) -> None:
            if result.done():
                _heard(task)
            elif task.cancelled():
                result.set_exception(asyncio.CancelledError())
            elif (error := task.exception()) is not None:
                result.set_exception(error)
            else:
                value, error = task.result()
                if error is not None:
                    result.set_exception(error)
                else:
                    result.set_result(value)

        def begin() -> None:
            if not _claimed(claim):
                return
            task = self._loop.create_task(_boxed(awaitable))
            tasks.append(task)
            task.add_done_callback(settle)

        def let_go() -> None:
            if not tasks:
                self._free_again()
            for task in tasks:  # at most one, which may hold the loop up once more while it cleans up
                task.cancel()
                task.add_done_callback(self._free_again)
                self._loop.call_later(CLEANUP_SECONDS, self._free_again)

        self._loop.call_soon_threadsafe(begin, context=contextvars.copy_context())
        try:
            with suppress(concurrent.futures.TimeoutError):
                return result.result(PATIENCE if seconds is None else min(seconds / 4, PATIENCE))
            if _claimed(claim):
                raise _Occupied
            return result.result(None if until is None else max(until - monotonic(), 0.0))
        except concurrent.futures.TimeoutError:
            if result.done():
                raise  # the hook's own TimeoutError
            self._stuck = True
            self._tell(let_go)
            raise too_late(seconds) from None
        except _Occupied:
            self._stuck = True
            self._tell(let_go)
            raise
        except BaseException:
            if not result.done():
                self._tell(let_go)
            raise

    def _free_again(self, *_: object) -> None:
        self._stuck = False

    def _tell(self, callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # closed meanwhile
            self._loop.call_soon_threadsafe(callback)

    def close(self) -> None:
        """Cancel what still runs and stop the loop; waits at most a second."""
        self._closing = True
        if self.alive:
            self._tell(self._loop.stop)
            self._thread.join(1.0)


def _claimed(claim: list[None]) -> bool:
    try:
        claim.pop()
    except IndexError:
        return False
    return True


class LoopPool:
    """The helper loops of one engine, made when needed.

    A hook on a helper loop may fire again: its loop is then blocked, and the
    inner hook gets another one. So does everybody whose turn does
    not come because a hook does not let go.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loops: list[HelperLoop] = []

    def run(self, awaitable: Awaitable[Any], seconds: float | None) -> Any:
        """Wait for an awaitable on a free loop (see ``HelperLoop.run``)."""
        caller: HelperLoop | None = getattr(_here, "loop", None)
        if caller is not None:
            caller.blocked = True
        until = None if seconds is None else monotonic() + seconds
        try:
            while True:
                with suppress(_Occupied):
                    return self._free().run(awaitable, seconds, until)
                if until is not None and monotonic() >= until:
                    close = getattr(awaitable, "close", None)
                    if close is not None:  # it never began
                        close()
                    raise too_late(seconds)
        finally:
            if caller is not None:
                caller.blocked = False

    def _free(self) -> HelperLoop:
        with self._lock:
            loop = next((loop for loop in self._loops if loop.free), None)
            if loop is None:
                loop = HelperLoop()
                self._loops = [*(known for known in self._loops if known.alive), loop]
        return loop

    def close(self) -> None:
        """Stop all loops."""
        with self._lock:
            loops, self._loops = self._loops, []
        for loop in loops:
            loop.close()
