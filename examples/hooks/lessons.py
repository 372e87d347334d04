"""Remember in one session what failed in another: the commands that failed most are told at the start."""

from __future__ import annotations

from hookturn import Context, Inject, events, hookimpl

TOLD = 3


@hookimpl(tools=["bash"])
def post_tool_execution(event: events.PostToolExecution, ctx: Context) -> None:
    program = event.command.split()[:1]
    if event.status == "error" and program:
        with ctx.store as store:  # locked over all sessions of the project
            failed = store.setdefault("failed", {})
            failed[program[0]] = failed.get(program[0], 0) + 1


@hookimpl
def on_session_start(ctx: Context) -> Inject | None:
    failed = ctx.store.get("failed", {})
    worst = sorted(failed, key=failed.__getitem__, reverse=True)[:TOLD]
    return Inject(f"These commands often failed here: {', '.join(worst)}.") if worst else None
