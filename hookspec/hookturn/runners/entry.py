"""The record of one configured hook: what a configuration file says of it, checked and typed; and of what is wrong
with one."""

from __future__ import annotations

from ..spec.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

KINDS = ("module", "answer", "command", "webhook", "javascript")
"""Kinds of ``run:``."""

OUTSIDE = ("command", "webhook", "javascript")
"""Kinds that act outside of the process: in a dry run they run only when asked for."""


class Wrong(Record):
    """Something wrong with a configured hook, found without running it.

    Parameters:
        cause, remedy: as in a problem.
        certain: False where it depends on the environment at run time.
        severity: error, or warning for what costs nothing.
    """

    cause: str
    remedy: str
    certain: bool = True
    severity: str = "error"


class HookEntry(Record):
    """One configured hook.

    Parameters:
        name: unique in its file.
        kind: one of KINDS, or "" for an entry that is switched off and says nothing else.
        run: what it runs: a path (module, javascript), an answer as JSON (answer), a list of words or a shell line
            (command), a mapping (webhook, see ``runners.webhook.make``).
        timings: where it runs; empty for a module means every timing that the module has a function for.
        options: what the entry itself says of phase, priority, timeout (seconds), guard, on_failure, mode,
            tools, agents and event_types; the rest is up to the hook.
        config: its settings as declared, secrets still references.
        enabled: False switches off an entry of this name.
        file: the declaring file, as messages show it.
        line, column: where the entry starts, from 1.
        index: its place in the file's list.
        layer: managed, user or project.
        base_dir: the folder that relative paths start from: the declaring file's.
        digest: SHA-256 that the module's file must have, or "" for any.
        files: path -> SHA-256 of files that must be as they were trusted whenever a command or a script runs.
        dialect: the agent whose hook file declares it (``claude-code``), or "" for hookturn's own.
        declared: the declaration as it stands in another agent's file: what trust is given for.
        where: its place in such a file, as a path of keys and indexes.
        extra: what else the dialect needs to run it.
        network: where its webhook may connect to (``runners.addresses.Network``), as the user's and the managed
            configuration say; None for public addresses only.
    """

    name: str
    kind: str = ""
    run: Any = None
    timings: list[str] = []
    options: dict[str, Any] = {}
    config: dict[str, Any] = {}
    enabled: bool = True
    file: str = ""
    line: int = 0
    column: int = 0
    index: int = 0
    layer: str = "project"
    base_dir: str = ""
    digest: str = ""
    files: dict[str, str] = {}
    dialect: str = ""
    declared: Any = None
    where: tuple[Any, ...] = ()
    extra: dict[str, Any] = {}
    network: Any = None

    @property
    def source(self) -> str:
        """Where it was declared, such as ``hookturn.yaml:3``."""
        return f"{self.file}:{self.line}"

    @property
    def guard(self) -> bool:
        """Whether the entry says that it is a guard."""
        return self.options.get("guard") is True

    @property
    def fails_closed(self) -> bool:
        """Whether a failure to start must be a Deny."""
        return self.guard or self.options.get("on_failure") == "deny"

    def but(self, **changes: Any) -> HookEntry:
        """Return a copy with other values."""
        return type(self)(**{**{name: getattr(self, name) for name in self._fields}, **changes})

    @property
    def path(self) -> str:
        """The absolute path of a module's or script's file, or an empty string."""
        if self.kind not in ("module", "javascript"):
            return ""
        from os.path import abspath, join

        from .programs import expanded

        return abspath(join(self.base_dir, expanded(self.run)))


class Configured:
    """The plugin object of a configured hook: one attribute a timing, each a marked function."""

    def __init__(self, name: str, hooks: dict[str, Any]) -> None:
        self.hookturn_name = name
        for timing, function in hooks.items():
            setattr(self, timing, function)

    def __repr__(self) -> str:
        return f"<configured hook {self.hookturn_name!r}>"
