"""What can be found out about a project that is at work: do agents really call, is every guard reached, does
every hook answer. Changes nothing.
"""

from __future__ import annotations

from ..spec.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .assemble import Assembled
    from .installations import Installation

MOST_TROUBLE = 20
"""Lines of trouble that are shown."""


class Found(Record):
    """One installation, looked at.

    Parameters:
        agent, scope, http: as it was installed; scope is user or project.
        state: ok, changed (our entries are not as `hookturn install` would write them), twice (the user's entries
            run, too), gone, or broken.
        cause: what is wrong, or "".
        remedy: what to do about it, or "".
        calls: event -> seconds since the epoch when it was last answered.
        answered_by: which hookturn answered the last call: the folder of its Python environment, or "".
        elsewhere: whether that is another one than this, with plugins of its own.
    """

    agent: str
    scope: str
    http: bool
    state: str
    cause: str = ""
    remedy: str = ""
    calls: dict[str, float] = {}
    answered_by: str = ""
    elsewhere: bool = False

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

    from ..agents.installing import RUN_TWICE
    from ..agents.memory import answering, installation, last_calls, memory_folder
    from .installations import known

    items = [item for item in known() if item.project in ("", realpath(root))]
    users = {item.agent for item in items if not item.project}
    calls = last_calls(memory_folder(), root)
    answers, ours = answering(memory_folder(), root), installation()
    found = []
    for item in items:
        state, cause, remedy = _state(item, root, environ, http)
        if state == "ok" and item.project and item.agent in users and item.agent in RUN_TWICE:
            state, cause = "twice", f"{item.agent} runs the user's entries, too: hooks hear everything twice"
            remedy = f"Run `hookturn uninstall {item.agent}` here or with --user."
        found.append(
            Found(
                agent=item.agent,
                scope="project" if item.project else "user",
                http=item.http,
                state=state,
                cause=cause,
                remedy=remedy,
                calls=calls.get(item.agent, {}),
                answered_by=answers.get(item.agent, ""),
                elsewhere=answers.get(item.agent, ours) != ours,
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
    cause = f"{labels} is not as this version would write it"
    news = [(change.new or b"").decode("utf-8", "replace") for change in changes]
    own = {path for text in news for path in called_files(text)}
    others = [path for text in texts for path in called_files(text) if path not in own]
    if others and own:
        cause += f": it calls {others[0]}, another installation than this one, with plugins of its own"
    return "changed", cause, f"Run `{words}` again."


class Guard(Record):
    """One guard, and whether it has been reached.

    Parameters:
        name, timing, source: which.
        last: seconds since the epoch when an agent's event last reached its timing, or None for never.
        answered_by: which hookturn answered then, where it was another one than this: it has plugins of its own.
    """

    name: str
    timing: str
    source: str
    last: Any = None
    answered_by: str = ""

    def to_json(self) -> dict[str, Any]:
        """Return all fields, the time as RFC 3339."""
        from ..spec.events import rfc3339

        last = None if self.last is None else rfc3339(self.last)
        return {
            "name": self.name,
            "timing": self.timing,
            "source": self.source,
            "last": last,
            "answered_by": self.answered_by,
        }


def guards(assembled: Assembled) -> list[Guard]:
    """Return every guard with the time of the last event that reached its timing, through any agent that calls or did."""
    from ..agents.bridge import AGENTS, hooks_of
    from ..agents.memory import answering, installation, last_calls, memory_folder
    from .doubts import steps

    answers, ours = answering(memory_folder(), assembled.root), installation()
    reached: dict[str, tuple[float, str]] = {}
    for agent, calls in last_calls(memory_folder(), assembled.root).items():
        rows = hooks_of(agent).EVENTS if agent in AGENTS else {}
        who = answers.get(agent, "")
        for event, time in calls.items():
            for timing in rows[event].timings if event in rows else ():
                reached[timing] = max((time, "" if who == ours else who), reached.get(timing, (0.0, "")))
    return [
        Guard(step.name, timing, step.source, *reached.get(timing, (None, "")))
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
