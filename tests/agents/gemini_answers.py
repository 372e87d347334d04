"""What Gemini CLI takes as a hook's answer, event by event, as a closed schema: anything else is a mistake of ours.

Source: https://geminicli.com/docs/hooks and version 0.61.0 as run; Gemini CLI itself ignores unknown fields. It
parses standard error where standard output is empty, so that there is always an object on standard output.
"""

from __future__ import annotations

import json

STOP = {"continue": False, "stopReason": str}
DENY = {"decision": "deny", "reason": str}
CONTEXT = {"additionalContext": str}

# event -> (top level beside systemMessage, hookSpecificOutput beside its name): what we may send
ANSWERS = {
    "SessionStart": ({}, CONTEXT),
    "SessionEnd": ({}, {}),
    "BeforeAgent": (DENY, CONTEXT),
    "AfterAgent": (DENY, {}),
    "BeforeModel": (DENY, {"llm_response": dict}),
    "AfterModel": (STOP, {"llm_response": dict}),
    "BeforeToolSelection": ({}, {"toolConfig": dict}),
    "BeforeTool": ({**DENY, **STOP}, {"tool_input": dict}),
    "AfterTool": ({**DENY, **STOP}, CONTEXT),
    "PreCompress": ({}, {}),
    "Notification": ({}, {}),
}


def check(event, answer):
    """Assert that an answer is one that Gemini CLI takes at an event, and return its JSON."""
    assert answer.exit_code == 0
    assert answer.stdout.isascii()
    data = json.loads(answer.stdout)
    assert isinstance(data, dict), "an empty standard output would have standard error parsed"
    top, own = ANSWERS.get(event, ({}, {}))
    specific = data.get("hookSpecificOutput")
    for name, value in data.items():
        if name != "hookSpecificOutput":
            _field({**top, "systemMessage": str}, name, value)
    assert "decision" not in data or data["reason"].strip()
    assert "continue" not in data or data["stopReason"].strip()
    if specific is None:
        return data
    assert specific["hookEventName"] == event
    assert len(specific) > 1
    for name, value in specific.items():
        if name != "hookEventName":
            _field(own, name, value)
    assert "decision" not in data or "additionalContext" not in specific or event == "BeforeAgent", (
        "context beside a refused result is dropped"
    )
    if "llm_response" in specific:
        parts = specific["llm_response"]["candidates"][0]["content"]["parts"]
        assert parts and all(isinstance(part, str) for part in parts), "without parts it is ignored"
        assert event != "BeforeModel" or data["decision"] == "deny", "without a deny the model is asked"
    return data


def _field(known, name, value):
    assert name in known, f"{name} is no field here"
    kind = known[name]
    assert isinstance(value, kind) if isinstance(kind, type) else value == kind, name
