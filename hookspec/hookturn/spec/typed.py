"""Types of the per-timing decorators ``@hookimpl.<timing>``: for type checkers, nothing at run time."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Any, Generic, Literal, Protocol, TypeAlias, TypeVar, overload

from . import answers as a
from . import events as e
from .context import Context

E = TypeVar("E")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
E_contra = TypeVar("E_contra", contravariant=True)
R_co = TypeVar("R_co", covariant=True)


# The shapes of a hook. The engine fills parameters by name, so the names are part of a shape; they also
# tell a method's ``self`` from an event, which a plain Callable could not.


class _OfNothing(Protocol[R_co]):
    def __call__(_self) -> R_co: ...


class _OfEvent(Protocol[E_contra, R_co]):
    def __call__(_self, event: E_contra) -> R_co: ...


class _OfContext(Protocol[R_co]):
    def __call__(_self, ctx: Context) -> R_co: ...


class _OfBoth(Protocol[E_contra, R_co]):
    def __call__(_self, event: E_contra, ctx: Context) -> R_co: ...


class _MethodOfNothing(Protocol[R_co]):
    def __call__(_self, self: Any) -> R_co: ...


class _MethodOfEvent(Protocol[E_contra, R_co]):
    def __call__(_self, self: Any, event: E_contra) -> R_co: ...


class _MethodOfContext(Protocol[R_co]):
    def __call__(_self, self: Any, ctx: Context) -> R_co: ...


class _MethodOfBoth(Protocol[E_contra, R_co]):
    def __call__(_self, self: Any, event: E_contra, ctx: Context) -> R_co: ...


Done: TypeAlias = Awaitable[None] | None


class Marked(Generic[E, R]):
    """The decorator of one timing: takes a function (or method) of event and ctx, both, one or none of them."""

    @overload
    def __call__(self, function: _OfEvent[E, R], /) -> Callable[[E], R]: ...
    @overload
    def __call__(self, function: _OfBoth[E, R], /) -> Callable[[E, Context], R]: ...
    @overload
    def __call__(self, function: _OfContext[R], /) -> Callable[[Context], R]: ...
    @overload
    def __call__(self, function: _OfNothing[R], /) -> Callable[[], R]: ...
    @overload
    def __call__(self, function: _MethodOfEvent[E, R], /) -> Callable[[Any, E], R]: ...
    @overload
    def __call__(self, function: _MethodOfBoth[E, R], /) -> Callable[[Any, E, Context], R]: ...
    @overload
    def __call__(self, function: _MethodOfContext[R], /) -> Callable[[Any, Context], R]: ...
    @overload
    def __call__(self, function: _MethodOfNothing[R], /) -> Callable[[Any], R]: ...
    @overload
    def __call__(
        self,
        *,
        tryfirst: bool = False,
        trylast: bool = False,
        guard: bool = False,
        priority: int = 50,
        tools: Iterable[str] | None = None,
        agents: Iterable[str] | None = None,
        event_types: Iterable[str] | None = None,
        timeout: float | None = None,
        on_failure: Literal["ignore", "deny"] = "ignore",
        mode: Literal["enforce", "monitor"] = "enforce",
    ) -> Marked[E, R]: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


class MarkedLifecycle:
    """The decorator of on_load and on_dispose, which have no event, no answer and no options."""

    @overload
    def __call__(self, function: _OfContext[Done], /) -> Callable[[Context], Done]: ...
    @overload
    def __call__(self, function: _OfNothing[Done], /) -> Callable[[], Done]: ...
    @overload
    def __call__(self, function: _MethodOfContext[Done], /) -> Callable[[Any, Context], Done]: ...
    @overload
    def __call__(self, function: _MethodOfNothing[Done], /) -> Callable[[Any], Done]: ...
    @overload
    def __call__(self) -> MarkedLifecycle: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise NotImplementedError


A = TypeVar("A", bound=a.Answer)
_Given: TypeAlias = A | Sequence[A] | None
Of: TypeAlias = _Given[A] | Awaitable[_Given[A]]
"""What a hook returns: no answer, one or several; or a coroutine function's awaitable of that."""

SessionStartAnswer = a.Inject | a.SetEnv | a.Block | a.Warn
MessageReceivedAnswer = a.Rewrite | a.Reply | a.Inject | a.Block | a.Warn
UserPromptSubmitAnswer = a.Inject | a.Block | a.Warn
TurnStartAnswer = a.Inject | a.SetEnv | a.Warn
SystemPromptAnswer = a.Inject | a.Rewrite | a.Warn
ModelResponseAnswer = a.Rewrite | a.Inject | a.Block | a.Warn
ToolCallStartAnswer = a.Deny | a.Ask | a.Warn
PreToolExecutionAnswer = a.Rewrite | a.Deny | a.Ask | a.Allow | a.Block | a.Reply | a.Warn
PostToolExecutionAnswer = a.Rewrite | a.Deny | a.Inject | a.Recover | a.Warn
TurnCompleteAnswer = a.Continue | a.Rewrite | a.Block | a.Inject | a.Warn
ErrorAnswer = a.Recover | a.Warn
PermissionRequestAnswer = a.Allow | a.Deny | a.Warn


class TypedHookimpl(Protocol):
    """What type checkers see of ``hookimpl``."""

    on_session_start: Marked[e.SessionStart, Of[SessionStartAnswer]]
    on_message_received: Marked[e.MessageReceived, Of[MessageReceivedAnswer]]
    on_user_prompt_submit: Marked[e.UserPromptSubmit, Of[UserPromptSubmitAnswer]]
    on_turn_start: Marked[e.TurnStart, Of[TurnStartAnswer]]
    system_prompt: Marked[e.SystemPrompt, Of[SystemPromptAnswer]]
    on_model_response: Marked[e.ModelResponse, Of[ModelResponseAnswer]]
    on_tool_call_start: Marked[e.ToolCallStart, Of[ToolCallStartAnswer]]
    pre_tool_execution: Marked[e.PreToolExecution, Of[PreToolExecutionAnswer]]
    post_tool_execution: Marked[e.PostToolExecution, Of[PostToolExecutionAnswer]]
    on_turn_complete: Marked[e.TurnComplete, Of[TurnCompleteAnswer]]
    post_turn: Marked[e.PostTurn, Of[a.Warn]]
    on_error: Marked[e.Error, Of[ErrorAnswer]]
    on_session_end: Marked[e.SessionEnd, Of[a.Warn]]
    on_event: Marked[e.Event, Of[a.Answer]]
    on_permission_request: Marked[e.PermissionRequest, Of[PermissionRequestAnswer]]
    on_outcome: Marked[e.OutcomeEvent, Of[a.Warn]]
    on_load: MarkedLifecycle
    on_dispose: MarkedLifecycle

    @overload
    def __call__(self, function: F, /) -> F: ...
    @overload
    def __call__(
        self,
        *,
        tryfirst: bool = False,
        trylast: bool = False,
        specname: str | None = None,
        optionalhook: bool = False,
        guard: bool = False,
        priority: int = 50,
        tools: Iterable[str] | None = None,
        agents: Iterable[str] | None = None,
        event_types: Iterable[str] | None = None,
        timeout: float | None = None,
        on_failure: Literal["ignore", "deny"] = "ignore",
        mode: Literal["enforce", "monitor"] = "enforce",
        wrapper: bool = False,
        hookwrapper: bool = False,
    ) -> Callable[[F], F]: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
