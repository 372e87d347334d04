"""Reads a JSON file into a document: ``//`` and ``/* */`` comments are allowed, a trailing comma is not.

The data come from the standard library's parser; places are looked up in the
text only once somebody asks for one, since most files have nothing wrong.
"""

from __future__ import annotations

from ..agents.json_text import nodes, without_comments
from ..spec.errors import json_kind
from .document import MAX_DEPTH, MAX_NODES, Document, Lines, decode
from .problems import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from json import JSONDecodeError
    from typing import Any

    from .problems import Path


class JsonDocument(Document):
    """A JSON file as plain data with positions."""

    def __init__(self, file: str, text: str = "") -> None:
        super().__init__(file)
        self._text = text

    def at(self, path: Path = (), *, key: bool = False) -> tuple[int, int]:
        """Return line and column of a value (or of its key), else of the nearest container that is known."""
        if self._text:
            self._locate()
        return super().at(path, key=key)

    def _locate(self) -> None:
        text, self._text = self._text, ""
        lines = Lines(text)
        for path, node in nodes(text).walk():
            self._values[path] = lines.at(node.start)
            if node.key_start >= 0:
                self._keys[path] = lines.at(node.key_start)


def read_json(content: bytes, file: str) -> Document:
    """Read the bytes of a JSON file whose root is an object.

    Parameters:
        content: the file's bytes: UTF-8, one byte-order mark, CRLF and comments tolerated.
        file: its path, for problems.

    Returns:
        the document; when it is ``broken`` its ``problems`` say why. Of a key that stands twice in an object
        the last counts, as everywhere; the document has a warning then.
    """
    import json

    document = JsonDocument(file)
    text = decode(document, content)
    if text is None:
        return document
    plain = without_comments(text)
    doubles: list[str] = []

    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        data = dict(items)
        if len(data) < len(items):
            keys = [key for key, _ in items]
            doubles.extend(key for key in data if keys.count(key) > 1)
        return data

    try:
        data = json.loads(plain, object_pairs_hook=pairs, parse_constant=_no_number)
    except json.JSONDecodeError as error:
        place, cause, remedy = _told(plain, error)
        return document.spoil_all(Lines(plain).at(place), cause, remedy)
    except (ValueError, RecursionError) as error:
        cause = "nested too deep" if isinstance(error, RecursionError) else str(error)
        return document.spoil_all((1, 1), f"not JSON: {cause}", "Correct it there.")
    if not isinstance(data, dict):
        return document.spoil_all(
            (1, 1), f"the root must be an object, got {json_kind(data)}", "Begin the file with {."
        )
    if not _small(data, [0], 0):
        return document.spoil_all(
            (1, 1),
            f"more than {MAX_NODES:,} values or nested deeper than {MAX_DEPTH} levels",
            "No configuration needs that much.",
        )
    document.data = data
    document._text = plain
    for key in dict.fromkeys(doubles):
        document.problems.append(
            document.problem(
                (), f"the key {show(key)} stands twice in an object; the last one counts", "Merge the two.",
                severity="warning",
            )
        )  # fmt: skip
    return document


def _no_number(word: str) -> Any:
    raise ValueError(f"{word} is no JSON")


def _told(text: str, error: JSONDecodeError) -> tuple[int, str, str]:
    """Return place, cause and remedy of a syntax error in plain words."""
    place = error.pos
    if text[place : place + 1] == "," and "trailing comma" in error.msg:  # Python 3.13 points at the comma
        place += 1
    before, after = text[:place].rstrip(), text[place:].lstrip()
    if not before and not after:
        return place, "the file is empty", "Write {} at least."
    if after[:1] in ("}", "]") and before.endswith(","):
        place = len(text) - len(after)
        return place, "a comma stands before the closing bracket", "Delete the comma."
    return place, f"not JSON: {error.msg}", "Correct the JSON there."


def _small(value: Any, count: list[int], depth: int) -> bool:
    count[0] += 1
    if count[0] > MAX_NODES or depth > MAX_DEPTH:
        return False
    items = value.values() if isinstance(value, dict) else value if isinstance(value, list) else ()
    return all(_small(item, count, depth + 1) for item in items)
