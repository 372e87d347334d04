"""Hooks in JavaScript on the command line: fire, and check, which loads the trusted files."""

from __future__ import annotations

import json
import shutil

import pytest

pytestmark = pytest.mark.skipif(shutil.which("node") is None, reason="there is no node in PATH")

CONFIG = (
    "hooks:\n  - {name: js, timings: [pre_tool_execution, post_tool_execution], run: {javascript: x.mjs}}\n"
)


@pytest.fixture
def script(cli):
    def write(text):
        (cli.project / "hookturn.yaml").write_text(CONFIG)
        (cli.project / "x.mjs").write_text(text)
        assert cli("trust", "--yes").code == 0

    return write


def problems(cli):
    ran = cli("check", "--json")
    found = ran.json["problems"]
    assert ran.code == (1 if found else 0)
    return [problem["cause"] for problem in found]


def test_fire(cli, script):
    script("export default (event) => ({deny: event.command, advice: 'a'});")
    event = json.dumps({"tool": "Bash", "args": {"command": "ls"}})
    out = cli("fire", "pre_tool_execution", "--event", "-", "--json", input=event).json
    assert (out["decision"], out["reason"], out["by"]) == ("deny", "ls", "js")


def test_check_loads_what_is_trusted(cli, script):
    script("export const preToolExecution = () => {}; export const post_tool_execution = () => {};")
    assert problems(cli) == []
    script("export default () => {};")
    assert problems(cli) == []
    script("export const preToolExecution = () => {}; export const postToolExecutoin = () => {};")
    (cause,) = problems(cli)
    assert cause.endswith(
        "x.mjs exports no post_tool_execution (did you mean 'postToolExecutoin'?); it exports postToolExecutoin, preToolExecution"
    )
    script("import 'nowhere-to-be-found';")
    (cause,) = problems(cli)
    assert "x.mjs cannot be loaded: Error: Cannot find package 'nowhere-to-be-found'" in cause


def test_check_runs_nothing_untrusted(cli, script):
    script("export default () => {};")
    (cli.project / "x.mjs").write_text("import {writeFileSync} from 'node:fs'; writeFileSync('ran', '');")
    cli("check")
    assert not (cli.project / "ran").exists()
