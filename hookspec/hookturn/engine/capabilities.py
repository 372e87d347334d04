"""The ``ctx`` of a hook: what the contract in ``spec/context.py`` promises, made of the engine's parts."""

from __future__ import annotations

from contextlib import contextmanager

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from ..spec.events import Event
    from .engine import Engine
    from .registry import Plugin


class HookContext:
    """The capabilities of one hook in one session (see ``hookturn.spec.context.Context``)."""

    __slots__ = (
        "_engine",
        "_log",
        "_plugin",
        "_services",
        "_watching",
        "agent",
        "cwd",
        "hook_name",
        "session_id",
    )

    def __init__(self, engine: Engine, plugin: Plugin, event: Event | None, watching: bool = False) -> None:
        self._engine = engine
        self._watching = watching  # monitor mode: nothing that the hook does has effect
        self._plugin = plugin
        self._log: Any = None
        self._services: Any = None
        self.hook_name = plugin.hook_name
        self.session_id = event.session_id if event is not None else ""
        self.agent = event.agent if event is not None else ""
        self.cwd = event.cwd if event is not None else ""

    @property
    def config(self) -> Any:
        """The hook's settings."""
        return self._plugin.config

    @property
    def log(self) -> Any:
        """A loguru logger bound to ``hook:<name>``."""
        if self._log is None:
            self._log = logger(self.hook_name)
        return self._log

    def inject(self, text: str) -> None:
        """Add text to the session's next system prompt."""
        if not isinstance(text, str):
            raise TypeError(f"inject() takes a str, got {type(text).__name__}")
        if text and self._watching:
            self.log.info("monitor mode: would inject {!r}", text[:200])
        elif text:
            self._engine.inject(self.session_id, text)

    @property
    def state(self) -> Any:
        """Values of this hook in this session."""
        return self.state_of(self.hook_name)

    def state_of(self, hook: str) -> Any:
        """Return the values of another hook in this session. For dialects whose hooks read each other; no part of
        the contract with hook authors.

        Parameters:
            hook: its name.
        """
        return self._engine.stores.values("sessions", hook, self.session_id or "none")

    @property
    def store(self) -> Any:
        """Values of this hook in this project."""
        return self._engine.stores.values("store", self.hook_name)

    @property
    def session(self) -> SessionFigures:
        """Figures of the session."""
        return SessionFigures(self._engine, self.session_id)

    @property
    def env(self) -> Mapping[str, str]:
        """The agent's environment."""
        import os

        state = self._engine.session_state(self.session_id)
        if state is not None and state.env is not None:
            env: Mapping[str, str] = state.env
            return env
        return os.environ

    @property
    def project_dir(self) -> str:
        """The project's folder, else the session's, else the current one."""
        import os

        return self._engine.project_dir or self.cwd or os.getcwd()

    @property
    def output_dir(self) -> str:
        """Where a builtin may write."""
        import os

        return self._engine.output_dir or os.path.join(self.project_dir, ".hookturn")

    @property
    def services(self) -> Mapping[str, Callable[..., Any]]:
        """What the host offers; calls made through it skip this hook."""
        if self._services is None:
            self._services = self._engine.services_for(self._plugin)
        services: Mapping[str, Callable[..., Any]] = self._services
        return services

    @contextmanager
    def lock(self) -> Iterator[None]:
        """Hold a lock of this hook in this project."""
        with self._engine.stores.values("locks", self.hook_name):
            yield


class SessionFigures:
    """What a hook may know of its session; zeros for a session that the engine does not run."""

    __slots__ = ("_state", "id")

    def __init__(self, engine: Engine, session_id: str) -> None:
        self.id = session_id
        self._state = engine.session_state(session_id)

    @property
    def turns(self) -> int:
        """Turns begun so far."""
        return self._state.turn if self._state is not None else 0

    @property
    def usage(self) -> Mapping[str, int]:
        """Tokens so far."""
        return dict(self._state.usage) if self._state is not None else {}

    @property
    def calls(self) -> list[Mapping[str, Any]]:
        """The tool calls of this turn."""
        return list(self._state.calls) if self._state is not None else []

    @property
    def transcript_path(self) -> str:
        """Where the host keeps the conversation, or an empty string."""
        return self._state.transcript_path if self._state is not None else ""


_unlogged: set[str] = set()


class _Nowhere:
    """Stands for a logger whose messages somebody else tells."""

    def __getattr__(self, name: str) -> Any:
        return lambda *_, **__: self


@contextmanager
def unlogged(name: str) -> Iterator[None]:
    """Let ``hook:<name>`` log nothing meanwhile, for what it would say is told in another way."""
    _unlogged.add(name)
    try:
        yield
    finally:
        _unlogged.discard(name)


def logger(name: str) -> Any:
    """Return a loguru logger bound to ``hook:<name>``; loguru takes 80 ms, so it is imported at first use."""
    if name in _unlogged:
        return _Nowhere()
    try:
        import loguru
    except (ImportError, OSError):  # no more files can be opened, say: what is decided matters more
        return _Nowhere()
    return loguru.logger.bind(hook=f"hook:{name}")
