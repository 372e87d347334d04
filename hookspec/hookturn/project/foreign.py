"""Other agents' hook files: finds and reads them, each by its agent's dialect. Runs nothing of them."""

from __future__ import annotations

from ..quick import import_module
from ..runners.entry import HookEntry
from ..spec.errors import did_you_mean
from ..spec.record import Record, thaw
from .document import MAX_BYTES, Document
from .layers import not_managed, not_users, read_cached_yaml
from .problems import Problem, show
from .trust import declare

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from typing import Any

    from ..agents.dialect import Dialect, HookFile
    from .survey import Survey
    from .trust import Declaration

DIALECTS: dict[str, str] = {
    "atomcode": "hookturn.agents.atomcode.config",
    "rolebox": "hookturn.agents.rolebox.config",
    "claude-code": "hookturn.agents.claude_code.config",
}
"""Module of each dialect, in order of registration."""

RUN_BY: dict[str, dict[str, tuple[str, ...]]] = {
    "atomcode": {"atomcode": ("managed", "user", "project")},
    "rolebox": {"rolebox": ("managed", "user", "project")},
    "claude-code": {"claude-code": ("managed", "user", "project")},
    "copilot": {"claude-code": ("project",)},
}
"""Agent -> dialect -> layers of the files that the agent itself runs. Source: the agents' documentation."""


def left_to(agent: str, name: str, place: HookFile, settings: Mapping[str, Any]) -> bool:
    """Tell whether the agent that calls us runs a hook file itself.

    Parameters:
        agent: the agent, or "" when none calls.
        name: the dialect.
        place: the file.
        settings: the dialect's.
    """
    if agent == "atomcode" == name and place.kind == "toml" and settings.get("generation") != 1:
        return False  # AtomCode dropped hooks.toml with its second generation
    return place.layer in RUN_BY.get(agent, {}).get(name, ())


SAID_BY = "said_by"
"""Key beside a dialect's options: the layer whose file says them. A folder that a project names is not the user's."""


def _patterns(value: Any) -> str:
    """Return what is wrong with the option ``fail_closed``, or an empty string."""
    if isinstance(value, list) and all(isinstance(item, str) and item for item in value):
        return ""
    return "expected a list of hooks' names or globs"


COMMON: dict[str, Any] = {"fail_closed": _patterns}
"""Options that every dialect has. ``fail_closed``: hooks whose failure is a Deny, for no other agent's format can say so."""


class ForeignFile(Record):
    """One hook file of another agent, read.

    Parameters:
        place: where it lies.
        document: what it holds.
        entries: the hooks that it declares.
        authority: "" or why the file is not safe from others; its hooks do not count then.
    """

    place: Any
    document: Any
    entries: list[HookEntry] = []
    authority: str = ""


def dialect(name: str) -> Dialect:
    """Return the module of a dialect."""
    found: Dialect = import_module(DIALECTS[name])
    return found


def key_of(entry: HookEntry) -> str:
    """Return the key under which an entry is trusted: its name, and the names of its place in the file.

    Names alone may meet (a plugin ``a`` with a hook ``b:c``, a plugin ``a:b`` with a hook ``c``); numbers of places
    change when another hook is put before it.
    """
    from json import dumps

    where = dumps([key for key in entry.where if isinstance(key, str)])
    return f"foreign.{entry.dialect}:{entry.file}:{entry.name}:{where}"


def settings_of(survey: Survey) -> dict[str, Any]:
    """Return ``dialects:`` of all layers, by dialect: False for one that is off, else its settings; problems are told."""
    found: dict[str, Any] = {name: {} for name in DIALECTS}
    for layer in ("user", "project", "managed"):
        model = survey.models.get(layer)
        if model is None or "dialects" not in model.settings:
            continue
        counts = survey.state(layer, "settings.dialects") == "trusted"
        table = model.settings["dialects"]
        if not isinstance(table, dict):
            model.problem(("dialects",), "expected a mapping of names", "Write {atomcode: {generation: 1}}.")
            continue
        for name, value in table.items():
            path = ("dialects", name)
            if name not in DIALECTS:
                near = did_you_mean(name, DIALECTS)
                model.problem(
                    path, f"unknown dialect {show(name)}{near}", f"Known are {', '.join(DIALECTS)}.", key=True
                )
            elif isinstance(value, bool) or value is None:
                if counts:
                    found[name] = False if value is False else {}
            elif not isinstance(value, dict):
                model.problem(
                    path, f"expected true, false or settings, got {show(value)}", "Write true, say."
                )
            else:
                good = _options(model, path, value, {**dialect(name).SETTINGS, **COMMON})
                if counts:
                    # No layer takes back what another wants to fail closed.
                    before = found[name] if isinstance(found[name], dict) else {}
                    closed = [*before.get("fail_closed", ()), *good.get("fail_closed", ())]
                    found[name] = {**good, SAID_BY: layer, **({"fail_closed": closed} if closed else {})}
    return found


def _options(model: Any, path: Any, given: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options that are right; the others leave problems."""
    good = {}
    for key, value in given.items():
        place = (*path, key)
        if key not in known:
            remedy = f"Known are {', '.join(known)}." if known else "It has none."
            model.problem(place, f"unknown option {show(key)}{did_you_mean(key, known)}", remedy, key=True)
            continue
        will_do = known[key]
        if callable(will_do):
            wrong = will_do(thaw(value))
            if wrong:
                model.problem(place, wrong, "Correct it.")
                continue
        elif not any(value == word and type(value) is type(word) for word in will_do):
            words = " or ".join(
                str(word).lower() if isinstance(word, bool) else str(word) for word in will_do
            )
            model.problem(place, f"expected {words}, got {show(value)}", f"Write {will_do[0]}, say.")
            continue
        good[key] = thaw(value)
    return good


def read_files(survey: Survey, environ: Mapping[str, str], agent: str = "") -> list[ForeignFile]:
    """Find and read the hook files of all dialects that are on.

    Parameters:
        survey: the project; its problems grow.
        environ: the agent's environment, which says where an agent keeps its files.
        agent: the agent that calls us; what it runs itself is left out.

    Returns:
        the files that hold something, in order of registration.
    """
    found = []
    settings = settings_of(survey)
    survey.dialects = settings
    for name in DIALECTS:
        if settings[name] is False:
            continue
        module = dialect(name)
        for place in module.files(survey.root, environ, settings[name]):
            if not left_to(agent, name, place, settings[name]):
                file = read_file(module, place, settings[name], survey.problems)
                if file is not None:
                    found.append(file)
    return found


def read_file(
    module: Dialect, place: HookFile, settings: Mapping[str, Any], problems: list[Problem]
) -> ForeignFile | None:
    """Read one hook file, or return None for one that is not there or cannot be read (which is told)."""
    import os

    from ..runners.module import read

    try:
        content = read(place.path, MAX_BYTES)
    except (FileNotFoundError, NotADirectoryError):
        if os.path.islink(place.path):
            problems.append(_unreadable(place, "it is a symbolic link to nothing"))
        return None
    except OSError as error:
        problems.append(_unreadable(place, error.strerror or type(error).__name__))
        return None
    except ValueError as error:
        problems.append(_unreadable(place, str(error)))
        return None
    recognises = getattr(module, "recognises", None)
    if recognises is not None and not recognises(content):
        return None  # somebody else's file of this name
    document = parse(content, place.label, place.format)
    problems += document.problems
    if document.broken:
        return None
    reading = module.read(place, document, settings)
    problems += reading.problems
    why = ""
    if place.layer in ("managed", "user"):
        why = (not_managed if place.layer == "managed" else not_users)(place.path)
    if why and reading.entries:
        cause = f"its hooks are ignored, for the file is not safe from others: {why}"
        problems.append(Problem(place.label, 0, 0, "", cause, "Make it its owner's alone."))
    return ForeignFile(place, document, list(_alone(reading.entries, document, problems)), why)


def _alone(entries: Iterable[HookEntry], document: Document, problems: list[Problem]) -> Iterator[HookEntry]:
    """Yield entries but those that would be trusted under another's name."""
    keys = set()
    for entry in entries:
        key = key_of(entry)
        if key in keys:
            cause = f"an entry named {show(entry.name)} stands before it"
            problems.append(
                document.problem(entry.where, cause, "Give one of them another name; this one is ignored.")
            )
        else:
            keys.add(key)
            yield entry


def _unreadable(place: HookFile, why: str) -> Problem:
    return Problem(place.label, 0, 0, "", f"cannot be read: {why}", "Correct it.")


def parse(content: bytes, label: str, form: str) -> Document:
    """Return what a hook file holds.

    Parameters:
        content: its bytes.
        label: the file as messages show it.
        form: json (comments allowed), toml or yaml.
    """
    if form == "yaml":
        return read_cached_yaml(content, label)
    if form == "toml":
        from .toml_document import read_toml

        document = read_toml(content, label, ())
        assert document is not None  # it is the whole file
        return document
    from .json_document import read_json

    return read_json(content, label)


def calls_hookturn(entry: HookEntry) -> bool:
    """Tell whether an entry calls hookturn, which must not call itself: it never runs, and needs no trust."""
    from ..agents.installing import calls_bridge, is_ours

    if entry.kind == "webhook":
        return is_ours({"url": entry.run["url"], "headers": {"Authorization": ""}})
    if entry.kind != "command" or not entry.run:
        return False
    return calls_bridge(entry.run if isinstance(entry.run, str) else " ".join(entry.run))


def declarations(files: Iterable[ForeignFile], project: str) -> list[Declaration]:
    """Return what the project's own files of other agents declare, for the trust store.

    Parameters:
        files: all files.
        project: the project's folder.
    """
    from os.path import realpath

    from ..runners.module import digest_of

    root = realpath(project)
    found = []
    for file in files:
        if file.place.layer != "project":
            continue
        for entry in file.entries:
            if calls_hookturn(entry):
                continue
            module = dialect(entry.dialect)
            ran = {path: digest_of(path) for path in module.own_files(entry, project)}
            raw = {"declared": thaw(entry.declared), "kind": entry.kind}
            what = module.words_of(entry)
            if not entry.enabled:
                what = f"switches off the hook {entry.name}"
            title = f"{entry.name} ({entry.dialect})"
            key = key_of(entry)
            found.append(
                declare(root, key, raw, what, entry.source, ran, entry.base_dir, entry.file, title=title)
            )
    return found
