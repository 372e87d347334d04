"""Parallel tool calls of one turn, by threads and by tasks: nothing is lost, doubled or mixed up."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from hookturn import Ask, Deny, Engine, LifecycleError, Rewrite, Warn, hookimpl

PARALLEL = 20


class Hooks:
    """Answers by what a call carries, with pauses so that calls overlap."""

    def __init__(self, asynchronous):
        self.starts, self.posts, self.ends = [], [], []

        def start(event):
            self.starts.append(event.call_id)

        def pre(event):
            number = event.args["n"]
            if number % 5 == 3:
                return Deny(f"no {number}")
            if number % 5 == 4:
                return [Ask(f"sure {number}?"), Rewrite({"n": number, "by": "hook"})]
            return [Rewrite({"n": number, "by": "hook"}), Warn(f"w {number}")]

        def post(event):
            self.posts.append((event.call_id, event.status, dict(event.args), event.result))
            return Rewrite(f"{event.result} seen")

        def end(event):
            self.ends.append(event)

        for name, function in (
            ("on_tool_call_start", start),
            ("pre_tool_execution", pre),
            ("post_tool_execution", post),
            ("on_turn_complete", end),
        ):
            setattr(self, name, self._hook(name, function, asynchronous))

    @staticmethod
    def _hook(name, function, asynchronous):
        if asynchronous:

            async def hook(event):
                await asyncio.sleep(0.002)
                return function(event)
        else:

            def hook(event):
                time.sleep(0.002)
                return function(event)

        return hookimpl(specname=name)(hook)


def check(hooks, results, calls):
    assert len(set(hooks.starts)) == len(hooks.starts) == calls, "ids are unique, each call begins once"
    assert len({row[0] for row in hooks.posts}) == len(hooks.posts) == calls
    for number, result in enumerate(results):
        if number % 5 == 3:
            assert (result.status, f"no {number}" in result.value) == ("denied", True)
            assert result.denied_by == "hooks"
        elif number % 5 == 4 and number % 2:
            assert result.status == "denied"
        else:
            assert (result.status, result.value) == ("ok", f"result {number} hook seen"), number
            assert result.args == {"n": number, "by": "hook"}
            assert result.warnings == ([] if number % 5 == 4 else [f"w {number}"])
    [end] = hooks.ends
    assert len(end.tool_calls) == calls
    assert {row["call_id"] for row in end.tool_calls} == set(hooks.starts)


def approver(request):
    return request.args["n"] % 2 == 0


@pytest.mark.parametrize("asynchronous", [False, True])
@pytest.mark.parametrize("stored", [False, True])
def test_threads(tmp_path, asynchronous, stored):
    hooks = Hooks(asynchronous)

    def body(n, by=""):
        time.sleep(0.002)
        return f"result {n} {by}"

    engine = Engine([("hooks", hooks)], approver=approver, state_dir=tmp_path if stored else None)
    with engine, engine.session(persist=stored) as session, session.turn() as turn:
        with ThreadPoolExecutor(PARALLEL) as pool:
            results = list(pool.map(lambda n: turn.call_tool("x", {"n": n}, body), range(PARALLEL * 3)))
        turn.complete("")
    check(hooks, results, PARALLEL * 3)


@pytest.mark.parametrize("asynchronous", [False, True])
async def test_tasks(asynchronous):
    hooks = Hooks(asynchronous)

    async def body(n, by=""):
        await asyncio.sleep(0.002)
        return f"result {n} {by}"

    engine = Engine([("hooks", hooks)], approver=approver)
    async with engine.session() as session, session.turn() as turn:
        results = await asyncio.gather(
            *[turn.call_tool("x", {"n": number}, body) for number in range(PARALLEL * 3)]
        )
        await turn.complete("")
    check(hooks, results, PARALLEL * 3)


def test_sessions_in_threads_do_not_mix():
    seen = {}

    class P:
        @hookimpl
        def pre_tool_execution(self, event, ctx):
            ctx.state.add("n")
            ctx.inject(f"{event.session_id} {event.args['n']}")
            seen.setdefault(event.session_id, []).append(
                (event.args["n"], ctx.state.get("n"), ctx.session.id)
            )

    engine = Engine([P()])

    def one(number):
        with engine.session(session_id=f"s{number}") as session, session.turn() as turn:
            for n in range(10):
                turn.call_tool("x", {"n": n}, lambda n: time.sleep(0.0005))
            return turn.system_prompt([])

    with ThreadPoolExecutor(10) as pool:
        prompts = list(pool.map(one, range(10)))
    for number in range(10):
        name = f"s{number}"
        assert seen[name] == [(n, n + 1, name) for n in range(10)]
        assert prompts[number] == ["\n".join(f"{name} {n}" for n in range(10))]


def test_injected_texts_are_taken_once_by_parallel_prompts():
    class P:
        @hookimpl
        def pre_tool_execution(self, event, ctx):
            ctx.inject(event.args["text"])

    with Engine([P()]).session() as session, session.turn() as turn:
        for round_ in range(20):
            with ThreadPoolExecutor(8) as pool:
                texts = [f"{round_}-{n}" for n in range(8)]
                list(pool.map(lambda text: turn.call_tool("x", {"text": text}, lambda text: 1), texts))
                prompts = list(pool.map(lambda _: turn.system_prompt([]), range(8)))
            got = [line for prompt in prompts for part in prompt for line in part.split("\n")]
            assert sorted(got) == sorted(texts)


def test_a_turn_that_ends_while_tools_run():
    """The host completes the turn although threads still call tools: no call is lost or told twice."""

    class P:
        def __init__(self):
            self.starts, self.posts = [], []

        @hookimpl
        def on_tool_call_start(self, event):
            self.starts.append((event.turn, event.call_id))
            time.sleep(0.001)

        @hookimpl
        def pre_tool_execution(self, event):
            time.sleep(0.001)
            return Rewrite({"n": 1})

        @hookimpl
        def post_tool_execution(self, event):
            self.posts.append((event.turn, event.call_id))

    for _ in range(15):
        hooks = P()
        problems = []
        with Engine([hooks]).session() as session:
            turn = session.turn().begin()

            def work(turn=turn, problems=problems):
                for _ in range(5):
                    try:
                        turn.call_tool("x", {}, lambda n: time.sleep(0.001))
                    except LifecycleError:
                        return
                    except BaseException as error:
                        problems.append(error)

            threads = [threading.Thread(target=work) for _ in range(6)]
            for thread in threads:
                thread.start()
            time.sleep(0.006)
            turn.complete("")
            for thread in threads:
                thread.join()
        assert problems == []
        assert len(set(hooks.posts)) == len(hooks.posts)
        assert set(hooks.starts) == set(hooks.posts)


def test_the_same_call_id_by_two_threads_begins_once():
    class P:
        def __init__(self):
            self.pre, self.posts = [], []

        @hookimpl
        def pre_tool_execution(self, event):
            self.pre.append(event.call_id)
            time.sleep(0.005)

        @hookimpl
        def post_tool_execution(self, event):
            self.posts.append(event.call_id)

    for _ in range(10):
        hooks = P()
        with Engine([hooks]).session() as session, session.turn() as turn:
            barrier = threading.Barrier(4)

            def begin(_, barrier=barrier, turn=turn):
                barrier.wait()
                try:
                    return turn.begin_tool("c1", "x", {})
                except LifecycleError as error:
                    return str(error)

            with ThreadPoolExecutor(4) as pool:
                calls = list(pool.map(begin, range(4)))
                list(pool.map(lambda _, turn=turn: turn.end_tool("c1", result=1), range(4)))
            refused = [call for call in calls if isinstance(call, str)]
            assert len(refused) < 4
            assert all("being decided" in text for text in refused)
        assert hooks.pre == ["c1"]
        assert hooks.posts == ["c1"]


def test_nobody_runs_a_call_that_is_still_being_decided():
    """A second begin while hooks think must not give a call that goes: the first may end in a Deny."""
    thinking, go_on = threading.Event(), threading.Event()

    class Slow:
        @hookimpl
        def pre_tool_execution(self):
            thinking.set()
            go_on.wait(20)
            return Deny("no")

    with Engine([Slow()]).session() as session, session.turn() as turn:
        first = []
        thread = threading.Thread(target=lambda: first.append(turn.begin_tool("c1", "x", {})))
        thread.start()
        assert thinking.wait(20)
        with pytest.raises(LifecycleError, match="'c1' is being decided"):
            turn.begin_tool("c1", "x", {})
        go_on.set()
        thread.join()
        assert first[0].go is False
        assert turn.begin_tool("c1", "x", {}) is first[0]


@pytest.mark.parametrize("count", [2500])
def test_a_turn_of_very_many_calls(count):
    posts = []

    class P:
        @hookimpl
        def post_tool_execution(self, event):
            posts.append(event.call_id)

    with Engine([P()]).session() as session, session.turn() as turn:
        for _ in range(count):
            turn.call_tool("x", {}, lambda: 1)
        turn.complete("")
    assert len(set(posts)) == len(posts) == count
