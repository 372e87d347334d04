"""Real recordings of real programs: every prompt, answer, call, status and token arrives once."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from hookturn.agents import recorded as r
from hookturn.agents.transcripts import open_transcript, readers


def only(folder: Path, pattern: str) -> Path:
    (found,) = sorted(folder.glob(pattern))
    return found


def times(count: int) -> dict[str, int]:
    """Tokens of so many answers of the scripted model."""
    return {"input_tokens": 10 * count, "output_tokens": 10 * count}


def test_claude_plain(told, data):
    steps = told(data / "claude/plain.jsonl")
    assert steps.kinds == ["SessionBegin", "Prompt", "Response", "TurnEnd", "SessionFinish"]
    begin, prompt, response, turn, finish = steps
    assert begin == r.SessionBegin(
        "60b8558f-98fe-4aee-885f-7cae053e1c82",
        "/home/dev/project",
        host="claude-code",
        time=begin.time,
        line=3,
    )
    assert begin.time == pytest.approx(1796062840.314)
    assert prompt == r.Prompt("please do: plain", time=prompt.time, line=3)
    assert response == r.Response(
        "Nothing to do.",
        tool_calls=[],
        usage={"input_tokens": 10, "output_tokens": 10, "cache_read_tokens": 0, "cache_write_tokens": 0},
        stop_reason="end_turn",
        model="claude-sonnet-5",
        time=response.time,
        line=19,
    )
    assert turn.text == "Nothing to do."
    assert finish.reason == "complete"


def test_claude_files(told, data):
    steps = told(data / "claude/files.jsonl")
    assert steps.prompts == ["please do: files"]
    assert steps.calls == [("Write", "ok", ""), ("Read", "ok", ""), ("Edit", "ok", ""), ("Bash", "ok", "")]
    assert steps.answers == ["", "", "", "", "Notes written and committed."]
    assert steps.tokens == times(5)
    assert [begin.args for begin in steps.of(r.ToolBegin)] == [
        {"file_path": "/home/dev/project/notes.md", "content": "# notes\nTODO: one\n"},
        {"file_path": "/home/dev/project/notes.md"},
        {
            "replace_all": False,
            "file_path": "/home/dev/project/notes.md",
            "old_string": "TODO: one",
            "new_string": "done: one",
        },
        {
            "command": "git add -A; git -c user.name=a -c user.email=a@b commit -qm notes; "
            "git log --oneline | head -2",
            "description": "Run a command",
        },
    ]
    assert [end.result for end in steps.of(r.ToolEnd)] == [
        "File created successfully at: /home/dev/project/notes.md (file state is current in your context "
        "— no need to Read it back)",
        "1\t# notes\n2\tTODO: one\n3\t",
        "The file /home/dev/project/notes.md has been updated successfully. (file state is current in "
        "your context — no need to Read it back)",
        "5b6cdfa notes",
    ]
    assert steps.end_of("toolu_e752bece127944ef").duration == pytest.approx(0.085)
    assert [response.tool_calls[0]["id"] for response in steps.of(r.Response)[:4]] == [
        begin.call_id for begin in steps.of(r.ToolBegin)
    ]


def test_codex_failing(told, data):
    steps = told(data / "codex/failing.jsonl")
    assert steps.kinds == [
        "SessionBegin", "Prompt", "Response", "ToolBegin", "ToolEnd", "Response", "ToolBegin", "ToolEnd",
        "Response", "TurnEnd", "SessionFinish",
    ]  # fmt: skip
    assert steps[0].session_id == "01a22db0-18db-7f31-ab8f-09fedd5686b4"
    assert (steps[0].cwd, steps[0].host, steps[0].agent) == ("/home/dev/project", "codex", "main")
    assert steps.prompts == ["please do: failing"]
    assert steps.calls == [("exec_command", "error", ""), ("exec_command", "ok", "")]
    assert [begin.args for begin in steps.of(r.ToolBegin)] == [
        {"cmd": "echo 'no such target' >&2; exit 2"},
        {"cmd": "printf 'caf\\303\\251 \\360\\237\\232\\200 \\350\\241\\250\\n'"},
    ]
    failed, fine = steps.of(r.ToolEnd)
    assert failed.result == failed.error
    assert failed.result.endswith(
        "Process exited with code 2\nOriginal token count: 4\nOutput:\nno such target\n"
    )
    assert fine.result.endswith("Output:\ncafé 🚀 表\n")
    assert steps.answers == ["", "", "The build fails: café 🚀 表"]
    assert steps.tokens == times(3)
    assert steps.of(r.Response)[0].model == "gpt-5.5"


def test_copilot_failing(told, data):
    steps = told(data / "copilot/failing.jsonl")
    assert steps[0].session_id == "c20aebe3-70e5-4ce6-b133-b383c8796def"
    assert (steps[0].cwd, steps[0].model, steps[0].host) == ("/home/dev/project", "fake", "copilot")
    assert steps.prompts == ["please do: failing"]
    assert steps.calls == [("bash", "error", ""), ("bash", "ok", "")]
    assert [end.result for end in steps.of(r.ToolEnd)] == [
        "no such target\n<shellId: 0 completed with exit code 2>",
        "café 🚀 表\n<shellId: 1 completed with exit code 0>",
    ]
    assert steps.answers == ["", "", "The build fails: café 🚀 表"]
    assert steps.tokens == times(3)
    assert steps.of(r.SessionFinish)[0].usage == {}


def test_gemini_secretive(told, data):
    steps = told(data / "gemini/secretive.jsonl")
    assert steps[0].session_id == "e18df7f9-4c11-498b-9f9f-0de7fd11a83b"
    assert steps.prompts == ["please do: secretive"]
    assert steps.calls == [("run_shell_command", "ok", "")]
    (begin,) = steps.of(r.ToolBegin)
    assert begin.args == {
        "command": "echo export AWS_ACCESS_KEY_ID=AKIAQ3EGRTXBV7HNW2LM > .env; cat .env; rm -rf build",
        "description": "Run a command",
        "is_background": False,
    }
    (end,) = steps.of(r.ToolEnd)
    assert end.result == {
        "output": "<untrusted_context>\nOutput: export AWS_ACCESS_KEY_ID=AKIAQ3EGRTXBV7HNW2LM\n"
        "Process Group PGID: 18554\n</untrusted_context>"
    }
    assert steps.answers == ["", "I stored AKIAQ3EGRTXBV7HNW2LM in .env and removed build."]
    assert steps.tokens == times(2)


# What the scripted model did in each run: (file, prompts, calls, answers that say something, model answers).
RUNS = [
    ("claude/denied", "*.jsonl", ["please do: denied"], [("Bash", "denied")], ["Denied."], 2),
    (
        "claude/parallel",
        "*.jsonl",
        ["please do: parallel"],
        [("Bash", "ok"), ("Read", "ok"), ("Bash", "ok"), ("Bash", "ok"), ("Bash", "ok")],
        ["Three at once.", "Done three."],
        3,
    ),
    (
        "claude/resume",
        "*.jsonl",
        ["please do: resume", "and again please"],
        [("Bash", "ok"), ("Bash", "ok")],
        ["First done.", "Second done."],
        4,
    ),
    (
        "claude/nopermission",
        "*.jsonl",
        ["please do: noperm"],
        [("Write", "denied"), ("WebFetch", "denied")],
        ["ok"],
        3,
    ),
    ("claude/error", "*.jsonl", ["please do: error"], [("Bash", "ok")], [], 1),
    ("claude/slash", "*.jsonl", [], [], [], 0),
    (
        "claude/streamin",
        "*.jsonl",
        ["please do: first thing", "and also this, while you work"],
        [("Bash", "ok")],
        ["Working", "Finished first."],
        2,
    ),
    (
        "claude/compact",
        "*.jsonl",
        ["please do: compact", "go on after"],
        [("Bash", "ok")],
        ["First done.", "After done."],
        3,
    ),
    ("codex/denied", "*.jsonl", ["please do: denied"], [("exec_command", "denied")], ["Denied."], 2),
    (
        "codex/parallel",
        "*.jsonl",
        ["please do: parallel"],
        [("exec_command", "ok")] * 5,
        ["Three at once.", "Done three."],
        3,
    ),
    (
        "codex/resume",
        "*.jsonl",
        ["please do: resume", "and again please"],
        [("exec_command", "ok")] * 2,
        ["First done.", "Second done."],
        4,
    ),
    ("codex/mcp", "*.jsonl", ["please do: mcp"], [("mcp__demo__echo", "ok")], ["ok"], 2),
    (
        "codex/long",
        "*.jsonl",
        ["please do: long"],
        [("exec_command", "error"), ("exec_command", "ok")],  # the first one fails in the background
        ["ok"],
        3,
    ),
    (
        "codex/badpatch",
        "*.jsonl",
        ["please do: badpatch"],
        [("apply_patch", "error"), ("exec_command", "ok"), ("update_plan", "error")],
        ["ok"],
        4,
    ),
    ("codex/error", "*.jsonl", ["please do: error"], [("exec_command", "ok")], [], 1),
    (
        "gemini/texttool",
        "*.jsonl",
        ["please do: texttool"],
        [("run_shell_command", "ok"), ("run_shell_command", "error")],
        ["I will look.", "Looked."],
        2,
    ),
    ("gemini/denied", "*.jsonl", ["please do: denied"], [("run_shell_command", "denied")], ["Denied."], 2),
    (
        "gemini/resume",
        "*.jsonl",
        ["please do: resume", "and again please"],
        [("run_shell_command", "ok")] * 2,
        ["First done.", "Second done."],
        4,
    ),
    ("gemini/mcp", "*.jsonl", ["please do: mcp"], [("mcp_demo_echo", "ok")], ["ok"], 2),
    (
        "copilot",
        "texttool.jsonl",
        ["please do: texttool"],
        [("bash", "ok"), ("bash", "error")],
        ["I will look.", "Looked."],
        2,
    ),
    ("copilot", "denied.jsonl", ["please do: denied"], [("bash", "denied")], ["Denied."], 2),
    (
        "copilot",
        "resume.jsonl",
        ["please do: resume", "and again please"],
        [("bash", "ok")] * 2,
        ["First done.", "Second done."],
        4,
    ),
    ("copilot", "mcp.jsonl", ["please do: mcp"], [("demo-echo", "ok")], ["ok"], 2),
    ("copilot", "error.jsonl", ["please do: error"], [("bash", "ok")], [], 1),
    (
        "qwen/texttool",
        "chats/*.jsonl",
        ["please do: texttool"],
        [("run_shell_command", "ok"), ("run_shell_command", "error")],
        ["I will look.", "Looked."],
        2,
    ),
    (
        "qwen/denied",
        "chats/*.jsonl",
        ["please do: denied"],
        [("run_shell_command", "denied")],
        ["Denied."],
        2,
    ),
    ("qwen/error", "chats/*.jsonl", ["please do: error"], [("run_shell_command", "ok")], [], 1),
]


@pytest.mark.parametrize(
    ("folder", "pattern", "prompts", "calls", "answers", "count"),
    RUNS,
    ids=[f"{run[0]}-{run[1]}".replace("/", "-") for run in RUNS],
)
def test_a_real_run(told, data, folder, pattern, prompts, calls, answers, count):
    steps = told(only(data / folder, pattern))
    assert steps.prompts == prompts
    assert [(tool, status) for tool, status, _ in steps.calls] == calls
    assert [text for text in steps.answers if text] == answers
    assert len(steps.of(r.Response)) == count
    assert steps.tokens == (times(count) if count else {})
    assert len(steps.turns) == len([step for step in steps.of(r.Prompt) if not step.within])
    assert steps.of(r.Skipped) == []
    assert steps.agents == []


@pytest.mark.parametrize(
    ("path", "pattern", "types"),
    [
        ("claude/error", "*.jsonl", ["unknown"]),
        ("codex/error", "*.jsonl", ["other"]),
        ("copilot", "error.jsonl", ["query"]),
        ("qwen/error", "chats/*.jsonl", ["BadRequestError"]),
    ],
)
def test_a_model_that_fails_is_a_failure_and_no_answer(told, data, path, pattern, types):
    steps = told(only(data / path, pattern))
    failures = steps.of(r.Failure)
    assert [failure.error_type for failure in failures] == types
    assert "bad request here" in failures[0].message
    assert len(steps.turns) == 1


def test_mcp_tools_tell_their_server(told, data):
    for path in ("codex/mcp", "gemini/mcp"):
        (begin,) = told(only(data / path, "*.jsonl")).of(r.ToolBegin)
        assert begin.mcp == ("demo", "echo")
    (begin,) = told(data / "copilot/mcp.jsonl").of(r.ToolBegin)
    assert begin.mcp == ("demo", "echo")


def test_a_prompt_that_comes_into_a_turn_begins_none(told, data):
    steps = told(only(data / "claude/streamin", "*.jsonl"))
    assert [prompt.within for prompt in steps.of(r.Prompt)] == [False, True]
    assert steps.turns == ["Finished first."]


def test_a_compaction_is_an_event_and_its_summary_no_prompt(told, data):
    steps = told(only(data / "claude/compact", "*.jsonl"))
    (event,) = steps.of(r.HostEvent)
    assert event.type == "compaction.after"
    assert event.properties == {"trigger": "manual", "tokens_before": 20}


def test_a_forked_session_repeats_the_old_one_once(told, data):
    for path in sorted((data / "claude/fork").glob("*.jsonl")):
        steps = told(path)
        assert steps.prompts in (["please do: fork"], ["please do: fork", "again forked"])
        assert steps.tokens == times(2 * len(steps.prompts))
        assert len(steps.of(r.SessionBegin)) == 1


@pytest.mark.parametrize(
    ("path", "pattern", "sources"),
    [
        ("gemini/resume", "*.jsonl", ["startup", "resume"]),
        ("copilot", "resume.jsonl", ["startup", "resume"]),
        ("claude/resume", "*.jsonl", ["startup"]),  # leaves no mark in the file
        ("codex/resume", "*.jsonl", ["startup"]),
    ],
)
def test_a_resumed_session_keeps_its_id(told, data, path, pattern, sources):
    steps = told(only(data / path, pattern))
    begins = steps.of(r.SessionBegin)
    assert [begin.source for begin in begins] == sources
    assert len({begin.session_id for begin in begins}) == 1
    assert len(steps.of(r.SessionFinish)) == len(sources)


# -- sub-agents


def test_claude_background_agent(told, data):
    path = only(data / "claude/subagent", "*.jsonl")
    steps = told(path)
    agent = "a47ea4cbcfca59d91"
    assert steps.agents == ["general-purpose"]
    assert steps.calls == [("Agent", "ok", ""), ("Bash", "ok", agent)]
    assert [step.text for step in steps.of(r.Response) if step.agent_id] == ["", "Sub says hello."]
    (begin,) = steps.of(r.SubagentBegin)
    assert (begin.prompt, begin.parent_agent_id) == ("look around", "")
    assert steps.of(r.SubagentEnd)[0].text == "Sub says hello."
    # The program's own count of the session, sub-agents included.
    recorded = [json.loads(line) for line in path.read_text().splitlines()]
    usage = [item for item in recorded if item["type"] == "cost-state"][-1]["modelUsage"]["claude-sonnet-5"]
    assert steps.tokens == times(5)
    assert (usage["inputTokens"], usage["outputTokens"]) == (50, 50)
    # The notification that wakes the agent is a message of its own, and its turn the second.
    assert [prompt.origin for prompt in steps.of(r.Prompt)] == ["user", "task-notification"]
    assert steps.turns == ["The sub is done.", "All done."]


def test_claude_agent_that_is_waited_for(told, data):
    steps = told(only(data / "claude/syncagent", "*.jsonl"))
    assert steps.agents == ["Explore"]
    assert [(tool, status) for tool, status, _ in steps.calls] == [("Agent", "ok"), ("Bash", "ok")]
    kinds = steps.kinds
    assert kinds.index("SubagentBegin") > kinds.index("ToolBegin")
    end = next(i for i, step in enumerate(steps) if isinstance(step, r.ToolEnd) and not step.agent_id)
    assert kinds.index("SubagentEnd") < end
    assert steps.tokens == times(4)


def test_claude_agent_file_alone(told, data):
    steps = told(only(data / "claude/subagent", "*/subagents/*.jsonl"))
    assert steps.agents == ["general-purpose"]
    assert steps.prompts == []
    assert steps.of(r.SubagentBegin)[0].prompt == "look around"
    assert [tool for tool, _, _ in steps.calls] == ["Bash"]
    assert steps.tokens == times(2)


def test_codex_agent_begins_in_its_parent_and_has_a_file_of_its_own(told, data):
    paths = sorted((data / "codex/waitagent").glob("*.jsonl"))
    steps = [told(path) for path in paths]
    parent = next(one for one in steps if one[0].agent == "main")
    child = next(one for one in steps if one[0].agent != "main")
    assert parent.agents == ["Lagrange"]
    assert parent.of(r.SubagentEnd)[0].text == "Sub says hello."
    assert child[0].agent == "Lagrange"
    assert child.prompts == ["look around"]
    assert child.calls == [("exec_command", "ok", "")]
    assert [(tool, status) for tool, status, _ in parent.calls] == [
        ("spawn_agent", "ok"),
        ("exec_command", "ok"),
        ("wait_agent", "ok"),
    ]
    assert parent.tokens == times(4)
    assert child.tokens == times(2)


def test_codex_agent_that_was_interrupted(told, data):
    steps = [told(path) for path in sorted((data / "codex/subagent").glob("*.jsonl"))]
    child = next(one for one in steps if one[0].agent != "main")
    assert child.calls == [("exec_command", "cancelled", "")]


def test_gemini_agent(told, data):
    steps = told(only(data / "gemini/subagent", "*.jsonl"))
    assert steps.agents == ["generalist"]
    agent = "54595fcd-7f7e-4f9e-83f4-3c61e1b738fb"
    assert steps.calls == [
        ("codebase_investigator", "error", ""),
        ("invoke_agent", "ok", ""),
        ("run_shell_command", "ok", agent),
    ]
    assert steps.prompts == ["please do: subagent"]
    assert steps.tokens == times(6)


def test_copilot_agents_side_by_side(told, data):
    steps = told(data / "copilot/subagents2.jsonl")
    assert steps.agents == ["task", "task"]
    assert [begin.prompt for begin in steps.of(r.SubagentBegin)] == ["look left", "look right"]
    assert [(tool, status) for tool, status, _ in steps.calls] == [
        ("task", "ok"),
        ("task", "ok"),
        ("bash", "ok"),
        ("bash", "error"),
    ]
    assert steps.prompts == ["please do: subagents2"]
    assert [end.text for end in steps.of(r.SubagentEnd)] == ["Left.", "Right."]
    assert steps.tokens == times(6)


def test_copilot_agent_in_the_background(told, data):
    steps = told(data / "copilot/bg.jsonl")
    assert steps.agents == ["explore"]
    tools = [tool for tool, _, _ in steps.calls]
    assert tools == ["task", "bash", "bash", "read_bash", "read_agent"]
    assert steps.tokens == times(6)
    assert len(steps.turns) == 1


def test_qwen_agent(told, data):
    steps = told(only(data / "qwen/subagent", "chats/*.jsonl"))
    assert steps.agents == ["general-purpose"]
    assert [(tool, status) for tool, status, _ in steps.calls] == [
        ("agent", "ok"),
        ("run_shell_command", "ok"),
    ]
    assert steps.tokens == times(5)


def test_every_recording_is_claimed_by_one_reader_only(data):
    for path in sorted(data.rglob("*.jsonl")):
        folder = path.relative_to(data).parts[0]
        name = {"claude": "claude-code"}.get(folder, folder)
        claims = set()
        for line in path.read_text(encoding="utf-8").splitlines():
            item = json.loads(line)
            claims |= {reader.NAME for reader in readers() if reader.sniff([item])}
        assert claims == {name}, path


def test_the_name_of_the_file_says_nothing(data, tmp_path):
    for number, path in enumerate(sorted(data.rglob("*.jsonl"))):
        copy = tmp_path / f"{number}.txt"
        copy.write_bytes(path.read_bytes())
        assert open_transcript(str(copy)).reader.NAME.startswith(path.relative_to(data).parts[0])
