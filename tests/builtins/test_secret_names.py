"""Secrets in the names of agents and sessions are stored by no builtin, in texts or in names of files and refs."""

from __future__ import annotations

import json
import os
import random
import string
import subprocess
import sys
from pathlib import Path

import pytest

from hookturn import Engine
from hookturn_builtins import (
    audit_log,
    auto_commit,
    error_report,
    response_validation,
    session_summary,
    turn_stats,
)

TOKEN = "ghp_" + "".join(random.Random(3).choices(string.ascii_letters + string.digits, k=36))
BUILTINS = {
    "audit-log": audit_log,
    "turn-stats": turn_stats,
    "auto-commit": auto_commit,
    "session-summary": session_summary,
    "error-report": error_report,
    "response-validation": response_validation,
}


@pytest.mark.parametrize("session_id", [f"s-{TOKEN}", TOKEN, f"{'x/' * 150}{TOKEN}"])
def test_no_builtin_stores_a_secret_name(tmp_path: Path, session_id: str) -> None:
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "base")):
        subprocess.run(
            ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *words], cwd=tmp_path, check=True
        )
    with Engine(project_dir=tmp_path) as engine:
        for name, module in BUILTINS.items():
            config = module.plugin.Config()
            if name == "auto-commit":
                config.every, config.target = 1, "session"
            engine.register(module.plugin(config), name, layer="builtin")
        with (
            engine.session(session_id=session_id, agent=TOKEN, cwd=str(tmp_path)) as session,
            session.turn() as turn,
        ):
            turn.call_tool("write", {"path": "a.txt"}, lambda path: (tmp_path / path).write_text("a"))
            turn.begin_tool("c9", "bash", {"command": "ls"})
            turn.end_tool("c9", status="error", error="it broke")
            with turn.subagent(TOKEN, agent_id=f"a-{TOKEN}") as sub:
                sub.call_tool("bash", {"command": "ls"}, lambda command: "ok")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert {path.name for path in files} >= {
        "audit.jsonl", "stats.sqlite", "errors.sqlite", "journal.jsonl", "report.html", "auto-commit.jsonl"
    }  # fmt: skip
    refs = subprocess.run(
        ["git", "for-each-ref", "refs/hookturn"], cwd=tmp_path, capture_output=True, check=True
    ).stdout
    assert refs.count(b"\n") == 1
    message = subprocess.run(
        ["git", "log", "--format=%B", "-1", refs.split()[-1]], cwd=tmp_path, capture_output=True, check=True
    ).stdout
    assert b"Hookturn-Session: secret-" in message
    assert TOKEN.encode() not in refs + message
    for path in files:
        assert TOKEN not in str(path)
        assert TOKEN.encode() not in path.read_bytes(), path


def test_the_commands_find_such_a_session_by_its_id(tmp_path: Path) -> None:
    test_no_builtin_stores_a_secret_name(tmp_path, TOKEN)

    def hookturn(*words: str) -> dict:
        done = subprocess.run(
            [sys.executable, "-m", "hookturn", *words, "--json"],
            cwd=tmp_path,
            capture_output=True,
            check=False,
            env=dict(os.environ),
        )
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)
        assert isinstance(found, dict)
        return found

    assert hookturn("report", TOKEN)["session_id"].startswith("secret-")
    assert hookturn("errors", "--session", TOKEN)["errors"]
    assert hookturn("undo", "--session", TOKEN)
