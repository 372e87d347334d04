"""Reads YAML as version 1.2 means it: only ``true`` and ``false`` are booleans, so ``on:`` and ``no`` are texts; tags
and merge keys are refused.
"""

from __future__ import annotations

from .document import MAX_DEPTH, MAX_NODES, Document, Lines, decode
from .problems import Problem, kind_of, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from .problems import Path

_MAX_DIGITS = 40

_CLOSE = "Close each [ and {, keep commas between items,"


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
