"""AtomCode's hook files as hooks: ``hooks.toml``, ``.hooks.json`` and the hooks of its plugins.

Sources: the documents of its HookEngine (hooks.toml, generation 1) and of its cc_hooks (generation 2).
"""

from __future__ import annotations

import os

from ...runners import command
from ...runners.entry import Configured, HookEntry
from ...spec.markers import hookimpl
from ..dialect import HookFile, Reading
from . import payload, plugins

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ...runners.command import Wrong
    from ...spec.timings import Timing
    from ..dialect import Source

NAME = "atomcode"

SETTINGS: dict[str, tuple[Any, ...]] = {
    "generation": (2, 1),
    "merge": ("name", "concatenate"),
    "triggers": ("exact", "substring"),
}
"""``generation``: rules of hooks.json. ``merge``: whether a project's entry replaces the user's of its name.
``triggers``: how a webhook's trigger is read."""

_SECRET_HEADERS = ("auth", "token", "secret", "key", "cookie", "password")
_MARK = "ended"


def files(project: str, environ: Mapping[str, str], settings: Mapping[str, Any]) -> list[HookFile]:
    """Return where AtomCode's hook files may lie, in order of registration."""
    home = environ.get("HOME") or os.path.expanduser("~")
    own = os.path.abspath(environ.get("ATOMCODE_HOME") or os.path.join(home, ".atomcode"))
    found = [
        HookFile(
            os.path.join(own, "hooks.json"), os.path.join(own, "hooks.json"), "user", "json", "named", own
        ),
        HookFile(os.path.join(project, ".hooks.json"), ".hooks.json", "project", "json", "named", project),
    ]
    store = os.path.join(own, "plugins")
    trust = plugins.read_object(os.path.join(store, "hook_trust.json"))
    found += plugins.files(store, "user", store, trust)
    for name in (".atomcode/plugins", ".atomcode/plugins/local"):
        folder = os.path.join(project, name)
        if os.path.realpath(folder) != os.path.realpath(store):
            found += plugins.files(folder, "project", name, trust)
    toml = os.path.join(home, ".atomcode", "hooks")
    local = os.path.join(project, ".atomcode", "hooks")
    found.append(
        HookFile(
            os.path.join(toml, "hooks.toml"), os.path.join(toml, "hooks.toml"), "user", "toml", "toml", toml
        )
    )
    if os.path.realpath(local) != os.path.realpath(toml):
        path = os.path.join(local, "hooks.toml")
        found.append(HookFile(path, ".atomcode/hooks/hooks.toml", "project", "toml", "toml", local))
    return found


def place(path: str, project: str, data: Mapping[str, Any]) -> HookFile | None:
    """Return a file as hooks.toml, as named entries, or as the hooks of a plugin of AtomCode's."""
    folder, name = os.path.split(path)
    if name.endswith(".toml"):
        tables = any(isinstance(data.get(key), list) for key in ("hooks", "webhooks", "async_webhooks"))
        return (
            HookFile(path, path, "project", "toml", "toml", folder)
            if tables or name == "hooks.toml"
            else None
        )
    if not name.endswith(".json"):
        return None
    hooks = data.get("hooks")
    named = isinstance(hooks, dict) and any(
        isinstance(value, dict) and ({"event", "command"} & value.keys()) for value in hooks.values()
    )
    if named or name == ".hooks.json":
        return HookFile(path, path, "project", "json", "named", folder)
    root = os.path.dirname(folder) if os.path.basename(folder) == "hooks" else folder
    if not os.path.isfile(os.path.join(root, plugins.MANIFESTS[0])):
        return None
    extra = {"plugin": os.path.basename(root), "plugin_root": root, "trusted": ""}
    return HookFile(path, path, "project", "json", "plugin", root, extra)


def read(file: HookFile, source: Source, settings: Mapping[str, Any]) -> Reading:
    """Return what one file declares. A bad entry costs only itself, and leaves a problem."""
    reading = Reading()
    if file.format == "toml":
        from .hooks_toml import TomlFile

        TomlFile(file, source, settings, reading, NAME).read()
    else:
        from .hooks_json import JsonFile

        JsonFile(file, source, settings, reading, NAME).read()
    return reading


def effective(entries: Iterable[HookEntry]) -> list[tuple[HookEntry, str]]:
    """Return the entries with why they do not count after all, or "".

    A project's entry replaces the user's of its name, and switches it off where it is off itself. The same
    hook in two files runs once. A plugin's hooks count when the user trusts them in AtomCode.
    """
    given = list(entries)
    hashes = _hashes(given)
    why = [_untrusted(entry, hashes) for entry in given]
    last = {_name_of(entry): index for index, entry in enumerate(given)}
    for index, entry in enumerate(given):
        other = last[_name_of(entry)]
        if other != index and not why[index]:
            by = given[other]
            why[index] = f"{'replaced by' if by.enabled else 'switched off by'} {by.source}"
        elif not entry.enabled and not why[index]:
            why[index] = f"switched off in {entry.source}"
    counted: dict[str, HookEntry] = {}
    for index in reversed(range(len(given))):  # of two scopes the later counts
        entry = given[index]
        if why[index]:
            continue
        twin = counted.setdefault(repr(_what_of(entry)), entry)
        # Two entries in one file are meant to be two, but for a plugin's.
        if twin is not entry and ("plugin" in entry.extra or twin.file != entry.file):
            why[index] = f"the same hook as {twin.source}"
    ends = [
        index for index, entry in enumerate(given) if not why[index] and entry.extra.get("event") == "Stop"
    ]
    for index in ends if len(ends) > 1 else ():
        given[index] = given[index].but(extra={**given[index].extra, "several": True})
    return list(zip(given, why, strict=True))


def _hashes(entries: Iterable[HookEntry]) -> dict[tuple[str, str], str]:
    """Return AtomCode's hash of each plugin's hooks, by plugin and layer."""
    hooks: dict[tuple[str, str], list[HookEntry]] = {}
    for entry in entries:
        if "plugin" in entry.extra and entry.kind == "command":
            hooks.setdefault((entry.extra["plugin"], entry.layer), []).append(entry)
    return {key: plugins.hash_of(found) for key, found in hooks.items()}


def _untrusted(entry: HookEntry, hashes: Mapping[tuple[str, str], str]) -> str:
    """Return why a plugin's entry is not trusted, or an empty string."""
    plugin = entry.extra.get("plugin")
    if plugin is None or entry.extra["trusted"] == hashes.get((plugin, entry.layer)):
        return ""
    before = "its hooks have changed since" if entry.extra["trusted"] else "not yet"
    return f"the plugin {plugin} is not trusted ({before}): run `atomcode plugin trust {plugin.partition('@')[0]}`"


def _name_of(entry: HookEntry) -> tuple[Any, ...]:
    """Return what a project's entry replaces: entries of one kind and name."""
    if "plugin" in entry.extra or entry.extra["merge"] == "concatenate":
        return (entry.file, entry.where)
    return (entry.extra["group"], entry.extra.get("name", entry.name))


def _what_of(entry: HookEntry) -> tuple[Any, ...]:
    """Return what makes two entries the same hook."""
    extra = entry.extra
    about = (extra.get("event"), extra.get("matcher") or "", extra.get("trigger"), extra.get("plugin"))
    return (entry.kind, entry.timings, entry.run, *about)


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


def wrongs(entry: HookEntry, project: str) -> list[Wrong]:
    """Return what is wrong with an entry here and now, for ``hookturn check``; runs nothing."""
    from . import checks

    return checks.wrongs(entry, project)
