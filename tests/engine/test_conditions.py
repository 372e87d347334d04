"""Other agents' matchers as a hook's ``condition``: asked for each event, whatever else it looks at."""

from __future__ import annotations

import pytest

from hookturn import Deny, Engine, events, hookimpl


class Plain:
    @hookimpl
    def post_tool_execution(self, event):
        return Deny("seen")


class WithContext:
    @hookimpl
    def post_tool_execution(self, event, ctx):
        return Deny("seen")


def fired(engine, tool, status):
    event = events.PostToolExecution(tool=tool, args={}, status=status, session_id="s")
    return engine.fire(event).decision == "deny"


@pytest.mark.parametrize("plugin", [Plain(), WithContext()])
def test_a_condition_is_asked_for_each_event(plugin):
    def only_failed_reads(event):
        return "" if event.tool == "read" and event.status == "error" else "another call"

    engine = Engine()
    engine.register(plugin, "hook", options={"condition": only_failed_reads})
    seen = [
        fired(engine, *call)
        for call in (("bash", "error"), ("read", "error"), ("read", "ok"), ("read", "error"))
    ]
    assert seen == [False, True, False, True]


def test_explain_tells_why_it_does_not_concern_the_hook():
    engine = Engine()
    engine.register(Plain(), "hook", options={"condition": lambda event: "not today"})
    out = engine.fire(events.PostToolExecution(tool="bash", args={}), measure=True)
    assert [(record.matched, record.why) for record in out.hooks] == [(False, "not today")]
