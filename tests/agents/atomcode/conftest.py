"""A project with AtomCode's hook files, real scripts, and an engine made of them as users get it."""

from __future__ import annotations

import json
import os
import shutil
import sys
import textwrap

import pytest

from hookturn import events, paths
from hookturn.project.layers import PROJECT_VARIABLES


class AtomProject:
    """A project folder and the user's AtomCode folder.

    Attributes:
        folder: the project.
        home: the user's ``~/.atomcode``.
    """

    def __init__(self, folder, home):
        self.folder = folder
        self.home = home
        self.settings = {}
        self.engines = []

    def write(self, name, text, base=None, mode=0o755):
        path = (base or self.folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        path.chmod(mode)
        return path

    def json(self, hooks, user=False):
        """Write hooks.json: a text as it is, or named entries."""
        text = hooks if isinstance(hooks, str) else json.dumps({"hooks": hooks}, indent=1)
        return self.write(*(("hooks.json", text, self.home) if user else (".hooks.json", text)), mode=0o644)

    def toml(self, text, user=False):
        base = self.home if user else self.folder / ".atomcode"
        return self.write("hooks/hooks.toml", text, base, mode=0o644)

    def script(self, name, text, user=False):
        """Write a script beside hooks.toml."""
        return self.write(f"hooks/{name}", text, self.home if user else self.folder / ".atomcode")

    def plugin(self, files, name="demo", market="shop", trusted=""):
        """Install a plugin for the user."""
        root = self.home / "plugins"
        folder = f"marketplaces/{market}/{name}"
        for path, data in files.items():
            self.write(path, data if isinstance(data, str) else json.dumps(data, indent=1), root / folder)
        listed = {
            f"{name}@{market}": {
                "marketplace": market,
                "plugin": name,
                "plugin_dir": folder,
                "installed_at": "",
            }
        }
        self.write("installed_plugins.json", json.dumps({"version": 1, "plugins": listed}), root)
        self.write("hook_trust.json", json.dumps({f"{name}@{market}": trusted}), root, mode=0o600)
        return root / folder

    def assemble(self, trust=True):
        """Return the project's engine with its problems and rows."""
        from hookturn.project.assemble import Survey, assemble

        if self.settings:
            path = paths.config_root() / "hookturn.yaml"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"dialects": {"atomcode": self.settings}}), encoding="utf-8")
        if trust:
            Survey(self.folder, guards=True).trust_all()
        made = assemble(self.folder, log=False)
        self.engines.append(made.engine)
        return made

    def engine(self):
        """Return the project's engine; nothing may be wrong with its files."""
        made = self.assemble()
        assert [str(problem) for problem in made.problems] == []
        return made.engine

    def problems(self):
        return [str(problem) for problem in self.assemble().problems]

    def states(self):
        return {row.name: (row.state, row.reason) for row in self.assemble().plugins if row.kind == "config"}

    def pre(self, tool="bash", args=None, engine=None, **fields):
        event = events.PreToolExecution(
            tool=tool, args=args or {"command": "ls"}, cwd=str(self.folder), session_id="s-1", turn=3,
            call_id="c1", **fields,
        )  # fmt: skip
        return (engine or self.engine()).fire(event)

    def post(self, tool="bash", status="ok", result="done", engine=None, **fields):
        event = events.PostToolExecution(
            tool=tool, args={"command": "ls"}, cwd=str(self.folder), session_id="s-1", turn=3, call_id="c1",
            status=status, result=result, duration=0.25, **fields,
        )  # fmt: skip
        return (engine or self.engine()).fire(event)

    def prompt(self, text="hello", engine=None):
        event = events.UserPromptSubmit(prompt=text, cwd=str(self.folder), session_id="s-1", turn=3)
        return (engine or self.engine()).fire(event)

    def seen(self, name="seen.json"):
        """Return the JSON that a hook wrote down, in the project's folder."""
        return json.loads((self.folder / name).read_text(encoding="utf-8"))


@pytest.fixture
def atom(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "MANAGED_CONFIG", str(tmp_path / "managed" / "hookturn.yaml"))
    for name in (*PROJECT_VARIABLES, "ATOMCODE_HOME"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    folder = tmp_path / "my project"  # a blank, so that quoting counts
    for path in (home, folder):
        path.mkdir()
    (folder / ".git").mkdir()
    monkeypatch.setenv("HOME", str(home))
    project = AtomProject(folder, home / ".atomcode")
    yield project
    for engine in project.engines:
        engine.close()


@pytest.fixture
def without_python(tmp_path, monkeypatch):
    """A PATH without ``python``, with the rest that hooks need."""
    folder = tmp_path / "bin"
    folder.mkdir()
    os.symlink(
        os.path.realpath(sys.executable), folder / "python3"
    )  # no shim, which would need more programs
    for name in ("sh", "bash", "cat", "sleep", "env"):
        os.symlink(shutil.which(name), folder / name)
    monkeypatch.setenv("PATH", str(folder))
