"""Turns hooks.toml, hooks.json and hookturn.yaml into each other, as far as that goes, and tells what does not go.

Only declarations are turned. What a hook reads and prints is another matter in each format: who wrote it must adapt it.
"""

from __future__ import annotations

import json
import os
import re

from ..agents.atomcode import config as atomcode
from ..agents.atomcode.matcher import TOOL_EVENTS, WEBHOOK_TRIGGERS
from ..agents.atomcode.tools import TOOLS
from ..agents.dialect import HookFile
from ..spec.record import Record, thaw
from .document import Document
from .json_document import read_json
from .model import read_hooks, read_model
from .toml_document import read_toml
from .yaml_document import read_yaml

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..runners.entry import HookEntry
    from .problems import Problem

FORMATS = {".toml": "hooks.toml", ".json": "hooks.json", ".yaml": "hookturn.yaml", ".yml": "hookturn.yaml"}
"""Ending of a file's name -> its format."""

_TOML_TRIGGERS = {
    "pre_tool_execution": "pre_tool",
    "post_tool_execution": "post_tool",
    "post_turn": "post_turn",
    "system_prompt": "system_prompt",
}
_JSON_EVENTS = {
    "pre_tool_execution": ("PreToolUse",),
    "post_tool_execution": ("PostToolUse", "PostToolUseFailure"),
    "on_user_prompt_submit": ("UserPromptSubmit",),
    "on_session_start": ("SessionStart",),
    "on_session_end": ("SessionEnd",),
    "on_turn_complete": ("Stop",),
    "post_turn": ("Stop",),
}
_WIRES = {
    "hooks.toml": 'reads `tool_name` and `tool_args` (text), and prints `deny: why` or `{"result": ...}`',
    "hooks.json": "reads `tool_name` and `tool_input`, and prints `hookSpecificOutput`, or words with exit code 2",
    "hookturn.yaml": 'reads `{"timing", "event"}`, and prints `{"deny": "why"}`, or words on stderr with exit code 2',
}
_OURS = ("phase", "priority", "guard", "on_failure", "mode", "agents", "event_types")


class Note(Record):
    """Something that changed on the way, or was left behind.

    Parameters:
        name: the entry's name.
        line: where it stands in the old file.
        lost: the entry (or part of it) is not in the new file.
        text: what about it.
    """

    name: str
    line: int
    lost: bool
    text: str

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {name: getattr(self, name) for name in self._fields}


class Moved:
    """What became of a file.

    Attributes:
        files: path -> text: the new file first, then scripts that it needs.
        notes: what changed and what was left behind.
        problems: what was wrong with the old file.
        entries: how many hooks the new file has.
    """

    def __init__(self) -> None:
        self.files: dict[str, str] = {}
        self.notes: list[Note] = []
        self.problems: list[Problem] = []
        self.entries = 0


def format_of(path: str) -> str:
    """Return the format that a file's name tells, or an empty string."""
    return FORMATS.get(os.path.splitext(path)[1].lower(), "")


def migrate(content: bytes, source: str, target: str) -> Moved:
    """Turn a file into another format. Writes nothing.

    Parameters:
        content: the old file's bytes.
        source: its path.
        target: the new file's path; its name tells the format.
    """
    moved = Moved()
    old, new = format_of(source), format_of(target)
    entries = _read(content, source, old, moved)
    writer = _Writer(moved, old, new, os.path.dirname(os.path.abspath(target)))
    for entry in entries:
        writer.add(entry)
    moved.entries = writer.count
    moved.files = {target: writer.text(), **writer.scripts}
    return moved


def _read(content: bytes, source: str, old: str, moved: Moved) -> list[HookEntry]:
    """Return the hooks of a file; all that is wrong with it goes to ``moved.problems``."""
    base = os.path.dirname(os.path.abspath(source))
    document: Document | None
    if old == "hookturn.yaml":
        model = read_model(read_yaml(content, source), "user", base)
        read_hooks(model)
        moved.problems = [*model.document.problems, *model.problems]
        for key in model.document.data:
            if key != "hooks":
                moved.notes.append(Note(key, model.document.at((key,))[0], True, f"'{key}:' stays behind"))
        return list(model.hooks)
    if old == "hooks.toml":
        document = read_toml(content, source, ())
        assert document is not None
    else:
        document = read_json(content, source)
    place = HookFile(
        os.path.abspath(source), source, "user", "toml" if old == "hooks.toml" else "json", "named", base
    )
    reading = atomcode.read(place, document, {})
    moved.problems = [*document.problems, *reading.problems]
    return [] if document.broken else list(reading.entries)


class _Writer:
    """Collects the new file's entries.

    Parameters:
        moved: where notes go.
        old, new: the formats.
        folder: the new file's.
    """

    def __init__(self, moved: Moved, old: str, new: str, folder: str) -> None:
        self.moved = moved
        self.old = old
        self.new = new
        self.folder = folder
        self.count = 0
        self.scripts: dict[str, str] = {}
        self._entries: list[dict[str, Any]] = []
        self._webhooks: list[tuple[str, dict[str, Any]]] = []
        self._named: dict[str, dict[str, Any]] = {}

    def add(self, entry: HookEntry) -> None:
        """Turn one entry."""
        before = self.count
        if entry.kind == "" or not entry.enabled:
            self._off(entry)
        elif entry.kind == "command":
            {"hookturn.yaml": self._to_yaml, "hooks.json": self._to_json, "hooks.toml": self._to_toml}[
                self.new
            ](entry)
            if self.count > before and self.old != self.new:
                self._note(
                    entry, f"the hook must be adapted: in {self.new} it {_WIRES[self.new]}", lost=False
                )
        elif entry.kind == "webhook":
            self._webhook(entry)
        else:
            self._note(entry, f"'run: {{{entry.kind}: ...}}' exists in hookturn.yaml only")
        if self.old == "hookturn.yaml" and self.count > before:
            kept = [key for key in _OURS if key in entry.options]
            if kept:
                self._note(entry, f"{' and '.join(kept)}: in hookturn.yaml only")
            if entry.config:
                self._note(entry, "'config' exists in hookturn.yaml only")

    def _note(self, entry: HookEntry, text: str, *, lost: bool = True) -> None:
        self.moved.notes.append(Note(entry.name, entry.line, lost, text))

    def _off(self, entry: HookEntry) -> None:
        self.count += 1
        if self.new == "hookturn.yaml":
            self._entries.append({"name": entry.name, "enabled": False})
        elif self.new == "hooks.json":
            self._named[entry.name] = {"disabled": True}
        else:
            self._entries.append({"name": entry.name, "enabled": False})
        self._note(entry, "it is switched off, and what it would run stays behind", lost=False)

    # -- hookturn.yaml --------------------------------------------------------------------------

    def _to_yaml(self, entry: HookEntry) -> None:
        tools = self._tools(entry)
        if tools is None:
            return
        data: dict[str, Any] = {"name": entry.name, "timings": list(entry.timings)}
        data["run"] = {"command": self._command(entry)}
        if tools:
            data["filter"] = {"tools": tools}
        if entry.extra.get("event") == "Notification":
            data["filter"] = {"event_types": thaw(entry.options["event_types"])}
        if "timeout" in entry.options:
            data["timeout"] = entry.options["timeout"]
        event = entry.extra.get("event", "")
        if event in ("PostToolUse", "PostToolUseFailure"):
            self._note(entry, f"it runs after every call, not at {event} only: look at `status`", lost=False)
        self._entries.append(data)
        self.count += 1

    def _tools(self, entry: HookEntry) -> list[str] | None:
        """Return the tool patterns of an entry, or None when its matcher cannot be one."""
        matcher = entry.extra.get("matcher")
        if not matcher or matcher == "*" or entry.extra.get("event") not in TOOL_EVENTS:
            return []
        parts = [part.strip() for part in matcher.split("|")]
        if any(set(part) & set("?[](") for part in parts):
            self._note(
                entry, f"the matcher {matcher!r} means its signs themselves, which a filter cannot say"
            )
            return None
        return [part for part in parts if part]

    def _command(self, entry: HookEntry) -> str | list[str]:
        """Return a command as the new file must have it: paths start at its folder."""
        if isinstance(entry.run, str):
            return str(entry.run)
        return [entry.run[0], *(self._path(entry, word) for word in entry.run[1:])]

    def _path(self, entry: HookEntry, word: str) -> str:
        path = os.path.join(entry.base_dir, os.path.expanduser(word))
        if not os.path.isfile(path):
            return word
        path = os.path.relpath(path, self.folder)
        return (
            path
            if not path.startswith(os.pardir + os.sep + os.pardir)
            else os.path.abspath(os.path.join(self.folder, path))
        )

    # -- hooks.json -----------------------------------------------------------------------------

    def _to_json(self, entry: HookEntry) -> None:
        from shlex import join, quote

        matcher = self._matcher(entry)
        if matcher is None:
            return
        events = [name for timing in entry.timings for name in _JSON_EVENTS.get(timing, ())]
        if self.old == "hooks.json":
            events = [entry.extra["event"]]
        for timing in entry.timings:
            if timing not in _JSON_EVENTS and self.old != "hooks.json":
                self._note(entry, f"hooks.json has no event for {timing}")
        line = entry.run
        if not isinstance(line, str):
            words = []
            for word in entry.run:
                path = os.path.join(entry.base_dir, os.path.expanduser(word))
                inside = os.path.relpath(path, self.folder) if os.path.isfile(path) else ""
                if inside and not inside.startswith(os.pardir):
                    words.append(f'"$ATOMCODE_PROJECT_DIR"/{quote(inside)}')
                else:
                    words.append(join([path if inside else word]))
            line = " ".join(words)
        for event in dict.fromkeys(events):
            data: dict[str, Any] = {"event": event}
            if matcher and event in TOOL_EVENTS:
                data["matcher"] = matcher
            data["command"] = line
            if "timeout" in entry.options:
                data["timeout_ms"] = round(entry.options["timeout"] * 1000)
            name = entry.name if len(set(events)) == 1 else f"{entry.name}-{event}"
            self._named[name] = data
            self.count += 1

    def _matcher(self, entry: HookEntry) -> str | None:
        """Return a matcher for the entry's tools: "" for all of them, or None when it cannot be one."""
        if self.old != "hookturn.yaml":
            return str(entry.extra.get("matcher") or "")
        parts: list[str] = []
        for pattern in entry.options.get("tools", ()):
            names = [name for name, tool in TOOLS.items() if tool.kind == pattern]
            if names:
                parts += names
            elif set(pattern) & set("?[|"):
                self._note(entry, f"the pattern {pattern!r} cannot be said in a matcher")
                return None
            else:
                parts.append(pattern)
        return "|".join(dict.fromkeys(parts))

    # -- hooks.toml -----------------------------------------------------------------------------

    def _to_toml(self, entry: HookEntry) -> None:
        triggers = []
        for timing in entry.timings:
            timing = "post_turn" if timing == "on_turn_complete" else timing
            if timing not in _TOML_TRIGGERS:
                self._note(entry, f"scripts of hooks.toml do not run at {timing}")
            else:
                triggers.append(_TOML_TRIGGERS[timing])
        if entry.extra.get("matcher") or entry.options.get("tools"):
            self._note(
                entry, "hooks.toml has no filter of tools: the script must look at `tool_name`", lost=False
            )
        for trigger in dict.fromkeys(triggers):
            name = entry.name if len(set(triggers)) == 1 else f"{entry.name}-{trigger}"
            script, kind = self._script(entry, name)
            data: dict[str, Any] = {"name": name, "trigger": trigger, "script": script}
            if kind != "shell":
                data["script_type"] = kind
            seconds = entry.options.get("timeout", 5)
            data["timeout_secs"] = max(1, round(seconds))
            if data["timeout_secs"] != seconds:
                self._note(entry, f"its limit of {seconds:g} s is {data['timeout_secs']} s now", lost=False)
            self._entries.append(data)
            self.count += 1

    def _script(self, entry: HookEntry, name: str) -> tuple[str, str]:
        """Return script and type for a command; what is no script alone gets one written for it."""
        from shlex import join

        run = entry.run
        if not isinstance(run, str) and len(run) == 2:
            program = os.path.basename(run[0])
            kind = {"sh": "shell", "bash": "bash", "python": "python", "python3": "python"}.get(program)
            if kind is not None:
                return self._path(entry, run[1]), kind
        line = run if isinstance(run, str) else join([self._absolute(entry, word) for word in run])
        file = re.sub(r"[^A-Za-z0-9_.-]+", "-", name).strip(".-") or "hook"
        while os.path.join(self.folder, f"{file}.sh") in self.scripts:
            file += "-2"
        self.scripts[os.path.join(self.folder, f"{file}.sh")] = f"#!/bin/sh\n{line}\n"
        return f"{file}.sh", "shell"

    @staticmethod
    def _absolute(entry: HookEntry, word: str) -> str:
        path = os.path.join(entry.base_dir, os.path.expanduser(word))
        return path if os.path.isfile(path) else word

    # -- webhooks -------------------------------------------------------------------------------

    def _webhook(self, entry: HookEntry) -> None:
        run = thaw(entry.run)
        run = run.get("webhook", run) if "url" not in run else run
        if self.new == "hooks.json":
            self._note(entry, "hooks.json has no webhooks")
        elif self.new == "hookturn.yaml":
            kept = {
                key: run[key] for key in ("url", "headers", "method", "retries", "timeout") if run.get(key)
            }
            if "retries" in run:
                kept["retries"] = run["retries"]
            if "batch" in entry.extra:
                kept["observe"] = True
                self._note(entry, "its events are sent one by one: hookturn.yaml has no batches", lost=False)
            if kept.get("method") in ("GET", "DELETE"):
                self._note(entry, f"its method {kept.pop('method')} is POST now", lost=False)
            self._entries.append(
                {"name": entry.name, "timings": list(entry.timings), "run": {"webhook": kept}}
            )
            self.count += 1
            if self.old != self.new:
                self._note(
                    entry, 'the server gets hookturn\'s JSON, and answers such as {"deny": "why"}', lost=False
                )
        else:
            self._webhook_to_toml(entry, run)

    def _webhook_to_toml(self, entry: HookEntry, run: dict[str, Any]) -> None:
        headers = run.get("headers") or {}
        if not isinstance(run.get("url"), str) or not all(
            isinstance(value, str) for value in headers.values()
        ):
            self._note(entry, "hooks.toml cannot take its secrets from elsewhere")
            return
        known = set(WEBHOOK_TRIGGERS.values())
        timings = [timing for timing in entry.timings if timing in known]
        for timing in entry.timings:
            if timing not in known:
                self._note(entry, f"hooks.toml has no webhooks at {timing}")
        if not timings:
            return
        if "tools" in entry.options or "matcher" in entry.extra:
            self._note(entry, "hooks.toml has no filter of tools", lost=False)
        data: dict[str, Any] = {
            "name": entry.extra.get("name", entry.name),
            "trigger": entry.extra.get("trigger") or ",".join(timings),
            "url": run["url"],
        }
        if run.get("method"):
            data["method"] = run["method"]
        if run.get("timeout"):
            data["timeout_secs"] = max(1, round(run["timeout"]))
        if run.get("retries") is not None:
            data["retries"] = run["retries"]
        batch = entry.extra.get("batch")
        if batch or run.get("observe"):
            data["batch_size"] = batch["size"] if batch else 1
            data["flush_interval_ms"] = round(batch["seconds"] * 1000) if batch else 1000
        if headers:
            data["headers"] = headers
        self._webhooks.append(("async_webhooks" if "batch_size" in data else "webhooks", data))
        self.count += 1
        if self.old != self.new:
            self._note(entry, "the server gets AtomCode's JSON, and answers with `result`", lost=False)

    # -- the text -------------------------------------------------------------------------------

    def text(self) -> str:
        """Return the new file."""
        if self.new == "hooks.json":
            return json.dumps({"hooks": self._named}, indent=2, ensure_ascii=True) + "\n"
        if self.new == "hookturn.yaml":
            import yaml

            text: str = yaml.safe_dump(
                {"hooks": self._entries}, sort_keys=False, allow_unicode=False, width=110
            )
            return text
        tables = [("hooks", data) for data in self._entries] + self._webhooks
        return "\n".join("\n".join(_toml_table(name, data)) + "\n" for name, data in tables)


def _toml_table(name: str, data: dict[str, Any]) -> Iterable[str]:
    yield f"[[{name}]]"
    for key, value in data.items():
        if key != "headers":
            yield f"{key} = {_toml(value)}"
    if "headers" in data:
        yield f"[{name}.headers]"
        for key, value in data["headers"].items():
            yield f"{_toml(key)} = {_toml(value)}"


def _toml(value: Any) -> str:
    """Return a value as TOML. Texts as JSON writes them are TOML's basic strings, but for surrogate pairs and DEL."""
    if isinstance(value, str):
        text = json.dumps(value.encode("utf-8", "replace").decode("utf-8"), ensure_ascii=False)
        return text.replace("\x7f", "\\u007f")
    return json.dumps(value)
