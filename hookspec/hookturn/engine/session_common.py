"""What the drivers of the lifecycle share: what a session and a turn know, and which steps their methods ask for.

The drivers (``Session`` for ordinary code, ``AsyncSession`` for coroutines,
``SteppedSession`` for coroutines without an event loop) carry out what the
lifecycle asks for (fire, ask the approver, run the tool) and decide nothing.
All have the same names.
"""

from __future__ import annotations

import os

from ..spec.errors import LifecycleError
from ..spec.record import freeze
from .history import ended
from .lifecycle import Lifecycle
from .outcome import describe
from .session_state import SessionState

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..spec.answers import Recover
    from ..spec.tools import Tool
    from .engine import Engine
    from .lifecycle import Steps
    from .outcome import Outcome
    from .results import Response

APPROVAL_SECONDS = 300.0
"""Seconds for which an approver's coroutine is waited for outside of coroutines."""


class SessionCommon:
    """A session, whatever drives it.

    Attributes:
        id: the session's id; never empty.
        env: environment variables that hooks set for the agent's commands.
        warnings: texts for the user of the session's own timings.
    """

    _HEEDS = False  # whether its host looks at what its values say of unread and trouble

    def __init__(
        self,
        engine: Engine,
        *,
        session_id: str | None = None,
        agent: str = "main",
        cwd: str | os.PathLike[str] = "",
        host: str = "",
        model: str = "",
        provider: str = "",
        source: str = "startup",
        env: Mapping[str, str] | None = None,
        tools: Mapping[str, Tool] | None = None,
        transcript_path: str = "",
        persist: bool = False,
        attached: bool = False,
        dry_run: bool = False,
        can_prompt: bool = False,
        raw: Any = None,
    ) -> None:
        self._engine = engine
        self.id = session_id or new_id()
        known = engine.session_state(self.id)
        if known is None or not attached:
            known = SessionState(
                engine.stores,
                self.id,
                stored=persist or attached,
                heeded=self._HEEDS,
                agent=agent if not attached or agent != "main" else "",
                cwd=os.path.abspath(cwd) if cwd else "" if attached else os.getcwd(),
                host=host,
                env=env,
                tools=tools if tools is not None else engine.tools,
                transcript_path=transcript_path,
            )
        elif env is not None:
            known.env = env  # of this caller, not of the one before
        self._state = known
        self._life = Lifecycle(engine, known, attached=attached, dry_run=dry_run, can_prompt=can_prompt)
        self._about = (source, model, provider, raw)
        self._attached = attached
        self.env: dict[str, str] = {}
        self.warnings: list[str] = []
        if attached:
            engine._attached(known)

    @property
    def agent(self) -> str:
        """Name of the main agent."""
        return self._state.agent

    @property
    def turns(self) -> int:
        """Turns begun so far."""
        return self._state.turn

    @property
    def usage(self) -> Mapping[str, int]:
        """Tokens so far."""
        return dict(self._state.usage)

    @property
    def blocked_by(self) -> str:
        """Who blocked the session at its start, or an empty string."""
        blocked = self._state.get("blocked")
        return blocked[0] if blocked else ""

    @property
    def open_turns(self) -> list[str]:
        """The agent ids that have an open turn; the main agent's is the empty string."""
        return list(self._state.get("turns", {}))

    @property
    def started(self) -> bool:
        """Whether the session has started and not ended."""
        known = self._state.look()
        return bool(known.get("started")) and not known.get("ended")

    def at(self, time: float | None) -> None:
        """Set the time of the events to come (replay: the recorded one), in seconds since the epoch."""
        self._life.time = time

    def until(self, moment: float | None) -> None:
        """Set when the host stops waiting for all that is to come, by ``time.monotonic()``.

        Every fire gets what is left until then; hooks that are not reached are failures.
        """
        self._life.until = moment

    def values(self) -> Any:
        """Return the session's stored values as a transaction (``with session.values() as data``).

        They are the session's own but for one key: ``host``, which a host may fill with JSON values. ``get`` reads
        without a transaction; ``trouble`` tells of values that could not be stored or read, and ``unread`` is why they
        could not be read, or None.
        """
        return self._state.change()

    def find_call(self, tool: str, args: Mapping[str, Any]) -> str:
        """Return the id of the oldest open call of a tool, first one with these arguments; "" when there is none.

        For hosts that do not tell which call they speak of.
        """
        return self._state.find_call(tool, args)

    def open_calls(self, agent_id: str = "") -> list[str]:
        """Return the ids of an agent's calls that have begun and not ended."""
        turn = self._state.get("turns", {}).get(agent_id, {"open": ()})
        return [call_id for call_id in list(turn["open"]) if ended(turn, call_id) is None]

    def amend_call(self, call_id: str, args: Mapping[str, Any], agent_id: str = "") -> None:
        """Set the arguments with which an open call really runs, for hosts that change them after ``begin_tool``.

        Parameters:
            call_id: the call; nothing happens when it is not open.
            args: its arguments.
            agent_id: the sub-agent whose call it is, or "".
        """
        with self._state.histories() as data:
            if agent_id in data.get("turns", {}):
                self._state.opened(data, agent_id, call_id, args=self._state.plain(dict(args)))

    def take_injected(self, *, just_looked: bool = False) -> str:
        """Return, once, what was injected for the next system prompt; for hosts that give it at another place.

        Parameters:
            just_looked: something else of the session was asked or changed just now: one look at its file is enough.
        """
        return self._state.take_pending(just_looked)

    def _open_turn(self, agent_id: str, just_looked: bool) -> Mapping[str, Any] | None:
        known = self._state.known if just_looked else self._state.look()
        found: Mapping[str, Any] | None = known.get("turns", {}).get(agent_id)
        return found

    def _started(self, out: Outcome) -> None:
        self.env.update(out.env)
        self.warnings.extend(out.warnings)


def new_id() -> str:
    from uuid import uuid4

    return str(uuid4())


def reason_of(kind: type[BaseException] | None) -> str:
    if kind is None:
        return "complete"
    return "error" if issubclass(kind, Exception) else "interrupted"


def failing(
    life: Lifecycle, agent_id: str, error: BaseException | str, message: str, phase: str, raw: Any
) -> Steps[Recover | None]:
    more = {"raw": freeze(raw)} if raw is not None else {}
    if isinstance(error, str):
        return life.error(agent_id, error, message or error, phase=phase, **more)
    life.reported = error
    kind = type(error).__name__
    text = describe(error).removeprefix(kind).removeprefix(": ")
    return life.error(agent_id, kind, text, phase=phase, exception=error, **more)


class TurnCommon:
    """A turn, whatever drives it; see ``Turn`` for its attributes."""

    def __init__(
        self,
        session: Any,
        agent_id: str,
        agent: str,
        parent_agent: str,
        phase: str,
        *,
        override: bool = False,
        begun: bool = False,
        raw: Any = None,
    ) -> None:
        self._session = session
        self._life: Lifecycle = session._life
        self._begin = (phase, override, raw)
        self.agent_id = agent_id
        self.agent = agent
        self.parent_agent = parent_agent
        self.ended = False
        self.env: dict[str, str] = {}
        self.warnings: list[str] = []
        self._begun = begun

    def _open(self) -> str:
        """The turn's key, while it is open: an old turn must not act on a new one."""
        if not self._begun:
            raise LifecycleError("this turn has not begun: begin one (`with session.turn() as turn:`)")
        if self.ended:
            raise LifecycleError("this turn is over: begin another one with `session.turn()`")
        return self.agent_id

    @property
    def number(self) -> int:
        """Number of the turn, from 1."""
        number: int = self._life.turn_of(self._open())["number"]
        return number

    @property
    def blocked_by(self) -> str:
        """Who ended the turn for tools and further requests, or an empty string."""
        blocked = self._life.turn_of(self._open())["blocked"]
        return blocked[0] if blocked else ""

    def _beginning(self) -> Steps[Outcome]:
        phase, override, raw = self._begin
        return self._life.begin_turn(
            phase,
            agent=self.agent,
            agent_id=self.agent_id,
            parent_agent=self.parent_agent,
            override=override,
            raw=raw,
        )

    def _started(self, out: Outcome) -> None:
        self._begun = True
        self.env.update(out.env)
        self.warnings.extend(out.warnings)

    def _response(
        self, text: str, usage: Any, tool_calls: Any, stop_reason: str, model: str, raw: Any
    ) -> Steps[Response]:
        fields = {
            "text": text,
            "usage": dict(usage or {}),
            "tool_calls": list(tool_calls),
            "stop_reason": stop_reason,
            "model": model,
            "raw": raw,
        }
        return self._life.model_response(self._open(), fields)
