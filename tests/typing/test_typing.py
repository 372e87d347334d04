"""mypy --strict and pyright accept every right use in good_*.py and reject exactly the marked lines of bad_*.py."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import get_args, get_type_hints

import pytest

from hookturn.spec import typed
from hookturn.spec.timings import TIMINGS, LifecycleSpecs

HERE = Path(__file__).parent
CASES = sorted(path for path in HERE.glob("*.py") if path.name.startswith(("good_", "bad_")))


def expected(path: Path) -> set[int]:
    lines = path.read_text(encoding="utf-8").splitlines()
    return {number for number, line in enumerate(lines, 1) if line.endswith("  # error")}


@pytest.fixture(scope="module")
def mypy_errors(request: pytest.FixtureRequest) -> dict[str, dict[int, str]]:
    if find_spec("mypy") is None:
        pytest.skip("mypy is not installed")
    command = [sys.executable, "-m", "mypy", "--strict", "--python-version=3.10", "--config-file="]
    command += ["--no-error-summary", f"--cache-dir={request.config.cache.mkdir('mypy')}"]
    ran = subprocess.run([*command, *map(str, CASES)], capture_output=True, text=True, cwd=HERE)
    assert ran.returncode in (0, 1), ran.stdout + ran.stderr
    found: dict[str, dict[int, str]] = {}
    for name, line, text in re.findall(r"^(?:.*/)?(\w+\.py):(\d+): error: (.*)$", ran.stdout, re.M):
        found.setdefault(name, {}).setdefault(int(line), text)
    return found


@pytest.fixture(scope="module")
def pyright_errors() -> dict[str, dict[int, str]]:
    if find_spec("pyright") is None:
        pytest.skip("pyright is not installed")
    command = [sys.executable, "-m", "pyright", "--outputjson", "--pythonversion=3.10"]
    command += [f"--pythonpath={sys.executable}", *map(str, CASES)]
    environment = {**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    ran = subprocess.run(command, capture_output=True, text=True, env=environment)
    try:
        report = json.loads(ran.stdout)
    except ValueError:
        pytest.skip(f"pyright (a Node program) cannot be run here: {ran.stderr.strip()[-200:]}")
    found: dict[str, dict[int, str]] = {}
    for item in report["generalDiagnostics"]:
        if item["severity"] == "error":
            line = item["range"]["start"]["line"] + 1
            found.setdefault(Path(item["file"]).name, {}).setdefault(line, item["message"])
    assert report["summary"]["filesAnalyzed"] == len(CASES)
    return found


@pytest.mark.parametrize("path", CASES, ids=lambda path: path.name)
@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_a_type_checker_rejects_exactly_the_wrong_uses(
    checker: str, path: Path, request: pytest.FixtureRequest
) -> None:
    found = request.getfixturevalue(f"{checker}_errors").get(path.name, {})
    marked = expected(path)
    assert bool(marked) == path.name.startswith("bad_")
    unmarked = {line: text for line, text in found.items() if line not in marked}
    assert not unmarked, f"{checker} rejects right uses of {path.name}"
    assert marked <= found.keys(), f"{checker} accepts wrong uses of {path.name}"


def test_the_typed_decorators_take_what_the_contract_says() -> None:
    hints = get_type_hints(typed.TypedHookimpl)
    assert set(hints) == {*TIMINGS, "on_load", "on_dispose"}
    assert callable(LifecycleSpecs.on_load) and callable(LifecycleSpecs.on_dispose)
    for name, timing in TIMINGS.items():
        event, answers = get_args(hints[name])
        assert event is timing.event
        if name == "on_event":
            continue  # takes what the host's event accepts
        single = {item for item in get_args(answers) if isinstance(item, type)} - {type(None)}
        assert single == set(timing.answers), name
