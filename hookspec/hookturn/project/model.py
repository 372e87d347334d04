"""What a configuration file says, checked and typed. A bad entry costs only itself and leaves a problem.

The format, with every key (all are optional; a hook needs ``name``, ``run`` and, for an answer, ``timings``)::

    mode: enforce                  # or monitor: this file's hooks are recorded without effect
    autoload: true                 # false: of the installed plugins only those named below are loaded
    max_continue: 8                # how often in a row a turn may be made to go on
    hooks:
      - name: no-force-push
        timings: [pre_tool_execution]
        run: {command: [python3, hooks/no_force_push.py]}     # or {module: hooks/x.py}, {answer: {deny: "Open a PR."}}
        filter: {tools: [bash, "mcp__git__*"], agents: ["*"], event_types: []}
        phase: before              # or after
        priority: 10               # lower runs earlier; default 50
        timeout: 5                 # seconds
        guard: true                # last, on the rewritten event, fails closed
        on_failure: ignore         # or deny
        mode: enforce              # or monitor
        enabled: true              # false switches off the hook of this name in a lower layer
        config: {branch: main, token: {env: TOKEN}}
    plugins:
      audit-log: {path: .hookturn/audit.jsonl}      # or true, false
      org-guard: {required: true, version: ">=2"}
    permissions: {always_allow: [read], ask: [], deny: ["bash(rm -rf *)"]}
    webhooks:                      # in the user's own and the managed file only
      allow: ["127.0.0.1:8080"]    # where webhooks may connect to beside public addresses
      proxy: http://proxy:3128     # for all webhooks
"""

from __future__ import annotations

from ..engine.match import Rule, check_tool_pattern
from ..runners.entry import KINDS, HookEntry
from ..spec.errors import AnswerError, did_you_mean
from ..spec.record import Record
from ..spec.timings import TIMINGS
from ..spec.tools import KINDS as TOOL_KINDS
from ..spec.tools import USUAL
from .problems import kind_of, show

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from typing import Any

    from ..spec.timings import Timing
    from .document import Document
    from .problems import Path, Problem

    Check = Callable[[Path, Any], bool]

TOP = ("hooks", "plugins", "permissions", "mode", "autoload", "max_continue", "dialects", "webhooks")
HOOK = (
    "name", "timings", "run", "filter", "phase", "priority", "timeout", "guard", "config", "on_failure", "mode",
    "enabled",
)  # fmt: skip
FILTER = ("tools", "agents", "event_types")
PERMISSIONS = ("always_allow", "ask", "deny")
MODES = ("enforce", "monitor")

LONGEST_NAME = 200


class PluginEntry(Record):
    """One line of a file's ``plugins:`` table.

    Parameters:
        name: as written; see ``normal`` for comparing.
        enabled: False for ``name: false``.
        settings: what the plugin's Config gets, secrets still references.
        required: the plugin must be there and work, and cannot be switched off.
        version: versions that will do, such as ``>=2``, or "".
        mode: enforce or monitor for all its hooks, or "" for its own.
        layer: managed, user or project.
        file, line, column: where it is declared.
    """

    name: str
    enabled: bool = True
    settings: dict[str, Any] = {}
    required: bool = False
    version: str = ""
    mode: str = ""
    layer: str = "project"
    file: str = ""
    line: int = 0
    column: int = 0

    @property
    def source(self) -> str:
        """Where it was declared, such as ``hookturn.yaml:12``."""
        return f"{self.file}:{self.line}"


class UnreadGuard(Record):
    """A hook that must fail closed and could not be read, so that it is not in force.

    Parameters:
        name: its name, or where it stands.
        timings: those of its timings that there are; empty for all that can deny.
        filters: its filter, as far as it can be read.
        cause, remedy: what is wrong with it.
        source: file and line.
    """

    name: str
    timings: list[str]
    filters: dict[str, Any]
    cause: str
    remedy: str
    source: str


class Model:
    """A configuration file, checked.

    Attributes:
        document: the file.
        layer: managed, user or project.
        base_dir: the folder that relative paths start from.
        settings: mode, autoload, max_continue and dialects, those that are given.
        plugins: the plugins table by normalised name.
        rules: permission rules by kind (always_allow, ask, deny).
        network: what its ``webhooks:`` says: allow and proxy, those that are given.
        hooks: the configured hooks in order, once ``read_hooks`` ran.
        unread_guards: entries that must fail closed and have mistakes.
        problems: all that is wrong with the file.
    """

    def __init__(self, document: Document, layer: str, base_dir: str) -> None:
        self.document = document
        self.layer = layer
        self.base_dir = base_dir
        self.settings: dict[str, Any] = {}
        self.plugins: dict[str, PluginEntry] = {}
        self.rules: dict[str, list[Rule]] = {kind: [] for kind in PERMISSIONS}
        self.network: dict[str, Any] = {}
        self.hooks: list[HookEntry] = []
        self.unread_guards: list[UnreadGuard] = []
        self.problems: list[Problem] = list(document.problems)

    def problem(self, path: Path, cause: str, remedy: str = "", **how: Any) -> None:
        """Add a problem at a place of the document."""
        self.problems.append(self.document.problem(path, cause, remedy, **how))


def normal(name: str) -> str:
    """Return a plugin's name for comparing: case and ``-``, ``_``, ``.`` do not count. Source: PEP 503."""
    return "-".join(_filled(name.replace("_", "-").replace(".", "-").split("-"))).lower()


def _filled(parts: list[str]) -> list[str]:
    """Return the parts without the empty ones that runs of separators leave between others."""
    return [part for at, part in enumerate(parts) if part or at in (0, len(parts) - 1)]


def read_model(document: Document, layer: str, base_dir: str) -> Model:
    """Check everything of a file but its hooks (their timings may come from plugins: see ``read_hooks``)."""
    model = Model(document, layer, base_dir)
    data = document.data
    for key in data:
        if key not in TOP:
            remedy = "A hook's keys belong into an entry below 'hooks:'." if key in HOOK else ""
            _unknown(model, (key,), TOP, remedy)
    _settings(model, data)
    _plugins(model, data.get("plugins"))
    _permissions(model, data.get("permissions"))
    if data.get("webhooks") is not None:
        from .webhooks import read_network

        model.network = read_network(model, data["webhooks"])
    return model


def _unknown(model: Model, path: Path, known: Iterable[str], remedy: str = "") -> None:
    """Add the problem of a key that nobody reads."""
    key = str(path[-1])
    near = did_you_mean(key, known)
    remedy = remedy or ("Correct it." if near else f"Known are {', '.join(known)}.")
    model.problem(path, f"unknown key {show(key)}{near}", remedy, key=True)


def _belongs(key: str) -> str:
    """Return where a key of another level of a hook belongs, as a remedy, or an empty string."""
    if key in FILTER:
        return "Move it below 'filter:'."
    if key in KINDS:
        return "Indent it below 'run:'."
    from ..runners.answer import KEYS

    if key in KEYS:
        return "Indent it below 'answer:', and that below 'run:'."
    return ""


def _settings(model: Model, data: Mapping[str, Any]) -> None:
    checks: dict[str, Check] = {
        "mode": lambda path, value: _choice(model, path, value, MODES),
        "autoload": lambda path, value: _bool(model, path, value),
        "max_continue": lambda path, value: _whole(model, path, value, lowest=0),
        "dialects": lambda path, value: True,
    }
    for key, check in checks.items():
        if key in data and not model.document.spoiled((key,)) and check((key,), data[key]):
            model.settings[key] = data[key]


def _bool(model: Model, path: Path, value: object) -> bool:
    if isinstance(value, bool):
        return True
    words = {"yes": "true", "on": "true", "y": "true", "no": "false", "off": "false", "n": "false"}
    word = words.get(value.lower()) if isinstance(value, str) else None
    if word:
        model.problem(path, f"expected true or false, got the text {show(value)}", f"Write {word}.")
    else:
        model.problem(path, f"expected true or false, got {_got(value)}", "Write true or false.")
    return False


def _choice(model: Model, path: Path, value: object, choices: Iterable[str]) -> bool:
    choices = tuple(choices)
    if isinstance(value, str) and value in choices:
        return True
    near = did_you_mean(value, choices) if isinstance(value, str) else ""
    model.problem(
        path, f"expected {' or '.join(choices)}, got {_got(value)}{near}", f"Write {choices[0]}, say."
    )
    return False


def _whole(model: Model, path: Path, value: object, lowest: int | None = None) -> bool:
    if isinstance(value, int) and not isinstance(value, bool) and (lowest is None or value >= lowest):
        return True
    bound = "" if lowest is None else f" from {lowest}"
    remedy = f"Write {lowest or 0} or more." if lowest is not None else "Write a whole number, such as 10."
    if isinstance(value, str) and value.strip().lstrip("+-").isdecimal():
        remedy = "Write it without quotes."
    model.problem(path, f"expected a whole number{bound}, got {_got(value)}", remedy)
    return False


def _got(value: object) -> str:
    """What a wrong value is: itself where it is short, else its kind."""
    if isinstance(value, (list, dict)) or value is None:
        return kind_of(value)
    return show(value)


def _name(model: Model, path: Path, value: object) -> str:
    """Return a name if it is one, else an empty string and a problem."""
    if not isinstance(value, str):
        model.problem(path, f"a name must be a text, got {kind_of(value)}", "Write a short word.")
    elif not value.strip():
        model.problem(path, "the name is empty", "Write a short word that says what it does.")
    elif len(value) > LONGEST_NAME:
        model.problem(path, f"the name {show(value)} is longer than {LONGEST_NAME} characters", "Shorten it.")
    elif not value.isprintable():
        model.problem(path, f"the name {show(value)} holds characters that cannot be printed", "Delete them.")
    else:
        return value
    return ""


def _words(model: Model, path: Path, value: object) -> list[str] | None:
    """Return a list of texts (one text alone will do), or None and a problem."""
    if isinstance(value, str):
        value = [value]
        single = True
    else:
        single = False
    if not isinstance(value, list):
        model.problem(path, f"expected a list of texts, got {_got(value)}", "Write [one, two].")
        return None
    for index, item in enumerate(value):
        if not isinstance(item, str) or not item.strip():
            place = path if single else (*path, index)
            if isinstance(item, str):
                model.problem(place, "expected a text, got an empty one", "Write a name, or take it out.")
                return None
            remedy = "Put it into quotes if it is meant as a text."
            model.problem(place, f"expected a text, got {kind_of(item)}", remedy)
            return None
    return list(value)


# -- plugins ----------------------------------------------------------------------------------------


def _plugins(model: Model, table: object) -> None:
    if table is None:
        return
    if not isinstance(table, dict):
        model.problem(
            ("plugins",), f"expected a mapping of names, got {kind_of(table)}", "Write 'name: true' below it."
        )
        return
    for name, value in table.items():
        path = ("plugins", name)
        if model.document.spoiled(path) or not _name(model, path, name):
            continue
        key = normal(name)
        if key in model.plugins:
            first = model.plugins[key]
            model.problem(
                path,
                f"{show(name)} is the same plugin as {show(first.name)} in line {first.line}",
                "Keep one of them; this one is ignored.",
                key=True,
            )
            continue
        entry = _plugin(model, path, name, value)
        if entry is not None:
            model.plugins[key] = entry


def _plugin(model: Model, path: Path, name: str, value: object) -> PluginEntry | None:
    line, column = model.document.at(path, key=True)
    place: dict[str, Any] = {
        "layer": model.layer,
        "file": model.document.file,
        "line": line,
        "column": column,
    }
    if value is None or isinstance(value, bool):
        return PluginEntry(name=name, enabled=value is not False, **place)
    if not isinstance(value, dict):
        model.problem(
            path,
            f"expected true, false or settings, got {_got(value)}",
            "Write 'true', 'false' or a mapping.",
        )
        return None
    settings = dict(value)
    control: dict[str, Any] = {}
    for key in ("enabled", "required"):
        if key in settings:
            control[key] = settings.pop(key)
            if not _bool(model, (*path, key), control[key]):
                return None
    if "mode" in settings and settings["mode"] in MODES:
        control["mode"] = settings.pop("mode")
    if "version" in settings:
        from .versions import check_spec

        control["version"] = version = settings.pop("version")
        wrong = check_spec(version)
        if wrong:
            model.problem((*path, "version"), wrong, 'Write a comparison in quotes, such as ">=2".')
            return None
    if control.get("enabled") is False and control.get("required"):
        model.problem(
            path, "a required plugin cannot be switched off", "Drop one of 'enabled' and 'required'."
        )
        return None
    return PluginEntry(name=name, settings=settings, **control, **place)


# -- permissions ------------------------------------------------------------------------------------


def _permissions(model: Model, table: object) -> None:
    if table is None:
        return
    if not isinstance(table, dict):
        model.problem(
            ("permissions",),
            f"expected a mapping, got {kind_of(table)}",
            "Write lists of rules under always_allow, ask and deny.",
        )
        return
    for kind, rules in table.items():
        path = ("permissions", kind)
        if kind not in PERMISSIONS:
            _unknown(model, path, PERMISSIONS)
            continue
        if isinstance(rules, str):
            rules = [rules]
        if not isinstance(rules, list):
            model.problem(path, f"expected a list of rules, got {_got(rules)}", 'Write ["bash(rm *)", read].')
            continue
        for index, text in enumerate(rules):
            place = (*path, index)
            if not isinstance(text, str):
                remedy = 'Put the rule in "quotes".'
                model.problem(place, f"a rule must be a text, got {kind_of(text)}", remedy)
                continue
            line, _ = model.document.at(place)
            try:
                rule = Rule(text, f"{model.document.file}:{line}")
            except AnswerError as error:
                remedy = "Write a tool, a kind, or tool(pattern)."
                if text.count("(") != text.count(")"):
                    remedy = 'Put the whole rule in "quotes": a comma ends one without them.'
                model.problem(place, str(error), remedy)
                continue
            model.rules[kind].append(rule)
            _doubtful_tool(model, place, rule.tool, is_rule=True)
            if rule.tool.lower() == "bash" and rule.pattern and rule.pattern.endswith(":*"):
                # Claude Code's spelling of "begins with".
                meant = f"bash({rule.pattern[:-2]} *)"
                cause = f"{show(rule.pattern)} is matched as text, colon and all (did you mean {meant!r}?)"
                model.problem(place, cause, "Write a glob over the command line.", severity="warning")


def _doubtful_tool(model: Model, place: Path, pattern: str, *, is_rule: bool) -> None:
    """Warn of a tool's name that probably matches nothing: a misspelt kind, or a rule in another form.

    Parameters:
        place: where it stands.
        pattern: a tool's name, a kind or a glob.
        is_rule: it is the tool of a permission rule, which may have a pattern in brackets behind it.
    """
    what, remedy = "", "If a tool has this very name, all is well."
    word, mark, rest = pattern.partition(":")
    if not mark:
        word, mark, rest = pattern.partition(" ")
    if mark:
        what = f"the tool {show(pattern)} has a {'colon' if mark == ':' else 'blank'} in its name"
        if is_rule and word.lower() in TOOL_KINDS:
            text = rest.strip() if word.lower() != "bash" or "*" in rest else f"{rest.strip()} *"
            what += f" (did you mean {f'{word.lower()}({text})'!r}?)"
    elif pattern in TOOL_KINDS:
        return
    elif pattern.lower() in TOOL_KINDS:
        kind = pattern.lower()
        what = f"{show(pattern)} is only a tool of exactly this name (did you mean {kind!r}?)"
        remedy = f"Write {kind} to mean such a tool of any agent."
    elif pattern.lower() not in USUAL and not any(c in pattern for c in "*?["):
        near = next((kind for kind in TOOL_KINDS if _one_edit(pattern.lower(), kind)), "")
        if near:
            what = f"{show(pattern)} is no kind of tool (did you mean {near!r}?)"
    if what:
        model.problem(place, what, remedy, severity="warning")


def _one_edit(word: str, other: str) -> bool:
    """Tell whether one letter more, less, other or in its neighbour's place makes one word of the other."""
    if abs(len(word) - len(other)) > 1 or word == other:
        return False
    start = 0
    while word[start : start + 1] == other[start : start + 1]:
        start += 1
    a, b = word[start:], other[start:]
    return a[1:] == b[1:] or a[1:] == b or a == b[1:] or (a[:2] == b[1::-1] and a[2:] == b[2:])


# -- hooks ------------------------------------------------------------------------------------------


def read_hooks(model: Model, timings: Mapping[str, Timing] = TIMINGS) -> None:
    """Check the file's hooks into ``model.hooks``.

    Parameters:
        model: the file, as ``read_model`` returned it.
        timings: every timing there is, those of plugins included.
    """
    hooks = model.document.data.get("hooks")
    if hooks is None:
        return
    if not isinstance(hooks, list):
        model.problem(
            ("hooks",), f"expected a list, got {kind_of(hooks)}", "Begin each hook with '- name: ...'."
        )
        return
    first: dict[str, HookEntry] = {}
    for index, data in enumerate(hooks):
        path = ("hooks", index)
        known = len(model.problems)
        entry = None if model.document.spoiled(path) else _Hook(model, path, timings).read(data)
        if entry is not None and entry.name in first:
            model.problem(
                (*path, "name"),
                f"a hook named {show(entry.name)} stands in line {first[entry.name].line} already",
                "Give one of them another name; this one is ignored.",
            )
            entry = None
        if entry is None:
            if isinstance(data, dict):
                _unread(model, path, data, timings, model.problems[known:])
            continue
        first[entry.name] = entry
        model.hooks.append(entry)


def _unread(
    model: Model, path: Path, data: dict[str, Any], known: Mapping[str, Timing], problems: list[Problem]
) -> None:
    """Remember an entry with mistakes that is to be a guard, or says that its failure denies."""
    if (
        not any(_closes(key, value) for key, value in data.items())
        or data.get("enabled") is False
        or data.get("mode") == MODES[1]
    ):
        return
    errors = [problem for problem in problems if problem.severity == "error"]
    line, _ = model.document.at(path)
    name, words, table = data.get("name"), data.get("timings"), data.get("filter")
    filters = {
        key: value
        for key, value in (table.items() if isinstance(table, dict) else ())
        if key in FILTER
        and isinstance(value, list)
        and value
        and all(isinstance(item, str) for item in value)
    }
    if "tools" in filters and any(check_tool_pattern(pattern) for pattern in filters["tools"]):
        del filters["tools"]
    model.unread_guards.append(
        UnreadGuard(
            name=name if isinstance(name, str) and name.strip() else f"hooks[{path[-1]}]",
            timings=[word for word in words if word in known] if isinstance(words, list) else [],
            filters=filters,
            cause=errors[0].cause if errors else "the file is wrong there",
            remedy=errors[0].remedy if errors else "Run `hookturn check`.",
            source=f"{model.document.file}:{line}",
        )
    )


def _closes(key: Any, value: Any) -> bool:
    """Tell whether a line of an entry with mistakes means that the hook fails closed: ``guard: yes``, ``gaurd: true``."""
    if key not in HOOK and isinstance(key, str):
        from difflib import get_close_matches

        key = next(iter(get_close_matches(key, HOOK, n=1, cutoff=0.6)), "")
    if key == "guard":
        return value is not False and str(value).lower() not in ("false", "no", "off")
    return key == "on_failure" and "deny" in str(value).lower()


class _Hook:
    """Reads one entry of ``hooks:``; all that is wrong with it is reported, not only the first thing."""

    def __init__(self, model: Model, path: Path, timings: Mapping[str, Timing]) -> None:
        self.model = model
        self.path = path
        self.known = timings
        self.options: dict[str, Any] = {}

    def read(self, data: object) -> HookEntry | None:
        model, path = self.model, self.path
        if not isinstance(data, dict):
            model.problem(path, f"a hook is a mapping, got {kind_of(data)}", "Begin it with '- name: ...'.")
            return None
        before = sum(problem.severity == "error" for problem in model.problems)
        for key in data:
            if key not in HOOK:
                _unknown(model, (*path, key), HOOK, _belongs(key))
        if "name" not in data:
            model.problem(path, "the hook has no name", "Add 'name:' with a short word.")
            name = ""
        else:
            name = _name(model, (*path, "name"), data["name"])
        enabled = data.get("enabled", True)
        if not _bool(model, (*path, "enabled"), enabled):
            enabled = True
        if enabled is False and "run" not in data and name:
            return self._entry(name, "", None, [], {}, enabled=False)
        self._options(data)
        self._filter(data.get("filter"))
        timings = self._timings(data)
        config = data.get("config")
        if config is not None and not isinstance(config, dict):
            model.problem(
                (*path, "config"), f"expected a mapping, got {_got(config)}", "Write 'key: value' below it."
            )
        kind, run = "", None
        if data.get("run") is not None or not any(key in data for key in KINDS):
            kind, run = self._run(data.get("run"), timings)
        if sum(problem.severity == "error" for problem in model.problems) > before or not kind:
            return None
        return self._entry(name, kind, run, timings or [], config or {}, enabled=enabled)

    def _entry(
        self, name: str, kind: str, run: Any, timings: list[str], config: dict[str, Any], *, enabled: bool
    ) -> HookEntry:
        line, column = self.model.document.at(self.path)
        return HookEntry(
            name=name,
            kind=kind,
            run=run,
            timings=timings,
            options=self.options,
            config=config,
            enabled=enabled,
            file=self.model.document.file,
            line=line,
            column=column,
            index=int(self.path[-1]),
            layer=self.model.layer,
            base_dir=self.model.base_dir,
        )

    def _options(self, data: Mapping[str, Any]) -> None:
        model, path = self.model, self.path
        checks: dict[str, Check] = {
            "phase": lambda where, value: _choice(model, where, value, ("before", "after")),
            "priority": lambda where, value: _whole(model, where, value),
            "timeout": self._timeout,
            "guard": lambda where, value: _bool(model, where, value),
            "on_failure": lambda where, value: _choice(model, where, value, ("ignore", "deny")),
            "mode": lambda where, value: _choice(model, where, value, MODES),
        }
        for key, check in checks.items():
            if key in data and check((*path, key), data[key]):
                self.options[key] = data[key]

    def _timeout(self, path: Path, value: object) -> bool:
        if isinstance(value, (int, float)) and not isinstance(value, bool) and 0 < value < 1e9:
            return True
        self.model.problem(path, f"expected seconds above 0, got {_got(value)}", "Write 5 or 0.5, say.")
        return False

    def _filter(self, table: object) -> None:
        model = self.model
        path = (*self.path, "filter")
        if table is None:
            return
        if not isinstance(table, dict):
            model.problem(path, f"expected a mapping, got {_got(table)}", "Write {tools: [bash]}.")
            return
        for key, value in table.items():
            place = (*path, key)
            if key not in FILTER:
                _unknown(model, place, FILTER)
                continue
            words = _words(model, place, value)
            if not words:  # an empty list sets no condition
                continue
            if key == "tools":
                for index, pattern in enumerate(words):
                    wrong = check_tool_pattern(pattern)
                    where = (*place, index) if isinstance(value, list) else place
                    if wrong:
                        model.problem(where, wrong, "Put such rules under 'permissions:'.")
                    else:
                        _doubtful_tool(model, where, pattern, is_rule=False)
            self.options[key] = words

    def _timings(self, data: Mapping[str, Any]) -> list[str] | None:
        model = self.model
        path = (*self.path, "timings")
        run = data.get("run")
        if "timings" not in data:
            if isinstance(run, dict) and "module" in run:
                return []
            model.problem(self.path, "the hook has no timings", "Add 'timings: [pre_tool_execution]', say.")
            return None
        value = data["timings"]
        words = _words(model, path, value)
        if words is None:
            return None
        if not words:
            model.problem(path, "the list of timings is empty", "Name one, such as pre_tool_execution.")
            return None
        good = []
        for index, word in enumerate(words):
            place = (*path, index) if isinstance(value, list) else path
            timing = self.known.get(word)
            if timing is None:
                near = did_you_mean(word, self.known)
                model.problem(
                    place,
                    f"unknown timing {show(word)}{near}",
                    "Use a timing's name, such as pre_tool_execution.",
                )
            elif word in good:
                model.problem(place, f"{word} is named twice", "Name it once.")
            elif self.options.get("guard") is True and not timing.can_deny:
                model.problem(
                    place,
                    f"a guard can stop nothing at {word}",
                    "Put it on a timing that takes deny or block, or drop 'guard: true'.",
                )
            else:
                good.append(word)
        return good if len(good) == len(words) else None

    def _run(self, run: object, timings: list[str] | None) -> tuple[str, Any]:
        model = self.model
        path = (*self.path, "run")
        if run is None:
            model.problem(self.path, "the hook has no 'run:'", "Add 'run: {module: hooks/x.py}', say.")
            return "", None
        if not isinstance(run, dict):
            model.problem(path, f"expected a mapping, got {_got(run)}", "Write {module: hooks/x.py}, say.")
            return "", None
        for key in run:
            if key not in KINDS:
                _unknown(model, (*path, key), KINDS, _belongs(key))
                return "", None
        if len(run) != 1:
            got = f"got {' and '.join(run)}" if run else "got none"
            model.problem(
                path, f"'run:' takes exactly one of {', '.join(KINDS)}; {got}", "Make it one hook each."
            )
            return "", None
        ((kind, value),) = run.items()
        place = (*path, kind)
        if kind == "command":
            return (kind, value) if self._command(place, value) else ("", None)
        if kind == "webhook":
            from .webhooks import check_observer, check_run

            right = check_run(model, place, value)
            if right and value.get("observe") is True:
                right = check_observer(model, place, self.options)
            return (kind, value) if right else ("", None)
        if kind in ("module", "javascript"):
            what, example = ("Python", "py") if kind == "module" else ("JavaScript", "js")
            if not isinstance(value, str) or not value.strip() or "\0" in value:
                cause = f"expected the path of a {what} file, got {_got(value)}"
                model.problem(place, cause, f"Write hooks/x.{example}, say.")
                return "", None
            return kind, value
        if timings is not None:
            from ..runners.answer import check

            wrong, remedy = check(
                value, [self.known[name] for name in timings], guard=self.options.get("guard") is True
            )
            if wrong:
                model.problem(place, wrong, remedy)
        return kind, value

    def _command(self, place: Path, value: object) -> bool:
        model = self.model
        remedy = "Write [python3, hooks/x.py], or one line for /bin/sh."
        if isinstance(value, str):
            if value.strip() and "\0" not in value:
                return True
            model.problem(place, "the shell line is empty or holds a NUL", remedy)
            return False
        if not isinstance(value, list) or not value:
            model.problem(place, f"expected a list of words or a shell line, got {_got(value)}", remedy)
            return False
        for index, word in enumerate(value):
            if not isinstance(word, str):
                model.problem(
                    (*place, index),
                    f"expected a text, got {_got(word)}",
                    "Put it into quotes if it is meant as a text.",
                )
                return False
            if "\0" in word or not (word.strip() or index):
                model.problem((*place, index), "the word is empty or holds a NUL", remedy)
                return False
        return True
