"""Where hookturn keeps its files, and the one way in which it makes paths, folders and files.

Names that come from outside become safe path components; folders are 0700,
files 0600, and nothing is ever written through a symbolic link.
"""

from __future__ import annotations

import os
import stat
from errno import ELOOP, ENXIO, ESTALE

from . import platform
from .quick import sha256_hex

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from types import TracebackType

MANAGED_CONFIG = (
    "/etc/hookturn/hookturn.yaml" if os.name != "nt" else r"C:\ProgramData\hookturn\hookturn.yaml"
)
"""The managed layer's file. No environment variable moves it: it binds the user who runs us."""

GITIGNORE = b"# Made by hookturn: what it records stays out of the repository, its configuration does not.\n*\n!/hookturn.yaml\n"

PATIENCE = 5.0
"""Seconds that the lock is waited for, which others hold for some microseconds unless they are stopped."""

HASTE = 1.0
"""Seconds that it is waited for when that was in vain the last time."""

TRIES = 100
"""How often a lock that another process removed just then is taken anew, before something else is taken to be wrong."""

_PLAIN = frozenset("ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._-")
_HEX = frozenset("0123456789abcdef")
_LONGEST = 100
_PREFIX = 40
_DIGEST = 32

# Names that Windows gives to devices, with any ending.
_RESERVED = frozenset(
    ["con", "prn", "aux", "nul", "conin$", "conout$"]
    + [f"{device}{number}" for device in ("com", "lpt") for number in range(10)]
)


class UnsafePathError(OSError):
    """A path leads where it must not: out of its base, through a symbolic link, or to another user's folder."""

    def __init__(self, path: object, why: str) -> None:
        super().__init__(ELOOP, why, str(path))


def safe_component(text: str) -> str:
    """Return one safe path component for any text, such as a session id.

    Texts that are safe already stay as they are; others become a readable
    prefix and a hash. Different texts give different components.

    Parameters:
        text: any text, empty and huge ones included.

    Returns:
        1 to 100 characters of ``A-Z a-z 0-9 . _ -``, without a dot at either end, and no device name
        of Windows.
    """
    if (
        0 < len(text) <= _LONGEST
        and _PLAIN.issuperset(text)
        and text[0] != "."
        and text[-1] != "."
        and text.partition(".")[0].lower() not in _RESERVED
        and not _is_hashed(text)
    ):
        return text
    digest = sha256_hex(text.encode("utf-8", "surrogatepass"))[:_DIGEST]
    prefix = "".join(c if c in _PLAIN else "_" for c in text[:_PREFIX]).strip(".")
    # The letter in front keeps "CON" and friends from being the component's first word.
    return f"x-{prefix}-x{digest}"


def _is_hashed(text: str) -> bool:
    """Tell whether a text looks like our own hashed form, which it must not be mistaken for."""
    return (
        text.startswith("x-") and text[-_DIGEST - 2 : -_DIGEST] == "-x" and _HEX.issuperset(text[-_DIGEST:])
    )


def inside(base: str | os.PathLike[str], path: str | os.PathLike[str]) -> Path:
    """Return the real, absolute form of ``path`` if it lies in ``base``.

    Parameters:
        base: a folder.
        path: a path; relative ones start at ``base``.

    Raises:
        UnsafePathError: when the path, with ``..`` and symbolic links followed, leaves the base.
    """
    from pathlib import Path

    try:
        root = os.path.realpath(base)
        real = os.path.realpath(os.path.join(root, path))
        if os.path.commonpath([root, real]) == root:
            return Path(real)
    except ValueError as error:  # a NUL in the name, or another drive
        raise UnsafePathError(path, f"not a path in {os.fspath(base)}: {error}") from None
    raise UnsafePathError(path, f"leads out of {os.fspath(base)}")


def refuse_links(path: str | os.PathLike[str], *, base: str | os.PathLike[str] | None = None) -> None:
    """Check a path for a program that opens it itself, such as SQLite.

    Parameters:
        path: a file or folder, which may be missing.
        base: a folder that is trusted as it is; every component below it is checked. Default: the folder
            above ``path``.

    Raises:
        UnsafePathError: when a component below the base is a symbolic link or another user's folder.
    """
    text, root = _absolute(path, base)
    _check_below(root, text)


def _check_below(base: str, path: str) -> None:
    """Refuse a symbolic link or a foreign folder among the existing components of ``path`` below ``base``."""
    try:
        relative = os.path.relpath(path, base)
    except ValueError:  # another drive
        raise UnsafePathError(path, f"leads out of {base}") from None
    if relative == os.curdir:
        return
    parts = relative.split(os.sep)
    if os.pardir in parts:
        raise UnsafePathError(path, f"leads out of {base}")
    user = platform.user_id()
    current = base
    for part in parts:
        current = os.path.join(current, part)
        try:
            found = os.lstat(current)
        except FileNotFoundError:
            return
        except ValueError as error:  # a NUL in the name
            raise UnsafePathError(path, str(error)) from None
        if stat.S_ISLNK(found.st_mode):
            raise UnsafePathError(current, "is a symbolic link, and nothing is written through one")
        if stat.S_ISDIR(found.st_mode) and user is not None and found.st_uid != user:
            raise UnsafePathError(current, "belongs to another user")


def _absolute(path: str | os.PathLike[str], base: str | os.PathLike[str] | None) -> tuple[str, str]:
    """Return the path and its base as absolute texts; without a base it is the path's own folder."""
    text = os.path.abspath(path)
    return text, os.path.abspath(base) if base is not None else os.path.dirname(text)


def private_dir(path: str | os.PathLike[str], *, base: str | os.PathLike[str] | None = None) -> Path:
    """Do what ``private_folder`` does, and return the folder as a Path."""
    from pathlib import Path

    return Path(private_folder(path, base=base))


# Functions that give a text and not a Path are for what an agent waits for: importing pathlib is a third of a start.
def private_folder(path: str | os.PathLike[str], *, base: str | os.PathLike[str] | None = None) -> str:
    """Make a folder that only the user may enter (0700), with the folders above it, and return it.

    Parameters:
        path: the folder.
        base: a folder that is trusted as it is; every component below it is checked. Default: the
            folder above ``path``.

    Raises:
        UnsafePathError: when a component below the base is a symbolic link or belongs to another user.
        OSError: when the folder cannot be made.
    """
    text, root = _absolute(path, base)
    _check_below(root, text)
    missing = []
    current = text
    while not os.path.isdir(current):
        missing.append(current)
        above = os.path.dirname(current)
        if above == current:
            break
        current = above
    for folder in reversed(missing):
        try:
            os.mkdir(folder, 0o700)
        except FileExistsError:  # another process was faster, or it is a file: the check below tells
            continue
    _check_below(root, text)
    mode = os.stat(text).st_mode
    if not stat.S_ISDIR(mode):
        raise NotADirectoryError(20, "is no folder", text)
    if mode & 0o077 and os.name != "nt":
        try:
            os.chmod(text, 0o700)
        except OSError as error:
            # Read-only and foreign file systems keep their modes; whoever mounted them decided on those.
            if mode & 0o002:
                raise UnsafePathError(
                    text, f"is writable by everybody and cannot be closed: {error}"
                ) from None
    return text


def open_private(
    path: str | os.PathLike[str],
    flags: int = os.O_RDONLY,
    *,
    base: str | os.PathLike[str] | None = None,
) -> int:
    """Open a file that is the user's alone (0600 when made) and return its descriptor.

    Parameters:
        path: the file. Its folder must exist (see ``private_dir``).
        flags: as for ``os.open``; not following links and closing in child programs are added.
        base: a folder that is trusted as it is; every component below it is checked. Default: the
            file's folder.

    Raises:
        UnsafePathError: when the file, or a folder between it and the base, is a symbolic link; when it is there
            and is no regular file (a FIFO would hold us up).
        OSError: whatever opening it gives.
    """
    text, root = _absolute(path, base)
    _check_below(root, text)
    flags |= platform.O_NOFOLLOW | platform.O_CLOEXEC | platform.O_BINARY | getattr(os, "O_NONBLOCK", 0)
    try:
        fd = os.open(text, flags, 0o600)
    except OSError as error:
        if error.errno == ELOOP:
            raise UnsafePathError(text, "is a symbolic link, and nothing is written through one") from None
        if error.errno == ENXIO:  # a FIFO that nobody reads, or a socket
            raise UnsafePathError(text, "is no regular file") from None
        raise
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise UnsafePathError(text, "is no regular file")
    return fd


def write_all(fd: int, data: bytes) -> None:
    """Write all of ``data``: one ``write`` may take less than it was given."""
    written = os.write(fd, data)
    while written < len(data):
        written += os.write(fd, memoryview(data)[written:])


def write_private(
    path: str | os.PathLike[str],
    data: bytes,
    *,
    base: str | os.PathLike[str] | None = None,
    durable: bool = False,
) -> None:
    """Replace a file's content at once: readers see the old content or the new, never a part. Mode 0600.

    Parameters:
        path: the file. Its folder must exist (see ``private_dir``).
        data: the whole content.
        base: as for ``open_private``.
        durable: bring it to the disk before it takes the old file's place.

    Raises:
        UnsafePathError: when the file, or a folder between it and the base, is a symbolic link.
        OSError: when it cannot be written; the old file is then untouched.
    """
    text, root = _absolute(path, base)
    _check_below(root, text)
    folder, name = os.path.split(text)
    temporary = os.path.join(folder, f".{name[:100]}.{os.urandom(6).hex()}.tmp")
    fd = open_private(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL)
    try:
        try:
            write_all(fd, data)
            if durable:
                os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(temporary, text)
    except BaseException:
        os.unlink(temporary)
        raise
    if durable and os.name != "nt":
        folder_fd = os.open(folder, os.O_RDONLY | platform.O_CLOEXEC)
        try:
            os.fsync(folder_fd)
        finally:
            os.close(folder_fd)


def state_root() -> Path:
    """Return ``state_folder`` as a Path."""
    from pathlib import Path

    return Path(state_folder())


def config_root() -> Path:
    """Return ``config_folder`` as a Path."""
    from pathlib import Path

    return Path(config_folder())


def state_folder() -> str:
    """Return the user's state folder of hookturn (not made yet): ``HOOKTURN_STATE_DIR``, else the system's place.

    Source: https://specifications.freedesktop.org/basedir-spec/ ($XDG_STATE_HOME), by platformdirs elsewhere.
    """
    return _root("HOOKTURN_STATE_DIR", "user_state_dir")


def config_folder() -> str:
    """Return the user's configuration folder of hookturn: ``HOOKTURN_CONFIG_DIR``, else the system's place."""
    return _root("HOOKTURN_CONFIG_DIR", "user_config_dir")


def _root(variable: str, function: str) -> str:
    chosen = os.environ.get(variable)
    if chosen:
        return os.path.abspath(os.path.expanduser(chosen))
    import platformdirs

    place: str = getattr(platformdirs, function)("hookturn", appauthor=False)
    return place


def managed_config() -> Path:
    """Return the file of the managed layer (``MANAGED_CONFIG``), which may be missing."""
    from pathlib import Path

    return Path(MANAGED_CONFIG)


def project_hash(path: str | os.PathLike[str]) -> str:
    """Return a name for a project's folder, the same for every way that leads there: 32 hexadecimal digits."""
    return sha256_hex(os.fsencode(os.path.normcase(os.path.realpath(path))))[:32]


def project_state(project: str | os.PathLike[str]) -> str:
    """Return a project's folder in the user's state folder (not made yet)."""
    return os.path.join(state_folder(), "projects", project_hash(project))


def project_output(folder: str | os.PathLike[str]) -> str:
    """Return where hooks write for a folder that is no project, and so gets no ``.hookturn`` (not made yet)."""
    return os.path.join(project_state(folder), "output")


def hookturn_dir(project: str | os.PathLike[str]) -> Path:
    """Do what ``hookturn_folder`` does, and return the folder as a Path."""
    from pathlib import Path

    return Path(hookturn_folder(project))


def hookturn_folder(project: str | os.PathLike[str]) -> str:
    """Make the project's ``.hookturn`` folder (0700, with a ``.gitignore`` of its own) and return it.

    Raises:
        UnsafePathError: when it is a symbolic link or belongs to another user.
        OSError: when it cannot be made.
    """
    folder = private_folder(os.path.join(project, ".hookturn"))
    ignore = os.path.join(folder, ".gitignore")
    if not os.path.lexists(ignore):
        write_private(ignore, GITIGNORE)
    return folder


def lock_within(fd: int, path: str, seconds: float) -> None:
    """Take the exclusive lock of an open file, whose holder may have been stopped and never give it back.

    Parameters:
        fd: the open file.
        path: its path, for the error.
        seconds: how long to wait.

    Raises:
        TimeoutError: when somebody else held it for so long.
    """
    if platform.lock(fd, wait=False):
        return
    from time import monotonic, sleep

    end = monotonic() + seconds
    pause = 0.0005
    while not platform.lock(fd, wait=False):
        left = end - monotonic()
        if left <= 0:
            raise TimeoutError(f"{path} was locked by somebody else for {seconds:g} s")
        sleep(min(pause, left))
        pause = min(pause * 2, 0.005)


class FileLock:
    """An exclusive lock over processes and threads, held by a file that is made, and removed by its holder only.

    Use it as a context manager; one object may serve many threads. It is not re-entrant.

    Parameters:
        path: the lock file. Its folder must exist.
        timeout: seconds to wait, or None to wait for ever.

    Raises (on entering):
        TimeoutError: when somebody else held it for ``timeout`` seconds.
        OSError: when the file cannot be opened, or does not stay.
    """

    def __init__(self, path: str | os.PathLike[str], *, timeout: float | None = None) -> None:
        self.path = os.fspath(path)
        self.timeout = timeout
        self._fd = -1

    def __enter__(self) -> FileLock:
        for _ in range(TRIES):
            # An opening of its own for every holder: the lock belongs to it, so threads exclude each other too.
            fd = open_private(self.path, os.O_RDWR | os.O_CREAT)
            try:
                if self.timeout is None:
                    platform.lock(fd)
                else:
                    lock_within(fd, self.path, self.timeout)
                gone = os.fstat(fd).st_nlink == 0  # who held it before removed it
            except BaseException:
                os.close(fd)
                raise
            if not gone:
                self._fd = fd
                return self
            os.close(fd)
        raise OSError(ESTALE, "was removed again and again", self.path)

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        fd, self._fd = self._fd, -1
        try:
            # Closing alone would leave the lock with a child that was forked meanwhile.
            platform.unlock(fd)
        finally:
            os.close(fd)
