"""Every agent's tools: their kinds, where their arguments carry what, and their MCP names."""

from __future__ import annotations

from importlib import import_module

import pytest

from hookturn.agents.copilot.tools import mcp_of as copilot_mcp_of
from hookturn.agents.gemini.tools import mcp_of as gemini_mcp_of
from hookturn.spec.tools import KINDS, Tool, command_of, lookup, paths_of, urls_of

AGENTS = ("claude_code", "codex", "gemini", "qwen", "copilot", "opencode", "atomcode", "rolebox")


def tools(agent):
    return import_module(f"hookturn.agents.{agent}.tools").TOOLS


@pytest.mark.parametrize("agent", AGENTS)
def test_every_tool_has_a_kind_and_tells_where_its_arguments_are(agent):
    table = tools(agent)
    assert table
    for name, tool in table.items():
        assert isinstance(tool, Tool)
        assert tool.kind in KINDS, name
        if tool.kind == "bash":
            assert tool.command, name
        if tool.kind == "read":
            assert tool.paths, name
        if tool.kind == "write":
            assert tool.paths or tool.patch, name
        if tool.kind == "fetch":
            assert tool.urls, name
    kinds = {tool.kind for tool in table.values()}
    assert {"bash", "read", "write"} <= kinds


PATCH = "*** Begin Patch\n*** Update File: a.py\n@@\n-x\n+y\n*** End Patch"


@pytest.mark.parametrize(
    ("agent", "name", "args", "kind", "seen"),
    [
        ("claude_code", "Bash", {"command": "ls", "description": "x"}, "bash", "ls"),
        ("claude_code", "Read", {"file_path": "/w/a.py"}, "read", ["/w/a.py"]),
        ("claude_code", "Write", {"file_path": "a.py", "content": "x"}, "write", ["/w/a.py"]),
        ("claude_code", "Edit", {"file_path": "a.py", "old_string": "x"}, "write", ["/w/a.py"]),
        ("claude_code", "NotebookEdit", {"notebook_path": "a.ipynb"}, "write", ["/w/a.ipynb"]),
        ("claude_code", "WebFetch", {"url": "https://example.org", "prompt": "x"}, "fetch", ["https://example.org"]),
        ("claude_code", "Grep", {"pattern": "x", "path": "src"}, "search", ["/w/src"]),
        ("claude_code", "Agent", {"prompt": "x", "subagent_type": "y"}, "agent", None),
        ("claude_code", "Task", {"prompt": "x", "subagent_type": "y"}, "agent", None),
        ("codex", "Bash", {"command": "ls"}, "bash", "ls"),
        ("codex", "exec_command", {"cmd": "ls", "workdir": "/w"}, "bash", "ls"),
        ("codex", "shell", {"command": ["bash", "-lc", "ls -l"]}, "bash", "ls -l"),
        ("codex", "local_shell", {"command": ["ls", "a b"]}, "bash", "ls 'a b'"),
        ("codex", "write_stdin", {"session_id": 1, "chars": "y\n"}, "bash", "y\n"),
        ("codex", "apply_patch", {"command": PATCH}, "write", ["/w/a.py"]),
        ("codex", "apply_patch", {"input": PATCH}, "write", ["/w/a.py"]),
        ("codex", "view_image", {"path": "a.png"}, "read", ["/w/a.png"]),
        ("codex", "spawn_agent", {"message": "x"}, "agent", None),
        ("gemini", "run_shell_command", {"command": "ls"}, "bash", "ls"),
        ("gemini", "read_file", {"file_path": "a.py"}, "read", ["/w/a.py"]),
        ("gemini", "read_file", {"absolute_path": "/w/a.py"}, "read", ["/w/a.py"]),
        ("gemini", "read_many_files", {"paths": ["a.py", "b.py"]}, "read", ["/w/a.py", "/w/b.py"]),
        ("gemini", "write_file", {"file_path": "a.py"}, "write", ["/w/a.py"]),
        ("gemini", "replace", {"file_path": "a.py"}, "write", ["/w/a.py"]),
        ("gemini", "list_directory", {"dir_path": "src"}, "search", ["/w/src"]),
        ("gemini", "web_fetch", {"prompt": "sum up https://example.org/x now"}, "fetch", ["https://example.org/x"]),
        ("qwen", "run_shell_command", {"command": "ls"}, "bash", "ls"),
        ("qwen", "read_file", {"file_path": "a.py"}, "read", ["/w/a.py"]),
        ("qwen", "write_file", {"file_path": "a.py"}, "write", ["/w/a.py"]),
        ("qwen", "edit", {"file_path": "a.py"}, "write", ["/w/a.py"]),
        ("qwen", "agent", {"prompt": "x"}, "agent", None),
        ("copilot", "bash", {"command": "ls"}, "bash", "ls"),
        ("copilot", "view", {"path": "a.py"}, "read", ["/w/a.py"]),
        ("copilot", "create", {"path": "a.py", "file_text": "x"}, "write", ["/w/a.py"]),
        ("copilot", "edit", {"path": "a.py", "old_str": "x"}, "write", ["/w/a.py"]),
        ("copilot", "Bash", {"command": "ls"}, "bash", "ls"),
        ("copilot", "Write", {"path": "a.py"}, "write", ["/w/a.py"]),
        ("copilot", "task", {"prompt": "x", "agent_type": "y"}, "agent", None),
        ("copilot", "web_fetch", {"url": "https://example.org"}, "fetch", ["https://example.org"]),
        ("opencode", "bash", {"command": "ls"}, "bash", "ls"),
        ("opencode", "read", {"filePath": "a.py"}, "read", ["/w/a.py"]),
        ("opencode", "write", {"filePath": "a.py"}, "write", ["/w/a.py"]),
        ("opencode", "edit", {"filePath": "a.py"}, "write", ["/w/a.py"]),
        ("opencode", "webfetch", {"url": "https://example.org"}, "fetch", ["https://example.org"]),
        ("opencode", "task", {"prompt": "x"}, "agent", None),
        ("atomcode", "bash", {"command": "ls"}, "bash", "ls"),
        ("atomcode", "write_file", {"file_path": "a.py"}, "write", ["/w/a.py"]),
        ("rolebox", "edit", {"filePath": "a.py"}, "write", ["/w/a.py"]),
    ],
)  # fmt: skip
def test_what_a_call_does(agent, name, args, kind, seen):
    assert name in tools(agent)
    tool = lookup(tools(agent), name)
    assert tool.kind == kind
    if isinstance(seen, str):
        assert command_of(tool, args) == seen
    elif seen and seen[0].startswith("http"):
        assert urls_of(tool, args) == seen
    elif seen:
        assert paths_of(tool, args, "/w") == seen


@pytest.mark.parametrize(
    ("name", "raw", "expected"),
    [
        ("mcp_demo_echo", None, ("demo", "echo")),
        ("mcp_demo_say_it", None, ("demo", "say_it")),
        (
            "mcp_my_demo_echo",
            {"mcp_context": {"server_name": "my_demo", "tool_name": "echo"}},
            ("my_demo", "echo"),
        ),
        ("mcp__demo__echo", None, ("demo", "echo")),
        ("read_file", None, None),
        ("read_file", {"mcp_context": None}, None),
        ("mcp_demo", None, None),
        ("mcp_", {"mcp_context": {"server_name": 1}}, None),
    ],
)
def test_mcp_names_of_gemini(name, raw, expected):
    assert gemini_mcp_of(name, raw) == expected


@pytest.mark.parametrize(
    ("name", "raw", "expected"),
    [
        ("demo-echo", None, ("demo", "echo")),
        ("demo/echo", None, ("demo", "echo")),
        ("my-demo/echo", None, ("my-demo", "echo")),
        ("my-demo-echo", {"mcpServerName": "my-demo", "mcpToolName": "echo"}, ("my-demo", "echo")),
        ("mcp__demo__echo", None, ("demo", "echo")),
        ("bash", {"toolName": "bash"}, None),
        ("-echo", None, None),
    ],
)
def test_mcp_names_of_copilot(name, raw, expected):
    assert copilot_mcp_of(name, raw) == expected
