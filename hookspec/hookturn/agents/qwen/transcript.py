"""Reads the chats that Qwen Code records (``projects/NAME/chats/SESSION.jsonl``).

Source: the files of version 0.24.4: Claude Code's envelope around Gemini's
messages, a line of its own for each tool result, and sub-agents in files of
their own under ``subagents/SESSION/``.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from ...spec.tools import mcp_of
from ..recorded import (
    Draft,
    Failure,
    HostEvent,
    OpenCall,
    Prompt,
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
    as_seconds,
    as_text,
    moment,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..recorded import Line, Step
    from ..transcripts import Beside

NAME = "qwen"
LOOKED_FOR = 'lines {"type": "user"|"assistant"|"tool_result", "message": {"role", "parts"}, "sessionId"}'

_TYPES = ("user", "assistant", "tool_result")
_NOTIFICATION = "<task-notification>"
_EXITED = re.compile(r"^Exit Code: (-?\d{1,10})$", re.M)


def sniff(objects: Sequence[dict[str, Any]]) -> bool:
    """Return whether one of these objects can only come from Qwen Code."""
    return any(_ours(item) for item in objects)


def _ours(item: dict[str, Any]) -> bool:
    if item.get("type") in _TYPES:
        message = item.get("message")
        return isinstance(message, dict) and isinstance(message.get("parts"), list) and "uuid" in item
    return item.get("type") == "system" and "systemPayload" in item and "uuid" in item


def beside(path: str, limit: int) -> Beside:
    """Return the recordings of the session's sub-agents: ``../subagents/SESSION/agent-ID.jsonl``."""
    from os.path import basename, dirname, join, splitext

    from ..beside import Files

    own = join(dirname(dirname(path)), "subagents", splitext(basename(path))[0])
    return Files(own, prefix="agent-", skip=path, limit=limit)


def read(lines: Iterable[Line], beside: Beside | None = None) -> Iterator[Step]:
    """Yield the steps of the session, in order, in constant memory.

    Parameters:
        lines: the file's lines.
        beside: the recordings of its sub-agents.
    """
    session = _Session(beside)
    yield from session.lines(lines)
    yield from session.finish()


class _Session:
    def __init__(self, beside: Beside | None) -> None:
        self.beside = beside
        self.out: list[Step] = []
        self.nested: list[tuple[str, str, str]] = []  # sub-agents whose file is read now: id, name, task
        self.behind: list[Step] = []  # what comes after them
        self.seen = Seen()
        self.begun = False
        self.agent = ""  # id of the sub-agent whose lines are read
        self.draft: Draft | None = None
        self.calls: dict[str, OpenCall] = {}
        self.turn = False
        self.answered = False
        self.last: dict[str, str] = {}
        self.time: float | None = None
        self.number = 0

    def lines(self, lines: Iterable[Line]) -> Iterator[Step]:
        for number, item in lines:
            if isinstance(item, Skipped):
                yield item
                continue
            self.feed(number, item)
            yield from self.emit()

    def emit(self) -> Iterator[Step]:
        yield from self.out
        self.out.clear()
        while self.nested:
            yield from self.follow(*self.nested.pop(0))
        yield from self.behind
        self.behind.clear()

    def follow(self, agent_id: str, name: str, prompt: str) -> Iterator[Step]:
        source = self.beside.open(agent_id) if self.beside is not None else None
        if source is None:
            return
        behind, self.behind = self.behind, []
        parent, self.agent = self.agent, agent_id
        yield SubagentBegin(name, parent, prompt, self.time, self.number, agent_id)
        yield from self.lines(source)
        self.close_calls()
        yield from self.emit()
        yield SubagentEnd(self.last.pop(agent_id, ""), self.time, self.number, agent_id)
        self.agent = parent
        self.behind = behind

    def feed(self, number: int, item: dict[str, Any]) -> None:
        kind = item.get("type")
        if kind not in _TYPES and kind != "system":
            return
        uuid = item.get("uuid")
        if isinstance(uuid, str) and self.seen.add(uuid):
            return
        self.number = number
        self.time = moment(item.get("timestamp")) or self.time
        if not self.begun:
            self.begun = True
            agent = as_text(item.get("agentName")) or "main"
            self.out.append(
                SessionBegin(
                    as_text(item.get("sessionId")),
                    as_text(item.get("cwd")),
                    "",
                    "startup",
                    NAME,
                    agent,
                    self.time,
                    number,
                )
            )
        if kind == "assistant":
            self.assistant(item)
        elif kind == "tool_result":
            self.result(item)
        elif kind == "user":
            self.user(item)
        else:
            self.system(item)

    def flush(self) -> None:
        draft, self.draft = self.draft, None
        if draft is not None:
            if draft.texts:
                self.last[draft.agent_id] = draft.text
            self.out.extend(draft.steps())

    def user(self, item: dict[str, Any]) -> None:
        parts = _parts(item)
        text = "".join(as_text(part.get("text")) for part in parts)
        attachments = tuple(part for part in parts if "inlineData" in part or "fileData" in part)
        if self.agent or not (text or attachments):
            return
        origin = "user"
        if text.startswith(_NOTIFICATION):
            origin = "task-notification"
        elif item.get("provenance") not in (None, "real_user"):
            return
        self.flush()
        if self.answered:
            self.end_turn()
        self.out.append(Prompt(text, origin, attachments, self.turn, self.time, self.number))
        self.turn = True

    def assistant(self, item: dict[str, Any]) -> None:
        usage = item.get("usageMetadata")
        draft = self.draft
        # An answer may come as a line with its tokens and one with its calls.
        if draft is None or (draft.usage and isinstance(usage, dict)) or draft.calls:
            self.flush()
            draft = self.draft = Draft(self.time, self.number, self.agent)
        draft.model = as_text(item.get("model")) or draft.model
        if isinstance(usage, dict):
            draft.usage = {
                "input_tokens": as_count(usage.get("promptTokenCount")),
                "output_tokens": as_count(usage.get("candidatesTokenCount")),
                "cache_read_tokens": as_count(usage.get("cachedContentTokenCount")),
                "cache_write_tokens": 0,
                "reasoning_tokens": as_count(usage.get("thoughtsTokenCount")),
            }
        if not self.agent:
            self.turn = self.answered = True
        for index, part in enumerate(_parts(item)):
            call = part.get("functionCall")
            if isinstance(call, dict):
                call_id = as_text(call.get("id")) or f"call-{self.number}-{index}"
                if self.seen.add(("call", call_id)):
                    continue
                tool, args = as_text(call.get("name")) or "unknown", arguments(call.get("args"))
                draft.calls.append({"id": call_id, "tool": tool, "args": args})
                draft.waiting.append(
                    ToolBegin(call_id, tool, args, mcp_of(tool), self.time, self.number, self.agent)
                )
                self.calls[call_id] = OpenCall(call_id, tool, args, self.time, self.agent)
            elif part.get("text") and not part.get("thought"):
                draft.texts.append(as_text(part["text"]))

    def result(self, item: dict[str, Any]) -> None:
        about = as_dict(item.get("toolCallResult"))
        responses = [as_dict(part.get("functionResponse")) for part in _parts(item)]
        response = next((one for one in responses if one), {})
        call = self.calls.pop(as_text(about.get("callId")) or as_text(response.get("id")), None)
        if call is None:
            return
        self.flush()
        output = as_dict(response.get("response"))
        words = as_text(output.get("error")) or as_text(output.get("output"))
        status = "ok"
        if about.get("status") in ("error", "cancelled") or (not about.get("status") and output.get("error")):
            kind = as_text(about.get("errorType"))
            status = "cancelled" if about.get("status") == "cancelled" else "error"
            if "denied" in kind or "declined" in kind or kind == "blocked_by_hook":
                status = "denied"
        elif call.tool == "run_shell_command":
            found = _EXITED.search(words)
            if found and int(found.group(1)):
                status = "error"
        milliseconds = as_seconds(about.get("durationMs"))
        end = call.end(
            response.get("response"),
            status,
            time=self.time,
            line=self.number,
            error=words if status != "ok" else "",
            duration=None if milliseconds is None else milliseconds / 1000,
        )
        if call.tool in ("agent", "task") and self.beside is not None:
            for agent_id in self.beside.rest():
                if agent_id.endswith(call.call_id):
                    name = as_text(call.args.get("subagent_type")) or agent_id
                    self.nested.append((agent_id, name, as_text(call.args.get("prompt"))))
            self.behind.append(end)
        else:
            self.out.append(end)

    def system(self, item: dict[str, Any]) -> None:
        payload = as_dict(item.get("systemPayload"))
        if item.get("subtype") == "chat_compression":
            self.flush()
            self.out.append(HostEvent("compaction.after", {}, self.time, self.number, self.agent))
        event = as_dict(payload.get("uiEvent"))
        if event.get("event.name") == "qwen-code.api_error":
            self.flush()
            kind, message = as_text(event.get("error_type")), as_text(event.get("error_message"))
            self.out.append(
                Failure(kind or "api_error", message, "model", self.time, self.number, self.agent)
            )
            self.turn = self.answered = True

    def close_calls(self) -> None:
        self.flush()
        for call in [one for one in self.calls.values() if one.agent_id == self.agent]:
            del self.calls[call.call_id]
            self.out.append(call.end(None, "unknown", time=self.time, line=self.number))

    def end_turn(self) -> None:
        self.close_calls()
        if self.turn:
            self.out.append(TurnEnd(self.last.pop("", ""), self.time, self.number))
        self.turn = self.answered = False

    def finish(self) -> Iterator[Step]:
        if not self.begun:
            return
        self.flush()
        yield from self.emit()
        cut = bool(self.calls)
        for agent_id in self.beside.rest() if self.beside is not None else ():
            about = self.beside.about(agent_id) if self.beside is not None else {}
            name = as_text(about.get("agentType")) or as_text(about.get("agentName")) or agent_id
            self.nested.append((agent_id, name, ""))
        yield from self.emit()
        self.end_turn()
        reason = "interrupted" if cut else "complete"
        self.out.append(SessionFinish(reason, time=self.time, line=self.number))
        yield from self.emit()


def _parts(item: dict[str, Any]) -> list[dict[str, Any]]:
    parts = as_dict(item.get("message")).get("parts")
    return [part for part in parts if isinstance(part, dict)] if isinstance(parts, list) else []
