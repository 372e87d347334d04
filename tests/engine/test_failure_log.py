"""A failing hook's log entry has its traceback and no values: neither of variables nor of secrets."""

from __future__ import annotations

import subprocess
import sys

SCRIPT = """
import random, string, sys
from hookturn import Engine, events, hookimpl
token = "ghp_" + "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=36))

class Failing:
    @hookimpl
    def pre_tool_execution(self, event):
        password = "the value of a variable"
        raise ValueError(f"cannot use {token}")

Engine([Failing()]).fire(events.PreToolExecution(tool="bash", args={"command": "ls"}))
"""


def test_the_default_log_shows_no_values(tmp_path) -> None:
    script = tmp_path / "host.py"
    script.write_text(SCRIPT)
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=True)
    assert "hook Failing failed in pre_tool_execution" in done.stderr
    assert "Traceback" in done.stderr
    assert "cannot use [REDACTED:" in done.stderr
    assert "ghp_" not in done.stderr
    assert "event = " not in done.stderr
    assert "└" not in done.stderr  # loguru's marks below variables
