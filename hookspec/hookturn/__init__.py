"""hookturn: lifecycle hooks for AI agents, as pluggy plugins.

This module only names what is public. Nothing is imported until it is asked
for (PEP 562), so ``import hookturn`` costs a plugin author next to nothing.
"""

from __future__ import annotations

__version__ = "0.1.0"

TYPE_CHECKING = False
if TYPE_CHECKING:
    from . import events as events
    from . import redact as redact
    from .engine.approval import Approval as Approval
    from .engine.async_session import AsyncSession as AsyncSession
    from .engine.composition import Composition as Composition
    from .engine.engine import Engine as Engine
    from .engine.outcome import Failure as Failure
    from .engine.outcome import HookRecord as HookRecord
    from .engine.outcome import Outcome as Outcome
    from .engine.session import Session as Session
    from .spec.answers import Allow as Allow
    from .spec.answers import Answer as Answer
    from .spec.answers import Ask as Ask
    from .spec.answers import Block as Block
    from .spec.answers import Continue as Continue
    from .spec.answers import Deny as Deny
    from .spec.answers import Inject as Inject
    from .spec.answers import Recover as Recover
    from .spec.answers import Reply as Reply
    from .spec.answers import Rewrite as Rewrite
    from .spec.answers import SetEnv as SetEnv
    from .spec.answers import Warn as Warn
    from .spec.context import Context as Context
    from .spec.errors import AnswerError as AnswerError
    from .spec.errors import ConfigError as ConfigError
    from .spec.errors import EventError as EventError
    from .spec.errors import HookturnError as HookturnError
    from .spec.errors import LifecycleError as LifecycleError
    from .spec.errors import NestingError as NestingError
    from .spec.errors import RegistrationError as RegistrationError
    from .spec.markers import hookimpl as hookimpl
    from .spec.markers import hookspec as hookspec
    from .spec.tools import Tool as Tool

# public name -> the module that defines it
_HOME = {
    "Allow": ".spec.answers",
    "Answer": ".spec.answers",
    "AnswerError": ".spec.errors",
    "Approval": ".engine.approval",
    "Ask": ".spec.answers",
    "AsyncSession": ".engine.async_session",
    "Block": ".spec.answers",
    "Composition": ".engine.composition",
    "ConfigError": ".spec.errors",
    "Context": ".spec.context",
    "Continue": ".spec.answers",
    "Deny": ".spec.answers",
    "Engine": ".engine.engine",
    "EventError": ".spec.errors",
    "Failure": ".engine.outcome",
    "HookRecord": ".engine.outcome",
    "HookturnError": ".spec.errors",
    "Inject": ".spec.answers",
    "LifecycleError": ".spec.errors",
    "NestingError": ".spec.errors",
    "Outcome": ".engine.outcome",
    "Recover": ".spec.answers",
    "RegistrationError": ".spec.errors",
    "Reply": ".spec.answers",
    "Rewrite": ".spec.answers",
    "Session": ".engine.session",
    "SetEnv": ".spec.answers",
    "Tool": ".spec.tools",
    "Warn": ".spec.answers",
    "events": ".events",
    "hookimpl": ".spec.markers",
    "hookspec": ".spec.markers",
    "redact": ".redact",
}

__all__ = [
    "Allow",
    "Answer",
    "AnswerError",
    "Approval",
    "Ask",
    "AsyncSession",
    "Block",
    "Composition",
    "ConfigError",
    "Context",
    "Continue",
    "Deny",
    "Engine",
    "EventError",
    "Failure",
    "HookRecord",
    "HookturnError",
    "Inject",
    "LifecycleError",
    "NestingError",
    "Outcome",
    "Recover",
    "RegistrationError",
    "Reply",
    "Rewrite",
    "Session",
    "SetEnv",
    "Tool",
    "Warn",
    "__version__",
    "events",
    "hookimpl",
    "hookspec",
    "redact",
]


def __getattr__(name: str) -> object:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from sys import modules

    whole = f"{__name__}{home}"
    __import__(whole)  # as ``quick.import_module`` does, and for its reason
    module = modules[whole]
    # ``events`` and ``redact`` are modules themselves, the rest are names in one
    value = module if home == f".{name}" else getattr(module, name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
