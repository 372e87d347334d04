"""Auto-commit killed at random moments, its git killed with it, and a disk that is full."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from hookturn import Engine, events
from hookturn_builtins.auto_commit import Config, plugin

pytestmark = pytest.mark.fault

SESSION = """
import os, sys
from hookturn import Engine, events
from hookturn_builtins.auto_commit import Config, plugin
project, target = sys.argv[1], sys.argv[2]
config = Config()
config.every, config.target = 1, target
engine = Engine(project_dir=project)
engine.register(plugin(config), "auto-commit")
number = 0
print("go", flush=True)
while True:
    number += 1
    files = []
    for name in ("same", f"d{number % 7}/new-{os.getpid()}-{number}"):
        path = os.path.join(project, name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w") as out:
            out.write(f"{os.getpid()} {number}\\n")
        files.append(path)
    engine.fire(events.TurnComplete(session_id="s1", turn=number, edited_files=files))
"""

ROUNDS = 25


@pytest.fixture(autouse=True)
def _home(monkeypatch, tmp_path_factory):
    monkeypatch.setenv("HOME", str(tmp_path_factory.mktemp("home")))
    for name in [name for name in os.environ if name.startswith("GIT_")]:
        monkeypatch.delenv(name)


def git(folder: Path, *words: str) -> str:
    done = subprocess.run(["git", *words], cwd=folder, capture_output=True, check=False)
    assert done.returncode == 0, done
    return os.fsdecode(done.stdout).rstrip("\n")


def base(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ann")
    git(folder, "config", "user.email", "ann@example.org")
    (folder / "mine").write_text("1\n")
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "base")
    (folder / "mine").write_text("2\n")
    git(folder, "add", "mine")
    (folder / "mine").write_text("3\n")


def once(folder: Path, *names: str, target: str = "current") -> str:
    config = Config()
    config.every, config.target = 1, target  # type: ignore[assignment]
    with Engine(project_dir=folder) as made:
        made.register(plugin(config), "auto-commit")
        out = made.fire(
            events.TurnComplete(
                session_id="after", turn=1, edited_files=[str(folder / name) for name in names]
            )
        )
    assert not out.failures, out.failures
    return out.warnings[0]


def whole(folder: Path) -> None:
    """Check that git is content, no lock is left and the user's work is as it was."""
    assert not list((folder / ".git").rglob("*.lock"))
    done = subprocess.run(
        ["git", "fsck", "--strict"], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done
    assert "error" not in done.stderr
    assert git(folder, "show", ":mine") == "2"
    assert git(folder, "show", "HEAD:mine") == "1"
    assert (folder / "mine").read_text() == "3\n"


def gits_in(folder: Path) -> list[int]:
    """Return the processes of git that work in a folder."""
    found = []
    for entry in os.listdir("/proc"):
        if entry.isdigit():
            try:
                here = os.readlink(f"/proc/{entry}/cwd")
                name = Path(f"/proc/{entry}/comm").read_text().strip()
            except OSError:
                continue
            if here == str(folder) and name == "git":
                found.append(int(entry))
    return found


def settle(folder: Path) -> None:
    """Wait until what git had begun is over: it ends by itself. A process that was just made may start late."""
    end = time.monotonic() + 20
    quiet = 0
    while quiet < 10 and time.monotonic() < end:
        busy = gits_in(folder) or list((folder / ".git").rglob("*.lock"))
        quiet = 0 if busy else quiet + 1
        time.sleep(0.01)


@pytest.mark.parametrize("target", ["current", "session"])
def test_killed_at_a_random_moment(tmp_path: Path, target: str) -> None:
    folder = tmp_path / "project"
    base(folder)
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    chance = random.Random(seed)
    ref = "main" if target == "current" else "refs/hookturn/s1"
    made = 0
    for _ in range(ROUNDS):
        process = subprocess.Popen(
            [sys.executable, "-c", SESSION, str(folder), target],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdout is not None
        assert process.stdout.readline() == b"go\n"
        time.sleep(chance.uniform(0.0, 0.25))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        settle(folder)
        whole(folder)
        if target == "session":
            assert git(folder, "rev-list", "--count", "main") == "1"
        # Each commit holds what was touched, and the next start just works.
        (folder / "after").write_text(f"{chance.random()}\n")
        assert "committed" in once(folder, "after", target=target)
        commits = int(
            git(folder, "rev-list", "--count", ref if target == "current" else "refs/hookturn/after")
        )
        assert commits > made
        made = commits
        for line in (folder / ".hookturn" / "auto-commit.jsonl").read_text().splitlines():
            json.loads(line)
    names = git(folder, "log", "--format=", "--name-only", ref).split("\n")
    assert {name.split("-")[0] for name in names if name} <= {"same", "after", "mine"} | {
        f"d{n}/new" for n in range(7)
    }


@pytest.mark.skipif(
    not hasattr(os, "geteuid") or os.geteuid() != 0, reason="mounting a small disk needs root"
)
@pytest.mark.parametrize("target", ["current", "session"])
def test_a_full_disk(tmp_path: Path, target: str) -> None:
    disk = tmp_path / "disk"
    disk.mkdir()
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=600k", "tmpfs", str(disk)],
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        pytest.skip(f"no small disk: {done.stderr}")
    try:
        base(disk)
        (disk / "before").write_text("1\n")
        assert "committed" in once(disk, "before", target=target)
        filler = disk / "filler"
        failed = 0
        for left in (60_000, 40_000, 28_000, 20_000, 12_000, 8_000, 4_000, 0):
            (disk / "new").write_text(f"{left}\n" * 200)
            (disk / "before").write_text(f"{left}\n")
            free = os.statvfs(disk)
            with open(filler, "ab") as file:
                spare = free.f_bavail * free.f_frsize - left
                if spare > 0:
                    try:
                        file.write(b"x" * spare)
                        file.flush()
                    except OSError:
                        pass  # that is what it is for
            said = once(disk, "new", "before", target=target)
            assert any(word in said for word in ("committed", "failed")), said
            failed += "failed" in said
            assert not list((disk / ".git").rglob("*.lock"))
            filler.unlink()
            whole(disk)
            assert "new" not in git(disk, "diff", "--cached", "--name-only")
            said = once(disk, "new", "before", target=target)
            assert "committed" in said or "nothing to do" in said, said
            whole(disk)
        assert failed
    finally:
        subprocess.run(["umount", str(disk)], check=True)


@pytest.mark.parametrize("include_shell", [False, True])
def test_a_state_folder_that_cannot_be_used_costs_one_warning_and_no_commit(
    tmp_path: Path, include_shell: bool
) -> None:
    project = tmp_path / "project"
    project.mkdir()
    for words in (("init", "-q"), ("commit", "-q", "--allow-empty", "-m", "base")):
        subprocess.run(
            ["git", "-c", "user.name=A", "-c", "user.email=a@example.org", *words], cwd=project, check=True
        )
    state = tmp_path / "state"
    state.write_text("a file where the folder should be")
    config = plugin.Config()
    config.every, config.include_shell = 2, include_shell
    warned: list[str] = []
    with Engine(project_dir=project, state_dir=state) as engine:
        engine.register(plugin(config), "auto-commit", layer="builtin")
        for turn in range(1, 5):
            path = project / f"{turn}.txt"
            path.write_text("text")
            for event in (
                events.UserPromptSubmit(prompt=f"make {turn}", session_id="s", cwd=str(project)),
                events.TurnStart(session_id="s", turn=turn, cwd=str(project)),
                events.PostToolExecution(
                    tool="write", args={"path": str(path)}, status="ok", session_id="s", cwd=str(project)
                ),
                events.TurnComplete(text="done", session_id="s", turn=turn, cwd=str(project)),
            ):
                out = engine.fire(event)
                assert not out.failures
                warned += out.warnings
    assert [text for text in warned if "state folder" in text] == [
        next(text for text in warned if "The state folder cannot be written" in text)
    ]
    log = subprocess.run(
        ["git", "log", "--format=%s", "--name-only"], cwd=project, capture_output=True, check=True
    )
    assert [line for line in log.stdout.decode().split("\n") if line] == [
        "make 4", "3.txt", "4.txt", "make 2", "1.txt", "2.txt", "base"
    ]  # fmt: skip
