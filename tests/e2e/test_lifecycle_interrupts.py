"""Whatever fails and whoever interrupts: each begun call has one post, each turn ends, the session ends once."""

from __future__ import annotations

import asyncio
import signal
import subprocess
import sys
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from hookturn import Ask, Continue, Engine, HookturnError, LifecycleError, hookimpl
from hookturn.spec.timings import TIMINGS

NAMES = [name for name in TIMINGS if name != "on_outcome"]


class Passing(BaseException):
    """No Exception: it passes through every hook's isolation."""


class Watch:
    """Notes every event; first of all hooks, so that it sees also what others interrupt."""

    def __init__(self):
        self.events = []
        for name in NAMES:
            setattr(self, name, self._hook(name))

    def _hook(self, name):
        @hookimpl(tryfirst=True, priority=-1000)
        def hook(event):
            self.events.append(event)

        hook.__name__ = name
        return hook

    def check(self):
        timings = [event.timing for event in self.events]
        if "on_session_start" in timings:
            assert timings.count("on_session_end") == 1, timings
        begun, posts = (
            [(event.turn, event.call_id) for event in self.events if event.timing == timing]
            for timing in ("on_tool_call_start", "post_tool_execution")
        )
        assert len(posts) == len(set(posts)), f"two posts of one call: {posts}"
        assert set(begun) <= set(posts), f"a call without its post: {set(begun) - set(posts)}"
        started = [(event.turn, event.agent_id) for event in self.events if event.timing == "on_turn_start"]
        for timing in ("on_turn_complete", "post_turn"):
            ended = [(event.turn, event.agent_id) for event in self.events if event.timing == timing]
            assert set(started) <= set(ended), f"{timing}: {set(started) - set(ended)}"


class Bomb:
    """Raises at the given calls of its hooks: ``{(timing, number): exception}``."""

    def __init__(self, plan, asynchronous=False):
        self.plan = plan
        self.count = {}
        self.thrown = []
        for name in NAMES:
            setattr(self, name, self._hook(name, asynchronous))

    def _hook(self, name, asynchronous):
        def tick(event):
            self.count[name] = number = self.count.get(name, 0) + 1
            error = self.plan.get((name, number))
            if error is not None:
                self.thrown.append((name, number))
                raise error
            if name == "pre_tool_execution" and event.tool == "asked":
                return Ask("sure?")
            if name == "on_turn_complete" and number == 1:
                return Continue("more")
            return None

        if asynchronous:

            async def hook(event):
                await asyncio.sleep(0)
                return tick(event)
        else:

            def hook(event):
                return tick(event)

        return hookimpl(specname=name)(hook)


def body_that(error):
    def body(**args):
        if error is not None:
            raise error
        return "done"

    return body


def host(engine, bodies):
    """A host that uses everything, and goes on after what can be gone on from."""
    bodies = iter(bodies)
    with engine.session() as session:
        session.submit("x")
        with session.turn() as turn:
            turn.system_prompt(["a"])
            turn.model_response("m")
            turn.call_tool("x", {}, body_that(next(bodies)))
            turn.begin_tool("halves", "x", {})
            turn.call_tool("asked", {}, body_that(next(bodies)))
            with turn.subagent("r", "r1") as sub:
                sub.call_tool("y", {}, body_that(next(bodies)))
                sub.begin_tool("open in the sub-agent", "y", {})
            turn.end_tool("halves")
            turn.begin_tool("never ended", "x", {})
            turn.complete("x")
        session.event("session.idle")


async def ahost(engine, bodies):
    bodies = iter(bodies)
    async with engine.session() as session:
        await session.submit("x")
        async with session.turn() as turn:
            await turn.system_prompt(["a"])
            await turn.model_response("m")
            await turn.call_tool("x", {}, body_that(next(bodies)))
            await turn.begin_tool("halves", "x", {})
            await turn.call_tool("asked", {}, body_that(next(bodies)))
            async with turn.subagent("r", "r1") as sub:
                await sub.call_tool("y", {}, body_that(next(bodies)))
                await sub.begin_tool("open in the sub-agent", "y", {})
            await turn.end_tool("halves")
            await turn.begin_tool("never ended", "x", {})
            await turn.complete("x")
        await session.event("session.idle")


def run(way, plan, bodies=(None, None, None), approver=None):
    """Play the host; returns the watch, the bomb and what came out."""
    watch, bomb = Watch(), Bomb(plan, asynchronous="coroutine" in way)

    def approve(request):
        if approver is not None:
            raise approver
        return True

    out = None
    with Engine([watch, bomb], approver=approve) as engine:
        try:
            if way.startswith("async"):
                asyncio.run(ahost(engine, bodies))
            else:
                host(engine, bodies)
        except BaseException as error:
            out = error
    return watch, bomb, out


WAYS = ("sync", "sync coroutine", "async", "async coroutine")
PLACES = [(name, number) for name in NAMES for number in (1, 2, 3)]


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("place", PLACES, ids=lambda place: f"{place[0]}-{place[1]}")
@pytest.mark.parametrize("error", [KeyboardInterrupt, Passing])
def test_an_interrupt_in_any_hook(way, place, error):
    thrown = error("stop")
    watch, bomb, out = run(way, {place: thrown})
    if bomb.thrown:
        assert isinstance(out, error), "an interrupt passes on to the host"
    watch.check()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("index", [0, 1, 2])
@pytest.mark.parametrize(
    "error", [KeyboardInterrupt, Passing, SystemExit, ValueError, asyncio.CancelledError]
)
def test_an_interrupt_in_any_body(way, index, error):
    bodies = [None, None, None]
    bodies[index] = error("stop")
    watch, _, out = run(way, {}, bodies)
    assert (out is None) == (error is ValueError)
    watch.check()


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("error", [KeyboardInterrupt, ValueError])
def test_an_interrupt_in_the_approver(way, error):
    watch, _, _ = run(way, {}, approver=error("stop"))
    watch.check()


@pytest.mark.parametrize("way", WAYS)
def test_interrupts_everywhere(way):
    plan = {place: KeyboardInterrupt("again and again") for place in PLACES}
    watch, _, out = run(way, plan)
    assert isinstance(out, KeyboardInterrupt)
    watch.check()


errors = st.sampled_from([ValueError, SystemExit, RecursionError, KeyboardInterrupt, Passing])
plans = st.dictionaries(
    st.tuples(st.sampled_from(NAMES), st.integers(1, 6)), errors.map(lambda kind: kind("random")), max_size=6
)
body_errors = st.lists(st.none() | errors.map(lambda kind: kind("body")), min_size=3, max_size=3)


@settings(max_examples=200)
@given(plans, body_errors, st.sampled_from(WAYS), st.none() | errors.map(lambda kind: kind("approver")))
def test_random_failures(plan, bodies, way, approver):
    watch, _, _ = run(way, plan, bodies, approver)
    watch.check()


@pytest.mark.parametrize("way", ["sync", "async"])
@pytest.mark.parametrize(
    "place",
    ["on_turn_start", "system_prompt", "pre_tool_execution", "post_tool_execution", "on_turn_complete"],
)
def test_a_host_may_go_on_after_an_interrupted_turn(way, place):
    """As command-line agents do: Ctrl-C ends the turn, the session takes the next prompt."""
    watch, bomb = Watch(), Bomb({(place, 1): KeyboardInterrupt()})
    engine = Engine([watch, bomb])

    def sync():
        with engine.session() as session:
            for _ in range(3):
                session.submit("x")
                try:
                    with session.turn() as turn:
                        turn.system_prompt([])
                        turn.call_tool("x", {}, body_that(None))
                        turn.complete("")
                except KeyboardInterrupt:
                    continue
            assert session.turns == 3

    async def asynchronous():
        async with engine.session() as session:
            for _ in range(3):
                await session.submit("x")
                try:
                    async with session.turn() as turn:
                        await turn.system_prompt([])
                        await turn.call_tool("x", {}, body_that(None))
                        await turn.complete("")
                except KeyboardInterrupt:
                    continue
            assert session.turns == 3

    sync() if way == "sync" else asyncio.run(asynchronous())
    assert bomb.thrown
    watch.check()


def test_an_interrupted_start_still_ends():
    watch, bomb = Watch(), Bomb({("on_session_start", 1): KeyboardInterrupt()})
    with pytest.raises(KeyboardInterrupt), Engine([watch, bomb]).session():
        raise AssertionError("never entered")
    assert [event.timing for event in watch.events] == ["on_session_start", "on_session_end"]
    assert watch.events[-1].reason == "interrupted"


def test_a_real_signal_in_a_real_tool(tmp_path):
    """Ctrl-C while a tool sleeps: the post, the turn's end and the session's end are still written."""
    out = tmp_path / "out.txt"
    code = f"""
import time
from hookturn import Engine, hookimpl
from hookturn.spec.timings import TIMINGS

class P:
    pass

def note(name):
    @hookimpl(specname=name)
    def hook(event):
        with open({str(out)!r}, "a") as file:
            file.write(f"{{event.timing}} {{getattr(event, 'status', '')}}\\n")
    return hook

for name in TIMINGS:
    if name != "on_outcome":
        setattr(P, name, staticmethod(note(name)))

with Engine([P()]) as engine, engine.session() as session, session.turn() as turn:
    turn.call_tool("sleep", {{}}, lambda: time.sleep(60))
"""
    process = subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True)
    for _ in range(600):
        if out.exists() and "pre_tool_execution" in out.read_text():
            break
        time.sleep(0.05)
    time.sleep(0.1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert "KeyboardInterrupt" in errors
    assert process.returncode != 0
    assert out.read_text().splitlines()[-4:] == [
        "post_tool_execution cancelled",
        "on_turn_complete ",
        "post_turn ",
        "on_session_end ",
    ]


def test_errors_of_the_host_in_every_place():
    """Whatever a host does wrong, what it has begun still ends."""
    watch = Watch()
    with Engine([watch]).session() as session:
        for wrong in (
            lambda turn: turn.end_tool("never"),
            lambda turn: turn.call_tool("x", [], None),
            lambda turn: session.turn().begin(),
            lambda turn: turn.system_prompt("x"),
        ):
            with pytest.raises(HookturnError), session.turn() as turn:
                turn.begin_tool("c1", "x", {})
                wrong(turn)
        with pytest.raises(TypeError), session.turn() as turn:
            turn.call_tool("x", {}, body_that(None), nonsense=1)
        with session.turn() as turn:
            result = turn.call_tool("x", {"a": 1}, lambda: "takes no arguments")
            assert (result.status, result.exception.__class__) == ("error", TypeError)
            assert turn.call_tool("x", {}, None).status == "error"
        with pytest.raises(LifecycleError):
            turn.complete()
    watch.check()
