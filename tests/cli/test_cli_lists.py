"""``hookturn plugins`` and ``hookturn hooks``: what there is, in force or not, and why."""

from __future__ import annotations

import pytest

PLUGIN = """\
from hookturn import Warn, hookimpl

@hookimpl(tryfirst=True, tools=["bash"], timeout=3)
async def pre_tool_execution(event):
    return Warn("x")
"""


@pytest.fixture
def installed(ruled, plugin_path):
    env = plugin_path(
        "hookturn-demo",
        "[hookturn]\ndemo = demo_plugin\nbroken = broken_plugin\nexits = exiting_plugin\nother = demo_plugin:nothing\n",
        demo_plugin=PLUGIN,
        broken_plugin="import no_such_module_anywhere\n",
        exiting_plugin="raise SystemExit(3)\n",
    )
    ruled.env.update(
        env, HOOKTURN_DISABLE_PLUGIN_AUTOLOAD="", HOOKTURN_DISABLE_PLUGINS="audit-log,turn-stats,error-report"
    )
    return ruled


def rows(ran):
    assert ran.code == 0, ran
    return {row["name"]: row for row in ran.json["plugins"]}


def test_plugins_tells_state_and_reason_of_each(installed):
    found = rows(installed("plugins", "--json"))
    assert found["demo"].keys() >= {"name", "kind", "state", "reason", "distribution", "source", "hooks"}
    assert (found["demo"]["kind"], found["demo"]["state"]) == ("pip", "loaded")
    assert found["demo"]["distribution"] == "hookturn-demo 1.0"
    assert found["demo"]["hooks"] == ["pre_tool_execution"]
    assert found["broken"]["state"] == "failed"
    assert "No module named 'no_such_module_anywhere'" in found["broken"]["reason"]
    assert found["exits"]["state"] == "failed"
    assert "SystemExit" in found["exits"]["reason"]
    assert found["other"]["state"] == "failed"
    assert (found["no-rm"]["kind"], found["no-rm"]["state"]) == ("config", "loaded")
    assert found["no-rm"]["source"] == "hookturn.yaml:2"
    assert (found["self-protection"]["kind"], found["self-protection"]["state"]) == ("builtin", "loaded")


def test_plugins_that_are_left_out_say_so(installed):
    installed.write("hookturn.yaml", "plugins: {demo: false}\n")
    assert installed("trust", "--yes").code == 0
    found = rows(installed("plugins", "--json", "-p", "no:broken", "-p", "no:exits"))
    assert found["demo"]["state"] == "disabled"
    assert "hookturn.yaml:1" in found["demo"]["reason"]
    assert found["broken"]["state"] == found["exits"]["state"] == "blocked"
    found = rows(installed("plugins", "--json", env={"HOOKTURN_DISABLE_PLUGINS": "broken, exits"}))
    assert found["broken"]["state"] == found["exits"]["state"] == "blocked"


def test_an_untrusted_hook_is_listed(cli):
    cli.write("hookturn.yaml", "hooks: [{name: own, run: {module: own.py}}]")
    cli.write("own.py", "open('ran', 'w')\ndef on_turn_start(event): pass\n")
    found = rows(cli("plugins", "--json"))
    assert found["own"]["state"] == "untrusted"
    assert "hookturn trust" in found["own"]["reason"]
    assert not (cli.project / "ran").exists()


def test_plugins_for_people(installed):
    ran = installed("plugins")
    lines = ran.out.split("\n")
    assert lines[0].split() == ["name", "kind", "state", "distribution", "source", "hooks", "reason"]
    for name in ("demo", "broken", "no-rm", "self-protection"):
        assert any(line.startswith(f"{name} ") for line in lines)
    assert "loaded in" in lines[-2]
    assert str(installed.project) in lines[-2]


def test_hooks_are_listed_per_timing_in_order(installed):
    ran = installed("hooks", "--json")
    timings = ran.json["timings"]
    hooks = timings["pre_tool_execution"]
    assert [hook["name"] for hook in hooks] == ["demo", "no-rm", "self-protection"]
    demo = hooks[0]
    assert (demo["tier"], demo["priority"], demo["asynchronous"], demo["timeout"]) == ("before", 50, True, 3)
    assert demo["filters"]["tools"] == ["bash"]
    assert (demo["plugin"], demo["layer"], demo["mode"], demo["guard"]) == (
        "demo",
        "installed",
        "enforce",
        False,
    )
    assert "on_turn_start" not in timings
    assert installed("hooks", "on_turn_start", "--json").json["timings"] == {"on_turn_start": []}
    assert list(installed("hooks", "--all", "--json").json["timings"])[:2] == [
        "on_session_start",
        "on_message_received",
    ]


def test_hooks_for_people(installed):
    ran = installed("hooks")
    lines = ran.out.split("\n")
    place = lines.index("pre_tool_execution")
    assert lines[place + 1].split() == ["tier", "priority", "hook", "source", "filters", "notes"]
    assert lines[place + 2].split()[:3] == ["before", "50", "demo"]
    assert lines[place + 2].endswith("async")
    assert installed("hooks", "on_turn_start").out == "on_turn_start\n  no hook\n"


def test_an_empty_project(cli):
    assert rows(cli("plugins", "--json")).keys() >= {"self-protection"}
    assert list(cli("hooks", "--json").json["timings"]) == ["pre_tool_execution"]
    ran = cli("hooks", "-p", "no:self-protection")
    assert ran.out.startswith("No hook is in force here.")
    assert cli("hooks", "-p", "no:self-protection", "--json").json["timings"] == {}


def test_another_configuration(ruled, tmp_path):
    other = tmp_path / "other config.yaml"
    other.write_text("hooks: [{name: mine, timings: [on_turn_start], run: {answer: {warn: x}}}]")
    timings = ruled("hooks", "--json", "--with", str(other)).json["timings"]
    assert [hook["name"] for hook in timings["on_turn_start"]] == ["mine"]
    assert [hook["name"] for hook in timings["pre_tool_execution"]] == ["self-protection"]


@pytest.mark.parametrize("command", ["plugins", "hooks"])
def test_problems_are_noted_on_standard_error(installed, command):
    ran = installed(command, "--json")
    assert ran.json["schema"] == 1
    assert ran.err.startswith("hookturn: ")
    assert all(f"the plugin '{name}'" in ran.err for name in ("broken", "exits", "other"))


def test_listing_leaves_nothing_behind(ruled):
    before = sorted(ruled.project.rglob("*"))
    for command in ("plugins", "hooks", "check"):
        assert ruled(command).code == 0
    assert sorted(ruled.project.rglob("*")) == before


GUARDING = """\
from dataclasses import dataclass
from hookturn import Deny, hookimpl

@dataclass
class Config:
    word: str = "rm"

class Guard:
    def __init__(self, config):
        self.word = config.word

    @hookimpl(guard=True)
    def pre_tool_execution(self, event):
        return Deny("no " + self.word) if self.word in event.command else None

def plugin(config: Config):
    return Guard(config)
"""

MISTAKES = {
    "key": ("{wrod: push}", "unknown setting 'wrod' (did you mean 'word'?). It takes word."),
    "type": ("{word: 3}", "expected a text, got 3. Write a text."),
}


@pytest.fixture
def guarding(cli, plugin_path):
    """A project that names an installed plugin with a guard; call it with the plugin's settings."""
    env = plugin_path("hookturn-guarding", "[hookturn]\nguarding = guarding:plugin\n", guarding=GUARDING)
    cli.env.update(env)

    def write(settings):
        cli.write("hookturn.yaml", f"plugins:\n  guarding: {settings}\n")
        return cli

    return write


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_plugin_that_is_off_for_its_settings_is_told_everywhere(guarding, mistake):
    settings, what = MISTAKES[mistake]
    cli = guarding(settings)
    trusted = cli("trust", "--yes")
    assert trusted.code == 1
    assert "trusted: " in trusted.out
    for ran in (trusted, cli("hooks"), cli("plugins")):
        assert "hookturn.yaml:2:" in ran.err
        assert what in ran.err
    for words, code in ((["check"], 1), (["doctor"], 1)):
        ran = cli(*words)
        assert ran.code == code
        assert f"{what} Until then the plugin is off, its guards too" in ran.out
        assert "hookturn.yaml:2:" in ran.out


def test_the_user_of_an_agent_is_told_once_a_session(guarding):
    import json

    cli = guarding("{wrod: push}")
    cli("trust", "--yes")

    def call(session, number, event="PreToolUse", **more):
        payload = {"hook_event_name": event, "session_id": session, "cwd": str(cli.project), **more}
        if event == "PreToolUse":
            payload.update(tool_name="Bash", tool_input={"command": "ls"}, tool_use_id=f"t{number}")
        ran = cli("bridge", "claude-code", input=json.dumps(payload))
        assert ran.code == 0
        assert "unknown setting 'wrod'" in ran.err
        return json.loads(ran.out).get("systemMessage", "") if ran.out.strip() else ""

    assert "hookturn: hookturn.yaml:2:14: plugins.guarding.wrod: unknown setting 'wrod'" in call("one", 1)
    assert call("one", 2) == ""
    assert "unknown setting" in call("two", 1, "SessionStart", source="startup")
    assert call("two", 2) == ""


def test_the_user_of_an_agent_is_told_once_in_an_answer(guarding):
    import json

    cli = guarding("{wrod: push, required: true}")
    cli("trust", "--yes")
    payload = {"hook_event_name": "PreToolUse", "session_id": "one", "cwd": str(cli.project)}
    payload.update(tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="t1")
    answer = json.loads(cli("bridge", "claude-code", input=json.dumps(payload)).out)
    lines = answer["systemMessage"].splitlines()
    assert [line for line in lines if line.startswith("the plugin guarding is required")] == lines[:1]
    assert answer["hookSpecificOutput"]["permissionDecision"] == "deny"


def test_a_required_plugin_with_wrong_settings_refuses(guarding):
    cli = guarding("{wrod: push, required: true}")
    cli("trust", "--yes")
    event = '{"tool": "bash", "args": {"command": "ls"}}'
    out = cli("fire", "pre_tool_execution", "--event", "-", "--json", input=event).json
    assert out["decision"] == "deny"
    ran = cli("check")
    assert "Until then calls are refused, for the plugin is required." in ran.out


def test_a_hook_that_handles_its_own_failure_is_shown_as_its_settings_say(cli):
    del cli.env["HOOKTURN_DISABLE_PLUGIN_AUTOLOAD"]
    cli.write("hookturn.yaml", "{}\n")
    ran = cli("hooks", "on_outcome")
    assert "on failure: degrade" in ran.out
    assert "fails closed" not in ran.out
    cli.write("hookturn.yaml", "plugins: {audit-log: {on_failure: deny}}\n")
    assert cli("trust", "--yes").code == 0
    assert "fails closed" in cli("hooks", "on_outcome").out
    (row,) = [
        row
        for row in cli("hooks", "on_outcome", "--json").json["timings"]["on_outcome"]
        if row["name"] == "audit-log"
    ]
    assert row["on_failure"] == "deny"


def test_entries_that_call_hookturn_are_one_line(cli):
    assert cli("install", "claude-code", "--yes").code == 0
    rows = [
        row for row in cli("plugins", "--json").json["plugins"] if row["reason"] == "it calls hookturn itself"
    ]
    assert len(rows) > 10
    ran = cli("plugins")
    assert ran.out.count("hookturn itself") == 1
    assert (
        f"{len(rows)} entries that call hookturn itself, in .claude/settings.json: not run from here"
        in ran.out
    )
