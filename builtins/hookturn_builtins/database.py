"""SQLite files that the builtins share: private, used by many processes at once, migrated in place, read anywhere.

It knows nothing of what is in them.
"""

from __future__ import annotations

import os
from contextlib import contextmanager

from hookturn.paths import FileLock, open_private

from .places import BUSY_SECONDS, make_folder

TYPE_CHECKING = False
if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
else:
    # The module that sqlite3 is made of: an agent that runs us at each call need not wait for adapters of dates.
    try:
        import _sqlite3 as sqlite3
    except ImportError:  # another Python than CPython
        import sqlite3


class NewerFileError(sqlite3.DatabaseError):
    """A later version of hookturn made the file."""


class Database:
    """An open file.

    Parameters:
        path: the file; it is made when missing (0600, its folder 0700).
        base: a folder that is trusted as it is; nothing below it may be a symbolic link.
        versions: SQL that makes each version of the tables from the one before, the first from nothing.

    Attributes:
        kept: where a damaged file was put aside, when there was one; else "".

    Raises:
        OSError, sqlite3.Error: when it cannot be opened or made.
    """

    def __init__(self, path: str, base: str, versions: Sequence[str]) -> None:
        self.path = path
        self.kept = ""
        make_folder(path, base)
        self._owner = os.getpid()
        # Only one process makes or migrates the file: switching a new one to WAL would fail the others.
        with FileLock(f"{path}.lock", timeout=BUSY_SECONDS):
            try:
                self._connection = self._open(versions)
            except sqlite3.DatabaseError as error:
                if type(error) is not sqlite3.DatabaseError:  # the kinds of it are no damage
                    raise
                self.kept = _put_aside(path)
                self._connection = self._open(versions)

    def _open(self, versions: Sequence[str]) -> sqlite3.Connection:
        if not os.path.exists(self.path):
            # SQLite gives its own files the mode of this one. An existing file must not be opened and
            # closed here: that would drop the locks of another connection in this process.
            os.close(open_private(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL))
        connection = _connect(self.path)
        try:
            # A killed process loses nothing with this; a power cut may cost the last transactions.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            _migrate(connection, versions)
        except BaseException:
            connection.close()
            raise
        return connection

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Give the connection for one transaction: all of it is stored, or nothing.

        Only one thread at a time may be in it.

        Raises:
            sqlite3.Error: when it cannot be written.
        """
        if self._owner != os.getpid():  # SQLite's connections do not survive a fork
            self._connection = _connect(self.path)
            self._owner = os.getpid()
        connection = self._connection
        connection.execute("BEGIN IMMEDIATE")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Close the file."""
        if self._owner == os.getpid():
            self._connection.close()

    def __del__(self) -> None:
        # An engine that nobody closed; an open connection warns from Python 3.13 on.
        if hasattr(self, "_connection"):
            self.close()


def open_to_read(path: str, versions: Sequence[str]) -> sqlite3.Connection:
    """Return a connection that reads a file as if it had the newest tables; the file stays as it is.

    Parameters:
        path: the file.
        versions: as for ``Database``.

    Raises:
        FileNotFoundError: when there is no such file.
        sqlite3.Error: when it is no such file.
    """
    if not os.path.isfile(path):
        raise FileNotFoundError(2, "there is no such file", path)
    try:
        return _reader(path, "mode=rw", versions)
    except sqlite3.OperationalError:
        # In a folder that cannot be written SQLite reads only what it is told not to lock.
        return _reader(path, "mode=ro&immutable=1", versions)


def _reader(path: str, options: str, versions: Sequence[str]) -> sqlite3.Connection:
    from urllib.parse import quote

    connection = sqlite3.connect(f"file:{quote(path)}?{options}", uri=True, timeout=BUSY_SECONDS)
    try:
        version = _version(connection, versions)
        empty = not connection.execute("SELECT count(*) FROM sqlite_master").fetchone()[0]
        if not version and not empty:
            raise sqlite3.DatabaseError("it holds something else")
        if version < len(versions):
            copy = sqlite3.connect(":memory:", isolation_level=None)
            with copy:
                connection.backup(copy)
            connection.close()
            connection = copy
            _migrate(connection, versions)
        connection.row_factory = sqlite3.Row
    except BaseException:
        connection.close()
        raise
    return connection


def _version(connection: sqlite3.Connection, versions: Sequence[str]) -> int:
    found: int = connection.execute("PRAGMA user_version").fetchone()[0]
    if found > len(versions):
        raise NewerFileError(f"a newer hookturn made it (version {found} of its tables)")
    return found


def _migrate(connection: sqlite3.Connection, versions: Sequence[str]) -> None:
    found = _version(connection, versions)
    if found < len(versions):
        steps = "".join(versions[found:])
        connection.executescript(f"BEGIN IMMEDIATE; {steps} PRAGMA user_version = {len(versions)}; COMMIT;")


def _put_aside(path: str) -> str:
    """Give a damaged file, with SQLite's own files beside it, another name, and return that."""
    number = 1
    while os.path.lexists(kept := f"{path}.damaged-{number}"):
        number += 1
    for ending in ("", "-wal", "-shm"):
        if os.path.lexists(path + ending):
            os.rename(path + ending, kept + ending)
    return kept


def _connect(path: str) -> sqlite3.Connection:
    # Autocommit: transactions are begun by hand. The plugins' locks keep their threads apart.
    return sqlite3.connect(path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False)


def sqlite_text(value: str) -> str:
    """Return a text that SQLite takes: lone surrogates are escaped."""
    return value.encode("utf-8", "backslashreplace").decode("utf-8")
