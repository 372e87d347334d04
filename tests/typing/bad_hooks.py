"""Wrong uses: each line that ends in ``# error`` must be an error to both type checkers, and no other line."""

from __future__ import annotations

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
    Rewrite,
    events,
    hookimpl,
)


@hookimpl.on_turn_start  # error
def wrong_answer(event: events.TurnStart) -> Allow:
    return Allow()


@hookimpl.on_turn_start  # error
def any_answer(event: events.TurnStart) -> Answer | None:
    return None


@hookimpl.on_tool_call_start  # error
def one_wrong_answer(event: events.ToolCallStart) -> Deny | Rewrite:
    return Deny("no")


@hookimpl.post_tool_execution(tools=["bash"])  # error
def wrong_list(event: events.PostToolExecution) -> list[Continue]:
    return []


@hookimpl.on_session_end  # error
async def wrong_async(event: events.SessionEnd, ctx: Context) -> Block:
    return Block("no")


@hookimpl.pre_tool_execution  # error
def no_answer(event: events.PreToolExecution) -> bool:
    return True


@hookimpl.pre_tool_execution  # error
def wrong_event(event: events.PostToolExecution) -> None: ...


@hookimpl.pre_tool_execution()  # error
def wrong_event_with_ctx(event: events.TurnStart, ctx: Context) -> None: ...


@hookimpl.pre_tool_execution  # error
async def wrong_event_async(event: events.TurnStart) -> None: ...


@hookimpl.on_error  # error
def wrong_parameter_name(error: events.Error) -> Recover | None:
    return None


@hookimpl.on_error  # error
def swapped(event: Context, ctx: events.Error) -> None: ...


@hookimpl.on_error  # error
def extra_parameter(event: events.Error, ctx: Context, more: int) -> None: ...


@hookimpl.on_error  # error
def keyword_only(event: events.Error, *, ctx: Context) -> None: ...


@hookimpl.on_load  # error
def event_in_on_load(event: events.SessionStart) -> None: ...


@hookimpl.on_dispose  # error
def answer_in_on_dispose() -> Inject:
    return Inject("no")


@hookimpl.on_errors  # error
def unknown_timing(event: events.Error) -> None: ...


@hookimpl.on_error(tool=["bash"])  # error
def unknown_option(event: events.Error) -> None: ...


@hookimpl(priority="high")  # error
def on_session_start(event: events.SessionStart) -> None: ...


@hookimpl.on_outcome(on_failure="allow")  # error
def unknown_word(event: events.OutcomeEvent) -> None: ...


class Plugin:
    @hookimpl.on_turn_start  # error
    def wrong_answer(self, event: events.TurnStart) -> Allow | None:
        return None

    @hookimpl.on_permission_request  # error
    async def wrong_async(self, event: events.PermissionRequest) -> Ask:
        return Ask("no")

    @hookimpl.pre_tool_execution(guard=True)  # error
    def wrong_event(self, event: events.TurnStart) -> Deny | None:
        return None

    @hookimpl.pre_tool_execution(guard=True)  # error
    def wrong_event_with_ctx(self, event: events.TurnStart, ctx: Context) -> Deny | None:
        return None

    @hookimpl.pre_tool_execution  # error
    def wrong_ctx(self, event: events.PreToolExecution, ctx: dict[str, str]) -> None: ...
