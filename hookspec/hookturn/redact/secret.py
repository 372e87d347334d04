"""Keys that make equal secrets recognisable without showing them, and text that hides itself."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_process_key = b""


def process_key() -> bytes:
    """Return the key of this process: random, so that nothing can be compared from outside."""
    global _process_key
    if not _process_key:
        _process_key = os.urandom(32)
    return _process_key


def marker(rule: str, secret: str, key: bytes) -> str:
    """Return what stands in a text instead of a secret: ``[REDACTED:<rule>:<8 hexadecimal digits>]``."""
    from hmac import digest

    tag = digest(key, secret.encode("utf-8", "surrogatepass"), "sha256").hex()[:8]
    return f"[REDACTED:{rule}:{tag}]"


def workspace_key(folder: str | os.PathLike[str]) -> bytes:
    """Return the key kept in ``folder``, made at first use (0600): equal secrets get equal marks in a workspace.

    Parameters:
        folder: a private folder (see ``hookturn.paths.private_dir``); it is made when missing.

    Raises:
        OSError: when the key can neither be read nor made.
    """
    from ..paths import open_private, private_folder, write_all
    from ..platform import lock

    path = os.path.join(private_folder(folder), "redact.key")
    fd = open_private(path, os.O_RDWR | os.O_CREAT)
    try:
        lock(fd)  # two processes that start at once must not make two keys
        key = os.read(fd, 64)
        if len(key) < 64:  # new, or its maker was killed
            key = os.urandom(32).hex().encode("ascii")
            os.lseek(fd, 0, os.SEEK_SET)
            write_all(fd, key)
            os.fsync(fd)
    finally:
        os.close(fd)
    return bytes.fromhex(key.decode("ascii"))


class Secret(str):
    """Text that shows ``[REDACTED:<name>:...]`` wherever it is printed, formatted, logged or put into JSON.

    As a ``str`` it is the mark, so a mistake shows the mark and not the secret; ``reveal`` gives the
    secret. Copies keep it; pickles hold the mark only.

    Parameters:
        value: the secret.
        name: what stands in the mark: lower case, digits and hyphens.
    """

    __slots__ = ("_value",)

    _value: str

    def __new__(cls, value: str, name: str = "secret") -> Secret:
        secret = super().__new__(cls, marker(name, value, process_key()))
        secret._value = value
        return secret

    def reveal(self) -> str:
        """Return the secret itself."""
        return self._value

    def __copy__(self) -> Secret:
        return self

    def __deepcopy__(self, memo: object) -> Secret:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (str, (str.__str__(self),))

    def __reduce_ex__(self, protocol: object) -> tuple[Any, ...]:
        return self.__reduce__()
