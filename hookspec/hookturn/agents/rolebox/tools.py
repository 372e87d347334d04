"""The tools that rolebox hooks see: those of the host it runs in, and its own."""

from __future__ import annotations

from ...spec.tools import Tool, mcp_of

__all__ = ["TOOLS", "mcp_of"]

TOOLS: dict[str, Tool] = {
    "bash": Tool("bash", command=["command", "cmd"]),
    "read": Tool("read", paths=["filePath", "path"]),
    "look_at": Tool("read", paths=["filePath", "path", "file_path"]),
    "write": Tool("write", paths=["filePath", "path"]),
    "edit": Tool("write", paths=["filePath", "path"]),
    "hashline_edit": Tool("write", paths=["filePath", "path"]),
    "patch": Tool("write", patch=["patchText"]),
    "glob": Tool("search", paths=["path"]),
    "grep": Tool("search", paths=["path"]),
    "list": Tool("search", paths=["path"]),
    "webfetch": Tool("fetch", urls=["url"]),
    "task": Tool("agent"),
    "skill": Tool("other"),
    "todowrite": Tool("other"),
    "todoread": Tool("other"),
}
"""By the tool's own name. Source: the names in its built-in hooks, and opencode's."""
