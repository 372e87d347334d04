"""The thin client: asks the resident process for an answer, and imports next to nothing.

It must start within the cost of a bare interpreter, so it imports only modules
in C and knows no rule but where the resident process listens; whatever does
not go as usual is left to ``fallback``.
"""

# No ``from __future__ import annotations``: that import alone costs a file to find and to run.
import _imp
import _signal  # type: ignore[import-not-found]  # ``signal`` imports enum
import _socket
import posix
import sys
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROTOCOL = 1
"""Number of the wire's form; another one means another program on the other side."""

LONGEST = 100
"""Bytes of a socket's path: the system takes 108 on Linux, 104 on macOS."""

SPARE = 0.4
"""Seconds before the deadline in which an answer by policy is prepared."""

DEADLINE = 55.0
"""Seconds to wait where neither the words nor the environment tell the agent's limit."""

PLACES = (b"HOME", b"HOOKTURN_CONFIG_DIR", b"XDG_CONFIG_HOME")
"""Variables that move configuration: each set of values has a resident process of its own."""


def state_root(environ: dict[bytes, bytes]) -> bytes:
    """Return hookturn's state folder as ``paths.state_root`` does, or b"" when the environment does not tell."""
    home = environ.get(b"HOME", b"").rstrip(b"/")
    chosen = environ.get(b"HOOKTURN_STATE_DIR", b"")
    if not chosen:
        if not home:
            return b""
        if sys.platform == "darwin":
            return home + b"/Library/Application Support/hookturn"
        # https://specifications.freedesktop.org/basedir-spec/
        return (environ.get(b"XDG_STATE_HOME", b"").strip() or home + b"/.local/state") + b"/hookturn"
    if chosen[:1] == b"~" and chosen[1:2] in (b"", b"/"):
        chosen = home + chosen[1:]
    return chosen if chosen[:1] == b"/" else b""


def place(environ: dict[bytes, bytes]) -> bytes:
    """Return the path of the socket for this installation and environment, or b"" when there can be none."""
    root = state_root(environ)
    if not root:
        return b""
    about = [word.encode("utf-8", "surrogateescape") for word in (sys.executable, __file__)]
    about += [environ.get(name, b"") for name in PLACES]
    path = b"%s/serve/%s.sock" % (root, digest(b"\0".join(about)))
    if len(path) <= LONGEST:
        return path
    short = b"/%s.sock" % digest(path)
    runtime = environ.get(b"XDG_RUNTIME_DIR", b"")
    if runtime[:1] == b"/" and len(runtime) + 10 + len(short) <= LONGEST:
        return runtime + b"/hookturn" + short
    return b"/tmp/hookturn-%d%s" % (posix.geteuid(), short)


def digest(text: bytes) -> bytes:
    """Return 16 hexadecimal digits; hashlib would cost more than all else here."""
    return _imp.source_hash(PROTOCOL, text).hex().encode()


def identity() -> bytes:
    """Return a word for this installation: an upgrade of Python or of the package changes it."""
    found = posix.stat(__file__)
    return b"%x-%x-%x" % (sys.hexversion, found.st_mtime_ns, found.st_size)


def peer_is_me(sock: _socket.socket) -> bool:
    """Tell whether the other side of a Unix socket runs as this user."""
    if sys.platform == "linux":
        # struct ucred: pid, uid, gid (unix(7))
        found = sock.getsockopt(_socket.SOL_SOCKET, _socket.SO_PEERCRED, 12)
    else:
        # struct xucred: version, uid, ... (sys/ucred.h), LOCAL_PEERCRED of SOL_LOCAL
        found = sock.getsockopt(0, 1, 76)
    return int.from_bytes(found[4:8], sys.byteorder) == posix.geteuid()


def frame(words: list[str], environ: dict[bytes, bytes], payload: bytes) -> bytes:
    """Return a request: a line of numbers, then who we are, the words, the folder, the environment, the payload.

    The numbers are the protocol, the process that called us, and the lengths of what follows.
    """
    try:
        cwd = posix.getcwdb()
    except OSError:  # it was removed
        cwd = b""
    said = "\0".join(words).encode("utf-8", "surrogateescape")
    env = b"\0".join([name + b"=" + value for name, value in environ.items()])
    me = identity()
    sizes = (PROTOCOL, posix.getppid(), len(me), len(said), len(cwd), len(env), len(payload))
    return b"HT%d %d %d %d %d %d %d\n%s%s%s%s%s" % (*sizes, me, said, cwd, env, payload)


class _Over(Exception):
    """The time for something is over."""


def _over(*about: object) -> None:
    raise _Over


def read_all(fd: int, limit: float) -> bytes:
    """Return what a file descriptor holds; nothing for one that is closed, and what came for one that stays open.

    Parameters:
        fd: the descriptor.
        limit: seconds after which what is there must do: an agent may forget to close it.
    """
    parts = []
    _signal.signal(_signal.SIGALRM, _over)
    try:
        _signal.setitimer(_signal.ITIMER_REAL, limit)
        while part := posix.read(fd, 1048576):
            parts.append(part)
        _signal.setitimer(_signal.ITIMER_REAL, 0)
    except (OSError, _Over):
        _signal.setitimer(_signal.ITIMER_REAL, 0)
    return b"".join(parts)


def write_all(fd: int, data: bytes) -> None:
    """Write all of ``data``; nobody is left to be told of a reader that went away."""
    try:
        while data:
            data = data[posix.write(fd, data) :]
    except OSError:
        pass


def seconds(words: list[str]) -> float:
    """Return the seconds that the agent gives us (``--timeout``), less what a start takes."""
    for index, word in enumerate(words):
        value = word[10:] if word[:10] == "--timeout=" else ""
        if word == "--timeout" and index + 1 < len(words):
            value = words[index + 1]
        if value:
            try:
                found = float(value)
            except ValueError:
                break
            # Not so for NaN, and for numbers beyond what the clock can count.
            return max(found - 0.5, 0.3) if found < 1e6 else DEADLINE
    return DEADLINE


def finish(answer: bytes, errors: bytes, code: int) -> None:
    """End this process with an answer. It goes out first: nobody may read errors, which then hold us up for a moment."""
    write_all(1, answer)
    _signal.signal(_signal.SIGALRM, lambda *about: posix._exit(code))
    _signal.setitimer(_signal.ITIMER_REAL, 0.5)
    write_all(2, errors)
    posix._exit(code)


def end_with(reply: bytes) -> None:
    """End this process with a complete answer; return for any other."""
    # "+" says that hooks have begun to run; then exit code, lengths of output and of errors, and both.
    head, _, body = reply[1:].partition(b"\n")
    if reply[:1] == b"+" and head:
        code, out, err = map(int, head.split())
        if len(body) == out + err:
            finish(body[:out], body[out:], code)


def main() -> None:
    """Ask the resident process and end with its answer."""
    begun = time.monotonic()
    words = sys.argv[1:]
    environ = posix.environ
    # AtomCode of generation 1 writes nothing and never closes our standard input (``agents.atomcode``).
    limit = seconds(words)
    payload = b""
    if not (b"ATOMCODE_HOOK_CONTEXT" in environ and "atomcode" in words):
        payload = read_all(0, limit / 2)
    end = begun + limit
    path = place(environ)
    reply, why, sock = b"", "absent", None
    try:
        sock = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
        sock.settimeout(max(end - SPARE - time.monotonic(), 0.1))
        sock.connect(path)
        why = "broken"
        if peer_is_me(sock):
            sock.sendall(frame(words, environ, payload))
            while part := sock.recv(1048576):
                reply += part
    except TimeoutError:
        why = "late"
    except OSError:
        pass
    end_with(reply)
    if reply == b"S":
        why = "stale"
    _otherwise(why, words, payload, path, end, sock, reply)


def _otherwise(*about: "Any") -> None:
    """Leave the rest to the whole of hookturn, in this process, which has no installed packages so far."""
    import site

    site.main()
    root = __file__.rpartition("/hookturn/")[0]
    if root not in site.getsitepackages():  # an editable installation, or one for this user only
        site.addsitedir(root)
    from hookturn.serve.fallback import run

    run(*about)
