"""What is refused at registration: plugin, distribution, hook, cause and remedy are named; nothing stays behind."""

from __future__ import annotations

import functools
import re
import types
from dataclasses import dataclass

import pluggy
import pytest

from hookturn import Engine, RegistrationError, Warn, events, hookimpl, hookspec

EVENT = events.PreToolExecution(tool="bash", args={})


def refused(plugin, **about):
    """Register a plugin that must be refused; checks that it left nothing behind, returns the error."""
    engine = Engine([("good", Good())])
    with pytest.raises(RegistrationError) as caught:
        engine.register(plugin, about.pop("name", "bad"), distribution="bad-dist 1.2", **about)
    error = caught.value
    assert error.plugin == "bad"
    assert error.distribution == "bad-dist 1.2"
    assert error.cause and error.remedy
    assert isinstance(error, TypeError)
    for word in ("'bad'", "bad-dist 1.2", error.cause, error.remedy, *([error.hook] if error.hook else [])):
        assert word in str(error)
    assert [item.name for item in engine.plugins] == ["good"]
    assert [record.name for record in engine.fire(EVENT, measure=True).hooks] == ["good"]
    assert engine.failed == [error]
    # The name is free again.
    engine.register(Good(), "bad")
    assert engine.fire(EVENT).warnings == ("good", "good")
    return error


class Good:
    @hookimpl
    def pre_tool_execution(self, event):
        return Warn("good")


def hook(name="pre_tool_execution", **options):
    """A plugin with one hook of the given name."""

    def function(self, event):
        return None

    return type("P", (), {name: hookimpl(**options)(function)})()


def test_an_unknown_hook_name():
    error = refused(hook("pre_tool_exectuion"))
    assert error.hook == "pre_tool_exectuion"
    assert "did you mean 'pre_tool_execution'" in error.cause
    error = refused(hook("nothing_like_it"))
    assert "did you mean" not in error.cause


def test_an_unknown_specname():
    error = refused(hook("x", specname="pre_tool"))
    assert (error.hook, "'pre_tool'" in error.cause) == ("x", True)


def test_an_optional_hook_may_be_unknown():
    class P(Good):
        @hookimpl(optionalhook=True)
        def on_future(self, event):
            return None

    engine = Engine([P()])
    assert engine.plugins[0].hooks == ("pre_tool_execution",)


SIGNATURES = {
    "kwargs": ("lambda self, event, **kwargs: None", r"\*\*kwargs receives nothing"),
    "only kwargs": ("lambda self, **kwargs: None", r"\*\*kwargs receives nothing"),
    "args": ("lambda self, *args: None", r"\*args receives nothing"),
    "keyword-only": ("lambda self, *, event: None", "keyword-only parameter 'event'"),
    "keyword-only default": ("lambda self, event, *, x=1: None", "keyword-only parameter 'x'"),
    "default": ("lambda self, event=None: None", "'event' has a default"),
    "other default": ("lambda self, event, flag=True: None", "'flag' has a default"),
    "unknown": ("lambda self, evnt: None", "unknown parameter 'evnt'.*did you mean 'event'"),
    "too many": ("lambda self, event, ctx, more: None", "unknown parameter 'more'"),
    "context": ("lambda self, event, context: None", "unknown parameter 'context'"),
}


@pytest.mark.parametrize(("source", "words"), SIGNATURES.values(), ids=SIGNATURES)
def test_wrong_parameters(source, words):
    plugin = type("P", (), {"pre_tool_execution": hookimpl(eval(source))})()
    error = refused(plugin)
    assert error.hook == "pre_tool_execution"
    assert re.search(words, error.cause)


def test_a_method_without_self():
    class P:
        @hookimpl
        def pre_tool_execution(event):
            return None

    # Called as a method its only parameter is taken by the instance: it would get no event.
    engine = Engine([P()])
    out = engine.fire(EVENT)
    assert not out.failures


def test_a_class_where_an_instance_was_meant():
    error = refused(Good)
    assert "class" in error.cause and "`Good()`" in error.remedy


def test_a_partial():
    def function(extra, event):
        return None

    class P(Good):
        on_turn_start = functools.partial(function, 1)

    error = refused(P())
    assert (error.hook, "partial" in error.cause) == ("on_turn_start", True)


def test_a_marked_partial():
    class P:
        x = hookimpl(specname="on_turn_start")(functools.partial(lambda event: None))

    assert refused(P()).hook == "x"


def test_a_callable_object():
    class Callable:
        def __call__(self, event):
            return None

    class P:
        pre_tool_execution = hookimpl(Callable())

    error = refused(P())
    assert (error.hook, "functions and methods" in error.cause) == ("pre_tool_execution", True)


@pytest.mark.parametrize("kind", ["wrapper", "hookwrapper"])
def test_wrappers(kind):
    error = refused(hook(**{kind: True}))
    assert "wrapper" in error.cause
    assert "on_outcome" in error.remedy and "guard" in error.remedy


def test_both_phases():
    error = refused(hook(tryfirst=True, trylast=True))
    assert "tryfirst and trylast" in error.cause


@pytest.mark.parametrize(
    "name", ["on_turn_start", "system_prompt", "post_turn", "on_error", "on_session_end", "on_outcome"]
)
def test_a_guard_where_nothing_can_be_stopped(name):
    error = refused(hook(name, guard=True))
    assert (error.hook, "guard" in error.cause) == (name, True)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"priority": "high"}, "priority must be an int"),
        ({"priority": True}, "priority must be an int"),
        ({"priority": 1.5}, "priority must be an int"),
        ({"timeout": 0}, "timeout must be seconds above 0"),
        ({"timeout": -1}, "timeout must be seconds above 0"),
        ({"timeout": "5"}, "timeout must be seconds above 0"),
        ({"timeout": True}, "timeout must be seconds above 0"),
        ({"timeout": float("nan")}, "timeout must be seconds above 0"),
        ({"timeout": float("inf")}, "timeout must be seconds above 0"),
        ({"on_failure": "block"}, "on_failure must be one of ignore, deny"),
        ({"mode": "dry"}, "mode must be one of enforce, monitor"),
        ({"tools": [1]}, "tools must be a list of str"),
        ({"agents": [None]}, "agents must be a list of str"),
        ({"tools": ["bash(rm *)"]}, "permission rule"),
    ],
)
def test_wrong_options(options, words):
    error = refused(hook(**options))
    assert words in error.cause
    assert words in refused(hook(), options=options).cause, "configured options are checked alike"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"prority": 1}, "unknown option 'prority' (did you mean 'priority'?)"),
        ({"phase": "during"}, "phase must be one of"),
        ({"tools": "bash"}, "tools must be a list of str"),
    ],
)
def test_wrong_configured_options(options, words):
    assert words in refused(hook(), options=options).cause


@pytest.mark.parametrize("phase", ["before", "after", "", None])
def test_configured_phases(phase):
    engine = Engine()
    engine.register(hook(), "p", options={"phase": phase})
    [record] = engine.fire(EVENT, measure=True).hooks
    assert record.tier == (phase or "plain")


def test_a_plugin_without_hooks():
    assert "no hook" in refused(object()).cause
    assert "no hook" in refused(None).cause
    assert "no hook" in refused(types.ModuleType("empty")).cause


def test_a_plugin_that_forgot_the_decorator():
    class P:
        def pre_tool_execution(self, event):
            return None

    error = refused(P())
    assert (error.hook, "@hookimpl" in error.remedy) == ("pre_tool_execution", True)


def test_an_unhashable_plugin():
    class P(Good):
        __hash__ = None

    error = refused(P())
    assert "hashable" in error.cause and "__hash__" in error.remedy

    @dataclass
    class D(Good):
        x: int = 1

    assert "hashable" in refused(D()).cause

    class Bad(Good):
        def __hash__(self):
            raise RuntimeError("no hash")

    assert "hashable" in refused(Bad()).cause


def test_the_same_object_twice():
    good = Good()
    engine = Engine([("a", good)])
    with pytest.raises(RegistrationError, match="once") as caught:
        engine.register(good, "b")
    assert caught.value.plugin == "b"
    assert engine.fire(EVENT).warnings == ("good",)
    engine.unregister("a")
    engine.register(good, "b")
    assert engine.fire(EVENT).warnings == ("good",)


def test_equal_objects():
    @dataclass(frozen=True)
    class P(Good):
        x: int = 1

    engine = Engine([("a", P())])
    with pytest.raises(RegistrationError, match=r"eq=False"):
        engine.register(P(), "b")
    engine.register(P(2), "c")
    assert engine.fire(EVENT).warnings == ("good", "good")


def test_duplicate_names_say_who_provides_what():
    engine = Engine()
    engine.register(Good(), "guard", distribution="first-dist 1.0")
    with pytest.raises(RegistrationError, match=r"registered already \(by first-dist 1.0\)"):
        engine.register(Good(), "guard", distribution="second-dist 2.0")
    assert engine.fire(EVENT).warnings == ("good",)


def test_unnamed_plugins_get_names_of_their_own():
    engine = Engine([Good(), Good(), Good()])
    assert [plugin.name for plugin in engine.plugins] == ["Good", "Good-2", "Good-3"]
    assert [record.name for record in engine.fire(EVENT).hooks] == ["Good", "Good-2", "Good-3"]


def test_two_hooks_of_one_timing():
    class P(Good):
        @hookimpl(specname="pre_tool_execution")
        def another(self, event):
            return None

    error = refused(P())
    assert "another" in error.cause and "pre_tool_execution" in error.cause


def test_properties_are_not_run_and_others_that_raise_are_left_alone():
    class P(Good):
        @property
        def boom(self):
            raise RuntimeError("a property ran")

        @functools.cached_property
        def cached(self):
            raise RuntimeError("a cached property ran")

        class Descriptor:
            def __get__(self, owner, kind=None):
                raise RuntimeError("a descriptor ran")

        descriptor = Descriptor()

    assert Engine([P()]).fire(EVENT).warnings == ("good",)


def test_attributes_that_cannot_be_asked():
    """Such as a web framework's request proxy in a module's namespace."""

    class Proxy:
        def __getattr__(self, name):
            raise RuntimeError("working outside of the context")

    module = types.ModuleType("with_proxy")
    module.request = Proxy()
    module.pre_tool_execution = hookimpl(lambda event: Warn("module"))
    assert Engine([module]).fire(EVENT).warnings == ("module",)


def test_a_lifecycle_hook_with_an_event():
    error = refused(hook("on_load"))
    assert (error.hook, "no event" in error.cause) == ("on_load", True)


class FailsToLoad:
    def __init__(self, error):
        self.error = error

    @hookimpl
    def on_load(self, ctx):
        raise self.error

    @hookimpl
    def pre_tool_execution(self, event):
        return Warn("half registered")


@pytest.mark.parametrize("error", [ValueError("no key"), SystemExit(3), RecursionError()])
def test_a_failing_on_load_takes_the_plugin_out(error):
    refusal = refused(FailsToLoad(error))
    assert refusal.hook == "on_load"
    assert type(error).__name__ in refusal.cause
    assert refusal.__cause__ is error


def test_an_interrupt_in_on_load_passes_and_leaves_nothing():
    engine = Engine()
    with pytest.raises(KeyboardInterrupt):
        engine.register(FailsToLoad(KeyboardInterrupt()), "bad")
    assert engine.plugins == []
    assert engine.fire(EVENT).warnings == ()


def test_a_failing_async_on_load():
    class P(Good):
        @hookimpl
        async def on_load(self):
            raise ValueError("no key")

    assert "ValueError: no key" in refused(P()).cause


def test_on_load_gets_its_settings_once():
    seen = []

    class P(Good):
        @hookimpl
        def on_load(self, ctx):
            seen.append((ctx.hook_name, ctx.config))

    engine = Engine()
    engine.register(P(), "p", config={"limit": 3})
    engine.fire(EVENT)
    assert seen == [("p", {"limit": 3})]


def test_on_load_may_fire():
    class P(Good):
        @hookimpl
        def on_load(self):
            assert engine.fire(EVENT).warnings == ("good",)

    engine = Engine()
    engine.register(P())
    assert engine.plugins


def test_on_dispose_once_in_reverse_order_and_failures_do_not_stop_it(hook_log):
    calls = []

    class P(Good):
        def __init__(self, name):
            self.name = name

        @hookimpl
        def on_dispose(self, ctx):
            calls.append(self.name)
            if self.name == "b":
                raise ValueError("cannot close")

    class Async(Good):
        @hookimpl
        async def on_dispose(self):
            calls.append("async")

    engine = Engine([("a", P("a")), ("b", P("b")), ("c", Async()), ("d", P("d"))])
    with engine:
        pass
    engine.close()
    assert calls == ["d", "async", "b", "a"]
    assert any("cannot close" in message for message in hook_log.of("b"))


def test_one_bad_plugin_never_stops_the_others():
    with pytest.raises(RegistrationError) as caught:
        Engine([("a", hook("on_nothing")), ("b", Good()), ("c", Good), ("d", hook("pre_tol_execution"))])
    for name in ("'a'", "'c'", "'d'", "did you mean 'pre_tool_execution'"):
        assert name in str(caught.value)


class TestOwnSpecs:
    def test_firstresult_and_historic_specs(self):
        marker = pluggy.HookspecMarker("hookturn")
        for options in ({"firstresult": True}, {"historic": True}):

            @marker(**options)
            def on_plan(event, ctx):
                """Never."""

            module = types.ModuleType("specs")
            module.on_plan = on_plan
            with pytest.raises(RegistrationError, match="firstresult and historic") as caught:
                Engine(hookspecs=[module])
            assert caught.value.hook == "on_plan"

    def test_a_spec_without_an_event(self):
        @pluggy.HookspecMarker("hookturn")
        def on_plan(event, ctx):
            """Never."""

        module = types.ModuleType("specs")
        module.on_plan = on_plan
        with pytest.raises(RegistrationError, match="no event class"):
            Engine(hookspecs=[module])

    def test_a_name_that_exists(self):
        class Mine(events.Event, timing="pre_tool_execution"):
            pass

        @hookspec(event=Mine)
        def pre_tool_execution(event, ctx):
            """Taken."""

        with pytest.raises(RegistrationError, match="exists already"):
            Engine(hookspecs=[pre_tool_execution])

    @pytest.mark.parametrize("name", ["on_load", "on_dispose"])
    def test_a_name_of_a_lifecycle_hook(self, name):
        event = type("Mine", (events.Event,), {}, timing=name)

        def function(event, ctx):
            """Taken."""

        function.__name__ = name
        with pytest.raises(RegistrationError, match="exists already"):
            Engine(hookspecs=[hookspec(event=event)(function)])

    def test_nothing_marked(self):
        with pytest.raises(RegistrationError, match="no hook specification"):
            Engine(hookspecs=[types.ModuleType("empty")])

    @pytest.mark.parametrize("source", ["lambda event: 0", "lambda ctx, event: 0", "lambda event, ctx, x: 0"])
    def test_bad_parameters_of_the_spec(self, source):
        class Mine(events.Event, timing="on_mine"):
            pass

        function = eval(source)
        function.__name__ = "on_mine"
        with pytest.raises(RegistrationError, match=r"takes exactly `event` and `ctx`.*def on_mine"):
            Engine(hookspecs=[hookspec(event=Mine)(function)])
