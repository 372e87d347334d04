"""hookturn as an interceptor: its hooks in any host that follows AGENT-HOOKS-0.1, such as the Agent Framework."""

from __future__ import annotations

from ...engine.async_session import AsyncSession
from ...spec.record import thaw
from .wire import MODEL_ACCEPTS, MODEL_REQUEST

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Any

    from ...engine.async_session import AsyncTurn
    from ...engine.engine import Engine

_USAGE = {"prompt_tokens": "input_tokens", "completion_tokens": "output_tokens"}
_END_REASONS = {"completed": "complete", "cancelled": "interrupted"}


class Guest:
    """An interceptor that asks the hooks of a hookturn engine: ``create_agent_hooks_middleware([Guest(engine)])``.

    Each of the host's sessions becomes one of hookturn's, so hooks see the
    timings that they know in their usual order. What a verdict cannot say is
    told otherwise: injected text becomes a system message of the next request
    to the model, an Ask a deny that the host's approval resolver may lift, a
    Reply a deny with the value as its message. A Continue has no effect.
    Content that is more than text (several messages, images) is JSON to hooks,
    and what they make of it must be JSON again.

    Parameters:
        engine: an engine without a composition: the host has its own.
    """

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self._visits: dict[str, _Visit] = {}

    async def intercept(self, context: dict[str, Any]) -> dict[str, Any]:
        """Return the verdict of hookturn's hooks on a context."""
        session_id: str = context["session"]["id"]
        point: str = context["interception_point"]
        visit = self._visits.get(session_id)
        if visit is None:
            agent = context["agent"]
            session = AsyncSession(
                self.engine,
                session_id=session_id,
                agent=agent.get("name") or agent["id"],
                host=agent["framework"],
                can_prompt=True,
            )
            visit = self._visits[session_id] = _Visit(session)
            # A host that opens its sessions elsewhere begins with another point.
            await session.start()
        verdict: dict[str, Any] = await getattr(visit, point)(context)
        if point == "agent_shutdown":
            del self._visits[session_id]
        return verdict


class _Visit:
    """One session of the host's, with a method for each interception point."""

    def __init__(self, session: AsyncSession) -> None:
        self.session = session
        self.turn: AsyncTurn | None = None
        self.beside: list[str] = []  # injected beside the prompt: for every request of the turn
        self.next: list[str] = []  # injected beside a result: for the next request

    async def _turn(self) -> AsyncTurn:
        if self.turn is None or self.turn.ended:
            # A host that only watches goes on after a no.
            self.turn = await self.session.turn(override=True).begin()
        return self.turn

    async def agent_startup(self, context: dict[str, Any]) -> dict[str, Any]:
        by = self.session.blocked_by
        if by:
            return _deny(by, f"the session was blocked by {by}", self.session.warnings)
        return _allow(self.session.warnings)

    async def input(self, context: dict[str, Any]) -> dict[str, Any]:
        given = context["input"]
        text = _text(given["content"])
        if self.turn is not None and not self.turn.ended:
            await self.turn.complete(final=True)
        prompt = await self.session.submit(text, origin=given["role"])
        self.beside = list(prompt.injected)
        if prompt.blocked_by:
            return _deny(prompt.blocked_by, prompt.message, prompt.warnings)
        if prompt.replied:
            return _deny("reply", str(prompt.reply), prompt.warnings)
        return _changed(given["content"], text, prompt.text, prompt.warnings)

    async def pre_model_call(self, context: dict[str, Any]) -> dict[str, Any]:
        turn = await self._turn()
        messages: list[Any] = context["messages"]
        known = [item["content"] for item in messages if _is_system(item)]
        parts = await turn.system_prompt(known)
        parts += [*self.beside, *self.next]
        self.next.clear()
        request = {"model": context["model"]["id"], "messages": _with_system(messages, known, parts)}
        out = await self.session.event(MODEL_REQUEST, request, accepts=MODEL_ACCEPTS)
        if out.denied:
            return _deny(out.by, out.message, out.warnings)
        wanted = thaw(out.event.properties["messages"])
        if wanted == messages:
            return _allow(out.warnings)
        return _transform("$target", wanted, out.warnings)

    async def post_model_call(self, context: dict[str, Any]) -> dict[str, Any]:
        turn = await self._turn()
        given = context["response"]
        text = _text(given["content"])
        response = await turn.model_response(
            text,
            usage={_USAGE[name]: count for name, count in context.get("usage", {}).items() if name in _USAGE},
            tool_calls=[
                {"id": call.get("id", ""), "tool": call["name"], "args": call["args"]}
                for call in given["tool_calls"]
            ],
            stop_reason=given["finish_reason"],
            model=context["model"]["id"],
        )
        if not response.goes_on:
            return _deny(response.blocked_by, response.message, response.warnings)
        return _changed(given["content"], text, response.text, response.warnings)

    async def pre_tool_call(self, context: dict[str, Any]) -> dict[str, Any]:
        given = context["tool_call"]
        call = await (await self._turn()).begin_tool(given["id"], given["name"], given["args"])
        if call.decision == "ask":
            verdict = _deny("ask", call.reason, call.warnings)
            return {**verdict, "approval": {}}
        if call.replied:
            return _deny("reply", str(call.reply), call.warnings)
        if not call.go:
            return _deny(call.denied_by, call.message, call.warnings)
        if call.args != given["args"]:
            return _transform("$target", thaw(call.args), call.warnings)
        return _allow(call.warnings)

    async def post_tool_call(self, context: dict[str, Any]) -> dict[str, Any]:
        call, given = context["tool_call"], context["tool_result"]
        failed, value = given["is_error"], given["value"]
        done = await (await self._turn()).end_tool(
            call["id"],
            "error" if failed else "ok",
            value,
            error=_text(value) if failed else "",
            duration=given["duration_ms"] / 1000 if "duration_ms" in given else None,
            tool=call["name"],
            args=call["args"],
        )
        self.next.extend(done.injected)
        if done.outcome is not None and done.outcome.denied:
            return _deny(done.denied_by, str(done.value), done.warnings)
        if done.outcome is not None and done.value != value:
            return _transform("$target", thaw(done.value), done.warnings)
        return _allow(done.warnings)

    async def output(self, context: dict[str, Any]) -> dict[str, Any]:
        content = context["output"]["content"]
        text = _text(content)
        end = await (await self._turn()).complete(text, final=True)
        if end.blocked_by:
            return _deny(end.blocked_by, end.text, end.warnings)
        return _changed(content, text, end.text, end.warnings)

    async def agent_shutdown(self, context: dict[str, Any]) -> dict[str, Any]:
        before = len(self.session.warnings)
        await self.session.end(_END_REASONS.get(context["summary"]["reason"], "error"))
        return _allow(self.session.warnings[before:])


def _is_system(message: Any) -> bool:
    return message.get("role") == "system" and isinstance(message.get("content"), str)


def _with_system(messages: list[Any], known: list[str], parts: list[str]) -> list[Any]:
    """The messages with other system texts: new ones behind the known ones, else all of them in front."""
    if parts == known:
        return messages
    made = [{"role": "system", "content": part} for part in parts]
    if parts[: len(known)] != known:
        return [*made, *(item for item in messages if not _is_system(item))]
    last = max((index for index, item in enumerate(messages) if _is_system(item)), default=-1)
    return [*messages[: last + 1], *made[len(known) :], *messages[last + 1 :]]


def _text(content: Any) -> str:
    """Content as hookturn's hooks read it: text as it is, anything richer as JSON."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    import json

    return json.dumps(content, ensure_ascii=False)


def _changed(content: Any, text: str, wanted: str, warnings: Iterable[str]) -> dict[str, Any]:
    """The verdict on a content that hooks read as ``text`` and want to be ``wanted``."""
    if wanted == text:
        return _allow(warnings)
    if content is None or isinstance(content, str):
        return _transform("$target.content", wanted, warnings)
    import json

    try:
        return _transform("$target.content", json.loads(wanted), warnings)
    except ValueError:
        text = "a hook rewrote content that is more than text, and left no JSON of it"
        return _deny("rewrite", text, warnings)


def _allow(warnings: Iterable[str]) -> dict[str, Any]:
    return {"decision": "allow", **_warned(warnings)}


def _deny(by: str, message: str, warnings: Iterable[str]) -> dict[str, Any]:
    return {"decision": "deny", "reason": f"hookturn:{by}", "message": message, **_warned(warnings)}


def _transform(path: str, value: Any, warnings: Iterable[str]) -> dict[str, Any]:
    return {"decision": "transform", "transform": {"path": path, "value": value}, **_warned(warnings)}


def _warned(warnings: Iterable[str]) -> dict[str, Any]:
    told = [{"reason": "hookturn:warning", "message": text} for text in warnings]
    return {"warnings": told} if told else {}
