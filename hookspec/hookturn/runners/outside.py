"""What hooks have in common that run outside of this process: settings, trusted files, and no running in circles."""

from __future__ import annotations

import os

from ..quick import sha256_hex
from ..spec.record import jsonable
from .module import digest_of
from .wire import FailedToStart, Hidden, NoAnswer, reveal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from .entry import HookEntry

MAX_DEPTH = 8
"""How deep hooks may start programs that start hooks."""


class Outside:
    """One entry that runs outside of this process.

    Parameters:
        entry: the configured hook.
        config: its settings, secrets resolved.
        timeout: seconds that it has, unless the entry says otherwise.

    Attributes:
        config: the settings as plain JSON, secrets revealed.
        hidden: takes the secrets out of what the hook says.
        label: a word for ``HOOKTURN_RUNNING`` of what it starts.
    """

    def __init__(self, entry: HookEntry, config: Mapping[str, Any], timeout: float) -> None:
        self.entry = entry
        self.config = jsonable(reveal(dict(config)))
        self.hidden = Hidden(dict(config))
        self.timeout = float(entry.options.get("timeout", timeout))
        where = f"{entry.base_dir}\0{entry.file}\0{entry.name}"
        self.label = sha256_hex(where.encode("utf-8", "surrogatepass"))[:12]
        self._seen: dict[str, tuple[int, ...]] = {}  # what trusted files looked like when they were last read

    def starts_itself(self, env: Mapping[str, str], ctx: Any) -> bool:
        """Tell whether this hook's own program led here, or too many others. One that fails closed refuses then.

        Parameters:
            env: the agent's environment.
            ctx: the hook's capabilities.

        Raises:
            NoAnswer: for a hook that fails closed.
        """
        from .process import labels

        runs = {*labels(env), *labels(os.environ)}
        if self.label not in runs and len(runs) < MAX_DEPTH:
            return False
        why = "its own program led to this event" if self.label in runs else "hooks start hooks too deep"
        if self.entry.fails_closed:
            raise NoAnswer(f"{self.entry.source}: not run, for {why}")
        ctx.log.debug("{}: not run, for {}", self.entry.source, why)
        return True

    def check_files(self) -> None:
        """Look whether the files that were trusted are as they were; they are read again when they look changed.

        Raises:
            FailedToStart: one is not.
        """
        for path, digest in self.entry.files.items():
            look = look_of(path)
            if look and self._seen.get(path) == look:
                continue
            if digest_of(path) != digest:
                raise FailedToStart(
                    f"{self.entry.source}: {path} is not what was trusted; look at it, then run `hookturn trust`"
                )
            self._seen[path] = look


def look_of(path: str) -> tuple[int, ...]:
    """Return what tells that a file was changed; nothing for one that is not there."""
    try:
        found = os.stat(path)
    except (OSError, ValueError):
        return ()
    return (found.st_dev, found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns)
