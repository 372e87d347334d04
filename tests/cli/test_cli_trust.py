"""``hookturn trust`` and ``hookturn untrust``."""

from __future__ import annotations

import os
import pty
import subprocess
from hashlib import sha256

import pytest

MODULE = b"from hookturn import Deny\ndef pre_tool_execution(event):\n    return Deny('by module')\n"
CONFIG = """\
hooks:
  - name: own
    run: {module: hooks/own.py}
  - name: tight
    timings: [on_turn_start]
    run: {answer: {warn: "x"}}
plugins: {audit-log: {path: /tmp/x}}
permissions: {always_allow: [read], deny: ["bash(rm *)"]}
"""
EVENT = '{"tool": "bash", "args": {"command": "ls"}}'


@pytest.fixture
def project(cli):
    cli.write("hookturn.yaml", CONFIG)
    cli.write("hooks/own.py", MODULE)
    return cli


def decision(cli):
    return cli("fire", "pre_tool_execution", "--event", "-", "--json", input=EVENT).json["decision"]


def test_without_a_terminal_it_shows_and_refuses(project):
    ran = project("trust")
    assert ran.code == 2
    assert str(project.project) in ran.out
    assert "new: own runs hooks/own.py (hookturn.yaml:2)" in ran.out
    assert f"hooks/own.py  sha256 {sha256(MODULE).hexdigest()}" in ran.out
    assert "configures the plugin audit-log" in ran.out
    assert "allows read without a prompt" in ran.out
    assert "tight" not in ran.out  # it can only tighten, so it counts without trust
    assert ran.err == (
        "hookturn: nobody can be asked here. Look at what would be trusted, then run `hookturn trust --yes`.\n"
    )
    assert decision(project) is None


def test_without_a_terminal_json_shows_and_refuses(project):
    ran = project("trust", "--json")
    assert ran.code == 2
    out = ran.json
    assert out["trusted"] is False
    assert "hookturn trust --yes" in out["error"]
    assert {item["key"] for item in out["pending"]} == {
        "hooks.own",
        "plugins.audit-log",
        "permissions.always_allow",
    }
    (own,) = [item for item in out["pending"] if item["key"] == "hooks.own"]
    assert own["state"] == "untrusted"
    assert own["files"] == {str(project.project / "hooks/own.py"): sha256(MODULE).hexdigest()}


def test_yes_trusts_exactly_what_is_there(project):
    ran = project("trust", "--yes")
    assert (ran.code, ran.out.rstrip().split("\n")[-1]) == (0, f"trusted: {project.project}")
    assert decision(project) == "deny"
    ran = project("trust")
    assert (ran.code, ran.out) == (0, f"{project.project}: nothing in hookturn.yaml waits for trust.\n")
    project.write("hooks/own.py", MODULE + b"# changed\n")
    assert decision(project) is None
    ran = project("trust", "--json")
    assert [(item["key"], item["state"]) for item in ran.json["pending"]] == [("hooks.own", "changed")]
    ran = project("trust", "--yes", "--json")
    assert (ran.code, ran.json["trusted"]) == (0, True)
    assert decision(project) == "deny"


def test_untrust_forgets(project):
    project("trust", "--yes")
    ran = project("untrust")
    assert (ran.code, ran.out) == (0, f"{project.project} is no longer trusted.\n")
    assert decision(project) is None
    ran = project("untrust")
    assert (ran.code, ran.out) == (0, f"{project.project} was not trusted.\n")
    assert project("untrust", "--json").json == {
        "schema": 1,
        "project": str(project.project),
        "trusted": False,
        "was_trusted": False,
    }


def test_a_guard_or_rule_that_goes_must_be_confirmed(cli):
    cli.write(
        "hookturn.yaml",
        "hooks: [{name: keep, timings: [pre_tool_execution], guard: true, run: {module: own.py}}]\n"
        "permissions: {deny: ['bash(rm *)']}\n",
    )
    cli.write("own.py", "def pre_tool_execution(event): pass\n")
    assert cli("trust", "--yes").code == 0
    cli.write("hookturn.yaml", "hooks: []\n")
    assert decision(cli) == "deny"
    ran = cli("trust")
    assert ran.code == 2
    assert "gone: keep" in ran.out
    assert "gone: the rule deny: bash(rm *)" in ran.out
    assert cli("trust", "--json").json["dropped_rules"] == ["deny: bash(rm *)"]
    assert cli("trust", "--yes").code == 0
    assert decision(cli) is None
    assert "waits for trust" in cli("trust").out


def test_an_unreadable_file_is_not_trusted(project):
    project("trust", "--yes")
    project.write("hookturn.yaml", "hooks: [\n")
    ran = project("trust", "--yes")
    assert ran.code == 1
    assert "hookturn.yaml:2:1: not YAML" in ran.err
    assert "Nothing was trusted." in ran.err


@pytest.mark.parametrize("line", ["gaurd: true", "guard: true, filters: {tools: [bash]}"])
def test_nothing_is_trusted_beside_a_misspelled_guard(project, line):
    """Neither is the rest trusted without its guard, nor a trusted guard given up."""

    def config(words):
        entry = (
            f"  - {{name: other, timings: [pre_tool_execution], run: {{module: hooks/own.py}}, {words}}}\n"
        )
        project.write("hookturn.yaml", CONFIG.replace("plugins:", f"{entry}plugins:"))

    config(line)
    fresh = project("trust", "--yes")
    assert fresh.code == 1
    assert "hookturn.yaml:7: the guard other cannot be read: unknown key " in fresh.err
    assert "did you mean" in fresh.err
    assert "Nothing was trusted." in fresh.err
    assert decision(project) is None
    config("guard: true")
    assert project("trust", "--yes").code == 0
    config(line)
    assert "the guard other cannot be read" in project("trust", "--yes", "--json").json["error"]
    assert decision(project) == "deny"


def test_a_file_that_is_too_big_is_not_trusted(project):
    project("trust", "--yes")
    project.write("hookturn.yaml", f"# {'x' * 1_200_000}\n")
    ran = project("trust", "--yes", "--json")
    assert ran.code == 1
    assert "hookturn.yaml: cannot be read" in ran.json["error"]
    assert "Nothing was trusted." in ran.err
    project.write("hookturn.yaml", CONFIG)
    assert decision(project) == "deny"


def test_nothing_to_trust(cli):
    ran = cli("trust")
    assert (ran.code, ran.out) == (0, f"{cli.project} has no configuration: there is nothing to trust.\n")
    ran = cli("trust", "--json").json
    assert (ran["pending"], ran["file"], ran["trusted"]) == ([], None, True)


@pytest.mark.parametrize(
    ("answer", "trusted"),
    [(b"y\n", True), (b"YES\n", True), (b"n\n", False), (b"\n", False), (b"\x04", False)],
)
def test_a_person_is_asked(project, answer, trusted):
    master, slave = pty.openpty()
    os.write(master, answer)
    process = subprocess.run(
        [*project.command, "trust"], stdin=slave, capture_output=True, env=project.env, cwd=project.project, timeout=60
    )  # fmt: skip
    os.close(master)
    os.close(slave)
    assert process.returncode == (0 if trusted else 1)
    assert b"Trust this, in exactly this form? [y/N] " in process.stderr
    assert (b"nothing was trusted" in process.stderr) == (not trusted)
    assert (decision(project) == "deny") == trusted


def test_trust_cannot_be_written(project):
    blocked = project.write("state", "a file where the folder should be")
    ran = project("trust", "--yes", env={"HOOKTURN_STATE_DIR": str(blocked)})
    assert ran.code == 1
    assert ran.err.startswith("hookturn: ")
    assert str(blocked) in ran.err
    assert "Traceback" not in ran.err


def test_hostile_declarations_are_shown_escaped(cli):
    cli.write("hookturn.yaml", 'hooks: [{name: own, run: {module: "a\\e[2J.py"}}]')
    ran = cli("trust")
    assert ran.code == 2
    assert "\x1b" not in ran.out + ran.err
    assert "a\\x1b[2J.py" in ran.out


def test_trust_runs_nothing(cli):
    cli.write(
        "hookturn.yaml", "hooks: [{name: own, run: {module: own.py}, config: {t: {command: [touch, ran]}}}]"
    )
    cli.write("own.py", "open('ran', 'w')\ndef on_turn_start(event): pass\n")
    ran = cli("trust", "--yes")
    assert ran.code == 0
    assert "runs touch ran" in ran.out
    assert not (cli.project / "ran").exists()


def test_a_file_that_cannot_be_read_is_said_and_the_rest_is_trusted(cli):
    cli.write("own.py", "def on_turn_start(event): ...\n")
    cli.write(
        "hookturn.yaml",
        "hooks:\n  - {name: gone, run: {module: gone.py}}\n  - {name: own, run: {module: own.py}}\n",
    )
    ran = cli("trust", "--yes")
    assert ran.code == 1
    assert f"1 file cannot be read, so what needs it does not run: {cli.project / 'gone.py'}" in ran.err
    rows = {row["name"]: row["state"] for row in cli("plugins", "--json").json["plugins"]}
    assert (rows["gone"], rows["own"]) == ("failed", "loaded")
