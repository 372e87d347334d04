"""Hook files of several agents and scopes in one project: who wins, who runs once, where paths start."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path

import pytest


def claude(*commands, matcher="Bash"):
    return {
        "hooks": {
            "PreToolUse": [
                {"matcher": matcher, "hooks": [{"type": "command", "command": item} for item in commands]}
            ]
        }
    }


def deny(words):
    return f"cat >/dev/null; echo {words} >&2; exit 2"


def rewrite(words):
    """A Claude Code hook that puts a word behind the command as it gets it."""
    code = f"import json, sys; d = json.load(sys.stdin)['tool_input']; d['command'] += ' {words}'; print(json.dumps({{'hookSpecificOutput': {{'hookEventName': 'PreToolUse', 'updatedInput': d}}}}))"
    return f'python3 -c "{code}"'


def named(command, **more):
    return {"event": "PreToolUse", "matcher": "bash", "command": command, **more}


# -- Claude Code's settings ---------------------------------------------------------------------------


def test_claude_settings_from_trust_to_replay(docs):
    docs.script(
        ".claude/hooks/guard.sh",
        "#!/bin/sh\ngrep -q 'git add' && { echo 'no adding' >&2; exit 2; }\nexit 0\n",
    )
    docs.write(".claude/settings.json", claude('"$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh'))
    assert docs.bash("git add -A")["decision"] is None
    (pending,) = docs.trust()
    assert list(pending["files"]) == [str(docs.folder / ".claude/hooks/guard.sh")]
    assert docs.run("check")["problems"] == []
    out = docs.bash("git add -A")
    assert (out["decision"], out["reason"]) == ("deny", "no adding")
    assert docs.bash("ls")["decision"] is None
    # A recorded session's own tools are spelled as the settings have them.
    docs.recorded()
    assert len(docs.run("replay", "session.jsonl")["not_run"]) == 1
    live = docs.run("replay", "session.jsonl", "--live")
    assert (live["denied"], live["not_run"], live["failures"]) == (1, [], 0)
    (hook, _) = docs.explain("pre_tool_execution", tool="edit", args={})["hooks"]
    assert "matcher: 'Bash' does not match" in hook["why"]


# -- two that rewrite (T22, T23) ----------------------------------------------------------------------


def test_two_rewrites_are_both_visible_in_the_order_of_the_files(docs):
    docs.write(".claude/settings.json", claude("sleep 0.3; " + rewrite("slow"), rewrite("quick")))
    docs.trust()
    for _ in range(3):
        out = docs.bash()
        assert out["event"]["args"] == {"command": "ls slow quick"}
        assert [
            (item["by"], item["before"]["command"], item["after"]["command"]) for item in out["rewrites"]
        ] == [
            ("claude-code.project.PreToolUse.1.1", "ls", "ls slow"),
            ("claude-code.project.PreToolUse.1.2", "ls slow", "ls slow quick"),
        ]


@pytest.mark.parametrize("order", [["silent", "rewriter"], ["rewriter", "silent"]])
def test_a_hook_without_an_opinion_wipes_nothing(docs, order):
    commands = {"silent": "cat >/dev/null", "rewriter": rewrite("more")}
    docs.write(".claude/settings.json", claude(*(commands[name] for name in order)))
    docs.trust()
    out = docs.bash()
    assert out["event"]["args"] == {"command": "ls more"}
    assert len(out["rewrites"]) == 1


def test_rewrites_of_several_dialects_follow_one_order(docs):
    docs.write(".claude/settings.json", claude(rewrite("claude")))
    docs.write(".hooks.json", {"hooks": {"atom": named(rewrite("atom"))}})
    docs.write(
        "role.yaml",
        "name: r\nprompt: p\nhooks:\n  custom:\n  - {name: role, events: [tool.execute.before], module: r.py, phase: before}\n",
    )
    docs.write("r.py", "def on_tool_before(ctx, tool, args):\n    args['command'] += ' role'\n")
    docs.write(
        "hookturn.yaml", "hooks:\n- {name: own, timings: [pre_tool_execution], run: {module: own.py}}\n"
    )
    docs.write(
        "own.py",
        "from hookturn import Rewrite\n\ndef pre_tool_execution(event):\n    return Rewrite(command=event.command + ' own')\n",
    )
    docs.trust()
    out = docs.bash()
    # role.yaml asked for `before`; then the project's own file, then foreign files in their order.
    assert [item["by"] for item in out["rewrites"]] == [
        "role",
        "own",
        "atom",
        "claude-code.project.PreToolUse.1.1",
    ]
    assert out["event"]["args"] == {"command": "ls role own atom claude"}


# -- scopes -------------------------------------------------------------------------------------------


def toml(name, script, **more):
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in more.items())
    return f'[[hooks]]\nname = "{name}"\ntrigger = "pre_tool"\nscript = "{script}"\n{lines}'


@pytest.mark.parametrize("form", ["hooks.json", "hooks.toml", "hookturn.yaml"])
def test_a_projects_entry_replaces_or_switches_off_the_users(docs, form):
    if form == "hooks.toml":
        docs.mine(".atomcode/hooks/a.sh", "echo 'deny: user'\n")
        docs.write(".atomcode/hooks/b.sh", "echo 'deny: project'\n")
        user = docs.mine(".atomcode/hooks/hooks.toml", toml("guard", "a.sh"))
        path, other, off = (
            ".atomcode/hooks/hooks.toml",
            toml("guard", "b.sh"),
            '[[hooks]]\nname = "guard"\nenabled = false\n',
        )
    elif form == "hooks.json":
        user = docs.mine(".atomcode/hooks.json", {"hooks": {"guard": named(deny("user"))}})
        path, other, off = (
            ".hooks.json",
            {"hooks": {"guard": named(deny("project"))}},
            {"hooks": {"guard": {"disabled": True}}},
        )
    else:
        text = (
            "hooks:\n- {name: guard, timings: [pre_tool_execution], run: {command: 'echo %s >&2; exit 2'}}\n"
        )
        user = docs.write("hookturn.yaml", text % "user", Path(docs.env["HOOKTURN_CONFIG_DIR"]))
        path, other, off = "hookturn.yaml", text % "project", "hooks:\n- {name: guard, enabled: false}\n"
    assert user.exists()
    assert docs.bash()["reason"] == "user"
    docs.write(path, other)
    assert docs.bash()["reason"] == "user"  # not trusted yet
    docs.trust()
    assert docs.bash()["reason"] == "project"
    docs.write(path, off)
    assert docs.bash()["reason"] == "user"  # that, too, has to be trusted
    docs.trust()
    assert docs.bash()["decision"] is None
    rows = [row for row in docs.run("plugins")["plugins"] if row["name"] == "guard"]
    assert {row["state"] for row in rows} <= {"disabled"}
    assert any("switched off" in row["reason"] for row in rows)


NOTE = "cat >/dev/null; echo x >> noted"


@pytest.mark.parametrize("form", ["claude", "hooks.json"])
def test_the_same_hook_in_two_scopes_runs_once(docs, form):
    if form == "claude":
        docs.mine(".claude/settings.json", claude(NOTE))
        for name in ("settings.json", "settings.local.json"):
            docs.write(f".claude/{name}", claude(NOTE))
    else:
        docs.mine(".atomcode/hooks.json", {"hooks": {"mine": named(NOTE)}})
        docs.write(".hooks.json", {"hooks": {"ours": named(NOTE)}})
    docs.trust()
    docs.bash()
    assert (docs.folder / "noted").read_text() == "x\n"


# -- where paths start (T40) --------------------------------------------------------------------------


def everything(docs):
    """Write a hook of every dialect that names its script by a relative path and notes its own name."""
    for name in ("claude", "atom", "own"):
        docs.script(f"tools/{name}.sh", f'#!/bin/sh\ncat >/dev/null\necho {name} >> "$NOTED"\n')
    docs.write(".claude/settings.json", claude("tools/claude.sh"))
    docs.write(".hooks.json", {"hooks": {"atom": named("./tools/atom.sh")}})
    docs.write(".atomcode/hooks/t.sh", 'cat >/dev/null\necho toml >> "$NOTED"\n')
    docs.write(".atomcode/hooks/hooks.toml", toml("toml", "./t.sh"))
    docs.write(
        "role.yaml",
        "name: r\nprompt: p\nhooks:\n  custom:\n  - {name: role, events: [tool.execute.before], module: tools/r.py}\n",
    )
    docs.write(
        "tools/r.py",
        "import os\n\ndef on_tool_before(ctx, tool, args):\n    with open(os.environ['NOTED'], 'a') as file:\n        file.write('role\\n')\n",
    )
    docs.write(
        "hookturn.yaml",
        "hooks:\n- {name: own, timings: [pre_tool_execution], run: {command: [tools/own.sh]}}\n",
    )
    return ["atom", "claude", "own", "role", "toml"]


def called(docs, tmp_path):
    noted = tmp_path / "noted"
    noted.unlink(missing_ok=True)
    docs.env["NOTED"] = str(noted)
    out = docs.bash()
    assert out["failures"] == []
    return sorted(noted.read_text().split()) if noted.exists() else []


def test_relative_paths_work_from_folders_below_the_project(docs, tmp_path):
    names = everything(docs)
    docs.trust()
    below = docs.folder / "sub" / "dir"
    below.mkdir(parents=True)
    for folder in (docs.folder, below):
        docs.cwd = folder
        assert called(docs, tmp_path) == names
    # The session's folder is another one still.
    out = docs.bash(cwd=str(below))
    assert out["failures"] == []


@pytest.mark.skipif(shutil.which("git") is None, reason="needs git")
def test_relative_paths_work_in_a_worktree(docs, tmp_path):
    names = everything(docs)
    git = [
        "git",
        "-c",
        "user.name=a",
        "-c",
        "user.email=a@b.example",
        "-c",
        "init.defaultBranch=main",
        "-C",
        str(docs.folder),
    ]
    shutil.rmtree(docs.folder / ".git")
    for words in (
        ["init", "-q"],
        ["add", "-A"],
        ["commit", "-qm", "x"],
        ["worktree", "add", "-q", str(tmp_path / "tree")],
    ):
        subprocess.run([*git, *words], check=True, env=docs.env)
    nested = docs.folder / "trees" / "nested"
    subprocess.run([*git, "worktree", "add", "-q", "-b", "nested", str(nested)], check=True, env=docs.env)
    docs.trust()
    for tree in (tmp_path / "tree", nested):
        docs.cwd = tree
        assert called(docs, tmp_path) == []  # a worktree is a checkout of its own: its files wait for trust
        docs.trust()
        (tree / "tools" / "own.sh").write_text((tree / "tools" / "own.sh").read_text())
        assert called(docs, tmp_path) == names
        inside = tree / "sub"
        inside.mkdir()
        docs.cwd = inside
        assert called(docs, tmp_path) == names


def test_a_missing_script_is_loud_and_no_deny(docs):
    docs.write(".claude/settings.json", claude("tools/gone.sh"))
    docs.write(".hooks.json", {"hooks": {"atom": named("python3 tools/gone.py")}})
    docs.write(".atomcode/hooks/hooks.toml", toml("toml", "./gone.sh"))
    docs.run("trust", "--yes", code=1)
    out = docs.bash()
    assert out["decision"] is None
    assert {failure["hook"] for failure in out["failures"]} == {"claude-code.project.PreToolUse.1.1", "atom"}
    problems = docs.run("check", code=1)["problems"]
    files = {item["file"] for item in problems if item["severity"] == "error"}
    assert files == {".claude/settings.json", ".hooks.json", ".atomcode/hooks/hooks.toml"}


# -- failing closed -----------------------------------------------------------------------------------


@pytest.mark.parametrize("how", ["crash", "exit code", "missing"])
@pytest.mark.parametrize("closed", [True, False])
def test_any_dialects_hook_can_fail_closed(docs, how, closed):
    broken = {"crash": "kill -9 $$", "exit code": "exit 3", "missing": "tools/gone.sh"}[how]
    code = {
        "crash": "def on_tool_before(ctx): 1/0\n",
        "exit code": "raise SystemExit(3)\n",
    }
    if how in code:
        docs.write("r.py", code[how])
    files = {
        "claude-code": (".claude/settings.json", claude(broken)),
        "atomcode": (".hooks.json", {"hooks": {"atom": named(broken)}}),
        "rolebox": (
            "role.yaml",
            "name: r\nprompt: p\nhooks:\n  custom:\n  - {name: role, events: [tool.execute.before], module: r.py, filter: {tools: [bash]}}\n",
        ),
    }
    names = {"claude-code": "claude-code.project.PreToolUse.1.1", "atomcode": "atom", "rolebox": "role"}
    for dialect, (path, content) in files.items():
        docs.write(path, content)
        pattern = "*" if dialect == "claude-code" else names[dialect]
        docs.write(
            "hookturn.yaml",
            f'dialects: {{{dialect}: {{fail_closed: ["{pattern if closed else "other"}"]}}}}\n',
        )
        docs.call("trust", "--yes", code=1 if how == "missing" and dialect == "rolebox" else 0)
        out = docs.bash()
        assert (out["decision"], names[dialect] in out["reason"]) == (
            ("deny", True) if closed else (None, False)
        ), dialect
        assert docs.fire("pre_tool_execution", tool="read", args={})["decision"] is None
        (docs.folder / path).unlink()


def test_fail_closed_takes_names(docs):
    docs.write("hookturn.yaml", "dialects: {atomcode: {fail_closed: yes please}}\n")
    (problem,) = [item for item in docs.run("check", code=1)["problems"] if item["severity"] == "error"]
    assert "expected a list of hooks' names or globs" in problem["cause"]
