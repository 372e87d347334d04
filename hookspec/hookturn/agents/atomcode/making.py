"""Makes plugins of AtomCode's entries, and says what they run. See ``config``, which projects without such hooks pay for."""

from __future__ import annotations

from ...runners import command
from ...runners.entry import Configured
from ...spec.markers import hookimpl
from . import payload

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...runners.entry import HookEntry
    from ...spec.timings import Timing

_SECRET_HEADERS = ("auth", "token", "secret", "key", "cookie", "password")
_MARK = "ended"


def make(
    entry: HookEntry, config: Mapping[str, Any], timings: Mapping[str, Timing], *, live: bool = False
) -> Configured:
    """Return an entry's plugin.

    Raises:
        RegistrationError: when it certainly cannot run.
    """
    if entry.kind == "webhook":
        return _webhook(entry, config, timings, live)
    if entry.extra["group"] == "hooks":
        from . import checks
        from .wire_script import ScriptWire

        if entry.run[0] == "sh" and checks.wants_bash(entry.run[1]):
            entry = entry.but(run=["bash", *entry.run[1:]])
        return _noting_tools(command.make(entry, config, timings, live=live, wire=ScriptWire()))
    from .wire_json import JsonWire, OldJsonWire

    wire = OldJsonWire() if entry.extra["generation"] == 1 else JsonWire()
    made = command.make(entry, config, timings, live=live, wire=wire)
    if entry.extra["event"] == "Stop":
        return _stop(entry, made)
    return _stop_failure(entry, made) if entry.extra["event"] == "StopFailure" else made


def _webhook(
    entry: HookEntry, config: Mapping[str, Any], timings: Mapping[str, Timing], live: bool
) -> Configured:
    from ...redact import Secret
    from ...runners import webhook
    from .wire_webhook import AtomCodeWebhookWire

    headers = {
        name: Secret(value, "header") if any(word in name.lower() for word in _SECRET_HEADERS) else value
        for name, value in entry.run["headers"].items()
    }
    entry = entry.but(run={**entry.run, "headers": headers})
    made = webhook.make(entry, config, timings, live=live, wire=AtomCodeWebhookWire())
    if "batch" not in entry.extra:
        return _noting_tools(made)
    from . import batches

    return _noting_tools(batches.make(entry, made, timings))


def _noting_tools(made: Any) -> Configured:
    """Let a hook of post_turn, which is not told of tools, note at the turn's completion whether there were any."""
    plugin: Configured = made
    if not hasattr(made, "post_turn"):
        return plugin
    run = getattr(made, "on_turn_complete", None)

    @hookimpl
    def on_turn_complete(event: Any, ctx: Any) -> Any:
        if event.tool_calls:
            ctx.state.set(payload.USED_TOOLS, event.turn)
        return run(event, ctx) if run is not None else None

    made.on_turn_complete = on_turn_complete
    return plugin


def _of_model(event: Any) -> bool:
    """Tell whether an error ends the turn in AtomCode's view: a failure of the model's provider."""
    phase: str = event.phase
    return phase == "model"


def _stop(entry: HookEntry, made: Any) -> Configured:
    """Return the plugin of a Stop hook: once a turn, and not in one that StopFailure is told of."""
    run = made.on_turn_complete

    @hookimpl
    def on_turn_complete(event: Any, ctx: Any) -> Any:
        return run(event, ctx) if _first(event, ctx) else None

    @hookimpl
    def on_error(event: Any, ctx: Any) -> None:
        if _of_model(event):
            _first(event, ctx)

    return Configured(entry.name, {"on_turn_complete": on_turn_complete, "on_error": on_error})


def _stop_failure(entry: HookEntry, made: Any) -> Configured:
    """Return the plugin of a StopFailure hook: once a turn."""
    run = made.on_error

    @hookimpl
    def on_error(event: Any, ctx: Any) -> Any:
        return run(event, ctx) if _of_model(event) and _first(event, ctx) else None

    return Configured(entry.name, {"on_error": on_error})


def _first(event: Any, ctx: Any) -> bool:
    """Tell whether this is the first end of the event's turn that this hook is told of."""
    if not event.turn:  # fired outside of any turn
        return True
    if ctx.state.get(_MARK) == event.turn:
        return False
    ctx.state.set(_MARK, event.turn)
    return True


def own_files(entry: HookEntry, project: str) -> list[str]:
    """Return the files that make out what an entry does: trust covers their content."""
    if entry.kind != "command":
        return []
    if not isinstance(entry.run, str):
        return command.files(entry, project)
    line = entry.run
    folders: dict[str, str] = dict.fromkeys(("ATOMCODE_PROJECT_DIR", "CLAUDE_PROJECT_DIR", "PWD"), project)
    root = entry.extra.get("plugin_root")
    if root:
        folders.update(dict.fromkeys(("ATOMCODE_PLUGIN_ROOT", "CLAUDE_PLUGIN_ROOT"), root))
    for name, folder in folders.items():
        line = line.replace(f"${{{name}}}", folder).replace(f"${name}", folder)
    return command.files(entry.but(run=line), project)


def words_of(entry: HookEntry) -> str:
    """Return what an entry runs, for people."""
    where = entry.extra.get("event") or ", ".join(entry.timings)
    if entry.kind == "webhook":
        what = "sends in batches" if "batch" in entry.extra else "sends"
        return f"{what} {where} to {entry.run['url']}"
    if entry.kind != "command":
        return "is switched off"
    matcher = entry.extra.get("matcher")
    about = f" for tools {matcher}" if matcher else ""
    return f"runs {command.words_of(entry)} at {where}{about}"
