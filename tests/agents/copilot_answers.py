"""What GitHub Copilot CLI takes as a hook's answer, event by event, as closed schemas."""

from __future__ import annotations

import json

from hookturn.agents.copilot import hooks as copilot

CONTEXT = {"additionalContext": str}
BLOCK = {"decision": ("block",), "reason": str}
DECISION = {"permissionDecision": ("allow", "deny", "ask"), "permissionDecisionReason": str}
ANSWERS = {
    "sessionStart": CONTEXT,
    "sessionEnd": {},
    "userPromptSubmitted": {**BLOCK, **CONTEXT, "modifiedPrompt": str},
    "userPromptTransformed": {"modifiedTransformedPrompt": str},
    "preToolUse": {**DECISION, **CONTEXT, "modifiedArgs": dict},
    "permissionRequest": {"behavior": ("allow", "deny"), "message": str},
    "postToolUse": {**BLOCK, **CONTEXT, "modifiedResult": dict},
    "postToolUseFailure": CONTEXT,
    "agentStop": BLOCK,
    "agentStop.subagent": {},
    "subagentStart": CONTEXT,
    "subagentStop": {**BLOCK, "modifiedResponse": str},
    "errorOccurred": {},
    "preCompact": {},
    "notification": CONTEXT,
}
"""What Copilot takes at each event, as a closed schema. Source: version 1.0.102 as run."""

AS_CLAUDE = {**DECISION, **CONTEXT, "updatedInput": dict}


def check(event, answer):
    """Assert that Copilot takes an answer at an event, and return its JSON ({} for none)."""
    assert answer.exit_code == 0, "any other code is a deny without words"
    if not answer.stdout:
        return {}
    assert answer.stdout.isascii() and answer.stdout.count(b"\n") == 1
    data = json.loads(answer.stdout)
    own = copilot.PASCAL.get(event, event)
    schema = dict(ANSWERS[own])
    if event == "PreToolUse":
        del schema["modifiedArgs"]  # is read under the camelCase key only
        claude = dict(data.pop("hookSpecificOutput", {}))
        if claude:
            assert claude.pop("hookEventName") == "PreToolUse"
            _matches(claude, AS_CLAUDE)
            assert {key: claude.get(key) for key in data} == data, "both forms say the same"
            data = {**data, "updatedInput": claude.get("updatedInput")}
            schema["updatedInput"] = (dict, type(None))
    _matches(data, schema)
    return data


def _matches(data, schema):
    for key, value in data.items():
        kind = schema[key]
        if isinstance(kind, tuple) and not isinstance(kind[0], type):
            assert value in kind
        else:
            assert isinstance(value, kind)
        assert not isinstance(value, str) or value.strip()
