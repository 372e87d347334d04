"""``hookturn install opencode``: our plugin among opencode's. Seen with opencode 1.18.33."""

from __future__ import annotations

import shlex
from os.path import dirname, join

from ..installing import Change, Request, module_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

NAME = "opencode"

SECONDS = 60

_MARK = "// @ts-check\n/**\n * hookturn in opencode:"


def changes(request: Request) -> list[Change]:
    """Return how the plugin's file must read (see ``installing.AgentInstall``)."""
    if request.user:
        folder = request.environ.get("XDG_CONFIG_HOME") or join(request.home(), ".config")
        folder = join(folder, "opencode", "plugin")
    else:
        folder = join(request.project, ".opencode", "plugin")
    path = join(folder, "hookturn.js")
    label = request.label(path)
    old = request.own_module(path, _MARK)
    if request.remove:
        return [] if old is None else [Change(path, label, old, None)]
    new = plugin(shlex.split(request.command(SECONDS)), request.closed).encode("utf-8")
    return [] if new == old else [Change(path, label, old, new)]


def plugin(command: list[str], closed: Iterable[str]) -> str:
    """Return the plugin's text for one installation (see ``module_text``)."""
    return module_text(join(dirname(__file__), "plugin.js"), command, SECONDS, closed)
