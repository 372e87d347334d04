"""Every example of the documentation runs, and prints what its page says."""

from __future__ import annotations

from pathlib import Path

import pytest

DOCS = Path(__file__).parents[2] / "docs"
PAGES = sorted(str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md"))


@pytest.mark.parametrize("page", PAGES)
def test_examples_do_what_their_page_says(page, reader):
    reader.follow(DOCS / page)
