"""The plugin in an engine: what counts together, for whom, and that a refused call never runs."""

from __future__ import annotations

from pathlib import Path

import pytest
from hookturn_rate_limit import Config, RateLimit, plugin

from hookturn import Deny, hookimpl
from hookturn.testing import (
    EngineFactory,
    Model,
    SessionFactory,
    ToolCall,
    User,
    allowed,
    denied_by,
    make,
    no_failures,
)

NOW = 1_800_000_000.0


def limited(scope: str = "session", **limits: str | list[str]) -> tuple[str, RateLimit]:
    return "rate-limit", plugin(
        Config({key.replace("all", "*"): text for key, text in limits.items()}, scope)
    )


def test_calls_over_the_limit_are_denied_with_the_time_to_wait(hookturn_engine: EngineFactory) -> None:
    engine = hookturn_engine(limited(bash="2/min"))
    for seconds in (0, 10):
        allowed(engine.fire(make.pre_tool_execution(time=NOW + seconds)))
    out = engine.fire(make.pre_tool_execution(time=NOW + 20))
    denied_by(out, "rate-limit", reason="the limit of 2 bash calls a minute is reached")
    assert out.code == "rate_limit"
    # The first call's slot of 1.2 s ends at second 1.2 at the latest, and leaves the span a minute later.
    assert out.advice in {f"Try again in {left} seconds, or go on with something else." for left in (41, 42)}
    allowed(engine.fire(make.pre_tool_execution(time=NOW + 61.3)))
    denied_by(engine.fire(make.pre_tool_execution(time=NOW + 61.4)))


def test_a_denied_call_does_not_count(hookturn_engine: EngineFactory) -> None:
    engine = hookturn_engine(limited(bash="1/min", all="3/session"))
    allowed(engine.fire(make.pre_tool_execution(time=NOW)))
    for _ in range(5):
        denied_by(engine.fire(make.pre_tool_execution(time=NOW + 1)), "rate-limit", reason="a minute")
    allowed(engine.fire(make.pre_tool_execution("read", path="a", time=NOW + 1)))
    allowed(engine.fire(make.pre_tool_execution(time=NOW + 100)))
    denied_by(
        engine.fire(make.pre_tool_execution("read", path="a", time=NOW + 1000)),
        "rate-limit",
        reason="No more of these calls are allowed in this session",
    )


def test_of_several_limits_the_longest_wait_is_told(hookturn_engine: EngineFactory) -> None:
    engine = hookturn_engine(limited(bash=["1/sec", "1/hour"], all="1/min"))
    allowed(engine.fire(make.pre_tool_execution(time=NOW)))
    denied_by(engine.fire(make.pre_tool_execution(time=NOW)), reason="1 bash call an hour")
    denied_by(engine.fire(make.pre_tool_execution("read", path="a", time=NOW)), reason="1 tool call a minute")


def test_other_kinds_are_not_limited(hookturn_engine: EngineFactory) -> None:
    engine = hookturn_engine(limited(bash="1/min"))
    for _ in range(3):
        allowed(engine.fire(make.pre_tool_execution("read", path="a", time=NOW)))
    allowed(engine.fire(make.pre_tool_execution("run_shell_command", command="ls", time=NOW)))
    denied_by(engine.fire(make.pre_tool_execution("Bash", command="ls", time=NOW)))


def test_without_limits_it_says_nothing(hookturn_engine: EngineFactory) -> None:
    engine = hookturn_engine(limited())
    for _ in range(3):
        allowed(engine.fire(make.pre_tool_execution(time=NOW)))


@pytest.mark.parametrize(
    ("scope", "text", "shared"),
    [
        ("session", "1/min", False),
        ("project", "1/min", True),
        ("session", "1/session", False),
        ("project", "1/session", False),
    ],
)
def test_sessions_count_apart_unless_the_scope_is_the_project(
    scope: str, text: str, shared: bool, hookturn_engine: EngineFactory
) -> None:
    engine = hookturn_engine(limited(scope, bash=text))
    allowed(engine.fire(make.pre_tool_execution(session_id="one", time=NOW)))
    denied_by(engine.fire(make.pre_tool_execution(session_id="one", time=NOW)))
    second = engine.fire(make.pre_tool_execution(session_id="two", time=NOW))
    denied_by(second) if shared else allowed(second)


def test_a_call_counts_for_both_books_or_for_none(hookturn_engine: EngineFactory) -> None:
    engine = hookturn_engine(limited("project", bash=["2/min", "1/session"]))
    allowed(engine.fire(make.pre_tool_execution(session_id="one", time=NOW)))
    for _ in range(3):
        denied_by(engine.fire(make.pre_tool_execution(session_id="one", time=NOW)), reason="a session")
    allowed(engine.fire(make.pre_tool_execution(session_id="two", time=NOW)))
    denied_by(engine.fire(make.pre_tool_execution(session_id="three", time=NOW)), reason="a minute")


def test_a_changed_number_goes_on_with_the_count(hookturn_engine: EngineFactory, tmp_path: Path) -> None:
    first = hookturn_engine(limited(bash="5/hour"), state_dir=tmp_path)
    for _ in range(3):
        allowed(first.fire(make.pre_tool_execution(time=NOW)))
    second = hookturn_engine(limited(bash="4/hour"), state_dir=tmp_path)
    allowed(second.fire(make.pre_tool_execution(time=NOW)))
    denied_by(second.fire(make.pre_tool_execution(time=NOW)))


def test_the_limited_tool_does_not_run_and_the_model_reads_why(hookturn_session: SessionFactory) -> None:
    agent = hookturn_session(limited(bash="2/session"))
    calls = [ToolCall("bash", command=f"echo {number}") for number in range(4)]
    run = agent.run(User("go"), Model("", *calls), Model("done"))
    assert [args["command"] for _, args in run.executed] == ["echo 0", "echo 1"]
    assert sum("finish without them" in text for text in run.read) == 2
    assert run.ends[0].text == "done"
    no_failures(run)


def test_the_users_always_allow_does_not_lift_it(hookturn_session: SessionFactory) -> None:
    agent = hookturn_session(limited(bash="1/session"), permissions={"always_allow": ["bash"]})
    run = agent.run(User("go"), Model("", ToolCall("bash"), ToolCall("bash")))
    assert [call.go or call.result.status for call in run.calls] == ["ok", "denied"]


def test_it_counts_the_calls_as_other_hooks_left_them(hookturn_engine: EngineFactory) -> None:
    class Early:
        @hookimpl(tryfirst=True)
        def pre_tool_execution(self) -> Deny:
            return Deny("no")

    engine = hookturn_engine(("early", Early()), limited(bash="1/min"))
    denied_by(engine.fire(make.pre_tool_execution(time=NOW)), "early")


def test_when_it_cannot_count_it_denies(hookturn_engine: EngineFactory, tmp_path: Path) -> None:
    (tmp_path / "sessions").write_text("a file where the counts' folder should be")
    engine = hookturn_engine(limited(bash="1/min"), state_dir=tmp_path)
    out = engine.fire(make.pre_tool_execution(time=NOW))
    denied_by(out, "rate-limit", failures=True)
    assert [failure.hook for failure in out.failures] == ["rate-limit"]
