"""Right uses: both type checkers must be silent here (see test_typing.py)."""

from __future__ import annotations

from collections.abc import Sequence

from hookturn import (
    Allow,
    Answer,
    Ask,
    Block,
    Context,
    Continue,
    Deny,
    Inject,
    Recover,
    Reply,
    Rewrite,
    SetEnv,
    Warn,
    events,
    hookimpl,
)


@hookimpl.on_session_start
def start(event: events.SessionStart) -> list[Inject | SetEnv] | None:
    return [Inject(event.model), SetEnv({"CI": "1"})] if event.source == "startup" else None


@hookimpl.on_message_received(priority=10)
def received(event: events.MessageReceived) -> Rewrite | Reply:
    return Rewrite(event.text.strip()) if event.text else Reply("Say something.")


@hookimpl.on_user_prompt_submit(tryfirst=True)
def submit(event: events.UserPromptSubmit, ctx: Context) -> Block | None:
    return Block("empty") if not event.prompt else None


@hookimpl.on_turn_start()
async def turn_start(event: events.TurnStart, ctx: Context) -> None:
    ctx.state.set("calls", event.turn)


@hookimpl.system_prompt
def prompt(event: events.SystemPrompt) -> Rewrite:
    return Rewrite([*event.parts, "Be brief."])


@hookimpl.on_model_response
async def response(event: events.ModelResponse) -> Block | Inject | None:
    return Block("too many calls") if len(event.tool_calls) > 20 else None


@hookimpl.on_tool_call_start(tools=["bash", "mcp__git__*"])
def call_start(event: events.ToolCallStart) -> Ask | Deny | None:
    return Ask("Really?") if event.paths else None


@hookimpl.pre_tool_execution(guard=True, tools=["bash"], on_failure="deny")
def pre(event: events.PreToolExecution, ctx: Context) -> Deny | None:
    return Deny("no", advice="ask first") if "rm -rf" in event.command else None


@hookimpl.post_tool_execution(timeout=2.5)
def post(event: events.PostToolExecution) -> Sequence[Rewrite | Warn]:
    return [Rewrite(result_text=event.result_text[:100]), Warn("cut")]


@hookimpl.on_turn_complete(trylast=True)
def complete(event: events.TurnComplete) -> Continue | None:
    return Continue("Run the tests.") if event.edited_files else None


@hookimpl.post_turn
def post_turn() -> None: ...


@hookimpl.on_error
def error(event: events.Error) -> Recover:
    return Recover("retry", attempts=3)


@hookimpl.on_session_end
def end(ctx: Context) -> None:
    ctx.log.info("over")


@hookimpl.on_event(event_types=["session.idle"])
def other(event: events.Event) -> Answer | None:
    return None


@hookimpl.on_permission_request
def permission(event: events.PermissionRequest) -> Allow:
    return Allow(f"{event.identity} is fine")


@hookimpl.on_outcome(mode="monitor")
def outcome(event: events.OutcomeEvent) -> None: ...


@hookimpl.on_load
def load(ctx: Context) -> None: ...


@hookimpl.on_dispose()
async def dispose() -> None: ...


class Plugin:
    """The same as methods, and under the timings' own names."""

    @hookimpl.on_load
    def on_load(self, ctx: Context) -> None: ...

    @hookimpl.pre_tool_execution
    def first(self, event: events.PreToolExecution) -> Deny | Allow | None:
        return None

    @hookimpl.post_tool_execution(tools=["bash"])
    async def second(self, event: events.PostToolExecution, ctx: Context) -> Inject | None:
        return Inject(ctx.config["words"])

    @hookimpl.on_tool_call_start
    def third(self, event: events.ToolEvent) -> None:
        """A hook may take a wider event than its timing's."""

    @hookimpl.on_session_end
    def fourth(self) -> None: ...

    @hookimpl.on_session_start
    async def fifth(self, ctx: Context) -> None: ...

    @staticmethod
    @hookimpl.on_turn_start
    def sixth(event: events.TurnStart) -> Inject:
        return Inject("hello")

    @hookimpl(guard=True, tools=["bash"], priority=3)
    def pre_tool_execution(self, event: events.PreToolExecution, ctx: Context) -> Deny | None:
        return None

    @hookimpl
    async def on_error(self, event: events.Error) -> Recover | None:
        return None


# The plain decorator leaves a function's type alone; the typed ones leave it callable.
def direct(plugin: Plugin, event: events.PreToolExecution, ctx: Context) -> tuple[str, list[str]]:
    denied: Deny | None = plugin.pre_tool_execution(event, ctx)
    plugin.first(event)
    return denied.reason if denied else event.command, event.paths
