"""What a recorded session is made of, whatever agent wrote it: typed steps, in the order of the file.

A transcript reader turns its agent's lines into these; replay drives them
through an engine and knows nothing of the formats.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ..spec.events import parse_time

if TYPE_CHECKING:
    from collections.abc import Iterator

STATUSES = ("ok", "error", "denied", "cancelled", "unknown")
"""How a recorded call ended (hookturn's own recordings also have replied and timeout).
``unknown``: the recording ends before the call does."""

NO_USAGE: Mapping[str, int] = {}


class SessionBegin(NamedTuple):
    """A session begins, or an older one goes on (``source="resume"``).

    Parameters:
        session_id: the agent's own id.
        cwd: folder of the session, empty where the recording does not say.
        model: name of the model, where known at that point.
        source: ``startup`` or ``resume``.
        host: name of the agent program, such as ``claude-code``.
        agent: name of the agent that runs in it; ``main`` but for a sub-agent's own recording.
        time: seconds since the epoch, or None.
        line: number of the line in the file, from 1.
        agent_id: id of the sub-agent that the step belongs to, empty for the main agent.
    """

    session_id: str
    cwd: str = ""
    model: str = ""
    source: str = "startup"
    host: str = ""
    agent: str = "main"
    time: float | None = None
    line: int = 0
    agent_id: str = ""


class Prompt(NamedTuple):
    """A message that the agent was given to work on.

    Parameters:
        text: the message.
        origin: ``user``, ``command`` (a slash command), or the host's own word, such as ``task-notification``.
        attachments: images and files, as recorded.
        within: it came into a turn that goes on, so it begins none.
    """

    text: str
    origin: str = "user"
    attachments: Sequence[Any] = ()
    within: bool = False
    time: float | None = None
    line: int = 0
    agent_id: str = ""


class Response(NamedTuple):
    """One answer of the model, whole, however many lines it was spread over.

    Parameters:
        text: the answer's text, without its thoughts.
        tool_calls: the calls it asks for, each ``{"id", "tool", "args"}``.
        usage: tokens, each once: ``input_tokens``, ``output_tokens``, ``cache_read_tokens``,
            ``cache_write_tokens`` and, where recorded apart, ``reasoning_tokens``.
        stop_reason: the model's own word.
        model: name of the model.
    """

    text: str
    tool_calls: Sequence[dict[str, Any]] = ()
    usage: Mapping[str, int] = NO_USAGE
    stop_reason: str = ""
    model: str = ""
    time: float | None = None
    line: int = 0
    agent_id: str = ""


class ToolBegin(NamedTuple):
    """A tool call begins.

    Parameters:
        call_id: id of the call.
        tool: the host's own name of the tool.
        args: the host's own arguments; ``{"_raw": text}`` where they are no JSON object.
        mcp: (server, tool) for a tool of an MCP server.
    """

    call_id: str
    tool: str
    args: dict[str, Any]
    mcp: tuple[str, str] | None = None
    time: float | None = None
    line: int = 0
    agent_id: str = ""


class ToolEnd(NamedTuple):
    """A tool call ends. Every begun call has exactly one.

    Parameters:
        call_id: id of the call.
        result: what the model read, in the host's own shape.
        status: one of STATUSES. A command that exits with another code than 0 is an ``error`` in every agent.
        duration: seconds, where the recording tells.
        error: the error's text where the status is error, the reason where it is denied.
    """

    call_id: str
    result: Any = None
    status: str = "ok"
    duration: float | None = None
    error: str = ""
    time: float | None = None
    line: int = 0
    agent_id: str = ""


class SubagentBegin(NamedTuple):
    """A sub-agent starts; its steps carry the same ``agent_id``.

    Parameters:
        name: name of the sub-agent.
        parent_agent_id: id of the agent that started it, empty for the main agent.
        prompt: its task.
    """

    name: str
    parent_agent_id: str = ""
    prompt: str = ""
    time: float | None = None
    line: int = 0
    agent_id: str = ""


class SubagentEnd(NamedTuple):
    """A sub-agent is done.

    Parameters:
        text: its last answer.
    """

    text: str = ""
    time: float | None = None
    line: int = 0
    agent_id: str = ""


class HostEvent(NamedTuple):
    """Something else that the host tells.

    Parameters:
        type: dotted type, such as ``compaction.after``.
        properties: what it tells about it.
    """

    type: str
    properties: Mapping[str, Any] = {}
    time: float | None = None
    line: int = 0
    agent_id: str = ""


class Failure(NamedTuple):
    """Something failed.

    Parameters:
        error_type: the host's word for it.
        message: what it says.
        phase: where: ``model``, ``tool``, ``turn`` or ``session``.
    """

    error_type: str
    message: str
    phase: str = "model"
    time: float | None = None
    line: int = 0
    agent_id: str = ""


class TurnEnd(NamedTuple):
    """The turn of the main agent is over.

    Parameters:
        text: the final answer.
    """

    text: str = ""
    time: float | None = None
    line: int = 0
    agent_id: str = ""


class SessionFinish(NamedTuple):
    """The session ends.

    Parameters:
        reason: the host's word, such as ``complete`` or ``interrupted``.
        usage: tokens that the host counts for the session beyond those of its answers.
    """

    reason: str = "complete"
    usage: Mapping[str, int] = NO_USAGE
    time: float | None = None
    line: int = 0
    agent_id: str = ""


class Skipped(NamedTuple):
    """A line that could not be read.

    Parameters:
        line: its number, from 1.
        column: where the trouble is, from 1 (a character, or a byte where the line is no UTF-8).
        cause: what is wrong with it.
        file: name of the file, when it is not the recording itself but a sub-agent's beside it.
    """

    line: int
    column: int
    cause: str
    file: str = ""
    time: float | None = None
    agent_id: str = ""


Step = (
    SessionBegin
    | Prompt
    | Response
    | ToolBegin
    | ToolEnd
    | SubagentBegin
    | SubagentEnd
    | HostEvent
    | Failure
    | TurnEnd
    | SessionFinish
    | Skipped
)


Line = tuple[int, dict[str, Any] | Skipped]
"""A line's number and its JSON object, or why it has none."""


class Draft:
    """An answer of the model that is still being read, with the steps that wait behind it.

    Agents spread one answer over several records, and write results of its first calls
    between them. The answer comes out whole and first.
    """

    __slots__ = ("agent_id", "calls", "line", "model", "stop_reason", "texts", "time", "usage", "waiting")

    def __init__(self, time: float | None, line: int, agent_id: str = "") -> None:
        self.time = time
        self.line = line
        self.agent_id = agent_id
        self.texts: list[str] = []
        self.calls: list[dict[str, Any]] = []
        self.usage: dict[str, int] = {}
        self.stop_reason = ""
        self.model = ""
        self.waiting: list[Step] = []

    @property
    def text(self) -> str:
        """The answer's text so far."""
        return self.texts[0] if len(self.texts) == 1 else "\n".join(self.texts)

    @property
    def empty(self) -> bool:
        """Whether there is nothing to tell."""
        return not (self.texts or self.calls or self.usage)

    def steps(self) -> Iterator[Step]:
        """Yield the answer and what waits behind it."""
        if not self.empty:
            yield Response(
                self.text,
                self.calls,
                self.usage,
                self.stop_reason,
                self.model,
                self.time,
                self.line,
                self.agent_id,
            )
        yield from self.waiting


class OpenCall:
    """A begun call that has no end yet."""

    __slots__ = ("agent_id", "args", "call_id", "time", "tool")

    def __init__(
        self, call_id: str, tool: str, args: dict[str, Any], time: float | None, agent_id: str = ""
    ) -> None:
        self.call_id = call_id
        self.tool = tool
        self.args = args
        self.time = time
        self.agent_id = agent_id

    def end(
        self,
        result: Any,
        status: str,
        *,
        time: float | None,
        line: int,
        error: str = "",
        duration: float | None = None,
    ) -> ToolEnd:
        """Return the call's end; its duration is the time between the two records unless told."""
        if duration is None and time is not None and self.time is not None:
            duration = as_seconds(max(0.0, round(time - self.time, 6)))
        return ToolEnd(self.call_id, result, status, duration, error, time, line, self.agent_id)


class Seen:
    """Which of the last many keys were there before, in constant memory.

    A resumed session replays old lines, and only near ones: the last 65,536 keys are kept
    for sure, as 64-bit hashes in two tables of which the older is dropped.
    """

    __slots__ = ("_count", "_new", "_old")

    _SLOTS = 1 << 17

    def __init__(self) -> None:
        self._count = 0
        self._new = self._table()
        self._old = self._new

    def _table(self) -> Any:
        from array import array

        return array("Q", [0]) * self._SLOTS

    def add(self, key: object) -> bool:
        """Remember ``key`` and return whether it was there before."""
        code = (hash(key) & 0xFFFFFFFFFFFFFFFF) or 0x9E3779B97F4A7C15  # 0 marks a free slot
        mask = self._SLOTS - 1
        for table in (self._old, self._new):
            slot = code & mask
            found = table[slot]
            while found:
                if found == code:
                    return True
                slot = (slot + 1) & mask
                found = table[slot]
            if self._old is self._new:
                break
        if self._count * 2 >= self._SLOTS:
            self._old, self._new, self._count = self._new, self._table(), 0
            slot = code & mask
        self._new[slot] = code
        self._count += 1
        return False


_day = ("", 0.0)  # the last day whose midnight was looked up


def moment(value: object) -> float | None:
    """Return the time of a record in seconds since the epoch, or None: ``parse_time``, made quick for one form.

    Nearly all records say ``2026-11-30T18:20:34.485Z``, and most of the same day as the one before.
    """
    global _day
    if isinstance(value, str) and len(value) == 24 and value[10] == "T" and value[23] == "Z":
        day = value[:10]
        if day != _day[0]:
            midnight = parse_time(f"{day}T00:00:00.000Z")
            if midnight is None:
                return None
            _day = (day, midnight)
        try:
            clock = int(value[11:13]) * 3600 + int(value[14:16]) * 60 + float(value[17:23])
        except ValueError:
            return None
        return _day[1] + clock if 0 <= clock < 86_461 else None  # not so for NaN; a leap second may be
    return parse_time(value)


def arguments(value: object) -> dict[str, Any]:
    """Return a call's arguments as a dict: JSON text is parsed, anything else is kept under ``_raw``.

    Parameters:
        value: what the agent recorded: a dict, JSON text, or None for no arguments.
    """
    if isinstance(value, dict):
        return value
    if value is None or value == "":
        return {}
    if isinstance(value, str):
        from json import loads

        from ..spec.record import MAX_DEPTH

        try:
            parsed = loads(value)
        except (ValueError, RecursionError):
            return {"_raw": value}
        if isinstance(parsed, dict) and not deeper(parsed, MAX_DEPTH - 50):
            return parsed
    return {"_raw": value}


def deeper(value: object, limit: int) -> bool:
    """Return whether containers in ``value`` nest deeper than ``limit``."""
    level: list[Any] = [value]
    for _ in range(limit):
        below: list[Any] = []
        for item in level:
            if item.__class__ is dict:
                below.extend(x for x in item.values() if x.__class__ is dict or x.__class__ is list)
            elif item.__class__ is list:
                below.extend(x for x in item if x.__class__ is dict or x.__class__ is list)
        if not below:
            return False
        level = below
    return True


def as_text(value: object) -> str:
    """Return ``value`` if it is text, else an empty string."""
    return value if isinstance(value, str) else ""


def as_dict(value: object) -> dict[str, Any]:
    """Return ``value`` if it is a dict, else an empty one: recordings are not to be trusted in their shapes."""
    return value if isinstance(value, dict) else {}


def as_seconds(value: object) -> float | None:
    """Return ``value`` if it is a duration that can be: a number of seconds from 0 on, else None."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if 0 <= value < 1e18 else None  # not so for NaN


def as_count(value: object) -> int:
    """Return ``value`` if it is a number of tokens, else 0."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value != value:
        return 0
    return int(value) if 0 <= value < 1e18 else 0
