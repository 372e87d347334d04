"""Hooks that the project room puts in itself: refusals for what must not be missing, and allowances of a project."""

from __future__ import annotations

from ..engine.match import covering
from ..runners.entry import Configured
from ..spec.answers import Allow, Block, Deny, Warn
from ..spec.markers import hookimpl

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..engine.match import Rule
    from ..spec.timings import Timing


def refusal(
    name: str,
    reason: str,
    advice: str,
    timings: Mapping[str, Timing],
    wanted: Iterable[str] = (),
    *,
    remedy: str = "",
) -> Configured:
    """Return a guard that refuses: Deny where the timing takes it, else Block.

    Parameters:
        name: its name.
        reason, advice: the words of its answers, which the model reads.
        timings: every timing there is.
        remedy: what a person may do, which the model does not read: it would often switch a protection off.
        wanted: names of the timings to refuse at; those that cannot deny or are unknown are left out.
            Without any, every timing that can deny.
    """
    names = [name for name in wanted if name in timings and timings[name].can_deny]
    if not names:
        names = [name for name, timing in timings.items() if timing.can_deny]
    told = [Warn(f"{reason}. {remedy}")] if remedy else []
    return Configured(name, {name: _refuse(timings[name], reason, advice, told) for name in names})


def _refuse(timing: Timing, reason: str, advice: str, told: list[Warn]) -> Any:
    deny, block = Deny(reason, advice, "not_in_force"), Block(f"{reason}. {advice}")
    if timing.name == "on_event":

        @hookimpl(guard=True)
        def refuse(event: Any) -> Any:
            kinds = {"Deny": deny, "Block": block}
            answer = next((kinds[kind] for kind in kinds if kind in event.accepts), None)
            return [answer, *told] if answer is not None else None

        return refuse

    @hookimpl(guard=True)
    def always() -> Any:
        return [deny if Deny in timing.answers else block, *told]

    return always


def allowance(rules: Iterable[Rule]) -> Configured:
    """Return the hook for a trusted project's ``permissions.always_allow``.

    The ladder's always_allow, which sets hooks' denies aside, is the user's and
    the administrator's alone. A project's is an Allow: it skips the prompt.
    """
    rules = tuple(rules)

    @hookimpl(trylast=True)
    def pre_tool_execution(event: Any) -> Any:
        rule = covering(rules, event)
        return None if rule is None else Allow(f"permission rule {rule.text} ({rule.source})")

    return Configured("project-permissions", {"pre_tool_execution": pre_tool_execution})
