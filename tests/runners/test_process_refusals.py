"""A refusal must stay one, whatever the refused call holds: a guard repeats words that the model chose."""

from __future__ import annotations

import json
import shlex
import sys

import pytest

from hookturn import Engine, events
from hookturn.runners import command
from hookturn.runners.entry import HookEntry
from hookturn.runners.programs import start_failure

READ = f'{shlex.quote(sys.executable)} -S -c \'import json, sys; print(json.load(sys.stdin)["event"]["args"]["command"])\''


def fire(folder, line, text):
    entry = HookEntry(
        name="guard", kind="command", run=line, timings=["pre_tool_execution"], file="hookturn.yaml", line=3,
        layer="user", base_dir=str(folder), options={"timeout": 20},
    )  # fmt: skip
    with Engine(project_dir=folder) as engine:
        plugin = command.make(entry, {}, engine.registry.timings)
        engine.register(plugin, "guard", options=entry.options)
        return engine.fire(events.PreToolExecution(tool="bash", args={"command": text}, session_id="s1"))


@pytest.mark.parametrize(
    ("say", "text"),
    [
        ('printf "Blocked: %s\\n" "$C"', "rm -rf /\nsh: 1: x: not found"),
        ('printf "Blocked: %s\\n" "$C"', "rm -rf /\nsh: 1: x: not found   \n\n"),
        ('printf "Blocked: %s\\n" "$C"', "rm -rf /\nx: can't open file 'y': [Errno 2]"),
        ('printf "Blocked: %s\\n" "$C"', "rm -rf /\nbash: line 1: y: command not found"),
        ('printf "%s (blocked)\\n" "$C"', "rm -rf /\nbash: line 1: y: command not found"),
        ('printf "%s\\n" "$C"', "usage: x\nx: error: y"),
        ('printf "Unknown option %s\\n" "$C"', "-x"),
        ("echo Blocked: $C", "1: cannot    open ; rm -rf /"),
        ('printf "Blocked: %b\\n" "$C"', "rm -rf /\\nsh: 1: x: not found"),
        ('printf "Blocked: %b\\n" "$C"', "rm -rf /\\nsh: 1: x: \\156ot found"),
        ('printf "%s\\n" "$C" | tr A-Z a-z', "rm -rf /\nSH: 1: X: NOT FOUND"),
    ],
)
def test_words_of_the_call_do_not_turn_a_refusal_into_a_failure(tmp_path, say, text):
    outcome = fire(tmp_path, f"C=$({READ}); {{ {say}; }} >&2; exit 2", text)
    if "Unknown option" in say:  # the guard's own words: it is taken for a failure, and says so
        assert outcome.failures and "could not start" in outcome.failures[0].message
        return
    assert (outcome.decision, outcome.failures) == ("deny", ())


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("python3 missing.py; exit $?", "can't open file"),
        ("sh ./missing.sh", "missing.sh"),
        ("bash -c 'if then'", "syntax error"),
    ],
)
def test_a_guard_that_could_not_start_is_still_told_from_one_that_refused(tmp_path, line, why):
    outcome = fire(tmp_path, line, "rm -rf /")
    assert outcome.decision is None
    assert "could not start" in outcome.failures[0].message and why in outcome.failures[0].message


def test_what_was_given_may_be_no_json_or_endless():
    line = b"sh: 1: x: not found"
    assert start_failure(2, line, b"") == line.decode()
    assert start_failure(2, line, b"{ no JSON") == line.decode()
    assert start_failure(2, line, b"{ no JSON " + line) == ""
    assert start_failure(2, line, b"[" * 100_000 + b"]" * 100_000) == line.decode()
    assert start_failure(2, line, json.dumps({line.decode(): 1}).encode()) == ""
    assert start_failure(127, line, line) == line.decode()  # no refusal, whatever was given
