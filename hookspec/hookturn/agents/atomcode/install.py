"""``hookturn install atomcode``: named entries in AtomCode's hook file, one an event.

Both generations of AtomCode read this file; ``bridge atomcode`` tells them apart by what they hand over.
"""

from __future__ import annotations

from os.path import join

from ..installing import Request, named, wanted_of
from .hooks import EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..installing import Change

NAME = "atomcode"


def changes(request: Request) -> list[Change]:
    """Return how the hook file must read (see ``installing.AgentInstall``)."""
    path = join(request.project, ".hooks.json")
    if request.user:
        path = join(request.environ.get("ATOMCODE_HOME") or join(request.home(), ".atomcode"), "hooks.json")
    wanted = wanted_of(
        request,
        EVENTS,
        lambda event, seconds: {
            "event": event,
            # At PreToolUse each generation has words of its own, and the first calls it otherwise.
            "command": request.command(seconds, event if event != "PreToolUse" else ""),
            "timeout_ms": seconds * 1000,
        },
    )
    entries = {f"hookturn-{event}": entry for event, entry in wanted.items()}
    return request.edited(path, lambda text: named(text, entries, request.label(path)))
