"""Turns an outcome into the record that the trail keeps, secrets taken out."""

from __future__ import annotations

import os
from hmac import digest
from time import gmtime, strftime, time

from hookturn import redact
from hookturn.spec.record import jsonable

from .chain import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hookturn.events import Event, OutcomeEvent

SCHEMA = 1

_MARGIN = 4096  # a cut moves on to the next blank within this, so that no secret is halved

# What is kept of events that are no tool calls: facts, and what is their payload.
_KEPT: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {
    "on_session_start": (("source", "model", "provider"), ()),
    "on_message_received": (("origin",), ("text",)),
    "on_user_prompt_submit": ((), ("prompt",)),
    "on_turn_start": (("phase",), ()),
    "system_prompt": ((), ("parts",)),
    "on_model_response": (("stop_reason",), ("text",)),
    "on_turn_complete": ((), ("text",)),
    "post_turn": ((), ("text",)),
    "on_error": (("error_type", "phase", "hook", "tool", "call_id"), ("message",)),
    "on_session_end": (("reason",), ()),
    "on_event": (("type",), ("properties",)),
}
_COMMON = frozenset(
    [
        "session_id", "agent", "agent_id", "parent_agent", "cwd", "turn", "time", "host", "raw", "dry_run", "extra",
        "type", "properties", "accepts",
    ]
)  # fmt: skip


class Recorder:
    """Makes records.

    Parameters:
        key: the workspace's key: equal secrets get equal marks, and hashes of payloads cannot be guessed.
        payloads: ``full``, or ``hash`` for length and keyed hash only, of hooks' words, too.
        max_chars: characters of a text that are kept; the rest is counted and hashed.
    """

    __slots__ = ("_names", "_second", "_stamp", "key", "max_chars", "payloads")

    def __init__(self, key: bytes, payloads: str, max_chars: int) -> None:
        self.key = key
        self.payloads = payloads
        self.max_chars = max_chars
        self._names: dict[str, str] = {}
        self._second = -1
        self._stamp = ""

    def make(self, event: OutcomeEvent) -> dict[str, Any]:
        """Return the record of a decided timing."""
        before, after, out = event.before, event.after, event.outcome
        timing = before.timing
        record: dict[str, Any] = {
            "schema": SCHEMA,
            "id": new_id(),
            "time": self._time(event.time),
            "timing": timing,
            "session_id": self._name(event.session_id),
            "agent": self._name(event.agent),
            "turn": event.turn,
            "host": event.host,
            "decision": out.decision,
            "by": out.by,
            "reason": self._words(out.reason),
            "hooks": [self._hook(item) for item in out.hooks if item.answers or item.error],
            "failures": [self._failure(item) for item in out.failures],
        }
        if event.agent_id:
            record["agent_id"] = self._name(event.agent_id)
            record["parent_agent"] = self._name(event.parent_agent)
        tool = getattr(before, "tool", None)
        if isinstance(tool, str) and hasattr(before, "args"):
            record["tool"] = tool
            record["call_id"] = before.call_id
            record["kind"] = before.kind
            record["args"] = self.payload(before.args)
            if timing == "post_tool_execution":
                self._ended(record, before)
        else:
            record["event"] = self._event(before, timing)
        if out.hooks or out.decision is not None:
            self._said(record, out, after)
        return record

    def _name(self, text: str) -> str:
        """An id or a name: kept as it is, but for a secret in it. Few of them come again and again."""
        known = self._names.get(text)
        if known is None:
            from hookturn.redact import redact

            if len(self._names) > 1000:
                self._names.clear()
            known = self._names[text] = redact(text, self.key)
        return known

    def _ended(self, record: dict[str, Any], event: Any) -> None:
        record["status"] = event.status
        record["duration"] = jsonable(round(event.duration, 6))
        if event.result is not None:
            record["result"] = self.payload(event.result)
        if event.error:
            record["error"] = self.payload(event.error)
        if not record["by"]:
            # Who denied or replied before the tool ran.
            record["by"] = event.by
            record["reason"] = self._words(event.reason)

    def _event(self, event: Event, timing: str) -> dict[str, Any]:
        kept = _KEPT.get(timing)
        if kept is None:  # a framework's own timing
            kept = ((), tuple(name for name in event._fields if name not in _COMMON))
        facts, payloads = kept
        return {
            **{name: self._plain(getattr(event, name)) for name in facts},
            **{name: self.payload(getattr(event, name)) for name in payloads},
        }

    def _said(self, record: dict[str, Any], out: Any, after: Event) -> None:
        """Add what hooks did beside the decision; nothing where they did nothing."""
        if out.message:
            record["message"] = self._words(out.message)
        if out.code:
            record["code"] = self._words(out.code)
        if out.rewrites:
            record["rewrites"] = [
                {
                    "by": item.by,
                    "field": item.field,
                    "before": self.payload(item.before),
                    "after": self.payload(item.after),
                }
                for item in out.rewrites
            ]
        if out.replied:
            record["reply"] = self.payload(out.reply)
        if out.injected:
            record["injected"] = self.payload(list(out.injected))
        if out.warnings:
            record["warnings"] = [self._words(text) for text in out.warnings]
        if out.continue_reason:
            record["continue_reason"] = self._words(out.continue_reason)
        if out.env:
            record["env"] = sorted(out.env)  # names only: values of variables are secrets as often as not
        if out.recover is not None:
            record["recover"] = self.payload(out.recover)
        if out.overruled:
            record["overruled"] = [
                {"by": name, "decision": decision, "reason": self._words(reason)}
                for name, decision, reason in out.overruled
            ]

    def _hook(self, item: Any) -> dict[str, Any]:
        result: dict[str, Any] = {"name": item.name, "source": item.source}
        if item.answers:
            result["answer"] = [type(answer).__name__ for answer in item.answers]
        if item.error:
            result["error"] = self._words(item.error)
        if item.would:
            result["would"] = [self.payload(answer) for answer in item.answers]
        if item.why:
            result["why"] = self._words(item.why)
        return result

    def _failure(self, item: Any) -> dict[str, Any]:
        return {
            "hook": item.hook,
            "plugin": item.plugin,
            "distribution": item.distribution,
            "error_type": item.error_type,
            "message": self._words(item.message),
            "elapsed": round(item.elapsed, 6),
        }

    def payload(self, value: Any) -> Any:
        """Return what a record holds of a payload: the data without secrets, or its length and hash."""
        if self.payloads == "hash":
            plain = jsonable(value)
            return self._hashed(plain if isinstance(plain, str) else canonical(plain))
        return self._plain(value)

    def _plain(self, value: Any) -> Any:
        return redact.redact_value(self._short(jsonable(value)), self.key)

    def _words(self, text: str) -> str:
        """Return a hook's own words without secrets; they may quote a payload, so with ``hash`` none of them."""
        if not text:
            return ""
        if self.payloads == "hash":
            rest = self._hashed(text)
            return f"[{rest['chars']} characters, hmac {rest['hmac']}]"
        return redact.redact(self._cut(text), self.key)

    def _short(self, value: Any) -> Any:
        if value.__class__ is str:
            return self._cut(value) if len(value) > self.max_chars else value
        if value.__class__ is dict:
            return {name: self._short(item) for name, item in value.items()}
        if value.__class__ is list:
            return [self._short(item) for item in value]
        return value

    def _cut(self, text: str) -> str:
        if len(text) <= self.max_chars:
            return text
        end = self.max_chars
        last = min(len(text), end + _MARGIN)
        while end < last and not text[end].isspace():
            end += 1
        rest = self._hashed(text)
        return f"{text[:end]}... [{rest['chars'] - end} more characters, hmac {rest['hmac']}]"

    def _hashed(self, text: str) -> dict[str, Any]:
        return {
            "chars": len(text),
            "hmac": digest(self.key, text.encode("utf-8", "surrogatepass"), "sha256").hex(),
        }

    def _time(self, seconds: float) -> str:
        """RFC 3339 with milliseconds; the part up to the second is made once a second."""
        try:
            whole, milli = divmod(int(seconds * 1000), 1000)
            if whole != self._second:
                self._stamp, self._second = strftime("%Y-%m-%dT%H:%M:%S", gmtime(whole)), whole
        except (ValueError, OverflowError, OSError):  # no time that a calendar has
            return "1970-01-01T00:00:00.000Z"
        return f"{self._stamp}.{milli:03d}Z"


def new_id() -> str:
    """Return a record's id: 32 hexadecimal digits, sorted by time (the layout of a UUID, version 7)."""
    random = os.urandom(10).hex()
    return f"{int(time() * 1000) & 0xFFFFFFFFFFFF:012x}7{random[:3]}{'89ab'[int(random[3], 16) & 3]}{random[4:19]}"
