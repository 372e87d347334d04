"""The order of a session's timings, wrong orders, turn numbers, exactly one end."""

from __future__ import annotations

import pytest

from hookturn import (
    Block,
    Continue,
    Deny,
    Engine,
    EventError,
    Inject,
    LifecycleError,
    Reply,
    Rewrite,
    SetEnv,
    Warn,
    hookimpl,
)
from hookturn.spec.timings import TIMINGS


class Recorder:
    """Notes every event of every timing but on_outcome."""

    def __init__(self):
        self.events = []
        for name in TIMINGS:
            if name != "on_outcome":
                setattr(self, name, self._hook(name))

    def _hook(self, name):
        @hookimpl(tryfirst=True)
        def hook(event):
            self.events.append(event)

        hook.__name__ = name
        return hook

    @property
    def timings(self):
        return [event.timing for event in self.events]

    def of(self, timing):
        return [event for event in self.events if event.timing == timing]


def says(timing, answer, **options):
    @hookimpl(**options)
    def hook(event):
        return answer(event) if callable(answer) else answer

    hook.__name__ = timing
    return type("Says", (), {timing: staticmethod(hook)})()


@pytest.fixture
def seen():
    return Recorder()


WHOLE_TURN = [
    "on_session_start",
    "on_message_received",
    "on_user_prompt_submit",
    "on_turn_start",
    "system_prompt",
    "on_model_response",
    "on_tool_call_start",
    "pre_tool_execution",
    "post_tool_execution",
    "system_prompt",
    "on_model_response",
    "on_turn_complete",
    "post_turn",
    "on_session_end",
]


def test_a_whole_turn(seen):
    with Engine([seen]) as engine, engine.session(agent="coder", cwd="/project") as session:
        prompt = session.submit("fix the bug")
        assert (prompt.text, prompt.goes_on, prompt.injected) == ("fix the bug", True, [])
        with session.turn() as turn:
            assert turn.system_prompt(["You are a coder."]) == ["You are a coder."]
            turn.model_response("", usage={"input_tokens": 10, "output_tokens": 5}, tool_calls=[{"id": "c1"}])
            result = turn.call_tool("bash", {"command": "ls"}, lambda command: f"ran {command}", call_id="c1")
            assert (result.status, result.value) == ("ok", "ran ls")
            turn.system_prompt(["You are a coder."])
            turn.model_response("done", usage={"input_tokens": 20, "output_tokens": 1})
            end = turn.complete("done")
            assert (end.text, end.again) == ("done", None)
    assert seen.timings == WHOLE_TURN
    assert {event.session_id for event in seen.events} == {session.id}
    assert {event.agent for event in seen.events} == {"coder"}
    assert {event.cwd for event in seen.events} == {"/project"}
    complete = seen.of("on_turn_complete")[0]
    assert complete.usage == {"input_tokens": 30, "output_tokens": 6}
    assert [dict(row, duration=0) for row in complete.tool_calls] == [
        {"call_id": "c1", "tool": "bash", "kind": "bash", "status": "ok", "duration": 0}
    ]
    assert complete.duration >= 0
    assert (complete.text, complete.continued) == ("done", 0)


def test_turn_numbers_count_turns(seen):
    with Engine([seen]).session() as session:
        assert session.turns == 0
        for number in (1, 2, 3):
            session.submit("x")
            with session.turn() as turn:
                assert turn.number == number
                turn.call_tool("x", {}, lambda: 1)
                turn.complete("")
            assert session.turns == number
    for timing in ("on_turn_start", "pre_tool_execution", "on_turn_complete", "post_turn"):
        assert [event.turn for event in seen.of(timing)] == [1, 2, 3]
    assert [event.turn for event in seen.of("on_user_prompt_submit")] == [0, 1, 2]
    assert seen.of("on_session_start")[0].turn == 0


def test_session_ids_are_filled_and_differ():
    engine = Engine()
    ids = {engine.session().id for _ in range(100)}
    assert len(ids) == 100 and all(ids)
    assert engine.session(session_id="").id
    assert engine.session(session_id="mine").id == "mine"


# -- wrong orders ----------------------------------------------------------------------------------


def started(engine=None):
    session = (engine or Engine()).session()
    session.start()
    return session


def completed():
    session = started()
    turn = session.turn().begin()
    turn.complete("")
    return session, turn


WRONG = {
    "submit before the start": (lambda: Engine().session().submit("x"), "has not started"),
    "turn before the start": (lambda: Engine().session().turn().begin(), "has not started"),
    "start twice": (lambda: started().start(), "has started already"),
    "enter twice": (lambda: started().__enter__(), "has started already"),
    "submit after the end": (lambda: _after_end(lambda session: session.submit("x")), "has ended"),
    "turn after the end": (lambda: _after_end(lambda session: session.turn().begin()), "has ended"),
    "turn in a turn": (lambda: _in_turn(lambda session, turn: session.turn().begin()), "open turn"),
    "tool before the turn": (lambda: started().turn().call_tool("x", {}, lambda: 1), "not begun"),
    "begin_tool before the turn": (lambda: started().turn().begin_tool("c", "x", {}), "not begun"),
    "system_prompt before the turn": (lambda: started().turn().system_prompt([]), "not begun"),
    "model_response before the turn": (lambda: started().turn().model_response("x"), "not begun"),
    "complete before the turn": (lambda: started().turn().complete("x"), "not begun"),
    "subagent before the turn": (lambda: started().turn().subagent("x").begin(), "not begun"),
    "tool after the turn": (lambda: completed()[1].call_tool("x", {}, lambda: 1), "over"),
    "begin_tool after the turn": (lambda: completed()[1].begin_tool("c", "x", {}), "over"),
    "system_prompt after the turn": (lambda: completed()[1].system_prompt([]), "over"),
    "model_response after the turn": (lambda: completed()[1].model_response("x"), "over"),
    "complete twice": (lambda: completed()[1].complete("x"), "over"),
    "subagent after the turn": (lambda: completed()[1].subagent("x").begin(), "over"),
    "old turn in a new one": (lambda: _old_turn(lambda old: old.call_tool("x", {}, lambda: 1)), "over"),
    "old turn completes a new one": (lambda: _old_turn(lambda old: old.complete("")), "over"),
    "turn that was not begun in another": (
        lambda: _in_turn(lambda session, turn: session.turn().call_tool("x", {}, lambda: 1)),
        "not begun",
    ),
    "end of a call that was not begun": (
        lambda: _in_turn(lambda session, turn: turn.end_tool("never")),
        "'never' was begun",
    ),
    "turn although the prompt was blocked": (lambda: _blocked_prompt(), "stopped by"),
    "turn although a hook replied": (lambda: _blocked_prompt(Reply("me")), "stopped by"),
    "turn although the session was blocked": (lambda: _blocked_session(), "stopped by"),
}


def _after_end(function):
    session = started()
    session.end()
    function(session)


def _in_turn(function):
    session = started()
    with session.turn() as turn:
        function(session, turn)


def _old_turn(function):
    session, old = completed()
    with session.turn():
        function(old)


def _blocked_prompt(answer=None):
    engine = Engine([says("on_message_received", answer or Block("no"))])
    with engine.session() as session:
        assert not session.submit("x").goes_on
        session.turn().begin()


def _blocked_session():
    engine = Engine([says("on_session_start", Block("no"))])
    with engine.session() as session:
        session.turn().begin()


@pytest.mark.parametrize(("wrong", "words"), WRONG.values(), ids=WRONG)
def test_wrong_orders_raise_with_a_remedy(wrong, words):
    with pytest.raises(LifecycleError, match=words) as caught:
        wrong()
    text = str(caught.value)
    assert any(mark in text for mark in (";", ":", "`")), f"no remedy in {text!r}"


def test_a_wrong_order_fires_nothing(seen):
    session = Engine([seen]).session()
    with pytest.raises(LifecycleError):
        session.submit("x")
    with pytest.raises(LifecycleError):
        session.turn().begin()
    session.end()
    assert seen.events == []


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (lambda session, turn: session.submit(5), "a prompt is a str, got int"),
        (lambda session, turn: turn.system_prompt("text"), "a list of str"),
        (lambda session, turn: turn.system_prompt([5]), "a list of str"),
        (lambda session, turn: turn.begin_tool("c", "", {}), "the tool's name"),
        (lambda session, turn: turn.begin_tool("c", None, {}), "the tool's name"),
        (lambda session, turn: turn.begin_tool("c", "x", [1]), "a dict, got list"),
        (lambda session, turn: turn.begin_tool("c", "x", None), "a dict, got NoneType"),
        (lambda session, turn: turn.call_tool("x", "ls", lambda: 1), "a dict, got str"),
        (lambda session, turn: session.event(""), "needs a type"),
        (
            lambda session, turn: turn.begin_tool("c", "x", {}) and turn.end_tool("c", status="great"),
            "'great'",
        ),
    ],
)
def test_wrong_values_are_named_and_harm_nothing(seen, wrong, words):
    with Engine([seen]).session() as session, session.turn() as turn:
        with pytest.raises(EventError, match=words):
            wrong(session, turn)
        assert turn.call_tool("x", {}, lambda: 1).status == "ok"
    assert seen.timings[-1] == "on_session_end"
    posts = [event.call_id for event in seen.of("post_tool_execution")]
    assert len(posts) == len(set(posts))


# -- ends ------------------------------------------------------------------------------------------


def test_leaving_a_turn_completes_it(seen):
    with Engine([seen]).session() as session, session.turn():
        pass
    assert seen.timings == [
        "on_session_start", "on_turn_start", "on_turn_complete", "post_turn", "on_session_end",
    ]  # fmt: skip
    assert seen.events[-1].reason == "complete"


def test_an_exception_in_a_turn_is_told_once_and_both_end(seen):
    error = ValueError("host bug")
    with pytest.raises(ValueError, match="host bug"), Engine([seen]).session() as session, session.turn():
        raise error
    assert seen.timings[2:] == ["on_error", "on_turn_complete", "post_turn", "on_session_end"]
    told = seen.of("on_error")[0]
    assert (told.error_type, told.message, told.phase, told.exception) == (
        "ValueError",
        "host bug",
        "turn",
        error,
    )
    assert seen.events[-1].reason == "error"


def test_an_exception_outside_of_a_turn_too(seen):
    with pytest.raises(ValueError), Engine([seen]).session():
        raise ValueError("x")
    assert seen.timings == ["on_session_start", "on_error", "on_session_end"]
    assert seen.of("on_error")[0].phase == "session"


@pytest.mark.parametrize("error", [KeyboardInterrupt, SystemExit, GeneratorExit])
def test_an_interrupt_ends_everything(seen, error):
    with pytest.raises(error), Engine([seen]).session() as session, session.turn() as turn:
        turn.begin_tool("c1", "x", {})
        raise error
    assert seen.timings[2:] == [
        "on_tool_call_start", "pre_tool_execution", "post_tool_execution", "on_turn_complete", "post_turn",
        "on_session_end",
    ]  # fmt: skip
    assert seen.of("post_tool_execution")[0].status == "unknown"
    assert seen.events[-1].reason == "interrupted"


def test_a_session_ends_once_however_often_it_is_told(seen):
    session = Engine([seen]).session()
    with session:
        session.end("logout")
        session.end()
    session.end()
    assert [event.reason for event in seen.of("on_session_end")] == ["logout"]


def test_a_session_that_never_started_never_ends(seen):
    Engine([seen]).session().end()
    assert seen.events == []


def test_an_open_turn_is_completed_by_the_end(seen):
    session = started(Engine([seen]))
    session.turn().begin()
    session.end()
    assert seen.timings == [
        "on_session_start", "on_turn_start", "on_turn_complete", "post_turn", "on_session_end",
    ]  # fmt: skip


# -- denied and blocked ----------------------------------------------------------------------------


def test_a_blocked_prompt_fires_no_more(seen):
    engine = Engine([seen, says("on_message_received", Block("not here"))])
    with engine.session() as session:
        prompt = session.submit("x")
        assert (prompt.goes_on, prompt.blocked_by) == (False, "Says")
        assert "not here" in prompt.message
    assert seen.timings == ["on_session_start", "on_message_received", "on_session_end"]


def test_a_prompt_blocked_at_the_second_timing(seen):
    with Engine([seen, says("on_user_prompt_submit", Block("no"))]).session() as session:
        assert session.submit("x").blocked_by == "Says"
    assert seen.timings == [
        "on_session_start", "on_message_received", "on_user_prompt_submit", "on_session_end",
    ]  # fmt: skip


def test_a_reply_instead_of_the_model(seen):
    with Engine([seen, says("on_message_received", Reply("I know that"))]).session() as session:
        prompt = session.submit("x")
        assert (prompt.replied, prompt.reply, prompt.goes_on, prompt.blocked_by) == (
            True,
            "I know that",
            False,
            "",
        )
    assert "on_user_prompt_submit" not in seen.timings


def test_the_next_prompt_may_go_on():
    answers = iter([Block("no"), None])
    with Engine([says("on_message_received", lambda event: next(answers))]).session() as session:
        assert not session.submit("x").goes_on
        assert session.submit("y").goes_on
        with session.turn():
            pass


def test_a_replay_may_override_a_block(seen):
    with Engine([seen, says("on_message_received", Block("no"))]).session() as session:
        session.submit("x")
        with session.turn(override=True):
            pass
    assert "on_turn_complete" in seen.timings


def test_a_session_that_was_blocked_takes_no_prompt(seen):
    with Engine([seen, says("on_session_start", Block("no keys"))]).session() as session:
        assert session.blocked_by == "Says"
        prompt = session.submit("x")
        assert (prompt.goes_on, prompt.blocked_by) == (False, "Says")
        assert "no keys" in prompt.message
    assert seen.timings == ["on_session_start", "on_session_end"]


def test_rewrites_of_the_message_reach_the_prompt(seen):
    with Engine([seen, says("on_message_received", Rewrite("other"))]).session() as session:
        assert session.submit("x").text == "other"
    assert seen.of("on_user_prompt_submit")[0].prompt == "other"


def test_a_block_at_the_model_ends_the_turn_for_tools(seen):
    engine = Engine([seen, says("on_model_response", Block("bad words"))])
    with engine.session() as session, session.turn() as turn:
        answer = turn.model_response("x")
        assert (answer.goes_on, answer.blocked_by) == (False, "Says")
        ran = []
        result = turn.call_tool("bash", {"command": "ls"}, lambda command: ran.append(1))
        assert (result.status, result.denied_by, ran) == ("denied", "Says", [])
        assert "bad words" in result.value
        assert turn.blocked_by == "Says"
    assert seen.timings[-3:] == ["on_turn_complete", "post_turn", "on_session_end"]
    assert "pre_tool_execution" not in seen.timings, "nobody needs to be asked any more"


def test_a_block_at_a_tool_ends_the_turn_and_the_next_one_is_free(seen):
    blocks = iter([Block("stop")])
    with Engine([seen, says("pre_tool_execution", lambda event: next(blocks, None))]).session() as session:
        with session.turn() as turn:
            assert turn.call_tool("x", {}, lambda: 1).status == "denied"
            assert turn.call_tool("x", {}, lambda: 1).status == "denied"
            turn.complete("")
        with session.turn() as turn:
            assert turn.call_tool("x", {}, lambda: 1).status == "ok"


def test_a_deny_at_a_tool_does_not(seen):
    denies = iter([Deny("no")])
    with (
        Engine([says("pre_tool_execution", lambda event: next(denies, None))]).session() as session,
        session.turn() as turn,
    ):
        assert turn.call_tool("x", {}, lambda: 1).status == "denied"
        assert turn.call_tool("x", {}, lambda: 1).status == "ok"


def test_a_block_at_the_end_withholds_the_text():
    with (
        Engine([says("on_turn_complete", Block("secret inside"))]).session() as session,
        session.turn() as turn,
    ):
        end = turn.complete("the secret")
    assert end.blocked_by == "Says"
    assert "the secret" not in end.text and "secret inside" in end.text


def test_a_rewrite_at_the_end():
    with Engine([says("on_turn_complete", Rewrite("better"))]).session() as session, session.turn() as turn:
        assert turn.complete("good").text == "better"


# -- going on --------------------------------------------------------------------------------------


def test_continue_keeps_the_turn_open(seen):
    answers = iter([[Continue("run the tests")], [Continue("again"), Continue("and again")], None])
    engine = Engine([seen, says("on_turn_complete", lambda event: next(answers))])
    with engine.session() as session, session.turn() as turn:
        assert turn.complete("a").again == "run the tests"
        turn.system_prompt(["p"])
        turn.model_response("b")
        assert turn.complete("b").again == "again\nand again"
        end = turn.complete("c")
        assert (end.again, end.text) == (None, "c")
    assert [event.continued for event in seen.of("on_turn_complete")] == [0, 1, 2]
    assert [event.turn for event in seen.of("on_turn_complete")] == [1, 1, 1]
    assert len(seen.of("post_turn")) == 1


@pytest.mark.parametrize("limit", [0, 1, 8])
def test_continue_has_a_limit(seen, limit):
    engine = Engine([seen, says("on_turn_complete", Continue("more"))], max_continue=limit)
    with engine.session() as session, session.turn() as turn:
        for _ in range(limit):
            assert turn.complete("x").again == "more"
        end = turn.complete("x")
        assert end.again is None
        assert any(f"{limit} times" in text for text in end.warnings)
        assert turn.ended
    assert len(seen.of("post_turn")) == 1
    # The next turn may go on again.
    with engine.session() as session, session.turn() as turn:
        assert (turn.complete("x").again is None) is (limit == 0)


def test_leaving_ends_a_turn_that_should_go_on(seen):
    with (
        Engine([seen, says("on_turn_complete", Continue("more"))]).session() as session,
        session.turn() as turn,
    ):
        assert turn.complete("x").again == "more"
    assert len(seen.of("on_turn_complete")) == 2
    assert len(seen.of("post_turn")) == 1


def test_a_blocked_turn_does_not_go_on():
    plugins = [says("on_model_response", Block("no")), says("on_turn_complete", Continue("more"))]
    with Engine(plugins).session() as session, session.turn() as turn:
        turn.model_response("x")
        assert turn.complete("x").again is None


def test_a_final_end_does_not_go_on():
    with Engine([says("on_turn_complete", Continue("more"))]).session() as session, session.turn() as turn:
        assert turn.complete("x", final=True).again is None


# -- what hooks give along -------------------------------------------------------------------------


def test_environment_variables_and_warnings_reach_the_host():
    plugins = [
        says("on_session_start", [SetEnv({"A": "1", "B": "1"}), Warn("careful")]),
        says("on_session_start", SetEnv({"B": "2"})),
        says("on_turn_start", [SetEnv({"C": "3"}), Warn("turn")]),
        says("on_message_received", Warn("message")),
        says("system_prompt", Warn("prompt")),
        says("on_model_response", Warn("model")),
        says("pre_tool_execution", Warn("pre")),
        says("post_tool_execution", Warn("post")),
        says("on_turn_complete", Warn("end")),
        says("on_session_end", Warn("bye")),
    ]
    with Engine(plugins).session() as session:
        assert session.env == {"A": "1", "B": "2"}
        assert session.warnings == ["careful"]
        assert session.submit("x").warnings == ["message"]
        with session.turn() as turn:
            assert (turn.env, turn.warnings) == ({"C": "3"}, ["turn"])
            turn.system_prompt([])
            assert turn.warnings == ["turn", "prompt"]
            assert turn.model_response("x").warnings == ["model"]
            assert turn.call_tool("x", {}, lambda: 1).warnings == ["pre", "post"]
            assert turn.complete("x").warnings == ["end"]
    assert session.warnings == ["careful", "bye"]


# -- injected texts --------------------------------------------------------------------------------


class Injecting:
    """Injects at every timing that takes it, by answer and by ctx."""

    @hookimpl
    def on_session_start(self, event, ctx):
        ctx.inject("ctx session")
        return Inject("session")

    @hookimpl
    def on_message_received(self, event, ctx):
        ctx.inject("ctx message")
        return Inject("message")

    @hookimpl
    def on_user_prompt_submit(self, event):
        return Inject("prompt")

    @hookimpl
    def on_turn_start(self, event, ctx):
        return Inject("turn")

    @hookimpl
    def system_prompt(self, event, ctx):
        ctx.inject("ctx system")
        return Inject("system")

    @hookimpl
    def on_model_response(self, event):
        return Inject("model")

    @hookimpl
    def post_tool_execution(self, event, ctx):
        ctx.inject("ctx post")
        return Inject("post")

    @hookimpl
    def on_turn_complete(self, event):
        return Inject("complete")


def test_injected_texts_reach_the_model_exactly_once():
    with Engine([Injecting()]).session() as session:
        prompt = session.submit("x")
        assert prompt.injected == ["message", "prompt"]
        with session.turn() as turn:
            assert turn.system_prompt(["base"]) == [
                "base",
                "system",
                "ctx session\nsession\nctx message\nturn\nctx system",
            ]
            turn.model_response("x")
            result = turn.call_tool("x", {}, lambda: 1)
            assert result.injected == ["post"]
            assert turn.system_prompt(["base"]) == ["base", "system", "model\nctx post\nctx system"]
            turn.complete("")
        with session.turn() as turn:
            assert turn.system_prompt(["base"]) == ["base", "system", "complete\nturn\nctx system"]
            assert turn.system_prompt(["base"]) == ["base", "system", "ctx system"]


def test_texts_of_one_session_do_not_reach_another():
    engine = Engine([says("on_session_start", lambda event: Inject(event.session_id))])
    with (
        engine.session(session_id="one") as one,
        engine.session(session_id="two") as two,
        one.turn() as first,
        two.turn() as second,
    ):
        assert second.system_prompt([]) == ["two"]
        assert first.system_prompt([]) == ["one"]
        assert first.system_prompt([]) == []


def test_injected_outside_of_a_session_is_taken_once():
    class P:
        @hookimpl
        def pre_tool_execution(self, ctx):
            ctx.inject("a")
            ctx.inject("b")

    from hookturn import events

    engine = Engine([P()])
    engine.fire(events.PreToolExecution(tool="x", args={}, session_id="s"))
    assert engine.take_injected("other") == ""
    assert engine.take_injected("s") == "a\nb"
    assert engine.take_injected("s") == ""


def test_events_of_the_host(seen):
    plugins = [seen, says("on_event", lambda event: Deny("no") if "Deny" in event.accepts else Warn("w"))]
    with Engine(plugins).session() as session:
        out = session.event("file.changed", {"path": "/x"}, raw={"a": 1})
        assert (out.decision, out.warnings) == (None, ("w",))
        assert session.event("tool.extra", accepts=["Deny"]).decision == "deny"
        with session.turn():
            session.event("inside")
    kinds = [(event.type, event.turn) for event in seen.of("on_event")]
    assert kinds == [("file.changed", 0), ("tool.extra", 0), ("inside", 1)]
    assert seen.of("on_event")[0].properties == {"path": "/x"}
    assert seen.of("on_event")[0].raw == {"a": 1}


def test_what_a_host_event_injects_reaches_the_next_system_prompt():
    with Engine([says("on_event", Inject("look"))]).session() as session, session.turn() as turn:
        session.event("file.changed", accepts=["Inject"])
        assert turn.system_prompt([]) == ["look"]


def test_rewritten_system_prompts():
    plugins = [
        says("system_prompt", lambda event: Rewrite([*event.parts, "added"])),
        says("system_prompt", lambda event: Rewrite([part.upper() for part in event.parts])),
    ]
    with Engine(plugins).session() as session, session.turn() as turn:
        assert turn.system_prompt(["base"]) == ["BASE", "ADDED"]
