"""``Engine.decide``: one event with the permission rules, as a session would have it."""

from __future__ import annotations

import pytest

from hookturn import Allow, Deny, Engine, Rewrite, events, hookimpl


class Says:
    def __init__(self, answer):
        self.answer = answer

    @hookimpl
    def pre_tool_execution(self, event):
        return self.answer

    @hookimpl
    def on_tool_call_start(self, event):
        return None


def call(command="rm x"):
    return events.PreToolExecution(tool="bash", args={"command": command})


def test_rules_decide_at_a_tool_call_and_not_in_fire():
    engine = Engine(permissions={"deny": ["bash(rm *)"]})
    assert engine.fire(call()).decision is None
    out = engine.decide(call())
    assert (out.decision, out.by) == ("deny", "rule bash(rm *)")
    assert engine.decide(call("ls")).decision is None
    start = events.ToolCallStart(tool="bash", args={"command": "rm x"})
    assert engine.decide(start).decision == "deny"


def test_always_allow_sets_a_hooks_deny_aside():
    engine = Engine([Says(Deny("no"))], permissions={"always_allow": ["bash"]})
    out = engine.decide(call())
    assert out.decision == "allow"
    assert out.overruled == (("Says", "deny", "no"),)


def test_rules_look_at_the_rewritten_event():
    engine = Engine([Says(Rewrite(command="ls"))], permissions={"deny": ["bash(rm *)"]})
    assert engine.decide(call()).decision is None


@pytest.mark.parametrize("measure", [True, False])
def test_measure_records_quiet_hooks_with_their_time(measure):
    engine = Engine([Says(None)], permissions={"ask": ["bash"]})
    out = engine.decide(call(), measure=measure)
    assert out.decision == "ask"
    assert [record.micros > 0 for record in out.hooks] == ([True] if measure else [])


def test_rules_are_for_tool_calls_only():
    engine = Engine([Says(Allow())], permissions={"deny": ["*"]})
    event = events.PostToolExecution(tool="bash", args={}, result="x")
    assert engine.decide(event).decision is None
