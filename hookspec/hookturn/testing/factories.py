"""What the fixtures are: callables that make engines and scripted agents, and close them."""

from __future__ import annotations

from ..engine.engine import Engine
from .agent import SYSTEM_PROMPT, ScriptedAgent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any


class EngineFactory:
    """Makes engines of plugins, and closes them: the fixture ``hookturn_engine``."""

    def __init__(self) -> None:
        self._made: list[Engine] = []

    def __call__(self, *plugins: Any, **options: Any) -> Engine:
        """Return a new engine.

        Parameters:
            plugins: plugin objects, or (name, object) pairs.
            options: keyword arguments of ``hookturn.Engine``.

        Raises:
            RegistrationError: when a plugin is refused.
        """
        engine = Engine(plugins, **options)
        self._made.append(engine)
        return engine

    def __enter__(self) -> EngineFactory:
        return self

    def __exit__(self, *exception: object) -> None:
        for engine in reversed(self._made):
            engine.close()


class SessionFactory:
    """Makes scripted agents around plugins: the fixture ``hookturn_session``.

    Parameters:
        engines: makes and closes their engines.
    """

    def __init__(self, engines: EngineFactory) -> None:
        self._engines = engines

    def __call__(
        self,
        *plugins: Any,
        agent: str = "main",
        cwd: str = "",
        system_prompt: Sequence[str] = SYSTEM_PROMPT,
        **options: Any,
    ) -> ScriptedAgent:
        """Return a scripted agent with an engine of its own.

        Parameters:
            plugins: plugin objects, or (name, object) pairs.
            agent: the agent's name.
            cwd: the session's folder; the current one when empty.
            system_prompt: the parts of the system prompt, as hooks get them.
            options: keyword arguments of ``hookturn.Engine``.
        """
        engine = self._engines(*plugins, **options)
        return ScriptedAgent(engine, agent=agent, cwd=cwd, system_prompt=system_prompt)
