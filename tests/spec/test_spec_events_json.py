"""The JSON form of events: nothing gets lost, nothing foreign breaks it."""

from __future__ import annotations

import json
import math
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn import EventError, events

RFC3339 = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z")

# Lone surrogates, NUL and line ends included.
texts = st.text(st.characters(min_codepoint=0, max_codepoint=0x10FFFF, categories=None), max_size=30)
numbers = st.integers(-(2**70), 2**70) | st.integers(10**300, 10**301)
floats = st.floats(allow_nan=False, allow_infinity=False)
values = st.recursive(
    st.none() | st.booleans() | numbers | floats | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=12,
)
objects = st.dictionaries(texts, values, max_size=4)
# Milliseconds are what the JSON form keeps.
times = st.integers(0, 4_000_000_000_000).map(lambda milli: milli / 1000)
common = {
    "session_id": texts.filter(bool),
    "agent": texts,
    "agent_id": texts,
    "parent_agent": texts,
    "cwd": texts,
    "turn": st.integers(0, 10**6),
    "time": times,
    "host": texts,
    "raw": values,
    "dry_run": st.booleans(),
}
tool = {"tool": texts, "args": objects, "call_id": texts}
CLASSES = {
    events.SessionStart: {"source": texts, "model": texts, "provider": texts},
    events.MessageReceived: {"text": texts, "origin": texts, "attachments": st.lists(values, max_size=3)},
    events.UserPromptSubmit: {"prompt": texts, "attachments": st.lists(values, max_size=3)},
    events.TurnStart: {"phase": texts},
    events.SystemPrompt: {"parts": st.lists(texts, max_size=3)},
    events.ModelResponse: {"text": texts, "tool_calls": st.lists(objects, max_size=3), "usage": objects},
    events.ToolCallStart: tool,
    events.PreToolExecution: {**tool, "permission": texts},
    events.PostToolExecution: {**tool, "result": values, "status": texts, "duration": floats, "error": texts},
    events.TurnComplete: {"text": texts, "result": values, "usage": objects, "edited_files": st.lists(texts)},
    events.PostTurn: {"text": texts, "duration": floats},
    events.Error: {"error_type": texts, "message": texts, "phase": texts, "hook": texts},
    events.SessionEnd: {"reason": texts},
    events.Event: {"type": texts.filter(bool), "properties": objects, "accepts": st.lists(texts)},
    events.PermissionRequest: {**tool, "reason": texts, "by": texts, "identity": texts},
}


@st.composite
def any_event(draw):
    cls = draw(st.sampled_from(list(CLASSES)))
    fields = {name: draw(strategy) for name, strategy in CLASSES[cls].items()}
    fields |= draw(st.fixed_dictionaries({}, optional=common))
    fields.setdefault("time", 1.5)
    return cls(**fields)


def through_json(event):
    # Plain ASCII on the wire: lone surrogates stay valid.
    line = json.dumps(event.to_json(), ensure_ascii=True, allow_nan=False)
    assert line.isascii() and "\n" not in line
    return events.from_json(json.loads(line))


@given(any_event())
def test_nothing_is_lost_in_a_round_trip(event):
    again = through_json(event)
    assert type(again) is type(event)
    assert again == event
    assert again.to_json() == event.to_json()


@given(any_event())
def test_the_json_form_names_schema_timing_and_a_time_by_rfc_3339(event):
    data = event.to_json()
    assert data["schema"] == 1
    assert data["timing"] == event.timing
    assert RFC3339.fullmatch(data["time"])
    assert data["session_id"]


@given(
    st.floats() | st.integers(-(10**400), 10**400).map(lambda n: float("inf") if abs(n) > 1e300 else float(n))
)
def test_any_time_has_an_rfc_3339_form_that_can_be_read_back(moment):
    data = events.TurnStart(time=moment).to_json()
    assert RFC3339.fullmatch(data["time"])
    events.from_json(data)


@given(st.sampled_from(list(CLASSES)), objects)
def test_foreign_objects_give_an_event_or_an_event_error(cls, data):
    try:
        event = events.from_json(data, timing=cls.timing)
    except EventError as error:
        assert str(error)
    else:
        through_json(event)


@given(
    st.sampled_from(list(CLASSES)),
    st.dictionaries(
        st.sampled_from(
            [
                "tool", "args", "call_id", "kind", "mcp", "text", "prompt", "parts", "time", "turn", "usage", "extra",
                "raw", "session_id", "type", "accepts", "properties", "result", "status", "schema", "timing", "command",
                "error_type", "message", "dry_run", "self", "cls", "duration", "exception",
            ]
        ),
        values,
    ),
)  # fmt: skip
def test_wrong_values_of_known_fields_give_an_event_or_an_event_error(cls, data):
    try:
        event = events.from_json(data, timing=cls.timing)
    except EventError as error:
        assert str(error)
    else:
        through_json(event)


def test_unknown_fields_pass_on():
    data = {"tool": "bash", "args": {}, "from_the_future": {"a": [1]}, "type": "x", "self": 1}
    event = events.from_json(data, "pre_tool_execution")
    assert event.extra == {"from_the_future": {"a": [1]}, "type": "x", "self": 1}
    assert event.to_json()["from_the_future"] == {"a": [1]}
    assert through_json(event).extra == event.extra


def test_unknown_fields_never_hide_known_ones():
    event = events.TurnStart(phase="real", extra={"phase": "fake", "timing": "fake", "schema": 9})
    data = event.to_json()
    assert (data["phase"], data["timing"], data["schema"]) == ("real", "on_turn_start", 1)


def test_names_of_tool_views_are_ordinary_fields_elsewhere():
    data = {"type": "file.changed", "paths": ["/a"], "command": "x", "urls": [], "mcp": ["a", "b"]}
    event = events.from_json(data, "on_event")
    assert event.extra == {"paths": ["/a"], "command": "x", "urls": [], "mcp": ["a", "b"]}
    assert event.to_json()["paths"] == ["/a"]


def test_views_travel_for_the_reader_and_are_computed_anew():
    event = events.PreToolExecution(tool="mcp__git__push", args={"command": "ls", "path": "/x"}, time=1.0)
    data = event.to_json()
    assert data["kind"] == "other"
    assert data["mcp"] == ["git", "push"]
    assert data["command"] == "ls"
    assert data["paths"] == ["/x"]
    assert data["urls"] == []
    again = events.from_json({**data, "command": "rm -rf /", "paths": []})
    assert (again.command, again.paths, again.mcp) == ("ls", ["/x"], ("git", "push"))
    post = events.PostToolExecution(tool="bash", args={}, result={"stdout": "out", "stderr": ""})
    assert post.to_json()["result_text"] == "out"


def test_a_kind_that_the_host_told_travels():
    event = events.from_json({"tool": "save", "args": {}, "kind": "write"}, "pre_tool_execution")
    assert event.kind == "write"


@pytest.mark.parametrize(
    ("data", "timing", "words"),
    [
        ([], "pre_tool_execution", "one JSON object, got an array"),
        (None, "", "one JSON object, got null"),
        ({}, "", "unknown timing ''"),
        ({"timing": 5}, "", "unknown timing 5"),
        ({}, "pre_tool_exec", r"unknown timing 'pre_tool_exec' \(did you mean 'pre_tool_execution'\?\)"),
        ({}, "on_outcome", "unknown timing 'on_outcome'"),
        ({"args": {}}, "pre_tool_execution", "needs tool"),
        ({"tool": "x", "args": 5}, "pre_tool_execution", "args must be an object, got a number"),
        ({"time": "yesterday"}, "on_turn_start", r"time must be RFC 3339.*'yesterday'"),
        ({"time": None}, "on_turn_start", "time must be RFC 3339"),
        ({"time": math.nan}, "on_turn_start", "time must be RFC 3339"),
        ({"time": 10**400}, "on_turn_start", "time must be RFC 3339"),
        ({"time": -(10**400)}, "on_turn_start", "time must be RFC 3339"),
        ({"time": True}, "on_turn_start", "time must be RFC 3339"),
    ],
)
def test_bad_data_is_named(data, timing, words):
    with pytest.raises(EventError, match=words):
        events.from_json(data, timing)


@pytest.mark.parametrize(
    ("given", "seconds"),
    [
        ("2026-11-30T18:20:34.485Z", 1796062834.485),
        ("2026-11-30T18:20:34Z", 1796062834.0),
        ("2026-11-30t18:20:34z", 1796062834.0),
        ("2026-11-30 18:20:34Z", 1796062834.0),
        ("2026-11-30T18:20:34.123456789Z", 1796062834.123456),
        ("2026-11-30T18:20:34.5Z", 1796062834.5),
        ("2026-11-30T19:20:34+01:00", 1796062834.0),
        ("2026-11-30T18:20:34", 1796062834.0),
        (1796062834, 1796062834.0),
        (1796062834.5, 1796062834.5),
        (1796062834485, 1796062834.485),
        (0, 0.0),
    ],
)
def test_times_are_read(given, seconds):
    assert events.from_json({"time": given}, "on_turn_start").time == pytest.approx(seconds, abs=1e-6)


def test_time_is_written_in_utc_with_milliseconds():
    assert events.TurnStart(time=1796062834.4851).to_json()["time"] == "2026-11-30T18:20:34.485Z"
    assert events.TurnStart(time=0.9999).to_json()["time"] == "1970-01-01T00:00:01.000Z"
    assert events.TurnStart(time=-1).to_json()["time"] == "1969-12-31T23:59:59.000Z"


class Odd:
    def __repr__(self):
        raise RuntimeError("no repr")

    __str__ = __repr__


class WithJson:
    def to_json(self):
        return {"a": {1, 2} and (1, 2)}


class BadJson:
    def to_json(self):
        raise ValueError("no")


@pytest.mark.parametrize(
    ("value", "form"),
    [
        (math.nan, "nan"),
        (math.inf, "inf"),
        (-math.inf, "-inf"),
        (b"ab\xff", "ab�"),
        ((1, 2), [1, 2]),
        (frozenset([1]), [1]),
        ({1: "a", None: "b"}, {"1": "a", "None": "b"}),
        ({10**5000: "a"}, {"<int: str failed: ValueError>": "a"}),
        (ValueError("x"), {"type": "ValueError", "message": "x"}),
        (WithJson(), {"a": [1, 2]}),
        (BadJson(), "<BadJson: to_json failed: ValueError>"),
        (Odd(), "<Odd: repr failed: RuntimeError>"),
    ],
)
def test_what_json_cannot_hold_gets_a_form(value, form):
    data = events.TurnComplete(result=value, time=1.0).to_json()
    assert data["result"] == form
    json.dumps(data, allow_nan=False)


@pytest.mark.parametrize("digits", [4301, 100_000])
def test_integers_too_long_for_text_do_not_break_the_json_form(digits):
    data = events.PreToolExecution(tool="x", args={"n": 10**digits, "m": -(10**digits)}).to_json()
    line = json.dumps(data, allow_nan=False)
    assert json.loads(line)["args"]["n"] != json.loads(line)["args"]["m"]


def test_data_that_refers_to_itself_has_an_end():
    class Node:
        def __init__(self):
            self.next = self

        def to_json(self):
            return {"next": self.next}

    json.dumps(events.TurnComplete(result=Node()).to_json())


def test_huge_and_ugly_texts():
    ugly = "\ud800\0" + "x" * 2_000_000 + "\r\n"
    event = events.UserPromptSubmit(prompt=ugly, session_id="../../" + "x" * 5000, time=1.0)
    assert through_json(event) == event
