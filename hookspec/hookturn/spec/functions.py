"""What must be known of plain functions, read without ``inspect``.

Importing ``inspect`` costs more than the start of the interpreter, which every call of an agent would pay; it is
asked about what is not plain.
"""

from __future__ import annotations

from types import BuiltinFunctionType, FunctionType, MethodType, ModuleType

from .markers import OPTIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_ROUTINES = (FunctionType, MethodType, BuiltinFunctionType)
_NOTES = frozenset({"hookturn_impl", OPTIONS, "Config"})
_STAR = 0x04  # inspect.CO_VARARGS
_STARS = _STAR | 0x08  # inspect.CO_VARKEYWORDS
_COROUTINE = 0x80  # inspect.CO_COROUTINE


def is_routine(value: Any) -> bool:
    """Tell what ``inspect.isroutine`` tells."""
    kind = type(value)
    if kind in _ROUTINES:
        return True
    if kind is ModuleType or isinstance(value, type):
        return False
    if value.__class__ is kind and not hasattr(kind, "__get__"):  # no descriptor, no stand-in for one
        return False
    import inspect

    return inspect.isroutine(value)


def plain(function: Any) -> FunctionType | None:
    """Return the function, or the function of a method, when its code says all about it.

    A decorator leaves notes (``__wrapped__``, ``__signature__``); such functions are not plain.
    """
    inner = function.__func__ if type(function) is MethodType else function
    return inner if type(inner) is FunctionType and inner.__dict__.keys() <= _NOTES else None


def positional(function: Any) -> tuple[str, ...] | None:
    """Return the names of a plain function's parameters.

    Returns:
        the names, without a method's own object; None when any parameter can be given otherwise than by position
        or name, or has a default, and when the function is not plain.
    """
    inner = plain(function)
    if inner is None:
        return None
    code = inner.__code__
    if inner.__defaults__ or code.co_posonlyargcount or code.co_kwonlyargcount or code.co_flags & _STARS:
        return None
    names = code.co_varnames[: code.co_argcount]
    if inner is function:
        return names
    return names[1:] if names else None


def takes_argument(function: Any) -> bool:
    """Tell whether a function or class takes a positional argument."""
    inner = plain(function)
    if inner is not None:
        code = inner.__code__
        return code.co_argcount > (inner is not function) or bool(code.co_flags & _STAR)
    import inspect

    try:
        parameters = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):  # builtins without a signature
        return False
    return any(
        one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD, one.VAR_POSITIONAL) for one in parameters
    )


def is_coroutine_function(function: Any) -> bool:
    """Whether a call gives an awaitable, as far as that can be told: behind decorators too."""
    inner = plain(function)
    if inner is not None:
        return bool(inner.__code__.co_flags & _COROUTINE)
    import inspect

    try:
        inside = inspect.unwrap(function)
    except ValueError:  # it wraps itself
        inside = function
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(inside)


def static(owner: object, name: str) -> Any:
    """Return an attribute as it stands in an object or its class, without calling a property; None for none."""
    for base in type(owner).__mro__:
        if name in base.__dict__:
            found = base.__dict__[name]
            break
    else:
        found = None
    if isinstance(found, property):  # goes before what the object itself holds
        return found
    try:
        own = object.__getattribute__(owner, "__dict__")
    except AttributeError:  # it has slots
        return found
    return own.get(name, found)
