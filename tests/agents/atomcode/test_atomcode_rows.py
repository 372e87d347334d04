"""Rows of AtomCode's tables that meet other parts of hookturn: where files lie, tries of webhooks, permissions (A1, A6, A9)."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path

import pytest

from hookturn import events, paths


def _shared():
    path = Path(__file__).parents[2] / "runners" / "conftest.py"
    spec = importlib.util.spec_from_file_location("atomcode_row_servers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_servers = _shared()
reply, serve = _servers.reply, _servers.serve


def configured(text):
    path = paths.config_root() / "hookturn.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text, encoding="utf-8")


def decided(atom):
    """Return the outcome of a call with the permission rules, as a session has it."""
    event = events.PreToolExecution(tool="bash", args={"command": "ls"}, cwd=str(atom.folder))
    return atom.engine().decide(event)


def never(connection, request, server):
    server.stopping.wait(20)


def test_a1_hooks_toml_lies_below_the_home_folder_whatever_atomcode_home_says(atom, tmp_path, monkeypatch):
    monkeypatch.setenv("ATOMCODE_HOME", str(tmp_path / "elsewhere"))
    atom.toml('[[hooks]]\nname = "h"\ntrigger = "pre_tool"\nscript = "h.sh"\n', user=True)
    atom.script("h.sh", "echo 'deny: no'\n", user=True)
    assert atom.pre().reason == "no"


@pytest.mark.parametrize(
    ("answers", "decision"), [((never,), None), ((never, reply(200, {"result": "deny"})), "deny")]
)
def test_a6_each_try_of_a_webhook_has_its_own_time(atom, serve, answers, decision):
    configured('webhooks: {allow: ["127.0.0.1"]}\n')
    server = serve(*answers)
    atom.toml(
        f'[[webhooks]]\nname = "w"\ntrigger = "pre_tool"\nurl = "{server.url}"\ntimeout_secs = 1\nretries = 1\n'
    )
    out = atom.pre()
    assert len(server.requests) == 2
    assert (out.decision, len(out.failures)) == (decision, 0 if decision else 1)
    server.stopping.set()


ALLOW = {"a": {"event": "PreToolUse", "command": """echo '{"action":"allow"}'"""}}
DENY = {"d": {"event": "PreToolUse", "command": """echo '{"action":"block","reason":"no"}'"""}}


@pytest.mark.parametrize(
    ("hooks", "rules", "decision"),
    [
        (ALLOW, {}, "allow"),
        (ALLOW, {"ask": ["bash"]}, "ask"),
        (ALLOW, {"deny": ["bash"]}, "deny"),
        (DENY, {}, "deny"),
        ({**ALLOW, **DENY}, {}, "deny"),
    ],
)
def test_a9_an_allow_lifts_no_ask_and_no_deny(atom, hooks, rules, decision):
    configured(json.dumps({"permissions": rules}))
    atom.json(hooks)
    assert decided(atom).decision == decision


def test_a9_a_deny_yields_to_the_users_always_allow_and_is_told(atom):
    configured('{"permissions": {"always_allow": ["bash"]}}')
    atom.json(DENY)
    out = decided(atom)
    assert out.decision == "allow"
    assert ["no" in str(item) for item in out.overruled] == [True]
