"""pluggy's manager: made when somebody asks for it, and the same plugins are in it before and after."""

import subprocess
import sys

import pluggy
import pytest

from hookturn import Engine, RegistrationError, events, hookimpl, hookspec


class Plugin:
    @hookimpl
    def pre_tool_execution(self, event):
        """Say nothing."""


class Started(events.Event, timing="on_manager_started"):
    """An own timing."""


@hookspec(event=Started)
def on_manager_started(event, ctx):
    """Something began."""


def named(manager, hook):
    return {found.plugin_name for found in getattr(manager.hook, hook).get_hookimpls()}


def test_it_has_every_plugin_and_spec_from_before_and_after():
    first, second, third = Plugin(), Plugin(), Plugin()
    engine = Engine([("first", first), ("second", second)])
    manager = engine.manager
    assert isinstance(manager, pluggy.PluginManager)
    assert engine.manager is manager
    engine.register(third, "third")
    engine.unregister("first")
    engine.add_hookspecs(on_manager_started)
    assert manager.list_name_plugin() == [("second", second), ("third", third)]
    assert named(manager, "pre_tool_execution") == {"second", "third"}
    assert manager.hook.on_manager_started.spec.argnames == ("event", "ctx")
    assert manager.hook.on_load.spec.argnames == ("ctx",)


def test_own_timings_from_before_are_in_it():
    engine = Engine(hookspecs=[on_manager_started])
    assert engine.manager.hook.on_manager_started.spec is not None


@pytest.mark.parametrize("asked", [False, True], ids=["before", "after"])
def test_one_object_cannot_be_registered_twice(asked):
    plugin = Plugin()
    engine = Engine([("first", plugin)])
    if asked:
        assert engine.manager
    with pytest.raises(RegistrationError, match="registered already, as 'first'"):
        engine.register(plugin, "second")
    assert [found.name for found in engine.plugins] == ["first"]
    assert named(engine.manager, "pre_tool_execution") == {"first"}


def test_a_plugin_that_cannot_be_compared():
    class Odd(Plugin):
        __hash__ = object.__hash__

        def __eq__(self, other):
            raise ValueError("no")

    with pytest.raises(RegistrationError, match="cannot be compared"):
        Engine([("odd", Odd()), ("other", Plugin())])


def test_a_fire_imports_neither_pluggy_nor_inspect():
    code = """
import sys
from hookturn import Deny, Engine, events, hookimpl

class Plugin:
    @hookimpl
    def pre_tool_execution(self, event):
        return Deny("no")

with Engine([Plugin()]) as engine:
    assert engine.fire(events.PreToolExecution(tool="Bash", args={})).denied
print([name for name in ("pluggy", "inspect", "typing", "asyncio", "re") if name in sys.modules])
"""
    # -S: what the site folders' own files import is not ours.
    path = [folder for folder in sys.path if folder]
    start = f"import sys; sys.path[:] = {path!r}\n"
    done = subprocess.run(
        [sys.executable, "-S", "-c", start + code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"
