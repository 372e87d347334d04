"""``hookturn install codex``: our handlers in Codex's hooks.json, which the user must then trust in Codex.

Files and handlers: https://developers.openai.com/codex/hooks; seen with Codex 0.171.0.
"""

from __future__ import annotations

from os.path import join

from ..installing import Request, grouped, wanted_of
from .hooks import EVENTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..installing import Change

NAME = "codex"

MOST_SECONDS = {"SessionEnd": 3.0, "Interrupt": 3.0}
"""Codex cuts longer limits down to these."""

TRUST = "Codex runs a hook only after you have trusted it: start `codex`, type /hooks, and trust hookturn's entries."
PROJECT = "Codex reads a project's hooks only where it trusts the project (trust_level in its config.toml)."


def changes(request: Request) -> list[Change]:
    """Return how the hooks' file must read (see ``installing.AgentInstall``)."""
    folder = join(request.project, ".codex")
    if request.user:
        folder = request.environ.get("CODEX_HOME") or join(request.home(), ".codex")
    path = join(folder, "hooks.json")
    wanted = wanted_of(
        request,
        EVENTS,
        lambda event, seconds: {
            "type": "command",
            "command": request.command(seconds, event),
            "timeout": seconds,
        },
        MOST_SECONDS,
    )
    notes = [] if request.remove else [TRUST] if request.user else [PROJECT, TRUST]
    return request.edited(path, lambda text: grouped(text, wanted, request.label(path)), notes=notes)
