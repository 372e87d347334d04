"""HTTP/1.1 as the resident process speaks it: a small strict reader of requests, and answers.

Strict, because two readers that disagree where a request ends are how requests
are smuggled: whatever RFC 9112 leaves to a server's kindness (bare line feeds,
folded lines, several lengths, a length beside chunks) is refused, and the
connection closed. An own reader and not a library, for the standard one
(http.server) takes such requests, and others cost more than the decision itself.
"""

from __future__ import annotations

from functools import lru_cache

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

MAX_LINE = 8_192
"""Bytes of the request line."""

MAX_HEAD = 32_768
"""Bytes of all that comes before the body."""

MAX_HEADERS = 100

MAX_LENGTH_DIGITS = 15
"""Digits of a content length."""

MAX_CHUNK_LINE = 256
"""Bytes of a chunk's size with its extensions."""

_TOKEN = frozenset(b"!#$%&'*+-.^_`|~0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz")
_DIGITS = frozenset(b"0123456789")
_HEX = frozenset(b"0123456789abcdefABCDEF")
# Printable ASCII; what belongs to other bytes is to be percent-encoded.
_TARGET = frozenset(range(0x21, 0x7F))
# Visible characters, blanks and tabs, and bytes over 0x7F (RFC 9110, 5.5); never NUL, CR or LF.
_VALUE = frozenset([0x09, *range(0x20, 0x7F), *range(0x80, 0x100)])

REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    408: "Request Timeout",
    413: "Content Too Large",
    415: "Unsupported Media Type",
    417: "Expectation Failed",
    421: "Misdirected Request",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}


class BadRequest(Exception):
    """A request is refused; the connection must be closed, for nobody knows where the next one begins.

    Parameters:
        status: the HTTP status.
        why: for the other side.
    """

    def __init__(self, status: int, why: str) -> None:
        super().__init__(why)
        self.status = status
        self.why = why


class Head:
    """A request without its body.

    Attributes:
        method: as it came.
        target: path and query as they came, beginning with a slash.
        headers: lower-case name -> values in order.
        keep_alive: whether another request may follow on the connection.
        length: of the body, in bytes; -1 for chunks.
    """

    __slots__ = ("headers", "keep_alive", "length", "method", "target")

    def __init__(
        self, method: str, target: str, headers: dict[str, list[str]], keep_alive: bool, length: int
    ) -> None:
        self.method = method
        self.target = target
        self.headers = headers
        self.keep_alive = keep_alive
        self.length = length

    def one(self, name: str) -> str | None:
        """Return a header that may be there once, or None.

        Raises:
            BadRequest: when it is there several times.
        """
        values = self.headers.get(name)
        if values is None:
            return None
        if len(values) > 1:
            raise BadRequest(400, f"{name} is there {len(values)} times")
        return values[0]


class Stream:
    """Reads requests from a connection, one after another; what is read too far waits for the next.

    Parameters:
        receive: returns at most so many bytes; none at the connection's end.
    """

    def __init__(self, receive: Callable[[int], bytes]) -> None:
        self._receive = receive
        self._data = b""
        self._known: tuple[bytes, bytes, Head] | None = None

    def head(self) -> Head | None:
        """Read the next request up to its body.

        Returns:
            None when the connection ends instead. The same object again for a head that differs from the
            one before in nothing but the number of its content length.

        Raises:
            BadRequest: when it is not well-formed, too large, or cut off.
        """
        # One empty line before a request is passed over (RFC 9112, 2.2).
        passed = False
        while True:
            end = self._data.find(b"\r\n\r\n")
            if not passed and self._data[:2] == b"\r\n":
                self._data = self._data[2:]
                passed = True
                continue
            if end >= 0:
                break
            if len(self._data) > MAX_HEAD:
                raise BadRequest(431, "the headers are too long")
            part = self._receive(65536)
            if not part:
                if self._data.strip(b"\r\n"):
                    raise BadRequest(400, "the request is cut off")
                return None
            self._data += part
        if end > MAX_HEAD:
            raise BadRequest(431, "the headers are too long")
        raw, self._data = self._data[:end], self._data[end + 4 :]
        known = self._known
        if known is not None and raw.startswith(known[0]) and raw.endswith(known[1]):
            before, after, head = known
            digits = raw[len(before) : len(raw) - len(after)]
            if digits and len(digits) <= MAX_LENGTH_DIGITS and _DIGITS.issuperset(digits):
                head.length = int(digits)
                head.headers["content-length"] = [digits.decode()]
                return head
        head = _parse(raw)
        self._known = _around_length(raw, head)
        return head

    def body(self, head: Head, limit: int) -> bytes:
        """Read a request's body.

        Parameters:
            head: the request.
            limit: bytes that it may have.

        Raises:
            BadRequest: when it is too large, cut off, or its chunks are not well-formed.
        """
        if head.length < 0:
            return self._chunks(limit)
        if head.length > limit:
            raise BadRequest(413, f"the body has more than {limit} bytes")
        return self._exactly(head.length)

    def waiting(self) -> bool:
        """Whether the beginning of a further request has been read already."""
        return bool(self._data)

    def _exactly(self, size: int) -> bytes:
        if len(self._data) < size:
            parts, have = [self._data], len(self._data)
            while have < size:
                part = self._receive(min(max(size - have, 65536), 1048576))
                if not part:
                    raise BadRequest(400, "the body is cut off")
                parts.append(part)
                have += len(part)
            self._data = b"".join(parts)
        body, self._data = self._data[:size], self._data[size:]
        return body

    def _line(self, limit: int) -> bytes:
        while (end := self._data.find(b"\r\n")) < 0:
            if len(self._data) > limit:
                raise BadRequest(400, "a line of the body is too long")
            part = self._receive(65536)
            if not part:
                raise BadRequest(400, "the body is cut off")
            self._data += part
        if end > limit:
            raise BadRequest(400, "a line of the body is too long")
        line, self._data = self._data[:end], self._data[end + 2 :]
        return line

    def _chunks(self, limit: int) -> bytes:
        """RFC 9112, 7.1. Extensions and trailers are read over, and mean nothing."""
        parts, have = [], 0
        while True:
            digits, _, extension = self._line(MAX_CHUNK_LINE).partition(b";")
            digits = digits.rstrip(b" \t") if extension else digits
            if (
                not digits
                or len(digits) > 8
                or not _HEX.issuperset(digits)
                or not _VALUE.issuperset(extension)
            ):
                raise BadRequest(400, "a chunk's size is no number")
            size = int(digits, 16)
            if size == 0:
                break
            have += size
            if have > limit:
                raise BadRequest(413, f"the body has more than {limit} bytes")
            parts.append(self._exactly(size))
            if self._exactly(2) != b"\r\n":
                raise BadRequest(400, "a chunk is longer than its size says")
        for _ in range(MAX_HEADERS):
            line = self._line(MAX_LINE)
            if not line:
                return b"".join(parts)
            _field(line)
        raise BadRequest(431, "too many trailers")


def _parse(raw: bytes) -> Head:
    lines = raw.split(b"\r\n")
    if len(lines) > MAX_HEADERS + 1:
        raise BadRequest(431, f"more than {MAX_HEADERS} headers")
    if len(lines[0]) > MAX_LINE:
        raise BadRequest(431, "the request line is too long")
    words = lines[0].split(b" ")
    if len(words) != 3:
        raise BadRequest(400, "no request line")
    method, target, version = words
    if not method or not _TOKEN.issuperset(method) or not target or not _TARGET.issuperset(target):
        raise BadRequest(400, "no request line")
    if version not in (b"HTTP/1.1", b"HTTP/1.0"):
        known = version[:5] == b"HTTP/" and len(version) == 8
        raise BadRequest(505 if known else 400, "only HTTP/1.1 is spoken here")
    if target[:1] != b"/":
        raise BadRequest(400, "the target is no path")
    headers: dict[str, list[str]] = {}
    for line in lines[1:]:
        name, value = _field(line)
        headers.setdefault(name, []).append(value)
    head = Head(method.decode(), target.decode(), headers, version == b"HTTP/1.1", 0)
    head.length = _length(head, version)
    connection = {
        word.strip().lower() for value in headers.get("connection", ()) for word in value.split(",")
    }
    if "close" in connection:
        head.keep_alive = False
    elif "keep-alive" in connection:
        head.keep_alive = True
    return head


def _around_length(raw: bytes, head: Head) -> tuple[bytes, bytes, Head] | None:
    """Return what stands before and after the number of a head's content length, and the head.

    Any other number in between makes a head with the same lines in which only the
    length is another one. None for a head without a length.
    """
    if "content-length" not in head.headers:
        return None
    place = raw.lower().index(b"\r\ncontent-length:") + len(b"\r\ncontent-length:")
    end = raw.find(b"\r\n", place)
    line = raw[place:] if end < 0 else raw[place:end]
    number = line.strip(b" \t")
    begin = place + line.index(number)
    return raw[:begin], raw[begin + len(number) :], head


@lru_cache(maxsize=128)  # an agent's requests have the same lines again and again
def _field(line: bytes) -> tuple[str, str]:
    name, colon, value = line.partition(b":")
    # A blank before the name is a folded line, one before the colon hides a header from other readers.
    if not colon or not name or not _TOKEN.issuperset(name) or not _VALUE.issuperset(value):
        raise BadRequest(400, "a header is not well-formed")
    return name.decode().lower(), value.decode("latin-1").strip(" \t")


def _length(head: Head, version: bytes) -> int:
    coding = head.headers.get("transfer-encoding")
    lengths = head.headers.get("content-length")
    if coding is not None:
        if lengths is not None or version != b"HTTP/1.1":
            raise BadRequest(400, "the body's end is told in two ways")
        if [value.lower() for value in coding] != ["chunked"]:
            raise BadRequest(501, "only the transfer coding chunked is known")
        return -1
    if lengths is None:
        return 0
    if len(lengths) != 1 or not lengths[0] or not _DIGITS.issuperset(lengths[0].encode("latin-1")):
        raise BadRequest(400, "the content length is not one number")
    if len(lengths[0]) > MAX_LENGTH_DIGITS:
        raise BadRequest(413, "the body is too large")
    return int(lengths[0])


def response(
    status: int, body: bytes = b"", *, keep_alive: bool = True, kind: str = "application/json"
) -> bytes:
    """Return a whole HTTP answer."""
    lines = f"HTTP/1.1 {status} {REASONS[status]}\r\nContent-Length: {len(body)}\r\n"
    if body:
        lines += f"Content-Type: {kind}\r\n"
    if status == 401:
        lines += "WWW-Authenticate: Bearer\r\n"
    if not keep_alive:
        lines += "Connection: close\r\n"
    return f"{lines}\r\n".encode() + body


CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"
