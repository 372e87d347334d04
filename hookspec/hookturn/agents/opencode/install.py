"""``hookturn install opencode``: our plugin among opencode's. Seen with opencode 1.18.33."""

from __future__ import annotations

import json
import shlex
from os.path import dirname, join

from ..installing import CannotInstall, Change, Request

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
    old = request.read(path)
    if old is not None and not old.decode("utf-8", "replace").startswith(_MARK):
        raise CannotInstall(f"{label} is not hookturn's, so it stays as it is. Rename it.")
    if request.remove:
        return [] if old is None else [Change(path, label, old, None)]
    new = plugin(shlex.split(request.command(SECONDS)), sorted(request.closed)).encode("utf-8")
    return [] if new == old else [Change(path, label, old, new)]


def plugin(command: list[str], closed: list[str]) -> str:
    """Return the plugin's text for this installation.

    Parameters:
        command: the bridge's program and words.
        closed: names of functions that refuse when no answer comes.
    """
    with open(join(dirname(__file__), "plugin.js"), encoding="utf-8") as file:
        text = file.read()
    for old, new in (
        ('const COMMAND = ["hookturn", "bridge", "opencode"]', f"const COMMAND = {json.dumps(command)}"),
        ("const SECONDS = 60", f"const SECONDS = {SECONDS}"),
        ("const CLOSED = []", f"const CLOSED = {json.dumps(closed)}"),
    ):
        assert old in text, old
        text = text.replace(old, new)
    return text
