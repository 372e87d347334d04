"""Looks at a role's modules without running them."""

from __future__ import annotations

import ast
import os

from ...platform import agent_environ
from ...runners.entry import Wrong
from ...runners.module import read
from ...spec.errors import did_you_mean
from ...spec.tools import KINDS
from .module import HANDLERS, OBJECTS
from .tools import TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ...runners.entry import HookEntry

PATH = "Correct the path under 'module:'; it starts at the role's folder, then at the project's."


def of_python(entry: HookEntry, path: str) -> Iterator[Wrong]:
    """Yield what is wrong with a Python module: it is not there, is no Python, or lacks a handler for an event.

    Parameters:
        entry: the hook.
        path: its module.
    """
    try:
        tree = ast.parse(read(path), path)
    except SyntaxError as error:
        where = f"{path}:{error.lineno}:{error.offset}" if error.lineno else path
        yield Wrong(f"{where}: {error.msg}", "Correct the Python code.")
        return
    except OSError as error:
        yield Wrong(f"{path} cannot be read: {error.strerror or error}", PATH)
        return
    except (ValueError, RecursionError, MemoryError) as error:
        yield Wrong(f"{path} is no Python: {error}", "Correct the file.")
        return
    names = set(_names(tree))
    if not names.isdisjoint(OBJECTS) or "*" in names:
        return  # its handlers may be anywhere
    for event in entry.extra["events"]:
        if names.isdisjoint(HANDLERS[event]):
            cause = f"{entry.run} has no handler for {event}, so the hook never runs there"
            yield Wrong(cause, f"Define {' or '.join(HANDLERS[event])}.", certain=False)


def of_javascript(entry: HookEntry, path: str) -> Iterator[Wrong]:
    """Yield what keeps a JavaScript module from running: it is not there, or Node is not.

    Parameters:
        entry: the hook.
        path: its module.
    """
    from ...runners.node.resident import find_node

    if not os.path.isfile(path):
        what = "is no file" if os.path.lexists(path) else "does not exist"
        yield Wrong(f"{path} {what}", PATH)
    _, why = find_node(agent_environ())
    if why:
        cause, _, remedy = why.partition(". ")
        yield Wrong(cause, remedy or "The hook does not run without it.", certain=False)


def of_filter(tools: Iterable[str] | None) -> Iterator[Wrong]:
    """Yield a warning for each name in ``filter.tools`` that no tool of rolebox has."""
    for name in tools or ():
        if name in TOOLS or name in KINDS or name.startswith("mcp"):
            continue
        same = [known for known in TOOLS if known.lower() == name.lower()]
        near = f" (did you mean {same[0]!r}? case counts)" if same else did_you_mean(name, TOOLS)
        cause = f"filter.tools: {name!r} is no tool of rolebox's{near}"
        yield Wrong(cause, "If a tool has this very name, all is well.", certain=False, severity="warning")


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
