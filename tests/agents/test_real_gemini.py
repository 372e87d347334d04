"""The real Gemini CLI against a scripted model: what our hooks decide is what happens."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "fake_model"))

from agent_programs import GEMINI, GEMINI_CONFIG
from agent_user import User

from hookturn.agents.gemini import hooks as gemini

pytestmark = pytest.mark.agents

END = {"text": "Finished."}
INSTALLED = [event for event, row in gemini.EVENTS.items() if row.install]


@pytest.fixture
def user(tmp_path):
    user = User(tmp_path, GEMINI)
    configure(user, INSTALLED)
    return user


def configure(user, events):
    user.write(".gemini/settings.json", {**GEMINI_CONFIG, "hooks": user.handlers(events, unit=1000)})


def told(out, number):
    """What a request tells the model of its calls."""
    parts = [part for content in out.requests[number]["contents"] for part in content["parts"]]
    return [part["functionResponse"]["response"] for part in parts if "functionResponse" in part]


def test_a_session_is_seen_from_start_to_end(user):
    out = user.go([{"shell": "echo hello > ran.txt; cat ran.txt"}, END])
    assert out.stdout.strip() == "Finished."
    assert [event["timing"] for event in user.events] == [
        "on_session_start", "on_message_received", "on_user_prompt_submit", "on_turn_start", "system_prompt",
        "on_tool_call_start", "pre_tool_execution", "post_tool_execution", "system_prompt", "on_model_response",
        "on_turn_complete", "post_turn", "on_session_end",
    ]  # fmt: skip
    assert len({event["session_id"] for event in user.events}) == 1
    (post,) = user.of("post_tool_execution")
    assert (post["status"], post["kind"], post["turn"]) == ("ok", "bash", 1)
    assert "hello" in post["result_text"]
    (end,) = user.of("on_turn_complete")
    assert end["text"] == "Finished." and end["tool_calls"][0]["call_id"] == post["call_id"]
    assert [event["raw"]["hook_event_name"] for event in user.events if "raw" in event][-1] == "SessionEnd"
    assert [(row["timing"], row["status"]) for row in user.audit] == [("post_tool_execution", "ok")]


def test_a_denied_tool_does_not_run_and_the_model_reads_why(user):
    user.say(pre_tool_execution={"Deny": {"reason": "No writes today.", "advice": "Ask tomorrow."}})
    out = user.go([{"shell": "touch ran.txt"}, END])
    assert not user.ran()
    (error,) = told(out, 1)
    assert "No writes today." in error["error"] and "Ask tomorrow." in error["error"]
    (post,) = user.of("post_tool_execution")
    assert (post["status"], post["by"]) == ("denied", "scripted")
    assert [(row["timing"], row["decision"]) for row in user.audit][:1] == [("pre_tool_execution", "deny")]


def test_an_ask_is_a_deny_and_nobody_waits(user):
    user.say(pre_tool_execution={"Ask": "Really?"})
    out = user.go([{"shell": "touch ran.txt"}, END])
    assert not user.ran() and "Really?" in told(out, 1)[0]["error"]


def test_rewritten_arguments_are_what_runs_and_nothing_else(user):
    user.say(pre_tool_execution={"Rewrite": {"args": {"command": "echo changed > ran.txt"}}})
    user.go([{"shell": "echo original > ran.txt"}, END])
    assert (user.project / "ran.txt").read_text() == "changed\n"
    (post,) = user.of("post_tool_execution")
    assert post["raw"]["tool_input"] == {"command": "echo changed > ran.txt"}, "the input was not merged"
    assert post["call_id"] == user.of("pre_tool_execution")[0]["call_id"]


def test_a_block_ends_the_turn(user):
    user.say(pre_tool_execution={"Block": "enough"})
    out = user.go([{"shell": "touch ran.txt"}, {"shell": "touch again.txt"}, END])
    assert not user.ran() and not user.ran("again.txt")
    assert len(out.requests) == 1
    assert user.of("on_turn_complete") and user.of("on_session_end")


def test_texts_of_hooks_reach_the_models_next_request(user):
    user.say(
        system_prompt={"Inject": "STANDING RULES"},
        on_message_received={"Inject": "ABOUT THE PROMPT"},
        post_tool_execution={"Inject": "ABOUT THE TOOL"},
    )
    out = user.go([{"shell": "true"}, END])
    first, second = out.request(0), out.request(1)
    assert "STANDING RULES" in first and "ABOUT THE PROMPT" in first
    assert "ABOUT THE TOOL" in second and second.count("STANDING RULES") == 1


def test_a_changed_result_is_what_the_model_reads_with_the_context(user):
    user.say(post_tool_execution={"Rewrite": {"result_text": "CHANGED"}, "Inject": "Why so?"})
    out = user.go([{"shell": "printf 'SEC%s' RET"}, END])
    assert told(out, 1) == [{"error": "CHANGED\n\nWhy so?"}]
    assert "SECRET" not in out.request(1)


def test_a_blocked_prompt_asks_no_model(user):
    user.say(on_user_prompt_submit={"Block": "Not today."})
    out = user.go([END])
    assert out.requests == [] and "Not today." in out.stderr
    assert user.of("on_session_end")


def test_a_turn_that_hooks_let_go_on_has_our_cap(user):
    user.say(on_turn_complete={"Continue": "The tests fail."})
    out = user.go([{"text": "one"}])
    assert len(out.requests) == 9 and "The tests fail." in out.request(1)
    assert len(user.of("on_turn_complete")) == 9
    assert len(user.of("post_turn")) == len(user.of("on_message_received")) == 1


def test_a_sub_agents_tools_are_denied_too(user):
    user.say(pre_tool_execution=[{"when": {"tool": "run_shell_command"}, "answer": {"Deny": "No shell."}}])
    finish = {"tool": "complete_task", "args": {"result": {"response": "done"}}}
    user.go(
        {
            "SUBTASK": [{"shell": "touch ran.txt"}, finish],
            "": [
                {"tool": "invoke_agent", "args": {"agent_name": "generalist", "prompt": "SUBTASK now"}},
                END,
            ],
        }
    )
    assert not user.ran()
    posts = {post["tool"]: post["status"] for post in user.of("post_tool_execution")}
    assert (posts["run_shell_command"], posts["invoke_agent"]) == ("denied", "ok")


def test_every_event_where_somebody_enters_them_all(user):
    configure(user, gemini.EVENTS)
    user.say(
        on_model_response=[{"when": {"text": "one"}, "answer": {"Rewrite": "OTHER WORDS"}}],
        on_event=[{"when": {"type": "model.tools"}, "answer": {"Reply": {"mode": "NONE"}}}],
    )
    out = user.go([{"text": "one"}])
    assert out.stdout.strip() == "OTHER WORDS"
    assert out.requests[0]["toolConfig"]["functionCallingConfig"]["mode"] == "NONE"
    assert [event["type"] for event in user.of("on_event")] == [
        "compaction.possible", "model.request", "model.tools",
    ]  # fmt: skip
    assert [event["text"] for event in user.of("on_model_response")] == ["one"]


def test_an_answer_in_place_of_the_model(user):
    configure(user, [*INSTALLED, "BeforeModel"])
    user.say(on_event=[{"when": {"type": "model.request"}, "answer": {"Reply": "MADE UP"}}])
    out = user.go([{"text": "one"}])
    assert (out.requests, out.stdout.strip()) == ([], "MADE UP")


def test_what_install_writes_is_what_gemini_runs(user):
    user.write(".gemini/settings.json", GEMINI_CONFIG)
    installed = subprocess.run(
        [*user.bridge.split()[:-1], "install", "gemini", "--user", "--yes"],
        cwd=user.project, env=user.env, capture_output=True, text=True,
    )  # fmt: skip
    assert installed.returncode == 0, installed.stderr
    settings = json.loads((user.home / ".gemini/settings.json").read_text())
    assert set(settings["hooks"]) == set(INSTALLED)
    user.say(pre_tool_execution={"Deny": "No writes today."})
    user.go([{"shell": "touch ran.txt"}, END], env={"HOOKTURN_SERVE_IDLE": "1"})
    assert not user.ran()
    assert user.of("on_session_end")
