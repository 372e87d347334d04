"""What reaches a terminal: texts are printable, cut, aligned."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn.cli import output

ANY_TEXT = st.text(st.characters(codec=None, categories=None), max_size=300)


@given(ANY_TEXT)
def test_clean_is_one_printable_line_and_keeps_printable_texts(text):
    cleaned = output.clean(text)
    assert cleaned.replace("\xa0", "").replace("\u3000", "").isprintable()
    if text.isprintable():
        assert cleaned == text


@given(ANY_TEXT, st.integers(1, 80))
def test_short_shows_the_beginning_and_says_how_much_is_missing(text, limit):
    shown = output.short(text, limit)
    assert shown.startswith(output.clean(text[:limit]))
    assert shown.endswith(f"(+{len(text) - limit:,} characters)") == (len(text) > limit)


@given(ANY_TEXT)
def test_block_escapes_all_but_its_own_line_ends(text):
    shown = output.block(text)
    assert all(line.startswith("  ") for line in shown.split("\n"))
    assert len(shown.split("\n")) <= output.LINES + 1


def test_block_cuts_long_texts():
    shown = output.block("\n".join(str(number) for number in range(1000))).split("\n")
    assert shown[: output.LINES] == [f"  {number}" for number in range(output.LINES)]
    assert shown[output.LINES :] == ["  ... (+980 lines)"]
    assert output.block("a\r\nb") == "  a\n  b"


@given(st.recursive(st.none() | st.booleans() | st.floats() | ANY_TEXT, st.lists, max_leaves=20))
def test_emit_prints_one_ascii_document(value):
    import contextlib
    import io

    with contextlib.redirect_stdout(io.StringIO()) as out:
        output.emit({"value": value})
    assert out.getvalue().isascii()
    assert out.getvalue().count("\n{") == 0

    def refuse(word):
        raise AssertionError(word)

    json.loads(out.getvalue(), parse_constant=refuse)


def test_table_is_aligned_and_leaves_empty_columns_out(capsys):
    output.table(
        ("name", "empty", "number", "last"),
        [("a", "", "1", "x"), ("删除", "", "1000", "y"), ("e\u0301", "", "22", "")],
        right=("number",),
        indent="",
    )
    assert capsys.readouterr().out.split("\n") == [
        "name  number  last",
        "a          1  x",
        "删除    1000  y",
        "e\u0301         22",
        "",
    ]


def test_pairs_are_aligned_and_skip_empty_texts(capsys):
    output.pairs([("a", "1\n2"), ("nothing", ""), ("long", "3")])
    assert capsys.readouterr().out == "  a     1\n        2\n  long  3\n"


def test_hooks_at_work_restores_the_streams_after_an_exception(capfd):
    with pytest.raises(ValueError, match="x"), output.hooks_at_work():
        print("hook \x1b[1m")
        output.say("ours")
        raise ValueError("x")
    print("after")
    out, err = capfd.readouterr()
    assert (out, err) == ("ours\nafter\n", "hook \\x1b[1m\n")


def test_hooks_at_work_survives_a_hook_that_takes_the_streams_away(capfd):
    with output.hooks_at_work():
        sys.stdout = sys.stderr = None
        output.say("ours")
    print("after")
    assert capfd.readouterr().out == "ours\nafter\n"


def test_progress_is_for_terminals(capsys):
    output.progress("50 %")
    assert capsys.readouterr().err == ""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_a_child_that_a_hook_forks_keeps_files_opened_since_an_earlier_run_of_hooks(tmp_path):
    script = (
        "import os, sys\n"
        "from hookturn.cli.output import hooks_at_work\n"
        "with hooks_at_work():\n    pass\n"
        "with open(sys.argv[1], 'w') as file, hooks_at_work():\n"  # its number was that of the real standard output
        "    pid = os.fork()\n"
        "    if pid == 0:\n"
        "        os.write(file.fileno(), b'by the child')\n"
        "        os._exit(0)\n"
        "    os.waitpid(pid, 0)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path / "file")], capture_output=True, timeout=60
    )
    assert (done.returncode, done.stderr) == (0, b"")
    assert (tmp_path / "file").read_text() == "by the child"
