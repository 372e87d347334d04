"""Reads one of Claude Code's hook files: its groups and hooks as entries, and what is wrong with them."""

from __future__ import annotations

import re

from ...runners.entry import HookEntry
from ...spec.errors import json_kind
from ...spec.record import thaw
from ..dialect import HookFile, Reading
from ..installing import is_ours
from . import checks, occasions
from .conditions import BadRule, Condition
from .config import NAME
from .javascript_regex import BadPattern, NoTranslation
from .matcher import Matcher, doubts, wrong_pattern
from .occasions import OCCASIONS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from ...spec.events import Event
    from ..dialect import Source
    from .occasions import Occasion

LONGEST_END = 60.0
"""Seconds that a hook may have at a session's end."""

SWITCHES = ("disableAllHooks", "allowManagedHooksOnly")
"""Settings that switch off hooks; the second counts in the administrator's file only."""

_PLACEHOLDER = re.compile(r"\$\{(CLAUDE_PROJECT_DIR|CLAUDE_PLUGIN_ROOT|CLAUDE_PLUGIN_DATA)\}")


def read(file: HookFile, source: Source, background: int) -> Reading:
    """Return the hooks of one file, in order. A bad group or hook costs only itself.

    Parameters:
        file, source: the file and what is in it.
        background: processes of a hook with ``async`` that run at a time.
    """
    reader = _Reader(file, source, background)
    if file.kind == "nobody":
        if source.data:
            cause = "Claude Code does not read this file: none of its hooks runs"
            reader.tell((), cause, 'Put them under "hooks" in .claude/settings.json.')
        return reader.reading
    reader.run()
    return reader.reading


class _Reader:
    """Reads one file."""

    def __init__(self, file: HookFile, source: Source, background: int) -> None:
        self.file = file
        self.source = source
        self.background = background
        self.reading = Reading()
        self.seen: dict[
            str, list[tuple[Any, ...]]
        ] = {}  # event -> (handler, matcher, condition) of its hooks

    def tell(
        self,
        path: tuple[str | int, ...],
        cause: str,
        remedy: str,
        *,
        key: bool = False,
        severity: str = "error",
    ) -> None:
        self.reading.problems.append(self.source.problem(path, cause, remedy, key=key, severity=severity))

    def run(self) -> None:
        data = self.source.data
        plugin = self.file.kind.startswith("plugin-")
        for key in () if plugin else SWITCHES:
            if key in data and isinstance(data[key], bool):
                self._switch(key, data[key])
            elif key in data:
                self.tell((key,), f"{key} must be true or false", "Write true or false.")
        hooks = data.get("hooks")
        if hooks is None:
            if plugin or set(data) & set(OCCASIONS):
                self.tell((), 'there is no "hooks" in the file', 'Put the events into {"hooks": {...}}.')
            return
        if not isinstance(hooks, dict):
            self.tell(("hooks",), '"hooks" must be an object', 'Write {"PreToolUse": [...]}.')
            return
        for event, groups in hooks.items():
            self._event(event, groups)

    def _switch(self, key: str, value: bool) -> None:
        if key == "allowManagedHooksOnly" and self.file.layer != "managed":
            self.tell(
                (key,), f"{key} counts in managed settings only", "Take it out.", key=True, severity="warning"
            )
            return
        if value or self.file.layer == "project":
            self._entry((key,), key, kind="", declared={key: value}, extra={"switch": key, "value": value})

    def _event(self, event: str, groups: Any) -> None:
        path = ("hooks", event)
        occasion = OCCASIONS.get(event)
        if occasion is None:
            self.tell(path, *checks.unknown_event(event), key=True)
            return
        if not isinstance(groups, list):
            self.tell(
                path, f"{event} must be an array of groups", 'Write [{"matcher": "Bash", "hooks": [...]}].'
            )
            return
        if event == "WorktreeCreate" and groups:
            cause = "a hook on WorktreeCreate takes over: Claude Code makes no worktree itself"
            self.tell(path, cause, "Use it only to make worktrees.", key=True, severity="warning")
        elif not occasion.seen and groups and not _only_ours(groups):
            cause = f"{event} never fires here: nothing that hookturn reads tells of it"
            remedy = f"A host may send on_event of type {occasion.types[0]!r}."
            self.tell(path, cause, remedy, key=True, severity="warning")
        for index, group in enumerate(groups):
            self._group(occasion, (*path, index), group)

    def _group(self, occasion: Occasion, path: tuple[str | int, ...], group: Any) -> None:
        if not isinstance(group, dict):
            self.tell(
                path, "a group of hooks must be an object", 'Write {"matcher": "Bash", "hooks": [...]}.'
            )
            return
        handlers = group.get("hooks")
        if not isinstance(handlers, list):
            where = path if "hooks" not in group else (*path, "hooks")
            wrong = (
                "a hook stands where a group of hooks belongs"
                if "type" in group
                else 'a group needs an array "hooks"'
            )
            self.tell(where, wrong, 'Write {"matcher": "Bash", "hooks": [{"type": "command", ...}]}.')
            return
        for key in group:
            if key not in ("matcher", "hooks"):
                cause = f"{key!r} is no field of a group, so it has no effect"
                remedy = "Move it into the hook." if key in ("if", "timeout", "once") else "Take it out."
                self.tell((*path, key), cause, remedy, key=True, severity="warning")
        matcher = self._matcher(occasion, path, group)
        if matcher is None:
            return
        for index, handler in enumerate(handlers):
            self._handler(occasion, (*path, "hooks", index), group.get("matcher", ""), matcher, handler)

    def _matcher(
        self, occasion: Occasion, path: tuple[str | int, ...], group: Mapping[str, Any]
    ) -> Matcher | None:
        """Return a group's matcher, or None when it cannot be used, which is told."""
        text = group.get("matcher", "")
        where = (*path, "matcher")
        if not isinstance(text, str):
            self.tell(
                where, f"a matcher must be a string, not {json_kind(text)}", 'Write "Bash" or "Edit|Write".'
            )
            return None
        if not occasion.field:
            if text not in ("", "*"):
                cause = f"{occasion.name} has no matcher: this one is ignored, and the hooks run each time"
                self.tell(where, cause, "Take it out.", key=True, severity="warning")
            return Matcher("")
        try:
            matcher = matcher_of(occasion, text)
        except (BadPattern, NoTranslation) as error:
            self.tell(where, *wrong_pattern(text, error))
            return None
        for severity, cause, remedy in doubts(text, tools=occasion.field == "tool_name"):
            self.tell(where, cause, remedy, severity=severity)
        return matcher

    def _handler(
        self, occasion: Occasion, path: tuple[str | int, ...], text: str, matcher: Matcher, handler: Any
    ) -> None:
        if not isinstance(handler, dict):
            self.tell(path, "a hook must be an object", 'Write {"type": "command", "command": "..."}.')
            return
        if self.source.spoiled(path):
            return
        kind = handler.get("type")
        if kind not in occasions.KINDS:
            self.tell((*path, "type") if "type" in handler else path, *checks.no_kind(kind))
            return
        for key, cause, remedy in checks.of_fields(handler):
            self.tell((*path, key), cause, remedy, key=True, severity="warning")
        if kind not in occasion.kinds:
            cause = f"{occasion.name} takes no hook of type {kind}: it never runs"
            self.tell((*path, "type"), cause, f"Known there are {', '.join(occasion.kinds)}.")
            return
        condition = self._condition(occasion, path, handler)
        if condition is None and "if" in handler:
            return
        run, why = self._run(path, kind, handler)
        if run is None and not why:
            return
        earlier = tuple(
            (other, rule) for same, other, rule in self.seen.get(occasion.name, ()) if same == handler
        )
        self.seen.setdefault(occasion.name, []).append((handler, matcher, condition))
        name = f"{occasion.name}.{path[2] + 1}.{path[4] + 1}"  # type: ignore[operator]
        extra = {
            "event": occasion.name,
            "why": why,
            "async": handler.get("async") is True or handler.get("asyncRewake") is True,
            "background": self.background,
            "allowed": [item for item in handler.get("allowedEnvVars") or () if isinstance(item, str)],
            **{key: value for key, value in self.file.extra.items() if key != "project"},
        }
        self._entry(
            path,
            name,
            kind={"command": "command", "http": "webhook"}.get(kind, ""),
            run=run,
            timings=[occasion.timing],
            options={
                "timeout": self._timeout(occasion, path, handler),
                "condition": _condition_of(occasion, matcher, condition, earlier),
            },
            declared={"event": occasion.name, "matcher": text, "hook": thaw(handler)},
            extra=extra,
        )

    def _condition(
        self, occasion: Occasion, path: tuple[str | int, ...], handler: Mapping[str, Any]
    ) -> Condition | None:
        if "if" not in handler:
            return None
        where = (*path, "if")
        if not occasion.is_tool:
            cause = f'"if" is for tool events: with it, a hook on {occasion.name} never runs'
            self.tell(where, cause, "Take it out, and look at the payload in the hook.")
            return None
        text = handler["if"]
        try:
            if not isinstance(text, str):
                raise BadRule('"if" must be a string')
            condition = Condition(text, self.file.extra["project"])
        except BadRule as error:
            self.tell(where, str(error), 'Write one rule, such as "Bash(git *)".')
            return None
        if not condition.known:
            cause = f"the rule {text[:60]!r} names a tool that Claude Code does not have"
            self.tell(where, cause, 'Write one rule, such as "Bash(git *)".', severity="warning")
        return condition

    def _timeout(self, occasion: Occasion, path: tuple[str | int, ...], handler: Mapping[str, Any]) -> float:
        value = handler.get("timeout", occasion.timeout)
        if isinstance(value, bool) or not isinstance(value, (int, float)) or not 0 < value < 1e9:
            cause = f"timeout must be seconds above 0; {occasion.timeout:g} count"
            self.tell((*path, "timeout"), cause, "Correct it.")
            return occasion.timeout
        return float(min(value, LONGEST_END) if occasion.name == "SessionEnd" else value)

    def _run(self, path: tuple[str | int, ...], kind: str, handler: Mapping[str, Any]) -> tuple[Any, str]:
        """Return what an entry runs, or why it is not run here; neither when it is wrong, which is told."""
        if kind == "command":
            return self._command(path, handler)
        if kind == "http":
            return self._http(path, handler), ""
        why = {
            "mcp_tool": "hooks of type mcp_tool need Claude Code's connection to the MCP server",
            "prompt": "hooks of type prompt need Claude Code's model",
            "agent": "hooks of type agent need Claude Code's model and tools",
        }[kind]
        self.tell((*path, "type"), f"not run by hookturn: {why}", "Claude Code runs it.", severity="warning")
        return None, why

    def _command(self, path: tuple[str | int, ...], handler: Mapping[str, Any]) -> tuple[Any, str]:
        text = handler.get("command")
        if not isinstance(text, str) or not text.strip() or "\0" in text:
            where = (*path, "command") if "command" in handler else path
            self.tell(
                where, 'a hook of type command needs a string "command"', 'Write "command": "./check.sh".'
            )
            return None, ""
        if "args" in handler:
            args = handler["args"]
            if not isinstance(args, list) or not all(
                isinstance(word, str) and "\0" not in word for word in args
            ):
                self.tell((*path, "args"), "args must be an array of strings", 'Write ["--strict"].')
                return None, ""
            return [self._filled(word) for word in (text, *args)], ""
        shell = handler.get("shell", "sh")
        if shell in ("sh", "bash"):
            return (text if shell == "sh" else ["bash", "-c", text]), ""
        if shell != "powershell":
            self.tell((*path, "shell"), "shell must be bash or powershell", 'Write "bash".')
            return None, ""
        why = "hooks for PowerShell are not run"
        self.tell(
            (*path, "shell"), f"not run by hookturn: {why}", 'Write "shell": "bash".', severity="warning"
        )
        return None, why

    def _filled(self, word: str) -> str:
        """Return a word of an exec form with the folders in the places that are left for them."""
        values = {
            "CLAUDE_PROJECT_DIR": self.file.extra["project"],
            "CLAUDE_PLUGIN_ROOT": self.file.extra.get("plugin_root", ""),
            "CLAUDE_PLUGIN_DATA": self.file.extra.get("plugin_data", ""),
        }
        return _PLACEHOLDER.sub(lambda match: values[match[1]] or match[0], word)

    def _http(self, path: tuple[str | int, ...], handler: Mapping[str, Any]) -> dict[str, Any] | None:
        url, headers = handler.get("url"), handler.get("headers", {})
        if not isinstance(url, str) or not url:
            where = (*path, "url") if "url" in handler else path
            self.tell(
                where,
                'a hook of type http needs a string "url"',
                'Write "url": "http://127.0.0.1:8080/hook".',
            )
            return None
        if not isinstance(headers, dict) or not all(isinstance(value, str) for value in headers.values()):
            self.tell((*path, "headers"), "headers must be an object of texts", 'Write {"X-Team": "a"}.')
            return None
        return {"url": url, "headers": dict(headers), "retries": 0, "redact": False}

    def _entry(self, path: tuple[str | int, ...], name: str, **fields: Any) -> None:
        line, column = self.source.at(path)
        self.reading.entries.append(
            HookEntry(
                name=f"{NAME}.{self.file.kind}.{name}",
                file=self.file.label,
                line=line,
                column=column,
                index=len(self.reading.entries),
                layer=self.file.layer,
                base_dir=self.file.base_dir,
                dialect=NAME,
                where=path,
                **fields,
            )
        )


def matcher_of(occasion: Occasion, text: str) -> Matcher:
    """Return a matcher as an event reads it.

    Raises:
        BadPattern, NoTranslation: for an expression that cannot be used.
    """
    return Matcher(text, files=occasion.name == "FileChanged", bars_only=occasion.name == "StopFailure")


def _condition_of(
    occasion: Occasion,
    matcher: Matcher,
    rule: Condition | None,
    earlier: tuple[tuple[Matcher, Condition | None], ...],
) -> Callable[[Event], str]:
    """Return what tells whether a hook concerns an event. A hook that stands twice runs once for an event."""

    def why_not(event: Event) -> str:
        if event.timing != occasion.timing:  # a hook's further function, see ``_stopper``
            return ""
        why = occasions.why_not(occasion, event) or _unfit(occasion, matcher, rule, event)
        if not why and any(not _unfit(occasion, other, its_rule, event) for other, its_rule in earlier):
            return "the same hook stands further up in the file and runs already"
        return why

    return why_not


def _unfit(occasion: Occasion, matcher: Matcher, rule: Condition | None, event: Any) -> str:
    """Return why matcher or ``if`` do not fit an event, or an empty string."""
    if occasion.field == "tool_name" and hasattr(event, "tool"):
        from .calls import names_of

        names: tuple[str, ...] = names_of(event)
    else:
        names = (occasions.value_of(occasion, event),) if occasion.field else ("",)
    if not matcher.fits_any(names):
        return f"matcher: {matcher.text!r} does not match {' or '.join(repr(name[:60]) for name in names)}"
    if rule is not None and not (hasattr(event, "tool") and rule.fits(event)):
        return f"if: the call does not fit {rule.text!r}"
    return ""


def _only_ours(groups: list[Any]) -> bool:
    """Whether all handlers of an event are those that ``hookturn install`` wrote."""
    return all(
        isinstance(group, dict)
        and isinstance(group.get("hooks"), list)
        and all(is_ours(handler) for handler in group["hooks"])
        for group in groups
    )


def effective(entries: Iterable[HookEntry]) -> list[tuple[HookEntry, str]]:
    """Return the hooks of all files with why one does not count: switched off, declared twice, or not for us."""
    entries = list(entries)
    off = _switched_off(entries)
    seen: dict[str, HookEntry] = {}
    result = []
    for entry in entries:
        why = ""
        if "switch" in entry.extra:
            why = f"a setting: {entry.extra['switch']} is {str(entry.extra['value']).lower()}"
        elif entry.layer in off:
            why = off[entry.layer]
        elif entry.extra["why"]:
            why = entry.extra["why"]
        else:
            first = seen.setdefault(_key(entry), entry)
            why = f"declared in {first.source} already" if first is not entry else ""
        result.append((entry, why))
    return result


def _key(entry: HookEntry) -> str:
    """Return what makes two hooks the same: event, matcher, handler, and the plugin that brings it."""
    import json

    return json.dumps([thaw(entry.declared), entry.extra.get("plugin_root", "")], sort_keys=True)


def _switched_off(entries: Iterable[HookEntry]) -> dict[str, str]:
    """Return the layers whose hooks are off, each with the reason.

    The administrator's setting counts for all; else the last that is set: the user's, the project's, the local one.
    It never counts for the administrator's hooks.
    """
    off: dict[str, str] = {}
    last: HookEntry | None = None
    for entry in entries:
        switch, value = entry.extra.get("switch"), entry.extra.get("value")
        if switch == "allowManagedHooksOnly" and value:
            off.update(dict.fromkeys(("user", "project"), f"allowManagedHooksOnly is set in {entry.file}"))
        elif switch == "disableAllHooks" and entry.layer == "managed" and value:
            off = dict.fromkeys(("managed", "user", "project"), f"disableAllHooks is set in {entry.file}")
        elif switch == "disableAllHooks":
            last = entry
    if last is not None and last.extra["value"]:
        for layer in ("user", "project"):
            off.setdefault(layer, f"disableAllHooks is set in {last.file}")
    return off
