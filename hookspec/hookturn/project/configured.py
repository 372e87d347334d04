"""Sets up the hooks of the configuration files that count, and refusals for guards that are not what they were."""

from __future__ import annotations

from ..runners.entry import OUTSIDE
from ..spec.errors import RegistrationError
from ..spec.record import thaw
from .model import FILTER, MODES, normal
from .problems import Problem, show
from .secrets import resolve
from .setup import MEND, SetUp
from .survey import DISABLE, ONLY_LIVE, REVIEW
from .trust import tightens

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..engine.engine import Engine
    from ..runners.entry import HookEntry
    from .model import Model
    from .secrets import Wrong
    from .survey import Survey
    from .trust import Declaration


def located(plugin: Any, entry: HookEntry, error: RegistrationError) -> str:
    """Return why a hook was refused, with the place of a module's function that is to blame.

    Parameters:
        plugin: the entry's plugin, or None when it could not be made.
        entry: the configured hook.
        error: the refusal.
    """
    from ..runners.module import place_of

    place = (
        place_of(plugin, error.hook) if plugin is not None and error.hook and entry.kind == "module" else ""
    )
    return f"{place}: {error.cause}" if place else error.cause


def pinned(entry: HookEntry, declaration: Declaration) -> HookEntry:
    """Return an entry with the digests that its files had when it was declared, which they must still have."""
    if entry.kind == "module":
        return entry.but(digest=declaration.files.get(entry.path) or "missing")
    return entry.but(files={path: digest or "missing" for path, digest in declaration.files.items()})


_AFTER_MISTAKES = (
    "Correct the file's other errors first, which may be why. If the guard is to go, run `hookturn trust`."
)


class ConfiguredHooks(SetUp):
    """Registers the hooks of the managed, user and project files, in this order.

    Parameters:
        engine, survey: as for ``SetUp``.
        live: let hooks that act outside of the process (``run: {command: ...}``) run for dry events, too.
    """

    def __init__(self, engine: Engine, survey: Survey, *, live: bool = False) -> None:
        super().__init__(engine, survey)
        self.live = live
        project = survey.layer("project")
        given = project is not None and project.given
        self.lost = {} if given else survey.trust.lost(survey.root, survey.declarations)

    def run(self) -> None:
        """Register the hooks of all layers, and refusals for trusted guards that are no longer what they were."""
        self._broken_managed()
        self._unread_guards()
        managed = self._in_force("managed", set(), set())
        names = {entry.name for entry in managed}
        user = self._in_force("user", names, set())
        project = self._in_force("project", names, {entry.name for entry in user})
        instead = {entry.name: entry for entry in project}
        for entry in managed:
            self._hook(entry)
        for entry in user:
            by = instead.get(entry.name)
            if by is None:
                self._hook(entry)
            else:
                verb = "replaced" if by.enabled else "switched off"
                self.row(entry, "disabled", f"{verb} by {by.source}")
        for entry in project:
            self._hook(entry)
        self._lost_guards()
        self._project_allowances()

    def _broken_managed(self) -> None:
        layer = self.survey.layer("managed")
        if layer is None or not layer.document.broken:
            return
        from .standins import refusal

        plugin = refusal(
            "managed-configuration",
            f"the managed configuration {layer.label} cannot be read, so its rules are not in force",
            "The administrator must mend it",
            self.survey.timings,
        )
        self.register_own(plugin, "managed-configuration", source=layer.label, layer="managed")

    def _unread_guards(self) -> None:
        """Refuse where a guard of the user's or the administrator's stands that has mistakes.

        A project's that was trusted is a lost guard; one that never was must not stop anybody.
        """
        for name, model in self.survey.models.items():
            layer = self.survey.layer(name)
            if layer is None or not layer.authority or (name == "project" and not layer.given):
                continue
            for guard in model.unread_guards:
                self.refused(guard.name, guard.cause, guard.remedy)
                reason = (
                    f"the guard {guard.name} ({guard.source}) cannot be read and fails closed: {guard.cause}"
                )
                self._refuse(
                    guard.name,
                    reason,
                    MEND,
                    guard.timings,
                    dict(guard.filters),
                    guard.source,
                    name,
                    remedy=guard.remedy,
                )

    def _in_force(self, layer: str, managed: set[str], user: set[str]) -> list[HookEntry]:
        """Return the entries of a file that count; the others get a row and a problem.

        Parameters:
            layer: managed, user or project.
            managed, user: names of hooks of those layers that count.
        """
        model = self.survey.models.get(layer)
        if model is None:
            return []
        counting = []
        for entry in model.hooks:
            path = ("hooks", entry.index)
            if entry.name in managed:
                self.problems.append(
                    model.document.problem(
                        (*path, "name"),
                        f"the managed configuration has a hook named {show(entry.name)}, which stands",
                        "Give this one another name.",
                        severity="warning",
                    )
                )
                self.row(entry, "disabled", "the managed configuration has a hook of this name")
                continue
            state = self.survey.state(model.layer, f"hooks.{entry.name}")
            lost = layer == "project" and entry.name in self.lost  # reported as such
            if state != "trusted" and (lost or entry.name in user or not tightens(entry)):
                why = self.untrusted(model, path, state, silent=lost)
                self.row(entry, "untrusted", f"{why}; see `hookturn trust`")
                continue
            counting.append(entry)
        return counting

    def _hook(self, entry: HookEntry) -> None:
        """Set up one configured hook."""
        model = self.survey.models[entry.layer]
        if not entry.enabled:
            self.row(entry, "disabled", f"switched off in {entry.source}")
            return
        if entry.layer != "managed" and normal(entry.name) in self.survey.blocked:
            self.row(entry, "blocked", f"switched off by the command line or {DISABLE}")
            return
        path = ("hooks", entry.index)
        wrong: list[Wrong] = []
        config: dict[str, Any] = {}
        if entry.config and entry.kind != "answer":  # an answer has no use for settings
            config = resolve(thaw(entry.config), entry.base_dir, wrong)
        for item in wrong:
            item.path = ("config", *item.path)
        if entry.kind == "webhook":
            # The mapping is resolved as the member of another: as a whole it is never a secret.
            unread: list[Wrong] = []
            run = resolve({"webhook": thaw(entry.run)}, entry.base_dir, unread)
            for item in unread:
                item.path = ("run", *item.path)
            wrong += unread
            entry = entry.but(run=run["webhook"], network=self.survey.network)
        if wrong:
            for item in wrong:
                self.problems.append(
                    model.document.problem((*path, *item.path), item.cause, item.remedy, key=item.key)
                )
            self._failed_hook(entry, model, wrong[0].cause, wrong[0].remedy)
            return
        plugin = None
        try:
            plugin = self._plugin_of(entry, config)
            record = self.register(
                plugin,
                entry.name,
                source=entry.source,
                layer=entry.layer,
                config=config,
                options=self._hook_options(entry, model),
            )
        except RegistrationError as error:
            key = (*path, "run", entry.kind)
            cause = located(plugin, entry, error)
            self.problems.append(model.document.problem(key, cause, error.remedy))
            self._failed_hook(entry, model, cause, error.remedy)
            return
        self._doubts(entry, model)
        dry = entry.kind in OUTSIDE and self.engine.dry_run and not self.live
        self.row(entry, "dry" if dry else "loaded", ONLY_LIVE if dry else "", record.hooks)

    def _doubts(self, entry: HookEntry, model: Model) -> None:
        """Report what is wrong with a program here and now, though it may be right where it will run."""
        if entry.kind == "command":
            from ..runners.command import problems

            wrongs = problems(entry, self.survey.root)
        elif entry.kind == "javascript":
            from ..runners import javascript

            wrongs = javascript.problems(entry)
        else:
            return
        for wrong in wrongs:
            key = ("hooks", entry.index, "run", entry.kind)
            self.problems.append(model.document.problem(key, wrong.cause, wrong.remedy))

    def _plugin_of(self, entry: HookEntry, config: dict[str, Any]) -> Any:
        if entry.kind == "answer":
            from ..runners import answer

            return answer.make(entry)
        if entry.kind == "command":
            from ..runners import command

            return command.make(self._pinned(entry), config, self.survey.timings, live=self.live)
        if entry.kind == "javascript":
            from ..runners import javascript

            return javascript.make(self._pinned(entry), config, self.survey.timings, live=self.live)
        if entry.kind == "webhook":
            from ..runners import webhook

            return webhook.make(
                entry, config, self.survey.timings, live=self.live, state_dir=self.engine.stores.folder
            )
        from ..runners import module

        return module.make(self._pinned(entry), config, self.survey.timings)

    def _pinned(self, entry: HookEntry) -> HookEntry:
        """Return a project's entry with the digests that its files must still have when they are run."""
        layer = self.survey.layer(entry.layer)
        if entry.layer != "project" or layer is None or layer.given:
            return entry
        return pinned(entry, self.survey.declared(f"hooks.{entry.name}"))

    def _hook_options(self, entry: HookEntry, model: Model) -> dict[str, Any]:
        options = dict(entry.options)
        if "mode" not in options and model.settings.get("mode") == MODES[1] and self.has_mode(model.layer):
            options["mode"] = MODES[1]
        return options

    def _failed_hook(self, entry: HookEntry, model: Model, cause: str, remedy: str) -> None:
        """List a hook that could not be set up; one that fails closed becomes a refusal."""
        self.row(entry, "failed", cause)
        self.refused(entry.name, cause, remedy)
        if entry.fails_closed and self._hook_options(entry, model).get("mode") != "monitor":
            what = "guard" if entry.guard else "hook"
            self._refuse(
                entry.name,
                f"the {what} {entry.name} ({entry.source}) could not be started and fails closed: {cause}",
                MEND,
                entry.timings,
                {key: value for key, value in entry.options.items() if key in FILTER},
                entry.source,
                entry.layer,
                remedy=remedy,
            )

    def _refuse(
        self,
        name: str,
        reason: str,
        advice: str,
        timings: Iterable[str],
        filters: dict[str, Any],
        source: str,
        layer: str,
        remedy: str = "",
    ) -> None:
        if name in self.engine.registry.plugins:  # another layer's hook of the same name
            name = f"refusal:{name}"
        from .standins import refusal

        plugin = refusal(name, reason, advice, self.survey.timings, timings, remedy=remedy)
        self.register_own(plugin, name, source=source, layer=layer, options=filters)

    def _lost_guards(self) -> None:
        """Refuse where a trusted guard of the project stood, until its new form is trusted."""
        survey = self.survey
        layer, model = survey.layer("project"), survey.models.get("project")
        label = layer.label if layer is not None else survey.root
        places = {entry.name: ("hooks", entry.index) for entry in model.hooks} if model is not None else {}
        for name, guard in self.lost.items():
            filters = {
                key: [str(word) for word in guard[key]]
                for key in FILTER
                if isinstance(guard.get(key), list) and guard[key]
            }
            timings = [word for word in guard.get("timings", ()) if isinstance(word, str)]
            reason = f"the guard {name} {guard['why']}; it denies until `hookturn trust` confirms the change"
            self._refuse(
                name, reason, "A person must run `hookturn trust`", timings, filters, label, "project"
            )
            if model is not None and name in places:
                self.problems.append(model.document.problem(places[name], reason, REVIEW))
            else:
                mistakes = model is not None and any(item.severity == "error" for item in model.problems)
                remedy = _AFTER_MISTAKES if mistakes else REVIEW
                self.problems.append(Problem(label, 0, 0, f"hooks.{name}", reason, remedy))

    def _project_allowances(self) -> None:
        model = self.survey.models.get("project")
        if model is None or not model.rules["always_allow"]:
            return
        if self.survey.state("project", "permissions.always_allow") != "trusted":
            return
        rules = model.rules["always_allow"]
        from .standins import allowance

        self.register_own(allowance(rules), "project-permissions", source=rules[0].source, layer="project")
