"""The tools of Claude Code: what each does and where its arguments carry what."""

from __future__ import annotations

from ...spec.tools import Tool, mcp_of

__all__ = ["TOOLS", "mcp_of"]

TOOLS: dict[str, Tool] = {
    **dict.fromkeys(("Bash", "PowerShell", "Monitor"), Tool("bash", command=["command"])),
    "Read": Tool("read", paths=["file_path"]),
    "NotebookRead": Tool("read", paths=["notebook_path"]),
    **dict.fromkeys(("Write", "Edit", "MultiEdit"), Tool("write", paths=["file_path"])),
    "NotebookEdit": Tool("write", paths=["notebook_path"]),
    **dict.fromkeys(("Glob", "Grep", "LS"), Tool("search", paths=["path"])),
    "WebFetch": Tool("fetch", urls=["url"]),
    "WebSearch": Tool("search"),
    **dict.fromkeys(("Agent", "Task", "SendMessage"), Tool("agent")),
    **dict.fromkeys(
        ("BashOutput", "TaskOutput", "KillShell", "KillBash", "TaskStop", "ToolSearch", "Skill", "SlashCommand",
         "AskUserQuestion", "EnterPlanMode", "ExitPlanMode", "EnterWorktree", "ExitWorktree", "TodoWrite",
         "TaskCreate", "TaskGet", "TaskList", "TaskUpdate", "CronCreate", "CronDelete", "CronList",
         "ListMcpResourcesTool", "ReadMcpResourceTool", "StructuredOutput"),
        Tool("other"),
    ),
}  # fmt: skip
"""By the tool's own name. Source: the tools of versions 1 and 2; the shell, file and agent tools as run in 2.1."""
