"""A user of an agent program, whose hooks write down every event and answer as they are told."""

from __future__ import annotations

import json
import shutil

from agent_programs import HERE, Home
from scripted_hooks import TIMINGS


class ScriptedUser(Home):
    """A home with the hooks of ``scripted_hooks.py``. Subclasses write the agent's configuration.

    Parameters:
        base: a new folder for it.
        hook: further settings of the hook, as lines of YAML.
    """

    def __init__(self, base, hook=""):
        super().__init__(base)
        self.hooks(
            "hooks:\n  - name: scripted\n    run: {module: scripted_hooks.py}\n"
            f"    timings: [{', '.join(TIMINGS)}]\n{hook}"
        )
        shutil.copy(HERE / "scripted_hooks.py", base / "config")

    def say(self, **answers):
        """Let hooks answer: timing -> answer, or list of rules."""
        rules = {
            timing: answer if isinstance(answer, list) else [{"answer": answer}]
            for timing, answer in answers.items()
        }
        (self.base / "config/answers.json").write_text(json.dumps(rules))

    @property
    def events(self):
        """What the hooks saw."""
        path = self.base / "config/events.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    @property
    def timings(self):
        return [event["timing"] for event in self.events]

    def of(self, timing):
        return [event for event in self.events if event["timing"] == timing]

    def ran(self, name="ran.txt"):
        """Whether a file that a tool was to write is there."""
        return (self.project / name).exists()
