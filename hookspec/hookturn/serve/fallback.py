"""What the thin client does when the resident process does not simply answer.

Absent, outdated or crashed: another one is started (by exactly one of all who
find out), and this call runs here and now, as ``hookturn bridge`` would. Hung:
the call is answered by policy at its deadline. No decision waits for a start,
and none is lost with the process that was to make it.
"""

from __future__ import annotations

import os
import sys
from contextlib import suppress
from time import monotonic

from ..agents.memory import memory_folder
from . import start, thin
from .calls import Options

TYPE_CHECKING = False
if TYPE_CHECKING:
    import socket

HUNG = 2.0
"""Seconds of waiting for the first sign of life after which a resident process is killed as hung."""


def run(
    why: str,
    words: list[str],
    payload: bytes,
    path: bytes,
    end: float,
    sock: socket.socket | None,
    reply: bytes,
) -> None:
    """Answer a call without the resident process, and end with the exit code.

    Parameters:
        why: absent, stale, broken (it was there and did not answer) or late.
        words: the command line.
        payload: what standard input held.
        path: where the socket is, or is to be.
        end: when the answer must be there, by the monotonic clock.
        sock: the connection, if there is one.
        reply: what has come of an answer so far.
    """
    if why == "late" and sock is not None:
        _late(words, payload, end, sock, reply)
    if sock is not None:
        sock.close()
    if path:
        # Without a resident process everything still works; who wants to know why asks `hookturn serve`.
        with suppress(OSError):
            start.start(os.fsdecode(path))
    _give_input(payload)
    # The whole program takes over, as if it had been started instead of us: this room lies below it.
    from importlib import import_module

    sys.exit(import_module("hookturn.cli").main(words))


def _give_input(payload: bytes) -> None:
    """Make the payload standard input again."""
    if hasattr(os, "memfd_create"):
        fd = os.memfd_create("payload")
    else:
        from tempfile import TemporaryFile

        with TemporaryFile() as file:
            fd = os.dup(file.fileno())
    with open(fd, "wb", closefd=False) as file:
        file.write(payload)
    os.lseek(fd, 0, os.SEEK_SET)
    os.dup2(fd, 0)
    os.close(fd)


def _late(words: list[str], payload: bytes, end: float, sock: socket.socket, reply: bytes) -> None:
    """Wait until the deadline, with an answer by policy at hand; end with whichever there is."""
    from ..agents import bridge

    options = Options(words)
    try:
        cwd = os.getcwd()
    except OSError:
        cwd = os.sep
    policy = bridge.late(
        options.agent, payload, environ=os.environ, cwd=cwd, event=options.event, memory=memory_folder()
    )
    with suppress(OSError):
        while (left := end - monotonic()) > 0:
            sock.settimeout(left)
            part = sock.recv(1048576)
            if not part:
                break
            reply += part
    thin.end_with(reply)
    if not reply and _waited(words, end) >= HUNG:
        _kill(sock)
    thin.finish(policy.stdout, policy.stderr.encode("utf-8", "backslashreplace"), policy.exit_code)


def _waited(words: list[str], end: float) -> float:
    return thin.seconds(words) - max(end - monotonic(), 0)


def _kill(sock: socket.socket) -> None:
    """End a process of ours that accepts nothing: every call to come would wait for it as this one did."""
    import signal
    from socket import SO_PEERCRED, SOL_SOCKET

    if sys.platform != "linux" or not thin.peer_is_me(sock):
        return
    # struct ucred (unix(7)): the process that listens. It lives, or this connection would be closed.
    pid = int.from_bytes(sock.getsockopt(SOL_SOCKET, SO_PEERCRED, 12)[:4], sys.byteorder)
    if pid > 1 and pid != os.getpid():
        with suppress(OSError):
            os.kill(pid, signal.SIGKILL)
