"""Reads an event for ``fire`` and ``explain``: one JSON object with the event's fields, from a file or standard input.

Every mistake is a UsageError that says where: the file, line and column, or the field.
"""

from __future__ import annotations

from ..spec.errors import EventError, did_you_mean, json_kind
from .output import UsageError, complain, os_error, short

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import ArgumentParser
    from collections.abc import Iterable
    from typing import Any, NoReturn

    from ..engine.engine import Engine
    from ..spec.events import Event
    from ..spec.timings import Timing

_SAMPLES: dict[str, Any] = {
    "tool": "bash",
    "args": {"command": "ls"},
    "prompt": "Mend the parser.",
    "text": "Mend the parser.",
    "parts": ["You are a coder."],
    "error_type": "ValueError",
    "message": "no such column",
    "type": "session.idle",
}
"""Values for required fields in an example."""

_ENVELOPE = ("schema", "timing", "command", "paths", "urls", "result_text", "mcp")
"""Keys of an event's JSON form that are no fields (see ``spec.events.build``)."""


class Source:
    """The text that an event is read from.

    Parameters:
        name: what messages call it.
        text: its content.
    """

    def __init__(self, name: str, text: str) -> None:
        self.name = name
        self.text = text

    def wrong(self, index: int, cause: str) -> UsageError:
        """Return the error at an index of the text."""
        before = self.text[:index]
        line = before.count("\n") + 1
        column = index - (before.rfind("\n") + 1) + 1
        return UsageError(f"{self.name}:{line}:{column}: {cause}")

    def outside_strings(self, words: Iterable[str]) -> int:
        """Return the index of the first of some words that stands outside JSON strings."""
        import re

        pattern = "|".join(re.escape(word) for word in words)
        for match in re.finditer(rf'"(?:[^"\\]|\\.)*"|({pattern})', self.text, re.DOTALL):
            if match.group(1):
                return match.start()
        return 0


def add_event_options(parser: ArgumentParser) -> None:
    """Add what names an event: TIMING, ``--event FILE`` and ``--agent NAME``."""
    parser.add_argument("timing", metavar="TIMING", help="a hook timing, such as pre_tool_execution")
    parser.add_argument(
        "--event", metavar="FILE", help="one JSON object with the event's fields; - reads standard input"
    )
    parser.add_argument("--agent", metavar="NAME", help="name of the agent in the event")


def read_fields(path: str | None) -> tuple[dict[str, Any], str]:
    """Return an event's fields and what messages call their source.

    Parameters:
        path: a file, ``-`` for standard input, or None for no fields.

    Raises:
        UsageError: when it cannot be read, or is no JSON object.
    """
    if path is None:
        return {}, ""
    name = "standard input" if path == "-" else path
    try:
        # Bytes, so that the locale has no say.
        with open(0 if path == "-" else path, "rb", closefd=path != "-") as file:
            content = file.read()
    except OSError as error:
        why = "it is closed" if path == "-" else os_error(error).removeprefix(f"{path}: ")
        raise UsageError(
            f"{name} cannot be read: {why}. Give --event a file with one JSON object, or - for standard input."
        ) from None
    return _parse(_decode(name, content)), name


def _decode(name: str, content: bytes) -> Source:
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        looks = ""
        if content[:2] in (b"\xff\xfe", b"\xfe\xff"):
            looks = "; it looks like UTF-16"
        before = Source(name, content[: error.start].decode("utf-8"))
        raise before.wrong(
            len(before.text), f"not UTF-8: byte 0x{content[error.start]:02x}{looks}. Save it as UTF-8."
        ) from None
    source = Source(name, text.removeprefix("\ufeff"))
    if source.text.startswith("\ufeff"):
        raise source.wrong(0, "a second byte-order mark. Delete it: there may be one at most.")
    if not source.text.strip():
        raise UsageError(f"{name} is empty: expected one JSON object with the event's fields.")
    return source


def _parse(source: Source) -> dict[str, Any]:
    import json

    def constant(word: str) -> NoReturn:
        raise source.wrong(
            source.outside_strings([word]), f'{word} is no JSON value. Write a number, null, or "{word}".'
        )

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        fields = dict(pairs)
        if len(fields) < len(pairs):
            names = [key for key, _ in pairs]
            double = next(key for key in names if names.count(key) > 1)
            raise UsageError(f"{source.name}: the key {double!r:.60} is given twice in one object.")
        return fields

    try:
        data = json.loads(source.text, parse_constant=constant, object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        cause = error.msg[:1].lower() + error.msg[1:]
        if error.pos >= len(source.text.rstrip()):
            cause += " (the text ends too early)"
        raise source.wrong(error.pos, f"not JSON: {cause}.") from None
    except RecursionError:
        raise UsageError(f"{source.name}: nested too deep for an event.") from None
    except ValueError as error:  # a number of thousands of digits
        raise UsageError(f"{source.name}: {error}.") from None
    if not isinstance(data, dict):
        start = len(source.text) - len(source.text.lstrip())
        raise source.wrong(
            start, f"an event is one JSON object, got {json_kind(data)}. Write {{...}} with its fields."
        )
    return data


def timing_of(engine: Engine, name: str) -> Timing:
    """Return a timing by name, those of installed frameworks included.

    Raises:
        UsageError: for an unknown one.
    """
    from ..engine.registry import LIFECYCLE_HOOKS

    known = engine.registry.timings
    if name in known:
        return known[name]
    if name in LIFECYCLE_HOOKS:
        raise UsageError(f"{name} has no event: it is called when the plugin is loaded or let go.")
    near = _of_agents(name) or did_you_mean(name, known)
    raise UsageError(f"unknown timing {name!r}{near}. One of {', '.join(known)}.")


def _example(spec: Timing) -> str:
    """Return how an event of a timing is given on a command line, with the fields that it needs."""
    import json

    needed = [name for name in spec.event._fields if name in spec.event._required]
    if not needed and "type" in spec.event._fields:
        needed = ["type"]  # of on_event: it has a default, which is refused
    fields = {name: _SAMPLES.get(name, "...") for name in needed}
    return f"--event - <<< '{json.dumps(fields)}'"


def _of_agents(name: str) -> str:
    """Return what an agent's event of this name is here, in words, or ""."""
    from ..agents.bridge import AGENTS, hooks_of
    from ..agents.moments import MAIN

    for agent in AGENTS:
        for event, row in hooks_of(agent).EVENTS.items():
            if event.lower() == name.lower() and row.does in MAIN:
                return f" (an event of {agent}; did you mean {MAIN[row.does]!r}?)"
    return ""


def make_event(spec: Timing, fields: dict[str, Any], source: str, agent: str | None) -> Event:
    """Build the event of a timing.

    Parameters:
        spec: the timing.
        fields: from ``read_fields``.
        source: what messages call where they came from.
        agent: name of the agent, which counts more than the field's, or None.

    Raises:
        UsageError: when fields are missing, of a wrong type, or of another timing.
    """
    from ..spec.events import OutcomeEvent, build

    if spec.event is OutcomeEvent:
        raise UsageError(
            f"{spec.name} is fired by the engine after each other timing: fire another timing, "
            "and its hooks run too."
        )
    said = fields.get("timing")
    if said is not None and said != spec.name:
        raise UsageError(f"{source}: the event says timing {said!r:.60}, the command line {spec.name!r}.")
    if agent is not None:
        fields = {**fields, "agent": agent}
    known = [name for name in spec.event._fields if name != "extra"]
    strange = [
        f"{name!r:.60}{did_you_mean(name, known)}"
        for name in fields
        if name not in known and name not in _ENVELOPE
    ]
    try:
        event = build(spec.event, fields)
    except EventError as error:
        where = f"{source}: " if source else ""
        hint = f" Unknown here: {', '.join(strange)}." if strange else ""
        if not source:
            hint = f" Give its fields with --event FILE, or {_example(spec)}."
        raise UsageError(f"{where}{short(str(error))}.{hint}") from None
    if strange:
        complain(f"{source}: unknown and only passed on: {', '.join(strange)}")
    return event
