"""The pytest plugin: fixtures for hook authors. Loaded in every pytest run, so it imports nothing of the engine."""

from __future__ import annotations

import pytest

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from .factories import EngineFactory, SessionFactory


@pytest.fixture
def hookturn_engine() -> Iterator[EngineFactory]:
    """Make engines: ``hookturn_engine(plugin, ..., **options) -> Engine``, closed after the test.

    The options are those of ``hookturn.Engine``. Nothing else is loaded: no configuration, no entry points.
    """
    from .factories import EngineFactory

    with EngineFactory() as factory:
        yield factory


@pytest.fixture
def hookturn_session(hookturn_engine: EngineFactory) -> SessionFactory:
    """Make scripted agents: ``hookturn_session(plugin, ..., agent="coder", **options) -> ScriptedAgent``.

    Their ``run(User(...), Model(...))`` plays a whole session through the real engine.
    """
    from .factories import SessionFactory

    return SessionFactory(hookturn_engine)
