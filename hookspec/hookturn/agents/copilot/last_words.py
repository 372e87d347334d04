"""Finds the model's last words at the end of Copilot's recording of a session: its hooks are not told them."""

from __future__ import annotations

_MOST = 4 * 1024 * 1024
"""Bytes at the end of the recording that are looked at."""


def last_words(path: str) -> str:
    """Return what the main agent's model said last, or "" when that cannot be found.

    Parameters:
        path: the ``transcriptPath`` of a payload: lines of ``{"type", "data", "agentId"?}``, as version 1.0.102
            writes them, each before the hooks that come after it.
    """
    import json

    for line in reversed(_end_of(path).split(b"\n")):
        if b'"assistant.message"' not in line and b'"user.message"' not in line:
            continue
        try:
            item = json.loads(line)
        except (ValueError, RecursionError):  # cut off at the beginning
            continue
        if not isinstance(item, dict) or item.get("agentId"):  # a sub-agent's
            continue
        if item.get("type") == "user.message":
            return ""
        data = item.get("data")
        if item.get("type") == "assistant.message" and isinstance(data, dict):
            text = data.get("content")
            return text if isinstance(text, str) else ""
    return ""


def _end_of(path: str) -> bytes:
    import os
    import stat

    from ...platform import O_CLOEXEC, O_NOFOLLOW

    try:
        fd = os.open(path, os.O_RDONLY | O_NOFOLLOW | O_CLOEXEC | getattr(os, "O_NONBLOCK", 0))
    except (OSError, ValueError):
        return b""
    try:
        about = os.fstat(fd)
        if not stat.S_ISREG(about.st_mode):
            return b""
        with open(fd, "rb", closefd=False) as file:
            file.seek(max(0, about.st_size - _MOST))
            return file.read(_MOST)
    finally:
        os.close(fd)
