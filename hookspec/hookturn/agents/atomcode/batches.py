"""``[[async_webhooks]]``: events that are collected and sent together. Nobody waits for them.

A batch goes into the webhook runner's spool when it is full, when its interval is over, at the end of
the session and when the engine closes. Until then its events are kept on the disk, too.
"""

from __future__ import annotations

from threading import Lock, Timer

from ...runners import webhook as runner
from ...runners.wire import NoAnswer
from ...spec.markers import hookimpl
from . import payload
from .kept import Kept
from .wire_webhook import body_of, header_text, version

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...runners.entry import HookEntry
    from ...spec.events import Event
    from ...spec.timings import Timing


AGAIN = 30.0
"""Seconds after which events that the spool refused are offered to it again, at the earliest."""

MOST = 10_000
"""Events that wait while the spool refuses them; of more the oldest are dropped, and that is told."""


def make(entry: HookEntry, made: runner.WebhookPlugin, timings: Mapping[str, Timing]) -> runner.WebhookPlugin:
    """Return the plugin of a webhook whose events go out in batches.

    Parameters:
        entry: the configured hook; ``entry.extra["batch"]`` has ``size`` and ``seconds``.
        made: the plugin that the runner made of it.
        timings: all timings that the engine knows.
    """
    batch = Batch(entry, made.webhook)
    hooks = {name: _hook(batch, name) for name in entry.timings}
    if "on_session_end" not in hooks:
        hooks["on_session_end"] = _flush(batch)
    hooks["on_dispose"] = _dispose(batch)
    return runner.WebhookPlugin(entry.name, hooks, made.webhook)


def _hook(batch: Batch, timing: str) -> Any:
    @hookimpl
    def run(event: Any, ctx: Any) -> None:
        batch.add(timing, event, ctx)
        if timing == "on_session_end":
            batch.flush()

    return run


def _flush(batch: Batch) -> Any:
    @hookimpl
    def on_session_end() -> None:
        batch.flush()

    return on_session_end


def _dispose(batch: Batch) -> Any:
    @hookimpl
    def on_dispose() -> Any:
        return batch.close()

    return on_dispose


class Batch:
    """Collects one webhook's events. What the spool refuses, on a full disk say, stays and is offered again.

    Parameters:
        entry: the configured hook.
        webhook: what sends the batches.
    """

    def __init__(self, entry: HookEntry, webhook: runner.Webhook) -> None:
        self.entry = entry
        self.webhook = webhook
        self.size: int = entry.extra["batch"]["size"]
        self.seconds: float = entry.extra["batch"]["seconds"]
        self._lock = Lock()
        self._events: list[dict[str, Any]] = []
        self._loose: list[bytes] = []  # those of them that are in memory only
        self._refused = False  # whether the spool took no more when it was last asked
        self._timer: Timer | None = None
        self._ctx: Any = None
        self._kept: Kept | None = None

    def add(self, timing: str, event: Event, ctx: Any) -> None:
        """Put an event into the batch, and send that when it is full."""
        if (event.dry_run and not self.webhook.live) or self.webhook.gone:
            return
        row = {
            "event": timing,
            "hook_name": self.entry.name,
            "trigger": self.entry.extra["trigger"],
            "context": body_of(self.entry, timing, event, ctx),
            "timestamp_ms": payload.milliseconds(event.time),
        }
        with self._lock:
            self._ctx = ctx
            self._keep(row, ctx)
            self._events.append(row)
            full = len(self._events) >= self.size and not self._refused
            if not full:
                self._wait()
            if len(self._events) > MOST:
                del self._events[0]
                ctx.log.warning("{}: the oldest of {} waiting events is dropped", self.entry.source, MOST + 1)
        if full:
            self.flush()

    def _wait(self) -> None:
        """Have what there is sent when the interval is over. The lock is held."""
        if self._timer is not None:
            return
        timer = Timer(max(self.seconds, AGAIN) if self._refused else self.seconds, self._late)
        timer.daemon = True
        try:
            timer.start()
        except RuntimeError:  # no thread is to be had: the next event asks again
            return
        self._timer = timer

    def _keep(self, row: dict[str, Any], ctx: Any) -> None:
        """Keep an event on the disk; the first one takes over those of processes that are gone. The lock is held."""
        self._loose.append(self.webhook.clean(payload.dumps(row).encode("utf-8")))
        try:
            if self._kept is None:
                self._kept = Kept(self.webhook.state_dir(ctx), self.webhook.key)
                self._events += self._kept.adopt()
            self._kept.add(self._loose)
            self._loose = []
        except OSError as error:
            del self._loose[:-MOST]
            if len(self._loose) == 1:
                ctx.log.warning("{}: events are kept in memory only: {}", self.entry.source, error)

    def flush(self, *, last: bool = False) -> None:
        """Send what there is.

        Parameters:
            last: nothing is offered again in this process; what is on the disk is left to a later one.

        Raises:
            NoAnswer: when it could not be stored; what was not stays.
        """
        with self._lock:
            timer, self._timer = self._timer, None
            if timer is not None:
                timer.cancel()
            try:
                while self._events:
                    self.webhook.store(self._message(self._events[: self.size]), self._ctx)
                    del self._events[: self.size]
            except NoAnswer:
                self._refused = True
                if last:
                    self._leave()
                else:
                    self._wait()
                raise
            self._refused = False
            self._loose = []
            if self._kept is not None:
                self._kept.forget()

    def _leave(self) -> None:
        """Leave to a later process what is on the disk; tell how much is not. The lock is held."""
        if self._kept is None:
            return
        try:
            self._kept.add(self._loose)
        except OSError as error:
            self._ctx.log.warning(
                "{}: {} events cannot be stored, and are lost: {}", self.entry.source, len(self._loose), error
            )
        self._kept.leave()

    def close(self) -> Any:
        """Send what there is, and give the spool its last chance."""
        try:
            self.flush(last=True)
        finally:
            closing = self.webhook.close()
        return closing

    def _late(self) -> None:
        try:
            self.flush()
        except NoAnswer as error:  # nobody is there to hear it but the log
            self._ctx.log.warning("{}", error)

    def _message(self, rows: list[dict[str, Any]]) -> runner.Message:
        webhook = self.webhook
        # AtomCode repeats the request's headers here, tokens included. They stay out.
        body = {"url": self.entry.run["url"], "method": webhook.method, "headers": {}, "events": rows}
        headers = {
            "X-AtomCode-Version": version(),
            "X-AtomCode-Webhook": header_text(self.entry.name),
            "X-AtomCode-Batch-Size": str(len(rows)),
        }
        return runner.Message(webhook.clean(payload.dumps(body).encode("utf-8")), headers)
