"""A payload that cannot be read is refused in the form of its event, by the very entry that install writes."""

from __future__ import annotations

import json
import shlex
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from agent_calls import Hooks

from hookturn import Engine
from hookturn.agents import bridge
from hookturn.project.installer import plan
from hookturn.spec.timings import TIMINGS

BY_COMMAND = ("atomcode", "claude-code", "codex", "copilot", "gemini", "qwen")
# Qwen Code's PostToolBatch is left out: the main agent's turn is ended right after it, not by what it answers.
ROWS = [
    (agent, event)
    for agent in BY_COMMAND
    for event, row in sorted(bridge.hooks_of(agent).EVENTS.items())
    if row.install and row.decides and (agent, event) != ("qwen", "PostToolBatch")
]


def entries(value):
    """Return all entries with a command line in an agent's configuration."""
    if isinstance(value, dict):
        if isinstance(value.get("command", value.get("bash")), str):
            yield value
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from entries(item)


def installed(agent, event, tmp_path):
    """Return the words of the command that install enters for an event."""
    for change in plan(agent, project=str(tmp_path), user=False, environ={"HOME": str(tmp_path)}):
        hooks = json.loads(change.new)["hooks"]
        found = [hooks[event]] if event in hooks else [e for e in hooks.values() if e["event"] == event]
        for entry in entries(found):
            return shlex.split(entry.get("command", entry.get("bash")))
    raise AssertionError(f"{agent}: {event} is not installed")


def said(answer):
    return json.loads(answer.stdout) if answer.stdout else {}


@pytest.mark.parametrize(("agent", "event"), ROWS)
def test_an_empty_payload_is_refused_in_the_events_form(tmp_path, agent, event):
    hooks = bridge.hooks_of(agent)
    words = installed(agent, event, tmp_path)
    named = words[words.index("--event") + 1] if "--event" in words else ""
    answer = bridge.answer(
        agent,
        b"",
        environ={},
        cwd=str(tmp_path),
        engine_for=lambda place: Engine([Hooks(closed=TIMINGS)]),
        event=named,
    )
    form = hooks.refusal(hooks.EVENTS[event], "x")
    assert answer.exit_code == form.exit_code
    assert form.stdout or form.exit_code == 2
    got = said(answer)
    for key, value in said(form).items():
        if isinstance(value, dict):
            assert got[key].keys() >= value.keys() - {"hookEventName"}
            assert got[key].get("hookEventName", event) == event
        elif value == "x":
            assert "fails closed" in got[key]
        else:
            assert got[key] == value
