"""Webhooks that wait on the disk: one file a delivery, in the project's state folder. Sends nothing.

``spool/`` holds what is to be sent, ``dead/`` what was given up. A file is on
the disk under its final name before ``add`` returns; a crash leaves whole files
and, at most, temporary ones. No file holds a secret of the hook: URL, headers
and keys are the configuration's, and are looked up when a delivery is sent.
"""

from __future__ import annotations

import os
from time import time, time_ns

from ..paths import FileLock, open_private, private_dir, safe_component, write_private
from ..spec.record import Record, thaw

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

SCHEMA = 1

MOST = 10_000
"""Deliveries that may wait in a project; more are refused."""

LONGEST_FILE = 64_000_000
"""Bytes of a delivery's file that is read."""

LATEST = 2.0**37
"""Seconds since the epoch that are a time (the year 6325); what lies beyond cannot even be shown."""

LEFTOVER = 3600.0
"""Seconds after which a temporary file belongs to nobody."""


class Delivery(Record):
    """One event that waits to be sent.

    Parameters:
        file: its file's name; names sort by time.
        id: the value of ``webhook-id``, the same at each try.
        key: which webhook it belongs to.
        hook: the webhook's name, for people.
        source: where that is declared, for people.
        origin: where it goes, for people.
        fingerprint: the URL that it was meant for, as a digest.
        created: when it was stored, in seconds since the epoch.
        due: when it is to be sent next.
        tried: how often it was tried.
        error: how the last try went, or "".
        headers: headers of the wire.
        body: the request's body.
    """

    file: str
    id: str
    key: str
    hook: str
    source: str
    origin: str
    fingerprint: str
    created: float
    due: float
    tried: int = 0
    error: str = ""
    headers: dict[str, str] = {}
    body: bytes = b""

    def but(self, **changes: Any) -> Delivery:
        """Return a copy with other values."""
        return Delivery(**{**{name: getattr(self, name) for name in self._fields}, **changes})


class Damaged(ValueError):
    """A file of the spool that cannot be read."""


class Spool:
    """The deliveries of one project.

    Parameters:
        state_dir: the project's state folder; ``webhooks`` is made below it when something is stored.
    """

    def __init__(self, state_dir: str | os.PathLike[str]) -> None:
        self.base = os.fspath(state_dir)
        self.root = os.path.join(self.base, "webhooks")
        self._waiting = os.path.join(self.root, "spool")
        self._dead = os.path.join(self.root, "dead")
        self._count = -1  # how many wait, roughly

    def add(
        self,
        *,
        id: str,
        key: str,
        hook: str,
        source: str,
        origin: str,
        fingerprint: str,
        headers: dict[str, str],
        body: bytes,
    ) -> Delivery:
        """Store a delivery and return it. It survives whatever happens to this process.

        Raises:
            OSError: when it cannot be stored: no space, no rights, or too many wait already.
        """
        if self._count < 0 or self._count % 100 == 99:
            self._count = len(self.waiting())
        if self._count >= MOST:
            self._count = -1  # look again at the next one
            raise OSError(f"{MOST:,} deliveries wait already; see `hookturn webhook list`")
        self._make(self._waiting)
        now = time_ns()
        made = Delivery(
            file=f"{now:020d}-{key}-{safe_component(id)}.json",
            id=id,
            key=key,
            hook=hook,
            source=source,
            origin=origin,
            fingerprint=fingerprint,
            created=now / 1e9,
            due=now / 1e9,
            headers=headers,
            body=body,
        )
        self._write(self._waiting, made)
        self._count += 1
        return made

    def waiting(self) -> list[str]:
        """Return the files of what is to be sent, the oldest first."""
        return _names(self._waiting)

    def dead(self) -> list[str]:
        """Return the files of what was given up, the oldest first."""
        return _names(self._dead)

    def load(self, file: str, *, dead: bool = False) -> Delivery | None:
        """Return a delivery, or None when it is gone.

        Raises:
            Damaged: for a file that is none of ours.
            OSError: for one that cannot be read, or is no regular file.
        """
        import json

        path = os.path.join(self._dead if dead else self._waiting, file)
        try:
            fd = open_private(path, base=self.base)
        except FileNotFoundError:
            return None
        with open(fd, "rb") as stream:
            content = stream.read(LONGEST_FILE + 1)
        try:
            data = json.loads(content)
            if data.pop("schema") != SCHEMA:
                raise ValueError("another schema")
            data["body"] = data["body"].encode("utf-8", "surrogateescape")
            return _sound(Delivery(file=file, **data))
        except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
            raise Damaged(f"{path} is no delivery ({type(error).__name__}: {error})") from None
        except Exception as error:  # a record's own refusal
            raise Damaged(f"{path} is no delivery ({error})") from None

    def update(self, delivery: Delivery, *, dead: bool = False) -> None:
        """Store a delivery's new state."""
        self._write(self._dead if dead else self._waiting, delivery)

    def done(self, delivery: Delivery, *, dead: bool = False) -> None:
        """Forget a delivery that has arrived."""
        self._remove(os.path.join(self._dead if dead else self._waiting, delivery.file))
        self._count -= not dead

    def bury(self, delivery: Delivery) -> None:
        """Give a delivery up: it is kept, and only sent again when somebody asks for it."""
        self._make(self._dead)
        self._write(self._dead, delivery)  # first there, then no longer here: a crash between loses nothing
        self._remove(os.path.join(self._waiting, delivery.file))
        self._count -= 1

    def bury_damaged(self, file: str) -> None:
        """Take a file that cannot be read out of the way."""
        self._make(self._dead)
        os.replace(os.path.join(self._waiting, file), os.path.join(self._dead, file))

    def sweep(self) -> None:
        """Delete temporary files that a killed process left behind."""
        for folder in (self._waiting, self._dead):
            try:
                found = [item for item in os.scandir(folder) if item.name.endswith(".tmp")]
            except OSError:
                continue
            for item in found:
                try:
                    old = time() - item.stat(follow_symlinks=False).st_mtime > LEFTOVER
                except OSError:  # another process was faster
                    continue
                if old:
                    self._remove(item.path)

    def lock(self, timeout: float) -> FileLock:
        """Return the lock of whoever delivers.

        Raises (on entering):
            TimeoutError: when somebody else delivers.
        """
        self._make(self.root)
        return FileLock(os.path.join(self.root, "deliver.lock"), timeout=timeout)

    def _make(self, folder: str) -> None:
        if not os.path.isdir(folder):
            private_dir(self.base)
            private_dir(folder, base=self.base)

    def _write(self, folder: str, delivery: Delivery) -> None:
        import json

        data = {name: thaw(getattr(delivery, name)) for name in delivery._fields if name != "file"}
        data["body"] = delivery.body.decode("utf-8", "surrogateescape")
        content = json.dumps({"schema": SCHEMA, **data}, ensure_ascii=True, indent=1).encode("ascii")
        write_private(os.path.join(folder, delivery.file), content, base=self.base, durable=True)

    @staticmethod
    def _remove(path: str) -> None:
        try:
            os.unlink(path)
        except FileNotFoundError:  # another process was faster
            return


def _sound(delivery: Delivery) -> Delivery:
    """Return a delivery that can be worked with.

    Raises:
        ValueError: its times are none, or its headers no texts.
    """
    if not all(0 <= moment < LATEST for moment in (delivery.created, delivery.due)):  # NaN, too
        raise ValueError("its times are none")
    if not all(isinstance(text, str) for item in delivery.headers.items() for text in item):
        raise ValueError("its headers are no texts")
    return delivery


def _names(folder: str) -> list[str]:
    try:
        return sorted(name for name in os.listdir(folder) if name.endswith(".json") and name[0] != ".")
    except (FileNotFoundError, NotADirectoryError):
        return []
