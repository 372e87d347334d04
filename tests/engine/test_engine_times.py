"""``Outcome.times``: who spent how long, wherever somebody looks at outcomes."""

from __future__ import annotations

import pytest

from hookturn import Deny, Engine, events, hookimpl


class Busy:
    hookturn_name = "busy"

    @hookimpl
    def pre_tool_execution(self, event):
        sum(range(100_000))


class Silent:
    hookturn_name = "silent"

    @hookimpl
    def pre_tool_execution(self):
        return None


class Broken:
    hookturn_name = "broken"

    @hookimpl
    def pre_tool_execution(self):
        raise ValueError


class Late:
    hookturn_name = "late"

    @hookimpl(trylast=True)
    async def pre_tool_execution(self):
        return None


class Refuses:
    hookturn_name = "refuses"

    @hookimpl
    def pre_tool_execution(self):
        return Deny("no")


class Watch:
    hookturn_name = "watch"

    def __init__(self):
        self.seen = []

    @hookimpl
    def on_outcome(self, event):
        self.seen.append(event.outcome)


EVENT = events.PreToolExecution(tool="bash", args={}, session_id="s")


@pytest.mark.parametrize("plugins", [(), (Late,)], ids=["hot loop", "full loop"])
def test_every_hook_that_was_called_has_its_time(plugins):
    watch = Watch()
    with Engine(plugins=[Busy(), Silent(), Broken(), *(kind() for kind in plugins), watch]) as engine:
        out = engine.fire(EVENT)
    assert [name for name, _ in out.times] == ["busy", "silent", "broken", *(["late"] if plugins else [])]
    times = dict(out.times)
    assert times["busy"] > times["silent"] > 0
    assert sum(times.values()) <= out.micros / 1e6
    assert any(seen is out for seen in watch.seen)


def test_hooks_behind_a_refusal_have_none():
    with Engine(plugins=[Refuses(), Silent(), Watch()]) as engine:
        assert [name for name, _ in engine.fire(EVENT).times] == ["refuses"]


def test_nobody_looks_nothing_is_measured():
    with Engine(plugins=[Busy(), Silent()]) as engine:
        assert engine.fire(EVENT).times == ()
        assert [name for name, _ in engine.fire(EVENT, measure=True).times] == ["busy", "silent"]


def test_a_hook_whose_answer_is_refused_has_one_time():
    class Odd:
        hookturn_name = "odd"

        @hookimpl
        async def pre_tool_execution(self):
            return "no answer"

    with Engine(plugins=[Odd(), Silent()]) as engine:
        out = engine.fire(EVENT, measure=True)
    assert [name for name, _ in out.times] == ["odd", "silent"]
    assert [failure.hook for failure in out.failures] == ["odd"]
