"""hooks.json of AtomCode, generation 2 with generation 1's variables: files, payloads, decisions (tables A1.1, B1-B3)."""

from __future__ import annotations

import json
import os

import pytest

from hookturn import Engine, Tool, events


def hook(command, event="PreToolUse", **more):
    return {"event": event, "command": command, **more}


def said(**decision):
    return f"echo '{json.dumps({'hookSpecificOutput': decision})}'"


def show(out):
    return (
        out.decision,
        out.reason if out.decision else "",
        dict(out.event.args) if out.rewrites else None,
        [failure.message.partition(": ")[2] for failure in out.failures],
    )


NOTHING = (None, "", None, [])


def denied(reason):
    return ("deny", reason, None, [])


def failed(*messages):
    return (None, "", None, list(messages))


NO_REASON = "exit code 2 without a reason, so it is no refusal"
PRE = {
    "silence": ("exit 0", NOTHING),
    "plain text": ("echo fine", NOTHING),
    "permissionDecision deny": (
        said(permissionDecision="deny", permissionDecisionReason="not here"),
        denied("not here"),
    ),
    "deny without a reason": (said(permissionDecision="deny"), denied("the hook gave no reason")),
    "permissionDecision allow": (said(permissionDecision="allow"), ("allow", "", None, [])),
    "permissionDecision ask": (
        said(permissionDecision="ask", permissionDecisionReason="network"),
        ("ask", "network", None, []),
    ),
    "updatedInput": (said(updatedInput={"command": "pwd"}), (None, "", {"command": "pwd"}, [])),
    "ask with updatedInput": (
        said(permissionDecision="ask", permissionDecisionReason="network", updatedInput={"command": "curl"}),
        ("ask", "network", {"command": "curl"}, []),
    ),
    "allow with updatedInput": (
        said(permissionDecision="allow", updatedInput={"command": "pwd"}),
        ("allow", "", {"command": "pwd"}, []),
    ),
    "action allow": ("""echo '{"action":"allow"}'""", ("allow", "", None, [])),
    "action block": ("""echo '{"action":"block","reason":"old"}'""", denied("old")),
    "action block without a reason": ("""echo '{"action":"block"}'""", denied("the hook gave no reason")),
    "action modify": ("""echo '{"action":"modify","args":{"a":1}}'""", (None, "", {"a": 1}, [])),
    "action modify without args": (
        """echo '{"action":"modify"}'""",
        failed("'action' is 'modify', and 'args' is missing"),
    ),
    "decision block": ("""echo '{"decision":"block","reason":"old"}'""", denied("old")),
    "the last line counts": ("""echo debug; echo '{"action":"block","reason":"x"}'; echo""", denied("x")),
    "JSON over several lines": ("""printf '{\\n "action": "block",\\n "reason": "x"\\n}\\n'""", denied("x")),
    "byte-order mark": ("""printf '\\357\\273\\277{"action":"block","reason":"x"}'""", denied("x")),
    "JSON decides whatever the exit code": (
        f"{said(permissionDecision='deny', permissionDecisionReason='x')}; exit 1",
        denied("x"),
    ),
    "allow with exit 2": ("""echo '{"action":"allow"}'; exit 2""", ("allow", "", None, [])),
    "exit 1": ("exit 1", failed("the command ended with exit code 1")),
    "exit 1 with words": ("echo oops >&2; exit 1", failed("the command ended with exit code 1: oops")),
    "echo X; exit 2": ("echo X; exit 2", denied("X")),
    "reason only on stderr": ("echo why >&2; exit 2", denied("why")),
    "stdout beats stderr": ("echo out; echo err >&2; exit 2", denied("out")),
    "bare exit 2": ("exit 2", failed(NO_REASON)),
    "exit 2, can't open file": (
        """echo "x: can't open file 'y'" >&2; exit 2""",
        failed("exit code 2, but it could not run: x: can't open file 'y'"),
    ),
    "exit 2, ModuleNotFoundError": (
        "echo ModuleNotFoundError >&2; exit 2",
        failed("exit code 2, but it could not run: ModuleNotFoundError"),
    ),
    "exit 2 with JSON without a decision": (
        "echo '{}'; exit 2",
        failed("the command ended with exit code 2: {}"),
    ),
    "death by signal": ("echo no >&2; kill -9 $$", failed("the command was ended by signal 9 (SIGKILL): no")),
    "an answer, then a log line": (
        """echo '{"action":"block","reason":"x"}'; echo bye""",
        failed(
            "an answer stands in line 1 of its output, and more text follows ('bye'); print the JSON last"
        ),
    ),
    "its own input": ("cat", failed("it printed its own input back; print an answer, or nothing")),
    "a misspelt decision": (
        said(permissionDecision="denny"),
        failed("unknown permissionDecision 'denny' (did you mean 'deny'?); it takes allow, deny, ask"),
    ),
}


@pytest.mark.parametrize("row", PRE)
def test_b3_before_a_tool(atom, row):
    command, expected = PRE[row]
    atom.json({"h": hook(command)})
    assert show(atom.pre()) == expected


def test_b3_a_missing_program_is_a_failure_and_no_refusal(atom):
    atom.json({"h": hook("python3 /nowhere/x.py")})
    made = atom.assemble()
    assert [problem.cause for problem in made.problems] == ["/nowhere/x.py does not exist"]
    out = atom.pre(engine=made.engine)
    assert (out.decision, out.failures[0].error_type) == (None, "FailedToStart")


def test_b3_additional_context_before_a_tool_reaches_the_model(atom):
    atom.json({"h": hook(said(additionalContext="mind the tests"))})
    engine = atom.engine()
    with engine.session(cwd=str(atom.folder)) as session, session.turn() as turn:
        turn.call_tool("bash", {"command": "ls"}, execute=lambda command: "")
        assert turn.system_prompt(["You are."]) == ["You are.", "mind the tests"]


def test_b3_ask_with_nobody_to_ask_is_refused(atom):
    atom.json({"h": hook(said(permissionDecision="ask", permissionDecisionReason="network"))})
    engine = atom.engine()
    with engine.session(cwd=str(atom.folder)) as session, session.turn() as turn:
        result = turn.call_tool("bash", {"command": "ls"}, execute=lambda command: pytest.fail("it ran"))
    assert result.status == "denied"
    assert "there is nobody to ask" in result.value


def test_b3_fold_deny_beats_ask_beats_allow_and_the_last_rewrite_wins(atom):
    atom.json({
        "a": hook(said(permissionDecision="allow", updatedInput={"command": "one"})),
        "b": hook(said(permissionDecision="ask", permissionDecisionReason="sure?")),
        "c": hook(said(updatedInput={"command": "two"})),
    })  # fmt: skip
    assert show(atom.pre()) == ("ask", "sure?", {"command": "two"}, [])
    atom.json({
        "a": hook(said(permissionDecision="ask", permissionDecisionReason="sure?")),
        "b": hook(said(permissionDecision="deny", permissionDecisionReason="no")),
        "c": hook("touch ran"),
    })  # fmt: skip
    assert show(atom.pre())[:2] == ("deny", "no")
    assert not (atom.folder / "ran").exists()


POST = {
    "silence": ("exit 0", "done", []),
    "updatedToolOutput": (said(updatedToolOutput="short"), "short", []),
    "block gives the reason to the model": (
        """echo '{"decision":"block","reason":"look"}'""",
        "done",
        ["look"],
    ),
    "additionalContext": (said(additionalContext="more"), "done", ["more"]),
    "exit 2 and action are ignored": ("""echo '{"action":"block","reason":"x"}'""", "done", []),
}


@pytest.mark.parametrize("row", POST)
@pytest.mark.parametrize(("event", "status"), [("PostToolUse", "ok"), ("PostToolUseFailure", "error")])
def test_b3_after_a_tool(atom, row, event, status):
    command, result, injected = POST[row]
    atom.json({"h": hook(command, event)})
    out = atom.post(status=status)
    assert (out.decision, out.event.result, list(out.injected)) == (None, result, injected)


def test_b3_exit_2_after_a_tool_refuses_nothing(atom):
    atom.json({"h": hook("echo no >&2; exit 2", "PostToolUse")})
    out = atom.post()
    assert (out.decision, out.event.result, len(out.failures)) == (None, "done", 1)


def test_b3_the_last_output_of_two_wins(atom):
    atom.json({name: hook(said(updatedToolOutput=name), "PostToolUse") for name in "ab"})
    assert atom.post().event.result == "b"


@pytest.mark.parametrize(
    ("status", "ran"),
    [("ok", ["ok"]), ("error", ["all", "failure"]), ("timeout", ["all", "failure"]), ("denied", ["all"])],
)
def test_b3_each_end_of_a_call_fires_one_of_the_two_events(atom, status, ran):
    atom.json({
        "ok": hook("echo ok >> ran", "PostToolUse", matcher="bash"),
        "failure": hook("echo failure >> ran", "PostToolUseFailure", matcher="bash"),
        "all": hook("echo all >> ran", "PostToolUseFailure"),
        "other": hook("echo other >> ran", "PostToolUse", matcher="grep"),
    })  # fmt: skip
    atom.post(status=status)
    assert (atom.folder / "ran").read_text().split() == ran


PROMPT = {
    "decision block": ("""echo '{"decision":"block","reason":"secret"}'""", "block", "secret", []),
    "action block": ("""echo '{"action":"block","reason":"secret"}'""", "block", "secret", []),
    "exit 2": ("echo secret >&2; exit 2", "block", "secret", []),
    "additionalContext": (said(additionalContext="ctx"), None, "", ["ctx"]),
    "plain text": ("echo; echo ctx; echo", None, "", ["ctx"]),
    "allow": ("""echo '{"decision":"allow"}'""", None, "", []),
    "{}": ("echo '{}'", None, "", []),
    "blanks": ("echo '  '", None, "", []),
}


@pytest.mark.parametrize("row", PROMPT)
def test_b3_prompts(atom, row):
    command, decision, reason, injected = PROMPT[row]
    atom.json({"h": hook(command, "UserPromptSubmit")})
    out = atom.prompt()
    assert (out.decision, out.reason, list(out.injected)) == (decision, reason, injected)


def test_b3_two_prompt_hooks_both_count_in_order(atom):
    atom.json({"b": hook("echo BBB", "UserPromptSubmit"), "a": hook("echo AAA", "UserPromptSubmit")})
    assert list(atom.prompt().injected) == ["AAA", "BBB"]


START = {
    "text": ("echo hello", ["hello"], [], 0),
    "additionalContext": (said(additionalContext="ctx"), ["ctx"], [], 0),
    "{}": ("echo '{}'", [], [], 0),
    "text with exit 1": (
        "echo hello; exit 1",
        ["hello"],
        ["the command ended with exit code 1; its words count all the same"],
        0,
    ),
    "exit 1": ("exit 1", [], [], 1),
}


@pytest.mark.parametrize("row", START)
def test_b3_session_start(atom, row):
    command, injected, warnings, failures = START[row]
    atom.json({"h": hook(command, "SessionStart")})
    out = atom.engine().fire(events.SessionStart(session_id="s-1"))
    assert (list(out.injected), list(out.warnings), len(out.failures)) == (injected, warnings, failures)


@pytest.mark.parametrize(
    ("event", "fired"),
    [
        ("SessionEnd", events.SessionEnd(session_id="s-1")),
        ("Stop", events.TurnComplete(text="bye", session_id="s-1")),
        ("StopFailure", events.Error(error_type="ApiError", message="x", phase="model", session_id="s-1")),
        ("Notification", events.Event(type="notification", properties={"message": "m"}, session_id="s-1")),
    ],
)
def test_b3_output_of_ends_is_ignored(atom, event, fired):
    atom.json({"h": hook("""touch ran; echo '{"decision":"block","reason":"x"}'""", event)})
    out = atom.engine().fire(fired)
    assert (out.decision, out.injected, out.failures) == (None, (), ())
    assert (atom.folder / "ran").exists()


# -- payloads and environment -----------------------------------------------------------------------

CALL = {"session_id": "s-1", "call_id": "c1", "tool_name": "bash"}


def test_b2_pre_tool_payload(atom):
    atom.json({"h": hook("cat > seen.json", matcher="bash")})
    atom.pre(args={"command": "echo 表", "n": 1})
    assert b"\xe8\xa1\xa8" in (atom.folder / "seen.json").read_bytes()  # readable UTF-8, as grep needs it
    assert atom.seen() == {
        **CALL, "hook_event_name": "PreToolUse", "tool_input": {"command": "echo 表", "n": 1}, "cwd": str(atom.folder),
    }  # fmt: skip


@pytest.mark.parametrize(
    ("event", "status", "tool"),
    [
        ("PostToolUse", "ok", "bash"),
        ("PostToolUseFailure", "error", "bash"),
        ("PostToolUseFailure", "denied", None),
    ],
)
def test_b2_post_tool_payload(atom, event, status, tool):
    atom.json({"h": hook("cat > seen.json", event)})
    atom.post(status=status)
    assert atom.seen() == {
        **CALL, "tool_name": tool, "hook_event_name": event, "tool_response": "done", "cwd": str(atom.folder),
    }  # fmt: skip


def test_b2_prompt_payload(atom):
    atom.json({"h": hook("cat > seen.json", "user_prompt_submit")})
    atom.prompt("hello \ud83d\x00")
    assert atom.seen() == {
        "session_id": "s-1", "hook_event_name": "UserPromptSubmit", "prompt": "hello \ud83d\x00", "cwd": str(atom.folder),
    }  # fmt: skip


@pytest.mark.parametrize("name", ["SessionStart", "SessionEnd"])
def test_b2_session_payload(atom, name):
    atom.json({"h": hook("cat > seen.json", name)})
    atom.engine().fire(getattr(events, name)(session_id="s-1", cwd=str(atom.folder)))
    assert atom.seen() == {"session_id": "s-1", "hook_event_name": name, "cwd": str(atom.folder)}


@pytest.mark.parametrize(
    ("error", "reason"),
    [
        ({"error_type": "ApiError", "message": "overloaded"}, "ProviderError"),
        ({"error_type": "TimeoutError", "message": "x"}, "Timeout"),
    ],
)
def test_b2_stop_failure_payload(atom, error, reason):
    atom.json({"h": hook("cat > seen.json", "StopFailure")})
    atom.engine().fire(events.Error(**error, phase="model", session_id="s-1", cwd=str(atom.folder)))
    assert atom.seen() == {
        "session_id": "s-1", "transcript_path": None, "hook_event_name": "StopFailure", "stop_hook_active": False,
        "stop_reason": reason, "cwd": str(atom.folder),
    }  # fmt: skip


@pytest.mark.parametrize(("hooks", "active"), [(1, False), (2, True)])
def test_b2_stop_hook_active_means_more_than_one_hook(atom, hooks, active):
    atom.json({f"h{number}": hook(f"cat > seen.json # {number}", "Stop") for number in range(hooks)})
    engine = atom.engine()
    with engine.session(session_id="s-1", cwd=str(atom.folder)) as session, session.turn() as turn:
        turn.complete("bye")
    seen = atom.seen()
    assert (seen["stop_hook_active"], seen["stop_reason"]) == (active, "Stopped")


def test_b2_exactly_one_of_stop_and_stop_failure_a_turn(atom):
    atom.json(
        {"stop": hook("echo stop >> ran", "Stop"), "failure": hook("echo failure >> ran", "StopFailure")}
    )
    engine = atom.engine()
    with engine.session(cwd=str(atom.folder)) as session:
        with session.turn() as turn:
            turn.fail("ApiError", "overloaded")
            turn.fail("ApiError", "again")
            turn.complete("")
        with session.turn() as turn:
            turn.fail("HookError", "x", phase="hook")
            turn.complete("bye")
    assert (atom.folder / "ran").read_text().split() == ["failure", "stop"]


def test_b2_variables_and_folder(atom):
    atom.json({"h": hook('"$ATOMCODE_PROJECT_DIR"/tools/env.sh', matcher="bash")})
    atom.write("tools/env.sh", "#!/bin/sh\nenv -0 > seen.env\n")
    atom.pre(engine=atom.engine())
    env = dict(line.split("=", 1) for line in (atom.folder / "seen.env").read_text().split("\0") if line)
    assert env["ATOMCODE_PROJECT_DIR"] == env["CLAUDE_PROJECT_DIR"] == env["PWD"] == str(atom.folder)
    assert (env["ATOMCODE_HOOK_EVENT"], env["ATOMCODE_TOOL_NAME"]) == ("pre_tool_use", "bash")
    assert json.loads(env["ATOMCODE_HOOK_CONTEXT"]) == {
        "event": "pre_tool_use", "tool_name": "bash", "tool_args": '{"command":"ls"}', "tool_result": None,
        "tool_success": None, "session_id": "s-1", "working_dir": str(atom.folder),
    }  # fmt: skip


def test_a42_no_tool_name_outside_of_tool_events(atom, monkeypatch):
    monkeypatch.setenv("ATOMCODE_TOOL_NAME", "outer")
    atom.json({"h": hook("echo ${ATOMCODE_TOOL_NAME-unset} > seen", "SessionStart")})
    atom.engine().fire(events.SessionStart(session_id="s-1"))
    assert (atom.folder / "seen").read_text() == "unset\n"


@pytest.mark.parametrize("generation", [2, 1])
def test_a11_a_context_that_no_variable_can_hold_lies_in_a_file_and_the_hook_still_runs(atom, generation):
    atom.settings = {"generation": generation}
    atom.json(
        {
            "h": hook(
                'cp "$ATOMCODE_HOOK_CONTEXT_FILE" seen.json; stat -c %a "$ATOMCODE_HOOK_CONTEXT_FILE" > mode; echo "${ATOMCODE_HOOK_CONTEXT_FILE}" > path'
            )
        }
    )
    atom.pre(args={"command": "x" * 200_000})
    assert json.loads(atom.seen()["tool_args"])["command"] == "x" * 200_000
    assert (atom.folder / "mode").read_text() == "600\n"
    assert not os.path.exists((atom.folder / "path").read_text().strip())


def test_a11_a_context_of_fifty_kilobytes_is_still_a_variable(atom):
    atom.json(
        {"h": hook('printf %s "$ATOMCODE_HOOK_CONTEXT" > seen.json; test -z "$ATOMCODE_HOOK_CONTEXT_FILE"')}
    )
    assert atom.pre(args={"command": "x" * 50_000}).failures == ()
    assert len(atom.seen()["tool_args"]) > 50_000


def test_b2_the_hook_runs_where_the_projects_folder_is_gone(atom):
    atom.json({"h": hook("echo no; exit 2")}, user=True)
    engine = atom.engine()
    engine.project_dir = str(atom.folder / "gone")
    assert atom.pre(engine=engine).reason == "no"


def test_b2_a_hook_that_does_not_read_two_megabytes_decides(atom):
    atom.json({"h": hook("echo no; exit 2")})
    assert atom.pre(args={"content": "x" * 2_000_000}).reason == "no"


def test_b2_children_speak_utf8_whatever_the_locale(atom, monkeypatch):
    monkeypatch.setenv("LC_ALL", "C")
    monkeypatch.setenv("PYTHONIOENCODING", "cp932")
    atom.json(
        {
            "h": hook(
                "python3 -c 'import sys,json; print(json.load(sys.stdin)[\"prompt\"])'", "UserPromptSubmit"
            )
        }
    )
    assert list(atom.prompt("表 é").injected) == ["表 é"]


# -- the file ---------------------------------------------------------------------------------------


def entries(atom):
    from hookturn.project.assemble import Survey

    return {entry.name: entry for file in Survey(atom.folder).foreign for entry in file.entries}


@pytest.mark.parametrize(
    "event",
    [
        "PreToolUse",
        "PostToolUse",
        "PostToolUseFailure",
        "UserPromptSubmit",
        "SessionStart",
        "SessionEnd",
        "Stop",
        "StopFailure",
    ],
)
def test_b1_eight_events_in_both_spellings(atom, event):
    from hookturn.agents.atomcode.matcher import snake

    atom.json({"a": hook("true", event), "b": hook("true", snake(event))})
    assert atom.problems() == []
    assert [entry.extra["event"] for entry in entries(atom).values()] == [event, event]


@pytest.mark.parametrize(
    ("event", "words"),
    [
        ("preToolUse", "unknown event 'preToolUse' (did you mean 'PreToolUse'?)"),
        ("pre_tool", "unknown event 'pre_tool' (did you mean 'pre_tool_use'?)"),
        ("PreCompact", "unknown event 'PreCompact'"),
    ],
)
def test_b1_other_spellings_are_told(atom, event, words):
    atom.json({"good": hook("echo no; exit 2"), "bad": hook("true", event)})
    made = atom.assemble()
    (problem,) = made.problems
    assert words in problem.cause
    assert (problem.line, problem.path) == (8, "hooks.bad.event")
    assert atom.pre(engine=made.engine).reason == "no"


def test_b1_good_disabled_and_bogus(atom):
    atom.json({"good": hook("true"), "off": hook("true", disabled=True), "bogus": hook("true", "Bogus")})
    states = atom.states()
    assert (states["good"][0], states["off"][0], "bogus" in states) == ("loaded", "disabled", False)
    assert len(atom.problems()) == 1


def test_b1_comments_are_fine_and_a_url_stays_whole(atom):
    atom.json("""{
      // ask before network tools
      "hooks": {
        "a": {"event": "PreToolUse", /* all */ "command": "echo https://example.net; exit 2"} // "quoted"
      }
    }""")
    assert atom.pre().reason == "https://example.net"


def test_b1_a_trailing_comma_costs_the_file_with_its_place_and_no_other_file(atom):
    atom.json({"user": hook("echo no; exit 2")}, user=True)
    atom.json('{\n"hooks": {\n"a": {"event": "PreToolUse", "command": "true"},\n}\n}')
    made = atom.assemble()
    (problem,) = made.problems
    assert (problem.file, problem.line) == (".hooks.json", 4)
    assert atom.pre(engine=made.engine).reason == "no"


def test_b1_a_folder_is_unreadable_and_not_missing(atom):
    (atom.folder / ".hooks.json").mkdir()
    (problem,) = atom.problems()
    assert problem.startswith(".hooks.json: cannot be read")


def test_a11_no_file_no_hooks(atom):
    assert atom.problems() == []


def test_a11_defaults_and_order_by_name(atom):
    atom.json({"b": hook("true"), "a": hook("true", timeout_ms=2500), "c": hook("true", timeout_ms=10)})
    found = entries(atom)
    assert list(found) == ["a", "b", "c"]
    assert [entry.options["timeout"] for entry in found.values()] == [2.5, 10.0, 0.01]


def test_a1_atomcode_home_is_the_folder_itself(atom, monkeypatch, tmp_path):
    other = tmp_path / "other"
    monkeypatch.setenv("ATOMCODE_HOME", str(other))
    atom.home = other
    atom.json({"h": hook("echo no; exit 2")}, user=True)
    assert atom.pre().reason == "no"


BAD = {
    "no command": ({"event": "PreToolUse"}, "hooks.bad: the entry has no 'command'"),
    "no event": ({"command": "true"}, "hooks.bad: the entry has no 'event'"),
    "command of another type": (hook(["true"]), "hooks.bad.command: expected a string, got an array"),
    "matcher of another type": (
        hook("true", matcher={"type": "always"}),
        "hooks.bad.matcher: expected a string, got an object",
    ),
    "timeout as text": (
        hook("true", timeout_ms="5"),
        "expected milliseconds as a whole number, got a string",
    ),
    "timeout 0": (hook("true", timeout_ms=0), "expected milliseconds from 1 to 86400000, got 0"),
    "disabled as text": (
        hook("true", disabled="yes"),
        "hooks.bad.disabled: expected true or false, got a string",
    ),
    "no object": (5, "hooks.bad: a hook is an object, got a number"),
    "empty command": (hook(" "), "hooks.bad.command: the text is empty or holds a NUL"),
}


@pytest.mark.parametrize("row", BAD)
def test_a7_a_bad_entry_costs_only_itself(atom, row):
    bad, words = BAD[row]
    warn = hook(said(permissionDecision="allow"))
    atom.json({"a": warn, "bad": bad, "c": hook("echo no; exit 2")})
    made = atom.assemble()
    (problem,) = [str(problem) for problem in made.problems]
    assert words in problem
    assert atom.pre(engine=made.engine).reason == "no"


SHAPES = {
    "Claude Code's": '{"hooks": {"PreToolUse": [{"hooks": [{"type": "command", "command": "touch ran"}]}]}}',
    "another tool's": '{"hooks": {"pre-commit": {"run": "touch ran"}}}',
    "no hooks": '{"repos": []}',
    "a list": '{"hooks": ["touch ran"]}',
}


@pytest.mark.parametrize("row", SHAPES)
def test_a_hooks_json_of_another_program_is_told_and_not_guessed(atom, row):
    atom.json(SHAPES[row])
    made = atom.assemble()
    (problem,) = made.problems
    assert "this is no hooks.json of AtomCode" in problem.cause
    assert problem.severity == "warning"
    atom.pre(engine=made.engine)
    assert not (atom.folder / "ran").exists()


# -- scopes -----------------------------------------------------------------------------------------


def test_a_projects_hook_replaces_the_users_of_its_name(atom):
    atom.json({"h": hook("echo user; exit 2")}, user=True)
    assert atom.pre().reason == "user"
    atom.json({"h": hook("echo project; exit 2")})
    assert atom.pre().reason == "project"


@pytest.mark.parametrize("off", [{"disabled": True}, hook("true", disabled=True), {"enabled": False}])
def test_a4_a_project_can_switch_a_users_hook_off(atom, off):
    atom.json({"h": hook("echo user; exit 2")}, user=True)
    atom.json({"h": off})
    made = atom.assemble()
    assert atom.pre(engine=made.engine).decision is None
    assert "switched off by .hooks.json:3" in {row.reason for row in made.plugins}


def test_merge_concatenate_runs_both_and_names_mean_nothing(atom):
    atom.settings = {"merge": "concatenate"}
    atom.json({"h": hook("echo user", "UserPromptSubmit")}, user=True)
    atom.json({"h": hook("echo project", "UserPromptSubmit")})
    assert list(atom.prompt().injected) == ["user", "project"]


@pytest.mark.parametrize("merge", ["name", "concatenate"])
def test_the_same_hook_in_two_scopes_runs_once(atom, merge):
    atom.settings = {"merge": merge}
    atom.json({"one": hook("echo ctx", "UserPromptSubmit")}, user=True)
    atom.json({"two": hook("echo ctx", "UserPromptSubmit")})
    assert list(atom.prompt().injected) == ["ctx"]


def test_a_hook_that_calls_our_bridge_never_runs(atom):
    atom.json({"h": hook("touch ran; hookturn bridge atomcode", matcher="*")})
    atom.pre()
    assert not (atom.folder / "ran").exists()
    assert atom.states()["h"] == ("disabled", "it calls hookturn itself")


def test_trust_covers_the_scripts_that_a_line_names_by_variable(atom):
    atom.json({"h": hook('"$ATOMCODE_PROJECT_DIR"/tools/no.sh; exit 2')})
    atom.write("tools/no.sh", "#!/bin/sh\necho no\n")
    assert atom.pre().reason == "no"
    atom.write("tools/no.sh", "#!/bin/sh\necho changed\n")
    made = atom.assemble(trust=False)
    assert atom.pre(engine=made.engine).decision is None


def test_a_log_that_a_line_writes_is_no_part_of_what_is_trusted(atom):
    atom.json({"h": hook("sh tools/no.sh < tools/list >> ran.log 2>> other.log; exit 2")})
    atom.write("tools/no.sh", "cat; echo no >&2\n")
    atom.write("tools/list", "one\n")
    for _ in range(2):
        made = atom.assemble(trust=not (atom.folder / "ran.log").exists())
        atom.pre(engine=made.engine)
    assert (atom.folder / "ran.log").read_text() == "one\none\n"
    atom.write("tools/list", "two\n")
    atom.pre(engine=atom.assemble(trust=False).engine)
    assert (atom.folder / "ran.log").read_text() == "one\none\n"


def test_t42_payload_values_never_reach_the_shell(atom):
    atom.json({"h": hook("cat > seen.json")})
    args = {"command": "a.py; touch pwned", "path": "$(touch pwned)", "other": "`touch pwned`'\""}
    atom.pre(args=args)
    assert atom.seen()["tool_input"] == args
    assert not (atom.folder / "pwned").exists()


def test_tools_of_atomcode_have_kinds():
    from hookturn.agents.atomcode.tools import TOOLS

    assert isinstance(TOOLS["bash"], Tool)
    assert Engine(tools=TOOLS).tools["edit_file"].kind == "write"
