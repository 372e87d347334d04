"""``bridge atomcode``: both generations' payloads, what hooks say to them, and what AtomCode reads of the answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent.parent))

from agent_calls import Hooks

from hookturn import Allow, Ask, Block, Continue, Deny, Engine, Inject, Reply, Rewrite, Warn
from hookturn.agents import bridge
from hookturn.agents.atomcode import hooks as atomcode


def decision(stdout: bytes):
    """What AtomCode of generation 2 reads: the last line that is not empty."""
    lines = [line for line in stdout.decode().splitlines() if line.strip()]
    return json.loads(lines[-1]) if lines else {}


class AtomCode:
    """AtomCode as the bridge sees it. Every call has an engine of its own, as if it were a process."""

    def __init__(self, folder, hooks):
        self.folder = folder
        self.hooks = hooks
        self.answer = None

    def send(self, payload, environ=(), **more):
        data = payload if isinstance(payload, bytes) else json.dumps(payload).encode()
        self.answer = bridge.answer(
            "atomcode", data, environ=dict(environ), cwd=str(self.folder), caller_pid=os.getpid(),
            engine_for=lambda place: Engine([("hooks", self.hooks)], state_dir=self.folder / "state"), **more,
        )  # fmt: skip
        assert self.answer.exit_code == 0
        return decision(self.answer.stdout)

    def __call__(self, event, **fields):
        """Generation 2."""
        common = {"session_id": "s-1", "hook_event_name": event, "cwd": str(self.folder)}
        return self.send({**common, **fields})

    def pre(self, command="ls", call="c1", **more):
        return self("PreToolUse", call_id=call, tool_name="bash", tool_input={"command": command}, **more)

    def post(self, response="out", call="c1", event="PostToolUse", tool="bash"):
        return self(event, call_id=call, tool_name=tool, tool_response=response)

    def old(self, event, **fields):
        """Generation 1: nothing on standard input."""
        nothing = dict.fromkeys(["tool_name", "tool_args", "tool_result", "tool_success", "session_id"])
        context = {**nothing, "event": event, "working_dir": str(self.folder), **fields}
        environ = {"ATOMCODE_HOOK_EVENT": event, "ATOMCODE_HOOK_CONTEXT": json.dumps(context)}
        answer = self.send(b"", environ)
        if self.answer.stdout:
            assert json.loads(self.answer.stdout) == answer  # one JSON value, and nothing else
        return answer

    def old_pre(self, args='{"command": "ls"}', tool="bash"):
        return self.old("pre_tool_use", tool_name=tool, tool_args=args)


@pytest.fixture
def hooks():
    return Hooks()


@pytest.fixture
def agent(tmp_path, hooks):
    return AtomCode(tmp_path, hooks)


def own(answer):
    return {key: value for key, value in answer["hookSpecificOutput"].items() if key != "hookEventName"}


# -- generation 2 -----------------------------------------------------------------------------------


def test_a_session(agent, hooks):
    agent("SessionStart")
    agent("UserPromptSubmit", prompt="do it")
    agent.pre()
    agent.post()
    agent.pre(call="c2")
    agent.post("exit code 1", "c2", "PostToolUseFailure")
    agent("Stop", transcript_path=None, stop_hook_active=False, stop_reason="Stopped")
    agent("SessionEnd")
    assert hooks.timings == [
        "on_session_start", "on_message_received", "on_user_prompt_submit", "on_turn_start", "system_prompt",
        "on_tool_call_start", "pre_tool_execution", "post_tool_execution", "system_prompt",
        "on_tool_call_start", "pre_tool_execution", "post_tool_execution", "on_error", "system_prompt",
        "on_turn_complete", "post_turn", "on_session_end",
    ]  # fmt: skip
    assert {event.session_id for event in hooks.events} == {"s-1"}
    assert [event.status for event in hooks.of("post_tool_execution")] == ["ok", "error"]
    assert hooks.of("pre_tool_execution")[0].command == "ls"
    assert agent.answer.stdout == b""


def test_nothing_to_say_is_nothing_at_all(agent):
    """``{}`` at SessionStart would be given to the model."""
    for event in ("SessionStart", "UserPromptSubmit", "Stop", "SessionEnd"):
        agent(event, prompt="x")
        assert agent.answer.stdout == b""


def test_decisions(agent, hooks):
    agent("UserPromptSubmit", prompt="x")
    for answer, expected in (
        (Deny("No."), {"permissionDecision": "deny", "permissionDecisionReason": "No."}),
        (Ask("Sure?"), {"permissionDecision": "ask", "permissionDecisionReason": "Sure?"}),
        (Allow("Fine."), {"permissionDecision": "allow", "permissionDecisionReason": "Fine."}),
        (Rewrite(command="ls -l"), {"updatedInput": {"command": "ls -l"}}),
    ):
        hooks.says = {"pre_tool_execution": answer}
        told = own(agent.pre(call=f"{expected}"))
        assert (
            expected["permissionDecisionReason"] in told.pop("permissionDecisionReason")
            if "permissionDecision" in expected
            else True
        )
        assert told == {key: value for key, value in expected.items() if key != "permissionDecisionReason"}
    hooks.says = {"pre_tool_execution": Reply("42")}
    assert "42" in own(agent.pre(call="r"))["permissionDecisionReason"]


def test_results(agent, hooks):
    agent("UserPromptSubmit", prompt="x")
    for index, (answer, text) in enumerate(
        (
            (Rewrite(result_text="other"), "other"),
            (Inject("READ"), "out\n\nREAD"),
            (Deny("It holds a key."), "key"),
        )
    ):
        agent.pre(call=f"c{index}")
        hooks.says = {"post_tool_execution": answer}
        told = own(agent.post(call=f"c{index}"))["updatedToolOutput"]
        assert text in told and ("out" in told) == ("READ" in text)


def test_prompts(agent, hooks):
    hooks.says = {"on_session_start": Inject("AT-START")}
    assert own(agent("SessionStart")) == {"additionalContext": "AT-START"}
    hooks.says = {"on_user_prompt_submit": Inject("AT-PROMPT"), "system_prompt": Inject("RULE")}
    told = own(agent("UserPromptSubmit", prompt="x"))["additionalContext"]
    assert "AT-PROMPT" in told and "RULE" in told
    hooks.says = {"on_user_prompt_submit": Block("Not this one.")}
    told = agent("UserPromptSubmit", prompt="x")
    assert told["decision"] == "block" and "Not this one." in told["reason"]


def test_what_cannot_be_said_is_told_on_standard_error(agent, hooks):
    agent("UserPromptSubmit", prompt="x")
    hooks.says = {"on_turn_complete": Continue("go on")}
    assert agent("Stop", stop_reason="Stopped") == {}
    assert "go on" in agent.answer.stderr
    hooks.says = {"on_user_prompt_submit": Warn("careful")}
    assert agent("UserPromptSubmit", prompt="x") == {}
    assert "careful" in agent.answer.stderr


def test_a_refused_call_has_one_end(agent, hooks):
    agent("UserPromptSubmit", prompt="x")
    hooks.says = {"pre_tool_execution": Deny("No.")}
    agent.pre()
    hooks.says = {}
    agent.post("No.", event="PostToolUseFailure", tool=None)  # AtomCode tells it again, without the tool
    agent.pre(call="c2")
    agent.post("refused by its user", "c2", "PostToolUseFailure", tool=None)
    agent.post("refused by its own gate", "c3", "PostToolUseFailure", tool=None)
    assert [(event.call_id, event.status) for event in hooks.of("post_tool_execution")] == [
        ("c1", "denied"), ("c2", "denied")
    ]  # fmt: skip
    assert not hooks.of("on_error")


def test_a_failed_turn(agent, hooks):
    agent("UserPromptSubmit", prompt="x")
    agent("StopFailure", stop_reason="ProviderError")
    assert hooks.of("on_error")[0].error_type == "ProviderError"
    assert len(hooks.of("on_turn_complete")) == 1
    hooks.events.clear()
    agent("Stop", stop_reason="PromptRejected")  # no turn had begun
    assert hooks.timings == []


def test_without_a_persistent_session_the_process_tells_which(agent, hooks):
    agent("SessionStart", session_id="")
    agent("UserPromptSubmit", prompt="x", session_id="")
    agent.pre(session_id="")
    assert len({event.session_id for event in hooks.events}) == 1


# -- generation 1 -----------------------------------------------------------------------------------


def test_an_old_session(agent, hooks):
    agent.old("session_start", session_id="s-1")
    agent.send({"session_id": "s-1", "hook_event_name": "UserPromptSubmit", "prompt": "do it", "cwd": "/"})
    agent.old_pre()
    agent.old(
        "post_tool_use", tool_name="bash", tool_args='{"command": "ls"}', tool_result="out", tool_success=True
    )
    agent.old_pre({"command": "false"})
    agent.old(
        "post_tool_use", tool_name="bash", tool_args={"command": "false"}, tool_result="x", tool_success=False
    )
    agent.old("session_end", session_id="s-1")
    assert {event.session_id for event in hooks.events} == {"s-1"}
    assert [event.command for event in hooks.of("pre_tool_execution")] == ["ls", "false"]
    assert [event.status for event in hooks.of("post_tool_execution")] == ["ok", "error"]
    assert hooks.timings[-3:] == ["on_turn_complete", "post_turn", "on_session_end"]
    assert hooks.of("pre_tool_execution")[0].raw["event"] == "pre_tool_use"


def test_old_decisions(agent, hooks):
    assert agent.old_pre() == {}
    for answer, expected in (
        (Deny("No."), {"action": "block", "reason": "No."}),
        (Allow("Fine."), {"action": "allow"}),
    ):
        hooks.says = {"pre_tool_execution": answer}
        told = agent.old_pre()
        assert told["action"] == expected["action"] and expected.get("reason", "") in told.get("reason", "")
    hooks.says = {"pre_tool_execution": Ask("Sure?")}
    told = agent.old_pre()
    assert told["action"] == "block" and "Sure?" in told["reason"]


def test_an_old_rewrite_is_never_made_in_vain(tmp_path):
    """AtomCode showed changed arguments to its user, and ran the old ones."""
    agent = AtomCode(tmp_path, Hooks())
    agent.hooks.says = {"pre_tool_execution": Rewrite(command="ls -l")}
    assert agent.old_pre() == {}
    assert "wanted to change the call's arguments" in agent.answer.stderr
    agent = AtomCode(tmp_path, Hooks(closed=["pre_tool_execution"]))
    agent.hooks.says = {"pre_tool_execution": Rewrite(command="ls -l")}
    assert agent.old_pre()["action"] == "block"


def test_context_in_a_file(agent, hooks, tmp_path):
    context = {"event": "pre_tool_use", "tool_name": "bash", "tool_args": {"command": "x" * 200_000}}
    path = tmp_path / "context.json"
    path.write_text(json.dumps(context))
    agent.send(b"", {"ATOMCODE_HOOK_EVENT": "pre_tool_use", "ATOMCODE_HOOK_CONTEXT_FILE": str(path)})
    assert len(hooks.of("pre_tool_execution")[0].command) == 200_000
    agent.send(b"", {"ATOMCODE_HOOK_CONTEXT_FILE": str(tmp_path / "none")})
    assert "cannot be read" in agent.answer.stderr


BROKEN = [b"", b"null", b"[]", b"{", b'{"hook_event_name": 5}', b'{"hook_event_name": "PreToolUse"}',
          b'{"hook_event_name": "PreToolUse", "tool_name": "bash", "tool_input": "not JSON"}',
          b'{"hook_event_name": "UserPromptSubmit", "prompt": {}}']  # fmt: skip


@pytest.mark.parametrize("payload", BROKEN)
@pytest.mark.parametrize("old", [False, True])
def test_broken_payloads(tmp_path, payload, old):
    memory = tmp_path / "memory"
    for closed in ((), ("pre_tool_execution", "on_user_prompt_submit")):
        agent = AtomCode(tmp_path, Hooks(closed))
        agent.send({"session_id": "s", "hook_event_name": "SessionStart", "cwd": ""}, memory=memory)
        environ = {"ATOMCODE_HOOK_CONTEXT": payload.decode()} if old else {}
        told = agent.send(b"" if old else payload, environ, memory=memory)
        assert agent.answer.stderr.startswith("hookturn: ")
        refused = "block" in (told.get("action"), told.get("decision")) or bool(
            told.get("hookSpecificOutput")
        )
        assert refused == bool(closed)


# -- as AtomCode calls it ---------------------------------------------------------------------------

GUARD = (
    "hooks:\n- name: no-rm\n  timings: [pre_tool_execution]\n  guard: true\n  run: {answer: {deny: No rm.}}\n"
)

TOML = """\
[[hooks]]
name = "deny-etc"
trigger = "pre_tool"
script = "deny.sh"
"""


@pytest.fixture
def place(tmp_path):
    """A user's home and project, and how AtomCode runs the line that ``install`` wrote for an event."""

    class Place:
        home = Path(os.environ["HOME"])
        project = tmp_path / "my project"

        def cli(self, *words):
            return subprocess.run(
                [sys.executable, "-m", "hookturn", *words],
                cwd=self.project,
                capture_output=True,
                timeout=60,
                check=True,
            )

        def run(self, event, payload=None, **environ):
            hooks = json.loads((self.project / ".hooks.json").read_text())["hooks"]
            (line,) = [entry["command"] for entry in hooks.values() if entry["event"] == event]
            # Generation 1 leaves standard input open and writes nothing.
            read, write = os.pipe()
            try:
                if payload is not None:
                    os.write(write, json.dumps(payload).encode())
                    os.close(write)
                done = subprocess.run(
                    ["sh", "-c", line], stdin=read, cwd=self.project, capture_output=True, timeout=60,
                    env={**os.environ, **environ},
                )  # fmt: skip
            finally:
                os.close(read)
                if payload is None:
                    os.close(write)
            assert done.returncode == 0, done
            return decision(done.stdout)

    Place.project.mkdir()
    Place.home.mkdir(exist_ok=True)
    made = Place()
    yield made
    made.cli("serve", "--stop")


def test_as_it_is_called(place):
    (place.project / "hookturn.yaml").write_text(GUARD)
    place.cli("install", "atomcode", "--yes")
    payload = {
        "session_id": "s", "hook_event_name": "PreToolUse", "call_id": "c", "tool_name": "bash",
        "tool_input": {"command": "rm x"}, "cwd": str(place.project),
    }  # fmt: skip
    for _ in range(2):  # without the resident process, and with it
        told = place.run("PreToolUse", payload, ATOMCODE_PROJECT_DIR=str(place.project))
        assert told["hookSpecificOutput"]["permissionDecision"] == "deny"
    context = {
        "event": "pre_tool_use",
        "tool_name": "bash",
        "tool_args": '{"command": "rm x"}',
        "session_id": None,
    }
    told = place.run(
        "PreToolUse", ATOMCODE_HOOK_EVENT="pre_tool_use", ATOMCODE_HOOK_CONTEXT=json.dumps(context)
    )
    assert told["action"] == "block" and "No rm." in told["reason"]


@pytest.mark.parametrize("generation", [2, 1])
def test_hooks_toml_is_run_for_the_generation_that_dropped_it(place, generation):
    folder = place.home / ".atomcode/hooks"
    folder.mkdir(parents=True, mode=0o700)
    (folder / "hooks.toml").write_text(TOML)
    (folder / "deny.sh").write_text("echo 'deny: not here'\n")
    config = Path(os.environ["HOOKTURN_CONFIG_DIR"])
    config.mkdir(parents=True, exist_ok=True)
    (config / "hookturn.yaml").write_text(f"dialects: {{atomcode: {{generation: {generation}}}}}\n")
    # hooks.json is AtomCode's own in both.
    own = {"hooks": {"mine": {"event": "PreToolUse", "command": "exit 2", "matcher": "never"}}}
    (place.home / ".atomcode/hooks.json").write_text(json.dumps(own))
    place.cli("install", "atomcode", "--yes")
    payload = {
        "session_id": "s", "hook_event_name": "PreToolUse", "call_id": "c", "tool_name": "bash",
        "tool_input": {"command": "ls"}, "cwd": str(place.project),
    }  # fmt: skip
    told = place.run("PreToolUse", payload)
    assert ("not here" in json.dumps(told)) == (generation == 2)


def test_the_table():
    assert [row.event for row in atomcode.EVENTS.values() if row.install] == [
        "SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "PostToolUseFailure", "Stop",
        "StopFailure", "SessionEnd",
    ]  # fmt: skip
