"""Chains of strategies: which comes next for a category of failures in a session."""

from __future__ import annotations

from hookturn import Recover

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from hookturn import Context

DEFAULTS: dict[str, list[Any]] = {
    "session_error": [
        {"strategy": "retry", "config": {"max_retries": 2, "backoff_ms": 2000, "backoff_factor": 2}},
        {"strategy": "compact"},
        {"strategy": "abort"},
    ],
    "context_window": [
        {"strategy": "truncate", "config": {"max_truncations": 8, "target_ratio": 0.5}},
        {"strategy": "summarize"},
        {"strategy": "abort"},
    ],
    "edit_error": [
        {
            "strategy": "remind_and_retry",
            "config": {
                "max_retries": 2,
                "reminder_text": "Read the file again, then edit what really stands there.",
            },
        }
    ],
    "json_error": [
        {
            "strategy": "remind_and_retry",
            "config": {
                "max_retries": 2,
                "reminder_text": "Write valid JSON: check quotes, commas and brackets.",
            },
        }
    ],
    "empty_response": [
        {
            "strategy": "remind_and_retry",
            "config": {"max_retries": 1, "reminder_text": "The result was empty: check the arguments."},
        }
    ],
}
"""Category -> its chain where the settings say nothing. Source: rolebox's documented defaults."""

# Strategy -> (the setting that limits its tries, the limit without it); others get one try.
_LIMITS = {
    "retry": ("max_retries", 2),
    "remind_and_retry": ("max_retries", 2),
    "truncate": ("max_truncations", 8),
}


class Chains:
    """The chains of one plugin.

    Parameters:
        chains: category -> steps, each ``{"strategy", "config"}``.
        most: Recover answers in one session.
    """

    def __init__(self, chains: Mapping[str, list[Any]], most: int) -> None:
        self.chains = chains
        self.most = most

    def next(self, category: str, ctx: Context) -> Recover | None:
        """Return what to do about one more failure of a category, or None when its chain is at its end.

        Parameters:
            category: one of DEFAULTS.
            ctx: the hook's; progress is in its state.
        """
        chain = self.chains[category]
        with ctx.state as values:
            if values.get("total", 0) >= self.most:
                return None
            progress = values.setdefault("chains", {}).setdefault(category, {"step": 0, "tries": 0})
            while progress["step"] < len(chain):
                step = chain[progress["step"]]
                config = dict(step.get("config") or {})
                if progress["tries"] < _limit(step["strategy"], config):
                    progress["tries"] += 1
                    values["total"] = values.get("total", 0) + 1
                    return _recover(category, step["strategy"], config, progress["tries"])
                progress["step"], progress["tries"] = progress["step"] + 1, 0
        return None

    def over(self, categories: Iterable[str], ctx: Context) -> None:
        """Note that what failed works again: these chains start over (the session's total stays)."""
        begun = ctx.state.get("chains")
        if not begun or begun.keys().isdisjoint(categories := list(categories)):
            return
        with ctx.state as values:
            for category in categories:
                values["chains"].pop(category, None)


def _limit(strategy: str, config: Mapping[str, Any]) -> int:
    name, default = _LIMITS.get(strategy, ("", 1))
    value = config.get(name, default)
    return value if isinstance(value, int) else default


def _recover(category: str, strategy: Any, config: dict[str, Any], attempt: int) -> Recover:
    config = {key: value for key, value in config.items() if key not in ("self", "strategy")}
    if strategy == "retry":
        wait, factor = config.get("backoff_ms", 2000), config.get("backoff_factor", 2)
        if isinstance(wait, (int, float)) and isinstance(factor, (int, float)):
            config["delay_ms"] = wait * factor ** (attempt - 1)
    return Recover(strategy, **{**config, "category": category, "attempt": attempt})
