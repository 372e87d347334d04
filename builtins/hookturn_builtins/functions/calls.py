"""Reads ``|name|``, ``|name:a,b|`` and ``|name key=value|`` at the head of a message."""

from __future__ import annotations

import re

TYPE_CHECKING = False

_SEGMENT = r"[a-z][a-z0-9-]*(?:[: ][^|\n]*)?"
_HEAD = re.compile(rf"\|{_SEGMENT}\|(?:\|?{_SEGMENT}\|)*")
_CALL = re.compile(r"([a-z][a-z0-9-]*)(?:([: ])(.*))?", re.S)
_PAIR = re.compile(r'([a-z][a-z0-9_-]*)=(?:"([^"]*)"|(\S+))')


class Call:
    """One function that a message calls.

    Attributes:
        name: the function.
        args: its arguments by name, or ``_0``, ``_1`` by place.
    """

    __slots__ = ("args", "name")

    def __init__(self, name: str, args: dict[str, str]) -> None:
        self.name = name
        self.args = args


def parse(text: str) -> tuple[list[Call], str]:
    """Return the calls at the very start of a message, and the message without them.

    Parameters:
        text: the message.
    """
    match = _HEAD.match(text)
    if match is None:
        return [], text
    calls = [_call(segment) for segment in match[0].split("|") if segment]
    return calls, text[match.end() :].lstrip()


def _call(segment: str) -> Call:
    match = _CALL.fullmatch(segment)
    assert match is not None  # the head's pattern
    name, mark, rest = match.groups()
    if mark == ":":
        values = [value for part in rest.split(",") if (value := part.strip())]
        return Call(name, {f"_{place}": value for place, value in enumerate(values)})
    if mark:
        pairs = _PAIR.findall(rest)
        return Call(name, {key: quoted or plain for key, quoted, plain in pairs})
    return Call(name, {})
