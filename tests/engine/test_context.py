"""The ctx of a hook: what it offers, and values that hold over threads and processes."""

from __future__ import annotations

import json
import math
import multiprocessing
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hookturn import Engine, Warn, events, hookimpl

EVENT = events.PreToolExecution(tool="bash", args={}, session_id="s", cwd="/project/x")


class Hook:
    """A plugin that runs a function with its ctx."""

    def __init__(self, function, name="hook"):
        self.function = function
        self.hookturn_name = name

    @hookimpl
    def pre_tool_execution(self, event, ctx):
        return self.function(ctx)


def with_ctx(function, *, name="hook", event=EVENT, config=None, **options):
    """Run ``function(ctx)`` in a hook and return what it returned."""
    box = []

    def run(ctx):
        box.append(function(ctx))

    with Engine(**options) as engine:
        engine.register(Hook(run, name), config=config)
        out = engine.fire(event)
    assert not out.failures, out.failures
    return box[0]


def test_names_config_and_places(tmp_path):
    seen = with_ctx(
        lambda ctx: (ctx.hook_name, ctx.config, ctx.project_dir, ctx.output_dir, ctx.session.id),
        config={"a": 1},
        project_dir=tmp_path,
    )
    assert seen == ("hook", {"a": 1}, str(tmp_path), str(tmp_path / ".hookturn"), "s")


def test_places_without_a_project(tmp_path):
    assert with_ctx(lambda ctx: ctx.project_dir) == "/project/x"
    assert with_ctx(lambda ctx: ctx.project_dir, event=EVENT.replace(cwd="")) == os.getcwd()
    assert with_ctx(lambda ctx: ctx.output_dir, output_dir=tmp_path) == str(tmp_path)


def test_log_is_bound_to_the_hook(hook_log):
    with_ctx(lambda ctx: ctx.log.info("hello {}", 1))
    assert hook_log.of("hook") == ["hello 1"]


def test_session_figures_are_zero_for_a_session_that_the_engine_does_not_run():
    seen = with_ctx(
        lambda ctx: (ctx.session.turns, ctx.session.usage, ctx.session.calls, ctx.session.transcript_path)
    )
    assert seen == (0, {}, [], "")


def test_session_figures():
    seen = []

    def look(ctx):
        session = ctx.session
        seen.append((session.id, session.turns, dict(session.usage), [dict(row) for row in session.calls]))

    engine = Engine([Hook(look)])
    with engine.session(session_id="mine", transcript_path="/t.jsonl") as session:
        for _ in range(2):
            with session.turn() as turn:
                turn.model_response("x", usage={"input_tokens": 10, "output_tokens": 2})
                turn.call_tool("bash", {"command": "ls"}, lambda command: "ok", call_id=f"c{turn.number}")
                turn.call_tool("read", {"path": "x"}, lambda path: "ok")
    ids, turns, usage, calls = zip(*seen, strict=True)
    assert set(ids) == {"mine"}
    assert turns == (1, 1, 2, 2)
    assert usage[0] == {"input_tokens": 10, "output_tokens": 2}
    assert usage[-1] == {"input_tokens": 20, "output_tokens": 4}
    assert calls[0] == []
    [row] = calls[1]
    assert (row["call_id"], row["tool"], row["kind"], row["status"]) == ("c1", "bash", "bash", "ok")
    assert row["duration"] >= 0
    assert calls[2] == [], "the calls of this turn only"
    assert with_ctx(lambda ctx: ctx.session.transcript_path) == ""


def test_env_is_the_agents(monkeypatch):
    monkeypatch.setenv("WHO", "process")
    seen = []
    engine = Engine([Hook(lambda ctx: seen.append(ctx.env.get("WHO")))])
    with engine.session(env={"WHO": "agent"}) as session, session.turn() as turn:
        turn.call_tool("x", {}, lambda: None)
    with engine.session() as session, session.turn() as turn:
        turn.call_tool("x", {}, lambda: None)
    assert seen == ["agent", "process"]


def test_inject_takes_texts_only():
    def run(ctx):
        with pytest.raises(TypeError, match="takes a str"):
            ctx.inject(5)
        ctx.inject("")

    with_ctx(run)


# -- state and store -------------------------------------------------------------------------------

KINDS = ("memory", "files")


@pytest.fixture(params=KINDS)
def state_dir(request, tmp_path):
    return tmp_path / "state" if request.param == "files" else None


@pytest.fixture(params=["state", "store"])
def which(request):
    return request.param


JSON_VALUES = [
    None, True, 0, -1, 2**70, 1.5, "", "text", "\ud800\0\r\n", [], [1, [2]], {}, {"a": {"b": [None]}}, "x" * 1_000_000,
]  # fmt: skip


def test_values_come_back(state_dir, which):
    def run(ctx):
        values = getattr(ctx, which)
        assert values.get("missing") is None
        assert values.get("missing", 5) == 5
        for number, value in enumerate(JSON_VALUES):
            values.set(f"k{number}", value)
        for number, value in enumerate(JSON_VALUES):
            assert values.get(f"k{number}") == value
        for key in ("", "\ud800", "a/../b", "x" * 1000, "\0"):
            values.set(key, key)
            assert values.get(key) == key
        values.delete("k0")
        values.delete("never there")
        assert values.get("k0", "gone") == "gone"

    with_ctx(run, state_dir=state_dir)


def test_what_json_cannot_hold_is_refused(state_dir, which):
    def run(ctx):
        values = getattr(ctx, which)
        for value in ({1, 2}, object(), b"x", math.nan, math.inf, {"a": object()}, 10**5000):
            with pytest.raises((TypeError, ValueError)):
                values.set("k", value)
        assert values.get("k") is None
        values.set("k", 1)
        assert values.get("k") == 1

    with_ctx(run, state_dir=state_dir)


def test_a_stored_value_is_apart_from_the_givers(state_dir, which):
    def run(ctx):
        values = getattr(ctx, which)
        mine = {"list": [1]}
        values.set("k", mine)
        mine["list"].append(2)
        assert values.get("k") == {"list": [1]}

    with_ctx(run, state_dir=state_dir)


def test_add(state_dir, which):
    def run(ctx):
        values = getattr(ctx, which)
        assert values.add("n") == 1
        assert values.add("n", 5) == 6
        assert values.add("n", -0.5) == 5.5
        assert values.get("n") == 5.5
        values.set("text", "x")
        with pytest.raises(TypeError):
            values.add("text")
        assert values.get("text") == "x"
        assert values.add("n") == 6.5

    with_ctx(run, state_dir=state_dir)


def test_with_locks_and_keeps_changes(state_dir, which):
    def run(ctx):
        values = getattr(ctx, which)
        with values as data:
            data["a"] = 1
            data["b"] = [1]
            values.set("c", 2)  # the lock is this thread's
            with values as again:
                again["d"] = 4
        assert [values.get(key) for key in "abcd"] == [1, [1], 2, 4]

    with_ctx(run, state_dir=state_dir)


def test_an_exception_inside_with_undoes_the_changes_and_gives_the_lock_back(state_dir, which):
    def run(ctx):
        values = getattr(ctx, which)
        values.set("list", [1])
        with pytest.raises(KeyError), values as data:
            data["a"] = 1
            data["list"].append(2)
            values.set("c", 3)
            raise KeyError("x")
        assert (values.get("a"), values.get("list"), values.get("c")) == (None, [1], None)
        with values as data:
            data["b"] = 2
        assert values.get("b") == 2

    with_ctx(run, state_dir=state_dir)


def test_what_json_cannot_hold_is_refused_at_the_end_of_with_too(state_dir, which):
    def run(ctx):
        values = getattr(ctx, which)
        values.set("a", 1)
        for wrong in (object(), {1, 2}, math.nan):
            with pytest.raises((TypeError, ValueError)), values as data:
                data["a"] = 2
                data["b"] = wrong
            assert (values.get("a"), values.get("b")) == (1, None)

    with_ctx(run, state_dir=state_dir)


def test_changing_a_value_that_was_got_changes_nothing_stored(state_dir, which):
    def run(ctx):
        values = getattr(ctx, which)
        values.set("list", [1])
        values.get("list").append(2)
        assert values.get("list") == [1]
        kept = []
        with values as data:
            data["kept"] = kept
        kept.append(1)
        assert values.get("kept") == []

    with_ctx(run, state_dir=state_dir)


def test_state_belongs_to_hook_and_session_store_to_the_hook(state_dir):
    def count(ctx):
        return Warn(f"{ctx.hook_name} {ctx.state.add('n')} {ctx.store.add('n')}")

    with Engine([("a", Hook(count)), ("b", Hook(count))], state_dir=state_dir) as engine:
        said = [engine.fire(EVENT.replace(session_id=session)).warnings for session in ("one", "one", "two")]
    assert said == [("a 1 1", "b 1 1"), ("a 2 2", "b 2 2"), ("a 1 3", "b 1 3")]


def test_files_outlive_the_engine(tmp_path):
    for turn in (1, 2, 3):
        assert with_ctx(lambda ctx: ctx.store.add("n"), state_dir=tmp_path) == turn
        assert with_ctx(lambda ctx: ctx.state.add("n"), state_dir=tmp_path) == turn


def test_memory_does_not():
    for _ in range(2):
        assert with_ctx(lambda ctx: ctx.store.add("n")) == 1


NAMES = [
    "../../x", "..", ".", "", "a/b", "/etc/passwd", "x" * 5000, "a\nb", "CON", "nul.txt", "a\0b", "\ud800", "ü", "-rf", "~",
    "C:\\x", "@session", "x.json", "x.lock",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES, ids=[repr(name[:20]) for name in NAMES])
def test_no_session_id_or_hook_name_leads_out_or_meets_another(tmp_path, name):
    state = tmp_path / "deep" / "er" / "state"
    event = EVENT.replace(session_id=name)
    assert with_ctx(lambda ctx: ctx.state.add("n"), state_dir=state, event=event) == 1
    assert with_ctx(lambda ctx: ctx.state.add("n"), state_dir=state, event=event) == 2
    other = EVENT.replace(session_id=name + "x")
    assert with_ctx(lambda ctx: ctx.state.add("n"), state_dir=state, event=other) == 1
    if name:
        assert with_ctx(lambda ctx: ctx.store.add("n"), name=name, state_dir=state) == 1
        assert with_ctx(lambda ctx: ctx.store.add("n"), name=name, state_dir=state) == 2
    for path in tmp_path.rglob("*"):
        assert state in (path, *path.parents) or path in state.parents
    assert len(list(tmp_path.iterdir())) == 1


def test_no_hook_can_write_the_state_of_sessions(tmp_path):
    """The engine's own record of a session is out of reach for a plugin, whatever its name."""
    for name in ("@session", "session", "sessions"):
        with Engine(state_dir=tmp_path / name) as engine:
            engine.register(Hook(lambda ctx: ctx.state.set("ended", True), name), name)
            with engine.session(session_id="s", persist=True) as session, session.turn() as turn:
                turn.call_tool("x", {}, lambda: 1)
                turn.call_tool("x", {}, lambda: 1)
                session.submit("still alive")


@pytest.mark.skipif(os.name == "nt", reason="modes of POSIX")
def test_files_are_the_users_alone(tmp_path):
    old = os.umask(0)
    try:
        with_ctx(lambda ctx: (ctx.state.set("a", 1), ctx.store.set("a", 1)), state_dir=tmp_path / "state")
    finally:
        os.umask(old)
    for path in (tmp_path / "state").rglob("*"):
        wanted = 0o700 if path.is_dir() else 0o600
        assert stat.S_IMODE(path.stat().st_mode) == wanted, path


@pytest.mark.skipif(os.name == "nt", reason="links of POSIX")
def test_nothing_is_written_through_a_link(tmp_path):
    target = tmp_path / "target.json"
    target.write_text("{}")
    state = tmp_path / "state"
    with_ctx(lambda ctx: ctx.store.set("a", 1), state_dir=state)
    [file] = state.rglob("hook.json")
    file.unlink()
    file.symlink_to(target)

    def run(ctx):
        with pytest.raises(OSError):
            ctx.store.set("a", 2)

    with_ctx(run, state_dir=state)
    assert target.read_text() == "{}"


DAMAGE = {
    "torn": b'{"n": 5, "x"',
    "empty": b"",
    "binary": b"\xff\xfe\x00\x01" * 10,
    "a list": b"[1, 2]",
    "a number": b"5",
    "deep": b"[" * 100_000,
    "deep objects": b'{"a":' * 100_000,
    "huge number": b'{"n": ' + b"9" * 10_000 + b"}",
    "nul": b"\0" * 100,
}


@pytest.mark.parametrize("damage", DAMAGE.values(), ids=DAMAGE)
@pytest.mark.parametrize("first", ["get", "add"])
def test_a_damaged_file_is_kept_for_a_look_and_started_anew(tmp_path, damage, first):
    with_ctx(lambda ctx: ctx.store.set("n", 5), state_dir=tmp_path)
    [file] = tmp_path.rglob("hook.json")
    file.write_bytes(damage)
    if first == "get":
        assert with_ctx(lambda ctx: ctx.store.get("n"), state_dir=tmp_path) is None
    assert with_ctx(lambda ctx: ctx.store.add("n"), state_dir=tmp_path) == 1
    assert json.loads(file.read_bytes()) == {"n": 1}
    kept = [path for path in file.parent.iterdir() if path.suffix != ".lock" and path.read_bytes() == damage]
    assert len(kept) == 1
    assert kept[0] != file


def test_threads_add_exactly(state_dir, which):
    with Engine(state_dir=state_dir) as engine:
        engine.register(Hook(lambda ctx: [getattr(ctx, which).add("n") for _ in range(250)] and None))
        threads = [threading.Thread(target=engine.fire, args=(EVENT,)) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        box = []
        engine.register(Hook(lambda ctx: None), "other")
        engine.unregister("hook")
        engine.register(Hook(lambda ctx: box.append(getattr(ctx, which).get("n"))), "hook")
        engine.fire(EVENT)
    assert box == [1000]


def _add_250(state_dir, which, barrier):
    def run(ctx):
        values = getattr(ctx, which)
        barrier.wait(60)
        for _ in range(250):
            values.add("n")

    with_ctx(run, state_dir=state_dir)


@pytest.mark.parametrize(
    "method", [name for name in ("fork", "spawn") if name in multiprocessing.get_all_start_methods()]
)
@pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning")
def test_processes_add_exactly(tmp_path, which, method, monkeypatch):
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    context = multiprocessing.get_context(method)
    barrier = context.Barrier(4)
    import test_context as importable  # children find the function by this name

    processes = [
        context.Process(target=importable._add_250, args=(tmp_path, which, barrier)) for _ in range(4)
    ]
    for process in processes:
        process.start()
    for process in processes:
        process.join(120)
        assert process.exitcode == 0
    assert with_ctx(lambda ctx: getattr(ctx, which).get("n"), state_dir=tmp_path) == 1000


def test_readers_never_see_half_a_file(tmp_path):
    """One process writes large values, we read: the old or the new one, never a part."""
    code = (
        "import sys\n"
        "from hookturn import Engine, events, hookimpl\n"
        "class P:\n"
        "    hookturn_name = 'hook'\n"
        "    @hookimpl\n"
        "    def pre_tool_execution(self, ctx):\n"
        "        for n in range(200):\n"
        "            ctx.store.set('v', [n] * 5000)\n"
        "event = events.PreToolExecution(tool='x', args={})\n"
        "Engine([P()], state_dir=sys.argv[1]).fire(event)\n"
    )
    with_ctx(lambda ctx: ctx.store.set("v", [-1] * 5000), state_dir=tmp_path)
    writer = subprocess.Popen([sys.executable, "-c", code, str(tmp_path)])
    seen = set()

    def read(ctx):
        while writer.poll() is None:
            value = ctx.store.get("v")
            assert len(value) == 5000 and len(set(value)) == 1
            seen.add(value[0])

    with_ctx(read, state_dir=tmp_path)
    assert writer.returncode == 0
    assert with_ctx(lambda ctx: ctx.store.get("v")[0], state_dir=tmp_path) == 199
    assert not list(tmp_path.rglob("*.damaged"))
    assert not list(tmp_path.rglob("*.tmp"))


def test_the_lock_of_a_hook_excludes_others(state_dir):
    inside, most = [], []

    def run(ctx):
        with ctx.lock():
            inside.append(1)
            most.append(len(inside))
            threading.Event().wait(0.01)
            inside.pop()

    with Engine(state_dir=state_dir) as engine:
        engine.register(Hook(run))
        threads = [threading.Thread(target=engine.fire, args=(EVENT,)) for _ in range(5)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    assert most == [1] * 5


def test_the_state_of_a_session_that_ended_is_forgotten_in_memory():
    seen = []
    engine = Engine([Hook(lambda ctx: seen.append(ctx.state.add("n")))])
    for _ in range(2):
        with engine.session(session_id="again") as session, session.turn() as turn:
            turn.call_tool("x", {}, lambda: 1)
    assert seen == [1, 1]


# -- services --------------------------------------------------------------------------------------


class Caller:
    """A hook that calls a service, which fires events on the engine."""

    def __init__(self, name, calls, timing="pre_tool_execution"):
        self.hookturn_name = name
        self.calls = calls

        @hookimpl
        def hook(event, ctx):
            self.calls.append(name)
            ctx.services["model"](event)

        hook.__name__ = timing
        setattr(self, timing, hook)


def test_services_skip_the_calling_hook_and_no_other():
    calls = []

    def model(event):
        return engine.fire(EVENT)

    class Other:
        @hookimpl
        def pre_tool_execution(self):
            calls.append("other")

    engine = Engine([Caller("a", calls), Other()], services={"model": model})
    engine.fire(EVENT)
    assert calls == ["a", "other", "other"]
    calls.clear()
    engine.fire(EVENT)
    assert calls == ["a", "other", "other"], "skipped for the call only"


def test_services_skip_the_calling_on_outcome_hook_too():
    calls = []
    engine = Engine([Caller("a", calls, "on_outcome")], services={"model": lambda event: engine.fire(EVENT)})
    out = engine.fire(EVENT)
    assert calls == ["a"]
    assert not out.failures


def test_services_call_services_three_deep():
    calls = []
    plugins = [Caller(name, calls) for name in "abcde"]
    errors = []

    def model(event):
        out = engine.fire(EVENT)
        errors.extend(failure for failure in out.failures)

    engine = Engine(plugins, services={"model": model})
    engine.fire(EVENT)
    assert max(len(calls), 0) > 5
    assert {failure.error_type for failure in errors} == {"NestingError"}
    assert all("3 deep" in failure.message for failure in errors)


async def test_coroutine_services():
    calls = []

    async def model(event):
        return await engine.afire(EVENT)

    class Async:
        hookturn_name = "async"

        @hookimpl
        async def pre_tool_execution(self, event, ctx):
            calls.append("async")
            await ctx.services["model"](event)

    class CallableModel:
        async def __call__(self, event):
            return await engine.afire(EVENT)

    for service in (model, lambda event: model(event), CallableModel()):
        calls.clear()
        engine = Engine([Async()], services={"model": service})
        out = await engine.afire(EVENT)
        assert not out.failures
        assert calls == ["async"]
        with engine:
            calls.clear()
            assert not engine.fire(EVENT).failures
            assert calls == ["async"]


def test_a_service_that_fails_is_the_hooks_failure():
    def model(event):
        raise ValueError("no network")

    out = Engine([Caller("a", [])], services={"model": model}).fire(EVENT)
    assert out.failures[0].message == "no network"


def test_an_unknown_service():
    out = Engine([Caller("a", [])]).fire(EVENT)
    assert out.failures[0].error_type == "KeyError"
