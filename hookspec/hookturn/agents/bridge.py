"""The machine of ``hookturn bridge``: an agent's payload in, that agent's own answer out.

It knows no agent: each ``agents/<name>/hooks.py`` translates its payloads to Moments and what hooks said to
its answers. It touches no process (standard streams, environment, exit codes are the caller's), so that the
command and the resident process both run it, the latter for many callers at once.
"""

from __future__ import annotations

from ..spec.errors import HookturnError, did_you_mean
from ..spec.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path
    from typing import Any, Protocol

    from ..engine.engine import Engine
    from ..spec.tools import Tool
    from .moments import Moment, Row, Said

    class AgentHooks(Protocol):
        """What every ``agents/<name>/hooks.py`` provides. A module: it translates, it decides nothing."""

        NAME: str
        """The agent's name, as in ``hookturn bridge NAME``."""
        PROJECT_VARIABLE: str
        """The environment variable in which the agent names the project, or ""."""
        TOOLS: Mapping[str, Tool]
        """The agent's tools."""
        EVENTS: Mapping[str, Row]
        """The table: the agent's event -> our row."""
        UNKNOWN: Row
        """The row of events that the table does not have: on_event, nothing can be said."""

        def caller(self, payload: Mapping[str, Any], environ: Mapping[str, str]) -> str:
            """Return the name of the agent that really called: ``NAME``, or another that runs our entry, too."""

        def has_entry(self, project: str, environ: Mapping[str, str]) -> bool:
            """Tell whether this agent's own configuration calls hookturn already (asked when it calls a
            foreign entry)."""

        def event_name(self, payload: Mapping[str, Any]) -> str:
            """Return the payload's event name, or "" when it has none."""

        def read(self, row: Row, payload: Mapping[str, Any], environ: Mapping[str, str]) -> Moment:
            """Translate a payload.

            Raises:
                Malformed: when a field that the event cannot do without has a wrong type.
            """

        def write(self, row: Row, moment: Moment, said: Said, environ: Mapping[str, str]) -> BridgeAnswer:
            """Translate what hooks said, fitted to ``row.can``. An empty ``stdout`` when there is nothing to say."""

        def refusal(self, row: Row | None, reason: str) -> BridgeAnswer:
            """Return a refusal where nothing else is known; ``row`` is None when not even the event is."""


AGENTS = {
    "claude-code": "claude_code",
    "codex": "codex",
    "gemini": "gemini",
    "qwen": "qwen",
    "copilot": "copilot",
    "opencode": "opencode",
    "atomcode": "atomcode",
}
"""Agents by name: folder of each (``hooks`` in it is the translator)."""

MARGIN = 0.5
"""Seconds that are kept of the agent's time limit for starting and ending the process."""

MAX_BYTES = 64 * 1024 * 1024
"""Bytes of a payload that are read; a larger one counts as unreadable."""


class UnknownAgent(HookturnError):
    """There is no bridge of this name."""


class Malformed(HookturnError):
    """A payload lacks what its event cannot do without."""


class BridgeAnswer(Record):
    """What the agent gets.

    Parameters:
        stdout: for standard output (or an HTTP body), nothing else may be there.
        stderr: diagnostics, whole lines; "" for none.
        exit_code: 0 unless the agent takes its answer by exit code only.
    """

    stdout: bytes = b""
    stderr: str = ""
    exit_code: int = 0


class Place(Record):
    """Where a call comes from: what the engine is made for.

    Parameters:
        agent: the agent that called.
        project: the folder that the agent's own variable names (it is the project's root), or "".
        cwd: the session's folder, else the caller's.
        environ: the caller's environment.
    """

    agent: str
    project: str
    cwd: str
    environ: Any


def hooks_of(agent: str) -> AgentHooks:
    """Return an agent's translator.

    Raises:
        UnknownAgent: when there is none.
    """
    from importlib import import_module

    folder = AGENTS.get(agent)
    if folder is None:
        raise UnknownAgent(
            f"unknown agent {agent!r}{did_you_mean(agent, AGENTS)}. One of {', '.join(AGENTS)}."
        )
    name = f"{__package__}.{folder}.hooks"
    try:
        module: Any = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UnknownAgent(f"there is no bridge for {agent} yet") from None
    return module  # type: ignore[no-any-return]


def answer(
    agent: str,
    payload: bytes,
    *,
    environ: Mapping[str, str],
    cwd: str,
    engine_for: Callable[[Place], Engine],
    event: str = "",
    timeout: float | None = None,
    memory: Path | None = None,
    caller_pid: int = 0,
    watch: bool = True,
) -> BridgeAnswer:
    """Answer one call of an agent. Never raises but for KeyboardInterrupt, never takes longer than it may.

    Parameters:
        agent: the agent, a name of ``AGENTS``.
        payload: what the agent gave on standard input (or as HTTP body), as it came.
        environ: the environment of the agent's hook process.
        cwd: its working folder.
        engine_for: makes (or finds) the engine of the place; called at most once, maybe on another thread.
            Whatever it raises is answered by policy.
        event: the agent's event name, for agents whose payload does not say it.
        timeout: seconds of the agent's limit, as the installed command or the caller names it; None takes
            the event's own default. The answer comes ``MARGIN`` before it.
        memory: folder in which the bridge remembers, by project, what fails closed, for calls in which no
            engine can be made; None remembers nothing.
        caller_pid: the agent's process, to tell later whether it still lives; 0 when unknown.
        watch: run on a thread of its own that is left behind at the deadline. Without it the caller watches
            the time, and answers with ``late`` when it is over.

    Returns:
        the agent's answer. When something goes wrong: a refusal in the agent's form if the event decides
        something and a hook there fails closed (a guard, ``on_failure: deny``, a required plugin), else an
        answer without opinion; the cause is in ``stderr`` either way.
    """
    raise NotImplementedError


def late(
    agent: str,
    payload: bytes,
    *,
    environ: Mapping[str, str],
    cwd: str,
    event: str = "",
    memory: Path | None = None,
) -> BridgeAnswer:
    """Return the answer by policy for a call whose time is over (see ``answer``)."""
    raise NotImplementedError
