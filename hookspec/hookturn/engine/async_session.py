"""``AsyncSession`` and ``AsyncTurn``: the drivers of the lifecycle for coroutines, with and without an event loop."""

from __future__ import annotations

from ..spec.errors import LifecycleError
from .lifecycle import Approve, Execute, Fire
from .session_common import APPROVAL_SECONDS, SessionCommon, TurnCommon, failing, new_id, reason_of
from .waiting import thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator, Iterable, Mapping
    from types import TracebackType
    from typing import Any, TypeVar

    from ..spec.answers import Recover
    from .lifecycle import Op, Steps
    from .outcome import Outcome
    from .results import Call, End, Prompt, Response, ToolResult
    from .session import Session
    from .waiting import Wait

    T = TypeVar("T")


class AsyncSession(SessionCommon):
    """A session of coroutines, an asynchronous context manager. See ``Session`` for the parameters."""

    @classmethod
    def _of(cls, session: Session) -> AsyncSession:
        made = object.__new__(cls)
        made.__dict__.update({key: value for key, value in session.__dict__.items() if key != "_async"})
        return made

    def _run(self, steps: Steps[T]) -> Awaitable[T]:
        return self._carry_out(steps)

    async def _carry_out(self, steps: Steps[T]) -> T:
        engine = self._engine
        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                op = steps.throw(error) if error is not None else steps.send(value)
            except StopIteration as stop:
                result: T = stop.value
                return result
            value = error = None
            try:
                if isinstance(op, Fire):
                    value = await engine.afire_op(self._life.within(op))
                elif isinstance(op, Execute):
                    value = op.function(**op.args)
                    if hasattr(value, "__await__"):
                        value = await value
                elif isinstance(op, Approve) and engine.approver is not None:
                    value = engine.approver(op.request)
                    if hasattr(value, "__await__"):
                        value = await value
            except BaseException as problem:
                error = thrown(problem)

    async def start(self) -> None:
        """Fire on_session_start; ``async with`` does it."""
        self._engine._sessions[self.id] = self._state
        self._started(await self._run(self._life.start(*self._about)))

    async def end(self, reason: str = "complete", *, raw: Any = None) -> None:
        """Complete what is open and fire on_session_end, once; ``async with`` does it."""
        try:
            out = await self._run(self._life.end(reason, raw))
            if out is not None:
                self.warnings.extend(out.warnings)
        finally:
            self._engine._release(self._state)

    async def __aenter__(self) -> AsyncSession:
        if not self._attached:
            try:
                await self.start()
            except LifecycleError:  # not ours to end
                raise
            except BaseException as error:
                await self.end(reason_of(type(error)))
                raise
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._attached:
            return
        try:
            if isinstance(error, Exception) and error is not self._life.reported:
                await self.fail(error, phase="session")
        finally:
            await self.end(reason_of(kind))

    async def submit(
        self, text: str, *, origin: str = "user", attachments: Iterable[Any] = (), raw: Any = None
    ) -> Prompt:
        """Submit a message (see ``Session.submit``)."""
        return await self._run(self._life.submit(text, origin=origin, attachments=list(attachments), raw=raw))

    def turn(self, phase: str = "", *, override: bool = False, raw: Any = None) -> AsyncTurn:
        """Return the next turn, an asynchronous context manager."""
        return AsyncTurn(self, "", self.agent, "", phase, override=override, raw=raw)

    def open_turn(self, agent_id: str = "", *, just_looked: bool = False) -> AsyncTurn | None:
        """Return the turn that is open already (see ``Session.open_turn``)."""
        found = self._open_turn(agent_id, just_looked)
        if found is None:
            return None
        return AsyncTurn(self, agent_id, found["agent"], found["parent_agent"], "", begun=True)

    def subagent(self, name: str, agent_id: str, *, raw: Any = None) -> AsyncTurn:
        """Return the turn of a sub-agent that runs in the background (see ``Session.subagent``)."""
        return AsyncTurn(self, agent_id, name, self.agent, "", raw=raw)

    async def event(
        self,
        type: str,
        properties: Mapping[str, Any] | None = None,
        accepts: Iterable[str] = (),
        raw: Any = None,
    ) -> Outcome:
        """Fire on_event for one of the host's own events (see ``Session.event``)."""
        return await self._run(self._life.event(type, properties or {}, tuple(accepts), raw=raw))

    async def fail(
        self, error: BaseException | str, message: str = "", *, phase: str = "model", raw: Any = None
    ) -> Recover | None:
        """Fire on_error for something that failed (see ``Session.fail``)."""
        return await self._run(failing(self._life, "", error, message, phase, raw))


class _Given:
    """Gives a lifecycle's steps to whoever drives the coroutine that waits for them."""

    __slots__ = ("_steps",)

    def __init__(self, steps: Steps[Any]) -> None:
        self._steps = steps

    def __await__(self) -> Steps[Any]:
        return self._steps


class SteppedSession(AsyncSession):
    """A session whose coroutines need no event loop: ``steps`` turns one into steps that any thread may go on with.

    For callers whose own thread may be left behind with a hook (see ``rides``), and who look at the ``unread`` and
    ``trouble`` of its ``values()``. Parameters as for ``Session``.
    """

    _HEEDS = True

    def _run(self, steps: Steps[T]) -> Awaitable[T]:
        return _Given(steps)

    def steps(self, work: Coroutine[Op, Any, T]) -> Generator[Wait, Any, T]:
        """Carry out what a coroutine of this session, and of others of its engine, asks for.

        Parameters:
            work: awaits methods of such sessions and of their turns, nothing else.

        Returns:
            the steps, which yield what is to be waited for, as a fire does; their result is the coroutine's.
        """
        engine = self._engine
        value: Any = None
        error: BaseException | None = None
        while True:
            try:
                op = work.throw(error) if error is not None else work.send(value)
            except StopIteration as stop:
                result: T = stop.value
                return result
            value = error = None
            try:
                if isinstance(op, Fire):
                    value = yield from engine.fire_steps(self._life.within(op))
                elif isinstance(op, Approve) and engine.approver is not None:
                    value = engine.approver(op.request)
                    if hasattr(value, "__await__"):
                        value = yield value, None, APPROVAL_SECONDS
            except BaseException as problem:
                error = thrown(problem)


class AsyncTurn(TurnCommon):
    """A turn of coroutines, an asynchronous context manager. See ``Turn``."""

    _session: AsyncSession

    async def begin(self) -> AsyncTurn:
        """Open the turn: fires on_turn_start; ``async with`` does it."""
        if not self._begun:
            self._started(await self._session._run(self._beginning()))
        return self

    async def __aenter__(self) -> AsyncTurn:
        return await self.begin()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, Exception) and error is not self._life.reported:
                await self.fail(error, phase="turn")
        finally:
            if not self.ended:
                self.ended = True
                if self.agent_id in self._life.state.get("turns", {}):
                    await self._session._run(self._life.complete(self.agent_id, "", leaving=True))

    async def system_prompt(self, parts: Iterable[str], *, raw: Any = None) -> list[str]:
        """Fire system_prompt before a request to the model (see ``Turn.system_prompt``)."""
        result, out = await self._session._run(self._life.system_prompt(self._open(), parts, raw))
        self.warnings.extend(out.warnings)
        return result

    async def model_response(
        self,
        text: str = "",
        usage: Mapping[str, Any] | None = None,
        tool_calls: Iterable[Any] = (),
        stop_reason: str = "",
        model: str = "",
        *,
        raw: Any = None,
    ) -> Response:
        """Fire on_model_response after each answer of the model (see ``Turn.model_response``)."""
        return await self._session._run(self._response(text, usage, tool_calls, stop_reason, model, raw))

    async def begin_tool(
        self,
        call_id: str,
        tool: str,
        args: Mapping[str, Any],
        *,
        mcp: tuple[str, str] | None = None,
        raw: Any = None,
    ) -> Call:
        """Begin a tool call that the host runs itself (see ``Turn.begin_tool``)."""
        return await self._session._run(
            self._life.begin_tool(self._open(), call_id, tool, args, mcp=mcp, raw=raw)
        )

    async def end_tool(
        self,
        call_id: str,
        status: str = "ok",
        result: Any = None,
        error: str = "",
        duration: float | None = None,
        *,
        tool: str = "",
        args: Mapping[str, Any] | None = None,
        by: str = "",
        reason: str = "",
        raw: Any = None,
    ) -> ToolResult:
        """End a begun call (see ``Turn.end_tool``)."""
        return await self._session._run(
            self._life.end_tool(
                self.agent_id,
                call_id,
                status=status,
                result=result,
                error=error,
                duration=duration,
                tool=tool,
                args=args,
                by=by,
                reason=reason,
                raw=raw,
            )
        )

    async def call_tool(
        self,
        tool: str,
        args: Mapping[str, Any],
        execute: Callable[..., Any],
        *,
        call_id: str = "",
        mcp: tuple[str, str] | None = None,
    ) -> ToolResult:
        """A whole tool call; ``execute`` may be a coroutine function (see ``Turn.call_tool``)."""
        call_id = call_id or self._life.new_call_id(self._open())
        return await self._session._run(
            self._life.call_tool(self._open(), call_id, tool, args, execute, mcp=mcp)
        )

    async def ask(
        self,
        tool: str,
        args: Mapping[str, Any],
        *,
        reason: str,
        by: str,
        call_id: str = "",
        mcp: tuple[str, str] | None = None,
        raw: Any = None,
    ) -> Call:
        """The host is about to ask its user about a call (see ``Turn.ask``)."""
        return await self._session._run(
            self._life.permission(
                self._open(), tool, args, reason=reason, by=by, call_id=call_id, mcp=mcp, raw=raw
            )
        )

    def subagent(self, name: str, agent_id: str | None = None, *, raw: Any = None) -> AsyncTurn:
        """Return a sub-agent's turn inside this one, an asynchronous context manager."""
        self._open()
        return AsyncTurn(self._session, agent_id or new_id(), name, self.agent, "", raw=raw)

    async def fail(
        self, error: BaseException | str, message: str = "", *, phase: str = "model", raw: Any = None
    ) -> Recover | None:
        """Fire on_error for something that failed in this turn (see ``Session.fail``)."""
        return await self._session._run(failing(self._life, self.agent_id, error, message, phase, raw))

    async def complete(
        self,
        text: str = "",
        result: Any = None,
        *,
        final: bool = False,
        keep: Collection[str] = (),
        raw: Any = None,
    ) -> End:
        """Complete the turn (see ``Turn.complete``)."""
        steps = self._life.complete(self._open(), text, result=result, leaving=final, keep=keep, raw=raw)
        end = await self._session._run(steps)
        self.ended = end.again is None
        return end
