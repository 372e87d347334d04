"""``hookturn replay`` on a generated recording: fired events a second, and memory as the file grows."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from harness import Row

HERE = Path(__file__).parent
SMALL, LARGE = 10_000, 1_000_000

MEASURED = (
    f"import sys\nsys.path.insert(0, {str(HERE.parent / 'tests')!r})\n"
    """
import json
from measure import peak
from hookturn.cli import main
code = main(["replay", sys.argv[1], "--json", "--project", sys.argv[2], *sys.argv[3:]])
print(json.dumps({"code": code, "kb": peak()}), file=sys.stderr)
"""
)


def measure(recording: Path, project: Path, *words: str) -> dict:
    environment = {
        **os.environ,
        "HOOKTURN_STATE_DIR": str(project / "state"),
        "HOOKTURN_CONFIG_DIR": str(project),
    }
    argv = [sys.executable, "-c", MEASURED, str(recording), str(project), *words]
    done = subprocess.run(argv, check=True, capture_output=True, text=True, env=environment)
    return {**json.loads(done.stdout), **json.loads(done.stderr.splitlines()[-1])}


def rows() -> list[Row]:
    """Measure and return the rows."""
    sys.path.insert(0, str(HERE.parent / "tests"))
    from generate_transcript import write_claude

    bare = ("-p", "no:audit-log", "-p", "no:turn-stats", "-p", "no:error-report")
    with tempfile.TemporaryDirectory() as folder:
        project = Path(folder)
        (project / ".git").mkdir()
        for name, events in (("small", SMALL), ("large", LARGE)):
            with open(project / f"{name}.jsonl", "wb") as file:
                write_claude(file, events)
        without = [measure(project / "small.jsonl", project, *bare) for _ in range(3)]
        with_builtins = [measure(project / "small.jsonl", project) for _ in range(3)]
        large = measure(project / "large.jsonl", project, *bare)
    best = max(run["events_per_second"] for run in without)
    watched = max(run["events_per_second"] for run in with_builtins)
    return [
        Row("replay, no builtins", best, "events/s", "", 20_000, less=False),
        Row("replay with audit-log and turn-stats", watched, "events/s", "", 5_000, less=False),
        Row(f"replay of {LARGE:,} events", large["events_per_second"], "events/s", "", 20_000, less=False),
        Row(
            f"resident memory, {LARGE:,} events",
            large["kb"] / without[0]["kb"],
            "x",
            f"{SMALL:,} events",
            1.2,
        ),
    ]


if __name__ == "__main__":
    for row in rows():
        print(*row.cells(), sep=" | ")
