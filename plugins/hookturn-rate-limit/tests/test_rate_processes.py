"""Parallel calls: threads, tasks and processes together get exactly N."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import hookturn_rate_limit
import pytest
from hookturn_rate_limit import Config, plugin

from hookturn import Engine
from hookturn.testing import make

WORKER = """
import sys
from hookturn import Engine
from hookturn_rate_limit import Config, plugin
from hookturn.testing import make

state, session, scope = sys.argv[1:]
engine = Engine([("rate-limit", plugin(Config({"bash": "60/hour"}, scope)))], state_dir=state)
print("ready", flush=True)
sys.stdin.readline()
session = engine.attach(session)
out = [engine.fire(make.pre_tool_execution(session_id=session.id)).decision for _ in range(50)]
print(out.count(None), out.count("deny"))
"""


@pytest.mark.parametrize(
    ("scope", "sessions"), [("session", ["s"] * 4), ("project", ["s1", "s2", "s3", "s4"])]
)
def test_processes_on_one_state_folder_get_exactly_the_limit(
    scope: str, sessions: list[str], tmp_path: Path
) -> None:
    source = str(Path(hookturn_rate_limit.__file__).parents[1])
    workers = [
        subprocess.Popen(
            [
                sys.executable,
                "-c",
                f"import sys; sys.path.insert(0, {source!r})\n{WORKER}",
                tmp_path,
                session,
                scope,
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for session in sessions
    ]
    for worker in workers:
        assert worker.stdout is not None
        assert worker.stdout.readline() == "ready\n"
    answers = []
    for worker in workers:
        assert worker.stdin is not None
        worker.stdin.write("go\n")
        worker.stdin.flush()
    for worker in workers:
        out, _ = worker.communicate(timeout=60)
        answers.append([int(number) for number in out.split()])
        assert worker.returncode == 0
    assert sum(passed for passed, _ in answers) == 60
    assert sum(denied for _, denied in answers) == 200 - 60


@pytest.mark.parametrize("on_disk", [True, False])
def test_threads_get_exactly_the_limit(on_disk: bool, tmp_path: Path) -> None:
    state = tmp_path if on_disk else None
    limited = ("rate-limit", plugin(Config({"*": "25/hour"})))
    with Engine([limited], state_dir=state) as engine, ThreadPoolExecutor(8) as pool:
        outs = list(pool.map(lambda _: engine.fire(make.pre_tool_execution()), range(100)))
    assert [out.failures for out in outs if out.failures] == []
    assert sum(out.decision is None for out in outs) == 25


def test_tasks_get_exactly_the_limit(tmp_path: Path) -> None:
    async def run() -> int:
        with Engine([("rate-limit", plugin(Config({"*": "25/hour"})))], state_dir=tmp_path) as engine:
            outs = await asyncio.gather(*(engine.afire(make.pre_tool_execution()) for _ in range(100)))
        return sum(out.decision is None for out in outs)

    assert asyncio.run(run()) == 25
