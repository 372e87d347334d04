"""A user's hook module for tests with real agents: writes down every event, answers as ``answers.json`` says.

``answers.json`` beside this file: timing -> list of rules ``{"when": {field: value}, "from": n, "answer": {...}}``;
the first rule that fits answers, from the timing's n-th event on (0 when it is left out). ``events.jsonl`` gets each event's JSON form.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

import hookturn
from hookturn import hookimpl

HERE = Path(__file__).parent
TIMINGS = [
    "on_session_start",
    "on_message_received",
    "on_user_prompt_submit",
    "on_turn_start",
    "system_prompt",
    "on_model_response",
    "on_tool_call_start",
    "pre_tool_execution",
    "post_tool_execution",
    "on_turn_complete",
    "post_turn",
    "on_error",
    "on_session_end",
    "on_event",
    "on_permission_request",
]


def note(event):
    line = json.dumps(event.to_json()).encode() + b"\n"
    fd = os.open(HERE / "events.jsonl", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    try:
        os.write(fd, line)
    finally:
        os.close(fd)


def answers(event):
    path = HERE / "answers.json"
    rules = json.loads(path.read_text()).get(event.timing, []) if path.exists() else []
    before = 0
    if any("from" in rule for rule in rules):
        lines = (HERE / "events.jsonl").read_text().splitlines()
        before = sum(json.loads(line)["timing"] == event.timing for line in lines) - 1
    for rule in rules:
        if before >= rule.get("from", 0) and all(
            getattr(event, name, None) == value for name, value in rule.get("when", {}).items()
        ):
            return [answer(kind, value) for kind, value in rule["answer"].items()]
    return None


def answer(kind, value):
    make = getattr(hookturn, kind)
    return make(**value) if isinstance(value, dict) and kind not in ("SetEnv", "Reply") else make(value)


def hook(timing):
    @hookimpl(specname=timing)
    def heard(event):
        note(event)
        return answers(event)

    return heard


for _name in TIMINGS:
    globals()[_name] = hook(_name)
