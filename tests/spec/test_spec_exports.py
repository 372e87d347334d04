"""The public names, and that naming them costs nothing."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

import hookturn
import hookturn.events

HEAVY = (
    "pluggy", "inspect", "dataclasses", "asyncio", "loguru", "yaml", "importlib_metadata", "importlib.metadata",
    "typing", "typing_extensions", "platformdirs", "sqlite3", "tree_sitter", "concurrent.futures", "logging", "json",
    "re", "pathlib", "difflib", "threading", "contextvars",
)  # fmt: skip


def loaded_by(code: str) -> set[str]:
    """Return the modules that ``code`` adds to a bare interpreter (-S: no site-packages' .pth files first)."""
    program = (
        "import sys\n"
        f"sys.path[:] = {sys.path!r}\n"
        "before = set(sys.modules)\n"
        f"{code}\n"
        "added = sorted(set(sys.modules) - before)\n"
        "import json\n"
        "print(json.dumps(added))"
    )
    result = subprocess.run(
        [sys.executable, "-I", "-S", "-c", program], capture_output=True, text=True, check=True
    )
    return set(json.loads(result.stdout))


@pytest.mark.parametrize(
    "code",
    [
        "import hookturn",
        "from hookturn import hookimpl, Deny",
        "from hookturn import hookimpl, hookspec, events, Allow, Answer, Ask, Block, Continue, Deny, Inject, Recover,"
        " Reply, Rewrite, SetEnv, Tool, Warn",
        "from hookturn import hookimpl, Deny\n"
        "class P:\n"
        "    @hookimpl(guard=True, tools=['bash'])\n"
        "    def pre_tool_execution(self, event, ctx): return Deny('no')",
    ],
)
def test_authors_pay_for_no_heavy_import(code):
    modules = loaded_by(code)
    assert "hookturn" in modules
    heavy = {
        name
        for name in modules
        if name in HEAVY or name.split(".")[0] in ("pluggy", "asyncio", "loguru", "yaml")
    }
    assert not heavy, f"{sorted(heavy)} loaded by {code!r}"


def test_an_engine_loads_no_logger_yaml_or_loop():
    modules = loaded_by(
        "from hookturn import Engine, hookimpl, events\n"
        "class P:\n"
        "    @hookimpl\n"
        "    def pre_tool_execution(self, event, ctx): return None\n"
        "with Engine([P()]) as engine:\n"
        "    engine.fire(events.PreToolExecution(tool='bash', args={'command': 'ls'}))"
    )
    assert not modules & {
        "asyncio",
        "loguru",
        "yaml",
        "importlib_metadata",
        "sqlite3",
        "platformdirs",
        "tree_sitter",
    }


@pytest.mark.parametrize("module", [hookturn, hookturn.events])
def test_public_names_are_sorted_and_importable(module):
    names = [name for name in module.__all__ if name != "__version__"]
    assert names == sorted(names)
    assert len(set(names)) == len(names)
    for name in module.__all__:
        if name == "redact":
            continue  # a room of its own with tests of its own
        assert getattr(module, name) is not None
        assert name in dir(module)


def test_the_design_page_of_names_is_public():
    wanted = {
        "Engine", "Tool", "hookimpl", "hookspec", "events", "Allow", "Ask", "Deny", "Block", "Rewrite", "Inject",
        "Reply", "Continue", "Warn", "SetEnv", "Recover", "Answer", "Session", "AsyncSession", "Outcome",
    }  # fmt: skip
    assert wanted <= set(hookturn.__all__)
    wanted = {
        "SessionStart", "UserPromptSubmit", "MessageReceived", "TurnStart", "SystemPrompt", "ModelResponse",
        "ToolCallStart", "PreToolExecution", "PostToolExecution", "TurnComplete", "PostTurn", "Error", "SessionEnd",
        "Event", "PermissionRequest", "OutcomeEvent",
    }  # fmt: skip
    assert wanted <= set(hookturn.events.__all__)


def test_public_classes_say_where_to_import_them_from():
    for name in hookturn.__all__:
        item = getattr(hookturn, name) if name != "redact" else None
        if isinstance(item, type):
            assert item.__doc__, name


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'hokimpl'"):
        hookturn.hokimpl  # noqa: B018
    with pytest.raises(ImportError):
        from hookturn import nothing  # noqa: F401


def test_the_exception_tree():
    for name in hookturn.__all__:
        item = getattr(hookturn, name) if name != "redact" else None
        if isinstance(item, type) and issubclass(item, Exception):
            assert issubclass(item, hookturn.HookturnError)
    assert issubclass(hookturn.RegistrationError, TypeError)
    assert issubclass(hookturn.ConfigError, ValueError)
    assert issubclass(hookturn.EventError, TypeError)
    assert issubclass(hookturn.AnswerError, ValueError)
    assert issubclass(hookturn.LifecycleError, RuntimeError)
    assert issubclass(hookturn.NestingError, RuntimeError)
