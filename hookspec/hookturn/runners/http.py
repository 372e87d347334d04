"""One HTTP/1.1 request to an address that was checked, within one time limit for all of it. Follows nothing, keeps nothing.

The limit covers the name's resolution, connecting, TLS, sending and receiving
alike, so that a server which drips cannot pass it. Bounded: head and body of an
answer. A descriptor that becomes readable stops it at any point.
"""

from __future__ import annotations

import os
import select
import socket
from errno import EINPROGRESS
from io import BufferedReader, RawIOBase
from threading import Lock, Thread
from time import monotonic

from .addresses import Forbidden, Network, Url, loopback, plain

TYPE_CHECKING = False
if TYPE_CHECKING:
    import ssl
    from collections.abc import Mapping
    from http.client import HTTPResponse
    from ipaddress import IPv4Address, IPv6Address
    from typing import Any

    Address = IPv4Address | IPv6Address

LONGEST_BODY = 1_000_000
"""Bytes of an answer's body."""

LONGEST_HEAD = 64_000
"""Bytes of an answer's status line and headers."""

_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")

_RESERVED = frozenset((
    "connection", "content-encoding", "content-length", "expect", "host", "keep-alive", "proxy-authorization",
    "proxy-connection", "te", "trailer", "transfer-encoding", "upgrade",
))  # fmt: skip


class Failed(Exception):
    """A request that got no answer.

    Parameters:
        cause: in words.
        again: another try may help.
    """

    def __init__(self, cause: str, *, again: bool = True) -> None:
        super().__init__(cause)
        self.again = again


class Stopped(Exception):
    """The caller wanted the request to stop."""


class Late(Exception):
    """The time was over; the text says at what."""


class Reply:
    """An answer.

    Attributes:
        status: its code.
        headers: name in lower case -> value (of several, joined by commas).
        body: the whole body.
    """

    __slots__ = ("body", "headers", "status")

    def __init__(self, status: int, headers: dict[str, str], body: bytes) -> None:
        self.status = status
        self.headers = headers
        self.body = body


def header_problem(name: str, value: str) -> str:
    """Return what is wrong with a header that somebody configured, or an empty string. The value is not repeated."""
    if not name or not _TOKEN.issuperset(name):
        return "the name of a header holds letters, digits and hyphens"
    if name.lower() in _RESERVED:
        return f"the header {name} is set by the sender itself"
    if any(c in value for c in "\r\n\0"):
        return f"the value of {name} holds a line break or NUL"
    try:
        value.encode("latin-1")
    except UnicodeEncodeError:
        return f"the value of {name} holds characters that no header has"
    if not all(c == "\t" or c.isprintable() for c in value):
        return f"the value of {name} holds control characters"
    return ""


def send(
    url: Url,
    method: str,
    headers: Mapping[str, str],
    body: bytes,
    *,
    network: Network,
    end: float,
    cancel: int | None = None,
) -> Reply:
    """Send one request and return its answer, whatever its status.

    Parameters:
        url: where to.
        method: POST, say.
        headers: all headers but Host, Connection and Content-Length.
        body: the request's body.
        network: where it may connect to.
        end: when it must be over, by the monotonic clock.
        cancel: a descriptor that becomes readable when it is to stop.

    Raises:
        Forbidden: for an address that it may not reach.
        Failed: without an answer, or with one that is none.
        Late: at the end of the time.
        Stopped: when ``cancel`` said so.
    """
    for name, value in headers.items():
        wrong = header_problem(name, value)
        if wrong:
            raise Failed(wrong, again=False)
    line = _Line(end, cancel)
    via = network.proxy
    try:
        if via is None:
            addresses = line.resolve(url)
            network.check(url, addresses)
            line.connect(addresses, url.port)
        else:  # the proxy resolves the name; what is certain of it without asking is checked even so
            known = url.address if url.address is not None else loopback(url.host)
            if known is not None:
                network.check(url, [known])
            line.connect(line.resolve(via), via.port)
        target = url.target
        if via is not None and url.scheme == "https":
            line.tunnel(url)
        elif via is not None:
            target = url.origin + target
        if url.scheme == "https":
            line.encrypt(url.host)
        head = [f"{method} {target} HTTP/1.1", f"Host: {url.authority}", "Connection: close"]
        head.append(f"Content-Length: {len(body)}")
        head += [f"{name}: {value}" for name, value in headers.items()]
        line.send_all("\r\n".join((*head, "", "")).encode("latin-1") + body)
        return _read(line, method)
    finally:
        line.close()


def _read(line: _Line, method: str) -> Reply:
    """Read an answer."""
    from http.client import HTTPException, HTTPResponse, IncompleteRead, LineTooLong, RemoteDisconnected

    response = HTTPResponse(line, method=method)  # type: ignore[arg-type]
    try:
        line.at("waiting for the answer", LONGEST_HEAD)
        response.begin()
        while 100 < response.status < 200 and response.status != 101:  # 102, 103: the answer comes behind it
            response.headers = None  # type: ignore[assignment]  # else nothing more is read
            response.begin()
        if line.ended:  # http.client takes a head that is cut off for a whole one
            raise IncompleteRead(b"")
        fields = response.msg.items()
        line.at("reading the answer", None)
        body = _body(response)
    except RemoteDisconnected:
        raise Failed("the connection was closed without an answer") from None
    except IncompleteRead:
        raise Failed("the answer was cut off") from None
    except LineTooLong:
        raise _too_long() from None
    except (HTTPException, ValueError) as error:
        raise Failed(f"the answer is no HTTP ({type(error).__name__})", again=False) from None
    except OSError as error:
        raise Failed(f"the connection broke: {_words(error)}") from None
    finally:
        response.close()
    headers: dict[str, str] = {}
    for name, value in fields:
        key = name.lower()
        headers[key] = f"{headers[key]}, {value}" if key in headers else value
    if headers.get("content-encoding", "identity").lower() != "identity":
        raise Failed("the answer is compressed, which nobody asked for", again=False)
    return Reply(response.status, headers, body)


def _body(response: HTTPResponse) -> bytes:
    parts, size = [], 0
    while part := response.read(65_536):
        size += len(part)
        if size > LONGEST_BODY:
            raise Failed(f"the answer is longer than {LONGEST_BODY:,} bytes", again=False)
        parts.append(part)
    if response.length:
        raise Failed("the answer was cut off")
    return b"".join(parts)


class _Line(RawIOBase):
    """A connection on which every step has the same end. Never blocks beyond it."""

    def __init__(self, end: float, cancel: int | None) -> None:
        self._end = end
        self._cancel = cancel
        self._socket: Any = None
        self._phase = ""
        self._left: int | None = None  # bytes that may still be read, None for any number
        self.ended = False  # the other side sends no more

    def at(self, phase: str, most: int | None = None) -> None:
        """Note what is going on, and how many bytes may be read at it."""
        self._phase = phase
        self._left = most

    def makefile(self, mode: str) -> BufferedReader:
        """Return this for reading, as ``http.client`` wants it."""
        return BufferedReader(self, 16_384)

    # -- steps ----------------------------------------------------------------------------------

    def resolve(self, url: Url) -> list[Address]:
        """Return the addresses of a host. The system's resolver cannot be stopped, so it works on a thread."""
        from ipaddress import ip_address

        if url.address is not None:
            return [url.address]
        self.at(f"looking up {url.host}")
        found: list[Any] = []
        done, tell = os.pipe()

        def look_up() -> None:
            try:
                found.append(socket.getaddrinfo(url.host, url.port, type=socket.SOCK_STREAM))
            except (OSError, UnicodeError) as error:
                found.append(error)
            finally:
                os.close(tell)

        try:
            try:
                Thread(target=look_up, name="hookturn-resolver", daemon=True).start()
            except BaseException:
                os.close(tell)
                raise
            self._wait(done, select.POLLIN)
        finally:
            os.close(done)
        if isinstance(found[0], Exception):
            raise Failed(f"{url.host} cannot be looked up: {_words(found[0])}") from None
        addresses: list[Address] = []
        for family, _, _, _, place in found[0]:
            if family in (socket.AF_INET, socket.AF_INET6):
                address = plain(ip_address(place[0].partition("%")[0]))
                if address not in addresses:
                    addresses.append(address)
        if not addresses:
            raise Failed(f"{url.host} has no address")
        return addresses

    def connect(self, addresses: list[Address], port: int) -> None:
        """Connect to the first of these addresses that answers."""
        causes = []
        for number, address in enumerate(addresses):
            self.at(f"connecting to {address} port {port}")
            share = (self._end - monotonic()) / (len(addresses) - number)
            family = socket.AF_INET if address.version == 4 else socket.AF_INET6
            try:
                self._socket = socket.socket(family, socket.SOCK_STREAM)
                self._socket.setblocking(False)
                self._socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                code = self._socket.connect_ex((str(address), port))
                if code == EINPROGRESS:
                    self._wait(self._socket.fileno(), select.POLLOUT, monotonic() + share)
                    code = self._socket.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
                if code == 0:
                    return
                causes.append(os.strerror(code))
            except Late as late:
                if number == len(addresses) - 1:
                    raise
                causes.append(str(late))
            except OSError as error:
                causes.append(_words(error))
            if self._socket is not None:
                self._socket.close()
        raise Failed(f"no connection: {causes[0]}")

    def tunnel(self, url: Url) -> None:
        """Ask a proxy for a connection to a URL's host."""
        host = f"[{url.host}]" if ":" in url.host else url.host
        self.send_all(
            f"CONNECT {host}:{url.port} HTTP/1.1\r\nHost: {host}:{url.port}\r\n\r\n".encode("latin-1")
        )
        self.at("waiting for the proxy", LONGEST_HEAD)
        head, one = bytearray(), bytearray(1)
        while not head.endswith(b"\r\n\r\n"):  # byte by byte: what follows belongs to the host
            if not self.readinto(one):
                raise Failed("the proxy closed the connection")
            head += one
        words = bytes(head).split(b"\r\n", 1)[0].split()
        if len(words) < 2 or not words[0].startswith(b"HTTP/1.") or not words[1].startswith(b"2"):
            status = words[1].decode("latin-1") if len(words) > 1 and words[1].isdigit() else "no status"
            raise Failed(f"the proxy refused the connection ({status})", again=status.startswith("5"))

    def encrypt(self, host: str) -> None:
        """Begin TLS, with the certificate verified against the URL's host."""
        import ssl

        self.at("beginning TLS")
        try:
            self._socket = _context().wrap_socket(
                self._socket, server_hostname=host.removesuffix("."), do_handshake_on_connect=False
            )
            while True:
                try:
                    self._socket.do_handshake()
                    return
                except ssl.SSLWantReadError:
                    self._wait(self._socket.fileno(), select.POLLIN)
                except ssl.SSLWantWriteError:
                    self._wait(self._socket.fileno(), select.POLLOUT)
        except ssl.SSLCertVerificationError as error:
            raise Failed(
                f"the certificate is not good for {host}: {error.verify_message}", again=False
            ) from None
        except (OSError, ValueError) as error:
            raise Failed(f"TLS failed: {_words(error)}") from None

    def send_all(self, data: bytes) -> None:
        """Send all of this, or as much as the other side takes: it may answer before it has read everything."""
        self.at("sending")
        rest = memoryview(data)
        while rest:
            try:
                rest = rest[self._socket.send(rest) :]
            except OSError as error:
                wanted = _waits_for(error, select.POLLOUT)
                if not wanted:
                    return  # there may be an answer; if there is none, reading tells
                if isinstance(error, BlockingIOError):  # under TLS something to read need not be an answer
                    wanted |= select.POLLIN
                ready = self._wait(self._socket.fileno(), wanted)
                if (
                    isinstance(error, BlockingIOError)
                    and ready & (select.POLLIN | select.POLLOUT) == select.POLLIN
                ):
                    return

    def readinto(self, buffer: Any) -> int:
        """Read what there is, once there is something; 0 at the end."""
        while True:
            if self._left is not None and self._left <= 0:
                raise _too_long()
            if monotonic() >= self._end:
                raise Late(f"time was over while {self._phase}")
            try:
                count: int = self._socket.recv_into(buffer)
            except OSError as error:
                wanted = _waits_for(error, select.POLLIN)
                if not wanted:
                    raise
                self._wait(self._socket.fileno(), wanted)
                continue
            if self._left is not None:
                self._left -= count
            self.ended = count == 0
            return count

    def readable(self) -> bool:
        """This can be read."""
        return True

    def close(self) -> None:
        """Close the connection. Safe to repeat."""
        if self._socket is not None:
            self._socket.close()
        super().close()

    # -- waiting --------------------------------------------------------------------------------

    def _wait(self, fd: int, events: int, end: float = float("inf")) -> int:
        """Wait until a descriptor is ready, and return for what.

        Raises:
            Late, Stopped: when that came first.
        """
        poll = select.poll()
        poll.register(fd, events)
        if self._cancel is not None:
            poll.register(self._cancel, select.POLLIN)
        while True:
            left = min(end, self._end) - monotonic()
            if left <= 0:
                raise Late(f"time was over while {self._phase}")
            ready = dict(poll.poll(min(left, 3600) * 1000 + 1))
            if self._cancel is not None and self._cancel in ready:
                raise Stopped("the request was stopped")
            if fd in ready:
                return ready[fd]


def _too_long() -> Failed:
    return Failed(f"the head of the answer is longer than {LONGEST_HEAD:,} bytes", again=False)


def _waits_for(error: OSError, usual: int) -> int:
    """Return what a socket that does not block has to wait for, or 0 for a real error."""
    if isinstance(error, BlockingIOError):
        return usual
    # The exceptions of the ssl module, which is not imported to tell them.
    return {"SSLWantReadError": select.POLLIN, "SSLWantWriteError": select.POLLOUT}.get(
        type(error).__name__, 0
    )


def _words(error: BaseException) -> str:
    """Return the words of an error of the system."""
    return str(getattr(error, "strerror", None) or error) or type(error).__name__


_contexts: dict[tuple[str, str], ssl.SSLContext] = {}
_contexts_lock = Lock()


def _context() -> ssl.SSLContext:
    """Return the settings of TLS: verification on, the system's authorities (loaded once), or SSL_CERT_FILE's."""
    import ssl

    key = (os.environ.get("SSL_CERT_FILE", ""), os.environ.get("SSL_CERT_DIR", ""))
    with _contexts_lock:
        if key not in _contexts:
            _contexts[key] = ssl.create_default_context()
        return _contexts[key]


__all__ = [
    "LONGEST_BODY",
    "LONGEST_HEAD",
    "Failed",
    "Forbidden",
    "Late",
    "Reply",
    "Stopped",
    "header_problem",
    "send",
]
