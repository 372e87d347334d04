"""Sessions recorded as hookturn's own events, the sample among them."""

from __future__ import annotations

import json
from importlib import resources

import pytest

from hookturn.agents import recorded as r
from hookturn.spec import events


def at(timing, **fields):
    return {"timing": timing, "session_id": "s1", "time": "2026-01-01T00:00:01Z", **fields}


START = at("on_session_start", cwd="/w", host="claude-code", model="m")
END = at("on_session_end", reason="complete")
DONE = at("on_turn_complete", text="Done.")


def prompt(text):
    return at("on_user_prompt_submit", prompt=text)


def test_a_whole_session(told):
    steps = told(
        [
            START,
            at("on_message_received", text="go", origin="user", attachments=[{"a": 1}]),
            at("on_user_prompt_submit", prompt="go"),
            at("on_turn_start", prompt="go"),
            at("system_prompt", prompt="You are"),
            at(
                "on_model_response",
                text="I look.",
                tool_calls=[{"id": "c1", "tool": "Bash", "args": {"command": "ls"}}],
                usage={"input_tokens": 10, "output_tokens": 2},
                stop_reason="tool_use",
                model="m",
            ),
            at("on_tool_call_start", tool="Bash", call_id="c1", args={"command": "ls"}),
            at("pre_tool_execution", tool="Bash", call_id="c1", args={"command": "ls"}),
            at("on_permission_request", tool="Bash", call_id="c1", args={"command": "ls"}),
            at("on_outcome", of="pre_tool_execution"),
            at(
                "post_tool_execution",
                tool="Bash",
                call_id="c1",
                args={"command": "ls"},
                result="a.py",
                duration=0.5,
            ),
            at("on_event", type="notification", properties={"message": "hm"}),
            at("on_error", error_type="api", message="broken", phase="model"),
            at("on_error", error_type="HookFailed", message="my hook", phase="hook"),
            DONE,
            END,
        ]
    )
    assert steps.kinds == [
        "SessionBegin", "Prompt", "Response", "ToolBegin", "ToolEnd", "HostEvent", "Failure", "TurnEnd",
        "SessionFinish",
    ]  # fmt: skip
    begin = steps.of(r.SessionBegin)[0]
    assert begin[:6] == ("s1", "/w", "m", "startup", "claude-code", "main")
    assert steps.of(r.Prompt)[0].attachments == ({"a": 1},)
    assert steps.tokens == {"input_tokens": 10, "output_tokens": 2}
    end = steps.end_of("c1")
    assert (end.result, end.status, end.duration) == ("a.py", "ok", 0.5)
    assert steps.of(r.Failure)[0].message == "broken"
    assert steps.turns == ["Done."]


@pytest.mark.parametrize(
    "lines",
    [
        [at("on_message_received", text="go"), prompt("go")],
        [at("on_message_received", text="go")],
        [prompt("go")],
    ],
)
def test_a_prompt_arrives_once(told, lines):
    assert told([START, *lines, at("on_model_response", text="Done."), DONE, END]).prompts == ["go"]


def test_calls_without_an_id(told):
    """The two begins of a call are one; the same call again is another."""
    one = [
        at("on_tool_call_start", tool="Bash", args={"command": "ls"}),
        at("pre_tool_execution", tool="Bash", args={"command": "ls"}),
        at("post_tool_execution", tool="Bash", args={"command": "ls"}, result="a", status="error", error="e"),
    ]
    for begins in (one, one[:2][::-1][:1] + one[2:], one[2:]):
        steps = told([START, prompt("go"), *begins, *begins, DONE, END])
        assert steps.calls == [("Bash", "error", "")] * 2
        assert {end.error for end in steps.of(r.ToolEnd)} == {"e"}


def test_statuses_arrive_as_recorded(told):
    ends = [
        at("post_tool_execution", tool="x", call_id=status, status=status, reason="why")
        for status in ("ok", "error", "denied", "replied", "timeout", "cancelled", "unknown")
    ]
    steps = told([START, prompt("go"), *ends, DONE, END])
    assert [end.status for end in steps.of(r.ToolEnd)] == [
        "ok", "error", "denied", "replied", "timeout", "cancelled", "unknown",
    ]  # fmt: skip
    assert {end.error for end in steps.of(r.ToolEnd)} == {"why"}


def test_mcp(told):
    steps = told(
        [
            START,
            prompt("go"),
            at("pre_tool_execution", tool="notes-find", call_id="c1", mcp=["notes", "find"]),
            at("pre_tool_execution", tool="mcp__notes__find", call_id="c2"),
            at("pre_tool_execution", tool="Bash", call_id="c3", mcp="odd"),
        ]
    )
    assert [begin.mcp for begin in steps.of(r.ToolBegin)] == [("notes", "find"), ("notes", "find"), None]


def test_sub_agents(told):
    sub = {"agent": "reviewer", "agent_id": "a1", "parent_agent": "main"}
    steps = told(
        [
            START, prompt("go"),
            at("pre_tool_execution", tool="Agent", call_id="t1", args={"prompt": "look left"}),
            at("pre_tool_execution", tool="Bash", call_id="c1", args={}, **sub),
            at("post_tool_execution", tool="Bash", call_id="c1", args={}, result="x", **sub),
            at("on_model_response", text="Left is fine.", usage={"input_tokens": 5}, **sub),
            at("on_turn_complete", text="Left is fine.", **sub),
            at("post_turn", **sub),
            at("post_tool_execution", tool="Agent", call_id="t1", args={}, result="Left is fine."),
            DONE, END,
        ]
    )  # fmt: skip
    assert steps.agents == ["reviewer"]
    begin = steps.of(r.SubagentBegin)[0]
    assert (begin.prompt, begin.agent_id) == ("look left", "a1")
    assert steps.calls == [("Agent", "ok", ""), ("Bash", "ok", "a1")]
    assert steps.of(r.SubagentEnd)[0].text == "Left is fine."
    assert steps.turns == ["Done."]


def test_a_turn_ends_once(told):
    steps = told([START, prompt("go"), at("on_model_response", text="Hi."), DONE, at("post_turn"), END])
    assert steps.turns == ["Done."]


def test_what_the_file_does_not_end(told):
    steps = told(
        [
            prompt("go"),
            at("on_model_response", text="I look."),
            at("pre_tool_execution", tool="x", call_id="c1"),
        ]
    )
    assert steps.kinds == [
        "SessionBegin", "Prompt", "Response", "ToolBegin", "ToolEnd", "TurnEnd", "SessionFinish",
    ]  # fmt: skip
    assert steps.end_of("c1").status == "unknown"
    assert steps.turns == ["I look."]
    assert steps.of(r.SessionFinish)[0].reason == "interrupted"


def test_several_sessions_in_one_file(told):
    other = [{**line, "session_id": "s2"} for line in (START, prompt("more"), DONE, END)]
    steps = told([START, prompt("go"), DONE, END, *other])
    assert [begin.session_id for begin in steps.of(r.SessionBegin)] == ["s1", "s2"]
    assert len(steps.of(r.SessionFinish)) == 2
    assert steps.prompts == ["go", "more"]
    # Without ends and beginnings, a new id is a new session as well.
    steps = told([START, prompt("go"), other[1]])
    assert [begin.session_id for begin in steps.of(r.SessionBegin)] == ["s1", "s2"]


@pytest.mark.parametrize(
    ("line", "cause"),
    [
        (
            at("pre_tool_excution", tool="x"),
            "unknown timing 'pre_tool_excution'; did you mean pre_tool_execution?",
        ),
        ({"tool": "x"}, "unknown timing None"),
        (at("pre_tool_execution"), "pre_tool_execution needs tool, a string"),
        (at("pre_tool_execution", tool=1), "pre_tool_execution needs tool, a string"),
        (
            at("pre_tool_execution", tool="x", call_id=["y"]),
            "call_id must be a string, not an array",
        ),
        (at("on_error", error_type="x"), "on_error needs message, a string"),
        (at("on_event"), "on_event needs type, a string"),
    ],
)
def test_lines_that_are_no_events_are_skipped(told, line, cause):
    steps = told([START, prompt("go"), line, DONE, END])
    skipped = steps.of(r.Skipped)
    assert [(one.line, one.column) for one in skipped] == [(3, 1)]
    assert cause.split(";")[0] in skipped[0].cause
    if "did you mean" in cause:
        assert "did you mean" in skipped[0].cause
        assert "pre_tool_execution" in skipped[0].cause
    assert steps.prompts == ["go"]


def test_events_come_back_as_they_were_written(told):
    """What ``Event.to_json()`` writes is what the reader reads."""
    made = events.PreToolExecution(tool="Bash", call_id="c1", args={"command": "ls"})
    made_end = events.PostToolExecution(
        tool="Bash", call_id="c1", args={"command": "ls"}, result={"stdout": "a"}
    )
    steps = told([made.to_json(), made_end.to_json()])
    assert steps.of(r.ToolBegin)[0][:3] == ("c1", "Bash", {"command": "ls"})
    assert steps.end_of("c1").result == {"stdout": "a"}
    assert not steps.of(r.Skipped)


def test_every_timing_is_known():
    from hookturn.replay import own
    from hookturn.spec import timings

    known = set(timings.TIMINGS)
    assert set(own._REQUIRED) == known


def test_the_sample(told):
    path = resources.files("hookturn.replay") / "sample.jsonl"
    with resources.as_file(path) as file:
        steps = told(file)
        text = file.read_text(encoding="utf-8")
    assert not steps.of(r.Skipped)
    counts = {kind: steps.kinds.count(kind) for kind in dict.fromkeys(steps.kinds)}
    assert counts == {
        "SessionBegin": 1,
        "Prompt": 2,
        "Response": 12,
        "ToolBegin": 11,
        "ToolEnd": 11,
        "SubagentBegin": 1,
        "SubagentEnd": 1,
        "TurnEnd": 2,
        "SessionFinish": 1,
    }
    assert len(steps.agents) == 1
    assert "rm -rf" in text
    assert "OnlyAnExample" in text
    assert {end.status for end in steps.of(r.ToolEnd)} >= {"ok", "error"}
    assert all(json.loads(line)["timing"] for line in text.splitlines())


BEGIN = at("pre_tool_execution", tool="Bash", call_id="c1", args={"command": "ls"})
FINISH = at("post_tool_execution", tool="Bash", call_id="c1")


@pytest.mark.parametrize("duration", [10**400, float("inf"), float("nan"), -1, True, "1", None])
def test_a_duration_that_cannot_be_is_none(told, duration):
    assert told([BEGIN, {**FINISH, "duration": duration}]).end_of("c1").duration is None


@pytest.mark.parametrize("count", [10**4000, float("inf"), float("nan"), -1, True, "1", None, []])
def test_a_token_count_that_cannot_be_is_none(told, count):
    steps = told(
        [START, at("on_model_response", text="x", usage={"input_tokens": count, "output_tokens": 2})]
    )
    assert steps.of(r.Response)[0].usage == {"input_tokens": 0, "output_tokens": 2}


@pytest.mark.parametrize(
    "line",
    [
        {**FINISH, "status": "banana"},
        {**FINISH, "status": ""},
        {**FINISH, "status": 5},
        at("on_event", type=""),
        at("pre_tool_execution", tool=""),
    ],
)
def test_a_line_that_no_session_takes_costs_only_itself(told, line):
    steps = told([START, BEGIN, line, prompt("go"), DONE, END])
    assert [step.line for step in steps.of(r.Skipped)] == [3]
    assert steps.prompts == ["go"]
    assert steps.end_of("c1").status == "unknown"


def test_a_sub_agents_task_is_found_however_many_calls_are_open(told, monkeypatch):
    from hookturn.replay import own

    looked = []
    monkeypatch.setattr(own, "lookup", lambda *words, real=own.lookup: looked.append(1) or real(*words))

    def work(number):
        looked.clear()
        lines = [at("pre_tool_execution", tool="Task", call_id="t", args={"prompt": "review"})]
        for n in range(number):
            lines.append(at("pre_tool_execution", tool="Bash", call_id=f"c{n}", agent_id=f"a{n}"))
        steps = told([*lines, *(at("on_turn_complete", agent_id=f"a{n}") for n in range(number))])
        assert {begin.prompt for begin in steps.of(r.SubagentBegin)} == {"review"}
        assert len(steps.of(r.SubagentEnd)) == len(steps.of(r.ToolEnd)) - 1 == number
        return len(looked)

    assert work(100) <= 5.5 * work(20)
