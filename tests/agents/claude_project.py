"""A project with Claude Code's hook files, for the tests of that dialect: the way through hookturn's own project room."""

from __future__ import annotations

import json

from hookturn import events
from hookturn.agents.claude_code import config
from hookturn.project import assemble as assembling
from hookturn.project import foreign
from hookturn.project.survey import Survey


def handler(command, **more):
    return {"type": "command", "command": command, **more}


def group(*handlers, matcher=None):
    return {**({} if matcher is None else {"matcher": matcher}), "hooks": list(handlers)}


class ClaudeProject:
    """Files, trust and events of one project."""

    def __init__(self, tmp_path):
        self.home = tmp_path / "home"
        self.folder = tmp_path / "my project"
        for folder in (self.home / ".claude", self.folder / ".git", self.folder / ".claude"):
            folder.mkdir(parents=True)
        self.engines = []

    def write(self, name, content, folder=None):
        path = (folder or self.folder) / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not isinstance(content, bytes):
            content = (content if isinstance(content, str) else json.dumps(content, indent=1)).encode()
        path.write_bytes(content)
        return path

    def script(self, name, text, folder=None):
        path = self.write(name, text, folder)
        path.chmod(0o755)
        return path

    def settings(self, name="settings.json", folder=None, **events_):
        """Write hook groups: ``settings(PreToolUse=[group(...)])``."""
        return self.write(f".claude/{name}", {"hooks": events_}, folder)

    def user(self, **events_):
        return self.settings(folder=self.home, **events_)

    def trust(self):
        Survey(self.folder, guards=True).trust_all()

    def assemble(self, **options):
        options.setdefault("log", False)
        assembled = assembling.assemble(self.folder, **options)
        self.engines.append(assembled.engine)
        return assembled

    def fire(self, event, assembled=None, **options):
        engine = (assembled or self.assemble(**options)).engine
        return engine.fire(event, measure=True)

    def tool(self, tool="Bash", assembled=None, **args):
        event = events.PreToolExecution(
            tool=tool, args=args, call_id="toolu_1", cwd=str(self.folder), session_id="s-1"
        )
        return self.fire(event, assembled)

    def rows(self, assembled=None):
        """Name -> (state, reason) of Claude Code's hooks."""
        found = (assembled or self.assemble()).plugins
        prefix = f"{config.NAME}."
        return {
            row.name.removeprefix(prefix): (row.state, row.reason)
            for row in found
            if row.name.startswith(prefix)
        }

    def reading(self, name=".claude/settings.json"):
        """Read one file alone: (entries, problems)."""
        places = config.files(str(self.folder), {"HOME": str(self.home)}, {})
        place = next(place for place in places if place.label == name)
        problems = []
        file = foreign.read_file(config, place, {}, problems)
        return (file.entries if file is not None else []), problems
