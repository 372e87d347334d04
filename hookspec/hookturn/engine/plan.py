"""The order rule: which hooks a timing calls, and in which order. A plan is immutable and thrown away on change.

Key: tier, then priority (lower first), then registration. Pluggy itself is
last-in-first-out and has no numbers; its call order is only read.
"""

from __future__ import annotations

from operator import attrgetter

from .match import Filter

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from ..spec.timings import Timing
    from .registry import Plugin

    Bound = tuple[Callable[..., Any], Any, "Step"]

TIERS = ("first", "before", "plain", "after", "last", "guard")
"""Builtins that go first, phase ``before``, the host's handler and unphased hooks, phase ``after``,
builtins that go last, guards."""

ENFORCED_LAYERS = ("host", "managed", "user", "installed", "builtin")
"""A guard of these layers cannot be set aside by always_allow; one that a project brings can."""

# Default time limits in seconds of coroutine hooks, by timing (others: 10).
_TIMEOUTS = {
    "on_session_end": 5.0,
    "on_turn_complete": 60.0,
    "on_permission_request": 300.0,
}


class Step:
    """One hook in a plan.

    Attributes:
        name: the hook's name, which records and messages use.
        plugin: the plugin's name.
        source: where it was declared.
        function: the hook itself.
        wants: the names of its parameters.
        is_async: whether it returns an awaitable.
        filter: when it is called, or None for always.
        timeout: seconds.
        own_timeout: whether the hook's author or its configuration set it.
    """

    __slots__ = (
        "_context",
        "enforced",
        "fails_closed",
        "filter",
        "function",
        "guard",
        "index",
        "is_async",
        "monitor",
        "name",
        "own_timeout",
        "owner",
        "plugin",
        "priority",
        "source",
        "tier",
        "tier_name",
        "timeout",
        "unfiltered",
        "wants",
    )

    def __init__(
        self, timing: Timing, owner: Plugin, function: Callable[..., Any], options: dict[str, Any]
    ) -> None:
        self.owner = owner
        self.name = owner.hook_name
        self.plugin = owner.name
        self.source = owner.source or owner.distribution
        self.function = function
        self.index = owner.index
        self.wants: tuple[str, ...] = options["wants"]
        self.is_async: bool = options["is_async"]
        self.guard: bool = options["guard"] and timing.name != "on_outcome"
        self.priority: int = options["priority"]
        self.enforced = self.guard and owner.layer in ENFORCED_LAYERS
        self.fails_closed: bool = self.guard or options["on_failure"] == "deny"
        self.monitor: bool = options["mode"] == "monitor"
        self.own_timeout: bool = options["timeout"] is not None
        self.timeout: float = options["timeout"] or _TIMEOUTS.get(timing.name, 10.0)
        self.unfiltered = timing.name == "on_outcome"
        chosen = [options[key] for key in ("tools", "agents", "event_types", "condition")]
        self.filter = None if self.unfiltered or chosen == [None] * 4 else Filter(*chosen)
        self.tier = self._tier(options)
        self.tier_name = TIERS[self.tier]
        self._context: tuple[str, Any] = ("", None)

    def _tier(self, options: dict[str, Any]) -> int:
        builtin = self.owner.layer == "builtin"
        if self.guard:
            return 5
        if options["tryfirst"]:
            return 0 if builtin else 1
        if options["trylast"]:
            return 4 if builtin else 3
        return 2

    def context(self, event: Any) -> Any:
        """Return the hook's ctx; hooks name it for its values, so one serves a whole session."""
        session, made = self._context
        if made is None or session != event.session_id:
            made = self.owner.context(event, self.monitor)
            self._context = (event.session_id, made)
        return made

    def call(self, event: Any) -> Any:
        """Call the hook with what its parameters name."""
        wants = self.wants
        if wants == ("event",):
            return self.function(event)
        if wants == ("event", "ctx"):
            return self.function(event, self.context(event))
        if wants == ("ctx", "event"):
            return self.function(self.context(event), event)
        return self.function(self.context(event)) if wants else self.function()

    def bound(self, event: Any) -> Bound:
        """Return (function, ctx, step) for the hot loop: ``function(event)`` without a ctx, else ``function(event, ctx)``."""
        if self.wants == ("event",):
            return self.function, None, self
        if self.wants == ("event", "ctx"):
            return self.function, self.context(event), self
        return self.call, None, self

    def __repr__(self) -> str:
        return f"<Step {self.name!r}: {self.tier_name} {self.priority}, #{self.index}>"


def _no_key(event: Any) -> None:
    """The key of what may depend on anything."""


class Plan:
    """The hooks of one timing in order.

    Attributes:
        timing: the timing's contract.
        steps: all hooks, guards last.
        plain: whether all are synchronous functions without a time limit of their own.
        own: whether all are hookturn's own, which take no thread: they are known not to hang.
        static: what ``groups`` returns for every event, or None when it depends on the event.
        known, key: what ``groups`` returned before, by what it depends on; ``key`` is None for what cannot be told.
    """

    __slots__ = ("_groups", "key", "known", "own", "plain", "static", "steps", "timing")

    def __init__(self, timing: Timing, steps: list[Step]) -> None:
        self.timing = timing
        self.steps = tuple(sorted(steps, key=lambda step: (step.tier, step.priority, step.index)))
        hooks = tuple(step for step in self.steps if not step.guard)
        guards = tuple(step for step in self.steps if step.guard)
        self._groups = tuple(group for group in (hooks, guards) if group)
        self.own = all(step.owner.layer == "builtin" for step in self.steps)
        self.plain = not any(step.is_async or step.own_timeout for step in self.steps)
        # What a filter looks at and what a ctx belongs to do not change within a fire,
        # so the hooks to call are chosen once and remembered by these attributes.
        names: list[str] = []
        if any("ctx" in step.wants for step in self.steps):
            names.append("session_id")
        filters = [step.filter for step in self.steps if step.filter is not None]
        if any(item.tools is not None for item in filters) and "tool" in timing.event._fields:
            names += ["tool", "kind"]
        if any(item.agents is not None for item in filters):
            names.append("agent")
        if any(item.event_types is not None for item in filters) and timing.name == "on_event":
            names.append("type")
        # A condition may look at anything of an event: nothing can be remembered then.
        varies = any(item.condition is not None for item in filters)
        self.key: Callable[[Any], Any] = attrgetter(*names) if names and not varies else _no_key
        self.known: dict[Any, tuple[tuple[Bound, ...], ...]] = {}
        self.static = None if names or varies else self._bind(None)

    def groups(self, event: Any) -> tuple[tuple[Bound, ...], ...]:
        """Return the hooks, then the guards, that the event concerns, bound to its session."""
        if self.static is not None:
            return self.static
        key = self.key(event)
        found = self.known.get(key)
        if found is None:
            found = self._bind(event)
            if key is not None:
                if len(self.known) >= 256:  # tool names and session ids come from outside
                    self.known.clear()
                self.known[key] = found
        return found

    def _bind(self, event: Any) -> tuple[tuple[Bound, ...], ...]:
        groups = (
            tuple(
                step.bound(event)
                for step in group
                if step.filter is None or event is None or not step.filter.why_not(event)
            )
            for group in self._groups
        )
        return tuple(group for group in groups if group)
