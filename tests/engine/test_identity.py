"""The identity of a call: RFC 8785 (JSON Canonicalization Scheme), against the RFC's own tables and Node."""

from __future__ import annotations

import hashlib
import json
import math
import shutil
import struct
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn.engine.identity import canonical, identity

# RFC 8785 appendix B: IEEE 754 bits and the text.
RFC_NUMBERS = [
    ("0000000000000000", "0"),
    ("8000000000000000", "0"),
    ("0000000000000001", "5e-324"),
    ("8000000000000001", "-5e-324"),
    ("7fefffffffffffff", "1.7976931348623157e+308"),
    ("ffefffffffffffff", "-1.7976931348623157e+308"),
    ("4340000000000000", "9007199254740992"),
    ("c340000000000000", "-9007199254740992"),
    ("4430000000000000", "295147905179352830000"),
    ("44b52d02c7e14af5", "9.999999999999997e+22"),
    ("44b52d02c7e14af6", "1e+23"),
    ("44b52d02c7e14af7", "1.0000000000000001e+23"),
    ("444b1ae4d6e2ef4e", "999999999999999700000"),
    ("444b1ae4d6e2ef4f", "999999999999999900000"),
    ("444b1ae4d6e2ef50", "1e+21"),
    ("3eb0c6f7a0b5ed8c", "9.999999999999997e-7"),
    ("3eb0c6f7a0b5ed8d", "0.000001"),
    ("41b3de4355555553", "333333333.3333332"),
    ("41b3de4355555554", "333333333.33333325"),
    ("41b3de4355555555", "333333333.3333333"),
    ("41b3de4355555556", "333333333.3333334"),
    ("41b3de4355555557", "333333333.33333343"),
    ("becbf647612f3696", "-0.0000033333333333333333"),
    ("43143ff3c1cb0959", "1424953923781206.2"),
]


@pytest.mark.parametrize(("bits", "text"), RFC_NUMBERS)
def test_the_numbers_of_the_rfc(bits, text):
    assert canonical(struct.unpack(">d", bytes.fromhex(bits))[0]) == text


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (333333333.3333333, "333333333.3333333"),
        (1e21, "1e+21"),
        (1e-7, "1e-7"),
        (4.50, "4.5"),
        (2e-3, "0.002"),
        (0.000000000000000000000000001, "1e-27"),
        (1e30, "1e+30"),
        (9.999999999999997e22, "9.999999999999997e+22"),
        (-0.0, "0"),
        (5e-324, "5e-324"),
        (1.7976931348623157e308, "1.7976931348623157e+308"),
        (100.0, "100"),
        (1.0, "1"),
        (-1.5, "-1.5"),
        (1e20, "100000000000000000000"),
        (123456789012345680000.0, "123456789012345680000"),
        (0.1, "0.1"),
        (1e-6, "0.000001"),
        (1.5e-7, "1.5e-7"),
        (0, "0"),
        (-5, "-5"),
        (2**53 - 1, "9007199254740991"),
        (-(2**53 - 1), "-9007199254740991"),
        (True, "true"),
        (False, "false"),
        (None, "null"),
    ],
)
def test_numbers_and_words(value, text):
    assert canonical(value) == text


def test_the_example_of_the_rfc():
    """Section 3.2.2 and 3.2.3."""
    data = json.loads(
        r"""{"numbers": [333333333.33333329, 1E30, 4.50, 2e-3, 0.000000000000000000000000001],
        "string": "\u20ac$\u000F\u000aA'\u0042\u0022\u005c\\\"\/",
        "literals": [null, true, false]}"""
    )
    assert canonical(data) == (
        '{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27],'
        '"string":"€$\\u000f\\nA\'B\\"\\\\\\\\\\"/"}'
    )


def test_keys_are_sorted_by_utf_16_code_units():
    """Section 3.2.3: the smiley's surrogates sort before U+FB33."""
    data = {
        "\u20ac": "Euro Sign",
        "\r": "Carriage Return",
        "\ufb33": "Hebrew Letter Dalet With Dagesh",
        "1": "One",
        "\U0001f600": "Emoji: Grinning Face",
        "\u0080": "Control",
        "\u00f6": "Latin Small Letter O With Diaeresis",
    }
    order = list(json.loads(canonical(data)).values())
    assert order == [
        "Carriage Return",
        "One",
        "Control",
        "Latin Small Letter O With Diaeresis",
        "Euro Sign",
        "Emoji: Grinning Face",
        "Hebrew Letter Dalet With Dagesh",
    ]


@pytest.mark.parametrize(
    ("text", "form"),
    [
        ("\b\f\n\r\t", '"\\b\\f\\n\\r\\t"'),
        ("\0\x01\x1f", '"\\u0000\\u0001\\u001f"'),
        ('"\\/', '"\\"\\\\/"'),
        ("\x7f\x80\u2028\u2029", '"\x7f\x80\u2028\u2029"'),
        ("ö😀", '"ö😀"'),
        ("e\u0301", '"e\u0301"'),
    ],
)
def test_strings(text, form):
    assert canonical(text) == form


texts = st.text(st.characters(exclude_categories=["Cs"]))
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**53) + 1, 2**53 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=15,
)


@given(values)
def test_the_canonical_text_is_the_same_json(value):
    again = json.loads(canonical(value), parse_int=float)  # JSON's numbers are floats there
    assert again == value
    assert canonical(again) == canonical(value)


@given(st.dictionaries(texts, values), st.randoms())
def test_the_order_of_keys_does_not_matter(value, random):
    keys = list(value)
    random.shuffle(keys)
    assert canonical({key: value[key] for key in keys}) == canonical(value)


@given(st.floats(allow_nan=False, allow_infinity=False))
def test_every_float_comes_back(number):
    text = canonical(number)
    assert float(text) == number
    assert canonical(float(text)) == text


@pytest.mark.skipif(shutil.which("node") is None, reason="no node here to compare with")
def test_numbers_and_strings_are_as_node_writes_them():
    import random

    chosen = random.Random(8785)
    numbers = [struct.unpack(">d", chosen.randbytes(8))[0] for _ in range(20_000)]
    numbers += [chosen.uniform(-1, 1) * 10 ** chosen.randint(-25, 25) for _ in range(20_000)]
    numbers += [float(chosen.randint(-(10**22), 10**22)) for _ in range(5_000)]
    numbers += [10.0**power for power in range(-323, 309)]
    numbers = [number for number in numbers if math.isfinite(number)]
    strings = [
        "".join(chr(chosen.choice([chosen.randrange(0x20), chosen.randrange(0x7F, 0xD800), 0x1F600, 0x22, 0x5C])) for _ in range(8))
        for _ in range(2_000)
    ]  # fmt: skip
    program = (
        "const data = JSON.parse(require('fs').readFileSync(0, 'utf8'));"
        "process.stdout.write(JSON.stringify(data.map(item => JSON.stringify(item))))"
    )
    given_to_node = json.dumps([*numbers, *strings])
    done = subprocess.run(
        ["node", "-e", program], input=given_to_node, capture_output=True, text=True, check=True
    )
    theirs = json.loads(done.stdout)
    ours = [canonical(value) for value in [*numbers, *strings]]
    assert [pair for pair in zip(ours, theirs, strict=True) if pair[0] != pair[1]] == []


@pytest.mark.parametrize(
    "value",
    [
        math.nan,
        math.inf,
        -math.inf,
        2**53,
        -(2**53),
        10**5000,
        "\ud800",
        {"\udc00": 1},
        {1: 2},
        {None: 1},
        b"x",
        {1, 2},
        object(),
        [object()],
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_has_no_canonical_form_is_refused_and_still_has_an_identity(value):
    with pytest.raises(ValueError):
        canonical(value)
    text = identity("x", {"value": value})
    assert text.startswith("sha256-escaped:")
    assert text == identity("x", {"value": value})
    assert len(text.split(":")[1]) == 64


def test_an_identity_is_the_sha_256_of_the_canonical_text():
    text = canonical({"tool": "bash", "args": {"command": "ls", "n": 1.0}})
    assert text == '{"args":{"command":"ls","n":1},"tool":"bash"}'
    assert (
        identity("bash", {"n": 1.0, "command": "ls"}) == "sha256:" + hashlib.sha256(text.encode()).hexdigest()
    )


@given(st.dictionaries(texts, values), st.dictionaries(texts, values))
def test_different_arguments_have_different_identities(first, second):
    same = json.loads(canonical(first)) == json.loads(canonical(second))
    assert (identity("x", first) == identity("x", second)) is (same and canonical(first) == canonical(second))
    assert identity("x", first) != identity("y", first)


@pytest.mark.parametrize(
    ("first", "second"),
    [
        ({"a": 10**5000}, {"a": 10**5000 + 1}),
        ({"a": 2**53}, {"a": 2**53 + 1}),
        ({"a": math.nan, "b": 2**60}, {"a": "nan", "b": 2**60}),
        ({"a": "\ud800"}, {"a": "\ud801"}),
        ({"a": "\ud800"}, {"a": "\\ud800"}),
        ({"a": math.inf}, {"a": -math.inf}),
        ({1: "x"}, {"1": "x"}),
        ({"a": b"\xff"}, {"a": b"\xfe"}),
        ({"a": b"x"}, {"a": "x", "b": b"x"}),
    ],
)
def test_nor_do_odd_ones_meet(first, second):
    assert identity("x", first) != identity("x", second)


def test_tuples_are_lists():
    assert identity("x", {"a": (1, 2)}) == identity("x", {"a": [1, 2]})


def test_deep_data():
    deep = []
    for _ in range(150):
        deep = [deep]
    assert canonical(deep).count("[") == 151
