"""What can be said of a project's entries that wait for trust: their files are read, and nothing of them is run."""

from __future__ import annotations

from ..spec.errors import RegistrationError, did_you_mean
from .foreign import dialect
from .model import normal
from .problems import show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..runners.entry import HookEntry
    from .discovery import Found
    from .model import Model, PluginEntry
    from .problems import Problem
    from .survey import Survey


def problems(survey: Survey) -> list[Problem]:
    """Return what is wrong with the untrusted hooks and plugin lines of the project's files.

    Parameters:
        survey: the project, after its hooks were set up.
    """
    waiting = {row.source for row in survey.rows if row.kind == "config" and row.state == "untrusted"}
    found: list[Problem] = []
    for file in survey.foreign:
        for entry in file.entries:
            if entry.source in waiting:
                wrongs = dialect(entry.dialect).wrongs(entry, survey.root)
                found += [
                    file.document.problem(entry.where, wrong.cause, wrong.remedy, severity=wrong.severity)
                    for wrong in wrongs
                ]
    model = survey.models.get("project")
    if model is None:
        return found
    for entry in model.hooks:
        if entry.source in waiting:
            found += _of_hook(survey, model, entry)
    for key, line in model.plugins.items():
        if line.enabled and survey.state("project", f"plugins.{key}") != "trusted":
            found += _of_plugin(survey, model, line)
    return found


def of_plugins(survey: Survey) -> list[Problem]:
    """Return what is wrong with the plugin lines of a project's file that has just been trusted. Plugins are imported,
    as at every call; nothing is set up, and no secret is read.
    """
    model = survey.models.get("project")
    found: list[Problem] = []
    for line in model.plugins.values() if model is not None else ():
        if line.enabled and model is not None:
            found += _of_plugin(survey, model, line, load=True)
    return found


def _of_hook(survey: Survey, model: Model, entry: HookEntry) -> Iterable[Problem]:
    place = ("hooks", entry.index, "run", entry.kind)
    if entry.kind == "command":
        from ..runners.command import problems

        return [
            model.document.problem(place, wrong.cause, wrong.remedy) for wrong in problems(entry, survey.root)
        ]
    if entry.kind == "webhook":
        return _of_webhook(survey, model, entry)
    if entry.kind == "javascript":
        from ..runners import javascript

        return [
            model.document.problem(place, wrong.cause, wrong.remedy) for wrong in javascript.problems(entry)
        ]
    if not entry.path:
        return []
    wrong = _of_module(survey, entry)
    return [model.document.problem(place, *wrong)] if wrong else []


def _of_webhook(survey: Survey, model: Model, entry: HookEntry) -> list[Problem]:
    """Return what is wrong with where a webhook sends; its secrets are not read for a file that nobody trusts."""
    from ..runners.webhook import problems
    from .secrets import reference

    place = ("hooks", entry.index, "run", "webhook", "url")
    if reference(entry.run["url"]):
        return []
    plain = entry.but(run={"url": entry.run["url"]}, network=survey.network)
    return [model.document.problem(place, wrong.cause, wrong.remedy) for wrong in problems(plain)]


def _of_module(survey: Survey, entry: HookEntry) -> tuple[str, str] | None:
    """Return cause and remedy of what is wrong with a module and its hooks, as far as its text tells."""
    import warnings

    from ..engine.registry import Registry
    from ..runners.module import NOT_PYTHON, hooks_of, not_python, read, unreadable
    from ..runners.outline import outline
    from .configured import located

    try:
        source = read(entry.path)
    except (OSError, ValueError) as error:
        return unreadable(entry.path, error)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the compiler, about code that is not ours
            compile(source, entry.path, "exec", dont_inherit=True)
            module = outline(source, entry.path, survey.timings)
    except NOT_PYTHON as error:
        return not_python(entry.path, error)
    if module is None:
        return None
    plugin = None
    try:
        plugin = hooks_of(entry, module, None, survey.timings)
        registry = Registry([specs for _, specs in survey.hookspecs])
        registry.add(plugin, entry.name, options=dict(entry.options))
    except RegistrationError as error:
        return located(plugin, entry, error), error.remedy
    return None


def _of_plugin(survey: Survey, model: Model, line: PluginEntry, *, load: bool = False) -> Iterable[Problem]:
    from .self_protection import NAME

    path = ("plugins", line.name)
    name = normal(line.name)
    if name not in survey.installed and name != NAME:
        near = did_you_mean(line.name, sorted(item.name for item in survey.found))
        cause = f"no plugin named {show(line.name)} is installed{near}"
        remedy = "Install the distribution that brings it, or take the line out."
        return [model.document.problem(path, cause, remedy, key=True)]
    item = next((item for item in survey.found if normal(item.name) == name), None)
    if item is None or not line.settings:
        return []
    return [
        model.document.problem(
            (*path, *wrong.path), wrong.cause, wrong.remedy, key=wrong.key or not wrong.path
        )
        for wrong in _of_settings(item, line, load=load)
        if wrong.severity == "error"
    ]


def _of_settings(item: Found, line: PluginEntry, *, load: bool) -> list[Any]:
    """Return what is wrong with settings.

    Parameters:
        item: the plugin.
        line: its settings.
        load: import it where need be; without, of plugins that are not hookturn's own only names are looked at.
    """
    import sys

    from ..spec.record import thaw
    from . import discovery
    from .secrets import Wrong, has_reference
    from .settings import build, config_of, unknown

    if not load and not item.builtin and item.value.partition(":")[0].strip() not in sys.modules:
        return []  # importing it would run it for a file that nobody trusts
    try:
        cls = config_of(discovery.load(item))
    except RegistrationError:
        return []  # told when it was to be loaded
    wrong: list[Wrong] = []
    if cls is None:
        return wrong
    unknown(cls, line.settings, wrong)
    secret = [key for key, value in line.settings.items() if has_reference(value)]
    if not wrong and (item.builtin or (load and not secret)):
        plain = {key: value for key, value in thaw(line.settings).items() if key not in secret}
        build(cls, plain, wrong)
    return wrong
