"""Reads the session events that GitHub Copilot CLI records (``session-state/ID/events.jsonl``).

Source: the files of version 1.0.102, and the event types of its SDK for older
ones, whose tokens stand in ``assistant.usage``, in the message, or only in the
totals at the session's end.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from ..recorded import (
    Draft,
    Failure,
    HostEvent,
    OpenCall,
    Prompt,
    Response,
    Seen,
    SessionBegin,
    SessionFinish,
    Skipped,
    SubagentBegin,
    SubagentEnd,
    ToolBegin,
    TurnEnd,
    arguments,
    as_count,
    as_dict,
    as_text,
    moment,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..recorded import Line, Step
    from ..transcripts import Beside

NAME = "copilot"
LOOKED_FOR = 'lines {"type": "session.start"|"user.message"|"tool.execution_start", "data": {...}}'

_FAMILIES = frozenset(
    ("session", "user", "assistant", "tool", "hook", "subagent", "system", "skill", "permission", "model")
)


def sniff(objects: Sequence[dict[str, Any]]) -> bool:
    """Return whether one of these objects can only come from Copilot CLI."""
    return any(_ours(item) for item in objects)


def _ours(item: dict[str, Any]) -> bool:
    kind = item.get("type")
    if not isinstance(kind, str) or not isinstance(item.get("data"), dict):
        return False
    family, dot, _ = kind.partition(".")
    return bool(dot) and family in _FAMILIES


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
        session.feed(number, item)
        if out:
            yield from out
            out.clear()
    session.finish("")
    yield from out


_TOKENS = (
    ("inputTokens", "input_tokens"),
    ("outputTokens", "output_tokens"),
    ("cacheReadTokens", "cache_read_tokens"),
    ("cacheWriteTokens", "cache_write_tokens"),
    ("reasoningTokens", "reasoning_tokens"),
)
_SHELL = frozenset(
    ("bash", "powershell", "read_bash", "read_powershell", "write_bash", "write_powershell", "shell")
)
_EXITED = re.compile(r"<(?:shellId: \S+ )?(?:completed|exited) with exit code (-?\d{1,10})>\s*$")
_DENIED = ("denied", "rejected", "permission_denied")
_CANCELLED = ("cancelled", "canceled", "aborted", "abort")


class _Held(NamedTuple):
    """Tokens whose answer has not come yet."""

    request: str
    usage: dict[str, int]
    model: str
    stop_reason: str


class _Agent:
    """The main agent, or a sub-agent that is running."""

    __slots__ = ("call", "draft", "held", "id", "last", "request")

    def __init__(self, agent_id: str) -> None:
        self.id = agent_id
        self.call = ""  # id of the call that started it
        self.draft: Draft | None = None
        self.request = ""  # id of the model call that the draft comes from
        self.held: _Held | None = None
        self.last = ""


class _Session:
    def __init__(self) -> None:
        self.out: list[Step] = []
        self.seen = Seen()
        self.main = _Agent("")
        self.agents: dict[str, _Agent] = {}
        self.calls: dict[str, OpenCall] = {}
        self.requested: dict[str, ToolBegin] = {}  # calls that the model asked for and that did not start yet
        self.id = ""
        self.begun = False
        self.over = True
        self.model = ""
        self.records = False  # tokens come as usage records, before their answer
        self.counted: dict[str, int] = {}
        self.turn = False
        self.answered = False
        self.time: float | None = None
        self.number = 0

    def feed(self, number: int, item: dict[str, Any]) -> None:
        kind = as_text(item.get("type"))
        if kind.startswith("hook.") or (item.get("ephemeral") is True and kind != "assistant.usage"):
            return
        data = item.get("data")
        if not isinstance(data, dict):
            return
        identity = item.get("id")
        if isinstance(identity, str) and identity and self.seen.add(identity):
            return
        self.number = number
        self.time = moment(item.get("timestamp")) or self.time
        if kind in ("session.start", "session.resume"):
            self.begin(data, "resume" if kind == "session.resume" else "startup")
            return
        handle = self.HANDLERS.get(kind)
        if handle is None and kind != "subagent.started":
            return
        if self.over:
            self.begin({}, "resume" if self.begun else "startup")
        agent_id = as_text(item.get("agentId"))
        if handle is None:
            self.sub_start(agent_id, data)
        else:
            handle(self, self.agent(agent_id, data), data)

    def agent(self, agent_id: str, data: dict[str, Any]) -> _Agent:
        if agent_id:
            return self.agents.get(agent_id) or self.main
        # Older versions tell a sub-agent's events by the call that started it.
        parent = as_text(data.get("parentToolCallId"))
        if parent:
            return next((agent for agent in self.agents.values() if agent.call == parent), self.main)
        return self.main

    def begin(self, data: dict[str, Any], source: str) -> None:
        if not self.over:
            self.finish("resume")
        context = as_dict(data.get("context"))
        self.begun = True
        self.over = False
        self.model = as_text(data.get("selectedModel")) or self.model
        self.id = as_text(data.get("sessionId")) or self.id
        self.out.append(
            SessionBegin(
                self.id,
                as_text(context.get("cwd")),
                self.model,
                source,
                NAME,
                "main",
                self.time,
                self.number,
            )
        )

    # -- answers and their tokens

    def tell(self, agent: _Agent, step: Step) -> None:
        (self.out if agent.draft is None else agent.draft.waiting).append(step)

    def flush(self, agent: _Agent) -> None:
        draft = agent.draft
        if draft is None:
            return
        agent.draft = None
        if draft.texts:
            agent.last = draft.text
        self.add(draft.usage)
        self.out.extend(draft.steps())

    def add(self, usage: dict[str, int]) -> None:
        for name, tokens in usage.items():
            self.counted[name] = self.counted.get(name, 0) + tokens

    def let_go(self, agent: _Agent) -> None:
        """Tell what is held: the answer, and tokens of an answer that left nothing else."""
        self.flush(agent)
        held = agent.held
        if held is not None:
            agent.held = None
            self.add(held.usage)
            self.out.append(
                Response("", (), held.usage, held.stop_reason, held.model, self.time, self.number, agent.id)
            )
            if agent is self.main:
                self.turn = self.answered = True

    def usage(self, agent: _Agent, data: dict[str, Any]) -> None:
        record = data.get("usage")
        if isinstance(record, dict):
            self.records = True
            data = record
        usage = _usage(data)
        request = as_text(data.get("apiCallId"))
        if request and self.seen.add(("usage", request)):
            return  # told as another kind of event
        draft = agent.draft
        told = draft is not None and "input_tokens" in draft.usage
        other = bool(request and agent.request and agent.request != request)
        if draft is not None and not told and not other:
            draft.usage = usage
            draft.stop_reason = draft.stop_reason or as_text(data.get("finishReason"))
            self.flush(agent)
            return
        self.let_go(agent)
        agent.held = _Held(request, usage, as_text(data.get("model")), as_text(data.get("finishReason")))

    def message(self, agent: _Agent, data: dict[str, Any]) -> None:
        request = as_text(data.get("apiCallId"))
        draft = agent.draft
        if draft is None or not request or request != agent.request:
            self.flush(agent)
            held = agent.held
            if held is not None and held.request and request and held.request != request:
                self.let_go(agent)
                held = None
            draft = agent.draft = Draft(self.time, self.number, agent.id)
            agent.request = request
            if held is not None and (request or not held.request):
                draft.usage, draft.model, draft.stop_reason = held.usage, held.model, held.stop_reason
                agent.held = None
            elif not self.records and "outputTokens" in data:
                draft.usage = {"output_tokens": as_count(data.get("outputTokens"))}
        draft.model = as_text(data.get("model")) or draft.model or self.model
        text = as_text(data.get("content"))
        if text:
            draft.texts.append(text)
        requests = data.get("toolRequests")
        for index, one in enumerate(requests if isinstance(requests, list) else ()):
            if isinstance(one, dict):
                call_id = as_text(one.get("toolCallId")) or f"call-{self.number}-{index}"
                tool = as_text(one.get("name")) or "unknown"
                args = arguments(one.get("arguments"))
                draft.calls.append({"id": call_id, "tool": tool, "args": args})
                self.requested[call_id] = ToolBegin(
                    call_id, tool, args, _mcp(one), self.time, self.number, agent.id
                )
        if agent is self.main:
            self.turn = self.answered = True
        if "input_tokens" in draft.usage or self.records:
            self.flush(agent)

    # -- tools

    def tool_start(self, agent: _Agent, data: dict[str, Any]) -> None:
        call_id = as_text(data.get("toolCallId")) or f"call-{self.number}"
        self.requested.pop(call_id, None)
        tool = as_text(data.get("toolName")) or "unknown"
        args = arguments(data.get("arguments"))
        self.start(agent, ToolBegin(call_id, tool, args, _mcp(data), self.time, self.number, agent.id))

    def start(self, agent: _Agent, begin: ToolBegin) -> None:
        if self.seen.add(("call", begin.call_id)):
            return
        self.tell(agent, begin)
        self.calls[begin.call_id] = OpenCall(begin.call_id, begin.tool, begin.args, begin.time, agent.id)
        if agent is self.main:
            self.turn = True

    def close_calls(self, agent: _Agent, status: str) -> None:
        """The agent stops: calls without an end get one, also those that never started."""
        self.let_go(agent)
        for begin in [one for one in self.requested.values() if one.agent_id == agent.id]:
            del self.requested[begin.call_id]
            self.start(agent, begin)
        for call in [one for one in self.calls.values() if one.agent_id == agent.id]:
            del self.calls[call.call_id]
            self.out.append(call.end(None, status, time=self.time, line=self.number))

    def tool_complete(self, agent: _Agent, data: dict[str, Any]) -> None:
        call = self.calls.pop(as_text(data.get("toolCallId")), None)
        if call is None:
            return
        result: Any = data.get("result")
        error = ""
        if isinstance(result, dict) and isinstance(result.get("content"), str) and "contents" not in result:
            result = result["content"]
        if data.get("success") is False:
            about = as_dict(data.get("error"))
            error = as_text(about.get("message")) or as_text(data.get("error"))
            code = as_text(about.get("code"))
            status = "denied" if code in _DENIED else "cancelled" if code in _CANCELLED else "error"
            result = error if result is None else result
        else:
            status = "error" if _exit_code(call.tool, data, result) else "ok"
            error = as_text(result) if status == "error" else ""
        owner = self.agents.get(call.agent_id, self.main) if call.agent_id else self.main
        self.tell(owner, call.end(result, status, time=self.time, line=self.number, error=error))

    # -- sub-agents

    def sub_start(self, agent_id: str, data: dict[str, Any]) -> None:
        call_id = as_text(data.get("toolCallId"))
        agent_id = agent_id or call_id or f"agent-{self.number}"
        call = self.calls.get(call_id)
        parent = call.agent_id if call is not None else ""
        self.flush(self.agents.get(parent, self.main))
        child = self.agents[agent_id] = _Agent(agent_id)
        child.call = call_id
        name = as_text(data.get("agentName")) or as_text(data.get("agentDisplayName")) or agent_id
        prompt = as_text(call.args.get("prompt")) if call is not None else ""
        self.out.append(SubagentBegin(name, parent, prompt, self.time, self.number, agent_id))

    def sub_end(self, agent: _Agent, data: dict[str, Any]) -> None:
        call_id = as_text(data.get("toolCallId"))
        child = (
            agent if agent.id else next((one for one in self.agents.values() if one.call == call_id), None)
        )
        if child is None or child.id not in self.agents:
            return
        message = as_text(data.get("error"))
        if message:
            self.flush(child)
            self.out.append(Failure("subagent", message, "turn", self.time, self.number, child.id))
        self.end_agent(child)

    def end_agent(self, child: _Agent) -> None:
        self.close_calls(child, "unknown")
        del self.agents[child.id]
        self.out.append(SubagentEnd(child.last, self.time, self.number, child.id))

    # -- prompts and turns

    def user(self, agent: _Agent, data: dict[str, Any]) -> None:
        source = as_text(data.get("source"))
        if agent.id or source.startswith("agent-"):
            return  # the task of a sub-agent
        delivery = as_text(data.get("delivery"))
        if source not in ("", "user") and delivery not in ("idle", "queued"):
            return  # context that the program puts in, such as a skill's text
        self.let_go(self.main)
        if self.answered and delivery != "steering":
            self.end_turn("unknown")
        attachments = data.get("attachments")
        self.out.append(
            Prompt(
                as_text(data.get("content")),
                source or "user",
                tuple(attachments) if isinstance(attachments, list) else (),
                self.turn,
                self.time,
                self.number,
            )
        )
        self.turn = True

    def model_turn_end(self, agent: _Agent, data: dict[str, Any]) -> None:
        self.let_go(agent)

    def end_turn(self, status: str) -> None:
        self.close_calls(self.main, status)
        if self.turn:
            self.out.append(TurnEnd(self.main.last, self.time, self.number))
        self.turn = self.answered = False
        self.main.last = ""

    def abort(self, agent: _Agent, data: dict[str, Any]) -> None:
        for child in self.agents.values():
            self.close_calls(child, "cancelled")
        self.end_turn("cancelled")

    # -- the rest

    def error(self, agent: _Agent, data: dict[str, Any]) -> None:
        self.let_go(agent)
        kind = as_text(data.get("errorType")) or "error"
        self.out.append(
            Failure(kind, as_text(data.get("message")), "model", self.time, self.number, agent.id)
        )
        if agent is self.main:
            self.turn = self.answered = True

    def host_event(self, agent: _Agent, kind: str, properties: dict[str, Any]) -> None:
        self.tell(agent, HostEvent(kind, properties, self.time, self.number, agent.id))

    def compacted(self, agent: _Agent, data: dict[str, Any]) -> None:
        self.let_go(agent)
        if data.get("success") is not False:
            before = {"tokens_before": as_count(data.get("preCompactionTokens"))}
            self.host_event(agent, "compaction.after", before)

    def notified(self, agent: _Agent, data: dict[str, Any]) -> None:
        about = {
            "message": as_text(data.get("content")),
            "kind": as_text(as_dict(data.get("kind")).get("type")),
        }
        self.host_event(agent, "notification", about)

    def rewound(self, agent: _Agent, data: dict[str, Any]) -> None:
        self.host_event(agent, "session.rewind", {"to": as_text(data.get("upToEventId"))})

    def retried(self, agent: _Agent, data: dict[str, Any]) -> None:
        message = as_text(data.get("errorMessage")) or as_text(data.get("message"))
        self.host_event(agent, "model.retry", {"message": message})

    def model_change(self, agent: _Agent, data: dict[str, Any]) -> None:
        if agent is self.main:
            self.model = as_text(data.get("newModel")) or self.model

    def shutdown(self, agent: _Agent, data: dict[str, Any]) -> None:
        reason = "error" if data.get("shutdownType") == "error" else "complete"
        self.finish(reason, as_dict(data.get("modelMetrics")))

    def finish(self, reason: str, metrics: dict[str, Any] | None = None) -> None:
        if self.over:
            return
        self.over = True
        cut = bool(self.calls or self.requested)
        for child in list(self.agents.values()):
            self.end_agent(child)
        self.end_turn("unknown")
        beyond: dict[str, int] = {}
        for metric in (metrics or {}).values():
            for name, tokens in _usage(as_dict(as_dict(metric).get("usage"))).items():
                beyond[name] = beyond.get(name, 0) + tokens
        # The totals cover the whole session, earlier runs of it included.
        beyond = {name: tokens - self.counted.get(name, 0) for name, tokens in beyond.items()}
        beyond = {name: tokens for name, tokens in beyond.items() if tokens > 0}
        self.add(beyond)
        reason = reason or ("interrupted" if cut else "complete")
        self.out.append(SessionFinish(reason, beyond, self.time, self.number))

    HANDLERS = {
        "assistant.message": message,
        "assistant.turn_end": model_turn_end,
        "assistant.usage": usage,
        "session.usage_record": usage,
        "user.message": user,
        "tool.execution_start": tool_start,
        "tool.execution_complete": tool_complete,
        "subagent.completed": sub_end,
        "subagent.failed": sub_end,
        "abort": abort,
        "session.error": error,
        "session.compaction_complete": compacted,
        "session.model_change": model_change,
        "session.snapshot_rewind": rewound,
        "session.shutdown": shutdown,
        "system.notification": notified,
        "model.call_failure": retried,
    }


def _usage(data: dict[str, Any]) -> dict[str, int]:
    return {ours: as_count(data.get(theirs)) for theirs, ours in _TOKENS if theirs in data}


def _mcp(data: dict[str, Any]) -> tuple[str, str] | None:
    server, tool = as_text(data.get("mcpServerName")), as_text(data.get("mcpToolName"))
    return (server, tool) if server and tool else None


def _exit_code(tool: str, data: dict[str, Any], result: object) -> int:
    """Return the exit code of a command; 0 where there is none."""
    code = as_dict(data.get("shellExecution")).get("exitCode")
    if isinstance(code, int):
        return code
    if tool not in _SHELL:
        return 0
    code = as_dict(as_dict(data.get("toolTelemetry")).get("metrics")).get("exit_code")
    if isinstance(code, (int, float)):
        return int(code) if abs(code) < 1e10 else 1  # not so for NaN
    found = _EXITED.search(result) if isinstance(result, str) else None
    return int(found.group(1)) if found else 0
