"""What a fire comes to: the Outcome that the host gets, with a record of each hook that had something to say."""

from __future__ import annotations

from ..spec.answers import Answer
from ..spec.record import jsonable, safe_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..spec.events import Event


class Failure:
    """A hook that failed. It never stopped the others.

    Attributes:
        timing: where.
        hook: the hook's name.
        plugin: the plugin's name.
        distribution: the distribution that brought the plugin, or "".
        error_type: class of the exception.
        message: what it said.
        elapsed: seconds that the hook ran.
        exception: the exception itself, or None.
    """

    __slots__ = ("distribution", "elapsed", "error_type", "exception", "hook", "message", "plugin", "timing")

    def __init__(
        self,
        timing: str,
        hook: str,
        plugin: str,
        distribution: str,
        error_type: str,
        message: str,
        elapsed: float,
        exception: BaseException | None = None,
    ) -> None:
        self.timing = timing
        self.hook = hook
        self.plugin = plugin
        self.distribution = distribution
        self.error_type = error_type
        self.message = message
        self.elapsed = elapsed
        self.exception = exception

    def to_json(self) -> dict[str, Any]:
        """Return all but the exception object."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "exception"}

    def __repr__(self) -> str:
        return f"<Failure of {self.hook!r} in {self.timing}: {self.error_type}: {self.message}>"


class HookRecord:
    """What one hook did in one fire.

    Attributes:
        name: the hook's name (the plugin's, or the configured entry's).
        plugin: the plugin's name.
        source: where it was declared: a distribution, a file and line, or "".
        tier: first, before, plain, after, last or guard.
        priority: lower ran earlier within the tier.
        matched: whether the hook was called (in a fire without ``measure``, always true).
        why: why it was not called, or what became of its answer.
        answers: its answers.
        error: ``Type: message`` of its failure, or "".
        micros: microseconds that it took; 0.0 where the fire was not measured.
        would: True for answers in monitor mode, which have no effect.
    """

    __slots__ = (
        "answers",
        "error",
        "matched",
        "micros",
        "name",
        "plugin",
        "priority",
        "source",
        "tier",
        "why",
        "would",
    )

    def __init__(
        self,
        name: str,
        plugin: str,
        source: str,
        tier: str,
        priority: int,
        *,
        matched: bool = True,
        why: str = "",
        answers: tuple[Answer, ...] = (),
        error: str = "",
        micros: float = 0.0,
        would: bool = False,
    ) -> None:
        self.name = name
        self.plugin = plugin
        self.source = source
        self.tier = tier
        self.priority = priority
        self.matched = matched
        self.why = why
        self.answers = answers
        self.error = error
        self.micros = micros
        self.would = would

    @property
    def answer(self) -> Answer | None:
        """The hook's first answer, or None."""
        return self.answers[0] if self.answers else None

    def to_json(self) -> dict[str, Any]:
        """Return the record; ``answer`` merges the JSON forms of all answers."""
        answer: dict[str, Any] | None = None
        for item in self.answers:
            answer = {**(answer or {}), **item.to_json()}
        return {
            "name": self.name,
            "plugin": self.plugin,
            "source": self.source,
            "tier": self.tier,
            "priority": self.priority,
            "matched": self.matched,
            "why": self.why,
            "answer": answer,
            "error": self.error,
            "micros": round(self.micros, 1),
            "would": self.would,
        }

    def __repr__(self) -> str:
        said = self.error or ", ".join(map(repr, self.answers)) or self.why or "no opinion"
        return f"<HookRecord {self.name!r} ({self.tier} {self.priority}): {said}>"


class RewriteRecord:
    """Who changed what.

    Attributes:
        by: the hook's name.
        field: the event's field.
        before, after: its values.
    """

    __slots__ = ("after", "before", "by", "field")

    def __init__(self, by: str, field: str, before: Any, after: Any) -> None:
        self.by = by
        self.field = field
        self.before = before
        self.after = after

    def to_json(self) -> dict[str, Any]:
        """Return all four values."""
        return {
            "by": self.by,
            "field": self.field,
            "before": jsonable(self.before),
            "after": jsonable(self.after),
        }

    def __repr__(self) -> str:
        return f"<RewriteRecord {self.field} by {self.by!r}>"


class Outcome:
    """The merged result of one fire.

    Defaults stand on the class, so the outcome of a fire in which no hook said
    anything holds only its event.

    Attributes:
        event: the event as it goes on, all rewrites applied.
        decision: deny, block, ask, allow or None for no opinion.
        reason: the deciding hook's (or rule's) words.
        by: its name.
        message: what the model reads of a deny or block, else "".
        advice, code: the deciding Deny's.
        enforced: whether a guard decided that the user's always_allow cannot set aside.
        rewrites: who changed what, in order.
        reply: the value instead of the model or the tool; see ``replied``.
        replied: whether there is a reply (it may be None).
        injected: texts for the model, in order.
        warnings: texts for the user, in order.
        failures: hooks that failed.
        continue_reason: the words to go on with, joined, or "".
        env: environment variables to set.
        recover: the first Recover, or None.
        hooks: a record of each hook that answered or failed; with ``measure`` of all.
        overruled: decisions that the user's always_allow set aside, as (name, decision, reason).
        composed: how the engine's composition came to it (see ``composition.Composed``), or None.
        micros: microseconds of all hooks together; 0.0 where nothing asked for it (``measure``, on_outcome).
        times: (hook's name, seconds) of each hook that was called, in order; empty where nothing asked for it.
    """

    decision: str | None = None
    reason: str = ""
    by: str = ""
    message: str = ""
    advice: str = ""
    code: str = ""
    enforced: bool = False
    reply: Any = None
    replied: bool = False
    continue_reason: str = ""
    recover: Any = None
    composed: Any = None
    micros: float = 0.0
    times: tuple[tuple[str, float], ...] = ()
    rewrites: tuple[RewriteRecord, ...] = ()
    injected: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    failures: tuple[Failure, ...] = ()
    hooks: tuple[HookRecord, ...] = ()
    overruled: tuple[tuple[str, str, str], ...] = ()
    env: dict[str, str] = {}
    _answers: tuple[Answer, ...] = ()

    def __init__(self, event: Event) -> None:
        self.event = event

    @property
    def timing(self) -> str:
        """The timing that was fired."""
        return self.event.timing

    @property
    def denied(self) -> bool:
        """Whether the decision is deny or block."""
        return self.decision == "deny" or self.decision == "block"

    def of(self, kind: type[Answer]) -> Any:
        """Return the answers of a class, merged as the class says.

        Parameters:
            kind: an Answer class, usually a framework's own.

        Returns:
            a list for ``merge = "all"``, else one answer or None.
        """
        found = [answer for answer in self._answers if isinstance(answer, kind)]
        if kind.merge == "all":
            return found
        if not found:
            return None
        return found[0] if kind.merge == "first" else found[-1]

    def to_json(self) -> dict[str, Any]:
        """Return the outcome as ``hookturn fire --json`` prints it."""
        return {
            "schema": 1,
            "timing": self.timing,
            "decision": self.decision,
            "reason": self.reason,
            "by": self.by,
            "message": self.message,
            "advice": self.advice,
            "code": self.code,
            "event": self.event.to_json(),
            "rewrites": [item.to_json() for item in self.rewrites],
            "reply": jsonable(self.reply),
            "replied": self.replied,
            "continue_reason": self.continue_reason,
            "injected": list(self.injected),
            "warnings": list(self.warnings),
            "failures": [item.to_json() for item in self.failures],
            "env": dict(self.env),
            "recover": self.recover.to_json() if self.recover is not None else None,
            "overruled": [
                {"by": name, "decision": decision, "reason": reason}
                for name, decision, reason in self.overruled
            ],
            "answers": [
                {type(answer).__name__: {name: jsonable(getattr(answer, name)) for name in answer._fields}}
                for answer in self._answers
            ],
            "hooks": [item.to_json() for item in self.hooks],
            "micros": round(self.micros, 1),
            **({"composed": self.composed.to_json()} if self.composed is not None else {}),
        }

    def __repr__(self) -> str:
        said = f"{self.decision} by {self.by!r}: {self.reason}" if self.decision else "no decision"
        return f"<Outcome of {self.timing}: {said}>"


def describe(error: BaseException) -> str:
    """Return ``Type: message`` of an exception, whatever its ``__str__`` does."""
    text = safe_text(error)
    return f"{type(error).__name__}: {text}" if text else type(error).__name__
