"""Claude Code's hook files: where they lie, what in them counts, and what is said of what does not."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from hookturn.agents.claude_code import config
from hookturn.project import foreign


def words(problems):
    return [str(problem) for problem in problems]


DENY = "echo no >&2; exit 2"


def named(reason):
    return f"echo {reason} >&2; exit 2"


def test_the_files_and_their_order(claude):
    environ = {"HOME": str(claude.home)}
    found = [
        (place.kind, place.layer, place.label) for place in config.files(str(claude.folder), environ, {})
    ]
    assert found == [
        ("managed", "managed", config.MANAGED["linux"]),
        ("user", "user", str(claude.home / ".claude" / "settings.json")),
        ("project", "project", ".claude/settings.json"),
        ("local", "project", ".claude/settings.local.json"),
        ("nobody", "project", ".claude/hooks/hooks.json"),
    ]
    moved = config.files(str(claude.folder), {**environ, "CLAUDE_CONFIG_DIR": "/elsewhere"}, {})
    assert moved[1].path == "/elsewhere/settings.json"
    assert [place.kind for place in config.files(str(claude.folder), {}, {})][1] == "project"


def test_a_home_that_is_the_project_is_read_once(claude):
    places = config.files(str(claude.home), {"HOME": str(claude.home)}, {})
    assert [place.kind for place in places].count("user") == 0


def test_all_scopes_add_up(claude, monkeypatch):
    claude.write(
        "managed-settings.json",
        {"hooks": {"PostToolUse": [claude.group(claude.handler("true"))]}},
        claude.folder.parent / "managed",
    )
    claude.user(PreToolUse=[claude.group(claude.handler("exit 0"))])
    claude.settings(PreToolUse=[claude.group(claude.handler("exit 0 # project"))])
    claude.settings("settings.local.json", PreToolUse=[claude.group(claude.handler(named("local")))])
    claude.trust()
    assert claude.rows() == {
        "managed.PostToolUse.1.1": ("loaded", ""),
        "user.PreToolUse.1.1": ("loaded", ""),
        "project.PreToolUse.1.1": ("loaded", ""),
        "local.PreToolUse.1.1": ("loaded", ""),
    }
    assert claude.tool(command="ls").reason == "local"


def test_a_projects_hooks_wait_for_trust_in_hook_and_script(claude):
    claude.script(".claude/hooks/guard.sh", "#!/bin/sh\necho first >&2; exit 2\n")
    claude.settings(PreToolUse=[claude.group(claude.handler('"$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh'))])
    assert claude.tool(command="ls").decision is None
    assert claude.rows()["project.PreToolUse.1.1"][0] == "untrusted"
    claude.trust()
    assert claude.tool(command="ls").reason == "first"
    claude.script(".claude/hooks/guard.sh", "#!/bin/sh\necho second >&2; exit 2\n")
    assert claude.tool(command="ls").decision is None
    assert "changed" in claude.rows()["project.PreToolUse.1.1"][1]


@pytest.mark.parametrize(
    "line",
    [
        '"$CLAUDE_PROJECT_DIR"/.claude/hooks/guard.sh',
        '"${CLAUDE_PROJECT_DIR}/.claude/hooks/guard.sh" --strict',
        'bash "$CLAUDE_PROJECT_DIR/.claude/hooks/guard.sh"',
        "sh -c '\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/guard.sh || exit 2'",
        '"${CLAUDE_PROJECT_DIR:-.}"/.claude/hooks/guard.sh',
        "./.claude/hooks/guard.sh",
        "[ -f .claude/hooks/guard.sh ] && sh .claude/hooks/guard.sh; true",
    ],
)
def test_trust_covers_the_scripts_of_a_line(claude, line):
    path = claude.script(".claude/hooks/guard.sh", "#!/bin/sh\n")
    claude.settings(PreToolUse=[claude.group(claude.handler(line))])
    (entry,), problems = claude.reading()
    assert problems == []
    assert config.own_files(entry, str(claude.folder)) == [str(path)]


def test_the_same_hook_in_two_scopes_runs_once(claude):
    hook = claude.handler("echo ran >> ran.txt", timeout=5)
    claude.user(PreToolUse=[claude.group(hook, matcher="Bash")])
    claude.settings(PreToolUse=[claude.group(hook, matcher="Bash")])
    claude.settings("settings.local.json", PreToolUse=[claude.group(hook, matcher="Edit")])
    claude.trust()
    rows = claude.rows()
    state, why = rows["project.PreToolUse.1.1"]
    assert state == "disabled" and "declared in" in why and "already" in why
    assert rows["local.PreToolUse.1.1"][0] == "loaded"
    claude.tool(command="ls")
    assert (claude.folder / "ran.txt").read_text() == "ran\n"


def test_switches(claude):
    claude.user(PreToolUse=[claude.group(claude.handler(named("user")))])
    claude.settings(PreToolUse=[claude.group(claude.handler(named("project")))])
    claude.trust()
    claude.write(".claude/settings.local.json", {"disableAllHooks": True})
    assert claude.tool(command="ls").reason == "user"  # not trusted yet: it loosens
    claude.trust()
    assert claude.tool(command="ls").decision is None
    assert claude.rows()["user.PreToolUse.1.1"] == (
        "disabled",
        "disableAllHooks is set in .claude/settings.local.json",
    )


def test_a_nearer_file_switches_hooks_on_again(claude):
    claude.write(
        ".claude/settings.json",
        {"disableAllHooks": True, "hooks": {"PreToolUse": [claude.group(claude.handler(DENY))]}},
    )
    claude.write(".claude/settings.local.json", {"disableAllHooks": False})
    claude.trust()
    assert claude.tool(command="ls").decision == "deny"


def test_the_administrator_switches_all_others_off(claude):
    managed = claude.folder.parent / "managed"
    claude.user(PreToolUse=[claude.group(claude.handler(named("user")))])
    own = {"PreToolUse": [claude.group(claude.handler(named("managed")))]}
    claude.write("managed-settings.json", {"allowManagedHooksOnly": True, "hooks": own}, managed)
    assert claude.tool(command="ls").reason == "managed"
    assert claude.rows()["user.PreToolUse.1.1"][0] == "disabled"
    claude.write("managed-settings.json", {"hooks": own}, managed)
    claude.write(".claude/settings.json", {"disableAllHooks": True}, claude.home)
    assert claude.tool(command="ls").reason == "managed"


def test_entries_that_call_us_never_run(claude):
    claude.user(
        PreToolUse=[
            claude.group(
                claude.handler("touch ran; hookturn bridge claude-code"),
                {"type": "http", "url": "http://127.0.0.1:41234/hooks/claude-code"},
                claude.handler("/x/bin/hookturn", args=["bridge", "claude-code"]),
            )
        ]
    )
    claude.tool(command="ls")
    assert not (claude.folder / "ran").exists()
    assert {why for _, why in claude.rows().values()} == {"it calls hookturn itself"}


def test_what_install_writes_into_a_project_needs_no_trust_and_warns_of_nothing(claude):
    command = claude.handler(
        "/x/bin/python -I -S /x/hookturn/serve/client.py bridge claude-code --timeout 60"
    )
    http = {
        "type": "http",
        "url": "http://127.0.0.1:41234/hooks/claude-code",
        "headers": {"Authorization": "Bearer abc"},
    }
    claude.settings(PreToolUse=[claude.group(command)], PostToolBatch=[claude.group(command, http)])
    assembled = claude.assemble()
    assert words(assembled.problems) == []
    assert {reason for _, reason in claude.rows(assembled).values()} == {"it calls hookturn itself"}
    claude.settings(PostToolBatch=[claude.group(command, claude.handler("./mine.sh"))])
    assert any("PostToolBatch never fires here" in text for text in words(claude.assemble().problems))


def test_handlers_that_need_claude_code_are_told_and_not_run(claude):
    claude.user(
        Stop=[
            claude.group(
                {"type": "prompt", "prompt": "done? $ARGUMENTS"},
                {"type": "agent", "prompt": "done?"},
                {"type": "mcp_tool", "server": "a", "tool": "b"},
                claude.handler("Write-Host x", shell="powershell"),
            )
        ]
    )
    assembled = claude.assemble()
    assert [state for state, _ in claude.rows(assembled).values()] == ["disabled"] * 4
    assert sum("not run by hookturn" in text for text in words(assembled.problems)) == 4
    assert {problem.severity for problem in assembled.problems} == {"warning"}


def test_a_bad_matcher_costs_its_own_group_only(claude):
    claude.settings(
        PreToolUse=[
            claude.group(claude.handler("exit 0"), matcher="Edit"),
            claude.group(claude.handler("exit 0"), matcher={"type": "always"}),
            claude.group(claude.handler(named("good")), matcher="Bash"),
        ]
    )
    claude.trust()
    assembled = claude.assemble()
    assert set(claude.rows(assembled)) == {"project.PreToolUse.1.1", "project.PreToolUse.3.1"}
    assert words(assembled.problems) == [
        ".claude/settings.json:14:16: hooks.PreToolUse[1].matcher: a matcher must be a string, not an object. "
        'Write "Bash" or "Edit|Write".'
    ]
    assert claude.tool(assembled=assembled, command="ls").reason == "good"


BAD = [
    ({"PreToolUse": {"matcher": "x"}}, "PreToolUse must be an array of groups"),
    ({"PreToolUse": ["x"]}, "a group of hooks must be an object"),
    ({"PreToolUse": [{"type": "command", "command": "x"}]}, "a hook stands where a group of hooks belongs"),
    ({"PreToolUse": [{"matcher": "Bash"}]}, 'a group needs an array "hooks"'),
    ({"PreToolUse": [{"hooks": "x"}]}, 'a group needs an array "hooks"'),
    ({"PreToolUse": [{"hooks": ["x"]}]}, "a hook must be an object"),
    ({"PreToolUse": [{"hooks": [{"command": "x"}]}]}, 'a hook needs a "type"'),
    ({"PreToolUse": [{"hooks": [{"type": "comand", "command": "x"}]}]}, "did you mean 'command'"),
    ({"PreToolUse": [{"hooks": [{"type": "command"}]}]}, 'needs a string "command"'),
    ({"PreToolUse": [{"hooks": [{"type": "command", "command": ["x"]}]}]}, 'needs a string "command"'),
    ({"PreToolUse": [{"hooks": [{"type": "command", "command": " "}]}]}, 'needs a string "command"'),
    (
        {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "args": "y"}]}]},
        "args must be an array",
    ),
    ({"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "shell": "fish"}]}]}, "shell must be"),
    ({"PreToolUse": [{"hooks": [{"type": "http"}]}]}, 'needs a string "url"'),
    (
        {"PreToolUse": [{"hooks": [{"type": "http", "url": "http://x", "headers": {"a": 1}}]}]},
        "headers must be",
    ),
    (
        {"PreToolUse": [{"matcher": "(?i)bash", "hooks": [{"type": "command", "command": "x"}]}]},
        "Case always counts",
    ),
    (
        {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "if": ["Bash"]}]}]},
        '"if" must be a string',
    ),
    (
        {"PreToolUse": [{"hooks": [{"type": "command", "command": "x", "if": "Bash("}]}]},
        "is no permission rule",
    ),
    ({"Stop": [{"hooks": [{"type": "command", "command": "x", "if": "Bash"}]}]}, "never runs"),
    (
        {"SessionStart": [{"hooks": [{"type": "http", "url": "https://x.example"}]}]},
        "takes no hook of type http",
    ),
    ({"SessionEnd": [{"hooks": [{"type": "prompt", "prompt": "x"}]}]}, "takes no hook of type prompt"),
    ({"Bash": [{"hooks": [{"type": "command", "command": "x"}]}]}, "is a tool, not an event"),
    ({"BeforeTool": []}, "Claude Code's is PreToolUse"),
    ({"preToolUse": []}, "Claude Code's is PreToolUse"),
    ({"PreTooluse": []}, "did you mean 'PreToolUse'"),
]


@pytest.mark.parametrize(("hooks", "cause"), BAD, ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_wrong_costs_itself_and_is_told(claude, hooks, cause):
    claude.write(".claude/settings.json", {"hooks": hooks})
    entries, problems = claude.reading()
    assert entries == []
    (problem,) = problems
    assert cause in str(problem)
    assert problem.severity == "error"
    assert problem.path.startswith("hooks.")


ODD = [
    ({"command": "x", "timeout": 60000}, "timeout is in seconds: 60000 are 16.7 hours"),
    ({"command": "x", "timeout_ms": 5}, "Write timeout (in seconds)"),
    ({"command": "x", "tiemout": 5}, "did you mean 'timeout'"),
    ({"command": "x", "once": True}, "'once' counts in skills only"),
    ({"command": "x", "url": "https://x"}, "is no field of a hook of type command"),
    ({"command": "x", "matcher": "Bash"}, "matcher of the group"),
    ({"command": "x", "if": "bash(git *)"}, "a tool that Claude Code does not have"),
]


@pytest.mark.parametrize(("fields", "cause"), ODD, ids=lambda value: value if isinstance(value, str) else "")
def test_what_is_odd_is_told_and_the_hook_runs(claude, fields, cause):
    claude.settings(PreToolUse=[claude.group({"type": "command", **fields})])
    (entry,), (problem,) = claude.reading()
    assert problem.severity == "warning"
    assert cause in str(problem)
    assert entry.run == "x"


def test_a_wrong_time_limit_leaves_the_usual_one(claude):
    claude.settings(PreToolUse=[claude.group(claude.handler("x", timeout="5"))])
    (entry,), (problem,) = claude.reading()
    assert entry.options["timeout"] == 600
    assert "timeout must be seconds above 0; 600 count" in str(problem)


@pytest.mark.parametrize(
    ("event", "given", "limit"),
    [("PreToolUse", None, 600), ("PreToolUse", 2, 2), ("UserPromptSubmit", None, 30), ("MessageDisplay", None, 10),
     ("SessionEnd", None, 1.5), ("SessionEnd", 300, 60), ("SessionEnd", 20, 20)],
)  # fmt: skip
def test_time_limits(claude, event, given, limit):
    more = {} if given is None else {"timeout": given}
    claude.settings(**{event: [claude.group(claude.handler("x", **more))]})
    (entry,), _ = claude.reading()
    assert entry.options["timeout"] == limit


def test_events_that_nothing_tells_of_and_take_overs(claude):
    claude.settings(
        **{name: [claude.group(claude.handler("x"))] for name in ("WorktreeCreate", "TaskCreated", "Stop")}
    )
    entries, problems = claude.reading()
    assert len(entries) == 3
    assert [problem.severity for problem in problems] == ["warning", "warning"]
    assert "takes over" in str(problems[0])
    assert "TaskCreated never fires here" in str(problems[1]) and "'task.created'" in str(problems[1])


def test_a_matcher_where_none_counts(claude):
    claude.settings(Stop=[claude.group(claude.handler("x"), matcher="Bash")])
    _, (problem,) = claude.reading()
    assert "has no matcher" in str(problem)


LINES = [
    ("# comment", "comment: nothing would run"),
    ("[[ $x == y ]] && exit 2", "which does not know [[ ... ]]"),
    ("source ./env; check", "source"),
    ("grep -q x <<< \"$y\"", "<<<"),
    ("check &> /dev/null", "&>"),
    ("diff <(a) <(b)", "<( ... )"),
    ("x=${y//a/b}; z", "${x//a/b}"),
    ("[ \"$a\" == b ] && exit 2", "== in [ ... ]"),
    ("$CLAUDE_PROJECT_DIR/x.sh; true", "stands without quotes"),
    ("python3 ${CLAUDE_PROJECT_DIR}/x.py || true", "stands without quotes"),
    ("echo \"$CLAUDE_TOOL_INPUT\" | jq .", "nobody sets the variable CLAUDE_TOOL_INPUT"),
    ("prettier --write \"$CLAUDE_FILE_PATHS\"", "nobody sets the variable CLAUDE_FILE_PATHS"),
    ("\"$CLAUDE_PROJECT_DIR\"/.claude/hooks/missing.sh", "missing.sh does not exist"),
    ("python3 \"$CLAUDE_PROJECT_DIR\"/.claude/hooks/missing.py", "missing.py does not exist"),
    (".claude/hooks/plain.sh", "is not executable"),
]  # fmt: skip


@pytest.mark.parametrize(("line", "cause"), LINES)
def test_lines_that_can_never_say_no_are_found(claude, line, cause):
    claude.write(".claude/hooks/plain.sh", "#!/bin/sh\n")
    claude.settings(PreToolUse=[claude.group(claude.handler(line))])
    (entry,), _ = claude.reading()
    found = [wrong.cause for wrong in config.wrongs(entry, str(claude.folder))]
    assert any(cause in text for text in found), found


@pytest.mark.parametrize(
    "line",
    [
        '"$CLAUDE_PROJECT_DIR"/.claude/hooks/good.sh',
        'sh "$CLAUDE_PROJECT_DIR/.claude/hooks/good.sh" | cat',
        "jq -r '.tool_input.command' | grep -q 'rm [[:space:]]' && exit 2",
        "echo '[[ x ]] $CLAUDE_PROJECT_DIR'; exit 0",
        'FILE_PATH=$(jq -r .tool_input.file_path); echo "$FILE_PATH"',
        'cd "$CLAUDE_PROJECT_DIR" && make 2>&1 && echo done',
        '[ "$(cat)" = x ] || exit 2',
        "grep -E 'a|b' && exit 2",
    ],
)
def test_good_lines_are_left_alone(claude, line):
    claude.script(".claude/hooks/good.sh", "#!/bin/sh\n")
    claude.settings(PreToolUse=[claude.group(claude.handler(line))])
    (entry,), problems = claude.reading()
    assert problems == []
    assert list(config.wrongs(entry, str(claude.folder))) == []


def test_a_file_that_nobody_reads_is_told(claude):
    claude.write(".claude/hooks/hooks.json", {"hooks": {"PreToolUse": [claude.group(claude.handler(DENY))]}})
    entries, problems = claude.reading(".claude/hooks/hooks.json")
    assert entries == []
    assert "Claude Code does not read this file" in str(problems[0])


@pytest.mark.parametrize(
    ("content", "cause"),
    [
        (b"[]", "object"),
        (b'"hooks"', "object"),
        (b"", "empty"),
        (b"{", ""),
        (b"\xff\xfe{}", ""),
        (b'{"hooks": []}', '"hooks" must be an object'),
        (b'{"hooks": "x"}', '"hooks" must be an object'),
        (b'{"PreToolUse": []}', 'there is no "hooks" in the file'),
        (b'{"disableAllHooks": "yes"}', "must be true or false"),
        (b'{"hooks": {}, "x": ' + b"[" * 5000 + b"]" * 5000 + b"}", ""),
        (b'{"hooks": {}, "x": "' + b"a" * 10_000_000 + b'"}', ""),
    ],
)
def test_wrong_files_cost_only_themselves(claude, content, cause):
    claude.user(PreToolUse=[claude.group(claude.handler(named("user")))])
    claude.write(".claude/settings.json", content)
    claude.trust()
    assembled = claude.assemble()
    assert claude.tool(assembled=assembled, command="ls").reason == "user"
    problems = [problem for problem in assembled.problems if problem.file == ".claude/settings.json"]
    assert problems and cause in str(problems[0])


def test_a_file_without_hooks_is_fine(claude):
    claude.write(".claude/settings.json", {"permissions": {"allow": ["Bash(ls)"]}, "model": "opus"})
    assert claude.reading() == ([], [])


@pytest.mark.parametrize("form", ["bom", "crlf", "comments"])
def test_files_of_other_editors(claude, form):
    text = json.dumps({"hooks": {"PreToolUse": [claude.group(claude.handler(DENY))]}}, indent=1)
    if form == "bom":
        content = b"\xef\xbb\xbf" + text.encode()
    elif form == "crlf":
        content = text.replace("\n", "\r\n").encode()
    else:
        content = b"// guards\n" + text.encode().replace(b"[", b"[ /* all */", 1)
    claude.write(".claude/settings.json", content)
    claude.trust()
    assert claude.tool(command="ls").decision == "deny"


@pytest.mark.parametrize("kind", ["loop", "nothing", "folder", "device"])
def test_what_is_no_file_costs_only_itself(claude, kind):
    claude.user(PreToolUse=[claude.group(claude.handler(named("user")))])
    path = claude.folder / ".claude" / "settings.json"
    if kind == "folder":
        path.mkdir()
    else:
        path.symlink_to({"loop": path.name, "nothing": "nowhere.json", "device": "/dev/zero"}[kind])
    assembled = claude.assemble()
    assert claude.tool(assembled=assembled, command="ls").reason == "user"
    assert any(problem.file == ".claude/settings.json" for problem in assembled.problems)


def test_plugins_are_read_where_they_are_named(claude):
    root = claude.folder.parent / "my plugin"
    claude.script("check.sh", '#!/bin/sh\necho "in $CLAUDE_PLUGIN_ROOT" >&2; exit 2\n', root)
    hook = claude.handler('"${CLAUDE_PLUGIN_ROOT}"/check.sh')
    claude.write(
        "hooks/hooks.json", {"description": "x", "hooks": {"PreToolUse": [claude.group(hook)]}}, root
    )
    assert claude.tool(command="ls").decision is None
    claude.write("hookturn.yaml", f'dialects:\n  claude-code:\n    plugins: ["{root}"]\n')
    claude.trust()
    claude.trust()  # of what the setting brought
    assert claude.tool(command="ls").reason == f"in {root}"
    assert claude.rows()["plugin-my plugin.PreToolUse.1.1"][0] == "loaded"


def test_a_plugins_hook_may_name_both_folders(claude):
    root = claude.folder.parent / "my plugin"
    claude.script("check.sh", "#!/bin/sh\n", root)
    claude.script("check.sh", "#!/bin/sh\n")
    lines = [
        '"$CLAUDE_PLUGIN_ROOT"/check.sh',
        '"$CLAUDE_PROJECT_DIR"/check.sh',
        '"$CLAUDE_PLUGIN_ROOT"/none.sh',
    ]
    hooks = {"PreToolUse": [claude.group(*map(claude.handler, lines))]}
    claude.write("hooks/hooks.json", {"hooks": hooks}, root)
    claude.write("hookturn.yaml", f'dialects:\n  claude-code:\n    plugins: ["{root}"]\n')
    claude.trust()
    claude.trust()  # of what the setting brought
    missing = [text for text in words(claude.assemble().problems) if "does not exist" in text]
    assert len(missing) == 1
    assert "my plugin/none.sh" in missing[0]


def test_a_plugins_copy_of_a_hook_counts_apart(claude):
    root = claude.folder / "plugin"
    hooks = {"PreToolUse": [claude.group(claude.handler("echo ran >> ran.txt"))]}
    claude.write("hooks/hooks.json", {"hooks": hooks}, root)
    claude.settings(**hooks)
    claude.write("hookturn.yaml", "dialects: {claude-code: {plugins: [plugin]}}\n")
    claude.trust()
    claude.trust()  # of what the setting brought
    claude.tool(command="ls")
    assert (claude.folder / "ran.txt").read_text() == "ran\nran\n"


def test_the_option_takes_folders_only(claude):
    claude.write("hookturn.yaml", "dialects: {claude-code: {plugins: 5}}\n")
    assert any("expected a list of plugins' folders" in text for text in words(claude.assemble().problems))


def test_claude_code_runs_its_own_hooks_itself(claude):
    claude.user(PreToolUse=[claude.group(claude.handler(DENY))])
    assert foreign.RUN_BY["claude-code"]["claude-code"] == ("managed", "user", "project")


def test_what_would_run_is_shown_before_trust(claude):
    claude.settings(
        PreToolUse=[
            claude.group(
                claude.handler("./check.sh"),
                {"type": "http", "url": "https://x.example/hook"},
                claude.handler("./check.sh", args=["a b"]),
                matcher="Bash",
            )
        ]
    )
    entries, _ = claude.reading()
    assert [config.words_of(entry) for entry in entries] == [
        "runs the shell line `./check.sh` at PreToolUse (Bash)",
        "sends PreToolUse (Bash) to https://x.example/hook",
        "runs ./check.sh 'a b' at PreToolUse (Bash)",
    ]


def cli(claude, *args, input=""):
    """Run the command as users do."""
    env = {**os.environ, "HOME": str(claude.home), "HOOKTURN_DISABLE_PLUGIN_AUTOLOAD": "1"}
    ran = subprocess.run(
        [sys.executable, "-m", "hookturn", *args],
        input=input, cwd=claude.folder, env=env, capture_output=True, text=True, timeout=60,
    )  # fmt: skip
    assert ran.returncode in (0, 1), ran.stderr
    return json.loads(ran.stdout)


def test_fire_check_hooks_and_a_live_replay_run_them(claude):
    claude.settings(PreToolUse=[claude.group(claude.handler(named("guard")), matcher="Bash")])
    cli(claude, "trust", "--yes", "--json")
    event = json.dumps({"tool": "bash", "args": {"command": "ls"}})
    out = cli(claude, "fire", "pre_tool_execution", "--event", "-", "--json", input=event)
    assert (out["decision"], out["reason"], out["by"]) == (
        "deny",
        "guard",
        "claude-code.project.PreToolUse.1.1",
    )
    steps = [
        {"timing": "on_session_start", "session_id": "s"},
        {"timing": "on_user_prompt_submit", "session_id": "s", "prompt": "go"},
        {"timing": "on_turn_start", "session_id": "s"},
        {
            "timing": "pre_tool_execution",
            "session_id": "s",
            "tool": "Bash",
            "args": {"command": "ls"},
            "call_id": "c",
        },
        {
            "timing": "post_tool_execution",
            "session_id": "s",
            "tool": "Bash",
            "args": {"command": "ls"},
            "call_id": "c",
        },
        {"timing": "on_turn_complete", "session_id": "s", "text": "done"},
        {"timing": "on_session_end", "session_id": "s"},
    ]
    claude.write("session.jsonl", "".join(json.dumps(step) + "\n" for step in steps))
    assert cli(claude, "replay", "session.jsonl", "--json")["denied"] == 0
    assert cli(claude, "replay", "session.jsonl", "--json")["not_run"]
    assert cli(claude, "replay", "session.jsonl", "--live", "--json")["denied"] == 1
