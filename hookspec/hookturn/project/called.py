"""Builds the engine for a call of an agent: the project is the one that the agent means, its own hook files are
left to it, and hooks run on threads that can be left behind.
"""

from __future__ import annotations

from ..agents import memory
from .assemble import Assembled, assemble
from .layers import PROJECT_VARIABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..agents.bridge import Place
    from .survey import Survey


def meant(place: Place) -> tuple[str | None, Mapping[str, str]]:
    """Return what a call means by its project, as ``assemble`` takes it: start folder (or None) and environment."""
    if not place.project:
        return place.cwd, place.environ
    # One agent may run inside another's shell: only the caller's own variable names the project.
    environ = {key: value for key, value in place.environ.items() if key not in PROJECT_VARIABLES}
    environ[PROJECT_VARIABLES[0]] = place.project
    return None, environ


def assemble_for(place: Place, *, foretold: str = "", **options: Any) -> Assembled:
    """Build the engine of the place that a call comes from.

    Parameters:
        place: where the call comes from.
        foretold: the memory folder of bridges, to tell other processes what will fail closed before any hook is
            loaded, since one may hang; "" tells this process only.
        options: further keyword arguments of ``assemble``.
    """
    start, environ = meant(place)
    options.setdefault("environ", environ)
    options.setdefault("threaded", True)

    def surveyed(survey: Survey) -> None:
        memory.begin_making(place, lambda: closing(survey))
        if foretold:
            memory.foretell(foretold, place, closing(survey))

    try:
        return assemble(start, agent=place.agent, log=False, surveyed=surveyed, **options)
    finally:
        memory.end_making(place)


def closing(survey: Survey) -> dict[str, str]:
    """Return timing -> what fails closed there, by what a project's files say, none of whose code has run.

    Parameters:
        survey: the project.
    """
    from .trust import guard_of

    found: dict[str, str] = {}

    def closes(timings: Iterable[str], who: str) -> None:
        for timing in timings or survey.timings:
            found.setdefault(timing, who)

    for name, model in survey.models.items():
        for entry in model.hooks:
            if not entry.enabled or survey.state(name, f"hooks.{entry.name}") != "trusted":
                continue
            if entry.options.get("on_failure") == "deny":
                closes(entry.timings, entry.name)
            elif (guard := guard_of(entry)) is not None:
                closes(guard["timings"], entry.name)
    for model in survey.models.values():
        for rule in model.rules["deny"]:
            closes(memory.RULED, f"the rule that denies {rule.text}")
    for name, wanted in survey.wanted.items():
        if wanted.requirers:
            closes((), f"the required plugin {name}")
    return found
