"""Sub-agents: turns inside the turn, with their own agent, id, parent, calls and figures."""

from __future__ import annotations

import pytest

from hookturn import Continue, Deny, Engine, Inject, LifecycleError, hookimpl
from hookturn.spec.timings import TIMINGS


class Recorder:
    def __init__(self):
        self.events = []
        for name in TIMINGS:
            if name != "on_outcome":
                setattr(self, name, self._hook(name))

    def _hook(self, name):
        @hookimpl(tryfirst=True, specname=name)
        def hook(event):
            self.events.append(event)

        return hook

    def of(self, timing):
        return [event for event in self.events if event.timing == timing]


@pytest.fixture
def seen():
    return Recorder()


def test_a_sub_agents_turn_inside_the_turn(seen):
    with Engine([seen]).session(agent="coder") as session, session.turn() as turn:
        turn.call_tool("x", {}, lambda: 1, call_id="main-1")
        with turn.subagent("reviewer", "r1") as sub:
            assert (sub.agent, sub.agent_id, sub.parent_agent, sub.number) == ("reviewer", "r1", "coder", 1)
            sub.system_prompt(["You review."])
            sub.model_response("x", usage={"input_tokens": 7})
            sub.call_tool("Edit", {"file_path": "/a"}, lambda **args: 1, call_id="sub-1")
            assert sub.complete("fine").text == "fine"
        turn.call_tool("x", {}, lambda: 1, call_id="main-2")
        turn.complete("done")
    timings = [(event.timing, event.agent, event.agent_id) for event in seen.events]
    start = timings.index(("on_event", "reviewer", "r1"))
    inner = [timing for timing, agent, _ in timings if agent == "reviewer"]
    assert inner == [
        "on_event", "on_turn_start", "system_prompt", "on_model_response", "on_tool_call_start", "pre_tool_execution",
        "post_tool_execution", "on_turn_complete", "post_turn", "on_event",
    ]  # fmt: skip
    assert [event.type for event in seen.of("on_event")] == ["subagent.start", "subagent.stop"]
    assert seen.of("on_event")[0].properties == {"agent": "reviewer", "agent_id": "r1"}
    assert timings[start - 1] == ("post_tool_execution", "coder", "")
    for event in seen.events:
        if event.agent_id:
            assert (event.parent_agent, event.turn) == ("coder", 1)
        else:
            assert event.parent_agent == ""
    reviewed, done = seen.of("on_turn_complete")
    assert (reviewed.usage, done.usage) == ({"input_tokens": 7}, {})
    assert [row["call_id"] for row in reviewed.tool_calls] == ["sub-1"]
    assert [row["call_id"] for row in done.tool_calls] == ["main-1", "main-2"]
    assert (reviewed.edited_files, done.edited_files) == (["/a"], [])
    assert session.usage == {"input_tokens": 7}
    assert session.turns == 1


def test_sub_agents_have_ids_of_their_own(seen):
    with (
        Engine([seen]).session() as session,
        session.turn() as turn,
        turn.subagent("a") as one,
        turn.subagent("a") as two,
    ):
        assert one.agent_id and two.agent_id and one.agent_id != two.agent_id
        one.call_tool("x", {}, lambda: 1)
        two.call_tool("x", {}, lambda: 1)
    assert len({event.call_id for event in seen.of("post_tool_execution")}) == 2


def test_sub_agents_of_sub_agents(seen):
    with (
        Engine([seen]).session() as session,
        session.turn() as turn,
        turn.subagent("a", "1") as a,
        a.subagent("b", "2") as b,
    ):
        assert (b.parent_agent, b.agent_id) == ("a", "2")
        b.call_tool("x", {}, lambda: 1)
    [post] = seen.of("post_tool_execution")
    assert (post.agent, post.parent_agent) == ("b", "a")
    ends = [event.agent for event in seen.of("on_turn_complete")]
    assert ends == ["b", "a", "main"]


def test_the_end_of_the_turn_ends_its_sub_agents(seen):
    with Engine([seen]).session() as session, session.turn() as turn:
        sub = turn.subagent("a", "1").begin()
        sub.begin_tool("c1", "x", {})
        turn.subagent("b", "2").begin()
        turn.complete("")
        with pytest.raises(LifecycleError):
            sub.call_tool("x", {}, lambda: 1)
    assert [event.agent for event in seen.of("on_turn_complete")] == ["b", "a", "main"]
    assert [(event.call_id, event.status, event.agent) for event in seen.of("post_tool_execution")] == [
        ("c1", "unknown", "a")
    ]
    assert [event.type for event in seen.of("on_event")].count("subagent.stop") == 2


def test_one_sub_agent_twice_at_once_is_refused():
    with (
        Engine().session() as session,
        session.turn() as turn,
        turn.subagent("a", "1"),
        pytest.raises(LifecycleError, match="sub-agent '1' has an open turn"),
    ):
        turn.subagent("a", "1").begin()


def test_a_sub_agent_may_come_again(seen):
    with Engine([seen]).session() as session, session.turn() as turn:
        for _ in range(2):
            with turn.subagent("a", "1") as sub:
                sub.call_tool("x", {}, lambda: 1)
    assert len(seen.of("on_turn_complete")) == 3


def test_a_failing_sub_agent_is_told_once_and_ends(seen):
    with (
        pytest.raises(ValueError),
        Engine([seen]).session() as session,
        session.turn() as turn,
        turn.subagent("a", "1"),
    ):
        raise ValueError("x")
    [told] = seen.of("on_error")
    assert (told.agent, told.agent_id, told.phase) == ("a", "1", "turn")
    assert [event.agent for event in seen.of("on_turn_complete")] == ["a", "main"]


def test_filters_by_agent():
    class P:
        @hookimpl(agents=["review*"])
        def pre_tool_execution(self):
            return Deny("reviewers only read")

    with Engine([P()]).session() as session, session.turn() as turn:
        assert turn.call_tool("x", {}, lambda: 1).status == "ok"
        with turn.subagent("reviewer") as sub:
            assert sub.call_tool("x", {}, lambda: 1).status == "denied"
        assert turn.call_tool("x", {}, lambda: 1).status == "ok"


def test_a_sub_agent_may_be_made_to_go_on():
    class P:
        @hookimpl(agents=["a"])
        def on_turn_complete(self, event):
            return Continue("more") if event.continued < 2 else None

    with Engine([P()]).session() as session, session.turn() as turn:
        with turn.subagent("a") as sub:
            assert sub.complete("x").again == "more"
            assert sub.complete("x").again == "more"
            assert sub.complete("x").again is None
        assert turn.complete("").again is None


def test_a_block_ends_the_sub_agents_turn_only():
    from hookturn import Block

    class P:
        @hookimpl(agents=["a"])
        def on_model_response(self):
            return Block("no")

        @hookimpl(agents=["a"])
        def on_turn_start(self):
            return Inject("for the sub-agent")

    with Engine([P()]).session() as session, session.turn() as turn:
        with turn.subagent("a") as sub:
            assert sub.system_prompt([]) == ["for the sub-agent"]
            sub.model_response("x")
            assert sub.call_tool("x", {}, lambda: 1).status == "denied"
        assert turn.call_tool("x", {}, lambda: 1).status == "ok"
        assert turn.system_prompt([]) == []


async def test_asynchronous_sub_agents_in_parallel(seen):
    import asyncio

    async def review(turn, number):
        async with turn.subagent("r", f"r{number}") as sub:
            for _ in range(3):
                await asyncio.sleep(0)
                await sub.call_tool("x", {}, lambda: 1)

    async with Engine([seen]).session() as session, session.turn() as turn:
        await asyncio.gather(*[review(turn, number) for number in range(5)])
        await turn.complete("")
    for number in range(5):
        rows = [event for event in seen.of("on_turn_complete") if event.agent_id == f"r{number}"]
        assert [len(row.tool_calls) for row in rows] == [3]
    assert len(seen.of("post_tool_execution")) == 15
