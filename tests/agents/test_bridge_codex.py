"""``bridge codex``: each event of Codex, what our hooks say to it, and what Codex is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from agent_calls import DATA, Agent, Hooks
from codex_answers import ANSWERS as TAKEN
from codex_answers import check

from hookturn import Allow, Ask, Block, Continue, Deny, Inject, Reply, Rewrite, Warn
from hookturn.agents.codex import hooks as codex


@pytest.fixture
def hooks():
    return Hooks()


@pytest.fixture
def agent(tmp_path, hooks):
    return Agent("codex", check, tmp_path, hooks)


def tool(agent, command="ls", call="call_1", **more):
    return agent("PreToolUse", tool_input={"command": command}, tool_use_id=call, **more)


def decision(data):
    own = data.get("hookSpecificOutput", {})
    return own.get("permissionDecision"), own.get("permissionDecisionReason", "")


def context(data):
    return data.get("hookSpecificOutput", {}).get("additionalContext", "")


# -- every event ------------------------------------------------------------------------------------


def test_the_table_knows_every_event_that_was_captured():
    assert {path.stem for path in (DATA / "codex").glob("*.json")} | {"Interrupt"} == set(codex.EVENTS)
    assert set(TAKEN) | {"SessionEnd"} == set(codex.EVENTS)


def test_an_event_of_a_later_version_is_told_and_may_warn(agent, hooks):
    hooks.says["on_event"] = Warn("look")
    said = agent.send({"hook_event_name": "ModelSwitch", "session_id": "s", "cwd": "/", "to": "x"})
    assert said.stdout == b'{"systemMessage": "look"}\n'
    (event,) = hooks.of("on_event")
    assert (event.type, event.properties["to"]) == ("codex.model_switch", "x")


# -- tool calls -------------------------------------------------------------------------------------


@pytest.mark.parametrize("timing", ["on_tool_call_start", "pre_tool_execution"])
def test_a_denied_call_is_denied_with_words_and_gets_its_post_from_the_bridge(agent, hooks, timing):
    hooks.says[timing] = Deny("No recursive delete.", advice="Name the files.")
    said, reason = decision(tool(agent, "rm -rf /"))
    assert said == "deny" and "No recursive delete." in reason and "Name the files." in reason
    (post,) = hooks.of("post_tool_execution")
    assert (post.call_id, post.status, post.by) == ("call_1", "denied", "hooks")
    agent("Stop")
    assert len(hooks.of("post_tool_execution")) == 1


def test_an_ask_is_a_deny_that_says_so(agent, hooks):
    hooks.says["pre_tool_execution"] = Ask("It touches production.")
    said, reason = decision(tool(agent))
    assert said == "deny" and "It touches production." in reason and "nobody to ask" in reason


def test_an_allow_has_no_effect(agent, hooks):
    hooks.says["pre_tool_execution"] = Allow("Reading is fine.")
    answered = agent.send(agent.payload("PreToolUse"))
    assert answered.stdout == b"" and "an Allow of hooks" in answered.stderr


def test_a_rewrite_is_allowed_beside_it(agent, hooks):
    hooks.says["pre_tool_execution"] = Rewrite(command="ls -a")
    assert tool(agent)["hookSpecificOutput"] == {
        "hookEventName": "PreToolUse",
        "permissionDecision": "allow",
        "updatedInput": {"command": "ls -a"},
    }
    agent("PostToolUse", tool_use_id="call_1")
    (post,) = hooks.of("post_tool_execution")
    assert post.command == "ls -a"


def test_a_block_refuses_the_turns_later_calls_too(agent, hooks):
    """``continue: false`` would void the answer."""
    hooks.says["pre_tool_execution"] = Block("enough")
    answered = agent.send(agent.payload("PreToolUse"))
    assert decision(check("PreToolUse", answered))[0] == "deny" and "later" not in answered.stderr
    assert "the end of the turn" in answered.stderr
    hooks.says.clear()
    assert decision(tool(agent, call="call_2"))[0] == "deny"
    agent("UserPromptSubmit")
    assert tool(agent, call="call_3") == {}


def test_a_reply_is_a_deny_with_the_value_as_reason(agent, hooks):
    hooks.says["pre_tool_execution"] = Reply("42 files")
    said, reason = decision(tool(agent))
    assert said == "deny" and "42 files" in reason
    (post,) = hooks.of("post_tool_execution")
    assert (post.status, post.result) == ("replied", "42 files")


def test_context_before_a_tool(agent, hooks):
    agent("UserPromptSubmit")
    hooks.says["on_model_response"] = Inject("from the last answer")
    agent("Stop", last_assistant_message="words")
    hooks.says.clear()
    assert "from the last answer" in context(agent("UserPromptSubmit"))


def test_a_changed_result_replaces_what_the_model_sees(agent, hooks):
    tool(agent)
    hooks.says["post_tool_execution"] = lambda event: [Rewrite(result_text="[cut]"), Inject("It was long.")]
    data = agent("PostToolUse", tool_use_id="call_1")
    assert (data["decision"], data["reason"], context(data)) == ("block", "[cut]", "It was long.")


def test_a_result_that_becomes_empty_has_words_all_the_same(agent, hooks):
    tool(agent)
    hooks.says["post_tool_execution"] = Rewrite(result="")
    assert agent("PostToolUse", tool_use_id="call_1")["reason"] == "(no output)"


def test_a_result_of_mcp_is_replaced_by_its_text(agent, hooks):
    response = {"content": [{"type": "text", "text": "secret"}], "isError": True}
    fields = {"tool_name": "mcp__demo__echo", "tool_input": {"message": "x"}}
    agent("PreToolUse", tool_use_id="call_1", **fields)
    hooks.says["post_tool_execution"] = Rewrite(result_text="***")
    assert agent("PostToolUse", tool_use_id="call_1", tool_response=response, **fields)["reason"] == "***"
    (post,) = hooks.of("post_tool_execution")
    assert (post.status, post.mcp) == ("error", ("demo", "echo"))


def test_a_withheld_result_never_reaches_the_model(agent, hooks):
    tool(agent)
    hooks.says["post_tool_execution"] = Deny("It has a key in it.")
    data = agent("PostToolUse", tool_use_id="call_1", tool_response="the key")
    assert data["decision"] == "block" and "It has a key in it." in data["reason"]
    assert "the key" not in str(data)


def test_a_patch_that_codex_tells_no_end_of_ends_with_the_turn(agent, hooks):
    patch = "*** Begin Patch\n*** Add File: src/new.py\n+hello\n*** End Patch"
    agent("PreToolUse", tool_name="apply_patch", tool_input={"command": patch}, tool_use_id="call_1")
    (pre,) = hooks.of("pre_tool_execution")
    assert (pre.kind, [str(path) for path in pre.paths]) == ("write", ["/src/new.py"])
    agent("Stop")
    assert [(post.call_id, post.status) for post in hooks.of("post_tool_execution")] == [
        ("call_1", "unknown")
    ]


# -- permissions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("said", "told"),
    [(Allow("fine"), {"behavior": "allow"}), (Deny("no"), "deny"), (None, None)],
    ids=["allow", "deny", "nothing"],
)
def test_permission_requests_belong_to_their_call(agent, hooks, said, told):
    tool(agent, "make")
    hooks.says["on_permission_request"] = said
    request = {"command": "make", "description": "It must write outside."}
    data = agent("PermissionRequest", tool_input=request)
    got = data.get("hookSpecificOutput", {}).get("decision")
    assert got == told if told != "deny" else got["behavior"] == "deny" and "no" in got["message"]
    (seen,) = hooks.of("on_permission_request")
    assert (seen.call_id, seen.args, seen.reason) == ("call_1", {"command": "make"}, "It must write outside.")
    if told == "deny":
        assert [post.status for post in hooks.of("post_tool_execution")] == ["denied"]


# -- prompts, turns, sessions -----------------------------------------------------------------------


@pytest.mark.parametrize("timing", ["on_message_received", "on_user_prompt_submit"])
def test_a_blocked_prompt(agent, hooks, timing):
    hooks.says[timing] = Block("Not today.")
    data = agent("UserPromptSubmit")
    assert data["decision"] == "block" and "Not today." in data["reason"]
    assert not hooks.of("on_turn_start")


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_a_prompt_cannot_be_changed(tmp_path, closed):
    hooks = Hooks(closed=["on_message_received"] if closed else [])
    hooks.says["on_message_received"] = Rewrite("other words")
    data = Agent("codex", check, tmp_path, hooks)("UserPromptSubmit")
    if closed:
        assert data["decision"] == "block" and "fails closed" in data["reason"]
    else:
        assert "wanted to change the prompt" in data["systemMessage"] and "decision" not in data


def test_a_blocked_session_refuses_its_prompts(agent, hooks):
    hooks.says["on_session_start"] = Block("closed")
    assert "prompts are refused" in agent("SessionStart")["systemMessage"]
    assert agent("UserPromptSubmit")["decision"] == "block"


def test_what_the_model_should_know_is_given_once_and_after_compaction_again(agent, hooks):
    hooks.says["system_prompt"] = Inject("Rules.")
    assert context(agent("SessionStart")) == ""
    assert context(agent("UserPromptSubmit")) == "Rules."
    tool(agent)
    assert context(agent("PostToolUse", tool_use_id="call_1")) == ""
    agent("PreCompact")
    assert agent("PostCompact") == {}
    assert context(agent("SessionStart", source="compact")) == "Rules."
    assert [event.type for event in hooks.of("on_event")] == ["compaction.before", "compaction.after"]
    assert not hooks.of("on_session_end"), "the session goes on"


def test_a_denied_compaction_stops(agent, hooks):
    hooks.says["on_event"] = Deny("keep it")
    agent("UserPromptSubmit")
    data = agent("PreCompact")
    assert data["continue"] is False and "keep it" in data["stopReason"]


def test_an_interrupted_turn_ends_once(agent, hooks):
    agent("UserPromptSubmit")
    tool(agent)
    hooks.says["on_turn_complete"] = Continue("more")
    data = agent("Interrupt")
    assert set(data) <= {"systemMessage"}
    assert [post.status for post in hooks.of("post_tool_execution")] == ["unknown"]
    assert len(hooks.of("post_turn")) == 1


def test_a_turn_that_goes_on_is_capped_by_us(tmp_path, hooks):
    """Codex has no cap: 527 rounds in 25 s, as run."""
    agent = Agent("codex", check, tmp_path, hooks, max_continue=3)
    agent("UserPromptSubmit")
    hooks.says["on_turn_complete"] = Continue("The tests fail.")
    rounds = [agent("Stop", stop_hook_active=number > 0) for number in range(5)]
    assert [data.get("reason") for data in rounds[:3]] == ["The tests fail."] * 3
    assert "decision" not in rounds[3] and "limit" in rounds[3]["systemMessage"]


def test_sub_agents_have_turns_of_their_own_that_outlive_the_main_turn(agent, hooks):
    sub = {"agent_id": "sub-1", "agent_type": "default"}
    agent("UserPromptSubmit")
    hooks.says["system_prompt"] = Inject("Rules.")
    assert context(agent("SubagentStart", **sub)) == "Rules."
    agent("UserPromptSubmit", prompt="SUBTASK", **sub)
    assert [event.text for event in hooks.of("on_message_received")] == ["please do the task"]
    tool(agent, call="call_sub", **sub)
    agent("Stop")
    assert not hooks.of("post_tool_execution"), "it goes on in the background"
    agent("PostToolUse", tool_use_id="call_sub", **sub)
    agent("SubagentStop", **sub)
    (post,) = hooks.of("post_tool_execution")
    assert (post.status, post.agent, post.agent_id) == ("ok", "default", "sub-1")
    assert [event.agent_id or "" for event in hooks.of("on_turn_complete")] == ["", "sub-1"]
    assert [event.type for event in hooks.of("on_event")] == ["subagent.start", "subagent.stop"]


def test_a_sub_agent_may_be_made_to_go_on(agent, hooks):
    sub = {"agent_id": "sub-1", "agent_type": "default"}
    agent("SubagentStart", **sub)
    hooks.says["on_turn_complete"] = Continue("Not yet.")
    assert agent("SubagentStop", **sub) == {"decision": "block", "reason": "Not yet."}


def test_a_session_that_never_ended_is_ended_by_its_end(agent, hooks):
    sub = {"agent_id": "sub-1", "agent_type": "default"}
    agent("UserPromptSubmit")
    agent("SubagentStart", **sub)
    tool(agent, call="call_sub", **sub)
    assert agent("SessionEnd") == {}
    assert [post.status for post in hooks.of("post_tool_execution")] == ["unknown"]
    (end,) = hooks.of("on_session_end")
    assert end.reason == "other"


def test_the_short_limits_are_known():
    assert {event for event, row in codex.EVENTS.items() if row.seconds <= 3} == {"SessionEnd", "Interrupt"}


def test_who_has_an_entry(tmp_path):
    home, project = tmp_path / "home", tmp_path / "project"
    (home / ".codex").mkdir(parents=True)
    environ = {"HOME": str(home)}
    assert not codex.has_entry("Stop", str(project), environ)
    (home / ".codex/hooks.json").write_text('{"hooks": {"Stop": [{"hooks": [{"command": "./mine.sh"}]}]}}')
    assert not codex.has_entry("Stop", str(project), environ)
    (home / ".codex/config.toml").write_text('[[hooks.Stop.hooks]]\ncommand = "hookturn bridge codex"\n')
    assert codex.has_entry("Stop", str(project), environ)
    assert not codex.has_entry("Stop", str(project), {"HOME": str(home), "CODEX_HOME": str(tmp_path)})
