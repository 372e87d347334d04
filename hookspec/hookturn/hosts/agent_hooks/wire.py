"""The wire of AGENT-HOOKS-0.1: what a hookturn event looks like in it, and its verdicts and paths.

Only plain JSON values: nothing of the SDK is imported. Section numbers are the specification's.
"""

from __future__ import annotations

from ...engine.composition import RefusedAnswer
from ...spec.errors import json_kind
from ...spec.events import rfc3339
from ...spec.record import jsonable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...spec.events import Event

SPEC = "agent-hooks/0.1"

MODEL_REQUEST = "model.request"
"""Type of the host event (``on_event``) that stands for a request to the model.

Its properties are ``model`` (a name), ``messages`` (a list of ``{"role", "content"}``) and, if the host
likes, ``tools``."""

MODEL_ACCEPTS = ("Block", "Rewrite")
"""What such an event accepts: no request, or one with other ``properties``."""

POINTS = (
    "agent_startup",
    "input",
    "pre_model_call",
    "post_model_call",
    "pre_tool_call",
    "post_tool_call",
    "output",
    "agent_shutdown",
)
"""The interception points in the order of a session."""

TIMINGS = {
    "agent_startup": "on_session_start",
    "input": "on_message_received",
    "pre_model_call": "on_event",
    "post_model_call": "on_model_response",
    "pre_tool_call": "pre_tool_execution",
    "post_tool_call": "post_tool_execution",
    "output": "on_turn_complete",
    "agent_shutdown": "on_session_end",
}
"""Interception point -> the timing where it happens."""

_POINTS = {timing: point for point, timing in TIMINGS.items()}
_REASONS = {"complete": "completed", "interrupted": "cancelled", "cancelled": "cancelled"}
_EVIDENCE_BYTES = 10_240
_MESSAGE_BYTES = 256


def point_of(event: Event) -> str | None:
    """Return the interception point of an event, None where it is none.

    A denied call has no post_tool_call (section 6.2); a sub-agent's prompt and answer do not leave the
    agent; a turn that ends without any text returns nothing to the caller.
    """
    point = _POINTS.get(event.timing)
    given: Any = event
    if (
        (point == "pre_model_call" and given.type != MODEL_REQUEST)
        or (point == "post_tool_call" and given.status == "denied")
        or (point in ("input", "output") and given.agent_id)
        or (point == "output" and not given.text and given.result is None)
    ):
        return None
    return point


def context(event: Event) -> dict[str, Any]:
    """Return the AgentContext of an event (section 4): a new copy, all of it the caller's own.

    Parameters:
        event: an event that is an interception point.
    """
    point = point_of(event)
    assert point is not None
    subject = _subject(event, point)
    return {
        "spec": SPEC,
        "interception_point": point,
        "timestamp": rfc3339(event.time),
        "sequence": event.extra.get("sequence", 0),
        "agent": {"id": event.agent_id or event.agent or "main", "framework": _framework(event.host)},
        "session": {"id": event.session_id, "turn": event.turn},
        **subject,
        "target": target(event),
    }


def target(event: Event) -> Any:
    """Return the target of an event (section 4.3), a new copy."""
    point = point_of(event)
    assert point is not None
    subject = _subject(event, point)
    if point == "pre_model_call":
        return subject["messages"]
    if point == "pre_tool_call":
        return subject["tool_call"]["args"]
    if point == "post_tool_call":
        return subject["tool_result"]["value"]
    names = {
        "agent_startup": "agent_init",
        "input": "input",
        "post_model_call": "response",
        "output": "output",
        "agent_shutdown": "summary",
    }
    return subject[names[point]]


def _subject(event: Event, point: str) -> dict[str, Any]:
    """The conditional members (section 4.2)."""
    given: Any = event
    if point == "agent_startup":
        return {"agent_init": {"tools_registered": list(event.extra.get("tools", ()))}}
    if point == "input":
        role = given.origin if given.origin in ("user", "system") else "external"
        return {"input": {"content": given.text, "role": role}}
    if point == "pre_model_call":
        properties = given.properties
        more = {"tools": _plain(properties["tools"])} if "tools" in properties else {}
        return {
            "model": {"id": str(properties.get("model") or "unknown")},
            "messages": _plain(properties.get("messages", [])),
            **more,
        }
    if point == "post_model_call":
        calls = [_call(item) for item in given.tool_calls]
        # Where a model only calls tools, its answer has no text.
        content = given.text if given.text or not calls else None
        response = {"content": content, "tool_calls": calls, "finish_reason": given.stop_reason or "stop"}
        return {"model": {"id": given.model or "unknown"}, "response": response}
    if point == "output":
        return {"output": {"content": given.text}}
    if point == "agent_shutdown":
        return {"summary": {"reason": _REASONS.get(given.reason, "error")}}
    call = {"id": given.call_id or "call", "name": given.tool, "args": _plain(given.args)}
    if point == "pre_tool_call":
        return {"tool_call": call}
    failed = given.status not in ("ok", "replied")
    value = _plain(given.result)
    if failed and value is None:
        value = given.error or None
    milliseconds = round(given.duration * 1000, 3)
    return {
        "tool_call": call,
        "tool_result": {"value": value, "is_error": failed, "duration_ms": milliseconds},
    }


def _call(item: Any) -> dict[str, Any]:
    """One tool call of a model's answer, from hookturn's form (id, tool, args) or theirs (id, name, args)."""
    given = item if isinstance(item, dict) else {}
    return {
        "id": str(given.get("id") or given.get("call_id") or "call"),
        "name": str(given.get("tool") or given.get("name") or "unknown"),
        "args": _plain(given.get("args") or {}),
    }


def _framework(host: str) -> str:
    name = "".join(c if c.isascii() and (c.isalnum() or c in "_-") else "-" for c in host.lower())
    return name or "hookturn"


def _plain(value: Any) -> Any:
    """A JSON value as it is, in ordinary containers; other objects as hookturn writes them.

    Numbers without a JSON form and lone surrogates stay: the identity refuses them (section 4.4).
    """
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return jsonable(value)


# -- transforms (section 5.2) -------------------------------------------------------------------


def check_path(path: Any) -> None:
    """Raise RefusedAnswer for a transform path that is none, or that leaves the target."""
    if not isinstance(path, str):
        raise RefusedAnswer("transform.path must be a string")
    _segments(path)


def _segments(path: str) -> list[str | int]:
    import re

    root = re.match(r"\$(?:policy_)?target", path)
    if root is None:
        raise RefusedAnswer(f"the path {path!r:.200} does not begin with $target", "rewrite_forbidden")
    segments: list[str | int] = []
    position = root.end()
    segment = re.compile(r'\.([A-Za-z0-9_-]+)|\[([0-9]+)\]|\["([A-Za-z0-9_-]+)"\]')
    while position < len(path):
        found = segment.match(path, position)
        if found is None:
            raise RefusedAnswer(f"the path {path!r:.200} is no path", "rewrite_failed")
        name, index, bracketed = found.groups()
        segments.append(int(index) if index is not None else name or bracketed)
        position = found.end()
    return segments


def replaced(value: Any, path: str, new: Any) -> Any:
    """Return a target with the place that a path names replaced; the target itself may be changed.

    Raises:
        RefusedAnswer: when there is no such place.
    """
    segments = _segments(path)
    if not segments:
        return new
    holders: list[Any] = [value]
    for segment in segments:
        place = holders[-1]
        fits = (isinstance(segment, str) and isinstance(place, dict) and segment in place) or (
            isinstance(segment, int) and isinstance(place, list) and segment < len(place)
        )
        if not fits:
            raise RefusedAnswer(f"there is nothing at {path!r:.200}", "rewrite_failed")
        holders.append(holders[-1][segment])
    holders[-2][segments[-1]] = new
    return value


def fields_of(event: Event, new: Any) -> dict[str, Any]:
    """Return the event's fields that give it another target.

    Parameters:
        event: an event that is an interception point.
        new: the new target.

    Raises:
        RefusedAnswer: when hookturn has no place for what was changed.
    """
    point, old = point_of(event), target(event)
    given: Any = event
    if point == "pre_tool_call" and isinstance(new, dict):
        return {"args": new}
    if point == "post_tool_call":
        return {"result": new}
    if point == "pre_model_call" and isinstance(new, list):
        return {"properties": {**given.properties, "messages": new}}
    if point in ("input", "post_model_call", "output") and isinstance(new, dict):
        content = "" if new.get("content") is None else new["content"]
        if isinstance(content, str) and {**new, "content": None} == {**old, "content": None}:
            return {"text": content}
    raise RefusedAnswer(
        f"at {point} only what hookturn's hooks can rewrite can be replaced", "rewrite_failed"
    )


# -- verdicts (section 5) -----------------------------------------------------------------------

_MEMBERS = (
    "decision",
    "reason",
    "message",
    "warnings",
    "approval",
    "transform",
    "evidence",
    "result_labels",
)


def read_verdict(given: Any) -> dict[str, Any]:
    """Check what an interceptor returned, and return it as a plain verdict without empty members.

    Parameters:
        given: a verdict as a dict, or an object with ``to_wire()``.

    Raises:
        RefusedAnswer: for anything that section 5 does not allow.
    """
    to_wire = getattr(given, "to_wire", None)
    wire = to_wire() if callable(to_wire) else given
    if not isinstance(wire, dict):
        raise RefusedAnswer(f"a verdict is an object, got {json_kind(wire)}")
    unknown = [key for key in wire if key not in _MEMBERS]
    if unknown:
        raise RefusedAnswer(f"a verdict has no member {unknown[0]!r:.100}")
    verdict = {key: value for key, value in wire.items() if value is not None}
    decision = verdict.get("decision")
    if decision not in ("allow", "deny", "transform"):
        raise RefusedAnswer(f"decision must be allow, deny or transform, got {decision!r:.100}")
    _check_texts(verdict, "the verdict")
    warnings = verdict.get("warnings", [])
    if not isinstance(warnings, list) or not all(isinstance(item, dict) for item in warnings):
        raise RefusedAnswer("warnings must be an array of objects")
    for warning in warnings:
        if set(warning) - {"reason", "message"}:
            raise RefusedAnswer("a warning has the members reason and message only")
        _check_texts(warning, "a warning")
    if "approval" in verdict and (decision != "deny" or not isinstance(verdict["approval"], dict)):
        raise RefusedAnswer("approval must be an object, and belongs to a deny")
    labels = verdict.get("result_labels", [])
    if not isinstance(labels, list) or not all(isinstance(item, str) for item in labels):
        raise RefusedAnswer("result_labels must be an array of strings")
    if "evidence" in verdict:
        _check_evidence(verdict["evidence"])
    transform = verdict.get("transform")
    if (decision == "transform") != (transform is not None):
        raise RefusedAnswer("a transform verdict, and only that, has a transform")
    if transform is not None:
        if not isinstance(transform, dict) or set(transform) - {"path", "value"}:
            raise RefusedAnswer("transform has the members path and value only")
        check_path(transform.get("path"))
    return verdict


def _check_texts(given: dict[str, Any], what: str) -> None:
    for name in ("reason", "message"):
        text = given.get(name)
        if text is None:
            continue
        if not isinstance(text, str):
            raise RefusedAnswer(f"{what}'s {name} must be a string")
        try:
            text.encode()
        except UnicodeEncodeError:
            raise RefusedAnswer(f"{what}'s {name} has no UTF-8 form") from None
        if name == "reason" and text.startswith("host_error:"):
            raise RefusedAnswer(f"{what}'s reason may not begin with host_error:")


def _check_evidence(evidence: Any) -> None:
    from ...engine.identity import canonical

    if not isinstance(evidence, dict) or set(evidence) - {"artefact", "verification_pointers"}:
        raise RefusedAnswer("evidence is an object with the members artefact and verification_pointers")
    pointers = evidence.get("verification_pointers") or {}
    if (
        not isinstance(evidence.get("artefact", ""), (str, type(None)))
        or not isinstance(pointers, dict)
        or not all(isinstance(item, str) for item in pointers.values())
    ):
        raise RefusedAnswer("evidence holds strings")
    try:
        size = len(canonical(evidence).encode())
    except ValueError as error:
        raise RefusedAnswer(f"evidence: {error}") from None
    if size > _EVIDENCE_BYTES:
        raise RefusedAnswer(f"evidence has {size} bytes, more than {_EVIDENCE_BYTES}")


def projected(verdict: dict[str, Any]) -> dict[str, Any]:
    """Return what a record may hold of a verdict (section 10.3): no payload, and bounded."""
    result = dict(verdict)
    if "message" in result:
        result["message"] = _cut(result["message"])
    if result.get("warnings"):
        result["warnings"] = [
            {key: _cut(text) if key == "message" else text for key, text in item.items() if text is not None}
            for item in result["warnings"]
        ]
    if "approval" in result:
        result["approval"] = {}
    if "transform" in result:
        result["transform"] = {"path": result["transform"]["path"]}
    return result


def _cut(text: str) -> str:
    data = text.encode("utf-8", "replace")
    if len(data) <= _MESSAGE_BYTES:
        return text
    ellipsis = "…"
    return data[: _MESSAGE_BYTES - len(ellipsis.encode())].decode("utf-8", "ignore") + ellipsis


# -- identity (section 10.2) --------------------------------------------------------------------

_PROJECTION: dict[str, tuple[str, ...]] = {
    "agent": ("id", "framework"),
    "session": ("id",),
    "agent_init": ("tools_registered",),
    "input": ("content", "role"),
    "model": ("id",),
    "response": ("content", "tool_calls", "finish_reason"),
    "tool_call": ("id", "name", "args"),
    "tool_result": ("value", "is_error"),
    "output": ("content",),
    "summary": ("reason",),
}
_WHOLE = ("spec", "interception_point", "timestamp", "sequence", "target")
_CONDITIONAL = {
    "agent_startup": ("agent_init",),
    "input": ("input",),
    "pre_model_call": ("model", "messages"),
    "post_model_call": ("model", "response"),
    "pre_tool_call": ("tool_call",),
    "post_tool_call": ("tool_call", "tool_result"),
    "output": ("output",),
    "agent_shutdown": ("summary",),
}


def jcs_sha256(given: dict[str, Any]) -> str:
    """Return the identity of a context by the provider ``jcs-sha256``.

    Parameters:
        given: an AgentContext.

    Raises:
        ValueError: for a context whose required members are missing or have no canonical form.
    """
    import hashlib

    from ...engine.identity import canonical

    conditional = _CONDITIONAL.get(str(given.get("interception_point")))
    if conditional is None:
        raise ValueError("the context has no interception point")
    picked: dict[str, Any] = {}
    try:
        for name in (*_WHOLE, "agent", "session", *conditional):
            members = _PROJECTION.get(name)
            value = given[name]
            picked[name] = value if members is None else {member: value[member] for member in members}
    except (KeyError, TypeError) as error:
        raise ValueError(f"the context lacks {error}") from None
    return "sha256:" + hashlib.sha256(canonical(picked).encode()).hexdigest()
