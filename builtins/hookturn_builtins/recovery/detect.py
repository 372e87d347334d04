"""Tells usual failures by their words. The wordings are those of agents, editors and JSON parsers."""

from __future__ import annotations

import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from hookturn.events import PostToolExecution

SHORT = 5
"""Characters below which a result counts as empty."""

READERS = ("bash", "read", "search", "fetch")
"""Kinds of tools whose results are others' texts: what these say of JSON is content."""

HEAD = 1_000
"""Characters of a result that are looked at: later ones are content."""

_EDIT = re.compile(
    r"not found|no match|could not find|found multiple|multiple matches|must be different|permission denied|"
    r"\bE(?:ACCES|PERM|ROFS|NOENT)\b|read-only|no such file|does not exist|\bstale\b|anchor|hash mismatch|"
    r"(?:has been|was) (?:modified|changed)|edit failed|failed to edit",
    re.I,
)
_JSON = re.compile(
    r"unexpected (?:token|end of JSON|non-whitespace)|(?:invalid|malformed) JSON|JSON\.?(?: ?parse| syntax|Decode)\w* ?error|"
    r"(?:failed|unable|could not|cannot) (?:to )?parse (?:the )?JSON|JSONDecodeError|"
    r"Expecting (?:value|property name|',' delimiter|':' delimiter)|unterminated string|bad control character",
    re.I,
)
_CONTEXT = re.compile(
    r"context[_ -]?(?:length|window)|maximum context|token[_ ]limit|too many tokens|prompt (?:is|was) too long|"
    r"input is too long|exceed\w* .{0,40}tokens",
    re.I,
)
_PAIRS = re.compile(
    r"tool_use.{0,60}without.{0,60}tool_result|tool_result.{0,60}without.{0,60}tool_use|"
    r"unmatched tool|(?:missing|orphan\w*) tool[_ ]?(?:result|use|call)|no tool (?:output|result) found",
    re.I | re.S,
)


def context_window(text: str) -> bool:
    """Whether an error tells of a full context window."""
    return _CONTEXT.search(text[:10_000]) is not None


def tool_pairs(text: str) -> bool:
    """Whether a text tells of tool calls without results."""
    return _PAIRS.search(text) is not None


def of_tool(event: PostToolExecution, text: str) -> Iterator[tuple[str, bool]]:
    """Yield (category, whether it is met) for the categories that a tool's result can show.

    Parameters:
        event: the call.
        text: its result, or its error.
    """
    head = text[:HEAD]
    if event.kind == "write":
        # A result may quote the file: where the tool says that it went well, its first line counts.
        words = head if event.status == "error" else head.partition("\n")[0][:200]
        yield "edit_error", _EDIT.search(words) is not None
    if event.kind not in READERS and event.tool != "look_at":
        yield "json_error", _JSON.search(head) is not None
    # Commands and edits that went well may say nothing.
    if not (event.status == "ok" and event.kind in ("bash", "write")):
        yield "empty_response", len(text.strip()) < SHORT


def words_of(properties: Mapping[str, Any]) -> str:
    """Return the texts in a host event's properties, down to three levels."""
    return " ".join(_texts(properties, 3))


def _texts(value: Any, depth: int) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict) and depth:
        for item in value.values():
            yield from _texts(item, depth - 1)
