"""Sets up the hooks that stand in other agents' files, behind hookturn's own."""

from __future__ import annotations

from ..engine.match import glob_match
from ..runners.entry import OUTSIDE
from ..spec.errors import RegistrationError
from . import discovery
from .configured import pinned
from .foreign import ForeignFile, calls_hookturn, dialect, key_of
from .model import FILTER, MODES, PluginEntry, normal
from .problems import Problem
from .setup import MEND, SetUp
from .standins import refusal
from .survey import CALLS_US, DISABLE, ONLY_LIVE, REVIEW

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..engine.engine import Engine
    from ..runners.entry import HookEntry
    from .secrets import Wrong
    from .survey import Survey


class ForeignHooks(SetUp):
    """Registers the hooks of other agents' files, dialect by dialect.

    Parameters:
        engine, survey: as for ``SetUp``.
        live: let hooks that act outside of the process run for dry events, too.
    """

    def __init__(self, engine: Engine, survey: Survey, *, live: bool = False) -> None:
        super().__init__(engine, survey)
        self.live = live
        self._files: dict[str, ForeignFile] = {}

    def run(self) -> None:
        """Register the hooks that count; the others get a row with the reason."""
        by_dialect: dict[str, list[HookEntry]] = {}
        for file in self.survey.foreign:
            for entry in file.entries:
                self._files[entry.source] = file
                if self._counts(file, entry):
                    by_dialect.setdefault(entry.dialect, []).append(entry)
        for name, entries in by_dialect.items():
            for entry, why_not in dialect(name).effective(entries):
                if why_not:
                    self.row(entry, "disabled", why_not)
                else:
                    self._hook(entry)

    def _counts(self, file: ForeignFile, entry: HookEntry) -> bool:
        """Tell whether an entry is in force; one that is not is listed."""
        if calls_hookturn(entry):
            self.row(entry, "disabled", CALLS_US)
            return False
        if file.authority:
            self.row(entry, "untrusted", f"the file is not safe from others: {file.authority}")
            return False
        if file.place.layer != "project":
            return True
        state = self.survey.trust.state(self.survey.declared(key_of(entry)))
        if state == "trusted":
            return True
        why = "it has changed since it was trusted" if state == "changed" else "it is not trusted yet"
        problem = file.document.problem(entry.where, f"ignored: {why}", REVIEW, severity="warning")
        self.survey.ignored.append((f"the hook {entry.name}", problem))
        self.row(entry, "untrusted", f"{why}; see `hookturn trust`")
        return False

    def _hook(self, entry: HookEntry) -> None:
        name = entry.name
        if not entry.enabled:
            self.row(entry, "disabled", f"switched off in {entry.source}")
            return
        if (
            entry.layer != "managed"
            and {normal(name), normal(f"{entry.dialect}:{name}")} & self.survey.blocked
        ):
            self.row(entry, "blocked", f"switched off by the command line or {DISABLE}")
            return
        module = dialect(entry.dialect)
        if entry.kind == "webhook":
            entry = entry.but(network=self.survey.network)
        if entry.layer == "project":
            entry = pinned(entry, self.survey.declared(key_of(entry)))
        if name in self.engine.registry.plugins:  # another file's hook of this name
            name = f"{entry.dialect}:{name}"
        options = dict(entry.options)
        if "mode" not in options and self.has_mode(entry.layer):
            mode = self.survey.models[entry.layer].settings["mode"]
            options.update({"mode": mode} if mode == MODES[1] else {})
        if self._fails_closed(entry):
            options["on_failure"] = "deny"
        config: Any = dict(entry.config)
        layer = entry.layer
        wrong: list[Wrong] = []
        try:
            if entry.kind == "plugin":
                plugin, config = self._builtin(entry, wrong)
                layer = "builtin"
            else:
                plugin = module.make(entry, config, self.survey.timings, live=self.live)
            record = self.register(
                plugin, name, source=entry.source, layer=layer, config=config, options=options
            )
        except RegistrationError as error:
            self._problem(entry, error.cause, error.remedy)
            self.row(entry, "failed", error.cause)
            self.refused(name, error.cause, error.remedy)
            if options.get("on_failure") == "deny" and options.get("mode") != MODES[1]:
                self._refuse(entry, error)
            return
        for doubt in module.wrongs(entry, self.survey.root):
            self._problem(entry, doubt.cause, doubt.remedy, doubt.severity)
        dry = entry.kind in OUTSIDE and self.engine.dry_run and not self.live
        self.row(entry, "dry" if dry else "loaded", ONLY_LIVE if dry else "", record.hooks, name)

    def _fails_closed(self, entry: HookEntry) -> bool:
        patterns = self.survey.dialects[entry.dialect].get("fail_closed", ())
        return any(glob_match(pattern, entry.name) for pattern in patterns)

    def _refuse(self, entry: HookEntry, error: RegistrationError) -> None:
        """Let a hook that could not be set up and fails closed deny what concerns it."""
        reason = (
            f"the hook {entry.name} ({entry.source}) could not be started and fails closed: {error.cause}"
        )
        plugin = refusal(entry.name, reason, MEND, self.survey.timings, entry.timings, remedy=error.remedy)
        options = {key: value for key, value in entry.options.items() if key in (*FILTER, "condition")}
        self.register_own(plugin, entry.name, source=entry.source, layer=entry.layer, options=options)

    def _builtin(self, entry: HookEntry, wrong: list[Wrong]) -> tuple[Any, Any]:
        """Return the builtin plugin that an entry switches on, and its settings."""
        found = next((item for item in self.survey.found if item.builtin and item.name == entry.run), None)
        if found is None:
            raise RegistrationError(
                entry.name, f"the builtin {entry.run} is not installed", "Reinstall hookturn."
            )
        line = PluginEntry(name=entry.run, settings=entry.config, file=entry.file, line=entry.line)
        return discovery.make(found, line, entry.base_dir, wrong)

    def _problem(self, entry: HookEntry, cause: str, remedy: str, severity: str = "error") -> None:
        document = self._files[entry.source].document
        problem: Problem = document.problem(entry.where, cause, remedy, severity=severity)
        self.problems.append(problem)
