"""Which hooks and which permission rules concern an event: globs over tool names, kinds, agents and texts."""

from __future__ import annotations

from ..spec.errors import AnswerError
from ..spec.tools import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Callable, Iterable
    from typing import Any

    from ..spec.events import Event, ToolEvent

_regex: dict[str, re.Pattern[str]] = {}


def glob_match(pattern: str, text: str) -> bool:
    """Match the whole text, case counting; ``*`` is any text (line ends too), ``?`` one character, ``[...]`` a set."""
    if pattern == text or pattern == "*":
        return True
    compiled = _regex.get(pattern)
    if compiled is None:
        import re
        from fnmatch import translate

        if len(_regex) > 2000:  # patterns come from configuration; the bound is for generated ones
            _regex.clear()
        compiled = _regex[pattern] = re.compile(translate(pattern))
    return compiled.match(text) is not None


def tool_match(patterns: Iterable[str], event: ToolEvent) -> bool:
    """Whether a pattern matches the tool's own name or its kind."""
    name, kind = event.tool, event.kind
    return any(pattern == kind or glob_match(pattern, name) for pattern in patterns)


class Filter:
    """The conditions of one hook; built once with the plan, asked for each event.

    Parameters:
        tools: names, kinds or globs; for tool events only.
        agents: names or globs of the agent.
        event_types: exact types or globs; for ``on_event`` only.
        condition: another agent's own matcher: gets the event and returns why it does not concern the hook,
            or an empty string when it does.
    """

    __slots__ = ("agents", "condition", "event_types", "tools")

    def __init__(
        self,
        tools: tuple[str, ...] | None = None,
        agents: tuple[str, ...] | None = None,
        event_types: tuple[str, ...] | None = None,
        condition: Callable[[Event], str] | None = None,
    ) -> None:
        self.tools = tools
        self.agents = agents
        self.event_types = event_types
        self.condition = condition

    def why_not(self, event: Event) -> str:
        """Return why the event does not concern the hook, or an empty string when it does."""
        if self.tools is not None:
            tool_event: Any = event
            if hasattr(event, "tool") and "args" in event._fields and not tool_match(self.tools, tool_event):
                return f"tools: {tool_event.tool} ({tool_event.kind}) is none of {', '.join(self.tools)}"
        if self.agents is not None and not any(glob_match(pattern, event.agent) for pattern in self.agents):
            return f"agents: {event.agent} is none of {', '.join(self.agents)}"
        if (
            self.event_types is not None
            and event.timing == "on_event"
            and not any(glob_match(pattern, event.type) for pattern in self.event_types)
        ):
            return f"event_types: {event.type} is none of {', '.join(self.event_types)}"
        return self.condition(event) if self.condition is not None else ""


class Rule:
    """One permission rule: ``name-or-kind`` or ``name-or-kind(text pattern)``.

    Parameters:
        text: the rule as written.

    Raises:
        AnswerError: when it cannot be read, saying why.
    """

    __slots__ = ("pattern", "source", "text", "tool")

    def __init__(self, text: str, source: str = "") -> None:
        self.text = text
        self.source = source
        self.pattern: str | None = None
        self.tool = text.strip()
        if not self.tool:
            raise AnswerError("an empty permission rule matches nothing; write a tool, a kind or '*'")
        if self.tool.endswith(")") and "(" in self.tool:
            self.tool, _, rest = self.tool.partition("(")
            self.tool, self.pattern = self.tool.strip(), rest[:-1]
            if not self.tool:
                raise AnswerError(f"permission rule {text!r} needs a tool or a kind before the bracket")
        elif "(" in self.tool or ")" in self.tool:
            raise AnswerError(f"permission rule {text!r} has an unclosed bracket")

    def concerns(self, event: ToolEvent) -> bool:
        """Whether the rule speaks of this tool at all."""
        return tool_match((self.tool,), event)

    def hits(self, event: ToolEvent, *, every: bool) -> bool:
        """Whether the rule matches the call.

        Parameters:
            event: the call.
            every: all texts must match (always_allow), else one is enough (deny, ask).
        """
        if every:
            return covering((self,), event) is not None
        if not self.concerns(event):
            return False
        if self.pattern is None or self.pattern == "*":
            return True
        return any(glob_match(self.pattern, text) for text in _texts(event))

    def covers(self, part: _Part) -> bool:
        """Whether the rule allows one part of a call: a simple command, a path, a URL, a text."""
        pattern = self.pattern or "*"
        if part.writes and ">" not in pattern:
            return False  # who allows "git *" does not mean "git log > ~/.bashrc"
        return any(glob_match(pattern, form) for form in part.forms)

    def __repr__(self) -> str:
        return f"Rule({self.text!r})"


def covering(rules: Iterable[Rule], event: ToolEvent) -> Rule | None:
    """Return a rule of those that together cover a call (always_allow), or None when a part is not covered.

    Parameters:
        rules: the rules.
        event: the call: each simple command of a shell line, each path, each URL must match one of them.
    """
    concerned = [rule for rule in rules if rule.concerns(event)]
    if not concerned:
        return None
    for rule in concerned:
        if rule.pattern is None or rule.pattern == "*":
            return rule
    parts = _parts(event)
    first: Rule | None = None
    for part in parts or ():
        rule_of_part = next((rule for rule in concerned if rule.covers(part)), None)
        if rule_of_part is None:
            return None
        first = first or rule_of_part
    return first


class _Part:
    """One part of a call, with its spellings."""

    __slots__ = ("forms", "writes")

    def __init__(self, forms: list[str], writes: bool = False) -> None:
        self.forms = forms
        self.writes = writes


def _texts(event: ToolEvent) -> list[str]:
    """The texts of which one is enough for a deny or ask rule."""
    texts = []
    if event.command:
        from .shell import split

        texts.append(event.command)
        texts += [form for command in split(event.command).commands for form in command.forms]
    return texts + [form for part in _places(event) for form in part.forms]


def _parts(event: ToolEvent) -> list[_Part] | None:
    """The parts that must all be covered, or None when they cannot be told."""
    parts = []
    if event.command:
        from .shell import split

        line = split(event.command)
        if not line.complete:
            return None
        parts = [_Part(command.exact, command.writes) for command in line.commands]
    return parts + _places(event)


def _places(event: ToolEvent) -> list[_Part]:
    """What a call names besides a command: URLs and paths; without any view all its texts."""
    parts = [_Part([url]) for url in event.urls]
    folder = event.cwd.rstrip("/") + "/" if event.cwd else ""
    for path in event.paths:
        inside = folder and path.startswith(folder)
        parts.append(_Part([path, path[len(folder) :]] if inside else [path]))
    if not parts and not event.command:
        parts = [_Part([text]) for text in strings(event.args)]
    return parts


def strings(value: Any) -> Iterable[str]:
    """Yield every text in JSON-like data, but keys."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from strings(item)


def check_tool_pattern(pattern: str) -> str:
    """Return what is wrong with a ``tools:`` pattern, or an empty string.

    A permission rule where a tool pattern belongs never matches anything.
    """
    if "(" in pattern:
        return f"{pattern!r} is a permission rule; a tools pattern is a tool's name, a glob or one of {', '.join(KINDS)}"
    return ""
