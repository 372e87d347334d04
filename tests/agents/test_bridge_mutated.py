"""Every agent's captured payloads, changed at random: whatever comes, the answer is one that this agent takes."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

import claude_answers
import codex_answers
import copilot_answers
import gemini_answers
import module_answers
import qwen_answers
from agent_calls import DATA, SAYINGS, Hooks

from hookturn import Deny, Engine
from hookturn.agents import bridge

FOLDERS = {
    "claude": "claude-code",
    "codex": "codex",
    "gemini": "gemini",
    "qwen": "qwen",
    "copilot": "copilot",
    "copilot-pascal": "copilot",
    "opencode": "opencode",
}
"""Folder of captures -> its agent."""

assert {path.name for path in DATA.iterdir()} == set(FOLDERS), "no capture is left out"

CHECKS = {
    "claude-code": claude_answers.check,
    "codex": codex_answers.check,
    "gemini": gemini_answers.check,
    "qwen": qwen_answers.check,
    "copilot": copilot_answers.check,
    "opencode": module_answers.opencode,
    "rolebox": module_answers.rolebox,
    "atomcode": module_answers.atomcode,
}


def captured(folder):
    """Yield (event as its entry names it, payload) of all captures in a folder."""
    for path in sorted((DATA / folder).rglob("*.json")):
        data = json.loads(path.read_text())
        if folder == "opencode":
            hook = (
                {"hook": "event", "event": data} if path.parent.name == "bus" else {"hook": path.stem, **data}
            )
            data = {**hook, "directory": "/", "worktree": "/", "parent": "", "text": ""}
        yield path.stem.partition(".")[0] if folder.startswith("copilot") else "", data


def written(agent):
    """Yield payloads of agents that were not recorded, as their documents have them."""
    if agent == "rolebox":
        common = {"sessionID": "s", "directory": "/", "agent": "build", "parent": ""}
        call = {"tool": "bash", "args": {"command": "ls"}}
        for hook, handed in {
            "chat.message": {"text": "hello"},
            "tool.execute.before": call,
            "tool.execute.after": {**call, "output": "out"},
            "system.transform": {"system": ["one", "two"]},
            "dispose": {},
        }.items():
            yield "", {"hook": hook, "input": handed, **common}
        for kind in ("session.created", "session.idle", "session.error", "file.edited", "new.kind"):
            properties = {"sessionID": "s", "error": {"name": "E", "data": {"message": "m"}}}
            yield "", {"hook": "event", "input": {"type": kind, "properties": properties}, **common}
        return
    common = {"session_id": "s", "cwd": "/", "transcript_path": None, "call_id": "c"}
    fields = {
        "prompt": "hello",
        "tool_name": "bash",
        "tool_input": {"command": "ls"},
        "tool_response": "out",
        "stop_reason": "Stopped",
    }
    for event in bridge.hooks_of("atomcode").EVENTS:
        old = {"tool_args": '{"command": "ls"}', "tool_result": "out", "tool_success": True}
        more = {**old, "tool_name": "bash"} if event.islower() else fields
        yield "", {"hook_event_name": event, **common, **more}


PAYLOADS = {agent: [] for agent in CHECKS}
for folder, agent in FOLDERS.items():
    PAYLOADS[agent] += captured(folder)
for agent in ("rolebox", "atomcode"):
    PAYLOADS[agent] += written(agent)

NAMES = ("hook_event_name", "hookName", "hook", "type")
"""Fields that tell which event it is."""

CALL = (
    "tool_name",
    "toolName",
    "tool",
    "tool_input",
    "toolInput",
    "toolArgs",
    "tool_args",
    "args",
    "command",
)
"""Fields that tell what is called."""

KEYS = sorted(
    {key for payloads in PAYLOADS.values() for _, payload in payloads for key in payload} - {*NAMES}
)
"""Fields of all agents: a payload may have another agent's."""

texts = st.text(st.characters(codec=None), max_size=20)
huge = st.sampled_from(
    ["x" * 200_000, "\U0001f600" * 20_000, "\0\ud800" * 1000, "\n" * 5000, 10**300, -(10**4000)]
)
values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | texts | huge,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


def places(data, kept, at=()):
    """Return the paths of all fields that may change."""
    found = []
    for key, value in data.items():
        if key in kept:
            continue
        found.append((*at, key))
        if isinstance(value, dict):
            found += places(value, kept, (*at, key))
    return found


@st.composite
def mutated(draw, payloads, kept=()):
    """A payload with fields changed, taken out or added, and the event that its entry names.

    Parameters:
        kept: fields that stay as they are, and are not added.
    """
    event, payload = draw(st.sampled_from(payloads))
    payload = json.loads(json.dumps(payload))
    for path in draw(st.lists(st.sampled_from(places(payload, kept)), max_size=4)):
        inside = payload
        for key in path[:-1]:
            inside = inside.get(key) if isinstance(inside, dict) else None
        if not isinstance(inside, dict):
            continue
        if draw(st.booleans()):
            inside.pop(path[-1], None)
        else:
            inside[path[-1]] = draw(values)
    keys = st.sampled_from([key for key in KEYS if key not in kept]) | texts
    payload.update(draw(st.dictionaries(keys, values, max_size=2)))
    return event, payload


def sent(agent, event, payload, engine):
    return bridge.answer(
        agent,
        json.dumps(payload).encode(),
        environ={},
        cwd="/",
        engine_for=lambda place: engine,
        event=event,
    )


def accepted(agent, event, payload, answer):
    """Assert that the agent takes an answer: of the event that it meant, as its entry or the payload says."""
    said = payload.get("hook_event_name") if agent == "copilot" else None
    name = (said if isinstance(said, str) else "") or event or bridge.hooks_of(agent).event_name(payload)
    if name:
        return CHECKS[agent](name, answer)
    assert answer.exit_code == 0
    data = json.loads(answer.stdout or b"{}")
    assert isinstance(data, dict)
    return data


CLOSED = ([], ["pre_tool_execution"], ["on_message_received", "post_tool_execution"])
"""Timings at which the hooks fail closed."""


@pytest.mark.parametrize("agent", CHECKS)
@settings(max_examples=300)
@given(data=st.data())
def test_a_changed_payload_gets_an_answer_that_the_agent_takes(agent, data):
    event, payload = data.draw(mutated(PAYLOADS[agent]))
    hooks = Hooks(closed=data.draw(st.sampled_from(CLOSED)))
    for timing, said in data.draw(st.lists(st.sampled_from(SAYINGS), max_size=4)):
        hooks.says[timing] = said
    answer = sent(agent, event, payload, Engine([("hooks", hooks)]))
    accepted(agent, event, payload, answer)
    assert "Traceback" not in answer.stderr


def is_call(agent, payload):
    hooks = bridge.hooks_of(agent)
    row = hooks.EVENTS.get(hooks.event_name(payload))
    return row is not None and row.does == "tool"


CALLS = {agent: [pair for pair in pairs if is_call(agent, pair[1])] for agent, pairs in PAYLOADS.items()}


@pytest.mark.parametrize("agent", CHECKS)
@settings(max_examples=200)
@given(data=st.data())
def test_a_guard_is_asked_whatever_else_a_payload_holds(agent, data):
    event, payload = data.draw(mutated(CALLS[agent], kept=(*NAMES, *CALL, "input", "output")))
    hooks = Hooks(closed=["pre_tool_execution"])
    hooks.says["pre_tool_execution"] = Deny("Not today.")
    answer = sent(agent, event, payload, Engine([("hooks", hooks)]))
    assert "Not today." in json.dumps(accepted(agent, event, payload, answer)), answer


@pytest.mark.parametrize(
    "more", [{"prompt": "p"}, {"source": "s"}, {"toolResult": {}}, {"error": "e"}, {"errorContext": "c"}]
)
def test_copilots_entry_tells_the_event_not_a_field_that_is_new(more):
    """A later version's preToolUse may have a field that told another event so far."""
    payload = json.loads((DATA / "copilot/preToolUse.json").read_text())
    hooks = Hooks()
    hooks.says["pre_tool_execution"] = Deny("Not today.")
    answer = sent("copilot", "preToolUse", {**payload, **more}, Engine([("hooks", hooks)]))
    assert "Not today." in copilot_answers.check("preToolUse", answer)["permissionDecisionReason"]
