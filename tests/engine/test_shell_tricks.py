"""Spellings that try to slip a command past the rules: each is seen, or never counts as always allowed."""

from __future__ import annotations

import pytest

from hookturn import events
from hookturn.engine.fold import Permissions


def said(command: str, **rules: list[str]) -> str | None:
    vote = Permissions(**rules).vote(events.PreToolExecution(tool="bash", args={"command": command}))
    return vote.decision if vote is not None else None


@pytest.mark.parametrize(
    "command",
    [
        "echo ${x:-`rm -rf /`}",
        'echo "${x:=`rm -rf /`}"',
        'rm $"-rf" /',
        "{rm,-rf,/}",
        "rm {-rf,/}",
        "rm >x -rf /",
        ">x rm -rf /",
        "toybox rm -rf /",
        'cmd=(rm -rf /); "${cmd[@]}"',
        'alias x="rm -rf /"; x',
        'source /dev/stdin <<< "rm -rf /"',
        ". <(echo rm -rf /)",
        "cat <(rm -rf /)",
        "tee >(rm -rf /)",
        "eval $(echo rm -rf /)",
        'echo "rm -rf /" | sh',
        "printf 'rm -rf /' | sudo bash -s",
    ],
)
def test_a_denied_command_is_seen(command: str) -> None:
    assert said(command, deny=["bash(rm -rf *)"]) == "deny"


@pytest.mark.parametrize(
    "command",
    [
        "git ${x:=`rm x`}",
        'git "${x:=`rm x`}"',
        "git log ${x:-`touch p`}",
        "git log ${x@P}",
        'git log "${PS4@P}"',
        "git log <(rm x)",
        "git log > >(rm x)",
    ],
)
def test_an_allowed_command_carries_no_other(command: str) -> None:
    assert said(command, always_allow=["bash(git *)"]) is None


@pytest.mark.parametrize(
    "command", ["git log ${x}", 'git log "${x:-HEAD}"', "git log a{b,c}", 'git log $"text"']
)
def test_ordinary_expansions_are_still_allowed(command: str) -> None:
    assert said(command, always_allow=["bash(git *)"]) == "allow"
