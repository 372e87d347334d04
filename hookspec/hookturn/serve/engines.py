"""Keeps the engines of many projects ready, and makes a new one as soon as anything changes that it was made of."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from functools import partial
from threading import Lock, RLock, Thread
from time import monotonic, time_ns

from ..agents.memory import memory_folder
from ..project.layers import PROJECT_VARIABLES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

    from ..agents.bridge import Place
    from ..engine.engine import Engine

MOST = 32
"""Engines that are kept; those that nobody asked for longest are closed."""

MOST_PLACES = 512
"""Folders of which is remembered to which engine they lead."""

YOUNG = 50_000_000
"""Nanoseconds in which a file may change twice without another time stamp."""

LOOK = 0.02
"""Seconds in which files are not looked at again: a change counts at a call that comes later than that."""

FILES = 16
"""Files that a call may open at once: those of its session and of builtins, an event loop's, a program's pipes."""

BUILD_PATIENCE = 3.0
"""Seconds for which a call waits for another one that makes the same engine: a hook module may hang at its import,
and the configuration may be another one by then.
"""

CLOSE_SECONDS = 5.0
"""Seconds that the plugins of all engines have to let go when the process ends."""

Stamp = tuple[int, int, int, int] | None


def stamp(path: str) -> Stamp:
    """Return what tells a file's contents from later ones, or None for a file that is not there."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return None
    return found.st_mtime_ns, found.st_ctime_ns, found.st_size, found.st_ino


def check_files() -> None:
    """Raise OSError where this process can open hardly any more files.

    What it has not loaded by now would be missing then, hooks would fail that need a loop or a program, and an engine
    that is made would lack its configuration, and stay.
    """
    opened = [os.open(os.devnull, os.O_RDONLY)]
    try:
        while len(opened) < FILES:
            opened.append(os.dup(opened[0]))
    finally:
        for fd in opened:
            os.close(fd)


class Files:
    """Files as they were at some moment.

    Parameters:
        paths: files and folders whose change counts; they need not exist.
        exist: paths of which only counts whether they are there.
    """

    def __init__(self, paths: Iterable[str], exist: Iterable[str] = ()) -> None:
        now = time_ns()
        self._stamps: dict[str, Stamp] = {}
        self._exist = {path: os.path.lexists(path) for path in exist}
        self._young = False
        self._looked = 0.0  # by the monotonic clock: when they were the same
        for path in paths:
            found = self._stamps[path] = stamp(path)
            if found is not None and now - max(found[:2]) < YOUNG:
                self._young = True

    def same(self, now: float) -> bool:
        """Whether all are as they were up to ``LOOK`` ago; never for files so new that they may have changed
        unseen.

        Parameters:
            now: by the monotonic clock.
        """
        if self._young:
            return False
        if now - self._looked < LOOK:
            return True
        for path, known in self._stamps.items():
            if stamp(path) != known:
                return False
        for path, there in self._exist.items():
            if os.path.lexists(path) != there:
                return False
        self._looked = now
        return True


class Seen(Mapping[str, str]):
    """An environment that notes which of its variables somebody looked at: what was made of it depends on them."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self.asked: dict[str, str | None] = {}

    def __getitem__(self, name: str) -> str:
        value = self._environ.get(name)
        self.asked[name] = value
        if value is None:
            raise KeyError(name)
        return value

    def __iter__(self) -> Iterator[str]:
        for name, value in self._environ.items():
            self.asked[name] = value
            yield name

    def __len__(self) -> int:
        return len(self._environ)

    def fits(self, environ: Mapping[str, str]) -> bool:
        """Whether another environment would have looked the same, but for the project that it names."""
        return environ is self._environ or all(
            environ.get(name) == value for name, value in self.asked.items() if name not in PROJECT_VARIABLES
        )


class Held:
    """An engine with what it was made of.

    Attributes:
        engine: the engine.
        root: the project's folder.
        agent: the agent that it is for: hook files that the agent runs itself are not in it.
        users: calls that are using it.
        retired: whether it is closed once nobody uses it.
    """

    __slots__ = ("agent", "engine", "environ", "files", "retired", "root", "users")

    def __init__(self, engine: Engine, root: str, agent: str, environ: Seen, files: list[Files]) -> None:
        self.engine = engine
        self.root = root
        self.agent = agent
        self.environ = environ
        self.files = files
        self.users = 0
        self.retired = False

    def current(self, now: float) -> bool:
        """Whether nothing has changed that it was made of."""
        for files in self.files:  # noqa: SIM110 - a generator costs more than the looks
            if not files.same(now):
                return False
        return True


class Lease:
    """The engine of one call: it is not closed before the call ends.

    ``engine_for`` is what the bridge asks; ``release`` comes when the call is over.
    """

    def __init__(self, engines: Engines) -> None:
        self._engines = engines
        self._held: Held | None = None

    def engine_for(self, place: Place) -> Engine:
        """Return the engine of a place. Raises whatever making it raises."""
        held = self._engines.take(place)
        if self._held is not None:
            self._engines.give_back(self._held)
        self._held = held
        return held.engine

    def release(self) -> None:
        """Let go of the engine."""
        held, self._held = self._held, None
        if held is not None:
            self._engines.give_back(held)


class Engines:
    """All engines of a resident process.

    Parameters:
        make: builds an engine as ``project.called.assemble_for`` does, which is the default.
    """

    def __init__(self, make: Callable[..., Any] | None = None) -> None:
        from ..project.called import assemble_for

        self._make = make or partial(assemble_for, foretold=memory_folder())
        self._lock = RLock()
        self._held: list[Held] = []  # the last used at the end
        self._places: dict[tuple[str, str, str], tuple[Files, Held]] = {}
        self._building: dict[tuple[str, str, str], Lock] = {}
        self._closing: list[Thread] = []
        self.made = 0
        """Engines made so far."""

    def take(self, place: Place) -> Held:
        """Return the engine of a place, in use from now on."""
        key = (place.agent, place.project, place.cwd)
        known = self._find(key, place.environ)
        if known is not None:
            return known
        with self._lock:
            building = self._building.setdefault(key, Lock())
        first = building.acquire(timeout=BUILD_PATIENCE)
        try:
            known = self._find(key, place.environ)
            return self._build(key, place) if known is None else known
        finally:
            if first:
                building.release()

    def _find(self, key: tuple[str, str, str], environ: Mapping[str, str]) -> Held | None:
        known = self._places.get(key)
        if known is None:
            return None
        way, held = known
        now = monotonic()
        if not held.environ.fits(environ) or not way.same(now) or not held.current(now):
            return None
        return held if self._use(held) else None

    def _use(self, held: Held) -> bool:
        """Begin to use an engine, unless it is retired."""
        with self._lock:
            if held.retired:
                return False
            held.users += 1
            if self._held[-1] is not held:
                self._held.remove(held)
                self._held.append(held)
            return True

    def _build(self, key: tuple[str, str, str], place: Place) -> Held:
        from ..project.called import meant
        from ..project.layers import project_root

        start, environ = meant(place)
        root = project_root(start, environ=environ)
        way = _way(start, root)
        agent = place.agent
        with self._lock:
            fitting = [
                held
                for held in self._held
                if (held.root, held.agent) == (root, agent) and held.environ.fits(place.environ)
            ]
        for held in fitting:
            if held.current(monotonic()) and self._use(held):
                with self._lock:
                    self._remember(key, way, held)
                return held
        before = Files(configuration(root))
        seen = Seen(environ)
        check_files()
        assembled = self._make(place, environ=seen)
        check_files()
        after = Files(sorted(parts(assembled.survey, place.environ)))
        held = Held(assembled.engine, root, agent, seen, [before, after])
        held.users = 1
        with self._lock:
            self.made += 1
            for old in fitting:
                self._retire(old)
            self._held.append(held)
            while len(self._held) > MOST:
                self._retire(self._held[0])
            self._remember(key, way, held)
        return held

    def _remember(self, key: tuple[str, str, str], way: Files, held: Held) -> None:
        if len(self._places) >= MOST_PLACES:
            self._places.clear()
            self._building.clear()
        self._places[key] = (way, held)

    def _retire(self, held: Held) -> None:
        if held in self._held:
            self._held.remove(held)
        self._places = {key: known for key, known in self._places.items() if known[1] is not held}
        held.retired = True
        if held.users == 0:
            self._dispose(held.engine)

    def _dispose(self, engine: Engine) -> None:
        """Close an engine, on a thread of its own: plugins may take long to let go, and no call waits for that."""
        thread = Thread(target=engine.close, daemon=True, name="hookturn-close")
        with self._lock:
            self._closing = [other for other in self._closing if other.is_alive()]
            try:
                thread.start()
            except RuntimeError:  # no thread to be had
                engine.close()
            else:
                self._closing.append(thread)

    def give_back(self, held: Held) -> None:
        """End a call's use of an engine."""
        with self._lock:
            held.users -= 1
            unused = held.retired and held.users == 0
        if unused:
            self._dispose(held.engine)

    def projects(self) -> list[str]:
        """Return the folders of the projects that have an engine."""
        with self._lock:
            return sorted({held.root for held in self._held})

    def close(self) -> None:
        """Close all engines that nobody uses, and wait for that as long as it may take; the others close when their
        calls end.
        """
        with self._lock:
            for held in list(self._held):
                self._retire(held)
            closing = self._closing
        end = monotonic() + CLOSE_SECONDS
        for thread in closing:
            thread.join(max(end - monotonic(), 0.0))


def configuration(root: str) -> list[str]:
    """Return the files that say how a project's engine is made; some are not there."""
    from ..paths import config_root, managed_config
    from ..project.layers import NAMES, TABLE
    from ..project.trust import Trust

    names = [*NAMES, TABLE, "hookturn.yml"]
    return [
        os.fspath(managed_config()),
        os.path.join(config_root(), "hookturn.yaml"),
        Trust.path(),
        *(os.path.join(root, *name.split("/")) for name in names),
    ]


def parts(survey: Any, environ: Mapping[str, str]) -> set[str]:
    """Return the files that hooks of a project are made of: scripts, modules, other agents' hook files, and where
    further ones of those may turn up.
    """
    from ..project.foreign import DIALECTS, dialect

    found = {path for item in survey.declarations for path in item.files}
    for name in DIALECTS:
        settings = survey.dialects.get(name, {})
        if settings is not False:
            module = dialect(name)
            found.update(file.path for file in module.files(survey.root, environ, settings))
            watched = getattr(module, "watched", None)
            found.update(watched(survey.root, environ) if watched is not None else ())
    for file in survey.foreign:
        for entry in file.entries:
            found.update(dialect(entry.dialect).own_files(entry, survey.root))
    for model in survey.models.values():
        found.update(entry.path for entry in model.hooks if entry.path)
    return found


def _way(start: str | None, root: str) -> Files:
    """Return what makes ``root`` the root for somebody who starts at ``start``; None: a variable names it."""
    from ..project.layers import NAMES, TABLE

    if start is None:
        return Files(())
    exist, whole = [], []
    folder = os.path.abspath(start)
    while True:
        exist += [os.path.join(folder, *name.split("/")) for name in (*NAMES, ".git")]
        whole.append(os.path.join(folder, TABLE))
        above = os.path.dirname(folder)
        if folder == root or above == folder:
            return Files(whole, exist)
        folder = above


def installation() -> Files:
    """Return the folders in which packages are installed: a change there asks for a new process."""
    return Files(path for path in sys.path if os.path.isdir(path))
