"""The SQLite file of the statistics: its tables, and how turns are added.

Many processes and threads may add at once: each adds its counts in one short transaction.
"""

from __future__ import annotations

from ..database import Database, sqlite_text
from . import spool

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from . import Figures

VERSIONS = (
    """
CREATE TABLE IF NOT EXISTS turns (
    session_id TEXT NOT NULL, agent_id TEXT NOT NULL, turn INTEGER NOT NULL,
    agent TEXT NOT NULL, parent_agent TEXT NOT NULL, host TEXT NOT NULL, model TEXT NOT NULL,
    started REAL NOT NULL, ended REAL, seconds REAL,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cache_read_tokens INTEGER NOT NULL, cache_write_tokens INTEGER NOT NULL,
    denials INTEGER NOT NULL, rewrites INTEGER NOT NULL, replies INTEGER NOT NULL, injections INTEGER NOT NULL,
    warnings INTEGER NOT NULL, failures INTEGER NOT NULL, continued INTEGER NOT NULL,
    fires INTEGER NOT NULL, hook_seconds REAL NOT NULL, edited TEXT NOT NULL,
    PRIMARY KEY (session_id, agent_id, turn)
);
CREATE TABLE IF NOT EXISTS calls (
    session_id TEXT NOT NULL, agent_id TEXT NOT NULL, turn INTEGER NOT NULL,
    time REAL NOT NULL, call_id TEXT NOT NULL, tool TEXT NOT NULL, kind TEXT NOT NULL, status TEXT NOT NULL,
    seconds REAL NOT NULL
);
CREATE INDEX IF NOT EXISTS calls_by_turn ON calls (session_id, agent_id, turn);
CREATE TABLE IF NOT EXISTS hooks (
    session_id TEXT NOT NULL, agent_id TEXT NOT NULL, turn INTEGER NOT NULL, hook TEXT NOT NULL,
    answers INTEGER NOT NULL, denials INTEGER NOT NULL, failures INTEGER NOT NULL, would INTEGER NOT NULL,
    PRIMARY KEY (session_id, agent_id, turn, hook)
);
""",
    """
ALTER TABLE turns ADD COLUMN responses INTEGER NOT NULL DEFAULT 0;
ALTER TABLE turns ADD COLUMN model_seconds REAL;
ALTER TABLE hooks ADD COLUMN measured INTEGER NOT NULL DEFAULT 0;
ALTER TABLE hooks ADD COLUMN seconds REAL NOT NULL DEFAULT 0;
CREATE TABLE IF NOT EXISTS timings (
    session_id TEXT NOT NULL, agent_id TEXT NOT NULL, turn INTEGER NOT NULL, timing TEXT NOT NULL,
    fires INTEGER NOT NULL, seconds REAL NOT NULL,
    PRIMARY KEY (session_id, agent_id, turn, timing)
);
""",
    """
CREATE TABLE IF NOT EXISTS taken (name TEXT PRIMARY KEY);
""",
)
"""What makes each version of the tables from the one before."""

_TURN = (
    "session_id", "agent_id", "turn", "agent", "parent_agent", "host", "model", "started", "ended", "seconds",
    "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens", "denials", "rewrites", "replies",
    "injections", "warnings", "failures", "continued", "fires", "hook_seconds", "edited", "responses", "model_seconds",
)  # fmt: skip

# Of constant parts only.
_ADD_TURN = f"""
INSERT INTO turns ({", ".join(_TURN)}) VALUES ({", ".join("?" * len(_TURN))})
ON CONFLICT DO UPDATE SET
    model = CASE excluded.model WHEN '' THEN model ELSE excluded.model END,
    started = min(started, excluded.started),
    ended = coalesce(excluded.ended, ended), seconds = coalesce(excluded.seconds, seconds),
    input_tokens = input_tokens + excluded.input_tokens, output_tokens = output_tokens + excluded.output_tokens,
    cache_read_tokens = cache_read_tokens + excluded.cache_read_tokens,
    cache_write_tokens = cache_write_tokens + excluded.cache_write_tokens,
    denials = denials + excluded.denials, rewrites = rewrites + excluded.rewrites,
    replies = replies + excluded.replies, injections = injections + excluded.injections,
    warnings = warnings + excluded.warnings, failures = failures + excluded.failures,
    continued = continued + excluded.continued, fires = fires + excluded.fires,
    hook_seconds = hook_seconds + excluded.hook_seconds,
    edited = CASE excluded.edited WHEN '[]' THEN edited ELSE excluded.edited END,
    responses = responses + excluded.responses,
    model_seconds = coalesce(model_seconds + excluded.model_seconds, model_seconds, excluded.model_seconds)
"""  # noqa: S608

_SET_TOKENS = """
UPDATE turns SET input_tokens = ?, output_tokens = ?, cache_read_tokens = ?, cache_write_tokens = ?
WHERE session_id = ? AND agent_id = ? AND turn = ?
"""

_ADD_CALL = "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"

_ADD_HOOK = """
INSERT INTO hooks (session_id, agent_id, turn, hook, answers, denials, failures, would, measured, seconds)
VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET answers = answers + excluded.answers, denials = denials + excluded.denials,
    failures = failures + excluded.failures, would = would + excluded.would,
    measured = measured + excluded.measured, seconds = seconds + excluded.seconds
"""

_ADD_TIMING = """
INSERT INTO timings (session_id, agent_id, turn, timing, fires, seconds) VALUES (?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET fires = fires + excluded.fires, seconds = seconds + excluded.seconds
"""


class Store:
    """An open statistics file.

    Parameters:
        path: the file; it is made when missing.
        base: a folder that is trusted as it is; nothing below it may be a symbolic link.

    Attributes:
        kept: where a damaged file was put aside, when there was one; else "".

    Raises:
        OSError, sqlite3.Error: when it cannot be opened or made.
    """

    def __init__(self, path: str, base: str) -> None:
        self._path = path
        self._database = Database(path, base, VERSIONS)
        self.kept = self._database.kept

    def add(self, turns: Iterable[Figures]) -> None:
        """Add the figures of turns in one transaction.

        Raises:
            OSError, sqlite3.Error: when it cannot be written; nothing of it is then stored.
        """
        claimed = spool.claim(self._path)
        with self._database.transaction() as connection:
            # First what processes of one call left: a turn's totals count, and come last.
            counted = spool.count(self._path, connection, _add) if claimed else []
            for turn in turns:
                _add(connection, turn)
        spool.drop(counted)

    def close(self) -> None:
        """Close the file."""
        self._database.close()


def _name(text: str) -> str:
    """An id or a name as it is stored: without a secret in it."""
    from hookturn.redact import redact

    return sqlite_text(redact(text))


def _list(names: list[str] | None) -> str:
    if not names:
        return "[]"
    from json import dumps

    return dumps(names)


def _add(connection: sqlite3.Connection, turn: Figures) -> None:
    key = (_name(turn.session_id), _name(turn.agent_id), turn.turn)
    # A session's turn may have been counted by several processes: its own total is right. A sub-agent may
    # run several times in a turn: its totals add up.
    tokens = turn.usage if turn.usage is not None and turn.agent_id else turn.tokens
    connection.execute(
        _ADD_TURN,
        (
            *key, _name(turn.agent), _name(turn.parent_agent), sqlite_text(turn.host),
            sqlite_text(turn.model), turn.started, turn.ended, turn.seconds, *tokens, turn.denials, turn.rewrites,
            turn.replies, turn.injections, turn.warnings, turn.failures, turn.continued,
            sum(fires for fires, _ in turn.timings.values()),
            sum(micros for _, micros in turn.timings.values()) / 1e6,
            _list(turn.edited), turn.responses, turn.model_seconds,
        ),
    )  # fmt: skip
    if turn.usage is not None and not turn.agent_id:
        connection.execute(_SET_TOKENS, (*turn.usage, *key))
    connection.executemany(
        _ADD_CALL,
        [
            (
                *key,
                time,
                sqlite_text(call),
                sqlite_text(tool),
                sqlite_text(kind),
                sqlite_text(status),
                seconds,
            )
            for time, call, tool, kind, status, seconds in turn.calls
        ],
    )
    connection.executemany(
        _ADD_HOOK,
        [(*key, sqlite_text(name), *row[:5], row[5] / 1e6) for name, row in turn.hooks.items()],
    )
    connection.executemany(
        _ADD_TIMING,
        [(*key, sqlite_text(name), fires, micros / 1e6) for name, (fires, micros) in turn.timings.items()],
    )
