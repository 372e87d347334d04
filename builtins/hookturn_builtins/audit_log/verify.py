"""Verifies a trail: reads all its files in order and names the first line that is not what was written there."""

from __future__ import annotations

import os
from json import loads

from .chain import GENESIS, hash_block, torn, whole
from .trail import segments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any


class Report:
    """What ``verify`` found.

    Attributes:
        ok: whether every line is where and as it was written.
        file, line, cause: the first bad line (from 1) and what is wrong with it; "" and 0 when there is none.
        files: the files read, oldest first.
        records: whole lines read.
        torn: lines that crashes cut off; they are evidence, not damage.
        pruned: name of the older file that the first one continues, when that is gone; else "".
        size: bytes read.
        head: what the next line would be chained to; compare it with a value kept elsewhere to find a cut-off end.
    """

    def __init__(self) -> None:
        self.ok = True
        self.file = ""
        self.line = 0
        self.cause = ""
        self.files: list[str] = []
        self.records = 0
        self.torn = 0
        self.pruned = ""
        self.size = 0
        self.head = GENESIS

    def bad(self, file: str, line: int, cause: str) -> Report:
        """Note the first bad line."""
        self.ok, self.file, self.line, self.cause = False, file, line, cause
        return self

    def to_json(self) -> dict[str, Any]:
        """Return all fields as JSON can hold them."""
        return {"schema": 1, **vars(self)}


def verify(path: str | os.PathLike[str]) -> Report:
    """Verify a trail with all its older files.

    Parameters:
        path: the file that is written to, such as ``.hookturn/audit.jsonl``.

    Raises:
        OSError: when a file cannot be read; FileNotFoundError when there is no trail.
    """
    report = Report()
    path = os.path.abspath(path)
    report.files = segments(path)
    if os.path.lexists(path):
        report.files.append(path)
    if not report.files:
        raise FileNotFoundError(2, "there is no trail", path)
    head = GENESIS  # of the last whole line, or of the block that it and the torn lines after it make
    block: list[bytes] = []  # that line and the torn ones
    places: list[tuple[str, int]] = []  # of the torn ones
    for file in report.files:
        number = 0
        for line, closed in _lines(file):
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
            if not head:
                head = hash_block(block)
            record = loads(line)
            if record.get("prev") != head:
                if (
                    not report.records
                    and record.get("follows")
                    and record["follows"] not in _names(report, file)
                ):
                    # Whoever removes the oldest files leaves this trace of them.
                    report.pruned = str(record["follows"])
                elif places:
                    return report.bad(*places[0], "a torn line, or the one before it, was changed or removed")
                elif not report.records:
                    return report.bad(
                        file, number, "the trail does not begin here: lines before it are missing"
                    )
                else:
                    return report.bad(
                        file, number, "not chained to the line before: lines were removed, put in or moved"
                    )
            elif record.get("torn", 0) != len(places):
                return report.bad(
                    file, number, f"names {record.get('torn', 0)} torn lines where {len(places)} stand"
                )
            report.records += 1
            head = digest
            block = [line]
            places = []
    report.head = head or hash_block(block)
    return report


def _names(report: Report, file: str) -> list[str]:
    return [os.path.basename(other) for other in report.files[: report.files.index(file)]]


def _lines(path: str) -> Iterator[tuple[bytes, bool]]:
    """Yield each line without its newline, and whether it has one."""
    with open(path, "rb") as file:
        for line in file:
            if line.endswith(b"\n"):
                yield line[:-1], True
            else:
                yield line, False
