"""What an agent cannot be told degrades by one table, and ``explain --agent`` shows the result."""

from __future__ import annotations

import json

import pytest

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
    SetEnv,
    Warn,
    events,
    hookimpl,
)
from hookturn.agents.bridge import AGENTS, UnknownAgent, hooks_of
from hookturn.agents.fitting import fit
from hookturn.agents.moments import CAN, DOES, Row, Said
from hookturn.agents.telling import tell
from hookturn.spec.timings import TIMINGS


def row(does="tool", *can):
    return Row(event="TheEvent", does=does, can=list(can))


def fitted(the_row, *, strict=False, **said):
    """Return what was said after fitting, and the texts that were kept for later."""
    made, later = Said(), []
    made.by = "hook"
    for name, value in said.items():
        setattr(made, name, value)
    for _ in range(2):  # the second time changes nothing more
        fit(the_row, made, "someone", lambda names: next(iter(names), "") if strict else "", later.append)
    return made, later


def test_what_can_be_said_is_left_alone():
    said, later = fitted(
        row("tool", *CAN),
        decision="ask",
        reason="why",
        args={"a": 1},
        inject=["text"],
        env={"A": "b"},
        warnings=["w"],
    )
    assert (said.decision, said.reason, said.args, said.inject) == ("ask", "why", {"a": 1}, ["text"])
    assert (said.env, said.warnings, said.lost, later) == ({"A": "b"}, ["w"], [], [])


@pytest.mark.parametrize("strict", [True, False])
@pytest.mark.parametrize(
    ("does", "field", "by", "value", "what"),
    [
        ("tool", "args", "args_by", {"a": 1}, "the call's arguments"),
        ("prompt", "text", "text_by", "other", "the prompt"),
        ("message", "text", "text_by", "other", "the text"),
    ],
)
def test_a_change_that_cannot_be_made(does, field, by, value, what, strict):
    said, _ = fitted(row(does, "deny", "warn"), strict=strict, **{field: value, by: ["changer"]})
    assert getattr(said, field) is None
    if strict:
        assert said.decision == "deny" and "changer fails closed" in said.reason and not said.warnings
    else:
        assert said.decision is None
        assert said.warnings == [
            f"changer wanted to change {what}, but someone takes no such thing at TheEvent: it goes on as it was"
        ]


def test_a_strict_change_where_nothing_can_be_refused_is_a_warning():
    said, _ = fitted(row("message", "warn"), strict=True, text="other", text_by=["changer"])
    assert said.decision is None and len(said.warnings) == 1


def test_an_ask_where_nobody_can_be_asked_is_a_deny_that_says_so():
    said, _ = fitted(row("event", "deny"), decision="ask", reason="Sure?")
    assert said.decision == "deny"
    assert said.reason == "Sure? (hook asks, and someone takes no such thing at TheEvent)"


def test_an_allow_without_effect_is_noted():
    said, _ = fitted(row("tool", "deny"), decision="allow")
    assert (said.decision, len(said.lost), said.warnings) == (None, 1, [])


@pytest.mark.parametrize(
    ("does", "words"), [("tool", "hook answered in place of the tool: 42"), ("prompt", "42")]
)
def test_a_reply_is_a_deny_with_the_value_as_reason(does, words):
    said, _ = fitted(row(does, "deny"), reply="42", replied=True)
    assert (said.decision, said.reason, said.replied) == ("deny", words, False)


def test_a_reply_where_nothing_can_be_refused_is_a_warning():
    said, _ = fitted(row("event", "warn"), reply={"a": 1}, replied=True)
    assert (said.decision, said.replied, len(said.warnings)) == (None, False, 1)


def test_a_result_that_cannot_be_withheld_is_a_warning():
    said, _ = fitted(row("tool_end", "warn"), decision="deny", reason="secret", withheld=True, changed=True)
    assert (said.decision, said.changed) == (None, False)
    assert "the model has it" in said.warnings[0] and len(said.warnings) == 1


def test_a_result_that_cannot_be_changed_is_a_warning():
    said, _ = fitted(row("tool_end", "warn", "deny"), changed=True, result="x")
    assert (said.changed, len(said.warnings)) == (False, 1)


def test_the_rest():
    said, later = fitted(
        row("turn_end"), again="more", env={"A": "b"}, inject=["text"], stop=True, warnings=["mine"]
    )
    assert (said.again, said.env, said.inject, said.stop, said.warnings) == ("", {}, [], False, [])
    assert later == ["text"]
    assert len(said.lost) == 4 and "mine" in said.lost  # no warning can be shown here: all are told elsewhere


# -- the tables of all agents -----------------------------------------------------------------------


def bridges():
    found = []
    for name in AGENTS:
        try:
            found.append(hooks_of(name))
        except UnknownAgent:
            continue
    return found


@pytest.mark.parametrize("hooks", bridges(), ids=lambda hooks: hooks.NAME)
def test_every_table_speaks_the_same_words(hooks):
    for name, found in hooks.EVENTS.items():
        assert found.event == name
        assert found.does in DOES
        assert set(found.can) <= set(CAN)
        assert set(found.timings) <= set(TIMINGS)
        assert set(found.accepts) <= {answer.__name__ for answer in TIMINGS["on_event"].answers}
        assert found.seconds > 0
        assert ("on_event" in found.timings and found.does == "event") <= bool(found.type)
    assert hooks.UNKNOWN.does == "event" and not hooks.UNKNOWN.decides


# -- explain ----------------------------------------------------------------------------------------

TOOL = {"tool": "Bash", "args": {"command": "ls"}}
CASES = [
    (events.PreToolExecution(**TOOL), Deny("no"), "PreToolUse", "permissionDecision", "deny"),
    (events.PreToolExecution(**TOOL), Ask("sure?"), "PreToolUse", "permissionDecision", "ask"),
    (events.PreToolExecution(**TOOL), Allow("ok"), "PreToolUse", "permissionDecision", "allow"),
    (events.PreToolExecution(**TOOL), Rewrite(command="ls -a"), "PreToolUse", "updatedInput", {"command": "ls -a"}),
    (events.PreToolExecution(**TOOL), Reply("x"), "PreToolUse", "permissionDecision", "deny"),
    (events.PostToolExecution(**TOOL, result="a"), Rewrite(result="b"), "PostToolUse", "updatedToolOutput", "b"),
    (events.PostToolExecution(**TOOL, result="a"), Inject("x"), "PostToolUse", "additionalContext", "x"),
    (events.UserPromptSubmit(prompt="p"), Inject("x"), "UserPromptSubmit", "additionalContext", "x"),
    (events.SystemPrompt(parts=["a"]), Inject("b"), "UserPromptSubmit", "additionalContext", "a\n\nb"),
    (events.ModelResponse(text="a"), Rewrite("b"), "MessageDisplay", "displayContent", "b"),
]  # fmt: skip


def told(event, answer):
    @hookimpl(specname=event.timing)
    def hook():
        return answer

    engine = Engine([type("Plugin", (), {event.timing: staticmethod(hook)})()])
    return tell("claude-code", engine.decide(event), engine)


@pytest.mark.parametrize(
    ("event", "answer", "name", "key", "value"),
    CASES,
    ids=[
        f"{type(answer).__name__} at {event.timing} {number}"
        for number, (event, answer, *_) in enumerate(CASES)
    ],
)
def test_explain_tells_what_the_agent_would_be_told(event, answer, name, key, value):
    item = next(item for item in told(event, answer) if item.event == name)
    assert json.loads(item.answer.stdout)["hookSpecificOutput"][key] == value
    assert item.to_json()["exit_code"] == 0


def test_explain_tells_of_blocks_variables_and_words_to_go_on_with():
    (stop,) = told(events.TurnComplete(text="x"), Continue("more"))
    assert json.loads(stop.answer.stdout) == {"decision": "block", "reason": "more"}
    (start,) = told(events.SessionStart(), SetEnv({"A": "b"}))
    assert (start.answer.stdout, start.env) == (b"", {"A": "b"})
    (prompt,) = told(events.MessageReceived(text="x"), Block("no"))
    assert json.loads(prompt.answer.stdout)["decision"] == "block"
    (event,) = told(events.Event(type="compaction.before", accepts=["Deny"]), Deny("no"))
    assert event.event == "PreCompact" and json.loads(event.answer.stdout)["decision"] == "block"
    (end,) = told(events.SessionEnd(), Warn("bye"))
    assert (end.answer.stdout, end.lost) == (b"", ["bye"])
    assert told(events.Error(error_type="a", message="b"), None) == []


def test_the_command_shows_it(tmp_path, capsys, monkeypatch):
    from hookturn.cli import main

    monkeypatch.chdir(tmp_path)
    (tmp_path / "hookturn.yaml").write_text(
        "hooks:\n  - name: no\n    timings: [pre_tool_execution]\n    run: {answer: {deny: 'No.'}}\n"
    )
    (tmp_path / "event.json").write_text(json.dumps(TOOL))
    words = ["explain", "pre_tool_execution", "--event", "event.json", "--agent"]
    assert main([*words, "claude-code"]) == 0
    assert "claude-code is told at PreToolUse" in capsys.readouterr().out
    assert main([*words, "claude-code", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert [item["event"] for item in data["told"]] == ["PreToolUse", "PreSkillShellCommand"]
    assert data["outcome"]["event"]["agent"] == "main"
    assert main([*words, "coder", "--json"]) == 0
    data = json.loads(capsys.readouterr().out)
    assert (data["told"], data["outcome"]["event"]["agent"]) == (None, "coder")
