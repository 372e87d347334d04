"""Reads the chats that Gemini CLI records: one record a line, or the single JSON document of older versions.

Source: the files of version 0.61.0, and the recording service of the versions
before it. A message's record is written again as it grows; ``$set`` sends the
whole history again after a resumption or a compression.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

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
    as_text,
    moment,
)
from .tools import mcp_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from ..recorded import Line, Step
    from ..transcripts import Beside

NAME = "gemini"
LOOKED_FOR = (
    'a line or a document {"sessionId", "projectHash"}, lines {"id", "type": "user"|"gemini", "content"}'
)

_TYPES = ("user", "gemini", "info", "error", "warning")


def sniff(objects: Sequence[dict[str, Any]]) -> bool:
    """Return whether one of these objects can only come from Gemini CLI."""
    return any(_ours(item) for item in objects)


def _ours(item: dict[str, Any]) -> bool:
    if "sessionId" in item:
        messages = item.get("messages")
        if isinstance(messages, list):
            return all(isinstance(one, dict) and one.get("type") in _TYPES for one in messages)
        return "projectHash" in item
    if "$set" in item or "$rewindTo" in item:
        return True
    return item.get("type") in _TYPES and "content" in item and "id" in item and "message" not in item


def beside(path: str, limit: int) -> Beside:
    """Return the recordings of the session's sub-agents: ``chats/SESSION/AGENT.jsonl``."""
    import os

    from ..beside import Files

    folder = os.path.dirname(path)
    # session-2026-11-30T19-18-6d0f949e.jsonl: the folder has the session's whole id.
    short = os.path.splitext(os.path.basename(path))[0].rpartition("-")[2]
    own = ""
    if len(short) >= 8:
        try:
            with os.scandir(folder or ".") as entries:
                own = next(
                    (
                        entry.path
                        for entry in sorted(entries, key=lambda entry: entry.name)
                        if entry.name.startswith(short) and entry.is_dir(follow_symlinks=False)
                    ),
                    "",
                )
        except OSError:
            own = ""  # nothing beside it: a session without sub-agents
    return Files(own or os.path.join(folder, "no-such-session"), skip=path, limit=limit)


def read(lines: Iterable[Line], beside: Beside | None = None) -> Iterator[Step]:
    """Yield the steps of the session, in order, in constant memory.

    Parameters:
        lines: the file's lines.
        beside: the recordings of its sub-agents.
    """
    session = _Session(beside, "")
    yield from session.lines(lines)
    yield from session.finish()


# Messages that the program puts into the history in the user's place.
_SYNTHETIC = (
    "<session_context>",
    "<state_snapshot>",
    "<hook_context>",
    "This is the Gemini CLI. We are setting up the context for our chat.",
    "This is the Gemini CLI.\n",
)
_SHELL = ("run_shell_command", "shell")
_DENIED = re.compile(
    r"Tool execution (?:blocked|denied)|.*(?:User did not allow tool call|denied by policy|rejected by user)",
    re.S,
)
_TRAILER = re.compile(
    r"(?:Exit Code|Signal|Error|Background PIDs|Process Group PGID): .*|</untrusted_context>|\s*"
)


class _Nested:
    """Stands among the steps where a sub-agent's own recording is to be read."""

    __slots__ = ("begin",)

    def __init__(self, begin: SubagentBegin) -> None:
        self.begin = begin


class _Session:
    """The state of one file: the session's own, or a sub-agent's (then only what happens inside it is told)."""

    def __init__(self, beside: Beside | None, agent_id: str, seen: Seen | None = None) -> None:
        self.beside = beside
        self.agent_id = agent_id
        self.out: list[Step | _Nested] = []
        self.seen = Seen() if seen is None else seen
        self.begun = bool(agent_id)
        self.time: float | None = None
        self.number = 0
        self.held: dict[str, Any] | None = None  # the model's message that may still grow
        self.held_at: tuple[float | None, int] = (None, 0)
        self.calls: dict[str, OpenCall] = {}
        self.turn = False
        self.answered = False
        self.last = ""
        self.kind = ""

    def lines(self, lines: Iterable[Line]) -> Iterator[Step]:
        for number, item in lines:
            if isinstance(item, Skipped):
                yield item
                continue
            self.number = number
            self.feed(item)
            if self.out:
                yield from self.emit()

    def emit(self) -> Iterator[Step]:
        out, self.out = self.out, []
        for step in out:
            if isinstance(step, _Nested):
                yield from self.nested(step.begin)
            else:
                yield step

    def nested(self, begin: SubagentBegin) -> Iterator[Step]:
        yield begin
        text = ""
        source = self.beside.open(begin.agent_id) if self.beside is not None else None
        if source is not None:
            inner = _Session(self.beside, begin.agent_id, self.seen)
            yield from inner.lines(source)
            yield from inner.finish()
            text = inner.last
        yield SubagentEnd(text, begin.time, begin.line, begin.agent_id)

    def feed(self, item: dict[str, Any]) -> None:
        if "$set" in item:
            messages = as_dict(item["$set"]).get("messages")
            for message in messages if isinstance(messages, list) else ():
                if isinstance(message, dict):
                    self.history(message)
        elif "$rewindTo" in item:
            self.flush()
            self.out.append(
                HostEvent(
                    "session.rewind",
                    {"to": as_text(item["$rewindTo"])},
                    self.time,
                    self.number,
                    self.agent_id,
                )
            )
        elif "sessionId" in item and "type" not in item:
            self.begin(item)
            messages = item.get("messages")
            for message in messages if isinstance(messages, list) else ():
                if isinstance(message, dict):
                    self.message(message)
        else:
            self.message(item)

    def begin(self, item: dict[str, Any]) -> None:
        self.time = moment(item.get("startTime")) or self.time
        if self.agent_id:
            return
        resumed = self.begun
        if resumed:
            self.end_turn()
            self.out.append(SessionFinish("resume", time=self.time, line=self.number))
        self.begun = True
        agent = "subagent" if item.get("kind") == "subagent" else "main"
        folders = item.get("directories")
        cwd = as_text(folders[0]) if isinstance(folders, list) and folders else ""
        self.out.append(
            SessionBegin(
                as_text(item.get("sessionId")),
                cwd,
                "",
                "resume" if resumed else "startup",
                NAME,
                agent,
                self.time,
                self.number,
            )
        )

    # -- messages

    def history(self, message: dict[str, Any]) -> None:
        """A message of the history that is sent again: most were told before, some were never said."""
        identity = as_text(message.get("id"))
        held = self.held
        if held is not None and identity == held.get("id"):
            return
        kind = message.get("type")
        if kind == "gemini" and not message.get("tokens"):
            return  # told before, or made by a compression
        text = _split(message.get("content"))[0]
        if kind == "user":
            if text.lstrip().startswith("<state_snapshot>") and not self.seen.add(("snapshot", text)):
                self.flush()
                properties = {"summary": text}
                self.out.append(
                    HostEvent("compaction.after", properties, self.time, self.number, self.agent_id)
                )
            if not text or self.seen.add(("text", text)):
                return
        self.message(message)

    def message(self, message: dict[str, Any]) -> None:
        kind = message.get("type")
        identity = as_text(message.get("id"))
        held = self.held
        if kind == "gemini":
            if held is not None and identity and held.get("id") == identity:
                self.held = message
                return
            self.flush()
            if identity and self.seen.add(("message", identity)):
                self.more(message)
                return
            self.held = message
            self.time = moment(message.get("timestamp")) or self.time
            self.held_at = (self.time, self.number)
            self.turn = self.answered = True
            return
        self.flush()
        if identity and self.seen.add(("message", identity)):
            return
        self.time = moment(message.get("timestamp")) or self.time
        if not self.begun:
            self.begin({})
        if kind == "user":
            self.user(message)
        elif kind == "error":
            text = _split(message.get("content"))[0]
            self.out.append(Failure("error", text, "model", self.time, self.number, self.agent_id))
            self.turn = self.answered = True

    def user(self, message: dict[str, Any]) -> None:
        text, attachments, responses = _split(message.get("content"))
        for response in responses:
            call = self.calls.pop(as_text(response.get("id")), None)
            if call is not None:
                self.end(call, response.get("response"), "", self.time)
        shown = message.get("displayContent")
        if shown:
            text = _split(shown)[0] or text
        if responses or self.agent_id or not (text or attachments):
            return
        if text.lstrip().startswith(_SYNTHETIC):
            return
        self.seen.add(("text", text))
        if self.answered:
            self.end_turn()
        self.out.append(Prompt(text, "user", tuple(attachments), self.turn, self.time, self.number))
        self.turn = True

    def flush(self) -> None:
        """Let the model's message go: it grows no more."""
        message = self.held
        if message is None:
            return
        self.held = None
        if not self.begun:
            self.begin({})
        draft = Draft(*self.held_at, self.agent_id)
        text, _, _ = _split(message.get("content"))
        if text:
            draft.texts.append(text)
            self.last = text
        tokens = message.get("tokens")
        if isinstance(tokens, dict):
            draft.usage = {
                "input_tokens": as_count(tokens.get("input")),
                "output_tokens": as_count(tokens.get("output")),
                "cache_read_tokens": as_count(tokens.get("cached")),
                "cache_write_tokens": 0,
                "reasoning_tokens": as_count(tokens.get("thoughts")),
            }
        draft.model = as_text(message.get("model"))
        at = len(self.out)
        self.tool_calls(message, draft)
        behind = self.out[at:]
        del self.out[at:]
        self.out.extend(draft.steps())
        self.out.extend(behind)

    def more(self, message: dict[str, Any]) -> None:
        """A message that was let go came again: only its new calls are news."""
        draft = Draft(self.time, self.number, self.agent_id)
        self.tool_calls(message, draft)

    def tool_calls(self, message: dict[str, Any], draft: Draft) -> None:
        calls = message.get("toolCalls")
        for index, call in enumerate(calls if isinstance(calls, list) else ()):
            if not isinstance(call, dict):
                continue
            call_id = as_text(call.get("id")) or f"call-{self.number}-{index}"
            if self.seen.add(("call", call_id)):
                known = self.calls.get(call_id)
                if known is not None:
                    self.finish_call(known, call)
                continue
            tool = as_text(call.get("name")) or "unknown"
            args = arguments(call.get("args"))
            draft.calls.append({"id": call_id, "tool": tool, "args": args})
            self.out.append(
                ToolBegin(call_id, tool, args, mcp_of(tool), draft.time, draft.line, self.agent_id)
            )
            begun = self.calls[call_id] = OpenCall(call_id, tool, args, draft.time, self.agent_id)
            self.finish_call(begun, call)

    def finish_call(self, call: OpenCall, record: dict[str, Any]) -> None:
        agent_id = as_text(record.get("agentId"))
        if agent_id and not self.seen.add(("agent", agent_id)):
            shown = as_dict(record.get("resultDisplay"))
            name = as_text(call.args.get("agent_name")) or as_text(shown.get("agentName")) or call.tool
            prompt = next(
                (as_text(call.args[key]) for key in ("prompt", "objective", "request") if key in call.args),
                "",
            )
            begin = SubagentBegin(name, self.agent_id, prompt, call.time, self.number, agent_id)
            self.out.append(_Nested(begin))
        status = as_text(record.get("status"))
        if status not in ("success", "error", "cancelled"):
            return  # still waiting or running when this was recorded
        result = record.get("result")
        responses = _split(result)[2]
        if len(responses) == 1 and isinstance(result, list) and len(result) == 1:
            result = responses[0].get("response")
        if result is None:
            result = record.get("resultDisplay")
        del self.calls[call.call_id]
        self.end(call, result, status, moment(record.get("timestamp")) or self.time)

    def end(self, call: OpenCall, result: object, told: str, time: float | None) -> None:
        output = as_dict(result)
        words = as_text(output.get("error")) or as_text(output.get("output")) or as_text(result)
        if not words and isinstance(result, list):
            words = "\n".join(
                as_text(as_dict(one.get("response")).get("error"))
                or as_text(as_dict(one.get("response")).get("output"))
                for one in _split(result)[2]
            )
        status, error = "ok", ""
        if told in ("error", "cancelled") or (not told and output.get("error")):
            status = "denied" if _DENIED.match(words) else "cancelled" if told == "cancelled" else "error"
        elif call.tool in _SHELL and _exit_code(words):
            status = "error"
        if status != "ok":
            error = words
        self.out.append(call.end(result, status, time=time, line=self.number, error=error))

    # -- ends

    def end_turn(self) -> None:
        self.flush()
        for call in self.calls.values():
            self.out.append(call.end(None, "unknown", time=self.time, line=self.number))
        self.calls.clear()
        if self.turn and not self.agent_id:
            self.out.append(TurnEnd(self.last, self.time, self.number))
            self.last = ""
        self.turn = self.answered = False

    def finish(self) -> Iterator[Step]:
        self.flush()
        yield from self.emit()
        if not self.agent_id and self.beside is not None and self.begun:
            for agent_id in self.beside.rest():
                self.out.append(_Nested(SubagentBegin("subagent", "", "", self.time, self.number, agent_id)))
            yield from self.emit()
        cut = bool(self.calls)
        self.end_turn()
        if self.begun and not self.agent_id:
            reason = "interrupted" if cut else "complete"
            self.out.append(SessionFinish(reason, time=self.time, line=self.number))
        yield from self.emit()


def _split(content: object) -> tuple[str, list[Any], list[dict[str, Any]]]:
    """Split a message's content into its text, its attachments and its function responses."""
    if isinstance(content, str):
        return content, [], []
    texts: list[str] = []
    attachments: list[Any] = []
    responses: list[dict[str, Any]] = []
    parts = content if isinstance(content, list) else [content]
    for part in parts:
        if isinstance(part, str):
            texts.append(part)
        elif isinstance(part, dict):
            if isinstance(part.get("text"), str):
                if not part.get("thought") and not (texts and part["text"].startswith("<hook_context>")):
                    texts.append(part["text"])
            elif isinstance(part.get("functionResponse"), dict):
                responses.append(part["functionResponse"])
            elif "inlineData" in part or "fileData" in part:
                attachments.append(part)
    return "".join(texts), attachments, responses


def _exit_code(words: str) -> int:
    """Return the exit code that stands at the end of the shell tool's output; 0 where none does."""
    for line in reversed(words.rsplit("\n", 12)):
        if not _TRAILER.fullmatch(line):
            break
        key, _, value = line.partition(": ")
        if key in ("Exit Code", "Signal"):
            try:
                code = int(value)
            except ValueError:
                continue  # "(none)"
            if code:
                return code
    return 0
