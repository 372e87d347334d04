"""``bridge copilot``: each event of GitHub Copilot CLI under both keys, and what Copilot is told."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))

from agent_calls import SAYINGS, Hooks, takes_whatever_hooks_say
from copilot_answers import ANSWERS, check

from hookturn import (
    Allow,
    Ask,
    Block,
    Continue,
    Deny,
    Engine,
    Inject,
    Reply,
    Rewrite,
)
from hookturn.agents import bridge
from hookturn.agents.copilot import hooks as copilot

CAPTURES = Path(__file__).parent.parent / "data/captures"
SESSION = "dffee1b7-a354-453c-8e70-1f0ccfee117d"


class Copilot:
    """Copilot as the bridge sees it. Every call has an engine of its own, as if it were a process.

    Parameters:
        folder: for the state.
        hooks: the user's.
        keys: ``copilot`` for camelCase, ``copilot-pascal`` for PascalCase.
    """

    def __init__(self, folder, hooks, keys="copilot", **options):
        self.folder = folder
        self.hooks = hooks
        self.keys = keys
        self.options = options
        self.kept = None
        folder.mkdir(exist_ok=True)
        self.environ = {"COPILOT_CLI": "1", "COPILOT_PROJECT_DIR": str(folder)}

    def engine(self, place):
        if self.kept is not None:
            return self.kept
        return Engine([("hooks", self.hooks)], state_dir=self.folder / "state", **self.options)

    def send(self, payload, agent="copilot", **more):
        if not isinstance(payload, bytes):
            payload = json.dumps(payload).encode()
        return bridge.answer(
            agent, payload, environ=self.environ, cwd=str(self.folder), engine_for=self.engine, **more
        )

    def __call__(self, event, **fields):
        """Send an event (by its camelCase name) as it was captured, with other fields."""
        payload = {**self.captured(event), **fields}
        name = self.name(event)
        return check(
            name.removesuffix(".subagent"),
            self.send({key: value for key, value in payload.items() if value is not None}),
        )

    def name(self, event):
        pascal = {own: key for key, own in copilot.PASCAL.items()}
        base, dot, more = event.partition(".")
        return f"{pascal.get(base, base)}{dot}{more}" if self.keys != "copilot" else event

    def captured(self, event):
        path = CAPTURES / self.keys / f"{self.name(event)}.json"
        if not path.exists():
            path = CAPTURES / "copilot" / f"{event}.json"
        payload = (
            json.loads(path.read_text()) if path.exists() else {"customInstructions": "", "trigger": "auto"}
        )
        if "subagent" not in event:
            payload["session_id" if "session_id" in payload else "sessionId"] = SESSION
        payload["cwd"] = "/"
        return payload

    def tool(self, command="ls", **more):
        args = {"command": command, "description": "Run"}
        return self("preToolUse", **{self.args: args}, **more)

    def done(self, command="ls", **more):
        args = {"command": command, "description": "Run"}
        return self("postToolUse", **{self.args: args}, **more)

    @property
    def args(self):
        return "toolArgs" if self.keys == "copilot" else "tool_input"


@pytest.fixture
def hooks():
    return Hooks()


@pytest.fixture(params=["copilot", "copilot-pascal"], ids=["camelCase", "PascalCase"])
def agent(tmp_path, hooks, request):
    return Copilot(tmp_path, hooks, request.param)


@pytest.fixture
def camel(tmp_path, hooks):
    return Copilot(tmp_path, hooks)


def decision(answer):
    return answer.get("permissionDecision"), answer.get("permissionDecisionReason", "")


def extra(agent):
    """What ``check`` adds under PascalCase keys."""
    return {"updatedInput": None} if agent.keys == "copilot-pascal" else {}


# -- which event it is ------------------------------------------------------------------------------

FILES = sorted(path for keys in ("copilot", "copilot-pascal") for path in (CAPTURES / keys).glob("*.json"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_every_captured_payload_tells_its_event(path):
    name = copilot.event_name(json.loads(path.read_text()))
    event, _, more = path.stem.partition(".")
    wanted = copilot.PASCAL.get(event, event)
    if more == "subagent" and wanted == "agentStop":
        wanted = copilot.SUBAGENT_TURN
    assert copilot.PASCAL.get(name, name) == wanted
    assert name in copilot.EVENTS


def test_the_table_has_every_event_under_both_keys_and_installs_its_own():
    assert set(ANSWERS) == {row.event for row in copilot._ROWS}
    for key, own in copilot.PASCAL.items():
        assert copilot.EVENTS[key].timings == copilot.EVENTS[own].timings
        assert not copilot.EVENTS[key].install
    assert not copilot.EVENTS[copilot.SUBAGENT_TURN].install


def test_a_payload_that_tells_nothing_gets_the_event_of_the_command_line(camel, hooks):
    assert (
        check("preCompact", camel.send({"sessionId": SESSION, "trigger": "auto"}, event="preCompact")) == {}
    )
    assert hooks.of("on_event")[0].type == "compaction.before"


# -- every event ------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", sorted(ANSWERS))
def test_without_hooks_there_is_nothing_to_say(tmp_path, event):
    for keys in ("copilot", "copilot-pascal"):
        assert Copilot(tmp_path, object(), keys)(event) == {}


@pytest.mark.parametrize("event", sorted(ANSWERS))
def test_every_event_fires_its_timings_with_the_payload(agent, hooks, event):
    agent("userPromptSubmitted")
    hooks.events.clear()
    payload = agent.captured(event)
    agent(event)
    row = copilot.EVENTS[event]
    if event == "sessionStart":
        assert hooks.events == [], "the prompt had started it"
        return
    seen = [one for one in hooks.events if one.timing in row.timings and one.raw is not None]
    assert seen and seen[-1].raw == payload
    assert seen[-1].host == "copilot"


OWN_SAYINGS = [
    ("post_tool_execution", Rewrite(result={"textResultForLlm": "other"})),
    ("post_tool_execution", Rewrite(result_text="other")),
    *[("on_event", answer) for answer in (Inject("context"), Reply("text"), Reply({"a": 1}))],
]


@pytest.mark.parametrize(("timing", "answer"), [*SAYINGS, *OWN_SAYINGS], ids=lambda value: repr(value)[:40])
def test_whatever_hooks_say_copilot_takes_the_answer(agent, timing, answer):
    takes_whatever_hooks_say(agent, sorted(ANSWERS), "userPromptSubmitted", timing, answer)


# -- sessions ---------------------------------------------------------------------------------------


def test_a_session_from_start_to_end(agent, hooks):
    for event in ("sessionStart", "userPromptSubmitted", "preToolUse", "permissionRequest", "postToolUse"):
        agent(event)
    agent("agentStop")
    agent("sessionEnd")
    assert [timing for timing in hooks.timings if timing != "on_event"] == [
        "on_session_start", "on_message_received", "on_user_prompt_submit", "on_turn_start", "system_prompt",
        "on_tool_call_start", "pre_tool_execution", "on_permission_request", "post_tool_execution",
        "system_prompt", "on_turn_complete", "post_turn", "on_session_end",
    ]  # fmt: skip
    assert len({event.session_id for event in hooks.events}) == 1
    assert hooks.of("on_session_start")[0].source == "startup"
    assert hooks.of("on_session_end")[0].reason == "complete"


def test_the_first_prompt_may_overtake_the_start(agent, hooks):
    agent("userPromptSubmitted")
    agent("sessionStart")
    agent("agentStop")
    agent("sessionEnd")
    assert hooks.timings.count("on_session_start") == hooks.timings.count("on_session_end") == 1


def test_the_start_may_come_after_the_end(agent, hooks):
    """When the first prompt is refused."""
    hooks.says["on_user_prompt_submit"] = Block("no")
    for event in ("userPromptSubmitted", "sessionEnd", "sessionStart"):
        agent(event)
    assert hooks.timings.count("on_session_start") == hooks.timings.count("on_session_end") == 1
    agent("sessionStart", source="resume")
    assert hooks.timings.count("on_session_start") == 2


def test_a_start_much_later_is_a_new_run(camel, hooks, monkeypatch):
    import time

    camel("userPromptSubmitted")
    now = time.time()
    monkeypatch.setattr(time, "time", lambda: now + 3600)
    camel("sessionStart", source="resume")
    assert hooks.timings.count("on_session_start") == 2
    assert [end.reason for end in hooks.of("on_session_end")] == ["unknown"]


def test_a_prompt_waits_for_the_hooks_of_a_start_in_another_process(camel, hooks):
    from threading import Event, Thread

    begun, go_on = Event(), Event()

    def slow(event):
        begun.set()
        assert go_on.wait(20)
        return Block("No sessions here.")

    hooks.says["on_session_start"] = slow
    start = Thread(target=lambda: camel("sessionStart"))
    start.start()
    assert begun.wait(20)
    answers = []
    prompt = Thread(target=lambda: answers.append(camel("userPromptSubmitted")))
    prompt.start()
    prompt.join(0.2)
    assert answers == []
    go_on.set()
    start.join(20)
    prompt.join(20)
    assert answers[0]["decision"] == "block" and "No sessions here." in answers[0]["reason"]
    assert "on_message_received" not in hooks.timings


def test_an_error_is_told_and_ends_no_turn(agent, hooks):
    agent("userPromptSubmitted")
    agent("errorOccurred")
    (error,) = hooks.of("on_error")
    assert (error.error_type, "MARK_APIERROR" in error.message or "bad" in error.message) == ("Error", True)
    agent.tool()
    assert hooks.of("pre_tool_execution")[0].turn == 1
    agent("sessionEnd", reason="error")
    assert hooks.timings.count("on_turn_start") == hooks.timings.count("post_turn") == 1


def test_after_a_compaction_the_system_prompt_is_told_again(camel, hooks):
    hooks.says["system_prompt"] = Inject("RULES")
    assert "RULES" in camel("userPromptSubmitted")["additionalContext"]
    camel.tool()
    assert camel.done() == {}
    camel("preCompact")
    camel.tool("pwd")
    assert "RULES" in camel.done("pwd")["additionalContext"]


def recorded(path, *lines):
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return {"transcriptPath": str(path), "transcript_path": str(path)}


def said(text, **more):
    return {"type": "assistant.message", "data": {"content": text}, **more}


ASKED = {"type": "user.message", "data": {"content": "x"}}


@pytest.mark.parametrize(
    ("lines", "text"),
    [
        ([ASKED, said("first"), said("last"), {"type": "assistant.turn_end", "data": {}}], "last"),
        ([said("main"), said("sub", agentId="a")], "main"),
        ([said("before"), ASKED], ""),
        ([said("before"), said("after"), '{"type":"assistant.message","data'], "after"),
        ([said("before"), said(None)], ""),
        ([said("before"), '["assistant.message"]'], "before"),
        ([], ""),
    ],
)
def test_the_models_last_words_are_read_from_the_recording(agent, hooks, tmp_path, lines, text):
    agent("userPromptSubmitted")
    agent("agentStop", **recorded(tmp_path / "events.jsonl", *lines))
    assert hooks.of("on_turn_complete")[0].text == text
    assert [event.text for event in hooks.of("on_model_response")] == ([text] if text else [])


@pytest.mark.parametrize("there", ["some", "empty", "none"])
def test_words_that_are_not_written_yet_are_waited_for(camel, hooks, tmp_path, there):
    from threading import Timer

    camel("userPromptSubmitted")
    call = {"type": "assistant.message", "data": {"content": "I call.", "toolRequests": [{"name": "bash"}]}}
    path = tmp_path / "events.jsonl"
    more = recorded(path, *[ASKED, call][: 2 if there == "some" else 0])
    if there == "none":
        path.unlink()
    timer = Timer(0.1, lambda: recorded(path, ASKED, call, said("last", more=1)))
    timer.start()
    camel("agentStop", **more)
    timer.join()
    assert hooks.of("on_turn_complete")[0].text == "last"


def test_a_recording_that_is_no_file_or_huge(camel, hooks, tmp_path):
    import os

    camel("userPromptSubmitted")
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "link").symlink_to("/etc/passwd")
    for path in ("fifo", "link", "missing", ".", "nul\0"):
        camel("agentStop", transcriptPath=str(tmp_path / path))
    more = recorded(tmp_path / "huge", said("x" * 5_000_000), said("last"))
    camel("agentStop", **more)
    assert [event.text for event in hooks.of("on_turn_complete")] == [""] * 5 + ["last"]


# -- prompts ----------------------------------------------------------------------------------------


def test_a_prompt_is_refused_changed_or_explained(agent, hooks):
    hooks.says["on_user_prompt_submit"] = Block("Not today.")
    answer = agent("userPromptSubmitted")
    assert (answer["decision"], "Not today." in answer["reason"]) == ("block", True)
    hooks.says = {"on_message_received": Rewrite("other words"), "on_user_prompt_submit": Inject("context")}
    answer = agent("userPromptSubmitted")
    assert answer == {"modifiedPrompt": "other words", "additionalContext": "context"}


def test_a_reply_takes_the_place_of_what_copilot_made_of_the_prompt(camel, hooks):
    hooks.says["on_event"] = lambda event: Reply("TEXT") if event.type == "prompt.transformed" else None
    assert camel("userPromptTransformed") == {"modifiedTransformedPrompt": "TEXT"}


def test_a_turn_that_goes_on_is_no_new_prompt(agent, hooks):
    agent("userPromptSubmitted")
    hooks.says["on_turn_complete"] = Continue("More, please.")
    for _ in range(8):
        assert agent("agentStop") == {"decision": "block", "reason": "More, please."}
        assert agent("userPromptSubmitted", prompt="More, please.") == {}
    assert agent("agentStop") == {}, "eight times, as Copilot itself"
    assert hooks.timings.count("on_message_received") == hooks.timings.count("post_turn") == 1
    agent("userPromptSubmitted", prompt="More, please.")  # this time the user says it
    assert hooks.timings.count("on_message_received") == 2


def test_another_prompt_than_what_a_hook_said_is_the_users(agent, hooks):
    agent("userPromptSubmitted")
    hooks.says["on_turn_complete"] = lambda event: None if event.continued else Continue("More, please.")
    agent("agentStop")
    agent("userPromptSubmitted", prompt="Stop that.")
    assert [event.text for event in hooks.of("on_message_received")][1:] == ["Stop that."]
    assert hooks.timings.count("post_turn") == 1


# -- tool calls -------------------------------------------------------------------------------------


def test_a_denied_call_is_denied_in_json_and_gets_its_post_from_the_bridge(agent, hooks):
    hooks.says["pre_tool_execution"] = Deny("No recursive delete.", advice="Name the files.")
    said, reason = decision(agent.tool("rm -rf /"))
    assert said == "deny"
    assert "No recursive delete." in reason and "Name the files." in reason
    agent("agentStop")
    (post,) = hooks.of("post_tool_execution")
    assert (post.status, post.by) == ("denied", "hooks")


def test_a_rewrite_goes_where_the_key_is_read(tmp_path, hooks):
    hooks.says["pre_tool_execution"] = Rewrite(command="ls -a")
    args = {"command": "ls -a", "description": "Run"}
    assert Copilot(tmp_path / "c", hooks).tool() == {"modifiedArgs": args}
    answer = Copilot(tmp_path / "p", hooks, "copilot-pascal").tool()
    assert answer["updatedInput"] == args


def test_a_rewritten_calls_end_is_found(agent, hooks):
    hooks.says["pre_tool_execution"] = Rewrite(command="ls -a")
    agent.tool("ls")
    agent.done("ls -a")
    (pre,), (post,) = hooks.of("pre_tool_execution"), hooks.of("post_tool_execution")
    assert (post.call_id, post.command, post.status) == (pre.call_id, "ls -a", "ok")
    agent("agentStop")
    assert len(hooks.of("post_tool_execution")) == 1


def test_parallel_calls_of_one_tool_are_told_apart(agent, hooks):
    for command in ("one", "two", "three"):
        agent.tool(command)
    for command in ("three", "one", "two"):
        agent.done(command)
    ids = {event.command: event.call_id for event in hooks.of("pre_tool_execution")}
    assert {event.command: event.call_id for event in hooks.of("post_tool_execution")} == ids
    assert len(set(ids.values())) == 3


def test_ask_and_allow_are_copilots_own(agent, hooks):
    hooks.says["pre_tool_execution"] = Ask("It touches production.")
    assert decision(agent.tool()) == ("ask", "It touches production.")
    hooks.says["pre_tool_execution"] = Allow("Reading is fine.")
    assert decision(agent.tool("pwd")) == ("allow", "Reading is fine.")


def test_context_before_and_after_a_tool(agent, hooks):
    agent("userPromptSubmitted")
    hooks.says = {"on_event": Inject("before"), "post_tool_execution": Inject("after")}
    agent("preCompact")  # takes no context: it waits for the next that does
    assert agent.tool() == {"additionalContext": "before", **extra(agent)}
    assert agent.done() == {"additionalContext": "after"}
    assert agent("postToolUseFailure") == {"additionalContext": "after"}


def test_a_block_refuses_the_turns_later_calls(agent, hooks):
    agent("userPromptSubmitted")
    hooks.says["pre_tool_execution"] = Block("enough")
    assert decision(agent.tool())[0] == "deny"
    hooks.says.clear()
    assert decision(agent.tool("pwd"))[0] == "deny"
    agent("userPromptSubmitted")
    assert agent.tool("pwd") == {}


def test_arguments_as_json_text_are_understood(camel, hooks):
    """As the coding agent writes them."""
    camel("preToolUse", toolArgs='{"command": "ls"}')
    assert hooks.of("pre_tool_execution")[0].command == "ls"


@pytest.mark.parametrize("args", ["{", "[]", 5, None, ["ls"]])
def test_a_call_that_cannot_be_judged_is_refused_where_a_hook_fails_closed(tmp_path, args):
    closed = Copilot(tmp_path / "c", Hooks(closed=["pre_tool_execution"]))
    answer = closed("preToolUse", toolArgs=args)
    assert answer["permissionDecision"] == "deny" and "fails closed" in answer["permissionDecisionReason"]
    assert Copilot(tmp_path / "o", Hooks())("preToolUse", toolArgs=args) == {}


# -- permissions ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("answer", "decided"),
    [(Allow("go"), {"behavior": "allow"}), (Deny("no"), {"behavior": "deny"}), (None, {})],
)
def test_a_prompt_of_copilot_is_answered_by_hooks(agent, hooks, answer, decided):
    hooks.says["on_permission_request"] = answer
    agent.tool("ls")
    told = agent("permissionRequest", toolInput={"command": "ls"})
    assert {key: value for key, value in told.items() if key != "message"} == decided
    assert "no" in told.get("message", "no")
    (request,) = hooks.of("on_permission_request")
    assert (request.by, request.call_id) == ("copilot", hooks.of("pre_tool_execution")[0].call_id)
    if isinstance(answer, Deny):
        assert hooks.of("post_tool_execution")[0].status == "denied"


def test_a_permission_in_other_words_is_about_its_call(camel, hooks):
    """``create`` is asked for as ``edit``, with a diff."""
    hooks.says["on_permission_request"] = Deny("no")
    path = camel.captured("permissionRequest.create")["toolInput"]["file_path"]
    camel.tool()
    camel("preToolUse", toolName="create", toolArgs={"path": "/other", "file_text": "x"})
    camel("preToolUse", toolName="create", toolArgs={"path": path, "file_text": "hello"})
    camel.send(camel.captured("permissionRequest.create"))
    (post,) = hooks.of("post_tool_execution")
    assert (post.tool, post.args["path"], post.status) == ("create", path, "denied")


def test_a_permission_of_an_mcp_tool(camel, hooks):
    camel("preToolUse", toolName="demo-echo", toolArgs={"text": "hi"})
    camel("permissionRequest", toolName="demo/echo", toolInput={"text": "hi"})
    (pre,), (asked,) = hooks.of("pre_tool_execution"), hooks.of("on_permission_request")
    assert (asked.call_id, asked.mcp) == (pre.call_id, ("demo", "echo")) and pre.mcp == asked.mcp


def test_a_permission_that_is_about_no_open_call_is_asked_alone(camel, hooks):
    camel("userPromptSubmitted")
    hooks.says["on_permission_request"] = Deny("no")
    assert camel("permissionRequest")["behavior"] == "deny"
    assert hooks.of("post_tool_execution") == []


# -- results ----------------------------------------------------------------------------------------


def test_a_result_is_changed(agent, hooks):
    agent.tool()
    hooks.says["post_tool_execution"] = Rewrite(result_text="short")
    assert agent.done() == {"modifiedResult": {"resultType": "success", "textResultForLlm": "short"}}


def test_a_withheld_result_is_blocked(agent, hooks):
    agent.tool()
    hooks.says["post_tool_execution"] = Deny("It holds a key.")
    answer = agent.done()
    assert answer.keys() == {"decision", "reason"} and "It holds a key." in answer["reason"]


def test_the_text_of_a_result_is_the_result(agent, hooks):
    agent.tool()
    agent.done()
    (post,) = hooks.of("post_tool_execution")
    assert post.result_text == "MARK_TOOLOUT\n<shellId: 0 completed with exit code 0>"


def test_a_failed_calls_text_cannot_be_withheld_and_says_so(camel, hooks):
    hooks.says["post_tool_execution"] = Deny("no")
    answer = camel.send(camel.captured("postToolUseFailure"))
    assert (answer.stdout, "the model has it" in answer.stderr) == (b"", True)
    assert hooks.of("post_tool_execution")[0].status == "error"


# -- sub-agents -------------------------------------------------------------------------------------

PARENT = json.loads((CAPTURES / "copilot/subagentStart.json").read_text())


def test_a_sub_agents_events_are_the_sessions(agent, hooks):
    parent = agent.captured("preToolUse.subagent")
    session = parent.get("parentAgentId") or parent.get("parent_agent_id")
    for event in ("userPromptSubmitted", "preToolUse", "permissionRequest", "postToolUse", "agentStop"):
        agent(f"{event}.subagent")
    assert {event.session_id for event in hooks.events} == {session}
    calls = [event for event in hooks.events if "tool" in event.timing]
    assert {event.agent_id for event in calls} == {parent.get("agentId") or parent.get("agent_id")}
    assert len({event.call_id for event in calls}) == 1
    assert hooks.of("on_message_received") == []


def child(event, agent_id, parent, session, **fields):
    """An event of a sub-agent."""
    common = {"sessionId": session, "timestamp": 1, "cwd": "/", "agentId": agent_id, "parentAgentId": parent}
    return {**common, "agentType": "task", **fields}


def test_a_sub_agents_sub_agent_is_the_sessions_too(camel, hooks):
    camel("userPromptSubmitted")
    start = {"agentName": "task", "transcriptPath": "/t"}
    camel.send(child("subagentStart", "mid", SESSION, SESSION, **start))
    # Copilot names a session here that occurs nowhere else.
    camel.send(child("subagentStart", "deep", "mid", "third", **start))
    call = {"toolName": "bash", "toolArgs": {"command": "ls"}}
    camel.send(child("preToolUse", "deep", "mid", "deep", **call))
    result = {"resultType": "success", "textResultForLlm": "x"}
    camel.send(child("postToolUse", "deep", "mid", "deep", **call, toolResult=result))
    over = {**start, "response": "Deep done.", "stopReason": "end_turn", "stop_hook_active": False}
    camel.send(child("subagentStop", "deep", "mid", "third", **over))
    assert {event.session_id for event in hooks.events} == {SESSION}
    (end,) = hooks.of("on_turn_complete")
    assert (end.agent_id, end.text, len(end.tool_calls)) == ("deep", "Deep done.", 1)


def test_a_sub_agent_is_made_to_go_on_where_it_ends(camel, hooks):
    camel("subagentStart")
    hooks.says["on_turn_complete"] = Continue("More.")
    assert camel("agentStop.subagent", **{"agentId": PARENT["agentId"]}) == {}
    assert camel("subagentStop") == {"decision": "block", "reason": "More."}


def test_a_sub_agents_words_are_changed(camel, hooks):
    camel("subagentStart")
    hooks.says["on_turn_complete"] = Rewrite("other words")
    assert camel("subagentStop") == {"modifiedResponse": "other words"}


# -- Claude Code's settings -------------------------------------------------------------------------


@pytest.fixture
def pascal(tmp_path, hooks):
    agent = Copilot(tmp_path, hooks, "copilot-pascal")
    agent.environ["HOME"] = str(tmp_path)
    return agent


def entry(folder, path, command="hookturn bridge copilot --timeout 30"):
    place = folder / path
    place.parent.mkdir(parents=True)
    place.write_text(
        json.dumps({"version": 1, "hooks": {"preToolUse": [{"type": "command", "bash": command}]}})
    )


@pytest.mark.parametrize(
    "path",
    [
        ".copilot/hooks/a.json",
        ".copilot/settings.json",
        ".github/hooks/b.json",
        ".github/copilot/settings.json",
    ],
)
def test_claude_codes_entry_is_silent_where_copilot_has_its_own(pascal, hooks, tmp_path, path):
    entry(tmp_path, path)
    hooks.says["pre_tool_execution"] = Deny("no")
    answer = pascal.send(pascal.captured("preToolUse"), agent="claude-code")
    assert (answer.stdout, answer.exit_code, hooks.events) == (b"", 0, [])


def test_claude_codes_entry_answers_in_copilots_form_where_it_has_none(pascal, hooks, tmp_path):
    entry(tmp_path, ".github/hooks/b.json", "./other.sh")
    hooks.says = {"pre_tool_execution": Rewrite(command="ls -a"), "post_tool_execution": Inject("after")}
    answer = check("PreToolUse", pascal.send(pascal.captured("preToolUse"), agent="claude-code"))
    assert answer["updatedInput"]["command"] == "ls -a"
    answer = check("PostToolUse", pascal.send(pascal.captured("postToolUse"), agent="claude-code"))
    assert answer == {"additionalContext": "after"}, "not where Claude Code reads it"
    assert hooks.events[0].host == "copilot"


# -- failures ---------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "payload", [b"", b"null", b"[]", b'{"toolName": "ba', b"\xff\xfe", b'{"sessionId": 5}']
)
def test_a_payload_that_cannot_be_read_is_refused_in_every_form_where_a_hook_fails_closed(tmp_path, payload):
    memory = tmp_path / "memory"
    closed = Copilot(tmp_path / "c", Hooks(closed=["pre_tool_execution"]))
    closed.send(closed.captured("preToolUse"), memory=memory)
    answer = closed.send(payload, memory=memory)
    data = json.loads(answer.stdout)
    assert answer.exit_code == 0
    assert (data["permissionDecision"], data["behavior"], data["decision"]) == ("deny", "deny", "block")
    answer = closed.send(payload, memory=memory, event="preToolUse")
    assert check("preToolUse", answer)["permissionDecision"] == "deny"
    assert check("sessionEnd", closed.send(payload, memory=memory, event="sessionEnd")) == {}
    calm = Copilot(tmp_path / "o", Hooks())
    answer = calm.send(payload)
    assert (answer.stdout, answer.exit_code, "cannot be read" in answer.stderr) == (b"", 0, True)


@pytest.mark.parametrize("event", sorted(copilot.EVENTS))
def test_a_refusal_has_the_form_of_its_event(event):
    row = copilot.EVENTS[event]
    if row.decides:
        assert check(event.removesuffix(".subagent"), copilot.refusal(row, "because"))
