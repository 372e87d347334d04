"""What ``hookturn check`` finds in AtomCode's files, and what hostile files cost."""

from __future__ import annotations

import json
import os
import shutil
from pathlib import Path

import pytest

from hookturn.cli import main

DATA = Path(__file__).parents[2] / "data" / "atomcode"


def hook(command, event="PreToolUse", **more):
    return {"event": event, "command": command, **more}


DOUBTS = {
    "no quotes around the project": (
        hook("ls $ATOMCODE_PROJECT_DIR"),
        "$ATOMCODE_PROJECT_DIR stands without quotes",
    ),
    "no quotes around Claude's name of it": (
        hook("ls ${CLAUDE_PROJECT_DIR}"),
        "$CLAUDE_PROJECT_DIR stands without quotes",
    ),
    "a variable that nobody sets": (
        hook('echo "$ATOMCODE_HOOK_TYPE"'),
        "nobody sets the variable ATOMCODE_HOOK_TYPE",
    ),
    "bash words": (hook('[[ "$X" == y ]] && exit 2'), "is read by sh, which does not know [[ ... ]]"),
    "process substitution": (hook("diff <(ls) x"), "which does not know <( ... )"),
    "a missing script": (hook("python3 tools/guard.py --all"), "tools/guard.py does not exist"),
    "a missing script by variable": (
        hook('"$ATOMCODE_PROJECT_DIR"/guard.sh'),
        "guard.sh does not exist",
    ),
    "a comment": (hook("# python3 guard.py"), "the line is a comment"),
    "a missing program": (hook("no-such-program-here"), "there is no program 'no-such-program-here'"),
    "milliseconds that are seconds": (
        hook("true", timeout_ms=10),
        "timeout_ms is in milliseconds: no program is done in 10",
    ),
    "hours": (hook("true", timeout_ms=7_200_000), "timeout_ms is in milliseconds: 7200000 are 2.0 hours"),
    "a permission rule": (
        hook("true", matcher="Bash(git push*)"),
        "is a permission rule: it matches no tool",
    ),
    "a regular expression": (hook("true", matcher="edit_.*"), "is a regular expression: it matches no tool"),
    "another agent's tool": (hook("true", matcher="Bash"), "matches no tool (did you mean 'bash'?)"),
    "a made-up expression": (hook("true", matcher="bash || grep"), "an empty alternative"),
    "a server's name alone": (hook("true", matcher="mcp__github"), "is no tool's name"),
    "a matcher where there is none": (hook("true", "Stop", matcher="bash"), "Stop has no matcher"),
    "an unknown key": (hook("true", timeout=3), "unknown key 'timeout' (did you mean 'timeout_ms'?)"),
}


@pytest.mark.parametrize("row", DOUBTS)
def test_doubts_of_hooks_json(atom, row):
    entry, words = DOUBTS[row]
    atom.json({"h": entry})
    (problem,) = atom.problems()
    assert words in problem
    assert problem.startswith(".hooks.json:3:") or problem.startswith((".hooks.json:6:", ".hooks.json:7:"))


@pytest.mark.parametrize(
    "command",
    [
        '"$ATOMCODE_PROJECT_DIR"/x.sh || true',
        "echo '$ATOMCODE_PROJECT_DIR'",
        "bash -c '[[ 1 == 1 ]]'",
        'ATOMCODE_X=1; echo "$ATOMCODE_X"',
        'cat "${ATOMCODE_HOOK_CONTEXT_FILE}"',
    ],
)
def test_nothing_is_wrong_with(atom, command):
    atom.json({"h": hook(command, matcher="web*|mcp__*__delete|edit_file")})
    assert atom.problems() == []


def test_generation_1_takes_one_name_or_a_begin(atom):
    atom.settings = {"generation": 1}
    atom.json({"h": hook("true", matcher="bash|grep")})
    assert "generation 1 takes one name" in atom.problems()[0]


SCRIPTS = {
    "bash words under sh": (
        '"x.sh"',
        "#!/bin/sh\n# [[ is fine here\n[[ -n $X ]] && echo hi\n",
        "does not know [[ ... ]]",
    ),
    "milliseconds": (
        '"x.sh"\ntimeout_secs = 2000',
        "exit 0\n",
        "timeout_secs is in seconds: 2000 are 33 minutes",
    ),
    "no script": ('"y.sh"', "exit 0\n", "y.sh does not exist"),
}


@pytest.mark.parametrize("row", SCRIPTS)
def test_doubts_of_hooks_toml(atom, row):
    script, body, words = SCRIPTS[row]
    atom.toml(f'[[hooks]]\nname = "h"\ntrigger = "pre_tool"\nscript = {script}\n')
    atom.script("x.sh", body)
    (problem,) = atom.problems()
    assert words in problem


def run(atom, capsys, *args):
    code = main([*args, "--project", str(atom.folder), "--json"])
    return code, json.loads(capsys.readouterr().out)


def test_check_finds_them(atom, capsys):
    atom.json({"good": hook("true"), "bad": hook("true", "PreToolUsed")})
    code, report = run(atom, capsys, "check")
    assert code == 1
    (found,) = [item for item in report["problems"] if item["path"] == "hooks.bad.event"]
    assert "did you mean 'PreToolUse'?" in found["cause"]


def test_fire_runs_the_examples_of_the_documents_unmodified(atom, capsys):
    shutil.copytree(DATA / "hooks", atom.folder / ".atomcode/hooks")
    shutil.copytree(DATA / "tools", atom.folder / "tools")
    shutil.copy(DATA / "hooks.json", atom.folder / ".hooks.json")
    made = atom.assemble()  # trusts the files
    assert [str(problem) for problem in made.problems] == []

    def fire(timing, **event):
        path = atom.write("event.json", json.dumps(event))
        code, out = run(atom, capsys, "fire", timing, "--event", str(path))
        assert (code, out["failures"]) == (0, [])
        return out

    out = fire("pre_tool_execution", tool="bash", args={"command": "ls"})
    assert (out["decision"], out["reason"], out["by"]) == ("ask", "network", "net-ask")
    assert out["event"]["args"] == {"command": "curl -sS https://example.net"}
    out = fire("pre_tool_execution", tool="edit", args={"path": "/etc/passwd"})
    assert (out["decision"], out["reason"], out["by"]) == ("deny", "not in /etc", "deny-etc")
    fire("post_tool_execution", tool="bash", args={}, status="error", result="x")
    assert atom.seen(".fail.jsonl")["hook_event_name"] == "PostToolUseFailure"
    assert fire("system_prompt", parts=[])["injected"] == ["Write tests first."]
    out = fire("on_user_prompt_submit", prompt="-----BEGIN PRIVATE KEY-----")
    assert (out["decision"], out["reason"]) == ("block", "That prompt holds a private key.")
    assert fire("on_user_prompt_submit", prompt="hello")["decision"] is None


GOOD = hook("echo no; exit 2")


HOSTILE = {
    "bad entries between good ones": lambda atom: atom.json({"a": 5, "b": GOOD, "c": []}),
    "a wrong root": lambda atom: atom.write(".hooks.json", "[1, 2]"),
    "a number as root": lambda atom: atom.write(".hooks.json", "1e999"),
    "ten megabytes": lambda atom: atom.write(".hooks.json", '{"hooks": {"a": "%s"}}' % ("x" * 10_000_000)),
    "nested too deep": lambda atom: atom.write(".hooks.json", "[" * 100_000),
    "no UTF-8": lambda atom: (atom.folder / ".hooks.json").write_bytes(b'{"hooks": {"\xff": 1}}'),
    "a link to nothing": lambda atom: os.symlink("/nowhere", atom.folder / ".hooks.json"),
    "a link to itself": lambda atom: os.symlink(".hooks.json", atom.folder / ".hooks.json"),
    "a pipe": lambda atom: os.mkfifo(atom.folder / ".hooks.json"),
    "a folder": lambda atom: (atom.folder / ".hooks.json").mkdir(),
    "wrong root in TOML": lambda atom: atom.toml("hooks = 5\nwebhooks = {}\nasync_webhooks = [1]\n"),
    "names with control characters": lambda atom: atom.json({"\u001b[31m\n": hook("true", "x\u001b[2J")}),
    "two thousand entries": lambda atom: atom.json({f"h{n}": hook("true", "Bogus") for n in range(2_000)}),
    "a list of plugins that is none": lambda atom: atom.write("plugins/installed_plugins.json", '{"plugins": [1]}', atom.home),
}  # fmt: skip


@pytest.mark.parametrize("row", HOSTILE)
def test_hostile_files_cost_only_themselves(atom, row):
    HOSTILE[row](atom)
    atom.json({"guard": GOOD}, user=True)
    made = atom.assemble()
    assert atom.pre(engine=made.engine).reason == "no"
    for problem in made.problems:
        assert str(problem).isprintable()
    assert bool(made.problems) is (row != "a list of plugins that is none")


def test_a_link_out_of_the_project_is_read_as_the_projects_and_needs_trust(atom):
    secret = atom.folder.parent / "other.json"
    secret.write_text(json.dumps({"hooks": {"h": GOOD}}))
    os.symlink(secret, atom.folder / ".hooks.json")
    made = atom.assemble(trust=False)
    assert atom.pre(engine=made.engine).decision is None
