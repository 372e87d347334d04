"""Events are data: typed, frozen, complete, and readable as JSON."""

from __future__ import annotations

import copy
import pickle
from collections import OrderedDict, defaultdict

import pytest

from hookturn import EventError, events

# The rows of section 2 of the design: timing, event class, required fields, all own fields.
ROWS = [
    ("on_session_start", events.SessionStart, {}, ("source", "model", "provider")),
    ("on_message_received", events.MessageReceived, {"text": "hi"}, ("text", "origin", "attachments")),
    ("on_user_prompt_submit", events.UserPromptSubmit, {"prompt": "hi"}, ("prompt", "attachments")),
    ("on_turn_start", events.TurnStart, {}, ("phase",)),
    ("system_prompt", events.SystemPrompt, {"parts": ["a"]}, ("parts",)),
    ("on_model_response", events.ModelResponse, {}, ("text", "tool_calls", "usage", "stop_reason")),
    (
        "on_tool_call_start",
        events.ToolCallStart,
        {"tool": "bash", "args": {}},
        ("call_id", "tool", "args", "kind"),
    ),
    (
        "pre_tool_execution",
        events.PreToolExecution,
        {"tool": "bash", "args": {}},
        ("call_id", "tool", "args", "kind", "permission"),
    ),
    (
        "post_tool_execution",
        events.PostToolExecution,
        {"tool": "bash", "args": {}},
        ("call_id", "tool", "args", "result", "status", "duration"),
    ),
    (
        "on_turn_complete",
        events.TurnComplete,
        {},
        ("text", "result", "usage", "tool_calls", "duration", "edited_files"),
    ),
    ("post_turn", events.PostTurn, {}, ("text", "duration")),
    (
        "on_error",
        events.Error,
        {"error_type": "X", "message": "m"},
        ("error_type", "message", "phase", "exception", "hook"),
    ),
    ("on_session_end", events.SessionEnd, {}, ("reason",)),
    ("on_event", events.Event, {"type": "session.idle"}, ("type", "properties", "accepts")),
    (
        "on_permission_request",
        events.PermissionRequest,
        {"tool": "bash", "args": {}},
        ("call_id", "tool", "args", "kind", "reason", "by", "identity"),
    ),
]
COMMON = ("session_id", "agent", "agent_id", "parent_agent", "cwd", "turn", "time", "host", "raw", "dry_run")
IDS = [row[0] for row in ROWS]


@pytest.mark.parametrize(("timing", "cls", "required", "fields"), ROWS, ids=IDS)
def test_the_events_of_the_table(timing, cls, required, fields):
    event = cls(**required)
    assert event.timing == timing
    for name in (*fields, *COMMON):
        getattr(event, name)
    for name, value in required.items():
        assert getattr(event, name) == value


@pytest.mark.parametrize(("timing", "cls", "required", "fields"), ROWS, ids=IDS)
def test_all_else_has_defaults_and_each_required_field_is_required(timing, cls, required, fields):
    for missing in required:
        rest = {name: value for name, value in required.items() if name != missing}
        with pytest.raises(EventError, match=missing):
            cls(**rest)


@pytest.mark.parametrize(("timing", "cls", "required", "fields"), ROWS, ids=IDS)
def test_defaults_of_the_common_fields(timing, cls, required, fields):
    event = cls(**required)
    assert event.session_id, "never empty"
    assert event.session_id == cls(**required).session_id, "one id per process"
    assert cls(**required, session_id="").session_id == event.session_id
    assert event.time > 1_600_000_000
    assert (event.agent, event.agent_id, event.parent_agent, event.turn) == ("main", "", "", 0)
    assert event.raw is None
    assert event.dry_run is False


def test_an_unknown_field_is_named_with_the_likely_right_one():
    with pytest.raises(EventError, match=r"no field 'tol'.*did you mean 'tool'"):
        events.PreToolExecution(tol="bash", args={})
    with pytest.raises(EventError, match="properties"):
        events.PreToolExecution(tool="bash", args={}, properties={})  # only on_event has them


@pytest.mark.parametrize(
    ("cls", "fields", "name"),
    [
        (events.PreToolExecution, {"tool": 3, "args": {}}, "tool"),
        (events.PreToolExecution, {"tool": "bash", "args": "ls"}, "args"),
        (events.PreToolExecution, {"tool": "bash", "args": [1]}, "args"),
        (events.UserPromptSubmit, {"prompt": None}, "prompt"),
        (events.UserPromptSubmit, {"prompt": b"x"}, "prompt"),
        (events.SystemPrompt, {"parts": "text"}, "parts"),
        (events.TurnStart, {"turn": "1"}, "turn"),
        (events.TurnStart, {"turn": True}, "turn"),
        (events.TurnStart, {"turn": 1.5}, "turn"),
        (events.TurnStart, {"time": "now"}, "time"),
        (events.TurnStart, {"dry_run": 1}, "dry_run"),
        (events.TurnStart, {"session_id": 7}, "session_id"),
        (events.ModelResponse, {"usage": []}, "usage"),
        (events.Event, {"type": 5}, "type"),
    ],
)
def test_a_wrong_type_is_named(cls, fields, name):
    with pytest.raises(EventError, match=rf"{cls.__name__}\.{name} must be"):
        cls(**fields)


def test_event_of_a_host_needs_a_type():
    with pytest.raises(EventError, match="type"):
        events.Event()
    with pytest.raises(EventError, match="type"):
        events.Event(type="")


@pytest.mark.parametrize(("timing", "cls", "required", "fields"), ROWS, ids=IDS)
def test_fields_cannot_be_set(timing, cls, required, fields):
    event = cls(**required)
    for name in (*fields, *COMMON, "anything"):
        with pytest.raises(AttributeError, match="return Rewrite"):
            setattr(event, name, "x")
        with pytest.raises(AttributeError, match="read-only"):
            delattr(event, name)


CHANGES = {
    "dict set": lambda e: e.args.__setitem__("x", 1),
    "dict item": lambda e: exec("e.args['x'] = 1", {"e": e}),
    "dict del": lambda e: exec("del e.args['list']", {"e": e}),
    "dict update": lambda e: e.args.update(x=1),
    "dict |=": lambda e: exec("a = e.args\na |= {'x': 1}", {"e": e}),
    "dict pop": lambda e: e.args.pop("list"),
    "dict popitem": lambda e: e.args.popitem(),
    "dict clear": lambda e: e.args.clear(),
    "dict setdefault": lambda e: e.args.setdefault("x", 1),
    "nested dict": lambda e: e.args["dict"].update(x=1),
    "dict in list": lambda e: e.args["list"][0].clear(),
    "dict in tuple": lambda e: e.args["tuple"][0].clear(),
    "list append": lambda e: e.args["list"].append(1),
    "list extend": lambda e: e.args["list"].extend([1]),
    "list insert": lambda e: e.args["list"].insert(0, 1),
    "list pop": lambda e: e.args["list"].pop(),
    "list remove": lambda e: e.args["list"].remove(2),
    "list item": lambda e: exec("e.args['list'][0] = 1", {"e": e}),
    "list slice": lambda e: exec("e.args['list'][:] = []", {"e": e}),
    "list del": lambda e: exec("del e.args['list'][0]", {"e": e}),
    "list +=": lambda e: exec("a = e.args['list']\na += [1]", {"e": e}),
    "list *=": lambda e: exec("a = e.args['list']\na *= 2", {"e": e}),
    "list sort": lambda e: e.args["list"].sort(),
    "list reverse": lambda e: e.args["list"].reverse(),
    "list clear": lambda e: e.args["list"].clear(),
    "ordered dict": lambda e: e.args["ordered"].update(x=1),
    "default dict": lambda e: e.args["default"]["x"],
    "raw": lambda e: e.raw["deep"].append(1),
    "views": lambda e: e.paths.append("/x"),
}


@pytest.mark.parametrize("change", CHANGES.values(), ids=CHANGES)
def test_dicts_and_lists_in_an_event_are_read_only_and_say_what_to_do(change):
    given = {
        "dict": {"a": 1},
        "list": [{"a": 1}, 2],
        "tuple": ({"a": 1},),
        "ordered": OrderedDict(a=1),
        "default": defaultdict(list, a=[1]),
    }
    before = copy.deepcopy(given)
    event = events.PreToolExecution(tool="write", args=given, raw={"deep": [1]})
    with pytest.raises((TypeError, KeyError), match=r"return Rewrite|'x'"):
        change(event)
    assert event.args == before
    assert event.raw == {"deep": [1]}


@pytest.mark.parametrize("given", [OrderedDict(a=[1]), defaultdict(list, a=[1])])
def test_arguments_of_a_dict_subclass_are_frozen_too(given):
    event = events.PreToolExecution(tool="x", args=given)
    with pytest.raises(TypeError, match="return Rewrite"):
        event.args["b"] = 1
    with pytest.raises(TypeError, match="return Rewrite"):
        event.args["a"].append(1)


def test_lists_given_as_tuples_are_frozen_inside():
    event = events.MessageReceived(text="x", attachments=({"a": 1},))
    with pytest.raises(TypeError, match="return Rewrite"):
        event.attachments[0]["a"] = 2


def test_the_givers_own_data_stays_changeable_and_apart():
    given = {"list": [1]}
    event = events.PreToolExecution(tool="x", args=given)
    given["list"].append(2)
    given["more"] = 1
    assert event.args == {"list": [1]}


def test_copies_are_ordinary_dicts_and_lists():
    event = events.PreToolExecution(tool="x", args={"a": {"b": [1]}})
    for made in (
        copy.deepcopy(event.args),
        events.thaw(event.args),
        pickle.loads(pickle.dumps(event.args)),
    ):
        made["a"]["b"].append(2)
        made["new"] = 1
        assert made == {"a": {"b": [1, 2]}, "new": 1}
    shallow = event.args.copy()
    shallow["new"] = 1
    assert dict(event.args) == {"a": {"b": [1]}}
    assert copy.copy(event.args["a"]["b"]) == [1]
    assert {**event.args} == event.args
    assert isinstance(event.args, dict)
    assert isinstance(event.args["a"]["b"], list)


def test_events_themselves_copy_and_pickle():
    event = events.PreToolExecution(tool="bash", args={"command": "ls"}, cwd="/x")
    assert event.command == "ls"
    assert copy.deepcopy(event) == event
    assert pickle.loads(pickle.dumps(event)) == event


def test_events_compare_by_content():
    first = events.TurnStart(phase="a", time=1.0)
    assert first == events.TurnStart(phase="a", time=1.0)
    assert first != events.TurnStart(phase="b", time=1.0)
    assert first != events.PostTurn(time=1.0)
    assert first != "x"
    with pytest.raises(TypeError):
        hash(first)


def test_replace_gives_another_event_with_views_computed_anew():
    event = events.PreToolExecution(tool="bash", args={"command": "ls"}, cwd="/x", time=5.0)
    assert event.command == "ls"
    other = event.replace(args={"command": "pwd"})
    assert (other.command, other.time, other.tool, event.command) == ("pwd", 5.0, "bash", "ls")
    with pytest.raises(TypeError, match="return Rewrite"):
        other.args["x"] = 1
    with pytest.raises(EventError, match=r"no field 'arg'.*'args'"):
        event.replace(arg={})


@pytest.mark.parametrize("wrap", [lambda x: [x], lambda x: (x,), lambda x: {"a": x}])
def test_too_deep_data_is_refused_clearly(wrap):
    deep = []
    for _ in range(3000):
        deep = wrap(deep)
    with pytest.raises(EventError, match="nested deeper than 200"):
        events.PreToolExecution(tool="x", args={"a": deep})
    cycle = []
    cycle.append(cycle)
    with pytest.raises(EventError, match="nested deeper"):
        events.PreToolExecution(tool="x", args={"a": cycle})


def test_repr_names_what_was_given():
    text = repr(events.PreToolExecution(tool="bash", args={"command": "ls"}, time=1.0))
    assert text.startswith("PreToolExecution(") and "tool='bash'" in text and "'command': 'ls'" in text


def test_own_event_classes():
    class PlanCreated(events.Event, timing="on_plan_created"):
        steps: list[str]
        score: float = 0.5

    event = PlanCreated(steps=["a"], cwd="/x")
    assert (event.timing, event.steps, event.score, event.cwd) == ("on_plan_created", ["a"], 0.5, "/x")
    with pytest.raises(EventError, match="steps"):
        PlanCreated()
    with pytest.raises(EventError, match="steps must be a list"):
        PlanCreated(steps="a")
    with pytest.raises(EventError, match="no field 'type'"):
        PlanCreated(steps=[], type="x")
    assert event.to_json()["steps"] == ["a"]
