"""The events that hooks receive, under their public name ``hookturn.events``."""

from __future__ import annotations

from .spec.events import (
    Error,
    Event,
    MessageReceived,
    ModelResponse,
    OutcomeEvent,
    PermissionRequest,
    PostToolExecution,
    PostTurn,
    PreToolExecution,
    SessionEnd,
    SessionStart,
    SystemPrompt,
    ToolCallStart,
    ToolEvent,
    TurnComplete,
    TurnStart,
    UserPromptSubmit,
    from_json,
)
from .spec.record import thaw

__all__ = [
    "Error",
    "Event",
    "MessageReceived",
    "ModelResponse",
    "OutcomeEvent",
    "PermissionRequest",
    "PostToolExecution",
    "PostTurn",
    "PreToolExecution",
    "SessionEnd",
    "SessionStart",
    "SystemPrompt",
    "ToolCallStart",
    "ToolEvent",
    "TurnComplete",
    "TurnStart",
    "UserPromptSubmit",
    "from_json",
    "thaw",
]
