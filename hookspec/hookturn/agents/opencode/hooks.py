"""opencode's plugin functions and bus events: what our plugin hands over to our moments, what hooks said to what
the plugin does.

Sources: the types of @opencode-ai/plugin 1.18.33, and opencode 1.18.33 as run. The plugin (``plugin.js``) sends
``{hook, input, output, directory, worktree, parent, text}`` or ``{hook: "event", event: {type, properties}, ...}``
and does what it gets: ``throw`` (an error's words), ``set`` (fields of ``output``), ``assign`` (objects in it that
are changed in place), ``replace`` (lists in it, likewise), ``warn`` (texts for the user).
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

NAME = "opencode"
PROJECT_VARIABLE = ""
PID_VARIABLE = ""
NOTHING = b""


_ROWS = (
    Row(
        event="session.created",
        does="session_start",
        can=["env", "warn"],
        system=False,
        keeps_env=True,
        note="What is injected here is given with the first prompt. A Block is kept: every prompt of the session is "
        "refused. A sub-agent's session is no session for hooks: its turn begins with its chat.message.",
    ),
    Row(
        event="chat.message",
        does="prompt",
        can=["deny", "prompt", "inject", "env", "warn"],
        system=False,
        keeps_env=True,
        note="Context becomes a part of the message that opencode does not show. A refusal, and a Reply, end the run "
        "with an error.",
    ),
    Row(
        event="experimental.chat.system.transform",
        does="system_prompt",
        can=["system", "stop", "warn"],
        note="Called before each request to the model, those for titles and summaries left out. A Block of an "
        "earlier moment ends the turn here, with an error.",
    ),
    Row(
        event="tool.execute.before",
        does="tool",
        can=["deny", "args", "warn"],
        system=False,
        note="An Ask is a deny that says so; an Allow has no effect; a Reply is a deny whose reason it is. A Block "
        "refuses the call, and the turn ends with the next request.",
    ),
    Row(
        event="tool.execute.after",
        does="tool_end",
        can=["deny", "result", "inject", "warn"],
        system=False,
        note="Context is appended to the result.",
    ),
    Row(
        event="message.part.updated",
        does="tool_end",
        can=["warn"],
        system=False,
        note="Of a call that failed, or that the user refused: opencode calls no tool.execute.after then.",
    ),
    Row(event="experimental.text.complete", does="message", can=["text", "warn"], system=False),
    Row(
        event="session.idle",
        does="idle",
        can=["warn"],
        system=False,
        note="The turn is over: a Continue is a warning, and the text is shown already.",
    ),
    Row(event="session.error", does="error", can=["warn"], system=False),
    Row(event="session.deleted", does="session_end", can=["warn"], system=False),
    Row(
        event="dispose",
        does="session_end",
        can=["warn"],
        system=False,
        note="opencode ends, or lets the project go.",
    ),
    Row(
        event="experimental.session.compacting",
        does="event",
        type="compaction.before",
        can=["inject", "warn"],
        accepts=["Inject"],
        system=False,
        note="An Inject is added to what the summary is made from.",
    ),
    Row(
        event="shell.env",
        does="env",
        type="shell.env",
        can=["env", "warn"],
        accepts=["SetEnv", "Inject"],
        system=False,
        note="Variables that hooks set at the start of session and turn are given here, to each command.",
    ),
    watched("session.compacted", "compaction.after"),
    watched(
        "permission.asked",
        "permission.asked",
        note="opencode asks its user; the answer cannot be given here.",
    ),
    watched("permission.replied", "permission.replied"),
    watched("file.edited", "file.changed"),
    watched("command.executed", "command.executed"),
)

EVENTS: dict[str, Row] = {row.event: row for row in _ROWS}
"""opencode's functions and bus events that our plugin hands over. Time limit: the plugin's own."""

UNKNOWN = Row(
    event="unknown", does="event", type="opencode.unknown", can=["warn"], accepts=["Inject"], system=False
)


def given(environ: Mapping[str, str]) -> bytes | None:
    """The plugin writes to standard input."""
    return None


def caller(payload: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return ``opencode``: nobody else runs its plugins."""
    return NAME


def has_entry(event: str, project: str, environ: Mapping[str, str]) -> bool:
    """Tell whether our plugin, which is told of every event, is among the user's or the project's."""
    from os.path import isfile, join

    config = environ.get("XDG_CONFIG_HOME") or join(environ.get("HOME", ""), ".config")
    folders = (join(config, "opencode"), join(project, ".opencode"))
    return any(isfile(join(folder, "plugin", "hookturn.js")) for folder in folders)


def event_name(payload: Mapping[str, Any], entry: str = "") -> str:
    """Return the function's name, or the type of a bus event."""
    hook = text_of(payload, "hook")
    return (text_of(table_of(payload, "event"), "type") if hook == "event" else hook) or entry


def read(row: Row, payload: Mapping[str, Any], environ: Mapping[str, str]) -> Moment:
    """Translate a payload (see ``AgentHooks.read``)."""
    event = table_of(payload, "event")
    properties = table_of(event, "properties")
    given, output = table_of(payload, "input"), table_of(payload, "output")
    info = table_of(properties, "info")
    session = text_of(given, "sessionID") or text_of(properties, "sessionID") or text_of(info, "id")
    fields: dict[str, Any] = {"session_id": session, "cwd": text_of(payload, "directory")}
    parent = text_of(payload, "parent")
    if parent:
        fields |= {"agent_id": session, "parent_id": parent, "agent": text_of(payload, "agent") or "subagent"}
    if row.event == "message.part.updated":
        fields |= _failed(table_of(properties, "part"))
    elif row.does in ("tool", "tool_end"):
        fields |= _call(row, given, output)
    elif row.does == "prompt":
        fields["text"] = "\n".join(part["text"] for part in _typed(output))
        model = table_of(table_of(output, "message"), "model")
        fields["model"] = text_of(model, "modelID")
    elif row.does == "system_prompt":
        fields["parts"] = parts_of(output, "output")
        fields["model"] = text_of(table_of(given, "model"), "id")
    elif row.does == "message":
        fields["text"] = text_of(output, "text")
    elif row.does == "idle":
        fields["text"] = text_of(payload, "text")
    elif row.does == "error":
        error = table_of(properties, "error")
        fields["reason"] = text_of(error, "name")
        fields["error"] = text_of(table_of(error, "data"), "message")
    elif row.does == "session_end":
        fields["reason"] = "deleted" if row.event == "session.deleted" else "complete"
    elif row.does in ("event", "env"):
        fields["properties"] = properties or given
    return Moment(**fields)


def _call(row: Row, given: Mapping[str, Any], output: Mapping[str, Any]) -> dict[str, Any]:
    ended = row.does == "tool_end"
    tool, args = text_of(given, "tool"), (given if ended else output).get("args")
    if not tool:
        raise Malformed("input.tool is no name")
    if not isinstance(args, dict) and not ended:
        raise Malformed("output.args is no object")
    fields: dict[str, Any] = {"tool": tool, "args": args, "call_id": text_of(given, "callID")}
    if ended:
        fields["result"] = dict(output)
        code = table_of(output, "metadata").get("exit")
        if isinstance(code, int) and code:
            fields |= {"status": "error", "error": f"exit code {code}"}
    return fields


def _failed(part: Mapping[str, Any]) -> dict[str, Any]:
    """Return how a call ended whose part holds an error."""
    state = table_of(part, "state")
    error = text_of(state, "error")
    fields = {
        "tool": text_of(part, "tool"),
        "args": state.get("input"),
        "call_id": text_of(part, "callID"),
        "result": error,
    }
    if "rejected permission" in error:  # its own words, as run
        return {**fields, "status": "denied", "reason": error}
    return {**fields, "status": "error", "error": error}


def _typed(output: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the parts of a message that the user wrote."""
    parts = output.get("parts")
    if not isinstance(parts, list):
        raise Malformed("output.parts is no array")
    return [
        part
        for part in parts
        if isinstance(part, dict)
        and part.get("type") == "text"
        and isinstance(part.get("text"), str)
        and not part.get("synthetic")
    ]


# -- answers ----------------------------------------------------------------------------------------


def write(row: Row, moment: Moment, said: Said, environ: Mapping[str, str]) -> BridgeAnswer:
    """Translate what hooks said (see ``AgentHooks.write``)."""
    data: dict[str, Any] = {}
    if (said.decision == "deny" and not said.changed) or said.stop:
        data["throw"] = said.reason
    elif row.does == "tool_end":
        fields = _result(moment.result, said)
        if fields:
            data["set"] = fields
    elif said.args is not None:
        data["assign"] = {"args": said.args}
    elif row.does == "env" and said.env:
        data["assign"] = {"env": said.env}
    elif row.does == "message" and said.text is not None:
        data["set"] = {"text": said.text}
    elif row.does == "system_prompt" and said.parts is not None:
        data["replace"] = {"system": said.parts}
    elif row.does == "prompt" and (said.text is not None or said.inject):
        data["message"] = {"text": said.text, "context": "\n\n".join(said.inject)}
    elif row.does == "event" and said.inject:
        data["push"] = {"context": said.inject}
    if said.warnings:
        data["warn"] = said.warnings
    return BridgeAnswer(stdout=answer_of(data, NOTHING))


def _result(result: Any, said: Said) -> dict[str, Any]:
    """Return the fields of a tool's result that change."""
    from ...spec.tools import result_text_of, with_result_text

    old = result if isinstance(result, dict) else {}
    new: Any = said.result if said.changed else old
    if said.inject:
        new = with_result_text(new, "\n\n".join([result_text_of(new), *said.inject]).lstrip("\n"))
    if isinstance(new, str):
        new = {**old, "output": new}
    fields = {key: value for key, value in new.items() if old.get(key) != value}
    shown = table_of(old, "metadata")
    if "output" in fields and said.changed and shown.get("output") == old.get("output"):
        fields["metadata"] = {**shown, "output": fields["output"]}  # the copy that the user sees
    return fields


def refusal(row: Row | None, reason: str) -> BridgeAnswer:
    """Return a refusal where nothing else is known: an error."""
    return BridgeAnswer(stdout=answer_of({"throw": reason}, NOTHING))
