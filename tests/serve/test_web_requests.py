"""The reader of HTTP requests: whatever comes in whatever pieces, it reads one thing or refuses."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn.serve.web import BadRequest, Stream, response


def pieces(data: bytes, cuts):
    """Return a receive function that gives the data cut at some places."""
    places = sorted({cut % (len(data) + 1) for cut in cuts})
    parts = [data[a:b] for a, b in zip([0, *places], [*places, len(data)], strict=True)]
    queue = [part for part in parts if part]

    def receive(size):
        if not queue:
            return b""
        part = queue.pop(0)
        if len(part) > size:
            queue.insert(0, part[size:])
        return part[:size]

    return receive


def read_all(receive, limit=1_000_000):
    """Return all requests of a connection, the last a status when it is refused."""
    stream = Stream(receive)
    found = []
    try:
        while (head := stream.head()) is not None:
            found.append((head.method, head.target, head.headers, stream.body(head, limit)))
    except BadRequest as error:
        found.append(error.status)
    return found


TOKEN = st.text("ABCabc-_09!~", min_size=1, max_size=8)
VALUE = st.text(st.characters(min_codepoint=0x20, max_codepoint=0xFF, exclude_characters="\x7f"), max_size=20)
REQUEST = st.tuples(
    TOKEN,
    st.text("abc/?&=%20.", max_size=20).map(lambda text: "/" + text),
    st.lists(
        st.tuples(TOKEN, VALUE).filter(
            lambda pair: pair[0].lower() not in ("content-length", "transfer-encoding")
        ),
        max_size=5,
    ),
    st.binary(max_size=300),
    st.lists(st.integers(1, 50), max_size=5) | st.none(),
)


def wire(request) -> bytes:
    """Return the bytes of a request: with a length, or in chunks of the given sizes."""
    method, target, headers, body, sizes = request
    lines = [f"{method} {target} HTTP/1.1", *(f"{name}:{value}" for name, value in headers)]
    if sizes is None:
        lines.append(f"Content-Length: {len(body)}")
        sent = body
    else:
        lines.append("Transfer-Encoding: chunked")
        sent, rest = b"", body
        for size in [*sizes, len(body)]:
            part, rest = rest[:size], rest[size:]
            if part:
                sent += b"%x\r\n%s\r\n" % (len(part), part)
        sent += b"0\r\n\r\n"
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + sent


@given(st.lists(REQUEST, min_size=1, max_size=4), st.lists(st.integers(0, 10_000), max_size=8))
def test_well_formed_requests_are_read_as_they_were_sent_however_they_are_cut(requests, cuts):
    data = b"".join(map(wire, requests))
    found = read_all(pieces(data, cuts))
    assert [(method, target, body) for method, target, _, body in found] == [
        (method, target, body) for method, target, _, body, _ in requests
    ]
    for (_, _, headers, _), (_, _, sent, _, _) in zip(found, requests, strict=True):
        for name, value in sent:
            assert value.strip(" \t") in headers[name.lower()]


@given(st.binary(max_size=400), st.lists(st.integers(0, 500), max_size=8))
def test_any_bytes_are_read_alike_however_they_are_cut(data, cuts):
    assert read_all(pieces(data, cuts)) == read_all(pieces(data, []))


@given(
    REQUEST,
    st.integers(0, 10_000),
    st.binary(min_size=1, max_size=3) | st.sampled_from([b"\r", b"\n", b"\0", b" ", b"\r\n", b"\r\n\r\n"]),
    st.lists(st.integers(0, 10_000), max_size=4),
)
def test_a_changed_request_never_breaks_the_reader(request, place, change, cuts):
    data = wire(request)
    place %= len(data)
    for changed in (
        data[:place] + change + data[place:],
        data[:place] + change + data[place + len(change) :],
    ):
        assert read_all(pieces(changed, cuts)) == read_all(pieces(changed, []))


@given(REQUEST, st.integers(0, 10_000))
def test_a_request_that_is_cut_off_is_never_taken_for_a_whole_one(request, place):
    data = wire(request)
    data = data[: place % len(data)]
    found = read_all(pieces(data, []))
    assert found == [] or found == [400]


@pytest.mark.parametrize("junk", [b"x\n\n", b"GET / HTTP/1.1\n\n", b"GET / HTTP/1.1\n\r\n\r\n", b"GET  / HTTP/1.1\r\n\r\n",
                                  b"GET /\xff HTTP/1.1\r\n\r\n", b"GET http://x/ HTTP/1.1\r\n\r\n", b"GET / HTTP/1.1 x\r\n\r\n",
                                  b"G\x00T / HTTP/1.1\r\n\r\n", b"GET / http/1.1\r\n\r\n"])  # fmt: skip
def test_bad_request_lines(junk):
    assert read_all(pieces(junk, [])) == [400]


def test_a_response_has_one_length_and_nothing_else_to_doubt():
    raw = response(200, b'{"a": 1}')
    head, _, body = raw.partition(b"\r\n\r\n")
    assert body == b'{"a": 1}'
    assert head.split(b"\r\n")[:2] == [b"HTTP/1.1 200 OK", b"Content-Length: 8"]
    assert b"Connection: close" in response(400, keep_alive=False)


@given(
    REQUEST, st.lists(st.tuples(st.integers(0), st.binary(max_size=3)), max_size=2), st.integers(0, 10**16)
)
def test_a_request_like_the_one_before_is_read_as_if_it_were_the_first(request, changes, length):
    """A head that is known but for its length is not read again: it must not matter."""
    first = wire((*request[:3], b"body", None))
    head, _, _ = first.partition(b"\r\n\r\n")
    for place, new in changes:
        head = head[: place % (len(head) + 1)] + new + head[place % (len(head) + 1) + len(new) :]
    for value in (b": 4", b": %d" % (length % 50), b": %d" % length, b":\t04 "):
        second = head.replace(b"ength: 4", b"ength" + value) + b"\r\n\r\n" + b"x" * 40
        assert read_all(pieces(first + second, []))[1:] == read_all(pieces(second, []))
