"""Links lead somewhere, and the navigation names every page."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TOP = [ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")]
PAGES = [page for page in [*TOP, *sorted(DOCS.rglob("*.md"))] if page.is_file()]


def prose(page: Path) -> str:
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)


def anchors(page: Path) -> set[str]:
    found = set()
    for heading in re.findall(r"^#+ (.+)$", prose(page), re.M):
        plain = re.sub(r"[^\w\s-]", "", heading.replace("`", "")).strip().lower()
        found.add(re.sub(r"[-\s]+", "-", plain))
    return found


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_links_resolve(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(page)):
        if target.startswith("https://"):
            continue
        path, _, anchor = target.partition("#")
        file = (page.parent / path).resolve() if path else page
        assert file.is_file(), f"{page}: {target}"
        if anchor:
            assert anchor in anchors(file), f"{page}: {target}"


@pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not beside the tests")
def test_another_page_leads_to_every_page():
    led = set()
    for page in PAGES:
        for target in re.findall(r"\]\(([^)\s#]+)", prose(page)):
            if not target.startswith("https://") and (page.parent / target).resolve() != page:
                led.add((page.parent / target).resolve())
    assert [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md") if page.resolve() not in led] == []


@pytest.mark.skipif(not DOCS.is_dir(), reason="the documentation is not beside the tests")
def test_the_navigation_names_every_page_once():
    listed = re.findall(r"([\w/-]+\.md)$", (ROOT / "mkdocs.yml").read_text(encoding="utf-8"), re.M)
    pages = [str(page.relative_to(DOCS)) for page in DOCS.rglob("*.md")]
    assert sorted(listed) == sorted(pages)
