"""A scripted agent: plays prompts, model answers and tool calls through the real Session, and records what ran."""

from __future__ import annotations

from collections import deque

from .make import arguments

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Mapping, Sequence
    from typing import Any

    from ..engine.engine import Engine
    from ..engine.outcome import Failure, Outcome
    from ..engine.results import Call, End, Prompt, Response, ToolResult
    from ..spec.answers import Recover

    Play = Generator[Any, Any, None]

SYSTEM_PROMPT = ("You are a coding agent.",)


class User:
    """A step of the script: the user submits a prompt, and a turn begins.

    Parameters:
        text: the prompt.
        origin: who sent it.
    """

    def __init__(self, text: str, origin: str = "user") -> None:
        self.text = text
        self.origin = origin

    def __repr__(self) -> str:
        return f"User({self.text!r})"


class ToolCall:
    """A tool call that the scripted model asks for.

    Parameters:
        tool: the tool's name.
        args: its arguments.
        command, path, url: put under the name that the tool has for such an argument.
        result: what the tool returns; a function is called with the arguments as hooks left them.
        error: what the tool raises instead: an exception, or the text of a RuntimeError.
        call_id: the call's id; ``call-1``, ``call-2``, ... when empty.
    """

    def __init__(
        self,
        tool: str,
        args: Mapping[str, Any] | None = None,
        *,
        command: str = "",
        path: str = "",
        url: str = "",
        result: Any = "done",
        error: BaseException | str = "",
        call_id: str = "",
    ) -> None:
        self.tool = tool
        self.args = args
        self.views = {"command": command, "path": path, "url": url}
        self.result = result
        self.error = RuntimeError(error) if error and isinstance(error, str) else error
        self.call_id = call_id

    def perform(self, args: Mapping[str, Any]) -> Any:
        """Do what the script says that the tool does."""
        if isinstance(self.error, BaseException):
            raise self.error
        return self.result(**args) if callable(self.result) else self.result

    def __repr__(self) -> str:
        given = [repr(self.tool), *([repr(dict(self.args))] if self.args else [])]
        given += [f"{name}={value!r}" for name, value in self.views.items() if value]
        return f"ToolCall({', '.join(given)})"


class SubAgent:
    """A tool call that runs a sub-agent; its result is the sub-agent's last answer.

    Parameters:
        name: the sub-agent's name.
        answers: what its model says.
        tool: the tool that starts it.
        call_id: the call's id; ``call-1``, ``call-2``, ... when empty.
    """

    def __init__(self, name: str, *answers: Model, tool: str = "task", call_id: str = "") -> None:
        self.name = name
        self.answers = answers
        self.tool = tool
        self.call_id = call_id

    def __repr__(self) -> str:
        return f"SubAgent({self.name!r})"


class Model:
    """A step of the script: the model answers. With tool calls it is asked again, without it ends the turn.

    Parameters:
        text: the answer.
        calls: the tool calls that it asks for.
        usage: tokens, such as ``{"input_tokens": 10, "output_tokens": 5}``.
        stop_reason: the model's own word.
        error: the request fails instead: an exception, or the text of a RuntimeError. The next answer is
            asked for when a hook answers Recover with a strategy that ``Engine(recovers=...)`` names;
            otherwise the turn ends.
    """

    def __init__(
        self,
        text: str = "",
        *calls: ToolCall | SubAgent,
        usage: Mapping[str, int] | None = None,
        stop_reason: str = "",
        error: BaseException | str = "",
    ) -> None:
        self.text = text
        self.calls = calls
        self.error = RuntimeError(error) if error and isinstance(error, str) else error
        self.usage = dict(usage or {})
        self.stop_reason = stop_reason

    def __repr__(self) -> str:
        return f"Model({', '.join(map(repr, (self.text, *self.calls)))})"


class Run:
    """What happened in one scripted session, each list in order.

    Attributes:
        prompts: the submitted prompts.
        system_prompts: the parts of each request's system prompt, as the model got them.
        responses: the model's answers after their hooks.
        calls: the begun tool calls.
        results: the same calls' results.
        executed: (tool, arguments) of each tool body that was really entered.
        ends: the completed turns.
        recovers: for each failed request to the model, the Recover to carry out, or None.
        read: everything that the model read: system prompts, prompts, results, injected texts, words to go on with.
        warnings: everything that the user read.
        skipped: steps and calls of the script that were not played, because a hook stopped what they belong to.
    """

    def __init__(self) -> None:
        self.prompts: list[Prompt] = []
        self.system_prompts: list[list[str]] = []
        self.responses: list[Response] = []
        self.calls: list[Call] = []
        self.results: list[ToolResult] = []
        self.executed: list[tuple[str, dict[str, Any]]] = []
        self.ends: list[End] = []
        self.recovers: list[Recover | None] = []
        self.read: list[str] = []
        self.warnings: list[str] = []
        self.skipped: list[User | Model | ToolCall | SubAgent] = []

    @property
    def outcomes(self) -> list[Outcome]:
        """The outcomes of prompts, answers, tool calls and turns."""
        found = [out for prompt in self.prompts for out in prompt.outcomes]
        found += [response.outcome for response in self.responses]
        found += [out for call in self.calls for out in call.outcomes]
        found += [result.outcome for result in self.results if result.outcome is not None]
        return found + [end.outcome for end in self.ends]

    @property
    def failures(self) -> list[Failure]:
        """The hooks that failed in them."""
        return [failure for out in self.outcomes for failure in out.failures]

    def __repr__(self) -> str:
        return f"<Run of {len(self.prompts)} prompts, {len(self.responses)} answers, {len(self.calls)} tool calls>"


class ScriptedAgent:
    """An agent whose model and tools follow a script; everything else is real.

    Parameters:
        engine: the engine.
        agent: the agent's name.
        cwd: the session's folder; the current one when empty.
        system_prompt: the parts of the system prompt, as hooks get them.
        session: other keyword arguments of ``Engine.session``.
    """

    def __init__(
        self,
        engine: Engine,
        *,
        agent: str = "main",
        cwd: str = "",
        system_prompt: Sequence[str] = SYSTEM_PROMPT,
        **session: Any,
    ) -> None:
        self.engine = engine
        self.system_prompt = list(system_prompt)
        self._about = {"agent": agent, "cwd": cwd, "host": "test", **session}

    def run(self, *steps: User | Model) -> Run:
        """Play a script as one session, from its start to its end.

        Parameters:
            steps: a User, the answers of the Model to it, the next User, ...

        Returns:
            what happened. A script that ends while a hook wants the turn to go on leaves the turn.

        Raises:
            ValueError: when the script does not begin with a User.
            BaseException: a KeyboardInterrupt or the like of a scripted tool, after the session's end.
        """
        script, run = _Script(self.engine, self.system_prompt, steps), Run()
        with self.engine.session(**self._about) as session:
            play = script.play(session, run)
            value: Any = None
            while True:
                try:
                    value = play.send(value)
                except StopIteration:
                    break
        run.warnings.extend(session.warnings)
        return run

    async def arun(self, *steps: User | Model) -> Run:
        """Play a script through an AsyncSession (see ``run``); a tool's result may be a coroutine function."""
        script, run = _Script(self.engine, self.system_prompt, steps), Run()
        async with self.engine.session(**self._about) as session:
            play = script.play(session, run)
            value: Any = None
            error: BaseException | None = None
            while True:
                try:
                    awaitable = play.throw(error) if error is not None else play.send(value)
                except StopIteration:
                    break
                value = error = None
                try:
                    value = await awaitable
                except BaseException as problem:
                    error = problem
        run.warnings.extend(session.warnings)
        return run


class _Script:
    """Plays the steps. Yields what a session's method returned: a value, or an awaitable to wait for."""

    def __init__(self, engine: Engine, system_prompt: list[str], steps: Iterable[User | Model]) -> None:
        self.tools = engine.tools
        self.system_prompt = system_prompt
        self.count = 0
        self.turns: list[tuple[User, list[Model]]] = []
        for step in steps:
            if isinstance(step, User):
                self.turns.append((step, []))
            elif not self.turns:
                raise ValueError(f"a script begins with a User(...), not with {step!r}")
            else:
                self.turns[-1][1].append(step)

    def play(self, session: Any, run: Run) -> Play:
        for user, answers in self.turns:
            prompt = yield session.submit(user.text, origin=user.origin)
            run.prompts.append(prompt)
            run.warnings.extend(prompt.warnings)
            if not prompt.goes_on:
                run.skipped.extend(answers)
                continue
            run.read.extend([prompt.text, *prompt.injected])
            yield from self.turn(session.turn(), answers, run)

    def turn(self, turn: Any, answers: Iterable[Model], run: Run) -> Play:
        yield turn.begin()
        leave = turn.__exit__ if hasattr(turn, "__exit__") else turn.__aexit__
        try:
            yield from self.answers(turn, deque(answers), run)
        except BaseException as error:
            yield leave(type(error), error, error.__traceback__)
            raise
        finally:
            run.warnings.extend(turn.warnings)
        yield leave(None, None, None)

    def answers(self, turn: Any, answers: deque[Model], run: Run) -> Play:
        while answers:
            parts = yield turn.system_prompt(self.system_prompt)
            run.system_prompts.append(parts)
            run.read.extend(parts)
            step = answers.popleft()
            if step.error:
                recover = yield turn.fail(step.error, phase="model")
                run.recovers.append(recover)
                if recover is None or recover.strategy == "abort":
                    break
                continue
            named = [(self.call_id(item), item) for item in step.calls]
            asked = [{"id": call_id, "tool": item.tool, "args": self.args(item)} for call_id, item in named]
            response = yield turn.model_response(
                step.text, usage=step.usage, tool_calls=asked, stop_reason=step.stop_reason
            )
            run.responses.append(response)
            run.warnings.extend(response.warnings)
            for call_id, item in named:
                if turn.blocked_by:
                    run.skipped.append(item)
                elif isinstance(item, SubAgent):
                    yield from self.subagent(turn, call_id, item, run)
                else:
                    yield from self.call(turn, call_id, item, run)
            if step.calls and answers and not turn.blocked_by:
                continue
            end = yield turn.complete(response.text)
            run.ends.append(end)
            run.warnings.extend(end.warnings)
            if end.again is None:
                break
            run.read.append(end.again)
        run.skipped.extend(answers)

    def call(self, turn: Any, call_id: str, item: ToolCall, run: Run) -> Play:
        def execute(**given: Any) -> Any:
            run.executed.append((item.tool, given))
            return item.perform(given)

        args = self.args(item)
        result = yield turn.call_tool(item.tool, args, execute, call_id=call_id)
        # The same id gives the same Call again, and fires nothing.
        call = yield turn.begin_tool(call_id, item.tool, args)
        self.ended(call, result, run)

    def subagent(self, turn: Any, call_id: str, item: SubAgent, run: Run) -> Play:
        call = yield turn.begin_tool(call_id, item.tool, self.args(item))
        if call.go:
            run.executed.append((item.tool, dict(call.args)))
            before = len(run.ends)
            yield from self.turn(turn.subagent(item.name), item.answers, run)
            text = run.ends[-1].text if len(run.ends) > before else ""
            result = yield turn.end_tool(call_id, result=text)
        else:
            run.skipped.extend(item.answers)
            result = yield turn.end_tool(call_id, status="cancelled")
        self.ended(call, result, run)

    @staticmethod
    def ended(call: Call, result: ToolResult, run: Run) -> None:
        from ..spec.tools import result_text_of

        run.calls.append(call)
        run.results.append(result)
        run.read.extend([result_text_of(result.value) or result.error, *result.injected])
        run.warnings.extend([*call.warnings, *result.warnings])

    def call_id(self, item: ToolCall | SubAgent) -> str:
        self.count += 1
        return item.call_id or f"call-{self.count}"

    def args(self, item: ToolCall | SubAgent) -> dict[str, Any]:
        if isinstance(item, SubAgent):
            return {"agent": item.name}
        return arguments(item.tool, item.args, **item.views, tools=self.tools)
