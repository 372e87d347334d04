"""How four interfaces of hosted models look on the wire: what a request holds, and how an answer is written.

Each wire is one class of the same shape. Only what agent programs need is there; nothing is checked.

    Anthropic   POST /v1/messages
    Responses   POST /v1/responses                   (OpenAI)
    Chat        POST /v1/chat/completions            (OpenAI and whoever copies it)
    Gemini      POST /v1beta/models/M:generateContent, :streamGenerateContent
"""

from __future__ import annotations

import json
from itertools import groupby
from uuid import uuid4


class Call:
    """A tool call that the model makes: ``space`` is the namespace of a tool (Responses only)."""

    def __init__(self, name, args):
        self.space, _, self.name = name.rpartition("/")
        self.args = args
        self.id = uuid4().hex[:16]


class Said:
    """What the model says in one answer."""

    def __init__(self, text="", calls=(), tokens=10):
        self.text = text
        self.calls = list(calls)
        self.tokens = tokens


def sse(data, event=""):
    """One server-sent event."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(data)}\n\n".encode()


def runs(flags):
    """How many runs of True there are: answers of the model, however many items each has."""
    return sum(1 for flag, _ in groupby(flags) if flag)


class Anthropic:
    """Anthropic Messages."""

    ends = ("/messages",)

    def tools(self, body):
        return [tool.get("name", "") for tool in body.get("tools") or []]

    def answers(self, body):
        return runs(message.get("role") == "assistant" for message in body.get("messages", []))

    def prompts(self, body):
        return [message for message in body.get("messages", []) if message.get("role") == "user"]

    def _blocks(self, said):
        texts = [{"type": "text", "text": said.text}] if said.text else []
        return texts + [
            {"type": "tool_use", "id": f"toolu_{call.id}", "name": call.name, "input": call.args}
            for call in said.calls
        ]

    def _message(self, said, body, content, stop):
        usage = {"input_tokens": said.tokens, "output_tokens": 10}
        return {
            "id": f"msg_{uuid4().hex[:24]}",
            "type": "message",
            "role": "assistant",
            "model": body.get("model", "fake"),
            "content": content,
            "stop_reason": stop,
            "stop_sequence": None,
            "usage": usage,
        }

    def whole(self, said, body):
        stop = "tool_use" if said.calls else "end_turn"
        return self._message(said, body, self._blocks(said), stop)

    def stream(self, said, body):
        out = [
            sse({"type": "message_start", "message": self._message(said, body, [], None)}, "message_start")
        ]
        for index, block in enumerate(self._blocks(said)):
            if block["type"] == "text":
                empty, delta = {"type": "text", "text": ""}, {"type": "text_delta", "text": block["text"]}
            else:
                empty = {**block, "input": {}}
                delta = {"type": "input_json_delta", "partial_json": json.dumps(block["input"])}
            for kind, more in (
                ("content_block_start", {"content_block": empty}),
                ("content_block_delta", {"delta": delta}),
                ("content_block_stop", {}),
            ):
                out.append(sse({"type": kind, "index": index, **more}, kind))
        end = {"stop_reason": "tool_use" if said.calls else "end_turn", "stop_sequence": None}
        out.append(
            sse({"type": "message_delta", "delta": end, "usage": {"output_tokens": 10}}, "message_delta")
        )
        out.append(sse({"type": "message_stop"}, "message_stop"))
        return b"".join(out)


class Responses:
    """OpenAI Responses."""

    ends = ("/responses",)
    _own = ("function_call", "custom_tool_call", "local_shell_call", "reasoning")

    def tools(self, body):
        names = []
        for tool in body.get("tools") or []:
            if tool.get("type") == "namespace":
                names += [f"{tool['name']}/{inner['name']}" for inner in tool.get("tools", [])]
            else:
                names.append(tool.get("name") or tool.get("type", ""))
        return names

    def _items(self, body):
        items = body.get("input", [])
        return [{"role": "user", "content": items}] if isinstance(items, str) else items

    def answers(self, body):
        return runs(
            item.get("type") in self._own or item.get("role") == "assistant" for item in self._items(body)
        )

    def prompts(self, body):
        return [item for item in self._items(body) if item.get("role") == "user"]

    def _output(self, said, body):
        free = {tool.get("name") for tool in body.get("tools") or [] if tool.get("type") == "custom"}
        output = []
        if said.text:
            content = [{"type": "output_text", "text": said.text, "annotations": []}]
            output.append(
                {"type": "message", "id": f"msg_{uuid4().hex[:24]}", "role": "assistant", "status": "completed",
                 "content": content}
            )  # fmt: skip
        for call in said.calls:
            item = {"call_id": f"call_{call.id}", "name": call.name, "status": "completed"}
            if call.name in free:
                output.append(
                    {"type": "custom_tool_call", "id": f"ctc_{call.id}", "input": call.args["input"], **item}
                )
                continue
            if call.space:
                item["namespace"] = call.space
            output.append(
                {"type": "function_call", "id": f"fc_{call.id}", "arguments": json.dumps(call.args), **item}
            )
        return output

    def whole(self, said, body):
        return {
            "id": f"resp_{uuid4().hex}",
            "object": "response",
            "created_at": 1,
            "status": "completed",
            "model": body.get("model", "fake"),
            "output": self._output(said, body),
            "usage": {
                "input_tokens": said.tokens,
                "input_tokens_details": {"cached_tokens": 0},
                "output_tokens": 10,
                "output_tokens_details": {"reasoning_tokens": 0},
                "total_tokens": said.tokens + 10,
            },
        }

    def stream(self, said, body):
        whole = self.whole(said, body)
        events = [
            (
                "response.created",
                {"response": {**whole, "status": "in_progress", "output": [], "usage": None}},
            )
        ]
        for index, item in enumerate(whole["output"]):
            begun = {**item, "status": "in_progress"}
            at = {"item_id": item["id"], "output_index": index}
            if item["type"] == "message":
                text = item["content"][0]["text"]
                part = {**at, "content_index": 0}
                empty = {"type": "output_text", "text": "", "annotations": []}
                events += [
                    ("response.output_item.added", {"output_index": index, "item": {**begun, "content": []}}),
                    ("response.content_part.added", {**part, "part": empty}),
                    ("response.output_text.delta", {**part, "delta": text}),
                    ("response.output_text.done", {**part, "text": text}),
                    ("response.content_part.done", {**part, "part": item["content"][0]}),
                ]
            elif item["type"] == "function_call":
                events += [
                    (
                        "response.output_item.added",
                        {"output_index": index, "item": {**begun, "arguments": ""}},
                    ),
                    ("response.function_call_arguments.delta", {**at, "delta": item["arguments"]}),
                    ("response.function_call_arguments.done", {**at, "arguments": item["arguments"]}),
                ]
            else:
                events.append(
                    ("response.output_item.added", {"output_index": index, "item": {**begun, "input": ""}})
                )
            events.append(("response.output_item.done", {"output_index": index, "item": item}))
        events.append(("response.completed", {"response": whole}))
        return b"".join(
            sse({"type": kind, "sequence_number": number, **data}, kind)
            for number, (kind, data) in enumerate(events)
        )


class Chat:
    """OpenAI Chat Completions."""

    ends = ("/chat/completions",)

    def tools(self, body):
        return [tool.get("function", {}).get("name", "") for tool in body.get("tools") or []]

    def answers(self, body):
        return runs(message.get("role") == "assistant" for message in body.get("messages", []))

    def prompts(self, body):
        return [message for message in body.get("messages", []) if message.get("role") == "user"]

    def _calls(self, said):
        return [
            {"id": f"call_{call.id}", "type": "function",
             "function": {"name": call.name, "arguments": json.dumps(call.args)}}
            for call in said.calls
        ]  # fmt: skip

    def _frame(self, body, kind):
        return {
            "id": f"chatcmpl-{uuid4().hex[:24]}",
            "object": kind,
            "created": 1,
            "model": body.get("model", "fake"),
        }

    def _usage(self, said):
        return {"prompt_tokens": said.tokens, "completion_tokens": 10, "total_tokens": said.tokens + 10}

    def whole(self, said, body):
        message = {"role": "assistant", "content": said.text or None}
        if said.calls:
            message["tool_calls"] = self._calls(said)
        choice = {"index": 0, "message": message, "finish_reason": "tool_calls" if said.calls else "stop"}
        return {**self._frame(body, "chat.completion"), "choices": [choice], "usage": self._usage(said)}

    def stream(self, said, body):
        frame = self._frame(body, "chat.completion.chunk")

        def chunk(delta, finish=None):
            return sse({**frame, "choices": [{"index": 0, "delta": delta, "finish_reason": finish}]})

        out = [chunk({"role": "assistant", "content": said.text or None})]
        if said.calls:
            calls = [{"index": number, **call} for number, call in enumerate(self._calls(said))]
            out.append(chunk({"tool_calls": calls}))
        out.append(chunk({}, "tool_calls" if said.calls else "stop"))
        out.append(sse({**frame, "choices": [], "usage": self._usage(said)}))
        return b"".join(out) + b"data: [DONE]\n\n"


class Gemini:
    """Gemini generateContent."""

    ends = (":generateContent", ":streamGenerateContent")

    def tools(self, body):
        return [
            declared["name"]
            for tool in body.get("tools") or []
            for declared in tool.get("functionDeclarations", [])
        ]

    def answers(self, body):
        return runs(content.get("role") == "model" for content in body.get("contents", []))

    def prompts(self, body):
        return [content for content in body.get("contents", []) if content.get("role") == "user"]

    def whole(self, said, body):
        parts = [{"text": said.text}] if said.text else []
        parts += [{"functionCall": {"name": call.name, "args": call.args}} for call in said.calls]
        return {
            "candidates": [
                {"index": 0, "content": {"role": "model", "parts": parts}, "finishReason": "STOP"}
            ],
            "usageMetadata": {
                "promptTokenCount": said.tokens,
                "candidatesTokenCount": 10,
                "totalTokenCount": said.tokens + 10,
            },
            "modelVersion": "fake",
            "responseId": uuid4().hex[:16],
        }

    def stream(self, said, body):
        return sse(self.whole(said, body))


WIRES = (Anthropic(), Responses(), Chat(), Gemini())


def wire_of(path):
    """Return the wire that a path belongs to, or None."""
    return next((wire for wire in WIRES if path.endswith(wire.ends)), None)
