"""What tests of bridges share: hooks that answer as told, and an agent as the bridge sees it."""

from __future__ import annotations

import json
from pathlib import Path

import hookturn
from hookturn import (
    Allow,
    Ask,
    Block,
    Continue,
    Deny,
    Engine,
    Inject,
    Recover,
    Reply,
    Rewrite,
    SetEnv,
    Warn,
    hookimpl,
)
from hookturn.agents import bridge
from hookturn.spec.timings import TIMINGS

DATA = Path(__file__).parent.parent / "data/captures"

ANSWERS = {
    "on_session_start": ["Inject", "SetEnv", "Block", "Warn"],
    "on_message_received": ["Rewrite", "Reply", "Inject", "Block", "Warn"],
    "on_user_prompt_submit": ["Inject", "Block", "Warn"],
    "on_turn_start": ["Inject", "SetEnv", "Warn"],
    "system_prompt": ["Inject", "Rewrite", "Warn"],
    "on_model_response": ["Rewrite", "Inject", "Block", "Warn"],
    "on_tool_call_start": ["Deny", "Ask", "Warn"],
    "pre_tool_execution": ["Rewrite", "Deny", "Ask", "Allow", "Block", "Reply", "Warn"],
    "post_tool_execution": ["Rewrite", "Deny", "Inject", "Warn"],
    "on_turn_complete": ["Continue", "Rewrite", "Block", "Inject", "Warn"],
    "on_permission_request": ["Allow", "Deny", "Warn"],
    "on_event": ["Allow", "Ask", "Block", "Deny", "Inject", "Continue", "Reply", "SetEnv", "Warn"],
    "on_session_end": ["Warn"],
}
"""What hooks of each timing may say: words that are names of answers."""

VALUES = {"SetEnv": {"A": "b"}, "Reply": {"any": "value"}}
REWRITES = {"pre_tool_execution": {"command": "true"}, "system_prompt": ["one", "two"]}


def answer(timing, word):
    """Return an answer of a kind, with some value that its timing takes."""
    make = getattr(hookturn, word)
    if word != "Rewrite":
        return make(VALUES.get(word, "some words"))
    return (
        make(args=REWRITES[timing]) if timing == "pre_tool_execution" else make(REWRITES.get(timing, "else"))
    )


SAYINGS = [
    ("on_session_start", Inject("context")),
    ("on_session_start", SetEnv({"A": "b"})),
    ("on_session_start", Block("no sessions")),
    ("on_message_received", Rewrite("other words")),
    ("on_message_received", Reply("no model needed")),
    ("on_user_prompt_submit", Inject("context")),
    ("on_user_prompt_submit", Block("no")),
    ("on_turn_start", SetEnv({"A": "b"})),
    ("system_prompt", Inject("context")),
    ("system_prompt", Rewrite(["one", "two"])),
    ("on_tool_call_start", Deny("\ud83d\0")),
    ("on_tool_call_start", Ask("sure?")),
    ("pre_tool_execution", Rewrite(args={"command": "true"})),
    ("pre_tool_execution", Ask("sure?")),
    ("pre_tool_execution", Allow("yes")),
    ("pre_tool_execution", Block("no")),
    ("pre_tool_execution", Reply({"any": "value"})),
    ("post_tool_execution", Rewrite(result="other")),
    ("post_tool_execution", Deny("secret")),
    ("post_tool_execution", Inject("context")),
    ("post_tool_execution", Recover("retry")),
    ("on_turn_complete", Continue("more")),
    ("on_turn_complete", Rewrite("other words")),
    ("on_turn_complete", Block("no")),
    ("on_error", Recover("retry")),
    ("on_permission_request", Allow("yes")),
    ("on_permission_request", Deny("no")),
    *[(timing, Warn("look")) for timing in TIMINGS if timing != "on_outcome"],
]
"""(timing, answer): what hooks say in the tests of agents with a class of their own."""


class Hooks:
    """A plugin that records every event and answers as it is told: ``says[timing] = answer or function``.

    Parameters:
        closed: timings at which it fails closed.
    """

    def __init__(self, closed=()):
        self.events = []
        self.says = {}
        for timing in TIMINGS:
            if timing != "on_outcome":
                setattr(self, timing, self._hook(timing, timing in closed))

    def _hook(self, timing, closed):
        @hookimpl(specname=timing, on_failure="deny" if closed else "ignore")
        def hook(event):
            self.events.append(event)
            said = self.says.get(timing)
            return said(event) if callable(said) else said

        return hook

    @property
    def timings(self):
        return [event.timing for event in self.events]

    def of(self, timing):
        return [event for event in self.events if event.timing == timing]


class Agent:
    """An agent as the bridge sees it. Every call has an engine of its own, as if it were a process.

    Parameters:
        name: the agent.
        check: (event, BridgeAnswer) -> the agent's view of the answer; asserts that it takes it.
        folder: for state.
        hooks: the plugin.
        options: of the Engine.
    """

    def __init__(self, name, check, folder, hooks, **options):
        self.name = name
        self.check = check
        self.folder = folder
        self.hooks = hooks
        self.options = options

    def engine(self, place):
        return Engine([("hooks", self.hooks)], state_dir=self.folder / "state", **self.options)

    def payload(self, event, **fields):
        """Return a captured payload with other fields; all of one session. None takes a field out."""
        path = DATA / self.name / f"{event}.json"
        data = json.loads(path.read_text()) if path.exists() else {"hook_event_name": event}
        data = {**data, "session_id": "session-1", "cwd": "/", **fields}
        return {key: value for key, value in data.items() if value is not None}

    def send(self, payload, engine=None, **more):
        if not isinstance(payload, bytes):
            payload = json.dumps(payload).encode()
        return bridge.answer(
            self.name, payload, environ={}, cwd=str(self.folder), engine_for=engine or self.engine, **more
        )

    def __call__(self, event, **fields):
        return self.check(event, self.send(self.payload(event, **fields)))


HOSTILE = {
    "empty": b"",
    "null": b"null",
    "array": b"[1]",
    "cut": b'{"hook_event_name": "EVENT", "tool_na',
    "types": b'{"hook_event_name": "EVENT", "session_id": [], "cwd": 5, "tool_name": {}, "tool_input": "x"}',
    "no event": b"{}",
    "event type": b'{"hook_event_name": 7}',
    "deep": b'{"hook_event_name": "EVENT", "x": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "no utf-8": b'{"hook_event_name": "EVENT", "tool_input": {"command": "\xff\xfe"}, "tool_name": "Bash"}',
}
"""Payloads that no agent should send."""


def takes_whatever_hooks_say(agent, events, prompt, timing, said):
    """Send all events of an agent while its hooks say the same; the agent checks each answer.

    Parameters:
        agent: an agent whose ``kept`` engine is used for all calls.
        events: names of its events.
        prompt: the one that begins a turn.
        timing, said: what hooks say, and where.
    """
    hooks = agent.hooks
    agent.kept = Engine([("hooks", hooks)])
    for event in events:
        hooks.says = {}
        agent(prompt)
        hooks.says[timing] = lambda seen: (
            said if seen.timing != "on_event" or type(said).__name__ in [*seen.accepts, "Warn"] else None
        )
        agent(event)
        assert not [seen for seen in hooks.of("on_error") if seen.phase == "hook"], event
