"""What a hook can do: the ``ctx`` argument. It belongs to one hook; the event is the same for all."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextlib import AbstractContextManager
    from typing import Any, Protocol

    import loguru

    class Values(Protocol):
        """A small store of JSON values, safe over threads and (with a state folder) processes."""

        def get(self, key: str, default: Any = None) -> Any:
            """Return the value of ``key``, or ``default``."""
            ...

        def set(self, key: str, value: Any) -> None:
            """Store a JSON value. Raises TypeError for anything that JSON cannot hold."""
            ...

        def add(self, key: str, amount: float = 1) -> float:
            """Add to a number, atomically, and return the new one; a missing key counts as 0."""
            ...

        def delete(self, key: str) -> None:
            """Forget ``key``, if it is there."""
            ...

        def __enter__(self) -> dict[str, Any]:
            """Lock the store over threads and processes; changes of the dict are kept on leaving."""
            ...

        def __exit__(self, *exception: object) -> None: ...

    class SessionView(Protocol):
        """What a hook may know of its session."""

        @property
        def id(self) -> str:
            """The session's id."""
            ...

        @property
        def turns(self) -> int:
            """Turns begun so far."""
            ...

        @property
        def usage(self) -> Mapping[str, int]:
            """Tokens so far, as in ModelResponse.usage."""
            ...

        @property
        def calls(self) -> list[Mapping[str, Any]]:
            """The tool calls of this turn, each ``{"call_id", "tool", "kind", "status", "duration"}``."""
            ...

        @property
        def transcript_path(self) -> str:
            """Where the host keeps the conversation, or an empty string."""
            ...

    class Context(Protocol):
        """The capabilities of one hook."""

        @property
        def hook_name(self) -> str:
            """The hook's own name: the plugin's, or the configured entry's."""
            ...

        @property
        def config(self) -> Any:
            """The hook's settings: the plugin's validated Config, or the entry's ``config`` mapping."""
            ...

        @property
        def log(self) -> loguru.Logger:
            """A loguru logger bound to ``hook:<name>``; loguru is imported at first use."""
            ...

        @property
        def state(self) -> Values:
            """Values of this hook in this session."""
            ...

        @property
        def store(self) -> Values:
            """Values of this hook in this project, over all sessions."""
            ...

        @property
        def session(self) -> SessionView:
            """Figures of the session."""
            ...

        @property
        def env(self) -> Mapping[str, str]:
            """The agent's environment (not the resident process's)."""
            ...

        @property
        def project_dir(self) -> str:
            """The project's folder, or the event's cwd without a project."""
            ...

        @property
        def output_dir(self) -> str:
            """Where a builtin may write: ``.hookturn``, or the replay's own folder in a dry run."""
            ...

        @property
        def services(self) -> Mapping[str, Any]:
            """What the host offers (``Engine(services=...)``); calls made through it skip this hook."""
            ...

        def inject(self, text: str) -> None:
            """Add text to the session's next system prompt; several texts join with a newline."""
            ...

        def lock(self) -> AbstractContextManager[None]:
            """Hold a lock of this hook in this project, over threads and processes."""
            ...

else:

    class Context:
        """The capabilities of one hook (the typed contract is for type checkers; the engine makes the objects)."""
