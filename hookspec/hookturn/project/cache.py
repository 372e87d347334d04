"""JSON files in the user's state folder that save work, and whose loss or damage costs nothing but that work."""

from __future__ import annotations

from ..quick import dumps, loads, sha256_hex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KEPT = 64
"""Files of one kind that are kept; the oldest go."""


def path_of(kind: str, key: str) -> str:
    """Return the file for a key (any text) of a kind of things (a plain word)."""
    import os

    from ..paths import state_folder

    digest = sha256_hex(key.encode("utf-8", "surrogatepass"))[:32]
    return os.path.join(state_folder(), "cache", f"{kind}-{digest}.json")


def load(kind: str, key: str) -> Any:
    """Return what was stored, or None when it is missing, damaged, or somebody else's."""
    import os

    from ..paths import open_private
    from ..platform import user_id

    try:
        with open(open_private(path_of(kind, key)), "rb") as file:
            if user_id() not in (None, os.fstat(file.fileno()).st_uid):
                return None
            return loads(file.read())
    except (OSError, ValueError, RecursionError):
        return None


def store(kind: str, key: str, value: Any) -> None:
    """Store a JSON value; where it cannot be written (a read-only home, say), nothing happens."""
    import os

    from ..paths import private_folder, state_folder, write_private

    path = path_of(kind, key)
    try:
        root = private_folder(state_folder())
        folder = private_folder(os.path.dirname(path), base=root)
        new = not os.path.lexists(path)
        write_private(path, dumps(value).encode(), base=root)
        if new:
            _prune(folder, kind)
    except OSError:
        return  # the next run does the work again


def _prune(folder: str, kind: str) -> None:
    import os

    files = [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith(f"{kind}-")]
    if len(files) <= KEPT:
        return

    def age(path: str) -> float:
        try:
            return os.stat(path).st_mtime
        except OSError:
            return 0.0

    for path in sorted(files, key=age)[:-KEPT]:
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue  # another process was faster
