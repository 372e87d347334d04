"""What an approver may answer, and what it means: read here for sessions and for composition alike."""

from __future__ import annotations

from ..spec.answers import Allow, Answer, Deny, Rewrite

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class Approval:
    """An approver's answer that says what it was given for, for approvers outside of this process.

    Parameters:
        answer: True, False, an Allow, a Deny, None for "could not decide"; where the engine has a
            composition also a Rewrite, which allows the call with that change.
        identity: ``PermissionRequest.identity`` as the approver got it. Another one than the request's
            is a refusal: the yes was given for something else.
    """

    __slots__ = ("answer", "identity")

    def __init__(self, answer: Any, identity: str | None) -> None:
        self.answer = answer
        self.identity = identity

    def __repr__(self) -> str:
        return f"Approval({self.answer!r}, identity={self.identity!r})"


class Resolution:
    """An approver's answer as the engine reads it.

    Attributes:
        permits: True for a yes, False for a no, None when nothing was decided.
        answer: the answer itself where it is one, else None.
        code: why it counts as it does where the approver did not say it: ``approver_failed``,
            ``approver_unresolved``, ``identity_mismatch``, ``bad_answer``, ``no_identity``; else "".
        reason: words for it.
    """

    __slots__ = ("answer", "code", "permits", "reason")

    def __init__(
        self, permits: bool | None, answer: Answer | None = None, *, code: str = "", reason: str = ""
    ) -> None:
        self.permits = permits
        self.answer = answer
        self.code = code
        self.reason = reason


def read(given: Any, identity: str | None) -> Resolution:
    """Read what an approver returned.

    The order is AGENT-HOOKS-0.1 section 9's: first whether it was given for this request, then whether
    anything was decided, then whether the decision is one.

    Parameters:
        given: the approver's return value.
        identity: the request's identity.
    """
    if isinstance(given, Approval):
        if given.identity != identity:
            return Resolution(
                False, code="identity_mismatch", reason="the approval was given for something else"
            )
        given = given.answer
    if given is None:
        return Resolution(None, code="approver_unresolved", reason="the approver did not decide")
    if given is True:
        return Resolution(True)
    if given is False:
        return Resolution(False)
    if isinstance(given, (Allow, Rewrite)):
        return Resolution(True, given, reason=getattr(given, "reason", ""))
    if isinstance(given, Deny):
        return Resolution(False, given, code=given.code, reason=given.reason)
    return Resolution(
        False,
        code="bad_answer",
        reason=f"the approver returned {type(given).__name__}, which is no answer of an approver",
    )
