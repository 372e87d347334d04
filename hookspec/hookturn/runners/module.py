"""``run: {module: ...}``: hooks in a Python file, loaded apart from everything that is installed."""

from __future__ import annotations

from types import ModuleType

from ..platform import O_BINARY, O_CLOEXEC
from ..quick import sha256_hex
from ..spec.errors import RegistrationError, did_you_mean
from ..spec.functions import is_routine
from ..spec.markers import hookimpl
from ..spec.record import safe_text
from ..spec.timings import TIMINGS
from .entry import Configured

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from .entry import HookEntry

MAX_BYTES = 10_000_000
"""A larger file is no hook."""

MAX_PROGRAM = 50_000_000
"""A larger file is not looked at for trust."""

NOT_PYTHON = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What the compiler raises for a file that is no Python, or is nested too deep."""

OBJECTS = ("plugin", "hook")
"""Names in a module that may hold an object with the hooks as methods (or, ``hook``, one function for all timings)."""

LIFECYCLE = ("on_load", "on_dispose")

_loaded = 0
_plugins: dict[str, object] = {}  # module -> reference to the plugin that it goes with


def read(path: str, limit: int = MAX_BYTES) -> bytes:
    """Return the bytes of a regular file.

    Parameters:
        path: the file.
        limit: bytes that it may have.

    Raises:
        OSError: when it cannot be read.
        ValueError: when it is no regular file, or too large.
    """
    import os
    import stat

    # A FIFO must not hold us up, so the kind is looked at on the opened file.
    fd = os.open(path, os.O_RDONLY | O_CLOEXEC | O_BINARY | getattr(os, "O_NONBLOCK", 0))
    with open(fd, "rb") as file:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            raise ValueError("it is no regular file")
        content = file.read(limit + 1)
    if len(content) > limit:
        raise ValueError(f"it has more than {limit:,} bytes")
    return content


def digest_of(path: str) -> str:
    """Return the SHA-256 of a file, or an empty string for one that cannot be read or is too large."""
    try:
        return sha256_hex(read(path, MAX_PROGRAM))
    except (OSError, ValueError):
        return ""


def load(entry: HookEntry) -> ModuleType:
    """Run an entry's Python file as a module of its own (each entry gets one, for the same file too).

    The file's folder is not put on ``sys.path``: what a hook imports is what is
    installed, so that a trusted hook cannot be changed through a file beside it.

    Parameters:
        entry: a configured hook of kind module. With a ``digest``, exactly the bytes that were trusted run.

    Raises:
        RegistrationError: for a missing file, a changed one, a syntax error or an exception at import
            (SystemExit included), named.
    """
    import sys

    from ..paths import safe_component

    path = entry.path
    try:
        source = read(path)
    except (OSError, ValueError) as error:
        raise _refused(entry, *unreadable(path, error)) from None
    if entry.digest and sha256_hex(source) != entry.digest:
        raise _refused(
            entry, f"{path} has changed since it was trusted", "Look at it, then run `hookturn trust`."
        )
    try:
        code = compile(source, path, "exec", dont_inherit=True)
    except NOT_PYTHON as error:
        raise _refused(entry, *not_python(path, error)) from None
    global _loaded
    _loaded += 1
    module = ModuleType(f"hookturn_module_{_loaded}_{safe_component(entry.name).replace('.', '_')}")
    module.__file__ = path
    sys.modules[module.__name__] = module  # dataclasses and pickle look modules up there
    try:
        exec(code, module.__dict__)  # noqa: S102  # running it is the point
    except (Exception, SystemExit) as error:
        sys.modules.pop(module.__name__, None)
        raise _refused(
            entry,
            f"{path}{_line_of(error, path)} failed at import: {type(error).__name__}: {safe_text(error)}",
            "Correct the Python code, or install what it imports.",
        ) from error
    return module


def unreadable(path: str, error: OSError | ValueError) -> tuple[str, str]:
    """Return cause and remedy of a module that ``read`` cannot read."""
    why = (error.strerror if isinstance(error, OSError) else "") or safe_text(error)
    return f"{path} cannot be read: {why}", "Correct the path under 'run: {module: ...}'."


def not_python(path: str, error: Exception) -> tuple[str, str]:
    """Return cause and remedy of a module that the compiler refuses with one of ``NOT_PYTHON``."""
    if isinstance(error, SyntaxError):
        where = f"{path}:{error.lineno}:{error.offset}" if error.lineno else path
        return f"{where} is not Python: {error.msg}", "Correct the Python code."
    return f"{path} is not Python: {safe_text(error)}", "Correct the file."


def _line_of(error: BaseException, path: str) -> str:
    """Return ``:<line>`` of the deepest frame of an exception that lies in the file, or an empty string."""
    line = ""
    trace = error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == path:
            line = f":{trace.tb_lineno}"
        trace = trace.tb_next
    return line


def _refused(entry: HookEntry, cause: str, remedy: str, hook: str = "") -> RegistrationError:
    return RegistrationError(entry.name, cause, remedy, hook=hook)


def make(
    entry: HookEntry, config: Mapping[str, Any] | None = None, timings: Iterable[str] = TIMINGS
) -> Configured:
    """Load an entry's Python file and return its hooks as a plugin.

    The file holds functions named after timings, or an object named ``plugin``
    or ``hook`` with such methods (a class is called, with the settings if it
    takes any), or one function ``hook`` for all timings of the entry.
    ``@hookimpl`` is optional; where it is there, its options hold unless the
    entry says otherwise.

    Parameters:
        entry: a configured hook of kind module.
        config: its settings, secrets resolved.
        timings: all timings that the engine knows.

    Raises:
        RegistrationError: when the file cannot be loaded, or lacks a function for a timing of the entry.
    """
    module = load(entry)
    plugin = hooks_of(entry, module, config, timings)
    _forget_with(plugin, module.__name__)
    return plugin


def hooks_of(
    entry: HookEntry, module: ModuleType, config: Mapping[str, Any] | None, timings: Iterable[str]
) -> Configured:
    """Return the hooks of a module as a plugin; the parameters and errors are those of ``make``."""
    known = tuple(timings)
    functions = _functions(entry, module, known)
    general = None
    for name in OBJECTS:
        target = getattr(module, name, None)
        if target is None:
            continue
        if is_routine(target):
            general = target if name == "hook" else None
            continue
        functions.update(_functions(entry, _instance(entry, target, config), known))
    wanted = list(entry.timings) or [name for name in functions if name not in LIFECYCLE]
    hooks = {}
    for timing in wanted:
        function = functions.get(timing, general)
        if function is None:
            found = [name for name in functions if name not in LIFECYCLE]
            near = did_you_mean(timing, [n for n in vars(module) if not n.startswith("_")])
            raise _refused(
                entry,
                f"{entry.path} has no function {timing!r}{near}; it has {', '.join(found) or 'no hook at all'}",
                _plugin_line(module, known)
                or f"Define `def {timing}(event):`, or correct the entry's timings.",
                timing,
            )
        hooks[timing] = function
    if not hooks:
        others = [name for name in LIFECYCLE if name in functions]
        near = next(
            (
                n
                for n in vars(module)
                if n not in others and is_routine(getattr(module, n)) and did_you_mean(n, known)
            ),
            "",
        )
        raise _refused(
            entry,
            f"{entry.path} has no hook"
            + (f" beside {' and '.join(others)}" if others else "")
            + (f"; {near!r} is no timing{did_you_mean(near, known)}" if near else ""),
            _plugin_line(module, known)
            or "Define a function named after a timing, such as `def pre_tool_execution(event):`.",
        )
    for name in LIFECYCLE:
        if name in functions:
            hooks[name] = functions[name]
    for function in hooks.values():
        if getattr(function, "hookturn_impl", None) is None:
            hookimpl(getattr(function, "__func__", function))
    return Configured(entry.name, hooks)


def place_of(plugin: Configured, hook: str) -> str:
    """Return where a hook of a module is defined, such as ``hooks/x.py:3, on_turn_start``, or an empty string."""
    from inspect import unwrap

    try:
        function = unwrap(getattr(plugin, hook))
        code = function.__code__
    except (AttributeError, ValueError):  # no hook in particular, or none that is written in Python
        return ""
    return f"{code.co_filename}:{code.co_firstlineno}, {function.__name__}"


def _plugin_line(module: ModuleType, known: tuple[str, ...]) -> str:
    """Return what to add when a class of the module has the hooks and nobody made an object of it."""
    for name, value in vars(module).items():
        if not isinstance(value, type) or value.__module__ != module.__name__:
            continue
        if any(key in known or hasattr(part, "hookturn_impl") for key, part in vars(value).items()):
            return f"The class {name} has hooks; add `plugin = {name}()` at the end."
    return ""


def _forget_with(plugin: Configured, name: str) -> None:
    """Let the module go with its plugin."""
    import sys
    from _weakref import ref  # weakref itself brings more than a call of an agent needs

    def forget(_: object) -> None:
        sys.modules.pop(name, None)
        del _plugins[name]

    _plugins[name] = ref(plugin, forget)


def _instance(entry: HookEntry, target: Any, config: Mapping[str, Any] | None) -> Any:
    """Return the object that holds the hooks; a class is called, with the settings if it takes any."""
    if not isinstance(target, type):
        return target
    from .factory import call

    try:
        return call(target, config or {})
    except (Exception, SystemExit) as error:
        raise _refused(
            entry,
            f"{entry.path}: {target.__name__}() failed: {type(error).__name__}: {safe_text(error)}",
            "Correct the Python code.",
        ) from error


def _functions(entry: HookEntry, owner: Any, known: tuple[str, ...]) -> dict[str, Any]:
    """Return timing -> function of a module or an object."""
    found: dict[str, Any] = {}
    is_module = isinstance(owner, ModuleType)
    for name in list(vars(owner)) if is_module else dir(owner):
        if name.startswith("__") or (is_module and name in OBJECTS):
            continue
        function = getattr(owner, name, None)
        marks = getattr(function, "hookturn_impl", None)
        if isinstance(marks, dict):
            timing = marks.get("specname") or name
            if timing not in known and timing not in LIFECYCLE and not marks.get("optionalhook"):
                raise _refused(
                    entry,
                    f"{entry.path}: there is no hook timing {timing!r}{did_you_mean(timing, known)}",
                    "Use one of the names of `hookturn.spec.timings`, or mark it `optionalhook=True`.",
                    name,
                )
        elif (name in known or name in LIFECYCLE) and is_routine(function):
            timing = name
        else:
            continue
        found[timing] = function
    return found


def guards(source: bytes) -> list[str]:
    """Return the functions that a file marks with ``@hookimpl(guard=True)``, as far as its text tells.

    The file is not run. A name given to the decorator (``@hookimpl.TIMING``, ``specname=``) counts
    instead of the function's own.
    """
    if b"guard" not in source:
        return []
    import ast

    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # such a file cannot be loaded, so it guards nothing
    found = []
    for node in ast.walk(tree):
        if not isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            continue
        for mark in node.decorator_list:
            if not isinstance(mark, ast.Call):
                continue
            given = {word.arg: word.value for word in mark.keywords}
            guard = given.get("guard")
            if guard is None or (isinstance(guard, ast.Constant) and not guard.value):
                continue
            name = given.get("specname")
            if isinstance(name, ast.Constant) and isinstance(name.value, str):
                found.append(name.value)
            elif isinstance(mark.func, ast.Attribute) and mark.func.attr in TIMINGS:
                found.append(mark.func.attr)
            else:
                found.append(node.name)
    return list(dict.fromkeys(found))
