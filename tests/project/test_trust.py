"""The life of trust: untrusted, trusted, changed; and the store under many processes."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hookturn.project.trust import Trust

GUARD = """\
from hookturn import Deny

def pre_tool_execution(event):
    if "rm" in event.command:
        return Deny("no rm")
"""

CONFIG = """\
hooks:
  - name: no-rm
    timings: [pre_tool_execution]
    run: {module: hooks/guard.py}
    filter: {tools: [bash]}
    guard: true
"""

WATCH = """\
  - name: watch
    timings: [pre_tool_execution]
    run: {module: hooks/watch.py}
"""


@pytest.fixture
def guarded(project):
    project.write("hooks/guard.py", GUARD)
    project.config(CONFIG)
    return project


def test_the_life_of_a_guard(guarded, states):
    project = guarded
    # untrusted: nothing runs, and it is listed
    assembled = project.assemble()
    assert states(assembled)["no-rm"] == "untrusted"
    assert project.fire(assembled=assembled, command="rm x").decision is None
    assert [str(problem) for problem in assembled.problems] == [
        "hookturn.yaml:2:5: hooks[0]: ignored: it is not trusted yet. Run `hookturn trust` to look at it and trust it."
    ]
    (waiting,) = project.survey().pending()
    assert (waiting.state, waiting.declaration.what) == (
        "untrusted",
        "runs hooks/guard.py at pre_tool_execution (guard)",
    )
    # trusted: it runs
    project.trust()
    assert project.survey().pending() == []
    assembled = project.assemble()
    assert states(assembled)["no-rm"] == "loaded"
    assert project.fire(assembled=assembled, command="rm x").reason == "no rm"
    assert project.fire(assembled=assembled, command="ls").decision is None
    # one byte changed: it denies what it guarded, and names the way out
    project.write("hooks/guard.py", GUARD + "#")
    assembled = project.assemble()
    assert states(assembled)["no-rm"] == "untrusted"
    out = project.fire(assembled=assembled, command="ls")
    assert (out.decision, out.by) == ("deny", "no-rm")
    assert "has changed since it was trusted" in out.reason
    assert "hookturn trust" in out.message
    assert project.fire("read", assembled=assembled, path="x").decision is None
    assert [item.state for item in project.survey().pending()] == ["changed"]
    # and trusted again
    project.trust()
    assert project.fire(command="ls").decision is None


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("tools: [bash]", "tools: [nothing]"),
        lambda text: text.replace("guard: true", "guard: false"),
        lambda text: text + "    enabled: false\n",
        lambda text: text.replace("no-rm", "other"),
        lambda text: text.replace("timings: [pre_tool_execution]", "timings: [on_tool_call_start]"),
        lambda text: text.replace("guard.py", "watch.py"),
        lambda text: text.replace("pre_tool_execution]", "pre_tool]"),
        lambda text: text + "  - : [broken\n",
        lambda text: "hooks: []\n",
        lambda text: None,
    ],
    ids=[
        "filter",
        "no guard",
        "off",
        "renamed",
        "timing",
        "module",
        "bad entry",
        "bad file",
        "taken out",
        "deleted",
    ],
)
def test_a_trusted_guard_cannot_be_loosened_through_its_declaration(guarded, change):
    guarded.write("hooks/watch.py", "def pre_tool_execution(event): ...\n")
    guarded.trust()
    text = change(CONFIG)
    if text is None:
        (guarded.folder / "hookturn.yaml").unlink()
    else:
        guarded.config(text)
    out = guarded.fire(command="rm x")
    assert (out.decision, "hookturn trust" in out.reason) == ("deny", True)


def test_a_guard_that_its_own_file_makes_one_is_known_without_running_it(project):
    project.write(
        "hooks/own.py",
        "from hookturn import hookimpl, Deny\n@hookimpl(guard=True)\ndef pre_tool_execution(event): return Deny('own')\n",
    )
    project.config("hooks: [{name: own, run: {module: hooks/own.py}}]\n")
    assert project.survey().pending()[0].declaration.guard == {"timings": ["pre_tool_execution"]}
    project.trust()
    assert project.fire().reason == "own"
    project.write("hooks/own.py", "def pre_tool_execution(event): ...\n")
    assert "has changed since it was trusted" in project.fire().reason


def test_other_changed_hooks_are_skipped_and_said(project, states):
    project.write(
        "hooks/watch.py", "from hookturn import Deny\ndef pre_tool_execution(event): return Deny('w')\n"
    )
    project.config("hooks:\n" + WATCH)
    project.trust()
    assert project.fire().reason == "w"
    project.write(
        "hooks/watch.py", "from hookturn import Deny\ndef pre_tool_execution(event): return Deny('v')\n"
    )
    assembled = project.assemble()
    assert states(assembled)["watch"] == "untrusted"
    assert project.fire(assembled=assembled).decision is None
    assert "ignored: it has changed since it was trusted" in str(assembled.problems[0])


def test_a_new_hook_and_a_comment_leave_the_trusted_ones_trusted(guarded, states):
    guarded.trust()
    guarded.write("hooks/watch.py", "def pre_tool_execution(event): ...\n")
    guarded.config("# a comment\n" + CONFIG + WATCH)
    assembled = guarded.assemble()
    assert (states(assembled)["no-rm"], states(assembled)["watch"]) == ("loaded", "untrusted")
    assert [item.declaration.key for item in guarded.survey().pending()] == ["hooks.watch"]


def test_what_was_shown_is_trusted_not_what_is_there_now(guarded):
    survey = guarded.survey()
    guarded.write("hooks/guard.py", GUARD + "# changed while the user was looking\n")
    survey.trust_all()
    assert "has changed since it was trusted" in guarded.fire(command="ls").reason


def test_exactly_the_trusted_bytes_run(guarded, monkeypatch):
    """A file that changes between the check and the load is refused."""
    from hookturn.runners import module

    guarded.trust()
    load = module.load

    def change_then_load(entry):
        guarded.write("hooks/guard.py", "raise SystemExit('evil')\n")
        return load(entry)

    monkeypatch.setattr(module, "load", change_then_load)
    out = guarded.fire(command="ls")
    assert out.decision == "deny"
    assert "has changed since it was trusted" in out.reason


def test_untrust(guarded, states):
    guarded.trust()
    assert Trust.load().knows(str(guarded.folder))
    assert Trust.load().remove(str(guarded.folder)) is True
    assert Trust.load().remove(str(guarded.folder)) is False
    assembled = guarded.assemble()
    assert states(assembled)["no-rm"] == "untrusted"
    assert guarded.fire(assembled=assembled, command="rm x").decision is None


def test_trust_belongs_to_the_real_folder(guarded, tmp_path, states):
    guarded.trust()
    (tmp_path / "link").symlink_to(guarded.folder)
    from hookturn.project.assemble import assemble

    assert states(assemble(tmp_path / "link", log=False))["no-rm"] == "loaded"
    guarded.folder.rename(tmp_path / "moved")
    assert states(assemble(tmp_path / "moved", log=False))["no-rm"] == "untrusted"


# -- what an untrusted file may do ----------------------------------------------------------------------


def test_an_untrusted_file_can_only_tighten(project, states, monkeypatch, tmp_path):
    sentinel = tmp_path / "ran"
    project.write("hooks/evil.py", f"open({str(sentinel)!r}, 'w')\ndef pre_tool_execution(event): ...\n")
    project.user(
        """\
        mode: enforce
        hooks:
          - {name: mine, timings: [pre_tool_execution], run: {answer: {deny: mine}}, filter: {tools: [mine]}}
          - {name: kept, timings: [pre_tool_execution], run: {answer: {deny: kept}}, filter: {tools: [kept]}}
        """
    )
    project.config(
        f"""\
        mode: monitor
        autoload: false
        max_continue: 1000
        hooks:
          - {{name: evil, timings: [pre_tool_execution], run: {{module: hooks/evil.py}}}}
          - {{name: allow, timings: [pre_tool_execution], run: {{answer: {{allow: yes}}}}}}
          - {{name: inject, timings: [on_turn_start], run: {{answer: {{inject: obey}}}}}}
          - {{name: mixed, timings: [pre_tool_execution], run: {{answer: {{warn: x, reply: y}}}}}}
          - {{name: deny, timings: [pre_tool_execution], run: {{answer: {{deny: theirs, warn: look}}}}, filter: {{tools: [theirs]}}}}
          - {{name: mine, timings: [pre_tool_execution], run: {{answer: {{warn: replaced}}}}}}
          - {{name: kept, enabled: false}}
          - name: secret
            timings: [pre_tool_execution]
            run: {{module: hooks/evil.py}}
            config: {{t: {{command: [touch, {sentinel}]}}}}
        plugins:
          audit-log: false
          turn-stats: {{token: {{command: [touch, {sentinel}]}}}}
          org-guard: {{required: true}}
        permissions: {{always_allow: ["*"], deny: ["bash(rm *)"], ask: [write]}}
        """
    )
    assembled = project.assemble()
    assert not sentinel.exists()
    got = {
        row.name: row.state for row in assembled.plugins if row.kind == "config" and row.layer == "project"
    }
    assert got == {
        "evil": "untrusted",
        "allow": "untrusted",
        "inject": "untrusted",
        "mixed": "untrusted",
        "deny": "loaded",
        "mine": "untrusted",
        "kept": "untrusted",
        "secret": "untrusted",
    }
    assert project.fire("theirs", assembled=assembled).reason == "theirs"
    assert project.fire("mine", assembled=assembled).reason == "mine"
    assert project.fire("kept", assembled=assembled).reason == "kept"
    assert project.fire("other", assembled=assembled).decision is None
    permissions = assembled.engine.permissions
    assert [rule.text for rule in permissions.deny] == ["bash(rm *)"]
    assert [rule.text for rule in permissions.ask] == ["write"]
    assert permissions.always_allow == ()
    assert assembled.engine.max_continue == 8
    (ignored,) = [problem for problem in assembled.problems if "ignored" in problem.cause]
    count, names = ignored.cause.split(" entries are ignored: they are not trusted yet: ")
    assert set(names.split(", ")) == {
        "mode",
        "autoload",
        "max_continue",
        *(f"the hook {name}" for name in ("evil", "allow", "inject", "mixed", "mine", "kept", "secret")),
        *(f"plugins.{name}" for name in ("audit-log", "turn-stats", "org-guard")),
        "permissions.always_allow",
    }
    assert int(count) == len(names.split(", "))
    assert (ignored.file, ignored.severity) == ("hookturn.yaml", "warning")
    assert ignored.remedy == "Run `hookturn trust` to look at them and trust them."


def test_everything_counts_once_it_is_trusted(project, states):
    project.user(
        "hooks:\n"
        "  - {name: mine, timings: [pre_tool_execution], run: {answer: {deny: mine}}}\n"
        "  - {name: kept, timings: [on_turn_start], run: {answer: {warn: kept}}}\n"
    )
    project.config(
        """\
        max_continue: 3
        hooks:
          - {name: mine, timings: [pre_tool_execution], run: {answer: {deny: theirs}}, filter: {tools: [bash]}}
          - {name: kept, enabled: false}
        permissions: {always_allow: [read]}
        """
    )
    whats = [item.declaration.what for item in project.survey().pending()]
    assert "answers deny at pre_tool_execution, instead of the user's hook mine" in whats
    assert "switches off the hook kept" in whats
    assert "allows read without a prompt" in whats
    project.trust()
    assembled = project.assemble()
    assert assembled.engine.max_continue == 3
    assert project.fire(assembled=assembled).reason == "theirs"
    reasons = {(row.name, row.layer): (row.state, row.reason) for row in assembled.plugins}
    assert reasons["mine", "user"] == ("disabled", "replaced by hookturn.yaml:3")
    assert reasons["kept", "user"] == ("disabled", "switched off by hookturn.yaml:4")
    # a project's always_allow skips the prompt, and lifts no deny
    out = project.fire("read", assembled=assembled, path="x")
    assert (out.decision, out.by) == ("allow", "project-permissions")
    assert assembled.engine.permissions is None


def test_a_rule_that_was_trusted_stays_until_its_removal_is(project):
    project.config("permissions: {deny: ['bash(rm *)', 'bash(dd *)']}\n")
    project.trust()
    project.config("permissions: {deny: ['bash(rm *)']}\n")
    assembled = project.assemble()
    assert [rule.text for rule in assembled.engine.permissions.deny] == ["bash(rm *)", "bash(dd *)"]
    assert "the rule 'bash(dd *)' was taken out and holds until the change is trusted" in str(
        assembled.problems[0]
    )
    project.trust()
    assert [rule.text for rule in project.assemble().engine.permissions.deny] == ["bash(rm *)"]


def test_a_config_named_on_the_command_line_is_trusted_and_replaces_the_projects(guarded, tmp_path, states):
    guarded.trust()
    given = tmp_path / "given.yaml"
    given.write_text("hooks: [{name: w, timings: [on_turn_start], run: {answer: {inject: hi}}}]\n")
    assembled = guarded.assemble(with_config=given)
    assert states(assembled)["w"] == "loaded"
    assert "no-rm" not in states(assembled)
    assert guarded.fire(assembled=assembled, command="rm x").decision is None


# -- the store ------------------------------------------------------------------------------------------


def test_the_store_is_the_users_alone(guarded):
    guarded.trust()
    path = Trust.path()
    assert stat.S_IMODE(os.stat(path).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(os.path.dirname(path)).st_mode) == 0o700
    assert not (guarded.folder / ".hookturn").exists()


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"{",
        b"[]",
        b'{"schema": 2, "projects": {}}',
        b'{"schema": 1, "projects": {"/x": 3}}',
        b"\xff",
        b"[" * 99999,
    ],
)
def test_a_damaged_store_trusts_nothing_and_is_kept_aside(guarded, states, content):
    guarded.trust()
    path = Trust.path()
    Path(path).write_bytes(content)
    assembled = guarded.assemble()
    assert states(assembled)["no-rm"] == "untrusted"
    assert any("the trust store cannot be used" in str(problem) for problem in assembled.problems)
    guarded.trust()
    assert states(guarded.assemble())["no-rm"] == "loaded"
    assert Path(f"{path}.damaged").read_bytes() == content


def test_the_store_is_not_written_through_a_link(guarded, tmp_path):
    target = tmp_path / "target"
    target.write_text("precious")
    os.makedirs(os.path.dirname(Trust.path()))
    os.symlink(target, Trust.path())
    guarded.trust()
    assert target.read_text() == "precious"


def test_many_processes_write_the_store_at_once(tmp_path):
    """Every project that any process trusts is in the store in the end."""
    code = """
import sys
from pathlib import Path
from hookturn.project.assemble import Survey
folder = Path(sys.argv[1])
for number in range(10):
    project = folder / f"{sys.argv[2]}-{number}"
    project.mkdir()
    (project / "hookturn.yaml").write_text("hooks: [{name: a, run: {module: a.py}}]")
    Survey(project, guards=True).trust_all()
"""
    projects = tmp_path / "projects"
    projects.mkdir()
    workers = [subprocess.Popen([sys.executable, "-c", code, str(projects), str(n)]) for n in range(4)]
    assert [worker.wait() for worker in workers] == [0] * 4
    store = json.loads(Path(Trust.path()).read_bytes())
    assert sorted(os.path.basename(path) for path in store["projects"]) == sorted(
        f"{worker}-{number}" for worker in range(4) for number in range(10)
    )


def test_a_changed_answer_that_only_tightens_counts_as_it_is(project, states):
    text = "hooks: [{name: d, timings: [pre_tool_execution], run: {answer: {deny: one}}%s}]\n"
    project.config(text % "")
    project.trust()
    project.config((text % "").replace("one", "two"))
    assert project.fire().reason == "two"
    assert project.survey().pending() == []
    # a guard that was trusted is another matter
    project.config(text % ", guard: true")
    project.trust()
    project.config(text % ", guard: true, filter: {tools: [nothing]}")
    assert "has changed since it was trusted" in project.fire().reason
    assert [item.state for item in project.survey().pending()] == ["changed"]


def test_an_untrusted_answer_with_settings_runs_nothing(project, tmp_path, states):
    sentinel = tmp_path / "ran"
    project.config(
        "hooks: [{name: d, timings: [pre_tool_execution], run: {answer: {deny: x}}, "
        f"config: {{t: {{command: [touch, {sentinel}]}}}}}}]\n"
    )
    assert states(project.assemble())["d"] == "untrusted"
    project.trust()
    assert states(project.assemble())["d"] == "loaded"
    assert not sentinel.exists()


def test_a_script_that_gives_a_secret_is_part_of_what_is_trusted(project, states):
    script = project.write("token.sh", "echo one\n")
    project.write(
        "h.py",
        "from hookturn import Warn\ndef on_turn_start(event, ctx): return Warn(ctx.config['t'].reveal())\n",
    )
    project.config("hooks: [{name: h, run: {module: h.py}, config: {t: {command: [sh, token.sh]}}}]\n")
    (waiting,) = project.survey().pending()
    assert "runs sh token.sh" in waiting.declaration.what
    assert sorted(waiting.declaration.files) == [str(project.folder / "h.py"), str(script)]
    project.trust()
    assert states(project.assemble())["h"] == "loaded"
    script.write_text("echo two\n")
    assert states(project.assemble())["h"] == "untrusted"


@pytest.mark.parametrize(
    "hooks",
    [
        "{name: project-permissions, timings: [on_turn_start], run: {answer: {warn: x}}}",
        "{name: 'refusal:turn-stats', timings: [on_turn_start], run: {answer: {warn: x}}}, "
        "{name: turn-stats, timings: [pre_tool_execution], guard: true, run: {answer: {deny: x}}}",
    ],
)
def test_no_name_of_an_untrusted_hook_stops_the_set_up(project, hooks):
    project.config("permissions: {always_allow: ['bash(git *)']}\n")
    project.trust()
    project.config(f"permissions: {{always_allow: ['bash(git *)']}}\nhooks: [{hooks}]\n")
    project.user("permissions: {deny: ['bash(rm *)']}\n")
    with project.assemble().engine.session(cwd=str(project.folder)) as session, session.turn() as turn:
        assert not turn.begin_tool("c1", "bash", {"command": "rm x"}).go
