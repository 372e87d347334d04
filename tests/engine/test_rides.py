"""Threaded engines: the hooks of a fire share a thread, and one that hangs is left behind with it."""

from __future__ import annotations

import queue
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from hookturn import Deny, Engine, Warn, events, hookimpl
from hookturn.engine.lifecycle import Fire
from hookturn.engine.rides import Ride


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


# -- callers whose own thread may be left behind -------------------------------------------------------


def went(engine, event=EVENT):
    """The outcome of a fire on a thread that may be left behind, and whether it was."""
    ends, stayed = queue.SimpleQueue(), []

    def call():
        end = Ride(engine, engine.fire_steps(Fire(event))).go(ends.put)
        stayed.append(end is not None)
        if end is not None:
            ends.put(end)

    thread = threading.Thread(target=call, daemon=True)
    thread.start()
    end = ends.get(timeout=30)
    return end(), thread, stayed, ends


def test_hooks_run_on_the_callers_thread_unless_one_takes_too_long():
    seen = []
    engine = Engine([noting(seen, answer=Warn("x")) for _ in range(3)], threaded=True)
    out, thread, stayed, _ = went(engine)
    thread.join(10)
    assert stayed == [True]
    assert out.warnings == ("x",) * 3
    assert set(seen) == {thread.ident}


@pytest.mark.parametrize("place", range(4))
def test_the_callers_thread_is_left_behind_with_a_hook_that_hangs(place):
    seen = []
    free = threading.Event()

    class Hangs:
        @hookimpl(timeout=0.1)
        def pre_tool_execution(self, event):
            seen.append(threading.get_ident())
            free.wait(20)
            return Deny("too late")

    hooks = [noting(seen, timeout=30) for _ in range(4)]
    hooks[place] = Hangs()
    hooks.append(noting(seen, answer=Deny("in time")))
    out, thread, stayed, ends = went(Engine(hooks, threaded=True))
    assert (out.decision, out.reason) == ("deny", "in time")
    assert [failure.error_type for failure in out.failures] == ["TimeoutError"]
    assert not stayed
    free.set()
    thread.join(10)
    assert stayed == [False], "what was left behind knows that it was"
    assert ends.empty(), "there is one end only"
    assert seen[: place + 1] == [thread.ident] * (place + 1)
    assert thread.ident not in seen[place + 1 :]


def test_what_steps_raise_is_raised_at_their_end():
    def steps():
        yield None, lambda: None, 10.0
        raise KeyboardInterrupt

    end = Ride(Engine(threaded=True), steps()).go(lambda end: None)
    with pytest.raises(KeyboardInterrupt):
        end()


def test_hooks_that_end_just_when_their_time_is_over():
    """Whoever is first, the watch or the hook: there is exactly one end, with all the other hooks' answers."""

    def one(number):
        about = {"seconds": 0.03 + number % 8 * 0.01, "answer": Warn("close"), "timeout": 0.05}
        engine = Engine(
            [noting([], **about), noting([], **about), noting([], answer=Warn("last"))], threaded=True
        )
        out, thread, _, ends = went(engine)
        thread.join(10)
        assert ends.empty()
        assert out.warnings[-1] == "last"
        assert out.warnings.count("close") + len(out.failures) == 2

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(one, range(96)))
