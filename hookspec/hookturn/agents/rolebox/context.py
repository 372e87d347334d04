"""The ``ctx`` of a role's hook: what role.yaml's hook modules expect, over hookturn's own."""

from __future__ import annotations

import re

from ...engine.capabilities import logger
from ...spec.answers import Deny, Recover

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...spec.answers import Answer
    from ...spec.events import Event

BEFORE, AFTER, TRANSFORM, EVENT = "tool.execute.before", "tool.execute.after", "system.transform", "event"

_TAG = re.compile(r"\s*<([A-Za-z_][\w.:-]*)(?:\s[^<>]*)?>")

_LEVELS = {"warn": "warning", "fatal": "critical", "silly": "trace"}


class Log:
    """loguru's logger of one hook, which also knows the level names of JavaScript's."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._logger: Any = None

    def __getattr__(self, name: str) -> Any:
        if self._logger is None:
            self._logger = logger(self._name)
        return getattr(self._logger, _LEVELS.get(name, name))


class RoleContext:
    """What one call of a hook may know and do. Names exist in camelCase and in snake_case.

    Parameters:
        name: the hook's name in role.yaml.
        config: its settings.
        log: its logger.
        event_name: the event as role.yaml calls it, or "" in on_load and on_dispose.
        event: hookturn's event, or None there.
        ctx: hookturn's ctx, or None there.
        phase: before or after.
        functions: name of the plugin that holds the state of the role's functions.
    """

    def __init__(
        self,
        name: str,
        config: Mapping[str, Any] | None,
        log: Any,
        *,
        event_name: str = "",
        event: Event | None = None,
        ctx: Any = None,
        phase: str = "after",
        functions: str = "",
    ) -> None:
        self.hook_name = self.hookName = name
        self.config = config
        self.log = log
        self.session_id = self.sessionID = event.session_id if event is not None else None
        self.agent = event.agent if event is not None else None
        self.system: list[Any] | None = None
        self.answers: list[Answer] = []
        self._event_name = event_name
        self._event = event
        self._ctx = ctx
        self._later = event_name == TRANSFORM and phase == "after"
        self._functions = functions

    def inject(self, text: str) -> None:
        """Add text to the session's next system prompt; nothing in on_load and on_dispose.

        A hook of the after phase of ``system.transform`` comes too late for the one that is being built.
        """
        if not isinstance(text, str):
            raise TypeError(f"inject() takes a str, got {type(text).__name__}")
        if self._ctx is None:
            return
        if self._later:
            with self._ctx.state as values:
                values.setdefault("later", []).append(text)
        else:
            self._ctx.inject(text)

    def skip(self, reason: str = "") -> None:
        """Refuse the tool call: a Deny with this reason. In ``tool.execute.before`` only."""
        if self._event_name != BEFORE:
            self.log.warning("skip() has no effect in {}: there is no call to refuse", self._where)
            return
        self.answers.append(Deny(_text(reason) or f"The hook {self.hook_name} refused this call."))

    def retry(self, reason: str = "", **config: Any) -> None:
        """Advise to try again: a Recover after a tool and in a host's event, before a tool a Deny that says so."""
        reason = _text(reason)
        if self._event_name == BEFORE:
            why = reason or f"The hook {self.hook_name} asks for another try."
            self.answers.append(Deny(why, advice="Correct the call and try again.", code="retry"))
            return
        if self._event_name == AFTER or (
            self._event_name == EVENT and self._event is not None and "Recover" in self._event.accepts
        ):
            self.answers.append(Recover("retry", **({"reason": reason} if reason else {}), **config))
        elif self._event_name == EVENT:
            self.inject(reason or f"Something failed, and the hook {self.hook_name} advises to try again.")
        else:
            self.log.warning("retry() has no effect in {}", self._where)

    @property
    def _where(self) -> str:
        return self._event_name or "on_load and on_dispose"

    # -- blocks of the system prompt ------------------------------------------------------------------

    def get_blocks(self) -> list[dict[str, str]]:
        """Return the parts of the system prompt, each ``{"tag", "content"}``; ``text`` for one without a tag.

        An empty list outside of ``system.transform``.
        """
        return [{"tag": _tag(part) or "text", "content": str(part)} for part in self.system or ()]

    def replace_block(self, tag: str, text: str) -> None:
        """Replace the part that begins with ``<tag>``, else a ``<tag>…</tag>`` inside of one."""
        self._change(tag, str(text))

    def remove_block(self, tag: str) -> None:
        """Remove the part that begins with ``<tag>``, else a ``<tag>…</tag>`` inside of one."""
        self._change(tag, None)

    def _change(self, tag: str, text: str | None) -> None:
        system = self.system
        if system is None:
            return
        for place, part in enumerate(system):
            if _tag(part) == tag:
                if text is None:
                    del system[place]
                else:
                    system[place] = text
                return
        element = re.compile(rf"<{re.escape(tag)}(?:\s[^<>]*)?>.*?</{re.escape(tag)}\s*>", re.S)
        for place, part in enumerate(system):
            if isinstance(part, str) and element.search(part):
                system[place] = element.sub(lambda _: text or "", part, count=1)
                return

    # -- state of others ------------------------------------------------------------------------------

    def get_function_state(self, name: str) -> dict[str, Any] | None:
        """Return ``{"name", "phase", "args", "locked"}`` of a function that was called in this session, or None."""
        state: dict[str, Any] | None = self.function_states().get(name)
        return state

    def function_states(self) -> dict[str, Any]:
        """Return the state of each function that was called in this session, by name."""
        if self._ctx is None or not self._functions:
            return {}
        for plugin in (self._functions, f"rolebox:{self._functions}"):
            active = self._ctx.state_of(plugin).get("active")
            if active:
                return {name: {"name": name, **state} for name, state in active.items()}
        return {}

    @property
    def env(self) -> Mapping[str, str]:
        """The agent's environment; an empty one in on_load and on_dispose."""
        return self._ctx.env if self._ctx is not None else {}

    def get_dispatch_state(self) -> dict[str, Any]:
        """Return ``{"activeTaskCount": 0, "tasks": []}``: rolebox's dispatch of sub-agents is not here."""
        return {"activeTaskCount": 0, "tasks": []}

    getBlocks = get_blocks
    replaceBlock = replace_block
    removeBlock = remove_block
    getFunctionState = get_function_state
    getDispatchState = get_dispatch_state


def _tag(part: Any) -> str:
    match = _TAG.match(part) if isinstance(part, str) else None
    return match[1] if match else ""


def _text(value: Any) -> str:
    return value.strip() if isinstance(value, str) else ""
