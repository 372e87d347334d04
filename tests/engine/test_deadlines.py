"""Every fire can have a deadline; guards keep a fifth of it, and one that was not reached denies."""

from __future__ import annotations

import asyncio
import time

import pytest

from hookturn import Deny, Engine, Warn, events, hookimpl

EVENT = events.PreToolExecution(tool="bash", args={}, session_id="s")


def hang(name="hang", **options):
    class Hang:
        hookturn_name = name

        @hookimpl(**options)
        async def pre_tool_execution(self, event):
            await asyncio.sleep(60)

    return Hang()


def says(answer, name="says", **options):
    class Says:
        hookturn_name = name

        @hookimpl(**options)
        async def pre_tool_execution(self, event):
            await asyncio.sleep(0)
            return answer

    return Says()


def blocks(seconds, name="blocks"):
    class Blocks:
        hookturn_name = name

        @hookimpl
        def pre_tool_execution(self, event):
            time.sleep(seconds)

    return Blocks()


async def fire(engine, way, deadline):
    if way == "afire":
        return await engine.afire(EVENT, deadline=deadline)
    return await asyncio.to_thread(engine.fire, EVENT, deadline=deadline)


@pytest.mark.parametrize("way", ["fire", "afire"])
async def test_a_hook_gets_what_is_left_at_most(way):
    with Engine([hang(timeout=30), says(Warn("later"))]) as engine:
        begun = time.monotonic()
        out = await fire(engine, way, 0.1)
        assert time.monotonic() - begun < 20
    assert [(failure.hook, failure.error_type) for failure in out.failures] == [
        ("hang", "TimeoutError"),
        ("says", "TimeoutError"),
    ]
    assert "time was used up" in out.failures[1].message
    assert out.decision is None


@pytest.mark.parametrize("way", ["fire", "afire"])
async def test_a_hook_gets_its_own_time_limit_where_it_is_smaller(way):
    with Engine([hang(timeout=0.05), says(Warn("later"))]) as engine:
        out = await fire(engine, way, 30)
    assert out.warnings == ("later",)
    assert "0.05 s" in out.failures[0].message


@pytest.mark.parametrize("way", ["fire", "afire"])
async def test_guards_keep_a_fifth(way):
    """Hooks that hang use up their 80 %; the guard is still asked, in time."""
    with Engine([hang("a"), hang("b"), says(Deny("guarded"), "guard", guard=True)]) as engine:
        begun = time.monotonic()
        out = await fire(engine, way, 2.0)
        elapsed = time.monotonic() - begun
    assert (out.decision, out.by) == ("deny", "guard")
    assert out.reason == "guarded"
    assert elapsed >= 1.5
    assert [failure.hook for failure in out.failures] == ["a", "b"]


async def test_without_guards_hooks_have_all_the_time():
    with Engine([hang()]) as engine:
        begun = time.monotonic()
        await fire(engine, "afire", 0.5)
        assert time.monotonic() - begun >= 0.49


@pytest.mark.parametrize("way", ["fire", "afire"])
async def test_a_guard_that_was_not_reached_denies(way):
    guards = [hang("first", guard=True), says(Warn("fine"), "second", guard=True)]
    with Engine(guards) as engine:
        out = await fire(engine, way, 0.2)
    assert (out.decision, out.by) == ("deny", "first")
    assert {failure.hook for failure in out.failures} == {"first", "second"}
    assert "fine" not in out.warnings


@pytest.mark.parametrize("way", ["fire", "afire"])
async def test_a_synchronous_hook_that_uses_up_everything_makes_guards_deny(way):
    """It cannot be stopped when embedded; what comes late must not be taken for a yes."""
    with Engine([blocks(0.15), says(None, "guard", guard=True)]) as engine:
        out = await fire(engine, way, 0.05)
    assert (out.decision, out.by) == ("deny", "guard")
    assert "time was used up" in out.reason


@pytest.mark.parametrize("way", ["fire", "afire"])
async def test_threads_are_abandoned_at_the_deadline(way):
    with Engine([blocks(3), says(Deny("guarded"), "guard", guard=True)], threaded=True) as engine:
        out = await fire(engine, way, 2.0)
    assert (out.decision, out.reason) == ("deny", "guarded")
    assert out.failures[0].hook == "blocks"


async def test_a_hook_that_fails_closed_and_was_not_reached_denies():
    with Engine([hang(), says(None, "closed", on_failure="deny")]) as engine:
        out = await fire(engine, "afire", 0.1)
    assert (out.decision, out.by) == ("deny", "closed")


async def test_a_deadline_that_is_over_already():
    with Engine([says(Warn("w")), says(None, "guard", guard=True)]) as engine:
        out = await fire(engine, "fire", 0)
        assert (out.decision, out.by, out.warnings) == ("deny", "guard", ())
        out = await fire(engine, "fire", -5)
        assert out.decision == "deny"


def test_a_generous_deadline_changes_nothing():
    plain = says(Deny("no"))
    assert Engine([plain]).fire(EVENT, deadline=1000).reason == "no"


@pytest.mark.parametrize(
    ("event", "seconds"),
    [
        (events.PreToolExecution(tool="x", args={}), 10),
        (events.TurnComplete(), 60),
        (events.PermissionRequest(tool="x", args={}), 300),
        (events.SessionEnd(), 5),
    ],
    ids=lambda value: getattr(value, "timing", value),
)
def test_default_time_limits(event, seconds):
    class P:
        pass

    @hookimpl(specname=event.timing)
    async def hook(self):
        return None

    P.hook = hook
    engine = Engine([P()])
    [step] = engine.plan(event.timing).steps
    assert step.timeout == seconds


def test_the_end_of_a_session_has_a_budget_of_its_own(monkeypatch):
    from hookturn.engine import lifecycle

    monkeypatch.setattr(lifecycle, "END_SECONDS", 0.2)

    class P:
        @hookimpl
        async def on_session_end(self):
            await asyncio.sleep(60)

    begun = time.monotonic()
    with Engine([P()]) as engine, engine.session():
        pass
    assert time.monotonic() - begun < 20


# -- those who only look on ----------------------------------------------------------------------------


def looks_on(timing, seen, *, seconds=0.0, coroutine=False):
    def note(event):
        seen.append(event.timing)
        time.sleep(seconds)

    async def anote(event):
        seen.append(event.timing)
        await asyncio.sleep(seconds)

    hook = anote if coroutine else note
    hook.__name__ = timing
    return type("LooksOn", (), {timing: staticmethod(hookimpl(hook))})()


class Fails:
    @hookimpl
    def pre_tool_execution(self, event):
        raise ValueError("x")


@pytest.mark.parametrize("timing", ["on_outcome", "on_error"])
@pytest.mark.parametrize("coroutine", [False, True])
def test_who_only_looks_on_costs_no_decision(timing, coroutine):
    """However long they take: the decision is there when the host stops waiting."""
    seen, record = [], []
    plugins = [Fails(), says(Deny("no")), looks_on(timing, seen, seconds=30, coroutine=coroutine)]
    with Engine(plugins, threaded=True) as engine:
        engine.register(looks_on(timing, record), "record", layer="builtin")
        begun = time.monotonic()
        out = engine.fire(EVENT, deadline=2.0)
        assert time.monotonic() - begun < 20
    assert (out.decision, out.reason) == ("deny", "no")
    assert seen
    assert record, "what writes records is told"


def test_records_are_told_when_all_the_time_is_used_up():
    record = []
    with Engine([hang(timeout=30)], threaded=True) as engine:
        engine.register(looks_on("on_outcome", record), "outcomes", layer="builtin")
        engine.register(looks_on("on_error", record), "errors", layer="builtin")
        engine.fire(EVENT, deadline=0.1)
    assert record == ["on_error", "on_outcome", "on_outcome"]
