"""``hookturn replay``: what it leaves behind and says when its command line is wrong."""

from __future__ import annotations

from pathlib import Path

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


def test_the_sample_says_whose_hooks_were_asked_and_lists_no_entry_that_calls_us(cli):
    """In a project that an agent calls hookturn from: its entries are none of the user's hooks."""
    assert cli("install", "claude-code", "--yes").code == 0
    alone = cli("replay", "--summary")
    assert "with sample hooks. Try" in alone.out
    assert "not run" not in alone.out
    (cli.project / "hookturn.yaml").write_text("permissions: {deny: [read]}\n")
    folder = Path(cli.env["HOOKTURN_CONFIG_DIR"])
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "hookturn.yaml").write_text(
        "hooks:\n- {name: mine, timings: [post_turn], run: {answer: {warn: w}}}\n"
    )
    assert "with sample hooks and yours. Try" in cli("replay", "--summary").out
