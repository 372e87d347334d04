"""What an agent's call needs of ``json``, ``hashlib`` and ``importlib``, by the C code below them.

Importing these two takes regular expressions, enums and OpenSSL along, which is as much as a bare start of the
interpreter; an agent would wait for it at every call. Whatever the C code refuses, or another Python lacks, is left
to the standard library's own modules, so results and errors are theirs.
"""

from __future__ import annotations

from functools import lru_cache
from sys import modules

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

LARGE = 1_000_000
"""Bytes from which OpenSSL's faster code is worth its import."""

_CONSTANTS = {"-Infinity": float("-inf"), "Infinity": float("inf"), "NaN": float("nan")}


class _Scanned:
    """What the C scanner wants to know (see ``json.JSONDecoder``)."""

    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    parse_constant = _CONSTANTS.__getitem__
    memo: dict[str, str]

    def __init__(self, strict: bool) -> None:
        self.strict = strict
        self.memo = {}


@lru_cache
def _scanner(strict: bool) -> Callable[[str, int], tuple[Any, int]]:
    from _json import make_scanner

    context: Any = _Scanned(strict)
    made: Callable[[str, int], tuple[Any, int]] = make_scanner(context)
    return made


def import_module(name: str) -> Any:
    """Import a module by its whole name, as ``importlib.import_module`` does: that one brings ``warnings`` along."""
    __import__(name)
    return modules[name]


def decode(text: str, *, strict: bool = True) -> tuple[Any, int]:
    """Return the JSON value with which a text begins, and where it ends.

    Parameters:
        text: without white space before the value.
        strict: whether strings may hold no control characters.

    Raises:
        json.JSONDecodeError, RecursionError: as ``json`` does.
    """
    try:
        return _scanner(strict)(text, 0)
    except Exception:
        from json import JSONDecoder

        return JSONDecoder(strict=strict).raw_decode(text)


def loads(data: str | bytes) -> Any:
    """Return what ``json.loads`` returns; raises what it raises."""
    text = data
    try:
        if isinstance(text, bytes) and text[:1] in (b"{", b"[") and text[1:2] != b"\0":  # it is UTF-8
            text = text.decode("utf-8", "surrogatepass")
        if isinstance(text, str):
            text = text.strip(" \t\n\r")
            value, end = _scanner(True)(text, 0)
            if end == len(text):
                return value
    except Exception:
        value = None  # json says what is wrong
    import json

    return json.loads(data)


def dumps(value: Any, *, allow_nan: bool = True, compact: bool = False) -> str:
    """Return what ``json.dumps`` returns; raises what it raises.

    Parameters:
        value: anything that JSON can hold.
        allow_nan: whether NaN and infinity may be in it.
        compact: no blanks after separators.
    """
    try:
        return "".join(_encoder(allow_nan, compact)(value, 0))
    except Exception:
        import json

        return json.dumps(value, allow_nan=allow_nan, separators=_separators(compact))


@lru_cache
def _encoder(allow_nan: bool, compact: bool) -> Any:
    from _json import encode_basestring_ascii, make_encoder

    item, colon = _separators(compact)
    # Without marks for circular data it has no state; such data has no end, and json says so.
    return make_encoder(None, _refuse, encode_basestring_ascii, None, colon, item, False, False, allow_nan)


def _separators(compact: bool) -> tuple[str, str]:
    return (",", ":") if compact else (", ", ": ")


def _refuse(value: object) -> None:
    raise TypeError


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of some bytes in hexadecimal digits."""
    small = _small_sha256()
    if small is not None and len(data) < LARGE:
        digest: str = small(data).hexdigest()
        return digest
    from hashlib import sha256

    return sha256(data).hexdigest()


@lru_cache
def _small_sha256() -> Any:
    import sys

    try:
        if sys.version_info >= (3, 12):
            from _sha2 import sha256  # type: ignore[import-not-found,unused-ignore]
        else:
            from _sha256 import sha256  # type: ignore[import-not-found,unused-ignore]
    except ImportError:  # another Python than CPython
        return None
    return sha256
