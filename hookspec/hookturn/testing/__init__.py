"""For hook authors: event factories, a scripted agent, assertions on outcomes, a pytest plugin, a scaffold.

It drives the real engine and knows nothing of agents and configuration. Names
are imported when they are asked for: pytest loads the plugin in every run.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import make as make
    from .agent import Model as Model
    from .agent import Run as Run
    from .agent import ScriptedAgent as ScriptedAgent
    from .agent import SubAgent as SubAgent
    from .agent import ToolCall as ToolCall
    from .agent import User as User
    from .assertions import allowed as allowed
    from .assertions import asked_by as asked_by
    from .assertions import continued as continued
    from .assertions import denied_by as denied_by
    from .assertions import injected as injected
    from .assertions import no_failures as no_failures
    from .assertions import no_opinion as no_opinion
    from .assertions import replied as replied
    from .assertions import rewritten_to as rewritten_to
    from .assertions import warned as warned
    from .factories import EngineFactory as EngineFactory
    from .factories import SessionFactory as SessionFactory

# public name -> the module that defines it
_HOME = {
    "EngineFactory": ".factories",
    "Model": ".agent",
    "Run": ".agent",
    "ScriptedAgent": ".agent",
    "SessionFactory": ".factories",
    "SubAgent": ".agent",
    "ToolCall": ".agent",
    "User": ".agent",
    "allowed": ".assertions",
    "asked_by": ".assertions",
    "continued": ".assertions",
    "denied_by": ".assertions",
    "injected": ".assertions",
    "make": ".make",
    "no_failures": ".assertions",
    "no_opinion": ".assertions",
    "replied": ".assertions",
    "rewritten_to": ".assertions",
    "warned": ".assertions",
}

__all__ = sorted(_HOME)


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    module = import_module(home, __name__)
    value = module if home == f".{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
