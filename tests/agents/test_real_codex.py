"""The real Codex against a scripted model: what our hooks decide is what happens."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
sys.path.insert(0, str(Path(__file__).parent / "fake_model"))

from agent_programs import CODEX, CODEX_CONFIG
from agent_user import User
from codex_answers import ANSWERS

from hookturn.agents.codex import hooks as codex

pytestmark = pytest.mark.agents

ASKING = ["exec", "--skip-git-repo-check", "--approve-for-me", "--dangerously-bypass-hook-trust", "go"]
"""Codex asks whether a command may leave the sandbox."""

OUTSIDE = {
    "tool": "exec_command",
    "args": {
        "cmd": "echo original > ran.txt",
        "sandbox_permissions": "require_escalated",
        "justification": "It must be outside.",
    },
}
END = {"text": "Finished."}


@pytest.fixture
def user(tmp_path):
    user = User(tmp_path, CODEX)
    user.write(".codex/hooks.json", {"hooks": user.handlers(codex.EVENTS)})
    configure(user)
    return user


def configure(user, first=""):
    (user.home / ".codex/config.toml").write_text(first + CODEX_CONFIG)


def outputs(out, number):
    """What a request tells the model of its calls."""
    return [item["output"] for item in out.requests[number]["input"] if "output" in item]


def test_a_session_is_seen_from_start_to_end(user):
    out = user.go([{"shell": "echo hello > ran.txt; cat ran.txt"}, END])
    assert out.stdout == "Finished.\n"
    assert [event["timing"] for event in user.events] == [
        "on_session_start", "on_message_received", "on_user_prompt_submit", "on_turn_start", "system_prompt",
        "on_tool_call_start", "pre_tool_execution", "post_tool_execution", "system_prompt", "on_model_response",
        "on_turn_complete", "post_turn", "on_session_end",
    ]  # fmt: skip
    assert len({event["session_id"] for event in user.events}) == 1
    (post,) = user.of("post_tool_execution")
    assert (post["status"], post["result_text"], post["kind"], post["turn"]) == ("ok", "hello\n", "bash", 1)
    (end,) = user.of("on_turn_complete")
    assert end["text"] == "Finished." and end["tool_calls"][0]["call_id"] == post["call_id"]
    assert [event["raw"]["hook_event_name"] for event in user.events if "raw" in event][-1] == "SessionEnd"
    assert [(row["timing"], row["status"]) for row in user.audit] == [("post_tool_execution", "ok")]
    assert "Failed" not in out.stderr, "Codex counts an answer that it does not take as a failed hook"


def test_a_denied_tool_does_not_run_and_the_model_reads_why(user):
    user.say(pre_tool_execution={"Deny": {"reason": "No writes today.", "advice": "Ask tomorrow."}})
    out = user.go([{"shell": "touch ran.txt"}, END])
    assert not user.ran()
    (told,) = outputs(out, 1)
    assert "No writes today." in told and "Ask tomorrow." in told
    (post,) = user.of("post_tool_execution")
    assert (post["status"], post["by"]) == ("denied", "scripted")
    assert [(row["timing"], row["decision"]) for row in user.audit][:1] == [("pre_tool_execution", "deny")]


def test_an_ask_is_a_deny(user):
    user.say(pre_tool_execution={"Ask": "Really?"})
    out = user.go([{"shell": "touch ran.txt"}, END])
    assert not user.ran() and "Really?" in outputs(out, 1)[0]


def test_rewritten_arguments_are_what_runs(user):
    user.say(pre_tool_execution={"Rewrite": {"command": "echo changed > ran.txt"}})
    user.go([{"shell": "echo original > ran.txt"}, END])
    assert (user.project / "ran.txt").read_text() == "changed\n"
    (post,) = user.of("post_tool_execution")
    assert post["command"] == "echo changed > ran.txt"


def test_a_rewrite_is_no_permission(user):
    """Codex takes changed arguments beside an allow only; it asks all the same."""
    user.say(
        pre_tool_execution={"Rewrite": {"command": "echo changed > ran.txt"}},
        on_permission_request={"Deny": "Not outside."},
    )
    out = user.go([OUTSIDE, END], argv=ASKING)
    assert not user.ran() and "Not outside." in outputs(out, 1)[0]
    (asked,) = user.of("on_permission_request")
    (post,) = user.of("post_tool_execution")
    assert asked["call_id"] == post["call_id"] and asked["reason"] == "It must be outside."
    assert (asked["command"], post["status"]) == ("echo changed > ran.txt", "denied")


def test_a_permission_is_given(user):
    user.say(on_permission_request={"Allow": "Fine."})
    user.go([OUTSIDE, END], argv=ASKING)
    assert user.ran()
    assert [post["status"] for post in user.of("post_tool_execution")] == ["ok"]


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


def test_a_changed_result_is_what_the_model_reads(user):
    user.say(post_tool_execution={"Rewrite": {"result_text": "CHANGED"}, "Inject": "Why so?"})
    out = user.go([{"shell": "echo SECRET"}, END])
    assert outputs(out, 1) == ["CHANGED"]
    assert "Why so?" in out.request(1)


def test_a_withheld_result_stays_away_from_the_model(user):
    user.say(post_tool_execution={"Deny": "It has a key in it."})
    out = user.go([{"shell": "printf 'SEC%s' RET"}, END])
    assert "It has a key in it." in outputs(out, 1)[0]
    assert "SECRET" not in out.request(1)


def test_a_blocked_prompt_asks_no_model(user):
    user.say(on_user_prompt_submit={"Block": "Not today."})
    out = user.go([END])
    assert out.requests == [] and user.of("on_session_end")


def test_a_turn_that_hooks_let_go_on_has_our_cap(user):
    user.say(on_turn_complete={"Continue": "The tests fail."})
    out = user.go([{"text": "one"}])
    assert len(out.requests) == 9 and "The tests fail." in out.request(1)
    assert len(user.of("on_turn_complete")) == 9
    assert len(user.of("post_turn")) == len(user.of("on_message_received")) == 1


def test_a_patch_typed_into_the_shell_is_seen_and_can_be_denied(user):
    patch = "*** Begin Patch\n*** Add File: ran.txt\n+hello\n*** End Patch"
    script = [{"shell": f"apply_patch <<'EOF'\n{patch}\nEOF"}, END]
    user.go(script)
    assert user.ran()
    (post,) = user.of("post_tool_execution")
    assert (post["tool"] in ("Bash", "apply_patch"), post["status"]) == (True, "unknown")
    (user.project / "ran.txt").unlink()
    user.say(pre_tool_execution={"Deny": "No patches."})
    user.go(script)
    assert not user.ran()


def test_a_patch_is_a_write(user):
    patch = "*** Begin Patch\n*** Add File: ran.txt\n+hello\n*** End Patch"
    user.go([{"tool": "apply_patch", "args": {"input": patch}}, END])
    (pre,) = user.of("pre_tool_execution")
    assert (pre["kind"], [Path(path).name for path in pre["paths"]]) == ("write", ["ran.txt"])
    assert user.ran()
    (post,) = user.of("post_tool_execution")
    assert post["status"] == "ok"


def test_sub_agents_have_turns_of_their_own(user):
    user.say(
        system_prompt={"Inject": "STANDING RULES"},
        pre_tool_execution=[{"when": {"agent": "default"}, "answer": {"Deny": "Not you."}}],
    )
    user.go(
        {
            "SUBTASK": [{"shell": "touch ran.txt"}, {"text": "Sub finished."}],
            "": [
                {"tool": "multi_agent_v1/spawn_agent", "args": {"message": "SUBTASK now"}},
                {"shell": "sleep 4"},
                END,
            ],
        }
    )
    assert not user.ran()
    assert [event["text"] for event in user.of("on_message_received")] == ["please do the task"]
    (call,) = [post for post in user.of("post_tool_execution") if post["agent"] == "default"]
    assert (call["status"], bool(call["agent_id"])) == ("denied", True)
    ends = {event["agent"]: event["text"] for event in user.of("on_turn_complete")}
    assert ends == {"default": "Sub finished.", "main": "Finished."}
    assert [event["type"] for event in user.of("on_event")] == ["subagent.start", "subagent.stop"]


def test_what_the_model_was_told_is_told_again_after_compaction(user):
    """The scripted model asks for the same after each compaction, so the second one is refused: that ends the turn."""
    configure(user, "model_auto_compact_token_limit = 1000\n")
    user.say(system_prompt={"Inject": "STANDING RULES"})
    (user.base / "config/hookturn.yaml").write_text(
        (user.base / "config/hookturn.yaml").read_text()
        + "  - name: once\n    run: {module: once.py}\n    timings: [on_event]\n"
    )
    (user.base / "config/once.py").write_text(
        "from pathlib import Path\nfrom hookturn import Deny\n"
        "def on_event(event):\n"
        "    seen = Path(__file__).with_name('seen')\n"
        "    if event.type == 'compaction.before':\n"
        "        if seen.exists():\n            return Deny('Keep it all.')\n"
        "        seen.touch()\n"
    )
    out = user.run(CODEX, [{"shell": "echo x >> ran.txt", "tokens": 300_000}, END])
    assert [event["type"] for event in user.of("on_event")] == [
        "compaction.before", "compaction.after", "compaction.before",
    ]  # fmt: skip
    assert [event["source"] for event in user.of("on_session_start")] == ["startup", "compact"]
    assert "STANDING RULES" in json.dumps(out.requests[-1]["input"][-1])
    assert len(user.of("on_turn_complete")) == len(user.of("on_session_end")) == 1, "Interrupt ends the turn"


def test_what_install_writes_is_what_codex_runs(user):
    (user.home / ".codex/hooks.json").unlink()
    installed = subprocess.run(
        [*user.bridge.split()[:-1], "install", "codex", "--user", "--yes"],
        cwd=user.project, env=user.env, capture_output=True, text=True,
    )  # fmt: skip
    assert installed.returncode == 0, installed.stderr
    assert "trust" in installed.stdout + installed.stderr
    user.say(pre_tool_execution={"Deny": "No writes today."})
    out = user.go([{"shell": "touch ran.txt"}, END], env={"HOOKTURN_SERVE_IDLE": "1"})
    assert not user.ran()
    assert "clamping" not in out.stderr, "no limit is longer than Codex allows"
    assert user.of("on_session_end")


def test_our_answers_have_no_field_that_codexs_own_schemas_lack():
    """The schemas lie inside the program, as JSON texts."""
    CODEX.command()
    for event, schema in schemas().items():
        top, own = ANSWERS[event]
        properties = schema["properties"]
        assert {*top, "systemMessage"} <= set(properties), event
        assert schema["additionalProperties"] is False
        if not own:
            continue
        (where,) = properties["hookSpecificOutput"]["allOf"]
        specific = schema["definitions"][where["$ref"].rpartition("/")[2]]
        assert {*own, "hookEventName"} <= set(specific["properties"]), event
        assert specific["additionalProperties"] is False


def schemas():
    import mmap
    import re

    from agent_programs import folder

    (program,) = (folder() / CODEX.name / "node_modules/@openai").glob("codex-*/vendor/*/bin/codex")
    found = {}
    with program.open("rb") as file, mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ) as content:
        for match in re.finditer(rb'\{\s*"\$schema"', content):
            text = content[match.start() : match.start() + 100_000].decode("utf-8", "replace")
            try:
                data, _ = json.JSONDecoder().raw_decode(text)
            except ValueError:
                continue
            name, _, kind = data.get("title", "").partition(".command.")
            if kind == "output":
                found["".join(word.title() for word in name.split("-"))] = data
    assert found.keys() == ANSWERS.keys()
    return found
