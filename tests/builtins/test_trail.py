"""The audit trail's file: chain, torn ends, rotation, many writers. Nothing here knows of hooks."""

from __future__ import annotations

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
from hypothesis import given, settings
from hypothesis import strategies as st

from hookturn.paths import UnsafePathError
from hookturn_builtins.audit_log.trail import Trail, segments
from hookturn_builtins.audit_log.verify import verify

RECORD = {
    "agent": "main",
    "args": {"command": "ls"},
    "schema": 1,
    "time": "2026-11-30T18:20:34.485Z",
    "timing": "x",
}


def fill(path: Path, count: int, *, start: int = 0, **options: object) -> None:
    trail = Trail(path, **options)  # type: ignore[arg-type]
    for number in range(start, start + count):
        trail.append({**RECORD, "turn": number})
    trail.close()


def records(path: Path) -> list[dict]:
    lines = [
        line for file in [*segments(path), path] for line in Path(file).read_bytes().split(b"\n") if line
    ]
    found = []
    for line in lines:
        try:
            found.append(json.loads(line))
        except ValueError:
            continue
    return found


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "trail" / "audit.jsonl"


def test_lines_are_canonical_and_chained(path: Path) -> None:
    fill(path, 3)
    lines = path.read_bytes().split(b"\n")
    assert lines.pop() == b""
    previous = "0" * 64
    for line in lines:
        record = json.loads(line)
        assert record["prev"] == previous
        assert line == json.dumps(record, sort_keys=True, separators=(",", ":")).encode()
        previous = hashlib.sha256(line).hexdigest()
    assert verify(path).head == previous


def test_folder_and_file_are_the_users_alone(path: Path) -> None:
    fill(path, 1)
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700


def test_append_returns_the_hash_of_its_line(path: Path) -> None:
    head = Trail(path).append(RECORD)
    assert head == hashlib.sha256(path.read_bytes()[:-1]).hexdigest() == verify(path).head


@pytest.mark.parametrize("text", ["\ud800", "\0", "é" * 3, "line\nbreak\u2028", '"],}{'])
def test_hostile_text_stays_one_valid_line(path: Path, text: str) -> None:
    trail = Trail(path)
    trail.append({**RECORD, "args": {text: text}})
    trail.append(RECORD)
    assert records(path)[0]["args"] == {text: text}
    assert verify(path).ok


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    link = tmp_path / "audit.jsonl"
    link.symlink_to(victim)
    with pytest.raises(UnsafePathError):
        Trail(link).append(RECORD)
    assert victim.read_text() == "precious"


def test_nothing_but_a_file_is_written_to(tmp_path: Path) -> None:
    (tmp_path / "audit.jsonl").mkdir()
    with pytest.raises(OSError):
        Trail(tmp_path / "audit.jsonl").append(RECORD)


def test_there_is_no_trail_to_verify(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        verify(tmp_path / "audit.jsonl")


# -- damage -------------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.data())
def test_a_flipped_bit_is_found_in_its_line(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("flip") / "audit.jsonl"
    count = data.draw(st.integers(1, 6))
    fill(path, count)
    content = bytearray(path.read_bytes())
    at = data.draw(st.integers(0, len(content) - 1))
    content[at] ^= 1 << data.draw(st.integers(0, 7))
    line = path.read_bytes()[:at].count(b"\n") + 1
    path.write_bytes(content)
    report = verify(path)
    assert not report.ok
    assert report.file == str(path)
    assert report.line == line
    assert report.records == line - 1


@settings(max_examples=40)
@given(st.data())
def test_a_deleted_swapped_or_inserted_line_is_named(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("lines") / "audit.jsonl"
    fill(path, data.draw(st.integers(3, 8)))
    lines = path.read_bytes().splitlines(keepends=True)
    at = data.draw(st.integers(0, len(lines) - 2))
    change = data.draw(st.sampled_from(["delete", "swap", "insert", "junk"]))
    if change == "delete":
        del lines[at]
    elif change == "swap":
        lines[at], lines[at + 1] = lines[at + 1], lines[at]
    elif change == "insert":
        lines.insert(at, lines[at + 1])
    else:
        lines.insert(at, b"junk\n")
    path.write_bytes(b"".join(lines))
    report = verify(path)
    assert (report.ok, report.line) == (False, at + 1), report.cause


def test_a_changed_last_line_is_not_taken_for_a_torn_one(path: Path) -> None:
    fill(path, 3)
    content = path.read_bytes()
    path.write_bytes(content.replace(b'"turn":2', b'"turn":7'))
    fill(path, 1)
    assert verify(path).line == 3


def test_a_removed_segment_is_found(path: Path) -> None:
    fill(path, 40, max_bytes=1000)
    found = segments(path)
    assert len(found) > 3
    os.unlink(found[1])
    report = verify(path)
    assert (report.ok, report.file, report.line) == (False, found[2], 1)


def test_removing_the_oldest_segments_is_no_damage_but_said(path: Path) -> None:
    fill(path, 40, max_bytes=1000)
    found = segments(path)
    os.unlink(found[0])
    report = verify(path)
    assert report.ok
    assert report.pruned == os.path.basename(found[0])


def test_a_cut_off_end_is_found_by_its_head(path: Path) -> None:
    fill(path, 5)
    head = verify(path).head
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))
    assert verify(path).ok  # a chain alone cannot see it
    assert verify(path).head != head


# -- torn ends ----------------------------------------------------------------------------------------


@settings(max_examples=60)
@given(st.data())
def test_torn_ends_are_repaired_and_kept(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    path = tmp_path_factory.mktemp("torn") / "audit.jsonl"
    written = 0
    max_bytes = data.draw(st.sampled_from([0, 700]))
    for _ in range(data.draw(st.integers(1, 4))):
        count = data.draw(st.integers(0, 3))
        fill(path, count, start=written, max_bytes=max_bytes)
        written += count
        # A killed writer leaves the beginning of a line.
        lost = Trail(path.parent / "lost.jsonl")
        lost.append({**RECORD, "turn": 99})
        lost.close()
        line = (path.parent / "lost.jsonl").read_bytes().splitlines()[-1]
        with path.open("ab") as file:
            file.write(line[: data.draw(st.integers(0, len(line) - 1))])
    assert verify(path).ok
    fill(path, 2, start=written, max_bytes=max_bytes)
    report = verify(path)
    assert report.ok, (report.file, report.line, report.cause)
    assert report.records == written + 2
    assert [record["turn"] for record in records(path)] == list(range(written + 2))


def test_a_torn_line_stays_in_the_file_and_the_next_record_counts_it(path: Path) -> None:
    fill(path, 2)
    with path.open("ab") as file:
        file.write(b'{"agent":"ma')
    fill(path, 1, start=2)
    lines = path.read_bytes().splitlines()
    assert lines[2].startswith(b'{"agent":"ma')
    assert json.loads(lines[3])["torn"] == 1
    assert verify(path).torn == 1


def test_a_changed_torn_line_is_found(path: Path) -> None:
    fill(path, 2)
    with path.open("ab") as file:
        file.write(b'{"agent":"ma')
    fill(path, 1)
    path.write_bytes(path.read_bytes().replace(b'"agent":"ma#', b'"agent":"mb#'))
    assert verify(path).line == 3


def test_a_line_that_lacks_only_its_newline_is_whole(path: Path) -> None:
    fill(path, 2)
    path.write_bytes(path.read_bytes()[:-1])
    assert verify(path).records == 2
    fill(path, 1)
    assert (verify(path).records, verify(path).torn) == (3, 0)


def test_a_huge_last_line_is_read_back(path: Path) -> None:
    trail = Trail(path)
    trail.append({**RECORD, "args": "x" * 3_000_000})
    trail.close()
    fill(path, 1)
    assert verify(path).records == 2


# -- rotation and other writers -----------------------------------------------------------------------


def test_rotation_keeps_the_chain_and_numbers_by_name(path: Path) -> None:
    fill(path, 30, max_bytes=1000)
    found = segments(path)
    assert [os.path.basename(name) for name in found] == [
        f"audit.{n:06d}.jsonl" for n in range(1, len(found) + 1)
    ]
    assert all(os.path.getsize(name) >= 1000 for name in found)
    report = verify(path)
    assert (report.ok, report.records) == (True, 30)
    os.unlink(found[0])
    fill(path, 10, max_bytes=1000)
    assert os.path.basename(segments(path)[-1]) > os.path.basename(found[-1])


def test_a_file_that_somebody_moved_away_is_continued_in_a_new_one(path: Path) -> None:
    trail = Trail(path)
    trail.append(RECORD)
    os.rename(path, path.parent / "audit.000007.jsonl")
    trail.append(RECORD)
    report = verify(path)
    assert (report.ok, report.records, len(report.files)) == (True, 2, 2)


def test_two_trails_of_one_file_take_turns(path: Path) -> None:
    one, two = Trail(path, max_bytes=900), Trail(path, max_bytes=900)
    for number in range(20):
        (one if number % 3 else two).append({**RECORD, "turn": number})
    assert verify(path).ok
    assert [record["turn"] for record in records(path)] == list(range(20))


def test_threads_share_a_trail(path: Path) -> None:
    trail = Trail(path, max_bytes=20_000)
    threads = [threading.Thread(target=lambda: [trail.append(RECORD) for _ in range(100)]) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    report = verify(path)
    assert (report.ok, report.records) == (True, 600)


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_forked_child_does_not_share_its_parents_lock(path: Path) -> None:
    trail = Trail(path)
    trail.append(RECORD)
    child = os.fork()
    for _ in range(200):
        trail.append(RECORD)
    if child == 0:
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0
    report = verify(path)
    assert (report.ok, report.records) == (True, 401)


WRITER = """
import sys
from hookturn_builtins.audit_log.trail import Trail
path, who, count, size, max_bytes = sys.argv[1], sys.argv[2], *map(int, sys.argv[3:6])
trail = Trail(path, max_bytes=max_bytes)
for number in range(count):
    trail.append({"agent": who, "args": "x" * size, "schema": 1, "turn": number})
    sys.stdout.write(f"{number}\\n")
    sys.stdout.flush()
"""


def writer(path: Path, who: str, count: int, size: int, max_bytes: int) -> subprocess.Popen[str]:
    words = [sys.executable, "-c", WRITER, str(path), who, str(count), str(size), str(max_bytes)]
    return subprocess.Popen(words, stdout=subprocess.PIPE, text=True)


def test_eight_processes_write_across_rotation(path: Path) -> None:
    children = [writer(path, f"p{number}", 200, 20_000, 3_000_000) for number in range(8)]
    for child in children:
        child.communicate()
    assert [child.returncode for child in children] == [0] * 8
    report = verify(path)
    assert (report.ok, report.records, report.torn) == (True, 1600, 0)
    assert len(report.files) > 5
    seen: dict[str, list[int]] = {}
    for record in records(path):
        seen.setdefault(record["agent"], []).append(record["turn"])
    assert seen == {f"p{number}": list(range(200)) for number in range(8)}


@pytest.mark.fault
@pytest.mark.parametrize("round_", range(50))  # 200 kills
def test_killed_writers_lose_nothing_that_was_acknowledged(path: Path, round_: int) -> None:
    chance = random.Random(round_)
    size = chance.choice([10, 500, 200_000, 3_000_000])
    children = [
        writer(path, f"p{number}", 100_000, size, chance.choice([0, 50_000, 1_000_000]))
        for number in range(4)
    ]
    acknowledged: dict[str, int] = {}
    for number, child in enumerate(children):
        assert child.stdout is not None
        for _ in range(chance.randint(1, 60 if size < 1_000_000 else 4)):
            acknowledged[f"p{number}"] = int(child.stdout.readline())
        child.kill()
    for number, child in enumerate(children):
        assert child.stdout is not None
        rest = [line for line in child.stdout.read().splitlines(keepends=True) if line.endswith("\n")]
        if rest:
            acknowledged[f"p{number}"] = int(rest[-1])
        child.stdout.close()
        child.wait()
    fill(path, 1)
    report = verify(path)
    assert report.ok, (report.file, report.line, report.cause)
    seen: dict[str, list[int]] = {}
    for record in records(path):
        seen.setdefault(record["agent"], []).append(record["turn"])
    for who, last in acknowledged.items():
        assert seen[who][: last + 1] == list(range(last + 1))


# -- disks --------------------------------------------------------------------------------------------


def test_a_short_write_is_taken_back(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trail = Trail(path)
    trail.append(RECORD)
    before = path.read_bytes()
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data[:20])))
    with pytest.raises(OSError, match="could be written"):
        trail.append(RECORD)
    monkeypatch.undo()
    assert path.read_bytes() == before
    trail.append(RECORD)
    assert verify(path).records == 2


@pytest.fixture
def small_disk(tmp_path: Path):
    folder = tmp_path / "disk"
    folder.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(folder)], capture_output=True, check=False
    )
    if done.returncode:
        pytest.skip(f"a tmpfs cannot be mounted here: {done.stderr.decode().strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


@pytest.mark.fault
def test_a_full_disk_is_said_and_survived(small_disk: Path) -> None:
    path = small_disk / "audit.jsonl"
    trail = Trail(path)
    written = 0
    with pytest.raises(OSError):
        for _ in range(1000):
            trail.append({**RECORD, "args": "x" * 1500})
            written += 1
    for _ in range(5):
        with pytest.raises(OSError):
            trail.append({**RECORD, "args": "x" * 100_000})
    report = verify(path)
    assert (report.ok, report.records) == (True, written)
    # Space comes back (here: an older file is removed).
    os.rename(path, small_disk / "audit.000001.jsonl")
    subprocess.run(["mount", "-o", "remount,size=2m", str(small_disk)], check=True)
    trail.append(RECORD)
    report = verify(path)
    assert (report.ok, report.records) == (True, written + 1)


def test_durability_syncs(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from hookturn_builtins.audit_log import trail as module

    synced: list[int] = []
    monkeypatch.setattr(module, "sync", synced.append)
    for durability, least, most in (("kernel", 0, 0), ("interval", 1, 2), ("always", 5, 6)):
        synced.clear()
        fill(path, 5, durability=durability)
        assert least <= len(synced) <= most, durability
