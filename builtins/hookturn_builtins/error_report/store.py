"""The SQLite file of the errors: one row an error of a kind, with how often and in which sessions it was seen."""

from __future__ import annotations

from json import dumps, loads

from ..database import Database, open_to_read, sqlite_text
from ..places import session_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from typing import Any

MAX_SESSIONS = 50
"""Sessions of one error that are kept, the newest."""

VERSIONS = (
    """
CREATE TABLE errors (
    id INTEGER PRIMARY KEY AUTOINCREMENT, fingerprint TEXT NOT NULL UNIQUE,
    type TEXT NOT NULL, message TEXT NOT NULL, phase TEXT NOT NULL, tool TEXT NOT NULL, hook TEXT NOT NULL,
    call_id TEXT NOT NULL, session_id TEXT NOT NULL, agent TEXT NOT NULL, agent_id TEXT NOT NULL,
    turn INTEGER NOT NULL, count INTEGER NOT NULL, first_seen REAL NOT NULL, last_seen REAL NOT NULL,
    trace TEXT NOT NULL, environment TEXT NOT NULL
);
CREATE INDEX errors_by_time ON errors (last_seen);
CREATE TABLE sessions (
    error INTEGER NOT NULL REFERENCES errors (id), session_id TEXT NOT NULL, count INTEGER NOT NULL,
    first_seen REAL NOT NULL, last_seen REAL NOT NULL,
    PRIMARY KEY (error, session_id)
);
""",
)
"""What makes each version of the tables from the one before."""

_LATEST = (
    "message", "call_id", "session_id", "agent", "agent_id", "turn", "trace", "environment",
)  # fmt: skip
"""What is kept of the latest of equal errors."""

# Of constant parts only.
_AGAIN = f"""
UPDATE errors SET
    count = count + 1, first_seen = min(first_seen, :time), last_seen = max(last_seen, :time),
    {", ".join(f"{name} = :{name}" for name in _LATEST)}
WHERE fingerprint = :fingerprint
"""  # noqa: S608

# No ON CONFLICT instead of the two: it would use up a number each time.
_ADD = f"""
INSERT INTO errors (fingerprint, type, phase, tool, hook, first_seen, last_seen, count, {", ".join(_LATEST)})
VALUES (:fingerprint, :type, :phase, :tool, :hook, :time, :time, 1, {", ".join(f":{name}" for name in _LATEST)})
"""  # noqa: S608

_ADD_SESSION = """
INSERT INTO sessions VALUES (?, ?, 1, ?, ?)
ON CONFLICT (error, session_id) DO UPDATE SET
    count = count + 1, first_seen = min(first_seen, excluded.first_seen),
    last_seen = max(last_seen, excluded.last_seen)
"""

_TRIM_SESSIONS = """
DELETE FROM sessions WHERE error = :error AND session_id IN (
    SELECT session_id FROM sessions WHERE error = :error ORDER BY last_seen DESC LIMIT -1 OFFSET :kept
)
"""

_TRIM = """
DELETE FROM errors WHERE id IN (SELECT id FROM errors ORDER BY last_seen DESC, id DESC LIMIT -1 OFFSET ?)
"""

_TRIM_ORPHANS = "DELETE FROM sessions WHERE error NOT IN (SELECT id FROM errors)"


class Store:
    """An open file of errors.

    Parameters:
        path: the file; it is made when missing.
        base: a folder that is trusted as it is; nothing below it may be a symbolic link.
        max_errors: different errors that are kept.

    Attributes:
        kept: where a damaged file was put aside, when there was one; else "".

    Raises:
        OSError, sqlite3.Error: when it cannot be opened or made.
    """

    def __init__(self, path: str, base: str, *, max_errors: int) -> None:
        self._database = Database(path, base, VERSIONS)
        self._max_errors = max_errors
        self.kept = self._database.kept

    def add(self, records: Iterable[dict[str, Any]]) -> None:
        """Add records as ``record.make`` gives them, in one transaction.

        Raises:
            sqlite3.Error: when they cannot be written; nothing of them is then stored.
        """
        with self._database.transaction() as connection:
            for record in records:
                self._add(connection, record)

    def _add(self, connection: sqlite3.Connection, record: dict[str, Any]) -> None:
        plain = {
            **record,
            "trace": dumps(record["trace"]),
            "environment": dumps(record["environment"]),
        }
        values = {name: sqlite_text(item) if isinstance(item, str) else item for name, item in plain.items()}
        if not connection.execute(_AGAIN, values).rowcount:
            connection.execute(_ADD, values)
        [number] = connection.execute(
            "SELECT id FROM errors WHERE fingerprint = :fingerprint", values
        ).fetchone()
        time = values["time"]
        connection.execute(_ADD_SESSION, (number, values["session_id"], time, time))
        connection.execute(_TRIM_SESSIONS, {"error": number, "kept": MAX_SESSIONS})
        if connection.execute(_TRIM, (self._max_errors,)).rowcount:
            connection.execute(_TRIM_ORPHANS)

    def clear(self, session: str = "") -> int:
        """Forget all errors, or those that were seen in a session; returns how many.

        Parameters:
            session: its id; "" for all.
        """
        chosen = "SELECT error FROM sessions WHERE session_id = ?" if session else "SELECT id FROM errors"
        values = (_session(session),) if session else ()
        with self._database.transaction() as connection:
            gone = connection.execute(f"DELETE FROM errors WHERE id IN ({chosen})", values).rowcount  # noqa: S608
            connection.execute(_TRIM_ORPHANS)
        return gone

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _session(session: str) -> str:
    from .record import NAME

    return sqlite_text(session_name(session)[:NAME])


def read(path: str, session: str = "") -> list[dict[str, Any]]:
    """Return the errors of a file, those seen last first.

    Parameters:
        path: the file.
        session: only those seen in this session; "" for all.

    Returns:
        the rows, with ``trace``, ``environment`` and ``sessions`` as data.

    Raises:
        FileNotFoundError: when there is no such file.
        sqlite3.Error: when it is no file of errors.
    """
    connection = open_to_read(path, VERSIONS)
    try:
        errors = [
            dict(row) for row in connection.execute("SELECT * FROM errors ORDER BY last_seen DESC, id DESC")
        ]
        seen: dict[int, list[dict[str, Any]]] = {}
        for row in connection.execute("SELECT * FROM sessions ORDER BY last_seen DESC"):
            found = dict(row)
            seen.setdefault(found.pop("error"), []).append(found)
    finally:
        connection.close()
    for error in errors:
        error["trace"] = loads(error["trace"])
        error["environment"] = loads(error["environment"])
        error["sessions"] = seen.get(error["id"], [])
    if not session:
        return errors
    wanted = _session(session)
    return [error for error in errors if any(row["session_id"] == wanted for row in error["sessions"])]
