"""Where in nested fires the running hook is: how deep, through whose services, and for how long."""

from __future__ import annotations

from contextvars import ContextVar
from time import monotonic

from ..spec.errors import NestingError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from typing import Any

MAX_NESTING = 8
"""How deep hooks may fire hooks."""

MAX_SERVICE_DEPTH = 3
"""How deep services may call services."""


class Nest:
    """Where in nested fires a thread or task is.

    Parameters:
        depth: how many fires it is in.
        skip: plugins that are not called: it came through their own services.
        service_depth: how many services it is in.
        end: when the running hook must be done, by the monotonic clock.
    """

    __slots__ = ("depth", "end", "service_depth", "skip")

    def __init__(
        self,
        depth: int = 0,
        skip: frozenset[str] = frozenset(),
        service_depth: int = 0,
        end: float = float("inf"),
    ) -> None:
        self.depth = depth
        self.skip = skip
        self.service_depth = service_depth
        self.end = end


nest_now: ContextVar[Nest] = ContextVar("hookturn_nest", default=Nest())  # noqa: B039 - never changed in place
"""Where the current thread or task is."""

LEVELS = (nest_now.get(), *(Nest(depth) for depth in range(1, MAX_NESTING + 1)))
"""One object per depth, so that a fire allocates none."""


def time_left() -> float:
    """Return how many seconds the running hook has left; infinity outside of hooks that have a limit.

    For runners, which stop what they started: the engine stops coroutines only.
    """
    return nest_now.get().end - monotonic()


def too_deep(timing: str = "") -> NestingError:
    """Return the error for hooks that fire hooks too deep."""
    return NestingError(
        f"hooks that fire hooks nested deeper than {MAX_NESTING}{f' in {timing}' if timing else ''}"
    )


def through_service(plugin: str, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a service as one plugin gets it: hooks that fire in it skip that plugin.

    Parameters:
        plugin: name of the plugin.
        name: the service's.
        function: the service, which may be a coroutine function.

    Returns:
        a function that raises NestingError when services call services too deep.
    """
    from functools import wraps
    from inspect import iscoroutinefunction

    def enter() -> Any:
        nest = nest_now.get()
        if nest.service_depth >= MAX_SERVICE_DEPTH:
            raise NestingError(f"the service {name!r} was called through services {MAX_SERVICE_DEPTH} deep")
        return nest_now.set(Nest(nest.depth, nest.skip | {plugin}, nest.service_depth + 1, nest.end))

    if iscoroutinefunction(function):

        @wraps(function)
        async def acall(*args: Any, **kwargs: Any) -> Any:
            token = enter()
            try:
                return await function(*args, **kwargs)
            finally:
                nest_now.reset(token)

        return acall

    @wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        token = enter()
        try:
            result = function(*args, **kwargs)
        finally:
            nest_now.reset(token)
        return finish(result) if hasattr(result, "__await__") else result

    async def finish(awaitable: Awaitable[Any]) -> Any:
        token = enter()
        try:
            return await awaitable
        finally:
            nest_now.reset(token)

    return call
