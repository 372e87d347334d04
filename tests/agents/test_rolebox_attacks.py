"""role.yaml against hostile checkouts: what an untrusted role may not do, and scripts that change behind trust's back."""

from __future__ import annotations

import shutil
import textwrap
from pathlib import Path

import pytest

from hookturn import events, paths
from hookturn.agents.rolebox import functions, module
from hookturn.project.assemble import Survey, assemble

needs_node = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node in PATH")


class Roles:
    """A project, the user's home, and engines that see both."""

    def __init__(self, folder: Path, home: Path) -> None:
        self.folder = folder
        self.home = home
        self.engines: list = []

    def write(self, path: Path, text: str) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(textwrap.dedent(text), encoding="utf-8")
        return path

    def role(self, text: str, path: str = "role.yaml") -> None:
        self.write(self.folder / path, "name: coder\nprompt: You write code.\n" + textwrap.dedent(text))

    def assemble(self, *, trust: bool = False, **options):
        if trust:
            Survey(self.folder, guards=True).trust_all()
        assembled = assemble(self.folder, log=False, builtins=False, **options)
        self.engines.append(assembled.engine)
        return assembled


@pytest.fixture
def role(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "MANAGED_CONFIG", str(tmp_path / "managed.yaml"))
    for name in ("XDG_CONFIG_HOME", "PI_CODING_AGENT_DIR", "DSH_HOME"):
        monkeypatch.delenv(name, raising=False)
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    module.clear()
    folder = tmp_path / "project"
    folder.mkdir()
    made = Roles(folder, home)
    yield made
    for engine in made.engines:
        engine.close()


GUARD = """
    hooks:
      custom:
        - name: guard
          events: [tool.execute.before]
          module: guard.py
"""
SKIPS = "def on_tool_before(ctx, input):\n    ctx.skip('guarded')\n"
CALL = events.PreToolExecution(tool="write", args={}, agent="anybody")


@pytest.mark.parametrize("path", ["role.yaml", "rolebox/other/role.yaml"])
def test_an_untrusted_role_takes_no_agent_from_the_users_only_role(role, path):
    own = role.home / ".config" / "opencode" / "rolebox" / "mine"
    role.write(own / "role.yaml", "name: mine\nprompt: You guard.\n" + textwrap.dedent(GUARD))
    role.write(own / "guard.py", SKIPS)
    role.role("functions: [plan]\n", path)
    assert role.assemble().engine.fire(CALL).decision == "deny"


def test_an_untrusted_role_takes_no_agent_from_a_trusted_one(role):
    role.role(GUARD)
    role.write(role.folder / "guard.py", SKIPS)
    role.assemble(trust=True)
    role.role("functions: [plan]\n", "rolebox/late/role.yaml")
    assert role.assemble().engine.fire(CALL).decision == "deny"


def test_two_trusted_roles_have_an_agent_each(role):
    role.role(GUARD)
    role.write(role.folder / "guard.py", SKIPS)
    role.role("functions: [plan]\n", "rolebox/late/role.yaml")
    engine = role.assemble(trust=True).engine
    assert engine.fire(CALL).decision is None
    assert engine.fire(events.PreToolExecution(tool="write", args={}, agent="coder")).decision == "deny"


def test_an_untrusted_role_prints_nothing_of_the_environment(role, monkeypatch):
    monkeypatch.setenv("ROLE_SECRET", "s3cr3t-value")
    word = "'{env:ROLE_SECRET}'"
    role.role(f"""
        hooks:
          custom:
            - {{name: {word}, events: [{word}, event], module: {word}, priority: {word}}}
            - {{name: {word}, events: [event], module: a.py, phase: {word}}}
            - {{name: {word}, events: [event], module: a.py}}
    """)
    survey = Survey(role.folder, guards=True)
    assembled = role.assemble()
    told = [str(problem) for problem in (*survey.problems, *assembled.problems)]
    told += [item.declaration.what + item.declaration.key for item in survey.pending()]
    told += [f"{row.name} {row.reason}" for row in assembled.plugins]
    assert any("ROLE_SECRET" in text for text in told)
    assert not [text for text in told if "s3cr3t" in text]


def bomb(levels: int) -> str:
    lines = ["a0: &a0 [x,x,x,x,x,x,x,x,x,x]"]
    for level in range(1, levels):
        lines.append(f"a{level}: &a{level} [{','.join([f'*a{level - 1}'] * 10)}]")
    return "\n".join(lines)


@pytest.mark.parametrize(
    "last", ["params: {p: *a4}", "params: {? *a4 : 1}", "requires: [*a4]", "params: {p: {q: *a4}}"]
)
def test_the_front_matter_of_a_function_does_not_multiply(tmp_path, last):
    path = tmp_path / "f.md"
    path.write_text(f"---\n{bomb(5)}\n{last}\n---\nText.\n")
    made = functions.read("f", str(path))
    assert len(repr(made.fields)) < 10_000
    assert made.doubts


JS = """
    hooks:
      custom:
        - name: guard
          events: [tool.execute.before]
          module: guard.mjs
"""


@needs_node
def test_a_module_in_javascript_that_changes_while_it_runs_is_not_called_any_more(role):
    role.role(JS)
    path = role.write(role.folder / "guard.mjs", "export function onToolBefore(ctx) { ctx.skip('old'); }\n")
    engine = role.assemble(trust=True).engine
    assert engine.fire(CALL).reason == "old"
    path.write_text("export function onToolBefore(ctx) { ctx.skip('new'); }\n")
    out = engine.fire(CALL)
    assert out.decision is None
    assert "hookturn trust" in out.failures[0].message


@needs_node
def test_what_a_module_in_javascript_starts_does_not_lead_back_to_it(role, tmp_path, monkeypatch):
    seen = tmp_path / "seen"
    role.role(JS)
    role.write(
        role.folder / "guard.mjs",
        f"""
        import {{ execFileSync }} from 'node:child_process';
        import {{ writeFileSync }} from 'node:fs';
        export function onToolBefore(ctx) {{
          writeFileSync({str(seen)!r}, execFileSync('/bin/sh', ['-c', 'printf %s "$HOOKTURN_RUNNING"']));
          ctx.skip('called');
        }}
        """,
    )
    engine = role.assemble(trust=True).engine
    assert engine.fire(CALL).reason == "called"
    monkeypatch.setenv("HOOKTURN_RUNNING", seen.read_text())
    assert engine.fire(CALL).decision is None
