"""``Session`` and ``Turn``: the driver of the lifecycle for ordinary code."""

from __future__ import annotations

from ..spec.errors import LifecycleError
from .lifecycle import Approve, Execute, Fire
from .session_common import APPROVAL_SECONDS, SessionCommon, TurnCommon, failing, new_id, reason_of
from .waiting import thrown

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterable, Mapping
    from types import TracebackType
    from typing import Any, TypeVar

    from ..spec.answers import Recover
    from .async_session import AsyncSession
    from .lifecycle import Steps
    from .outcome import Outcome
    from .results import Call, End, Prompt, Response, ToolResult

    T = TypeVar("T")


class Session(SessionCommon):
    """A session of ordinary code, a context manager: entering starts it, leaving ends it, once.

    Parameters:
        engine: the engine.
        session_id: the session's id; a new one when empty.
        agent: name of the main agent.
        cwd: folder of the session.
        host: the program that runs the agent.
        model, provider, source: for on_session_start.
        env: the agent's environment, for ``ctx.env``.
        tools: what the tools mean, in place of the engine's table.
        transcript_path: where the host keeps the conversation.
        persist: keep the state in the engine's state folder, for ``attach`` in other processes.
        attached: the session lives elsewhere: no start or end is fired (see ``Engine.attach``).
        dry_run: mark the events as dry.
        can_prompt: the host asks its user itself when nobody answered an Ask.
        raw: the host's own payload of the start.
    """

    def _run(self, steps: Steps[T]) -> T:
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
                    value = engine.fire_op(self._life.within(op))
                elif isinstance(op, Execute):
                    value = op.function(**op.args)
                    if hasattr(value, "__await__"):
                        value = engine._wait(value, None)
                elif isinstance(op, Approve) and engine.approver is not None:
                    value = engine.approver(op.request)
                    if hasattr(value, "__await__"):
                        value = engine._wait(value, APPROVAL_SECONDS)
            except BaseException as problem:
                error = thrown(problem)

    def start(self) -> None:
        """Fire on_session_start; ``with`` does it."""
        self._engine._sessions[self.id] = self._state
        self._started(self._run(self._life.start(*self._about)))

    def end(self, reason: str = "complete", *, raw: Any = None) -> None:
        """Complete what is open and fire on_session_end, once; ``with`` does it."""
        try:
            out = self._run(self._life.end(reason, raw))
            if out is not None:
                self.warnings.extend(out.warnings)
        finally:
            self._engine._release(self._state)

    def __enter__(self) -> Session:
        if not self._attached:
            try:
                self.start()
            except LifecycleError:  # not ours to end
                raise
            except BaseException as error:
                self.end(reason_of(type(error)))
                raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._attached:
            return
        try:
            if isinstance(error, Exception) and error is not self._life.reported:
                self.fail(error, phase="session")
        finally:
            self.end(reason_of(kind))

    async def __aenter__(self) -> AsyncSession:
        from .async_session import AsyncSession

        self._async = AsyncSession._of(self)
        return await self._async.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._async.__aexit__(kind, error, trace)

    def submit(
        self, text: str, *, origin: str = "user", attachments: Iterable[Any] = (), raw: Any = None
    ) -> Prompt:
        """Submit a message: fires on_message_received and on_user_prompt_submit.

        Parameters:
            text: the message.
            origin: who sent it.
            attachments: the host's own descriptions of files and images.
            raw: the host's own payload.

        Returns:
            the prompt; run a turn only if its ``goes_on`` is true.

        Raises:
            LifecycleError: when the session has ended.
        """
        return self._run(self._life.submit(text, origin=origin, attachments=list(attachments), raw=raw))

    def turn(self, phase: str = "", *, override: bool = False, raw: Any = None) -> Turn:
        """Return the next turn, a context manager (or call its ``begin``).

        Parameters:
            phase: the host's word for the kind of turn.
            override: begin it even though the prompt was blocked (replay of what did happen).
            raw: the host's own payload.
        """
        return Turn(self, "", self.agent, "", phase, override=override, raw=raw)

    def open_turn(self, agent_id: str = "", *, just_looked: bool = False) -> Turn | None:
        """Return the turn that is open already, for attached sessions; None without one.

        Parameters:
            agent_id: the sub-agent, or "".
            just_looked: something else of the session was asked just now: one look at its file is enough.
        """
        found = self._open_turn(agent_id, just_looked)
        if found is None:
            return None
        return Turn(self, agent_id, found["agent"], found["parent_agent"], "", begun=True)

    def subagent(self, name: str, agent_id: str, *, raw: Any = None) -> Turn:
        """Return the turn of a sub-agent that runs in the background: no turn of the main agent need be open."""
        return Turn(self, agent_id, name, self.agent, "", raw=raw)

    def event(
        self,
        type: str,
        properties: Mapping[str, Any] | None = None,
        accepts: Iterable[str] = (),
        raw: Any = None,
    ) -> Outcome:
        """Fire on_event for one of the host's own events.

        Parameters:
            type: dotted type, such as ``session.idle``.
            properties: what the host tells about it.
            accepts: names of the answers that the host can act on, such as ``Deny``.
            raw: the host's own payload.
        """
        return self._run(self._life.event(type, properties or {}, tuple(accepts), raw=raw))

    def fail(
        self, error: BaseException | str, message: str = "", *, phase: str = "model", raw: Any = None
    ) -> Recover | None:
        """Fire on_error for something that failed.

        Parameters:
            error: the exception, or the error's type as a word.
            message: what it says, for a word.
            phase: ``model``, ``tool``, ``turn`` or ``session``.
            raw: the host's own payload.

        Returns:
            a Recover that the host declared it can carry out, else None.
        """
        return self._run(failing(self._life, "", error, message, phase, raw))


class Turn(TurnCommon):
    """A turn, a context manager: leaving it completes it if you did not.

    Attributes:
        agent, agent_id, parent_agent: whose turn it is.
        env: environment variables that hooks set at its start.
        warnings: texts for the user of its start.
        ended: whether it is over.
    """

    _session: Session

    def begin(self) -> Turn:
        """Open the turn: fires on_turn_start; ``with`` does it."""
        if not self._begun:
            self._started(self._session._run(self._beginning()))
        return self

    def __enter__(self) -> Turn:
        return self.begin()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if isinstance(error, Exception) and error is not self._life.reported:
                self.fail(error, phase="turn")
        finally:
            if not self.ended:
                self.ended = True
                if self.agent_id in self._life.state.get("turns", {}):
                    self._session._run(self._life.complete(self.agent_id, "", leaving=True))

    def system_prompt(self, parts: Iterable[str], *, raw: Any = None) -> list[str]:
        """Fire system_prompt before a request to the model.

        Returns:
            the parts as hooks left them, with all injected texts appended, each once.
        """
        result, out = self._session._run(self._life.system_prompt(self._open(), parts, raw))
        self.warnings.extend(out.warnings)
        return result

    def model_response(
        self,
        text: str = "",
        usage: Mapping[str, Any] | None = None,
        tool_calls: Iterable[Any] = (),
        stop_reason: str = "",
        model: str = "",
        *,
        raw: Any = None,
    ) -> Response:
        """Fire on_model_response after each answer of the model.

        Parameters:
            text: the answer's text.
            usage: tokens: input_tokens, output_tokens, cache_read_tokens, cache_write_tokens.
            tool_calls: the calls it asks for.
            stop_reason: the model's own word.
            model: name of the model.
            raw: the host's own payload.
        """
        return self._session._run(self._response(text, usage, tool_calls, stop_reason, model, raw))

    def begin_tool(
        self,
        call_id: str,
        tool: str,
        args: Mapping[str, Any],
        *,
        mcp: tuple[str, str] | None = None,
        raw: Any = None,
    ) -> Call:
        """Begin a tool call that the host runs itself; run it only if ``go`` is true, then call ``end_tool``.

        Parameters:
            call_id: the call's id; the same id gives the same Call again.
            tool: the tool's name.
            args: its arguments.
            mcp: (server, tool) where the name does not say it.
            raw: the host's own payload.
        """
        return self._session._run(self._life.begin_tool(self._open(), call_id, tool, args, mcp=mcp, raw=raw))

    def end_tool(
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
        """End a begun call; of a call that is over already the result is given again.

        Parameters:
            call_id: the call's id.
            status: ok, error, timeout, cancelled, denied (by the host itself) or unknown.
            result: what the tool returned.
            error: the error's text.
            duration: seconds; default: since the begin.
            tool, args: of a call that was begun elsewhere.
            by, reason: who denied it, and why.
            raw: the host's own payload.
        """
        return self._session._run(
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

    def call_tool(
        self,
        tool: str,
        args: Mapping[str, Any],
        execute: Callable[..., Any],
        *,
        call_id: str = "",
        mcp: tuple[str, str] | None = None,
    ) -> ToolResult:
        """A whole tool call: begin, ``execute(**args)`` unless it is refused, end.

        Parameters:
            tool: the tool's name.
            args: its arguments.
            execute: the tool's body; called with the arguments as hooks left them.
            call_id: the call's id; a new one when empty.
            mcp: (server, tool) where the name does not say it.

        Returns:
            the result. The body's exception is in it, not raised; KeyboardInterrupt and the like pass.
        """
        call_id = call_id or self._life.new_call_id(self._open())
        return self._session._run(self._life.call_tool(self._open(), call_id, tool, args, execute, mcp=mcp))

    def ask(
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
        """The host is about to ask its user about a call: ask the on_permission_request hooks and the approver.

        Parameters:
            tool, args: the call.
            reason: why the host asks.
            by: who asks: the host's name, or its rule's.
            call_id: the call's id, where the host knows it.
            mcp: (server, tool) where the name does not say it.
            raw: the host's own payload.

        Returns:
            a Call whose ``decision`` is allow, deny (with ``message``), or None: the host must ask.
        """
        return self._session._run(
            self._life.permission(
                self._open(), tool, args, reason=reason, by=by, call_id=call_id, mcp=mcp, raw=raw
            )
        )

    def subagent(self, name: str, agent_id: str | None = None, *, raw: Any = None) -> Turn:
        """Return a sub-agent's turn inside this one, a context manager."""
        self._open()
        return Turn(self._session, agent_id or new_id(), name, self.agent, "", raw=raw)

    def fail(
        self, error: BaseException | str, message: str = "", *, phase: str = "model", raw: Any = None
    ) -> Recover | None:
        """Fire on_error for something that failed in this turn (see ``Session.fail``)."""
        return self._session._run(failing(self._life, self.agent_id, error, message, phase, raw))

    def complete(
        self,
        text: str = "",
        result: Any = None,
        *,
        final: bool = False,
        keep: Collection[str] = (),
        raw: Any = None,
    ) -> End:
        """Complete the turn: fires on_turn_complete and, unless a hook makes it go on, post_turn.

        Parameters:
            text: the final answer.
            result: the host's own result object.
            final: the host cannot go on: a Continue has no effect.
            keep: ids of sub-agents that go on in the background; all others end with the turn.
            raw: the host's own payload.

        Returns:
            the end; with words in ``again`` the turn is still open and the model should be asked again.
        """
        steps = self._life.complete(self._open(), text, result=result, leaving=final, keep=keep, raw=raw)
        end = self._session._run(steps)
        self.ended = end.again is None
        return end
