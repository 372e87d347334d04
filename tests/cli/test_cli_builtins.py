"""The commands with the builtins as they are installed: what a user has after ``pip install hookturn``."""

from __future__ import annotations

import json

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
