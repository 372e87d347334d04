"""Copilot CLI's session events in all their variants."""

from __future__ import annotations

from itertools import count

import pytest

from hookturn.agents import recorded as r


@pytest.fixture
def c():
    """Make lines as Copilot CLI writes them."""
    return Lines()


class Lines:
    def __init__(self):
        self._numbers = count(1)

    def __call__(self, kind, agent="", **data):
        number = next(self._numbers)
        made = {
            "type": kind,
            "data": data,
            "id": f"e{number}",
            "timestamp": f"2026-01-01T00:00:{number:02d}.000Z",
            "parentId": None,
        }
        return {**made, "agentId": agent} if agent else made

    def start(self, **data):
        return self("session.start", sessionId="s1", selectedModel="m", context={"cwd": "/w"}, **data)

    def prompt(self, text, **data):
        return self("user.message", content=text, **data)

    def answer(self, text="", *calls, agent="", **data):
        requests = [
            {"toolCallId": one, "name": "bash", "arguments": {"command": one}, "type": "function"}
            for one in calls
        ]
        return self("assistant.message", agent, content=text, toolRequests=requests, **data)

    def record(self, tokens, agent="", **data):
        return self(
            "session.usage_record", agent, usage={"model": "m", "inputTokens": tokens, "outputTokens": 5, **data}
        )  # fmt: skip

    def begin(self, call, name="bash", agent="", **data):
        return self(
            "tool.execution_start", agent, toolCallId=call, toolName=name, arguments={"command": call}, **data
        )

    def end(self, call, content="done", agent="", success=True, **data):
        result = {"content": content, "detailedContent": content}
        return self("tool.execution_complete", agent, toolCallId=call, success=success, result=result, **data)


# -- answers and tokens


def test_records_come_before_their_answer(told, c):
    steps = told(
        [
            c.start(), c.prompt("go"),
            c.record(100, apiCallId="a1"), c.answer("I look.", "t1", apiCallId="a1"), c.begin("t1"), c.end("t1"),
            c("assistant.turn_end", turnId="0"),
            c.record(150, apiCallId="a2"), c.answer("Done.", apiCallId="a2"), c("assistant.turn_end", turnId="1"),
        ]
    )  # fmt: skip
    assert steps.answers == ["I look.", "Done."]
    assert [answer.usage["input_tokens"] for answer in steps.of(r.Response)] == [100, 150]
    assert steps.calls == [("bash", "ok", "")]
    assert steps.turns == ["Done."]


def test_usage_comes_after_the_answer(told, c):
    """As ``assistant.usage``, which is ephemeral in the programs that write it at all."""
    steps = told(
        [
            c.start(), c.prompt("go"),
            c.answer("I look.", "t1"),
            {**c("assistant.usage", model="m", inputTokens=100, outputTokens=5), "ephemeral": True},
            c.begin("t1"), c.end("t1"),
            c.answer("Done."), c("assistant.usage", model="m", inputTokens=150, outputTokens=5),
        ]
    )  # fmt: skip
    assert steps.answers == ["I look.", "Done."]
    assert steps.tokens == {"input_tokens": 250, "output_tokens": 10}


def test_both_kinds_of_usage_count_once(told, c):
    usage = {"model": "m", "inputTokens": 100, "outputTokens": 5, "apiCallId": "a1"}
    steps = told(
        [
            c.start(), c.prompt("go"),
            c("session.usage_record", usage=usage), c("assistant.usage", **usage),
            c.answer("Done.", apiCallId="a1"),
        ]
    )  # fmt: skip
    assert steps.tokens == {"input_tokens": 100, "output_tokens": 5}


def test_usage_without_an_answer_counts(told, c):
    steps = told(
        [
            c.start(), c.prompt("go"),
            c.record(100, apiCallId="a1"), c.record(150, apiCallId="a2"), c.answer("Done.", apiCallId="a2"),
        ]
    )  # fmt: skip
    assert steps.answers == ["", "Done."]
    assert steps.tokens["input_tokens"] == 250


def test_totals_tell_what_answers_do_not(told, c):
    """Older versions record the output's tokens with each message, and all of them at the end."""
    metrics = {
        "m": {
            "requests": {"count": 2, "cost": 1},
            "usage": {"inputTokens": 250, "outputTokens": 12, "cacheReadTokens": 20, "cacheWriteTokens": 0},
        }
    }
    steps = told(
        [
            c.start(), c.prompt("go"),
            c.answer("I look.", "t1", outputTokens=7), c.begin("t1"), c.end("t1"), c.answer("Done.", outputTokens=5),
            c("session.shutdown", shutdownType="routine", modelMetrics=metrics),
        ]
    )  # fmt: skip
    assert steps.tokens == {"output_tokens": 12}
    finish = steps.of(r.SessionFinish)[0]
    assert finish.reason == "complete"
    assert finish.usage == {"input_tokens": 250, "cache_read_tokens": 20}


def test_totals_that_agree_add_nothing(told, c):
    metrics = {"m": {"usage": {"inputTokens": 100, "outputTokens": 5}}}
    steps = told(
        [
            c.start(), c.prompt("go"), c.record(100), c.answer("Done."),
            c("session.shutdown", shutdownType="routine", modelMetrics=metrics),
        ]
    )  # fmt: skip
    assert steps.of(r.SessionFinish)[0].usage == {}


def test_one_answer_in_two_messages(told, c):
    steps = told(
        [
            c.start(), c.prompt("go"),
            c.answer("I look.", apiCallId="a1"), c.answer("", "t1", apiCallId="a1"),
            c("assistant.usage", model="m", inputTokens=100, outputTokens=5, apiCallId="a1"),
            c.begin("t1"), c.end("t1"), c.answer("Done.", apiCallId="a2"),
        ]
    )  # fmt: skip
    assert steps.answers == ["I look.", "Done."]
    assert [call["id"] for call in steps.of(r.Response)[0].tool_calls] == ["t1"]


# -- calls and how they ended


@pytest.mark.parametrize(
    ("fields", "status"),
    [
        ({}, "ok"),
        ({"shellExecution": {"exitCode": 0}}, "ok"),
        ({"shellExecution": {"exitCode": 2}}, "error"),
        ({"toolTelemetry": {"metrics": {"exit_code": 3}}}, "error"),
        ({"content": "bad\n<exited with exit code 1>"}, "error"),
        ({"content": "bad\n<shellId: 0 completed with exit code 1>"}, "error"),
        ({"content": "fine\n<exited with exit code 0>"}, "ok"),
        ({"content": "<exited with exit code 1> is what it prints\n<exited with exit code 0>"}, "ok"),
        ({"success": False, "error": {"message": "no such file", "code": "failure"}}, "error"),
        ({"success": False, "error": {"message": "no", "code": "denied"}}, "denied"),
        ({"success": False, "error": {"message": "no", "code": "rejected"}}, "denied"),
        ({"success": False, "error": {"message": "stopped", "code": "aborted"}}, "cancelled"),
        ({"success": False, "error": "in words"}, "error"),
    ],
)
def test_how_a_call_ended(told, c, fields, status):
    steps = told(
        [
            c.start(),
            c.prompt("go"),
            c.answer("", "t1"),
            c.begin("t1"),
            c.end("t1", **fields),
            c.answer("Done."),
        ]
    )
    assert steps.calls == [("bash", status, "")]
    end = steps.end_of("t1")
    assert end.duration == 1.0
    assert bool(end.error) == (status != "ok")


def test_only_shells_have_exit_codes_in_their_text(told, c):
    steps = told(
        [
            c.start(), c.prompt("go"), c.answer("", "t1"), c.begin("t1", "view"),
            c.end("t1", "the log says\n<exited with exit code 1>"), c.answer("Done."),
        ]
    )  # fmt: skip
    assert steps.calls == [("view", "ok", "")]


def test_a_requested_call_that_never_started(told, c):
    steps = told([c.start(), c.prompt("go"), c.answer("", "t1", "t2"), c.begin("t1"), c.end("t1")])
    assert steps.calls == [("bash", "ok", ""), ("bash", "unknown", "")]
    assert steps.of(r.SessionFinish)[0].reason == "interrupted"


def test_an_abort_cancels_what_runs(told, c):
    steps = told(
        [
            c.start(), c.prompt("go"), c.answer("I look.", "t1", "t2"), c.begin("t1"),
            c("abort", reason="user initiated"),
            c.end("t1", "late"), c.prompt("again"), c.answer("Done."),
        ]
    )  # fmt: skip
    assert steps.calls == [("bash", "cancelled", ""), ("bash", "cancelled", "")]
    assert steps.prompts == ["go", "again"]
    assert steps.turns == ["I look.", "Done."]


def test_mcp_calls(told, c):
    steps = told(
        [
            c.start(), c.prompt("go"), c.answer("", "t1"),
            c.begin("t1", "notes-find", mcpServerName="notes", mcpToolName="find"), c.end("t1"), c.answer("Done."),
        ]
    )  # fmt: skip
    assert steps.of(r.ToolBegin)[0].mcp == ("notes", "find")


def test_results_in_other_shapes(told, c):
    steps = told(
        [
            c.start(), c.prompt("go"), c.answer("", "t1", "t2", "t3"),
            c.begin("t1"), c("tool.execution_complete", toolCallId="t1", success=True, result="text"),
            c.begin("t2"), c("tool.execution_complete", toolCallId="t2", success=True),
            c.begin("t3"), c("tool.execution_complete", toolCallId="t3", success=True,
                             result={"content": "x", "contents": [{"type": "image", "data": "AAAA"}]}),
            c.answer("Done."),
        ]
    )  # fmt: skip
    assert [end.result for end in steps.of(r.ToolEnd)] == [
        "text",
        None,
        {"content": "x", "contents": [{"type": "image", "data": "AAAA"}]},
    ]


def test_events_that_are_told_again_count_once(told, c):
    lines = [c.start(), c.prompt("go"), c.answer("", "t1"), c.begin("t1"), c.end("t1"), c.answer("Done.")]
    assert told([*lines, *lines]).kinds == told(lines).kinds


# -- prompts


def test_what_is_a_prompt(told, c):
    steps = told(
        [
            c.start(),
            c.prompt("go", delivery="idle"),
            c.prompt("<skill-context>\nhow to\n</skill-context>", source="skill-pdf"),
            c("system.message", content="You are", role="system"),
            c.answer("", "t1"),
            c.begin("t1"),
            c.prompt("and quickly", delivery="steering"),
            c.end("t1"),
            c.answer("Done."),
            c.prompt("more", delivery="queued"),
            {**c.prompt("never mind"), "ephemeral": True},
            c.answer("More."),
        ]
    )
    assert [(prompt.text, prompt.within) for prompt in steps.of(r.Prompt)] == [
        ("go", False),
        ("and quickly", True),
        ("more", False),
    ]
    assert steps.turns == ["Done.", "More."]


def test_attachments_come_with_the_prompt(told, c):
    picture = {"type": "file", "path": "/w/a.png", "displayName": "a.png"}
    steps = told([c.start(), c.prompt("look", attachments=[picture]), c.answer("Done.")])
    assert steps.of(r.Prompt)[0].attachments == (picture,)


# -- sub-agents


def test_sub_agents_by_their_id(told, c):
    steps = told(
        [
            c.start(), c.prompt("go"), c.record(100), c.answer("", "t1"),
            c.begin("t1", "task"),
            c("subagent.started", "a1", toolCallId="t1", agentName="explore"),
            c("user.message", "a1", content="look left"),
            c.record(50, "a1"), c.answer("", "s1", agent="a1"), c.begin("s1", agent="a1"),
            c.end("s1", "left", agent="a1"), c.record(60, "a1"), c.answer("Left is fine.", agent="a1"),
            c("subagent.completed", "a1", toolCallId="t1", agentName="explore"),
            c.end("t1", "Left is fine."), c.record(120), c.answer("Done."),
        ]
    )  # fmt: skip
    assert steps.agents == ["explore"]
    assert steps.calls == [("task", "ok", ""), ("bash", "ok", "a1")]
    assert steps.prompts == ["go"]
    assert steps.of(r.SubagentEnd)[0].text == "Left is fine."
    assert [answer.agent_id for answer in steps.of(r.Response)] == ["", "a1", "a1", ""]
    assert steps.tokens["input_tokens"] == 330


def test_sub_agents_of_older_versions_by_the_call_that_started_them(told, c):
    steps = told(
        [
            c.start(), c.prompt("go"), c.answer("", "t1"), c.begin("t1", "task"),
            c("subagent.started", toolCallId="t1", agentName="explore"),
            c.answer("", "s1", parentToolCallId="t1"),
            c.begin("s1", parentToolCallId="t1"), c.end("s1", parentToolCallId="t1"),
            c.answer("Left is fine.", parentToolCallId="t1"),
            c("subagent.completed", toolCallId="t1", agentName="explore"),
            c.end("t1", "Left is fine."), c.answer("Done."),
        ]
    )  # fmt: skip
    assert steps.agents == ["explore"]
    assert steps.calls == [("task", "ok", ""), ("bash", "ok", "t1")]
    assert steps.turns == ["Done."]


def test_a_failed_sub_agent(told, c):
    steps = told(
        [
            c.start(), c.prompt("go"), c.answer("", "t1"), c.begin("t1", "task"),
            c("subagent.started", "a1", toolCallId="t1", agentName="explore"),
            c.answer("", "s1", agent="a1"), c.begin("s1", agent="a1"),
            c("subagent.failed", "a1", toolCallId="t1", agentName="explore", error="it broke"),
            c.end("t1", success=False, error={"message": "it broke"}), c.answer("Done."),
        ]
    )  # fmt: skip
    assert [(failure.message, failure.agent_id) for failure in steps.of(r.Failure)] == [("it broke", "a1")]
    assert steps.calls == [("task", "error", ""), ("bash", "unknown", "a1")]
    assert steps.agents == ["explore"]


def test_a_sub_agent_that_never_ends(told, c):
    steps = told(
        [
            c.start(), c.prompt("go"), c.answer("", "t1"), c.begin("t1", "task"),
            c("subagent.started", "a1", toolCallId="t1", agentName="explore"),
            c.answer("", "s1", agent="a1"), c.begin("s1", agent="a1"),
        ]
    )  # fmt: skip
    assert steps.agents == ["explore"]
    assert steps.calls == [("task", "unknown", ""), ("bash", "unknown", "a1")]


# -- the rest


def test_failures_and_other_events(told, c):
    steps = told(
        [
            c.start(), c.prompt("go"),
            c("session.error", errorType="quota", message="Quota is gone"),
            c.prompt("again"), c("session.model_change", newModel="m2"), c.answer("Done."),
            c("session.compaction_complete", success=True, preCompactionTokens=900),
            c("session.compaction_complete", success=False),
            c("session.shutdown", shutdownType="error"),
        ]
    )  # fmt: skip
    assert [(failure.error_type, failure.message) for failure in steps.of(r.Failure)] == [
        ("quota", "Quota is gone")
    ]
    assert [(event.type, dict(event.properties)) for event in steps.of(r.HostEvent)] == [
        ("compaction.after", {"tokens_before": 900})
    ]
    assert steps.of(r.Response)[0].model == "m2"
    assert steps.turns == ["", "Done."]
    assert steps.of(r.SessionFinish)[0].reason == "error"


def test_a_resumed_session(told, c):
    steps = told(
        [
            c.start(), c.prompt("go"), c.answer("Done."), c("session.shutdown", shutdownType="routine"),
            c("session.resume", eventCount=4, context={"cwd": "/w"}), c.prompt("more"), c.answer("More."),
        ]
    )  # fmt: skip
    assert [(begin.session_id, begin.source) for begin in steps.of(r.SessionBegin)] == [
        ("s1", "startup"),
        ("s1", "resume"),
    ]
    assert steps.turns == ["Done.", "More."]
    assert len(steps.of(r.SessionFinish)) == 2
