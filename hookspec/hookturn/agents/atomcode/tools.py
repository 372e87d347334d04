"""The tools of AtomCode: what each does and where its arguments carry what.

Its documents name few tools; the rest go by the usual names (``spec/tools.py``).
"""

from __future__ import annotations

from ...spec.tools import Tool, mcp_of

__all__ = ["TOOLS", "mcp_of"]

TOOLS: dict[str, Tool] = {
    "bash": Tool("bash", command=["command"]),
    "read_file": Tool("read", paths=["file_path", "path"]),
    "write_file": Tool("write", paths=["file_path", "path"]),
    "edit_file": Tool("write", paths=["file_path", "path"]),
    "grep": Tool("search", paths=["path"]),
    "glob": Tool("search", paths=["path"]),
    "web_fetch": Tool("fetch", urls=["url"]),
    "web_search": Tool("search"),
}
"""By the tool's own name."""
