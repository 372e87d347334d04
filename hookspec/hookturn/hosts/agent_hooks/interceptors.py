"""Interceptors written for agent-hooks-sdk as hookturn plugins, and its approval resolvers as approvers.

An interceptor is any object with ``intercept(context)`` that returns a verdict
(a dict, or the SDK's Verdict). Nothing of the SDK is imported for them.
"""

from __future__ import annotations

from ...engine.approval import Approval
from ...engine.composition import Change, Consult, Refuse, Remark
from ...spec.answers import Allow, Answer, Ask, Block, Deny, Warn
from ...spec.markers import hookimpl
from .wire import (
    MODEL_REQUEST,
    POINTS,
    TIMINGS,
    context,
    fields_of,
    point_of,
    read_verdict,
    replaced,
    target,
)

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from typing import Any, Literal

    from ...spec.context import Context
    from ...spec.events import Event, PermissionRequest

_DENIES = ("pre_tool_execution", "post_tool_execution")
_BLOCKS = ("on_session_start", "on_message_received", "on_event", "on_model_response", "on_turn_complete")


class Edit(Change):
    """A transform verdict: the event's target with one place of it replaced, worked out when it is applied.

    Parameters:
        path: the transform's path.
        value: what goes there.
        origin: the verdict.
    """

    def __init__(self, path: str, value: Any, origin: Any) -> None:
        super().__init__(origin)
        self.__dict__["path"] = path
        self.__dict__["new"] = value

    def worked_out(self, event: Any) -> dict[str, Any]:
        """Return the fields that give the event its new target."""
        return fields_of(event, replaced(target(event), self.__dict__["path"], self.__dict__["new"]))

    def to_json(self) -> dict[str, Any]:
        """Return the path; the value is payload."""
        return {"rewrite": {"path": self.__dict__["path"]}}


class Permit(Allow):
    """An approver's allow verdict.

    Parameters:
        origin: the verdict.
    """

    def __init__(self, origin: Any) -> None:
        super().__init__()
        self.__dict__["origin"] = origin


def answers_of(verdict: dict[str, Any], timing: str, *, composed: bool) -> list[Answer] | None:
    """Return a verdict as answers of a hook.

    Parameters:
        verdict: a checked verdict.
        timing: the timing that is answered.
        composed: whether the engine has a composition that follows the specification. Without one, a deny
            is the Deny or Block that the timing takes, and one that an approver may lift is an Ask where
            a tool is called, else a deny.
    """
    decision = verdict["decision"]
    answers: list[Answer] = []
    for warning in verdict.get("warnings", ()):
        text = warning.get("message") or warning.get("reason")
        if text:
            answers.append(Warn(text))
    code = verdict.get("reason", "")
    text = verdict.get("message") or code
    if not text.strip():
        text = "an interceptor refused it without a reason"
    if decision == "transform":
        transform = verdict["transform"]
        answers.append(Edit(transform["path"], transform.get("value"), verdict))
    elif decision == "allow":
        if len(verdict) > 1:
            answers.append(Remark(origin=verdict))
    elif composed:
        liftable = "approval" in verdict
        answers.append(Consult(text, code, verdict) if liftable else Refuse(text, "", code, verdict))
    elif "approval" in verdict and timing == "pre_tool_execution":
        answers.append(Ask(text))
    elif timing in _DENIES:
        answers.append(Deny(text, code=code))
    elif timing in _BLOCKS:
        answers.append(Block(text))
    else:
        answers.append(Warn(text))  # a session that ends cannot be stopped from it
    return answers or None


class Interception:
    """An interceptor as a hookturn plugin: ``engine.register(Interception(policy), "policy")``.

    It fails closed: an exception, a time-out or a malformed verdict refuses
    what was asked about. Each call gets a context of its own.

    Parameters:
        interceptor: an object with ``intercept(context)``, synchronous or not.
        at: the interception points where it is asked; all of them by default.
        composed: see ``answers_of``.

    Raises:
        TypeError: for an object without ``intercept``.
        ValueError: for an unknown or no interception point.
    """

    on_failure: Literal["ignore", "deny"] = "deny"

    def __init__(self, interceptor: Any, *, at: Iterable[str] = POINTS, composed: bool = False) -> None:
        if not callable(getattr(interceptor, "intercept", None)):
            raise TypeError(f"{type(interceptor).__name__} has no method intercept(context)")
        self.interceptor = interceptor
        self.at = tuple(at)
        self.composed = composed
        unknown = [point for point in self.at if point not in POINTS]
        if unknown or not self.at:
            raise ValueError(f"unknown interception points: {unknown}; some of {', '.join(POINTS)}")
        self.hookturn_name = type(interceptor).__name__
        for point in self.at:
            # A function of its own for each timing: pluggy tells them apart by identity.
            types = [MODEL_REQUEST] if point == "pre_model_call" else None
            setattr(
                self, TIMINGS[point], hookimpl(on_failure=self.on_failure, event_types=types)(self._hook())
            )

    def _hook(self) -> Callable[[Event, Context], Any]:
        def hook(event: Event, ctx: Context) -> Any:
            if point_of(event) is None:
                return None
            if "sequence" not in event.extra:
                # Without the specification's composition nobody numbers the events of the session.
                number = int(ctx.state.add("contexts")) - 1
                event = event.replace(extra={**event.extra, "sequence": number})
            given = self.interceptor.intercept(self._context(event))
            if hasattr(given, "__await__"):
                return self._later(given, event.timing)
            return answers_of(read_verdict(given), event.timing, composed=self.composed)

        return hook

    def _context(self, event: Event) -> dict[str, Any]:
        return context(event)

    async def _later(self, given: Any, timing: str) -> list[Answer] | None:
        return answers_of(read_verdict(await given), timing, composed=self.composed)


def approver(resolver: Any) -> Callable[[PermissionRequest], Any]:
    """Return an approval resolver as ``Engine(approver=...)``, for engines with the specification's composition.

    Parameters:
        resolver: an object with ``resolve(request)``, synchronous or not; it gets the SDK's
            ApprovalRequest where the SDK is installed, else an object with the same attributes.
    """

    def ask(request: PermissionRequest) -> Any:
        verdict, shown = request.about
        identity = request.identity or None
        given = resolver.resolve(_request(identity, shown, verdict))
        if hasattr(given, "__await__"):
            return _later(given)
        return _resolution(given)

    async def _later(given: Any) -> Any:
        return _resolution(await given)

    return ask


def _resolution(given: Any) -> Approval:
    """An ApprovalResolution as an Approval; what does not fit together is passed on as no answer at all."""
    outcome = getattr(given.outcome, "value", given.outcome)
    # No identity comes back as no identity, and an empty text is another thing.
    identity = "" if given.context_identity is None else given.context_identity or "(empty)"
    if outcome == "unresolved" or given.verdict is None:
        return Approval(None, identity)
    try:
        verdict = read_verdict(given.verdict)
    except ValueError as error:
        return Approval(error, identity)
    decision = verdict["decision"]
    answer: Any = verdict
    if outcome == "approve" and decision == "allow":
        answer = Permit(verdict)
    elif outcome == "approve" and decision == "transform":
        transform = verdict["transform"]
        answer = Edit(transform["path"], transform.get("value"), verdict)
    elif outcome == "reject" and decision == "deny":
        code = verdict.get("reason", "")
        text = verdict.get("message") or code
        answer = Refuse(text if text.strip() else "rejected by the approver", "", code, verdict)
    return Approval(answer, identity)


def _request(identity: str | None, shown: dict[str, Any], verdict: dict[str, Any]) -> Any:
    from importlib import import_module

    try:
        sdk = import_module("agent_hooks")
    except ImportError:
        from types import SimpleNamespace

        return SimpleNamespace(
            context_identity=identity,
            interception_point=shown["interception_point"],
            verdict=verdict,
            context=shown,
        )
    reason = str(verdict.get("reason", ""))
    return sdk.ApprovalRequest(
        context_identity=identity,
        interception_point=sdk.InterceptionPoint(shown["interception_point"]),
        verdict=sdk.Verdict.host_error(sdk.HostError(reason), liftable=True)
        if reason.startswith("host_error:")
        else sdk.Verdict.from_wire(verdict),
        context=shown,
    )
