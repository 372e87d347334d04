"""What starting costs: ``import hookturn`` and ``hookturn --version`` against a bare interpreter."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

from harness import Row

ROUNDS = 25


def rows() -> list[Row]:
    """Measure and return the rows."""
    script = Path(sys.executable).with_name("hookturn")
    # Not writing byte code would make every start compile; that is no user's case.
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"}
    commands = {
        "bare": [sys.executable, "-c", "pass"],
        "import": [sys.executable, "-c", "import hookturn"],
        "hook author": [sys.executable, "-c", "from hookturn import hookimpl, Deny"],
        "version": [str(script), "--version"],
    }
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(ROUNDS):
        for name, argv in commands.items():
            begun = perf_counter()
            subprocess.run(argv, check=True, stdout=subprocess.DEVNULL, env=environment)
            taken[name].append(perf_counter() - begun)
    middle = {name: median(values) for name, values in taken.items()}
    bare = middle["bare"]
    return [
        Row("import hookturn", middle["import"] / bare, "x", "python -c pass", 1.15),
        Row("from hookturn import hookimpl, Deny", middle["hook author"] / bare, "x", "python -c pass"),
        Row("hookturn --version", middle["version"] / bare, "x", "python -c pass", 2.5),
    ]


if __name__ == "__main__":
    for row in rows():
        print(*row.cells(), sep=" | ")
