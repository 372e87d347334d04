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


class HookturnError(Exception):
    """Base of all exceptions of this package.

    Attributes:
        remedy: what a person may do about it, or "". It is for people: a model must not read how to switch a
            protection off.
    """

    remedy = ""


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


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """Return ``" (did you mean 'x'?)"`` for the closest known word, or an empty string."""
    from difflib import get_close_matches  # slow to import, and only needed for an error

    close = get_close_matches(word, list(known), n=1, cutoff=0.6)
    return f" (did you mean {close[0]!r}?)" if close else ""
