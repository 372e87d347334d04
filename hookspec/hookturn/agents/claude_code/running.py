"""Makes the plugins of Claude Code's hooks, and tells what they run and what is wrong with that."""

from __future__ import annotations

import re

from ...platform import agent_environ
from ...runners import command
from ...runners.entry import Wrong
from ...spec.errors import RegistrationError
from . import checks

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping
    from typing import Any

    from ...runners.entry import Configured, HookEntry
    from ...spec.timings import Timing

_LOOPBACK = ("127.0.0.0/8", "::1", "localhost")
_PLACE_IN_LINE = re.compile(
    r"\$(?:\{CLAUDE_(?:PROJECT_DIR|PLUGIN_ROOT)(?::?-[^}]*)?\}|CLAUDE_(?:PROJECT_DIR|PLUGIN_ROOT)\b)"
)
_HEADER_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_][A-Za-z0-9_]*)\}|([A-Za-z_][A-Za-z0-9_]*))")


def make(
    entry: HookEntry, config: Mapping[str, Any], timings: Mapping[str, Timing], *, live: bool = False
) -> Configured:
    """Return a hook's plugin.

    Raises:
        RegistrationError: when it certainly cannot run.
    """
    if entry.kind == "webhook":
        from ...runners import webhook
        from .wire_http import ClaudeHttpWire

        entry = _for_http(entry)
        plugin: Configured = webhook.make(entry, config, timings, live=live, wire=ClaudeHttpWire())
    elif entry.kind == "command":
        from .wire import ClaudeWire

        plugin = command.make(entry, config, timings, live=live, wire=ClaudeWire())
    else:
        raise RegistrationError(
            entry.name, f"not run: {entry.extra.get('why', 'a setting')}", "See the reason."
        )
    if entry.extra["async"]:
        from .background import Background

        return Background(plugin, entry.timings, live=live, most=entry.extra["background"]).plugin
    if "post_tool_execution" in entry.timings:
        plugin.on_model_response = _stopper()  # type: ignore[attr-defined]
    return plugin


def _stopper() -> Any:
    """Return what ends the turn after a hook on a tool's result said ``continue: false``: no Block is taken there."""
    from ...spec.answers import Block
    from ...spec.markers import hookimpl

    @hookimpl
    def stop(event: Any, ctx: Any) -> Any:
        said = ctx.state.get("stop")
        if not said:
            return None
        ctx.state.delete("stop")
        same = said["turn"] == event.turn and said["agent"] == event.agent_id
        return Block(said["reason"]) if same else None

    return stop


def _for_http(entry: HookEntry) -> HookEntry:
    """Return an entry with its headers' variables filled in. The user's own hooks may call this machine."""
    from ...redact import Secret
    from ...runners.addresses import Network

    def fill(match: re.Match[str]) -> str:
        name = match[1] or match[2]
        return agent_environ().get(name, "") if name in entry.extra["allowed"] else ""

    headers: dict[str, Any] = {}
    for name, value in entry.run["headers"].items():
        filled = _HEADER_VARIABLE.sub(fill, value)
        headers[name] = Secret(filled, "header") if filled != value else value
    entry = entry.but(run={**entry.run, "headers": headers})
    if entry.layer == "project":
        return entry
    given = entry.network
    network = Network(
        [*(item.text for item in given.allow), *_LOOPBACK] if given is not None else [*_LOOPBACK]
    )
    network.proxy = given.proxy if given is not None else None
    return entry.but(network=network)


def own_files(entry: HookEntry, project: str) -> list[str]:
    """Return the scripts and programs of the project that a command runs."""
    if entry.kind != "command":
        return []
    line = _line(entry)
    if line is None:
        return command.files(entry, project)
    # Both folders are tried for a relative path. Without quotes, scripts inside of `bash -c '...'` are seen, too.
    line = _PLACE_IN_LINE.sub(".", line)
    bare = line.replace("'", " ").replace('"', "")
    return command.files(entry.but(run=f"{line}\n{bare}"), project)


def _line(entry: HookEntry) -> str | None:
    """Return an entry's shell line, or None for a program with arguments."""
    if isinstance(entry.run, str):
        return entry.run
    is_bash = "args" not in entry.declared["hook"]
    return str(entry.run[2]) if is_bash else None


def words_of(entry: HookEntry) -> str:
    """Return what an entry does, for people."""
    if "switch" in entry.extra:
        state = "on" if not entry.extra["value"] else "off"
        return f"switches Claude Code's hooks {state} ({entry.extra['switch']})"
    where = entry.extra["event"]
    text = entry.declared["matcher"]
    if text not in ("", "*"):
        where += f" ({text})"
    if entry.kind == "webhook":
        return f"sends {where} to {entry.run['url']}"
    if entry.kind != "command":
        return f"nothing at {where}: {entry.extra['why']}"
    return f"runs {command.words_of(entry)} at {where}"


def wrongs(entry: HookEntry, project: str) -> list[Wrong]:
    """Return what is wrong with a hook here and now; runs nothing."""
    if entry.kind == "webhook":
        return [*_header_doubts(entry)]
    if entry.kind != "command":
        return []
    from ...runners import doubts

    found = list(command.problems(entry, project))
    line = _line(entry)
    if line is not None and not found:
        shell = "sh" if isinstance(entry.run, str) else "bash"
        found += doubts.of_line(line, shell=shell, folders=checks.FOLDERS, known=checks.VARIABLES)
        places = {"CLAUDE_PROJECT_DIR": project, "CLAUDE_PLUGIN_ROOT": entry.extra.get("plugin_root", "")}
        found += doubts.missing(line, places, project)
    return found


def _header_doubts(entry: HookEntry) -> Iterator[Wrong]:
    for name, value in entry.run["headers"].items():
        for match in _HEADER_VARIABLE.finditer(value):
            variable = match[1] or match[2]
            if variable not in entry.extra["allowed"]:
                cause = (
                    f"the header {name} holds ${variable}, which allowedEnvVars does not name: it is empty"
                )
                yield Wrong(cause, f'Write "allowedEnvVars": ["{variable}"].', certain=False)
            elif not agent_environ().get(variable):
                cause = f"the header {name} holds ${variable}, which is not set"
                yield Wrong(cause, "Set it.", certain=False, severity="warning")
