"""Reads limits such as ``30/min`` and applies one to a call."""

from __future__ import annotations

import re
from fnmatch import fnmatchcase
from math import ceil, inf

from hookturn import Deny, events

from . import windows

SECONDS = {"sec": 1, "min": 60, "hour": 3600, "session": 0}
"""Unit -> length of its span; a session has none."""

HIGHEST = 1_000_000
"""The largest N: more is no limit."""


class Limit:
    """One limit.

    Attributes:
        pattern: kind, tool name or pattern that it is for.
        count: calls that may be in a span.
        unit: sec, min, hour or session.
        key: name of its count; a changed N goes on with it.
    """

    __slots__ = ("count", "key", "pattern", "seconds", "unit")

    def __init__(self, pattern: str, count: int, unit: str) -> None:
        self.pattern = pattern
        self.count = count
        self.unit = unit
        self.seconds = SECONDS[unit]
        self.key = f"{pattern} a {unit}"

    @property
    def of_session(self) -> bool:
        """Whether the whole session is the span."""
        return self.unit == "session"

    def matches(self, event: events.ToolEvent) -> bool:
        """Tell whether a call counts: by the tool's kind or its own name."""
        return fnmatchcase(event.kind, self.pattern) or fnmatchcase(event.tool, self.pattern)

    def wait(self, counts: dict[str, int], now: float) -> float:
        """Return the seconds until there is room: 0.0 for now, infinity for never in this session."""
        if self.of_session:
            return 0.0 if counts.get("all", 0) < self.count else inf
        return windows.wait(counts, self.seconds, self.count, now)

    def add(self, counts: dict[str, int], now: float) -> None:
        """Count a call."""
        if self.of_session:
            counts["all"] = counts.get("all", 0) + 1
        else:
            windows.add(counts, self.seconds, now)

    def __repr__(self) -> str:
        return f"Limit({self.pattern!r}, {self.count}, {self.unit!r})"

    def __str__(self) -> str:
        what = "tool" if self.pattern == "*" else self.pattern
        return f"{self.count} {what} call{'' if self.count == 1 else 's'} {_WORDS[self.unit]}"


_WORDS = {"sec": "a second", "min": "a minute", "hour": "an hour", "session": "a session"}


def read(pattern: str, text: str) -> Limit:
    """Read one limit.

    Parameters:
        pattern: kind, tool name or pattern.
        text: ``N/sec``, ``N/min``, ``N/hour`` or ``N/session``.

    Raises:
        ValueError: when it is none, naming both.
    """
    if not pattern.strip():
        raise ValueError("a limit needs a kind, a tool name or a pattern; '*' is for all tools")
    found = re.fullmatch(r"\s*([0-9]{1,9})\s*/\s*([a-z]+)\s*", text)
    if found is None or found[2] not in SECONDS:
        raise ValueError(f"{pattern}: {text!r} is no limit; write N/{', N/'.join(SECONDS)}, such as 30/min")
    count = int(found[1])
    if not 1 <= count <= HIGHEST:
        remedy = "to forbid a tool, use a deny rule under 'permissions:'" if count == 0 else "leave it out"
        raise ValueError(f"{pattern}: {text!r} is not between 1 and {HIGHEST:,} calls; {remedy}")
    return Limit(pattern, count, found[2])


def read_all(limits: dict[str, str | list[str]]) -> list[Limit]:
    """Read the setting ``limits``.

    Raises:
        ValueError: for what is no limit, or two of the same unit under one key.
    """
    found: dict[str, Limit] = {}
    for pattern, texts in limits.items():
        for text in [texts] if isinstance(texts, str) else texts:
            limit = read(pattern, text)
            if limit.key in found:
                raise ValueError(f"{pattern}: two limits {_WORDS[limit.unit]}; keep the lower one")
            found[limit.key] = limit
    return list(found.values())


def refusal(limit: Limit, seconds: float) -> Deny:
    """Return the answer to a call for which there is no room.

    Parameters:
        limit: the limit that is reached.
        seconds: until there is room.
    """
    if seconds == inf:
        advice = "No more of these calls are allowed in this session: finish without them."
    else:
        advice = f"Try again in {_duration(seconds)}, or go on with something else."
    return Deny(f"the limit of {limit} is reached", advice=advice, code="rate_limit")


def _duration(seconds: float) -> str:
    """Return a duration in words, rounded up."""
    whole = max(1, ceil(seconds))
    number, word = (whole, "second") if whole < 120 else (ceil(whole / 60), "minute")
    return f"{number} {word}{'' if number == 1 else 's'}"
