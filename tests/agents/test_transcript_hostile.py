"""Recordings are not to be trusted: whatever stands in them, a reader goes on and its steps stay sound."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections import Counter
from copy import deepcopy
from io import BytesIO
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from hookturn.agents import recorded as r
from hookturn.agents.transcripts import readers
from hookturn.replay import own

DATA = Path(__file__).parent.parent / "data" / "transcripts"
RECORDINGS = sorted(path for path in DATA.rglob("*.jsonl"))
READERS = {reader.NAME: reader for reader in (own, *readers())}

JUNK = (
    None,
    True,
    0,
    -1,
    1e300,
    "",
    "x",
    "\ud800",
    "\x00",
    [],
    {},
    [[]],
    [None],
    {"a": None},
    [{"type": "text"}],
    2**70,
    10**400,
    float("inf"),
    float("nan"),
    "Exit Code: " + "9" * 5000,
    "Process exited with code " + "9" * 5000,
    "<exited with exit code " + "9" * 5000 + ">",
    "2026-01-01T00:00:   nanZ",
)


def numbered(objects):
    return list(enumerate(objects, 1))


def sound(steps):
    """Begins and ends of calls, sub-agents and sessions pair, and fields have their types."""
    open_calls, open_agents = set(), set()
    counts = Counter(type(step).__name__ for step in steps)
    for step in steps:
        if isinstance(step, r.ToolBegin):
            assert step.call_id and step.call_id not in open_calls
            assert isinstance(step.tool, str) and isinstance(step.args, dict)
            open_calls.add(step.call_id)
        elif isinstance(step, r.ToolEnd):
            assert step.call_id in open_calls
            open_calls.discard(step.call_id)
            assert step.status in r.STATUSES
            assert isinstance(step.error, str)
            assert step.duration is None or step.duration >= 0
        elif isinstance(step, r.SubagentBegin):
            assert step.agent_id not in open_agents
            open_agents.add(step.agent_id)
        elif isinstance(step, r.SubagentEnd):
            assert step.agent_id in open_agents
            open_agents.discard(step.agent_id)
        elif isinstance(step, r.Response):
            assert isinstance(step.text, str)
            assert all(isinstance(count, int) and count >= 0 for count in step.usage.values())
        elif isinstance(step, r.Prompt):
            assert isinstance(step.text, str)
        if not isinstance(step, r.Skipped):
            assert step.time is None or isinstance(step.time, float)
    assert not open_calls
    assert not open_agents
    assert counts["SessionBegin"] == counts["SessionFinish"]


def places(value, path=()):
    """Yield the path of every value inside."""
    for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
        yield (*path, key)
        if isinstance(inner, (dict, list)):
            yield from places(inner, (*path, key))


def changed(objects, rng):
    """Copy the objects and put junk in some places, drop some, repeat some, swap some."""
    objects = json.loads(json.dumps(objects))
    for _ in range(rng.randint(1, 12)):
        if not objects:
            break
        at = rng.randrange(len(objects))
        action = rng.random()
        if action < 0.7:
            paths = list(places(objects[at]))
            if paths:
                path = rng.choice(paths)
                holder = objects[at]
                for key in path[:-1]:
                    holder = holder[key]
                if rng.random() < 0.2 and isinstance(holder, dict):
                    del holder[path[-1]]
                else:
                    holder[path[-1]] = deepcopy(rng.choice(JUNK))
        elif action < 0.8:
            del objects[at]
        elif action < 0.9:
            objects.insert(rng.randrange(len(objects)), deepcopy(objects[at]))
        else:
            other = rng.randrange(len(objects))
            objects[at], objects[other] = objects[other], objects[at]
    return [one for one in objects if isinstance(one, dict)]


@pytest.mark.parametrize("name", sorted(READERS))
def test_changed_recordings_are_read_to_the_end(name, generate):
    reader = READERS[name]
    rng = random.Random(7)
    used = 0
    for path in RECORDINGS:
        objects = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines() if line.strip()]
        if len(objects) > 400 or not reader.sniff(objects):
            continue
        used += 1
        for _ in range(12):
            sound(list(reader.read(iter(numbered(changed(objects, rng))), None)))
    if name == "hookturn":
        file = BytesIO()
        generate.write_own(file, 200)
        objects = [json.loads(line) for line in file.getvalue().splitlines()]
        for _ in range(100):
            made = list(reader.read(iter(numbered(changed(objects, rng))), None))
            assert made
    else:
        assert used, "no recording to change"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)
words = st.sampled_from(
    ["type", "message", "payload", "data", "content", "role", "id", "uuid", "sessionId", "timestamp", "user",
     "assistant", "system", "event_msg", "response_item", "function_call", "call_id", "tool.execution_start",
     "toolCallId", "gemini", "toolCalls", "$set", "messages", "tool_use", "tool_result", "tool_use_id", "parts"]
)  # fmt: skip
shaped = st.recursive(
    words | json_values,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words, inner, max_size=5),
    max_leaves=12,
)


@pytest.mark.parametrize("name", sorted(set(READERS) - {"hookturn"}))
@given(objects=st.lists(st.dictionaries(words, shaped, max_size=6), max_size=6))
def test_made_up_objects_are_read_to_the_end(name, objects):
    reader = READERS[name]
    reader.sniff(objects)
    sound(list(reader.read(iter(numbered(objects)), None)))


@pytest.mark.parametrize("form", ["claude", "own"])
def test_what_the_generator_writes_is_what_it_counts(form, told, tmp_path, generate):
    path = tmp_path / "big.jsonl"
    with path.open("wb") as file:
        counts = (generate.write_claude if form == "claude" else generate.write_own)(file, 3000)
    steps = told(path)
    assert not steps.of(r.Skipped)
    assert len(path.read_bytes().splitlines()) == counts.lines
    assert len(steps.prompts) == counts.prompts
    assert len(steps.turns) == counts.turns
    assert len(steps.answers) == counts.responses
    calls = steps.calls
    assert len(calls) == counts.tool_calls
    assert Counter(tool for tool, _, _ in calls) == counts.by_tool
    assert Counter(status for _, status, _ in calls) == counts.by_status
    assert steps.tokens.get("input_tokens", 0) == counts.input_tokens
    assert steps.tokens.get("output_tokens", 0) == counts.output_tokens


_MEASURE = (
    f"import sys\nsys.path.insert(0, {str(Path(__file__).parent.parent)!r})\n"
    """
from measure import peak
from hookturn.agents.transcripts import open_transcript
for step in open_transcript(sys.argv[1]).steps():
    pass
print(peak())
"""
)


def test_memory_does_not_grow_with_the_recording(tmp_path, generate):
    pytest.importorskip("resource")
    peaks = []
    for events in (2_000, 100_000):
        path = tmp_path / f"{events}.jsonl"
        with path.open("wb") as file:
            generate.write_claude(file, events)
        run = subprocess.run(
            [sys.executable, "-c", _MEASURE, str(path)], capture_output=True, text=True, check=True
        )
        peaks.append(int(run.stdout))
    assert peaks[1] < peaks[0] * 1.3
