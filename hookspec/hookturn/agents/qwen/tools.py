"""The tools of Qwen Code: what each does and where its arguments carry what."""

from __future__ import annotations

from ...spec.tools import Tool, mcp_of

__all__ = ["TOOLS", "mcp_of"]

TOOLS: dict[str, Tool] = {
    "run_shell_command": Tool("bash", command=["command"]),
    "read_file": Tool("read", paths=["file_path", "absolute_path", "path"]),
    "read_many_files": Tool("read", paths=["paths", "include"]),
    "write_file": Tool("write", paths=["file_path"]),
    "edit": Tool("write", paths=["file_path"]),
    "replace": Tool("write", paths=["file_path"]),
    "list_directory": Tool("search", paths=["path", "dir_path"]),
    "glob": Tool("search", paths=["path", "dir_path"]),
    "grep_search": Tool("search", paths=["path", "dir_path"]),
    "search_file_content": Tool("search", paths=["path", "dir_path"]),
    "lsp": Tool("search", paths=["filePath", "path"]),
    "web_fetch": Tool("fetch", urls=["url"]),
    "web_search": Tool("search"),
    "agent": Tool("agent"),
    "task": Tool("agent"),
    "skill": Tool("other"),
    "todo_write": Tool("other"),
    "save_memory": Tool("other"),
    "ask_user_question": Tool("other"),
    "exit_plan_mode": Tool("other"),
}
"""By the tool's own name. Source: version 0.24.4 as run, and older names."""
