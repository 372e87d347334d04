"""AGENT-HOOKS-0.1: interceptors written for it in hookturn engines, and hookturn in hosts that follow it.

- ``Interception(policy)`` makes a plugin of an interceptor, for any engine.
- ``Host([policy, ...])`` is an engine that keeps the whole contract, with records.
- ``from_declaration(document, registry)`` builds such a host from a host declaration.
- ``Guest(engine)`` is an interceptor that asks a hookturn engine, for hosts such as the Agent Framework.
"""

from __future__ import annotations

from .declaration import DeclarationError, Registry, from_declaration
from .guest import Guest
from .host import Binding, Host
from .interceptors import Interception
from .wire import MODEL_ACCEPTS, MODEL_REQUEST

__all__ = [
    "MODEL_ACCEPTS",
    "MODEL_REQUEST",
    "Binding",
    "DeclarationError",
    "Guest",
    "Host",
    "Interception",
    "Registry",
    "from_declaration",
]
