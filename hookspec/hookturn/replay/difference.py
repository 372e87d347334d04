"""``replay --diff``: which recorded calls another configuration would treat otherwise."""

from __future__ import annotations

from ..agents import recorded as r
from ..spec.record import jsonable
from .player import Watcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..engine.results import Call


class Verdict:
    """What one configuration makes of one call."""

    __slots__ = ("args", "by", "reason", "said")

    def __init__(self, call: Call) -> None:
        if call.replied:
            self.said = "reply"
        elif call.result is not None:
            self.said = call.decision or "deny"
        elif call.decision == "ask":
            self.said = "ask"
        else:
            self.said = "rewrite" if call.rewritten_by else "run"
        self.args = jsonable(call.args)
        self.by = call.denied_by or ", ".join(call.rewritten_by)
        self.reason = call.reason

    def same(self, other: Verdict) -> bool:
        """Whether both come to the same call, or the same refusal."""
        return self.said == other.said and (self.said not in ("rewrite", "run") or self.args == other.args)


class Verdicts(Watcher):
    """Keeps the verdict on the call that was begun last."""

    def __init__(self) -> None:
        self.last: Verdict | None = None

    def begun(self, step: r.ToolBegin, call: Call) -> None:
        self.last = Verdict(call)


def difference(step: r.ToolBegin, before: Verdict | None, after: Verdict | None) -> dict[str, Any] | None:
    """Return how two configurations differ on a call; None when they agree."""
    if before is None or after is None or before.same(after):
        return None
    changed: dict[str, Any] = {
        "line": step.line,
        "call_id": step.call_id,
        "tool": step.tool,
        "args": jsonable(step.args),
        "before": before.said,
        "after": after.said,
        "by": after.by or before.by,
        "reason": after.reason,
    }
    if after.said == "rewrite":
        changed["rewritten"] = after.args
    return changed
