"""Every example runs as a program and says what it should; every example hook does its work."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from hookturn import Engine
from hookturn.project.assemble import assemble
from hookturn.testing import (
    Model,
    ScriptedAgent,
    ToolCall,
    User,
    allowed,
    continued,
    denied_by,
    injected,
    make,
    no_failures,
    no_opinion,
    rewritten_to,
    warned,
)

EXAMPLES = Path(__file__).parents[2] / "examples"
HOOKS = EXAMPLES / "hooks"

pytestmark = pytest.mark.skipif(
    not EXAMPLES.is_dir(), reason="needs a checkout: examples are not in the wheel"
)

OUTPUT = {
    "sync_host.py": """\
Fix the bug.
(The tests are in tests/.)
You are a coder.
$ timeout 60 ls
The call of bash was denied by House: nothing is deleted here
Move it to trash/.
You are a coder.
saved fix.py
You are a coder.
Run the tests.
You are a coder.
Fixed, and the tests pass.
""",
    "async_host.py": """\
Fix the bug.
You are a coder.
(This is turn 1.)
RuntimeError: uv pip install x: no network
text of a.py
The call of read was denied by House: keys are not read
Ask for what you need to know.
You are a coder.
(Look at the error.)
You are a coder.
There is no network.
""",
    "own_timing.py": """\
read -> fix -> test   (6.0 of 10)
read -> fix -> test   (8.0 of 10)
refused by Brief: more than four steps
""",
}


def test_every_example_is_tested() -> None:
    assert {path.name for path in EXAMPLES.glob("*.py")} == set(OUTPUT)


@pytest.mark.parametrize("name", OUTPUT)
def test_an_example_says_what_it_should(name: str, tmp_path: Path) -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "error", EXAMPLES / name], cwd=tmp_path, capture_output=True, text=True
    )
    assert (ran.stderr, ran.returncode) == ("", 0)
    assert ran.stdout == OUTPUT[name]
    assert list(tmp_path.iterdir()) == [], "an embedded engine leaves no files"


@pytest.mark.parametrize("name", ["sync_host.py", "async_host.py"])
def test_a_host_fits_into_a_readme(name: str) -> None:
    assert len((EXAMPLES / name).read_text(encoding="utf-8").splitlines()) <= 60


def test_type_checkers_accept_the_examples(request: pytest.FixtureRequest) -> None:
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    files = [*EXAMPLES.glob("*.py"), *HOOKS.glob("*.py")]
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file="]
    command += [f"--cache-dir={request.config.cache.mkdir('mypy')}", *map(str, files)]
    ran = subprocess.run(command, cwd=HOOKS, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stdout + ran.stderr


@pytest.fixture
def engine() -> Engine:
    """The example hooks, as their hookturn.yaml names them (naming the file counts as trust)."""
    assembled = assemble(HOOKS, with_config=HOOKS / "hookturn.yaml", state_dir=None, builtins=False)
    assert [str(problem) for problem in assembled.problems] == []
    return assembled.engine


def test_the_configuration_names_all_example_hooks(engine: Engine) -> None:
    named = {plugin.name.replace("-", "_") for plugin in engine.plugins if plugin.layer == "project"}
    assert named == {path.stem for path in HOOKS.glob("*.py")}


@pytest.mark.parametrize(
    ("command", "denied"),
    [
        ("git push --force", True),
        ("cd x && git push -f origin main", True),
        ("git push --force-with-lease", False),
        ("git push", False),
        ("rm -f push.txt", False),
    ],
)
def test_no_force_push(command: str, denied: bool, engine: Engine) -> None:
    out = engine.fire(make.pre_tool_execution(command=command))
    if denied:
        denied_by(out, "no-force-push", reason="--force-with-lease")
    else:
        allowed(out)


def test_short_results(engine: Engine) -> None:
    long = engine.fire(make.post_tool_execution(result={"stdout": "a" * 6_000 + "b" * 6_000, "exit_code": 0}))
    text = long.event.result_text
    assert text.startswith("a" * 5_000) and text.endswith("b" * 5_000) and len(text) < 10_100
    assert "2,000 characters left out" in text
    rewritten_to(long, {"stdout": text, "exit_code": 0}, by="short-results")
    warned(long, "cut a result of bash")
    no_opinion(engine.fire(make.post_tool_execution(result="a" * 10_000)))


def test_run_tests(engine: Engine) -> None:
    save = ToolCall("write", {"content": "x = 1"}, path="a.py")
    agent = ScriptedAgent(engine, cwd="/project")
    run = agent.run(User("fix it"), Model("", save), Model("done"), Model("really done"))
    continued(run.ends[0], "run pytest")
    assert run.ends[1].text == "really done"
    run = agent.run(User("fix it"), Model("", save, ToolCall("bash", command="pytest -q")), Model("done"))
    assert [end.text for end in run.ends] == ["done"]
    run = agent.run(User("note it"), Model("", ToolCall("write", path="notes.md")), Model("done"))
    assert [end.text for end in run.ends] == ["done"]
    no_failures(run)


def test_lessons(engine: Engine) -> None:
    agent = ScriptedAgent(engine, cwd="/project")
    calls = [ToolCall("bash", command=f"{name} x", error="failed") for name in "abbccccdd"]
    first = agent.run(User("go"), Model("", *calls), Model("done"))
    assert not any("often failed" in text for text in first.read)
    second = agent.run(User("go"), Model("done"))
    injected(second.system_prompts[0], "These commands often failed here: c, b, d.")
    no_failures(second)
