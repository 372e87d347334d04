"""Claude Code's recordings in all their variants."""

from __future__ import annotations

import json
from itertools import count

import pytest

from hookturn.agents import recorded as r

USAGE = {
    "input_tokens": 7,
    "output_tokens": 3,
    "cache_read_input_tokens": 20,
    "cache_creation_input_tokens": 5,
}


@pytest.fixture
def c():
    """Make lines as Claude Code writes them."""
    return Lines()


class Lines:
    def __init__(self):
        self._numbers = count(1)

    def line(self, kind, message=None, **fields):
        number = next(self._numbers)
        base = {
            "type": kind,
            "uuid": f"u{number}",
            "sessionId": "s1",
            "cwd": "/w",
            "isSidechain": False,
            "timestamp": f"2026-01-01T00:{number // 60:02d}:{number % 60:02d}.000Z",
        }
        if message is not None:
            base["message"] = message
        return {**base, **fields}

    def prompt(self, content, **fields):
        return self.line("user", {"role": "user", "content": content}, **fields)

    def answer(self, identity, *blocks, usage=USAGE, **fields):
        message = {"role": "assistant", "id": identity, "model": "m", "content": list(blocks), "usage": usage}
        return self.line("assistant", message, **fields)

    def result(self, call, content="done", **fields):
        block = {"type": "tool_result", "tool_use_id": call, "content": content}
        if "is_error" in fields:
            block["is_error"] = fields.pop("is_error")
        return self.prompt([block], **fields)


def text(words):
    return {"type": "text", "text": words}


def use(call, name="Bash", **args):
    return {"type": "tool_use", "id": call, "name": name, "input": args or {"command": "ls"}}


# -- answers


def test_an_answer_over_many_lines_counts_once_with_its_last_usage(told, c):
    steps = told(
        [
            c.prompt("go"),
            c.answer("m1", {"type": "thinking", "thinking": "hm"}, usage={**USAGE, "output_tokens": 1}),
            c.answer("m1", text("I look."), usage={**USAGE, "output_tokens": 2}),
            c.answer("m1", use("t1"), usage={**USAGE, "output_tokens": 90}),
            c.answer("m1", use("t2"), usage={**USAGE, "output_tokens": 90}),
            c.result("t1"),
            c.result("t2"),
            c.answer("m2", text("Done.")),
        ]
    )
    assert steps.kinds == [
        "SessionBegin", "Prompt", "Response", "ToolBegin", "ToolBegin", "ToolEnd", "ToolEnd", "Response",
        "TurnEnd", "SessionFinish",
    ]  # fmt: skip
    first = steps.of(r.Response)[0]
    assert first.text == "I look."
    assert [call["id"] for call in first.tool_calls] == ["t1", "t2"]
    assert first.usage == {
        "input_tokens": 7,
        "output_tokens": 90,
        "cache_read_tokens": 20,
        "cache_write_tokens": 5,
    }
    assert steps.tokens["output_tokens"] == 93


def test_results_between_the_lines_of_an_answer_do_not_split_it(told, c):
    steps = told(
        [
            c.prompt("go"),
            c.answer("m1", use("t1")),
            c.result("t1", "one"),
            c.answer("m1", use("t2")),
            c.result("t2", "two"),
            c.answer("m2", text("Done.")),
        ]
    )
    assert len(steps.of(r.Response)) == 2
    assert steps.kinds[2:7] == ["Response", "ToolBegin", "ToolEnd", "ToolBegin", "ToolEnd"]
    assert steps.calls == [("Bash", "ok", ""), ("Bash", "ok", "")]
    assert steps.tokens["input_tokens"] == 14


def test_an_answer_without_an_id_is_one_line(told, c):
    lines = [c.prompt("go"), c.answer(None, text("a")), c.answer(None, text("b"))]
    for line in lines[1:]:
        del line["message"]["id"]
    steps = told(lines)
    assert steps.answers == ["a", "b"]
    assert steps.tokens["input_tokens"] == 14


def test_content_that_is_text(told, c):
    line = c.answer("m1")
    line["message"]["content"] = "Plain."
    assert told([c.prompt("go"), line]).answers == ["Plain."]


def test_arguments_that_are_no_object_are_kept(told, c):
    blocks = [
        {"type": "tool_use", "id": "t1", "name": "Bash", "input": '{"command": "ls"}'},
        {"type": "tool_use", "id": "t2", "name": "Bash", "input": "{broken"},
        {"type": "tool_use", "id": "t3", "name": "Bash"},
    ]
    steps = told([c.prompt("go"), c.answer("m1", *blocks)])
    assert [begin.args for begin in steps.of(r.ToolBegin)] == [{"command": "ls"}, {"_raw": "{broken"}, {}]


def test_tools_that_the_provider_runs(told, c):
    steps = told(
        [
            c.prompt("go"),
            c.answer(
                "m1",
                {"type": "server_tool_use", "id": "srv1", "name": "web_search", "input": {"query": "x"}},
                {"type": "web_search_tool_result", "tool_use_id": "srv1", "content": [{"url": "u"}]},
                {"type": "mcp_tool_use", "id": "mcp1", "name": "echo", "server_name": "demo", "input": {}},
                {
                    "type": "mcp_tool_result",
                    "tool_use_id": "mcp1",
                    "is_error": True,
                    "content": [{"type": "text", "text": "no"}],
                },
                {"type": "server_tool_use", "id": "srv2", "name": "web_search", "input": {}},
                {
                    "type": "web_search_tool_result",
                    "tool_use_id": "srv2",
                    "content": {"type": "web_search_tool_result_error", "error_code": "max_uses_exceeded"},
                },
                text("Found."),
            ),
        ]
    )
    assert steps.calls == [("web_search", "ok", ""), ("echo", "error", ""), ("web_search", "error", "")]
    assert [begin.mcp for begin in steps.of(r.ToolBegin)] == [None, ("demo", "echo"), None]
    assert steps.answers == ["Found."]


def test_words_of_the_program_are_no_answers(told, c):
    synthetic = c.answer("x1", text("No response requested."))
    synthetic["message"]["model"] = "<synthetic>"
    failed = c.answer("x2", text("API Error: 529 overloaded"), isApiErrorMessage=True, error="server_error")
    failed["message"]["model"] = "<synthetic>"
    retry = c.line(
        "system", subtype="api_error", retryAttempt=2, error={"formatted": "529 overloaded", "status": 529}
    )
    steps = told([c.prompt("go"), c.answer("m1", text("hi")), synthetic, retry, failed])
    assert steps.answers == ["hi"]
    (failure,) = steps.of(r.Failure)
    assert (failure.error_type, failure.message) == ("server_error", "API Error: 529 overloaded")
    assert failure.phase == "model"
    (event,) = steps.of(r.HostEvent)
    assert (event.type, event.properties) == ("model.retry", {"message": "529 overloaded", "attempt": 2})


# -- results

REFUSED = "The user doesn't want to proceed with this tool use. The tool use was rejected"


@pytest.mark.parametrize(
    ("content", "fields", "status"),
    [
        ("ok", {}, "ok"),
        ("ok", {"is_error": False}, "ok"),
        ("ok", {"is_error": None}, "ok"),
        ("Exit code 3\nno", {"is_error": True}, "error"),
        ("<tool_use_error>Error: No such tool</tool_use_error>", {"is_error": True}, "error"),
        (REFUSED, {"is_error": True}, "denied"),
        ([text(REFUSED)], {"is_error": True}, "denied"),
        ("anything", {"is_error": True, "toolUseResult": "User rejected tool use"}, "denied"),
        ("Error: User rejected tool use", {"is_error": True}, "denied"),
        ("The user doesn't want to take this action right now. STOP", {"is_error": True}, "denied"),
        (
            "Claude requested permissions to use X, but you haven't granted it yet.",
            {"is_error": True},
            "denied",
        ),
        ("Permission to use Bash with command rm has been denied.", {"is_error": True}, "denied"),
        ("PreToolUse:Bash hook error: no", {"is_error": True}, "denied"),
        ("PreToolUse:Bash [./guard.sh]: hook error: no", {"is_error": True}, "denied"),
        ("Bash operation blocked by hook:\n- no", {"is_error": True}, "denied"),
        ("no", {"is_error": True, "toolDenialKind": "permission-rule"}, "denied"),
        ("no", {"is_error": True, "permissionDecision": {"decision": "reject"}}, "denied"),
        ("no", {"is_error": True, "permissionDecision": {"decision": "deny"}}, "denied"),
        ("no", {"is_error": True, "permissionDecision": {"decision": "accept"}}, "error"),
        ("partial", {"toolUseResult": {"stdout": "partial", "interrupted": True}}, "cancelled"),
        ("[Request interrupted by user for tool use]", {"is_error": True}, "cancelled"),
        (
            "<tool_use_error>Cancelled: parallel tool call errored</tool_use_error>",
            {"is_error": True},
            "cancelled",
        ),
    ],
)
def test_how_a_call_ended(told, c, content, fields, status):
    steps = told([c.prompt("go"), c.answer("m1", use("t1")), c.result("t1", content, **fields)])
    (end,) = steps.of(r.ToolEnd)
    assert end.status == status
    assert end.result == content
    assert bool(end.error) == (status != "ok")
    assert end.duration == 1.0


def test_images_stay_as_they_are(told, c):
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "QUJD"}}
    steps = told(
        [
            c.prompt([text("what is this"), image]),
            c.answer("m1", use("t1", "Read", file_path="/w/x.png")),
            c.result("t1", [image]),
        ]
    )
    (prompt,) = steps.of(r.Prompt)
    assert (prompt.text, prompt.attachments) == ("what is this", (image,))
    assert steps.end_of("t1").result == [image]


def test_a_result_without_content_and_one_without_a_call(told, c):
    steps = told(
        [
            c.prompt("go"),
            c.result("before-the-file"),
            c.answer("m1", use("t1")),
            c.prompt([{"type": "tool_result", "tool_use_id": "t1"}]),
        ]
    )
    assert steps.calls == [("Bash", "ok", "")]
    assert steps.end_of("t1").result is None


def test_a_call_that_is_never_answered(told, c):
    steps = told([c.prompt("go"), c.answer("m1", use("t1"))])
    assert steps.calls == [("Bash", "unknown", "")]
    assert steps.of(r.SessionFinish)[0].reason == "interrupted"


def test_an_interruption_ends_the_turn(told, c):
    steps = told(
        [
            c.prompt("go"),
            c.answer("m1", use("t1")),
            c.prompt([text("[Request interrupted by user for tool use]")]),
            c.prompt("something else"),
            c.answer("m2", text("fine")),
        ]
    )
    assert steps.calls == [("Bash", "cancelled", "")]
    assert steps.prompts == ["go", "something else"]
    assert steps.turns == ["", "fine"]


# -- prompts


@pytest.mark.parametrize(
    ("content", "fields"),
    [
        ("caveat", {"isMeta": True}),
        ("This session is being continued from a previous conversation", {"isCompactSummary": True}),
        ("This session is being continued from a previous conversation that ran out", {}),
        ("only shown", {"isVisibleInTranscriptOnly": True}),
        ("<local-command-caveat>x</local-command-caveat>", {}),
        ("<local-command-stdout>x</local-command-stdout>", {}),
        ("Caveat: The messages below were generated by the user while running local commands. x", {}),
        ("<bash-input>ls</bash-input>", {}),
        ("<bash-stdout>a</bash-stdout><bash-stderr></bash-stderr>", {}),
        ("<system-reminder>\nx\n</system-reminder>", {}),
        ([text("<system-reminder>x</system-reminder>")], {}),
        ([text("<ide_opened_file>x</ide_opened_file>")], {}),
        ("[Request interrupted by user]", {}),
        ("", {}),
        ([], {}),
        (None, {}),
    ],
)
def test_what_is_no_prompt(told, c, content, fields):
    lines = [
        c.prompt("go"),
        c.answer("m1", text("a")),
        c.prompt(content, **fields),
        c.answer("m2", text("b")),
    ]
    assert told(lines).prompts == ["go"]


def test_context_beside_a_prompt_is_left_out(told, c):
    content = [
        text("<ide_selection>x</ide_selection>"),
        text("fix"),
        text("this"),
        text("<system-reminder>y"),
    ]
    assert told([c.prompt(content)]).prompts == ["fix\nthis"]


def test_a_local_command_is_no_prompt_and_another_one_is(told, c):
    local = "<command-name>/usage</command-name>\n<command-message>usage</command-message>\n<command-args></command-args>"
    custom = "<command-message>review is running</command-message>\n<command-name>/review</command-name>\n<command-args>the diff</command-args>"
    steps = told(
        [
            c.prompt(local),
            c.line("system", subtype="local_command", content="<local-command-stdout>x"),
            c.prompt(local),
            c.prompt("<local-command-stdout>x</local-command-stdout>"),
            c.prompt(custom),
            c.prompt([text("Review the diff as follows ...")], isMeta=True),
            c.answer("m1", text("Looks good.")),
            c.prompt(local),
            c.prompt("thanks"),
        ]
    )
    assert [(prompt.text, prompt.origin) for prompt in steps.of(r.Prompt)] == [
        ("/review the diff", "command"),
        ("thanks", "user"),
    ]


def test_a_hook_that_makes_the_turn_go_on_begins_none(told, c):
    steps = told(
        [
            c.prompt("go"),
            c.answer("m1", text("one")),
            c.prompt("Stop hook feedback:\ngo on", isMeta=True),
            c.answer("m2", text("two")),
        ]
    )
    assert steps.turns == ["two"]


def test_a_queued_prompt_comes_once(told, c):
    queued = {"type": "queued_command", "prompt": "also this", "source_uuid": "q1", "commandMode": "prompt"}
    steps = told(
        [
            c.prompt("go"),
            c.answer("m1", use("t1")),
            c.line("queue-operation", operation="enqueue", content="also this"),
            c.result("t1"),
            c.line("attachment", attachment=queued),
            c.line("attachment", attachment=queued),
            c.line("attachment", attachment={"type": "todo_reminder", "content": []}),
            c.answer("m2", text("both")),
            c.line("user", {"role": "user", "content": "also this"}, uuid="q1"),
        ]
    )
    assert [(prompt.text, prompt.within) for prompt in steps.of(r.Prompt)] == [
        ("go", False),
        ("also this", True),
    ]
    assert steps.turns == ["both"]


def test_two_prompts_before_an_answer_are_one_turn(told, c):
    steps = told([c.prompt("one"), c.prompt("two"), c.answer("m1", text("both"))])
    assert [prompt.within for prompt in steps.of(r.Prompt)] == [False, True]
    assert len(steps.turns) == 1


# -- sessions


def test_replayed_lines_count_once(told, c):
    old = [
        c.prompt("go"),
        c.answer("m1", text("I look."), use("t1")),
        c.result("t1"),
        c.answer("m2", text("Done.")),
    ]
    renamed = [{**line, "uuid": line["uuid"] + "-copy"} for line in old]
    new = [c.prompt("more"), c.answer("m3", text("More."))]
    once = told([*old, *new])
    for lines in ([*old, *old, *new], [*old, *renamed, *new], [*old, *new, *old]):
        again = told(lines)
        assert again.prompts == once.prompts == ["go", "more"]
        assert again.answers == once.answers
        assert again.calls == once.calls
        assert again.tokens == once.tokens


def test_a_session_that_goes_on_under_another_id(told, c):
    old = [c.prompt("go"), c.answer("m1", text("Done."))]
    new = [c.prompt("more", sessionId="s2"), c.answer("m2", text("More."), sessionId="s2")]
    steps = told([*old, *new])
    assert [(begin.session_id, begin.source) for begin in steps.of(r.SessionBegin)] == [
        ("s1", "startup"),
        ("s2", "resume"),
    ]
    assert [finish.reason for finish in steps.of(r.SessionFinish)] == ["resume", "complete"]
    assert steps.kinds[3:6] == ["TurnEnd", "SessionFinish", "SessionBegin"]


def test_bookkeeping_says_nothing(told, c):
    lines = [
        {"type": "summary", "summary": "Old things", "leafUuid": "u0"},
        {"type": "file-history-snapshot", "messageId": "x", "snapshot": {}},
        {"type": "mode", "mode": "normal", "sessionId": "s1"},
        c.line("system", subtype="stop_hook_summary", hookCount=1),
        c.line("system", subtype="turn_duration", durationMs=5),
        {"type": "custom-title", "customTitle": "x", "sessionId": "s1"},
        {"type": "something-new", "uuid": "n1", "sessionId": "s1"},
    ]
    assert told(lines).kinds == ["SessionBegin", "SessionFinish"]
    assert told([*lines, c.prompt("go")]).prompts == ["go"]


def test_a_compaction(told, c):
    boundary = c.line(
        "system", subtype="compact_boundary", compactMetadata={"trigger": "auto", "preTokens": 9}
    )
    steps = told(
        [c.prompt("go"), c.answer("m1", use("t1")), c.result("t1"), boundary, c.answer("m2", text("x"))]
    )
    (event,) = steps.of(r.HostEvent)
    assert (event.type, event.properties) == ("compaction.after", {"trigger": "auto", "tokens_before": 9})
    assert steps.index(event) > steps.index(steps.end_of("t1"))


# -- sub-agents in the same file


def side(line, agent=None, parent=None):
    line = {**line, "isSidechain": True, "parentUuid": parent}
    if agent:
        line["agentId"] = agent
    return line


def test_sidechains_of_version_1(told, c):
    """No agentId: lines hang together by parentUuid, and begin with the prompt of the call."""
    start = c.answer(
        "m1",
        use("task1", "Task", subagent_type="reviewer", prompt="look left"),
        use("task2", "Task", subagent_type="tester", prompt="look right"),
    )
    right = side(c.prompt("look right"))
    left = side(c.prompt("look left"))
    left_answer = side(c.answer("s1", use("c1")), parent=left["uuid"])
    right_answer = side(c.answer("s2", use("c2")), parent=right["uuid"])
    left_result = side(c.result("c1", "left"), parent=left_answer["uuid"])
    right_result = side(c.result("c2", "right", is_error=True), parent=right_answer["uuid"])
    left_end = side(c.answer("s3", text("Left is fine.")), parent=left_result["uuid"])
    right_end = side(c.answer("s4", text("Right is not.")), parent=right_result["uuid"])
    steps = told(
        [
            c.prompt("go"), start, right, left, left_answer, right_answer, left_result, right_result,
            right_end, left_end, c.result("task2", [text("Right is not.")]),
            c.result("task1", [text("Left is fine.")]), c.answer("m2", text("Done.")),
        ]
    )  # fmt: skip
    assert steps.agents == ["tester", "reviewer"]
    assert sorted(steps.calls) == [
        ("Bash", "error", "task2"),
        ("Bash", "ok", "task1"),
        ("Task", "ok", ""),
        ("Task", "ok", ""),
    ]
    assert steps.prompts == ["go"]
    assert {end.agent_id: end.text for end in steps.of(r.SubagentEnd)} == {
        "task1": "Left is fine.",
        "task2": "Right is not.",
    }
    for task in ("task1", "task2"):
        ended = next(s for s in steps.of(r.SubagentEnd) if s.agent_id == task)
        assert steps.index(ended) < steps.index(steps.end_of(task))
    assert steps.tokens["input_tokens"] == 7 * 6
    assert steps.turns == ["Done."]


def test_sidechains_with_an_agent_id(told, c):
    start = c.answer("m1", use("task1", "Agent", subagent_type="Explore", prompt="look"))
    done = {"agentId": "a1", "status": "completed", "content": [text("Seen.")]}
    steps = told(
        [
            c.prompt("go"),
            start,
            side(c.prompt("look"), "a1"),
            side(c.answer("s1", use("c1")), "a1"),
            side(c.result("c1"), "a1"),
            side(c.answer("s2", text("Seen.")), "a1"),
            c.result("task1", [text("Seen.")], toolUseResult=done),
        ]
    )
    assert steps.agents == ["Explore"]
    assert steps.calls == [("Agent", "ok", ""), ("Bash", "ok", "a1")]
    (begin,) = steps.of(r.SubagentBegin)
    assert (begin.prompt, begin.agent_id) == ("look", "a1")
    assert steps.of(r.SubagentEnd)[0].text == "Seen."


def test_a_sub_agent_of_a_sub_agent(told, c):
    steps = told(
        [
            c.prompt("go"),
            c.answer("m1", use("task1", "Agent", subagent_type="outer", prompt="one")),
            side(c.prompt("one"), "a1"),
            side(c.answer("s1", use("task2", "Agent", subagent_type="inner", prompt="two")), "a1"),
            side(c.prompt("two"), "a2"),
            side(c.answer("s2", text("deep")), "a2"),
            side(c.result("task2", "deep", toolUseResult={"agentId": "a2", "status": "completed"}), "a1"),
            side(c.answer("s3", text("done")), "a1"),
            c.result("task1", "done", toolUseResult={"agentId": "a1", "status": "completed"}),
        ]
    )
    assert steps.agents == ["outer", "inner"]
    assert [begin.parent_agent_id for begin in steps.of(r.SubagentBegin)] == ["", "a1"]


def test_a_sub_agent_without_lines_begins_and_ends(told, c):
    done = {"agentId": "a1", "agentType": "Explore", "status": "completed", "content": [text("Seen.")]}
    steps = told(
        [
            c.prompt("go"),
            c.answer("m1", use("task1", "Agent", prompt="look")),
            c.result("task1", [text("Seen.")], toolUseResult=done),
        ]
    )
    assert steps.agents == ["general-purpose"]
    assert steps.of(r.SubagentEnd)[0].text == "Seen."
    assert steps.calls == [("Agent", "ok", "")]


def test_progress_records_of_a_sub_agent(told, c):
    def progress(inner):
        data = {"type": "agent_progress", "agentId": "a1", "prompt": "look", "message": inner}
        return c.line("progress", data=data, parentToolUseID="task1", toolUseID="agent_msg_1")

    answer, result = c.answer("s1", use("c1")), c.result("c1", "seen")
    steps = told(
        [
            c.prompt("go"),
            c.answer("m1", use("task1", "Task", subagent_type="Explore", prompt="look")),
            progress(answer),
            progress(answer),
            progress(result),
            c.line("progress", data={"type": "bash_progress", "output": "x"}),
            c.result("task1", "Seen.", toolUseResult={"agentId": "a1", "status": "completed"}),
        ]
    )
    assert steps.agents == ["Explore"]
    assert steps.calls == [("Task", "ok", ""), ("Bash", "ok", "a1")]
    assert steps.tokens["input_tokens"] == 14


def test_files_of_sub_agents_lie_beside_the_session(tmp_path, told, c):
    folder = tmp_path / "session" / "subagents"
    folder.mkdir(parents=True)
    lines = [side(c.prompt("look"), "a1"), side(c.answer("s1", text("Seen.")), "a1"), "{broken"]
    text_of = "".join((line if isinstance(line, str) else json.dumps(line)) + "\n" for line in lines)
    (folder / "agent-a1.jsonl").write_text(text_of)
    (folder / "agent-a1.meta.json").write_text('{"agentType": "Explore", "toolUseId": "task1"}')
    # one that nobody names, as when the session was killed
    orphan = [side(c.prompt("wait"), "a2"), side(c.answer("s2", use("c9")), "a2")]
    (folder / "agent-a2.jsonl").write_text("".join(json.dumps(line) + "\n" for line in orphan))
    # links are not followed, and other sessions' agents are not ours
    (tmp_path / "elsewhere.jsonl").write_text(json.dumps(side(c.answer("x", text("no")), "a3")) + "\n")
    (folder / "agent-a3.jsonl").symlink_to(tmp_path / "elsewhere.jsonl")
    (tmp_path / "agent-a4.jsonl").write_text(json.dumps(side(c.answer("y", text("no")), "a4")) + "\n")
    done = {"agentId": "a1", "status": "completed"}
    steps = told(
        [
            c.prompt("go"),
            c.answer("m1", use("task1", "Agent", prompt="look")),
            c.result("task1", "Seen.", toolUseResult=done),
            c.answer("m2", text("Done.")),
        ],
        name="session.jsonl",
    )
    assert steps.agents == ["Explore", "a2"]
    assert steps.answers == ["", "Seen.", "Done.", ""]
    assert steps.calls == [("Agent", "ok", ""), ("Bash", "unknown", "a2")]
    (skipped,) = steps.of(r.Skipped)
    assert (skipped.file, skipped.line) == ("agent-a1.jsonl", 3)


def test_a_sub_agents_file_next_to_the_session(tmp_path, told, c):
    """Version 2.0: all sessions' agents in one folder; only those that the session names are read."""
    mine = [side(c.prompt("look"), "a1"), side(c.answer("s1", text("Seen.")), "a1")]
    (tmp_path / "agent-a1.jsonl").write_text("".join(json.dumps(line) + "\n" for line in mine))
    (tmp_path / "agent-b2.jsonl").write_text(json.dumps(side(c.answer("x", text("no")), "b2")) + "\n")
    steps = told(
        [
            c.prompt("go"),
            c.answer("m1", use("task1", "Task", subagent_type="Explore", prompt="look")),
            c.result("task1", "Seen.", toolUseResult={"agentId": "a1", "status": "completed"}),
        ],
        name="session.jsonl",
    )
    assert steps.agents == ["Explore"]
    assert "Seen." in steps.answers
    assert "no" not in steps.answers


@pytest.mark.parametrize("agent_id", ["../../etc/passwd", "a/b", "", "\0", "x" * 5000])
def test_no_path_is_made_from_an_id(told, c, agent_id):
    steps = told(
        [
            c.prompt("go"),
            c.answer("m1", use("task1", "Agent", prompt="look")),
            c.result("task1", "x", toolUseResult={"agentId": agent_id, "status": "completed"}),
        ]
    )
    assert steps.calls == [("Agent", "ok", "")]


def test_a_long_answer_list_is_linear(told, c):
    lines = [c.prompt("go")]
    for number in range(1500):
        lines += [c.answer(f"m{number}", use(f"t{number}")), c.result(f"t{number}")]
    steps = told(lines)
    assert len(steps.of(r.ToolEnd)) == 1500
    assert steps.tokens["input_tokens"] == 7 * 1500
