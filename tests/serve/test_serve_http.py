"""Loopback HTTP as agents and attackers speak it, against a real resident process."""

from __future__ import annotations

import http.client
import json
import threading
from pathlib import Path

import pytest


def test_a_decision(web, home):
    status, body = web.post(home.payload("rm -rf /"))
    assert status == 200
    assert home.decision(json.loads(body)) == "deny"
    status, body = web.post(home.payload("ls"))
    assert (status, body) == (200, b"")


def test_many_requests_on_one_connection(web, home):
    connection = http.client.HTTPConnection("127.0.0.1", web.port, timeout=30)
    for number in range(20):
        bad = number % 3 == 0
        connection.request(
            "POST", "/hooks/claude-code", home.payload("rm -rf /" if bad else "ls"), web.headers()
        )
        answer = connection.getresponse()
        assert answer.status == 200
        assert (b"deny" in answer.read()) is bad
    connection.close()


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Authorization": None}, 401),
        ({"Authorization": "Bearer wrong"}, 401),
        ({"Authorization": "Bearer "}, 401),
        ({"Authorization": "Basic x"}, 401),
        ({"Authorization": "Bearer \xe9"}, 401),
        ({"Host": "evil.example"}, 421),
        ({"Host": "127.0.0.1:1"}, 421),
        ({"Host": ""}, 421),
        ({"Origin": "http://127.0.0.1"}, 403),
        ({"Origin": "null"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_who_is_not_let_in_decides_nothing(web, home, headers, status):
    assert web.post(home.payload("rm -rf /"), **headers)[0] == status
    assert home.status()["calls"] == (0 if status in (401, 403, 421) else 1)


def test_other_paths_and_methods(web, home):
    assert web.post(b"{}", "/")[0] == 404
    assert web.post(b"{}", "/hooks/nobody")[0] == 404
    assert web.post(b"{}", "/hooks/../hooks/claude-code")[0] == 404
    assert web.post(b"", method="GET")[0] == 405
    assert web.post(b"", method="OPTIONS")[0] == 405


def test_it_listens_on_loopback_only(web):
    lines = Path("/proc/net/tcp").read_text().splitlines()[1:]
    listening = [line.split()[1] for line in lines if line.split()[3] == "0A"]
    assert [place for place in listening if place.endswith(f":{web.port:04X}")] == [
        f"0100007F:{web.port:04X}"
    ]


def test_the_token_stays(web, home):
    before = (web.port, web.token)
    home.hookturn("serve", "--stop")
    again = home.http()
    assert (again.port, again.token) == before
    assert again.post(home.payload("ls"))[0] == 200


def test_an_answer_by_policy_when_a_hook_hangs_and_nobody_watches(web, home):
    """Nothing of a hook's own limit: the whole call is over."""
    home.hook("import time\n" + home.GUARD.replace("    if", "    time.sleep(600)\n    if"), name="hang")
    status, body = web.post(home.payload("ls"), "/hooks/claude-code?timeout=2")
    assert status == 200
    assert home.decision(json.loads(body)) == "deny"


def test_the_environment_of_a_session_is_that_of_its_start(web, home):
    home.hook(
        """
from hookturn import Deny, hookimpl

@hookimpl
def pre_tool_execution(event, ctx):
    return Deny(ctx.env.get("WHO", "nobody"))
"""
    )
    home.environ["WHO"] = "ada"
    home.call(
        payload=json.dumps(
            {
                "session_id": "s9",
                "hook_event_name": "SessionStart",
                "source": "startup",
                "cwd": str(home.project),
            }
        ).encode()
    )
    assert b": ada" in web.post(home.payload("ls", session_id="s9"))[1]
    assert b": nobody" in web.post(home.payload("ls", session_id="s10"))[1]


@pytest.mark.parametrize(
    "lines",
    [
        ("Content-Length: 2", "Content-Length: 2"),
        ("Content-Length: 2, 2",),
        ("Content-Length: +2",),
        ("Content-Length: -1",),
        ("Content-Length: 0x2",),
        ("Content-Length: 2", "Transfer-Encoding: chunked"),
        ("Transfer-Encoding: chunked, identity",),
        ("Transfer-Encoding: xchunked",),
        ("Transfer-Encoding: chunked", "Transfer-Encoding: chunked"),
        ("Content-Length : 2",),
        (" Content-Length: 2",),
        ("X: a\nContent-Length: 2",),
        ("X: a\rb",),
        ("X: \0",),
        ("no colon",),
        (": empty",),
        ("Host: evil.example", "Content-Length: 2"),
        ("Expect: 200-maybe", "Content-Length: 2"),
    ],
)
def test_what_two_readers_could_read_in_two_ways_is_refused_and_ends_the_connection(web, home, lines):
    hidden = web.request(home.payload("ls"), "Content-Length: 2")
    answer = web.raw(web.request(b"{}", *lines) + hidden)
    assert answer.count(b"HTTP/1.1") == 1
    assert answer[9:10] in (b"4", b"5")
    assert home.status()["calls"] == 0 or b" 417 " in answer


def test_pipelined_requests_are_answered_in_order(web, home):
    bodies = [home.payload(command) for command in ("rm -rf /", "ls", "rm -rf /")]
    data = b"".join(web.request(body, f"Content-Length: {len(body)}") for body in bodies)
    answer = web.raw(data)
    assert [b"deny" in part for part in answer.split(b"HTTP/1.1 200")[1:]] == [True, False, True]


def test_chunks(web, home):
    body = home.payload("rm -rf /")
    chunks = b"".join(b"%X;x=y\r\n%s\r\n" % (len(part), part) for part in (body[:10], body[10:]))
    answer = web.raw(web.request(chunks + b"0\r\nTrailer: x\r\n\r\n", "Transfer-Encoding: Chunked"))
    assert b" 200 " in answer and b"deny" in answer


def test_sizes(web, home):
    assert b" 431 " in web.raw(web.request(b"", "X: " + "x" * 40_000))
    assert b" 431 " in web.raw(web.request(b"", *["X: y"] * 200))
    assert b" 431 " in web.raw(b"GET /" + b"x" * 10_000 + b" HTTP/1.1\r\n\r\n")
    assert b" 413 " in web.raw(web.request(b"", "Content-Length: 99999999999"))
    assert b" 413 " in web.raw(web.request(b"FFFFFFFF\r\n", "Transfer-Encoding: chunked"))
    assert web.post(home.payload("ls " + "x" * 10_000_000))[0] == 200


def test_expectations_and_old_versions(web, home):
    body = home.payload("ls")
    answer = web.raw(web.request(body, f"Content-Length: {len(body)}", "Expect: 100-continue"))
    assert answer.startswith(b"HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200")
    old = web.request(body, f"Content-Length: {len(body)}").replace(b"HTTP/1.1", b"HTTP/1.0")
    assert web.raw(old + old).count(b" 200 ") == 1
    assert b" 505 " in web.raw(b"GET / HTTP/2.0\r\n\r\n")
    assert b" 400 " in web.raw(b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03\r\n\r\n")
    assert web.raw(b"") == b""


def test_parallel_sessions(web, home):
    wrong = []

    def agent(number):
        for step in range(10):
            command = "rm -rf /" if (number + step) % 2 else "ls"
            status, body = web.post(
                home.payload(command, session_id=f"p{number}", tool_use_id=f"{number}-{step}")
            )
            if status != 200 or (b"deny" in body) != (command != "ls"):
                wrong.append((status, body))

    threads = [threading.Thread(target=agent, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert home.status()["calls"] == 80
