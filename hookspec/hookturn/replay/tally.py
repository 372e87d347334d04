"""Counts what a replay comes to: a plugin that watches every outcome, and the summary made of it."""

from __future__ import annotations

from time import perf_counter

from ..spec.markers import hookimpl
from ..spec.timings import TIMINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..agents.recorded import Skipped
    from ..spec.events import OutcomeEvent

KEPT_SKIPS = 1000
"""Skipped lines that are listed; all are counted."""

KEPT_TOOLS = 1000
"""Tool names that are counted apart; further ones are counted as ``(others)``."""


class Tally:
    """The figures of one replay.

    Attributes:
        sessions, turns, tool_calls: counts; turns are the main agent's.
        by_tool, by_status: calls by the tool's own name and by how they ended.
        denied, rewritten, asked, warnings, injected, failures, errors: what hooks and rules did.
        tokens: input and output tokens.
        timings: how often each timing fired.
        skipped: lines that could not be read, the first KEPT_SKIPS of them.
        skipped_count: how many there were.
        hook_seconds: time in hooks.
    """

    hookturn_name = "replay"

    def __init__(self) -> None:
        self.sessions = 0
        self.turns = 0
        self.tool_calls = 0
        self.by_tool: dict[str, int] = {}
        self.by_status: dict[str, int] = {}
        self.denied = 0
        self.rewritten = 0
        self.asked = 0
        self.warnings = 0
        self.injected = 0
        self.failures = 0
        self.errors = 0
        self.tokens = {"input": 0, "output": 0, "cache_read": 0, "cache_write": 0}
        self.timings = dict.fromkeys(TIMINGS, 0)
        del self.timings["on_outcome"]
        self.skipped: list[Skipped] = []
        self.skipped_count = 0
        self.micros = 0.0
        self._parts = 0  # of the last system prompt, without what ctx.inject adds to it
        self._begun = perf_counter()

    @hookimpl
    def on_outcome(self, event: OutcomeEvent) -> None:
        """Count one outcome."""
        out = event.outcome
        before = event.before
        timing = before.timing
        self.timings[timing] = self.timings.get(timing, 0) + 1
        self.micros += out.micros
        if timing == "post_tool_execution":
            self.tool_calls += 1
            tool = before.tool
            if tool not in self.by_tool and len(self.by_tool) >= KEPT_TOOLS:
                tool = "(others)"
            self.by_tool[tool] = self.by_tool.get(tool, 0) + 1
            self.by_status[before.status] = self.by_status.get(before.status, 0) + 1
        elif timing == "system_prompt":
            self._parts = len(event.after.parts) + len(out.injected)
        elif timing == "on_session_start":
            self.sessions += 1
        elif timing == "on_turn_start":
            self.turns += not before.agent_id
        elif timing == "on_error":
            self.errors += 1
        elif timing == "on_model_response":
            self.add_tokens(before.usage)
        if out.hooks or out.decision:
            self.denied += out.denied
            # A call may be asked about at its start and again, finally, before it runs.
            self.asked += out.decision == "ask" and timing != "on_tool_call_start"
            self.rewritten += bool(out.rewrites)
            self.warnings += len(out.warnings)
            self.injected += len(out.injected)
            self.failures += len(out.failures)

    def system(self, parts: int) -> None:
        """Count what ``ctx.inject`` added to the system prompt that was just built.

        Parameters:
            parts: how many parts it has in all.
        """
        self.injected += max(0, parts - self._parts)

    def add_tokens(self, usage: Mapping[str, Any]) -> None:
        """Add the tokens of one answer."""
        for name, key in (
            ("input_tokens", "input"),
            ("output_tokens", "output"),
            ("cache_read_tokens", "cache_read"),
            ("cache_write_tokens", "cache_write"),
        ):
            count = usage.get(name)
            if count:
                self.tokens[key] += count

    def skip(self, step: Skipped) -> None:
        """Count a line that could not be read."""
        self.skipped_count += 1
        if len(self.skipped) < KEPT_SKIPS:
            self.skipped.append(step)

    @property
    def fired(self) -> int:
        """Events fired so far."""
        return sum(self.timings.values())

    @property
    def seconds(self) -> float:
        """Seconds since the replay began."""
        return perf_counter() - self._begun

    def to_json(self, not_run: list[str]) -> dict[str, Any]:
        """Return the summary as ``hookturn replay --json`` prints it.

        Parameters:
            not_run: configured hooks that a dry replay does not run.
        """
        seconds = self.seconds
        return {
            "sessions": self.sessions,
            "turns": self.turns,
            "tool_calls": self.tool_calls,
            "by_tool": dict(sorted(self.by_tool.items())),
            "by_status": dict(sorted(self.by_status.items())),
            "denied": self.denied,
            "rewritten": self.rewritten,
            "asked": self.asked,
            "warnings": self.warnings,
            "injected": self.injected,
            "failures": self.failures,
            "errors": self.errors,
            "skipped_lines": [
                {"line": step.line, "column": step.column, "cause": step.cause, "file": step.file}
                for step in self.skipped
            ],
            "skipped_count": self.skipped_count,
            "not_run": not_run,
            "tokens": dict(self.tokens),
            "timings": {name: count for name, count in self.timings.items() if count},
            "hook_seconds": round(self.micros / 1e6, 6),
            "seconds": round(seconds, 6),
            "events_per_second": round(self.fired / seconds) if seconds else 0,
        }
