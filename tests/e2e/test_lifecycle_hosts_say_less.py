"""What sessions offer to hosts that tell little: bridges, which see one call at a time and no ids."""

from __future__ import annotations

import time

import pytest

from hookturn import Allow, Deny, Engine, Inject, hookimpl


def says(timing, answer, **options):
    seen = []

    @hookimpl(specname=timing, **options)
    def hook(event):
        seen.append(event)
        return answer(event) if callable(answer) else answer

    plugin = type("Says", (), {timing: staticmethod(hook)})()
    plugin.seen = seen
    return plugin


@pytest.fixture(params=["memory", "stored"])
def make(request, tmp_path):
    def make(*plugins, **options):
        if request.param == "stored":
            options["state_dir"] = tmp_path / "state"
        return Engine(plugins, **options)

    return make


@pytest.mark.parametrize(
    ("answer", "decision"), [(Allow("fine"), "allow"), (Deny("not that"), "deny"), (None, None)]
)
def test_a_host_that_asks_its_user_asks_the_hooks_first(make, answer, decision):
    hook = says("on_permission_request", answer)
    with make(hook).session(session_id="s", persist=True) as session, session.turn() as turn:
        call = turn.ask("Bash", {"command": "ls"}, reason="no rule allows it", by="claude-code", raw={"a": 1})
    assert call.decision == decision
    assert ("not that" in call.message) == (decision == "deny")
    (event,) = hook.seen
    assert (event.tool, event.reason, event.by, event.raw) == (
        "Bash",
        "no rule allows it",
        "claude-code",
        {"a": 1},
    )
    assert event.identity.startswith("sha256:")


@pytest.mark.parametrize(("given", "decision"), [(True, "allow"), (False, "deny"), (None, None)])
def test_the_approver_is_asked_after_the_hooks(make, given, decision):
    engine = make(approver=lambda request: given)
    with engine.session() as session, session.turn() as turn:
        assert turn.ask("Bash", {}, reason="why", by="host").decision == decision


async def test_a_coroutine_asks_alike(make):
    engine = make(says("on_permission_request", Deny("no")))
    async with engine.session() as session, session.turn() as turn:
        assert (await turn.ask("Bash", {}, reason="why", by="host")).decision == "deny"


def test_asking_begins_no_call(make):
    post = says("post_tool_execution", None)
    with make(post).session() as session, session.turn() as turn:
        turn.ask("Bash", {}, reason="why", by="host", call_id="c1")
        assert session.open_calls() == []
    assert post.seen == []


def test_a_host_denies_a_call_that_the_hooks_let_through(make):
    post = says("post_tool_execution", None)
    with make(post).session() as session, session.turn() as turn:
        assert turn.begin_tool("c1", "Bash", {"command": "ls"}).go
        turn.end_tool("c1", "denied", result="No.", by="the bridge", reason="cannot be said")
    (event,) = post.seen
    assert (event.status, event.by, event.reason, event.duration) == (
        "denied",
        "the bridge",
        "cannot be said",
        0.0,
    )


def test_a_call_is_found_by_tool_and_arguments(make):
    with make().session(persist=True) as session, session.turn() as turn:
        for number in range(3):
            turn.begin_tool(f"c{number}", "Bash", {"n": number})
        assert session.find_call("Bash", {"n": 2}) == "c2"
        assert session.find_call("Bash", {"n": 7}) == "c0"  # the oldest of the tool
        assert session.find_call("Read", {"n": 2}) == ""
        turn.end_tool("c0")
        assert session.open_calls() == ["c1", "c2"]


def test_what_was_injected_can_be_given_elsewhere(make):
    with make(says("on_session_start", Inject("Be brief."))).session() as session:
        assert session.take_injected() == "Be brief."
        assert session.take_injected() == ""


def test_hosts_keep_values_with_the_session(tmp_path):
    with Engine(state_dir=tmp_path).attach("s").values() as data:
        data["host"] = {"told": ["x"]}
    session = Engine(state_dir=tmp_path).attach("s")
    with session.values() as data:
        assert data["host"] == {"told": ["x"]}


def test_a_session_knows_whether_it_runs(tmp_path):
    session = Engine(state_dir=tmp_path).attach("s")
    assert not session.started
    session.start()
    assert Engine(state_dir=tmp_path).attach("s").started
    session.end("done", raw={"why": "test"})
    assert not Engine(state_dir=tmp_path).attach("s").started


@pytest.mark.parametrize("coroutine", [False, True])
def test_every_fire_gets_what_is_left_of_the_hosts_time(make, coroutine):
    if coroutine:

        @hookimpl
        async def pre_tool_execution(event):
            import asyncio

            await asyncio.sleep(60)

    else:

        @hookimpl
        def pre_tool_execution(event):
            time.sleep(60)

    slow = type("Slow", (), {"pre_tool_execution": staticmethod(pre_tool_execution)})()
    guard = says("pre_tool_execution", Deny("guarded"), guard=True)
    with make(slow, guard, threaded=True).session() as session, session.turn() as turn:
        start = time.monotonic()
        session.until(start + 3)
        call = turn.begin_tool("c1", "Bash", {})
        assert time.monotonic() - start < 30
    assert (call.decision, call.reason) == ("deny", "guarded")  # guards keep a share of the time


def test_when_the_time_is_over_guards_deny_and_others_fail(make):
    @hookimpl(guard=True)
    def pre_tool_execution(event):
        raise AssertionError("not reached")

    other = says("pre_tool_execution", None)
    guard = type("Guard", (), {"pre_tool_execution": staticmethod(pre_tool_execution)})()
    with make(other, guard, threaded=True).session() as session, session.turn() as turn:
        session.until(time.monotonic() - 1)
        call = turn.begin_tool("c1", "Bash", {})
        session.until(None)
    assert call.decision == "deny"
    assert other.seen == []


def test_payloads_of_the_host_reach_sub_agents_errors_and_the_end(make):
    hooks = [says(timing, None) for timing in ("on_turn_start", "on_error", "on_session_end")]
    session = make(*hooks).session()
    session.start()
    turn = session.turn().begin()
    sub = turn.subagent("reviewer", "a1", raw={"from": "start"}).begin()
    sub.complete()
    session.fail("RateLimit", "too many", raw={"from": "fail"})
    session.end("other", raw={"from": "end"})
    assert [hook.seen[-1].raw for hook in hooks] == [{"from": "start"}, {"from": "fail"}, {"from": "end"}]


def test_sub_agents_in_the_background_outlive_their_turn(make):
    posts, ends = says("post_tool_execution", None), says("on_turn_complete", None)
    with make(posts, ends).session(session_id="s", persist=True) as session:
        turn = session.turn().begin()
        for name in ("a1", "a2"):
            turn.subagent("worker", name).begin().begin_tool(f"call of {name}", "Bash", {})
        turn.complete("launched", keep=["a1"])
        assert [(end.agent_id, end.text) for end in ends.seen] == [("a2", ""), ("", "launched")]
        assert [post.call_id for post in posts.seen] == ["call of a2"]
        sub = session.open_turn("a1")
        sub.end_tool("call of a1", result="done")
        sub.complete("found it")
        session.subagent("late", "a3").begin().complete()
    assert [(post.call_id, post.status) for post in posts.seen] == [
        ("call of a2", "unknown"),
        ("call of a1", "ok"),
    ]
    assert [end.agent_id for end in ends.seen] == ["a2", "", "a1", "a3"]
    assert ends.seen[2].turn == ends.seen[3].turn == 1


async def test_sub_agents_in_the_background_of_a_coroutine(make):
    ends = says("on_turn_complete", None)
    async with make(ends).session() as session:
        turn = await session.turn().begin()
        await turn.subagent("worker", "a1").begin()
        await turn.complete("launched", keep=["a1"])
        await session.open_turn("a1").complete("found it")
        await (await session.subagent("late", "a2").begin()).complete()
    assert [end.agent_id for end in ends.seen] == ["", "a1", "a2"]
