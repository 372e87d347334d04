"""Limits are read strictly, and a refusal tells what is reached and when there is room again."""

from __future__ import annotations

from math import inf

import pytest
from hookturn_rate_limit import Config, read
from hookturn_rate_limit.limits import HIGHEST, refusal

from hookturn.testing import make


@pytest.mark.parametrize(
    ("text", "count", "unit", "seconds"),
    [
        ("2/sec", 2, "sec", 1),
        ("30/min", 30, "min", 60),
        (" 100 / hour ", 100, "hour", 3600),
        ("200/session", 200, "session", 0),
        (f"{HIGHEST}/hour", HIGHEST, "hour", 3600),
        ("007/min", 7, "min", 60),
    ],
)
def test_a_limit(text: str, count: int, unit: str, seconds: int) -> None:
    limit = read("bash", text)
    assert (limit.count, limit.unit, limit.seconds) == (count, unit, seconds)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "30",
        "/min",
        "30/",
        "30/minute",
        "30/MIN",
        "-3/min",
        "3.5/min",
        "3/min/min",
        "٣/min",
        "3/min;",
        "1" * 99,
    ],
)
def test_no_limit(text: str) -> None:
    with pytest.raises(ValueError, match=r"^bash: .* is no limit; write N/sec, N/min, N/hour, N/session"):
        read("bash", text)


def test_a_limit_of_none_or_of_too_many_says_what_to_do_instead() -> None:
    with pytest.raises(ValueError, match="use a deny rule"):
        read("bash", "0/min")
    with pytest.raises(ValueError, match="leave it out"):
        read("bash", f"{HIGHEST + 1}/min")
    with pytest.raises(ValueError, match="needs a kind"):
        read(" ", "1/min")


def test_the_settings() -> None:
    config = Config({"bash": "30/min", "fetch": ["2/sec", "100/hour"], "*": "200/session"})
    assert [str(limit) for limit in config.limits] == [
        "30 bash calls a minute",
        "2 fetch calls a second",
        "100 fetch calls an hour",
        "200 tool calls a session",
    ]
    assert Config().limits == []
    assert Config(None).scope == "session"


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({"limits": {"bash": "often"}}, "no limit"),
        ({"limits": {"bash": ["1/min", "often"]}}, "no limit"),
        ({"limits": {"bash": ["1/min", "2/min"]}}, "two limits a minute"),
        ({"scope": "world"}, "session or project"),
    ],
)
def test_wrong_settings(settings: dict[str, object], why: str) -> None:
    with pytest.raises(ValueError, match=why):
        Config(**settings)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("pattern", "tool", "hit"),
    [
        ("bash", "bash", True),
        ("bash", "run_shell_command", True),
        ("bash", "read", False),
        ("run_shell_command", "run_shell_command", True),
        ("run_shell_command", "bash", False),
        ("mcp__git__*", "mcp__git__push", True),
        ("mcp__git__*", "mcp__slack__send", False),
        ("other", "mcp__git__push", True),
        ("*", "anything", True),
    ],
)
def test_a_pattern_means_the_kind_or_the_name(pattern: str, tool: str, hit: bool) -> None:
    event = make.pre_tool_execution(tool, {"x": 1})
    assert read(pattern, "1/min").matches(event) is hit


@pytest.mark.parametrize(
    ("seconds", "words"),
    [
        (0.001, "Try again in 1 second,"),
        (1.0, "Try again in 1 second,"),
        (1.1, "Try again in 2 seconds,"),
        (119.5, "Try again in 2 minutes,"),
        (3600.0, "Try again in 60 minutes,"),
        (inf, "No more of these calls"),
    ],
)
def test_a_refusal_says_when_there_is_room(seconds: float, words: str) -> None:
    answer = refusal(read("bash", "1/min"), seconds)
    assert answer.reason == "the limit of 1 bash call a minute is reached"
    assert answer.advice.startswith(words)
    assert answer.code == "rate_limit"
