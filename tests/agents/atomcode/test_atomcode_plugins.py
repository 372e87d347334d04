"""Hooks of AtomCode's plugins: where they stand, their folder, and AtomCode's trust (tables A1.2 and B4)."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hookturn.agents.atomcode.plugins import trust_hash

HOOKS = {"PreToolUse": [{"matcher": "bash", "hooks": [{"type": "command", "command": "echo no; exit 2"}]}]}
TRUSTED = trust_hash([("PreToolUse", "bash", "echo no; exit 2")])


def test_b4_golden_vector():
    hooks = [("Stop", "", "y"), ("SessionStart", "", "x")]
    assert trust_hash(hooks) == "54c6c77fe8af2ec0812ffb1e83c3789d7d71d1a269016341575932d9792d4933"


LAYOUTS = {
    "hooks/hooks.json, bare": {"hooks/hooks.json": HOOKS},
    "hooks/hooks.json, wrapped": {"hooks/hooks.json": {"hooks": HOOKS}},
    "hooks.json": {"hooks.json": HOOKS},
    "inline": {".atomcode-plugin/plugin.json": {"name": "demo", "hooks": HOOKS}},
    "inline, Claude's folder": {".claude-plugin/plugin.json": {"name": "demo", "hooks": HOOKS}},
    "declared path": {"plugin.json": {"hooks": "./my/own.json"}, "my/own.json": HOOKS},
    "a declared path is authoritative": {
        "plugin.json": {"hooks": "./my/own.json"},
        "my/own.json": HOOKS,
        "hooks/hooks.json": {"Stop": [{"hooks": [{"command": "x"}]}]},
    },
    "inline and file, the same hook": {"plugin.json": {"hooks": HOOKS}, "hooks/hooks.json": HOOKS},
    "the first file counts": {
        "hooks/hooks.json": HOOKS,
        "hooks.json": {"Stop": [{"hooks": [{"command": "x"}]}]},
    },
    "named entries of old": {
        "hooks.json": {
            "hooks": {"h": {"event": "pre_tool_use", "matcher": "bash", "command": "echo no; exit 2"}}
        }
    },
}


@pytest.mark.parametrize("row", LAYOUTS)
def test_b4_where_a_trusted_plugins_hooks_stand(atom, row):
    atom.plugin(LAYOUTS[row], trusted=TRUSTED)
    out = atom.pre()
    assert (out.reason, len(out.hooks)) == ("no", 1)


@pytest.mark.parametrize(
    ("trusted", "why"), [("", "not yet"), ("0" * 64, "its hooks have changed since"), (None, "not yet")]
)
def test_b4_an_untrusted_plugin_is_listed_and_does_not_run(atom, trusted, why):
    atom.plugin({"hooks/hooks.json": HOOKS}, trusted=trusted)
    state, reason = atom.states()["demo@shop:PreToolUse-0-0"]
    assert state == "disabled"
    assert reason == f"the plugin demo@shop is not trusted ({why}): run `atomcode plugin trust demo`"
    assert atom.pre().decision is None


def test_b4_an_unreadable_trust_store_trusts_nothing(atom):
    atom.plugin({"hooks/hooks.json": HOOKS}, trusted=TRUSTED)
    (atom.home / "plugins/hook_trust.json").write_text("{broken")
    assert atom.pre().decision is None


def test_b4_the_timeout_is_no_part_of_the_hash(atom):
    hooks = {"PreToolUse": [{"matcher": "bash", "hooks": [{"command": "echo no; exit 2", "timeout": 3}]}]}
    atom.plugin({"hooks/hooks.json": hooks}, trusted=TRUSTED)
    assert atom.pre().reason == "no"


@pytest.mark.parametrize(("timeout", "seconds"), [({"timeout": 3}, 3.0), ({}, 10.0)])
def test_b1_timeouts_are_seconds(atom, timeout, seconds):
    from hookturn.project.assemble import Survey

    atom.plugin({"hooks/hooks.json": {"Stop": [{"hooks": [{"command": "true", **timeout}]}]}})
    (entry,) = [entry for file in Survey(atom.folder).foreign for entry in file.entries]
    assert entry.options["timeout"] == seconds


@pytest.mark.parametrize("generation", [2, 1])
def test_a12_the_plugins_folder_is_in_two_variables(atom, generation):
    atom.settings = {"generation": generation}
    line = 'printf "%s\\n%s\\n" "$CLAUDE_PLUGIN_ROOT" "$ATOMCODE_PLUGIN_ROOT" > roots'
    hooks = {"PreToolUse": [{"hooks": [{"command": line}]}]}
    root = atom.plugin(
        {"hooks/hooks.json": hooks}, market="a shop", trusted=trust_hash([("PreToolUse", "", line)])
    )
    atom.pre()
    assert (atom.folder / "roots").read_text().splitlines() == [str(root), str(root)]


def test_b1_events_and_types_that_atomcode_does_not_have_are_told_and_cost_only_themselves(atom):
    hooks = {
        "PreCompact": [{"hooks": [{"command": "touch ran"}]}],
        "PreToolUse": [
            {"hooks": [{"type": "prompt", "prompt": "x"}]},
            {"hooks": "touch ran"},
            *HOOKS["PreToolUse"],
        ],
    }
    atom.plugin({"hooks/hooks.json": hooks}, trusted=TRUSTED)
    made = atom.assemble()
    causes = [problem.cause for problem in made.problems]
    assert causes == [
        "unknown event 'PreCompact'",
        "AtomCode runs no hooks of type 'prompt': skipped",
        "a group is an object with an array 'hooks'",
    ]
    assert atom.pre(engine=made.engine).reason == "no"


@pytest.mark.parametrize("folder", ["../../../evil", "/tmp", "", 5, "a\0b"])
def test_a_plugin_outside_of_the_plugins_folder_is_none(atom, folder):
    atom.plugin({"hooks/hooks.json": HOOKS}, trusted=TRUSTED)
    atom.write("evil/hooks/hooks.json", json.dumps(HOOKS), atom.home.parent)
    listed = {"version": 1, "plugins": {"demo@shop": {"plugin_dir": folder}}}
    (atom.home / "plugins/installed_plugins.json").write_text(json.dumps(listed))
    assert atom.pre().decision is None


def test_a_declared_path_out_of_the_plugin_is_not_followed(atom):
    atom.plugin({"plugin.json": {"hooks": "../own.json"}}, trusted=TRUSTED)
    atom.write("marketplaces/shop/own.json", json.dumps(HOOKS), atom.home / "plugins")
    assert atom.pre().decision is None


def test_a_projects_plugin_needs_our_trust_too(atom):
    root = atom.folder / ".atomcode/plugins"
    atom.write("demo/hooks/hooks.json", json.dumps(HOOKS), root)
    listed = {"version": 1, "plugins": {"demo@shop": {"plugin_dir": "demo", "scope": "project"}}}
    atom.write("installed_plugins.json", json.dumps(listed), root)
    atom.write("plugins/hook_trust.json", json.dumps({"demo@shop": TRUSTED}), atom.home)
    made = atom.assemble(trust=False)
    assert atom.pre(engine=made.engine).decision is None
    assert atom.pre().reason == "no"


def test_the_home_folder_as_project_lists_nothing_twice(atom):
    atom.plugin({"hooks/hooks.json": HOOKS}, trusted=TRUSTED)
    atom.toml('[[hooks]]\nname = "h"\ntrigger = "pre_tool"\nscript = "h.sh"\n', user=True)
    atom.script("h.sh", "exit 0\n", user=True)
    from hookturn.agents.atomcode import config

    home = str(atom.home.parent)
    paths = [Path(file.path).resolve() for file in config.files(home, {"HOME": home}, {})]
    assert len(paths) == len(set(paths))
