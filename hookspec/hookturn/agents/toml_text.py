"""TOML as data: by the standard library's parser or, before Python 3.11, by tomli, which reads the same."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def parse_toml(text: str) -> dict[str, Any]:
    """Return the table that a TOML text is.

    Raises:
        ValueError: when it is no TOML.
        RecursionError: when it is nested too deep.
    """
    import sys
    from importlib import import_module

    module = import_module("tomllib" if sys.version_info >= (3, 11) else "tomli")
    table: dict[str, Any] = module.loads(text)
    return table
