"""Generated recordings: exact counts whatever the size, in memory that does not grow with it."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

_spec = importlib.util.spec_from_file_location(
    "generate_transcript", Path(__file__).parent.parent / "generate_transcript.py"
)
assert _spec is not None
assert _spec.loader is not None
generate = importlib.util.module_from_spec(_spec)
sys.modules["generate_transcript"] = generate
_spec.loader.exec_module(generate)

MEASURED = (
    f"import sys\nsys.path.insert(0, {str(Path(__file__).parent.parent)!r})\n"
    """
from measure import peak
from hookturn.cli import main
code = main(["replay", sys.argv[1], "--json", "--project", sys.argv[2]])
print(peak(), file=sys.stderr)
sys.exit(code)
"""
)


def measure(recording: Path, project: Path) -> tuple[dict, int]:
    argv = [sys.executable, "-c", MEASURED, str(recording), str(project)]
    done = subprocess.run(argv, capture_output=True, text=True, env=dict(os.environ), check=False)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), int(done.stderr.splitlines()[-1])


def check(found: dict, counts: object) -> None:
    for name in ("turns", "tool_calls", "by_tool", "by_status"):
        assert found[name] == getattr(counts, name), name
    assert found["tokens"]["input"] == counts.input_tokens  # type: ignore[attr-defined]
    assert found["tokens"]["output"] == counts.output_tokens  # type: ignore[attr-defined]
    assert sum(found["timings"].values()) == counts.fired  # type: ignore[attr-defined]
    assert found["skipped_lines"] == []


@pytest.mark.parametrize("shape", ["claude", "own"])
def test_counts_are_exact(tmp_path: Path, shape: str) -> None:
    recording = tmp_path / "generated.jsonl"
    with recording.open("wb") as file:
        counts = getattr(generate, f"write_{shape}")(file, 20_000)
    found, _ = measure(recording, tmp_path)
    check(found, counts)


@pytest.mark.fault
def test_a_million_events_take_no_more_memory_than_ten_thousand(tmp_path: Path) -> None:
    used = {}
    for events in (10_000, 1_000_000):
        recording = tmp_path / f"{events}.jsonl"
        with recording.open("wb") as file:
            counts = generate.write_claude(file, events)
        found, used[events] = measure(recording, tmp_path)
        check(found, counts)
    assert used[1_000_000] <= 1.2 * used[10_000]
