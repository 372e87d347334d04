"""The tools of Claude Code: what each does and where its arguments carry what."""

from __future__ import annotations

from ...spec.tools import Tool, mcp_of

__all__ = ["TOOLS", "mcp_of"]

TOOLS: dict[str, Tool] = {
    "Bash": Tool("bash", command=["command"]),
    "PowerShell": Tool("bash", command=["command"]),
    "Monitor": Tool("bash", command=["command"]),
    "BashOutput": Tool("other"),
    "TaskOutput": Tool("other"),
    "KillShell": Tool("other"),
    "KillBash": Tool("other"),
    "TaskStop": Tool("other"),
    "Read": Tool("read", paths=["file_path"]),
    "NotebookRead": Tool("read", paths=["notebook_path"]),
    "Write": Tool("write", paths=["file_path"]),
    "Edit": Tool("write", paths=["file_path"]),
    "MultiEdit": Tool("write", paths=["file_path"]),
    "NotebookEdit": Tool("write", paths=["notebook_path"]),
    "Glob": Tool("search", paths=["path"]),
    "Grep": Tool("search", paths=["path"]),
    "LS": Tool("search", paths=["path"]),
    "ToolSearch": Tool("other"),
    "WebFetch": Tool("fetch", urls=["url"]),
    "WebSearch": Tool("search"),
    "Agent": Tool("agent"),
    "Task": Tool("agent"),
    "SendMessage": Tool("agent"),
    "Skill": Tool("other"),
    "SlashCommand": Tool("other"),
    "AskUserQuestion": Tool("other"),
    "EnterPlanMode": Tool("other"),
    "ExitPlanMode": Tool("other"),
    "EnterWorktree": Tool("other"),
    "ExitWorktree": Tool("other"),
    "TodoWrite": Tool("other"),
    "TaskCreate": Tool("other"),
    "TaskGet": Tool("other"),
    "TaskList": Tool("other"),
    "TaskUpdate": Tool("other"),
    "CronCreate": Tool("other"),
    "CronDelete": Tool("other"),
    "CronList": Tool("other"),
    "ListMcpResourcesTool": Tool("other"),
    "ReadMcpResourceTool": Tool("other"),
    "StructuredOutput": Tool("other"),
}
"""By the tool's own name. Source: the tools of versions 1 and 2; the shell, file and agent tools as run in 2.1."""
