"""A whole auto-commit (one changed file, one new one) at the end of a turn, beside the plain git commands."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Callable
from itertools import count
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any

from harness import Row

from hookturn import Engine, events

ROUNDS = 9
SIZES = ((500, 60), (10_000, 250))
"""Tracked files, and the milliseconds to reach."""


def repository(folder: Path, files: int) -> None:
    """Make a repository with so many tracked files."""
    git(folder, "init", "-q", "-b", "main")
    git(folder, "config", "user.name", "Ann")
    git(folder, "config", "user.email", "ann@example.org")
    for number in range(files):
        path = folder / f"d{number // 1000}" / f"e{number // 50}" / f"f{number}.py"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(f"value = {number}\n" * 20)
    git(folder, "add", "-A")
    git(folder, "commit", "-qm", "base")


def git(folder: Path, *words: str) -> None:
    subprocess.run(["git", *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)


def edit(folder: Path, number: int) -> list[str]:
    """Change a tracked file and make a new one, 2 KB each."""
    names = ["d0/e0/f1.py", f"d0/e0/new{number}.py"]
    for name in names:
        (folder / name).write_text(f"value = {number}\n" * 150)
    return names


def committer(folder: Path, target: str) -> Callable[[list[str]], Any]:
    """Return a function that ends a turn which edited files."""
    from hookturn_builtins.auto_commit import plugin

    config = plugin.Config()
    config.every, config.target = 1, target
    engine = Engine(project_dir=folder, state_dir=folder / ".hookturn" / "state")
    engine.register(plugin(config), "auto-commit", layer="builtin", config=config)
    turns = count(1)

    def end(names: list[str]) -> None:
        paths = [str(folder / name) for name in names]
        out = engine.fire(events.TurnComplete(session_id=target, turn=next(turns), edited_files=paths))
        assert "committed" in str(out.warnings), (out.warnings, out.failures)

    return end


def rows() -> list[Row]:
    """Measure and return the rows."""
    from loguru import logger

    logger.remove()
    found = []
    for files, reach in SIZES:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary) / "project"
            folder.mkdir()
            os.environ["HOOKTURN_STATE_DIR"] = str(Path(temporary) / "state")
            repository(folder, files)
            numbers = count()
            current, session = committer(folder, "current"), committer(folder, "session")

            def plain(names: list[str], folder: Path = folder) -> None:
                git(folder, "status", "--porcelain=v2", "-z", "--untracked-files=all")
                git(folder, "add", "--intent-to-add", "--", *names)
                git(folder, "commit", "-q", "--only", "-m", "x", "--", *names)

            taken: dict[str, list[float]] = {"current": [], "session": [], "plain": []}
            # The session's ref never moves the branch: what it committed the next one commits there.
            for number in range(ROUNDS + 1):
                for name, function in (("session", session), ("current", current), ("plain", plain)):
                    names = edit(folder, next(numbers))
                    begun = perf_counter()
                    function(names)
                    if number:
                        taken[name].append((perf_counter() - begun) * 1000)
                    if name == "session":
                        git(folder, "checkout", "-q", "--", names[0])
                        (folder / names[1]).unlink()
            figures = {name: median(values) for name, values in taken.items()}
        against = f"git status + add + commit: {figures['plain']:.1f} ms"
        found.append(Row(f"auto-commit, {files:,} tracked files", figures["current"], "ms", against, reach))
        found.append(
            Row(
                f"auto-commit to the session's ref, {files:,} files", figures["session"], "ms", against, reach
            )
        )
    return found


if __name__ == "__main__":
    for row in rows():
        print(*row.cells(), sep=" | ")
