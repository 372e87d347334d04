"""Plays the steps of a recorded session through a Session, so that every timing fires in its order.

What happened has happened: a hook's Deny is recorded and the call's recorded
end is dropped, but the recording goes on.
"""

from __future__ import annotations

from ..agents import recorded as r

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ..engine.engine import Engine
    from ..engine.results import Call, End, Prompt, Response, ToolResult
    from ..engine.session import Session, Turn
    from ..spec.tools import Tool


class Watcher:
    """What a player tells about; each method may be left as it is."""

    def session(self, step: r.SessionBegin) -> None:
        """A session began."""

    def prompt(self, step: r.Prompt, prompt: Prompt, turn: int) -> None:
        """A prompt was submitted and its turn begun."""

    def system(self, parts: list[str]) -> None:
        """The system prompt of a request: what hooks put into it, for a recording has none."""

    def response(self, step: r.Response, response: Response) -> None:
        """The model answered."""

    def begun(self, step: r.ToolBegin, call: Call) -> None:
        """A tool call began, or was refused."""

    def ended(self, step: r.ToolEnd, call: Call | None, result: ToolResult) -> None:
        """A tool call ended as it was recorded."""

    def subagent(self, step: r.SubagentBegin) -> None:
        """A sub-agent started."""

    def failure(self, step: r.Failure) -> None:
        """Something failed in the recording."""

    def turn_end(self, end: End) -> None:
        """A turn of the main agent is over."""

    def usage(self, usage: Mapping[str, int]) -> None:
        """Tokens that the host counts for a session beyond those of its answers."""

    def skipped(self, step: r.Skipped) -> None:
        """A line could not be read."""


class Player:
    """Drives one engine with the steps of a recording.

    Parameters:
        engine: the engine.
        tools: what the recording agent's tools mean.
        host: name of the agent program.
        watcher: is told about everything.
        session_id: id for a recording that names none.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        tools: Mapping[str, Tool] | None = None,
        host: str = "",
        watcher: Watcher | None = None,
        session_id: str = "replay",
    ) -> None:
        self._engine = engine
        self._tools = tools
        self._host = host
        self._watcher = watcher or Watcher()
        self._fallback_id = session_id
        self._session: Session | None = None
        self._turn: Turn | None = None
        self._subs: dict[str, Turn] = {}
        self._names: dict[str, str] = {}  # names of the sub-agents seen
        self._open: dict[str, Call] = {}
        self._last_text = ""
        self._actions: dict[type, Callable[[Any], None]] = {
            r.SessionBegin: self._session_begin,
            r.Prompt: self._prompt,
            r.Response: self._response,
            r.ToolBegin: self._tool_begin,
            r.ToolEnd: self._tool_end,
            r.SubagentBegin: self._subagent_begin,
            r.SubagentEnd: self._subagent_end,
            r.HostEvent: self._host_event,
            r.Failure: self._failure,
            r.TurnEnd: self._turn_end,
            r.SessionFinish: self._session_finish,
            r.Skipped: self._watcher.skipped,
        }

    def play(self, step: r.Step) -> None:
        """Play one step."""
        session = self._session
        if session is not None and step.time is not None:
            session.at(step.time)
        self._actions[type(step)](step)

    def finish(self, reason: str = "complete") -> None:
        """End what the recording left open."""
        if self._session is not None:
            session, self._session = self._session, None
            self._complete_main("")
            self._subs.clear()
            self._open.clear()
            session.end(reason)

    # -- steps ----------------------------------------------------------------------------------

    def _session_begin(self, step: r.SessionBegin) -> None:
        if self._session is not None and self._session.id == (step.session_id or self._fallback_id):
            return
        self.finish()
        session = self._engine.session(
            session_id=step.session_id or self._fallback_id,
            agent=step.agent,
            cwd=step.cwd or "/",
            host=step.host or self._host,
            model=step.model,
            source=step.source,
            tools=self._tools,
            dry_run=True,
            can_prompt=True,
        )
        session.at(step.time)
        self._session = session
        self._watcher.session(step)
        session.start()

    def _need_session(self, step: Any) -> Session:
        if self._session is None:
            self._session_begin(r.SessionBegin("", time=step.time, line=step.line, host=self._host))
            assert self._session is not None
        return self._session

    def _need_turn(self, step: Any) -> Turn:
        session = self._need_session(step)
        agent_id = step.agent_id
        if agent_id:
            sub = self._subs.get(agent_id)
            if sub is None or sub.ended or agent_id not in session.open_turns:
                sub = self._open_sub(session, self._names.get(agent_id, "subagent"), agent_id, "")
            return sub
        if self._turn is None:
            self._turn = session.turn(override=True).begin()
        return self._turn

    def _open_sub(self, session: Session, name: str, agent_id: str, parent_id: str) -> Turn:
        from ..engine.session import Turn

        parent = self._subs[parent_id].agent if parent_id in self._subs else session.agent
        sub = Turn(session, agent_id, name, parent, "").begin()
        self._subs[agent_id] = sub
        self._names[agent_id] = name
        return sub

    def _prompt(self, step: r.Prompt) -> None:
        session = self._need_session(step)
        if step.agent_id:
            return  # a sub-agent's task came with its begin
        goes_on = step.within and self._turn is not None
        if not goes_on:
            self._complete_main(self._last_text)
        prompt = session.submit(step.text, origin=step.origin, attachments=step.attachments)
        if not goes_on:
            self._turn = session.turn(override=True).begin()
        self._watcher.prompt(step, prompt, session.turns)

    def _response(self, step: r.Response) -> None:
        turn = self._need_turn(step)
        self._watcher.system(turn.system_prompt(()))
        response = turn.model_response(
            step.text, step.usage, step.tool_calls, stop_reason=step.stop_reason, model=step.model
        )
        if step.text and not step.agent_id:
            self._last_text = step.text
        self._watcher.response(step, response)

    def _tool_begin(self, step: r.ToolBegin) -> None:
        turn = self._need_turn(step)
        call = turn.begin_tool(step.call_id, step.tool, step.args, mcp=step.mcp)
        if call.result is None:
            self._open[step.call_id] = call
        self._watcher.begun(step, call)

    def _tool_end(self, step: r.ToolEnd) -> None:
        call = self._open.pop(step.call_id, None)
        if call is None or call.result is not None:
            return  # refused in this replay, or closed with its turn: its one post has fired
        turn = self._need_turn(step)
        result = turn.end_tool(
            step.call_id,
            status=step.status,
            result=step.result,
            error=step.error,
            duration=step.duration,
            tool=call.tool,
            args=call.args,
        )
        self._watcher.ended(step, call, result)

    def _subagent_begin(self, step: r.SubagentBegin) -> None:
        session = self._need_session(step)
        if step.agent_id not in session.open_turns:
            self._open_sub(session, step.name, step.agent_id, step.parent_agent_id)
        self._watcher.subagent(step)

    def _subagent_end(self, step: r.SubagentEnd) -> None:
        sub = self._subs.pop(step.agent_id, None)
        if sub is not None and self._session is not None and step.agent_id in self._session.open_turns:
            sub.complete(step.text, final=True)

    def _host_event(self, step: r.HostEvent) -> None:
        self._need_session(step).event(step.type, step.properties)

    def _failure(self, step: r.Failure) -> None:
        self._need_session(step).fail(step.error_type, step.message, phase=step.phase)
        self._watcher.failure(step)

    def _turn_end(self, step: r.TurnEnd) -> None:
        self._complete_main(step.text or self._last_text)

    def _complete_main(self, text: str) -> None:
        turn, self._turn = self._turn, None
        self._last_text = ""
        if turn is not None:
            end = turn.complete(text, final=True)
            self._subs = {key: sub for key, sub in self._subs.items() if not sub.ended}
            self._watcher.turn_end(end)

    def _session_finish(self, step: r.SessionFinish) -> None:
        if step.usage:
            self._watcher.usage(step.usage)
        if self._session is not None:
            self.finish(step.reason)
