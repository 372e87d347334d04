"""Turns an error into the record that is kept: what, where, with which traceback, in which surroundings.

Secrets are out before the record is. Values of variables are never looked at.
"""

from __future__ import annotations

import re
import sys
from functools import lru_cache
from hashlib import sha256
from linecache import getline

from hookturn import __version__, redact
from hookturn.spec.record import safe_text

from ..places import session_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType
    from typing import Any

    from hookturn.events import Error

MAX_CHAIN = 5
"""Exceptions of a chain that are kept: the last one and those before it."""

FIRST_FRAMES, LAST_FRAMES = 10, 30
"""Frames of one traceback that are kept, from both ends."""

MAX_MEMBERS = 5
"""Members of an exception group that are named."""

NAME = 200
"""Characters of a name that are kept: a type, a tool, a session."""

LINE = 200
"""Characters of a line of source code that are kept."""

GROUPED_BY = 8
"""Innermost frames by which errors are told apart."""

COMPARED = 300
"""Characters of a message by which errors are told apart."""

_MARGIN = 4096  # so much more is looked at for secrets, that a cut halves none

# What differs between two errors of one kind: quoted texts, paths, numbers and ids.
_VARIABLE = re.compile(
    r"""\[REDACTED:[^\]]*\] | '[^'\n]{0,200}' | "[^"\n]{0,200}" | (?:[\w.~-]{0,80}[/\\]){1,40}[\w.~-]* | \w*[0-9][\w-]*""",
    re.VERBOSE,
)


_LAST_PART = re.compile(r"[/\\]")


def make(event: Error, key: bytes, max_chars: int) -> dict[str, Any]:
    """Return the record of an error.

    Parameters:
        event: the error.
        key: for redacting.
        max_chars: characters of a message that are kept.

    Returns:
        JSON data; ``time`` in seconds since the epoch; ``trace`` from the first exception of the chain to the last.
    """
    clean = _Cleaner(key, max_chars)
    exception = event.exception
    trace = _trace(exception, clean) if isinstance(exception, BaseException) else []
    record = {
        "type": clean(event.error_type, NAME),
        "message": clean(event.message.removeprefix(f"{event.error_type}: ")),
        "phase": clean(event.phase, NAME),
        "tool": clean(event.tool, NAME),
        "hook": clean(event.hook, NAME),
        "call_id": clean(event.call_id, NAME),
        "session_id": session_name(event.session_id)[:NAME],
        "agent": clean(event.agent, NAME),
        "agent_id": clean(event.agent_id, NAME),
        "turn": min(event.turn, 2**53),
        "time": event.time if 0 <= event.time < 2**53 else 0.0,
        "trace": trace,
        "environment": {**_surroundings(), "host": clean(event.host, NAME)},
    }
    return {"fingerprint": fingerprint(record), **record}


def fingerprint(record: dict[str, Any]) -> str:
    """Return what equal errors have in common: 16 hexadecimal digits.

    They are equal in type, phase, tool, hook, the places where they were raised (not the lines' numbers), and in
    the first line of their message but for quoted texts, paths, numbers and ids.
    """
    first = record["message"].partition("\n")[0]
    parts = [record[name] for name in ("type", "phase", "tool", "hook")]
    parts.append(_VARIABLE.sub("*", first[:COMPARED]))
    for item in record["trace"]:
        parts.append(item["type"])
        frames = [frame for frame in item["frames"] if "file" in frame][-GROUPED_BY:]
        parts += [f"{_LAST_PART.split(frame['file'])[-1]}:{frame['function']}" for frame in frames]
        parts += [frame["code"] for frame in frames[-1:]]
    return sha256("\0".join(parts).encode("utf-8", "surrogatepass")).hexdigest()[:16]


class _Cleaner:
    """Cuts texts and takes secrets out of them."""

    def __init__(self, key: bytes, max_chars: int) -> None:
        self.key = key
        self.max_chars = max_chars

    def __call__(self, text: str, limit: int = 0) -> str:
        limit = limit or self.max_chars
        cleaned = redact.redact(text[: limit + _MARGIN], self.key)
        return cleaned if len(cleaned) <= limit else f"{cleaned[:limit]}..."


def _trace(exception: BaseException, clean: _Cleaner) -> list[dict[str, Any]]:
    """Return the chain of an exception, the first one first, as Python prints it."""
    chain: list[dict[str, Any]] = []
    seen: set[int] = set()
    current: BaseException | None = exception
    relation = ""
    while current is not None and id(current) not in seen and len(chain) < MAX_CHAIN:
        seen.add(id(current))
        item: dict[str, Any] = {
            "type": clean(type(current).__qualname__, NAME),
            "message": clean(safe_text(current)),
            "frames": _frames(current.__traceback__, clean),
            "led_to": relation,
        }
        members = getattr(current, "exceptions", None)
        if isinstance(members, tuple):  # an exception group, of Python 3.11 or a backport
            item["members"] = [
                clean(f"{type(member).__qualname__}: {safe_text(member)}", LINE)
                for member in members[:MAX_MEMBERS]
            ]
        chain.append(item)
        if current.__cause__ is not None:
            current, relation = current.__cause__, "cause"
        elif current.__suppress_context__:
            current = None
        else:
            current, relation = current.__context__, "context"
    return chain[::-1]


def _frames(trace: TracebackType | None, clean: _Cleaner) -> list[dict[str, Any]]:
    places: list[tuple[str, int, str]] = []
    omitted = 0
    while trace is not None:
        code = trace.tb_frame.f_code
        places.append((code.co_filename, trace.tb_lineno or 0, code.co_name))
        if len(places) > FIRST_FRAMES + LAST_FRAMES:
            del places[FIRST_FRAMES]
            omitted += 1
        trace = trace.tb_next
    frames: list[dict[str, Any]] = [
        {
            "file": clean(file, NAME * 2),
            "line": line,
            "function": clean(function, NAME),
            "code": clean(getline(file, line).strip(), LINE),
        }
        for file, line, function in places
    ]
    if omitted:
        frames.insert(FIRST_FRAMES, {"omitted": omitted})
    return frames


@lru_cache(maxsize=1)
def _surroundings() -> dict[str, str]:
    import platform

    return {
        "hookturn": __version__,
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "platform": f"{platform.system() or sys.platform} {platform.release()} {platform.machine()}".strip(),
    }
