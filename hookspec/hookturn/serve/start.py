"""Where the resident process lives, and starting it: exactly one, by a lock that it holds as long as it lives."""

from __future__ import annotations

import os
import sys

from .. import paths, platform
from . import thin

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping

LOCK_FD = 3
"""The descriptor in which a starter hands the lock over, so that nobody else can come between."""

_KEPT = (
    "HOME", "USER", "LOGNAME", "SHELL", "PATH", "LANG", "LANGUAGE", "TZ", "TMPDIR", "VIRTUAL_ENV",
    "SSH_AUTH_SOCK", "SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "HTTP_PROXY", "HTTPS_PROXY",
    "NO_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "no_proxy", "all_proxy",
    "HOOKTURN_STATE_DIR", "HOOKTURN_CONFIG_DIR", "HOOKTURN_SERVE_IDLE",
)  # fmt: skip
_KEPT_PREFIXES = ("LC_", "XDG_")


def place() -> str:
    """Return the socket's path for this process's installation and environment; "" when there can be none."""
    return os.fsdecode(thin.place(dict(os.environb)))


def prepare(path: str) -> None:
    """Make the socket's folder, 0700 and the user's own.

    Raises:
        OSError: when it cannot be made, or is somebody else's.
    """
    folder = os.path.dirname(path)
    root = os.fspath(paths.state_root())
    if os.path.dirname(folder) == root:
        paths.private_dir(root)
        paths.private_dir(folder, base=root)
    else:
        paths.private_dir(folder)


def base_environment(environ: Mapping[str, str]) -> dict[str, str]:
    """Return what of an environment the resident process may have.

    It serves many projects: the secrets of the one that happened to start it are none of the others'.
    """
    return {
        name: value for name, value in environ.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)
    }


def take_lock(path: str) -> int | None:
    """Take the lock of the resident process and return its descriptor, or None when there is one already.

    Parameters:
        path: the socket's path; the lock lies beside it.
    """
    fd = paths.open_private(lock_path(path), os.O_RDWR | os.O_CREAT)
    if platform.lock(fd, wait=False):
        return fd
    os.close(fd)
    return None


def lock_path(path: str) -> str:
    """Return the lock file that belongs to a socket."""
    return path.removesuffix(".sock") + ".lock"


def log_path(path: str) -> str:
    """Return the file for what hooks of the resident process print and log."""
    return path.removesuffix(".sock") + ".log"


def start(path: str, *, idle: float | None = None) -> int | None:
    """Start the resident process, unless there is one.

    Parameters:
        path: the socket that it is to listen at.
        idle: seconds without a call after which it ends; None leaves that to it.

    Returns:
        its number, or None when somebody else is it already.

    Raises:
        OSError: when it cannot be started.
    """
    prepare(path)
    lock = take_lock(path)
    if lock is None:
        return None
    try:
        return _spawn(path, lock, idle)
    finally:
        os.close(lock)  # the other process has it now


def _spawn(path: str, lock: int, idle: float | None) -> int:
    argv = [sys.executable, "-I", *_hookturn(), "serve", "--foreground"]
    argv += ["--socket", path, "--lock-fd", str(LOCK_FD)]
    if idle is not None:
        argv += ["--idle", str(idle)]
    log = paths.open_private(log_path(path), os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_TRUNC)
    try:
        nothing = os.open(os.devnull, os.O_RDWR | platform.O_CLOEXEC)
        try:
            fds = {0: nothing, 1: log, 2: log, LOCK_FD: lock}
            return platform.spawn(sys.executable, argv, base_environment(os.environ), fds)
        finally:
            os.close(nothing)
    finally:
        os.close(log)


def _hookturn() -> list[str]:
    """Return the words after ``python -I`` that run hookturn, also where it is installed for this user only.

    Never without ``-I``: the folder that the agent works in may hold a ``hookturn.py``.
    """
    import site

    mine = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
    if mine != site.getusersitepackages():
        return ["-m", "hookturn"]
    return ["-c", _OF_THE_USER, mine]


_OF_THE_USER = (
    "import site, sys; site.addsitedir(sys.argv.pop(1)); "
    "from runpy import run_module; run_module('hookturn', run_name='__main__', alter_sys=True)"
)
