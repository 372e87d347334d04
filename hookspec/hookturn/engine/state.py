"""Values that outlive a call: ``ctx.state``, ``ctx.store`` and the state of sessions.

In memory without a state folder; else JSON files below it, changed under a
lock that holds over threads and processes and replaced whole (sessions:
``journal``).
"""

from __future__ import annotations

import os
from threading import Lock, RLock

from ..paths import TRIES, FileLock, open_private, private_folder, safe_component, write_private
from ..quick import dumps, loads
from .history import apply

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike
    from typing import Any


OWN_AREA = "runs"
"""Where the engine keeps sessions; all other areas are hooks'."""

MOST_STORES = 10_000
"""Stores that are kept open."""


class LiveValues:
    """Values in this process as they are, without copies: for the engine's own use."""

    trouble, unread, drops = "", None, 0

    def __init__(self) -> None:
        self._lock = RLock()
        self._values: dict[str, Any] = {}

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of ``key``, or ``default``."""
        with self._lock:
            return self._values.get(key, default)

    def look(self) -> Mapping[str, Any]:
        """Return all values as they are now."""
        return self._values

    @property
    def known(self) -> Mapping[str, Any]:
        """All values as they are now."""
        return self._values

    @property
    def histories(self) -> LiveValues:
        """The transaction, for changes of histories; it costs the same whatever is changed."""
        return self

    def change(self, change: list[Any]) -> None:
        """Change a turn's history (see ``history.apply``), inside a ``with``."""
        apply(self._values, change)

    def __enter__(self) -> dict[str, Any]:
        self._lock.acquire()
        return self._values

    def __exit__(self, *exception: object) -> None:
        self._lock.release()


class MemoryValues:
    """A store of JSON values in this process, safe over threads; it behaves as one in a file does."""

    def __init__(self) -> None:
        self._lock = RLock()
        self._depth = 0  # how often the holding thread entered
        self._before: dict[str, Any] = {}
        self._values: dict[str, Any] = {}

    def get(self, key: str, default: Any = None) -> Any:
        """Return a copy of the value of ``key``, or ``default``."""
        with self._lock:
            return _json_copy(self._values[key]) if key in self._values else default

    def set(self, key: str, value: Any) -> None:
        """Store a JSON value.

        Raises:
            TypeError, ValueError: for anything that JSON cannot hold.
        """
        copy = _json_copy(value)
        with self._lock:
            self._values[key] = copy

    def add(self, key: str, amount: float = 1) -> float:
        """Add to a number, atomically, and return the new one; a missing key counts as 0."""
        with self._lock:
            total: float = self._values.get(key, 0) + amount
            self._values[key] = total
            return total

    def delete(self, key: str) -> None:
        """Forget ``key``, if it is there."""
        with self._lock:
            self._values.pop(key, None)

    def __enter__(self) -> dict[str, Any]:
        self._lock.acquire()
        if self._depth == 0:
            self._before = _json_copy(self._values)
        self._depth += 1
        return self._values

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._depth -= 1
        try:
            if self._depth == 0:
                changed, self._values = self._values, self._before
                if kind is None:
                    self._values = _json_copy(changed)
        finally:
            self._lock.release()


class FileValues:
    """A store of JSON values in one file, safe over threads and processes.

    Parameters:
        path: the JSON file; its folder is made when needed.
        base: the folder below which no symbolic link is followed.
    """

    def __init__(self, path: str, base: str | PathLike[str]) -> None:
        self.path = path
        self._stem = path.removesuffix(".json")
        self._base = base
        self._threads = RLock()
        self._depth = 0  # how often the holding thread entered
        self._held: Any = None  # the lock over processes
        self._values: dict[str, Any] = {}

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of ``key``, or ``default``."""
        with self._threads:
            # The file is replaced whole, so reading needs no lock over processes.
            return (self._values if self._depth else self._load()).get(key, default)

    def set(self, key: str, value: Any) -> None:
        """Store a JSON value.

        Raises:
            TypeError, ValueError: for anything that JSON cannot hold.
        """
        with self as values:
            values[key] = _json_copy(value)

    def add(self, key: str, amount: float = 1) -> float:
        """Add to a number, atomically, and return the new one; a missing key counts as 0."""
        with self as values:
            total: float = values.get(key, 0) + amount
            values[key] = total
            return total

    def delete(self, key: str) -> None:
        """Forget ``key``, if it is there."""
        with self as values:
            values.pop(key, None)

    def __enter__(self) -> dict[str, Any]:
        self._threads.acquire()
        try:
            if self._depth == 0:
                self._held = self._lock()
                try:
                    self._values = self._load()
                except BaseException:
                    self._held.__exit__(None, None, None)
                    raise
            self._depth += 1
        except BaseException:
            self._threads.release()
            raise
        return self._values

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        self._depth -= 1
        try:
            if self._depth == 0:
                try:
                    if kind is None:
                        self._save(self._values)
                finally:
                    self._values = {}
                    self._held.__exit__(None, None, None)
        finally:
            self._threads.release()

    def _lock(self) -> Any:
        """Take the lock over processes."""
        left = TRIES
        while True:
            try:
                private_folder(os.path.dirname(self.path), base=self._base)
                return FileLock(f"{self._stem}.lock").__enter__()
            except FileNotFoundError:  # the folder was swept away just now, or can never be made
                left -= 1
                if not left:
                    raise

    def _load(self) -> dict[str, Any]:
        try:
            with open(open_private(self.path, base=self._base), "rb") as file:
                values = loads(file.read())
        except FileNotFoundError:
            return {}
        except (ValueError, RecursionError):
            values = None
        if isinstance(values, dict):
            return values
        # Files are replaced whole, so this one was damaged by other means; keep it for a look.
        os.replace(self.path, f"{self._stem}.damaged")
        return {}

    def _save(self, values: dict[str, Any]) -> None:
        write_private(self.path, dumps(values, allow_nan=False).encode(), base=self._base)


def _json_copy(value: Any) -> Any:
    if value is None or value.__class__ in (str, bool):
        return value
    return loads(dumps(value, allow_nan=False))


class Stores:
    """Makes and keeps the value stores of one engine.

    Parameters:
        folder: the state folder, or None for memory only.
    """

    def __init__(self, folder: str | PathLike[str] | None) -> None:
        self.folder = folder
        self._lock = Lock()
        self._open: dict[str, dict[tuple[str, str], Any]] = {}  # by session
        self._count = 0

    def values(self, area: str, hook: str, session: str = "") -> Any:
        """Return the store of a hook (``state`` in a session, ``store`` in the project)."""
        stores = self._open.get(session)
        found = stores.get((area, hook)) if stores is not None else None
        if found is None:
            with self._lock:
                found = self._open.setdefault(session, {}).get((area, hook))
                if found is None:
                    if self._count >= MOST_STORES and self.folder is not None:
                        self._open = {session: {}}  # file stores can be opened again
                        self._count = 0
                    found = self._open[session][area, hook] = self._make(area, hook, session)
                    self._count += 1
        return found

    def forget(self, session: str) -> None:
        """Let go of a session's stores (their files stay until the session's folder is cleaned)."""
        if not session:
            return
        with self._lock:
            gone = self._open.pop(session, {})
            self._count -= len(gone)
        for (area, _), store in gone.items():
            if area == OWN_AREA and self.folder is not None:
                store.close()

    def _make(self, area: str, hook: str, session: str) -> Any:
        if self.folder is None:
            return MemoryValues()
        name = safe_component(hook)
        if not session:
            return FileValues(os.path.join(self.folder, area, f"{name}.json"), self.folder)
        path = os.path.join(self.folder, area, safe_component(session), name)
        if area == OWN_AREA:
            from .journal import Journal

            return Journal(f"{path}.jsonl", self.folder)
        return FileValues(f"{path}.json", self.folder)
