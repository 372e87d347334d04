"""Reads AtomCode's hooks.json: named entries, and the event maps of plugins. Runs nothing."""

from __future__ import annotations

from ...runners.entry import HookEntry
from ...spec.errors import did_you_mean, json_kind
from ...spec.record import thaw
from .fields import LONGEST, Fields
from .matcher import EVENTS, OLD_EVENTS, TOOL_EVENTS, Condition, event_of, snake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..dialect import HookFile, Path, Reading, Source

KEYS = ("event", "matcher", "command", "timeout_ms", "disabled", "enabled", "description")
"""Keys of a named entry."""

GROUP = ("matcher", "hooks", "description")
"""Keys of a matcher group in a plugin's file."""

COMMAND = ("type", "command", "timeout", "description", "statusMessage")
"""Keys of one hook in such a group."""

TIMEOUT_MS = 10_000


class JsonFile:
    """One hooks.json.

    Parameters:
        file: where it lies; ``file.extra`` has a plugin's id, folder and trusted hash.
        source: what it holds.
        settings: of the dialect.
        reading: where entries and problems go.
        name: the dialect's name.
    """

    def __init__(
        self, file: HookFile, source: Source, settings: Mapping[str, Any], reading: Reading, name: str
    ) -> None:
        self.file = file
        self.source = source
        self.generation: int = settings.get("generation", 2)
        self.merge: str = settings.get("merge", "name")
        self.reading = reading
        self.dialect = name

    def read(self) -> None:
        """Read the whole file."""
        data, path = self.source.data, ()
        where: Path = ("hooks",)
        hooks = data.get("hooks")
        if self.file.kind == "plugin":
            if not isinstance(hooks, dict):
                hooks, where = data, path
            elif isinstance(hooks.get("hooks"), dict):
                hooks, where = hooks["hooks"], ("hooks", "hooks")
            named = any(isinstance(value, dict) and "event" in value for value in hooks.values())
            self._named(hooks, where) if named else self._groups(hooks, where)
            return
        other = _other_shape(data)
        if other:
            # Many tools have a file of this name in a project; only the user's own is certainly AtomCode's.
            severity = "warning" if self.file.layer == "project" else "error"
            self.reading.problems.append(
                self.source.problem(
                    ("hooks",) if "hooks" in data else (),
                    f"this is no hooks.json of AtomCode: {other}; nothing in it is run",
                    'AtomCode\'s has {"hooks": {"name": {"event": "PreToolUse", "command": "..."}}}.',
                    severity=severity,
                )
            )
            return
        self._named(hooks or {}, where)

    # -- named entries --------------------------------------------------------------------------

    def _named(self, hooks: Mapping[str, Any], where: Path) -> None:
        # AtomCode runs them in the order of their names, not of the file.
        for index, name in enumerate(sorted(hooks)):
            path = (*where, name)
            data = hooks[name]
            if not isinstance(data, dict):
                cause = f"a hook is an object, got {json_kind(data)}"
                self.reading.problems.append(
                    self.source.problem(path, cause, 'Write {"event": "PreToolUse", "command": "..."}.')
                )
                continue
            self._entry_of(name, index, Fields(self.source, path, data, self.reading))

    def _entry_of(self, name: str, index: int, fields: Fields) -> None:
        fields.known(KEYS)
        enabled = fields.flag("enabled", True) and not fields.flag("disabled", False)
        if not name.strip() or "\0" in name:
            fields.problem("", "a hook needs a name", "Give it a short one.", at_key=False)
        if not enabled and not fields.wrong and ("command" not in fields.data or "event" not in fields.data):
            self._entry(name, index, fields.where, fields.data, "", enabled=False)
            return
        event = self._event(fields)
        matcher = self._matcher(fields, event)
        command = fields.text("command", "Write one shell line.")
        wait = fields.whole("timeout_ms", TIMEOUT_MS, "milliseconds", most=LONGEST * 1000)
        if fields.wrong:
            return
        self._entry(
            name, index, fields.where, fields.data, event, command, matcher, wait / 1000, enabled=enabled
        )

    def _event(self, fields: Fields) -> str:
        word = fields.text("event", "Write PreToolUse, say.")
        event = event_of(word, self.generation)
        if word and not event:
            self._unknown_event(fields, "event", word)
        return event

    def _unknown_event(self, fields: Fields, key: str, word: str, *, at_key: bool = False) -> None:
        known = OLD_EVENTS if self.generation == 1 else tuple(EVENTS)
        if event_of(word):
            cause = f"the event {word} is none of generation 1"
        else:
            near = did_you_mean(word, (*known, *map(snake, known)))
            cause = f"unknown event {word[:60]!r}{near}"
        fields.problem(key, cause, f"Known are {', '.join(known)}.", at_key=at_key)

    def _matcher(self, fields: Fields, event: str) -> str | None:
        value = fields.data.get("matcher")
        if value is None:
            return None
        if not isinstance(value, str):
            fields.problem("matcher", f"expected a string, got {json_kind(value)}", 'Write "bash", say.')
            return None
        if event and event not in TOOL_EVENTS:
            fields.warning("matcher", f"{event} has no matcher: it is ignored", "Take it out.")
        return value

    # -- event maps of plugins ------------------------------------------------------------------

    def _groups(self, hooks: Mapping[str, Any], where: Path) -> None:
        index = 0
        for word, groups in hooks.items():
            path = (*where, word)
            if word in ("description", "$schema"):
                continue
            event = event_of(word, self.generation)
            fields = Fields(self.source, path, {}, self.reading)
            if not event:
                self._unknown_event(fields, "", word, at_key=True)
                continue
            if not isinstance(groups, list):
                fields.problem(
                    "", f"expected an array of groups, got {json_kind(groups)}", 'Write [{"hooks": [...]}].'
                )
                continue
            for number, group in enumerate(groups):
                index = self._group(event, number, group, (*path, number), index)

    def _group(self, event: str, number: int, group: Any, path: Path, index: int) -> int:
        fields = Fields(self.source, path, group if isinstance(group, dict) else {}, self.reading)
        hooks = fields.data.get("hooks")
        if not isinstance(group, dict) or not isinstance(hooks, list):
            fields.problem("", "a group is an object with an array 'hooks'", 'Write {"hooks": [...]}.')
            return index
        fields.known(GROUP)
        matcher = self._matcher(fields, event)
        if fields.wrong:
            return index
        for place, hook in enumerate(hooks):
            inner = (*path, "hooks", place)
            one = Fields(self.source, inner, hook if isinstance(hook, dict) else {}, self.reading)
            if not isinstance(hook, dict):
                one.problem("", f"a hook is an object, got {json_kind(hook)}", 'Write {"command": "..."}.')
                continue
            kind = one.text("type", "Write command.", "command")
            if kind and kind != "command":
                one.warning(
                    "type", f"AtomCode runs no hooks of type {kind[:60]!r}: skipped", "Write a command."
                )
                continue
            one.known(COMMAND)
            command = one.text("command", "Write one shell line.")
            seconds = one.whole("timeout", TIMEOUT_MS // 1000, "seconds")
            if not one.wrong:
                declared = {"event": event, "matcher": matcher, **hook}
                name = f"{self.file.extra['plugin']}:{event}-{number}-{place}"
                self._entry(name, index, inner, declared, event, command, matcher, float(seconds))
                index += 1
        return index

    # -- both -----------------------------------------------------------------------------------

    def _entry(
        self,
        name: str,
        index: int,
        where: Path,
        declared: Mapping[str, Any],
        event: str,
        command: str = "",
        matcher: str | None = None,
        seconds: float = 0.0,
        *,
        enabled: bool = True,
    ) -> None:
        line, column = self.source.at(where)
        options: dict[str, Any] = {}
        if event:
            options["timeout"] = seconds
            if event in TOOL_EVENTS:
                options["condition"] = Condition(event, matcher, self.generation)
            elif event == "Notification":
                options["event_types"] = ["notification", "notification.*"]
        about: dict[str, Any] = {
            key: self.file.extra[key]
            for key in ("plugin", "plugin_root", "trusted")
            if key in self.file.extra
        }
        if about and not name.startswith(about["plugin"]):
            name = f"{about['plugin']}:{name}"
        self.reading.entries.append(
            HookEntry(
                name=name,
                kind="command" if event else "",
                run=command or None,
                timings=[EVENTS[event]] if event else [],
                options=options,
                enabled=enabled,
                file=self.file.label,
                line=line,
                column=column,
                index=index,
                layer=self.file.layer,
                base_dir=self.file.base_dir,
                dialect=self.dialect,
                declared=thaw(declared),
                where=where,
                extra={
                    "group": "json",
                    "event": event,
                    "matcher": matcher,
                    "generation": self.generation,
                    "merge": self.merge,
                    **about,
                },
            )
        )


def _other_shape(data: Mapping[str, Any]) -> str:
    """Return what makes a file another program's, or an empty string."""
    hooks = data.get("hooks")
    if hooks is None:
        return "it has no 'hooks'" if data else ""
    if not isinstance(hooks, dict):
        return f"'hooks' is {json_kind(hooks)}"
    if not hooks or any(
        isinstance(value, dict) and ({"event", "command"} & value.keys()) for value in hooks.values()
    ):
        return ""
    if all(isinstance(value, list) for value in hooks.values()):
        return "'hooks' holds lists by event, as in Claude Code's settings"
    if all(isinstance(value, dict) for value in hooks.values()):
        if any({"disabled", "enabled"} & value.keys() for value in hooks.values()):
            return ""
        return "its entries have neither 'event' nor 'command'"
    return "'hooks' does not hold named entries"
