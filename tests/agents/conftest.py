"""What the tests of the transcript readers share."""

from __future__ import annotations

import importlib.util
import json
import sys
from collections import Counter
from pathlib import Path

import pytest

from hookturn.agents import recorded as r
from hookturn.agents.transcripts import Transcript, open_transcript, readers
from hookturn.replay import own

DATA = Path(__file__).parent.parent / "data" / "transcripts"


class Told(list):
    """The steps of one recording, with what tests ask of them."""

    def of(self, kind):
        """Return the steps of one kind."""
        return [step for step in self if isinstance(step, kind)]

    @property
    def kinds(self):
        """The kinds of the steps, in order."""
        return [type(step).__name__ for step in self]

    @property
    def prompts(self):
        return [step.text for step in self.of(r.Prompt)]

    @property
    def answers(self):
        return [step.text for step in self.of(r.Response)]

    @property
    def turns(self):
        return [step.text for step in self.of(r.TurnEnd)]

    @property
    def calls(self):
        """(tool, status, agent_id) of each call in order of its begin; begins and ends must pair."""
        ends = {}
        for end in self.of(r.ToolEnd):
            assert end.call_id not in ends, f"two ends of {end.call_id}"
            ends[end.call_id] = end
        begins = self.of(r.ToolBegin)
        assert len({begin.call_id for begin in begins}) == len(begins)
        assert set(ends) == {begin.call_id for begin in begins}
        for begin in begins:
            end = ends[begin.call_id]
            assert self.index(begin) < self.index(end)
            assert end.agent_id == begin.agent_id
        return [(begin.tool, ends[begin.call_id].status, begin.agent_id) for begin in begins]

    def end_of(self, call_id):
        """Return a call's end."""
        return next(step for step in self.of(r.ToolEnd) if step.call_id == call_id)

    @property
    def tokens(self):
        """All tokens that were told, by name, without the zeros."""
        total = Counter()
        for step in self.of(r.Response):
            total.update(step.usage)
        return {name: count for name, count in total.items() if count}

    @property
    def agents(self):
        """Names of the sub-agents; each begin has its end, and its steps lie between."""
        names = {}
        for step in self:
            if isinstance(step, r.SubagentBegin):
                assert step.agent_id and step.agent_id not in names
                names[step.agent_id] = step.name
            elif step.agent_id:
                assert step.agent_id in names, step
        assert Counter(s.agent_id for s in self.of(r.SubagentEnd)) == Counter(list(names))
        return list(names.values())


@pytest.fixture(scope="session")
def generate():
    """The module that writes recordings of any size: ``tests/generate_transcript.py``."""
    name = "generate_transcript"
    if name not in sys.modules:
        spec = importlib.util.spec_from_file_location(name, DATA.parent.parent / f"{name}.py")
        assert spec is not None and spec.loader is not None
        module = sys.modules[name] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return sys.modules[name]


@pytest.fixture
def data():
    """The folder of recorded sessions."""
    return DATA


@pytest.fixture
def transcript(tmp_path):
    """Write lines (dicts or raw text or bytes) to a file and open it."""

    def opened(lines, name="recording.jsonl", **options) -> Transcript:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if isinstance(lines, bytes):
            path.write_bytes(lines)
        else:
            whole = [line if isinstance(line, str) else json.dumps(line) for line in lines]
            path.write_text("".join(f"{line}\n" for line in whole), encoding="utf-8", newline="\n")
        return open_transcript(str(path), (own, *readers()), **options)

    return opened


@pytest.fixture
def told(transcript):
    """Return the steps of a recording: of a path, or of lines as ``transcript`` takes them."""

    def steps(source, **options) -> Told:
        if isinstance(source, Path):
            return Told(open_transcript(str(source), (own, *readers())).steps())
        return Told(transcript(source, **options).steps())

    return steps


@pytest.fixture
def claude(tmp_path, monkeypatch):
    """A trusted project with Claude Code's hook files and a home of its own."""
    import importlib.util
    import os
    from pathlib import Path

    from hookturn import paths
    from hookturn.project.layers import PROJECT_VARIABLES

    spec = importlib.util.spec_from_file_location(
        "claude_project", Path(__file__).parent / "claude_project.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    made = module.ClaudeProject(tmp_path)
    made.handler, made.group = module.handler, module.group
    managed = tmp_path / "managed"
    managed.mkdir(mode=0o755)
    monkeypatch.setattr(paths, "MANAGED_CONFIG", str(managed / "hookturn.yaml"))
    monkeypatch.setattr("hookturn.project.layers.MANAGED_OWNER", os.geteuid())
    monkeypatch.setattr(
        "hookturn.agents.claude_code.config.MANAGED",
        dict.fromkeys(("linux", "darwin"), str(managed / "managed-settings.json")),
    )
    monkeypatch.setenv("HOME", str(made.home))
    for name in (*PROJECT_VARIABLES, "CLAUDE_CONFIG_DIR", "HOOKTURN_RUNNING"):
        monkeypatch.delenv(name, raising=False)
    yield made
    for engine in made.engines:
        engine.close()
