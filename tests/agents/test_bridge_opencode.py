"""``bridge opencode``: what our plugin hands over, what hooks say to it, and what the plugin is told to do."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from agent_calls import Hooks

from hookturn import Allow, Ask, Block, Continue, Deny, Engine, Inject, Reply, Rewrite, SetEnv, Warn
from hookturn.agents import bridge
from hookturn.agents.opencode import hooks as opencode
from hookturn.spec.timings import TIMINGS

CAPTURES = Path(__file__).parent.parent / "data/captures/opencode"
SESSION = "ses_dd25f89b1ffeoJ9uy9ZdwKPKTZ"
CHILD = "ses_child"
FUNCTIONS = [
    "chat.message",
    "tool.execute.before",
    "tool.execute.after",
    "shell.env",
    "experimental.chat.system.transform",
    "experimental.text.complete",
]
KEYS = {"throw", "set", "assign", "replace", "push", "message", "warn"}
"""What plugin.js knows."""


def captured(name):
    return json.loads((CAPTURES / f"{name}.json").read_text())


class Opencode:
    """opencode with our plugin. Every call has an engine of its own, as if it were a process."""

    def __init__(self, folder, hooks):
        self.folder = folder
        self.hooks = hooks
        self.parent = ""

    def send(self, payload, **more):
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        return bridge.answer(
            "opencode", data, environ={}, cwd=str(self.folder),
            engine_for=lambda place: Engine([("hooks", self.hooks)], state_dir=self.folder / "state"), **more,
        )  # fmt: skip

    def told(self, payload, **more):
        answer = self.send(payload, **more)
        assert answer.exit_code == 0
        data = json.loads(answer.stdout or b"{}")
        assert set(data) <= KEYS
        return data

    def about(self):
        about = {"directory": str(self.folder), "worktree": "/", "parent": ""}
        return {**about, "parent": SESSION, "agent": "general"} if self.parent else about

    def __call__(self, name, text="", **changes):
        """Call a function as captured, with other values of ``input`` and ``output``."""
        payload = captured(name)
        for part in ("input", "output"):
            payload[part] |= {key: value for key, value in changes.items() if key in payload[part]}
        if self.parent:
            payload["input"]["sessionID"] = CHILD
        return self.told({"hook": name, **payload, **self.about(), "text": text})

    def bus(self, type, text="", **properties):
        path = CAPTURES / f"bus/{type}.json"
        event = json.loads(path.read_text()) if path.exists() else {"type": type, "properties": {}}
        event["properties"] |= properties
        event["properties"].setdefault("sessionID", SESSION)
        if self.parent:
            event["properties"]["sessionID"] = CHILD
        return self.told({"hook": "event", "event": event, **self.about(), "text": text})

    def failed(self, error, call="call_ec577634662f4d78"):
        state = {"status": "error", "input": {"command": "ls"}, "error": error}
        part = {"type": "tool", "tool": "bash", "callID": call, "sessionID": SESSION, "state": state}
        return self.bus("message.part.updated", part=part)


@pytest.fixture
def hooks():
    return Hooks()


@pytest.fixture
def agent(tmp_path, hooks):
    return Opencode(tmp_path, hooks)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_without_hooks_there_is_nothing_to_say(tmp_path, name):
    agent = Opencode(tmp_path, object())
    assert agent(name) == {}


@pytest.mark.parametrize("row", opencode.EVENTS.values(), ids=list(opencode.EVENTS))
def test_every_row_fires_the_timings_that_it_names(agent, hooks, row):
    agent("chat.message")
    if row.does == "tool_end":
        agent("tool.execute.before")
    hooks.events.clear()
    if row.event == "message.part.updated":
        agent.failed("broken")
    elif (CAPTURES / f"{row.event}.json").exists():
        agent(row.event)
    elif row.event in ("dispose", "experimental.session.compacting"):
        agent.told({"hook": row.event, "input": {"sessionID": SESSION}, "output": {}, **agent.about()})
    else:
        error = {"name": "APIError", "data": {"message": "m"}}
        agent.bus(row.event, error=error)
    expected = set(row.timings) - {"on_permission_request"}
    assert expected <= set(hooks.timings), hooks.timings
    if not row.event.startswith("permission."):  # captured in another session
        assert hooks.of(row.timings[0])[-1].session_id == SESSION
    assert all(event.type == row.type for event in hooks.of("on_event") if row.type)


def test_a_turn_from_start_to_end(agent, hooks):
    agent.bus("session.created")
    agent("chat.message")
    agent("experimental.chat.system.transform", system=["You are opencode."])
    agent("tool.execute.before")
    agent("tool.execute.after")
    agent("experimental.text.complete")
    agent.bus("session.idle", text="Finished.")
    agent.bus("session.idle", text="Finished.")  # it comes after an error, too
    agent.bus("session.deleted")
    assert hooks.timings == [
        "on_session_start", "on_message_received", "on_user_prompt_submit", "on_turn_start", "system_prompt",
        "on_tool_call_start", "pre_tool_execution", "post_tool_execution", "on_model_response",
        "on_turn_complete", "post_turn", "on_session_end",
    ]  # fmt: skip
    (post,) = hooks.of("post_tool_execution")
    assert (post.kind, post.result_text, post.status) == ("bash", "MARK_TOOLOUT\n", "ok")
    assert hooks.of("system_prompt")[0].parts == ["You are opencode."]
    assert hooks.of("on_turn_complete")[0].text == "Finished."
    assert hooks.of("on_session_end")[0].reason == "deleted"
    assert hooks.events[1].raw["hook"] == "chat.message"


def test_prompts(agent, hooks):
    hooks.says = {
        "on_session_start": Inject("AT-START"),
        "on_message_received": Rewrite(text="other"),
        "on_user_prompt_submit": Inject("AT-PROMPT"),
    }
    agent.bus("session.created")
    assert agent("chat.message") == {"message": {"text": "other", "context": "AT-PROMPT\n\nAT-START"}}
    hooks.says = {"on_user_prompt_submit": Block("Not this one.")}
    assert "Not this one." in agent("chat.message")["throw"]
    hooks.says = {"on_message_received": Reply("42")}
    assert agent("chat.message") == {"throw": "42"}
    hooks.says = {"on_user_prompt_submit": Warn("careful")}
    assert agent("chat.message") == {"warn": ["careful"]}


def test_the_system_prompt_is_changed_in_place(agent, hooks):
    hooks.says = {"system_prompt": Inject("MORE"), "post_tool_execution": None}
    agent("chat.message")
    answer = agent("experimental.chat.system.transform", system=["own"])
    assert answer == {"replace": {"system": ["own", "MORE"]}}
    hooks.says = {"system_prompt": Rewrite(parts=["OTHER"])}
    answer = agent("experimental.chat.system.transform", system=["own"])
    assert answer == {"replace": {"system": ["OTHER"]}}


def test_tool_calls(agent, hooks):
    agent("chat.message")
    for answer, told in (
        (
            Rewrite(command="ls -l"),
            {"assign": {"args": {"command": "ls -l", "description": "Run a command"}}},
        ),
        (Allow("fine"), {}),
        (Warn("careful"), {"warn": ["careful"]}),
    ):
        hooks.says = {"pre_tool_execution": answer}
        assert agent("tool.execute.before", callID=f"call_{told}") == told
    for answer, reason in ((Deny("No."), "No."), (Ask("Sure?"), "Sure?"), (Reply("42"), "42")):
        hooks.says = {"pre_tool_execution": answer}
        assert reason in agent("tool.execute.before", callID=reason)["throw"]
    assert [event.status for event in hooks.of("post_tool_execution")] == ["denied", "denied", "replied"]


def test_a_block_ends_the_turn_with_the_next_request(agent, hooks):
    agent("chat.message")
    hooks.says = {"pre_tool_execution": Block("enough")}
    assert "enough" in agent("tool.execute.before")["throw"]
    hooks.says = {}
    assert "ended" in agent("experimental.chat.system.transform", system=["own"])["throw"]
    assert not hooks.of("system_prompt")
    agent.bus("session.error", error={"name": "UnknownError", "data": {"message": "ended"}})
    agent.bus("session.idle")
    assert len(hooks.of("on_turn_complete")) == 1
    agent("chat.message")
    assert agent("tool.execute.before", callID="new") == {}


def test_results(agent, hooks):
    agent("chat.message")
    for answer, fields in (
        (Rewrite(result_text="other"), {"output": "other"}),
        (Inject("READ ME"), {"output": "MARK_TOOLOUT\n\n\nREAD ME"}),
        (Deny("secret"), None),
    ):
        agent("tool.execute.before", callID=str(answer))
        hooks.says = {"post_tool_execution": answer}
        changed = agent("tool.execute.after", callID=str(answer))["set"]
        assert "MARK" not in changed["output"] or fields["output"] == changed["output"]
        if fields is None:
            assert "secret" in changed["output"]
            assert "MARK" not in json.dumps(changed["metadata"])
        else:
            assert changed["output"] == fields["output"]


def test_an_mcp_result_keeps_its_shape(agent, hooks):
    agent("chat.message")
    hooks.says = {"post_tool_execution": Rewrite(result_text="other")}
    payload = captured("tool.execute.after")
    payload["output"] = {"content": [{"type": "text", "text": "own"}]}
    changed = agent.told({"hook": "tool.execute.after", **payload, **agent.about()})
    assert changed == {"set": {"content": [{"type": "text", "text": "other"}]}}


def test_a_failed_call(agent, hooks):
    agent("chat.message")
    agent("tool.execute.before")
    agent.failed("The user rejected permission to use this specific tool call.")
    agent("tool.execute.before", callID="call_2")
    agent.failed("File not found", "call_2")
    agent("tool.execute.before", callID="call_3")
    agent("tool.execute.after", callID="call_3", metadata={"exit": 3}, output="")
    assert [event.status for event in hooks.of("post_tool_execution")] == ["denied", "error", "error"]


def test_variables_are_given_to_each_command(agent, hooks):
    hooks.says = {"on_session_start": SetEnv({"A": "1"}), "on_turn_start": SetEnv({"B": "2"})}
    agent.bus("session.created")
    assert agent("chat.message") == {}
    assert agent("shell.env") == {"assign": {"env": {"A": "1", "B": "2"}}}
    hooks.says = {"on_event": lambda event: SetEnv({"B": "3"}) if event.type == "shell.env" else None}
    assert agent("shell.env") == {"assign": {"env": {"A": "1", "B": "3"}}}


def test_a_summary_gets_context(agent, hooks):
    agent("chat.message")
    hooks.says = {"on_event": Inject("Keep the plan.")}
    payload = {
        "hook": "experimental.session.compacting",
        "input": {"sessionID": SESSION},
        "output": {"context": []},
    }
    assert agent.told({**payload, **agent.about()}) == {"push": {"context": ["Keep the plan."]}}


def test_words_and_a_turn_that_cannot_go_on(agent, hooks):
    agent("chat.message")
    hooks.says = {"on_model_response": Rewrite(text="other"), "on_turn_complete": Continue("go on")}
    assert agent("experimental.text.complete") == {"set": {"text": "other"}}
    (warning,) = agent.bus("session.idle", text="other")["warn"]
    assert "go on" in warning


def test_a_sub_agent_is_part_of_the_session(agent, hooks):
    agent("chat.message")
    agent.parent = SESSION
    agent("chat.message")
    agent("experimental.chat.system.transform", system=["own"])
    agent("tool.execute.before", callID="c1")
    agent("tool.execute.after", callID="c1")
    agent.bus("session.idle", text="Sub.")
    agent.parent = ""
    agent.bus("session.idle", text="Main.")
    assert {event.session_id for event in hooks.events} == {SESSION}
    assert [(event.agent, event.text) for event in hooks.of("on_turn_complete")] == [
        ("general", "Sub."),
        ("main", "Main."),
    ]
    assert [event.agent for event in hooks.of("system_prompt")] == ["general"]
    assert [event.type for event in hooks.of("on_event")] == ["subagent.start", "subagent.stop"]


def test_every_capture_has_a_valid_answer(agent, hooks):
    hooks.says = dict.fromkeys(TIMINGS, Warn("careful"))
    for path in sorted(CAPTURES.glob("*.json")):
        agent.told({"hook": path.stem, **captured(path.stem), **agent.about()})
    for path in sorted(CAPTURES.glob("bus/*.json")):
        agent.told({"hook": "event", "event": json.loads(path.read_text()), **agent.about()})


BROKEN = [
    b"", b"null", b"[]", b"{", b'{"hook": 5}', b'{"hook": "event"}', b'{"hook": "event", "event": []}',
    b'{"hook": "tool.execute.before", "input": [], "output": null}',
    b'{"hook": "tool.execute.before", "input": {"tool": "bash"}, "output": {"args": "ls"}}',
    b'{"hook": "experimental.chat.system.transform", "input": {}, "output": {"system": "x"}}',
    b'{"hook": "chat.message", "input": {}, "output": {"parts": {}}}',
    b'\xef\xbb\xbf{"hook": "tool.execute.before", "input": {"tool": "\\ud800"}, "output": {"args": []}}',
]  # fmt: skip


@pytest.mark.parametrize("payload", BROKEN)
def test_broken_payloads(tmp_path, payload):
    memory = tmp_path / "memory"
    for closed in ((), ("pre_tool_execution", "on_user_prompt_submit", "system_prompt")):
        agent = Opencode(tmp_path, Hooks(closed))
        agent.told({"hook": "chat.message", **captured("chat.message"), **agent.about()}, memory=memory)
        agent("chat.message")
        answer = agent.send(payload, memory=memory)
        assert answer.stderr.startswith("hookturn: ")
        data = json.loads(answer.stdout or b"{}")
        assert set(data) == ({"throw"} if closed else set()), answer


def test_closed_events_are_functions_of_the_plugin():
    kept = {
        row.event for row in opencode.EVENTS.values() if row.does in ("tool", "permission", "session_start")
    }
    assert kept == {"tool.execute.before", "session.created"}
