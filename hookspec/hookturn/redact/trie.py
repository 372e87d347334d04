"""One pattern for many literals, with common beginnings shared: several times as fast as plain alternatives."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable

    Tree = dict[str, "Tree"]


def trie(words: Iterable[str]) -> str:
    """Return a pattern that matches the longest of the words that stands somewhere."""
    tree: Tree = {}
    for word in words:
        node = tree
        for character in word:
            node = node.setdefault(character, {})
        node[""] = {}
    return _branch(tree)


def _branch(node: Tree) -> str:
    rest = [re.escape(character) + _branch(below) for character, below in sorted(node.items()) if character]
    if not rest:
        return ""
    pattern = rest[0] if len(rest) == 1 else "(?:" + "|".join(rest) + ")"
    return f"(?:{pattern})?" if "" in node else pattern
