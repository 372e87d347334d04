"""Event loops on threads of their own, on which ``fire`` runs coroutine hooks from synchronous code."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable
    from typing import Any


class HelperLoop:
    """One event loop on one daemon thread."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, daemon=True, name="hookturn-loop")
        self._thread.start()

    def _run(self) -> None:
        asyncio.set_event_loop(self._loop)
        try:
            self._loop.run_forever()
        finally:
            self._loop.close()

    def is_current(self) -> bool:
        """Whether the caller runs on this loop's thread."""
        return threading.current_thread() is self._thread

    def run(self, awaitable: Awaitable[Any], seconds: float | None) -> Any:
        """Wait for an awaitable, in the caller's context variables; at the time limit it is cancelled.

        Raises:
            TimeoutError: when it is not done in time.
            BaseException: whatever it raises.
        """
        result: concurrent.futures.Future[Any] = concurrent.futures.Future()
        tasks: list[asyncio.Task[Any]] = []

        async def work() -> Any:
            return await awaitable

        def settle(task: asyncio.Task[Any]) -> None:
            if result.done():
                return
            if task.cancelled():
                result.set_exception(asyncio.CancelledError())
            elif (error := task.exception()) is not None:
                result.set_exception(error)
            else:
                result.set_result(task.result())

        def begin() -> None:
            task = self._loop.create_task(work())
            tasks.append(task)
            task.add_done_callback(settle)

        self._loop.call_soon_threadsafe(begin, context=contextvars.copy_context())
        try:
            return result.result(seconds)
        except concurrent.futures.TimeoutError:
            if result.done():
                raise  # the hook's own TimeoutError
            self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
            raise TimeoutError(f"no answer within {seconds or 0:g} s") from None
        except BaseException:
            if not result.done():
                self._loop.call_soon_threadsafe(lambda: [task.cancel() for task in tasks])
            raise

    def close(self) -> None:
        """Cancel what still runs and stop the loop; waits at most a second."""

        def stop() -> None:
            for task in asyncio.all_tasks(self._loop):
                task.cancel()
            self._loop.call_soon(self._loop.stop)

        self._loop.call_soon_threadsafe(stop)
        self._thread.join(1.0)
