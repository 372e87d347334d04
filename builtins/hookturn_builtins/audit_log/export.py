"""Turns records into what other systems read: CSV, OCSF events, CloudEvents."""

from __future__ import annotations

import os
import re

from hookturn import __version__
from hookturn.paths import project_hash

from ..console import printable
from .chain import canonical

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from typing import Any

OCSF_VERSION = "1.3.0"

COLUMNS = (
    "time", "id", "timing", "session_id", "agent", "agent_id", "turn", "host", "tool", "kind", "call_id", "decision",
    "status", "by", "reason", "message", "code", "duration", "args", "result", "error", "event", "hooks", "failures",
    "rewrites", "reply", "injected", "warnings", "continue_reason", "written", "prev", "xsum",
)  # fmt: skip
"""Columns of the CSV form."""

# What a spreadsheet takes for a formula (OWASP, "CSV Injection"); full-width forms too, which some read alike.
_FORMULA = re.compile(r"[ \n]*[=+\-@\t\r\uff1d\uff0b\uff0d\uff20]")
_NOT_TEXT = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff\ufeff]")


class Exporter:
    """Makes the records of one trail.

    Parameters:
        path: the trail's file.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        from socket import gethostname

        self.source = f"urn:hookturn:audit:{project_hash(path)}"
        self.machine = printable(gethostname()) or "localhost"

    def jsonl(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return the record as it is."""
        return record

    def csv(self, record: dict[str, Any]) -> dict[str, str]:
        """Return the cells of the record's row; nothing in them is a formula."""
        return {name: _cell(record.get(name)) for name in COLUMNS}

    def cloudevents(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return a CloudEvent in structured JSON.

        Source: https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/spec.md and, for ``sequence``,
        extensions/sequence.md.
        """
        event = {
            "specversion": "1.0",
            "id": _name(record.get("id")) or f"{record.get('written', 0)}",
            "source": self.source,
            "type": f"hookturn.audit.{_name(record.get('timing')) or 'unknown'}",
            "time": _time(record),
            "datacontenttype": "application/json",
            "sequence": f"{_number(record.get('written')):020d}",
            "data": record,
        }
        session = _name(record.get("session_id"))
        if session:
            event["subject"] = session
        return event

    def ocsf(self, record: dict[str, Any]) -> dict[str, Any]:
        """Return an event of the OCSF class API Activity (6003): the agent calls a tool, or a hook decides on it.

        Source: https://schema.ocsf.io/1.3.0/classes/api_activity
        """
        activity, name = _activity(record)
        failed = _failed(record)
        event: dict[str, Any] = {
            "category_uid": 6,
            "category_name": "Application Activity",
            "class_uid": 6003,
            "class_name": "API Activity",
            "activity_id": activity,
            "activity_name": name,
            "type_uid": 600300 + activity,
            "type_name": f"API Activity: {'Other' if activity == 99 else name}",
            "severity_id": 2 if failed else 1,
            "severity": "Low" if failed else "Informational",
            "status_id": 2 if failed else 1,
            "status": "Failure" if failed else "Success",
            "time": _millis(_time(record)),
            "metadata": {
                "version": OCSF_VERSION,
                "uid": _name(record.get("id")),
                "log_name": "hookturn audit",
                "sequence": _number(record.get("written")),
                "original_time": _time(record),
                "event_code": _name(record.get("timing")),
                "product": {"name": "hookturn", "vendor_name": "hookturn", "version": __version__},
            },
            "actor": {
                "app_name": _name(record.get("agent")) or _name(record.get("host")) or "agent",
                "session": {"uid": _name(record.get("session_id"))},
            },
            "api": {
                "operation": _name(record.get("tool")) or _name(record.get("timing")) or "unknown",
                "service": {"name": _name(record.get("host")) or "hookturn"},
            },
            "src_endpoint": {"hostname": self.machine},
            "unmapped": {key: value for key, value in record.items() if key not in _MAPPED},
        }
        call = _name(record.get("call_id"))
        if call:
            event["api"]["request"] = {"uid": call}
        decision = record.get("decision") or record.get("status")
        if decision:
            event["status_code"] = _name(decision)
        reason = record.get("reason") or record.get("error")
        if isinstance(reason, str) and reason:
            event["status_detail"] = event["message"] = _clean(reason)
        duration = record.get("duration")
        if isinstance(duration, (int, float)):
            event["duration"] = round(duration * 1000)
        return event


_MAPPED = frozenset(
    ["id", "time", "timing", "session_id", "agent", "host", "tool", "call_id", "duration", "written"]
)

_ACTIVITIES = {"read": (2, "Read"), "search": (2, "Read"), "fetch": (2, "Read"), "write": (3, "Update")}


def _activity(record: dict[str, Any]) -> tuple[int, str]:
    """Return number and name of what was done, in the words of API Activity."""
    kind = record.get("kind")
    if isinstance(kind, str) and kind in _ACTIVITIES:
        return _ACTIVITIES[kind]
    return 99, _name(kind) or _name(record.get("timing")) or "Other"


def _failed(record: dict[str, Any]) -> bool:
    status = record.get("status")
    return (
        record.get("decision") in ("deny", "block")
        or bool(record.get("failures"))
        or (isinstance(status, str) and status not in ("ok", "replied"))
    )


def _cell(value: Any) -> str:
    if value is None or value == [] or value == {}:
        return ""
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        value = canonical(value)
    elif not isinstance(value, str):
        return str(value)  # a number, a negative one included, is no formula
    text = _clean(value)
    return f"'{text}" if _FORMULA.match(text) else text


def _clean(text: str) -> str:
    """Return a text that any file can hold: control characters and lone surrogates escaped."""
    return _NOT_TEXT.sub(lambda found: found[0].encode("unicode_escape").decode("ascii"), text)


def _name(value: Any) -> str:
    """Return a text in one printable line, as attributes of an event must be."""
    return printable(value) if isinstance(value, str) else ""


def _number(value: Any) -> int:
    return value if isinstance(value, int) and value >= 0 else 0


def _time(record: dict[str, Any]) -> str:
    time = record.get("time")
    return time if isinstance(time, str) and _TIME.fullmatch(time) else "1970-01-01T00:00:00.000Z"


_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", re.ASCII)


def _millis(time: str) -> int:
    from calendar import timegm

    moment = tuple(
        int(time[at : at + size]) for at, size in ((0, 4), (5, 2), (8, 2), (11, 2), (14, 2), (17, 2))
    )
    return timegm(moment) * 1000 + int(time[20:23])


def write(
    form: str, path: str, records: Iterable[dict[str, Any]], put: Callable[[str], object]
) -> Iterator[dict[str, Any]]:
    """Write the exported records as lines, and yield each.

    Parameters:
        form: a name of FORMATS.
        path: the trail's file.
        records: its records.
        put: takes the text.
    """
    exporter = Exporter(path)
    make = getattr(exporter, form)
    if form != "csv":
        for record in records:
            made = make(record)
            put(f"{canonical(made)}\n")
            yield made
        return
    from csv import DictWriter

    class Sink:
        write = staticmethod(put)

    rows = DictWriter(Sink(), COLUMNS)
    rows.writeheader()
    for record in records:
        row = make(record)
        rows.writerow(row)
        yield row


FORMATS = ("jsonl", "csv", "ocsf", "cloudevents")
