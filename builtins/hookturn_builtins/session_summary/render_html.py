"""The report as one HTML page: no script, no address, nothing that a text of the session could become.

Every text of the session goes through ``_t``. The page's own Content-Security-Policy admits its one style
sheet by hash and nothing else.
"""

from __future__ import annotations

import re
from html import escape

from hookturn.spec.events import rfc3339

from ..console import count
from .charts import by_turn, fewer, overview, turns_of
from .collect import Call, Response, Said
from .style import STYLE
from .texts import changes, line, seconds, visible

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from .collect import Column, Entry, Kept, Prompt, Report, Row, Turn

    Section = tuple[str, str, str]  # id, heading, content

FOLD = 400
"""Characters after which a text is folded."""

ROWS = 20
"""Rows after which a list is folded."""

OPEN_TURNS = 3
"""Turns are shown unfolded where there are no more than these."""

_BLANKS = re.compile(r"\n\s*\n\s*\n")  # a text in a table is to be read, not to be scrolled past
_SIGNS = {"ok": "✓", "denied": "⊘", "replied": "↩"}


def as_html(report: Report) -> str:
    """Return the report as a page."""
    places = {turn.place for turn in report.turns}
    sections = [
        _asked(report, places),
        _rows("denied", "Denied", "Who", report.denied, places),
        _rows("failed", "Failed", "How", report.failed, places),
        _changed(report),
        _time(report),
        _tools(report),
        _hooks(report),
        _turns(report),
    ]
    shown = [section for section in sections if section is not None]
    title = f"Session {report.session_id or 'without a name'}"
    nav = "".join(f'<li><a href="#{name}">{heading}</a></li>' for name, heading, _ in shown)
    body = "".join(
        f'<section id="{name}" aria-labelledby="h-{name}"><h2 id="h-{name}">{heading}</h2>{content}</section>'
        for name, heading, content in shown
    )
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{_policy()}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta name="referrer" content="no-referrer">\n'
        '<meta name="color-scheme" content="light dark">\n'
        f"<title>{_t(title, 120)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        '<a class="skip" href="#main">Skip to the report</a>\n'
        f"{_header(report, title)}\n"
        f'<nav aria-label="Sections"><ul>{nav}</ul></nav>\n'
        f'<main id="main" tabindex="-1">\n{body}\n</main>\n'
        "<footer><p>Made by hookturn from the session's journal. Times are UTC. Secrets were taken out before "
        "anything was stored.</p></footer>\n</body>\n</html>\n"
    )


def _policy() -> str:
    from base64 import b64encode
    from hashlib import sha256

    digest = b64encode(sha256(STYLE.encode("utf-8")).digest()).decode("ascii")
    return f"default-src 'none'; style-src 'sha256-{digest}'; base-uri 'none'; form-action 'none'"


def _t(text: object, limit: int = 0) -> str:
    """Return a text of the session, made visible and harmless in content and attributes."""
    return escape(visible(text, limit), quote=True)


def _words(text: object, tag: str = "bdi") -> str:
    """Return a text of the session in an element of its own, so that its direction stays inside."""
    shown = _BLANKS.sub("\n\n", visible(text)) if text else ""
    return f'<{tag} dir="auto">{escape(shown)}</{tag}>' if shown else ""


def _code(text: object) -> str:
    return _words(text, "code")


def _long(text: str) -> str:
    """Return a text of several lines; a long one can be unfolded."""
    if len(text) <= FOLD and text.count("\n") < 8:
        return f'<pre dir="auto">{_t(text)}</pre>'
    first = line(text[:FOLD], 160) or "(blank)"
    return (
        f'<details class="long"><summary><bdi dir="auto">{escape(first)}</bdi> '
        f'<span class="more">{count(len(text), "character")}</span></summary><pre dir="auto">{_t(text)}</pre></details>'
    )


def _table(
    caption: str, headers: Sequence[str], rows: Iterable[Sequence[str]], *, numbers: Sequence[int] = ()
) -> str:
    """Return a table; the first cell of a row is its header. Cells are HTML."""
    many = ' class="many"' if len(headers) > 4 else ""
    out = [
        f'<div class="wide" role="region" aria-label="{caption}" tabindex="0"><table{many}><caption>{caption}</caption><thead><tr>'
    ]
    styles = ['class="n"' if place in numbers else "" for place in range(len(headers))]
    out += [f'<th scope="col" {style}>{header}</th>' for header, style in zip(headers, styles, strict=True)]
    out.append("</tr></thead><tbody>")
    for row in rows:
        out.append(f'<tr><th scope="row">{row[0]}</th>')
        out += [f"<td {style}>{cell}</td>" for cell, style in zip(row[1:], styles[1:], strict=True)]
        out.append("</tr>")
    out.append("</tbody></table></div>")
    return "".join(out)


def _clock(time: float) -> str:
    """Return the time of the day."""
    text = rfc3339(time)
    return f'<time datetime="{text}">{text[11:19]}</time>'


def _header(report: Report, title: str) -> str:
    started, ended = rfc3339(report.started), report.ended
    facts = [
        ("Agent", _words(report.agent) + (f" in {_words(report.host)}" if report.host else "")),
        ("Model", ", ".join(_words(model) for model in report.models)),
        ("Folder", _code(report.cwd)),
        ("Started", f'<time datetime="{started}">{started[:19].replace("T", " ")}</time>'),
        (
            "Ended",
            f'<time datetime="{rfc3339(ended)}">{rfc3339(ended)[:19].replace("T", " ")}</time> {_words(report.reason)}'
            if ended is not None
            else "not recorded",
        ),
    ]
    tokens = report.tokens
    cache = f"{tokens[2]:,} from the cache" if tokens[2] else ""
    cards = [
        (
            "Took",
            seconds(report.seconds),
            f"{seconds(report.busy)} in turns, {seconds(report.hook_seconds)} in hooks",
            "",
        ),
        (
            "Turns",
            f"{report.main_turns:,}",
            _sub(report.turns.count - report.main_turns, "of a sub-agent", "of sub-agents"),
            "",
        ),
        ("Tool calls", f"{report.calls:,}", f"{seconds(report.tool_seconds)} in tools", ""),
        (
            "Denied",
            f"{report.denied.count:,}",
            f"{report.asks:,} asked about" if report.asks else "",
            "denied" if report.denied else "",
        ),
        (
            "Failed",
            f"{report.failed.count:,}",
            _sub(report.hook_failures, "by a hook", "by hooks"),
            "wrong" if report.failed else "",
        ),
        ("Files changed", f"{len(report.changed) + report.changed_left_out:,}", "by tools, by name", ""),
        ("Tokens in", f"{tokens[0]:,}", cache, ""),
        ("Tokens out", f"{tokens[1]:,}", "", ""),
    ]
    notes = "".join(f"<li>{_t(note)}</li>" for note in report.notes)
    return (
        f'<header><p class="kind">Session report</p><h1 dir="auto">{_t(title, 120)}</h1>'
        f'<dl class="facts">{"".join(f"<div><dt>{name}</dt><dd>{value}</dd></div>" for name, value in facts if value)}</dl>'
        + (f'<ul class="notes" aria-label="Notes">{notes}</ul>' if notes else "")
        + '<dl class="cards">'
        + "".join(
            f'<div class="{style}"><dt>{name}</dt><dd><strong>{value}</strong>{f"<small>{more}</small>" if more else ""}</dd></div>'
            for name, value, more, style in cards
        )
        + "</dl></header>"
    )


def _sub(number: int, one: str, many: str) -> str:
    return f"{number:,} {one if number == 1 else many}" if number else ""


def _gap(left_out: int, thing: str) -> str:
    return f'<p class="gap">{count(left_out, thing)} in the middle left out here.</p>'


def _folded(content: str, number: int, thing: str) -> str:
    """Return a list as it is, a long one folded."""
    return (
        content
        if number <= ROWS
        else f"<details><summary>{count(number, thing)}</summary>{content}</details>"
    )


def _link(place: int, places: set[int]) -> str:
    if not place:
        return "–"
    return f'<a href="#turn-{place}">{place}</a>' if place in places else f"{place}"


def _asked(report: Report, places: set[int]) -> Section | None:
    if not report.prompts:
        return None

    answers = {turn.place: turn.answer for turn in report.turns}

    def item(prompt: Prompt) -> str:
        about = _clock(prompt.time)
        if prompt.place:
            about += f", turn {_link(prompt.place, places)}"
        if prompt.stopped_by:
            about += f' <span class="status denied">stopped by {_words(prompt.stopped_by)}</span> {_words(prompt.reason)}'
        asked = _long(prompt.text) if prompt.text else "<p>(not kept)</p>"
        answer = answers.get(prompt.place, "") if prompt.place else ""
        answered = f"<h3>Answered</h3>{_long(answer)}" if answer else ""
        return f'<li><p class="about">{about}</p><h3>Asked</h3>{asked}{answered}</li>'

    content = f'<ol class="asked">{"".join(map(item, report.prompts.first))}</ol>'
    if report.prompts.left_out:
        content += f'{_gap(report.prompts.left_out, "prompt")}<ol class="asked">{"".join(map(item, report.prompts.last))}</ol>'
    return "asked", "Asked and answered", _folded(content, report.prompts.count, "prompt")


def _rows(name: str, title: str, by: str, kept: Kept[Row], places: set[int]) -> Section | None:
    if not kept:
        return None

    def table(rows: list[Row], caption: str) -> str:
        return _table(
            caption,
            ("What", "Detail", by, "Why", "Turn", "Time"),
            [
                (_code(row.what), _code(row.detail), _words(row.by), _words(row.reason), _link(row.place, places), _clock(row.time))
                for row in rows
            ],
        )  # fmt: skip

    content = table(kept.first, f"What was {name}" if name == "denied" else "What failed")
    if kept.left_out:
        content += _gap(kept.left_out, "row") + table(kept.last, f"{title}, the last ones")
    return name, title, _folded(content, kept.count, "row")


def _changed(report: Report) -> Section | None:
    if not report.changed:
        return None
    root = report.cwd.rstrip("/") + "/" if report.cwd else ""
    rows = [
        (_code(path[len(root) :] if root and path.startswith(root) else path), f"{times:,}")
        for path, times in sorted(report.changed.items())
    ]
    content = _table("Files that tools changed by name", ("File", "Times"), rows, numbers=(1,))
    content = _folded(content, len(rows), "file")
    if report.changed_left_out:
        content += f'<p class="gap">and {report.changed_left_out:,} more changes of others.</p>'
    return "changed", "Changed", f"{content}<p>What shell commands changed is not known.</p>"


def _time(report: Report) -> Section | None:
    columns = fewer(report.columns)
    if not columns:
        return None
    thinned = f" About one of {report.every} calls that went well is drawn." if report.every > 1 else ""
    marks = _figure(
        "calls",
        "Calls over time",
        overview("Tool calls over time, a lane for each kind; the tables of tools and turns tell the same", report)
        if report.marks
        else "",
        "The clock runs during turns only. Bands are turns. Low marks are calls that went well, tall filled ones failed, "
        f"tall hollow ones were denied.{thinned}",
        "",
    )  # fmt: skip
    each = f"<p>A column stands for {columns[0].turns:,} turns.</p>" if columns[0].turns > 1 else ""
    times = [
        ("hooks", "s-hook", _hook_part),
        ("tools", "s-tool", _tool_part),
        ("model and agent", "s-rest", _rest_part),
    ]
    time = _figure(
        "time",
        "Time by turn",
        by_turn("Time by turn; the table below has the figures", columns, times, seconds),
        each + _legend(times),
        _table(
            "Time by turn, in figures",
            ("Turn", "Hooks", "Tools", "Model and agent", "All"),
            [
                (
                    turns_of(column),
                    *(seconds(value(column)) for _, _, value in times),
                    seconds(column.seconds),
                )
                for column in columns
            ],
            numbers=(1, 2, 3, 4),
        ),
    )
    tokens = ""
    if any(report.tokens):
        parts = [
            ("out", "s-out", lambda column: column.tokens[1]),
            ("in", "s-in", lambda column: column.tokens[0]),
            ("from the cache", "s-cache", lambda column: column.tokens[2]),
        ]
        tokens = _figure(
            "tokens",
            "Tokens by turn",
            by_turn("Tokens by turn; the table below has the figures", columns, parts, _number),
            each + _legend(parts),
            _table(
                "Tokens by turn, in figures",
                ("Turn", "In", "Out", "From the cache", "Into the cache"),
                [
                    (turns_of(column), *(f"{column.tokens[place]:,}" for place in (0, 1, 2, 3)))
                    for column in columns
                ],
                numbers=(1, 2, 3, 4),
            ),
        )
    return "time", "How long, how many tokens", f'{marks}<div class="pair">{time}{tokens}</div>'


def _hook_part(column: Column) -> float:
    return min(column.hook_seconds, column.seconds)


def _tool_part(column: Column) -> float:
    """Calls that ran at once can take more than their turn; a column cannot."""
    return min(column.tool_seconds, column.seconds - _hook_part(column))


def _rest_part(column: Column) -> float:
    return max(0.0, column.seconds - _hook_part(column) - _tool_part(column))


def _number(value: float) -> str:
    for size, letter in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:.3g} {letter}"
    return f"{value:.0f}" if value >= 10 or value == int(value) else f"{value:.1f}"


def _legend(series: Sequence[tuple[str, str, object]]) -> str:
    items = "".join(
        f'<li><svg class="key" aria-hidden="true" viewBox="0 0 10 10"><rect class="{style}" width="10" height="10"/></svg> {name}</li>'
        for name, style, _ in series
    )
    return f'<ul class="legend" aria-label="Parts of a column, from the bottom">{items}</ul>'


def _figure(name: str, title: str, chart: str, legend: str, table: str) -> str:
    if not chart:
        return ""
    words = legend if legend.startswith("<") else f"<p>{legend}</p>"
    return (
        f'<figure id="f-{name}"><figcaption><h3>{title}</h3>{words}</figcaption>'
        f'<div class="plot" role="region" aria-label="{title}" tabindex="0">{chart}</div>'
        + (f"<details><summary>{title}, in figures</summary>{table}</details>" if table else "")
        + "</figure>"
    )


def _tools(report: Report) -> Section | None:
    if not report.tools:
        return None
    rows = [
        (
            _code(name),
            _t(figures.kind),
            f"{figures.calls:,}",
            " ".join(_status(status, f"{number:,} {status}") for status, number in figures.by_status.items()),
            seconds(figures.seconds),
            seconds(figures.seconds / figures.calls),
            seconds(figures.longest),
        )
        for name, figures in sorted(report.tools.items(), key=lambda item: -item[1].calls)
    ]
    headers = ("Tool", "Kind", "Calls", "Status", "Took", "On average", "Longest")
    return "tools", "Tools", _table("Calls by tool", headers, rows, numbers=(2, 4, 5, 6))


def _hooks(report: Report) -> Section | None:
    if not report.hooks:
        return None
    rows = [
        (
            _code(name),
            ", ".join(f"{number:,} {_t(answer)}" for answer, number in figures.answers.items())
            + (f" ({figures.would:,} times watching only)" if figures.would else ""),
            _status("error", f"{figures.failures:,}") if figures.failures else "0",
        )
        for name, figures in report.hooks.items()
    ]
    return (
        "hooks",
        "Hooks",
        _table("What hooks answered", ("Hook", "Answers", "Failures"), rows, numbers=(2,)),
    )


def _turns(report: Report) -> Section | None:
    if not report.turns and not report.around:
        return None
    unfolded = report.turns.count <= OPEN_TURNS
    out = []
    if report.around:
        out.append(f"<h3>Around the turns</h3>{_entries(report.around, report.started, 'around the turns')}")
    out += [_turn(turn, unfolded) for turn in report.turns.first]
    if report.turns.left_out:
        out.append(_gap(report.turns.left_out, "turn"))
        out += [_turn(turn, unfolded) for turn in report.turns.last]
    return "turns", "Timeline", "".join(out)


def _turn(turn: Turn, unfolded: bool) -> str:
    who = f"Turn {turn.number}"
    if turn.agent_id:
        who += f", sub-agent {_words(turn.agent)}"
    parts = [
        _clock(turn.started),
        seconds(turn.took) if turn.seconds is not None else f"{seconds(turn.took)}, not completed",
        count(turn.calls, "call"),
        f"{sum(turn.tokens):,} tokens" if any(turn.tokens) else "",
        _status("denied", f"{turn.denied:,} denied") if turn.denied else "",
        _status("error", f"{turn.failed:,} failed") if turn.failed else "",
        f"made to go on {turn.continued:,} times" if turn.continued else "",
    ]
    asked = "".join(_long(text) for text in turn.prompts if text)
    return (
        f'<details class="turn{" sub" if turn.agent_id else ""}" id="turn-{turn.place}"{" open" if unfolded else ""}>'
        f'<summary><h3>{turn.place}. {who}</h3> <span class="figures">{" · ".join(part for part in parts if part)}</span></summary>'
        + (f"<h4>Asked</h4>{asked}" if asked else "")
        + (_entries(turn.entries, turn.started, f"of turn {turn.place}") if turn.entries else "")
        + (f"<h4>Answered</h4>{_long(turn.answer)}" if turn.answer else "")
        + "</details>"
    )


def _entries(entries: Kept[Entry], start: float, which: str) -> str:
    rows = [_entry(entry, start) for entry in entries.first]
    if entries.left_out:
        rows.append(("…", f"{entries.left_out:,} more", "left out here", "", ""))
        rows += [_entry(entry, start) for entry in entries.last]
    return _table(f"What happened {which}", ("At", "What", "Status", "Detail", "Took"), rows, numbers=(4,))


def _status(status: str, text: str = "") -> str:
    style = {"ok": "fine", "replied": "fine", "denied": "denied", "block": "denied", "deny": "denied"}.get(
        status, "wrong"
    )
    sign = _SIGNS.get(status, "⊘" if style == "denied" else "✕")
    return f'<span class="status {style}"><span aria-hidden="true">{sign}</span> {_t(text or status)}</span>'


def _entry(entry: Entry, start: float) -> tuple[str, str, str, str, str]:
    at = f'<span class="at">+{seconds(max(0.0, entry.time - start))}</span>'
    if isinstance(entry, Call):
        said = _words(entry.error or entry.reason, "span")
        by = f"by {_words(entry.by)}: " if entry.by else ""
        detail = _code(entry.what) + (f'<div class="said">{by}{said}</div>' if by or said else "")
        return (
            at,
            _code(entry.tool),
            _status(entry.status),
            detail,
            "" if entry.status == "denied" else seconds(entry.seconds),
        )
    if isinstance(entry, Said):
        status = _status(entry.decision) if entry.decision in ("deny", "block") else _t(entry.decision)
        detail = "".join(f"<div>{_words(text, 'span')}</div>" for text in changes(entry))
        return at, f"hooks at <code>{_t(entry.timing)}</code>", status, detail, ""
    if isinstance(entry, Response):
        tokens = f"{entry.tokens[0]:,} in, {entry.tokens[1]:,} out" if any(entry.tokens) else ""
        return at, "model", "", (_long(entry.text) if entry.text else "") + (
            f'<div class="said">{tokens}</div>' if tokens else ""
        ), ""  # fmt: skip
    where = f"hook {entry.hook}" if entry.hook else entry.phase
    return at, f"error {_words(where)}", _status("error", entry.type), _words(entry.message, "span"), ""
