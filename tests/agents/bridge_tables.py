"""The table of a bridge's page, as it follows from the agent's own table."""

from __future__ import annotations

WORDS = {
    "deny": "refuse",
    "stop": "end the turn",
    "ask": "ask",
    "allow": "allow",
    "args": "change the arguments",
    "result": "change the result",
    "inject": "context",
    "again": "go on",
    "prompt": "change the prompt",
    "system": "change the system prompt",
    "text": "change what is shown",
    "reply": "reply",
    "env": "variables",
    "warn": "warn",
}


def table(hooks):
    """Return the Markdown table of an agent's events, in the order of its own."""
    lines = ["| Event | Fires | Can be said | Limit |", "|---|---|---|---|"]
    for row in hooks.EVENTS.values():
        timings = ", ".join(f"`{name}`" for name in row.timings)
        if row.type:
            timings = timings.replace("`on_event`", f"`on_event` {row.type}")
        can = ", ".join(WORDS[word] for word in row.can) or "nothing"
        lines.append(f"| {row.event} | {timings} | {can} | {row.seconds:g} s |")
    return "\n".join(lines)


def notes(hooks):
    """Return what the table has to say beside, event by event."""
    return {row.event: row.note for row in hooks.EVENTS.values() if row.note}
