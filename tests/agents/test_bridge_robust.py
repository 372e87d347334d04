"""Whatever an agent sends and whatever fails here: an answer that the agent takes, in time, open or closed as configured."""

from __future__ import annotations

import errno
import json
import os
import queue
import sys
import threading
import time
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

sys.path.insert(0, str(Path(__file__).parent))

from claude_answers import check

from hookturn import Allow, Block, Deny, Engine, Inject, Rewrite, hookimpl
from hookturn.agents import bridge, kin, memory, open_sessions
from hookturn.agents.claude_code import hooks as claude
from hookturn.agents.moments import Moment
from hookturn.engine import journal
from hookturn.engine.async_session import SteppedSession

CAPTURES = Path(__file__).parent.parent / "data/captures/claude"
PAYLOADS = {path.stem: json.loads(path.read_text()) for path in sorted(CAPTURES.glob("*.json"))}


def plugin(timing="pre_tool_execution", answer=None, **options):
    @hookimpl(specname=timing, **options)
    def hook(event):
        hook.seen.append(event)
        return answer(event) if callable(answer) else answer

    hook.seen = []
    made = type("Plugin", (), {timing: staticmethod(hook)})()
    made.seen = hook.seen
    return made


class Caller:
    def __init__(self, folder, *plugins):
        self.folder = folder
        self.plugins = [(f"p{number}", item) for number, item in enumerate(plugins)]
        self.memory = folder / "memory"
        self.environ = {}

    def engine(self, place):
        return Engine(self.plugins, state_dir=self.folder / "state", threaded=True)

    def __call__(self, payload, agent="claude-code", **more):
        if isinstance(payload, (dict, list)):
            payload = json.dumps(payload).encode()
        more.setdefault("engine_for", self.engine)
        more.setdefault("memory", self.memory)
        more.update(environ=self.environ, cwd=str(self.folder))
        ask = answer_here if more.pop("here", False) else bridge.answer
        return ask(agent, payload, **more)


def answer_here(agent, payload, **about):
    """The answer as a caller gets it whose own thread may be left behind with a hook."""
    answers = queue.SimpleQueue()

    def call():
        answer = bridge.answer_here(agent, payload, elsewhere=answers.put, **about)
        if answer is not None:
            answers.put(answer)

    threading.Thread(target=call, daemon=True).start()
    answer = answers.get(timeout=30)
    assert answers.empty()
    return answer


GUARD = ("pre_tool_execution", None)
PRE = PAYLOADS["PreToolUse"]


@pytest.fixture
def opened(tmp_path):
    """A project in which nothing fails closed."""
    return Caller(tmp_path, plugin())


@pytest.fixture
def closed(tmp_path):
    """A project with a guard; it was called before, so that this is known without an engine."""
    caller = Caller(tmp_path, plugin(guard=True))
    caller(PRE)
    return caller


def denies(answer):
    said = check("PreToolUse", answer)
    own = said.get("hookSpecificOutput", {})
    return own.get("permissionDecision") == "deny"


UNREADABLE = {
    "nothing": b"",
    "blanks": b" \n\t",
    "null": b"null",
    "an array": b"[]",
    "a string": b'"PreToolUse"',
    "a number": b"17",
    "text": b"Last login: today\n",
    "cut off": json.dumps(PRE).encode()[:-40],
    "cut in a character": '{"hook_event_name": "PreToolUse", "tool_name": "表'.encode()[:-1],
    "nested too deep": b'{"hook_event_name": "PreToolUse", "tool_input": ' + b"[" * 5000 + b"]" * 5000 + b"}",
    "nested deeper than Python": b'{"hook_event_name": "PreToolUse", "a": ' + b"[" * 500_000,
    "nested 300 deep": b'{"hook_event_name": "PreToolUse", "a": ' + b"[" * 300 + b"]" * 300 + b"}",
    "a huge number": b'{"hook_event_name": "PreToolUse", "a": ' + b"9" * 10_000 + b"}",
    "UTF-16": json.dumps(PRE).encode("utf-16"),
    "two BOMs": b"\xef\xbb\xbf\xef\xbb\xbf" + json.dumps(PRE).encode(),
    "no event": b'{"session_id": "s"}',
    "an event of a wrong type": b'{"hook_event_name": 7}',
    "no tool": b'{"hook_event_name": "PreToolUse"}',
    "a tool of a wrong type": json.dumps({**PRE, "tool_name": 7}).encode(),
    "input null": json.dumps({**PRE, "tool_input": None}).encode(),
    "input a list": json.dumps({**PRE, "tool_input": ["rm"]}).encode(),
    "random bytes": bytes(range(256)) * 4,
}


@pytest.mark.parametrize("kind", UNREADABLE)
def test_an_unreadable_payload_passes_where_nothing_fails_closed(opened, kind):
    answer = opened(UNREADABLE[kind])
    assert (answer.stdout, answer.exit_code) == (b"", 0)
    assert answer.stderr.startswith("hookturn: ")


def test_a_number_that_is_too_long_is_named_as_the_cause(opened):
    answer = opened(UNREADABLE["a huge number"])
    assert "integer string conversion" in answer.stderr
    assert "Error" not in answer.stderr


@pytest.mark.parametrize("kind", UNREADABLE)
def test_an_unreadable_payload_is_refused_where_something_fails_closed(closed, kind):
    answer = closed(UNREADABLE[kind])
    assert answer.exit_code == 0
    said = json.loads(answer.stdout)
    own = said.get("hookSpecificOutput", {})
    assert own.get("permissionDecision") == "deny" or said["decision"] == "block"
    assert "p0 fails closed" in json.dumps(said)
    assert answer.stderr.startswith("hookturn: ")


@pytest.mark.parametrize("event", sorted(PAYLOADS))
def test_a_cut_off_payload_of_an_event_that_decides_nothing_is_never_refused(closed, event):
    row = claude.EVENTS[event]
    answer = closed(json.dumps(PAYLOADS[event]).encode()[:-1])
    guarded = set(row.timings) & {"pre_tool_execution", "on_tool_call_start"}
    assert bool(answer.stdout) == bool(row.decides and guarded)
    check(event, answer)


READABLE = {
    "a BOM": b"\xef\xbb\xbf" + json.dumps(PRE).encode(),
    "CRLF and blanks": b"\r\n" + json.dumps(PRE, indent=1).replace("\n", "\r\n").encode() + b"\r\n",
    "a BOM inside": json.dumps({**PRE, "tool_input": {"command": "\ufeffls"}}).encode(),
    "other scripts": json.dumps({**PRE, "tool_input": {"command": 'echo "表"'}}, ensure_ascii=False).encode(),
    "a lone surrogate": json.dumps({**PRE, "tool_input": {"command": "\ud83d"}}).encode(),
    "NUL": json.dumps({**PRE, "tool_input": {"command": "a\0b"}}).encode(),
    "a raw NUL": json.dumps({**PRE, "tool_input": {"command": "a@b"}}).encode().replace(b"@", b"\0"),
    "line separators": json.dumps({**PRE, "tool_input": {"command": "a\u2028b"}}, ensure_ascii=False).encode(),
    "invalid UTF-8": json.dumps({**PRE, "tool_input": {"command": "a@b"}}).encode().replace(b"@", b"\xff\xfe"),
    "10 MB": json.dumps({**PRE, "tool_input": {"command": "x" * 10_000_000}}).encode(),
    "new fields": json.dumps({**PRE, "new": {"a": [1]}, "tool_version": 3}).encode(),
    "something behind it": json.dumps(PRE).encode() + b"\nbye",
    "no ids": json.dumps({key: PRE[key] for key in ("hook_event_name", "tool_name", "tool_input")}).encode(),
    "wrong types elsewhere": json.dumps(
        {**PRE, "session_id": 1, "cwd": [], "transcript_path": {}, "agent_id": 3, "agent_type": [], "tool_use_id": 5}
    ).encode(),
    "not a number": json.dumps({**PRE, "tool_input": {"command": "ls", "timeout": float("nan")}}).encode(),
    "a session id that is a path": json.dumps({**PRE, "session_id": "../../../etc/x\n"}).encode(),
    "a long session id": json.dumps({**PRE, "session_id": "s" * 100_000}).encode(),
    "an empty session id": json.dumps({**PRE, "session_id": ""}).encode(),
    "a call id that is a path": json.dumps({**PRE, "tool_use_id": "../x\ud800\0"}).encode(),
    "a folder that is not there": json.dumps({**PRE, "cwd": "/nowhere/at/all\0"}).encode(),
}  # fmt: skip


@pytest.mark.parametrize("kind", READABLE)
def test_an_odd_payload_is_heard(tmp_path, kind):
    deny = plugin(answer=Deny("seen"))
    caller = Caller(tmp_path, deny)
    payload = READABLE[kind]
    answer = caller(payload)
    assert denies(answer), answer
    told = json.loads(
        payload.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").split("\nbye")[0], strict=False
    )
    assert deny.seen[0].command == told["tool_input"]["command"]
    assert all(len(path.name) < 120 and path.name.isprintable() for path in tmp_path.rglob("*"))


@pytest.mark.parametrize("kind", READABLE)
def test_an_odd_payload_comes_back_as_it_was(tmp_path, kind):
    """A rewrite of one argument gives all others back unchanged, lone surrogates and all."""
    caller = Caller(tmp_path, plugin(answer=lambda event: Rewrite(args={**event.args, "extra": "\udfff\0ü"})))
    answer = caller(READABLE[kind])
    own = json.loads(answer.stdout)["hookSpecificOutput"]
    told = json.loads(
        READABLE[kind].removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").split("\nbye")[0],
        strict=False,
    )
    assert own["updatedInput"]["command"] == told["tool_input"]["command"]
    assert own["updatedInput"]["extra"] == "\udfff\0ü"


# -- any payload ------------------------------------------------------------------------------------

json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None), max_size=20),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@st.composite
def mutated(draw):
    """A captured payload with fields changed, taken out or added."""
    event = draw(st.sampled_from(sorted(PAYLOADS)))
    payload = dict(PAYLOADS[event])
    for name in draw(st.lists(st.sampled_from(sorted(payload)), max_size=4)):
        if draw(st.booleans()):
            payload.pop(name, None)
        else:
            payload[name] = draw(json_values)
    payload.update(draw(st.dictionaries(st.text(max_size=8), json_values, max_size=2)))
    return payload


@settings(max_examples=300)
@given(payload=mutated(), guard=st.booleans())
def test_any_payload_gets_a_valid_answer(payload, guard, tmp_path_factory):
    folder = tmp_path_factory.mktemp("any")
    answers = {"guard": True, "answer": Deny("no")} if guard else {"answer": Allow("yes")}
    caller = Caller(folder, plugin(**answers), plugin("system_prompt", None), plugin("on_event"))
    engine = Engine(caller.plugins)
    answer = caller(payload, engine_for=lambda place: engine, memory=None)
    event = payload.get("hook_event_name")
    if event and isinstance(event, str):
        said = check(event, answer)
        if event == "PreToolUse" and not guard:
            assert denies(answer) is False
        del said
    else:
        assert answer.exit_code == 0
        assert not answer.stdout or json.loads(answer.stdout)["decision"] == "block"


@settings(max_examples=200)
@given(data=st.binary(max_size=200), where=st.integers(0, 400), event=st.sampled_from(sorted(PAYLOADS)))
def test_any_bytes_get_a_valid_answer(data, where, event, tmp_path_factory):
    payload = json.dumps(PAYLOADS[event]).encode()
    payload = payload[:where] + data + payload[where + len(data) :]
    engine = Engine([plugin(guard=True)])
    answer = Caller(tmp_path_factory.mktemp("any"))(payload, engine_for=lambda place: engine, memory=None)
    assert answer.exit_code in (0, 2)
    if answer.stdout:
        assert isinstance(json.loads(answer.stdout), dict)


# -- failures of our own ----------------------------------------------------------------------------


def broken(place):
    raise RuntimeError("the disk is gone; token=ghp_" + "a1B2" * 9)


def test_a_failure_passes_where_nothing_fails_closed(opened):
    opened(PRE)
    answer = opened(PRE, engine_for=broken)
    assert (answer.stdout, answer.exit_code) == (b"", 0)
    assert "the disk is gone" in answer.stderr
    assert "ghp_a1B2" not in answer.stderr


def test_a_failure_is_refused_where_something_failed_closed_when_last_seen(closed):
    answer = closed(PRE, engine_for=broken)
    assert denies(answer)
    assert b"p0 fails closed" in answer.stdout
    assert b"ghp_a1B2" not in answer.stdout
    answer = closed(PAYLOADS["Stop"], engine_for=broken)
    assert (answer.stdout, answer.exit_code) == (b"", 0)


def test_what_failed_closed_is_forgotten_when_it_does_no_more(closed):
    closed.plugins = []
    closed(PRE)
    assert closed(PRE, engine_for=broken).stdout == b""


def test_projects_do_not_share_what_fails_closed(closed, tmp_path):
    other = tmp_path / "other"
    other.mkdir()
    closed.environ["CLAUDE_PROJECT_DIR"] = str(other)
    assert closed(PRE, engine_for=broken).stdout == b""


def test_a_hook_in_monitor_mode_fails_nothing_closed(tmp_path):
    caller = Caller(tmp_path, plugin(guard=True, mode="monitor"))
    caller(PRE)
    assert caller(PRE, engine_for=broken).stdout == b""


@pytest.mark.parametrize(
    "error",
    [SystemExit(3), RecursionError(), MemoryError(), OSError(28, "No space left"), ValueError("\ud800")],
)
def test_any_exception_is_answered(closed, error):
    def engine_for(place):
        raise error

    assert denies(closed(PRE, engine_for=engine_for))


@pytest.mark.parametrize("here", [False, True])
def test_where_no_state_can_be_kept_hooks_are_asked_all_the_same(tmp_path, here):
    (tmp_path / "state").write_text("a file in its place")
    assert denies(Caller(tmp_path, plugin(answer=Deny("no")))(PRE, here=here))
    asked = plugin(guard=True)
    answer = Caller(tmp_path, asked)(PRE, here=here)
    assert answer.stdout == b""
    assert len(asked.seen) == 1
    assert "cannot be stored" in answer.stderr
    assert f"{tmp_path / 'state'}" in answer.stderr
    assert "Not a directory" in answer.stderr


def test_where_no_state_can_be_kept_a_process_knows_what_it_did(tmp_path):
    (tmp_path / "state").write_text("a file in its place")
    caller = Caller(tmp_path, plugin("on_session_start", answer=Block("closed")))
    engine = caller.engine(None)
    caller(PAYLOADS["SessionStart"], engine_for=lambda place: engine)
    prompt = {**PAYLOADS["UserPromptSubmit"], "session_id": PAYLOADS["SessionStart"]["session_id"]}
    assert b"closed" in caller(prompt, engine_for=lambda place: engine).stdout
    (tmp_path / "state").unlink()  # and stores it as soon as it can
    caller(prompt, engine_for=lambda place: engine)
    assert b"closed" in caller(prompt).stdout


@pytest.mark.parametrize("here", [False, True])
@pytest.mark.parametrize("unreadable", ["disk", "file", "link", "fifo", "foreign"])
def test_where_the_state_cannot_be_read_it_may_hold_a_refusal(tmp_path, unreadable, here):
    """So what fails closed refuses, and nothing is allowed that the agent would ask its user for."""
    if os.name == "nt":
        pytest.skip("neither FIFOs nor owners here")

    def ask(*plugins, **more):
        return Caller(tmp_path, *plugins)({**PRE, "tool_use_id": os.urandom(4).hex()}, here=here, **more)

    ask(plugin())
    (path,) = (tmp_path / "state/runs").rglob("session.jsonl")
    kept = path.rename(tmp_path / "kept")
    if unreadable == "disk":
        (tmp_path / "state").rename(tmp_path / "aside")
        (tmp_path / "state").symlink_to(tmp_path / "disk" / "state")
    elif unreadable == "file":
        path.mkdir()
    elif unreadable == "link":
        path.symlink_to(kept)
    elif unreadable == "fifo":
        os.mkfifo(path)
    elif os.geteuid() == 0:
        os.chown(path.parent, 1234, -1)
    else:
        pytest.skip("only root gives files away")
    asked = plugin(answer=Deny("no"))
    answer = ask(asked)
    assert denies(answer)
    assert len(asked.seen) == 1
    assert answer.stderr.count("what is known of this session cannot be read") == 1
    assert str(tmp_path / "state") in answer.stderr
    assert "HOOKTURN_STATE_DIR" in answer.stderr
    assert ask(plugin(answer=Allow("x"))).stdout == b""
    assert b"prefix" in ask(plugin(answer=Rewrite(args={"command": "prefix"}))).stdout
    strict = plugin(guard=True)
    answer = ask(strict)
    assert denies(answer)
    assert not strict.seen
    assert answer.stderr.count("\n") == 1
    caller = Caller(tmp_path, plugin("post_tool_execution", answer=Inject("a word")))
    assert b"a word" in caller(PAYLOADS["PostToolUse"], here=here).stdout
    caller = Caller(tmp_path, plugin("post_turn", guard=True), plugin("pre_turn", guard=True))
    assert caller(PAYLOADS["Stop"], here=here).exit_code == 0


def test_what_can_be_read_again_counts_in_a_process_that_could_not(tmp_path):
    caller = Caller(tmp_path, plugin("on_session_start", answer=Block("closed")))
    start, prompt = PAYLOADS["SessionStart"], PAYLOADS["UserPromptSubmit"]
    prompt = {**prompt, "session_id": start["session_id"]}
    caller(start)
    (path,) = (tmp_path / "state/runs").rglob("session.jsonl")
    caller.plugins = [("guard", plugin("on_user_prompt_submit", guard=True))]
    engine = caller.engine(None)
    kept = path.rename(tmp_path / "kept")
    path.mkdir()
    for _ in range(2):
        assert b"fails closed" in caller(prompt, engine_for=lambda place: engine).stdout
    path.rmdir()
    kept.rename(path)
    for _ in range(2):
        answer = caller(prompt, engine_for=lambda place: engine)
        assert b"closed" in answer.stdout
        assert b"fails closed" not in answer.stdout
        assert answer.stderr == ""


def test_a_state_that_can_be_read_only_is_known_and_stored_again_later(tmp_path, monkeypatch):
    caller = Caller(tmp_path, plugin("on_session_start", answer=Block("closed")))
    start = PAYLOADS["SessionStart"]
    prompt = {**PAYLOADS["UserPromptSubmit"], "session_id": start["session_id"]}
    caller(start)
    caller.plugins = [("guard", plugin("on_user_prompt_submit", guard=True))]
    engine = caller.engine(None)
    real = journal.open_private

    def read_only(path, flags=os.O_RDONLY, **more):
        if flags & (os.O_WRONLY | os.O_RDWR):
            raise OSError(errno.EROFS, "Read-only file system", str(path))
        return real(path, flags, **more)

    with monkeypatch.context() as folder:
        folder.setattr(journal, "open_private", read_only)
        answer = caller(prompt, engine_for=lambda place: engine)
        assert b"closed" in answer.stdout
        assert b"fails closed" not in answer.stdout
        assert "session.lock: Read-only file system" in answer.stderr
    for _ in range(2):
        answer = caller(prompt, engine_for=lambda place: engine)
        assert b"closed" in answer.stdout
        assert answer.stderr == ""
    (path,) = (tmp_path / "state/runs").rglob("session.jsonl")
    assert all(json.loads(line) for line in path.read_text().splitlines())


def test_sub_agents_are_asked_about_where_their_origin_cannot_be_noted(tmp_path):
    (tmp_path / "state").write_text("a file in its place")
    engine = Caller(tmp_path).engine(None)
    moment = Moment(session_id="s2", parent_id="s1", agent_id="s2")
    assert kin.placed(engine, "opencode", moment).session_id == "s1"


def test_a_memory_folder_that_cannot_be_written_changes_no_answer(tmp_path):
    (tmp_path / "memory").write_text("a file in its place")
    caller = Caller(tmp_path, plugin(answer=Deny("no")))
    assert denies(caller(PRE))
    assert caller(b"").stdout == b""


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no FIFOs here")
@pytest.mark.parametrize(
    "which", ["memory/*.json", "memory/*/claude-code/PreToolUse", "state/open/claude-code.json"]
)
def test_nobody_waits_for_a_fifo_in_the_place_of_a_file(tmp_path, which):
    caller = Caller(tmp_path, plugin(answer=Deny("no")))
    caller(PAYLOADS["SessionStart"])
    caller(PRE)
    (path,) = tmp_path.glob(which)
    path.unlink()
    os.mkfifo(path)
    caller(PAYLOADS["SessionStart"], timeout=100)
    assert denies(caller({**PRE, "tool_use_id": "toolu_2"}, timeout=100))


def test_a_damaged_session_state_is_put_aside(tmp_path):
    caller = Caller(tmp_path, plugin(answer=Deny("no")))
    caller(PRE)
    (path,) = (tmp_path / "state/runs").rglob("session.jsonl")
    path.write_bytes(b'{"turns": \n')
    assert denies(caller({**PRE, "tool_use_id": "toolu_2"}))
    assert path.with_suffix(".damaged").exists()


def test_calls_that_could_not_be_answered_are_noted_for_doctor(closed):
    closed(b"null")
    closed(PRE, engine_for=broken)
    lines = [json.loads(line) for line in (closed.memory / memory.TROUBLE).read_text().splitlines()]
    assert [line["event"] for line in lines] == ["unknown", "PreToolUse"]
    assert {line["agent"] for line in lines} == {"claude-code"}
    assert (closed.memory / memory.TROUBLE).stat().st_mode & 0o777 == 0o600


def test_who_answered_is_known_whatever_the_folder_is_called(closed, monkeypatch):
    monkeypatch.setattr(sys, "prefix", "/opt/caf\udce9")  # a name that is no UTF-8
    closed(PAYLOADS["Stop"])
    assert memory.answering(closed.memory, str(closed.folder)) == {"claude-code": memory.installation()}


def test_the_last_call_of_each_event_is_known(closed):
    closed(PAYLOADS["Stop"])
    calls = memory.last_calls(closed.memory, str(closed.folder))
    assert calls.keys() == {"claude-code"}
    assert calls["claude-code"].keys() == {"PreToolUse", "Stop"}
    assert time.time() - calls["claude-code"]["Stop"] < 60


def test_an_unknown_agent_is_no_refusal(opened):
    answer = opened(PRE, agent="clod-code")
    assert (answer.stdout, answer.exit_code) == (b"", 0)
    assert "claude-code" in answer.stderr


# -- time -------------------------------------------------------------------------------------------


def sleeping(event):
    time.sleep(30)


@pytest.mark.parametrize("here", [True, False])
def test_a_slow_hook_is_left_behind_in_time(tmp_path, here):
    caller = Caller(tmp_path, plugin(answer=sleeping))
    begun = time.monotonic()
    answer = caller(PRE, timeout=2, here=here)
    assert time.monotonic() - begun < 10
    assert answer.stdout == b""


def test_a_slow_guard_denies_in_time(tmp_path):
    caller = Caller(tmp_path, plugin(answer=sleeping, guard=True))
    assert denies(caller(PRE, timeout=2))


@pytest.mark.parametrize("here", [True, False])
def test_a_guard_behind_a_slow_hook_is_still_asked(tmp_path, here):
    guard = plugin(guard=True, answer=Deny("guarded"))
    caller = Caller(tmp_path, plugin(answer=sleeping), guard)
    assert b"guarded" in caller(PRE, timeout=4, here=here).stdout


def test_whoever_is_behind_slow_hooks_is_still_asked_where_the_thread_is_left_behind(tmp_path):
    """One slow hook after another: each costs its own time only, and the call goes on to its end."""
    stuck = threading.Event()

    def waits(event):
        stuck.wait(20)
        return Deny("too late")

    slow = [plugin(answer=waits, timeout=0.2) for _ in range(2)]
    ends = plugin("post_tool_execution")
    caller = Caller(tmp_path, *slow, plugin(answer=Deny("by the third")), ends)
    try:
        answer = caller(PRE, timeout=20, here=True)
    finally:
        stuck.set()
    assert b"by the third" in answer.stdout and denies(answer)
    assert [event.status for event in ends.seen] == ["denied"]
    again = caller(PRE, here=True)
    assert b"by the third" in again.stdout, "the decision is stored"
    assert len(ends.seen) == 1


@pytest.mark.parametrize("kind", ["opened", "closed"])
def test_whatever_hangs_is_answered_by_policy(kind, request):
    """An engine that never comes: a lock that is held, a disk that does not answer."""
    caller = request.getfixturevalue(kind)
    caller(PRE)
    free = threading.Event()
    try:
        answer = caller(PRE, engine_for=lambda place: free.wait() and caller.engine(place), timeout=1)
    finally:
        free.set()
    assert denies(answer) == (kind == "closed")
    assert "within the 1 s" in answer.stderr


def test_late_answers_by_policy(closed, opened):
    more = {"environ": {}, "cwd": str(closed.folder), "memory": closed.memory}
    assert denies(bridge.late("claude-code", json.dumps(PRE).encode(), **more))
    assert bridge.late("claude-code", json.dumps(PAYLOADS["Stop"]).encode(), **more).stdout == b""


# -- who calls --------------------------------------------------------------------------------------

COPILOT = {
    "hook_event_name": "PreToolUse",
    "session_id": "s",
    "timestamp": "2026-11-30T18:00:00.000Z",
    "cwd": "/",
    "tool_name": "Bash",
    "tool_input": {"command": "ls"},
}


class OtherAgent:
    """Stands for the translator of another agent."""

    NOTHING = b"{}"
    entry = True

    def __init__(self, entry):
        self.entry = entry
        for name in (
            "NAME",
            "PROJECT_VARIABLE",
            "PID_VARIABLE",
            "TOOLS",
            "EVENTS",
            "UNKNOWN",
            "event_name",
            "read",
            "write",
            "refusal",
        ):
            setattr(self, name, getattr(claude, name))

    def has_entry(self, event, project, environ):
        return self.entry and event == "PreToolUse"


@pytest.fixture
def other(monkeypatch):
    def put(entry):
        made = OtherAgent(entry)
        real = bridge.hooks_of
        monkeypatch.setattr(bridge, "hooks_of", lambda name: made if name == "copilot" else real(name))
        return made

    return put


def test_copilot_calls_claude_codes_entry_and_has_one_of_its_own(tmp_path, other):
    other(True)
    hook = plugin(answer=Deny("no"))
    caller = Caller(tmp_path, hook)
    caller.environ = {"COPILOT_CLI": "1", "CLAUDE_PROJECT_DIR": "/"}
    answer = caller(COPILOT)
    assert (answer.stdout, answer.exit_code, hook.seen) == (b"{}", 0, [])
    assert "copilot" in answer.stderr


COPILOTS = {
    ".github/hooks/hookturn.json": {"hooks": {"postToolUse": [{"type": "command", "bash": "hookturn bridge copilot --event x"}]}},
    ".github/copilot/settings.json": {"hooks": {"Stop": [{"hooks": [{"command": "hookturn bridge copilot"}]}]}},
    ".github/hooks/mine.json": {"hooks": {"preToolUse": [{"bash": "./mine.sh"}]}},
    ".github/hooks/off.json": {
        "disableAllHooks": True,
        "hooks": {"preToolUse": [{"bash": "hookturn bridge copilot"}]},
    },
    ".github/hooks/some.json": {"hooks": {"preToolUse": [{"matcher": "edit", "bash": "hookturn bridge copilot"}]}},
}  # fmt: skip


@pytest.mark.parametrize(
    ("event", "silent"),
    [("PreToolUse", False), ("PostToolUse", True), ("Stop", True), ("UserPromptSubmit", False)],
)
def test_copilots_own_entry_of_one_event_silences_no_other(tmp_path, event, silent):
    """Each event is asked for by itself: a guard is not left out because another event has an entry."""
    for path, content in COPILOTS.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(json.dumps(content))
    caller = Caller(tmp_path)
    caller.environ = {"COPILOT_CLI": "1", "CLAUDE_PROJECT_DIR": str(tmp_path), "HOME": "/nowhere"}
    answer = caller({**PAYLOADS[event], "timestamp": "2026-11-30T18:00:00.000Z"})
    assert ("has one of its own" in answer.stderr) is silent


def test_copilot_without_an_entry_of_its_own_is_answered_as_copilot(tmp_path, other):
    other(False)
    hook = plugin(answer=Deny("no"))
    caller = Caller(tmp_path, hook)
    caller.environ = {"COPILOT_CLI": "1"}
    assert denies(caller(COPILOT))
    assert hook.seen[0].host == "copilot"


def test_one_agent_inside_the_others_shell_is_not_mistaken(tmp_path, other):
    other(True)
    hook = plugin(answer=Deny("no"))
    caller = Caller(tmp_path, hook)
    caller.environ = {"COPILOT_CLI": "1", "CLAUDECODE": "1"}
    assert denies(caller(PRE))  # its payload is Claude Code's
    caller.environ = {"CLAUDECODE": "1"}
    assert denies(caller(COPILOT))  # nobody says that it is Copilot


@pytest.mark.parametrize(
    ("path", "text", "has"),
    [
        (
            ".claude/settings.json",
            '{"hooks": {"Stop": [{"hooks": [{"command": "hookturn bridge claude-code"}]}]}}',
            True,
        ),
        (
            ".claude/settings.local.json",
            '{"hooks": {"Stop": [{"matcher": "*", "hooks": [{"command": "/x/python -m hookturn bridge claude-code"}]}]}}',
            True,
        ),
        (
            ".claude/settings.json",
            '{"hooks": {"PreToolUse": [{"hooks": [{"command": "hookturn bridge claude-code"}]}]}}',
            False,
        ),
        (
            ".claude/settings.json",
            '{"hooks": {"Stop": [{"matcher": "x", "hooks": [{"command": "hookturn bridge claude-code"}]}]}}',
            False,
        ),
        (".claude/settings.json", '"/x/python -m hookturn bridge claude-code"', False),
        (".claude/settings.json", "hookturn bridge {", False),
        (".claude/settings.json", '{"permissions": {}}', False),
        ("other.json", "hookturn bridge claude-code", False),
    ],
)
def test_an_entry_of_ours_is_found_in_the_settings(tmp_path, path, text, has):
    place = tmp_path / path
    place.parent.mkdir(exist_ok=True)
    place.write_text(text)
    assert claude.has_entry("Stop", str(tmp_path), {"HOME": "/nowhere"}) is has
    assert claude.has_entry("Stop", "/nowhere", {"HOME": str(tmp_path)}) is (
        has and path.endswith("settings.json")
    )


# -- sessions that were left ------------------------------------------------------------------------


def test_a_session_whose_agent_died_is_ended_by_the_next_one(tmp_path, monkeypatch):
    from hookturn import platform

    ends, posts = plugin("on_session_end"), plugin("post_tool_execution")
    caller = Caller(tmp_path, ends, posts)
    monkeypatch.setattr(platform, "born", lambda pid: {11: "a", 22: "b"}.get(pid, ""))
    caller({**PAYLOADS["SessionStart"], "session_id": "killed"}, caller_pid=11)
    caller({**PRE, "session_id": "killed"})
    caller({**PAYLOADS["SessionStart"], "session_id": "alive"}, caller_pid=22)
    monkeypatch.setattr(platform, "born", lambda pid: {11: "another process", 22: "b"}.get(pid, ""))
    caller({**PAYLOADS["SessionStart"], "session_id": "third"}, caller_pid=22)
    assert [(event.session_id, event.reason) for event in ends.seen] == [("killed", "unknown")]
    assert [(event.session_id, event.status) for event in posts.seen] == [("killed", "unknown")]
    caller({**PAYLOADS["SessionStart"], "session_id": "fourth"})
    assert len(ends.seen) == 1


def test_a_session_without_a_call_for_long_is_ended(tmp_path):
    ends = plugin("on_session_end")
    caller = Caller(tmp_path, ends)
    caller({**PAYLOADS["SessionStart"], "session_id": "left"})
    engine = caller.engine(None)

    def closed(**about):
        session = SteppedSession(engine, session_id="another")
        return engine.drive(session.steps(open_sessions.close_stale(engine, "claude-code", **about)))

    assert closed() == []
    assert closed(idle=-1, but="left") == []
    assert closed(idle=-1) == ["left"]
    assert closed(idle=-1) == []
    assert [event.reason for event in ends.seen] == ["unknown"]


def test_claude_codes_own_process_number_counts(tmp_path):
    caller = Caller(tmp_path, plugin("on_session_end"))
    caller.environ["CLAUDE_PID"] = "1"
    caller(PAYLOADS["SessionStart"])
    (path,) = (tmp_path / "state/open").glob("*.json")
    (about,) = json.loads(path.read_text()).values()
    assert about["pid"] == 1


def test_a_session_that_begins_sweeps_away_those_of_long_ago(tmp_path):
    caller = Caller(tmp_path)
    for name in ("old", "open"):
        caller({**PAYLOADS["SessionStart"], "session_id": name})
    caller({**PAYLOADS["SessionEnd"], "session_id": "old"})
    for path in (tmp_path / "state/runs").glob("*/*"):
        os.utime(path, times=(time.time() - 40 * 86_400,) * 2)
    caller({**PAYLOADS["SessionStart"], "session_id": "young"})
    left = {path.name for path in (tmp_path / "state/runs").iterdir()}
    assert "old" in left, "the last sweep was just now"
    (tmp_path / "state/swept").unlink()
    caller({**PAYLOADS["SessionStart"], "session_id": "next"})
    left = {path.name for path in (tmp_path / "state/runs").iterdir()}
    assert left == {"open", "young", "next"}


def test_the_list_of_open_sessions_is_bounded(tmp_path, monkeypatch):
    monkeypatch.setattr(open_sessions, "MOST_KNOWN", 3)
    caller = Caller(tmp_path)
    for number in range(6):
        caller({**PAYLOADS["SessionStart"], "session_id": f"s{number}"})
    (path,) = (tmp_path / "state/open").glob("*.json")
    assert sorted(json.loads(path.read_text())) == ["s3", "s4", "s5"]


@pytest.mark.parametrize("here", [False, True])
def test_a_call_whose_begin_was_forgotten_is_decided_anew(tmp_path, monkeypatch, here):
    """On a full disk: a parallel call of this process ends when another process could store something."""
    caller = Caller(tmp_path)
    caller(PRE)
    first = threading.Event()

    def hook(event):
        if event.call_id == "parallel" and not first.is_set():
            first.set()
            with monkeypatch.context() as room:
                room.setattr(journal, "write_all", real)
                Caller(tmp_path)({**PRE, "tool_use_id": "elsewhere"})  # with an engine of its own
            caller({**PRE, "tool_use_id": "here"}, engine_for=lambda place: engine)
        return Deny("no") if event.call_id == "parallel" else None

    asked = plugin(answer=hook)
    caller.plugins = [("p", asked)]
    engine = caller.engine(None)
    real = journal.write_all

    def full(fd, data):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(journal, "write_all", full)
    answer = caller({**PRE, "tool_use_id": "parallel"}, here=here, engine_for=lambda place: engine)
    assert denies(answer)
    assert [event.call_id for event in asked.seen] == ["parallel", "here", "parallel"]


def test_what_failed_closed_is_strict_where_it_cannot_be_looked_up(closed):
    (path,) = closed.memory.glob("*.json")
    path.unlink()
    path.mkdir()
    assert denies(closed(PRE, engine_for=broken))


def test_a_policy_needs_no_file(closed, monkeypatch):
    monkeypatch.setitem(sys.modules, "hookturn.redact", None)  # it cannot be imported any more
    secret = "AKIA" + "Z" * 16

    def engine_for(place):
        raise OSError(secret)

    answer = closed(PRE, engine_for=engine_for)
    assert denies(answer)
    assert secret not in answer.stdout.decode() + answer.stderr
