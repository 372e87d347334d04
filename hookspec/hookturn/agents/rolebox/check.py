"""Looks at a role's modules without running them."""

from __future__ import annotations

import ast

from ...runners.module import read
from .module import HANDLERS, OBJECTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


def missing_handlers(path: str, events: Iterable[str]) -> list[tuple[str, str]]:
    """Return (event, names of its handler) of events for which a Python file defines no handler.

    A file that is not there, is not Python, or keeps its handlers in an object says nothing.
    """
    try:
        tree = ast.parse(read(path, 500_000))
    except (OSError, ValueError, SyntaxError, RecursionError, MemoryError):
        return []
    names = set(_names(tree))
    if not names.isdisjoint(OBJECTS) or "*" in names:
        return []
    return [(event, " or ".join(HANDLERS[event])) for event in events if names.isdisjoint(HANDLERS[event])]


def _names(tree: ast.Module) -> Iterable[str]:
    """Yield the names that a module's text defines anywhere but in functions and classes."""
    waiting: list[ast.AST] = list(tree.body)
    while waiting:
        node = waiting.pop()
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            yield node.name
            continue
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id
        elif isinstance(node, ast.alias):
            yield node.asname or node.name
        waiting += ast.iter_child_nodes(node)
