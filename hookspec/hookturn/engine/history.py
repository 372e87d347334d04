"""What a session's state holds of the tool calls of its open turns: it grows with a turn, so a change of it is
told as a small record of its own, and everything else of the state is small.
"""

from __future__ import annotations

import os
from functools import lru_cache

from ..platform import born

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

KEPT_CALLS = 1000
"""Closed calls of a turn that are remembered, so that a repeated end is recognised."""

KEPT_ROWS = 5_000
"""Rows of a turn's calls and edited files that are kept at least; memory does not grow with a turn."""

GROWS = ("calls", "edited", "open", "closed")
"""Fields of a turn that only ``apply`` may change."""


def apply(data: Mapping[str, Any], change: Any) -> None:
    """Carry out one change of a turn's history, in place.

    Parameters:
        data: the session's state.
        change: ``["open", agent_id, call_id, fields]``: a call begins, or more is known of it;
            ``["close", agent_id, call_id, row]``: it has ended;
            ``["call", agent_id, row, paths]``: how it ended, and the files that it wrote.

    Raises:
        KeyError: when the agent has no open turn.
    """
    kind, agent_id, *rest = change
    turn = data["turns"][agent_id]
    if kind == "open":
        call_id, fields = rest
        turn["open"].setdefault(call_id, {}).update(fields)
        if "begun" in fields:
            turn["closed"].pop(call_id, None)  # it was cancelled before it was decided, and begins again
    elif kind == "close":
        call_id, row = rest
        turn["open"].pop(call_id, None)
        closed = turn["closed"]
        closed[call_id] = row
        if len(closed) > KEPT_CALLS:
            del closed[next(iter(closed))]
    else:
        row, paths = rest
        calls = turn["calls"]
        calls.append(row)
        if len(calls) > 2 * KEPT_ROWS:
            del calls[:KEPT_ROWS]
        if len(turn["edited"]) < KEPT_ROWS:
            turn["edited"].update(dict.fromkeys(paths))


def process() -> list[Any]:
    """Return what tells this process from all others, later ones with its number included."""
    return _of(os.getpid())  # a forked child is another one


@lru_cache(maxsize=1)
def _of(pid: int) -> list[Any]:
    return [pid, born(pid)]


def ended(turn: Mapping[str, Any], call_id: str) -> Mapping[str, Any] | None:
    """Return how a call ended, or is being ended by a process that lives; None for one that is open, or unknown."""
    row: Mapping[str, Any] | None = turn["closed"].get(call_id)
    if row is not None:
        return row
    row = turn["open"].get(call_id, {}).get("ending")
    if row is None:
        return None
    pid, when = row["process"]
    return row if row["process"] == process() or (when and born(pid) == when) else None


def small(data: Mapping[str, Any]) -> dict[str, Any]:
    """Return a state without the histories of its turns."""
    part = dict(data)
    turns = part.get("turns")
    if turns:
        part["turns"] = {
            key: {name: value for name, value in turn.items() if name not in GROWS}
            for key, turn in turns.items()
        }
    return part


def grown(part: dict[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return what ``small`` left over with the histories that turns had before; new turns have none."""
    known = before.get("turns") or {}
    for key, turn in (part.get("turns") or {}).items():
        old = known.get(key)
        if old is not None and (old["number"], old["begun"]) == (turn["number"], turn["begun"]):
            turn.update((name, old[name]) for name in GROWS)
        else:
            turn.update(calls=[], edited={}, open={}, closed={})
    return part
