"""Command hooks with ``async: true``: started, and not waited for. What they say counts for nothing but context."""

from __future__ import annotations

from time import monotonic

from ...runners.entry import Configured
from ...spec.answers import Inject
from ...spec.markers import hookimpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from threading import Thread
    from typing import Any

PATIENCE = 4.0
"""Seconds that hooks which still run get when the engine closes; then they are stopped."""


WAITING = 100
"""Events of one hook that wait while as many of its processes run as may; more are dropped, and told."""


class Background:
    """Runs another plugin's hooks on threads of their own.

    Parameters:
        plugin: what runs the command.
        timings: its timings.
        live: run for dry events, too.
        most: processes that run at a time.
    """

    def __init__(self, plugin: Configured, timings: Iterable[str], *, live: bool, most: int) -> None:
        from collections import deque
        from threading import Lock

        self._plugin = plugin
        self._live = live
        self._most = most
        self._lock = Lock()
        self._running: dict[Thread, list[Any]] = {}  # thread -> [what stops it], while it can be stopped
        self._waiting: deque[tuple[str, Any, Any]] = deque()
        self._closed = False
        hooks = {name: self._hook(name) for name in timings}
        self.plugin = Configured(plugin.hookturn_name, {**hooks, "on_dispose": self._dispose()})

    def _hook(self, timing: str) -> Any:
        @hookimpl
        def start(event: Any, ctx: Any) -> None:
            if event.dry_run and not self._live:
                return
            with self._lock:
                waits = len(self._waiting)
                if waits < WAITING:
                    self._waiting.append((timing, event, ctx))
                started = self._work()
            if waits >= WAITING:
                ctx.log.warning(
                    "the background hook is not run for this event: {} of its processes run and {} events wait",
                    self._most,
                    waits,
                )
            elif not started:
                ctx.log.warning("the background hook has no thread yet: {} events wait for it", waits + 1)

        return start

    def _work(self) -> bool:
        """Start another thread if there may be one. The lock is held.

        Returns:
            whether a thread runs what waits.
        """
        if len(self._running) >= self._most:
            return True
        from threading import Thread

        stop: list[Any] = []
        thread = Thread(target=self._all, args=(stop,), daemon=True, name="hookturn-async")
        self._running[thread] = stop
        try:
            thread.start()
        except RuntimeError:  # none is to be had; what waits is for the others, or the next event asks again
            del self._running[thread]
        return bool(self._running)

    def _all(self, stop: list[Any]) -> None:
        """Run what waits until nothing does."""
        from threading import current_thread

        while True:
            with self._lock:
                stop.clear()
                if not self._waiting or self._closed:
                    del self._running[current_thread()]
                    return
                timing, event, ctx = self._waiting.popleft()
            self._run(timing, event, ctx, stop)

    def _run(self, timing: str, event: Any, ctx: Any, stop: list[Any]) -> None:
        import asyncio

        async def go() -> None:
            task = asyncio.current_task()
            loop = asyncio.get_running_loop()
            assert task is not None
            stop.append(lambda: loop.call_soon_threadsafe(task.cancel))
            waiting = getattr(self._plugin, timing)(event, ctx)
            for answer in (await waiting if waiting is not None else None) or ():
                if isinstance(answer, Inject):
                    ctx.inject(answer.text)

        try:
            asyncio.run(go())
        except asyncio.CancelledError:
            ctx.log.warning("the background hook was stopped, for the engine closed")
        except Exception as error:  # nobody waits for it, so its failure is told here
            ctx.log.warning("the background hook failed: {}", error)

    def _dispose(self) -> Any:
        @hookimpl
        def on_dispose() -> None:
            end = monotonic() + PATIENCE
            with self._lock:
                if self._waiting:
                    self._work()
            while left := self._left():
                for thread in left:
                    thread.join(max(0.0, end - monotonic()))
                if monotonic() >= end:
                    break
            with self._lock:
                self._closed = True
                running = dict(self._running)
                waiting = list(self._waiting)
                self._waiting.clear()
            if waiting:
                waiting[0][2].log.warning(
                    "the background hook is not run for {} events that waited, for the engine closed",
                    len(waiting),
                )
            for thread, stop in running.items():
                if thread.is_alive() and stop:
                    from contextlib import suppress

                    with suppress(RuntimeError, IndexError):  # its loop has just closed, or it has just ended
                        stop[0]()
            for thread in running:
                thread.join(1.0)

        return on_dispose

    def _left(self) -> list[Thread]:
        with self._lock:
            return list(self._running)
