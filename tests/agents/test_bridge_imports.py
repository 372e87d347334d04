"""A call without the resident process imports little: that is most of what the agent waits for."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

HOOK = """
def pre_tool_execution(event):
    return None
"""

DEAR = {
    "_hashlib", "_sqlite3", "asyncio", "dataclasses", "datetime", "enum", "hashlib", "importlib_metadata", "inspect",
    "json", "loguru", "pathlib", "platformdirs", "pluggy", "re", "socket", "sqlite3", "subprocess", "tree_sitter",
    "typing", "urllib", "weakref", "yaml",
}  # fmt: skip


def test_a_call_imports_nothing_dear(tmp_path: Path) -> None:
    project, config = tmp_path / "project", tmp_path / "config"
    (project / ".git").mkdir(parents=True)
    config.mkdir()
    (config / "hook.py").write_text(HOOK)
    hooks = [{"name": "tells", "run": {"module": "hook.py"}}]
    (config / "hookturn.yaml").write_text(json.dumps({"hooks": hooks, "plugins": {"audit-log": True}}))
    environ = {
        **os.environ,
        "HOOKTURN_STATE_DIR": str(tmp_path / "state"),
        "HOOKTURN_CONFIG_DIR": str(config),
    }
    for number in range(2):  # the first call makes files that the others read
        payload = {
            "session_id": "s", "transcript_path": "", "cwd": str(project), "hook_event_name": "PreToolUse",
            "tool_name": "Bash", "tool_input": {"command": "git status"}, "tool_use_id": f"toolu_{number}",
        }  # fmt: skip
        called = imports(["-m", "hookturn", "bridge", "claude-code"], payload, environ, project)
    bare = imports(["-c", "pass"], {}, environ, project)
    assert "hookturn.engine.async_session" in called
    assert DEAR & called - bare == set()


def imports(words: list[str], payload: dict[str, object], environ: dict[str, str], cwd: Path) -> set[str]:
    """Return what a program imports."""
    done = subprocess.run(
        [sys.executable, "-I", "-X", "importtime", *words],
        input=json.dumps(payload).encode(), capture_output=True, env=environ, cwd=cwd, check=True,
    )  # fmt: skip
    assert done.stdout == b""
    return {line.rpartition("|")[2].strip() for line in done.stderr.decode().splitlines()}
