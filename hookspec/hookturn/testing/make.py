"""Event factories: one a timing, under the timing's name. ``make.pre_tool_execution(command="rm -rf /")``.

Nothing is required, everything can be given: besides the parameters below,
each takes the fields that all events have (``session_id``, ``agent``, ``cwd``,
``turn``, ``time``, ...). What is not given is the same in every run.
"""

from __future__ import annotations

from typing import TypeVar

from ..spec import events as e
from ..spec import tools as _tools
from ..spec.errors import EventError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..engine.outcome import Outcome
    from ..spec.tools import Tool

E = TypeVar("E", bound=e.Event)

COMMON: dict[str, object] = {
    "session_id": "test-session",
    "cwd": "/project",
    "turn": 1,
    "time": 1_800_000_000.0,
    "host": "test",
}
"""What all made events carry unless something else is given."""


def event(kind: type[E], **fields: Any) -> E:
    """Make an event of any class, such as a framework's own.

    Parameters:
        kind: the event class.
        fields: its fields.

    Raises:
        EventError: for a missing, unknown or wrongly typed field.
    """
    return kind(**{**COMMON, **fields})


def on_session_start(
    source: str = "startup", model: str = "test-model", provider: str = "test", **fields: Any
) -> e.SessionStart:
    """Make the event of a session that begins; its turn is 0."""
    return event(
        e.SessionStart, **{"turn": 0, "source": source, "model": model, "provider": provider, **fields}
    )


def on_message_received(
    text: str = "Fix the bug.", origin: str = "user", attachments: Iterable[Any] = (), **fields: Any
) -> e.MessageReceived:
    """Make the event of a message that arrived."""
    return event(e.MessageReceived, text=text, origin=origin, attachments=list(attachments), **fields)


def on_user_prompt_submit(
    prompt: str = "Fix the bug.", attachments: Iterable[Any] = (), **fields: Any
) -> e.UserPromptSubmit:
    """Make the event of a prompt that a turn will work on."""
    return event(e.UserPromptSubmit, prompt=prompt, attachments=list(attachments), **fields)


def on_turn_start(phase: str = "", **fields: Any) -> e.TurnStart:
    """Make the event of a turn that begins."""
    return event(e.TurnStart, phase=phase, **fields)


def system_prompt(parts: Iterable[str] = ("You are a coding agent.",), **fields: Any) -> e.SystemPrompt:
    """Make the event of a system prompt that is built."""
    return event(e.SystemPrompt, parts=list(parts), **fields)


def on_model_response(
    text: str = "I look at it.",
    tool_calls: Iterable[Any] = (),
    usage: Mapping[str, Any] | None = None,
    stop_reason: str = "",
    **fields: Any,
) -> e.ModelResponse:
    """Make the event of a model's answer."""
    return event(
        e.ModelResponse,
        text=text,
        tool_calls=list(tool_calls),
        usage=dict(usage or {}),
        stop_reason=stop_reason,
        **fields,
    )


def on_tool_call_start(
    tool: str = "bash",
    args: Mapping[str, Any] | None = None,
    *,
    command: str = "",
    path: str = "",
    url: str = "",
    call_id: str = "call-1",
    tools: Mapping[str, Tool] | None = None,
    **fields: Any,
) -> e.ToolCallStart:
    """Make the event of a tool call that the model asked for (see ``pre_tool_execution``)."""
    given = arguments(tool, args, command=command, path=path, url=url, tools=tools)
    return _tool_event(e.ToolCallStart, tools, tool=tool, args=given, call_id=call_id, **fields)


def pre_tool_execution(
    tool: str = "bash",
    args: Mapping[str, Any] | None = None,
    *,
    command: str = "",
    path: str = "",
    url: str = "",
    call_id: str = "call-1",
    permission: str = "",
    tools: Mapping[str, Tool] | None = None,
    **fields: Any,
) -> e.PreToolExecution:
    """Make the event of a tool that is about to run.

    Parameters:
        tool: the tool's name.
        args: its arguments.
        command, path, url: put under the name that the tool has for such an argument; without any
            arguments, ``bash`` gets the command ``ls``.
        call_id: the call's id.
        permission: what the permission rules said.
        tools: the host's tool table; the usual names are known without.
        fields: fields that all events have, ``kind`` and ``mcp``.

    Raises:
        EventError: when the tool has no argument for a command, path or url that was given.
    """
    given = arguments(tool, args, command=command, path=path, url=url, tools=tools)
    return _tool_event(
        e.PreToolExecution, tools, tool=tool, args=given, call_id=call_id, permission=permission, **fields
    )


def post_tool_execution(
    tool: str = "bash",
    args: Mapping[str, Any] | None = None,
    *,
    command: str = "",
    path: str = "",
    url: str = "",
    call_id: str = "call-1",
    result: Any = "done",
    status: str = "ok",
    duration: float = 0.1,
    error: str = "",
    by: str = "",
    reason: str = "",
    tools: Mapping[str, Tool] | None = None,
    **fields: Any,
) -> e.PostToolExecution:
    """Make the event of a tool call that is over (see ``pre_tool_execution``)."""
    given = arguments(tool, args, command=command, path=path, url=url, tools=tools)
    about = {"status": status, "duration": duration, "error": error, "by": by, "reason": reason}
    return _tool_event(
        e.PostToolExecution, tools, tool=tool, args=given, call_id=call_id, result=result, **about, **fields
    )


def on_turn_complete(
    text: str = "Done.",
    *,
    result: Any = None,
    usage: Mapping[str, Any] | None = None,
    tool_calls: Iterable[Any] = (),
    duration: float = 1.0,
    edited_files: Iterable[str] = (),
    continued: int = 0,
    **fields: Any,
) -> e.TurnComplete:
    """Make the event of a turn that is over, with its figures."""
    return event(
        e.TurnComplete,
        text=text,
        result=result,
        usage=dict(usage or {}),
        tool_calls=list(tool_calls),
        duration=duration,
        edited_files=list(edited_files),
        continued=continued,
        **fields,
    )


def post_turn(text: str = "Done.", duration: float = 1.0, **fields: Any) -> e.PostTurn:
    """Make the old, smaller form of the event of a turn that is over."""
    return event(e.PostTurn, text=text, duration=duration, **fields)


def on_error(
    error_type: str = "RuntimeError",
    message: str = "something failed",
    phase: str = "model",
    exception: BaseException | None = None,
    **fields: Any,
) -> e.Error:
    """Make the event of something that failed; an exception gives its own type and message."""
    if exception is not None:
        error_type, message = type(exception).__name__, str(exception)
    return event(e.Error, error_type=error_type, message=message, phase=phase, exception=exception, **fields)


def on_session_end(reason: str = "complete", **fields: Any) -> e.SessionEnd:
    """Make the event of a session that ended."""
    return event(e.SessionEnd, reason=reason, **fields)


def on_event(
    type: str = "session.idle",
    properties: Mapping[str, Any] | None = None,
    accepts: Iterable[str] = (),
    **fields: Any,
) -> e.Event:
    """Make one of a host's own events.

    Parameters:
        type: its dotted type.
        properties: what the host tells about it.
        accepts: names of the answers that it takes, such as ``Deny``.
        fields: fields that all events have.
    """
    return event(e.Event, type=type, properties=dict(properties or {}), accepts=list(accepts), **fields)


def on_permission_request(
    tool: str = "bash",
    args: Mapping[str, Any] | None = None,
    *,
    command: str = "",
    path: str = "",
    url: str = "",
    call_id: str = "call-1",
    reason: str = "a hook asks",
    by: str = "test",
    tools: Mapping[str, Tool] | None = None,
    **fields: Any,
) -> e.PermissionRequest:
    """Make the event of a call that needs a yes, with its identity (see ``pre_tool_execution``)."""
    from ..engine.identity import identity

    given = arguments(tool, args, command=command, path=path, url=url, tools=tools)
    about = {"reason": reason, "by": by, "identity": identity(tool, given)}
    return _tool_event(
        e.PermissionRequest, tools, tool=tool, args=given, call_id=call_id, **{**about, **fields}
    )


def on_outcome(
    before: e.Event | None = None,
    outcome: Outcome | None = None,
    *,
    decision: str | None = None,
    by: str = "test",
    reason: str = "a reason",
    **fields: Any,
) -> e.OutcomeEvent:
    """Make the event of another timing that was decided.

    Parameters:
        before: the decided event; default: a tool that is about to run.
        outcome: what came out, such as an engine's; default: one of ``decision``, ``by`` and ``reason``.
        decision: deny, block, ask, allow or None.
        by: who decided.
        reason: the words of the decision.
        fields: fields that all events have.
    """
    from ..engine.fold import Vote, message
    from ..engine.outcome import Outcome

    before = before if before is not None else pre_tool_execution()
    if outcome is None:
        outcome = Outcome(before)
        if decision is not None:
            outcome.decision, outcome.by, outcome.reason = decision, by, reason
            if outcome.denied:
                outcome.message = message(Vote(decision, by, reason), getattr(before, "tool", ""))
    return event(e.OutcomeEvent, before=before, after=outcome.event, outcome=outcome, **fields)


def arguments(
    tool: str,
    args: Mapping[str, Any] | None = None,
    *,
    command: str = "",
    path: str = "",
    url: str = "",
    tools: Mapping[str, Tool] | None = None,
) -> dict[str, Any]:
    """Return the arguments of a tool call (see ``pre_tool_execution`` for the parameters).

    Raises:
        EventError: when the tool has no argument for a command, path or url that was given.
    """
    row = _tools.lookup(tools, tool)
    given = dict(args or {})
    if tool == "bash" and not given and not path and not url:
        command = command or "ls"
    for view, value, names in (
        ("command", command, row.command),
        ("path", path, row.paths),
        ("url", url, row.urls),
    ):
        if not value:
            continue
        if not names:
            raise EventError(
                f"the tool {tool!r} has no {view}; give its args, or say what it takes: "
                f"tools={{{tool!r}: Tool(...)}}"
            )
        given[names[0]] = value
    return given


def _tool_event(kind: type[E], tools: Mapping[str, Tool] | None, **fields: Any) -> E:
    made = event(kind, **fields)
    if tools is not None:
        made.__dict__["_table"] = dict(tools)  # where the engine puts it, too
    return made
