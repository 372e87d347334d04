"""The readable timeline of a replay: one line a prompt, call and answer, with what the hooks said."""

from __future__ import annotations

from ..agents import recorded as r
from .player import Watcher
from .tally import Tally

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..engine.results import Call, End, Prompt, Response, ToolResult

_MARKS = {
    "ok": " ",
    "error": "E",
    "denied": "x",
    "replied": "=",
    "timeout": "T",
    "cancelled": "c",
    "unknown": "?",
}


class Silent(Watcher):
    """Tells the tally what no event carries: skipped lines and a host's own token totals."""

    def __init__(self, tally: Tally) -> None:
        self._tally = tally

    def skipped(self, step: r.Skipped) -> None:
        self._tally.skip(step)

    def system(self, parts: list[str]) -> None:
        self._tally.system(len(parts))

    def usage(self, usage: Mapping[str, int]) -> None:
        self._tally.add_tokens(usage)


class Timeline(Silent):
    """Writes the timeline, a line at a time.

    Parameters:
        write: gets each line, without its end.
        tally: is told about skipped lines.
        width: columns of a line.
        colour: whether to use ANSI colours.
    """

    def __init__(
        self, write: Callable[[str], None], tally: Tally, *, width: int = 100, colour: bool = False
    ) -> None:
        super().__init__(tally)
        self._write = write
        self._width = max(60, width)
        self._colour = colour
        self._system: list[str] = []

    def _paint(self, text: str, code: str) -> str:
        return f"\033[{code}m{text}\033[0m" if self._colour else text

    def _line(self, text: str, code: str = "") -> None:
        text = printable(text)  # whatever a part of it comes from
        cut = text if len(text) <= self._width else text[: self._width - 1] + "…"
        self._write(self._paint(cut, code) if code else cut)

    def session(self, step: r.SessionBegin) -> None:
        about = "  ".join(one_line(part) for part in (step.host, step.model, step.cwd) if part)
        resumed = " (resumed)" if step.source == "resume" else ""
        self._line(f"session {one_line(step.session_id) or 'replay'}{resumed}  {about}", "1")

    def prompt(self, step: r.Prompt, prompt: Prompt, turn: int) -> None:
        self._line(f"turn {turn}  > {one_line(step.text)}", "36")
        if prompt.text != step.text:
            self._line(f"        ~ the prompt was rewritten: {one_line(prompt.text)}", "33")
        if prompt.blocked_by:
            self._line(f"        x blocked by {prompt.blocked_by}: {one_line(prompt.message)}", "31")
        if prompt.replied:
            self._line(f"        = a hook replied: {one_line(str(prompt.reply))}", "33")
        for text in prompt.injected:
            self._line(f"        + injected: {one_line(text)}", "32")
        self._warnings(prompt.warnings)

    def system(self, parts: list[str]) -> None:
        super().system(parts)
        for text in parts:
            if text not in self._system:  # what each request has is shown at the first
                self._line(f"        + system prompt: {one_line(text)}", "32")
        self._system = parts

    def response(self, step: r.Response, response: Response) -> None:
        if response.blocked_by:
            self._line(f"        x the answer was blocked by {response.blocked_by}", "31")
        if response.text != step.text:
            self._line("        ~ the answer was rewritten", "33")
        self._warnings(response.warnings)

    def begun(self, step: r.ToolBegin, call: Call) -> None:
        if call.result is not None:
            status = call.result.status
            self._call(step.tool, step.args, status, 0.0, step.agent_id)
            by = f"by {call.denied_by}: " if call.denied_by else ""
            self._line(f"        {_MARKS[status]} {status} {by}{one_line(call.reason)}", "31")
        elif call.decision == "ask":
            self._line(f"        ? {step.tool}: would ask: {one_line(call.reason)}", "33")
        if call.rewritten_by and call.result is None:
            names = ", ".join(call.rewritten_by)
            self._line(f"        ~ {step.tool} rewritten by {names}: {brief(call.args)}", "33")
        self._warnings(call.warnings)

    def ended(self, step: r.ToolEnd, call: Call | None, result: ToolResult) -> None:
        self._call(result.tool, result.args, step.status, result.duration, step.agent_id)
        if step.error and step.status in ("error", "denied"):
            self._line(f"          {one_line(step.error)}", "2")
        if result.outcome is not None and result.outcome.rewrites:
            names = ", ".join(dict.fromkeys(change.by for change in result.outcome.rewrites))
            self._line(f"        ~ the result was rewritten by {names}", "33")
        if result.denied_by:
            self._line(f"        x result withheld by {result.denied_by}", "31")
        for text in result.injected:
            self._line(f"        + injected: {one_line(text)}", "32")
        self._warnings(result.warnings)

    def _call(self, tool: str, args: Any, status: str, seconds: float, agent_id: str) -> None:
        inner = "| " if agent_id else ""
        took = f"{seconds * 1000:.0f} ms" if 0 < seconds < 10 else f"{seconds:.0f} s" if seconds else ""
        tail = f"  {status}{'  ' + took if took else ''}"
        head = f"      {_MARKS.get(status, ' ')} {inner}{one_line(tool)}  {brief(args)}"
        room = max(1, self._width - len(tail))
        if len(head) > room:
            head = head[: room - 1] + "…"
        self._line(f"{head:<{room}}{tail}", "31" if status == "error" else "")

    def subagent(self, step: r.SubagentBegin) -> None:
        self._line(f"      | sub-agent {one_line(step.name)}: {one_line(step.prompt)}", "35")

    def failure(self, step: r.Failure) -> None:
        self._line(f"        ! {one_line(step.error_type)}: {one_line(step.message)}", "31")

    def turn_end(self, end: End) -> None:
        if end.blocked_by:
            self._line(f"        x the answer was withheld by {end.blocked_by}", "31")
        if end.outcome.continue_reason:
            self._line(f"        > would go on: {one_line(end.outcome.continue_reason)}", "33")
        self._line(f"        < {one_line(end.text) or '(no answer)'}")
        self._warnings(end.warnings)

    def _warnings(self, warnings: list[str]) -> None:
        for text in warnings:
            self._line(f"        ! {one_line(text)}", "33")


def one_line(text: str, limit: int = 300) -> str:
    """Return a text's beginning on one line, control characters and lone surrogates escaped."""
    return printable(text[:limit]).strip() + ("…" if len(text) > limit else "")


def printable(text: str) -> str:
    """Return a text with line ends and tabs as blanks, and whatever else a terminal might obey escaped."""
    if text.isprintable():
        return text
    return "".join(
        char if char.isprintable() else " " if char in "\n\r\t" else ascii(char)[1:-1] for char in text
    )


def brief(args: Any) -> str:
    """Return the telling part of a call's arguments on one line."""
    for key in ("command", "cmd", "file_path", "path", "url", "pattern", "query", "description", "prompt"):
        value = args.get(key)
        if isinstance(value, str) and value:
            return one_line(value)
        if isinstance(value, (list, tuple)) and value:
            return one_line(" ".join(str(part) for part in value))
    return one_line(", ".join(f"{key}={str(value)[:40]}" for key, value in list(args.items())[:5]))
