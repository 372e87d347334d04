"""Calls a plugin's factory: a class or function that may or may not take settings."""

from __future__ import annotations

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
    return factory(settings) if takes_settings(factory) else factory()


def takes_settings(factory: Any) -> bool:
    """Tell whether a factory takes a positional argument."""
    import inspect

    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):  # builtins without a signature
        return False
    return any(
        parameter.kind
        in (parameter.POSITIONAL_ONLY, parameter.POSITIONAL_OR_KEYWORD, parameter.VAR_POSITIONAL)
        for parameter in parameters
    )
