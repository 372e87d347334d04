"""How a command of a hooks.json is spoken to and understood, in both generations of AtomCode."""

from __future__ import annotations

import os

from ...runners.command import LONGEST_OUTER
from ...runners.wire import NoAnswer, Wire
from ...spec.answers import Allow, Ask, Block, Deny, Inject, Rewrite, Warn
from . import decisions, payload
from .matcher import TOOL_EVENTS, snake

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...runners.entry import HookEntry
    from ...runners.wire import Ended
    from ...spec.answers import Answer
    from ...spec.events import Event
    from ...spec.timings import Timing

CONTEXT = "ATOMCODE_HOOK_CONTEXT"
CONTEXT_FILE = "ATOMCODE_HOOK_CONTEXT_FILE"
"""The file with the context where it is too large for a variable."""


class JsonWire(Wire):
    """Generation 2: JSON on standard input, the last line of the output, exit code 2; and generation 1's variables."""

    longest_value = LONGEST_OUTER

    def request(self, entry: HookEntry, timing: Timing, event: Event, ctx: Any, config: Any) -> bytes:
        """Return AtomCode's JSON of the event."""
        several = bool(entry.extra.get("several"))
        data = payload.of_event(entry.extra["event"], event, ctx, several=several)
        return payload.dumps(data).encode("utf-8")

    def folder(self, entry: HookEntry, event: Event, ctx: Any) -> str:
        """Return the project's folder; where that is gone the hook still runs."""
        folder: str = ctx.project_dir
        return folder if os.path.isdir(folder) else os.getcwd()

    def environment(self, entry: HookEntry, timing: Timing, event: Event, ctx: Any) -> dict[str, str]:
        """Return the variables of both generations."""
        variables = {"ATOMCODE_PROJECT_DIR": ctx.project_dir, "CLAUDE_PROJECT_DIR": ctx.project_dir}
        return {**_plugin(entry), **variables, **self._old_variables(entry, event, ctx)}

    def over(self, environment: Mapping[str, str]) -> None:
        """Delete the file that held the context, if there was one."""
        path = environment.get(CONTEXT_FILE)
        if path:
            from contextlib import suppress

            with suppress(FileNotFoundError):  # the hook may have deleted it
                os.unlink(path)

    def _old_variables(self, entry: HookEntry, event: Event, ctx: Any) -> dict[str, str]:
        name = entry.extra["event"]
        tool = getattr(event, "tool", "") if name in TOOL_EVENTS else ""
        context = payload.dumps(payload.of_variable(name, event, ctx))
        variables = {"ATOMCODE_HOOK_EVENT": snake(name), "ATOMCODE_TOOL_NAME": tool, CONTEXT_FILE: ""}
        if len(CONTEXT) + len(context.encode("utf-8")) <= self.longest_value:
            return {**variables, CONTEXT: context}
        return {**variables, CONTEXT: "", CONTEXT_FILE: _in_file(context)}

    def answers(self, entry: HookEntry, timing: Timing, event: Event, ctx: Any, ended: Ended) -> list[Answer]:
        """Return what a command's end means.

        Raises:
            NoAnswer: it failed, or cannot be understood.
        """
        name = entry.extra["event"]
        if name == "PreToolUse":
            return self._before(event, ctx, ended)
        if name in ("PostToolUse", "PostToolUseFailure"):
            return self._after(ended)
        if name == "UserPromptSubmit":
            return self._prompt(event, ended)
        if name == "SessionStart":
            return self._start(ended)
        if ended.exit_code != 0:
            raise decisions.failed(ended)
        return []

    def _before(self, event: Event, ctx: Any, ended: Ended) -> list[Answer]:
        text, data = _read(ended)
        if data is None and ended.exit_code == 2:
            return [Deny(decisions.refusal_by_exit_code(ended, text, event))]
        said = decisions.decision(data or {})
        if not said.says_something:
            if ended.exit_code != 0:
                raise decisions.failed(ended, text)
            return []
        if said.context:
            ctx.inject(said.context)
        return tool_answers(said)

    def _after(self, ended: Ended) -> list[Answer]:
        data = decisions.find_object(decisions.text_of(ended)) or {}
        said = decisions.decision({key: value for key, value in data.items() if key != "action"})
        if not said.says_something and ended.exit_code != 0:
            raise decisions.failed(ended)
        answers: list[Answer] = []
        if said.output is not None:
            answers.append(Rewrite(result_text=said.output))
        if said.kind == "deny":
            answers.append(Inject(said.reason or decisions.NO_REASON))
        if said.context:
            answers.append(Inject(said.context))
        return answers

    def _prompt(self, event: Event, ended: Ended) -> list[Answer]:
        text, data = _read(ended)
        if data is None:
            if ended.exit_code == 2:
                return [Block(decisions.refusal_by_exit_code(ended, text, event))]
            if ended.exit_code != 0:
                raise decisions.failed(ended, text)
            return [Inject(text)] if text else []
        said = decisions.decision(data)
        if said.kind == "deny":
            return [Block(said.reason or decisions.NO_REASON)]
        if not said.says_something and ended.exit_code != 0:
            raise decisions.failed(ended, text)
        return [Inject(said.context)] if said.context else []

    def _start(self, ended: Ended) -> list[Answer]:
        text = decisions.text_of(ended)
        data = decisions.plain_object(text)
        words = text if data is None else decisions.decision(data).context
        if ended.exit_code == 0:
            return [Inject(words)] if words else []
        if not words:
            raise decisions.failed(ended)
        return [Inject(words), Warn(f"the command {ended.ended}; its words count all the same")]


class OldJsonWire(JsonWire):
    """Generation 1: the context in variables, ``action`` before tools, nothing read from other events but prompts."""

    def request(self, entry: HookEntry, timing: Timing, event: Event, ctx: Any, config: Any) -> bytes:
        """Return the prompt's payload; other events write nothing."""
        if entry.extra["event"] != "UserPromptSubmit":
            return b""
        return super().request(entry, timing, event, ctx, config)

    def environment(self, entry: HookEntry, timing: Timing, event: Event, ctx: Any) -> dict[str, str]:
        """Return generation 1's variables; a prompt's hook has none but a plugin's folder."""
        if entry.extra["event"] == "UserPromptSubmit":
            return _plugin(entry)
        return {**_plugin(entry), **self._old_variables(entry, event, ctx)}

    def answers(self, entry: HookEntry, timing: Timing, event: Event, ctx: Any, ended: Ended) -> list[Answer]:
        """Return what a command's end means.

        Raises:
            NoAnswer: it failed, or cannot be understood.
        """
        name = entry.extra["event"]
        if name == "UserPromptSubmit":
            return self._old_prompt(ended)
        said = decisions.Decision()
        text = decisions.text_of(ended)
        if name == "PreToolUse":
            data = decisions.find_object(text) or {}
            said = decisions.decision({key: data[key] for key in ("action", "reason", "args") if key in data})
        if ended.exit_code != 0 and said.kind != "deny":
            raise decisions.failed(ended, text)
        return tool_answers(said)

    def _old_prompt(self, ended: Ended) -> list[Answer]:
        text = decisions.text_of(ended)
        data = decisions.find_object(text)
        said = decisions.decision(data or {})
        if said.kind == "deny":
            return [Block(said.reason or decisions.NO_REASON)]
        if ended.exit_code != 0:
            raise decisions.failed(ended, text)
        words = text if data is None else said.context
        return [Inject(words)] if words else []


def _read(ended: Ended) -> tuple[str, dict[str, Any] | None]:
    """Return the words of a command that may refuse, and the JSON object that they are, or None.

    Exit code 2 refuses even where the JSON cannot be used.

    Raises:
        NoAnswer: see ``decisions.find_object``.
    """
    text = ""
    try:
        text = decisions.text_of(ended)
        return text, decisions.find_object(text)
    except NoAnswer:
        if ended.exit_code != 2 or not (ended.said or text):
            raise
        return ("" if ended.said else text), None


def tool_answers(said: decisions.Decision) -> list[Answer]:
    """Return the answers before a tool that a decision is."""
    if said.kind == "deny":
        return [Deny(said.reason or decisions.NO_REASON)]
    answers: list[Answer] = [] if said.args is None else [Rewrite(said.args)]
    if said.kind == "ask":
        answers.append(Ask(said.reason or "a hook asks"))
    elif said.kind == "allow":
        answers.append(Allow(said.reason))
    return answers


def _plugin(entry: HookEntry) -> dict[str, str]:
    root = entry.extra.get("plugin_root", "")
    return {"CLAUDE_PLUGIN_ROOT": root, "ATOMCODE_PLUGIN_ROOT": root} if root else {}


def _in_file(text: str) -> str:
    """Write a text into a new file that only the user can read, and return its path."""
    from tempfile import mkstemp

    from ...paths import write_all

    fd, path = mkstemp(prefix="hookturn-context-", suffix=".json")
    try:
        write_all(fd, text.encode("utf-8"))
    finally:
        os.close(fd)
    return path
