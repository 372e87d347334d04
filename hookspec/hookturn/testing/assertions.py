"""Assertions on what comes out of an engine, whose messages name the hooks, their answers and their failures.

They take an Outcome and what a session's methods return: Prompt, Response,
Call, ToolResult and End. A hook that failed makes each of them fail, since an
agent goes on when a hook fails: a test must not pass because its hook crashed.
Tests of failing hooks say ``failures=True``.
"""

from __future__ import annotations

from ..engine.outcome import Outcome
from ..engine.results import Call, End, Prompt, Response, ToolResult
from ..spec.answers import Rewrite
from ..spec.events import Event, PostToolExecution
from ..spec.timings import TIMINGS
from .agent import Run

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from re import Pattern
    from typing import Any, NoReturn

    Result = Outcome | Prompt | Response | Call | ToolResult | End

_MISSING = object()
_LIMIT = 300  # characters of one value in a message


class _Seen:
    """A result of any kind, in the words of an Outcome."""

    def __init__(self, result: Any) -> None:
        self.result = result
        self.decision: str | None = None
        self.by = ""
        self.words = ""
        self.reply: Any = _MISSING
        self.injected: Sequence[str] = ()
        self.warnings: Sequence[str] = ()
        self.again = ""
        self.outcomes: list[Outcome] = []
        if isinstance(result, Outcome):
            self.outcomes = [result]
            self.decision, self.by = result.decision, result.by
            self.words = f"{result.reason}\n{result.message}"
            self.again = result.continue_reason
            self.injected = result.injected
            if result.replied:
                self.reply = result.reply
        elif isinstance(result, Prompt):
            self.outcomes = result.outcomes
            self._blocked(result.blocked_by, result.message)
            self.injected = result.injected
            if result.replied:
                self.reply = result.reply
        elif isinstance(result, Response):
            self.outcomes = [result.outcome]
            self._blocked(result.blocked_by, result.message)
            self.injected = result.outcome.injected
        elif isinstance(result, Call):
            self.outcomes = result.outcomes
            self.decision, self.by = result.decision, result.denied_by
            self.words = f"{result.reason}\n{result.message}"
            for out in result.outcomes:
                if not self.by and out.decision == result.decision:
                    self.by = out.by
            if result.replied:
                self.reply = result.reply
        elif isinstance(result, ToolResult):
            self.outcomes = [result.outcome] if result.outcome is not None else []
            if result.denied_by:
                self.decision, self.by, self.words = "deny", result.denied_by, str(result.value)
            self.injected = result.injected
            if result.status == "replied":
                self.reply = result.value
        elif isinstance(result, End):
            self.outcomes = [result.outcome]
            self._blocked(result.blocked_by, result.text)
            self.again = result.again or ""
            self.injected = result.outcome.injected
        elif isinstance(result, Run):
            self.outcomes = result.outcomes
            self.injected = result.read
        elif isinstance(result, (list, tuple)) and all(isinstance(text, str) for text in result):
            self.injected = result
        else:
            raise TypeError(
                "expected an Outcome, or a Prompt, Response, Call, ToolResult or End of a session, "
                f"got {type(result).__name__}"
            )
        self.warnings = getattr(result, "warnings", ())

    def _blocked(self, by: str, words: str) -> None:
        if by:
            self.decision, self.by, self.words = "block", by, words

    @property
    def replied(self) -> bool:
        return self.reply is not _MISSING

    def decided(self) -> str:
        """Say what was decided."""
        if self.replied:
            return f"a hook replied {_short(self.reply)}"
        if self.decision is None:
            return "nothing was decided"
        return f"{self.decision} by {self.by!r}: {self.words.strip().splitlines()[0] if self.words.strip() else ''}"

    def fail(self, expected: str, but: str) -> NoReturn:
        """Raise an AssertionError that shows what the hooks did."""
        __tracebackhide__ = True
        lines = [f"expected {expected}", f"     but {but}"]
        if not isinstance(self.result, (list, tuple)):
            lines.append(f"      of {_named(self.result)}")
        for out in self.outcomes:
            lines.append(f"      at {out.timing}, {_brief(out.event)}")
            for record in out.hooks:
                said = record.error or ", ".join(map(_brief, record.answers))
                if said:
                    said += f" ({record.why})" if record.why else ""
                elif record.matched:
                    said = record.why or "no opinion"
                else:
                    said = f"not called: {record.why}"
                lines.append(f"         - {record.name} ({record.tier} {record.priority}): {said}")
            if not out.hooks:
                hint = " (fire(event, measure=True) tells why)" if self.result is out else ""
                lines.append(f"         no hook answered{hint}")
            for failure in out.failures:
                lines.append(
                    f"         ! {failure.hook} failed: {failure.error_type}: {failure.message}{_where(failure)}"
                )
        if not self.outcomes and isinstance(self.result, (Call, ToolResult)):
            lines.append("         no hook listened")
        raise AssertionError("\n".join(lines))

    def no_failures(self, expected: str) -> None:
        """Fail when a hook failed."""
        __tracebackhide__ = True
        failed = list(dict.fromkeys(failure.hook for out in self.outcomes for failure in out.failures))
        if failed:
            self.fail(expected, f"{' and '.join(map(repr, failed))} failed (failures=True if that is meant)")


def _named(result: Any) -> str:
    if isinstance(result, Call):
        ended = f", which is over: {result.result.status}" if result.result is not None else ""
        return f"the call {result.call_id!r} of {result.tool}{ended}"
    if isinstance(result, ToolResult):
        return f"the call {result.call_id!r} of {result.tool}, which is over: {result.status}"
    return _short(result)


def _short(value: object, limit: int = _LIMIT) -> str:
    text = repr(value)
    return text if len(text) <= limit else f"{text[:limit]}..."


def _brief(record: Any) -> str:
    """An event or answer with only those fields that say something of it."""
    if isinstance(record, Rewrite):
        return _short(record)
    common = Event._fields if isinstance(record, Event) and type(record) is not Event else ()
    given = ((name, getattr(record, name)) for name in record._fields if name not in common)
    fields = ", ".join(f"{name}={value!r}" for name, value in given if value not in ("", None, [], {}))
    text = f"{type(record).__name__}({fields})"
    return text if len(text) <= _LIMIT else f"{text[:_LIMIT]}..."


def _where(failure: Any) -> str:
    """Where in the hook's own code it failed."""
    trace = getattr(failure.exception, "__traceback__", None)
    if trace is None:
        return ""
    while trace.tb_next is not None:
        trace = trace.tb_next
    return f" ({trace.tb_frame.f_code.co_filename}:{trace.tb_lineno})"


def _has(words: str, wanted: str | Pattern[str]) -> bool:
    return wanted in words if isinstance(wanted, str) else wanted.search(words) is not None


def _see(result: Any, expected: str, failures: bool) -> _Seen:
    __tracebackhide__ = True
    seen = _Seen(result)
    if not failures:
        seen.no_failures(expected)
    return seen


def denied_by(
    result: Result,
    name: str | None = None,
    *,
    reason: str | Pattern[str] | None = None,
    failures: bool = False,
) -> None:
    """Assert that it was denied or blocked.

    Parameters:
        result: an Outcome, or what a session's method returned.
        name: who did it: the hook's name (its plugin's), or ``rule <text>``; None for anybody.
        reason: a part of the reason or advice, or a compiled pattern.
        failures: hooks may have failed.
    """
    __tracebackhide__ = True
    expected = f"denied by {name!r}" if name else "denied"
    if reason is not None:
        expected += f" with the reason {reason if isinstance(reason, str) else reason.pattern!r}"
    seen = _see(result, expected, failures)
    if seen.decision not in ("deny", "block") or (name is not None and seen.by != name):
        seen.fail(expected, seen.decided())
    if reason is not None and not _has(seen.words, reason):
        seen.fail(expected, f"the words are {_short(seen.words.strip())}")


def asked_by(
    result: Outcome | Call,
    name: str | None = None,
    *,
    reason: str | Pattern[str] | None = None,
    failures: bool = False,
) -> None:
    """Assert that a person must say yes first (see ``denied_by`` for the parameters)."""
    __tracebackhide__ = True
    expected = f"asked by {name!r}" if name else "asked"
    seen = _see(result, expected, failures)
    asked = [out for out in seen.outcomes if out.decision == "ask" and name in (None, out.by)]
    if not asked:
        seen.fail(expected, seen.decided())
    if reason is not None and not any(_has(out.reason, reason) for out in asked):
        seen.fail(expected, f"the words are {_short(asked[0].reason)}")


def allowed(result: Result, by: str | None = None, *, failures: bool = False) -> None:
    """Assert that nothing stands in the way: no deny, block, ask or reply.

    Parameters:
        result: an Outcome, or what a session's method returned.
        by: who said Allow; None also for no opinion.
        failures: hooks may have failed.
    """
    __tracebackhide__ = True
    expected = f"allowed by {by!r}" if by else "allowed"
    seen = _see(result, expected, failures)
    if seen.replied or seen.decision not in (None, "allow"):
        seen.fail(expected, seen.decided())
    if by is not None and (seen.decision != "allow" or seen.by != by):
        seen.fail(expected, seen.decided())


def replied(result: Result, *value: Any, failures: bool = False) -> None:
    """Assert that a hook answered instead of the model or the tool.

    Parameters:
        result: an Outcome, or what a session's method returned.
        value: the reply; left out, any will do.
        failures: hooks may have failed.
    """
    __tracebackhide__ = True
    expected = f"the reply {_short(value[0])}" if value else "a reply"
    seen = _see(result, expected, failures)
    if not seen.replied or (value and seen.reply != value[0]):
        seen.fail(expected, seen.decided())


def rewritten_to(
    result: Result, *value: Any, by: str | None = None, failures: bool = False, **fields: Any
) -> None:
    """Assert that a hook rewrote the event, and what came of it.

    Parameters:
        result: an Outcome, or what a session's method returned.
        value: the new value of the timing's main field (the text, the arguments, the result, ...).
        by: the name of a hook that rewrote it; None for anybody.
        failures: hooks may have failed.
        fields: new values of other fields or views: ``command``, ``path``, ``result_text``.
    """
    __tracebackhide__ = True
    if len(value) > 1 or not (value or fields):
        raise TypeError("rewritten_to takes one value, or fields by name")
    wanted = dict(fields)
    seen = _see(result, "rewritten", failures)
    if value:
        wanted[_main_field(seen)] = value[0]
    expected = f"rewritten to {', '.join(f'{name}={_short(item)}' for name, item in wanted.items())}"
    if by is not None:
        expected += f" by {by!r}"
    names = [change.by for out in seen.outcomes for change in out.rewrites]
    # A ToolResult does not know who rewrote the arguments; its values tell.
    knows = not isinstance(result, ToolResult) or bool({"result", "result_text"} & wanted.keys())
    if knows and not names:
        seen.fail(expected, "no hook rewrote anything")
    if by is not None and by not in names:
        seen.fail(expected, f"it was rewritten by {', '.join(map(repr, names)) or 'nobody known'}")
    for name, item in wanted.items():
        actual = _value(seen, name)
        if actual != item and not (name == "path" and _same_path(seen, item, actual)):
            seen.fail(expected, f"{name} is {_short(actual)}")


def _main_field(seen: _Seen) -> str:
    if isinstance(seen.result, ToolResult):
        return "result"
    if isinstance(seen.result, Call):
        return "args"
    if not isinstance(seen.result, Outcome):
        return "text"
    timing = TIMINGS.get(seen.result.timing)
    if timing is not None:
        return timing.main
    # A framework's own timing: the field that a hook wrote.
    return seen.result.rewrites[-1].field if seen.result.rewrites else "value"


def _event(seen: _Seen) -> Any:
    """The event with the final values."""
    result = seen.result
    if isinstance(result, ToolResult) and result.outcome is None:
        return PostToolExecution(tool=result.tool, args=dict(result.args), result=result.value)
    if isinstance(result, Call):
        # The last outcome may be that of the permission request, which has the same arguments.
        return result.outcomes[-1].event
    return seen.outcomes[-1].event


def _value(seen: _Seen, name: str) -> Any:
    __tracebackhide__ = True
    result = seen.result
    if name == "text" and isinstance(result, (Prompt, Response, End)):
        return result.text
    if name == "args" and isinstance(result, (Call, ToolResult)):
        return result.args
    if name == "result" and isinstance(result, ToolResult):
        return result.value
    event = _event(seen)
    if name == "path":
        return event.paths[0] if event.paths else ""
    found = getattr(event, name, _MISSING)
    if found is _MISSING:
        seen.fail(f"rewritten to {name}=...", f"{type(event).__name__} has no field {name!r}")
    return found


def _same_path(seen: _Seen, wanted: Any, actual: str) -> bool:
    from os.path import join, normpath

    return isinstance(wanted, str) and normpath(join(_event(seen).cwd, wanted)) == actual


def injected(
    result: Result | Run | Sequence[str], text: str | Pattern[str], *, failures: bool = False
) -> None:
    """Assert that the model gets a text.

    Parameters:
        result: an Outcome, what a session's method returned (the parts of a system prompt included), or a Run.
        text: a part of one of the texts, or a compiled pattern.
        failures: hooks may have failed.
    """
    __tracebackhide__ = True
    expected = f"the injected text {text if isinstance(text, str) else text.pattern!r}"
    seen = _see(result, expected, failures)
    if not any(_has(item, text) for item in seen.injected):
        seen.fail(expected, f"the model gets {_short(list(seen.injected), 1000)}")


def warned(result: Result | Run, text: str | Pattern[str], *, failures: bool = False) -> None:
    """Assert that the user gets a text (see ``injected`` for the parameters)."""
    __tracebackhide__ = True
    expected = f"the warning {text if isinstance(text, str) else text.pattern!r}"
    seen = _see(result, expected, failures)
    if not any(_has(item, text) for item in seen.warnings):
        seen.fail(expected, f"the user gets {_short(list(seen.warnings), 1000)}")


def continued(result: Outcome | End, text: str | Pattern[str] = "", *, failures: bool = False) -> None:
    """Assert that the turn was made to go on.

    Parameters:
        result: the Outcome of on_turn_complete, or an End.
        text: a part of the words to go on with, or a compiled pattern.
        failures: hooks may have failed.
    """
    __tracebackhide__ = True
    expected = f"a turn that goes on with {text if isinstance(text, str) else text.pattern!r}"
    seen = _see(result, expected, failures)
    if not seen.again or not _has(seen.again, text):
        seen.fail(expected, f"the words are {_short(seen.again)}" if seen.again else "the turn ends")


def no_opinion(result: Result, *, failures: bool = False) -> None:
    """Assert that no hook said anything that has an effect.

    Parameters:
        result: an Outcome, or what a session's method returned.
        failures: hooks may have failed.
    """
    __tracebackhide__ = True
    seen = _see(result, "no opinion", failures)
    if seen.decision is not None or seen.replied:
        seen.fail("no opinion", seen.decided())
    for out in seen.outcomes:
        said = [repr(answer) for record in out.hooks if not record.would for answer in record.answers]
        if said:
            seen.fail("no opinion", f"hooks answered {', '.join(said)}")


def no_failures(result: Result | Run) -> None:
    """Assert that no hook failed.

    Parameters:
        result: an Outcome, what a session's method returned, or a Run.
    """
    __tracebackhide__ = True
    _Seen(result).no_failures("no failures")
