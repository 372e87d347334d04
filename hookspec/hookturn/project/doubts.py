"""What looks wrong with the hooks of a project although every file is right: matchers that match nothing, hooks that
run twice, shell lines that can never say no. Runs nothing.
"""

from __future__ import annotations

from .problems import Problem, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from ..engine.plan import Step
    from ..runners.entry import HookEntry
    from .assemble import Assembled


def doubts(assembled: Assembled) -> list[Problem]:
    """Return a row for each matcher that matches nothing, each hook that runs twice and each odd shell line."""
    return [*dead_matchers(assembled), *doubles(assembled), *lines(assembled)]


def steps(assembled: Assembled) -> list[tuple[str, Step]]:
    """Return every hook in force with its timing, in order."""
    engine = assembled.engine
    plans = [(name, engine.plan(name)) for name in engine.registry.timings]
    return [(name, step) for name, plan in plans if plan is not None for step in plan.steps]


def dead_matchers(assembled: Assembled) -> list[Problem]:
    """Return a warning for each tools pattern that matches no kind and no tool of any agent that is known here."""
    from ..engine.match import glob_match
    from ..spec.errors import did_you_mean
    from ..spec.tools import KINDS

    names = {*KINDS, *known_tools(), *(assembled.engine.tools or ())}
    found: dict[tuple[str, str], Problem] = {}
    for _, step in steps(assembled):
        for pattern in (step.filter.tools if step.filter is not None else None) or ():
            plain = pattern.replace("*", "").replace("?", "")
            if "mcp" in plain or ":" in plain or "/" in plain:  # tools of servers that nobody knows here
                continue
            if not any(glob_match(pattern, name) for name in names) and not _told(assembled, pattern):
                cause = f"the hook {step.name} is for the tool {show(pattern)}, which no known agent has"
                cause += did_you_mean(pattern, sorted(names))
                file, _, line = step.source.rpartition(":")
                at = (file, int(line), 1) if line.isdigit() else (step.source, 0, 0)
                found[step.name, pattern] = Problem(
                    *at, "", cause, "If a tool has this very name, all is well.", "warning"
                )
    return list(found.values())


def _told(assembled: Assembled, pattern: str) -> bool:
    """Tell whether reading the file has warned of a pattern already."""
    return any(
        ".filter.tools" in problem.path and show(pattern) in problem.cause for problem in assembled.problems
    )


def known_tools() -> set[str]:
    """Return the names of all tools that hookturn knows: those of the agents, and usual ones."""
    from importlib import import_module

    from ..agents.bridge import AGENTS
    from ..spec.tools import USUAL

    names = set(USUAL)
    for folder in AGENTS.values():
        names.update(import_module(f"hookturn.agents.{folder}.tools").TOOLS)
    return names


def doubles(assembled: Assembled) -> list[Problem]:
    """Return a warning for each hook that is declared twice for the same, so that it runs twice."""
    import json

    from ..spec.record import thaw

    survey = assembled.survey
    loaded = {row.source for row in survey.rows if row.kind == "config" and row.state in ("loaded", "dry")}
    entries = [entry for model in survey.models.values() for entry in model.hooks]
    entries += [entry for file in survey.foreign for entry in file.entries]
    first: dict[str, Any] = {}
    found = []
    for entry in entries:
        if entry.source not in loaded or entry.kind in ("", "answer", "plugin"):
            continue
        what = [
            entry.kind,
            thaw(entry.run),
            sorted(entry.timings),
            entry.base_dir,
            thaw(entry.config),
            _about(entry),
        ]
        key = json.dumps(what, default=str, sort_keys=True)
        if key in first:
            cause = f"the hook {entry.name} runs the same as {first[key].name} ({first[key].source})"
            found.append(
                Problem(entry.file, entry.line, entry.column, "", cause, "Take one of them out.", "warning")
            )
        first.setdefault(key, entry)
    return found


def _about(entry: HookEntry) -> list[Any]:
    """Return what narrows a hook down; hooks that differ there are two on purpose."""
    from ..spec.record import thaw

    narrow: list[Any] = [[entry.options.get(key) for key in ("tools", "agents", "event_types")]]
    if entry.dialect:
        declared = thaw(entry.declared)
        narrow += [declared.get(key) for key in ("event", "matcher", "filter", "trigger")]
        hook = declared.get("hook")
        narrow.append(hook.get("if") if isinstance(hook, dict) else None)
    return narrow


def lines(assembled: Assembled) -> Iterator[Problem]:
    """Yield what is odd about the shell lines of hookturn's own files; a dialect tells of its own."""
    from ..runners.command import problems
    from ..runners.doubts import missing, of_line

    root = assembled.root
    for model in assembled.survey.models.values():
        for entry in model.hooks:
            if entry.kind == "command" and isinstance(entry.run, str):
                told = bool(problems(entry, root))  # of the program alone
                for wrong in [*of_line(entry.run), *(() if told else missing(entry.run, {}, root))]:
                    place = ("hooks", entry.index, "run", "command")
                    yield model.document.problem(place, wrong.cause, wrong.remedy, severity=wrong.severity)
