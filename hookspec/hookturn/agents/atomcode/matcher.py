"""AtomCode's words for when a hook runs: events, triggers and matchers of both generations. Reads and runs nothing."""

from __future__ import annotations

from ..dialect import plain_name, star_match
from .tools import TOOLS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ...spec.events import Event

EVENTS: dict[str, str] = {
    "PreToolUse": "pre_tool_execution",
    "PostToolUse": "post_tool_execution",
    "PostToolUseFailure": "post_tool_execution",
    "UserPromptSubmit": "on_user_prompt_submit",
    "SessionStart": "on_session_start",
    "SessionEnd": "on_session_end",
    "Stop": "on_turn_complete",
    "StopFailure": "on_error",
    "Notification": "on_event",
}
"""Event of a hooks.json -> our timing."""

OLD_EVENTS = ("PreToolUse", "PostToolUse", "SessionStart", "SessionEnd", "UserPromptSubmit", "Notification")
"""Events of generation 1."""

TOOL_EVENTS = ("PreToolUse", "PostToolUse", "PostToolUseFailure")
"""Events that have a matcher."""

SCRIPT_TRIGGERS: dict[str, str] = {
    "pre_tool": "pre_tool_execution",
    "pre_tool_execution": "pre_tool_execution",
    "post_tool": "post_tool_execution",
    "post_tool_execution": "post_tool_execution",
    "post_turn": "post_turn",
    "system_prompt": "system_prompt",
}
"""``trigger`` of a ``[[hooks]]`` table -> our timing."""

# Order of the documents' table: where a trigger has several words, timings keep this order.
_WORDS: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("pre_tool_execution", ("pre_tool", "before_tool")),
    ("post_tool_execution", ("post_tool", "after_tool")),
    ("post_turn", ("post_turn",)),
    ("system_prompt", ("system_prompt",)),
    ("on_session_start", ("session_start",)),
    ("on_session_end", ("session_end",)),
    ("on_error", ("error",)),
    ("on_turn_start", ("turn_start",)),
    ("on_turn_complete", ("turn_complete", "after_turn")),
    ("on_tool_call_start", ("tool_call_start",)),
    ("on_model_response", ("model_response",)),
    ("on_message_received", ("message", "message_received")),
)

WEBHOOK_TRIGGERS: dict[str, str] = {
    **{word: timing for timing, words in _WORDS for word in words},
    **{timing: timing for timing, _ in _WORDS},
}
"""Word of a webhook's ``trigger`` -> our timing."""


def snake(event: str) -> str:
    """Return an event's name in snake case: ``PreToolUse`` as ``pre_tool_use``."""
    return "".join(f"_{c.lower()}" if c.isupper() else c for c in event).lstrip("_")


def event_of(word: str, generation: int = 2) -> str:
    """Return the event that a word names, in PascalCase or snake case, or an empty string."""
    known = OLD_EVENTS if generation == 1 else EVENTS
    return next((event for event in known if word in (event, snake(event))), "")


def timings_of(trigger: str, *, substring: bool = False) -> tuple[list[str], list[str]]:
    """Return the timings that a webhook's trigger names, and its words that name none.

    Parameters:
        trigger: words, split at commas; case does not count.
        substring: as AtomCode did it: a word counts wherever it stands in the text.
    """
    text = trigger.lower()
    if substring:
        return [timing for timing, words in _WORDS if any(word in text for word in words)], []
    words = [word.strip() for word in text.split(",") if word.strip()]
    found = {WEBHOOK_TRIGGERS[word] for word in words if word in WEBHOOK_TRIGGERS}
    return [timing for timing, _ in _WORDS if timing in found], [
        w for w in words if w not in WEBHOOK_TRIGGERS
    ]


def matches(matcher: str | None, tool: str, generation: int = 2) -> bool:
    """Tell whether a matcher lets a tool's name through.

    Generation 1: none or ``*`` is all, a ``*`` at the end makes it a prefix, anything else is an exact name.
    Generation 2: none, an empty text or ``*`` is all; else alternatives between ``|``, each a glob in which
    ``*`` is any text and everything else means itself. Case counts in both.
    """
    if matcher is None or matcher == "*":
        return True
    if generation == 1:
        return tool.startswith(matcher[:-1]) if matcher.endswith("*") else tool == matcher
    if not matcher:
        return True
    return any(star_match(part.strip(), tool) for part in matcher.split("|"))


class Condition:
    """Whether an event concerns a hook of a hooks.json: its event's own meaning, and its matcher.

    Parameters:
        event: the name of the event.
        matcher: as declared, or None.
        generation: 1 or 2.
    """

    def __init__(self, event: str, matcher: str | None, generation: int) -> None:
        self.event = event
        self.matcher = matcher
        self.generation = generation

    def __call__(self, event: Event) -> str:
        """Return why the event does not concern the hook, or an empty string."""
        if self.event not in TOOL_EVENTS:
            return ""
        subject: Any = event
        if self.event != "PreToolUse":
            why = self._status(subject.status)
            if why:
                return why
        names = names_of(subject) if tool_of(subject) else ("",)
        if not any(matches(self.matcher, name, self.generation) for name in names):
            return f"matcher {self.matcher!r}: {subject.tool} does not match"
        return ""

    def _status(self, status: str) -> str:
        """Return why the end of a call is none of this event's."""
        if self.generation == 1:
            return f"PostToolUse: the call was {status}" if status in ("denied", "cancelled") else ""
        if (status == "ok") == (self.event == "PostToolUse"):
            return ""
        return f"{self.event}: the call ended with status {status}"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Condition) and vars(self) == vars(other)


def names_of(event: Any) -> tuple[str, ...]:
    """Return the names that a matcher may know a tool by: its own one, and AtomCode's for what another agent's does."""
    tool: str = event.tool
    if tool in TOOLS or tool.startswith("mcp__"):
        return (tool,)
    if event.mcp:
        return (tool, "__".join(("mcp", *event.mcp)))
    plain = plain_name(tool)
    same = [name for name in TOOLS if plain_name(name) in (plain, f"{plain}file")]
    if same or event.kind not in ("bash", "read", "write", "fetch"):
        return (tool, *same)
    return (tool, *(name for name, row in TOOLS.items() if row.kind == event.kind))


def tool_name(event: Any) -> str:
    """Return the tool's name as hooks read it: AtomCode's where there is exactly one for what another agent's tool does."""
    own, *others = names_of(event)
    return others[0] if len(others) == 1 else own


def tool_of(event: Any) -> str:
    """Return the tool's name as matchers see it: a refused call has none after it, so only match-all hooks see it."""
    return "" if getattr(event, "status", "") == "denied" else tool_name(event)
