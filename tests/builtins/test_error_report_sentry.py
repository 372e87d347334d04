"""What error-report sends to Sentry, read off the wire by a server that plays Sentry."""

from __future__ import annotations

import gzip
import json
import random
import string
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from hookturn import Engine, events, hookimpl
from hookturn.paths import config_root
from hookturn.redact import Secret
from hookturn_builtins.error_report import Config, plugin
from hookturn_builtins.error_report.store import read

sentry_sdk = pytest.importorskip("sentry_sdk", reason="the extra 'sentry' is not installed")

TOKEN = "ghp_" + "".join(random.Random(7).choices(string.ascii_letters + string.digits, k=36))


class Sentry:
    """A server that takes envelopes.

    Attributes:
        dsn: what its clients are given.
        bodies: what it was sent, unpacked.
    """

    def __init__(self) -> None:
        self.bodies: list[bytes] = []
        sentry = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                packed = self.headers.get("Content-Encoding")
                assert packed in (None, "gzip")
                sentry.bodies.append(gzip.decompress(body) if packed else body)
                self.send_response(200)
                self.end_headers()
                self.wfile.write(b"{}")

            def log_message(self, *_: object) -> None:
                """Print nothing."""

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.dsn = f"http://abcdef0123456789@127.0.0.1:{self.server.server_port}/42"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def events(self) -> list[dict]:
        found = []
        for body in self.bodies:
            lines = body.split(b"\n")
            assert json.loads(lines[1])["type"] == "event"
            found.append(json.loads(lines[2]))
        return found


@pytest.fixture
def sentry(monkeypatch):
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY"):
        monkeypatch.delenv(name, raising=False)
    made = Sentry()
    yield made
    made.server.shutdown()
    made.server.server_close()


def engine(project: Path, dsn: str | None, *plugins: object, **options: object) -> Engine:
    config = Config()
    config.sentry = dsn
    config.validate()
    made = Engine(plugins=plugins, project_dir=project, **options)  # type: ignore[arg-type]
    made.register(plugin(config), "error-report", layer="builtin")
    return made


class Bad:
    hookturn_name = "bad"

    @hookimpl
    def pre_tool_execution(self, event):
        kept_in_a_local = "only-in-a-local-variable"
        raise ValueError(f"no {TOKEN} {len(kept_in_a_local)}")


def test_an_error_arrives_without_secrets_and_without_locals(
    tmp_path: Path, sentry: Sentry, hook_log
) -> None:
    with engine(tmp_path, sentry.dsn, Bad()) as made:
        made.fire(events.PreToolExecution(tool="bash", args={}, session_id="s1", turn=2, host="h"))
    [event] = sentry.events()
    [exception] = event["exception"]["values"]
    assert exception["type"] == "ValueError"
    assert exception["value"].startswith("no [REDACTED:")
    frame = exception["stacktrace"]["frames"][-1]
    assert (frame["function"], "vars" in frame) == ("pre_tool_execution", False)
    assert event["tags"] == {"phase": "hook", "hook": "bad", "agent": "main", "host": "h"}
    assert event["contexts"]["hookturn"]["turn"] == 2
    assert event["fingerprint"] == [read(str(tmp_path / ".hookturn" / "errors.sqlite"))[0]["fingerprint"]]
    assert not event.get("server_name")
    for word in (TOKEN.encode(), TOKEN[4:24].encode(), b"only-in-a-local"):
        assert word not in sentry.bodies[0]


def test_what_the_sdk_adds_is_scrubbed_too(tmp_path: Path, sentry: Sentry, monkeypatch) -> None:
    monkeypatch.setenv("SENTRY_ENVIRONMENT", TOKEN)  # the SDK takes it by itself
    with engine(tmp_path, sentry.dsn) as made:
        made.fire(events.Error(error_type="E", message="m"))
    assert len(sentry.bodies) == 1
    assert TOKEN.encode() not in sentry.bodies[0]


def test_the_same_error_is_not_sent_again_at_once(tmp_path: Path, sentry: Sentry) -> None:
    with engine(tmp_path, sentry.dsn) as made:
        for _ in range(50):
            made.fire(events.Error(error_type="E", message="m"))
        made.fire(events.Error(error_type="E", message="another"))
    assert sorted(event["exception"]["values"][0]["value"] for event in sentry.events()) == ["another", "m"]
    assert {row["count"] for row in read(str(tmp_path / ".hookturn" / "errors.sqlite"))} == {50, 1}


def test_nothing_is_sent_unless_asked_for_nor_in_a_dry_run(
    tmp_path: Path, sentry: Sentry, monkeypatch
) -> None:
    monkeypatch.setenv("SENTRY_DSN", sentry.dsn)
    with engine(tmp_path, None) as made:
        made.fire(events.Error(error_type="E", message="m"))
    with engine(tmp_path, sentry.dsn, dry_run=True, output_dir=tmp_path / "out") as made:
        made.fire(events.Error(error_type="E", message="m"))
    assert sentry.bodies == []


def test_the_applications_own_sentry_is_left_alone(tmp_path: Path, sentry: Sentry) -> None:
    own = Sentry()
    sentry_sdk.init(dsn=own.dsn, default_integrations=False)
    try:
        client = sentry_sdk.get_client()
        sentry_sdk.set_tag("own", "tag")
        with engine(tmp_path, sentry.dsn) as made:
            made.fire(events.Error(error_type="E", message="m"))
        assert sentry_sdk.get_client() is client
        assert client.is_active()
        client.close(timeout=2.0)
    finally:
        sentry_sdk.get_isolation_scope().clear()
        sentry_sdk.get_global_scope().set_client(None)
        own.server.shutdown()
        own.server.server_close()
    assert own.bodies == []
    [event] = sentry.events()
    assert "own" not in event["tags"]


def test_a_sentry_that_is_away_disturbs_nobody(tmp_path: Path, hook_log) -> None:
    with engine(tmp_path, "http://key@127.0.0.1:9/1") as made:
        out = made.fire(events.Error(error_type="E", message="m"))
    assert (out.failures, out.warnings) == ((), ())
    assert hook_log.of("error-report") == []
    assert read(str(tmp_path / ".hookturn" / "errors.sqlite"))[0]["count"] == 1


def test_the_dsn_comes_from_the_environment(tmp_path: Path, sentry: Sentry, monkeypatch) -> None:
    monkeypatch.setenv("MY_DSN", sentry.dsn)
    config_root().mkdir(parents=True)
    (config_root() / "hookturn.yaml").write_text("plugins:\n  error-report: {sentry: {env: MY_DSN}}\n")
    with Engine.from_project(tmp_path) as made:
        assert made.failed == []
        made.fire(events.Error(error_type="E", message="m"))
    assert len(sentry.bodies) == 1


def test_a_secret_is_taken_as_a_dsn(sentry: Sentry) -> None:
    config = Config()
    config.sentry = Secret(sentry.dsn)
    config.validate()
