"""What is known of a session between its calls, as one JSON object in memory or in a file.

Every change is one short transaction, so parallel tool calls (threads, tasks
or, with a state folder, processes) cannot lose each other's.
"""

from __future__ import annotations

import itertools

from ..spec.record import jsonable
from .history import ended
from .state import OWN_AREA, LiveValues

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..spec.tools import Tool
    from .journal import Histories, Journal
    from .state import Stores


class SessionState:
    """The state of one session.

    Parameters:
        stores: the engine's stores.
        session_id: the session's id.
        stored: keep it in the state folder, for other processes (needs one).
        heeded: its host looks at its trouble himself (see ``Journal.heeded``).
        about: what the host told: agent, cwd, host, model, provider, env, transcript_path, tools.
    """

    def __init__(
        self, stores: Stores, session_id: str, *, stored: bool, heeded: bool = False, **about: Any
    ) -> None:
        self.id = session_id
        self.agent: str = about.get("agent") or "main"
        self.cwd: str = about.get("cwd") or ""
        self.host: str = about.get("host") or ""
        self.env: Mapping[str, str] | None = about.get("env")
        self.transcript_path: str = about.get("transcript_path") or ""
        self.tools: Mapping[str, Tool] | None = about.get("tools")
        self.stored = stored and stores.folder is not None
        self._calls = itertools.count(1)
        self._values: Journal | LiveValues = LiveValues()
        if self.stored:
            journal = self._values = stores.values(OWN_AREA, "session", session_id)
            journal.heeded = heeded
            self._restore(about)

    def _restore(self, about: Mapping[str, Any]) -> None:
        with self._values as data:
            known = data.setdefault("about", {})
            for name in ("agent", "cwd", "host", "transcript_path"):
                if about.get(name):
                    known[name] = about[name]
                elif known.get(name):
                    setattr(self, name, known[name])

    @property
    def plain(self) -> Any:
        """JSON form of data on the way into the store: the identity in memory, a JSON copy for a file."""
        return jsonable if self.stored else _same

    def change(self) -> Journal | LiveValues:
        """Return the transaction: ``with state.change() as data``.

        The histories of turns in it are changed by ``note`` only (see ``history.apply``).
        """
        return self._values

    def histories(self) -> Histories | LiveValues:
        """Return a transaction in which nothing is changed but by ``note``, which costs less."""
        return self._values.histories

    def note(self, change: list[Any]) -> None:
        """Change a turn's history, inside a transaction."""
        self._values.change(change)

    def opened(self, data: Mapping[str, Any], agent_id: str, call_id: str, **fields: Any) -> None:
        """Note more of an open call, inside the transaction; nothing when it is not open any more."""
        if call_id in data["turns"][agent_id]["open"]:
            self.note(["open", agent_id, call_id, fields])

    def get(self, name: str, default: Any = None) -> Any:
        """Return one value of the state."""
        return self._values.get(name, default)

    def look(self) -> Mapping[str, Any]:
        """Return all values as they are now, to be read at once: one look costs less than several values."""
        return self._values.look()

    @property
    def known(self) -> Mapping[str, Any]:
        """All values as they were when they were last looked at, or changed, in this process."""
        return self._values.known

    def next_call_id(self) -> str:
        """Return an id for a tool call that has none, unique in the session (in all processes where it is stored)."""
        if self.stored:
            from uuid import uuid4

            return f"call-{uuid4()}"
        return f"call-{next(self._calls)}"

    @property
    def turn(self) -> int:
        """Turns begun so far."""
        number: int = self._values.get("turn", 0)
        return number

    @property
    def usage(self) -> Mapping[str, int]:
        """Tokens so far."""
        usage: Mapping[str, int] = self._values.get("usage", {})
        return usage

    @property
    def calls(self) -> list[Mapping[str, Any]]:
        """The tool calls of the main agent's turn."""
        turn = self._values.get("turns", {}).get("")
        return list(turn["calls"]) if turn else []

    def find_call(self, tool: str, args: Mapping[str, Any]) -> str:
        """Return the oldest open call of a tool, first one with these arguments; "" when there is none."""
        turns = self._values.get("turns", {})
        found = [
            (call_id, call["args"])
            for turn in list(turns.values())
            for call_id, call in list(turn["open"].items())
            if call["tool"] == tool and ended(turn, call_id) is None
        ]
        wanted = self.plain(args)
        return next((call_id for call_id, given in found if given == wanted), found[0][0] if found else "")

    def add_pending(self, text: str) -> None:
        """Keep a text for the next system prompt."""
        with self._values as data:
            data.setdefault("pending", []).append(text)

    def take_pending(self, just_looked: bool = False) -> str:
        """Return, once, the texts for the system prompt, joined with newlines."""
        known = self._values.known if just_looked else self._values.look()
        if not known.get("pending"):
            return ""
        with self._values as data:
            return "\n".join(data.pop("pending", ()))


def _same(value: Any) -> Any:
    return value


def add_usage(total: dict[str, Any], usage: Mapping[str, Any]) -> None:
    """Add token counts to a total; what is no number is left out."""
    for name, count in usage.items():
        if isinstance(count, (int, float)) and not isinstance(count, bool):
            total[name] = total.get(name, 0) + count
