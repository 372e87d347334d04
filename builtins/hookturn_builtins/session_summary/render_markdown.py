"""The report as Markdown. Texts of the session stand in code spans and blocks, where nothing in them acts."""

from __future__ import annotations

import re

from hookturn.spec.events import rfc3339

from ..console import count
from .collect import Call, Response, Said
from .texts import changes, line, seconds, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .collect import Entry, Kept, Report, Row, Turn

LINES = 50
"""Rows of a list; half of them its first ones, half its last ones."""

TEXT = 1500
CELL = 160


def as_markdown(report: Report) -> str:
    """Return the report as a Markdown document."""
    out = [f"# Session {span(report.session_id or 'without a name')}", ""]
    out += _facts(report)
    for note in report.notes:
        out += [f"> {note}", ""]
    out += _rows("Denied", "who", report.denied)
    out += _rows("Failed", "how", report.failed)
    out += _changed(report)
    out += _figures(report)
    out += ["## Turns", ""]
    if report.around:
        out += ["Around the turns:", "", *(f"- {_entry(entry)}" for entry in report.around), ""]
    for turn in report.turns.first:
        out += _turn(turn)
    if report.turns.left_out:
        out += [f"*{count(report.turns.left_out, 'turn')} left out here.*", ""]
    for turn in report.turns.last:
        out += _turn(turn)
    return "\n".join(out).rstrip() + "\n"


def span(text: object, limit: int = CELL) -> str:
    """Return a text as one code span of one line, for running text and table cells alike."""
    shown = line(text, limit).replace("|", "\\|") or " "
    longest = max((len(run) for run in re.findall(r"`+", shown)), default=0)
    fence = "`" * (longest + 1)
    blank = " " if shown[0] in "` " or shown[-1] in "` \\" else ""
    return f"{fence}{blank}{shown}{blank}{fence}"


def block(text: str, limit: int = TEXT) -> list[str]:
    """Return a text as a code block."""
    shown = visible(text, limit)
    longest = max((len(run) for run in re.findall(r"`{3,}", shown)), default=2)
    fence = "`" * (longest + 1)
    return [f"{fence}text", shown, fence, ""]


def _table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> list[str]:
    lines = [f"| {' | '.join(headers)} |", f"|{'---|' * len(headers)}"]
    lines += [f"| {' | '.join(str(cell) for cell in row)} |" for row in rows]
    return [*lines, ""]


def _facts(report: Report) -> list[str]:
    calls = ", ".join(
        part
        for part in (
            count(report.calls, "tool call"),
            f"{report.denied.count:,} denied" if report.denied else "",
            f"{report.failed.count:,} failed" if report.failed else "",
        )
        if part
    )
    ended = f"{rfc3339(report.ended)} ({span(report.reason)})" if report.ended is not None else "not recorded"
    rows: list[tuple[str, str]] = [
        ("agent", span(report.agent) + (f" in {span(report.host)}" if report.host else "")),
        ("model", ", ".join(span(model) for model in report.models) or "–"),
        ("folder", span(report.cwd) if report.cwd else "–"),
        ("started", rfc3339(report.started)),
        ("ended", ended),
        ("took", f"{seconds(report.seconds)}, of it {seconds(report.busy)} in turns"),
        ("turns", f"{report.main_turns:,}"),
        ("tool calls", calls),
        ("files changed", f"{len(report.changed) + report.changed_left_out:,}"),
        ("tokens", _tokens(report.tokens)),
    ]
    return _table(("What", "Figure"), rows)


def _tokens(tokens: list[int]) -> str:
    text = f"{tokens[0]:,} in, {tokens[1]:,} out"
    if tokens[2] or tokens[3]:
        text += f", {tokens[2]:,} from the cache, {tokens[3]:,} into it"
    return text


def _rows(title: str, by: str, rows: Kept[Row]) -> list[str]:
    if not rows:
        return []
    items = list(rows)
    shown = items if len(items) <= LINES else [*items[: LINES // 2], *items[-LINES // 2 :]]
    out = [f"## {title}", ""]
    out += _table(
        ("Time", "Turn", "What", "Detail", by.capitalize(), "Why"),
        [
            (
                rfc3339(row.time)[11:19],
                row.place or "–",
                span(row.what),
                span(row.detail) if row.detail else "",
                span(row.by) if row.by else "",
                span(row.reason) if row.reason else "",
            )
            for row in shown
        ],
    )
    if rows.count > len(shown):
        out += [f"*{rows.count - len(shown):,} more in the middle are left out here.*", ""]
    return out


def _changed(report: Report) -> list[str]:
    if not report.changed:
        return []
    out = [
        "## Changed files",
        "",
        "Those that tools changed by name; what shell commands changed is not known.",
        "",
    ]
    for path, times in list(report.changed.items())[: 2 * LINES]:
        out.append(f"- {span(path)}" + (f" ({times} times)" if times > 1 else ""))
    more = len(report.changed) + report.changed_left_out - 2 * LINES
    if more > 0:
        out.append(f"- and {more:,} more")
    return [*out, ""]


def _figures(report: Report) -> list[str]:
    out: list[str] = []
    if report.tools:
        out += ["## Tools", ""]
        by_calls = sorted(report.tools.items(), key=lambda item: -item[1].calls)
        out += _table(
            ("Tool", "Calls", "Status", "Took", "Longest"),
            [
                (
                    span(name),
                    f"{figures.calls:,}",
                    ", ".join(f"{number:,} {status}" for status, number in figures.by_status.items()),
                    seconds(figures.seconds),
                    seconds(figures.longest),
                )
                for name, figures in by_calls[:LINES]
            ],
        )
    if report.hooks:
        out += ["## Hooks", ""]
        out += _table(
            ("Hook", "Answers", "Failures"),
            [
                (
                    span(name),
                    ", ".join(f"{number:,} {span(answer)}" for answer, number in figures.answers.items())
                    + (" (watching only)" if figures.would else ""),
                    f"{figures.failures:,}",
                )
                for name, figures in list(report.hooks.items())[:LINES]
            ],
        )
    return out


def _turn(turn: Turn) -> list[str]:
    who = f" of sub-agent {span(turn.agent)}" if turn.agent_id else ""
    figures = ", ".join(
        part
        for part in (
            rfc3339(turn.started)[11:19],
            seconds(turn.took) if turn.seconds is not None else "not completed",
            count(turn.calls, "tool call"),
            f"{turn.denied:,} denied" if turn.denied else "",
            f"{turn.failed:,} failed" if turn.failed else "",
            _tokens(turn.tokens),
        )
        if part
    )
    out = [f"### {turn.place}. Turn {turn.number}{who}", "", figures, ""]
    for text in turn.prompts:
        if text:
            out += ["Asked:", "", *block(text)]
    entries = [entry for entry in turn.entries if not isinstance(entry, Response)]
    half = LINES // 2
    if len(entries) <= LINES and not turn.entries.left_out:
        out += [f"- {_entry(entry)}" for entry in entries]
    else:
        out += [f"- {_entry(entry)}" for entry in entries[:half]]
        out.append("- ... more than are shown here")
        out += [f"- {_entry(entry)}" for entry in entries[-half:]]
    if entries:
        out.append("")
    if turn.answer:
        out += ["Answer:", "", *block(turn.answer)]
    return out


def _entry(entry: Entry) -> str:
    """Return one thing that happened, in one line."""
    if isinstance(entry, Call):
        said = entry.error or (f"by {entry.by}: {entry.reason}" if entry.by else entry.reason)
        parts = [f"{span(entry.tool)} {entry.status}"]
        if entry.status != "denied":
            parts.append(f"in {seconds(entry.seconds)}")
        text = " ".join(parts)
        if entry.what:
            text += f": {span(entry.what)}"
        return text + (f", {span(said)}" if said else "")
    if isinstance(entry, Said):
        return f"hooks at {span(entry.timing)}: " + "; ".join(span(text) for text in changes(entry))
    if isinstance(entry, Response):
        return f"the model answered: {span(entry.text)}"
    return f"error {span(entry.type)}: {span(entry.message)}"
