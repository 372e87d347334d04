"""The table of Claude Code's published rules checks itself; the dialect's and the bridge's tests take their rows from it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

RULES = json.loads(
    (Path(__file__).parents[1] / "data" / "claude_code_rules.json").read_text(encoding="utf-8")
)


def fires(matcher: str | None, name: str) -> bool:
    """The matcher rule, said once more: a name or a list of names if it looks like one, else a search."""
    if not matcher or matcher == "*":
        return True
    if re.fullmatch(r"[A-Za-z0-9_ ,|-]+", matcher):
        return name in [part.strip() for part in re.split(r"[|,]", matcher)]
    return re.search(matcher, name) is not None


@pytest.mark.parametrize("row", RULES["matchers"], ids=lambda row: f"{row.get('matcher')!r}-{row['name']}")
def test_the_matcher_rows_follow_the_matcher_rule(row):
    assert fires(row.get("matcher"), row["name"]) is row["fires"], row["why"]


def test_the_matcher_rows_show_both_answers_of_both_forms():
    plain = re.compile(r"[A-Za-z0-9_ ,|-]+")
    shown = {(bool(plain.fullmatch(row.get("matcher") or "*")), row["fires"]) for row in RULES["matchers"]}
    assert shown == {(True, True), (True, False), (False, True), (False, False)}


def said(row: dict) -> dict | None:
    """The JSON object that a command printed, None where it printed none."""
    if not row["stdout"].lstrip().startswith("{"):
        return None
    try:
        return json.loads(row["stdout"])
    except ValueError:
        return None


@pytest.mark.parametrize("row", RULES["commands"], ids=lambda row: row["id"])
def test_the_rows_of_commands_follow_the_rules(row):
    assert row["effect"] in RULES["effects"]
    data, blocks = said(row), row["event"] in RULES["exit_2_blocks"]
    if row.get("timed_out"):
        assert row["effect"] == "nothing" and row["exit"] is None
    elif row["exit"] == 2 and blocks:
        assert row["effect"] in ("deny", "block", "continue")
        if "reason" in row:
            assert row["reason"] in row["stdout"] + row["stderr"]
    elif row["exit"] == 2:
        assert row["effect"] in ("nothing", "tell")
    elif row["exit"] != 0 and data is None:
        assert row["effect"] == "error"
    elif row["exit"] == 0 and not row["stdout"].lstrip().startswith("{"):
        plain = row["stdout"] and row["event"] in RULES["plain_text_is_context_on"]
        assert row["effect"] == ("context" if plain else "nothing")
    elif data is None:
        assert row["effect"] == "error"
    elif row["effect"] in ("deny", "ask", "allow"):
        inner = data.get("hookSpecificOutput", {})
        word = inner.get("permissionDecision") or {"block": "deny", "approve": "allow"}[data["decision"]]
        assert word == row["effect"]
    if row["effect"] == "context":
        assert row["context"] in row["stdout"] or row["context"] in json.dumps(data)


@pytest.mark.parametrize("row", RULES["http"], ids=lambda row: row["id"])
def test_the_rows_of_http_follow_the_rules(row):
    good = isinstance(row["status"], int) and 200 <= row["status"] < 300
    if not good:
        assert row["effect"] == "error"  # a status alone never blocks
    elif row["body"] == "":
        assert row["effect"] == "nothing"
    else:
        try:
            is_object = isinstance(json.loads(row["body"]), dict)
        except ValueError:
            is_object = False
        assert (row["effect"] == "error") is not is_object


@pytest.mark.parametrize("row", RULES["merging"], ids=lambda row: row["id"])
def test_the_rows_of_merging_follow_the_order(row):
    order = ["deny", "ask", "allow"]
    assert row["decision"] == next((word for word in order if word in row["hooks"]), None)


def test_the_table_is_whole():
    for part in ("commands", "http", "merging"):
        ids = [row["id"] for row in RULES[part]]
        assert len(set(ids)) == len(ids)
    assert {row["effect"] for part in ("commands", "http") for row in RULES[part]} == set(RULES["effects"])
    assert {row["fires"] for row in RULES["if_rules"]} == {True, False}
    assert not set(RULES["matcher_is_ignored_on"]) & set(RULES["matcher_looks_at"])
