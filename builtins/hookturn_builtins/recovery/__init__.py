"""Recovery: recognises usual failures and answers with the next step of a chain of strategies, as a Recover.

rolebox's error hooks of ``hooks.builtin`` and ``hooks.recovery``; it works as well from hookturn.yaml.
"""

from __future__ import annotations

from hookturn import Inject, Recover, hookimpl

from . import detect
from .chains import DEFAULTS, Chains

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hookturn import Answer, Context
    from hookturn.events import Error, Event, ModelResponse, PostToolExecution, SystemPrompt

PRIORITY = 10

LARGE = 50_000
"""Characters of a tool's result from which the model is warned."""

PER_TOKEN = 4
"""Characters that count as one token."""


class Config:
    """Settings of recovery: which failures are looked for, and what is done about each.

    Attributes:
        session_error: a session or a model request that fails.
        edit_error: an edit that fails: nothing found, no right, a file that changed.
        json_error: a result that says that JSON could not be read.
        context_window: results of 50,000 characters and more, and errors of a full context window.
        empty_response: a result with fewer than 5 characters.
        tool_pair_validation: a system prompt that tells of tool calls without results.
        max_total_attempts: Recover answers in one session.
        chains: category -> list of ``{strategy, config}``; an empty list switches one off.
    """

    session_error: bool = True
    edit_error: bool = True
    json_error: bool = True
    context_window: bool = True
    empty_response: bool = True
    tool_pair_validation: bool = False
    max_total_attempts: int = 10
    chains: dict[str, list[Any]] = {}  # the settings are a copy of their own

    def validate(self) -> None:
        """Refuse unknown categories and strategies.

        Raises:
            ValueError: naming it.
        """
        for category, steps in self.chains.items():
            if category not in DEFAULTS:
                raise ValueError(f"unknown category {category!r} in chains; known are {', '.join(DEFAULTS)}")
            for step in steps:
                if not isinstance(step, dict) or not isinstance(step.get("config", {}), dict):
                    raise ValueError(f"chains.{category}: a step is {{strategy: ..., config: {{...}}}}")
                Recover(step.get("strategy"))  # type: ignore[arg-type]  # refuses unknown ones with a ValueError


class Recovery:
    """The plugin; progress of each session is in ``ctx.state``."""

    def __init__(self, config: Config) -> None:
        self.config = config
        self.chains = Chains({**DEFAULTS, **config.chains}, config.max_total_attempts)

    @hookimpl(trylast=True, priority=PRIORITY, event_types=["session.error"])
    def on_event(self, event: Event, ctx: Context) -> Answer | None:
        """Answer a host's ``session.error``: with a Recover where it takes one, else with a reminder."""
        answer = self._failed(detect.words_of(event.properties), ctx)
        if answer is None or "Recover" in event.accepts:
            return answer
        ctx.inject(f"The session failed. Advice: {answer.strategy.replace('_', ' ')}.")
        return None

    @hookimpl(trylast=True, priority=PRIORITY)
    def on_error(self, event: Error, ctx: Context) -> Answer | None:
        """Answer a model request that failed."""
        if event.phase != "model":
            return None
        return self._failed(f"{event.error_type}: {event.message}", ctx)

    def _failed(self, text: str, ctx: Context) -> Recover | None:
        if detect.context_window(text):
            return self.chains.next("context_window", ctx) if self.config.context_window else None
        return self.chains.next("session_error", ctx) if self.config.session_error else None

    @hookimpl
    def on_model_response(self, event: ModelResponse, ctx: Context) -> None:
        """The model answers again: its chains start over."""
        self.chains.over(("session_error", "context_window"), ctx)

    @hookimpl(trylast=True, priority=PRIORITY)
    def post_tool_execution(self, event: PostToolExecution, ctx: Context) -> list[Answer] | None:
        """Answer a tool call that failed in a way that we know; warn of a very long result."""
        if event.status in ("denied", "replied", "cancelled", "unknown"):
            return None
        text = event.result_text or event.error
        answers: list[Answer] = []
        if self.config.context_window and len(text) >= LARGE:
            tokens = -(-len(text) // PER_TOKEN)
            answers.append(
                Inject(
                    f"This result has {len(text):,} characters, about {tokens:,} tokens. Ask for less at once."
                )
            )
        good = []
        for category, hit in detect.of_tool(event, text):
            if not getattr(self.config, category):
                continue
            if not hit:
                good.append(category)
                continue
            recover = self.chains.next(category, ctx)
            if recover is not None:
                answers.append(recover)
            break
        self.chains.over(good, ctx)
        return answers or None

    @hookimpl(trylast=True, priority=PRIORITY)
    def system_prompt(self, event: SystemPrompt) -> Answer | None:
        """Remind of tool calls without results."""
        if self.config.tool_pair_validation and detect.tool_pairs("\n".join(event.parts)):
            return Inject(
                "A tool call and its result do not belong together. Go on from the last complete pair."
            )
        return None


def plugin(config: Config) -> Recovery:
    """Return the plugin (the entry point)."""
    return Recovery(config)
