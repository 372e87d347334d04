"""The real GitHub Copilot CLI against a scripted model: what our hooks decide is what happens."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "fake_model"))

from agent_programs import COPILOT
from agent_user import User as AnyUser

from hookturn.agents.copilot import hooks as copilot

pytestmark = pytest.mark.agents

RUN = [{"shell": "echo hello > ran.txt; cat ran.txt"}, {"text": "Finished."}]


def task(prompt, agent="general-purpose"):
    args = {"description": "d", "prompt": prompt, "agent_type": agent, "name": "helper", "mode": "sync"}
    return {"tool": "task", "args": args}


class User(AnyUser):
    """A user of Copilot CLI whose hook file calls the bridge, by camelCase or PascalCase keys."""

    def __init__(self, base, keys):
        super().__init__(base, COPILOT)
        events = copilot.PASCAL if keys == "PascalCase" else self.installed
        entry = {"type": "command", "bash": f"{self.bridge} copilot --timeout 30", "timeoutSec": 30}
        hooks = {event: [entry] for event in events}
        self.write(".copilot/hooks/hookturn.json", {"version": 1, "hooks": hooks})

    installed = tuple(event for event, row in copilot.EVENTS.items() if row.install)

    @property
    def timings(self):
        return [event["timing"] for event in self.events]

    def copilot(self, script, code=0, **more):
        out = self.run(COPILOT, script, **more)
        assert code is None or out.code == code, (out.code, out.stdout, out.stderr)
        out.text = (
            "".join(out.request(number) for number in range(len(out.requests))) + out.stdout + out.stderr
        )
        return out


@pytest.fixture(params=["camelCase", "PascalCase"])
def user(tmp_path, request):
    return User(tmp_path, request.param)


@pytest.fixture
def camel(tmp_path):
    return User(tmp_path, "camelCase")


def test_a_session_is_seen_from_start_to_end(user):
    out = user.copilot(RUN)
    assert "Finished." in out.stdout and user.ran()
    assert [timing for timing in user.timings if timing != "on_event"] == [
        "on_session_start", "on_message_received", "on_user_prompt_submit", "on_turn_start", "system_prompt",
        "on_tool_call_start", "pre_tool_execution", "on_permission_request", "post_tool_execution",
        "system_prompt", "on_model_response", "on_turn_complete", "post_turn", "on_session_end",
    ]  # fmt: skip
    assert len({event["session_id"] for event in user.events}) == 1
    (post,) = user.of("post_tool_execution")
    (pre,) = user.of("pre_tool_execution")
    (asked,) = user.of("on_permission_request")
    assert pre["call_id"] == asked["call_id"] == post["call_id"]
    assert (post["status"], post["kind"], post["turn"]) == ("ok", "bash", 1)
    assert post["result_text"].startswith("hello\n")
    assert user.of("on_turn_complete")[0]["text"] == "Finished."
    assert user.of("on_session_end")[0]["reason"] == "complete"
    assert [(row["timing"], row["status"]) for row in user.audit] == [("post_tool_execution", "ok")]


def test_a_denied_tool_does_not_run_and_the_model_reads_why(user):
    user.say(pre_tool_execution={"Deny": {"reason": "No writes today.", "advice": "Ask tomorrow."}})
    out = user.copilot([{"shell": "touch ran.txt"}, {"text": "Finished."}])
    assert not user.ran()
    assert "No writes today." in out.request(1) and "Ask tomorrow." in out.request(1)
    (post,) = user.of("post_tool_execution")
    assert (post["status"], post["by"]) == ("denied", "scripted")
    assert [(row["timing"], row["decision"]) for row in user.audit][:1] == [("pre_tool_execution", "deny")]


def test_a_guard_that_cannot_be_asked_refuses_with_words(camel):
    """A deny by exit code would come without any."""
    camel.hooks(
        "hooks:\n  - name: scripted\n    run: {module: scripted_hooks.py}\n"
        "    timings: [pre_tool_execution]\n    guard: true\n"
    )
    (camel.base / "config/scripted_hooks.py").write_text("def broken(")
    out = camel.copilot([{"shell": "touch ran.txt"}, {"text": "Finished."}])
    assert not camel.ran()
    assert "hook exited with code" not in out.text and "fails closed" in out.request(1)


def test_rewritten_arguments_are_what_runs(user):
    user.say(pre_tool_execution={"Rewrite": {"command": "echo changed > ran.txt"}})
    user.copilot([{"shell": "echo original > ran.txt"}, {"text": "Finished."}])
    assert (user.project / "ran.txt").read_text() == "changed\n"
    (post,) = user.of("post_tool_execution")
    assert post["command"] == "echo changed > ran.txt"
    assert post["call_id"] == user.of("pre_tool_execution")[0]["call_id"]


def test_injected_texts_reach_the_models_requests(user):
    user.say(
        on_session_start={"Inject": "START_TEXT"},
        on_user_prompt_submit={"Inject": "PROMPT_TEXT"},
        system_prompt={"Inject": "SYSTEM_TEXT"},
        post_tool_execution={"Inject": "AFTER_TEXT"},
    )
    missing = {"tool": "view", "args": {"path": str(user.project / "none.txt")}}
    out = user.copilot([{"shell": "true"}, missing, {"text": "Finished."}])
    for text in ("START_TEXT", "PROMPT_TEXT", "SYSTEM_TEXT"):
        assert text in out.request(0), text
    assert "AFTER_TEXT" not in out.request(0) and "AFTER_TEXT" in out.request(1)
    assert out.request(2).count("AFTER_TEXT") == 2, "after a failed call, too"
    assert out.request(2).count("SYSTEM_TEXT") == 1, "it is told once"


def test_a_prompt_is_refused_or_changed(user):
    user.say(on_user_prompt_submit={"Block": "Not today."})
    out = user.copilot(RUN, code=1)
    assert out.requests == [] and "Not today." in out.stderr
    assert len(user.of("on_session_start")) == len(user.of("on_session_end")) == 1
    user.say(on_message_received={"Rewrite": "OTHER_WORDS"})
    out = user.copilot([{"text": "Finished."}])
    assert "OTHER_WORDS" in out.request(0) and "please do the task" not in out.request(0)


def test_a_session_that_a_hook_blocks_gets_no_prompt(camel):
    """Copilot runs the hooks of the start and those of the first prompt side by side."""
    camel.say(on_session_start={"Block": "No sessions here."})
    out = camel.copilot(RUN, code=1)
    assert out.requests == [] and not camel.ran() and "No sessions here." in out.stderr


def test_results_are_changed_or_withheld(user):
    user.say(post_tool_execution={"Rewrite": {"result_text": "OTHER_RESULT"}})
    out = user.copilot(RUN)
    assert "OTHER_RESULT" in out.request(1) and "exit code 0" not in out.request(1)
    user.say(post_tool_execution={"Deny": "It holds a key."})
    out = user.copilot(RUN)
    assert "It holds a key." in out.request(1) and "exit code 0" not in out.request(1)


def test_an_ask_that_nobody_can_answer_is_a_no(user):
    user.say(pre_tool_execution={"Ask": "Really?"})
    out = user.copilot([{"shell": "touch ran.txt"}, {"text": "Finished."}])
    assert not user.ran() and "Really?" in out.request(1)


def test_a_permission_is_refused(user):
    user.say(on_permission_request={"Deny": "Nobody may."})
    make = {"tool": "create", "args": {"path": str(user.project / "new.txt"), "file_text": "x"}}
    out = user.copilot([{"shell": "touch ran.txt"}, make, {"text": "Finished."}])
    assert not user.ran() and not user.ran("new.txt") and "Nobody may." in out.request(1)
    assert [post["status"] for post in user.of("post_tool_execution")] == ["denied", "denied"]


def test_a_block_refuses_the_later_calls_of_the_turn(camel):
    camel.say(pre_tool_execution={"Block": "enough"})
    camel.copilot([{"shell": "touch ran.txt"}, {"shell": "touch again.txt"}, {"text": "Finished."}])
    assert not camel.ran() and not camel.ran("again.txt")
    assert len(camel.of("pre_tool_execution")) == 1


def test_a_turn_that_goes_on_is_one_turn(user):
    user.say(on_turn_complete=[{"when": {"continued": 0}, "answer": {"Continue": "ONCE_MORE"}}])
    out = user.copilot([{"text": "First."}, {"text": "Second."}])
    assert len(out.requests) == 2 and "ONCE_MORE" in out.request(1)
    assert [event["continued"] for event in user.of("on_turn_complete")] == [0, 1]
    assert (
        len(user.of("on_message_received")) == len(user.of("on_turn_start")) == len(user.of("post_turn")) == 1
    )


def test_it_goes_on_eight_times_at_most(camel):
    camel.say(on_turn_complete={"Continue": "ONCE_MORE"})
    out = camel.copilot([{"text": "Finished."}])
    assert len(out.requests) == 9
    assert len(camel.of("post_turn")) == len(camel.of("on_turn_start")) == 1


def test_sub_agents_belong_to_the_session_however_deep(user):
    script = {
        "INNER_TASK": [{"shell": "touch inner.txt"}, {"text": "Inner done."}],
        "SUB_TASK": [{"shell": "touch sub.txt"}, task("INNER_TASK", "task"), {"text": "Sub done."}],
        "": [task("SUB_TASK"), {"text": "Finished."}],
    }
    user.copilot(script)
    assert user.ran("sub.txt") and user.ran("inner.txt")
    assert len({event["session_id"] for event in user.events}) == 1
    assert len(user.of("on_session_start")) == len(user.of("on_session_end")) == 1
    assert len(user.of("on_message_received")) == 1
    agents = {event["agent_id"]: event["agent"] for event in user.events if event.get("agent_id")}
    assert sorted(agents.values()) == ["general-purpose", "task"]
    posts = {event["command"]: event for event in user.of("post_tool_execution") if event["kind"] == "bash"}
    assert agents[posts["touch sub.txt"]["agent_id"]] == "general-purpose"
    assert agents[posts["touch inner.txt"]["agent_id"]] == "task"
    assert {event["status"] for event in user.of("post_tool_execution")} == {"ok"}
    assert len(user.of("on_turn_start")) == len(user.of("post_turn")) == 3
    assert [end["text"] for end in user.of("on_turn_complete") if end.get("agent_id")] == [
        "Inner done.",
        "Sub done.",
    ]


def test_a_sub_agents_tools_are_refused(user):
    user.say(pre_tool_execution=[{"when": {"kind": "bash"}, "answer": {"Deny": "Not in helpers."}}])
    user.copilot(
        {"SUB_TASK": [{"shell": "touch ran.txt"}, {"text": "x"}], "": [task("SUB_TASK"), {"text": "Done."}]}
    )
    assert not user.ran()


def test_an_error_of_the_model_and_the_session_that_ends_with_it(user):
    user.copilot([{"error": 400, "message": "MARK_ERROR"}], code=1)
    (error,) = user.of("on_error")
    assert "MARK_ERROR" in error["message"]
    assert len(user.of("post_turn")) == 1
    assert user.of("on_session_end")[0]["reason"] == "error"


def claude_settings(user):
    """The repository has hookturn in Claude Code's settings, which Copilot reads in trusted folders."""
    handler = {"type": "command", "command": f"{user.bridge} claude-code --timeout 30", "timeout": 30}
    events = ("SessionStart", "UserPromptSubmit", "PreToolUse", "PostToolUse", "Stop", "SessionEnd")
    user.write(
        "project/.claude/settings.json", {"hooks": {event: [{"hooks": [handler]}] for event in events}}
    )


def test_claude_codes_entry_is_silent_beside_our_own(camel):
    claude_settings(camel)
    camel.say(pre_tool_execution={"Rewrite": {"command": "echo changed >> ran.txt"}})
    camel.copilot(RUN, env={"COPILOT_ALLOW_ALL": "true"})
    assert (camel.project / "ran.txt").read_text() == "changed\n"
    assert len(camel.of("pre_tool_execution")) == len(camel.of("on_session_start")) == 1


def test_claude_codes_entry_answers_as_copilot_takes_it_where_there_is_no_other(camel):
    claude_settings(camel)
    (camel.home / ".copilot/hooks/hookturn.json").unlink()
    camel.say(
        pre_tool_execution={"Rewrite": {"command": "echo changed > ran.txt"}},
        post_tool_execution={"Inject": "AFTER_TEXT"},
    )
    out = camel.copilot(RUN, env={"COPILOT_ALLOW_ALL": "true"})
    assert (camel.project / "ran.txt").read_text() == "changed\n"
    assert "AFTER_TEXT" in out.request(1)
    assert {event["host"] for event in camel.events} == {"copilot"}


def test_as_it_is_installed(camel):
    """``hookturn install copilot --user``, and the command that it writes."""
    import subprocess

    (camel.home / ".copilot/hooks/hookturn.json").unlink()
    words = [sys.executable, "-m", "hookturn"]
    about = {"env": camel.env, "cwd": camel.project, "check": True, "capture_output": True, "timeout": 60}
    subprocess.run([*words, "install", "copilot", "--user", "--yes"], **about)
    camel.say(pre_tool_execution={"Deny": "No writes today."})
    try:
        out = camel.copilot([{"shell": "touch ran.txt"}, {"text": "Finished."}])
    finally:
        subprocess.run([*words, "serve", "--stop"], **{**about, "check": False})
    assert not camel.ran() and "No writes today." in out.request(1)
    assert len(camel.of("on_session_end")) == 1
    told = {event["raw"]["sessionId"] for event in camel.events if event.get("raw")}
    assert len(told) == 1
    assert json.loads((camel.home / ".copilot/hooks/hookturn.json").read_text())["version"] == 1
