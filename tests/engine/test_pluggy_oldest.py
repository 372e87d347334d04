"""The oldest pluggy that is allowed: order, registration and answers are the same there."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

OLDEST = "1.5.0"
HERE = Path(__file__).parent
FILES = ["test_order.py", "test_registration.py", "test_answers_allowed.py"]


def install(target: Path) -> str:
    """Install the oldest pluggy into a folder; returns why it could not be done."""
    ways = [
        [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"],
        *([[shutil.which("uv"), "pip", "install", "--quiet"]] if shutil.which("uv") else []),
    ]
    why = ""
    for way in ways:
        command = [*way, "--no-deps", "--target", str(target), f"pluggy=={OLDEST}"]
        try:
            done = subprocess.run(command, capture_output=True, text=True, timeout=120)
        except subprocess.TimeoutExpired:
            return "the package index did not answer"
        if done.returncode == 0:
            return ""
        why = done.stderr.strip()[-300:]
    return why


def test_on_the_oldest_pluggy(tmp_path):
    folder = tmp_path / "oldest"
    why = install(folder)
    if why:
        pytest.skip(f"pluggy {OLDEST} cannot be installed here: {why}")
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([str(folder), os.environ.get("PYTHONPATH", "")])}
    version = [sys.executable, "-c", "import pluggy; print(pluggy.__version__)"]
    assert subprocess.run(version, env=env, capture_output=True, text=True).stdout.strip() == OLDEST
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "-p", "no:xdist", *FILES],
        cwd=HERE,
        env=env,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
