"""A whole agent around hookturn, with a scripted model in place of a real one."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from hookturn import Continue, Deny, Engine, Inject, Rewrite, Tool, events, hookimpl


class House:
    """Hooks as a pip plugin, the user's own files or the host itself bring them."""

    @hookimpl
    def on_user_prompt_submit(self) -> Inject:
        return Inject("(The tests are in tests/.)")

    @hookimpl(tools=["bash"])
    def pre_tool_execution(self, event: events.PreToolExecution) -> Deny | Rewrite:
        if "rm -rf" in event.command:
            return Deny("nothing is deleted here", advice="Move it to trash/.")
        return Rewrite(command=f"timeout 60 {event.command}")

    @hookimpl
    def on_turn_complete(self, event: events.TurnComplete) -> Continue | None:
        return Continue("Run the tests.") if event.edited_files and not event.continued else None


TOOLS: dict[str, Callable[..., Any]] = {"bash": "$ {command}".format, "save": "saved {target}".format}
CALLS = [("bash", {"command": "ls"}), ("bash", {"command": "rm -rf build"})]
SAVE = [("save", {"target": "fix.py", "text": "..."})]
SCRIPT = [("I look.", CALLS), ("I write.", SAVE), ("Fixed.", []), ("Fixed, and the tests pass.", [])]


def run(engine: Engine, text: str, model: Iterator[Any]) -> str:
    """Work on one prompt; return what the model read and its last answer."""
    with engine.session(agent="coder") as session:
        prompt = session.submit(text)
        if not prompt.goes_on:
            return prompt.message or str(prompt.reply)
        messages = [prompt.text, *prompt.injected]
        with session.turn() as turn:
            while not turn.ended:
                messages += turn.system_prompt(["You are a coder."])
                answer, calls = next(model)  # a real model would get the messages
                answer = turn.model_response(answer).text
                for tool, args in calls:
                    result = turn.call_tool(tool, args, execute=TOOLS[tool])
                    messages += [str(result.value), *result.injected]
                if not calls or turn.blocked_by:
                    end = turn.complete(answer)
                    messages.append(end.again or end.text)
    return "\n".join(messages)


if __name__ == "__main__":
    with Engine(plugins=[House()], tools={"save": Tool("write", paths=["target"])}) as engine:
        print(run(engine, "Fix the bug.", iter(SCRIPT)))
