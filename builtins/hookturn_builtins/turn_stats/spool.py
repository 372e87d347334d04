"""Figures of processes that live for one call: a line in a file beside the statistics, for the next who opens them.

Opening SQLite for one row costs a tenth of such a call, and the agent waits for it. Every line is counted exactly
once, whenever a process is killed: the file gets a name of its own before it is read, and that name is stored in the
transaction that counts its lines.
"""

from __future__ import annotations

import os

from hookturn.paths import FileLock, UnsafePathError, open_private, write_all
from hookturn.quick import dumps, loads

from ..places import BUSY_SECONDS, make_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterable

    from . import Figures

ENDING = ".waiting"

MOST = 256 * 1024
"""Bytes that may wait."""


def keep(path: str, base: str, turns: Iterable[Figures]) -> bool:
    """Add figures to what waits beside a statistics file; False when there is no such file yet, or enough waits.

    Parameters:
        path: the statistics file.
        base: a folder that is trusted as it is.
        turns: the figures.

    Raises:
        OSError: when they cannot be written.
    """
    if not os.path.exists(path):
        return False
    make_folder(path, base)
    lines = "".join(f"{dumps(_said(turn))}\n" for turn in turns)
    with FileLock(f"{path}.lock", timeout=BUSY_SECONDS):
        fd = open_private(path + ENDING, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            if os.fstat(fd).st_size > MOST:
                return False
            write_all(fd, lines.encode())
        finally:
            os.close(fd)
    return True


def waits(path: str) -> list[str]:
    """Return the files with figures that wait beside a statistics file."""
    folder, name = os.path.split(path)
    try:
        return [
            os.path.join(folder, found) for found in os.listdir(folder) if found.startswith(name + ENDING)
        ]
    except OSError:
        return []


def claim(path: str) -> bool:
    """Give what waits a name of its own, so that it can be counted; False when nothing waits.

    Not in a transaction: who opens the statistics has the file's lock first, and then waits for SQLite's.

    Parameters:
        path: the statistics file.

    Raises:
        OSError: when it cannot be renamed.
    """
    if not waits(path):
        return False
    with FileLock(f"{path}.lock", timeout=BUSY_SECONDS):
        if os.path.lexists(path + ENDING):
            os.rename(path + ENDING, f"{path}{ENDING}-{os.urandom(8).hex()}")
    return True


def count(
    path: str, connection: sqlite3.Connection, add: Callable[[sqlite3.Connection, Figures], None]
) -> list[str]:
    """Count what was claimed, in a transaction that is open; returns the files that may go once it is stored.

    Parameters:
        path: the statistics file.
        connection: its connection.
        add: adds one turn's figures.
    """
    from ..database import sqlite_text

    files = {sqlite_text(os.path.basename(file)): file for file in waits(path) if file != path + ENDING}
    if files:
        # A file that is gone never comes back: nobody else lists and counts while this transaction is open.
        gone = [row for row in connection.execute("SELECT name FROM taken") if row[0] not in files]
        connection.executemany("DELETE FROM taken WHERE name = ?", gone)
    for name, file in files.items():
        if not connection.execute("INSERT OR IGNORE INTO taken VALUES (?)", (name,)).rowcount:
            continue  # who counted it was killed before it could go
        try:
            fd = open_private(file)
        except UnsafePathError:  # a link: none of ours
            continue
        with open(fd, "rb") as opened:
            lines = opened.read(2 * MOST).split(b"\n")
        for line in lines:
            turn = _read(line)
            if turn is not None:
                _count(connection, turn, add)
    return list(files.values())


def _count(
    connection: sqlite3.Connection, turn: Figures, add: Callable[[sqlite3.Connection, Figures], None]
) -> None:
    """Add one turn, or nothing of it when the file holds what we did not write."""
    connection.execute("SAVEPOINT one")
    try:
        add(connection, turn)
    except (TypeError, ValueError, AttributeError, KeyError, connection.DatabaseError) as error:
        if isinstance(error, connection.OperationalError):  # the disk's fault, not the line's
            raise
        connection.execute("ROLLBACK TO one")
    connection.execute("RELEASE one")


def drop(files: Iterable[str]) -> None:
    """Remove files that are counted."""
    for file in files:
        try:
            os.unlink(file)
        except OSError:
            continue  # another process was faster, or it is none of ours; what is counted is not counted again


def _said(turn: Figures) -> dict[str, object]:
    from hookturn.redact import redact

    said = {name: getattr(turn, name) for name in turn.__slots__ if name not in ("mark", "place")}
    for name in ("session_id", "agent_id", "agent", "parent_agent"):
        said[name] = redact(said[name])
    return said


def _read(line: bytes) -> Figures | None:
    """Return a line's figures; None for one that is cut off or not ours."""
    from . import Figures

    try:
        said = loads(line)
    except (ValueError, RecursionError):
        return None
    turn = object.__new__(Figures)
    names = [name for name in Figures.__slots__ if name not in ("mark", "place")]
    if not isinstance(said, dict) or said.keys() != set(names):
        return None
    for name in names:
        setattr(turn, name, said[name])
    return turn
