"""hookturn as an interceptor of another host: contexts in, verdicts out."""

from __future__ import annotations

import asyncio
import itertools

import pytest

from hookturn import Allow, Ask, Block, Deny, Engine, Inject, Reply, Rewrite, Warn, events, hookimpl
from hookturn.hosts.agent_hooks import Guest


class TheirHost:
    """A host of the contract, small enough to read: builds contexts, follows verdicts."""

    def __init__(self, guest, watching=False):
        self.guest = guest
        self.watching = watching
        self.sequence = itertools.count()
        self.ran = []
        self.verdicts = []

    async def emit(self, point, target, **more):
        context = {
            "spec": "agent-hooks/0.1",
            "interception_point": point,
            "timestamp": "2026-01-01T00:00:00Z",
            "sequence": next(self.sequence),
            "agent": {"id": "a1", "framework": "theirs", "name": "coder"},
            "session": {"id": "s1"},
            "target": target,
            **more,
        }
        verdict = await self.guest.intercept(context)
        self.verdicts.append((point, verdict))
        if verdict["decision"] == "deny" and not self.watching:
            raise PermissionError(point)
        if verdict["decision"] != "transform" or self.watching:
            return target
        path, value = verdict["transform"]["path"], verdict["transform"]["value"]
        return value if path == "$target" else {**target, path.removeprefix("$target."): value}

    async def run(self, text="hi", commands=("ls",), answer="done", startup=True):
        """One run; returns the answer, or the point that was denied."""
        try:
            if startup:
                init = {"tools_registered": ["shell"]}
                await self.emit("agent_startup", init, agent_init=init)
            given = {"content": text, "role": "user"}
            given = await self.emit("input", given, input=given)
            messages = [
                {"role": "system", "content": "You are a coder."},
                {"role": "user", "content": given["content"]},
            ]
            calls = [{"id": f"c{n}", "name": "shell", "args": {"command": c}} for n, c in enumerate(commands)]
            for turn in [*[[call] for call in calls], []]:
                sent = await self.emit("pre_model_call", messages, messages=messages, model={"id": "m"})
                self.sent = sent
                response = {"content": None if turn else answer, "tool_calls": turn, "finish_reason": "stop"}
                usage = {"prompt_tokens": 3, "completion_tokens": 2}
                await self.emit(
                    "post_model_call", response, response=response, model={"id": "m"}, usage=usage
                )
                for call in turn:
                    messages.append({"role": "tool", "content": await self.call(call)})
            output = await self.emit("output", {"content": answer}, output={"content": answer})
            return output["content"]
        except PermissionError as error:
            return f"denied at {error}"
        finally:
            summary = {"reason": "completed"}
            await self.emit("agent_shutdown", summary, summary=summary)

    async def call(self, call):
        try:
            args = await self.emit("pre_tool_call", call["args"], tool_call=call)
        except PermissionError:
            return f"error: {self.verdicts[-1][1]['message']}"
        self.ran.append(args["command"])
        failed = args["command"] == "fail"
        value = "went wrong" if failed else f"output of {args['command']}"
        try:
            return await self.emit(
                "post_tool_call",
                value,
                tool_call={**call, "args": args},
                tool_result={"value": value, "is_error": failed, "duration_ms": 5},
            )
        except PermissionError:
            return f"error: {self.verdicts[-1][1]['message']}"

    def of(self, point):
        return [verdict for name, verdict in self.verdicts if name == point]


class Hooks:
    """Answers by timing, and the order in which timings fired."""

    def __init__(self, **answers):
        self.answers = answers
        self.fired = []
        self.events = []

    @hookimpl
    def on_outcome(self, event):
        self.fired.append(event.of)
        self.events.append(event.after)

    def _say(self, event):
        answer = self.answers.get(event.timing)
        return answer(event) if callable(answer) else answer


def _hook(timing):
    def hook(self, event):
        return self._say(event)

    hook.__name__ = timing
    return hookimpl(hook)


for _timing in (
    "on_session_start",
    "on_message_received",
    "on_user_prompt_submit",
    "system_prompt",
    "on_event",
    "on_model_response",
    "on_tool_call_start",
    "pre_tool_execution",
    "post_tool_execution",
    "on_turn_complete",
):
    setattr(Hooks, _timing, _hook(_timing))


def drive(hooks, watching=False, **about):
    host = TheirHost(Guest(Engine([hooks])), watching)
    return host, asyncio.run(host.run(**about))


def test_hooks_see_their_timings_in_their_order():
    hooks = Hooks()
    host, said = drive(hooks, commands=["ls"])
    assert said == "done" and host.ran == ["ls"]
    assert hooks.fired == [
        *("on_session_start", "on_message_received", "on_user_prompt_submit", "on_turn_start"),
        *("system_prompt", "on_event", "on_model_response"),
        *("on_tool_call_start", "pre_tool_execution", "post_tool_execution"),
        *("system_prompt", "on_event", "on_model_response"),
        *("on_turn_complete", "post_turn", "on_session_end"),
    ]
    assert {verdict["decision"] for _, verdict in host.verdicts} == {"allow"}
    first = hooks.events[0]
    assert (first.session_id, first.agent, first.host) == ("s1", "coder", "theirs")
    complete = next(event for event in hooks.events if isinstance(event, events.TurnComplete))
    assert complete.usage == {"input_tokens": 6, "output_tokens": 4}
    assert complete.tool_calls[0]["duration"] == 0.005 and complete.tool_calls[0]["status"] == "ok"


@pytest.mark.parametrize(
    ("timing", "answer", "said"),
    [
        ("on_session_start", Block("no"), "denied at agent_startup"),
        ("on_message_received", Block("no"), "denied at input"),
        ("on_message_received", Reply("instead"), "denied at input"),
        ("on_user_prompt_submit", Block("no"), "denied at input"),
        ("on_event", Block("no"), "denied at pre_model_call"),
        ("on_model_response", Block("no"), "denied at post_model_call"),
        ("on_turn_complete", Block("no"), "denied at output"),
    ],
)
def test_a_no_at_each_timing(timing, answer, said):
    hooks = Hooks(**{timing: answer})
    host, outcome = drive(hooks)
    assert outcome == said
    assert hooks.fired.count("on_session_end") == 1
    assert next(verdict for _, verdict in host.verdicts if verdict["decision"] == "deny")[
        "reason"
    ].startswith("hookturn:")


def test_calls_that_hooks_refuse_reply_to_or_ask_about():
    def decide(event):
        return {
            "rm": Deny("no deletes", advice="move it"),
            "cached": Reply("from the cache"),
            "push": Ask("sure?"),
            "fine": Allow(),
        }.get(event.args["command"])

    host, said = drive(Hooks(pre_tool_execution=decide), commands=["rm", "cached", "push", "fine"])
    assert said == "done" and host.ran == ["fine"]
    deny, reply, ask, allow = host.of("pre_tool_call")
    assert deny["decision"] == "deny" and "no deletes" in deny["message"] and "move it" in deny["message"]
    assert reply == {"decision": "deny", "reason": "hookturn:reply", "message": "from the cache"}
    assert ask["approval"] == {} and ask["decision"] == "deny" and ask["message"] == "sure?"
    assert allow == {"decision": "allow"}


def test_rewrites_travel_back():
    hooks = Hooks(
        on_message_received=Rewrite("hello"),
        on_model_response=lambda event: Rewrite(event.text.upper()) if event.text else None,
        pre_tool_execution=Rewrite(args={"command": "pwd"}),
        post_tool_execution=Rewrite("hidden"),
        on_turn_complete=Rewrite("over"),
    )
    host, said = drive(hooks)
    assert said == "over" and host.ran == ["pwd"]
    assert host.of("input")[0]["transform"] == {"path": "$target.content", "value": "hello"}
    assert host.of("post_model_call")[1]["transform"]["value"] == "DONE"
    assert host.of("post_tool_call")[0]["transform"] == {"path": "$target", "value": "hidden"}


def test_injected_texts_reach_the_model_and_warnings_the_record():
    hooks = Hooks(
        on_user_prompt_submit=Inject("in a hurry"),
        system_prompt=lambda event: [Inject("one line"), Warn("long prompt")],
        post_tool_execution=Inject("mind the output"),
    )
    host, _ = drive(hooks)
    first, second = host.of("pre_model_call")
    assert [item["content"] for item in first["transform"]["value"]] == [
        "You are a coder.",
        "one line",
        "in a hurry",
        "hi",
    ]
    texts = [item["content"] for item in second["transform"]["value"]]
    assert texts[:4] == ["You are a coder.", "one line", "in a hurry", "mind the output"]
    host, _ = drive(Hooks(system_prompt=lambda event: Rewrite(["Another."])))
    assert [item["content"] for item in host.sent if item["role"] == "system"] == ["Another."]
    host, _ = drive(Hooks(on_event=Warn("careful")))
    assert host.of("pre_model_call")[0]["warnings"] == [{"reason": "hookturn:warning", "message": "careful"}]


def test_a_result_can_be_withheld_and_a_failure_is_told():
    hooks = Hooks(post_tool_execution=lambda event: Deny("tainted") if event.status == "ok" else None)
    host, said = drive(hooks, commands=["ls", "fail"])
    assert said == "done"
    denied, failed = host.of("post_tool_call")
    assert denied["decision"] == "deny" and "tainted" in denied["message"] and failed == {"decision": "allow"}
    ended = [event for event in hooks.events if isinstance(event, events.PostToolExecution)]
    assert [(event.status, event.error) for event in ended] == [("ok", ""), ("error", "went wrong")]


def test_content_that_is_more_than_text_is_json_to_hooks():
    hooks = Hooks(on_turn_complete=lambda event: Rewrite(event.text.replace("s3cret", "***")))
    rich = [{"role": "assistant", "content": "s3cret"}]
    _, said = drive(hooks, answer=rich)
    assert said == [{"role": "assistant", "content": "***"}]
    _, said = drive(Hooks(on_turn_complete=Rewrite("no JSON at all")), answer=rich)
    assert said == "denied at output"


def test_a_host_that_only_watches_goes_on():
    def decide(event):
        return Deny("no")

    hooks = Hooks(on_message_received=Block("no"), pre_tool_execution=decide, on_model_response=Block("no"))
    host, said = drive(hooks, watching=True)
    assert said == "done" and host.ran == ["ls"]
    assert hooks.fired.count("on_session_end") == 1


def test_a_host_that_opens_its_sessions_elsewhere():
    hooks = Hooks()
    _, said = drive(hooks, startup=False)
    assert said == "done" and hooks.fired[0] == "on_session_start"


def test_several_turns_and_sessions():
    hooks = Hooks()
    guest = Guest(Engine([hooks]))

    async def both():
        hosts = [TheirHost(guest), TheirHost(guest)]
        for number, host in enumerate(hosts):
            host.name = number
        first, second = hosts
        init = {"tools_registered": []}
        await first.emit("agent_startup", init, agent_init=init)
        for text in ("one", "two"):
            given = {"content": text, "role": "user"}
            await first.emit("input", given, input=given)
            messages = [{"role": "user", "content": text}]
            await first.emit("pre_model_call", messages, messages=messages, model={"id": "m"})
        return await second.run(startup=False)

    assert asyncio.run(both()) == "done"
    prompts = [event.prompt for event in hooks.events if isinstance(event, events.UserPromptSubmit)]
    assert prompts == ["one", "two", "hi"]
    assert hooks.fired.count("on_turn_complete") == 3
