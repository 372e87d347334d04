"""The second document's formats: scripts and webhooks of hooks.toml, and hooks.json of both generations."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data" / "atomcode"

EVENTS = {
    "turn_start": ("on_turn_start", {}),
    "turn_complete": ("on_turn_complete", {"text": "done"}),
    "after_turn": ("on_turn_complete", {"text": "done"}),
    "post_turn": ("post_turn", {}),
    "model_response": ("on_model_response", {"text": "hi"}),
    "tool_call_start": ("on_tool_call_start", {"tool": "bash", "args": {}}),
    "pre_tool": ("pre_tool_execution", {"tool": "bash", "args": {}}),
    "before_tool": ("pre_tool_execution", {"tool": "bash", "args": {}}),
    "post_tool": ("post_tool_execution", {"tool": "bash", "args": {}, "result": "x"}),
    "after_tool": ("post_tool_execution", {"tool": "bash", "args": {}, "result": "x"}),
    "session_start": ("on_session_start", {}),
    "session_end": ("on_session_end", {}),
    "error": ("on_error", {"error_type": "api_error", "message": "bad", "phase": "model"}),
    "system_prompt": ("system_prompt", {"parts": []}),
    "message": ("on_message_received", {"text": "hi"}),
}
"""Every trigger of the document's table -> what fires it."""


def server_of(docs, serve, *answers):
    """Start a server that the user lets hooks reach; return it."""
    server = serve(*answers)
    docs.write("hookturn.yaml", 'webhooks: {allow: ["127.0.0.1"]}\n', Path(docs.env["HOOKTURN_CONFIG_DIR"]))
    return server


def reply(result):
    body = json.dumps(result).encode()
    return b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s" % (
        len(body),
        body,
    )


def webhook(server, trigger, table="webhooks", name="tell", more=""):
    return f'[[{table}]]\nname = "{name}"\ntrigger = "{trigger}"\nurl = "{server.url}"\n{more}\n'


def install(docs):
    shutil.copytree(DATA / "hooks", docs.folder / ".atomcode/hooks")
    shutil.copytree(DATA / "tools", docs.folder / "tools")
    shutil.copy(DATA / "hooks.json", docs.folder / ".hooks.json")


def test_the_documents_files_from_trust_to_explain(docs):
    install(docs)
    assert docs.bash()["decision"] is None  # nobody trusts them yet
    pending = docs.trust()
    assert {item["source"].partition(":")[0] for item in pending} == {
        ".hooks.json",
        ".atomcode/hooks/hooks.toml",
    }
    assert docs.run("check")["problems"] == []
    out = docs.bash()
    assert (out["decision"], out["by"], out["event"]["args"]) == (
        "ask",
        "net-ask",
        {"command": "curl -sS https://example.net"},
    )
    assert [(item["by"], item["field"]) for item in out["rewrites"]] == [("net-ask", "args")]
    out = docs.fire("pre_tool_execution", tool="write_file", args={"path": "/etc/passwd"})
    assert (out["decision"], out["by"]) == ("deny", "deny-etc")
    hooks = docs.explain("pre_tool_execution", tool="read_file", args={})["hooks"]
    assert [hook["name"] for hook in hooks] == ["net-ask", "deny-etc", "self-protection"]
    assert [hook["why"] for hook in hooks[:2]] == [
        "matcher 'web*|bash': read_file does not match",
        "dry: runs only with --live",
    ]
    live = docs.explain("pre_tool_execution", "--live", tool="read_file", args={})["hooks"]
    assert "matcher" in live[0]["why"]


def test_replay_of_a_recorded_session(docs, serve):
    install(docs)
    server = server_of(docs, serve, reply({"result": "ok"}))
    text = (DATA / "hooks/hooks.toml").read_text(encoding="utf-8")
    docs.write(".atomcode/hooks/hooks.toml", text.replace("https://hooks.example.net/a", server.url).replace("https://hooks.example.net/batch", server.url))  # fmt: skip
    docs.trust()
    docs.recorded(**{"/home/dev/project/notes.md": "/etc/notes.md"})
    dry = docs.run("replay", "session.jsonl")
    assert {item.partition(":")[0] for item in dry["not_run"]} >= {
        "net-ask",
        "fail-log",
        "no-keys",
        "deny-etc",
        "team-rules",
        "tell-ops",
    }
    assert (dry["denied"], dry["asked"], server.requests) == (0, 0, [])
    live = docs.run("replay", "session.jsonl", "--live")
    assert live["not_run"] == []
    assert live["failures"] == 0
    assert live["denied"] >= 2  # Write and Edit below /etc
    assert (live["asked"], live["rewritten"]) == (1, 1)  # the Bash call
    assert live["injected"] == live["timings"]["system_prompt"]  # the team's rules
    (request,) = server.requests  # the session's end, in a batch
    assert [item["trigger"] for item in json.loads(request.body)["events"]] == ["session_end,error"]


@pytest.mark.parametrize("trigger", EVENTS)
def test_every_trigger_of_the_table_reaches_a_webhook(docs, serve, trigger):
    server = server_of(docs, serve, reply({"result": "ok"}))
    docs.write(".atomcode/hooks/hooks.toml", webhook(server, trigger))
    docs.trust()
    timing, fields = EVENTS[trigger]
    assert docs.fire(timing, **fields)["failures"] == []
    (request,) = server.requests
    body = json.loads(request.body)
    assert (body["hook_name"], body["trigger"], body["event"]) == ("tell", trigger, timing)


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        ({"result": "deny", "reason": "not today"}, ("deny", "not today", [])),
        ({"result": "warning", "message": "careful"}, (None, "", ["careful"])),
        ({"result": "ok"}, (None, "", [])),
    ],
)
def test_a_webhook_decides(docs, serve, answer, expected):
    server = server_of(docs, serve, reply(answer))
    docs.write(".atomcode/hooks/hooks.toml", webhook(server, "before_tool"))
    docs.trust()
    out = docs.bash()
    assert (out["decision"], out["reason"], out["warnings"]) == expected


def test_a_project_may_not_reach_into_the_users_network(docs, serve):
    server = serve(reply({"result": "deny"}))
    docs.write(".atomcode/hooks/hooks.toml", webhook(server, "pre_tool"))
    docs.trust()
    assert docs.bash()["decision"] is None
    assert server.requests == []
    assert docs.run("check", code=1)["errors"] == 1


def entry(command, event="pre_tool_use", **more):
    return {"event": event, "command": command, **more}


GENERATION_1 = {
    "block": entry('echo \'{"action": "block", "reason": "no"}\'', matcher="bash"),
    "variables": entry(
        'test "$ATOMCODE_TOOL_NAME" = edit_file && echo \'{"action": "block", "reason": "edit"}\'',
        matcher="edit_*",
    ),
}
GENERATION_2 = {
    "block": entry("cat >/dev/null; echo no >&2; exit 2", "PreToolUse", matcher="bash|grep"),
    "variables": entry(
        'grep -q \'"tool_name": *"edit_file"\' && { echo edit >&2; exit 2; }; true',
        "PreToolUse",
        matcher="*edit*",
    ),
}


@pytest.mark.parametrize("generation", [1, 2])
def test_both_generations_of_hooks_json(docs, generation):
    docs.write(".hooks.json", {"hooks": GENERATION_1 if generation == 1 else GENERATION_2})
    if generation == 1:
        docs.write("hookturn.yaml", "dialects: {atomcode: {generation: 1}}\n")
    docs.trust()
    out = docs.bash()
    assert (out["decision"], out["reason"], out["failures"]) == ("deny", "no", [])
    out = docs.fire("pre_tool_execution", tool="edit_file", args={"path": "a"})
    assert (out["decision"], out["reason"], out["failures"]) == ("deny", "edit", [])
    assert docs.fire("pre_tool_execution", tool="read_file", args={"path": "a"})["decision"] is None
    docs.recorded()
    assert docs.run("replay", "session.jsonl", "--live")["tool_calls"] == 4


def test_generation_1_files_work_under_the_default_rules(docs):
    docs.write(".hooks.json", {"hooks": GENERATION_1})
    docs.trust()
    assert docs.bash()["reason"] == "no"
    assert docs.fire("pre_tool_execution", tool="edit_file", args={"path": "a"})["reason"] == "edit"
