"""JSON with comments: the same data as the standard parser's, each value with its place."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn.agents.json_text import without_comments
from hookturn.project.json_document import read_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=12,
)


def walk(value, path=()):
    yield path, value
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield from walk(item, (*path, key))


@given(st.dictionaries(st.text(max_size=5), VALUES, max_size=4), st.sampled_from([None, 1, 4]), st.booleans())
def test_every_value_is_at_its_place(data, indent, raw):
    text = json.dumps(data, indent=indent, ensure_ascii=not raw)
    try:
        content = text.encode()
    except UnicodeEncodeError:
        return
    document = read_json(content, "f.json")
    assert document.data == data
    lines = text.replace("\r\n", "\n").replace("\r", "\n").split("\n")
    for path, value in walk(data):
        line, column = document.at(path)
        rest = "\n".join([lines[line - 1][column - 1 :], *lines[line:]])
        assert json.JSONDecoder().raw_decode(rest)[0] == value


@pytest.mark.parametrize(
    ("text", "data"),
    [
        ('{"a": 1} // end', {"a": 1}),
        ('// first\r\n{"a": /* in */ 1}', {"a": 1}),
        ('{"url": "https://x.test//y", "b": "/* no */"}', {"url": "https://x.test//y", "b": "/* no */"}),
        ('{"q": "\\"// still in\\""}', {"q": '"// still in"'}),
        ('\ufeff{"a": 1}', {"a": 1}),
        ("/**/{}/* a\n * b */", {}),
        ('{"a": 1/*x*/,"b":2}', {"a": 1, "b": 2}),
    ],
    ids=range(7),
)
def test_comments(text, data):
    document = read_json(text.encode(), "f.json")
    assert (document.data, document.problems) == (data, [])


@given(st.text(alphabet='/*"\\ \n\rax', max_size=40))
def test_taking_comments_out_moves_nothing(text):
    plain = without_comments(text)
    assert len(plain) == len(text)
    assert [c for c in plain if c in "\r\n"] == [c for c in text if c in "\r\n"]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        (b"", "f.json:1:1: the file is empty. Write {} at least."),
        (b'{"a": 1,\n}', "f.json:2:1: a comma stands before the closing bracket. Delete the comma."),
        (b'// x\n{"a" 1}', "f.json:2:6: not JSON: Expecting ':' delimiter. Correct the JSON there."),
        (b"[]", "f.json:1:1: the root must be an object, got an array. Begin the file with {."),
        (b'{"a": NaN}', "f.json:1:1: not JSON: NaN is no JSON. Correct it there."),
        (b"[" * 50_000, "f.json:1:1: not JSON: nested too deep. Correct it there."),
        (b'{"a": \xff}', "f.json:1:7: not UTF-8: byte 0xff. Save the file as UTF-8."),
    ],
    ids=range(7),
)
def test_what_is_wrong_is_told_with_its_place(content, told):
    document = read_json(content, "f.json")
    assert document.broken
    assert [str(problem) for problem in document.problems] == [told]


def test_a_key_given_twice_is_told_and_the_last_one_counts():
    document = read_json(b'{"a": {"b": 1, "b": 2}}', "f.json")
    assert document.data == {"a": {"b": 2}}
    (problem,) = document.problems
    assert (problem.severity, problem.cause) == (
        "warning", "the key 'b' stands twice in an object; the last one counts",
    )  # fmt: skip


@given(st.binary(max_size=60))
def test_any_bytes_give_a_document(content):
    document = read_json(content, "f.json")
    assert document.broken == bool([p for p in document.problems if p.severity == "error"])
