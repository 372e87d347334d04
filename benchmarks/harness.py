"""Side-by-side timing: the candidates take turns in one process, so that a noisy machine hits all alike.

Figures are medians over rounds; what is quoted is their ratio.
"""

from __future__ import annotations

import gc
from collections.abc import Callable
from statistics import median
from time import perf_counter_ns
from typing import Any


def side_by_side(
    candidates: dict[str, Callable[[], Any]], *, rounds: int = 15, span: float = 0.01
) -> dict[str, float]:
    """Time functions in turns.

    Parameters:
        candidates: name -> function without arguments.
        rounds: how often each takes its turn.
        span: seconds of one turn.

    Returns:
        name -> nanoseconds a call (median of the rounds).
    """
    repeats = {}
    for name, function in candidates.items():
        function()
        begun, count = perf_counter_ns(), 0
        while perf_counter_ns() - begun < span * 1e9:
            function()
            count += 1
        repeats[name] = max(1, count)
    taken: dict[str, list[float]] = {name: [] for name in candidates}
    gc.collect()
    gc.disable()
    try:
        for _ in range(rounds):
            for name, function in candidates.items():
                count = repeats[name]
                turn = range(count)
                begun = perf_counter_ns()
                for _ in turn:
                    function()
                taken[name].append((perf_counter_ns() - begun) / count)
    finally:
        gc.enable()
    return {name: median(values) for name, values in taken.items()}


class Row:
    """One line of the result table.

    Parameters:
        what: what was measured.
        value: the figure with its unit, or a ratio.
        against: what it is compared with.
        reach: the figure to reach as (limit, whether smaller is better), or None.
    """

    def __init__(
        self,
        what: str,
        value: float,
        unit: str = "x",
        against: str = "",
        reach: float | None = None,
        *,
        less: bool = True,
    ) -> None:
        self.what = what
        self.value = value
        self.unit = unit
        self.against = against
        self.reach = reach
        self.less = less

    @property
    def ok(self) -> bool:
        """Whether the figure is reached."""
        if self.reach is None:
            return True
        return self.value <= self.reach if self.less else self.value >= self.reach

    def cells(self) -> list[str]:
        """Return the row's cells: what, figure, compared with, to reach, reached."""
        sign = "<=" if self.less else ">="
        reach = "" if self.reach is None else f"{sign} {_figure(self.reach, self.unit)}"
        verdict = "" if self.reach is None else ("yes" if self.ok else "**no**")
        return [self.what, _figure(self.value, self.unit), self.against, reach, verdict]


def _figure(value: float, unit: str) -> str:
    if unit == "x":
        return f"{value:.2f}x"
    return f"{value:,.0f} {unit}" if value >= 100 else f"{value:.1f} {unit}"
