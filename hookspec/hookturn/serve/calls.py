"""Calls of agents, however they arrive: each goes to the bridge with its own environment, folder and engine."""

from __future__ import annotations

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

    Reply = tuple[int, bytes, bytes]

SECONDS = 55.0
"""The agent's time where nobody tells it."""

MOST_SESSIONS = 256
"""Sessions whose environment is remembered."""


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


class _Once:
    """Something that one of several threads does, whoever comes first."""

    __slots__ = ("_claims",)

    def __init__(self) -> None:
        self._claims = [None]

    def claim(self) -> bool:
        """Return True for the first who asks."""
        try:
            self._claims.pop()
        except IndexError:
            return False
        return True


class Late(_Once):
    """A call whose caller does not watch the time: whoever claims it first answers it."""

    __slots__ = ("answer", "end")

    def __init__(self, end: float, answer: Callable[[], None]) -> None:
        super().__init__()
        self.end = end
        self.answer = answer


class Ticket(_Once):
    """A call under way; it ends once, whoever ends it.

    Attributes:
        handed_on: whether another thread ends it, and not the one whose ``with`` it is.
    """

    __slots__ = ("_end", "handed_on")

    def __init__(self, end: Callable[[], None]) -> None:
        super().__init__()
        self._end = end
        self.handed_on = False

    def end(self) -> None:
        """End the call, if it has not ended."""
        if self.claim():
            self._end()

    def __enter__(self) -> Ticket:
        return self

    def __exit__(self, *exception: object) -> None:
        if not self.handed_on:
            self.end()


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

    def command(self, request: Request, elsewhere: Callable[[Reply], None]) -> Reply | None:
        """Answer a thin client: exit code, standard output, standard error.

        Parameters:
            request: what it sent.
            elsewhere: as for ``run``, which says what None means, too.
        """
        options = Options(request.words)
        environ: Mapping[str, str] = freeze(request.environ)
        payload = hooks_of(options.agent).given(environ)

        def of(data: Mapping[str, Any]) -> Mapping[str, str]:
            session = _session_of(data)
            if session:
                self._remember(session, environ)
            return environ

        answer = self.run(
            options.agent,
            request.payload if payload is None else payload,
            lambda answer: elsewhere(_reply(answer)),
            environ=of,
            cwd=os.path.join(request.cwd or os.sep, options.project),
            event=options.event,
            timeout=options.timeout,
            caller_pid=starter(request.parent),
        )
        return None if answer is None else _reply(answer)

    def run(self, agent: str, payload: bytes, elsewhere: Callable[[Any], None], **about: Any) -> Any:
        """Let the bridge answer; see ``agents.bridge.answer_here`` for the parameters and what is returned."""
        lease = Lease(self._engines)

        def there(answer: Any) -> None:
            lease.release()
            elsewhere(answer)

        left = False
        try:
            answer = self._bridge.answer_here(
                agent, payload, elsewhere=there, engine_for=lease.engine_for, memory=self._memory, **about
            )
            left = answer is None
            return answer
        finally:
            if not left:
                lease.release()

    def begin(self) -> Ticket:
        """Begin a call: the process does not end before it ends."""
        with self._lock:
            self.running += 1
            self.total += 1
        return Ticket(self._ended)

    def _ended(self) -> None:
        with self._lock:
            self.running -= 1
            self.last = monotonic()

    # -- HTTP: no environment, and nobody who watches the time ----------------------------------------

    def environment(self, data: Mapping[str, Any]) -> Mapping[str, str]:
        """Return the environment of a payload's session.

        An HTTP request has none; the session's start came as a command, which had one.
        """
        with self._lock:
            return self._sessions.get(_session_of(data), self._own)

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


def _session_of(data: Mapping[str, Any]) -> str:
    session = data.get("session_id") or data.get("sessionId")
    return session if isinstance(session, str) else ""


def _reply(answer: Any) -> Reply:
    return answer.exit_code, answer.stdout, answer.stderr.encode("utf-8", "backslashreplace")
