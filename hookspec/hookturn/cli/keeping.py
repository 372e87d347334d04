"""Keeps the process that answers an agent from what hooks in it leave behind or do to it: programs that hold its
outputs open, children that come back, ``os._exit``.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager, suppress

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

LAST_WORDS = 0.05
"""Seconds in which standard error is still passed on when a program that a hook started holds it open."""

end_process = os._exit
"""The real ``os._exit``, for us."""


@contextmanager
def kept_alive() -> Iterator[None]:
    """Let ``os._exit`` be a ``SystemExit`` in this process, which costs the hook that says it its answer and no more.

    Children that a hook forks leave by it as ever.
    """
    me = os.getpid()
    before = os._exit

    def leave(status: int) -> None:
        if os.getpid() != me:
            end_process(status)
        raise SystemExit(f"os._exit({status}) in a hook would end the process that answers")

    os._exit = leave  # type: ignore[assignment]
    try:
        yield
    finally:
        os._exit = before


def own_stderr() -> Callable[[], None]:
    """Put a pipe of ours in the place of standard error, and pass on what comes.

    An agent reads its pipes to their end. What a hook starts and leaves running inherits ours, so the agent's own
    is closed when this process ends.

    Returns:
        what puts the real one back.
    """
    from stat import S_ISFIFO, S_ISSOCK
    from threading import Thread

    from ..paths import write_all
    from .output import opened

    try:
        mode = os.fstat(2).st_mode
        if not (S_ISFIFO(mode) or S_ISSOCK(mode)):  # nobody waits for the end of a file or a terminal
            return lambda: None
        real = os.dup(2)
        source, sink = os.pipe()
        os.dup2(sink, 2)
        os.close(sink)
        files = {fd: opened(fd) for fd in (real, source)}
    except OSError:  # no descriptor is left: as it is, then
        return lambda: None

    def ours(fd: int) -> bool:
        return opened(fd) == files[fd]

    def pass_on() -> None:
        with suppress(OSError):  # a hook closed what is not its own
            while ours(source) and (part := os.read(source, 65_536)):
                with suppress(OSError):  # nobody reads it any more; hooks must not wait for that
                    if ours(real):
                        write_all(real, part)

    thread = Thread(target=pass_on, daemon=True, name="stderr")
    thread.start()

    def put_back() -> None:
        with suppress(OSError, ValueError):
            if sys.stderr is not None:
                sys.stderr.flush()
            if ours(real):
                os.dup2(real, 2)
            thread.join(LAST_WORDS)

    def let_go() -> None:
        if ours(real):
            os.close(real)

    os.register_at_fork(after_in_child=let_go)
    return put_back
