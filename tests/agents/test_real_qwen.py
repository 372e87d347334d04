"""The real Qwen Code against a scripted model: what our hooks decide is what happens. Run by ``make agents-more``."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "fake_model"))

from agent_programs import QWEN, QWEN_CONFIG
from agent_user import USER_HOOKS
from agent_user import User as AnyUser

from hookturn.agents.qwen import hooks as qwen

pytestmark = [
    pytest.mark.agents,
    pytest.mark.skipif(not os.environ.get("HOOKTURN_AGENTS_MORE"), reason="needs Node 22: make agents-more"),
]

RUN = [{"shell": "echo hello > ran.txt; cat ran.txt"}, {"text": "Finished."}]
SUB = {
    "tool": "agent",
    "args": {"description": "d", "prompt": "SUB_TASK now", "subagent_type": "general-purpose"},
}


class User(AnyUser):
    """A user of Qwen Code whose settings call the bridge."""

    def __init__(self, base, hook=""):
        base.mkdir(exist_ok=True)
        super().__init__(base, QWEN)
        self.hooks(USER_HOOKS + hook)
        events = [event for event, row in qwen.EVENTS.items() if row.install]
        self.write(".qwen/settings.json", {**QWEN_CONFIG, "hooks": self.handlers(events)})

    @property
    def timings(self):
        return [event["timing"] for event in self.events]

    def qwen(self, script, **more):
        return self.go(script, **more)


@pytest.fixture
def user(tmp_path):
    return User(tmp_path)


def test_a_session_is_seen_and_its_end_is_supplied_when_the_next_one_starts(user):
    out = user.qwen(RUN)
    assert "Finished." in out.stdout and user.ran()
    assert [timing for timing in user.timings if timing != "on_event"] == [
        "on_session_start", "on_message_received", "on_user_prompt_submit", "on_turn_start", "system_prompt",
        "on_tool_call_start", "pre_tool_execution", "post_tool_execution", "system_prompt", "on_model_response",
        "on_turn_complete", "post_turn",
    ]  # fmt: skip
    (pre,), (post,) = user.of("pre_tool_execution"), user.of("post_tool_execution")
    assert pre["call_id"] == post["call_id"] and post["call_id"].startswith("call_")
    assert (post["status"], post["kind"], post["turn"]) == ("ok", "bash", 1)
    assert "hello" in post["result_text"]
    assert user.of("on_turn_complete")[0]["text"] == "Finished."
    first = user.events[0]["session_id"]
    user.qwen([{"text": "Again."}])
    (end,) = user.of("on_session_end")
    assert (end["session_id"], end["reason"]) == (first, "unknown")
    assert [(row["timing"], row["status"]) for row in user.audit] == [("post_tool_execution", "ok")]


def test_a_denied_tool_does_not_run_and_the_model_reads_why(user):
    user.say(pre_tool_execution={"Deny": {"reason": "No writes today.", "advice": "Ask tomorrow."}})
    out = user.qwen([{"shell": "touch ran.txt"}, {"text": "Finished."}])
    assert not user.ran()
    assert "No writes today." in out.request(1) and "Ask tomorrow." in out.request(1)
    (post,) = user.of("post_tool_execution")
    assert (post["status"], post["by"]) == ("denied", "scripted")
    assert [(row["timing"], row["decision"]) for row in user.audit][:1] == [("pre_tool_execution", "deny")]


def test_an_ask_that_nobody_can_answer_is_a_no(user):
    user.say(pre_tool_execution={"Ask": "Really?"})
    user.qwen([{"shell": "touch ran.txt"}, {"text": "Finished."}])
    assert not user.ran()


def test_arguments_cannot_be_rewritten(tmp_path):
    """The call goes on as it was, unless the hook fails closed."""
    rewrite = {"Rewrite": {"command": "echo changed > ran.txt"}}
    script = [{"shell": "echo original > ran.txt"}, {"text": "Finished."}]
    user = User(tmp_path / "open")
    user.say(pre_tool_execution=rewrite)
    user.qwen(script)
    assert (user.project / "ran.txt").read_text() == "original\n"
    user = User(tmp_path / "closed", hook="    on_failure: deny\n")
    user.say(pre_tool_execution=rewrite)
    out = user.qwen(script)
    assert not user.ran() and "fails closed" in out.request(1)


def test_injected_texts_reach_the_models_requests(user):
    user.say(
        on_session_start={"Inject": "START_TEXT"},
        on_user_prompt_submit={"Inject": "PROMPT_TEXT <b>"},
        system_prompt={"Inject": "SYSTEM_TEXT"},
        post_tool_execution={"Inject": "AFTER_TEXT"},
    )
    out = user.qwen([{"shell": "true"}, {"shell": "exit 3"}, {"text": "Finished."}])
    for text in ("START_TEXT", "PROMPT_TEXT &lt;b&gt;", "SYSTEM_TEXT"):
        assert text in out.request(0), text
    assert "AFTER_TEXT" not in out.request(0) and "AFTER_TEXT" in out.request(1)
    assert out.request(2).count("AFTER_TEXT") == 2, "after a failed call, too"
    assert out.request(2).count("SYSTEM_TEXT") == 1, "it is told once"


def test_a_prompt_is_refused(user):
    user.say(on_user_prompt_submit={"Block": "Not today."})
    out = user.qwen(RUN)
    assert out.requests == [] and not user.ran()


def test_results_are_changed_or_withheld(user):
    user.say(post_tool_execution={"Rewrite": {"result_text": "OTHER_RESULT"}, "Inject": "AFTER_TEXT"})
    out = user.qwen(RUN)
    told = out.requests[1]["messages"][-1]
    assert "OTHER_RESULT" in str(told) and "AFTER_TEXT" in str(told) and "hello" not in str(told)
    user.say(post_tool_execution={"Deny": "It holds a key."})
    out = user.qwen(RUN)
    told = out.requests[1]["messages"][-1]
    assert "It holds a key." in str(told) and "Exit Code" not in str(told)


def test_a_block_ends_the_turn(user):
    user.say(pre_tool_execution={"Block": "enough"})
    out = user.qwen([{"shell": "touch ran.txt"}, {"shell": "touch again.txt"}, {"text": "Finished."}])
    assert not user.ran() and not user.ran("again.txt")
    assert len(out.requests) == 1
    assert len(user.of("on_turn_complete")) == len(user.of("post_turn")) == 1


def test_a_turn_that_goes_on_is_one_turn(user):
    user.say(on_turn_complete=[{"when": {"continued": 0}, "answer": {"Continue": "ONCE_MORE"}}])
    out = user.qwen([{"text": "First."}, {"text": "Second."}])
    assert len(out.requests) == 2 and "ONCE_MORE" in out.request(1)
    assert [event["text"] for event in user.of("on_turn_complete")] == ["First.", "Second."]
    assert (
        len(user.of("on_message_received")) == len(user.of("on_turn_start")) == len(user.of("post_turn")) == 1
    )


def test_it_goes_on_seven_times_at_most(user):
    user.say(on_turn_complete={"Continue": "ONCE_MORE"})
    out = user.qwen([{"text": "Finished."}])
    assert len(out.requests) == 8
    assert len(user.of("post_turn")) == len(user.of("on_turn_start")) == 1


def test_a_sub_agent_has_a_turn_of_its_own_and_its_tools_are_refused(user):
    user.say(pre_tool_execution=[{"when": {"kind": "bash"}, "answer": {"Deny": "Not in helpers."}}])
    user.qwen(
        {"SUB_TASK": [{"shell": "touch ran.txt"}, {"text": "Sub done."}], "": [SUB, {"text": "Finished."}]}
    )
    assert not user.ran()
    ends = [event for event in user.of("on_turn_complete") if event.get("agent_id")]
    assert [(event["agent"], event["text"]) for event in ends] == [("general-purpose", "Sub done.")]
    (post,) = [event for event in user.of("post_tool_execution") if event["kind"] == "bash"]
    assert (post["agent"], post["status"]) == ("general-purpose", "denied")
    assert len({event["session_id"] for event in user.events}) == 1
