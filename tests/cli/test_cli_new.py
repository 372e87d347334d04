"""``hookturn new``: a plugin project whose test passes at once."""

from __future__ import annotations

import subprocess
import sys

import pytest


def test_new_makes_a_project_whose_test_passes(cli):
    ran = cli("new", "no-force-push")
    assert (ran.code, ran.err) == (0, ""), ran
    *files, last = ran.out.splitlines()
    assert last == "next: cd no-force-push && pip install -e '.[test]' && pytest"
    assert "no-force-push/pyproject.toml" in files
    assert all((cli.project / file).is_file() for file in files)
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        capture_output=True, text=True, cwd=cli.project / "no-force-push", env=cli.env, timeout=120,
    )  # fmt: skip
    assert tests.returncode == 0, tests.stdout + tests.stderr


def test_new_elsewhere_and_as_json(cli, tmp_path):
    folder = tmp_path / "other folder"
    folder.mkdir()
    for words in (["--directory", str(folder)], ["--project", str(folder)]):
        name = "one" if words[0] == "--directory" else "two"
        ran = cli("new", name, "--json", *words)
        assert (ran.code, ran.json["schema"], ran.json["name"]) == (0, 1, name)
        assert str(folder / name / "pyproject.toml") in ran.json["files"]


@pytest.mark.parametrize("name", ["", "a b", "../x", "-x", "json", "x" * 100, "ü", "a\x1b[2J"])
def test_a_name_that_is_none(cli, name):
    ran = cli("new", "--", name) if name.startswith("-") else cli("new", name)
    assert ran.code == 2
    assert ran.err.startswith("hookturn: ")
    assert "\x1b" not in ran.err
    assert "Traceback" not in ran.err
    assert sorted(cli.project.iterdir()) == [cli.project / ".git"]


@pytest.mark.parametrize(
    "name", ["audit-log", "Turn_Stats", "error-report", "session-summary", "auto-commit", "self-protection"]
)
def test_a_name_of_a_builtin(cli, name):
    ran = cli("new", name)
    assert (ran.code, ran.out) == (2, "")
    assert "is a plugin that comes with hookturn; choose another name" in ran.err


def test_something_in_the_way(cli):
    cli.write("taken/file", "x")
    ran = cli("new", "taken")
    assert (ran.code, ran.out) == (1, "")
    assert "exists and is not empty" in ran.err
    ran = cli("new", "x", "--directory", "nowhere")
    assert ran.code == 1
    assert "nowhere is no folder" in ran.err


def test_a_name_that_becomes_another_one_is_said(cli):
    ran = cli("new", "My_Hook")
    assert (ran.code, ran.err) == (
        0,
        "hookturn: My_Hook becomes my-hook, the normal form of a distribution's name\n",
    )
    assert (cli.project / "my-hook/src/my_hook/__init__.py").is_file()
    ran = cli("new", "Another", "--json")
    assert (ran.json["name"], "another" in ran.json["files"][0]) == ("another", True)


def test_the_projects_tests_warn_of_nothing(cli):
    assert cli("new", "calm").code == 0
    tests = subprocess.run(
        [sys.executable, "-W", "error", "-m", "pytest", "-q", "-p", "no:cacheprovider", "-W", "error"],
        capture_output=True, text=True, cwd=cli.project / "calm", env=cli.env, timeout=120,
    )  # fmt: skip
    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert "Warning" not in tests.stdout + tests.stderr
