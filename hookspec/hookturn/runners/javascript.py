"""``run: {javascript: ...}``: hooks in a JavaScript or TypeScript file, called in the project's Node process."""

from __future__ import annotations

import os
from threading import Lock

from ..engine.nesting import time_left
from ..platform import agent_environ
from ..spec.answers import from_json
from ..spec.errors import AnswerError, EventError, RegistrationError
from ..spec.markers import hookimpl
from ..spec.timings import TIMINGS
from .entry import Configured, Wrong
from .node.module import ENDINGS, TIMEOUT, lacking
from .node.resident import Node, find_node
from .outside import Outside
from .threads import in_coroutine, on_thread
from .wire import FailedToStart, NoAnswer

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..spec.answers import Answer
    from ..spec.events import Event
    from ..spec.timings import Timing
    from .entry import HookEntry
    from .node.module import Module, Result

DISPOSING = 5.0
"""Seconds that a module's onDispose has."""


def problems(entry: HookEntry) -> list[Wrong]:
    """Return what is wrong with an entry's file, or with Node, without running either.

    Parameters:
        entry: a configured hook of kind javascript.
    """
    if os.name != "posix":
        return [Wrong("JavaScript hooks run on Linux and macOS only", "Write the hook as a Python module.")]
    found = []
    path = entry.path
    if not path.endswith(ENDINGS):
        found.append(Wrong(f"{path} is no JavaScript file", f"Its name must end in {', '.join(ENDINGS)}."))
    elif not os.path.isfile(path):
        what = "is no file" if os.path.lexists(path) else "does not exist"
        found.append(Wrong(f"{path} {what}", "Correct the path; it starts at the declaring file."))
    _, why = find_node(agent_environ())
    if why:
        cause, _, remedy = why.partition(". ")
        found.append(Wrong(cause, remedy, certain=False))
    return found


def make(
    entry: HookEntry,
    config: Mapping[str, Any] | None = None,
    timings: Mapping[str, Timing] = TIMINGS,
    *,
    live: bool = False,
) -> Configured:
    """Return the plugin of an entry whose ``run`` is a JavaScript file. Runs nothing: the first event does.

    The file exports functions named after timings, in snake or camel case, each called with
    ``(event, ctx)``; a default export that is a function serves the timings that have none. They return
    nothing, an answer as JSON (``{deny: "why"}``), or a list of such.

    Parameters:
        entry: a configured hook of kind javascript; ``entry.files`` are checked before each call.
        config: its settings, secrets resolved.
        timings: all timings that the engine knows.
        live: run for dry events, too.

    Raises:
        RegistrationError: when the file is certainly not there, or no JavaScript.
    """
    for wrong in problems(entry):
        if wrong.certain:
            raise RegistrationError(entry.name, wrong.cause, wrong.remedy)
    script = Script(entry, config or {}, live=live)
    hooks = {name: _hook(script, timings[name]) for name in entry.timings}
    return Configured(entry.name, {**hooks, "on_dispose": _disposal(script), "script": script})


def _hook(script: Script, timing: Timing) -> Any:
    @hookimpl(timeout=TIMEOUT)
    def run(event: Any, ctx: Any) -> Any:
        return script(timing, event, ctx)

    return run


def _disposal(script: Script) -> Any:
    @hookimpl
    def on_dispose() -> Any:
        return script.close()

    return on_dispose


class Script(Outside):
    """Calls one entry's file for events.

    Parameters:
        entry: the configured hook.
        config: its settings, secrets resolved.
        live: run for dry events, too.
    """

    def __init__(self, entry: HookEntry, config: Mapping[str, Any], *, live: bool = False) -> None:
        super().__init__(entry, config, TIMEOUT)
        self.live = live
        self._lock = Lock()
        self._module: Module | None = None

    def __call__(self, timing: Timing, event: Event, ctx: Any) -> Any:
        """Call the file and return its answers. In a coroutine's thread: return what gives them when awaited.

        Raises:
            FailedToStart, NoAnswer, TimeoutError: as it went.
        """
        if event.dry_run and not self.live:
            return None
        env = dict(ctx.env)
        if self.starts_itself(env, ctx):
            return None
        self.check_files()
        module = self._in(ctx.project_dir)
        how: dict[str, Any] = {
            "handler": (timing.name, camel_case(timing.name)),
            "payload": event.to_json(),
            "env": env,
            "timeout": min(self.timeout, time_left()),
            "general": True,
            "needed": True,
            "ask": lambda question: _values(ctx, question),
        }
        if in_coroutine():
            return self._awaited(module, how, ctx)
        try:
            result = module.call(**how)
        except NoAnswer as error:
            raise self._hidden(error) from None
        return self._answers(result, ctx)

    async def _awaited(self, module: Module, how: dict[str, Any], ctx: Any) -> Any:
        try:
            result = await module.acall(**how)
        except NoAnswer as error:
            raise self._hidden(error) from None
        return self._answers(result, ctx)

    def wrongs(self, project: str) -> list[Wrong]:
        """Load the file and return what is wrong with it, for ``hookturn check``.

        Parameters:
            project: the project's folder.
        """
        try:
            self.check_files()
            loaded = self._in(project).load()
        except (NoAnswer, TimeoutError) as error:
            return [
                Wrong(
                    self.hidden.hide(str(error)).removeprefix(f"{self.entry.source}: "), "Correct the file."
                )
            ]
        if loaded.general:
            return []
        return [
            Wrong(
                lacking(self.entry.path, name, loaded.handlers),
                f"Export a function {camel_case(name)}, or correct the entry's timings.",
            )
            for name in self.entry.timings
            if not {name, camel_case(name)} & {*loaded.handlers}
        ]

    def _in(self, project: str) -> Module:
        """Return the module. It belongs to the project of the first event."""
        with self._lock:
            if self._module is None:
                entry = self.entry
                self._module = Node.for_project(project).load(
                    entry.path, hook_name=entry.name, config=self.config or None, contract="hookturn",
                    source=entry.source, digest=entry.files.get(entry.path, ""), label=self.label, log=self._log,
                )  # fmt: skip
            return self._module

    def _log(self, level: str, text: str) -> None:
        from ..engine.capabilities import logger

        logger(self.entry.name).log(level.upper(), "{}", self.hidden.hide(text))

    def _hidden(self, error: NoAnswer) -> NoAnswer:
        """Return an error without secrets."""
        text = self.hidden.hide(str(error))
        if text == str(error):
            return error
        return FailedToStart(text) if isinstance(error, FailedToStart) else NoAnswer(text)

    def _answers(self, result: Result, ctx: Any) -> list[Answer] | None:
        given = result.value if isinstance(result.value, list) else [result.value]
        try:
            answers = [answer for item in given for answer in from_json(item)]
        except (AnswerError, EventError) as error:
            raise NoAnswer(f"{self.entry.source}: {self.hidden.hide(str(error))}") from None
        for kind, text in result.effects:
            if kind == "inject":
                ctx.inject(self.hidden.hide(text))
        return self.hidden.in_words(answers) or None

    def close(self) -> Any:
        """Run the file's onDispose and forget it. In a coroutine's thread: return what does so when awaited."""
        with self._lock:
            module, self._module = self._module, None
        if module is None:
            return None
        if in_coroutine():
            return on_thread(lambda cancel: module.dispose(DISPOSING))
        module.dispose(DISPOSING)
        return None


def camel_case(name: str) -> str:
    """Return a timing's name as JavaScript writes it: ``preToolExecution``."""
    first, *rest = name.split("_")
    return first + "".join(word.capitalize() for word in rest)


def _values(ctx: Any, question: dict[str, Any]) -> Any:
    """Answer what a module asks of ``ctx.state`` and ``ctx.store``."""
    values = ctx.store if question.get("scope") == "store" else ctx.state
    key, value = question.get("key"), question.get("value")
    if not isinstance(key, str):
        raise TypeError("a key must be a text")
    if question.get("op") == "set":
        values.set(key, value)
        return None
    return values.get(key, value)
