"""The record of what auto-commit did, in ``.hookturn/auto-commit.jsonl``: one JSON object an attempt."""

from __future__ import annotations

import json
import os

from hookturn.paths import FileLock, hookturn_dir, open_private, private_dir, write_all, write_private

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

NAME = "auto-commit.jsonl"
MAX_BYTES = 1_000_000
"""Size at which the older half is dropped."""

BUSY_SECONDS = 10.0
"""How long another session's commit in the same project is waited for."""


def lock(project: str) -> FileLock:
    """Return the lock that one commit or undo at a time holds in a project.

    Raises:
        OSError: when ``.hookturn`` cannot be made.
    """
    return FileLock(os.path.join(hookturn_dir(project), "auto-commit.lock"), timeout=BUSY_SECONDS)


def append(folder: str, record: dict[str, Any]) -> None:
    """Add a record with its schema and time, under ``lock`` where several may write.

    Parameters:
        folder: the project's ``.hookturn``, or a replay's folder.
        record: JSON data.

    Raises:
        OSError: when it cannot be written.
    """
    from time import gmtime, strftime

    record = {"schema": 1, "time": strftime("%Y-%m-%dT%H:%M:%SZ", gmtime()), **record}
    private_dir(folder)
    path = os.path.join(folder, NAME)
    fd = open_private(path, os.O_RDWR | os.O_APPEND | os.O_CREAT)
    try:
        size = os.fstat(fd).st_size
        if size and os.pread(fd, 1, size - 1) != b"\n":  # cut off by a crash or a full disk
            write_all(fd, b"\n")
        write_all(fd, json.dumps(record).encode("ascii") + b"\n")
    finally:
        os.close(fd)
    if size > MAX_BYTES:
        with open(path, "rb") as file:
            lines = file.readlines()
        write_private(path, b"".join(lines[len(lines) // 2 :]))


def read(folder: str) -> list[dict[str, Any]]:
    """Return the records, oldest first; lines that are none are left out.

    Raises:
        OSError: when the file cannot be read.
    """
    records = []
    with os.fdopen(open_private(os.path.join(folder, NAME)), "rb") as file:
        for line in file:
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                continue
            if isinstance(record, dict):
                records.append(record)
    return records
