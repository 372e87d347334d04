"""Reading lines: what is wrong with one costs that line only, is named exactly, and memory stays bounded."""

from __future__ import annotations

import io
import json
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn.agents import recorded as r
from hookturn.agents.transcripts import TranscriptError, lines, open_transcript, readers


def prompt(text="hello", **fields):
    return {"type": "user", "message": {"role": "user", "content": text}, "uuid": text, **fields}


@pytest.fixture
def read(tmp_path):
    def items(raw: bytes, **options):
        path = tmp_path / "file"
        path.write_bytes(raw)
        return list(lines(str(path), **options))

    return items


def test_numbers_count_blank_lines(read):
    assert read(b'{"a": 1}\n\n   \n{"a": 2}\n') == [(1, {"a": 1}), (4, {"a": 2})]


def test_a_last_line_needs_no_newline(read):
    assert read(b'{"a": 1}\n{"a": 2}') == [(1, {"a": 1}), (2, {"a": 2})]


def test_bom_crlf_and_control_characters_are_tolerated(read):
    assert read(b'\xef\xbb\xbf{"a": 1}\r\n{"b": "x\ty\x00z"}\r\n') == [(1, {"a": 1}), (2, {"b": "x\ty\0z"})]


def test_lone_surrogates_and_escaped_nul_stay(read):
    assert read(rb'{"a": "\ud800 \u0000"}') == [(1, {"a": "\ud800 \0"})]


def test_an_empty_file_has_no_lines(read):
    assert read(b"") == read(b"\n\n") == read(b"\xef\xbb\xbf") == []


@pytest.mark.parametrize(
    ("raw", "line", "column", "cause"),
    [
        (b'{"a": 1}\n{"a" 1}\n', 2, 6, "not JSON: Expecting ':' delimiter"),
        (b'{"a": 1}\n{"a": \xff}\n', 2, 7, "not UTF-8: byte 0xff"),
        (b'{"a": 1}\n[1, 2]\n', 2, 1, "a JSON object is needed, not an array"),
        (b'{"a": 1}\n"text"\n', 2, 1, "a JSON object is needed, not a string"),
        (b'{"a": 1}\nnull\n', 2, 1, "a JSON object is needed, not null"),
        (b'{"a": 1}\n\x00\x00\x00\x00\n', 2, 1, "not JSON: Expecting value"),
        (
            b'{"a": 1}\n{"b": "cut o',
            2,
            7,
            "not JSON: Unterminated string starting at (the last line is cut off)",
        ),
        (b'{"a": 1}\n' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"\n", 2, 1, "nested deeper than 200 levels"),
        (b'{"a": 1}\n{"a":' + b"[" * 250 + b"]" * 250 + b"}\n", 2, 1, "nested deeper than 200 levels"),
        (b'{"a": 1}\n{"a": ' + b"9" * 5000 + b"}\n", 2, 1, "not JSON: Exceeds the limit"),
    ],
    ids=["json", "utf-8", "list", "string", "null", "nul", "cut", "deep", "too-deep", "digits"],
)
def test_a_bad_line_is_named(read, raw, line, column, cause):
    first, second = read(raw)
    assert first == (1, {"a": 1})
    number, skipped = second
    assert number == skipped.line == line
    assert skipped.column == column
    assert skipped.cause.startswith(cause)


def test_a_long_line_is_skipped_with_its_size(read):
    raw = b'{"a": 1}\n{"b": "' + b"x" * 600_000 + b'"}\n{"c": 3}\n'
    items = read(raw, limit=500_000)
    assert [item for _, item in items[::2]] == [{"a": 1}, {"c": 3}]
    (_, skipped) = items[1]
    assert (skipped.line, skipped.column) == (2, 500_001)
    assert skipped.cause == "the line has 600,009 bytes, more than the limit of 500,000"
    # ... also when it is the last one, without a newline
    assert read(raw[:-10], limit=500_000)[-1][1].cause == skipped.cause


def test_lines_longer_than_a_chunk_are_whole(read):
    texts = ["x" * size for size in (1, 262_143, 262_144, 262_145, 700_000)]
    raw = "".join(json.dumps({"t": text}) + "\n" for text in texts).encode()
    assert [item["t"] for _, item in read(raw)] == texts


def test_one_document_over_many_lines_is_one_line(read):
    document = {"sessionId": "s", "messages": [{"type": "user"}]}
    assert read(json.dumps(document, indent=2).encode()) == [(1, document)]
    ((_, skipped),) = read(json.dumps(document, indent=2).encode()[:-5])
    assert skipped.cause.startswith("not JSON")
    assert skipped.line > 2
    ((_, skipped),) = read(json.dumps(document, indent=2).encode(), limit=20)
    assert "more than the limit of 20" in skipped.cause


def test_standard_input(monkeypatch):
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=io.BytesIO(json.dumps(prompt()).encode())))
    steps = list(open_transcript("-").steps())
    assert [step.text for step in steps if isinstance(step, r.Prompt)] == ["hello"]


GARBAGE = st.one_of(
    st.binary(max_size=60).map(lambda raw: raw.replace(b"\n", b" ")),
    st.sampled_from(
        [
            b"",
            b"   ",
            b"[]",
            b"3",
            b"{",
            b'{"type": "user"}',
            b'{"type": "user", "message": 3}',
            b"\xff\xfe",
            b"{}",
        ]
    ),
    st.dictionaries(st.sampled_from(["type", "message", "data", "payload"]), st.integers()).map(
        lambda item: json.dumps(item).encode()
    ),
)


@given(draws=st.data())
def test_garbage_between_good_lines_costs_only_itself(tmp_path_factory, draws):
    good = [json.dumps(prompt(f"prompt {number}")).encode() for number in range(4)]
    out = [good[0]]
    for line in good[1:]:
        out += draws.draw(st.lists(GARBAGE, max_size=3))
        out.append(line)
    out += draws.draw(st.lists(GARBAGE, max_size=2))
    path = tmp_path_factory.mktemp("garbage") / "file"
    path.write_bytes(b"\n".join(out) + b"\n")
    steps = list(open_transcript(str(path)).steps())
    assert [step.text for step in steps if isinstance(step, r.Prompt)] == [f"prompt {n}" for n in range(4)]
    for step in steps:
        if isinstance(step, r.Skipped):
            assert out[step.line - 1] not in good


@given(at=st.integers(min_value=0))
def test_a_file_cut_anywhere_loses_only_its_end(tmp_path_factory, at):
    whole = (Path(__file__).parent.parent / "data/transcripts/claude/files.jsonl").read_bytes()
    cut = whole[: at % len(whole)]
    path = tmp_path_factory.mktemp("cut") / "file"
    path.write_bytes(cut)
    try:
        steps = list(open_transcript(str(path)).steps())
    except TranscriptError:
        assert cut.count(b"\n") < 1
        return
    kinds = [type(step) for step in steps]
    assert kinds.count(r.ToolBegin) == kinds.count(r.ToolEnd)
    assert kinds.count(r.SessionBegin) == kinds.count(r.SessionFinish) == (r.SessionBegin in kinds)
    assert kinds.count(r.Skipped) <= 1
    assert all(step.line == cut.count(b"\n") + 1 for step in steps if isinstance(step, r.Skipped))


LINE = (
    f"import sys\nsys.path.insert(0, {str(Path(__file__).parent.parent)!r})\n"
    """
from measure import peak
from hookturn.agents import recorded as r
from hookturn.agents.transcripts import open_transcript
steps = list(open_transcript(sys.argv[1]).steps())
skipped = [step for step in steps if isinstance(step, r.Skipped)]
prompts = [step.text for step in steps if isinstance(step, r.Prompt)]
print(len(prompts), skipped[0].line, skipped[0].cause)
print(peak())
"""
)


@pytest.mark.fault
def test_a_line_of_100_mb_does_not_come_into_memory(tmp_path):
    path = tmp_path / "huge.jsonl"
    with path.open("wb") as file:
        file.write(json.dumps(prompt("before")).encode() + b"\n")
        file.write(b'{"type": "user", "message": {"role": "user", "content": "')
        for _ in range(110):
            file.write(b"x" * 1_000_000)
        file.write(b'"}}\n' + json.dumps(prompt("after")).encode() + b"\n")
    done = subprocess.run([sys.executable, "-c", LINE, str(path)], capture_output=True, text=True, check=True)
    first, peak = done.stdout.splitlines()
    assert first.startswith("2 2 the line has 110,000,060 bytes, more than the limit of 67,108,864")
    assert int(peak) < 150_000  # kB: what is held never exceeds the limit by much


# -- recognising


def test_an_unknown_file_says_what_was_looked_for(tmp_path):
    path = tmp_path / "notes.jsonl"
    path.write_text('{"title": "x", "body": "y"}\n')
    with pytest.raises(TranscriptError) as raised:
        open_transcript(str(path))
    message = str(raised.value)
    assert str(path) in message
    assert "has the keys body, title" in message
    for reader in readers():
        assert f"{reader.NAME}: {reader.LOOKED_FOR}" in message


@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "it is empty"),
        (b"\n\n", "it is empty"),
        (b"# Notes\n\nNo JSON.\n", "none of its first 2 lines is a JSON object (line 1: not JSON"),
        (b"\x00\x01\x02", "none of its first 1 lines is a JSON object"),
        (b"[1, 2, 3]\n", "a JSON object is needed, not an array"),
    ],
)
def test_a_file_without_objects_is_refused_clearly(tmp_path, content, words):
    path = tmp_path / "file"
    path.write_bytes(content)
    with pytest.raises(TranscriptError) as raised:
        open_transcript(str(path))
    assert words in str(raised.value)


def test_a_missing_file_is_an_os_error(tmp_path):
    with pytest.raises(FileNotFoundError):
        open_transcript(str(tmp_path / "none.jsonl"))
    with pytest.raises(IsADirectoryError):
        open_transcript(str(tmp_path))


def test_bad_lines_before_the_first_good_one_are_reported_too(transcript):
    opened = transcript(['{"broken', "[]", prompt("first")])
    assert opened.reader.NAME == "claude-code"
    steps = list(opened.steps())
    assert [step.line for step in steps if isinstance(step, r.Skipped)] == [1, 2]
    assert [step.text for step in steps if isinstance(step, r.Prompt)] == ["first"]


# -- helpers that all readers share


def test_arguments_are_parsed_or_kept():
    assert r.arguments({"a": 1}) == {"a": 1}
    assert r.arguments('{"a": 1}') == {"a": 1}
    assert r.arguments(None) == r.arguments("") == {}
    for raw in ("{broken", "[1]", '"text"', "3", '{"a":' * 200 + "1" + "}" * 200):
        assert r.arguments(raw) == {"_raw": raw}
    assert r.arguments([1]) == {"_raw": [1]}


@given(st.lists(st.integers(0, 500)))
def test_seen_remembers(keys):
    seen = r.Seen()
    known = set()
    for key in keys:
        assert seen.add(("k", key)) is (key in known)
        known.add(key)


def test_seen_forgets_only_what_is_far_behind():
    seen = r.Seen()
    for key in range(200_000):
        assert not seen.add(key)
    for key in range(140_000, 200_000):
        assert seen.add(key)
    assert not seen.add(5)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("2026-11-30T18:20:34.485Z", 1796062834.485),
        ("2026-11-30T18:20:34Z", 1796062834.0),
        ("2026-11-30T19:20:34.485123+01:00", 1796062834.485123),
        (1796062834485, 1796062834.485),
        ("1970-01-01T00:00:00.000Z", 0.0),
        ("2026-13-30T18:20:34.485Z", None),
        ("2026-11-30Txx:20:34.485Z", None),
        ("2026-11-30T18:20:   nanZ", None),
        ("2026-11-30T18:20:   infZ", None),
        ("2026-11-30T99:20:34.485Z", None),
        ("yesterday", None),
        (None, None),
        ({}, None),
    ],
)
def test_times(text, seconds):
    assert r.moment(text) == (seconds if seconds is None else pytest.approx(seconds, abs=1e-6))


class Dripping(io.RawIOBase):
    """Gives one byte a read, as a slow pipe may."""

    def __init__(self, content):
        super().__init__()
        self._content = io.BytesIO(content)

    def read(self, size=-1):
        return self._content.read(1)


def test_a_slow_pipe_is_no_other_file(monkeypatch):
    content = b"\xef\xbb\xbf" + b"".join(json.dumps(prompt(text)).encode() + b"\n" for text in "ab")
    monkeypatch.setattr(sys, "stdin", SimpleNamespace(buffer=Dripping(content)))
    assert [(number, item["uuid"]) for number, item in lines("-")] == [(1, "a"), (2, "b")]


def test_closed_standard_input_is_an_os_error(monkeypatch):
    monkeypatch.setattr(sys, "stdin", None)
    with pytest.raises(OSError, match="standard input is closed"):
        open_transcript("-")
