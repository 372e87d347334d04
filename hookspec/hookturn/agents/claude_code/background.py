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


class Background:
    """Runs another plugin's hooks on threads of their own.

    Parameters:
        plugin: what runs the command.
        timings: its timings.
        live: run for dry events, too.
    """

    def __init__(self, plugin: Configured, timings: Iterable[str], *, live: bool) -> None:
        from threading import Lock

        self._plugin = plugin
        self._live = live
        self._lock = Lock()
        self._running: dict[Thread, list[Any]] = {}  # thread -> [what stops it], once it can be stopped
        hooks = {name: self._hook(name) for name in timings}
        self.plugin = Configured(plugin.hookturn_name, {**hooks, "on_dispose": self._dispose()})

    def _hook(self, timing: str) -> Any:
        @hookimpl
        def start(event: Any, ctx: Any) -> None:
            if event.dry_run and not self._live:
                return
            from threading import Thread

            stop: list[Any] = []
            thread = Thread(
                target=self._run, args=(timing, event, ctx, stop), daemon=True, name="hookturn-async"
            )
            with self._lock:
                self._running[thread] = stop
            thread.start()

        return start

    def _run(self, timing: str, event: Any, ctx: Any, stop: list[Any]) -> None:
        import asyncio
        from threading import current_thread

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
        finally:
            with self._lock:
                del self._running[current_thread()]

    def _dispose(self) -> Any:
        @hookimpl
        def on_dispose() -> None:
            end = monotonic() + PATIENCE
            with self._lock:
                running = dict(self._running)
            for thread in running:
                thread.join(max(0.0, end - monotonic()))
            for thread, stop in running.items():
                if thread.is_alive() and stop:
                    from contextlib import suppress

                    with suppress(RuntimeError):  # its loop has just closed
                        stop[0]()
            for thread in running:
                thread.join(1.0)

        return on_dispose
