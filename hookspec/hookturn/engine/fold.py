"""The only place where decisions merge: the fold of the hooks' answers and the one permission ladder.

deny rule > enforced guard (Block > Deny > Ask) > user's always_allow
> Block > Deny > Ask (rule or hook) > Allow > no opinion
"""

from __future__ import annotations

from ..spec import tools
from ..spec.answers import (
    DECISIONS,
    Allow,
    Answer,
    Ask,
    Block,
    Continue,
    Deny,
    Inject,
    Recover,
    Reply,
    Rewrite,
    SetEnv,
    Warn,
)
from ..spec.errors import AnswerError, EventError, HookturnError, did_you_mean, json_kind
from .match import Rule, covering
from .outcome import HookRecord, Outcome, RewriteRecord

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from ..spec.events import Event, ToolEvent
    from ..spec.timings import Timing
    from .outcome import Failure
    from .plan import Step

GUARD_ANSWERS = (Deny, Ask, Block, Warn)
"""All that a guard may answer."""

# Within one rung of the ladder, the stronger decision wins; among equals the first.
_STRENGTH = {"block": 3, "deny": 2, "ask": 1}
_DECISION = {Block: "block", Deny: "deny", Ask: "ask", Allow: "allow"}
_OURS = frozenset((*_DECISION, Continue, Inject, Recover, Reply, Rewrite, SetEnv, Warn))


class Vote:
    """One decision of a hook, a guard or a rule, before the ladder.

    Attributes:
        decision: block, deny, ask or allow.
        by: name of the hook, or ``rule <text>``.
        reason, advice, code: the answer's words.
        enforced: whether the user's always_allow cannot set it aside.
    """

    __slots__ = ("advice", "by", "code", "decision", "enforced", "reason")

    def __init__(
        self, decision: str, by: str, reason: str, *, advice: str = "", code: str = "", enforced: bool = False
    ) -> None:
        self.decision = decision
        self.by = by
        self.reason = reason
        self.advice = advice
        self.code = code
        self.enforced = enforced


class Permissions:
    """The permission rules of all layers.

    Parameters:
        deny, ask, always_allow: rules as texts or ``Rule`` objects.

    Raises:
        AnswerError: for a rule that cannot be read.
    """

    __slots__ = ("always_allow", "ask", "deny")

    def __init__(
        self,
        deny: Iterable[str | Rule] = (),
        ask: Iterable[str | Rule] = (),
        always_allow: Iterable[str | Rule] = (),
    ) -> None:
        for rules in (deny, ask, always_allow):
            if isinstance(rules, str):
                raise AnswerError(f"permission rules are a list, got the text {rules!r}")
        self.deny, self.ask, self.always_allow = (
            tuple(rule if isinstance(rule, Rule) else Rule(rule) for rule in rules)
            for rules in (deny, ask, always_allow)
        )

    @classmethod
    def of(cls, given: Permissions | Mapping[str, Any] | None) -> Permissions | None:
        """Return the permissions of ``{"deny": [...], "ask": [...], "always_allow": [...]}``; None for no rules."""
        if given is None or isinstance(given, Permissions):
            return given
        for key in given:
            if key not in cls.__slots__:
                raise AnswerError(f"unknown permissions key {key!r}{did_you_mean(key, cls.__slots__)}")
        return cls(**given)

    def vote(self, event: ToolEvent) -> Vote | None:
        """Return what the rules say of a call: deny, ask or allow (always_allow), or None."""
        decision, words = "deny", "denied"
        rule = next((rule for rule in self.deny if rule.hits(event, every=False)), None)
        if rule is None:
            decision, words = "allow", "always allowed"
            rule = covering(self.always_allow, event)
        if rule is None:
            decision, words = "ask", "to be asked about"
            rule = next((rule for rule in self.ask if rule.hits(event, every=False)), None)
        if rule is None:
            return None
        where = f" ({rule.source})" if rule.source else ""
        return Vote(decision, f"rule {rule.text}", f"{event.tool} is {words} by a permission rule{where}")

    def __bool__(self) -> bool:
        return bool(self.deny or self.ask or self.always_allow)


def decide(votes: list[Vote], rule: Vote | None) -> tuple[Vote | None, list[Vote]]:
    """Climb the ladder.

    Parameters:
        votes: the hooks' and guards' decisions in order.
        rule: what the permission rules say of the final arguments, or None.

    Returns:
        the deciding vote (None for no opinion), and the votes that always_allow set aside.
    """
    if rule is not None and rule.decision == "deny":
        return rule, []
    enforced = _strongest(vote for vote in votes if vote.enforced)
    if enforced is not None:
        return enforced, []
    if rule is not None and rule.decision == "allow":
        return rule, [vote for vote in votes if vote.decision != "allow"]
    if rule is not None:
        # Behind the hooks: an Ask of theirs must not go when a later rewrite leaves the rule behind.
        votes = [*votes, rule]
    standing = _strongest(votes)
    if standing is not None:
        return standing, []
    return (votes[0] if votes else None), []


def _strongest(votes: Iterable[Vote]) -> Vote | None:
    best: Vote | None = None
    for vote in votes:
        if _STRENGTH.get(vote.decision, 0) > (_STRENGTH[best.decision] if best is not None else 0):
            best = vote
    return best


def message(vote: Vote, tool: str = "") -> str:
    """Return what the model reads when something is denied or blocked; the only function that writes it.

    Parameters:
        vote: the deciding vote.
        tool: the tool concerned, or an empty string.
    """
    what = f"The call of {tool} was" if tool else "This was"
    verb = "blocked" if vote.decision == "block" else "denied"
    text = f"{what} {verb} by {vote.by}: {vote.reason}"
    return f"{text}\n{vote.advice}" if vote.advice else text


def _wrong_type(what: str, wanted: type, value: object) -> AnswerError:
    """Return the error for a rewrite of the wrong type. Its hook may be one in Python, or a program that writes JSON."""
    return AnswerError(
        f"{what} must be a {wanted.__name__} ({json_kind(wanted())} in JSON), got {json_kind(value)}"
    )


class Fold:
    """The merging of one fire. Hooks' answers come in by ``add``, the result goes out by ``outcome``.

    Parameters:
        timing: the timing's contract.
        event: the event as it came.
        permissions: the rules to apply as part of this fire, or None.
        carried: decisions of an earlier timing of the same call that still count, or None.
    """

    __slots__ = (
        "answers",
        "carried",
        "continues",
        "ended",
        "env",
        "event",
        "failures",
        "injected",
        "permissions",
        "records",
        "recover",
        "reply",
        "rewrites",
        "timing",
        "votes",
        "warnings",
    )

    question: Any = None  # on the class: only compositions set it
    """What the approver has to be asked before the next hook is called; compositions only."""

    def __init__(
        self,
        timing: Timing,
        event: Event,
        permissions: Permissions | None = None,
        carried: tuple[Vote, ...] | None = None,
    ) -> None:
        self.timing = timing
        self.event: Any = event
        self.permissions = permissions
        self.carried = carried
        self.ended = ""  # why no further hook (but the guards) is called
        self.votes: list[Vote] = []
        self.rewrites: list[RewriteRecord] = []
        self.reply: tuple[str, Any] | None = None
        self.injected: list[str] = []
        self.warnings: list[str] = []
        self.continues: list[str] = []
        self.env: dict[str, str] = {}
        self.recover: Recover | None = None
        self.answers: list[Answer] = []
        self.failures: list[Failure] = []
        self.records: list[HookRecord] = []

    def check(self, step: Step, given: Any) -> tuple[Answer, ...]:
        """Return a hook's answers as a tuple, if its timing allows them.

        Raises:
            AnswerError: when it does not, or when there is more than one decision.
        """
        answers = tuple(given) if isinstance(given, (list, tuple)) else (given,)
        decisions = 0
        for answer in answers:
            if not isinstance(answer, Answer):
                raise AnswerError(
                    f"a hook returns None, an answer or a list of answers, not {type(answer).__name__}"
                )
            self._admit(step, answer)
            if isinstance(answer, DECISIONS):
                decisions += 1
        if decisions > 1:
            raise AnswerError("a list of answers holds at most one of Allow, Ask, Deny and Block")
        return answers

    def _admit(self, step: Step, answer: Answer) -> None:
        """Raise AnswerError for an answer that this hook may not give here."""
        allowed: Any = GUARD_ANSWERS if step.guard else self.timing.answers
        if not isinstance(answer, allowed) or not isinstance(answer, self.timing.answers):
            names = ", ".join(sorted(kind.__name__ for kind in allowed if kind in self.timing.answers))
            who = "a guard" if step.guard else "it"
            raise AnswerError(
                f"{type(answer).__name__} is no answer of {self.timing.name}; {who} takes {names}"
            )
        if (
            self.timing.name == "on_event"
            and not isinstance(answer, Warn)
            and not any(kind.__name__ in self.event.accepts for kind in type(answer).__mro__)
        ):
            accepts = ", ".join([*self.event.accepts, "Warn"])
            raise AnswerError(
                f"{type(answer).__name__} is no answer of the event {self.event.type}; it takes {accepts}"
            )

    def add(self, step: Step, given: Any, micros: float = 0.0) -> None:
        """Merge what one hook returned.

        Raises:
            AnswerError: when the timing does not take it; nothing of it has effect then.
        """
        answers = self.check(step, given)
        would = step.monitor
        record = HookRecord(
            step.name,
            step.plugin,
            step.source,
            step.tier_name,
            step.priority,
            answers=answers,
            micros=micros,
            would=would,
            why="monitor mode: recorded without effect" if would else "",
        )
        if would:
            self.records.append(record)
            return
        rewritten = self._rewritten(step.name, [item for item in answers if isinstance(item, Rewrite)])
        self.records.append(record)
        if rewritten is not None:
            self.event, changes = rewritten
            self.rewrites.extend(changes)
            # An Allow was given for other arguments than these.
            self.votes = [vote for vote in self.votes if vote.decision != "allow"]
        for answer in answers:
            if isinstance(answer, DECISIONS):
                self._vote(step, record, answer)
            elif isinstance(answer, Reply):
                self.reply = (step.name, answer.value)
                self.ended = f"{step.name} replied"
            self._collect(answer)

    def _collect(self, answer: Answer) -> None:
        """Take in what only adds up."""
        if isinstance(answer, Inject):
            if answer.text:
                self.injected.append(answer.text)
        elif isinstance(answer, Warn):
            if answer.text:
                self.warnings.append(answer.text)
        elif isinstance(answer, Continue):
            self.continues.append(answer.reason)
        elif isinstance(answer, SetEnv):
            self.env.update(answer.variables)
        elif isinstance(answer, Recover):
            self.recover = self.recover or answer
        if type(answer) not in _OURS:
            self.answers.append(answer)

    def _vote(self, step: Step, record: HookRecord, answer: Any) -> None:
        decision = next(word for kind, word in _DECISION.items() if isinstance(answer, kind))
        vote = Vote(
            decision,
            step.name,
            answer.reason,
            advice=getattr(answer, "advice", ""),
            code=getattr(answer, "code", ""),
            enforced=step.enforced,
        )
        self.votes.append(vote)
        if decision in ("deny", "block") and not step.guard:
            if self._always_allowed():
                record.why = "set aside by the user's always_allow"
            else:
                self.ended = f"{step.name} said {decision}"
        elif decision == "allow" and self.timing.name == "on_permission_request":
            self.ended = f"{step.name} said allow"

    def _always_allowed(self) -> bool:
        if self.permissions is None:
            return False
        rule = self.permissions.vote(self.event)
        return rule is not None and rule.decision == "allow"

    def _rewritten(self, by: str, answers: list[Rewrite]) -> tuple[Event, list[RewriteRecord]] | None:
        """The event after the rewrites of one hook (or approver), and what changed; None without any."""
        if not answers:
            return None
        event = self.event
        changes: list[RewriteRecord] = []
        for answer in answers:
            values: dict[str, Any] = {}
            if answer.has_value:
                values[self.timing.main] = answer.value
            # Fields before views, which go on top of them.
            for name, value in sorted(
                {**answer.fields, **answer.worked_out(event)}.items(),
                key=lambda item: item[0] not in self.timing.writable,
            ):
                field, new = self._translate(event, name, value, values)
                values[field] = new
            for field, new in values.items():
                check = event._checks.get(field)
                if check is not None and not isinstance(new, check[1]):
                    raise _wrong_type(f"Rewrite: {field}", check[1][0], new)
                if field == "parts" and not all(isinstance(part, str) for part in new):
                    raise AnswerError("Rewrite: parts must be a list of str")
                old = getattr(event, field)
                try:
                    event = event.replace(**{field: new})
                except EventError as error:
                    raise AnswerError(f"Rewrite: {error}") from None
                changes.append(RewriteRecord(by, field, old, getattr(event, field)))
        return event, changes

    def _translate(self, event: Any, name: str, value: Any, values: Mapping[str, Any]) -> tuple[str, Any]:
        """Turn a rewrite of a view into one of the field behind it."""
        writable = self.timing.writable
        if name in writable:
            return name, value
        if name in ("command", "path") and "args" in writable:
            if not isinstance(value, str):
                raise _wrong_type(f"Rewrite: {name}", str, value)
            change = tools.with_command if name == "command" else tools.with_path
            return "args", change(event._row, values.get("args", event.args), value)
        if name == "result_text" and "result" in writable:
            if not isinstance(value, str):
                raise _wrong_type("Rewrite: result_text", str, value)
            return "result", tools.with_result_text(values.get("result", event.result), value)
        views = {"args": ["command", "path"], "result": ["result_text"]}
        known = [*writable, *(view for field in writable for view in views.get(field, ()))]
        raise AnswerError(
            f"Rewrite({name}=...): {self.timing.name} lets a hook write "
            f"{', '.join(known) or 'nothing'}{did_you_mean(name, known)}"
        )

    def fail(self, step: Step, failure: Failure, micros: float = 0.0) -> None:
        """Record a hook's failure; where the hook fails closed, it is a Deny that names it."""
        self.failures.append(failure)
        said = f"{failure.error_type}: {failure.message}" if failure.message else failure.error_type
        self.records.append(
            HookRecord(
                step.name,
                step.plugin,
                step.source,
                step.tier_name,
                step.priority,
                error=said,
                micros=micros,
                would=step.monitor,
            )
        )
        if step.fails_closed and not step.monitor:
            self.close(step, f"the hook {step.name} failed and fails closed ({said})")
            if isinstance(failure.exception, HookturnError) and failure.exception.remedy:
                self.warnings.append(f"{step.name} failed ({said}). {failure.exception.remedy}")

    def close(self, step: Step, reason: str) -> None:
        """Vote against going on, in the name of a hook that could not be asked."""
        taken = [kind.__name__ for kind in self.timing.answers]
        if self.timing.name == "on_event":
            taken = self.event.accepts
        if "Deny" in taken:
            decision = "deny"
        elif "Block" in taken:
            decision = "block"
        else:
            self.warnings.append(reason)
            return
        self.votes.append(Vote(decision, step.name, reason, code="hook_failed", enforced=step.enforced))
        if not step.guard:
            self.ended = self.ended or f"{step.name} failed closed"

    def not_called(self, step: Step, why: str) -> None:
        """Record a hook that was not called."""
        self.records.append(
            HookRecord(
                step.name, step.plugin, step.source, step.tier_name, step.priority, matched=False, why=why
            )
        )

    def silent(self, step: Step) -> None:
        """Count a hook that had no opinion; here it counts for nothing."""

    def tally(self) -> None:
        """Decide what only all hooks together decide; here each answer was merged as it came."""

    def quiet(self, step: Step, micros: float) -> None:
        """Record a hook that had no opinion (measured fires only)."""
        self.records.append(
            HookRecord(step.name, step.plugin, step.source, step.tier_name, step.priority, micros=micros)
        )

    def outcome(self) -> Outcome:
        """Return the merged result."""
        out = Outcome(self.event)
        votes = self.votes if self.carried is None else [*self.carried, *self.votes]
        rule = self.permissions.vote(self.event) if self.permissions is not None else None
        if votes or rule is not None:
            vote, overruled = decide(votes, rule)
            if vote is not None:
                out.decision = vote.decision
                out.reason = vote.reason
                out.by = vote.by
                out.advice = vote.advice
                out.code = vote.code
                out.enforced = vote.enforced
                if vote.decision in _STRENGTH and vote.decision != "ask":
                    out.message = message(vote, getattr(self.event, "tool", ""))
            if overruled:
                out.overruled = tuple((item.by, item.decision, item.reason) for item in overruled)
                self.warnings.extend(
                    f"{item.by} said {item.decision} ({item.reason}); the user's always_allow set it aside"
                    for item in overruled
                )
        if self.reply is not None and not out.denied:
            out.reply = self.reply[1]
            out.replied = True
            out.by = out.by or self.reply[0]
        if self.rewrites:
            out.rewrites = tuple(self.rewrites)
        if self.injected:
            out.injected = tuple(self.injected)
        if self.warnings:
            out.warnings = tuple(self.warnings)
        if self.failures:
            out.failures = tuple(self.failures)
        if self.continues:
            out.continue_reason = "\n".join(self.continues)
        if self.env:
            out.env = dict(self.env)
        if self.recover is not None:
            out.recover = self.recover
        if self.answers:
            out._answers = tuple(self.answers)
        if self.records:
            out.hooks = tuple(self.records)
        return out
