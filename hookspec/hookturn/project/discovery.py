"""Finds installed plugins by their entry points, in a fixed order, and loads them apart from each other.

Groups: ``hookturn`` (plugins: a module, an instance, or a factory that may take
settings), ``hookturn.hookspecs`` (timings of frameworks), ``hookturn.commands``
(commands for the CLI). The list is kept in a cache, keyed by the folders on
``sys.path`` and the times of their last change.
"""

from __future__ import annotations

from ..spec.errors import RegistrationError
from ..spec.record import Record, safe_text
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
_KEPT = 64  # cache files of other sys.paths
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


def _cache_file(key: dict[str, Any]) -> str:
    import json
    import os
    from hashlib import sha256

    from ..paths import state_root

    paths = json.dumps([key["python"], [folder for folder, _ in key["folders"]]])
    name = f"entry-points-{sha256(paths.encode()).hexdigest()[:32]}.json"
    return os.path.join(state_root(), "cache", name)


def _cached(key: dict[str, Any]) -> list[Found] | None:
    """Return the list from the cache; None when it is missing, old, damaged or not ours."""
    import json
    import os

    from ..paths import open_private
    from ..platform import user_id

    try:
        with open(open_private(_cache_file(key)), "rb") as file:
            found = os.fstat(file.fileno())
            if user_id() not in (None, found.st_uid):
                return None
            data = json.loads(file.read())
        if data["key"] != key:
            return None
        return [Found(*row) for row in data["found"]]
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        # A cache is only a shortcut: whatever is wrong with it, the metadata are read.
        return None


def _store(key: dict[str, Any], found: list[Found]) -> None:
    import json
    import os
    from time import time_ns

    from ..paths import private_dir, state_root, write_private

    if any(abs(time_ns() - changed) < _FRESH for _, changed in key["folders"]):
        return
    path = _cache_file(key)
    rows = [[item.group, item.name, item.value, item.distribution, item.version] for item in found]
    try:
        root = private_dir(state_root())
        folder = private_dir(os.path.dirname(path), base=root)
        new = not os.path.lexists(path)
        write_private(path, json.dumps({"key": key, "found": rows}).encode(), base=root)
        if new:
            _prune(os.fspath(folder))
    except OSError:
        return  # a read-only home: the next run reads the metadata again


def _prune(folder: str) -> None:
    """Keep the newest cache files only: every other sys.path leaves one."""
    import os

    files = [os.path.join(folder, name) for name in os.listdir(folder) if name.startswith("entry-points-")]
    if len(files) <= _KEPT:
        return

    def age(path: str) -> float:
        try:
            return os.stat(path).st_mtime
        except OSError:
            return 0.0

    for path in sorted(files, key=age)[:-_KEPT]:
        try:
            os.unlink(path)
        except FileNotFoundError:
            continue  # another process was faster


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
    from importlib import import_module

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
    from ..runners.factory import call, takes_settings
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
        if settings and factory and not takes_settings(target):
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
    import inspect

    return isinstance(target, type) or inspect.isroutine(target)
