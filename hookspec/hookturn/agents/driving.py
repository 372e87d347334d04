"""Drives the session machine from an agent's moments, one call at a time, and supplies what the agent never says.

A session that was not started is started, a turn that was not begun is begun, calls that were left open are
closed, each as soon as a later moment proves it. All that is known between the calls is the session's stored
state, so that every call may be a process of its own.
"""

from __future__ import annotations

from ..engine.async_session import SteppedSession
from ..quick import sha256_hex
from ..spec.errors import LifecycleError
from ..spec.record import thaw
from .moments import Said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping
    from typing import Any

    from ..engine.async_session import AsyncTurn
    from ..engine.engine import Engine
    from ..engine.outcome import Outcome
    from ..engine.waiting import Wait
    from ..spec.tools import Tool
    from .moments import Moment, Row

UNKNOWN_SESSION = "unknown-{}"
"""Id of the session of payloads that name none."""

FRESH = ("startup", "new", "clear", "compact")
"""Starts after which the model knows nothing of what it was told before."""

_PIECES = 64
_STARTING = 30.0  # seconds that the start of a session is waited for
_OVERTAKING = 60.0  # seconds in which the event of the start may come after others
_SPARE = 0.5  # seconds that are left for the hooks of the call that waits
_LOOK = 0.02


class Course:
    """One call of an agent.

    Parameters:
        engine: the project's engine.
        agent: the agent's name.
        tools: the agent's tools.
        row, moment: what happened.
        raw: the payload.
        environ: the caller's environment.
        until: when the agent stops waiting, by ``time.monotonic()``; None for never.
        pid: the agent's process, or 0.
        fitted: fits what was said to the row, in place.
    """

    def __init__(
        self,
        engine: Engine,
        agent: str,
        tools: Mapping[str, Tool],
        row: Row,
        moment: Moment,
        *,
        raw: Any,
        environ: Mapping[str, str],
        until: float | None,
        pid: int,
        fitted: Callable[[Said], None],
    ) -> None:
        if moment.parent_id:
            from .kin import placed

            moment = placed(engine, agent, moment)
        self.engine = engine
        self.agent = agent
        self.row = row
        self.moment = moment
        self._tools = tools
        self.raw = raw
        self.pid = pid
        self.said = Said()
        self._until = until
        self._fitted = fitted
        self.session = SteppedSession(
            engine,
            session_id=moment.session_id or self._session_of_process() or UNKNOWN_SESSION.format(agent),
            agent="" if moment.agent_id else moment.agent or "main",
            cwd=moment.cwd,
            host=agent,
            model=moment.model,
            source=moment.source,
            env=environ,
            tools=tools,
            transcript_path=moment.transcript_path,
            attached=True,
            can_prompt="ask" in row.can,
            raw=raw if row.does == "session_start" else None,
        )
        self.session.until(until)

    def _session_of_process(self) -> str:
        from .open_sessions import of_process

        return of_process(self.engine, self.agent, self.pid)

    def steps(self) -> Generator[Wait, Any, Said]:
        """Fire what the moment asks for; what is to be waited for is yielded (see ``Engine.drive``).

        Returns:
            what hooks said, fitted to the row.
        """
        return self.session.steps(self._course())

    async def _course(self) -> Said:
        await getattr(self, f"_{self.row.does}")()
        if self.said.env and self.row.keeps_env:
            with self._host() as host:
                host.setdefault("env", {}).update(self.said.env)
        self._notice()
        self._fitted(self.said)
        return self.said

    def _notice(self) -> None:
        """Tell the user what is off that was wanted, once a session, at the first event that takes words for the user."""
        notices = self.engine.notices
        if not notices or "warn" not in self.row.can or not self.session.started:
            return
        mark = _mark("\n".join(notices))
        if self._host_value("noticed") != mark:
            with self._host() as host:
                host["noticed"] = mark
            self.said.warnings += [f"hookturn: {text}" for text in notices]

    # -- the session ----------------------------------------------------------------------------

    async def _session_start(self) -> None:
        session, moment = self.session, self.moment
        again = moment.source == "compact"
        turn = session.open_turn()
        if self.row.overtaken and not again and self._supplied():
            if session.started:
                await self._started()
                return
            if moment.source == "startup":  # its first prompt was refused, and it is over
                return
        if session.started and not again:
            await session.end("unknown")  # it was killed before, or its end was never told
            turn = None
        await self._start()
        if moment.source in FRESH:
            self._forget_told()
        if session.blocked_by:
            self.said.warnings.append(f"{session.blocked_by} blocked this session: its prompts are refused")
        if turn is not None:
            await self._context(turn)
        elif "inject" in self.row.can:
            self._give(session.take_injected())
        if not again:
            from .open_sessions import close_stale, sweep

            await close_stale(self.engine, self.agent, but=session.id, until=self._until)
            sweep(self.engine, until=self._until)

    async def _start(self, told: bool = True) -> None:
        import os
        from time import time

        from ..platform import born

        session = self.session
        with session.values() as data:
            if not data.get("started") or data.get("ended"):
                host = data.setdefault("host", {})
                host["starting"] = [time(), os.getpid(), born(os.getpid())]
                host["supplied"] = 0 if told else time()
        ours = True
        try:
            await session.start()
        except LifecycleError:  # a parallel call was faster
            ours = False
        finally:
            if ours:
                with self._host() as host:
                    host["starting"] = None
        if not ours:
            self._wait()
            return
        self.said.env.update(session.env)
        self.said.warnings += session.warnings
        from .open_sessions import note

        note(self.engine, self.agent, session.id, self.pid)

    async def _started(self) -> bool:
        """Start the session that the agent never started (or that goes on after its end).

        Returns:
            whether it was on its way already: what was looked at is as it was.
        """
        known = self.session.values().look()
        if not known.get("started") or known.get("ended"):
            await self._start(told=False)
        elif known.get("host", {}).get("starting"):
            self._wait()
        else:
            return True
        return False

    def _supplied(self) -> bool:
        """Whether the session was started just now by an event that overtook the one of its start."""
        from time import time

        return 0 <= time() - (self._host_value("supplied") or 0) < _OVERTAKING

    def _wait(self) -> None:
        """Wait for a parallel call that is starting the session: its hooks may block it."""
        from time import monotonic, sleep

        while self._starting():
            if self._until is not None and monotonic() > self._until - _SPARE:
                return
            sleep(_LOOK)

    def _starting(self) -> bool:
        """Whether somebody is still at the start of the session: not one who was killed at it."""
        from time import time

        from ..platform import born

        at, pid, when = self._host_value("starting") or (0.0, 0, "")
        return 0 <= time() - at < _STARTING and (not when or born(pid) == when)

    async def _session_end(self) -> None:
        session = self.session
        if session.started:
            before = len(session.warnings)
            await session.end(self.moment.reason or "complete", raw=self.raw)
            self.said.warnings += session.warnings[before:]
        from .open_sessions import forget

        forget(self.engine, self.agent, session.id)

    # -- turns ----------------------------------------------------------------------------------

    async def _prompt(self) -> None:
        if self.moment.agent_id:  # a sub-agent's task: its turn has begun, and no user said it
            await self._context(await self._turn())
            return
        await self._started()
        session, moment, said = self.session, self.moment, self.said
        left = session.open_turn()
        if left is not None and self._goes_on(moment.text):
            await self._context(left)
            return
        if left is not None:  # the agent was interrupted: it tells no end of such turns
            others = [key for key in session.open_turns if key]  # they may go on in the background
            said.warnings += (await left.complete(final=True, keep=others)).warnings
        prompt = await session.submit(moment.text, raw=self.raw)
        said.warnings += prompt.warnings
        if prompt.text != moment.text:
            said.text, said.text_by = prompt.text, _changers(prompt.outcomes)
        if prompt.replied:
            said.reply, said.replied, said.by = prompt.reply, True, _replier(prompt.outcomes)
        elif prompt.blocked_by:
            said.refuse(prompt.message, prompt.blocked_by)
        self._fitted(said)
        if said.decision == "deny" or said.replied:
            return
        said.inject += prompt.injected
        turn = session.turn(override=not prompt.goes_on, raw=self.raw)
        await self._begin(turn)
        if prompt.blocked_by:  # the agent goes on all the same: its calls are refused
            with session.values() as data:
                data["turns"][""]["blocked"] = [prompt.blocked_by, prompt.message]
        await self._context(turn)

    def _goes_on(self, text: str) -> bool:
        """Whether a prompt is what a hook said to go on with: many agents tell it as if the user had."""
        if not self._host_value("again"):
            return False
        with self._host() as host:
            return bool(host.pop("again").strip() == text.strip())

    async def _begin(self, turn: AsyncTurn) -> None:
        await turn.begin()
        self.said.env.update(turn.env)
        self.said.warnings += turn.warnings
        if not turn.agent_id:
            with self._host() as host:
                host["responses"] = 0

    async def _turn(self) -> AsyncTurn:
        """Return the open turn of the moment's agent; begin what the agent never told of."""
        just_looked = await self._started()
        session, moment = self.session, self.moment
        turn = session.open_turn(moment.agent_id, just_looked=just_looked)
        if turn is not None:
            return turn
        if not moment.agent_id:
            return await self._opened("", lambda: session.turn(override=True))
        raw = self.raw if self.row.does == "subagent_start" else None
        return await self._opened(
            moment.agent_id, lambda: session.subagent(moment.agent, moment.agent_id, raw=raw)
        )

    async def _opened(self, agent_id: str, make: Callable[[], AsyncTurn]) -> AsyncTurn:
        turn = make()
        try:
            await self._begin(turn)
        except LifecycleError:  # a parallel call was faster
            found = self.session.open_turn(agent_id)
            if found is None:
                raise
            return found
        return turn

    async def _message(self) -> None:
        moment, said = self.moment, self.said
        text, pieces = self._whole_message()
        if text is None:
            return
        turn = await self._turn()
        response = await turn.model_response(text, model=moment.model, raw=self.raw)
        with self._host() as host:
            host["responses"] = host.get("responses", 0) + 1
        said.warnings += response.warnings
        if response.blocked_by:
            said.stop, said.by, said.reason = True, response.blocked_by, response.message
        if response.text == text:
            return
        if pieces > 1:
            said.warnings.append("a hook changed the model's words, but parts of them were shown already")
        else:
            said.text, said.text_by = response.text, _changers([response.outcome])

    def _whole_message(self) -> tuple[str | None, int]:
        """Return the text of a message whose last piece this is, and of how many pieces it came."""
        moment = self.moment
        if not moment.message_id:
            return moment.text, 1
        with self._host() as host:
            pieces = host.setdefault("pieces", {})
            mine = pieces.setdefault(moment.message_id, [])
            mine.append(moment.text)
            if not moment.last:
                while len(pieces) > _PIECES:  # whose last piece never came
                    del pieces[next(iter(pieces))]
                return None, len(mine)
            del pieces[moment.message_id]
            return "".join(mine), len(mine)

    async def _turn_end(self) -> None:
        turn, moment, said = await self._turn(), self.moment, self.said
        with self._host() as host:
            told = host.get("responses", 0)
            host["responses"] = 0
        if not told and moment.text:
            response = await turn.model_response(
                moment.text, raw=self.raw
            )  # the agent told of no answer of the model
            said.warnings += response.warnings
        await self._complete(turn, moment.text)

    async def _complete(self, turn: AsyncTurn, text: str) -> None:
        said = self.said
        enough = self._went_on_enough(turn)
        final = enough or "again" not in self.row.can
        end = await turn.complete(text, final=final, keep=self._running(), raw=self.raw)
        said.warnings += end.warnings
        if enough and end.outcome.continue_reason:
            said.warnings.append(
                f"the turn was made to go on {self.row.most_again} times, which is {self.agent}'s limit"
            )
        if end.again is not None:
            said.again = end.again
            if not turn.agent_id:
                with self._host() as host:
                    host["again"] = end.again
        elif end.blocked_by:
            said.refuse(end.outcome.reason, end.blocked_by)
        elif end.outcome.continue_reason and final and not enough:
            said.again = end.outcome.continue_reason
        elif end.text != text:
            said.text, said.text_by = end.text, _changers([end.outcome])

    def _went_on_enough(self, turn: AsyncTurn) -> bool:
        """Whether the agent would end the turn now whatever is said."""
        if not self.row.most_again:
            return False
        known = self.session.values().get("turns", {}).get(turn.agent_id, {})
        return bool(known.get("continued", 0) >= self.row.most_again)

    def _running(self) -> list[str]:
        """Return the ids of the sub-agents that outlive the turn."""
        running = self.moment.running
        return [key for key in self.session.open_turns if key] if running == ["*"] else running

    async def _turn_failed(self) -> None:
        turn, moment = await self._turn(), self.moment
        await turn.fail(moment.reason or "error", moment.error or moment.text, phase="model", raw=self.raw)
        end = await turn.complete(moment.text, final=True, keep=self._running(), raw=self.raw)
        self.said.warnings += end.warnings

    async def _error(self) -> None:
        turn, moment = await self._turn(), self.moment
        await turn.fail(moment.reason or "error", moment.error, phase="model", raw=self.raw)

    async def _idle(self) -> None:
        turn = self.session.open_turn(self.moment.agent_id)
        if turn is not None:
            await self._complete(turn, self.moment.text)

    async def _system_prompt(self) -> None:
        turn, parts = await self._turn(), self.moment.parts
        if turn.blocked_by and "stop" in self.row.can:
            self.said.stop, self.said.by = True, turn.blocked_by
            self.said.reason = f"The turn was ended by {turn.blocked_by}."
            return
        before = len(turn.warnings)
        changed = await turn.system_prompt(parts, raw=self.raw)
        self.said.warnings += turn.warnings[before:]
        if changed != parts:
            self.said.parts = changed

    async def _env(self) -> None:
        await self._event()
        self.said.env = {**(self._host_value("env") or {}), **self.said.env}

    async def _subagent_start(self) -> None:
        await self._context(await self._turn())

    async def _subagent_end(self) -> None:
        turn = self.session.open_turn(self.moment.agent_id) if self.moment.agent_id else None
        if turn is None:  # a helper whose start the agent does not tell
            await self._event()
        else:
            await self._complete(turn, self.moment.text)

    # -- tool calls -----------------------------------------------------------------------------

    async def _tool(self) -> None:
        turn, moment, said = await self._turn(), self.moment, self.said
        call = await turn.begin_tool(
            moment.call_id or _new_id(), moment.tool, moment.args, mcp=moment.mcp, raw=self.raw
        )
        said.warnings += call.warnings
        if call.denied_by:
            said.refuse(call.message, call.denied_by)
            said.stop = call.decision == "block" or bool(turn.blocked_by)
        elif call.replied:
            said.reply, said.replied, said.by = thaw(call.reply), True, call.replied_by
        elif call.result is None:
            if call.decision in ("ask", "allow"):
                said.decision, said.reason = call.decision, call.reason
                said.by = next((out.by for out in reversed(call.outcomes) if out.by), "")
            if call.args != moment.args:
                said.args, said.args_by = thaw(call.args), call.rewritten_by
        changed = said.args is not None
        self._fitted(said)
        if changed and said.args is None and said.decision != "deny":
            self._runs_as_it_was(call.call_id)
        if said.decision == "deny" and call.go:
            await turn.end_tool(call.call_id, "denied", result=said.reason, by=said.by, reason=said.reason)
        if said.decision != "deny" and not said.replied:
            self._pending()

    def _runs_as_it_was(self, call_id: str) -> None:
        """Undo the change of arguments that the agent does not take, so that the call's end tells what ran."""
        self.session.amend_call(call_id, self.moment.args, self.moment.agent_id)

    async def _permission(self) -> None:
        turn, moment, said = await self._turn(), self.moment, self.said
        call_id = moment.call_id or self.session.find_call(moment.tool, moment.args) or self._alike()
        if self._was_asked(call_id):
            return  # our own Ask led to this prompt, and the hooks were heard then
        reason = moment.reason or f"{self.agent} asks its user"
        call = await turn.ask(
            moment.tool,
            moment.args,
            reason=reason,
            by=self.agent,
            call_id=call_id,
            mcp=moment.mcp,
            raw=self.raw,
        )
        said.warnings += call.warnings
        if call.denied_by:
            said.refuse(call.message, call.denied_by)
            if call_id in self.session.open_calls(moment.agent_id):
                await turn.end_tool(
                    call_id, "denied", result=call.message, by=call.denied_by, reason=call.reason
                )
        elif call.decision:
            said.decision, said.reason = call.decision, call.reason

    def _alike(self) -> str:
        """Return the open call that a permission is about which names tool and arguments in other words: of the
        same kind, with the most values in common; "" when none has any."""
        from ..spec.tools import lookup

        kind = lookup(self._tools, self.moment.tool).kind
        wanted = [value for value in self.moment.args.values() if isinstance(value, str) and value]
        turn = self.session.values().get("turns", {}).get(self.moment.agent_id, {"open": {}})
        found = [
            (sum(value in call["args"].values() for value in wanted), call_id)
            for call_id, call in list(turn["open"].items())
            if lookup(self._tools, call["tool"]).kind == kind
        ]
        most, call_id = max(found, key=lambda row: row[0], default=(0, ""))
        return call_id if most else ""

    def _was_asked(self, call_id: str) -> bool:
        turns = self.session.values().get("turns", {})
        calls = [turn["open"].get(call_id) for turn in list(turns.values())]
        return any(call is not None and call.get("decision") == "ask" for call in calls)

    async def _tool_end(self) -> None:
        turn, moment, said = await self._turn(), self.moment, self.said
        args = moment.args if isinstance(moment.args, dict) else {}
        call_id = moment.call_id or self.session.find_call(moment.tool, args) or _new_id()
        if not moment.tool and call_id not in self.session.open_calls(moment.agent_id):
            return  # refused before any hook was asked, or by one of ours
        denied = moment.status == "denied"
        done = await turn.end_tool(
            call_id,
            moment.status,
            result=moment.result,
            error=moment.error,
            duration=moment.duration,
            tool=moment.tool,
            args=args,
            by=moment.reason and self.agent if denied else "",
            reason=moment.reason if denied else "",
            raw=self.raw,
        )
        said.warnings += done.warnings
        if done.status in ("denied", "replied") and not denied:
            text = f"{moment.tool} ran although {done.denied_by or 'a hook'} had refused it"
            await turn.fail("RefusedCallRan", text, phase="tool", raw=self.raw)
            said.warnings.append(text)
        out = done.outcome
        if out is not None:
            said.inject += done.injected
            if out.denied:
                from ..spec.tools import with_result_text

                said.refuse(out.message, out.by)
                said.withheld = said.changed = True
                said.result = thaw(with_result_text(moment.result, out.message))
            elif any(change.field == "result" for change in out.rewrites):
                said.changed, said.result = True, thaw(done.value)
        if self.row.request:
            await self._context(turn)
        else:
            self._pending()

    async def _batch_end(self) -> None:
        turn = await self._turn()
        for call_id in self.session.open_calls(self.moment.agent_id):
            await turn.end_tool(call_id, "unknown")
        if turn.blocked_by:
            self.said.stop, self.said.by = True, turn.blocked_by
            self.said.reason = f"The turn was ended by {turn.blocked_by}."
        await self._context(turn)

    async def _request(self) -> None:
        turn = self.session.open_turn(self.moment.agent_id)
        if turn is not None and turn.blocked_by:
            said = self.said
            said.stop, said.by, said.reason = (
                True,
                turn.blocked_by,
                f"The turn was ended by {turn.blocked_by}.",
            )
            if "stop" in self.row.can:  # the agent tells no other end of it
                others = [key for key in self.session.open_turns if key]  # they may go on in the background
                said.warnings += (await turn.complete(final=True, keep=others)).warnings
                return
        self._pending()

    # -- the rest -------------------------------------------------------------------------------

    async def _compacted(self) -> None:
        self._forget_told()
        await self._event()

    async def _event(self) -> None:
        row, moment = self.row, self.moment
        out = await self.session.event(
            row.type or "subagent.stop", thaw(moment.properties), list(row.accepts), raw=self.raw
        )
        hear(out, self.said)
        self.said.inject = []  # the engine keeps them for the next system prompt
        if "inject" in row.can:
            self._give(self.session.take_injected())

    async def _context(self, turn: AsyncTurn) -> None:
        """Give what the next request of the agent's model should read: injected texts, and what is new of the
        system prompt, which the agent lets nobody change."""
        if "inject" not in self.row.can:
            return
        self._give(self.session.take_injected())
        if not self.row.system:
            return
        before = len(turn.warnings)
        parts = await turn.system_prompt([], raw=self.raw)
        self.said.warnings += turn.warnings[before:]
        if not parts and not self._host_value("told"):
            return
        marks = [_mark(part) for part in parts]
        with self._host() as host:
            told = host.setdefault("told", {})
            known = told.get(turn.agent_id, [])
            told[turn.agent_id] = marks
        for part, mark in zip(parts, marks, strict=True):
            if mark not in known:
                self._give(part)

    def _pending(self) -> None:
        """Give what hooks left for the model, where there is a place for it."""
        if "inject" in self.row.can:
            self._give(self.session.take_injected(just_looked=True))

    def _give(self, text: str) -> None:
        if text:
            self.said.inject.append(text)

    def _forget_told(self) -> None:
        if self._host_value("told"):
            with self._host() as host:
                host["told"] = {}

    def _host(self) -> _Host:
        return _Host(self.session)

    def _host_value(self, name: str) -> Any:
        return self.session.values().get("host", {}).get(name)


class _Host:
    """The bridge's own values in the session's state, as a transaction."""

    def __init__(self, session: SteppedSession) -> None:
        self._values = session.values()

    def __enter__(self) -> dict[str, Any]:
        data = self._values.__enter__()
        host: dict[str, Any] = data.setdefault("host", {})
        return host

    def __exit__(self, *exception: object) -> None:
        self._values.__exit__(*exception)


def hear(out: Outcome, said: Said) -> None:
    """Take over what one Outcome says (for on_event, and for ``explain``)."""
    said.warnings += out.warnings
    said.inject += out.injected
    said.env.update(out.env)
    said.again = out.continue_reason
    said.by, said.reason = out.by, out.reason
    if out.denied:
        said.refuse(out.message or out.reason, out.by)
        said.stop = out.decision == "block"
    elif out.replied:
        said.reply, said.replied = thaw(out.reply), True
        said.by = _replier([out])
    elif out.decision:
        said.decision = out.decision
    if out.recover is not None:
        said.lost.append(f"a Recover ({out.recover.strategy}): it is told to the model as a reminder")


def _changers(outcomes: list[Outcome]) -> list[str]:
    return list(dict.fromkeys(change.by for out in outcomes for change in out.rewrites))


def _replier(outcomes: list[Outcome]) -> str:
    from ..spec.answers import Reply

    for out in outcomes:
        for record in out.hooks:
            if not record.would and any(isinstance(answer, Reply) for answer in record.answers):
                return record.name
    return "a hook"


def _mark(text: str) -> str:
    return sha256_hex(text.encode("utf-8", "surrogatepass"))[:16]


def _new_id() -> str:
    from uuid import uuid4

    return f"call-{uuid4()}"
