"""Claude Code's hook files against hostile checkouts and hooks: what counts without trust, what hangs, what passes in silence."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path

import pytest

from hookturn import events, paths
from hookturn.project.layers import PROJECT_VARIABLES
from hookturn.project.survey import Survey


def _shared():
    spec = importlib.util.spec_from_file_location(
        "claude_project", Path(__file__).parent / "claude_project.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_project = _shared()
handler, group = _project.handler, _project.group


@pytest.fixture
def claude(tmp_path, monkeypatch):
    monkeypatch.setattr(paths, "MANAGED_CONFIG", str(tmp_path / "managed.yaml"))
    for name in (*PROJECT_VARIABLES, "CLAUDE_CONFIG_DIR", "HOOKTURN_RUNNING"):
        monkeypatch.delenv(name, raising=False)
    made = _project.ClaudeProject(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    yield made
    for engine in made.engines:
        engine.close()


@pytest.mark.parametrize(
    "line",
    [
        '"$CLAUDE_PROJECT_DIR"/hooks/x.sh',
        '"$(pwd)/hooks/x.sh"',
        '"$(pwd)"/hooks/x.sh --fast',
        '"$PWD/hooks/x.sh"',
        "cd hooks && ./x.sh",
        'cd "$CLAUDE_PROJECT_DIR/hooks" && ./x.sh',
        "bash -c 'cd hooks && ./x.sh'",
    ],
)
def test_a_script_that_changes_after_trust_is_not_run(claude, line):
    path = claude.script("hooks/x.sh", "#!/bin/sh\nexit 0\n")
    claude.settings(PreToolUse=[group(handler(line))])
    claude.trust()
    running = claude.assemble()
    assert claude.tool(assembled=running).failures == ()
    path.write_text(f"#!/bin/sh\ntouch {claude.home}/run\n")
    claude.tool(assembled=running)
    claude.tool()
    assert not (claude.home / "run").exists()


def test_a_plugin_that_the_project_names_outside_of_it_waits_for_trust(claude, tmp_path):
    """A link in the checkout leads anywhere, so that a folder is not the user's because it lies elsewhere."""
    claude.write("hookturn.yaml", "dialects: {claude-code: {plugins: [tools/plug]}}\n")
    claude.write("tools/plug/hooks/hooks.json", {"hooks": {}})
    claude.trust()
    plug = tmp_path / "elsewhere"
    mark = claude.home / "run"
    claude.write("hooks/hooks.json", {"hooks": {"PreToolUse": [group(handler(f"touch {mark}"))]}}, plug)
    (claude.folder / "tools/plug/hooks/hooks.json").unlink()
    (claude.folder / "tools/plug/hooks").rmdir()
    (claude.folder / "tools/plug").rmdir()
    (claude.folder / "tools/plug").symlink_to(plug)
    claude.tool()
    assert not mark.exists()
    (item,) = Survey(claude.folder).pending()
    assert f"touch {mark}" in item.declaration.what


def test_a_link_in_the_checkout_is_not_the_users_plugin_even_when_the_user_names_it(claude, tmp_path):
    plug = tmp_path / "elsewhere"
    mark = claude.home / "run"
    claude.write("hooks/hooks.json", {"hooks": {"PreToolUse": [group(handler(f"touch {mark}"))]}}, plug)
    (claude.folder / "plug").symlink_to(plug)
    config = paths.config_root()
    config.mkdir(parents=True, exist_ok=True)
    (config / "hookturn.yaml").write_text("dialects: {claude-code: {plugins: [plug]}}\n")
    claude.tool()
    assert not mark.exists()


def test_a_plugin_that_the_user_names_needs_no_trust(claude, tmp_path):
    plug = tmp_path / "elsewhere"
    mark = claude.home / "run"
    claude.write("hooks/hooks.json", {"hooks": {"PreToolUse": [group(handler(f"touch {mark}"))]}}, plug)
    config = paths.config_root()
    config.mkdir(parents=True, exist_ok=True)
    (config / "hookturn.yaml").write_text(f"dialects: {{claude-code: {{plugins: [{plug}]}}}}\n")
    claude.tool()
    assert mark.exists()


@pytest.mark.parametrize("trick", ["mkfifo", "mkdir", "ln -s /dev/zero"])
def test_a_hook_that_swaps_the_file_for_exports_holds_nobody_up(claude, trick):
    claude.user(
        SessionStart=[group(handler(f'rm "$CLAUDE_ENV_FILE"; {trick} "$CLAUDE_ENV_FILE"', timeout=5))]
    )
    outcome = claude.fire(events.SessionStart(source="startup", session_id="s-1", cwd=str(claude.folder)))
    assert outcome.failures == ()


@pytest.mark.parametrize(
    "output",
    [
        'hi {"decision": "block", "reason": "no"}',
        'hi\n{"decision": "block", "reason": "no"}',
        'hi\n{"continue": false, "stopReason": "no"}',
    ],
)
def test_a_refusal_of_a_prompt_with_a_banner_before_it_is_told(claude, output):
    claude.write("out.txt", output)
    claude.user(UserPromptSubmit=[group(handler("cat out.txt"))])
    event = events.UserPromptSubmit(prompt="x", session_id="s-1", cwd=str(claude.folder))
    outcome = claude.fire(event)
    assert outcome.decision is None
    assert "JSON found after" in outcome.failures[0].message


@pytest.mark.parametrize("output", ['see {"reason": "x"}', 'see {"decision": "allow"}', "a {b} c"])
def test_other_braces_in_context_are_context(claude, output):
    claude.write("out.txt", output)
    claude.user(UserPromptSubmit=[group(handler("cat out.txt"))])
    event = events.UserPromptSubmit(prompt="x", session_id="s-1", cwd=str(claude.folder))
    outcome = claude.fire(event)
    assert outcome.failures == ()
    assert output in str(outcome.injected)


def test_words_of_the_call_do_not_turn_exit_code_2_into_a_failure(claude):
    claude.user(PreToolUse=[group(handler("cat >&2; printf '\\nBlocked: %s\\n' \"$(echo x)\" >&2; exit 2"))])
    assert claude.tool(command="rm -rf /\nsh: 1: x: not found").decision == "deny"
    claude.user(
        PreToolUse=[
            group(
                handler(
                    'python3 -c \'import json,sys; print(json.load(sys.stdin)["tool_input"]["command"])\' >&2; exit 2'
                )
            )
        ]
    )
    assert claude.tool(command="rm -rf /\nsh: 1: x: not found").decision == "deny"


def test_a_line_of_settings_is_shown_whole_before_trust(claude):
    line = "true " + "x" * 5_000 + "; touch mark \x1b[2K\u202e"
    claude.settings(PreToolUse=[group(handler(line))])
    (item,) = Survey(claude.folder).pending()
    assert line in item.declaration.what
    assert os.listdir(claude.folder).count("mark") == 0
