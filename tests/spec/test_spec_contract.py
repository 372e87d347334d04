"""The hookspecs: thirteen timings and the hooks beside them, each with its whole contract in its docstring."""

from __future__ import annotations

import inspect
import re

import pytest

import hookturn
from hookturn import events, hookimpl, hookspec
from hookturn.spec import timings
from hookturn.spec.errors import RegistrationError

# Section 2 of the design; the main writable field first.
TABLE = {
    "on_session_start": ("SessionStart", {"Inject", "SetEnv", "Block"}, ()),
    "on_message_received": ("MessageReceived", {"Rewrite", "Reply", "Inject", "Block"}, ("text",)),
    "on_user_prompt_submit": ("UserPromptSubmit", {"Inject", "Block"}, ()),
    "on_turn_start": ("TurnStart", {"Inject", "SetEnv"}, ()),
    "system_prompt": ("SystemPrompt", {"Inject", "Rewrite"}, ("parts",)),
    "on_model_response": ("ModelResponse", {"Rewrite", "Inject", "Block"}, ("text",)),
    "on_tool_call_start": ("ToolCallStart", {"Deny", "Ask"}, ()),
    "pre_tool_execution": (
        "PreToolExecution",
        {"Rewrite", "Deny", "Ask", "Allow", "Block", "Reply"},
        ("args",),
    ),
    "post_tool_execution": ("PostToolExecution", {"Rewrite", "Deny", "Inject", "Recover"}, ("result",)),
    "on_turn_complete": ("TurnComplete", {"Continue", "Rewrite", "Block", "Inject"}, ("text",)),
    "post_turn": ("PostTurn", set(), ()),
    "on_error": ("Error", {"Recover"}, ()),
    "on_session_end": ("SessionEnd", set(), ()),
    "on_event": (
        "Event",
        {"Allow", "Ask", "Block", "Continue", "Deny", "Inject", "Recover", "Reply", "Rewrite", "SetEnv"},
        ("properties",),
    ),
    "on_permission_request": ("PermissionRequest", {"Allow", "Deny"}, ()),
    "on_outcome": ("OutcomeEvent", set(), ()),
}


def test_the_timings_are_those_of_the_design_in_its_order():
    assert list(timings.TIMINGS) == list(TABLE)
    assert list(timings.THIRTEEN) == list(TABLE)[:13]


@pytest.mark.parametrize("name", TABLE)
def test_each_timing_is_as_the_table_says(name):
    event, answers, writable = TABLE[name]
    timing = timings.TIMINGS[name]
    assert timing.event is getattr(events, event)
    assert {kind.__name__ for kind in timing.answers} == answers | {"Warn"}
    assert timing.writable == writable
    assert timing.main == (writable[0] if writable else "")
    assert timing.since


@pytest.mark.parametrize("name", TABLE)
def test_each_hookspec_has_its_contract(name):
    function = getattr(timings, name)
    assert list(inspect.signature(function).parameters) == ["event", "ctx"]
    text = inspect.getdoc(function)
    assert text.splitlines()[0].endswith((".", "``."))
    assert "The event carries" in text
    assert re.search(r"^Answers: ", text, re.M)
    assert "Example::" in text
    for answer in TABLE[name][1] - ({"Allow", "Ask"} | TABLE["on_event"][1] if name == "on_event" else set()):
        assert answer in text.split("Answers: ")[1].split("Example::")[0], answer


@pytest.mark.parametrize("name", TABLE)
def test_each_example_is_a_hook_that_an_engine_takes(name):
    example = inspect.getdoc(getattr(timings, name)).split("Example::")[1]
    namespace = {item: getattr(hookturn, item) for item in hookturn.__all__ if item != "redact"}
    exec(inspect.cleandoc("\n" + example), namespace)

    class Plugin:
        pass

    setattr(Plugin, name, staticmethod(namespace[name]))
    engine = hookturn.Engine([Plugin()])
    assert engine.plugins[0].hooks == (name,)


def test_the_hooks_without_an_event():
    for name in ("on_load", "on_dispose"):
        function = getattr(timings.LifecycleSpecs, name)
        assert list(inspect.signature(function).parameters) == ["ctx"]
        assert "Answers: none" in inspect.getdoc(function)


def test_the_deprecated_one_says_what_to_use():
    assert timings.TIMINGS["post_turn"].deprecated == "on_turn_complete"


def test_hookimpl_leaves_only_notes_on_the_function():
    def pre_tool_execution(event):
        return None

    assert hookimpl(pre_tool_execution) is pre_tool_execution
    assert pre_tool_execution.hookturn_impl["tryfirst"] is False
    assert hookimpl(tryfirst=True, guard=True)(pre_tool_execution) is pre_tool_execution
    assert pre_tool_execution.hookturn_impl["tryfirst"] is True
    assert pre_tool_execution(None) is None


def test_hookimpl_takes_keyword_options_only_and_names_wrong_ones():
    with pytest.raises(TypeError, match="prioritty"):
        hookimpl(prioritty=1)
    with pytest.raises(TypeError):
        hookimpl(None, True)


def test_typed_decorators_name_the_timing():
    class Plugin:
        @hookimpl.pre_tool_execution
        def no_rm(self, event):
            return hookturn.Deny("no")

        @hookimpl.on_turn_start(priority=10)
        def begin(self, event, ctx):
            return None

    engine = hookturn.Engine([Plugin()])
    assert set(engine.plugins[0].hooks) == {"pre_tool_execution", "on_turn_start"}
    assert engine.fire(events.PreToolExecution(tool="bash", args={})).decision == "deny"


def test_a_typed_decorator_of_no_timing_is_refused_at_registration():
    class Plugin:
        @hookimpl.pre_tool_exec
        def x(self, event):
            return None

    with pytest.raises(RegistrationError, match="did you mean 'pre_tool_execution'"):
        hookturn.Engine([Plugin()])


def test_hookspec_wants_the_event_of_its_own_timing():
    with pytest.raises(
        RegistrationError, match=r"TurnStart belongs to timing 'on_turn_start'.*Declare it with"
    ):

        @hookspec(event=events.TurnStart)
        def on_plan_created(event, ctx):
            """Never."""
