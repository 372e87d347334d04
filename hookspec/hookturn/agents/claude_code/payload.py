"""What Claude Code's hooks read: its JSON of an event, made from ours.

Source: the hooks reference, and version 2.1.332 as run.
"""

from __future__ import annotations

from ...spec.record import jsonable, thaw
from .calls import Input, name_of, response_of
from .occasions import about_of, end_reason

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...spec.events import Event
    from .occasions import Occasion

_FROM_RAW = ("transcript_path", "prompt_id", "permission_mode", "effort")


def body_of(occasion: Occasion, event: Event, ctx: Any) -> bytes:
    """Return a payload as bytes: one JSON document in ASCII, so that any text is valid in it."""
    import json

    payload = jsonable(payload_of(occasion, event, ctx))
    return json.dumps(payload, ensure_ascii=True, separators=(",", ":")).encode("ascii")


def payload_of(occasion: Occasion, event: Event, ctx: Any) -> dict[str, Any]:
    """Return an event as Claude Code's hooks read it.

    What the agent's own payload has beside (prompt id, permission mode, effort) is kept where it is Claude Code's.

    Parameters:
        occasion: Claude Code's name for it.
        event: the event.
        ctx: the hook's capabilities.
    """
    raw: Any = event.raw if isinstance(event.raw, dict) else {}
    if raw.get("hook_event_name") != occasion.name:
        raw = {}
    kept = {key: thaw(raw[key]) for key in _FROM_RAW if key in raw}
    data: dict[str, Any] = {
        "session_id": event.session_id,
        "transcript_path": kept.pop("transcript_path", ctx.session.transcript_path),
        "cwd": event.cwd or ctx.project_dir,
    }
    if "prompt_id" in kept:
        data["prompt_id"] = kept["prompt_id"]
    if occasion.mode:
        data["permission_mode"] = kept.get("permission_mode", "default")
    if event.agent_id:
        data.update(agent_id=event.agent_id, agent_type=event.agent)
    if "effort" in kept:
        data["effort"] = kept["effort"]
    data["hook_event_name"] = occasion.name
    data.update(_own(occasion, event))
    return data


def _own(occasion: Occasion, event: Any) -> dict[str, Any]:
    """Return the fields that an event has for itself."""
    name = occasion.name
    if name == "SessionStart":
        return {"source": event.source, **({"model": event.model} if event.model else {})}
    if name == "SessionEnd":
        return {"reason": end_reason(event.reason)}
    if name == "UserPromptSubmit":
        return {"prompt": event.prompt}
    if name in ("Stop", "SubagentStop"):
        fields = {"stop_hook_active": event.continued > 0, "last_assistant_message": event.text}
        return {**fields, "background_tasks": [], "session_crons": []}
    if name == "StopFailure":
        return {"error": event.error_type, "error_details": event.message}
    if name == "MessageDisplay":
        where = {"turn_id": f"{event.session_id}-{event.turn}", "message_id": "", "index": 0, "final": True}
        return {**where, "delta": event.text}
    if occasion.timing == "on_event":
        return _of_host_event(name, event)
    fields = {"tool_name": name_of(event), "tool_input": Input(event).value}
    if name == "PostToolUse":
        fields["tool_response"] = response_of(event)
    if name != "PermissionRequest":
        fields["tool_use_id"] = event.call_id
    if name == "PostToolUseFailure":
        fields["error"] = event.error or event.result_text or event.status
        fields["is_interrupt"] = event.status == "cancelled"
    if occasion.timing == "post_tool_execution":
        fields["duration_ms"] = round(event.duration * 1000)
    return fields


def _of_host_event(name: str, event: Any) -> dict[str, Any]:
    about = about_of(event)
    fields = {key: thaw(value) for key, value in about.items() if key not in _COMMON}
    if name == "SubagentStart":
        fields.pop("agent", None)
        fields.setdefault("agent_id", event.agent_id)
        fields["agent_type"] = about.get("agent_type") or about.get("agent") or event.agent
    elif name in ("PreCompact", "PostCompact"):
        fields.setdefault("trigger", "auto")
        if name == "PreCompact":
            fields.setdefault("custom_instructions", "")
    elif name == "Notification":
        fields.setdefault("message", "")
        fields.setdefault("notification_type", "")
    return fields


_COMMON = ("session_id", "transcript_path", "cwd", "hook_event_name", *_FROM_RAW)
