"""Builds the engine for a call of an agent: the project is the one that the agent means, its own hook files are
left to it, and hooks run on threads that can be left behind.
"""

from __future__ import annotations

from .assemble import Assembled, assemble
from .layers import PROJECT_VARIABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any, Protocol

    class Called(Protocol):
        """Where a call comes from (``hookturn.agents.bridge.Place``)."""

        @property
        def agent(self) -> str:
            """The agent that called."""
            ...

        @property
        def project(self) -> str:
            """The folder that its variable names, or ""."""
            ...

        @property
        def cwd(self) -> str:
            """The session's folder."""
            ...

        @property
        def environ(self) -> Mapping[str, str]:
            """The caller's environment."""
            ...


def meant(place: Called) -> tuple[str | None, Mapping[str, str]]:
    """Return what a call means by its project, as ``assemble`` takes it: start folder (or None) and environment."""
    if not place.project:
        return place.cwd, place.environ
    # One agent may run inside another's shell: only the caller's own variable names the project.
    environ = {key: value for key, value in place.environ.items() if key not in PROJECT_VARIABLES}
    environ[PROJECT_VARIABLES[0]] = place.project
    return None, environ


def assemble_for(place: Called, **options: Any) -> Assembled:
    """Build the engine of the place that a call comes from.

    Parameters:
        place: where the call comes from.
        options: further keyword arguments of ``assemble``.
    """
    start, environ = meant(place)
    options.setdefault("environ", environ)
    options.setdefault("threaded", True)
    return assemble(start, agent=place.agent, log=False, **options)
