"""What an agent would be told of an Outcome: the bridge's translation without a call, for ``explain --agent``."""

from __future__ import annotations

from ..spec.record import Record, thaw
from .bridge import BridgeAnswer, hooks_of
from .driving import hear
from .fitting import fit
from .memory import strict
from .moments import Moment, Said

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..engine.engine import Engine
    from ..engine.outcome import Outcome
    from .bridge import AgentHooks
    from .moments import Row

HEARD: dict[str, tuple[str, ...]] = {
    "on_session_start": ("session_start",),
    "on_message_received": ("prompt",),
    "on_user_prompt_submit": ("prompt",),
    "on_turn_start": ("prompt",),
    "system_prompt": ("prompt",),
    "on_model_response": ("message",),
    "on_tool_call_start": ("tool",),
    "pre_tool_execution": ("tool",),
    "on_permission_request": ("permission",),
    "post_tool_execution": ("tool_end",),
    "on_turn_complete": ("turn_end",),
    "on_session_end": ("session_end",),
    "on_event": ("event", "compacted"),
}
"""Timing -> the moments at which an agent is told of it (words of ``moments.DOES``)."""


class Told(Record):
    """What an agent would be told at one of its events.

    Parameters:
        event: the agent's event.
        answer: what it would get.
        env: environment variables that would be set.
        later: texts that would be given at a later event, which takes context.
        lost: what could not be expressed.
    """

    event: str
    answer: BridgeAnswer
    env: dict[str, str] = {}
    later: list[str] = []
    lost: list[str] = []

    def to_json(self) -> dict[str, Any]:
        """Return all of it; standard output as text."""
        return {
            "event": self.event,
            "stdout": self.answer.stdout.decode("utf-8", "replace"),
            "stderr": self.answer.stderr,
            "exit_code": self.answer.exit_code,
            "env": thaw(self.env),
            "later": thaw(self.later),
            "lost": thaw(self.lost),
        }


def tell(agent: str, outcome: Outcome, engine: Engine) -> list[Told]:
    """Return what an agent would be told of an outcome, event by event.

    Parameters:
        agent: the agent, a name of ``bridge.AGENTS``.
        outcome: of one timing.
        engine: whose hooks they are.

    Returns:
        one item for each event of the agent at which it hears of the timing; none when it never does.

    Raises:
        UnknownAgent: when there is no bridge for it.
    """
    hooks = hooks_of(agent)
    return [_told(hooks, row, outcome, engine) for row in _rows(hooks, outcome)]


def _rows(hooks: AgentHooks, outcome: Outcome) -> Iterator[Row]:
    kind = getattr(outcome.event, "type", "")
    for row in hooks.EVENTS.values():
        if row.does not in HEARD.get(outcome.timing, ()):
            continue
        if outcome.timing != "on_event" or row.type == kind:
            yield row


def _told(hooks: AgentHooks, row: Row, outcome: Outcome, engine: Engine) -> Told:
    event: Any = outcome.event
    said = said_of(outcome)
    later: list[str] = []
    fit(row, said, hooks.NAME, lambda names: strict(engine, row.timings, names), later.append)
    env, said.env = said.env, {}
    moment = Moment(
        tool=getattr(event, "tool", ""),
        args=getattr(event, "args", None),
        result=getattr(event, "result", None),
    )
    answer = hooks.write(row, moment, said, {})
    return Told(event=row.event, answer=answer, env=env, later=later, lost=list(said.lost))


def said_of(outcome: Outcome) -> Said:
    """Return what an outcome says, before it is fitted to what an agent takes."""
    event: Any = outcome.event
    said = Said()
    hear(outcome, said)
    changed = {change.field: change.by for change in outcome.rewrites}
    if outcome.timing == "post_tool_execution":
        from ..spec.tools import with_result_text

        if outcome.denied:
            said.withheld = said.changed = True
            said.result = thaw(with_result_text(event.result, outcome.message))
        elif "result" in changed:
            said.changed, said.result = True, thaw(event.result)
    if "args" in changed and not outcome.denied:
        said.args, said.args_by = thaw(event.args), [changed["args"]]
    if "text" in changed:
        said.text, said.text_by = event.text, [changed["text"]]
    if outcome.timing == "system_prompt":
        said.inject[:0] = list(event.parts)
    return said
