"""What AtomCode, opencode's plugin and rolebox's module take as an answer, as closed schemas."""

from __future__ import annotations

import json

from hookturn.agents.atomcode import hooks as atomcode_hooks


def _only(data, schema):
    for name, value in data.items():
        kind = schema[name]
        assert value in kind if isinstance(kind, tuple) else isinstance(value, kind), name
        assert not isinstance(value, str) or value.strip() or name == "updatedToolOutput", name


def _object(answer):
    assert answer.exit_code == 0
    if not answer.stdout:
        return {}
    assert answer.stdout.isascii() and answer.stdout.count(b"\n") == 1
    data = json.loads(answer.stdout)
    assert isinstance(data, dict) and data, "an empty answer is no output at all"
    return data


THROW = {"throw": str, "warn": list}
OPENCODE = {
    "chat.message": {**THROW, "message": dict},
    "experimental.chat.system.transform": {**THROW, "replace": dict},
    "tool.execute.before": {**THROW, "assign": dict},
    "tool.execute.after": {**THROW, "set": dict},
    "experimental.text.complete": {"warn": list, "set": dict},
    "experimental.session.compacting": {"warn": list, "push": dict},
    "shell.env": {"warn": list, "assign": dict},
}
"""What plugin.js can do at each function; bus events are told only."""

PARTS = {
    "assign": {"args": dict, "env": dict},
    "replace": {"system": list},
    "push": {"context": list},
}
"""Fields of ``output`` that the plugin changes in place."""


def opencode(event, answer):
    """Assert that opencode's plugin can do what is answered, and return it ({} for nothing)."""
    data = _object(answer)
    _only(data, OPENCODE.get(event, {"warn": list}))
    for name, fields in PARTS.items():
        _only(data.get(name, {}), fields)
    for items in (data.get("warn", []), *data.get("replace", {}).values(), *data.get("push", {}).values()):
        assert all(isinstance(item, str) for item in items)
    message = data.get("message", {})
    assert isinstance(message.get("text"), (str, type(None))) and isinstance(message.get("context", ""), str)
    assert all(isinstance(value, str) for value in data.get("assign", {}).get("env", {}).values())
    return data


ROLEBOX = {
    "chat.message": {"inject": str, "warn": list},
    "tool.execute.before": {"refuse": str, "args": dict, "warn": list},
    "tool.execute.after": {"inject": str, "warn": list},
    "system.transform": {"refuse": str, "system": list, "warn": list},
}


def rolebox(event, answer):
    """Assert that rolebox's module can do what is answered, and return it ({} for nothing)."""
    data = _object(answer)
    _only(data, ROLEBOX.get(event, {"warn": list}))
    assert all(isinstance(item, str) for item in (*data.get("warn", []), *data.get("system", [])))
    return data


BLOCK = {"decision": ("block",), "reason": str}
ATOMCODE = {
    "SessionStart": ({}, {"additionalContext": str}),
    "UserPromptSubmit": (BLOCK, {"additionalContext": str}),
    "PreToolUse": (
        {},
        {
            "permissionDecision": ("allow", "deny", "ask"),
            "permissionDecisionReason": str,
            "updatedInput": dict,
        },
    ),
    "PostToolUse": ({}, {"updatedToolOutput": str}),
    "PostToolUseFailure": ({}, {"updatedToolOutput": str}),
    "pre_tool_use": ({"action": ("allow", "block"), "reason": str}, {}),
}
"""event -> (top level, hookSpecificOutput beside its name)."""


def atomcode(event, answer):
    """Assert that AtomCode takes an answer at an event, and return its JSON ({} for none)."""
    data = _object(answer)
    assert event in atomcode_hooks.EVENTS or not data, "nothing is read there"
    top, own = ATOMCODE.get(event, ({}, {}))
    specific = dict(data.get("hookSpecificOutput", {}))
    if specific:
        assert specific.pop("hookEventName") == event and specific
    _only({key: value for key, value in data.items() if key != "hookSpecificOutput"}, top)
    _only(specific, own)
    return data
