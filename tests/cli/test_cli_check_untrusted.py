"""``hookturn check`` finds the mistakes of an untrusted file before anybody trusts it, and runs nothing of it."""

from __future__ import annotations

import pytest


def errors(ran):
    return [
        (problem["path"], problem["cause"], problem["remedy"])
        for problem in ran.json["problems"]
        if problem["severity"] == "error"
    ]


CLASS = """\
from hookturn import Deny, hookimpl

class NoForcePush:
    @hookimpl(guard=True, tools=["bash"])
    def pre_tool_execution(self, event):
        return Deny("No.")
"""
MISTAKES = {
    "a class without an object": (
        CLASS,
        "",
        "{path} has no hook. The class NoForcePush has hooks; add `plugin = NoForcePush()` at the end.",
    ),
    "a class without an object, with timings": (
        CLASS,
        "pre_tool_execution",
        "{path} has no function 'pre_tool_execution'; it has no hook at all. The class NoForcePush has hooks; "
        "add `plugin = NoForcePush()` at the end.",
    ),
    "no hook": (
        "def on_tern_start(event): pass\n",
        "",
        "{path} has no hook; 'on_tern_start' is no timing (did you mean 'on_turn_start'?). "
        "Define a function named after a timing, such as `def pre_tool_execution(event):`.",
    ),
    "another timing": (
        "def on_turn_start(event): pass\n",
        "post_turn",
        "{path} has no function 'post_turn'; it has on_turn_start. "
        "Define `def post_turn(event):`, or correct the entry's timings.",
    ),
    "an unknown parameter": (
        "import os\n\ndef on_turn_start(event, contxt: os.PathLike = os.sep): pass\n",
        "",
        "{path}:3, on_turn_start: the parameter 'contxt' has a default. Remove the default.",
    ),
    "a misspelt parameter of a method": (
        "class Hooks:\n    def on_turn_start(self, evnt): pass\nplugin = Hooks()\n",
        "",
        "{path}:2, on_turn_start: unknown parameter 'evnt' (did you mean 'event'?). "
        "A hook takes `event`, `ctx`, both or none.",
    ),
    "a guard where none can be": (
        "from hookturn import hookimpl\n\n@hookimpl(guard=True)\ndef on_turn_start(event): pass\n",
        "",
        "{path}:3, on_turn_start: a guard can stop nothing at on_turn_start. "
        "Put it on a timing that takes Deny or Block.",
    ),
    "an unknown timing by decorator": (
        "from hookturn import hookimpl\n\n@hookimpl.on_turn_begin\ndef f(event): pass\n",
        "",
        "{path}: there is no hook timing 'on_turn_begin'",
    ),
}


@pytest.mark.parametrize(("source", "timings", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_mistakes_in_a_module_are_found_before_trust_and_told_the_same_after(cli, source, timings, expected):
    path = cli.write("own.py", f"open('ran', 'w')\n{source}".replace("open('ran', 'w')\n", "", 0))
    source = f"{source}open('ran', 'w').close()\n"
    path.write_text(source)
    more = f", timings: [{timings}]" if timings else ""
    cli.write("hookturn.yaml", f"hooks: [{{name: own, run: {{module: own.py}}{more}}}]")
    before = cli("check", "--json")
    assert before.code == 1
    assert not (cli.project / "ran").exists()
    ((place, cause, remedy),) = errors(before)
    assert place == "hooks[0].run.module"
    assert f"{cause}. {remedy}".startswith(expected.format(path=path))
    assert cli("trust", "--yes").code == 0
    assert errors(cli("check", "--json")) == [(place, cause, remedy)]


@pytest.mark.parametrize(
    "source",
    [
        "from hookturn import hookimpl\n@hookimpl\nasync def on_turn_start(event, ctx) -> None: ...\n",
        f"{CLASS}\nplugin = NoForcePush()\n",
        "class plugin:\n    def __init__(self, config): self.x = config\n    def on_turn_start(self): ...\n",
        "def hook(event): ...\n",
        "from elsewhere import *\n",
        "from elsewhere import on_turn_start\n",
        "import elsewhere as plugin\n",
        "plugin = make()\n",
        "on_turn_start = post_turn = lambda event: None\n",
        "for name in ('on_turn_start',):\n    globals()[name] = print\n",
        "try:\n    import x\nexcept ImportError:\n    def on_turn_start(event): ...\n",
        "class Base: ...\nclass Child(Base): ...\nplugin = Child()\n",
        "from elsewhere import mark\n@mark\ndef f(event): ...\n",
        "from hookturn import hookimpl as mine\n@mine(specname='on_turn_start')\ndef f(event): ...\n",
        "from hookturn import hookimpl\nTOOLS = []\n@hookimpl(tools=TOOLS)\ndef pre_tool_execution(event): ...\n",
        "with open('x') as on_turn_start: ...\n",
    ],
)
def test_a_module_that_may_be_right_is_not_told_to_be_wrong(cli, source):
    cli.write("own.py", source)
    timings = ", timings: [on_turn_start]" if "def hook" in source else ""
    cli.write("hookturn.yaml", f"hooks: [{{name: own, run: {{module: own.py}}{timings}}}]")
    assert errors(cli("check", "--json")) == []


def test_plugins_and_settings_are_checked_before_trust(cli):
    cli.write(
        "hookturn.yaml",
        "plugins:\n  audit-lgo: true\n  turn-stats: {pth: x}\n  session-summary: {max_chars: 1}\n"
        "  audit-log: {path: {command: [touch, ran]}, durability: forever}\n",
    )
    before = cli("check", "--json")
    assert [cause for _, cause, _ in errors(before)] == [
        "no plugin named 'audit-lgo' is installed (did you mean 'audit-log'?)",
        "unknown setting 'pth' (did you mean 'path'?)",
        "the plugin refuses its settings: max_chars must be at least 100",
        "expected 'kernel' or 'interval' or 'always', got 'forever'",
    ]
    assert not (cli.project / "ran").exists()


def test_settings_of_a_plugin_that_is_not_loaded_do_not_load_it(cli, plugin_path):
    env = plugin_path("demo", "[hookturn]\ndemo = demo_plugin\n", demo_plugin="open('ran', 'w')\n")
    cli.write("hookturn.yaml", "plugins: {demo: {x: 1}}\n")
    assert errors(cli("check", "--json", env=env)) == []
    assert not (cli.project / "ran").exists()


def test_names_of_settings_of_a_loaded_plugin_are_checked(cli, plugin_path):
    source = (
        "from hookturn import hookimpl\nclass Config:\n    path: str = ''\n"
        "    def validate(self): open('ran', 'w')\n@hookimpl\ndef on_turn_start(): ...\n"
    )
    env = plugin_path("demo", "[hookturn]\ndemo = demo_plugin\n", demo_plugin=source)
    env["HOOKTURN_DISABLE_PLUGIN_AUTOLOAD"] = ""
    cli.write("hookturn.yaml", "plugins: {demo: {pth: 1}}\n")
    ((place, cause, _),) = errors(cli("check", "--json", env=env))
    assert (place, cause) == ("plugins.demo.pth", "unknown setting 'pth' (did you mean 'path'?)")


def test_what_waits_for_trust_is_one_line(cli):
    cli.write("own.py", "def on_turn_start(event): ...\n")
    cli.write(
        "hookturn.yaml",
        "hooks:\n  - {name: a, run: {module: own.py}}\n  - {name: b, run: {module: own.py}}\n"
        "plugins: {turn-stats: true}\nmode: monitor\n",
    )
    ran = cli("check")
    assert ran.out == (
        "warning: hookturn.yaml: 4 entries are ignored: they are not trusted yet: plugins.turn-stats, mode, "
        "the hook a, the hook b. Run `hookturn trust` to look at them and trust them.\n"
        "0 errors, 1 warning in hookturn.yaml\n"
    )
