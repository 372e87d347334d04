"""``hookturn info ROLE --check``: R9 of role.yaml's facts, row by row, with rolebox's own lock file and folders."""

from __future__ import annotations

import json

import pytest

from hookturn.agents.rolebox.integrity import integrity
from hookturn.cli import main

ROLE = """\
name: Careful Editor
description: flags leftovers
prompt: You edit code.
model: big
skills: [git]
functions: [review]
subagents:
  - {name: helper, description: helps}
collaboration: {topology: star, max_iterations: 3}
hooks:
  recovery: {max_total_attempts: 6}
  custom:
    - {name: scan, events: [tool.execute.after], module: hooks/scan.py}
"""


@pytest.fixture
def home(tmp_path, monkeypatch):
    """A home with an installed role; returns its folder and a way to write the lock file."""
    home = tmp_path / "home"
    folder = home / ".local/share/rolebox/roles/main/careful@1.2.0"
    (folder / "hooks").mkdir(parents=True)
    for path in (home, *home.rglob("*")):
        path.chmod(0o755)
    (folder / "role.yaml").write_text(ROLE)
    (folder / "hooks/scan.py").write_text("def on_tool_after(ctx, input): pass\n")
    for name in ("XDG_CONFIG_HOME", "XDG_DATA_HOME", "ROLEBOX_CONFIG_DIR", "ROLEBOX_DATA_DIR"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(home))
    project = tmp_path / "project"
    project.mkdir()
    monkeypatch.chdir(project)

    class Home:
        def __init__(self):
            self.role = folder
            self.project = project
            self.lock(integrity(str(folder)))

        def lock(self, digest, **more):
            row = {
                "role": "careful",
                "registry": "main",
                "version": "1.2.0",
                "installedAt": "2026-07-01T00:00:00Z",
                "integrity": digest,
                **more,
            }
            path = home / ".config/rolebox/rolebox.lock"
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(json.dumps({"version": 1, "roles": [row]}))

    return Home()


@pytest.fixture
def run(capsys):
    """Run a command; returns (exit code, standard output, standard error)."""

    def call(*words):
        code = main(list(words))
        said = capsys.readouterr()
        return code, said.out, said.err

    return call


def test_r9_an_unknown_role_is_not_installed(home, run):
    code, out, err = run("info", "carefull")
    assert (code, out) == (1, "")
    assert err == "hookturn: Role 'carefull' is not installed (did you mean 'careful'?). Known are careful.\n"


def test_r9_an_equal_digest_passes(home, run):
    code, out, _ = run("info", "careful", "--check")
    assert code == 0
    assert "✓ Integrity check passed" in out
    assert "✓ hook scan: hooks/scan.py at tool.execute.after" in out


def test_r9_recovery_is_shown(home, run):
    code, out, _ = run("info", "careful")
    assert code == 0
    assert "session_error, edit_error, json_error, context_window, empty_response" in out
    assert "Attempts" in out


@pytest.mark.parametrize("words", [[], ["--json"]])
def test_r9_another_digest_fails_with_json_too(home, run, words):
    (home.role / "README.md").write_text("changed")
    expected = json.loads((home.role.parents[5] / ".config/rolebox/rolebox.lock").read_text())["roles"][0][
        "integrity"
    ]
    code, out, _ = run("info", "careful", "--check", *words)
    assert code == 1
    actual = integrity(str(home.role))
    if words:
        assert json.loads(out)["integrityCheck"] == {"passed": False, "expected": expected, "actual": actual}
    else:
        assert "✗ Integrity check FAILED" in out
        assert f"Expected: {expected}" in out
        assert f"Actual:   {actual}" in out


def test_r9_without_check_a_difference_is_no_failure(home, run):
    (home.role / "README.md").write_text("changed")
    code, out, _ = run("info", "careful")
    assert code == 0
    assert "Integrity check" not in out


def test_r9_the_json_keys(home, run):
    code, out, _ = run("info", "careful", "--json", "--check")
    report = json.loads(out)
    assert code == 0
    assert list(report) == [
        "schema", "role", "name", "description", "version", "registry", "installedAt", "integrity", "path", "model",
        "mode", "temperature", "skills", "functions", "subagents", "collaboration", "sync", "recovery", "hooks",
        "integrityCheck", "problems",
    ]  # fmt: skip
    assert report["functions"] == ["plan", "execute", "loop", "review"]
    assert report["subagents"] == [{"name": "helper", "description": "helps"}]
    assert report["collaboration"] == {"topology": "star", "maxIterations": 3}
    assert report["sync"] == {"synced": False, "symlinkValid": False}
    assert report["recovery"]["max_total_attempts"] == 6
    assert report["integrityCheck"]["passed"] is True


@pytest.mark.parametrize(
    ("write", "said"),
    [
        (None, "does not exist, so the hook cannot be registered"),
        ("def (:\n", "invalid syntax"),
        ("import nowhere_to_be_found\n", "No module named"),
        ("x = 1\n", "has no on_tool_after"),
    ],
)
def test_r9_hook_modules_must_exist_and_load(home, run, write, said):
    path = home.role / "hooks/scan.py"
    path.unlink()
    if write is not None:
        path.write_text(write)
    home.lock(integrity(str(home.role)))
    code, out, _ = run("info", "careful", "--check")
    assert code == 1
    assert "✗ hook scan" in out
    assert said in out
    code, out, _ = run("info", "careful", "--check", "--json")
    assert code == 1
    (row,) = json.loads(out)["hooks"]
    assert said in row["problem"]
    assert row["exists"] is (write is not None)


def test_r9_a_problem_of_role_yaml_fails_the_check(home, run):
    (home.role / "role.yaml").write_text(ROLE.replace("tool.execute.after", "tool.after"))
    home.lock(integrity(str(home.role)))
    code, out, _ = run("info", "careful", "--check")
    assert code == 1
    assert "unknown event 'tool.after'" in out


def test_r9_a_missing_folder_is_told(home, run):
    home.lock("sha256-0", version="9.9.9")
    code, out, _ = run("info", "careful", "--check")
    assert code == 1
    assert "is not there" in out


def test_r9_an_unreadable_role_yaml_is_a_problem(home, run):
    (home.role / "role.yaml").write_text("name: x\nprompt: [\n")
    home.lock(integrity(str(home.role)))
    code, out, _ = run("info", "careful", "--check")
    assert code == 1
    assert "not YAML" in out


@pytest.mark.parametrize("word", ["role.yaml", ".", "The Project", "project"])
def test_a_role_of_the_project_is_found_by_path_name_and_folder(home, run, word):
    (home.project / "role.yaml").write_text("name: The Project\nprompt: x\n")
    code, out, _ = run("info", word, "--check")
    assert code == 0
    assert "sha256-" in out
    assert "there is nothing to compare with" in out


def test_modules_of_an_untrusted_project_are_not_run(home, run):
    (home.project / "role.yaml").write_text(ROLE)
    (home.project / "hooks").mkdir()
    module = home.project / "hooks/scan.py"
    module.write_text("open('ran', 'w').close()\ndef on_tool_after(ctx, input): pass\n")
    code, _, _ = run("info", "Careful Editor", "--check")
    assert code == 0
    assert not (home.project / "ran").exists()
    module.write_text("def (:\n")
    code, out, _ = run("info", "Careful Editor", "--check")
    assert code == 1
    assert "invalid syntax" in out


@pytest.mark.parametrize("row", [{"registry": ".."}, {"version": "../../x"}, {"registry": 3}])
def test_no_path_is_made_from_a_hostile_lock_file(home, run, row):
    home.lock("sha256-0", **row)
    code, _, err = run("info", "careful")
    assert code == 1
    assert "is not installed" in err


def test_an_untrusted_role_has_nothing_of_the_environment_printed(tmp_path, monkeypatch, capsys):
    project = tmp_path / "project"
    (project / ".git").mkdir(parents=True)
    word = '"{env:ROLE_SECRET}"'
    hook = f"{{name: {word}, events: [event], module: {word}, config: {{a: {word}}}}}"
    (project / "role.yaml").write_text(f"name: x\nprompt: y\nhooks:\n  custom:\n    - {hook}\n")
    monkeypatch.setenv("ROLE_SECRET", "s3cr3t-value")
    main(["info", "--project", str(project), str(project / "role.yaml"), "--check"])
    said = "".join(capsys.readouterr())
    assert "{env:ROLE_SECRET}" in said
    assert "s3cr3t" not in said
