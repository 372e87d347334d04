"""A session's state in a file to which every change is appended, and which is rewritten now and then.

Replacing a file costs as much as all else in a call (a file system brings the new content to the disk before it
renames it); appending a line costs a tenth of that. Every process that has the file open follows the others' lines.
"""

from __future__ import annotations

import os
from collections import OrderedDict
from errno import ESTALE
from threading import Lock, RLock
from time import time

from .. import platform
from ..paths import (
    HASTE,
    PATIENCE,
    TRIES,
    UnsafePathError,
    lock_within,
    open_private,
    private_folder,
    write_all,
    write_private,
)
from ..quick import dumps, loads, sha256_hex
from . import history

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike
    from typing import Any

REWRITE = 32_768
"""Bytes of a file before it is rewritten at the earliest; it must also be three times what it holds."""

MOST_OPEN = 48
"""Files that stay open, each with its lock; those used longest ago are closed, and opened again when needed."""

_TO_CHANGE = os.O_RDWR | os.O_APPEND

FRESH = 3600.0
"""Seconds after which a change that changes nothing still counts as a sign of life in the file's time."""


def _encode(value: Any) -> str:
    return dumps(value, allow_nan=False, compact=True)


_UNREAD = "what is known of this session cannot be read"
_UNSTORED = "what becomes of this session cannot be stored, and is known to this process only"
_REMEDY = "make room there, let it be read and written, or set HOOKTURN_STATE_DIR to another folder"

_SUM = b',"sum":"'
_SUM_SIZE = len(_SUM) + 8 + 2


def _sealed(body: bytes) -> bytes:
    """Return an object's JSON as a line that tells whether it is as it was written."""
    return b'%s%s%s"}\n' % (body[:-1], _SUM, sha256_hex(body)[:8].encode())


def _unsealed(line: bytes) -> Any:
    body = line[:-_SUM_SIZE] + b"}"
    if _sealed(body) != line + b"\n":
        raise ValueError("this line was changed")
    return loads(body)


_opened: OrderedDict[int, Journal] = OrderedDict()
_opening = Lock()


class Journal:
    """The state of one session, safe over threads and processes, and against a kill at any moment.

    A line is a JSON object: ``state`` replaces all but the histories of turns, ``changes`` are changes of those,
    ``all`` is both; ``sum`` is the beginning of the SHA-256 of the line without it. A last line without its end
    was never finished and does not count. Values are not copied: nobody keeps or changes what he read or stored.

    Where the file cannot be made or written (a full disk, say), transactions go on in this process's memory, and are
    stored as soon as that can be done: without it no hook would be asked. What others store meanwhile takes their
    place; for a user who heeds it at the next ``retry`` only, since in the middle of a call he needs what he did.
    Where the file cannot be read, transactions fail, for what it holds may be a refusal; unless their user heeds that.

    Parameters:
        path: the file; its folder is made when needed.
        base: the folder below which no symbolic link is followed.

    Attributes:
        heeded: whether its user looks at ``unread`` and tells of ``trouble`` himself: what cannot be read counts as
            empty then, until it can be read.
        drops: how often something was forgotten that could not be stored, since others had stored something.
        unread: why it could not be read at the last transaction, or None.
        trouble: what to tell of a state that could not be stored, or "".
    """

    def __init__(self, path: str | PathLike[str], base: str | PathLike[str]) -> None:
        self.path = os.fspath(path)
        self._stem = os.path.splitext(self.path)[0]
        self._base = base
        self._threads = RLock()
        self._depth = 0  # how often the holding thread entered
        self._pid = 0  # a forked child must not share its parent's openings
        self._fd = self._lock_fd = -1
        self._id: tuple[int, int] | None = None  # of the file that ``_fd`` is
        self._writable = True  # whether ``_fd`` is one to write, too
        self._locked = False  # whether the lock is known to be the one beside the file that ``_fd`` is
        self._end = 0  # bytes of it that ``_data`` holds
        self._data: dict[str, Any] = {}
        self._small: Any = None  # what was last stored besides the histories; None before it was looked at
        self._touched = False  # whether a transaction may have changed more than histories
        self._changes: list[Any] = []
        self._rewrite = REWRITE
        self._alone = False  # the transaction is one in memory, without the lock
        self._unsaved = False  # whether ``_data`` holds what the file lacks
        self._before = ""  # what to go back to where that is not in the file
        self.heeded = False
        self.drops = 0
        self.unread: OSError | None = None
        self.trouble = ""

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of ``key``, or ``default``."""
        with self._threads:
            return self.look().get(key, default)

    def look(self) -> Mapping[str, Any]:
        """Return all values as they are now, to be read at once."""
        with self._threads:
            if self._depth == 0:
                try:
                    self._follow()
                except OSError as error:
                    self._go_blind(error)
            return self._data

    @property
    def known(self) -> Mapping[str, Any]:
        """All values as they were at the last look or change of this process."""
        return self._data

    def set(self, key: str, value: Any) -> None:
        """Store a JSON value.

        Raises:
            TypeError, ValueError: for anything that JSON cannot hold.
        """
        with self as data:
            data[key] = value

    def delete(self, key: str) -> None:
        """Forget ``key``, if it is there."""
        with self as data:
            data.pop(key, None)

    def retry(self) -> bool:
        """Store what only memory knows, or forget it where others stored something meanwhile.

        Returns:
            whether all of it is stored.
        """
        with self._threads:
            try:
                lost = self._unsaved and self._overtaken() is None
            except OSError:  # nobody can tell now
                lost = False
            if lost:
                self._drop()
            self._enter(False)
            self._leave(True)
            return not lost and not self.trouble

    def change(self, change: list[Any]) -> None:
        """Change a turn's history (see ``history.apply``), inside a ``with``."""
        history.apply(self._data, change)
        self._changes.append(change)

    @property
    def histories(self) -> Histories:
        """A transaction in which nothing but ``change`` changes anything, which costs less."""
        return Histories(self)

    def __enter__(self) -> dict[str, Any]:
        self._enter(True)
        return self._data

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._leave(kind is None)

    def _enter(self, all_of_it: bool) -> None:
        """Begin a transaction, or go deeper into it; ``all_of_it``: not only histories are going to be changed."""
        self._threads.acquire()
        try:
            if self._depth == 0:
                try:
                    self._lock()
                except OSError as error:
                    self._go_on_without(error)
                if self._alone or self._unsaved:
                    self._before = _encode(self._data)
        except BaseException:
            self._threads.release()
            raise
        self._depth += 1
        if all_of_it and not self._touched:
            try:
                if self._small is None:
                    self._small = loads(_encode(history.small(self._data)))
            except BaseException:
                self._leave(False)
                raise
            self._touched = True

    def _leave(self, good: bool) -> None:
        self._depth -= 1
        try:
            if self._depth == 0:
                stored = False
                try:
                    if good:
                        self._keep()
                        stored = True
                finally:
                    self._changes = []
                    self._touched = False
                    if not stored:  # it was changed in place
                        self._go_back()
                    self._before = ""
                    if self._alone:
                        self._alone = False
                    else:
                        platform.unlock(self._lock_fd)
        finally:
            self._threads.release()

    # -- without the file -----------------------------------------------------------------------

    def _go_on_without(self, error: OSError) -> None:
        """Begin a transaction in memory, since the file cannot be had."""
        try:
            known = self._follow() >= 0 or not _elsewhere(self.path)
        except OSError:
            known = False
        if not known or isinstance(error, UnsafePathError):
            self._go_blind(error)
        self._alone = True
        self._tell(error)

    def _go_blind(self, error: OSError) -> None:
        """Go on without what the file may hold; raises ``error`` unless that is heeded."""
        if not self.heeded:
            raise error
        self.unread = error
        self._tell(error)

    def _keep(self) -> None:
        """Store what has changed, or keep it in memory until that can be done."""
        if self._alone:
            if self._touched or self._changes:
                self._unsaved, self._locked = True, False
            return
        try:
            self._store()
            self.trouble, self.unread = "", None
        except OSError as error:
            self._tell(error)
            self._unsaved, self._locked = True, False

    def _go_back(self) -> None:
        if self._before:
            self._data, self._small = loads(self._before), None
        else:
            self._forget()

    def _tell(self, error: OSError) -> None:
        what = _UNREAD if self.unread is not None else _UNSTORED
        new = not self.trouble
        self.trouble = f"{what} ({error.filename or self.path}: {error.strerror or error}): {_REMEDY}"
        if new and not self.heeded:
            from .capabilities import logger

            logger("hookturn").warning("{}", self.trouble)

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._threads:
            self._close()
        with _opening:
            _opened.pop(id(self), None)

    # -- reading --------------------------------------------------------------------------------

    def _follow(self) -> int:
        """Read what was added since; returns the file's size in bytes, or -1 when it is not there.

        Lines are whole or do not count, so reading needs no lock.
        """
        try:
            found = os.stat(self.path)  # not of the opened file: on a network, a replaced one looks as before
        except (FileNotFoundError, NotADirectoryError):
            self._close_file()
            return -1
        if (found.st_dev, found.st_ino) != self._id or self._pid != os.getpid():
            if self._unsaved:
                return self._adrift(found.st_size)
            try:
                fd = self._opened(0)  # first: where it cannot be read, what was known still is
            except FileNotFoundError:
                self._close_file()
                return -1
            self._close_file()
            found = self._use(fd)
        if found.st_size != self._end:
            if self._unsaved:
                return self._adrift(found.st_size)
            self._read(found.st_size)
        return found.st_size

    def _adrift(self, size: int) -> int:
        """Follow a file of ``size`` bytes that is not as it was when the last change could not be stored."""
        if self.heeded or self._overtaken() is not None:
            return size
        self._drop()
        return self._follow()

    def _drop(self) -> None:
        """Forget what could not be stored."""
        self._unsaved = False
        self.drops += 1
        self._close_file()

    def _read(self, size: int) -> None:
        if size < self._end:  # somebody cut it
            self._forget()
        os.lseek(self._fd, self._end, os.SEEK_SET)
        parts = list(iter(lambda: os.read(self._fd, max(size - self._end, 4096)), b""))
        content = b"".join(parts)
        whole = content.rfind(b"\n") + 1
        if not whole:
            return
        try:
            for line in content[:whole].split(b"\n")[:-1]:
                self._take(_unsealed(line))
        except (ValueError, RecursionError, KeyError, TypeError, AttributeError):
            # Whole lines are right, so this file was damaged by other means; keep it for a look.
            self._close_file()
            os.replace(self.path, f"{self._stem}.damaged")
            return
        self._end += whole
        self._small = None

    def _take(self, line: dict[str, Any]) -> None:
        if "all" in line:
            self._data = dict(line["all"])
        if "state" in line:
            self._data = history.grown(dict(line["state"]), self._data)
        for change in line.get("changes", ()):
            history.apply(self._data, change)

    # -- writing --------------------------------------------------------------------------------

    def _lock(self) -> None:
        """Take the lock over processes, and read what they wrote."""
        for left in reversed(range(TRIES)):
            if self._pid != os.getpid():
                self._close()
                self._pid = os.getpid()
            if self._lock_fd < 0:
                try:
                    private_folder(os.path.dirname(self.path), base=self._base)
                    self._lock_fd = open_private(
                        f"{self._stem}.lock", os.O_RDWR | os.O_CREAT, base=self._base
                    )
                except FileNotFoundError:  # the folder was swept away just now, or can never be made
                    if not left:
                        raise
                    continue
                _used(self)
            lock_within(self._lock_fd, self.path, HASTE if self.trouble else PATIENCE)
            try:
                if self._prepare():
                    return
            except BaseException:
                platform.unlock(self._lock_fd)
                raise
            platform.unlock(self._lock_fd)
            self._close()
        raise OSError(ESTALE, "was removed again and again", self.path)

    def _prepare(self) -> bool:
        """Have the file as it is now; False when somebody removed the folder, lock and all."""
        size = self._follow()
        if not self._locked:  # the file was opened since: its folder goes with lock and file, under the lock
            if not os.fstat(self._lock_fd).st_nlink:
                return False
            if self._unsaved or not self._writable:
                size = self._open_again()
            self._locked = True
        if self._fd < 0:  # not there, or damaged
            self._use(self._opened(os.O_CREAT))
        elif size > self._end:
            os.ftruncate(self._fd, self._end)  # who wrote there was killed
        return True

    def _open_again(self) -> int:
        """Open the file to write what it lacks; returns its size in bytes."""
        end = self._overtaken() if self._unsaved else self._end
        if end is None:
            raise OSError(ESTALE, "others stored something meanwhile", self.path)
        fd = open_private(self.path, _TO_CHANGE | os.O_CREAT, base=self._base)
        if self._fd >= 0:
            os.close(self._fd)
        self._writable, self._end = True, end
        return self._use(fd).st_size

    def _overtaken(self) -> int | None:
        """Return how much of the file, in bytes, memory knows; None when somebody else stored something since."""
        try:
            fd = open_private(self.path, base=self._base)
        except (FileNotFoundError, NotADirectoryError):
            return 0
        with open(fd, "rb") as file:
            found = os.fstat(fd)
            known = (
                self._end if (found.st_dev, found.st_ino) == self._id and found.st_size >= self._end else 0
            )
            file.seek(known)
            return None if b"\n" in file.read() else known

    def _store(self) -> None:
        """Append what has changed, in one line."""
        if self._unsaved:
            if self._end <= self._rewrite or not self._rewritten():
                self._append(_sealed(f'{{"all":{_encode(self._data)}}}'.encode()))
            self._small, self._unsaved = None, False
            return
        text = ""
        parts = []
        if self._touched:
            small = history.small(self._data)
            if small != self._small:
                text = _encode(small)
                parts.append(f'"state":{text}')
        if self._changes:
            parts.append(f'"changes":{_encode(self._changes)}')
        if not parts:
            if time() - os.fstat(self._fd).st_mtime > FRESH:
                os.utime(self.path)
            return
        if self._end > self._rewrite and self._rewritten():
            return
        self._append(_sealed(f"{{{','.join(parts)}}}".encode()))
        if text:
            self._small = loads(text)

    def _append(self, line: bytes) -> None:
        try:
            write_all(self._fd, line)
        except BaseException:
            os.ftruncate(self._fd, self._end)
            raise
        self._end += len(line)

    def _rewritten(self) -> bool:
        """Replace the file by one of a single line, if that is much shorter."""
        line = _sealed(f'{{"all":{_encode(self._data)}}}'.encode())
        self._rewrite = max(REWRITE, 3 * len(line))
        if self._end <= self._rewrite:
            return False
        data = self._data
        try:
            write_private(self.path, line, base=self._base)
        except OSError:  # no room, or (on Windows) somebody has it open: it may wait
            self._rewrite = 2 * self._end
            return False
        self._close_file()
        self._use(self._opened(0))
        self._data, self._end = data, len(line)
        return True

    # -- the opened file ------------------------------------------------------------------------

    def _opened(self, flags: int) -> int:
        """Open the file for ``_use``: to be read only where it cannot be written, to know what it holds."""
        try:
            fd = open_private(self.path, _TO_CHANGE | flags, base=self._base)
            self._writable = True
        except OSError as error:
            if flags or isinstance(error, (FileNotFoundError, UnsafePathError)):
                raise
            fd = open_private(self.path, base=self._base)
            self._writable = False
        return fd

    def _use(self, fd: int) -> os.stat_result:
        self._fd = fd
        found = os.fstat(fd)
        self._id = found.st_dev, found.st_ino
        self._pid = os.getpid()
        _used(self)
        return found

    def _forget(self) -> None:
        self._data, self._end, self._small = {}, 0, None

    def _close_file(self) -> None:
        fd, self._fd, self._locked = self._fd, -1, False
        if not self._unsaved:
            self._id = None
            self._forget()
        if fd >= 0:
            os.close(fd)

    def _close(self) -> None:
        self._close_file()
        fd, self._lock_fd = self._lock_fd, -1
        if fd >= 0:
            os.close(fd)

    def idle(self) -> bool:
        """Close the file unless it is in use; tells whether it was closed."""
        if not self._threads.acquire(blocking=False):
            return False
        try:
            if self._depth:
                return False
            self._close()
            return True
        finally:
            self._threads.release()


class Histories:
    """A transaction that changes histories only: nobody need look whether anything else was changed."""

    __slots__ = ("_journal",)

    def __init__(self, journal: Journal) -> None:
        self._journal = journal

    def __enter__(self) -> dict[str, Any]:
        self._journal._enter(False)
        return self._journal._data

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._journal._leave(kind is None)


def _elsewhere(path: str) -> bool:
    """Whether a path that is not there leads to a disk that is not there, which may have it."""
    path = os.path.abspath(path)
    while not os.path.lexists(path):
        path = os.path.dirname(path)
    return os.path.islink(path) and not os.path.exists(path)


def _used(journal: Journal) -> None:
    """Note that a file is in use, and close those that were not used for longest."""
    with _opening:
        _opened[id(journal)] = journal
        _opened.move_to_end(id(journal))
        if len(_opened) > MOST_OPEN:
            for key, other in list(_opened.items())[: len(_opened) - MOST_OPEN]:
                if other is not journal and other.idle():
                    del _opened[key]
