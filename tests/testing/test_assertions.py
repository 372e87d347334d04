"""The assertions: each passes on what it says, fails on all else, and its message names hooks, answers, failures."""

from __future__ import annotations

import re
from typing import Any

import pytest

from hookturn import (
    Allow,
    Answer,
    Ask,
    Block,
    Continue,
    Deny,
    Engine,
    Inject,
    Reply,
    Rewrite,
    SetEnv,
    Warn,
    events,
    hookimpl,
    hookspec,
)
from hookturn.testing import (
    Model,
    Run,
    ScriptedAgent,
    ToolCall,
    User,
    allowed,
    asked_by,
    continued,
    denied_by,
    injected,
    make,
    no_failures,
    no_opinion,
    replied,
    rewritten_to,
    warned,
)


def crash(event: object) -> None:
    raise ValueError("boom")


def hook(timing: str, answer: Any) -> Any:
    """A hook with a fixed answer, or one that a function of the event gives."""

    @hookimpl(specname=timing)
    def marked(event):  # type: ignore[no-untyped-def]
        return answer(event) if callable(answer) else answer

    return marked


def plugin(**answers: Any) -> Any:
    class Plugin:
        pass

    for timing, answer in answers.items():
        setattr(Plugin, timing, staticmethod(hook(timing, answer)))
    return Plugin()


def fire(answer: Any, event: events.Event | None = None, *, name: str = "hook", **options: Any) -> Any:
    """The Outcome of one hook's answer; None for no hook at all."""
    event = event or make.pre_tool_execution()
    plugins = [] if answer is None else [(name, plugin(**{event.timing: answer}))]
    with Engine(plugins, **options) as engine:
        return engine.fire(event)


def play(answers: dict[str, Any], **options: Any) -> Run:
    with Engine([("hook", plugin(**answers))], **options) as engine:
        return ScriptedAgent(engine, cwd="/project").run(
            User("fix it"), Model("I look", ToolCall("read", path="a.py", result="text")), Model("done")
        )


def fails(assertion: Any, *args: Any, **options: Any) -> str:
    with pytest.raises(AssertionError) as caught:
        assertion(*args, **options)
    return str(caught.value)


NOTHING = fire(None)
SAID = {
    "deny": fire(Deny("too dangerous", advice="ask first")),
    "block": fire(Block("too dangerous")),
    "ask": fire(Ask("is it?")),
    "allow": fire(Allow("fine")),
    "reply": fire(Reply("cached")),
    "rewrite": fire(Rewrite(command="ls -l")),
    "warn": fire(Warn("look out")),
    "inject": fire(Inject("be brief"), make.on_turn_start()),
    "env": fire(SetEnv({"A": "1"}), make.on_turn_start()),
    "continue": fire(Continue("run the tests"), make.on_turn_complete()),
}


@pytest.mark.parametrize("kind", ["deny", "block"])
def test_denied_by_on_an_outcome(kind: str) -> None:
    denied_by(SAID[kind])
    denied_by(SAID[kind], "hook")
    denied_by(SAID[kind], "hook", reason="dangerous")
    denied_by(SAID[kind], reason=re.compile("^too d"))
    assert "deny by 'hook'" in fails(denied_by, SAID["deny"], "other")
    assert "the words are" in fails(denied_by, SAID[kind], "hook", reason="harmless")


def test_a_denys_advice_counts_as_its_words() -> None:
    denied_by(SAID["deny"], reason="ask first")


@pytest.mark.parametrize("kind", [kind for kind in SAID if kind not in ("deny", "block")])
def test_denied_by_fails_on_everything_else(kind: str) -> None:
    fails(denied_by, SAID[kind])
    fails(denied_by, NOTHING)


def test_asked_by() -> None:
    asked_by(SAID["ask"], "hook", reason="is it")
    assert "deny by 'hook': too dangerous" in fails(asked_by, SAID["deny"])
    fails(asked_by, SAID["ask"], "other")
    fails(asked_by, SAID["ask"], "hook", reason="was it")
    run = play({"pre_tool_execution": Ask("is it?")}, approver=lambda request: True)
    asked_by(run.calls[0], "hook")
    allowed(run.calls[0])


@pytest.mark.parametrize("kind", SAID)
def test_allowed(kind: str) -> None:
    if kind in ("deny", "block", "ask", "reply"):
        assert "expected allowed" in fails(allowed, SAID[kind])
    else:
        allowed(SAID[kind])
    if kind == "allow":
        allowed(SAID[kind], by="hook")
        fails(allowed, SAID[kind], by="other")
    else:
        fails(allowed, SAID[kind], by="hook")
    allowed(NOTHING)


def test_replied() -> None:
    replied(SAID["reply"])
    replied(SAID["reply"], "cached")
    assert "a hook replied 'cached'" in fails(replied, SAID["reply"], "fresh")
    fails(replied, SAID["deny"])
    fails(replied, NOTHING)
    replied(fire(Reply(None)), None)


def test_rewritten_to_on_an_outcome() -> None:
    rewritten_to(SAID["rewrite"], command="ls -l")
    rewritten_to(SAID["rewrite"], {"command": "ls -l"}, by="hook")
    assert "command is 'ls -l'" in fails(rewritten_to, SAID["rewrite"], command="ls")
    assert "it was rewritten by 'hook'" in fails(rewritten_to, SAID["rewrite"], command="ls -l", by="other")
    assert "no hook rewrote anything" in fails(rewritten_to, NOTHING, command="ls")
    assert "has no field 'comand'" in fails(rewritten_to, SAID["rewrite"], comand="ls -l")
    with pytest.raises(TypeError, match="takes one value, or fields by name"):
        rewritten_to(SAID["rewrite"])


def test_a_rewritten_path_may_be_given_as_the_hook_gave_it() -> None:
    out = fire(Rewrite(path="b.py"), make.pre_tool_execution("read", path="a.py"))
    rewritten_to(out, path="b.py")
    rewritten_to(out, path="/project/b.py")
    fails(rewritten_to, out, path="a.py")


@pytest.mark.parametrize(
    ("event", "answer", "value"),
    [
        (make.on_message_received("a"), Rewrite("b"), "b"),
        (make.system_prompt(["a"]), Rewrite(["b"]), ["b"]),
        (make.on_model_response("a"), Rewrite("b"), "b"),
        (make.post_tool_execution(result={"stdout": "a"}), Rewrite(result_text="b"), {"stdout": "b"}),
        (make.on_turn_complete("a"), Rewrite("b"), "b"),
        (make.on_event(properties={"a": 1}, accepts=["Rewrite"]), Rewrite({"a": 2}), {"a": 2}),
    ],
)
def test_rewritten_to_knows_the_main_field(event: events.Event, answer: Answer, value: object) -> None:
    rewritten_to(fire(answer, event), value)
    fails(rewritten_to, fire(answer, event), "something else")


class PlanCreated(events.Event, timing="on_plan_created"):
    steps: list[str]


class Score(Answer):
    points: int


@hookspec(event=PlanCreated, answers=(Deny, Rewrite, Score), writable=("steps",))
def on_plan_created(event: PlanCreated, ctx: object) -> None:
    """A plan was made."""


def test_own_timings_and_answers_are_like_ours() -> None:
    event = make.event(PlanCreated, steps=["a"])
    rewritten_to(fire(Rewrite(["b"]), event, hookspecs=[on_plan_created]), ["b"])
    denied_by(fire(Deny("no"), event, hookspecs=[on_plan_created]), "hook")
    assert "Score(points=3)" in fails(no_opinion, fire(Score(3), event, hookspecs=[on_plan_created]))


def test_injected_warned_and_continued() -> None:
    injected(SAID["inject"], "brief")
    injected(SAID["inject"], re.compile("^be"))
    assert "the model gets ['be brief']" in fails(injected, SAID["inject"], "long")
    warned(SAID["warn"], "look out")
    assert "the user gets []" in fails(warned, NOTHING, "look out")
    continued(SAID["continue"], "tests")
    continued(SAID["continue"])
    fails(continued, SAID["continue"], "build")
    assert "the turn ends" in fails(continued, fire(None, make.on_turn_complete()))


@pytest.mark.parametrize("kind", SAID)
def test_no_opinion_fails_on_every_answer(kind: str) -> None:
    fails(no_opinion, SAID[kind])


def test_no_opinion_passes_where_nothing_has_an_effect() -> None:
    no_opinion(NOTHING)
    no_opinion(fire(lambda event: None))
    no_opinion(fire(Deny("would"), mode="monitor"))


ALL: list[tuple[Any, tuple[Any, ...]]] = [
    (denied_by, ()),
    (asked_by, ()),
    (allowed, ()),
    (replied, ()),
    (rewritten_to, ({"command": "ls"},)),
    (injected, ("",)),
    (warned, ("",)),
    (continued, ()),
    (no_opinion, ()),
    (no_failures, ()),
]


@pytest.mark.parametrize(("assertion", "args"), ALL)
def test_no_assertion_passes_because_a_hook_crashed(assertion: Any, args: tuple[Any, ...]) -> None:
    message = fails(assertion, fire(crash), *args)
    assert "but 'hook' failed" in message
    assert "! hook failed: ValueError: boom" in message
    assert re.search(r"test_assertions\.py:\d+\)", message), "it says where"


def test_a_guard_that_crashed_has_not_denied() -> None:
    class Guard:
        @hookimpl(guard=True)
        def pre_tool_execution(self) -> None:
            raise ValueError("boom")

    with Engine([("guard", Guard())]) as engine:
        out = engine.fire(make.pre_tool_execution())
    assert out.by == "guard"
    assert "'guard' failed" in fails(denied_by, out, "guard")
    denied_by(out, "guard", failures=True)


def test_failures_can_be_meant() -> None:
    allowed(fire(crash), failures=True)
    no_opinion(fire(crash), failures=True)


def test_the_message_names_event_hooks_answers_and_reasons() -> None:
    with Engine(
        [
            ("first", plugin(pre_tool_execution=Warn("careful"))),
            ("second", plugin(pre_tool_execution=Deny("no"))),
            ("third", plugin(pre_tool_execution=Deny("never asked"))),
        ]
    ) as engine:
        message = fails(allowed, engine.fire(make.pre_tool_execution(command="ls")))
    assert message.splitlines()[:3] == [
        "expected allowed",
        "     but deny by 'second': no",
        "      of <Outcome of pre_tool_execution: deny by 'second': no>",
    ]
    assert "at pre_tool_execution, PreToolExecution(" in message
    assert "- first (plain 50): Warn(text='careful')" in message
    assert "- second (plain 50): Deny(reason='no')" in message
    assert "- third (plain 50): not called: second said deny" in message


def test_a_message_shows_a_monitored_answer_and_stays_short() -> None:
    message = fails(denied_by, fire(Deny("x" * 10_000), mode="monitor"))
    assert "monitor mode" in message
    assert len(message) < 2000


def test_the_message_says_why_a_hook_was_not_called() -> None:
    class OnlyBash:
        @hookimpl(tools=["bash"])
        def pre_tool_execution(self, event):  # type: ignore[no-untyped-def]
            return Deny("no")

    with Engine([("only-bash", OnlyBash())]) as engine:
        event = make.pre_tool_execution("read", path="a.py")
        message = fails(denied_by, engine.fire(event, measure=True), "only-bash")
        assert "- only-bash (plain 50): not called: tools: read (read) is none of bash" in message
        message = fails(denied_by, engine.fire(event), "only-bash")
        assert "no hook answered (fire(event, measure=True) tells why)" in message


def test_the_message_of_a_call_is_in_words() -> None:
    run = play({"on_turn_start": None})
    call = run.calls[0]
    message = fails(denied_by, call)
    assert f"      of the call {call.call_id!r} of {call.tool}, which is over: ok\n" in message
    assert f"      of the call {call.call_id!r} of {call.tool}, which is over: ok\n" in fails(
        denied_by, run.results[0]
    )
    assert message.endswith("no hook listened")


def test_results_of_a_session_denied() -> None:
    run = play({"pre_tool_execution": Deny("no", advice="ask first")})
    denied_by(run.calls[0], "hook", reason="ask first")
    denied_by(run.results[0], "hook", reason="no")
    fails(allowed, run.calls[0])
    fails(allowed, run.results[0])
    assert "deny by 'hook': no" in fails(no_opinion, run.calls[0])
    run = play({"post_tool_execution": Deny("withheld")})
    allowed(run.calls[0])
    denied_by(run.results[0], "hook", reason="withheld")


def test_results_of_a_session_denied_by_a_rule() -> None:
    run = play({"on_turn_start": None}, permissions={"deny": ["read"]})
    denied_by(run.calls[0], "rule read")
    denied_by(run.results[0], "rule read")


@pytest.mark.parametrize("timing", ["on_message_received", "on_user_prompt_submit"])
def test_a_prompt_denied(timing: str) -> None:
    prompt = play({timing: Block("not today")}).prompts[0]
    denied_by(prompt, "hook", reason="not today")
    fails(allowed, prompt)
    allowed(play({timing: None}).prompts[0])


def test_an_answer_and_an_end_denied() -> None:
    denied_by(play({"on_model_response": Block("enough")}).responses[0], "hook", reason="enough")
    denied_by(play({"on_turn_complete": Block("secret")}).ends[0], "hook", reason="secret")
    allowed(play({"on_turn_complete": None}).ends[0])


def test_results_of_a_session_rewritten() -> None:
    run = play({"pre_tool_execution": Rewrite(path="b.py"), "post_tool_execution": Rewrite("other")})
    rewritten_to(run.calls[0], {"file_path": "b.py"}, by="hook")
    rewritten_to(run.calls[0], path="b.py")
    rewritten_to(run.results[0], "other", by="hook")
    rewritten_to(run.results[0], path="b.py", result_text="other")
    fails(rewritten_to, run.results[0], "text")
    rewritten_to(play({"on_message_received": Rewrite("do it")}).prompts[0], "do it")
    rewritten_to(play({"on_model_response": Rewrite("changed")}).responses[0], "changed")
    rewritten_to(play({"on_turn_complete": Rewrite("finished")}).ends[0], text="finished")
    quiet = play({"on_turn_start": None})
    for result in (quiet.calls[0], quiet.results[0], quiet.prompts[0], quiet.responses[0], quiet.ends[0]):
        assert "no hook rewrote anything" in fails(rewritten_to, result, "text")


def test_a_result_knows_the_arguments_without_a_post_hook() -> None:
    run = play({"pre_tool_execution": Rewrite(path="/b.py")})
    rewritten_to(run.results[0], path="/b.py")
    rewritten_to(run.results[0], args={"file_path": "/b.py"})
    fails(rewritten_to, run.results[0], path="/a.py")


def test_results_of_a_session_injected_and_warned() -> None:
    run = play({"on_user_prompt_submit": [Inject("one"), Warn("w1")], "post_tool_execution": Inject("two")})
    injected(run.prompts[0], "one")
    injected(run.results[0], "two")
    warned(run.prompts[0], "w1")
    for text in ("one", "two"):
        injected(run, text)
    warned(run, "w1")
    fails(injected, run, "three")
    run = play({"on_turn_start": Inject("later"), "system_prompt": Inject("now")})
    injected(run.system_prompts[0], "later")
    injected(run.system_prompts[0], "now")
    fails(injected, run.system_prompts[1], "later")


def test_results_of_a_session_replied_and_continued() -> None:
    run = play({"pre_tool_execution": Reply("cached")})
    replied(run.calls[0], "cached")
    replied(run.results[0], "cached")
    replied(play({"on_message_received": Reply("hello")}).prompts[0], "hello")
    end = play({"on_turn_complete": lambda e: None if e.continued else Continue("more")}).ends[0]
    continued(end, "more")
    run = play({"on_turn_complete": None})
    fails(continued, run.ends[0])
    fails(replied, run.results[0])


def test_results_of_a_session_with_failures() -> None:
    run = play({"pre_tool_execution": crash, "on_turn_complete": crash})
    for result in (run, run.calls[0], run.ends[0]):
        assert "boom" in fails(no_failures, result)
    no_failures(run.results[0])
    no_failures(run.prompts[0])


def test_other_objects_are_refused() -> None:
    for assertion, args in ALL:
        with pytest.raises(TypeError, match=r"expected an Outcome, or a Prompt, .*, got dict"):
            assertion({}, *args)


def test_hostile_texts_do_not_break_a_message() -> None:
    message = fails(allowed, fire(Deny("\ud800 \0 \x1b[31m")))
    message.encode("utf-8", "backslashreplace")
    assert "\\ud800" in message
