"""Webhooks against servers and URLs that try more than faults: interim answers, and names behind a proxy."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest


def _shared():
    spec = importlib.util.spec_from_file_location("webhook_servers", Path(__file__).parent / "conftest.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


reply = _shared().reply

pytestmark = pytest.mark.usefixtures("no_leak")

EARLY = b"HTTP/1.1 103 Early Hints\r\nLink: </x>\r\n\r\n"
LATER = b"HTTP/1.1 102 Processing\r\n\r\n"
GO_ON = b"HTTP/1.1 100 Continue\r\n\r\n"


@pytest.mark.parametrize("before", [EARLY, LATER, GO_ON, EARLY + GO_ON + LATER + EARLY])
def test_a_refusal_behind_interim_answers_counts(serve, remote, before):
    """Source: RFC 9110, 15.2: a client must be able to read one or more of them before the final answer."""
    hook = remote(serve(before + reply(200, {"deny": "no"})))
    assert hook.fire().reason == "no"


@pytest.mark.parametrize("one", [EARLY, LATER, GO_ON])
def test_a_flood_of_interim_answers_ends(serve, remote, one):
    hook = remote(serve(one * 5_000), retries=0)
    assert "longer than" in hook.failure() or "no HTTP" in hook.failure()


def test_an_answer_that_changes_the_protocol_is_none(serve, remote):
    hook = remote(
        serve(b"HTTP/1.1 101 Switching\r\nUpgrade: x\r\n\r\n" + reply(200, {"deny": "no"})), retries=0
    )
    assert "answered 101" in hook.failure()


@pytest.mark.parametrize("host", ["localhost", "localhost.", "LOCALHOST", "api.localhost"])
def test_a_proxy_does_not_lead_back_to_the_loopback(serve, remote, host):
    proxy = serve()
    hook = remote(f"http://{host}:2375/", proxy=f"http://127.0.0.1:{proxy.port}", allow=(), retries=0)
    assert "this machine itself" in hook.failure()
    assert proxy.connections == 0


def test_a_proxy_leads_to_the_loopback_where_the_user_allows_it(serve, remote):
    proxy = serve(reply(200, {"deny": "no"}))
    hook = remote("http://localhost:2375/", proxy=f"http://127.0.0.1:{proxy.port}", allow=("localhost",))
    assert hook.fire().reason == "no"


def test_a_name_that_only_begins_like_it_goes_through_the_proxy(serve, remote):
    proxy = serve(reply(200, {"deny": "no"}))
    hook = remote("http://localhost.example.com/", proxy=f"http://127.0.0.1:{proxy.port}", allow=())
    assert hook.fire().reason == "no"
