"""Removes the folders of sessions that ended long ago. Safe beside other processes: what is in use stays, and what is
begun anew at the same moment begins in a folder of its own.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress

from ..paths import FileLock, open_private, refuse_links
from .state import OWN_AREA

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Collection
    from os import PathLike
    from typing import Any

AGE = 30 * 86_400.0
"""Seconds after its last change that an ended session is kept."""

AGE_OPEN = 180 * 86_400.0
"""Seconds that a session is kept whose end nobody told, and of which nobody heard since."""

PAUSE = 3600.0
"""Seconds between two sweeps of a folder."""

MOST_LOOKED_AT = 500
"""Sessions that one sweep looks at; the next begins elsewhere."""

MOST_REMOVED = 50
"""Sessions that one sweep removes."""

MOST_READ = 50_000_000
"""Bytes at the end of a session's file that are read to learn whether it has ended; if they do not say it, it stays."""

_TAIL = 65_536
"""Bytes that are read first: mostly enough, since a session's end is among the last lines."""

_HOOKS_AREA = "sessions"
_MARK = "swept"
_LOCK = "session.lock"
_STATE = "session.jsonl"


def sweep(
    folder: str | PathLike[str], *, keep: Callable[[], Collection[str]] = tuple, until: float | None = None
) -> list[str]:
    """Remove old sessions, a bounded number.

    Parameters:
        folder: a state folder.
        keep: returns names of sessions' folders that stay.
        until: when to stop, by ``time.monotonic()``.

    Returns:
        names of the folders that were removed.
    """
    from time import monotonic, time

    folder, now = os.fspath(folder), time()
    if not _due(folder, now):
        return []
    runs = os.path.join(folder, OWN_AREA)
    try:
        names = os.listdir(runs)
    except OSError:  # no session yet
        return []
    start = int(now) % len(names) if names else 0
    removed: list[str] = []
    kept = keep()
    for name in (names[start:] + names[:start])[:MOST_LOOKED_AT]:
        if len(removed) >= MOST_REMOVED or (until is not None and monotonic() >= until):
            break
        if name not in kept and _age(os.path.join(runs, name), now) > AGE and _remove(folder, name, now):
            removed.append(name)
    return removed


def _due(folder: str, now: float) -> bool:
    """Whether the last sweep was long ago; the next one is counted from now."""
    mark = os.path.join(folder, _MARK)
    try:
        if 0 <= now - os.stat(mark).st_mtime < PAUSE:
            return False
        os.utime(mark)
    except FileNotFoundError:
        try:
            os.close(open_private(mark, os.O_WRONLY | os.O_CREAT, base=folder))
        except OSError:  # a folder that is not there yet, or cannot be written
            return False
    except OSError:
        return False
    return True


def _age(session: str, now: float) -> float:
    """Return the seconds since a session's last change; 0 for what is no session."""
    try:
        return now - os.lstat(os.path.join(session, _STATE)).st_mtime
    except OSError:
        return 0.0


def _remove(folder: str, name: str, now: float) -> bool:
    """Remove one session under its lock, unless it is in use or not over; tells whether it is gone."""
    run, values = os.path.join(folder, OWN_AREA, name), os.path.join(folder, _HOOKS_AREA, name)
    try:
        for path in (run, values):
            refuse_links(path, base=folder)
        with FileLock(os.path.join(run, _LOCK), timeout=0):
            age = _age(run, now)
            if age <= AGE or (age <= AGE_OPEN and not _ended(run, folder)):
                return False
            _empty(values)
            _empty(run, held=_LOCK)
    except (OSError, TimeoutError):  # in use, or removed by somebody else
        return False
    for path in (run, values):
        with suppress(OSError):  # somebody begins there again
            os.rmdir(path)
    return True


def _ended(run: str, folder: str) -> bool:
    """Whether a session's last state says that it has ended."""
    try:
        fd = open_private(os.path.join(run, _STATE), os.O_RDONLY, base=folder)
    except OSError:
        return False
    with open(fd, "rb") as file:
        size = os.fstat(fd).st_size
        length = 0
        while length < min(size, MOST_READ):
            length = min(max(length * 4, _TAIL), size, MOST_READ)
            file.seek(size - length)
            # What follows the last line's end was never finished, and what precedes the first's is cut off.
            lines = file.read(length).split(b"\n")[:-1]
            for line in reversed(lines if length == size else lines[1:]):
                state = _state(line)
                if state is not None:
                    return bool(state.get("ended"))
    return False


def _state(line: bytes) -> dict[str, Any] | None:
    """Return what a line of a session's file says of its state; None for one that says nothing of it."""
    try:
        data = json.loads(line)
    except (ValueError, RecursionError):  # damaged
        return None
    state = (data.get("state") or data.get("all")) if isinstance(data, dict) else None
    return state if isinstance(state, dict) else None


def _empty(path: str, *, held: str = "") -> None:
    """Remove the files of a folder, each under its lock.

    Parameters:
        path: the folder; that it is not there is fine.
        held: the lock that is held already; it goes last.

    Raises:
        OSError: when something is in use, or no file.
    """
    try:
        names = set(os.listdir(path))
    except FileNotFoundError:
        return
    for lock in sorted(name for name in names if name.endswith(".lock") and name != held):
        data = lock.removesuffix("lock") + "json"
        with FileLock(os.path.join(path, lock), timeout=0):
            if data in names:
                os.unlink(os.path.join(path, data))
            os.unlink(os.path.join(path, lock))
        names -= {lock, data}
    for name in sorted(names - {held}):
        os.unlink(os.path.join(path, name))
    if held:
        os.unlink(os.path.join(path, held))
