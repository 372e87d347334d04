"""Sessions that live longer than one object, engine or process: ``attach`` and the state folder."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap

import pytest

from hookturn import Ask, Block, Continue, Deny, Engine, Inject, LifecycleError, Reply, Rewrite, hookimpl
from hookturn.spec.timings import TIMINGS


class Recorder:
    def __init__(self):
        self.events = []
        for name in TIMINGS:
            if name != "on_outcome":
                setattr(self, name, self._hook(name))

    def _hook(self, name):
        @hookimpl(tryfirst=True, specname=name)
        def hook(event):
            self.events.append(event)

        return hook

    def of(self, timing):
        return [event for event in self.events if event.timing == timing]

    @property
    def timings(self):
        return [event.timing for event in self.events]


def says(timing, answer):
    @hookimpl(specname=timing)
    def hook(event):
        return answer(event) if callable(answer) else answer

    return type("Says", (), {timing: staticmethod(hook)})()


@pytest.fixture
def seen():
    return Recorder()


@pytest.fixture
def make(tmp_path, seen):
    """Each call is another process's engine: nothing is shared but the folder."""

    def make(*plugins, **options):
        return Engine([seen, *plugins], state_dir=tmp_path / "state", **options)

    return make


def test_a_turn_over_many_engines(make, seen):
    make().session(session_id="s", agent="coder", cwd="/project", host="agent", persist=True).start()
    assert make().attach("s").submit("fix it").goes_on
    make().attach("s").turn().begin()
    assert make().attach("s").open_turn().system_prompt(["p"]) == ["p"]
    make().attach("s").open_turn().model_response("m", usage={"input_tokens": 3})
    call = make().attach("s").open_turn().begin_tool("c1", "Edit", {"file_path": "a"})
    assert call.go
    result = make().attach("s").open_turn().end_tool("c1", result="done")
    assert (result.status, result.value) == ("ok", "done")
    assert make().attach("s").open_turn().complete("bye").again is None
    assert make().attach("s").open_turn() is None
    make().attach("s").end("logout")
    assert seen.timings == [
        "on_session_start", "on_message_received", "on_user_prompt_submit", "on_turn_start", "system_prompt",
        "on_model_response", "on_tool_call_start", "pre_tool_execution", "post_tool_execution", "on_turn_complete",
        "post_turn", "on_session_end",
    ]  # fmt: skip
    assert {(event.session_id, event.agent, event.cwd, event.host) for event in seen.events} == {
        ("s", "coder", "/project", "agent")
    }
    [post] = seen.of("post_tool_execution")
    assert (post.turn, post.tool, post.args) == (1, "Edit", {"file_path": "a"})
    assert post.duration >= 0
    [end] = seen.of("on_turn_complete")
    assert end.usage == {"input_tokens": 3}
    assert end.edited_files == ["/project/a"]
    assert [row["call_id"] for row in end.tool_calls] == ["c1"]


def test_no_start_or_end_is_fired_by_attaching(make, seen):
    with make().attach("s") as session:
        assert session.id == "s"
    assert seen.events == []


def test_a_session_that_nobody_started_can_be_attached_to(make, seen):
    """A bridge may have been installed in the middle of a session."""
    session = make().attach("s")
    session.submit("x")
    turn = make().attach("s").turn().begin()
    turn.begin_tool("c1", "x", {})
    make().attach("s").end()
    assert seen.timings[-4:] == ["post_tool_execution", "on_turn_complete", "post_turn", "on_session_end"]
    assert seen.of("post_tool_execution")[0].status == "unknown"


def test_the_end_is_fired_once_by_all(make, seen):
    make().session(session_id="s", persist=True).start()
    make().attach("s").end()
    make().attach("s").end()
    assert seen.timings.count("on_session_end") == 1
    with pytest.raises(LifecycleError, match="has ended"):
        make().attach("s").submit("x")
    with pytest.raises(LifecycleError, match="has ended"):
        make().attach("s").turn().begin()


@pytest.mark.parametrize("source", ["startup", "resume"])
def test_a_session_that_ended_may_start_again(make, seen, source):
    for _ in range(2):
        session = make().session(session_id="s", persist=True, source=source)
        session.start()
        with make().attach("s").turn() as turn:
            turn.call_tool("x", {}, lambda: 1)
        make().attach("s").end()
    assert seen.timings.count("on_session_start") == seen.timings.count("on_session_end") == 2
    assert [event.turn for event in seen.of("on_turn_start")] == [1, 2]


@pytest.mark.parametrize("source", ["resume", "clear", "compact"])
def test_a_session_whose_host_died_or_says_that_it_goes_on(make, seen, source):
    make().session(session_id="s", persist=True).start()
    make().session(session_id="s", persist=True, source=source).start()
    assert [event.source for event in seen.of("on_session_start")] == ["startup", source]
    make().attach("s").submit("x")
    make().attach("s").end()
    assert seen.timings.count("on_session_end") == 1


def test_starting_a_live_one_anew_is_refused(make):
    make().session(session_id="s", persist=True).start()
    with pytest.raises(LifecycleError, match="has started already"):
        make().session(session_id="s", persist=True).start()


def test_turn_numbers_go_on(make, seen):
    for _ in range(3):
        make().attach("s").turn().begin()
        make().attach("s").open_turn().complete("")
    assert [event.turn for event in seen.of("on_turn_complete")] == [1, 2, 3]
    assert make().attach("s").turns == 3


def test_two_turns_at_once_are_refused_over_processes(make):
    make().attach("s").turn().begin()
    with pytest.raises(LifecycleError, match="open turn"):
        make().attach("s").turn().begin()


def test_a_blocked_prompt_is_remembered(make):
    assert not make(says("on_message_received", Block("no"))).attach("s").submit("x").goes_on
    with pytest.raises(LifecycleError, match="stopped by"):
        make().attach("s").turn().begin()
    make().attach("s").turn(override=True).begin()


def test_a_blocked_turn_is_remembered(make, seen):
    make().attach("s").turn().begin()
    make(says("on_model_response", Block("enough"))).attach("s").open_turn().model_response("x")
    call = make().attach("s").open_turn().begin_tool("c1", "x", {})
    assert (call.go, "enough" in call.message) == (False, True)
    assert seen.of("pre_tool_execution") == []


def test_going_on_is_counted_over_processes(make, seen):
    more = says("on_turn_complete", Continue("more"))
    make().attach("s").turn().begin()
    for _ in range(3):
        assert make(more, max_continue=3).attach("s").open_turn().complete("x").again == "more"
    assert make(more, max_continue=3).attach("s").open_turn().complete("x").again is None
    assert [event.continued for event in seen.of("on_turn_complete")] == [0, 1, 2, 3]
    assert make().attach("s").open_turn() is None


def test_injected_texts_wait_for_the_next_process(make):
    class P:
        @hookimpl
        def on_turn_start(self, ctx):
            ctx.inject("by ctx")
            return Inject("by answer")

    make(P()).attach("s").turn().begin()
    assert make().attach("s").open_turn().system_prompt([]) == ["by ctx\nby answer"]
    assert make().attach("s").open_turn().system_prompt([]) == []


def test_rewritten_arguments_reach_the_other_process(make, seen):
    make().attach("s").turn().begin()
    rewrite = says("pre_tool_execution", Rewrite(command="pwd"))
    assert make(rewrite).attach("s").open_turn().begin_tool("c1", "bash", {"command": "ls"}).args == {
        "command": "pwd"
    }
    again = make().attach("s").open_turn().begin_tool("c1", "bash", {"command": "ls"})
    assert (again.args, again.go) == ({"command": "pwd"}, True)
    make().attach("s").open_turn().end_tool("c1", result="x")
    [post] = seen.of("post_tool_execution")
    assert post.args == {"command": "pwd"}
    assert len(seen.of("pre_tool_execution")) == 1


@pytest.mark.parametrize("answer", [Deny("no", advice="ask first"), Ask("sure?"), Block("stop")])
def test_a_refused_call_that_is_begun_again_says_the_same(make, seen, answer):
    make().attach("s").turn().begin()
    first = make(says("pre_tool_execution", answer)).attach("s").open_turn().begin_tool("c1", "bash", {})
    again = make().attach("s").open_turn().begin_tool("c1", "bash", {})
    for call in (first, again):
        assert call.go is False
        assert call.result.status == "denied"
    assert again.message == first.message != ""
    assert (again.denied_by, again.reason) == (first.denied_by, first.reason)
    assert again.result.value == first.result.value
    assert make().attach("s").open_turn().end_tool("c1", result="ran all the same").value == first.message
    assert len(seen.of("post_tool_execution")) == 1


def test_a_reply_that_is_begun_again_is_the_same(make, seen):
    make().attach("s").turn().begin()
    reply = says("pre_tool_execution", Reply({"cached": [1]}))
    make(reply).attach("s").open_turn().begin_tool("c1", "bash", {})
    again = make().attach("s").open_turn().begin_tool("c1", "bash", {})
    assert (again.go, again.replied, again.reply, again.replied_by) == (False, True, {"cached": [1]}, "Says")
    assert again.result.value == {"cached": [1]}
    assert len(seen.of("post_tool_execution")) == 1


def test_a_call_that_failed_before_its_decision_is_decided_anew(make, seen):
    """Whatever was wrong with the first process, its failure is no permission."""
    make().attach("s").turn().begin()

    class Gone(BaseException):
        pass

    class Fails:
        @hookimpl
        def pre_tool_execution(self):
            raise Gone

    with pytest.raises(Gone):
        make(Fails()).attach("s").open_turn().begin_tool("c1", "bash", {})
    call = make(says("pre_tool_execution", Deny("no"))).attach("s").open_turn().begin_tool("c1", "bash", {})
    assert (call.go, call.denied_by) == (False, "Says")
    call = make().attach("s").open_turn().begin_tool("c1", "bash", {})
    assert (call.go, call.denied_by) == (False, "Says")
    with pytest.raises(Gone):
        make(Fails()).attach("s").open_turn().begin_tool("c2", "bash", {})
    assert make().attach("s").open_turn().begin_tool("c2", "bash", {}).go
    assert make().attach("s").open_turn().end_tool("c2", result="done").status == "ok"
    assert [(event.call_id, event.status) for event in seen.of("post_tool_execution")] == [
        ("c1", "cancelled"),
        ("c1", "denied"),
        ("c2", "cancelled"),
        ("c2", "ok"),
    ]


def test_a_call_that_was_never_decided_is_decided_by_the_next_process(make, seen):
    """The first process was killed while its hooks were thinking."""
    make().attach("s").turn().begin()

    class Killed(BaseException):
        pass

    class Dies:
        @hookimpl
        def pre_tool_execution(self):
            raise Killed

    # A kill leaves no time for the post: take what the state was in the middle of the hooks.
    kept = {}

    def keep(event):
        folder = next(seen_folder.rglob("session.jsonl"))
        kept[folder] = folder.read_bytes()

    engine = make(says("on_tool_call_start", keep), Dies())
    seen_folder = engine.stores.folder
    with pytest.raises(Killed):
        engine.attach("s").open_turn().begin_tool("c1", "bash", {})
    for path, data in kept.items():
        path.write_bytes(data)
    seen.events.clear()
    call = make(says("pre_tool_execution", Deny("no"))).attach("s").open_turn().begin_tool("c1", "bash", {})
    assert (call.go, call.denied_by) == (False, "Says")
    assert [event.status for event in seen.of("post_tool_execution")] == ["denied"]


def test_two_attached_sessions_share_ids_of_calls(make, seen):
    make().attach("s").turn().begin()
    engine = make()
    ran = []
    for session in (engine.attach("s"), engine.attach("s"), make().attach("s")):
        session.open_turn().call_tool("x", {}, lambda: ran.append(1))
    assert ran == [1, 1, 1]
    assert len({event.call_id for event in seen.of("post_tool_execution")}) == 3


def test_attaching_in_memory_meets_the_running_session(seen):
    engine = Engine([seen])
    with engine.session(session_id="s") as session, session.turn() as turn:
        turn.begin_tool("c1", "x", {})
        other = engine.attach("s")
        assert other.open_turns == [""]
        other.open_turn().end_tool("c1", result="by the other")
        assert turn.end_tool("c1").status == "ok"
        ran = []
        turn.call_tool("x", {}, lambda: ran.append(1))
        other.open_turn().call_tool("x", {}, lambda: ran.append(2))
        assert ran == [1, 2]
    assert len(seen.of("post_tool_execution")) == 3
    assert seen.timings.count("on_session_end") == 1


def test_sub_agents_over_processes(make, seen):
    make().attach("s").turn().begin()
    make().attach("s").open_turn().subagent("reviewer", "r1").begin()
    sub = make().attach("s").open_turn("r1")
    assert (sub.agent, sub.parent_agent) == ("reviewer", "main")
    sub.begin_tool("c1", "x", {})
    # Who ends it may not know whose call it was.
    make().attach("s").open_turn().end_tool("c1", result="x")
    make().attach("s").open_turn("r1").complete("fine")
    make().attach("s").open_turn().complete("done")
    [post] = seen.of("post_tool_execution")
    assert (post.agent, post.agent_id) == ("reviewer", "r1")


NAMES = ["../../x", "", "a/b\0c", "x" * 5000, "CON", "\ud800", "a\nb"]


@pytest.mark.parametrize("name", NAMES, ids=lambda name: repr(name[:12]))
def test_any_session_id(tmp_path, name):
    seen = Recorder()

    def make():
        return Engine([seen], state_dir=tmp_path / "deep" / "state")

    session_id = make().attach(name).id
    make().attach(session_id).turn().begin()
    make().attach(session_id).open_turn().begin_tool("c\0\ud800/../", "x", {"a\0": "\ud800"})
    make().attach(session_id).open_turn().end_tool("c\0\ud800/../", result="\ud800")
    make().attach(session_id).end()
    [post] = seen.of("post_tool_execution")
    assert (post.args, post.result) == ({"a\0": "\ud800"}, "\ud800")
    assert os.listdir(tmp_path) == ["deep"]


def test_a_damaged_state_file_does_not_stop_the_session(tmp_path, seen):
    def make():
        return Engine([seen], state_dir=tmp_path)

    make().attach("s").turn().begin()
    for path in tmp_path.rglob("session.jsonl"):
        path.write_bytes(b'{"turns": {"": \n')
    make().attach("s").submit("x")
    with make().attach("s").turn() as turn:
        turn.call_tool("x", {}, lambda: 1)
    make().attach("s").end()
    assert seen.timings[-1] == "on_session_end"
    assert list(tmp_path.rglob("*.damaged"))


CHILD = textwrap.dedent("""
    import json, sys
    from hookturn import Deny, Engine, hookimpl

    class P:
        @hookimpl
        def pre_tool_execution(self, event, ctx):
            ctx.state.add("calls")
            if event.args.get("n", 0) % 7 == 3:
                return Deny(f"no {event.args['n']}")

        @hookimpl
        def post_tool_execution(self, event, ctx):
            ctx.state.add("posts")
            with open(sys.argv[2], "a") as file:
                file.write(json.dumps([event.call_id, event.status]) + "\\n")

    engine = Engine([("p", P())], state_dir=sys.argv[1])
    session = engine.attach("s")
    turn = session.open_turn()
    start = int(sys.argv[3])
    for n in range(start, start + 25):
        call = turn.begin_tool(f"c{n}", "x", {"n": n})
        if call.go:
            turn.end_tool(f"c{n}", result=n)
""")


def test_parallel_processes_in_one_turn(tmp_path, seen):
    state, log = tmp_path / "state", tmp_path / "posts.txt"
    engine = Engine([("p", seen)], state_dir=state)
    session = engine.session(session_id="s", persist=True)
    session.start()
    session.turn().begin()
    children = [
        subprocess.Popen([sys.executable, "-c", CHILD, str(state), str(log), str(number * 25)])
        for number in range(4)
    ]
    for child in children:
        assert child.wait(120) == 0
    rows = [json.loads(line) for line in log.read_text().splitlines()]
    assert sorted(row[0] for row in rows) == sorted(f"c{n}" for n in range(100))
    assert {name for name, status in rows if status == "denied"} == {
        f"c{n}" for n in range(100) if n % 7 == 3
    }
    Engine([seen], state_dir=state).attach("s").end()
    [end] = seen.of("on_turn_complete")
    assert len(end.tool_calls) == 100
    assert seen.of("post_tool_execution") == [], "nothing was left open"
