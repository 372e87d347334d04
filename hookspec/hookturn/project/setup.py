"""What setting up plugins and configured hooks have in common: registering, refusing, reporting."""

from __future__ import annotations

from ..spec.errors import RegistrationError
from .problems import Problem, show_path
from .survey import REVIEW, Row

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ..engine.engine import Engine
    from ..runners.entry import HookEntry
    from .model import Model
    from .problems import Path
    from .survey import Survey


MEND = "A person must mend it"
"""What a model is told of a hook that could not be set up."""


class SetUp:
    """Registers things with an engine, each apart: whatever one does, the others are set up.

    Parameters:
        engine: the engine.
        survey: the project; its rows and problems grow.
    """

    def __init__(self, engine: Engine, survey: Survey) -> None:
        self.engine = engine
        self.survey = survey
        self.rows = survey.rows
        self.problems = survey.problems

    def register(self, plugin: Any, name: str, **about: Any) -> Any:
        """Register a plugin; a refusal is kept in the engine's list and raised."""
        engine = self.engine
        try:
            return engine.register(plugin, name, **about)
        except RegistrationError as error:
            if not any(known is error for known in engine.failed):
                engine.failed.append(error)
            raise

    def register_own(self, plugin: Any, name: str, **about: Any) -> Any:
        """Register something of hookturn's own under ``name``, or near it where a hook of some file has that name.

        Its name must not keep out what protects, nor stop the set-up.
        """
        while name in self.engine.registry.plugins:
            name = f"hookturn:{name}"
        return self.register(plugin, name, **about)

    def refused(self, name: str, cause: str, remedy: str, distribution: str = "") -> None:
        """Note a plugin or hook that could not be set up in the engine's list, once."""
        if not any(error.plugin == name for error in self.engine.failed):
            self.engine.failed.append(RegistrationError(name, cause, remedy, distribution=distribution))

    def row(
        self, entry: HookEntry, state: str, reason: str, hooks: Iterable[str] = (), name: str = ""
    ) -> None:
        """List what became of a configured hook.

        Parameters:
            entry: the hook.
            state, reason: as in ``survey.Row``.
            hooks: the timings that it is registered for.
            name: the name under which it is registered, where that is not its own.
        """
        self.rows.append(
            Row(
                name=name or entry.name,
                kind="config",
                state=state,
                reason=reason,
                source=entry.source,
                layer=entry.layer,
                hooks=list(hooks),
            )
        )

    def has_mode(self, layer: str) -> bool:
        """Tell whether a layer sets a mode for its hooks, and may."""
        model = self.survey.models.get(layer)
        return (
            model is not None
            and "mode" in model.settings
            and self.survey.state(layer, "settings.mode") == "trusted"
        )

    def untrusted(self, model: Model, path: Path, state: str, *, silent: bool = False) -> str:
        """Report something that does not count, and return why in a few words."""
        layer = self.survey.layer(model.layer)
        if layer is not None and not layer.authority:
            why, remedy = "ignored: the file is not safe from others", "See the problem with the file itself."
        elif state == "changed":
            why, remedy = "ignored: it has changed since it was trusted", REVIEW
        else:
            why, remedy = "ignored: it is not trusted yet", REVIEW
        if not silent:
            problem = model.document.problem(path, why, remedy, key=True, severity="warning")
            self.survey.ignored.append((_label(model, path), problem))
        return why.removeprefix("ignored: ")


def _label(model: Model, path: Path) -> str:
    """Return what people call an entry: the hook by its name, all else by its path."""
    if path[0] == "hooks" and isinstance(path[-1], int):
        return f"the hook {model.document.data['hooks'][path[-1]]['name']}"
    return show_path(path)


def told_once(ignored: list[tuple[str, Problem]]) -> list[Problem]:
    """Return the problems of entries that do not count, with one line for all of a file that wait for the same.

    Parameters:
        ignored: what people call an entry, and its own problem.
    """
    alike: dict[tuple[str, str, str], list[tuple[str, Problem]]] = {}
    for label, problem in ignored:
        alike.setdefault((problem.file, problem.cause, problem.remedy), []).append((label, problem))
    told = []
    for (file, cause, remedy), members in alike.items():
        if len(members) == 1:
            told.append(members[0][1])
            continue
        names = ", ".join(label for label, _ in members)
        cause = cause.replace("it is", "they are").replace("it has", "they have")
        cause = f"{len(members)} entries are {cause}: {names}"
        told.append(
            Problem(
                file,
                0,
                0,
                "",
                cause,
                remedy.replace("at it and trust it", "at them and trust them"),
                "warning",
            )
        )
    return told
