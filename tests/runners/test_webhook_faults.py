"""Servers that do everything wrong: each costs its hook a failure in time, and leaves nothing behind."""

from __future__ import annotations

import importlib.util
import socket
import threading
import time
from pathlib import Path

import pytest

pytestmark = pytest.mark.usefixtures("no_leak")


def _shared():
    spec = importlib.util.spec_from_file_location("webhook_servers", Path(__file__).parent / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_servers = _shared()
reply, tool_call = _servers.reply, _servers.tool_call


def forever(connection, server, part, pause=0.0):
    """Send a part again and again, until the other side goes or the test is over."""
    while not server.stopping.wait(pause):
        connection.sendall(part)


def drip_head(connection, request, server):
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-Slow: ")
    forever(connection, server, b"z", 0.02)


def drip_body(connection, request, server):
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 900000\r\n\r\n")
    forever(connection, server, b" ", 0.02)


def drip_chunks(connection, request, server):
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    forever(connection, server, b"1\r\n \r\n", 0.02)


def silent(connection, request, server):
    server.stopping.wait(20)


def half_close(connection, request, server):
    connection.shutdown(socket.SHUT_WR)
    server.stopping.wait(0.5)


def interim(connection, request, server):
    forever(connection, server, b"HTTP/1.1 100 Continue\r\n\r\n")


def endless_headers(connection, request, server):
    connection.sendall(b"HTTP/1.1 200 OK\r\n")
    forever(connection, server, b"X-More: " + b"y" * 1000 + b"\r\n")


def endless_line(connection, request, server):
    connection.sendall(b"HTTP/1.1 200 OK\r\nX-More: ")
    forever(connection, server, b"y" * 10_000)


def endless_status(connection, request, server):
    forever(connection, server, b"H" * 10_000)


def endless_body(connection, request, server):
    connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
    forever(connection, server, b"x" * 50_000)


def endless_chunks(connection, request, server):
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    forever(connection, server, b"10000\r\n" + b"x" * 0x10000 + b"\r\n")


def endless_extensions(connection, request, server):
    """Little body, much around it: neither bound is reached, and there is always something to read."""
    connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
    forever(connection, server, b"1;" + b"x" * 60_000 + b"\r\n \r\n")


def reset(connection, request, server):
    import struct

    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.sendall(b"HTTP/1.1 200 OK\r\nContent-Le")


TWO_MB = b"x" * 2_000_000
LATE, CUT, LONG, BROKEN = "no answer within", "cut off", "longer than", "is no HTTP"


@pytest.mark.parametrize(
    ("fault", "words", "again"),
    [
        (silent, LATE, False),
        (drip_head, LATE, False),
        (drip_body, LATE, False),
        (drip_chunks, LATE, False),
        (endless_extensions, LATE, False),
        (interim, "the head of the answer is longer than 64,000 bytes", False),
        (endless_headers, LONG, False),
        (endless_line, LONG + " 64,000 bytes", False),
        (endless_status, LONG + " 64,000 bytes", False),
        (endless_body, LONG + " 1,000,000 bytes", False),
        (endless_chunks, LONG + " 1,000,000 bytes", False),
        (reply(200, TWO_MB), LONG + " 1,000,000 bytes", False),
        (b"", "closed without an answer", True),
        (half_close, "closed without an answer", True),
        (reset, "the connection broke: Connection reset by peer", True),
        (b"HTTP/1.1 200", CUT, True),
        (b"HTTP/1.1 204 No\r\nX: y", CUT, True),
        (b"HTTP/1.1 200 OK\r\nX: y\r\n", CUT, True),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{", CUT, True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n100\r\n{", CUT, True),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n{", CUT, True),
        (b"\x00\xff\x16\x03garbage\r\n\r\n", BROKEN, False),
        (b"SSH-2.0-OpenSSH_9.2\r\n", BROKEN, False),
        (b"HTTP/9.9 200 OK\r\n\r\n", BROKEN, False),
        (b"HTTP/1.1 abc OK\r\n\r\n", BROKEN, False),
        (b"HTTP/1.1 200 OK\r\n" + b"X: y\r\n" * 200 + b"\r\n", BROKEN, False),
        (reply(200, b"\x1f\x8b\x08", Content_Encoding="gzip"), "is compressed", False),
    ],
    ids=lambda value: (
        getattr(value, "__name__", None) or (None if isinstance(value, str) else str(value)[:30])
    ),
)
def test_a_fault(serve, remote, fault, words, again):
    server = serve(fault)
    hook = remote(server, options={"timeout": 1.0 if words == LATE else 20.0}, backoff=[0.01, 0.01])
    assert words in hook.failure()
    assert server.connections == (3 if again else 1)


def test_a_fault_that_goes_away(serve, remote):
    server = serve(b"", b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", reply(200, {"deny": "no"}))
    assert remote(server, backoff=[0.01, 0.01]).fire().reason == "no"


def test_an_answer_before_the_request_is_read(serve, remote):
    """A server that refuses a large request at once may not read it; its answer counts."""

    def refuse(connection, request, server):
        connection.recv(1000)
        connection.sendall(reply(413, b"too large", kind="text/plain"))
        server.stopping.wait(2)

    server = serve(refuse, reads=False)
    assert "answered 413: too large" in remote(server).failure(command="x" * 8_000_000)


def test_a_server_that_does_not_read(serve, remote):
    server = serve(silent, reads=False)
    hook = remote(server, options={"timeout": 1.5}, redact=False)
    assert "time was over while sending" in hook.failure(command="x" * 20_000_000)


def test_answers_in_pieces(serve, remote):
    """Bytes may come as they like: one by one, chunked, with an interim answer before."""

    def pieces(connection, request, server):
        answer = b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
        for byte in answer + b'4\r\n{"de\r\n9;x=y\r\nny":"no"}\r\n0\r\nX: y\r\n\r\n':
            connection.sendall(bytes([byte]))

    assert remote(serve(pieces)).fire().reason == "no"


def test_an_answer_until_the_end_of_the_connection(serve, remote):
    assert remote(serve(b'HTTP/1.0 200 OK\r\n\r\n{"deny":"no"}')).fire().reason == "no"


# -- TLS --------------------------------------------------------------------------------------------


def test_a_certificate_that_nobody_vouches_for(serve, remote, tls, names):
    names["hook.test"] = ["127.0.0.1"]
    server = serve(tls=tls)
    hook = remote(f"https://hook.test:{server.port}/")
    assert "the certificate is not good for hook.test: self-signed certificate" in hook.failure().replace(
        "self signed", "self-signed"
    )
    assert server.requests == [] and server.connections == 1


def test_a_certificate_that_is_known(serve, remote, tls, names, certificate, monkeypatch):
    """The connection goes to the resolved address, the certificate is checked against the name."""
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    names["hook.test"] = ["127.0.0.1"]
    server = serve(reply(200, {"deny": "no"}), tls=tls)
    assert remote(f"https://hook.test:{server.port}/").fire().reason == "no"
    assert names.asked == ["hook.test"]
    assert server.requests[0].headers["host"] == f"hook.test:{server.port}"


def test_a_certificate_of_another_name(serve, remote, tls, names, certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    names["other.test"] = ["127.0.0.1"]
    server = serve(tls=tls)
    message = remote(f"https://other.test:{server.port}/").failure()
    assert "the certificate is not good for other.test" in message and "mismatch" in message
    assert server.requests == []


def test_a_certificate_for_no_address(serve, remote, tls, certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    assert "not good for 127.0.0.1" in remote(serve(tls=tls)).failure()


def test_tls_to_a_server_without(serve, remote):
    server = serve(b"HTTP/1.1 400 Bad\r\n\r\n", reads=False)
    hook = remote(server.url.replace("http:", "https:"), retries=0)
    assert "TLS failed" in hook.failure()


def test_a_server_that_never_shakes_hands(serve, remote):
    server = serve(silent, reads=False)
    hook = remote(server.url.replace("http:", "https:"), options={"timeout": 0.5})
    assert "time was over while beginning TLS" in hook.failure()


def test_large_bodies_over_tls(serve, remote, tls, names, certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    names["hook.test"] = ["127.0.0.1"]
    body = b'{"warn": "' + b"w" * 900_000 + b'"}'
    server = serve(reply(200, body), tls=tls)
    outcome = remote(f"https://hook.test:{server.port}/", redact=False).fire(command="x" * 3_000_000)
    assert len(outcome.warnings[0]) == 900_000
    assert len(server.requests[0].json["event"]["command"]) == 3_000_000


# -- proxies ----------------------------------------------------------------------------------------


def test_proxies_of_the_environment_do_not_count(serve, remote, monkeypatch):
    proxy, server = serve(), serve(reply(200, {"deny": "no"}))
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, f"http://127.0.0.1:{proxy.port}")
    assert remote(server).fire().reason == "no"
    assert proxy.connections == 0


def test_a_configured_proxy(serve, remote):
    proxy = serve(reply(200, {"deny": "by proxy"}))
    hook = remote("http://hook.test/x?y", proxy=f"http://127.0.0.1:{proxy.port}", allow=())
    assert hook.fire().reason == "by proxy"
    assert proxy.requests[0].target == "http://hook.test/x?y"
    assert proxy.requests[0].headers["host"] == "hook.test"


def test_addresses_behind_a_proxy_are_checked(serve, remote):
    from hookturn.spec.errors import RegistrationError

    proxy = serve()
    with pytest.raises(RegistrationError):
        remote("http://169.254.169.254/latest", proxy=f"http://127.0.0.1:{proxy.port}", allow=())
    assert proxy.connections == 0


def test_a_tunnel(serve, remote, tls, certificate, monkeypatch):
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate[0]))
    server = serve(reply(200, {"deny": "through"}), tls=tls)
    asked = []

    def tunnel(connection, request, proxy):
        asked.append((request.method, request.target, "authorization" in request.headers))
        with socket.create_connection(("127.0.0.1", server.port)) as far:
            connection.sendall(b"HTTP/1.1 200 Connection established\r\n\r\n")
            back = threading.Thread(target=pump, args=(far, connection))
            back.start()
            pump(connection, far)
            back.join()

    def pump(source, target):
        try:
            while part := source.recv(65_536):
                target.sendall(part)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            return

    proxy = serve(tunnel)
    hook = remote(
        "https://hook.test/", proxy=f"http://127.0.0.1:{proxy.port}", headers={"Authorization": "x"}
    )
    assert hook.fire().reason == "through"
    assert asked == [("CONNECT", "hook.test:443", False)]


def test_an_address_behind_a_proxy_is_checked_when_it_is_sent_to():
    from hookturn.runners.addresses import Forbidden, Network, parse_url
    from hookturn.runners.http import send

    network = Network(proxy="http://127.0.0.1:9")
    with pytest.raises(Forbidden):
        send(parse_url("http://10.0.0.1/"), "POST", {}, b"{}", network=network, end=time.monotonic() + 5)


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"HTTP/1.1 407 No\r\n\r\n", "the proxy refused the connection (407)"),
        (b"garbage\r\n\r\n", "the proxy refused the connection (no status)"),
        (b"HTTP/1.1 200", "the proxy closed the connection"),
        (silent, LATE),
    ],
    ids=["407", "no status", "cut off", "silent"],
)
def test_a_proxy_that_does_not_work(serve, remote, answer, words):
    proxy = serve(answer)
    hook = remote(
        "https://hook.test/", proxy=f"http://127.0.0.1:{proxy.port}", retries=0, options={"timeout": 1.0}
    )
    assert words in hook.failure()


# -- many at once -----------------------------------------------------------------------------------


def test_many_threads_at_once(serve, remote):
    def slow(connection, request, server):
        time.sleep(0.05)
        connection.sendall(reply(200, {"deny": request.json["event"]["command"]}))

    hook = remote(serve(slow))
    found = []

    def fire(number):
        found.append((str(number), hook.fire(command=str(number)).reason))

    threads = [threading.Thread(target=fire, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 20 and all(asked == answered for asked, answered in found)
