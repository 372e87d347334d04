"""``Engine.fire`` on a prepared event, against a raw pluggy call, a plain loop, google-adk and strands.

Ours does what theirs do not: isolation, order by phase and priority, an Outcome.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pluggy
from harness import Row, side_by_side

from hookturn import Engine, events, hookimpl

EVENT = events.PreToolExecution(tool="bash", args={"command": "ls -la"}, session_id="bench")
LIMITS = {0: 0.30, 1: 0.60, 10: 0.50, 100: 0.45}


class Hook:
    """A hook without an opinion."""

    @hookimpl
    def pre_tool_execution(self, event: Any) -> None:
        return None


class HookWithContext:
    """The same with a ctx."""

    @hookimpl
    def pre_tool_execution(self, event: Any, ctx: Any) -> None:
        return None


class Filtered:
    """A hook with a filter that matches."""

    @hookimpl(tools=["bash"])
    def pre_tool_execution(self, event: Any) -> None:
        return None


def engine(kind: type, count: int) -> Callable[[], Any]:
    made = Engine(plugins=[kind() for _ in range(count)])
    return lambda: made.fire(EVENT)


def raw_pluggy(count: int) -> Callable[[], Any]:
    spec, impl = pluggy.HookspecMarker("bench"), pluggy.HookimplMarker("bench")

    class Specs:
        @spec
        def pre_tool_execution(self, event: Any, ctx: Any) -> None: ...

    class Plugin:
        @impl
        def pre_tool_execution(self, event: Any) -> None:
            return None

    manager = pluggy.PluginManager("bench")
    manager.add_hookspecs(Specs)
    for _ in range(count):
        manager.register(Plugin())
    hook = manager.hook.pre_tool_execution
    return lambda: hook(event=EVENT, ctx=None)


def plain_loop(count: int) -> Callable[[], Any]:
    functions = [Hook().pre_tool_execution for _ in range(count)]

    def loop() -> None:
        for function in functions:
            function(EVENT)

    return loop


def strands(count: int) -> Callable[[], Any] | None:
    try:
        from strands.hooks import BeforeToolCallEvent, HookRegistry
    except ImportError:
        return None
    registry = HookRegistry()
    for _ in range(count):
        registry.add_callback(BeforeToolCallEvent, lambda event: None)
    event = BeforeToolCallEvent(
        agent=None,
        selected_tool=None,
        tool_use={"toolUseId": "1", "name": "bash", "input": {}},
        invocation_state={},
    )
    return lambda: registry.invoke_callbacks(event)


def adk(count: int) -> Any:
    try:
        from google.adk.plugins.base_plugin import BasePlugin
        from google.adk.plugins.plugin_manager import PluginManager
    except ImportError:
        return None

    class Plugin(BasePlugin):  # type: ignore[misc]
        async def before_tool_callback(self, *, tool: Any, tool_args: Any, tool_context: Any) -> None:
            return None

    manager = PluginManager(plugins=[Plugin(name=f"p{number}") for number in range(count)])
    return lambda: manager.run_before_tool_callback(tool=None, tool_args={}, tool_context=None)


def drain(make: Callable[[], Any]) -> Callable[[], Any]:
    """Run a coroutine that never really waits, without an event loop's own cost."""

    def run() -> Any:
        coroutine = make()
        try:
            while True:
                coroutine.send(None)
        except StopIteration as stop:
            return stop.value

    return run


def old_pluggy(counts: list[int]) -> dict[int, float] | None:
    """Nanoseconds of a raw call in pluggy 1.5.0, measured in a process of its own."""
    with tempfile.TemporaryDirectory() as folder:
        pip = [sys.executable, "-m", "pip", "install", "-q", "--target", folder, "pluggy==1.5.0"]
        if subprocess.run(pip, capture_output=True, check=False).returncode:
            return None
        code = (
            "import sys, json; sys.path[:0] = [sys.argv[1], sys.argv[2]]\n"
            "from bench_fire import raw_pluggy, side_by_side, pluggy\n"
            "assert pluggy.__version__ == '1.5.0', pluggy.__version__\n"
            "counts = json.loads(sys.argv[3])\n"
            "figures = side_by_side({str(n): raw_pluggy(n) for n in counts})\n"
            "print(json.dumps(figures))"
        )
        argv = [sys.executable, "-c", code, folder, str(Path(__file__).parent), json.dumps(counts)]
        done = subprocess.run(argv, capture_output=True, text=True, check=True)
    return {int(key): value for key, value in json.loads(done.stdout).items()}


def rows() -> list[Row]:
    """Measure and return the rows."""
    result = []
    old = old_pluggy(list(LIMITS))
    for count, limit in LIMITS.items():
        figures = side_by_side(
            {
                "fire": engine(Hook, count),
                "with ctx": engine(HookWithContext, count),
                "filtered": engine(Filtered, count),
                "pluggy": raw_pluggy(count),
                "loop": plain_loop(count),
            }
        )
        name = f"fire, {count} hook{'' if count == 1 else 's'}"
        result.append(Row(name, figures["fire"], "ns"))
        result.append(
            Row(
                name, figures["fire"] / figures["pluggy"], "x", f"raw pluggy {pluggy.__version__} call", limit
            )
        )
        if old:
            result.append(Row(name, figures["fire"] / old[count], "x", "raw pluggy 1.5.0 call"))
        if count:
            result.append(
                Row(
                    f"{name} that take ctx",
                    figures["with ctx"] / figures["pluggy"],
                    "x",
                    "raw pluggy call",
                    limit,
                )
            )
            result.append(
                Row(
                    f"{name} with a tools filter",
                    figures["filtered"] / figures["pluggy"],
                    "x",
                    "raw pluggy call",
                )
            )
            result.append(
                Row(name, figures["fire"] / figures["loop"], "x", "plain Python loop without isolation")
            )
    others: dict[str, Callable[[], Any]] = {"fire": engine(Hook, 10)}
    strands_call, adk_call = strands(10), adk(10)
    if strands_call is not None:
        others["strands HookRegistry.invoke_callbacks"] = strands_call
    if adk_call is not None:
        others["google-adk PluginManager.run_before_tool_callback"] = drain(adk_call)
    figures = side_by_side(others)
    for name, value in figures.items():
        if name != "fire":
            result.append(Row("fire, 10 hooks", figures["fire"] / value, "x", name, 0.6))
    made = Engine(plugins=[Hook() for _ in range(10)])
    hundred = range(100)

    def fires() -> None:
        for _ in hundred:
            made.fire(EVENT)

    async def afires() -> None:
        for _ in hundred:
            await made.afire(EVENT)

    figures = side_by_side({"fire": fires, "afire": drain(afires)})
    result.append(Row("afire, 10 synchronous hooks", figures["afire"] / figures["fire"], "x", "fire", 1.3))
    return result


if __name__ == "__main__":
    for row in rows():
        print(*row.cells(), sep=" | ")
