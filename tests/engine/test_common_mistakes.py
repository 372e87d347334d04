"""Mistakes that a beginner makes: each is told, none is silent."""

from __future__ import annotations

import types

import pytest

from hookturn import Answer, AnswerError, Deny, Engine, LifecycleError, RegistrationError, events, hookimpl


class Half:
    @hookimpl
    def on_turn_start(self, event):
        return None

    def pre_tool_execution(self, event):
        return Deny("never")


def test_an_unmarked_hook_beside_a_marked_one_is_told(hook_log) -> None:
    Engine([Half()])
    assert "pre_tool_execution of plugin Half is named like a hook and is never called" in str(hook_log)


def test_what_a_module_imports_is_no_forgotten_hook(hook_log) -> None:
    module = types.ModuleType("some_hooks")

    @hookimpl
    def on_turn_start(event):
        return None

    on_turn_start.__module__ = "some_hooks"
    module.on_turn_start = on_turn_start
    module.system_prompt = Half.pre_tool_execution
    Engine([module])
    assert "named like a hook" not in str(hook_log)


def test_a_factory_is_no_plugin() -> None:
    with pytest.raises(RegistrationError, match="a function was given where a plugin was meant"):
        Engine([lambda config: Half()])


@pytest.mark.parametrize("plugins", [Half(), "Half"])
def test_plugins_is_a_list(plugins) -> None:
    with pytest.raises(TypeError, match="plugins takes a list of plugins, got"):
        Engine(plugins)


def test_unknown_recover_strategies_are_refused() -> None:
    with pytest.raises(ValueError, match="did you mean 'retry'"):
        Engine(recovers=["retyr"])


def test_a_turn_that_has_not_begun_says_how_to_begin_it() -> None:
    with Engine() as engine, engine.session() as session, pytest.raises(LifecycleError, match="begin"):
        session.turn().begin_tool("c1", "bash", {"command": "ls"})


class Vote(Answer):
    score: int


def test_a_wrongly_built_answer_is_an_answer_error() -> None:
    for build in (lambda: Vote(), lambda: Vote(score="high"), lambda: Vote(sore=1)):
        with pytest.raises(AnswerError):
            build()


def test_events_stay_event_errors() -> None:
    with pytest.raises(TypeError, match="needs tool"):
        events.PreToolExecution(args={})
