"""The tools of Gemini CLI: what each does and where its arguments carry what, and how MCP tools are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...spec.tools import Tool
from ...spec.tools import mcp_of as usual_mcp_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

TOOLS: dict[str, Tool] = {
    "run_shell_command": Tool("bash", command=["command"]),
    "read_file": Tool("read", paths=["file_path", "absolute_path", "path"]),
    "read_many_files": Tool("read", paths=["paths", "include"]),
    "write_file": Tool("write", paths=["file_path"]),
    "replace": Tool("write", paths=["file_path"]),
    "list_directory": Tool("search", paths=["dir_path", "path"]),
    "glob": Tool("search", paths=["dir_path", "path"]),
    "grep_search": Tool("search", paths=["dir_path", "path"]),
    "search_file_content": Tool("search", paths=["dir_path", "path"]),
    "web_fetch": Tool("fetch", urls=["url"]),
    "google_web_search": Tool("search"),
    "save_memory": Tool("other"),
    "write_todos": Tool("other"),
    "update_topic": Tool("other"),
    "ask_user": Tool("other"),
    "activate_skill": Tool("other"),
    "enter_plan_mode": Tool("other"),
    "exit_plan_mode": Tool("other"),
    "complete_task": Tool("other"),
    "get_internal_docs": Tool("other"),
    "invoke_agent": Tool("agent"),
    "delegate_to_agent": Tool("agent"),
    "codebase_investigator": Tool("agent"),
    "generalist": Tool("agent"),
    "cli_help": Tool("agent"),
}
"""By the tool's own name. Source: version 0.61.0 as run, and older names."""


def mcp_of(name: str, raw: Mapping[str, Any] | None = None) -> tuple[str, str] | None:
    """Return (server, tool) of an MCP tool, else None.

    Parameters:
        name: the tool's name, such as ``mcp_demo_echo``.
        raw: the hook's payload; its ``mcp_context`` tells server and tool for sure.

    A name alone is split at the first underscore behind ``mcp_``: a server whose
    own name has one is told apart only by the payload.
    """
    context = raw.get("mcp_context") if raw else None
    if isinstance(context, dict):
        server, tool = context.get("server_name"), context.get("tool_name")
        if isinstance(server, str) and isinstance(tool, str) and server and tool:
            return server, tool
    if name.startswith("mcp__"):
        return usual_mcp_of(name)
    if not name.startswith("mcp_"):
        return None
    server, separator, tool = name[4:].partition("_")
    return (server, tool) if separator and server and tool else None
