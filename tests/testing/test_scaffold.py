"""``hookturn new``: a project that passes its own test at once and works when pip has installed it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import sysconfig
from importlib.util import find_spec
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn import HookturnError
from hookturn.testing.scaffold import LONGEST, ScaffoldError, create, names

ROOT = Path(__file__).parents[2]
NAME = "no-force-push"
LONG = "a-plugin-" + "x" * (LONGEST - 9)


def environment(**more: str) -> dict[str, str]:
    """The environment without what belongs to the test run itself."""
    kept = {
        key: value for key, value in os.environ.items() if not key.startswith(("PYTEST", "PYTHON", "COV"))
    }
    return {**kept, **more}


def run(*command: object, cwd: Path, **more: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(part) for part in command], cwd=cwd, env=environment(**more), capture_output=True, text=True
    )


@pytest.mark.smoke
def test_the_files(tmp_path: Path) -> None:
    written = create(NAME, tmp_path)
    project = tmp_path / NAME
    assert written == [
        project / "pyproject.toml",
        project / "README.md",
        project / ".gitignore",
        project / "src/no_force_push/__init__.py",
        project / "src/no_force_push/py.typed",
        project / "tests/test_no_force_push.py",
    ]
    found = {path for path in project.rglob("*") if path.is_file()}
    assert found == set(written)
    for path in written:
        text = path.read_text(encoding="utf-8")
        assert "@name@" not in text and "@module@" not in text
        assert b"\r" not in path.read_bytes()
    assert list(tmp_path.iterdir()) == [project], "nothing else is left behind"


def test_the_project_file_says_what_hookturn_and_pip_need(tmp_path: Path) -> None:
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib
    create("Slack.Notify", tmp_path)
    data = tomllib.loads((tmp_path / "slack-notify/pyproject.toml").read_text(encoding="utf-8"))
    project = data["project"]
    assert project["name"] == "slack-notify"
    assert project["entry-points"] == {"hookturn": {"slack-notify": "slack_notify:plugin"}}
    assert project["dependencies"] == ["hookturn>=0.1"]
    assert project["requires-python"] == ">=3.10"
    assert project["license"] == "MIT"
    assert set(project["optional-dependencies"]) == {"test"}
    readme = (tmp_path / "slack-notify/README.md").read_text(encoding="utf-8")
    assert "pip install -e '.[test]'" in readme
    assert "The licence in `pyproject.toml` is MIT" in readme
    assert data["build-system"]["build-backend"] == "hatchling.build"


@pytest.mark.parametrize("name", [NAME, LONG, "x"])
def test_the_generated_test_passes_at_once_and_the_project_is_clean(name: str, tmp_path: Path) -> None:
    project = create(name, tmp_path)[0].parent
    # Without -p, as an author runs it: the fixtures come by hookturn's entry point.
    ran = run(sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:asyncio", cwd=project)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "4 passed" in ran.stdout
    for module, *options in (
        ("ruff", "check", "--select", "E,F,W,I,UP,B,SIM,RUF,C4"),
        ("ruff", "format", "--check"),
        ("mypy",),
    ):
        if find_spec(module) is None:
            pytest.skip(f"{module} is not installed")
        ran = run(sys.executable, "-m", module, *options, cwd=project)
        assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.mark.parametrize(
    ("name", "normal", "module"),
    [
        ("no-force-push", "no-force-push", "no_force_push"),
        ("No_Force.Push", "no-force-push", "no_force_push"),
        ("a--b", "a-b", "a_b"),
        ("hookturn-slack", "hookturn-slack", "hookturn_slack"),
        ("X", "x", "x"),
        ("v8", "v8", "v8"),
    ],
)
def test_names_are_normalised(name: str, normal: str, module: str) -> None:
    assert names(name) == (normal, module)


@pytest.mark.parametrize(
    ("name", "why"),
    [
        ("", "no name of a Python distribution"),
        ("../x", "no name of a Python distribution"),
        ("a/b", "no name of a Python distribution"),
        ("..", "no name of a Python distribution"),
        ("/etc/passwd", "no name of a Python distribution"),
        ("-x", "no name of a Python distribution"),
        ("x-", "no name of a Python distribution"),
        ("x\n", "no name of a Python distribution"),
        ("x\0", "no name of a Python distribution"),
        ("naïve", "no name of a Python distribution"),
        ("\ud800", "no name of a Python distribution"),
        ("a b", "no name of a Python distribution"),
        ('x"]', "no name of a Python distribution"),
        ("2fast", "must begin with a letter"),
        ("class", "taken"),
        ("JSON", "taken"),
        ("builtins", "taken"),
        ("hookturn", "taken"),
        ("Hookturn_Builtins", "taken"),
        ("tests", "taken"),
        ("x" * (LONGEST + 1), f"at most {LONGEST}"),
    ],
)
def test_a_bad_name_is_refused_and_nothing_is_made(name: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(ScaffoldError, match=why) as caught:
        create(name, tmp_path)
    assert isinstance(caught.value, (HookturnError, ValueError))
    str(caught.value).encode("ascii", "strict") if name != "naïve" else None
    assert list(tmp_path.iterdir()) == []


@given(st.text(max_size=80))
def test_a_name_is_one_safe_component_or_refused(name: str) -> None:
    try:
        normal, module = names(name)
    except ScaffoldError:
        return
    assert module.isidentifier()
    assert Path(normal).name == normal and not normal.startswith(".")
    assert names(normal) == (normal, module)


def test_an_empty_folder_may_be_there(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    assert all(path.is_file() for path in create(NAME, tmp_path))


def test_what_is_there_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / NAME).mkdir()
    mine = tmp_path / NAME / "mine.txt"
    mine.write_text("mine")
    with pytest.raises(ScaffoldError, match="not empty"):
        create("No.Force.Push", tmp_path)
    assert [path.name for path in (tmp_path / NAME).iterdir()] == ["mine.txt"]
    mine.unlink()
    (tmp_path / NAME).rmdir()
    (tmp_path / NAME).write_text("a file")
    with pytest.raises(ScaffoldError, match="is no folder"):
        create(NAME, tmp_path)
    assert (tmp_path / NAME).read_text() == "a file"
    assert len(list(tmp_path.iterdir())) == 1


@pytest.mark.parametrize("exists", [True, False])
def test_nothing_is_written_through_a_symbolic_link(exists: bool, tmp_path: Path) -> None:
    target, parent = tmp_path / "elsewhere", tmp_path / "parent"
    parent.mkdir()
    if exists:
        target.mkdir()
    (parent / NAME).symlink_to(target)
    with pytest.raises(ScaffoldError, match="is no folder"):
        create(NAME, parent)
    assert not exists or list(target.iterdir()) == []


@pytest.mark.parametrize("directory", ["missing", "file", "a\0b"])
def test_a_place_that_is_no_folder_is_refused(directory: str, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ScaffoldError):
        create(NAME, str(tmp_path / directory))


def test_a_write_that_fails_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    write = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if path.name == "__init__.py":
            raise OSError(28, "No space left on device")
        return write(path, data)

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(ScaffoldError, match="No space left"):
        create(NAME, tmp_path)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.skipif(os.name == "nt", reason="modes are POSIX's")
def test_the_files_have_ordinary_modes(tmp_path: Path) -> None:
    mask = os.umask(0o022)
    try:
        files = create(NAME, tmp_path)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(files[0].stat().st_mode) == 0o644
    assert stat.S_IMODE(files[0].parent.stat().st_mode) == 0o755


# -- installed by pip in a fresh environment ----------------------------------------------------------


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The bin folder of a new environment in which pip installed hookturn and a generated plugin."""
    if not (ROOT / "pyproject.toml").is_file():
        pytest.skip("there is no checkout to install from")
    if find_spec("pip") is None:
        pytest.skip("pip is not installed here")
    base = tmp_path_factory.mktemp("fresh")
    create(NAME, base)
    subprocess.run([sys.executable, "-m", "venv", "--without-pip", base / "venv"], check=True)
    scripts = base / "venv" / ("Scripts" if os.name == "nt" else "bin")
    python = scripts / "python"
    asked = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=base)
    # What hookturn depends on comes from the environment of the tests, hookturn itself does not.
    Path(asked.stdout.strip(), "dependencies.pth").write_text(sysconfig.get_path("purelib"))
    options = ["--no-deps", "--no-compile", "--disable-pip-version-check", "--quiet"]
    if find_spec("hatchling") is not None:
        options += ["--no-build-isolation", "--no-index"]
    ran = run(python, "-m", "pip", "install", *options, ROOT, base / NAME, cwd=base)
    if ran.returncode and find_spec("hatchling") is None:
        pytest.skip(f"pip cannot build here without an index: {ran.stderr.strip()[-200:]}")
    assert ran.returncode == 0, ran.stdout + ran.stderr
    return scripts


@pytest.fixture
def place(tmp_path: Path) -> dict[str, str]:
    """Folders of a user who has nothing."""
    (tmp_path / "project").mkdir()
    (tmp_path / "config").mkdir()
    return {"HOOKTURN_STATE_DIR": str(tmp_path / "state"), "HOOKTURN_CONFIG_DIR": str(tmp_path / "config")}


def test_the_generated_test_passes_with_the_installed_packages(fresh: Path, place: dict[str, str]) -> None:
    project = fresh.parents[1] / NAME
    options = ("-q", "-p", "no:asyncio", "-o", "pythonpath=", "-W", "error")
    ran = run(fresh / "python", "-m", "pytest", *options, cwd=project, **place)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "4 passed" in ran.stdout


SESSION = """
import json, hookturn
from hookturn import Engine

ran, results = [], []
with Engine.from_project(".") as engine:
    with engine.session(agent="coder") as session:
        session.submit("publish it")
        with session.turn() as turn:
            for command in ("git push --force", "npm publish", "ls"):
                result = turn.call_tool("bash", {"command": command}, execute=lambda command: ran.append(command))
                results.append([result.status, result.denied_by])
    plugin = next(item for item in engine.plugins if item.name == "no-force-push")
    print(json.dumps([ran, results, plugin.distribution, hookturn.__file__, [str(e) for e in engine.failed]]))
"""


def test_the_installed_plugin_denies_in_an_embedded_session(
    fresh: Path, place: dict[str, str], tmp_path: Path
) -> None:
    asked = run(fresh / "python", "-c", SESSION, cwd=tmp_path / "project", **place)
    assert asked.returncode == 0, asked.stderr
    ran, results, distribution, home, failed = json.loads(asked.stdout)
    assert Path(home).is_relative_to(fresh.parent), "the installed hookturn, not the checkout"
    assert ran == ["npm publish", "ls"]
    assert results == [["denied", NAME], ["ok", ""], ["ok", ""]]
    assert (distribution, failed) == (f"{NAME} 0.1.0", [])


def test_the_installed_plugin_takes_its_settings_from_the_users_file(
    fresh: Path, place: dict[str, str], tmp_path: Path
) -> None:
    settings = tmp_path / "config/hookturn.yaml"
    settings.write_text(f"plugins:\n  {NAME}:\n    command: npm publish\n")
    asked = run(fresh / "python", "-c", SESSION, cwd=tmp_path / "project", **place)
    assert asked.returncode == 0, asked.stderr
    assert json.loads(asked.stdout)[0] == ["git push --force", "ls"]
    settings.write_text(f"plugins:\n  {NAME}:\n    comand: npm publish\n")
    checked = run(fresh / "hookturn", "plugins", "--json", cwd=tmp_path / "project", **place)
    assert "comand" in checked.stdout and "command" in checked.stdout


def test_the_installed_plugin_denies_in_a_replay(fresh: Path, place: dict[str, str], tmp_path: Path) -> None:
    call = {"session_id": "s1", "tool": "bash", "call_id": "c1", "args": {"command": "git push --force"}}
    lines = [
        {"timing": "on_session_start", "session_id": "s1"},
        {"timing": "on_user_prompt_submit", "session_id": "s1", "prompt": "publish it"},
        {"timing": "on_turn_start", "session_id": "s1", "turn": 1},
        {"timing": "pre_tool_execution", "turn": 1, **call},
        {"timing": "post_tool_execution", "turn": 1, "result": "ok", **call},
        {"timing": "on_turn_complete", "session_id": "s1", "turn": 1, "text": "done"},
        {"timing": "on_session_end", "session_id": "s1"},
    ]
    recording = tmp_path / "recorded.jsonl"
    recording.write_text("".join(json.dumps({"schema": 1, **line}) + "\n" for line in lines))
    ran = run(fresh / "hookturn", "replay", recording, "--json", cwd=tmp_path / "project", **place)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    summary = json.loads(ran.stdout)
    assert (summary["tool_calls"], summary["denied"]) == (1, 1)
