"""``install rolebox``, the module that it writes, in Node as rolebox calls it, and ``bridge rolebox``."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

import yaml
from agent_calls import Hooks
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from hookturn import Block, Deny, Engine, Inject, Rewrite, Warn
from hookturn.agents import bridge
from hookturn.agents.installing import CannotInstall
from hookturn.agents.rolebox import hooks as rolebox
from hookturn.agents.rolebox import install, role_text

ENTRY = {
    "name": "hookturn",
    "events": install.EVENTS,
    "module": "/a b/hooks/hookturn.mjs",
    "priority": 90,
    "phase": "before",
}

# -- role.yaml --------------------------------------------------------------------------------------

LAYOUTS = {
    "no hooks": "name: A\nprompt: |\n  Hello.\n",
    "no end of line": "name: A\nprompt: x",
    "comments": "# top\nname: A\nhooks: # here\n  # first\n  custom: # list\n    # about\n    - name: t # x\n      events: [event]\n      module: t.py\n\n# end\n",
    "dashes at the key": "name: A\nhooks:\n  custom:\n  - name: t\n    events: [event]\n    module: t.py\nlocked: true\n",
    "other keys of hooks": "name: A\nhooks:\n    builtin:\n        recovery: true\n    recovery: {max_total_attempts: 3}\nprompt: x\n",
    "null hooks": "name: A\nhooks:\nprompt: x\n",
    "null hooks at the end": "name: A\nhooks:",
    "null custom": "name: A\nhooks:\n  custom:\n  builtin: {recovery: true}\n",
    "empty list": "name: A\nhooks:\n  custom: []   # none yet\n  builtin: {recovery: true}\n",
    "windows": "name: A\r\nhooks:\r\n  custom:\r\n    - name: t\r\n      events: [event]\r\n      module: t.py\r\n",
    "byte-order mark": "\ufeffname: A\nprompt: x\n",
    "block text last": "name: A\nhooks:\n  custom:\n    - name: t\n      events: [event]\n      module: t.py\n      description: |\n        many\n        lines\n",
    "document start": "---\nname: A\nprompt: x\n",
}  # fmt: skip


@pytest.mark.parametrize("layout", LAYOUTS)
def test_the_entry_goes_in_and_out_again(layout):
    before = LAYOUTS[layout].encode()
    after = role_text.entered(before, ENTRY, "role.yaml")
    old, new = yaml.safe_load(before), yaml.safe_load(after)
    assert new["hooks"]["custom"][0] == ENTRY
    assert new["hooks"]["custom"][1:] == ((old.get("hooks") or {}).get("custom") or [])
    assert {k: v for k, v in new.items() if k != "hooks"} == {k: v for k, v in old.items() if k != "hooks"}
    kept = [line for line in before.decode().splitlines() if line.strip(" []") and "[]" not in line]
    assert all(line in after.decode().splitlines() for line in kept)
    assert role_text.entered(after, ENTRY, "role.yaml") == after
    changed = {**ENTRY, "priority": 10}
    again = role_text.entered(after, changed, "role.yaml")
    assert [
        item["priority"] for item in yaml.safe_load(again)["hooks"]["custom"] if item["name"] == "hookturn"
    ] == [10]
    out = role_text.removed(after, "role.yaml")
    assert "hookturn" not in out.decode()
    if (old.get("hooks") or {}).get("custom"):
        assert out == before


REFUSED = {
    "one line": "name: A\nhooks: {custom: []}\n",
    "a list on one line": "name: A\nhooks:\n  custom: [{name: t, events: [event], module: t.py}]\n",
    "the whole on one line": "{name: A, prompt: x}\n",
    "an alias": "name: A\nx: &h\n  custom:\n    - {name: t}\nhooks: *h\n",
    "an anchor": "name: A\nhooks: &h\n  builtin: {}\nother: *h\n",
    "twice": "name: A\nhooks:\n  builtin: {}\nhooks:\n  recovery: {}\n",
    "not YAML": "name: [A\n",
    "two documents": "name: A\n---\nname: B\n",
    "a text": "name: A\nhooks: none\n",
    "a list": "- name: A\n",
    "nothing": "",
    "null as a word": "name: A\nhooks: ~\n",
    "indented": "  name: A\n  prompt: x\n",
    "latin-1": "name: caf\xe9\n".encode("latin-1"),
}  # fmt: skip


@pytest.mark.parametrize("case", REFUSED)
def test_what_cannot_be_edited_safely_is_refused(case):
    content = REFUSED[case]
    with pytest.raises(CannotInstall, match=r"role\.yaml .* stays as it is"):
        role_text.entered(content if isinstance(content, bytes) else content.encode(), ENTRY, "role.yaml")


KEYS = st.sampled_from(["name", "prompt", "functions", "hooks", "locked"])
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.text(max_size=12)),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
HOOKS = st.fixed_dictionaries(
    {},
    optional={
        "custom": st.lists(
            st.fixed_dictionaries({"name": st.text(max_size=8), "config": VALUES}), max_size=3
        ),
        "builtin": st.dictionaries(st.text(max_size=5), st.booleans(), max_size=2),
    },
)


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(
    role=st.fixed_dictionaries(
        {"name": st.text(max_size=9)}, optional={"prompt": VALUES, "hooks": HOOKS, "z": VALUES}
    ),
    style=st.sampled_from([None, False]),
    indent=st.sampled_from([2, 4]),
)
def test_any_role_is_edited_rightly_or_refused(role, style, indent):
    before = yaml.safe_dump(
        role, default_flow_style=style, indent=indent, allow_unicode=True, sort_keys=False
    ).encode()
    try:
        after = role_text.entered(before, ENTRY, "role.yaml")
    except CannotInstall:
        return
    new = yaml.safe_load(after)
    role = yaml.safe_load(before)  # PyYAML does not read every text as it wrote it: U+0085 becomes a blank
    assert new["hooks"]["custom"] == [ENTRY, *(role.get("hooks", {}).get("custom") or [])]
    out = yaml.safe_load(role_text.removed(after, "role.yaml"))
    assert (out.get("hooks") or {}).get("custom", []) == role.get("hooks", {}).get("custom", [])
    assert {k: v for k, v in out.items() if k != "hooks"} == {k: v for k, v in role.items() if k != "hooks"}


# -- the module, as rolebox calls it ----------------------------------------------------------------

CALLER = """\
// Calls a module as rolebox does: the namespace is the table of handlers, copies here, live objects there, what is
// returned or thrown has no effect.
import { readFileSync } from "node:fs"
const handlers = await import(process.argv[2])
const steps = JSON.parse(readFileSync(process.argv[3], "utf8"))
const NAMES = { "chat.message": "onChatMessage", "tool.execute.before": "onToolBefore", "tool.execute.after": "onToolAfter",
  "system.transform": "onSystemTransform", event: "onEvent", load: "onLoad", dispose: "onDispose" }
const results = [{ names: Object.keys(handlers).sort(), same: handlers.default.onEvent === handlers.onEvent }]
for (const { hook, sessionID, agent, input } of steps) {
  const said = [], logs = []
  const ctx = { hookName: "[custom.before]", config: undefined, sessionID, agent, inject: (text) => said.push(text),
    log: { warn: (text) => logs.push(text) }, skip() {}, retry() {} }
  try {
    await handlers[NAMES[hook]]?.(ctx, input)
  } catch (error) {
    logs.push(`threw ${error.message}`)
  }
  results.push({ input, said, logs })
}
console.log(JSON.stringify(results))
"""

SHELL = {"command": "rm -rf /", "description": "clean", "timeout": 5, "env": {"A": "1"}, "list": [1]}


class Role:
    """A role in which hookturn is installed, in a project with hooks."""

    def __init__(self, folder, hooks):
        self.folder = folder / "my roles/careful"
        self.folder.mkdir(parents=True)
        (self.folder / "role.yaml").write_text("name: Careful\nprompt: You edit.\n")
        self.project = folder / "project"
        self.project.mkdir()
        config = Path(os.environ["HOOKTURN_CONFIG_DIR"])
        config.mkdir(parents=True, exist_ok=True)
        (config / "hookturn.yaml").write_text(hooks)
        (config / "guard.py").write_text(GUARD)
        (self.project / "caller.mjs").write_text(CALLER)

    def cli(self, *words, check=True):
        return subprocess.run(
            [sys.executable, "-m", "hookturn", *words],
            cwd=self.project,
            capture_output=True,
            text=True,
            timeout=60,
            check=check,
        )

    def run(self, *steps, **environ):
        (module,) = [
            item["module"]
            for item in yaml.safe_load((self.folder / "role.yaml").read_text())["hooks"]["custom"]
        ]
        (self.project / "steps.json").write_text(json.dumps(steps))
        done = subprocess.run(
            ["node", "caller.mjs", module, "steps.json"], cwd=self.project, capture_output=True, text=True, timeout=120,
            check=True, env={**os.environ, **environ},
        )  # fmt: skip
        return json.loads(done.stdout)


def step(hook, session="s-1", agent=None, **given):
    return {"hook": hook, "sessionID": session, "agent": agent, "input": given}


GUARDED = """\
hooks:
- name: scripted
  timings: [pre_tool_execution, system_prompt, post_tool_execution]
  run: {module: guard.py}
"""

GUARD = """\
from hookturn import Deny, Inject, Rewrite, hookimpl

@hookimpl(on_failure="deny")
def pre_tool_execution(event):
    if event.command.startswith("rm"):
        return Deny("No rm.")
    return Rewrite(command="ls -l")

@hookimpl
def system_prompt():
    return Inject("Write tests.")

@hookimpl
def post_tool_execution():
    return Inject("Check it.")
"""


@pytest.fixture
def role(tmp_path):
    if shutil.which("node") is None:
        pytest.skip("node is not installed")
    made = Role(tmp_path, GUARDED)
    made.cli("install", "rolebox", str(made.folder), "--yes")
    yield made
    made.cli("serve", "--stop", check=False)


def test_a_roles_session(role):
    table, loaded, _, message, system, denied, changed, done, _, _ = role.run(
        step("load"),
        step("event", type="session.created", properties={"sessionID": "s-1", "info": {"id": "s-1"}}),
        step("chat.message", agent="careful", text="do it"),
        step("system.transform", agent="careful", system=["You edit."]),
        step("tool.execute.before", tool="bash", args=dict(SHELL)),
        step("tool.execute.before", tool="bash", args={"command": "ls x", "description": "look"}),
        step(
            "tool.execute.after", tool="bash", args={"command": "ls -l", "description": "look"}, output="a b"
        ),
        step("event", type="session.idle", properties={"sessionID": "s-1"}),
        step("dispose"),
    )
    assert table == {
        "names": ["default", "onChatMessage", "onDispose", "onEvent", "onLoad", "onSystemTransform", "onToolAfter", "onToolBefore"],
        "same": True,
    }  # fmt: skip
    assert all(not result["logs"] for result in (loaded, message, system, changed, done))
    assert system["input"]["system"] == ["You edit.", "Write tests."]
    args = denied["input"]["args"]
    # No value is of a type that the tool takes.
    assert all(type(args[key]) is not type(value) for key, value in SHELL.items())
    assert "No rm." in args["hookturn_refused"]
    assert "No rm." in denied["said"][0]
    assert changed["input"]["args"] == {"command": "ls -l", "description": "look"}
    assert done["said"] == ["Check it."]


def test_without_an_answer_a_call_is_refused_while_a_guard_is_there(role):
    module = role.folder / "hooks/hookturn.mjs"
    text = module.read_text()
    assert '"tool.execute.before"]' in text.partition("const CLOSED")[2].partition("\n")[0]
    module.write_text(text.replace(json.dumps(sys.executable), '"/nowhere/python"'))
    _, refused, other = role.run(
        step("tool.execute.before", tool="bash", args={"command": "ls"}),
        step("system.transform", system=["You edit."]),
    )
    assert "fails closed" in refused["input"]["args"]["hookturn_refused"]
    assert other["input"] == {"system": ["You edit."]} and "did not answer" in other["logs"][0]


def test_install_and_uninstall(role):
    again = json.loads(role.cli("install", "rolebox", str(role.folder), "--yes", "--json").stdout)
    assert again["changes"] == []
    out = json.loads(role.cli("uninstall", "rolebox", str(role.folder), "--yes", "--json").stdout)
    assert sorted(change["action"] for change in out["changes"]) == ["change", "delete"]
    assert (role.folder / "role.yaml").read_text() == "name: Careful\nprompt: You edit.\n"
    assert not (role.folder / "hooks/hookturn.mjs").exists()
    for words, told in (
        (["rolebox", str(role.project)], "role.yaml does not exist"),
        (["rolebox", str(role.folder), "--user"], "leave --user out"),
        (["codex", str(role.folder)], "takes no folder"),
    ):
        ran = role.cli("install", *words, "--yes", check=False)
        assert ran.returncode in (1, 2) and told in ran.stderr, ran.stderr


def test_doctor_knows_where_it_is_installed(role):
    found = json.loads(role.cli("doctor", "--json", check=False).stdout)["installations"]
    assert [(row["agent"], row["state"]) for row in found] == [("rolebox", "ok")]
    (role.folder / "role.yaml").write_text("name: Careful\nprompt: x\n")
    (row,) = json.loads(role.cli("doctor", "--json", check=False).stdout)["installations"]
    assert row["state"] != "ok" and str(role.folder) in row["remedy"]


def test_somebody_elses_module_stays(role):
    role.cli("uninstall", "rolebox", str(role.folder), "--yes")
    module = role.folder / "hooks/hookturn.mjs"
    module.write_text("export const onEvent = () => {}\n")
    ran = role.cli("install", "rolebox", str(role.folder), "--yes", check=False)
    assert ran.returncode == 1 and "is not hookturn's" in ran.stderr
    assert module.read_text().startswith("export")


def test_our_own_entry_does_not_lead_back_to_us(role):
    shutil.copytree(role.folder, role.project / "rolebox/careful")
    rows = json.loads(role.cli("hooks", "--json").stdout)
    assert "hookturn.mjs" not in json.dumps(rows)


# -- the bridge -------------------------------------------------------------------------------------


@pytest.fixture
def hooks():
    return Hooks()


@pytest.fixture
def send(tmp_path, hooks):
    def call(hook, session="s-1", **given):
        more = {key: given.pop(key) for key in ("parent", "agent") if key in given}
        payload = {"hook": hook, "sessionID": session, "input": given, "directory": str(tmp_path), **more}
        answer = bridge.answer(
            "rolebox", json.dumps(payload).encode(), environ={}, cwd=str(tmp_path),
            engine_for=lambda place: Engine([("hooks", hooks)], state_dir=tmp_path / "state"),
        )  # fmt: skip
        assert answer.exit_code == 0
        data = json.loads(answer.stdout or b"{}")
        assert set(data) <= {"refuse", "args", "system", "inject", "warn"}
        return data

    return call


def test_what_cannot_be_done_is_said(send, hooks):
    hooks.says = {"on_user_prompt_submit": Block("Not this one.")}
    (warning,) = send("chat.message", text="x")["warn"]
    assert "Not this one." in warning and "takes no such thing" in warning
    assert "ended" in send("tool.execute.before", tool="bash", args={"command": "ls"})["refuse"]
    hooks.says = {"on_message_received": Rewrite(text="other")}
    (warning,) = send("chat.message", text="x")["warn"]
    assert "wanted to change the prompt" in warning
    hooks.says = {"post_tool_execution": Deny("It holds a key.")}
    send("tool.execute.before", tool="bash", args={"command": "ls"})
    (warning,) = send("tool.execute.after", tool="bash", args={"command": "ls"}, output="x")["warn"]
    assert "the model has it" in warning


def test_context_and_sub_agents(send, hooks):
    hooks.says = {"on_user_prompt_submit": Inject("AT-PROMPT"), "system_prompt": Warn("careful")}
    assert send("chat.message", text="x", agent="careful") == {"inject": "AT-PROMPT"}
    assert send("system.transform", system=["a"], agent="careful") == {"warn": ["careful"]}
    send("chat.message", "s-2", text="sub", agent="helper", parent="s-1")
    send("tool.execute.before", "s-2", tool="bash", args={"command": "ls"}, agent="helper", parent="s-1")
    assert {event.session_id for event in hooks.events} == {"s-1"}
    (call,) = hooks.of("pre_tool_execution")
    assert (call.agent, call.agent_id) == ("helper", "s-2")


@pytest.mark.parametrize("row", rolebox.EVENTS.values(), ids=list(rolebox.EVENTS))
def test_every_row_has_an_answer(send, hooks, row):
    send("chat.message", text="x")
    given = {"tool": "bash", "args": {"command": "ls"}, "output": "x", "system": ["a"], "text": "x"}
    if row.event in ("chat.message", "system.transform", "dispose") or row.event.startswith("tool."):
        send(row.event, **given)
    else:
        send(
            "event",
            type=row.event,
            properties={"sessionID": "s-1", "error": {"name": "E", "data": {"message": "m"}}},
        )
    assert hooks.of(row.timings[0])
