"""Turns a plugin's settings into an object of its ``Config`` class, checked against the annotations.

A ``Config`` is an attribute of the plugin's factory (or instance), or of its
module: a dataclass or a plain class with annotations and defaults, or any class
whose ``__init__`` takes the settings by name. A ``validate`` method is called
when there is one; ValueError from it or from ``__init__`` is a problem.
"""

from __future__ import annotations

from ..spec.errors import did_you_mean
from ..spec.record import safe_text
from .problems import kind_of, show
from .secrets import Wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .problems import Path

_NAMES: dict[Any, str] = {
    str: "a text",
    int: "a whole number",
    float: "a number",
    bool: "true or false",
    list: "a list",
    dict: "a mapping",
    type(None): "nothing",
}


def config_of(target: Any) -> Any:
    """Return the ``Config`` class of a plugin's factory, instance or module, or None."""
    import sys

    own = getattr(target, "Config", None)
    if isinstance(own, type):
        return own
    home = getattr(target, "__module__", None)
    module = sys.modules.get(home) if isinstance(home, str) else None
    shared = getattr(module, "Config", None)
    return shared if isinstance(shared, type) else None


def declares(config: Any, name: str) -> bool:
    """Tell whether a ``Config`` class (or None) has a field of this name."""
    return config is not None and name in _fields(config)[0]


def unknown(config: Any, settings: Iterable[str], wrong: list[Wrong]) -> None:
    """Add the names that a ``Config`` class does not have to ``wrong``; no code of the class runs."""
    hints, _, any_name = _fields(config)
    wrong.extend(_unknown((name,), hints) for name in settings if name not in hints and not any_name)


def _unknown(path: Path, known: Iterable[str]) -> Wrong:
    known = list(known)
    name = str(path[-1])
    remedy = f"It takes {', '.join(known)}." if known else "It takes no settings."
    return Wrong(path, f"unknown setting {show(name)}{did_you_mean(name, known)}", remedy, key=True)


def build(config: Any, settings: dict[str, Any], wrong: list[Wrong]) -> Any:
    """Return an object of a ``Config`` class.

    Parameters:
        config: the class.
        settings: what the configuration says, secrets resolved.
        wrong: gets what is wrong with the settings.

    Returns:
        the object, or None when ``wrong`` got an error.
    """
    return _build(config, settings, (), wrong)


def _build(config: Any, settings: dict[str, Any], path: Path, wrong: list[Wrong]) -> Any:
    # Where nothing is set, the types need not be known: finding them costs more than most calls of an agent.
    hints, required, any_name = _fields(config) if settings or not _has_defaults(config) else ({}, [], False)
    errors = _errors(wrong)
    values = {}
    for name, value in settings.items():
        if name not in hints and not any_name:
            wrong.append(_unknown((*path, name), hints))
            continue
        values[name] = _check(value, hints.get(name), (*path, name), wrong)
    for name in required:
        if name not in settings:
            wrong.append(
                Wrong(
                    path, f"the setting {name!r} is missing", f"Add '{name}:' with {expected(hints[name])}."
                )
            )
    if _errors(wrong) > errors:
        return None
    try:
        if _takes_values(config):
            made = config(**values)
        else:
            made = config()
            for name, value in {**_own_copies(config, hints), **values}.items():
                setattr(made, name, value)
        validate = getattr(made, "validate", None)
        if callable(validate) and "validate" not in hints and not hasattr(config, "model_fields"):
            validate()
    except (Exception, SystemExit) as error:
        kind = "" if isinstance(error, ValueError) else f"{type(error).__name__}: "
        wrong.append(
            Wrong(path, f"the plugin refuses its settings: {kind}{safe_text(error)}", "Correct them.")
        )
        return None
    return made


def _errors(wrong: list[Wrong]) -> int:
    return sum(item.severity == "error" for item in wrong)


def _takes_values(config: Any) -> bool:
    """Whether the class gets its values as keyword arguments: it has a constructor of its own."""
    return config.__init__ is not object.__init__ or config.__new__ is not object.__new__


def _has_defaults(config: Any) -> bool:
    """Whether all fields of a plain class have a default that its objects may share."""
    if _takes_values(config):
        return False
    try:
        names = {name for cls in config.__mro__ for name in getattr(cls, "__annotations__", ())}
    except Exception:  # Python 3.14 evaluates them here, and one may be a name for type checkers only
        return False
    values = [getattr(config, name, []) for name in names if not name.startswith("_")]
    return "validate" not in names and not any(isinstance(value, (list, dict, set)) for value in values)


def _own_copies(config: Any, hints: dict[str, Any]) -> dict[str, Any]:
    """Return fresh copies of a plain class's list, dict and set defaults, so that objects do not share them."""
    defaults = {name: getattr(config, name) for name in hints if hasattr(config, name)}
    shared = {name: value for name, value in defaults.items() if isinstance(value, (list, dict, set))}
    if not shared:
        return shared
    from copy import deepcopy

    return deepcopy(shared)


def _fields(config: Any) -> tuple[dict[str, Any], list[str], bool]:
    """Return the fields of a ``Config`` class: name -> type, the required ones, and whether any name will do."""
    import inspect

    annotated = _hints(config)
    if not _takes_values(config):
        return annotated, [name for name in annotated if not hasattr(config, name)], False
    try:
        parameters = inspect.signature(config).parameters.values()
    except (TypeError, ValueError):  # a constructor written in C
        return annotated, [], True
    by_init = _hints(config.__init__)
    hints: dict[str, Any] = {}
    required = []
    any_name = False
    for parameter in parameters:
        if parameter.kind is parameter.VAR_KEYWORD:
            # A record that takes its fields by **kwargs says them in annotations, or does not say.
            hints.update({name: hint for name, hint in annotated.items() if name not in hints})
            any_name = not annotated
            required += [name for name in annotated if not hasattr(config, name)]
        elif parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY):
            hints[parameter.name] = annotated.get(parameter.name, by_init.get(parameter.name))
            if parameter.default is parameter.empty:
                required.append(parameter.name)
    return hints, required, any_name


def _hints(owner: Any) -> dict[str, Any]:
    """Return name -> type of a class's (or function's) annotations; None for one that cannot be resolved."""
    import sys
    import typing

    found: dict[str, Any] = {}
    try:
        found = typing.get_type_hints(owner, include_extras=False)
    except Exception:
        from ..redact import Secret

        # One name that only type checkers import must not cost the other annotations; these are known.
        for cls in reversed(getattr(owner, "__mro__", (owner,))):
            module = sys.modules.get(getattr(cls, "__module__", ""))
            for name, hint in getattr(cls, "__annotations__", {}).items():
                scope = {**vars(typing), "Secret": Secret, **(vars(module) if module else {})}
                found[name] = _resolved(hint, scope, dict(getattr(cls, "__dict__", {})))
    return {
        name: hint
        for name, hint in found.items()
        if not name.startswith("_") and name != "return" and typing.get_origin(hint) is not typing.ClassVar
        and hint is not typing.ClassVar
    }  # fmt: skip


def _resolved(hint: Any, scope: dict[str, Any], inner: dict[str, Any]) -> Any:
    if not isinstance(hint, str):
        return hint
    try:
        return eval(hint, scope, inner)  # noqa: S307  # the plugin's own annotation, in its own module
    except Exception:
        return None


def expected(hint: Any) -> str:
    """Return a type in the words of someone who writes YAML."""
    import typing

    if hint in (None, typing.Any):
        return "a value"
    if hint in _NAMES:
        return _NAMES[hint]
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        return " or ".join(show(value) for value in args)
    if _is_union(origin):
        return " or ".join(expected(arg) for arg in args if arg is not type(None))
    kind = _container(origin or hint)
    if kind is dict:
        return "a mapping"
    if kind is not None:
        item = args[0] if args and args[0] not in (Ellipsis, typing.Any) else None
        if origin is tuple and args and args[-1] is not Ellipsis:
            return f"a list of {len(args)}"
        return "a list" if item is None else f"a list, each {expected(item)}"
    return str(getattr(hint, "__name__", hint))


def _is_union(origin: Any) -> bool:
    import types
    import typing

    return origin is typing.Union or origin is types.UnionType


def _container(kind: Any) -> Any:
    """Return list or dict for a type that takes a list or a mapping, else None."""
    import collections.abc as abc

    if not isinstance(kind, type):
        return None
    if kind in (
        list,
        tuple,
        set,
        frozenset,
        abc.Sequence,
        abc.Iterable,
        abc.Collection,
        abc.MutableSequence,
        abc.Set,
    ):
        return list
    if kind in (dict, abc.Mapping, abc.MutableMapping):
        return dict
    return None


def _check(value: Any, hint: Any, path: Path, wrong: list[Wrong]) -> Any:
    """Return a value as its annotation wants it, or add what is wrong with it."""
    import typing
    from enum import Enum
    from pathlib import PurePath

    from ..redact import Secret

    if hint in (None, typing.Any) or isinstance(hint, typing.TypeVar):
        return value
    if hint is type(None):
        return value if value is None else _refuse(value, hint, path, wrong)
    if hint is bool:
        return value if isinstance(value, bool) else _refuse(value, hint, path, wrong)
    if hint is str:  # a Secret is a str too, but one that shows its mark only
        fits = isinstance(value, str) and not isinstance(value, Secret)
        return value if fits else _refuse(value, hint, path, wrong)
    if hint is int:
        return (
            value
            if isinstance(value, int) and not isinstance(value, bool)
            else _refuse(value, hint, path, wrong)
        )
    if hint is float:
        number = isinstance(value, (int, float)) and not isinstance(value, bool)
        return float(value) if number else _refuse(value, hint, path, wrong)
    if hint is Secret:
        if isinstance(value, Secret) or not isinstance(value, str):
            return value if isinstance(value, Secret) else _refuse(value, hint, path, wrong)
        wrong.append(
            Wrong(
                path, "a secret is written out here", "Write {env: NAME} or {file: path}.", severity="warning"
            )
        )
        return Secret(value)
    origin, args = typing.get_origin(hint), typing.get_args(hint)
    if origin is typing.Literal:
        if any(value == choice and type(value) is type(choice) for choice in args):
            return value
        return _refuse(value, hint, path, wrong)
    if _is_union(origin):
        return _check_union(value, hint, args, path, wrong)
    kind = _container(origin or hint)
    if kind is dict:
        if not isinstance(value, dict):
            return _refuse(value, hint, path, wrong)
        item = args[1] if len(args) == 2 else None
        return {key: _check(part, item, (*path, key), wrong) for key, part in value.items()}
    if kind is list:
        return _check_list(value, hint, origin or hint, args, path, wrong)
    if not isinstance(hint, type):
        return value
    if isinstance(value, hint):
        return value
    if issubclass(hint, PurePath) and isinstance(value, str):
        return hint(value)
    if issubclass(hint, Enum):
        for member in hint:
            if value == member.value:
                return member
    elif isinstance(value, dict) and _hints(hint):
        return _build(hint, value, path, wrong)
    return _refuse(value, hint, path, wrong)


def _check_union(value: Any, hint: Any, args: tuple[Any, ...], path: Path, wrong: list[Wrong]) -> Any:
    for arg in args:
        tried: list[Wrong] = []
        result = _check(value, arg, path, tried)
        if not _errors(tried):
            wrong.extend(tried)
            return result
    containers = [arg for arg in args if _fits_container(value, arg)]
    if len(containers) == 1:  # the item inside is wrong, which says more than "not one of these"
        return _check(value, containers[0], path, wrong)
    return _refuse(value, hint, path, wrong)


def _fits_container(value: Any, hint: Any) -> bool:
    import typing

    return isinstance(value, (list, dict)) and _container(typing.get_origin(hint) or hint) is type(value)


def _check_list(
    value: Any, hint: Any, kind: Any, args: tuple[Any, ...], path: Path, wrong: list[Wrong]
) -> Any:
    if not isinstance(value, list):
        return _refuse(value, hint, path, wrong)
    if kind is tuple and args and args[-1] is not Ellipsis:
        if len(value) != len(args):
            return _refuse(value, hint, path, wrong)
        return tuple(
            _check(part, item, (*path, i), wrong)
            for i, (part, item) in enumerate(zip(value, args, strict=True))
        )
    item = args[0] if args else None
    items = [_check(part, item, (*path, index), wrong) for index, part in enumerate(value)]
    if kind not in (tuple, set, frozenset) or _errors(wrong):
        return items
    try:
        return kind(items)
    except TypeError:  # lists and mappings cannot be members of a set
        return _refuse(value, hint, path, wrong)


def _refuse(value: Any, hint: Any, path: Path, wrong: list[Wrong]) -> None:
    import typing

    from ..redact import Secret

    if isinstance(value, Secret):
        got, remedy = "a secret", "The plugin must declare this setting as hookturn.redact.Secret."
    else:
        got = kind_of(value) if isinstance(value, (list, dict)) or value is None else show(value)
        remedy = f"Write {expected(hint)}."
    near = ""
    if isinstance(value, str) and typing.get_origin(hint) is typing.Literal:
        near = did_you_mean(value, [choice for choice in typing.get_args(hint) if isinstance(choice, str)])
    wrong.append(Wrong(path, f"expected {expected(hint)}, got {got}{near}", remedy))
