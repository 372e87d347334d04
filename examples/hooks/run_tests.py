"""Do not let a turn end that changed code and ran no tests."""

from __future__ import annotations

from hookturn import Context, Continue, events, hookimpl


@hookimpl
def on_turn_start(ctx: Context) -> None:
    ctx.state.set("tested", False)


@hookimpl(tools=["bash"])
def post_tool_execution(event: events.PostToolExecution, ctx: Context) -> None:
    if event.status == "ok" and "pytest" in event.command:
        ctx.state.set("tested", True)


@hookimpl
def on_turn_complete(event: events.TurnComplete, ctx: Context) -> Continue | None:
    code = [path for path in event.edited_files if path.endswith(".py")]
    if code and not ctx.state.get("tested") and not event.continued:
        return Continue("You changed code and ran no tests: run pytest.")
    return None
