"""JSON and SHA-256 without the standard library's modules are what those give."""

import hashlib
import json
import math
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn import quick

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(st.characters(codec=None)),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
)
BROKEN = [
    "",
    " ",
    "{",
    '{"a": 1',
    '{"a": 1} x',
    "nul",
    '{"a":1,}',
    '"\n"',
    "[1 2]",
    b"\xef\xbb\xbf{}",
    b'{"\xff": 1}',
    "\ufeff{}",
    "[" * 100_000,
]
TEXTS = [
    "1",
    " [1] ",
    "\n{}\t",
    b' {"a": [1.5e3, -0]}',
    b"[]\r\n",
    "NaN",
    "[Infinity, -Infinity]",
    '"\\ud800"',
    b'["\xed\xa0\x80"]',
    '{"a": 1, "a": 2}',
    "[1]".encode("utf-16"),
    "[1]".encode("utf-16-le"),
    "{}".encode("utf-32-be"),
    "123456789012345678901234567890",
    "\u00a0[1]",
]


def outcome(function, *args, **kwargs):
    try:
        return repr(function(*args, **kwargs))
    except (ValueError, TypeError, RecursionError) as error:
        return type(error), str(error) if not isinstance(error, RecursionError) else ""


@given(VALUES)
def test_values(value):
    text = json.dumps(value)
    assert quick.dumps(value) == text
    assert quick.dumps(value, compact=True) == json.dumps(value, separators=(",", ":"))
    assert repr(quick.loads(text)) == repr(json.loads(text))
    assert repr(quick.loads(text.encode())) == repr(json.loads(text))


@pytest.mark.parametrize("number", range(len(BROKEN + TEXTS)))
def test_texts(number):
    text = (BROKEN + TEXTS)[number]
    assert outcome(quick.loads, text) == outcome(json.loads, text)
    if isinstance(text, str):
        for strict in (False, True):
            real = json.JSONDecoder(strict=strict).raw_decode
            assert outcome(quick.decode, text, strict=strict) == outcome(real, text)


@pytest.mark.parametrize("value", [{1, 2}, [object], {(1, 2): 3}, b"x", {"a": math.nan}], ids=range(5))
def test_what_json_cannot_hold(value):
    assert outcome(quick.dumps, value, allow_nan=False)[0] is outcome(json.dumps, value, allow_nan=False)[0]


def test_a_value_that_holds_itself():
    value = []
    value.append(value)
    assert outcome(quick.dumps, value) == outcome(json.dumps, value)


@pytest.mark.parametrize("data", [b"", b"abc", b"x" * quick.LARGE], ids=["empty", "small", "large"])
def test_sha256(data):
    assert quick.sha256_hex(data) == hashlib.sha256(data).hexdigest()


def test_it_imports_neither_json_nor_hashlib():
    code = (
        f"import sys; sys.path[:] = {[folder for folder in sys.path if folder]!r}\n"
        "from hookturn import quick\n"
        "assert quick.loads(quick.dumps({'a': [1, 'é', None]}, compact=True)) == {'a': [1, 'é', None]}\n"
        "quick.sha256_hex(b'')\n"
        "print([name for name in ('json', 'hashlib', 're', 'enum', '_hashlib') if name in sys.modules])\n"
    )
    done = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, check=True)
    assert done.stdout.split() == [b"[]"]
