"""Reads a session's journal into a Report: figures of everything, details of as much as a reader can use.

Memory does not grow with the session: long lists keep their beginning and their
end, figures are summed up, the charts' columns are joined. The journal may be
cut off or changed by anybody: what makes no sense is counted and left out.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from json import loads
from typing import Generic, TypeVar

from hookturn.spec.events import rfc3339

from ..console import count
from .journal import TOKENS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

T = TypeVar("T")

KEPT_TURNS = 50
KEPT_ENTRIES = 25
KEPT_ROWS = 200
"""How many of a list's first items, and of its last ones, are kept."""

MAX_NAMES = 500
"""Tools, and hooks, that have figures of their own."""

MAX_CHANGED = 2_000
MAX_COLUMNS = 60
MAX_MARKS = 3_000
MAX_AGENTS = 1_000
MAX_LINE = 8 * 1024 * 1024

STATUSES = ("ok", "error", "denied", "replied", "timeout", "cancelled", "unknown")
FAILED = ("error", "timeout", "cancelled", "unknown")
KINDS = ("bash", "read", "write", "fetch", "search", "agent", "other")


class Kept(Generic[T]):
    """A list that keeps its first and its last items and counts all.

    Parameters:
        each: how many of the first, and of the last.
    """

    __slots__ = ("_each", "_first", "_last", "count")

    def __init__(self, each: int) -> None:
        self._each = each
        self._first: list[T] = []
        self._last: deque[T] = deque(maxlen=each)
        self.count = 0

    def add(self, item: T) -> None:
        """Append an item."""
        self.count += 1
        if len(self._first) < self._each:
            self._first.append(item)
        else:
            self._last.append(item)

    @property
    def left_out(self) -> int:
        """How many are missing between the first and the last ones."""
        return self.count - len(self._first) - len(self._last)

    @property
    def first(self) -> list[T]:
        """The items before the gap; all of them where there is none."""
        return self._first if self.left_out else [*self._first, *self._last]

    @property
    def last(self) -> list[T]:
        """The items after the gap; none where there is no gap."""
        return list(self._last) if self.left_out else []

    def __iter__(self) -> Iterator[T]:
        yield from self._first
        yield from self._last

    def __bool__(self) -> bool:
        return self.count > 0


@dataclass(slots=True)
class Call:
    """A tool call. ``time`` is when it began, in seconds since the epoch; ``seconds`` how long it took."""

    time: float
    seconds: float
    tool: str
    kind: str
    status: str
    what: str
    error: str
    by: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        return {
            "type": "call", "time": rfc3339(self.time), "seconds": self.seconds, "tool": self.tool, "kind": self.kind,
            "status": self.status, "what": self.what, "error": self.error, "by": self.by, "reason": self.reason,
        }  # fmt: skip


@dataclass(slots=True)
class Response:
    """An answer of the model."""

    time: float
    text: str
    tokens: list[int]

    def to_json(self) -> dict[str, Any]:
        return {
            "type": "response", "time": rfc3339(self.time), "text": self.text, **dict(zip(TOKENS, self.tokens, strict=True)),
        }  # fmt: skip


@dataclass(slots=True)
class Said:
    """What hooks and rules said of one event. A hook is (name, answers, error, whether it only watched)."""

    time: float
    timing: str
    tool: str
    decision: str
    by: str
    reason: str
    hooks: list[tuple[str, list[str], str, bool]]
    rewrites: list[tuple[str, str]]
    replied: bool
    injected: int
    warnings: list[str]
    goes_on: str
    overruled: list[str]

    def to_json(self) -> dict[str, Any]:
        return {
            "type": "hooks", "time": rfc3339(self.time), "timing": self.timing, "tool": self.tool, "decision": self.decision,
            "by": self.by, "reason": self.reason,
            "hooks": [{"name": name, "answers": answers, "error": error, "would": would} for name, answers, error, would in self.hooks],
            "rewrites": [{"by": by, "field": changed} for by, changed in self.rewrites],
            "replied": self.replied, "injected": self.injected, "warnings": self.warnings, "continue_reason": self.goes_on,
            "overruled": self.overruled,
        }  # fmt: skip


@dataclass(slots=True)
class Trouble:
    """An error that on_error told about."""

    time: float
    type: str
    message: str
    phase: str
    hook: str

    def to_json(self) -> dict[str, Any]:
        return {
            "type": "error", "time": rfc3339(self.time), "error_type": self.type, "message": self.message, "phase": self.phase,
            "hook": self.hook,
        }  # fmt: skip


Entry = Call | Response | Said | Trouble


@dataclass(slots=True)
class Prompt:
    """What was asked, by whom it was stopped (or ""), and the place of its turn in the report (0: it got none)."""

    time: float
    text: str
    place: int = 0
    stopped_by: str = ""
    reason: str = ""


@dataclass(slots=True)
class Row:
    """A line of a list: what was denied, or what failed, in which turn (by place; 0: in none)."""

    time: float
    place: int
    what: str
    detail: str
    by: str
    reason: str

    def to_json(self) -> dict[str, Any]:
        return {
            "time": rfc3339(self.time), "turn": self.place, "what": self.what, "detail": self.detail, "by": self.by,
            "reason": self.reason,
        }  # fmt: skip


@dataclass(slots=True)
class Turn:
    """A turn of an agent. ``place`` numbers the turns of the report from 1; ``number`` is the session's own."""

    place: int
    number: int
    agent: str
    agent_id: str
    parent_agent: str
    started: float
    latest: float
    seconds: float | None = None
    answer: str = ""
    prompts: list[str] = field(default_factory=list)
    usage: list[int] | None = None
    counted: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    below: list[int] = field(default_factory=lambda: [0, 0, 0, 0])
    calls: int = 0
    denied: int = 0
    failed: int = 0
    continued: int = 0
    tool_seconds: float = 0.0
    hook_seconds: float = 0.0
    entries: Kept[Entry] = field(default_factory=lambda: Kept(KEPT_ENTRIES))
    marks: list[tuple[float, float, str, str]] = field(default_factory=list)

    @property
    def tokens(self) -> list[int]:
        """Its tokens, without those of its sub-agents: as the host counted them, else summed up."""
        return self.usage if self.usage and any(self.usage) else self.counted

    @property
    def took(self) -> float:
        """Seconds that it took; until the last thing it did where it has no end."""
        return self.seconds if self.seconds is not None else max(0.0, self.latest - self.started)

    def to_json(self) -> dict[str, Any]:
        return {
            "place": self.place, "turn": self.number, "agent": self.agent, "agent_id": self.agent_id,
            "parent_agent": self.parent_agent, "started": rfc3339(self.started), "seconds": self.took,
            "complete": self.seconds is not None, "asked": self.prompts, "answer": self.answer,
            **dict(zip(TOKENS, self.tokens, strict=True)),
            "tool_calls": self.calls, "denied": self.denied, "failed": self.failed, "continued": self.continued,
            "tool_seconds": self.tool_seconds, "hook_seconds": self.hook_seconds,
            "entries": [entry.to_json() for entry in self.entries], "entries_left_out": self.entries.left_out,
        }  # fmt: skip


@dataclass(slots=True)
class Column:
    """Figures of a turn of the main agent, its sub-agents included, or of neighbouring ones, for charts."""

    first: int
    last: int
    tokens: list[int]
    seconds: float
    tool_seconds: float
    hook_seconds: float
    turns: int = 1


@dataclass(slots=True)
class ToolFigures:
    """Figures of a tool."""

    kind: str
    calls: int = 0
    by_status: dict[str, int] = field(default_factory=dict)
    seconds: float = 0.0
    longest: float = 0.0


@dataclass(slots=True)
class HookFigures:
    """Figures of a hook: its answers by class."""

    answers: dict[str, int] = field(default_factory=dict)
    failures: int = 0
    would: int = 0


class Report:
    """A session's story.

    Attributes:
        session_id, agent, host, cwd, source, provider: of the session's start.
        models: names of the models that answered.
        started, latest, ended: times in seconds since the epoch; ``ended`` is None where the end is not recorded.
        reason: why it ended.
        turns: the turns, sub-agents' included.
        main_turns: how many of them are the main agent's.
        prompts: what was asked.
        around: what hooks said outside of turns.
        denied, failed: what was denied, and what failed.
        changed: path -> how often a tool changed it.
        tools, hooks: figures by name.
        columns: figures by turn, for charts.
        marks: (start, seconds, kind, status) of calls, on a clock that runs only during turns.
        lost: events that could not be recorded.
        full: since when the journal is full, or None.
        bad_lines: lines that could not be read.
    """

    def __init__(self) -> None:
        self.session_id = self.agent = self.host = self.cwd = self.source = self.provider = self.reason = ""
        self.models: list[str] = []
        self.started = self.latest = 0.0
        self.ended: float | None = None
        self.turns: Kept[Turn] = Kept(KEPT_TURNS)
        self.main_turns = 0
        self.prompts: Kept[Prompt] = Kept(KEPT_ROWS)
        self.around: Kept[Entry] = Kept(KEPT_ENTRIES)
        self.denied: Kept[Row] = Kept(KEPT_ROWS)
        self.failed: Kept[Row] = Kept(KEPT_ROWS)
        self.changed: dict[str, int] = {}
        self.changed_left_out = 0
        self.tools: dict[str, ToolFigures] = {}
        self.hooks: dict[str, HookFigures] = {}
        self.columns: list[Column] = []
        self.marks: list[tuple[float, float, str, str]] = []
        self.every = 1
        self.calls = self.rewritten = self.injected = self.warnings = self.hook_failures = self.asks = 0
        self.tokens = [0, 0, 0, 0]
        self.busy = self.tool_seconds = self.hook_seconds = 0.0
        self.lost = self.bad_lines = 0
        self.full: float | None = None

    @property
    def seconds(self) -> float:
        """From the first thing recorded to the last."""
        return max(0.0, self.latest - self.started)

    @property
    def notes(self) -> list[str]:
        """What a reader must know of the report itself."""
        notes = []
        if self.ended is None:
            notes.append("The session's end is not recorded: it is still running, or its process was killed.")
        if self.full is not None:
            notes.append(f"The journal was full at {rfc3339(self.full)}: what followed is not recorded.")
        if self.lost:
            notes.append(f"{count(self.lost, 'event')} could not be recorded.")
        if self.bad_lines:
            notes.append(f"{count(self.bad_lines, 'line')} of the journal could not be read.")
        return notes

    def to_json(self) -> dict[str, Any]:
        """Return the report as the JSON file has it."""
        return {
            "schema": 1,
            "session_id": self.session_id,
            "agent": self.agent,
            "host": self.host,
            "cwd": self.cwd,
            "source": self.source,
            "provider": self.provider,
            "models": self.models,
            "started": rfc3339(self.started),
            "ended": rfc3339(self.ended) if self.ended is not None else None,
            "reason": self.reason,
            "seconds": self.seconds,
            "notes": self.notes,
            "totals": {
                "turns": self.main_turns,
                "sub_turns": self.turns.count - self.main_turns,
                "prompts": self.prompts.count,
                "tool_calls": self.calls,
                "denied": self.denied.count,
                "asked": self.asks,
                "failed": self.failed.count,
                "changed_files": len(self.changed) + self.changed_left_out,
                "rewritten": self.rewritten,
                "injected": self.injected,
                "warnings": self.warnings,
                "hook_failures": self.hook_failures,
                **dict(zip(TOKENS, self.tokens, strict=True)),
                "turn_seconds": self.busy,
                "tool_seconds": self.tool_seconds,
                "hook_seconds": self.hook_seconds,
            },
            "asked": [
                {
                    "time": rfc3339(item.time),
                    "turn": item.place,
                    "text": item.text,
                    "stopped_by": item.stopped_by,
                    "reason": item.reason,
                }
                for item in self.prompts
            ],
            "changed": [{"path": path, "times": times} for path, times in self.changed.items()],
            "denied": [item.to_json() for item in self.denied],
            "failed": [item.to_json() for item in self.failed],
            "tools": [
                {
                    "tool": name,
                    "kind": figures.kind,
                    "calls": figures.calls,
                    "by_status": figures.by_status,
                    "seconds": figures.seconds,
                    "longest": figures.longest,
                }
                for name, figures in self.tools.items()
            ],
            "hooks": [
                {
                    "hook": name,
                    "answers": figures.answers,
                    "failures": figures.failures,
                    "would": figures.would,
                }
                for name, figures in self.hooks.items()
            ],
            "around": [entry.to_json() for entry in self.around],
            "turns": [turn.to_json() for turn in self.turns],
            "turns_left_out": self.turns.left_out,
        }


def collect(path: str) -> Report:
    """Read a journal.

    Parameters:
        path: the file.

    Raises:
        OSError: when it cannot be read.
    """
    reader = _Reader()
    with open(path, "rb") as file:
        for raw in iter(lambda: file.readline(MAX_LINE), b""):
            if not raw.strip():
                continue
            try:
                line = loads(raw.decode("ascii"))
            except (ValueError, RecursionError):
                line = None
            if isinstance(line, dict):
                reader.feed(_Line(line))
            else:
                reader.report.bad_lines += 1
    return reader.finish()


class _Line:
    """A line of the journal, whose values may be anything."""

    __slots__ = ("values",)

    def __init__(self, values: dict[str, Any]) -> None:
        self.values = values

    def text(self, name: str) -> str:
        value = self.values.get(name)
        return value if isinstance(value, str) else ""

    def number(self, name: str) -> float:
        value = self.values.get(name)
        return _number(value)

    def whole(self, name: str) -> int:
        return int(self.number(name))

    def items(self, name: str) -> list[Any]:
        value = self.values.get(name)
        return value if isinstance(value, list) else []

    def texts(self, name: str) -> list[str]:
        return [item for item in self.items(name) if item.__class__ is str]

    def tokens(self) -> list[int]:
        counts = [int(_number(item)) for item in self.items("usage")[:4]]
        return [*counts, 0, 0, 0, 0][:4]

    def inner(self, name: str) -> _Line | None:
        value = self.values.get(name)
        return _Line(value) if isinstance(value, dict) else None


def _number(value: Any) -> float:
    """Return a number that is finite, not negative and not beyond all calendars, else 0."""
    if value.__class__ not in (int, float) or not 0 <= value <= 1e15:
        return 0.0
    return float(value)


class _Reader:
    """Turns lines into a report."""

    def __init__(self) -> None:
        self.report = Report()
        self.open: dict[str, Turn] = {}  # by agent id; the main agent's is ""
        self.waiting: list[Prompt] = []
        self.early: list[Entry] = []  # what hooks said of the prompts that wait
        self.clock = 0.0
        self.skipped = 0
        self.group = 1  # turns in a column, so that all but the last have as many

    def feed(self, line: _Line) -> None:
        report = self.report
        what = line.text("e")
        if what == "session":
            report.session_id = report.session_id or line.text("session_id")
            return
        handle = self.HANDLERS.get(what)
        if handle is None:
            report.bad_lines += 1
            return
        time = line.number("time")
        if time:
            report.started = min(report.started or time, time)
            report.latest = max(report.latest, time)
        report.lost += line.whole("lost")
        inner = line.inner("said")
        said = self.said(line, inner, time) if inner is not None else None
        handle(self, line, time, said)

    def finish(self) -> Report:
        report = self.report
        for agent_id in sorted(self.open, reverse=True):  # the main agent's last
            self.close(agent_id)
        for entry in self.early:
            report.around.add(entry)
        return report

    # -- turns --------------------------------------------------------------------------------------

    def begin(self, line: _Line, time: float) -> Turn:
        """Open a turn; what the agent had open is over."""
        report = self.report
        agent_id = line.text("agent_id")
        self.close(agent_id)
        if len(self.open) > MAX_AGENTS:
            self.close(next(key for key in self.open if key))
        turn = Turn(
            report.turns.count + 1, line.whole("turn"), line.text("agent") or (agent_id or report.agent or "main"),
            agent_id, line.text("parent_agent"), time, time,
        )  # fmt: skip
        if not agent_id:
            report.main_turns += 1
            turn.number = turn.number or report.main_turns
            self.attach(turn)
        self.open[agent_id] = turn
        report.turns.add(turn)
        return turn

    def attach(self, turn: Turn) -> None:
        """Give a turn the prompts that wait for one."""
        for prompt in self.waiting:
            if not prompt.stopped_by:
                prompt.place = turn.place
                if len(turn.prompts) < 10:
                    turn.prompts.append(prompt.text)
        for entry in self.early:
            turn.entries.add(entry)
        self.waiting.clear()
        self.early.clear()

    def turn(self, line: _Line, time: float) -> Turn:
        """Return the open turn of a line's agent."""
        agent_id = line.text("agent_id")
        turn = self.open.get(agent_id) or self.begin(line, time)
        if not agent_id and (self.waiting or self.early):
            self.attach(turn)
        turn.latest = max(turn.latest, time)
        spent = line.number("micros") / 1e6
        turn.hook_seconds += spent
        self.report.hook_seconds += spent
        return turn

    def close(self, agent_id: str) -> None:
        """Sum up the open turn of an agent."""
        turn = self.open.pop(agent_id, None)
        if turn is None:
            return
        report = self.report
        for place, number in enumerate(turn.tokens):
            report.tokens[place] += number
        report.tool_seconds += turn.tool_seconds
        if agent_id:
            main = self.open.get("")
            if main is not None:
                main.below = [a + b + c for a, b, c in zip(main.below, turn.tokens, turn.below, strict=True)]
                main.hook_seconds += turn.hook_seconds
            return
        took = turn.took
        report.busy += took
        tokens = [a + b for a, b in zip(turn.tokens, turn.below, strict=True)]
        column = Column(turn.number, turn.number, tokens, took, turn.tool_seconds, turn.hook_seconds)
        if report.columns and report.columns[-1].turns < self.group:
            report.columns[-1] = joined(report.columns[-1], column)
        else:
            report.columns.append(column)
        if len(report.columns) > 2 * MAX_COLUMNS:
            report.columns = pairs(report.columns)
            self.group *= 2
        for start, length, kind, status in turn.marks:
            report.marks.append((self.clock + min(max(start, 0.0), took), length, kind, status))
        turn.marks.clear()
        if len(report.marks) > MAX_MARKS:
            self.thin(report.marks)
        self.clock += took

    def mark(self, call: Call) -> None:
        """Note a call for the overview."""
        turn = self.open.get("")
        self.skipped += 1
        if turn is None or (self.skipped % self.report.every and call.status in ("ok", "replied")):
            return
        kind = call.kind if call.kind in KINDS else "other"
        turn.marks.append((call.time - turn.started, call.seconds, kind, call.status))
        if len(turn.marks) > MAX_MARKS:
            self.thin(turn.marks)

    def thin(self, marks: list[tuple[float, float, str, str]]) -> None:
        """Take out every second call that went well; from now on fewer are noted."""
        marks[:] = [mark for place, mark in enumerate(marks) if place % 2 or mark[3] not in ("ok", "replied")]
        if len(marks) > MAX_MARKS:
            del marks[::2]
        self.report.every *= 2

    # -- lines --------------------------------------------------------------------------------------

    def start(self, line: _Line, time: float, said: Said | None) -> None:
        report = self.report
        report.ended = None
        if not report.agent:
            for name in ("agent", "host", "cwd", "source", "provider"):
                setattr(report, name, line.text(name))
        self.model_name(line.text("model"))
        self.outside(line, said)

    def model_name(self, name: str) -> None:
        models = self.report.models
        if name and name not in models and len(models) < 20:
            models.append(name)

    def outside(self, line: _Line, said: Said | None) -> None:
        self.report.hook_seconds += line.number("micros") / 1e6
        if said is not None:
            self.report.around.add(said)
            self.denial(said, 0)

    def prompt(self, line: _Line, time: float, said: Said | None) -> None:
        report = self.report
        report.hook_seconds += line.number("micros") / 1e6
        prompt = Prompt(time, line.text("text"))
        report.prompts.add(prompt)
        if said is not None:
            self.early.append(said)
            if said.decision in ("deny", "block") or said.replied:
                prompt.stopped_by = said.by or next((name for name, *_ in said.hooks), "a hook")
                prompt.reason = said.reason
                self.denial(said, 0, prompt.text)
        if not prompt.stopped_by:
            self.waiting.append(prompt)
            del self.waiting[:-KEPT_ROWS]
        del self.early[:-KEPT_ENTRIES]

    def turn_start(self, line: _Line, time: float, said: Said | None) -> None:
        self.begin(line, time)
        self.add(self.turn(line, time), None, said)

    def model(self, line: _Line, time: float, said: Said | None) -> None:
        turn = self.turn(line, time)
        text, tokens = line.text("text"), line.tokens()
        self.model_name(line.text("model"))
        turn.answer = text or turn.answer
        for place, number in enumerate(tokens):
            turn.counted[place] += number
        self.add(turn, Response(time, text, tokens), said)

    def tool(self, line: _Line, time: float, said: Said | None) -> None:
        report = self.report
        turn = self.turn(line, time)
        status = line.text("status")
        status = status if status in STATUSES else "unknown"
        paths = line.texts("paths")
        seconds = line.number("seconds")
        call = Call(
            max(0.0, time - seconds), seconds, line.text("tool"), line.text("kind"), status,
            "\n".join(paths) or line.text("what"), line.text("error"), line.text("by"), line.text("reason"),
        )  # fmt: skip
        report.calls += 1
        turn.calls += 1
        turn.tool_seconds += seconds
        name = call.tool if call.tool in report.tools or len(report.tools) < MAX_NAMES else "(others)"
        figures = report.tools.get(name)
        if figures is None:
            figures = report.tools[name] = ToolFigures(call.kind)
        figures.calls += 1
        figures.by_status[status] = figures.by_status.get(status, 0) + 1
        figures.seconds += seconds
        figures.longest = max(figures.longest, seconds)
        if status == "denied":
            turn.denied += 1
            report.denied.add(Row(call.time, turn.place, call.tool, call.what, call.by, call.reason))
        elif status in FAILED:
            turn.failed += 1
            report.failed.add(Row(call.time, turn.place, call.tool, call.what, status, call.error))
        elif status == "ok" and call.kind == "write":
            self.changed(paths, 1)
        self.mark(call)
        self.add(turn, call, said)

    def changed(self, paths: list[str], times: int) -> None:
        changed = self.report.changed
        for path in paths:
            if path in changed:
                changed[path] += times
            elif len(changed) < MAX_CHANGED:
                changed[path] = 1
            else:
                self.report.changed_left_out += times

    def done(self, line: _Line, time: float, said: Said | None) -> None:
        turn = self.turn(line, time)
        turn.answer = line.text("text") or turn.answer
        turn.seconds = line.number("seconds")
        usage = line.tokens()
        turn.usage = usage if any(usage) else turn.usage
        self.changed(line.texts("paths"), 0)
        goes_on = said is not None and said.goes_on
        turn.continued += bool(goes_on)
        self.add(turn, None, said)
        if turn.agent_id and not goes_on:
            self.close(turn.agent_id)

    def error(self, line: _Line, time: float, said: Said | None) -> None:
        trouble = Trouble(
            time, line.text("type"), line.text("message"), line.text("phase"), line.text("hook")
        )
        turn = self.open.get(line.text("agent_id"))
        place = 0
        if turn is not None:
            turn = self.turn(line, time)
            place = turn.place
        if trouble.phase != "tool":  # the failed call itself tells it
            where = f"hook {trouble.hook}" if trouble.hook else trouble.phase or "error"
            self.report.failed.add(Row(time, place, where, trouble.type, "error", trouble.message))
            if turn is not None:
                turn.failed += 1
                turn.entries.add(trouble)
            else:
                self.report.around.add(trouble)
        if turn is not None:
            self.add(turn, None, said)
        else:
            self.outside(line, said)

    def other(self, line: _Line, time: float, said: Said | None) -> None:
        if said is None:
            return
        if said.timing != "on_message_received" and ("" in self.open or said.tool):
            self.add(self.turn(line, time), None, said)
            return
        self.early.append(said)
        del self.early[:-KEPT_ENTRIES]
        self.report.hook_seconds += line.number("micros") / 1e6
        self.denial(said, 0)

    def end(self, line: _Line, time: float, said: Said | None) -> None:
        report = self.report
        report.ended = time
        report.reason = line.text("reason")
        self.outside(line, said)

    def full(self, line: _Line, time: float, said: Said | None) -> None:
        if self.report.full is None:
            self.report.full = time

    def add(self, turn: Turn, entry: Entry | None, said: Said | None) -> None:
        if said is not None and said.timing == "post_tool_execution" and entry is not None:
            turn.entries.add(entry)
            entry = None
        if said is not None:
            turn.entries.add(said)
            if said.timing not in ("on_tool_call_start", "pre_tool_execution"):  # told by the call's end
                self.denial(said, turn.place)
        if entry is not None:
            turn.entries.add(entry)

    def denial(self, said: Said, place: int, detail: str = "") -> None:
        if said.decision in ("deny", "block"):
            self.report.denied.add(
                Row(said.time, place, said.tool or said.timing, detail, said.by, said.reason)
            )
            if place:
                for turn in self.open.values():
                    turn.denied += turn.place == place

    def said(self, line: _Line, inner: _Line, time: float) -> Said:
        """Read what hooks said, and count it."""
        report = self.report
        hooks = []
        for value in inner.items("hooks"):
            if value.__class__ is not dict:
                continue
            hook = _Line(value)
            name, answers, error = hook.text("name"), hook.texts("answers"), hook.text("error")
            would = hook.values.get("would") is True
            hooks.append((name, answers, error, would))
            kept = name if name in report.hooks or len(report.hooks) < MAX_NAMES else "(others)"
            figures = report.hooks.setdefault(kept, HookFigures())
            for answer in answers:
                if answer in figures.answers or len(figures.answers) < 20:
                    figures.answers[answer] = figures.answers.get(answer, 0) + 1
            figures.failures += bool(error)
            figures.would += would
            report.hook_failures += bool(error)
        rewrites = [
            (item[0], item[1])
            for item in inner.items("rewrites")
            if item.__class__ is list and len(item) == 2 and all(part.__class__ is str for part in item)
        ]
        said = Said(
            time, inner.text("timing"), inner.text("tool"), inner.text("decision"), inner.text("by"), inner.text("reason"),
            hooks, rewrites, inner.values.get("replied") is True, inner.whole("injected"), inner.texts("warnings"),
            inner.text("continue"), inner.texts("overruled"),
        )  # fmt: skip
        report.rewritten += len(rewrites)
        report.injected += said.injected
        report.warnings += len(said.warnings)
        report.asks += said.decision == "ask"
        return said

    HANDLERS = {
        "start": start,
        "message": prompt,
        "prompt": prompt,
        "turn": turn_start,
        "model": model,
        "tool": tool,
        "done": done,
        "error": error,
        "said": other,
        "end": end,
        "full": full,
    }


def pairs(columns: list[Column]) -> list[Column]:
    """Return half as many columns, neighbours joined."""
    return [joined(*columns[at : at + 2]) for at in range(0, len(columns), 2)]


def joined(one: Column, other: Column | None = None) -> Column:
    """Return two neighbouring columns as one."""
    if other is None:
        return one
    return Column(
        one.first,
        other.last,
        [a + b for a, b in zip(one.tokens, other.tokens, strict=True)],
        one.seconds + other.seconds,
        one.tool_seconds + other.tool_seconds,
        one.hook_seconds + other.hook_seconds,
        one.turns + other.turns,
    )
