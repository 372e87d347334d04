"""OpenAI Codex's hook protocol: its payloads to our moments, what hooks said to its answers.

Sources: https://developers.openai.com/codex/hooks, and version 0.171.0 as run. Facts that decide here: each event
has a closed schema, and one field that it lacks voids the whole answer, so that the action goes on; a deny
without a reason is dropped; JSON counts with exit code 0 only; ``ask`` is an error; ``allow`` counts only beside
changed arguments; a turn that goes on after its end has no cap, so that ours is the only one.
"""

from __future__ import annotations

from ..bridge import BridgeAnswer
from ..moments import Moment, Row, Said
from ..payloads import answer_of, call_of, calls_us, common_of, prompt_of, result_words, text_of
from .tools import TOOLS as TOOLS  # part of what AgentHooks asks for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAME = "codex"
PROJECT_VARIABLE = ""
PID_VARIABLE = ""
NOTHING = b""

_LONG = 600.0
_SHORT = 3.0  # Codex cuts longer limits of these events down to this

_ROWS = (
    Row(
        event="SessionStart",
        does="session_start",
        can=["inject", "warn"],
        seconds=_LONG,
        note="A Block is kept: every prompt of the session is refused.",
    ),
    Row(
        event="UserPromptSubmit",
        does="prompt",
        can=["deny", "inject", "warn"],
        seconds=_LONG,
        note="The prompt cannot be changed; a Reply refuses the prompt and is shown to the user. A sub-agent's task "
        "comes here, too, and is no message of the user.",
    ),
    Row(
        event="PreToolUse",
        does="tool",
        can=["deny", "args", "inject", "warn"],
        seconds=_LONG,
        note="An Ask is a deny that says so; an Allow has no effect; a Block refuses the turn's later calls, too. "
        "A patch typed into the shell may come as Bash or as apply_patch, and Codex tells no end of it, nor of a "
        "call that failed before it ran: their post_tool_execution comes with the turn's end, status unknown.",
    ),
    Row(
        event="PermissionRequest",
        does="permission",
        can=["deny", "allow", "warn"],
        seconds=_LONG,
        note="Without an answer Codex asks its user.",
    ),
    Row(
        event="PostToolUse",
        does="tool_end",
        can=["deny", "result", "inject", "warn"],
        seconds=_LONG,
        request=True,
        note="A changed result goes to the model as a text in place of the old one. Codex does not tell whether a "
        "command failed: the status is ok.",
    ),
    Row(
        event="Stop",
        does="turn_end",
        can=["again", "warn"],
        seconds=_LONG,
        note="The answer is shown already.",
    ),
    Row(
        event="Interrupt",
        does="turn_end",
        can=["warn"],
        seconds=_SHORT,
        note="The user stopped the turn: it ends with what it has. 3 seconds.",
    ),
    Row(event="SubagentStart", does="subagent_start", can=["inject", "warn"], seconds=_LONG),
    Row(
        event="SubagentStop",
        does="subagent_end",
        can=["again", "warn"],
        seconds=_LONG,
        type="subagent.stop",
    ),
    Row(
        event="PreCompact",
        does="event",
        type="compaction.before",
        can=["deny", "warn"],
        accepts=["Deny", "Block", "Inject"],
        seconds=_LONG,
        note="A Deny keeps the conversation as it is and ends the turn, which Codex calls interrupted.",
    ),
    Row(
        event="PostCompact",
        does="compacted",
        type="compaction.after",
        can=["warn"],
        accepts=["Inject"],
        seconds=_LONG,
        note="SessionStart with source compact follows: what the model was told is given again there.",
    ),
    Row(event="SessionEnd", does="session_end", can=[], seconds=_SHORT, note="3 seconds."),
)

EVENTS: dict[str, Row] = {row.event: row for row in _ROWS}
"""Codex's events. Time limits: its defaults."""

UNKNOWN = Row(event="unknown", does="event", type="codex.unknown", can=["warn"], accepts=["Inject"])
"""``systemMessage`` is in the schema of every event that takes an answer at all."""

_COMMON = (
    "session_id",
    "transcript_path",
    "cwd",
    "hook_event_name",
    "permission_mode",
    "turn_id",
    "model",
    "agent_id",
    "agent_type",
)

_CONTEXT = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "SubagentStart")
"""Events whose schema has ``additionalContext``."""


def given(environ: Mapping[str, str]) -> bytes | None:
    """Codex writes to standard input."""
    return None


def caller(payload: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return ``codex``: nobody else reads its files."""
    return NAME


def has_entry(event: str, project: str, environ: Mapping[str, str]) -> bool:
    """Tell whether a hooks file or configuration of the user or the project calls ``hookturn bridge`` for an event."""
    from os.path import join

    home = environ.get("CODEX_HOME") or join(environ.get("HOME", ""), ".codex")
    folders = (home, join(project, ".codex"))
    files = [join(folder, name) for folder in folders for name in ("hooks.json", "config.toml")]
    return calls_us(files, event)


def event_name(payload: Mapping[str, Any], entry: str = "") -> str:
    """Return ``hook_event_name`` (see ``AgentHooks.event_name``)."""
    return text_of(payload, "hook_event_name") or entry


def read(row: Row, payload: Mapping[str, Any], environ: Mapping[str, str]) -> Moment:
    """Translate a payload (see ``AgentHooks.read``)."""
    fields = common_of(payload, _COMMON)
    if row.does in ("tool", "permission", "tool_end"):
        fields["tool"], fields["args"] = call_of(payload, ended=row.does == "tool_end")
        fields["call_id"] = text_of(payload, "tool_use_id")
    if row.does == "permission" and fields["tool"] == "Bash":
        # The model's justification stands among the arguments, which are otherwise those of the call.
        fields["reason"] = text_of(fields["args"], "description")
        fields["args"] = {key: value for key, value in fields["args"].items() if key != "description"}
    elif row.does == "tool_end":
        fields["result"] = result = payload.get("tool_response")
        if isinstance(result, dict) and result.get("isError") is True:
            fields["status"] = "error"
    elif row.does == "session_start":
        fields["source"] = text_of(payload, "source") or "startup"
    elif row.does == "prompt":
        fields["text"] = prompt_of(payload)
    elif row.does in ("turn_end", "subagent_end"):
        fields["text"] = text_of(payload, "last_assistant_message")
        if row.does == "turn_end":
            fields["running"] = ["*"]
    elif row.does == "session_end":
        fields["reason"] = text_of(payload, "reason")
    return Moment(**fields)


# -- answers ----------------------------------------------------------------------------------------


def write(row: Row, moment: Moment, said: Said, environ: Mapping[str, str]) -> BridgeAnswer:
    """Translate what hooks said (see ``AgentHooks.write``)."""
    data: dict[str, Any] = {}
    own: dict[str, Any] = {}
    if said.inject and row.event in _CONTEXT:
        own["additionalContext"] = "\n\n".join(said.inject)
    if row.event == "PreToolUse":
        if said.decision == "deny":
            own |= {"permissionDecision": "deny", "permissionDecisionReason": said.reason}
        elif said.args is not None:
            own |= {"permissionDecision": "allow", "updatedInput": said.args}
    elif row.event == "PermissionRequest":
        if said.decision == "deny":
            own["decision"] = {"behavior": "deny", "message": said.reason}
        elif said.decision == "allow":
            own["decision"] = {"behavior": "allow"}
    elif row.event == "PreCompact":
        if said.decision == "deny":
            data |= {"continue": False, "stopReason": said.reason}
    elif row.event == "PostToolUse" and said.changed:
        data |= {"decision": "block", "reason": result_words(said)}
    elif said.decision == "deny":
        data |= {"decision": "block", "reason": said.reason}
    elif said.again:
        data |= {"decision": "block", "reason": said.again}
    if said.warnings:
        data["systemMessage"] = "\n".join(said.warnings)
    if own:
        data["hookSpecificOutput"] = {"hookEventName": row.event, **own}
    return BridgeAnswer(stdout=answer_of(data, NOTHING))


def refusal(row: Row | None, reason: str) -> BridgeAnswer:
    """Return a refusal where nothing else is known."""
    said = Said()
    said.refuse(reason)
    if row is None:
        # The form of most events that can be refused; the others void it.
        return BridgeAnswer(stdout=answer_of({"decision": "block", "reason": said.reason}, NOTHING))
    return write(row, Moment(), said, {})
