"""The typed, frozen events that hooks receive: data, the same for every hook.

Dicts and lists in an event are read-only. Tool events have views that mean the
same for every agent: ``kind``, ``command``, ``paths``, ``urls``, ``mcp``,
``result_text``. Times are seconds since the epoch in Python and RFC 3339 UTC
in JSON; durations are seconds.
"""

from __future__ import annotations

from time import time as now

from . import tools as _tools
from .errors import EventError, did_you_mean, in_json, json_kind
from .record import KeywordRecord, freeze, jsonable, view

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, ClassVar

    from typing_extensions import Self

SCHEMA = 1
"""Version of the JSON form. Additions keep it; unknown fields pass."""

_BY_TIMING: dict[str, type[Event]] = {}
_GENERIC = ("type", "properties", "accepts")


def _local_session() -> str:
    global _local
    if not _local:
        from os import getpid

        _local = f"local-{getpid()}-{int(now() * 1000):x}"
    return _local


_local = ""


class Event(KeywordRecord):
    """Something that happened in a host; the base of all events and itself the event of ``on_event``.

    A framework's own event derives from it: ``class PlanCreated(Event, timing="on_plan_created")``.

    Parameters:
        type: dotted type of a host's own event, such as ``session.idle`` (required for ``on_event``).
        properties: what the host tells about it.
        accepts: names of the answers that this host event takes.
        session_id: never empty; events made outside a session get one id per process.
        agent: name of the agent, such as ``coder``.
        agent_id: id of the sub-agent, empty in the main agent.
        parent_agent: name of the agent that started this sub-agent.
        cwd: absolute folder of the session.
        turn: number of the turn, from 1; 0 outside any turn.
        time: seconds since the epoch.
        host: the program that runs the agent, such as ``claude-code``.
        raw: the host's own payload, unchanged, or None.
        dry_run: True in replay and explain: nothing outside may be changed.
        extra: fields of the JSON form that this version does not know.
    """

    timing: ClassVar[str] = "on_event"

    type: str = ""
    properties: dict[str, Any] = {}
    accepts: list[str] = []
    if TYPE_CHECKING:
        session_id: str = ""
    else:
        session_id: str = view(lambda event: _local_session())
    agent: str = "main"
    agent_id: str = ""
    parent_agent: str = ""
    cwd: str = ""
    turn: int = 0
    time: float = 0.0
    host: str = ""
    raw: Any = None
    dry_run: bool = False
    extra: dict[str, Any] = {}

    def __init_subclass__(cls, *, timing: str = "", **options: Any) -> None:
        super().__init_subclass__(**options)
        if not timing:
            return
        cls.timing = timing
        own = cls.__dict__.get("__annotations__", {})
        fields = dict.fromkeys(cls._fields)
        for name in _GENERIC:
            if name not in own:
                fields.pop(name, None)
        cls._fields = tuple(fields)
        cls._names = frozenset(fields)
        if cls.__module__ == __name__:
            _BY_TIMING[timing] = cls

    if not TYPE_CHECKING:

        def __init__(self, **fields):
            super().__init__(**fields)
            values = self.__dict__
            if "time" not in values:
                values["time"] = now()
            if values.get("session_id") == "":
                del values["session_id"]
            if self.timing == "on_event" and not self.type:
                raise EventError("Event needs a type, such as 'session.idle'")

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other field values (dicts and lists frozen); views are computed anew.

        Raises:
            EventError: for a field that this event does not have.
        """
        known = self._fields
        kept = {name: value for name, value in self.__dict__.items() if name in known or name == "_table"}
        for name, value in changes.items():
            if name not in known:
                raise EventError(f"{type(self).__name__} has no field {name!r}{did_you_mean(name, known)}")
            kept[name] = freeze(value)
        return self._make(kept)

    def to_json(self) -> dict[str, Any]:
        """Return the event as the wire carries it: ``schema``, ``timing`` and all fields that are set."""
        data: dict[str, Any] = {"schema": SCHEMA, "timing": self.timing}
        for name in self._fields:
            value = getattr(self, name)
            if name == "time":
                data["time"] = rfc3339(value)
            elif name == "raw":
                if value is not None:
                    data["raw"] = jsonable(value)
            elif name == "extra":
                data.update((key, jsonable(item)) for key, item in value.items() if key not in data)
            else:
                data[name] = jsonable(value)
        return data


def rfc3339(seconds: float) -> str:
    """Return the time as RFC 3339 text in UTC with milliseconds, such as ``2026-11-30T18:20:34.485Z``.

    A time that the format cannot hold (NaN, infinity, years beyond 1 to 9999) becomes the epoch.
    """
    from time import gmtime, strftime

    try:
        whole, milli = divmod(round(seconds * 1000), 1000)
        moment = gmtime(whole)
    except (ValueError, OverflowError, OSError):
        moment, milli = gmtime(0), 0
    if not 1 <= moment.tm_year <= 9999:
        moment, milli = gmtime(0), 0
    return f"{moment.tm_year:04d}{strftime('-%m-%dT%H:%M:%S', moment)}.{milli:03d}Z"


def parse_time(value: object) -> float | None:
    """Read a time: RFC 3339 text, seconds or milliseconds since the epoch. None for anything else."""
    if isinstance(value, bool):
        return None
    if isinstance(value, (int, float)):
        try:
            seconds = value / 1000 if value > 1e11 else float(value)
        except OverflowError:  # an integer beyond all floats
            return None
        return seconds if seconds - seconds == 0 else None
    if isinstance(value, str):
        from datetime import datetime, timezone

        text = value.strip()
        if text[-1:] in ("Z", "z"):
            text = text[:-1] + "+00:00"
        try:
            # Python 3.10 reads only 3 or 6 digits of a fraction.
            head, dot, tail = text.partition(".")
            if dot:
                digits = len(tail) - len(tail.lstrip("0123456789"))
                text = f"{head}.{tail[:digits][:6].ljust(6, '0')}{tail[digits:]}"
            moment = datetime.fromisoformat(text)
        except ValueError:
            return None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=timezone.utc)
        return moment.timestamp()
    return None


class SessionStart(Event, timing="on_session_start"):
    """A session began.

    Parameters:
        source: ``startup``, ``resume``, ``clear`` or ``compact``.
        model: name of the model.
        provider: name of the model's provider.
    """

    source: str = "startup"
    model: str = ""
    provider: str = ""


class MessageReceived(Event, timing="on_message_received"):
    """A message arrived, before anything looks at it.

    Parameters:
        text: the message.
        origin: who sent it: ``user``, or a host's own word.
        attachments: the host's own descriptions of files and images.
    """

    text: str
    origin: str = "user"
    attachments: list[Any] = []


class UserPromptSubmit(Event, timing="on_user_prompt_submit"):
    """The prompt that the turn will work on.

    Parameters:
        prompt: the text.
        attachments: the host's own descriptions of files and images.
    """

    prompt: str
    attachments: list[Any] = []


class TurnStart(Event, timing="on_turn_start"):
    """A turn begins.

    Parameters:
        phase: the host's word for the kind of turn, or empty.
    """

    phase: str = ""


class SystemPrompt(Event, timing="system_prompt"):
    """The system prompt is being built, before each request to the model.

    Parameters:
        parts: its parts, in order.
    """

    parts: list[str]


class ModelResponse(Event, timing="on_model_response"):
    """The model answered.

    Parameters:
        text: the answer's text.
        tool_calls: the calls it asks for, each ``{"id", "tool", "args"}``.
        usage: tokens: ``input_tokens``, ``output_tokens``, ``cache_read_tokens``, ``cache_write_tokens``.
        stop_reason: the model's own word.
        model: name of the model, when the host knows it.
    """

    text: str = ""
    tool_calls: list[Any] = []
    usage: dict[str, Any] = {}
    stop_reason: str = ""
    model: str = ""


class ToolEvent(Event):
    """What all tool events share.

    Parameters:
        call_id: id of the call, unique in its session.
        tool: the host's own name of the tool.
        args: the host's own arguments.
        kind: bash, read, write, fetch, search, agent or other (from the host's tool table).
        mcp: (server, tool) for a tool of an MCP server, else None.
    """

    tool: str
    args: dict[str, Any]
    call_id: str = ""
    if TYPE_CHECKING:
        kind: str = ""
        mcp: Any = None
    else:
        kind: str = view(lambda event: event._row.kind)
        mcp: Any = view(lambda event: _tools.mcp_of(event.tool))

    _table: ClassVar[Mapping[str, _tools.Tool] | None] = None  # the host's tool table, put here by the engine

    @view
    def _row(self) -> _tools.Tool:
        return _tools.lookup(self._table, self.tool)

    @view
    def command(self) -> str:
        """The shell command, or an empty string."""
        return _tools.command_of(self._row, self.args)

    @view
    def paths(self) -> list[str]:
        """The files that the call names: absolute where ``cwd`` is known, patch headers included."""
        paths: list[str] = freeze(_tools.paths_of(self._row, self.args, self.cwd))
        return paths

    @view
    def urls(self) -> list[str]:
        """The addresses that the call names."""
        urls: list[str] = freeze(_tools.urls_of(self._row, self.args))
        return urls

    @view
    def result_text(self) -> str:
        """What the model reads of the result; empty before there is one."""
        return _tools.result_text_of(getattr(self, "result", None))

    def to_json(self) -> dict[str, Any]:
        data = super().to_json()
        data["mcp"] = list(self.mcp) if self.mcp else None
        data["command"] = self.command
        data["paths"] = list(self.paths)
        data["urls"] = list(self.urls)
        return data


class ToolCallStart(ToolEvent, timing="on_tool_call_start"):
    """The model asked for a tool call, before the permission rules look at it."""


class PreToolExecution(ToolEvent, timing="pre_tool_execution"):
    """The tool is about to run, after the permission rules.

    Parameters:
        permission: what the rules said: ``allow``, ``ask`` or empty for no rule.
    """

    permission: str = ""


class PostToolExecution(ToolEvent, timing="post_tool_execution"):
    """The tool call is over. Every begun call gets exactly one.

    Parameters:
        args: the arguments as executed.
        result: what the tool returned, in the host's own shape.
        status: ok, error, denied, replied, timeout, cancelled or unknown (the agent never came back).
        duration: seconds that the tool took.
        error: the error's text where the status is error.
        by: who denied or replied, else empty.
        reason: why it was denied, else empty.
    """

    result: Any = None
    status: str = "ok"
    duration: float = 0.0
    error: str = ""
    by: str = ""
    reason: str = ""

    def to_json(self) -> dict[str, Any]:
        data = super().to_json()
        data["result_text"] = self.result_text
        return data


class TurnComplete(Event, timing="on_turn_complete"):
    """The turn is over, with its figures.

    Parameters:
        text: the final answer.
        result: the host's own result object, or None.
        usage: tokens of the whole turn, as in ModelResponse.
        tool_calls: the turn's calls, each ``{"call_id", "tool", "kind", "status", "duration"}``.
        duration: seconds from the turn's start.
        edited_files: absolute paths that write tools changed in this turn.
        continued: how often in a row this turn was already made to go on.
    """

    text: str = ""
    result: Any = None
    usage: dict[str, Any] = {}
    tool_calls: list[Any] = []
    duration: float = 0.0
    edited_files: list[str] = []
    continued: int = 0


class PostTurn(Event, timing="post_turn"):
    """The old, smaller form of TurnComplete.

    Parameters:
        text: the final answer.
        duration: seconds from the turn's start.
    """

    text: str = ""
    duration: float = 0.0


class Error(Event, timing="on_error"):
    """Something failed: the model, a tool, the host or a hook.

    Parameters:
        error_type: the exception's class or the host's word.
        message: what it says.
        phase: where: ``model``, ``tool``, ``turn``, ``session`` or ``hook``.
        exception: the exception itself, in process; None from outside.
        hook: name of the failing hook, else empty.
        tool: name of the failing tool, else empty.
        call_id: id of the failing call, else empty.
    """

    error_type: str
    message: str
    phase: str = ""
    exception: Any = None
    hook: str = ""
    tool: str = ""
    call_id: str = ""


class SessionEnd(Event, timing="on_session_end"):
    """A session ended.

    Parameters:
        reason: ``complete``, ``error``, ``interrupted``, or the host's word.
    """

    reason: str = "complete"


class PermissionRequest(ToolEvent, timing="on_permission_request"):
    """A call needs a yes: the ladder said ask, on the final arguments.

    Parameters:
        reason: why it is asked.
        by: the rule or hook that asks.
        identity: SHA-256 of the canonical JSON (RFC 8785) of tool and arguments; an answer is bound to it.
        about: what is asked about, as the engine's composition shows it to approvers, or None.
    """

    reason: str = ""
    by: str = ""
    identity: str = ""
    about: Any = None


class OutcomeEvent(Event, timing="on_outcome"):
    """Another timing was decided; the host has not seen the outcome yet.

    Parameters:
        before: the event as it came.
        after: the event as it goes on.
        outcome: the folded Outcome, with each hook's answer and failure.
    """

    before: Any
    after: Any
    outcome: Any

    @property
    def of(self) -> str:
        """The timing that was decided."""
        timing: str = self.before.timing
        return timing


_BY_TIMING["on_event"] = Event


def from_json(data: Mapping[str, Any], timing: str = "") -> Event:
    """Build an event from its JSON form; fields that this version does not know are kept in ``extra``.

    Parameters:
        data: the event's fields, with or without ``schema`` and ``timing``.
        timing: the timing, when ``data`` does not say it.

    Returns:
        the event, of the timing's own class.

    Raises:
        EventError: for an unknown timing, a missing field or a wrong type, named.
    """
    if not isinstance(data, dict):
        raise EventError(f"an event is one JSON object, got {json_kind(data)}")
    name = timing or data.get("timing", "")
    cls = _BY_TIMING.get(name) if isinstance(name, str) else None
    if cls is None or cls is OutcomeEvent:
        raise EventError(f"unknown timing {name!r}{did_you_mean(str(name), _BY_TIMING)}")
    return build(cls, data)


# What every JSON form carries beside the fields, and the views of tool events, which travel for the
# reader's sake and are computed anew on arrival.
_FRAME = ("schema", "timing")
_VIEWS = ("command", "paths", "urls", "result_text")


def build(cls: type[Event], data: Mapping[str, Any]) -> Event:
    """Build an event of class ``cls`` from the fields of its JSON form (see ``from_json``).

    Raises:
        EventError: for a missing field or a wrong type, named in JSON's words.
    """
    fields: dict[str, Any] = {}
    extra: dict[str, Any] = {}
    views = _VIEWS if issubclass(cls, ToolEvent) else ()
    for name, value in data.items():
        if name == "time":
            moment = parse_time(value)
            if moment is None:
                raise EventError(
                    f"{cls.__name__}.time must be RFC 3339 text or seconds, got {jsonable(value)!r:.60}"
                )
            fields[name] = moment
        elif name == "mcp" and views:
            if isinstance(value, (list, tuple)) and len(value) == 2:
                fields[name] = tuple(value)
        elif name in cls._fields and name != "extra":
            fields[name] = value
        elif name not in _FRAME and name not in views:
            extra[name] = value
    if extra:
        fields["extra"] = extra
    try:
        return cls(**fields)
    except EventError as error:
        raise in_json(error) from None
