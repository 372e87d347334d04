"""What steps wait for, and threads of hooks that can be left behind."""

from __future__ import annotations

from .outcome import describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

Wait = tuple["Awaitable[Any] | None", "Callable[[], Any] | None", float]
"""What a generator of steps yields: an awaitable, or a function for a thread, and the seconds that it may take."""


def thrown(problem: BaseException) -> BaseException:
    """Return what a generator of steps is to be told: a GeneratorExit of foreign code would close it instead."""
    if isinstance(problem, GeneratorExit):
        return RuntimeError("GeneratorExit was raised where only a generator's end raises it")
    return problem


def hooks_own(problem: BaseException) -> BaseException:
    """Return what a hook of a threaded engine raised as a failure of that hook, whatever it is.

    No Ctrl-C arrives on its thread, and nobody cancels its task but us: a KeyboardInterrupt, a CancelledError and the
    like must not end the fire, and with it the hooks that come after.
    """
    if isinstance(problem, (Exception, SystemExit)):
        return problem
    failure = RuntimeError(f"the hook raised {describe(problem)}")
    failure.__cause__ = problem
    return failure


def run_on_thread(function: Callable[[], Any], seconds: float) -> Any:
    """Run a function on a daemon thread and wait; at the time limit the thread is abandoned.

    Raises:
        TimeoutError: when it is not done in time.
        BaseException: whatever the function raises.
    """
    from contextvars import copy_context
    from threading import Event as Flag
    from threading import Thread

    done = Flag()
    box: list[Any] = [None, None]
    context = copy_context()

    def work() -> None:
        try:
            box[0] = context.run(function)
        except BaseException as error:  # raised again where it is waited for
            box[1] = error
        done.set()

    Thread(target=work, daemon=True, name="hookturn-hook").start()
    if not done.wait(seconds):
        raise TimeoutError(f"no answer within {seconds:g} s")
    if box[1] is not None:
        raise box[1]
    return box[0]


def start_thread(function: Callable[[], Any], loop: Any) -> Any:
    """Run a function on a daemon thread; returns a future of ``loop`` for its result."""
    from contextlib import suppress
    from contextvars import copy_context
    from threading import Thread

    future = loop.create_future()
    context = copy_context()

    def settle(result: Any, error: BaseException | None) -> None:
        if future.cancelled():
            return
        if error is None:
            future.set_result(result)
        elif isinstance(error, StopIteration):
            future.set_exception(RuntimeError("the hook raised StopIteration"))
        else:
            future.set_exception(error)

    def work() -> None:
        try:
            result, error = context.run(function), None
        except BaseException as problem:  # raised again where it is waited for
            result, error = None, hooks_own(problem)
        with suppress(RuntimeError):  # the loop may be gone by then
            loop.call_soon_threadsafe(settle, result, error)

    Thread(target=work, daemon=True, name="hookturn-hook").start()
    return future
