"""``hookturn serve``: the resident process, which answers agents at once."""

from __future__ import annotations

import os
import sys

from .keeping import end_process, kept_alive
from .output import CommandError, UsageError, emit, os_error, pairs, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from argparse import Namespace
    from typing import Any

SECONDS = 5.0
"""Seconds to wait for the resident process to answer about itself, to begin or to end."""


def add_parser(subparsers: Any) -> None:
    """Add the command's parser."""
    parser = subparsers.add_parser(
        "serve",
        help="the resident process, which answers agents at once",
        description="Start the resident process, which answers agents at once, in the background. The thin "
        "client starts it by itself; it ends when nobody has called for a while.",
    )
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--foreground", action="store_true", help="serve in this process, until interrupted")
    what.add_argument("--status", action="store_true", help="tell about the running one")
    what.add_argument("--stop", action="store_true", help="end it; calls that run come to their end")
    parser.add_argument(
        "--idle",
        metavar="SECONDS",
        type=_seconds,
        help="end after so long without a call; default: HOOKTURN_SERVE_IDLE, else 900",
    )
    parser.add_argument("--no-http", action="store_true", help="with --foreground: speak no HTTP")
    # What one resident process tells the next; not for people.
    parser.add_argument("--socket", metavar="PATH", help=_hidden())
    parser.add_argument("--lock-fd", metavar="N", type=int, help=_hidden())
    parser.set_defaults(func=run)


def _hidden() -> str:
    from argparse import SUPPRESS

    return SUPPRESS


def _seconds(text: str) -> float:
    from argparse import ArgumentTypeError

    from ..serve.calls import seconds

    value = seconds(text)
    if value is None:
        raise ArgumentTypeError(f"expected seconds, got {text!r}")
    return value


def run(args: Namespace) -> int:
    """Start, show or stop the resident process."""
    if os.name == "nt":
        raise CommandError("the resident process needs Unix sockets; `hookturn bridge` works without it.")
    from ..serve import start

    path = args.socket or start.place()
    if not path:
        raise CommandError("no place for the socket: neither HOME nor HOOKTURN_STATE_DIR is set.")
    if args.lock_fd is not None and not (args.socket and args.foreground):
        raise UsageError("--lock-fd is for the resident process itself.")
    try:
        if args.status:
            return _status(path, args.json)
        if args.stop:
            return _stop(path, args.json)
        if args.foreground:
            return _foreground(path, args)
        return _background(path, args)
    except OSError as error:
        raise CommandError(f"the resident process: {os_error(error)}") from error


def _ask(path: str, word: str) -> dict[str, Any] | None:
    import json

    from ..serve.wire import ask

    answer = ask(path, [word], seconds=SECONDS)
    if answer is None:
        return None
    about: dict[str, Any] = json.loads(answer[1])
    return about


def _status(path: str, as_json: bool) -> int:
    about = _ask(path, "status")
    if as_json:
        emit({"schema": 1, "running": about is not None, "socket": path, **(about or {})})
    elif about is None:
        say("not running")
    else:
        _show(about)
    return 0


def _show(about: dict[str, Any]) -> None:
    say(f"running, process {about['pid']}")
    pairs(
        [
            ("hookturn", f"{about['version']}, Python {about['python']} ({about['executable']})"),
            ("socket", about["socket"]),
            ("HTTP", about["http"] or "none"),
            ("since", about["started"]),
            ("calls", f"{about['calls']:,}"),
            ("projects", "\n".join(about["projects"])),
        ]
    )


def _stop(path: str, as_json: bool) -> int:
    from time import monotonic, sleep

    from ..serve import start

    about = _ask(path, "stop")
    end = monotonic() + SECONDS
    gone = False
    while not gone and monotonic() < end:
        lock = start.take_lock(path) if os.path.isdir(os.path.dirname(path)) else -1
        gone = lock is not None
        if lock is not None and lock >= 0:
            os.close(lock)
        if not gone:
            sleep(0.01)
    if not gone:
        raise CommandError("it does not end. Its process does not answer; `kill -9` it.")
    if as_json:
        emit({"schema": 1, "stopped": about is not None, "pid": about["pid"] if about else None})
    else:
        say(f"stopped process {about['pid']}" if about else "not running")
    return 0


def _background(path: str, args: Namespace) -> int:
    from time import monotonic, sleep

    from ..serve import start

    pid = start.start(path, idle=args.idle)
    end = monotonic() + SECONDS
    while (about := _ask(path, "status")) is None:
        if monotonic() > end or (pid is not None and os.waitpid(pid, os.WNOHANG)[0] == pid):
            raise CommandError(f"it did not begin. See {start.log_path(path)}.")
        sleep(0.02)
    if args.json:
        emit({"schema": 1, "running": True, "began": pid is not None, **about})
    else:
        if pid is None:
            say("it runs already")
        _show(about)
    return 0


def _foreground(path: str, args: Namespace) -> int:
    from ..serve import start
    from ..serve.server import IDLE, Server

    if args.lock_fd is None:
        start.prepare(path)
        lock = start.take_lock(path)
        if lock is None:
            raise CommandError("a resident process runs already. See `hookturn serve --status`.")
    else:
        lock = args.lock_fd
        _settle(lock)
    server = Server(path, lock, idle=args.idle or _idle() or IDLE, http=not args.no_http)
    with kept_alive():
        why = server.run()
    if args.lock_fd is not None:
        # Threads that a hook holds for ever, or a plugin left behind, must not keep the process.
        sys.stdout.flush()
        sys.stderr.flush()
        end_process(0)
    if args.json:
        emit({"schema": 1, "ended": why})
    else:
        say(f"ended: {why}")
    return 0


def _idle() -> float | None:
    from ..serve.calls import seconds

    return seconds(os.environ.get("HOOKTURN_SERVE_IDLE", ""))


def _settle(lock: int) -> None:
    """Become a process of its own: no folder of anybody's, no descriptor of the agent's, no lock in children."""
    os.chdir(os.sep)
    os.set_inheritable(lock, False)
    os.closerange(lock + 1, 1024)
    os.umask(0o077)
    # Read when loguru is imported. Its tracebacks would show the values of variables.
    os.environ.setdefault("LOGURU_DIAGNOSE", "NO")
    os.environ.setdefault("LOGURU_BACKTRACE", "NO")
