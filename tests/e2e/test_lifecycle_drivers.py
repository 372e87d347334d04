"""Session and AsyncSession are two drivers of one lifecycle: any script gives the same events and the same answers."""

from __future__ import annotations

import asyncio
import inspect

from hypothesis import given, settings
from hypothesis import strategies as st

from hookturn import (
    Allow,
    Ask,
    AsyncSession,
    Block,
    Continue,
    Deny,
    Engine,
    HookturnError,
    Inject,
    Recover,
    Reply,
    Rewrite,
    Session,
    SetEnv,
    Warn,
    hookimpl,
)
from hookturn.engine.async_session import AsyncTurn
from hookturn.engine.session import Turn
from hookturn.spec.timings import TIMINGS

# What the hooks say depends on words in the script, so that both drivers meet the same hooks.
WORDS = [
    "plain",
    "deny",
    "ask",
    "allow",
    "block",
    "reply",
    "rewrite",
    "inject",
    "fail",
    "continue",
    "env",
    "recover",
    "warn",
]
ANSWERS = {
    "deny": Deny("no"),
    "ask": Ask("sure?"),
    "allow": Allow("fine"),
    "block": Block("stop"),
    "reply": Reply("me"),
    "inject": Inject("text"),
    "continue": Continue("go on"),
    "env": SetEnv({"A": "1"}),
    "recover": Recover("retry"),
    "warn": Warn("careful"),
}


def word_of(event):
    """The word that an event carries."""
    for name in ("text", "prompt", "phase", "message", "type", "reason"):
        value = getattr(event, name, "")
        if value in WORDS:
            return value
    if getattr(event, "parts", None):
        return event.parts[0]
    if hasattr(event, "args"):
        words = event.args.get("words", {})
        return words.get(event.timing, "plain")
    return "plain"


def make_hooks(asynchronous):
    log = []

    def note(event):
        log.append(event)
        word = word_of(event)
        if word == "fail":
            raise ValueError("hook failed")
        timing = TIMINGS[event.timing]
        if word == "rewrite":
            if event.timing == "pre_tool_execution":
                return Rewrite({**event.args, "rewritten": True})
            if event.timing in ("on_message_received", "on_model_response", "on_turn_complete"):
                return Rewrite("plain")
            if event.timing == "post_tool_execution":
                return Rewrite("rewritten")
            return None
        answer = ANSWERS.get(word)
        if event.timing == "on_event":
            return answer if type(answer).__name__ in event.accepts else None
        return answer if isinstance(answer, timing.answers) else None

    class Hooks:
        pass

    for name in TIMINGS:
        if name == "on_outcome":
            continue
        if asynchronous:

            async def hook(event):
                await asyncio.sleep(0)
                return note(event)
        else:

            def hook(event):
                return note(event)

        setattr(Hooks, name, staticmethod(hookimpl(specname=name)(hook)))
    return Hooks(), log


word = st.sampled_from(WORDS)
tool_words = st.fixed_dictionaries(
    {},
    optional=dict.fromkeys(
        ("on_tool_call_start", "pre_tool_execution", "on_permission_request", "post_tool_execution"), word
    ),
)
calls = st.tuples(st.sampled_from(["ok", "error", "timeout"]), tool_words)
steps = st.recursive(
    st.one_of(
        st.tuples(st.just("submit"), word),
        st.tuples(st.just("system"), word),
        st.tuples(st.just("model"), word),
        st.tuples(st.just("call"), calls),
        st.tuples(st.just("begin"), st.sampled_from(["c1", "c2"]), tool_words),
        st.tuples(st.just("end"), st.sampled_from(["c1", "c2", "c3"])),
        st.tuples(st.just("complete"), word),
        st.tuples(st.just("fail"), word),
        st.tuples(st.just("event"), word, st.lists(st.sampled_from(["Deny", "Inject"]))),
        st.tuples(st.just("raise")),
    ),
    lambda inner: st.one_of(
        st.tuples(st.just("turn"), word, st.lists(inner, max_size=5)),
        st.tuples(st.just("sub"), st.sampled_from(["x", "y"]), st.lists(inner, max_size=4)),
    ),
    max_leaves=14,
)
scripts = st.lists(steps, max_size=6)


class HostError(Exception):
    pass


def body_of(outcome):
    def body(words, rewritten=False):
        if outcome == "error":
            raise KeyError("tool")
        if outcome == "timeout":
            raise TimeoutError("slow")
        return f"result {rewritten}"

    return body


def shown(value):
    """What a host sees of a result, in a form that two runs share."""
    if value is None or isinstance(value, (str, int, list, tuple)):
        return value
    fields = {
        name: getattr(value, name)
        for name in (
            "text", "injected", "goes_on", "blocked_by", "message", "reply", "replied", "warnings", "again", "decision",
            "go", "denied_by", "reason", "rewritten_by", "status", "value", "error", "strategy", "args",
        )
        if hasattr(value, name)
    }  # fmt: skip
    return type(value).__name__, fields


def guarded(log, function):
    try:
        log.append(shown(function()))
    except HookturnError as error:
        log.append((type(error).__name__, str(error)))


def play_sync(engine, script, log):
    def play(session, turn, script):
        for step in script:
            kind = step[0]
            if kind == "submit":
                guarded(log, lambda step=step: session.submit(step[1]))
            elif kind == "event":
                guarded(log, lambda step=step: session.event(step[1], {}, step[2]).decision)
            elif kind == "raise":
                raise HostError("host")
            elif kind == "turn":
                try:
                    with session.turn(step[1]) as inner:
                        log.append((inner.number, inner.env, inner.warnings))
                        play(session, inner, step[2])
                except HookturnError as error:
                    log.append((type(error).__name__, str(error)))
            elif turn is None:
                continue
            elif kind == "system":
                guarded(log, lambda step=step: turn.system_prompt([step[1]]))
            elif kind == "model":
                guarded(log, lambda step=step: turn.model_response(step[1], usage={"input_tokens": 1}))
            elif kind == "call":
                outcome, words = step[1]
                guarded(log, lambda o=outcome, w=words: turn.call_tool("bash", {"words": w}, body_of(o)))
            elif kind == "begin":
                guarded(log, lambda step=step: turn.begin_tool(step[1], "read", {"words": step[2]}))
            elif kind == "end":
                guarded(log, lambda step=step: turn.end_tool(step[1], result="r"))
            elif kind == "complete":
                guarded(log, lambda step=step: turn.complete(step[1]))
            elif kind == "fail":
                guarded(log, lambda step=step: turn.fail("Host", step[1]))
            elif kind == "sub":
                try:
                    with turn.subagent("sub", step[1]) as inner:
                        play(session, inner, step[2])
                except HookturnError as error:
                    log.append((type(error).__name__, str(error)))

    try:
        with engine.session(session_id="s", cwd="/project") as session:
            play(session, None, script)
    except HostError:
        log.append("raised")
    log.append((session.env, session.warnings, dict(session.usage), session.turns))


async def aguarded(log, awaitable):
    try:
        log.append(shown(await awaitable))
    except HookturnError as error:
        log.append((type(error).__name__, str(error)))


async def play_async(engine, script, log, coroutine_bodies):
    def abody_of(outcome):
        plain = body_of(outcome)
        if not coroutine_bodies:
            return plain

        async def body(**args):
            await asyncio.sleep(0)
            return plain(**args)

        return body

    async def event(session, step):
        return (await session.event(step[1], {}, step[2])).decision

    async def over(function):
        """Some refusals come before anything is awaited."""
        return await function()

    async def play(session, turn, script):
        for step in script:
            kind = step[0]
            if kind == "submit":
                await aguarded(log, session.submit(step[1]))
            elif kind == "event":
                await aguarded(log, event(session, step))
            elif kind == "raise":
                raise HostError("host")
            elif kind == "turn":
                try:
                    async with session.turn(step[1]) as inner:
                        log.append((inner.number, inner.env, inner.warnings))
                        await play(session, inner, step[2])
                except HookturnError as error:
                    log.append((type(error).__name__, str(error)))
            elif turn is None:
                continue
            elif kind == "system":
                await aguarded(log, over(lambda step=step: turn.system_prompt([step[1]])))
            elif kind == "model":
                await aguarded(
                    log, over(lambda step=step: turn.model_response(step[1], usage={"input_tokens": 1}))
                )
            elif kind == "call":
                outcome, words = step[1]
                await aguarded(
                    log, over(lambda o=outcome, w=words: turn.call_tool("bash", {"words": w}, abody_of(o)))
                )
            elif kind == "begin":
                await aguarded(
                    log, over(lambda step=step: turn.begin_tool(step[1], "read", {"words": step[2]}))
                )
            elif kind == "end":
                await aguarded(log, over(lambda step=step: turn.end_tool(step[1], result="r")))
            elif kind == "complete":
                await aguarded(log, over(lambda step=step: turn.complete(step[1])))
            elif kind == "fail":
                await aguarded(log, over(lambda step=step: turn.fail("Host", step[1])))
            elif kind == "sub":
                try:
                    async with turn.subagent("sub", step[1]) as inner:
                        await play(session, inner, step[2])
                except HookturnError as error:
                    log.append((type(error).__name__, str(error)))

    try:
        async with engine.session(session_id="s", cwd="/project") as session:
            await play(session, None, script)
    except HostError:
        log.append("raised")
    log.append((session.env, session.warnings, dict(session.usage), session.turns))


def form(event):
    """An event without what two runs cannot share: the clock."""
    data = event.to_json()
    for name in ("time", "duration"):
        data.pop(name, None)
    data.pop("exception", None)
    for row in data.get("tool_calls") or ():
        if isinstance(row, dict):
            row.pop("duration", None)
    return data


def check_invariants(events):
    timings = [event.timing for event in events]
    assert timings[0] == "on_session_start"
    assert timings[-1] == "on_session_end"
    assert timings.count("on_session_start") == timings.count("on_session_end") == 1
    begun, ended = [], []
    opened, closed = {}, {}
    for event in events:
        key = (event.turn, event.agent_id)
        turn = (*key, opened.get(key, 0))  # a sub-agent may come again
        if event.timing == "on_tool_call_start":
            begun.append((*turn, event.call_id))
        elif event.timing == "post_tool_execution":
            ended.append((*turn, event.call_id))
            assert opened.get(key, 0) == closed.get(key, 0) + 1, "a post outside of its turn"
        elif event.timing == "on_turn_start":
            opened[key] = opened.get(key, 0) + 1
        elif event.timing == "post_turn":
            closed[key] = closed.get(key, 0) + 1
    assert len(ended) == len(set(ended)), "two posts of one call"
    assert set(begun) <= set(ended), "a call without its post"
    assert opened == closed, "a turn that started has not ended"
    main = [event.turn for event in events if event.timing == "on_turn_start" and not event.agent_id]
    assert main == list(range(1, len(main) + 1))
    assert timings.count("on_turn_complete") >= timings.count("post_turn")


@settings(max_examples=250)
@given(scripts, st.booleans(), st.booleans(), st.sampled_from([None, True, False]))
def test_both_drivers_do_the_same(script, async_hooks, coroutine_bodies, approver):
    options = {"max_continue": 2}
    if approver is not None:
        options["approver"] = lambda request: approver
    runs = []
    for driver in ("sync", "async"):
        hooks, events = make_hooks(async_hooks)
        log = []
        with Engine([hooks], **options) as engine:
            if driver == "sync":
                play_sync(engine, script, log)
            else:
                asyncio.run(play_async(engine, script, log, coroutine_bodies))
        check_invariants(events)
        runs.append(([form(event) for event in events], log))
    (events, log), (other_events, other_log) = runs
    assert [event["timing"] for event in events] == [event["timing"] for event in other_events]
    assert events == other_events
    assert log == other_log


def test_both_have_the_same_names():
    for first, second in ((Session, AsyncSession), (Turn, AsyncTurn)):
        names = {name for name in dir(first) if not name.startswith("_")}
        others = {name for name in dir(second) if not name.startswith("_")}
        assert names == others
        for name in names:
            ours, theirs = getattr(first, name), getattr(second, name)
            if inspect.isfunction(ours):
                mine = [p.replace(annotation=p.empty) for p in inspect.signature(ours).parameters.values()]
                other = [p.replace(annotation=p.empty) for p in inspect.signature(theirs).parameters.values()]
                assert mine == other, name
                assert ours.__doc__ and theirs.__doc__, name
