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
        memory.begin_making(place, lambda timings: closing(survey, timings))
        if foretold:
            found = {timing: who for timing in survey.timings if (who := closing(survey, (timing,)))}
            memory.foretell(foretold, place, found)

    try:
        return assemble(start, agent=place.agent, log=False, surveyed=surveyed, **options)
    finally:
        memory.end_making(place)


def closing(survey: Survey, timings: Iterable[str]) -> str:
    """Return what fails closed at some timings by what a project's files say, none of whose code has run; or "".

    Parameters:
        survey: the project.
        timings: where to look.
    """
    from .trust import guard_of

    asked = set(timings)
    for name, model in survey.models.items():
        for entry in model.hooks:
            if not entry.enabled or survey.state(name, f"hooks.{entry.name}") != "trusted":
                continue
            if entry.options.get("on_failure") == "deny":
                at = list(entry.timings)
            else:
                guard = guard_of(entry)
                if guard is None:
                    continue
                at = guard["timings"]
            if not at or asked.intersection(at):
                return entry.name
    if asked.intersection(memory.RULED):
        rule = next((rule for model in survey.models.values() for rule in model.rules["deny"]), None)
        if rule is not None:
            return f"the rule that denies {rule.text}"
    return next(
        (f"the required plugin {name}" for name, wanted in survey.wanted.items() if wanted.requirers), ""
    )
