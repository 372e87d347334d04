"""The pytest plugin: found by its entry point, cheap to import, its fixtures make and close engines."""

from __future__ import annotations

import subprocess
import sys

import pytest

import hookturn.testing

pytest_plugins = "pytester"


@pytest.fixture
def project(pytester: pytest.Pytester) -> pytest.Pytester:
    """A folder with a plugin to be tested, in which warnings are errors."""
    pytester.makepyprojecttoml(
        '[tool.pytest.ini_options]\nfilterwarnings = ["error"]\n'
        'asyncio_mode = "auto"\nasyncio_default_fixture_loop_scope = "function"\n'
    )
    pytester.makepyfile(
        guard="""
        from hookturn import Deny, hookimpl

        class Guard:
            closed = 0

            @hookimpl(guard=True, tools=["bash"])
            def pre_tool_execution(self, event):
                if "rm -rf" in event.command:
                    return Deny("no recursive delete")

            @hookimpl
            def on_dispose(self):
                Guard.closed += 1
        """
    )
    pytester.syspathinsert()
    return pytester


def test_the_fixtures_are_listed_with_their_use(project: pytest.Pytester) -> None:
    listed = project.runpytest_subprocess("--fixtures", "-q")
    listed.stdout.fnmatch_lines(
        ["hookturn_engine*", "*hookturn_engine(plugin, ..., [*][*]options) -> Engine*"]
    )
    listed.stdout.fnmatch_lines(["hookturn_session*", "*hookturn_session(plugin, ...*-> ScriptedAgent*"])


def test_engines_are_made_and_closed(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_guard="""
        from guard import Guard
        from hookturn import Engine
        from hookturn.testing import allowed, denied_by, make

        made = []

        def test_it(hookturn_engine):
            engine = hookturn_engine(Guard(), max_continue=2)
            assert isinstance(engine, Engine) and engine.max_continue == 2
            denied_by(engine.fire(make.pre_tool_execution(command="rm -rf /")), "Guard", reason="recursive")
            allowed(engine.fire(make.pre_tool_execution(command="ls")))
            other = hookturn_engine(("mine", Guard()))
            denied_by(other.fire(make.pre_tool_execution(command="rm -rf /")), "mine")
            made.extend([engine, other])
            assert not Guard.closed

        def test_afterwards():
            assert Guard.closed == 2
            assert all(engine.closed for engine in made)

        def test_failing(hookturn_engine):
            made.append(hookturn_engine(Guard()))
            assert False

        def test_after_the_failing_one():
            assert made[-1].closed
        """
    )
    project.runpytest_subprocess("-p", "no:randomly").assert_outcomes(passed=3, failed=1)


@pytest.mark.smoke
def test_a_session_plays_a_script(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_guard="""
        import asyncio
        from guard import Guard
        from hookturn.testing import Model, ToolCall, User, denied_by

        SCRIPT = (User("clean up"), Model("", ToolCall("bash", command="rm -rf /")), Model("done"))

        def test_it(hookturn_session):
            agent = hookturn_session(Guard(), agent="coder", permissions={"deny": ["fetch"]})
            run = agent.run(*SCRIPT)
            denied_by(run.calls[0], "Guard")
            assert run.executed == []
            assert asyncio.run(agent.arun(*SCRIPT)).executed == []
            assert not agent.engine.closed
        """
    )
    project.runpytest_subprocess().assert_outcomes(passed=1)


def test_a_failing_assertion_shows_the_tests_line_and_the_hooks(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_guard="""
        from guard import Guard
        from hookturn.testing import denied_by, make

        def test_it(hookturn_engine):
            out = hookturn_engine(Guard()).fire(make.pre_tool_execution(command="rm -rf /"))
            denied_by(out, "Gard")
        """
    )
    shown = project.runpytest_subprocess()
    shown.assert_outcomes(failed=1)
    shown.stdout.fnmatch_lines(
        [
            '>*denied_by(out, "Gard")',
            "E*AssertionError: expected denied by 'Gard'",
            "E*but deny by 'Guard': no recursive delete",
            "E*- Guard (guard 50): Deny(reason='no recursive delete')",
        ]
    )
    shown.stdout.no_fnmatch_line("*assertions.py*")


def test_a_refused_plugin_is_the_tests_error_with_its_remedy(project: pytest.Pytester) -> None:
    project.makepyfile(
        test_guard="""
        from guard import Guard

        def test_it(hookturn_engine):
            hookturn_engine(Guard)
        """
    )
    shown = project.runpytest_subprocess()
    shown.assert_outcomes(failed=1)
    shown.stdout.fnmatch_lines(["E*a class was given where an instance was meant. Pass `Guard()`."])


def test_a_run_without_hookturn_tests_imports_nothing_of_the_engine() -> None:
    program = """
import sys
import pytest
before = set(sys.modules)
import hookturn.testing.plugin
print(*sorted(set(sys.modules) - before))
"""
    ran = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert ran.stdout.split() == ["hookturn", "hookturn.testing", "hookturn.testing.plugin"]


@pytest.mark.smoke
def test_the_public_names_are_complete_and_each_can_be_imported() -> None:
    assert hookturn.testing.__all__ == sorted(hookturn.testing.__all__)
    for name in hookturn.testing.__all__:
        assert getattr(hookturn.testing, name) is not None
        assert name in dir(hookturn.testing)
    with pytest.raises(AttributeError, match="no attribute 'denied'"):
        hookturn.testing.denied  # noqa: B018
