"""Claude Code's protocol for HTTP hooks: the payload of a command hook as the body, its JSON as the answer."""

from __future__ import annotations

from ...runners.webhook import WebhookWire
from ...runners.wire import NoAnswer, shown
from .decisions import parsed, said
from .occasions import OCCASIONS
from .payload import body_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...runners.entry import HookEntry
    from ...spec.answers import Answer
    from ...spec.events import Event
    from ...spec.timings import Timing


class ClaudeHttpWire(WebhookWire):
    """A status alone never blocks: only an object in the body of a 2xx answer decides."""

    def request(self, entry: HookEntry, timing: Timing, event: Event, ctx: Any, config: Any) -> bytes:
        """Return the payload."""
        return body_of(OCCASIONS[entry.extra["event"]], event, ctx)

    def responded(
        self,
        entry: HookEntry,
        timing: Timing,
        event: Event,
        ctx: Any,
        status: int,
        headers: Mapping[str, str],
        body: bytes,
    ) -> list[Answer]:
        """Return what an answer means: nothing without a body.

        Raises:
            NoAnswer: for a body that is no JSON object, or one that is void.
        """
        text = body.removeprefix(b"\xef\xbb\xbf").decode("utf-8", "replace").strip()
        if not text:
            return []
        data, wrong = parsed(text)
        if data is None:
            raise NoAnswer(f"status {status}: {wrong or f'the body is no JSON object ({shown(text[:60])})'}")
        return said(OCCASIONS[entry.extra["event"]], data, timing, event, ctx)
