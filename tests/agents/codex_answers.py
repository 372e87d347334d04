"""What Codex takes as a hook's answer, event by event: closed schemas, in which one unknown field voids the answer.

Source: https://developers.openai.com/codex/hooks and version 0.171.0 as run. ``test_real_codex`` compares the
fields with the schemas inside the program.
"""

from __future__ import annotations

import json

STOP = {"continue": False, "stopReason": str}
BLOCK = {"decision": "block", "reason": str}
CONTEXT = {"additionalContext": str}

# event -> (top level beside systemMessage, hookSpecificOutput beside its name): what we may send
ANSWERS = {
    "SessionStart": ({}, CONTEXT),
    "UserPromptSubmit": (BLOCK, CONTEXT),
    "PreToolUse": (
        {},
        {**CONTEXT, "permissionDecision": str, "permissionDecisionReason": str, "updatedInput": dict},
    ),
    "PermissionRequest": ({}, {"decision": dict}),
    "PostToolUse": (BLOCK, CONTEXT),
    "PreCompact": (STOP, {}),
    "PostCompact": ({}, {}),
    "SubagentStart": ({}, CONTEXT),
    "SubagentStop": (BLOCK, {}),
    "Stop": (BLOCK, {}),
    "Interrupt": ({}, {}),
}


def check(event, answer):
    """Assert that an answer is one that Codex takes at an event, and return its JSON ({} for none)."""
    assert answer.exit_code == 0, "JSON counts on exit code 0 only"
    if not answer.stdout:
        return {}
    assert event != "SessionEnd", "it takes no answer at all"
    assert answer.stdout.isascii()
    data = json.loads(answer.stdout)
    top, own = ANSWERS.get(event, ({}, {}))  # an event of a later version may be warned of
    specific = data.get("hookSpecificOutput")
    for name, value in data.items():
        if name != "hookSpecificOutput":
            _field({**top, "systemMessage": str}, name, value)
    if "decision" in data:
        assert data["reason"].strip(), "a block needs words"
    if specific is None:
        return data
    assert specific["hookEventName"] == event
    assert len(specific) > 1
    for name, value in specific.items():
        if name != "hookEventName":
            _field(own, name, value)
    said = specific.get("permissionDecision")
    assert said in (None, "allow", "deny"), "an ask is an error"
    assert (said == "allow") == ("updatedInput" in specific), "each without the other is void"
    assert said != "deny" or specific["permissionDecisionReason"].strip(), "such a deny is dropped"
    if event == "PermissionRequest":
        decision = specific["decision"]
        assert decision == {"behavior": "allow"} or (
            decision.keys() == {"behavior", "message"}
            and decision["behavior"] == "deny"
            and decision["message"]
        )
    return data


def _field(known, name, value):
    assert name in known, f"{name} is no field here"
    kind = known[name]
    assert isinstance(value, kind) if isinstance(kind, type) else value == kind, name
