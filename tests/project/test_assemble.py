"""A project's engine as a whole: layers, order, builtins, what fails closed, what is logged."""

from __future__ import annotations

import json

import pytest

from hookturn import Engine, events, hookimpl, paths
from hookturn.project import assemble as room


def row(assembled, name, layer=None):
    (found,) = [row for row in assembled.plugins if row.name == name and layer in (None, row.layer)]
    return found


def said(assembled, word=""):
    return [str(problem) for problem in assembled.problems if word in str(problem)]


def answer(name, text, more=""):
    return f"  - {{name: {name}, timings: [on_turn_start], run: {{answer: {{inject: {text}}}}}{more}}}\n"


def injected(assembled):
    return list(assembled.engine.fire(events.TurnStart()).injected)


# -- layers and order -------------------------------------------------------------------------------------


def test_from_project_is_assemble(project):
    project.user("hooks:\n" + answer("a", "from user"))
    with Engine.from_project(project.folder) as engine:
        assert engine.fire(events.TurnStart()).injected == ("from user",)
        assert engine.project_dir == str(project.folder)


def test_registration_order(project, install):
    plugin = "from hookturn import Inject, hookimpl\n@hookimpl\ndef on_turn_start(event): return Inject(__name__)\n"
    install(
        "dist", entry_points="[hookturn]\nb = ord_b\na = ord_a\n", modules={"ord_a": plugin, "ord_b": plugin}
    )
    project.managed("hooks:\n" + answer("m1", "m1") + answer("m2", "m2"))
    project.user("hooks:\n" + answer("u2", "u2") + answer("u1", "u1"))
    project.config(
        "hooks:\n"
        + answer("p1", "p1")
        + answer("p0", "p0", ", phase: before")
        + answer("p2", "p2", ", priority: 1")
    )
    project.trust()

    class Host:
        @hookimpl
        def on_turn_start(self):
            from hookturn import Inject

            return Inject("host")

    assembled = project.assemble(plugins=[Host()])
    assert injected(assembled) == ["p0", "p2", "host", "ord_a", "ord_b", "m1", "m2", "u2", "u1", "p1"]
    assert row(assembled, "Host").kind == "host"


def test_managed_hooks_stand_against_everything(project, monkeypatch):
    path = project.managed(
        "hooks:\n  - {name: m, timings: [pre_tool_execution], run: {answer: {deny: managed}}, guard: true}\n"
    )
    user = project.user(
        "hooks: [{name: m, enabled: false}]\nmode: monitor\npermissions: {always_allow: ['*']}\n"
    )
    project.config(
        "hooks: [{name: m, timings: [pre_tool_execution], run: {answer: {warn: x}}}]\nmode: monitor\n"
    )
    project.trust()
    monkeypatch.setenv("HOOKTURN_DISABLE_PLUGINS", "m")
    assembled = project.assemble(disable=["m"])
    with assembled.engine.session(cwd=str(project.folder)) as session, session.turn() as turn:
        call = turn.begin_tool("c1", "bash", {"command": "ls"})
        assert not call.go
        assert "managed" in call.message
    assert row(assembled, "m", "managed").state == "loaded"
    assert row(assembled, "m", "user").reason == "the managed configuration has a hook of this name"
    assert said(assembled, "which stands") == [
        f"{user}:1:16: hooks[0].name: the managed configuration has a hook named 'm', which stands. Give this one another name.",
        "hookturn.yaml:1:16: hooks[0].name: the managed configuration has a hook named 'm', which stands. "
        "Give this one another name.",
    ]
    assert row(assembled, "m", "managed").source == f"{path}:2"


def test_a_managed_file_that_others_can_write_only_tightens(project, tmp_path):
    sentinel = tmp_path / "ran"
    project.write("evil.py", f"open({str(sentinel)!r}, 'w')\n")
    project.managed(
        f"""\
        hooks:
          - {{name: evil, timings: [on_error], run: {{module: {project.folder}/evil.py}}}}
          - {{name: deny, timings: [pre_tool_execution], run: {{answer: {{deny: still}}}}}}
        permissions: {{always_allow: ['*'], deny: [write]}}
        plugins: {{audit-log: false}}
        """
    ).chmod(0o666)
    project.user("hooks: [{name: evil, timings: [on_turn_start], run: {answer: {inject: mine}}}]\n")
    assembled = project.assemble()
    assert not sentinel.exists()
    assert project.fire(assembled=assembled).reason == "still"
    assert [rule.text for rule in assembled.engine.permissions.deny] == ["write"]
    assert assembled.engine.permissions.always_allow == ()
    assert (row(assembled, "evil", "managed").state, row(assembled, "evil", "user").state) == (
        "untrusted",
        "loaded",
    )


def test_a_managed_file_that_cannot_be_read_denies(project):
    project.managed("hooks: [\n")
    out = project.fire()
    assert out.decision == "deny"
    assert "cannot be read, so its rules are not in force" in out.reason


def test_a_broken_project_or_user_file_costs_only_itself(project):
    project.user("hooks:\n" + answer("u", "u"))
    project.config("hooks: [\n")
    assembled = project.assemble()
    assert injected(assembled) == ["u"]
    assert said(assembled)[0].startswith("hookturn.yaml:2:1: not YAML: ")
    project.config("hooks:\n" + answer("p", "p"))
    project.user("\tx")
    project.trust()
    assert injected(project.assemble()) == ["p"]


def test_one_bad_entry_costs_only_itself(project):
    project.config(
        "hooks:\n" + answer("a", "a") + "  - {name: b, timings: [nope], run: {answer: {warn: x}}}\n" + answer("c", "c")
        + "  - {name: d, timings: [on_turn_start], run: {command: [x]}}\n" + answer("e", "e")
    )  # fmt: skip
    project.trust()
    assembled = project.assemble()
    assert injected(assembled) == ["a", "c", "e"]
    assert len(said(assembled, "hooks[")) == 2


def test_hooks_are_blocked_by_name_too(project, monkeypatch):
    project.user("hooks:\n" + answer("a", "a") + answer("b", "b") + answer("c", "c", ", enabled: false"))
    monkeypatch.setenv("HOOKTURN_DISABLE_PLUGINS", "a")
    assembled = project.assemble()
    assert injected(assembled) == ["b"]
    assert (row(assembled, "a").state, row(assembled, "c").state) == ("blocked", "disabled")


def test_monitor_mode_of_a_file(project):
    deny = "{name: %s, timings: [pre_tool_execution], run: {answer: {deny: %s}}%s}\n"
    project.user("hooks:\n  - " + deny % ("u", "user", ""))
    project.config(
        "mode: monitor\nhooks:\n  - "
        + deny % ("p", "project", "")
        + "  - "
        + deny % ("q", "q", ", mode: enforce, filter: {tools: [q]}")
    )
    assert project.fire().reason == "user"
    project.trust()
    assert project.fire().reason == "user"
    project.user("mode: monitor\nhooks:\n  - " + deny % ("u", "user", ""))
    assert project.fire().decision is None
    assert project.fire("q").reason == "q"


def test_permissions_of_all_layers_and_the_host(project):
    project.managed("permissions: {always_allow: [m], deny: [md]}\n")
    project.user("permissions: {always_allow: [u], ask: [ua]}\n")
    project.config("permissions: {always_allow: [p], deny: [pd]}\n")
    project.trust()
    permissions = project.assemble(permissions={"always_allow": ["h"]}).engine.permissions
    got = {
        kind: [rule.text for rule in getattr(permissions, kind)] for kind in ("always_allow", "ask", "deny")
    }
    assert got == {"always_allow": ["h", "m", "u"], "ask": ["ua"], "deny": ["md", "pd"]}


def test_a_deny_rule_of_an_untrusted_file_holds_in_a_session_and_says_where_it_stands(project):
    project.config("permissions:\n  deny: ['bash(rm -rf *)']\n")
    with project.assemble().engine.session(cwd=str(project.folder)) as session, session.turn() as turn:
        call = turn.begin_tool("c1", "bash", {"command": "cd x && rm -rf y"})
        assert not call.go
        assert "hookturn.yaml:2" in call.message


# -- what fails closed ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("source", "cause"),
    [
        (None, "cannot be read: No such file or directory"),
        ("def", "invalid syntax"),
        ("raise ValueError('x')", "failed at import: ValueError: x"),
        ("raise SystemExit(1)", "failed at import: SystemExit: 1"),
        ("x = 1", "has no function 'pre_tool_execution'"),
        ("def pre_tool_execution(event, **more): ...", "receives nothing from pluggy"),
        ("def pre_tool_execution(event): ...\ndef on_load(ctx): 1 / 0", "on_load failed: ZeroDivisionError"),
    ],
)
@pytest.mark.parametrize("closed", ["guard: true", "on_failure: deny", ""])
def test_a_module_that_does_not_load(project, source, cause, closed):
    if source is not None:
        project.write("h.py", source)
    project.config(
        f"hooks:\n  - name: h\n    timings: [pre_tool_execution]\n    run: {{module: h.py}}\n    filter: {{tools: [bash]}}\n    {closed}\n"
    )
    project.trust()
    assembled = project.assemble()
    assert (row(assembled, "h").state, cause in row(assembled, "h").reason) == ("failed", True)
    (problem,) = said(assembled, "hooks[0].run.module")
    assert problem.startswith("hookturn.yaml:4:19: hooks[0].run.module: ")
    assert cause in problem
    assert [error.plugin for error in assembled.engine.failed if error.plugin == "h"] == ["h"]
    out = project.fire(assembled=assembled, command="ls")
    assert out.decision == ("deny" if closed else None)
    if closed:
        assert out.by == "h"
        assert "could not be started and fails closed" in out.reason
        said_once = [text for text in out.warnings if "could not be started" in text]
        assert len(said_once) == 1 and cause in said_once[0]
        assert "A person must mend it" in out.message
    assert project.fire("read", assembled=assembled, path="x").decision is None


def test_a_secret_that_is_missing_fails_its_hook_alone(project, monkeypatch):
    monkeypatch.setenv("THERE", "value-of-there")
    project.write(
        "h.py",
        "from hookturn import Warn\ndef on_turn_start(event, ctx): return Warn(ctx.config['t'].reveal() + str(ctx.config['t']))\n",
    )
    project.user(
        f"""\
        hooks:
          - {{name: a, run: {{module: {project.folder}/h.py}}, config: {{t: {{env: MISSING}}}}}}
          - {{name: b, run: {{module: {project.folder}/h.py}}, config: {{t: {{env: THERE}}}}}}
        """
    )
    assembled = project.assemble()
    assert (row(assembled, "a").state, row(assembled, "b").state) == ("failed", "loaded")
    assert said(assembled)[0].endswith(
        "hooks[0].config.t.env: the secret cannot be read: the environment variable MISSING is not set. "
        "Set the variable in the environment of the agent."
    )
    (warning,) = assembled.engine.fire(events.TurnStart()).warnings
    assert warning.startswith("value-of-there[REDACTED:t:")


def test_a_name_that_a_plugin_has_already(project):
    project.user("hooks: [{name: self-protection-2, timings: [on_error], run: {answer: {warn: x}}}]\n")
    assert said(project.assemble()) == []

    class Host:
        hookturn_name = "taken"

        @hookimpl
        def on_error(self): ...

    path = project.user("hooks: [{name: taken, timings: [on_error], run: {answer: {warn: x}}}]\n")
    assembled = project.assemble(plugins=[Host()])
    assert row(assembled, "taken", "user").state == "failed"
    assert said(assembled) == [
        f"{path}:1:58: hooks[0].run.answer: a plugin of this name is registered already (by Host). "
        "Give one of them another name."
    ]


# -- builtins and the rest --------------------------------------------------------------------------------


def test_builtins_are_on_once_a_project_has_a_configuration(project):
    assembled = project.assemble()
    assert {row.name: row.state for row in assembled.plugins if row.kind == "builtin"} == {
        "audit-log": "disabled",
        "auto-commit": "disabled",
        "error-report": "disabled",
        "functions": "disabled",
        "guards": "disabled",
        "recovery": "disabled",
        "response-validation": "disabled",
        "session-summary": "disabled",
        "turn-stats": "disabled",
        "self-protection": "loaded",
    }
    assert [row.state for row in project.assemble(builtins=True).plugins if row.name == "audit-log"] == [
        "loaded"
    ]
    project.config("")
    assert {row.name: row.state for row in project.assemble().plugins if row.kind == "builtin"} == {
        "audit-log": "loaded",
        "auto-commit": "disabled",
        "error-report": "loaded",
        "functions": "disabled",
        "guards": "disabled",
        "recovery": "disabled",
        "response-validation": "disabled",
        "session-summary": "disabled",
        "turn-stats": "loaded",
        "self-protection": "loaded",
    }
    project.user("plugins: {turn-stats: false}\n")
    assert row(project.assemble(), "turn-stats").state == "disabled"
    assert row(project.assemble(builtins=False), "audit-log").state == "disabled"


def test_a_bare_engine_loads_nothing(project, monkeypatch):
    project.config("")
    monkeypatch.chdir(project.folder)
    assert Engine().plugins == []


def test_values_live_in_the_users_state_folder_not_in_the_checkout(project):
    project.write("h.py", "def on_turn_start(event, ctx): ctx.store.set('k', 1)\n")
    project.user(f"hooks: [{{name: h, run: {{module: {project.folder}/h.py}}}}]\n")
    project.assemble(dry_run=True).engine.fire(events.TurnStart())
    folder = paths.state_root() / "projects" / paths.project_hash(project.folder)
    assert not folder.exists()
    project.assemble().engine.fire(events.TurnStart())
    assert [json.loads(path.read_bytes()) for path in folder.rglob("h.json")] == [{"k": 1}]
    assert sorted(path.name for path in project.folder.iterdir()) == ["h.py"]


def test_options_of_the_engine_pass_through(project):
    project.user("max_continue: 3\n")
    engine = project.assemble(mode="monitor", services={"s": len}, dry_run=True).engine
    assert (engine.mode, engine.max_continue, "s" in engine.services, engine.dry_run) == (
        "monitor",
        3,
        True,
        True,
    )
    assert project.assemble(max_continue=5).engine.max_continue == 5


def test_each_problem_is_logged_once(project, hook_log, monkeypatch):
    monkeypatch.setattr(room, "_logged", set())
    project.config("nonsense: 1\n")
    project.assemble(log=True)
    project.assemble(log=True)
    assert hook_log.of("config") == [
        "hookturn.yaml:1:1: nonsense: unknown key 'nonsense'. "
        "Known are hooks, plugins, permissions, mode, autoload, max_continue, dialects, webhooks."
    ]
    assert [record["level"].name for record in hook_log] == ["WARNING"]


def test_the_listing_as_json(project):
    project.config("hooks:\n" + answer("a", "a"))
    rows = [row.to_json() for row in project.assemble().plugins]
    json.dumps(rows)
    (found,) = [row for row in rows if row["name"] == "a"]
    assert found == {
        "name": "a",
        "kind": "config",
        "state": "untrusted",
        "reason": "it is not trusted yet; see `hookturn trust`",
        "distribution": "",
        "source": "hookturn.yaml:2",
        "layer": "project",
        "hooks": [],
    }


def test_pyproject_as_the_configuration(project):
    project.write(
        "pyproject.toml",
        """\
        [project]
        name = "x"

        [[tool.hookturn.hooks]]
        name = "p"
        timings = ["pre_tool_execution"]
        run = { answer = { deny = "from pyproject" } }
        """,
    )
    assembled = project.assemble()
    out = project.fire(assembled=assembled)
    assert (out.reason, out.hooks[0].source) == ("from pyproject", "pyproject.toml:4")


def test_a_folder_that_is_not_there(tmp_path):
    assembled = room.assemble(tmp_path / "nosuch", log=False)
    assert assembled.root == str(tmp_path / "nosuch")
    assert assembled.problems == []


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("permissions: {denny: [bash]}\n", "unknown key 'denny' (did you mean 'deny'?)"),
        ("hooks: [{name: a\n", "not YAML"),
        ("hook: []\n", "unknown key 'hook'"),
    ],
)
def test_the_user_of_an_agent_is_told_of_mistakes_in_the_own_configuration(project, text, told):
    project.config("permissions: {denny: [bash]}\n")  # a project's are not the user's to hear of
    path = project.user(text)
    (notice,) = project.assemble().engine.notices
    assert notice.startswith(str(path)) and told in notice


def test_many_mistakes_are_told_in_short(project):
    project.user("".join(f"x{number}: 1\n" for number in range(9)))
    notices = project.assemble().engine.notices
    assert len(notices) == 4
    assert notices[3] == "6 other mistakes: see `hookturn check`."
