"""What a host gets back from a session's methods."""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ..spec.answers import Recover
    from .outcome import Outcome


class Prompt:
    """A submitted prompt.

    Attributes:
        text: the prompt as hooks left it.
        injected: texts for the model beside the prompt.
        goes_on: whether the host should run a turn.
        blocked_by: who blocked it, or "".
        message: what the model or user reads of the block, or "".
        reply: the answer instead of the model's, where a hook replied; see ``replied``.
        replied: whether a hook replied.
        warnings: texts for the user.
        outcomes: of the timings that fired.
    """

    def __init__(self, text: str) -> None:
        self.text = text
        self.injected: list[str] = []
        self.blocked_by = ""
        self.message = ""
        self.reply: Any = None
        self.replied = False
        self.warnings: list[str] = []
        self.outcomes: list[Outcome] = []

    @property
    def goes_on(self) -> bool:
        """Whether the host should run a turn."""
        return not self.blocked_by and not self.replied

    def __repr__(self) -> str:
        return f"<Prompt {self.text[:40]!r}{' blocked by ' + self.blocked_by if self.blocked_by else ''}>"


class Response:
    """A model's answer after its hooks.

    Attributes:
        text: the answer as hooks left it.
        blocked_by: who ended the turn, or "".
        message: the words of the block, or "".
        warnings: texts for the user.
        outcome: of on_model_response.
    """

    def __init__(self, text: str, outcome: Outcome) -> None:
        self.text = text
        self.blocked_by = outcome.by if outcome.denied else ""
        self.message = outcome.message
        self.warnings = list(outcome.warnings)
        self.outcome = outcome

    @property
    def goes_on(self) -> bool:
        """Whether the turn goes on."""
        return not self.blocked_by

    def __repr__(self) -> str:
        return f"<Response {self.text[:40]!r}>"


class Call:
    """A begun tool call.

    Attributes:
        call_id: its id.
        tool: the tool.
        args: the arguments to run it with (read-only; ``dict(call.args)`` for a copy).
        decided: whether all who have a say were asked.
        running: whether ``call_tool`` runs its body.
        decision: allow, deny, block, ask (the agent's own prompt must decide) or None.
        go: whether the host must run the tool now.
        message: what the model reads instead of a result, where it was refused.
        denied_by: who refused, or "".
        reason: the words of the decision.
        reply: the value instead of the tool's result, where a hook replied; see ``replied``.
        replied: whether a hook replied.
        replied_by: who replied, or "".
        rewritten_by: names of the hooks that changed the arguments.
        warnings: texts for the user.
        outcomes: of the timings that fired.
        result: the ToolResult once the call is over, else None.
    """

    def __init__(self, call_id: str, tool: str, args: Any) -> None:
        self.call_id = call_id
        self.tool = tool
        self.args: Mapping[str, Any] = args
        self.decided = False
        self.running = False
        self.decision: str | None = None
        self.message = ""
        self.denied_by = ""
        self.reason = ""
        self.reply: Any = None
        self.replied = False
        self.replied_by = ""
        self.rewritten_by: list[str] = []
        self.warnings: list[str] = []
        self.outcomes: list[Outcome] = []
        self.result: ToolResult | None = None

    @property
    def go(self) -> bool:
        """Whether the host must run the tool now."""
        if not self.decided or self.replied or self.result is not None:
            return False
        return self.decision is None or self.decision == "allow"

    def __repr__(self) -> str:
        return f"<Call {self.call_id!r} {self.tool}: {'go' if self.go else self.decision}>"


class ToolResult:
    """A tool call that is over.

    Attributes:
        call_id: its id.
        tool: the tool.
        status: ok, error, denied, replied, timeout, cancelled or unknown.
        value: what the model gets: the result as hooks left it, or the message of a refusal.
        args: the arguments as executed.
        denied_by: who refused the call or withheld its result, or "".
        error: the error's text, or "".
        exception: the tool's exception, or None.
        duration: seconds that the tool took.
        injected: texts for the model beside the result.
        warnings: texts for the user.
        recover: a Recover that the host declared, or None.
        outcome: of post_tool_execution.
    """

    def __init__(self, call_id: str, tool: str, status: str, value: Any, args: Mapping[str, Any]) -> None:
        self.call_id = call_id
        self.tool = tool
        self.status = status
        self.value = value
        self.args = args
        self.denied_by = ""
        self.error = ""
        self.exception: BaseException | None = None
        self.duration = 0.0
        self.injected: list[str] = []
        self.warnings: list[str] = []
        self.recover: Recover | None = None
        self.outcome: Outcome | None = None

    def __repr__(self) -> str:
        return f"<ToolResult {self.call_id!r} {self.tool}: {self.status}>"


class End:
    """A turn that its host completed.

    Attributes:
        text: the final answer as hooks left it; the message of a block where it was withheld.
        again: words to go on with (the turn is still open), else None.
        blocked_by: who withheld the text, or "".
        warnings: texts for the user.
        outcome: of on_turn_complete.
    """

    def __init__(self, text: str, outcome: Outcome) -> None:
        self.text = text
        self.again: str | None = None
        self.blocked_by = outcome.by if outcome.denied else ""
        self.warnings = list(outcome.warnings)
        self.outcome = outcome

    def __repr__(self) -> str:
        return f"<End {'again: ' + self.again if self.again else self.text[:40]!r}>"
