"""Appends records to a chained, rotated file that many processes and threads share.

It knows nothing of hooks: a record is a mapping that JSON can hold.
"""

from __future__ import annotations

import os
import re
import stat
from errno import ENOSPC
from threading import Lock

from hookturn.paths import HASTE, PATIENCE, UnsafePathError, lock_within, open_private, private_folder
from hookturn.platform import sync, unlock

from .chain import GENESIS, TORN_END, Tail, hash_block, read_tail, seal, split, whole, written

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

SYNC_SECONDS = 1.0
"""With durability ``interval``, how old unsynced records may get while records come in."""

DURABILITIES = ("kernel", "interval", "always")
"""``kernel`` survives a killed process; ``interval`` and ``always`` a power cut, but for the last second or not at all."""


class Trail:
    """One audit trail: ``audit.jsonl``, and ``audit.000001.jsonl`` and so on behind it.

    Every append is one ``write`` under the file's lock, so processes never mix
    lines, and a record is in the kernel's hands when ``append`` returns.

    Parameters:
        path: the file that is written to. Its folder is made when missing (0700), the file is 0600.
        base: a folder that is trusted as it is; nothing below it may be a symbolic link. Default: the
            file's folder.
        durability: one of DURABILITIES.
        max_bytes: size at which the file becomes a segment and a new one is begun; 0 for never.

    Attributes:
        written: number of the last record that was appended here.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        base: str | os.PathLike[str] | None = None,
        durability: str = "kernel",
        max_bytes: int = 0,
    ) -> None:
        self.path = os.path.abspath(path)
        self.base = base
        self.durability = durability
        self.max_bytes = max_bytes
        self._threads = Lock()
        self._fd = -1
        self._owner = 0  # the process that opened it: a lock does not keep a forked child out
        self._file: tuple[int, int] = (0, 0)  # device and inode
        self._size = -1  # of the file after our last record; -1 when its end was not read yet
        self._prev = GENESIS
        self.written = 0
        self._synced = 0.0
        self._patience = PATIENCE

    def append(self, record: Mapping[str, Any]) -> str:
        """Write one record behind the last and return the SHA-256 of its line.

        Parameters:
            record: JSON data, secrets already taken out; its keys as ``chain.split`` wants them. ``prev``,
                ``written``, ``xsum``, ``torn`` and ``follows`` are added.

        Raises:
            OSError: when it could not be written; the trail is then as it was before.
        """
        pieces = split(record)
        with self._threads:
            self._acquire()
            try:
                head = self._write(record, pieces)
            except BaseException:
                self._size = -1  # look at the file's end again, whatever happened
                raise
            finally:
                if self._fd >= 0:
                    unlock(self._fd)
            if self.durability != "kernel":
                self._sync()
            return head

    def close(self) -> None:
        """Let go of the file (and bring it to the disk, unless the durability is ``kernel``)."""
        with self._threads:
            if self._fd < 0:
                return
            fd, self._fd = self._fd, -1
            try:
                if self.durability != "kernel" and self._owner == os.getpid():
                    sync(fd)
            finally:
                os.close(fd)

    # -- under the lock -------------------------------------------------------------------------

    def _acquire(self, *, renamed: bool = False) -> None:
        """Hold the lock of the file that has our name now; another process may have rotated or replaced it."""
        if self._fd >= 0 and (renamed or self._owner != os.getpid()):
            self._drop()
        while True:
            if self._fd < 0:
                self._open()
            patience, self._patience = self._patience, HASTE
            lock_within(self._fd, self.path, patience)
            self._patience = PATIENCE
            try:
                found = os.stat(self.path, follow_symlinks=False)
            except FileNotFoundError:
                pass
            except BaseException:
                self._drop()
                raise
            else:
                if (found.st_dev, found.st_ino) == self._file:
                    if found.st_size != self._size:
                        self._size = -1
                    return
            self._drop()

    def _drop(self) -> None:
        """Close the file; that gives its lock back, too."""
        fd, self._fd = self._fd, -1
        os.close(fd)

    def _open(self) -> None:
        flags = os.O_RDWR | os.O_APPEND | os.O_CREAT
        try:
            fd = open_private(self.path, flags, base=self.base)
        except FileNotFoundError:
            private_folder(os.path.dirname(self.path), base=self.base)
            fd = open_private(self.path, flags, base=self.base)
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode):
            os.close(fd)
            raise UnsafePathError(self.path, "is no ordinary file")
        self._fd = fd
        self._owner = os.getpid()
        self._file = (found.st_dev, found.st_ino)
        self._size = -1

    def _write(self, record: Mapping[str, Any], pieces: tuple[str, str]) -> str:
        extra = self._read_end() if self._size < 0 else {}
        if self.max_bytes and self._size >= self.max_bytes:
            self._rotate()
            extra = self._read_end()
        if extra:
            pieces = split({**record, **extra})
        line, head = seal(pieces, self._prev, self.written + 1)
        line += b"\n"
        count = os.write(self._fd, line)
        if count != len(line):
            # A full disk or a limit: take the piece back, so that nothing is torn.
            os.ftruncate(self._fd, self._size)
            raise OSError(ENOSPC, f"only {count} of {len(line)} bytes could be written", self.path)
        self._size += count
        self._prev = head
        self.written += 1
        return head

    def _read_end(self) -> dict[str, Any]:
        """Find out what the next line is chained to, repair a torn end, and return the marks for the next line."""
        size = os.fstat(self._fd).st_size
        tail = read_tail(self._fd, size)
        lines = tail.lines
        if tail.open:
            complete = tail.whole and len(lines) == 1
            # A whole line lacks only its newline; a torn one is kept as evidence.
            end = b"\n" if complete else TORN_END + b"\n"
            size += os.write(self._fd, end)
            lines = [*lines[:-1], lines[-1] + end[:-1]]
        extra: dict[str, Any] = {}
        found = tail.whole
        if not found:
            before = segments(self.path)
            if before:
                extra["follows"] = os.path.basename(before[-1])
            while before and not found:  # an older file may hold nothing but torn lines, too
                block = _tail_of(before.pop())
                found = block.whole
                lines = [*block.lines, *lines]
        count = len(lines) - (1 if found else 0)
        if count:
            extra["torn"] = count
        self._prev = hash_block(lines)
        self.written = written(lines[0]) if found else 0
        self._size = size
        return extra

    def _rotate(self) -> None:
        """Give the full file its segment's name, begin another one, and hold that one's lock."""
        if self.durability != "kernel":
            sync(self._fd)
        folder, name = os.path.split(self.path)
        number = max((_number(segment, name) for segment in segments(self.path)), default=0) + 1
        stem, ending = os.path.splitext(name)
        os.rename(self.path, os.path.join(folder, f"{stem}.{number:06d}{ending}"))
        # Others may write to the new file before we have its lock; its end is read like any other's.
        self._acquire(renamed=True)
        if self.durability != "kernel":
            _sync_folder(folder)

    def _sync(self) -> None:
        from time import monotonic

        now = monotonic()
        if self.durability == "always" or now - self._synced >= SYNC_SECONDS:
            self._synced = now
            sync(self._fd)


def _sync_folder(folder: str) -> None:
    fd = os.open(folder, os.O_RDONLY)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def _number(segment: str, name: str) -> int:
    stem, ending = os.path.splitext(name)
    found = re.fullmatch(rf"{re.escape(stem)}\.(\d{{6,}}){re.escape(ending)}", os.path.basename(segment))
    return int(found[1]) if found else 0


def segments(path: str | os.PathLike[str]) -> list[str]:
    """Return the paths of a trail's older files, oldest first: the order is in their names, never in their content."""
    folder, name = os.path.split(os.path.abspath(path))
    try:
        names = os.listdir(folder)
    except FileNotFoundError:
        return []
    numbered = sorted((_number(found, name), found) for found in names)
    return [os.path.join(folder, found) for number, found in numbered if number]


class Head:
    """The last whole record of a trail.

    Attributes:
        written: its number, so how many records were ever written.
        hash: the SHA-256 of its line, hexadecimal.
    """

    __slots__ = ("hash", "written")

    def __init__(self, written: int, hash: str) -> None:
        self.written = written
        self.hash = hash


def head(path: str | os.PathLike[str], *, durable: bool = False) -> Head | None:
    """Return the head of a trail, or None when it has no record. Nothing is written, nothing locked.

    Parameters:
        path: the file that is written to.
        durable: bring its file to the disk first, so that a head that is kept elsewhere is never ahead of it.

    Raises:
        OSError: when a file cannot be read.
    """
    path = os.path.abspath(path)
    for file in reversed([*segments(path), path]):
        try:
            tail = _tail_of(file, durable=durable)
        except FileNotFoundError:  # not begun, or being rotated
            continue
        if tail.whole:
            line = tail.lines[0]
            return Head(written(line), whole(line) or "")
    return None


def _tail_of(path: str, *, durable: bool = False) -> Tail:
    fd = open_private(path)
    try:
        if durable:
            sync(fd)
        return read_tail(fd, os.fstat(fd).st_size)
    finally:
        os.close(fd)
