"""Edits of JSON as text: the data become what they should, and all else stays as it was."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn.agents.json_text import cut, nodes, put, spread, without_comments

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-999, 999) | st.text(max_size=6),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)
OBJECTS = st.dictionaries(st.text(max_size=4), VALUES, max_size=4)
NOISE = st.sampled_from(["", " ", "\n", ' // a "comment"\n', "/* {[ */", "\r\n\t"])


def load(text: str):
    return json.loads(without_comments(text))


@st.composite
def texts(draw):
    """JSON objects in every layout, with comments between the tokens."""
    data = draw(OBJECTS)
    text = json.dumps(
        data, indent=draw(st.sampled_from([None, 1, 2, "\t"])), ensure_ascii=draw(st.booleans())
    )
    out, at = "", 0
    while at < len(text):
        if text[at] == '"':
            end = at + 1
            while text[end] != '"':
                end += 2 if text[end] == "\\" else 1
            out, at = out + text[at : end + 1], end + 1
        else:
            out, at = out + text[at], at + 1
        if text[at - 1] in ',:{}[]"':
            out += draw(NOISE)
    return out


def comments(text: str) -> list[str]:
    plain = without_comments(text)
    return sorted("".join(c for c, p in zip(text, plain, strict=True) if c != p and p == " ").split())


def paths(value, path=()):
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from paths(item, (*path, key))


@given(texts())
def test_every_value_stands_where_it_is_said_to(text):
    data = load(text)
    for path, node in nodes(text).walk():
        value = data
        for part in path:
            value = value[part]
        assert load(text[node.start : node.end]) == value


@given(texts(), st.text(max_size=4), VALUES)
def test_put_at_the_root(text, key, value):
    data = load(text)
    new = put(text, (key,), value)
    assert load(new) == {**data, key: value}
    if key not in data:
        assert comments(new) == comments(text)


@given(texts(), st.data())
def test_put_and_cut_anywhere(text, draw):
    data = load(text)
    known = list(paths(data))
    if not known:
        return
    path = draw.draw(st.sampled_from(known))
    holder = data
    for part in path[:-1]:
        holder = holder[part]
    new = cut(text, path)
    del holder[path[-1]]
    assert load(new) == data
    if isinstance(holder, dict):
        back = put(new, path, {"x": [1]})
        holder[path[-1]] = {"x": [1]}
        assert load(back) == data
    else:
        back = put(new, (*path[:-1], len(holder)), "new")
        holder.append("new")
        assert load(back) == data


def test_what_is_not_there_on_the_way_is_made():
    assert load(put("{}", ("a", "b", "c"), [1])) == {"a": {"b": {"c": [1]}}}


def test_what_is_in_the_way_is_told():
    with pytest.raises(ValueError, match="a is no object"):
        put('{"a": 5}', ("a", "b"), 1)
    with pytest.raises(ValueError, match="a is no list"):
        put('{"a": {}}', ("a", 0), 1)


SETTINGS = """\
{
    // mine
    "model": "x", // the good one
    "hooks": {
        "Stop": [ {"hooks": []} ]   // keep
    }
}
"""


def test_layout_and_comments_stay():
    new = put(SETTINGS, ("hooks", "PreToolUse"), [{"matcher": "*"}])
    assert (
        new
        == """\
{
    // mine
    "model": "x", // the good one
    "hooks": {
        "Stop": [ {"hooks": []} ],   // keep
        "PreToolUse": [
            {
                "matcher": "*"
            }
        ]
    }
}
"""
    )
    assert cut(new, ("hooks", "PreToolUse")) == SETTINGS
    assert put(SETTINGS, ("hooks", "Stop", 1), 5) == SETTINGS.replace('{"hooks": []} ]', '{"hooks": []}, 5 ]')


def test_line_ends_stay():
    new = put('{\r\n\t"a": 1\r\n}\r\n', ("b",), {"c": 2})
    assert new == '{\r\n\t"a": 1,\r\n\t"b": {\r\n\t\t"c": 2\r\n\t}\r\n}\r\n'
    assert cut(new, ("b",)) == '{\r\n\t"a": 1\r\n}\r\n'


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("{}", "{}"),
        ('{"a":1}\n', '{\n  "a": 1\n}\n'),
        ('{"a":1}\r\n', '{\r\n  "a": 1\r\n}\r\n'),
        (
            '{"a": {"b": [1.50, "x\\u00e9"], "c": []}, "d": 1e5}',
            '{\n  "a": {\n    "b": [\n      1.50,\n      "x\\u00e9"\n    ],\n    "c": []\n  },\n  "d": 1e5\n}',
        ),
    ],
)
def test_a_small_text_on_one_line_is_spread(text, lines):
    assert spread(text) == lines
    assert json.loads(lines) == json.loads(text)


@pytest.mark.parametrize(
    "text",
    ['{"a": 1, "a": 2}', '{"a": 1} // ours', '{\n"a": 1}', f'{{"a": "{"x" * 5000}"}}', ""],
    ids=["twice", "comment", "lines", "large", "empty"],
)
def test_any_other_text_is_not_spread(text):
    assert spread(text) == text


@given(OBJECTS)
def test_spreading_keeps_every_value(data):
    text = json.dumps(data)
    assert json.loads(spread(text)) == json.loads(text)
