"""The scripted agent drives the real session: order, denials, rewrites, sub-agents, sync and async alike."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from hookturn import (
    Ask,
    Block,
    Continue,
    Deny,
    Engine,
    Inject,
    Recover,
    Reply,
    Rewrite,
    Tool,
    Warn,
    hookimpl,
)
from hookturn.spec.timings import THIRTEEN
from hookturn.testing import Model, Run, ScriptedAgent, SubAgent, ToolCall, User


class Hooks:
    """Hooks from keyword arguments: timing=function(event) or a fixed answer."""

    def __init__(self, **answers: Any) -> None:
        for timing, answer in answers.items():
            setattr(self, timing, self._hook(timing, answer))

    @staticmethod
    def _hook(timing: str, answer: Any) -> Any:
        def hook(event):  # type: ignore[no-untyped-def]
            return answer(event) if callable(answer) else answer

        return hookimpl(specname=timing)(hook)


class Recorder:
    def __init__(self) -> None:
        self.seen: list[str] = []
        for timing in (*THIRTEEN, "on_event"):
            setattr(self, timing, self._hook(timing))

    def _hook(self, timing: str) -> Any:
        def hook(event):  # type: ignore[no-untyped-def]
            self.seen.append(timing if timing != "on_event" else event.type)

        return hookimpl(specname=timing)(hook)


@pytest.fixture(params=["sync", "async"])
def play(request: pytest.FixtureRequest) -> Any:
    """Play a script through both kinds of sessions: play(plugins, *steps, **engine options)."""

    def run(plugins: list[Any], *steps: User | Model, agent: str = "main", **options: Any) -> Run:
        with Engine(plugins, **options) as engine:
            scripted = ScriptedAgent(engine, agent=agent, cwd="/project")
            if request.param == "sync":
                return scripted.run(*steps)
            return asyncio.run(scripted.arun(*steps))

    return run


ONE_CALL = (User("fix it"), Model("I look", ToolCall("bash", command="ls", result="a.py")), Model("done"))


def test_a_script_fires_all_timings_in_their_order(play: Any) -> None:
    recorder = Recorder()
    run = play([recorder], *ONE_CALL)
    assert recorder.seen == [
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
    assert run.executed == [("bash", {"command": "ls"})]
    assert [result.value for result in run.results] == ["a.py"]
    assert [end.text for end in run.ends] == ["done"]
    assert run.skipped == []


def test_the_model_reads_everything_in_its_order(play: Any) -> None:
    hooks = Hooks(
        on_user_prompt_submit=Inject("beside the prompt"),
        system_prompt=Inject("a rule"),
        post_tool_execution=Inject("beside the result"),
    )
    assert play([hooks], *ONE_CALL).read == [
        "fix it",
        "beside the prompt",
        "You are a coding agent.",
        "a rule",
        "a.py",
        "beside the result",
        "You are a coding agent.",
        "a rule",
    ]


def test_a_denied_tool_is_never_entered(play: Any) -> None:
    run = play([("guard", Hooks(pre_tool_execution=Deny("no", advice="ask first")))], *ONE_CALL)
    assert run.executed == []
    assert [(result.status, result.denied_by) for result in run.results] == [("denied", "guard")]
    assert [call.decision for call in run.calls] == ["deny"]
    assert any("ask first" in text for text in run.read)
    assert [end.text for end in run.ends] == ["done"], "the turn goes on"


def test_a_tool_gets_the_rewritten_arguments_and_the_model_the_rewritten_result(play: Any) -> None:
    hooks = Hooks(
        pre_tool_execution=Rewrite(command="ls -l"),
        post_tool_execution=lambda event: Rewrite(event.result + "!"),
    )
    run = play([hooks], User("go"), Model("", ToolCall("bash", command="ls", result=_upper)))
    assert run.executed == [("bash", {"command": "ls -l"})]
    assert run.results[0].value == "LS -L!"


def _upper(command: str) -> str:
    return command.upper()


def test_a_reply_stands_for_the_tool_and_for_the_model(play: Any) -> None:
    run = play([Hooks(pre_tool_execution=Reply("cached"))], *ONE_CALL)
    assert run.executed == []
    assert run.results[0].value == "cached"
    run = play([Hooks(on_message_received=Reply("hello yourself"))], *ONE_CALL)
    assert run.prompts[0].reply == "hello yourself"
    assert run.skipped == list(ONE_CALL[1:])
    assert run.responses == []


def test_a_blocked_prompt_begins_no_turn_and_the_next_one_does(play: Any) -> None:
    hooks = Hooks(on_user_prompt_submit=lambda event: Block("a secret") if "secret" in event.prompt else None)
    first, second = Model("one"), Model("two")
    run = play([hooks], User("secret"), first, User("fine"), second)
    assert [prompt.goes_on for prompt in run.prompts] == [False, True]
    assert run.skipped == [first]
    assert [end.text for end in run.ends] == ["two"]


def test_a_block_ends_the_turn_for_the_calls_that_follow(play: Any) -> None:
    one, two = ToolCall("bash", command="ls"), ToolCall("read", path="a")
    hooks = ("stop", Hooks(pre_tool_execution=Block("enough")))
    last = Model("done")
    run = play([hooks], User("go"), Model("", one, two), last)
    assert run.executed == []
    assert run.skipped == [two, last]
    assert len(run.ends) == 1
    run = play([("stop", Hooks(on_model_response=Block("enough")))], User("go"), Model("", one), last)
    assert run.skipped == [one, last]
    assert run.responses[0].blocked_by == "stop"


def test_a_turn_goes_on_with_the_next_answer_of_the_script(play: Any) -> None:
    hooks = Hooks(on_turn_complete=lambda event: Continue("run the tests") if not event.continued else None)
    run = play([hooks], User("go"), Model("done"), Model("tests pass"))
    assert [end.again for end in run.ends] == ["run the tests", None]
    assert run.ends[-1].text == "tests pass"
    assert "run the tests" in run.read


def test_without_continue_the_rest_of_the_answers_is_skipped(play: Any) -> None:
    last = Model("never said")
    assert play([], User("go"), Model("done"), last).skipped == [last]


def test_a_script_that_ends_while_the_turn_goes_on_leaves_the_turn(play: Any) -> None:
    recorder = Recorder()
    run = play([Hooks(on_turn_complete=Continue("more")), recorder], User("go"), Model("done"))
    assert [end.again for end in run.ends] == ["more"]
    assert recorder.seen[-2:] == ["post_turn", "on_session_end"]


def test_a_failing_tool_is_an_error_result_and_the_turn_goes_on(play: Any) -> None:
    recorder = Recorder()
    run = play(
        [recorder],
        User("go"),
        Model("", ToolCall("bash", command="a", error="no such file")),
        Model("", ToolCall("bash", command="b", error=TimeoutError("slow"))),
        Model("done"),
    )
    assert [result.status for result in run.results] == ["error", "timeout"]
    assert "no such file" in run.results[0].error
    assert any("no such file" in text for text in run.read)
    assert recorder.seen.count("on_error") == 2


def test_a_failing_model_is_asked_again_when_a_hook_and_the_host_can_recover(play: Any) -> None:
    seen: list[tuple[str, str, str]] = []

    def on_error(event: Any) -> Recover:
        seen.append((event.phase, event.error_type, event.message))
        return Recover("retry", attempts=2)

    script = (User("go"), Model(error="overloaded"), Model("done"))
    run = play([Hooks(on_error=on_error)], *script, recovers=["retry"])
    assert seen == [("model", "RuntimeError", "overloaded")]
    assert [recover.strategy for recover in run.recovers] == ["retry"]
    assert [end.text for end in run.ends] == ["done"]
    run = play([Hooks(on_error=on_error)], *script)
    assert run.recovers == [None], "this host cannot retry"
    assert run.skipped == [script[-1]]
    run = play([Hooks(on_error=Recover("abort"))], *script, recovers=["abort"])
    assert run.skipped == [script[-1]]


def test_a_turn_whose_model_fails_still_ends(play: Any) -> None:
    recorder = Recorder()
    play([recorder], User("go"), Model(error=ConnectionError("down")))
    assert recorder.seen[-4:] == ["on_error", "on_turn_complete", "post_turn", "on_session_end"]


def test_an_interrupt_passes_after_post_and_end_have_fired(play: Any) -> None:
    recorder = Recorder()
    script = (User("go"), Model("", ToolCall("bash", command="a", error=KeyboardInterrupt())))
    with pytest.raises(KeyboardInterrupt):
        play([recorder], *script)
    assert recorder.seen[-4:] == ["post_tool_execution", "on_turn_complete", "post_turn", "on_session_end"]


def test_a_sub_agent_runs_a_turn_inside_the_call(play: Any) -> None:
    recorder = Recorder()
    seen: list[tuple[str, str]] = []
    hooks = Hooks(pre_tool_execution=lambda event: seen.append((event.agent, event.parent_agent)))
    run = play(
        [recorder, hooks],
        User("review"),
        Model("", SubAgent("reviewer", Model("", ToolCall("read", path="a")), Model("looks good"))),
        Model("reviewed"),
    )
    assert seen == [("main", ""), ("reviewer", "main")]
    assert [call.tool for call in run.calls] == ["read", "task"]
    assert run.results[1].value == "looks good"
    assert recorder.seen.count("post_tool_execution") == 2
    assert "subagent.start" in recorder.seen
    assert [end.text for end in run.ends] == ["looks good", "reviewed"]


def test_a_denied_sub_agent_does_not_run(play: Any) -> None:
    inner = Model("looks good")
    run = play([("no", Hooks(pre_tool_execution=Deny("alone")))], User("go"), Model("", SubAgent("r", inner)))
    assert run.executed == []
    assert run.skipped == [inner]
    assert (run.results[0].status, run.results[0].denied_by) == ("denied", "no")


def test_permissions_approver_and_tools_are_the_engines(play: Any) -> None:
    run = play([], *ONE_CALL, permissions={"deny": ["bash(ls)"]})
    assert run.results[0].denied_by == "rule bash(ls)"
    asked: list[str] = []
    run = play(
        [Hooks(pre_tool_execution=Ask("sure?"))],
        *ONE_CALL,
        approver=lambda request: asked.append(request.command) is None,
    )
    assert asked == ["ls"]
    assert run.results[0].status == "ok"
    run = play(
        [],
        User("go"),
        Model("", ToolCall("save", path="a.txt")),
        tools={"save": Tool("write", paths=["target"])},
    )
    assert run.executed == [("save", {"target": "a.txt"})]


def test_warnings_of_every_timing_reach_the_user(play: Any) -> None:
    timings = [name for name in THIRTEEN if name not in ("on_error",)]
    hooks = Hooks(**{name: Warn(name) for name in timings})
    warnings = play([hooks], *ONE_CALL).warnings
    # post_turn's outcome is nobody's result; the session reports the rest.
    assert set(timings) - set(warnings) <= {"post_turn"}


def test_a_run_knows_its_outcomes_and_failures(play: Any) -> None:
    def crash(event: object) -> None:
        raise ValueError("boom")

    run = play([("bad", Hooks(pre_tool_execution=crash))], *ONE_CALL)
    assert [(failure.hook, failure.timing) for failure in run.failures] == [("bad", "pre_tool_execution")]
    assert run.results[0].status == "ok"
    assert {"on_message_received", "on_model_response", "pre_tool_execution", "on_turn_complete"} <= {
        out.timing for out in run.outcomes
    }


def test_the_call_id_is_the_scripts_or_counted(play: Any) -> None:
    run = play(
        [],
        User("go"),
        Model("", ToolCall("bash", command="a"), ToolCall("bash", command="b", call_id="mine")),
        Model("", ToolCall("bash", command="c")),
    )
    assert [call.call_id for call in run.calls] == ["call-1", "mine", "call-3"]


def test_the_agents_name_reaches_the_hooks(play: Any) -> None:
    seen: list[str] = []
    play([Hooks(on_turn_start=lambda event: seen.append(event.agent))], *ONE_CALL, agent="coder")
    assert seen == ["coder"]


def test_a_script_must_begin_with_a_user(play: Any) -> None:
    with pytest.raises(ValueError, match=r"begins with a User\(...\), not with Model\('hi'\)"):
        play([], Model("hi"))


def test_an_asynchronous_tool_is_awaited_in_both(play: Any) -> None:
    async def body(command: str) -> str:
        await asyncio.sleep(0)
        return command * 2

    assert (
        play([], User("go"), Model("", ToolCall("bash", command="x", result=body))).results[0].value == "xx"
    )


def test_steps_say_what_they_are() -> None:
    step = Model("hi", ToolCall("bash", {"a": 1}, command="ls"), SubAgent("r"))
    assert repr(step) == "Model('hi', ToolCall('bash', {'a': 1}, command='ls'), SubAgent('r'))"
    assert repr(User("x")) == "User('x')"
