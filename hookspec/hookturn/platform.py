"""What differs between operating systems, each with a fallback: file locks, flags of ``os.open``, processes; and
whose environment counts.
"""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from contextvars import ContextVar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_agents: ContextVar[Mapping[str, str] | None] = ContextVar("hookturn_environ", default=None)


def agent_environ() -> Mapping[str, str]:
    """Return the environment that configuration is read for: the agent's, where a resident process builds the engine
    for it, else this process's own.
    """
    found = _agents.get()
    return os.environ if found is None else found


@contextmanager
def reading_for(environ: Mapping[str, str] | None) -> Iterator[None]:
    """Let ``agent_environ`` return an agent's environment; None changes nothing."""
    if environ is None:
        yield
        return
    token = _agents.set(environ)
    try:
        yield
    finally:
        _agents.reset(token)


O_NOFOLLOW = getattr(os, "O_NOFOLLOW", 0)
"""Do not open a symbolic link; 0 where the system has no such flag."""

O_CLOEXEC = getattr(os, "O_CLOEXEC", 0)
"""Do not leave the file open in child programs; Python sets it by default where it exists."""

O_BINARY = getattr(os, "O_BINARY", 0)
"""Do not translate line ends (Windows)."""

if sys.platform == "win32":
    import msvcrt

    _FAR = 1 << 62  # locks are mandatory here: lock a byte that no file has, so that all can still be read

    def lock(fd: int, *, wait: bool = True) -> bool:
        """Take the exclusive lock of an open file; see the POSIX version."""
        from time import sleep

        place = os.lseek(fd, 0, os.SEEK_CUR)
        try:
            while True:
                os.lseek(fd, _FAR, os.SEEK_SET)
                try:
                    msvcrt.locking(fd, msvcrt.LK_NBLCK, 1)
                except OSError:
                    if not wait:
                        return False
                    sleep(0.01)
                else:
                    return True
        finally:
            os.lseek(fd, place, os.SEEK_SET)

    def unlock(fd: int) -> None:
        """Give the lock of an open file back."""
        place = os.lseek(fd, 0, os.SEEK_CUR)
        os.lseek(fd, _FAR, os.SEEK_SET)
        msvcrt.locking(fd, msvcrt.LK_UNLCK, 1)
        os.lseek(fd, place, os.SEEK_SET)

    def user_id() -> int | None:
        """Return the user's number, or None where files have no such owner."""
        return None

    def sync(fd: int) -> None:
        """Bring a file's content to the disk."""
        os.fsync(fd)

else:
    from fcntl import LOCK_EX, LOCK_NB, LOCK_UN, flock

    def lock(fd: int, *, wait: bool = True) -> bool:
        """Take the exclusive lock of an open file. It belongs to this opening, so it also keeps out threads.

        Parameters:
            fd: an open file.
            wait: wait for the lock; else return at once.

        Returns:
            True when the lock is ours, False when ``wait`` is False and somebody else has it.
        """
        try:
            flock(fd, LOCK_EX if wait else LOCK_EX | LOCK_NB)
        except BlockingIOError:
            return False
        return True

    def unlock(fd: int) -> None:
        """Give the lock of an open file back."""
        flock(fd, LOCK_UN)

    def user_id() -> int | None:
        """Return the effective user's number, or None where files have no such owner."""
        return os.geteuid()

    # fdatasync leaves out the times of the file; macOS does not have it.
    sync = getattr(os, "fdatasync", os.fsync)


# -- processes ----------------------------------------------------------------------------------------


def spawn(program: str, argv: list[str], env: Mapping[str, str], fds: Mapping[int, int]) -> int:
    """Start a program in a session of its own, with exactly these descriptors (POSIX).

    Parameters:
        program, argv, env: as for ``os.posix_spawn``.
        fds: its number there -> ours.

    Returns:
        its number.

    Raises:
        OSError: when the system does not start it.
    """
    from fcntl import F_DUPFD_CLOEXEC, fcntl

    # Numbers of ours must not be overwritten by those that come before them in the list.
    high = {there: fcntl(ours, F_DUPFD_CLOEXEC, max(fds) + 1) for there, ours in fds.items()}
    actions = [(os.POSIX_SPAWN_DUP2, ours, there) for there, ours in high.items()]
    try:
        try:
            return os.posix_spawn(program, argv, env, file_actions=actions, setsid=True)
        except NotImplementedError:  # macOS before 10.15
            return os.posix_spawn(program, argv, env, file_actions=actions, setpgroup=0)
    finally:
        for ours in high.values():
            os.close(ours)


def pidfd(pid: int) -> int | None:
    """Return a file descriptor that becomes readable when a child ends, or None where there is no such thing.

    Parameters:
        pid: a child of ours that nobody has waited for.
    """
    opener = getattr(os, "pidfd_open", None)  # Linux 5.3
    if opener is None:
        return None
    try:
        fd: int = opener(pid)
    except OSError:  # an older kernel, a filter of system calls, no descriptor left
        return None
    return fd


def how_it_ended(pid: int) -> tuple[int | None, int | None, bool] | None:
    """Return how a child of ours ended, or None while it runs.

    Where the system can tell without it, the child is not waited for, so that its number stays its own.

    Parameters:
        pid: the child.

    Returns:
        exit code, number of the signal that ended it, and whether its number may be anybody's now. Neither
        code nor signal when somebody else waited for it.
    """
    try:
        if hasattr(os, "waitid"):
            ended = os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT)
            if ended is None:
                return None
            if ended.si_code == os.CLD_EXITED:
                return ended.si_status, None, False
            return None, ended.si_status, False
        # macOS before Python 3.13.
        number, status = os.waitpid(pid, os.WNOHANG)
        if number == 0:
            return None
        if os.WIFSIGNALED(status):
            return None, os.WTERMSIG(status), True
        return os.WEXITSTATUS(status), None, True
    except ChildProcessError:
        return None, None, True


def family(pid: int, mark: bytes, known: dict[int, bytes]) -> dict[int, bytes] | None:
    """Return the living processes that a child of ours started, itself included, or None where nobody can tell.

    They are those of its group and session, their descendants, those seen before,
    and those whose environment holds the mark: a child that left the session and
    whose parent is gone shows itself by nothing else.

    Parameters:
        pid: the child, leader of its own session; not waited for yet, so that the number is still its own.
        mark: a text in its environment that no other process has.
        known: what earlier calls returned.

    Returns:
        number -> when it started, by the system's own clock; together no other process has them.
    """
    if not sys.platform.startswith("linux"):
        return None
    try:
        names = os.listdir("/proc")
    except OSError:
        return None
    me = os.getpid()
    found: dict[int, bytes] = {}
    others: dict[int, tuple[int, bytes]] = {}
    for name in names:
        if not name.isdigit():
            continue
        stat = _read(f"/proc/{name}/stat")
        # The name in brackets may hold anything; then come state, parent, group, session and so on (proc(5)).
        words = stat[stat.rfind(b")") + 2 :].split()
        number = int(name)
        if len(words) < 20 or words[0] in (b"Z", b"X") or number == me:
            continue
        parent, group, session, born = int(words[1]), int(words[2]), int(words[3]), words[19]
        if pid in (number, group, session) or known.get(number) == born:
            found[number] = born
        else:
            others[number] = (parent, born)
    for number, (_, born) in others.items():
        if mark in _read(f"/proc/{number}/environ"):
            found[number] = born
    more = True
    while more:
        more = False
        for number, (parent, born) in others.items():
            if parent in found and number not in found:
                found[number] = born
                more = True
    return found


def _read(path: str) -> bytes:
    """Return what a file of the process table holds; nothing for a process that is gone or not ours."""
    try:
        fd = os.open(path, os.O_RDONLY | O_CLOEXEC)
    except OSError:
        return b""
    try:
        parts = []
        while part := os.read(fd, 65536):
            parts.append(part)
        return b"".join(parts)
    except OSError:
        return b""
    finally:
        os.close(fd)


def born(pid: int) -> str:
    """Return when a process started, by the system's own clock, or "" when it is gone or nobody can tell."""
    if os.path.isdir("/proc/self"):
        stat = _read(f"/proc/{int(pid)}/stat")
        words = stat[stat.rfind(b")") + 2 :].split()
        return words[19].decode() if len(words) > 19 and words[0] not in (b"Z", b"X") else ""
    if os.name != "posix":
        return ""
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return ""
    except OSError:  # not ours, but alive
        return "alive"
    return "alive"


_SHELLS = (b"sh", b"bash", b"dash", b"zsh", b"ksh", b"fish", b"env", b"timeout")


def starter(pid: int | None = None) -> int:
    """Return the process that had us started, past the shells in between; 0 when nobody can tell.

    Parameters:
        pid: the parent of the process that it is about; default: ours.
    """
    if pid is None:
        pid = os.getppid()
    if not sys.platform.startswith("linux"):
        return 0  # it may be a shell, which is gone at once
    for _ in range(4):
        stat = _read(f"/proc/{pid}/stat")
        name = stat[stat.find(b"(") + 1 : stat.rfind(b")")]
        words = stat[stat.rfind(b")") + 2 :].split()
        if len(words) < 2:
            return 0
        if name not in _SHELLS:
            return pid if pid > 1 else 0
        pid = int(words[1])
    return 0
