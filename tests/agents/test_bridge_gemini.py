"""``bridge gemini``: each event of Gemini CLI, what our hooks say to it, and what Gemini CLI is told."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from agent_calls import DATA, Agent, Hooks
from gemini_answers import ANSWERS as TAKEN
from gemini_answers import check

from hookturn import Allow, Ask, Block, Continue, Deny, Inject, Reply, Rewrite, SetEnv, Warn
from hookturn.agents.gemini import hooks as gemini


@pytest.fixture
def hooks():
    return Hooks()


@pytest.fixture
def agent(tmp_path, hooks):
    return Agent("gemini", check, tmp_path, hooks)


def shell(command="ls"):
    return {"command": command, "description": "Run", "is_background": False}


def tool(agent, command="ls", **more):
    return agent("BeforeTool", tool_input=shell(command), **more)


def done(agent, command="ls", **more):
    return agent("AfterTool", tool_input=shell(command), **more)


def context(data):
    return data.get("hookSpecificOutput", {}).get("additionalContext", "")


# -- every event ------------------------------------------------------------------------------------


def test_the_table_knows_every_event():
    assert {path.stem for path in (DATA / "gemini").glob("*.json")} == set(gemini.EVENTS) == set(TAKEN)


def test_an_event_of_a_later_version_is_told_and_may_warn(agent, hooks):
    hooks.says["on_event"] = Warn("look")
    said = agent.send({"hook_event_name": "BeforeLunch", "session_id": "s", "cwd": "/", "dish": "x"})
    assert said.stdout == b'{"systemMessage": "look"}\n'
    (event,) = hooks.of("on_event")
    assert (event.type, event.properties) == ("gemini.before_lunch", {"dish": "x"})


def test_which_events_are_installed():
    """Those of each request and each chunk would hold the model up."""
    assert {event for event, row in gemini.EVENTS.items() if not row.install} == {
        "BeforeModel", "AfterModel", "BeforeToolSelection", "PreCompress",
    }  # fmt: skip


# -- tool calls -------------------------------------------------------------------------------------


@pytest.mark.parametrize("timing", ["on_tool_call_start", "pre_tool_execution"])
def test_a_denied_call_is_denied_with_words_and_gets_its_post_from_the_bridge(agent, hooks, timing):
    hooks.says[timing] = Deny("No recursive delete.", advice="Name the files.")
    data = tool(agent, "rm -rf /")
    assert data["decision"] == "deny" and "No recursive delete." in data["reason"]
    assert "Name the files." in data["reason"]
    (post,) = hooks.of("post_tool_execution")
    assert (post.status, post.by) == ("denied", "hooks")
    agent("AfterAgent")
    assert len(hooks.of("post_tool_execution")) == 1


def test_an_ask_is_a_deny_that_says_so(agent, hooks):
    """Gemini CLI waits for ever for an answer where nobody sits, as run."""
    hooks.says["pre_tool_execution"] = Ask("It touches production.")
    data = tool(agent)
    assert data["decision"] == "deny" and "nobody to ask" in data["reason"]


def test_an_allow_has_no_effect(agent, hooks):
    hooks.says["pre_tool_execution"] = Allow("Reading is fine.")
    answered = agent.send(agent.payload("BeforeTool"))
    assert answered.stdout == b"{}\n" and "an Allow of hooks" in answered.stderr


def test_a_rewrite_sends_the_whole_input(agent, hooks):
    hooks.says["pre_tool_execution"] = Rewrite(command="ls -a")
    assert tool(agent)["hookSpecificOutput"]["tool_input"] == shell("ls -a")
    done(agent, "ls -a")
    (post,) = hooks.of("post_tool_execution")
    (pre,) = hooks.of("pre_tool_execution")
    assert (post.command, post.call_id) == ("ls -a", pre.call_id)


def test_a_rewrite_may_take_an_argument_out(agent, hooks):
    """The input is replaced as a whole, as run."""
    hooks.says["pre_tool_execution"] = Rewrite(args={"command": "ls"})
    assert tool(agent)["hookSpecificOutput"]["tool_input"] == {"command": "ls"}
    agent("AfterTool", tool_input={"command": "ls"})
    (post,) = hooks.of("post_tool_execution")
    assert post.call_id == hooks.of("pre_tool_execution")[0].call_id


def test_a_block_denies_and_ends_the_turn(agent, hooks):
    hooks.says["pre_tool_execution"] = Block("enough")
    data = tool(agent)
    assert (data["decision"], data["continue"]) == ("deny", False) and "enough" in data["stopReason"]
    hooks.says.clear()
    assert tool(agent, "second")["decision"] == "deny"
    agent("BeforeAgent")
    assert tool(agent) == {}


def test_a_reply_is_a_deny_with_the_value_as_reason(agent, hooks):
    hooks.says["pre_tool_execution"] = Reply("42 files")
    data = tool(agent)
    assert data["decision"] == "deny" and "42 files" in data["reason"]
    (post,) = hooks.of("post_tool_execution")
    assert (post.status, post.result) == ("replied", "42 files")


def test_context_that_comes_before_a_tool_is_given_after_it(agent, hooks):
    agent("BeforeAgent")
    hooks.says["on_model_response"] = Inject("Remember.")
    agent("AfterModel")
    hooks.says.clear()
    assert tool(agent) == {}
    assert context(done(agent)) == "Remember."


def test_a_changed_result_reaches_the_model_as_a_reason_with_the_context_in_it(agent, hooks):
    tool(agent)
    hooks.says["post_tool_execution"] = lambda event: [Rewrite(result_text="[cut]"), Inject("It was long.")]
    assert done(agent) == {"decision": "deny", "reason": "[cut]\n\nIt was long."}


def test_a_result_that_becomes_empty_has_words_all_the_same(agent, hooks):
    tool(agent)
    hooks.says["post_tool_execution"] = Rewrite(result="")
    assert done(agent)["reason"] == "(no output)"


def test_a_withheld_result_never_reaches_the_model(agent, hooks):
    tool(agent)
    hooks.says["post_tool_execution"] = Deny("It has a key in it.")
    data = done(agent, tool_response={"llmContent": "the key", "returnDisplay": "the key"})
    assert data["decision"] == "deny" and "It has a key in it." in data["reason"]
    assert "the key" not in str(data)


def test_context_after_a_tool(agent, hooks):
    tool(agent)
    hooks.says["post_tool_execution"] = Inject("Run the tests.")
    assert context(done(agent)) == "Run the tests."


def test_how_a_call_ended(agent, hooks):
    tool(agent)
    failed = {"llmContent": "no such file", "returnDisplay": "x", "error": {"message": "ENOENT", "type": "t"}}
    done(agent, tool_response=failed)
    (post,) = hooks.of("post_tool_execution")
    assert (post.status, post.error, post.result_text) == ("error", "ENOENT", "no such file")


def test_the_mcp_server_is_known_even_when_its_name_has_an_underscore(agent, hooks):
    about = {"server_name": "my_demo", "tool_name": "echo", "command": "x"}
    agent("BeforeTool", tool_name="mcp_my_demo_echo", tool_input={"a": 1}, mcp_context=about)
    assert hooks.of("pre_tool_execution")[0].mcp == ("my_demo", "echo")


def test_two_calls_at_once_are_told_apart_by_their_arguments(agent, hooks):
    tool(agent, "first")
    tool(agent, "second")
    done(agent, "second")
    done(agent, "first")
    pres, posts = hooks.of("pre_tool_execution"), hooks.of("post_tool_execution")
    assert [post.call_id for post in posts] == [pre.call_id for pre in reversed(pres)]
    assert [post.command for post in posts] == ["second", "first"]


# -- prompts, turns, sessions -----------------------------------------------------------------------


@pytest.mark.parametrize("timing", ["on_message_received", "on_user_prompt_submit"])
def test_a_blocked_prompt(agent, hooks, timing):
    hooks.says[timing] = Block("Not today.")
    data = agent("BeforeAgent")
    assert data["decision"] == "deny" and "Not today." in data["reason"]
    assert not hooks.of("on_turn_start")


@pytest.mark.parametrize("closed", [False, True], ids=["open", "closed"])
def test_a_prompt_cannot_be_changed(tmp_path, closed):
    hooks = Hooks(closed=["on_message_received"] if closed else [])
    hooks.says["on_message_received"] = Rewrite("other words")
    data = Agent("gemini", check, tmp_path, hooks)("BeforeAgent")
    if closed:
        assert data["decision"] == "deny" and "fails closed" in data["reason"]
    else:
        assert "wanted to change the prompt" in data["systemMessage"] and "decision" not in data


def test_a_blocked_session_refuses_its_prompts(agent, hooks):
    hooks.says["on_session_start"] = Block("closed")
    assert "prompts are refused" in agent("SessionStart")["systemMessage"]
    assert agent("BeforeAgent")["decision"] == "deny"


def test_variables_cannot_be_set_and_that_is_said(agent, hooks):
    hooks.says["on_session_start"] = SetEnv({"A": "b"})
    assert "A cannot be set" in agent("SessionStart")["systemMessage"]


def test_what_the_model_should_know_is_given_once(agent, hooks):
    hooks.says["system_prompt"] = Inject("Rules.")
    agent("SessionStart")
    assert context(agent("BeforeAgent")) == "Rules."
    tool(agent)
    assert context(done(agent)) == ""
    hooks.says["system_prompt"] = lambda event: [Inject("Rules."), Inject("More rules.")]
    tool(agent)
    assert "More rules." in context(done(agent))
    agent("AfterAgent")
    agent("SessionEnd", reason="clear")
    agent("SessionStart", source="clear")
    assert "Rules." in context(agent("BeforeAgent"))


def test_a_turn_that_goes_on_is_capped_by_us(tmp_path, hooks):
    """Gemini CLI has no cap, as run. It tells the words to go on with as if the user had said them."""
    agent = Agent("gemini", check, tmp_path, hooks, max_continue=3)
    agent("BeforeAgent")
    hooks.says["on_turn_complete"] = Continue("The tests fail.")
    for number in range(3):
        assert agent("AfterAgent", stop_hook_active=number > 0) == {
            "decision": "deny",
            "reason": "The tests fail.",
        }
        agent("BeforeAgent", prompt="The tests fail.")
    last = agent("AfterAgent")
    assert "decision" not in last and "limit" in last["systemMessage"]
    assert [event.text for event in hooks.of("on_message_received")] == ["please do the task"]
    assert len(hooks.of("post_turn")) == 1


def test_a_session_has_an_end(agent, hooks):
    agent("BeforeAgent")
    tool(agent)
    assert agent("SessionEnd") == {}
    assert [post.status for post in hooks.of("post_tool_execution")] == ["unknown"]
    assert [end.reason for end in hooks.of("on_session_end")] == ["exit"]


# -- the model --------------------------------------------------------------------------------------


def chunk(agent, text, last=False, messages=1, **more):
    return agent(
        "AfterModel",
        llm_request={"model": "gemini-2.5-flash", "messages": [{"role": "user", "content": "x"}] * messages},
        llm_response={
            "text": text,
            "candidates": [
                {"content": {"role": "model", "parts": [text]}, "finishReason": "STOP" if last else None}
            ],
            "usageMetadata": {"totalTokenCount": 3},
        },
        **more,
    )


def test_the_answer_comes_once_where_nobody_tells_its_chunks(agent, hooks):
    agent("BeforeAgent")
    agent("AfterAgent", prompt_response="All the words.")
    assert [event.text for event in hooks.of("on_model_response")] == ["All the words."]


def test_chunks_are_put_together(agent, hooks):
    agent("BeforeAgent")
    assert chunk(agent, "All ") == {}
    assert not hooks.of("on_model_response")
    chunk(agent, "the words.", last=True)
    agent("AfterAgent", prompt_response="All the words.")
    (response,) = hooks.of("on_model_response")
    assert (response.text, response.model) == ("All the words.", "gemini-2.5-flash")


def test_a_cut_answer_does_not_mix_with_the_next(agent, hooks):
    agent("BeforeAgent")
    chunk(agent, "cut off")
    chunk(agent, "Whole.", last=True, messages=3)
    assert [event.text for event in hooks.of("on_model_response")] == ["Whole."]


def test_an_answer_in_one_chunk_can_be_changed(agent, hooks):
    hooks.says["on_model_response"] = Rewrite("Other words.")
    response = chunk(agent, "Words.", last=True)["hookSpecificOutput"]["llm_response"]
    assert (response["text"], response["candidates"][0]["content"]["parts"]) == (
        "Other words.",
        ["Other words."],
    )
    assert response["usageMetadata"] == {"totalTokenCount": 3}
    chunk(agent, "In ", messages=3)
    assert "shown already" in chunk(agent, "two.", last=True, messages=3)["systemMessage"]


def test_a_blocked_answer_ends_the_turn(agent, hooks):
    hooks.says["on_model_response"] = Block("It says too much.")
    data = chunk(agent, "Words.", last=True)
    assert data["continue"] is False and "It says too much." in data["stopReason"]
    assert tool(agent)["decision"] == "deny"


def test_a_request_may_be_answered_in_place_of_the_model_or_refused(agent, hooks):
    hooks.says["on_event"] = lambda event: Reply("Made up.") if event.type == "model.request" else None
    own = agent("BeforeModel")["hookSpecificOutput"]
    assert own["llm_response"]["candidates"][0]["content"]["parts"] == ["Made up."]
    hooks.says["on_event"] = Deny("Too dear.")
    assert "Too dear." in agent("BeforeModel")["reason"]


def test_the_tools_of_a_request(agent, hooks):
    hooks.says["on_event"] = Reply({"mode": "NONE", "allowedFunctionNames": []})
    assert agent("BeforeToolSelection")["hookSpecificOutput"]["toolConfig"]["mode"] == "NONE"
    hooks.says["on_event"] = Reply("none")
    answered = agent.send(agent.payload("BeforeToolSelection"))
    assert check("BeforeToolSelection", answered) == {} and "must be an object" in answered.stderr


def test_compression_is_only_possible(agent, hooks):
    agent("PreCompress")
    (event,) = hooks.of("on_event")
    assert (event.type, event.properties) == ("compaction.possible", {"trigger": "auto"})


def test_a_notification_is_told(agent, hooks):
    agent("Notification")
    (event,) = hooks.of("on_event")
    assert (event.type, event.properties["notification_type"]) == ("notification", "ToolPermission")


def test_who_has_an_entry(tmp_path):
    home, project = tmp_path / "home", tmp_path / "project"
    (project / ".gemini").mkdir(parents=True)
    assert not gemini.has_entry("BeforeTool", str(project), {"HOME": str(home)})
    (project / ".gemini/settings.json").write_text(
        '{"hooks": {"BeforeTool": [{"hooks": [{"command": "/opt/v/bin/hookturn bridge gemini"}]}]}}'
    )
    assert gemini.has_entry("BeforeTool", str(project), {"HOME": str(home)})
