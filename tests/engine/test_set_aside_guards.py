"""A plugin that is set aside after failures keeps its hooks that fail closed."""

from __future__ import annotations

import pytest

from hookturn import Deny, Engine, events, hookimpl


@pytest.mark.parametrize("options", [{"guard": True}, {"on_failure": "deny"}])
def test_hooks_that_fail_closed_outlive_their_plugins_failures(options):
    class Plugin:
        @hookimpl
        def on_turn_start(self):
            raise RuntimeError("broken")

        @hookimpl(**options)
        def pre_tool_execution(self):
            return Deny("guarded")

    with Engine(plugins=[Plugin()]) as engine:
        for _ in range(6):
            last = engine.fire(events.TurnStart(session_id="s"))
        assert not last.failures, "the failing hook is set aside"
        call = events.PreToolExecution(session_id="s", tool="bash", args={})
        assert engine.fire(call).decision == "deny"
