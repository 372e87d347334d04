"""The words in which bridges speak: what an agent's payload tells (``Moment``), what hooks said of it (``Said``),
and the table row of each agent event (``Row``). Data only.
"""

from __future__ import annotations

from ..spec.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from typing_extensions import Self

DOES: dict[str, tuple[str, ...]] = {
    "session_start": ("on_session_start", "system_prompt"),
    "prompt": ("on_message_received", "on_user_prompt_submit", "on_turn_start", "system_prompt"),
    "tool": ("on_tool_call_start", "pre_tool_execution", "on_permission_request"),
    "permission": ("on_permission_request",),
    "tool_end": ("post_tool_execution", "system_prompt"),
    "batch_end": ("system_prompt",),
    "request": (),
    "message": ("on_model_response",),
    "turn_end": ("on_model_response", "on_turn_complete", "post_turn"),
    "turn_failed": ("on_error", "on_turn_complete", "post_turn"),
    "error": ("on_error",),
    "subagent_start": ("on_event", "on_turn_start", "system_prompt"),
    "subagent_end": ("on_turn_complete", "post_turn", "on_event"),
    "compacted": ("on_event",),
    "session_end": ("on_session_end",),
    "system_prompt": ("system_prompt",),
    "idle": ("on_turn_complete", "post_turn"),
    "env": ("on_event",),
    "event": ("on_event",),
}
"""What a moment of an agent is for us: its word -> the timings that it fires.

``system_prompt`` is fired where context given now is read by the model's next request, and what is new of
it is given. ``batch_end``: all calls of a model's answer are over. ``request``: the next request
is about to be sent, and refusing it ends the turn. ``compacted``: the agent forgot what it was
told, so all of it is given again. ``system_prompt``: hooks may
change the system prompt itself. ``idle``: the agent waits, so its turn, if there is one, is over. ``env``: what a
command gets; hooks set it here, and earlier where ``Row.keeps_env`` is true. ``error``: something failed, and the turn may go on or not.
"""

MAIN: dict[str, str] = {
    "session_start": "on_session_start",
    "prompt": "on_user_prompt_submit",
    "tool": "pre_tool_execution",
    "permission": "on_permission_request",
    "tool_end": "post_tool_execution",
    "message": "on_model_response",
    "turn_end": "on_turn_complete",
    "error": "on_error",
    "session_end": "on_session_end",
    "system_prompt": "system_prompt",
    "event": "on_event",
}
"""Word of ``DOES`` -> the timing that people look for who know the agent's event."""

CAN = (
    "deny",  # refuse what is about to happen (or, after a tool, withhold its result)
    "stop",  # end the turn
    "ask",  # leave the decision to the agent's own prompt
    "allow",  # skip the agent's own prompt
    "args",  # change the tool's arguments
    "result",  # change the tool's result
    "inject",  # context that the next request carries
    "again",  # make a turn that ends go on
    "prompt",  # change the user's words
    "system",  # change the system prompt itself
    "text",  # change the model's words as they are shown
    "reply",  # a value in place of what the event is about
    "env",  # environment variables for the agent's commands
    "warn",  # a text for the user
)
"""What an answer to an agent may be able to say."""


class _Part(Record):
    def replaced(self, **changes: Any) -> Self:
        """Return a copy with other values."""
        return type(self)(**{**self.__dict__, **changes})


class Row(_Part):
    """One event of an agent, and what can be said of it. Every ``agents/<name>/hooks.py`` has a table of these.

    Parameters:
        event: the agent's own name of the event.
        does: what it is for us, a word of ``DOES``.
        can: what the agent takes as an answer, words of ``CAN``. All else degrades (see ``bridge.fit``).
        seconds: the agent's own time limit where no other is configured.
        type: dotted type, for events that become on_event.
        accepts: names of the answers that on_event hooks may give (beside Warn).
        request: at ``tool_end``: the model's next request follows, so system_prompt is due (agents without
            a ``batch_end``).
        system: whether context given here stands in for a system prompt that hooks cannot change; False for agents
            with a ``system_prompt`` moment.
        keeps_env: variables that hooks set here are kept for the next ``env`` moment.
        overtaken: at ``session_start``: the agent does not wait for it, so that other events of the session may
            come first.
        most_again: at ``turn_end``: how often in a row the agent lets a turn go on, where that is less than what
            the engine allows (``max_continue``); 0 for no such limit.
        install: whether ``hookturn install`` registers for it.
        note: what is worth knowing, for the documentation and ``explain --agent``.
    """

    event: str
    does: str
    can: list[str] = []
    seconds: float = 60.0
    type: str = ""
    accepts: list[str] = []
    request: bool = False
    overtaken: bool = False
    most_again: int = 0
    system: bool = True
    keeps_env: bool = False
    install: bool = True
    note: str = ""

    @property
    def timings(self) -> tuple[str, ...]:
        """The timings that the event fires, in their order."""
        timings = DOES[self.does]
        if self.system or self.does == "system_prompt":
            return timings
        return tuple(name for name in timings if name != "system_prompt")

    @property
    def decides(self) -> bool:
        """Whether a failure here may let something through that was to be refused."""
        return "deny" in self.can or "stop" in self.can


class Moment(_Part):
    """What one payload tells, in our words. Fields that an event does not have keep their defaults.

    Parameters:
        session_id: "" when the payload has none.
        agent: name of the main agent, or of the sub-agent when ``agent_id`` is set.
        agent_id: id of the sub-agent.
        parent_id: of a sub-agent: who started it, a session or another sub-agent, for agents whose sub-agents
            have sessions of their own: the event then belongs to the session that all of them come from.
        cwd: folder of the session.
        transcript_path: where the agent keeps the conversation.
        model: name of the model.
        source: of a session start: startup, resume, clear, compact, fork.
        reason: of a session end, a refusal by the agent, or a failed turn's error type.
        text: the prompt, the model's words, or the error's.
        call_id: "" when the payload has none; then the call is recognised by tool and arguments.
        tool, args: of a tool call. ``args`` None: the payload has no usable ones.
        mcp: (server, tool) where the name does not say it.
        result, status, error: how the call ended.
        duration: seconds, or None.
        running: at a turn's end: ids of sub-agents that go on in the background; ``["*"]`` for all that have
            not ended, where the agent tells the end of each.
        message_id: of a message that comes in pieces.
        last: whether this is the message's last piece.
        parts: of the system prompt.
        properties: of other events: what on_event hooks see.
    """

    session_id: str = ""
    agent: str = ""
    agent_id: str = ""
    parent_id: str = ""
    cwd: str = ""
    transcript_path: str = ""
    model: str = ""
    source: str = "startup"
    reason: str = ""
    text: str = ""
    call_id: str = ""
    tool: str = ""
    args: Any = None
    mcp: Any = None
    result: Any = None
    status: str = "ok"
    error: str = ""
    duration: Any = None
    running: list[str] = []
    message_id: str = ""
    last: bool = True
    parts: list[str] = []
    properties: dict[str, Any] = {}


class Said:
    """What hooks said of a moment, before and after it is fitted to what the agent takes.

    Attributes:
        decision: deny, ask, allow or None.
        reason: words for the model (deny) or the user (ask, allow).
        by: who decided.
        stop: the turn must end.
        args: the changed arguments, or None.
        args_by: the hooks that changed them.
        result: the changed result; see ``changed``.
        changed: whether the result was changed or withheld.
        withheld: whether the model must not get the result at all.
        text: the changed words of prompt or model, or None.
        text_by: the hooks that changed them.
        reply: a value in place of what the event is about; see ``replied``.
        replied: whether there is one.
        parts: the changed parts of the system prompt, or None.
        inject: texts for the model.
        again: words to go on with, or "".
        env: environment variables to set.
        warnings: texts for the user.
        lost: what could not be expressed, for standard error and ``explain``.
    """

    def __init__(self) -> None:
        self.decision: str | None = None
        self.reason = ""
        self.by = ""
        self.stop = False
        self.args: Any = None
        self.args_by: list[str] = []
        self.result: Any = None
        self.changed = False
        self.withheld = False
        self.text: str | None = None
        self.text_by: list[str] = []
        self.reply: Any = None
        self.replied = False
        self.parts: list[str] | None = None
        self.inject: list[str] = []
        self.again = ""
        self.env: dict[str, str] = {}
        self.warnings: list[str] = []
        self.lost: list[str] = []

    def refuse(self, reason: str, by: str = "") -> None:
        """Make it a deny. A deny always has words: some agents let through one that has none."""
        self.decision = "deny"
        self.reason = reason or (f"Denied by {by}." if by else "Denied.")
        self.by = by
        self.args = None
        self.replied = False
