"""``bridge claude-code``: each event of Claude Code, what our hooks say to it, and what Claude Code is told."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from agent_calls import SAYINGS, Hooks
from claude_answers import ANSWERS, check

from hookturn import (
    Allow,
    Ask,
    Block,
    Continue,
    Deny,
    Engine,
    Inject,
    Reply,
    Rewrite,
    SetEnv,
    Warn,
    hookimpl,
)
from hookturn.agents import bridge
from hookturn.agents.claude_code import hooks as claude

CAPTURES = Path(__file__).parent.parent / "data/captures/claude"
SESSION = "e97c9f30-64a5-49ec-b926-ff382ab16252"


class Claude:
    """Claude Code as the bridge sees it. Every call has an engine of its own, as if it were a process."""

    def __init__(self, folder, hooks, **options):
        self.folder = folder
        self.hooks = hooks
        self.options = options
        self.environ = {"CLAUDECODE": "1"}
        self.kept = None

    def engine(self, place):
        self.place = place
        if self.kept is not None:
            return self.kept
        return Engine([("hooks", self.hooks)], state_dir=self.folder / "state", **self.options)

    def send(self, payload, **more):
        if not isinstance(payload, bytes):
            payload = json.dumps(payload).encode()
        return bridge.answer(
            "claude-code", payload, environ=self.environ, cwd=str(self.folder), engine_for=self.engine, **more
        )

    def __call__(self, event, **fields):
        """Send an event as it was captured, with other fields; returns Claude Code's view of the answer."""
        payload = {**captured(event), **fields}
        return check(event, self.send({key: value for key, value in payload.items() if value is not None}))

    def tool(self, command="ls", call="toolu_1", **more):
        args = {"command": command, "description": "Run"}
        return self("PreToolUse", tool_input=args, tool_use_id=call, **more)

    def done(self, call="toolu_1", **more):
        return self("PostToolUse", tool_use_id=call, **more)


def captured(event):
    path = CAPTURES / f"{event}.json"
    common = json.loads((CAPTURES / "SessionEnd.json").read_text())
    if not path.exists():
        return {
            **{key: common[key] for key in ("session_id", "transcript_path", "cwd")},
            "hook_event_name": event,
        }
    return {**json.loads(path.read_text()), "session_id": SESSION, "cwd": "/"}


@pytest.fixture
def hooks():
    return Hooks()


@pytest.fixture
def agent(tmp_path, hooks):
    return Claude(tmp_path, hooks)


# -- every event ------------------------------------------------------------------------------------

EVENTS = sorted(claude.EVENTS)


def test_the_table_knows_every_event_that_was_captured():
    assert {path.stem for path in CAPTURES.glob("*.json")} <= set(claude.EVENTS)
    assert set(ANSWERS) | {"WorktreeCreate"} == set(claude.EVENTS)


@pytest.mark.parametrize("event", EVENTS)
def test_without_hooks_there_is_nothing_to_say(tmp_path, event):
    agent = Claude(tmp_path, object())
    assert agent(event) == {}


@pytest.mark.parametrize("event", EVENTS)
def test_every_event_fires_its_timings_with_the_payload(agent, hooks, event):
    agent("UserPromptSubmit")
    hooks.events.clear()
    agent(event)
    row = claude.EVENTS[event]
    assert hooks.events, event
    assert {timing for timing in hooks.timings if timing != "post_turn"} <= {
        *row.timings, "on_turn_start", "on_turn_complete", "on_session_start", "on_error",
        *(["on_session_end"] if event == "SessionStart" else []),  # of the one that never ended
    }  # fmt: skip
    main = next(
        event
        for event in reversed(hooks.events)
        if event.timing in row.timings and event.timing != "post_turn"
    )
    assert main.raw == captured(event)
    assert (main.host, main.session_id) == ("claude-code", captured(event)["session_id"])


OWN_SAYINGS = [
    ("on_message_received", Inject("context")),
    ("on_message_received", Block("no")),
    ("on_turn_start", Inject("context")),
    ("on_model_response", Rewrite("other words")),
    ("on_model_response", Inject("context")),
    ("on_model_response", Block("no")),
    ("on_tool_call_start", Deny("no")),
    ("pre_tool_execution", Deny("no")),
    ("post_tool_execution", Rewrite(result_text="other")),
    ("on_turn_complete", Inject("context")),
    *[("on_event", answer) for answer in (Allow("yes"), Ask("sure?"), Block("no"), Deny("no"), Inject("context"))],
    *[("on_event", answer) for answer in (Continue("more"), Reply({"a": 1}), Reply("text"), SetEnv({"A": "b"}))],
]  # fmt: skip


@pytest.mark.parametrize(("timing", "answer"), [*SAYINGS, *OWN_SAYINGS], ids=lambda value: repr(value)[:40])
def test_whatever_hooks_say_claude_code_takes_the_answer(tmp_path, timing, answer):
    hooks = Hooks()
    agent = Claude(tmp_path, hooks)
    agent.kept = Engine([("hooks", hooks)])
    for event in EVENTS:
        hooks.says = {}
        agent("UserPromptSubmit", session_id=event)
        hooks.says[timing] = lambda seen: (
            answer if seen.timing != "on_event" or type(answer).__name__ in [*seen.accepts, "Warn"] else None
        )
        agent(event, session_id=event)  # checks the answer
        assert not [seen for seen in hooks.of("on_error") if seen.phase == "hook"], event


# -- tool calls -------------------------------------------------------------------------------------


def decision(answer):
    own = answer.get("hookSpecificOutput", {})
    return own.get("permissionDecision"), own.get("permissionDecisionReason", "")


@pytest.mark.parametrize("timing", ["on_tool_call_start", "pre_tool_execution"])
def test_a_denied_call_is_denied_and_gets_its_post_from_the_bridge(agent, hooks, timing):
    hooks.says[timing] = Deny("No recursive delete.", advice="Name the files.")
    said, reason = decision(agent.tool("rm -rf /"))
    assert said == "deny"
    assert "No recursive delete." in reason and "Name the files." in reason
    (post,) = hooks.of("post_tool_execution")
    assert (post.call_id, post.status, post.by) == ("toolu_1", "denied", "hooks")
    agent("PostToolBatch")
    agent("Stop")
    assert len(hooks.of("post_tool_execution")) == 1


def test_a_block_denies_and_ends_the_turn(agent, hooks):
    hooks.says["pre_tool_execution"] = Block("enough")
    answer = agent.tool()
    assert decision(answer)[0] == "deny"  # ``continue: false`` alone does not keep the tool from running
    assert (answer["continue"], "enough" in answer["stopReason"]) == (False, True)
    hooks.says.clear()
    answer = agent.tool(call="toolu_2")
    assert decision(answer)[0] == "deny" and answer["continue"] is False
    agent("UserPromptSubmit")
    assert agent.tool(call="toolu_3") == {}


def test_a_turn_that_the_models_words_ended_refuses_its_tools(agent, hooks):
    agent("UserPromptSubmit")
    hooks.says["on_model_response"] = Block("it says too much")
    agent("MessageDisplay")
    assert decision(agent.tool())[0] == "deny"
    assert agent("PostToolBatch")["continue"] is False


def test_an_ask_is_left_to_claude_code(agent, hooks):
    hooks.says["pre_tool_execution"] = Ask("It touches production.")
    assert decision(agent.tool()) == ("ask", "It touches production.")
    # Where two of its files call us, the second call of the same id is told the same.
    assert decision(agent.tool()) == ("ask", "It touches production.")
    assert hooks.of("on_permission_request")  # hooks are heard first
    hooks.events.clear()
    assert agent("PermissionRequest", tool_input=hooks_args()) == {}
    assert not hooks.of("on_permission_request"), "they were heard already"
    agent.done()
    assert hooks.of("post_tool_execution")[0].status == "ok"


def hooks_args():
    return {"command": "ls", "description": "Run"}


def test_an_allow_skips_the_prompt(agent, hooks):
    hooks.says["pre_tool_execution"] = Allow("Reading is fine.")
    assert decision(agent.tool()) == ("allow", "Reading is fine.")


def test_permission_rules_count(tmp_path, hooks):
    agent = Claude(tmp_path, hooks, permissions={"deny": ["bash(rm *)"], "always_allow": ["bash(ls)"]})
    assert decision(agent.tool("rm x"))[0] == "deny"
    assert decision(agent.tool("ls", call="toolu_2"))[0] == "allow"
    assert agent.tool("make", call="toolu_3") == {}


def test_a_rewrite_gives_the_whole_input_and_needs_no_decision(agent, hooks):
    hooks.says["pre_tool_execution"] = Rewrite(command="ls -a")
    answer = agent.tool("ls")
    assert answer["hookSpecificOutput"] == {"updatedInput": {"command": "ls -a", "description": "Run"}}
    agent.done()
    (post,) = hooks.of("post_tool_execution")
    assert post.command == "ls -a"


def test_a_reply_refuses_the_call_with_the_value_as_reason(agent, hooks):
    hooks.says["pre_tool_execution"] = Reply("42 files")
    said, reason = decision(agent.tool())
    assert (said, "42 files" in reason) == ("deny", True)
    (post,) = hooks.of("post_tool_execution")
    assert (post.status, post.result) == ("replied", "42 files")


def test_a_call_with_an_id_that_was_decided_is_decided_alike(agent, hooks):
    hooks.says["pre_tool_execution"] = Deny("no")
    first = agent.tool()
    hooks.says.clear()
    assert agent.tool() == first
    assert len(hooks.of("pre_tool_execution")) == 1


def test_the_mcp_server_is_known(agent, hooks):
    agent("PreToolUse", tool_name="mcp__demo__echo", mcp_server={"name": "demo", "source": "user"})
    assert hooks.of("pre_tool_execution")[0].mcp == ("demo", "echo")


def test_a_command_in_a_skill_is_a_tool_call_that_cannot_be_changed_or_asked_about(agent, hooks):
    hooks.says["pre_tool_execution"] = Ask("sure?")
    said, reason = decision(agent("PreSkillShellCommand"))
    assert said == "deny" and "nobody to ask" in reason
    hooks.says["pre_tool_execution"] = Rewrite(command="true")
    answer = agent("PreSkillShellCommand", tool_use_id="other")
    assert "hookSpecificOutput" not in answer and "the call's arguments" in answer["systemMessage"]
    agent("Stop")
    assert [post.status for post in hooks.of("post_tool_execution")] == ["denied", "unknown"]


def test_a_change_that_cannot_be_made_is_a_deny_when_its_hook_fails_closed(tmp_path):
    hooks = Hooks(closed=["pre_tool_execution"])
    hooks.says["pre_tool_execution"] = Rewrite(command="true")
    said, reason = decision(Claude(tmp_path, hooks)("PreSkillShellCommand"))
    assert said == "deny" and "fails closed" in reason
    (post,) = hooks.of("post_tool_execution")
    assert post.status == "denied"


@pytest.mark.parametrize(
    ("answer", "decided"),
    [
        (Allow("go"), {"decision": {"behavior": "allow"}}),
        (
            Deny("no"),
            {"decision": {"behavior": "deny", "message": "The call of Bash was denied by hooks: no"}},
        ),
        (None, None),
    ],
)
def test_a_prompt_of_claude_code_is_answered_by_hooks(agent, hooks, answer, decided):
    agent.tool("ls")
    hooks.says["on_permission_request"] = answer
    assert agent("PermissionRequest", tool_input=hooks_args()).get("hookSpecificOutput") == decided
    (request,) = hooks.of("on_permission_request")
    assert (request.by, request.call_id, request.command) == ("claude-code", "toolu_1", "ls")
    if isinstance(answer, Deny):
        assert hooks.of("post_tool_execution")[0].status == "denied"


def test_refusals_of_claude_codes_own_close_the_call(agent, hooks):
    agent.tool(call="toolu_31ad3ac447654aaf")
    agent("PermissionDenied")
    (post,) = hooks.of("post_tool_execution")
    assert (post.status, post.by, post.reason) == ("denied", "claude-code", "Classifier unavailable")


# -- results ----------------------------------------------------------------------------------------

SHAPES = {
    "Bash": {"stdout": "secret", "stderr": "also", "interrupted": False, "isImage": False},
    "Read": {"type": "text", "file": {"filePath": "/a", "content": "secret", "numLines": 1}},
    "Glob": {"filenames": ["secret"], "durationMs": 3, "numFiles": 1, "truncated": False},
    "Grep": {"mode": "content", "numFiles": 0, "filenames": [], "content": "secret", "numLines": 1},
    "WebFetch": {"bytes": 5, "code": 200, "result": "secret", "url": "https://example.com"},
    "mcp__demo__echo": [{"type": "text", "text": "secret"}],
    "Agent": {"status": "completed", "content": [{"type": "text", "text": "secret"}], "totalTokens": 3},
}


@pytest.mark.parametrize("tool", sorted(SHAPES))
def test_a_withheld_result_is_replaced_in_the_tools_own_shape(agent, hooks, tool):
    agent("PreToolUse", tool_name=tool)
    hooks.says["post_tool_execution"] = Deny("It holds a key.")
    answer = agent("PostToolUse", tool_name=tool, tool_response=SHAPES[tool])
    output = answer["hookSpecificOutput"]["updatedToolOutput"]
    assert "secret" not in json.dumps(output) and "It holds a key." in json.dumps(output)
    assert type(output) is type(SHAPES[tool])
    if isinstance(output, dict):
        assert output.keys() == SHAPES[tool].keys()
    assert (answer["decision"], "It holds a key." in answer["reason"]) == ("block", True)


def test_a_changed_result_keeps_its_shape(agent, hooks):
    agent.tool(call="toolu_a725a52d170e4f18")
    hooks.says["post_tool_execution"] = Rewrite(result_text="short")
    answer = agent("PostToolUse")
    assert answer["hookSpecificOutput"]["updatedToolOutput"] == {
        **captured("PostToolUse")["tool_response"], "stdout": "short", "stderr": ""
    }  # fmt: skip


def test_a_result_without_text_cannot_be_withheld_and_says_so(agent, hooks):
    hooks.says["post_tool_execution"] = Deny("no")
    shape = {"type": "create", "filePath": "/a", "structuredPatch": []}
    answer = agent("PostToolUse", tool_name="Write", tool_response=shape)
    assert "updatedToolOutput" not in answer.get("hookSpecificOutput", {})
    assert answer["decision"] == "block"
    assert "no text" in answer["systemMessage"]


def test_a_failed_call_is_an_error_and_its_text_cannot_be_withheld(agent, hooks):
    agent.tool(call="toolu_b158488e22664bb7")
    hooks.says["post_tool_execution"] = Deny("no")
    answer = agent("PostToolUseFailure")
    (post,) = hooks.of("post_tool_execution")
    assert (post.status, post.error, post.duration) == ("error", "Exit code 3\nMARK_STDERR", 0.028)
    assert hooks.of("on_error")[0].tool == "Bash"
    assert "the model has it" in answer["systemMessage"]


def test_an_interrupted_call_is_cancelled(agent, hooks):
    agent.tool()
    agent("PostToolUseFailure", tool_use_id="toolu_1", is_interrupt=True)
    assert hooks.of("post_tool_execution")[0].status == "cancelled"


def test_a_result_without_a_begin_has_its_post(agent, hooks):
    agent("PostToolUse")
    (post,) = hooks.of("post_tool_execution")
    assert (post.tool, post.status, post.result_text) == ("Bash", "ok", "MARK_TOOLOUT")


def test_calls_left_open_are_closed_by_the_end_of_their_batch(agent, hooks):
    for number in range(3):
        agent.tool(call=f"toolu_{number}")
    agent.done("toolu_1")
    agent("PostToolBatch")
    assert {post.call_id: post.status for post in hooks.of("post_tool_execution")} == {
        "toolu_1": "ok", "toolu_0": "unknown", "toolu_2": "unknown"
    }  # fmt: skip
    agent.done("toolu_0")
    assert len(hooks.of("post_tool_execution")) == 3


def test_a_refused_call_that_ran_even_so_is_told(agent, hooks):
    hooks.says["pre_tool_execution"] = Deny("no")
    agent.tool()
    answer = agent.done()  # the deny was lost: killed on the way, or the agent ignored it
    assert "ran although" in answer["systemMessage"]
    assert hooks.of("on_error")[0].error_type == "RefusedCallRan"
    assert len(hooks.of("post_tool_execution")) == 1


# -- sessions, turns, context -----------------------------------------------------------------------


def context(answer):
    return answer.get("hookSpecificOutput", {}).get("additionalContext", "").split("\n\n")


def run_turn(agent, calls=1):
    told = [agent("UserPromptSubmit")]
    for number in range(calls):
        agent.tool(call=f"toolu_{number}")
        told += [agent.done(f"toolu_{number}"), agent("PostToolBatch")]
    agent("Stop")
    return [text for answer in told for text in context(answer) if text]


def test_a_session_in_separate_processes_is_one_session(agent, hooks):
    agent("SessionStart")
    run_turn(agent)
    run_turn(agent)
    agent("SessionEnd")
    assert [event.turn for event in hooks.of("on_turn_start")] == [1, 2]
    assert [event.turn for event in hooks.of("post_tool_execution")] == [1, 2]
    assert [event.source for event in hooks.of("on_session_start")] == ["startup"]
    assert [event.reason for event in hooks.of("on_session_end")] == ["other"]
    assert {event.session_id for event in hooks.events} == {SESSION}
    (end, _) = hooks.of("on_turn_complete")
    assert [call["tool"] for call in end.tool_calls] == ["Bash"]


def test_what_claude_code_never_told_is_supplied(agent, hooks):
    agent.tool()
    assert hooks.timings[:2] == ["on_session_start", "on_turn_start"]
    agent("SessionEnd")
    assert hooks.timings[-3:] == ["on_turn_complete", "post_turn", "on_session_end"]
    assert hooks.of("post_tool_execution")[0].status == "unknown"


def test_an_interrupted_turn_ends_with_the_next_prompt(agent, hooks):
    agent("UserPromptSubmit")
    agent.tool()
    agent("UserPromptSubmit")
    assert hooks.of("post_tool_execution")[0].status == "unknown"
    assert [event.turn for event in hooks.of("on_turn_complete")] == [1]
    assert [event.turn for event in hooks.of("on_turn_start")] == [1, 2]


def test_a_session_that_goes_on_after_its_end_starts_again(agent, hooks):
    agent("SessionStart")
    agent("SessionEnd")
    agent("SessionStart", source="resume")
    agent("SessionEnd")
    assert [event.source for event in hooks.of("on_session_start")] == ["startup", "resume"]
    assert len(hooks.of("on_session_end")) == 2


def test_a_killed_session_that_is_resumed_is_ended_first(agent, hooks):
    agent("SessionStart")
    agent.tool()
    agent("SessionStart", source="resume")
    assert [event.reason for event in hooks.of("on_session_end")] == ["unknown"]
    assert hooks.of("post_tool_execution")[0].status == "unknown"


def test_a_second_end_is_none(agent, hooks):
    agent("SessionStart")
    agent("SessionEnd")
    agent("SessionEnd")
    assert len(hooks.of("on_session_end")) == 1


def test_context_of_the_start_reaches_the_first_request(agent, hooks):
    hooks.says["on_session_start"] = Inject("Be brief.")
    assert context(agent("SessionStart")) == ["Be brief."]
    assert "Be brief." not in run_turn(agent)


def test_context_of_the_prompt_and_the_turn(agent, hooks):
    hooks.says.update(
        on_message_received=Inject("one"), on_user_prompt_submit=Inject("two"), on_turn_start=Inject("three")
    )
    assert context(agent("UserPromptSubmit")) == ["one", "two", "three"]


def test_the_system_prompt_is_given_once_and_later_only_what_is_new(agent, hooks):
    hooks.says["system_prompt"] = [Inject("Write tests."), Inject("Todo: 3")]
    agent("SessionStart")
    assert run_turn(agent) == ["Write tests.", "Todo: 3"]
    assert run_turn(agent) == []
    hooks.says["system_prompt"] = [Inject("Write tests."), Inject("Todo: 2")]
    assert run_turn(agent) == ["Todo: 2"]
    hooks.says["system_prompt"] = [Inject("Write tests."), Inject("Todo: 3")]
    assert run_turn(agent) == ["Todo: 3"]


@pytest.mark.parametrize("source", ["compact", "clear", "startup"])
def test_the_system_prompt_is_given_again_when_the_model_forgot_it(agent, hooks, source):
    hooks.says["system_prompt"] = Inject("Write tests.")
    agent("SessionStart")
    assert run_turn(agent) == ["Write tests."]
    if source != "compact":
        agent("SessionEnd")
    agent("SessionStart", source=source)
    assert run_turn(agent) == ["Write tests."]


def test_after_a_compaction_inside_a_turn_it_is_given_at_once(agent, hooks):
    hooks.says["system_prompt"] = Inject("Write tests.")
    agent("UserPromptSubmit")
    agent("PreCompact")
    assert context(agent("SessionStart", source="compact")) == ["Write tests."]
    agent("PostCompact")
    assert context(agent("PostToolBatch")) == ["Write tests."]  # it was forgotten once more
    assert len(hooks.of("on_session_end")) == 0


def test_what_other_moments_inject_waits_for_the_next_one_that_takes_it(agent, hooks):
    agent("UserPromptSubmit")
    hooks.says["on_event"] = Inject("The file changed.")
    assert agent("InstructionsLoaded") == {}
    assert context(agent.tool()) == ["The file changed."]


def test_the_turn_goes_on_as_often_as_it_may(agent, hooks):
    hooks.says["on_turn_complete"] = Continue("Run the tests.")
    agent("UserPromptSubmit")
    answers = [agent("Stop", stop_hook_active=number > 0) for number in range(9)]
    assert [answer.get("decision") for answer in answers] == ["block"] * 8 + [None]
    assert answers[0]["reason"] == "Run the tests."
    assert [event.continued for event in hooks.of("on_turn_complete")] == list(range(9))
    assert len(hooks.of("post_turn")) == 1


def test_the_models_words_are_heard_once(agent, hooks):
    agent("UserPromptSubmit")
    agent("MessageDisplay")
    agent("Stop")
    assert [event.text for event in hooks.of("on_model_response")] == ["Finished."]
    agent("UserPromptSubmit")
    agent("Stop", last_assistant_message="Without display.")
    assert [event.text for event in hooks.of("on_model_response")][1:] == ["Without display."]


def test_a_message_in_pieces_is_one_message(agent, hooks):
    agent("UserPromptSubmit")
    for index, delta in enumerate(["Hel", "lo ", "there"]):
        agent("MessageDisplay", index=index, delta=delta, final=index == 2)
    assert [event.text for event in hooks.of("on_model_response")] == ["Hello there"]


def test_words_that_are_shown_can_be_changed(agent, hooks):
    hooks.says["on_model_response"] = Rewrite("[removed]")
    assert agent("MessageDisplay")["hookSpecificOutput"] == {"displayContent": "[removed]"}


def test_a_withheld_answer_that_is_shown_already_is_a_warning(agent, hooks):
    hooks.says["on_turn_complete"] = Block("It holds a key.")
    answer = agent("Stop")
    assert answer.keys() == {"systemMessage"} and "It holds a key." in answer["systemMessage"]


@pytest.mark.parametrize(
    ("timing", "answer"),
    [
        ("on_user_prompt_submit", Block("No keys.")),
        ("on_message_received", Block("No keys.")),
        ("on_message_received", Reply("No keys.")),
    ],
)
def test_a_prompt_can_be_refused(agent, hooks, timing, answer):
    hooks.says[timing] = answer
    told = agent("UserPromptSubmit")
    assert told["decision"] == "block" and "No keys." in told["reason"]
    assert not hooks.of("on_turn_start")


def test_a_blocked_session_takes_no_prompt(agent, hooks):
    hooks.says["on_session_start"] = Block("Not on Sundays.")
    assert "blocked" in agent("SessionStart")["systemMessage"]
    told = agent("UserPromptSubmit")
    assert told["decision"] == "block" and "Not on Sundays." in told["reason"]


def test_a_changed_prompt_is_a_warning_or_a_refusal(agent, tmp_path, hooks):
    hooks.says["on_message_received"] = Rewrite("other")
    told = agent("UserPromptSubmit")
    assert "wanted to change the prompt" in told["systemMessage"] and "decision" not in told
    closed = Hooks(closed=["on_message_received"])
    closed.says["on_message_received"] = Rewrite("other")
    told = Claude(tmp_path / "closed", closed)("UserPromptSubmit")
    assert told["decision"] == "block" and not closed.of("on_turn_start")


def test_a_failed_turn_is_an_error_and_ends(agent, hooks):
    agent("UserPromptSubmit")
    agent("StopFailure")
    (error,) = hooks.of("on_error")
    assert (error.error_type, error.message, error.phase) == (
        "unknown",
        "API Error: 400 MARK_APIERROR",
        "model",
    )
    assert hooks.of("post_turn")


def test_variables_reach_the_agents_commands(agent, hooks, tmp_path):
    file = tmp_path / "env.sh"
    agent.environ["CLAUDE_ENV_FILE"] = str(file)
    hooks.says["on_session_start"] = SetEnv({"NAME": "it's; $(touch x)", "bad name": "x"})
    told = agent("SessionStart")
    assert file.read_text() == "export NAME='it'\"'\"'s; $(touch x)'\n"
    assert "bad name" in told["systemMessage"]


def test_variables_without_a_file_are_a_warning(agent, hooks):
    hooks.says.update(on_session_start=SetEnv({"A": "b"}), on_turn_start=SetEnv({"C": "d"}))
    assert "A cannot be set" in agent("SessionStart")["systemMessage"]
    assert "C cannot be set" in agent("UserPromptSubmit")["systemMessage"]


def test_warnings_reach_the_user(agent, hooks):
    hooks.says["pre_tool_execution"] = Warn("Mind the gap.")
    assert agent.tool() == {"systemMessage": "Mind the gap."}


# -- sub-agents -------------------------------------------------------------------------------------

SUB = {"agent_id": "a61dc585865f7946d", "agent_type": "reviewer"}


def test_a_sub_agent_has_a_turn_of_its_own(agent, hooks):
    agent("UserPromptSubmit")
    hooks.says["system_prompt"] = lambda event: Inject(f"You are {event.agent}.")
    assert context(agent("SubagentStart", **SUB)) == ["You are reviewer."]
    agent.tool(**SUB)
    agent.done(**SUB)
    agent("SubagentStop", **SUB)
    seen = [event for event in hooks.events if event.agent_id]
    assert {(event.agent, event.agent_id, event.parent_agent) for event in seen} == {
        ("reviewer", SUB["agent_id"], "main")
    }
    assert [event.timing for event in seen] == [
        "on_event", "on_turn_start", "system_prompt", "on_tool_call_start", "pre_tool_execution",
        "post_tool_execution", "on_turn_complete", "post_turn", "on_event",
    ]  # fmt: skip
    assert [event.type for event in seen if event.timing == "on_event"] == ["subagent.start", "subagent.stop"]


def test_a_sub_agent_in_the_background_outlives_the_turn(agent, hooks):
    agent("UserPromptSubmit")
    agent("SubagentStart", **SUB)
    agent.tool(**SUB)
    task = {"id": SUB["agent_id"], "type": "subagent", "status": "running", "agent_type": "reviewer"}
    agent("Stop", background_tasks=[task])
    agent.done(**SUB)
    agent("SubagentStop", **SUB, background_tasks=[task])
    assert [post.status for post in hooks.of("post_tool_execution")] == ["ok"]
    assert [event.agent for event in hooks.of("on_turn_complete")] == ["main", "reviewer"]


def test_a_sub_agent_that_never_stopped_ends_with_the_turn(agent, hooks):
    agent("UserPromptSubmit")
    agent("SubagentStart", **SUB)
    agent.tool(**SUB)
    agent("Stop")
    assert [post.status for post in hooks.of("post_tool_execution")] == ["unknown"]
    assert [event.agent for event in hooks.of("on_turn_complete")] == ["reviewer", "main"]


def test_a_sub_agent_goes_on_when_a_hook_says_so(agent, hooks):
    agent("SubagentStart", **SUB)
    hooks.says["on_turn_complete"] = Continue("Read the tests, too.")
    assert agent("SubagentStop", **SUB)["reason"] == "Read the tests, too."


def test_a_helper_whose_start_is_not_told_only_tells_its_stop(agent, hooks):
    agent("SubagentStop", agent_id="inner", agent_type="")
    (event,) = hooks.of("on_event")
    assert event.type == "subagent.stop"
    assert not hooks.of("on_turn_complete")


def test_filters_by_agent_see_the_sub_agent(tmp_path):
    @hookimpl(agents=["reviewer"])
    def pre_tool_execution():
        return Deny("Reviewers run nothing.")

    plugin = type("Plugin", (), {"pre_tool_execution": staticmethod(pre_tool_execution)})()
    agent = Claude(tmp_path, plugin)
    assert agent.tool() == {}
    assert decision(agent.tool(call="toolu_2", **SUB))[0] == "deny"


# -- other events -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("event", "type"),
    [(row.event, row.type) for row in claude.EVENTS.values() if row.does in ("event", "compacted")],
)
def test_all_else_is_an_event_with_a_dotted_type(agent, hooks, event, type):
    agent(event)
    seen = hooks.of("on_event")[-1]
    assert seen.type == type
    assert seen.accepts == claude.EVENTS[event].accepts
    assert "session_id" not in seen.properties


@pytest.mark.parametrize("event", ["PreCompact", "ConfigChange", "TaskCreated", "UserPromptExpansion"])
@pytest.mark.parametrize("answer", [Deny("not now"), Block("not now")])
def test_what_can_be_blocked(agent, hooks, event, answer):
    hooks.says["on_event"] = answer
    told = agent(event)
    assert told["decision"] == "block" and "not now" in told["reason"]


def test_two_events_take_a_refusal_by_exit_code_only(agent, hooks):
    hooks.says["on_event"] = Deny("Tests are red.")
    answer = agent.send(captured("TaskCompleted"))
    assert (answer.exit_code, answer.stdout) == (2, b"")
    assert "Tests are red." in answer.stderr
    hooks.says["on_event"] = Continue("There is more to do.")
    answer = agent.send(captured("TeammateIdle"))
    assert (answer.exit_code, answer.stderr) == (2, "There is more to do.\n")


def test_a_switch_of_models_can_be_decided(agent, hooks):
    hooks.says["on_event"] = Ask("It is expensive.")
    assert decision(agent("PreModelSwitch")) == ("ask", "It is expensive.")


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (Reply({"name": "Ann"}), {"action": "accept", "content": {"name": "Ann"}}),
        (Deny("no"), {"action": "decline"}),
        (Block("no"), {"action": "decline"}),
    ],
)
def test_a_form_is_filled_in_or_refused(agent, hooks, answer, told):
    hooks.says["on_event"] = answer
    assert agent("Elicitation")["hookSpecificOutput"] == told


def test_a_worktree_is_made_by_the_hook_that_replies(agent, hooks):
    assert "take hookturn out" in agent.send(captured("WorktreeCreate")).stderr
    hooks.says["on_event"] = Reply("/tmp/tree")
    assert agent.send(captured("WorktreeCreate")).stdout == b"/tmp/tree\n"


def test_an_event_that_is_not_known_is_told_and_never_answered(agent, hooks):
    answer = agent.send({**captured("Stop"), "hook_event_name": "BrandNewThing", "secret_plan": 1})
    assert (answer.stdout, answer.exit_code) == (b"", 0)
    seen = hooks.of("on_event")[-1]
    assert (seen.type, seen.raw["secret_plan"]) == ("claude-code.brand_new_thing", 1)
