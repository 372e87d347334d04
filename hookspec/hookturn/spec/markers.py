"""The two decorators: ``hookimpl`` for hook authors, ``hookspec`` for framework authors.

They only leave notes on functions, in the form that pluggy reads
(``hookturn_impl`` and ``hookturn_spec``), so that plugins need not import pluggy.
"""

from __future__ import annotations

from .errors import RegistrationError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, TypeVar

    from .answers import Answer
    from .events import Event
    from .typed import TypedHookimpl

    F = TypeVar("F", bound=Callable[..., Any])

OPTIONS = "_hookturn_options"
"""Attribute of a hookimpl function: our options, beside pluggy's ``hookturn_impl``."""

TIMING = "_hookturn_timing"
"""Attribute of a hookspec function: the keyword arguments of ``hookspec``."""


class HookimplMarker:
    """Marks a function as an implementation of a hook. Used as ``@hookimpl`` or ``@hookimpl(guard=True)``.

    ``@hookimpl.pre_tool_execution(...)`` does the same, names the timing itself
    (the function's name is free), and lets type checkers check event and answers.
    """

    def __call__(
        self,
        function: Any = None,
        *,
        tryfirst: bool = False,
        trylast: bool = False,
        specname: str | None = None,
        optionalhook: bool = False,
        guard: bool = False,
        priority: int = 50,
        tools: Iterable[str] | None = None,
        agents: Iterable[str] | None = None,
        event_types: Iterable[str] | None = None,
        timeout: float | None = None,
        on_failure: str = "ignore",
        mode: str = "enforce",
        wrapper: bool = False,
        hookwrapper: bool = False,
    ) -> Any:
        """Mark a function as a hook implementation.

        Parameters:
            function: the function, when used without parentheses.
            tryfirst: run before the unphased hooks (phase ``before``).
            trylast: run after the unphased hooks (phase ``after``).
            specname: the timing's name, when the function is called otherwise.
            optionalhook: say nothing when no such timing exists.
            guard: answer only Deny, Ask, Block, Warn; run last, on the rewritten event; fail closed.
            priority: within its phase, lower runs earlier.
            tools: only for these tools: names, kinds or globs.
            agents: only for these agents: names or globs.
            event_types: only for these host event types (``on_event``).
            timeout: seconds; the default depends on how the hook runs.
            on_failure: ``ignore`` (the agent goes on) or ``deny`` (a failure is a Deny that names the hook).
            mode: ``enforce``, or ``monitor`` (answers are recorded without effect).
            wrapper, hookwrapper: pluggy's wrappers; refused at registration, see ``on_outcome`` and guards.

        Returns:
            the function itself, or the decorator.
        """
        options = {
            "guard": guard,
            "priority": priority,
            "tools": _names(tools),
            "agents": _names(agents),
            "event_types": _names(event_types),
            "timeout": timeout,
            "on_failure": on_failure,
            "mode": mode,
        }
        for_pluggy = {
            "wrapper": wrapper,
            "hookwrapper": hookwrapper,
            "optionalhook": optionalhook,
            "tryfirst": tryfirst,
            "trylast": trylast,
            "specname": specname,
        }

        def mark(target: Any) -> Any:
            # Notes on the wrapper would be lost: what is called is the function in it.
            noted: Any = target.__func__ if isinstance(target, (staticmethod, classmethod)) else target
            setattr(noted, OPTIONS, options)
            noted.hookturn_impl = for_pluggy
            return target

        return mark if function is None else mark(function)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)

        def typed(function: Any = None, **options: Any) -> Any:
            return self(function, specname=name, **options)

        return typed


def _names(value: Any) -> tuple[str, ...] | None:
    if value is None:
        return None
    return (value,) if isinstance(value, str) else tuple(value)


if TYPE_CHECKING:
    hookimpl: TypedHookimpl
else:
    hookimpl = HookimplMarker()


def hookspec(
    *,
    event: type[Event],
    answers: Iterable[type[Answer]] = (),
    writable: Iterable[str] = (),
    since: str = "",
    deprecated: str = "",
) -> Callable[[F], F]:
    """Mark a function as the specification of a hook timing of your own framework.

    Parameters:
        event: the event class, whose ``timing`` is the function's name.
        answers: the answers that a hook may give (Warn is always allowed).
        writable: the event's fields that a Rewrite may change; the first is ``Rewrite(value)``'s.
        since: the version of your framework that introduced the timing.
        deprecated: what to use instead, for a timing that will go.

    Returns:
        the decorator.

    Raises:
        RegistrationError: when the event belongs to another timing.
    """
    answers, writable = tuple(answers), tuple(writable)

    def mark(function: F) -> F:
        name = function.__name__
        if event.timing != name:
            raise RegistrationError(
                function.__module__,
                f"the event {event.__name__} belongs to timing {event.timing!r}",
                f"Declare it with `class {event.__name__}(Event, timing={name!r})`.",
                hook=name,
            )
        function.hookturn_spec = {  # type: ignore[attr-defined]
            "firstresult": False,
            "historic": False,
            "warn_on_impl": None,
            "warn_on_impl_args": None,
        }
        options = {
            "event": event,
            "answers": answers,
            "writable": writable,
            "since": since,
            "deprecated": deprecated,
        }
        setattr(function, TIMING, options)
        return function

    return mark
