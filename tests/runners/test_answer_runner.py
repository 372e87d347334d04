"""A fixed answer, given at each of its timings."""

from __future__ import annotations

import pytest

from hookturn import Engine, events
from hookturn.runners import answer
from hookturn.runners.entry import HookEntry
from hookturn.spec.timings import TIMINGS

PRE = [TIMINGS["pre_tool_execution"]]


def engine_of(run, timings, **options):
    entry = HookEntry(
        name="fixed", kind="answer", run=run, timings=timings, options=options, file="f.yaml", line=2
    )
    engine = Engine()
    engine.register(answer.make(entry), entry.name, source=entry.source, layer="user", options=entry.options)
    return engine


def test_one_answer():
    engine = engine_of(
        {"deny": "No.", "advice": "Ask.", "code": "c"}, ["pre_tool_execution", "on_tool_call_start"]
    )
    for kind in (events.PreToolExecution, events.ToolCallStart):
        out = engine.fire(kind(tool="bash", args={}))
        assert (out.decision, out.reason, out.advice, out.code, out.by) == (
            "deny",
            "No.",
            "Ask.",
            "c",
            "fixed",
        )
        assert out.hooks[0].source == "f.yaml:2"


def test_several_answers_and_options():
    engine = engine_of(
        {"rewrite": {"command": "ls -l"}, "warn": ["a", "b"]},
        ["pre_tool_execution"],
        tools=["bash"],
        priority=3,
    )
    out = engine.fire(events.PreToolExecution(tool="bash", args={"command": "ls"}))
    assert (out.event.command, out.warnings, out.hooks[0].priority) == ("ls -l", ("a", "b"), 3)
    assert engine.fire(events.PreToolExecution(tool="read", args={})).warnings == ()


@pytest.mark.parametrize(
    "run",
    [
        {"allow": True},
        {"ask": "sure?"},
        {"block": "stop"},
        {"reply": {"a": [1]}},
        {"reply": None},
        {"warn": "w"},
    ],
)
def test_answers_that_pass_the_check_can_be_made_and_given(run):
    assert answer.check(run, PRE) == ("", "")
    out = engine_of(run, ["pre_tool_execution"]).fire(events.PreToolExecution(tool="bash", args={}))
    assert out.failures == ()
    assert len(out.hooks) == 1


@pytest.mark.parametrize(
    ("run", "wrong"),
    [
        (None, "the answer says nothing"),
        ({}, "the answer says nothing"),
        ({"deny": None}, "the answer says nothing"),
        ([], "an answer is one JSON object, got an array"),
        ({"deny": 3}, "Deny: reason must be a string"),
        ({"advice": "x"}, "'advice' and 'code' belong to 'deny'"),
        ({"rewrite": "x"}, "'rewrite' takes an object"),
        ({"set_env": {"A=": "x"}}, "is no name of an environment variable"),
        ({"recover": "sleep"}, "unknown strategy 'sleep'"),
        ({"deny": "x", "block": "y"}, "at most one of allow, ask, deny and block"),
        ({"deny": "x", "allow": True}, "at most one of allow, ask, deny and block"),
        ({"set_env": {"A": "x"}}, "set_env is no answer of pre_tool_execution"),
    ],
)
def test_what_is_wrong_with_an_answer(run, wrong):
    assert wrong in answer.check(run, PRE)[0]


def test_what_tightens():
    for run in (
        {"deny": "x"},
        {"deny": "x", "advice": "y", "code": "z"},
        {"ask": "x"},
        {"block": "x"},
        {"warn": "x"},
    ):
        assert answer.tightens(run)
    for run in (
        {},
        {"deny": "x", "inject": "y"},
        {"allow": True},
        {"reply": "x"},
        {"rewrite": {"a": 1}},
        "deny",
        None,
    ):
        assert not answer.tightens(run)
