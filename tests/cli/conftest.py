"""A way to run the installed command as users do: in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

COMMAND = [sys.executable, "-m", "hookturn"]


class Ran:
    """A finished run of the command."""

    def __init__(self, process):
        self.code = process.returncode
        self.out = process.stdout.decode("utf-8", "surrogateescape")
        self.err = process.stderr.decode("utf-8", "surrogateescape")

    @property
    def json(self):
        """The one JSON document on standard output."""
        return json.loads(self.out)

    def __repr__(self):
        return f"<exit {self.code}\n--- out\n{self.out}\n--- err\n{self.err}>"


class Cli:
    """Runs commands in a project's folder."""

    command = COMMAND

    def __init__(self, project: Path):
        self.project = project
        self.env = {
            name: value
            for name, value in os.environ.items()
            if not name.endswith("_PROJECT_DIR")
            and name not in ("NO_COLOR", "FORCE_COLOR", "PYTHONUNBUFFERED")
        }
        # Whatever else is installed beside us has no say, unless a test wants it.
        self.env["HOOKTURN_DISABLE_PLUGIN_AUTOLOAD"] = "1"

    def __call__(self, *words, input=b"", env=None, cwd=None) -> Ran:
        if isinstance(input, str):
            input = input.encode()
        process = subprocess.run(
            [*COMMAND, *words],
            input=input,
            capture_output=True,
            env={**self.env, **(env or {})},
            cwd=cwd or self.project,
            timeout=60,
        )
        return Ran(process)

    def write(self, name: str, text: str | bytes) -> Path:
        """Write a file of the project."""
        path = self.project / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(text if isinstance(text, bytes) else text.encode())
        return path


@pytest.fixture
def cli(tmp_path):
    """The command in an empty project whose path has a blank."""
    project = tmp_path / "my project"
    (project / ".git").mkdir(parents=True)
    return Cli(project)


RULES = """\
hooks:
  - name: no-rm
    timings: [pre_tool_execution]
    run: {answer: {deny: "No recursive delete.", advice: "Remove files one by one."}}
    filter: {tools: [bash]}
    guard: true
permissions:
  ask: ["bash(git push *)"]
  deny: ["bash(shutdown *)"]
"""


@pytest.fixture
def ruled(cli):
    """The command in a project with a guard and rules, which count without trust."""
    cli.write("hookturn.yaml", RULES)
    return cli


@pytest.fixture
def plugin_path(tmp_path, monkeypatch):
    """Install a fake distribution: call it with a name, its entry points and its modules; returns the folder."""
    folder = tmp_path / "site"
    folder.mkdir()

    def install(name, entry_points, **modules):
        info = folder / f"{name.replace('-', '_')}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
        (info / "entry_points.txt").write_text(entry_points)
        for module, source in modules.items():
            (folder / f"{module}.py").write_text(source)
        return {"PYTHONPATH": str(folder)}

    return install
