"""Every configuration in the documentation is right; pages that show a mistake say so by the file's name."""

from __future__ import annotations

from importlib.metadata import distribution
from pathlib import Path

import pytest

from hookturn.agents.rolebox import roles
from hookturn.project.model import normal, read_hooks, read_model
from hookturn.project.settings import build, config_of
from hookturn.project.toml_document import read_toml
from hookturn.project.yaml_document import read_yaml

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / name for name in ("README.md", "CONTRIBUTING.md")] + sorted((ROOT / "docs").rglob("*.md"))
PAGES = [page for page in PAGES if page.is_file()]


@pytest.mark.parametrize("page", PAGES, ids=[str(page.relative_to(ROOT)) for page in PAGES])
def test_configurations_have_no_problem(page, blocks):
    for block in blocks(page):
        where = f"{page}:{block.line}"
        if block.title == "broken.yaml":
            continue
        if block.title == "role.yaml":
            assert roles.is_role(read_yaml(block.text.encode(), where).data), where
            continue
        if block.lang == "yaml":
            document = read_yaml(block.text.encode(), where)
        elif block.lang == "toml" and "[tool.hookturn]" in block.text:
            document = read_toml(block.text.encode(), where)
        else:
            continue
        model = read_model(document, "project", str(ROOT))
        read_hooks(model)
        assert [str(problem) for problem in model.problems] == []
        assert model.hooks or model.plugins or model.settings or any(model.rules.values()), where
        for name, entry in model.plugins.items():
            if name in BUILTINS:
                wrong = []
                build(BUILTINS[name], dict(entry.settings), wrong)
                assert [item.cause for item in wrong] == [], f"{where}: {name}"


BUILTINS = {
    normal(point.name): config_of(point.load())
    for point in distribution("hookturn").entry_points
    if point.group == "hookturn"
}
