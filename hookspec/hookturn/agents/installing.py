"""How ``hookturn install`` writes itself into an agent's own configuration. Edits texts; touches no file.

Each ``agents/<name>/install.py`` says which files those are and what stands in
them; the shapes that several agents share are edited here. Whatever else is in
a file stays as it is, comments and layout included.
"""

from __future__ import annotations

import json
import os
import re
from stat import S_ISREG

from ..spec.errors import HookturnError
from ..spec.record import Record
from .json_text import cut, nodes, put, spread, without_comments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any, Protocol

    from .moments import Row

    class AgentInstall(Protocol):
        """What every ``agents/<name>/install.py`` provides."""

        NAME: str
        """The agent's name, as in ``hookturn install NAME``."""

        def changes(self, request: Request) -> list[Change]:
            """Return how the agent's files must read; files that are right already are left out.

            Raises:
                CannotInstall: when a file cannot be understood, or the request cannot be met.
            """
            ...


SECONDS = {
    "tool": 60.0,
    "permission": 300.0,
    "turn_end": 120.0,
    "idle": 120.0,
    "subagent_end": 120.0,
    "session_end": 10.0,
}
"""Seconds that our entry asks for, by what the event is for us (``Row.does``)."""

OTHER_SECONDS = 60.0

BACKUP = ".hookturn-backup"
"""What the name of a file's last other form ends with."""

_CALLS_US = re.compile(
    r"(?:^|[\s/\\\"'=])hookturn(?:\.exe)?[\"']?\s+bridge\b|\bhookturn[/\\.](?:serve|cli)\b.*\bbridge\b"
)


def calls_bridge(command: str) -> bool:
    """Tell whether a command line calls ``hookturn bridge``, by whatever name and path."""
    return _CALLS_US.search(command) is not None


REFUSE_WITHOUT_US = ("gemini", "copilot")
"""Agents that refuse every call when the program of a hook is not there (the shell's exit code 127); the others go
on without the hook. Source: Gemini CLI 0.61.0 and Copilot CLI 1.0.102 as run."""

WHERE_STARTED = ("claude-code", "gemini", "qwen")
"""Agents that read a project's settings only in the folder that they are started in. Source: Claude Code 2.1.332,
Gemini CLI 0.61.0 and Qwen Code 0.24.4 as run."""

RUN_TWICE = ("codex", "copilot")
"""Agents that run the user's and the project's entries even where they are the same; the others run one of them.
Source: Codex 0.171.0 and Copilot CLI 1.0.102 as run."""

_STRING = re.compile(r'"(?:[^"\\\n]|\\.)*"')


def called_files(text: str) -> list[str]:
    """Return the files by which an agent's configuration calls us: absolute paths in our command lines.

    Parameters:
        text: a file with command lines as JSON strings.
    """
    import shlex

    found: dict[str, None] = {}
    for match in _STRING.finditer(text):
        try:
            line = json.loads(match[0], strict=False)
            if calls_bridge(line):
                found |= dict.fromkeys(word for word in shlex.split(line) if word.startswith("/"))
        except ValueError:  # no JSON, or no line for a shell
            continue
    return list(found)


class CannotInstall(HookturnError):
    """A configuration that cannot be changed safely. The message says which, where, why and what to do."""


class Change(Record):
    """How one file must read.

    Parameters:
        path: the file, absolute.
        label: the file as people read it.
        old: its content now, or None when it is not there.
        new: its content then, or None when it is to be deleted.
        private: it holds a secret, so nobody else may read it.
        notes: what the user should know or do besides.
    """

    path: str
    label: str
    old: Any
    new: Any
    private: bool = False
    notes: list[str] = []


class Endpoint(Record):
    """Where the resident process listens for HTTP.

    Parameters:
        url: of the agent's hooks: ``http://127.0.0.1:41234/hooks/claude-code``.
        token: what it wants to see.
    """

    url: str
    token: str


class Request:
    """What is asked for.

    Parameters:
        project: the project's folder.
        user: the user's own configuration, not the project's.
        environ: the environment, which may say where an agent keeps its files.
        command: makes the shell line from the seconds that a call has.
        read: returns a file's bytes, or None when it is not there; raises CannotInstall for what is no file.
        remove: take our entries out.
        http: where the resident process listens, for agents that can call it directly; None: commands only.
        closed: events that must not fail open and so stay commands; see ``hookturn install --http``.
        folder: the folder to install in, for what is configured by folder: a role of rolebox; "" for none.
    """

    def __init__(
        self,
        *,
        project: str,
        user: bool,
        environ: Mapping[str, str],
        command: Callable[[int], str],
        read: Callable[[str], bytes | None],
        remove: bool = False,
        http: Endpoint | None = None,
        closed: Iterable[str] = (),
        folder: str = "",
    ) -> None:
        self.project = project
        self.user = user
        self.environ = environ
        self._command = command
        self.read = read
        self.remove = remove
        self.http = http
        self.closed = frozenset(closed)
        self.folder = folder

    def command(self, seconds: int, event: str = "") -> str:
        """Return the shell line with which the agent calls us.

        Parameters:
            seconds: how long an answer may take.
            event: the event, for agents whose refusals differ by event: a payload that cannot be read does not say
                it. "" for none.
        """
        line = self._command(seconds)
        return f"{line} --event {event}" if event else line

    def home(self) -> str:
        """Return the user's home.

        Raises:
            CannotInstall: when the environment does not say it.
        """
        home = self.environ.get("HOME", "")
        if not home.startswith("/"):
            raise CannotInstall("HOME is not set, so the user's configuration cannot be found. Set it.")
        return home

    def label(self, path: str) -> str:
        """Return a path as people read it: relative to the project, or below ``~``."""
        for folder, short in ((self.project, ""), (self.environ.get("HOME", ""), "~/")):
            if folder and path.startswith(folder.rstrip("/") + "/"):
                return short + path[len(folder.rstrip("/")) + 1 :]
        return path

    def own_module(self, path: str, mark: str) -> bytes | None:
        """Return what our JavaScript module holds now, or None when it is not there.

        Parameters:
            path: its place.
            mark: how every module of ours begins.

        Raises:
            CannotInstall: when somebody else's file stands there.
        """
        old = self.read(path)
        if old is not None and not old.decode("utf-8", "replace").startswith(mark):
            raise CannotInstall(f"{self.label(path)} is not hookturn's, so it stays as it is. Rename it.")
        return old

    def edited(
        self, path: str, edit: Callable[[str], str], *, private: bool = False, notes: Iterable[str] = ()
    ) -> list[Change]:
        """Return the change of one JSON file, or nothing when it is right already.

        Parameters:
            path: the file.
            edit: gets its text (``{}`` and a line end for one that is not there) and returns how it must read.
            private, notes: as in ``Change``.

        Raises:
            CannotInstall: when the file is no JSON.
        """
        old = self.read(path)
        if old is None and self.remove:
            return []
        label = self.label(path)
        try:
            text = (b"{}\n" if not (old or b"").strip() else old or b"").decode("utf-8")
        except UnicodeDecodeError:
            raise CannotInstall(f"{label} is not UTF-8, so it stays as it is. Save it as UTF-8.") from None
        mark = "\ufeff" if text.startswith("\ufeff") else ""
        text = _checked(text[len(mark) :], label)
        edited = edit(text)
        if edited != text and not self.remove:
            edited = edit(spread(text))  # what stands on one line would become one of thousands of characters
        if self.remove and edited != text:
            before = self._backup(path)
            if before and spread(before) == edited:  # it stood on one line, as it does again
                edited = before
        new = mark + edited
        data = new.encode("utf-8")
        if data == old:
            return []
        if old is not None and "".join(new.split()) == mark + "{}":  # it held nothing but ours
            return [Change(path, label, old, None, private, list(notes))]
        return [Change(path, label, old, data, private, list(notes))]

    def _backup(self, path: str) -> str:
        """Return how a file was before, or "": what else stands in the backup's place tells nothing."""
        place = backup_place(path)
        try:
            before = (self.read(place) if place else None) or b""
            return _checked(before.decode("utf-8-sig"), place)
        except (CannotInstall, UnicodeDecodeError):
            return ""


def backup_place(path: str) -> str:
    """Return where the old form of a file is kept beside it, or "" where something else stands there."""
    place = os.path.realpath(path) + BACKUP
    try:
        return place if S_ISREG(os.lstat(place).st_mode) else ""
    except OSError:  # nothing stands there
        return place


def _checked(text: str, label: str) -> str:
    """Return a text that is a JSON object."""
    try:
        data = json.loads(without_comments(text))
    except json.JSONDecodeError as error:
        raise CannotInstall(
            f"{label}:{error.lineno}:{error.colno}: not JSON ({error.msg}), so the file stays as it is. "
            "Correct it, then run the command again."
        ) from None
    except (ValueError, RecursionError) as error:
        raise CannotInstall(f"{label}: cannot be read: {type(error).__name__}. Correct it.") from None
    if not isinstance(data, dict):
        raise CannotInstall(f"{label} holds no JSON object, so it stays as it is. Is it the right file?")
    return text


def seconds_of(row: Row, most: float = 1e9) -> int:
    """Return the whole seconds that our entry asks for.

    Parameters:
        row: the event.
        most: what the agent allows there.
    """
    return round(min(SECONDS.get(row.does, OTHER_SECONDS), most))


def wanted_of(
    request: Request,
    events: Mapping[str, Row],
    entry: Callable[[str, int], dict[str, Any]],
    most: Mapping[str, float] | None = None,
) -> dict[str, dict[str, Any]]:
    """Return the entries that a configuration must have: event -> our entry. None when ours are to go.

    Parameters:
        request: what is asked for.
        events: the agent's table; rows that are not to be installed are left out.
        entry: makes the entry of an event from its name and the seconds that it has.
        most: event -> seconds that the agent allows at most.
    """
    if request.remove:
        return {}
    return {
        event: entry(event, seconds_of(row, (most or {}).get(event, 1e9)))
        for event, row in events.items()
        if row.install
    }


def module_text(template: str, command: list[str], seconds: int, closed: Iterable[str]) -> str:
    """Return the text of a JavaScript module of ours for one installation.

    Parameters:
        template: the module's file, whose constants COMMAND, SECONDS and CLOSED are replaced.
        command: the bridge's program and words.
        seconds: how long an answer may take.
        closed: names of events that refuse when no answer comes.
    """
    with open(template, encoding="utf-8") as file:
        text = file.read()
    for name, value in (("COMMAND", command), ("SECONDS", seconds), ("CLOSED", sorted(closed))):
        before, line, after = re.split(rf"^(const {name} = ).*$", text, flags=re.MULTILINE)
        text = f"{before}{line}{json.dumps(value)}{after}"
    return text


def is_ours(handler: Any, keys: Iterable[str] = ("command", "bash")) -> bool:
    """Tell whether a handler calls us: a command line, or the resident process's address.

    Parameters:
        handler: an entry of an agent's configuration.
        keys: where its command line may stand.
    """
    if not isinstance(handler, dict):
        return False
    url = handler.get("url")
    if isinstance(url, str):
        headers = handler.get("headers")
        if not isinstance(headers, dict) or "Authorization" not in headers:
            return False
        return re.match(r"http://127\.0\.0\.1:\d+/hooks/[a-z-]+$", url) is not None
    return any(_runs_bridge(handler[key]) for key in keys if isinstance(handler.get(key), str))


_BEFORE = re.compile(
    r"(?:.*/)?(?:env|exec|nice|timeout|uvx?|pipx|run|tool|(?:python|pypy)[\d.]*|py)(?:\.exe)?|[A-Za-z_]\w*=.*|-.*|[\d.]+"
    r"|/.*"
)
"""Words that may stand before a program without being the command: what starts it, its options, variables, and the
beginning of its own path, where blanks in it were not quoted."""


def _runs_bridge(line: str) -> bool:
    """Tell whether a command line runs a bridge, and not only speaks of one."""
    import shlex

    try:
        words = shlex.split(line.replace("\\", "/"))
    except ValueError:  # no line for a shell
        return False
    start = 0
    for at, word in enumerate(words):
        if word in ("&&", "||", ";", "|"):
            start = at + 1
        elif word == "bridge" and at > start and calls_bridge(f"{words[at - 1]} bridge"):
            client = re.search(r"hookturn[/.](?:serve|cli)\b", words[at - 1])  # nobody speaks of that
            return client is not None or all(_BEFORE.fullmatch(before) for before in words[start : at - 1])
    return False


def called_at(content: bytes | None) -> list[str]:
    """Return the events at which a configuration calls us, whatever its shape.

    Parameters:
        content: an agent's configuration, or None for none.
    """
    try:
        hooks = json.loads(without_comments((content or b"").decode("utf-8-sig"))).get("hooks")
    except (ValueError, RecursionError, AttributeError):  # no JSON, or no object: a module, say
        return []
    found: dict[str, None] = {}
    for event, value in hooks.items() if isinstance(hooks, dict) else ():
        items = value if isinstance(value, list) else [value]
        for item in items:
            inner = item.get("hooks") if isinstance(item, dict) else None
            if any(is_ours(handler) for handler in (inner if isinstance(inner, list) else [item])):
                name = item.get("event") if item is value else event
                found[name if isinstance(name, str) else event] = None
    return list(found)


def grouped(text: str, wanted: Mapping[str, dict[str, Any]], label: str) -> str:
    """Edit a table in Claude Code's shape: ``{"hooks": {EVENT: [{"matcher": M, "hooks": [HANDLER]}]}}``.

    Parameters:
        text: the file.
        wanted: event -> our handler; our handlers of other events are taken out.
        label: the file, for messages.

    Raises:
        CannotInstall: when the table is not of this shape.
    """
    hooks = _table(text, label)
    for event in [*hooks, *(event for event in wanted if event not in hooks)]:
        groups = _list(hooks.get(event, []), label, event)
        ours = [
            (at, inner)
            for at, group in enumerate(groups)
            if isinstance(group, dict) and isinstance(group.get("hooks"), list)
            for inner, handler in enumerate(group["hooks"])
            if is_ours(handler)
        ]
        left = {at: len(group["hooks"]) for at, group in enumerate(groups) if at in {at for at, _ in ours}}
        gone = 0
        for at, inner in reversed(ours[1:] if event in wanted else ours):
            left[at] -= 1
            path = ("hooks", event, at)
            gone += not left[at]
            text = cut(text, (*path, "hooks", inner) if left[at] else path)
        if event in wanted and ours:
            at, inner = ours[0]
            if groups[at]["hooks"][inner] != wanted[event]:
                text = put(text, ("hooks", event, at, "hooks", inner), wanted[event])
        elif event in wanted:
            text = _appended(text, hooks, event, {"matcher": "*", "hooks": [wanted[event]]})
        elif ours and gone == len(groups):
            text = cut(text, ("hooks", event))
    return _without_empty(text, hooks)


def listed(text: str, wanted: Mapping[str, dict[str, Any]], label: str) -> str:
    """Edit a flat table: ``{"hooks": {EVENT: [HANDLER]}}``. Parameters and errors as for ``grouped``."""
    hooks = _table(text, label)
    for event in [*hooks, *(event for event in wanted if event not in hooks)]:
        handlers = _list(hooks.get(event, []), label, event)
        ours = [at for at, handler in enumerate(handlers) if is_ours(handler)]
        for at in reversed(ours[1:] if event in wanted else ours):
            text = cut(text, ("hooks", event, at))
        if event in wanted and ours:
            if handlers[ours[0]] != wanted[event]:
                text = put(text, ("hooks", event, ours[0]), wanted[event])
        elif event in wanted:
            text = _appended(text, hooks, event, wanted[event])
        elif ours and len(ours) == len(handlers):
            text = cut(text, ("hooks", event))
    return _without_empty(text, hooks)


def named(text: str, wanted: Mapping[str, dict[str, Any]], label: str) -> str:
    """Edit a table of named entries: ``{"hooks": {NAME: ENTRY}}``. Parameters and errors as for ``grouped``."""
    hooks = _table(text, label)
    for name, entry in hooks.items():
        if is_ours(entry) and name not in wanted:
            text = cut(text, ("hooks", name))
    for name, entry in wanted.items():
        if name in hooks and not is_ours(hooks[name]):
            raise CannotInstall(f"{label}: the name {name!r} is taken by another hook. Rename that one.")
        if hooks.get(name) != entry:
            text = put(text, ("hooks", name), entry)
    return _without_empty(text, hooks)


def _appended(text: str, hooks: Mapping[str, Any], event: str, item: Any) -> str:
    """Return the text with an item at the end of an event's list, which is made where it is missing."""
    if event in hooks:
        return put(text, ("hooks", event, len(hooks[event])), item)
    return put(text, ("hooks", event), [item])


def _table(text: str, label: str) -> dict[str, Any]:
    hooks = json.loads(without_comments(text)).get("hooks", {})
    if not isinstance(hooks, dict):
        raise CannotInstall(f"{label}: 'hooks' is no object, so the file stays as it is. Correct it.")
    return hooks


def _list(value: Any, label: str, event: str) -> list[Any]:
    if not isinstance(value, list):
        raise CannotInstall(f"{label}: 'hooks.{event}' is no array, so the file stays as it is. Correct it.")
    return value


def _without_empty(text: str, before: Mapping[str, Any]) -> str:
    """Take the table out when our last entry was all that it held; a comment in it stays."""
    if not before or json.loads(without_comments(text)).get("hooks") != {}:
        return text
    node = nodes(text).find(("hooks",))
    return cut(text, ("hooks",)) if node is not None and "/" not in text[node.start : node.end] else text
