"""Looks at a project without setting up any of its hooks: files, trust, installed plugins, what all layers want."""

from __future__ import annotations

from ..spec.errors import RegistrationError
from ..spec.record import Record, thaw
from ..spec.timings import TIMINGS
from . import discovery
from .model import Model, PluginEntry, normal, read_hooks, read_model
from .problems import Problem, show
from .trust import Declaration, Trust, declarations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..spec.timings import Timing
    from .foreign import ForeignFile
    from .layers import Layer

DEFAULT_ON = ("audit-log", "turn-stats", "error-report")
"""Builtins that are on once a project has a configuration or a bridge; the others when they are named."""

DISABLE = "HOOKTURN_DISABLE_PLUGINS"
NO_AUTOLOAD = "HOOKTURN_DISABLE_PLUGIN_AUTOLOAD"

STATES = ("loaded", "blocked", "failed", "disabled", "untrusted", "dry")

ONLY_LIVE = "dry: runs only with --live"

CALLS_US = "it calls hookturn itself"

REVIEW = "Run `hookturn trust` to look at it and trust it."


class Row(Record):
    """One line of ``hookturn plugins``: a plugin or a configured hook, and what became of it.

    Parameters:
        name: its name.
        kind: builtin, pip, config or host.
        state: loaded, blocked (by the environment or the command line), failed, disabled (by a
            configuration, or a builtin that nobody named), untrusted, or dry (registered, and not run in
            this dry run).
        reason: why it is not loaded, or "".
        distribution: name and version of the distribution that brings it, or "".
        source: where it is declared, or "".
        layer: host, managed, user, project, installed or builtin.
        hooks: the timings that it implements, once loaded.
    """

    name: str
    kind: str
    state: str
    reason: str = ""
    distribution: str = ""
    source: str = ""
    layer: str = ""
    hooks: list[str] = []

    def to_json(self) -> dict[str, Any]:
        """Return all fields."""
        return {name: thaw(getattr(self, name)) for name in self._fields}


class Pending(Record):
    """Something in a project's file that waits for the user's trust.

    Parameters:
        declaration: what it is.
        state: untrusted (new), changed (trusted in another form) or gone (a trusted guard that was taken out).
    """

    declaration: Declaration
    state: str

    def to_json(self) -> dict[str, Any]:
        """Return the declaration with its state."""
        return {**self.declaration.to_json(), "state": self.state}


class Wanted:
    """What all layers together say of one plugin.

    Attributes:
        entry: the line that counts, or None when no layer names the plugin.
        model: the file of that line.
        enabled: whether it may load.
        named: whether a layer switches it on by name.
        requirers: the lines that require it, with the version that they want.
        fixed: why nobody may switch it off, or "".
    """

    def __init__(self) -> None:
        self.entry: PluginEntry | None = None
        self.model: Model | None = None
        self.enabled = True
        self.named = False
        self.requirers: list[PluginEntry] = []
        self.fixed = ""


class Survey:
    """All that is known of a project before any of its hooks is set up. Runs nothing of an untrusted file.

    Parameters:
        project_dir: a folder in the project, or None for the agent's or the current one.
        with_config: a configuration to use instead of the project's own; naming it counts as trust.
        disable: names of plugins and hooks to block, beside ``HOOKTURN_DISABLE_PLUGINS``.
        hookspecs: timings of the host's own.
        builtins: whether the builtins of DEFAULT_ON are on that no configuration names; None asks whether
            the project has a configuration or an agent calls us in it.
        refresh: read the metadata of installed distributions anew.
        guards: find out which hooks of the project are guards (to trust them).
        environ: the agent's environment; default: the process's own.
        agent: the agent that calls us: the hook files that it runs itself are left out.

    Attributes:
        root: the project's folder.
        layers: the configuration files that there are.
        models: what they say, by layer (managed, user, project).
        problems: all that is wrong so far.
        ignored: what the files say without being trusted to: its name and its own problem.
        trust: the trust store.
        declarations: what the project's file declares.
        found: installed plugins, without duplicates.
        installed: their names and those of installed timings, normalised.
        wanted: what the layers say of plugins, by normalised name.
        hookspecs: (distribution, spec object) of installed frameworks.
        foreign: other agents' hook files.
        dialects: settings of each dialect, False for one that is off.
        timings: every timing there is.
    """

    def __init__(
        self,
        project_dir: str | os.PathLike[str] | None = None,
        *,
        with_config: str | os.PathLike[str] | None = None,
        disable: Iterable[str] = (),
        hookspecs: Iterable[Any] = (),
        builtins: bool | None = None,
        refresh: bool = False,
        guards: bool = False,
        environ: Mapping[str, str] | None = None,
        agent: str = "",
    ) -> None:
        import os

        from . import installations
        from .foreign import read_files
        from .layers import find, project_root

        environ = os.environ if environ is None else environ
        self.root = project_root(project_dir, environ=environ)
        self.layers, self.problems = find(self.root, with_config=with_config)
        self.trust = Trust.load()
        if self.trust.problem is not None:
            self.problems.append(self.trust.problem)
        self.models: dict[str, Model] = {}
        self.rows: list[Row] = []
        self.ignored: list[tuple[str, Problem]] = []
        for layer in self.layers:
            self.models[layer.name] = read_model(layer.document, layer.name, layer.base_dir)
        self.builtins = builtins
        if builtins is None:
            self.builtins = (
                self.layer("project") is not None or bool(agent) or installations.covers(self.root)
            )
        self.declarations: list[Declaration] = []
        self.foreign: list[ForeignFile] = []
        self.dialects: dict[str, Any] = {}
        self._guards = guards
        self._declare()
        names = [*disable, *environ.get(DISABLE, "").split(",")]
        self.blocked = {normal(name.strip()) for name in names if name.strip()}
        autoload = environ.get(NO_AUTOLOAD, "").strip().lower() in ("", "0", "false", "no")
        self.autoload = autoload and self.setting("autoload", True) is True
        self.wanted = self._wanted()
        found, problems = discovery.entry_points(refresh=refresh)
        self.problems += problems
        self.found, doubles = discovery.split_duplicates(
            [item for item in found if item.group == discovery.PLUGINS]
        )
        for ignored, kept in doubles:
            self._double(ignored, kept)
        self.hookspecs: list[tuple[str, Any]] = []
        self.timings: Mapping[str, Timing] = TIMINGS
        specs = [item for item in found if item.group == discovery.HOOKSPECS]
        self.installed = {normal(item.name) for item in (*self.found, *specs)}
        self._read_timings(list(hookspecs), specs)
        for model in self.models.values():
            read_hooks(model, self.timings)
        self.foreign = read_files(self, environ, agent)
        self._declare()
        for model in self.models.values():
            self.problems += model.problems

    # -- trust ------------------------------------------------------------------------------------

    def layer(self, name: str) -> Layer | None:
        """Return a layer, or None when it has no file."""
        return next((layer for layer in self.layers if layer.name == name), None)

    def _declare(self) -> None:
        from . import foreign

        model = self.models.get("project")
        self.declarations = []
        if model is not None:
            user = self.models.get("user")
            replaces = {entry.name for entry in user.hooks} if user is not None else set()
            self.declarations = declarations(model, self.root, replaces, guards=self._guards)
        self.declarations += foreign.declarations(self.foreign, self.root)

    def state(self, layer_name: str, key: str) -> str:
        """Return whether a layer's declaration counts: trusted, untrusted or changed.

        Parameters:
            layer_name: managed, user or project.
            key: as in ``Declaration.key``.
        """
        layer = self.layer(layer_name)
        assert layer is not None
        if not layer.authority:
            return "untrusted"
        if layer.name != "project" or layer.given:
            return "trusted"
        declaration = next((item for item in self.declarations if item.key == key), None)
        return self.trust.state(declaration) if declaration is not None else "untrusted"

    @property
    def network(self) -> Any:
        """Where webhooks may connect to (``runners.addresses.Network``): what the user and the administrator allow."""
        from ..runners.addresses import Network

        allow: list[str] = []
        proxy = ""
        for name in ("user", "managed"):
            layer, model = self.layer(name), self.models.get(name)
            if model is not None and layer is not None and layer.authority:
                allow += model.network.get("allow", ())
                proxy = model.network.get("proxy", proxy)
        return Network(allow, proxy)

    def declared(self, key: str) -> Declaration:
        """Return what the project declares under a key.

        Raises:
            StopIteration: when there is no such declaration.
        """
        return next(item for item in self.declarations if item.key == key)

    def pending(self) -> list[Pending]:
        """Return what waits for the user's trust: new, changed, and trusted guards that are gone."""
        layer = self.layer("project")
        lost = self.trust.lost(self.root, self.declarations)
        waiting = []
        for item in self.declarations:
            if item.foreign or (layer is not None and layer.authority):
                state = self.trust.state(item)
                if state != "trusted" and (item.name in lost or not (item.tightens and self._alone(item))):
                    waiting.append(Pending(item, state))
        keys = {item.key for item in self.declarations}
        for name, guard in lost.items():
            key = f"hooks.{name}"
            if key not in keys:
                gone = Declaration(self.root, key, "", f"the guard {name} is gone", "", guard=guard)
                waiting.append(Pending(gone, "gone"))
        return waiting

    def _alone(self, item: Declaration) -> bool:
        """Whether a tightening hook replaces no hook of another layer."""
        return not any(
            entry.name == item.name
            for name, model in self.models.items()
            if name != "project"
            for entry in model.hooks
        )

    def trust_all(self) -> None:
        """Trust the project's files exactly as they were surveyed (with ``guards=True``).

        Raises:
            OSError: when the store cannot be written.
        """
        model = self.models.get("project")
        rules = {kind: [rule.text for rule in model.rules[kind]] for kind in ("deny", "ask")} if model else {}
        self.trust.add(self.root, self.declarations, rules)

    # -- settings and plugins -----------------------------------------------------------------------

    def setting(self, name: str, default: Any) -> Any:
        """Return a top-level setting of the highest layer that has it and may set it."""
        for layer_name in ("managed", "project", "user"):
            model = self.models.get(layer_name)
            given = model is not None and name in model.settings
            if model is not None and given and self.state(layer_name, f"settings.{name}") == "trusted":
                return model.settings[name]
        return default

    def _wanted(self) -> dict[str, Wanted]:
        table: dict[str, Wanted] = {}
        lines: dict[str, list[tuple[Model, PluginEntry]]] = {}
        for layer_name in ("managed", "project", "user"):
            model = self.models.get(layer_name)
            for name, entry in model.plugins.items() if model is not None else ():
                if self.state(layer_name, f"plugins.{name}") == "trusted":
                    lines.setdefault(name, []).append((model, entry))  # type: ignore[arg-type]
        for name, given in lines.items():
            wanted = table[name] = Wanted()
            wanted.requirers = [entry for _, entry in given if entry.required]
            managed = next((entry for _, entry in given if entry.layer == "managed"), None)
            if managed is not None and not managed.enabled:
                wanted.requirers = []
            elif managed is not None:
                wanted.fixed = f"managed by {managed.source}"
            if wanted.requirers:
                wanted.fixed = f"required by {wanted.requirers[0].source}"
            wanted.model, wanted.entry = given[0]
            for model, entry in given:
                if not entry.enabled and wanted.fixed:
                    model.problem(
                        ("plugins", entry.name),
                        f"{show(entry.name)} cannot be switched off: it is {wanted.fixed}",
                        "The line has no effect.",
                        key=True,
                        severity="warning",
                    )
            if wanted.fixed:
                wanted.model, wanted.entry = next((m, e) for m, e in given if e.enabled)
            wanted.enabled = wanted.entry.enabled
            wanted.named = wanted.entry.enabled
        return table

    def why_not(self, item: discovery.Found) -> tuple[str, str]:
        """Return (state, reason) for an installed plugin that is not to be loaded, else two empty strings."""
        name = normal(item.name)
        wanted = self.wanted.get(name)
        if wanted is not None and wanted.fixed:
            return "", ""
        if name in self.blocked:
            return "blocked", f"switched off by the command line or {DISABLE}"
        if wanted is not None and not wanted.enabled:
            assert wanted.entry is not None
            return "disabled", f"switched off in {wanted.entry.source}"
        if wanted is not None and wanted.named:
            return "", ""
        if not self.autoload:
            return "disabled", "autoload is off, and no configuration names it"
        if item.builtin and not (name in DEFAULT_ON and self.builtins):
            return "disabled", "a builtin that no configuration names"
        return "", ""

    def _double(self, ignored: discovery.Found, kept: discovery.Found) -> None:
        cause = f"{ignored.provider} and {kept.provider} both provide the plugin {show(kept.name)}"
        self.problems.append(
            Problem("", 0, 0, "", f"{cause}; the one of {kept.provider} counts", "Uninstall one of them.")
        )
        self.rows.append(
            Row(
                name=ignored.name,
                kind="pip",
                state="failed",
                reason=f"{kept.provider} provides a plugin of this name too",
                distribution=ignored.provider,
                source=ignored.value,
                layer="installed",
            )
        )

    def _read_timings(self, given: list[Any], found: list[discovery.Found]) -> None:
        """Load the timings of installed frameworks, so that configured hooks may name them."""
        from ..engine.registry import Registry

        wanted = []
        for item in found:
            line = self.wanted.get(normal(item.name))
            if line is None and (normal(item.name) in self.blocked or not self.autoload):
                continue
            if line is not None and not line.enabled:
                continue
            try:
                wanted.append((item, discovery.load(item)))
            except RegistrationError as error:
                self._spec_problem(item, error)
        if not given and not wanted:
            return
        registry = Registry(given)
        for item, specs in wanted:
            try:
                registry.add_hookspecs(specs, distribution=item.provider)
            except RegistrationError as error:
                self._spec_problem(item, error)
            else:
                self.hookspecs.append((item.provider, specs))
        self.timings = registry.timings

    def _spec_problem(self, item: discovery.Found, error: RegistrationError) -> None:
        self.problems.append(
            Problem(
                "", 0, 0, "", f"hookspecs {show(item.name)} of {item.provider}: {error.cause}", error.remedy
            )
        )
