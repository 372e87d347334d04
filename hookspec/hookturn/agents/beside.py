"""Finds the recordings of sub-agents that lie beside a session's file, without following links or foreign names."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from .recorded import Line

_MOST = 10_000  # files that are looked at
_ABOUT_LIMIT = 65_536


class Files:
    """Recordings of sub-agents by id. Ids only select among files that were found: no path is made from one.

    Parameters:
        own: folder that belongs to the session; all recordings in it are its sub-agents'.
        shared: folder that other sessions share; only what the session names is read.
        prefix: what comes before the id in a file's name.
        skip: a file that is not looked at (the session itself).
        limit: bytes of one line.
    """

    def __init__(self, own: str, shared: str = "", *, prefix: str = "", skip: str = "", limit: int) -> None:
        self._limit = limit
        self._prefix = prefix
        self._skip = os.path.basename(skip)
        self._files: dict[str, str] = {}
        self._own: set[str] = set()
        self._itself: dict[str, str] = {}
        if shared:
            self._scan(shared, 0)
        before = set(self._files)
        self._scan(own, 3)
        self._own = set(self._files) - before

    def _scan(self, folder: str, depth: int) -> None:
        try:
            with os.scandir(folder or ".") as entries:
                found = sorted(entries, key=lambda entry: entry.name)
        except OSError:
            return  # no such folder: a session without sub-agents
        for entry in found:
            if len(self._files) >= _MOST:
                return
            name = entry.name
            if depth and entry.is_dir(follow_symlinks=False):
                self._scan(entry.path, depth - 1)
            elif (
                name.startswith(self._prefix)
                and name.endswith(".jsonl")
                and entry.is_file(follow_symlinks=False)
            ):
                where = self._itself if name == self._skip else self._files
                where.setdefault(name[len(self._prefix) : -len(".jsonl")], entry.path)

    def knows(self, agent_id: str) -> bool:
        """Return whether there is a recording of this sub-agent that was not opened yet."""
        return agent_id in self._files

    def about(self, agent_id: str) -> dict[str, Any]:
        """Return the content of the ``.meta.json`` beside the recording, or an empty dict."""
        path = self._files.get(agent_id) or self._itself.get(agent_id)
        if path is None:
            return {}
        import json

        try:
            with open(path[: -len("jsonl")] + "meta.json", "rb") as stream:
                data = json.loads(stream.read(_ABOUT_LIMIT))
        except (OSError, ValueError, RecursionError):
            return {}  # the file is an extra: names are found elsewhere too
        return data if isinstance(data, dict) else {}

    def open(self, agent_id: str) -> Iterator[Line] | None:
        """Return the sub-agent's lines the first time it is asked for, else None."""
        path = self._files.pop(agent_id, None)
        if path is None:
            return None
        self._own.discard(agent_id)
        from .transcripts import lines

        return lines(path, self._limit, file=os.path.basename(path))

    def rest(self) -> list[str]:
        """Return the ids of the session's own sub-agents that nobody asked for, sorted."""
        return sorted(self._own)
