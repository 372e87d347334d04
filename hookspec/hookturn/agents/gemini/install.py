"""``hookturn install gemini``: our handlers in Gemini CLI's settings, whose time limits are milliseconds.

Files and handlers: https://geminicli.com/docs/hooks; seen with Gemini CLI 0.61.0.
"""

from __future__ import annotations

from os.path import join

from ..installing import Request, grouped, wanted_of
from .hooks import EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..installing import Change

NAME = "gemini"


def changes(request: Request) -> list[Change]:
    """Return how the settings must read (see ``installing.AgentInstall``)."""
    path = join(request.home() if request.user else request.project, ".gemini", "settings.json")
    wanted = wanted_of(
        request,
        EVENTS,
        lambda _, seconds: {
            "type": "command",
            "name": "hookturn",
            "command": request.command(seconds),
            "timeout": seconds * 1000,
        },
    )
    return request.edited(path, lambda text: grouped(text, wanted, request.label(path)))
