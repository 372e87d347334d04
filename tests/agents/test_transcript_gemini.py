"""Gemini CLI's chats in all their variants."""

from __future__ import annotations

import json

import pytest

from hookturn.agents import recorded as r

HEAD = {
    "sessionId": "s1",
    "projectHash": "p",
    "startTime": "2026-01-01T00:00:00.000Z",
    "lastUpdated": "2026-01-01T00:00:00.000Z",
    "kind": "main",
    "directories": ["/w"],
}


def user(identity, text, **fields):
    content = [{"text": text}] if isinstance(text, str) else text
    return {
        "id": identity,
        "timestamp": "2026-01-01T00:00:01.000Z",
        "type": "user",
        "content": content,
        **fields,
    }


def answer(identity, text="", *calls, count=100, **fields):
    message = {
        "id": identity,
        "timestamp": "2026-01-01T00:00:02.000Z",
        "type": "gemini",
        "content": text,
        "thoughts": [],
        "model": "gemini-x",
        "tokens": {"input": count, "output": 5, "cached": 3, "thoughts": 2, "tool": 0, "total": count + 7},
        **fields,
    }
    if calls:
        message["toolCalls"] = list(calls)
    return message


def call(identity, name="read_file", output=None, status="success", **fields):
    made = {
        "id": identity,
        "name": name,
        "args": {"file_path": "a.py"},
        "status": status,
        "timestamp": "2026-01-01T00:00:03.000Z",
        **fields,
    }
    if output is not None:
        made["result"] = [{"functionResponse": {"id": identity, "name": name, "response": output}}]
    return made


def document(*messages):
    return {**HEAD, "messages": list(messages)}


# -- both forms


def test_the_older_document(told):
    messages = [
        user("1", "go"),
        answer("2", "I look.", call("c1", output={"output": "x = 1"})),
        answer("3", "Done.", count=150),
        user("4", "more"),
        answer("5", "More."),
    ]
    lines = told([HEAD, *messages])
    for text in (
        json.dumps(document(*messages)),
        json.dumps(document(*messages), indent=2),
        json.dumps(document(*messages), indent="\t").replace("\n", "\r\n"),
    ):
        steps = told(text.encode(), name="session-x.json")
        assert steps.kinds == lines.kinds
        assert steps.prompts == ["go", "more"]
        assert steps.answers == ["I look.", "Done.", "More."]
        assert steps.calls == [("read_file", "ok", "")]
        assert steps.end_of("c1").result == {"output": "x = 1"}
        assert steps.turns == ["Done.", "More."]
        assert steps.tokens == {
            "input_tokens": 350,
            "output_tokens": 15,
            "cache_read_tokens": 9,
            "reasoning_tokens": 6,
        }
        begin = steps.of(r.SessionBegin)[0]
        assert (begin.session_id, begin.cwd) == ("s1", "/w")


def test_the_content_of_the_oldest_documents_is_text(told):
    steps = told([document({**user("1", "x"), "content": "go"}, answer("2", "Done."))], name="session-x.json")
    assert steps.prompts == ["go"]


def test_a_truncated_document_is_reported(told):
    text = json.dumps(document(user("1", "go"), answer("2", "Done.")))
    steps = told((json.dumps(HEAD) + "\n" + text[:-20]).encode())
    assert [skipped.line for skipped in steps.of(r.Skipped)] == [2]


def test_a_growing_record_counts_once(told):
    done = {"output": "x = 1"}
    steps = told(
        [
            HEAD,
            user("1", "go"),
            answer("2", "I", count=100),
            answer("2", "I look.", call("c1", status="executing"), count=100),
            answer("2", "I look.", call("c1", output=done), call("c2", status="scheduled"), count=100),
            answer("2", "I look.", call("c1", output=done), call("c2", output=done), count=100),
            answer("3", "Done.", count=150),
        ]
    )
    assert steps.answers == ["I look.", "Done."]
    assert steps.calls == [("read_file", "ok", ""), ("read_file", "ok", "")]
    assert steps.tokens["input_tokens"] == 250
    assert [one["id"] for one in steps.of(r.Response)[0].tool_calls] == ["c1", "c2"]


def test_results_that_come_after_other_records(told):
    done = {"output": "x = 1"}
    steps = told(
        [
            HEAD,
            user("1", "go"),
            answer("2", "I look.", call("c1", status="executing")),
            user("3", [{"functionResponse": {"id": "c1", "name": "read_file", "response": done}}]),
            answer("2", "I look.", call("c1", output=done), call("c2", output=done)),
            answer("4", "Done."),
        ]
    )
    assert steps.prompts == ["go"]
    assert steps.calls == [("read_file", "ok", ""), ("read_file", "ok", "")]
    assert steps.end_of("c1").result == done
    assert steps.answers == ["I look.", "Done."]


def test_histories_that_are_sent_again_add_nothing(told):
    messages = [
        user("1", "go"),
        answer("2", "I look.", call("c1", output={"output": "x"})),
        user("3", [{"functionResponse": {"id": "c1", "name": "read_file", "response": {"output": "x"}}}]),
        answer("4", "Done."),
    ]
    once = told([HEAD, *messages])
    renamed = [
        {**message, "id": message["id"] + "-new", "tokens": None} if "tokens" in message else message
        for message in messages
    ]
    for again in (
        {"$set": {"messages": messages}},
        {"$set": {"messages": renamed}},
        {"$set": {"lastUpdated": "x"}},
    ):
        steps = told([HEAD, *messages, again])
        assert steps.kinds == once.kinds
        assert steps.tokens == once.tokens
        assert steps.prompts == ["go"]
        assert steps.answers == ["I look.", "Done."]


def test_compression_and_rewind(told):
    snapshot = "<state_snapshot>\n  we spoke\n</state_snapshot>"
    steps = told(
        [
            HEAD,
            user("1", "go"),
            answer("2", "Done."),
            {"$set": {"messages": [user("n1", snapshot), answer("n2", "Got it.", tokens=None)]}},
            user("3", "more"),
            answer("4", "More."),
            {"$rewindTo": "3"},
            user("5", "other"),
            answer("6", "Other."),
        ]
    )
    assert [event.type for event in steps.of(r.HostEvent)] == ["compaction.after", "session.rewind"]
    assert steps.prompts == ["go", "more", "other"]
    assert steps.answers == ["Done.", "More.", "Other."]


def test_a_resumed_file(told):
    steps = told([HEAD, user("1", "go"), answer("2", "Done."), HEAD, user("3", "more"), answer("4", "More.")])
    assert [begin.source for begin in steps.of(r.SessionBegin)] == ["startup", "resume"]
    assert [finish.reason for finish in steps.of(r.SessionFinish)] == ["resume", "complete"]
    assert steps.turns == ["Done.", "More."]


# -- prompts


@pytest.mark.parametrize(
    "text",
    [
        "<session_context>\nToday is Monday.\n</session_context>",
        "This is the Gemini CLI. We are setting up the context for our chat.\nToday is Monday.",
    ],
)
def test_context_is_no_prompt(told, text):
    steps = told([HEAD, user("0", text), user("1", "go"), answer("2", "Done.")])
    assert steps.prompts == ["go"]


def test_what_the_user_typed_is_the_prompt(told):
    """``@file`` expands in the content; the display content is what was typed."""
    content = [{"text": "read @a.py"}, {"text": "\n--- Content from referenced files ---\nx = 1"}]
    shown = [{"text": "read @a.py"}]
    steps = told([HEAD, user("1", content, displayContent=shown), answer("2", "Done.")])
    assert steps.prompts == ["read @a.py"]


def test_images_come_with_the_prompt(told):
    picture = {"inlineData": {"mimeType": "image/png", "data": "AAAA"}}
    steps = told([HEAD, user("1", [{"text": "what is this"}, picture]), answer("2", "A cat.")])
    assert steps.of(r.Prompt)[0].attachments == (picture,)


# -- calls and how they ended


@pytest.mark.parametrize(
    ("output", "status"),
    [
        ("fine", "ok"),
        ("Output: fine\nExit Code: 0", "ok"),
        ("Output: bad\nExit Code: 2", "error"),
        ("Command: x\nDirectory: (root)\nOutput: bad\nError: (none)\nExit Code: 1\nSignal: (none)\nBackground PIDs: (none)\nProcess Group PGID: 7", "error"),
        ("Command: x\nOutput: ok\nError: (none)\nExit Code: 0\nSignal: (none)\nProcess Group PGID: 7", "ok"),
        ("Output: killed\nError: (none)\nExit Code: (none)\nSignal: 9\nProcess Group PGID: 7", "error"),
        ("Output: the log says Exit Code: 3\nand goes on\nExit Code: 0", "ok"),
        ("Output: Exit Code: 3\nbut that was the program's own line", "ok"),
    ],
)  # fmt: skip
def test_exit_codes(told, output, status):
    made = call("c1", "run_shell_command", {"output": output}, args={"command": "x"})
    steps = told([HEAD, user("1", "go"), answer("2", "", made), answer("3", "Done.")])
    assert steps.calls == [("run_shell_command", status, "")]
    # Only the shell tool has exit codes.
    steps = told(
        [HEAD, user("1", "go"), answer("2", "", {**made, "name": "read_file"}), answer("3", "Done.")]
    )
    assert steps.calls == [("read_file", "ok", "")]


@pytest.mark.parametrize(
    ("told_status", "error", "status"),
    [
        ("error", "File not found.", "error"),
        ("cancelled", "[Operation Cancelled] Reason: User did not allow tool call", "denied"),
        ("cancelled", "[Operation Cancelled] Reason: User cancelled the operation.", "cancelled"),
        ("error", "Tool execution denied by policy.", "denied"),
        ("error", "Tool execution blocked: no", "denied"),
    ],
)
def test_failures(told, told_status, error, status):
    made = call("c1", output={"error": error}, status=told_status)
    steps = told([HEAD, user("1", "go"), answer("2", "", made), answer("3", "Done.")])
    assert steps.calls == [("read_file", status, "")]
    assert steps.end_of("c1").error == error


def test_a_result_without_a_status(told):
    response = {"functionResponse": {"id": "c1", "name": "read_file", "response": {"error": "no such file"}}}
    made = call("c1", status="scheduled")
    steps = told([HEAD, user("1", "go"), answer("2", "", made), user("3", [response]), answer("4", "Done.")])
    assert steps.calls == [("read_file", "error", "")]
    assert steps.turns == ["Done."]


def test_calls_that_the_file_does_not_end(told):
    steps = told([HEAD, user("1", "go"), answer("2", "", call("c1", status="executing"))])
    assert steps.calls == [("read_file", "unknown", "")]
    assert steps.of(r.SessionFinish)[0].reason == "interrupted"


def test_mcp_names(told):
    made = call("c1", "mcp_notes_find", {"output": "x"})
    steps = told([HEAD, user("1", "go"), answer("2", "", made), answer("3", "Done.")])
    assert steps.of(r.ToolBegin)[0].mcp == ("notes", "find")


def test_error_messages_are_failures(told):
    steps = told(
        [
            HEAD,
            user("1", "go"),
            {"id": "2", "timestamp": "2026-01-01T00:00:02.000Z", "type": "error", "content": "Quota is gone"},
            {"id": "3", "timestamp": "2026-01-01T00:00:02.000Z", "type": "info", "content": "Update!"},
            user("4", "again"),
            answer("5", "Done."),
        ]
    )
    assert [failure.message for failure in steps.of(r.Failure)] == ["Quota is gone"]
    assert steps.prompts == ["go", "again"]
    assert steps.turns == ["", "Done."]


# -- sub-agents


def agent_call(status="success"):
    return call(
        "c1",
        "investigate",
        {"output": "Left is fine."},
        status,
        args={"objective": "look left"},
        agentId="abc123",
        resultDisplay={"agentName": "investigator"},
    )


def test_sub_agents_without_a_file(told):
    steps = told([HEAD, user("1", "go"), answer("2", "", agent_call()), answer("3", "Done.")])
    assert steps.agents == ["investigator"]
    assert steps.of(r.SubagentBegin)[0].prompt == "look left"
    assert steps.calls == [("investigate", "ok", "")]


def test_sub_agents_with_a_file(told, tmp_path):
    folder = tmp_path / "chats" / "0123456789-abc"
    folder.mkdir(parents=True)
    inner = [
        {**HEAD, "kind": "subagent"},
        user("i1", "look left"),
        answer("i2", "", call("ic1", output={"output": "x"})),
        answer("i3", "Left is fine."),
    ]
    (folder / "abc123.jsonl").write_text("".join(json.dumps(one) + "\n" for one in inner), encoding="utf-8")
    steps = told(
        [HEAD, user("1", "go"), answer("2", "", agent_call()), answer("3", "Done.")],
        name="chats/session-2026-01-01T00-00-01234567.jsonl",
    )
    assert steps.agents == ["investigator"]
    assert steps.calls == [("investigate", "ok", ""), ("read_file", "ok", "abc123")]
    assert steps.of(r.SubagentEnd)[0].text == "Left is fine."
    assert steps.prompts == ["go"]
    assert steps.tokens["input_tokens"] == 400
