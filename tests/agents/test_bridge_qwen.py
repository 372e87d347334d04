"""``bridge qwen``: each event of Qwen Code, what our hooks say to it, and what Qwen Code is told."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from agent_calls import SAYINGS, Hooks, takes_whatever_hooks_say
from qwen_answers import ANSWERS, check

from hookturn import (
    Allow,
    Ask,
    Block,
    Continue,
    Deny,
    Engine,
    Inject,
    Rewrite,
    Warn,
)
from hookturn.agents import bridge
from hookturn.agents.qwen import hooks as qwen

CAPTURES = Path(__file__).parent.parent / "data/captures/qwen"
SESSION = "63844821-2dde-4404-a237-e27567f95d82"

MORE = {
    "TodoCreated.written": {"phase": "postWrite"},
    "TodoCompleted.written": {"phase": "postWrite"},
    "PermissionRequest": {"tool_name": "run_shell_command", "tool_input": {"command": "ls"}},
    "PermissionDenied": {
        "tool_name": "run_shell_command",
        "tool_input": {"command": "ls"},
        "tool_use_id": "toolu_1",
        "reason": "classifier_blocked",
    },
    "StopFailure": {"error": "rate_limit", "error_details": "too fast"},
    "SessionEnd": {"reason": "exit"},
}
"""Of events that were not captured: what their payload has beside the common fields."""


def captured(event):
    base = event.partition(".")[0]
    for name in (event, base):
        path = CAPTURES / f"{name}.json"
        if path.exists():
            payload = json.loads(path.read_text())
            break
    else:
        common = json.loads((CAPTURES / "Stop.json").read_text())
        names = ("session_id", "transcript_path", "cwd", "timestamp", "permission_mode")
        payload = {**{key: common[key] for key in names}, "hook_event_name": base}
    return {**payload, **MORE.get(event, {}), "session_id": SESSION, "cwd": "/"}


class Qwen:
    """Qwen Code as the bridge sees it. Every call has an engine of its own, as if it were a process."""

    def __init__(self, folder, hooks, **options):
        folder.mkdir(exist_ok=True)
        self.folder = folder
        self.hooks = hooks
        self.options = options
        self.kept = None
        self.environ = {"QWEN_PROJECT_DIR": str(folder)}
        self.stderr = ""

    def engine(self, place):
        if self.kept is not None:
            return self.kept
        return Engine([("hooks", self.hooks)], state_dir=self.folder / "state", **self.options)

    def send(self, payload, **more):
        if not isinstance(payload, bytes):
            payload = json.dumps(payload).encode()
        answer = bridge.answer(
            "qwen", payload, environ=self.environ, cwd=str(self.folder), engine_for=self.engine, **more
        )
        self.stderr = answer.stderr
        return answer

    def __call__(self, event, **fields):
        """Send an event as it was captured, with other fields."""
        payload = {**captured(event), **fields}
        return check(event, self.send({key: value for key, value in payload.items() if value is not None}))

    def tool(self, command="ls", call="call_1", **more):
        args = {"command": command, "description": "Run"}
        return self("PreToolUse", tool_input=args, tool_call_id=call, **more)

    def done(self, command="ls", call="call_1", **more):
        args = {"command": command, "description": "Run"}
        return self("PostToolUse", tool_input=args, tool_call_id=call, **more)


@pytest.fixture
def hooks():
    return Hooks()


@pytest.fixture
def agent(tmp_path, hooks):
    return Qwen(tmp_path / "project", hooks)


def decision(answer):
    own = answer.get("hookSpecificOutput", {})
    return own.get("permissionDecision"), own.get("permissionDecisionReason", "")


# -- every event ------------------------------------------------------------------------------------

EVENTS = sorted(qwen.EVENTS)


def test_the_table_knows_every_event_that_was_captured():
    assert {path.stem for path in CAPTURES.glob("*.json")} <= set(qwen.EVENTS)
    assert set(ANSWERS) == set(qwen.EVENTS)
    assert [event for event in EVENTS if not qwen.EVENTS[event].install] == [
        event for event in EVENTS if "." in event
    ], "these are not names of Qwen Code"


@pytest.mark.parametrize("path", sorted(CAPTURES.glob("*.json")), ids=lambda path: path.stem)
def test_every_captured_payload_tells_its_event(path):
    assert qwen.event_name(json.loads(path.read_text())) == path.stem


@pytest.mark.parametrize("event", EVENTS)
def test_without_hooks_there_is_nothing_to_say(tmp_path, event):
    assert Qwen(tmp_path, object())(event) == {}


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_fires_its_timings_with_the_payload(agent, hooks, event):
    agent("UserPromptSubmit")
    hooks.events.clear()
    agent(event)
    timings = qwen.EVENTS[event].timings
    if event in ("UserPromptSubmit.results", "MessageDisplay", "PostToolBatch") and not timings:
        assert hooks.events == []
        return
    seen = [one for one in hooks.events if one.timing in timings and one.raw is not None]
    assert seen and seen[-1].raw == captured(event)
    assert (seen[-1].host, seen[-1].session_id) == ("qwen", SESSION)


OWN_SAYINGS = [
    ("on_model_response", Rewrite("other words")),
    ("on_model_response", Inject("context")),
    ("on_model_response", Block("no")),
    ("post_tool_execution", Rewrite(result={"no": "text"})),
    ("post_tool_execution", Rewrite(result_text="")),
    *[("on_event", answer) for answer in (Inject("context"), Deny("no"), Block("no"))],
]


@pytest.mark.parametrize(("timing", "answer"), [*SAYINGS, *OWN_SAYINGS], ids=lambda value: repr(value)[:40])
def test_whatever_hooks_say_qwen_takes_the_answer(agent, timing, answer):
    takes_whatever_hooks_say(agent, EVENTS, "UserPromptSubmit", timing, answer)


# -- sessions and turns -----------------------------------------------------------------------------


def test_a_headless_run_from_start_to_stop(agent, hooks):
    for event in ("InstructionsLoaded", "SessionStart", "Notification", "UserPromptSubmit", "PreToolUse",
                  "PostToolUse", "PostToolBatch", "UserPromptSubmit.results", "MessageDisplay", "Stop"):  # fmt: skip
        agent(event)
    assert [timing for timing in hooks.timings if timing != "on_event"] == [
        "on_session_start", "on_message_received", "on_user_prompt_submit", "on_turn_start", "system_prompt",
        "on_tool_call_start", "pre_tool_execution", "post_tool_execution", "system_prompt", "on_model_response",
        "on_turn_complete", "post_turn",
    ]  # fmt: skip
    assert {event.turn for event in hooks.of("on_turn_complete")} == {1}


def test_the_end_that_a_headless_run_does_not_tell_is_supplied(agent, hooks):
    import os
    import subprocess
    import sys

    with subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, stderr=subprocess.DEVNULL
    ) as gone:
        agent.send(captured("SessionStart"), caller_pid=gone.pid)
    agent("UserPromptSubmit")
    agent.tool()
    agent.send({**captured("SessionStart"), "session_id": "another"}, caller_pid=os.getpid())
    (end,) = hooks.of("on_session_end")
    assert (end.session_id, end.reason) == (SESSION, "unknown")
    (post,) = hooks.of("post_tool_execution")
    assert post.status == "unknown"
    agent.send({**captured("SessionStart"), "session_id": "third"}, caller_pid=os.getpid())
    assert len(hooks.of("on_session_end")) == 1, "the other one lives"


def test_a_prompt_without_words_is_no_turn(agent, hooks):
    agent("UserPromptSubmit")
    for _ in range(3):
        assert agent("UserPromptSubmit.results") == {}
    assert hooks.timings.count("on_message_received") == hooks.timings.count("on_turn_start") == 1
    assert hooks.timings.count("on_turn_complete") == 0


def test_a_turn_that_goes_on_is_no_new_prompt(agent, hooks):
    agent("UserPromptSubmit")
    hooks.says["on_turn_complete"] = Continue("More, please.")
    for _ in range(7):
        assert agent("Stop") == {"decision": "block", "reason": "More, please."}
        assert agent("UserPromptSubmit", prompt="More, please.", submitted_prompt=None) == {}
    answer = agent("Stop")  # Qwen Code ends the turn now whatever is said
    assert answer.keys() == {"systemMessage"} and "7 times" in answer["systemMessage"]
    assert hooks.timings.count("on_message_received") == hooks.timings.count("post_turn") == 1


def test_a_refused_prompt(agent, hooks):
    hooks.says["on_user_prompt_submit"] = Block("Not today.")
    answer = agent("UserPromptSubmit")
    assert (answer["decision"], "Not today." in answer["reason"]) == ("block", True)
    assert "on_turn_start" not in hooks.timings


@pytest.mark.parametrize("closed", [False, True])
def test_a_prompt_cannot_be_changed(tmp_path, closed):
    hooks = Hooks(closed=["on_message_received"] if closed else [])
    agent = Qwen(tmp_path, hooks)
    hooks.says["on_message_received"] = Rewrite("other words")
    answer = agent("UserPromptSubmit")
    assert answer.get("decision") == ("block" if closed else None)
    assert ("it goes on as it was" in agent.stderr) is not closed


def test_a_message_comes_whole_in_its_last_piece(agent, hooks):
    agent("UserPromptSubmit")
    for text, last in (("One", False), ("One two", False), ("One two three", True)):
        agent("MessageDisplay", message_id="m", displayed_text=text, is_final=last)
    assert [event.text for event in hooks.of("on_model_response")] == ["One two three"]


def test_a_failed_turn(agent, hooks):
    agent("UserPromptSubmit")
    agent("StopFailure")
    (error,) = hooks.of("on_error")
    assert (error.error_type, error.message) == ("rate_limit", "too fast")
    assert hooks.timings.count("post_turn") == 1


# -- tool calls -------------------------------------------------------------------------------------


def test_a_denied_call_is_denied_with_words_and_gets_its_post_from_the_bridge(agent, hooks):
    hooks.says["pre_tool_execution"] = Deny("No recursive delete.", advice="Name the files.")
    said, reason = decision(agent.tool("rm -rf /"))
    assert said == "deny"
    assert "No recursive delete." in reason and "Name the files." in reason
    agent("PostToolBatch")
    agent("Stop")
    (post,) = hooks.of("post_tool_execution")
    assert (post.call_id, post.status, post.by) == ("call_1", "denied", "hooks")


def test_the_models_id_of_the_call_counts(agent, hooks):
    agent("PreToolUse", tool_use_id="toolu_1", tool_call_id="call_9")
    agent("PostToolUse", tool_use_id="toolu_1", tool_call_id="call_9")
    assert {event.call_id for event in hooks.events if "tool" in event.timing} == {"call_9"}
    agent("PreToolUse", tool_use_id="toolu_2", tool_call_id=None)
    assert hooks.of("pre_tool_execution")[1].call_id == "toolu_2"


def test_an_ask_is_left_to_qwen_code_and_an_allow_has_no_effect(agent, hooks):
    hooks.says["pre_tool_execution"] = Ask("It touches production.")
    assert decision(agent.tool()) == ("ask", "It touches production.")
    hooks.says["pre_tool_execution"] = Allow("Reading is fine.")
    assert agent.tool(call="call_2") == {}
    assert "an Allow of hooks" in agent.stderr


@pytest.mark.parametrize("closed", [False, True])
def test_arguments_cannot_be_changed(tmp_path, closed):
    hooks = Hooks(closed=["pre_tool_execution"] if closed else [])
    agent = Qwen(tmp_path, hooks)
    hooks.says["pre_tool_execution"] = Rewrite(command="ls -a")
    said, reason = decision(agent.tool("ls"))
    if closed:
        assert said == "deny" and "fails closed" in reason
        assert [post.status for post in hooks.of("post_tool_execution")] == ["denied"]
        return
    assert said is None and "it goes on as it was" in agent.stderr
    agent.done("ls")
    (post,) = hooks.of("post_tool_execution")
    assert post.command == "ls", "what really ran"


def test_context_that_has_no_place_before_a_tool_comes_after_it(agent, hooks):
    agent("UserPromptSubmit")
    hooks.says["on_model_response"] = Inject("later")
    agent("MessageDisplay")
    assert agent.tool() == {}
    assert agent.done()["hookSpecificOutput"]["additionalContext"] == "later"
    assert agent("PostToolBatch") == {}


def test_context_after_tools(agent, hooks):
    hooks.says["post_tool_execution"] = Inject("after")
    agent.tool()
    assert agent.done()["hookSpecificOutput"]["additionalContext"] == "after"
    agent.tool(call="call_2")
    assert (
        agent("PostToolUseFailure", tool_call_id="call_2")["hookSpecificOutput"]["additionalContext"]
        == "after"
    )


def test_a_block_ends_the_turn_before_the_next_request(agent, hooks):
    agent("UserPromptSubmit")
    hooks.says["pre_tool_execution"] = Block("enough")
    assert decision(agent.tool())[0] == "deny"
    assert agent("PostToolBatch") == {}, "its words would take the place of other calls' results"
    answer = agent("UserPromptSubmit.results")
    assert answer["decision"] == "block" and answer["reason"]
    assert hooks.timings.count("on_turn_complete") == hooks.timings.count("post_turn") == 1
    hooks.says.clear()
    agent("UserPromptSubmit")
    assert agent.tool(call="call_2") == {}


def test_a_sub_agent_reads_that_its_turn_was_ended(agent, hooks):
    agent("UserPromptSubmit")
    about = {"agent_id": "general-purpose-call_1", "agent_type": "general-purpose"}
    agent("SubagentStart", **about)
    hooks.says["pre_tool_execution"] = Block("enough")
    agent.tool(**about)
    answer = agent("PostToolBatch", **about)
    assert answer["decision"] == "block"


def test_a_sub_agent_in_the_background_outlives_the_turn(agent, hooks):
    about = {"agent_id": "general-purpose-call_1", "agent_type": "general-purpose"}
    agent("UserPromptSubmit")
    agent("SubagentStart", **about)
    task = {"id": about["agent_id"], "status": "running", "agent_type": "general-purpose"}
    agent("Stop", background_tasks=[task])
    agent.tool(agent_id=about["agent_id"])  # its events tell no type
    agent.done(agent_id=about["agent_id"])
    agent("SubagentStop", **about)
    (post,) = hooks.of("post_tool_execution")
    assert (post.agent, post.status) == ("general-purpose", "ok")
    ends = [(event.agent_id, event.text) for event in hooks.of("on_turn_complete")]
    assert ends == [("", "Finished."), (about["agent_id"], "Sub finished.")]


@pytest.mark.parametrize("answer", [Allow("go"), Deny("no"), None])
def test_a_prompt_of_qwen_code_is_answered_by_hooks(agent, hooks, answer):
    hooks.says["on_permission_request"] = answer
    agent.tool("ls")
    own = agent("PermissionRequest").get("hookSpecificOutput", {})
    assert own.get("decision", {}).get("behavior") == {Allow: "allow", Deny: "deny"}.get(type(answer))
    assert hooks.of("on_permission_request")[0].call_id == "call_1"


def test_refusals_of_qwen_codes_own_close_the_call(agent, hooks):
    agent.tool(call="toolu_1")
    agent("PermissionDenied")
    (post,) = hooks.of("post_tool_execution")
    assert (post.status, post.by, post.reason) == ("denied", "qwen", "classifier_blocked")


# -- results ----------------------------------------------------------------------------------------


def test_a_withheld_result_is_replaced_by_the_words(agent, hooks):
    agent.tool()
    hooks.says["post_tool_execution"] = Deny("It holds a key.")
    answer = agent.done()
    assert answer["continue"] is False and "It holds a key." in answer["stopReason"]
    assert "decision" not in answer, "it has no effect after a tool"


def test_a_changed_result_takes_the_context_along(agent, hooks):
    """Qwen Code drops additionalContext beside a replaced result."""
    agent.tool()
    hooks.says["post_tool_execution"] = [Rewrite(result_text="short"), Inject("after")]
    assert agent.done() == {"continue": False, "stopReason": "short\n\nafter"}


def test_an_empty_result_has_words(agent, hooks):
    agent.tool()
    hooks.says["post_tool_execution"] = Rewrite(result_text="")
    assert agent.done() == {"continue": False, "stopReason": "(no output)"}


def test_a_failed_call(agent, hooks):
    agent("PreToolUse", tool_call_id="call_5ced820af0fd4365")
    hooks.says["post_tool_execution"] = Deny("no")
    assert agent("PostToolUseFailure") == {} and "the model has it" in agent.stderr
    (post,) = hooks.of("post_tool_execution")
    assert (post.status, post.duration) == ("error", 0.021)
    assert "MARK_STDERR" in post.error
    agent.tool(call="call_2")
    agent("PostToolUseFailure", tool_call_id="call_2", is_interrupt=True)
    assert hooks.of("post_tool_execution")[1].status == "cancelled"


# -- other events -----------------------------------------------------------------------------------


@pytest.mark.parametrize("event", ["TodoCreated", "TodoCompleted"])
def test_a_todo_is_refused_while_it_is_validated(agent, hooks, event):
    hooks.says["on_event"] = lambda seen: Deny("no") if "Deny" in seen.accepts else None
    assert agent(event)["decision"] == "block"
    assert agent(event + ".written") == {}
    assert [seen.properties["phase"] for seen in hooks.of("on_event")] == ["validation", "postWrite"]


def test_warnings_are_shown_at_the_stop_only(agent, hooks):
    hooks.says = {"pre_tool_execution": Warn("look"), "on_turn_complete": Warn("look again")}
    agent("UserPromptSubmit")
    assert agent.tool() == {} and "look" in agent.stderr
    assert "look again" in agent("Stop")["systemMessage"]


def test_after_a_compaction_the_system_prompt_is_told_again(agent, hooks):
    hooks.says["system_prompt"] = Inject("RULES")
    assert "RULES" in agent("UserPromptSubmit")["hookSpecificOutput"]["additionalContext"]
    assert agent("PostToolBatch") == {}
    agent("PostCompact", trigger="auto", compact_summary="s")
    assert "RULES" in agent("PostToolBatch")["hookSpecificOutput"]["additionalContext"]


# -- failures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", EVENTS)
def test_a_refusal_has_the_form_of_its_event(event):
    if qwen.EVENTS[event].decides and event != "PostToolBatch":
        assert check(event, qwen.refusal(qwen.EVENTS[event], "because"))


def test_a_result_that_no_hook_could_see_is_withheld_where_a_hook_fails_closed():
    answer = check("PostToolUse", qwen.refusal(qwen.EVENTS["PostToolUse"], "because"))
    assert answer == {"continue": False, "stopReason": "because"}


@pytest.mark.parametrize("payload", [b"", b"null", b"[]", b'{"hook_event_name": "PreTo', b"\xff\xfe"])
def test_a_payload_that_cannot_be_read(tmp_path, payload):
    memory = tmp_path / "memory"
    closed = Qwen(tmp_path / "c", Hooks(closed=["pre_tool_execution"]))
    closed.send(captured("PreToolUse"), memory=memory)
    answer = closed.send(payload, memory=memory)
    assert answer.exit_code == 0 and json.loads(answer.stdout)["decision"] == "block"
    calm = Qwen(tmp_path / "o", Hooks()).send(payload)
    assert (calm.stdout, calm.exit_code, "cannot be read" in calm.stderr) == (b"", 0, True)


@pytest.mark.parametrize("tool_input", ["ls", 5, None, ["ls"]])
def test_a_call_that_cannot_be_judged(tmp_path, tool_input):
    closed = Qwen(tmp_path / "c", Hooks(closed=["pre_tool_execution"]))
    assert decision(closed("PreToolUse", tool_input=tool_input))[0] == "deny"
    assert Qwen(tmp_path / "o", Hooks())("PreToolUse", tool_input=tool_input) == {}
