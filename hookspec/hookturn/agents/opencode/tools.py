"""The tools of opencode: what each does and where its arguments carry what.

MCP tools are named ``server_tool``, which a name alone does not tell from a
custom tool: only ``mcp__server__tool`` is taken for one.
"""

from __future__ import annotations

from ...spec.tools import Tool, mcp_of

__all__ = ["TOOLS", "mcp_of"]

TOOLS: dict[str, Tool] = {
    "bash": Tool("bash", command=["command"]),
    "read": Tool("read", paths=["filePath", "path"]),
    "write": Tool("write", paths=["filePath", "path"]),
    "edit": Tool("write", paths=["filePath", "path"]),
    "multiedit": Tool("write", paths=["filePath", "path"]),
    "patch": Tool("write", patch=["patchText"]),
    "apply_patch": Tool("write", patch=["patchText", "input"]),
    "glob": Tool("search", paths=["path"]),
    "grep": Tool("search", paths=["path"]),
    "list": Tool("search", paths=["path"]),
    "lsp": Tool("search", paths=["filePath"]),
    "codesearch": Tool("search"),
    "webfetch": Tool("fetch", urls=["url"]),
    "websearch": Tool("search"),
    "task": Tool("agent"),
    "skill": Tool("other"),
    "question": Tool("other"),
    "todowrite": Tool("other"),
    "todoread": Tool("other"),
}
"""By the tool's own name. Source: version 1.18.33 as run, and its documentation."""
