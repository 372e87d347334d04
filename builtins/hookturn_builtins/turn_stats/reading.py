"""Reads figures out of a statistics file: totals, sessions, turns, tools, hooks, timings and models."""

from __future__ import annotations

import os
from array import array
from contextlib import suppress
from json import loads
from math import ceil

from ..database import open_to_read, sqlite_text
from ..places import TRIED
from .store import VERSIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable
    from typing import Any

QUANTILES = {"p50": 0.5, "p90": 0.9, "p99": 0.99}
"""The latencies that are told of each tool."""

NOT_RUN = ("denied", "replied")
"""How calls end whose tool never ran; they have no latency."""

_TURN_KEY = ("session_id", "agent_id", "turn")

# ruff: noqa: S608 - all queries are of constant parts
_CHOSEN = f"""
WITH chosen AS (
    SELECT * FROM turns WHERE :session IN ('', session_id) AND started >= :since AND host != '{TRIED}'
)
"""
_OF_CHOSEN = "JOIN chosen USING (session_id, agent_id, turn)"
_SUMS = """
    sum(agent_id = '' AND turn > 0) AS turns, sum(agent_id != '') AS sub_turns,
    sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
    sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens,
    sum(denials) AS denials, sum(rewrites) AS rewrites, sum(replies) AS replies, sum(injections) AS injections,
    sum(chosen.warnings) AS warnings, sum(failures) AS failures, sum(continued) AS continued, sum(fires) AS fires,
    sum(responses) AS responses, sum(model_seconds) AS model_seconds, sum(hook_seconds) AS hook_seconds,
    sum(CASE WHEN agent_id = '' THEN seconds END) AS seconds
"""
_TOTALS = f"{_CHOSEN} SELECT count(DISTINCT session_id) AS sessions, {_SUMS} FROM chosen"
_SESSIONS = f"""
{_CHOSEN} SELECT session_id, min(agent) AS agent, min(started) AS started, max(ended) AS ended, {_SUMS}
FROM chosen GROUP BY session_id ORDER BY started DESC, session_id
"""
_TURNS = f"{_CHOSEN} SELECT * FROM chosen ORDER BY started, turn, agent_id"
_MODELS = f"""
{_CHOSEN} SELECT model, count(*) AS turns, sum(responses) AS responses, sum(model_seconds) AS model_seconds,
    sum(input_tokens) AS input_tokens, sum(output_tokens) AS output_tokens,
    sum(cache_read_tokens) AS cache_read_tokens, sum(cache_write_tokens) AS cache_write_tokens
FROM chosen WHERE model != '' GROUP BY model ORDER BY input_tokens DESC, model
"""
_HOOK_SUMS = """
    hook, sum(answers) AS answers, sum(hooks.denials) AS denials, sum(hooks.failures) AS failures,
    sum(would) AS would, sum(measured) AS calls, sum(hooks.seconds) AS seconds
"""
_TIMINGS = f"""
{_CHOSEN} SELECT timing, sum(timings.fires) AS fires, sum(timings.seconds) AS seconds
FROM timings {_OF_CHOSEN} GROUP BY timing ORDER BY sum(timings.seconds) DESC, timing
"""
_EDITED = f"{_CHOSEN} SELECT edited FROM chosen WHERE edited != '[]'"


def read(path: str, session: str = "", since: float = 0.0) -> dict[str, Any]:
    """Return all figures of a statistics file.

    Parameters:
        path: the file.
        session: only this session; its turns are listed too.
        since: only turns that began at this time or later, in seconds since the epoch.

    Returns:
        ``{"totals", "sessions", "models", "tools", "hooks", "timings"}``, and ``turns`` of one session, each with
        its ``tools``, ``hooks`` and ``timings``. Durations are in seconds, None where nobody knows them.

    Raises:
        FileNotFoundError: when there is no such file.
        sqlite3.Error: when it is no statistics file.
    """
    _count_waiting(path)
    connection = open_to_read(path, VERSIONS)
    try:
        only = {"session": sqlite_text(session), "since": since}
        tools = _tools(connection, only, ())[()]
        result: dict[str, Any] = {
            "totals": _totals(connection, only, tools),
            "sessions": _rows(connection, _SESSIONS, only),
            "models": _rows(connection, _MODELS, only),
            "tools": tools,
            "hooks": _hooks(connection, only, ())[()],
            "timings": _rows(connection, _TIMINGS, only),
        }
        if session:
            result["turns"] = _turns(connection, only)
        return result
    finally:
        connection.close()


def _count_waiting(path: str) -> None:
    """Count what processes of one call left; where that cannot be written, the figures are without it."""
    import sqlite3

    from .spool import waits
    from .store import Store

    if not waits(path):
        return
    with suppress(OSError, sqlite3.Error):
        store = Store(os.path.abspath(path), os.path.dirname(os.path.abspath(path)))
        try:
            store.add(())
        finally:
            store.close()


def _rows(connection: sqlite3.Connection, query: str, only: dict[str, Any]) -> list[dict[str, Any]]:
    return [dict(row) for row in connection.execute(query, only)]


def _totals(
    connection: sqlite3.Connection, only: dict[str, Any], tools: list[dict[str, Any]]
) -> dict[str, Any]:
    unknown = ("model_seconds", "seconds")
    [found] = _rows(connection, _TOTALS, only)
    totals = {name: value if name in unknown else value or 0 for name, value in found.items()}
    totals["tool_calls"] = sum(row["calls"] for row in tools)
    totals["tool_seconds"] = sum(row["seconds"] for row in tools)
    totals["edited_files"] = len(
        {path for row in connection.execute(_EDITED, only) for path in loads(row[0])}
    )
    return totals


def _turns(connection: sqlite3.Connection, only: dict[str, Any]) -> list[dict[str, Any]]:
    turns = _rows(connection, _TURNS, only)
    tools = _tools(connection, only, _TURN_KEY)
    hooks = _hooks(connection, only, _TURN_KEY)
    timings: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    query = f"{_CHOSEN} SELECT timings.* FROM timings {_OF_CHOSEN} ORDER BY timings.seconds DESC, timing"
    for row in _rows(connection, query, only):
        key = tuple(row.pop(name) for name in _TURN_KEY)
        timings.setdefault(key, []).append(row)
    for turn in turns:
        key = tuple(turn[name] for name in _TURN_KEY)
        turn["edited"] = loads(turn["edited"])
        turn["tools"] = tools.get(key, [])
        turn["tool_calls"] = sum(row["calls"] for row in turn["tools"])
        turn["tool_seconds"] = sum(row["seconds"] for row in turn["tools"])
        turn["hooks"] = hooks.get(key, [])
        turn["timings"] = timings.get(key, [])
    return turns


Grouped = dict[tuple[object, ...], list[dict[str, "Any"]]]


def _tools(connection: sqlite3.Connection, only: dict[str, Any], key: tuple[str, ...]) -> Grouped:
    """Figures by tool, per ``key``: calls by status, and latencies of those that ran."""
    columns = "".join(f"{name}, " for name in key)
    query = (
        f"{_CHOSEN} SELECT {columns} tool, kind, status, calls.seconds AS seconds FROM calls {_OF_CHOSEN}"
        f" ORDER BY {columns} tool, calls.seconds"
    )
    found: dict[tuple[object, ...], dict[str, dict[str, Any]]] = {(): {}} if not key else {}
    times: dict[tuple[object, ...], array[float]] = {}
    for row in connection.execute(query, only):
        *place, tool, kind, status, seconds = row
        group = tuple(place)
        figures = found.setdefault(group, {}).setdefault(
            tool, {"tool": tool, "kind": kind, "calls": 0, "by_status": {}, "ran": 0}
        )
        figures["calls"] += 1
        figures["by_status"][status] = figures["by_status"].get(status, 0) + 1
        if status in NOT_RUN:
            continue
        figures["ran"] += 1
        if status != "unknown":  # its end was never told, so neither was its time
            times.setdefault((*group, tool), array("d")).append(seconds)
    for group, tools in found.items():
        for tool, figures in tools.items():
            ran = times.get((*group, tool), array("d"))
            figures["seconds"] = sum(ran)
            figures.update({name: quantile(ran, share) for name, share in QUANTILES.items()})
            figures["max"] = ran[-1] if ran else None
    return {
        group: sorted(tools.values(), key=lambda row: (-row["calls"], row["tool"]))
        for group, tools in found.items()
    }


def quantile(values: array[float], share: float) -> float | None:
    """Return the smallest of sorted values that at least this share of them does not exceed; None for no values."""
    return values[max(ceil(len(values) * share), 1) - 1] if values else None


def _hooks(connection: sqlite3.Connection, only: dict[str, Any], key: tuple[str, ...]) -> Grouped:
    """Figures by hook, per ``key``; a hook's share is that of the time of all hooks."""
    columns = "".join(f"{name}, " for name in key)
    query = (
        f"{_CHOSEN} SELECT {columns} {_HOOK_SUMS} FROM hooks {_OF_CHOSEN}"
        f" GROUP BY {columns} hook ORDER BY sum(hooks.seconds) DESC, sum(answers) DESC, hook"
    )
    found: Grouped = {(): []} if not key else {}
    for row in _rows(connection, query, only):
        group = tuple(row.pop(name) for name in key)
        found.setdefault(group, []).append(row)
    for hooks in found.values():
        _share(hooks)
    return found


def _share(hooks: Iterable[dict[str, Any]]) -> None:
    hooks = list(hooks)
    total = sum(row["seconds"] for row in hooks)
    for row in hooks:
        row["share"] = row["seconds"] / total if row["calls"] and total else None
        if not row["calls"]:
            row["seconds"] = None
