"""Claude Code's hooks run for real: its rules as tables, with real processes, servers and files."""

from __future__ import annotations

import json
import os
import shlex
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hookturn import events

DATA = Path(__file__).parents[1] / "data"
RULES = json.loads((DATA / "claude_code_rules.json").read_text(encoding="utf-8"))
FIELDS = {
    "PreToolUse": {"tool": "Bash", "args": {"command": "ls"}},
    "PostToolUse": {"tool": "Bash", "args": {"command": "ls"}, "result": {"stdout": "x", "stderr": ""}},
    "PermissionRequest": {"tool": "Bash", "args": {"command": "ls"}},
    "UserPromptSubmit": {"prompt": "hello"},
    "SessionStart": {},
    "SessionEnd": {},
    "Stop": {"text": "done"},
}
CLASSES = {
    "PreToolUse": events.PreToolExecution,
    "PostToolUse": events.PostToolExecution,
    "PermissionRequest": events.PermissionRequest,
    "UserPromptSubmit": events.UserPromptSubmit,
    "SessionStart": events.SessionStart,
    "SessionEnd": events.SessionEnd,
    "Stop": events.TurnComplete,
}


def event_of(name, folder, **more):
    return CLASSES[name](**{"session_id": "s-1", "cwd": str(folder), **FIELDS[name], **more})


def printing(folder, row):
    """A command that ends as a row of the table says."""
    (folder / "out.txt").write_text(row.get("stdout", ""), encoding="utf-8")
    (folder / "err.txt").write_text(row.get("stderr", ""), encoding="utf-8")
    if row.get("timed_out"):
        return "cat out.txt; sleep 30"
    return f"cat out.txt; cat err.txt >&2; exit {row['exit']}"


def check(row, out):
    """What a row's effect is for us."""
    effect, reason = row["effect"], row.get("reason")
    if effect == "error":
        assert out.decision is None
        assert len(out.failures) == 1
        return
    if row.get("timed_out"):  # loud here
        assert out.decision is None
        assert out.failures[0].error_type == "TimeoutError"
        return
    assert list(out.failures) == []
    if effect in ("deny", "ask", "allow", "block"):
        assert out.decision == effect
        assert reason is None or out.reason == reason
    elif effect == "continue":
        assert out.continue_reason == reason
    elif effect == "context":
        assert list(out.injected) == [row["context"]]
    elif effect == "tell":
        assert list(out.injected) == [reason]
    else:
        assert effect == "nothing"
        assert out.decision is None
        assert not out.injected
        assert not out.continue_reason


@pytest.mark.parametrize("row", RULES["commands"], ids=lambda row: row["id"])
def test_commands_end_as_the_table_says(claude, row):
    more = {"timeout": 0.5} if row.get("timed_out") else {}
    claude.user(**{row["event"]: [claude.group(claude.handler(printing(claude.folder, row), **more))]})
    check(row, claude.fire(event_of(row["event"], claude.folder)))


class Server:
    """An HTTP server that answers as it is told and keeps what it got."""

    def __init__(self):
        server = self
        self.status, self.body, self.delay = 200, b"", 0.0
        self.got = []

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self):
                data = self.rfile.read(int(self.headers["Content-Length"]))
                server.got.append((dict(self.headers), json.loads(data)))
                time.sleep(server.delay)
                self.send_response(server.status)
                self.send_header("Content-Length", str(len(server.body)))
                self.end_headers()
                self.wfile.write(server.body)

            def log_message(self, *args):
                pass

        self.http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.http.server_address[1]}/hook"
        self.thread = threading.Thread(target=self.http.serve_forever, args=(0.02,))
        self.thread.start()

    def close(self):
        self.http.shutdown()
        self.thread.join()
        self.http.server_close()


@pytest.fixture
def server():
    made = Server()
    yield made
    made.close()


@pytest.mark.parametrize("row", RULES["http"], ids=lambda row: row["id"])
def test_servers_answer_as_the_table_says(claude, server, row):
    url, more = server.url, {}
    if row["status"] is None:
        url = "http://127.0.0.1:1/hook"
    elif row["status"] == "timeout":
        server.delay, more = 1.0, {"timeout": 0.3}
    else:
        server.status, server.body = row["status"], row["body"].encode()
    claude.user(**{row["event"]: [claude.group({"type": "http", "url": url, **more})]})
    check(row, claude.fire(event_of(row["event"], claude.folder)))
    if row["status"] is not None:
        assert len(server.got) == 1  # no second try
        assert server.got[0][1]["tool_input"] == {"command": "ls"}


def test_headers_get_only_the_variables_that_are_allowed(claude, server, monkeypatch):
    monkeypatch.setenv("HOOK_TOKEN", "abc-123-secret")
    monkeypatch.setenv("OTHER_TOKEN", "def-456-secret")
    headers = {"Authorization": "Bearer $HOOK_TOKEN", "X-Other": "[${OTHER_TOKEN}]", "X-Plain": "a"}
    claude.user(
        PreToolUse=[
            claude.group(
                {"type": "http", "url": server.url, "headers": headers, "allowedEnvVars": ["HOOK_TOKEN"]}
            )
        ]
    )
    assembled = claude.assemble()
    claude.tool(assembled=assembled, command="ls")
    got = server.got[0][0]
    assert (got["Authorization"], got["X-Other"], got["X-Plain"]) == ("Bearer abc-123-secret", "[]", "a")
    assert any("allowedEnvVars does not name" in str(problem) for problem in assembled.problems)
    assert "abc-123-secret" not in str(assembled.problems)


def test_a_projects_hook_may_not_call_this_machine(claude, server):
    claude.settings(PreToolUse=[claude.group({"type": "http", "url": server.url})])
    claude.trust()
    assembled = claude.assemble()
    assert claude.rows(assembled)["project.PreToolUse.1.1"][0] == "failed"
    assert claude.tool(assembled=assembled, command="ls").decision is None
    assert server.got == []


SAYS = {
    "allow": '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "allow"}}',
    "ask": '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "ask"}}',
    "deny": '{"hookSpecificOutput": {"hookEventName": "PreToolUse", "permissionDecision": "deny"}}',
    "nothing": "",
    "error": "{",
}


@pytest.mark.parametrize("row", RULES["merging"], ids=lambda row: row["id"])
def test_several_hooks_merge_as_the_table_says(claude, row):
    hooks = [
        claude.handler(f"printf %s {shlex.quote(SAYS[word])} # {number}")
        for number, word in enumerate(row["hooks"])
    ]
    claude.user(PreToolUse=[claude.group(*hooks)])
    assert claude.tool(command="ls").decision == row["decision"]


def echo(claude, data, **more):
    return claude.handler(f"printf %s {shlex.quote(json.dumps(data))}", **more)


def inner(name, **fields):
    return {"hookSpecificOutput": {"hookEventName": name, **fields}}


def one(claude, name, data, event=None, **more):
    claude.user(**{name: [claude.group(echo(claude, data))]})
    return claude.fire(event or event_of(name, claude.folder, **more))


@pytest.mark.parametrize("first", ["rewriter", "silent"])
def test_a_rewrite_stays_whatever_a_silent_hook_does(claude, first):
    hooks = [echo(claude, inner("PreToolUse", updatedInput={"command": "ls -l"})), claude.handler("exit 0")]
    claude.user(PreToolUse=[claude.group(*(hooks if first == "rewriter" else hooks[::-1]))])
    out = claude.tool(command="ls", description="List")
    assert out.event.args == {"command": "ls -l"}  # the whole object
    assert out.decision is None


def test_of_two_rewrites_the_order_decides(claude):
    slow = claude.handler(
        "sleep 0.2; printf %s "
        + shlex.quote(json.dumps(inner("PreToolUse", updatedInput={"command": "slow"})))
    )
    quick = echo(claude, inner("PreToolUse", updatedInput={"command": "quick"}))
    claude.user(PreToolUse=[claude.group(slow, quick)])
    out = claude.tool(command="ls")
    assert out.event.command == "quick"
    assert [change.after["command"] for change in out.rewrites] == ["slow", "quick"]


def test_a_deny_drops_its_own_rewrite(claude):
    data = inner(
        "PreToolUse", permissionDecision="deny", permissionDecisionReason="no", updatedInput={"command": "x"}
    )
    out = one(claude, "PreToolUse", data)
    assert (out.decision, out.event.command) == ("deny", "ls")


def test_defer_asks(claude):
    assert one(claude, "PreToolUse", inner("PreToolUse", permissionDecision="defer")).decision == "ask"


def test_continue_false_beats_the_decision_and_the_tool_does_not_run(claude):
    data = {"continue": False, "stopReason": "enough", **inner("PreToolUse", permissionDecision="allow")}
    out = one(claude, "PreToolUse", data)
    assert (out.decision, out.reason) == ("block", "enough")


def test_continue_false_blocks_a_prompt_and_lets_a_turn_end(claude):
    assert one(claude, "UserPromptSubmit", {"continue": False, "stopReason": "enough"}).reason == "enough"
    data = {"continue": False, "stopReason": "enough", "decision": "block", "reason": "go on"}
    out = one(claude, "Stop", data)
    assert not out.continue_reason
    assert list(out.warnings) == ["enough"]


def test_continue_false_after_a_tool_ends_the_turn_at_the_models_next_answer(claude):
    data = {"continue": False, "stopReason": "enough"}
    claude.user(PostToolUse=[claude.group(echo(claude, data))])
    assembled = claude.assemble()
    with assembled.engine.session(cwd=str(claude.folder)) as session:
        session.submit("go")
        with session.turn() as turn:
            turn.call_tool("Bash", {"command": "ls"}, execute=lambda command: "x")
            out = turn.model_response(text="next", tool_calls=[])
            assert out.blocked_by
        with session.turn() as turn:
            assert not turn.model_response(text="later").blocked_by


def test_context_before_a_tool_is_read_in_the_next_system_prompt(claude):
    claude.user(
        PreToolUse=[claude.group(echo(claude, inner("PreToolUse", additionalContext="mind the gap")))]
    )
    assembled = claude.assemble()
    with assembled.engine.session(cwd=str(claude.folder)) as session:
        session.submit("go")
        with session.turn() as turn:
            turn.call_tool("Bash", {"command": "ls"}, execute=lambda command: "x")
            assert "mind the gap" in "\n".join(turn.system_prompt(["You are a coder."]))


def test_messages_for_the_user_are_warnings(claude):
    out = one(claude, "PreToolUse", {"systemMessage": "look out", "suppressOutput": True})
    assert (out.decision, list(out.warnings)) == (None, ["look out"])


def test_results_are_rewritten_in_the_tools_own_shape(claude):
    new = {"stdout": "hidden", "stderr": ""}
    out = one(claude, "PostToolUse", inner("PostToolUse", updatedToolOutput=new))
    assert out.event.result == new
    out = one(
        claude,
        "PostToolUse",
        inner("PostToolUse", updatedMCPToolOutput="new"),
        tool="mcp__a__b",
        result="old",
    )
    assert out.event.result == "new"
    out = one(claude, "PostToolUse", inner("PostToolUse", updatedMCPToolOutput="new"))
    assert out.event.result == {"stdout": "x", "stderr": ""}


def test_a_blocked_result_and_context_are_both_told(claude):
    data = {"decision": "block", "reason": "tests fail", **inner("PostToolUse", additionalContext="see log")}
    assert list(one(claude, "PostToolUse", data).injected) == ["tests fail", "see log"]


def test_stop_goes_on_by_context_too_and_at_most_eight_times_in_a_row(claude):
    claude.user(Stop=[claude.group(echo(claude, inner("Stop", additionalContext="one more thing")))])
    assembled = claude.assemble()
    with assembled.engine.session(cwd=str(claude.folder)) as session:
        session.submit("go")
        rounds = 0
        with session.turn() as turn:
            while turn.complete("done").again:
                rounds += 1
        assert rounds == RULES["limits"]["continues_in_a_row"]


@pytest.mark.parametrize(
    ("decision", "expected"),
    [
        ({"behavior": "allow"}, ("allow", False)),
        ({"behavior": "deny", "message": "no"}, ("deny", False)),
        ({"behavior": "deny", "interrupt": True}, ("deny", False)),
        ({"behavior": "allow", "updatedInput": {"command": "other"}}, (None, True)),
        ({"behavior": "maybe"}, (None, True)),
        ("allow", (None, True)),
    ],
)
def test_permission_requests_are_answered(claude, decision, expected):
    out = one(claude, "PermissionRequest", inner("PermissionRequest", decision=decision))
    assert (out.decision, bool(out.failures)) == expected


def test_what_a_session_start_exports_is_set(claude, monkeypatch):
    folder = claude.home / "tmp"
    folder.mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(folder))
    lines = "export A=1\\n# note\\nexport B='two words'\\nC=\\nexport PATH=\\$PATH:/x\\nif true\\n"
    claude.user(
        SessionStart=[claude.group(claude.handler(f'printf "{lines}" >> "$CLAUDE_ENV_FILE"; echo hi'))]
    )
    out = claude.fire(event_of("SessionStart", claude.folder))
    assert out.env == {"A": "1", "B": "two words", "C": ""}
    assert list(out.injected) == ["hi"]
    assert list(folder.iterdir()) == []


def test_long_texts_are_cut_and_kept_in_a_file(claude):
    claude.user(UserPromptSubmit=[claude.group(claude.handler("head -c 30000 /dev/zero | tr '\\0' x"))])
    (text,) = claude.fire(event_of("UserPromptSubmit", claude.folder)).injected
    assert len(text) == RULES["limits"]["characters"]
    path = Path(text.rpartition("is in ")[2].removesuffix("]"))
    assert path.read_text() == "x" * 30_000
    assert (path.stat().st_mode & 0o777, path.parent.stat().st_mode & 0o777) == (0o600, 0o700)


@pytest.mark.parametrize("noise", ["Welcome!\n", "Last login: {today}\n"])
def test_a_banner_before_the_json_is_told_with_its_place(claude, noise):
    (claude.folder / "out.txt").write_text(noise + SAYS["deny"])
    claude.user(PreToolUse=[claude.group(claude.handler("cat out.txt"))])
    out = claude.tool(command="ls")
    assert out.decision is None
    assert f"JSON found after {len(noise)} bytes of text" in out.failures[0].message
    assert "settings.json:" in out.failures[0].message


def test_two_documents_and_a_bom(claude):
    (claude.folder / "out.txt").write_bytes(b"\xef\xbb\xbf" + SAYS["deny"].encode())
    claude.user(PreToolUse=[claude.group(claude.handler("cat out.txt"))])
    assert claude.tool(command="ls").decision == "deny"
    (claude.folder / "out.txt").write_text(SAYS["deny"] + "\n" + SAYS["allow"])
    out = claude.tool(command="ls")
    assert out.decision is None
    assert "more text follows its JSON" in out.failures[0].message


def test_a_hook_that_goes_on_in_the_background_by_its_answer_decides_nothing(claude):
    (claude.folder / "out.txt").write_text('{"async": true}\n' + SAYS["deny"])
    claude.user(PreToolUse=[claude.group(claude.handler("cat out.txt"))])
    out = claude.tool(command="ls")
    assert (out.decision, list(out.failures)) == (None, [])


def test_a_missing_script_is_no_deny(claude):
    claude.user(PreToolUse=[claude.group(claude.handler("python3 /nope.py"))])
    out = claude.tool(command="ls")
    assert out.decision is None
    assert "could not start" in out.failures[0].message


def test_a_denied_tool_is_never_entered(claude):
    sentinel = claude.folder / "sentinel"
    claude.user(PreToolUse=[claude.group(claude.handler("echo no >&2; exit 2"), matcher="Bash")])
    with claude.assemble().engine.session(cwd=str(claude.folder)) as session:
        session.submit("go")
        with session.turn() as turn:
            result = turn.call_tool("Bash", {"command": "x"}, execute=lambda command: sentinel.touch())
            assert result.status == "denied"
    assert not sentinel.exists()


# -- what hooks read ---------------------------------------------------------------------------------


def payload(claude, name, event):
    out = claude.folder / "payload.json"
    claude.user(**{name: [claude.group(claude.handler("cat > payload.json; env > env.txt"))]})
    assert list(claude.fire(event).failures) == []
    return json.loads(out.read_bytes())


CAPTURED = ["PreToolUse", "PostToolUse", "PostToolUseFailure", "PermissionRequest", "UserPromptSubmit", "SessionStart",
            "SessionEnd", "Stop", "SubagentStop", "SubagentStart", "PreCompact", "Notification"]  # fmt: skip
ABSENT = {"prompt_id", "effort", "permission_suggestions"}  # only Claude Code itself knows these


@pytest.mark.parametrize("name", CAPTURED)
def test_payloads_have_the_fields_that_claude_code_gives(claude, name):
    want = json.loads((DATA / "claude_settings" / "payloads" / f"{name}.json").read_text(encoding="utf-8"))
    common = {"session_id": want["session_id"], "cwd": want["cwd"], "host": "claude-code"}
    if "agent_id" in want:
        common.update(agent_id=want["agent_id"], agent=want["agent_type"])
    call = {key: want[key] for key in ("tool_name", "tool_input") if key in want}
    tool = {
        "tool": call.get("tool_name"),
        "args": call.get("tool_input"),
        "call_id": want.get("tool_use_id", ""),
    }
    event = {
        "PreToolUse": lambda: events.PreToolExecution(**common, **tool),
        "PostToolUse": lambda: events.PostToolExecution(
            **common, **tool, result=want["tool_response"], duration=want["duration_ms"] / 1000
        ),
        "PostToolUseFailure": lambda: events.PostToolExecution(
            **common, **tool, status="error", error=want["error"], duration=want["duration_ms"] / 1000
        ),
        "PermissionRequest": lambda: events.PermissionRequest(**common, **tool),
        "UserPromptSubmit": lambda: events.UserPromptSubmit(**common, prompt=want["prompt"]),
        "SessionStart": lambda: events.SessionStart(**common, source="startup"),
        "SessionEnd": lambda: events.SessionEnd(**common, reason="complete"),
        "Stop": lambda: events.TurnComplete(**common, text=want["last_assistant_message"]),
        "SubagentStop": lambda: events.TurnComplete(**common, text=want["last_assistant_message"]),
        "SubagentStart": lambda: events.Event(
            **common,
            type="subagent.start",
            properties={"agent": want["agent_type"], "agent_id": want["agent_id"]},
        ),
        "PreCompact": lambda: events.Event(
            **common,
            type="compaction.before",
            properties={"trigger": "manual", "custom_instructions": "keep it short"},
        ),
        "Notification": lambda: events.Event(
            **common,
            type="notification",
            properties={key: want[key] for key in ("message", "notification_type")},
        ),
    }[name]()
    got = payload(claude, name, event)
    assert list(got) == [key for key in want if key not in ABSENT | {"agent_transcript_path"}]
    differ = {key for key in got if got[key] != want[key]}
    assert differ <= {"transcript_path"}


def test_claude_codes_own_payload_keeps_what_only_it_knows(claude):
    raw = json.loads((DATA / "claude_settings" / "payloads" / "PreToolUse.json").read_text(encoding="utf-8"))
    event = events.PreToolExecution(
        tool="Bash", args=raw["tool_input"], call_id=raw["tool_use_id"], session_id=raw["session_id"],
        cwd=raw["cwd"], host="claude-code", raw=raw,
    )  # fmt: skip
    assert payload(claude, "PreToolUse", event) == raw


@pytest.mark.parametrize(
    "text", ['echo "表"', "ok 🚀\ud83d\u0000", "\u2028\u2029", "a" * 300_000, "$(touch pwned)`touch pwned`"]
)
def test_whatever_a_text_holds_the_payload_is_valid(claude, text):
    got = payload(claude, "UserPromptSubmit", event_of("UserPromptSubmit", claude.folder, prompt=text))
    assert got["prompt"] == text
    assert not (claude.folder / "pwned").exists()


def test_hooks_get_the_projects_folder_and_run_there(claude, monkeypatch):
    sub = claude.folder / "sub"
    sub.mkdir()
    monkeypatch.chdir(sub)
    claude.script(".claude/hooks/deny.sh", '#!/bin/sh\necho "in $PWD" >&2; exit 2\n')
    claude.settings(PreToolUse=[claude.group(claude.handler('"$CLAUDE_PROJECT_DIR"/.claude/hooks/deny.sh'))])
    claude.trust()
    assert claude.tool(command="ls").reason == f"in {claude.folder}"
    claude.settings(PreToolUse=[claude.group(claude.handler(".claude/hooks/deny.sh"))])
    claude.trust()
    event = events.PreToolExecution(tool="Bash", args={"command": "ls"}, cwd=str(sub))
    assert claude.fire(event).reason == f"in {claude.folder}"


def test_the_exec_form_runs_without_a_shell(claude):
    claude.script(".claude/hooks/args.sh", "#!/bin/sh\nprintf '<%s>' \"$@\" >&2; exit 2\n")
    claude.settings(
        PreToolUse=[
            claude.group(
                claude.handler(
                    "${CLAUDE_PROJECT_DIR}/.claude/hooks/args.sh",
                    args=["a b", "$(x)", "${CLAUDE_PROJECT_DIR}"],
                )
            )
        ]
    )
    claude.trust()
    assert claude.tool(command="ls").reason == f"<a b><$(x)><{claude.folder}>"


def test_the_shell_can_be_bash(claude):
    line = "[[ x == x ]] && { echo yes >&2; exit 2; }"
    claude.user(PreToolUse=[claude.group(claude.handler(line, shell="bash"))])
    assert claude.tool(command="ls").reason == "yes"


# -- other agents' tools -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "args", "matcher", "name", "given"),
    [
        ("bash", {"command": "ls"}, "Bash", "Bash", {"command": "ls"}),
        ("exec_command", {"cmd": "ls", "workdir": "/x"}, "Bash", "Bash", {"workdir": "/x", "command": "ls"}),
        ("shell", {"command": ["bash", "-lc", "ls -l"]}, "Bash", "Bash", {"command": "ls -l"}),
        ("write_file", {"file_path": "/a", "content": "x"}, "Edit|Write", "Write", {"file_path": "/a", "content": "x"}),
        ("create", {"path": "/a", "file_text": "x"}, "Write", "Write", {"file_path": "/a", "content": "x"}),
        ("replace", {"file_path": "/a", "old_string": "x", "new_string": "y"}, "Edit", "Edit",
         {"file_path": "/a", "old_string": "x", "new_string": "y"}),
        ("edit", {"filePath": "/a", "oldString": "x", "newString": "y"}, "^Edit$", "Edit",
         {"file_path": "/a", "old_string": "x", "new_string": "y"}),
        ("apply_patch", {"input": "*** Update File: /a\n"}, "Write", "Edit",
         {"input": "*** Update File: /a\n", "file_path": "/a"}),
        ("read_file", {"absolute_path": "/a"}, "Read", "Read", {"file_path": "/a"}),
        ("view", {"path": "/a"}, "Read", "Read", {"file_path": "/a"}),
        ("web_fetch", {"url": "https://x"}, "WebFetch", "WebFetch", {"url": "https://x"}),
        ("grep", {"pattern": "x"}, "Grep", "Grep", {"pattern": "x"}),
        ("glob", {"pattern": "x"}, "Glob", "Glob", {"pattern": "x"}),
        ("task", {"prompt": "go"}, "Task|Agent", "Agent", {"prompt": "go"}),
        ("read_file", {"path": "/a"}, "read_file", "Read", {"file_path": "/a"}),
        ("my_tool", {"x": 1}, "my_tool", "my_tool", {"x": 1}),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_other_agents_calls_are_known_by_claude_codes_names(claude, tool, args, matcher, name, given):
    claude.user(PreToolUse=[claude.group(claude.handler("cat > payload.json"), matcher=matcher)])
    event = events.PreToolExecution(tool=tool, args=args, cwd="/")
    claude.fire(event)
    got = json.loads((claude.folder / "payload.json").read_bytes())
    assert (got["tool_name"], got["tool_input"]) == (name, given)


@pytest.mark.parametrize(
    ("tool", "args", "new", "expected"),
    [
        ("exec_command", {"cmd": "ls"}, {"command": "ls -l"}, {"cmd": "ls -l"}),
        (
            "shell",
            {"command": ["bash", "-lc", "ls"]},
            {"command": "pwd"},
            {"command": ["bash", "-lc", "pwd"]},
        ),
        (
            "create",
            {"path": "a", "file_text": "x"},
            {"file_path": "/p/a", "content": "y"},
            {"path": "a", "file_text": "y"},
        ),
        (
            "create",
            {"path": "a", "file_text": "x"},
            {"file_path": "/b", "content": "x"},
            {"path": "/b", "file_text": "x"},
        ),
        (
            "apply_patch",
            {"input": "*** Update File: a\n"},
            {"input": "new", "file_path": "/p/a"},
            {"input": "new"},
        ),
        ("apply_patch", {"input": "*** Update File: a\n"}, {"input": "new", "file_path": "/b"}, None),
    ],
)
def test_a_rewrite_is_translated_back(claude, tool, args, new, expected):
    data = inner("PreToolUse", updatedInput=new)
    event = events.PreToolExecution(tool=tool, args=args, cwd="/p")
    out = one(claude, "PreToolUse", data, event)
    if expected is None:
        assert "no argument 'file_path' that could be changed" in out.failures[0].message
    else:
        assert out.event.args == expected


def test_another_agents_mcp_tool_has_claude_codes_name(claude):
    claude.user(PreToolUse=[claude.group(claude.handler("exit 2"), matcher="mcp__demo__.*")])
    event = events.PreToolExecution(tool="demo-echo", args={}, mcp=("demo", "echo"))
    assert claude.fire(event).decision == "deny"


def test_another_agents_result_is_given_and_changed_as_text(claude):
    claude.user(
        PostToolUse=[
            claude.group(claude.handler("cat > payload.json")),
            claude.group(
                echo(claude, inner("PostToolUse", updatedToolOutput={"stdout": "new", "stderr": ""}))
            ),
        ]
    )
    event = events.PostToolExecution(
        tool="run_shell_command", args={"command": "ls"}, result={"llmContent": "old", "returnDisplay": "old"}
    )
    out = claude.fire(event)
    assert json.loads((claude.folder / "payload.json").read_bytes())["tool_response"]["stdout"] == "old"
    assert out.event.result == {"llmContent": "new", "returnDisplay": "old"}


# -- which hooks run ---------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "runs"),
    [
        (events.PostToolExecution(tool="Bash", args={}, status="ok"), "PostToolUse"),
        (events.PostToolExecution(tool="Bash", args={}, status="error"), "PostToolUseFailure"),
        (events.PostToolExecution(tool="Bash", args={}, status="timeout"), "PostToolUseFailure"),
        (events.PostToolExecution(tool="Bash", args={}, status="denied"), ""),
        (events.TurnComplete(text="x"), "Stop"),
        (events.TurnComplete(text="x", agent_id="a1", agent="reviewer"), "SubagentStop"),
        (events.Error(error_type="rate_limit", message="m", phase="model"), "StopFailure"),
        (events.Error(error_type="E", message="m", phase="hook"), ""),
        (events.Event(type="subagent.start", properties={"agent": "x"}), "SubagentStart"),
        (events.Event(type="compaction.before", accepts=["Deny"]), "PreCompact"),
        (events.Event(type="compaction.after"), "PostCompact"),
        (events.Event(type="notification"), "Notification"),
        (events.Event(type="config.changed"), "ConfigChange"),
        (events.Event(type="x", raw={"hook_event_name": "TaskCreated"}), "TaskCreated"),
        (events.Event(type="session.idle"), ""),
        (events.ModelResponse(text="hello"), "MessageDisplay"),
    ],
)
def test_events_are_told_apart(claude, event, runs):
    from hookturn.agents.claude_code.occasions import OCCASIONS

    claude.user(**{name: [claude.group(claude.handler(f"echo {name} >> ran.txt"))] for name in OCCASIONS})
    claude.fire(event)
    ran = claude.folder / "ran.txt"
    assert (ran.read_text().split() if ran.exists() else []) == ([runs] if runs else [])


def test_compaction_is_denied_where_the_host_lets_hooks(claude):
    claude.user(PreCompact=[claude.group(claude.handler("echo no >&2; exit 2"), matcher="manual")])
    event = {"type": "compaction.before", "properties": {"trigger": "manual"}}
    assert claude.fire(events.Event(**event, accepts=["Deny"])).reason == "no"
    out = claude.fire(events.Event(**event))
    assert "cannot be blocked here" in out.failures[0].message
    assert claude.fire(events.Event(type="compaction.before", accepts=["Deny"])).decision is None  # auto


def test_why_a_hook_does_not_run_is_explained(claude):
    claude.user(
        PreToolUse=[
            claude.group(claude.handler("exit 2"), matcher="Edit"),
            claude.group(claude.handler("exit 2", **{"if": "Bash(git *)"}), matcher="Bash"),
        ]
    )
    from hookturn.engine.match import Filter

    engine = claude.assemble().engine
    whys = []
    for name in ("claude-code.user.PreToolUse.1.1", "claude-code.user.PreToolUse.2.1"):
        options = engine.registry.plugins[name].options
        whys.append(
            Filter(condition=options["condition"]).why_not(
                events.PreToolExecution(tool="Bash", args={"command": "ls"})
            )
        )
    assert whys == [
        "matcher: 'Edit' does not match 'Bash'",
        "if: the call does not fit 'Bash(git *)'",
    ]


def test_the_same_hook_in_two_groups_runs_once(claude):
    hook = claude.handler("echo ran >> ran.txt")
    claude.user(PreToolUse=[claude.group(hook, matcher="Bash"), claude.group(hook, matcher="*")])
    claude.tool(command="ls")
    assert (claude.folder / "ran.txt").read_text() == "ran\n"
    claude.tool("Read", file_path="x")
    assert (claude.folder / "ran.txt").read_text() == "ran\nran\n"


def test_a_hook_with_async_is_not_waited_for(claude):
    line = "cat > payload.json; sleep 0.3; echo done > done.txt; exit 2"
    claude.user(PreToolUse=[claude.group(claude.handler(line, **{"async": True}))])
    assembled = claude.assemble()
    begin = time.monotonic()
    out = claude.tool(assembled=assembled, command="ls")
    assert time.monotonic() - begin < 0.3
    assert (out.decision, list(out.failures)) == (None, [])
    assembled.engine.close()
    assert (claude.folder / "done.txt").exists()
    assert json.loads((claude.folder / "payload.json").read_bytes())["tool_name"] == "Bash"


def test_an_async_hook_that_goes_on_is_stopped_with_the_engine(claude, monkeypatch):
    monkeypatch.setattr("hookturn.agents.claude_code.background.PATIENCE", 0.2)
    claude.user(PreToolUse=[claude.group(claude.handler("echo $$ > pid; exec sleep 60", **{"async": True}))])
    assembled = claude.assemble()
    claude.tool(assembled=assembled, command="ls")
    pid = claude.folder / "pid"
    end = time.monotonic() + 5
    while not (pid.exists() and pid.read_text().strip()) and time.monotonic() < end:
        time.sleep(0.01)
    assembled.engine.close()
    assert gone(int(pid.read_text()))


@pytest.mark.parametrize("most", [None, 1, 6])
def test_processes_of_an_async_hook_are_limited_in_number(claude, monkeypatch, most):
    monkeypatch.setattr("hookturn.agents.claude_code.background.PATIENCE", 60.0)  # a busy machine is slow
    if most is not None:
        claude.write("hookturn.yaml", f"version: 1\ndialects: {{claude-code: {{background: {most}}}}}\n")
        claude.trust()
    line = "touch run.$$; ls run.* | wc -l >> seen; sleep 0.1; rm run.$$; echo >> ended"
    claude.user(PreToolUse=[claude.group(claude.handler(line, **{"async": True}))])
    assembled = claude.assemble()
    for _ in range(12):
        claude.tool(assembled=assembled, command="ls")
    assembled.engine.close()
    seen = [int(line) for line in (claude.folder / "seen").read_text().split()]
    assert len(seen) == len((claude.folder / "ended").read_text().splitlines()) == 12
    assert max(seen) <= (most or 4)
    assert max(seen) > 1 or most == 1


def test_events_that_an_async_hook_cannot_keep_up_with_are_dropped_and_told(claude, monkeypatch):
    monkeypatch.setattr("hookturn.agents.claude_code.background.PATIENCE", 0.2)
    monkeypatch.setattr("hookturn.agents.claude_code.background.WAITING", 3)
    claude.user(PreToolUse=[claude.group(claude.handler("echo >> begun; exec sleep 60", **{"async": True}))])
    assembled = claude.assemble()
    begun = claude.folder / "begun"
    from loguru import logger

    told = []
    sink = logger.add(lambda message: told.append(message.record["message"]), level="WARNING")
    try:
        for number in range(9):
            claude.tool(assembled=assembled, command="ls")
            end = time.monotonic() + 20
            # The first four run before the others come.
            while number < 4 and not (begun.exists() and len(begun.read_text()) > number):
                assert time.monotonic() < end
                time.sleep(0.01)
        assembled.engine.close()
    finally:
        logger.remove(sink)
    dropped = [text for text in told if "is not run for this event: 4 of its processes run" in text]
    assert len(dropped) == 2
    assert any("events that waited" in text for text in told)


@pytest.mark.parametrize("more", [1, 0])
def test_an_async_hook_without_a_thread_runs_when_there_is_one(claude, monkeypatch, more):
    monkeypatch.setattr("hookturn.agents.claude_code.background.PATIENCE", 60.0)
    claude.user(PreToolUse=[claude.group(claude.handler("echo >> ended", **{"async": True}))])
    assembled = claude.assemble()
    start = threading.Thread.start

    def none_for_us(thread):
        if thread.name == "hookturn-async":
            raise RuntimeError("can't start new thread")
        start(thread)

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", none_for_us)
        for _ in range(6):  # more than run at a time
            assert list(claude.tool(assembled=assembled, command="ls").failures) == []
    for _ in range(more):
        claude.tool(assembled=assembled, command="ls")
    assembled.engine.close()
    assert len((claude.folder / "ended").read_text().splitlines()) == 6 + more


@pytest.mark.parametrize("value", ["0", "65", "true", "many", "1.5"])
def test_a_limit_that_is_none_is_told(claude, value):
    claude.write("hookturn.yaml", f"version: 1\ndialects: {{claude-code: {{background: {value}}}}}\n")
    problems = claude.assemble().problems
    assert any("from 1 to 64" in str(problem) for problem in problems)


def gone(pid, seconds=5):
    """Whether a process ends within some seconds."""
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        try:
            os.kill(pid, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.01)
    return False


def test_nothing_runs_in_a_dry_run_unless_asked(claude):
    claude.user(
        PreToolUse=[
            claude.group(claude.handler("touch ran; exit 2")),
            claude.group(claude.handler("touch ran2", **{"async": True})),
        ]
    )
    event = events.PreToolExecution(tool="Bash", args={}, dry_run=True)
    assert claude.fire(event).decision is None
    assert not list(claude.folder.glob("ran*"))
    assert claude.fire(event, live=True).decision == "deny"
