"""A web server of raw sockets that can do everything wrong, and webhooks that talk to it."""

from __future__ import annotations

import json
import os
import socket
import ssl
import threading
import time

import pytest

from hookturn import Engine, events

THREADS = ("hookturn-", "webhook-server")


class Request:
    """A request as it came."""

    def __init__(self, head: bytes, body: bytes):
        lines = head.decode("latin-1").split("\r\n")
        self.method, self.target, self.version = lines[0].split(" ")
        self.headers = {}
        for line in lines[1:]:
            name, _, value = line.partition(": ")
            assert name.lower() not in self.headers, f"{name} is sent twice"
            self.headers[name.lower()] = value
        self.body = body

    @property
    def json(self):
        return json.loads(self.body)


def reply(status=200, body=b"", *, kind="application/json", **headers) -> bytes:
    """Return an answer's bytes."""
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    lines = [f"HTTP/1.1 {status} Some Words", f"Content-Length: {len(body)}"]
    if body and kind:
        lines.append(f"Content-Type: {kind}")
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + body


class Server:
    """Listens on the loopback and gives its answers in turn, the last one for ever.

    An answer is bytes, or a function that gets the connection, the request and the server.
    """

    def __init__(self, *answers, tls=None, reads=True):
        self.answers = list(answers) or [reply(204)]
        self.tls = tls
        self.reads = reads
        self.requests: list[Request] = []
        self.connections = 0
        self.stopping = threading.Event()
        self._changed = threading.Condition()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, name="webhook-server")]
        self._threads[0].start()

    @property
    def url(self):
        return f"{'https' if self.tls else 'http'}://127.0.0.1:{self.port}/hook?key=url-secret"

    def wait(self, count):
        """Wait until this many requests came."""
        with self._changed:
            assert self._changed.wait_for(lambda: len(self.requests) >= count, 20), self.requests
        return self.requests

    def _accept(self):
        while True:
            try:
                connection, _ = self._listener.accept()
            except OSError:
                return
            self.connections += 1
            thread = threading.Thread(target=self._serve, args=(connection,), name="webhook-server")
            self._threads.append(thread)
            thread.start()

    def _serve(self, connection):
        connection.settimeout(20)
        try:
            if self.tls is not None:
                connection = self.tls.wrap_socket(connection, server_side=True)
            request = self._read(connection) if self.reads else None
            if self.reads and request is None:
                return
            with self._changed:
                if request is not None:
                    self.requests.append(request)
                answer = self.answers.pop(0) if len(self.answers) > 1 else self.answers[0]
                self._changed.notify_all()
            if isinstance(answer, bytes):
                connection.sendall(answer)
            else:
                answer(connection, request, self)
        except OSError:
            return  # the client went away, as it may
        finally:
            connection.close()

    @staticmethod
    def _read(connection):
        data = b""
        while b"\r\n\r\n" not in data:
            part = connection.recv(65_536)
            if not part:
                return None
            data += part
        head, _, body = data.partition(b"\r\n\r\n")
        request = Request(head, body)
        while len(request.body) < int(request.headers.get("content-length", 0)):
            part = connection.recv(65_536)
            if not part:
                return None
            request.body += part
        return request

    def close(self):
        self.stopping.set()
        # Waking accept(): closing a listener leaves it asleep.
        self._listener.shutdown(socket.SHUT_RDWR)
        self._listener.close()
        for thread in self._threads:
            thread.join(25)
            assert not thread.is_alive()


@pytest.fixture
def serve():
    """Start servers; all of them end with the test."""
    servers = []

    def start(*answers, **options):
        servers.append(Server(*answers, **options))
        return servers[-1]

    yield start
    for server in servers:
        server.close()


@pytest.fixture
def no_leak():
    """No thread, socket or other descriptor is left."""
    before = set(os.listdir("/proc/self/fd")) if os.path.isdir("/proc/self/fd") else set()
    others = set(threading.enumerate())  # hooks that other tests left behind on purpose, say
    yield
    end = time.monotonic() + 5
    while time.monotonic() < end:
        threads = [
            thread.name
            for thread in threading.enumerate()
            if thread not in others and thread.name.startswith(THREADS)
        ]
        after = set(os.listdir("/proc/self/fd")) if before else set()
        if not threads and len(after) <= len(before):
            return
        time.sleep(0.02)
    raise AssertionError(f"left: {threads}, {len(after) - len(before)} descriptors")


class Hook:
    """A webhook in an engine of its own.

    Parameters:
        run: what stands below ``webhook:``, secrets resolved.
        allow: entries of ``webhooks: {allow: [...]}``.
    """

    def __init__(
        self,
        run,
        *,
        timings=("pre_tool_execution",),
        allow=("127.0.0.1",),
        proxy="",
        config=None,
        live=False,
        wire=None,
        state_dir=None,
        **options,
    ):
        from hookturn.runners import webhook
        from hookturn.runners.addresses import Network
        from hookturn.runners.entry import HookEntry

        self.entry = HookEntry(
            name="remote",
            kind="webhook",
            run=run,
            timings=list(timings),
            options=options,
            file="hookturn.yaml",
            line=7,
            base_dir="/project",
            network=Network(list(allow), proxy),
        )
        self.engine = Engine(project_dir="/", state_dir=state_dir)
        self.plugin = webhook.make(self.entry, config, live=live, wire=wire, state_dir=state_dir)
        self.engine.register(self.plugin, "remote", options=options)

    def fire(self, event=None, **args):
        """Fire a tool call (or another event) and return the outcome."""
        return self.engine.fire(event or tool_call(**args))

    def failure(self, **args):
        """Fire, and return the words of the one failure."""
        outcome = self.fire(**args)
        assert len(outcome.failures) == 1, outcome
        return outcome.failures[0].message


def tool_call(command="ls", **fields):
    return events.PreToolExecution(tool="bash", args={"command": command}, session_id="s1", **fields)


@pytest.fixture
def remote(tmp_path):
    """Make webhooks; their engines are closed with the test."""
    hooks = []

    def make(url, *, timings=("pre_tool_execution",), state_dir=None, options=None, **run):
        more = {name: run.pop(name) for name in ("allow", "proxy", "config", "live", "wire") if name in run}
        target = url if isinstance(url, str) else url.url
        state = tmp_path / "state" if state_dir is None else state_dir
        hooks.append(
            Hook({"url": target, **run}, timings=timings, state_dir=state, **more, **(options or {}))
        )
        return hooks[-1]

    yield make
    for hook in hooks:
        hook.engine.close()


@pytest.fixture(scope="session")
def certificate(tmp_path_factory):
    """A self-signed certificate for the name hook.test; returns the paths of certificate and key."""
    import shutil
    import subprocess

    if shutil.which("openssl") is None:
        pytest.skip("there is no openssl")
    folder = tmp_path_factory.mktemp("tls")
    paths = folder / "cert.pem", folder / "key.pem"
    words = (
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=hook.test -addext subjectAltName=DNS:hook.test"
    )
    subprocess.run(
        ["openssl", *words.split(), "-out", paths[0], "-keyout", paths[1]], check=True, capture_output=True
    )
    return paths


@pytest.fixture
def tls(certificate):
    """The server's side of TLS with that certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(*certificate)
    return context


@pytest.fixture
def names(monkeypatch):
    """A resolver of the test's own: name -> addresses; each look-up is noted in ``names.asked``."""

    class Names(dict):
        asked: list[str]

    table = Names()
    table.asked = []

    def getaddrinfo(host, port, *rest, **options):
        table.asked.append(host)
        found = table[host]
        addresses = found.pop(0) if isinstance(found[0], list) else found
        return [
            (socket.AF_INET6, socket.SOCK_STREAM, 6, "", (address, port, 0, 0))
            if ":" in address
            else (socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in addresses
        ]

    monkeypatch.setattr(socket, "getaddrinfo", getaddrinfo)
    return table
