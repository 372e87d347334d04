"""Cut long results, so that one `cat` does not fill the model's context."""

from __future__ import annotations

from hookturn import Rewrite, Warn, events, hookimpl

LIMIT = 10_000


@hookimpl(tools=["bash", "read", "fetch"])
def post_tool_execution(event: events.PostToolExecution) -> list[Rewrite | Warn] | None:
    text = event.result_text
    if len(text) <= LIMIT:
        return None
    half = LIMIT // 2
    short = f"{text[:half]}\n[... {len(text) - LIMIT:,} characters left out ...]\n{text[-half:]}"
    return [Rewrite(result_text=short), Warn(f"cut a result of {event.tool} to {LIMIT:,} characters")]
