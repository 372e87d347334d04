"""Reads sessions that are recorded as hookturn's own events: one ``Event.to_json()`` a line.

The same protocol as the agents' transcript readers (see ``agents/transcripts.py``).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..agents.recorded import (
    Failure,
    HostEvent,
    OpenCall,
    Prompt,
    Response,
    SessionBegin,
    SessionFinish,
    Skipped,
    SubagentBegin,
    SubagentEnd,
    ToolBegin,
    ToolEnd,
    TurnEnd,
    arguments,
    as_count,
    as_dict,
    as_seconds,
    as_text,
    moment,
)
from ..engine.lifecycle import STATUSES
from ..spec.errors import did_you_mean, json_kind
from ..spec.tools import lookup, mcp_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..agents.recorded import Line, Step
    from ..agents.transcripts import Beside

NAME = "hookturn"
LOOKED_FOR = 'lines {"timing": "on_session_start"|"pre_tool_execution"|..., "session_id", ...}'

_REQUIRED = {
    "on_session_start": (),
    "on_message_received": ("text",),
    "on_user_prompt_submit": ("prompt",),
    "on_turn_start": (),
    "system_prompt": (),
    "on_model_response": (),
    "on_tool_call_start": ("tool",),
    "pre_tool_execution": ("tool",),
    "post_tool_execution": ("tool",),
    "on_turn_complete": (),
    "post_turn": (),
    "on_error": ("error_type", "message"),
    "on_session_end": (),
    "on_event": ("type",),
    "on_permission_request": (),
    "on_outcome": (),
}
_TEXTS = ("agent", "agent_id", "call_id", "cwd", "host", "parent_agent", "session_id", "tool", "type")


def sniff(objects: Sequence[dict[str, Any]]) -> bool:
    """Return whether one of these objects is an event of a known timing."""
    return any(isinstance(item.get("timing"), str) and item["timing"] in _REQUIRED for item in objects)


def read(lines: Iterable[Line], beside: Beside | None = None) -> Iterator[Step]:
    """Yield the steps of the session, in order, in constant memory.

    Parameters:
        lines: the file's lines.
        beside: not used: sub-agents are recorded in the session's own file.
    """
    session = _Session()
    out = session.out
    for number, item in lines:
        if isinstance(item, Skipped):
            yield item
            continue
        problem = _problem(item)
        if problem:
            yield Skipped(number, 1, problem)
            continue
        session.feed(number, item)
        if out:
            yield from out
            out.clear()
    session.finish()
    yield from out


def _problem(item: dict[str, Any]) -> str:
    timing = item.get("timing")
    needed = _REQUIRED.get(timing) if isinstance(timing, str) else None
    if needed is None:
        return f"unknown timing {timing!r}{did_you_mean(str(timing), _REQUIRED)}"[:300]
    for name in needed:
        if not isinstance(item.get(name), str):
            return f"{timing} needs {name}, a string"
    for name in _TEXTS:
        if name in item and not isinstance(item[name], str):
            return f"{name} must be a string, not {json_kind(item[name])}"
    for name in ("tool", "type"):
        if name in needed and not item[name]:
            return f"{timing} needs {name}, a string that is not empty"
    status = item.get("status", "ok")
    if timing == "post_tool_execution" and not (isinstance(status, str) and status in STATUSES):
        return f"unknown status {status!r}; one of {', '.join(STATUSES)}"[:300]
    return ""


class _Session:
    def __init__(self) -> None:
        self.out: list[Step] = []
        self.id: str | None = None
        self.ended = True
        self.known: set[str] = set()  # ids of sub-agents that run
        self.texts: dict[str, str] = {}  # last answer of each agent
        self.calls: dict[str, OpenCall] = {}
        self.by_agent: dict[str, dict[str, OpenCall]] = {}  # the same, by the agent that made them
        self.tasks: dict[str, OpenCall] = {}  # those of them that start sub-agents
        self.message: Prompt | None = None  # received, and maybe told again as the prompt
        self.turn = False
        self.time: float | None = None
        self.number = 0

    def feed(self, number: int, item: dict[str, Any]) -> None:
        timing = item["timing"]
        if timing in ("on_outcome", "on_permission_request", "on_turn_start", "system_prompt"):
            return  # replay fires these of itself
        self.number = number
        self.time = moment(item.get("time")) or self.time
        session_id = item.get("session_id", self.id or "")
        if timing == "on_session_start":
            self.begin(session_id, item, as_text(item.get("source")) or "startup")
            return
        if self.id != session_id or (self.ended and timing != "on_session_end"):
            self.begin(session_id, item, "startup" if self.id is None else "resume")
        agent_id = item.get("agent_id", "")
        if self.message is not None and timing != "on_user_prompt_submit":
            self.prompt(self.message)
        if agent_id and agent_id not in self.known and timing not in ("on_turn_complete", "post_turn"):
            self.known.add(agent_id)
            name = item.get("agent") or agent_id
            self.out.append(SubagentBegin(name, "", self.task(), self.time, number, agent_id))
        self.HANDLERS[timing](self, agent_id, item)

    def begin(self, session_id: str, item: dict[str, Any], source: str) -> None:
        self.finish("resume")
        self.id = session_id
        self.ended = False
        agent = "main" if item.get("agent_id") else item.get("agent") or "main"
        self.out.append(
            SessionBegin(
                session_id,
                item.get("cwd", ""),
                as_text(item.get("model")),
                source,
                item.get("host", ""),
                agent,
                self.time,
                self.number,
            )
        )

    def task(self) -> str:
        """Return what the sub-agent that starts now was asked, where an open call tells."""
        call = next(reversed(self.tasks.values()), None)
        return "" if call is None else as_text(call.args.get("prompt")) or as_text(call.args.get("message"))

    def message_received(self, agent_id: str, item: dict[str, Any]) -> None:
        origin = as_text(item.get("origin")) or "user"
        self.message = Prompt(
            item["text"], origin, _attachments(item), False, self.time, self.number, agent_id
        )

    def user_prompt(self, agent_id: str, item: dict[str, Any]) -> None:
        received = self.message
        origin = "user" if received is None else received.origin
        attachments = _attachments(item) or (() if received is None else received.attachments)
        self.prompt(Prompt(item["prompt"], origin, attachments, False, self.time, self.number, agent_id))

    def prompt(self, prompt: Prompt) -> None:
        self.message = None
        self.out.append(prompt._replace(within=self.turn))
        self.opened(prompt.agent_id)

    def response(self, agent_id: str, item: dict[str, Any]) -> None:
        text = as_text(item.get("text"))
        calls = item.get("tool_calls")
        usage = as_dict(item.get("usage"))
        if text:
            self.texts[agent_id] = text
        self.opened(agent_id)
        self.out.append(
            Response(
                text,
                calls if isinstance(calls, list) else (),
                {name: as_count(count) for name, count in usage.items()},
                as_text(item.get("stop_reason")),
                as_text(item.get("model")),
                self.time,
                self.number,
                agent_id,
            )
        )

    def opened(self, agent_id: str) -> None:
        if not agent_id:
            self.turn = True

    def tool_begin(self, agent_id: str, item: dict[str, Any]) -> OpenCall:
        """A call begins: on_tool_call_start and pre_tool_execution are the same call, told twice."""
        tool = item["tool"]
        call_id = item.get("call_id", "")
        if not call_id:
            # Without an id, the second telling is the one that follows the first.
            last = next(reversed(self.calls.values()), None)
            if (
                item["timing"] != "on_tool_call_start"
                and last is not None
                and last.tool == tool
                and last.agent_id == agent_id
                and last.call_id.startswith("line-")
            ):
                return last
            call_id = f"line-{self.number}"
        known = self.calls.get(call_id)
        if known is not None:
            return known
        args = arguments(item.get("args"))
        told = item.get("mcp")
        mcp = (
            (told[0], told[1])
            if isinstance(told, list) and len(told) == 2 and all(isinstance(one, str) for one in told)
            else mcp_of(tool)
        )
        self.opened(agent_id)
        call = self.calls[call_id] = OpenCall(call_id, tool, args, self.time, agent_id)
        self.by_agent.setdefault(agent_id, {})[call_id] = call
        if lookup(None, tool).kind == "agent":
            self.tasks[call_id] = call
        self.out.append(ToolBegin(call_id, tool, args, mcp, self.time, self.number, agent_id))
        return call

    def tool_end(self, agent_id: str, item: dict[str, Any]) -> None:
        call = self.tool_begin(agent_id, item)
        self.closed(call)
        self.out.append(
            ToolEnd(
                call.call_id,
                item.get("result"),
                item.get("status", "ok"),
                as_seconds(item.get("duration")),
                as_text(item.get("error")) or as_text(item.get("reason")),
                self.time,
                self.number,
                call.agent_id,
            )
        )

    def turn_complete(self, agent_id: str, item: dict[str, Any]) -> None:
        text = as_text(item.get("text")) or self.texts.pop(agent_id, "")
        if agent_id:
            self.end_agent(agent_id, text)
        else:
            self.end_turn(text)

    def end_agent(self, agent_id: str, text: str) -> None:
        if agent_id in self.known:
            self.known.discard(agent_id)
            self.close_calls(agent_id)
            self.out.append(SubagentEnd(text, self.time, self.number, agent_id))

    def end_turn(self, text: str) -> None:
        if self.turn:
            self.turn = False
            self.close_calls("")
            self.out.append(TurnEnd(text, self.time, self.number))

    def closed(self, call: OpenCall) -> None:
        del self.calls[call.call_id]
        own = self.by_agent[call.agent_id]
        del own[call.call_id]
        if not own:
            del self.by_agent[call.agent_id]
        self.tasks.pop(call.call_id, None)

    def close_calls(self, agent_id: str) -> None:
        for call in list(self.by_agent.get(agent_id, {}).values()):
            self.closed(call)
            self.out.append(call.end(None, "unknown", time=self.time, line=self.number))

    def failed(self, agent_id: str, item: dict[str, Any]) -> None:
        phase = as_text(item.get("phase"))
        if phase != "hook":  # the replay's own hooks fail of themselves
            self.out.append(
                Failure(item["error_type"], item["message"], phase, self.time, self.number, agent_id)
            )

    def host_event(self, agent_id: str, item: dict[str, Any]) -> None:
        kind = item["type"]
        properties = as_dict(item.get("properties"))
        if kind == "subagent.start":
            return  # its first event began it
        if kind == "subagent.stop":
            self.end_agent(agent_id, self.texts.pop(agent_id, ""))
            return
        self.out.append(HostEvent(kind, properties, self.time, self.number, agent_id))

    def session_end(self, agent_id: str, item: dict[str, Any]) -> None:
        self.finish(as_text(item.get("reason")) or "complete")

    def finish(self, reason: str = "") -> None:
        if self.ended:
            return
        if self.message is not None:
            self.prompt(self.message)
        cut = bool(self.calls)
        for agent_id in sorted(self.known):
            self.end_agent(agent_id, self.texts.pop(agent_id, ""))
        self.end_turn(self.texts.pop("", ""))
        self.ended = True
        reason = reason or ("interrupted" if cut else "complete")
        self.out.append(SessionFinish(reason, time=self.time, line=self.number))

    HANDLERS = {
        "on_message_received": message_received,
        "on_user_prompt_submit": user_prompt,
        "on_model_response": response,
        "on_tool_call_start": tool_begin,
        "pre_tool_execution": tool_begin,
        "post_tool_execution": tool_end,
        "on_turn_complete": turn_complete,
        "post_turn": turn_complete,
        "on_error": failed,
        "on_event": host_event,
        "on_session_end": session_end,
    }


def _attachments(item: dict[str, Any]) -> tuple[Any, ...]:
    attachments = item.get("attachments")
    return tuple(attachments) if isinstance(attachments, list) else ()
