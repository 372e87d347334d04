"""``hookturn install qwen``: our handlers in Qwen Code's settings. Seen with Qwen Code 0.24.4."""

from __future__ import annotations

from os.path import join

from ..installing import Request, grouped, wanted_of
from .hooks import EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..installing import Change

NAME = "qwen"


def changes(request: Request) -> list[Change]:
    """Return how the settings must read (see ``installing.AgentInstall``)."""
    path = join(request.home() if request.user else request.project, ".qwen", "settings.json")
    wanted = wanted_of(
        request,
        EVENTS,
        lambda event, seconds: {
            "type": "command",
            "name": "hookturn",
            "command": request.command(seconds, event),
            "timeout": seconds,
        },
    )
    return request.edited(path, lambda text: grouped(text, wanted, request.label(path)))
