"""Commands on a terminal: the same words as in a pipe, in colour, and questions that are answered."""

from __future__ import annotations

import json
import os
import re
import select
import subprocess
import sys
import time

import pytest

pty = pytest.importorskip("pty", reason="the system has no pseudo-terminals")

COMMAND = [sys.executable, "-m", "hookturn"]
CONFIG = """
hooks:
  - {name: no-rm, timings: [pre_tool_execution], guard: true, run: {answer: {deny: "no"}}, filter: {tools: [bash]}}
  - {name: script, timings: [post_turn], run: {command: ./missing.sh}}
  - {name: asks, timings: [pre_tool_execution], run: {answer: {ask: "sure?"}}, filter: {tools: [write]}}
permissions: {deny: ["bash(dd *)"]}
plugins: {turn-stats: {wrong: 1}, audit-log: true}
unknown_key: 1
"""
EVENT = json.dumps({"tool": "bash", "args": {"command": "rm -rf /"}})
CALLS = [
    {"hook_event_name": "UserPromptSubmit", "prompt": "hi"},
    {"hook_event_name": "PreToolUse", "tool_name": "Bash", "tool_input": {"command": "rm x"}, "tool_use_id": "1"},
    {"hook_event_name": "PreToolUse", "tool_name": "Read", "tool_input": {"file_path": "x"}, "tool_use_id": "2"},
    {"hook_event_name": "PostToolUse", "tool_name": "Read", "tool_input": {"file_path": "x"}, "tool_use_id": "2",
     "tool_response": "text"},
    {"hook_event_name": "SessionEnd", "reason": "other"},
]  # fmt: skip
COMMANDS = [
    ["--help"],
    ["--version"],
    ["nonsense"],
    ["audit", "verify"],
    ["audit", "tail"],
    ["audit", "query", "--tool", "Bash"],
    ["audit", "stats"],
    ["audit", "export"],
    ["errors"],
    ["report"],
    ["undo"],
    ["migrate", "hookturn.yaml", "hooks.toml", "--dry-run"],
    ["audit", "verfy"],
    ["check"],
    ["doctor"],
    ["explain", "pre_tool_execution"],
    ["explain", "--agent", "claude-code"],
    ["fire", "pre_tool_execution", "--event", "event.json"],
    ["hooks"],
    ["info"],
    ["info", "pre_tool_execution"],
    ["install", "claude-code", "--dry-run"],
    ["install", "codex", "--yes"],
    ["install", "codex", "--yes"],
    ["install", "claude-code", "--yes", "--http"],
    ["doctor"],
    ["uninstall", "codex", "--yes"],
    ["uninstall", "codex", "--yes"],
    ["new", "plugin-of-mine"],
    ["plugins"],
    ["replay"],
    ["replay", "--summary"],
    ["serve", "--status"],
    ["stats"],
    ["trust", "--yes"],
    ["hooks"],
    ["check"],
    ["untrust"],
    ["untrust"],
    ["webhook", "list"],
]
"""All commands that people look at, in an order in which each finds something to show."""

_COLOURS = re.compile(r"\x1b\[[0-9;]*m")
_PASSING = re.compile(r"\r\x1b\[K[^\r\n]*")
_FIGURES = re.compile(r"[0-9.,]+|-{2,}| +")


class Terminal:
    """Runs commands with a terminal as their standard streams."""

    def __init__(self, cli):
        self._cli = cli

    def __call__(self, *words, answer="", cwd=None):
        """Return exit code and what was shown."""
        ours, theirs = pty.openpty()
        process = subprocess.Popen(
            [*COMMAND, *words], stdin=theirs, stdout=theirs, stderr=theirs, cwd=cwd or self._cli.project,
            env={**self._cli.env, "TERM": "xterm"}, start_new_session=True,
        )  # fmt: skip
        os.close(theirs)
        shown, asked, end = b"", False, time.monotonic() + 60
        while time.monotonic() < end:
            if not select.select([ours], [], [], 0.2)[0]:
                continue
            try:
                part = os.read(ours, 65_536)
            except OSError:  # the terminal has no other side any more
                break
            if not part:
                break
            shown += part
            if answer and not asked and b"[y/N]" in shown:
                os.write(ours, answer.encode() + b"\n")
                asked = True
        os.close(ours)
        return process.wait(60), shown.decode().replace("\r\n", "\n")


@pytest.fixture
def terminal(cli):
    cli.env["HOME"] = os.environ["HOME"]
    return Terminal(cli)


def plain(text):
    """What a text says, without colours, passing lines and figures that differ from run to run."""
    return _FIGURES.sub(" ", _PASSING.sub("", _COLOURS.sub("", text)))


def test_every_command_says_on_a_terminal_what_it_says_in_a_pipe(cli, terminal, tmp_path):
    (cli.project / "hookturn.yaml").write_text(CONFIG)
    (cli.project / "event.json").write_text(EVENT)
    for call in CALLS:
        assert cli("bridge", "claude-code", input=json.dumps({"session_id": "s", **call})).code == 0
    coloured = set()
    for number, words in enumerate(COMMANDS):
        fresh = words[0] == "new"
        code, shown = terminal(*words, cwd=tmp_path if fresh else None)
        assert "Traceback" not in shown, (words, shown)
        assert code in (0, 1, 2), (words, shown)
        if _COLOURS.search(shown):
            coloured.add(words[0])
        if fresh or words[0] in ("install", "uninstall", "trust", "untrust", "replay"):
            continue  # the second time is another case, or names another folder
        piped = cli(*words)
        assert piped.code == code, (number, words, shown, piped)
        said = sorted(line.strip() for line in plain(piped.out + piped.err).splitlines() if line.strip())
        assert sorted(line.strip() for line in plain(shown).splitlines() if line.strip()) == said, words
    assert {
        "check",
        "doctor",
        "explain",
        "fire",
        "hooks",
        "install",
        "plugins",
        "replay",
        "trust",
    } <= coloured


@pytest.mark.parametrize(("answer", "written"), [("y", True), ("n", False), ("", False)])
def test_install_asks(cli, terminal, answer, written):
    code, shown = terminal("install", "claude-code", answer=answer or " ")
    assert "Write this? [y/N]" in shown, shown
    assert code == (0 if written else 1)
    assert (cli.project / ".claude" / "settings.json").exists() is written
    assert "Traceback" not in shown


def test_a_long_change_is_cut_unless_it_is_all_that_is_asked_for(cli, terminal):
    _, cut = terminal("install", "claude-code", answer="n")
    assert re.search(r"\.\.\. \d+ more lines; --dry-run shows all", cut)
    assert len(cut.splitlines()) < 40
    _, whole = terminal("install", "claude-code", "--dry-run")
    assert "more lines" not in whole
    assert "SessionEnd" in whole


@pytest.mark.parametrize(("answer", "trusted"), [("y", True), ("n", False)])
def test_trust_asks(cli, terminal, answer, trusted):
    (cli.project / "hookturn.yaml").write_text(
        CONFIG.replace("unknown_key: 1\n", "").replace("turn-stats: {wrong: 1}, ", "")
    )
    code, shown = terminal("trust", answer=answer)
    assert "[y/N]" in shown, shown
    assert code == (0 if trusted else 1), shown
    assert "Traceback" not in shown
    shown = terminal("trust", answer="n")[1]
    assert ("[y/N]" not in shown) is trusted, shown
