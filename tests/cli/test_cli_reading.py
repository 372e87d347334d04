"""Reading events: whatever the bytes are, there is an event or a UsageError, never anything else."""

from __future__ import annotations

import json
from contextlib import suppress

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from hookturn.cli.output import UsageError
from hookturn.cli.reading import make_event, read_fields
from hookturn.spec.timings import TIMINGS

TEXT = st.text(st.characters(codec=None, categories=None), max_size=20)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=10,
)
FIELDS = sorted(
    {field for timing in TIMINGS.values() for field in timing.event._fields} | {"schema", "timing", "mcp"}
)
EVENTS = st.dictionaries(st.sampled_from(FIELDS) | TEXT, JSON, max_size=8)


@pytest.fixture(scope="module")
def file(tmp_path_factory):
    return tmp_path_factory.mktemp("events") / "event.json"


@given(st.binary(max_size=200) | JSON.map(lambda value: json.dumps(value).encode()))
@example(b'{"a": "\\"NaN", "b": NaN}')
@example(b"\xef\xbb\xbf")
@example(b'{"\\ud800": 1e999}')
def test_any_bytes(file, content):
    file.write_bytes(content)
    try:
        fields, name = read_fields(str(file))
    except UsageError as error:
        assert str(file) in str(error)
        assert error.code == 2
    else:
        assert name == str(file)
        assert isinstance(fields, dict)


@given(EVENTS, st.sampled_from(sorted(TIMINGS)), st.none() | TEXT)
def test_any_fields_of_any_timing(fields, timing, agent):
    try:
        event = make_event(TIMINGS[timing], fields, "here", agent)
    except UsageError as error:
        assert "here: " in str(error) or timing == "on_outcome"
        return
    assert event.timing == timing
    assert event.session_id
    if agent is not None:
        assert event.agent == agent
    with suppress(UnicodeEncodeError):
        json.dumps(event.to_json()).encode()


@given(
    st.lists(st.sampled_from(['"x"', '"a\\"NaN"', '"Infinity"', "1", "null"]), max_size=5),
    st.sampled_from(["NaN", "Infinity", "-Infinity"]),
)
def test_the_place_of_what_is_no_json(file, before, word):
    text = (
        "{" + "".join(f'"k{number}": {value},\n' for number, value in enumerate(before)) + f'"bad": {word}}}'
    )
    file.write_text(text)
    with pytest.raises(UsageError) as caught:
        read_fields(str(file))
    column = 8 if before else 9
    assert str(caught.value).startswith(f"{file}:{len(before) + 1}:{column}: {word} is no JSON value")
