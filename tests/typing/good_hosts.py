"""Right uses of the engine, sessions, outcomes and own timings: both type checkers must be silent here."""

from __future__ import annotations

from typing import Any

from hookturn import (
    Answer,
    AsyncSession,
    Context,
    Deny,
    Engine,
    Failure,
    HookRecord,
    Outcome,
    Rewrite,
    Session,
    Tool,
    events,
    hookimpl,
    hookspec,
)


class PlanCreated(events.Event, timing="on_plan_created"):
    steps: list[str]


class Score(Answer):
    merge = "all"
    points: int
    why: str = ""


@hookspec(event=PlanCreated, answers=(Deny, Rewrite, Score), writable=("steps",), since="1.0")
def on_plan_created(event: PlanCreated, ctx: Context) -> Answer | list[Answer] | None:
    """A plan was made."""


class Judge:
    @hookimpl
    def on_plan_created(self, event: PlanCreated) -> Score:
        return Score(points=len(event.steps))


engine = Engine(
    plugins=[Judge(), ("other", Judge())],
    hookspecs=[on_plan_created],
    tools={"save": Tool("write", paths=["target"])},
    permissions={"deny": ["bash(rm *)"]},
    approver=lambda request: True,
    services={"model": len},
    mode="monitor",
)
out: Outcome = engine.fire(PlanCreated(steps=["one"]))
scores: list[Score] = out.of(Score)
decision: str | None = out.decision
records: tuple[HookRecord, ...] = out.hooks
failures: tuple[Failure, ...] = out.failures
as_json: dict[str, Any] = out.to_json()


def host() -> str | None:
    with engine.session(agent="coder", cwd=".") as session:
        prompt = session.submit("fix the bug")
        if not prompt.goes_on:
            return prompt.blocked_by
        with session.turn() as turn:
            parts: list[str] = turn.system_prompt(["You are a coder."])
            response = turn.model_response(text=parts[0], usage={"input_tokens": 10})
            call = turn.begin_tool("c1", "bash", {"command": "ls"})
            if call.go:
                turn.end_tool("c1", status="ok", result=dict(call.args))
            done = turn.call_tool("bash", {"command": "ls"}, execute=len)
            with turn.subagent("reviewer") as sub:
                sub.model_response(text=done.status)
            return turn.complete(response.text).again


async def async_host() -> str:
    out: Outcome = await engine.afire(events.TurnStart())
    async with engine.session(agent="coder") as session:
        prompt = await session.submit("fix the bug")
        async with session.turn() as turn:
            parts: list[str] = await turn.system_prompt([prompt.text])
            call = await turn.begin_tool("c1", "bash", {"command": "ls"})
            end = await turn.complete(parts[0] + call.message + out.reason)
            return end.text


def typed(session: Session, other: AsyncSession) -> dict[str, str]:
    return {**session.env, **other.env, session.id: other.agent}


made = Session(engine, session_id="s1", agent="coder", persist=True)
made_async = AsyncSession(engine, cwd=".", can_prompt=True)
