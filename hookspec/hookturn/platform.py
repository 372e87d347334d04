"""What differs between operating systems, each with a fallback: file locks and flags of ``os.open``."""

from __future__ import annotations

import os
import sys

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
