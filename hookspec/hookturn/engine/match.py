"""Which hooks and which permission rules concern an event: globs over tool names, kinds, agents and texts."""

from __future__ import annotations

from ..spec.errors import AnswerError
from ..spec.tools import KINDS

TYPE_CHECKING = False
if TYPE_CHECKING:
    import re
    from collections.abc import Iterable
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
    """

    __slots__ = ("agents", "event_types", "tools")

    def __init__(
        self,
        tools: tuple[str, ...] | None = None,
        agents: tuple[str, ...] | None = None,
        event_types: tuple[str, ...] | None = None,
    ) -> None:
        self.tools = tools
        self.agents = agents
        self.event_types = event_types

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
        return ""


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
        if not self.concerns(event):
            return False
        if self.pattern is None or self.pattern == "*":
            return True
        if event.command:
            from .shell import split

            line = split(event.command)
            if every:
                return (
                    line.complete
                    and bool(line.commands)
                    and all(
                        # "*" matches any text, but who allows "git *" does not mean "git log > ~/.bashrc".
                        (not command.writes or ">" in self.pattern)
                        and any(glob_match(self.pattern, form) for form in command.exact)
                        for command in line.commands
                    )
                )
            texts = [event.command, *(form for command in line.commands for form in command.forms)]
            return any(glob_match(self.pattern, text) for text in texts)
        groups = _texts(event)
        if every:
            return bool(groups) and all(
                any(glob_match(self.pattern, form) for form in forms) for forms in groups
            )
        return any(glob_match(self.pattern, form) for forms in groups for form in forms)

    def __repr__(self) -> str:
        return f"Rule({self.text!r})"


def _texts(event: ToolEvent) -> list[list[str]]:
    """The texts that a rule's pattern is tried on, each with its other spellings."""
    if event.urls:
        return [[url] for url in event.urls]
    groups = []
    for path in event.paths:
        forms = [path]
        if event.cwd and path.startswith(event.cwd.rstrip("/") + "/"):
            forms.append(path[len(event.cwd.rstrip("/")) + 1 :])
        groups.append(forms)
    if groups:
        return groups
    return [[text] for text in event.args.values() if isinstance(text, str)]


def check_tool_pattern(pattern: str) -> str:
    """Return what is wrong with a ``tools:`` pattern, or an empty string.

    A permission rule where a tool pattern belongs never matches anything.
    """
    if "(" in pattern:
        return f"{pattern!r} is a permission rule; a tools pattern is a tool's name, a glob or one of {', '.join(KINDS)}"
    return ""
