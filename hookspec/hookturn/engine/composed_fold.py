"""The fold of an engine with a composition: counts ballots, asks the approver, lets the profile decide."""

from __future__ import annotations

from ..spec.answers import Allow, Ask, Block, Deny, Reply, Rewrite, Warn
from ..spec.errors import AnswerError
from ..spec.events import PermissionRequest, ToolEvent
from .composition import (
    ALLOW,
    ASK,
    CHANGE,
    DENY,
    Ballot,
    Change,
    Composed,
    Consult,
    Refuse,
    RefusedAnswer,
    Remark,
)
from .fold import Fold, Vote
from .outcome import HookRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import Any

    from ..spec.answers import Answer
    from ..spec.events import Event
    from ..spec.timings import Timing
    from .approval import Resolution
    from .composition import Composition
    from .fold import Permissions
    from .outcome import Failure, Outcome
    from .plan import Step

_ANYWHERE = (Refuse, Consult, Change, Remark)


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
        carried: tuple[Vote, ...] | None,
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
                enforced=question.enforced,
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
        self._keep_guards()
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
        if out.decision == "ask" and self.consulted == "approved":
            # A rule or an earlier timing asks too; this very call was allowed already.
            out.decision, out.by, out.reason = "allow", "the approver", ""
        out.composed = Composed(self, winner)
        return out

    def _keep_guards(self) -> None:
        """An enforced guard's no holds in every profile, whatever the others or the approver said."""
        winner = self.winner
        if winner is not None and winner.strength == DENY and winner.enforced:
            return
        for ballot in self.ballots:
            if ballot.enforced and ballot.strength == DENY:
                self.winner, self.decided_by = ballot, ballot.index
                return

    def _winning_vote(self, winner: Ballot) -> Vote | None:
        if winner.strength < ASK:
            by = ""
            yes = [ballot for _, ballot in self.approver]
            for ballot in Composed(self, winner).heard:
                if ballot in yes:
                    by = ballot.name
                elif ballot.strength == CHANGE:
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
