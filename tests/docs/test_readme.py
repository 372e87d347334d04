"""The README's commands and examples do what it says."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
README = ROOT / "README.md"

pytestmark = pytest.mark.skipif(not README.is_file(), reason="the README is not beside the tests")

REPLAY = "python -m venv .venv && .venv/bin/pip install -q . && .venv/bin/hookturn replay"
TESTS = "python -m venv .venv && .venv/bin/pip install -q -e '.[test]' && .venv/bin/python -m pytest -n auto"


def test_the_readme_has_its_two_commands(blocks):
    assert [block.text.strip() for block in blocks(README) if block.lang == "sh"] == [REPLAY, TESTS]


def test_its_examples_run(reader):
    reader.follow(README)


def test_its_configuration_is_right(reader, blocks):
    assert "with `plugin = NoForcePush()` as its last line" in README.read_text(encoding="utf-8")
    text = next(block.text for block in blocks(README) if block.lang == "yaml")
    hook = next(block.text for block in blocks(README) if block.lang == "python")
    (reader.folder / "hooks").mkdir()
    (reader.folder / "hooks/no_force_push.py").write_text(f"{hook}\n\nplugin = NoForcePush()\n")
    (reader.folder / "hookturn.yaml").write_text(text)
    for words in (["check"], ["trust", "--yes"], ["check"], ["hooks", "--json"]):
        done = subprocess.run(
            [sys.executable, "-m", "hookturn", *words],
            cwd=reader.folder, env=reader.env, capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stdout + done.stderr
    assert '"no-force-push"' in done.stdout
    (reader.folder / "hooks/no_force_push.py").unlink()
    done = subprocess.run(
        [sys.executable, "-m", "hookturn", "fire", "on_user_prompt_submit", "--event", "-", "--json"],
        cwd=reader.folder, env=reader.env, capture_output=True, text=True, check=False, input='{"prompt": "x"}',
    )  # fmt: skip
    assert '"decision": null' in done.stdout, "a lost guard must not deny where it does not guard"


def test_the_replay_command_shows_hooks_at_work(reader):
    """The command's last part in this environment; the whole of it: see below."""
    done = subprocess.run(
        ["bash", "-c", "hookturn replay"],
        cwd=reader.folder, env=reader.env, capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    assert "denied by no-recursive-delete" in done.stdout
    assert "tool calls   11" in done.stdout


@pytest.fixture
def clone(tmp_path):
    """Return a plain clone in a folder whose path has a blank."""
    target = tmp_path / "a clone" / "hook turn"
    target.parent.mkdir()
    if (ROOT / ".git").exists():
        subprocess.run(["git", "clone", "-q", "--no-hardlinks", ROOT, target], check=True)
    else:
        shutil.copytree(ROOT, target, ignore=shutil.ignore_patterns(".venv*"))
    return target


def fresh(command: str, folder: Path, **env: str) -> str:
    """Run a command as on a fresh machine: nothing of this environment is left but Python."""
    kept = {
        name: value
        for name, value in os.environ.items()
        if name not in ("VIRTUAL_ENV", "PYTHONPATH", "PYTHONHOME") and not name.startswith(("PYTEST", "COV"))
    }
    base = Path(sys.base_prefix) / "bin"
    done = subprocess.run(
        ["bash", "-c", command],
        cwd=folder,
        env={**kept, "PATH": os.pathsep.join([str(base), os.environ["PATH"]]), **env},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:]
    return done.stdout


@pytest.mark.fault
@pytest.mark.timeout(1200)
def test_the_replay_command_on_a_fresh_machine(clone, tmp_path):
    printed = fresh(REPLAY, clone, HOOKTURN_STATE_DIR=str(tmp_path / "state"))
    assert "denied by no-recursive-delete" in printed


@pytest.mark.fault
@pytest.mark.timeout(1200)
def test_the_test_command_on_a_fresh_machine(clone):
    """Its tests are those of one room; CI runs the command with all of them."""
    printed = fresh(TESTS, clone, PYTEST_ADDOPTS="tests/spec")
    assert " passed" in printed
    assert " failed" not in printed
