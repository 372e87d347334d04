"""A guard: refuse to overwrite what others pushed."""

from __future__ import annotations

from hookturn import Deny, events, hookimpl


@hookimpl(guard=True, tools=["bash"])
def pre_tool_execution(event: events.PreToolExecution) -> Deny | None:
    words = event.command.split()
    if "push" in words and {"--force", "-f"} & set(words):
        return Deny(
            "force pushes lose other people's work", advice="Use --force-with-lease on your own branch."
        )
    return None
