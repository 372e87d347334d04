"""Calls of agents, however they arrive: each goes to the bridge with its own environment, folder and engine."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from threading import Lock
from time import monotonic

from ..agents.bridge import AGENTS, MARGIN, hooks_of
from ..agents.memory import memory_folder
from ..platform import starter
from ..spec.record import freeze
from .engines import Lease

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from .engines import Engines
    from .wire import Request

SECONDS = 55.0
"""The agent's time where nobody tells it."""

MOST_SESSIONS = 256
"""Sessions whose environment is remembered."""

_LONGEST_LOOK = 65_536
"""Bytes of a payload in which a session's id is looked for."""


class Options:
    """What a command line says of a call: ``bridge AGENT [--event NAME] [--timeout SECONDS] [--project DIR]``.

    Attributes:
        agent, event, project: "" when they are missing.
        timeout: seconds of the agent's limit, or None.
        known: whether all words were understood; ``hookturn bridge`` tells what is wrong with others.
    """

    def __init__(self, words: list[str]) -> None:
        self.agent = self.event = self.project = ""
        self.timeout: float | None = None
        self.known = words[:1] == ["bridge"]
        rest = iter(words[1:])
        for word in rest:
            name, equals, value = word.partition("=")
            if name in ("--event", "--timeout", "--project"):
                value = value if equals else next(rest, "")
                if name == "--event":
                    self.event = value
                elif name == "--project":
                    self.project = value
                else:
                    self.timeout = seconds(value)
                    self.known = self.known and self.timeout is not None
            elif not word.startswith("-") and not self.agent:
                self.agent = word
            else:
                self.known = False
        self.known = self.known and self.agent in AGENTS


def seconds(text: str) -> float | None:
    """Return a number of seconds, or None for what is none."""
    try:
        value = float(text)
    except ValueError:
        return None
    return value if 0 < value < 1e6 else None


class Late:
    """A call whose caller does not watch the time: whoever claims it first answers it."""

    __slots__ = ("_claims", "answer", "end")

    def __init__(self, end: float, answer: Callable[[], None]) -> None:
        self.end = end
        self.answer = answer
        self._claims = [None]

    def claim(self) -> bool:
        """Return True for the first who asks."""
        try:
            self._claims.pop()
        except IndexError:
            return False
        return True


class Calls:
    """Runs calls, counts them, and watches the time of those that nobody else watches.

    Parameters:
        engines: keeps the engines.
        bridge: what ``agents.bridge`` is.
    """

    def __init__(self, engines: Engines, bridge: Any = None) -> None:
        if bridge is None:
            from ..agents import bridge
        self._bridge = bridge
        self._engines = engines
        self._memory = memory_folder()
        self._lock = Lock()
        self._sessions: OrderedDict[str, Mapping[str, str]] = OrderedDict()
        self._own: Mapping[str, str] = freeze(dict(os.environ))
        self._late: set[Late] = set()
        self.running = 0
        self.total = 0
        self.last = monotonic()

    # -- one call -----------------------------------------------------------------------------------

    def command(self, request: Request) -> tuple[int, bytes, bytes]:
        """Answer a thin client: exit code, standard output, standard error."""
        options = Options(request.words)
        payload = hooks_of(options.agent).given(request.environ)
        if payload is None:
            payload = request.payload
        session = _session_of(payload)
        if session:
            self._remember(session, request.environ)
        answer = self.run(
            options.agent,
            payload,
            environ=request.environ,
            cwd=os.path.join(request.cwd or os.sep, options.project),
            event=options.event,
            timeout=options.timeout,
            caller_pid=starter(request.parent),
        )
        return answer.exit_code, answer.stdout, answer.stderr.encode("utf-8", "backslashreplace")

    def run(self, agent: str, payload: bytes, **about: Any) -> Any:
        """Let the bridge answer; see ``agents.bridge.answer`` for the parameters."""
        lease = Lease(self._engines)
        try:
            return self._bridge.answer(
                agent, payload, engine_for=lease.engine_for, memory=self._memory, watch=False, **about
            )
        finally:
            lease.release()

    def __enter__(self) -> None:
        """Begin a call: the process does not end before its answer is sent."""
        with self._lock:
            self.running += 1
            self.total += 1

    def __exit__(self, *exception: object) -> None:
        with self._lock:
            self.running -= 1
            self.last = monotonic()

    # -- HTTP: no environment, and nobody who watches the time ----------------------------------------

    def environment(self, payload: bytes) -> tuple[Mapping[str, str], str]:
        """Return the environment and the folder of a payload's session.

        An HTTP request has none; the session's start came as a command, which had one.
        """
        data = _top(payload)
        session = data.get("session_id") or data.get("sessionId")
        cwd = data.get("cwd")
        with self._lock:
            known = self._sessions.get(session) if isinstance(session, str) else None
        return (
            known if known is not None else self._own,
            cwd if isinstance(cwd, str) and cwd[:1] == os.sep and "\0" not in cwd else os.sep,
        )

    def late(self, agent: str, payload: bytes, **about: Any) -> Any:
        """Return the answer by policy for a call whose time is over."""
        return self._bridge.late(agent, payload, memory=self._memory, **about)

    def in_time(self, timeout: float | None, answer: Callable[[], None]) -> Late:
        """Have a call watched: ``answer`` is called when its time is over and nobody has claimed it."""
        limit = SECONDS if timeout is None else max(timeout - MARGIN, timeout / 2)
        late = Late(monotonic() + limit, answer)
        self._late.add(late)
        return late

    def done(self, late: Late) -> bool:
        """End the watch. True when the call is still to be answered."""
        self._late.discard(late)
        return late.claim()

    def look(self) -> None:
        """Answer the calls whose time is over; to be called again and again while calls run."""
        if not self._late:
            return
        now = monotonic()
        for late in list(self._late):
            if late.end <= now and self.done(late):
                late.answer()

    def _remember(self, session: str, environ: Mapping[str, str]) -> None:
        with self._lock:
            self._sessions[session] = environ
            self._sessions.move_to_end(session)
            while len(self._sessions) > MOST_SESSIONS:
                self._sessions.popitem(last=False)


def _top(payload: bytes) -> dict[str, Any]:
    """Return a payload's outermost fields; nothing for what is no object."""
    try:
        data = json.loads(payload)
    except (ValueError, RecursionError):
        return {}
    return data if isinstance(data, dict) else {}


def _session_of(payload: bytes) -> str:
    if len(payload) > _LONGEST_LOOK:
        return ""
    data = _top(payload)
    session = data.get("session_id") or data.get("sessionId")
    return session if isinstance(session, str) else ""
