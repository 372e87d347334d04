"""``hookturn replay``: what it leaves behind and says when its command line is wrong."""

from __future__ import annotations

import pytest


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--diff", "gone.yaml"), "--diff gone.yaml: does not exist. Name a configuration file."),
        (("--with", "gone.yaml"), "--with gone.yaml: does not exist. Name a configuration file."),
        (("--diff", ".git"), "--diff .git: is no file. Name a configuration file."),
        (("-p", "audit-log"), "-p audit-log: expected no:NAME"),
    ],
)
def test_a_wrong_command_line_makes_no_folder(cli, words, message):
    ran = cli("replay", *words)
    assert (ran.code, ran.out) == (2, "")
    assert message in ran.err
    assert sorted(path.name for path in cli.project.iterdir()) == [".git"]


def test_one_warning_is_one_warning(cli):
    cli.write(
        "hookturn.yaml", "hooks: [{name: w, timings: [on_session_start], run: {answer: {warn: Hello.}}}]\n"
    )
    cli.write("s.jsonl", '{"timing": "on_session_start", "session_id": "s1"}\n')
    assert "1 warning\n" in cli("replay", "s.jsonl", "--summary").out
