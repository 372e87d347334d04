"""The resident Node process of a project, which all of its hook modules share. See the package."""

from __future__ import annotations

import os
from threading import Lock, RLock
from time import monotonic
from weakref import WeakSet, WeakValueDictionary, finalize

from ..wire import FailedToStart
from .module import LOADING, VARIABLE, Module
from .process import OLDEST, Process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import Any

_WANTED = f"Install Node {OLDEST[0]}.{OLDEST[1]} or newer, or name one in {VARIABLE}."

_nodes: WeakValueDictionary[str, Node] = WeakValueDictionary()
_nodes_lock = Lock()


def find_node(env: Mapping[str, str]) -> tuple[str, str]:
    """Return (path, "") of Node, or ("", why and what to do).

    Parameters:
        env: the environment: ``HOOKTURN_NODE``, else ``node`` in PATH.
    """
    from ..programs import find_program

    named = env.get(VARIABLE, "")
    if named and not os.path.isabs(named):
        return "", f"{VARIABLE} must be an absolute path, not {named!r}"
    program, why = find_program(named or "node", env, "/")
    if not why:
        return program, ""
    return "", f"hooks in JavaScript need Node: {why}. {_WANTED}"


class Node:
    """A project's Node process; ``Node.for_project`` gives the one that all of a project share.

    It is started by the first call, with that call's environment, and again by the next call after it ended.

    Parameters:
        folder: the project's folder, where it runs.
    """

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._lock = RLock()
        self._process: Process | None = None
        self._ending: Any = None  # ends the process when nobody knows this any more
        self._modules: WeakSet[Module] = WeakSet()
        self._number = 0

    @classmethod
    def for_project(cls, project_dir: str) -> Node:
        """Return the project's Node. Starts nothing.

        Parameters:
            project_dir: the project's folder.
        """
        folder = os.path.realpath(project_dir)
        with _nodes_lock:
            node = _nodes.get(folder)
            if node is None:
                node = _nodes[folder] = cls(folder)
            return node

    def load(
        self,
        path: str,
        *,
        hook_name: str,
        config: Any = None,
        contract: str = "rolebox",
        source: str = "",
        digest: str = "",
        label: str = "",
        log: Callable[[str, str], None] | None = None,
    ) -> Module:
        """Return a module of its own for a file. Starts nothing: the first call imports it.

        Parameters:
            path: the file, absolute.
            hook_name: ``ctx.hookName``.
            config: ``ctx.config`` as plain JSON.
            contract: ``rolebox``: handlers get (ctx, payload), edit it in place, and what they return does not
                count; ``hookturn``: they get (event, ctx) and return answers.
            source: where the hook was declared, such as ``role.yaml:4``, for messages.
            digest: SHA-256 that the file must have when it is imported, or "" for any.
            label: a word without blanks and dots for ``HOOKTURN_RUNNING`` of what the module starts.
            log: gets (level, text) of what the module logs and prints; level is debug, info, warning or error.
                May be called on another thread. Default: dropped.
        """
        module = Module(
            self, path, hook_name=hook_name, config=config, contract=contract, source=source or hook_name,
            digest=digest, label=label or "javascript", log=log,
        )  # fmt: skip
        with self._lock:
            self._modules.add(module)
        return module

    def next_number(self) -> int:
        """Return a number that no module of this process had."""
        with self._lock:
            self._number += 1
            return self._number

    def process(self, env: Mapping[str, str], end: float) -> Process:
        """Return the running process, started if need be.

        Parameters:
            env: its environment, if it is started.
            end: until when to wait for it, by the monotonic clock.

        Raises:
            FailedToStart: there is no Node, it is too old, or it ends at once.
            TimeoutError: it is not up yet (it goes on starting, for ``LOADING`` seconds in all).
        """
        with self._lock:
            process = self._process
            starting = process is not None and process.alive and not process.ready.is_set()
            if process is not None and starting and monotonic() - process.born > LOADING:
                process.stop("it did not start")
            if process is None or not process.alive:
                process = self._process = self._start(env)
        if not process.ready.wait(max(0.0, end - monotonic())):
            raise TimeoutError("Node had not started in that time")
        if process.too_old:
            process.close(wait=False)
            raise FailedToStart(f"{process.program} is Node {process.version}, which is too old. {_WANTED}")
        if not process.version:
            raise FailedToStart(f"{process.program} could not start: {process.ended}")
        return process

    def _start(self, env: Mapping[str, str]) -> Process:
        if os.name != "posix":
            raise FailedToStart("hooks in JavaScript run on Linux and macOS only")
        program, why = find_node(env)
        if why:
            raise FailedToStart(why)
        process = Process(program, self.folder, env)
        if self._ending is not None:
            self._ending.detach()
        self._ending = finalize(self, process.close, wait=False)
        return process

    def release(self, module: Module) -> None:
        """Let a module go; without any, the process ends."""
        with self._lock:
            self._modules.discard(module)
            process, last = self._process, not self._modules
            if last:
                self._process = None
        if process is None or not process.alive:
            return
        if last:
            process.close()
        else:
            process.say(b"forget %d 0 \n" % module.number)

    def close(self) -> None:
        """End the process. The next call starts another."""
        with self._lock:
            process, self._process = self._process, None
        if process is not None:
            process.close()

    def renew(self) -> None:
        """In a child of a fork: forget the parent's process and locks that other threads held."""
        self._lock = RLock()
        self._process = None
        for module in list(self._modules):
            module.renew()


def _after_fork() -> None:
    global _nodes_lock
    _nodes_lock = Lock()
    for node in list(_nodes.values()):
        node.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
