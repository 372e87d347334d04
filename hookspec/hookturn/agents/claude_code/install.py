"""``hookturn install claude-code``: our handlers in Claude Code's settings.

Files and handlers: https://code.claude.com/docs/en/hooks; seen with Claude Code 2.1.332.
"""

from __future__ import annotations

from os.path import join

from ..installing import Request, grouped, seconds_of
from .hooks import EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..installing import Change

NAME = "claude-code"

ONLY_COMMANDS = ("SessionStart", "Setup")
"""Events on which Claude Code calls no HTTP handler."""


def changes(request: Request) -> list[Change]:
    """Return how the settings must read (see ``installing.AgentInstall``)."""
    if request.user:
        folder = request.environ.get("CLAUDE_CONFIG_DIR") or join(request.home(), ".claude")
    else:
        folder = join(request.project, ".claude")
    shared, local = join(folder, "settings.json"), join(folder, "settings.local.json")
    commands: dict[str, dict[str, Any]] = {}
    calls: dict[str, dict[str, Any]] = {}
    for event, row in EVENTS.items():
        if request.remove or not row.install:
            continue
        seconds = seconds_of(row)
        if request.http is None or event in ONLY_COMMANDS or event in request.closed:
            command = request.command(seconds, event)
            commands[event] = {"type": "command", "command": command, "timeout": seconds}
        else:
            calls[event] = {
                "type": "http",
                "url": request.http.url,
                "headers": {"Authorization": f"Bearer {request.http.token}"},
                "timeout": seconds,
            }
    if request.user:  # Claude Code knows no local file of the user's
        both = {**commands, **calls}
        return request.edited(
            shared, lambda text: grouped(text, both, request.label(shared)), private=bool(calls)
        )
    return [
        *request.edited(shared, lambda text: grouped(text, commands, request.label(shared))),
        # The token is this user's alone, so it stays out of the file that a team shares.
        *(
            request.edited(local, lambda text: grouped(text, calls, request.label(local)), private=True)
            if calls or request.read(local) is not None
            else ()
        ),
    ]
