"""The one place that knows the order of a session's timings, as generators without I/O.

They yield what is to be done (``Fire``, ``Approve``, ``Execute``) and get its
result sent back. ``Session`` and ``AsyncSession`` are the two drivers; hosts,
bridges, replay and the conformance harness all go through them, so that order,
de-duplication and exactly one post_tool_execution a call exist once.
"""

from __future__ import annotations

from time import monotonic, perf_counter
from time import time as now

from ..spec import events as e
from ..spec.answers import Rewrite
from ..spec.errors import EventError, LifecycleError
from ..spec.record import freeze, jsonable, thaw
from .fold import Vote, message
from .history import KEPT_CALLS, ended, process
from .outcome import Outcome, describe
from .results import Call, End, Prompt, Response, ToolResult
from .session_state import add_usage

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Generator, Mapping
    from typing import Any

    from ..spec.answers import Recover
    from .engine import Engine
    from .session_state import SessionState

END_SECONDS = 5.0
"""Time budget of on_session_end."""


class Fire:
    """Fire an event; the outcome is sent back.

    Attributes:
        event: the event.
        ladder: apply the permission rules.
        carried: decisions of an earlier timing of the same call that still count.
        deadline: seconds, or None.
    """

    __slots__ = ("carried", "deadline", "event", "ladder")

    def __init__(
        self,
        event: e.Event,
        ladder: bool = False,
        carried: tuple[Vote, ...] | None = None,
        deadline: float | None = None,
    ) -> None:
        self.event = event
        self.ladder = ladder
        self.carried = carried
        self.deadline = deadline


class Approve:
    """Ask the engine's approver; its answer is sent back."""

    __slots__ = ("request",)

    def __init__(self, request: e.PermissionRequest) -> None:
        self.request = request


class Execute:
    """Run the tool's body; its result is sent back, its exception thrown."""

    __slots__ = ("args", "function")

    def __init__(self, function: Callable[..., Any], args: dict[str, Any]) -> None:
        self.function = function
        self.args = args


Op = Fire | Approve | Execute
if TYPE_CHECKING:
    from typing import TypeVar

    T = TypeVar("T")
    Steps = Generator[Op, Any, T]


class Lifecycle:
    """The timings of one session in their order.

    Parameters:
        engine: the engine, for its plans, permissions and limits.
        state: the session's state.
        attached: the session was started elsewhere.
        dry_run: mark the events as dry.
        can_prompt: the host has a prompt of its own: an Ask that nobody answered is left to it.
    """

    def __init__(
        self,
        engine: Engine,
        state: SessionState,
        *,
        attached: bool = False,
        dry_run: bool = False,
        can_prompt: bool = False,
    ) -> None:
        self.engine = engine
        self.state = state
        self.attached = attached
        self.dry_run = dry_run or engine.dry_run
        self.can_prompt = can_prompt
        self.time: float | None = None  # set by replay: the recorded time of what comes next
        self.until: float | None = None  # by the monotonic clock: when the host stops waiting for all of it
        self.reported: BaseException | None = None  # the exception that on_error already had
        self._made: dict[str, Call] = {}  # calls of this process, by id
        self._mcp: dict[str, tuple[str, str]] = {}  # (server, tool) that the host told, by call id

    def within(self, op: Fire) -> Fire:
        """Give a fire no more time than the host has left."""
        if self.until is not None:
            left = max(0.0, self.until - monotonic())
            op.deadline = left if op.deadline is None else min(op.deadline, left)
        return op

    # -- events ---------------------------------------------------------------------------------

    def _common(self, turn: Mapping[str, Any] | None) -> dict[str, Any]:
        state = self.state
        fields: dict[str, Any] = {
            "session_id": state.id,
            "agent": state.agent,
            "cwd": state.cwd,
            "time": self.time if self.time is not None else now(),
            "host": state.host,
            "dry_run": self.dry_run,
        }
        if turn is not None:
            fields["turn"] = turn["number"]
            if turn["agent_id"]:
                fields["agent"] = turn["agent"]
                fields["agent_id"] = turn["agent_id"]
                fields["parent_agent"] = turn["parent_agent"]
        else:
            fields["turn"] = state.turn
        return fields

    def _quiet(self, timing: str) -> bool:
        """Whether nobody listens, so that the event need not be made."""
        engine = self.engine
        return engine.plan(timing) is None and engine.plan("on_outcome") is None and not engine.composition

    def _tool_event(self, cls: type[e.ToolEvent], turn: Mapping[str, Any], call: Call, **fields: Any) -> Any:
        common = self._common(turn)
        common["call_id"] = call.call_id
        common["tool"] = call.tool
        common["args"] = call.args
        common.update(fields)
        tools = self.state.tools
        if tools is not None:
            common["_table"] = tools
        mcp = self._mcp.get(call.call_id)
        if mcp is not None:
            common["mcp"] = mcp
        return cls._make(common)

    # -- session --------------------------------------------------------------------------------

    def start(self, source: str, model: str, provider: str, raw: Any = None) -> Steps[Outcome]:
        """Fire on_session_start, once; again for a session that ended, or whose host says that it goes on."""
        with self.state.change() as data:
            if data.get("started") and not data.get("ended") and source == "startup":
                raise LifecycleError(
                    f"session {self.state.id!r} has started already: use that one, or give source='resume'"
                )
            data["started"] = True
            data["ended"] = False
            data["blocked"] = None
        event = e.SessionStart._make(
            {**self._common(None), "source": source, "model": model, "provider": provider, "raw": freeze(raw)}
        )
        out: Outcome = yield Fire(event)
        self._keep(out)
        if out.denied:
            with self.state.change() as data:
                data["blocked"] = [out.by, out.message]
        return out

    def end(self, reason: str, raw: Any = None) -> Steps[Outcome | None]:
        """Complete what is open, then fire on_session_end, once; None when the session had ended."""
        with self.state.change() as data:
            if data.get("ended") or not (data.get("started") or self.attached):
                return None
            data["ended"] = True
        interrupted: BaseException | None = None
        for agent_id in reversed(list(self.state.get("turns", {}))):
            if agent_id not in self.state.get("turns", {}):
                continue
            try:
                yield from self.complete(agent_id, "", leaving=True)
            except BaseException as error:  # the end is still due
                interrupted = error
        event = e.SessionEnd._make({**self._common(None), "reason": reason, "raw": freeze(raw)})
        out: Outcome = yield Fire(event, deadline=END_SECONDS)
        if interrupted is not None:
            raise interrupted
        return out

    def submit(self, text: str, *, origin: str, attachments: Any, raw: Any = None) -> Steps[Prompt]:
        """Fire on_message_received and, if the message passes, on_user_prompt_submit."""
        if not isinstance(text, str):
            raise EventError(f"a prompt is a str, got {type(text).__name__}")
        self._alive()
        prompt = Prompt(text)
        blocked = self.state.get("blocked")
        if blocked:
            prompt.blocked_by, prompt.message = blocked
            return prompt
        common = {**self._common(None), "attachments": freeze(attachments or []), "raw": freeze(raw)}
        received = e.MessageReceived._make({**common, "text": text, "origin": origin})
        out: Outcome = yield Fire(received)
        prompt.text = out.event.text  # type: ignore[attr-defined]
        self._into_prompt(prompt, out)
        if prompt.goes_on:
            event = e.UserPromptSubmit._make({**common, "prompt": prompt.text})
            out = yield Fire(event)
            self._into_prompt(prompt, out)
        with self.state.change() as data:
            data["prompt_blocked"] = "" if prompt.goes_on else prompt.blocked_by or "a reply"
            data["continued"] = 0
        return prompt

    def _into_prompt(self, prompt: Prompt, out: Outcome) -> None:
        prompt.outcomes.append(out)
        prompt.injected.extend(out.injected)
        prompt.warnings.extend(out.warnings)
        if out.denied:
            prompt.blocked_by, prompt.message = out.by, out.message
        elif out.replied:
            prompt.reply, prompt.replied = out.reply, True

    # -- turns ----------------------------------------------------------------------------------

    def begin_turn(
        self,
        phase: str,
        *,
        agent: str = "",
        agent_id: str = "",
        parent_agent: str = "",
        override: bool = False,
        raw: Any = None,
    ) -> Steps[Outcome]:
        """Open a turn (of the session, or of a sub-agent inside the open one) and fire on_turn_start."""
        self._alive()
        with self.state.change() as data:
            turns = data.setdefault("turns", {})
            if agent_id in turns:
                who = f"the sub-agent {agent_id!r}" if agent_id else "the session"
                raise LifecycleError(f"{who} has an open turn; complete it first")
            if not agent_id:
                blocked = data.get("prompt_blocked") or (data.get("blocked") or [""])[0]
                if blocked and not override:
                    raise LifecycleError(f"the prompt was stopped by {blocked}; look at prompt.goes_on first")
                data["turn"] = data.get("turn", 0) + 1
            turn: dict[str, Any] = {
                "number": data.get("turn", 0) or 1,
                "agent": agent or self.state.agent,
                "agent_id": agent_id,
                "parent_agent": parent_agent,
                "begun": self.time if self.time is not None else now(),
                "clock": perf_counter(),
                "usage": {},
                "calls": [],
                "edited": {},
                "open": {},
                "closed": {},
                "continued": 0,
                "blocked": None,
            }
            turns[agent_id] = turn
        event = e.TurnStart._make({**self._common(turn), "phase": phase, "raw": freeze(raw)})
        try:
            if agent_id and not self._quiet("on_event"):
                yield from self.event("subagent.start", {"agent": agent, "agent_id": agent_id}, (), turn=turn)
            out: Outcome = yield Fire(event)
        except BaseException:  # the host gets no turn that it could complete
            yield from self.complete(agent_id, "", leaving=True)
            raise
        self._keep(out)
        return out

    def turn_of(self, agent_id: str) -> dict[str, Any]:
        """Return the open turn of an agent.

        Raises:
            LifecycleError: when it has none.
        """
        return self._turn_in(self.state.look(), agent_id)

    @staticmethod
    def _turn_in(data: Mapping[str, Any], agent_id: str) -> dict[str, Any]:
        turn: dict[str, Any] | None = data.get("turns", {}).get(agent_id)
        if turn is None:
            raise LifecycleError("there is no open turn: begin one (`with session.turn() as turn:`)")
        return turn

    def system_prompt(self, agent_id: str, parts: Any, raw: Any = None) -> Steps[tuple[list[str], Outcome]]:
        """Fire system_prompt; what was injected before is appended, once."""
        turn = self.turn_of(agent_id)
        if isinstance(parts, str) or not all(isinstance(part, str) for part in parts):
            raise EventError("system_prompt takes a list of str")
        event = e.SystemPrompt._make({**self._common(turn), "parts": freeze(list(parts)), "raw": freeze(raw)})
        out: Outcome = yield Fire(event)
        result = [*out.event.parts, *out.injected]  # type: ignore[attr-defined]
        pending = self.state.take_pending()
        if pending:
            result.append(pending)
        return result, out

    def model_response(self, agent_id: str, fields: dict[str, Any]) -> Steps[Response]:
        """Fire on_model_response; a Block ends the turn for tools and further requests."""
        turn = self.turn_of(agent_id)
        usage = fields.get("usage") or {}
        if usage:
            with self.state.change() as data:
                add_usage(data.setdefault("usage", {}), usage)
                add_usage(data["turns"][agent_id]["usage"], usage)
        frozen = {name: freeze(value) for name, value in fields.items() if value is not None}
        event = e.ModelResponse._make({**self._common(turn), **frozen})
        out: Outcome = yield Fire(event)
        self._keep(out)
        if out.denied:
            self._block(agent_id, out)
        return Response(out.event.text, out)  # type: ignore[attr-defined]

    def complete(
        self,
        agent_id: str,
        text: str,
        *,
        result: Any = None,
        leaving: bool = False,
        keep: Collection[str] = (),
        raw: Any = None,
    ) -> Steps[End]:
        """Close what is open, fire on_turn_complete and, when the turn has really ended, post_turn.

        Parameters:
            agent_id: the sub-agent, or "".
            text: the final answer.
            result: the host's own result object.
            leaving: the host goes whatever hooks say: a Continue has no effect.
            keep: sub-agents that go on in the background.
            raw: the host's own payload.
        """
        turn = self.turn_of(agent_id)
        interrupted: BaseException | None = None
        open_ones: list[Steps[Any]] = []
        if not agent_id:
            inner = [key for key in self.state.get("turns", {}) if key and key not in keep]
            open_ones += [self.complete(key, "", leaving=True) for key in reversed(inner)]
        open_ones += [self.end_tool(agent_id, call_id, status="unknown") for call_id in list(turn["open"])]
        for closing in open_ones:
            try:
                yield from closing
            except LifecycleError:  # another thread or process was faster
                continue
            except BaseException as error:  # the rest, and the turn, still end
                interrupted = error
        turn = self.turn_of(agent_id)
        seconds = self._since(turn)
        event = e.TurnComplete._make(
            {
                **self._common(turn),
                "text": text,
                "result": freeze(result),
                "usage": freeze(dict(turn["usage"])),
                "tool_calls": freeze(list(turn["calls"])),
                "duration": seconds,
                "edited_files": freeze(list(turn["edited"])),
                "continued": turn["continued"],
                "raw": freeze(raw),
            }
        )
        try:
            out: Outcome = yield Fire(event)
        except BaseException as error:  # the turn still ends
            interrupted = error
            out = Outcome(event)
        self._keep(out)
        end = End(out.event.text, out)  # type: ignore[attr-defined]
        if out.denied:
            end.text = out.message
        elif out.continue_reason and not leaving and not turn["blocked"] and interrupted is None:
            if turn["continued"] < self.engine.max_continue:
                with self.state.change() as data:
                    self._stored(data, agent_id)["continued"] += 1
                end.again = out.continue_reason
                return end
            end.warnings.append(
                f"the turn was made to go on {turn['continued']} times in a row; that is the limit, so it ends"
            )
        with self.state.change() as data:
            data["turns"].pop(agent_id, None)
        self._forget(0)
        try:
            yield Fire(e.PostTurn._make({**self._common(turn), "text": end.text, "duration": seconds}))
        except BaseException as error:  # the end of a sub-agent is still to be told
            interrupted = error
        if agent_id and not self._quiet("on_event"):
            properties = {"agent": turn["agent"], "agent_id": agent_id}
            yield from self.event("subagent.stop", properties, (), turn=turn)
        if interrupted is not None:
            raise interrupted
        return end

    def _since(self, turn: Mapping[str, Any]) -> float:
        if self.time is not None or self.state.stored:
            begun: float = turn["begun"]
            return max(0.0, (self.time if self.time is not None else now()) - begun)
        seconds: float = perf_counter() - turn["clock"]
        return seconds

    # -- tool calls -----------------------------------------------------------------------------

    def new_call_id(self, agent_id: str) -> str:
        """Return an id that no call of the turn has."""
        turn = self.turn_of(agent_id)
        call_id = self.state.next_call_id()
        while call_id in self._made or call_id in turn["open"] or call_id in turn["closed"]:
            call_id = self.state.next_call_id()  # a host may count like this itself
        return call_id

    def begin_tool(
        self,
        agent_id: str,
        call_id: str,
        tool: str,
        args: Mapping[str, Any],
        *,
        mcp: tuple[str, str] | None = None,
        raw: Any = None,
    ) -> Steps[Call]:
        """Fire on_tool_call_start and pre_tool_execution, climb the ladder, ask where it says ask.

        A refused or replied call gets its post_tool_execution at once. The
        same call_id gives the same Call again and fires nothing.
        """
        made = self._made.get(call_id)
        if made is not None:
            if not made.decided:
                raise LifecycleError(f"the call {call_id!r} is being decided: begin each call once")
            return made
        if not isinstance(tool, str) or not tool:
            raise EventError("a tool call needs the tool's name")
        if not isinstance(args, dict):
            raise EventError(f"a tool's arguments are a dict, got {type(args).__name__}")
        call = Call(call_id, tool, freeze(dict(args)))
        self.engine.check_nesting()  # before anything is begun that could not be ended
        with self.state.histories() as data:
            turn = self._turn_in(data, agent_id)
            opened = turn["open"].get(call_id)
            closed = ended(turn, call_id)
            decided = (
                opened is not None and opened.get("decided")
                if closed is None
                else closed["status"] != "cancelled"
            )
            if decided:
                return self._again(call, turn)
            if opened is None:  # else who began it never came to a decision
                about = {
                    "tool": tool,
                    "args": self.state.plain(call.args),
                    "begun": self.time if self.time is not None else now(),
                    "clock": perf_counter(),
                }
                self.state.note(["open", agent_id, call_id, about])
        self._made[call_id] = call
        if mcp is not None:
            self._mcp[call_id] = mcp
        try:
            yield from self._classify(agent_id, turn, call, freeze(raw))
        except BaseException as error:
            call.decision = "deny"
            yield from self.end_tool(agent_id, call_id, status="cancelled", error=describe(error))
            raise
        call.decided = True
        if call.go or call.decision == "ask":
            self._opened(agent_id, call_id, decided=True)
        else:
            status = "replied" if call.replied else "denied"
            value = call.reply if call.replied else call.message
            yield from self.end_tool(
                agent_id,
                call_id,
                status=status,
                result=value,
                by=call.denied_by or call.replied_by,
                reason=call.reason,
            )
        return call

    def _again(self, call: Call, stored: Mapping[str, Any]) -> Call:
        """The Call of an id that another process began, or that ended before."""
        call.decided = True
        closed = ended(stored, call.call_id)
        if closed is not None:
            call.result = _result_again(call.call_id, closed, call.args)
            call.reason = closed.get("reason", "")
            if closed["status"] == "denied":
                call.decision, call.denied_by, call.message = "deny", closed["by"], str(closed["value"])
            elif closed["status"] == "replied":
                call.reply, call.replied, call.replied_by = closed["value"], True, closed["by"]
            return call
        call.args = freeze(stored["open"][call.call_id]["args"])
        call.decision = stored["open"][call.call_id].get("decision")
        call.reason = stored["open"][call.call_id].get("reason", "")
        return call

    def _classify(self, agent_id: str, turn: Mapping[str, Any], call: Call, raw: Any) -> Steps[None]:
        # The end of the main agent's turn is its sub-agents' too.
        blocked = turn["blocked"]
        if agent_id and not blocked:
            blocked = self.state.get("turns", {}).get("", {}).get("blocked")
        if blocked:
            self._refuse(
                call, "deny", blocked[0], blocked[1], f"The turn was ended by {blocked[0]}: {blocked[1]}"
            )
            return
        rules = self.engine.permissions
        more = {"raw": raw} if raw is not None else {}
        carried: list[Vote] = []
        permission = ""
        if rules or not self._quiet("on_tool_call_start"):
            event = self._tool_event(e.ToolCallStart, turn, call, **more)
            out: Outcome = yield Fire(event, ladder=True)
            call.outcomes.append(out)
            call.warnings.extend(out.warnings)
            if out.denied:
                self._refuse(call, str(out.decision), out.by, out.reason, out.message)
                return
            if out.decision == "ask":
                permission = "ask"
                # A rule is asked again, on the final arguments.
                if any(record.name == out.by and not record.would for record in out.hooks):
                    carried.append(Vote("ask", out.by, out.reason, enforced=out.enforced))
            elif out.decision == "allow":
                permission = "allow"
            # What always_allow set aside stands again when a rewrite leaves what is allowed.
            carried += [Vote(decision, by, reason) for by, decision, reason in out.overruled]
        if rules or carried or not self._quiet("pre_tool_execution"):
            event = self._tool_event(e.PreToolExecution, turn, call, permission=permission, **more)
            out = yield Fire(event, ladder=True, carried=tuple(carried) or None)
            call.outcomes.append(out)
            call.warnings.extend(out.warnings)
            if out.rewrites:
                call.args = out.event.args  # type: ignore[attr-defined]
                call.rewritten_by = list(dict.fromkeys(change.by for change in out.rewrites))
                self._opened(agent_id, call.call_id, args=self.state.plain(call.args))
            if out.denied:
                if out.decision == "block":
                    self._block(agent_id, out)
                self._refuse(call, str(out.decision), out.by, out.reason, out.message)
                return
            if out.replied:
                call.reply, call.replied, call.replied_by = out.reply, True, out.by
                call.reason = f"{out.by} replied"
                return
            call.decision, call.reason = out.decision, out.reason
            if out.decision == "ask":
                yield from self._ask(turn, call, out)

    def _ask(self, turn: Mapping[str, Any], call: Call, out: Outcome) -> Steps[None]:
        if (yield from self._permitted(turn, call, out.reason, out.by)):
            return
        if self.can_prompt:
            call.decision = "ask"
            self._opened(turn["agent_id"], call.call_id, decision="ask", reason=call.reason)
        else:
            reason = f"{out.reason} (asked by {out.by}, and there is nobody to ask)"
            vote = Vote("deny", out.by, reason)
            self._refuse(call, "deny", out.by, reason, message(vote, call.tool))

    def _permitted(
        self, turn: Mapping[str, Any], call: Call, reason: str, by: str, **more: Any
    ) -> Steps[bool]:
        """Ask the on_permission_request hooks, then the approver; tells whether anybody decided."""
        from .identity import identity

        request = self._tool_event(
            e.PermissionRequest,
            turn,
            call,
            reason=reason,
            by=by,
            identity=identity(call.tool, call.args),
            **more,
        )
        asked: Outcome = yield Fire(request)
        call.outcomes.append(asked)
        call.warnings.extend(asked.warnings)
        if asked.decision == "allow":
            call.decision, call.reason = "allow", asked.reason or f"allowed by {asked.by}"
            return True
        if asked.decision == "deny":
            self._refuse(call, "deny", asked.by, asked.reason, asked.message)
            return True
        from .approval import read  # most calls ask nobody

        answer = read((yield Approve(request)), request.identity)
        if answer.permits and not isinstance(answer.answer, Rewrite):
            call.decision, call.reason = "allow", "allowed by the approver"
        elif answer.permits is not None:
            said = answer.reason or f"refused when asked ({reason})"
            if answer.permits:
                said = "the approver allowed another call than this one"
            vote = Vote("deny", "the approver", said)
            self._refuse(call, "deny", vote.by, said, message(vote, call.tool))
        return answer.permits is not None

    def permission(
        self,
        agent_id: str,
        tool: str,
        args: Mapping[str, Any],
        *,
        reason: str,
        by: str,
        call_id: str = "",
        mcp: tuple[str, str] | None = None,
        raw: Any = None,
    ) -> Steps[Call]:
        """The host itself is about to ask its user: ask the on_permission_request hooks, then the approver.

        Nothing is begun or ended. The Call's decision is allow, deny, or None: nobody decided, the host asks.
        """
        turn = self.turn_of(agent_id)
        call = Call(call_id, tool, freeze(dict(args)))
        more: dict[str, Any] = {"raw": freeze(raw)} if raw is not None else {}
        if mcp is not None:
            more["mcp"] = mcp
        yield from self._permitted(turn, call, reason, by, **more)
        call.decided = True
        return call

    @staticmethod
    def _refuse(call: Call, decision: str, by: str, reason: str, text: str) -> None:
        call.decision, call.denied_by, call.reason, call.message = decision, by, reason, text

    def end_tool(
        self,
        agent_id: str,
        call_id: str,
        *,
        status: str = "ok",
        result: Any = None,
        error: str = "",
        exception: BaseException | None = None,
        duration: float | None = None,
        by: str = "",
        reason: str = "",
        tool: str = "",
        args: Mapping[str, Any] | None = None,
        raw: Any = None,
    ) -> Steps[ToolResult]:
        """Fire post_tool_execution of a begun call, once, and on_error where it failed.

        A call that is over already gives its result again. ``tool`` and
        ``args`` are needed only for a call that was never begun here. Of a call whose end a killed
        process had begun to tell, all hooks are told again: some may hear of it twice, none never.
        """
        if status not in STATUSES:
            raise EventError(f"unknown status {status!r}; one of {', '.join(STATUSES)}")
        made = self._made.get(call_id)
        if made is not None and made.result is not None:
            return made.result
        try:
            result = freeze(result)
        except EventError:  # nested too deep for an event; what the tool did still has its post
            result = freeze(jsonable(result))
        with self.state.histories() as data:
            turns = data.get("turns", {})
            if call_id not in turns.get(agent_id, {}).get("open", {}):
                # A bridge may not know which agent's turn the call belongs to.
                agent_id = next((key for key, turn in turns.items() if call_id in turn["open"]), agent_id)
            turn = self._turn_in(data, agent_id)
            over = ended(turn, call_id)
            if over is not None:
                return _result_again(call_id, over, args or {})
            opened = turn["open"].get(call_id)
            begun = opened is not None
            if opened is None:
                if not tool:
                    raise LifecycleError(
                        f"no tool call {call_id!r} was begun; give its tool and args to end it"
                    )
                opened = {
                    "tool": tool,
                    "args": self.state.plain(dict(args or {})),
                    "begun": now(),
                    "clock": perf_counter(),
                }
            left = opened.get("ending")  # by a process that was killed before all hooks had it
            if left is not None and status == "unknown":
                status, by = left["status"], left["by"]
            call = made or Call(call_id, opened["tool"], freeze(opened["args"]))
            if duration is None:
                ran = status not in ("denied", "replied")
                duration = self._since(opened) if ran else 0.0
            event = self._tool_event(
                e.PostToolExecution,
                turn,
                call,
                result=result,
                status=status,
                duration=duration,
                error=error,
                by=by,
                reason=reason,
                **({"raw": raw} if raw is not None else {}),
            )
            end = {"tool": opened["tool"], "status": status, "by": by}
            if status in ("denied", "replied"):  # what the host got instead of a result, should it ask again
                end["value"], end["reason"] = self.state.plain(result), reason
            quiet = self._quiet("post_tool_execution")
            if quiet:
                self.state.note(["close", agent_id, call_id, end])
            else:  # it is over when the hooks have had it, so that a kill before that does not lose it
                more = {} if begun else opened
                self.state.note(
                    ["open", agent_id, call_id, {**more, "ending": {**end, "process": process()}}]
                )
            if left is None:
                row = {
                    "call_id": call_id,
                    "tool": call.tool,
                    "kind": event.kind,
                    "status": status,
                    "duration": round(duration, 6),
                }
                edited = list(event.paths) if event.kind == "write" and status == "ok" else []
                self.state.note(["call", agent_id, row, edited])
        done = ToolResult(call_id, call.tool, status, event.result, call.args)
        done.error, done.exception, done.duration = error, exception, duration
        done.denied_by = by if status == "denied" else ""
        call.result = done
        if len(self._made) > 2 * KEPT_CALLS:
            self._forget(KEPT_CALLS)
        self._mcp.pop(call_id, None)
        if not quiet:
            try:
                out: Outcome = yield Fire(event)
            finally:
                with self.state.histories() as data:
                    if call_id in data.get("turns", {}).get(agent_id, {}).get("open", {}):
                        self.state.note(["close", agent_id, call_id, end])
            done.outcome = out
            done.value = out.event.result  # type: ignore[attr-defined]
            done.injected = list(out.injected)
            done.warnings = list(out.warnings)
            if out.denied:
                done.value, done.denied_by = out.message, out.by
            if out.recover is not None:
                done.recover = self._recover(out)
        if status in ("error", "timeout"):
            fields = {"tool": call.tool, "call_id": call_id, "phase": "tool", "exception": exception}
            kind = type(exception).__name__ if exception is not None else "ToolError"
            text = error or event.result_text[:2000] or f"{call.tool} ended with status {status}"
            failed = yield from self.error(agent_id, kind, text, **fields)
            done.recover = done.recover or failed
        return done

    def _forget(self, kept: int) -> None:
        """Let go of the finished calls but the newest; other threads may begin some meanwhile."""
        finished = [key for key, call in list(self._made.items()) if call.result is not None]
        for key in finished[: max(0, len(finished) - kept)]:
            self._made.pop(key, None)

    def call_tool(
        self,
        agent_id: str,
        call_id: str,
        tool: str,
        args: Mapping[str, Any],
        execute: Callable[..., Any],
        *,
        mcp: tuple[str, str] | None = None,
    ) -> Steps[ToolResult]:
        """A whole call: begin, the tool's body (only if nothing refused it), end."""
        first = call_id not in self._made
        call = yield from self.begin_tool(agent_id, call_id, tool, args, mcp=mcp)
        if call.result is not None:
            if first:
                call.result.warnings[:0] = call.warnings
            return call.result
        if not call.go:
            # can_prompt belongs to hosts with halves; a whole call has nobody to wait for.
            raise LifecycleError("call_tool() needs an approver: the session leaves prompts to its host")
        with self.state.change():
            if call.running:
                raise LifecycleError(f"the call {call_id!r} is running already: begin each call once")
            call.running = True
        try:
            result = yield Execute(execute, thaw(call.args))
        except Exception as error:
            # asyncio's TimeoutError is another class on Python 3.10
            status = (
                "timeout"
                if isinstance(error, TimeoutError) or type(error).__name__ == "TimeoutError"
                else "error"
            )
            done = yield from self.end_tool(
                agent_id, call_id, status=status, error=describe(error), exception=error
            )
        except BaseException as error:
            yield from self.end_tool(agent_id, call_id, status="cancelled", error=describe(error))
            raise
        else:
            done = yield from self.end_tool(agent_id, call_id, result=result)
        done.warnings[:0] = call.warnings  # of the beginning: this host has no Call to show them from
        return done

    # -- the rest -------------------------------------------------------------------------------

    def error(self, agent_id: str, error_type: str, text: str, **fields: Any) -> Steps[Recover | None]:
        """Fire on_error; returns a Recover that the host declared, else None (and the model gets a reminder)."""
        if self._quiet("on_error"):
            return None
        turn = self.state.get("turns", {}).get(agent_id)
        event = e.Error._make({**self._common(turn), "error_type": error_type, "message": text, **fields})
        out: Outcome = yield Fire(event)
        return self._recover(out)

    def _recover(self, out: Outcome) -> Recover | None:
        answer: Recover | None = out.recover
        if answer is None or answer.strategy in self.engine.recovers:
            return answer
        settings = (
            f" ({', '.join(f'{key}: {value}' for key, value in answer.config.items())})"
            if answer.config
            else ""
        )
        self.state.add_pending(
            f"Something failed, and a hook advises: {answer.strategy.replace('_', ' ')}{settings}."
        )
        return None

    def event(
        self,
        kind: str,
        properties: Mapping[str, Any],
        accepts: Any,
        *,
        turn: Mapping[str, Any] | None = None,
        raw: Any = None,
    ) -> Steps[Outcome]:
        """Fire on_event for one of the host's own events."""
        if not kind:
            raise EventError("an event needs a type, such as 'session.idle'")
        if turn is None:
            turn = self.state.get("turns", {}).get("")
        event = e.Event._make(
            {
                **self._common(turn),
                "type": kind,
                "properties": freeze(dict(properties)),
                "accepts": freeze(list(accepts)),
                "raw": freeze(raw),
            }
        )
        out: Outcome = yield Fire(event)
        if "Inject" in accepts:
            self._keep(out)
        return out

    def _keep(self, out: Outcome) -> None:
        """Keep injected texts for the next system prompt."""
        for text in out.injected:
            self.state.add_pending(text)

    def _block(self, agent_id: str, out: Outcome) -> None:
        with self.state.change() as data:
            self._stored(data, agent_id)["blocked"] = [out.by, out.reason]

    def _opened(self, agent_id: str, call_id: str, **fields: Any) -> None:
        """Note more of a call that is open."""
        with self.state.histories() as data:
            self._stored(data, agent_id)
            self.state.opened(data, agent_id, call_id, **fields)

    @staticmethod
    def _stored(data: Mapping[str, Any], agent_id: str) -> dict[str, Any]:
        """The open turn in the state; another thread or process may have completed it."""
        turn: dict[str, Any] | None = data.get("turns", {}).get(agent_id)
        if turn is None:
            raise LifecycleError("the turn was completed meanwhile: begin another one")
        return turn

    def _alive(self) -> None:
        if self.state.get("ended"):
            raise LifecycleError(f"session {self.state.id!r} has ended: start another one")
        if not self.attached and not self.state.get("started"):
            raise LifecycleError(
                f"session {self.state.id!r} has not started: use `with engine.session() as session:`"
            )


def _result_again(call_id: str, closed: Mapping[str, Any], args: Mapping[str, Any]) -> ToolResult:
    """The result of a call that is over, as far as it is remembered."""
    result = ToolResult(call_id, closed["tool"], closed["status"], closed.get("value"), args)
    result.denied_by = closed["by"] if closed["status"] == "denied" else ""
    return result


STATUSES = ("ok", "error", "denied", "replied", "timeout", "cancelled", "unknown")
"""How a tool call can end."""
