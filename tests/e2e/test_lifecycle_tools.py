"""Tool calls: exactly one post_tool_execution each, a refused body is never entered, what was rewritten counts everywhere."""

from __future__ import annotations

import asyncio
import time

import pytest

from hookturn import (
    Allow,
    Ask,
    Block,
    Deny,
    Engine,
    Inject,
    LifecycleError,
    Recover,
    Reply,
    Rewrite,
    Tool,
    Warn,
    hookimpl,
)

TOOL_TIMINGS = (
    "on_tool_call_start",
    "pre_tool_execution",
    "on_permission_request",
    "post_tool_execution",
    "on_error",
)


class Recorder:
    def __init__(self):
        self.events = []
        for name in TOOL_TIMINGS:
            setattr(self, name, self._hook(name))

    def _hook(self, name):
        @hookimpl(tryfirst=True)
        def hook(event):
            self.events.append(event)

        hook.__name__ = name
        return hook

    def of(self, timing):
        return [event for event in self.events if event.timing == timing]

    @property
    def posts(self):
        return self.of("post_tool_execution")


def says(timing, answer, **options):
    @hookimpl(**options)
    def hook(event):
        return answer(event) if callable(answer) else answer

    hook.__name__ = timing
    return type("Says", (), {timing: staticmethod(hook)})()


@pytest.fixture
def seen():
    return Recorder()


class Body:
    """A tool's body that counts how often it was entered."""

    def __init__(self, result="done"):
        self.entered = []
        self.result = result

    def __call__(self, **args):
        self.entered.append(args)
        if isinstance(self.result, BaseException):
            raise self.result
        return self.result


def run(plugins, body, *, tool="bash", args=None, **options):
    """A whole call in a session of its own."""
    engine = Engine(plugins, **options)
    with engine.session(cwd="/project") as session, session.turn() as turn:
        return turn.call_tool(tool, {"command": "ls"} if args is None else args, body)


REFUSALS = {
    "deny at the start": ([("p", says("on_tool_call_start", Deny("no")))], {}, "p"),
    "deny": ([("p", says("pre_tool_execution", Deny("no")))], {}, "p"),
    "guard": ([("p", says("pre_tool_execution", Deny("no"), guard=True))], {}, "p"),
    "guard at the start": ([("p", says("on_tool_call_start", Deny("no"), guard=True))], {}, "p"),
    "block": ([("p", says("pre_tool_execution", Block("no")))], {}, "p"),
    "deny rule": ([], {"permissions": {"deny": ["bash"]}}, "rule bash"),
    "ask and nobody there": ([("p", says("pre_tool_execution", Ask("no")))], {}, "p"),
    "ask at the start": ([("p", says("on_tool_call_start", Ask("no")))], {}, "p"),
    "ask rule": ([], {"permissions": {"ask": ["bash"]}}, "rule bash"),
    "approver": (
        [("p", says("pre_tool_execution", Ask("no")))],
        {"approver": lambda request: False},
        "the approver",
    ),
    "permission hook": (
        [("a", says("pre_tool_execution", Ask("no"))), ("p", says("on_permission_request", Deny("no")))],
        {},
        "p",
    ),
    "failing guard": ([("p", says("pre_tool_execution", lambda event: 1 / 0, guard=True))], {}, "p"),
    "failing hook": ([("p", says("pre_tool_execution", lambda event: 1 / 0, on_failure="deny"))], {}, "p"),
    "bad answer of a guard": ([("p", says("pre_tool_execution", Allow(), guard=True))], {}, "p"),
    "failing audit": (
        [
            (
                "p",
                says(
                    "on_outcome",
                    lambda event: 1 / (event.of != "pre_tool_execution") and None,
                    on_failure="deny",
                ),
            )
        ],
        {},
        "p",
    ),
    "deny after allow": (
        [("a", says("pre_tool_execution", Allow())), ("p", says("pre_tool_execution", Deny("no")))],
        {},
        "p",
    ),
    "deny by a coroutine": ([("p", "coroutine")], {}, "p"),
}


@pytest.mark.parametrize(("plugins", "options", "by"), REFUSALS.values(), ids=REFUSALS)
@pytest.mark.parametrize("way", ["whole", "halves", "async whole", "async halves"])
async def test_a_refused_body_is_never_entered(seen, plugins, options, by, way):
    class Coroutine:
        @hookimpl
        async def pre_tool_execution(self):
            await asyncio.sleep(0)
            return Deny("no")

    plugins = [(name, Coroutine() if item == "coroutine" else item) for name, item in plugins]
    body = Body()
    args = {"command": "ls"}
    with Engine([seen, *plugins], **options) as engine:
        if way == "whole":
            with engine.session() as session, session.turn() as turn:
                result = turn.call_tool("bash", args, body)
        elif way == "halves":
            with engine.session() as session, session.turn() as turn:
                call = turn.begin_tool("c1", "bash", args)
                assert not call.go
                assert call.message == call.result.value
                result = turn.end_tool("c1", result="the host ran it all the same")
        elif way == "async whole":
            async with engine.session() as session, session.turn() as turn:
                result = await turn.call_tool("bash", args, body)
        else:
            async with engine.session() as session, session.turn() as turn:
                call = await turn.begin_tool("c1", "bash", args)
                assert not call.go
                result = await turn.end_tool("c1", result="the host ran it all the same")
    assert body.entered == []
    assert (result.status, result.denied_by) == ("denied", by)
    assert by in result.value and isinstance(result.value, str)
    [post] = seen.posts
    assert (post.status, post.by, post.duration) == ("denied", by, 0.0)
    assert post.reason
    assert post.result == result.value


STATUSES = {
    "ok": (Body("done"), "ok", "done", ""),
    "none": (Body(None), "ok", None, ""),
    "error": (Body(ValueError("broken")), "error", None, "ValueError: broken"),
    "timeout": (Body(TimeoutError("late")), "timeout", None, "TimeoutError: late"),
    "asyncio timeout": (Body(asyncio.TimeoutError()), "timeout", None, "TimeoutError"),
    "stop iteration": (Body(StopIteration("x")), "error", None, "StopIteration: x"),
    "generator exit": (Body(StopAsyncIteration()), "error", None, "StopAsyncIteration"),
    "unprintable": (Body(type("Odd", (Exception,), {"__str__": lambda self: 1 / 0})()), "error", None, "Odd"),
}


@pytest.mark.parametrize(("body", "status", "value", "error"), STATUSES.values(), ids=STATUSES)
@pytest.mark.parametrize("way", ["sync", "async", "async body", "async body in sync"])
async def test_how_a_body_ends(seen, body, status, value, error, way):
    body.entered.clear()

    async def coroutine(**args):
        await asyncio.sleep(0)
        return body(**args)

    if "body" in way and isinstance(body.result, (StopIteration, StopAsyncIteration)):
        return  # a coroutine cannot raise it
    execute = coroutine if "body" in way else body
    with Engine([seen]) as engine:
        if way in ("sync", "async body in sync"):
            with engine.session() as session, session.turn() as turn:
                result = turn.call_tool("bash", {"command": "ls"}, execute)
        else:
            async with engine.session() as session, session.turn() as turn:
                result = await turn.call_tool("bash", {"command": "ls"}, execute)
    assert body.entered == [{"command": "ls"}]
    assert (result.status, result.value) == (status, value)
    assert error in result.error
    [post] = seen.posts
    assert (post.status, post.result, post.error) == (status, value, result.error)
    assert post.duration >= 0 and result.duration == post.duration
    if status == "ok":
        assert seen.of("on_error") == []
        assert result.exception is None
    else:
        assert result.exception is body.result
        [told] = seen.of("on_error")
        assert (told.phase, told.tool, told.call_id) == ("tool", "bash", post.call_id)
        assert told.exception is body.result


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, asyncio.CancelledError])
def test_an_interrupted_body_is_cancelled_and_passes(seen, error):
    body = Body(error())
    with pytest.raises(error):
        run([seen], body)
    [post] = seen.posts
    assert post.status == "cancelled"
    assert error.__name__ in post.error


async def test_cancelling_a_task_in_the_middle_of_a_tool(seen):
    started = asyncio.Event()
    cleaned = []

    async def body(command):
        started.set()
        try:
            await asyncio.sleep(60)
        finally:
            cleaned.append(1)

    class Slow:
        @hookimpl
        async def post_tool_execution(self, event):
            await asyncio.sleep(0.01)
            cleaned.append(event.status)

    engine = Engine([seen, Slow()])

    async def host():
        async with engine.session() as session, session.turn() as turn:
            await turn.call_tool("bash", {"command": "ls"}, body)

    task = asyncio.create_task(host())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [post.status for post in seen.posts] == ["cancelled"]
    assert cleaned == [1, "cancelled"]


async def test_cancelling_a_task_while_hooks_think(seen):
    started = asyncio.Event()
    body = Body()

    class Slow:
        @hookimpl
        async def pre_tool_execution(self, event):
            started.set()
            await asyncio.sleep(60)

    engine = Engine([seen, Slow()])

    async def host():
        async with engine.session() as session, session.turn() as turn:
            await turn.call_tool("bash", {"command": "ls"}, body)

    task = asyncio.create_task(host())
    await started.wait()
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert [post.status for post in seen.posts] == ["cancelled"]
    assert body.entered == []


# -- rewrites --------------------------------------------------------------------------------------


def test_a_rewrite_reaches_later_hooks_rules_approver_body_and_post_hook(seen):
    asked, later = [], []
    body = Body()
    plugins = [
        seen,
        ("first", says("pre_tool_execution", Rewrite(command="one"))),
        ("second", says("pre_tool_execution", lambda event: Rewrite(command=event.command + " two"))),
        ("asks", says("pre_tool_execution", lambda event: Ask(event.command))),
        ("guard", says("pre_tool_execution", lambda event: later.append(event.command), guard=True)),
        ("perm", says("on_permission_request", lambda event: later.append(event.command))),
    ]
    engine = Engine(plugins, approver=lambda request: asked.append(request.command) or True)
    with engine.session() as session, session.turn() as turn:
        call = turn.begin_tool("c1", "bash", {"command": "zero", "timeout": 5})
        assert call.go
        assert call.args == {"command": "one two", "timeout": 5}
        assert call.rewritten_by == ["first", "second"]
        changes = call.outcomes[-2].rewrites
        assert [(item.by, item.before["command"], item.after["command"]) for item in changes] == [
            ("first", "zero", "one"),
            ("second", "one", "one two"),
        ]
        turn.end_tool("c1", result="x")
        result = turn.call_tool("bash", {"command": "zero"}, body)
    assert later == ["one two"] * 4
    assert asked == ["one two"] * 2
    assert body.entered == [{"command": "one two"}]
    assert result.args == {"command": "one two"}
    assert [post.args["command"] for post in seen.posts] == ["one two"] * 2
    assert [event.args["command"] for event in seen.of("on_tool_call_start")] == ["zero"] * 2


def test_the_body_gets_its_own_arguments(seen):
    def body(items):
        items.append(1)
        items[0]["x"] = 2
        return "ok"

    given = {"items": [{"x": 1}]}
    result = run([seen], body, args=given)
    assert given == {"items": [{"x": 1}]}
    assert seen.posts[0].args == {"items": [{"x": 1}]}
    assert result.args == {"items": [{"x": 1}]}


def test_a_rewritten_result_reaches_the_host_and_later_hooks(seen):
    later = []
    plugins = [
        says("post_tool_execution", lambda event: Rewrite(result_text=event.result_text.upper())),
        says("post_tool_execution", lambda event: later.append(event.result)),
    ]
    result = run(plugins, Body({"stdout": "out", "stderr": ""}))
    assert result.value == {"stdout": "OUT", "stderr": ""}
    assert later == [{"stdout": "OUT", "stderr": ""}]


def test_a_withheld_result():
    result = run(
        [("p", says("post_tool_execution", Deny("has secrets", advice="mask them")))], Body("secret")
    )
    assert (result.status, result.denied_by) == ("ok", "p")
    assert "secret" not in result.value.replace("has secrets", "")
    assert "has secrets" in result.value and "mask them" in result.value


def test_injected_texts_stand_beside_the_result():
    result = run([says("post_tool_execution", [Inject("look"), Inject("again"), Warn("w")])], Body())
    assert (result.value, result.injected, result.warnings) == ("done", ["look", "again"], ["w"])


# -- replies ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", ["cached", None, {"stdout": "x"}, 0, []])
def test_a_reply_instead_of_the_tool(seen, value):
    body = Body()
    result = run([seen, ("cache", says("pre_tool_execution", Reply(value)))], body)
    assert body.entered == []
    assert (result.status, result.value, result.denied_by) == ("replied", value, "")
    [post] = seen.posts
    assert (post.status, post.result, post.by) == ("replied", value, "cache")


def test_a_reply_is_no_way_around_a_guard():
    plugins = [
        says("pre_tool_execution", Reply("x")),
        ("guard", says("pre_tool_execution", Deny("no"), guard=True)),
    ]
    result = run(plugins, Body())
    assert (result.status, result.denied_by) == ("denied", "guard")


# -- recovering ------------------------------------------------------------------------------------


@pytest.mark.parametrize("timing", ["on_error", "post_tool_execution"])
def test_recover_for_hosts_that_can(timing):
    plugins = [says(timing, Recover("retry", attempts=3)), says(timing, Recover("abort"))]
    result = run(plugins, Body(ValueError("x")), recovers=["retry"])
    assert result.recover == Recover("retry", attempts=3)


def test_recover_for_hosts_that_cannot_is_a_reminder():
    engine = Engine([says("on_error", Recover("fallback_model", model="small"))])
    with engine.session() as session, session.turn() as turn:
        result = turn.call_tool("x", {}, Body(ValueError("x")))
        assert result.recover is None
        [text] = turn.system_prompt([])
        assert "fallback model" in text and "small" in text
        assert turn.system_prompt([]) == []


def test_recover_from_what_the_host_reports():
    engine = Engine([says("on_error", Recover("compact"))], recovers=["compact"])
    with engine.session() as session, session.turn() as turn:
        assert turn.fail("ContextOverflow", "too long") == Recover("compact")
        assert turn.fail(ValueError("x")) == Recover("compact")
        assert session.fail("Lost") == Recover("compact")


# -- exactly one post ------------------------------------------------------------------------------


@pytest.mark.parametrize("status", ["ok", "error", "timeout", "cancelled", "unknown", "denied", "replied"])
def test_a_second_end_gives_the_first_one_again(seen, status):
    with Engine([seen]).session() as session, session.turn() as turn:
        turn.begin_tool("c1", "x", {})
        first = turn.end_tool("c1", status=status, result="a")
        assert turn.end_tool("c1", result="b") is first
        assert turn.begin_tool("c1", "x", {}).result is first
    [post] = seen.posts
    assert post.status == status


def test_begin_is_idempotent_by_call_id(seen):
    with (
        Engine([seen, says("pre_tool_execution", Rewrite({"a": 2}))]).session() as session,
        session.turn() as turn,
    ):
        call = turn.begin_tool("c1", "x", {"a": 1})
        again = turn.begin_tool("c1", "x", {"a": 1})
        assert again is call
        assert again.args == {"a": 2}
        other = turn.begin_tool("c2", "x", {"a": 1})
        assert other is not call
    assert len(seen.of("pre_tool_execution")) == 2
    assert [post.status for post in seen.posts] == ["unknown", "unknown"]


def test_a_call_that_the_agent_never_ended_is_unknown(seen):
    with Engine([seen]).session() as session:
        with session.turn() as turn:
            turn.begin_tool("c1", "x", {})
            turn.begin_tool("c2", "x", {})
            turn.end_tool("c2")
            turn.complete("")
        with pytest.raises(LifecycleError):
            turn.end_tool("c1")
    assert [(post.call_id, post.status) for post in seen.posts] == [("c2", "ok"), ("c1", "unknown")]


def test_a_call_id_may_come_again_in_another_turn(seen):
    with Engine([seen]).session() as session:
        for _ in range(2):
            with session.turn() as turn:
                assert turn.call_tool("x", {}, Body(), call_id="c1").status == "ok"
    assert [post.turn for post in seen.posts] == [1, 2]


def test_a_call_that_was_begun_elsewhere_can_be_ended(seen):
    with Engine([seen]).session() as session, session.turn() as turn:
        turn.end_tool("c9", result="x", tool="bash", args={"command": "ls"}, duration=1.5)
    [post] = seen.posts
    assert (post.tool, post.command, post.duration) == ("bash", "ls", 1.5)
    assert seen.of("pre_tool_execution") == []


DEEP = []
for _ in range(2000):
    DEEP = [DEEP]
CYCLE = []
CYCLE.append(CYCLE)


class Unprintable:
    def __str__(self):
        raise RuntimeError("no")

    __repr__ = __str__


@pytest.mark.parametrize(
    "value",
    [
        DEEP,
        CYCLE,
        {"a": DEEP},
        (DEEP,),
        Unprintable(),
        {"a": Unprintable()},
        b"\xff",
        {1: 2},
        object(),
        10**5000,
        "\ud800\0",
    ],
    ids=lambda value: type(value).__name__,
)
@pytest.mark.parametrize("way", ["whole", "halves"])
def test_any_result_has_its_post(seen, value, way):
    texts = []
    reader = says("post_tool_execution", lambda event: texts.append(event.result_text))
    audit = says("on_outcome", lambda event: texts.append(str(event.outcome.to_json())[:10]))
    with Engine([seen, reader, audit]).session() as session, session.turn() as turn:
        if way == "whole":
            assert turn.call_tool("x", {}, lambda: value).status == "ok"
        else:
            turn.begin_tool("c1", "x", {})
            assert turn.end_tool("c1", result=value).status == "ok"
    assert len(seen.posts) == 1
    assert len(texts) > 3


@pytest.mark.parametrize(
    "args",
    [
        {"file_path": "~\0x"},
        {"file_path": "~\ud800/x"},
        {"file_path": "\0"},
        {"file_path": "~" * 5000},
        {"paths": ["a\0"]},
    ],
)
def test_any_path_has_its_post(seen, args):
    with Engine([seen]).session(cwd="/project") as session, session.turn() as turn:
        assert turn.call_tool("Write", args, lambda **given: "ok").status == "ok"
    assert len(seen.posts) == 1


class Fails:
    """Fails in every timing."""

    def __init__(self, error):
        for name in (*TOOL_TIMINGS, "on_turn_complete", "post_turn", "on_outcome"):
            setattr(self, name, self._hook(name, error))

    def _hook(self, name, error):
        @hookimpl
        def hook(event):
            raise error

        hook.__name__ = name
        return hook


@pytest.mark.parametrize("error", [ValueError("x"), SystemExit(1), RecursionError("x")])
def test_failing_hooks_everywhere_change_nothing(seen, error):
    body = Body()
    result = run([seen, Fails(error)], body)
    assert (result.status, body.entered) == ("ok", [{"command": "ls"}])
    assert len(seen.posts) == 1


def test_an_error_is_told_once(seen):
    error = ValueError("x")
    engine = Engine([seen])
    with pytest.raises(ValueError), engine.session() as session, session.turn() as turn:
        try:
            raise error
        except ValueError:
            turn.fail(error)
            raise
    assert len(seen.of("on_error")) == 1


# -- recursion -------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "timing", ["on_tool_call_start", "pre_tool_execution", "post_tool_execution", "on_error"]
)
def test_a_hook_that_calls_a_tool_through_the_session_for_ever(seen, timing):
    """It ends as a failure, and every call that was begun has exactly one post."""
    turns, bodies = [], []

    def again(event):
        body = (lambda: 1 / 0) if timing == "on_error" else (lambda: bodies.append(1))
        turns[0].call_tool("x", {}, body)

    engine = Engine([seen, says(timing, again)])
    with engine.session() as session, session.turn() as turn:
        turns.append(turn)
        result = turn.call_tool("x", {}, (lambda: 1 / 0) if timing == "on_error" else (lambda: "done"))
        assert result.status == ("error" if timing == "on_error" else "ok")
        assert turn.call_tool("y", {}, lambda: "after").value == "after"
    begun = [event.call_id for event in seen.of("on_tool_call_start")]
    posts = [event.call_id for event in seen.posts]
    assert sorted(posts) == sorted(set(posts))
    assert set(begun) <= set(posts)
    assert 2 <= len(posts) <= 20


async def test_in_coroutines_too(seen):
    turns = []

    class Again:
        @hookimpl
        async def pre_tool_execution(self, event):
            await turns[0].call_tool("x", {}, lambda: 1)

    engine = Engine([seen, Again()])
    async with engine.session() as session, session.turn() as turn:
        turns.append(turn)
        assert (await turn.call_tool("x", {}, lambda: "done")).value == "done"
    posts = [event.call_id for event in seen.posts]
    assert len(posts) == len(set(posts)) == len(seen.of("on_tool_call_start"))


# -- the rest --------------------------------------------------------------------------------------


def test_tables_of_the_session_go_before_the_engines(seen):
    engine = Engine([seen], tools={"save": Tool("read")})
    with engine.session(tools={"save": Tool("write", paths=["to"])}) as session, session.turn() as turn:
        turn.call_tool("save", {"to": "/x"}, lambda to: 1)
    assert {event.kind for event in seen.events} == {"write"}


def test_the_hosts_own_word_on_mcp(seen):
    with Engine([seen]).session() as session, session.turn() as turn:
        turn.call_tool("push", {}, lambda: 1, mcp=("git", "push"))
        turn.call_tool("push", {}, lambda: 1)
    assert [event.mcp for event in seen.posts] == [("git", "push"), None]
    assert [event.mcp for event in seen.of("pre_tool_execution")] == [("git", "push"), None]


def test_edited_files_are_what_write_tools_changed():
    ends = []
    engine = Engine([says("on_turn_complete", lambda event: ends.append(event.edited_files))])
    with engine.session(cwd="/project") as session, session.turn() as turn:
        turn.call_tool("Edit", {"file_path": "a"}, lambda **args: 1)
        turn.call_tool("Edit", {"file_path": "a"}, lambda **args: 1)
        turn.call_tool("Edit", {"file_path": "failed"}, Body(ValueError()))
        turn.call_tool("Read", {"file_path": "read"}, lambda **args: 1)
        turn.call_tool("apply_patch", {"input": "*** Add File: b\n"}, lambda **args: 1)
    assert ends == [["/project/a", "/project/b"]]


def test_the_host_decides_where_it_can_prompt(seen):
    engine = Engine([seen, says("pre_tool_execution", Ask("sure?"))])
    with engine.session(can_prompt=True) as session, session.turn() as turn:
        call = turn.begin_tool("c1", "bash", {"command": "ls"})
        assert (call.decision, call.go, call.reason, call.result) == ("ask", False, "sure?", None)
        assert seen.posts == []
        turn.end_tool("c1", result="the user said yes")
        call = turn.begin_tool("c2", "bash", {"command": "ls"})
        turn.end_tool("c2", status="denied", result="the user said no")
        with pytest.raises(LifecycleError, match="approver"):
            turn.call_tool("bash", {"command": "ls"}, lambda command: 1)
    assert [post.status for post in seen.posts] == ["ok", "denied", "unknown"]


def test_durations_are_seconds(seen):
    run([seen], lambda command: time.sleep(0.02))
    assert 0.02 <= seen.posts[0].duration < 10
