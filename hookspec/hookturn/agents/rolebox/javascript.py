"""Runs the JavaScript modules of role.yaml in the project's Node process. Node starts with the first event."""

from __future__ import annotations

import os

from ...engine.capabilities import logger
from ...engine.nesting import time_left
from ...runners.entry import Configured, Wrong
from ...runners.node.module import lacking
from ...runners.node.resident import Node
from ...runners.outside import Outside
from ...runners.threads import in_coroutine
from ...runners.wire import FailedToStart, NoAnswer
from ...spec.errors import RegistrationError
from ...spec.markers import hookimpl
from ...spec.record import jsonable, safe_text
from .module import HANDLERS, TIMEOUT, RoleHook
from .roles import TIMING_OF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...runners.entry import HookEntry
    from ...runners.node.module import Module, Result
    from .context import RoleContext
    from .module import Input


def make(entry: HookEntry, config: Mapping[str, Any], path: str, *, live: bool = False) -> Configured:
    """Return the plugin of an entry whose module is JavaScript or TypeScript.

    Parameters:
        entry: the hook; ``extra`` holds its declared name, events and phase.
        config: its settings.
        path: its module, absolute.
        live: run it for dry events, too.

    Raises:
        RegistrationError: when there is no such file.
    """
    if not os.path.isfile(path):
        raise RegistrationError(entry.name, f"{path} does not exist", "Correct the path under 'module:'.")
    hook = RoleHook(entry, config)
    outside = Outside(entry, config, TIMEOUT)
    module = Node.for_project(entry.extra["project"]).load(
        path,
        hook_name=hook.name,
        config=jsonable(hook.config),
        source=entry.source,
        digest=entry.files.get(path, entry.digest),
        label=outside.label,
        log=lambda level, text: getattr(hook.log, level)("{}", text),
    )
    script = Script(module, path, entry)
    hooks: dict[str, Any] = {}
    for event in hook.events:
        hooks[TIMING_OF[event]] = hook.at(
            event, _watched(outside, script.caller(event)), timeout=TIMEOUT, dry=live
        )
    hooks["on_load"] = hook.loads(None)
    hooks["on_dispose"] = _disposes(hook, module)
    return Configured(entry.name, {**hooks, "script": script})


def _watched(outside: Outside, call: Any) -> Any:
    """Return a call that is not made when the module's own program led to it, or its file is not what was trusted."""

    def watched(own: RoleContext, data: Input) -> Any:
        if outside.starts_itself(own.env, own):
            return None
        outside.check_files()
        return call(own, data)

    return watched


def _disposes(hook: RoleHook, module: Module) -> Any:
    @hookimpl
    def on_dispose() -> None:
        try:
            module.dispose()
        except Exception as error:  # a handler of onDispose costs a warning, as in rolebox
            told = logger("custom-registry").bind(err=f"{type(error).__name__}: {safe_text(error)}")
            told.warning('Custom hook "{}" onDispose threw', hook.name)
        finally:
            module.close()

    return on_dispose


class Script:
    """Calls the handlers of one module.

    Parameters:
        module: it, in Node.
        path: its file.
        entry: the hook.
    """

    def __init__(self, module: Module, path: str, entry: HookEntry) -> None:
        self.module = module
        self.path = path
        self.entry = entry
        self._told = False

    def caller(self, event_name: str) -> Any:
        """Return the call of an event's handler, as ``RoleHook.at`` wants it."""
        handler = HANDLERS[event_name][1]

        def call(own: RoleContext, data: Input) -> Any:
            context = {
                "sessionID": own.session_id,
                "agent": own.agent,
                "functions": own.function_states(),
                "dispatch": own.get_dispatch_state(),
            }
            how: dict[str, Any] = {"env": own.env, "timeout": min(TIMEOUT, time_left())}
            payload = jsonable(data)
            if in_coroutine():
                return awaited(own, data, payload, context, how)
            try:
                return done(own, data, self.module.call(handler, payload, context, **how))
            except FailedToStart as error:
                self._tell(error)
                raise

        async def awaited(own: RoleContext, data: Input, payload: Any, context: Any, how: Any) -> None:
            try:
                result = await self.module.acall(handler, payload, context, **how)
            except FailedToStart as error:
                self._tell(error)
                raise
            return done(own, data, result)

        def done(own: RoleContext, data: Input, result: Result) -> None:
            self._told = False
            deeds: dict[str, Any] = {"inject": own.inject, "skip": own.skip, "retry": own.retry}
            for kind, text in result.effects:
                deeds[kind](text)
            if own.system is not None and "system" in result.payload:
                own.system[:] = result.payload["system"]
            if "args" in result.payload and isinstance(result.payload["args"], dict):
                data["args"] = result.payload["args"]

        return call

    def wrongs(self, project: str) -> list[Wrong]:
        """Load the file and return what is wrong with it, for ``hookturn check``."""
        try:
            loaded = self.module.load()
        except (NoAnswer, TimeoutError) as error:
            cause = safe_text(error).removeprefix(f"{self.entry.source}: ")
            return [Wrong(cause, "Correct the file.")]
        return [
            Wrong(
                lacking(self.path, HANDLERS[event][1], loaded.handlers),
                f"Export a function {HANDLERS[event][1]}, or correct the hook's events.",
            )
            for event in self.entry.extra["events"]
            if HANDLERS[event][1] not in loaded.handlers
        ]

    def _tell(self, error: FailedToStart) -> None:
        if not self._told:
            self._told = True
            told = logger("custom-loader").bind(modulePath=self.path, err=safe_text(error))
            told.warning("Failed to load custom hook module")
