"""Coroutine hooks in ``fire`` and ``afire``: loops, nesting, time limits, context variables, parallel fires."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from hookturn import Ask, Deny, Engine, Rewrite, Warn, events, hookimpl

EVENT = events.PreToolExecution(tool="bash", args={"command": "ls"}, session_id="s")


def coroutine_hook(function, timing="pre_tool_execution", **options):
    @hookimpl(**options)
    async def hook(self, event, ctx):
        return await function(event)

    hook.__name__ = timing
    return type("P", (), {timing: hook})()


def sync_hook(function, timing="pre_tool_execution", **options):
    @hookimpl(**options)
    def hook(self, event):
        return function(event)

    hook.__name__ = timing
    return type("P", (), {timing: hook})()


async def fire_either(engine, way, event=EVENT, **options):
    if way == "afire":
        return await engine.afire(event, **options)
    return await asyncio.to_thread(engine.fire, event, **options)


@pytest.mark.parametrize("way", ["fire", "afire"])
async def test_sync_and_coroutine_hooks_take_turns_in_order(way):
    order = []

    async def slow(event):
        await asyncio.sleep(0.01)
        order.append(("async", event.command))
        return Rewrite(command=event.command + "2")

    def fast(event):
        order.append(("sync", event.command))
        return Rewrite(command=event.command + "1")

    plugins = [sync_hook(fast), coroutine_hook(slow), sync_hook(fast), coroutine_hook(slow)]
    with Engine(plugins) as engine:
        out = await fire_either(engine, way)
    assert order == [("sync", "ls"), ("async", "ls1"), ("sync", "ls12"), ("async", "ls121")]
    assert out.event.command == "ls1212"


async def test_afire_uses_the_current_loop_and_fire_another():
    loops = []

    async def note(event):
        loops.append(asyncio.get_running_loop())

    with Engine([coroutine_hook(note)]) as engine:
        await engine.afire(EVENT)
        engine.fire(EVENT)  # from inside a running loop too
    assert loops[0] is asyncio.get_running_loop()
    assert loops[1] is not loops[0]


@pytest.mark.parametrize("way", ["fire", "afire"])
@pytest.mark.parametrize("depth", [1, 2, 3, 5, 7])
async def test_a_fire_from_inside_a_coroutine_hook_gets_another_loop(way, depth):
    """A loop that waits for the inner fire cannot serve it; no level may run into its time limit."""
    reached = []

    async def nest(event):
        level = event.turn
        reached.append(level)
        await asyncio.sleep(0)
        if level < depth:
            inner = engine.fire(event.replace(turn=level + 1))
            assert not inner.failures, inner.failures
            return Warn(f"{level} " + " ".join(inner.warnings))
        return Warn(str(level))

    with Engine([coroutine_hook(nest, timeout=20)]) as engine:
        begun = time.monotonic()
        out = await fire_either(engine, way, EVENT.replace(turn=1))
    assert not out.failures
    assert reached == list(range(1, depth + 1))
    assert out.warnings[0].split() == [str(level) for level in range(1, depth + 1)]
    assert time.monotonic() - begun < 15, "somebody waited for a time limit"


def test_two_engines_that_fire_each_other():
    async def first(event):
        if event.turn < 6:
            return Warn(two.fire(event.replace(turn=event.turn + 1)).warnings[0])
        return Warn("end")

    async def second(event):
        return Warn(one.fire(event.replace(turn=event.turn + 1)).warnings[0])

    with Engine([coroutine_hook(first)]) as one, Engine([coroutine_hook(second)]) as two:
        assert one.fire(EVENT).warnings == ("end",)


@pytest.mark.parametrize("way", ["fire", "afire"])
@pytest.mark.parametrize("closed", [False, True])
async def test_a_time_limit_really_cancels(way, closed):
    seen = []

    async def hang(event):
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        finally:
            seen.append("cleaned up")

    plugin = coroutine_hook(hang, timeout=0.05, on_failure="deny" if closed else "ignore")
    later = sync_hook(lambda event: Warn("later"))
    with Engine([("slow", plugin), ("later", later)]) as engine:
        out = await fire_either(engine, way)
        for _ in range(200):
            if len(seen) == 2:
                break
            await asyncio.sleep(0.01)
    assert seen == ["cancelled", "cleaned up"]
    [failure] = out.failures
    assert (failure.hook, failure.error_type) == ("slow", "TimeoutError")
    assert "0.05 s" in failure.message
    assert failure.elapsed >= 0.05
    assert out.decision == ("deny" if closed else None)
    assert out.warnings == (() if closed else ("later",))


@pytest.mark.parametrize("way", ["fire", "afire"])
async def test_a_hook_that_does_not_give_up_is_left_behind(way):
    stop = asyncio.Event() if way == "afire" else None
    ended = threading.Event()

    async def stubborn(event):
        while not ended.is_set():
            try:
                await asyncio.sleep(0.05)
            except asyncio.CancelledError:
                continue
        return Deny("too late")

    with Engine([("p", coroutine_hook(stubborn, timeout=0.05))]) as engine:
        out = await fire_either(engine, way)
        assert out.decision is None
        assert out.failures[0].error_type == "TimeoutError"
        ended.set()
    assert stop is None or not stop.is_set()


def test_a_coroutine_hook_that_blocks_its_loop_delays_nobody_else():
    release = threading.Event()

    async def blocks(event):
        release.wait(20)

    async def good(event):
        await asyncio.sleep(0)
        return Warn("good")

    plugins = [("blocks", coroutine_hook(blocks, timeout=0.05)), ("good", coroutine_hook(good, timeout=5))]
    with Engine(plugins) as engine:
        for _ in range(3):
            out = engine.fire(EVENT)
            assert out.warnings == ("good",)
            assert [failure.hook for failure in out.failures] == ["blocks"]
        release.set()


def test_a_hook_gets_another_loop_when_one_that_blocks_was_there_before():
    """It has a limit of 30 s, the other one of 60: it waits for neither."""
    blocked, release = threading.Event(), threading.Event()

    async def block(event):
        if event.command == "block":
            blocked.set()
            release.wait(60)

    async def fast(event):
        return Deny("fast")

    plugins = [coroutine_hook(block, timeout=60), coroutine_hook(fast, timeout=30)]
    with Engine(plugins) as engine, ThreadPoolExecutor(1) as pool:
        engine.fire(EVENT)
        slow = pool.submit(engine.fire, events.PreToolExecution(tool="bash", args={"command": "block"}))
        assert blocked.wait(10)
        out = engine.fire(EVENT)
        assert not slow.done()
        release.set()
        assert [out.reason, slow.result().reason] == ["fast", "fast"]
        assert out.failures == ()


def test_a_hook_that_blocks_while_it_is_cancelled_delays_nobody_else():
    release = threading.Event()

    async def block(event):
        try:
            await asyncio.sleep(60)
        finally:
            release.wait(60)

    async def fast(event):
        return Deny("fast")

    between = sync_hook(lambda event: time.sleep(0.1))  # the loop is told of the cancellation
    plugins = [coroutine_hook(block, timeout=0.05), between, coroutine_hook(fast, timeout=0.5)]
    with Engine(plugins) as engine:
        out = engine.fire(EVENT)
        release.set()
    assert out.reason == "fast"
    assert [failure.error_type for failure in out.failures] == ["TimeoutError"]


def test_a_hook_whose_turn_never_came_is_too_late_and_leaves_no_warning(recwarn):
    from hookturn.engine.loops import LoopPool

    async def never():
        return None

    pool = LoopPool()
    for _ in range(20):
        with suppress(TimeoutError):
            pool.run(never(), 1e-9)
    pool.close()
    import gc

    gc.collect()
    assert not recwarn.list


@pytest.mark.parametrize("end", ["stop", "exit"])
def test_a_hook_that_stops_its_loop_costs_no_other_hook(end):
    tasks = []

    async def leave():
        raise SystemExit(3)

    async def stop(event):
        loop = asyncio.get_running_loop()
        if end == "stop":
            loop.stop()
        else:
            tasks.append(loop.create_task(leave()))
        await asyncio.sleep(0.01)

    async def fast(event):
        await asyncio.sleep(0.01)
        return Deny("fast")

    with Engine([coroutine_hook(stop, timeout=5), coroutine_hook(fast, timeout=5)]) as engine:
        outs = [engine.fire(EVENT) for _ in range(3)]
    assert [(out.reason, out.failures) for out in outs] == [("fast", ())] * 3


def test_a_hooks_own_timeout_error_keeps_its_words():
    async def mine(event):
        raise TimeoutError("the database")

    with Engine([coroutine_hook(mine)]) as engine:
        assert engine.fire(EVENT).failures[0].message == "the database"
        assert asyncio.run(engine.afire(EVENT)).failures[0].message == "the database"


@pytest.mark.parametrize("way", ["fire", "afire"])
async def test_a_threaded_hook_is_abandoned(way):
    release, ended = threading.Event(), threading.Event()

    def hang(event):
        release.wait(30)
        ended.set()
        return Deny("too late")

    plugins = [("slow", sync_hook(hang, timeout=0.05)), ("later", sync_hook(lambda event: Warn("later")))]
    with Engine(plugins, threaded=True) as engine:
        out = await fire_either(engine, way)
        assert out.failures[0].error_type == "TimeoutError"
        assert out.warnings == ("later",)
        assert not ended.is_set()
        release.set()
        assert ended.wait(10)
    assert out.decision is None


def test_threaded_hooks_run_on_daemon_threads():
    seen = []
    plugin = sync_hook(lambda event: seen.append(threading.current_thread()))
    with Engine([plugin], threaded=True) as engine:
        engine.fire(EVENT)
    [thread] = seen
    assert thread is not threading.main_thread()
    assert thread.daemon


def test_a_sync_hook_over_its_time_is_only_measured_when_embedded(hook_log):
    def slow(event):
        time.sleep(0.03)
        return Deny("still counts")

    out = Engine([("slow", sync_hook(slow, timeout=0.01))]).fire(EVENT)
    assert out.decision == "deny"
    assert any("over its time limit of 0.01 s" in message for message in hook_log.of("slow"))


variable = contextvars.ContextVar("variable", default="unset")


@pytest.mark.parametrize("way", ["fire", "afire"])
@pytest.mark.parametrize("threaded", [False, True])
async def test_context_variables_of_the_caller_are_visible(way, threaded):
    seen = []

    async def coroutine(event):
        seen.append(variable.get())

    plugins = [coroutine_hook(coroutine), sync_hook(lambda event: seen.append(variable.get()))]
    with Engine(plugins, threaded=threaded) as engine:
        variable.set("set")
        await fire_either(engine, way)
    assert seen == ["set", "set"]


async def test_cancelling_an_afire_cancels_the_hook_and_passes():
    events_seen = []
    started = asyncio.Event()

    async def hang(event):
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            events_seen.append("cleaned up")

    later = sync_hook(lambda event: events_seen.append("later"))
    engine = Engine([coroutine_hook(hang), later])
    task = asyncio.create_task(engine.afire(EVENT))
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert events_seen == ["cleaned up"]


async def test_a_hook_that_cancels_itself_cancels_like_any_code():
    async def cancels(event):
        raise asyncio.CancelledError

    with Engine([coroutine_hook(cancels)]) as engine:
        with pytest.raises(asyncio.CancelledError):
            await engine.afire(EVENT)
        assert (await engine.afire(events.TurnStart())).failures == ()


def test_twenty_fires_in_threads_share_no_state():
    def ask(event):
        time.sleep(0.001)
        return [Rewrite(command=event.command + "!"), Ask(event.command)]

    async def check(event):
        await asyncio.sleep(0.001)
        return [Rewrite(command=event.command + "?"), Warn(event.command)]

    with Engine([sync_hook(ask), coroutine_hook(check)]) as engine, ThreadPoolExecutor(20) as pool:
        outs = list(
            pool.map(lambda n: engine.fire(EVENT.replace(args={"command": str(n)})), range(200)),
        )
    for number, out in enumerate(outs):
        assert (out.reason, out.warnings) == (str(number), (f"{number}!",))
        assert out.event.command == f"{number}!?"
        assert not out.failures


async def test_twenty_fires_in_tasks_share_no_state():
    async def ask(event):
        await asyncio.sleep(0.001)
        return [Rewrite(command=event.command + "!"), Ask(event.command)]

    async def check(event):
        await asyncio.sleep(0.001)
        return Warn(event.command)

    engine = Engine([coroutine_hook(ask), coroutine_hook(check)])
    outs = await asyncio.gather(
        *[engine.afire(EVENT.replace(args={"command": str(number)})) for number in range(200)]
    )
    for number, out in enumerate(outs):
        assert (out.reason, out.warnings) == (str(number), (f"{number}!",))


async def test_nesting_is_counted_by_task():
    """Parallel tasks at the same depth do not add up."""
    depths = []

    async def hook(event):
        depths.append(event.turn)
        await asyncio.sleep(0.005)
        if event.turn < 5:
            out = await engine.afire(event.replace(turn=event.turn + 1))
            return Warn("failed") if out.failures or out.warnings else None
        return None

    engine = Engine([coroutine_hook(hook)])
    outs = await asyncio.gather(*[engine.afire(EVENT.replace(turn=1)) for _ in range(10)])
    assert all(not out.warnings and not out.failures for out in outs)
    assert len(depths) == 50


@pytest.mark.parametrize("way", ["fire", "afire"])
async def test_awaitables_of_other_kinds(way):
    class Custom:
        def __await__(self):
            yield from asyncio.sleep(0).__await__()
            return Deny("custom")

    class P:
        @hookimpl
        def pre_tool_execution(self, event):
            return Custom()

    with Engine([P()]) as engine:
        assert (await fire_either(engine, way)).reason == "custom"


def test_close_ends_what_runs():
    started, ended = threading.Event(), threading.Event()
    raised = []

    async def hang(event):
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            ended.set()

    engine = Engine([coroutine_hook(hang)])

    def fire():
        try:
            engine.fire(EVENT)
        except asyncio.CancelledError as error:
            raised.append(error)

    thread = threading.Thread(target=fire)
    thread.start()
    assert started.wait(10)
    engine.close()
    assert ended.wait(10)
    thread.join(10)
    assert not thread.is_alive()
    assert len(raised) == 1


def test_coroutine_hooks_after_a_fork():
    import os

    if not hasattr(os, "fork"):
        pytest.skip("no fork here")
    code = """
import asyncio, os, sys
from hookturn import Engine, Deny, events, hookimpl

class P:
    @hookimpl
    async def pre_tool_execution(self, event):
        await asyncio.sleep(0)
        return Deny("no")

engine = Engine([P()])
event = events.PreToolExecution(tool="x", args={})
assert engine.fire(event).decision == "deny"
child = os.fork()
if child == 0:
    os._exit(0 if engine.fire(event).decision == "deny" else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    import subprocess
    import sys

    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code], capture_output=True, text=True, timeout=60
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("way", ["fire", "afire"])
async def test_coroutines_that_are_never_reached_leave_no_warning(way, recwarn):
    async def never(event):
        return None

    deny = sync_hook(lambda event: Deny("no"))
    with Engine([deny, coroutine_hook(never)]) as engine:
        await fire_either(engine, way)
    import gc

    gc.collect()
    assert not recwarn.list
