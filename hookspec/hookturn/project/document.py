"""Reads a configuration file into plain data in which every value knows its line and column.

Whatever the bytes are, the result is a document with problems, never an exception.
YAML is read as version 1.2 means it: only ``true`` and ``false`` are booleans, so
``on:`` and ``no`` are texts; tags and merge keys are refused.
"""

from __future__ import annotations

from .problems import Problem, kind_of, show, show_path

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .problems import Path

MAX_BYTES = 1_000_000
"""A larger file is refused: no configuration is, and reading it would hold up every step of the agent."""

MAX_NODES = 20_000
"""Values in one document, each alias counted as often as it is used."""

MAX_DEPTH = 50
"""Levels of lists and mappings inside each other."""

_MAX_DIGITS = 40


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


_CLOSE = "Close each [ and {, keep commas between items,"


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


def read_yaml(content: bytes, file: str) -> Document:
    """Read the bytes of a YAML file.

    Parameters:
        content: the file's bytes: UTF-8, one byte-order mark and CRLF tolerated.
        file: its path, for problems.

    Returns:
        the document; when it is ``broken`` its ``problems`` say why.
    """
    document = Document(file)
    text = decode(document, content)
    if text is None:
        return document
    return _Yaml(document, text).read()


class _Stop(Exception):
    """Reading ends here: the document has a problem that costs the whole file."""


class _Node:
    """One value of a YAML file: a scalar (``event`` is set), a list (``items``) or a mapping (``pairs``)."""

    __slots__ = ("event", "height", "index", "items", "pairs", "size")

    def __init__(self, index: int) -> None:
        self.index = index
        self.event: Any = None
        self.items: list[_Node] | None = None
        self.pairs: list[list[_Node]] | None = None
        self.size = 1
        self.height = 0

    def add(self, child: _Node) -> None:
        if self.items is not None:
            self.items.append(child)
        elif self.pairs is not None:
            if self.pairs and len(self.pairs[-1]) == 1:
                self.pairs[-1].append(child)
            else:
                self.pairs.append([child])


class _Yaml:
    """Builds a document from PyYAML's events: they come one by one and without recursion, so limits hold early."""

    def __init__(self, document: Document, text: str) -> None:
        self.document = document
        self.text = text
        self.lines = Lines(text)

    def read(self) -> Document:
        document = self.document
        if self.text.startswith("\ufeff"):
            return document.spoil_all(
                (1, 1), "a second byte-order mark", "Delete it: the file may have one at most."
            )
        try:
            root = self._compose()
            if root is not None:
                self._root(root)
        except _Stop:
            pass
        return document

    def _stop(self, index: int, cause: str, remedy: str) -> _Stop:
        self.document.spoil_all(self.lines.at(index), cause, remedy)
        return _Stop()

    def _root(self, root: _Node) -> None:
        data = self._plain(root, ())
        if data is None:
            return
        if not isinstance(data, dict):
            raise self._stop(
                root.index,
                f"the file must be a mapping, got {kind_of(data)}",
                "Write keys such as 'hooks:' and 'plugins:' at the left margin.",
            )
        self.document.data = data

    def _events(self) -> Iterator[Any]:
        """Yield PyYAML's events; whatever it raises becomes a problem of the document."""
        import yaml

        loader: Any = None
        try:
            loader = yaml.SafeLoader(self.text)
            while loader.check_event():
                yield loader.get_event()
        except yaml.reader.ReaderError as error:
            character = self.text[error.position : error.position + 1]
            raise self._stop(
                error.position,
                f"the character {show(character)} is not allowed in YAML",
                'Delete it, or write it with an escape inside "double quotes".',
            ) from None
        except yaml.MarkedYAMLError as error:
            mark = error.problem_mark or error.context_mark
            cause = ", ".join(part for part in (error.context, error.problem) if part) or "not YAML"
            remedy = "Correct the YAML there: indentation, quotes and colons are the usual suspects."
            if "'\\t'" in cause:
                remedy = "Indent with blanks: YAML does not take tabs."
            elif cause.startswith("while parsing a flow"):
                remedy = f"{_CLOSE} and put a rule or a text with brackets, '#', ':' or commas in it in \"quotes\"."
            elif cause.startswith(("while scanning an a", "while scanning for the next token")):
                remedy = 'Put a rule, a glob or another text that begins so in "quotes", such as "*".'
            raise self._stop(mark.index if mark else 0, f"not YAML: {cause}", remedy) from None
        except (ValueError, OverflowError, LookupError, TypeError, AttributeError) as error:
            # PyYAML lets some slip out of its scanner, such as chr() of an escape that is no character.
            raise self._stop(
                loader.get_mark().index if loader is not None else 0,
                f"not YAML: {type(error).__name__}: {error}",
                "Correct the YAML near there: escapes in quoted texts are the usual suspects.",
            ) from None

    def _compose(self) -> _Node | None:
        import yaml

        anchors: dict[str, _Node] = {}
        stack: list[_Node] = []
        root: _Node | None = None
        documents = 0
        nodes = 0
        for event in self._events():
            index: int = event.start_mark.index
            if isinstance(event, yaml.DocumentStartEvent):
                documents += 1
                if documents > 1:
                    self.document.problems.append(
                        Problem(
                            self.document.file,
                            *self.lines.at(index),
                            "",
                            "a second YAML document ('---'), which is ignored with all that follows",
                            "Keep one document in the file.",
                        )
                    )
                    return root
                continue
            if isinstance(event, (yaml.MappingEndEvent, yaml.SequenceEndEvent)):
                node = stack.pop()
                children = (
                    node.items if node.items is not None else [n for pair in node.pairs or [] for n in pair]
                )
                node.size = 1 + sum(child.size for child in children)
                node.height = 1 + max((child.height for child in children), default=0)
                continue
            if not isinstance(event, yaml.NodeEvent):
                continue
            anchor: Any = event.anchor
            if isinstance(event, yaml.AliasEvent):
                target = anchors.get(anchor)
                if target is None:
                    raise self._stop(
                        index,
                        f"the alias {show('*' + anchor)} has no anchor",
                        "Define it first, with '&'.",
                    )
                if target in stack:
                    raise self._stop(
                        index,
                        f"the alias {show('*' + anchor)} contains itself",
                        "Write the value out: a configuration has an end.",
                    )
                node = target
            else:
                node = _Node(index)
                if isinstance(event, yaml.ScalarEvent):
                    node.event = event
                elif isinstance(event, yaml.SequenceStartEvent):
                    node.items = []
                    self._no_tag(event)
                else:
                    node.pairs = []
                    self._no_tag(event)
                if anchor is not None:
                    anchors[anchor] = node
            nodes += node.size
            if nodes > MAX_NODES:
                raise self._stop(
                    index,
                    f"more than {MAX_NODES:,} values, each alias counted as often as it is used",
                    "Aliases of aliases multiply: write fewer of them.",
                )
            if len(stack) + node.height >= MAX_DEPTH:
                raise self._stop(index, f"nested deeper than {MAX_DEPTH} levels", "No setting is that deep.")
            if stack:
                stack[-1].add(node)
            elif root is None:
                root = node
            if node.event is None and not isinstance(event, yaml.AliasEvent):
                stack.append(node)
        return root

    def _no_tag(self, event: Any) -> None:
        if event.tag not in (None, "!", "tag:yaml.org,2002:seq", "tag:yaml.org,2002:map"):
            raise self._tag(event)

    def _tag(self, event: Any) -> _Stop:
        return self._stop(
            event.start_mark.index,
            f"the tag {show(event.tag)} is not supported",
            "Write a plain value: hookturn builds no objects from YAML.",
        )

    def _plain(self, node: _Node, path: Path) -> Any:
        """Return the plain value of a node and note its place. The recursion ends at MAX_DEPTH."""
        document = self.document
        position = self.lines.at(node.index)
        document._values[path] = position
        if node.items is not None:
            return [self._plain(item, (*path, index)) for index, item in enumerate(node.items)]
        if node.pairs is None:
            return self._scalar(node, path)
        mapping: dict[str, Any] = {}
        for key_node, value_node in node.pairs:
            where = self.lines.at(key_node.index)
            key = self._scalar(key_node, path) if key_node.event is not None else None
            if not isinstance(key, str):
                what = (
                    f"the key {show(key)}"
                    if key_node.event is not None
                    else "a key that is a list or a mapping"
                )
                document._spoil(path, where, f"{what} is not a text", "Put the key into quotes.")
                continue
            if key == "<<" and key_node.event is not None and key_node.event.style is None:
                document._spoil(
                    path,
                    where,
                    "merge keys ('<<') are not supported",
                    "Write the keys out, or alias single values.",
                )
                continue
            below = (*path, key)
            if key in mapping:
                first = document._keys[below]
                document._spoil(
                    below,
                    where,
                    f"the key {show(key)} is given twice, first in line {first[0]}",
                    "Keep one of them; this one is ignored.",
                )
                continue
            document._keys[below] = where
            mapping[key] = self._plain(value_node, below)
        return mapping

    def _scalar(self, node: _Node, path: Path) -> Any:
        event = node.event
        text = _joined(event.value)
        if event.tag in ("!", "tag:yaml.org,2002:str"):
            return text
        if event.tag is not None:
            raise self._tag(event)
        if not event.implicit[0]:
            return text
        value = _resolve(text)
        if value is _TOO_LONG:
            self.document._spoil(
                path,
                self.lines.at(node.index),
                f"the number {show(text)} is too long",
                "Put it into quotes to mean a text.",
            )
            return None
        return value


def _joined(text: str) -> str:
    """Return a text in which escapes of surrogate pairs, as JSON writes them, are the characters that they mean."""
    if any("\ud800" <= c <= "\udbff" for c in text):
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "surrogatepass")
    return text


_TOO_LONG = object()
_CONSTANTS = {
    **dict.fromkeys(("", "~", "null", "Null", "NULL"), None),
    **dict.fromkeys(("true", "True", "TRUE"), True),
    **dict.fromkeys(("false", "False", "FALSE"), False),
    **dict.fromkeys((".inf", ".Inf", ".INF", "+.inf", "+.Inf", "+.INF"), float("inf")),
    **dict.fromkeys(("-.inf", "-.Inf", "-.INF"), float("-inf")),
    **dict.fromkeys((".nan", ".NaN", ".NAN"), float("nan")),
}


def _resolve(text: str) -> Any:
    """Return what a plain scalar means. Source: YAML 1.2.2, 10.3.2 (the core schema)."""
    if text in _CONSTANTS:
        return _CONSTANTS[text]
    if not text or text[0] not in "+-.0123456789":
        return text
    import re

    if re.fullmatch(r"[-+]?[0-9]+|0o[0-7]+|0x[0-9a-fA-F]+", text, re.ASCII):
        if len(text) > _MAX_DIGITS:
            return _TOO_LONG
        return int(text, 0) if text[:2] in ("0o", "0x") else int(text)
    if re.fullmatch(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?", text, re.ASCII):
        return _TOO_LONG if len(text) > _MAX_DIGITS else float(text)
    return text


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
        data = _parse_toml(text)
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
    except _Stop:
        return document.spoil_all(
            document.at(()),
            f"more than {MAX_NODES:,} values or nested deeper than {MAX_DEPTH} levels",
            "No configuration needs that much.",
        )
    return document


def _parse_toml(text: str) -> Any:
    import sys
    from importlib import import_module

    return import_module("tomllib" if sys.version_info >= (3, 11) else "tomli").loads(text)


def _plain_toml(value: Any, count: list[int], depth: int) -> Any:
    """Return a TOML value as JSON could hold it: dates and times become text."""
    count[0] += 1
    if count[0] > MAX_NODES or depth > MAX_DEPTH:
        raise _Stop
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
                parts.append((_parse_toml(f"k = {raw}")["k"] if "\\" in raw else raw[1:-1], start))
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
