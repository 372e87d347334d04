"""Composition profiles: other ways to fold several hooks' answers than the usual one, for ``Engine(composition=...)``.

They are those of AGENT-HOOKS-0.1 section 7, for frameworks that promise one
of them. The usual fold stays in ``fold.py``; ``composed_fold.py`` builds on it.
In every profile a refusal is stronger than an Ask, an Ask than a change
(Rewrite, Reply), a change than no objection.
"""

from __future__ import annotations

from ..spec.answers import Ask, Deny, Rewrite, Warn
from ..spec.errors import AnswerError
from ..spec.events import ToolEvent

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection
    from typing import Any, ClassVar

    from ..spec.answers import Answer
    from ..spec.events import Event
    from .composed_fold import ComposedFold

KNOBS = {
    "first_deny": {"on_approval": ("stop", "resume")},
    "run_all": {},
    "strictest": {"on_transform_conflict": ("deny", "approval")},
    "unanimous": {"on_disagreement": ("deny", "approval")},
}
"""Profile -> the knobs that it looks at, with their values; the first is the default."""

UNCOMPOSED = ("on_tool_call_start", "on_permission_request", "on_outcome", "on_error")
"""Timings that keep the usual fold: what asks, reports or comes before the arguments are final."""

ALLOW, CHANGE, ASK, DENY = range(4)


class Composition:
    """How an engine composes the answers of several hooks.

    ``first_deny``: hooks run in order, on the event as rewritten so far; the
    first refusal ends the plan, an Ask is put to the approver at once.
    ``run_all``: the same, but all hooks run and the strongest answer counts.
    ``strictest``: each hook gets the event as it came, the strongest answer
    counts, two changes conflict. ``unanimous``: each hook gets the event as it
    came, anything but agreement is refused.

    A framework derives from it to say what an event looks like to approvers
    and records (``view``), what identifies it (``identity``), what approvers
    may see (``redact``) and where a missing hook is a refusal (``requires``).

    Parameters:
        profile: first_deny, run_all, strictest or unanimous.
        on_approval: first_deny only: ``stop`` (a yes decides, later hooks are not called) or ``resume``.
        on_transform_conflict: strictest only: ``deny``, or ``approval`` (the approver decides).
        on_disagreement: unanimous only: ``deny``, or ``approval`` (the approver decides).
        required: timings at which a fire without any hook is refused.
        approval_seconds: time limit of an approver that is a coroutine function.

    Raises:
        ValueError: for an unknown profile or value, or a knob that the profile does not look at.
    """

    def __init__(
        self,
        profile: str = "first_deny",
        *,
        on_approval: str | None = None,
        on_transform_conflict: str | None = None,
        on_disagreement: str | None = None,
        required: Collection[str] = (),
        approval_seconds: float = 300.0,
    ) -> None:
        if profile not in KNOBS:
            raise ValueError(f"unknown profile {profile!r}; one of {', '.join(KNOBS)}")
        self.profile = profile
        self.knobs: dict[str, str] = {}
        """The knobs that the profile looks at, with their values."""
        given = {
            "on_approval": on_approval,
            "on_transform_conflict": on_transform_conflict,
            "on_disagreement": on_disagreement,
        }
        for name, value in given.items():
            values = KNOBS[profile].get(name)
            if values is None:
                if value is not None:
                    raise ValueError(f"the profile {profile!r} does not look at {name}")
            elif value is None:
                self.knobs[name] = values[0]
            elif value in values:
                self.knobs[name] = value
            else:
                raise ValueError(f"{name} must be one of {', '.join(values)}, got {value!r}")
        self.required = frozenset(required)
        self.approval_seconds = approval_seconds

    @property
    def parallel(self) -> bool:
        """Whether each hook gets the event as it came."""
        return self.profile in ("strictest", "unanimous")

    def prepare(self, event: Event) -> Event:
        """Return the event to fire; here a framework may number it, for example."""
        return event

    def requires(self, event: Event) -> bool:
        """Whether a fire of this event without any hook is refused."""
        return event.timing in self.required

    def view(self, event: Event) -> Any:
        """Return what approvers and ``identity`` get to see of an event."""
        return event

    def identity(self, view: Any) -> str | None:
        """Return what identifies a view, None for nothing; an exception refuses the event before any hook."""
        if not isinstance(view, ToolEvent):
            return None
        from .identity import identity

        return identity(view.tool, view.args)

    def redact(self, view: Any) -> Any:
        """Return a view with less in it, for approvers; an exception counts as a failing approver."""
        return view

    def about(self, question: Ballot, view: Any) -> Any:
        """Return what ``PermissionRequest.about`` holds for a question and the redacted view."""
        return view

    def __repr__(self) -> str:
        knobs = "".join(f", {name}={value!r}" for name, value in self.knobs.items())
        return f"Composition({self.profile!r}{knobs})"


class Refuse(Deny):
    """A Deny for hooks that know only one kind of no: at every timing, in the way that the timing can.

    At a timing that can stop nothing it is recorded. Only engines with a
    composition take it where Deny is no answer.

    Parameters:
        reason, advice, code: as for Deny.
        origin: what an adapter made it of, for the adapter's own on_outcome hook; not part of the JSON form.
    """

    origin: ClassVar[Any] = None

    if TYPE_CHECKING:

        def __init__(self, reason: str, advice: str = "", code: str = "", origin: Any = None) -> None: ...

    else:

        def __init__(self, reason, advice="", code="", origin=None):
            super().__init__(reason, advice, code)
            self.__dict__["origin"] = origin


class Consult(Ask):
    """An Ask at any timing (see ``Refuse``): refused unless the approver says yes.

    Parameters:
        reason: as for Ask.
        code: a short machine-readable code for the record.
        origin: as for Refuse.
    """

    code: str = ""
    origin: ClassVar[Any] = None

    if TYPE_CHECKING:

        def __init__(self, reason: str, code: str = "", origin: Any = None) -> None: ...

    else:

        def __init__(self, reason, code="", origin=None):
            super().__init__(reason)
            self.__dict__["code"] = code
            self.__dict__["origin"] = origin


class Remark(Warn):
    """A Warn that may be empty and carries something for the record (see ``Refuse``)."""

    origin: ClassVar[Any] = None

    if TYPE_CHECKING:

        def __init__(self, text: str = "", origin: Any = None) -> None: ...

    else:

        def __init__(self, text="", origin=None):
            super().__init__(text)
            self.__dict__["origin"] = origin


class Change(Rewrite):
    """A Rewrite at any timing that is worked out when it is applied; derive from it and write ``worked_out``.

    Parameters:
        origin: as for Refuse.
    """

    origin: ClassVar[Any] = None

    if TYPE_CHECKING:

        def __init__(self, origin: Any = None) -> None: ...

    else:

        def __init__(self, origin=None):
            self.__dict__["origin"] = origin


class RefusedAnswer(AnswerError):
    """An answer that cannot count, with a code of its own for the record.

    Parameters:
        text: what is wrong.
        code: ``bad_answer``, ``rewrite_failed`` or ``rewrite_forbidden``.
    """

    def __init__(self, text: str, code: str = "bad_answer") -> None:
        super().__init__(text)
        self.code = code


class Ballot:
    """What one hook (or the approver, or the composition itself) said, as a composition counts it.

    Attributes:
        index: the hook's place among those called for the event; None for the composition itself.
        name: the hook's name.
        strength: ALLOW, CHANGE, ASK or DENY.
        code: a machine-readable code, or "".
        reason: words, or "".
        answers: the answers it was made of.
        failed: whether it stands for a failure of the hook.
        enforced: whether the user's always_allow cannot set it aside.
    """

    __slots__ = ("answers", "code", "enforced", "failed", "index", "name", "reason", "strength")

    def __init__(
        self,
        index: int | None,
        name: str,
        strength: int,
        *,
        code: str = "",
        reason: str = "",
        answers: tuple[Answer, ...] = (),
        failed: bool = False,
        enforced: bool = False,
    ) -> None:
        self.index = index
        self.name = name
        self.strength = strength
        self.code = code
        self.reason = reason
        self.answers = answers
        self.failed = failed
        self.enforced = enforced

    @property
    def decision(self) -> str:
        """allow, change, ask or deny."""
        return ("allow", "change", "ask", "deny")[self.strength]

    @property
    def rewrites(self) -> list[Rewrite]:
        """The rewrites among the answers."""
        return [answer for answer in self.answers if isinstance(answer, Rewrite)]

    @property
    def advice(self) -> str:
        """The advice of a Deny among the answers."""
        return next((answer.advice for answer in self.answers if isinstance(answer, Deny)), "")

    def __repr__(self) -> str:
        return f"<Ballot {self.index} {self.name!r}: {self.decision} {self.code or self.reason}>"


class Composed:
    """How a composition came to its outcome: ``Outcome.composed``.

    Attributes:
        composition: the profile and its knobs.
        registered: how many hooks the event concerns.
        ballots: what each called hook said, in order.
        approver: what the approver said, as (how many hooks had spoken, ballot), in order.
        winner: the ballot that counts, the approver's where it took a hook's place.
        decided_by: place of the hook that decided (or that the approver was asked about), or None.
        consulted: "" (the approver was not asked), ``approved`` or ``refused``.
        truncated: whether hooks were not called because the outcome was clear.
        identity, identity_after: what identifies the event as it came and as it goes; None without.
        watching: whether the engine only watches (``mode="monitor"``), so that nothing has effect.
    """

    __slots__ = (
        "approver",
        "ballots",
        "composition",
        "consulted",
        "decided_by",
        "identity",
        "identity_after",
        "registered",
        "truncated",
        "watching",
        "winner",
    )

    def __init__(self, fold: ComposedFold, winner: Ballot) -> None:
        self.composition = fold.composition
        self.registered = len(fold.places)
        self.ballots = tuple(fold.ballots)
        self.approver = tuple(fold.approver)
        self.winner = winner
        self.decided_by = fold.decided_by
        self.consulted = fold.consulted
        self.truncated = fold.truncated
        self.identity = fold.identity
        self.identity_after = fold.identity_after
        self.watching = fold.watching

    @property
    def heard(self) -> list[Ballot]:
        """All ballots, the approver's among them, in the order in which they were given."""
        heard: list[Ballot] = list(self.ballots)
        for spoken, ballot in reversed(self.approver):
            heard.insert(spoken, ballot)
        return heard

    def to_json(self) -> dict[str, Any]:
        """Return a record without payload: no text that a hook or a tool wrote, no argument, no result."""
        return {
            "profile": self.composition.profile,
            **self.composition.knobs,
            "decision": self.winner.decision,
            "code": self.winner.code,
            "decided_by": self.decided_by,
            "consulted": self.consulted,
            "truncated": self.truncated,
            "registered": self.registered,
            "identity": self.identity,
            "identity_after": self.identity_after,
            "watching": self.watching,
            "ballots": [
                {"index": item.index, "name": item.name, "decision": item.decision, "code": item.code}
                for item in self.ballots
            ],
        }

    def __repr__(self) -> str:
        return f"<Composed {self.winner!r} by {self.composition!r}>"
