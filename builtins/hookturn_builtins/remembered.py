"""What a builtin remembers of a session: in the state folder, and in memory while that cannot be written."""

from __future__ import annotations

from contextlib import contextmanager
from threading import RLock

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from hookturn import Context

MAX_SESSIONS = 1000
"""Sessions whose values are kept in memory; those of the oldest are dropped."""


class Remembered:
    """A hook's values in each session.

    A full or unwritable state folder costs only what other processes would have known.
    """

    def __init__(self) -> None:
        self._lock = RLock()
        self._memory: dict[str, dict[str, Any]] = {}
        self._trouble = ""
        self._told = False

    @contextmanager
    def change(self, ctx: Context) -> Iterator[dict[str, Any]]:
        """Give the session's values for one change, locked over threads and, where they can be stored, processes.

        Parameters:
            ctx: the hook's.
        """
        with self._lock:
            session = ctx.session.id
            stored = ctx.state
            try:
                values = stored.__enter__()
            except OSError as error:
                self._failed(error)
                yield self._kept(session)
                return
            values.update(self._memory.get(session, {}))
            try:
                yield values
            except BaseException as error:  # the store decides what is kept, as in a with block
                stored.__exit__(type(error), error, error.__traceback__)
                raise
            copy = dict(values)
            try:
                stored.__exit__(None, None, None)
            except OSError as error:
                self._failed(error)
                self._kept(session).update(copy)
            else:
                self._memory.pop(session, None)

    def get(self, ctx: Context, key: str, default: Any = None) -> Any:
        """Return one value.

        Parameters:
            ctx: the hook's.
            key: its name.
            default: what to return when there is none.
        """
        with self._lock:
            kept = self._memory.get(ctx.session.id)
            if kept is not None and key in kept:
                return kept[key]
        try:
            return ctx.state.get(key, default)
        except OSError as error:
            self._failed(error)
            return default

    def notice(self) -> str:
        """Return, once, what the user must know; else an empty text."""
        if not self._trouble or self._told:
            return ""
        self._told = True
        return f"The state folder cannot be written ({self._trouble}); what is remembered of the session stays in memory."

    def _failed(self, error: OSError) -> None:
        self._trouble = self._trouble or f"{type(error).__name__}: {error}"

    def _kept(self, session: str) -> dict[str, Any]:
        kept = self._memory.setdefault(session, {})
        if len(self._memory) > MAX_SESSIONS:
            del self._memory[next(iter(self._memory))]
        return kept
