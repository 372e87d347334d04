"""Sets up the installed plugins that are wanted, and refusals for required ones that are not in force."""

from __future__ import annotations

from ..spec.errors import RegistrationError
from . import discovery
from .model import normal
from .problems import Problem, show
from .self_protection import NAME as SELF_PROTECTION
from .setup import SetUp
from .survey import Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from .secrets import Wrong
    from .survey import Wanted


class InstalledPlugins(SetUp):
    """Registers the plugins of entry points."""

    def run(self) -> None:
        """Register the entry points, and refusals for required plugins that are not in force."""
        survey = self.survey
        for item in survey.found:
            state, reason = survey.why_not(item)
            if state:
                self._row(item, state, reason)
            else:
                self._install(item, survey.wanted.get(normal(item.name)))
        for name, wanted in survey.wanted.items():
            if wanted.enabled and name not in survey.installed and name != SELF_PROTECTION:
                self._missing(wanted, sorted(item.name for item in survey.found))
        self._not_counting()

    def _install(self, item: discovery.Found, wanted: Wanted | None) -> None:
        entry = wanted.entry if wanted is not None else None
        strict = wanted is not None and bool(wanted.fixed)
        why = self._too_old(item, wanted)
        if why:
            assert wanted is not None
            self._failed_plugin(item, wanted, why, "Install a version that will do.")
            return
        wrong: list[Wrong] = []
        base = wanted.model.base_dir if wanted is not None and wanted.model is not None else self.survey.root
        try:
            plugin, config = discovery.make(item, entry, base, wrong, strict=strict)
            record = self.register(
                plugin,
                item.name,
                layer="builtin" if item.builtin else "installed",
                distribution=item.provider,
                source=entry.source if entry is not None else item.value,
                config=config,
                options=self._plugin_options(wanted),
            )
        except RegistrationError as error:
            self._wrong_settings(wanted, wrong, off=True)
            located = any(one.severity == "error" for one in wrong)
            self._failed_plugin(item, wanted, error.cause, error.remedy, told=located)
            return
        self._wrong_settings(wanted, wrong)
        self._row(item, "loaded", "", record.hooks)

    def _too_old(self, item: discovery.Found, wanted: Wanted | None) -> str:
        lines = (
            []
            if wanted is None
            else [*wanted.requirers, *([wanted.entry] if wanted.entry is not None else [])]
        )
        for line in lines:
            if line.version:
                from .versions import satisfies

                if not satisfies(item.version, line.version):
                    version = item.version or "unknown"
                    return f"version {version} does not fulfil {line.version!r} of {line.source}"
        return ""

    def _plugin_options(self, wanted: Wanted | None) -> dict[str, Any]:
        """What the configuration sets over a plugin's own options: monitor mode."""
        if wanted is not None and wanted.entry is not None and wanted.entry.mode:
            return {"mode": wanted.entry.mode}
        if wanted is not None and wanted.fixed:
            return {}
        mode = next(
            (
                self.survey.models[name].settings["mode"]
                for name in ("project", "user")
                if self.has_mode(name)
            ),
            "",
        )
        return {"mode": mode} if mode == "monitor" else {}

    def _wrong_settings(self, wanted: Wanted | None, wrong: list[Wrong], *, off: bool = False) -> None:
        """Report what is wrong with a plugin's settings.

        Parameters:
            wanted: the plugin.
            wrong: what is wrong.
            off: the plugin was not set up for it.
        """
        if wanted is None or wanted.model is None or wanted.entry is None:
            return
        for item in wrong:
            place = ("plugins", wanted.entry.name, *item.path)
            about: dict[str, Any] = {"key": item.key or not item.path, "severity": item.severity}
            if off and item.severity == "error":
                remedy = f"{item.remedy} {self._effect(wanted)}"
                self._off(wanted.model.document.problem(place, item.cause, remedy, **about))
            else:
                self.problems.append(wanted.model.document.problem(place, item.cause, item.remedy, **about))

    def _effect(self, wanted: Wanted | None) -> str:
        """Return what follows from a plugin's not being set up: people take a guard for being there."""
        if wanted is not None and wanted.fixed:
            return "Until then calls are refused, for the plugin is required."
        return "Until then the plugin is off, its guards too; with `required: true` calls would be refused."

    def _off(self, problem: Problem) -> None:
        """Report why a plugin that was wanted is off; the user of an agent is told as well."""
        self.problems.append(problem)
        self.engine.notices.append(str(problem))

    def _failed_plugin(
        self, item: discovery.Found, wanted: Wanted | None, cause: str, remedy: str, *, told: bool = False
    ) -> None:
        self._row(item, "failed", cause)
        self.refused(item.name, cause, remedy, item.provider)
        if not told:
            self._plugin_problem(wanted, f"the plugin {show(item.name)} of {item.provider}: {cause}", remedy)
        if wanted is not None and wanted.fixed:
            self._refuse_without(item.name, wanted, cause, remedy)

    def _missing(self, wanted: Wanted, installed: list[str]) -> None:
        from ..spec.errors import did_you_mean

        entry = wanted.entry
        assert entry is not None
        cause = f"no plugin named {show(entry.name)} is installed{did_you_mean(entry.name, installed)}"
        remedy = "Install the distribution that brings it, or take the line out."
        self._plugin_problem(wanted, cause, remedy)
        self.rows.append(
            Row(
                name=entry.name,
                kind="pip",
                state="failed",
                reason="not installed",
                source=entry.source,
                layer=entry.layer,
            )
        )
        if wanted.requirers:
            self._refuse_without(entry.name, wanted, "it is not installed", remedy)

    def _plugin_problem(self, wanted: Wanted | None, cause: str, remedy: str) -> None:
        remedy = f"{remedy} {self._effect(wanted)}"
        if wanted is not None and wanted.model is not None and wanted.entry is not None:
            self._off(wanted.model.document.problem(("plugins", wanted.entry.name), cause, remedy, key=True))
        else:
            self._off(Problem("", 0, 0, "", cause, remedy))

    def _refuse_without(self, name: str, wanted: Wanted, cause: str, remedy: str) -> None:
        """Make every timing that can deny a Deny: the plugin had to be in force, and is not."""
        from .standins import refusal

        entry = wanted.requirers[0] if wanted.requirers else wanted.entry
        assert entry is not None
        guard = f"required:{name}"
        plugin = refusal(
            guard,
            f"the plugin {name} is required ({entry.source}) and not in force: {cause}",
            "A person must install or mend it",
            self.survey.timings,
            remedy=remedy,
        )
        layer = "managed" if entry.layer == "managed" else "installed"  # as binding as the plugin itself
        self.register_own(plugin, guard, source=entry.source, layer=layer)

    def _row(self, item: discovery.Found, state: str, reason: str, hooks: Iterable[str] = ()) -> None:
        wanted = self.survey.wanted.get(normal(item.name))
        entry = wanted.entry if wanted is not None else None
        self.rows.append(
            Row(
                name=item.name,
                kind="builtin" if item.builtin else "pip",
                state=state,
                reason=reason,
                distribution=item.provider,
                source=entry.source if entry is not None else item.value,
                layer="builtin" if item.builtin else "installed",
                hooks=list(hooks),
            )
        )

    def _not_counting(self) -> None:
        """Say what the project's file wants of plugins and settings without being trusted to."""
        for name, model in self.survey.models.items():
            keys: list[tuple[str, tuple[str, ...]]] = []
            keys += [(f"plugins.{key}", ("plugins", entry.name)) for key, entry in model.plugins.items()]
            keys += [(f"settings.{key}", (key,)) for key in model.settings]
            if model.rules["always_allow"]:
                keys.append(("permissions.always_allow", ("permissions", "always_allow")))
            for key, path in keys:
                state = self.survey.state(name, key)
                if state != "trusted":
                    self.untrusted(model, path, state)
