"""The frame of the command line: version, help, usage errors, output that goes wrong, interruption."""

from __future__ import annotations

import json
import os
import pty
import re
import signal
import subprocess
import sys

import pytest

from hookturn import __version__
from hookturn.cli import main
from hookturn.cli.dispatch import COMMANDS

HEAVY = {
    "argparse",
    "pluggy",
    "loguru",
    "yaml",
    "json",
    "asyncio",
    "inspect",
    "dataclasses",
    "importlib_metadata",
}


@pytest.mark.parametrize("word", ["--version", "-V"])
def test_version(cli, word):
    ran = cli(word)
    assert (ran.code, ran.out, ran.err) == (0, f"hookturn {__version__}\n", "")


def test_version_imports_next_to_nothing():
    code = (
        "import sys; before = set(sys.modules); from hookturn.cli import main; main(['--version']); "
        "print(*sorted(set(sys.modules) - before))"
    )
    out = subprocess.run(
        [sys.executable, "-I", "-c", code], capture_output=True, text=True, check=True
    ).stdout
    loaded = set(out.split("\n")[1].split())
    assert loaded <= {"hookturn", "hookturn.cli", "__future__"} | {
        name for name in loaded if "editable" in name
    }


def test_version_as_json(cli):
    for words in (["--json", "--version"], ["--version", "--json"]):
        assert cli(*words).json == {"schema": 1, "name": "hookturn", "version": __version__}


def test_console_script_is_the_same_command():
    from importlib.metadata import entry_points

    (script,) = entry_points(group="console_scripts", name="hookturn")
    assert script.load() is main


def test_full_help_names_every_command(cli):
    ran = cli("--help")
    assert ran.code == 0
    for word in COMMANDS:
        assert re.search(rf"^    {word}\b", ran.out, re.MULTILINE), word


def test_all_commands_are_one_list(cli):
    del cli.env["HOOKTURN_DISABLE_PLUGIN_AUTOLOAD"]
    missing, unknown = cli(), cli("bogus")
    assert missing.code == unknown.code == 2
    named = re.search(r"One of (.*); `hookturn --help`", missing.err)[1]
    assert named == re.search(r"One of (.*); `hookturn --help`", unknown.err)[1]
    assert {*COMMANDS, "audit", "stats"} <= set(named.split(", "))


@pytest.mark.parametrize("word", sorted(COMMANDS))
def test_help_of_each_command(cli, word):
    ran = cli(word, "--help")
    assert ran.code == 0, ran
    assert ran.out.startswith(f"usage: hookturn {word} ")
    assert "--project DIR" in ran.out
    assert "--json" in ran.out
    assert cli("help", word).out == ran.out


@pytest.mark.parametrize("word", sorted(COMMANDS))
def test_a_command_imports_only_itself(cli, word):
    code = (
        f"import sys; from hookturn.cli import main; main([{word!r}, '--help']); "
        "print(*sorted(name for name in sys.modules), file=sys.stderr)"
    )
    err = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stderr
    loaded = set(err.split())
    assert not loaded & (HEAVY - {"argparse"})
    others = {f"hookturn.cli.{module}" for module in COMMANDS.values()} - {f"hookturn.cli.{COMMANDS[word]}"}
    assert not loaded & others


USAGE = [
    ([], "a command is missing"),
    (["--json"], "a command is missing"),
    (["--bogus"], "a command is missing"),
    (["fier"], "unknown command 'fier' (did you mean 'fire'?)"),
    (["fire"], "required: TIMING"),
    (["audit", "verfy"], "'verfy' is none of"),
    (["audit", "verfy"], "(did you mean 'verify'?)"),
    (["webhook", "lst"], "(did you mean 'list'?)"),
    (["errors", "shw"], "(did you mean 'show'?)"),
    (["fire", "pre_tool_execution", "--evnt", "x"], "unknown argument '--evnt' (did you mean '--event'?)"),
    (["fire", "pre_tool_execution", "more"], "unknown argument 'more'"),
    (["fire", "pre_tool_execution", "--event"], "--event: expected one argument"),
    (["hooks", "--proj", "."], "unknown argument '--proj' (did you mean '--project'?)"),
    (["hooks", "--project", "nowhere"], "--project nowhere: does not exist"),
    (["--project", "nowhere", "hooks"], "--project nowhere: does not exist"),
    (["hooks", "--project", "a file"], "--project a file: is no folder"),
    (["hooks", "-p", "audit-log"], "-p audit-log: expected no:NAME"),
    (["hooks", "-p", "no:"], "-p no:: expected no:NAME"),
    (["hooks", "--with", "nowhere.yaml"], "--with nowhere.yaml: does not exist"),
    (["hooks", "--with", "."], "--with .: is no file"),
    (
        ["fire", "pre_tool_exection"],
        "unknown timing 'pre_tool_exection' (did you mean 'pre_tool_execution'?)",
    ),
    (["explain", "PreToolUse"], "(an event of claude-code; did you mean 'pre_tool_execution'?)"),
    (["hooks", "afteragent"], "(an event of gemini; did you mean 'on_turn_complete'?)"),
    (["explain", "nothing_like_it"], "unknown timing 'nothing_like_it'. One of on_session_start,"),
    (["hooks", "on_lode"], "unknown timing 'on_lode'"),
    (["fire", "on_load"], "on_load has no event"),
    (["fire", "on_outcome"], "on_outcome is fired by the engine"),
    (["check", "nowhere"], "nowhere does not exist"),
    (["check", ".", "--with", "a file"], "PATH and --with"),
    (["explain", "--help-me"], "TIMING"),
]


@pytest.mark.parametrize(
    ("words", "message"), USAGE, ids=[" ".join(words) or "nothing" for words, _ in USAGE]
)
def test_wrong_usage_says_what_and_exits_with_2(cli, words, message):
    cli.write("a file", "")
    ran = cli(*words)
    assert (ran.code, ran.out if "--json" not in words else "") == (2, ""), ran
    assert ran.err.startswith("hookturn: ")
    assert message in ran.err
    assert "Traceback" not in ran.err
    as_json = cli(*words, "--json") if "--json" not in words else ran
    assert as_json.code == 2
    if words != ["fire", "pre_tool_execution", "--event"]:  # there, --json is the file
        assert message in as_json.json["error"]


def test_project_may_come_before_the_command(ruled, tmp_path):
    for words in (
        ["--project", str(ruled.project), "--json", "hooks"],
        ["hooks", "--json", f"--project={ruled.project}"],
    ):
        ran = ruled(*words, cwd=tmp_path)
        assert "no-rm" in [hook["name"] for hook in ran.json["timings"]["pre_tool_execution"]]


# -- output ---------------------------------------------------------------------------------------


def run_with(cli, words, stdout, **more):
    return subprocess.Popen(
        [*cli.command, *words], stdin=subprocess.DEVNULL, stdout=stdout, stderr=subprocess.PIPE, env=cli.env,
        cwd=cli.project, **more,
    )  # fmt: skip


@pytest.mark.parametrize(
    "words",
    [["hooks", "--json"], ["hooks"], ["--version"], ["fire", "on_turn_start"]],
    ids=" ".join,
)
def test_a_reader_that_goes_away_is_no_error(ruled, words):
    reading, writing = os.pipe()
    os.close(reading)
    process = run_with(ruled, words, writing)
    os.close(writing)
    _, err = process.communicate(timeout=60)
    assert (process.returncode, err) == (141, b"")


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="needs /dev/full")
@pytest.mark.parametrize(
    "words", [["hooks"], ["--version"], ["fire", "on_turn_start", "--json"]], ids=" ".join
)
def test_a_full_disk_is_told(ruled, words):
    with open("/dev/full", "wb") as full:
        process = run_with(ruled, words, full)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 1
    assert err.decode() == "hookturn: standard output: No space left on device\n"


@pytest.mark.parametrize("closing", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
def test_closed_streams(ruled, closing):
    process = subprocess.run(
        ["/bin/sh", "-c", f'"$0" -m hookturn fire on_turn_start {closing}', sys.executable],
        capture_output=True, env=ruled.env, cwd=ruled.project, timeout=60,
    )  # fmt: skip
    assert process.returncode == 0
    assert process.stderr == b""
    assert bool(process.stdout) == (">&-" not in closing.replace("2>&-", ""))


SLEEPS = """
import sys, time
def on_turn_start(event):
    sys.stderr.write("asleep")
    sys.stderr.flush()
    time.sleep(60)
"""


def test_interruption_is_quiet(cli):
    cli.write("hooks.yaml", "hooks: [{name: sleeps, run: {module: sleeps.py}}]")
    cli.write("sleeps.py", SLEEPS)
    process = run_with(cli, ["fire", "on_turn_start", "--with", "hooks.yaml", "--json"], subprocess.PIPE)
    assert process.stderr.read(6) == b"asleep"
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out, err) == (130, b"", b"")


def on_terminal(cli, words, **env):
    """Run with a terminal as standard output and return what it shows."""
    master, slave = pty.openpty()
    process = subprocess.Popen(
        [*cli.command, *words], stdin=slave, stdout=slave, stderr=subprocess.DEVNULL, env={**cli.env, "TERM": "xterm", **env},
        cwd=cli.project,
    )  # fmt: skip
    os.close(slave)
    shown = b""
    while True:
        try:
            part = os.read(master, 65536)
        except OSError:  # Linux's way to say that the other end is closed
            break
        if not part:
            break
        shown += part
    os.close(master)
    assert process.wait(60) == 0
    return shown.decode()


def test_colour_only_on_a_terminal_that_wants_it(ruled):
    words = ["explain", "pre_tool_execution"]
    plain = ruled(*words).out
    coloured = on_terminal(ruled, words)
    assert "\x1b[1m" in coloured
    assert "\x1b" not in plain
    for env in ({"NO_COLOR": "1"}, {"TERM": "dumb"}):
        assert on_terminal(ruled, words, **env).replace("\r\n", "\n") == plain


HOSTILE = "\x1b]0;title\x07\x1b[2J\x9b31m\u202e\x00\r\ud800\n\x08end"


def test_payloads_cannot_drive_the_terminal(cli):
    cli.write("hooks.yaml", "hooks: [{name: echo, run: {module: echo.py}}]")
    cli.write(
        "echo.py",
        "from hookturn import *\n"
        "def on_message_received(event, ctx):\n"
        "    print(event.text); ctx.inject(event.text)\n"
        "    return [Rewrite(event.text + '!'), Inject(event.text), Warn(event.text), Block(event.text)]\n"
        "def on_error(event): raise ValueError(event.message)\n",
    )
    event = json.dumps({"text": HOSTILE, "agent": HOSTILE})
    for words in (["fire", "on_message_received"], ["explain", "on_message_received"]):
        ran = cli(*words, "--with", "hooks.yaml", "--event", "-", input=event)
        assert ran.code == 0, ran
        for text in (ran.out, ran.err):
            assert not re.search(r"[^\n\x20-\x7e]", text), ran
        assert "\\x1b[2J\\x9b31m\\u202e\\x00\\r\\ud800" in ran.out
    ran = cli(
        "fire",
        "on_error",
        "--with",
        "hooks.yaml",
        "--event",
        "-",
        input=json.dumps({"error_type": "E", "message": HOSTILE}),
    )
    assert not re.search(r"[^\n\x20-\x7e]", ran.out + ran.err), ran


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"},
        {"PYTHONIOENCODING": "ascii:strict"},
        {"PYTHONIOENCODING": "latin-1:strict"},
    ],
    ids=["C", "pure C", "ascii", "latin-1"],
)
def test_no_locale_breaks_reading_or_printing(cli, env):
    text = "löschen 删除 \ud800 \x00"
    cli.write(
        "hookturn.yaml",
        'hooks: [{name: "wächter", timings: [on_message_received], run: {answer: {block: "Nein – 不行"}}}]',
    )
    event = '{"text": "löschen 删除 \\ud800 \\u0000"}'.encode()
    ran = cli("fire", "on_message_received", "--event", "-", "--json", input=event, env=env)
    assert ran.json["event"]["text"] == text
    assert (ran.json["by"], ran.json["reason"]) == ("wächter", "Nein – 不行")
    assert ran.out.isascii()
    for words in (["fire", "on_message_received", "--event", "-"], ["hooks"], ["plugins"], ["check"]):
        ran = cli(*words, input=event, env=env)
        assert (ran.code, ran.err) == (0, ""), ran


def test_names_that_are_no_utf8(cli):
    ran = cli("fire", "on_turn_start", "--event", b"\xff\xfe.json", env={"LC_ALL": "C"})
    assert ran.code == 2
    assert "cannot be read: No such file or directory" in ran.err
    assert ran.err.isascii()


def test_nothing_a_hook_prints_reaches_standard_output(cli):
    cli.write("hooks.yaml", "hooks: [{name: loud, run: {module: loud.py}}]")
    cli.write(
        "loud.py",
        "import os, sys, subprocess\n"
        "print('at import')\n"
        "def on_load(ctx): print('on load')\n"
        "def on_dispose(ctx): print('on dispose')\n"
        "def on_turn_start(event):\n"
        "    print('by print'); sys.stdout.buffer.write(b'bytes'); sys.__stdout__.write('real')\n"
        "    os.write(1, b'descriptor'); subprocess.run(['echo', 'program'])\n",
    )
    for command in ("fire", "explain"):
        words = [command, "on_turn_start", "--event", "-", "--with", "hooks.yaml", "--json"]
        ran = cli(*words, input="{}")
        assert ran.code == 0, ran
        ran.json  # noqa: B018 - raises when there is anything else
        for said in ("at import", "on load", "on dispose", "by print", "bytes", "descriptor", "program"):
            assert said in ran.err


def test_main_returns_the_code_and_leaves_the_streams_alone(capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    before = sys.stdout, sys.stderr
    assert main(["hooks", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["schema"] == 1
    assert main(["nonsense"]) == 2
    assert "unknown command" in capsys.readouterr().err
    assert (sys.stdout, sys.stderr) == before
