"""The commands with the builtins as they are installed: what a user has after ``pip install hookturn``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

BASH = json.dumps({"tool": "bash", "args": {"command": "rm -rf /"}})


@pytest.fixture
def plain(ruled):
    del ruled.env["HOOKTURN_DISABLE_PLUGIN_AUTOLOAD"]
    return ruled


def test_the_builtins_are_loaded_and_the_configuration_is_clean(plain):
    rows = {row["name"]: row for row in plain("plugins", "--json").json["plugins"]}
    for name in ("audit-log", "turn-stats"):
        assert (rows[name]["kind"], rows[name]["state"]) == ("builtin", "loaded")
        assert rows[name]["distribution"].startswith("hookturn ")
    assert plain("check").code == 0


def test_fire_leaves_a_record_and_explain_does_not(plain):
    words = ["pre_tool_execution", "--event", "-", "--json"]
    assert plain("explain", *words, input=BASH).code == 0
    assert not (plain.project / ".hookturn").exists()
    assert plain("fire", *words, input=BASH).json["decision"] == "deny"
    records = (plain.project / ".hookturn" / "audit.jsonl").read_text().splitlines()
    assert any('"deny"' in record and "no-rm" in record for record in records)
    verified = plain("audit", "verify", "--json")
    assert (verified.code, verified.json["ok"]) == (0, True)


def test_an_event_tried_by_hand_is_in_the_trail_and_in_no_figures(plain):
    words = ["post_tool_execution", "--event", "-", "--json"]
    event = {"tool": "bash", "args": {"command": "ls"}, "status": "ok"}
    assert plain("fire", *words, input=json.dumps(event)).json["event"]["host"] == "hookturn-fire"
    assert plain("stats", "--json").json["totals"]["tool_calls"] == 0
    assert "hookturn-fire" in (plain.project / ".hookturn" / "audit.jsonl").read_text()
    ran = plain("fire", *words, input=json.dumps({**event, "session_id": "s1"}))
    assert ran.json["event"]["host"] == ""
    assert plain("stats", "--json").json["totals"]["tool_calls"] == 1
    ran = plain("fire", *words, input=json.dumps({**event, "host": "mine"}))
    assert ran.json["event"]["host"] == "mine"


def test_the_builtins_commands_are_in_the_help(plain):
    ran = plain("--help")
    for word in ("audit", "stats"):
        assert f"\n    {word} " in ran.out
        assert plain(word, "--help").code == 0


@pytest.fixture
def nowhere(cli, tmp_path):
    """The command in the user's home folder, which is no project."""
    folder = tmp_path / "home folder"
    folder.mkdir()
    cli.project = folder
    cli.env["HOME"] = str(folder)
    del cli.env["HOOKTURN_DISABLE_PLUGIN_AUTOLOAD"]
    return cli


def call(cli, session="s1"):
    payload = {"hook_event_name": "PostToolUse", "session_id": session, "cwd": str(cli.project), "tool_name": "Bash",
               "tool_input": {"command": "ls"}, "tool_response": {"stdout": "x"}, "tool_use_id": "t"}  # fmt: skip
    assert cli("bridge", "claude-code", input=json.dumps(payload)).code == 0


def test_a_call_in_the_home_folder_leaves_nothing_in_it(nowhere):
    config = Path(nowhere.env["HOOKTURN_CONFIG_DIR"])
    config.mkdir(parents=True)
    (config / "hookturn.yaml").write_text("plugins: {session-summary: true}\n")
    call(nowhere)
    assert list(nowhere.project.iterdir()) == []
    stats = nowhere("stats", "--json").json
    assert stats["totals"]["tool_calls"] == 1
    assert Path(stats["path"]).is_relative_to(nowhere.env["HOOKTURN_STATE_DIR"])
    assert nowhere("stats").out.startswith(f"{stats['path']}:\n")
    assert nowhere("audit", "verify", "--json").json["records"] >= 1
    assert nowhere("report", "s1", "--format", "json").json["session_id"] == "s1"
    assert list(nowhere.project.iterdir()) == []


@pytest.mark.parametrize("why", ["git", "config", "own folder", "installed", "not the home folder"])
def test_a_project_keeps_its_own_files(nowhere, why):
    if why == "git":
        (nowhere.project / ".git").mkdir()
    elif why == "config":
        nowhere.write("hookturn.yaml", "{}\n")
    elif why == "own folder":
        (nowhere.project / ".hookturn").mkdir()
    elif why == "not the home folder":
        del nowhere.env["HOME"]
    else:
        nowhere.env["TMPDIR"] = nowhere.env.pop("HOME")
        assert nowhere("install", "claude-code", "--yes").code == 0
    call(nowhere)
    assert (nowhere.project / ".hookturn" / "stats.sqlite").exists()


def test_figures_of_a_folder_above_the_project_are_not_taken_for_its_own(nowhere):
    (nowhere.project / ".git").mkdir()
    call(nowhere)
    inner = nowhere.project / "inner"
    (inner / ".git").mkdir(parents=True)
    ran = nowhere("stats", cwd=inner)
    assert ran.code == 1
    assert f"there is no .hookturn/stats.sqlite in {inner}" in ran.err
    (inner / "sub").mkdir()
    assert nowhere("stats", cwd=inner / "sub").code == 1
    (nowhere.project / "sub").mkdir()
    assert nowhere("stats", cwd=nowhere.project / "sub").code == 0
