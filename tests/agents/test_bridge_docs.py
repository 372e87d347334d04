"""Each bridge's page says what the bridge does: its table is the agent's own."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from bridge_tables import notes, table

from hookturn.agents import fitting

DOCS = Path(__file__).parents[2] / "docs/bridges"


@pytest.mark.parametrize(
    ("page", "folder"),
    [
        ("claude-code", "claude_code"),
        ("codex", "codex"),
        ("gemini", "gemini"),
        ("qwen", "qwen"),
        ("copilot", "copilot"),
        ("opencode", "opencode"),
        ("atomcode", "atomcode"),
        ("rolebox", "rolebox"),
    ],
)
def test_the_page_has_the_table_of_the_agent(page, folder):
    text = (DOCS / f"{page}.md").read_text()
    hooks = importlib.import_module(f"hookturn.agents.{folder}.hooks")
    assert table(hooks) in text
    for event in notes(hooks):
        assert f"**{event}**" in text, event


def test_what_degrades_is_documented_as_it_is_in_the_code():
    rows = [line for line in (fitting.__doc__ or "").splitlines() if line.startswith("| ")][1:]
    page = (DOCS / "index.md").read_text()
    for row in rows:
        answer = row.split("|")[1].strip().split(" (")[0]
        assert f"| {answer}" in page, answer
