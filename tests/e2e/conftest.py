"""A project with other agents' hook files, and the command as users call it there."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

DATA = Path(__file__).parents[1] / "data"


class Project:
    """Files of a project and of the user, and the command in its folder.

    Attributes:
        folder: the project, with a blank in its name.
        home: the user's home.
    """

    def __init__(self, folder, home):
        self.folder, self.home = folder, home
        self.cwd = folder
        self.env = {name: value for name, value in os.environ.items() if not name.endswith("_PROJECT_DIR")}
        self.env |= {"HOME": str(home), "HOOKTURN_DISABLE_PLUGIN_AUTOLOAD": "1"}

    def write(self, name, content, base=None, mode=0o644):
        path = (base or self.folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(
            content if isinstance(content, str) else json.dumps(content, indent=1), encoding="utf-8"
        )
        path.chmod(mode)
        return path

    def script(self, name, content, base=None):
        return self.write(name, content, base, 0o755)

    def mine(self, name, content, mode=0o644):
        """Write a file in the user's home."""
        return self.write(name, content, self.home, mode)

    def call(self, *words, input="", code=0):
        """Run the command; return what it prints."""
        ran = subprocess.run(
            [sys.executable, "-m", "hookturn", *words],
            input=input, cwd=self.cwd, env=self.env, capture_output=True, text=True, encoding="utf-8", timeout=120,
        )  # fmt: skip
        assert ran.returncode == code, ran
        self.err = ran.stderr
        return ran.stdout

    def run(self, *words, input="", code=0):
        """Run the command; return its JSON document."""
        return json.loads(self.call(*words, "--json", input=input, code=code))

    def trust(self):
        return self.run("trust", "--yes")["pending"]

    def fire(self, timing, **fields):
        return self.run("fire", timing, "--event", "-", input=json.dumps(fields))

    def explain(self, timing, *words, **fields):
        return self.run("explain", timing, "--event", "-", *words, input=json.dumps(fields))

    def bash(self, command="ls", **fields):
        return self.fire("pre_tool_execution", tool="bash", args={"command": command}, **fields)

    def recorded(self, name="claude/files.jsonl", **replace):
        """Copy a recorded session into the project, with texts replaced, and return its name."""
        text = (DATA / "transcripts" / name).read_text(encoding="utf-8")
        for old, new in replace.items():
            assert old.replace("__", ": ") in text
            text = text.replace(old.replace("__", ": "), new)
        return self.write("session.jsonl", text).name

    def replay(self, *words, **replace):
        return self.run("replay", self.recorded(**replace), *words)


@pytest.fixture
def docs(tmp_path):
    folder, home = tmp_path / "my project", tmp_path / "home"
    (folder / ".git").mkdir(parents=True)
    home.mkdir(mode=0o755)
    return Project(folder, home)


def _servers():
    path = Path(__file__).parents[1] / "runners" / "conftest.py"
    spec = importlib.util.spec_from_file_location("documents_servers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


serve = _servers().serve
