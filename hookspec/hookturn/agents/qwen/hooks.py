"""Qwen Code's hook protocol: its payloads to our moments, what hooks said to its answers.

Sources: https://qwenlm.github.io/qwen-code-docs/en/users/features/hooks, and version 0.24.4 as run and as its
bundled code reads. Facts that decide here: JSON on standard output beats the exit code, and exit code 2 without
output lets through, so the answer is always JSON with exit code 0; no hook can change a tool's arguments;
``continue: false`` after a tool puts ``stopReason`` in the result's place; UserPromptSubmit comes again, with no
words, before each request that carries tool results, and refused there it really ends the turn, untold; a
headless run tells no end of the session.
"""

from __future__ import annotations

from ..bridge import BridgeAnswer
from ..moments import Moment, Row, Said
from ..payloads import (
    answer_of,
    call_of,
    calls_us,
    common_of,
    ended_of,
    failure_of,
    prompt_of,
    result_words,
    running_of,
    text_of,
)
from .tools import TOOLS as TOOLS  # part of what AgentHooks asks for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAME = "qwen"
PROJECT_VARIABLE = "QWEN_PROJECT_DIR"
PID_VARIABLE = ""
NOTHING = b""

RESULTS = "UserPromptSubmit.results"
"""Our name of the UserPromptSubmit that says nothing: the calls' results go to the model."""

_UNTOLD = "Warnings are shown at Stop only; elsewhere they go to standard error."
_WRITTEN = ".written"  # the second Todo event of each kind, when all is done


def _event(event: str, type: str, can: str = "", **more: Any) -> Row:
    can_do = can.split()
    accepts = [*(["Deny", "Block"] if "deny" in can_do else []), "Inject"]
    return Row(event=event, does=more.pop("does", "event"), type=type, can=can_do, accepts=accepts, **more)


_ROWS = (
    Row(
        event="SessionStart",
        does="session_start",
        can=["inject"],
        note="A Block is kept: every prompt of the session is refused. In all context Qwen Code writes < and > as "
        f"&lt; and &gt;. {_UNTOLD}",
    ),
    Row(
        event="UserPromptSubmit",
        does="prompt",
        can=["deny", "inject"],
        note="A refused prompt ends silently: Qwen Code shows no reason. The prompt cannot be changed.",
    ),
    Row(
        event=RESULTS,
        does="request",
        can=["stop", "inject"],
        install=False,
        note="UserPromptSubmit without words, before a request with tool results: no turn begins. The end of a turn "
        "that a Block asked for is carried out here; Qwen Code tells no Stop of it, so we do.",
    ),
    Row(
        event="PreToolUse",
        does="tool",
        can=["deny", "ask"],
        note="No hook can change arguments: a Rewrite is a deny when its hook fails closed, else a warning. A "
        "headless run refuses what is asked. Injected texts come with the call's result.",
    ),
    Row(
        event="PermissionRequest",
        does="permission",
        can=["deny", "allow"],
        note="Without an answer Qwen Code asks its user; a headless run refuses before any hook.",
    ),
    Row(
        event="PermissionDenied",
        does="tool_end",
        note="Qwen Code's own classifier refused: post_tool_execution with status denied.",
    ),
    Row(
        event="PostToolUse",
        does="tool_end",
        can=["deny", "result", "inject"],
        note="A changed or withheld result goes to the model as a text in place of the old one, and Qwen Code tells "
        "its user that the call failed.",
    ),
    Row(
        event="PostToolUseFailure",
        does="tool_end",
        can=["inject"],
        note="A failed call's text cannot be changed or withheld.",
    ),
    Row(
        event="PostToolBatch",
        does="batch_end",
        can=["stop", "inject"],
        note="The end of the main agent's turn is carried out right after it, before the next request; a sub-agent "
        "reads it in place of the calls' results and goes on, but its calls are refused.",
    ),
    Row(event="MessageDisplay", does="message", note="The words are shown already."),
    Row(
        event="Stop",
        does="turn_end",
        can=["again", "warn"],
        most_again=7,
        note="The answer is shown already. Qwen Code lets a turn end 8 times at most, so that it goes on 7 times.",
    ),
    Row(event="StopFailure", does="turn_failed", note="Not in headless runs."),
    Row(event="SubagentStart", does="subagent_start", can=["inject"]),
    Row(event="SubagentStop", does="subagent_end", can=["again"], type="subagent.stop"),
    Row(
        event="SessionEnd",
        does="session_end",
        note="Not in headless runs: such a session is ended, reason unknown, when the next one starts.",
    ),
    _event("SessionDelete", "session.deleted"),
    _event("InstructionsLoaded", "instructions.loaded"),
    _event("UserPromptExpansion", "prompt.expansion", "deny inject"),
    _event("Notification", "notification"),
    _event("PreCompact", "compaction.before", "inject"),
    _event("PostCompact", "compaction.after", does="compacted"),
    _event("TodoCreated", "todo.created", "deny", note="Phase validation: the todo can be refused."),
    _event("TodoCompleted", "todo.completed", "deny", note="Phase validation: it can be refused."),
    _event("TodoCreated" + _WRITTEN, "todo.created", install=False, note="Phase postWrite: it is done."),
    _event("TodoCompleted" + _WRITTEN, "todo.completed", install=False, note="Phase postWrite: it is done."),
)

EVENTS: dict[str, Row] = {row.event: row for row in _ROWS}
"""Qwen Code's events. Time limit: its default, 60 seconds."""

UNKNOWN = Row(event="unknown", does="event", type="qwen.unknown", accepts=["Inject"])

_STATUS = {"PostToolUse": "ok", "PostToolUseFailure": "error", "PermissionDenied": "denied"}

_COMMON = (
    "session_id",
    "transcript_path",
    "cwd",
    "hook_event_name",
    "timestamp",
    "prompt_id",
    "permission_mode",
    "agent_id",
    "agent_type",
)


def given(environ: Mapping[str, str]) -> bytes | None:
    """Qwen Code writes to standard input."""
    return None


def caller(payload: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return ``qwen``: nobody else reads its files."""
    return NAME


def has_entry(event: str, project: str, environ: Mapping[str, str]) -> bool:
    """Tell whether the settings of the user or the project call ``hookturn bridge`` for an event."""
    from os.path import join

    folders = (environ.get("HOME", ""), project)
    return calls_us([join(folder, ".qwen", "settings.json") for folder in folders if folder], event)


def event_name(payload: Mapping[str, Any], entry: str = "") -> str:
    """Return ``hook_event_name``, or our own name for what Qwen Code tells under one name but is two things."""
    name = text_of(payload, "hook_event_name") or entry
    if name == "UserPromptSubmit" and payload.get("prompt") == "" and not payload.get("submitted_prompt"):
        return RESULTS
    if name in ("TodoCreated", "TodoCompleted") and payload.get("phase") == "postWrite":
        return name + _WRITTEN
    return name


def read(row: Row, payload: Mapping[str, Any], environ: Mapping[str, str]) -> Moment:
    """Translate a payload (see ``AgentHooks.read``)."""
    fields = common_of(payload, _COMMON)
    fields["session_id"] = fields["session_id"] or environ.get("QWEN_CODE_SESSION_ID", "")
    if row.does in ("tool", "permission", "tool_end"):
        fields |= _call(row, payload)
    elif row.does == "session_start":
        fields["source"] = text_of(payload, "source") or "startup"
    elif row.does == "prompt":
        fields["text"] = prompt_of(payload)
    elif row.does == "message":
        # Each piece holds all that was said so far.
        fields["message_id"] = text_of(payload, "message_id")
        fields["last"] = payload.get("is_final") is not False
        fields["text"] = text_of(payload, "displayed_text") if fields["last"] else ""
    elif row.does in ("turn_end", "subagent_end"):
        fields["text"] = text_of(payload, "last_assistant_message")
        fields["running"] = running_of(payload, lambda task: bool(task.get("agent_type")))
    elif row.does == "turn_failed":
        fields |= failure_of(payload)
    elif row.does == "session_end":
        fields["reason"] = text_of(payload, "reason")
    return Moment(**fields)


def _call(row: Row, payload: Mapping[str, Any]) -> dict[str, Any]:
    tool, args = call_of(payload, ended=row.does == "tool_end")
    # The model's own id of the call stands in every event, Qwen Code's not in all of them.
    call_id = text_of(payload, "tool_call_id") or text_of(payload, "tool_use_id")
    fields = {"tool": tool, "args": args, "call_id": call_id}
    return fields | ended_of(payload, _STATUS[row.event]) if row.does == "tool_end" else fields


# -- answers ----------------------------------------------------------------------------------------


def write(row: Row, moment: Moment, said: Said, environ: Mapping[str, str]) -> BridgeAnswer:
    """Translate what hooks said (see ``AgentHooks.write``)."""
    name = row.event.partition(".")[0]
    data: dict[str, Any] = {}
    own: dict[str, Any] = {}
    context = "\n\n".join(said.inject)
    if name == "PreToolUse":
        if said.decision:
            own |= {"permissionDecision": said.decision, "permissionDecisionReason": said.reason}
    elif name == "PermissionRequest":
        if said.decision == "deny":
            own["decision"] = {"behavior": "deny", "message": said.reason}
        elif said.decision == "allow":
            own["decision"] = {"behavior": "allow"}
    elif name == "PostToolUse" and said.changed:
        # Beside a replaced result Qwen Code drops the context, so it goes along.
        words = said.reason if said.withheld else result_words(said)
        text = "\n\n".join(part for part in (words, context) if part)
        data |= {"continue": False, "stopReason": text}
        context = ""
    elif said.stop:
        if row.event == RESULTS or moment.agent_id:
            data |= {"decision": "block", "reason": said.reason}
    elif said.decision == "deny":
        data |= {"decision": "block", "reason": said.reason}
    elif said.again:
        data |= {"decision": "block", "reason": said.again}
    if context:
        own["additionalContext"] = context
    if said.warnings:
        data["systemMessage"] = "\n".join(said.warnings)
    if own:
        data["hookSpecificOutput"] = {"hookEventName": name, **own}
    return BridgeAnswer(stdout=answer_of(data, NOTHING))


def refusal(row: Row | None, reason: str) -> BridgeAnswer:
    """Return a refusal where nothing else is known."""
    said = Said()
    said.refuse(reason)
    if row is None:
        # Every event that can be refused takes this form but PermissionRequest; the others ignore it.
        return BridgeAnswer(stdout=answer_of({"decision": "block", "reason": said.reason}, NOTHING))
    if "deny" not in row.can:
        said.decision, said.stop = None, True
    elif row.does == "tool_end":
        said.withheld = said.changed = True
    return write(row, Moment(), said, {})
