"""The machine of ``hookturn bridge``: an agent's payload in, that agent's own answer out.

It knows no agent: each ``agents/<name>/hooks.py`` translates its payloads to Moments and what hooks said to
its answers. It touches no process (standard streams, environment, exit codes are the caller's), so that the
command and the resident process both run it, the latter for many callers at once.
"""

from __future__ import annotations

import os
from functools import lru_cache
from time import monotonic

from ..engine.rides import Ride
from ..quick import decode as read_json
from ..quick import import_module
from ..spec.errors import HookturnError, did_you_mean, json_kind
from ..spec.record import Record, freeze, safe_text
from .driving import Course
from .fitting import fit
from .memory import DECIDING, being_made, complain, one_line, remember, remembered, strict

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from os import PathLike
    from typing import Any, Protocol

    from ..engine.engine import Engine
    from ..spec.tools import Tool
    from .moments import Moment, Row, Said

    Environment = Mapping[str, str] | Callable[[Mapping[str, Any]], Mapping[str, str]]

    class AgentHooks(Protocol):
        """What every ``agents/<name>/hooks.py`` provides. A module: it translates, it decides nothing."""

        NAME: str
        """The agent's name, as in ``hookturn bridge NAME``."""
        PROJECT_VARIABLE: str
        """The environment variable in which the agent names the project, or ""."""
        PID_VARIABLE: str
        """The environment variable that holds the agent's process number, or ""."""
        NOTHING: bytes
        """What standard output holds when there is nothing to say: b"", or an empty answer."""
        TOOLS: Mapping[str, Tool]
        """The agent's tools."""
        EVENTS: Mapping[str, Row]
        """The table: the agent's event -> our row."""
        UNKNOWN: Row
        """The row of events that the table does not have: on_event, nothing can be said."""

        def given(self, environ: Mapping[str, str]) -> bytes | None:
            """Return the payload where the agent gives it by environment; None: it is on standard input."""
            ...

        def caller(self, payload: Mapping[str, Any], environ: Mapping[str, str]) -> str:
            """Return the name of the agent that really called: ``NAME``, or another that runs our entry, too."""
            ...

        def has_entry(self, event: str, project: str, environ: Mapping[str, str]) -> bool:
            """Tell whether this agent's own configuration calls hookturn for an event already (asked when it
            calls a foreign entry)."""
            ...

        def event_name(self, payload: Mapping[str, Any], entry: str = "") -> str:
            """Return the event's name, or "" when nothing tells it: what the payload says, else ``entry``, which the
            agent's configuration says, else what can be guessed."""
            ...

        def read(self, row: Row, payload: Mapping[str, Any], environ: Mapping[str, str]) -> Moment:
            """Translate a payload.

            Raises:
                Malformed: when a field that the event cannot do without has a wrong type.
            """
            ...

        def write(self, row: Row, moment: Moment, said: Said, environ: Mapping[str, str]) -> BridgeAnswer:
            """Translate what hooks said, fitted to ``row.can``. An empty ``stdout`` when there is nothing to say."""
            ...

        def refusal(self, row: Row | None, reason: str) -> BridgeAnswer:
            """Return a refusal where nothing else is known; ``row`` is None when not even the event is."""
            ...


AGENTS = {
    "claude-code": "claude_code",
    "codex": "codex",
    "gemini": "gemini",
    "qwen": "qwen",
    "copilot": "copilot",
    "opencode": "opencode",
    "atomcode": "atomcode",
    "rolebox": "rolebox",
}
"""Agents by name: folder of each (``hooks`` in it is the translator)."""

MARGIN = 0.5
"""Seconds that are kept of the agent's time limit for starting and ending the process."""

SPARE = 0.05
"""Part of the time that hooks do not get: what is left for writing the answer."""

MOST_SECONDS = 86_400.0
"""Seconds of a time limit that count: the system's clocks take no number whatever."""

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


def _likely(agent: str) -> str:
    """Return which agent was meant: some call their packages and programs qwen-code, gemini-cli."""
    first = agent.lower().partition("-")[0]
    return did_you_mean(first if first in AGENTS else agent, AGENTS)


@lru_cache
def hooks_of(agent: str) -> AgentHooks:
    """Return an agent's translator.

    Raises:
        UnknownAgent: when there is none.
    """
    folder = AGENTS.get(agent)
    if folder is None:
        raise UnknownAgent(f"unknown agent {agent!r}{_likely(agent)}. One of {', '.join(AGENTS)}.")
    name = f"{__package__}.{folder}.hooks"
    try:
        found: AgentHooks = import_module(name)
    except ModuleNotFoundError as error:
        if error.name != name:
            raise
        raise UnknownAgent(f"there is no bridge for {agent} yet") from None
    return found


def answer(
    agent: str,
    payload: bytes,
    *,
    environ: Mapping[str, str],
    cwd: str,
    engine_for: Callable[[Place], Engine],
    event: str = "",
    timeout: float | None = None,
    spent: float = 0.0,
    memory: str | PathLike[str] | None = None,
    caller_pid: int = 0,
) -> BridgeAnswer:
    """Answer one call of an agent. Never raises but for KeyboardInterrupt, never takes longer than it may.

    Parameters:
        agent: the agent, a name of ``AGENTS``.
        payload: what the agent gave on standard input (or as HTTP body), as it came; agents that give it in the
            environment do not need it.
        environ: the environment of the agent's hook process.
        cwd: its working folder.
        engine_for: makes (or finds) the engine of the place; called at most once, maybe on another thread.
            Whatever it raises is answered by policy.
        event: the agent's event name, for agents whose payload does not say it.
        timeout: seconds of the agent's limit, as the installed command or the caller names it; None takes
            the event's own default. The answer comes ``MARGIN`` before it.
        spent: seconds of that limit which are over already.
        memory: folder in which the bridge remembers, by project, what fails closed, for calls in which no
            engine can be made; None remembers nothing.
        caller_pid: the agent's process, to tell later whether it still lives; 0 when unknown.

    Returns:
        the agent's answer. When something goes wrong: a refusal in the agent's form if the event decides
        something and a hook there fails closed (a guard, ``on_failure: deny``, a required plugin), else an
        answer without opinion; the cause is in ``stderr`` either way.
    """
    from ..engine.waiting import run_on_thread

    call = _Call(agent, payload, environ, cwd, event, memory)
    if call.hooks is None or call.answer is not None:
        return call.closing()
    limit, seconds = call.time(timeout, spent)
    until = monotonic() + seconds * (1 - SPARE)
    try:
        answered: BridgeAnswer = run_on_thread(lambda: call.run(engine_for, until, caller_pid), seconds)
    except TimeoutError:
        return call.late(limit)
    return answered


def answer_here(
    agent: str,
    payload: bytes,
    *,
    elsewhere: Callable[[BridgeAnswer], None],
    environ: Environment,
    cwd: str,
    engine_for: Callable[[Place], Engine],
    event: str = "",
    timeout: float | None = None,
    memory: str | PathLike[str] | None = None,
    caller_pid: int = 0,
) -> BridgeAnswer | None:
    """Answer one call on this thread, which is left behind with a hook that takes longer than it may.

    The caller watches the agent's time, and answers with ``late`` when it is over.

    Parameters:
        elsewhere: gets the answer, on another thread, when this one was left behind.
        environ: the environment of the agent's hook process, frozen; or, where there is none, a function that
            finds the session's by what the payload says.
        agent, payload, cwd, engine_for, event, timeout, memory, caller_pid: as for ``answer``.

    Returns:
        as ``answer``; None on a thread that was left behind, which must not touch anything of the call any more.
    """
    call = _Call(agent, payload, environ, cwd, event, memory)
    if call.hooks is None or call.answer is not None:
        return call.closing()
    _, seconds = call.time(timeout, 0.0)
    return call.run_here(engine_for, monotonic() + seconds * (1 - SPARE), caller_pid, elsewhere)


def late(
    agent: str,
    payload: bytes,
    *,
    environ: Environment,
    cwd: str,
    event: str = "",
    memory: str | PathLike[str] | None = None,
    cause: str = "there was no answer in time",
) -> BridgeAnswer:
    """Return the answer by policy for a call that nobody can answer any more.

    Parameters:
        agent, payload, environ, cwd, event, memory: as for ``answer_here``.
        cause: what went wrong.
    """
    call = _Call(agent, payload, environ, cwd, event, memory)
    if call.hooks is None or call.answer is not None:
        return call.closing()
    return call.by_policy(call.unreadable or cause)


class _Call:
    """One call: what is known of it so far, so that whatever goes wrong can be answered.

    Attributes:
        hooks: the translator, or None for an unknown agent.
        answer: the answer, where it is clear from the start.
        unreadable: why the payload, or what is known of the session, cannot be read; or "".
        row: the event's row.
        said: diagnostics.
    """

    def __init__(
        self,
        agent: str,
        payload: bytes,
        environ: Environment,
        cwd: str,
        event: str,
        memory: str | PathLike[str] | None,
    ) -> None:
        self.agent = agent
        self.memory = memory
        self.notes: list[str] = []
        self.hooks: AgentHooks | None = None
        self.answer: BridgeAnswer | None = None
        self.unreadable = ""
        self.payload: dict[str, Any] | None = None
        self.engine: Engine | None = None
        self.known = False  # whether the event's name is known
        self._asked: tuple[Any, int, Callable[[Place], Engine], float, int] | None = None
        self._repeated = False
        try:
            self.hooks = hooks_of(agent)
        except UnknownAgent as error:
            self.notes.append(str(error))
            return
        self.row = self.hooks.UNKNOWN
        self._cwd = cwd
        if callable(environ):
            self._find: Callable[[Mapping[str, Any]], Mapping[str, str]] = environ
        else:
            known = freeze(environ)  # once: each record that holds it would
            self._find = lambda _: known
            given = self.hooks.given(known)
            payload = payload if given is None else given
        try:
            self._read(payload, event)
        except (Exception, RecursionError) as error:
            self.unreadable = f"the payload cannot be read: {_cause(error)}"

    def _read(self, payload: bytes, event: str) -> None:
        hooks = self.hooks
        assert hooks is not None
        try:
            data = decode(payload, self.notes)
        except BaseException:
            self.environ = self._find({})
            self.place = self._place(hooks, {})
            name = event or _guess(payload)
            if name:
                self._of(name)
            raise
        self.environ = self._find(data)
        self.place = self._place(hooks, data)
        self.payload = data
        actual = hooks.caller(data, self.environ)
        if actual != self.agent:
            self.place = self._place(hooks, {})  # its own entry is looked for where it started us
            if self._foreign(actual, data, event):
                return
            hooks = self.hooks
            assert hooks is not None
            self.place = self._place(hooks, data)
        name = hooks.event_name(data, event)
        if not name:
            raise Malformed("it does not say which event it is")
        self._of(name)
        self.payload = freeze(data)  # once; fails for what is nested too deep for events

    def _of(self, name: str) -> None:
        assert self.hooks is not None
        row = self.hooks.EVENTS.get(name)
        self.known = True
        if row is None:
            kind = "".join(f"_{c.lower()}" if c.isupper() else c for c in name[:100]).strip("_")
            row = self.hooks.UNKNOWN.replaced(event=name, type=f"{self.agent}.{kind}")
        self.row = row

    def _foreign(self, actual: str, data: Mapping[str, Any], event: str) -> bool:
        """Another agent runs our entry: whether it has one of its own for the event, which is then to answer."""
        try:
            other = hooks_of(actual)
        except UnknownAgent:  # it speaks the language of whose entries it reads
            return False
        name = other.event_name(data, event)
        if name and other.has_entry(name, self.place.project or self.place.cwd, self.environ):
            self.notes.append(
                f"{actual} calls this entry of {self.agent} and has one of its own for {name[:100]}: "
                "nothing to do here"
            )
            self.answer = BridgeAnswer(stdout=other.NOTHING, stderr=self._stderr())
            self.hooks = other
            return True
        self.hooks, self.agent = other, actual
        return False

    def _place(self, hooks: AgentHooks, data: Mapping[str, Any]) -> Place:
        cwd = data.get("cwd")
        variable = self.environ.get(hooks.PROJECT_VARIABLE, "") if hooks.PROJECT_VARIABLE else ""
        return Place._make(
            {
                "agent": self.agent,
                "project": variable if variable and _is_folder(variable) else "",
                "cwd": cwd if isinstance(cwd, str) and _is_folder(cwd) else os.path.abspath(self._cwd),
                "environ": self.environ,
            }
        )

    def time(self, timeout: float | None, spent: float) -> tuple[float, float]:
        """Return the agent's limit, and what is left of it for the answer, in seconds."""
        limit = min(timeout if timeout is not None and timeout > 0 else self.row.seconds, MOST_SECONDS)
        return limit, max(max(limit - MARGIN, limit / 2) - spent, 0.0)

    def run(self, engine_for: Callable[[Place], Engine], until: float, pid: int) -> BridgeAnswer:
        """Fire the event and translate what hooks say; whatever goes wrong is answered by policy."""
        with _Alone():
            try:
                course = self._course(engine_for, until, pid)
                if course is None:
                    return self.by_policy(self.unreadable)
                return self._written(course, course.engine.drive(course.steps()))
            except BaseException as error:  # a hook may raise anything, on a thread where no Ctrl-C arrives
                return self._failed(error)

    def run_here(
        self,
        engine_for: Callable[[Place], Engine],
        until: float,
        pid: int,
        elsewhere: Callable[[BridgeAnswer], None],
    ) -> BridgeAnswer | None:
        """As ``run``, on a thread that may be left behind (see ``Ride.go``)."""
        with _Alone():
            try:
                course = self._course(engine_for, until, pid)
                if course is None:
                    return self.by_policy(self.unreadable)
                ride = Ride(course.engine, course.steps())
                end = ride.go(lambda end: elsewhere(self._ended(course, end)))
            except BaseException as error:  # as above
                return self._failed(error)
            return None if end is None else self._ended(course, end)

    def _failed(self, error: BaseException) -> BridgeAnswer:
        from threading import current_thread, main_thread

        if isinstance(error, KeyboardInterrupt) and current_thread() is main_thread():
            raise error
        if self._asked is not None:
            values, drops, engine_for, until, pid = self._asked
            self._asked, self._repeated = None, True
            if values.drops != drops:  # a parallel call forgot what this one had begun: see ``Journal``
                return self.run(engine_for, until, pid)
        return self.by_policy(_cause(error))

    def _ended(self, course: Course, end: Callable[[], Said]) -> BridgeAnswer:
        try:
            return self._written(course, end())
        except BaseException as error:  # as above
            return self._failed(error)

    def _course(self, engine_for: Callable[[Place], Engine], until: float, pid: int) -> Course | None:
        """Return what is to be done; None for what is ``unreadable``."""
        hooks, payload = self.hooks, self.payload
        if self.unreadable:
            if self.row.decides or not self.known:
                self.engine = engine_for(self.place)  # what fails closed here
            return None
        assert hooks is not None and payload is not None
        engine = self.engine = engine_for(self.place)
        first = self.memory is None or remember(self.memory, self.place, self.row.event, engine)
        if first and self.row.event not in hooks.EVENTS:
            self.notes.append(self._strange(hooks))
        moment = hooks.read(self.row, payload, self.environ)
        if not moment.cwd:
            moment = moment.replaced(cwd=self.place.cwd)
        own = self.environ.get(hooks.PID_VARIABLE, "") if hooks.PID_VARIABLE else ""
        course = Course(
            engine,
            self.agent,
            hooks.TOOLS,
            self.row,
            moment,
            raw=payload,
            environ=self.environ,
            until=until,
            pid=int(own) if own.isascii() and own.isdigit() else pid,
            fitted=lambda said: fit(
                self.row,
                said,
                self.agent,
                lambda names: strict(engine, self.row.timings, names),
                lambda text: engine.inject(course.session.id, text),
            ),
        )
        values = course.session.values()
        if values.trouble:  # at an earlier call, or just now
            values.retry()
            if values.unread is not None and self._refuses_unread():
                self.unreadable = values.trouble
                return None
        self._asked = None if self._repeated else (values, values.drops, engine_for, until, pid)
        return course

    def _strange(self, hooks: AgentHooks) -> str:
        """Return what is said once of an event that is not known: of a newer agent, or misspelt in its configuration."""
        name = self.row.event[:100]
        return (
            f"the event {name!r} of {self.agent} is not known{did_you_mean(name, hooks.EVENTS)}: no hook can decide "
            f"it, and on_event hooks see it as {self.row.type!r}"
        )

    def _refuses_unread(self) -> bool:
        """Whether something here fails closed where what is known of the session cannot be read: it may be a refusal."""
        return self.row.decides and bool(self._closed())

    def _written(self, course: Course, said: Said) -> BridgeAnswer:
        assert self.hooks is not None
        values = course.session.values()
        if values.trouble:
            self._troubled(values, said)
            if self.unreadable:
                return self.by_policy(self.unreadable)
        written = self.hooks.write(self.row, course.moment, said, self.environ)
        self.notes += said.lost
        return self._finished(written)

    def _troubled(self, values: Any, said: Said) -> None:
        """Heed that the session's state could not be read or stored, perhaps since an earlier call."""
        trouble, unread = values.trouble, values.unread
        stored = values.retry()
        if unread is not None:
            if self._refuses_unread():
                self.unreadable = trouble
                return
            if said.decision == "allow":
                said.decision, said.reason = None, ""
        if not stored:
            self.notes.append(trouble)
            self._complain(trouble)

    def by_policy(self, cause: str) -> BridgeAnswer:
        """Return a refusal when something here fails closed, else an answer without opinion."""
        try:
            from ..redact import redact

            cause = redact(cause)
        except (ImportError, OSError):  # no more files can be opened, say
            cause = "something failed, and its text cannot be rid of secrets"
        self.notes.append(f"{cause} ({self.agent} {self.row.event[:100]})")
        hooks = self.hooks
        assert hooks is not None
        self._complain(cause)
        if not self.known or self.row.decides:
            who = self._closed()
            if who:
                reason = f"hookturn could not ask its hooks ({cause}), and {who} fails closed"
                return self._finished(hooks.refusal(self.row if self.known else None, reason))
        return self._finished(BridgeAnswer(stdout=hooks.NOTHING))

    def _complain(self, cause: str) -> None:
        if self.memory is not None:
            complain(self.memory, self.place, self.row.event, cause)

    def _closed(self) -> str:
        timings = self.row.timings if self.known else DECIDING
        if self.engine is not None:
            return strict(self.engine, timings)
        closing = being_made(self.place, timings)
        if closing:
            return closing
        return remembered(self.memory, self.place, timings) if self.memory is not None else ""

    def late(self, limit: float) -> BridgeAnswer:
        """Return the answer by policy when the time is over."""
        return self.by_policy(f"there was no answer within the {limit:g} s that {self.agent} waits")

    def closing(self) -> BridgeAnswer:
        """Return the answer that was clear from the start."""
        return self.answer if self.answer is not None else BridgeAnswer(stderr=self._stderr())

    def _finished(self, written: BridgeAnswer) -> BridgeAnswer:
        if not self.notes:
            return written
        return BridgeAnswer(
            stdout=written.stdout, stderr=written.stderr + self._stderr(), exit_code=written.exit_code
        )

    def _stderr(self) -> str:
        return "".join(f"hookturn: {one_line(note)}\n" for note in self.notes)


class _Alone:
    """Ends a process that a hook forked, and that came back: the answer is not its own."""

    def __enter__(self) -> None:
        self._pid = os.getpid()

    def __exit__(self, *exception: object) -> None:
        if os.getpid() != self._pid:
            os._exit(0)


# -- payloads ---------------------------------------------------------------------------------------


def decode(payload: bytes, notes: list[str]) -> dict[str, Any]:
    """Return the JSON object that an agent gave.

    One BOM, raw control characters in strings and bytes that are no UTF-8 (which become U+FFFD, as agents
    themselves read them) are tolerated and noted.

    Raises:
        Malformed: when it is no JSON object, or too large.
    """
    if len(payload) > MAX_BYTES:
        raise Malformed(f"it is larger than {MAX_BYTES:,} bytes")
    if payload.startswith(b"\xef\xbb\xbf"):
        payload = payload[3:]
    if not payload.strip():
        raise Malformed("it is empty")
    try:
        text = payload.decode()
    except UnicodeDecodeError as error:
        text = payload.decode("utf-8", "replace")
        notes.append(f"the payload is not UTF-8 (byte 0x{payload[error.start]:02x} at {error.start:,})")
    text = text.strip()
    try:
        data, end = read_json(text, strict=False)
    except ValueError as error:
        place: Any = getattr(error, "pos", None)  # None: a number has more digits than Python reads
        where = "" if place is None else f" at {place:,}"
        raise Malformed(f"it is not JSON: {getattr(error, 'msg', error)}{where}") from None
    if end < len(text):
        notes.append(f"the payload goes on after its JSON object ({len(text) - end:,} characters)")
    if not isinstance(data, dict):
        raise Malformed(f"it is no JSON object but {json_kind(data)}")
    return data


_TOKEN = rb'"([^"\\]*(?:\\.[^"\\]*)*)(?:(")(\s*:)?|\Z)|[][{}]'
_LOOKED_AT = 65_536


def _guess(payload: bytes) -> str:
    """Return the event name of a payload that may be cut off or broken: a field of its outermost object only, since a
    model writes what is in the others."""
    import re

    depth, key = 0, b""
    for token in re.finditer(_TOKEN, payload[:_LOOKED_AT], re.DOTALL):
        mark = token.group()[:1]
        if mark != b'"':
            depth += 1 if mark in b"[{" else -1
        elif depth != 1:
            continue
        elif token.group(3):
            key = token.group(1)
        elif key in (b"hook_event_name", b"hookEventName"):
            name = token.group(1)
            return name.decode() if token.group(2) and re.fullmatch(rb"[A-Za-z]{1,60}", name) else ""
    return ""


def _is_folder(path: str) -> bool:
    try:
        return os.path.isabs(path) and os.path.isdir(path)
    except ValueError:  # a NUL
        return False


def _cause(error: BaseException) -> str:
    text = safe_text(error)
    if isinstance(error, HookturnError):
        return text
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
