"""opencode's side of the bridge: ``plugin.js`` in Node, against a bridge that answers as told; and its types."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "fake_model"))

from agent_programs import opencode_types

from hookturn.agents.opencode import hooks, install

DATA = Path(__file__).parent.parent / "data/captures/opencode"

FAKE = """\
import json, sys, time
from pathlib import Path
payload = json.loads(sys.stdin.buffer.read())
here = Path(__file__).parent
with (here / "seen.jsonl").open("a") as file:
    file.write(json.dumps(payload) + "\\n")
name = payload["hook"] if payload["hook"] != "event" else payload["event"]["type"]
rule = json.loads((here / "answers.json").read_text()).get(name, {})
time.sleep(rule.pop("sleep", 0))
sys.stderr.write(rule.pop("stderr", ""))
if "raw" in rule:
    sys.stdout.write(rule["raw"])
    sys.exit(rule.get("exit", 0))
print(json.dumps(rule))
"""
"""A bridge: writes down what it gets, answers as told."""

DRIVER = """\
import { readFileSync } from "node:fs"
const steps = JSON.parse(readFileSync(process.argv[2], "utf8"))
const client = { session: { get: async ({ path }) => ({ data: { parentID: path.id === "ses_old" ? "ses_top" : undefined } }) } }
const load = async (path) => (await import(path)).Hookturn({ client, directory: process.cwd(), worktree: "/" })
const plugins = []
for (const path of process.argv.slice(3)) plugins.push(await load(path))
const results = []
for (const step of steps) {
  const { input, output } = step
  const first = output && Object.values(output).find((value) => value && typeof value === "object")
  try {
    if (step.load) plugins.push(await load(step.load))
    for (const hooks of step.load ? [] : plugins) {
      if (step.hook === "event") hooks.event({ event: step.event })
      else await hooks[step.hook](input, output)
    }
    const same = !first || Object.values(output).includes(first)
    results.push({ output, same })
  } catch (error) {
    results.push({ error: error.message })
  }
}
console.log(JSON.stringify(results))
"""


def captured(name, **changes):
    payload = json.loads((DATA / f"{name}.json").read_text())
    payload["input"] |= {key: value for key, value in changes.items() if key in payload["input"]}
    payload["output"] |= {key: value for key, value in changes.items() if key in payload["output"]}
    return {"hook": name, **payload}


def bus(type, **properties):
    return {"hook": "event", "event": {"id": "e", "type": type, "properties": properties}}


class Plugin:
    def __init__(self, folder):
        self.folder = folder
        (folder / "fake.py").write_text(FAKE)
        (folder / "driver.mjs").write_text(DRIVER)
        self.stderr = ""

    def run(self, *steps, answers=None, closed=(), command=None, seconds=60, loaded=()):
        command = command or [sys.executable, str(self.folder / "fake.py")]
        text = install.plugin(command, list(closed))
        (self.folder / "hookturn.mjs").write_text(
            text.replace("const SECONDS = 60", f"const SECONDS = {seconds}")
        )
        (self.folder / "answers.json").write_text(json.dumps(answers or {}))
        (self.folder / "steps.json").write_text(json.dumps(steps))
        done = subprocess.run(
            ["node", "driver.mjs", "steps.json", *map(str, loaded or [self.folder / "hookturn.mjs"])], cwd=self.folder,
            capture_output=True, text=True, timeout=60, check=True,
        )  # fmt: skip
        self.stderr = done.stderr
        return json.loads(done.stdout)

    @property
    def seen(self):
        path = self.folder / "seen.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []


@pytest.fixture
def plugin(tmp_path):
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    return Plugin(tmp_path)


def test_functions_reach_the_bridge_and_are_changed_in_place(plugin):
    results = plugin.run(
        captured("tool.execute.before"),
        captured("tool.execute.after"),
        captured("shell.env"),
        captured("experimental.chat.system.transform", system=["You are opencode."]),
        captured("experimental.text.complete"),
        {
            "hook": "experimental.session.compacting",
            "input": {"sessionID": "s"},
            "output": {"context": ["a"]},
        },
        answers={
            "tool.execute.before": {"assign": {"args": {"command": "other"}}, "warn": ["careful"]},
            "tool.execute.after": {"set": {"output": "other"}},
            "shell.env": {"assign": {"env": {"A": "1"}}},
            "experimental.chat.system.transform": {"replace": {"system": ["x", "y"]}},
            "experimental.text.complete": {"set": {"text": "other"}},
            "experimental.session.compacting": {"push": {"context": ["b"]}},
        },
    )
    assert all(result["same"] for result in results)
    outputs = [result["output"] for result in results]
    assert outputs[0] == {"args": {"command": "other"}}
    assert outputs[1]["output"] == "other" and outputs[1]["metadata"]["exit"] == 0
    assert outputs[2:] == [
        {"env": {"A": "1"}},
        {"system": ["x", "y"]},
        {"text": "other"},
        {"context": ["a", "b"]},
    ]
    assert "hookturn: careful" in plugin.stderr
    assert plugin.seen[0]["input"]["callID"] and plugin.seen[0]["directory"] == str(plugin.folder)
    assert {payload["hook"] for payload in plugin.seen} <= set(hooks.EVENTS)


def test_a_message_gets_words_and_context(plugin):
    (result,) = plugin.run(
        captured("chat.message"),
        answers={"chat.message": {"message": {"text": "other", "context": "READ ME"}}},
    )
    own, more = result["output"]["parts"]
    assert own["text"] == "other"
    assert (more["text"], more["synthetic"], more["messageID"]) == ("READ ME", True, own["messageID"])
    assert more["id"] > own["id"] and more["id"].startswith("prt_")


def test_a_refusal_is_an_error(plugin):
    refused, after, message = plugin.run(
        captured("tool.execute.before"),
        bus("message.part.updated", part={"type": "tool", "callID": captured("tool.execute.before")["input"]["callID"],
                                          "sessionID": "s", "state": {"status": "error"}}),
        captured("chat.message"),
        answers={"tool.execute.before": {"throw": "No."}, "chat.message": {"throw": "Not this one."}},
    )  # fmt: skip
    assert (refused, message) == ({"error": "No."}, {"error": "Not this one."})
    assert "Not this one." in plugin.stderr  # opencode itself says "server error" only
    assert [payload["hook"] for payload in plugin.seen] == ["tool.execute.before", "chat.message"]
    assert "error" not in after


def test_requests_on_the_side_are_left_alone(plugin):
    title = captured("experimental.chat.system.transform")
    summary = captured(
        "experimental.chat.system.transform", system=["You are a context summarization agent. You are given"]
    )
    plugin.run(title, summary, {**captured("shell.env"), "input": {"cwd": "/"}})
    assert plugin.seen == []


def test_bus_events_come_in_order_and_before_what_follows(plugin):
    info = {"id": "ses_1"}
    plugin.run(
        bus("session.created", sessionID="ses_1", info=info),
        bus("session.updated", sessionID="ses_1", info=info),
        bus("session.created", sessionID="ses_2", info={"id": "ses_2", "parentID": "ses_1"}),
        captured("chat.message", sessionID="ses_2"),
        captured("experimental.text.complete", sessionID="ses_2"),
        bus("session.idle", sessionID="ses_2"),
        captured("tool.execute.before", sessionID="ses_old"),
        {"hook": "dispose"},
        answers={"session.created": {"sleep": 0.2}},
    )
    names = [p["hook"] if p["hook"] != "event" else p["event"]["type"] for p in plugin.seen]
    assert names == [
        "session.created", "chat.message", "experimental.text.complete", "session.idle", "tool.execute.before", "dispose"
    ]  # fmt: skip
    _, message, _, idle, old, end = plugin.seen
    assert (message["parent"], message["agent"]) == ("ses_1", "build")
    assert (idle["parent"], idle["text"]) == ("ses_1", "Finished.")
    assert old["parent"] == "ses_top"  # the server knows what this process never heard
    assert end["input"] == {"sessionID": "ses_1"}


@pytest.mark.parametrize("order", ["the user's first", "the project's first", "two of the project"])
def test_where_it_is_loaded_twice_hooks_hear_everything_once(plugin, order):
    """Installed for the user and in the project: the user's counts, since a repository's may call what is not there."""
    there = install.plugin([sys.executable, str(plugin.folder / "fake.py")], [])
    elsewhere = install.plugin(["/nowhere/hookturn"], [])
    users, projects = plugin.folder / "opencode/plugin", plugin.folder / ".opencode/plugin"
    for folder, text in ((users, there), (projects, there if order.startswith("two") else elsewhere)):
        folder.mkdir(parents=True)
        (folder / "hookturn.mjs").write_text(text)
    own, other = users / "hookturn.mjs", projects / "hookturn.mjs"
    if order.startswith("two"):
        shutil.copy(other, projects / "again.mjs")
        own = projects / "again.mjs"
    steps = [
        bus("session.created", info={"id": "ses_1"}),
        captured("chat.message", sessionID="ses_1"),
        captured("tool.execute.before", sessionID="ses_1"),
        {"hook": "dispose"},
    ]
    plugin.run(*steps, loaded=[own, other] if order == "the user's first" else [other, own])
    assert [call["hook"] for call in plugin.seen] == [
        "event",
        "chat.message",
        "tool.execute.before",
        "dispose",
    ]
    assert plugin.stderr == ""


def test_where_the_users_is_gone_the_projects_tells(plugin):
    """opencode lets the project go, the user takes out theirs, and the project is opened again."""
    folder = plugin.folder / ".opencode/plugin"
    folder.mkdir(parents=True)
    (folder / "hookturn.mjs").write_text(install.plugin([sys.executable, str(plugin.folder / "fake.py")], []))
    plugin.run({"hook": "dispose"}, {"load": str(folder / "hookturn.mjs")}, captured("tool.execute.before"))
    assert [call["hook"] for call in plugin.seen] == ["tool.execute.before"]


FAILURES = {
    "no program": {"command": ["/nowhere/hookturn"]},
    "no JSON": {"answers": {"tool.execute.before": {"raw": "Traceback"}}},
    "a crash": {"answers": {"tool.execute.before": {"raw": "", "exit": 1}}},
    "too late": {"answers": {"tool.execute.before": {"sleep": 30}}, "seconds": 1},
}


@pytest.mark.parametrize("case", FAILURES)
def test_without_an_answer_the_tool_runs_unless_a_hook_fails_closed(plugin, case):
    (result,) = plugin.run(captured("tool.execute.before"), **FAILURES[case])
    assert "error" not in result
    assert "did not answer" in plugin.stderr
    (result,) = plugin.run(captured("tool.execute.before"), closed=["tool.execute.before"], **FAILURES[case])
    assert "a hook here fails closed" in result["error"]


def test_what_the_bridge_says_of_itself_is_told(plugin):
    answers = {"tool.execute.before": {"stderr": "hookturn: the file is broken\n", "raw": ""}}
    plugin.run(captured("tool.execute.before"), answers=answers)
    assert plugin.stderr == "hookturn: the file is broken\n"


@pytest.mark.agents
def test_types(tmp_path):
    """``plugin.js`` against the types of @opencode-ai/plugin, and a mistake in it is found."""
    modules = opencode_types()
    compiler = modules / "typescript/bin/tsc"
    os.symlink(modules, tmp_path / "node_modules")
    (tmp_path / "package.json").write_text('{"type": "module"}')
    text = install.plugin(["python", "-m", "hookturn", "bridge", "opencode"], ["tool.execute.before"])
    options = [
        "--noEmit", "--allowJs", "--checkJs", "--strict", "--noUnusedLocals", "--skipLibCheck", "--target", "esnext",
        "--module", "nodenext", "--moduleResolution", "nodenext", "--types", "node",
    ]  # fmt: skip

    def check(content):
        (tmp_path / "hookturn.js").write_text(content)
        return subprocess.run(
            ["node", str(compiler), *options, "hookturn.js"], cwd=tmp_path, capture_output=True, text=True
        )

    good = check(text)
    assert good.returncode == 0, good.stdout
    assert check(text.replace("input.callID", "input.callId")).returncode != 0
    assert check(text.replace("output.message.agent", "output.agent")).returncode != 0
