"""Other agents' hook files: found, read, trusted, replaced and set up alike, whatever the dialect."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path

import pytest

from hookturn.project import foreign

DENY = '#!/bin/sh\ncat >/dev/null\necho \'{"deny": "by %s"}\'\n'


@pytest.fixture(autouse=True)
def demo(monkeypatch, tmp_path):
    """The dialect ``demo``, and a home of the user's."""
    path = Path(__file__).parent / "foreign_dialect.py"
    spec = importlib.util.spec_from_file_location("foreign_dialect", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "foreign_dialect", module)
    monkeypatch.setattr(foreign, "DIALECTS", {"demo": "foreign_dialect"})
    monkeypatch.setattr(foreign, "RUN_BY", {"demo": {"demo": ("user", "project")}})
    home = tmp_path / "home"
    home.mkdir()
    monkeypatch.setenv("HOME", str(home))
    return home


def script(folder: Path, name: str, words: str) -> str:
    path = folder / name
    path.write_text(DENY % words, encoding="utf-8")
    path.chmod(0o755)
    return str(path)


def hooks(*entries: dict) -> str:
    return json.dumps({"hooks": list(entries)}, indent=1)


def test_a_projects_entry_waits_for_trust_and_then_runs(project, states):
    script(project.folder, "deny.sh", "project")
    project.write("demo.json", hooks({"name": "one", "command": ["./deny.sh"]}))
    assembled = project.assemble()
    assert states(assembled)["one"] == "untrusted"
    assert project.fire(assembled=assembled).decision is None
    assert [str(problem) for problem in assembled.problems] == [
        "demo.json:3:3: hooks[0]: ignored: it is not trusted yet. Run `hookturn trust` to look at it and trust it."
    ]
    (waiting,) = project.survey().pending()
    assert waiting.declaration.what == "runs ['./deny.sh']"
    assert [Path(name).name for name in waiting.declaration.files] == ["deny.sh"]
    project.trust()
    assembled = project.assemble()
    assert states(assembled)["one"] == "loaded"
    assert project.fire(assembled=assembled).reason == "by project"


@pytest.mark.parametrize("change", ["script", "entry"])
def test_a_change_asks_again(project, states, change):
    script(project.folder, "deny.sh", "project")
    project.write("demo.json", hooks({"name": "one", "command": ["./deny.sh"]}))
    project.trust()
    if change == "script":
        script(project.folder, "deny.sh", "somebody else")
    else:
        project.write("demo.json", hooks({"name": "one", "command": ["./deny.sh", "more"]}))
    assembled = project.assemble()
    assert states(assembled)["one"] == "untrusted"
    assert project.fire(assembled=assembled).decision is None
    assert project.survey().pending()[0].state == "changed"


def test_a_script_that_changes_after_the_start_does_not_run(project):
    script(project.folder, "deny.sh", "project")
    project.write("demo.json", hooks({"name": "one", "command": ["./deny.sh"]}))
    project.trust()
    assembled = project.assemble()
    script(project.folder, "deny.sh", "somebody else")
    out = project.fire(assembled=assembled)
    assert out.decision is None
    assert "is not what was trusted" in out.failures[0].message


def test_the_users_file_needs_no_trust_and_is_replaced_by_a_trusted_project_entry_only(project, demo, states):
    (demo / ".demo.json").write_text(hooks({"name": "one", "command": [script(demo, "deny.sh", "user")]}))
    assert project.fire().reason == "by user"
    script(project.folder, "deny.sh", "project")
    project.write("demo.json", hooks({"name": "one", "command": ["./deny.sh"]}))
    assert project.fire().reason == "by user"
    project.trust()
    assert project.fire().reason == "by project"
    project.write("demo.json", hooks({"name": "one", "command": ["./deny.sh"], "disabled": True}))
    assert project.fire().reason == "by user"
    project.trust()
    assembled = project.assemble()
    assert project.fire(assembled=assembled).decision is None
    reasons = [row.reason for row in assembled.plugins if row.name == "one"]
    assert reasons == ["replaced by demo.json:3", "switched off in demo.json:3"]


def test_a_file_that_others_may_write_does_not_count(project, demo, states):
    path = demo / ".demo.json"
    path.write_text(hooks({"name": "one", "command": [script(demo, "deny.sh", "user")]}))
    path.chmod(0o666)
    assembled = project.assemble()
    assert states(assembled)["one"] == "untrusted"
    assert project.fire(assembled=assembled).decision is None
    assert "writable by everybody" in str(assembled.problems[0])


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("demo.yaml", "hooks:\n- {name: one, command: [./deny.sh]}\n- 5\n"),
        ("demo.toml", '[[hooks]]\nname = "one"\ncommand = ["./deny.sh"]\n[[hooks]]\nnam = 5\n'),
        ("demo.json", '// c\n{"hooks": [{"name": "one", "command": ["./deny.sh"]},\n {"nam": 5}]}'),
    ],
    ids=["yaml", "toml", "json"],
)
def test_every_format_with_places(project, name, text):
    script(project.folder, "deny.sh", "project")
    project.write(name, text)
    project.trust()
    assembled = project.assemble()
    assert project.fire(assembled=assembled).reason == "by project"
    line = {"demo.yaml": "3:3", "demo.toml": "4:1", "demo.json": "3:2"}[name]
    assert [str(problem) for problem in assembled.problems] == [
        f"{name}:{line}: hooks[1]: the entry has no name. Give it one."
    ]


def test_what_calls_hookturn_is_never_run(project, demo, states):
    commands = [
        "hookturn bridge demo",
        ["hookturn", "bridge", "demo"],
        "/opt/x y/bin/hookturn bridge demo --timeout 5",
        '"/opt/x y/bin/hookturn" bridge demo',
        "python3 -I -S /x/hookturn/serve/client.py bridge demo",
        "python -m hookturn.cli bridge demo",
    ]
    entries = [{"name": f"n{index}", "command": words} for index, words in enumerate(commands)]
    (demo / ".demo.json").write_text(hooks(*entries, {"name": "other", "command": ["echo", "hookturn", "x"]}))
    found = states(project.assemble())
    assert [found[f"n{index}"] for index in range(len(commands))] == ["disabled"] * len(commands)
    assert found["other"] == "loaded"


def test_an_agents_own_files_are_left_to_it(project, demo):
    (demo / ".demo.json").write_text(hooks({"name": "one", "command": [script(demo, "deny.sh", "user")]}))
    assert project.fire(assembled=project.assemble(agent="demo")).decision is None
    assert project.fire(assembled=project.assemble(agent="other")).reason == "by user"


def test_the_environment_of_the_agent_says_where_its_files_are(project, tmp_path):
    other = tmp_path / "other home"
    other.mkdir()
    (other / ".demo.json").write_text(hooks({"name": "one", "command": [script(other, "deny.sh", "other")]}))
    assert project.fire(
        assembled=project.assemble(environ={"HOME": str(other), "PATH": "/bin:/usr/bin"})
    ).reason == ("by other")


def test_a_dialect_can_be_switched_off_and_has_settings(project, demo, states):
    (demo / ".demo.json").write_text(hooks({"name": "one", "command": [script(demo, "deny.sh", "user")]}))
    project.user("dialects: {demo: false}\n")
    assert "one" not in states(project.assemble())
    project.user("dialects: {demo: {loud: yes please, folder: 5, other: 1}, dmo: true}\n")
    assembled = project.assemble()
    assert states(assembled)["one"] == "loaded"
    told = sorted(problem.path + ": " + problem.cause for problem in assembled.problems)
    assert told == [
        "dialects.demo.folder: expected a folder",
        "dialects.demo.loud: expected true or false, got 'yes please'",
        "dialects.demo.other: unknown option 'other'",
        "dialects.dmo: unknown dialect 'dmo' (did you mean 'demo'?)",
    ]


def test_an_untrusted_project_cannot_switch_a_dialect_off(project, demo, states):
    (demo / ".demo.json").write_text(hooks({"name": "one", "command": [script(demo, "deny.sh", "user")]}))
    project.config("dialects: {demo: false}\n")
    assert states(project.assemble())["one"] == "loaded"
    project.trust()
    assert "one" not in states(project.assemble())


def test_two_hooks_of_one_name_both_run(project, demo, states):
    project.user("hooks:\n- {name: one, timings: [pre_tool_execution], run: {answer: {warn: careful}}}\n")
    (demo / ".demo.json").write_text(hooks({"name": "one", "command": [script(demo, "deny.sh", "user")]}))
    out = project.fire()
    assert (out.reason, out.by, out.warnings) == ("by user", "demo:one", ("careful",))


def test_a_hook_can_be_blocked_by_name(project, demo, states):
    (demo / ".demo.json").write_text(hooks({"name": "one", "command": [script(demo, "deny.sh", "user")]}))
    assert states(project.assemble(disable=["one"]))["one"] == "blocked"
    assert states(project.assemble(disable=["demo:one"]))["one"] == "blocked"


def test_monitor_mode_of_a_layer_holds_for_its_foreign_files(project, demo):
    project.user("mode: monitor\n")
    (demo / ".demo.json").write_text(hooks({"name": "one", "command": [script(demo, "deny.sh", "user")]}))
    assert project.fire().decision is None


def test_a_builtin_is_switched_on_with_settings(project, demo, states):
    (demo / ".demo.json").write_text(
        hooks(
            {"name": "audit", "plugin": "audit-log", "config": {"path": ".hookturn/other.jsonl"}},
            {"name": "none", "plugin": "no-such"},
            {"name": "wrong", "plugin": "audit-log", "config": {"pth": 5}},
        )
    )
    assembled = project.assemble()
    found = states(assembled)
    assert (found["audit"], found["none"], found["wrong"]) == ("loaded", "failed", "failed")
    record = assembled.engine.registry.plugins["audit"]
    assert (record.layer, record.config.path) == ("builtin", ".hookturn/other.jsonl")


HOSTILE = {
    "wrong root": "[1, 2]",
    "not json": '{"hooks": [',
    "no utf-8": b"\xff\xfe\x00",
    "10 mb": b'{"hooks": [' + b" " * 10_000_000 + b"]}",
    "deep": "[" * 100_000,
    "many": '{"hooks": [' + ",".join(["1"] * 30_000) + "]}",
}


@pytest.mark.parametrize("case", sorted(HOSTILE))
def test_a_hostile_file_costs_only_itself(project, demo, case):
    content = HOSTILE[case]
    (project.folder / "demo.json").write_bytes(content if isinstance(content, bytes) else content.encode())
    (demo / ".demo.json").write_text(hooks({"name": "one", "command": [script(demo, "deny.sh", "user")]}))
    assembled = project.assemble()
    assert project.fire(assembled=assembled).reason == "by user"
    told = [problem for problem in assembled.problems if problem.file == "demo.json"]
    assert told
    assert all(problem.severity == "error" and problem.remedy for problem in told)


@pytest.mark.parametrize("what", ["fifo", "folder", "device", "loop", "dangling"])
def test_what_is_no_file_costs_only_itself(project, demo, what):
    import os

    path = project.folder / "demo.json"
    if what == "fifo":
        os.mkfifo(path)
    elif what == "folder":
        path.mkdir()
    else:
        path.symlink_to({"device": "/dev/zero", "loop": "demo.json", "dangling": "nowhere"}[what])
    (demo / ".demo.json").write_text(hooks({"name": "one", "command": [script(demo, "deny.sh", "user")]}))
    assembled = project.assemble()
    assert project.fire(assembled=assembled).reason == "by user"
    assert [problem.cause.startswith("cannot be read") for problem in assembled.problems] == [True]


def test_a_project_takes_nothing_back_that_the_user_wants_to_fail_closed(project, demo):
    (demo / ".demo.json").write_text(hooks({"name": "one", "command": ["sh", "-c", "exit 3"]}))
    project.user("dialects: {demo: {fail_closed: [one]}}\n")
    assert project.fire().decision == "deny"
    project.config("dialects: {demo: {loud: true, fail_closed: [other]}}\n")
    project.trust()
    assert project.fire().decision == "deny"


def test_entries_whose_names_meet_are_trusted_apart():
    """A plugin ``a`` with a hook ``b:c``, and a plugin ``a:b`` with a hook ``c``; what is put before an entry is none
    of its own."""
    from hookturn.runners.entry import HookEntry

    def key(*where):
        return foreign.key_of(HookEntry(name="a:b:c", dialect="atomcode", file="hooks.json", where=where))

    assert key("hooks", "b:c") != key("hooks", "c")
    assert key("hooks", 0, "x") == key("hooks", 1, "x")


def test_an_entry_cannot_take_the_name_of_a_trusted_one(project, demo, states, monkeypatch):
    """``[[webhooks]]`` whose name is that of a hook is called ``NAME (webhook)``, as another may be."""
    monkeypatch.setattr(foreign, "DIALECTS", {"atomcode": "hookturn.agents.atomcode.config"})

    def webhook(name, host):
        return f'[[webhooks]]\nname = "{name}"\nurl = "https://{host}/"\ntrigger = "pre_tool"\n'

    old = '[[hooks]]\nname = "x"\ntrigger = "pre_tool"\nscript = "true"\nenabled = false\n'
    old += webhook("x", "ours.example")
    project.write(".atomcode/hooks/hooks.toml", old)
    project.trust()
    assert states(project.assemble())["x (webhook)"] == "loaded"
    project.write(".atomcode/hooks/hooks.toml", old + webhook("x (webhook)", "theirs.example"))
    assembled = project.assemble()
    rows = [(row.source, row.state) for row in assembled.plugins if row.name.endswith("x (webhook)")]
    assert rows == [(".atomcode/hooks/hooks.toml:6", "loaded")]
    assert ".atomcode/hooks/hooks.toml:10" in str(assembled.problems[-1])
    assert "'x (webhook)' stands before it. Give one of them another name" in str(assembled.problems[-1])
