"""The real opencode against a scripted model: what our hooks decide is what happens. Run by ``make agents-more``."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent / "fake_model"))

from agent_programs import OPENCODE, OPENCODE_CONFIG
from agent_user import User

from hookturn.agents.opencode import install

pytestmark = pytest.mark.agents

ASKING = {"permission": {"bash": "ask"}}

SUB = {
    "tool": "task",
    "args": {"description": "d", "prompt": "SUBTASK now", "subagent_type": "general"},
}


class OpencodeUser(User):
    """A user of opencode who installed the bridge, with hooks that answer as told."""

    def __init__(self, base, **config):
        super().__init__(base, OPENCODE)
        self.write(".config/opencode/opencode.json", {**OPENCODE_CONFIG, **config})
        folder = self.home / ".config/opencode/plugin"
        folder.mkdir(parents=True)
        command = [sys.executable, "-m", "hookturn", "bridge", "opencode", "--timeout", "60"]
        (folder / "hookturn.js").write_text(install.plugin(command, []))

    def opencode(self, script, **more):
        """Run opencode once."""
        return self.run(OPENCODE, script, limit=180, **more)


@pytest.fixture
def user(tmp_path):
    return OpencodeUser(tmp_path)


def test_a_session_is_seen_from_start_to_end(user):
    user.say(on_session_start={"SetEnv": {"HT_VAR": "a value"}})
    out = user.opencode([{"shell": "echo $HT_VAR > ran.txt; cat ran.txt"}, {"text": "Finished."}])
    assert (out.code, out.stdout.strip()) == (0, "Finished.")
    assert [event["timing"] for event in user.events] == [
        "on_session_start", "on_message_received", "on_user_prompt_submit", "on_turn_start", "system_prompt",
        "on_tool_call_start", "pre_tool_execution", "on_event", "post_tool_execution", "system_prompt",
        "on_model_response", "on_turn_complete", "post_turn", "on_session_end",
    ]  # fmt: skip
    assert len({event["session_id"] for event in user.events}) == 1
    (post,) = user.of("post_tool_execution")
    assert (post["status"], post["result_text"].strip(), post["kind"], post["turn"]) == (
        "ok",
        "a value",
        "bash",
        1,
    )
    (end,) = user.of("on_turn_complete")
    assert end["text"] == "Finished." and end["tool_calls"][0]["call_id"] == post["call_id"]
    assert [row["status"] for row in user.audit if row["timing"] == "post_tool_execution"] == ["ok"]


def test_a_denied_tool_does_not_run_and_the_model_reads_why(user):
    user.say(
        pre_tool_execution=[{"when": {"tool": "bash"}, "answer": {"Deny": {"reason": "No writes today."}}}]
    )
    out = user.opencode([{"shell": "touch ran.txt"}, {"text": "Finished."}])
    assert not user.ran()
    assert "No writes today." in out.request(1)
    (post,) = user.of("post_tool_execution")
    assert (post["status"], post["by"]) == ("denied", "scripted")
    assert not user.of("on_error")


def test_changes_are_what_runs_and_what_is_read(user):
    user.say(
        on_message_received={"Rewrite": {"text": "OTHER WORDS"}},
        pre_tool_execution={"Rewrite": {"command": "echo changed > ran.txt; cat ran.txt"}},
        post_tool_execution=[{"answer": {"Rewrite": {"result_text": "OTHER RESULT"}}}],
        system_prompt={"Rewrite": {"parts": ["OTHER SYSTEM"]}},
        on_model_response={"Rewrite": {"text": "OTHER ANSWER"}},
        on_user_prompt_submit={"Inject": "AT-PROMPT"},
    )
    out = user.opencode([{"shell": "echo original > ran.txt"}, {"text": "Finished."}])
    assert (user.project / "ran.txt").read_text() == "changed\n"
    assert out.stdout.strip() == "OTHER ANSWER"
    first, last = out.request(0), out.request(1)
    assert "OTHER WORDS" in first and "do the task" not in first
    assert out.requests[0]["messages"][0]["content"] == "OTHER SYSTEM"
    assert "OTHER RESULT" in last
    assert [out.request(number).count("AT-PROMPT") for number in range(2)] == [1, 1]
    (post,) = user.of("post_tool_execution")
    assert post["command"].startswith("echo changed")
    stored = json.dumps([row.get("body") for row in out.all_requests if row.get("aside")])
    assert "OTHER SYSTEM" not in stored  # the title's request is no turn's


def test_a_withheld_result_reaches_no_request(user):
    user.say(post_tool_execution={"Deny": "It holds a key."})
    out = user.opencode([{"shell": "printf 'SECRET''-TEXT'"}, {"text": "Finished."}])
    assert "It holds a key." in out.request(1) and "SECRET-TEXT" not in out.request(1)


def test_a_block_ends_the_turn(user):
    user.say(pre_tool_execution={"Block": "enough"})
    out = user.opencode([{"shell": "touch ran.txt"}, {"shell": "touch again.txt"}, {"text": "Finished."}])
    assert not user.ran() and not user.ran("again.txt")
    assert len(out.requests) == 1
    assert [event["turn"] for event in user.of("on_turn_complete")] == [1]
    assert user.of("on_session_end")


def test_a_refused_prompt_starts_no_turn(user):
    user.say(on_user_prompt_submit={"Block": "Not this one."})
    out = user.opencode([{"text": "Finished."}])
    assert out.requests == []
    assert "Not this one." in out.stderr + out.stdout
    assert not user.of("on_turn_start") and user.of("on_session_end")


def test_a_sub_agents_work_belongs_to_the_session(user):
    user.say(pre_tool_execution=[{"when": {"agent": "general"}, "answer": {"Deny": "not you"}}])
    out = user.opencode(
        {"SUBTASK": [{"shell": "touch ran.txt"}, {"text": "Sub done."}], "": [SUB, {"text": "Finished."}]}
    )
    assert out.code == 0
    assert not user.ran()
    assert len({event["session_id"] for event in user.events}) == 1
    starts = [event for event in user.events if event["timing"] == "on_turn_start"]
    assert [event["agent"] for event in starts] == ["main", "general"]
    ends = user.of("on_turn_complete")
    assert [(event["agent"], event["text"]) for event in ends] == [
        ("general", "Sub done."),
        ("main", "Finished."),
    ]
    assert [event["status"] for event in user.of("post_tool_execution")] == ["denied", "ok"]
    types = [event["type"] for event in user.of("on_event")]
    assert "subagent.start" in types and "subagent.stop" in types
    assert len(user.of("on_session_end")) == 1


def test_a_failed_call_has_its_end(user):
    user.opencode(
        [
            {"tool": "read", "args": {"filePath": "/nowhere/at/all.txt"}},
            {"shell": "exit 3"},
            {"text": "Finished."},
        ]
    )
    posts = user.of("post_tool_execution")
    assert [(post["tool"], post["status"]) for post in posts] == [("read", "error"), ("bash", "error")]
    assert "all.txt" in posts[0]["result_text"]


def test_what_the_user_refuses_is_denied(tmp_path):
    user = OpencodeUser(tmp_path, **ASKING)
    user.opencode(
        [{"shell": "touch ran.txt"}, {"text": "Finished."}], argv=["run", "please do the task"]
    )  # nobody is there: opencode refuses
    assert not user.ran()
    (post,) = user.of("post_tool_execution")
    assert post["status"] == "denied"
    types = [event["type"] for event in user.of("on_event")]
    assert types[:2] == ["permission.asked", "permission.replied"]


def test_a_model_that_fails_is_an_error_and_ends_the_turn(user):
    user.opencode([{"error": 400, "message": "scripted failure"}])
    (error,) = user.of("on_error")
    assert "scripted failure" in error["message"]
    assert len(user.of("on_turn_complete")) == 1 and user.of("on_session_end")


def test_a_session_goes_on(user):
    user.say(on_session_start={"Inject": "AT-START"})
    user.opencode([{"text": "One."}])
    out = user.opencode([{"text": "One."}, {"text": "Two."}], argv=["run", "--auto", "--continue", "more"])
    assert out.stdout.strip() == "Two."
    assert len({event["session_id"] for event in user.events}) == 1
    assert [event["turn"] for event in user.of("on_turn_complete")] == [1, 2]
    assert len(user.of("on_session_start")) == len(user.of("on_session_end")) == 2


def test_installed_by_the_command(user):
    """With the thin client and the resident process, as a user has it."""
    (user.home / ".config/opencode/plugin/hookturn.js").unlink()

    def hookturn(*words):
        return subprocess.run(
            [sys.executable, "-m", "hookturn", *words],
            cwd=user.project,
            env=user.env,
            capture_output=True,
            text=True,
        )

    done = hookturn("install", "opencode", "--yes")
    assert done.returncode == 0, done.stderr
    user.say(pre_tool_execution={"Deny": "No writes today."}, system_prompt={"Inject": "IN-SYSTEM"})
    try:
        out = user.opencode([{"shell": "touch ran.txt"}, {"text": "Finished."}])
    finally:
        hookturn("serve", "--stop")
    assert out.stdout.strip() == "Finished."
    assert not user.ran() and "No writes today." in out.request(1)
    assert "IN-SYSTEM" in out.request(0)
    assert len(user.of("on_session_end")) == 1


def test_installed_for_the_user_and_in_the_project_hooks_hear_everything_once(user):
    """What the user has counts: the project's calls a program that is not there."""
    folder = user.project / ".opencode/plugin"
    folder.mkdir(parents=True)
    (folder / "hookturn.js").write_text(install.plugin(["/nowhere/hookturn"], []))
    user.say(pre_tool_execution={"Deny": "No writes today."})
    out = user.opencode([{"shell": "touch ran.txt"}, {"text": "Finished."}])
    assert not user.ran() and "No writes today." in out.request(1)
    assert "did not answer" not in out.stderr
    for timing in (
        "on_session_start",
        "on_turn_start",
        "pre_tool_execution",
        "on_turn_complete",
        "on_session_end",
    ):
        assert len(user.of(timing)) == 1, timing
