"""Commands as hooks on the command line: fire runs them, explain and replay only with --live, check finds their faults."""

from __future__ import annotations

import json

import pytest

CONFIG = """\
hooks:
  - name: toucher
    timings: [pre_tool_execution]
    run: {command: "touch ran; echo 'no touching' >&2; exit 2"}
  - name: fixed
    timings: [pre_tool_execution]
    run: {answer: {warn: "w"}}
"""
EVENT = json.dumps({"tool": "bash", "args": {"command": "ls"}})
SESSION = "\n".join(
    json.dumps({"session_id": "s1", **event})
    for event in (
        {"timing": "on_session_start"},
        {"timing": "on_message_received", "text": "go"},
        {"timing": "pre_tool_execution", "call_id": "c1", "tool": "bash", "args": {"command": "ls"}},
        {"timing": "post_tool_execution", "call_id": "c1", "tool": "bash", "result": "x"},
        {"timing": "on_turn_complete", "text": "done"},
    )
)
NOT_RUN = "toucher: dry: runs only with --live"


@pytest.fixture
def commanded(cli):
    cli.write("hookturn.yaml", CONFIG)
    assert cli("trust", "--yes").code == 0
    return cli


def ran(cli):
    return (cli.project / "ran").exists()


def test_fire_runs_it(commanded):
    found = commanded("fire", "pre_tool_execution", "--event", "-", "--json", input=EVENT)
    assert (found.code, found.json["decision"], found.json["reason"], ran(commanded)) == (
        0,
        "deny",
        "no touching",
        True,
    )


def test_explain_lists_it_as_not_called(commanded):
    found = commanded("explain", "pre_tool_execution", "--event", "-", "--json", input=EVENT)
    hooks = {hook["name"]: hook for hook in found.json["hooks"]}
    assert (hooks["toucher"]["matched"], hooks["toucher"]["why"]) == (False, "dry: runs only with --live")
    assert hooks["fixed"]["matched"]
    records = {hook["name"]: hook["matched"] for hook in found.json["outcome"]["hooks"]}
    assert records["toucher"] is False
    assert (found.json["outcome"]["decision"], ran(commanded)) == (None, False)
    shown = commanded("explain", "pre_tool_execution", "--event", "-", input=EVENT)
    assert "not called: dry: runs only with --live" in shown.out


def test_explain_live(commanded):
    found = commanded("explain", "pre_tool_execution", "--event", "-", "--live", "--json", input=EVENT)
    assert (found.json["outcome"]["decision"], ran(commanded)) == ("deny", True)


@pytest.mark.parametrize("live", [False, True])
def test_replay(commanded, live):
    commanded.write("s.jsonl", SESSION)
    found = commanded("replay", "s.jsonl", "--json", *(["--live"] if live else []))
    assert (found.code, found.json["not_run"]) == (0, [] if live else [NOT_RUN])
    assert (found.json["denied"], ran(commanded)) == ((1, True) if live else (0, False))
    shown = commanded("replay", "s.jsonl", *(["--live"] if live else []))
    assert (NOT_RUN in shown.out) != live


def test_an_untrusted_command_does_not_run_live_either(cli):
    cli.write("hookturn.yaml", CONFIG)
    cli.write("s.jsonl", SESSION)
    found = cli("replay", "s.jsonl", "--live", "--json")
    assert [line.partition(":")[0] for line in found.json["not_run"]] == ["toucher"]
    assert not ran(cli)


def test_lists_show_it_as_loaded(commanded):
    rows = {row["name"]: row["state"] for row in commanded("plugins", "--json").json["plugins"]}
    assert rows["toucher"] == "loaded"
    steps = commanded("hooks", "pre_tool_execution", "--json").json["timings"]["pre_tool_execution"]
    assert "toucher" in [step["name"] for step in steps]
    assert commanded("check").code == 0
    assert not ran(commanded)


@pytest.mark.parametrize("trusted", [False, True])
def test_check_finds_missing_scripts_programs_and_interpreters(cli, trusted):
    cli.write("odd.sh", "#!/no/such/interpreter\n").chmod(0o755)
    cli.write("plain.sh", "#!/bin/sh\n")
    cli.write(
        "hookturn.yaml",
        "hooks:\n"
        + "".join(
            f"  - {{name: h{number}, timings: [on_error], run: {{command: {run}}}}}\n"
            for number, run in enumerate(
                [
                    "[python3, gone.py]",
                    "[./gone.sh]",
                    "[./plain.sh]",
                    "[./odd.sh]",
                    "[no-such-9]",
                    "no-such-9",
                    "'#x'",
                    "ls",
                ]
            )
        ),
    )
    if trusted:
        assert cli("trust", "--yes").code == 1  # two of the files are not there
    found = cli("check", "--json")
    assert found.code == 1
    errors = [problem for problem in found.json["problems"] if problem["severity"] == "error"]
    assert [(item["line"], item["path"]) for item in errors] == [
        (number + 2, f"hooks[{number}].run.command") for number in range(7)
    ]
    for problem, words in zip(
        errors,
        ("gone.py does not exist", "gone.sh does not exist", "not executable", "/no/such/interpreter", "in PATH", "in PATH", "a comment"),
        strict=True,
    ):  # fmt: skip
        assert words in problem["cause"]


def test_trust_shows_the_whole_command(cli):
    line = "echo " + "x" * 3000 + "; rm -rf everything"
    cli.write(
        "hookturn.yaml", f"hooks: [{{name: a, timings: [on_error], run: {{command: {json.dumps(line)}}}}}]"
    )
    assert line in cli("trust", "--yes").out
