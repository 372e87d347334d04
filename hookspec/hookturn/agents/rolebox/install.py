"""``hookturn install rolebox ROLE_DIR``: our module in the role's folder, and its entry in role.yaml."""

from __future__ import annotations

import shlex
from os.path import dirname, join

from ..installing import CannotInstall, Change, Request, module_text
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
    old_role = request.read(role)
    if old_role is None:
        raise CannotInstall(f"{request.label(role)} does not exist. Name the folder of a role of rolebox.")
    old_module = request.own_module(module, _MARK)
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
        template = join(dirname(__file__), "hook.mjs")
        words = shlex.split(request.command(SECONDS))
        new_module = module_text(template, words, SECONDS, request.closed).encode()
    found = []
    if new_module != old_module:
        found.append(Change(module, request.label(module), old_module, new_module))
    if new_role != old_role:
        notes = ["The role's files are no longer as published: `rolebox info --check` will say so."]
        found.append(Change(role, label, old_role, new_role, False, [] if request.remove else notes))
    return found
