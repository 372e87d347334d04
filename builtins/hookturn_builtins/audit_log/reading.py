"""Reads a trail that others write to: its lines in order, its newest ones, and new ones as they come."""

from __future__ import annotations

import os
from json import JSONDecoder

from .trail import segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any, BinaryIO

POLL_SECONDS = 0.2
"""How often a followed trail is looked at."""

_BLOCK = 1 << 16


def _refuse(constant: str) -> None:
    raise ValueError(f"{constant} is no JSON")


_decode = JSONDecoder(parse_constant=_refuse).decode


def files(path: str | os.PathLike[str]) -> list[str]:
    """Return the trail's files that exist, oldest first."""
    path = os.path.abspath(path)
    found = segments(path)
    if os.path.lexists(path):
        found.append(path)
    return found


def sources(path: str | os.PathLike[str]) -> Iterator[tuple[str, BinaryIO]]:
    """Yield the name of each file and the file, open, oldest first: all there were at one moment, whoever rotates.

    Raises:
        OSError: when one cannot be read.
    """
    path = os.path.abspath(path)
    newest: BinaryIO | None = None
    try:
        try:
            newest = open(path, "rb")  # noqa: SIM115  # first, so that no file comes between it and the list
        except FileNotFoundError:
            if os.path.islink(path):
                raise
        for file in segments(path):
            with open(file, "rb") as source:
                if newest is not None and os.path.sameopenfile(source.fileno(), newest.fileno()):
                    newest.close()
                    newest = None
                yield file, source
        if newest is not None:
            yield path, newest
    finally:
        if newest is not None:
            newest.close()


def lines(path: str | os.PathLike[str]) -> Iterator[bytes]:
    """Yield all lines, oldest first, without their newlines."""
    for _, source in sources(path):
        for line in source:
            yield line.rstrip(b"\n")


def _last(source: BinaryIO, end: int, count: int) -> list[bytes]:
    """Return the last lines of a file's first ``end`` bytes."""
    parts: list[bytes] = []
    ends = 0
    while end and ends <= count:
        step = min(_BLOCK, end)
        end -= step
        source.seek(end)
        parts.append(source.read(step))
        ends += parts[-1].count(b"\n")
    found = b"".join(reversed(parts)).split(b"\n")
    if not found[-1]:
        found.pop()
    return found[-count:] if count > 0 else []


def record_of(line: bytes) -> dict[str, Any] | None:
    """Return the record in a line; None for a torn line, or one that was damaged."""
    try:
        record = _decode(line.decode("utf-8"))
    except (ValueError, RecursionError):
        return None
    return record if isinstance(record, dict) else None


class Follower:
    """Follows a trail over rotation.

    Parameters:
        path: the file that is written to; it may not exist yet.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)
        self._source: BinaryIO | None = None
        self._rest = b""  # of a line whose end is not written yet

    def begin(self, count: int) -> list[bytes]:
        """Return the last ``count`` lines, oldest first; ``read`` goes on behind them."""
        found: list[bytes] = []
        if not self._open(self.path):  # not begun, or being rotated
            before = segments(self.path)
            if before:
                self._open(before[-1])
        source = self._source
        if source is not None:
            end = source.seek(0, os.SEEK_END)
            found = _last(source, end, count)
            source.seek(max(end - 1, 0))
            if end and source.read(1) != b"\n":
                # The last line is being written; it comes with its end.
                self._rest = (found or _last(source, end, 1)).pop()
            source.seek(end)
        for file in reversed(segments(self.path)):
            if len(found) >= count:
                break
            with open(file, "rb") as older:
                if source is None or not os.path.sameopenfile(older.fileno(), source.fileno()):
                    end = older.seek(0, os.SEEK_END)
                    found = [*_last(older, end, count - len(found)), *found]
        return found

    def read(self) -> list[bytes]:
        """Return the lines that came since; an empty list when there are none yet."""
        found = self._more()
        if found or not self._next():
            return found
        return self._more()

    def unfinished(self) -> list[bytes]:
        """Return the last line as far as it is written; an empty list when nothing of it is."""
        return [self._rest] if self._rest else []

    def close(self) -> None:
        """Close the file."""
        if self._source is not None:
            self._source.close()
            self._source = None

    def _more(self) -> list[bytes]:
        source = self._source
        if source is None:
            return []
        if os.fstat(source.fileno()).st_size < source.tell():  # somebody emptied it
            source.seek(0)
            self._rest = b""
        parts = [self._rest]
        while block := source.read(_BLOCK):
            parts.append(block)
            if b"\n" in block:
                break
        found = b"".join(parts).split(b"\n")
        self._rest = found.pop()
        return found

    def _next(self) -> bool:
        """Go on to the file after ours, if ours is finished and there is one."""
        source = self._source
        if source is None:
            begun = files(self.path)
            return bool(begun) and self._open(begun[0])
        before = segments(self.path)
        ours = os.fstat(source.fileno())
        place = next((number for number, file in enumerate(before) if _is(file, ours)), -1)
        if place < 0 and ours.st_nlink:
            return False  # it is still written to, or gets its new name right now
        if source.read(1):  # written before it was rotated, after we looked
            source.seek(-1, os.SEEK_CUR)
            return True
        if 0 <= place < len(before) - 1:
            return self._open(before[place + 1])
        self._source = None
        if self._open(self.path) and segments(self.path) == before:
            source.close()
            return True
        # There is none yet, or another one was begun and ended meanwhile: look again.
        self.close()
        self._source = source
        return False

    def _open(self, file: str) -> bool:
        try:
            source = open(file, "rb")  # noqa: SIM115  # `close` closes it
        except FileNotFoundError:
            return False
        self.close()
        self._source, self._rest = source, b""
        return True


def _is(file: str, ours: os.stat_result) -> bool:
    try:
        return os.path.samestat(os.stat(file), ours)
    except FileNotFoundError:
        return False
