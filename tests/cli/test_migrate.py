"""``hookturn migrate``: what is carried over, what is told, and that nothing is overwritten."""

from __future__ import annotations

import json
import os
import stat

import pytest
import yaml

from hookturn.agents.toml_text import parse_toml
from hookturn.cli import main

TOML = """
[[hooks]]
name = "deny-etc"
trigger = "pre_tool"
script = "deny_etc.py"
script_type = "bash"
timeout_secs = 3

[[hooks]]
name = "after"
trigger = "post_tool"
script = "after.sh"

[[hooks]]
name = "rules"
trigger = "system_prompt"
script = "after.sh"

[[hooks]]
name = "off"
enabled = false

[[webhooks]]
name = "ops"
trigger = "error,session_end"
url = "https://hooks.example.net/a"
retries = 0
[webhooks.headers]
X-Team = "tools"
"""

JSON = {
    "hooks": {
        "net": {
            "event": "PreToolUse",
            "matcher": "web*|bash",
            "command": '"$ATOMCODE_PROJECT_DIR"/ask.sh',
            "timeout_ms": 2500,
        },
        "log": {"event": "PostToolUseFailure", "command": "cat >> log"},
        "start": {"event": "SessionStart", "command": "echo hi"},
    }
}

YAML = """
hooks:
  - name: guard
    timings: [pre_tool_execution]
    run: {command: [sh, tools/guard.sh]}
    filter: {tools: [write, bash]}
    guard: true
    timeout: 2
  - name: mod
    timings: [pre_tool_execution]
    run: {answer: {deny: "no"}}
  - name: prompt
    timings: [on_user_prompt_submit, on_turn_start]
    run: {command: "grep -q x && exit 2"}
plugins:
  auto-commit: true
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "hooks.toml").write_text(TOML)
    (tmp_path / ".hooks.json").write_text(json.dumps(JSON))
    (tmp_path / "hookturn.yaml").write_text(YAML)
    for name in ("deny_etc.py", "after.sh", "ask.sh", "tools/guard.sh"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("exit 0\n")
    return tmp_path


def migrate(capsys, *args):
    code = main(["migrate", *args, "--json"])
    report = json.loads(capsys.readouterr().out)
    return code, report


def notes(report, *, lost=True):
    return {(note["name"], note["text"]) for note in report["notes"] if note["lost"] is lost}


def test_toml_to_yaml(folder, capsys):
    code, report = migrate(capsys, "hooks.toml", "new/hookturn.yaml")
    assert (code, report["entries"], notes(report)) == (0, 5, set())
    hooks = yaml.safe_load((folder / "new/hookturn.yaml").read_text())["hooks"]
    assert hooks[0] == {
        "name": "deny-etc", "timings": ["pre_tool_execution"], "run": {"command": ["bash", "../deny_etc.py"]}, "timeout": 3,
    }  # fmt: skip
    assert hooks[3] == {"name": "off", "enabled": False}
    assert hooks[4] == {
        "name": "ops", "timings": ["on_session_end", "on_error"],
        "run": {"webhook": {"url": "https://hooks.example.net/a", "headers": {"X-Team": "tools"}, "method": "POST", "timeout": 10, "retries": 0}},
    }  # fmt: skip
    assert any(name == "deny-etc" and "must be adapted" in text for name, text in notes(report, lost=False))
    assert main(["check", str(folder / "new/hookturn.yaml")]) == 0


def test_toml_to_json(folder, capsys):
    code, report = migrate(capsys, "hooks.toml", "new.json")
    assert code == 1
    assert notes(report) == {
        ("rules", "hooks.json has no event for system_prompt"),
        ("ops", "hooks.json has no webhooks"),
    }
    hooks = json.loads((folder / "new.json").read_text())["hooks"]
    assert hooks["deny-etc"] == {
        "event": "PreToolUse", "command": 'bash "$ATOMCODE_PROJECT_DIR"/deny_etc.py', "timeout_ms": 3000,
    }  # fmt: skip
    assert {name: hook.get("event") for name, hook in hooks.items()} == {
        "deny-etc": "PreToolUse", "after-PostToolUse": "PostToolUse", "after-PostToolUseFailure": "PostToolUseFailure", "off": None,
    }  # fmt: skip


def test_json_to_yaml(folder, capsys):
    code, report = migrate(capsys, ".hooks.json", "new.yaml")
    hooks = {hook.pop("name"): hook for hook in yaml.safe_load((folder / "new.yaml").read_text())["hooks"]}
    assert (code, list(hooks)) == (0, ["log", "net", "start"])
    assert hooks["net"] == {
        "timings": ["pre_tool_execution"], "run": {"command": JSON["hooks"]["net"]["command"]},
        "filter": {"tools": ["web*", "bash"]}, "timeout": 2.5,
    }  # fmt: skip
    assert ("log", "it runs after every call, not at PostToolUseFailure only: look at `status`") in notes(
        report, lost=False
    )


def test_json_to_toml_writes_scripts_for_shell_lines(folder, capsys):
    code, report = migrate(capsys, ".hooks.json", "new/hooks.toml")
    assert code == 1
    assert notes(report) == {("start", "scripts of hooks.toml do not run at on_session_start")}
    hooks = parse_toml((folder / "new/hooks.toml").read_text())["hooks"]
    assert hooks[1] == {"name": "net", "trigger": "pre_tool", "script": "net.sh", "timeout_secs": 2}
    script = folder / "new/net.sh"
    assert script.read_text() == '#!/bin/sh\n"$ATOMCODE_PROJECT_DIR"/ask.sh\n'
    assert stat.S_IMODE(script.stat().st_mode) == 0o755
    told = notes(report, lost=False)
    assert ("net", "hooks.toml has no filter of tools: the script must look at `tool_name`") in told
    assert ("net", "its limit of 2.5 s is 2 s now") in told


def test_yaml_to_json(folder, capsys):
    code, report = migrate(capsys, "hookturn.yaml", "new.json")
    assert code == 1
    assert notes(report) == {
        ("plugins", "'plugins:' stays behind"),
        ("guard", "guard: in hookturn.yaml only"),
        ("mod", "'run: {answer: ...}' exists in hookturn.yaml only"),
        ("prompt", "hooks.json has no event for on_turn_start"),
    }
    hooks = json.loads((folder / "new.json").read_text())["hooks"]
    assert hooks["guard"] == {
        "event": "PreToolUse", "matcher": "write_file|edit_file|bash", "timeout_ms": 2000,
        "command": 'sh "$ATOMCODE_PROJECT_DIR"/tools/guard.sh',
    }  # fmt: skip
    assert hooks["prompt"] == {"event": "UserPromptSubmit", "command": "grep -q x && exit 2"}


def test_yaml_to_toml(folder, capsys):
    migrate(capsys, "hookturn.yaml", "new.toml")
    (hook,) = parse_toml((folder / "new.toml").read_text())["hooks"]
    assert hook == {"name": "guard", "trigger": "pre_tool", "script": "tools/guard.sh", "timeout_secs": 2}


def test_there_and_back(folder, capsys):
    migrate(capsys, "hooks.toml", "a.yaml")
    migrate(capsys, "a.yaml", "b.toml")
    old, new = parse_toml(TOML), parse_toml((folder / "b.toml").read_text())
    assert {hook["name"]: hook.get("trigger") for hook in new["hooks"]} == {
        hook["name"]: hook.get("trigger") for hook in old["hooks"]
    }
    assert new["webhooks"][0]["url"] == old["webhooks"][0]["url"]


@pytest.mark.parametrize("text", ["a 'b' \"c\"\n\t\\ é 表 🚀", "\x7f\x1b[31m", "'''\"\"\""])
def test_any_text_survives(folder, capsys, text):
    (folder / "x.json").write_text(
        json.dumps({"hooks": {text: {"event": "PreToolUse", "command": f"echo {text}"}}})
    )
    migrate(capsys, "x.json", "x.toml")
    assert parse_toml((folder / "x.toml").read_text())["hooks"][0]["name"] == text
    migrate(capsys, "x.json", "x.yaml")
    assert yaml.safe_load((folder / "x.yaml").read_text())["hooks"][0]["run"]["command"] == f"echo {text}"


def test_nothing_is_overwritten_without_force(folder, capsys):
    code, report = migrate(capsys, "hooks.toml", "hookturn.yaml")
    assert (code, report["error"]) == (
        1,
        "hookturn.yaml is there; nothing was written. --force overwrites it.",
    )
    assert (folder / "hookturn.yaml").read_text() == YAML
    code, _ = migrate(capsys, "hooks.toml", "hookturn.yaml", "--force")
    assert (code, (folder / "hookturn.yaml").read_text() != YAML) == (0, True)


def test_a_script_that_is_there_is_not_overwritten_either(folder, capsys):
    (folder / "net.sh").write_text("mine\n")
    code, _ = migrate(capsys, ".hooks.json", "new.toml")
    assert (code, (folder / "net.sh").read_text(), (folder / "new.toml").exists()) == (1, "mine\n", False)


def test_force_replaces_a_link_and_does_not_follow_it(folder, capsys):
    (folder / "other.yaml").write_text("mine\n")
    os.symlink("other.yaml", folder / "link.yaml")
    migrate(capsys, "hooks.toml", "link.yaml", "--force")
    assert (folder / "other.yaml").read_text() == "mine\n"


@pytest.mark.parametrize("option", [["--dry-run"], ["-o", "-"]])
def test_a_dry_run_prints_and_writes_nothing(folder, capsys, option):
    before = sorted(os.listdir(folder))
    code = main(["migrate", "hooks.toml", "new.yaml", *option])
    printed = capsys.readouterr()
    assert code == 0
    assert yaml.safe_load(printed.out)["hooks"][0]["name"] == "deny-etc"
    assert "deny-etc: changed: the hook must be adapted" in printed.err
    assert sorted(os.listdir(folder)) == before


def test_another_output(folder, capsys):
    code, report = migrate(capsys, "hooks.toml", "hookturn.yaml", "-o", "other.yaml")
    assert (code, report["to"], (folder / "other.yaml").exists()) == (0, "other.yaml", True)


@pytest.mark.parametrize(
    "args",
    [
        ["hooks.toml", "x.txt"],
        ["x", "hookturn.yaml"],
        ["hooks.toml", "new.yaml", "-o", "x.json"],
        ["hooks.toml"],
    ],
)
def test_wrong_usage(folder, capsys, args):
    assert main(["migrate", *args]) == 2


def test_a_file_that_is_not_there(folder, capsys):
    assert main(["migrate", "nope.toml", "new.yaml"]) == 1
    assert "nope.toml cannot be read" in capsys.readouterr().err


def test_what_is_wrong_in_the_old_file_is_told(folder, capsys):
    (folder / "bad.toml").write_text('[[hooks]]\nname = "x"\ntrigger = "pre_tol"\nscript = "y"\n')
    code, report = migrate(capsys, "bad.toml", "new.yaml")
    assert (code, report["entries"], len(report["problems"])) == (1, 0, 1)
    (folder / "broken.json").write_text("{")
    code, report = migrate(capsys, "broken.json", "new2.yaml")
    assert (code, len(report["problems"])) == (1, 1)
