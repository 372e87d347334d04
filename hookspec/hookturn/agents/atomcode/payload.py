"""What AtomCode's hooks read: the JSON of both generations and of webhooks, made from our events.

Source: AtomCode's context objects of the HookEngine (generation 1) and its cc_hooks (generation 2).
"""

from __future__ import annotations

from ...spec.events import rfc3339
from ...spec.record import jsonable
from .matcher import snake, tool_name, tool_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


USED_TOOLS = "used_tools"
"""Key in a hook's state: the last turn in which tools were called. The event post_turn does not tell."""


def dumps(data: Any) -> str:
    """Return compact JSON: readable UTF-8 as AtomCode writes it, escapes only where UTF-8 cannot hold a text."""
    import json

    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:  # lone surrogates
        return json.dumps(data, ensure_ascii=True, separators=(",", ":"))
    return text


def folder_of(event: Any, ctx: Any) -> str:
    """Return the session's folder, else the project's."""
    folder: str = event.cwd or ctx.project_dir
    return folder


def milliseconds(seconds: float) -> int:
    """Return seconds as whole milliseconds."""
    return max(0, round(seconds * 1000))


def result_of(event: Any) -> str:
    """Return what the model reads of a call's end."""
    text: str = event.result_text or event.error
    return text


# -- generation 1 -----------------------------------------------------------------------------------


def hook_context(event: Any, ctx: Any) -> dict[str, Any]:
    """Return HookCtx; tool name and arguments are empty where the event is no tool call's."""
    args = getattr(event, "args", None)
    return {
        "tool_name": tool_name(event) if args is not None else "",
        "tool_args": "" if args is None else dumps(jsonable(args)),
        "working_dir": folder_of(event, ctx),
        "session_id": event.session_id,
        "turn_number": event.turn,
    }


def result_context(event: Any) -> dict[str, Any]:
    """Return ToolResultContext."""
    return {
        "tool_name": tool_name(event),
        "tool_args": dumps(jsonable(event.args)),
        "result": result_of(event),
        "success": event.status == "ok",
        "duration_ms": milliseconds(event.duration),
    }


def turn_result(event: Any, ctx: Any) -> str:
    """Return how a turn went, in AtomCode's words: ``UsedTools`` or ``Responded``."""
    given = event.extra.get("turn_result")
    if isinstance(given, str):
        return given
    return "UsedTools" if event.turn and ctx.state.get(USED_TOOLS) == event.turn else "Responded"


def of_script(timing: str, event: Any, ctx: Any) -> dict[str, Any]:
    """Return what a script of hooks.toml reads."""
    if timing == "post_tool_execution":
        return {"hook_context": hook_context(event, ctx), "result_context": result_context(event)}
    if timing == "post_turn":
        return {"hook_context": hook_context(event, ctx), "turn_result": turn_result(event, ctx)}
    return hook_context(event, ctx)


def of_variable(name: str, event: Any, ctx: Any) -> dict[str, Any]:
    """Return HookContext, the JSON in ``ATOMCODE_HOOK_CONTEXT``; what an event does not have is null.

    Parameters:
        name: AtomCode's name of the event.
        event, ctx: the event, and the hook's capabilities.
    """
    is_tool, is_over = hasattr(event, "tool") and hasattr(event, "args"), hasattr(event, "result_text")
    over = is_over and name.startswith("Post")
    return {
        "event": snake(name),
        "tool_name": tool_name(event) if is_tool else None,
        "tool_args": dumps(jsonable(event.args)) if is_tool else None,
        "tool_result": result_of(event) if over else None,
        "tool_success": event.status == "ok" if over else None,
        "session_id": event.session_id,
        "working_dir": folder_of(event, ctx),
    }


# -- generation 2 -----------------------------------------------------------------------------------


def of_event(name: str, event: Any, ctx: Any, *, several: bool = False) -> dict[str, Any]:
    """Return what a hook of a hooks.json reads on standard input.

    Parameters:
        name: AtomCode's name of the event.
        event, ctx: the event, and the hook's capabilities.
        several: more than one hook of this event counts (AtomCode's meaning of ``stop_hook_active``).
    """
    about = {"session_id": event.session_id, "hook_event_name": name}
    where = {"cwd": folder_of(event, ctx)}
    if name == "PreToolUse":
        call = {"call_id": event.call_id, "tool_name": tool_name(event), "tool_input": jsonable(event.args)}
        return {**about, **call, **where}
    if name in ("PostToolUse", "PostToolUseFailure"):
        call = {
            "call_id": event.call_id,
            "tool_name": tool_of(event) or None,
            "tool_response": result_of(event),
        }
        return {**about, **call, **where}
    if name == "UserPromptSubmit":
        return {**about, "prompt": event.prompt, **where}
    if name in ("Stop", "StopFailure"):
        return {
            "session_id": event.session_id,
            "transcript_path": ctx.session.transcript_path or None,
            "hook_event_name": name,
            "stop_hook_active": several,
            "stop_reason": stop_reason(name, event),
            **where,
        }
    if name == "Notification":
        message = event.properties.get("message")
        return {**about, "message": message if isinstance(message, str) else "", **where}
    return {**about, **where}


def stop_reason(name: str, event: Any) -> str:
    """Return why a turn ended, in AtomCode's words, as far as the event tells."""
    given = event.extra.get("stop_reason")
    if isinstance(given, str):
        return given
    if name == "Stop":
        return "Stopped"
    words = f"{event.error_type} {event.message}".lower()
    return "Timeout" if "timeout" in words or "timed out" in words else "ProviderError"


# -- webhooks ---------------------------------------------------------------------------------------


def of_webhook(timing: str, event: Any, ctx: Any) -> dict[str, Any]:
    """Return what a webhook's body holds beside ``hook_name``, ``trigger`` and ``event``."""
    if timing == "pre_tool_execution":
        return {"context": hook_context(event, ctx)}
    if timing == "post_tool_execution":
        return {"hook_context": hook_context(event, ctx), "result_context": result_context(event)}
    if timing == "post_turn":
        return {"context": hook_context(event, ctx), "turn_result": turn_result(event, ctx)}
    if timing == "system_prompt":
        return {}
    if timing == "on_model_response":
        return {"response": event.text, "turn_context": _turn_start(event, ctx)}
    return {"context": _CONTEXTS[timing](event, ctx)}


def _message(event: Any, ctx: Any) -> dict[str, Any]:
    return {
        "content": event.text,
        "session_id": event.session_id,
        "attached_files": jsonable(event.attachments),
        "timestamp": rfc3339(event.time),
    }


def _turn_start(event: Any, ctx: Any) -> dict[str, Any]:
    return {
        "turn_number": event.turn,
        "session_id": event.session_id,
        "working_dir": folder_of(event, ctx),
        "phase": getattr(event, "phase", "") or "idle",
        "has_file_context": False,
    }


def _call_start(event: Any, ctx: Any) -> dict[str, Any]:
    return {
        "tool_name": tool_name(event),
        "tool_args": dumps(jsonable(event.args)),
        "call_id": event.call_id,
        "turn_number": event.turn,
    }


def _turn_complete(event: Any, ctx: Any) -> dict[str, Any]:
    used = [event.usage.get(name, 0) for name in ("input_tokens", "output_tokens")]
    return {
        "turn_number": event.turn,
        "result_type": "natural",
        "tokens_used": sum(number for number in used if isinstance(number, int)),
        "tool_calls": len(event.tool_calls),
        "duration_ms": milliseconds(event.duration),
        "truncated": False,
        "edited_files": list(event.edited_files),
    }


def _session(event: Any, ctx: Any) -> dict[str, Any]:
    return {
        "session_id": event.session_id,
        "working_dir": folder_of(event, ctx),
        "model_name": getattr(event, "model", ""),
        "provider_name": getattr(event, "provider", ""),
    }


def _error(event: Any, ctx: Any) -> dict[str, Any]:
    return {
        "error_type": event.error_type,
        "error_message": event.message,
        "phase": event.phase,
        "turn_number": event.turn or None,
    }


_CONTEXTS = {
    "on_message_received": _message,
    "on_turn_start": _turn_start,
    "on_tool_call_start": _call_start,
    "on_turn_complete": _turn_complete,
    "on_session_start": _session,
    "on_session_end": _session,
    "on_error": _error,
}
