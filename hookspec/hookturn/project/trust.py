"""What the user has agreed to let run from a project's file: the trust store in the user's state folder.

An untrusted project file can only tighten. In effect without trust are its
``permissions.deny`` and ``permissions.ask`` rules, and hooks whose fixed
answer is nothing but deny, ask, block or warn (they run no code), as long as
they replace no hook of the same name from another layer. Everything else waits
for ``hookturn trust``: all that runs, loosens, replaces or configures.

Trust is given for each declaration by its content (its own and that of the
files that it would run), so that a new hook does not make the old ones
untrusted, and one changed byte of a hook's file makes that hook untrusted.
"""

from __future__ import annotations

from ..engine.match import Rule
from ..spec.errors import AnswerError
from ..spec.record import Record
from .model import FILTER
from .problems import Problem, without_secrets

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Iterable
    from typing import Any

    from ..runners.entry import HookEntry
    from .model import Model

SCHEMA = 1
STATES = ("trusted", "untrusted", "changed")


class Declaration(Record):
    """One thing that a project file declares and that counts only when trusted.

    Parameters:
        project: the project's real folder.
        key: what it is: ``hooks.NAME``, ``plugins.NAME``, ``settings.NAME``, ``permissions.always_allow``, or
            ``foreign.DIALECT:FILE:NAME:PLACE`` for a hook in another agent's file.
        digest: SHA-256 of the declaration and of every file that it would run.
        what: what it does, for the user: ``runs hooks/x.py (guard)``.
        source: where it stands, such as ``hookturn.yaml:3``.
        files: path -> SHA-256 of each file that it would run ("" for one that cannot be read).
        tightens: it runs no code and can only tighten, so that it counts without trust.
        guard: for a guard, where it guards: timings, tools, agents, event_types; else None.
        title: what people call it, where that is not its ``name``.
    """

    project: str
    key: str
    digest: str
    what: str
    source: str
    files: dict[str, str] = {}
    tightens: bool = False
    guard: Any = None
    title: str = ""

    @property
    def name(self) -> str:
        """The hook's, plugin's or setting's own name."""
        return self.key.partition(".")[2]

    @property
    def foreign(self) -> bool:
        """Whether it stands in another agent's hook file."""
        return self.key.startswith("foreign.")

    def to_json(self) -> dict[str, Any]:
        """Return what ``hookturn trust --json`` shows."""
        return {
            "key": self.key,
            "what": without_secrets(self.what),
            "source": self.source,
            "files": dict(self.files),
            "digest": self.digest,
            "guard": self.guard is not None,
        }


def tightens(entry: HookEntry) -> bool:
    """Tell whether a hook runs no code and can only tighten, so that it counts without trust."""
    from ..runners import answer

    return entry.enabled and entry.kind == "answer" and not entry.config and answer.tightens(entry.run)


def declarations(
    model: Model, project: str, replaces: Collection[str] = (), *, guards: bool = True
) -> list[Declaration]:
    """Return what a project file declares, with digests of its text and of the files that it would run.

    Parameters:
        model: the file; without its hooks where they have not been read yet.
        project: the project's folder.
        replaces: names of the user's hooks, which a project's hook of that name replaces.
        guards: find out which hooks are guards; needed to trust them, not to compare them.
    """
    from os.path import realpath

    from .secrets import commands

    data = model.document.data
    root = realpath(project)
    found: list[Declaration] = []

    def add(
        key: str,
        raw: object,
        what: str,
        source: str,
        argvs: list[list[str]],
        paths: Iterable[str] = (),
        **more: Any,
    ) -> None:
        for program in argvs:
            what += f", runs {' '.join(program)}"
        files = _files(paths, argvs, model.base_dir)
        found.append(
            declare(root, key, raw, what, source, files, model.base_dir, model.document.file, **more)
        )

    for entry in model.hooks:
        raw = data["hooks"][entry.index]
        where = f" at {', '.join(entry.timings)}" if entry.timings else ""
        if not entry.enabled:
            what = f"switches off the hook {entry.name}"
        elif entry.kind in ("module", "javascript"):
            what = f"runs {entry.run}{where}"
        elif entry.kind == "command":
            what = f"runs {_words_of(entry)}{where}"
        elif entry.kind == "webhook":
            what = f"{webhook_words(entry)}{where}"
        else:
            what = f"answers {', '.join(entry.run)}{where}"
        if entry.enabled and entry.name in replaces:
            what += f", instead of the user's hook {entry.name}"
        guard = guard_of(entry) if guards and entry.enabled else None
        if guard is not None:
            what += " (guard)"
        add(
            f"hooks.{entry.name}", raw, what, entry.source, _programs(entry), _own_files(entry, project),
            tightens=tightens(entry), guard=guard,
        )  # fmt: skip
    for name, plugin in model.plugins.items():
        verb = "switches off" if not plugin.enabled else "configures" if plugin.settings else "switches on"
        what = f"{verb} the plugin {plugin.name}" + (", and requires it" if plugin.required else "")
        add(f"plugins.{name}", data["plugins"][plugin.name], what, plugin.source, commands(plugin.settings))
    for name, value in model.settings.items():
        line, _ = model.document.at((name,), key=True)
        add(f"settings.{name}", value, f"sets {name}", f"{model.document.file}:{line}", [])
    allowed = model.rules["always_allow"]
    if allowed:
        rules = [rule.text for rule in allowed]
        add(
            "permissions.always_allow",
            rules,
            f"allows {', '.join(rules)} without a prompt",
            allowed[0].source,
            [],
        )
    return found


def declare(
    root: str,
    key: str,
    raw: object,
    what: str,
    source: str,
    files: dict[str, str],
    base_dir: str,
    label: str,
    **more: Any,
) -> Declaration:
    """Return a declaration with the digest of its text and of the files that it would run.

    Parameters:
        root: the project's real folder.
        key, what, source, files: as in ``Declaration``.
        raw: what the file says, as JSON could hold it.
        base_dir: the folder that relative paths start from.
        label: the declaring file.
        more: further fields of ``Declaration``.
    """
    from os.path import relpath

    # Relative to the declaring file, so that a link to the project is the project.
    content = {relpath(file, base_dir): digest for file, digest in files.items()}
    digest = _digest({"key": key, "base": label, "raw": raw, "files": content})
    return Declaration(root, key, digest, what, source, files, **more)


def guard_of(entry: HookEntry) -> dict[str, Any] | None:
    """Return where a hook guards (timings and filter), or None for one that is no guard.

    A file may make its functions guards itself; its text tells, since nothing of an untrusted file is run.
    """
    from ..runners.module import guards, read

    timings = list(entry.timings)
    if not entry.guard:
        if entry.kind != "module" or entry.options.get("guard") is False:
            return None
        try:
            marked = guards(read(entry.path))
        except (OSError, ValueError):
            return None  # it cannot be loaded either
        timings = [name for name in marked if not timings or name in timings]
        if not timings:
            return None
    guard: dict[str, Any] = {"timings": timings}
    guard.update({key: list(value) for key, value in entry.options.items() if key in FILTER})
    return guard


def _own_files(entry: HookEntry, project: str) -> list[str]:
    """Return the files that a hook itself would run."""
    if entry.kind == "command":
        from ..runners.command import files

        return files(entry, project)
    return [entry.path] if entry.path else []


def _programs(entry: HookEntry) -> list[list[str]]:
    """Return the programs that give an entry its secrets."""
    from .secrets import commands

    return commands([entry.config, entry.run] if entry.kind == "webhook" else entry.config)


def webhook_words(entry: HookEntry) -> str:
    """Return what a webhook does, for people who are asked to trust it: where to, and which secrets go along."""
    from ..runners.addresses import parse_url
    from .secrets import reference

    run = entry.run
    kind = reference(run["url"])
    where = f"the URL in {{{kind}: {run['url'][kind]}}}" if kind else parse_url(run["url"]).origin
    words = f"sends its events to {where}"
    for name, value in (run.get("headers") or {}).items():
        kind = reference(value)
        if kind in ("env", "file"):
            words += f", with {{{kind}: {value[kind]}}} as the header {name}"
    if run.get("redact") is False:
        words += ", and the secrets in them"
    return words


def _words_of(entry: HookEntry) -> str:
    from ..runners.command import words_of

    return words_of(entry)


def _files(paths: Iterable[str], argvs: list[list[str]], base_dir: str) -> dict[str, str]:
    """Return the digest of each file that a declaration would run: its own, and files that a secret's program names."""
    import os

    from ..runners.module import digest_of

    names = list(paths)
    for argv in argvs:
        for word in argv:
            place = os.path.join(base_dir, word)
            if "\0" not in word and os.path.isfile(place) and (word is not argv[0] or os.sep in word):
                names.append(os.path.abspath(place))
    return {name: digest_of(name) for name in names}


def _digest(value: object) -> str:
    import json
    from hashlib import sha256

    return sha256(json.dumps(value, sort_keys=True, separators=(",", ":")).encode()).hexdigest()


class Trust:
    """The trust store, as it was when it was loaded. ``add`` and ``remove`` change the file, over processes.

    Attributes:
        projects: real folder -> what was trusted there.
        problem: what is wrong with the store's file, or None; nothing is trusted then.
    """

    def __init__(self, projects: dict[str, Any], problem: Problem | None = None) -> None:
        self.projects = projects
        self.problem = problem

    @staticmethod
    def path() -> str:
        """Return the store's file."""
        import os

        from ..paths import state_folder

        return os.path.join(state_folder(), "trust.json")

    @classmethod
    def load(cls) -> Trust:
        """Read the store. A missing file trusts nothing; so does a damaged one, with a problem."""
        from ..quick import loads
        from ..runners.module import read

        path = cls.path()
        try:
            data = loads(read(path))
            projects = data["projects"]
            if data["schema"] != SCHEMA or not isinstance(projects, dict):
                raise ValueError(f"schema {data['schema']!r} is not {SCHEMA}")
            if not all(_is_record(record) for record in projects.values()):
                raise ValueError("a project's record is not of the expected form")
        except FileNotFoundError:
            return cls({})
        except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
            return cls(
                {},
                Problem(
                    path,
                    0,
                    0,
                    "",
                    f"the trust store cannot be used: {type(error).__name__}: {error}",
                    "No project is trusted until `hookturn trust` writes it anew.",
                ),
            )
        return cls(projects)

    def state(self, declaration: Declaration) -> str:
        """Return ``trusted``, ``untrusted`` (never seen) or ``changed`` (trusted in another form)."""
        known = self._items(declaration.project).get(declaration.key)
        if known is None:
            return "untrusted"
        return "trusted" if known.get("digest") == declaration.digest else "changed"

    def knows(self, project: str) -> bool:
        """Tell whether anything of a project was trusted."""
        from os.path import realpath

        return realpath(project) in self.projects

    def lost(self, project: str, declared: Iterable[Declaration]) -> dict[str, dict[str, Any]]:
        """Return the trusted guards that are not in force as they were: changed, or gone from the file.

        Parameters:
            project: the project's folder.
            declared: what its file declares now.

        Returns:
            name -> where it guarded, with ``why``: changed or gone.
        """
        from os.path import realpath

        now = {declaration.key: declaration.digest for declaration in declared}
        lost = {}
        for key, item in self._items(realpath(project)).items():
            guard = item.get("guard")
            if isinstance(guard, dict) and now.get(key) != item.get("digest"):
                why = (
                    "has changed since it was trusted"
                    if key in now
                    else "is gone from the project's configuration"
                )
                lost[key.partition(".")[2]] = {**guard, "why": why, "files": item.get("files", [])}
        return lost

    def rules(self, project: str) -> dict[str, list[Rule]]:
        """Return the deny and ask rules that the project had when it was trusted; dropping one loosens."""
        from os.path import realpath

        rules = self.projects.get(realpath(project), {}).get("rules", {})
        kept: dict[str, list[Rule]] = {"deny": [], "ask": []}
        for kind, found in kept.items():
            for text in rules.get(kind, ()):
                try:
                    found.append(Rule(text, "trusted before"))
                except (AnswerError, AttributeError):  # not written by us
                    continue
        return kept

    def _items(self, project: str) -> dict[str, dict[str, Any]]:
        items: dict[str, dict[str, Any]] = self.projects.get(project, {}).get("items", {})
        return items

    def add(
        self, project: str, declared: Iterable[Declaration], rules: dict[str, list[str]] | None = None
    ) -> None:
        """Trust what a project declares, exactly as it was shown, and forget what was trusted there before.

        Parameters:
            project: the project's folder.
            declared: its declarations, from ``declarations``.
            rules: its deny and ask rules, as texts.

        Raises:
            OSError: when the store cannot be written; the old one is then untouched.
        """
        from os.path import realpath
        from time import time

        from ..spec.events import rfc3339

        items = {}
        for item in declared:
            items[item.key] = {"digest": item.digest, "what": item.what, "files": sorted(item.files)}
            if item.guard is not None:
                items[item.key]["guard"] = item.guard
        record = {"time": rfc3339(time()), "items": items, "rules": rules or {}}
        self._change(lambda projects: projects.update({realpath(project): record}))

    def remove(self, project: str) -> bool:
        """Forget a project; return whether it was known.

        Raises:
            OSError: when the store cannot be written.
        """
        from os.path import realpath

        found: list[Any] = []
        self._change(lambda projects: found.append(projects.pop(realpath(project), None)))
        return found[0] is not None

    def _change(self, change: Any) -> None:
        import json
        import os

        from ..paths import FileLock, private_folder, write_private

        path = self.path()
        folder = private_folder(os.path.dirname(path))
        with FileLock(f"{path}.lock", timeout=30):
            fresh = Trust.load()
            if fresh.problem is not None:
                os.replace(path, f"{path}.damaged")  # kept for a look
            change(fresh.projects)
            text = json.dumps({"schema": SCHEMA, "projects": fresh.projects}, indent=1, sort_keys=True)
            write_private(path, text.encode(), base=folder, durable=True)
            self.projects, self.problem = fresh.projects, None


def _is_record(record: object) -> bool:
    return (
        isinstance(record, dict)
        and isinstance(record.get("items"), dict)
        and all(isinstance(item, dict) for item in record["items"].values())
        and isinstance(record.get("rules", {}), dict)
        and all(isinstance(rules, list) for rules in record.get("rules", {}).values())
    )
