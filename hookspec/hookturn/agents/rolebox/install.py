"""``hookturn install rolebox ROLE_DIR``: our module in the role's folder, and its entry in role.yaml."""

from __future__ import annotations

import json
import shlex
from os.path import dirname, join

from ..installing import CannotInstall, Change, Request
from .role_text import entered, removed

NAME = "rolebox"

SECONDS = 60

PRIORITY = 90
"""After a role's other hooks: ours see what those made of the arguments."""

EVENTS = ["chat.message", "tool.execute.before", "tool.execute.after", "system.transform", "event"]

_MARK = "// @ts-check\n/**\n * hookturn in a role of rolebox:"


def changes(request: Request) -> list[Change]:
    """Return how the module's file and role.yaml must read (see ``installing.AgentInstall``)."""
    if request.user:
        raise CannotInstall("rolebox has hooks by role: name the role's folder, and leave --user out.")
    folder = request.folder or request.project
    role, module = join(folder, "role.yaml"), join(folder, "hooks", "hookturn.mjs")
    old_role, old_module = request.read(role), request.read(module)
    if old_role is None:
        raise CannotInstall(f"{request.label(role)} does not exist. Name the folder of a role of rolebox.")
    if old_module is not None and not old_module.decode("utf-8", "replace").startswith(_MARK):
        raise CannotInstall(f"{request.label(module)} is not hookturn's, so it stays as it is. Rename it.")
    label = request.label(role)
    if request.remove:
        new_role = removed(old_role, label)
        new_module = None
    else:
        # rolebox looks for modules in the folder in which its host runs, not in the role's: the path is absolute.
        entry = {
            "name": "hookturn",
            "events": EVENTS,
            "module": module,
            "priority": PRIORITY,
            "phase": "before",
        }
        new_role = entered(old_role, entry, label)
        new_module = text(shlex.split(request.command(SECONDS)), sorted(request.closed)).encode()
    found = []
    if new_module != old_module:
        found.append(Change(module, request.label(module), old_module, new_module))
    if new_role != old_role:
        notes = ["The role's files are no longer as published: `rolebox info --check` will say so."]
        found.append(Change(role, label, old_role, new_role, False, [] if request.remove else notes))
    return found


def text(command: list[str], closed: list[str]) -> str:
    """Return the module's text for this installation.

    Parameters:
        command: the bridge's program and words.
        closed: names of events that refuse when no answer comes.
    """
    with open(join(dirname(__file__), "hook.mjs"), encoding="utf-8") as file:
        made = file.read()
    for old, new in (
        ('const COMMAND = ["hookturn", "bridge", "rolebox"]', f"const COMMAND = {json.dumps(command)}"),
        ("const SECONDS = 60", f"const SECONDS = {SECONDS}"),
        ("const CLOSED = []", f"const CLOSED = {json.dumps(closed)}"),
    ):
        assert old in made, old
        made = made.replace(old, new)
    return made
