"""``hookturn check PATH`` with other agents' hook files: in a project or anywhere, read and never run."""

from __future__ import annotations

import json
import shutil

import pytest

ROLE = """\
name: Tester
prompt: You test.
hooks:
  custom:
    - {name: good, events: [chat.message], module: hooks/good.py}
    - {name: gone, events: [chat.message], module: hooks/gone.py}
    - {name: broken, events: [chat.message], module: hooks/broken.py}
    - {name: other, events: [tool.execute.before], module: hooks/good.py}
    - {name: nojs, events: [chat.message], module: hooks/gone.js}
    - {name: case, events: [tool.execute.after], module: hooks/after.py, filter: {tools: [Write, edit, mcp__x]}}
"""
GOOD = "open('ran', 'w')\ndef on_chat_message(ctx, text): pass\n"
ROLE_SAYS = [
    (6, "error", "gone.py cannot be read: No such file or directory"),
    (7, "error", "broken.py:1:"),
    (8, "error", "hooks/good.py has no handler for tool.execute.before"),
    (9, "error", "gone.js does not exist"),
    (10, "warning", "'Write' is no tool of rolebox's (did you mean 'write'? case counts)"),
]


@pytest.fixture
def elsewhere(cli, tmp_path):
    """A folder beside the project, and a way to write files there."""
    folder = tmp_path / "elsewhere"

    class Elsewhere:
        def write(self, name, content, mode=0o644):
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content if isinstance(content, str) else json.dumps(content, indent=1))
            path.chmod(mode)
            return str(path)

        def role(self, folder="roles/tester"):
            self.write(f"{folder}/hooks/good.py", GOOD)
            self.write(f"{folder}/hooks/after.py", "def onToolAfter(ctx, input): pass\n")
            self.write(f"{folder}/hooks/broken.py", "def (\n")
            return self.write(f"{folder}/role.yaml", ROLE)

    made = Elsewhere()
    made.folder = folder
    return made


def found(ran):
    assert ran.code == (1 if ran.json["errors"] else 0), ran
    return [(item["line"], item["severity"], item["cause"]) for item in ran.json["problems"]]


def compare(rows, expected):
    assert len(rows) == len(expected), rows
    for (line, severity, cause), (at, what, words) in zip(rows, expected, strict=True):
        assert (line, severity) == (at, what)
        assert words in cause


@pytest.mark.parametrize("what", ["file", "folder", "another name"])
def test_a_role_is_read_and_not_run(cli, elsewhere, what):
    # A project around it, so that the role is none of its own.
    elsewhere.write("hookturn.yaml", "{}")
    path = elsewhere.role("library/tester")
    if what == "folder":
        path = path.removesuffix("/role.yaml")
    elif what == "another name":
        path = shutil.move(path, path.replace("role.yaml", "tester.yml"))
    ran = cli("check", path, "--json")
    compare(found(ran), ROLE_SAYS)
    assert ran.json["files"] == [path if what != "folder" else f"{path}/role.yaml"]
    assert not (cli.project / "ran").exists()


def test_a_role_of_a_project_is_named_by_its_path_or_folder_and_only_it_is_told(cli):
    cli.write("hookturn.yaml", "mod: 1\n")
    cli.write("rolebox/tester/hooks/good.py", GOOD)
    cli.write("rolebox/tester/hooks/after.py", "def onToolAfter(ctx, input): pass\n")
    cli.write("rolebox/tester/hooks/broken.py", "def (\n")
    cli.write("rolebox/tester/role.yaml", ROLE)
    assert cli("check", "--json").json["problems"][0]["path"] == "mod"
    for path in ("rolebox/tester/role.yaml", "rolebox/tester"):
        rows = found(cli("check", path, "--json"))
        assert "they are not trusted yet" in rows[-1][2]
        compare(rows[:-1], ROLE_SAYS)
    cli("trust", "--yes")
    rows = [cause for _, _, cause in found(cli("check", "rolebox/tester", "--json"))]
    assert any("gone.py cannot be read" in cause for cause in rows)
    assert any("broken.py:1:" in cause for cause in rows)
    assert (cli.project / "ran").exists()  # trusted modules are loaded


@pytest.mark.skipif(shutil.which("node") is None, reason="needs Node")
@pytest.mark.parametrize(
    ("code", "cause"),
    [
        ("export default { onChatMessage() {} };", ""),
        ("export default { onToolAfter() {} };", "exports no onChatMessage"),
        ("export default {", "cannot be loaded: SyntaxError"),
        ("import 'no-such-package';", "Cannot find package"),
    ],
)
def test_a_trusted_roles_javascript_is_loaded(cli, code, cause):
    cli.write("role.yaml", "name: r\nhooks: {custom: [{name: js, events: [chat.message], module: x.mjs}]}\n")
    cli.write("x.mjs", code)
    assert found(cli("check", "--json"))[0][1] == "warning"  # not trusted, so not run
    cli("trust", "--yes")
    rows = found(cli("check", "--json"))
    assert [cause in text for _, _, text in rows] == ([True] if cause else [])


HOOKS_JSON = {
    "hooks": {
        "good": {"event": "PreToolUse", "matcher": "bash", "command": "true"},
        "line": {"event": "PreToolUse", "command": '[[ "$X" == y ]] && exit 2'},
        "rule": {"event": "PreToolUse", "matcher": "Bash(git *)", "command": "true"},
        "when": {"event": "PreToolUze", "command": "true"},
        "who": {"event": "Stop", "command": "no-such-program-here"},
    }
}
HOOKS_TOML = """\
[[hooks]]
name = "gone"
trigger = "pre_tool"
script = "./gone.sh"
[[hooks]]
name = "words"
trigger = "pre_tol"
script = "./gone.sh"
[[hooks]]
name = "good"
trigger = "pre_tool"
script = "good.sh"
"""


@pytest.mark.parametrize("name", [".hooks.json", "my-hooks.json"])
def test_named_entries_of_atomcode(cli, elsewhere, name):
    elsewhere.write("hookturn.yaml", "{}")
    path = elsewhere.write(f"some/{name}", HOOKS_JSON)
    causes = {cause for _, _, cause in found(cli("check", path, "--json"))}
    for words in ("does not know [[ ... ]]", "a permission rule", "did you mean 'PreToolUse'", "no-such-program-here"):  # fmt: skip
        assert any(words in cause for cause in causes), words
    assert len(causes) == 4


def test_a_hooks_toml(cli, elsewhere):
    elsewhere.write("good.sh", "exit 0\n")
    path = elsewhere.write("hooks.toml", HOOKS_TOML)
    rows = found(cli("check", path, "--json"))
    assert [line for line, _, _ in rows] == [1, 7]
    assert "gone.sh does not exist" in rows[0][2]
    assert "did you mean 'pre_tool'" in rows[1][2]


def claude(command, **more):
    return {
        "hooks": {
            "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": command, **more}]}]
        }
    }


def test_settings_of_claude_code(cli, elsewhere):
    elsewhere.write(".claude/hooks/good.sh", "#!/bin/sh\n", 0o755)
    path = elsewhere.write(".claude/settings.json", claude('"$CLAUDE_PROJECT_DIR"/.claude/hooks/good.sh'))
    assert found(cli("check", path, "--json")) == []
    path = elsewhere.write("other.json", claude('"$CLAUDE_PROJECT_DIR"/.claude/hooks/gone.sh', timeout=5000))
    assert [severity for _, severity, _ in found(cli("check", path, "--json"))] == ["error", "warning"]
    path = elsewhere.write(".claude/settings.local.json", "{")
    assert cli("check", path).code == 1


@pytest.mark.parametrize("what", ["file", "folder"])
def test_hooks_of_a_plugin(cli, elsewhere, what):
    elsewhere.write("plug/.claude-plugin/plugin.json", "{}")
    elsewhere.write("plug/good.sh", "#!/bin/sh\n", 0o755)
    path = elsewhere.write("plug/hooks/hooks.json", claude('"${CLAUDE_PLUGIN_ROOT}/good.sh"'))
    named = path if what == "file" else str(elsewhere.folder / "plug")
    assert found(cli("check", named, "--json")) == []
    elsewhere.write("plug/hooks/hooks.json", claude("${CLAUDE_PLUGIN_ROOT}/gone.sh"))
    causes = [cause for _, _, cause in found(cli("check", named, "--json"))]
    assert any("gone.sh does not exist" in cause for cause in causes)
    assert any("stands without quotes" in cause for cause in causes)


def test_a_file_of_the_project_keeps_its_trust(cli):
    cli.write(".hooks.json", json.dumps({"hooks": {"h": {"event": "Stop", "command": "true"}}}))
    ran = cli("check", ".hooks.json", "--json")
    assert (ran.code, ran.json["warnings"]) == (0, 1)
    assert "it is not trusted yet" in ran.json["problems"][0]["cause"]
    cli("trust", "--yes")
    assert found(cli("check", ".hooks.json", "--json")) == []


def test_twins_and_lines_are_told_and_hooks_for_other_tools_are_no_twins(cli):
    line = {"type": "command", "command": "cat >/dev/null"}
    groups = [{"matcher": "Bash", "hooks": [line]}, {"matcher": "Edit", "hooks": [line]}]
    cli.write(".claude/settings.json", json.dumps({"hooks": {"PreToolUse": groups}}))
    cli.write(
        "hookturn.yaml",
        "hooks:\n"
        '- {name: one, timings: [on_turn_start], run: {command: "grep -q x <<< y"}}\n'
        "- {name: two, timings: [on_turn_start], run: {command: 'true'}}\n"
        "- {name: three, timings: [on_turn_start], run: {command: 'true'}}\n"
        "- {name: five, timings: [on_turn_start], run: {command: 'python3 tools/gone.py'}}\n"
        "- {name: four, timings: [pre_tool_execution], run: {command: 'true'}, filter: {tools: [Frobnicate]}}\n",
    )
    cli("trust", "--yes")
    rows = found(cli("check", "--json"))
    assert len(rows) == 4
    assert any("tools/gone.py does not exist" in cause for _, _, cause in rows)
    assert any("does not know <<<" in cause for _, _, cause in rows)
    assert any("three runs the same as two" in cause for _, _, cause in rows)
    assert any("'Frobnicate', which no known agent has" in cause for _, _, cause in rows)


def test_an_installed_role_that_was_changed_is_an_error(cli, tmp_path):
    from hookturn.agents.rolebox.integrity import integrity

    home = tmp_path / "home"
    role = home / ".local/share/rolebox/roles/main/careful@1.2.0"
    role.mkdir(parents=True)
    (role / "role.yaml").write_text("name: Careful\nprompt: Be careful.\n")
    for folder in (home, *home.rglob("*")):
        folder.chmod(0o755)
    row = {"role": "careful", "registry": "main", "version": "1.2.0", "installedAt": "2026-07-01T00:00:00Z", "integrity": integrity(str(role))}  # fmt: skip
    lock = home / ".config/rolebox/rolebox.lock"
    lock.parent.mkdir(parents=True)
    lock.write_text(json.dumps({"version": 1, "roles": [row]}))
    linked = home / ".config/opencode/rolebox/careful"
    linked.parent.mkdir(parents=True)
    linked.symlink_to(role)
    env = {"HOME": str(home)}
    assert found(cli("check", "--json", env=env)) == []
    (role / "more.txt").write_text("x")
    for words in (["check", "--json"], ["check", str(role / "role.yaml"), "--json"]):
        ((_, severity, cause),) = found(cli(*words, env=env))
        assert severity == "error"
        assert "is not as it was installed" in cause


def test_one_thing_is_told_once(cli):
    cli.write("role.yaml", "name: r\nhooks: {custom: [{name: x, events: [chat.message], module: gone.py}]}\n")
    cli("trust", "--yes")
    ran = cli("fire", "on_message_received", "--event", "-", input='{"text": "hi"}')
    assert ran.code == 0
    assert ran.err.count("gone.py") == 1
    assert "Failed to load" not in ran.err


def test_trust_names_hooks_of_other_agents_by_their_own_names(cli):
    cli.write(".hooks.json", json.dumps({"hooks": {"deny:rm": {"event": "Stop", "command": "ls -l"}}}))
    assert "  new: deny:rm (atomcode) runs the shell line `ls -l` at Stop (.hooks.json:1)" in cli("trust").out


def test_secrets_in_commands_and_rules_are_told_to_nobody(cli):
    token = "ghp_" + "a1B2c3D4e5" * 3 + "F6g7H8"
    groups = [{"matcher": f"a|{token}", "hooks": [{"type": "command", "command": f"no-such {token}"}]}]
    cli.write(".claude/settings.json", json.dumps({"hooks": {"PreToolUse": groups}}))
    for words in (["check"], ["trust"], ["trust", "--yes"], ["plugins"], ["hooks"], ["check"]):
        for more in ([], ["--json"]):
            ran = cli(*words, *more)
            assert token not in ran.out + ran.err, words
    assert "[REDACTED:" in ran.out
