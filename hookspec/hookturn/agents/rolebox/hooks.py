"""rolebox's hook module: what ours (``hook.mjs``) hands over to our moments, what hooks said to what it does.

Source: rolebox's custom hooks as they are called. They let a hook do little: what a handler returns or throws has
no effect, ``skip`` is read by nobody, the text of a message and the output of a tool are copies. What counts are
changes in place of a tool's arguments and of the system prompt's parts, and texts for the next system prompt. So a
refused call gets arguments that no tool takes, and its reason by the system prompt.
"""

from __future__ import annotations

from ..bridge import BridgeAnswer, Malformed
from ..moments import Moment, Row, Said
from ..payloads import answer_of, parts_of, table_of, text_of, watched
from .tools import TOOLS as TOOLS  # part of what AgentHooks asks for

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAME = "rolebox"
PROJECT_VARIABLE = ""
PID_VARIABLE = ""
NOTHING = b""


_ROWS = (
    Row(
        event="chat.message",
        does="prompt",
        can=["inject", "warn"],
        system=False,
        note="The text cannot be changed, nor the message refused: either is a warning.",
    ),
    Row(
        event="tool.execute.before",
        does="tool",
        can=["deny", "args", "warn"],
        system=False,
        note="A refused call gets arguments of wrong types, which the check before the tool refuses; the model reads "
        "why in that error, and in its next system prompt. A tool that has no arguments, or takes any, runs all the "
        "same.",
    ),
    Row(
        event="tool.execute.after",
        does="tool_end",
        can=["inject", "warn"],
        system=False,
        note="The result cannot be changed or withheld.",
    ),
    Row(event="system.transform", does="system_prompt", can=["system", "warn"]),
    watched("session.created", "", "session_start"),
    watched("session.idle", "", "idle", "rolebox does not tell the turn's text: `text` is empty."),
    watched("session.error", "", "error"),
    watched("session.deleted", "", "session_end"),
    watched("dispose", "", "session_end"),
    watched("session.compacted", "compaction.after"),
    watched("permission.asked", "permission.asked"),
    watched("permission.replied", "permission.replied"),
    watched("file.edited", "file.changed"),
    watched("command.executed", "command.executed"),
)

EVENTS: dict[str, Row] = {row.event: row for row in _ROWS}
"""rolebox's events, and those of the host that our module hands over. Time limit: the module's own."""

UNKNOWN = Row(
    event="unknown", does="event", type="rolebox.unknown", can=["warn"], accepts=["Inject"], system=False
)


def given(environ: Mapping[str, str]) -> bytes | None:
    """The module writes to standard input."""
    return None


def caller(payload: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return ``rolebox``: nobody else runs the hooks of a role."""
    return NAME


def has_entry(event: str, project: str, environ: Mapping[str, str]) -> bool:
    """Tell whether a role calls us; nobody else runs our entry, so nobody asks."""
    return False


def event_name(payload: Mapping[str, Any], entry: str = "") -> str:
    """Return rolebox's name of the event, or the host's for one that rolebox only passes on."""
    hook = text_of(payload, "hook")
    return (text_of(table_of(payload, "input"), "type") if hook == "event" else hook) or entry


def read(row: Row, payload: Mapping[str, Any], environ: Mapping[str, str]) -> Moment:
    """Translate a payload (see ``AgentHooks.read``)."""
    given = table_of(payload, "input")
    properties = table_of(given, "properties")
    session = text_of(payload, "sessionID")
    fields: dict[str, Any] = {"session_id": session, "cwd": text_of(payload, "directory")}
    parent = text_of(payload, "parent")
    if parent:
        fields |= {"agent_id": session, "parent_id": parent, "agent": text_of(payload, "agent") or "subagent"}
    else:
        fields["agent"] = text_of(payload, "agent")
    if row.does in ("tool", "tool_end"):
        fields |= _call(row, given)
    elif row.does == "prompt":
        fields["text"] = text_of(given, "text")
    elif row.does == "system_prompt":
        fields["parts"] = parts_of(given, "input")
    elif row.does == "error":
        error = table_of(properties, "error")
        fields["reason"] = text_of(error, "name")
        fields["error"] = text_of(table_of(error, "data"), "message") or text_of(error, "message")
    elif row.does == "session_end":
        fields["reason"] = "deleted" if row.event == "session.deleted" else "complete"
    elif row.does == "event":
        fields["properties"] = properties
    return Moment(**fields)


def _call(row: Row, given: Mapping[str, Any]) -> dict[str, Any]:
    ended = row.does == "tool_end"
    tool, args = text_of(given, "tool"), given.get("args")
    if not tool:
        raise Malformed("input.tool is no name")
    if not isinstance(args, dict) and not ended:
        raise Malformed("input.args is no object")
    return {"tool": tool, "args": args, **({"result": given.get("output")} if ended else {})}


# -- answers ----------------------------------------------------------------------------------------


def write(row: Row, moment: Moment, said: Said, environ: Mapping[str, str]) -> BridgeAnswer:
    """Translate what hooks said (see ``AgentHooks.write``)."""
    data: dict[str, Any] = {}
    if said.decision == "deny":
        data["refuse"] = said.reason
    elif said.args is not None:
        data["args"] = said.args
    elif said.parts is not None:
        data["system"] = said.parts
    if said.inject:
        data["inject"] = "\n\n".join(said.inject)
    if said.warnings:
        data["warn"] = said.warnings
    return BridgeAnswer(stdout=answer_of(data, NOTHING))


def refusal(row: Row | None, reason: str) -> BridgeAnswer:
    """Return a refusal where nothing else is known."""
    return BridgeAnswer(stdout=answer_of({"refuse": reason}, NOTHING))
