"""Functions: texts that ``|name|`` at the head of a message, or a role, puts into the system prompt for the session.

rolebox's ``functions/<name>.md`` become its settings; it works as well with texts
from hookturn.yaml.
"""

from __future__ import annotations

from hookturn import Inject, Rewrite, Warn, hookimpl

from .calls import parse

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from hookturn import Answer, Context
    from hookturn.events import Event, MessageReceived, SystemPrompt

    from .calls import Call

PRIORITY = 50
"""Of a function that has none; lower comes earlier in the system prompt."""

CALL, END = "function.activate", "function.deactivate"
"""Types of host events that call a function, or end one that is not locked."""


class Config:
    """Settings of functions.

    Attributes:
        functions: name -> ``{body, params, priority, requires, description}``; ``params`` holds defaults.
        known: names that may be called; others at the head of a message are left out. None: any name.
        auto_activate: functions that are called at the first message of a session.
        locked: whether those cannot be ended.
    """

    functions: dict[str, dict[str, Any]] = {}  # the settings are a copy of their own
    known: list[str] | None = None
    auto_activate: list[str] = []
    locked: bool = False

    def validate(self) -> None:
        """Refuse functions without a text.

        Raises:
            ValueError: naming the function.
        """
        for name, function in self.functions.items():
            body = function.get("body")
            if not isinstance(body, str) or not body.strip():
                raise ValueError(f"the function {name} needs a body: the text for the system prompt")
            for key, kind in (("params", dict), ("requires", list), ("priority", (int, float))):
                if key in function and not isinstance(function[key], kind):
                    raise ValueError(f"{key} of the function {name} is of the wrong kind")


class Functions:
    """The plugin; one object serves all sessions, whose active functions are in ``ctx.state``."""

    def __init__(self, config: Config) -> None:
        self.config = config

    @hookimpl
    def on_message_received(self, event: MessageReceived, ctx: Context) -> list[Answer] | None:
        """Call what the head of the message names, and what the role wants from the first message on."""
        answers: list[Answer] = []
        if self.config.auto_activate and not ctx.state.get("begun"):
            with ctx.state as values:
                first = not values.get("begun")
                values["begun"] = True
            if first:
                for name in self.config.auto_activate:
                    answers += self._activate(ctx, name, {}, locked=self.config.locked)
        calls, rest = parse(event.text)
        if calls:
            for call in self._known(calls):
                answers += self._activate(ctx, call.name, call.args)
            answers.append(Rewrite(rest))
        return answers or None

    @hookimpl(event_types=[CALL, END])
    def on_event(self, event: Event, ctx: Context) -> list[Answer] | None:
        """Call or end a function that a host names in ``properties.function``."""
        name = event.properties.get("function")
        if not isinstance(name, str):
            return None
        if event.type == END:
            self.deactivate(ctx, name)
            return None
        return self._activate(ctx, name, {}) or None

    @hookimpl
    def system_prompt(self, event: SystemPrompt, ctx: Context) -> list[Inject] | None:
        """Add the texts of the active functions: by priority, then in the order in which they were called."""
        active: dict[str, Any] = ctx.state.get("active") or {}
        texts = [
            (self.config.functions[name].get("priority", PRIORITY), self._text(name, state["args"]))
            for name, state in active.items()
            if name in self.config.functions and self._waits_for(name, active) == []
        ]
        texts.sort(key=lambda item: float(item[0]))
        return [Inject(text) for _, text in texts] or None

    def deactivate(self, ctx: Context, name: str) -> bool:
        """End a function; returns whether it was active and is not any more. A locked one stays."""
        with ctx.state as values:
            state = values.get("active", {}).get(name)
            if state is None or state["locked"]:
                return False
            del values["active"][name]
            self._phases(values["active"])
        return True

    def _known(self, calls: Iterable[Call]) -> list[Call]:
        known = self.config.known
        return [call for call in calls if known is None or call.name in known]

    def _activate(
        self, ctx: Context, name: str, args: dict[str, str], *, locked: bool = False
    ) -> list[Answer]:
        with ctx.state as values:
            active = values.setdefault("active", {})
            before = active.get(name, {})
            active[name] = {"args": args, "locked": locked or before.get("locked", False), "phase": "active"}
            self._phases(active)
        if name not in self.config.functions:
            return [Warn(f"The function {name} was called, but its text is not here, so it changes nothing.")]
        waits = self._waits_for(name, active)
        if waits:
            return [Warn(f"The function {name} waits for {', '.join(waits)}: call it, too.")]
        return []

    def _phases(self, active: dict[str, Any]) -> None:
        for name, state in active.items():
            state["phase"] = "gated" if self._waits_for(name, active) else "active"

    def _waits_for(self, name: str, active: dict[str, Any]) -> list[str]:
        """Return the functions that must be active, and are not, for this one to count."""
        requires = self.config.functions.get(name, {}).get("requires") or ()
        return [other for other in requires if other not in active]

    def _text(self, name: str, args: dict[str, str]) -> str:
        """Return a function's text with its parameters filled: by name, by place, by default."""
        function = self.config.functions[name]
        values = {}
        for place, (param, default) in enumerate((function.get("params") or {}).items()):
            value = args.get(param, args.get(f"_{place}", default))
            if value not in (None, ""):
                values[str(param)] = str(value)
        body: str = function["body"]
        if not values:
            return body
        import re

        # In one pass: a value that looks like another parameter stays as it is.
        names = "|".join(re.escape(word) for word in values)
        return re.sub(rf"\{{({names})\}}", lambda match: values[match[1]], body)


def plugin(config: Config) -> Functions:
    """Return the plugin (the entry point)."""
    return Functions(config)
