"""The tools of GitHub Copilot CLI: what each does and where its arguments carry what, and how MCP tools are named."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...spec.tools import Tool
from ...spec.tools import mcp_of as usual_mcp_of

if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

_BASH = Tool("bash", command=["command"])
_WRITE = Tool("write", paths=["path", "file_path"], patch=["patch", "input"])

TOOLS: dict[str, Tool] = {
    "bash": _BASH,
    "powershell": _BASH,
    "write_bash": Tool("bash", command=["input"]),
    "write_powershell": Tool("bash", command=["input"]),
    "read_bash": Tool("other"),
    "stop_bash": Tool("other"),
    "list_bash": Tool("other"),
    "read_powershell": Tool("other"),
    "stop_powershell": Tool("other"),
    "view": Tool("read", paths=["path"]),
    "create": _WRITE,
    "edit": _WRITE,
    "str_replace": _WRITE,
    "str_replace_editor": _WRITE,
    "apply_patch": Tool("write", patch=["patch", "input"]),
    "grep": Tool("search", paths=["path"]),
    "rg": Tool("search", paths=["path"]),
    "glob": Tool("search", paths=["path"]),
    "lsp": Tool("search", paths=["path", "file"]),
    "web_fetch": Tool("fetch", urls=["url"]),
    "fetch": Tool("fetch", urls=["url"]),
    "web_search": Tool("search"),
    "task": Tool("agent"),
    "read_agent": Tool("agent"),
    "write_agent": Tool("agent"),
    "list_agents": Tool("agent"),
    "report_intent": Tool("other"),
    "update_todo": Tool("other"),
    "sql": Tool("other"),
    "skill": Tool("other"),
    "ask_user": Tool("other"),
    "store_memory": Tool("other"),
    "task_complete": Tool("other"),
    # The names that hooks with PascalCase events get.
    "Bash": _BASH,
    "Read": Tool("read", paths=["path", "file_path"]),
    "Write": _WRITE,
    "Edit": _WRITE,
    "Grep": Tool("search", paths=["path"]),
    "Glob": Tool("search", paths=["path"]),
    "WebFetch": Tool("fetch", urls=["url"]),
    "Agent": Tool("agent"),
    "Task": Tool("agent"),
}
"""By the tool's own name. Source: version 1.0.102 as run."""


def mcp_of(name: str, raw: Mapping[str, Any] | None = None) -> tuple[str, str] | None:
    """Return (server, tool) of an MCP tool, else None.

    Parameters:
        name: the tool's name: ``demo-echo``; ``demo/echo`` in a permission request.
        raw: the hook's payload or the session event's data, which may have ``mcpServerName`` and ``mcpToolName``.

    A name alone is split at its first hyphen: a server whose own name has one is
    told apart only by the payload.
    """
    if raw:
        server, tool = raw.get("mcpServerName"), raw.get("mcpToolName")
        if isinstance(server, str) and isinstance(tool, str) and server and tool:
            return server, tool
    if name.startswith("mcp__"):
        return usual_mcp_of(name)
    for separator in ("/", "-"):
        server, found, tool = name.partition(separator)
        if found and server and tool and name not in TOOLS:
            return server, tool
    return None
