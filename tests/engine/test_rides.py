"""Threaded engines: the hooks of a fire share a thread, and one that hangs is left behind with it."""

from __future__ import annotations

import threading
import time

import pytest

from hookturn import Deny, Engine, Warn, events, hookimpl


def noting(seen, *, seconds=0.0, answer=None, timeout=None):
    """Return a plugin that notes its thread and takes its time."""

    class Plugin:
        @hookimpl(timeout=timeout)
        def pre_tool_execution(self, event):
            seen.append(threading.get_ident())
            time.sleep(seconds)
            return answer

    return Plugin()


EVENT = events.PreToolExecution(tool="bash", args={"command": "ls"})


def test_all_hooks_of_a_fire_run_on_one_thread_that_is_not_the_callers():
    seen = []
    engine = Engine([noting(seen) for _ in range(6)], threaded=True)
    engine.fire(EVENT)
    engine.fire(EVENT)
    assert len(seen) == 12
    assert threading.get_ident() not in seen
    assert len(set(seen[:6])) == 1


@pytest.mark.parametrize("place", range(4))
def test_a_hook_that_hangs_is_left_behind_wherever_it_stands(place):
    seen = []
    hooks = [noting(seen, timeout=30) for _ in range(4)]
    hooks[place] = noting(seen, seconds=3, answer=Deny("too late"), timeout=0.1)
    hooks.append(noting(seen, answer=Deny("in time")))
    begun = time.monotonic()
    out = Engine(hooks, threaded=True).fire(EVENT)
    assert time.monotonic() - begun < 2
    assert (out.decision, out.reason) == ("deny", "in time")
    assert [failure.error_type for failure in out.failures] == ["TimeoutError"]
    assert len(seen) == 5


def test_several_that_hang():
    out = Engine([noting([], seconds=3, timeout=0.1) for _ in range(3)], threaded=True).fire(EVENT)
    assert len(out.failures) == 3


def test_a_late_answer_counts_for_nothing_later_either():
    engine = Engine(
        [noting([], seconds=0.3, answer=Warn("late"), timeout=0.05), noting([], answer=Warn("x"))],
        threaded=True,
    )
    assert engine.fire(EVENT).warnings == ("x",)
    time.sleep(0.4)
    assert threading.active_count() < 20


def test_fires_inside_of_hooks():
    class Outer:
        @hookimpl
        def pre_tool_execution(self, event):
            if event.tool == "bash":
                return Deny(engine.fire(event.replace(tool="inner")).reason)
            return None

    engine = Engine([Outer(), noting([], answer=Deny("no"))], threaded=True)
    assert engine.fire(EVENT).decision == "deny"


def test_parallel_fires():
    engine = Engine([noting([], seconds=0.01) for _ in range(3)], threaded=True)
    engine.register(noting([], answer=Deny("no")), "last")
    decisions = []
    threads = [
        threading.Thread(target=lambda: decisions.extend(engine.fire(EVENT).decision for _ in range(5)))
        for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert decisions == ["deny"] * 40
