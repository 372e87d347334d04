"""Secrets in the names of agents and sessions are stored by no builtin."""

from __future__ import annotations

import random
import string
from pathlib import Path

from hookturn import Engine
from hookturn_builtins import audit_log, turn_stats


def test_audit_and_statistics_store_no_secret_names(tmp_path: Path) -> None:
    token = "ghp_" + "".join(random.Random(3).choices(string.ascii_letters + string.digits, k=36))
    with Engine(project_dir=tmp_path) as engine:
        for module, name in ((audit_log, "audit-log"), (turn_stats, "turn-stats")):
            engine.register(module.plugin(module.plugin.Config()), name, layer="builtin")
        with engine.session(session_id=f"s-{token}", agent=token) as session, session.turn() as turn:
            turn.call_tool("bash", {"command": "ls"}, lambda command: "ok")
            with turn.subagent(token, agent_id=f"a-{token}") as sub:
                sub.call_tool("bash", {"command": "ls"}, lambda command: "ok")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {"audit.jsonl", "stats.sqlite"}
    for path in files:
        assert token.encode() not in path.read_bytes(), path
