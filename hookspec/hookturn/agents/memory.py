"""What bridges remember by project, beside sessions: what fails closed (for calls in which no engine can be made),
when each event was last answered, and which calls could not be answered properly.
"""

from __future__ import annotations

import os
from os.path import join
from time import monotonic

from ..paths import (
    open_private,
    private_folder,
    project_hash,
    safe_component,
    state_folder,
    write_all,
    write_private,
)
from ..quick import dumps, loads
from ..spec.timings import TIMINGS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from os import PathLike

    from ..engine.engine import Engine
    from ..engine.plan import Step
    from .bridge import Place

TROUBLE = "trouble.jsonl"
"""File in the memory folder: one line for each call that could not be answered properly."""

MOST_TROUBLE = 256 * 1024
"""Bytes of that file, after which it is put aside as ``trouble.old``."""

DECIDING = (
    "on_message_received",
    "on_user_prompt_submit",
    "on_tool_call_start",
    "pre_tool_execution",
    "on_permission_request",
)
"""Timings that count when not even the event is known."""


LASTING = 1.0
"""Seconds in which a call of the same event of an engine that stays is not noted again."""

_MOST_NOTED = 256


RULED = ("on_tool_call_start", "pre_tool_execution")
"""Timings at which permission rules count."""


def memory_folder() -> str:
    """Return the folder in which bridges remember (not made yet).

    Raises:
        RuntimeError: when neither the environment nor the system knows a home.
    """
    return join(state_folder(), "bridges")


def one_line(text: str) -> str:
    """Return a text as one line of at most 2,000 characters."""
    return " ".join(text[:2000].split())


def strict(engine: Engine, timings: Iterable[str], names: Iterable[str] | None = None) -> str:
    """Return the name of the first hook of some timings that fails closed, or "". Self-protection does not count.

    A deny rule stands above every guard, so it fails closed as guards do.

    Parameters:
        engine: the engine.
        timings: where to look.
        names: only among these hooks.
    """
    timings = tuple(timings)
    among = None if names is None else set(names)
    for timing in timings:
        plan = engine.plan(timing)
        for step in plan.steps if plan is not None else ():
            if not step.fails_closed or step.monitor or _own(step):
                continue
            if among is None or step.name in among:
                name: str = step.name
                return name
    rules = engine.permissions.deny if engine.permissions is not None else ()
    if rules and among is None and any(timing in RULED for timing in timings):
        return f"the rule that denies {rules[0].text}"
    return ""


def _own(step: Step) -> bool:
    """Whether hookturn itself put it there: what nobody asked for makes no project fail closed."""
    return step.owner.layer == "builtin" and step.owner.source == "hookturn"


def _file(memory: str | PathLike[str], folder: str, ending: str = ".json") -> str:
    return join(memory, project_hash(folder) + ending)


def remember(memory: str | PathLike[str], place: Place, event: str, engine: Engine) -> bool:
    """Note what fails closed in a folder, and that an event was really called in its project (``last_calls``).

    Returns:
        whether that is the first call of this event in the project.
    """
    noted = engine.noted
    key = (os.fspath(memory), place.agent, place.project or place.cwd, event)
    now = monotonic()
    if now - noted.get(key, -LASTING) < LASTING:
        return False
    if len(noted) >= _MOST_NOTED:
        noted.clear()
    noted[key] = now
    closed = {timing: who for timing in TIMINGS if (who := strict(engine, (timing,)))}
    folder = place.project or place.cwd
    path = _file(memory, folder)
    # Who asks for calls asks by the project's root; agents are started in sub folders, too.
    calls = join(_file(memory, engine.project_dir or folder, ""), place.agent)
    mark = join(calls, safe_component(event))
    before = _content(mark)
    first = before is None
    try:
        content = dumps(closed).encode()
        if _content(path) != content:
            private_folder(memory)
            write_private(path, content)
        answers = installation().encode("utf-8", "surrogateescape")
        if before == answers:
            os.utime(mark)
        else:
            private_folder(calls, base=memory)
            write_private(mark, answers)
    except OSError:  # the answer matters more
        return first
    return first


def remembered(memory: str | PathLike[str], place: Place, timings: Iterable[str]) -> str:
    """Return who failed closed at some timings when the project's engine was last made, or "".

    Where that is known, and cannot be read, something may have.
    """
    path = _file(memory, place.project or place.cwd)
    content = _content(path)
    if content is None and os.path.exists(path):
        return "what cannot be read now"
    try:
        closed = loads(content or b"{}")
    except ValueError:
        return ""
    return _first(closed, timings) if isinstance(closed, dict) else ""


def _first(closed: Mapping[str, str], timings: Iterable[str]) -> str:
    return next((str(closed[timing]) for timing in timings if timing in closed), "")


_making: dict[tuple[str, str, str], Callable[[], Mapping[str, str]]] = {}


def begin_making(place: Place, closing: Callable[[], Mapping[str, str]]) -> None:
    """Note that an engine is being made, while hooks are loaded: one of them may hang.

    Parameters:
        place: for whom.
        closing: returns timing -> what will fail closed there; called only when somebody asks.
    """
    _making[place.agent, place.project, place.cwd] = closing


def end_making(place: Place) -> None:
    """Note that it is made, or cannot be."""
    _making.pop((place.agent, place.project, place.cwd), None)


def being_made(place: Place, timings: Iterable[str]) -> str:
    """Return what fails closed at some timings in an engine that is just being made, or ""."""
    closing = _making.get((place.agent, place.project, place.cwd))
    return _first(closing(), timings) if closing is not None else ""


def foretell(memory: str | PathLike[str], place: Place, closed: Mapping[str, str]) -> None:
    """Note what will fail closed in an engine that is going to be made, beside what did in the one before.

    Parameters:
        memory: the folder given to ``answer``.
        place: for whom.
        closed: timing -> what fails closed there.
    """
    path = _file(memory, place.project or place.cwd)
    try:
        known = loads(_content(path) or b"{}")
        if closed and not (isinstance(known, dict) and closed.items() <= known.items()):
            private_folder(memory)
            write_private(path, dumps({**(known if isinstance(known, dict) else {}), **closed}).encode())
    except (OSError, ValueError):  # as in ``remember``; a damaged file is written anew there
        return


def last_calls(memory: str | PathLike[str], project: str) -> dict[str, dict[str, float]]:
    """Return when each event of each agent was last answered in a project: agent -> event -> seconds since the epoch.

    Parameters:
        memory: the folder given to ``answer``.
        project: the project's folder.
    """
    from pathlib import Path
    from stat import S_ISREG

    folder = Path(_file(memory, project, ""))
    found: dict[str, dict[str, float]] = {}
    if folder.is_dir():
        for mark in folder.glob("*/*"):
            about = mark.lstat()
            if S_ISREG(about.st_mode):
                found.setdefault(mark.parent.name, {})[mark.name] = about.st_mtime
    return found


def installation() -> str:
    """Return which hookturn this is: the folder of its Python environment, and that of its package where it lies
    elsewhere. Each environment has plugins of its own."""
    import sys
    from os.path import abspath, dirname

    package = dirname(dirname(abspath(__file__)))
    prefix = abspath(sys.prefix)
    return prefix if package.startswith(prefix.rstrip("/") + "/") else f"{prefix} ({package})"


def answering(memory: str | PathLike[str], project: str) -> dict[str, str]:
    """Return which hookturn answered the last call of each agent in a project: agent -> ``installation()`` of it."""
    folder = _file(memory, project, "")
    found: dict[str, str] = {}
    for agent, calls in last_calls(memory, project).items():
        last = max(calls, key=lambda event: calls[event])
        who = (_content(join(folder, agent, last)) or b"").decode("utf-8", "surrogateescape")
        if who:
            found[agent] = who
    return found


def forgive(memory: str | PathLike[str], agent: str, project: str) -> None:
    """Forget the trouble of an agent's calls: it does not call us any more.

    Parameters:
        memory: the folder given to ``answer``.
        agent: the agent.
        project: the project's folder, with all below it; "" for every project.
    """
    from os.path import exists, realpath

    path = join(memory, TROUBLE)
    root = realpath(project).rstrip("/") + "/" if project else ""
    kept = []
    for line in (_content(path) or b"").splitlines(keepends=True):
        try:
            row = loads(line)
            ours = row["agent"] == agent and (realpath(row["project"]) + "/").startswith(root)
        except (ValueError, TypeError, KeyError, RecursionError):  # cut off by a kill, or damaged
            continue
        if not ours:
            kept.append(line)
    try:
        if exists(path):
            write_private(path, b"".join(kept))
    except OSError:  # it would only be told once more
        return


def complain(memory: str | PathLike[str], place: Place, event: str, cause: str) -> None:
    """Keep a note of a call that could not be answered properly, for ``hookturn doctor``."""
    from time import time

    row = {
        "time": time(),
        "agent": place.agent,
        "event": event,
        "project": place.project or place.cwd,
        "cause": one_line(cause),
    }
    path = join(memory, TROUBLE)
    try:
        private_folder(memory)
        if os.path.exists(path) and os.stat(path).st_size > MOST_TROUBLE:
            os.replace(path, join(memory, "trouble.old"))
        fd = open_private(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
        try:
            write_all(fd, dumps(row).encode() + b"\n")
        finally:
            os.close(fd)
    except OSError:  # the answer matters more
        return


def _content(path: str) -> bytes | None:
    try:
        with open(open_private(path), "rb") as file:
            return file.read()
    except OSError:
        return None
