"""Figures of each turn: tokens, tool calls with their latency, denials, rewrites, edited files, where time went.

They are collected in memory and written to SQLite in one transaction a turn.
``hookturn stats`` reads them.
"""

from __future__ import annotations

from threading import Lock

from hookturn import Warn, hookimpl

from ..places import place

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hookturn import Answer, Context
    from hookturn.events import OutcomeEvent, TurnComplete, TurnStart

    from ..places import Place
    from .store import Store

MAX_CALLS = 1000
"""Tool calls of one turn that are held in memory before they are written."""

MAX_RUNNING = 500
"""Open turns that are held in memory; of sessions that never end, what is known is written earlier."""

MAX_DUE = 50
"""Turns of those that are written together."""

MAX_WAITING = 10_000
"""Turns that wait in memory while the file cannot be written; older ones are dropped."""

MAX_COUNT = 2**53
"""No count of a host is believed beyond this; sums of them still fit SQLite's integers."""

BEFORE_MODEL = ("on_turn_start", "system_prompt", "post_tool_execution", "on_model_response")
"""Timings after which a host asks the model next, or runs a tool, whose end is among them."""

TOKENS = ("input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")


class Config:
    """Settings of turn-stats.

    Attributes:
        path: the SQLite file, relative to the project's folder.
    """

    path: str = ".hookturn/stats.sqlite"

    def validate(self) -> None:
        """Refuse an empty path.

        Raises:
            ValueError: naming the setting.
        """
        if not self.path or "\0" in self.path:
            raise ValueError("path must name a file")


class Figures:
    """What happened in one turn of one agent since it was last written.

    Counts are what is to be added to the stored ones; ``usage``, ``seconds`` and ``edited`` replace them.
    """

    __slots__ = (
        "agent",
        "agent_id",
        "calls",
        "continued",
        "denials",
        "edited",
        "ended",
        "failures",
        "hooks",
        "host",
        "injections",
        "mark",
        "model",
        "model_seconds",
        "parent_agent",
        "place",
        "replies",
        "responses",
        "rewrites",
        "seconds",
        "session_id",
        "started",
        "timings",
        "tokens",
        "turn",
        "usage",
        "warnings",
    )

    def __init__(self, event: Any, where: Place) -> None:
        self.place = where
        self.session_id: str = event.session_id
        self.agent_id: str = event.agent_id
        self.turn = min(event.turn, MAX_COUNT)
        self.agent: str = event.agent
        self.parent_agent: str = event.parent_agent
        self.host: str = event.host
        self.started = _seconds(event.time)
        self.ended: float | None = None
        self.seconds: float | None = None
        self.model = ""
        self.tokens = [0, 0, 0, 0]
        self.usage: list[int] | None = None
        self.edited: list[str] | None = None
        self.calls: list[tuple[float, str, str, str, str, float]] = []
        # Of a hook: answers, denials, failures, answers without effect; calls with a known time, microseconds.
        self.hooks: dict[str, list[float]] = {}
        self.timings: dict[str, list[float]] = {}  # fires, microseconds
        self.denials = self.rewrites = self.replies = self.injections = 0
        self.warnings = self.failures = self.continued = self.responses = 0
        self.model_seconds: float | None = None
        self.mark: float | None = None  # when the model may have been asked


class TurnStats:
    """The plugin.

    Parameters:
        config: its settings.
    """

    hookturn_name = "turn-stats"

    def __init__(self, config: Config) -> None:
        self.config = config
        self._lock = Lock()  # of the figures in memory
        self._running: dict[tuple[str, str, bool], Figures] = {}
        self._waiting: dict[Place, list[Figures]] = {}
        self._files = Lock()  # of the stores; never taken inside the other one
        self._stores: dict[Place, Store] = {}
        self._warned = False

    @hookimpl
    def on_turn_start(self, event: TurnStart, ctx: Context) -> None:
        """Begin a turn; what happened in the session since the last one belongs to it."""
        with self._lock:
            figures = self._of(event, ctx)
            if figures.ended is None and figures.turn not in (0, event.turn) and figures.calls:
                self._wait(self._running.pop((event.session_id, event.agent_id, event.dry_run)))
                figures = self._of(event, ctx)
            figures.turn = min(event.turn, MAX_COUNT)
            figures.started = _seconds(event.time)

    @hookimpl(trylast=True)
    def on_turn_complete(self, event: TurnComplete, ctx: Context) -> None:
        """Note the turn's own totals; they are written when its outcome is known."""
        with self._lock:
            figures = self._of(event, ctx)
            figures.ended = _seconds(event.time)
            figures.seconds = _seconds(event.duration)
            if event.usage:
                figures.usage = _tokens(event.usage)
            figures.edited = [path for path in event.edited_files if isinstance(path, str)]

    @hookimpl(trylast=True)
    def on_outcome(self, event: OutcomeEvent, ctx: Context) -> Answer | None:
        """Count; write at the end of a turn and of the session."""
        before, out = event.before, event.outcome
        timing = before.timing
        with self._lock:
            figures = self._running.get((event.session_id, event.agent_id, event.dry_run))
            due = False
            if figures is None:
                figures = self._of(event, ctx)
                due = any(len(waiting) >= MAX_DUE for waiting in self._waiting.values())
            row = figures.timings.get(timing)
            if row is None:
                row = figures.timings[timing] = [0, 0.0]
            row[0] += 1
            row[1] += out.micros
            if out.hooks or out.decision is not None:
                _count(figures, out, timing)
            if timing == "post_tool_execution":
                figures.calls.append(
                    (
                        _seconds(before.time),
                        before.call_id,
                        before.tool,
                        before.kind,
                        before.status,
                        _seconds(before.duration),
                    )
                )
                _mark(figures, before, out)
                if before.status == "denied":
                    figures.denials += 1
                ends = len(figures.calls) >= MAX_CALLS
            elif timing == "on_model_response":
                _answered(figures, before)
                _mark(figures, before, out)
                ends = False
            elif timing == "on_turn_complete":
                ends = not out.continue_reason
            else:
                ends = timing == "on_session_end"
                if timing in BEFORE_MODEL:
                    _mark(figures, before, out)
            if ends:
                for key in list(self._running):
                    if key[0] == event.session_id and (
                        timing == "on_session_end" or key[1] == event.agent_id
                    ):
                        self._wait(self._running.pop(key))
        return self._write(ctx) if ends or due else None

    @hookimpl
    def on_dispose(self, ctx: Context) -> None:
        """Write what is left and close the files."""
        with self._lock:
            for figures in self._running.values():
                self._wait(figures)
            self._running.clear()
        self._write(ctx, last=True)
        with self._files:
            for store in self._stores.values():
                store.close()
            self._stores.clear()

    def _of(self, event: Any, ctx: Context) -> Figures:
        key = (event.session_id, event.agent_id, event.dry_run)
        figures = self._running.get(key)
        if figures is None:
            figures = self._running[key] = Figures(event, place(self.config.path, event, ctx))
            if len(self._running) > MAX_RUNNING:  # sessions that never end
                self._wait(self._running.pop(next(iter(self._running))))
        return figures

    def _wait(self, figures: Figures) -> None:
        waiting = self._waiting.setdefault(figures.place, [])
        waiting.append(figures)
        if len(waiting) > MAX_WAITING:
            del waiting[0]

    def _write(self, ctx: Context, *, last: bool = False) -> Answer | None:
        """Write what waits; says once when that is impossible. A process that ends with its first figures spools them."""
        trouble = notice = ""
        with self._files:
            with self._lock:
                due, self._waiting = self._waiting, {}
            for where, figures in due.items():
                try:
                    if last and where not in self._stores:
                        from .spool import keep

                        if keep(*where, figures):
                            continue
                    store = self._store(where)
                    store.add(figures)
                    if store.kept:
                        notice = f"The statistics {where[0]} were damaged; they are kept as {store.kept}, and begun anew."
                        store.kept = ""
                except Exception as error:
                    trouble = f"The statistics {where[0]} cannot be written ({type(error).__name__}: {error})"
                    with self._lock:
                        self._waiting[where] = [*figures, *self._waiting.get(where, [])]
        if trouble and not self._warned:
            self._warned = True
            notice = f"{trouble}; they are kept in memory until they can."
        if not notice:
            return None
        ctx.log.warning("{}", notice)
        return Warn(notice)

    def _store(self, where: Place) -> Store:
        store = self._stores.get(where)
        if store is None:
            from .store import Store

            store = self._stores[where] = Store(*where)
        return store


def _count(figures: Figures, out: Any, timing: str) -> None:
    """Add what hooks and rules said in one outcome."""
    if out.denied and timing not in ("on_tool_call_start", "pre_tool_execution"):
        figures.denials += 1  # a denied tool call is counted at its end
    figures.rewrites += len(out.rewrites)
    figures.replies += out.replied
    figures.injections += len(out.injected)
    figures.warnings += len(out.warnings)
    figures.failures += len(out.failures)
    figures.continued += bool(out.continue_reason)
    for name, seconds in out.times:
        row = figures.hooks.get(name)
        if row is None:
            row = figures.hooks[name] = [0, 0, 0, 0, 0, 0.0]
        row[4] += 1
        row[5] += seconds * 1e6
    for record in out.hooks:
        if not record.matched:
            continue
        row = figures.hooks.get(record.name)
        if row is None:
            row = figures.hooks[record.name] = [0, 0, 0, 0, 0, 0.0]
        row[0] += len(record.answers)
        row[1] += any(type(answer).__name__ in ("Deny", "Block") for answer in record.answers)
        row[2] += bool(record.error)
        row[3] += record.would


def _mark(figures: Figures, event: Any, out: Any) -> None:
    """Note that the model may be asked now, its hooks being done."""
    if not event.dry_run:
        figures.mark = _seconds(event.time) + out.micros / 1e6
    elif event.timing != "system_prompt":
        # Recorded times know nothing of our hooks, and recordings nothing of when the model was asked: a
        # replay has the system prompt at the time of the answer.
        figures.mark = _seconds(event.time)


def _answered(figures: Figures, event: Any) -> None:
    """Count the model's answer, and the time since it may have been asked."""
    figures.responses += 1
    figures.model = event.model or figures.model
    for index, count in enumerate(_tokens(event.usage)):
        figures.tokens[index] += count
    if figures.mark is not None:
        elapsed = max(_seconds(event.time) - figures.mark, 0.0)
        figures.model_seconds = (figures.model_seconds or 0.0) + elapsed


def _tokens(usage: Any) -> list[int]:
    counts = [usage.get(name, 0) for name in TOKENS]
    return [
        int(min(max(n, 0), MAX_COUNT))
        if isinstance(n, (int, float)) and not isinstance(n, bool) and n == n
        else 0
        for n in counts
    ]


def _seconds(value: float) -> float:
    """Return a host's number as SQLite keeps it: NaN, infinity and times before the epoch become 0."""
    return float(value) if 0 <= value < MAX_COUNT else 0.0


def plugin(config: Config | None = None) -> Any:
    """Return the plugin; the entry point ``turn-stats``.

    Parameters:
        config: its settings; default: all defaults.
    """
    return TurnStats(config or Config())


plugin.Config = Config  # type: ignore[attr-defined]
