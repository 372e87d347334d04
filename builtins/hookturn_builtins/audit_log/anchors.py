"""Keeps a trail's heads outside the checkout, signed: a chain alone cannot see that its end was cut off.

An anchor is a signed note in the form of a transparency log's checkpoint:
origin, number of records and hash in three lines, then a signature line. The
hash is the last line's, no Merkle root, and the signature is an HMAC with a key
that lies beside the anchors: it shows that this user's hookturn wrote it, to
this user only.

Source: https://c2sp.org/tlog-checkpoint, https://c2sp.org/signed-note (signature type 0xff: not assigned).
"""

from __future__ import annotations

import os
import re
from base64 import b64decode, b64encode
from hashlib import sha256
from hmac import compare_digest, digest

from hookturn.paths import FileLock, open_private, private_dir, project_hash, state_root, write_private

from .trail import head

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .trail import Head

MOST = 500
"""Anchors that are kept of one trail; the oldest go first."""

FILE = "anchors"
KEY = "anchors.key"

_LONGEST = 1 << 20  # bytes of a file with anchors

_DASH = "\u2014"
_KIND = b"\xffhookturn HMAC-SHA256"
_NOTE = re.compile(
    rf"([^\n]+)\n(0|[1-9][0-9]{{0,18}})\n([A-Za-z0-9+/]{{43}}=)\n\n{_DASH} ([^ \n]+) ([A-Za-z0-9+/=]+)\n"
)


class DamagedAnchorsError(Exception):
    """The anchors were changed, or their key.

    Parameters:
        file: the file.
        line: the first bad line, from 1.
        cause: what is wrong with it.
    """

    def __init__(self, file: str, line: int, cause: str) -> None:
        super().__init__(f"{file}:{line}: {cause}")
        self.file = file
        self.line = line
        self.cause = cause


class Anchor:
    """One anchor.

    Attributes:
        number: the record that it names.
        hash: the SHA-256 of that record's line, hexadecimal.
        note: the whole note.
    """

    __slots__ = ("hash", "note", "number")

    def __init__(self, number: int, hash: str, note: str) -> None:
        self.number = number
        self.hash = hash
        self.note = note

    def names(self, newest: Head) -> bool:
        """Tell whether it is an anchor of this head."""
        return (self.number, self.hash) == (newest.written, newest.hash)


class Anchors:
    """The anchors of one trail, in the user's state folder.

    Parameters:
        path: the trail's file.

    Attributes:
        folder: where they, their key and the trail's index are.
        file: their file.
        highest: after ``add``, the highest number that an anchor names.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = os.path.abspath(path)
        name = project_hash(self.path)
        self.origin = f"hookturn/audit/{name}"
        self.folder = os.path.join(state_root(), "audit", name)
        self.file = os.path.join(self.folder, FILE)
        self.highest = 0

    def read(self) -> list[Anchor]:
        """Return the anchors, oldest first; nothing is written.

        Raises:
            DamagedAnchorsError: when they were not written by this user's hookturn, or not for this trail.
            OSError: when they cannot be read.
        """
        try:
            text = _read(self.file).decode("utf-8", "replace")
        except FileNotFoundError:
            return []
        return self._parse(text, self.file)

    def read_copy(self, file: str) -> list[Anchor]:
        """Return the anchors in a file that was kept somewhere else.

        Raises:
            DamagedAnchorsError: as for ``read``.
            OSError: when the file cannot be read.
        """
        with open(file, "rb") as source:
            text = source.read(_LONGEST).decode("utf-8", "replace")
        return self._parse(text, file)

    def _parse(self, text: str, file: str) -> list[Anchor]:
        key = self._key()
        found = []
        at = 0
        text = text.replace("\r\n", "\n")
        if text and not text.endswith("\n"):
            text += "\n"
        while text[at:].strip("\n"):
            at += len(text[at:]) - len(text[at:].lstrip("\n"))
            line = text.count("\n", 0, at) + 1
            note = _NOTE.match(text, at)
            if note is None:
                raise DamagedAnchorsError(file, line, "this is no anchor")
            origin, number, root, name, signature = note.groups()
            if origin != self.origin or name != self.origin:
                raise DamagedAnchorsError(file, line, f"an anchor of another trail than {self.path}")
            if key is None:
                raise DamagedAnchorsError(file, line, "the key of the anchors is gone: they prove nothing")
            body = note[0][: note[0].index("\n\n") + 1]
            if not _same(signature, self._signed(body, key)):
                raise DamagedAnchorsError(file, line, "the anchor was changed: its signature does not fit")
            found.append(Anchor(int(number), b64decode(root).hex(), note[0]))
            at = note.end()
        return found

    def add(self, *, afresh: bool = False) -> Anchor | None:
        """Anchor the trail's head, and return the anchor; None when there is no record yet.

        Parameters:
            afresh: put the anchors so far aside, so that ``verify`` no longer asks for what they name.

        Raises:
            DamagedAnchorsError: when the anchors so far are damaged; they are kept as they are.
            OSError: when it cannot be written, or the trail not be read.
        """
        if head(self.path) is None:
            if not afresh:
                self.highest = _highest(self.read())
            return None
        private_dir(self.folder)
        with FileLock(os.path.join(self.folder, "lock"), timeout=2):
            if afresh and os.path.lexists(self.file):
                os.replace(self.file, self._aside())
            known = self.read()
            self.highest = _highest(known)
            newest = head(self.path)
            if newest is not None and known and known[-1].names(newest):
                return known[-1]
            newest = head(self.path, durable=True)
            if newest is None:
                return None
            made = self._make(newest)
            self.highest = max(self.highest, made.number)
            notes = [anchor.note for anchor in [*known[1 - MOST :], made]]
            write_private(self.file, "\n".join(notes).encode("utf-8"), durable=True)
        return made

    def _make(self, newest: Head) -> Anchor:
        key = self._key()
        if key is None:
            key = os.urandom(32)
            write_private(os.path.join(self.folder, KEY), key.hex().encode("ascii"), durable=True)
        root = b64encode(bytes.fromhex(newest.hash)).decode("ascii")
        body = f"{self.origin}\n{newest.written}\n{root}\n"
        signature = b64encode(self._signed(body, key)).decode("ascii")
        return Anchor(newest.written, newest.hash, f"{body}\n{_DASH} {self.origin} {signature}\n")

    def _key(self) -> bytes | None:
        """Return the key of the signatures; None when it is missing or damaged."""
        try:
            key = bytes.fromhex(_read(os.path.join(self.folder, KEY)).decode("ascii"))
        except (FileNotFoundError, ValueError):
            return None
        return key if len(key) == 32 else None

    def _signed(self, body: str, key: bytes) -> bytes:
        """Return key id and signature of a note's text."""
        key_id = sha256(self.origin.encode("utf-8") + b"\n" + _KIND + sha256(key).digest()).digest()[:4]
        return key_id + digest(key, body.encode("utf-8"), "sha256")

    def _aside(self) -> str:
        number = 1
        while os.path.lexists(f"{self.file}.{number}"):
            number += 1
        return f"{self.file}.{number}"


def _highest(anchors: list[Anchor]) -> int:
    return max((anchor.number for anchor in anchors), default=0)


def _same(signature: str, expected: bytes) -> bool:
    try:
        return compare_digest(b64decode(signature, validate=True), expected)
    except ValueError:
        return False


def _read(path: str) -> bytes:
    fd = open_private(path)
    with open(fd, "rb") as file:
        return file.read()
