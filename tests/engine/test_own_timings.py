"""A framework's own timings, answers and merge rules have everything that ours have."""

from __future__ import annotations

import asyncio
import types

import pytest

from hookturn import (
    Answer,
    Block,
    Deny,
    Engine,
    EventError,
    Inject,
    Rewrite,
    Warn,
    events,
    hookimpl,
    hookspec,
)


class PlanCreated(events.Event, timing="on_plan_created"):
    """A plan was made."""

    steps: list[str]
    owner: str = "nobody"


class Score(Answer):
    """How good a plan is."""

    merge = "all"
    points: float


class Best(Answer):
    """The first one counts."""

    merge = "first"
    name: str


class Last(Answer):
    """The last one counts."""

    merge = "last"
    name: str


@hookspec(
    event=PlanCreated,
    answers=(Deny, Rewrite, Inject, Score, Best, Last),
    writable=("steps", "owner"),
    since="1.0",
)
def on_plan_created(event, ctx):
    """A plan was made, before it is worked on."""


class Says:
    def __init__(self, answer, **options):
        @hookimpl(**options)
        def on_plan_created(event, ctx):
            return answer(event) if callable(answer) else answer

        self.on_plan_created = on_plan_created


def fire(*plugins, event=None, specs=(on_plan_created,), **options):
    return Engine(plugins, hookspecs=specs).fire(event or PlanCreated(steps=["a"]), **options)


def test_answers_and_rewrites():
    out = fire(
        Says(Rewrite(["b", "c"])), Says(lambda event: Rewrite(owner=event.steps[0])), Says(Inject("i"))
    )
    assert (out.event.steps, out.event.owner) == (["b", "c"], "b")
    assert out.injected == ("i",)
    assert isinstance(out.event, PlanCreated)
    assert fire(Says(Deny("no"))).decision == "deny"


def test_merge_rules():
    plugins = [Says([Score(1), Best("a"), Last("a")]), Says(None), Says([Score(2.5), Best("b"), Last("b")])]
    out = fire(*plugins)
    assert out.of(Score) == [Score(1), Score(2.5)]
    assert out.of(Best) == Best("a")
    assert out.of(Last) == Last("b")
    out = fire(Says(None))
    assert (out.of(Score), out.of(Best), out.of(Last)) == ([], None, None)


def test_own_answers_in_the_record_and_as_json():
    out = fire(("p", Says([Score(2)])))
    assert out.hooks[0].answer == Score(2)
    data = out.to_json()
    assert data["timing"] == "on_plan_created"
    assert data["event"]["steps"] == ["a"]
    assert data["hooks"][0]["answer"] == {"score": 2}


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (Block("x"), "Block is no answer of on_plan_created"),
        (Rewrite(turn=5), "steps, owner"),
        (Rewrite("text"), "steps must be a list"),
        (Rewrite(owner=5), "owner must be a str"),
        ([Score(1), Block("x")], "Block is no answer"),
    ],
)
def test_what_the_spec_does_not_take_is_a_failure(answer, words):
    out = fire(("p", Says(answer)))
    assert words in out.failures[0].message
    assert out.of(Score) == []
    assert out.event.steps == ["a"]


def test_order_guards_monitor_failures_and_outcomes():
    seen = []

    class Audit:
        @hookimpl
        def on_outcome(self, event):
            seen.append((event.of, event.outcome.decision))

    plugins = [
        Says(lambda event: seen.append("plain")),
        Says(lambda event: seen.append("first"), tryfirst=True),
        Says(lambda event: seen.append("low"), priority=1),
        Says(Deny("only recorded"), mode="monitor"),
        Says(lambda event: 1 / 0),
        Says(lambda event: seen.append("guard") or Deny("guarded"), guard=True),
        Audit(),
    ]
    out = fire(*plugins)
    assert seen == ["first", "low", "plain", "guard", ("on_error", None), ("on_plan_created", "deny")]
    assert out.reason == "guarded"
    assert out.failures[0].error_type == "ZeroDivisionError"


def test_on_failure_deny():
    assert fire(Says(lambda event: 1 / 0, on_failure="deny")).decision == "deny"


async def test_coroutine_hooks():
    class P:
        @hookimpl
        async def on_plan_created(self, event):
            await asyncio.sleep(0)
            return Score(5)

    engine = Engine([P()], hookspecs=[on_plan_created])
    assert (await engine.afire(PlanCreated(steps=[]))).of(Score) == [Score(5)]
    with engine:
        assert engine.fire(PlanCreated(steps=[])).of(Score) == [Score(5)]


@pytest.mark.parametrize("kind", ["function", "module", "object"])
def test_specs_come_as_functions_modules_or_objects(kind):
    module = types.ModuleType("my_specs")
    module.on_plan_created = on_plan_created
    module.helper = lambda x: x

    class Specs:
        on_plan_created = staticmethod(on_plan_created)

    specs = {"function": on_plan_created, "module": module, "object": Specs()}[kind]
    assert fire(Says(Warn("w")), specs=[specs]).warnings == ("w",)


def test_specs_may_come_later():
    engine = Engine()
    with pytest.raises(EventError, match=r"no timing 'on_plan_created'.*hookspecs"):
        engine.fire(PlanCreated(steps=[]))
    assert engine.add_hookspecs(on_plan_created) == ["on_plan_created"]
    engine.register(Says(Warn("w")))
    assert engine.fire(PlanCreated(steps=[])).warnings == ("w",)


def test_an_event_of_an_unknown_timing():
    class Typo(events.Event, timing="pre_tool_executon"):
        pass

    with pytest.raises(EventError, match="did you mean 'pre_tool_execution'"):
        Engine().fire(Typo())


def test_an_unmarked_answer_class_of_a_foreign_timing_is_refused():
    class P:
        @hookimpl
        def pre_tool_execution(self, event):
            return Score(1)

    out = Engine([P()], hookspecs=[on_plan_created]).fire(events.PreToolExecution(tool="x", args={}))
    assert "Score is no answer of pre_tool_execution" in out.failures[0].message


def test_own_tool_events_have_the_views_and_filters():
    class ToolPlanned(events.ToolEvent, timing="on_tool_planned"):
        weight: int = 1

    @hookspec(event=ToolPlanned, answers=(Deny, Rewrite), writable=("args",))
    def on_tool_planned(event, ctx):
        """A tool is planned."""

    calls = []

    class P:
        @hookimpl(tools=["bash"])
        def on_tool_planned(self, event):
            calls.append(event.command)
            return Rewrite(command="pwd")

    engine = Engine([P()], hookspecs=[on_tool_planned])
    assert engine.fire(ToolPlanned(tool="Bash", args={"command": "ls"})).event.command == "pwd"
    engine.fire(ToolPlanned(tool="Read", args={}))
    assert calls == ["ls"]


def test_own_timings_do_not_leak_into_other_engines():
    Engine(hookspecs=[on_plan_created])
    with pytest.raises(EventError):
        Engine().fire(PlanCreated(steps=[]))


def test_the_design_pages_example():
    """Section 10, word for word where it matters."""

    class Guard:
        @hookimpl(guard=True, tools=["bash"])
        def pre_tool_execution(self, event, ctx):
            if "rm -rf" in event.command:
                return Deny("no recursive delete", advice="remove files one by one")
            return None

    engine = Engine(plugins=[Guard()])
    out = engine.fire(events.PreToolExecution(tool="bash", args={"command": "rm -rf /"}))
    assert (out.decision, out.reason, out.by) == ("deny", "no recursive delete", "Guard")
    assert "no recursive delete" in out.message and "remove files one by one" in out.message
    assert (out.rewrites, out.reply, out.injected, out.warnings, out.failures) == ((), None, (), (), ())
    assert out.continue_reason == ""
    assert out.hooks[0].tier == "guard"
    engine.close()
