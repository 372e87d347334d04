"""Run the conformance kit on hookturn and print its table: ``make conformance``."""

from __future__ import annotations

import sys
from collections import Counter
from importlib.metadata import version
from typing import Any

from agent_hooks.ctk import load_vectors, run_vectors
from harness import Harness

STREAMING = "streaming/incremental"
"""The part that the kit's Python runner cannot run: its scenarios have no field for a stream."""


def main() -> int:
    """Run all vectors; 0 only if every one passed but the four of the streaming part."""
    vectors = load_vectors()
    parts = {vector["id"]: vector.get("part", "core") for vector in vectors}
    results = run_vectors(Harness, vectors)
    table: dict[str, Counter[str]] = {}
    for result in results:
        table.setdefault(parts[result.id], Counter())[result.status] += 1
    print(f"agent-hooks-sdk {version('agent-hooks-sdk')}, hookturn {version('hookturn')}\n")
    print(f"{'part':32} {'pass':>5} {'fail':>5} {'skip':>5}")
    for part, counts in sorted(table.items()):
        print(f"{part:32} {counts['pass']:5} {counts['fail']:5} {counts['skip']:5}")
    total = Counter(result.status for result in results)
    bad = [item for item in results if not _expected(item, parts[item.id])]
    for item in bad:
        print(f"\n{item.id} {item.status}: {item.title}\n  {item.detail} {'; '.join(item.failures)}")
    print(f"\n{total['pass']} passed, {total['skip']} skipped, {total['fail']} failed")
    return 1 if bad else 0


def _expected(result: Any, part: str) -> bool:
    return result.status == "pass" or (result.status == "skip" and part == STREAMING)


if __name__ == "__main__":
    sys.exit(main())
