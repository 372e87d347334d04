"""The events of a batch that is not full yet, on the disk: what a killed process collected is sent by a later one.

One file a process and webhook, locked as long as its owner lives. It survives the process, not the machine. An event
may be sent twice when its owner is killed just after it went into the spool, as everything from there may be.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from errno import ESTALE

from ... import platform
from ...paths import TRIES, open_private, private_dir, write_all

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

LONGEST = 64_000_000
"""Bytes of a file that are read."""


class Kept:
    """The file of one batch.

    Parameters:
        state_dir: the project's state folder.
        key: which webhook it is.
    """

    def __init__(self, state_dir: str, key: str) -> None:
        self._base = state_dir
        self._folder = os.path.join(state_dir, "webhooks", "batches")
        self._key = key
        self._path = ""
        self._fd = -1
        self._pid = 0
        self._torn = False  # whether its last line may have no end

    def add(self, rows: list[bytes]) -> None:
        """Keep some events, each one line of JSON.

        Raises:
            OSError: when they cannot be stored.
        """
        if self._fd < 0 or self._pid != os.getpid():  # a forked child has a batch of its own
            self._begin()
        begin, self._torn = b"\n" if self._torn else b"", True
        write_all(self._fd, begin + b"".join(row + b"\n" for row in rows))
        self._torn = False

    def _begin(self) -> None:
        private_dir(self._base)
        private_dir(self._folder, base=self._base)
        for _ in range(TRIES):
            self._path = os.path.join(self._folder, f"{self._key}-{os.urandom(8).hex()}.jsonl")
            fd = open_private(self._path, os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_EXCL, base=self._base)
            platform.lock(fd)
            if os.fstat(fd).st_nlink:
                self._fd, self._pid, self._torn = fd, os.getpid(), False
                return
            os.close(fd)  # somebody took it for one that was left
        raise OSError(ESTALE, "was removed again and again", self._path)

    def forget(self) -> None:
        """Let go of the events: they are in the spool."""
        if self._fd >= 0 and self._pid == os.getpid():
            with suppress(OSError):
                os.unlink(self._path)
        self.leave()

    def leave(self) -> None:
        """Let go of the file: what is in it is for the next process, or the next batch of this one."""
        if self._fd >= 0 and self._pid == os.getpid():
            os.close(self._fd)
        self._fd = -1

    def adopt(self) -> list[dict[str, Any]]:
        """Take over the events of processes that are gone, and return them; those for which there is no room stay."""
        try:
            names = [name for name in os.listdir(self._folder) if name.startswith(f"{self._key}-")]
        except OSError:  # nobody kept anything
            return []
        found: list[dict[str, Any]] = []
        for name in sorted(names):
            path = os.path.join(self._folder, name)
            try:
                fd = open_private(path, os.O_RDWR, base=self._base)
            except OSError:  # another process was faster
                continue
            with open(fd, "rb") as file:
                if path == self._path or not platform.lock(fd, wait=False):
                    continue  # its owner lives
                rows = [row for line in file.read(LONGEST).splitlines() if (row := _row(line)) is not None]
                try:
                    if rows:
                        self.add([json.dumps(row).encode("ascii") for row in rows])
                except OSError:  # another process may have more luck
                    return found
                found += rows
                with suppress(OSError):
                    os.unlink(path)
        return found


def _row(line: bytes) -> dict[str, Any] | None:
    """Return an event, or None for a line that was never finished."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if isinstance(row, dict) else None
