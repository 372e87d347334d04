"""The shape of an agent's own hook files: what every ``agents/<name>/config.py`` provides. Reads and runs nothing.

A dialect translates: it says where an agent keeps its hook files, turns what
they declare into hook entries, and makes each entry's plugin. It decides
nothing: the project room reads the files, asks for trust, and registers.
"""

from __future__ import annotations

from ..spec.record import Record

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any, Protocol

    from ..runners.entry import Configured, HookEntry, Wrong
    from ..spec.timings import Timing

    Path = tuple[str | int, ...]

    class Source(Protocol):
        """A hook file as data in which every value knows its place (``hookturn.project.document.Document``)."""

        file: str
        data: dict[str, Any]

        def at(self, path: Path = (), *, key: bool = False) -> tuple[int, int]:
            """Return line and column of a value, or of its key."""
            ...

        def spoiled(self, path: Path) -> bool:
            """Tell whether the file itself is wrong there, which has been reported."""
            ...

        def problem(
            self, path: Path, cause: str, remedy: str = "", *, key: bool = False, severity: str = "error"
        ) -> Any:
            """Return a problem at a place of the file."""
            ...

    class Dialect(Protocol):
        """What a ``config`` module provides.

        A dialect whose files share their name with others' may have ``recognises(content: bytes) -> bool``,
        which tells its own from theirs before anything is read or complained about. One whose ``files`` are those
        that are there has ``watched(project: str, environ: Mapping[str, str]) -> list[str]``, which tells the files
        and folders whose change may bring others.

        ``NAME`` is the agent's name (``claude-code``); ``SETTINGS`` says what ``dialects: {NAME: {...}}``
        takes: option -> values that will do.
        """

        NAME: str
        SETTINGS: Mapping[str, Sequence[Any]]

        def files(
            self, project: str, environ: Mapping[str, str], settings: Mapping[str, Any]
        ) -> list[HookFile]:
            """Return where hook files may lie, in order of registration; those that are not there are passed over."""
            ...

        def place(self, path: str, project: str, data: Mapping[str, Any]) -> HookFile | None:
            """Return a file that lies anywhere as one of this dialect's, or None when it is none.

            Parameters:
                path: the file, absolute.
                project: the folder of the project around it.
                data: what it holds; empty for one that cannot be read.
            """
            ...

        def read(self, file: HookFile, source: Source, settings: Mapping[str, Any]) -> Reading:
            """Return what one file declares. A bad entry costs only itself, and leaves a problem."""
            ...

        def effective(self, entries: Iterable[HookEntry]) -> list[tuple[HookEntry, str]]:
            """Return the entries of all files that may count, each with why it does not count after all, or ""."""
            ...

        def make(
            self,
            entry: HookEntry,
            config: Mapping[str, Any],
            timings: Mapping[str, Timing],
            *,
            live: bool = False,
        ) -> Configured:
            """Return an entry's plugin.

            Raises:
                RegistrationError: when it certainly cannot run.
            """
            ...

        def own_files(self, entry: HookEntry, project: str) -> list[str]:
            """Return the files that make out what an entry does: trust covers their content."""
            ...

        def words_of(self, entry: HookEntry) -> str:
            """Return what an entry runs, for people: ``runs ./guard.sh at pre_tool_execution``."""
            ...

        def wrongs(self, entry: HookEntry, project: str) -> list[Wrong]:
            """Return what is wrong with an entry here and now, for ``hookturn check``; runs nothing."""
            ...


class HookFile(Record):
    """One place where an agent keeps hooks.

    Parameters:
        path: the file, absolute.
        label: the file as messages show it: relative to the project for a project's own.
        layer: managed, user or project: whose file it is.
        format: json (comments allowed), toml or yaml.
        kind: which of the dialect's kinds of files, in its own word.
        base_dir: the folder that relative paths start from.
        extra: what else the dialect wants to know again when it reads the file.
    """

    path: str
    label: str
    layer: str
    format: str
    kind: str = ""
    base_dir: str = ""
    extra: dict[str, Any] = {}


class Reading:
    """What one file declares.

    Attributes:
        entries: its hooks, in the order in which they are registered.
        problems: what is wrong with single entries, from ``Source.problem``.
    """

    def __init__(self) -> None:
        self.entries: list[HookEntry] = []
        self.problems: list[Any] = []


def plain_name(name: str) -> str:
    """Return a tool's name without what agents spell differently: case, ``_``, ``-`` and blanks."""
    return name.lower().replace("_", "").replace("-", "").replace(" ", "")


def star_match(pattern: str, text: str) -> bool:
    """Match a whole text, case counting; ``*`` is any text, all else means itself. Linear in both, whatever they are.

    Parameters:
        pattern: as agents write it in their files.
        text: what it is compared with.
    """
    first, *rest = pattern.split("*")
    if not rest:
        return pattern == text
    if not text.startswith(first):
        return False
    at = len(first)
    for part in rest[:-1]:
        found = text.find(part, at)
        if found < 0:
            return False
        at = found + len(part)
    return len(text) - len(rest[-1]) >= at and text.endswith(rest[-1])
