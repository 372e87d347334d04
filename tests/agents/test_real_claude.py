"""The real Claude Code against a scripted model: what our hooks decide is what happens."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "fake_model"))

from agent_programs import CLAUDE, HERE
from agent_user import User

from hookturn.agents.claude_code import hooks as claude

pytestmark = pytest.mark.agents

ASKED = ["-p", "please do the task", "--model", "claude-sonnet-5"]
"""No tool is allowed beforehand: Claude Code asks."""

SUB = {
    "tool": "Agent",
    "args": {"description": "d", "prompt": "SUBTASK now", "subagent_type": "general-purpose"},
}


class ClaudeUser(User):
    """A user of Claude Code whose settings call the bridge, with hooks that answer as told."""

    def __init__(self, base):
        super().__init__(base, CLAUDE)
        rows = [row.event for row in claude.EVENTS.values() if row.install]
        self.write(".claude/settings.json", {"hooks": self.handlers(rows)})

    def claude(self, script, **more):
        """Run Claude Code once."""
        out = self.run(CLAUDE, script, **more)
        assert out.code == 0 or "error" in json.dumps(script), out.stderr
        return out


@pytest.fixture
def user(tmp_path):
    return ClaudeUser(tmp_path)


def test_a_session_is_seen_from_start_to_end(user):
    out = user.claude([{"shell": "echo hello > ran.txt; cat ran.txt"}, {"text": "Finished."}])
    assert out.stdout == "Finished.\n"
    assert user.ran()
    assert [event["timing"] for event in user.events] == [
        "on_session_start", "on_message_received", "on_user_prompt_submit", "on_turn_start", "system_prompt",
        "on_tool_call_start", "pre_tool_execution", "post_tool_execution", "system_prompt", "on_model_response",
        "on_turn_complete", "post_turn", "on_session_end",
    ]  # fmt: skip
    assert len({event["session_id"] for event in user.events}) == 1
    (post,) = user.of("post_tool_execution")
    assert (post["status"], post["result_text"], post["kind"], post["turn"]) == ("ok", "hello", "bash", 1)
    (end,) = user.of("on_turn_complete")
    assert end["text"] == "Finished." and end["tool_calls"][0]["call_id"] == post["call_id"]
    assert [event["raw"]["hook_event_name"] for event in user.events if "raw" in event][-1] == "SessionEnd"
    assert [(row["timing"], row["status"]) for row in user.audit] == [("post_tool_execution", "ok")]


def test_a_denied_tool_does_not_run_and_the_model_reads_why(user):
    user.say(pre_tool_execution={"Deny": {"reason": "No writes today.", "advice": "Ask tomorrow."}})
    out = user.claude([{"shell": "touch ran.txt"}, {"text": "Finished."}])
    assert not user.ran()
    assert "No writes today." in out.request(1) and "Ask tomorrow." in out.request(1)
    (post,) = user.of("post_tool_execution")
    assert (post["status"], post["by"]) == ("denied", "scripted")
    assert [(row["timing"], row["decision"]) for row in user.audit][:1] == [("pre_tool_execution", "deny")]


def test_a_deny_beats_skipped_permissions(user):
    user.say(on_tool_call_start={"Deny": "no"})
    user.claude(
        [{"shell": "touch ran.txt"}, {"text": "Finished."}],
        argv=[*ASKED, "--dangerously-skip-permissions"],
        env={"IS_SANDBOX": "1"},
    )
    assert not user.ran()


def test_a_block_ends_the_turn(user):
    user.say(pre_tool_execution={"Block": "enough"})
    out = user.claude([{"shell": "touch ran.txt"}, {"shell": "touch again.txt"}, {"text": "Finished."}])
    assert not user.ran() and not user.ran("again.txt")
    assert len(out.requests) == 1
    assert user.of("on_session_end")


def test_rewritten_arguments_are_what_runs(user):
    user.say(
        pre_tool_execution=[
            {"when": {"tool": "Bash"}, "answer": {"Rewrite": {"command": "echo changed > ran.txt"}}}
        ]
    )
    user.claude([{"shell": "echo original > ran.txt"}, {"text": "Finished."}])
    assert (user.project / "ran.txt").read_text() == "changed\n"
    (post,) = user.of("post_tool_execution")
    assert post["command"] == "echo changed > ran.txt"


def test_an_ask_that_nobody_can_answer_is_a_no(user):
    user.say(pre_tool_execution={"Ask": "Really?"})
    out = user.claude([{"shell": "touch ran.txt"}, {"text": "Finished."}])
    assert not user.ran() and "Really?" in out.request(1)
    (post,) = user.of("post_tool_execution")
    assert post["status"] == "unknown"  # Claude Code tells no refusal of its user


@pytest.mark.parametrize("answer", [{"Allow": "fine"}, {"Deny": "NOT-THAT-ONE"}])
def test_hooks_answer_the_prompt(user, answer):
    user.say(on_permission_request=answer)
    out = user.claude([{"shell": "touch ran.txt"}, {"text": "Finished."}], argv=ASKED)
    assert user.ran() == ("Allow" in answer)
    assert ("NOT-THAT-ONE" in out.request(1)) == ("Deny" in answer)
    (post,) = user.of("post_tool_execution")
    assert post["status"] == ("ok" if "Allow" in answer else "denied")


def test_an_allow_skips_the_prompt(user):
    user.say(pre_tool_execution={"Allow": "fine"})
    user.claude([{"shell": "touch ran.txt"}, {"text": "Finished."}], argv=ASKED)
    assert user.ran()


def test_injected_text_reaches_the_models_next_request(user):
    user.say(
        on_session_start={"Inject": "AT-START"},
        on_user_prompt_submit={"Inject": "AT-PROMPT"},
        on_turn_start={"Inject": "AT-TURN"},
        system_prompt={"Inject": "IN-SYSTEM"},
        post_tool_execution={"Inject": "AT-RESULT"},
    )
    out = user.claude([{"shell": "true"}, {"shell": "true"}, {"text": "Finished."}])
    for mark in ("AT-START", "AT-PROMPT", "AT-TURN", "IN-SYSTEM"):
        assert [out.request(number).count(mark) for number in range(3)] == [1, 1, 1], mark
    assert [out.request(number).count("AT-RESULT") for number in range(3)] == [0, 1, 2]


def test_what_is_new_of_the_system_prompt_is_given_inside_a_turn(user):
    user.say(system_prompt=[{"from": 1, "answer": {"Inject": "MARK-NEW"}}])
    out = user.claude([{"shell": "true"}, {"shell": "true"}, {"text": "Finished."}])
    assert [out.request(number).count("MARK-NEW") for number in range(3)] == [0, 1, 1]


def test_after_a_compaction_the_system_prompt_is_given_again(user):
    user.say(system_prompt={"Inject": "IN-SYSTEM"})
    user.claude([{"text": "Finished."}])
    again = user.claude([{"text": "Finished."}], argv=[*ASKED, "--continue"])
    assert again.request(0).count("IN-SYSTEM") == 1  # it stands in the history
    user.claude([{"text": "Finished."}], argv=["-p", "/compact keep it short", *ASKED[2:], "--continue"])
    after = user.claude([{"text": "Finished."}], argv=[*ASKED, "--continue"])
    assert after.request(0).count("IN-SYSTEM") == 1
    assert [event["source"] for event in user.of("on_session_start")] == [
        "startup", "resume", "resume", "compact", "resume"
    ]  # fmt: skip
    assert [event["turn"] for event in user.of("on_turn_complete")] == [1, 2, 3]
    assert len(user.of("on_session_end")) == 4
    assert {"compaction.before", "compaction.after"} <= {event["type"] for event in user.of("on_event")}


@pytest.mark.parametrize(
    ("step", "tool"),
    [
        ({"shell": "echo SECRET-TEXT"}, "Bash"),
        ({"tool": "Read", "args": {"file_path": "SECRET.md"}}, "Read"),
        ({"tool": "Glob", "args": {"pattern": "SECRET*"}}, "Glob"),
        ({"tool": "mcp__demo__echo", "args": {"text": "SECRET-TEXT"}}, "mcp__demo__echo"),
    ],
)
def test_a_withheld_result_reaches_no_request(user, step, tool):
    (user.project / "SECRET.md").write_text("SECRET-TEXT\n")
    if tool == "Read":
        step = {"tool": "Read", "args": {"file_path": str(user.project / "SECRET.md")}}
    user.write(
        "mcp.json", {"mcpServers": {"demo": {"command": sys.executable, "args": [str(HERE / "mcp_echo.py")]}}}
    )
    user.say(post_tool_execution={"Deny": "It holds a key."})
    out = user.claude(
        [step, {"text": "Finished."}],
        argv=[*ASKED, "--allowedTools", tool, "--mcp-config", str(user.home / "mcp.json")],
    )
    results = [
        block
        for message in out.requests[1]["messages"]
        if isinstance(message["content"], list)
        for block in message["content"]
        if block.get("type") == "tool_result"
    ]
    assert len(results) == 1
    assert "SECRET" not in json.dumps(results).replace("SECRET.md" if tool == "Read" else "-", "")
    assert "It holds a key." in out.request(1)


def test_a_changed_result_is_what_the_model_reads(user):
    user.say(post_tool_execution={"Rewrite": {"result_text": "SHORT"}})
    out = user.claude([{"shell": "echo a long text"}, {"text": "Finished."}])
    assert "SHORT" in out.request(1)
    assert json.dumps(out.requests[1]["messages"][-2:]).count("a long text") <= 1  # the call itself names it


def test_the_turn_goes_on(user):
    user.say(on_turn_complete=[{"when": {"continued": 0}, "answer": {"Continue": "Run the tests."}}])
    out = user.claude([{"text": "Finished."}, {"text": "Tested."}])
    assert "Run the tests." in out.request(1)
    assert [event["continued"] for event in user.of("on_turn_complete")] == [0, 1]
    assert out.stdout == "Tested.\n"


def test_a_turn_that_always_goes_on_ends_at_the_cap(user):
    user.say(on_turn_complete={"Continue": "More."})
    out = user.claude([{"text": f"Answer {number}."} for number in range(20)])
    assert len(out.requests) == 9
    assert len(user.of("post_turn")) == 1


def test_a_refused_prompt_asks_no_model(user):
    user.say(on_user_prompt_submit={"Block": "No keys in prompts."})
    out = user.claude([{"text": "Finished."}])
    assert out.requests == []
    assert "No keys in prompts." in out.stdout
    assert user.of("on_session_end")


def test_a_change_of_what_is_shown(user):
    user.say(on_model_response={"Rewrite": "[removed]"})
    assert user.claude([{"text": "A key."}]).stdout == "[removed]\n"


def test_variables_reach_commands(user):
    user.say(on_session_start={"SetEnv": {"GREETING": "hello there"}})
    user.claude([{"shell": "echo $GREETING > ran.txt"}, {"text": "Finished."}])
    assert (user.project / "ran.txt").read_text() == "hello there\n"


def test_sub_agents_are_guarded_too(user):
    user.say(
        pre_tool_execution=[
            {"when": {"agent": "general-purpose"}, "answer": {"Deny": "Sub-agents run nothing."}}
        ],
        system_prompt=[{"when": {"agent": "general-purpose"}, "answer": {"Inject": "YOU-ARE-SUB"}}],
    )
    out = user.claude(
        {"SUBTASK": [{"shell": "touch ran.txt"}, {"text": "Sub done."}], "": [SUB, {"text": "Finished."}]}
    )
    assert not user.ran()
    texts = [json.dumps(request) for request in out.requests]
    assert any("YOU-ARE-SUB" in text for text in texts) and any(
        "Sub-agents run nothing." in text for text in texts
    )
    own = [event for event in user.events if event["agent_id"]]
    assert {(event["agent"], event["parent_agent"]) for event in own} == {("general-purpose", "main")}
    assert [event["type"] for event in own if event["timing"] == "on_event"] == [
        "subagent.start",
        "subagent.stop",
    ]


def test_a_sub_agent_in_the_background_outlives_the_turn(user):
    user.claude(
        {
            "SUBTASK": [{"shell": "sleep 2; touch ran.txt"}, {"text": "Sub done."}],
            "": [SUB, {"text": "Finished."}],
        }
    )
    assert user.ran()
    posts = {event["tool"]: event["status"] for event in user.of("post_tool_execution")}
    assert posts == {"Agent": "ok", "Bash": "ok"}
    assert len(user.of("post_tool_execution")) == 2
    assert len([event for event in user.of("on_turn_start") if event["agent_id"]]) == 1


def test_parallel_calls_end_once_each(user):
    shells = [{"shell": f"touch file{number}.txt"} for number in range(4)]
    user.say(pre_tool_execution=[{"when": {"command": "touch file2.txt"}, "answer": {"Deny": "no"}}])
    user.claude([{"calls": shells}, {"text": "Finished."}])
    assert [user.ran(f"file{number}.txt") for number in range(4)] == [True, True, False, True]
    statuses = sorted(event["status"] for event in user.of("post_tool_execution"))
    assert statuses == ["denied", "ok", "ok", "ok"]


def test_a_failing_command_is_an_error(user):
    user.claude([{"shell": "echo why >&2; exit 3"}, {"text": "Finished."}])
    (post,) = user.of("post_tool_execution")
    assert post["status"] == "error" and "why" in post["error"]
    assert user.of("on_error")[0]["tool"] == "Bash"


@pytest.mark.parametrize("denied", [True, False])
def test_commands_in_skills_are_guarded(user, denied):
    skill = user.project / ".claude/skills/greet/SKILL.md"
    skill.parent.mkdir(parents=True)
    skill.write_text(
        "---\nname: greet\ndescription: greets\nallowed-tools: Bash(touch:*)\n---\nHello !`touch ran.txt` $ARGUMENTS\n"
    )
    if denied:
        user.say(pre_tool_execution={"Deny": "no"})
    user.claude([{"text": "Finished."}], prompt="/greet Ann")
    assert user.ran() is not denied
    (post,) = user.of("post_tool_execution")
    assert post["status"] == ("denied" if denied else "unknown")


def test_a_session_that_was_killed_is_ended_by_the_next(user):
    out = user.run(
        CLAUDE, [{"shell": "python3 -c 'import time; time.sleep(40)'"}, {"text": "Finished."}], limit=20
    )
    assert out.code is None
    user.claude([{"text": "Finished."}])
    killed, _ = dict.fromkeys(event["session_id"] for event in user.events)
    (post,) = user.of("post_tool_execution")
    assert (post["session_id"], post["status"]) == (killed, "unknown")
    assert {event["session_id"]: event["reason"] for event in user.of("on_session_end")}[killed] == "unknown"


def test_permission_rules_of_the_user_count(user):
    user.hooks("permissions:\n  deny: ['bash(touch *)']\n")
    out = user.claude([{"shell": "true; touch ran.txt"}, {"text": "Finished."}])
    assert not user.ran() and "bash(touch *)" in out.request(1)


def test_a_script_and_a_rule_deny_alike(user):
    (user.base / "config/deny.sh").write_text("cat >/dev/null; echo 'The script says no.' >&2; exit 2\n")
    user.hooks(
        "hooks:\n  - name: script\n    timings: [pre_tool_execution]\n    guard: true\n"
        "    run: {command: [sh, deny.sh]}\n"
    )
    out = user.claude([{"shell": "touch ran.txt"}, {"text": "Finished."}])
    assert not user.ran() and "The script says no." in out.request(1)


def test_writing_the_agents_own_hook_settings_is_asked_about(user):
    script = [
        {"tool": "Write", "args": {"file_path": str(user.project / ".claude/settings.json"), "content": "{}"}}
    ]
    out = user.claude([*script, {"text": "Finished."}])
    assert not user.ran(".claude/settings.json")
    assert len(out.requests) == 2


TASKS = ["--model", "claude-sonnet-5", "--tools", "default,TaskCreate,TaskUpdate"]


@pytest.mark.parametrize("type", ["task.created", "task.completed"])
def test_tasks_are_refused(user, type):
    user.say(on_event=[{"when": {"type": type}, "answer": {"Deny": "NOT-LIKE-THAT"}}])
    out = user.claude(
        [
            {
                "tool": "TaskCreate",
                "args": {"subject": "a task", "description": "do it", "activeForm": "doing"},
            },
            {"tool": "TaskUpdate", "args": {"taskId": "1", "status": "completed"}},
            {"text": "Finished."},
        ],
        argv=["-p", "please do the task", *TASKS],
        env={"CLAUDE_CODE_ENABLE_TASKS": "1"},
    )
    number = 1 if type == "task.created" else 2
    assert "NOT-LIKE-THAT" in out.request(number)
    assert type in [event["type"] for event in user.of("on_event")]
