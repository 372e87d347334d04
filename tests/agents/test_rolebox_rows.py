"""Rows of role.yaml's tables that no other test has: the edges of injected texts and of the host's own checks (R6, R11)."""

from __future__ import annotations

import json
import shutil

import pytest

from hookturn import paths
from hookturn.agents.rolebox import module
from hookturn.project.assemble import Survey, assemble

ROLE = """
name: Coder
prompt: You write code.
hooks:
  custom:
    - name: probe
      events: [chat.message, tool.execute.before]
      module: probe.py
      phase: before
"""

BLOCKS = """
name: Coder
prompt: You write code.
hooks:
  custom:
    - {name: blocks, events: [system.transform], module: blocks.%s, config: %s}
"""

PYTHON = """
def on_system_transform(ctx, system):
    for tag, text in ctx.config["edits"]:
        ctx.removeBlock(tag) if text is None else ctx.replaceBlock(tag, text)
"""

JAVASCRIPT = """
export function onSystemTransform(ctx) {
  for (const [tag, text] of ctx.config.edits) text === null ? ctx.removeBlock(tag) : ctx.replaceBlock(tag, text);
}
"""


@pytest.fixture
def project_of(tmp_path, monkeypatch):
    """Return the function that makes the engine of a project with a role and one module."""
    monkeypatch.setattr(paths, "MANAGED_CONFIG", str(tmp_path / "managed.yaml"))
    for name in ("XDG_CONFIG_HOME", "PI_CODING_AGENT_DIR", "DSH_HOME"):
        monkeypatch.delenv(name, raising=False)
    module.clear()
    project = tmp_path / "project"
    project.mkdir()
    made = []

    def make(role, name, code):
        (project / "role.yaml").write_text(role, encoding="utf-8")
        (project / name).write_text(code, encoding="utf-8")
        Survey(project, guards=True).trust_all()
        made.append(assemble(project, log=False, builtins=False).engine)
        return made[-1]

    yield make
    for engine in made:
        engine.close()


@pytest.fixture
def engine_of(project_of):
    """Return the function that makes the engine of a project whose role has this module in Python."""
    return lambda code: project_of(ROLE, "probe.py", code)


def test_r6_an_empty_text_after_another_adds_nothing(engine_of):
    engine = engine_of("def on_chat_message(ctx, input):\n    ctx.inject('first')\n    ctx.inject('')\n")
    with engine.session() as session:
        session.submit("hello")
        with session.turn() as turn:
            assert turn.system_prompt([]) == ["first"]


def test_r6_what_waits_for_the_next_prompt_survives_a_restart(engine_of):
    code = "def on_chat_message(ctx, input):\n    ctx.inject('later')\n"
    with engine_of(code) as first:
        first.attach("s-1").submit("hello")
    second = engine_of(code).attach("s-1")
    with second.turn() as turn:
        assert turn.system_prompt([]) == ["later"]


@pytest.mark.parametrize("language", ["py", "mjs"])
@pytest.mark.parametrize(
    ("parts", "edits", "left"),
    [
        (["<a>one</a>", "two"], [["a", "new"]], ["new", "two"]),
        (["<a>one</a>", "two"], [["a", None]], ["two"]),
        (["x <a>one</a> y", "two"], [["a", "new"]], ["x new y", "two"]),
        (["x <a>one</a> y", "two"], [["a", None]], ["x  y", "two"]),
        (["x <a>one</a>", "<a>two</a>"], [["a", "new"]], ["x <a>one</a>", "new"]),
        (["<ab>one</ab>", "<a b='1'>two</a>"], [["a", "new"]], ["<ab>one</ab>", "new"]),
        (["<my-tag>one</my-tag>"], [["my-tag", "$& \\\\1"]], ["$& \\\\1"]),
        (["x <a>one</a> y"], [["a", "$& \\\\1"]], ["x $& \\\\1 y"]),
        (["x <a>one"], [["a", "new"], ["a(", "new"]], ["x <a>one"]),
    ],
)
def test_r5_blocks_are_the_same_in_both_languages(project_of, language, parts, edits, left):
    if language == "mjs" and shutil.which("node") is None:
        pytest.skip("there is no node in PATH")
    role = BLOCKS % (language, json.dumps({"edits": edits}))
    engine = project_of(role, f"blocks.{language}", PYTHON if language == "py" else JAVASCRIPT)
    with engine.session() as session, session.turn() as turn:
        assert turn.system_prompt(parts) == left


def test_r11_the_host_checks_the_arguments_of_its_tools(engine_of):
    """rolebox refuses unknown parameters of its own tools; here each tool is the host's, and every call reaches the hooks."""
    engine = engine_of("def on_tool_before(ctx, input):\n    input.args['seen'] = sorted(input.args)\n")
    with engine.session() as session, session.turn() as turn:
        result = turn.call_tool("read", {"no_such": 1}, execute=lambda **args: args)
    assert (result.status, result.value) == ("ok", {"no_such": 1, "seen": ["no_such"]})


def test_r11_a_message_that_a_program_wrote_is_a_message(engine_of):
    """rolebox knows its own automatic messages by their words; here the host tells on_message_received of real ones."""
    engine = engine_of("def on_chat_message(ctx, input):\n    ctx.inject('heard')\n")
    with engine.session() as session:
        session.submit("[auto-continue] go on")
        with session.turn() as turn:
            assert turn.system_prompt([]) == ["heard"]
