"""What Claude Code takes as a hook's answer, event by event, as a closed schema: anything else is a mistake of ours.

Source: https://code.claude.com/docs/en/hooks and version 2.1.332 as run; Claude Code itself ignores unknown
fields, and drops the whole answer for a wrong type.
"""

from __future__ import annotations

import json

CONTEXT = {"additionalContext": str}
PERMISSION = {"permissionDecision": ("allow", "deny", "ask"), "permissionDecisionReason": str}
BLOCK = {"decision": ("block",), "reason": str}
STOP = {"continue": (False,), "stopReason": str}
COMMON = {"systemMessage": str}

# event -> (top level beside the common fields, hookSpecificOutput beside its name)
ANSWERS = {
    "SessionStart": ({}, CONTEXT),
    "Setup": ({}, CONTEXT),
    "InstructionsLoaded": ({}, {}),
    "UserPromptSubmit": (BLOCK, CONTEXT),
    "UserPromptExpansion": (BLOCK, CONTEXT),
    "PreSkillShellCommand": (STOP, {**PERMISSION, **CONTEXT, "permissionDecision": ("deny",)}),
    "PreToolUse": (STOP, {**PERMISSION, **CONTEXT, "updatedInput": dict}),
    "PermissionRequest": ({}, {"decision": dict}),
    "PermissionDenied": ({}, {}),
    "PostToolUse": (BLOCK, {**CONTEXT, "updatedToolOutput": object}),
    "PostToolUseFailure": ({}, CONTEXT),
    "PostToolBatch": (STOP, CONTEXT),
    "MessageDisplay": ({}, {"displayContent": str}),
    "Notification": ({}, {}),
    "SubagentStart": ({}, CONTEXT),
    "SubagentStop": (BLOCK, {}),
    "TaskCreated": (BLOCK, {}),
    "TaskCompleted": (STOP, {}),
    "TeammateIdle": (STOP, {}),
    "Stop": (BLOCK, {}),
    "StopFailure": ({}, {}),
    "PreCompact": (BLOCK, {}),
    "PostCompact": ({}, {}),
    "PreModelSwitch": ({}, PERMISSION),
    "PostModelSwitch": ({}, CONTEXT),
    "ConfigChange": (BLOCK, {}),
    "CwdChanged": ({}, {}),
    "FileChanged": ({}, {}),
    "DirectoryAdded": ({}, {}),
    "WorktreeRemove": ({}, {}),
    "Elicitation": ({}, {"action": ("accept", "decline", "cancel"), "content": dict}),
    "ElicitationResult": ({}, {"action": ("accept", "decline", "cancel"), "content": dict}),
    "SessionEnd": ({}, {}),
}


def check(event, answer):
    """Assert that an answer is one that Claude Code takes at an event, and return its JSON ({} for none)."""
    assert answer.exit_code == 0 or (event in ("TaskCompleted", "TeammateIdle") and answer.exit_code == 2)
    if not answer.stdout:
        return {}
    if event == "WorktreeCreate":
        assert answer.stdout.endswith(b"\n") and b"\n" not in answer.stdout[:-1]
        return {}
    assert answer.stdout.isascii()
    data = json.loads(answer.stdout)
    assert isinstance(data, dict) and data, "an empty answer is no output at all"
    top, own = ANSWERS.get(event, ({}, {}))
    specific = data.pop("hookSpecificOutput", None)
    _fields({**COMMON, **top}, data)
    assert ("decision" in data) <= bool(data.get("reason")), "a block needs words"
    assert ("continue" in data) <= bool(data.get("stopReason"))
    if specific is not None:
        assert specific.pop("hookEventName") == event
        assert specific, "an empty hookSpecificOutput says nothing"
        _fields(own, specific)
        if "permissionDecision" in specific:
            assert specific["permissionDecision"] == "allow" or specific["permissionDecisionReason"]
        if event == "PermissionRequest":
            decision = specific["decision"]
            assert decision == {"behavior": "allow"} or (
                decision.keys() == {"behavior", "message"}
                and decision["behavior"] == "deny"
                and decision["message"]
            )
    return {**data, **({"hookSpecificOutput": specific} if specific else {})}


def _fields(known, data):
    for name, value in data.items():
        assert name in known, f"{name} is no field here"
        kind = known[name]
        if isinstance(kind, tuple):
            assert value in kind
        else:
            assert isinstance(value, kind), name
