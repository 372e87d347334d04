"""The page's charts as inline SVG: columns by turn, and an overview of all calls on a clock of turns.

Colours come from the page's style sheet by class. Each chart has its words beside it, so it is an image to a
screen reader; ``<title>`` elements are what a pointer shows.
"""

from __future__ import annotations

from html import escape

from .collect import KINDS, pairs
from .texts import seconds

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from .collect import Column, Report

WIDTH = 540
WHOLE = 1100
LEFT = 64
HEIGHT = 200
TOP = 12
BOTTOM = 24
COLUMNS = 60
LANE = 18


def fewer(columns: list[Column]) -> list[Column]:
    """Return the columns, neighbours joined until a chart can show them."""
    while len(columns) > COLUMNS:
        columns = pairs(columns)
    return columns


def turns_of(column: Column) -> str:
    """Return the turns of a column: ``turn 3``, ``turns 3 to 6``."""
    return f"turn {column.first}" if column.first == column.last else f"turns {column.first} to {column.last}"


def nice(value: float, base: int = 10) -> float:
    """Return the next round number that is not smaller."""
    if value <= 0:
        return 1.0
    power = 1.0
    while power * base < value:
        power *= base
    while power > value:
        power /= base
    return next(
        power * step for step in (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10) if power * step >= value * 0.9999
    )


def by_turn(
    label: str,
    columns: list[Column],
    series: Sequence[tuple[str, str, Callable[[Column], float]]],
    show: Callable[[float], str],
) -> str:
    """Return stacked columns.

    Parameters:
        label: what the chart shows, for those who do not see it.
        columns: the columns.
        series: name, CSS class and value of each part, from the bottom.
        show: a value as text.
    """
    top = nice(max((sum(value(column) for _, _, value in series) for column in columns), default=0))
    floor = HEIGHT - BOTTOM
    room = floor - TOP
    out = [
        f'<svg class="chart" role="img" viewBox="0 0 {WIDTH} {HEIGHT}" aria-label="{escape(label)}" focusable="false">'
    ]
    for part in (0, 0.5, 1):
        y = floor - room * part
        out.append(f'<line class="grid" x1="{LEFT}" x2="{WIDTH}" y1="{y:.1f}" y2="{y:.1f}"/>')
        out.append(f'<text class="axis end" x="{LEFT - 8}" y="{y + 4:.1f}">{escape(show(top * part))}</text>')
    step = (WIDTH - LEFT - 10) / max(len(columns), 1)
    wide = min(step * 0.75, 40)
    every = max(1, -(-len(columns) // 15))
    for index, column in enumerate(columns):
        x = LEFT + step * index + (step - wide) / 2
        y = float(floor)
        words = "; ".join(f"{name} {show(value(column))}" for name, _, value in series)
        out.append(f"<g><title>{escape(f'{turns_of(column)}: {words}')}</title>")
        for _, style, value in series:
            tall = room * value(column) / top
            if tall > 0.05:
                y -= tall
                out.append(
                    f'<rect class="{style}" x="{x:.1f}" y="{y:.1f}" width="{wide:.1f}" height="{tall:.1f}"/>'
                )
        out.append("</g>")
        if index % every == 0:
            out.append(
                f'<text class="axis mid" x="{x + wide / 2:.1f}" y="{HEIGHT - 6}">{column.first}</text>'
            )
    out.append("</svg>")
    return "".join(out)


def overview(label: str, report: Report) -> str:
    """Return a lane for each kind of tool, with a mark for each call, on a clock that runs during turns only."""
    kinds = [kind for kind in KINDS if any(mark[2] == kind for mark in report.marks)]
    total = sum(column.seconds for column in report.columns) or 1.0
    head = 20
    tall = head + LANE * max(len(kinds), 1) + 22
    room = WHOLE - LEFT - 4
    scale = room / total
    out = [
        f'<svg class="chart whole" role="img" viewBox="0 0 {WHOLE} {tall}" aria-label="{escape(label)}" focusable="false">'
    ]
    at = 0.0
    for index, column in enumerate(report.columns):
        x, wide = LEFT + at * scale, column.seconds * scale
        at += column.seconds
        words = f"{turns_of(column)}: {seconds(column.seconds)}"
        out.append(
            f'<g><title>{escape(words)}</title><rect class="band{index % 2}" x="{x:.1f}" y="{head - 4}" '
            f'width="{wide:.1f}" height="{tall - head - 16}"/></g>'
        )
        if wide >= 9 * len(str(column.first)) + 6:
            out.append(f'<text class="axis mid" x="{x + wide / 2:.1f}" y="11">{column.first}</text>')
    for row, kind in enumerate(kinds):
        y = head + LANE * row + LANE / 2
        out.append(f'<text class="axis end" x="{LEFT - 8}" y="{y + 4:.1f}">{kind}</text>')
        drawn: dict[str, float] = {}
        for start, length, of, status in sorted(mark for mark in report.marks if mark[2] == kind):
            style = {"denied": "denied", "ok": "fine", "replied": "fine"}.get(status, "wrong")
            x = LEFT + min(start, total) * scale
            wide = max(1.5, min(length, total - min(start, total)) * scale)
            if x + wide <= drawn.get(style, -1.0):
                continue  # nothing that is not there already
            drawn[style] = x + wide
            high = 6 if style == "fine" else LANE - 4
            words = f"{of}, {status}, {seconds(length)}"
            out.append(
                f'<rect class="mark {style}" x="{x:.1f}" y="{y - high / 2:.1f}" width="{wide:.1f}" height="{high}">'
                f"<title>{words}</title></rect>"
            )
    for part in (0, 0.25, 0.5, 0.75, 1):
        place = "start" if part == 0 else "end" if part == 1 else "mid"
        out.append(
            f'<text class="axis {place}" x="{LEFT + room * part:.1f}" y="{tall - 4}">{seconds(total * part) if part else "0"}</text>'
        )
    out.append("</svg>")
    return "".join(out)
