"""The one place that knows what becomes of an answer that an agent cannot take: it degrades, and says so.

| hooks said | where the agent takes no such thing |
|---|---|
| Ask | the engine refuses: there is nobody to ask |
| Rewrite of arguments, prompt or text | refused when its hook fails closed, else a warning, and all stays as it was |
| Rewrite of a result | a warning |
| Reply | refused, the reply being the reason |
| Deny of a result, Block of a text | a warning that it could not be withheld |
| Block (end of the turn) | what is at hand is refused, and so is every later tool call of the turn |
| Inject | kept for the next moment that takes context |
| Continue, SetEnv | a warning |
| Allow | no effect: the agent's own rules decide |
| Warn | standard error |
"""

from __future__ import annotations

from ..spec.record import jsonable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .moments import Row, Said

    Closed = Callable[[Iterable[str]], str]


def fit(row: Row, said: Said, agent: str, closed: Closed, later: Callable[[str], None]) -> None:
    """Fit what hooks said to what the agent's event takes. Doing it twice changes nothing more.

    Parameters:
        row: the event.
        said: changed in place.
        agent: the agent's name, for messages.
        closed: returns the first of some hooks that fails closed, or "".
        later: keeps a text for the next moment that takes context.
    """
    can = row.can
    where = f"{agent} takes no such thing at {row.event}"
    if said.args is not None and "args" not in can:
        _unchanged(row, said, said.args_by, "the call's arguments", where, closed)
        said.args = None
    words = "prompt" if row.does == "prompt" else "text"
    if said.text is not None and words not in can:
        _unchanged(row, said, said.text_by, f"the {words}", where, closed)
        said.text = None
    if said.replied and "reply" not in can:
        _reply(row, said, where)
    if said.decision == "ask" and "ask" not in can:
        said.refuse(f"{said.reason} ({said.by} asks, and {where})", said.by)
    if said.decision == "allow" and "allow" not in can:
        said.decision = None
        said.lost.append(f"an Allow of {said.by or 'a hook'}: {where}")
    if said.changed and "result" not in can:
        said.changed = False
        if said.withheld:
            said.warnings.append(
                f"{said.by} withheld the result ({said.reason}), but {where}: the model has it"
            )
        else:
            said.warnings.append(f"the result was changed by a hook, but {where}: the model has it as it was")
        if said.decision == "deny" and "deny" not in can:
            said.decision = None
    if said.decision == "deny" and "deny" not in can:
        said.decision = None
        if not (said.stop and "stop" in can):
            said.warnings.append(f"{said.by or 'a hook'} refused ({said.reason}), but {where}")
    if said.stop and "stop" not in can:
        said.stop = False
        said.lost.append(f"the end of the turn: {where}; its next tool calls are refused")
    if said.again and "again" not in can:
        said.warnings.append(f"a hook wants the turn to go on ({said.again}), but {where}")
        said.again = ""
    if said.env and "env" not in can:
        said.warnings.append(f"{', '.join(sorted(said.env))} cannot be set: {where}")
        said.env = {}
    if said.inject and "inject" not in can:
        for text in said.inject:
            later(text)
        said.inject = []
    said.warnings = list(dict.fromkeys(said.warnings))  # a guard of two timings says it at each
    if said.warnings and "warn" not in can:
        said.lost += said.warnings
        said.warnings = []


def _unchanged(row: Row, said: Said, hooks: Iterable[str], what: str, where: str, closed: Closed) -> None:
    """A change that cannot be made: a refusal when its hook fails closed, else a warning."""
    names = ", ".join(hooks) or "a hook"
    strict = closed(hooks)
    if strict and "deny" in row.can:
        said.refuse(f"{strict} changes {what}, but {where}, and {strict} fails closed", strict)
    else:
        said.warnings.append(f"{names} wanted to change {what}, but {where}: it goes on as it was")


def _reply(row: Row, said: Said, where: str) -> None:
    from ..spec.tools import result_text_of

    text = result_text_of(said.reply) or str(jsonable(said.reply))
    if "deny" not in row.can:
        said.warnings.append(f"{said.by} replied ({text}), but {where}")
        said.replied = False
        return
    by = said.by
    if row.does == "prompt":
        said.refuse(text, by)
    else:
        said.refuse(f"{by} answered in place of the tool: {text}", by)
