"""Builds the engine of a project: layers, trust, plugins, configured hooks, permissions, builtins.

Order of registration (which decides among equals): the host's plugins, entry
points by distribution and name, then the hooks of the managed, user and project
files, each top to bottom, then other agents' hook files.
"""

from __future__ import annotations

from .model import PERMISSIONS
from .problems import Problem, show
from .setup import SetUp, told_once
from .survey import DISABLE, REVIEW, Pending, Row, Survey

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from ..engine.engine import Engine

__all__ = ["Assembled", "Pending", "Row", "Survey", "assemble"]


MOST_TOLD = 3
"""Mistakes in the configuration that the user of an agent is told one by one."""


class Assembled:
    """A project's engine, and what became of all that was to be in it.

    Attributes:
        engine: the engine, ready to fire.
        problems: all that is wrong with configuration, trust and plugins.
        plugins: a row for each plugin and configured hook.
        layers: the configuration files.
        root: the project's folder.
        survey: what was known before.
    """

    def __init__(self, engine: Engine, survey: Survey) -> None:
        self.engine = engine
        self.survey = survey
        self.problems = survey.problems
        self.plugins: list[Row] = survey.rows
        self.layers = survey.layers
        self.root = survey.root


def assemble(
    project_dir: str | os.PathLike[str] | None = None,
    *,
    plugins: Iterable[Any] = (),
    disable: Iterable[str] = (),
    with_config: str | os.PathLike[str] | None = None,
    builtins: bool | None = None,
    dry_run: bool = False,
    live: bool = False,
    refresh: bool = False,
    log: bool = True,
    permissions: Any = None,
    hookspecs: Iterable[Any] = (),
    environ: Mapping[str, str] | None = None,
    agent: str = "",
    surveyed: Callable[[Survey], None] | None = None,
    **options: Any,
) -> Assembled:
    """Build the engine of a project.

    Parameters:
        project_dir: a folder in the project; None asks the agent's variable, then the current folder.
        plugins: the host's own plugins, as for ``Engine``.
        disable: names of plugins and hooks to block, as ``-p no:NAME`` gives them.
        with_config: a configuration to use instead of the project's own; naming it counts as trust.
        builtins: whether audit-log, turn-stats and error-report are on where no configuration names them;
            None (the default) asks whether the project has a configuration.
        dry_run: mark all events as dry, and keep values in memory only.
        live: let configured hooks that act outside of the process run even so.
        refresh: read the metadata of installed distributions anew.
        log: log each problem once, as a warning.
        permissions: the host's own rules, beside those of the layers.
        hookspecs: timings of the host's own.
        environ: the agent's environment, where it is not this process's own.
        agent: the agent that calls us (``claude-code``): hook files that it runs itself are left out.
        surveyed: called with what is known of the project before any of its code is run.
        options: further keyword arguments of ``Engine``.

    Returns:
        the engine with problems, plugin rows and layers.

    Raises:
        RegistrationError: when one of the host's own plugins or timings is refused.
    """
    from ..engine.engine import Engine
    from ..paths import project_output, project_state
    from ..platform import reading_for
    from .configured import ConfiguredHooks
    from .installed import InstalledPlugins
    from .layers import is_project

    with reading_for(environ):
        hookspecs = list(hookspecs)
        survey = Survey(
            project_dir,
            with_config=with_config,
            disable=disable,
            hookspecs=hookspecs,
            builtins=builtins,
            refresh=refresh,
            environ=environ,
            agent=agent,
        )
        if surveyed is not None:
            surveyed(survey)
        if "state_dir" not in options:
            options["state_dir"] = None if dry_run else project_state(survey.root)
        named = project_dir is not None and not agent  # a folder that somebody chose
        if not (named or dry_run or "output_dir" in options or is_project(survey.root)):
            # An agent may be started anywhere; nobody asked for files in their home folder.
            options["output_dir"] = project_output(survey.root)
        options.setdefault("max_continue", survey.setting("max_continue", 8))
        engine = Engine(
            plugins,
            hookspecs=[*hookspecs, *(specs for _, specs in survey.hookspecs)],
            permissions=_permissions(survey, permissions),
            project_dir=survey.root,
            dry_run=dry_run,
            **options,
        )
        engine.notices += _mistakes(survey)
        for record in engine.plugins:
            survey.rows.append(
                Row(
                    name=record.name,
                    kind="host",
                    state="loaded",
                    layer=record.layer,
                    hooks=list(record.hooks),
                )
            )
        InstalledPlugins(engine, survey).run()
        ConfiguredHooks(engine, survey, live=live).run()
        if survey.foreign:
            from .foreign_hooks import ForeignHooks

            ForeignHooks(engine, survey, live=live).run()
        _protect(engine, survey)
        survey.problems += told_once(survey.ignored)
        if log:
            _log(survey.problems)
        return Assembled(engine, survey)


def _mistakes(survey: Survey) -> list[str]:
    """Return what is wrong in the user's own and the managed configuration, so that something in it is not in force."""
    files = [layer.label for layer in survey.layers if layer.name in ("managed", "user")]
    found = [str(item) for item in survey.problems if item.severity == "error" and item.file in files]
    if len(found) > MOST_TOLD:
        found[MOST_TOLD:] = [f"{len(found) - MOST_TOLD} other mistakes: see `hookturn check`."]
    return found


def _permissions(survey: Survey, given: Any) -> Any:
    """Return the rules of all layers: deny and ask of any, always_allow of those that may loosen."""
    from ..engine.fold import Permissions
    from ..engine.match import Rule

    rules: dict[str, list[Rule]] = {kind: [] for kind in PERMISSIONS}
    own = Permissions.of(given)
    if own is not None:
        for kind in PERMISSIONS:
            rules[kind] += getattr(own, kind)
    for name, model in survey.models.items():
        for kind in ("deny", "ask"):
            rules[kind] += model.rules[kind]
        layer = survey.layer(name)
        if name != "project" and layer is not None and layer.authority:
            rules["always_allow"] += model.rules["always_allow"]
    project = survey.layer("project")
    if project is None or not project.given:
        for kind, kept in survey.trust.rules(survey.root).items():
            have = {rule.text for rule in rules[kind]}
            for rule in kept:
                if rule.text in have:
                    continue
                # The project was trusted with this rule; taking it out loosens, and waits for trust.
                rules[kind].append(rule)
                label = project.label if project is not None else survey.root
                cause = f"the rule {show(rule.text)} was taken out and holds until the change is trusted"
                survey.problems.append(Problem(label, 0, 0, f"permissions.{kind}", cause, REVIEW, "warning"))
    made = Permissions(**rules)
    return made if made else None


def _protect(engine: Engine, survey: Survey) -> None:
    """Register self-protection, unless it is switched off where a plugin may be."""
    import os

    from ..paths import MANAGED_CONFIG, config_folder, state_folder
    from .layers import TABLE
    from .self_protection import NAME, SelfProtection

    wanted = survey.wanted.get(NAME)
    state = reason = ""
    name = NAME
    if wanted is not None and not wanted.enabled:
        state, reason = "disabled", f"switched off in {wanted.entry.source if wanted.entry else ''}"
    elif NAME in survey.blocked and not (wanted is not None and wanted.fixed):
        state, reason = "blocked", f"switched off by the command line or {DISABLE}"
    hooks: tuple[str, ...] = ()
    if not state:
        files = [state_folder(), config_folder(), os.path.dirname(MANAGED_CONFIG)]
        files += [layer.path for layer in survey.layers if os.path.basename(layer.path) == TABLE]
        guard = SelfProtection(survey.root, files)
        record = SetUp(engine, survey).register_own(guard, NAME, layer="builtin", source="hookturn")
        name, hooks, state = record.name, record.hooks, "loaded"
    survey.rows.append(
        Row(
            name=name,
            kind="builtin",
            state=state,
            reason=reason,
            source="hookturn",
            layer="builtin",
            hooks=list(hooks),
        )
    )


_logged: set[str] = set()


def _log(problems: Iterable[Problem]) -> None:
    """Log each problem once in this process."""
    fresh = [text for text in map(str, problems) if text not in _logged]
    if not fresh:
        return
    from ..engine.capabilities import logger

    log = logger("config")
    for text in fresh:
        _logged.add(text)
        log.warning("{}", text)
