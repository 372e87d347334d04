"""Safe names, folders and files: everything that comes from outside passes through these functions."""

from __future__ import annotations

import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn import paths, platform

HOSTILE = ["", ".", "..", "../../x", "/etc/passwd", "a/b", "a\\b", "a\nb", "a\0b", "CON", "nul.txt", "com1.a.b", "x" * 5000,
           ".hidden", "dot.", "naïve", "\ud800", "-x" + "0" * 32, "C:", "a b", "🦄"]  # fmt: skip
ALLOWED = set("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


@pytest.mark.parametrize(
    "text", ["0199f5a2-9c1e-7b4d-8000-000000000001", "ses_6f3aBcD", "local-12-ab", "a", "x" * 100]
)
def test_an_ordinary_session_id_stays_as_it_is(text: str) -> None:
    assert paths.safe_component(text) == text


@pytest.mark.parametrize("text", HOSTILE)
def test_a_hostile_id_becomes_one_harmless_component(text: str, tmp_path: Path) -> None:
    name = paths.safe_component(text)
    (tmp_path / name).mkdir()
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_hostile_ids_stay_apart() -> None:
    assert len({paths.safe_component(text).lower() for text in HOSTILE}) == len(HOSTILE)


@given(st.text(max_size=300) | st.sampled_from(HOSTILE))
def test_a_component_is_within_the_allowed_set_and_stable(text: str) -> None:
    name = paths.safe_component(text)
    assert 1 <= len(name) <= 100
    assert set(name) <= ALLOWED
    assert name[0] != "." and name[-1] != "."
    assert name.partition(".")[0].lower() not in {"con", "nul", "prn", "aux", "com1", "lpt9"}


@given(st.lists(st.text(alphabet="ab./é", max_size=6), unique=True, max_size=20))
def test_different_ids_never_share_a_component(texts: list[str]) -> None:
    assert len({paths.safe_component(text) for text in texts}) == len(texts)


@given(st.text(max_size=20))
def test_the_form_made_for_one_id_is_not_the_form_of_another(text: str) -> None:
    name = paths.safe_component(text)
    if name != text:
        assert paths.safe_component(name) != name


def test_inside_takes_what_lies_in_the_base(tmp_path: Path) -> None:
    assert paths.inside(tmp_path, "a/../b") == tmp_path.resolve() / "b"
    assert paths.inside(tmp_path, tmp_path / "c") == tmp_path.resolve() / "c"


def test_inside_refuses_what_leaves_it(tmp_path: Path) -> None:
    base = tmp_path / "base"
    base.mkdir()
    (base / "link").symlink_to(tmp_path)
    for path in ["..", "../base2/x", "/etc/passwd", "link/x", "a\0b"]:
        with pytest.raises(paths.UnsafePathError):
            paths.inside(base, path)


def test_private_folders_and_files_are_the_users_alone(tmp_path: Path) -> None:
    folder = paths.private_dir(tmp_path / "a" / "b", base=tmp_path)
    paths.write_private(folder / "f", b"one", base=tmp_path)
    assert mode(folder) == 0o700 == mode(folder.parent)
    assert mode(folder / "f") == 0o600
    assert (folder / "f").read_bytes() == b"one"


def test_an_open_folder_is_closed(tmp_path: Path) -> None:
    folder = tmp_path / "open"
    folder.mkdir(mode=0o755)
    os.chmod(folder, 0o777)
    assert mode(paths.private_dir(folder)) == 0o700


def test_nothing_is_written_through_a_link(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    base = tmp_path / "base"
    base.mkdir()
    (base / "file").symlink_to(victim)
    (base / "dangling").symlink_to(tmp_path / "new")
    (base / "folder").symlink_to(elsewhere)
    for name in ["file", "dangling", "folder/f"]:
        with pytest.raises(paths.UnsafePathError):
            paths.write_private(base / name, b"x", base=base)
        with pytest.raises(paths.UnsafePathError):
            paths.open_private(base / name, os.O_WRONLY | os.O_CREAT, base=base)
    for name in ["folder", "folder/deeper"]:
        with pytest.raises(paths.UnsafePathError):
            paths.private_dir(base / name, base=base)
    assert victim.read_bytes() == b"precious"
    assert not (tmp_path / "new").exists()
    assert list(elsewhere.iterdir()) == []


def test_a_path_out_of_its_base_is_refused(tmp_path: Path) -> None:
    with pytest.raises(paths.UnsafePathError):
        paths.write_private(tmp_path / "x", b"", base=tmp_path / "base")


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="only root can make another user's folder"
)
def test_another_users_folder_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, 12345, 12345)
    with pytest.raises(paths.UnsafePathError, match="another user"):
        paths.private_dir(folder)
    with pytest.raises(paths.UnsafePathError, match="another user"):
        paths.write_private(folder / "f", b"", base=tmp_path)


def test_a_failed_write_leaves_the_old_content_and_no_rest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    target = tmp_path / "f"
    paths.write_private(target, b"old")

    def full(fd: int, data: bytes) -> int:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "write", full)
    with pytest.raises(OSError, match="No space"):
        paths.write_private(target, b"new")
    assert target.read_bytes() == b"old"
    assert [path.name for path in tmp_path.iterdir()] == ["f"]


def test_write_all_goes_on_after_a_short_write(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: real(fd, bytes(data[:3])))
    paths.write_private(tmp_path / "f", b"0123456789", durable=True)
    assert (tmp_path / "f").read_bytes() == b"0123456789"


def test_roots_follow_the_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("HOOKTURN_STATE_DIR", str(tmp_path / "s"))
    monkeypatch.setenv("HOOKTURN_CONFIG_DIR", str(tmp_path / "c"))
    assert paths.state_root() == tmp_path / "s"
    assert paths.config_root() == tmp_path / "c"
    for name in ("HOOKTURN_STATE_DIR", "HOOKTURN_CONFIG_DIR"):
        monkeypatch.delenv(name)
    assert paths.state_root().name == "hookturn"
    assert paths.config_root().is_absolute()


def test_no_environment_variable_moves_the_managed_layer(monkeypatch: pytest.MonkeyPatch) -> None:
    before = paths.managed_config()
    monkeypatch.setenv("HOOKTURN_MANAGED_CONFIG", "/elsewhere.yaml")
    assert paths.managed_config() == before


def test_a_project_has_one_hash_by_whatever_way(tmp_path: Path) -> None:
    project = tmp_path / "p"
    project.mkdir()
    (tmp_path / "link").symlink_to(project)
    assert (
        paths.project_hash(project)
        == paths.project_hash(tmp_path / "link")
        == paths.project_hash(f"{project}/.")
    )
    assert paths.project_hash(project) != paths.project_hash(tmp_path)


def test_the_hookturn_folder_ignores_itself_in_git(tmp_path: Path) -> None:
    folder = paths.hookturn_dir(tmp_path)
    assert folder == tmp_path / ".hookturn"
    assert mode(folder) == 0o700
    assert "*" in (folder / ".gitignore").read_text().splitlines()
    (folder / ".gitignore").write_text("mine")
    paths.hookturn_dir(tmp_path)
    assert (folder / ".gitignore").read_text() == "mine"


def test_a_lock_keeps_threads_apart(tmp_path: Path) -> None:
    lock = paths.FileLock(tmp_path / "lock")
    inside = 0
    most = 0

    def work() -> None:
        nonlocal inside, most
        for _ in range(50):
            with lock:
                inside += 1
                most = max(most, inside)
                inside -= 1

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert most == 1
    assert mode(tmp_path / "lock") == 0o600


def test_a_lock_keeps_processes_apart(tmp_path: Path) -> None:
    counter = tmp_path / "n"
    counter.write_text("0")
    code = (
        "import sys; from hookturn.paths import FileLock\n"
        "for _ in range(50):\n"
        "    with FileLock(sys.argv[1]):\n"
        "        n = int(open(sys.argv[2]).read()); open(sys.argv[2], 'w').write(str(n + 1))\n"
    )
    command = [sys.executable, "-W", "ignore", "-c", code, str(tmp_path / "lock"), str(counter)]
    children = [subprocess.Popen(command) for _ in range(3)]
    assert [child.wait() for child in children] == [0, 0, 0]
    assert counter.read_text() == "150"


def test_waiting_for_a_lock_ends(tmp_path: Path) -> None:
    with (
        paths.FileLock(tmp_path / "lock"),
        pytest.raises(TimeoutError),
        paths.FileLock(tmp_path / "lock", timeout=0.01),
    ):
        pass
    with paths.FileLock(tmp_path / "lock", timeout=0.01):
        assert (tmp_path / "lock").exists()


def test_importing_paths_is_cheap() -> None:
    code = "import sys, hookturn.paths; print(*sorted({'pathlib', 'platformdirs', 'hashlib', 'typing'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-S", "-c", code], capture_output=True, text=True, check=False,
                         env={**os.environ, "PYTHONPATH": str(Path(paths.__file__).parents[1])})  # fmt: skip
    assert (out.returncode, out.stdout.strip()) == (0, ""), out.stderr


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no FIFOs")
@pytest.mark.parametrize("flags", [os.O_RDONLY, os.O_RDWR, os.O_WRONLY | os.O_APPEND])
@pytest.mark.parametrize("kind", ["fifo", "folder", "socket"])
def test_what_is_no_regular_file_is_not_opened_and_holds_nobody_up(
    tmp_path: Path, flags: int, kind: str
) -> None:
    path = tmp_path / "x"
    if kind == "fifo":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        import socket

        with socket.socket(socket.AF_UNIX) as made:
            made.bind(str(path))
    with pytest.raises(OSError):
        paths.open_private(path, flags)


def test_a_lock_that_never_stays_is_an_error_and_no_wait_for_ever(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lost(fd: int, *, wait: bool = True) -> bool:
        (tmp_path / "lock").unlink()
        return True

    monkeypatch.setattr(platform, "lock", lost)
    with pytest.raises(OSError, match="again and again"), paths.FileLock(tmp_path / "lock"):
        pass
