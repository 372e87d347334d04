"""Codex's rollouts in all their variants."""

from __future__ import annotations

import json

import pytest

from hookturn.agents import recorded as r


def line(kind, second=0, **payload):
    return {"timestamp": f"2026-01-01T00:00:{second:02d}.000Z", "type": kind, "payload": payload}


def item(kind, **payload):
    return line("response_item", type=kind, **payload)


def event(kind, **payload):
    return line("event_msg", type=kind, **payload)


def said(text, role="user", **payload):
    kind = "output_text" if role == "assistant" else "input_text"
    return item("message", role=role, content=[{"type": kind, "text": text}], **payload)


def call(call_id, name="exec_command", **args):
    return item("function_call", call_id=call_id, name=name, arguments=json.dumps(args or {"cmd": "ls"}))


def output(call_id, text="done"):
    return item("function_call_output", call_id=call_id, output=text)


def tokens(total, last=None, **info):
    """A token_count event; the numbers are input tokens, a tenth of them output tokens."""

    def usage(count):
        return {
            "input_tokens": count,
            "cached_input_tokens": 0,
            "output_tokens": count // 10,
            "reasoning_output_tokens": 0,
            "total_tokens": count + count // 10,
        }

    info = {"total_token_usage": usage(total), "last_token_usage": usage(total if last is None else last)}
    return event("token_count", info=info, rate_limits=None)


META = line("session_meta", id="s1", cwd="/w", originator="codex_exec", cli_version="0.1", source="exec")
START = event("task_started", turn_id="t1")
END = event("task_complete", turn_id="t1", last_agent_message="Done.")


# -- prompts


@pytest.mark.parametrize(
    "lines",
    [
        [said("go"), event("user_message", message="go")],
        [event("user_message", message="go"), said("go")],
        [said("go"), event("item_completed", item={"type": "UserMessage", "content": [{"type": "text", "text": "go"}]})],
        [
            said("go"),
            event("item_completed", item={"type": "UserMessage", "content": [{"type": "text", "text": "go"}]}),
            event("user_message", message="go"),
        ],
        [said("go")],
        [event("user_message", message="go")],
    ],
    ids=["item first", "event first", "item_completed", "both events", "item alone", "event alone"],
)  # fmt: skip
def test_a_prompt_arrives_once(told, lines):
    for bounds in (([START], [END]), ([], [])):
        steps = told([META, *bounds[0], *lines, said("Done.", "assistant"), *bounds[1]])
        assert steps.prompts == ["go"]
        assert steps.turns == ["Done."]


def test_the_same_prompt_twice_is_two_prompts(told):
    lines = [META]
    for _ in range(2):
        lines += [START, said("go"), event("user_message", message="go"), said("Done.", "assistant"), END]
    steps = told(lines)
    assert steps.prompts == ["go", "go"]
    assert len(steps.turns) == 2


@pytest.mark.parametrize(
    "text",
    [
        "<environment_context>\n  <cwd>/w</cwd>\n</environment_context>",
        "<user_instructions>\n\nbe kind\n\n</user_instructions>",
        "# AGENTS.md instructions for /w\n\n<INSTRUCTIONS>\nbe kind\n</INSTRUCTIONS>",
        "<turn_aborted>\nThe user interrupted.\n</turn_aborted>",
        "<user_shell_command>\nls\n</user_shell_command>",
        "<skill>\n<name>x</name>\n</skill>",
    ],
)
def test_context_is_no_prompt(told, text):
    """With prompts as events, and in older rollouts without."""
    for told_twice in ([event("user_message", message="go")], []):
        steps = told(
            [
                META,
                said("be terse", "developer"),
                said(text),
                said("go"),
                *told_twice,
                said("Done.", "assistant"),
            ]
        )
        assert steps.prompts == ["go"]


def test_images_come_with_the_prompt(told):
    picture = {"type": "input_image", "image_url": "data:image/png;base64,AAAA"}
    content = [
        {"type": "input_text", "text": "<image name=[Image #1]>"},
        picture,
        {"type": "input_text", "text": "</image>"},
        {"type": "input_text", "text": "what is this"},
    ]
    steps = told([META, item("message", role="user", content=content), said("A cat.", "assistant")])
    assert steps.prompts == ["what is this"]
    assert steps.of(r.Prompt)[0].attachments == (picture,)
    event_of_it = event("user_message", message="what is this", images=["data:image/png;base64,AAAA"])
    steps = told([META, event_of_it, said("A cat.", "assistant")])
    assert steps.of(r.Prompt)[0].attachments == ("data:image/png;base64,AAAA",)


def test_a_prompt_during_a_turn_begins_none(told):
    steps = told(
        [
            META,
            START,
            event("user_message", message="go"),
            call("c1"),
            output("c1"),
            event("user_message", message="and quickly"),
            said("Done.", "assistant"),
            END,
        ]
    )
    assert [(p.text, p.within) for p in steps.of(r.Prompt)] == [("go", False), ("and quickly", True)]
    assert steps.turns == ["Done."]


# -- answers and tokens


def test_events_alone_tell_the_answers(told):
    steps = told(
        [
            META,
            event("user_message", message="go"),
            event("agent_message", message="I look."),
            tokens(100),
            event("agent_message", message="Done."),
            tokens(300, 200),
            event("task_complete", last_agent_message="Done."),
        ]
    )
    assert steps.answers == ["I look.", "Done."]
    assert steps.tokens == {"input_tokens": 300, "output_tokens": 30}
    assert steps.turns == ["Done."]


@pytest.mark.parametrize("order", ["item first", "event first"])
def test_an_answer_told_twice_arrives_once(told, order):
    pair = [said("Done.", "assistant"), event("agent_message", message="Done.")]
    if order == "event first":
        pair.reverse()
    steps = told([META, START, event("user_message", message="go"), *pair, tokens(10), END])
    assert steps.answers == ["Done."]
    assert steps.tokens == {"input_tokens": 10, "output_tokens": 1}


def test_reasoning_message_and_calls_are_one_answer(told):
    steps = told(
        [
            META,
            START,
            event("user_message", message="go"),
            item("reasoning", summary=[], encrypted_content="x"),
            said("I look.", "assistant"),
            call("c1"),
            call("c2"),
            tokens(100),
            output("c1"),
            output("c2"),
            item("reasoning", summary=[]),
            said("Done.", "assistant"),
            tokens(250, 150),
            END,
        ]
    )
    assert steps.answers == ["I look.", "Done."]
    first, second = steps.of(r.Response)
    assert [one["id"] for one in first.tool_calls] == ["c1", "c2"]
    assert first.usage["input_tokens"] == 100
    assert second.usage["input_tokens"] == 150


def test_results_between_the_calls_do_not_split_an_answer_that_is_counted(told):
    """Older versions wrote each call with its result, and the tokens of the answer behind them."""
    steps = told(
        [
            META, START, event("user_message", message="go"),
            call("c0"), tokens(10), output("c0"),
            call("c1"), output("c1"), call("c2"), output("c2"), tokens(110, 100),
            said("Done.", "assistant"), tokens(160, 50), END,
        ]
    )  # fmt: skip
    assert [len(answer.tool_calls) for answer in steps.of(r.Response)] == [1, 2, 0]


def test_repeated_counts_count_once(told):
    steps = told(
        [
            META, START, event("user_message", message="go"),
            event("token_count", info=None, rate_limits={}),
            call("c1"), tokens(100), tokens(100), output("c1"), tokens(100),
            said("Done.", "assistant"), tokens(150, 50), tokens(150, 50), END, tokens(150, 50),
        ]
    )  # fmt: skip
    assert steps.tokens == {"input_tokens": 150, "output_tokens": 15}
    assert len(steps.of(r.Response)) == 2


def test_counts_before_their_answer(told):
    steps = told(
        [
            META, START, event("user_message", message="go"),
            tokens(100), call("c1"), output("c1"), tokens(150, 50), said("Done.", "assistant"), END,
        ]
    )  # fmt: skip
    assert [answer.usage["input_tokens"] for answer in steps.of(r.Response)] == [100, 50]


def test_totals_of_a_resumed_session_go_on(told):
    """The first count of the file tells its own answer, not what came before the file."""
    steps = told(
        [META, START, event("user_message", message="go"), said("Done.", "assistant"), tokens(1000, 60), END]
    )
    assert steps.tokens == {"input_tokens": 60, "output_tokens": 6}


def test_totals_that_begin_again(told):
    steps = told(
        [
            META, START, event("user_message", message="go"),
            call("c1"), tokens(100), output("c1"), said("Done.", "assistant"), tokens(40, 40), END,
        ]
    )  # fmt: skip
    assert steps.tokens["input_tokens"] == 140


def test_usage_records_win_over_counts(told):
    def record(count):
        return line("token_usage_record", usage={"input_tokens": count, "output_tokens": 1})

    steps = told(
        [
            META, START, event("user_message", message="go"),
            call("c1"), record(100), tokens(100), output("c1"),
            said("Done.", "assistant"), record(50), tokens(150, 50), END,
        ]
    )  # fmt: skip
    assert steps.tokens == {"input_tokens": 150, "output_tokens": 2}


def test_the_model_of_the_turn(told):
    steps = told(
        [
            META,
            line("turn_context", model="gpt-a"),
            event("user_message", message="go"),
            said("Done.", "assistant"),
        ]
    )
    assert steps.of(r.Response)[0].model == "gpt-a"


# -- calls and how they ended


@pytest.mark.parametrize(
    ("text", "status"),
    [
        ("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 0\nOutput:\nfine", "ok"),
        ("Chunk ID: 1\nWall time: 0.1 seconds\nProcess exited with code 2\nOutput:\nbad", "error"),
        ("Exit code: 0\nWall time: 0 seconds\nOutput:\nProcess exited with code 1", "ok"),
        ("Exit code: -9\nWall time: 0 seconds\nOutput:\n", "error"),
        ('{"output":"fine","metadata":{"exit_code":0,"duration_seconds":0.1}}', "ok"),
        ('{"output":"bad","metadata":{"exit_code":127,"duration_seconds":0.1}}', "error"),
        ({"content": "bad", "success": False}, "error"),
        ({"content": "fine", "success": True}, "ok"),
        ("plain words", "ok"),
        ("failed to parse function arguments: missing field `cmd`", "error"),
        ("unsupported call: frobnicate", "error"),
        ("exec_command failed for `x`: CreateProcess { message: \"No such file\" }", "error"),
        ('exec_command failed for `x`: CreateProcess { message: "Rejected(\\"rejected by user\\")" }', "denied"),
        ('exec_command failed for `x`: CreateProcess { message: "Rejected(\\"`x` rejected: blocked by policy\\")" }', "denied"),
        ('exec_command failed for `x`: CreateProcess { message: "Rejected(\\"Failed to create unified exec process: y\\")" }', "error"),
        ("exec command rejected by user", "denied"),
        ("Command blocked by PreToolUse hook: no. Command: rm -rf /", "denied"),
        ("aborted by user after 2.1s", "cancelled"),
        ("Wall time: 2.1 seconds\naborted by user", "cancelled"),
        ("aborted", "cancelled"),
        ([{"type": "input_text", "text": "fine"}], "ok"),
        (None, "ok"),
    ],
)  # fmt: skip
def test_how_a_call_ended(told, text, status):
    steps = told(
        [
            META,
            event("user_message", message="go"),
            call("c1"),
            output("c1", text),
            said("Done.", "assistant"),
        ]
    )
    assert steps.calls == [("exec_command", status, "")]
    end = steps.end_of("c1")
    assert end.result == text
    assert bool(end.error) == (status != "ok")


@pytest.mark.parametrize(
    ("about", "status"),
    [
        (event("exec_command_end", call_id="c1", exit_code=0, duration={"secs": 1, "nanos": 500000000}), "ok"),
        (event("exec_command_end", call_id="c1", exit_code=1, duration={"secs": 1, "nanos": 500000000}), "error"),
        (event("exec_command_end", call_id="c1", exit_code=-1, status="declined"), "denied"),
        (event("item_completed", item={"type": "CommandExecution", "id": "c1", "exit_code": 3, "status": "failed"}), "error"),
        (event("item_completed", item={"type": "CommandExecution", "id": "c1", "exit_code": 0, "status": "completed"}), "ok"),
        (event("patch_apply_end", call_id="c1", success=False), "error"),
        (event("patch_apply_end", call_id="c1", success=True), "ok"),
        (event("mcp_tool_call_end", call_id="c1", result={"Ok": {"content": [], "isError": True}}), "error"),
        (event("mcp_tool_call_end", call_id="c1", result={"Ok": {"content": [], "isError": False}}), "ok"),
        (event("mcp_tool_call_end", call_id="c1", result={"Err": "no server"}), "error"),
        (event("item_completed", item={"type": "McpToolCall", "id": "c1", "status": "failed", "error": {"message": "x"}}), "error"),
    ],
)  # fmt: skip
def test_events_tell_how_a_call_ended(told, about, status):
    steps = told(
        [
            META,
            event("user_message", message="go"),
            call("c1"),
            about,
            output("c1"),
            said("Done.", "assistant"),
        ]
    )
    assert steps.calls == [("exec_command", status, "")]
    assert steps.end_of("c1").result == "done"
    if "duration" in about["payload"]:
        assert steps.end_of("c1").duration == 1.5


def test_a_command_that_runs_on_ends_when_it_ends(told):
    running = "Chunk ID: 1\nWall time: 1 seconds\nProcess running with session ID 7\nOutput:\nstill"
    ended = event("exec_command_end", call_id="c1", exit_code=1, duration={"secs": 9, "nanos": 0})
    lines = [
        META, START, event("user_message", message="go"), call("c1"), output("c1", running),
        call("c2", "write_stdin", session_id=7), output("c2", "Process exited with code 1\nOutput:\n"),
    ]  # fmt: skip
    steps = told([*lines, ended, said("Done.", "assistant"), END])
    assert steps.calls == [("exec_command", "error", ""), ("write_stdin", "error", "")]
    assert steps.end_of("c1").result == running
    steps = told([*lines, said("Done.", "assistant"), END])
    assert steps.calls == [("exec_command", "ok", ""), ("write_stdin", "error", "")]


def test_patches_are_custom_calls(told):
    patch = "*** Begin Patch\n*** Add File: a.py\n+x = 1\n*** End Patch"
    steps = told(
        [
            META,
            event("user_message", message="go"),
            item("custom_tool_call", call_id="c1", name="apply_patch", input=patch, status="completed"),
            item("custom_tool_call_output", call_id="c1", output="Success. Updated the following files:\nA a.py"),
            item("custom_tool_call", call_id="c2", name="apply_patch", input="*** Begin"),
            item("custom_tool_call_output", call_id="c2", output="apply_patch verification failed: no hunk"),
            said("Done.", "assistant"),
        ]
    )  # fmt: skip
    assert steps.calls == [("apply_patch", "ok", ""), ("apply_patch", "error", "")]
    assert steps.of(r.ToolBegin)[0].args == {"input": patch}


def test_local_shell_calls(told):
    action = {"type": "exec", "command": ["bash", "-lc", "ls"], "timeout_ms": 1000, "env": None}
    answer = '{"output":"no","metadata":{"exit_code":2,"duration_seconds":0.2}}'
    steps = told(
        [
            META,
            event("user_message", message="go"),
            item("local_shell_call", id="lsh1", call_id="c1", status="completed", action=action),
            output("c1", answer),
            item("local_shell_call", id="lsh2", call_id=None, status="completed", action=action),
            output("lsh2", '{"output":"","metadata":{"exit_code":0,"duration_seconds":0.2}}'),
            said("Done.", "assistant"),
        ]
    )
    assert steps.calls == [("local_shell", "error", ""), ("local_shell", "ok", "")]
    assert steps.of(r.ToolBegin)[0].args == {"command": ["bash", "-lc", "ls"], "timeout_ms": 1000}


@pytest.mark.parametrize("order", [1, -1])
def test_a_web_search_arrives_once(told, order):
    action = {"type": "search", "query": "cats"}
    pair = [
        event("web_search_end", call_id="ws1", query="cats", action=action),
        item("web_search_call", id="ws1", status="completed", action=action),
    ]
    steps = told([META, event("user_message", message="go"), *pair[::order], said("Done.", "assistant")])
    assert steps.calls == [("web_search", "ok", "")]
    assert steps.of(r.ToolBegin)[0].args == action


def test_mcp_calls(told):
    steps = told(
        [
            META,
            event("user_message", message="go"),
            call("c1", "mcp__notes__find", q="x"),
            output("c1"),
            item("function_call", call_id="c2", name="find", namespace="mcp__notes", arguments="{}"),
            output("c2"),
            said("Done.", "assistant"),
        ]
    )
    assert [(begin.tool, begin.mcp) for begin in steps.of(r.ToolBegin)] == [
        ("mcp__notes__find", ("notes", "find")),
        ("mcp__notes__find", ("notes", "find")),
    ]


def test_arguments_that_are_no_object_are_kept(told):
    calls = [
        item("function_call", call_id="c1", name="x", arguments='{"a": '),
        item("function_call", call_id="c2", name="x", arguments="[1]"),
        item("function_call", call_id="c3", name="x", arguments=""),
        item("function_call", call_id="c4", name="x", arguments={"a": 1}),
    ]
    steps = told([META, event("user_message", message="go"), *calls, said("Done.", "assistant")])
    assert [begin.args for begin in steps.of(r.ToolBegin)] == [
        {"_raw": '{"a": '},
        {"_raw": "[1]"},
        {},
        {"a": 1},
    ]
    assert {end.status for end in steps.of(r.ToolEnd)} == {"unknown"}


def test_an_aborted_turn_cancels_its_calls(told):
    steps = told(
        [
            META, START, event("user_message", message="go"), call("c1"),
            event("turn_aborted", reason="interrupted"),
            START, event("user_message", message="again"), said("Done.", "assistant"), END,
        ]
    )  # fmt: skip
    assert steps.calls == [("exec_command", "cancelled", "")]
    assert steps.turns == ["", "Done."]


def test_an_end_of_file_leaves_calls_unknown(told):
    steps = told([META, START, event("user_message", message="go"), call("c1")])
    assert steps.calls == [("exec_command", "unknown", "")]
    assert steps.of(r.SessionFinish)[0].reason == "interrupted"


def test_a_call_that_is_told_again_counts_once(told):
    steps = told(
        [
            META, event("user_message", message="go"), call("c1"), output("c1"), call("c1"), output("c1", "x"),
            said("Done.", "assistant"),
        ]
    )  # fmt: skip
    assert steps.calls == [("exec_command", "ok", "")]


# -- the rest


def test_the_head_of_a_fork_is_told_once(told):
    older = line("session_meta", id="s0", cwd="/old")
    meta = line("session_meta", id="s1", forked_from_id="s0", cwd="/w")
    steps = told([meta, older, event("user_message", message="go"), said("Done.", "assistant")])
    assert [(b.session_id, b.cwd, b.source) for b in steps.of(r.SessionBegin)] == [("s1", "/w", "resume")]


def test_a_sub_agents_own_rollout(told):
    source = {"subagent": {"thread_spawn": {"parent_thread_id": "p", "depth": 1, "agent_role": "explorer"}}}
    meta = line("session_meta", id="s1", cwd="/w", source=source)
    steps = told([meta, event("user_message", message="go"), said("Done.", "assistant")])
    assert steps.of(r.SessionBegin)[0].agent == "explorer"
    meta = line("session_meta", id="s1", cwd="/w", source={"subagent": "review"})
    assert told([meta]).of(r.SessionBegin)[0].agent == "review"


def test_a_sub_agent_begins_and_ends(told):
    notification = json.dumps({"agent_path": "a1", "status": {"completed": "Left is fine."}})
    steps = told(
        [
            META, START, event("user_message", message="go"),
            call("c1", "spawn_agent", agent_type="explorer", message="look left"),
            output("c1", '{"agent_id":"a1","nickname":"Ada"}'),
            said(f"<subagent_notification>\n{notification}\n</subagent_notification>"),
            said("Done.", "assistant"), END,
        ]
    )  # fmt: skip
    begin = steps.of(r.SubagentBegin)[0]
    assert (begin.name, begin.prompt, begin.agent_id) == ("explorer", "look left", "a1")
    assert steps.of(r.SubagentEnd)[0].text == "Left is fine."
    assert steps.prompts == ["go"]
    assert steps.agents == ["explorer"]


def test_failures_and_other_events(told):
    steps = told(
        [
            META, START, event("user_message", message="go"),
            event("stream_error", message="Reconnecting 1/5"),
            event("error", message="Quota is gone", codex_error_info="usage_limit_exceeded"),
            event("task_complete", turn_id="t1", last_agent_message=None),
            START, event("user_message", message="again"), said("Hm.", "assistant"),
            line("compacted", message="we spoke"), event("thread_rolled_back", num_turns=1),
            event("error", message="Bad", codex_error_info={"http_connection_failed": {"status": 500}}), END,
        ]
    )  # fmt: skip
    assert [(f.error_type, f.message) for f in steps.of(r.Failure)] == [
        ("usage_limit_exceeded", "Quota is gone"),
        ("http_connection_failed", "Bad"),
    ]
    assert [(e.type, dict(e.properties)) for e in steps.of(r.HostEvent)] == [
        ("model.retry", {"message": "Reconnecting 1/5"}),
        ("compaction.after", {"summary": "we spoke"}),
        ("session.rewind", {"turns": 1}),
    ]
    assert steps.turns == ["", "Done."]


def test_rollouts_of_2025_have_no_envelopes(told):
    """The first versions wrote bare items behind a bare head."""
    steps = told(
        [
            {"id": "s1", "timestamp": "2025-06-01T00:00:00.000Z", "instructions": None},
            {"record_type": "state"},
            {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "go"}]},
            {"type": "reasoning", "summary": []},
            {"type": "function_call", "name": "shell", "call_id": "c1", "arguments": '{"command":["ls"]}'},
            {
                "type": "function_call_output",
                "call_id": "c1",
                "output": '{"output":"a","metadata":{"exit_code":0,"duration_seconds":0.1}}',
            },
            {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Done."}]},
            {"record_type": "state"},
        ]
    )
    assert steps.of(r.SessionBegin)[0].session_id == "s1"
    assert steps.prompts == ["go"]
    assert steps.calls == [("shell", "ok", "")]
    assert steps.of(r.ToolBegin)[0].args == {"command": ["ls"]}
    assert steps.answers == ["", "Done."]
    assert steps.turns == ["Done."]
