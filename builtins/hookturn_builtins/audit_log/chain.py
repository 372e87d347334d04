"""The form of a line and of the chain: how a record becomes a line, and how lines are read back.

A line is canonical JSON (sorted keys, no white space, ASCII). ``prev`` is the
SHA-256 of the raw bytes of the line before; after torn lines, of the last whole
line together with them, and ``torn`` is their number. ``xsum``, always the last
key, is the beginning of the SHA-256 of the line up to it, so that a change of
the last line is found although nothing is chained to it yet.
"""

from __future__ import annotations

import json.encoder
import os
import re
from hashlib import sha256
from json import JSONEncoder

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

GENESIS = "0" * 64
"""``prev`` of the very first line."""

TORN_END = b"#torn"
"""Closes a line that a crash cut off. A line that is neither whole nor closed so was changed."""

_SUM_KEY = b',"xsum":"'
_SUM_LENGTH = 16
_END_SIZE = len(_SUM_KEY) + _SUM_LENGTH + 2
_WHOLE = re.compile(rb',"xsum":"[0-9a-f]{16}"\}')
_WRITTEN = re.compile(rb',"written":([0-9]{1,20})$')
_CHUNK = 4096

_MARK = os.urandom(32).hex()  # stands for the hash until it is known; no payload can have guessed it

_encoder = JSONEncoder(sort_keys=True, separators=(",", ":"), allow_nan=False)
# The encoder makes its C code ready at each call; ours can stay, for it need not look for circular data.
_ready: Any = json.encoder.c_make_encoder and json.encoder.c_make_encoder(  # type: ignore[attr-defined]
    None, _encoder.default, json.encoder.encode_basestring_ascii, None, ":", ",", True, False, False
)


def canonical(value: Any) -> str:
    """Return JSON with sorted keys and without white space; ASCII, so that lone surrogates are valid."""
    return "".join(_ready(value, 0)) if _ready else _encoder.encode(value)


def split(record: Mapping[str, Any]) -> tuple[str, str]:
    """Return the canonical JSON of a record in the two pieces between which the hash of ``prev`` belongs.

    This is the slow part of making a line, and needs no lock.

    Parameters:
        record: with keys that all stand before ``written`` in sorting order.
    """
    head, _, tail = canonical({**record, "prev": _MARK}).partition(_MARK)
    return head, tail[:-1]


def seal(pieces: tuple[str, str], prev: str, written: int) -> tuple[bytes, str]:
    """Return the finished line, without its newline, and its SHA-256.

    Parameters:
        pieces: from ``split``.
        prev: the hash that the line is chained to.
        written: the number of this record in its trail, from 1.
    """
    body = f'{pieces[0]}{prev}{pieces[1]},"written":{written}'.encode("ascii")
    digest = sha256(body)
    end = b'%s%s"}' % (_SUM_KEY, digest.hexdigest()[:_SUM_LENGTH].encode("ascii"))
    digest.update(end)
    return body + end, digest.hexdigest()


def whole(line: bytes) -> str | None:
    """Return the SHA-256 of a whole line, or None when it is torn or was changed."""
    if line[-_END_SIZE : -_SUM_LENGTH - 2] != _SUM_KEY or line[-2:] != b'"}':
        return None
    digest = sha256(line[:-_END_SIZE])
    if digest.hexdigest()[:_SUM_LENGTH].encode("ascii") != line[-_SUM_LENGTH - 2 : -2]:
        return None
    digest.update(line[-_END_SIZE:])
    return digest.hexdigest()


def written(line: bytes) -> int:
    """Return the number of a whole line's record; 0 when it has none."""
    # The end of the line, where no payload can stand.
    found = _WRITTEN.search(line[-_END_SIZE - 40 : -_END_SIZE])
    return int(found[1]) if found else 0


def is_next(line: bytes, prev: bytes, number: int) -> bool:
    """Tell whether a whole line is an ordinary one that follows: quick, and False whenever a closer look is needed.

    Parameters:
        line: a whole line.
        prev: what it has to be chained to, in hexadecimal digits.
        number: the number that its record has to have.
    """
    return (
        line.endswith(b',"written":%d' % number, 0, -_END_SIZE)
        and b',"prev":"%s",' % prev in line
        and b'"torn":' not in line
        and b'"follows":' not in line
    )


def torn(line: bytes, *, closed: bool) -> bool:
    """Tell whether a line that is not whole looks as a crash leaves it, rather than changed by somebody.

    Parameters:
        line: without its newline.
        closed: whether a newline follows it.
    """
    return (not closed or line.endswith(TORN_END)) and _WHOLE.search(line) is None


def hash_block(lines: list[bytes]) -> str:
    """Return what the line after ``lines`` is chained to: a whole line and the torn ones after it."""
    return sha256(b"\n".join(lines)).hexdigest() if lines else GENESIS


class Tail:
    """The end of a file, from its last whole line on.

    Attributes:
        lines: that line and the torn ones after it; only torn ones when ``whole`` is False.
        whole: whether there is a whole line.
        open: whether the last line lacks its newline.
    """

    __slots__ = ("lines", "open", "whole")

    def __init__(self, lines: list[bytes], whole_: bool, open_: bool) -> None:
        self.lines = lines
        self.whole = whole_
        self.open = open_


def read_tail(fd: int, size: int) -> Tail:
    """Read the end of a file back to its last whole line.

    Parameters:
        fd: the file, open for reading.
        size: its size in bytes.
    """
    if size == 0:
        return Tail([], False, False)
    data = b""
    start = size
    while True:
        step = min(max(_CHUNK, len(data)), start)  # doubles, so that a huge line is not joined over and over
        start -= step
        data = _read(fd, step, start) + data
        open_ = data[-1:] != b"\n"
        lines = data.split(b"\n")
        if not open_:
            lines.pop()
        # The first piece is a whole line only where the file begins with it.
        for index in range(len(lines) - 1, 0 if start else -1, -1):
            if whole(lines[index]) is not None:
                return Tail(lines[index:], True, open_)
        if start == 0:
            return Tail(lines, False, open_)


def _read(fd: int, count: int, offset: int) -> bytes:
    os.lseek(fd, offset, os.SEEK_SET)
    data = os.read(fd, count)
    while len(data) < count:
        more = os.read(fd, count - len(data))
        if not more:
            raise OSError(f"the file shrank while it was read at {offset + len(data)}")
        data += more
    return data
