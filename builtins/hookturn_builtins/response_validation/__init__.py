"""Checks the model's answers: secrets, a JSON Schema, patterns, files and commands that it only says it wrote and ran.

What is wrong the user is told; on request the model is corrected, or the answer is blocked. Off until a
configuration names it.
"""

from __future__ import annotations

from threading import Lock
from typing import Any, Literal

from hookturn import Block, Continue, Inject, RegistrationError, Warn, hookimpl

from ..remembered import Remembered

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from hookturn import Answer, Context
    from hookturn.events import ModelResponse, PostToolExecution, SessionStart, TurnComplete

    from .checks import Finding

Action = Literal["off", "warn", "inject", "continue", "block"]

MAX_TOLD = 1000
MAX_WORDS = 2000
"""Words of a session's commands that are remembered; with more, any claim is believed."""

RESUMED = ("resume", "resumed", "continue", "fork", "compact")
"""Sources of sessions of which earlier commands may not be known."""


class Config:
    """Settings of response-validation.

    Each check has an action: ``off``; ``warn`` (tell the user); ``inject`` (tell the user, and correct the model
    in its next system prompt); ``continue`` (as ``inject``, but at the end of a turn the turn goes on with the
    correction); ``block`` (end the turn, and withhold its text at its end).

    Attributes:
        secrets: for secrets with a provider's documented format.
        likely_secrets: for likely secrets.
        schema: a JSON Schema for each turn's final answer: a mapping, or a file in the project. Needs the extra
            ``jsonschema``.
        schema_when: ``always``, or ``json`` for answers that are JSON or hold one fenced block of it.
        on_schema: for answers that are not as the schema says.
        required: regular expressions that each final answer must match.
        on_required: for answers that do not.
        forbidden: regular expressions that no answer may match.
        on_forbidden: for answers that do.
        substrings: texts that no answer may hold, in whatever case.
        on_substrings: for answers that do; only the first is told.
        files: for files that an answer says were written or read and that are not in the workspace.
        commands: for commands that an answer says were run and that were not in this session.
        max_corrections: how often in a row the model is corrected in a session; then the user is only told.
        seconds: processor time that one pattern, or the schema, may take.
    """

    secrets: Action = "warn"
    likely_secrets: Action = "warn"
    schema: str | dict[str, Any] | None = None
    schema_when: Literal["always", "json"] = "always"
    on_schema: Action = "warn"
    required: list[str] = []
    on_required: Action = "warn"
    forbidden: list[str] = []
    on_forbidden: Action = "warn"
    substrings: list[str] = []
    on_substrings: Action = "warn"
    files: Action = "warn"
    commands: Action = "warn"
    max_corrections: int = 2
    seconds: float = 1.0

    def validate(self) -> None:
        """Refuse what cannot be checked.

        Raises:
            ValueError: naming the setting.
        """
        import re

        for name in ("required", "forbidden"):
            for pattern in getattr(self, name):
                try:
                    re.compile(pattern)
                except (re.error, RecursionError, OverflowError) as error:
                    raise ValueError(f"{name}: {pattern!r} is no regular expression: {error}") from None
        if not all(self.substrings):
            raise ValueError("substrings must not be empty texts")
        if not 0 <= self.max_corrections <= 100:
            raise ValueError("max_corrections must be a number from 0 to 100")
        if not 0 < self.seconds <= 60:
            raise ValueError("seconds must be a number up to 60")
        if self.schema is not None and self.on_schema != "off":
            if self.schema == "" or (isinstance(self.schema, str) and "\0" in self.schema):
                raise ValueError("schema must name a file, or be a JSON Schema")
            if not _installed():
                raise ValueError(f"{_NEEDS}. {_REMEDY}")


_NEEDS = "schema needs the package jsonschema"
_REMEDY = "Install it where hookturn is: pip install jsonschema"


def _installed() -> bool:
    from importlib.util import find_spec

    return find_spec("jsonschema") is not None and find_spec("referencing") is not None


class ResponseValidation:
    """The plugin.

    Parameters:
        config: its settings.
    """

    hookturn_name = "response-validation"

    def __init__(self, config: Config) -> None:
        self.config = config
        self._remembered = Remembered()
        self._lock = Lock()  # of what follows
        # The last answer of each agent, and what was found in it.
        self._told: dict[tuple[str, str], tuple[int, list[Finding]]] = {}

    @hookimpl
    def on_session_start(self, event: SessionStart, ctx: Context) -> None:
        """Note that all of the session's commands will be seen."""
        if self.config.commands != "off" and event.source not in RESUMED:
            with self._remembered.change(ctx) as state:
                state["whole"] = True

    @hookimpl(tools=["bash", "write", "agent", "other"])
    def post_tool_execution(self, event: PostToolExecution, ctx: Context) -> None:
        """Remember the words of what was run, and the names of what was written."""
        if event.status == "denied" or (self.config.commands == "off" and self.config.files == "off"):
            return
        found, blind = _words(event)
        known = self._remembered.get(ctx, "words", ())
        if self._remembered.get(ctx, "blind") or (not blind and found <= set(known)):
            return
        with self._remembered.change(ctx) as state:
            everything = {*state.get("words", ()), *found}
            if blind or len(everything) > MAX_WORDS:
                state["blind"] = True
            state["words"] = sorted(everything)[:MAX_WORDS]

    @hookimpl(trylast=True)
    def on_model_response(self, event: ModelResponse, ctx: Context) -> list[Answer] | None:
        """Check what every answer must keep to."""
        if not event.text:
            return None
        from .checks import every_answer

        found = every_answer(event.text, self.config, self._slow(ctx))
        with self._lock:
            if len(self._told) >= MAX_TOLD:
                self._told.pop(next(iter(self._told)))
            self._told[(event.session_id, event.agent_id)] = (hash(event.text), found)
        return self._answers(found, ctx)

    @hookimpl(trylast=True)
    def on_turn_complete(self, event: TurnComplete, ctx: Context) -> list[Answer] | None:
        """Check the final answer."""
        if not event.text and event.result is None:
            return None
        from .checks import claims, every_answer, final_answer

        slow = self._slow(ctx)
        with self._lock:
            seen, found = self._told.pop((event.session_id, event.agent_id), (0, []))
        told = seen == hash(event.text)
        if not told:
            found = every_answer(event.text, self.config, slow)
        fresh: list[Finding] = []
        if not event.agent_id:  # what a sub-agent answers is for the agent that started it
            fresh += final_answer(event.text, event.result, self.config, slow, ctx.project_dir)
        fresh += claims(event, self.config, ctx.project_dir, lambda key: self._remembered.get(ctx, key))
        return self._answers(fresh, ctx, told=found if told else (), again=() if told else found, end=True)

    def _slow(self, ctx: Context) -> Sequence[str]:
        """Return the patterns that took too long in this session; they are not tried again."""
        if not (self.config.required or self.config.forbidden or self.config.schema):
            return ()
        slow: Sequence[str] = self._remembered.get(ctx, "slow", ())
        return slow

    def _answers(
        self,
        found: Iterable[Finding],
        ctx: Context,
        *,
        told: Iterable[Finding] = (),
        again: Iterable[Finding] = (),
        end: bool = False,
    ) -> list[Answer] | None:
        """Turn findings into answers.

        Parameters:
            found: what was found.
            ctx: the hook's.
            told: findings that on_model_response told of already; the end of the turn still continues or blocks.
            again: findings of an answer that on_model_response did not see.
            end: the turn ends.
        """
        new = [*again, *found]
        everything = [*new, *told]
        answers: list[Answer] = []
        notice = self._remembered.notice()
        if notice:
            answers.append(Warn(f"{ctx.hook_name}: {notice}"))
        slow = [finding.slow for finding in new if finding.slow]
        if slow:
            with self._remembered.change(ctx) as state:
                state["slow"] = sorted({*state.get("slow", ()), *slow})
        blocked = [finding.user for finding in everything if finding.action == "block"]
        if blocked:
            answers.append(Block("; ".join(dict.fromkeys(blocked))))
        lasting = (
            {finding.model: None for finding in everything if finding.action == "continue"} if end else {}
        )
        injected = {
            finding.model: None
            for finding in new
            if finding.action == "inject" or (finding.action == "continue" and not end)
        }
        capped = False
        if blocked:
            lasting, injected = {}, {}
        if lasting or injected:
            with self._remembered.change(ctx) as state:
                state["corrections"] = state.get("corrections", 0) + 1
                capped = state["corrections"] > self.config.max_corrections
        elif (
            end
            and not any(finding.action in ("inject", "continue", "block") for finding in everything)
            and self._remembered.get(ctx, "corrections")
        ):
            with self._remembered.change(ctx) as state:
                state["corrections"] = 0
        if lasting and not capped:
            answers.append(Continue("\n".join([*lasting, *injected])))
        elif injected and not capped:
            answers.append(Inject("\n".join(injected)))
        for finding in new:
            if finding.action != "block":
                answers.append(Warn(f"{ctx.hook_name}: {finding.user}."))
        if capped:
            answers.append(
                Warn(
                    f"{ctx.hook_name}: the model was corrected {self.config.max_corrections} times in a row; it is not corrected again."
                )
            )
        return answers or None


def _words(event: PostToolExecution) -> tuple[set[str], bool]:
    """Return the words of a tool call, and whether it may have run what nobody saw."""
    from hookturn.redact import redact

    from .claims import runs_others, words

    if event.kind == "write":
        return {path.replace("\\", "/").rpartition("/")[2][:200] for path in event.paths}, False
    if event.kind == "agent":
        return set(), True
    if event.kind == "bash":
        command = redact(event.command[:20_000])
        return words(command), runs_others(command)
    texts: list[str] = []
    waiting: list[Any] = [event.args]
    while waiting and len(texts) < 100:
        value = waiting.pop()
        if isinstance(value, str):
            texts.append(value[:2000])
        elif isinstance(value, dict):
            waiting.extend(value.values())
        elif isinstance(value, (list, tuple)):
            waiting.extend(value[:100])
    return words(redact("\n".join(texts))), False


def plugin(config: Config | None = None) -> Any:
    """Return the plugin; the entry point ``response-validation``.

    Parameters:
        config: its settings; default: all defaults.

    Raises:
        RegistrationError: when there is a schema and the package jsonschema is missing.
    """
    config = config or Config()
    if config.schema is not None and config.on_schema != "off" and not _installed():
        raise RegistrationError(ResponseValidation.hookturn_name, _NEEDS, f"{_REMEDY}.")
    return ResponseValidation(config)


plugin.Config = Config  # type: ignore[attr-defined]
