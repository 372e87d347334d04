"""Small things that the translators of several agents share: fields of payloads, answers as JSON, whether a
configuration calls us.
"""

from __future__ import annotations

from .bridge import Malformed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

_MOST = 1_000_000
"""Bytes of a configuration that are looked at."""


def text_of(payload: Mapping[str, Any], key: str) -> str:
    """Return a text of a payload, or "" when it is missing or something else."""
    value = payload.get(key)
    return value if isinstance(value, str) else ""


def prompt_of(payload: Mapping[str, Any]) -> str:
    """Return the user's words.

    Raises:
        Malformed: when ``prompt`` is no text.
    """
    prompt = payload.get("prompt", "")
    if not isinstance(prompt, str):
        raise Malformed(f"prompt is {_kind(prompt)}, not a string")
    return prompt


def call_of(payload: Mapping[str, Any], *, ended: bool) -> tuple[str, Any]:
    """Return a tool call's name and arguments, from ``tool_name`` and ``tool_input``.

    Parameters:
        payload: the payload.
        ended: whether the call is over, so that nothing depends on its arguments.

    Raises:
        Malformed: when hooks could not judge the call.
    """
    tool, args = payload.get("tool_name"), payload.get("tool_input")
    if not isinstance(tool, str) or not tool:
        raise Malformed(f"tool_name is {_kind(tool)}, not a name")
    if not isinstance(args, dict) and not ended:
        raise Malformed(f"tool_input is {_kind(args)}, not an object")
    return tool, args


def _kind(value: object) -> str:
    return "missing" if value is None else type(value).__name__


def answer_of(data: Mapping[str, Any], nothing: bytes) -> bytes:
    """Return an answer as one line of plain ASCII JSON: lone surrogates stay valid, whatever the locale.

    Parameters:
        data: the answer; an empty one says nothing.
        nothing: what stands for that.
    """
    if not data:
        return nothing
    import json

    from ..spec.record import jsonable

    return json.dumps(jsonable(data), allow_nan=False).encode() + b"\n"


def calls_us(files: Iterable[str]) -> bool:
    """Tell whether one of some configuration files calls ``hookturn bridge``."""
    from .installing import calls_bridge

    for path in files:
        try:
            with open(path, "rb") as file:
                content = file.read(_MOST)
        except (OSError, ValueError):
            continue
        if calls_bridge(content.decode("utf-8", "replace")):
            return True
    return False
