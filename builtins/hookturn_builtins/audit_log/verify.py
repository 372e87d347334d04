"""Verifies a trail: reads all its files in order and names the first line that is not what was written there."""

from __future__ import annotations

import os
from json import loads

from .chain import GENESIS, hash_block, is_next, torn, whole
from .reading import files, sources

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from typing import Any, BinaryIO


class Report:
    """What ``verify`` found.

    Attributes:
        ok: whether every line is where and as it was written.
        file, line, cause: the first bad line (from 1) and what is wrong with it; "" and 0 when there is none.
        files: the files read, oldest first.
        records: whole lines read.
        written: number of the last record, so how many were ever written.
        torn: lines that crashes cut off; they are evidence, not damage.
        pruned: name of the older file that the first one continues, when that is gone; else "".
        size: bytes read.
        head: what the next line would be chained to.
        anchors: anchors that a record was found for.
        older: anchors of records that are no longer there (see ``pruned``).
    """

    def __init__(self) -> None:
        self.ok = True
        self.file = ""
        self.line = 0
        self.cause = ""
        self.files: list[str] = []
        self.records = 0
        self.written = 0
        self.torn = 0
        self.pruned = ""
        self.size = 0
        self.head = GENESIS
        self.anchors = 0
        self.older = 0

    def bad(self, file: str, line: int, cause: str) -> Report:
        """Note the first bad line."""
        self.ok, self.file, self.line, self.cause = False, file, line, cause
        return self

    def to_json(self) -> dict[str, Any]:
        """Return all fields as JSON can hold them."""
        return {"schema": 1, **vars(self)}


def verify(
    path: str | os.PathLike[str], anchors: Iterable[tuple[int, str]] = (), heads: Iterable[str] = ()
) -> Report:
    """Verify a trail with all its older files.

    Parameters:
        path: the file that is written to, such as ``.hookturn/audit.jsonl``.
        anchors: (number of a record, SHA-256 of its line in hexadecimal digits), as they were kept elsewhere;
            without them a cut-off end cannot be found.
        heads: SHA-256 of lines that have to be there, wherever.

    Raises:
        OSError: when a file cannot be read; FileNotFoundError when there is neither a trail nor an anchor.
    """
    report = Report()
    path = os.path.abspath(path)
    kept = _Kept(anchors, report)
    wanted = set(heads)
    if not files(path):
        if not kept.numbers:
            raise FileNotFoundError(2, "there is no trail", path)
        return kept.gone(path, 0)
    head = GENESIS  # of the last whole line, or of the block that it and the torn lines after it make
    block: list[bytes] = []  # that line and the torn ones
    places: list[tuple[str, int]] = []  # of the torn ones
    file, number = path, 0
    for file, source in sources(path):  # the last one is needed behind the loop
        report.files.append(file)
        number = 0
        for line, closed in _lines(source):
            number += 1
            report.size += len(line) + closed
            digest = whole(line)
            if digest is None:
                if not torn(line, closed=closed):
                    return report.bad(file, number, "the line was changed")
                block.append(line)
                places.append((file, number))
                report.torn += 1
                head = ""
                continue
            if places or not is_next(line, head.encode("ascii"), report.written + 1):
                cause = _odd(line, head or hash_block(block), len(places), report)
                if cause:
                    return report.bad(*(places[0] if cause is _CHANGED_TORN else (file, number)), cause)
            else:
                report.written += 1
            report.records += 1
            if report.written >= kept.next and not kept.agrees(digest):
                return report.bad(
                    file, number, "an anchor names another record here: the trail was rewritten"
                )
            if wanted:
                wanted.discard(digest)
            head = digest
            block = [line]
            places = []
    report.head = head or hash_block(block)
    if kept.numbers:
        return kept.gone(file, number)
    if wanted:
        return report.bad(file, number, f"no record up to here has the hash {min(wanted)}")
    return report


_CHANGED_TORN = "a torn line, or the one before it, was changed or removed"


def _odd(line: bytes, head: str, torn_lines: int, report: Report) -> str:
    """Look closely at a whole line that is no ordinary next one; returns what is wrong with it, or "".

    Parameters:
        line: the line.
        head: what it has to be chained to.
        torn_lines: how many torn lines stand before it.
        report: what was found so far; gets the record's number, and a removed older file's name.
    """
    record = loads(line)
    number = record.get("written")
    before = report.written
    if isinstance(number, int):
        report.written = number
    if record.get("prev") != head:
        if not report.records and record.get("follows") and record["follows"] not in _names(report):
            # Whoever removes the oldest files leaves this trace of them.
            report.pruned = str(record["follows"])
            return ""
        if torn_lines:
            return _CHANGED_TORN
        if not report.records:
            return "the trail does not begin here: lines before it are missing"
        return "not chained to the line before: lines were removed, put in or moved"
    if record.get("torn", 0) != torn_lines:
        return f"names {record.get('torn', 0)} torn lines where {torn_lines} stand"
    if number != before + 1:
        return f"calls itself record {number} where {before + 1} follows"
    return ""


class _Kept:
    """The anchors, in order, while the trail is read.

    Attributes:
        numbers: the records that are still to come, the last first.
        next: the first of them; beyond all numbers when there is none.
    """

    def __init__(self, anchors: Iterable[tuple[int, str]], report: Report) -> None:
        self.report = report
        self.hashes: dict[int, set[str]] = {}
        for number, digest in anchors:
            self.hashes.setdefault(number, set()).add(digest)
        self.numbers = sorted(self.hashes, reverse=True)
        self.next = self.numbers[-1] if self.numbers else _NEVER

    def agrees(self, digest: str) -> bool:
        """Compare a record that an anchor names; those before it are no longer there."""
        while self.numbers and self.numbers[-1] <= self.report.written:
            number = self.numbers.pop()
            if number < self.report.written:
                self.report.older += 1
            elif self.hashes[number] == {digest}:
                self.report.anchors += 1
            else:
                return False
        self.next = self.numbers[-1] if self.numbers else _NEVER
        return True

    def gone(self, file: str, line: int) -> Report:
        """Note that the newest records are missing."""
        named = f"an anchor names {self.numbers[0]:,} records"
        cause = (
            f"the trail is cut off after {self.report.written:,}: {named}" if line else f"it is gone: {named}"
        )
        return self.report.bad(file, line, cause)


_NEVER = 1 << 64


def _names(report: Report) -> list[str]:
    return [os.path.basename(file) for file in report.files[:-1]]


def _lines(source: BinaryIO) -> Iterator[tuple[bytes, bool]]:
    """Yield each line without its newline, and whether it has one."""
    for line in source:
        if line.endswith(b"\n"):
            yield line[:-1], True
        else:
            yield line, False
