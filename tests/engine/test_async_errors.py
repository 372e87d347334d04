"""on_error hooks that are coroutines run on the loop of whoever awaits, also for failures of synchronous hooks."""

from __future__ import annotations

import asyncio

from hookturn import Engine, events, hookimpl


class Failing:
    @hookimpl
    def pre_tool_execution(self, event):
        raise ValueError("no")


class Watching:
    def __init__(self) -> None:
        self.loops = []

    @hookimpl
    async def on_error(self, event):
        self.loops.append(asyncio.get_running_loop())


def test_on_error_runs_on_the_current_loop() -> None:
    watching = Watching()

    async def main() -> None:
        with Engine([Failing(), watching]) as engine:
            for _ in range(2):
                await engine.afire(events.PreToolExecution(tool="bash", args={}))
            assert watching.loops == [asyncio.get_running_loop()] * 2

    asyncio.run(main())
