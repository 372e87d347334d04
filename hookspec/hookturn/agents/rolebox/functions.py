"""Reads a role's functions: Markdown files with front matter, whose text enters the system prompt. Runs nothing."""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

DEFAULTS = ("plan", "execute", "loop")
"""Functions that every role has; their texts are rolebox's own."""

NAME = re.compile(r"[a-z][a-z0-9-]*")

MAX_BYTES = 200_000
"""A larger file is no function."""

FIELDS = ("name", "description", "params", "priority", "requires")
"""What we take of the front matter."""

_WORDS = (str, int, float, type(None))

UNSUPPORTED = (
    "phase", "produces", "consumes", "gate", "continue_until", "continue_max", "requires_evidence", "observe",
    "transitions", "state_schema_version", "handlers", "auto_activate", "locked",
)  # fmt: skip
"""What rolebox takes of it besides, and we do not."""


class Function:
    """One function.

    Attributes:
        name: its name, as ``|name|`` calls it.
        path: its file.
        digest: SHA-256 of the file.
        fields: description, body, params, priority and requires, as the builtin ``functions`` takes them.
        doubts: (cause, remedy) of all that is wrong with it.
    """

    def __init__(self, name: str, path: str) -> None:
        self.name = name
        self.path = path
        self.digest = ""
        self.fields: dict[str, Any] = {}
        self.doubts: list[tuple[str, str]] = []


def path_of(name: str, folders: Iterable[str]) -> str:
    """Return the file of a function, in the first folder that has it, or an empty string."""
    if not NAME.fullmatch(name):
        return ""
    for folder in folders:
        path = os.path.join(folder, f"{name}.md")
        if os.path.isfile(path):
            return path
    return ""


def read(name: str, path: str) -> Function:
    """Read a function's file; what is wrong with it is among its ``doubts``, and no body is no function.

    Parameters:
        name: the function's name.
        path: the file.
    """
    from hashlib import sha256

    from ...runners.module import read as read_file

    made = Function(name, path)
    try:
        content = read_file(path, MAX_BYTES)
        made.digest = sha256(content).hexdigest()
        text = content.decode("utf-8-sig")
    except (OSError, ValueError) as error:
        why = error.strerror if isinstance(error, OSError) else str(error)
        made.doubts.append((f"{path} cannot be read: {why}", "Save it as UTF-8, or correct its rights."))
        return made
    head, body = _split(text.replace("\r\n", "\n"))
    meta = _front_matter(made, head)
    if not body.strip():
        made.doubts.append((f"{path} has no text after its front matter", "Write what the model should do."))
        return made
    made.fields = {"body": body.strip(), **_fields(made, meta)}
    return made


def _split(text: str) -> tuple[str, str]:
    """Return front matter and body."""
    match = re.match(r"---[ \t]*\n(.*?)^---[ \t]*(?:\n|\Z)", text, re.S | re.M)
    return (match[1], text[match.end() :]) if match else ("", text)


def _front_matter(made: Function, head: str) -> dict[str, Any]:
    if not head.strip():
        return {}
    import yaml

    try:
        meta = yaml.safe_load(head)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        made.doubts.append(
            (f"the front matter of {made.path} is not YAML: {str(error)[:200]}", "Correct it.")
        )
        return {}
    if not isinstance(meta, dict):
        made.doubts.append((f"the front matter of {made.path} is no mapping", "Write 'name: ...'."))
        return {}
    return meta


def _fields(made: Function, meta: dict[str, Any]) -> dict[str, Any]:
    """Return the fields that are right."""
    fields: dict[str, Any] = {}
    params = meta.get("params")
    if isinstance(params, dict):
        fields["params"] = {}
        for key, value in params.items():
            if isinstance(key, _WORDS) and isinstance(value, _WORDS):
                fields["params"][str(key)] = "" if value is None else _word(value)
            else:  # as text, lists of lists by alias would have no end
                cause = f"{made.path}: the default of a parameter is a text, and one is not"
                made.doubts.append((cause, "Write 'focus: all'."))
    elif params is not None:
        made.doubts.append(
            (f"{made.path}: params is no mapping of names and defaults", "Write 'focus: all'.")
        )
    priority = meta.get("priority")
    if isinstance(priority, (int, float)) and not isinstance(priority, bool):
        fields["priority"] = priority
    elif priority is not None:
        made.doubts.append((f"{made.path}: priority is no number", "Lower comes earlier."))
    requires = meta.get("requires")
    if isinstance(requires, str):
        requires = [requires]
    if isinstance(requires, list) and all(isinstance(item, str) for item in requires):
        fields["requires"] = list(requires)
    elif requires is not None:
        made.doubts.append((f"{made.path}: requires is no list of functions", "Write 'requires: [plan]'."))
    if isinstance(meta.get("description"), str):
        fields["description"] = meta["description"]
    unsupported = [key for key in UNSUPPORTED if key in meta]
    if unsupported:
        cause = f"{made.path}: {', '.join(unsupported)} of a function has no effect here"
        made.doubts.append(
            (cause, "Its text enters the system prompt from when it is called; do the rest in a hook.")
        )
    return fields


def _word(value: Any) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)
