"""Reads TOML, and finds where its values stand."""

from __future__ import annotations

from ..agents.toml_text import parse_toml
from .document import MAX_DEPTH, MAX_NODES, Document, Lines, decode
from .problems import kind_of, show_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .problems import Path


class _TooLarge(Exception):
    """The file holds more than a configuration may."""


def read_toml(content: bytes, file: str, prefix: Path = ("tool", "hookturn")) -> Document | None:
    """Read a TOML file or one table of it, by default ``[tool.hookturn]`` of a pyproject.toml.

    Parameters:
        content: the file's bytes: UTF-8, one byte-order mark and CRLF tolerated.
        file: its path, for problems.
        prefix: the table's path; without one, the whole file is read.

    Returns:
        the document, or None when the file has no such table. A file that cannot be read is a
        document with a problem only if the table's name stands in it somewhere.
    """
    if prefix and str(prefix[-1]).encode() not in content:
        return None
    document = Document(file, prefix)
    text = decode(document, content)
    if text is None:
        return document
    try:
        data: Any = parse_toml(text)
    except (ValueError, RecursionError) as error:  # TOMLDecodeError is a ValueError, and not the only one
        import re

        message = str(error)
        place = re.search(r" \(at (?:line (\d+), column (\d+)|end of document)\)$", message)
        if place and place[1]:
            position = (int(place[1]), int(place[2]))
        else:
            position = Lines(text).at(len(text)) if place else (1, 1)
        if place:
            message = message[: place.start()]
        return document.spoil_all(position, f"not TOML: {message}", "Correct the TOML there.")
    for part in prefix:
        if not isinstance(data, dict) or part not in data:
            return None
        data = data[part]
    scan = _Toml(text)
    scan.run()
    lines = Lines(text)
    cut = len(prefix)
    for places, target in ((scan.keys, document._keys), (scan.values, document._values)):
        for path, index in places.items():
            if path[:cut] == prefix:
                target[path[cut:]] = lines.at(index)
    if not isinstance(data, dict):
        return document.spoil_all(
            document.at((), key=True),
            f"{show_path(prefix)} must be a table, got {kind_of(data)}",
            "Write [tool.hookturn].",
        )
    count = [0]
    try:
        document.data = _plain_toml(data, count, 0)
    except _TooLarge:
        return document.spoil_all(
            document.at(()),
            f"more than {MAX_NODES:,} values or nested deeper than {MAX_DEPTH} levels",
            "No configuration needs that much.",
        )
    return document


def _plain_toml(value: Any, count: list[int], depth: int) -> Any:
    """Return a TOML value as JSON could hold it: dates and times become text."""
    count[0] += 1
    if count[0] > MAX_NODES or depth > MAX_DEPTH:
        raise _TooLarge
    if isinstance(value, dict):
        return {key: _plain_toml(item, count, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain_toml(item, count, depth + 1) for item in value]
    if value is None or isinstance(value, (str, int, float)):
        return value
    return value.isoformat()


class _Toml:
    """Finds where keys and values of a TOML text stand. The text has been read by a real parser before."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0
        self.keys: dict[Path, int] = {}
        self.values: dict[Path, int] = {}
        self._arrays: dict[Path, int] = {}

    def run(self) -> None:
        """Fill ``keys`` and ``values``: path -> index in the text."""
        table: Path = ()
        while True:
            self._skip()
            start = self.pos
            head = self.text[start : start + 2]
            if not head:
                return
            if head == "[[":
                self.pos += 2
                *parents, (last, _) = self._key()
                path = (*self._resolve([part for part, _ in parents]), last)
                number = self._arrays.get(path, 0)
                self._arrays[path] = number + 1
                self.keys.setdefault(path, start)
                self.values.setdefault(path, start)
                table = (*path, number)
                self.values[table] = start
                self._end_of_line()
            elif head[0] == "[":
                self.pos += 1
                table = self._resolve([part for part, _ in self._key()])
                self.keys[table] = self.values[table] = start
                self._end_of_line()
            elif not self._pair(table, 0):
                return

    def _resolve(self, parts: list[str]) -> Path:
        path: Path = ()
        for part in parts:
            path = (*path, part)
            if path in self._arrays:
                path = (*path, self._arrays[path] - 1)
        return path

    def _skip(self) -> None:
        """Go on to what is neither white space nor a comment."""
        text = self.text
        while True:
            while text[self.pos : self.pos + 1] in (" ", "\t", "\r", "\n"):
                self.pos += 1
            if text[self.pos : self.pos + 1] != "#":
                return
            self._end_of_line()

    def _end_of_line(self) -> None:
        end = self.text.find("\n", self.pos)
        self.pos = len(self.text) if end < 0 else end

    def _key(self) -> list[tuple[str, int]]:
        """Read a dotted key: its parts and where each stands."""
        text = self.text
        parts: list[tuple[str, int]] = []
        while True:
            self._skip()
            start = self.pos
            if text[start : start + 1] in ('"', "'"):
                self._string()
                raw = text[start : self.pos]
                parts.append((parse_toml(f"k = {raw}")["k"] if "\\" in raw else raw[1:-1], start))
            else:
                while text[self.pos : self.pos + 1].isalnum() or text[self.pos : self.pos + 1] in ("-", "_"):
                    self.pos += 1
                parts.append((text[start : self.pos], start))
            self._skip()
            if text[self.pos : self.pos + 1] != ".":
                return parts
            self.pos += 1

    def _pair(self, table: Path, depth: int) -> bool:
        """Read ``key = value``; False when the text is not what it seemed and the search ends."""
        path = table
        for part, index in self._key():
            path = (*path, part)
            self.keys.setdefault(path, index)
        if self.text[self.pos : self.pos + 1] != "=":
            return False
        self.pos += 1
        return self._value(path, depth)

    def _value(self, path: Path, depth: int) -> bool:
        self._skip()
        text = self.text
        self.values[path] = self.pos
        first = text[self.pos : self.pos + 1]
        if first in ('"', "'"):
            self._string()
            return True
        if first not in ("[", "{"):
            while text[self.pos : self.pos + 1] not in ("", ",", "]", "}", "#", "\n"):
                self.pos += 1
            return True
        if depth > 2 * MAX_DEPTH:
            return False
        self.pos += 1
        index = 0
        while True:
            self._skip()
            char = text[self.pos : self.pos + 1]
            if char in ("]", "}", ""):
                self.pos += 1
                return bool(char)
            if char == ",":
                self.pos += 1
                continue
            if first == "[":
                if not self._value((*path, index), depth + 1):
                    return False
                index += 1
            elif not self._pair(path, depth + 1):
                return False

    def _string(self) -> None:
        text = self.text
        quote = text[self.pos]
        if text[self.pos : self.pos + 3] == quote * 3:
            end = self.pos + 3
            while end < len(text) and text[end : end + 3] != quote * 3:
                end += 2 if quote == '"' and text[end] == "\\" else 1
            end += 3
            while text[end : end + 1] == quote:  # up to two quotes may stand before the closing three
                end += 1
        else:
            end = self.pos + 1
            while end < len(text) and text[end] != quote:
                end += 2 if quote == '"' and text[end] == "\\" else 1
            end += 1
        self.pos = end
