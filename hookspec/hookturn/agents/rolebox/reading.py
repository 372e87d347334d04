"""Reads one role.yaml: its own hooks, its functions, recovery and guards as entries, and what is wrong with them."""

from __future__ import annotations

import os
import re

from ...platform import agent_environ
from ...runners.entry import HookEntry
from ...spec.answers import STRATEGIES
from ...spec.errors import did_you_mean
from ..dialect import Reading, plain_name
from . import roles
from .roles import NAME, TIMING_OF

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence
    from typing import Any

    from ..dialect import HookFile, Path, Source

PRIORITY = 50
PHASES = ("before", "after")

HOOK = ("name", "description", "events", "module", "config", "filter", "priority", "phase")
"""Keys of an entry of ``hooks.custom``."""

SWITCHES = {
    "recovery": True,
    "session_error": True,
    "edit_error": True,
    "json_error": True,
    "context_window": True,
    "empty_response": True,
    "tool_pair_validation": False,
    "write_existing_file_guard": False,
    "bash_file_read_guard": False,
    "webfetch_redirect_guard": False,
}
"""Key of ``hooks.builtin`` -> whether it is on where nothing is said."""

GUARDS = ("write_existing_file_guard", "bash_file_read_guard", "webfetch_redirect_guard")
CATEGORIES = ("session_error", "context_window", "edit_error", "json_error", "empty_response")
RECOVERY = ("enabled", "max_total_attempts", "persist_state", "collect_metrics")


def read(file: HookFile, source: Source) -> Reading:
    """Return what a role declares. A bad entry costs only itself.

    Parameters:
        file: where it lies; ``file.extra`` has the role's id.
        source: what it holds.
    """
    return _Role(file, source).read()


class _Role:
    """Reads one role.yaml."""

    def __init__(self, file: HookFile, source: Source) -> None:
        self.file = file
        self.source = source
        self.reading = Reading()
        self.data: dict[str, Any] = source.data
        self.role: str = file.extra["role"]
        self.alone: bool = file.extra["alone"]
        self.names: set[str] = set()
        self.options: dict[str, Any] = {}

    def read(self) -> Reading:
        if not roles.is_role(self.data):
            return self.reading
        name = self.data.get("name")
        if not isinstance(name, str) or not name.strip():
            self._problem(("name",), "a role needs a name; this one is skipped", "Add 'name: ...'.")
            return self.reading
        if not self.alone and roles.SUBAGENT in self.role:
            cause = f"the role {self.role!r} is skipped: '--' separates a role from its sub-agent"
            self._problem((), cause, "Rename its folder.")
            return self.reading
        identity = name if self.alone else self.role
        agents = [_literal(word) for word in dict.fromkeys([self.role, name])]
        self.extra = {"role": identity, "project": self.file.extra["project"], "agents": agents}
        hooks = self._hooks()
        flags = self._flags(hooks.get("builtin"))
        self._functions(flags)
        if flags["recovery"]:
            self._guards(flags)
            self._recovery(hooks.get("recovery"), flags)
        custom = hooks.get("custom")
        if custom is not None and not isinstance(custom, list):
            self._problem(("hooks", "custom"), "expected a list of hooks", "Begin each with '- name: ...'.")
        elif custom:
            for index, entry in enumerate(custom):
                self._custom(("hooks", "custom", index), entry)
        return self.reading

    def _problem(
        self, path: Path, cause: str, remedy: str, *, key: bool = False, severity: str = "error"
    ) -> None:
        self.reading.problems.append(self.source.problem(path, cause, remedy, key=key, severity=severity))

    def _warn(self, path: Path, cause: str, remedy: str, *, key: bool = True) -> None:
        self._problem(path, cause, remedy, key=key, severity="warning")

    def _add(self, name: str, path: Path, **about: Any) -> None:
        unique, number = name, 2
        while unique in self.names:
            unique, number = f"{name}-{number}", number + 1
        self.names.add(unique)
        line, column = self.source.at(path)
        extra = {**self.extra, **about.pop("extra", {})}
        options = {**self.options, **about.pop("options", {})}
        self.reading.entries.append(
            HookEntry(
                name=unique if self.alone else f"{self.role}/{unique}",
                dialect=NAME,
                where=path,
                file=self.file.label,
                line=line,
                column=column,
                index=len(self.reading.entries),
                layer=self.file.layer,
                options=options,
                extra=extra,
                **{"base_dir": self.file.base_dir, **about},
            )
        )

    def _hooks(self) -> dict[str, Any]:
        hooks = self.data.get("hooks")
        if hooks is None:
            return {}
        if not isinstance(hooks, dict):
            self._problem(
                ("hooks",), "expected a mapping", "Write 'custom:', 'builtin:' or 'recovery:' below it."
            )
            return {}
        self._unknown(("hooks",), hooks, roles.HOOK_KEYS)
        return hooks

    def _unknown(self, path: Path, data: Mapping[str, Any], known: Iterable[str]) -> None:
        known = tuple(known)
        for key in data:
            if key not in known:
                cause = f"unknown key {key!r}{did_you_mean(str(key), known)}, which has no effect"
                self._warn((*path, key), cause, f"Known are {', '.join(known)}.")

    # -- hooks.builtin, hooks.recovery ----------------------------------------------------------------

    def _flags(self, given: Any) -> dict[str, bool]:
        flags = {**SWITCHES, "auto_activate": True}
        path = ("hooks", "builtin")
        if given is None:
            return flags
        if not isinstance(given, dict):
            self._problem(path, "expected a mapping of switches", "Write 'recovery: true', say.")
            return flags
        self._unknown(path, given, flags)
        for key in flags:
            if key in given:
                if not isinstance(given[key], bool):
                    self._warn(
                        (*path, key),
                        f"{key} is neither true nor false, so it is off",
                        "Write true.",
                        key=False,
                    )
                flags[key] = given[key] is True
        return flags

    def _guards(self, flags: Mapping[str, bool]) -> None:
        on = {key: True for key in GUARDS if flags[key]}
        if on:
            self._add("guards", ("hooks", "builtin"), kind="plugin", run="guards", config=on, declared=on)

    def _recovery(self, given: Any, flags: Mapping[str, bool]) -> None:
        path = ("hooks", "recovery")
        config: dict[str, Any] = {
            key: flags[key] for key in SWITCHES if key not in GUARDS and key != "recovery"
        }
        if given is not None and not isinstance(given, dict):
            self._problem(path, "expected a mapping", "Write 'max_total_attempts: 10', say.")
            given = None
        if given:
            if given.get("enabled") is False:
                return
            self._recovery_settings(path, given, config)
        if any(value is True for value in config.values()):
            where: Path = path if given else ("hooks", "builtin")
            self._add("recovery", where, kind="plugin", run="recovery", config=config, declared=config)

    def _recovery_settings(self, path: Path, given: Mapping[str, Any], config: dict[str, Any]) -> None:
        self._unknown(path, given, (*RECOVERY, *CATEGORIES))
        for key in ("persist_state", "collect_metrics"):
            if key in given:
                cause = f"{key} has no effect here"
                self._warn((*path, key), cause, "State is kept with the session, figures by turn-stats.")
        most = given.get("max_total_attempts")
        if isinstance(most, int) and not isinstance(most, bool) and most >= 0:
            config["max_total_attempts"] = most
        elif most is not None:
            self._problem((*path, "max_total_attempts"), "expected a number from 0", "Write 10, say.")
        chains: dict[str, Any] = {}
        for category in CATEGORIES:
            chain = given.get(category)
            if chain is None:
                continue
            steps = chain.get("chain") if isinstance(chain, dict) else None
            if isinstance(chain, dict) and chain.get("enabled") is False:
                chains[category] = []
            elif isinstance(steps, list):
                chains[category] = self._steps((*path, category, "chain"), steps)
            elif not isinstance(chain, dict) or steps is not None:
                cause = (
                    f"expected a mapping with 'chain', a list of steps; the default chain of {category} holds"
                )
                self._problem((*path, category), cause, "Write 'chain: [{strategy: retry}]'.")
        if chains:
            config["chains"] = chains

    def _steps(self, path: Path, steps: Sequence[Any]) -> list[dict[str, Any]]:
        good = []
        for index, step in enumerate(steps):
            strategy = step.get("strategy") if isinstance(step, dict) else None
            if strategy not in STRATEGIES:
                near = did_you_mean(str(strategy), STRATEGIES)
                cause = f"unknown strategy {strategy!r}{near}: the step is left out"
                self._warn((*path, index), cause, f"Known are {', '.join(STRATEGIES)}.", key=False)
                continue
            settings = step.get("config")
            if settings is not None and not isinstance(settings, dict):
                self._problem((*path, index, "config"), "expected a mapping", "Write 'max_retries: 2', say.")
                settings = None
            good.append({"strategy": strategy, "config": dict(settings or {})})
        return good

    # -- functions ------------------------------------------------------------------------------------

    def _functions(self, flags: Mapping[str, bool]) -> None:
        from . import functions

        listed = self._words("functions")
        off = self._words("disable_functions")
        auto = self._words("auto_activate") if flags["auto_activate"] else []
        locked = self.data.get("locked")
        if locked is not None and not isinstance(locked, bool):
            self._problem(("locked",), "locked is neither true nor false, and has no effect", "Write true.")
        known = [name for name in dict.fromkeys([*functions.DEFAULTS, *listed, *auto]) if name not in off]
        folders = [
            os.path.join(self.file.base_dir, "functions"),
            roles.functions_folder(agent_environ()),
        ]
        texts, paths, digests = {}, [], {}
        where: Path = next(((key,) for key in ("auto_activate", "functions") if key in self.data), ("name",))
        doubts: list[tuple[str, str]] = []
        for name in known:
            path = functions.path_of(name, folders)
            if not path:
                if name not in functions.DEFAULTS or name in listed or name in auto:
                    own = ": its text is rolebox's own" if name in functions.DEFAULTS else ""
                    remedy = f"Write {os.path.join('functions', name)}.md in the role's folder."
                    doubts.append((f"the function {name} has no text here{own}", remedy))
                continue
            function = functions.read(name, path)
            doubts += function.doubts
            if function.fields:
                texts[name] = function.fields
                paths.append(path)
                digests[path] = function.digest
        for cause, remedy in doubts:
            self._problem(where, cause, remedy, severity="warning")
        declared = {"known": known, "auto_activate": auto, "locked": locked is True, "files": digests}
        config = {"functions": texts, "known": known, "auto_activate": auto, "locked": locked is True}
        self._add(
            "functions",
            where,
            kind="plugin",
            run="functions",
            config=config,
            declared=declared,
            extra={"files": paths, "texts": list(texts)},
        )

    def _words(self, key: str) -> list[str]:
        value = self.data.get(key)
        if value is None:
            return []
        if not isinstance(value, list):
            self._problem((key,), f"{key} is no list, and has no effect", f"Write '{key}: [name]'.")
            return []
        words = []
        for index, word in enumerate(value):
            if isinstance(word, str) and word:
                words.append(word)
            else:
                self._problem(
                    (key, index), "expected the name of a function", "Delete it, or put it in quotes."
                )
        return words

    # -- hooks.custom ---------------------------------------------------------------------------------

    def _custom(self, path: Path, raw: Any) -> None:
        if self.source.spoiled(path) or roles.is_ours(raw):
            return
        if not isinstance(raw, dict):
            self._problem(path, "expected a hook", "Write '- name: ...' with 'events:' and 'module:'.")
            return
        data: dict[str, Any] = roles.interpolated(raw, agent_environ())
        self._unknown(path, raw, HOOK)
        # Whoever lists hooks and problems sees the words as written: a file that nobody trusts must not have
        # the environment printed.
        name = raw.get("name")
        if not isinstance(name, str) or not name.strip():
            name = f"hook-{path[-1]}"
            self._warn(path, f"the hook has no name; it is called {name}", "Add 'name: ...'.", key=False)
        events = self._events(path, data.get("events"), raw.get("events"))
        module = data.get("module")
        if not isinstance(module, str) or not module.strip() or "\0" in module:
            self._problem(path, f"the hook {name} has no module, and never runs", "Add 'module: hooks/x.py'.")
            return
        phase = data.get("phase")
        if phase is not None and phase not in PHASES:
            given = raw["phase"]
            cause = f"the phase {given!r} is none{did_you_mean(str(given), PHASES)}, so the hook {name} never runs"
            self._problem((*path, "phase"), cause, "Write before or after.")
            return
        if not events:
            return
        config = data.get("config")
        if config is not None and not isinstance(config, dict):
            self._problem((*path, "config"), "expected a mapping", "Write 'key: value' below it.")
            config = None
        if name in self.names:
            self._warn(path, f"another hook is called {name}, too; both run", "Rename one.", key=False)
        tools, types = self._filter(path, data.get("filter"))
        functions = "functions" if self.alone else f"{self.role}/functions"
        kind, base = _kind_and_base(module, self.file.base_dir, self.file.extra["project"])
        self._add(
            name,
            path,
            kind=kind,
            run=module,
            base_dir=base,
            timings=[TIMING_OF[event] for event in events],
            config=dict(raw.get("config") or {}) if config is not None else {},
            declared=raw,
            options={
                "phase": phase or "after",
                "priority": self._priority((*path, "priority"), raw.get("priority")),
                "condition": _condition(tools, types),
            },
            extra={
                "name": roles.interpolated(name, agent_environ()),
                "events": events,
                "functions": functions,
                "tools": tools,
                "types": types,
            },
        )

    def _events(self, path: Path, given: Any, raw: Any) -> list[str]:
        where = (*path, "events")
        if not isinstance(given, list) or not given:
            what = "no events" if given in (None, []) else "events that are no list"
            self._problem(
                path, f"the hook has {what}, and never runs", "Write 'events: [tool.execute.after]', say."
            )
            return []
        events = []
        for index, event in enumerate(given):
            if isinstance(event, str) and event in TIMING_OF:
                if event not in events:
                    events.append(event)
                continue
            word = raw[index]
            near = did_you_mean(str(word), TIMING_OF)
            cause = f"unknown event {word!r}{near}, at which the hook never runs"
            self._problem((*where, index), cause, f"Known are {', '.join(TIMING_OF)}.")
        return events

    def _priority(self, path: Path, given: Any) -> int:
        if given is None:
            return PRIORITY
        if isinstance(given, (int, float)) and not isinstance(given, bool) and abs(given) < 1e9:
            if given != int(given):
                self._warn(
                    path,
                    f"the priority {given} counts as {int(given // 1)}",
                    "Write a whole number.",
                    key=False,
                )
            return int(given // 1)
        cause = f"the priority {given!r} is no number; {PRIORITY} counts"
        self._problem(path, cause, "Write a number; lower runs earlier.")
        return PRIORITY

    def _filter(self, path: Path, given: Any) -> tuple[list[str] | None, list[str] | None]:
        where = (*path, "filter")
        if given is None:
            return None, None
        if not isinstance(given, dict):
            self._problem(
                where, "expected a mapping; the hook is not filtered", "Write 'tools: [write]', say."
            )
            return None, None
        self._unknown(where, given, ("tools", "eventTypes"))
        found: list[list[str] | None] = []
        for key in ("tools", "eventTypes"):
            value = given.get(key)
            if value is not None and not (isinstance(value, list) and all(isinstance(i, str) for i in value)):
                self._problem(
                    (*where, key), "expected a list of names; it does not filter", "Write [write, edit]."
                )
                value = None
            found.append(value)
        return found[0], found[1]


def _kind_and_base(module: str, role_dir: str, project: str) -> tuple[str, str]:
    """Return the kind of a module, and the folder where its path starts: the role's own, else the project's."""
    from ...runners.node.module import ENDINGS

    kind = "javascript" if module.lower().endswith(ENDINGS) else "module"
    path = os.path.expanduser(module)
    if not os.path.isfile(os.path.join(role_dir, path)) and os.path.isfile(os.path.join(project, path)):
        return kind, project
    return kind, role_dir


def _literal(word: str) -> str:
    """Return a glob that matches this text only."""
    return re.sub(r"([*?\[])", r"[\1]", word)


def _condition(tools: list[str] | None, types: list[str] | None) -> Callable[[Any], str]:
    """Return the filter of a hook: why an event does not concern it, or an empty string."""

    def why_not(event: Any) -> str:
        timing = event.timing
        if timing in ("pre_tool_execution", "post_tool_execution"):
            if timing == "post_tool_execution" and event.status in NOT_RUN:
                return f"the call was not executed: {event.status}"
            if tools is not None and event.tool and not _meant(tools, event):
                return f"filter.tools: {event.tool} is none of {', '.join(tools)}"
        elif timing == "on_event" and types is not None and event.type and event.type not in types:
            return f"filter.eventTypes: {event.type} is none of {', '.join(types)}"
        return ""

    return why_not


NOT_RUN = ("denied", "replied", "cancelled")
"""Statuses of calls whose tool never ran: ``tool.execute.after`` is not about them."""


def _meant(tools: list[str], event: Any) -> bool:
    """Tell whether a filter means a call's tool: by its exact name, at another agent's tools also by kind or spelling."""
    from .tools import TOOLS

    tool: str = event.tool
    if tool in tools:
        return True
    if tool in TOOLS:
        return False
    return event.kind in tools or plain_name(tool) in map(plain_name, tools)
