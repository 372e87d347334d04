"""The hook timings: one hookspec function each, whose docstring is its contract.

An implementation is decorated with ``@hookimpl`` and names ``event``, ``ctx``,
both or none as its parameters. Hooks run in the order of tier, priority and
registration (lower priority first); the first standing Deny, Block or Reply
ends the plan, guards are asked even so. Every timing takes Warn. All timings
exist since 0.1.

    on_message_received -> on_user_prompt_submit -> on_turn_start
      -> system_prompt -> model -> on_model_response
      -> for each call: on_tool_call_start -> rules -> pre_tool_execution -> tool -> post_tool_execution
    -> on_turn_complete -> post_turn
    on_error whenever something fails; on_session_start and on_session_end around it all
"""

from __future__ import annotations

from . import events as e
from .answers import (
    Allow,
    Answer,
    Ask,
    Block,
    Continue,
    Deny,
    Inject,
    Recover,
    Reply,
    Rewrite,
    SetEnv,
    Warn,
)
from .markers import TIMING, hookspec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from .context import Context


class Timing:
    """What the engine knows of one timing, read from its hookspec.

    Attributes:
        name: the hook's name.
        event: its event class.
        answers: the answers that it takes, Warn included.
        writable: fields that a Rewrite may change, the main one first.
        since: version that introduced it.
        deprecated: what to use instead, or "".
    """

    __slots__ = ("answers", "deprecated", "event", "function", "name", "since", "writable")

    def __init__(self, function: Callable[..., Any]) -> None:
        options = getattr(function, TIMING)
        self.function = function
        self.name: str = function.__name__
        self.event: type[e.Event] = options["event"]
        self.answers: tuple[type[Answer], ...] = (*options["answers"], Warn)
        self.writable: tuple[str, ...] = options["writable"]
        self.since: str = options["since"]
        self.deprecated: str = options["deprecated"]

    @property
    def main(self) -> str:
        """The field that ``Rewrite(value)`` replaces, or an empty string."""
        return self.writable[0] if self.writable else ""

    @property
    def can_deny(self) -> bool:
        """Whether a hook can stop something here."""
        return Deny in self.answers or Block in self.answers

    def __repr__(self) -> str:
        return f"Timing({self.name!r})"


@hookspec(event=e.SessionStart, answers=(Inject, SetEnv, Block), since="0.1")
def on_session_start(event: e.SessionStart, ctx: Context) -> Answer | list[Answer] | None:
    """A session began (or was resumed), before its first message.

    The event carries source, model and provider.

    Answers: Inject (the next system prompt), SetEnv (for the agent's commands),
    Block (the session takes no prompt).

    Example::

        @hookimpl
        def on_session_start(event):
            return Inject("Run the tests before you say done.")
    """


@hookspec(event=e.MessageReceived, answers=(Rewrite, Reply, Inject, Block), writable=("text",), since="0.1")
def on_message_received(event: e.MessageReceived, ctx: Context) -> Answer | list[Answer] | None:
    """A message arrived, before anything else looks at it.

    The event carries text, origin and attachments.

    Answers: Rewrite (the text), Reply (instead of the model), Inject (beside the
    prompt), Block (the message goes nowhere).

    Example::

        @hookimpl
        def on_message_received(event):
            return Rewrite(event.text.replace("asap", "in your own time"))
    """


@hookspec(event=e.UserPromptSubmit, answers=(Inject, Block), since="0.1")
def on_user_prompt_submit(event: e.UserPromptSubmit, ctx: Context) -> Answer | list[Answer] | None:
    """The prompt that the next turn works on, after on_message_received.

    The event carries prompt and attachments.

    Answers: Inject (beside the prompt), Block (no turn).

    Example::

        @hookimpl
        def on_user_prompt_submit(event):
            if "BEGIN PRIVATE KEY" in event.prompt:
                return Block("That prompt holds a private key.")
    """


@hookspec(event=e.TurnStart, answers=(Inject, SetEnv), since="0.1")
def on_turn_start(event: e.TurnStart, ctx: Context) -> Answer | list[Answer] | None:
    """A turn begins, before its first system prompt.

    The event carries phase; ``event.turn`` is its number.

    Answers: Inject (the next system prompt), SetEnv.

    Example::

        @hookimpl
        def on_turn_start(event, ctx):
            ctx.state.set("calls", 0)
    """


@hookspec(event=e.SystemPrompt, answers=(Inject, Rewrite), writable=("parts",), since="0.1")
def system_prompt(event: e.SystemPrompt, ctx: Context) -> Answer | list[Answer] | None:
    """The system prompt is built, before each request to the model.

    The event carries parts. What hooks injected earlier is appended after this timing.

    Answers: Inject (one more part), Rewrite (all parts).

    Example::

        @hookimpl
        def system_prompt(event):
            return Inject("Write tests first.")
    """


@hookspec(event=e.ModelResponse, answers=(Rewrite, Inject, Block), writable=("text",), since="0.1")
def on_model_response(event: e.ModelResponse, ctx: Context) -> Answer | list[Answer] | None:
    """The model answered, before its tool calls begin.

    The event carries text, tool_calls, usage and stop_reason.

    Answers: Rewrite (the text), Inject (the next system prompt), Block (the turn ends, no tool runs).

    Example::

        @hookimpl
        def on_model_response(event):
            if len(event.tool_calls) > 20:
                return Block("More than twenty tool calls in one answer.")
    """


@hookspec(event=e.ToolCallStart, answers=(Deny, Ask), since="0.1")
def on_tool_call_start(event: e.ToolCallStart, ctx: Context) -> Answer | list[Answer] | None:
    """The model asked for a tool call, before the permission rules look at it.

    The event carries call_id, tool, args and kind, with the tool views.

    Answers: Deny, Ask.

    Example::

        @hookimpl
        def on_tool_call_start(event, ctx):
            if ctx.state.add("calls") > 100:
                return Deny("A hundred calls in one session are enough.")
    """


@hookspec(
    event=e.PreToolExecution,
    answers=(Rewrite, Deny, Ask, Allow, Block, Reply),
    writable=("args",),
    since="0.1",
)
def pre_tool_execution(event: e.PreToolExecution, ctx: Context) -> Answer | list[Answer] | None:
    """The tool is about to run, after the permission rules.

    The event carries call_id, tool, args, kind and permission, with the tool views.

    Answers: Rewrite (args, or the views command and path), Deny, Ask, Allow (no
    prompt), Block (the turn ends), Reply (the value instead of running the tool).
    A Rewrite reaches the later hooks, the permission rules (again), the
    approver, the tool and the post hook alike.

    Example::

        @hookimpl(guard=True, tools=["bash"])
        def pre_tool_execution(event):
            if "rm -rf" in event.command:
                return Deny("No recursive delete.", advice="Remove files one by one.")
    """


@hookspec(
    event=e.PostToolExecution,
    answers=(Rewrite, Deny, Inject, Recover),
    writable=("result",),
    since="0.1",
)
def post_tool_execution(event: e.PostToolExecution, ctx: Context) -> Answer | list[Answer] | None:
    """The tool call is over; every begun call gets exactly one.

    The event carries call_id, tool, args as executed, result, status and duration.

    Answers: Rewrite (the result, or the view result_text), Deny (the model does
    not get the result), Inject (beside the result), Recover.

    Example::

        @hookimpl(tools=["bash"])
        def post_tool_execution(event):
            return Rewrite(result_text=event.result_text[:10_000])
    """


@hookspec(event=e.TurnComplete, answers=(Continue, Rewrite, Block, Inject), writable=("text",), since="0.1")
def on_turn_complete(event: e.TurnComplete, ctx: Context) -> Answer | list[Answer] | None:
    """The turn is over, with its figures.

    The event carries text, result, usage, tool_calls, duration and edited_files.

    Answers: Continue (the turn goes on, at most ``max_continue`` times in a
    row), Rewrite (the text), Block (the text is withheld), Inject (the next
    system prompt).

    Example::

        @hookimpl
        def on_turn_complete(event):
            if event.edited_files and not event.continued:
                return Continue("Run the tests on what you changed.")
    """


@hookspec(event=e.PostTurn, since="0.1", deprecated="on_turn_complete")
def post_turn(event: e.PostTurn, ctx: Context) -> Answer | list[Answer] | None:
    """The old, smaller form of on_turn_complete; kept for hooks written for it.

    The event carries text and duration. It fires once, when the turn has really ended.

    Answers: none beside Warn.

    Example::

        @hookimpl
        def post_turn(event, ctx):
            ctx.log.info("turn {} took {:.1f} s", event.turn, event.duration)
    """


@hookspec(event=e.Error, answers=(Recover,), since="0.1")
def on_error(event: e.Error, ctx: Context) -> Answer | list[Answer] | None:
    """Something failed: the model, a tool, the host or a hook.

    The event carries error_type, message, phase, exception and hook. A failing
    on_error hook is recorded and fires nothing.

    Answers: Recover (for hosts that declare it; else a reminder to the model).

    Example::

        @hookimpl
        def on_error(event):
            if event.phase == "model" and "overloaded" in event.message:
                return Recover("retry", attempts=3)
    """


@hookspec(event=e.SessionEnd, since="0.1")
def on_session_end(event: e.SessionEnd, ctx: Context) -> Answer | list[Answer] | None:
    """The session ended; fires exactly once for a session that started, on every way out.

    The event carries reason. All its hooks share a time budget of 5 seconds.

    Answers: none beside Warn.

    Example::

        @hookimpl
        def on_session_end(event, ctx):
            ctx.log.info("session {} ended: {}", event.session_id, event.reason)
    """


@hookspec(
    event=e.Event,
    answers=(Allow, Ask, Block, Continue, Deny, Inject, Recover, Reply, Rewrite, SetEnv),
    writable=("properties",),
    since="0.1",
)
def on_event(event: e.Event, ctx: Context) -> Answer | list[Answer] | None:
    """Whatever else a host tells, by dotted type: ``session.idle``, ``subagent.start``, ``file.changed``.

    The event carries type, properties and accepts.

    Answers: those that ``event.accepts`` names, and Warn.

    Example::

        @hookimpl(event_types=["session.idle"])
        def on_event(event, ctx):
            ctx.log.info("idle")
    """


@hookspec(event=e.PermissionRequest, answers=(Allow, Deny), since="0.1")
def on_permission_request(event: e.PermissionRequest, ctx: Context) -> Answer | list[Answer] | None:
    """The ladder said ask, last, on the final arguments; the first Allow or Deny wins.

    The event carries the call, reason, by and identity. Without an answer the
    engine's approver is asked, then the agent's own prompt, else the call is refused.

    Answers: Allow, Deny.

    Example::

        @hookimpl(tools=["read"])
        def on_permission_request(event):
            return Allow("Reading is fine.")
    """


@hookspec(event=e.OutcomeEvent, since="0.1")
def on_outcome(event: e.OutcomeEvent, ctx: Context) -> Answer | list[Answer] | None:
    """Another timing was decided: after its fold, before the host gets the Outcome.

    The event carries before, after and outcome. For audit, statistics, tracing:
    it is not filtered, not quarantined, and does not trigger itself. With
    ``on_failure="deny"`` its failure denies what was decided.

    Answers: none beside Warn.

    Example::

        @hookimpl
        def on_outcome(event, ctx):
            if event.outcome.decision == "deny":
                ctx.log.info("{} denied by {}", event.of, event.outcome.by)
    """


class LifecycleSpecs:
    """The two hooks that take no event."""

    @staticmethod
    def on_load(ctx: Context) -> None:
        """Called once when the plugin is registered; a failure takes the plugin out.

        Answers: none. At most 10 seconds.

        Example::

            @hookimpl
            def on_load(self, ctx):
                self.limit = ctx.config["limit"]
        """

    @staticmethod
    def on_dispose(ctx: Context) -> None:
        """Called once when the engine closes.

        Answers: none. At most 5 seconds.

        Example::

            @hookimpl
            def on_dispose(self, ctx):
                self.file.close()
        """


FUNCTIONS = (
    on_session_start,
    on_message_received,
    on_user_prompt_submit,
    on_turn_start,
    system_prompt,
    on_model_response,
    on_tool_call_start,
    pre_tool_execution,
    post_tool_execution,
    on_turn_complete,
    post_turn,
    on_error,
    on_session_end,
    on_event,
    on_permission_request,
    on_outcome,
)

TIMINGS: dict[str, Timing] = {function.__name__: Timing(function) for function in FUNCTIONS}
"""All timings of this package by name: the thirteen in the order of a session, then the three beside them."""

THIRTEEN = tuple(TIMINGS)[:13]
"""The names of the thirteen timings of the two design documents."""
