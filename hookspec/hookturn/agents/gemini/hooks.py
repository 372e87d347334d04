"""Gemini CLI's hook protocol: its payloads to our moments, what hooks said to its answers.

Sources: https://geminicli.com/docs/hooks, and version 0.61.0 as run. Facts that decide here: standard error is
parsed in place of an empty standard output, and text that is no JSON is shown to the user, so that an answer
without opinion is ``{}``; JSON counts on any exit code; ``ask`` waits for ever where nobody sits, and nothing tells
whether somebody does; a turn that goes on after its end has no cap, so that ours is the only one.
"""

from __future__ import annotations

from ..bridge import BridgeAnswer
from ..moments import Moment, Row, Said
from ..payloads import (
    answer_of,
    call_of,
    calls_us,
    prompt_of,
    reply_words,
    result_words,
    table_of,
    text_of,
)
from .tools import TOOLS as TOOLS  # part of what AgentHooks asks for
from .tools import mcp_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

NAME = "gemini"
PROJECT_VARIABLE = ""
"""GEMINI_PROJECT_DIR is no more than the folder in which Gemini CLI was started, which payloads tell as well."""
PID_VARIABLE = ""
NOTHING = b"{}\n"

_ROWS = (
    Row(
        event="SessionStart",
        does="session_start",
        can=["inject", "warn"],
        note="A Block is kept: every prompt of the session is refused.",
    ),
    Row(
        event="BeforeAgent",
        does="prompt",
        can=["deny", "inject", "warn"],
        note="The prompt cannot be changed; a Reply refuses the prompt and is shown to the user.",
    ),
    Row(
        event="BeforeTool",
        does="tool",
        can=["deny", "stop", "args", "warn"],
        note="An Ask is a deny that says so: Gemini CLI would wait for ever where nobody sits. An Allow has no "
        "effect. An Inject is given after the call.",
    ),
    Row(
        event="AfterTool",
        does="tool_end",
        can=["deny", "result", "inject", "stop", "warn"],
        request=True,
        note="A changed result reaches the model as the text of an error. In context `<` and `>` become entities. A "
        "call that a hook refused has no AfterTool: the bridge fires its post_tool_execution.",
    ),
    Row(
        event="AfterAgent",
        does="turn_end",
        can=["again", "warn"],
        note="The answer is shown already. It is the text of all answers of the turn: on_model_response is fired "
        "once, here.",
    ),
    Row(
        event="AfterModel",
        does="message",
        can=["stop", "text", "warn"],
        install=False,
        note="Called for each chunk that arrives, which then waits for us. Where it is entered by hand, "
        "on_model_response is fired when an answer's last chunk is there, and a Rewrite is possible for answers "
        "of one chunk.",
    ),
    Row(
        event="BeforeModel",
        does="event",
        type="model.request",
        can=["deny", "reply", "warn"],
        accepts=["Deny", "Block", "Reply", "Inject"],
        install=False,
        note="Called before each request. A Reply is the text of the model's answer. What the model is to be told "
        "is given at SessionStart, BeforeAgent and AfterTool, which come before every request.",
    ),
    Row(
        event="BeforeToolSelection",
        does="event",
        type="model.tools",
        can=["reply", "warn"],
        accepts=["Reply", "Inject"],
        install=False,
        note="Called before each request. A Reply is the toolConfig: {mode, allowedFunctionNames}.",
    ),
    Row(
        event="PreCompress",
        does="event",
        type="compaction.possible",
        can=["warn"],
        accepts=["Inject"],
        install=False,
        note="Called before each request, whether anything is compressed or not; Gemini CLI never tells that it was.",
    ),
    Row(
        event="Notification",
        does="event",
        type="notification",
        can=["warn"],
        accepts=["Inject"],
        note="Tells that the user is asked (ToolPermission); the answer cannot be given here.",
    ),
    Row(event="SessionEnd", does="session_end", can=["warn"]),
)

EVENTS: dict[str, Row] = {row.event: row for row in _ROWS}
"""Gemini CLI's events. Time limit: its default."""

UNKNOWN = Row(event="unknown", does="event", type="gemini.unknown", can=["warn"], accepts=["Inject"])

_COMMON = ("session_id", "transcript_path", "cwd", "hook_event_name", "timestamp")


def given(environ: Mapping[str, str]) -> bytes | None:
    """Gemini CLI writes to standard input."""
    return None


def caller(payload: Mapping[str, Any], environ: Mapping[str, str]) -> str:
    """Return ``gemini``: nobody else reads its files."""
    return NAME


def has_entry(event: str, project: str, environ: Mapping[str, str]) -> bool:
    """Tell whether a settings file of the user or the project calls ``hookturn bridge`` for an event."""
    from os.path import join

    folders = (environ.get("HOME", ""), project)
    return calls_us([join(folder, ".gemini/settings.json") for folder in folders], event)


def event_name(payload: Mapping[str, Any], entry: str = "") -> str:
    """Return ``hook_event_name`` (see ``AgentHooks.event_name``)."""
    return text_of(payload, "hook_event_name") or entry


def read(row: Row, payload: Mapping[str, Any], environ: Mapping[str, str]) -> Moment:
    """Translate a payload (see ``AgentHooks.read``)."""
    fields: dict[str, Any] = {
        "session_id": text_of(payload, "session_id") or environ.get("GEMINI_SESSION_ID", ""),
        "cwd": text_of(payload, "cwd"),
        "transcript_path": text_of(payload, "transcript_path"),
        "properties": {key: value for key, value in payload.items() if key not in _COMMON},
    }
    if row.does in ("tool", "tool_end"):
        fields["tool"], fields["args"] = call_of(payload, ended=row.does == "tool_end")
        fields["mcp"] = mcp_of(fields["tool"], payload)
    if row.does == "tool_end":
        fields["result"] = result = payload.get("tool_response")
        error = result.get("error") if isinstance(result, dict) else None
        if error:
            fields["status"] = "error"
            fields["error"] = text_of(error, "message") if isinstance(error, dict) else str(error)
    elif row.does == "session_start":
        fields["source"] = text_of(payload, "source") or "startup"
    elif row.does == "prompt":
        fields["text"] = prompt_of(payload)
    elif row.does == "turn_end":
        fields["text"] = text_of(payload, "prompt_response")
    elif row.does == "message":
        fields |= _chunk(payload)
    elif row.does == "session_end":
        fields["reason"] = text_of(payload, "reason")
    return Moment(**fields)


def _chunk(payload: Mapping[str, Any]) -> dict[str, Any]:
    """Return the text of one chunk. Nothing names its answer: it is the one to so many messages."""
    request, response = table_of(payload, "llm_request"), table_of(payload, "llm_response")
    messages = request.get("messages")
    return {
        "model": text_of(request, "model"),
        "text": text_of(response, "text"),
        "message_id": f"answer-{len(messages) if isinstance(messages, list) else 0}",
        "last": bool(_candidate(response).get("finishReason")),
    }


def _candidate(response: Mapping[str, Any]) -> dict[str, Any]:
    candidates = response.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    return first if isinstance(first, dict) else {}


# -- answers ----------------------------------------------------------------------------------------


def write(row: Row, moment: Moment, said: Said, environ: Mapping[str, str]) -> BridgeAnswer:
    """Translate what hooks said (see ``AgentHooks.write``)."""
    data: dict[str, Any] = {}
    own: dict[str, Any] = {}
    context = "\n\n".join(said.inject)
    if row.event == "AfterTool" and said.changed:
        # Context beside a refused result is dropped, as run.
        data |= {"decision": "deny", "reason": "\n\n".join(filter(None, (result_words(said), context)))}
    else:
        if context:
            own["additionalContext"] = context
        if said.decision == "deny":
            data |= {"decision": "deny", "reason": said.reason}
        elif said.again:
            data |= {"decision": "deny", "reason": said.again}
    if said.args is not None:
        own["tool_input"] = said.args
    if said.text is not None:
        own["llm_response"] = _spoken(moment.properties.get("llm_response"), said.text)
    if said.replied:
        _replied(row, said, data, own)
    if said.stop:
        data |= {"continue": False, "stopReason": said.reason}
    if said.warnings:
        data["systemMessage"] = "\n".join(said.warnings)
    if own:
        data["hookSpecificOutput"] = {"hookEventName": row.event, **own}
    return BridgeAnswer(stdout=answer_of(data, NOTHING))


def _spoken(response: Any, text: str) -> dict[str, Any]:
    """Return an answer of the model in the hooks' own form, with other words."""
    response = response if isinstance(response, dict) else {}
    candidate = {"finishReason": "STOP", "index": 0, **_candidate(response)}
    candidate["content"] = {"role": "model", "parts": [text]}
    return {**response, "text": text, "candidates": [candidate]}


def _replied(row: Row, said: Said, data: dict[str, Any], own: dict[str, Any]) -> None:
    if row.event == "BeforeModel":
        # A made answer counts beside a deny only; without it the model is asked all the same.
        data |= {"decision": "deny", "reason": f"{said.by} answered in place of the model."}
        own["llm_response"] = _spoken(None, reply_words(said))
    elif isinstance(said.reply, dict):
        own["toolConfig"] = said.reply
    else:
        said.lost.append(f"a Reply at {row.event} must be an object, the toolConfig")


def refusal(row: Row | None, reason: str) -> BridgeAnswer:
    """Return a refusal where nothing else is known: all events that can be refused have one form."""
    said = Said()
    said.refuse(reason)
    return write(row or UNKNOWN, Moment(), said, {})
