"""The worked third-party plugin as a distribution: found by its entry point, configured by a file, public names only."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import pytest

import hookturn
from hookturn import Engine
from hookturn.testing import Model, ScriptedAgent, ToolCall, User, denied_by, make

HOME = Path(__file__).parents[2] / "plugins" / "hookturn-rate-limit"
SOURCE = HOME / "src"

pytestmark = pytest.mark.skipif(
    not SOURCE.is_dir(), reason="needs a checkout: the plugin is its own distribution"
)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A project folder in whose environment the plugin is installed, as pip leaves it."""
    metadata = tmp_path / "site" / "hookturn_rate_limit-0.1.0.dist-info"
    metadata.mkdir(parents=True)
    (metadata / "METADATA").write_text("Metadata-Version: 2.1\nName: hookturn-rate-limit\nVersion: 0.1.0\n")
    (metadata / "entry_points.txt").write_text("[hookturn]\nrate-limit = hookturn_rate_limit:plugin\n")
    for name in [name for name in sys.modules if name.startswith("hookturn_rate_limit")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.syspath_prepend(SOURCE)
    monkeypatch.syspath_prepend(metadata.parent)
    (tmp_path / "project").mkdir()
    return tmp_path / "project"


def configure(text: str) -> None:
    """Write the user's configuration, which needs no trust."""
    folder = Path(os.environ["HOOKTURN_CONFIG_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hookturn.yaml").write_text(text)


def test_the_metadata_say_what_the_fixture_says() -> None:
    text = (HOME / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.entry-points.hookturn]\nrate-limit = "hookturn_rate_limit:plugin"' in text


def test_installed_without_settings_it_is_loaded_and_limits_nothing(installed: Path) -> None:
    with Engine.from_project(installed) as engine:
        found = {plugin.name: plugin for plugin in engine.plugins}["rate-limit"]
        assert (found.layer, found.distribution) == ("installed", "hookturn-rate-limit 0.1.0")
        assert engine.failed == []
        for _ in range(3):
            assert engine.fire(make.pre_tool_execution()).decision is None


def test_a_configuration_gives_the_limits(installed: Path) -> None:
    configure("plugins:\n  rate-limit:\n    limits:\n      bash: 1/session\n      '*': [9/min, 2/session]\n")
    with Engine.from_project(installed) as engine:
        calls = [ToolCall("bash"), ToolCall("bash"), ToolCall("read", path="a"), ToolCall("read", path="b")]
        run = ScriptedAgent(engine, cwd=str(installed)).run(User("go"), Model("", *calls))
    assert [call.result.status for call in run.calls if call.result] == ["ok", "denied", "ok", "denied"]
    denied_by(run.calls[1], "rate-limit", reason="1 bash call a session")
    denied_by(run.calls[3], "rate-limit", reason="2 tool calls a session")


@pytest.mark.parametrize(
    ("limits", "why"),
    [
        ("{bash: often}", "bash: 'often' is no limit"),
        ("{bash: [1/min, 2/min]}", "two limits a minute"),
        ("[bash]", "expected a mapping, got a list"),
        ("{bash: 30}", "30"),
    ],
)
def test_wrong_settings_are_named_and_nothing_else_suffers(limits: str, why: str, installed: Path) -> None:
    configure(f"plugins:\n  rate-limit:\n    limits: {limits}\n")
    with Engine.from_project(installed) as engine:
        assert "rate-limit" not in {plugin.name for plugin in engine.plugins}
        assert why in " ".join(map(str, engine.failed))
        assert engine.fire(make.pre_tool_execution()).decision is None


def test_it_uses_only_public_names() -> None:
    public = {"hookturn", "hookturn.events", "hookturn.testing", "hookturn.redact", "hookturn.paths"}
    imported = []
    for file in HOME.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and not node.level and node.module:
                imported.append((node.module, [alias.name for alias in node.names]))
            elif isinstance(node, ast.Import):
                imported += [(alias.name, []) for alias in node.names]
    ours = [(module, names) for module, names in imported if module.split(".")[0] == "hookturn"]
    assert ours and {module for module, _ in ours} <= public
    for module, names in ours:
        if module == "hookturn":
            assert set(names) <= set(hookturn.__all__)


def test_its_own_tests_pass() -> None:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist"],
        cwd=HOME,
        env={**os.environ, "PYTHONPATH": str(SOURCE)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
