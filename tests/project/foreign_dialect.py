"""A small dialect for the tests of what all dialects have in common: ``*.hooks`` files of an agent "demo"."""

from __future__ import annotations

import os

from hookturn.agents.dialect import HookFile, Reading
from hookturn.runners import command
from hookturn.runners.entry import HookEntry

NAME = "demo"
SETTINGS = {
    "loud": (True, False),
    "folder": lambda value: "" if isinstance(value, str) else "expected a folder",
}


def files(project, environ, settings):
    found = []
    if environ.get("HOME"):
        path = os.path.join(environ["HOME"], ".demo.json")
        found.append(HookFile(path, path, "user", "json", base_dir=environ["HOME"]))
    for ending in ("json", "yaml", "toml"):
        name = f"demo.{ending}"
        found.append(HookFile(os.path.join(project, name), name, "project", ending, base_dir=project))
    return found


def read(file, source, settings):
    reading = Reading()
    for index, data in enumerate(source.data.get("hooks", [])):
        where = ("hooks", index)
        if not isinstance(data, dict) or not isinstance(data.get("name"), str):
            reading.problems.append(source.problem(where, "the entry has no name", "Give it one."))
            continue
        line, column = source.at(where)
        reading.entries.append(
            HookEntry(
                name=data["name"],
                kind="plugin" if "plugin" in data else "command",
                run=data.get("plugin") or data.get("command"),
                timings=["pre_tool_execution"],
                config=data.get("config", {}),
                enabled=not data.get("disabled", False),
                file=file.label,
                line=line,
                column=column,
                index=index,
                layer=file.layer,
                base_dir=file.base_dir,
                dialect=NAME,
                declared=data,
                where=where,
            )
        )
    return reading


def effective(entries):
    last = {entry.name: entry for entry in entries}
    return [
        (entry, "" if last[entry.name] is entry else f"replaced by {last[entry.name].source}")
        for entry in entries
    ]


def make(entry, config, timings, *, live=False):
    return command.make(entry, config, timings, live=live)


def own_files(entry, project):
    return command.files(entry, project) if entry.kind == "command" else []


def words_of(entry):
    return f"runs {entry.run}"


def wrongs(entry, project):
    return command.problems(entry, project) if entry.kind == "command" else []
