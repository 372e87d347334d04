"""A turn of many calls, and the name of who asks."""

from __future__ import annotations

import gc
import weakref

import pytest

from hookturn import Ask, Engine, hookimpl


def test_a_long_turn_does_not_keep_the_results_of_all_its_calls():
    class Value:
        pass

    alive = weakref.WeakSet()

    def make():
        value = Value()
        alive.add(value)
        return value

    with Engine().session() as session, session.turn() as turn:
        for _ in range(5_000):
            turn.call_tool("look", {}, make)
        gc.collect()
        assert len(alive) <= 2_001


def test_a_hook_named_like_a_rule_is_asked_about_all_the_same():
    class Asks:
        @hookimpl
        def on_tool_call_start(self, event):
            return Ask("sure?")

    engine = Engine()
    engine.register(Asks(), "rule of thumb")
    with engine.session() as session, session.turn() as turn:
        assert turn.call_tool("bash", {}, pytest.fail).status == "denied"
