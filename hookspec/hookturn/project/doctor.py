"""What can be found out about a project that is at work: do agents really call, is every guard reached, does
every hook answer. Changes nothing.
"""

from __future__ import annotations

from ..spec.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from .assemble import Assembled
    from .installations import Installation

MOST_TROUBLE = 20
"""Lines of trouble that are shown."""


class Found(Record):
    """One installation, looked at.

    Parameters:
        agent, scope, http: as it was installed; scope is user or project.
        state: ok, changed (our entries are not as `hookturn install` would write them), gone, or broken.
        cause: what is wrong, or "".
        remedy: what to do about it, or "".
        calls: event -> seconds since the epoch when it was last answered.
    """

    agent: str
    scope: str
    http: bool
    state: str
    cause: str = ""
    remedy: str = ""
    calls: dict[str, float] = {}

    def to_json(self) -> dict[str, Any]:
        """Return all fields, times as RFC 3339."""
        from ..spec.events import rfc3339

        fields: dict[str, Any] = {name: getattr(self, name) for name in self._fields}
        fields["calls"] = {event: rfc3339(time) for event, time in sorted(self.calls.items())}
        return fields


def installations(root: str, environ: Mapping[str, str], http: Any = None) -> list[Found]:
    """Look at every installation that concerns a project.

    Parameters:
        root: the project's folder.
        environ: the environment, which may say where agents keep their files.
        http: agent -> where the resident process listens for it (``installing.Endpoint``), or None.
    """
    from os.path import realpath

    from ..agents.memory import last_calls, memory_folder
    from .installations import known

    calls = last_calls(memory_folder(), root)
    found = []
    for item in known():
        if item.project in ("", realpath(root)):
            state, cause, remedy = _state(item, root, environ, http)
            found.append(
                Found(
                    agent=item.agent,
                    scope="project" if item.project else "user",
                    http=item.http,
                    state=state,
                    cause=cause,
                    remedy=remedy,
                    calls=calls.get(item.agent, {}),
                )
            )
    return found


def _state(item: Installation, root: str, environ: Mapping[str, str], http: Any) -> tuple[str, str, str]:
    from os.path import exists

    from ..agents.installing import REFUSE_WITHOUT_US, CannotInstall, called_files
    from .installer import closed_events, plan

    words = (
        f"hookturn install {item.agent}"
        + (f" {item.folder}" if item.folder else "" if item.project else " --user")
        + (" --http" if item.http else "")
    )
    endpoint = http(item.agent) if item.http and http is not None else None
    about: dict[str, Any] = {"project": root, "user": not item.project, "environ": environ}
    about["folder"] = item.folder
    try:
        closed = closed_events(item.agent, root, environ)
        changes = plan(item.agent, http=endpoint, closed=closed, **about)
        if not changes:
            return "ok", "", ""
        ours = plan(item.agent, remove=True, **about)
        if not ours:
            return "gone", "its configuration no longer calls hookturn", f"Run `{words}` again."
    except CannotInstall as error:
        cause, _, remedy = str(error).partition(". ")
        return "broken", cause, remedy or "Correct it."
    texts = [(change.old or b"").decode("utf-8", "replace") for change in ours]
    lost = [path for text in texts for path in called_files(text) if not exists(path)]
    if lost:
        then = "refuses every call" if item.agent in REFUSE_WITHOUT_US else "goes on without your hooks"
        return (
            "broken",
            f"it calls {lost[0]}, which is not there, so {item.agent} {then}",
            f"Run `{words}` again.",
        )
    labels = ", ".join(change.label for change in changes)
    return "changed", f"{labels} is not as this version would write it", f"Run `{words}` again."


class Guard(Record):
    """One guard, and whether it has been reached.

    Parameters:
        name, timing, source: which.
        last: seconds since the epoch when an agent's event last reached its timing, or None for never.
    """

    name: str
    timing: str
    source: str
    last: Any = None

    def to_json(self) -> dict[str, Any]:
        """Return all fields, the time as RFC 3339."""
        from ..spec.events import rfc3339

        last = None if self.last is None else rfc3339(self.last)
        return {"name": self.name, "timing": self.timing, "source": self.source, "last": last}


def guards(assembled: Assembled, found: Iterable[Found]) -> list[Guard]:
    """Return every guard with the time of the last event that reached its timing, through any installed agent."""
    from ..agents.bridge import hooks_of
    from .doubts import steps

    reached: dict[str, float] = {}
    for item in found:
        rows = hooks_of(item.agent).EVENTS
        for event, time in item.calls.items():
            for timing in rows[event].timings if event in rows else ():
                reached[timing] = max(time, reached.get(timing, 0.0))
    return [
        Guard(step.name, timing, step.source, reached.get(timing))
        for timing, step in steps(assembled)
        if step.guard
    ]


def trouble(root: str) -> list[dict[str, Any]]:
    """Return the last calls in a project that could not be answered properly, oldest first."""
    import json
    from os.path import join, realpath

    from ..agents.memory import TROUBLE, memory_folder
    from ..runners.module import read

    try:
        lines = read(join(memory_folder(), TROUBLE), 10_000_000).splitlines()
    except (OSError, ValueError):
        return []
    rows = []
    for line in lines:
        try:
            row = json.loads(line)
            where = row.get("project") if isinstance(row, dict) else None
            if isinstance(where, str) and _below(realpath(where), realpath(root)):
                rows.append(row)
        except (ValueError, RecursionError):  # cut off by a kill, or damaged
            continue
    return rows[-MOST_TROUBLE:]


def _below(path: str, root: str) -> bool:
    return path == root or path.startswith(root.rstrip("/") + "/")
