"""Remembers which sessions of an agent are open, and ends those that nobody will end any more: their agent's
process is gone, or nothing was heard of them for long.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from os import PathLike
    from typing import Any

    from ..engine.engine import Engine

IDLE = 12 * 3600.0
"""Seconds without a call after which a session counts as left."""

MOST = 20
"""Sessions that one call ends at most: it has its own work to do."""

MOST_KNOWN = 64
"""Sessions of one agent in a project that are remembered; of more, those that began first are ended by nobody else."""

_AREA = "open"

REASON = "unknown"
"""Reason of an end that the agent did not tell."""


def note(engine: Engine, agent: str, session_id: str, pid: int) -> None:
    """Remember an open session.

    Parameters:
        engine: the project's engine.
        agent: the agent's name.
        session_id: the session.
        pid: the agent's process, or 0 when unknown.
    """
    from time import time

    from ..platform import born

    try:
        with _open(engine, agent) as sessions:
            sessions[session_id] = {"pid": pid, "born": born(pid) if pid else "", "at": time()}
            more = max(len(sessions) - MOST_KNOWN, 0)  # the file is written whole at each start
            for left in sorted(sessions, key=lambda name: sessions[name].get("at", 0.0))[:more]:
                del sessions[left]
    except OSError:  # where nothing can be written, only its own agent ends it
        return


def forget(engine: Engine, agent: str, session_id: str) -> None:
    """Forget a session that ended."""
    values = _open(engine, agent)
    try:
        if values.get(session_id) is not None:
            values.delete(session_id)
    except OSError:  # it has ended; who looks for sessions that were left finds that out
        return


def of_process(engine: Engine, agent: str, pid: int) -> str:
    """Return the session that a process of the agent began last, for payloads that name none; "" when unknown."""
    from ..platform import born

    began = born(pid) if pid else ""
    known = [(about.get("at", 0.0), name) for name, about in _known_of(engine, agent).items()
             if began and about.get("pid") == pid and about.get("born") == began]  # fmt: skip
    return max(known, default=(0.0, ""))[1]


async def close_stale(
    engine: Engine, agent: str, *, but: str = "", idle: float = IDLE, until: float | None = None
) -> list[str]:
    """End the sessions that were left, with reason ``unknown``; their open calls get status unknown.

    A coroutine of steps (see ``SteppedSession``).

    Parameters:
        engine: the project's engine.
        agent: the agent's name.
        but: a session that lives certainly.
        idle: seconds without a call after which a session counts as left.
        until: when to stop, by ``time.monotonic()``.

    Returns:
        the ids of the sessions that were ended.
    """
    from time import monotonic

    from ..engine.async_session import SteppedSession

    ended: list[str] = []
    for session_id, about in _known_of(engine, agent).items():
        if session_id == but or not _left(engine, session_id, about, idle):
            continue
        if len(ended) >= MOST or (until is not None and monotonic() >= until):
            break
        session = SteppedSession(engine, session_id=session_id, host=agent, attached=True)
        session.until(until)
        if session.started:
            await session.end(REASON)
            ended.append(session_id)
        forget(engine, agent, session_id)
    return ended


def sweep(engine: Engine, *, until: float | None = None) -> None:
    """Remove what is left of the project's sessions of long ago, a bounded number, now and then.

    Parameters:
        engine: the project's engine.
        until: when to stop, by ``time.monotonic()``.
    """
    from ..engine.sweep import sweep

    folder = engine.stores.folder
    if folder is not None:
        sweep(folder, keep=lambda: _known(folder), until=until)


def _known(folder: str | PathLike[str]) -> set[str]:
    """Return the names of the folders of all sessions that some agent has open."""
    import json
    import os

    from ..paths import open_private, safe_component

    known: set[str] = set()
    area = os.path.join(folder, _AREA)
    for name in os.listdir(area) if os.path.isdir(area) else ():
        try:
            with open(open_private(os.path.join(area, name)), "rb") as file:
                known.update(map(safe_component, json.loads(file.read()) if name.endswith(".json") else ()))
        except (OSError, ValueError, RecursionError, TypeError):  # damaged: its owner sees to that
            continue
    return known


def _left(engine: Engine, session_id: str, about: dict[str, Any], idle: float) -> bool:
    import os
    from time import time

    from ..platform import born

    if about.get("pid") and about.get("born") and born(about["pid"]) != about["born"]:
        return True
    last = about.get("at", 0.0)
    path = getattr(engine.stores.values("runs", "session", session_id), "path", None)
    if path is not None:
        try:
            last = os.stat(path).st_mtime
        except FileNotFoundError:  # nothing is known of it any more
            return True
        except OSError:  # it cannot be looked at
            return False
    return bool(time() - last > idle)


def _known_of(engine: Engine, agent: str) -> dict[str, Any]:
    """Return the open sessions of an agent; none where they cannot be read."""
    try:
        with _open(engine, agent) as sessions:
            return dict(sessions)
    except OSError:
        return {}


def _open(engine: Engine, agent: str) -> Any:
    return engine.stores.values(_AREA, agent)
