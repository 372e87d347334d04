"""A scripted stand-in for a hosted model, for tests with real agent programs. Loopback only.

It keeps no conversation: which step a request gets is the number of the model's answers that the request's own
history holds. Retries get the same answer, and requests on the side (titles, summaries: those that offer no
tools) use no step up.

A script is a list of steps, each one answer of the model:

    {"text": "Done."}                                  words; ends the turn
    {"tool": "Read", "args": {...}}                    one call
    {"shell": "date"}                                  one call of whatever shell tool the request offers
    {"calls": [step, step]}                            several calls in one answer
    {"error": 529, "message": "overloaded"}            an HTTP error

or a dict ``{MARK: [steps], "": [steps]}``: a request follows the first whose mark is in its first prompts, so
that a sub-agent has steps of its own. ``tokens`` in a step is what the answer says the input had.
"""

from __future__ import annotations

import json
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Lock, Thread

from model_wires import Call, Said, wire_of

ASIDE = "ok"
"""What requests on the side get."""

OVER = "All done."
"""What requests beyond the script's end get."""

_SHELLS = {
    "Bash": lambda command: {"command": command, "description": "Run a command"},
    "bash": lambda command: {"command": command, "description": "Run a command"},
    "run_shell_command": lambda command: {"command": command, "description": "Run", "is_background": False},
    "exec_command": lambda command: {"cmd": command},
    "shell_command": lambda command: {"command": command},
    "shell": lambda command: {"command": ["bash", "-lc", command]},
}
_SECRET = ("authorization", "x-api-key", "x-goog-api-key", "api-key", "cookie")


class FakeModel:
    """The server, a context manager.

    Attributes:
        url: its root.
        requests: what it was asked, in order: method, path, headers, and for models body, aside and said.
    """

    def __init__(self, script, port=0):
        self.script = script
        self.requests = []
        self._lock = Lock()
        handler = type("Handler", (_Handler,), {"model": self})
        self._server = ThreadingHTTPServer(("127.0.0.1", port), handler)
        self._server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self):
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *exception):
        self._server.shutdown()
        self._server.server_close()

    def note(self, **about):
        with self._lock:
            self.requests.append(about)

    def step(self, wire, body):
        """Return the script's step for a request."""
        script = self.script
        if isinstance(script, dict):
            first = json.dumps(wire.prompts(body)[:2], ensure_ascii=False)
            script = next(
                (steps for mark, steps in script.items() if mark and mark in first), script.get("", [])
            )
        number = wire.answers(body)
        return script[number] if number < len(script) else {"text": OVER}


def _said(step, tools):
    calls = []
    for part in step.get("calls", [step]):
        if "shell" in part:
            name = next(name for name in _SHELLS if name in tools)
            calls.append(Call(name, _SHELLS[name](part["shell"])))
        elif "tool" in part:
            calls.append(Call(part["tool"], part.get("args", {})))
    return Said(step.get("text", ""), calls, step.get("tokens", 10))


class _Handler(BaseHTTPRequestHandler):
    model: FakeModel
    protocol_version = "HTTP/1.1"

    def log_message(self, *words):
        """Say nothing."""

    def _about(self):
        headers = {name: "***" if name.lower() in _SECRET else value for name, value in self.headers.items()}
        return {"method": self.command, "path": self.path.partition("?")[0], "headers": headers}

    def do_GET(self):
        self.model.note(**self._about())
        if self.path.partition("?")[0].endswith("/models"):
            row = {
                "id": "fake",
                "object": "model",
                "type": "model",
                "display_name": "fake",
                "owned_by": "fake",
            }
            self._json({"object": "list", "data": [row], "has_more": False})
        else:
            self._json({"error": {"message": "not here", "type": "not_found_error"}}, 404)

    def do_HEAD(self):
        self._send(b"", "text/plain")

    def do_POST(self):
        body = json.loads(self.rfile.read(int(self.headers.get("Content-Length") or 0)) or b"{}")
        path = self.path.partition("?")[0]
        if path.endswith(("/count_tokens", ":countTokens")):
            self._json({"input_tokens": 10, "totalTokens": 10})
            return
        wire = wire_of(path)
        if wire is None:
            self.model.note(**self._about(), unknown=True)
            self._json({"error": {"message": "not here", "type": "not_found_error"}}, 404)
            return
        tools = wire.tools(body)
        step = self.model.step(wire, body) if tools else {"text": ASIDE}
        self.model.note(**self._about(), body=body, aside=not tools, step=step)
        if "error" in step:
            kind = "overloaded_error" if step["error"] == 529 else "invalid_request_error"
            error = {"type": kind, "message": step.get("message", "scripted"), "code": step["error"]}
            self._json({"type": "error", "error": error}, step["error"])
            return
        said = _said(step, tools)
        if body.get("stream") or path.endswith(":streamGenerateContent"):
            self._send(wire.stream(said, body), "text/event-stream")
        else:
            self._json(wire.whole(said, body))

    def _json(self, data, status=200):
        self._send(json.dumps(data).encode(), "application/json", status)

    def _send(self, content, kind, status=200):
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(content)
