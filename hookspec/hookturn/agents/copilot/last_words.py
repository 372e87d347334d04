"""Finds the model's last words at the end of Copilot's recording of a session: its hooks are not told them."""

from __future__ import annotations

_MOST = 4 * 1024 * 1024
"""Bytes at the end of the recording that are looked at."""

_SECONDS = 1.0
_LOOK = 0.02


def last_words(path: str) -> str:
    """Return what the main agent's model said last, or "" when that cannot be found.

    Parameters:
        path: the ``transcriptPath`` of a payload: lines of ``{"type", "data", "agentId"?}``, as version 1.0.102
            writes them. It makes the file, and writes each line, a moment later than it calls hooks, so they are
            waited for.
    """
    from time import monotonic, sleep

    until = monotonic() + _SECONDS
    while True:
        content = _end_of(path)
        found = None if content is None else _words(content)
        if found is not None or content is None or monotonic() > until:
            return found or ""
        sleep(_LOOK)


def _words(content: bytes) -> str | None:
    """Return the words with which the turn ended; None when the recording has not come to them yet."""
    import json

    for line in reversed(content.split(b"\n")):
        if b'"assistant.message"' not in line and b'"user.message"' not in line:
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError):  # cut off
            continue
        if not isinstance(item, dict) or item.get("agentId"):  # a sub-agent's
            continue
        if item.get("type") == "user.message":
            return None
        data = item.get("data")
        if item.get("type") == "assistant.message" and isinstance(data, dict):
            text = data.get("content")
            return text if isinstance(text, str) and not data.get("toolRequests") else None
    return None


def _end_of(path: str) -> bytes | None:
    """Return the end of the recording as it is now; None when there will be none."""
    import os
    import stat

    from ...platform import O_CLOEXEC, O_NOFOLLOW

    try:
        fd = os.open(path, os.O_RDONLY | O_NOFOLLOW | O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    except FileNotFoundError:
        return b"" if os.path.isdir(os.path.dirname(path)) else None
    except (OSError, ValueError):
        return None
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            return None
        with open(fd, "rb", closefd=False) as file:
            file.seek(max(0, about.st_size - _MOST))
            return file.read(_MOST)
    finally:
        os.close(fd)
