"""Finds installed plugins by their entry points, in a fixed order, and loads them apart from each other.

Groups: ``hookturn`` (plugins: a module, an instance, or a factory that may take
settings), ``hookturn.hookspecs`` (timings of frameworks), ``hookturn.commands``
(commands for the CLI). The list is kept in a cache, keyed by the folders on
``sys.path`` and the times of their last change.
"""

from __future__ import annotations

from ..quick import dumps, import_module
from ..spec.errors import RegistrationError
from ..spec.record import Record, safe_text
from . import cache
from .model import normal
from .problems import Problem
from .secrets import Wrong

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .model import PluginEntry

PLUGINS = "hookturn"
HOOKSPECS = "hookturn.hookspecs"
OWN = "hookturn"
"""Our own distribution: its entry points are the builtins."""

SCHEMA = 1
_FRESH = 2_000_000_000  # nanoseconds: a folder changed this recently may change again within its clock's tick


class Found(Record):
    """One entry point.

    Parameters:
        group: its group.
        name: its name.
        value: ``module`` or ``module:attribute``.
        distribution: name of the distribution that has it.
        version: the distribution's version.
    """

    group: str
    name: str
    value: str
    distribution: str = ""
    version: str = ""

    @property
    def provider(self) -> str:
        """Distribution and version, such as ``hookturn-slack 1.2``."""
        return f"{self.distribution} {self.version}".strip()

    @property
    def builtin(self) -> bool:
        """Whether hookturn itself brings it."""
        return normal(self.distribution) == OWN


def entry_points(*, refresh: bool = False) -> tuple[list[Found], list[Problem]]:
    """Return all entry points of groups that begin with ``hookturn``, by distribution name, then entry name.

    Parameters:
        refresh: read the metadata even if the cache is fresh.
    """
    key = _key()
    if not refresh:
        cached = _cached(key)
        if cached is not None:
            return cached, []
    found, problems = _scan()
    if not problems:
        _store(key, found)
    return found, problems


def _key() -> dict[str, Any]:
    """What the list depends on: the interpreter, and the folders on sys.path with their times of change."""
    import os
    import sys

    folders = []
    for entry in dict.fromkeys(sys.path):
        folder = os.path.abspath(entry) if isinstance(entry, str) else str(entry)
        try:
            changed = os.stat(folder).st_mtime_ns
        except (OSError, ValueError):
            changed = -1
        folders.append([folder, changed])
    return {"schema": SCHEMA, "python": sys.version, "folders": folders}


def _name(key: dict[str, Any]) -> str:
    """The cache file's key: without the times, so that a newer list takes the old one's place."""
    return dumps([key["python"], [folder for folder, _ in key["folders"]]])


def _cached(key: dict[str, Any]) -> list[Found] | None:
    data = cache.load("entry-points", _name(key))
    try:
        return [Found(*row) for row in data["found"]] if data["key"] == key else None
    except (KeyError, TypeError):  # EventError is a TypeError
        return None


def _store(key: dict[str, Any], found: list[Found]) -> None:
    from time import time_ns

    if any(abs(time_ns() - changed) < _FRESH for _, changed in key["folders"]):
        return
    rows = [[item.group, item.name, item.value, item.distribution, item.version] for item in found]
    cache.store("entry-points", _name(key), {"key": key, "found": rows})


def _scan() -> tuple[list[Found], list[Problem]]:
    import importlib_metadata

    problems: list[Problem] = []
    points: list[Any] = []
    try:
        points = [point for point in importlib_metadata.entry_points() if _ours(point.group)]
    except Exception:
        points = _scan_each(problems)
    found = []
    for point in points:
        try:
            name, version = point.dist.name or "", point.dist.version or ""
        except Exception as error:  # metadata are files that anybody may have damaged
            problems.append(
                Problem(
                    "", 0, 0, "", f"the metadata of the distribution with entry point {point.name!r} "
                    f"cannot be read: {safe_text(error)}", "Install it again.",
                )
            )  # fmt: skip
            continue
        found.append(Found(point.group, point.name, point.value, name, version))
    found.sort(key=lambda item: (item.group, normal(item.distribution), normal(item.name), item.name))
    return found, problems


def _ours(group: str) -> bool:
    return group == PLUGINS or group.startswith(PLUGINS + ".")


def _scan_each(problems: list[Problem]) -> list[Any]:
    """Read distribution by distribution, so that one with damaged metadata does not hide the others."""
    import importlib_metadata

    points: list[Any] = []
    seen: set[str] = set()
    for distribution in importlib_metadata.distributions():
        try:
            name = normal(distribution.name or "")
            if name in seen:
                continue
            seen.add(name)
            points += [point for point in distribution.entry_points if _ours(point.group)]
        except Exception as error:
            where = str(getattr(distribution, "_path", "a distribution"))
            problems.append(
                Problem(
                    where,
                    0,
                    0,
                    "",
                    f"its entry points cannot be read: {safe_text(error)}",
                    "Install it again.",
                )
            )
    return points


def split_duplicates(found: Iterable[Found]) -> tuple[list[Found], list[tuple[Found, Found]]]:
    """Return the entry points with different names, and (ignored, kept) pairs of those with the same.

    Names are compared normalised. Ours wins over any other, else the first in order.
    """
    found = list(found)
    kept: dict[str, Found] = {}
    doubles: list[tuple[Found, Found]] = []
    ordered = sorted(found, key=lambda item: not item.builtin)  # stable
    for item in ordered:
        name = normal(item.name)
        if name in kept:
            doubles.append((item, kept[name]))
        else:
            kept[name] = item
    order = {id(item): index for index, item in enumerate(found)}
    return sorted(kept.values(), key=lambda item: order[id(item)]), doubles


def load(found: Found) -> Any:
    """Import what an entry point names.

    Raises:
        RegistrationError: when it cannot be imported (SystemExit at import included) or is not there.
    """
    module_name, _, attributes = found.value.partition("[")[0].strip().partition(":")
    try:
        target: Any = import_module(module_name.strip())
    except (Exception, SystemExit) as error:
        raise _refused(
            found,
            f"import of {module_name.strip()} failed: {type(error).__name__}: {safe_text(error)}",
            f"Mend or reinstall it, or switch it off with 'plugins: {{{found.name}: false}}'.",
        ) from error
    for attribute in filter(None, attributes.strip().split(".")):
        try:
            target = getattr(target, attribute)
        except (Exception, SystemExit) as error:
            raise _refused(
                found,
                f"{module_name.strip()} has no usable {attribute!r}: {safe_text(error)}",
                "Correct the entry point in the plugin's pyproject.toml.",
            ) from error
    return target


def _refused(found: Found, cause: str, remedy: str) -> RegistrationError:
    return RegistrationError(found.name, cause, remedy, distribution=found.provider)


def make(
    found: Found, entry: PluginEntry | None, base_dir: str, wrong: list[Wrong], *, strict: bool = False
) -> tuple[Any, Any]:
    """Load a plugin and make it ready to register.

    Parameters:
        found: its entry point.
        entry: what the configuration says of it, or None.
        base_dir: the folder that relative paths in its settings start from.
        wrong: gets what is wrong with its settings; with an error in it, the plugin is refused.
        strict: it is required or managed: where its Config has a setting ``on_failure``, that is
            ``deny`` unless the configuration says otherwise.

    Returns:
        the plugin (a module or an instance) and its settings: an object of its Config, else a mapping.

    Raises:
        RegistrationError: when it cannot be loaded or refuses its settings.
    """
    from ..runners.factory import call
    from ..spec.functions import takes_argument
    from .secrets import resolve
    from .settings import build, config_of, declares

    target = load(found)
    cls = config_of(target)
    settings: dict[str, Any] = {}
    if entry is not None:
        from ..spec.record import thaw

        settings = thaw(entry.settings)
        if entry.mode and declares(cls, "mode"):
            settings["mode"] = entry.mode
    if strict and declares(cls, "on_failure"):
        settings.setdefault("on_failure", "deny")
    settings = resolve(settings, base_dir, wrong)
    factory = _is_factory(target)
    if cls is not None:
        config = build(cls, settings, wrong)
    else:
        config = settings
        if settings and factory and not takes_argument(target):
            wrong.append(Wrong((), "the plugin takes no settings", f"Write '{found.name}: true'."))
    errors = [item for item in wrong if item.severity == "error"]
    if errors:
        raise _refused(found, f"its settings are wrong: {errors[0].cause}", errors[0].remedy)
    if not factory:
        return target, config
    try:
        plugin = call(target, config)
    except (Exception, SystemExit) as error:
        raise _refused(
            found,
            f"its factory {found.value} failed: {type(error).__name__}: {safe_text(error)}",
            "Mend it, or switch the plugin off.",
        ) from error
    if plugin is None:
        raise _refused(found, f"its factory {found.value} returned None", "Return the plugin.")
    return plugin, config


def _is_factory(target: Any) -> bool:
    """Whether an entry point names something to call: a class or a function. Modules and instances are plugins."""
    from ..spec.functions import is_routine

    return isinstance(target, type) or is_routine(target)
