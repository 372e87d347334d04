"""Who may speak HTTP to the resident process: the port and the token, and what a request must show.

Only 127.0.0.1 listens; a request needs the token (a 0600 file of the user's),
names this very host (else a web page could reach it by a name that resolves to
127.0.0.1) and comes from no web page.
"""

from __future__ import annotations

import json
import os

from .. import paths
from ..spec.record import Record
from .web import BadRequest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .web import Head

HOST = "127.0.0.1"

_TOKEN_BYTES = 32


class Door(Record):
    """Where HTTP is spoken, and the word that opens.

    Parameters:
        port: of 127.0.0.1.
        token: for ``Authorization: Bearer TOKEN``.
    """

    port: int
    token: str

    @property
    def url(self) -> str:
        """The address without a path."""
        return f"http://{HOST}:{self.port}"


def path() -> str:
    """Return the file that holds port and token."""
    return os.path.join(paths.state_root(), "serve", "http.json")


def load() -> Door | None:
    """Return what is stored, or None when nothing is, or it cannot be used."""
    try:
        with open(paths.open_private(path()), "rb") as file:
            about = os.fstat(file.fileno())
            data = json.loads(file.read(4096))
        owned = not hasattr(os, "getuid") or about.st_uid == os.getuid()
        if not owned or about.st_mode & 0o077:
            return None
        port, token = data["port"], data["token"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if type(port) is not int or not 0 < port < 65536 or not isinstance(token, str) or len(token) < 32:
        return None
    return Door(port=port, token=token)


def ensure(port: int | None = None) -> Door:
    """Return port and token, made and stored the first time; they stay, for agents' settings hold them.

    Parameters:
        port: the port to use from now on; None keeps the stored one, or takes any that is free.

    Raises:
        OSError: when the file cannot be written.
    """
    root = paths.private_dir(paths.state_root())
    folder = paths.private_dir(os.path.join(root, "serve"), base=root)
    with paths.FileLock(os.path.join(folder, "http.lock"), timeout=10):
        known = load()
        if known is not None and port in (None, known.port):
            return known
        from secrets import token_hex

        token = known.token if known is not None else token_hex(_TOKEN_BYTES)
        door = Door(port=port or _free_port(), token=token)
        data = json.dumps({"port": door.port, "token": door.token}).encode()
        paths.write_private(path(), data, base=root)
        return door


def _free_port() -> int:
    import socket

    with socket.socket() as sock:
        sock.bind((HOST, 0))
        port: int = sock.getsockname()[1]
        return port


def admit(door: Door, head: Head) -> None:
    """Let a request in.

    Raises:
        BadRequest: 421 for another host's name, 403 for a web page, 401 without the token.
    """
    from hmac import compare_digest

    host = head.one("host")
    if host not in (f"{HOST}:{door.port}", f"localhost:{door.port}"):
        raise BadRequest(421, "this is another host")
    if "origin" in head.headers or head.headers.get("sec-fetch-site", ["none"]) != ["none"]:
        raise BadRequest(403, "web pages are not served")
    scheme, _, token = (head.one("authorization") or "").partition(" ")
    given = token.strip().encode("utf-8", "surrogatepass")
    if scheme.lower() != "bearer" or not compare_digest(given, door.token.encode()):
        raise BadRequest(401, "the token is missing or wrong")
