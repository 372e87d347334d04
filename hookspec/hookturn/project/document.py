"""A configuration file as plain data in which every value knows its line and column.

The rooms beside this one read it from YAML, TOML and JSON. Whatever the bytes are, the result is a document with
problems, never an exception.
"""

from __future__ import annotations

from .problems import Problem, show_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from .problems import Path

MAX_BYTES = 1_000_000
"""A larger file is refused: no configuration is, and reading it would hold up every step of the agent."""

MAX_NODES = 20_000
"""Values in one document, each alias counted as often as it is used."""

MAX_DEPTH = 50
"""Levels of lists and mappings inside each other."""


class Document:
    """A configuration file as plain data with positions.

    Attributes:
        file: the file's path, as problems show it.
        data: the root mapping; empty when nothing could be read.
        problems: what is wrong with the file itself.
        broken: True when nothing could be read.
        prefix: where ``data`` stands in the file (``("tool", "hookturn")`` in pyproject.toml).
    """

    def __init__(self, file: str, prefix: Path = ()) -> None:
        self.file = file
        self.prefix = prefix
        self.data: dict[str, Any] = {}
        self.problems: list[Problem] = []
        self.broken = False
        self._keys: dict[Path, tuple[int, int]] = {}
        self._values: dict[Path, tuple[int, int]] = {}
        self._spoiled: list[Path] = []

    def at(self, path: Path = (), *, key: bool = False) -> tuple[int, int]:
        """Return line and column of a value (or of its key), else of the nearest container that is known.

        Parameters:
            path: keys and indexes from the root of ``data``.
            key: the key's own position, where the value belongs to a mapping.
        """
        if key and path in self._keys:
            return self._keys[path]
        while path not in self._values:
            if path in self._keys:
                return self._keys[path]
            if not path:
                return (1, 1)
            path = path[:-1]
        return self._values[path]

    def problem(
        self, path: Path, cause: str, remedy: str = "", *, key: bool = False, severity: str = "error"
    ) -> Problem:
        """Return a problem at a place of this document.

        Parameters:
            path: keys and indexes from the root of ``data``.
            cause, remedy, severity: as in ``Problem``.
            key: the problem is the key, not its value.
        """
        line, column = self.at(path, key=key)
        return Problem(self.file, line, column, show_path((*self.prefix, *path)), cause, remedy, severity)

    def spoiled(self, path: Path) -> bool:
        """Tell whether the file itself is wrong somewhere in ``path`` (a key given twice, say)."""
        return any(bad[: len(path)] == path for bad in self._spoiled)

    def to_json(self) -> dict[str, Any]:
        """Return data and places, for a cache; only of a document without problems."""
        return {
            "data": self.data,
            "keys": [[path, place] for path, place in self._keys.items()],
            "values": [[path, place] for path, place in self._values.items()],
        }

    @classmethod
    def from_json(cls, file: str, stored: Any) -> Document:
        """Return the document that ``to_json`` gave.

        Raises:
            KeyError, TypeError, ValueError: for anything else.
        """
        document = cls(file)
        if not isinstance(stored["data"], dict):
            raise TypeError("data must be a mapping")
        document.data = stored["data"]
        for name, places in (("keys", document._keys), ("values", document._values)):
            for path, (line, column) in stored[name]:
                places[tuple(path)] = (line, column)
        return document

    def _spoil(self, path: Path, position: tuple[int, int], cause: str, remedy: str) -> None:
        """Record a problem that costs only the entry it stands in."""
        self._spoiled.append(path)
        self.problems.append(Problem(self.file, *position, show_path((*self.prefix, *path)), cause, remedy))

    def spoil_all(self, position: tuple[int, int], cause: str, remedy: str) -> Document:
        """Record a problem that costs the whole file."""
        self.data = {}
        self.broken = True
        self.problems.append(Problem(self.file, *position, "", cause, remedy))
        return self


class Lines:
    """Line and column of an index in a text: lines end as editors see them (LF, CRLF, CR)."""

    def __init__(self, text: str) -> None:
        import re

        self._starts = [0, *(match.end() for match in re.finditer(r"\r\n|\n|\r", text))]

    def at(self, index: int) -> tuple[int, int]:
        from bisect import bisect_right

        line = bisect_right(self._starts, index)
        return line, index - self._starts[line - 1] + 1


def decode(document: Document, content: bytes) -> str | None:
    """Return the text of a file without its byte-order mark, or None when the document is now broken."""
    if len(content) > MAX_BYTES:
        document.spoil_all(
            (0, 0),
            f"the file has {len(content):,} bytes, more than {MAX_BYTES:,}",
            "A hookturn configuration is small: check that this is the right file.",
        )
        return None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        looks = ""
        if content[:2] in (b"\xff\xfe", b"\xfe\xff") or (
            content[:200].count(b"\0") > len(content[:200]) // 4
        ):
            looks = "; it looks like UTF-16"
        before = content[: error.start].decode("utf-8")
        document.spoil_all(
            Lines(before).at(len(before)),
            f"not UTF-8: byte 0x{content[error.start]:02x}{looks}",
            "Save the file as UTF-8.",
        )
        return None
    return text.removeprefix("\ufeff")
