"""The process runner against a bare ``posix_spawn`` and wait of the same program."""

from __future__ import annotations

import os

from harness import Row, side_by_side

from hookturn.runners.process import run_process

PROGRAM = "/bin/true"
EVENT = b'{"schema": 1, "timing": "pre_tool_execution", "event": {"tool": "bash", "command": "ls"}}'
REACH = 1.5  # milliseconds over the bare call


def bare() -> None:
    """Start the program with nothing of ours around it, and wait."""
    os.waitpid(os.posix_spawn(PROGRAM, [PROGRAM], os.environ), 0)


def runner() -> None:
    """Run it as a hook: own session, three pipes, an event on standard input, a time limit."""
    result = run_process([PROGRAM], EVENT, cwd="/", timeout=5)
    assert result.exit_code == 0, result


def rows() -> list[Row]:
    """Measure and return the rows."""
    figures = side_by_side({"bare": bare, "runner": runner}, rounds=60, span=0.02)
    over = (figures["runner"] - figures["bare"]) / 1e6
    return [
        Row("process runner, /bin/true", figures["runner"] / 1e6, "ms"),
        Row("process runner, /bin/true", over, "ms", "over a bare posix_spawn", REACH),
    ]


if __name__ == "__main__":
    for row in rows():
        print(*row.cells(), sep=" | ")
