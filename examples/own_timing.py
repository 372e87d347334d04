"""A framework with a hook timing and an answer of its own: plans are scored, changed or refused by plugins."""

from __future__ import annotations

from hookturn import Answer, Context, Deny, Engine, Rewrite, events, hookimpl, hookspec

# -- the framework -----------------------------------------------------------------------------------


class PlanCreated(events.Event, timing="on_plan_created"):
    """The planner made a plan. ``steps`` is what will be done."""

    steps: list[str]


class Score(Answer):
    """What a hook thinks of a plan, 0 to 10. ``merge`` says that ``out.of(Score)`` lists all of them."""

    merge = "all"
    points: int
    why: str = ""


@hookspec(event=PlanCreated, answers=(Deny, Rewrite, Score), writable=("steps",), since="1.0")
def on_plan_created(event: PlanCreated, ctx: Context) -> Answer | list[Answer] | None:
    """A plan was made, before its first step. Deny refuses it, Rewrite changes it, Score judges it."""


def work(engine: Engine, steps: list[str]) -> str:
    out = engine.fire(PlanCreated(steps=steps))
    if out.denied:
        return f"refused by {out.by}: {out.reason}"
    plan = out.event
    assert isinstance(plan, PlanCreated)
    points = [score.points for score in out.of(Score)]
    return f"{' -> '.join(plan.steps)}   ({sum(points) / len(points):.1f} of 10)"


# -- two plugins, which other people write ---------------------------------------------------------


class Tester:
    @hookimpl(tryfirst=True)
    def on_plan_created(self, event: PlanCreated) -> list[Rewrite | Score] | None:
        if "test" in event.steps:
            return [Score(9)]
        return [Rewrite([*event.steps, "test"]), Score(5, "no tests were planned")]


class Brief:
    @hookimpl
    def on_plan_created(self, event: PlanCreated) -> Deny | Score:
        return Deny("more than four steps") if len(event.steps) > 4 else Score(10 - len(event.steps))


if __name__ == "__main__":
    # A framework's distribution names its specs in the entry point group `hookturn.hookspecs` instead.
    with Engine(plugins=[Brief(), Tester()], hookspecs=[on_plan_created]) as engine:
        print(work(engine, ["read", "fix"]))
        print(work(engine, ["read", "fix", "test"]))
        print(work(engine, ["read", "think", "fix", "think"]))
