"""The wire between the thin client and the resident process: requests are read here and answers made.

``thin.frame`` writes requests; it imports nothing, so the two sides of the form are apart.
"""

from __future__ import annotations

import os

from ..spec.record import freeze
from . import thin

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Mapping

MAX_HEAD = 200
"""Bytes of a request's first line."""

MAX_ABOUT = 16 * 1024 * 1024
"""Bytes of all that is no payload; the system itself allows an environment of a few MB (execve(2))."""

MAX_PAYLOAD = 64 * 1024 * 1024 + 1
"""Bytes of a payload: one more than the bridge reads, so that the bridge is who refuses it."""

_KEPT_ENVIRONMENTS = 32


class WireError(Exception):
    """The other side does not speak our protocol; what it wants is unknown."""


class Request:
    """What a thin client asks.

    Attributes:
        identity: its installation, see ``thin.identity``.
        words: its command line.
        cwd: its working folder.
        environ: its environment.
        payload: what its standard input held.
        parent: the process that started it: the agent, or its shell.
    """

    __slots__ = ("cwd", "environ", "identity", "parent", "payload", "words")

    def __init__(
        self,
        identity: bytes,
        words: list[str],
        cwd: str,
        environ: Mapping[str, str],
        payload: bytes,
        parent: int,
    ) -> None:
        self.identity = identity
        self.words = words
        self.cwd = cwd
        self.environ = environ
        self.payload = payload
        self.parent = parent


class Reader:
    """Reads requests, and remembers the environments that agents' hooks have again and again."""

    def __init__(self) -> None:
        self._known: dict[bytes, Mapping[str, str]] = {}

    def read(self, receive: Callable[[int], bytes]) -> Request:
        """Read one request.

        Parameters:
            receive: returns at most so many bytes of the connection; none at its end.

        Raises:
            WireError: when it is none of ours, or ends too soon.
            OSError: whatever ``receive`` raises.
        """
        data = receive(65536)
        while b"\n" not in data[:MAX_HEAD]:
            part = receive(65536) if len(data) < MAX_HEAD else b""
            if not part:
                raise WireError("no request")
            data += part
        head, _, rest = data.partition(b"\n")
        words = head.split(b" ")
        if (
            head[:2] != b"HT"
            or len(words) != 7
            or not all(word.isdigit() for word in (words[0][2:], *words[1:]))
        ):
            raise WireError("no request of ours")
        protocol, parent, *sizes = (int(word) for word in (words[0][2:], *words[1:]))
        if protocol != thin.PROTOCOL:
            raise WireError(f"protocol {protocol}")
        if sum(sizes[:4]) > MAX_ABOUT or sizes[4] > MAX_PAYLOAD:
            raise WireError("too long")
        total = sum(sizes)
        parts, have = [rest], len(rest)
        while have < total:
            part = receive(min(total - have, 1048576))
            if not part:
                raise WireError("cut off")
            parts.append(part)
            have += len(part)
        body = b"".join(parts) if len(parts) > 1 else rest
        fields, place = [], 0
        for size in sizes:
            fields.append(body[place : place + size])
            place += size
        identity, said, cwd, env, payload = fields
        return Request(
            identity, os.fsdecode(said).split("\0"), os.fsdecode(cwd), self._environment(env), payload, parent
        )

    def _environment(self, env: bytes) -> Mapping[str, str]:
        known = self._known.get(env)
        if known is None:
            parts = (item.partition(b"=") for item in env.split(b"\0"))
            known = freeze({os.fsdecode(name): os.fsdecode(value) for name, found, value in parts if found})
            if len(self._known) >= _KEPT_ENVIRONMENTS:
                self._known.clear()
            self._known[env] = known
        return known


BEGUN = b"+"
"""Sent before hooks run: from here on a call that is run again may do things twice."""

STALE = b"S"
"""Sent instead of an answer: this process makes way for another one, nothing was run."""


def reply(code: int, out: bytes, err: bytes) -> bytes:
    """Return what follows ``BEGUN``: the exit code, what goes to standard output, and to standard error."""
    return b"%d %d %d\n%s%s" % (code, len(out), len(err), out, err)


def ask(
    path: str, words: list[str], *, seconds: float, payload: bytes = b""
) -> tuple[int, bytes, bytes] | None:
    """Ask the resident process from Python, for ``--status``, ``--stop`` and tests of its life.

    Parameters:
        path: its socket.
        words: ``["status"]``, ``["stop"]``, or a command as the thin client sends it.
        seconds: how long to wait for each step.
        payload: what the thin client would have read.

    Returns:
        exit code, output and errors; None when nobody answers.
    """
    import socket as sockets

    with sockets.socket(sockets.AF_UNIX, sockets.SOCK_STREAM) as sock:
        sock.settimeout(seconds)
        try:
            sock.connect(path)
            if not thin.peer_is_me(sock):
                return None
            sock.sendall(thin.frame(words, dict(os.environb), payload))
            data = b"".join(iter(lambda: sock.recv(65536), b""))
        except OSError:
            return None
    head, _, body = data[1:].partition(b"\n")
    if data[:1] != BEGUN or not head:
        return None
    code, out, err = map(int, head.split())
    return code, body[:out], body[out : out + err]


def client_left(sock: socket.socket) -> bool:
    """Tell whether the other side has closed the connection: it waits no longer, as after we were stopped."""
    from select import POLLIN, poll

    look = poll()
    look.register(sock, POLLIN)
    # It has nothing more to say, so whatever there is to read is the end.
    return bool(look.poll(0))
