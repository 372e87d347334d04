"""Qwen Code's chats in their variants."""

from __future__ import annotations

import json
from itertools import count

import pytest

from hookturn.agents import recorded as r


@pytest.fixture
def c():
    """Make lines as Qwen Code writes them."""
    return Lines()


class Lines:
    def __init__(self):
        self._numbers = count(1)

    def line(self, kind, role="", parts=(), **fields):
        number = next(self._numbers)
        made = {
            "uuid": f"u{number}",
            "parentUuid": None,
            "sessionId": "s1",
            "timestamp": f"2026-01-01T00:00:{number:02d}.000Z",
            "type": kind,
            "cwd": "/w",
            "version": "0.24.4",
        }
        if role:
            made["message"] = {"role": role, "parts": list(parts)}
        return {**made, **fields}

    def prompt(self, text, **fields):
        return self.line("user", "user", [{"text": text}], **fields)

    def answer(self, *parts, tokens=100, **fields):
        usage = {"promptTokenCount": tokens, "candidatesTokenCount": 5, "thoughtsTokenCount": 2}
        if tokens:
            fields["usageMetadata"] = usage
        return self.line("assistant", "model", parts, model="q", **fields)

    def result(self, call, output=None, name="read_file", **about):
        response = {"functionResponse": {"id": call, "name": name, "response": output or {"output": "done"}}}
        return self.line("tool_result", "user", [response], toolCallResult={"callId": call, **about})


def use(call, name="read_file", **args):
    return {"functionCall": {"id": call, "name": name, "args": args or {"file_path": "a.py"}}}


def test_a_whole_session(told, c):
    steps = told(
        [
            c.line("system", subtype="ui_telemetry", systemPayload={"uiEvent": {}}),
            c.prompt("go"),
            c.answer({"text": "hm", "thought": True}, {"text": "I look."}, use("c1")),
            c.result("c1", status="success", durationMs=500),
            c.answer({"text": "Done."}, tokens=150),
            c.prompt("more"),
            c.answer({"text": "More."}, tokens=200),
        ]
    )
    assert steps.prompts == ["go", "more"]
    assert steps.answers == ["I look.", "Done.", "More."]
    assert steps.calls == [("read_file", "ok", "")]
    assert steps.end_of("c1").duration == 0.5
    assert steps.turns == ["Done.", "More."]
    assert steps.tokens == {"input_tokens": 450, "output_tokens": 15, "reasoning_tokens": 6}


def test_an_answer_in_two_lines(told, c):
    steps = told(
        [
            c.prompt("go"),
            c.answer({"text": "I look."}),
            c.answer(use("c1"), tokens=0),
            c.result("c1", status="success"),
            c.answer({"text": "Done."}),
        ]
    )
    assert steps.answers == ["I look.", "Done."]
    assert steps.tokens["input_tokens"] == 200


@pytest.mark.parametrize(
    ("output", "about", "status"),
    [
        ({"output": "fine"}, {"status": "success"}, "ok"),
        ({"output": "Output: x\nExit Code: 0"}, {"status": "success"}, "ok"),
        ({"output": "Output: x\nExit Code: 2"}, {"status": "success"}, "error"),
        ({"error": "no such file"}, {"status": "error", "errorType": "file_not_found"}, "error"),
        ({"error": "no"}, {"status": "error", "errorType": "execution_denied"}, "denied"),
        ({"error": "no"}, {"status": "error", "errorType": "blocked_by_hook"}, "denied"),
        ({"error": "stop"}, {"status": "cancelled"}, "cancelled"),
        ({"error": "no status"}, {}, "error"),
    ],
)
def test_how_a_call_ended(told, c, output, about, status):
    lines = [
        c.prompt("go"),
        c.answer(use("c1", "run_shell_command", command="x")),
        c.result("c1", output, **about),
    ]
    steps = told([*lines, c.answer({"text": "Done."})])
    assert steps.calls == [("run_shell_command", status, "")]
    assert steps.end_of("c1").result == output


def test_what_is_no_prompt_and_what_is_another(told, c):
    steps = told(
        [
            c.prompt("go", provenance="real_user"),
            c.answer({"text": "Done."}),
            c.prompt("context", provenance="system"),
            c.prompt("<task-notification>\n<task-id>x</task-id>\n</task-notification>"),
            c.answer({"text": "Noted."}),
        ]
    )
    assert [prompt.origin for prompt in steps.of(r.Prompt)] == ["user", "task-notification"]
    assert steps.turns == ["Done.", "Noted."]


def test_failures_and_compression(told, c):
    error = {"event.name": "qwen-code.api_error", "error_type": "quota", "error_message": "Quota is gone"}
    steps = told(
        [
            c.prompt("go"),
            c.line("system", subtype="ui_telemetry", systemPayload={"uiEvent": error}),
            c.prompt("again"),
            c.answer({"text": "Done."}),
            c.line("system", subtype="chat_compression", systemPayload={"compressedHistory": []}),
        ]
    )
    assert [(one.error_type, one.message) for one in steps.of(r.Failure)] == [("quota", "Quota is gone")]
    assert [event.type for event in steps.of(r.HostEvent)] == ["compaction.after"]
    assert steps.turns == ["", "Done."]


def test_repeated_lines_count_once(told, c):
    lines = [
        c.prompt("go"),
        c.answer({"text": "I look."}, use("c1")),
        c.result("c1"),
        c.answer({"text": "Done."}),
    ]
    assert told([*lines, *lines]).kinds == told(lines).kinds


def test_calls_without_an_end(told, c):
    steps = told([c.prompt("go"), c.answer(use("c1"), use("c2")), c.result("c1")])
    assert steps.calls == [("read_file", "ok", ""), ("read_file", "unknown", "")]
    assert steps.of(r.SessionFinish)[0].reason == "interrupted"


def test_sub_agents(told, c, tmp_path):
    folder = tmp_path / "subagents" / "s1"
    folder.mkdir(parents=True)
    inner = [
        c.prompt("look left", isSidechain=True),
        c.answer(use("i1"), isSidechain=True),
        c.result("i1"),
        c.answer({"text": "Left is fine."}, isSidechain=True),
    ]
    text = "".join(json.dumps(line) + "\n" for line in inner)
    (folder / "agent-explorer-c1.jsonl").write_text(text, encoding="utf-8")
    steps = told(
        [
            c.prompt("go"),
            c.answer(use("c1", "agent", prompt="look left", subagent_type="explorer")),
            c.result("c1", status="success"),
            c.answer({"text": "Done."}),
        ],
        name="chats/s1.jsonl",
    )
    assert steps.agents == ["explorer"]
    assert steps.calls == [("agent", "ok", ""), ("read_file", "ok", "explorer-c1")]
    assert steps.of(r.SubagentEnd)[0].text == "Left is fine."
    assert steps.prompts == ["go"]
