"""Lets a coroutine wait for blocking work that can really be stopped. asyncio is not imported for asking."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable
    from typing import Any, TypeVar

    T = TypeVar("T")


def in_coroutine() -> bool:
    """Tell whether an event loop runs in this thread, which must not be held up."""
    asyncio = sys.modules.get("asyncio")
    if asyncio is None:
        return False
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return False
    return True


async def on_thread(work: Callable[[int], T]) -> T:
    """Do blocking work on a thread for a coroutine. When the coroutine is cancelled, the work is told to stop.

    Parameters:
        work: gets a descriptor that becomes readable when it is to stop.
    """
    import asyncio
    from contextlib import suppress
    from threading import Thread

    loop = asyncio.get_running_loop()
    done: asyncio.Future[T] = loop.create_future()
    stop, keep = os.pipe()

    def settle(result: Any, error: BaseException | None) -> None:
        if done.cancelled():
            return
        if error is not None:
            done.set_exception(error)
        else:
            done.set_result(result)

    def run() -> None:
        result: Any = None
        error: BaseException | None = None
        try:
            result = work(stop)
        except BaseException as problem:  # it belongs to who waits, Ctrl-C included
            error = problem
        finally:
            os.close(stop)
        with suppress(RuntimeError):  # the loop may be gone by then
            loop.call_soon_threadsafe(settle, result, error)

    try:
        # No daemon: the interpreter must not end between a program's TERM and its KILL.
        Thread(target=run, name="hookturn-runner").start()
    except BaseException:
        os.close(stop)
        os.close(keep)
        raise
    try:
        return await done
    finally:
        os.close(keep)  # the other end becomes readable
