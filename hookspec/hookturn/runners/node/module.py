"""A hook module in a project's Node process: loading, calling, stopping, letting go. See the package."""

from __future__ import annotations

import os
from threading import Lock
from time import monotonic

from ...spec.errors import EventError
from ...spec.record import Record
from ..outside import look_of
from ..wire import FailedToStart, NoAnswer
from .process import Broken

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from typing import Any

    from .process import Box, Process
    from .resident import Node

TIMEOUT = 5.0
"""Seconds that a call has."""

LOADING = 10.0
"""Seconds that Node may take to start, and a module to load when nobody says otherwise."""

GRACE = 0.3
"""Seconds in which a stopped module must have ended; else the whole process is killed."""

VARIABLE = "HOOKTURN_NODE"
"""Environment variable: the Node to use, instead of the one in PATH."""

ENDINGS = (".js", ".mjs", ".cjs", ".ts", ".mts", ".cts")
"""Names that a hook module may end in."""

LONGEST = {"hookturn": 1_000_000, "rolebox": 10_000_000}
"""Characters of what a call gives back."""


class _Unsent(NoAnswer):
    """A call never reached the process, so that it can be made again."""


class Loaded(Record):
    """What a module is.

    Parameters:
        handlers: the functions that it exports, by name.
        general: its default export is a function itself.
        on_load_error: why its onLoad threw, or "".
    """

    handlers: tuple[str, ...] = ()
    general: bool = False
    on_load_error: str = ""


class Result(Record):
    """What a call gave.

    Parameters:
        ran: the module has such a handler.
        value: what it returned or resolved to, as JSON; always None for rolebox modules, where it does not count.
        effects: what it did through its ctx, in order: (``inject`` | ``skip`` | ``retry``, text).
        payload: the fields of the payload that it edited in place, with their new values (rolebox only).
    """

    ran: bool = False
    value: Any = None
    effects: tuple[tuple[str, str], ...] = ()
    payload: dict[str, Any] = {}


class Stop:
    """Ends a call from another thread.

    Attributes:
        asked: whether it was.
    """

    def __init__(self) -> None:
        self.asked = False
        self.box: Box | None = None

    def set(self) -> None:
        """Stop the call."""
        self.asked = True
        if self.box is not None:
            self.box.put(("stop", b""))


class Module:
    """One hook module (see ``Node.load``). Any thread may call it; calls overlap.

    Attributes:
        path: its file.
        number: what it is called on the line.
    """

    def __init__(
        self, node: Node, path: str, *, hook_name: str, config: Any, contract: str, source: str, digest: str,
        label: str, log: Callable[[str, str], None] | None,
    ) -> None:  # fmt: skip
        self.path = path
        self.number = node.next_number()
        self._node = node
        self._hook = hook_name
        self._config = config
        self._contract = contract
        self._source = source
        self._digest = digest
        self._log = log
        self._label = label
        self._mark = f"{label}.{os.urandom(8).hex()}"
        self._loading = Lock()
        self._loaded: Loaded | None = None
        self._loaded_in: Process | None = None
        self._broken: tuple[Any, FailedToStart] | None = None

    # -- for those who call ---------------------------------------------------------------------------

    def load(self, env: Mapping[str, str] | None = None, timeout: float = LOADING) -> Loaded:
        """Import the module and run its onLoad, if nobody did.

        A file that could not be imported is not tried again until it looks changed, or ``reload`` is called.

        Parameters:
            env: the environment of the Node process, should it have to be started; default: ours.
            timeout: seconds in all.

        Raises:
            FailedToStart, NoAnswer, TimeoutError: it cannot be loaded.
        """
        env, end = os.environ if env is None else env, monotonic() + timeout
        try:
            return self._load(env, end, timeout, None)[1]
        except _Unsent:
            return self._load(env, end, timeout, None)[1]

    def call(
        self,
        handler: str | Sequence[str],
        payload: Any = None,
        context: Mapping[str, Any] | None = None,
        *,
        env: Mapping[str, str] | None = None,
        timeout: float = TIMEOUT,
        general: bool = False,
        needed: bool = False,
        ask: Callable[[dict[str, Any]], Any] | None = None,
        stop: Stop | None = None,
    ) -> Result:
        """Call a handler and wait for what it returns or resolves to.

        At the time limit the module is stopped, whatever it does: its thread ends, and with it timers, state and
        other calls that it was working on (these fail with words that say so). Calls that it had not begun
        go to a fresh one. The next call imports it again.

        Parameters:
            handler: its name; or several, of which the first that there is counts.
            payload: its second argument (``contract="hookturn"``: the first), as JSON; None for none.
            context: what its ctx knows of this call: sessionID, agent, functions, dispatch, graph.
            env: the agent's environment; default: ours.
            timeout: seconds in all.
            general: a default export that is a function will do as well.
            needed: a module without such a handler is an error.
            ask: answers what the module asks (``{"op": "get", "scope": "state", "key": ...}``), on the
                thread that calls; what it raises rejects the module's promise.
            stop: ends the call from another thread.

        Raises:
            FailedToStart: no Node, or the module cannot be loaded.
            NoAnswer: the handler threw, what it returned is no JSON, its module or Node ended.
            TimeoutError: it took too long.
        """
        env = os.environ if env is None else env
        end = monotonic() + timeout
        names = [handler] if isinstance(handler, str) else list(handler)
        body: dict[str, Any] = {
            "names": names,
            "general": general,
            "needed": needed,
            "payload": payload,
            "context": dict(context) if context else None,
        }

        def go() -> dict[str, Any]:
            process, _ = self._load(env, end, timeout, stop)
            body["env"] = self._changes(env, process)
            return self._exchange(process, "call", names[0], body, end, timeout, ask, stop)

        try:
            data = go()
        except _Unsent:  # the process had gone before
            data = go()
        try:
            return Result(
                ran=data.get("ran") is True,
                value=data.get("value"),
                effects=tuple((str(kind), str(text)) for kind, text in data.get("effects", ())),
                payload=data.get("payload") or {},
            )
        except (EventError, TypeError, ValueError) as error:
            raise NoAnswer(f"{self._source}: what {names[0]} returned: {error}") from None

    async def acall(
        self,
        handler: str | Sequence[str],
        payload: Any = None,
        context: Mapping[str, Any] | None = None,
        **how: Any,
    ) -> Result:
        """Call a handler without holding up the event loop. Cancelling it stops the module as a time limit does.

        Parameters:
            handler, payload, context, how: as for ``call``.
        """
        import asyncio

        from ...engine.waiting import start_thread

        stop = Stop()
        future = start_thread(
            lambda: self.call(handler, payload, context, stop=stop, **how), asyncio.get_running_loop()
        )
        try:
            result: Result = await future
        except asyncio.CancelledError:
            stop.set()
            raise
        return result

    def dispose(self, timeout: float = TIMEOUT) -> None:
        """Run its onDispose, if it is loaded now, and forget it.

        Raises:
            NoAnswer, TimeoutError: onDispose failed; it is forgotten all the same.
        """
        try:
            process = self._loaded_in
            if process is not None and process.alive:
                body = {"names": ["onDispose", "on_dispose"], "payload": None, "context": None, "env": None}
                self._exchange(
                    process, "dispose", "onDispose", body, monotonic() + timeout, timeout, None, None
                )
        finally:
            self.close()

    def close(self) -> None:
        """Forget the module; its thread ends. The last one of a project ends the process. Safe to repeat."""
        self._loaded_in = None
        self._node.release(self)

    def reload(self) -> None:
        """Forget what was loaded, also that it could not be; the next call imports the file as it is then."""
        process, self._loaded_in, self._broken = self._loaded_in, None, None
        if process is not None and process.alive:
            process.say(b"forget %d 0 \n" % self.number)
        self.number = self._node.next_number()

    # -- the line -------------------------------------------------------------------------------------

    def declaration(self) -> bytes:
        """Return the line that says what this module is."""
        from ..process import RUNNING

        outer = self._loaded_env.get(RUNNING, "") if self._loaded_env is not None else ""
        return _line(
            "load", self.number, 0, "",
            {
                "path": self.path,
                "contract": self._contract,
                "hook": self._hook,
                "config": self._config,
                "project": self._node.folder,
                "digest": self._digest,
                "longest": LONGEST[self._contract],
                "env": {RUNNING: f"{outer} {self._mark}".strip()},
            },
        )  # fmt: skip

    _loaded_env: Mapping[str, str] | None = None

    def note(self, text: bytes) -> None:
        """Pass on a line of the module's log."""
        import json

        if self._log is None:
            return
        data = json.loads(text)
        if isinstance(data, dict) and data.get("level") in ("debug", "info", "warning", "error"):
            self._log(data["level"], _printable(str(data.get("text"))))

    def _load(
        self, env: Mapping[str, str], end: float, timeout: float, stop: Stop | None
    ) -> tuple[Process, Loaded]:
        process, loaded = self._loaded_in, self._loaded
        if process is not None and process.alive and loaded is not None:
            return process, loaded
        if not self._loading.acquire(timeout=max(0.0, end - monotonic())):
            raise self._late(timeout, "it was still being loaded")
        try:
            process, loaded = self._loaded_in, self._loaded
            if process is not None and process.alive and loaded is not None:
                return process, loaded
            look = look_of(self.path)
            if self._broken is not None and self._broken[0] == look:
                raise FailedToStart(str(self._broken[1]))
            try:
                process = self._node.process(env, end)
            except (FailedToStart, TimeoutError) as error:
                raise type(error)(f"{self._source}: {error}") from None
            self._loaded_env = process.env
            try:
                data = self._exchange(process, "call", "import", {"names": None}, end, timeout, None, stop)
            except FailedToStart as error:
                self._broken = (look, error)
                raise
            found = data["value"]
            loaded = Loaded(
                handlers=tuple(found["handlers"]),
                general=found["general"],
                on_load_error=found["onLoadError"],
            )
            self._broken = None
            self._loaded, self._loaded_in = loaded, process
            if loaded.on_load_error and self._log is not None:
                self._log("warning", f"onLoad threw: {_printable(loaded.on_load_error)}")
            return process, loaded
        finally:
            self._loading.release()

    def _exchange(
        self, process: Process, kind: str, what: str, body: dict[str, Any], end: float, timeout: float,
        ask: Callable[[dict[str, Any]], Any] | None, stop: Stop | None,
    ) -> dict[str, Any]:  # fmt: skip
        """Send a call, see to what it asks and logs, and return its result."""
        from queue import SimpleQueue

        box: Box = SimpleQueue()
        number = process.open(box)
        try:
            if stop is not None:
                stop.box = box
                if stop.asked:
                    raise NoAnswer(f"{self._source}: it was stopped")
            left = max(1, int((end - monotonic()) * 1000))
            try:
                process.send(_line(kind, self.number, number, f"{left} {what} ", body), end, self)
            except Broken as error:
                raise _Unsent(f"{self._source}: {process.ended or error}") from None
            return self._heard(process, box, number, what, end, timeout, ask)
        except BaseException as error:  # KeyboardInterrupt above all: a handler must not go on
            if not isinstance(error, (FailedToStart, NoAnswer)):
                self._stop(process, box, number, what)
            raise
        finally:
            del process.calls[number]

    def _heard(
        self, process: Process, box: Box, number: int, what: str, end: float, timeout: float,
        ask: Callable[[dict[str, Any]], Any] | None,
    ) -> dict[str, Any]:  # fmt: skip
        from queue import Empty

        while True:
            try:
                kind, text = box.get(timeout=max(0.0, end - monotonic()))
            except Empty:
                raise self._late(timeout, "the module was stopped") from None
            if kind == "done":
                return self._read(text, what)
            if kind == "log":
                self.note(text)
            elif kind == "ask":
                self._tell(process, number, self._read(text, what), ask, end)
            elif kind == "stop":
                self._stop(process, box, number, what)
                raise NoAnswer(f"{self._source}: it was stopped")
            elif kind == "dead":
                raise NoAnswer(f"{self._source}: {process.ended}")
            elif kind == "lost":
                raise NoAnswer(f"{self._source}: {self._read(text, what).get('why')}")
            else:
                raise self._failure(self._read(text, what), what)

    def _read(self, text: bytes, what: str) -> dict[str, Any]:
        """Return a line's data. A module that spoils its own JSON can make it anything."""
        import json

        try:
            data = json.loads(text)
        except RecursionError:
            raise NoAnswer(f"{self._source}: what {what} returned is nested too deep") from None
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise NoAnswer(f"{self._source}: {what} gave something that cannot be read")
        return data

    def _tell(
        self, process: Process, number: int, question: dict[str, Any],
        ask: Callable[[dict[str, Any]], Any] | None, end: float,
    ) -> None:  # fmt: skip
        from contextlib import suppress

        from ...spec.record import jsonable, safe_text

        answer: dict[str, Any] = {"number": question.get("number")}
        try:
            if ask is None:
                raise NoAnswer("there is nobody to ask")
            answer["value"] = jsonable(ask(question))
        except Exception as error:  # the module gets it as an error of its own call
            answer["error"] = f"{type(error).__name__}: {safe_text(error)}"
        with suppress(Broken):  # the box says so, too
            process.send(_line("tell", self.number, number, "", answer), end)

    def _failure(self, data: dict[str, Any], what: str) -> NoAnswer:
        """Return the error of a call that failed in the module."""
        message, place = _printable(str(data.get("message", ""))), data.get("place", "")
        where = f"{self.path}:{place}" if place else self.path
        kind = data.get("kind")
        if kind == "load":
            return FailedToStart(f"{self._source}: {where} cannot be loaded: {message}")
        if kind == "node":
            return FailedToStart(f"{self._source}: {message}. Set {VARIABLE}, or compile it to JavaScript.")
        if kind == "missing":
            handlers = [name for name in message.split(", ") if name]
            return NoAnswer(f"{self._source}: {lacking(self.path, what, handlers)}")
        if kind == "answer":
            return NoAnswer(f"{self._source}: {what}: {message}")
        return NoAnswer(f"{self._source}: {where}: {message}")

    def _late(self, timeout: float, then: str) -> TimeoutError:
        return TimeoutError(f"{self._source}: no answer within {timeout:.3g} s; {then}")

    def _stop(self, process: Process, box: Box, number: int, what: str) -> None:
        """Stop a call that goes on, and what it started; the process too, if the module cannot be stopped."""
        from queue import Empty

        end = monotonic() + GRACE
        gone = not process.alive
        try:
            process.send(b"drop %d %d \n" % (self.number, number), end)
            while not gone:
                gone = box.get(timeout=max(0.0, end - monotonic()))[0] in ("gone", "dead")
        except (Broken, Empty):
            process.stop(f"{self._hook} ({self._source}) could not be stopped in its call of {what}")
        self._sweep()

    def _sweep(self) -> None:
        """Kill what the module started: a thread's end leaves its children alone."""
        from contextlib import suppress
        from signal import SIGKILL
        from time import sleep

        from ...platform import family
        from ..process import KILLING, NOBODY

        end = monotonic() + KILLING
        while left := family(NOBODY, self._mark.encode(), {}):
            for pid in left:
                with suppress(ProcessLookupError, PermissionError):
                    os.kill(pid, SIGKILL)
            if monotonic() > end:
                break
            sleep(0.002)

    def _changes(self, env: Mapping[str, str], process: Process) -> dict[str, str | None] | None:
        """Return how a call's environment differs from the process's own."""
        from ..process import RUNNING

        ours, now = process.env, dict(env)
        if now == ours:
            return None
        changes: dict[str, str | None] = {
            name: value for name, value in now.items() if ours.get(name) != value
        }
        changes.update((name, None) for name in ours if name not in now)
        changes.pop(RUNNING, None)  # it says what started what
        return changes or None

    def renew(self) -> None:
        """In a child of a fork: what was loaded is our parent's."""
        self._loading = Lock()
        self._loaded_in = None


def lacking(path: str, name: str, handlers: Sequence[str]) -> str:
    """Return, for people, that a module has no such handler, and what it has.

    Parameters:
        path: its file.
        name: what it should export.
        handlers: what it exports.
    """
    from ...spec.errors import did_you_mean

    has = ", ".join(handlers) or "no function"
    return f"{path} exports no {name}{did_you_mean(name, handlers)}; it exports {has}"


def _line(kind: str, module: int, call: int, head: str, body: Any) -> bytes:
    """Return a line. As ASCII: lone surrogates and NUL stay valid as escapes, and no character is a line end."""
    import json

    text = json.dumps(body, ensure_ascii=True, separators=(",", ":"))
    return f"{kind} {module} {call} {head}{text}\n".encode("ascii")


def _printable(text: str) -> str:
    """Return a module's words without what a terminal would obey."""
    return "".join(c if c.isprintable() or c in "\n\t" else ascii(c)[1:-1] for c in text)
