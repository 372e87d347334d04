"""``hookturn webhook``: what waits for a server, and sending it again."""

from __future__ import annotations

import http.server
import json
import os
import threading
from pathlib import Path

import pytest

EVENT = '{"reason": "done", "session_id": "s1"}'


@pytest.fixture
def server():
    """A server that answers with ``server.status`` and keeps what it got."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers["Content-Length"]))
            running.got.append((self.headers["webhook-id"], json.loads(body), self.headers["X-Token"]))
            self.send_response(running.status)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *rest):
            """Say nothing."""

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as running:
        running.got, running.status = [], 400
        thread = threading.Thread(target=running.serve_forever, args=(0.01,))
        thread.start()
        yield running
        running.shutdown()
        thread.join()


@pytest.fixture
def cli(cli, server, tmp_path):
    folder = tmp_path / "config-of-user"
    folder.mkdir()
    cli.env["HOOKTURN_CONFIG_DIR"] = str(folder)
    cli.env["HOOK_TOKEN"] = "opensesame"
    run = {"url": f"http://127.0.0.1:{server.server_port}/", "headers": {"X-Token": {"env": "HOOK_TOKEN"}}}
    (folder / "hookturn.yaml").write_text(
        f"hooks:\n  - name: tell\n    timings: [on_session_end]\n    run: {{webhook: {json.dumps(run)}}}\n"
        "webhooks: {allow: ['127.0.0.1']}\n"
    )
    return cli


def deliveries(cli):
    return cli("webhook", "list", "--json").json["deliveries"]


def test_nothing_waits(cli):
    assert cli("webhook", "list").out == "No event waits for a webhook.\n"
    assert cli("webhook", "list", "--json").json["deliveries"] == []
    assert cli("webhook", "replay").out == "Nothing waits. --dead sends what was given up.\n"
    ran = cli("webhook", "replay", "--dead", "--json")
    assert (ran.code, ran.json["deliveries"]) == (0, [])


def test_dead_ones_are_listed_and_sent_again(cli, server):
    assert cli("fire", "on_session_end", "--event", "-", input=EVENT).code == 0
    (item,) = deliveries(cli)
    assert (item["state"], item["hook"], item["tried"], item["in_force"]) == ("dead", "tell", 1, True)
    assert item["to"] == f"http://127.0.0.1:{server.server_port}"
    assert "answered 400" in item["error"]
    assert item["id"] == server.got[0][0]
    listed = cli("webhook", "list").out
    assert item["id"] in listed and "tell" in listed

    ran = cli("webhook", "replay", "--dead")
    assert ran.code == 1 and ran.out.startswith(f"failed: {item['id']}: ") and "answered 400" in ran.out
    assert deliveries(cli)[0]["tried"] == 2

    server.status = 204
    ran = cli("webhook", "replay", item["id"][:12], "--json")
    assert (ran.code, [found["state"] for found in ran.json["deliveries"]]) == (0, ["delivered"])
    assert deliveries(cli) == []
    assert len({found[0] for found in server.got}) == 1 and len(server.got) == 3
    assert all(found[1] == server.got[0][1] and found[2] == "opensesame" for found in server.got)
    assert server.got[0][1]["event"]["reason"] == "done"


def test_waiting_ones(cli, server):
    server.status = 503
    assert cli("fire", "on_session_end", "--event", "-", input=EVENT).code == 0
    (item,) = deliveries(cli)
    assert item["state"] == "waiting" and "answered 503" in item["error"]
    server.status = 200
    assert cli("webhook", "replay").out == f"delivered: {item['id']}\n"
    assert deliveries(cli) == []


def test_a_hook_that_is_no_longer_there(cli, server):
    cli("fire", "on_session_end", "--event", "-", input=EVENT)
    ran = cli("webhook", "replay", "--dead", "-p", "no:tell")
    assert ran.code == 1 and "the hook tell is not in force here" in ran.out
    assert deliveries(cli)[0]["state"] == "dead"
    assert len(server.got) == 1


def test_wrong_words(cli):
    ran = cli("webhook", "replay", "msg_nope")
    assert (ran.code, ran.out) == (1, "") and "msg_nope is the id of nothing that waits" in ran.err
    assert cli("webhook", "replay", "x", "--dead").code == 2
    assert cli("webhook").code == 2
    assert cli("webhook", "nope").code == 2


def test_ids_that_begin_alike(cli, server):
    for _ in range(2):
        cli("fire", "on_session_end", "--event", "-", input=EVENT)
    ran = cli("webhook", "replay", "msg_")
    assert ran.code == 1 and "msg_ begins several ids" in ran.err
    assert len(server.got) == 2


def test_a_file_that_cannot_be_read(cli, server, tmp_path):
    import os
    from pathlib import Path

    cli("fire", "on_session_end", "--event", "-", input=EVENT)
    (path,) = Path(os.environ["HOOKTURN_STATE_DIR"]).rglob("dead/*.json")
    path.write_text("\x1b[31m")
    (item,) = deliveries(cli)
    assert item["state"] == "dead" and "is no delivery" in item["error"]
    assert "\x1b" not in cli("webhook", "list").out
    assert cli("webhook", "replay", "--dead").code == 1


def test_a_spool_that_holds_what_is_no_file(cli, server):
    server.status = 503
    assert cli("fire", "on_session_end", "--event", "-", input=EVENT).code == 0
    (item,) = deliveries(cli)
    (folder,) = {path.parent for path in Path(cli.env["HOOKTURN_STATE_DIR"]).rglob("spool/*.json")}
    os.mkfifo(folder / "0-fifo.json")
    (folder / "1-folder.json").mkdir()
    listed = {found["id"]: found["error"] for found in deliveries(cli)}
    assert set(listed) == {"0-fifo.json", "1-folder.json", item["id"]}
    assert "no regular file" in listed["0-fifo.json"]
    server.status = 204
    ran = cli("webhook", "replay", "--json")
    states = {found["id"]: found["state"] for found in ran.json["deliveries"]}
    assert states == {"0-fifo.json": "failed", "1-folder.json": "failed", item["id"]: "delivered"}
