"""A hook can ask how much time it has: what is left of the fire's deadline, and of its own limit."""

from __future__ import annotations

import pytest

from hookturn import Engine, events, hookimpl
from hookturn.engine.nesting import time_left


class Asks:
    def __init__(self):
        self.left = None

    @hookimpl(timeout=3)
    def on_turn_start(self, event):
        self.left = time_left()


@pytest.mark.parametrize("threaded", [False, True])
@pytest.mark.parametrize(("deadline", "most"), [(None, 3), (1.0, 1), (100.0, 3)])
def test_the_smaller_of_the_hooks_limit_and_the_deadline(threaded, deadline, most):
    hook = Asks()
    Engine([hook], threaded=threaded).fire(events.TurnStart(), deadline=deadline)
    assert 0 < hook.left <= most
    assert hook.left > most - 1


def test_a_nested_fire_has_no_more_time_than_the_hook_around_it():
    inner = Asks()
    engine = Engine([inner])

    class Outer:
        @hookimpl(timeout=0.5)
        def on_error(self, event):
            engine.fire(events.TurnStart())

    engine.register(Outer())
    engine.fire(events.Error(error_type="x", message="y"))
    assert 0 < inner.left <= 0.5


def test_outside_of_hooks_there_is_no_limit():
    assert time_left() == float("inf")
