"""The builtins recovery and guards: each switch of R1.3, and the chains as they are really applied."""

from __future__ import annotations

import pytest

from hookturn import Engine, events
from hookturn_builtins import guards, recovery


def engine_of(module=recovery, *, recovers=(), **settings) -> Engine:
    config = module.Config()
    for name, value in settings.items():
        setattr(config, name, value)
    if hasattr(config, "validate"):
        config.validate()
    engine = Engine(recovers=recovers) if recovers else Engine()
    engine.register(module.plugin(config), module.__name__.rpartition(".")[2], layer="builtin", config=config)
    return engine


def after(engine, tool="edit", result="", status="ok", **more):
    event = events.PostToolExecution(tool=tool, args={"filePath": "a"}, result=result, status=status, **more)
    return engine.fire(event)


def steps(engine, fire, times) -> list[str]:
    found = [fire(engine).recover for _ in range(times)]
    return [answer.strategy if answer else "-" for answer in found]


# -- what is recognised -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("tool", "result", "status", "category"),
    [
        ("edit", "Error: oldString not found in content", "error", "edit_error"),
        ("edit", "oldString found multiple times", "ok", "edit_error"),
        ("edit", "oldString and newString must be different", "error", "edit_error"),
        ("write", "EACCES: permission denied, open '/etc/x'", "error", "edit_error"),
        ("hashline_edit", "stale anchor at line 3", "error", "edit_error"),
        ("edit", "ENOENT: no such file or directory", "error", "edit_error"),
        ("edit", "Wrote the file\n\nraise ValueError('not found')", "ok", ""),
        ("edit", "The file was updated.", "ok", ""),
        ("task", "SyntaxError: Unexpected token < in JSON at position 0", "error", "json_error"),
        ("task", "json.decoder.JSONDecodeError: Expecting value: line 1", "ok", "json_error"),
        ("todowrite", "Invalid JSON in arguments", "error", "json_error"),
        ("bash", "Unexpected token < in JSON at position 0", "ok", ""),
        ("read", "Invalid JSON", "ok", ""),
        ("glob", "Invalid JSON", "ok", ""),
        ("grep", "Invalid JSON", "ok", ""),
        ("webfetch", "Invalid JSON", "ok", ""),
        ("look_at", "Invalid JSON", "ok", ""),
        ("read", "", "ok", "empty_response"),
        ("read", " \n x ", "ok", "empty_response"),
        ("read", None, "ok", "empty_response"),
        ("read", "12345", "ok", ""),
        ("bash", "", "error", "empty_response"),
        ("bash", "", "ok", ""),
        ("write", "", "ok", ""),
        ("read", "", "denied", ""),
        ("read", "", "replied", ""),
    ],
)
def test_what_a_tools_result_shows(tool, result, status, category):
    out = after(engine_of(), tool, result, status)
    assert (out.recover.config["category"] if out.recover else "") == category
    if category:
        assert out.recover.strategy == "remind_and_retry"
        assert out.recover.config["reminder_text"]


@pytest.mark.parametrize("switch", ["edit_error", "json_error", "empty_response"])
def test_a_switch_turns_its_row_off(switch):
    bad = {
        "edit_error": ("edit", "oldString not found"),
        "json_error": ("task", "invalid JSON"),
        "empty_response": ("read", ""),
    }
    tool, result = bad[switch]
    assert after(engine_of(), tool, result).recover is not None
    assert after(engine_of(**{switch: False}), tool, result).recover is None


@pytest.mark.parametrize(
    ("size", "said"),
    [
        (49_999, []),
        (50_000, ["This result has 50,000 characters, about 12,500 tokens. Ask for less at once."]),
        (50_001, ["This result has 50,001 characters, about 12,501 tokens. Ask for less at once."]),
    ],
)
def test_context_window_warns_of_long_results(size, said):
    assert list(after(engine_of(), "bash", "x" * size).injected) == said
    assert list(after(engine_of(context_window=False), "bash", "x" * size).injected) == []


@pytest.mark.parametrize(
    ("on", "text", "said"),
    [
        (True, "tool_use ids were found without tool_result blocks", 1),
        (True, "You are a coder. Use tools.", 0),
        (False, "tool_use ids were found without tool_result blocks", 0),
    ],
)
def test_tool_pair_validation(on, text, said):
    out = engine_of(tool_pair_validation=on).fire(events.SystemPrompt(parts=["You are", text]))
    assert len(out.injected) == said


# -- chains -------------------------------------------------------------------------------------------


def session_error(engine, message="boom", accepts=("Recover",)):
    properties = {"error": {"data": {"message": message}}}
    return engine.fire(
        events.Event(type="session.error", properties=properties, accepts=list(accepts), session_id="s")
    )


@pytest.mark.parametrize(
    ("fire", "chain"),
    [
        (session_error, ["retry", "retry", "compact", "abort", "-", "-"]),
        (lambda e: session_error(e, "maximum context length is 8192 tokens"), [*["truncate"] * 8, "summarize", "abort", "-"]),
        (lambda e: after(e, "edit", "oldString not found", session_id="s"), ["remind_and_retry", "remind_and_retry", "-"]),
        (lambda e: after(e, "task", "invalid JSON", session_id="s"), ["remind_and_retry", "remind_and_retry", "-"]),
        (lambda e: after(e, "read", "", session_id="s"), ["remind_and_retry", "-"]),
        (
            lambda e: e.fire(events.Error(error_type="Overloaded", message="529", phase="model", session_id="s")),
            ["retry", "retry", "compact", "abort", "-"],
        ),
    ],
)  # fmt: skip
def test_the_default_chains_are_really_applied(fire, chain):
    assert steps(engine_of(), fire, len(chain)) == chain


def test_retries_wait_longer_each_time():
    engine = engine_of()
    answers = [session_error(engine).recover.config for _ in range(2)]
    assert [(answer["delay_ms"], answer["attempt"]) for answer in answers] == [(2000, 1), (4000, 2)]


def test_other_events_and_errors_of_tools_and_hooks_are_none_of_its_business():
    engine = engine_of()
    assert engine.fire(events.Event(type="session.idle", accepts=["Recover"])).recover is None
    for phase in ("tool", "hook"):
        assert engine.fire(events.Error(error_type="X", message="y", phase=phase)).recover is None


@pytest.mark.parametrize("most", [0, 3])
def test_a_sessions_attempts_have_an_end(most):
    assert steps(engine_of(max_total_attempts=most), session_error, 4) == [
        *["retry", "retry", "compact"][:most],
        *["-"] * (4 - most),
    ]


def test_a_chain_starts_over_when_it_works_again():
    engine = engine_of()
    bad = lambda e: after(e, "edit", "oldString not found", session_id="s")  # noqa: E731
    assert steps(engine, bad, 3) == ["remind_and_retry", "remind_and_retry", "-"]
    after(engine, "edit", "The file was updated.", session_id="s")
    assert steps(engine, bad, 1) == ["remind_and_retry"]
    assert steps(engine, session_error, 3) == ["retry", "retry", "compact"]
    engine.fire(events.ModelResponse(text="back again", session_id="s"))
    assert steps(engine, session_error, 1) == ["retry"]


def test_sessions_have_chains_of_their_own():
    engine = engine_of()
    for session in ("a", "b"):
        assert after(engine, "read", "", session_id=session).recover is not None


def test_own_chains_replace_the_default_and_an_empty_one_switches_off():
    chains = {
        "edit_error": [{"strategy": "fallback_model", "config": {"model": "small"}}, {"strategy": "abort"}],
        "empty_response": [],
    }
    engine = engine_of(chains=chains)
    assert steps(engine, lambda e: after(e, "edit", "oldString not found"), 3) == [
        "fallback_model",
        "abort",
        "-",
    ]
    assert after(engine, "read", "").recover is None
    assert after(engine, "task", "invalid JSON").recover is not None


@pytest.mark.parametrize(
    ("chains", "why"),
    [
        ({"edit": []}, "unknown category 'edit'"),
        ({"edit_error": [{"strategy": "pray"}]}, "unknown strategy 'pray'"),
        ({"edit_error": ["retry"]}, "a step is"),
    ],
)
def test_wrong_chains_are_refused(chains, why):
    config = recovery.Config()
    config.chains = chains
    with pytest.raises(ValueError, match=why):
        config.validate()


def test_a_host_that_cannot_recover_gets_a_reminder_for_the_model():
    engine = engine_of()
    with engine.session() as session:
        session.event("session.error", {"error": "boom"})
        with session.turn() as turn:
            assert turn.system_prompt([]) == ["The session failed. Advice: retry."]
            turn.call_tool("edit", {"filePath": "a"}, execute=lambda **_: "oldString not found")
            (text,) = turn.system_prompt([])
    assert text.startswith("Something failed, and a hook advises: remind and retry (")
    assert "Read the file again" in text


def test_a_host_that_can_recover_gets_the_strategy():
    engine = engine_of(recovers=("remind_and_retry",))
    with engine.session() as session, session.turn() as turn:
        result = turn.call_tool("edit", {"filePath": "a"}, execute=lambda **_: "oldString not found")
        assert result.recover.strategy == "remind_and_retry"
        assert turn.system_prompt([]) == []


# -- guards -------------------------------------------------------------------------------------------


def reminded(engine, tool, args, cwd="") -> list[str]:
    with engine.session(cwd=cwd) as session, session.turn() as turn:
        result = turn.call_tool(tool, args, execute=lambda **_: "done")
        assert result.status == "ok"  # a reminder refuses nothing
        return turn.system_prompt([])


@pytest.mark.parametrize(
    ("tool", "key", "there", "said"),
    [
        ("write", "filePath", True, 1),
        ("write", "path", True, 1),
        ("write", "filePath", False, 0),
        ("edit", "filePath", True, 0),
        ("read", "filePath", True, 0),
    ],
)
def test_write_existing_file_guard(tmp_path, tool, key, there, said):
    from hookturn.agents.rolebox.tools import TOOLS

    path = tmp_path / "a.txt"
    if there:
        path.write_text("x")
    config = guards.Config()
    config.write_existing_file_guard = True
    engine = Engine(tools=TOOLS)
    engine.register(guards.plugin(config), "guards", layer="builtin", config=config)
    parts = reminded(engine, tool, {key: "a.txt", "content": "y"}, str(tmp_path))
    assert parts == [f"{path} exists already. Read it before you write over it."] * said


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("cat a.txt", 1),
        ("  head -3 a", 1),
        ("tail -f log", 1),
        ("less a", 1),
        ("more a", 1),
        ("dd if=a", 1),
        ("cat", 0),
        ("category a", 0),
        ("ls; cat a", 0),
    ],
)
def test_bash_file_read_guard(command, said):
    engine = engine_of(guards, bash_file_read_guard=True)
    parts = reminded(engine, "bash", {"command": command})
    assert parts == ["Read files with the tool for it rather than with a shell command."] * said


@pytest.mark.parametrize(
    ("result", "said"),
    [
        ("301 Moved: the page redirects to https://other.example", 1),
        ("getaddrinfo ENOTFOUND example.invalid", 1),
        ("unable to verify the first certificate", 1),
        ("Request failed with status code: 404", 1),
        ("HTTP 503", 1),
        ("A page about cats.", 0),
        ("In 404 BC the war ended.", 0),
    ],
)
def test_webfetch_redirect_guard(result, said):
    engine = engine_of(guards, webfetch_redirect_guard=True)
    event = events.PostToolExecution(tool="webfetch", args={"url": "https://x.example"}, result=result)
    assert len(engine.fire(event).injected) == said


@pytest.mark.parametrize("tool", ["write", "bash", "webfetch"])
def test_guards_are_off_by_default(tmp_path, tool):
    engine = engine_of(guards)
    assert reminded(engine, tool, {"command": "cat a", "filePath": str(tmp_path), "url": "u"}) == []


@pytest.mark.parametrize("module", [recovery, guards])
def test_they_go_around_all_other_hooks(module):
    engine = engine_of(module)
    tiers = {
        step.tier_name
        for timing in ("pre_tool_execution", "post_tool_execution", "on_event", "on_error")
        for step in (engine.plan(timing).steps if engine.plan(timing) else ())
    }
    assert tiers <= {"first", "last"}
