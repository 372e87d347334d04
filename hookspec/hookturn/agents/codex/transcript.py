"""Reads the rollouts that Codex records, of version 0.171.0 and back to the first ones without envelopes.

A rollout tells most things twice: as the item that the model was sent or sent
(``response_item``) and as the event that the user saw (``event_msg``). Calls,
results and answers come from the items; prompts from the events, since the items
also hold context that nobody typed; the other side stands in where one is missing.
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

NAME = "codex"
LOOKED_FOR = 'lines {"type": "session_meta"|"response_item"|"event_msg"|"turn_context", "payload"}'

_ENVELOPES = frozenset(
    ("session_meta", "response_item", "event_msg", "turn_context", "compacted", "world_state",
     "token_usage_record", "inter_agent_communication")
)  # fmt: skip
_BARE = frozenset(
    ("message", "reasoning", "function_call", "function_call_output", "custom_tool_call",
     "custom_tool_call_output", "local_shell_call", "web_search_call")
)  # fmt: skip


def sniff(objects: Sequence[dict[str, Any]]) -> bool:
    """Return whether one of these objects can only come from Codex."""
    return any(_ours(item) for item in objects)


def _ours(item: dict[str, Any]) -> bool:
    kind = item.get("type")
    if isinstance(item.get("payload"), dict):
        return isinstance(kind, str) and kind in _ENVELOPES
    if kind == "message":
        content = item.get("content")
        return "role" in item and isinstance(content, list) and "sessionId" not in item
    if kind in ("function_call", "function_call_output", "local_shell_call"):
        return "call_id" in item or "action" in item
    return item.get("record_type") == "state" or (
        kind is None and "instructions" in item and "id" in item and "timestamp" in item
    )


def read(lines: Iterable[Line], beside: Beside | None = None) -> Iterator[Step]:
    """Yield the steps of the session, in order, in constant memory.

    Parameters:
        lines: the file's lines.
        beside: not used: a sub-agent's rollout is a session of its own.
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
    session.finish()
    yield from out


# Context that is put into user messages, and is no prompt.
_CONTEXT = (
    "<environment_context>",
    "<ENVIRONMENT_CONTEXT>",
    "<user_instructions>",
    "# AGENTS.md instructions",
    "<INSTRUCTIONS>",
    "<permissions instructions>",
    "<collaboration_mode>",
    "<skills_instructions>",
    "<skill>",
    "<turn_aborted>",
    "<user_shell_command>",
    "<subagent_notification>",
    "<hook_prompt",
    "<codex_internal",
    "<recommended_plugins>",
)
_NOTIFICATION = "<subagent_notification>"

_USAGE = (
    ("input_tokens", "input_tokens"),
    ("output_tokens", "output_tokens"),
    ("cached_input_tokens", "cache_read_tokens"),
    ("cache_write_input_tokens", "cache_write_tokens"),
    ("reasoning_output_tokens", "reasoning_tokens"),
)

_EXITED = re.compile(r"^(?:Process exited with code|Exit code:) (-?\d{1,10})\s*$", re.M)
_RUNNING = re.compile(r"^Process running with session ID ", re.M)
_DENIED = (
    "Command blocked by PreToolUse hook",
    "Tool call blocked by PreToolUse hook",
    "exec command rejected by user",
    "patch rejected by user",
    "rejected by user",
    "user rejected MCP tool call",
    "user cancelled MCP tool call",
)
# exec_command failed for `...`: CreateProcess { message: "Rejected(\\"rejected by user\\")" }
_REFUSED = re.compile(r'exec_command failed for .*Rejected\((?!\\*"Failed to create)', re.S)
_CANCELLED = re.compile(r"(?:Wall time: .*\n)?(?:command )?aborted(?: by user)?\b")
_FAILED = (
    "apply_patch verification failed",
    "failed to parse function arguments",
    "unsupported call: ",
    "unsupported custom tool call: ",
    "execution error",
    "exec_command failed",
    "write_stdin failed",
    "failed in sandbox",
    "tool call error",
    "err: ",
    "Error: ",
)


class _Told:
    """What an event tells about how a call ended."""

    __slots__ = ("code", "denied", "duration", "failed")

    def __init__(self, code: int | None, failed: bool, denied: bool, duration: float | None) -> None:
        self.code = code
        self.failed = failed
        self.denied = denied
        self.duration = duration


class _Session:
    def __init__(self) -> None:
        self.out: list[Step] = []
        self.seen = Seen()
        self.begun = False
        self.model = ""
        self.time: float | None = None
        self.number = 0
        self.turn = False
        self.bounded = False  # the rollout says where turns begin and end
        self.answered = False
        self.last = ""
        # the answer that is being read
        self.draft: Draft | None = None
        self.outputs = False  # results came behind it
        self.early = False  # its tokens came before it
        self.held: dict[str, int] = {}  # tokens whose answer has not come yet
        self.counting = ""  # "record" or "total": where tokens come from
        self.total: dict[str, int] | None = None
        # prompts
        self.candidates: list[Prompt] = []  # items that may be prompts, until an event says so
        self.surplus = 0  # events whose item has not come yet
        self.events = False  # prompts come as events in this rollout
        self.twin = ("", "")  # kind and text of the last prompt's event
        # answers that only events tell
        self.items = False
        self.spoken: list[tuple[str, float | None, int]] = []
        # calls
        self.calls: dict[str, OpenCall] = {}
        self.told: dict[str, _Told] = {}
        self.running: dict[str, Any] = {}  # output of calls whose command still ran when they returned
        self.agents: dict[str, bool] = {}

    def feed(self, number: int, item: dict[str, Any]) -> None:
        kind = item.get("type")
        payload = item.get("payload")
        if not isinstance(payload, dict):
            payload = item
            if isinstance(kind, str) and kind in _BARE:
                kind = "response_item"
            elif kind is None and "id" in item:
                kind = "session_meta"
            else:
                return
        self.number = number
        self.time = moment(item.get("timestamp")) or self.time
        if kind == "response_item":
            self.begin({})
            self.item(payload, as_text(payload.get("type")))
        elif kind == "event_msg":
            self.begin({})
            self.event(payload, as_text(payload.get("type")))
        elif kind == "token_usage_record":
            self.counting = "record"
            self.tokens(_usage(as_dict(payload.get("usage"))), after=True)
        elif kind == "turn_context":
            self.model = as_text(payload.get("model")) or self.model
        elif kind == "session_meta":
            self.begin(payload)
        elif kind == "compacted":
            self.flush()
            properties = {"summary": as_text(payload.get("message"))}
            self.out.append(HostEvent("compaction.after", properties, self.time, number))

    def begin(self, meta: dict[str, Any]) -> None:
        if self.begun:
            return  # a forked session repeats the head of the one it comes from
        self.begun = True
        source = as_dict(as_dict(meta.get("source")).get("subagent"))
        spawned = as_dict(source.get("thread_spawn")) or source
        agent = as_text(spawned.get("agent_role")) or as_text(spawned.get("agent_nickname"))
        agent = agent or as_text(meta.get("agent_role")) or as_text(meta.get("agent_nickname"))
        if not agent:
            name = as_dict(meta.get("source")).get("subagent")
            agent = name if isinstance(name, str) and name else "main"
        self.out.append(
            SessionBegin(
                as_text(meta.get("id")) or as_text(meta.get("session_id")),
                as_text(meta.get("cwd")),
                as_text(meta.get("model")) or self.model,
                "resume" if meta.get("forked_from_id") else "startup",
                NAME,
                agent,
                self.time,
                self.number,
            )
        )

    # -- the answer that is being read, and its tokens

    def open_draft(self) -> Draft:
        draft = self.draft
        if draft is not None:
            complete = not self.early if draft.usage else self.outputs and not self.counting
            if complete:
                self.flush()
                draft = None
        if draft is None:
            self.settle()
            draft = self.draft = Draft(self.time, self.number)
            self.outputs = self.early = False
            if self.held:
                draft.usage, self.held, self.early = self.held, {}, True
        draft.model = self.model
        self.turn = self.answered = True
        return draft

    def tokens(self, usage: dict[str, int], *, after: bool) -> None:
        """Tokens of one answer: they come behind its items, in some versions before them."""
        draft = self.draft
        if draft is not None and not draft.usage:
            draft.usage = usage
            self.early = False
            return
        if draft is None and self.spoken and not self.items and not self.held:
            self.held = usage
            self.flush()  # what events told is the answer of these tokens
            return
        self.flush()
        if self.held:
            self.bare(self.held)
            self.held = {}
        if after:
            self.bare(usage)
        else:
            self.held = usage

    def bare(self, usage: dict[str, int]) -> None:
        """Tell tokens of an answer that left nothing else."""
        self.turn = self.answered = True
        self.out.append(Response("", (), usage, "", self.model, self.time, self.number))

    def flush(self) -> None:
        draft = self.draft
        if self.spoken and not self.items:
            if draft is None:
                draft = Draft(self.spoken[0][1], self.spoken[0][2])
                draft.model = self.model
                draft.usage, self.held = self.held, {}
            draft.texts.extend(text for text, _, _ in self.spoken)
            self.turn = self.answered = True
        self.spoken.clear()
        if draft is None:
            return
        self.draft = None
        if draft.texts:
            self.last = draft.text
        self.out.extend(draft.steps())

    def tell(self, step: Step) -> None:
        (self.out if self.draft is None else self.draft.waiting).append(step)

    # -- turns

    def end_turn(self, text: str = "", status: str = "unknown") -> None:
        self.settle()
        self.flush()
        if self.held:
            self.bare(self.held)
            self.held = {}
        for call_id in list(self.running):
            self.end(call_id, self.running.pop(call_id))
        for call in self.calls.values():
            self.out.append(call.end(None, status, time=self.time, line=self.number))
        self.calls.clear()
        self.told.clear()
        if self.turn:
            self.out.append(TurnEnd(text or self.last, self.time, self.number))
        self.turn = self.answered = False
        self.last = ""
        self.surplus = 0
        self.twin = ("", "")

    # -- prompts

    def settle(self) -> None:
        """The model goes on: items that no event called a prompt are prompts only where there are no events."""
        candidates, self.candidates = self.candidates, []
        if not self.events:
            for prompt in candidates:
                self.prompt(prompt)

    def prompt(self, prompt: Prompt) -> None:
        self.flush()
        if self.answered and not self.bounded:
            self.end_turn()
        self.out.append(prompt._replace(within=self.turn))
        self.turn = True

    def prompt_event(self, kind: str, text: str, attachments: tuple[Any, ...]) -> None:
        self.events = True
        if self.twin[0] not in ("", kind) and self.twin[1] == text:
            self.twin = ("", "")
            return  # the same prompt as the other kind of event
        self.twin = (kind, text)
        if self.candidates:
            item = self.candidates.pop(0)
            text = text or item.text
            attachments = attachments or tuple(item.attachments)
        else:
            self.surplus += 1
        self.prompt(Prompt(text, "user", attachments, False, self.time, self.number))

    # -- items

    def item(self, payload: dict[str, Any], kind: str) -> None:
        if kind == "message":
            self.message(payload)
        elif kind in ("function_call", "custom_tool_call", "tool_search_call"):
            self.call(payload, kind)
        elif kind in ("function_call_output", "custom_tool_call_output", "mcp_tool_call_output"):
            self.output(as_text(payload.get("call_id")), payload.get("output"))
        elif kind == "tool_search_output":
            self.output(as_text(payload.get("call_id")), payload.get("tools"))
        elif kind == "reasoning":
            self.open_draft()
        elif kind == "local_shell_call":
            call_id = as_text(payload.get("call_id")) or as_text(payload.get("id"))
            action = {
                k: v for k, v in as_dict(payload.get("action")).items() if k != "type" and v is not None
            }
            self.start(call_id, "local_shell", action)
        elif kind in ("web_search_call", "image_generation_call"):
            call_id = as_text(payload.get("id")) or as_text(payload.get("call_id")) or f"call-{self.number}"
            if kind == "web_search_call":
                self.at_once(call_id, "web_search", as_dict(payload.get("action")), None, payload)
            else:
                args = {"prompt": payload.get("revised_prompt")}
                self.at_once(call_id, "image_generation", args, payload.get("result"), payload)

    def message(self, payload: dict[str, Any]) -> None:
        role = payload.get("role")
        texts, attachments = _content(payload.get("content"))
        if role == "assistant":
            self.items = True
            draft = self.open_draft()
            draft.texts.extend(texts)
            self.spoken.clear()
        elif role == "user":
            text = "\n".join(texts)
            start = text.lstrip()
            if start.startswith(_NOTIFICATION):
                self.notified(text)
                return
            passed = as_dict(payload.get("internal_chat_message_metadata_passthrough"))
            kinds = passed.get("content_item_kinds")
            if isinstance(kinds, list) and kinds:
                if not any(isinstance(one, str) and one.startswith("user") for one in kinds):
                    return
            elif start.startswith(_CONTEXT) or not (text or attachments):
                return
            if self.surplus:
                self.surplus -= 1
                return
            self.candidates.append(Prompt(text, "user", tuple(attachments), False, self.time, self.number))

    def call(self, payload: dict[str, Any], kind: str) -> None:
        name = as_text(payload.get("name")) or ("tool_search" if kind == "tool_search_call" else "unknown")
        namespace = as_text(payload.get("namespace"))
        if namespace.startswith("mcp__") and not name.startswith("mcp__"):
            name = f"{namespace}__{name}"
        if kind == "custom_tool_call":
            given = payload.get("input")
            args = {"input": given} if isinstance(given, str) else arguments(given)
        else:
            args = arguments(payload.get("arguments"))
        self.start(as_text(payload.get("call_id")) or as_text(payload.get("id")), name, args)

    def start(self, call_id: str, tool: str, args: dict[str, Any]) -> None:
        call_id = call_id or f"call-{self.number}"
        self.items = True
        if self.seen.add(call_id):
            return
        draft = self.open_draft()
        draft.calls.append({"id": call_id, "tool": tool, "args": args})
        draft.waiting.append(ToolBegin(call_id, tool, args, mcp_of(tool), self.time, self.number))
        self.calls[call_id] = OpenCall(call_id, tool, args, self.time)

    def at_once(
        self, call_id: str, tool: str, args: dict[str, Any], result: object, payload: dict[str, Any]
    ) -> None:
        """A call that the model's provider ran: begin and end are one record."""
        if call_id in self.calls or self.seen.add(call_id):
            return
        draft = self.open_draft()
        draft.calls.append({"id": call_id, "tool": tool, "args": args})
        draft.waiting.append(ToolBegin(call_id, tool, args, None, self.time, self.number))
        status = "error" if payload.get("status") == "failed" else "ok"
        end = OpenCall(call_id, tool, args, None).end(result, status, time=self.time, line=self.number)
        draft.waiting.append(end)

    def output(self, call_id: str, output: object) -> None:
        if call_id not in self.calls:
            return
        if isinstance(output, str) and call_id not in self.told:
            head = output.split("\nOutput:", 1)[0]
            if _RUNNING.search(head) and not _EXITED.search(head):
                self.running[call_id] = output  # the command's own end comes later
                return
        self.end(call_id, output)

    def end(self, call_id: str, output: object) -> None:
        call = self.calls.pop(call_id, None)
        told = self.told.pop(call_id, None)
        if call is None:
            return
        self.outputs = True
        status, error = _status(output, told)
        if call.tool == "spawn_agent" and status == "ok":
            self.spawned(call, output)
        self.tell(
            call.end(
                output,
                status,
                time=self.time,
                line=self.number,
                error=error,
                duration=None if told is None else told.duration,
            )
        )

    # -- sub-agents: their rollouts are files of their own, here they only begin and end

    def spawned(self, call: OpenCall, output: object) -> None:
        about = arguments(output) if isinstance(output, str) else {}
        agent_id = as_text(about.get("agent_id"))
        if not agent_id or agent_id in self.agents:
            return
        self.agents[agent_id] = True
        name = as_text(call.args.get("agent_type")) or as_text(about.get("nickname")) or agent_id
        prompt = as_text(call.args.get("message"))
        self.tell(SubagentBegin(name, "", prompt, self.time, self.number, agent_id))

    def notified(self, text: str) -> None:
        inner = text.split(_NOTIFICATION, 1)[1].split("</subagent_notification>", 1)[0]
        about = arguments(inner.strip())
        agent_id = as_text(about.get("agent_path")) or as_text(about.get("agent_id"))
        if self.agents.pop(agent_id, False):
            status = as_dict(about.get("status"))
            self.tell(SubagentEnd(as_text(status.get("completed")), self.time, self.number, agent_id))

    # -- events

    def event(self, payload: dict[str, Any], kind: str) -> None:
        if kind == "token_count":
            self.count(as_dict(payload.get("info")))
        elif kind == "item_completed":
            item = as_dict(payload.get("item"))
            self.completed(item, as_text(item.get("type")))
        elif kind == "user_message":
            images = payload.get("images")
            attachments = tuple(images) if isinstance(images, list) else ()
            self.prompt_event(kind, as_text(payload.get("message")), attachments)
        elif kind == "agent_message":
            self.speak(as_text(payload.get("message")))
        elif kind in ("task_started", "turn_started"):
            self.end_turn()
            self.bounded = True
        elif kind in ("task_complete", "turn_complete"):
            error = payload.get("error")
            if error:
                self.failed(as_dict(error))
            self.end_turn(as_text(payload.get("last_agent_message")))
        elif kind == "turn_aborted":
            self.end_turn(status="cancelled")
        elif kind == "error":
            self.failed(payload)
        elif kind == "stream_error":
            self.tell(
                HostEvent("model.retry", {"message": as_text(payload.get("message"))}, self.time, self.number)
            )
        elif kind == "thread_rolled_back":
            turns = {"turns": as_count(payload.get("num_turns"))}
            self.tell(HostEvent("session.rewind", turns, self.time, self.number))
        elif kind == "web_search_end":
            action = as_dict(payload.get("action")) or {"query": payload.get("query")}
            self.at_once(
                as_text(payload.get("call_id")) or f"call-{self.number}", "web_search", action, None, {}
            )
        elif kind in ("exec_command_end", "patch_apply_end", "mcp_tool_call_end"):
            self.hear(as_text(payload.get("call_id")), payload)

    def completed(self, item: dict[str, Any], kind: str) -> None:
        if kind == "UserMessage":
            texts, attachments = _content(item.get("content"))
            self.prompt_event(kind, "\n".join(texts), tuple(attachments))
        elif kind == "AgentMessage":
            self.speak("\n".join(_content(item.get("content"))[0]))
        elif kind in ("CommandExecution", "FileChange", "McpToolCall"):
            self.hear(as_text(item.get("id")), item)

    def speak(self, text: str) -> None:
        if text and not self.items:
            self.settle()
            self.spoken.append((text, self.time, self.number))

    def failed(self, error: dict[str, Any]) -> None:
        kind = error.get("codex_error_info")
        name = kind if isinstance(kind, str) else next(iter(as_dict(kind)), "")
        self.flush()
        message = as_text(error.get("message"))
        self.out.append(Failure(name or "error", message, "model", self.time, self.number))
        self.turn = self.answered = True

    def hear(self, call_id: str, about: dict[str, Any]) -> None:
        """An event tells how a call ended; its result comes as an item, before or after."""
        if call_id not in self.calls:
            return
        code = about.get("exit_code")
        status = about.get("status")
        result = about.get("result")
        failed = status == "failed" or about.get("success") is False or bool(about.get("error"))
        if isinstance(result, dict):
            inner = as_dict(result.get("Ok")) or result
            failed = failed or "Err" in result or bool(inner.get("isError") or inner.get("is_error"))
        self.told[call_id] = _Told(
            code if isinstance(code, int) else None,
            failed,
            status == "declined",
            _seconds(about.get("duration")),
        )
        if call_id in self.running:
            self.end(call_id, self.running.pop(call_id))

    def count(self, info: dict[str, Any]) -> None:
        """Tokens as running totals: what they grew by is one answer's; some events only repeat them."""
        if self.counting == "record":
            return
        self.counting = "total"
        total, last = as_dict(info.get("total_token_usage")), as_dict(info.get("last_token_usage"))
        if not total:
            return
        now = _usage(total)
        before = self.total
        self.total = now
        if before == now:
            return
        grown = {} if before is None else {name: now[name] - before[name] for name in now}
        if before is None or any(tokens < 0 for tokens in grown.values()):
            grown = _usage(last) if last else now
        if any(grown.values()):
            self.tokens(grown, after=False)

    def finish(self) -> None:
        if not self.begun:
            return
        self.settle()
        self.flush()
        cut = bool(self.calls)
        self.end_turn()
        for agent_id in self.agents:
            self.out.append(SubagentEnd("", self.time, self.number, agent_id))
        self.out.append(SessionFinish("interrupted" if cut else "complete", time=self.time, line=self.number))


def _usage(tokens: dict[str, Any]) -> dict[str, int]:
    return {ours: as_count(tokens.get(theirs)) for theirs, ours in _USAGE}


def _seconds(duration: object) -> float | None:
    if isinstance(duration, dict):
        return as_count(duration.get("secs")) + as_count(duration.get("nanos")) / 1e9
    return None


def _content(content: object) -> tuple[list[str], list[Any]]:
    """Split a message's content into its texts and its attachments."""
    if isinstance(content, str):
        return [content] if content else [], []
    texts: list[str] = []
    attachments: list[Any] = []
    for part in content if isinstance(content, list) else ():
        if not isinstance(part, dict):
            continue
        kind = as_text(part.get("type"))
        if kind in ("input_text", "output_text", "text", "Text"):
            text = as_text(part.get("text"))
            # The tags that stand around an image say nothing beside it.
            if text and not (text.startswith("<image") or text == "</image>"):
                texts.append(text)
        elif "image" in kind.lower() or "file" in kind.lower():
            attachments.append(part)
    return texts, attachments


def _status(output: object, told: _Told | None) -> tuple[str, str]:
    """Return how a call ended, and the error's text."""
    success: object = None
    if isinstance(output, dict):
        success = output.get("success")
        words = as_text(output.get("content"))
    elif isinstance(output, list):
        words = "\n".join(_content(output)[0])
    else:
        words = as_text(output)
    head = words.split("\nOutput:", 1)[0][:4000]
    if head.startswith(_DENIED) or _REFUSED.match(words) or (told is not None and told.denied):
        return "denied", words
    if _CANCELLED.match(head):
        return "cancelled", words
    code = None if told is None else told.code
    if code is None:
        code = _exit_code(head, words)
    if code is not None:
        return ("ok", "") if code == 0 else ("error", words)
    if success is False or (told is not None and told.failed) or head.startswith(_FAILED):
        return "error", words
    return "ok", ""


def _exit_code(head: str, words: str) -> int | None:
    found = _EXITED.search(head)
    if found:
        return int(found.group(1))
    if words.startswith('{"output":') and '"exit_code"' in words[-200:]:
        # The shell tool of 2025 answered in JSON: {"output": ..., "metadata": {"exit_code": 0, ...}}
        code = as_dict(arguments(words).get("metadata")).get("exit_code")
        return code if isinstance(code, int) else None
    return None
