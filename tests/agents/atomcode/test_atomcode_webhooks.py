"""``[[webhooks]]`` and ``[[async_webhooks]]`` of hooks.toml against real servers (tables A4.6 and A7)."""

from __future__ import annotations

import importlib.util
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from hookturn import events, paths


def _shared():
    path = Path(__file__).parents[2] / "runners" / "conftest.py"
    spec = importlib.util.spec_from_file_location("atomcode_webhook_servers", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_servers = _shared()
reply, serve = _servers.reply, _servers.serve


@pytest.fixture
def hooked(atom):
    """Write a hooks.toml with one webhook, in a user's configuration that allows the loopback."""
    path = paths.config_root() / "hookturn.yaml"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text('webhooks: {allow: ["127.0.0.1"]}\n', encoding="utf-8")

    def write(server, trigger="pre_tool", more="", extra="", **fields):
        lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in fields.items())
        atom.toml(
            f'[[webhooks]]\nname = "tell"\ntrigger = "{trigger}"\nurl = "{server.url}"\n{lines}{more}\n{extra}\n'
        )
        return atom

    return write


def test_a7_request(serve, hooked):
    server = serve()
    hooked(
        server,
        more='[webhooks.headers]\nAuthorization = "Bearer x1y2z3"\nContent-Type = "application/json"\n',
    ).pre()
    (request,) = server.requests
    assert request.method == "POST"
    assert request.headers["authorization"] == "Bearer x1y2z3"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["x-atomcode-hook"] == "tell"
    assert request.headers["x-atomcode-version"]
    assert "x1y2z3" not in request.body.decode()


CTX = {"session_id": "s-1", "turn_number": 3}
CALL = {"tool_name": "bash", "tool_args": '{"command":"ls"}'}
EMPTY = {"tool_name": "", "tool_args": ""}


def bodies(folder):
    """Return trigger -> (event, ``event`` that is sent, the rest of the body)."""
    common = {"session_id": "s-1", "turn": 3, "cwd": folder}
    tool = {"tool": "bash", "args": {"command": "ls"}, "call_id": "c1"}
    where = {"working_dir": folder}
    session = {"session_id": "s-1", **where}
    turn = {"turn_number": 3, **session, "phase": "idle", "has_file_context": False}
    result = {**CALL, "result": "done", "success": True, "duration_ms": 250}
    return {
        "pre_tool": (events.PreToolExecution(**tool, **common), "pre_tool_execution", {"context": {**CALL, **where, **CTX}}),
        "after_tool": (
            events.PostToolExecution(**tool, result="done", duration=0.25, **common),
            "post_tool_execution",
            {"hook_context": {**CALL, **where, **CTX}, "result_context": result},
        ),
        "post_turn": (
            events.PostTurn(text="bye", **common),
            "post_turn",
            {"context": {**EMPTY, **where, **CTX}, "turn_result": "Responded"},
        ),
        "system_prompt": (events.SystemPrompt(parts=["x"], **common), "system_prompt", {}),
        "session_start": (
            events.SessionStart(model="m", provider="p", **common),
            "on_session_start",
            {"context": {**session, "model_name": "m", "provider_name": "p"}},
        ),
        "session_end": (
            events.SessionEnd(**common),
            "on_session_end",
            {"context": {**session, "model_name": "", "provider_name": ""}},
        ),
        "error": (
            events.Error(error_type="api_error", message="bad", phase="model", **common),
            "on_error",
            {"context": {"error_type": "api_error", "error_message": "bad", "phase": "model", "turn_number": 3}},
        ),
        "turn_start": (events.TurnStart(**common), "on_turn_start", {"context": turn}),
        "turn_complete": (
            events.TurnComplete(
                text="bye", usage={"input_tokens": 5, "output_tokens": 2}, tool_calls=[{"tool": "bash"}], duration=1.5,
                edited_files=["/a"], **common,
            ),
            "on_turn_complete",
            {
                "context": {
                    "turn_number": 3, "result_type": "natural", "tokens_used": 7, "tool_calls": 1, "duration_ms": 1500,
                    "truncated": False, "edited_files": ["/a"],
                }
            },
        ),
        "tool_call_start": (
            events.ToolCallStart(**tool, **common),
            "on_tool_call_start",
            {"context": {**CALL, "call_id": "c1", "turn_number": 3}},
        ),
        "model_response": (
            events.ModelResponse(text="hi", **common),
            "on_model_response",
            {"response": "hi", "turn_context": turn},
        ),
        "message": (
            events.MessageReceived(text="hi", attachments=["/a"], time=0.0, **common),
            "on_message_received",
            {
                "context": {
                    "content": "hi", "session_id": "s-1", "attached_files": ["/a"], "timestamp": "1970-01-01T00:00:00.000Z"
                }
            },
        ),
    }  # fmt: skip


@pytest.mark.parametrize("trigger", list(bodies("")))
def test_a7_body(serve, hooked, trigger):
    server = serve()
    atom = hooked(server, trigger)
    event, name, body = bodies(str(atom.folder))[trigger]
    atom.engine().fire(event)
    (request,) = server.wait(1)
    assert request.json == {"hook_name": "tell", "trigger": trigger, "event": name, **body}


A46 = {
    "ok": ({"result": "ok"}, None, "", []),
    "warning": ({"result": "warning", "message": "careful"}, None, "", ["careful"]),
    "deny": ({"result": "deny", "message": "no"}, "deny", "no", []),
    "without result": ({"status": "fine"}, None, "", []),
    "empty": (b"", None, "", []),
    "HTML": (b"<html>fine</html>", None, "", []),
}


@pytest.mark.parametrize("row", A46)
def test_a46_answers(serve, hooked, row):
    answer, decision, reason, warnings = A46[row]
    server = serve(reply(200, answer, kind="text/html" if row == "HTML" else "application/json"))
    out = hooked(server).pre()
    assert (out.decision, out.reason, list(out.warnings), out.failures) == (decision, reason, warnings, ())


def test_a46_modify(serve, hooked):
    server = serve(reply(200, {"result": "modify", "modified_content": '{"command":"pwd"}'}))
    assert hooked(server).pre().event.args == {"command": "pwd"}


def test_a46_unknown_result_is_named(serve, hooked):
    server = serve(reply(200, {"result": "denny"}))
    (failure,) = hooked(server).pre().failures
    assert "unknown result 'denny' (did you mean 'deny'?)" in failure.message


def test_a46_a_server_that_fails_three_times_lets_the_tool_run(serve, hooked):
    server = serve(reply(500, b"broken"))
    out = hooked(server).pre()
    assert out.decision is None
    assert "500" in out.failures[0].message
    assert len(server.requests) == 3


def test_a17_a_client_error_is_not_tried_again(serve, hooked):
    server = serve(reply(404))
    assert hooked(server).pre().decision is None
    assert len(server.requests) == 1


def test_a46_defaults(hooked, serve):
    from hookturn.project.assemble import Survey

    server = serve()
    atom = hooked(server)
    (entry,) = [entry for file in Survey(atom.folder).foreign for entry in file.entries]
    assert entry.run == {"url": server.url, "method": "POST", "headers": {}, "retries": 2, "timeout": 10}
    assert entry.enabled


def test_a46_disabled(hooked, serve):
    server = serve()
    assert hooked(server, enabled=False).states()["tell"][0] == "disabled"


@pytest.mark.parametrize("result", ["ok", "modify"])
@pytest.mark.parametrize("key", ["modified_content", "message"])
def test_a7_system_prompt(serve, hooked, result, key):
    server = serve(reply(200, {"result": result, key: "be kind"}))
    out = hooked(server, "system_prompt").engine().fire(events.SystemPrompt(parts=[], session_id="s-1"))
    assert list(out.injected) == ["be kind"]


def test_a3_deny_works_at_the_start_of_a_tool_call(serve, hooked):
    server = serve(reply(200, {"result": "deny", "message": "no"}))
    out = (
        hooked(server, "tool_call_start")
        .engine()
        .fire(events.ToolCallStart(tool="bash", args={}, session_id="s-1"))
    )
    assert (out.decision, out.reason) == ("deny", "no")


def test_a2_a_message_can_be_rewritten(serve, hooked):
    server = serve(reply(200, {"result": "modify", "modified_content": "hello"}))
    out = hooked(server, "message").engine().fire(events.MessageReceived(text="x", session_id="s-1"))
    assert out.event.text == "hello"


@pytest.mark.parametrize("trigger", ["after_tool", "error", "turn_start", "model_response"])
def test_a7_a_refusal_elsewhere_has_no_effect_and_is_told(serve, hooked, trigger):
    server = serve(reply(200, {"result": "deny", "message": "no"}))
    atom = hooked(server, trigger)
    out = atom.engine().fire(bodies(str(atom.folder))[trigger][0])
    assert out.decision is None
    assert "has no effect" in out.warnings[0]


def test_a19_triggers_are_exact_words(serve, hooked):
    atom = hooked(serve(), "before_tool_call_start")
    assert "unknown trigger 'before_tool_call_start'" in atom.problems()[0]


def test_a19_substring_as_a_setting(serve, hooked):
    server = serve()
    atom = hooked(server, "before_tool_call_start")
    path = paths.config_root() / "hookturn.yaml"
    path.write_text('webhooks: {allow: ["127.0.0.1"]}\ndialects: {atomcode: {triggers: substring}}\n')
    engine = atom.engine()
    atom.pre(engine=engine)
    engine.fire(events.ToolCallStart(tool="bash", args={}, session_id="s-1"))
    assert [request.json["event"] for request in server.requests] == [
        "pre_tool_execution",
        "on_tool_call_start",
    ]


def test_a_loopback_url_needs_the_users_own_word(serve, hooked):
    server = serve()
    atom = hooked(server)
    (paths.config_root() / "hookturn.yaml").unlink()
    assert len(atom.problems()) == 1
    assert server.requests == []


BAD = {
    'name = "b"\ntrigger = "error"': "the entry has no 'url'",
    'name = "b"\nurl = "https://example.net"': "the entry has no 'trigger'",
    'name = "b"\ntrigger = "eror"\nurl = "https://example.net"': "unknown trigger 'eror' (did you mean 'error'?)",
    'name = "b"\ntrigger = "error"\nurl = "https://example.net"\nretries = -1': "expected further tries from 0 to 20, got -1",
    'name = "b"\ntrigger = "error"\nurl = "https://example.net"\nmethod = "PSOT"': "unknown method 'PSOT' (did you mean 'POST'?)",
    'name = "b"\ntrigger = "error"\nurl = "https://example.net"\nheaders = {a = 1}': "expected names with texts",
    'name = "b"\ntrigger = "user_prompt_submit"\nurl = "https://example.net"': "AtomCode has no webhook there",
    'name = "tell"\ntrigger = "error"\nurl = "https://example.net"': "an entry named 'tell' stands in line 1 already",
    'name = "b"\ntrigger = "error"\nurl = "file:///etc/passwd"': "",
}


@pytest.mark.parametrize("entry", BAD)
def test_a7_a_bad_webhook_costs_only_itself(serve, hooked, entry):
    server = serve(reply(200, {"result": "deny", "message": "no"}))
    atom = hooked(server, extra=f"[[webhooks]]\n{entry}")
    made = atom.assemble()
    (problem,) = made.problems
    assert BAD[entry] in str(problem)
    assert atom.pre(engine=made.engine).reason == "no"


# -- batches ----------------------------------------------------------------------------------------


def batched(server, trigger="", **fields):
    given = {"batch_size": 2, "flush_interval_ms": 60_000, **fields}
    lines = "".join(f"{key} = {json.dumps(value)}\n" for key, value in given.items())
    trigger = f'trigger = "{trigger}"\n' if trigger else ""
    headers = '[async_webhooks.headers]\nAuthorization = "Bearer x1y2z3"\n'
    return f'[[async_webhooks]]\nname = "tell"\nurl = "{server.url}"\n{trigger}{lines}{headers}'


def test_a7_a_full_batch_is_sent_with_its_headers_and_without_them_in_the_body(serve, hooked):
    server = serve()
    atom = hooked(server, "tool_call_start", extra=batched(server))
    engine = atom.engine()
    for number in range(3):
        engine.fire(events.ToolCallStart(tool="bash", args={"n": number}, session_id="s-1", time=1.5))
    (request,) = server.wait(1)
    assert request.headers["authorization"] == "Bearer x1y2z3"
    assert request.headers["x-atomcode-webhook"] == "tell"
    assert request.headers["x-atomcode-batch-size"] == "2"
    body = request.json
    assert "x1y2z3" not in request.body.decode()
    assert (body["url"], body["method"], len(body["events"])) == (server.url, "POST", 2)
    first = body["events"][0]
    assert {key: first[key] for key in ("event", "hook_name", "trigger", "timestamp_ms")} == {
        "event": "on_tool_call_start", "hook_name": "tell", "trigger": "tool_call_start", "timestamp_ms": 1500,
    }  # fmt: skip
    assert first["context"]["hook_name"] == "tell"
    assert json.loads(first["context"]["context"]["tool_args"]) == {"n": 0}


def test_a6_the_interval_sends_what_there_is(serve, hooked):
    server = serve()
    atom = hooked(server, "turn_start", extra=batched(server, batch_size=100, flush_interval_ms=50))
    atom.engine().fire(events.TurnStart(session_id="s-1"))
    assert len(server.wait(1)[0].json["events"]) == 1


def test_a6_the_end_of_the_session_sends_the_rest(serve, hooked):
    server = serve()
    atom = hooked(server, "turn_start", extra=batched(server, batch_size=100))
    with atom.engine().session() as session, session.turn():
        pass
    assert len(server.wait(1)[0].json["events"]) == 1


def test_a6_closing_sends_the_rest_and_nothing_twice(serve, hooked):
    server = serve()
    atom = hooked(server, "turn_start,turn_complete", extra=batched(server, batch_size=100))
    engine = atom.engine()
    engine.fire(events.TurnStart(session_id="s-1"))
    engine.fire(events.TurnComplete(text="", session_id="s-1"))
    engine.close()
    (request,) = server.wait(1)
    assert [row["event"] for row in request.json["events"]] == ["on_turn_start", "on_turn_complete"]


KILLED = """
import os, signal, sys
from hookturn import events
from hookturn.project.assemble import assemble

engine = assemble(sys.argv[1], log=False).engine
for number in range(2):
    engine.fire(events.TurnStart(session_id=f"killed-{number}", phase="key ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"))
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a6_what_a_killed_process_collected_is_sent_by_the_next(serve, hooked):
    server = serve()
    atom = hooked(server, "turn_start", extra=batched(server, batch_size=3))
    atom.engine()  # trusts the file
    done = subprocess.run([sys.executable, "-c", KILLED, str(atom.folder)], capture_output=True)
    assert done.returncode == -signal.SIGKILL, done.stderr
    (kept,) = paths.state_root().glob("projects/*/webhooks/batches/*")
    assert kept.stat().st_mode & 0o777 == 0o600
    assert b"ghp_a1B2c3" not in kept.read_bytes()
    with kept.open("ab") as file:
        file.write(b'{"event": "cut o')
    engine = atom.engine()
    engine.fire(events.TurnStart(session_id="next"))
    (request,) = server.wait(1)
    sessions = [row["context"]["context"]["session_id"] for row in request.json["events"]]
    assert sessions == ["killed-0", "killed-1", "next"]
    engine.close()
    assert not list(paths.state_root().glob("projects/*/webhooks/batches/*"))


def test_a6_what_a_living_process_collects_is_left_to_it(serve, hooked):
    server = serve()
    atom = hooked(server, "turn_start", extra=batched(server, batch_size=3))
    first, second = atom.engine(), atom.engine()
    for number in range(2):
        first.fire(events.TurnStart(session_id=f"first-{number}"))
    second.fire(events.TurnStart(session_id="second"))
    second.close()
    first.close()
    assert sorted(len(request.json["events"]) for request in server.wait(2)) == [1, 2]


def refuse(project_state, *names):
    """Let the state folder have no room: files stand where folders must be made."""
    for name in names:
        path = project_state / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")


def names_of(requests):
    return [row["context"]["context"]["session_id"] for request in requests for row in request.json["events"]]


@pytest.mark.parametrize("blocked", ["webhooks/spool", "webhooks"])
def test_a6_what_the_spool_refuses_stays_and_is_sent_when_it_can_be_stored(serve, hooked, blocked):
    server = serve()
    atom = hooked(server, "turn_start", extra=batched(server, batch_size=2))
    state = Path(paths.project_state(atom.folder))
    refuse(state, blocked)
    engine = atom.engine()
    outs = [engine.fire(events.TurnStart(session_id=f"s-{number}")) for number in range(5)]
    # told once, and not at each event: a hook that fails again and again would be set aside
    assert [bool(out.failures) for out in outs] == [False, True, False, False, False]
    assert "could not be stored" in outs[1].failures[0].message
    assert not server.requests
    (state / blocked).unlink()
    engine.fire(events.SessionEnd(session_id="s-0"))
    assert names_of(server.wait(3)) == [f"s-{number}" for number in range(5)]
    for number in range(5, 7):
        engine.fire(events.TurnStart(session_id=f"s-{number}"))
    assert names_of(server.wait(4))[5:] == ["s-5", "s-6"]
    engine.close()
    assert not list(state.glob("webhooks/batches/*"))
    assert len(server.requests) == 4


def test_a6_what_the_spool_still_refuses_at_the_end_is_sent_by_the_next(serve, hooked):
    server = serve()
    atom = hooked(server, "turn_start", extra=batched(server, batch_size=2))
    state = Path(paths.project_state(atom.folder))
    refuse(state, "webhooks/spool")
    engine = atom.engine()
    for number in range(3):
        engine.fire(events.TurnStart(session_id=f"s-{number}"))
    engine.close()
    (state / "webhooks/spool").unlink()
    engine = atom.engine()
    engine.fire(events.TurnStart(session_id="next"))
    assert names_of(server.wait(2)) == ["s-0", "s-1", "s-2", "next"]
    engine.close()
    assert not list(state.glob("webhooks/batches/*"))


def test_a6_what_the_spool_refused_is_offered_again_after_a_while(serve, hooked, monkeypatch):
    monkeypatch.setattr("hookturn.agents.atomcode.batches.AGAIN", 0.1)
    server = serve()
    atom = hooked(server, "turn_start", extra=batched(server, batch_size=1, flush_interval_ms=50))
    state = Path(paths.project_state(atom.folder))
    refuse(state, "webhooks/spool")
    engine = atom.engine()
    engine.fire(events.TurnStart(session_id="s-0"))
    (state / "webhooks/spool").unlink()
    assert names_of(server.wait(1)) == ["s-0"]
    engine.close()


def test_a6_without_a_thread_the_interval_begins_with_the_next_event(serve, hooked, monkeypatch):
    server = serve()
    atom = hooked(server, "turn_start", extra=batched(server, batch_size=100, flush_interval_ms=50))
    engine = atom.engine()

    def no_thread(timer):
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr("hookturn.agents.atomcode.batches.Timer.start", no_thread)
        assert not engine.fire(events.TurnStart(session_id="s-0")).failures
    engine.fire(events.TurnStart(session_id="s-1"))
    assert names_of(server.wait(1)) == ["s-0", "s-1"]
    engine.close()


def test_a6_a_disk_that_keeps_nothing_costs_no_event(serve, hooked, monkeypatch):
    server = serve()
    atom = hooked(server, "turn_start", extra=batched(server, batch_size=2))
    monkeypatch.setattr("hookturn.agents.atomcode.kept.open_private", no_room)
    engine = atom.engine()
    for number in range(2):
        engine.fire(events.TurnStart(session_id=f"s-{number}"))
    assert len(server.wait(1)[0].json["events"]) == 2


LEFT = """
import os, signal, sys
from hookturn.agents.atomcode.kept import Kept

Kept(sys.argv[1], "key").add([b'{"number": %s}' % sys.argv[2].encode()])
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a6_what_there_is_no_room_to_take_over_is_left_to_others(tmp_path, monkeypatch):
    from hookturn.agents.atomcode import kept

    for number in "12":
        subprocess.run([sys.executable, "-c", LEFT, str(tmp_path), number], check=False)
    write, written = kept.write_all, []

    def full_after_one(fd, data):
        if written:
            no_room()
        written.append(data)
        write(fd, data)

    with monkeypatch.context() as disk:
        disk.setattr(kept, "write_all", full_after_one)
        first = kept.Kept(str(tmp_path), "key")
        found = first.adopt()
    assert len(found) == 1
    found += kept.Kept(str(tmp_path), "key").adopt()
    assert sorted(row["number"] for row in found) == [1, 2]
    first.forget()


def no_room(*given, **more):
    raise OSError(28, "No space left on device")


def test_a6_an_async_webhook_with_a_trigger_needs_no_twin(serve, atom, hooked):
    server = serve()
    hooked(server)
    atom.toml(batched(server, "turn_start", batch_size=1))
    atom.engine().fire(events.TurnStart(session_id="s-1"))
    assert len(server.wait(1)) == 1


def test_a6_an_async_webhook_without_a_trigger_and_a_twin_is_told(serve, atom, hooked):
    server = serve()
    hooked(server)
    atom.toml(batched(server))
    assert "there is no [[webhooks]] named 'tell', and the entry has no trigger" in atom.problems()[0]


def test_a7_a_batched_webhook_refuses_nothing_which_is_told(serve, hooked):
    server = serve(reply(200, {"result": "deny", "message": "no"}))
    atom = hooked(server, extra=batched(server, batch_size=1))
    made = atom.assemble()
    assert ["it cannot refuse anything" in problem.cause for problem in made.problems] == [True]
    assert atom.pre(engine=made.engine).decision is None


def test_a_dry_event_is_not_sent(serve, hooked):
    server = serve()
    atom = hooked(server, extra=batched(server, batch_size=1))
    atom.pre(engine=atom.assemble().engine, dry_run=True)
    assert server.requests == []
