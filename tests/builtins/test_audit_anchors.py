"""Anchors of the audit trail: what is missing at its end is found although the chain cannot tell."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import random
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from hookturn import Engine
from hookturn.cli import main
from hookturn.paths import project_hash, state_root
from hookturn_builtins.audit_log import EVERY, Config, plugin
from hookturn_builtins.audit_log.anchors import MOST, Anchors, DamagedAnchorsError
from hookturn_builtins.audit_log.trail import Trail, head, segments
from hookturn_builtins.audit_log.verify import verify

RECORD = {"agent": "a", "args": {"command": "ls"}, "schema": 1, "timing": "x"}


def fill(path: Path, count: int, **options: object) -> None:
    trail = Trail(path, **options)  # type: ignore[arg-type]
    for number in range(count):
        trail.append({**RECORD, "turn": number})
    trail.close()


def checked(path: Path):
    return verify(path, [(anchor.number, anchor.hash) for anchor in Anchors(path).read()])


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "project" / ".hookturn" / "audit.jsonl"


def test_an_anchor_is_a_signed_note_of_origin_size_and_hash(path: Path) -> None:
    fill(path, 3)
    made = Anchors(path).add()
    assert made is not None
    lines = made.note.split("\n")
    origin = f"hookturn/audit/{project_hash(path)}"
    last = path.read_bytes().splitlines()[-1]
    assert lines[:4] == [origin, "3", base64.b64encode(hashlib.sha256(last).digest()).decode(), ""]
    dash, name, signature = lines[4].split(" ")
    assert (dash, name, lines[5:]) == ("\u2014", origin, [""])
    assert len(base64.b64decode(signature)) == 4 + 32


def test_anchors_and_key_are_private_and_outside_the_checkout(path: Path) -> None:
    fill(path, 1)
    Anchors(path).add()
    [folder] = (state_root() / "audit").iterdir()
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert {item.name: stat.S_IMODE(item.stat().st_mode) for item in folder.iterdir()} == {
        "anchors": 0o600, "anchors.key": 0o600, "lock": 0o600,
    }  # fmt: skip
    assert sorted(item.name for item in path.parent.iterdir()) == ["audit.jsonl"]


def test_a_whole_trail_fits_its_anchors_and_goes_on(path: Path) -> None:
    fill(path, 3)
    Anchors(path).add()
    fill(path, 4)
    Anchors(path).add()
    fill(path, 2)
    report = checked(path)
    assert (report.ok, report.anchors, report.records, report.written) == (True, 2, 9, 9)


def test_no_record_no_anchor_and_the_same_head_only_one(path: Path) -> None:
    assert Anchors(path).add() is None
    assert not state_root().exists()
    fill(path, 1)
    Anchors(path).add()
    Anchors(path).add()
    assert len(Anchors(path).read()) == 1


def test_a_cut_off_end_is_found(path: Path) -> None:
    fill(path, 5)
    Anchors(path).add()
    whole = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(whole[:3]))
    assert verify(path).ok
    report = checked(path)
    assert (report.ok, report.file, report.line) == (False, str(path), 3)
    assert report.cause == "the trail is cut off after 3: an anchor names 5 records"


def test_an_end_that_was_cut_off_and_grew_again_is_found(path: Path) -> None:
    fill(path, 5)
    Anchors(path).add()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:3]))
    trail = Trail(path)
    for _ in range(10):
        trail.append({**RECORD, "turn": 99})
    trail.close()
    assert verify(path).ok
    Anchors(path).add()  # an anchor of the new end does not make the old one forgotten
    report = checked(path)
    assert (report.ok, report.line) == (False, 5)
    assert "rewritten" in report.cause


@pytest.mark.parametrize("begun_anew", [False, True])
def test_a_removed_active_file_is_found(path: Path, begun_anew: bool) -> None:
    fill(path, 20, max_bytes=1500)
    Anchors(path).add()
    assert segments(path)
    os.unlink(path)
    if begun_anew:
        fill(path, 1)
    assert verify(path).ok
    report = checked(path)
    assert not report.ok
    assert "20 records" in report.cause


def test_a_removed_trail_is_found(path: Path) -> None:
    fill(path, 2)
    Anchors(path).add()
    os.unlink(path)
    report = checked(path)
    assert (report.ok, report.file, report.line, report.cause) == (
        False, str(path), 0, "it is gone: an anchor names 2 records",
    )  # fmt: skip


def test_anchors_of_removed_older_files_are_no_damage(path: Path) -> None:
    fill(path, 4, max_bytes=400)
    Anchors(path).add()
    fill(path, 4, max_bytes=400)
    Anchors(path).add()
    for segment in segments(path)[:5]:
        os.unlink(segment)
    report = checked(path)
    assert (report.ok, report.older, report.anchors) == (True, 1, 1)
    assert report.pruned


def test_a_torn_end_is_not_part_of_the_head(path: Path) -> None:
    fill(path, 2)
    before = head(path)
    with open(path, "ab") as file:
        file.write(b'{"agent":"a","ar')
    after = head(path)
    assert before is not None and after is not None
    assert (before.written, before.hash) == (after.written, after.hash)
    Anchors(path).add()
    fill(path, 1)
    report = checked(path)
    assert (report.ok, report.anchors, report.torn) == (True, 1, 1)


def test_a_file_of_torn_lines_only_keeps_number_and_chain(path: Path) -> None:
    fill(path, 2, max_bytes=1)
    with open(path, "ab") as file:
        file.write(b'{"agent":"torn')
    os.rename(path, path.parent / "audit.000009.jsonl")
    (path.parent / "audit.000010.jsonl").write_bytes(b'{"agent":"torn too #torn\n')
    fill(path, 1)
    report = verify(path)
    assert (report.ok, report.written, report.torn) == (True, 3, 2), report.cause


@pytest.mark.parametrize(
    ("damage", "cause"),
    [
        (lambda text: text.replace("\n2\n", "\n1\n"), "its signature does not fit"),
        (lambda text: text[:-9], "does not fit"),
        (lambda text: text[: text.index("\u2014")], "no anchor"),
        (lambda text: text + "x\n", "no anchor"),
        (lambda text: text.replace("hookturn/audit/", "hookturn/other/"), "of another trail"),
        (lambda text: "\x00\ud800".encode("utf-8", "surrogatepass").decode("latin-1"), "no anchor"),
    ],
)
def test_a_changed_anchor_is_found(path: Path, damage, cause: str) -> None:
    fill(path, 2)
    anchors = Anchors(path)
    anchors.add()
    file = Path(anchors.file)
    file.write_text(damage(file.read_text()))
    with pytest.raises(DamagedAnchorsError, match=cause):
        anchors.read()
    before = file.read_bytes()
    fill(path, 1)
    with pytest.raises(DamagedAnchorsError):
        anchors.add()
    assert file.read_bytes() == before


@pytest.mark.parametrize("key", [None, b"", b"zz", b"0f" * 32])
def test_a_lost_or_changed_key_is_found(path: Path, key: bytes | None) -> None:
    fill(path, 2)
    anchors = Anchors(path)
    anchors.add()
    file = Path(anchors.folder) / "anchors.key"
    if key is None:
        file.unlink()
    else:
        file.write_bytes(key)
    with pytest.raises(DamagedAnchorsError):
        anchors.read()
    assert anchors.add(afresh=True) is not None
    assert checked(path).ok


def test_the_oldest_anchors_go(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hookturn_builtins.audit_log import anchors as module

    monkeypatch.setattr(module, "MOST", 3)
    assert MOST > 100
    for _ in range(5):
        fill(path, 1)
        Anchors(path).add()
    assert [anchor.number for anchor in Anchors(path).read()] == [3, 4, 5]
    assert checked(path).ok


def test_two_trails_do_not_share_anchors(tmp_path: Path) -> None:
    for name, count in (("a", 2), ("b", 3)):
        fill(tmp_path / name / "audit.jsonl", count)
        Anchors(tmp_path / name / "audit.jsonl").add()
    assert [anchor.number for anchor in Anchors(tmp_path / "a" / "audit.jsonl").read()] == [2]
    other = Anchors(tmp_path / "b" / "audit.jsonl").file
    with pytest.raises(DamagedAnchorsError, match="another trail"):
        Anchors(tmp_path / "a" / "audit.jsonl").read_copy(other)


def test_threads_and_writers_anchor_at_once(path: Path) -> None:
    def work() -> None:
        for _ in range(5):
            fill(path, 3, max_bytes=2000)
            Anchors(path).add()

    threads = [threading.Thread(target=work) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report = checked(path)
    assert (report.ok, report.records) == (True, 90), report.cause
    assert report.anchors == len({anchor.number for anchor in Anchors(path).read()})


# -- the plugin -------------------------------------------------------------------------------------


def engine(project: Path, **settings: object) -> Engine:
    config = Config()
    for name, value in settings.items():
        setattr(config, name, value)
    made = Engine(project_dir=project)
    made.register(plugin(config), "audit-log", layer="builtin", config=config)
    return made


def session(project: Path, calls: int = 1, **settings: object) -> None:
    with engine(project, **settings) as made, made.session() as one, one.turn() as turn:
        for _ in range(calls):
            turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "a")


def test_a_sessions_end_anchors_the_trail(tmp_path: Path) -> None:
    session(tmp_path, 2)
    session(tmp_path, 1)
    path = tmp_path / ".hookturn" / "audit.jsonl"
    assert [anchor.number for anchor in Anchors(path).read()] == [2, 3]
    assert checked(path).ok


def test_a_long_session_is_anchored_on_its_way(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import hookturn_builtins.audit_log as module

    assert EVERY == 1000
    monkeypatch.setattr(module, "EVERY", 4)
    path = tmp_path / ".hookturn" / "audit.jsonl"
    with engine(tmp_path) as made, made.session() as one, one.turn() as turn:
        for _ in range(9):
            turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "a")
        assert [anchor.number for anchor in Anchors(path).read()] == [4, 8]


@pytest.mark.parametrize("left", [0, 1])
def test_a_shortened_trail_is_said_by_the_next_session_once(tmp_path: Path, hook_log, left: int) -> None:
    session(tmp_path, 3)
    path = tmp_path / ".hookturn" / "audit.jsonl"
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:left]))
    with engine(tmp_path) as made, made.session() as one:
        [message] = hook_log.of("audit-log")
        assert f"has {left} of the 3 records that an anchor names" in message
        with one.turn() as turn:
            turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "a")
    assert len(hook_log.of("audit-log")) == 1
    assert not checked(path).ok


def test_a_session_begins_by_anchoring_what_a_killed_one_left(tmp_path: Path) -> None:
    path = tmp_path / ".hookturn" / "audit.jsonl"
    fill(path, 3)
    with engine(tmp_path) as made, made.session():
        assert [anchor.number for anchor in Anchors(path).read()] == [3]


def test_anchors_that_cannot_be_written_are_said_and_cost_no_record(tmp_path: Path, hook_log) -> None:
    state_root().mkdir(parents=True)
    (state_root() / "audit").write_text("a file in the way")
    session(tmp_path, 1)
    assert any("cannot be anchored" in message for message in hook_log.of("audit-log"))
    assert verify(tmp_path / ".hookturn" / "audit.jsonl").records == 1


def test_a_dry_run_anchors_nothing(tmp_path: Path) -> None:
    with Engine(project_dir=tmp_path, dry_run=True, output_dir=tmp_path / "out") as made:
        made.register(plugin(), "audit-log", layer="builtin")
        with made.session() as one, one.turn() as turn:
            turn.call_tool("bash", {"command": "ls"}, execute=lambda **_: "a")
    assert not (state_root() / "audit").exists()


def test_sessions_that_are_killed_leave_a_trail_that_verifies(tmp_path: Path) -> None:
    script = (
        "import sys\nfrom pathlib import Path\nfrom hookturn import Engine\nfrom hookturn_builtins.audit_log import plugin\n"
        "made = Engine(project_dir=Path(sys.argv[1]))\nmade.register(plugin(), 'audit-log', layer='builtin')\n"
        "print('ready', flush=True)\n"
        "while True:\n"
        "    with made.session() as one, one.turn() as turn:\n"
        "        turn.call_tool('bash', {'command': 'ls'}, execute=lambda **_: 'a')\n"
    )
    path = tmp_path / ".hookturn" / "audit.jsonl"
    chance = random.Random(7)
    for _ in range(8):
        argv = [sys.executable, "-c", script, str(tmp_path)]
        with subprocess.Popen(argv, stdout=subprocess.PIPE, env=os.environ) as child:
            assert child.stdout is not None
            child.stdout.readline()
            threading.Event().wait(chance.random() * 0.05)
            child.kill()
        session(tmp_path, 1)
        report = checked(path)
        assert report.ok, (report.file, report.line, report.cause)
        assert report.anchors


# -- the command ------------------------------------------------------------------------------------


def test_verify_checks_anchors_and_says_so(tmp_path: Path, capsys) -> None:
    session(tmp_path, 3)
    path = tmp_path / ".hookturn" / "audit.jsonl"
    assert main(["audit", "verify", str(path)]) == 0
    assert "1 anchor checked" in capsys.readouterr().out
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:1]))
    assert main(["audit", "verify", str(path)]) == 1
    assert f"{path}:1: the trail is cut off after 1: an anchor names 3 records" in capsys.readouterr().out
    assert main(["audit", "verify", "--json", str(path)]) == 1
    found = json.loads(capsys.readouterr().out)
    assert (found["ok"], found["line"], found["schema"]) == (False, 1, 1)


def test_verify_finds_a_trail_that_is_gone(tmp_path: Path, capsys) -> None:
    session(tmp_path, 1)
    path = tmp_path / ".hookturn" / "audit.jsonl"
    path.unlink()
    assert main(["audit", "verify", "--project", str(tmp_path)]) == 1
    assert f"{path}: it is gone" in capsys.readouterr().out


def test_verify_says_when_there_is_no_anchor(path: Path, capsys) -> None:
    fill(path, 1)
    assert main(["audit", "verify", str(path)]) == 0
    assert "no anchor" in capsys.readouterr().out


def test_verify_names_the_place_of_a_damaged_anchor(path: Path, capsys) -> None:
    fill(path, 1)
    file = Path(Anchors(path).file)
    Anchors(path).add()
    file.write_text(f"{file.read_text()}\nrubbish\n")
    assert main(["audit", "verify", str(path)]) == 1
    assert f"{file}:7: this is no anchor" in capsys.readouterr().out


def test_an_anchor_kept_elsewhere_is_checked(path: Path, tmp_path: Path, capsys) -> None:
    fill(path, 3)
    assert main(["audit", "anchor", str(path)]) == 0
    copy = tmp_path / "copy.txt"
    copy.write_text(capsys.readouterr().out)
    Path(Anchors(path).file).unlink()
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:2]))
    assert main(["audit", "verify", str(path)]) == 0
    assert main(["audit", "verify", "--anchor", str(copy), str(path)]) == 1
    assert "cut off after 2" in capsys.readouterr().out
    assert main(["audit", "verify", "--anchor", str(tmp_path / "none"), str(path)]) == 1
    assert "none: No such file" in capsys.readouterr().err


def test_anchors_are_begun_afresh_on_request(path: Path, capsys) -> None:
    fill(path, 3)
    Anchors(path).add()
    path.unlink()
    fill(path, 1)
    assert main(["audit", "verify", str(path)]) == 1
    assert main(["audit", "anchor", "--afresh", "--json", str(path)]) == 0
    out = capsys.readouterr().out
    found = json.loads(out[out.index("{") :])
    assert (found["written"], found["file"]) == (1, Anchors(path).file)
    assert Path(f"{found['file']}.1").read_text().split("\n")[1] == "3"
    assert main(["audit", "verify", str(path)]) == 0


def test_there_is_nothing_to_anchor(tmp_path: Path, capsys) -> None:
    assert main(["audit", "anchor", str(tmp_path / "none.jsonl")]) == 1
    assert "no record to anchor" in capsys.readouterr().err


def test_verify_names_the_second_trail(tmp_path: Path, capsys) -> None:
    session(tmp_path, 1)
    assert main(["audit", "verify", "--json", "--project", str(tmp_path)]) == 0
    assert json.loads(capsys.readouterr().out)["elsewhere"] == ""
    path = tmp_path / ".hookturn" / "audit.jsonl"
    path.rename(tmp_path / "away")
    path.mkdir()
    session(tmp_path, 1)
    path.rmdir()
    (tmp_path / "away").rename(path)
    assert main(["audit", "verify", "--project", str(tmp_path)]) == 0
    [second] = state_root().glob("projects/*/audit.jsonl")
    assert f"could not be written here are in {second}" in capsys.readouterr().out
    assert verify(second).records == 1
