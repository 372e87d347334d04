"""The tools of OpenAI Codex: what each does and where its arguments carry what.

Hooks get the shell as ``Bash {command}`` and a patch as ``apply_patch {command}``;
a rollout has the model's own names and arguments.
"""

from __future__ import annotations

from ...spec.tools import Tool, mcp_of

__all__ = ["TOOLS", "mcp_of"]

_PATCH = Tool("write", patch=["command", "input", "patch"])

TOOLS: dict[str, Tool] = {
    "Bash": Tool("bash", command=["command"]),
    "exec_command": Tool("bash", command=["cmd"]),
    "write_stdin": Tool("bash", command=["chars"]),
    "shell": Tool("bash", command=["command"]),
    "shell_command": Tool("bash", command=["command"]),
    "container.exec": Tool("bash", command=["cmd"]),
    "local_shell": Tool("bash", command=["command"]),
    "unified_exec": Tool("bash", command=["input"]),
    "apply_patch": _PATCH,
    "read_file": Tool("read", paths=["file_path", "path"]),
    "view_image": Tool("read", paths=["path"]),
    "list_dir": Tool("search", paths=["dir_path", "path"]),
    "grep_files": Tool("search", paths=["path"]),
    "tool_search": Tool("other"),
    "web_search": Tool("search", urls=["url"]),
    "image_generation": Tool("other"),
    "update_plan": Tool("other"),
    "request_user_input": Tool("other"),
    "list_mcp_resources": Tool("other"),
    "read_mcp_resource": Tool("other"),
    "spawn_agent": Tool("agent"),
    "send_input": Tool("agent"),
    "send_message": Tool("agent"),
    "wait_agent": Tool("agent"),
    "wait": Tool("agent"),
    "close_agent": Tool("agent"),
    "resume_agent": Tool("agent"),
    **{
        f"multi_agent_v1{name}": Tool("agent")  # as run: hooks get namespace and name in one word
        for name in ("send_input", "wait_agent", "close_agent", "resume_agent")
    },
}
"""By the name in a hook payload or in a rollout. Source: version 0.171.0 as run, older rollouts."""
