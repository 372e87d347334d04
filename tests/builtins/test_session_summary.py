"""The session-summary plugin in a real engine: what its reports tell, and what no session can do to it."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn import Block, Continue, Deny, Engine, Inject, Reply, Rewrite, Warn, events, hookimpl
from hookturn.paths import config_root, safe_component
from hookturn_builtins.session_summary import Config, plugin
from hookturn_builtins.session_summary.collect import Kept, collect
from hookturn_builtins.session_summary.write import render

USAGE = {"input_tokens": 100, "output_tokens": 20, "cache_read_tokens": 7, "cache_write_tokens": 3}
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


def engine(project: Path, *plugins: object, config: Config | None = None, **options: object) -> Engine:
    made = Engine(plugins=plugins, project_dir=project, **options)  # type: ignore[arg-type]
    made.register(plugin(config), "session-summary", layer="builtin")
    return made


def settings(**values: object) -> Config:
    made = Config()
    for name, value in values.items():
        setattr(made, name, value)
    made.validate()
    return made


def folder(project: Path, session: str = "s1") -> Path:
    return project / ".hookturn" / "sessions" / safe_component(session)


def report(project: Path, session: str = "s1") -> dict:
    return json.loads((folder(project, session) / "report.json").read_text("ascii"))


class Guarded:
    hookturn_name = "guarded"

    @hookimpl
    def pre_tool_execution(self, event):
        if "rm" in event.command:
            return Deny("nothing is removed here")
        if "ls" in event.command:
            return [Rewrite(command="ls -l"), Warn("rewritten")]
        return None

    @hookimpl
    def on_user_prompt_submit(self, event):
        return Inject("hint")


def play(made: Engine, session_id: str = "s1", turns: int = 1, cwd: str = "/p") -> None:
    with made.session(session_id=session_id, agent="coder", cwd=cwd, model="m-0") as session:
        for _ in range(turns):
            session.submit("do it, please")
            with session.turn() as turn:
                turn.model_response(text="I look first.", usage=USAGE, model="m-1")
                turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "a")
                turn.call_tool("bash", {"command": "rm -rf /"}, execute=lambda **_: "a")
                turn.call_tool("write", {"file_path": "/p/a.txt", "content": "x"}, execute=lambda **_: "ok")
                turn.call_tool("bash", {"command": "boom"}, execute=lambda **_: 1 / 0)
                turn.model_response(text="It is done.", usage=USAGE)


def test_a_report_tells_what_was_asked_done_changed_denied_and_failed(tmp_path: Path) -> None:
    with engine(tmp_path, Guarded()) as made:
        play(made)
    found = report(tmp_path)
    assert (found["session_id"], found["agent"], found["cwd"]) == ("s1", "coder", "/p")
    assert (found["models"], found["reason"], found["notes"]) == (["m-0", "m-1"], "complete", [])
    assert found["ended"] >= found["started"] > "2020"
    totals = found["totals"]
    assert {name: totals[name] for name in ("turns", "sub_turns", "prompts", "tool_calls", "denied", "failed", "changed_files", "rewritten", "injected",
                                            "warnings", "hook_failures", "input_tokens", "output_tokens", "cache_read_tokens", "cache_write_tokens")} == {
        "turns": 1, "sub_turns": 0, "prompts": 1, "tool_calls": 4, "denied": 1, "failed": 1, "changed_files": 1, "rewritten": 1, "injected": 1,
        "warnings": 1, "hook_failures": 0, "input_tokens": 200, "output_tokens": 40, "cache_read_tokens": 14, "cache_write_tokens": 6,
    }  # fmt: skip
    assert 0 < totals["hook_seconds"] < 10 and 0 < totals["turn_seconds"] < 10
    [asked] = found["asked"]
    assert (asked["text"], asked["turn"], asked["stopped_by"]) == ("do it, please", 1, "")
    assert found["changed"] == [{"path": "/p/a.txt", "times": 1}]
    [denied] = found["denied"]
    assert (denied["what"], denied["detail"], denied["by"], denied["reason"]) == (
        "bash", "rm -rf /", "guarded", "nothing is removed here",
    )  # fmt: skip
    [failed] = found["failed"]
    assert (failed["what"], failed["detail"], failed["by"]) == ("bash", "boom", "error")
    assert "ZeroDivisionError" in failed["reason"]
    [turn] = found["turns"]
    assert (turn["turn"], turn["answer"], turn["asked"]) == (1, "It is done.", ["do it, please"])
    assert (turn["tool_calls"], turn["denied"], turn["failed"], turn["complete"]) == (4, 1, 1, True)
    calls = [(entry["what"], entry["status"]) for entry in turn["entries"] if entry["type"] == "call"]
    assert calls == [("ls -l", "ok"), ("rm -rf /", "denied"), ("/p/a.txt", "ok"), ("boom", "error")]
    [hook] = found["hooks"]
    assert hook == {
        "hook": "guarded",
        "answers": {"Inject": 1, "Rewrite": 1, "Warn": 1, "Deny": 1},
        "failures": 0,
        "would": 0,
    }
    tools = {row["tool"]: row for row in found["tools"]}
    assert tools["bash"]["by_status"] == {"ok": 1, "denied": 1, "error": 1}


def test_the_other_forms_tell_the_same(tmp_path: Path) -> None:
    with engine(tmp_path, Guarded()) as made:
        play(made)
    for form in ("md", "html"):
        text = (folder(tmp_path) / f"report.{form}").read_text("utf-8")
        for part in (
            "do it, please",
            "It is done.",
            "rm -rf /",
            "nothing is removed here",
            "boom",
            "a.txt",
            "guarded",
            "m-1",
        ):
            assert part in text, (form, part)  # fmt: skip


def test_files_are_private(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        play(made)
    assert sorted(path.name for path in folder(tmp_path).iterdir()) == [
        "journal.jsonl", "report.html", "report.json", "report.md",
    ]  # fmt: skip
    for path in folder(tmp_path).iterdir():
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    for path in (folder(tmp_path), folder(tmp_path).parent, tmp_path / ".hookturn"):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    assert (tmp_path / ".hookturn" / ".gitignore").is_file()


def test_only_the_wanted_forms_are_written(tmp_path: Path) -> None:
    with engine(tmp_path, config=settings(formats=["json"])) as made:
        play(made)
    assert sorted(path.name for path in folder(tmp_path).iterdir()) == ["journal.jsonl", "report.json"]


def everything(project: Path) -> str:
    return "".join(
        path.read_text("utf-8", "surrogateescape") for path in project.rglob("*") if path.is_file()
    )


@pytest.mark.parametrize("padding", [0, 250, 385, 399, 3980, 3999])
def test_secrets_are_taken_out_before_anything_is_stored(tmp_path: Path, padding: int) -> None:
    """Also where a text is cut in the middle of one."""
    secret = f"{'x ' * (padding // 2)}{TOKEN} {'y ' * 3000}"

    class Chatty:
        hookturn_name = "chatty"

        @hookimpl
        def pre_tool_execution(self, event):
            return [Warn(f"seen {TOKEN}"), Deny(f"no {TOKEN}")] if event.command == "deny" else None

    with engine(tmp_path, Chatty()) as made, made.session(session_id="s1") as session:
        session.submit(secret)
        with session.turn() as turn:
            turn.model_response(text=secret)
            turn.call_tool("bash", {"command": f"curl -H {secret}"}, execute=lambda **_: 1)
            turn.call_tool("save", {"content": secret, "password": "hunter2-hunter2"}, execute=lambda **_: 1)
            turn.call_tool("read", {"path": f"/x/{TOKEN}"}, execute=lambda **_: 1)
            turn.call_tool("bash", {"command": "deny"}, execute=lambda **_: 1)
            turn.end_tool("c9", tool="bash", args={"command": "x"}, status="error", error=secret)
            session.fail("Broken", secret)
            turn.complete(secret)
    stored = everything(tmp_path)
    assert TOKEN[:20] not in stored and "hunter2" not in stored
    assert "[REDACTED:" in stored


def test_what_a_hook_took_out_is_not_kept(tmp_path: Path) -> None:
    class Discreet:
        @hookimpl
        def on_message_received(self, event):
            return Rewrite(event.text.replace("Alice", "someone"))

        @hookimpl
        def on_model_response(self, event):
            return Rewrite(event.text.replace("Alice", "someone"))

        @hookimpl
        def on_turn_complete(self, event):
            return Block("not for you")

    with engine(tmp_path, Discreet()) as made, made.session(session_id="s1") as session:
        session.submit("ask Alice")
        with session.turn() as turn:
            turn.model_response(text="Alice answers")
            turn.complete("Alice says no")
    assert "Alice" not in everything(tmp_path)
    assert report(tmp_path)["denied"][0]["what"] == "on_turn_complete"


def test_without_texts_nothing_of_the_payload_is_kept(tmp_path: Path) -> None:
    with engine(tmp_path, config=settings(texts=False)) as made:
        play(made)
    stored = everything(tmp_path)
    for part in ("do it, please", "It is done.", "boom", "division by zero"):
        assert part not in stored
    assert report(tmp_path)["totals"]["tool_calls"] == 4


def test_long_texts_are_cut_with_a_note(tmp_path: Path) -> None:
    with engine(tmp_path) as made, made.session(session_id="s1") as session:
        session.submit("A" * 1_000_000)
        with session.turn() as turn:
            turn.call_tool("bash", {"command": "B" * 1_000_000}, execute=lambda **_: "")
            turn.call_tool("odd", {str(n): "C" * 10_000 for n in range(1000)}, execute=lambda **_: "")
    found = report(tmp_path)
    assert found["asked"][0]["text"] == "A" * 4000 + "... [996,000 more characters]"
    assert "B" * 400 + "... [999,600 more characters]" in json.dumps(found)
    assert sum(path.stat().st_size for path in folder(tmp_path).iterdir()) < 100_000


def test_stopped_prompts_sub_agents_continuations_and_failures(tmp_path: Path) -> None:
    class Hooks:
        hookturn_name = "hooks"

        @hookimpl
        def on_message_received(self, event):
            return Reply("Hello yourself.") if event.text == "hello" else None

        @hookimpl
        def on_user_prompt_submit(self, event):
            return Block("not today") if event.prompt == "stop" else None

        @hookimpl
        def on_turn_complete(self, event):
            return Continue("once more") if event.continued == 0 and not event.agent_id else None

        @hookimpl
        def post_tool_execution(self, event):
            raise ValueError("broken hook")

    with engine(tmp_path, Hooks()) as made, made.session(session_id="s1", agent="coder") as session:
        session.submit("hello")
        session.submit("stop")
        session.submit("go")
        with session.turn() as turn:
            turn.model_response(text="", usage=USAGE)
            with turn.subagent("reviewer", agent_id="r1") as sub:
                sub.model_response(text="fine", usage=USAGE)
                sub.call_tool("bash", {"command": "ls"}, execute=lambda **_: "")
            assert turn.complete("one").again
            turn.complete("two")
        session.fail("RateLimit", "slow down")
    found = report(tmp_path)
    assert [(item["text"], item["stopped_by"], item["turn"]) for item in found["asked"]] == [
        ("hello", "hooks", 0), ("stop", "hooks", 0), ("go", "", 1),
    ]  # fmt: skip
    assert [(row["what"], row["reason"]) for row in found["denied"]] == [
        ("on_user_prompt_submit", "not today")
    ]
    main, sub = found["turns"]
    assert (main["answer"], main["continued"], main["input_tokens"]) == ("two", 1, 100)
    assert (sub["agent"], sub["parent_agent"], sub["answer"], sub["input_tokens"], sub["complete"]) == (
        "reviewer", "coder", "fine", 100, True,
    )  # fmt: skip
    assert (found["totals"]["turns"], found["totals"]["sub_turns"], found["totals"]["input_tokens"]) == (
        1,
        1,
        200,
    )
    assert [(row["what"], row["detail"], row["reason"]) for row in found["failed"]] == [
        ("hook hooks", "ValueError", "broken hook"), ("model", "RateLimit", "slow down"),
    ]  # fmt: skip
    assert found["hooks"][0]["failures"] == 1 == found["totals"]["hook_failures"]


def test_a_resumed_session_goes_on_in_the_same_report(tmp_path: Path) -> None:
    for _ in range(2):
        with engine(tmp_path) as made:
            play(made, turns=2)
    found = report(tmp_path)
    assert found["totals"]["turns"] == 4
    assert [turn["turn"] for turn in found["turns"]] == [1, 2, 1, 2]
    assert [turn["asked"] for turn in found["turns"]] == [["do it, please"]] * 4


def test_events_of_many_short_processes_are_one_session(tmp_path: Path) -> None:
    """A bridge without a resident process: an engine for each event."""
    told = [
        events.SessionStart(session_id="s1", agent="coder"),
        events.UserPromptSubmit(session_id="s1", prompt="go"),
        events.TurnStart(session_id="s1", turn=1),
        events.PostToolExecution(session_id="s1", turn=1, tool="bash", args={"command": "ls"}, duration=0.5),
        events.TurnComplete(
            session_id="s1", turn=1, usage=USAGE, duration=2.5, edited_files=["/a"], text="ok"
        ),
        events.SessionEnd(session_id="s1", turn=1),
    ]
    for event in told:
        with engine(tmp_path) as made:
            made.fire(event)
    found = report(tmp_path)
    [turn] = found["turns"]
    assert (turn["asked"], turn["answer"], turn["seconds"], turn["tool_calls"]) == (["go"], "ok", 2.5, 1)
    assert (found["totals"]["input_tokens"], found["changed"]) == (100, [{"path": "/a", "times": 1}])


PROCESS = """
import sys
from hookturn import Engine
from hookturn_builtins.session_summary import plugin
with Engine(project_dir=sys.argv[1]) as engine:
    engine.register(plugin(), "session-summary", layer="builtin")
    with engine.session(session_id=sys.argv[2]) as session:
        for number in range(int(sys.argv[3])):
            with session.turn() as turn:
                turn.call_tool("bash", {"command": f"echo {number}"}, execute=lambda **_: "")
            print(number, flush=True)
"""


def start(project: Path, session: str, turns: int, **options: object) -> subprocess.Popen[bytes]:
    words = [sys.executable, "-c", PROCESS, str(project), session, str(turns)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, **options)  # type: ignore[call-overload,no-any-return]


def test_sessions_do_not_disturb_each_other(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        threads = [threading.Thread(target=play, args=(made, f"t{number}", 5)) for number in range(5)]
        children = [start(tmp_path, f"p{number}", 10) for number in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    for child in children:
        child.communicate()
    assert [child.returncode for child in children] == [0, 0]
    for number in range(5):
        totals = report(tmp_path, f"t{number}")["totals"]
        assert (totals["turns"], totals["tool_calls"]) == (5, 20)
    for number in range(2):
        assert report(tmp_path, f"p{number}")["totals"]["tool_calls"] == 10


def test_processes_append_to_one_session_line_by_line(tmp_path: Path) -> None:
    children = [start(tmp_path, "s1", 50) for _ in range(3)]
    for child in children:
        child.communicate()
    found = collect(str(folder(tmp_path) / "journal.jsonl"))
    assert (found.calls, found.bad_lines) == (150, 0)


def test_a_killed_process_leaves_a_report_on_demand(tmp_path: Path) -> None:
    for _ in range(2):
        child = start(tmp_path, "s1", 10**9)
        assert child.stdout is not None
        for _ in range(20):
            child.stdout.readline()
        child.kill()
        child.communicate()
    assert not (folder(tmp_path) / "report.json").exists()
    done = hookturn("report", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["totals"]["tool_calls"] >= 40 and found["ended"] is None
    assert "still running, or its process was killed" in found["notes"][0]


def test_many_sessions_that_never_end_keep_few_files_open(tmp_path: Path) -> None:
    def descriptors() -> int:
        return len(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else 0

    before = descriptors()  # other tests of this process may have left some
    with engine(tmp_path) as made:
        for round_ in range(2):
            for number in range(200):
                made.fire(events.TurnStart(session_id=f"s{number}", turn=round_ + 1))
        assert descriptors() - before < 100
    assert collect(str(folder(tmp_path, "s0") / "journal.jsonl")).main_turns == 2


@pytest.mark.parametrize(
    "session", ["../../x", "a\nb", "x" * 5000, "\ud800", "a\0b", "CON", "..", "/etc/x", "<b>&\"'"]
)
def test_hostile_session_ids_are_harmless(tmp_path: Path, session: str) -> None:
    project = tmp_path / "a" / "b" / "p"
    project.mkdir(parents=True)
    with engine(project) as made:
        play(made, session)
    assert report(project, session)["session_id"] == session
    assert [path.name for path in tmp_path.rglob("*") if path.is_dir()] == [
        "a", "b", "p", ".hookturn", "sessions", safe_component(session),
    ]  # fmt: skip


def test_an_empty_session_id_is_harmless(tmp_path: Path) -> None:
    with engine(tmp_path) as made:
        out = made.fire(events.TurnStart(session_id=""))
    assert out.failures == ()
    assert len(list((tmp_path / ".hookturn" / "sessions").iterdir())) == 1


def test_a_dry_run_writes_only_below_its_own_folder(tmp_path: Path) -> None:
    project, output = tmp_path / "p", tmp_path / "out"
    project.mkdir()
    with engine(project, dry_run=True, output_dir=output) as made:
        play(made)
    assert list(project.iterdir()) == []
    assert json.loads((output / "sessions" / "s1" / "report.json").read_text())["totals"]["turns"] == 1


# -- when it cannot be written ------------------------------------------------------------------------


def test_a_file_in_the_way_is_said_once_and_stops_nothing(tmp_path: Path, hook_log) -> None:
    (tmp_path / ".hookturn").mkdir()
    (tmp_path / ".hookturn" / "sessions").write_text("in the way")
    with engine(tmp_path) as made:
        sessions = [made.session(session_id=f"s{number}") for number in range(2)]
        for session in sessions:
            with session:
                assert session.submit("go").goes_on
                with session.turn() as turn:
                    assert turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "").status == "ok"
    warned = [text for session in sessions for text in session.warnings]
    assert len(warned) == 1 and "cannot be written" in warned[0]
    assert len(hook_log.of("session-summary")) == 1


FULL = """
import os, resource, sys
from hookturn import Engine
from hookturn_builtins.session_summary import plugin
with Engine(project_dir=sys.argv[1]) as engine:
    engine.register(plugin(), "session-summary", layer="builtin")
    warned = []
    with engine.session(session_id="s1") as session:
        with session.turn() as turn:
            for number in range(40):
                if number == 10:  # a limit that falls into a line: the write takes a part of it
                    size = os.path.getsize(sys.argv[1] + "/.hookturn/sessions/s1/journal.jsonl")
                    resource.setrlimit(resource.RLIMIT_FSIZE, (size + 100, resource.RLIM_INFINITY))
                if number == 30:
                    resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY,) * 2)
                done = turn.call_tool("bash", {"command": f"echo {number} " + "x" * 100}, execute=lambda **_: "")
                warned += done.warnings
print(len(warned))
"""


def test_a_full_disk_costs_events_and_nothing_else(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FULL, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "1\n"), done.stderr
    found = report(tmp_path)
    calls = found["totals"]["tool_calls"]
    assert calls == 20
    [note, broken] = found["notes"]
    assert note == f"{40 - calls} events could not be recorded."
    assert broken == "1 line of the journal could not be read."


def test_links_are_not_followed(tmp_path: Path, hook_log) -> None:
    project, victim = tmp_path / "p", tmp_path / "victim"
    victim.mkdir()
    (project / ".hookturn").mkdir(parents=True)
    (project / ".hookturn" / "sessions").symlink_to(victim)
    with engine(project) as made:
        play(made)
    assert list(victim.iterdir()) == []
    assert len(hook_log.of("session-summary")) == 1


def test_a_folder_that_goes_away_is_made_again(tmp_path: Path) -> None:
    from shutil import rmtree

    with engine(tmp_path) as made, made.session(session_id="s1") as session, session.turn() as turn:
        turn.call_tool("bash", {"command": "one"}, execute=lambda **_: "")
        rmtree(tmp_path / ".hookturn")
        turn.call_tool("bash", {"command": "two"}, execute=lambda **_: "")
    [called] = [entry for entry in report(tmp_path)["turns"][0]["entries"] if entry["type"] == "call"]
    assert called["what"] == "two"


def test_a_journal_has_a_limit(tmp_path: Path) -> None:
    for _ in range(2):
        with (
            engine(tmp_path, config=settings(max_bytes=10_000)) as made,
            made.session(session_id="s1") as session,
            session.turn() as turn,
        ):
            for _ in range(200):
                turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "")
    found = report(tmp_path)
    assert 10 < found["totals"]["tool_calls"] < 200
    assert found["ended"] and "was full at" in found["notes"][0]
    assert (folder(tmp_path) / "journal.jsonl").stat().st_size < 11_000


# -- journals that are cut, changed, or made by somebody else --------------------------------------------


@pytest.fixture(scope="module")
def journal(tmp_path_factory) -> bytes:
    project = tmp_path_factory.mktemp("journal")
    with engine(project, Guarded()) as made:
        play(made, turns=2)
    return (folder(project) / "journal.jsonl").read_bytes()


def read(path: Path, data: bytes):
    path.write_bytes(data)
    found = collect(str(path))
    for form in ("md", "json", "html"):
        render(found, form).encode("utf-8")
    return found


@given(share=st.floats(0, 1))
def test_a_journal_cut_anywhere_can_be_read(journal: bytes, tmp_path_factory, share: float) -> None:
    cut = journal[: int(len(journal) * share)]
    found = read(tmp_path_factory.getbasetemp() / "cut.jsonl", cut)
    assert found.bad_lines <= 1
    assert found.calls >= cut.count(b'"e":"tool"') - 1


VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters()),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=6,
)
FIELDS = (
    "time", "turn", "agent_id", "micros", "lost", "agent", "host", "cwd", "source", "model", "provider", "text", "usage", "tool", "kind", "status",
    "seconds", "paths", "what", "error", "by", "reason", "type", "message", "phase", "hook", "parent_agent", "session_id",
)  # fmt: skip
KINDS = ("session", "start", "message", "prompt", "turn", "model", "tool", "done", "error", "said", "end", "full", "other")  # fmt: skip
SAID = ("timing", "tool", "decision", "by", "reason", "hooks", "rewrites", "replied", "injected", "warnings", "continue", "overruled")  # fmt: skip
LINES = st.fixed_dictionaries(
    {"e": st.sampled_from(KINDS)},
    optional={
        **dict.fromkeys(FIELDS, VALUES),
        "time": st.floats(0, 4e9) | VALUES,
        "said": st.dictionaries(
            st.sampled_from(SAID), st.sampled_from(["deny", "block", "ask"]) | VALUES, max_size=6
        ),
    },
)


@given(lines=st.lists(LINES | VALUES, max_size=8))
def test_a_journal_may_hold_anything(tmp_path_factory, lines: list) -> None:
    data = b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    read(tmp_path_factory.getbasetemp() / "odd.jsonl", data)


@pytest.mark.parametrize(
    "data",
    [b"", b"\n\n", b"\0" * 5000, b"[" * 100_000, b"\xff\xfe{}", b'{"e":"tool","seconds":' + b"9" * 9000 + b"}",
     b'{"e":"end","time":1e308}', b'{"e":"turn","time":253402300800}'],
)  # fmt: skip
def test_garbage_is_no_report_and_no_crash(tmp_path: Path, data: bytes) -> None:
    assert read(tmp_path / "j.jsonl", data).calls == 0


@given(st.integers(1, 5), st.integers(0, 30))
def test_kept_lists_keep_both_ends(each: int, number: int) -> None:
    kept: Kept[int] = Kept(each)
    for item in range(number):
        kept.add(item)
    assert kept.count == number and bool(kept) == (number > 0)
    assert [*kept.first, *kept.last] == list(kept)
    assert len(list(kept)) + kept.left_out == number
    if number > 2 * each:
        assert kept.first == list(range(each)) and kept.last == list(range(number - each, number))
    else:
        assert kept.first == list(range(number)) and kept.last == []


@pytest.mark.parametrize(("turns", "calls"), [(1, 10_000), (400, 25)])
def test_long_sessions_are_folded_and_their_figures_are_whole(tmp_path: Path, turns: int, calls: int) -> None:
    lines = [{"e": "start", "time": 1000.0, "agent": "coder", "cwd": "/p"}]
    for number in range(turns):
        lines.append({"e": "prompt", "time": 1000.0 + number, "text": "go " * 200})
        lines.append({"e": "turn", "time": 1000.0 + number, "turn": number + 1})
        for call in range(calls):
            lines.append(
                {"e": "tool", "time": 1000.0 + number + call / calls, "turn": number + 1, "tool": "bash", "kind": "bash",
                 "status": "error" if call % 10 == 0 else "ok", "seconds": 0.001, "what": f"echo {number} {call}"}
            )  # fmt: skip
        lines.append(
            {
                "e": "done",
                "time": 1001.0 + number,
                "turn": number + 1,
                "seconds": 1.0,
                "usage": [10, 1, 0, 0],
                "text": "ok",
            }
        )
    path = tmp_path / "j.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    found = collect(str(path))
    assert (found.calls, found.main_turns, found.tokens, found.failed.count) == (
        turns * calls, turns, [turns * 10, turns, 0, 0], turns * -(-calls // 10),
    )  # fmt: skip
    assert sum(column.tokens[0] for column in found.columns) == turns * 10
    assert sum(column.seconds for column in found.columns) == pytest.approx(turns)
    assert max(len(found.columns) / 120, len(found.marks) / 3000) <= 1
    assert len({column.turns for column in found.columns[:-1]}) <= 1  # so that their heights can be compared
    sizes = {form: len(render(found, form)) for form in ("md", "json", "html")}
    assert max(sizes.values()) < 3_000_000, sizes
    page = render(found, "html")
    assert "left out here" in page
    assert f"{turns * calls:,}" in page


# -- Markdown ------------------------------------------------------------------------------------------


@given(st.text(st.characters() | st.sampled_from("`|\\ \n<")))
def test_no_text_leaves_its_code_span(text: str) -> None:
    """The fence at both ends is longer than every run of backticks inside, and table cells stay one cell."""
    import re

    from hookturn_builtins.session_summary.render_markdown import span

    shown = span(text)
    fence = re.match("`+", shown).group()
    assert shown.endswith(fence) and "\n" not in shown
    inside = shown[len(fence) : -len(fence)]
    assert fence not in re.findall("`+", inside)
    assert inside and inside[0] != "`" and inside[-1] != "`"
    assert not re.search(r"(?<!\\)\|", inside)


@given(st.text(st.characters() | st.sampled_from("`~\n\r")))
def test_no_text_leaves_its_code_block(text: str) -> None:
    import re

    from hookturn_builtins.session_summary.render_markdown import block

    first, *inside, last, after = block(text)
    assert first == last + "text" and after == ""
    assert all(len(run) < len(last) for line in inside for run in re.findall("`+", line))


# -- settings ------------------------------------------------------------------------------------------


def test_it_is_off_unless_it_is_named(tmp_path: Path) -> None:
    with Engine.from_project(tmp_path, builtins=True) as made:
        play(made)
    assert not (tmp_path / ".hookturn" / "sessions").exists()
    config_root().mkdir(parents=True)
    (config_root() / "hookturn.yaml").write_text("plugins:\n  session-summary: {formats: [md]}\n")
    with Engine.from_project(tmp_path) as made:
        play(made)
    assert (folder(tmp_path) / "report.md").exists() and not (folder(tmp_path) / "report.html").exists()


@pytest.mark.parametrize("values", [{"max_chars": 99}, {"max_bytes": 100}])
def test_settings_that_leave_nothing_are_refused(values: dict) -> None:
    with pytest.raises(ValueError, match=next(iter(values))):
        settings(**values)


# -- the command ---------------------------------------------------------------------------------------


def hookturn(*words: str, cwd: Path, **env: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "hookturn", *words],
        capture_output=True,
        text=True,
        encoding="utf-8",
        cwd=cwd,
        check=False,
        env={**os.environ, **env},
    )


@pytest.fixture
def recorded(tmp_path: Path) -> Path:
    with engine(tmp_path, Guarded(), config=settings(formats=[])) as made:
        play(made, "old-1")
        play(made, "old-2")
        play(made, "\x1b[31mnew")
    for age, session in enumerate(("\x1b[31mnew", "old-2", "old-1")):
        path = folder(tmp_path, session) / "journal.jsonl"
        os.utime(path, (10_000 - age, 10_000 - age))
    return tmp_path


def test_the_command_writes_the_newest_sessions_report(recorded: Path) -> None:
    done = hookturn("report", cwd=recorded)
    assert (done.returncode, done.stderr) == (0, "")
    assert "1 turn, 4 tool calls, 1 denied, 1 failed, 1 file changed" in done.stdout
    assert "rm -rf /" in done.stdout and "guarded" in done.stdout and "\x1b" not in done.stdout
    assert len(list(folder(recorded, "\x1b[31mnew").iterdir())) == 4


@pytest.mark.parametrize(
    "session", ["old-1", "old-1 by its folder", "\x1b[31mnew", safe_component("\x1b[31mnew")[:12]]
)
def test_a_session_is_named_by_id_beginning_or_folder(recorded: Path, session: str) -> None:
    word = str(folder(recorded, "old-1")) if session.endswith("folder") else session
    found = json.loads(hookturn("report", word, "--json", cwd=recorded).stdout)
    assert found["session_id"] == ("old-1" if session.startswith("old") else "\x1b[31mnew")
    assert [os.path.basename(path) for path in found["files"]] == ["report.md", "report.json", "report.html"]


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["old"], "2 sessions in"),
        (["nothing"], "there is no session 'nothing'"),
        (["no/such/folder"], "no/such/folder is no folder; name a session's own folder, or its id"),
        ([".hookturn/sessions"], ".hookturn/sessions has no journal, so it is no session's folder"),
        (["--output", "x.txt"], "name the --format"),
        (["--output", "no/such/folder/x.md"], "cannot be written"),
        (["--open", "--format", "md"], "which is no md file"),
    ],
)
def test_the_command_says_what_is_wrong(recorded: Path, words: list[str], part: str) -> None:
    done = hookturn("report", *words, cwd=recorded)
    assert done.returncode == 1 and part in done.stderr and "Traceback" not in done.stderr


def test_of_several_folders_the_newest_is_told(recorded: Path) -> None:
    words = [str(folder(recorded, session)) for session in ("old-1", "old-2")]
    done = hookturn("report", *words, "--json", cwd=recorded)
    assert json.loads(done.stdout)["session_id"] == "old-2"
    assert done.stderr == f"hookturn: the newest of 2: {words[1]}\n"


def test_a_path_counts_where_no_session_was_recorded(tmp_path: Path, recorded: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    done = hookturn("report", "./gone/sessions/s1", cwd=elsewhere)
    assert (done.returncode, done.stderr) == (
        1, "hookturn: ./gone/sessions/s1 is no folder; name a session's own folder, or its id\n"
    )  # fmt: skip


def test_events_that_were_tried_by_hand_make_no_report(tmp_path: Path) -> None:
    from hookturn_builtins.places import TRIED

    with engine(tmp_path) as made:
        made.fire(events.PostToolExecution(tool="bash", args={}, host=TRIED))
    assert not (tmp_path / ".hookturn" / "sessions").exists()


def test_the_command_says_where_nothing_was_recorded(tmp_path: Path) -> None:
    done = hookturn("report", cwd=tmp_path)
    assert done.returncode == 1 and "session-summary must be on" in done.stderr


@pytest.mark.parametrize(
    ("form", "begins"), [("md", "# Session `old-1`"), ("json", "{"), ("html", "<!DOCTYPE html>")]
)
def test_a_form_is_printed_and_nothing_is_written(recorded: Path, form: str, begins: str) -> None:
    done = hookturn("report", "old-1", "--format", form, cwd=recorded)
    assert done.returncode == 0 and done.stdout.startswith(begins)
    assert [path.name for path in folder(recorded, "old-1").iterdir()] == ["journal.jsonl"]


def test_a_report_is_written_where_one_wants_it(recorded: Path) -> None:
    for words, begins in (
        (["--output", "x.html"], "<!DOCTYPE"),
        (["--output", "y", "--format", "md"], "# Session"),
    ):
        assert hookturn("report", "old-1", *words, cwd=recorded).returncode == 0
        assert (recorded / words[1]).read_text("utf-8").startswith(begins)
    assert [path.name for path in folder(recorded, "old-1").iterdir()] == ["journal.jsonl"]


def test_the_page_is_opened_in_the_browser(recorded: Path) -> None:
    browser = recorded / "browser"
    browser.write_text(f'#!/bin/sh\necho "$1" > "{recorded}/opened"\n')
    browser.chmod(0o700)
    assert hookturn("report", "old-1", "--open", cwd=recorded, BROWSER=f"{browser} %s").returncode == 0
    opened = (recorded / "opened").read_text().strip()
    assert opened == (folder(recorded, "old-1") / "report.html").as_uri()
    failing = hookturn("report", "old-1", "--open", cwd=recorded, BROWSER="/bin/false %s", PATH="")
    assert failing.returncode == 1 and "no browser" in failing.stderr


def test_the_report_of_a_read_only_project_can_be_printed(recorded: Path) -> None:
    (folder(recorded, "old-1") / "report.md").mkdir()  # in the way, for root as well
    done = hookturn("report", "old-1", cwd=recorded)
    assert done.returncode == 1 and "--format" in done.stderr
    assert hookturn("report", "old-1", "--format", "md", cwd=recorded).returncode == 0
