"""hookturn's hooks inside Microsoft's Agent Framework, through its agent-hooks middleware and ``Guest``.

A real Agent with its own loop, a scripted model and a real tool function, in
an environment of its own: ``make conformance-framework``.
"""

from __future__ import annotations

import asyncio
import sys
import warnings
from typing import Any

from agent_framework import (
    Agent,
    BaseChatClient,
    ChatMiddlewareLayer,
    ChatResponse,
    Content,
    FunctionInvocationLayer,
    Message,
    create_agent_hooks_middleware,
    tool,
)
from agent_hooks import ApprovalOutcome, ApprovalResolution, InterceptionBlocked, Verdict

from hookturn import Ask, Block, Deny, Engine, Inject, Rewrite, hookimpl
from hookturn.hosts.agent_hooks import Guest

ran: list[str] = []


@tool
def shell(command: str) -> str:
    """Run a command."""
    ran.append(command)
    return f"output of {command}, token=s3cret"


class Model(FunctionInvocationLayer, ChatMiddlewareLayer, BaseChatClient):
    """A model that calls the tool with each scripted command, then answers."""

    def __init__(self, commands: list[str], answer: str) -> None:
        super().__init__()
        self.commands = list(commands)
        self.answer = answer
        self.seen: list[list[str]] = []

    async def _inner_get_response(self, *, messages: Any, stream: bool, options: Any, **more: Any) -> Any:
        self.seen.append([f"{item.role}: {item.text or _results(item)}" for item in messages])
        if self.commands:
            command = self.commands.pop(0)
            call = Content.from_function_call(
                f"call-{len(self.seen)}", "shell", arguments={"command": command}
            )
            return ChatResponse(messages=[Message(role="assistant", contents=[call])], response_id="r")
        return ChatResponse(messages=[Message(role="assistant", contents=[self.answer])], response_id="r")


def _results(message: Any) -> str:
    return " ".join(str(getattr(item, "result", "")) for item in message.contents)


class Guards:
    """One hook a timing, written for hookturn and for no framework."""

    def __init__(self) -> None:
        self.timings: list[str] = []

    @hookimpl
    def on_outcome(self, event: Any) -> None:
        self.timings.append(event.of)

    @hookimpl
    def on_user_prompt_submit(self, event: Any) -> Any:
        if "forbidden" in event.prompt:
            return Block("that prompt is forbidden")
        return Inject("The user is in a hurry.")

    @hookimpl
    def system_prompt(self, event: Any) -> Any:
        return Inject("Answer in one line.")

    @hookimpl
    def pre_tool_execution(self, event: Any) -> Any:
        command = event.args["command"]
        if "rm -rf" in command:
            return Deny("no recursive delete", advice="remove files one by one")
        if command.startswith("git push"):
            return Ask("a push needs a yes")
        return Rewrite(args={"command": command.replace("ls", "ls -a")}) if command == "ls" else None

    @hookimpl
    def post_tool_execution(self, event: Any) -> Any:
        if event.status == "ok":
            return Rewrite(event.result.replace("s3cret", "***"))
        return None

    @hookimpl
    def on_turn_complete(self, event: Any) -> Any:
        return Rewrite(event.text.replace("s3cret", "***"))


class Resolver:
    """Approves what is not forced, and echoes the identity."""

    def resolve(self, request: Any) -> Any:
        if "--force" in str(request.context["target"]):
            verdict = Verdict.deny(reason="forced")
            return ApprovalResolution(ApprovalOutcome.REJECT, request.context_identity, verdict)
        return ApprovalResolution(ApprovalOutcome.APPROVE, request.context_identity, Verdict.allow())


async def conversation() -> None:
    """Run two conversations and check what the tool and the model got to see."""
    guards = Guards()
    records: list[Any] = []
    with Engine([guards]) as engine:
        bundle = create_agent_hooks_middleware(
            {"hookturn": Guest(engine)}, resolver=Resolver(), record_sink=records.append
        )
        commands = ["ls", "rm -rf /", "git push", "git push --force"]
        model = Model(commands, "done with s3cret")
        agent = Agent(client=model, instructions="You are a coder.", tools=[shell], middleware=[bundle])
        result = await agent.run("tidy up")
        blocked = ""
        try:
            await Agent(client=Model([], "no"), middleware=[bundle]).run("something forbidden")
        except InterceptionBlocked as error:
            blocked = str(error)
    print("ran:", ran)
    print("answer:", result.text)
    print("blocked:", blocked)
    for number, messages in enumerate(model.seen, 1):
        print(f"request {number}:", *messages, sep="\n    ")
    print("timings:", ", ".join(dict.fromkeys(guards.timings)))
    assert ran == ["ls -a", "git push"]
    assert result.text == "done with ***"
    assert "hookturn:" in blocked and "input blocked" in blocked
    last = "\n".join(model.seen[-1])
    assert "s3cret" not in last and "token=***" in last
    assert "no recursive delete" in last and "remove files one by one" in last and "forced" in last
    for messages in model.seen:
        assert "system: Answer in one line." in messages and "system: The user is in a hurry." in messages
    points = [record.interception_point.value for record in records]
    assert points.count("agent_startup") == points.count("agent_shutdown") == 2
    assert points.count("pre_tool_call") == 4 and points.count("post_tool_call") == 2
    assert {"on_session_start", "on_session_end", "on_message_received", "on_turn_start", "post_turn"} <= set(
        guards.timings
    )
    assert guards.timings.count("on_session_end") == 2 and guards.timings.count("post_tool_execution") == 4
    print("hookturn's hooks had their effect inside the Agent Framework")


def main() -> int:
    """Run it; 0 only if every hook had its effect."""
    warnings.simplefilter("ignore")  # the framework marks this middleware as experimental
    asyncio.run(conversation())
    return 0


if __name__ == "__main__":
    sys.exit(main())
