"""A whole ``call_tool``: begin, permission ladder, tool body, end; bare, and with audit-log and turn-stats."""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from harness import Row, side_by_side

from hookturn import Engine


def cycle(engine: Engine, cwd: str) -> Callable[[], Any]:
    session = engine.session(cwd=cwd)
    session.start()
    turn = session.turn().begin()

    def body(command: str, timeout: int) -> str:
        return "ok"

    return lambda: turn.call_tool("bash", {"command": "ls -la", "timeout": 30}, execute=body)


def rows() -> list[Row]:
    """Measure and return the rows."""
    from hookturn_builtins import audit_log, turn_stats

    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        watched = Engine(project_dir=project, state_dir=project / "state")
        for module, name in ((audit_log, "audit-log"), (turn_stats, "turn-stats")):
            config = module.plugin.Config()
            watched.register(module.plugin(config), name, layer="builtin", config=config)
        permissions = {"deny": ["bash(rm -rf *)"], "ask": ["fetch"], "always_allow": ["read"]}
        figures = side_by_side(
            {
                "bare": cycle(Engine(), folder),
                "rules": cycle(Engine(permissions=permissions), folder),
                "watched": cycle(watched, folder),
            },
            rounds=9,
        )
        watched.close()
    extra = (figures["watched"] - figures["bare"]) / 1000
    return [
        Row("call_tool, two small arguments, no hooks", figures["bare"] / 1000, "µs", "", 25),
        Row(
            "call_tool with three permission rules, beyond that",
            (figures["rules"] - figures["bare"]) / 1000,
            "µs",
        ),
        Row("call_tool with audit-log and turn-stats, beyond that", extra, "µs", "", 150),
    ]


if __name__ == "__main__":
    for row in rows():
        print(*row.cells(), sep=" | ")
