"""What Qwen Code takes as a hook's answer, event by event, as closed schemas."""

from __future__ import annotations

import json

CONTEXT = {"additionalContext": str}
BLOCK = {"decision": ("block",), "reason": str}
STOP = {"continue": (False,), "stopReason": str}

# event -> (top level, hookSpecificOutput beside its name). Source: version 0.24.4 as run and as its code reads.
ANSWERS = {
    "SessionStart": ({}, CONTEXT),
    "SessionEnd": ({}, {}),
    "SessionDelete": ({}, {}),
    "InstructionsLoaded": ({}, {}),
    "UserPromptSubmit": (BLOCK, CONTEXT),
    "UserPromptSubmit.results": (BLOCK, CONTEXT),
    "UserPromptExpansion": (BLOCK, CONTEXT),
    "PreToolUse": ({}, {"permissionDecision": ("deny", "ask"), "permissionDecisionReason": str}),
    "PermissionRequest": ({}, {"decision": dict}),
    "PermissionDenied": ({}, {}),
    "PostToolUse": (STOP, CONTEXT),
    "PostToolUseFailure": ({}, CONTEXT),
    "PostToolBatch": (BLOCK, CONTEXT),
    "MessageDisplay": ({}, {}),
    "Notification": ({}, {}),
    "Stop": ({**BLOCK, "systemMessage": str}, {}),
    "StopFailure": ({}, {}),
    "SubagentStart": ({}, CONTEXT),
    "SubagentStop": (BLOCK, {}),
    "PreCompact": ({}, CONTEXT),
    "PostCompact": ({}, {}),
    "TodoCreated": (BLOCK, {}),
    "TodoCreated.written": ({}, {}),
    "TodoCompleted": (BLOCK, {}),
    "TodoCompleted.written": ({}, {}),
}


def check(event, answer):
    """Assert that Qwen Code takes an answer at an event, and return its JSON ({} for none)."""
    assert answer.exit_code == 0
    if not answer.stdout:
        return {}
    assert answer.stdout.isascii() and answer.stdout.count(b"\n") == 1
    data = json.loads(answer.stdout)
    top, inner = ANSWERS[event]
    own = dict(data.get("hookSpecificOutput", {}))
    if "hookSpecificOutput" in data:
        assert own.pop("hookEventName") == event.partition(".")[0]
        assert own
    for given, schema in (({k: v for k, v in data.items() if k != "hookSpecificOutput"}, top), (own, inner)):
        for key, value in given.items():
            kind = schema[key]
            assert value in kind if isinstance(kind, tuple) else isinstance(value, kind)
            assert not isinstance(value, str) or value.strip()
    return data
