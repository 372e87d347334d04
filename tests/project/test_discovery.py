"""Installed plugins: found in a fixed order, loaded apart from each other, blocked ones not even imported."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
from pathlib import Path

import pytest

from hookturn import events, paths
from hookturn.project import discovery
from hookturn.project.discovery import Found, entry_points, split_duplicates

PLUGIN = """\
from hookturn import Deny, hookimpl

@hookimpl
def pre_tool_execution(event, ctx):
    return Deny(__name__)
"""


def plugins():
    found, problems = entry_points()
    assert problems == []
    return [(item.distribution, item.name) for item in found if item.group == "hookturn" and not item.builtin]


def row(assembled, name):
    (found,) = [row for row in assembled.plugins if row.name == name]
    return found


def problems_of(assembled, word):
    return [str(problem) for problem in assembled.problems if word in str(problem)]


# -- finding --------------------------------------------------------------------------------------------


def test_order_is_by_distribution_then_entry_name(install):
    install("zeta", entry_points="[hookturn]\na = z_a\n")
    install("Alpha_Dist", entry_points="[hookturn]\nz = a_z\nb = a_b\n[other]\nx = y\n")
    assert plugins() == [("Alpha_Dist", "b"), ("Alpha_Dist", "z"), ("zeta", "a")]


def test_our_own_builtins_are_found():
    found, _ = entry_points()
    assert {item.name for item in found if item.builtin} >= {"audit-log", "turn-stats"}


def test_a_distribution_that_another_hides_is_not_seen(install, monkeypatch):
    install("dup", "1.0", "[hookturn]\nold = old\n", folder="site1")
    site = install("dup", "2.0", "[hookturn]\nnew = new\n", folder="site2")
    assert sys.path[0] == str(site)
    assert plugins() == [("dup", "new")]


def test_damaged_metadata_cost_only_their_distribution(install):
    site = install("good", entry_points="[hookturn]\ng = g_mod\n")
    bad = site / "bad-1.0.dist-info"
    bad.mkdir()
    (bad / "METADATA").write_bytes(b"Name: bad\nVersion: 1.0\n")
    (bad / "entry_points.txt").write_bytes(b"[hookturn]\n\xff\xfe = x\n")
    found, problems = entry_points(refresh=True)
    assert "g" in [item.name for item in found]
    assert len(problems) == 1
    assert "entry points cannot be read" in str(problems[0]) or "cannot be read" in str(problems[0])


def test_split_duplicates_prefers_ours_then_order():
    def found(distribution, name):
        return Found("hookturn", name, "m", distribution, "1")

    ours, early, late, other = (
        found("hookturn", "audit-log"),
        found("aaa", "Audit_Log"),
        found("zzz", "x"),
        found("bbb", "x"),
    )
    kept, doubles = split_duplicates(item for item in [early, other, ours, late])
    assert kept == [other, ours]
    assert doubles == [(early, ours), (late, other)]


# -- the cache ------------------------------------------------------------------------------------------


def cache_files():
    folder = paths.state_root() / "cache"
    return sorted(folder.glob("entry-points-*.json")) if folder.exists() else []


@pytest.fixture
def settled(monkeypatch):
    """Let the cache be written although folders have just been changed."""
    monkeypatch.setattr(discovery, "_FRESH", 0)


def test_the_cache_is_used_and_is_the_users_alone(install, settled, monkeypatch):
    install("one", entry_points="[hookturn]\na = m_a\n")
    assert plugins() == [("one", "a")]
    (path,) = cache_files()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    with monkeypatch.context() as patch:
        patch.setattr(discovery, "_scan", lambda: pytest.fail("the metadata were read"))
        assert plugins() == [("one", "a")]


def test_a_new_distribution_is_seen_at_once(install, settled):
    assert plugins() == []
    install("one", entry_points="[hookturn]\na = m_a\n")
    assert plugins() == [("one", "a")]
    install("two", entry_points="[hookturn]\nb = m_b\n")
    assert plugins() == [("one", "a"), ("two", "b")]


def test_a_change_within_the_clocks_tick_is_not_cached(install):
    install("one", entry_points="[hookturn]\na = m_a\n")
    assert plugins() == [("one", "a")]
    assert cache_files() == []


@pytest.mark.parametrize(
    "content", [b"", b"{", b"null", b"[]", b'{"key": 1}', b"\xff\xfe", b"[" * 99_999, None], ids=str
)
def test_a_damaged_cache_is_made_anew(install, settled, content):
    install("one", entry_points="[hookturn]\na = m_a\n")
    plugins()
    (path,) = cache_files()
    good = path.read_bytes()
    if content is None:  # right key, wrong rows
        data = json.loads(good)
        data["found"] = [[1, 2], "x"]
        content = json.dumps(data).encode()
    path.write_bytes(content)
    assert plugins() == [("one", "a")]
    assert path.read_bytes() == good


def test_a_link_in_the_caches_place_is_not_followed(install, settled, tmp_path):
    install("one", entry_points="[hookturn]\na = m_a\n")
    plugins()
    (path,) = cache_files()
    target = tmp_path / "target"
    target.write_text("precious")
    path.unlink()
    path.symlink_to(target)
    assert plugins() == [("one", "a")]
    assert target.read_text() == "precious"


def test_a_state_folder_that_cannot_be_written_does_no_harm(install, settled, monkeypatch, tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    monkeypatch.setenv("HOOKTURN_STATE_DIR", str(file / "below"))
    install("one", entry_points="[hookturn]\na = m_a\n")
    assert plugins() == [("one", "a")]


def test_old_caches_of_other_paths_are_cleared_away(install, settled, monkeypatch):
    monkeypatch.setattr("hookturn.project.cache.KEPT", 3)
    for number in range(6):
        install(f"d{number}", entry_points="[hookturn]\na = m_a\n", folder=f"site{number}")
        plugins()
    assert len(cache_files()) == 3


def test_many_processes_fill_the_cache_at_once(install, tmp_path):
    site = install("one", entry_points="[hookturn]\na = m_a\n")
    code = (
        "from hookturn.project import discovery\n"
        "discovery._FRESH = 0\n"
        "for n in range(30):\n"
        "    found, problems = discovery.entry_points(refresh=n % 2 == 0)\n"
        "    assert [f.name for f in found if f.distribution == 'one'] == ['a'], found\n"
        "    assert problems == []\n"
    )
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(site), os.environ.get("PYTHONPATH", "")])}
    workers = [subprocess.Popen([sys.executable, "-c", code], env=env) for _ in range(4)]
    assert [worker.wait() for worker in workers] == [0] * 4
    (path,) = cache_files()
    json.loads(path.read_bytes())
    assert [file for file in path.parent.iterdir() if file != path] == []


# -- loading --------------------------------------------------------------------------------------------


def test_a_module_an_instance_and_factories(install, project):
    install(
        "kinds",
        entry_points="""\
        [hookturn]
        a-module = kinds_module
        an-instance = kinds_objects:instance
        a-class = kinds_objects:Factory
        a-function = kinds_objects:make
        nested = kinds_objects:Space.plugin
        """,
        modules={
            "kinds_module": PLUGIN,
            "kinds_objects": """\
            from hookturn import Inject, Warn, hookimpl

            class Factory:
                class Config:
                    word: str = "default"

                def __init__(self, config):
                    self.config = config

                @hookimpl
                def on_turn_start(self, event, ctx):
                    assert ctx.config is self.config
                    return Inject(f"{ctx.hook_name} {self.config.word}")

            class Plain:
                @hookimpl
                def on_turn_start(self, event, ctx):
                    return Inject(f"{ctx.hook_name} {ctx.config}")

            instance = Plain()

            def make(settings):
                plugin = Plain()
                plugin.settings = settings
                return plugin

            class Space:
                plugin = Plain()
            """,
        },
    )
    project.config("plugins: {a-class: {word: given}, a-function: {any: [1]}}\n")
    project.trust()
    assembled = project.assemble()
    assert problems_of(assembled, "kinds") == []
    assert {
        row(assembled, name).state for name in ("a-module", "an-instance", "a-class", "a-function", "nested")
    } == {"loaded"}
    assert row(assembled, "a-class").hooks == ["on_turn_start"]
    assert row(assembled, "a-class").distribution == "kinds 1.0"
    assert assembled.engine.fire(events.PreToolExecution(tool="x", args={})).reason == "kinds_module"
    assert assembled.engine.fire(events.TurnStart()).injected == (
        "a-class given",
        "a-function {'any': [1]}",
        "an-instance {}",
        "nested {}",
    )


BAD = {
    "raises": ("raise ValueError('at import')", "import of bad_raises failed: ValueError: at import"),
    "exits": ("raise SystemExit(3)", "import of bad_exits failed: SystemExit: 3"),
    "syntax": ("def", "import of bad_syntax failed: SyntaxError"),
    "missing": (None, "import of bad_missing failed: ModuleNotFoundError"),
    "attribute:nosuch": ("x = 1", "bad_attribute has no usable 'nosuch'"),
    "factory:make": ("def make(): raise SystemExit('no')", "its factory bad_factory:make failed: SystemExit: no"),
    "none:make": ("def make(): return None", "its factory bad_none:make returned None"),
    "empty": ("x = 1", "it has no hook"),
    "typo": ("from hookturn import hookimpl\n@hookimpl\ndef pre_tool(event): ...", "there is no hook timing 'pre_tool'"),
    "load": (
        "from hookturn import hookimpl\n@hookimpl\ndef on_load(ctx): raise RuntimeError('boom')\n@hookimpl\ndef on_error(event): ...",
        "its on_load failed: RuntimeError: boom",
    ),
    "load2": (
        "from hookturn import hookimpl\n@hookimpl\ndef on_load(ctx): raise SystemExit\n@hookimpl\ndef on_error(event): ...",
        "its on_load failed: SystemExit",
    ),
}  # fmt: skip


def test_each_bad_plugin_costs_only_itself(install, project):
    lines, modules = ["[hookturn]"], {}
    for key, (source, _) in BAD.items():
        name, _, attribute = key.partition(":")
        lines.append(f"{name} = bad_{name}" + (f":{attribute}" if attribute else ""))
        if source is not None:
            modules[f"bad_{name}"] = source
    install("bad-dist", "0.1", "\n".join(lines), modules)
    install("good-dist", entry_points="[hookturn]\ngood = good_mod\n", modules={"good_mod": PLUGIN})
    assembled = project.assemble()
    for key, (_, cause) in BAD.items():
        name = key.partition(":")[0]
        assert row(assembled, name).state == "failed"
        assert cause in row(assembled, name).reason, name
        (problem,) = problems_of(assembled, f"the plugin '{name}' of bad-dist 0.1")
        assert problem.endswith(".")
        assert [
            (error.distribution, error.plugin) for error in assembled.engine.failed if error.plugin == name
        ] == [("bad-dist 0.1", name)]
    assert row(assembled, "good").state == "loaded"
    assert assembled.engine.fire(events.PreToolExecution(tool="x", args={})).reason == "good_mod"


def test_an_interrupt_at_import_passes(install, project):
    install(
        "stop", entry_points="[hookturn]\ns = stop_mod\n", modules={"stop_mod": "raise KeyboardInterrupt"}
    )
    with pytest.raises(KeyboardInterrupt):
        project.assemble()


@pytest.mark.parametrize("way", ["config", "user", "environment", "argument", "autoload", "no autoload"])
def test_what_is_blocked_is_not_even_imported(install, project, tmp_path, monkeypatch, way):
    sentinel = tmp_path / "imported"
    source = f"open({str(sentinel)!r}, 'w').close()\n{PLUGIN}"
    install("one", entry_points="[hookturn]\nMy.Plugin = block_mod\n", modules={"block_mod": source})
    options = {}
    if way == "config":
        project.config("plugins: {my-plugin: false}\n")
        project.trust()
    elif way == "user":
        project.user("plugins: {my_plugin: {enabled: false}}\n")
    elif way == "environment":
        monkeypatch.setenv("HOOKTURN_DISABLE_PLUGINS", "x, my_plugin ,y")
    elif way == "argument":
        options["disable"] = ["my-plugin"]
    elif way == "autoload":
        project.user("autoload: false\n")
    else:
        monkeypatch.setenv("HOOKTURN_DISABLE_PLUGIN_AUTOLOAD", "1")
    assembled = project.assemble(**options)
    assert not sentinel.exists()
    found = row(assembled, "My.Plugin")
    assert found.state == ("blocked" if way in ("environment", "argument") else "disabled")
    assert found.reason
    assert problems_of(assembled, "My.Plugin") == []


def test_with_autoload_off_what_is_named_loads(install, project, monkeypatch):
    install("one", entry_points="[hookturn]\na = al_a\nb = al_b\n", modules={"al_a": PLUGIN, "al_b": PLUGIN})
    project.user("plugins: {a: true}\nautoload: false\n")
    assembled = project.assemble()
    assert (row(assembled, "a").state, row(assembled, "b").state) == ("loaded", "disabled")


def test_duplicates_are_told_with_who_provides_what(install, project):
    install("aaa", "1.0", "[hookturn]\nSame_Name = d_one\n", {"d_one": PLUGIN})
    install("bbb", "2.0", "[hookturn]\nsame-name = d_two\n", {"d_two": PLUGIN})
    assembled = project.assemble()
    assert (row(assembled, "Same_Name").state, row(assembled, "same-name").state) == ("loaded", "failed")
    (problem,) = problems_of(assembled, "both provide")
    assert problem.startswith(
        "bbb 2.0 and aaa 1.0 both provide the plugin 'Same_Name'; the one of aaa 1.0 counts"
    )


def test_nobody_takes_the_name_of_a_builtin(install, project, tmp_path):
    sentinel = tmp_path / "imported"
    install("aaa", "1.0", "[hookturn]\naudit_log = d_evil\n", {"d_evil": f"open({str(sentinel)!r}, 'w')"})
    assembled = project.assemble()
    assert row(assembled, "audit_log").state == "failed"
    assert not sentinel.exists()
    assert len(problems_of(assembled, "aaa 1.0 and hookturn")) == 1


# -- settings -------------------------------------------------------------------------------------------

TYPED = """\
from dataclasses import dataclass
from hookturn import Deny, hookimpl
from hookturn.redact import Secret

@dataclass
class Config:
    channel: str
    limit: int = 3
    token: Secret | None = None

    def validate(self):
        if self.limit < 0:
            raise ValueError("limit is negative")

class plugin:
    def __init__(self, config):
        self.config = config

    @hookimpl
    def pre_tool_execution(self, event, ctx):
        return Deny(f"{self.config.channel} {self.config.limit} {self.config.token.reveal() if self.config.token else ''}")
"""


@pytest.fixture
def typed(install):
    install("typed", "1.5", "[hookturn]\nslack = typed_mod:plugin\n", {"typed_mod": TYPED})


def test_typed_settings_with_a_secret(typed, project, monkeypatch):
    monkeypatch.setenv("SLACK_TOKEN", "xoxb-1")
    project.user("plugins:\n  slack: {channel: '#ops', token: {env: SLACK_TOKEN}}\n")
    assembled = project.assemble()
    assert project.fire(assembled=assembled).reason == "#ops 3 xoxb-1"
    assert "xoxb-1" not in repr(row(assembled, "slack").to_json())


@pytest.mark.parametrize(
    ("settings", "where", "cause"),
    [
        ("{chanel: x, channel: y}", ":2:11: plugins.slack.chanel: unknown setting 'chanel' (did you mean 'channel'?)", 1),
        ("{channel: 3}", ":2:20: plugins.slack.channel: expected a text, got 3", 1),
        ("{channel: x, limit: -1}", ":2:3: plugins.slack: the plugin refuses its settings: limit is negative", 1),
        ("true", ":2:3: plugins.slack: the setting 'channel' is missing. Add 'channel:' with a text.", 1),
        ("{channel: 3, limit: x}", ":2:20: plugins.slack.channel: expected a text, got 3", 2),
        ("{channel: x, token: {env: NO_SUCH}}", ":2:36: plugins.slack.token.env: the secret cannot be read: the environment", 1),
        ("{channel: {env: HOME}}", ":2:20: plugins.slack.channel: expected a text, got a secret. The plugin must declare", 1),
    ],
)  # fmt: skip
def test_wrong_settings_fail_the_plugin_at_their_place(typed, project, settings, where, cause):
    path = project.user(f"plugins:\n  slack: {settings}\n")
    assembled = project.assemble()
    assert row(assembled, "slack").state == "failed"
    found = problems_of(assembled, "slack")
    assert len(found) == cause
    assert found[0].startswith(f"{path}{where}")


def test_a_plugin_without_a_config_takes_no_settings(install, project):
    install(
        "n",
        entry_points="[hookturn]\nn = n_mod:make\n",
        modules={"n_mod": PLUGIN + "def make():\n    import n_mod; return n_mod\n"},
    )
    project.user("plugins: {n: {a: 1}}\n")
    assert row(project.assemble(), "n").reason == "its settings are wrong: the plugin takes no settings"
    project.user("plugins: {n: true}\n")
    assert row(project.assemble(), "n").state == "loaded"


def test_a_plugin_in_monitor_mode_has_no_effect(install, project):
    install("m", entry_points="[hookturn]\nm = m_mod\n", modules={"m_mod": PLUGIN})
    assert project.fire().decision == "deny"
    project.user("plugins: {m: {mode: monitor}}\n")
    out = project.fire()
    assert (out.decision, out.hooks[0].would) == (None, True)
    project.user("mode: monitor\n")
    assert project.fire().decision is None
    project.user("mode: monitor\nplugins: {m: {mode: enforce}}\n")
    assert project.fire().decision == "deny"


# -- required -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("layer", ["managed", "user", "project"])
@pytest.mark.parametrize(
    ("line", "cause"),
    [
        ("{required: true}", "it is not installed"),
        ("{required: true, version: '>=2'}", "version 1.5 does not fulfil '>=2'"),
        ("{required: true, broken: 1}", "import of guard_mod failed: RuntimeError: broken"),
        ("{required: true, dead: 1}", "its on_load failed"),
    ],
)
def test_a_required_plugin_that_is_not_in_force_denies_everything(install, project, layer, line, cause):
    if "not installed" not in cause:
        source = "raise RuntimeError('broken')" if "broken" in line else PLUGIN
        if "dead" in line:
            source += "\n@hookimpl\ndef on_load(ctx): 1 / 0\n"
        install("guard", "1.5", "[hookturn]\norg-guard = guard_mod\n", {"guard_mod": source})
    text = f"plugins:\n  Org_Guard: {line.replace(', broken: 1', '').replace(', dead: 1', '')}\n"
    path = {"managed": project.managed, "user": project.user, "project": project.config}[layer](text)
    if layer == "project":
        project.trust()
    assembled = project.assemble()
    source = f"{path}:2" if layer != "project" else "hookturn.yaml:2"
    engine = assembled.engine
    for event in (
        events.PreToolExecution(tool="read", args={}),
        events.ToolCallStart(tool="read", args={}),
        events.PostToolExecution(tool="read", args={}),
        events.SessionStart(),
        events.MessageReceived(text="hi"),
        events.UserPromptSubmit(prompt="hi"),
        events.ModelResponse(text="hi"),
        events.TurnComplete(text="hi"),
        events.PermissionRequest(tool="read", args={}),
        events.Event(type="x", accepts=["Deny"]),
        events.Event(type="x", accepts=["Block", "Inject"]),
    ):
        out = engine.fire(event)
        assert out.denied, event
        assert out.failures == ()
        assert out.reason.startswith("the plugin "), event
        assert f"is required ({source}) and not in force: {cause}" in out.reason
    assert engine.fire(events.TurnStart()).decision is None
    assert engine.fire(events.Event(type="x", accepts=["Inject"])).failures == ()
    assert problems_of(assembled, cause if "not installed" not in cause else "is installed")


def test_a_required_plugin_cannot_be_switched_off(install, project, monkeypatch):
    install("guard", "2.0", "[hookturn]\norg-guard = guard_mod\n", {"guard_mod": PLUGIN})
    path = project.user("plugins: {org-guard: {required: true, version: '>=2'}}\n")
    project.config("plugins: {org-guard: false}\nautoload: false\n")
    project.trust()
    monkeypatch.setenv("HOOKTURN_DISABLE_PLUGINS", "org-guard")
    assembled = project.assemble(disable=["org-guard"])
    assert row(assembled, "org-guard").state == "loaded"
    assert problems_of(assembled, "cannot be switched off") == [
        f"hookturn.yaml:1:11: plugins.org-guard: 'org-guard' cannot be switched off: it is required by {path}:1. "
        "The line has no effect."
    ]


def test_a_managed_plugin_cannot_be_switched_off_and_keeps_its_settings(typed, project, monkeypatch):
    project.managed("plugins: {slack: {channel: managed}}\n")
    project.user("plugins: {slack: {channel: user}}\n")
    project.config("plugins: {slack: false}\nmode: monitor\n")
    project.trust()
    assembled = project.assemble(disable=["slack"])
    assert project.fire(assembled=assembled).reason == "managed 3 "


def test_project_settings_replace_the_users(typed, project):
    project.user("plugins: {slack: {channel: user, limit: 9}}\n")
    project.config("plugins: {slack: {channel: project}}\n")
    assert project.fire().reason == "user 9 "
    project.trust()
    assert project.fire().reason == "project 3 "


OFF = "Until then the plugin is off, its guards too; with `required: true` calls would be refused."


def test_a_plugin_that_is_too_old_is_not_loaded(typed, project):
    path = project.user("plugins: {slack: {channel: x, version: '>=2'}}\n")
    assembled = project.assemble()
    assert row(assembled, "slack").state == "failed"
    assert project.fire(assembled=assembled).decision is None
    assert problems_of(assembled, "does not fulfil") == [
        f"{path}:1:11: plugins.slack: the plugin 'slack' of typed 1.5: version 1.5 does not fulfil '>=2' of {path}:1. "
        f"Install a version that will do. {OFF}"
    ]


def test_a_named_plugin_that_is_not_installed(typed, project):
    path = project.user("plugins: {slak: {a: 1}, other: false}\n")
    assembled = project.assemble()
    assert problems_of(assembled, "plugins.") == [
        f"{path}:1:11: plugins.slak: no plugin named 'slak' is installed (did you mean 'slack'?). "
        f"Install the distribution that brings it, or take the line out. {OFF}"
    ]
    assert row(assembled, "slak").state == "failed"


# -- timings of frameworks ------------------------------------------------------------------------------

SPECS = """\
from __future__ import annotations
from hookturn import Deny, events, hookspec

class Planned(events.Event, timing="on_planned"):
    steps: list[str]

@hookspec(event=Planned, answers=(Deny,))
def on_planned(event, ctx):
    \"\"\"A plan.\"\"\"
"""


def test_a_frameworks_timing_is_there_for_plugins_and_configured_hooks(install, project):
    install(
        "frame",
        entry_points="[hookturn.hookspecs]\nframe = frame_specs\nbad = frame_bad\n[hookturn]\nuses = frame_uses\n",
        modules={
            "frame_specs": SPECS,
            "frame_bad": "raise SystemExit('bad')",
            "frame_uses": "from hookturn import hookimpl, Warn\n@hookimpl\ndef on_planned(event): return Warn('plugin')\n",
        },
    )
    project.config("hooks: [{name: h, timings: [on_planned], run: {answer: {deny: no plan}}}]\n")
    assembled = project.assemble()
    import frame_specs

    out = assembled.engine.fire(frame_specs.Planned(steps=["a"]))
    assert (out.warnings, out.reason) == (("plugin",), "no plan")
    assert problems_of(assembled, "hookspecs 'bad' of frame 1.0: import of frame_bad failed: SystemExit: bad")
    assert [item.declaration.key for item in project.survey().pending()] == []


def test_the_name_of_installed_timings_may_stand_in_the_plugins_table(install, project):
    install("frame", entry_points="[hookturn.hookspecs]\nframe = frame_n\n", modules={"frame_n": SPECS})
    project.user("plugins: {frame: true}\n")
    assert problems_of(project.assemble(), "frame") == []


def test_blocked_timings_are_not_imported(install, project, tmp_path, monkeypatch):
    sentinel = tmp_path / "imported"
    install(
        "frame",
        entry_points="[hookturn.hookspecs]\nframe = fr_block\n",
        modules={"fr_block": f"open({str(sentinel)!r}, 'w')"},
    )
    project.assemble(disable=["frame"])
    monkeypatch.setenv("HOOKTURN_DISABLE_PLUGIN_AUTOLOAD", "1")
    project.assemble()
    assert not sentinel.exists()


def test_commands_of_plugins_are_found(install):
    install("cmd", entry_points="[hookturn.commands]\nshow = cmd_mod\n")
    found, _ = entry_points()
    assert [(item.name, item.value) for item in found if item.distribution == "cmd"] == [("show", "cmd_mod")]


def test_discovery_of_a_real_environment_is_quick_and_sorted():
    found, problems = entry_points(refresh=True)
    assert problems == []
    keys = [(item.group, item.distribution.lower()) for item in found]
    assert keys == sorted(keys)
    assert Path(sys.prefix).exists()
