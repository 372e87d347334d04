"""How ``fire`` and ``explain`` show an Outcome."""

from __future__ import annotations

from .output import DECISION_STYLES, clean, paint, pairs, say, short, table, value_text

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from ..engine.outcome import HookRecord, Outcome


def outcome_json(outcome: Outcome, pending: str) -> dict[str, Any]:
    """Return the outcome as JSON; ``pending`` is what hooks put into the next system prompt by ``ctx.inject``."""
    return {**outcome.to_json(), "pending": pending}


def show_outcome(outcome: Outcome, pending: str) -> None:
    """Print an outcome: what was decided, what became of the event, and what each hook said."""
    show_result(outcome, pending)
    say()
    show_hooks(list(outcome.hooks))


def show_result(outcome: Outcome, pending: str) -> None:
    """Print the merged result."""
    decision = outcome.decision
    if decision:
        said = f"{paint(decision, DECISION_STYLES.get(decision, ''))} by {short(outcome.by)}"
    elif outcome.replied:
        said = f"reply by {short(outcome.by)}"
    else:
        said = "no decision"
    say(f"{paint(outcome.timing, 'bold')}: {said}")
    rows = [("reason", outcome.reason), ("model reads", outcome.message)]
    rows += [("set aside", f"{decision} by {name}: {reason}") for name, decision, reason in outcome.overruled]
    for change in outcome.rewrites:
        rows.append(
            (f"{change.field}", f"changed by {change.by}\n- {_line(change.before)}\n+ {_line(change.after)}")
        )
    if outcome.replied:
        rows.append(("reply", value_text(outcome.reply)))
    rows += [("injected", text) for text in outcome.injected]
    rows += [("next prompt", pending), ("goes on with", outcome.continue_reason)]
    rows += [("warning", text) for text in outcome.warnings]
    rows += [("environment", f"{name}={value}") for name, value in outcome.env.items()]
    if outcome.recover is not None:
        rows.append(("recover", value_text(outcome.recover.to_json())))
    rows += [
        ("failure", f"{failure.hook}: {failure.error_type}: {failure.message}")
        for failure in outcome.failures
    ]
    pairs(rows)


def _line(value: Any) -> str:
    return clean(value_text(value)[:2000])


def show_hooks(records: list[HookRecord]) -> None:
    """Print a table of hooks in the order in which they were asked."""
    if not records:
        say("  No hook is registered here.")
        return
    table(
        ("tier", "priority", "hook", "source", "micros", "said"),
        [
            (
                record.tier,
                str(record.priority),
                record.name,
                record.source,
                f"{record.micros:.0f}" if record.matched else "",
                said(record),
            )
            for record in records
        ],
        right=("priority", "micros"),
        styles=DECISION_STYLES,
    )


def said(record: HookRecord) -> str:
    """Return what a hook said, or why it was not asked, in one line."""
    if not record.matched:
        return f"not called: {record.why}"
    if record.error:
        return f"failed: {record.error}"
    answer = record.to_json()["answer"]
    if not answer:
        return "no opinion"
    words = "; ".join(
        f"{key}: {value_text(value)}" for key, value in answer.items() if value not in ("", None)
    )
    return f"{words} ({record.why})" if record.why else words
