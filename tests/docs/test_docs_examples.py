"""Every example of the documentation runs, and prints what its page says."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", PAGES)
def test_examples_do_what_their_page_says(page, reader):
    if page == "javascript-hooks.md" and shutil.which("node") is None:
        pytest.skip("there is no node in PATH")
    reader.follow(DOCS / page)
