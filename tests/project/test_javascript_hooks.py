"""``run: {javascript: ...}`` in hookturn.yaml: reading, trust, setting up, and what becomes of changed files."""

from __future__ import annotations

import shutil

import pytest

DENY = "export function preToolExecution(event) { if (event.command.includes('--force')) return {deny: 'no force'}; }"
CONFIG = """
hooks:
  - name: no-force
    timings: [pre_tool_execution]
    run: {javascript: hooks/no_force.js}
"""

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node in PATH")


@pytest.fixture
def scripted(project):
    project.write("hooks/no_force.js", DENY)
    project.config(CONFIG)
    return project


@pytest.fixture
def fire(scripted):
    """Fire one command through a fresh engine of the project and close it."""

    def fire(command="git push --force"):
        assembled = scripted.assemble()
        with assembled.engine:
            return scripted.fire(assembled=assembled, command=command)

    return fire


def row(assembled, name="no-force"):
    return next(item for item in assembled.plugins if item.name == name)


def test_it_runs_once_trusted(scripted, fire):
    assert row(scripted.assemble()).state == "untrusted"
    assert fire().decision is None
    scripted.trust()
    assembled = scripted.assemble()
    assert (row(assembled).state, row(assembled).source) == ("loaded", "hookturn.yaml:3")
    assert assembled.problems == []
    out = fire()
    assert (out.decision, out.reason, out.by) == ("deny", "no force", "no-force")
    assert fire("ls").decision is None


def test_an_untrusted_file_is_never_imported(scripted, fire):
    scripted.write("hooks/no_force.js", "require('node:fs').writeFileSync('ran', '');")
    fire()
    assert not (scripted.folder / "ran").exists()


def test_what_would_run_is_shown(scripted):
    (waiting,) = scripted.survey().pending()
    assert waiting.declaration.what == "runs hooks/no_force.js at pre_tool_execution"
    assert list(waiting.declaration.files) == [str(scripted.folder / "hooks/no_force.js")]


def test_a_changed_file_is_skipped_until_trusted_again(scripted, fire):
    scripted.trust()
    scripted.write("hooks/no_force.js", DENY + "// changed")
    assert row(scripted.assemble()).state == "untrusted"
    assert fire().decision is None
    scripted.trust()
    assert fire().decision == "deny"


def test_a_file_that_changes_while_the_engine_runs_is_not_called(scripted):
    scripted.trust()
    assembled = scripted.assemble()
    with assembled.engine:
        assert scripted.fire(assembled=assembled, command="git push --force").decision == "deny"
        scripted.write("hooks/no_force.js", DENY + "// changed")
        out = scripted.fire(assembled=assembled, command="git push --force")
    assert out.decision is None
    assert "no_force.js is not what was trusted" in out.failures[0].message


def test_a_trusted_guard_that_changes_denies(scripted, fire):
    scripted.config(CONFIG + "    guard: true\n")
    scripted.trust()
    scripted.write("hooks/no_force.js", "")
    out = fire("ls")
    assert (out.decision, "hookturn trust" in out.reason) == ("deny", True)


def test_a_missing_file(scripted):
    (scripted.folder / "hooks/no_force.js").unlink()
    scripted.trust()
    assembled = scripted.assemble()
    assert row(assembled).state == "failed"
    (problem,) = assembled.problems
    assert str(problem) == (
        f"hookturn.yaml:5:23: hooks[0].run.javascript: {scripted.folder / 'hooks/no_force.js'} does not exist. "
        "Correct the path; it starts at the declaring file."
    )


def test_a_users_file_starts_at_the_users_folder(project):
    path = project.user(CONFIG)
    (path.parent / "hooks").mkdir()
    (path.parent / "hooks/no_force.js").write_text(DENY)
    assembled = project.assemble()
    with assembled.engine:
        assert project.fire(assembled=assembled, command="git push --force").decision == "deny"


def test_without_node_it_says_so(scripted, monkeypatch):
    scripted.trust()
    monkeypatch.setenv("PATH", str(scripted.folder))
    (problem,) = scripted.assemble().problems
    assert (
        "hooks in JavaScript need Node: there is no program 'node' in PATH. Install Node 20.10 or newer"
        in str(problem)
    )


def test_a_dry_engine_lists_it(scripted):
    scripted.trust()
    assembled = scripted.assemble(dry_run=True)
    assert row(assembled).state == "dry"
    assert scripted.fire(assembled=assembled, command="git push --force").decision is None
    assembled = scripted.assemble(dry_run=True, live=True)
    with assembled.engine:
        assert scripted.fire(assembled=assembled, command="git push --force").decision == "deny"
