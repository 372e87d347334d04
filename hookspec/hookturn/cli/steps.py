"""A hook of a plan as ``hooks`` and ``explain`` show it."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..engine.plan import Step


def step_json(step: Step) -> dict[str, Any]:
    """Return what is known of a hook before it is called.

    ``timeout`` is in seconds; ``filters`` has a list or null for each of tools, agents and event_types.
    """
    chosen = step.filter
    return {
        "name": step.name,
        "plugin": step.plugin,
        "source": step.source,
        "layer": step.owner.layer,
        "tier": step.tier_name,
        "priority": step.priority,
        "guard": step.guard,
        "enforced": step.enforced,
        "mode": "monitor" if step.monitor else "enforce",
        "on_failure": on_failure(step),
        "timeout": step.timeout,
        "asynchronous": step.is_async,
        "filters": {
            "tools": _words(chosen.tools if chosen else None),
            "agents": _words(chosen.agents if chosen else None),
            "event_types": _words(chosen.event_types if chosen else None),
        },
    }


def on_failure(step: Step) -> str:
    """Return what a hook's failure means: deny or ignore, or what its plugin's settings say, which handles its own."""
    own = getattr(step.owner.config, "on_failure", None)
    if step.fails_closed and not step.guard and isinstance(own, str):
        return own
    return "deny" if step.fails_closed else "ignore"


def _words(given: tuple[str, ...] | None) -> list[str] | None:
    return None if given is None else list(given)


def filters_text(step: Step) -> str:
    """Return the conditions of a hook in one line, or an empty string."""
    filters = step_json(step)["filters"]
    return "; ".join(f"{name}: {', '.join(words)}" for name, words in filters.items() if words is not None)


def notes_text(step: Step) -> str:
    """Return what is special about a hook: monitor mode, failing closed, coroutine."""
    notes = []
    if step.guard:
        notes.append("enforced" if step.enforced else "yields to always_allow")
    elif on_failure(step) == "deny":
        notes.append("fails closed")
    elif on_failure(step) != "ignore":
        notes.append(f"on failure: {on_failure(step)}")
    if step.monitor:
        notes.append("monitor only")
    if step.is_async:
        notes.append("async")
    return ", ".join(notes)
