"""Event factories: every timing has one, they need nothing, take everything, and give the same each time."""

from __future__ import annotations

import inspect

import pytest

from hookturn import Engine, EventError, Tool, events
from hookturn.spec.events import from_json
from hookturn.spec.timings import TIMINGS
from hookturn.testing import make


class PlanCreated(events.Event, timing="on_plan_created"):
    steps: list[str]


@pytest.mark.parametrize("timing", TIMINGS)
def test_every_timing_has_a_factory_of_its_name(timing: str) -> None:
    event = getattr(make, timing)()
    assert type(event) is TIMINGS[timing].event
    assert event.timing == timing
    assert event.session_id == "test-session"
    if timing != "on_outcome":  # outcomes are compared by identity
        assert event == getattr(make, timing)(), "not the same in every run"


@pytest.mark.parametrize("timing", TIMINGS)
def test_a_factory_takes_the_fields_of_its_event_and_refuses_others(timing: str) -> None:
    factory = getattr(make, timing)
    event = factory(session_id="s2", agent="coder", turn=7, cwd="/elsewhere")
    assert (event.session_id, event.agent, event.turn, event.cwd) == ("s2", "coder", 7, "/elsewhere")
    with pytest.raises(EventError, match="no field 'agnt'"):
        factory(agnt="coder")


@pytest.mark.parametrize("timing", [name for name in TIMINGS if name not in ("on_outcome", "on_error")])
def test_the_factorys_own_parameters_are_fields_of_the_event(timing: str) -> None:
    own = set(TIMINGS[timing].event._fields) | {"command", "path", "url", "tools"}
    for parameter in inspect.signature(getattr(make, timing)).parameters.values():
        assert parameter.kind is parameter.VAR_KEYWORD or parameter.name in own


@pytest.mark.parametrize("timing", [name for name in TIMINGS if name != "on_outcome"])
def test_made_events_survive_the_wire_and_an_engine_takes_them(timing: str) -> None:
    event = getattr(make, timing)()
    assert from_json(event.to_json()) == event
    with Engine() as engine:
        assert engine.fire(event).event == event


def test_an_own_event_is_made_like_ours() -> None:
    event = make.event(PlanCreated, steps=["one"], agent="planner")
    assert (event.steps, event.agent, event.turn) == (["one"], "planner", 1)
    with pytest.raises(EventError, match="needs steps"):
        make.event(PlanCreated)


@pytest.mark.parametrize(
    ("tool", "given", "args", "view", "seen"),
    [
        ("bash", {"command": "rm -rf /"}, {"command": "rm -rf /"}, "command", "rm -rf /"),
        ("Bash", {"command": "ls"}, {"command": "ls"}, "command", "ls"),
        ("read", {"path": "a.py"}, {"file_path": "a.py"}, "paths", ["/project/a.py"]),
        ("write", {"path": "/tmp/x"}, {"file_path": "/tmp/x"}, "paths", ["/tmp/x"]),
        ("fetch", {"url": "https://e.org"}, {"url": "https://e.org"}, "urls", ["https://e.org"]),
    ],
)
def test_a_view_is_put_where_the_tool_has_it(
    tool: str, given: dict[str, str], args: dict[str, str], view: str, seen: object
) -> None:
    for factory in (make.on_tool_call_start, make.pre_tool_execution, make.post_tool_execution):
        event = factory(tool, **given)
        assert event.args == args
        assert getattr(event, view) == seen
    assert make.on_permission_request(tool, **given).args == args


def test_bash_without_arguments_lists_files() -> None:
    assert make.pre_tool_execution().command == "ls"
    assert make.pre_tool_execution(args={"command": "pwd"}).command == "pwd"


def test_other_arguments_stand_beside_a_view() -> None:
    event = make.pre_tool_execution("write", {"content": "hello"}, path="a.txt")
    assert event.args == {"content": "hello", "file_path": "a.txt"}


def test_a_host_table_says_what_a_tool_takes() -> None:
    tools = {"save": Tool("write", paths=["target"])}
    event = make.pre_tool_execution("save", path="a.txt", tools=tools)
    assert (event.args, event.kind, event.paths) == ({"target": "a.txt"}, "write", ["/project/a.txt"])


def test_a_view_that_the_tool_does_not_have_is_refused_with_a_remedy() -> None:
    with pytest.raises(EventError, match="the tool 'read' has no url; give its args, or say what it takes"):
        make.pre_tool_execution("read", url="https://e.org")


def test_an_error_event_speaks_for_its_exception() -> None:
    event = make.on_error(exception=KeyError("x"))
    assert (event.error_type, event.message) == ("KeyError", "'x'")


def test_an_outcome_event_holds_a_decision() -> None:
    event = make.on_outcome(decision="deny", by="guard", reason="too dangerous")
    assert (event.of, event.outcome.decision, event.outcome.by) == ("pre_tool_execution", "deny", "guard")
    assert "too dangerous" in event.outcome.message
    assert event.after is event.outcome.event
    fired = make.on_outcome(make.on_turn_start())
    assert (fired.of, fired.outcome.decision) == ("on_turn_start", None)


def test_a_permission_request_is_bound_to_its_arguments() -> None:
    one, same, other = (make.on_permission_request(command=command).identity for command in ("a", "a", "b"))
    assert len(one) > 60
    assert one == same != other
