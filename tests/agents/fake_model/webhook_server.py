"""A team's webhook for tests: it denies commands that hold a word, and has no opinion on others. Loopback only."""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread


class Webhook:
    """The server, a context manager.

    Parameters:
        word: what a command must hold to be denied.
        reason: why.
        port: of 127.0.0.1.

    Attributes:
        asked: the commands that it was asked about.
    """

    def __init__(self, word, reason, port):
        self.word = word
        self.reason = reason
        self.asked = []
        handler = type("Handler", (_Handler,), {"hook": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True

    def __enter__(self):
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exception):
        self._server.shutdown()
        self._server.server_close()


class _Handler(BaseHTTPRequestHandler):
    hook: Webhook
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        pass

    def do_POST(self):
        event = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["event"]
        command = event.get("command") or ""
        self.hook.asked.append(command)
        body = json.dumps({"deny": self.hook.reason}).encode() if self.hook.word in command else b""
        self.send_response(200 if body else 204)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)
