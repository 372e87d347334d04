"""A hook that fails harms nobody else: it is recorded, logged, told to on_error, set aside when it goes on failing."""

from __future__ import annotations

import asyncio
import functools

import pytest

from hookturn import Deny, Engine, Inject, NestingError, Reply, Rewrite, Warn, events, hookimpl

EVENT = events.PreToolExecution(tool="bash", args={"command": "ls"}, session_id="s")

# The ways on which a hook can be reached: the hot loop, the full loop, threads, a coroutine hook, afire.
WAYS = ("plain", "measured", "timed", "threaded", "coroutine", "afire", "afire coroutine", "afire threaded")


def as_hook(function, way, timing="pre_tool_execution", **options):
    """A plugin whose hook calls ``function(event)``, sync or async as the way wants it."""
    if way == "timed":
        options = {"timeout": 30.0, **options}
    if "coroutine" in way:

        @hookimpl(**options)
        async def hook(self, event):
            await asyncio.sleep(0)
            return function(event)
    else:

        @hookimpl(**options)
        def hook(self, event):
            return function(event)

    hook.__name__ = timing
    return type("P", (), {timing: hook})()


def fire(engine, way, event=EVENT):
    if way.startswith("afire"):
        return asyncio.run(engine.afire(event))
    return engine.fire(event, measure=way == "measured")


def make_engine(way, plugins, **options):
    return Engine(plugins, threaded="threaded" in way, **options)


def raising(error):
    def function(event):
        raise error() if isinstance(error, type) else error

    return function


def recurse(event):
    return recurse(event)


class BadStr(Exception):
    def __str__(self):
        raise RuntimeError("no str")

    __repr__ = __str__


class Odd(Exception):
    def __init__(self, a, b):
        super().__init__(a, b)


class BadRepr:
    def __repr__(self):
        raise RuntimeError("no repr")

    __str__ = __repr__


def deep_chain():
    error = ValueError("start")
    for number in range(50):
        try:
            raise RuntimeError(str(number)) from error
        except RuntimeError as caught:
            error = caught
    return error


FAILURES = {
    "Exception": (raising(Exception("x")), "Exception", "x"),
    "no message": (raising(ValueError), "ValueError", ""),
    "KeyError": (raising(KeyError("k")), "KeyError", "k"),
    "SystemExit": (raising(SystemExit(3)), "SystemExit", "exit(3)"),
    "SystemExit none": (raising(SystemExit), "SystemExit", "exit(None)"),
    "SystemExit odd": (raising(SystemExit(BadRepr())), "SystemExit", "exit"),
    "exit()": (lambda event: exit(1), "SystemExit", "exit(1)"),
    "RecursionError": (recurse, "RecursionError", "recursion"),
    "MemoryError": (raising(MemoryError), "MemoryError", ""),
    "AssertionError": (raising(AssertionError("a")), "AssertionError", "a"),
    "StopIteration": (raising(StopIteration("s")), "", "s"),
    "StopAsyncIteration": (raising(StopAsyncIteration("s")), "", ""),
    "TimeoutError": (raising(TimeoutError("mine")), "TimeoutError", "mine"),
    "NotImplementedError": (raising(NotImplementedError()), "NotImplementedError", ""),
    "UnicodeError": (lambda event: "\ud800".encode(), "UnicodeEncodeError", "surrogates"),
    "bad str": (raising(BadStr()), "BadStr", "str failed"),
    "two arguments": (raising(Odd(1, 2)), "Odd", "(1, 2)"),
    "surrogates and NUL": (raising(ValueError("\ud800\0")), "ValueError", "\0"),
    "braces": (raising(ValueError("{0} {x} {")), "ValueError", "{0} {x} {"),
    "loguru markup": (raising(ValueError("<red>x</red> </y>")), "ValueError", "<red>x</red> </y>"),
    "chain": (raising(deep_chain()), "RuntimeError", "49"),
    "OSError": (raising(OSError("No such file")), "OSError", "No such file"),
    "mutates args": (lambda event: event.args.update(x=1), "TypeError", "return Rewrite"),
    "mutates event": (lambda event: setattr(event, "tool", "x"), "AttributeError", "return Rewrite"),
    "wrong return": (lambda event: {"deny": "x"}, "AnswerError", "dict"),
    "generator": (lambda event: (Deny("x") for _ in [1]), "AnswerError", "generator"),
    "wrong answer": (lambda event: Inject("x"), "AnswerError", "Inject"),
    "bad answer": (lambda event: Deny(None), "AnswerError", "reason must be a str"),
}


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("name", FAILURES)
def test_a_failing_hook_stops_nobody(way, name, hook_log):
    function, kind, words = FAILURES[name]
    seen = []
    plugins = [
        ("before", as_hook(lambda event: seen.append("before"), way)),
        ("bad", as_hook(function, way)),
        ("after", as_hook(lambda event: Warn("after"), way)),
        ("guard", as_hook(lambda event: Warn("guard"), way, guard=True)),
    ]
    with make_engine(way, plugins) as engine:
        out = fire(engine, way)
    assert seen == ["before"]
    assert out.warnings == ("after", "guard")
    assert out.decision is None
    assert out.event == EVENT
    [failure] = out.failures
    assert (failure.hook, failure.plugin, failure.timing) == ("bad", "bad", "pre_tool_execution")
    assert kind in (failure.error_type, "")
    assert words in failure.message
    assert failure.elapsed >= 0
    assert isinstance(failure.exception, BaseException)
    record = next(record for record in out.hooks if record.name == "bad")
    assert record.error.startswith(failure.error_type)
    out.to_json()
    said = [message for message in hook_log.of("bad") if "failed in pre_tool_execution" in message]
    assert len(said) == 1, "logged once, under the hook's name"


class Passing(BaseException):
    pass


NO_EXCEPTIONS = (KeyboardInterrupt, asyncio.CancelledError, Passing)


@pytest.mark.parametrize("way", [way for way in WAYS if "threaded" not in way])
@pytest.mark.parametrize("error", NO_EXCEPTIONS)
def test_what_is_no_exception_passes(way, error):
    plugins = [("bad", as_hook(raising(error), way))]
    with make_engine(way, plugins) as engine, pytest.raises(error):
        fire(engine, way)


@pytest.mark.parametrize("way", ["threaded", "threaded coroutine", "afire threaded"])
@pytest.mark.parametrize("error", [*NO_EXCEPTIONS, GeneratorExit])
def test_on_a_thread_of_ours_it_is_a_failure_like_others(way, error):
    """No Ctrl-C arrives there, and nobody cancels it: the hooks behind it are asked."""
    plugins = [("bad", as_hook(raising(error), way)), ("after", as_hook(lambda event: Deny("no"), way))]
    with make_engine(way, plugins) as engine:
        out = fire(engine, way)
    assert (out.decision, out.by) == ("deny", "after")
    [failure] = out.failures
    assert failure.hook == "bad"
    assert error.__name__ in failure.message


@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize(
    ("options", "reason"), [({"on_failure": "deny"}, "fails closed"), ({"guard": True}, "fails closed")]
)
@pytest.mark.parametrize(
    "name", ["Exception", "SystemExit", "wrong return", "wrong answer", "RecursionError"]
)
def test_a_hook_that_fails_closed_denies_in_its_name(way, options, reason, name):
    called = []
    plugins = [
        ("bad", as_hook(FAILURES[name][0], way, **options)),
        ("after", as_hook(lambda event: called.append(1), way)),
    ]
    with make_engine(way, plugins) as engine:
        out = fire(engine, way)
    assert (out.decision, out.by, out.code) == ("deny", "bad", "hook_failed")
    assert "bad" in out.reason and reason in out.reason and FAILURES[name][1] in out.reason
    assert out.message
    assert len(out.failures) == 1
    assert called == ([] if "on_failure" in options else [1])


@pytest.mark.parametrize(
    ("event", "decision"),
    [
        (events.UserPromptSubmit(prompt="x"), "block"),
        (events.ModelResponse(text="x"), "block"),
        (events.ToolCallStart(tool="x", args={}), "deny"),
        (events.PostToolExecution(tool="x", args={}), "deny"),
        (events.TurnComplete(text="x"), "block"),
        (events.PermissionRequest(tool="x", args={}), "deny"),
        (events.TurnStart(), None),
        (events.SystemPrompt(parts=[]), None),
        (events.SessionEnd(), None),
        (events.Event(type="a", accepts=["Deny"]), "deny"),
        (events.Event(type="a", accepts=["Block"]), "block"),
        (events.Event(type="a"), None),
    ],
    ids=lambda value: getattr(value, "timing", str(value)),
)
def test_failing_closed_uses_what_the_timing_takes(event, decision):
    plugin = as_hook(raising(ValueError("x")), "plain", event.timing, on_failure="deny")
    out = Engine([("bad", plugin)]).fire(event)
    assert out.decision == decision
    if decision is None:
        assert any("bad" in text and "fails closed" in text for text in out.warnings), "said aloud at least"


@pytest.mark.parametrize("way", WAYS)
def test_a_hooks_partial_work_has_no_effect(way):
    """A bad answer in a list spoils the rest of it."""
    plugins = [("bad", as_hook(lambda event: [Rewrite(command="rm"), Warn("w"), Inject("x")], way))]
    with make_engine(way, plugins) as engine:
        out = fire(engine, way)
    assert (out.event.command, out.warnings, out.rewrites) == ("ls", (), ())


@pytest.mark.parametrize("way", WAYS)
def test_on_error_hears_of_each_failure_once_after_the_fold(way):
    told = []

    class Reporter:
        @hookimpl
        def on_error(self, event):
            told.append(event)

    error = ValueError("broken")
    plugins = [
        ("bad", as_hook(raising(error), way)),
        ("bad2", as_hook(raising(KeyError("k")), way)),
        ("last", as_hook(lambda event: told.append("last"), way)),
        ("reporter", Reporter()),
    ]
    with make_engine(way, plugins) as engine:
        out = fire(engine, way)
    assert told[0] == "last"
    first, second = told[1:]
    assert (first.error_type, first.message, first.phase, first.hook) == (
        "ValueError",
        "broken",
        "hook",
        "bad",
    )
    assert first.exception is error
    assert (second.hook, second.error_type) == ("bad2", "KeyError")
    assert (first.session_id, first.cwd, first.turn) == (EVENT.session_id, EVENT.cwd, EVENT.turn)
    assert len(out.failures) == 2


@pytest.mark.parametrize("way", WAYS)
def test_a_failing_on_error_hook_fires_nothing(way, hook_log):
    told = []

    class Reporter:
        @hookimpl
        def on_error(self, event):
            told.append(event.hook)
            raise ValueError("reporter is broken too")

    plugins = [("bad", as_hook(raising(ValueError), way)), ("reporter", Reporter())]
    with make_engine(way, plugins) as engine:
        fire(engine, way)
    assert told == ["bad"]
    assert any("reporter is broken too" in message for message in hook_log.of("reporter"))


def test_an_on_error_event_of_the_host_whose_hook_fails_does_not_recurse():
    told = []

    class Reporter:
        @hookimpl
        def on_error(self, event):
            told.append(event.message)
            raise ValueError("x")

    out = Engine([("r", Reporter())]).fire(events.Error(error_type="X", message="host"))
    assert told == ["host"]
    assert len(out.failures) == 1


def test_a_failing_on_outcome_hook_is_told_to_on_error():
    told = []

    class P:
        @hookimpl
        def on_error(self, event):
            told.append((event.hook, event.message))

    class Audit:
        @hookimpl
        def on_outcome(self, event):
            raise OSError("disk full")

    out = Engine([("p", P()), ("audit", Audit())]).fire(EVENT)
    assert told == [("audit", "disk full")]
    assert [failure.hook for failure in out.failures] == ["audit"]


class TestQuarantine:
    """After five failures in a row a plugin is set aside for the session, loudly, unless it fails closed."""

    def broken(self, way, **options):
        calls = []

        def function(event):
            calls.append(event)
            raise ValueError("x")

        return calls, as_hook(function, way, **options)

    @pytest.mark.parametrize("way", WAYS)
    def test_set_aside_after_five(self, way, hook_log):
        calls, plugin = self.broken(way)
        with make_engine(way, [("bad", plugin), ("good", as_hook(lambda event: Warn("w"), way))]) as engine:
            outs = [fire(engine, way) for _ in range(8)]
            assert len(calls) == 5
            assert [len(out.failures) for out in outs] == [1] * 5 + [0] * 3
            shown = [text for out in outs for text in out.warnings if text != "w"]
            assert len(shown) == 1
            assert "bad" in shown[0] and "set aside" in shown[0]
            assert sum("set aside" in message for message in hook_log.of("bad")) == 1
            assert all("w" in out.warnings for out in outs)
            # Only for this session.
            fire(engine, way, EVENT.replace(session_id="other"))
            assert len(calls) == 6

    def test_a_measured_fire_says_so(self):
        _, plugin = self.broken("plain")
        engine = Engine([("bad", plugin)])
        for _ in range(5):
            engine.fire(EVENT)
        [record] = engine.fire(EVENT, measure=True).hooks
        assert (record.matched, "set aside" in record.why) == (False, True)

    @pytest.mark.parametrize("way", WAYS)
    @pytest.mark.parametrize("options", [{"guard": True}, {"on_failure": "deny"}])
    def test_never_what_fails_closed(self, way, options):
        calls, plugin = self.broken(way, **options)
        with make_engine(way, [("bad", plugin)]) as engine:
            for _ in range(8):
                assert fire(engine, way).decision == "deny"
        assert len(calls) == 8

    @pytest.mark.parametrize("way", WAYS)
    def test_a_success_in_between_starts_the_count_again(self, way):
        calls = []

        def function(event):
            calls.append(1)
            if len(calls) % 5:
                raise ValueError("x")

        with make_engine(way, [("bad", as_hook(function, way))]) as engine:
            for _ in range(20):
                fire(engine, way)
        assert len(calls) == 20

    @pytest.mark.parametrize("way", WAYS)
    def test_a_fire_that_does_not_concern_it_is_no_success(self, way):
        calls, plugin = self.broken(way, tools=["bash"])
        with make_engine(way, [("bad", plugin)]) as engine:
            for _ in range(8):
                fire(engine, way)
                fire(engine, way, events.PreToolExecution(tool="Read", args={}, session_id="s"))
        assert len(calls) == 5

    def test_a_guard_of_a_plugin_that_is_set_aside_stays(self):
        class P:
            @hookimpl
            def on_turn_start(self):
                raise ValueError("x")

            @hookimpl(guard=True)
            def pre_tool_execution(self):
                return Deny("guarded")

        engine = Engine([P()])
        for _ in range(6):
            engine.fire(events.TurnStart(session_id="s"))
        assert engine.fire(events.TurnStart(session_id="s"), measure=True).hooks[0].matched is False
        assert engine.fire(EVENT).decision == "deny"

    def test_on_outcome_is_not_set_aside(self):
        calls = []

        class P:
            @hookimpl
            def on_outcome(self):
                calls.append(1)
                raise ValueError("x")

        engine = Engine([P()])
        for _ in range(8):
            engine.fire(EVENT)
        assert len(calls) == 8

    def test_the_end_of_the_session_forgets(self):
        calls, plugin = self.broken("plain")
        engine = Engine([("bad", plugin)])
        for _ in range(2):
            with engine.session(session_id="s") as session, session.turn() as turn:
                for _ in range(7):
                    turn.call_tool("bash", {"command": "ls"}, lambda command: "x")
        assert len(calls) == 10

    def test_what_was_never_reached_did_not_fail(self):
        """A slow neighbour that uses up the time must not get others set aside."""
        import time

        calls = []

        class Slow:
            @hookimpl
            def pre_tool_execution(self):
                time.sleep(0.02)

        class Good:
            @hookimpl
            def pre_tool_execution(self):
                calls.append(1)

        engine = Engine([("slow", Slow()), ("good", Good())])
        for _ in range(6):
            out = engine.fire(EVENT, deadline=0.01)
            assert calls == []
            assert any(record.name == "good" for record in out.hooks)
        engine.fire(EVENT)
        assert calls == [1]


class TestOutcomeHook:
    """on_outcome sees what was decided; under on_failure deny its failure denies."""

    def test_it_sees_before_after_answers_and_failures(self):
        seen = []

        class Audit:
            @hookimpl
            def on_outcome(self, event):
                seen.append(event)
                return Warn("noted")

        plugins = [
            ("rewriter", as_hook(lambda event: Rewrite(command="pwd"), "plain")),
            ("bad", as_hook(raising(ValueError("x")), "plain")),
            ("audit", Audit()),
        ]
        out = Engine(plugins).fire(EVENT)
        event = seen[-1]
        assert (event.of, event.before, event.after.command) == ("pre_tool_execution", EVENT, "pwd")
        assert event.outcome is out
        assert [record.name for record in event.outcome.hooks] == ["rewriter", "bad"]
        assert event.outcome.failures[0].hook == "bad"
        assert event.session_id == EVENT.session_id
        assert out.warnings == ("noted",)

    @pytest.mark.parametrize("way", WAYS)
    def test_it_is_called_for_every_timing_but_its_own(self, way):
        seen = []
        audit = as_hook(lambda event: seen.append(event.of), way, "on_outcome")
        with make_engine(way, [audit]) as engine:
            fire(engine, way)
            fire(engine, way, events.TurnStart())
            fire(engine, way, events.Error(error_type="x", message="y"))
        assert seen == ["pre_tool_execution", "on_turn_start", "on_error"]

    @pytest.mark.parametrize("way", WAYS)
    def test_its_failure_denies_where_it_fails_closed(self, way):
        audit = as_hook(raising(OSError("disk full")), way, "on_outcome", on_failure="deny")
        with make_engine(
            way, [("audit", audit), ("allow", as_hook(lambda event: Reply("x"), way))]
        ) as engine:
            out = fire(engine, way)
            assert (out.decision, out.by) == ("deny", "audit")
            assert "disk full" in out.reason and out.message
            assert not out.replied
            out = fire(engine, way, events.UserPromptSubmit(prompt="x"))
            assert out.decision == "block"
            out = fire(engine, way, events.TurnStart())
            assert out.decision is None
            assert out.failures

    @pytest.mark.parametrize("way", WAYS)
    def test_its_failure_is_only_recorded_by_default(self, way):
        audit = as_hook(raising(OSError("disk full")), way, "on_outcome")
        with make_engine(way, [("audit", audit)]) as engine:
            out = fire(engine, way)
        assert out.decision is None
        [failure] = out.failures
        assert (failure.hook, failure.timing) == ("audit", "on_outcome")

    def test_it_may_only_warn(self):
        audit = as_hook(lambda event: Deny("x"), "plain", "on_outcome")
        out = Engine([("audit", audit)]).fire(EVENT)
        assert out.decision is None
        assert out.failures[0].error_type == "AnswerError"

    def test_it_hears_of_failures_that_on_error_got(self):
        seen = []
        audit = as_hook(lambda event: seen.append((event.of, event.before.timing)), "plain", "on_outcome")
        Engine([("bad", as_hook(raising(ValueError), "plain")), ("audit", audit)]).fire(EVENT)
        assert [of for of, _ in seen] == ["on_error", "pre_tool_execution"]


class TestNesting:
    """Hooks that fire hooks: to a depth of eight, then a failure."""

    @pytest.mark.parametrize("way", ["plain", "measured", "timed", "threaded"])
    def test_endless_recursion_ends_as_a_failure(self, way):
        depths = []

        def function(event):
            depths.append(len(depths))
            return Warn("inner") if fire(engine, way).failures else None

        with make_engine(way, [("p", as_hook(function, way))]) as engine:
            out = fire(engine, way)
        assert len(depths) == 8
        assert out.failures == () or out.failures[0].error_type == "NestingError"

    def test_the_deepest_one_gets_the_error(self):
        errors = []

        def function(event):
            try:
                engine.fire(EVENT)
            except NestingError as error:
                errors.append(str(error))
                raise

        engine = Engine([("p", as_hook(function, "plain"))])
        engine.fire(EVENT)
        assert len(errors) == 1
        assert "nested deeper than 8" in errors[0]

    async def test_in_coroutines(self):
        depths = []

        class P:
            @hookimpl
            async def pre_tool_execution(self, event):
                depths.append(1)
                await engine.afire(EVENT)

        engine = Engine([P()])
        out = await engine.afire(EVENT)
        assert len(depths) == 8
        assert not out.failures

    def test_the_depth_is_right_again_after_failures(self):
        def function(event):
            raise ValueError("x")

        engine = Engine([("p", as_hook(function, "plain", guard=True))])
        for _ in range(20):
            engine.fire(EVENT)
        depths = []

        def nested(event):
            depths.append(1)
            engine2.fire(EVENT)

        engine2 = Engine([as_hook(nested, "plain")])
        engine2.fire(EVENT)
        assert len(depths) == 8


def test_a_hook_that_returns_an_awaitable_is_a_coroutine_hook():
    async def work(event):
        await asyncio.sleep(0)
        return Deny("awaited")

    class P:
        @hookimpl
        def pre_tool_execution(self, event):
            return work(event)

    class Wrapped:
        @hookimpl
        @functools.wraps(P.pre_tool_execution)
        def pre_tool_execution(self, event):
            return work(event)

    for plugin in (P(), Wrapped()):
        with Engine([plugin]) as engine:
            for _ in range(3):
                assert engine.fire(EVENT).decision == "deny"


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args)

    return wrapper


@pytest.mark.parametrize("kind", ["undeclared", "decorated"])
async def test_a_hook_that_returns_an_awaitable_runs_on_the_current_loop_in_afire(kind):
    loops = []

    async def work():
        await asyncio.sleep(0)
        loops.append(asyncio.get_running_loop())

    class Undeclared:
        @hookimpl
        def pre_tool_execution(self, event):
            return work()

    class Decorated:
        @hookimpl
        @decorated
        async def pre_tool_execution(self, event):
            return await work()

    with Engine([Undeclared() if kind == "undeclared" else Decorated()]) as engine:
        if kind == "undeclared":
            engine.fire(EVENT)  # only then is it known
            loops.clear()
        for _ in range(2):
            await engine.afire(EVENT)
    assert loops == [asyncio.get_running_loop()] * 2


def test_failures_of_on_outcome_do_not_hide_those_of_the_same_plugins_other_hooks():
    calls = []

    class P:
        @hookimpl
        def on_outcome(self):
            raise ValueError("x")

        @hookimpl
        def pre_tool_execution(self):
            calls.append(1)
            raise ValueError("x")

    engine = Engine([P()])
    for _ in range(8):
        engine.fire(events.TurnStart(session_id="s"))
    for _ in range(8):
        engine.fire(EVENT)
    assert 1 <= len(calls) <= 5
