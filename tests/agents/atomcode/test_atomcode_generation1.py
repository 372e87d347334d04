"""hooks.json of AtomCode by the rules of generation 1: matchers, variables, answers (tables A1.1, A4.2, A4.3, A4.5)."""

from __future__ import annotations

import json

import pytest

from hookturn import events


@pytest.fixture
def old(atom):
    atom.settings = {"generation": 1}
    return atom


def hook(command, event="pre_tool_use", **more):
    return {"event": event, "command": command, **more}


def show(out):
    return (
        out.decision,
        out.reason if out.decision else "",
        dict(out.event.args) if out.rewrites else None,
        len(out.failures),
    )


A45 = {
    "action allow": ("""echo '{"action":"allow"}'""", ("allow", "", None, 0)),
    "block with reason": ("""echo '{"action":"block","reason":"no"}'""", ("deny", "no", None, 0)),
    "block without reason": ("""echo '{"action":"block"}'""", ("deny", "the hook gave no reason", None, 0)),
    "block with exit 1": ("""echo '{"action":"block","reason":"no"}'; exit 1""", ("deny", "no", None, 0)),
    "modify with args": ("""echo '{"action":"modify","args":{"a":1}}'""", (None, "", {"a": 1}, 0)),
    "modify without args": ("""echo '{"action":"modify"}'""", (None, "", None, 1)),
    "no JSON": ("echo words", (None, "", None, 0)),
    "empty": ("exit 0", (None, "", None, 0)),
    "exit 1": ("exit 1", (None, "", None, 1)),
    "allow with exit 1": ("""echo '{"action":"allow"}'; exit 1""", (None, "", None, 1)),
    "exit 2 with a reason": ("echo no >&2; exit 2", (None, "", None, 1)),
    "generation 2's answer": (
        """echo '{"hookSpecificOutput":{"permissionDecision":"deny"}}'""",
        (None, "", None, 0),
    ),
}


@pytest.mark.parametrize("row", A45)
def test_a45_before_a_tool(old, row):
    command, expected = A45[row]
    old.json({"h": hook(command)})
    assert show(old.pre()) == expected


def test_a45_timeout_of_one_millisecond_proceeds(old):
    old.json({"h": hook("sleep 5", timeout_ms=1)})
    out = old.pre(engine=old.assemble().engine)
    assert (out.decision, out.failures[0].error_type) == (None, "TimeoutError")


def test_a45_two_modifies_the_last_counts(old):
    old.json({name: hook(f"""echo '{{"action":"modify","args":{{"by":"{name}"}}}}'""") for name in "ab"})
    assert show(old.pre()) == (None, "", {"by": "b"}, 0)


def test_a45_modify_then_allow_keeps_the_modify(old):
    old.json({
        "a": hook("""echo '{"action":"modify","args":{"a":1}}'"""),
        "b": hook("""echo '{"action":"allow"}'"""),
    })  # fmt: skip
    assert show(old.pre()) == ("allow", "", {"a": 1}, 0)


def test_a45_allow_then_block_and_the_third_never_runs(old):
    old.json({
        "a": hook("""echo '{"action":"allow"}'"""),
        "b": hook("""echo '{"action":"block","reason":"no"}'"""),
        "c": hook("touch ran"),
    })  # fmt: skip
    assert show(old.pre()) == ("deny", "no", None, 0)
    assert not (old.folder / "ran").exists()


def test_a45_a_matcher_that_does_not_match(old):
    old.json({"h": hook("touch ran; exit 1", matcher="edit_*")})
    assert show(old.pre("bash")) == (None, "", None, 0)
    assert not (old.folder / "ran").exists()


def test_a45_a_failing_post_hook_does_not_stop_the_next(old):
    old.json({"a": hook("exit 1", "post_tool_use"), "b": hook("touch ran", "post_tool_use")})
    assert len(old.post().failures) == 1
    assert (old.folder / "ran").exists()


def test_a45_a_session_hook_with_a_matcher_runs_anyway(old):
    old.json({"h": hook("touch ran", "session_start", matcher="bash")})
    old.assemble().engine.fire(events.SessionStart(session_id="s-1"))
    assert (old.folder / "ran").exists()


@pytest.mark.parametrize(
    ("status", "ran"),
    [("ok", True), ("error", True), ("timeout", True), ("denied", False), ("cancelled", False)],
)
def test_post_tool_use_fires_after_failures_and_not_after_refusals(old, status, ran):
    old.json({"h": hook("touch ran", "PostToolUse")})
    old.post(status=status)
    assert (old.folder / "ran").exists() is ran


A43 = {
    "decision block": ("""echo '{"decision":"block","reason":"no"}'""", ("block", "no", [], 0)),
    "block with exit 3": (
        """echo log; echo '{"decision":"block","reason":"no"}'; exit 3""",
        ("block", "no", [], 0),
    ),
    "block without a reason": (
        """echo '{"decision":"block"}'""",
        ("block", "the hook gave no reason", [], 0),
    ),
    "allow": ("""echo '{"decision":"allow"}'""", (None, "", [], 0)),
    "{}": ("echo '{}'", (None, "", [], 0)),
    "additionalContext": (
        """echo '{"hookSpecificOutput":{"additionalContext":"ctx"}}'""",
        (None, "", ["ctx"], 0),
    ),
    "block, then a log line": ("""echo '{"decision":"block"}'; echo bye""", (None, "", [], 1)),
    "plain text": ("echo; echo ctx; echo", (None, "", ["ctx"], 0)),
    "blanks": ("echo ' '", (None, "", [], 0)),
    "exit 1 with stderr": ("echo out; echo oops >&2; exit 1", (None, "", [], 1)),
    "a program that is not there": ("/nowhere/x", (None, "", [], 1)),
}


@pytest.mark.parametrize("row", A43)
def test_a43_prompts(old, row):
    command, expected = A43[row]
    old.json({"h": hook(command, "user_prompt_submit", matcher="ignored")})
    out = old.prompt(engine=old.assemble().engine)
    assert (out.decision, out.reason, list(out.injected), len(out.failures)) == expected


def test_a43_words_of_a_failure(old):
    old.json(
        {
            "a": hook("echo oops >&2; exit 1", "user_prompt_submit"),
            "b": hook("echo out; exit 1", "user_prompt_submit"),
        }
    )
    assert [failure.message.rpartition(": ")[2] for failure in old.prompt().failures] == ["oops", "out"]


def test_a43_timeout_goes_on(old):
    old.json({"h": hook("sleep 5", "user_prompt_submit", timeout_ms=50)})
    out = old.prompt(engine=old.assemble().engine)
    assert (out.decision, len(out.failures)) == (None, 1)


def test_a43_several_inject_then_one_blocks(old):
    old.json({name: hook(f"echo {name}", "user_prompt_submit") for name in "ab"})
    assert list(old.prompt().injected) == ["a", "b"]
    old.json(
        {
            "a": hook("echo a", "user_prompt_submit"),
            "b": hook("""echo '{"decision":"block","reason":"no"}'""", "user_prompt_submit"),
        }
    )
    assert old.prompt().decision == "block"


def test_a43_a_failing_hook_does_not_cost_the_words_of_others(old):
    old.json({"a": hook("exit 1", "user_prompt_submit"), "b": hook("echo b", "user_prompt_submit")})
    assert list(old.prompt().injected) == ["b"]


def test_a43_payload_and_no_variables(old):
    old.json({"h": hook("cat > seen.json; env | grep -c ^ATOMCODE > count", "user_prompt_submit")})
    old.prompt("hi")
    assert old.seen() == {
        "session_id": "s-1",
        "hook_event_name": "UserPromptSubmit",
        "prompt": "hi",
        "cwd": str(old.folder),
    }
    assert old.seen("count") == 0


def test_a42_variables_and_no_standard_input(old):
    old.json(
        {
            "h": hook(
                'wc -c > size; printf %s "$ATOMCODE_HOOK_CONTEXT" > seen.json; echo "$ATOMCODE_HOOK_EVENT $ATOMCODE_TOOL_NAME" > names',
                "post_tool_use",
            )
        }
    )
    old.post(status="error", result="bad")
    assert (old.folder / "names").read_text() == "post_tool_use bash\n"
    assert (old.folder / "size").read_text().strip() == "0"
    assert old.seen() == {
        "event": "post_tool_use", "tool_name": "bash", "tool_args": '{"command":"ls"}', "tool_result": "bad",
        "tool_success": False, "session_id": "s-1", "working_dir": str(old.folder),
    }  # fmt: skip


@pytest.mark.parametrize("event", ["post_tool_use", "session_start", "session_end"])
def test_a42_answers_of_other_events_are_ignored(old, event):
    old.json({"h": hook("""echo '{"action":"block","reason":"x"}'""", event)})
    fired = {
        "post_tool_use": events.PostToolExecution(tool="bash", args={}, session_id="s-1"),
        "session_start": events.SessionStart(session_id="s-1"),
        "session_end": events.SessionEnd(session_id="s-1"),
    }
    out = old.engine().fire(fired[event])
    assert (out.decision, out.injected, out.failures) == (None, (), ())


@pytest.mark.parametrize("event", ["Stop", "StopFailure", "PostToolUseFailure"])
def test_events_of_generation_2_are_told(old, event):
    old.json({"h": hook("true", event)})
    (problem,) = old.problems()
    assert f"the event {event} is none of generation 1" in problem


def test_notification_runs(old):
    old.json({"h": hook("touch ran", "Notification")})
    engine = old.engine()
    engine.fire(events.Event(type="session.idle", session_id="s-1"))
    assert not (old.folder / "ran").exists()
    engine.fire(events.Event(type="notification", session_id="s-1"))
    assert (old.folder / "ran").exists()


def test_the_generation_must_be_one_of_two(atom):
    atom.settings = {"generation": 3}
    assert "expected 2 or 1, got 3" in atom.problems()[0]


def test_a45_session_ends_once_with_real_ids(old):
    old.json({"h": hook('printf %s "$ATOMCODE_HOOK_CONTEXT" > seen.json', "session_end")})
    with old.engine().session(session_id="abc", cwd=str(old.folder)):
        pass
    assert old.seen()["session_id"] == "abc"
    assert json.loads(json.dumps(old.seen()))["event"] == "session_end"
