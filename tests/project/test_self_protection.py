"""A call that would change what controls the hooks gets an Ask."""

from __future__ import annotations

import pytest

from hookturn import paths

FILES = [
    "hookturn.yaml",
    "sub/hookturn.yaml",
    ".hookturn/audit.jsonl",
    ".hookturn/hookturn.yaml",
    ".claude/settings.json",
    ".claude/settings.local.json",
    ".codex/hooks.json",
    ".codex/config.toml",
    ".gemini/settings.json",
    ".qwen/settings.json",
    ".github/hooks/x.json",
    ".copilot/hooks/x.json",
    ".opencode/plugin/x.js",
    "hooks.toml",
    ".hooks.json",
    "role.yaml",
    "home/.atomcode/hooks.json",
    ".atomcode/plugins/hook_trust.json",
    "plugins/x/hooks/hooks.json",
    "rolebox/r/hooks/hookturn.mjs",
    "./a/../hookturn.yaml",
    ".CLAUDE/Settings.json",
]
OTHERS = [
    "README.md",
    "my-hookturn.yaml",
    "hookturn.yaml.md",
    ".claude/agents/reviewer.md",
    ".github/workflows/ci.yml",
    "src/role.yaml.py",
    "pyproject.toml",
    "docs/hooks.toml/readme",
]


@pytest.fixture
def ask(project):
    assembled = project.assemble()

    def fire(tool, **args):
        return project.fire(tool, assembled=assembled, **args).decision == "ask"

    return fire


@pytest.mark.parametrize("path", FILES)
def test_writing_asks(ask, project, path):
    assert ask("write", file_path=path)
    assert ask("Edit", file_path=str(project.folder / path))
    assert ask("apply_patch", input=f"*** Begin Patch\n*** Update File: {path}\n@@\n-a\n+b\n*** End Patch")
    assert ask("mcp__fs__put", path=path)


@pytest.mark.parametrize("path", FILES)
def test_reading_does_not(ask, path):
    assert not ask("read", file_path=path)
    assert not ask("mcp__fs__read_file", path=path)
    assert not ask("grep", path=path)


@pytest.mark.parametrize("path", OTHERS)
def test_other_files_are_free(ask, path):
    assert not ask("write", file_path=path)
    assert not ask("bash", command=f"rm {path}")


def test_the_folders_of_the_user_and_the_administrator(ask):
    assert ask("write", path=str(paths.state_root() / "trust.json"))
    assert ask("write", path=str(paths.config_root() / "hooks" / "x.py"))
    assert ask("write", path=str(paths.managed_config()))
    assert ask("bash", command=f"rm -rf {paths.state_root()}")
    assert not ask("write", path=str(paths.state_root()) + "-other/x")


def test_a_link_to_a_protected_file_is_one(ask, project):
    project.config("")
    (project.folder / "innocent.txt").symlink_to("hookturn.yaml")
    assert ask("write", path="innocent.txt")


@pytest.mark.parametrize(
    "command",
    [
        "echo x > hookturn.yaml",
        "echo x >> ./hookturn.yaml",
        "cat <<EOF > .claude/settings.json\n{}\nEOF",
        "> hookturn.yaml",
        "true && rm hookturn.yaml",
        "rm -rf .claude",
        "rm -rf .claude/",
        "rm .claude/*",
        "mv .hookturn /tmp/x",
        "cp evil.json .claude/settings.json",
        "tee hookturn.yaml < evil",
        "cat evil | tee hookturn.yaml > /dev/null",
        "sed -i s/a/b/ hookturn.yaml",
        "sed -ni.bak p hookturn.yaml",
        "sed 's/a/b/;w hookturn.yaml' x",
        'python3 -c \'open("hookturn.yaml", "w")\'',
        "sudo rm hookturn.yaml",
        "bash -c 'rm hookturn.yaml'",
        "x=$(rm hookturn.yaml)",
        "git checkout -- hookturn.yaml",
        "git rm hookturn.yaml",
        "find . -name hookturn.yaml -delete",
        "chmod 777 hookturn.yaml",
        "vi hookturn.yaml",
        "echo 'unclosed > hookturn.yaml",
        "hookturn trust --yes",
        "hookturn --project x trust",
        "/usr/bin/hookturn untrust",
        "python -m hookturn trust",
        "python3 -I -m hookturn trust",
        "uv run hookturn trust --yes",
        "uvx hookturn@0.1 untrust",
        "pipx run hookturn trust",
        "poetry run hookturn --project . trust --yes",
        "env X=1 hookturn uninstall claude-code",
        "cd x; hookturn install codex --yes",
    ],
)
def test_commands_that_change_ask(ask, command):
    assert ask("bash", command=command)


@pytest.mark.parametrize(
    "command",
    [
        "ls -la",
        "cat hookturn.yaml",
        "cat hookturn.yaml > /tmp/copy",
        "sudo cat hookturn.yaml",
        "grep -n x .claude/settings.json | head",
        "git add hookturn.yaml && git commit -m 'add hookturn.yaml' -- hookturn.yaml",
        "git diff hookturn.yaml",
        "sed -n 1,5p hookturn.yaml",
        "find . -name hookturn.yaml",
        "diff hookturn.yaml other.yaml",
        "hookturn check hookturn.yaml",
        "hookturn replay x.jsonl --with hookturn.yaml",
        "pip install hookturn",
        "rm my-hookturn.yaml.bak",
        "npm install",
        "echo hookturn trust",
        "pip install hookturn",
        "uv run hookturn replay",
    ],
)
def test_commands_that_only_look_do_not(ask, command):
    assert not ask("bash", command=command)


@pytest.mark.parametrize("path", ["", "\0", "a\0b", "\ud800", "x" * 100_000, "~", "/", ".", ".."])
def test_odd_paths_and_commands_do_no_harm(project, path):
    assembled = project.assemble()
    for out in (
        project.fire("write", assembled=assembled, path=path),
        project.fire(assembled=assembled, command=f"rm {path} hookturn"),
    ):
        assert out.failures == ()


def test_the_users_always_allow_does_not_lift_it(project):
    project.user("permissions: {always_allow: [write, bash]}\n")
    with project.assemble().engine.session(cwd=str(project.folder)) as session, session.turn() as turn:
        assert turn.begin_tool("c1", "write", {"path": "README.md"}).go
        assert not turn.begin_tool("c2", "write", {"path": "hookturn.yaml"}).go


def test_it_can_be_switched_off_by_the_user_and_not_by_an_untrusted_project(project, states):
    project.config("plugins: {self-protection: false}\n")
    assert states(project.assemble())["self-protection"] == "loaded"
    project.user("plugins: {self-protection: false}\n")
    assembled = project.assemble()
    assert states(assembled)["self-protection"] == "disabled"
    assert project.fire("write", assembled=assembled, path="hookturn.yaml").decision is None
    project.managed("plugins: {self-protection: true}\n")
    assert states(project.assemble(disable=["self-protection"]))["self-protection"] == "loaded"


def test_a_pyproject_that_holds_the_configuration_is_protected(project):
    project.write("pyproject.toml", "[tool.hookturn]\nmode = 'enforce'\n")
    assert project.fire("write", path="pyproject.toml").decision == "ask"
    assert project.fire("write", path="sub/pyproject.toml").decision is None


@pytest.mark.parametrize("more", ["", ", guard: true"])
def test_an_untrusted_project_cannot_keep_it_out_by_taking_its_name(project, states, more):
    run = "run: {answer: {warn: x}}"
    project.config(f"hooks: [{{name: self-protection, timings: [pre_tool_execution]{more}, {run}}}]\n")
    assembled = project.assemble()
    assert states(assembled)["hookturn:self-protection"] == "loaded"
    assert project.fire("write", assembled=assembled, path="hookturn.yaml").decision == "ask"
