"""A trusted project's always_allow covers a command line rule by rule, as everybody's does."""

from __future__ import annotations

import pytest

from hookturn import Engine, events
from hookturn.engine.match import Rule
from hookturn.project.standins import allowance


@pytest.mark.parametrize(
    ("command", "decision"), [("ls x", "allow"), ("ls x && cat y", "allow"), ("ls x && rm y", None)]
)
def test_rules_cover_a_line_together(command, decision) -> None:
    rules = [Rule("bash(ls *)", "a"), Rule("bash(cat *)", "b")]
    with Engine([allowance(rules)]) as engine:
        out = engine.fire(events.PreToolExecution(tool="bash", args={"command": command}))
    assert out.decision == decision
