"""Finds the session that a sub-agent belongs to, for agents that give sub-agents sessions of their own."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from ..engine.engine import Engine
    from .moments import Moment

MOST = 500
"""Sub-agents that are remembered; the oldest are forgotten."""


def placed(engine: Engine, agent: str, moment: Moment) -> Moment:
    """Return a sub-agent's moment as one of the session that it comes from, however deep it is.

    Parameters:
        engine: the project's engine.
        agent: the agent's name.
        moment: has ``parent_id`` and ``agent_id``.
    """
    known = engine.stores.values("kin", agent)
    session = moment.parent_id
    try:
        session = known.get(session) or session
        if moment.agent_id and known.get(moment.agent_id) != session:
            with known as data:
                data[moment.agent_id] = session
                while len(data) > MOST:
                    del data[next(iter(data))]
    except OSError:  # hooks are asked all the same; a sub-agent of this one may seem to be of another session
        pass
    return moment.replaced(session_id=session)
