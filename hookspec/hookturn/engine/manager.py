"""pluggy's manager of an engine's plugins."""

from __future__ import annotations

import pluggy

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from .registry import Plugin


class Manager(pluggy.PluginManager):
    """pluggy's manager, which takes the options of implementations from the scan that already checked them.

    The only override is its public ``parse_hookimpl_opts``.
    """

    def __init__(self) -> None:
        super().__init__("hookturn")
        self._scanned: dict[str, dict[str, Any]] = {}

    def parse_hookimpl_opts(self, plugin: object, name: str) -> Any:
        found = self._scanned.get(name)
        return None if found is None else found["pluggy"]

    def add_specs(self, functions: Iterable[Callable[..., Any]]) -> None:
        """Add spec functions, in a class, a form in which pluggy reads them.

        Raises:
            ValueError: when none of them is a spec, or pluggy refuses one.
        """
        held = {function.__name__: staticmethod(function) for function in functions}
        self.add_hookspecs(type("Specs", (), held))

    def add(self, record: Plugin) -> None:
        """Register a plugin that the registry has checked.

        Raises:
            RegistrationError: when pluggy refuses it; nothing of it stays registered.
        """
        self._scanned = record.implementations
        try:
            self.register(record.plugin, name=record.name)
        except Exception as error:
            # Up to pluggy 1.6 a failed register() leaves the plugin half registered.
            if self.get_plugin(record.name) is not None:
                self.unregister(name=record.name)
            raise record.error(f"pluggy refused it: {error}", "See the cause.") from error
        finally:
            self._scanned = {}
