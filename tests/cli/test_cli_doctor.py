"""``hookturn doctor``: whether agents call, guards are reached, and hooks answer."""

from __future__ import annotations

import json
import os
import sys

import pytest

GUARDED = """\
hooks:
- {name: no-rm, timings: [pre_tool_execution], guard: true, run: {answer: {deny: no rm}}, filter: {tools: [bash]}}
"""


@pytest.fixture
def doctor(cli):
    cli.env["HOME"] = os.environ["HOME"]
    return lambda *words: cli("doctor", *words)


def call(cli, event: str, **fields) -> None:
    """Call the bridge as Claude Code would, without the resident process."""
    payload = {"session_id": "s", "hook_event_name": event, "cwd": str(cli.project), **fields}
    done = cli("bridge", "claude-code", "--timeout", "30", input=json.dumps(payload))
    assert done.code == 0, done


def test_nothing_installed(doctor, cli):
    cli.write("hookturn.yaml", GUARDED)
    ran = doctor()
    assert ran.code == 0, ran
    assert "No agent calls hookturn here" in ran.out
    assert "protect nothing yet" in ran.out


def test_an_agent_that_calls_reaches_the_guard(doctor, cli):
    cli.write("hookturn.yaml", GUARDED)
    assert cli("install", "claude-code", "--yes").code == 0
    before = doctor("--json")
    assert before.code == 0, before
    (found,) = before.json["installations"]
    assert (found["agent"], found["scope"], found["state"], found["calls"]) == (
        "claude-code",
        "project",
        "ok",
        {},
    )
    assert {guard["name"]: guard["last"] for guard in before.json["guards"]}["no-rm"] is None
    call(cli, "PreToolUse", tool_name="Bash", tool_input={"command": "rm x"}, tool_use_id="t")
    after = doctor("--json").json
    assert set(after["installations"][0]["calls"]) == {"PreToolUse"}
    assert {guard["name"]: guard["last"] for guard in after["guards"]}["no-rm"] is not None


@pytest.mark.parametrize(
    ("change", "state"),
    [
        (lambda path: path.write_text("{}"), "gone"),
        (lambda path: path.write_text(path.read_text().replace("--timeout 60", "--timeout 6", 1)), "changed"),
        (lambda path: path.write_text("{"), "broken"),
    ],
    ids=["gone", "changed", "broken"],
)
def test_an_installation_that_is_no_longer_as_it_was(doctor, cli, change, state):
    assert cli("install", "claude-code", "--yes").code == 0
    change(cli.project / ".claude/settings.json")
    ran = doctor("--json")
    assert ran.code == 1
    (found,) = ran.json["installations"]
    assert found["state"] == state
    assert found["cause"]
    assert found["remedy"]
    assert state in doctor().out


@pytest.mark.parametrize(
    ("agent", "file", "then"),
    [
        ("claude-code", ".claude/settings.json", "goes on without your hooks"),
        ("gemini", ".gemini/settings.json", "refuses every call"),
    ],
)
def test_an_entry_whose_program_is_gone(doctor, cli, agent, file, then):
    assert cli("install", agent, "--yes").code == 0
    path = cli.project / file
    path.write_text(path.read_text().replace(sys.executable, "/gone away/python"))
    (found,) = doctor("--json").json["installations"]
    assert (found["state"], found["remedy"]) == ("broken", f"Run `hookturn install {agent}` again.")
    assert then in found["cause"]


@pytest.mark.parametrize(("agent", "twice"), [("codex", True), ("copilot", True), ("gemini", False)])
@pytest.mark.parametrize("user_first", [True, False])
def test_an_agent_that_runs_the_users_and_the_projects_entries(doctor, cli, agent, twice, user_first):
    scopes = [["--user"], []] if user_first else [[], ["--user"]]
    words = "hooks hear everything twice"
    assert words not in cli("install", agent, *scopes[0], "--yes").out
    assert (words in cli("install", agent, *scopes[1], "--yes").out) is twice
    ran = doctor("--json")
    states = {found["scope"]: found["state"] for found in ran.json["installations"]}
    assert states == {"user": "ok", "project": "twice" if twice else "ok"}
    assert ran.code == (1 if twice else 0)
    assert (words in doctor().out) is twice
    assert words not in cli("uninstall", agent, "--user", "--yes").out
    assert doctor().code == 0


def test_the_resident_process_that_http_needs(doctor, cli):
    assert cli("install", "claude-code", "--http", "--yes").code == 0
    assert doctor("--json").json["resident"] is False
    assert "fails open" in doctor().out


def test_every_hook_is_called_alone_and_dry(doctor, cli):
    cli.write(
        "config.yaml",
        """\
hooks:
- {name: first, timings: [pre_tool_execution], run: {answer: {deny: always}}}
- {name: broken, run: {module: broken.py}}
- {name: script, timings: [on_turn_complete], run: {command: "touch ran; exit 3"}}
- {name: picky, timings: [pre_tool_execution], run: {answer: {deny: no}}, filter: {tools: [fetch]}}
""",
    )
    cli.write(
        "broken.py", "def pre_tool_execution(event):\n    assert event.dry_run\n    raise ValueError('oh')\n"
    )
    ran = doctor("--with", "config.yaml", "--json")
    assert ran.code == 1, ran
    rows = {(row["timing"], row["name"]): row for row in ran.json["hooks"]}
    assert rows["pre_tool_execution", "first"]["answer"]
    assert "ValueError" in str(rows["pre_tool_execution", "broken"]["error"])
    assert not rows["pre_tool_execution", "picky"]["matched"]
    assert not rows["on_turn_complete", "script"]["error"]
    assert not (cli.project / "ran").exists()
    assert "dry: runs only with --live" in doctor("--with", "config.yaml").out
    live = doctor("--with", "config.yaml", "--live", "--json")
    rows = {(row["timing"], row["name"]): row for row in live.json["hooks"]}
    assert "exit code 3" in str(rows["on_turn_complete", "script"]["error"])
    assert (cli.project / "ran").exists()


def test_dead_matchers_and_doubles(doctor, cli):
    cli.write(
        "config.yaml",
        """\
hooks:
- {name: typo, timings: [pre_tool_execution], run: {command: ["true"]}, filter: {tools: [Frobnicate]}}
- {name: fine, timings: [pre_tool_execution], run: {command: ["false"]}, filter: {tools: [Bash, "mcp__x__*", bash]}}
- {name: once, timings: [pre_tool_execution], run: {command: ["true"]}}
- {name: again, timings: [pre_tool_execution], run: {command: ["true"]}}
- {name: line, timings: [pre_tool_execution], run: {command: "[[ -n $X ]] && exit 2"}}
""",
    )
    told = [problem["cause"] for problem in doctor("--with", "config.yaml", "--json").json["problems"]]
    assert any("typo is for the tool 'Frobnicate', which no known agent has" in cause for cause in told)
    assert [cause for cause in told if "runs the same as" in cause] == [
        "the hook again runs the same as once (config.yaml:4)"
    ]
    assert any("is read by sh, which does not know [[ ... ]]" in cause for cause in told)
    assert not any("fine" in cause for cause in told)


def test_trouble_of_calls_is_shown(doctor, cli):
    cli("bridge", "claude-code", "--timeout", "30", input=b"{", cwd=cli.project)
    rows = doctor("--json").json["trouble"]
    assert [row["agent"] for row in rows] == ["claude-code"]
    assert rows[0]["cause"]
    assert "trouble" in doctor().out


def test_it_changes_nothing(doctor, cli):
    cli.write("hookturn.yaml", GUARDED)
    before = sorted(str(path) for path in cli.project.rglob("*"))
    doctor()
    assert sorted(str(path) for path in cli.project.rglob("*")) == before


@pytest.fixture
def elsewhere(cli, tmp_path):
    """A second Python environment that has hookturn: a folder that its own interpreter takes for its prefix."""
    import venv

    import hookturn

    folder = tmp_path / "other env"
    venv.create(folder, with_pip=False, system_site_packages=True, symlinks=True)
    site = next(folder.glob("lib/python*/site-packages"))
    import importlib.util
    from pathlib import Path

    homes = {str(Path(hookturn.__file__).parent.parent), str(Path(importlib.util.find_spec("pluggy").origin).parent.parent),
             str(Path(importlib.util.find_spec("hookturn_builtins").origin).parent.parent)}  # fmt: skip
    (site / "borrowed.pth").write_text("\n".join(sorted(homes)) + "\n")
    return folder


def test_another_installation_that_answers_is_named(doctor, cli, elsewhere):
    import subprocess

    cli.write("hookturn.yaml", GUARDED)
    assert cli("install", "claude-code", "--yes").code == 0
    payload = {"session_id": "s", "hook_event_name": "PreToolUse", "cwd": str(cli.project), "tool_name": "Bash",
               "tool_input": {"command": "ls"}, "tool_use_id": "t"}  # fmt: skip

    def answered_by(python):
        done = subprocess.run([python, "-m", "hookturn", "bridge", "claude-code"], input=json.dumps(payload).encode(),
                              env=cli.env, cwd=cli.project, capture_output=True, timeout=60)  # fmt: skip
        assert done.returncode == 0, done
        return doctor("--json").json

    told = answered_by(str(elsewhere / "bin" / "python"))
    (found,) = told["installations"]
    assert found["elsewhere"] is True
    assert found["answered_by"].startswith(str(elsewhere))
    guard = {item["name"]: item for item in told["guards"]}["no-rm"]
    assert guard["answered_by"] == found["answered_by"]
    text = doctor().out
    assert f"claude-code was last answered by another hookturn, {elsewhere}" in text
    assert "not by this hookturn (" in text
    told = answered_by(sys.executable)
    assert told["installations"][0]["elsewhere"] is False
    assert {item["name"]: item["answered_by"] for item in told["guards"]}["no-rm"] == ""
    assert "another hookturn" not in doctor().out


def test_an_entry_of_another_installation_is_told(doctor, cli):
    assert cli("install", "claude-code", "--yes").code == 0
    other = os.path.join(os.path.dirname(sys.executable), ".", os.path.basename(sys.executable))
    path = cli.project / ".claude/settings.json"
    path.write_text(path.read_text().replace(sys.executable, str(other)))
    (found,) = doctor("--json").json["installations"]
    assert found["state"] == "changed"
    assert f"it calls {other}, another installation than this one" in found["cause"]


def test_what_is_left_after_uninstall(doctor, cli):
    cli.write("hookturn.yaml", GUARDED)
    assert cli("install", "claude-code", "--yes").code == 0
    call(cli, "PreToolUse", tool_name="Bash", tool_input={"command": "ls"}, tool_use_id="t")
    cli("bridge", "claude-code", input='{"hook_event_name": "PreToolUse"')
    assert "claude-code PreToolUse" in doctor().out
    cli("bridge", "codex", input='{"hook_event_name": "PreToolUse"')
    assert cli("uninstall", "claude-code", "--yes").code == 0
    told = doctor("--json").json
    assert [row["agent"] for row in told["trouble"]] == ["codex"]
    assert {guard["name"]: guard["last"] for guard in told["guards"]}["no-rm"] is not None
    assert "No agent calls, so these guards protect nothing any more." in doctor().out
