"""A Python file's hooks without its code: what can be told of a module that must not be run yet.

The outline is a module with the file's functions and classes by name, parameters and
``@hookimpl`` options, and with empty bodies: registering it finds the mistakes that
registering the module itself would find.
"""

from __future__ import annotations

import ast

from ..spec.markers import hookimpl
from .module import LIFECYCLE, OBJECTS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from types import ModuleType
    from typing import Any


class _Unclear(Exception):
    """Only running the file would tell which hooks it has."""


def outline(source: bytes, path: str, timings: Iterable[str]) -> ModuleType | None:
    """Return the outline of a Python file, or None when only running it would tell its hooks.

    Parameters:
        source: the file.
        path: its name, for messages.
        timings: all timings that there are.

    Raises:
        SyntaxError, ValueError, RecursionError, MemoryError: when it is not Python.
    """
    from types import ModuleType

    names = {*timings, *LIFECYCLE, *OBJECTS}
    module = ModuleType("hookturn_outline")
    module.__file__ = path
    try:
        kept = _Outline(names).of(ast.parse(source, path).body)
        code = compile(ast.Module(kept, []), path, "exec", dont_inherit=True)
        # Nothing of the file is left in it but names and the options of decorators.
        exec(code, module.__dict__ | {"hookimpl": hookimpl}, module.__dict__)  # noqa: S102
    except (_Unclear, TypeError):  # TypeError: options that hookimpl does not take
        return None
    return module


class _Outline:
    """Builds the outline's statements.

    Parameters:
        names: names that make something a hook, or hold hooks.
    """

    def __init__(self, names: set[str]) -> None:
        self.names = names
        self.classes: dict[str, bool] = {}  # name -> whether all its methods are known

    def of(self, body: list[ast.stmt]) -> list[ast.stmt]:
        """Return what is kept of the statements of a module."""
        kept: list[ast.stmt] = []
        for node in body:
            if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
                kept.append(self._function(node))
            elif isinstance(node, ast.ClassDef):
                kept.append(self._class(node))
            elif isinstance(node, (ast.Assign, ast.AnnAssign)):
                kept += self._assignment(node)
            elif isinstance(node, (ast.Import, ast.ImportFrom)):
                self._imported(node)
            elif not isinstance(node, (ast.Expr, ast.Pass)) or _calls(node):
                self._other(node)
        return kept

    def _function(self, node: Any) -> Any:
        decorators = [_decorator(mark) for mark in node.decorator_list]
        for argument in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs):
            argument.annotation = None
        for star in (node.args.vararg, node.args.kwarg):
            if star is not None:
                star.annotation = None
        none = ast.copy_location(ast.Constant(None), node)
        node.args.defaults = [none for _ in node.args.defaults]
        node.args.kw_defaults = [default and none for default in node.args.kw_defaults]
        node.decorator_list, node.returns = decorators, None
        return _emptied(node, [ast.copy_location(ast.Pass(), node)])

    def _class(self, node: ast.ClassDef) -> ast.ClassDef:
        methods = []
        plain = not node.decorator_list and not node.keywords
        plain = plain and all(isinstance(base, ast.Name) and base.id == "object" for base in node.bases)
        for part in node.body:
            if isinstance(part, (ast.FunctionDef, ast.AsyncFunctionDef)):
                if part.name.startswith("__"):
                    continue
                try:
                    methods.append(self._function(part))
                except _Unclear:
                    plain = False
            elif _bound(part) & self.names:
                plain = False
        self.classes[node.name] = plain
        node.bases, node.keywords, node.decorator_list = [], [], []
        empty: list[ast.stmt] = [ast.copy_location(ast.Pass(), node)]
        made: ast.ClassDef = _emptied(node, methods or empty)
        return made

    def _assignment(self, node: Any) -> list[ast.stmt]:
        bound = _bound(node) & self.names
        if not bound:
            return []
        value = node.value.func if isinstance(node.value, ast.Call) else node.value
        if not (len(bound) == 1 and bound <= set(OBJECTS) and isinstance(value, ast.Name)):
            raise _Unclear
        if not self.classes.get(value.id):
            raise _Unclear
        (name,) = bound
        target = ast.Name(name, ast.Store())
        made = ast.Assign([target], ast.Call(ast.Name(value.id, ast.Load()), [], []))
        return [ast.fix_missing_locations(ast.copy_location(made, node))]

    def _imported(self, node: Any) -> None:
        names = {alias.asname or alias.name.partition(".")[0] for alias in node.names}
        if names & self.names or "*" in names:
            raise _Unclear

    def _other(self, node: ast.stmt) -> None:
        """Refuse to tell when a statement of another kind may bind a hook."""
        for inner in ast.walk(node):
            if isinstance(inner, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
                raise _Unclear
            if isinstance(inner, ast.stmt) and _bound(inner) & self.names:
                raise _Unclear
            if isinstance(inner, (ast.Import, ast.ImportFrom)):
                self._imported(inner)
            if isinstance(inner, ast.expr) and _binds_by_name(inner):
                raise _Unclear


def _emptied(node: Any, body: list[ast.stmt]) -> Any:
    node.body = body
    if hasattr(node, "type_params"):  # Python 3.12 and newer
        node.type_params = []
    return node


def _bound(node: ast.stmt) -> set[str]:
    """Return the names that a statement assigns to."""
    return {
        name.id
        for name in ast.walk(node)
        if isinstance(name, ast.Name) and isinstance(name.ctx, (ast.Store, ast.Del))
    }


def _calls(node: ast.stmt) -> bool:
    return any(_binds_by_name(inner) for inner in ast.walk(node) if isinstance(inner, ast.expr))


def _binds_by_name(node: ast.expr) -> bool:
    """Tell whether an expression is one of those that may make any name of a module."""
    return isinstance(node, ast.Name) and node.id in ("globals", "exec", "eval", "setattr", "vars", "locals")


def _decorator(mark: ast.expr) -> ast.expr:
    """Return a decorator with what can be told of it: ``hookimpl``, ``hookimpl.TIMING``, with options.

    Raises:
        _Unclear: for any other, which may change the function or its name.
    """
    call = mark if isinstance(mark, ast.Call) else None
    target = call.func if call is not None else mark
    timing = ""
    if isinstance(target, ast.Attribute) and _is_hookimpl(target.value):
        timing = target.attr
    elif not _is_hookimpl(target):
        raise _Unclear
    made: ast.expr = ast.Name("hookimpl", ast.Load())
    if timing:
        made = ast.Attribute(made, timing, ast.Load())
    if call is not None:
        if call.args or any(word.arg is None for word in call.keywords):
            raise _Unclear
        made = ast.Call(made, [], [word for word in call.keywords if _is_literal(word.value)])
    return ast.fix_missing_locations(ast.copy_location(made, mark))


def _is_hookimpl(node: ast.expr) -> bool:
    return (isinstance(node, ast.Name) and node.id == "hookimpl") or (
        isinstance(node, ast.Attribute) and node.attr == "hookimpl"
    )


def _is_literal(node: ast.expr) -> bool:
    try:
        ast.literal_eval(node)
    except ValueError:
        return False
    return True
