"""Matchers and triggers of AtomCode (tables A5 and A7)."""

from __future__ import annotations

import fnmatch
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn import events
from hookturn.agents.atomcode.matcher import Condition, matches, names_of, timings_of, tool_name

A5_OLD = [
    (None, "bash", True),
    ("*", "bash", True),
    ("bash", "bash", True),
    ("bash", "Bash", False),
    ("bash", "bash2", False),
    ("edit_*", "edit_file", True),
    ("edit_*", "edit_", True),
    ("edit_*", "bash", False),
    ("", "", True),
    ("", "bash", False),
    ("*_file", "edit_file", False),
    ("a*b", "axb", False),
    ("bash|grep", "bash", False),
]

A5_NEW = [
    (None, "bash", True),
    ("", "bash", True),
    ("", "", True),
    ("*", "bash", True),
    ("bash", "bash", True),
    ("bash", "Bash", False),
    ("Edit", "MultiEdit", False),
    ("bash|grep", "grep", True),
    (" bash | grep ", "grep", True),
    ("web*|bash", "web_fetch", True),
    ("*_file", "edit_file", True),
    ("e*_*e", "edit_file", True),
    ("a*a", "a", False),
    ("mcp__*__delete", "mcp__a-b__delete", True),
    ("edit.file", "edit_file", False),
    ("edit?file", "edit_file", False),
    ("[e]dit", "edit", False),
    ("我的*", "我的工具", True),
    ("bash|", "grep", False),
]


@pytest.mark.parametrize(("matcher", "tool", "expected"), A5_OLD)
def test_a5_generation_1(matcher, tool, expected):
    assert matches(matcher, tool, 1) is expected


@pytest.mark.parametrize(("matcher", "tool", "expected"), A5_NEW)
def test_a5_generation_2(matcher, tool, expected):
    assert matches(matcher, tool, 2) is expected


@given(st.text("ab*", min_size=1, max_size=8), st.text("ab", max_size=8))
def test_a_glob_is_a_glob(pattern, text):
    assert matches(pattern, text) is bool(re.match(fnmatch.translate(pattern), text))


def test_a_matcher_of_many_stars_is_quick():
    assert not matches("*a" * 200 + "b", "a" * 5000)


ALIASES = {
    "pre_tool": "pre_tool_execution", "before_tool": "pre_tool_execution", "pre_tool_execution": "pre_tool_execution",
    "post_tool": "post_tool_execution", "after_tool": "post_tool_execution", "post_tool_execution": "post_tool_execution",
    "post_turn": "post_turn", "system_prompt": "system_prompt", "session_start": "on_session_start",
    "session_end": "on_session_end", "error": "on_error", "turn_start": "on_turn_start", "on_turn_start": "on_turn_start",
    "turn_complete": "on_turn_complete", "after_turn": "on_turn_complete", "tool_call_start": "on_tool_call_start",
    "model_response": "on_model_response", "message": "on_message_received", "message_received": "on_message_received",
    "PRE_TOOL": "pre_tool_execution", " Error ": "on_error",
}  # fmt: skip


@pytest.mark.parametrize("word", ALIASES)
def test_a7_aliases(word):
    assert timings_of(word) == ([ALIASES[word]], [])


def test_a7_several_and_unknown_words():
    assert timings_of("session_end, error") == (["on_session_end", "on_error"], [])
    assert timings_of("pre_tol,error") == (["on_error"], ["pre_tol"])
    assert timings_of("user_prompt_submit") == ([], ["user_prompt_submit"])


def test_a7_exact_words_by_default_and_any_part_of_the_text_for_compatibility():
    assert timings_of("before_tool_call_start") == ([], ["before_tool_call_start"])
    both = (["pre_tool_execution", "on_tool_call_start"], [])
    assert timings_of("before_tool_call_start", substring=True) == both
    assert timings_of("my_error_log", substring=True) == (["on_error"], [])


@pytest.mark.parametrize(
    ("tool", "args", "mcp", "names", "told"),
    [
        ("bash", {}, None, ["bash"], "bash"),
        ("Bash", {"command": "ls"}, None, ["Bash", "bash"], "bash"),
        ("run_shell_command", {"command": "ls"}, None, ["run_shell_command", "bash"], "bash"),
        ("Read", {"file_path": "a"}, None, ["Read", "read_file"], "read_file"),
        ("Write", {"file_path": "a"}, None, ["Write", "write_file"], "write_file"),
        ("Edit", {"file_path": "a"}, None, ["Edit", "edit_file"], "edit_file"),
        ("MultiEdit", {"file_path": "a"}, None, ["MultiEdit", "write_file", "edit_file"], "MultiEdit"),
        ("Grep", {}, None, ["Grep", "grep"], "grep"),
        ("WebSearch", {}, None, ["WebSearch", "web_search"], "web_search"),
        ("WebFetch", {"url": "https://x"}, None, ["WebFetch", "web_fetch"], "web_fetch"),
        ("Task", {}, None, ["Task"], "Task"),
        ("x", {}, ("git", "push"), ["x", "mcp__git__push"], "mcp__git__push"),
    ],
)
def test_other_agents_tools_are_known_by_atomcodes_names(tool, args, mcp, names, told):
    event = events.PreToolExecution(tool=tool, args=args, mcp=mcp)
    assert list(names_of(event)) == names
    assert tool_name(event) == told
    for name in names:
        assert Condition("PreToolUse", name, 2)(event) == ""
    assert Condition("PreToolUse", "other", 2)(event)
