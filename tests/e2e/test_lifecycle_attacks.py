"""Ways past a decision that were tried: none leads there."""

from __future__ import annotations

import asyncio

import pytest

from hookturn import Ask, Block, Deny, Engine, LifecycleError, Rewrite, hookimpl


class Posts:
    def __init__(self) -> None:
        self.seen = []

    @hookimpl
    def post_tool_execution(self, event):
        self.seen.append((event.call_id, event.status))


def test_one_id_runs_once() -> None:
    ran = []

    async def body(command):
        ran.append(command)
        await asyncio.sleep(0.01)
        return "ok"

    async def main() -> list[object]:
        with Engine([posts]) as engine:
            async with engine.session() as session, session.turn() as turn:
                calls = (turn.call_tool("bash", {"command": "x"}, body, call_id="c1") for _ in range(2))
                return await asyncio.gather(*calls, return_exceptions=True)

    posts = Posts()
    results = asyncio.run(main())
    assert ran == ["x"]
    assert sum(isinstance(result, LifecycleError) for result in results) == 1
    assert posts.seen == [("c1", "ok")]


class Odd:
    def __init__(self, timing: str) -> None:
        self.timing = timing

    @hookimpl
    def on_tool_call_start(self, event):
        if self.timing == "start":
            raise GeneratorExit

    @hookimpl(timeout=5)
    def pre_tool_execution(self, event):
        if self.timing == "pre":
            raise GeneratorExit


@pytest.mark.parametrize("timing", ["start", "pre"])
def test_a_hooks_generator_exit_is_its_failure(timing) -> None:
    posts = Posts()
    with Engine([Odd(timing), posts]) as engine, engine.session() as session, session.turn() as turn:
        done = turn.call_tool("bash", {"command": "x"}, lambda command: "ok", call_id="c1")
    assert (done.status, posts.seen) == ("ok", [("c1", "ok")])


def test_an_approvers_generator_exit_still_ends_the_call() -> None:
    def approve(request):
        raise GeneratorExit

    posts = Posts()
    engine = Engine([posts], permissions={"ask": ["bash"]}, approver=approve)
    with engine, engine.session() as session, session.turn() as turn, pytest.raises(RuntimeError):
        turn.call_tool("bash", {"command": "x"}, lambda command: "ok", call_id="c1")
    assert posts.seen == [("c1", "cancelled")]


@pytest.mark.parametrize("answer", [Deny("no"), Ask("sure?")])
def test_what_always_allow_set_aside_stands_again_after_a_rewrite(answer) -> None:
    class Start:
        @hookimpl
        def on_tool_call_start(self, event):
            return answer

    class Widen:
        @hookimpl
        def pre_tool_execution(self, event):
            return Rewrite(command="rm -rf x")

    ran = []
    engine = Engine([Start(), Widen()], permissions={"always_allow": ["bash(ls *)"]})
    with engine, engine.session() as session, session.turn() as turn:
        done = turn.call_tool("bash", {"command": "ls x"}, ran.append)
    assert (done.status, ran) == ("denied", [])


def test_a_blocked_turn_ends_for_its_sub_agents_too() -> None:
    class Stop:
        @hookimpl(agents=["main"])
        def on_model_response(self, event):
            return Block("enough")

    ran = []
    with Engine([Stop()]) as engine, engine.session() as session, session.turn() as turn:
        with turn.subagent("one") as before:
            turn.model_response("x")
            assert before.call_tool("bash", {"command": "a"}, ran.append).status == "denied"
        with turn.subagent("two") as after:
            assert after.call_tool("bash", {"command": "b"}, ran.append).status == "denied"
    assert ran == []


@pytest.mark.parametrize("where", ["engine", "hook"])
def test_monitor_mode_injects_nothing(where) -> None:
    class Telling:
        @hookimpl(mode="monitor" if where == "hook" else "enforce")
        def on_turn_start(self, event, ctx):
            ctx.inject("psst")

    engine = Engine([Telling()], mode="monitor" if where == "engine" else "enforce")
    with engine, engine.session() as session, session.turn() as turn:
        assert turn.system_prompt(["a"]) == ["a"]
