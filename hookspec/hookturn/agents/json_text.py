"""JSON as text: where every value stands, and edits that leave all else as it was, comments and layout included.

The text must be JSON (``//`` and ``/* */`` comments allowed); whoever edits has parsed it before.
"""

from __future__ import annotations

from ..quick import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    Path = tuple[str | int, ...]


def without_comments(text: str) -> str:
    """Return a text with blanks in place of its comments, so that every place stays what it was."""
    if "/" not in text:
        return text
    parts: list[str] = []
    start = at = 0
    while True:
        quote, slash = text.find('"', at), text.find("/", at)
        if slash < 0:
            break
        if 0 <= quote < slash:
            at = _string_end(text, quote)
            continue
        two = text[slash : slash + 2]
        if two == "//":
            ends = [end for end in (text.find("\n", slash), text.find("\r", slash)) if end >= 0]
            end = min(ends, default=len(text))
        elif two == "/*":
            close = text.find("*/", slash + 2)
            if close < 0:
                break  # never closed: the parser points at it
            end = close + 2
        else:
            at = slash + 1
            continue
        parts += [text[start:slash], "".join(c if c in "\r\n" else " " for c in text[slash:end])]
        start = at = end
    return "".join(parts) + text[start:]


def _string_end(text: str, start: int) -> int:
    """Return the index behind the string that begins at a quote."""
    at = start + 1
    while at < len(text) and text[at] != '"':
        at += 2 if text[at] == "\\" else 1
    return at + 1


class Node:
    """One value of a JSON text.

    Attributes:
        start, end: its place in the text.
        key_start: where its key stands, or -1 for what is no member of an object.
        parts: key or index -> the values in it, in order; of a key that stands twice the last.
        kind: ``{``, ``[`` or "" for a plain value.
    """

    __slots__ = ("end", "key_start", "kind", "parts", "start")

    def __init__(self, start: int, kind: str) -> None:
        self.start = start
        self.end = start
        self.key_start = -1
        self.kind = kind
        self.parts: dict[str | int, Node] = {}

    def find(self, path: Path) -> Node | None:
        """Return the value at a path, or None."""
        node: Node | None = self
        for part in path:
            node = node.parts.get(part) if node is not None else None
        return node

    def walk(self, path: Path = ()) -> Iterator[tuple[Path, Node]]:
        """Return every value with its path."""
        yield path, self
        for part, node in self.parts.items():
            yield from node.walk((*path, part))


def nodes(text: str) -> Node:
    """Return the values of a JSON text with their places."""
    return _Scan(without_comments(text)).value()


class _Scan:
    def __init__(self, text: str) -> None:
        self.text = text
        self.pos = 0

    def _skip(self) -> str:
        while self.text[self.pos : self.pos + 1] in (" ", "\t", "\r", "\n"):
            self.pos += 1
        return self.text[self.pos : self.pos + 1]

    def value(self) -> Node:
        first = self._skip()
        node = Node(self.pos, first if first in ("{", "[") else "")
        if first == '"':
            self.pos = _string_end(self.text, self.pos)
        elif node.kind:
            self.pos += 1
            while self._skip() not in ("}", "]", ""):
                part: str | int = len(node.parts)
                start = -1
                if first == "{":
                    start = self.pos
                    self.pos = _string_end(self.text, start)
                    part = loads(self.text[start : self.pos])
                    self._skip()
                    self.pos += 1  # the colon
                inner = self.value()
                inner.key_start = start
                node.parts.pop(part, None)
                node.parts[part] = inner
                if self._skip() == ",":
                    self.pos += 1
            self.pos += 1
        else:
            while self.text[self.pos : self.pos + 1] not in ("", ",", "}", "]", " ", "\t", "\r", "\n"):
                self.pos += 1
        node.end = self.pos
        return node


SMALL = 4096
"""Characters of a JSON text on one line that is spread over lines before something is put into it."""


def spread(text: str) -> str:
    """Return a small JSON text that stands on one line as agents write it: indented, a line for each member.

    Any other text, one with comments among them, stays as it is.
    """
    line = text.strip()
    if not line or len(line) > SMALL or "\n" in line or "\r" in line or without_comments(line) != line:
        return text
    import json

    after = text[len(text.rstrip()) :]
    lines = _spread(line, nodes(line), 0).replace("\n", "\r\n" if "\r\n" in after else "\n") + after
    same = json.loads(line, object_pairs_hook=list) == json.loads(lines, object_pairs_hook=list)
    return lines if same else text  # a key that stands twice would be lost


def _spread(text: str, node: Node, depth: int) -> str:
    if not node.parts:
        return text[node.start : node.end]
    import json

    inner, outer = "\n" + "  " * (depth + 1), "\n" + "  " * depth
    parts = [
        (f"{json.dumps(key, ensure_ascii=False)}: " if isinstance(key, str) else "")
        + _spread(text, part, depth + 1)
        for key, part in node.parts.items()
    ]
    return text[node.start] + inner + f",{inner}".join(parts) + outer + text[node.end - 1]


def put(text: str, path: Path, value: Any) -> str:
    """Return the text with a value at a path: replaced, or put at the end of its object or list.

    Parameters:
        text: a JSON text.
        path: keys and indexes. Objects on the way that are not there are made; an index may be one past the end.
        value: the value.

    Raises:
        ValueError: when something on the way is neither an object nor a list.
    """
    root = nodes(text)
    node = root.find(path)
    if node is not None:
        return text[: node.start] + _written(text, value, len(path)) + text[node.end :]
    depth = len(path) - 1
    while (holder := root.find(path[:depth])) is None:
        depth -= 1
    for part in reversed(path[depth + 1 :]):
        value = {part: value}
    key = path[depth]
    if holder.kind != ("{" if isinstance(key, str) else "["):
        raise ValueError(
            f"{'.'.join(map(str, path[:depth]))} is no {'object' if isinstance(key, str) else 'list'}"
        )
    return _appended(text, holder, depth, key, value)


def _appended(text: str, holder: Node, depth: int, key: str | int, value: Any) -> str:
    close = holder.end - 1
    from json import dumps

    head = f"{dumps(key, ensure_ascii=False)}: " if isinstance(key, str) else ""
    line_end = _line_end(text)
    last = next(reversed(holder.parts.values()), None)
    if last is not None and "\n" not in text[holder.start : close]:
        return text[: last.end] + f", {head}{dumps(value, ensure_ascii=False)}" + text[last.end :]
    step = _step(text)
    written = line_end + step * (depth + 1) + head + _written(text, value, depth + 1)
    if last is None:
        inside = text[holder.start + 1 : close].rstrip()
        return text[: holder.start + 1] + inside + written + line_end + step * depth + text[close:]
    rest = text[last.end : close]
    kept = rest.rstrip()  # comments behind the last value stay behind it
    return text[: last.end] + "," + kept + written + rest[len(kept) :] + text[close:]


def cut(text: str, path: Path) -> str:
    """Return the text without the value at a path, its key and its comma; lines that were its alone go, too.

    Parameters:
        text: a JSON text.
        path: where the value stands; it must be there, and not be the root.
    """
    root = nodes(text)
    holder, node = root.find(path[:-1]), root.find(path)
    assert holder is not None
    assert node is not None
    plain = without_comments(text)
    start = node.key_start if node.key_start >= 0 else node.start
    end = node.end
    after = end
    while plain[after] in " \t\r\n":
        after += 1
    if plain[after] == ",":
        end = after + 1
    else:
        before = start - 1
        while plain[before] in " \t\r\n":
            before -= 1
        if plain[before] == ",":
            text = text[:before] + text[before + 1 :]
            start, end = start - 1, end - 1
    line = text.rfind("\n", 0, start) + 1
    if not text[line:start].strip():  # the value begins its line
        stop = end
        while text[stop : stop + 1] in (" ", "\t", "\r"):
            stop += 1
        if text[stop : stop + 1] == "\n":
            return text[:line] + text[stop + 1 :]
        return text[:start] + text[stop:]
    return (
        text[:start].rstrip(" \t") + text[end:]
        if text[end : end + 1] in ("}", "]")
        else (text[:start] + text[end:].lstrip(" \t"))
    )


def _written(text: str, value: Any, depth: int) -> str:
    """Return a value as it would stand at a depth, in the text's own indentation and line ends."""
    step = _step(text)
    from json import dumps

    lines = dumps(value, ensure_ascii=False, indent=step).split("\n")
    return (_line_end(text) + step * depth).join(lines)


def _line_end(text: str) -> str:
    return "\r\n" if "\r\n" in text else "\n"


def _step(text: str) -> str:
    """Return what the text indents by: the first indented line's blanks."""
    for line in text.split("\n"):
        body = line.lstrip(" \t")
        if body.strip() and body is not line and len(body) < len(line) and body[0] in '"{[}]':
            return line[: len(line) - len(body)]
    return "  "
