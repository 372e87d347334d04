"""A spool that holds what nobody of ours put there, a clock that jumps, and very many deliveries."""

from __future__ import annotations

import json
import os
import threading
import time

import pytest

from hookturn import events
from hookturn.runners import courier, webhook
from hookturn.runners.spool import Damaged, Spool

pytestmark = pytest.mark.usefixtures("no_leak")


@pytest.fixture
def state(tmp_path):
    return tmp_path / "state"


def add(spool, **changes):
    about = {"id": "msg_1", "key": "k", "hook": "h", "source": "s", "origin": "o", "fingerprint": "f"}
    return spool.add(**{**about, "headers": {}, "body": b"{}", **changes})


def until(condition):
    begun = time.monotonic()
    while not condition():
        assert time.monotonic() - begun < 20, "it never came"
        time.sleep(0.01)


def rewrite(spool, file, **changes):
    path = os.path.join(spool.root, "spool", file)
    with open(path) as stream:
        data = json.load(stream)
    with open(path, "w") as stream:
        json.dump({**data, **changes}, stream)


@pytest.mark.parametrize(
    "changes",
    [
        {"due": float("nan")},
        {"due": float("inf")},
        {"created": 1e300},
        {"created": -1.0},
        {"headers": {"X": 5}},
        {"headers": [1]},
        {"due": "soon"},
        {"body": 5},
        {"key": None},
    ],
    ids=str,
)
def test_a_file_with_values_that_are_none_is_damaged(state, changes):
    spool = Spool(state)
    file = add(spool).file
    rewrite(spool, file, **changes)
    with pytest.raises(Damaged):
        spool.load(file)


def fifo(path):
    os.mkfifo(path)


def link(path):
    os.symlink("/etc/hostname", path)


@pytest.mark.parametrize("make", [os.mkdir, fifo, link])
def test_what_is_no_file_costs_only_itself(serve, remote, state, make):
    os.makedirs(state / "webhooks" / "spool", mode=0o700)
    make(state / "webhooks" / "spool" / "00000-first.json")
    (state / "webhooks" / "spool" / "00001-\udcff\n.json").write_text("{}")
    server = serve()
    hook = remote(server, observe=True)
    hook.fire()
    server.wait(1)
    hook.engine.close()
    assert Spool(state).waiting() == ["00000-first.json"]


def test_a_file_with_bad_headers_holds_nobody_up(serve, remote, state):
    server = serve()
    hook = remote(server, observe=True)
    spool = Spool(state)
    about = {"key": hook.plugin.webhook.key, "fingerprint": hook.plugin.webhook.fingerprint}
    rewrite(spool, add(spool, **about).file, headers={"X": 5})
    hook.fire()
    server.wait(1)
    until(lambda: spool.waiting() == [])
    assert len(spool.dead()) == 1


def test_a_clock_that_was_set_back_holds_nothing_up(serve, remote, state):
    server = serve()
    hook = remote(server, observe=True)
    spool = Spool(state)
    made = add(spool, key=hook.plugin.webhook.key, fingerprint=hook.plugin.webhook.fingerprint)
    spool.update(made.but(due=time.time() + 10 * 365 * 86_400))
    hook.fire()
    server.wait(2)


def test_a_pause_that_a_server_asked_for_holds(serve, remote, state):
    server = serve()
    hook = remote(server, observe=True)
    spool = Spool(state)
    made = add(spool, key=hook.plugin.webhook.key, fingerprint=hook.plugin.webhook.fingerprint)
    spool.update(made.but(due=time.time() + webhook.LONGEST_PAUSE))
    hook.fire()
    server.wait(1)
    hook.engine.close()
    assert spool.waiting() == [made.file]


def test_a_round_looks_at_each_of_many_deliveries_once(state, monkeypatch):
    """One set of the files a round, not one a file: 10,000 that wait for another webhook are no work."""
    spool = Spool(state)
    files = [f"{number:05d}.json" for number in range(5_000)]

    class Name(str):
        hashed = 0

        def __hash__(self):
            Name.hashed += 1
            return super().__hash__()

    monkeypatch.setattr(spool, "waiting", lambda: list(map(Name, files)))
    made = courier.Courier(spool)
    made._known = {file: ("other", time.time() + 60) for file in files}
    made._send_due()
    assert Name.hashed < 20 * len(files)


def test_an_engine_that_opens_while_another_closes_is_served(serve, remote, monkeypatch):
    """Its event comes when the courier was told to stop and has not yet."""
    server = serve()
    first = remote(server, observe=True)
    stopping, opened = threading.Event(), threading.Event()
    whole = courier.Courier._round

    def slow(made):
        found = whole(made)
        if stopping.is_set():
            return found
        stopping.set()
        assert opened.wait(20)
        return found

    monkeypatch.setattr(courier.Courier, "_round", slow)
    monkeypatch.setattr(courier, "FLUSH", 0.05)
    first.fire()
    assert stopping.wait(20)
    closing = threading.Thread(target=first.engine.close)
    closing.start()
    until(lambda: first.plugin.webhook._courier is None and not courier_of(first)._webhooks)
    second = remote(server, observe=True)
    second.fire()
    opened.set()
    closing.join(20)
    server.wait(2)


def courier_of(hook):
    return courier.courier_of(hook.plugin.webhook._state_dir)


def test_events_of_a_project_whose_spool_is_a_link_go_nowhere_else(remote, serve, state, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    os.makedirs(state / "webhooks", mode=0o700)
    os.symlink(elsewhere, state / "webhooks" / "spool")
    hook = remote(serve(), timings=["on_session_end"])
    outcome = hook.fire(events.SessionEnd(reason="x", session_id="s1"))
    assert "could not be stored" in outcome.failures[0].message
    assert os.listdir(elsewhere) == []
