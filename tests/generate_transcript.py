"""Writes recorded sessions of any size, the same ones every time, and tells what a replay of them comes to.

For tests and benchmarks: ``write_claude`` in Claude Code's shape, ``write_own`` as
hookturn's own events. Both stream: memory does not grow with the size.
"""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass, field
from typing import BinaryIO

# What the model does in one turn: (tool in Claude Code, tool of our own, arguments, result, fails).
_CALLS = (
    (
        "Read",
        "read",
        {"file_path": "/home/dev/project/src/app.py"},
        "1\tdef main():\n2\t    return 0\n",
        False,
    ),
    ("Bash", "bash", {"command": "pytest -q tests/test_app.py"}, "Exit code 1\n1 failed, 4 passed", True),
    (
        "Edit",
        "edit",
        {"file_path": "/home/dev/project/src/app.py", "old_string": "return 0", "new_string": "return 1"},
        "The file /home/dev/project/src/app.py has been updated.",
        False,
    ),
    ("Bash", "bash", {"command": "pytest -q tests/test_app.py"}, "5 passed in 0.12s", False),
)


@dataclass
class Counts:
    """What a replay of the written session must find.

    Attributes:
        lines: lines in the file.
        fired: events that a replay without hooks fires, session start and end included.
        turns, prompts, responses, tool_calls: counts.
        by_tool, by_status: calls by the recorded tool name and by how they ended.
        input_tokens, output_tokens: tokens of all answers.
    """

    lines: int = 0
    fired: int = 0
    turns: int = 0
    prompts: int = 0
    responses: int = 0
    tool_calls: int = 0
    by_tool: dict[str, int] = field(default_factory=dict)
    by_status: dict[str, int] = field(default_factory=dict)
    input_tokens: int = 0
    output_tokens: int = 0

    def _turn(self) -> None:
        self.turns += 1
        self.prompts += 1
        # message_received, user_prompt_submit, turn_start; turn_complete, post_turn
        self.fired += 5

    def _answer(self, tokens: tuple[int, int]) -> None:
        self.responses += 1
        self.input_tokens += tokens[0]
        self.output_tokens += tokens[1]
        self.fired += 2  # system_prompt, model_response

    def _call(self, tool: str, failed: bool) -> None:
        self.tool_calls += 1
        status = "error" if failed else "ok"
        self.by_tool[tool] = self.by_tool.get(tool, 0) + 1
        self.by_status[status] = self.by_status.get(status, 0) + 1
        self.fired += 3 + failed  # tool_call_start, pre, post; a failed call is an error too


def _clock(count: int) -> str:
    minutes, milliseconds = divmod(count, 60_000)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    return (
        f"2026-{9 + days // 28 % 4:02d}-{1 + days % 28:02d}"
        f"T{hours:02d}:{minutes:02d}:{milliseconds // 1000:02d}.{milliseconds % 1000:03d}Z"
    )


def write_claude(
    file: BinaryIO, events: int, session_id: str = "00000000-0000-4000-8000-000000000001"
) -> Counts:
    """Write a session in Claude Code's shape whose replay fires at least ``events`` events."""
    counts = Counts(fired=2)
    lines: list[str] = []
    step = 0
    parent: str | None = None

    def line(kind: str, **fields: object) -> None:
        nonlocal step, parent
        step += 1
        uuid = f"{step:08x}-0000-4000-8000-000000000000"
        record = {
            "parentUuid": parent,
            "isSidechain": False,
            "type": kind,
            **fields,
            "uuid": uuid,
            "timestamp": _clock(step * 40),
            "cwd": "/home/dev/project",
            "sessionId": session_id,
            "version": "2.1.332",
        }
        parent = uuid
        lines.append(json.dumps(record))

    def aside(kind: str, **fields: object) -> None:
        lines.append(json.dumps({"type": kind, **fields, "sessionId": session_id}))

    def answer(number: str, blocks: list[dict[str, object]], tokens: tuple[int, int]) -> None:
        # One line a block; each repeats the usage, whose output grows.
        for at, block in enumerate(blocks, 1):
            usage = {
                "input_tokens": tokens[0],
                "output_tokens": tokens[1] if at == len(blocks) else 1,
                "cache_read_input_tokens": 0,
                "cache_creation_input_tokens": 0,
            }
            message = {
                "id": f"msg_{number}",
                "type": "message",
                "role": "assistant",
                "model": "example-model",
                "content": [block],
                "stop_reason": "tool_use" if len(blocks) > 1 else "end_turn",
                "usage": usage,
            }
            line("assistant", message=message, requestId=f"req_{number}")
        counts._answer(tokens)

    turn = 0
    while counts.fired < events:
        turn += 1
        aside("queue-operation", operation="enqueue", content=f"task {turn}")
        line("user", message={"role": "user", "content": f"Task {turn}: make the tests of the app pass."})
        counts._turn()
        for at, (tool, _, args, result, failed) in enumerate(_CALLS):
            call = f"toolu_{turn:07d}{at}"
            text = {"type": "text", "text": f"Step {at + 1} of task {turn}."}
            use = {"type": "tool_use", "id": call, "name": tool, "input": args}
            answer(f"{turn:07d}{at}", [text, use], (900 + at, 40 + at))
            block = {"tool_use_id": call, "type": "tool_result", "content": result, "is_error": failed}
            line("user", message={"role": "user", "content": [block]})
            counts._call(tool, failed)
        answer(f"{turn:07d}9", [{"type": "text", "text": f"Task {turn} is done."}], (1000, 20))
        aside("last-prompt", lastPrompt=f"task {turn}", leafUuid=parent)
        counts.lines += len(lines)
        file.write(("\n".join(lines) + "\n").encode())
        lines.clear()
    return counts


def write_own(file: BinaryIO, events: int, session_id: str = "generated-1") -> Counts:
    """Write a session as hookturn's own events whose replay fires at least ``events`` events."""
    counts = Counts(fired=2)
    lines: list[str] = []
    step = 0

    def line(timing: str, **fields: object) -> None:
        nonlocal step
        step += 1
        record = {
            "schema": 1,
            "timing": timing,
            "session_id": session_id,
            "agent": "coder",
            "cwd": "/home/dev/project",
            "time": _clock(step * 40),
            **fields,
        }
        lines.append(json.dumps(record))

    def answer(text: str, calls: list[dict[str, object]], tokens: tuple[int, int]) -> None:
        usage = {"input_tokens": tokens[0], "output_tokens": tokens[1]}
        line("on_model_response", text=text, tool_calls=calls, usage=usage, model="example-model")
        counts._answer(tokens)

    def flush() -> None:
        counts.lines += len(lines)
        file.write(("\n".join(lines) + "\n").encode())
        lines.clear()

    line("on_session_start", source="startup", model="example-model")
    turn = 0
    while counts.fired < events:
        turn += 1
        prompt = f"Task {turn}: make the tests of the app pass."
        line("on_message_received", text=prompt, origin="user")
        line("on_user_prompt_submit", prompt=prompt)
        counts._turn()
        for at, (_, tool, args, result, failed) in enumerate(_CALLS):
            call = f"c{turn}-{at}"
            asked = {"id": call, "tool": tool, "args": args}
            answer(f"Step {at + 1} of task {turn}.", [asked], (900 + at, 40 + at))
            line("on_tool_call_start", call_id=call, tool=tool, args=args)
            line("pre_tool_execution", call_id=call, tool=tool, args=args)
            status = "error" if failed else "ok"
            ended = {"result": result, "status": status, "duration": 0.02, "error": result if failed else ""}
            line("post_tool_execution", call_id=call, tool=tool, args=args, **ended)
            counts._call(tool, failed)
        answer(f"Task {turn} is done.", [], (1000, 20))
        line("on_turn_complete", text=f"Task {turn} is done.")
        flush()
    line("on_session_end", reason="complete")
    flush()
    return counts


if __name__ == "__main__":
    form, size, path = sys.argv[1], int(sys.argv[2]), sys.argv[3]
    with open(path, "wb") as target:
        print({"claude": write_claude, "own": write_own}[form](target, size))
