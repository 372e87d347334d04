"""The digest by which rolebox tells whether an installed role is as it was published."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

# The order of ASCII in the Unicode root collation (CLDR): punctuation, symbols, digits, letters.
_ORDER = {character: place for place, character in enumerate(" _-,;:!?.'\"()[]{}@*/\\&#%`^+<=>|~$0123456789")}
_LETTERS = 1_000
_OTHERS = 10_000


def integrity(folder: str) -> str:
    """Return ``sha256-`` and the digest of a role's folder.

    Of each regular file, in the order of its path by the root collation: the path, a NUL, the content.
    Symbolic links are followed; what cannot be read is left out. Source: ``rolebox info --check``.

    Parameters:
        folder: the role's folder.
    """
    from hashlib import sha256

    digest = sha256()
    for name in sorted(_files(folder), key=collation_key):
        try:
            with open(os.path.join(folder, name), "rb") as stream:
                digest.update(name.encode("utf-8", "surrogateescape") + b"\0")
                while block := stream.read(1_048_576):
                    digest.update(block)
        except OSError:
            continue
    return f"sha256-{digest.hexdigest()}"


def _files(folder: str) -> Iterator[str]:
    """Yield the paths of all regular files below a folder, with ``/`` between their parts."""
    seen: set[str] = set()

    def walk(prefix: str) -> Iterator[str]:
        here = os.path.join(folder, prefix)
        real = os.path.realpath(here)
        if real in seen:  # a link that leads back
            return
        seen.add(real)
        try:
            names = sorted(os.listdir(here))
        except OSError:
            return
        for name in names:
            path = os.path.join(here, name)
            if os.path.isdir(path):
                yield from walk(f"{prefix}{name}/")
            elif os.path.isfile(path):
                yield prefix + name

    return walk("")


def collation_key(text: str) -> Any:
    """Return a sort key that orders paths as the Unicode root collation does.

    Letters before case, lower before upper case among equals, ``_`` before ``-`` before ``.``. Exact for
    ASCII and accented Latin letters; other scripts are ordered by code point.
    """
    from unicodedata import combining, normalize

    first: list[int] = []
    accents: list[int] = []
    cases: list[int] = []
    for character in normalize("NFD", text):
        if combining(character):
            accents.append(ord(character))
            continue
        low = character.lower()
        if "a" <= low <= "z":
            first.append(_LETTERS + ord(low))
        else:
            first.append(_ORDER.get(character, _OTHERS + ord(low[0])))
        accents.append(0)
        cases.append(character != low)
    return first, accents, cases, text
