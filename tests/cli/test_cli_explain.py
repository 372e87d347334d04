"""``hookturn explain``: order, matches, answers, the merged result; nothing has an effect."""

from __future__ import annotations

import json
import os

import pytest

MORE = """\
hooks:
  - name: late
    timings: [pre_tool_execution]
    run: {answer: {warn: "late"}}
    phase: after
  - name: early
    timings: [pre_tool_execution]
    run: {answer: {deny: "early"}}
    phase: before
    filter: {agents: [coder]}
  - name: second
    timings: [pre_tool_execution]
    run: {answer: {warn: "second"}}
    priority: 60
  - name: first
    timings: [pre_tool_execution]
    run: {answer: {warn: "first"}}
    priority: 10
  - name: guard
    timings: [pre_tool_execution]
    run: {answer: {ask: "sure?"}}
    guard: true
    filter: {tools: [write]}
  - name: watched
    timings: [pre_tool_execution]
    run: {answer: {deny: "only watched"}}
    mode: monitor
"""
ORDER = ["early", "first", "watched", "second", "late", "guard", "self-protection"]
BASH = json.dumps({"tool": "bash", "args": {"command": "git push"}})


@pytest.fixture
def more(cli):
    cli.write("hookturn.yaml", MORE + 'permissions: {ask: ["bash(git push*)"]}\n')
    # mode is loosening, so it needs trust
    assert cli("trust", "--yes").code == 0
    return cli


def test_without_an_event_the_order_and_filters_are_listed(more):
    ran = more("explain", "pre_tool_execution", "--json")
    out = ran.json
    assert ran.code == 0
    assert [hook["name"] for hook in out["hooks"]] == ORDER
    assert (out["outcome"], out["rule"]) == (None, None)
    by_name = {hook["name"]: hook for hook in out["hooks"]}
    early = by_name["early"]
    assert (early["tier"], early["priority"], early["source"]) == ("before", 50, "hookturn.yaml:6")
    assert early["filters"] == {"tools": None, "agents": ["coder"], "event_types": None}
    assert (early["matched"], early["answer"], early["micros"]) == (None, None, 0.0)
    assert by_name["watched"]["mode"] == "monitor"
    assert (by_name["guard"]["guard"], by_name["guard"]["enforced"]) == (True, False)
    assert by_name["self-protection"]["enforced"] is True


def test_without_an_event_no_hook_is_called(cli):
    cli.write("hooks.yaml", "hooks: [{name: own, run: {module: own.py}}]")
    cli.write("own.py", "def on_turn_start(event):\n    open('called', 'w').close()\n")
    assert cli("explain", "on_turn_start", "--with", "hooks.yaml").code == 0
    assert not (cli.project / "called").exists()
    assert cli("explain", "on_turn_start", "--with", "hooks.yaml", "--event", "-", input="{}").code == 0
    assert (cli.project / "called").exists()


def test_without_an_event_the_agent_still_tells_who_listens(more):
    hooks = {
        agent: more("explain", "pre_tool_execution", "--json", "--agent", agent).json["hooks"]
        for agent in ("coder", "main")
    }
    assert [hook["matched"] for hook in hooks["coder"]] == [None] * 7
    assert hooks["main"][0]["matched"] is False
    assert hooks["main"][0]["why"] == "agents: main is none of coder"


def test_with_an_event_each_match_answer_and_time_is_told(more):
    out = more("explain", "pre_tool_execution", "--json", "--event", "-", input=BASH).json
    hooks = {hook["name"]: hook for hook in out["hooks"]}
    assert [hook["name"] for hook in out["hooks"]] == ORDER
    assert (hooks["early"]["matched"], hooks["early"]["why"]) == (False, "agents: main is none of coder")
    assert hooks["guard"]["why"] == "tools: bash (bash) is none of write"
    assert hooks["first"]["answer"] == {"warn": "first"}
    assert (hooks["watched"]["would"], hooks["watched"]["answer"]["deny"]) == (True, "only watched")
    assert hooks["self-protection"]["answer"] is None
    assert all((hook["micros"] > 0) == hook["matched"] for hook in out["hooks"])
    assert out["rule"]["decision"] == "ask"
    assert out["rule"]["by"] == "rule bash(git push*)"
    assert out["outcome"]["decision"] == "ask"
    assert out["outcome"]["warnings"] == ["first", "second", "late"]
    assert out["outcome"]["event"]["dry_run"] is True


def test_what_a_deny_ends_is_listed_as_not_called(more):
    out = more("explain", "pre_tool_execution", "--json", "--agent", "coder", "--event", "-", input=BASH).json
    assert out["outcome"]["decision"] == "deny"
    why = {hook["name"]: hook["why"] for hook in out["hooks"] if not hook["matched"]}
    assert why["first"] == why["late"] == "early said deny"
    assert "self-protection" not in why


def test_the_rule_is_told_even_where_a_hook_decides(more):
    more.write("hookturn.yaml", MORE + 'permissions: {ask: ["bash(git push*)"]}\n')
    ran = more("explain", "pre_tool_execution", "--agent", "coder", "--event", "-", input=BASH)
    assert "  rule: ask, bash is to be asked about by a permission rule (hookturn.yaml:" in ran.out
    assert "pre_tool_execution: deny by early" in ran.out


def test_human_output_is_a_table_and_the_result(more):
    ran = more("explain", "pre_tool_execution", "--event", "-", input=BASH)
    assert (ran.code, ran.err) == (0, "")
    lines = ran.out.split("\n")
    assert lines[0] == "pre_tool_execution: 7 hooks, in this order"
    assert lines[1].split() == [
        "#",
        "tier",
        "priority",
        "hook",
        "source",
        "filters",
        "notes",
        "micros",
        "said",
    ]
    rows = [line.split() for line in lines[2:9]]
    assert [row[3] for row in rows] == ORDER
    assert "not called: agents: main is none of coder" in lines[2]
    assert "monitor only" in lines[4]
    assert "yields to always_allow" in lines[7]
    # aligned: every row's source begins in the header's column
    column = lines[1].index("source")
    assert all(line[column:].startswith("hookturn") for line in lines[2:9])
    assert "pre_tool_execution: ask by rule bash(git push*)" in lines


def test_nothing_is_written(more):
    more.write("hooks.yaml", "hooks: [{name: own, run: {module: own.py}}]")
    more.write(
        "own.py",
        "import os\n"
        "def on_turn_start(event, ctx):\n"
        "    os.makedirs(ctx.output_dir, exist_ok=True)\n"
        "    open(os.path.join(ctx.output_dir, 'record'), 'w').close()\n"
        "    from hookturn import Warn\n"
        "    return Warn(ctx.output_dir)\n",
    )
    before = sorted(more.project.rglob("*"))
    out = more("explain", "on_turn_start", "--with", "hooks.yaml", "--json", "--event", "-", input="{}").json
    assert sorted(more.project.rglob("*")) == before
    (folder,) = out["outcome"]["warnings"]
    assert not folder.startswith(str(more.project))
    assert not os.path.exists(folder)


def test_a_failing_hook_is_told(cli):
    cli.write("hooks.yaml", "hooks: [{name: own, run: {module: own.py}, on_failure: deny}]")
    cli.write("own.py", "def pre_tool_execution(event):\n    raise KeyError('x')\n")
    words = ["explain", "pre_tool_execution", "--with", "hooks.yaml", "--event", "-"]
    out = cli(*words, "--json", input=BASH).json
    assert out["hooks"][0]["error"] == "KeyError: 'x'"
    assert (out["hooks"][0]["on_failure"], out["outcome"]["decision"]) == ("deny", "deny")
    assert "failed: KeyError: 'x'" in cli(*words, input=BASH).out


def test_a_timing_without_hooks(cli):
    ran = cli("explain", "on_turn_start")
    assert (ran.code, ran.out) == (0, "on_turn_start: no hook is registered here\n")
    ran = cli("explain", "on_turn_start", "--event", "-", input="{}")
    assert ran.out == "on_turn_start: no hook is registered here\n\non_turn_start: no decision\n"


def test_the_rule_is_asked_about_the_call_as_rewritten(cli):
    cli.write(
        "hooks.yaml",
        "hooks:\n"
        "  - name: rewrites\n"
        "    timings: [pre_tool_execution]\n"
        "    run: {answer: {rewrite: {command: 'ls'}}}\n"
        "permissions: {deny: ['bash(git *)']}\n",
    )
    words = ["explain", "pre_tool_execution", "--with", "hooks.yaml", "--json", "--event", "-"]
    out = cli(*words, input=BASH).json
    assert (out["rule"], out["outcome"]["decision"]) == (None, None)
    out = cli(*words, "-p", "no:rewrites", input=BASH).json
    assert (out["rule"]["decision"], out["outcome"]["decision"]) == ("deny", "deny")
