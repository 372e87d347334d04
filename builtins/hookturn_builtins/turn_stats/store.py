"""The SQLite file of the statistics: its tables, how turns are added, how figures are read.

Many processes and threads may add at once: each adds its counts in one short transaction.
"""

from __future__ import annotations

import os
import sqlite3
from json import dumps, loads

from hookturn.paths import FileLock, hookturn_dir, open_private, private_dir, refuse_links

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from . import Figures

VERSION = 1
BUSY_SECONDS = 2.0
"""How long other processes are waited for; the agent waits as well."""

_TABLES = """
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
"""

_ADD_TURN = """
INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)
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
    edited = CASE excluded.edited WHEN '[]' THEN edited ELSE excluded.edited END
"""

_SET_TOKENS = """
UPDATE turns SET input_tokens = ?, output_tokens = ?, cache_read_tokens = ?, cache_write_tokens = ?
WHERE session_id = ? AND agent_id = ? AND turn = ?
"""

_ADD_CALL = "INSERT INTO calls VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"

_ADD_HOOK = """
INSERT INTO hooks VALUES (?, ?, ?, ?, ?, ?, ?, ?)
ON CONFLICT DO UPDATE SET answers = answers + excluded.answers, denials = denials + excluded.denials,
    failures = failures + excluded.failures, would = would + excluded.would
"""


class Store:
    """An open statistics file.

    Parameters:
        path: the file; it is made when missing (0600, its folder 0700).
        base: a folder that is trusted as it is; nothing below it may be a symbolic link.

    Raises:
        OSError, sqlite3.Error: when it cannot be opened or made.
    """

    def __init__(self, path: str, base: str) -> None:
        self.path = path
        folder = os.path.dirname(path)
        if folder == os.path.join(os.path.abspath(base), ".hookturn"):
            hookturn_dir(base)
        elif not os.path.isdir(folder):
            private_dir(folder, base=base if os.path.isdir(base) else None)
        outside = os.path.relpath(path, base).startswith(os.pardir)
        refuse_links(path, base=None if outside else base)
        # Only one process makes the file: switching a new one to WAL would fail the others.
        with FileLock(f"{path}.lock", timeout=BUSY_SECONDS):
            if not os.path.exists(path):
                # SQLite gives its own files the mode of this one. An existing file must not be opened and
                # closed here: that would drop the locks of another connection in this process.
                os.close(open_private(path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
            self._owner = os.getpid()
            self._connection = _connect(path)
            try:
                self._prepare(self._connection)
            except BaseException:
                self._connection.close()
                raise

    @staticmethod
    def _prepare(connection: sqlite3.Connection) -> None:
        # A killed process loses nothing with this; a power cut may cost the last turns.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        if connection.execute("PRAGMA user_version").fetchone()[0] < VERSION:
            connection.executescript(f"BEGIN IMMEDIATE; {_TABLES} PRAGMA user_version = {VERSION}; COMMIT;")

    def add(self, turns: Iterable[Figures]) -> None:
        """Add the figures of turns in one transaction.

        Raises:
            sqlite3.Error: when it cannot be written; nothing of it is then stored.
        """
        if self._owner != os.getpid():  # SQLite's connections do not survive a fork
            self._connection = _connect(self.path)
            self._owner = os.getpid()
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            for turn in turns:
                self._add(connection, turn)
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    @staticmethod
    def _add(connection: sqlite3.Connection, turn: Figures) -> None:
        key = (_text(turn.session_id), _text(turn.agent_id), turn.turn)
        edited = dumps(turn.edited or [])
        # A session's turn may have been counted by several processes: its own total is right. A sub-agent may
        # run several times in a turn: its totals add up.
        tokens = turn.usage if turn.usage is not None and turn.agent_id else turn.tokens
        connection.execute(
            _ADD_TURN,
            (
                *key, _text(turn.agent), _text(turn.parent_agent), _text(turn.host), _text(turn.model),
                turn.started, turn.ended, turn.seconds, *tokens, turn.denials, turn.rewrites, turn.replies,
                turn.injections, turn.warnings, turn.failures, turn.continued, turn.fires, turn.micros / 1e6, edited,
            ),
        )  # fmt: skip
        if turn.usage is not None and not turn.agent_id:
            connection.execute(_SET_TOKENS, (*turn.usage, *key))
        if turn.calls:
            connection.executemany(
                _ADD_CALL,
                [
                    (*key, time, _text(call), _text(tool), _text(kind), _text(status), seconds)
                    for time, call, tool, kind, status, seconds in turn.calls
                ],
            )
        if turn.hooks:
            connection.executemany(_ADD_HOOK, [(*key, _text(name), *row) for name, row in turn.hooks.items()])

    def close(self) -> None:
        """Close the file."""
        if self._owner == os.getpid():
            self._connection.close()


def _connect(path: str) -> sqlite3.Connection:
    # Autocommit: transactions are begun by hand. The plugin's lock keeps its threads apart.
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def _text(value: str) -> str:
    """Return a text that SQLite takes: lone surrogates are escaped."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")


# -- reading ------------------------------------------------------------------------------------------


def read(path: str, session: str = "") -> dict[str, Any]:
    """Return all figures of a statistics file.

    Parameters:
        path: the file.
        session: only this session.

    Returns:
        ``{"totals", "sessions", "tools", "hooks"}``, and ``turns`` of one session.

    Raises:
        FileNotFoundError: when there is no such file.
        sqlite3.Error: when it is no statistics file.
    """
    if not os.path.isfile(path):
        raise FileNotFoundError(2, "there are no statistics", path)
    try:
        return _read(path, "mode=rw", session)
    except sqlite3.OperationalError:
        # In a folder that cannot be written SQLite reads only what it is told not to lock.
        return _read(path, "mode=ro&immutable=1", session)


def _read(path: str, options: str, session: str) -> dict[str, Any]:
    from urllib.parse import quote

    connection = sqlite3.connect(f"file:{quote(path)}?{options}", uri=True, timeout=BUSY_SECONDS)
    try:
        connection.row_factory = sqlite3.Row
        only = {"session": _text(session)}
        result: dict[str, Any] = {
            "totals": _totals(connection, only),
            "sessions": _rows(connection, _SESSIONS, only),
            "tools": _tools(connection, only),
            "hooks": _rows(connection, _HOOKS, only),
        }
        result["totals"]["tool_calls"] = sum(row["calls"] for row in result["tools"])
        if session:
            result["turns"] = _rows(connection, _TURNS, only)
            for turn in result["turns"]:
                turn["edited"] = loads(turn["edited"])
        return result
    finally:
        connection.close()


_ONLY = "WHERE :session IN ('', session_id)"
_SUMS = """
    sum(agent_id = '' AND turn > 0) AS turns, sum(agent_id != '') AS sub_turns,
    sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
    sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
    sum(denials) AS denials, sum(rewrites) AS rewrites, sum(replies) AS replies, sum(injections) AS injections,
    sum(warnings) AS warnings, sum(failures) AS failures, sum(continued) AS continued, sum(fires) AS fires,
    sum(hook_seconds) AS hook_seconds,
    sum(CASE WHEN agent_id = '' THEN seconds END) AS seconds
"""
# Of constant parts only.
_TOTALS = f"SELECT count(DISTINCT session_id) AS sessions, {_SUMS} FROM turns {_ONLY}"  # noqa: S608
_SESSIONS = f"""
SELECT session_id, min(agent) AS agent, min(started) AS started, max(ended) AS ended, {_SUMS}
FROM turns {_ONLY} GROUP BY session_id ORDER BY started DESC
"""  # noqa: S608
_TURNS = f"SELECT * FROM turns {_ONLY} ORDER BY started, turn, agent_id"  # noqa: S608
_CALLS = f"SELECT tool, kind, status, seconds FROM calls {_ONLY} ORDER BY tool, seconds"  # noqa: S608
_EDITED = f"SELECT edited FROM turns {_ONLY} AND edited != '[]'"  # noqa: S608
_HOOKS = f"""
SELECT hook, sum(answers) AS answers, sum(denials) AS denials, sum(failures) AS failures, sum(would) AS would
FROM hooks {_ONLY} GROUP BY hook ORDER BY answers DESC, hook
"""  # noqa: S608


def _rows(connection: sqlite3.Connection, query: str, only: dict[str, str]) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(query, only)]


def _totals(connection: sqlite3.Connection, only: dict[str, str]) -> dict[str, Any]:
    totals = {name: value or 0 for name, value in _rows(connection, _TOTALS, only)[0].items()}
    edited = connection.execute(_EDITED, only)
    totals["edited_files"] = len({path for row in edited for path in loads(row[0])})
    return totals


def _tools(connection: sqlite3.Connection, only: dict[str, str]) -> list[dict[str, Any]]:
    """Figures by tool: calls by status, and latencies of those that ran, in seconds."""
    tools: dict[str, dict[str, Any]] = {}
    times: dict[str, list[float]] = {}
    for tool, kind, status, seconds in connection.execute(_CALLS, only):
        row = tools.setdefault(tool, {"tool": tool, "kind": kind, "calls": 0, "by_status": {}})
        row["calls"] += 1
        row["by_status"][status] = row["by_status"].get(status, 0) + 1
        if status not in ("denied", "replied"):
            times.setdefault(tool, []).append(seconds)
    for tool, row in tools.items():
        ran = times.get(tool, [])
        row["seconds"] = sum(ran)
        for name, share in (("p50", 0.5), ("p95", 0.95), ("max", 1.0)):
            row[name] = ran[min(len(ran) - 1, int(len(ran) * share))] if ran else None
    return sorted(tools.values(), key=lambda row: (-row["calls"], row["tool"]))
