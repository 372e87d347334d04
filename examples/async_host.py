"""A whole agent of coroutines around hookturn; the tools that one answer asks for run side by side."""

from __future__ import annotations

import asyncio
from typing import Any

from hookturn import Continue, Deny, Engine, Inject, Rewrite, events, hookimpl


class House:
    """Hooks may be coroutine functions or not; the same ones work in both kinds of sessions."""

    @hookimpl
    async def on_turn_start(self, event: events.TurnStart) -> Inject:
        return Inject(f"(This is turn {event.turn}.)")

    @hookimpl
    def pre_tool_execution(self, event: events.PreToolExecution) -> Deny | Rewrite | None:
        if any(path.endswith(".pem") for path in event.paths):
            return Deny("keys are not read", advice="Ask for what you need to know.")
        return Rewrite(command=event.command.replace("pip ", "uv pip ")) if event.command else None

    @hookimpl
    async def on_turn_complete(self, event: events.TurnComplete) -> Continue | None:
        return Continue("(Look at the error.)") if not event.continued else None


async def bash(command: str) -> str:
    raise RuntimeError(f"{command}: no network")


TOOLS: dict[str, Any] = {"bash": bash, "read": "text of {path}".format}
CALLS = [("bash", {"command": "pip install x"}), ("read", {"path": "a.py"}), ("read", {"path": "key.pem"})]
SCRIPT = [("I look.", CALLS), ("Done.", []), ("There is no network.", [])]


async def run(engine: Engine, text: str, model: Any) -> str:
    """Work on one prompt; return what the model read and its last answer."""
    async with engine.session(agent="coder") as session:
        prompt = await session.submit(text)
        if not prompt.goes_on:
            return prompt.message or str(prompt.reply)
        messages = [prompt.text, *prompt.injected]
        async with session.turn() as turn:
            while not turn.ended:
                messages += await turn.system_prompt(["You are a coder."])
                answer, calls = next(model)  # a real model would get the messages
                answer = (await turn.model_response(answer)).text
                calling = [turn.call_tool(tool, args, execute=TOOLS[tool]) for tool, args in calls]
                messages += [str(done.value or done.error) for done in await asyncio.gather(*calling)]
                if not calls or turn.blocked_by:
                    end = await turn.complete(answer)
                    messages.append(end.again or end.text)
    return "\n".join(messages)


if __name__ == "__main__":
    with Engine(plugins=[House()]) as engine:
        print(asyncio.run(run(engine, "Fix the bug.", iter(SCRIPT))))
