"""Composition profiles: other ways to fold several hooks' answers than the usual one, for ``Engine(composition=...)``.

They are those of AGENT-HOOKS-0.1 section 7, for frameworks that promise one
of them. The usual fold stays in ``fold.py``; this one builds on it. In every
profile a refusal is stronger than an Ask, an Ask than a change (Rewrite,
Reply), a change than no objection.
"""

from __future__ import annotations

from ..spec.answers import Allow, Ask, Block, Deny, Reply, Rewrite, Warn
from ..spec.errors import AnswerError
from ..spec.events import PermissionRequest, ToolEvent
from .fold import Fold, Vote
from .outcome import HookRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Collection, Sequence
    from typing import Any, ClassVar

    from ..spec.answers import Answer
    from ..spec.events import Event
    from ..spec.timings import Timing
    from .approval import Resolution
    from .fold import Permissions
    from .outcome import Failure, Outcome
    from .plan import Step

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


_ANYWHERE = (Refuse, Consult, Change, Remark)


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


class ComposedFold(Fold):
    """The merging of one fire by a composition.

    The engine calls ``begin``, then ``add`` or ``fail`` for each hook, then
    ``tally``; whenever ``question`` is set it asks the approver and hands the
    resolution to ``resolve``.

    Parameters:
        composition: the profile.
        timing, event, permissions, carried: as for Fold.
        watching: nothing has effect, and the approver is not asked.
    """

    def __init__(
        self,
        composition: Composition,
        timing: Timing,
        event: Event,
        permissions: Permissions | None,
        carried: Vote | None,
        *,
        watching: bool,
    ) -> None:
        super().__init__(timing, event, permissions, carried)
        self.composition = composition
        self.watching = watching
        self.came = event
        self.places: dict[Step, int] = {}
        self.ballots: list[Ballot] = []
        self.approver: list[tuple[int, Ballot]] = []
        self.winner: Ballot | None = None
        self.decided_by: int | None = None
        self.consulted = ""
        self.truncated = False
        self.identity: str | None = None
        self.identity_after: str | None = None
        self.question = None
        self.request_failed = ""  # what it means when ``request`` raises
        self._latest: Ballot | None = None  # first_deny: the last change, by a hook or the approver

    # -- before the hooks -----------------------------------------------------------------------

    def begin(self, steps: Sequence[Step]) -> bool:
        """Take the hooks that the event concerns; False when it is refused before any of them."""
        self.places = {step: index for index, step in enumerate(steps)}
        try:
            self.identity = self._identify()
        except Exception as error:  # a framework's own function
            self._synthesize("no_identity", f"the event has no identity ({type(error).__name__})")
            return False
        if not steps and self.composition.requires(self.event):
            self._synthesize("no_hook", "no hook is registered here, and one is required")
            return False
        return True

    def _identify(self) -> str | None:
        identity = self.composition.identity(self.composition.view(self.event))
        if identity is not None and not isinstance(identity, str):
            raise TypeError(f"an identity is a str, got {type(identity).__name__}")
        return identity

    # -- hooks ----------------------------------------------------------------------------------

    def _admit(self, step: Step, answer: Answer) -> None:
        if not isinstance(answer, _ANYWHERE):
            super()._admit(step, answer)

    def add(self, step: Step, given: Any, micros: float = 0.0) -> None:
        """Take what one hook returned (see ``Fold.add``)."""
        answers = self.check(step, given)
        record = HookRecord(
            step.name,
            step.plugin,
            step.source,
            step.tier_name,
            step.priority,
            answers=answers,
            micros=micros,
            would=step.monitor,
            why="monitor mode: recorded without effect" if step.monitor else "",
        )
        self.records.append(record)
        if step.monitor and not self.watching:
            return
        ballot = self._ballot(step, answers)
        if ballot.strength >= ASK and not ballot.enforced and not self.watching and self._always_allowed():
            record.why = "set aside by the user's always_allow"
            self.votes.append(Vote("deny", step.name, ballot.reason, code=ballot.code))
            ballot.strength = ALLOW
        self.ballots.append(ballot)
        if not self.watching:
            for answer in answers:
                if isinstance(answer, Warn) and answer.text in self.warnings:
                    continue
                self._collect(answer)
        if self.winner is not None and ballot.strength < ASK:
            return  # only a guard comes this late, and only a no changes anything
        if not self.composition.parallel and ballot.strength != DENY:
            self._change(ballot)
        if self.composition.profile == "first_deny":
            if ballot.strength == DENY:
                self._settle(ballot, ballot.index)
            elif ballot.strength == ASK:
                self.question = ballot
            elif ballot.strength == CHANGE:
                self._latest = ballot

    def quiet(self, step: Step, micros: float) -> None:
        """Record a hook that had no opinion."""
        super().quiet(step, micros)
        self.silent(step)

    def silent(self, step: Step) -> None:
        """Count a hook that had no opinion."""
        if not step.monitor or self.watching:
            self.ballots.append(Ballot(self.places.get(step), step.name, ALLOW))

    def _ballot(self, step: Step, answers: tuple[Answer, ...]) -> Ballot:
        strength = ALLOW
        said: Answer | None = None
        for answer in answers:
            if isinstance(answer, (Deny, Block)):
                strength, said = DENY, answer
            elif isinstance(answer, Ask):
                strength, said = max(strength, ASK), said or answer
            elif isinstance(answer, (Rewrite, Reply)):
                strength = max(strength, CHANGE)
        return Ballot(
            self.places.get(step),
            step.name,
            strength,
            code=getattr(said, "code", ""),
            reason=getattr(said, "reason", ""),
            answers=answers,
            enforced=step.enforced,
        )

    def _change(self, ballot: Ballot) -> None:
        """Apply a ballot's changes. Raises AnswerError when they cannot be."""
        rewrites = ballot.rewrites
        if rewrites:
            if not self._takes(Rewrite):
                raise RefusedAnswer(f"nothing can be rewritten at {self.timing.name}", "rewrite_forbidden")
            rewritten = self._rewritten(ballot.name, rewrites)
            if rewritten is not None and not self.watching:
                self.event, changes = rewritten
                self.rewrites.extend(changes)
        for answer in ballot.answers:
            if isinstance(answer, Reply) and not self.watching and self.reply is None:
                self.reply = (ballot.name, answer.value)

    def fail(self, step: Step, failure: Failure, micros: float = 0.0) -> None:
        """Take a hook's failure: where the hook fails closed, a no in its place."""
        count = len(self.records)
        votes, ended = len(self.votes), self.ended
        super().fail(step, failure, micros)
        del self.votes[votes:]
        self.ended = ended
        if step.monitor and not self.watching:
            return
        index = self.places.get(step)
        code = _failure_code(failure)
        if self.ballots and self.ballots[-1].index == index:
            # Its answer was counted, and then its change could not be made.
            if count and self.records[count - 1].name == step.name:
                del self.records[count - 1]
            if code not in ("rewrite_failed", "rewrite_forbidden"):
                code = "rewrite_failed"
            strength = DENY if step.fails_closed else ALLOW
            self.ballots[-1] = Ballot(index, step.name, strength, code=code, failed=True)
            if step.fails_closed:
                self._cannot_change(step.name, failure.exception)
            return
        reason = f"the hook {step.name} failed and fails closed ({failure.error_type})"
        strength = DENY if step.fails_closed else ALLOW
        ballot = Ballot(
            index, step.name, strength, code=code, reason=reason, failed=True, enforced=step.enforced
        )
        self.ballots.append(ballot)
        if strength == DENY and self.composition.profile == "first_deny":
            self._settle(ballot, index)

    def not_called(self, step: Step, why: str) -> None:
        """Record a hook that was not called."""
        super().not_called(step, why)
        if why == self.ended:
            self.truncated = True

    # -- deciding -------------------------------------------------------------------------------

    def _settle(self, ballot: Ballot, decided_by: int | None) -> None:
        if self.winner is not None and self.winner.strength >= ASK:
            return
        self.winner = ballot
        self.decided_by = decided_by
        self.ended = self.ended or f"{ballot.name} said {ballot.decision}"

    def _cannot_change(self, who: str, error: BaseException | None) -> None:
        code = error.code if isinstance(error, RefusedAnswer) else "rewrite_failed"
        self._synthesize(code, f"the change of {who} could not be made ({error})")

    def _synthesize(self, code: str, reason: str, *, ask: bool = False) -> None:
        """Refuse (or ask) in the composition's own name."""
        ballot = Ballot(None, f"the composition {self.composition.profile}", DENY, code=code, reason=reason)
        if ask:
            ballot.strength = ASK
            self.question = ballot
        else:
            self.winner = None
            self._settle(ballot, None)

    def tally(self) -> None:
        """Decide, once all hooks were asked; sets ``question`` when the approver has to."""
        if self.winner is not None:
            return
        profile = self.composition.profile
        nothing = Ballot(None, "", ALLOW)
        if profile == "first_deny":
            latest = self._latest or nothing
            self._settle(latest, latest.index)
            return
        if profile == "unanimous":
            against = [ballot for ballot in self.ballots if ballot.strength > ALLOW]
            if against:
                names = ", ".join(ballot.name for ballot in against)
                self._synthesize(
                    "disagreement",
                    f"the hooks do not agree (against it: {names})",
                    ask=self.composition.knobs["on_disagreement"] == "approval",
                )
            else:
                self._settle(self.ballots[0] if self.ballots else nothing, None)
            return
        strength = max((ballot.strength for ballot in self.ballots), default=ALLOW)
        equal = [ballot for ballot in self.ballots if ballot.strength == strength]
        if strength == ALLOW:
            self._settle(equal[0] if equal else nothing, None)
        elif strength == DENY:
            self._settle(equal[0], equal[0].index)
        elif strength == ASK:
            self.question = equal[0]
        elif profile == "run_all":
            self._settle(equal[-1], equal[-1].index)
        elif len(equal) > 1:
            names = ", ".join(ballot.name for ballot in equal)
            self._synthesize(
                "rewrite_conflict",
                f"several hooks want to change it ({names})",
                ask=self.composition.knobs["on_transform_conflict"] == "approval",
            )
        else:
            self._put_through(equal[0], equal[0].index)

    def _put_through(self, ballot: Ballot, decided_by: int | None) -> bool:
        """Make a winner's change now, and let it decide; False when it cannot be made."""
        try:
            self._change(ballot)
        except AnswerError as error:
            self._cannot_change(ballot.name, error)
            return False
        self._settle(ballot, decided_by)
        return True

    # -- asking ---------------------------------------------------------------------------------

    @property
    def may_ask(self) -> bool:
        """Whether the approver may be asked: something must be there that a yes could let happen."""
        return not self.watching and (self.timing.can_deny or Ask in self.timing.answers)

    def request(self) -> PermissionRequest:
        """Return what the approver is asked about the question."""
        assert self.question is not None
        event = self.event
        self.request_failed = "approver_failed"
        view = self.composition.redact(self.composition.view(event))
        self.request_failed = "no_identity"
        identity = self.composition.identity(view)
        common = {name: getattr(event, name) for name in _SHARED}
        tool = event if isinstance(event, ToolEvent) else None
        if tool is not None:
            common.update(call_id=tool.call_id, tool=tool.tool, args=tool.args, kind=tool.kind, mcp=tool.mcp)
            if tool._table is not None:
                common["_table"] = tool._table
        else:
            common.update(call_id="", tool="", args={})
        return PermissionRequest._make(
            {
                **common,
                "reason": self.question.reason,
                "by": self.question.name,
                "identity": identity or "",
                "about": self.composition.about(self.question, view),
            }
        )

    def stand(self) -> None:
        """Let the question stand as it is: there is nobody to ask."""
        question = self.question
        assert question is not None
        self.question = None
        self._settle(question, question.index)

    def resolve(self, resolution: Resolution) -> None:
        """Take the approver's answer to the question."""
        question = self.question
        assert question is not None
        self.question = None
        if not resolution.permits:
            self.consulted = "refused"
            ours = bool(resolution.code) and resolution.answer is None
            if resolution.answer is not None:
                answers: tuple[Answer, ...] = (resolution.answer,)
            else:
                answers = () if ours else question.answers
            ballot = Ballot(
                question.index,
                "the approver",
                DENY,
                code=resolution.code or ("" if resolution.answer else question.code),
                reason=resolution.reason or f"refused when asked ({question.reason})",
                answers=answers,
            )
            self.approver.append((len(self.ballots), ballot))
            self._settle(ballot, None if ours else question.index)
            return
        self.consulted = "approved"
        answer = resolution.answer
        strength = CHANGE if isinstance(answer, Rewrite) else ALLOW
        ballot = Ballot(
            question.index, "the approver", strength, answers=(answer,) if answer is not None else ()
        )
        self.approver.append((len(self.ballots), ballot))
        if self.composition.parallel and strength == ALLOW:
            # What the asking hook wanted to change as well; in the other profiles it is changed already.
            ballot.answers = (*ballot.answers, *question.rewrites)
        if self.composition.knobs.get("on_approval") == "resume":
            try:
                self._change(ballot)
            except AnswerError as error:
                self._cannot_change(ballot.name, error)
                return
            if strength == CHANGE:
                self._latest = ballot
            return
        if self._put_through(ballot, question.index):
            self.ended = "the approver said yes"

    # -- the end --------------------------------------------------------------------------------

    def outcome(self) -> Outcome:
        """Return the merged result, with ``composed``."""
        winner = self.winner or Ballot(None, "", ALLOW)
        if self.watching:
            self.identity_after = self.identity
            self.event = self.came
        else:
            try:
                self.identity_after = self._identify() if winner.code != "no_identity" else None
            except Exception as error:  # a framework's own function
                if winner.strength < ASK:
                    self._synthesize(
                        "no_identity", f"the rewritten event has no identity ({type(error).__name__})"
                    )
                    assert self.winner is not None
                    winner = self.winner
            vote = self._winning_vote(winner)
            if vote is not None:
                self.votes.append(vote)
        out = super().outcome()
        out.composed = Composed(self, winner)
        return out

    def _winning_vote(self, winner: Ballot) -> Vote | None:
        if winner.strength < ASK:
            by = "the approver" if self.consulted == "approved" else ""
            for ballot in self.ballots:
                if ballot.strength == CHANGE:
                    by = ""  # an Allow was given for other arguments than these
                elif not by and any(isinstance(answer, Allow) for answer in ballot.answers):
                    by = ballot.name
            return Vote("allow", by, "") if by and self._takes(Allow) else None
        decision = self._word(winner)
        if not decision:
            return None
        return Vote(
            decision,
            winner.name,
            winner.reason,
            advice=winner.advice,
            code=winner.code,
            enforced=winner.enforced,
        )

    def _word(self, winner: Ballot) -> str:
        """What a no is called here: "" where nothing can be stopped."""
        takes = self._takes
        if winner.strength == ASK and takes(Ask):
            return "ask"
        if takes(Block) and (not takes(Deny) or any(isinstance(item, Block) for item in winner.answers)):
            return "block"
        return "deny" if takes(Deny) else ""

    def _takes(self, kind: type[Answer]) -> bool:
        if kind not in self.timing.answers:
            return False
        return self.timing.name != "on_event" or kind.__name__ in self.event.accepts


_SHARED = (
    "session_id",
    "agent",
    "agent_id",
    "parent_agent",
    "cwd",
    "turn",
    "time",
    "host",
    "dry_run",
    "extra",
)


def _failure_code(failure: Failure) -> str:
    if isinstance(failure.exception, RefusedAnswer):
        return failure.exception.code
    if isinstance(failure.exception, AnswerError):
        return "bad_answer"
    if isinstance(failure.exception, TimeoutError):
        return "hook_timeout"
    return "hook_failed"
