"""Runs the Python modules of role.yaml: each entry's own module object, with handlers in snake_case or camelCase."""

from __future__ import annotations

import os
import sys

from ...engine.capabilities import logger
from ...runners.entry import Configured
from ...runners.module import load as load_module
from ...spec.answers import Answer, Rewrite
from ...spec.errors import RegistrationError, did_you_mean
from ...spec.markers import hookimpl
from ...spec.record import safe_text, thaw
from .context import AFTER, BEFORE, EVENT, TRANSFORM, Log, RoleContext
from .roles import TIMING_OF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

    from ...runners.entry import HookEntry

CHAT = "chat.message"

HANDLERS = {
    CHAT: ("on_chat_message", "onChatMessage"),
    BEFORE: ("on_tool_before", "onToolBefore"),
    AFTER: ("on_tool_after", "onToolAfter"),
    TRANSFORM: ("on_system_transform", "onSystemTransform"),
    EVENT: ("on_event", "onEvent"),
    "load": ("on_load", "onLoad"),
    "dispose": ("on_dispose", "onDispose"),
}
"""Event -> names of its handler."""

OBJECTS = ("default", "hook", "plugin")
"""Names in a module that may hold an object, a class or a dict with the handlers, as ``export default`` does."""

TIMEOUT = 5.0
"""Seconds that a handler in JavaScript has."""

LOAD_SECONDS, DISPOSE_SECONDS = 9.5, 4.5
"""Less than the engine gives, so that a late handler costs a warning and not the hook."""

_failed: dict[tuple[str, str], tuple[tuple[int, ...], str, str]] = {}


class Input(dict):  # type: ignore[type-arg]
    """A handler's second argument: a dict whose values are attributes, too."""

    def __getattr__(self, name: str) -> Any:
        try:
            return self[name]
        except KeyError:
            raise AttributeError(name) from None


def clear() -> None:
    """Forget which modules could not be loaded."""
    _failed.clear()


def load(entry: HookEntry) -> Any:
    """Load an entry's module. One that failed is not tried again before its file changes, or ``clear``.

    Raises:
        RegistrationError: when it cannot be loaded.
    """
    key = (entry.path, entry.digest)
    look = _look(entry.path)
    known = _failed.get(key)
    if known is not None and known[0] == look:
        raise RegistrationError(entry.name, known[1], known[2])
    try:
        return load_module(entry)
    except RegistrationError as error:
        if not os.path.isfile(entry.path):  # the general remedy has hookturn.yaml's words
            error = RegistrationError(entry.name, error.cause, "Correct the path under 'module:'.")
        if len(_failed) > 1000:  # paths come from configuration; the bound is for a resident process
            _failed.clear()
        _failed[key] = (look, error.cause, error.remedy)
        told = logger("custom-loader").bind(modulePath=entry.path, err=error.cause)
        told.warning("Failed to load custom hook module")
        raise error from error.__cause__


def _look(path: str) -> tuple[int, ...]:
    try:
        found = os.stat(path)
    except OSError:
        return ()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns)


def handlers_of(entry: HookEntry, module: Any) -> dict[str, Any]:
    """Return event -> handler of a module; ``load`` and ``dispose`` are events here.

    Raises:
        RegistrationError: when the class that holds them cannot be called.
    """
    owners: list[Any] = []
    for name in OBJECTS:
        owner = getattr(module, name, None)
        if isinstance(owner, type):
            try:
                owner = owner()
            except (Exception, SystemExit) as error:
                cause = f"{entry.path}: {name}() failed: {type(error).__name__}: {safe_text(error)}"
                raise RegistrationError(entry.name, cause, "Correct the Python code.") from error
        if owner is not None:
            owners.append(owner)
    owners.append(module)
    found = {}
    for event, names in HANDLERS.items():
        for owner in owners:
            handler = next((item for name in names if callable(item := _member(owner, name))), None)
            if handler is not None:
                found[event] = handler
                break
    return found


def _member(owner: Any, name: str) -> Any:
    return owner.get(name) if isinstance(owner, dict) else getattr(owner, name, None)


def make(entry: HookEntry, config: Mapping[str, Any]) -> Configured:
    """Return the plugin of an entry whose module is a Python file.

    Parameters:
        entry: the hook; ``extra`` holds its declared name, events and phase.
        config: its settings.

    Raises:
        RegistrationError: when the module cannot be loaded or has no handler for any of the events.
    """
    module = load(entry)
    handlers = handlers_of(entry, module)
    events = [event for event in entry.extra["events"] if event in handlers]
    if not events:
        raise RegistrationError(entry.name, *_no_handler(entry, module))
    hook = RoleHook(entry, config)
    hooks: dict[str, Any] = {TIMING_OF[event]: hook.at(event, _caller(handlers[event])) for event in events}
    hooks["on_load"] = hook.loads(handlers.get("load"))
    if "dispose" in handlers:
        hooks["on_dispose"] = hook.disposes(handlers["dispose"])
    plugin = Configured(entry.name, hooks)
    from weakref import finalize

    finalize(plugin, sys.modules.pop, module.__name__, None)
    return plugin


def _no_handler(entry: HookEntry, module: Any) -> tuple[str, str]:
    wanted = [HANDLERS[event][0] for event in entry.extra["events"]]
    names = [name for name in vars(module) if not name.startswith("_")]
    near = next((near for word in wanted if (near := did_you_mean(word, names))), "")
    cause = f"{entry.path} has no {' and no '.join(wanted)}{near}, so the hook would never run"
    return cause, f"Define `def {wanted[0]}(ctx, input):`, or correct the hook's events."


class RoleHook:
    """One entry of ``hooks.custom``.

    Parameters:
        entry: the hook.
        config: its settings.
    """

    def __init__(self, entry: HookEntry, config: Mapping[str, Any]) -> None:
        self.name: str = entry.extra["name"]
        self.events: list[str] = list(entry.extra["events"])
        self.phase: str = entry.options.get("phase", "after")
        self.functions: str = entry.extra.get("functions", "")
        self.config = thaw(dict(config)) if config else None
        self.log = Log(self.name)

    def _context(self, **about: Any) -> RoleContext:
        return RoleContext(
            self.name, self.config, self.log, phase=self.phase, functions=self.functions, **about
        )

    def at(self, event_name: str, call: Any, *, timeout: float | None = None, dry: bool = True) -> Any:
        """Return the hook function of one event.

        Parameters:
            event_name: as role.yaml calls it.
            call: gets the ctx and the input; may return an awaitable.
            timeout: seconds, for what can be stopped.
            dry: whether it runs for dry events, too.
        """

        @hookimpl(timeout=timeout)
        def run(event: Any, ctx: Any) -> Any:
            if event.dry_run and not dry:
                return None
            own = self._context(event_name=event_name, event=event, ctx=ctx)
            if event_name == TRANSFORM and self.phase == "after":
                _deliver(ctx)
            data = _input(event_name, event)
            own.system = data.get("system")
            try:
                result = call(own, data)
            except (Exception, SystemExit) as error:
                self._tell(event_name, error)
                raise
            if hasattr(result, "__await__"):
                return finish(result, own, data, event)
            return _answers(event_name, own, data, event, result)

        async def finish(result: Any, own: RoleContext, data: Input, event: Any) -> Any:
            try:
                result = await result
            except Exception as error:  # rolebox's own log line; the engine has the failure, too
                self._tell(event_name, error)
                raise
            return _answers(event_name, own, data, event, result)

        return run

    def _tell(self, event_name: str, error: BaseException) -> None:
        told = logger("custom-registry").bind(err=f"{type(error).__name__}: {safe_text(error)}")
        told.warning('Custom hook "{}" failed on {}', self.name, event_name)

    def loads(self, handler: Any) -> Any:
        """Return the hook's on_load: a handler that fails costs a warning."""
        once = self._once("onLoad", handler, LOAD_SECONDS)

        def registered() -> None:
            # Importing loguru takes 80 ms: who listens to debug messages has done so.
            if "loguru" in sys.modules:
                logger("custom-registry").bind(name=self.name, events=self.events).debug(
                    "Registered custom hook"
                )

        @hookimpl
        def on_load() -> Any:
            result = once() if once is not None else None
            if result is None:
                return registered()

            async def finish() -> None:
                await result
                registered()

            return finish()

        return on_load

    def disposes(self, handler: Any) -> Any:
        """Return the hook's on_dispose."""
        once = self._once("onDispose", handler, DISPOSE_SECONDS)

        @hookimpl
        def on_dispose() -> Any:
            return once() if once is not None else None

        return on_dispose

    def _once(self, what: str, handler: Any, seconds: float) -> Any:
        """Return a function that calls a lifecycle handler within a time limit; failures are warnings."""
        if handler is None:
            return None
        call = _caller(handler)

        def fail(error: BaseException) -> None:
            told = logger("custom-registry").bind(err=f"{type(error).__name__}: {safe_text(error)}")
            told.warning('Custom hook "{}" {} threw', self.name, what)

        def run() -> Any:
            from ...engine.waiting import run_on_thread

            try:
                result = run_on_thread(lambda: call(self._context(), Input()), seconds)
            except (Exception, SystemExit) as error:
                fail(error)
                return None
            return wait(result) if hasattr(result, "__await__") else None

        async def wait(result: Any) -> None:
            from asyncio import wait_for

            try:
                await wait_for(result, seconds)
            except Exception as error:  # a handler of onLoad or onDispose costs a warning, as in rolebox
                fail(error)

        return run


def _deliver(ctx: Any) -> None:
    """Inject what an after hook of an earlier system prompt had to say."""
    if not ctx.state.get("later"):
        return
    with ctx.state as values:
        texts = values.pop("later", [])
    for text in texts:
        ctx.inject(text)


def _input(event_name: str, event: Any) -> Input:
    """Return a handler's second argument: copies, so that nothing changes unless we say so."""
    if event_name == CHAT:
        return Input(text=event.text)
    if event_name == BEFORE:
        return Input(tool=event.tool, args=thaw(event.args))
    if event_name == AFTER:
        result = event.result
        output = result if isinstance(result, str) else event.result_text
        return Input(tool=event.tool, args=thaw(event.args), output=output)
    if event_name == TRANSFORM:
        return Input(system=list(event.parts))
    return Input(type=event.type, properties=thaw(event.properties))


def _answers(event_name: str, own: RoleContext, data: Input, event: Any, result: Any) -> Any:
    """Return what a handler came to: what it said with ctx, what it changed in place, and hookturn answers it returned."""
    answers: list[Answer] = list(own.answers)
    if event_name == BEFORE and data["args"] != event.args:
        answers.append(Rewrite(args=data["args"]))
    if event_name == TRANSFORM and own.system is not None and own.system != list(event.parts):
        if not all(isinstance(part, str) for part in own.system):
            raise TypeError("the system prompt is a list of str")
        answers.append(Rewrite(own.system))
    # Other return values are ignored, as they are in rolebox.
    returned = result if isinstance(result, list) else [result]
    answers += [item for item in returned if isinstance(item, Answer)]
    return answers or None


def _caller(handler: Any) -> Callable[[RoleContext, Input], Any]:
    """Return a call of a handler with as much as it takes: ``(ctx, input)``, ``(ctx, tool, args)``, ``(ctx)``, ``()``."""
    import inspect

    try:
        parameters = list(inspect.signature(handler).parameters.values())
    except (TypeError, ValueError):
        return lambda ctx, data: handler(ctx, data)
    positional = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    if any(parameter.kind is parameter.VAR_POSITIONAL for parameter in parameters):
        return lambda ctx, data: handler(ctx, data)
    names = [parameter.name for parameter in parameters if parameter.kind in positional]
    rest = [parameter.name for parameter in parameters[1:] if parameter.kind is not parameter.VAR_KEYWORD]
    if not names:
        return lambda ctx, data: handler()
    if rest and all(name in _FIELDS for name in rest):
        return lambda ctx, data: handler(ctx, **{name: data.get(name) for name in rest})
    if len(names) == 1:
        return lambda ctx, data: handler(ctx)
    return lambda ctx, data: handler(ctx, data)


_FIELDS = frozenset(("text", "tool", "args", "output", "system", "type", "properties"))
