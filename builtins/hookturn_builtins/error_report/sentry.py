"""Sends records of errors to Sentry, by a client of its own: an application's own use of the SDK is not touched.

What goes out is made of the record, which has no secrets and no local variables, and is scrubbed once more at the
door, with all that the SDK added.
"""

from __future__ import annotations

from time import monotonic

from hookturn import __version__, redact
from hookturn.redact import Secret
from hookturn.spec.events import rfc3339

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

AGAIN_SECONDS = 60.0
"""How long an error that was sent is not sent again by this process."""

FLUSH_SECONDS = 2.0
"""How long the end of a process waits for what is on its way."""

MAX_KNOWN = 1000


def check(dsn: str | Secret) -> None:
    """Check a DSN without loading the SDK.

    Raises:
        ValueError: when it is none, or the SDK is not installed. It does not show the DSN.
    """
    from importlib.util import find_spec
    from urllib.parse import urlsplit

    try:
        parts = urlsplit(_plain(dsn))
        good = parts.scheme in ("http", "https") and bool(parts.username and parts.hostname)
        good = good and parts.path.rpartition("/")[2].isdigit()
    except ValueError:
        good = False
    if not good:
        raise ValueError("sentry must be a DSN, such as https://KEY@o0.ingest.sentry.io/0")
    if find_spec("sentry_sdk") is None:
        raise ValueError(
            "sentry needs the package sentry-sdk; install it where hookturn is: pip install sentry-sdk"
        )


def _plain(dsn: str | Secret) -> str:
    return dsn.reveal() if isinstance(dsn, Secret) else dsn


class Reporter:
    """A client of one Sentry project. It sends on a thread of its own.

    Parameters:
        dsn: the project's.
    """

    def __init__(self, dsn: str | Secret) -> None:
        from importlib import import_module

        self._sent: dict[str, float] = {}
        self._client = import_module("sentry_sdk").Client(
            dsn=_plain(dsn),
            # Nothing of the process is hooked into or collected: integrations would look at the application's.
            default_integrations=False,
            auto_enabling_integrations=False,
            include_local_variables=False,
            attach_stacktrace=False,
            max_breadcrumbs=0,
            auto_session_tracking=False,
            enable_backpressure_handling=False,
            spotlight=False,
            server_name="",
            release=f"hookturn@{__version__}",
            before_send=_scrub,
        )

    def send(self, record: dict[str, Any]) -> None:
        """Send a record as ``record.make`` gives it, unless one of its kind was sent a moment ago."""
        now = monotonic()
        known = self._sent.get(record["fingerprint"])
        if known is not None and now - known < AGAIN_SECONDS:
            return
        if len(self._sent) >= MAX_KNOWN:
            self._sent.clear()
        self._sent[record["fingerprint"]] = now
        self._client.capture_event(event_of(record))

    def close(self) -> None:
        """Wait a moment for what is on its way, and let go of it."""
        self._client.close(timeout=FLUSH_SECONDS)


def event_of(record: dict[str, Any]) -> Any:
    """Return Sentry's event of a record.

    Source: https://develop.sentry.dev/sdk/data-model/event-payloads/
    """
    chain = [
        {
            "type": item["type"],
            "value": item["message"],
            "stacktrace": {
                "frames": [
                    {
                        "filename": frame["file"],
                        "function": frame["function"],
                        "lineno": frame["line"],
                        "context_line": frame["code"],
                    }
                    for frame in item["frames"]
                    if "file" in frame
                ]
            },
        }
        for item in record["trace"]
    ]
    tags = {name: record[name] for name in ("phase", "tool", "hook", "agent") if record[name]}
    if record["environment"]["host"]:
        tags["host"] = record["environment"]["host"]
    return {
        "level": "error",
        "logger": "hookturn",
        "platform": "python",
        "timestamp": rfc3339(record["time"]),
        "fingerprint": [record["fingerprint"]],
        "exception": {"values": chain or [{"type": record["type"], "value": record["message"]}]},
        "tags": tags,
        "contexts": {
            "hookturn": {name: record[name] for name in ("session_id", "agent_id", "turn", "call_id")},
            "surroundings": dict(record["environment"]),
        },
    }


def _scrub(event: Any, hint: Any) -> Any:
    """Take secrets out of an event as it leaves."""
    scrubbed = redact.redact_value(event)
    scrubbed["event_id"] = event["event_id"]
    return scrubbed
