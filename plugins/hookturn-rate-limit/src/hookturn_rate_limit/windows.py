"""A sliding window in a few counters: never more than N in any span of its length, whatever N is.

Time is cut into 50 slots a span. A call is counted in its slot, and has room
when the 51 slots that a span ending in it can touch hold fewer than N. Calls
may come out of order by up to one span, as those of parallel processes do.
"""

from __future__ import annotations

SLOTS = 50
"""Slots a span."""


def wait(counts: dict[str, int], seconds: int, limit: int, now: float) -> float:
    """Return the seconds until there is room for another call; 0.0 when there is room now.

    Parameters:
        counts: slot number -> calls, as ``add`` keeps it.
        seconds: length of the span.
        limit: calls that may be in it, at least 1.
        now: time of the call, in seconds since the epoch.
    """
    slot, width = _slot(seconds, now)
    # What lies ahead by more than a span was counted before the clock was set back.
    near = sorted((int(key), count) for key, count in counts.items() if abs(int(key) - slot) <= SLOTS)
    total = sum(count for _, count in near)
    free = 0.0
    for number, count in near:
        if total < limit:
            break
        total -= count
        free = (number + SLOTS + 1) * width / 1_000_000 - now
    return free


def add(counts: dict[str, int], seconds: int, now: float) -> None:
    """Count a call, and forget the slots that no call can need any more (see ``wait``)."""
    slot, _ = _slot(seconds, now)
    for key in [key for key in counts if not slot - 2 * SLOTS <= int(key) <= slot + SLOTS]:
        del counts[key]
    counts[str(slot)] = counts.get(str(slot), 0) + 1


def _slot(seconds: int, now: float) -> tuple[int, int]:
    """Return the number of a time's slot and a slot's width in microseconds: integers, so that no rounding counts."""
    width = seconds * 1_000_000 // SLOTS
    return round(now * 1_000_000) // width, width
