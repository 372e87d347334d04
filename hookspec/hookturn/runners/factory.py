"""Calls a plugin's factory: a class or function that may or may not take settings."""

from __future__ import annotations

from ..spec.functions import takes_argument

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def call(factory: Any, settings: Any) -> Any:
    """Call a factory, with its settings if it takes an argument.

    Parameters:
        factory: a class or function that takes one argument or none.
        settings: what it gets.

    Raises:
        whatever the factory raises.
    """
    return factory(settings) if takes_argument(factory) else factory()
