"""The exceptions that hookturn raises.

    HookturnError
    ├── RegistrationError     a plugin was refused (also a TypeError)
    ├── ConfigError           a configuration cannot be used (also a ValueError)
    ├── EventError            an event was built with wrong fields (also a TypeError)
    ├── AnswerError           an answer was built wrongly, or its timing does not allow it
    ├── LifecycleError        a host called a session's methods in an impossible order
    └── NestingError          hooks that fire hooks went too deep

Failures of hooks are never raised: they are recorded in the outcome.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import TypeVar

    Wrong = TypeVar("Wrong", bound="HookturnError")


class HookturnError(Exception):
    """Base of all exceptions of this package.

    Attributes:
        remedy: what a person may do about it, or "". It is for people: a model must not read how to switch a
            protection off.
        mismatch: where a value is of the wrong type: what it is the value of, the type that is wanted, and the value.
    """

    remedy = ""
    mismatch: tuple[str, type, object] | None = None


class RegistrationError(HookturnError, TypeError):
    """A plugin was refused at registration.

    Parameters:
        plugin: the plugin's name.
        cause: what is wrong with it.
        remedy: what to do about it.
        hook: the hook function concerned, or "".
        distribution: the distribution that brought the plugin, or "".
    """

    def __init__(
        self, plugin: str, cause: str, remedy: str, *, hook: str = "", distribution: str = ""
    ) -> None:
        self.plugin = plugin
        self.cause = cause
        self.remedy = remedy
        self.hook = hook
        self.distribution = distribution
        where = f"plugin {plugin!r}"
        if distribution:
            where += f" (from {distribution})"
        if hook:
            where += f", hook {hook!r}"
        super().__init__(f"{where}: {cause}. {remedy}")


class ConfigError(HookturnError, ValueError):
    """A configuration cannot be used as a whole (single bad entries are problems, not exceptions)."""


class EventError(HookturnError, TypeError):
    """An event was built with a missing, unknown or wrongly typed field."""


class AnswerError(HookturnError, ValueError):
    """An answer was built wrongly, or its timing does not allow it."""


class LifecycleError(HookturnError, RuntimeError):
    """A host asked a session for something that its state rules out."""


class NestingError(HookturnError, RuntimeError):
    """Hooks that fire hooks (or call tools) nested deeper than the limit."""


_JSON_KINDS: tuple[tuple[type | tuple[type, ...], str], ...] = (
    (bool, "a boolean"),
    (str, "a string"),
    ((int, float), "a number"),
    (dict, "an object"),
    ((list, tuple), "an array"),
    (type(None), "null"),
)


def json_kind(value: object) -> str:
    """Return what a value is in JSON's words, such as ``"an object"``; the type's name where JSON has none."""
    for kind, name in _JSON_KINDS:
        if isinstance(value, kind):
            return name
    return type(value).__name__


def wrong_type(error: type[Wrong], what: str, wanted: type, value: object) -> Wrong:
    """Return the error for a value of the wrong type, in Python's words; ``in_json`` says it in JSON's.

    Parameters:
        error: the error's class.
        what: whose value it is.
        wanted: the type that it must have.
        value: the value.
    """
    made = error(f"{what} must be a {wanted.__name__}, got {type(value).__name__}")
    made.mismatch = what, wanted, value
    return made


def in_json(error: Wrong) -> Wrong:
    """Return an error about a value that came as JSON, in the words of who wrote it."""
    if error.mismatch is None:
        return error
    what, wanted, value = error.mismatch
    need = "a whole number" if wanted is int else json_kind(wanted())
    got = repr(value) if wanted is int and isinstance(value, float) else json_kind(value)
    return type(error)(f"{what} must be {need}, got {got}")


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the closest known word, or an empty string."""
    from difflib import get_close_matches  # slow to import, and only needed for an error

    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""
