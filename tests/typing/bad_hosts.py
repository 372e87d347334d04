"""Wrong uses: each line that ends in ``# error`` must be an error to both type checkers, and no other line."""

from __future__ import annotations

from hookturn import AsyncSession, Deny, Engine, Outcome, Recover, Session, SetEnv, events, hookspec

engine = Engine()

events.PreToolExecution(tool=1, args={})  # error
events.PreToolExecution(tool="bash")  # error
events.PreToolExecution(tool="bash", args={}, comand="ls")  # error
events.UserPromptSubmit()  # error
events.TurnStart(turn="1")  # error
events.Error(error_type="ValueError")  # error
events.OutcomeEvent(before=None)  # error
Deny()  # error
Deny(7)  # error
SetEnv({"A": 1})  # error
Recover("again")  # error

Engine(mode="watch")  # error
Engine(plugin=[])  # error
engine.fire("pre_tool_execution")  # error
out: Outcome = engine.fire(events.TurnStart())
print(out.decison)  # error
out.of("Score")  # error
number: int = out.reason  # error

Session(engine, agnet="coder")  # error
AsyncSession(engine, persist="yes")  # error
Session("engine")  # error


def host(session: Session) -> None:
    session.submit(5)  # error
    with session.turn() as turn:
        turn.begin_tool("c1", "bash", "ls")  # error
        turn.end_tool(tool="bash")  # error
        words: str = turn.complete("done").again  # error
        print(words)


async def async_host(session: AsyncSession) -> None:
    with session.turn():  # error
        pass
    prompt = await session.submit("hello")
    print(prompt.go)  # error


event = events.TurnStart()
event.turn = 2  # error


@hookspec(event=Deny)  # error
def on_something() -> None: ...
