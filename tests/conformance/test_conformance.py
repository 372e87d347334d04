"""The conformance kit as tests, for environments that have it: ``make conformance`` makes one and runs more."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

HERE = Path(__file__).parent

pytestmark = pytest.mark.skipif(
    find_spec("agent_hooks") is None,
    reason="needs agent-hooks-sdk[ctk] in an environment of its own: make conformance",
)


@pytest.mark.parametrize(
    ("program", "last"),
    [
        (["run.py"], "71 passed, 4 skipped, 0 failed"),
        (["mutants.py"], None),
        (["differential.py", "200"], "200 random scenarios, 0 differ from the reference host"),
        (["declarations.py", "2000"], "2000 random declarations, 0 differ from the SDK's loader"),
    ],
    ids=lambda value: value[0] if isinstance(value, list) else "",
)
def test_the_kit(program, last):
    done = subprocess.run([sys.executable, *program], cwd=HERE, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr
    if last is not None:
        assert done.stdout.splitlines()[-1] == last
