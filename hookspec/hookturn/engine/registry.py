"""Registers pluggy plugins and refuses what pluggy would accept silently and never call.

A refusal names plugin, distribution, hook, cause and remedy. pluggy itself is imported when somebody asks for
its manager (``Registry.manager``): with what it imports it would be half of the time of an agent's call.
"""

from __future__ import annotations

from functools import partial
from types import ModuleType

from ..spec import timings as builtin_timings
from ..spec.errors import RegistrationError, did_you_mean
from ..spec.functions import is_coroutine_function, is_routine, positional, static
from ..spec.markers import OPTIONS, TIMING
from ..spec.timings import LifecycleSpecs, Timing
from .match import check_tool_pattern

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from ..spec.events import Event
    from .manager import Manager

LIFECYCLE_HOOKS = ("on_load", "on_dispose")
"""Hooks that take ``ctx`` only."""

LAYERS = ("host", "managed", "user", "project", "installed", "builtin")
"""Where a plugin comes from: the embedding program, a configuration layer, a distribution, this package."""

_DEFAULTS: dict[str, Any] = {
    "guard": False,
    "priority": 50,
    "tools": None,
    "agents": None,
    "event_types": None,
    "condition": None,
    "timeout": None,
    "on_failure": "ignore",
    "mode": "enforce",
}


class Plugin:
    """A registered plugin.

    Attributes:
        name: its unique name.
        hook_name: what records call its hooks.
        plugin: the object itself.
        source: where it was declared, such as ``hookturn.yaml:3``; or "".
        layer: one of LAYERS.
        distribution: name and version of the distribution that brought it, or "".
        config: its settings, as ``ctx.config``.
        index: registration number.
        hooks: names of the timings that it implements.
        unmarked: functions that are named like a timing and never called, for they lack ``@hookimpl``.
        options: what a configuration adds to or sets over the hookimpls' own options.
        context: makes the hook's ctx for an event (set by the engine).
    """

    def __init__(
        self,
        name: str,
        plugin: object,
        index: int,
        *,
        source: str = "",
        layer: str = "host",
        distribution: str = "",
        config: Any = None,
        options: Mapping[str, Any] | None = None,
    ) -> None:
        self.name = name
        self.hook_name = name
        self.plugin = plugin
        self.index = index
        self.source = source
        self.layer = layer
        self.distribution = distribution
        self.config = config
        self.options = dict(options or {})
        self.hooks: tuple[str, ...] = ()
        self.unmarked: tuple[str, ...] = ()
        self.implementations: dict[str, dict[str, Any]] = {}
        self.context: Callable[..., Any] = _no_context

    def error(self, cause: str, remedy: str, hook: str = "") -> RegistrationError:
        """Return the refusal of this plugin."""
        return RegistrationError(self.name, cause, remedy, hook=hook, distribution=self.distribution)

    def note_async(self, function: Callable[..., Any]) -> None:
        """Remember that a function that is no coroutine function returned an awaitable."""
        for found in self.implementations.values():
            if found["function"] == function:
                found["options"]["is_async"] = True

    def __repr__(self) -> str:
        return f"<Plugin {self.name!r} ({self.layer}): {', '.join(self.hooks)}>"


def _no_context(event: Event, watching: bool = False) -> Any:
    raise RuntimeError("the plugin is not registered with an engine")


class Registry:
    """All timings and plugins of one engine.

    Parameters:
        hookspecs: functions marked with ``hookspec``, or modules and objects that hold such functions.
    """

    def __init__(self, hookspecs: Iterable[Any] = ()) -> None:
        self.timings: dict[str, Timing] = dict(builtin_timings.TIMINGS)
        self.plugins: dict[str, Plugin] = {}
        self._manager: Manager | None = None
        self._count = 0
        for specs in hookspecs:
            self.add_hookspecs(specs)

    @property
    def manager(self) -> Manager:
        """pluggy's manager, with every spec and plugin; it is kept up to date from then on.

        Register plugins with the engine, not here: it checks more.

        Raises:
            RegistrationError: when it is made now, and pluggy refuses a plugin that is registered.
        """
        if self._manager is None:
            from .manager import Manager

            manager = Manager()
            manager.add_specs([_spec(LifecycleSpecs.on_load), _spec(LifecycleSpecs.on_dispose)])
            manager.add_specs(timing.function for timing in self.timings.values())
            for record in self.plugins.values():
                manager.add(record)
            self._manager = manager
        return self._manager

    def add_hookspecs(self, specs: Any, *, distribution: str = "") -> list[str]:
        """Add timings of a framework's own.

        Parameters:
            specs: a function marked with ``hookspec``, or a module or object that holds some.
            distribution: who brings them, for messages.

        Returns:
            the names of the new timings.

        Raises:
            RegistrationError: for a name that exists, firstresult or historic specs, or nothing marked.
        """
        owner = getattr(specs, "__name__", type(specs).__name__)
        candidates = [specs] if callable(specs) and hasattr(specs, TIMING) else _routines(specs)
        found = []
        for function in candidates:
            options = getattr(function, "hookturn_spec", None)
            if options is None:
                continue
            name = function.__name__
            if options.get("firstresult") or options.get("historic"):
                raise RegistrationError(
                    owner,
                    "firstresult and historic specs have no place in the fold",
                    "Use the `merge` of an own Answer class instead.",
                    hook=name,
                    distribution=distribution,
                )
            if not hasattr(function, TIMING):
                raise RegistrationError(
                    owner,
                    "the spec was marked with pluggy's own marker and has no event class",
                    "Mark it with `hookturn.hookspec(event=...)`.",
                    hook=name,
                    distribution=distribution,
                )
            if name in self.timings or name in LIFECYCLE_HOOKS:
                if name in self.timings and self.timings[name].function is function:
                    continue  # an imported one of ours
                raise RegistrationError(
                    owner,
                    "a timing of this name exists already",
                    "Choose another name.",
                    hook=name,
                    distribution=distribution,
                )
            if _names(function) != ["event", "ctx"]:
                raise RegistrationError(
                    owner,
                    "a hook specification takes exactly `event` and `ctx`",
                    f"Write `def {name}(event, ctx)`.",
                    hook=name,
                    distribution=distribution,
                )
            found.append(function)
        if not found:
            raise RegistrationError(
                owner,
                "it holds no hook specification",
                "Mark functions with `hookturn.hookspec(event=...)`.",
                distribution=distribution,
            )
        if self._manager is not None:
            self._manager.add_specs(found)
        for function in found:
            self.timings[function.__name__] = Timing(function)
        return [function.__name__ for function in found]

    def add(self, plugin: object, name: str | None = None, **about: Any) -> Plugin:
        """Check and register a plugin.

        Parameters:
            plugin: an instance, or a module.
            name: its name; default: its ``hookturn_name``, its module's or its class's name.
            about: the keyword arguments of ``Plugin``.

        Raises:
            RegistrationError: when it is refused; nothing of it stays registered.
        """
        given = name or _name_of(plugin)
        record = Plugin(self._free(given) if name is None else given, plugin, self._count, **about)
        if record.name in self.plugins:
            other = self.plugins[record.name]
            provider = other.distribution or other.source or type(other.plugin).__name__
            raise record.error(
                f"a plugin of this name is registered already (by {provider})",
                "Give one of them another name.",
            )
        self._check_alone(record)
        record.implementations = self._scan(record)
        record.hooks = tuple(implementation["timing"] for implementation in record.implementations.values())
        if self._manager is not None:
            self._manager.add(record)
        self._count += 1
        self.plugins[record.name] = record
        return record

    def remove(self, name: str) -> Plugin:
        """Unregister a plugin and return what was known of it.

        Raises:
            KeyError: when there is none of this name.
        """
        record = self.plugins.pop(name)
        if self._manager is not None:
            self._manager.unregister(name=name)
        return record

    def implementations(self, timing: str) -> list[tuple[Plugin, Callable[..., Any], dict[str, Any]]]:
        """Return (plugin, function, options) of a timing's implementations in registration order."""
        return [
            (record, found["function"], found["options"])
            for record in self.plugins.values()
            for found in record.implementations.values()
            if found["timing"] == timing
        ]

    def _check_alone(self, record: Plugin) -> None:
        """Refuse an object that is registered already: pluggy tells plugins apart by equality."""
        for other in self.plugins.values():
            try:
                same = other.plugin is record.plugin or bool(other.plugin == record.plugin)
            except Exception as error:
                raise record.error(
                    f"it cannot be compared with other plugins: {type(error).__name__}", "Mend its `__eq__`."
                ) from error
            if same:
                raise record.error(
                    f"this plugin is registered already, as {other.name!r}",
                    "Register each plugin object once (equal dataclass instances count as one: use `eq=False`).",
                )

    def _free(self, name: str) -> str:
        number, free = 2, name
        while free in self.plugins:
            free = f"{name}-{number}"
            number += 1
        return free

    def _scan(self, record: Plugin) -> dict[str, dict[str, Any]]:
        plugin = record.plugin
        if isinstance(plugin, type):
            raise record.error(
                "a class was given where an instance was meant", f"Pass `{plugin.__name__}()`."
            )
        if is_routine(plugin):
            raise record.error(
                "a function was given where a plugin was meant", "Pass the plugin that it returns."
            )
        try:
            hash(plugin)
        except Exception:
            raise record.error(
                "plugins must be hashable", "Define `__hash__`, or use `eq=False` for a dataclass."
            ) from None
        known = {*self.timings, *LIFECYCLE_HOOKS}
        found: dict[str, dict[str, Any]] = {}
        unmarked = []
        for name in dir(plugin):
            if name.startswith("__"):
                continue
            held = static(plugin, name)
            if isinstance(held, property):
                continue
            if isinstance(held, partial):  # looking one up on an instance warns from Python 3.13 on
                if name in known or hasattr(held, "hookturn_impl"):
                    raise record.error(
                        "a functools.partial is never called by pluggy", "Write a function.", name
                    )
                continue
            method = _attribute(plugin, name)
            marks = _attribute(method, "hookturn_impl")
            if not isinstance(marks, dict):
                if name in known and is_routine(method):
                    unmarked.append(name)
                continue
            if not is_routine(method):
                raise record.error("only functions and methods can be hooks", "Write a function.", name)
            timing = marks.get("specname") or name
            if timing not in known:
                if marks.get("optionalhook"):
                    continue
                raise record.error(
                    f"there is no hook timing {timing!r}{did_you_mean(timing, known)}",
                    "Use one of the names of `hookturn.spec.timings`, or mark it `optionalhook=True`.",
                    name,
                )
            if marks.get("wrapper") or marks.get("hookwrapper"):
                raise record.error(
                    "wrappers have no place in the fold",
                    "Use on_outcome to watch, a guard to have the last word.",
                    name,
                )
            if marks.get("tryfirst") and marks.get("trylast"):
                raise record.error("tryfirst and trylast exclude each other", "Choose one.", name)
            wants = self._parameters(record, name, method, timing)
            options = self._options(record, name, method, marks)
            if timing in LIFECYCLE_HOOKS:
                if "event" in wants:
                    raise record.error(f"{timing} has no event", "Take `ctx`, or nothing.", name)
            elif options["guard"] and not self.timings[timing].can_deny:
                raise record.error(
                    f"a guard can stop nothing at {timing}",
                    "Put it on a timing that takes Deny or Block.",
                    name,
                )
            found[name] = {
                "timing": timing,
                "function": method,
                "pluggy": marks,
                "options": {**options, "wants": wants, "is_async": is_coroutine_function(method)},
            }
        timings = [item["timing"] for item in found.values()]
        for timing in timings:
            if timings.count(timing) > 1:
                names = [name for name, item in found.items() if item["timing"] == timing]
                raise record.error(f"{' and '.join(names)} both implement {timing}", "Merge them.", names[0])
        if not found:
            if unmarked:
                raise record.error(
                    f"{', '.join(unmarked)} is not marked as a hook",
                    "Decorate it with `@hookimpl`.",
                    unmarked[0],
                )
            raise record.error("it has no hook", "Decorate a function with `@hookimpl`.")
        # Functions that a module merely imported are none of its business.
        home = plugin.__name__ if isinstance(plugin, ModuleType) else None
        record.unmarked = tuple(
            name
            for name in unmarked
            if name not in timings and home in (None, getattr(_attribute(plugin, name), "__module__", None))
        )
        return found

    def _parameters(self, record: Plugin, name: str, method: Any, timing: str) -> tuple[str, ...]:
        names = positional(method)
        if names is not None and set(names) <= {"event", "ctx"}:
            return names
        import inspect

        try:
            parameters = list(inspect.signature(method).parameters.values())
        except (TypeError, ValueError) as error:
            raise record.error(
                f"its parameters cannot be read: {error}", "Write a plain function.", name
            ) from None
        found = []
        for parameter in parameters:
            if parameter.kind is parameter.VAR_KEYWORD or parameter.kind is parameter.VAR_POSITIONAL:
                star = "**" if parameter.kind is parameter.VAR_KEYWORD else "*"
                raise record.error(
                    f"{star}{parameter.name} receives nothing from pluggy",
                    "Name `event`, `ctx`, both or none.",
                    name,
                )
            if parameter.kind is parameter.KEYWORD_ONLY:
                raise record.error(
                    f"the keyword-only parameter {parameter.name!r} cannot be filled",
                    "Make it an ordinary parameter: `event`, `ctx`, both or none.",
                    name,
                )
            if parameter.default is not parameter.empty:
                raise record.error(
                    f"the parameter {parameter.name!r} has a default", "Remove the default.", name
                )
            if parameter.name not in ("event", "ctx"):
                raise record.error(
                    f"unknown parameter {parameter.name!r}{did_you_mean(parameter.name, ('event', 'ctx'))}",
                    "A hook takes `event`, `ctx`, both or none.",
                    name,
                )
            found.append(parameter.name)
        return tuple(found)

    def _options(self, record: Plugin, name: str, method: Any, marks: Mapping[str, Any]) -> dict[str, Any]:
        options = {**_DEFAULTS, **getattr(method, OPTIONS, {})}
        options["tryfirst"], options["trylast"] = bool(marks.get("tryfirst")), bool(marks.get("trylast"))
        for key, value in record.options.items():
            if key == "phase":
                if value not in ("before", "after", "", None):
                    raise record.error(
                        "phase must be one of before, after", "Leave it out for neither.", name
                    )
                options["tryfirst"], options["trylast"] = value == "before", value == "after"
            elif key in _DEFAULTS:
                options[key] = value
            else:
                raise record.error(
                    f"unknown option {key!r}{did_you_mean(key, _DEFAULTS)}", "Remove it.", name
                )
        if isinstance(options["priority"], bool) or not isinstance(options["priority"], int):
            raise record.error("priority must be an int", "Lower runs earlier; the default is 50.", name)
        timeout = options["timeout"]
        if timeout is not None and (
            isinstance(timeout, bool) or not isinstance(timeout, (int, float)) or not 0 < timeout < 1e9
        ):
            raise record.error("timeout must be seconds above 0", "Leave it out for the default.", name)
        for key, choices in (("on_failure", ("ignore", "deny")), ("mode", ("enforce", "monitor"))):
            if options[key] not in choices:
                raise record.error(f"{key} must be one of {', '.join(choices)}", "Correct it.", name)
        for key in ("tools", "agents", "event_types"):
            if options[key] is not None:
                if isinstance(options[key], str) or not all(isinstance(item, str) for item in options[key]):
                    raise record.error(f"{key} must be a list of str", "Correct it.", name)
                options[key] = tuple(options[key])
        for pattern in options["tools"] or ():
            problem = check_tool_pattern(pattern)
            if problem:
                raise record.error(problem, "Put such rules under `permissions:`.", name)
        return options


def _names(function: Any) -> list[str]:
    """Return the names of a function's parameters."""
    names = positional(function)
    if names is None:
        from inspect import signature

        return list(signature(function).parameters)
    return list(names)


def _spec(function: Callable[..., Any]) -> Callable[..., Any]:
    function.hookturn_spec = {  # type: ignore[attr-defined]
        "firstresult": False,
        "historic": False,
        "warn_on_impl": None,
        "warn_on_impl_args": None,
    }
    return function


def _routines(owner: Any) -> list[Any]:
    names = list(vars(owner)) if isinstance(owner, ModuleType) else dir(owner)
    values = (_attribute(owner, name) for name in names if not name.startswith("__"))
    return [value for value in values if is_routine(value)]


def _attribute(owner: Any, name: str) -> Any:
    """The attribute, or None: what stands in a plugin's namespace may raise anything when it is looked at."""
    try:
        return getattr(owner, name, None)
    except Exception:  # a descriptor, a proxy outside of its context
        return None


def _name_of(plugin: object) -> str:
    name = getattr(plugin, "hookturn_name", None)
    if isinstance(name, str) and name:
        return name
    if isinstance(plugin, ModuleType):
        return plugin.__name__
    return plugin.__name__ if isinstance(plugin, type) else type(plugin).__name__
