"""``hookturn install`` and ``uninstall``: our entries go into an agent's own configuration, and out again."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hookturn.agents.json_text import without_comments

PLACES = {
    "claude-code": (".claude/settings.json", ".claude/settings.json"),
    "codex": (".codex/hooks.json", ".codex/hooks.json"),
    "gemini": (".gemini/settings.json", ".gemini/settings.json"),
    "qwen": (".qwen/settings.json", ".qwen/settings.json"),
    "copilot": (".github/hooks/hookturn.json", ".copilot/hooks/hookturn.json"),
    "atomcode": (".hooks.json", ".atomcode/hooks.json"),
    "opencode": (".opencode/plugin/hookturn.js", ".config/opencode/plugin/hookturn.js"),
}
"""Agent -> file in the project, file in the user's home."""

GUARD = "hooks:\n- name: no-rm\n  timings: [pre_tool_execution]\n  guard: true\n  run: {answer: {deny: no}}\n"


@pytest.fixture
def place(cli):
    """A home of the user's beside a project whose path has a blank."""
    home = Path(os.environ["HOME"])
    cli.env["HOME"] = str(home)
    for name in ("XDG_CONFIG_HOME", "CODEX_HOME", "COPILOT_HOME"):
        cli.env.pop(name, None)
    return home


def load(path: Path):
    return json.loads(without_comments(path.read_text("utf-8")))


@pytest.mark.parametrize("agent", PLACES)
@pytest.mark.parametrize("scope", ["project", "user"])
def test_in_and_out_again(cli, place, agent, scope):
    words = ["--user"] if scope == "user" else []
    path = (place if scope == "user" else cli.project) / PLACES[agent][scope == "user"]
    dry = cli("install", agent, *words, "--dry-run")
    assert dry.code == 0, dry
    assert "bridge" in dry.out
    assert not path.exists()
    first = cli("install", agent, *words, "--yes", "--json")
    assert first.code == 0, first
    (change,) = first.json["changes"]
    assert (change["path"], change["action"], first.json["applied"]) == (str(path), "create", True)
    text = path.read_text("utf-8")
    assert f"bridge {agent}" in text or f'"bridge", "{agent}"' in text
    again = cli("install", agent, *words, "--yes", "--json")
    assert (again.code, again.json["changes"], again.json["applied"]) == (0, [], False)
    out = cli("uninstall", agent, *words, "--yes", "--json")
    assert out.code == 0, out
    assert not path.exists()
    gone = cli("uninstall", agent, *words, "--yes")
    assert gone.code == 0
    assert "is not installed" in gone.out


def test_a_role_of_rolebox(cli, place):
    role = cli.project / "roles/my role"
    role.mkdir(parents=True)
    text = "name: A  # mine\nprompt: x\n"
    (role / "role.yaml").write_text(text)
    dry = cli("install", "rolebox", str(role), "--dry-run")
    assert (dry.code, (role / "role.yaml").read_text()) == (0, text), dry
    ran = cli("install", "rolebox", str(role), "--yes", "--json")
    assert sorted(change["action"] for change in ran.json["changes"]) == ["change", "create"]
    assert (role / "role.yaml").read_text().startswith(text)
    assert '"bridge", "rolebox"' in (role / "hooks/hookturn.mjs").read_text()
    assert cli("install", "rolebox", str(role), "--yes", "--json").json["changes"] == []
    assert cli("uninstall", "rolebox", str(role), "--yes").code == 0
    assert (role / "role.yaml").read_text() == text


def test_a_folder_is_for_rolebox_only(cli, place):
    ran = cli("install", "codex", "roles/x", "--yes")
    assert (ran.code, "takes no folder" in ran.err) == (2, True)


SETTINGS = """\
{
  // my settings
  "model": "x",
  "hooks": {
    "PreToolUse": [{"matcher": "Bash", "hooks": [{"type": "command", "command": "./mine.sh"}]}] /* mine */
  }
}
"""


def test_foreign_entries_comments_and_layout_stay(cli, place):
    path = cli.project / ".claude/settings.json"
    path.parent.mkdir()
    path.write_text(SETTINGS)
    path.chmod(0o640)
    assert cli("install", "claude-code", "--yes").code == 0
    text = path.read_text()
    assert "// my settings" in text
    assert "/* mine */" in text
    groups = load(path)["hooks"]["PreToolUse"]
    assert groups[0]["hooks"] == [{"type": "command", "command": "./mine.sh"}]
    assert len(groups) == 2
    assert path.stat().st_mode & 0o777 == 0o640
    backup = path.with_name("settings.json.hookturn-backup")
    assert (backup.read_text(), backup.stat().st_mode & 0o777) == (SETTINGS, 0o600)
    assert cli("uninstall", "claude-code", "--yes").code == 0
    assert path.read_text() == SETTINGS


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b'{"hooks": {', ".claude/settings.json:1:12: not JSON"),
        (b"[]", "holds no JSON object"),
        (b'{"hooks": []}', "'hooks' is no object"),
        (b'{"hooks": {"Stop": 5}}', "'hooks.Stop' is no array"),
        (b"\xff\xfe{}", "is not UTF-8"),
    ],
    ids=["cut", "list", "hooks", "event", "utf-16"],
)
def test_what_it_does_not_understand_stays(cli, place, content, told):
    path = cli.project / ".claude/settings.json"
    path.parent.mkdir()
    path.write_bytes(content)
    ran = cli("install", "claude-code", "--yes")
    assert ran.code == 1, ran
    assert told in ran.err
    assert path.read_bytes() == content
    assert [item.name for item in path.parent.iterdir()] == ["settings.json"]


def test_a_link_out_of_the_project_is_refused_and_one_of_the_users_is_followed(cli, place, tmp_path):
    elsewhere = tmp_path / "dotfiles.json"
    elsewhere.write_text("{}")
    (cli.project / ".claude").mkdir()
    (cli.project / ".claude/settings.json").symlink_to(elsewhere)
    ran = cli("install", "claude-code", "--yes")
    assert (ran.code, "link out of the project" in ran.err) == (1, True)
    assert elsewhere.read_text() == "{}"
    (place / ".claude").mkdir()
    (place / ".claude/settings.json").symlink_to(elsewhere)
    assert cli("install", "claude-code", "--user", "--yes").code == 0
    assert (place / ".claude/settings.json").is_symlink()
    assert "bridge claude-code" in elsewhere.read_text()


def test_nobody_to_ask(cli, place):
    ran = cli("install", "claude-code", "--json")
    assert ran.code == 2
    assert "--yes" in ran.json["error"]
    assert ran.json["changes"]
    assert not (cli.project / ".claude").exists()


def test_an_unknown_agent(cli, place):
    ran = cli("install", "claude-cod")
    assert (ran.code, "did you mean 'claude-code'" in ran.err) == (2, True)


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("qwen-code", "qwen"),
        ("gemini-cli", "gemini"),
        ("github-copilot", "copilot"),
        ("claude", "claude-code"),
    ],
)
def test_an_agent_that_is_called_like_its_package_is_found(cli, said, meant):
    ran = cli("install", said, "--yes")
    assert (ran.code, f"did you mean {meant!r}?" in ran.err) == (2, True), ran


def test_the_command_runs_whatever_blanks_its_path_has(cli, place):
    """The line that stands in the settings, run by a shell as the agent would, with an empty environment."""
    cli.project.joinpath("hookturn.yaml").write_text(GUARD)
    assert cli("install", "claude-code", "--yes").code == 0
    line = load(cli.project / ".claude/settings.json")["hooks"]["PreToolUse"][0]["hooks"][0]["command"]
    payload = {
        "session_id": "s", "hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_use_id": "t",
        "tool_input": {"command": "rm x"}, "cwd": str(cli.project), "transcript_path": "",
    }  # fmt: skip
    names = ("HOOKTURN_STATE_DIR", "HOOKTURN_CONFIG_DIR")
    env = {"HOME": str(place), "PATH": "/usr/bin:/bin", **{name: cli.env[name] for name in names}}
    try:
        done = subprocess.run(
            ["/bin/sh", "-c", line], input=json.dumps(payload).encode(), env=env, cwd=cli.project,
            capture_output=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done
        answer = json.loads(done.stdout)["hookSpecificOutput"]
        assert (answer["permissionDecision"], "no" in answer["permissionDecisionReason"]) == ("deny", True)
    finally:
        subprocess.run([sys.executable, "-m", "hookturn", "serve", "--stop"], env={**env, "PATH": os.environ["PATH"]},
                       cwd=cli.project, capture_output=True, timeout=60, check=False)  # fmt: skip


def handlers(path: Path) -> dict[str, str]:
    """Event -> type of our handler."""
    table = load(path).get("hooks", {}) if path.exists() else {}
    return {event: group["hooks"][0]["type"] for event, groups in table.items() for group in groups}


def test_http_keeps_commands_where_nothing_may_fail_open(cli, place):
    shared, local = cli.project / ".claude/settings.json", cli.project / ".claude/settings.local.json"
    ran = cli("install", "claude-code", "--http", "--yes")
    assert ran.code == 0, ran
    assert "fails open" in ran.out
    assert set(handlers(shared)) == {"SessionStart", "Setup"}
    assert handlers(local)["PreToolUse"] == "http"
    assert local.stat().st_mode & 0o777 == 0o600
    token = json.loads(local.read_text())["hooks"]["Stop"][0]["hooks"][0]["headers"]["Authorization"].split()[
        1
    ]
    assert token not in ran.out
    assert token not in shared.read_text()
    cli.project.joinpath("hookturn.yaml").write_text(GUARD)
    ran = cli("install", "claude-code", "--http", "--yes")
    assert ran.code == 0, ran
    assert {"PreToolUse", "PermissionRequest", "SessionStart"} <= set(handlers(shared))
    assert "PreToolUse" not in handlers(local)
    assert handlers(local)["Stop"] == "http"
    # and back to commands only
    assert cli("install", "claude-code", "--yes").code == 0
    assert not local.exists()
    assert set(handlers(shared).values()) == {"command"}


def test_a_bridge_switches_the_builtins_on(cli, place):
    def builtins() -> set[str]:
        rows = cli("plugins", "--json", env={"HOOKTURN_DISABLE_PLUGIN_AUTOLOAD": "0"}).json["plugins"]
        return {row["name"] for row in rows if row["kind"] == "builtin" and row["state"] == "loaded"}

    assert "audit-log" not in builtins()
    assert cli("install", "claude-code", "--yes").code == 0
    assert {"audit-log", "turn-stats", "error-report"} <= builtins()
    assert cli("uninstall", "claude-code", "--yes").code == 0
    assert "audit-log" not in builtins()


def test_in_the_home_folder_it_asks_for_user(cli):
    home = cli.project
    cli.env["HOME"] = str(home)
    ran = cli("install", "claude-code", "--yes")
    assert ran.code == 2 and "is your home folder" in ran.err and "--user" in ran.err
    assert not (home / ".claude").exists()
    assert cli("install", "claude-code", "--user", "--yes").code == 0
    assert (home / ".claude/settings.json").exists()


def test_a_small_settings_file_on_one_line_becomes_lines(cli, place):
    path = cli.write(".claude/settings.json", '{"permissions": {"allow": ["Bash(ls)"]}, "model": "x"}\n')
    assert cli("install", "claude-code", "--yes").code == 0
    text = path.read_text()
    assert text.startswith(
        '{\n  "permissions": {\n    "allow": [\n      "Bash(ls)"\n    ]\n  },\n  "model": "x",\n  "hooks": {\n'
    )
    assert max(map(len, text.splitlines())) < 1000
    assert "nothing has to change" in cli("install", "claude-code", "--yes").out
    assert cli("uninstall", "claude-code", "--yes").code == 0
    assert path.read_text() == '{"permissions": {"allow": ["Bash(ls)"]}, "model": "x"}\n'


def test_machine_paths_that_git_would_commit_are_told(cli, place):
    import shutil

    if shutil.which("git") is None:
        pytest.skip("git is not here")
    (cli.project / ".git").rmdir()
    assert "git does not ignore" not in cli("install", "claude-code", "--dry-run").out
    subprocess.run(["git", "init", "-q", str(cli.project)], check=True)
    told = "git does not ignore .claude/settings.json, which names this installation by paths of this machine"
    assert told in cli("install", "claude-code", "--dry-run").out
    assert "git does not ignore" not in cli("install", "claude-code", "--dry-run", "--user").out
    copy = "git does not ignore .claude/settings.json.hookturn-backup, the copy of what stood there"
    assert copy not in cli("install", "claude-code", "--dry-run").out
    cli.write(".claude/settings.json", "{}")
    assert copy in cli("install", "claude-code", "--yes").out
    gone = cli("uninstall", "claude-code", "--dry-run").out
    assert copy in gone
    assert told not in gone
    cli.write(".gitignore", "*.hookturn-backup\n")
    assert "git does not ignore" not in cli("uninstall", "claude-code", "--dry-run").out
    cli.write(".gitignore", ".claude/\n")
    assert "git does not ignore" not in cli("install", "claude-code", "--dry-run").out


def test_nothing_that_a_repositorys_own_configuration_names_runs(cli, place):
    import shutil

    if shutil.which("git") is None:
        pytest.skip("git is not here")
    (cli.project / ".git").rmdir()

    def git(*words):
        done = subprocess.run(["git", *words], cwd=cli.project, check=True, capture_output=True, text=True)
        return done.stdout.strip()

    git("init", "-q")
    (cli.project / ".gitignore").write_text("x")
    git("add", ".gitignore")
    git("update-index", "--skip-worktree", ".gitignore")
    blob = git("rev-parse", ":.gitignore")
    (cli.project / ".git/objects" / blob[:2] / blob[2:]).unlink()  # as in a partial clone
    (cli.project / ".gitignore").unlink()
    ran = cli.project / "ran"
    for name, value in {
        "remote.origin.url": f"ext::sh -c touch% '{str(ran).replace(' ', '% ')}'",
        "remote.origin.promisor": "true",
        "protocol.ext.allow": "always",
        "core.repositoryFormatVersion": "1",
        "extensions.partialClone": "origin",
        "core.fsmonitor": "touch ran",
    }.items():
        git("config", name, value)
    assert "git does not ignore" in cli("install", "claude-code", "--dry-run").out
    assert not ran.exists()


@pytest.mark.parametrize("agent", PLACES)
def test_what_is_shown_is_short_and_says_what_it_does(cli, place, agent):
    path = PLACES[agent][0]
    module = path.endswith(".js")
    at = "a module of hookturn's own" if module else "hookturn is called at "
    shown = cli("install", agent).out.splitlines()
    assert shown[0].startswith(f"{path} is new: {at}")
    assert len(shown) < 40
    assert any(line.endswith("more lines; --dry-run shows all") for line in shown)
    full = cli("install", agent, "--dry-run").out
    assert "more lines" not in full
    assert cli("install", agent, "--yes").code == 0
    file = cli.project / path
    for line in file.read_text("utf-8").splitlines():
        assert f"+{line}" in full
    # another place of the program: two lines an event change, and nothing else is shown
    file.write_text(file.read_text("utf-8").replace("client.py", "moved/client.py"))
    shown = cli("install", agent).out.splitlines()
    assert shown[0].startswith(f"{path} changes: " + (at if module else "how hookturn is called at "))
    assert len(shown) < 40
    cli("install", agent, "--yes")
    whose = "hookturn's own" if module else "hookturn's entries at "
    shown = cli("uninstall", agent).out.splitlines()
    assert shown[0].startswith(f"{path} goes, for it holds nothing but {whose}")
    assert len(shown) < 40


def test_foreign_entries_are_not_counted_as_ours(cli, place):
    path = cli.write(".claude/settings.json", SETTINGS)
    shown = cli("install", "claude-code").out.splitlines()
    assert shown[0].startswith(".claude/settings.json changes: hookturn is called at ")
    assert cli("install", "claude-code", "--yes").code == 0
    shown = cli("uninstall", "claude-code").out.splitlines()
    assert shown[0].startswith(".claude/settings.json changes: hookturn is not called any more at ")
    cli("uninstall", "claude-code", "--yes")
    assert path.read_text() == SETTINGS
