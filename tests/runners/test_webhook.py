"""Webhooks whose answer is waited for, against real servers."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import socket
import threading
import time
from pathlib import Path

import pytest

from hookturn import events
from hookturn.redact import Secret
from hookturn.runners import webhook
from hookturn.spec.answers import Deny, Warn
from hookturn.spec.errors import RegistrationError


def _shared():
    spec = importlib.util.spec_from_file_location("webhook_servers", Path(__file__).parent / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


_servers = _shared()
reply, tool_call = _servers.reply, _servers.tool_call

SECRETS = ["whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw", "whsec_" + "QUJD" * 11]
TOKEN = "ghp_" + "a1B2c3D4e5F6g7H8i9J0" + "k1L2m3N4o5P6q7R8"

pytestmark = pytest.mark.usefixtures("no_leak")


# -- the request ------------------------------------------------------------------------------------


def test_the_request(serve, remote):
    server = serve()
    remote(server, headers={"X-Team": "tools"}, config={"branch": "main"}).fire(command="ls -l")
    (request,) = server.requests
    assert (request.method, request.target, request.version) == ("POST", "/hook?key=url-secret", "HTTP/1.1")
    assert request.headers["host"] == f"127.0.0.1:{server.port}"
    assert request.headers["content-type"] == "application/json"
    assert request.headers["x-team"] == "tools"
    assert request.headers["webhook-id"].startswith("msg_")
    assert abs(int(request.headers["webhook-timestamp"]) - time.time()) < 30
    assert "webhook-signature" not in request.headers
    assert request.json["schema"] == 1
    assert request.json["timing"] == "pre_tool_execution"
    assert request.json["event"]["command"] == "ls -l"
    assert request.json["config"] == {"branch": "main"}


@pytest.mark.parametrize("method", ["PUT", "PATCH"])
def test_other_methods(serve, remote, method):
    server = serve()
    remote(server, method=method).fire()
    assert server.requests[0].method == method


def test_signatures_are_those_of_standard_webhooks(serve, remote):
    standard = pytest.importorskip("standardwebhooks")
    server = serve()
    secrets = [Secret(SECRETS[0]), SECRETS[1]]
    remote(server, secret=secrets).fire(command="echo ü\ud800\0")
    (request,) = server.requests
    for secret in SECRETS:  # while the key is changed, old receivers and new ones both verify
        found = standard.Webhook(secret).verify(request.body, request.headers)
        assert found["event"]["tool"] == "bash"
    other = standard.Webhook("whsec_" + "QUJE" * 11)
    with pytest.raises(standard.WebhookVerificationError):
        other.verify(request.body, request.headers)
    with pytest.raises(standard.WebhookVerificationError):
        standard.Webhook(SECRETS[0]).verify(request.body + b" ", request.headers)


def test_a_signature_of_the_specification():
    """Source: the example of the Standard Webhooks reference implementations."""
    from hookturn.runners.signing import key_of, signature

    key = key_of("whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw")
    found = signature([key], "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330, b'{"test": 2432232314}')
    assert found == "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="


def test_secrets_in_the_event_stay_here(serve, remote):
    server = serve()
    hook = remote(server, config={"key": Secret("s3cret-value", "key")})
    hook.fire(command=f"curl -H 'Authorization: Bearer {TOKEN}'")
    text = server.requests[0].body.decode()
    assert TOKEN not in text and "REDACTED" in text
    assert "s3cret-value" not in text


def test_a_server_of_ones_own_may_get_them(serve, remote):
    server = serve()
    remote(server, redact=False).fire(command=f"echo {TOKEN}")
    assert server.requests[0].json["event"]["command"] == f"echo {TOKEN}"


def test_hostile_texts_are_valid_json(serve, remote):
    server = serve()
    outcome = remote(server).fire(command="\ud800\0\r\nX: y\r\n\r\n" + "x" * 300_000)
    assert not outcome.failures
    assert server.requests[0].json["event"]["command"].startswith("\ud800\0\r\nX: y")


def test_dry_events_are_not_sent(serve, remote):
    server = serve()
    assert remote(server).fire(tool_call(dry_run=True)).failures == ()
    assert server.requests == []
    remote(server, live=True).fire(tool_call(dry_run=True))
    assert server.requests[0].json["event"]["dry_run"] is True


# -- answers ----------------------------------------------------------------------------------------


def test_no_opinion(serve, remote):
    for answer in (
        reply(204),
        reply(200),
        reply(202, b"  \n"),
        reply(200, {}),
        reply(201, b"\xef\xbb\xbf{}"),
    ):
        outcome = remote(serve(answer)).fire()
        assert (outcome.decision, outcome.failures) == (None, ())


def test_a_denial(serve, remote):
    outcome = remote(serve(reply(200, {"deny": "no", "advice": "wait"}))).fire()
    assert (outcome.decision, outcome.reason, outcome.by) == ("deny", "no", "remote")


def test_a_rewrite(serve, remote):
    outcome = remote(serve(reply(200, {"rewrite": {"command": "ls -l"}}))).fire()
    assert outcome.event.command == "ls -l"


@pytest.mark.parametrize("kind", ["", "application/json; charset=utf-8", "application/problem+json"])
def test_kinds_of_json(serve, remote, kind):
    assert remote(serve(reply(200, {"ask": "sure?"}, kind=kind))).fire().decision == "ask"


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (
            reply(200, b"<html>hello</html>", kind="text/html"),
            "status 200 with 'text/html' (<html>hello</html>)",
        ),
        (reply(200, b"ok", kind="text/plain"), "status 200 with 'text/plain' (ok)"),
        (reply(200, b"{", kind=""), "its answer is not valid JSON"),
        (reply(200, b"[]"), "an answer is one JSON object"),
        (reply(200, {"denny": "x"}), "unknown key 'denny'"),
        (reply(200, b'{"deny": "\xff"}'), "its output is not UTF-8"),
        (reply(302, Location="http://127.0.0.1/"), "answered 302, a redirect, and none is followed"),
        (reply(400, {"why": "bad"}), 'answered 400: {"why": "bad"}'),
        (reply(401), "answered 401"),
        (reply(101), "answered 101"),
    ],
)
def test_what_is_no_answer(serve, remote, answer, words):
    server = serve(answer)
    message = remote(server).failure()
    assert message.startswith("hookturn.yaml:7: ") and words in message
    assert "url-secret" not in message
    assert len(server.requests) == 1  # nothing of this is tried again


def test_a_redirect_is_not_followed(serve, remote):
    other = serve()
    server = serve(reply(307, Location=other.url))
    assert "none is followed" in remote(server).failure()
    assert other.connections == 0


def test_a_failure_of_a_hook_that_fails_closed_denies(serve, remote):
    outcome = remote(serve(reply(403)), options={"on_failure": "deny"}).fire()
    assert outcome.decision == "deny" and outcome.by == "remote"


def test_words_of_the_server_hide_our_secrets(serve, remote):
    def echo(connection, request, server):
        connection.sendall(reply(400, request.headers["authorization"].encode(), kind="text/plain"))

    hook = remote(serve(echo), headers={"Authorization": Secret("Bearer opensesame", "authorization")})
    message = hook.failure()
    assert "opensesame" not in message and "[REDACTED:authorization:" in message


def test_reasons_hide_our_secrets(serve, remote):
    hook = remote(
        serve(reply(200, {"deny": "the key opensesame is wrong"})),
        headers={"Authorization": Secret("opensesame", "authorization")},
    )
    assert "opensesame" not in hook.fire().reason


# -- further tries ----------------------------------------------------------------------------------


@pytest.fixture
def hasty(monkeypatch):
    """Shorten the pauses between tries."""
    monkeypatch.setattr(webhook, "BACKOFF", 0.01)


@pytest.mark.usefixtures("hasty")
def test_tries_have_the_same_id(serve, remote):
    server = serve(reply(500), reply(503), reply(200, {"deny": "at last"}))
    outcome = remote(server, secret=SECRETS[0]).fire()
    assert outcome.reason == "at last"
    assert len({request.headers["webhook-id"] for request in server.requests}) == 1
    assert len({request.body for request in server.requests}) == 1


@pytest.mark.usefixtures("hasty")
def test_tries_end(serve, remote):
    server = serve(reply(500))
    assert "answered 500 (3 tries)" in remote(server).failure()
    assert len(server.requests) == 3
    server = serve(reply(500))
    assert remote(server, retries=0).failure().endswith("answered 500")
    assert len(server.requests) == 1


def test_retry_after_is_respected(serve, remote):
    server = serve(reply(429, Retry_After="1"), reply(204))
    begun = time.monotonic()
    assert remote(server).fire().failures == ()
    assert time.monotonic() - begun >= 1  # no upper bound: the machine may be slow
    assert len(server.requests) == 2


@pytest.mark.parametrize("value", ["3600", "Fri, 31 Dec 2999 23:59:59 GMT"])
def test_a_pause_beyond_the_time_is_not_waited_for(serve, remote, value):
    server = serve(reply(503, Retry_After=value))
    assert "no time is left for another try" in remote(server).failure()
    assert len(server.requests) == 1


def test_pauses_that_are_none():
    for value in ("", "soon", "-1", "1.5", "²", "Fri, 31 Dec 1999 23:59:59 GMT", "9" * 400):
        assert 0 <= webhook.retry_after(value) <= webhook.LONGEST_PAUSE
    assert webhook.retry_after("7") == 7


def test_nobody_listens(remote):
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    hook = remote(f"http://127.0.0.1:{port}/", backoff=[0.01, 0.01])
    assert "no connection: Connection refused (3 tries)" in hook.failure()


def test_410_ends_it_for_the_process(serve, remote, hook_log):
    server = serve(reply(410))
    hook = remote(server)
    assert "answered 410: nobody wants these requests any more" in hook.failure()
    outcome = hook.fire()
    assert (outcome.decision, outcome.failures) == (None, ())
    assert len(server.requests) == 1
    assert len([line for line in hook_log.of("remote") if "it is off for this process" in line]) == 1


def test_410_to_a_hook_that_fails_closed(serve, remote):
    server = serve(reply(410))
    hook = remote(server, options={"guard": True})
    assert hook.fire().decision == "deny"
    assert hook.fire().decision == "deny"
    assert len(server.requests) == 1


# -- time -------------------------------------------------------------------------------------------


def hang(connection, request, server):
    """Say nothing until the other side goes."""
    connection.recv(1)


def test_the_limit(serve, remote):
    hook = remote(serve(hang), options={"timeout": 0.3})
    message = hook.failure()
    assert "no answer within 0." in message and "(time was over while waiting for the answer)" in message


@pytest.mark.usefixtures("hasty")
def test_the_limit_of_one_try(serve, remote):
    server = serve(hang, reply(200, {"deny": "second"}))
    assert remote(server, timeout=0.2).fire().reason == "second"
    server = serve(hang)
    assert "no answer within 0.1 s" in remote(server, timeout=0.1).failure()
    assert len(server.requests) == 3


def test_the_limit_covers_looking_a_name_up(remote, monkeypatch):
    release = threading.Event()
    monkeypatch.setattr("socket.getaddrinfo", lambda *rest, **options: release.wait(20) and [])
    hook = remote("http://hook.test/", options={"timeout": 0.2})
    try:
        assert "time was over while looking up hook.test" in hook.failure()
    finally:
        release.set()


def test_in_a_coroutine(serve, remote):
    hook = remote(serve(reply(200, {"deny": "no"})))

    async def fire():
        ticks = 0

        async def tick():
            nonlocal ticks
            while True:
                ticks += 1
                await asyncio.sleep(0)

        ticking = asyncio.create_task(tick())
        outcome = await hook.engine.afire(tool_call())
        ticking.cancel()
        return outcome, ticks

    outcome, ticks = asyncio.run(fire())
    assert outcome.reason == "no"
    assert ticks > 2


def test_a_cancelled_coroutine_closes_the_connection(serve, remote):
    gone = threading.Event()

    def until_gone(connection, request, server):
        if connection.recv(1) == b"":
            gone.set()

    server = serve(until_gone)
    hook = remote(server)

    async def fire():
        task = asyncio.create_task(hook.engine.afire(tool_call()))
        while not server.requests:
            await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(fire())
    assert gone.wait(10)


def test_the_limit_in_a_coroutine(serve, remote):
    gone = threading.Event()

    def until_gone(connection, request, server):
        if connection.recv(1) == b"":
            gone.set()

    hook = remote(serve(until_gone), options={"timeout": 0.2})
    outcome = asyncio.run(hook.engine.afire(tool_call()))
    assert len(outcome.failures) == 1 and "TimeoutError" in str(outcome.failures[0].error_type)
    assert gone.wait(10)


# -- what is refused at registration ------------------------------------------------------------------


@pytest.mark.parametrize(
    ("run", "words"),
    [
        ({"url": "ftp://example.com/"}, "begins with https:// or http://"),
        ({"url": Secret("http://127.0.0.1:9/")}, "127.0.0.1 is this machine itself"),
        (
            {"url": "https://example.com/", "headers": {"X": "a\r\nHost: evil"}},
            "the value of X holds a line break",
        ),
        (
            {"url": "https://example.com/", "headers": {"X": Secret("a\nb")}},
            "the value of X holds a line break",
        ),
        ({"url": "https://example.com/", "headers": {"X Y": "a"}}, "the name of a header"),
        ({"url": "https://example.com/", "headers": {"Content-Length": "1"}}, "is set by the sender itself"),
        ({"url": "https://example.com/", "headers": {"Webhook-Id": "1"}}, "belongs to the signature"),
        ({"url": "https://example.com/", "headers": {"X": "€"}}, "characters that no header has"),
        ({"url": "https://example.com/", "secret": "whsec_!"}, "is not of the form whsec_<base64>"),
        ({"url": "https://example.com/", "secret": ["whsec_QUJD"]}, "the secret holds 3 bytes"),
    ],
)
def test_what_cannot_run_is_refused(remote, run, words):
    with pytest.raises(RegistrationError) as refused:
        remote(**run, allow=())
    assert words in refused.value.cause
    assert "evil" not in str(refused.value) and "QUJD" not in str(refused.value)


# -- dialects ---------------------------------------------------------------------------------------


class OtherWire(webhook.WebhookWire):
    def request(self, entry, timing, event, ctx, config):
        return json.dumps({"hook_name": entry.name, "tool": event.tool}).encode()

    def headers(self, entry, timing, event, ctx, body):
        return {"X-Hook": entry.name, "content-type": "application/x-other"}

    def responded(self, entry, timing, event, ctx, status, headers, body):
        return [Deny(f"{status} {headers['x-why']} {body.decode()}"), Warn("told")]


def test_a_wire_of_another_dialect(serve, remote):
    server = serve(reply(202, b"words", kind="text/plain", X_Why="because"))
    outcome = remote(server, wire=OtherWire(), headers={"x-hook": "mine"}).fire()
    assert outcome.reason == "202 because words"
    assert outcome.warnings == ("told",) or list(outcome.warnings) == ["told"]
    request = server.requests[0]
    assert request.json == {"hook_name": "remote", "tool": "bash"}
    assert request.headers["x-hook"] == "mine"
    assert request.headers["content-type"] == "application/x-other"


def test_host_events_that_take_answers_are_waited_for(serve, remote):
    server = serve(reply(200, {"block": "no"}))
    hook = remote(server, timings=["on_event"])
    outcome = hook.fire(events.Event(type="x.y", accepts=["Block"]))
    assert outcome.decision == "block"
