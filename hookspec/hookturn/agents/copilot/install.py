"""``hookturn install copilot``: a hook file of our own, which GitHub Copilot CLI reads beside the others.

Files and entries: https://docs.github.com/copilot/reference/hooks-configuration; seen with Copilot CLI 1.0.102.
"""

from __future__ import annotations

from os.path import join

from ..installing import Request, listed, wanted_of
from ..json_text import put
from .hooks import EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..installing import Change

NAME = "copilot"

FOLDER = (
    "Copilot runs a repository's hooks in folders that you trust only (headless: COPILOT_ALLOW_ALL=true)."
)


def changes(request: Request) -> list[Change]:
    """Return how the hook file must read (see ``installing.AgentInstall``)."""
    folder = join(request.project, ".github", "hooks")
    if request.user:
        folder = join(request.environ.get("COPILOT_HOME") or join(request.home(), ".copilot"), "hooks")
    path = join(folder, "hookturn.json")
    wanted = wanted_of(
        request,
        EVENTS,
        lambda event, seconds: {
            "type": "command",
            "bash": request.command(seconds, event),
            "timeoutSec": seconds,
        },
    )

    def edit(text: str) -> str:
        text = listed(text, wanted, request.label(path))
        if request.remove and '"hooks"' not in text:
            return "{}\n"
        return text if '"version"' in text else put(text, ("version",), 1)

    notes = [] if request.user or request.remove else [FOLDER]
    return request.edited(path, edit, notes=notes)
