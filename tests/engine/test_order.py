"""The order of hooks: tier, priority, registration; and that it is pluggy's own where those are equal."""

from __future__ import annotations

import pluggy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn import Deny, Engine, Warn, events, hookimpl

EVENT = events.PreToolExecution(tool="bash", args={})


def plugin(name, calls, **options):
    """A plugin that notes its call and has no opinion."""

    class Plugin:
        hookturn_name = name

        @hookimpl(**options)
        def pre_tool_execution(self):
            calls.append(name)

    return Plugin()


def phase_of(word):
    return {"before": {"tryfirst": True}, "after": {"trylast": True}, "": {}}[word]


hooks = st.fixed_dictionaries(
    {
        "phase": st.sampled_from(["before", "", "after"]),
        "priority": st.sampled_from([-5, 0, 10, 49, 50, 51, 1000]),
        "guard": st.booleans(),
        "builtin": st.booleans(),
        # by the author's decorator, or by the user's configuration over a plain hook
        "configured": st.booleans(),
    }
)


def tier(hook):
    """Section 3, written down once more."""
    if hook["guard"]:
        return 5
    if hook["phase"] == "before":
        return 0 if hook["builtin"] else 1
    if hook["phase"] == "after":
        return 4 if hook["builtin"] else 3
    return 2


@given(st.lists(hooks, max_size=12), st.booleans())
def test_the_order_is_tier_priority_registration(registry, with_host):
    calls = []
    engine = Engine(host=plugin("host", calls)) if with_host else Engine()
    expected = [((2, 50, -1), "host")] if with_host else []
    for index, hook in enumerate(registry):
        name = f"p{index}"
        options = {"priority": hook["priority"], "guard": hook["guard"]}
        if hook["configured"]:
            given_options = {**options, "phase": hook["phase"]}
            item = plugin(name, calls)
        else:
            given_options = None
            item = plugin(name, calls, **options, **phase_of(hook["phase"]))
        engine.register(item, layer="builtin" if hook["builtin"] else "user", options=given_options)
        expected.append(((tier(hook), hook["priority"], index), name))
    expected = [name for _, name in sorted(expected)]

    engine.fire(EVENT)
    assert calls == expected
    out = engine.fire(EVENT, measure=True)
    assert [record.name for record in out.hooks] == expected
    tiers = ["first", "before", "plain", "after", "last", "guard"]
    assert [tiers.index(record.tier) for record in out.hooks] == sorted(
        tiers.index(record.tier) for record in out.hooks
    )
    for hook, index in zip(registry, range(len(registry)), strict=True):
        record = next(record for record in out.hooks if record.name == f"p{index}")
        assert (record.tier, record.priority) == (tiers[tier(hook)], hook["priority"])


@given(st.lists(st.sampled_from(["before", "", "after"]), max_size=15), st.data())
def test_the_order_is_pluggys_own_first_in_first_out(phases, data):
    """Pluggy runs its newest first among tryfirst and among plain hooks, its newest last among trylast ones."""
    ours, theirs = [], []
    engine = Engine()
    manager = pluggy.PluginManager("raw")
    spec, impl = pluggy.HookspecMarker("raw"), pluggy.HookimplMarker("raw")

    class Spec:
        @spec
        def pre_tool_execution(self):
            pass

    manager.add_hookspecs(Spec)
    for index, phase in enumerate(phases):
        name = f"p{index}"
        engine.register(plugin(name, ours, **phase_of(phase)))

        class Raw:
            @impl(**phase_of(phase))
            def pre_tool_execution(self, name=name):
                theirs.append(name)

        # pluggy up to 1.6 fills no argument with a default
        Raw.pre_tool_execution.__defaults__ = (name,)
        manager.register(Raw(), name=name)
    gone = data.draw(st.sets(st.sampled_from(range(len(phases))))) if phases else set()
    for index in gone:
        engine.unregister(f"p{index}")
        manager.unregister(name=f"p{index}")

    engine.fire(EVENT)
    manager.hook.pre_tool_execution()
    of = {f"p{index}": phase for index, phase in enumerate(phases)}
    groups = {word: [name for name in theirs if of[name] == word] for word in ("before", "", "after")}
    assert theirs == groups["before"] + groups[""] + groups["after"]
    assert ours == groups["before"][::-1] + groups[""][::-1] + groups["after"]


def test_order_never_depends_on_timing_or_answers():
    calls = []

    class Slow:
        @hookimpl
        async def pre_tool_execution(self):
            import asyncio

            await asyncio.sleep(0.02)
            calls.append("slow")

    with Engine([Slow(), plugin("fast", calls)]) as engine:
        engine.fire(EVENT)
    assert calls == ["slow", "fast"]


def test_a_hook_registered_again_goes_to_the_end():
    calls = []
    first, second = plugin("a", calls), plugin("b", calls)
    engine = Engine([first, second])
    engine.fire(EVENT)
    engine.unregister("a")
    engine.register(first)
    engine.fire(EVENT)
    assert calls == ["a", "b", "b", "a"]


def test_a_hook_takes_event_ctx_both_or_none_in_any_order():
    seen = []

    class Event_:
        @hookimpl
        def pre_tool_execution(self, event):
            seen.append(event)

    class Ctx:
        @hookimpl
        def pre_tool_execution(self, ctx):
            seen.append(ctx.hook_name)

    class Both:
        @hookimpl
        def pre_tool_execution(self, event, ctx):
            seen.append((event, ctx.hook_name))

    class Reverse:
        @hookimpl
        def pre_tool_execution(self, ctx, event):
            seen.append((ctx.hook_name, event))

    class Neither:
        @hookimpl
        def pre_tool_execution(self):
            seen.append("none")

    class Static:
        @hookimpl
        @staticmethod
        def pre_tool_execution(event):
            seen.append("static")

    class Class:
        @hookimpl
        @classmethod
        def pre_tool_execution(cls, event):
            seen.append("class")

    class Outside:
        @staticmethod
        @hookimpl
        def pre_tool_execution(event):
            seen.append("outside")

    plugins = [Event_(), Ctx(), Both(), Reverse(), Neither(), Static(), Class(), Outside()]
    for _ in range(2):
        seen.clear()
        Engine(plugins).fire(EVENT)
        assert seen == [
            EVENT,
            "Ctx",
            (EVENT, "Both"),
            ("Reverse", EVENT),
            "none",
            "static",
            "class",
            "outside",
        ]


def test_a_module_is_a_plugin(tmp_path, monkeypatch):
    (tmp_path / "my_hooks_module.py").write_text(
        "from hookturn import hookimpl, Deny\n\n@hookimpl\ndef pre_tool_execution(event):\n    return Deny('no')\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    import my_hooks_module

    out = Engine([my_hooks_module]).fire(EVENT)
    assert (out.decision, out.by) == ("deny", "my_hooks_module")


def test_registration_and_firing_at_once_never_leave_a_stale_plan():
    """A plan made while a plugin registers must not hide the plugin for ever."""
    from threading import Thread

    engine = Engine()
    stop = []
    errors = []

    def fire():
        while not stop:
            try:
                engine.fire(EVENT)
            except Exception as error:
                errors.append(error)
                return

    threads = [Thread(target=fire) for _ in range(3)]
    for thread in threads:
        thread.start()
    try:
        for index in range(150):
            engine.register(plugin(f"p{index}", []))
            out = engine.fire(EVENT, measure=True)
            assert [record.name for record in out.hooks] == [f"p{n}" for n in range(index + 1)]
    finally:
        stop.append(1)
        for thread in threads:
            thread.join()
    assert not errors


def test_unregistered_plugins_are_not_called():
    calls = []
    engine = Engine([plugin("a", calls)])
    engine.fire(EVENT)
    engine.unregister("a")
    assert engine.fire(EVENT).hooks == ()
    assert calls == ["a"]
    with pytest.raises(KeyError):
        engine.unregister("a")


class Says:
    def __init__(self, answer):
        self.answer = answer

    @hookimpl
    def pre_tool_execution(self, event):
        return self.answer


class TestFilters:
    """``tools``, ``agents`` and ``event_types`` say which events concern a hook."""

    @pytest.mark.parametrize(
        ("tools", "tool", "called"),
        [
            (["bash"], "Bash", True),
            (["bash"], "run_shell_command", True),
            (["Bash"], "Bash", True),
            (["Bash"], "bash", False),
            (["bash"], "Read", False),
            (["*"], "anything", True),
            (["mcp__git__*"], "mcp__git__push", True),
            (["mcp__git__*"], "mcp__gitlab__push", False),
            (["read", "write"], "Edit", True),
            (["mcp__*__p?sh"], "mcp__git__push", True),
            (["[BR]*"], "Read", True),
            ([], "Read", False),
            ("bash", "Bash", True),
        ],
    )
    def test_tools(self, tools, tool, called):
        calls = []
        Engine([plugin("p", calls, tools=tools)]).fire(events.PreToolExecution(tool=tool, args={}))
        assert bool(calls) is called

    @pytest.mark.parametrize(
        ("agents", "agent", "called"),
        [(["coder"], "coder", True), (["coder"], "main", False), (["c*"], "coder", True), (["*"], "x", True)],
    )
    def test_agents(self, agents, agent, called):
        calls = []
        event = events.PreToolExecution(tool="x", args={}, agent=agent)
        Engine([plugin("p", calls, agents=agents)]).fire(event)
        assert bool(calls) is called

    def test_event_types(self):
        calls = []

        class P:
            @hookimpl(event_types=["session.*", "file.changed"])
            def on_event(self, event):
                calls.append(event.type)

        engine = Engine([P()])
        for kind in ("session.idle", "file.changed", "file.removed", "sessions.x"):
            engine.fire(events.Event(type=kind))
        assert calls == ["session.idle", "file.changed"]

    def test_tools_do_not_concern_events_without_a_tool(self):
        calls = []

        class P:
            @hookimpl(tools=["bash"])
            def on_turn_start(self):
                calls.append(1)

        Engine([P()]).fire(events.TurnStart())
        assert calls == [1]

    def test_on_outcome_is_not_filtered(self):
        calls = []

        class P:
            @hookimpl(tools=["bash"], agents=["nobody"])
            def on_outcome(self, event):
                calls.append(event.of)

        Engine([P()]).fire(events.PreToolExecution(tool="Read", args={}))
        assert calls == ["pre_tool_execution"]

    def test_measured_fires_say_why_a_hook_was_not_called(self):
        engine = Engine([plugin("p", [], tools=["bash"]), plugin("q", [], agents=["coder"])])
        out = engine.fire(events.PreToolExecution(tool="Read", args={}), measure=True)
        assert [(record.matched, record.why) for record in out.hooks] == [
            (False, "tools: Read (read) is none of bash"),
            (False, "agents: main is none of coder"),
        ]

    def test_configured_filters_replace_the_authors(self):
        calls = []
        engine = Engine()
        engine.register(plugin("p", calls, tools=["bash"]), options={"tools": ["read"]})
        engine.fire(events.PreToolExecution(tool="Bash", args={}))
        engine.fire(events.PreToolExecution(tool="Read", args={}))
        assert calls == ["p"]


def test_what_comes_after_the_end_of_the_plan_is_listed():
    calls = []
    plugins = [Says(Deny("no")), plugin("later", calls), plugin("guard", calls, guard=True)]
    for measure in (False, True):
        calls.clear()
        out = Engine(plugins).fire(EVENT, measure=measure)
        assert calls == ["guard"]
        later = next(record for record in out.hooks if record.name == "later")
        assert (later.matched, later.why) == (False, "Says said deny")


def test_without_measure_only_hooks_that_answered_or_failed_are_recorded():
    class Fails:
        @hookimpl
        def pre_tool_execution(self):
            raise ValueError("x")

    engine = Engine([plugin("quiet", []), Says(Warn("w")), Fails(), plugin("other", [], tools=["read"])])
    assert [record.name for record in engine.fire(EVENT).hooks] == ["Says", "Fails"]
    out = engine.fire(EVENT, measure=True)
    assert [record.name for record in out.hooks] == ["quiet", "Says", "Fails", "other"]
    assert [record.matched for record in out.hooks] == [True, True, True, False]
    assert all(record.micros > 0 for record in out.hooks if record.matched)
    assert out.micros > 0


def test_without_hooks_an_outcome_only_holds_the_event():
    out = Engine().fire(EVENT)
    assert out.event is EVENT
    assert (out.decision, out.hooks, out.failures, out.injected) == (None, (), (), ())
    assert vars(out) == {"event": EVENT}
