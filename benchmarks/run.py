"""Runs all benchmarks, prints the table and, with ``--write``, keeps it in docs/benchmarks.md.

pip install -e . --group bench
python benchmarks/run.py [--write] [NAME ...]
"""

from __future__ import annotations

import platform
import sys
from importlib import import_module
from pathlib import Path

HERE = Path(__file__).parent
NAMES = [
    "fire",
    "cycle",
    "startup",
    "replay",
    "process",
    "javascript",
    "webhook",
    "audit",
    "redact",
    "auto_commit",
    "bridge",
]
HEAD = """# Benchmarks

`python benchmarks/run.py --write` measured these figures and wrote this page. The candidates of a row take turns
in one process (or start in turns), so look at the ratios: absolute times depend on the machine.

"""


def main(argv: list[str]) -> int:
    """Run the named benchmarks; exit code 1 when a figure is not reached."""
    sys.path.insert(0, str(HERE))
    write = "--write" in argv
    names = [word for word in argv if not word.startswith("-")] or NAMES
    lines = ["| what | figure | compared with | to reach | reached |", "|---|---|---|---|---|"]
    missed = 0
    for name in names:
        for row in import_module(f"bench_{name}").rows():
            cells = row.cells()
            missed += not row.ok
            print("  ".join(cell for cell in cells if cell), flush=True)
            lines.append("| " + " | ".join(cells) + " |")
    if write:
        about = f"Python {platform.python_version()}, {platform.system()} {platform.machine()}.\n\n"
        (HERE.parent / "docs" / "benchmarks.md").write_text(HEAD + about + "\n".join(lines) + "\n")
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
