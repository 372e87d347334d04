"""Fixtures of the project room: a project folder, files of the other layers, installed distributions."""

from __future__ import annotations

import os
import sys
import textwrap

import pytest

from hookturn import events, paths
from hookturn.project.layers import PROJECT_VARIABLES


@pytest.fixture(autouse=True)
def _no_machine(monkeypatch, tmp_path_factory):
    """Look at no managed file of this machine, and at no agent's project."""
    managed = tmp_path_factory.mktemp("managed") / "hookturn.yaml"
    managed.parent.chmod(0o755)
    monkeypatch.setattr(paths, "MANAGED_CONFIG", str(managed))
    monkeypatch.setattr("hookturn.project.layers.MANAGED_OWNER", os.geteuid())
    for name in PROJECT_VARIABLES:
        monkeypatch.delenv(name, raising=False)


class Project:
    """A project folder with short ways to write its files and to ask its engine."""

    def __init__(self, folder):
        self.folder = folder
        folder.mkdir(exist_ok=True)

    def write(self, name, text):
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def config(self, text):
        return self.write("hookturn.yaml", text)

    def user(self, text, name="hookturn.yaml"):
        path = paths.config_root() / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def managed(self, text):
        path = paths.managed_config()
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        path.chmod(0o644)
        return path

    def assemble(self, **options):
        from hookturn.project.assemble import assemble

        options.setdefault("log", False)
        return assemble(self.folder, **options)

    def survey(self, **options):
        from hookturn.project.assemble import Survey

        return Survey(self.folder, guards=True, **options)

    def trust(self):
        self.survey().trust_all()

    def fire(self, tool="bash", assembled=None, **args):
        """Fire one tool call through a fresh engine of the project (hooks only) and return the outcome."""
        engine = (assembled or self.assemble()).engine
        return engine.fire(events.PreToolExecution(tool=tool, args=args, cwd=str(self.folder)))


@pytest.fixture
def project(tmp_path):
    return Project(tmp_path / "project")


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a fake distribution on sys.path: metadata, entry points and modules."""

    def put(name, version="1.0", entry_points="", modules=None, folder="site"):
        site = tmp_path / folder
        site.mkdir(exist_ok=True)
        info = site / f"{name.replace('-', '_')}-{version}.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n")
        (info / "entry_points.txt").write_text(textwrap.dedent(entry_points))
        for module, text in (modules or {}).items():
            (site / f"{module}.py").write_text(textwrap.dedent(text))
            monkeypatch.delitem(sys.modules, module, raising=False)
        if str(site) not in sys.path:
            monkeypatch.syspath_prepend(str(site))
        return site

    before = set(sys.modules)
    yield put
    for module in set(sys.modules) - before:
        file = getattr(sys.modules[module], "__file__", None) or ""
        if file.startswith(str(tmp_path)):
            del sys.modules[module]


def rows(assembled):
    """Return name -> state of the listing."""
    return {row.name: row.state for row in assembled.plugins}


@pytest.fixture
def states():
    return rows
