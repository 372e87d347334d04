"""Any bytes become plain data with positions, or a problem that says where and what: never an exception."""

from __future__ import annotations

import json

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hookturn.project.document import MAX_BYTES, MAX_DEPTH, MAX_NODES
from hookturn.project.toml_document import read_toml
from hookturn.project.yaml_document import read_yaml


def said(document):
    return [str(problem) for problem in document.problems]


def test_values_and_keys_know_their_places():
    text = "hooks:\n  - name: a\n    timings: [x, 'y']\npermissions: {deny: [z]}\n"
    document = read_yaml(text.encode(), "f.yaml")
    assert document.data == {
        "hooks": [{"name": "a", "timings": ["x", "y"]}],
        "permissions": {"deny": ["z"]},
    }
    assert document.at(("hooks",), key=True) == (1, 1)
    assert document.at(("hooks", 0)) == (2, 5)
    assert document.at(("hooks", 0, "timings"), key=True) == (3, 5)
    assert document.at(("hooks", 0, "timings", 1)) == (3, 18)
    assert document.at(("permissions", "deny", 0)) == (4, 22)
    assert document.at(("hooks", 0, "nosuch", 3)) == (2, 5)
    assert document.at(("nosuch",)) == (1, 1)


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_byte_order_mark_and_line_ends_do_not_count(mark, end):
    document = read_yaml(f"{mark}a: 1{end}b:{end}  c: two{end}".encode(), "f.yaml")
    assert document.data == {"a": 1, "b": {"c": "two"}}
    assert document.at(("b", "c")) == (3, 6)
    assert said(document) == []


def test_a_line_separator_in_a_text_is_no_line_of_an_editor():
    document = read_yaml('a: "x\u2028y"\nb: 1\n'.encode(), "f.yaml")
    assert document.at(("b",)) == (2, 4)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("no", "no"),
        ("on", "on"),
        ("yes", "yes"),
        ("true", True),
        ("False", False),
        ("~", None),
        ("", None),
        ("010", 10),
        ("0o10", 8),
        ("0x1F", 31),
        ("-7", -7),
        ("1_000", "1_000"),
        ("12:30", "12:30"),
        ("2024-01-01", "2024-01-01"),
        ("1.5", 1.5),
        (".5", 0.5),
        ("1e3", 1000.0),
        (".inf", float("inf")),
        ('"true"', "true"),
        ("!!str true", "true"),
        ("'1'", "1"),
        ("1.2.3", "1.2.3"),
        ("!", ""),
    ],
)
def test_plain_scalars_mean_what_yaml_1_2_says(text, value):
    document = read_yaml(f"k: {text}\n".encode(), "f.yaml")
    assert said(document) == []
    found = document.data["k"]
    assert found == value
    assert type(found) is type(value)


def test_a_key_that_yaml_1_1_takes_for_a_boolean_is_a_text():
    assert read_yaml(b"on: 1\nno: 2\ny: 3\n", "f").data == {"on": 1, "no": 2, "y": 3}


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"a: [1,\nb: }\n", "f.yaml:2:4: not YAML: while parsing a flow node"),
        (b"a:\n\t- b\n", "f.yaml:2:1: not YAML: while scanning for the next token, found character '\\t'"),
        (b"a: b: c\n", "f.yaml:1:5: not YAML: mapping values are not allowed here"),
        (b"a: \x07\n", "f.yaml:1:4: the character '\\x07' is not allowed in YAML"),
        (b"x: 1\na: \xff\n", "f.yaml:2:4: not UTF-8: byte 0xff. Save the file as UTF-8."),
        ("a: b".encode("utf-16"), "f.yaml:1:1: not UTF-8: byte 0xff; it looks like UTF-16"),
        ("\ufeff\ufeffa: b".encode(), "f.yaml:1:1: a second byte-order mark"),
        (b"- 1\n", "f.yaml:1:1: the file must be a mapping, got a list"),
        (b"words\n", "f.yaml:1:1: the file must be a mapping, got a text"),
        (b"a: &x [*x]\n", "f.yaml:1:8: the alias '*x' contains itself"),
        (b"a: *x\n", "f.yaml:1:4: the alias '*x' has no anchor"),
        (
            b"a: !!python/object:os.system x\n",
            "f.yaml:1:4: the tag 'tag:yaml.org,2002:python/object:os.system'",
        ),
        (b"a: !mine {}\n", "f.yaml:1:4: the tag '!mine' is not supported"),
        (b'a: "\\U00ffffff"\n', "f.yaml:1:7: not YAML: ValueError"),
        (b"#" * (MAX_BYTES + 1), f"f.yaml: the file has {MAX_BYTES + 1:,} bytes, more than {MAX_BYTES:,}"),
        (b"a:\n  - " + b"[" * 10_000, "f.yaml:2:53: nested deeper than 50 levels"),
    ],
    ids=range(16),
)
def test_what_costs_the_whole_file(content, expected):
    document = read_yaml(content, "f.yaml")
    assert document.broken
    assert document.data == {}
    (problem,) = said(document)
    assert problem.startswith(expected)
    assert problem.endswith(".")


@pytest.mark.parametrize(
    ("content", "expected", "data"),
    [
        (
            b"a: 1\nb: 2\na: 3\n",
            "f.yaml:3:1: a: the key 'a' is given twice, first in line 1. Keep one of them; this one is ignored.",
            {"a": 1, "b": 2},
        ),
        (b"1: x\na: 2\n", "f.yaml:1:1: the key 1 is not a text. Put the key into quotes.", {"a": 2}),
        (b"true: x\n", "f.yaml:1:1: the key True is not a text. Put the key into quotes.", {}),
        (b"? [a]\n: b\nc: d\n", "f.yaml:1:3: a key that is a list or a mapping is not a text", {"c": "d"}),
        (b"<<: {a: 1}\nb: 2\n", "f.yaml:1:1: merge keys ('<<') are not supported", {"b": 2}),
        (b"a: 1\n---\nb: 2\n", "f.yaml:2:1: a second YAML document ('---'), which is ignored", {"a": 1}),
        (b"a: " + b"1" * 100, "f.yaml:1:4: a: the number '1111", {"a": None}),
    ],
)
def test_what_costs_only_itself(content, expected, data):
    document = read_yaml(content, "f.yaml")
    assert not document.broken
    assert document.data == data
    (problem,) = said(document)
    assert problem.startswith(expected)


def test_a_key_given_twice_spoils_the_entry_that_it_stands_in():
    document = read_yaml(b"hooks:\n- {a: 1}\n- {a: 1, a: 2}\n", "f.yaml")
    assert not document.spoiled(("hooks", 0))
    assert document.spoiled(("hooks", 1))
    assert said(document)[0].startswith(
        "f.yaml:3:10: hooks[1].a: the key 'a' is given twice, first in line 3"
    )


def test_small_aliases_are_fine():
    document = read_yaml(b"a: &x [1, {b: 2}]\nc: *x\nd: [*x, *x]\n", "f.yaml")
    assert document.data["d"] == [[1, {"b": 2}]] * 2
    assert document.at(("d", 1, 1, "b")) == (1, 15)
    document.data["c"].append(3)
    assert document.data["a"] == [1, {"b": 2}]


def test_an_alias_bomb_ends_early():
    lines = ["a: &a [1, 1, 1, 1, 1, 1, 1, 1, 1, 1]"]
    for before, name in zip("abcdefgh", "bcdefghi", strict=True):
        lines.append(f"{name}: &{name} [{', '.join([f'*{before}'] * 10)}]")
    document = read_yaml("\n".join(lines).encode(), "f.yaml")
    assert document.broken
    assert said(document)[0].startswith(f"f.yaml:5:8: more than {MAX_NODES:,} values")


def test_an_alias_bomb_in_depth_ends_early():
    lines = ["a0: &a0 [1]"] + [f"a{i}: &a{i} [[[[*a{i - 1}]]]]" for i in range(1, 100)]
    document = read_yaml("\n".join(lines).encode(), "f.yaml")
    assert document.broken
    assert f"nested deeper than {MAX_DEPTH} levels" in said(document)[0]


def test_too_many_values_end_early():
    document = read_yaml(b"a:\n" + b"- 1\n" * 200_000, "f.yaml")
    assert document.broken
    assert f"more than {MAX_NODES:,} values" in said(document)[0]


@pytest.mark.parametrize("content", [b"", b"# nothing\n", b"---\n", b"~\n", b"{}\n"])
def test_an_empty_file_is_an_empty_configuration(content):
    document = read_yaml(content, "f.yaml")
    assert (document.data, document.broken, said(document)) == ({}, False, [])


@given(st.binary(max_size=300))
@example(b"\xef\xbb\xbf")
@example(b"%YAML 1." + b"9" * 5000 + b"\n---\na: 1")
@example(b'"\\xZZ"')
@example(b"!<%ff>")
@example(b"&a &b c: d")
def test_any_bytes_are_data_or_a_problem(content):
    for document in (read_yaml(content, "f"), read_toml(b"[tool.hookturn]\n" + content, "f")):
        if document is not None:
            assert isinstance(document.data, dict)
            assert not (document.broken and not document.problems)
            for problem in document.problems:
                assert str(problem).isprintable()
            json.dumps([problem.to_json() for problem in document.problems])


@given(st.text(alphabet="ab:-[]{},&*!|>'\"%#?\n \t\\<~@`=.0", max_size=60))
def test_any_yaml_like_text_is_data_or_a_problem(text):
    document = read_yaml(text.encode(), "f")
    assert isinstance(document.data, dict)
    json.dumps(document.data)


words = st.text(alphabet=st.characters(codec="utf-8", exclude_categories=["Cs", "Cc"]), max_size=8)
values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | words,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(words, inner, max_size=4),
    max_leaves=20,
)


def places(data, path=()):
    yield path, data
    for key, item in (
        data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    ):
        yield from places(item, (*path, key))


@given(st.dictionaries(words, values, max_size=5))
def test_json_is_yaml_and_every_place_is_right(data):
    text = json.dumps(data, ensure_ascii=True, indent=1)
    document = read_yaml(text.encode(), "f")
    assert document.data == data
    lines = text.splitlines()
    for path, value in places(data):
        line, column = document.at(path)
        rest = lines[line - 1][column - 1 :]
        assert rest.startswith(
            json.dumps(value)[:1] if isinstance(value, (dict, list)) else json.dumps(value)
        )
        if path and isinstance(path[-1], str):
            line, column = document.at(path, key=True)
            assert lines[line - 1][column - 1 :].startswith(json.dumps(path[-1]))


# -- TOML -------------------------------------------------------------------------------------------

TOML = """\
[project]
name = "x"   # [tool.hookturn] is not here
text = \"\"\"
[tool.hookturn]
mode = "wrong" \\\"\"\"
\"\"\"

[tool.hookturn]
mode = "enforce"
permissions = { deny = ["bash(rm *)", 'x'], ask = [] }
hooks = [
  { name = "a", run.answer = {deny="x"} },   # the first
  {name='b', timings=["x", "y"]},
]
"quoted key" = 1
[tool.hookturn.plugins.audit-log]
path = 'x'
when = 2024-01-01T00:00:00Z
[[tool.hookturn.dialects]]
a = 1
[[tool.hookturn.dialects]]
a = 2
[tool.hookturn.dialects.sub]
b = true
[tool.other]
mode = 3
"""


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_toml_places(end):
    document = read_toml(TOML.replace("\n", end).encode(), "pyproject.toml")
    assert said(document) == []
    assert document.data["hooks"][1] == {"name": "b", "timings": ["x", "y"]}
    assert document.data["plugins"]["audit-log"]["when"] == "2024-01-01T00:00:00+00:00"
    assert document.at(()) == (8, 1)
    assert document.at(("mode",), key=True) == (9, 1)
    assert document.at(("mode",)) == (9, 8)
    assert document.at(("permissions", "deny", 1)) == (10, 39)
    assert document.at(("hooks", 0, "run", "answer", "deny"), key=True) == (12, 31)
    assert document.at(("hooks", 1, "timings", 1)) == (13, 28)
    assert document.at(("quoted key",), key=True) == (15, 1)
    assert document.at(("plugins", "audit-log"), key=True) == (16, 1)
    assert document.at(("dialects", 1, "a")) == (22, 5)
    assert document.at(("dialects", 1, "sub", "b")) == (24, 5)
    problem = document.problem(("hooks", 1, "timings", 1), "why", "Do.")
    assert str(problem) == "pyproject.toml:13:28: tool.hookturn.hooks[1].timings[1]: why. Do."


@pytest.mark.parametrize(
    ("content", "expected"),
    [
        (b"[tool.hookturn]\nmode = \n", "pyproject.toml:2:8: not TOML: Invalid value"),
        (b"[tool.hookturn]\na = 1\na = 2\n", "pyproject.toml:3:6: not TOML: Cannot overwrite a value"),
        (b"[tool]\nhookturn = 3\n", "pyproject.toml:2:1: tool.hookturn must be a table, got a number"),
        (b"[tool.hookturn]\na = '\xff'\n", "pyproject.toml:2:6: not UTF-8"),
        (b"[tool.hookturn]\na = " + b"[" * 50_000, "pyproject.toml:1:1: not TOML: "),
        (
            b"[tool.hookturn]\na = " + b"[" * 60 + b"]" * 60,
            "pyproject.toml:1:1: more than 20,000 values or nested",
        ),
        (b"[tool.hookturn]\na = " + b"9" * 5_000, "pyproject.toml:1:1: not TOML"),
    ],
    ids=range(7),
)
def test_what_is_wrong_with_a_toml_file(content, expected):
    document = read_toml(content, "pyproject.toml")
    assert document.broken
    assert document.data == {}
    assert said(document)[0].startswith(expected)


@pytest.mark.parametrize(
    "content", [b"", b"[project]\nname = 'x'\n", b"[tool.other]\n", b"not toml at all ]["]
)
def test_a_toml_file_that_does_not_speak_of_us_is_left_alone(content):
    assert read_toml(content, "pyproject.toml") is None


def to_toml(value):
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(key)} = {to_toml(item)}" for key, item in value.items()) + "}"
    if isinstance(value, list):
        return "[" + ",\n  ".join(map(to_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=True)


plain = st.text(alphabet="ab #'=[].{},\t", max_size=6)
toml_values = st.recursive(
    st.booleans() | st.integers(-1000, 1000) | plain,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(plain, st.integers() | plain, max_size=3),
    max_leaves=10,
)


@given(st.dictionaries(plain, toml_values, max_size=5))
def test_every_toml_place_is_right(data):
    text = "[tool.hookturn]\n" + "".join(
        f"{json.dumps(key)} = {to_toml(item)}\n" for key, item in data.items()
    )
    document = read_toml(text.encode(), "f")
    assert document.data == data
    lines = text.splitlines()
    for path, value in places(data):
        if not path:
            continue
        line, column = document.at(path)
        assert lines[line - 1][column - 1 :].startswith(to_toml(value).split("\n")[0])
