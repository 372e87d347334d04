"""The process runner against a bare ``posix_spawn`` and wait; a fire through commands against the runner alone."""

from __future__ import annotations

import os

from harness import Row, side_by_side

from hookturn import Engine, events
from hookturn.runners import command
from hookturn.runners.entry import HookEntry
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


def twenty() -> Engine:
    """Return an engine with 20 commands, each for a tool of its own."""
    engine = Engine(project_dir="/")
    for number in range(20):
        entry = HookEntry(
            name=f"hook{number}",
            kind="command",
            run=[PROGRAM],
            timings=["pre_tool_execution"],
            options={"tools": [f"tool{number}"]},
            base_dir="/",
        )
        engine.register(command.make(entry), entry.name, options=entry.options)
    return engine


def rows() -> list[Row]:
    """Measure and return the rows."""
    engine = twenty()
    event = events.PreToolExecution(tool="tool7", args={"command": "ls"}, session_id="bench")
    figures = side_by_side(
        {"bare": bare, "runner": runner, "fire": lambda: engine.fire(event)}, rounds=60, span=0.02
    )
    over = (figures["runner"] - figures["bare"]) / 1e6
    return [
        Row("process runner, /bin/true", figures["runner"] / 1e6, "ms"),
        Row("process runner, /bin/true", over, "ms", "over a bare posix_spawn", REACH),
        Row(
            "fire, 20 commands of which one matches",
            figures["fire"] / figures["runner"],
            "x",
            "process runner alone",
            1.5,
        ),
    ]


if __name__ == "__main__":
    for row in rows():
        print(*row.cells(), sep=" | ")
