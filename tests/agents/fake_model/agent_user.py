"""A user of some agent program whose configuration calls the bridge, with hooks that answer as told."""

from __future__ import annotations

import json
import shutil

from agent_programs import HERE, Home
from scripted_hooks import TIMINGS

USER_HOOKS = f"""\
hooks:
  - name: scripted
    run: {{module: scripted_hooks.py}}
    timings: [{", ".join(TIMINGS)}]
"""


class User(Home):
    """A user.

    Parameters:
        base: an empty folder for home, project, configuration and state.
        program: the agent program.
    """

    def __init__(self, base, program):
        super().__init__(base)
        self.program = program
        self.hooks(USER_HOOKS)
        shutil.copy(HERE / "scripted_hooks.py", base / "config")

    def handlers(self, events, *, seconds=30, unit=1):
        """Return a hooks table in Claude Code's shape that calls the bridge.

        Parameters:
            events: the agent's events.
            seconds: the time limit.
            unit: what a second is in the table.
        """
        command = f"{self.bridge} {self.program.name} --timeout {seconds}"
        handler = {"type": "command", "command": command, "timeout": seconds * unit}
        return {event: [{"matcher": "*", "hooks": [handler]}] for event in events}

    def say(self, **answers):
        """Let hooks answer: timing -> answer, or list of rules."""
        rules = {
            timing: answer if isinstance(answer, list) else [{"answer": answer}]
            for timing, answer in answers.items()
        }
        (self.base / "config/answers.json").write_text(json.dumps(rules))

    def go(self, script, **more):
        """Run the program once; it must end well."""
        out = self.run(self.program, script, **more)
        assert out.code == 0, out.stderr
        return out

    @property
    def events(self):
        """What the hooks saw."""
        path = self.base / "config/events.jsonl"
        return [json.loads(line) for line in path.read_text().splitlines()] if path.exists() else []

    def of(self, timing):
        """Return the events of a timing."""
        return [event for event in self.events if event["timing"] == timing]

    def ran(self, name="ran.txt"):
        """Whether a file that a tool was to write is there."""
        return (self.project / name).exists()
