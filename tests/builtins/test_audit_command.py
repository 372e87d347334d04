"""``hookturn audit`` beyond ``verify``: following, finding, exporting and counting records."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import sqlite3
import stat
import subprocess
import sys
import threading
from contextlib import closing
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn.cli import main
from hookturn.paths import config_root, state_root
from hookturn_builtins.audit_log.anchors import Anchors
from hookturn_builtins.audit_log.export import COLUMNS, Exporter
from hookturn_builtins.audit_log.index import FILE, Filters, search
from hookturn_builtins.audit_log.reading import Follower, lines, sources
from hookturn_builtins.audit_log.trail import Trail, segments

ESCAPE = "\x1b[31m"


def record(number: int = 0, **fields: object) -> dict:
    base = {
        "schema": 1, "id": f"{number:032x}", "time": f"2026-11-30T18:20:{number % 60:02d}.000Z",
        "timing": "post_tool_execution", "session_id": "s1", "agent": "coder", "turn": 1, "host": "demo",
        "decision": None, "by": "", "reason": "", "hooks": [], "failures": [], "tool": "Bash", "kind": "bash",
        "call_id": "c1", "args": {"command": "ls"}, "status": "ok", "duration": 0.25, "result": "a.txt",
    }  # fmt: skip
    return {**base, **fields}


MIXED = [
    record(0),
    record(1, session_id="s2", tool="Read", kind="read", result="Straße"),
    record(2, timing="pre_tool_execution", decision="deny", by="guard", reason="no rm", status="",
           hooks=[{"name": "guard", "answer": ["Deny"]}]),
    record(3, status="denied", by="guard"),
    record(4, timing="on_turn_complete", tool=None, kind=None, status=None,
           hooks=[{"name": "lint", "answer": ["Continue"]}], failures=[{"hook": "broken", "message": "x"}]),
    record(5, session_id="a*b", rewrites=[{"by": "rewriter"}], overruled=[{"by": "loser"}]),
]  # fmt: skip


def write(path: Path, records: list[dict], **options: object) -> None:
    trail = Trail(path, **options)  # type: ignore[arg-type]
    for item in records:
        trail.append(item)
    trail.close()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "project" / ".hookturn" / "audit.jsonl"


def run(capsys, *words: str, code: int = 0) -> str:
    assert main(["audit", *words]) == code
    return capsys.readouterr().out


def found(capsys, path: Path, *words: str) -> list[int]:
    return [
        int(item["id"], 16)
        for item in json.loads(run(capsys, "query", "--json", *words, str(path)))["records"]
    ]


# -- which trail ------------------------------------------------------------------------------------


def test_the_configured_trail_is_found(tmp_path: Path, capsys) -> None:
    config_root().mkdir(parents=True)
    (config_root() / "hookturn.yaml").write_text("plugins:\n  audit-log: {path: logs/mine.jsonl}\n")
    write(tmp_path / "logs" / "mine.jsonl", MIXED[:2])
    (tmp_path / ".git").mkdir()
    (tmp_path / "sub").mkdir()
    for words in (("--project", str(tmp_path)), ("--project", str(tmp_path / "sub")), (str(tmp_path),)):
        assert "2 records" in run(capsys, "verify", *words)
    # What an untrusted project says does not count.
    (tmp_path / "hookturn.yaml").write_text("plugins:\n  audit-log: {path: other.jsonl}\n")
    assert "2 records" in run(capsys, "verify", "--project", str(tmp_path))


def test_without_a_setting_the_projects_trail_is_taken(path: Path, capsys, monkeypatch) -> None:
    write(path, MIXED[:3])
    project = path.parents[1]
    below = project / "a" / "b"
    below.mkdir(parents=True)
    monkeypatch.chdir(below)
    assert main(["audit", "verify"]) == 1  # it belongs to another folder
    capsys.readouterr()
    (project / ".git").mkdir()
    assert "3 records" in run(capsys, "verify")
    (below.parent / ".git").mkdir()
    assert main(["audit", "verify"]) == 1


@pytest.mark.parametrize("words", [["verify"], ["tail"], ["query"], ["export"], ["stats"], ["anchor"]])
def test_where_there_is_no_trail_it_is_said(tmp_path: Path, capsys, words: list[str]) -> None:
    assert main(["audit", *words, str(tmp_path / "none.jsonl")]) == 1
    shown = capsys.readouterr()
    assert "none.jsonl" in shown.err and "Traceback" not in shown.err
    assert shown.out == ""
    assert not (state_root() / "audit").exists()


@pytest.mark.parametrize(
    "words",
    [["query", "--limit", "x"], ["query", "--since", "soon"], ["tail", "-n", "-1"], ["export", "--format", "xml"],
     ["verify", "--head", "12"]],
)  # fmt: skip
def test_wrong_usage_is_exit_2(path: Path, capsys, words: list[str]) -> None:
    write(path, MIXED[:1])
    run(capsys, *words, str(path), code=2)


def test_verify_looks_for_heads_that_commits_name(path: Path, capsys) -> None:
    from hashlib import sha256

    write(path, MIXED)
    named = sha256(path.read_bytes().splitlines()[1]).hexdigest()
    run(capsys, "verify", "--head", named, str(path))
    assert f"no record up to here has the hash {'0' * 64}" in run(
        capsys, "verify", "--head", "0" * 64, "--head", named, str(path), code=1
    )


# -- tail -------------------------------------------------------------------------------------------


def test_tail_reads_back_over_rotation(path: Path, capsys) -> None:
    write(path, [record(number) for number in range(30)], max_bytes=2500)
    assert len(segments(path)) > 3
    for count in (0, 1, 7, 29, 30, 99):
        shown = json.loads(run(capsys, "tail", "-n", str(count), "--json", str(path)))["records"]
        assert [int(item["id"], 16) for item in shown] == list(range(30))[30 - min(count, 30) :]


def test_tail_shows_a_torn_end_and_odd_lines(path: Path, capsys) -> None:
    write(path, MIXED[:1])
    with open(path, "ab") as file:
        file.write(b'[1]\n"text"\nNaN\n{"timing": 5, "by": {}, "tool": ["x"]}\n{"age' + ESCAPE.encode())
    shown = run(capsys, "tail", str(path))
    assert shown.count("(a torn line)") == 4
    assert "\x1b" not in shown and len(shown.splitlines()) == 6


def numbers(follower: Follower) -> list[int]:
    got: list[int] = []
    while some := follower.read():
        got += [json.loads(line)["turn"] for line in some]
    return got


def test_following_goes_on_over_rotation(path: Path) -> None:
    trail = Trail(path, max_bytes=1200)
    for number in range(3):
        trail.append(record(turn=number))
    follower = Follower(path)
    assert [json.loads(line)["turn"] for line in follower.begin(2)] == [1, 2]
    for number in range(3, 20):  # several rotations between two looks
        trail.append(record(turn=number))
    assert numbers(follower) == list(range(3, 20))
    assert follower.read() == []
    trail.append(record(turn=20))
    assert numbers(follower) == [20]
    trail.close()
    follower.close()


def test_following_waits_for_the_end_of_a_line_and_for_a_trail(path: Path) -> None:
    follower = Follower(path)
    assert follower.begin(5) == [] and follower.read() == []
    path.parent.mkdir(parents=True)
    path.write_bytes(b'{"turn":1}\n{"turn"')
    assert numbers(follower) == [1]
    assert follower.unfinished() == [b'{"turn"']
    other = Follower(path)
    assert other.begin(0) == []
    with open(path, "ab") as file:
        file.write(b":2}\n")
    assert numbers(follower) == numbers(other) == [2]
    path.write_bytes(b'{"turn":3}\n')  # emptied and begun anew
    assert numbers(follower) == [3]
    path.unlink()
    assert follower.read() == []
    path.write_bytes(b'{"turn":4}\n')
    assert numbers(follower) == [4]
    follower.close()
    other.close()


def test_following_misses_and_doubles_nothing_while_many_write(path: Path) -> None:
    follower = Follower(path)
    follower.begin(0)

    def work(number: int) -> None:
        write(path, [record(turn=number * 1000 + one) for one in range(150)], max_bytes=4000)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    got: list[int] = []
    while any(thread.is_alive() for thread in threads):
        got += numbers(follower)
    for thread in threads:
        thread.join()
    got += numbers(follower)
    follower.close()
    assert sorted(got) == sorted(number * 1000 + one for number in range(4) for one in range(150))
    assert got == [json.loads(line)["turn"] for line in lines(path)]


def test_the_files_are_those_of_one_moment_whoever_rotates(path: Path) -> None:
    write(path, [record(number) for number in range(6)], max_bytes=1200)
    reading = sources(path)
    got = [next(reading)[1].read()]
    write(path, [record(6)], max_bytes=1)  # rotates
    got += [source.read() for _, source in reading]
    assert [int(json.loads(line)["id"], 16) for line in b"".join(got).splitlines()][:6] == list(range(6))


def test_the_command_follows_with_one_json_record_a_line(path: Path) -> None:
    write(path, MIXED[:2])
    argv = [sys.executable, "-m", "hookturn", "audit", "tail", "-f", "-n", "1", "--json", str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ) as child:
        assert child.stdout is not None and child.stderr is not None
        assert json.loads(child.stdout.readline())["id"] == MIXED[1]["id"]
        write(path, [record(7, result=f"{ESCAPE}\u2028")], max_bytes=1)
        assert json.loads(child.stdout.readline())["id"] == f"{7:032x}"
        child.send_signal(signal.SIGINT)
        assert child.wait(20) == 130
        assert b"Traceback" not in child.stderr.read()


# -- query ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ([], [0, 1, 2, 3, 4, 5]),
        (["--session", "s2"], [1]),
        (["--session", "s*"], [0, 1, 2, 3, 4]),
        (["--session", "a*b"], [5]),
        (["--session", "?1"], []),
        (["--tool", "Bash"], [0, 2, 3, 5]),
        (["--tool", "read"], [1]),
        (["--decision", "deny"], [2]),
        (["--decision", "den*"], [2, 3]),
        (["--hook", "guard"], [2, 3]),
        (["--hook", "broken"], [4]),
        (["--hook", "rewriter"], [5]),
        (["--hook", "loser"], [5]),
        (["--timing", "on_*"], [4]),
        (["--since", "2026-11-30T18:20:04Z"], [4, 5]),
        (["--until", "2026-11-30T18:20:02Z"], [0, 1]),
        (["--since", "2026-11-30T19:20:03+01:00", "--until", "2026-11-30T18:20:04Z"], [3]),
        (["--since", "2026-12-31"], []),
        (["--text", "STRASSE"], [1]),
        (["--text", "no RM"], [2]),
        (["--text", "command"], [0, 1, 2, 3, 4, 5]),
        (["--text", '"'], []),
        (["--limit", "2"], [4, 5]),
        (["--limit", "0"], [0, 1, 2, 3, 4, 5]),
        (["--limit", "1", "--text", "a.txt", "--tool", "bash"], [5]),
        (["--tool", "bash", "--decision", "ok", "--limit", "1"], [5]),
        (["--session", "' OR 1=1 --"], []),
        (["--session", "\ud800"], []),
    ],
)
def test_query_finds(path: Path, capsys, words: list[str], expected: list[int]) -> None:
    write(path, MIXED, max_bytes=1200)
    assert found(capsys, path, *words) == expected


def test_query_shows_fifty_and_escapes(path: Path, capsys) -> None:
    write(path, [record(number, reason=f"{ESCAPE}red") for number in range(60)])
    shown = run(capsys, "query", str(path))
    assert len(shown.splitlines()) == 50
    assert "\x1b" not in shown and "\\x1b[31mred" in shown


def test_the_index_grows_with_the_trail_over_rotation(path: Path, capsys) -> None:
    for number in range(12):
        write(path, [record(number)], max_bytes=1500)
        assert found(capsys, path) == list(range(number + 1))
    with closing(sqlite3.connect(Path(Anchors(path).folder) / FILE)) as db:
        assert db.execute("SELECT count(*), count(DISTINCT file || ':' || at) FROM record").fetchone() == (
            12,
            12,
        )
    os.unlink(segments(path)[0])
    assert found(capsys, path)[0] > 0


def test_the_index_reads_only_what_is_new(path: Path, capsys, monkeypatch) -> None:
    from hookturn_builtins.audit_log import index

    write(path, [record(number) for number in range(5)])
    assert len(found(capsys, path, "--tool", "bash")) == 5
    seen: list[bytes] = []
    real = index.record_of
    monkeypatch.setattr(index, "_columns", lambda data: seen.append(data["id"]) or (None,) * 9)
    assert real is index.record_of
    write(path, [record(5), record(6)])
    found(capsys, path)
    assert [int(item, 16) for item in seen] == [5, 6]


def test_the_index_is_private_and_outside_the_checkout(path: Path, capsys) -> None:
    write(path, MIXED)
    run(capsys, "query", str(path))
    index = Path(Anchors(path).folder) / FILE
    assert stat.S_IMODE(index.stat().st_mode) == 0o600
    assert [item.name for item in path.parent.iterdir()] == ["audit.jsonl"]


@pytest.mark.parametrize(
    "damage",
    [
        lambda file: file.write_bytes(b"no database at all" * 500),
        lambda file: file.write_bytes(file.read_bytes()[:5000]),
        lambda file: file.write_bytes(b""),
        lambda file: file.unlink(),
        lambda file: sqlite3.connect(file).executescript("DROP TABLE hook; PRAGMA user_version = 1").close(),
        lambda file: sqlite3.connect(file).executescript("PRAGMA user_version = 999").close(),
        lambda file: (
            sqlite3.connect(file).executescript("DROP TABLE record; PRAGMA user_version = 0").close()
        ),
    ],
)
def test_a_damaged_index_is_made_anew(path: Path, capsys, damage) -> None:
    write(path, MIXED)
    assert found(capsys, path, "--hook", "guard") == [2, 3]
    damage(Path(Anchors(path).folder) / FILE)
    assert found(capsys, path, "--hook", "guard") == [2, 3]


def test_an_index_of_a_changed_trail_is_made_anew(path: Path, capsys) -> None:
    write(path, MIXED)
    assert found(capsys, path, "--session", "s2") == [1]
    before = path.stat()
    path.write_bytes(path.read_bytes().replace(b'"s2"', b'"s9"'))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns + 1))
    assert found(capsys, path, "--session", "s9") == [1]
    path.write_bytes(b"")
    assert found(capsys, path) == []
    write(path, [record(8)])
    assert found(capsys, path) == [8]


def test_without_a_place_for_the_index_it_is_made_in_memory(path: Path, capsys) -> None:
    write(path, MIXED)
    state_root().mkdir(parents=True)
    (state_root() / "audit").write_text("a file in the way")
    assert found(capsys, path, "--hook", "guard") == [2, 3]
    assert json.loads(run(capsys, "stats", "--json", str(path)))["records"] == 6


@pytest.mark.fault
def test_a_trail_on_read_only_media_is_read(tmp_path: Path, capsys) -> None:
    disk, target = tmp_path / "disk", tmp_path / "target"
    disk.mkdir()
    target.mkdir()
    write(disk / "audit.jsonl", MIXED, max_bytes=1200)
    for words in (["mount", "--bind", disk, target], ["mount", "-o", "remount,ro,bind", target]):
        if subprocess.run(words, capture_output=True, check=False).returncode:
            subprocess.run(["umount", "-l", target], capture_output=True, check=False)
            pytest.skip("nothing can be mounted here")
    try:
        path = target / "audit.jsonl"
        assert "6 records" in run(capsys, "verify", str(path))
        assert found(capsys, path, "--hook", "guard") == [2, 3]
        assert len(run(capsys, "export", str(path)).splitlines()) == 6
        assert "lint" in run(capsys, "stats", str(path))
        assert len(run(capsys, "tail", str(path)).splitlines()) == 6
    finally:
        subprocess.run(["umount", "-l", target], check=True)


def test_queries_and_writers_at_once(path: Path) -> None:
    write(path, [record(0)])
    wrong: list[object] = []

    def ask() -> None:
        before = 0
        for _ in range(12):
            got = list(search(str(path), Filters(tool="bash")))
            if len(got) < before or len({item["id"] for item in got}) != len(got):
                wrong.append(len(got))
            before = len(got)

    def put(number: int) -> None:
        write(path, [record(number * 1000 + one) for one in range(1, 100)], max_bytes=5000)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    threads += [threading.Thread(target=put, args=(number,)) for number in range(1, 4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []
    assert len(list(search(str(path), Filters(tool="bash")))) == 1 + 3 * 99


# -- export -----------------------------------------------------------------------------------------


def test_jsonl_is_the_trail_itself(path: Path, capsys) -> None:
    write(path, MIXED, max_bytes=1200)
    whole = b"".join(Path(file).read_bytes() for file in [*segments(path), path])
    assert run(capsys, "export", str(path)).encode() == whole
    assert run(capsys, "export", "--session", "s2", str(path)).encode() == whole.splitlines(keepends=True)[1]


def test_csv_has_a_header_and_no_formulas(path: Path, capsys) -> None:
    hostile = [
        "=1+1",
        "+1",
        "-2+3",
        "@SUM(A1)",
        "\t=1",
        "\r=1",
        "\n=1",
        " =1",
        "\uff1d1",
        "plain",
        'a,b\n"c"',
        "\ud800\0",
    ]
    write(path, [record(number, reason=text, args={"=x": text}) for number, text in enumerate(hostile)])
    rows = list(csv.DictReader(io.StringIO(run(capsys, "export", "--format", "csv", str(path)), newline="")))
    assert list(rows[0]) == list(COLUMNS)
    for row, text in zip(rows, hostile, strict=True):
        for cell in row.values():
            assert cell.lstrip(" \n\r\t")[:1] not in set("=+-@\uff1d") or cell[:1] == "'", cell
        assert json.loads(row["args"]) == {"=x": text}
    assert rows[0]["reason"] == "'=1+1"
    assert rows[9]["reason"] == "plain"
    assert rows[10]["reason"] == 'a,b\n"c"'
    assert rows[11]["reason"] == "\\ud800\\x00"


@given(st.text())
def test_no_cell_is_ever_a_formula(text: str) -> None:
    for cell in Exporter("audit.jsonl").csv(record(reason=text, result=text, by=text)).values():
        assert not re.match(r"\s*[=+@\uff1d\uff0b\uff0d\uff20-]|[\t\r]", cell)
        cell.encode("utf-8")


def ocsf_required(event: dict) -> None:
    """Check what https://schema.ocsf.io/1.3.0/classes/api_activity requires."""
    for name in ("activity_id", "category_uid", "class_uid", "severity_id", "time", "type_uid"):
        assert type(event[name]) is int, name
    assert (event["category_uid"], event["class_uid"]) == (6, 6003)
    assert event["activity_id"] in (0, 1, 2, 3, 4, 99)
    assert event["type_uid"] == event["class_uid"] * 100 + event["activity_id"]
    assert event["severity_id"] in (0, 1, 2, 3, 4, 5, 6, 99)
    assert event["status_id"] in (0, 1, 2, 99)
    assert event["activity_id"] != 99 or event["activity_name"]
    metadata = event["metadata"]
    assert re.fullmatch(r"1\.\d+\.\d+", metadata["version"])
    assert metadata["product"]["name"] and metadata["product"]["vendor_name"]
    assert {"process", "user", "invoked_by", "session", "app_name", "app_uid"} & set(event["actor"])
    assert event["actor"]["session"]["uid"]
    assert event["api"]["operation"]
    assert "request" not in event["api"] or event["api"]["request"]["uid"]
    assert event["api"]["service"]["name"]
    assert event["src_endpoint"]["hostname"]
    assert isinstance(event["unmapped"], dict)


def cloudevents_required(event: dict) -> None:
    """Check what https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md requires."""
    assert event["specversion"] == "1.0"
    for name in ("id", "source", "type"):
        assert isinstance(event[name], str) and event[name], name
    assert urlsplit(event["source"]).scheme
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)", event["time"])
    assert event["datacontenttype"] == "application/json"
    assert event.get("subject", "x") != ""
    assert "data_base64" not in event
    for name, value in event.items():
        if name != "data":
            assert re.fullmatch("[a-z0-9]{1,20}", name)
            assert isinstance(value, str) and not re.search(r"[\0-\x1f\x7f-\x9f\ud800-\udfff]", value)


HOSTILE = record(
    99, session_id="a\n\0\ud800", tool="x\x1b", agent="", host="", timing="on_plan_created", kind=None, id=None,
    reason=ESCAPE, time="never", duration="long", call_id="\n", failures=[{}],
)  # fmt: skip


@pytest.mark.parametrize(("form", "check"), [("ocsf", ocsf_required), ("cloudevents", cloudevents_required)])
def test_events_have_what_their_format_requires(path: Path, capsys, form: str, check) -> None:
    write(path, [*MIXED, HOSTILE, {"agent": None, "schema": 1}])
    shown = run(capsys, "export", "--format", form, str(path)).splitlines()
    assert len(shown) == len(MIXED) + 2
    for line in shown[:-1]:
        check(json.loads(line))
    if form == "cloudevents":
        check(json.loads(shown[-1]))


def test_ocsf_tells_what_was_done_and_whether_it_was_denied(path: Path, capsys) -> None:
    write(path, MIXED)
    events = [json.loads(line) for line in run(capsys, "export", "--format", "ocsf", str(path)).splitlines()]
    assert [event["activity_id"] for event in events] == [99, 2, 99, 99, 99, 99]
    assert [event["status_id"] for event in events] == [1, 1, 2, 2, 2, 1]
    assert (events[2]["status_detail"], events[2]["status_code"]) == ("no rm", "deny")
    assert (events[0]["time"], events[0]["duration"]) == (1796062800000, 250)
    assert (events[0]["api"]["operation"], events[0]["actor"]["app_name"]) == ("Bash", "coder")
    assert events[0]["unmapped"]["args"] == {"command": "ls"}


def test_cloudevents_carry_the_record(path: Path, capsys) -> None:
    write(path, MIXED[:2])
    event = json.loads(run(capsys, "export", "--format", "cloudevents", str(path)).splitlines()[1])
    assert (event["type"], event["subject"], event["sequence"]) == (
        "hookturn.audit.post_tool_execution", "s2", "00000000000000000002",
    )  # fmt: skip
    assert {name: event["data"][name] for name in MIXED[1]} == MIXED[1]


def test_export_to_a_file_makes_a_new_private_one(path: Path, tmp_path: Path, capsys) -> None:
    write(path, MIXED)
    target = tmp_path / "out.csv"
    assert "6 records" in run(capsys, "export", "--format", "csv", "--output", str(target), str(path))
    assert stat.S_IMODE(target.stat().st_mode) == 0o600
    assert len(list(csv.DictReader(io.StringIO(target.read_text(), newline="")))) == 6
    before = path.read_bytes()
    for existing in (target, path):
        run(capsys, "export", "--output", str(existing), str(path), code=1)
    assert path.read_bytes() == before


def test_export_as_one_json_document(path: Path, tmp_path: Path, capsys) -> None:
    write(path, MIXED)
    found = json.loads(run(capsys, "export", "--format", "csv", "--json", "--limit", "1", str(path)))
    assert (found["format"], found["records"][0]["session_id"]) == ("csv", "a*b")
    target = tmp_path / "out"
    found = json.loads(run(capsys, "export", "--json", "--output", str(target), str(path)))
    assert (found["output"], found["written"]) == (str(target), 6)


def test_a_reader_that_goes_away_is_no_error(path: Path) -> None:
    write(path, [record(number, result="x" * 2000) for number in range(200)])
    argv = [sys.executable, "-m", "hookturn", "audit", "export", str(path)]
    with subprocess.Popen(argv, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=os.environ) as child:
        assert child.stdout is not None and child.stderr is not None
        child.stdout.readline()
        child.stdout.close()
        assert b"Traceback" not in child.stderr.read()
        assert child.wait(20) == 141


# -- stats ------------------------------------------------------------------------------------------


def test_stats_count(path: Path, capsys) -> None:
    write(path, MIXED, max_bytes=1200)
    got = json.loads(run(capsys, "stats", "--json", str(path)))
    size = sum(os.path.getsize(file) for file in [*segments(path), path])
    assert (got["records"], got["sessions"], got["failures"], got["bytes"]) == (6, 3, 1, size)
    assert (got["first"], got["last"]) == ("2026-11-30T18:20:00.000Z", "2026-11-30T18:20:05.000Z")
    assert got["by_decision"] == {"deny": 1}
    assert got["by_tool"] == {"Bash": 4, "Read": 1}
    assert got["by_hook"] == {"guard": 2, "broken": 1, "lint": 1, "loser": 1, "rewriter": 1}
    assert got["by_timing"] == {"post_tool_execution": 4, "on_turn_complete": 1, "pre_tool_execution": 1}
    only = json.loads(run(capsys, "stats", "--json", "--hook", "guard", "--session", "s1", str(path)))
    assert (only["records"], only["by_hook"]) == (2, {"guard": 2})
    assert "post_tool_execution        4" in run(capsys, "stats", str(path))


def test_stats_of_an_empty_trail(path: Path, capsys) -> None:
    path.parent.mkdir(parents=True)
    path.write_bytes(b"")
    assert run(capsys, "stats", str(path)) == "0 records of 0 sessions, 0 bytes, 0 failures of hooks\n"
