"""A hookturn plugin that limits how often an agent calls its tools."""

from __future__ import annotations

from contextlib import ExitStack

from hookturn import Context, Deny, events, hookimpl

from .limits import Limit, read, read_all, refusal

__all__ = ["Config", "Limit", "RateLimit", "plugin", "read"]

SCOPES = ("session", "project")


class Config:
    """The plugin's settings.

    Parameters:
        limits: kind, tool name or pattern -> a limit such as ``30/min``, or a list of limits.
        scope: whether each ``session`` counts for itself, or all sessions of the ``project`` together;
            limits ``N/session`` always count in their session.

    Raises:
        ValueError: for what is no limit or no scope.
    """

    def __init__(self, limits: dict[str, str | list[str]] | None = None, scope: str = "session") -> None:
        if scope not in SCOPES:
            raise ValueError(f"scope must be {' or '.join(SCOPES)}, not {scope!r}")
        self.scope = scope
        self.limits = read_all(limits or {})


class RateLimit:
    """The plugin: a guard before every tool.

    Parameters:
        config: its settings.
    """

    def __init__(self, config: Config) -> None:
        self._limits = config.limits
        self._by_project = config.scope == "project"

    @hookimpl(guard=True)
    def pre_tool_execution(self, event: events.PreToolExecution, ctx: Context) -> Deny | None:
        """Count the call, or deny it and say when there is room again."""
        # (limit, whether the project's sessions share its count)
        matched = [
            (limit, self._by_project and not limit.of_session)
            for limit in self._limits
            if limit.matches(event)
        ]
        if not matched:
            return None
        with ExitStack() as locks:
            # All are locked before any is counted, in one order: a call counts for all its limits or for none.
            books = {
                shared: locks.enter_context(ctx.store if shared else ctx.state)
                for shared in sorted({shared for _, shared in matched})
            }
            counted = [(limit, books[shared].setdefault(limit.key, {})) for limit, shared in matched]
            waits = [limit.wait(counts, event.time) for limit, counts in counted]
            longest = max(waits)
            if longest > 0:
                return refusal(matched[waits.index(longest)][0], longest)
            for limit, counts in counted:
                limit.add(counts, event.time)
        return None


def plugin(config: Config) -> RateLimit:
    """Make the plugin: what the entry point names."""
    return RateLimit(config)
