"""How a webhook of hooks.toml is spoken to and understood."""

from __future__ import annotations

import json

from ...runners.webhook import WebhookWire
from ...spec.answers import Inject
from . import payload
from .wire_script import answers_of, result_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from ...runners.entry import HookEntry
    from ...spec.answers import Answer
    from ...spec.events import Event
    from ...spec.timings import Timing


def body_of(entry: HookEntry, timing: str, event: Event, ctx: Any) -> dict[str, Any]:
    """Return what a webhook gets of an event."""
    return {
        "hook_name": entry.name,
        "trigger": entry.extra["trigger"],
        "event": timing,
        **payload.of_webhook(timing, event, ctx),
    }


def version() -> str:
    """Return the value of ``X-AtomCode-Version``: who speaks AtomCode's wire here."""
    import hookturn

    return f"hookturn/{hookturn.__version__}"


def header_text(text: str) -> str:
    """Return a text as a header can hold it: what is not printable ASCII is percent-encoded."""
    from urllib.parse import quote

    return quote(text, safe=" !\"#$&'()*+,/:;<=>?@[]^`{|}", errors="surrogatepass")


class AtomCodeWebhookWire(WebhookWire):
    """The wire of ``[[webhooks]]``."""

    def request(self, entry: HookEntry, timing: Timing, event: Event, ctx: Any, config: Any) -> bytes:
        """Return the body that AtomCode's documents give for the event."""
        return payload.dumps(body_of(entry, timing.name, event, ctx)).encode("utf-8")

    def headers(
        self, entry: HookEntry, timing: Timing, event: Event, ctx: Any, body: bytes
    ) -> dict[str, str]:
        """Return AtomCode's headers beside the usual ones."""
        return {"X-AtomCode-Version": version(), "X-AtomCode-Hook": header_text(entry.name)}

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
        """Return what an answer with a status of 2xx means; what is no JSON object means yes.

        Raises:
            NoAnswer: for an unknown result, or arguments that are none.
        """
        try:
            data = json.loads(body.decode("utf-8-sig"))
        except (ValueError, RecursionError):
            return []
        if not isinstance(data, dict):
            return []
        result, words = result_of(data)
        if timing.name == "system_prompt" and result in ("ok", "modify"):
            text = data.get("modified_content")
            text = text if isinstance(text, str) else data.get("message")
            return [Inject(text)] if isinstance(text, str) and text else []
        return answers_of(result, words, timing)
