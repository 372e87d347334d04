"""Event loops on threads of their own, on which ``fire`` runs coroutine hooks from synchronous code."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading
from contextlib import suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

CLEANUP_SECONDS = 0.2
"""How long a cancelled hook is waited for; one that does not give up is left alone."""

_here = threading.local()  # .loop: the helper loop whose thread this is


async def _boxed(awaitable: Awaitable[Any]) -> tuple[Any, BaseException | None]:
    """Await; an exit or interrupt comes back as a value, since raised in a task it would end the whole loop."""
    try:
        return await awaitable, None
    except (SystemExit, KeyboardInterrupt) as error:
        return None, error


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
        self._stuck = False  # a hook that was cancelled has not let go of the thread yet
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True, name="hookturn-loop")
        self._thread.start()

    def _run(self) -> None:
        _here.loop = self
        asyncio.set_event_loop(self._loop)
        try:
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

    def run(self, awaitable: Awaitable[Any], seconds: float | None) -> Any:
        """Wait for an awaitable, in the caller's context variables; at the time limit it is cancelled.

        Raises:
            TimeoutError: when it is not done in time.
            BaseException: whatever it raises.
        """
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
            task = self._loop.create_task(_boxed(awaitable))
            tasks.append(task)
            task.add_done_callback(settle)

        def cancel() -> None:
            self._stuck = False
            for task in tasks:
                task.cancel()

        self._loop.call_soon_threadsafe(begin, context=contextvars.copy_context())
        try:
            return result.result(seconds)
        except concurrent.futures.TimeoutError:
            if result.done():
                raise  # the hook's own TimeoutError
            self._stuck = True
            self._tell(cancel)
            raise too_late(seconds) from None
        except BaseException:
            if not result.done():
                self._tell(cancel)
            raise

    def _tell(self, callback: Callable[[], None]) -> None:
        with suppress(RuntimeError):  # closed meanwhile
            self._loop.call_soon_threadsafe(callback)

    def close(self) -> None:
        """Cancel what still runs and stop the loop; waits at most a second."""
        if self.alive:
            self._tell(self._loop.stop)
            self._thread.join(1.0)


class LoopPool:
    """The helper loops of one engine, made when needed.

    A hook on a helper loop may fire again: its loop is then blocked, and the
    inner hook gets another one. So does everybody when a hook does not let go.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._loops: list[HelperLoop] = []

    def run(self, awaitable: Awaitable[Any], seconds: float | None) -> Any:
        """Wait for an awaitable on a free loop (see ``HelperLoop.run``)."""
        caller: HelperLoop | None = getattr(_here, "loop", None)
        if caller is not None:
            caller.blocked = True
        try:
            with self._lock:
                loop = next((loop for loop in self._loops if loop.free), None)
                if loop is None:
                    loop = HelperLoop()
                    self._loops = [*(known for known in self._loops if known.alive), loop]
            return loop.run(awaitable, seconds)
        finally:
            if caller is not None:
                caller.blocked = False

    def close(self) -> None:
        """Stop all loops."""
        with self._lock:
            loops, self._loops = self._loops, []
        for loop in loops:
            loop.close()
