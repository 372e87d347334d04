"""The specification's composition, and its payload-free interception records (sections 7, 9 and 10)."""

from __future__ import annotations

from collections import deque
from itertools import count

from ...engine.composition import ALLOW, ASK, Ballot, Composition
from ...spec.events import rfc3339
from ...spec.markers import hookimpl
from .wire import context, jcs_sha256, point_of, projected

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any

    from ...engine.composition import Composed
    from ...spec.events import Event, OutcomeEvent

PROFILES = {
    "sequential/first_deny": "first_deny",
    "sequential/run_all": "run_all",
    "parallel/strictest": "strictest",
    "parallel/unanimous": "unanimous",
}
"""The specification's name of a profile -> hookturn's."""

_NAMES = {ours: theirs for theirs, ours in PROFILES.items()}

HOST_ERRORS = {
    "hook_failed": "interceptor_failed",
    "hook_timeout": "interceptor_timeout",
    "bad_answer": "verdict_invalid",
    "rewrite_failed": "transform_invalid",
    "rewrite_forbidden": "transform_target_forbidden",
    "rewrite_conflict": "transform_conflict",
    "disagreement": "composition_disagreement",
    "approver_failed": "approval_resolver_failed",
    "approver_unresolved": "approval_unresolved",
    "identity_mismatch": "approval_identity_mismatch",
    "no_hook": "no_interceptor",
    "no_identity": "context_invalid",
}
"""hookturn's code of a refusal that no hook gave -> the reserved reason (section 11), less ``host_error:``."""


class ContractComposition(Composition):
    """A composition whose events are numbered, required and identified as the specification says.

    Parameters:
        profile: hookturn's name of the profile.
        provider: what identifies a context: a function, or None for no identity.
        redactor: what an approver may see of a context: a function, or None for all of it.
        tools: names of the agent's tools.
        knobs: as for Composition.
    """

    def __init__(
        self,
        profile: str,
        *,
        provider: Callable[[dict[str, Any]], str] | None = jcs_sha256,
        redactor: Callable[[dict[str, Any]], dict[str, Any]] | None = None,
        tools: Iterable[str] = (),
        **knobs: Any,
    ) -> None:
        super().__init__(profile, **knobs)
        self.provider = provider
        self.redactor = redactor
        self.tools = sorted(tools)
        self._numbers: dict[str, count[int]] = {}

    def prepare(self, event: Event) -> Event:
        """Number the event within its session (section 12.2: unique, also over threads)."""
        point = point_of(event)
        if point is None:
            return event
        number = next(self._numbers.setdefault(event.session_id, count()))
        more: dict[str, Any] = {"sequence": number}
        if point == "agent_startup":
            more["tools"] = self.tools
        elif point == "agent_shutdown":
            self._numbers.pop(event.session_id, None)
        return event.replace(extra={**event.extra, **more})

    def requires(self, event: Event) -> bool:
        """An interception point without an interceptor is refused (section 7)."""
        return point_of(event) is not None

    def view(self, event: Event) -> Any:
        """Return the context."""
        return None if point_of(event) is None else context(event)

    def identity(self, view: Any) -> str | None:
        """Return the context's identity."""
        return None if view is None or self.provider is None else self.provider(view)

    def redact(self, view: Any) -> Any:
        """Return what the redactor leaves of the context."""
        return view if self.redactor is None else self.redactor(view)

    def about(self, question: Ballot, view: Any) -> Any:
        """Return the verdict that the approver is asked to lift, and the context as shown."""
        return verdict_of(question), view


def verdict_of(ballot: Ballot) -> dict[str, Any]:
    """Return the verdict that a ballot stands for: the interceptor's own, or a synthesized one."""
    origin = _origin(ballot)
    if origin is not None:
        return dict(origin)
    if ballot.strength == ALLOW and not ballot.failed:
        return {"decision": "allow"}
    if ballot.code in HOST_ERRORS:
        verdict: dict[str, Any] = {"decision": "deny", "reason": f"host_error:{HOST_ERRORS[ballot.code]}"}
    else:
        # A hook of hookturn's own; its words may hold payload and stay out of the record.
        verdict = {"decision": {"change": "transform", "allow": "allow"}.get(ballot.decision, "deny")}
        if ballot.code:
            verdict["reason"] = ballot.code
        if verdict["decision"] == "transform":
            verdict["transform"] = {"path": "$target"}
    if ballot.strength == ASK:
        verdict["approval"] = {}
    return verdict


def _origin(ballot: Ballot) -> dict[str, Any] | None:
    for answer in ballot.answers:
        origin = getattr(answer, "origin", None)
        if isinstance(origin, dict):
            return origin
    return None


class Recorder:
    """Keeps an interception record of each emission: a plugin for engines with a ContractComposition.

    Parameters:
        provider: name of the identity provider, None for no identity.
        declaration: version of the host declaration that the engine was built from, or "".
        keep: how many records ``records`` holds at most; None for all.
        sink: called with each record as well.
    """

    hookturn_name = "interception-records"

    def __init__(
        self,
        *,
        provider: str | None = "jcs-sha256",
        declaration: str = "",
        keep: int | None = None,
        sink: Callable[[dict[str, Any]], None] | None = None,
    ) -> None:
        self.provider = provider
        self.declaration = declaration
        # A deque's own limit is a C integer.
        self.records: deque[dict[str, Any]] = deque(maxlen=min(keep, 2**31 - 1) if keep else None)
        self._sink = sink

    @hookimpl
    def on_outcome(self, event: OutcomeEvent) -> None:
        """Make the record of an outcome."""
        before, composed = event.before, event.outcome.composed
        point = point_of(before)
        if point is None or composed is None:
            return
        record = self._record(point, before, composed)
        self.records.append(record)
        if self._sink is not None:
            self._sink(record)

    def _record(self, point: str, before: Event, composed: Composed) -> dict[str, Any]:
        rejected = composed.winner.code == "no_identity" and composed.identity is None
        record: dict[str, Any] = {
            "interception_point": point,
            "mode": "evaluate_only" if composed.watching else "enforce",
            "verdict": projected(_combined(composed)),
            "input_identity": composed.identity,
            "enforced_identity": composed.identity_after,
            "identity_provider": self.provider,
            "session_id": before.session_id,
            "sequence": before.extra.get("sequence", 0),
            "timestamp": rfc3339(before.time),
            "decided_by": composed.decided_by,
            "composition": {"profile": _NAMES[composed.composition.profile], **composed.composition.knobs},
            "verdicts": [_summary(ballot) for ballot in composed.ballots],
            "interceptors_registered": composed.registered,
        }
        if not composed.composition.parallel and composed.registered and not rejected:
            record["fold_truncated"] = composed.truncated
        if composed.consulted:
            record["resolved_by"] = "approval" if composed.consulted == "approved" else "rejection"
        if self.declaration:
            record["declaration"] = self.declaration
        return record


def _summary(ballot: Ballot) -> dict[str, Any]:
    verdict = verdict_of(ballot)
    summary = {"index": ballot.index, "decision": verdict["decision"], "name": ballot.name}
    if "reason" in verdict:
        summary["reason"] = verdict["reason"]
    return summary


def _combined(composed: Composed) -> dict[str, Any]:
    """The combined verdict (section 7.3): the winner's, with the warnings and labels of all."""
    winner = composed.winner
    verdict = verdict_of(winner)
    pool = [origin for origin in map(_origin, composed.heard) if origin is not None]
    warnings: list[dict[str, Any]] = []
    labels: list[str] = []
    for given in pool:
        for warning in given.get("warnings", ()):
            if warning not in warnings:
                warnings.append(warning)
        if given["decision"] != "deny":
            labels.extend(label for label in given.get("result_labels", ()) if label not in labels)
    verdict.pop("warnings", None)
    verdict.pop("result_labels", None)
    if warnings:
        verdict["warnings"] = warnings
    if labels and verdict["decision"] != "deny":
        verdict["result_labels"] = labels
    return verdict
