"""The drivers of the lifecycle: ``Session`` for ordinary code, ``AsyncSession`` for coroutines, ``SteppedSession``
for coroutines without an event loop.

They carry out what the lifecycle asks for (fire, ask the approver, run the
tool) and decide nothing. All have the same names.
"""

from __future__ import annotations

import os

from ..spec.errors import LifecycleError
from ..spec.record import freeze
from .engine import thrown
from .history import ended
from .lifecycle import Approve, Execute, Fire, Lifecycle
from .outcome import describe
from .session_state import SessionState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Collection, Coroutine, Generator, Iterable, Mapping
    from types import TracebackType
    from typing import Any, TypeVar

    from ..spec.answers import Recover
    from ..spec.tools import Tool
    from .engine import Engine, Wait
    from .lifecycle import Op, Steps
    from .outcome import Outcome
    from .results import Call, End, Prompt, Response, ToolResult

    T = TypeVar("T")

_APPROVAL_SECONDS = 300.0


class _Common:
    """What all kinds of sessions share.

    Attributes:
        id: the session's id; never empty.
        env: environment variables that hooks set for the agent's commands.
        warnings: texts for the user of the session's own timings.
    """

    _HEEDS = False  # whether its host looks at what its values say of unread and trouble

    def __init__(
        self,
        engine: Engine,
        *,
        session_id: str | None = None,
        agent: str = "main",
        cwd: str | os.PathLike[str] = "",
        host: str = "",
        model: str = "",
        provider: str = "",
        source: str = "startup",
        env: Mapping[str, str] | None = None,
        tools: Mapping[str, Tool] | None = None,
        transcript_path: str = "",
        persist: bool = False,
        attached: bool = False,
        dry_run: bool = False,
        can_prompt: bool = False,
        raw: Any = None,
    ) -> None:
        self._engine = engine
        self.id = session_id or _new_id()
        known = engine.session_state(self.id)
        if known is None or not attached:
            known = SessionState(
                engine.stores,
                self.id,
                stored=persist or attached,
                heeded=self._HEEDS,
                agent=agent if not attached or agent != "main" else "",
                cwd=os.path.abspath(cwd) if cwd else "" if attached else os.getcwd(),
                host=host,
                env=env,
                tools=tools if tools is not None else engine.tools,
                transcript_path=transcript_path,
            )
        elif env is not None:
            known.env = env  # of this caller, not of the one before
        self._state = known
        self._life = Lifecycle(engine, known, attached=attached, dry_run=dry_run, can_prompt=can_prompt)
        self._about = (source, model, provider, raw)
        self._attached = attached
        self.env: dict[str, str] = {}
        self.warnings: list[str] = []
        if attached:
            engine._attached(known)

    @property
    def agent(self) -> str:
        """Name of the main agent."""
        return self._state.agent

    @property
    def turns(self) -> int:
        """Turns begun so far."""
        return self._state.turn

    @property
    def usage(self) -> Mapping[str, int]:
        """Tokens so far."""
        return dict(self._state.usage)

    @property
    def blocked_by(self) -> str:
        """Who blocked the session at its start, or an empty string."""
        blocked = self._state.get("blocked")
        return blocked[0] if blocked else ""

    @property
    def open_turns(self) -> list[str]:
        """The agent ids that have an open turn; the main agent's is the empty string."""
        return list(self._state.get("turns", {}))

    @property
    def started(self) -> bool:
        """Whether the session has started and not ended."""
        known = self._state.look()
        return bool(known.get("started")) and not known.get("ended")

    def at(self, time: float | None) -> None:
        """Set the time of the events to come (replay: the recorded one), in seconds since the epoch."""
        self._life.time = time

    def until(self, moment: float | None) -> None:
        """Set when the host stops waiting for all that is to come, by ``time.monotonic()``.

        Every fire gets what is left until then; hooks that are not reached are failures.
        """
        self._life.until = moment

    def values(self) -> Any:
        """Return the session's stored values as a transaction (``with session.values() as data``).

        They are the session's own but for one key: ``host``, which a host may fill with JSON values. ``get`` reads
        without a transaction; ``trouble`` tells of values that could not be stored or read, and ``unread`` is why they
        could not be read, or None.
        """
        return self._state.change()

    def find_call(self, tool: str, args: Mapping[str, Any]) -> str:
        """Return the id of the oldest open call of a tool, first one with these arguments; "" when there is none.

        For hosts that do not tell which call they speak of.
        """
        return self._state.find_call(tool, args)

    def open_calls(self, agent_id: str = "") -> list[str]:
        """Return the ids of an agent's calls that have begun and not ended."""
        turn = self._state.get("turns", {}).get(agent_id, {"open": ()})
        return [call_id for call_id in list(turn["open"]) if ended(turn, call_id) is None]

    def amend_call(self, call_id: str, args: Mapping[str, Any], agent_id: str = "") -> None:
        """Set the arguments with which an open call really runs, for hosts that change them after ``begin_tool``.

        Parameters:
            call_id: the call; nothing happens when it is not open.
            args: its arguments.
            agent_id: the sub-agent whose call it is, or "".
        """
        with self._state.histories() as data:
            if agent_id in data.get("turns", {}):
                self._state.opened(data, agent_id, call_id, args=self._state.plain(dict(args)))

    def take_injected(self, *, just_looked: bool = False) -> str:
        """Return, once, what was injected for the next system prompt; for hosts that give it at another place.

        Parameters:
            just_looked: something else of the session was asked or changed just now: one look at its file is enough.
        """
        return self._state.take_pending(just_looked)

    def _open_turn(self, agent_id: str, just_looked: bool) -> Mapping[str, Any] | None:
        known = self._state.known if just_looked else self._state.look()
        found: Mapping[str, Any] | None = known.get("turns", {}).get(agent_id)
        return found

    def _started(self, out: Outcome) -> None:
        self.env.update(out.env)
        self.warnings.extend(out.warnings)


def _new_id() -> str:
    from uuid import uuid4

    return str(uuid4())


def _reason(kind: type[BaseException] | None) -> str:
    if kind is None:
        return "complete"
    return "error" if issubclass(kind, Exception) else "interrupted"


class Session(_Common):
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
                        value = engine._wait(value, _APPROVAL_SECONDS)
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
                self.end(_reason(type(error)))
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
            self.end(_reason(kind))

    async def __aenter__(self) -> AsyncSession:
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
        return self._run(_fail(self._life, "", error, message, phase, raw))


def _fail(
    life: Lifecycle, agent_id: str, error: BaseException | str, message: str, phase: str, raw: Any
) -> Steps[Recover | None]:
    more = {"raw": freeze(raw)} if raw is not None else {}
    if isinstance(error, str):
        return life.error(agent_id, error, message or error, phase=phase, **more)
    life.reported = error
    kind = type(error).__name__
    text = describe(error).removeprefix(kind).removeprefix(": ")
    return life.error(agent_id, kind, text, phase=phase, exception=error, **more)


class _TurnCommon:
    def __init__(
        self,
        session: Any,
        agent_id: str,
        agent: str,
        parent_agent: str,
        phase: str,
        *,
        override: bool = False,
        begun: bool = False,
        raw: Any = None,
    ) -> None:
        self._session = session
        self._life: Lifecycle = session._life
        self._begin = (phase, override, raw)
        self.agent_id = agent_id
        self.agent = agent
        self.parent_agent = parent_agent
        self.ended = False
        self.env: dict[str, str] = {}
        self.warnings: list[str] = []
        self._begun = begun

    def _open(self) -> str:
        """The turn's key, while it is open: an old turn must not act on a new one."""
        if not self._begun:
            raise LifecycleError("this turn has not begun: begin one (`with session.turn() as turn:`)")
        if self.ended:
            raise LifecycleError("this turn is over: begin another one with `session.turn()`")
        return self.agent_id

    @property
    def number(self) -> int:
        """Number of the turn, from 1."""
        number: int = self._life.turn_of(self._open())["number"]
        return number

    @property
    def blocked_by(self) -> str:
        """Who ended the turn for tools and further requests, or an empty string."""
        blocked = self._life.turn_of(self._open())["blocked"]
        return blocked[0] if blocked else ""

    def _beginning(self) -> Steps[Outcome]:
        phase, override, raw = self._begin
        return self._life.begin_turn(
            phase,
            agent=self.agent,
            agent_id=self.agent_id,
            parent_agent=self.parent_agent,
            override=override,
            raw=raw,
        )

    def _started(self, out: Outcome) -> None:
        self._begun = True
        self.env.update(out.env)
        self.warnings.extend(out.warnings)

    def _response(
        self, text: str, usage: Any, tool_calls: Any, stop_reason: str, model: str, raw: Any
    ) -> Steps[Response]:
        fields = {
            "text": text,
            "usage": dict(usage or {}),
            "tool_calls": list(tool_calls),
            "stop_reason": stop_reason,
            "model": model,
            "raw": raw,
        }
        return self._life.model_response(self._open(), fields)


class Turn(_TurnCommon):
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
        return Turn(self._session, agent_id or _new_id(), name, self.agent, "", raw=raw)

    def fail(
        self, error: BaseException | str, message: str = "", *, phase: str = "model", raw: Any = None
    ) -> Recover | None:
        """Fire on_error for something that failed in this turn (see ``Session.fail``)."""
        return self._session._run(_fail(self._life, self.agent_id, error, message, phase, raw))

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


class AsyncSession(_Common):
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
                await self.end(_reason(type(error)))
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
            await self.end(_reason(kind))

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
        return await self._run(_fail(self._life, "", error, message, phase, raw))


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
                        value = yield value, None, _APPROVAL_SECONDS
            except BaseException as problem:
                error = thrown(problem)


class AsyncTurn(_TurnCommon):
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
        return AsyncTurn(self._session, agent_id or _new_id(), name, self.agent, "", raw=raw)

    async def fail(
        self, error: BaseException | str, message: str = "", *, phase: str = "model", raw: Any = None
    ) -> Recover | None:
        """Fire on_error for something that failed in this turn (see ``Session.fail``)."""
        return await self._session._run(_fail(self._life, self.agent_id, error, message, phase, raw))

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
