"""Runs the git command line: nothing inherited that redirects it, no prompts, no editor, a time limit, no leftovers.

It knows git, not hooks and not what is to be committed.
"""

from __future__ import annotations

import os
import re

TYPE_CHECKING = False
if TYPE_CHECKING:
    import subprocess
    from collections.abc import Iterable, Mapping
    from typing import IO

OLDEST: tuple[int, ...] = (2, 39)
"""The oldest git that is tried."""

LOCK_SECONDS = 2.0
"""How long somebody else's lock is waited for."""

GRACE_SECONDS = 2.0
"""How long a git that is told to stop may take to remove its locks."""

OPERATIONS = {
    "MERGE_HEAD": "a merge",
    "CHERRY_PICK_HEAD": "a cherry-pick",
    "REVERT_HEAD": "a revert",
    "BISECT_LOG": "a bisection",
    "rebase-merge": "a rebase",
    "rebase-apply": "a rebase or git am",
    "sequencer": "a cherry-pick or revert",
}
"""What in a git directory says that the user is in the middle of something."""

# Configuration may run programs at any git command; these are the ones that nobody asked for here.
_ALWAYS = (
    "-c", "core.fsmonitor=false",
    "-c", "gc.auto=0",
    "-c", "maintenance.auto=false",
    "-c", "submodule.recurse=false",
)  # fmt: skip

_LOCK = re.compile(r"Unable to create '([^\n]+\.lock)': File exists")

_versions: dict[str, tuple[int, ...]] = {}


class Stop(Exception):
    """Nothing (more) is to be done.

    Parameters:
        outcome: ``nothing to do``, ``skipped`` or ``failed``.
        reason: why, for the user.
    """

    def __init__(self, outcome: str, reason: str) -> None:
        super().__init__(reason)
        self.outcome = outcome
        self.reason = reason


class Done:
    """A finished git process.

    Attributes:
        code: its exit code; negative for a signal.
        out: its standard output.
        error: its standard error, without hints, on one line.
        lock: the lock file of somebody else that made it fail, or an empty string.
    """

    __slots__ = ("code", "error", "lock", "out")

    def __init__(self, code: int, out: bytes, err: bytes) -> None:
        self.code = code
        self.out = out
        text = err.decode("utf-8", "replace")
        locked = _LOCK.search(os.fsdecode(err)) if code else None
        self.lock = locked[1] if locked else ""
        lines = [line.strip() for line in text.splitlines()]
        kept = [line for line in lines if line and not line.startswith("hint:")]
        self.error = " ".join(kept)[:400]

    @property
    def why(self) -> str:
        """What it says about its failure."""
        return self.error.removeprefix("fatal: ").removeprefix("error: ") or f"exit code {self.code}"


class Git:
    """The git of one project.

    Parameters:
        folder: the folder in which it runs.
        env: the environment; variables that begin with ``GIT_`` are left out.
        timeout: seconds that all processes together may take.
        hooks: whether the repository's hooks run.
    """

    def __init__(self, folder: str, env: Mapping[str, str], *, timeout: float, hooks: bool = False) -> None:
        from time import monotonic

        self.folder = folder
        self.hooks = hooks
        self.timeout = timeout
        self.processes = 0
        self._deadline = monotonic() + timeout
        self._env = {name: value for name, value in env.items() if not name.upper().startswith("GIT_")}
        self._env.update(
            GIT_TERMINAL_PROMPT="0",
            GIT_LITERAL_PATHSPECS="1",
            GIT_EDITOR="true",
            GIT_SEQUENCE_EDITOR="true",
            GIT_ASKPASS="true",
            SSH_ASKPASS="true",
            GIT_PAGER="cat",
            LC_ALL="C",
        )
        self._env.pop("LANGUAGE", None)

    def use(self, git_dir: str, work_tree: str) -> None:
        """Let the processes to come use another git directory for the same files."""
        self._env.update(GIT_DIR=git_dir, GIT_WORK_TREE=work_tree)

    def left(self) -> float:
        """Return how many seconds are left."""
        from time import monotonic

        return self._deadline - monotonic()

    def more_time(self, seconds: float) -> None:
        """Let what must still be done take so long, even though the time may be over."""
        from time import monotonic

        self._deadline = max(self._deadline, monotonic() + seconds)

    def run(
        self,
        *words: str,
        stdin: bytes = b"",
        pathspec: bytes | None = None,
        reads: bool = False,
        config: Iterable[str] = (),
    ) -> Done:
        """Run one command.

        Parameters:
            words: the command and its arguments.
            stdin: what it reads; complete before it starts, so that our death cannot cut it off.
            pathspec: the content of a pathspec file, whose option is added.
            reads: it only looks: the index is not even refreshed on disk.
            config: settings for this command, ``name=value``.

        Raises:
            Stop: when git is missing or the time is over; then nothing of it is left running.
        """
        import subprocess
        from contextlib import ExitStack
        from tempfile import TemporaryFile

        command = ["git", *_ALWAYS]
        if not self.hooks:
            command += ["-c", f"core.hooksPath={os.devnull}"]
        for setting in config:
            command += ["-c", setting]
        command += words
        env = {**self._env, "GIT_OPTIONAL_LOCKS": "0"} if reads else self._env
        with ExitStack() as files:
            out, err = files.enter_context(TemporaryFile()), files.enter_context(TemporaryFile())
            given: IO[bytes] | int = subprocess.DEVNULL
            if stdin:
                given = files.enter_context(TemporaryFile())
                _fill(given, stdin)
            passed = []
            if pathspec is not None:
                file = files.enter_context(TemporaryFile())
                _fill(file, pathspec)
                passed.append(file.fileno())
                command += [f"--pathspec-from-file=/dev/fd/{file.fileno()}", "--pathspec-file-nul"]
            try:
                # A session of its own: Ctrl-C and hang-ups of the terminal do not hit it between two steps.
                process = subprocess.Popen(  # noqa: S603
                    command, cwd=self.folder, env=env, stdin=given, stdout=out, stderr=err,
                    pass_fds=passed, start_new_session=True,
                )  # fmt: skip
            except FileNotFoundError:
                if not os.path.isdir(self.folder):
                    raise Stop("skipped", f"there is no folder {self.folder}") from None
                raise Stop("skipped", "git is not installed") from None
            self.processes += 1
            if not _wait(process, self.left()):
                raise Stop("failed", f"git {words[0]} took longer than the time limit of {self.timeout:g} s")
            out.seek(0)
            err.seek(0)
            return Done(process.returncode, out.read(), err.read())

    def checked(self, *words: str, stdin: bytes = b"", reads: bool = True) -> bytes:
        """Run one command that must succeed and return its output.

        Raises:
            Stop: when it fails.
        """
        done = self.run(*words, stdin=stdin, reads=reads)
        if done.code:
            raise Stop("failed", f"git {words[0]}: {done.why}")
        return done.out

    def patient(
        self,
        *words: str,
        stdin: bytes = b"",
        pathspec: bytes | None = None,
        config: Iterable[str] = (),
    ) -> Done:
        """Run a command that writes, again while somebody else holds a lock, at most LOCK_SECONDS long.

        Raises:
            Stop: when the lock stays.
        """
        from time import monotonic

        end = monotonic() + LOCK_SECONDS
        while True:
            done = self.run(*words, stdin=stdin, pathspec=pathspec, config=config)
            if not done.lock:
                return done
            if not wait_for(done.lock, end):
                raise Stop("skipped", f"another git process holds a lock ({done.why})")

    def check_version(self) -> None:
        """Find out once whether git can be used.

        Raises:
            Stop: when it is missing or too old.
        """
        from shutil import which

        path = which("git", path=self._env.get("PATH"))
        if path is None:
            raise Stop("skipped", "git is not installed")
        found: tuple[int, ...] | None = _versions.get(path)
        if found is None:
            text = self.run("--version", reads=True).out.decode("ascii", "replace")
            self.processes -= 1  # once for all commits of this process
            numbers = re.search(r"(\d+)\.(\d+)", text)
            found = _versions[path] = (int(numbers[1]), int(numbers[2])) if numbers else (0, 0)
        if found < OLDEST:
            shown = ".".join(map(str, found))
            raise Stop("skipped", f"git {shown} at {path} is too old; {OLDEST[0]}.{OLDEST[1]} is needed")


def wait_for(path: str, end: float) -> bool:
    """Wait until a lock file is gone, at most to a moment of the monotonic clock; tells whether it is.

    Parameters:
        path: the lock file; never removed here.
        end: the moment.
    """
    from time import monotonic, sleep

    while True:
        if monotonic() >= end:  # before the look: a lock that comes and goes must not keep us for ever
            return False
        if not os.path.lexists(path):
            return True
        sleep(0.05)


def _fill(file: IO[bytes], data: bytes) -> None:
    file.write(data)
    file.flush()
    file.seek(0)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait for a process; one that takes longer is stopped with all its children. Tells whether it ended itself."""
    try:
        if _ended(process, seconds):
            process.wait()
            return True
        return False
    finally:
        if process.returncode is None:
            _stop(process)


def _ended(process: subprocess.Popen[bytes], seconds: float) -> bool:
    """Wait without reaping: its process group keeps its number until it is reaped."""
    import subprocess
    from select import poll

    try:
        fd = os.pidfd_open(process.pid)
    except (AttributeError, OSError):  # no Linux, or an old one
        try:
            process.wait(max(seconds, 0))
        except subprocess.TimeoutExpired:
            return False
        return True
    try:
        waiter = poll()
        waiter.register(fd)
        return bool(waiter.poll(max(seconds, 0) * 1000))
    finally:
        os.close(fd)


def _stop(process: subprocess.Popen[bytes]) -> None:
    """End a process and its children: git removes its locks when it is asked to end."""
    from signal import SIGKILL, SIGTERM

    os.killpg(process.pid, SIGTERM)
    _ended(process, GRACE_SECONDS)
    if process.returncode is None:
        os.killpg(process.pid, SIGKILL)
        process.wait()


class Repository:
    """Where a project's repository keeps what.

    Attributes:
        top: the real path of the folder with the files.
        git_dir: the git directory of this working tree.
        common_dir: the one that all its working trees share.
        tip: the commit of the ref that was asked for, or an empty string.
    """

    __slots__ = ("common_dir", "git_dir", "tip", "top")

    def __init__(self, top: str, git_dir: str, common_dir: str, tip: str) -> None:
        self.top = os.path.realpath(top)
        self.git_dir = git_dir
        self.common_dir = common_dir
        self.tip = tip

    def operation(self) -> str:
        """Return what the user is in the middle of, or an empty string."""
        for name, what in OPERATIONS.items():
            if os.path.lexists(os.path.join(self.git_dir, name)):
                return what
        return ""

    def wait_for_locks(self) -> None:
        """Wait for the locks of the index and of HEAD; none is ever removed.

        Raises:
            Stop: when one stays longer than LOCK_SECONDS.
        """
        from time import monotonic

        end = monotonic() + LOCK_SECONDS
        for name in ("index.lock", "HEAD.lock"):
            path = os.path.join(self.git_dir, name)
            if os.path.lexists(path) and not wait_for(path, end):
                raise Stop("skipped", f"another git process holds {path}")

    def checked_out(self, ref: str) -> str:
        """Return the git directory of a working tree that has a branch checked out, or an empty string."""
        folders = [self.git_dir, self.common_dir]
        others = os.path.join(self.common_dir, "worktrees")
        if os.path.isdir(others):
            folders += [os.path.join(others, name) for name in os.listdir(others)]
        for folder in folders:
            try:
                with open(os.path.join(folder, "HEAD"), encoding="utf-8", errors="replace") as file:
                    if file.read(4096).strip() == f"ref: {ref}":
                        return folder
            except OSError:
                continue  # a working tree that is being removed
        return ""


def find(git: Git, ref: str = "") -> Repository:
    """Find the repository of a folder, and the tip of a ref in it.

    Parameters:
        git: runs in the folder; in the repository's top folder afterwards.
        ref: a full ref name without glob characters, or an empty string.

    Raises:
        Stop: when there is none that has files and may be used.
    """
    words = ["rev-parse", "--path-format=absolute", "--is-bare-repository", "--git-dir", "--git-common-dir",
             "--show-toplevel"]  # fmt: skip
    if ref:
        # A glob that only this name matches: unlike a name, one that matches nothing is no error.
        words.append(f"--glob={ref[:-1]}[{ref[-1]}]")
    done = git.run(*words, reads=True)
    lines = os.fsdecode(done.out).split("\n")
    if lines[0] == "true":
        raise Stop("skipped", "the repository is bare: it has no files")
    if done.code:
        if "dubious ownership" in done.error or "unsafe repository" in done.error:
            raise Stop("skipped", "the repository belongs to somebody else (git's safe.directory)")
        if "not a git repository" in done.error:
            raise Stop("skipped", f"{git.folder} is in no git repository")
        if "must be run in a work tree" in done.error:
            raise Stop("skipped", f"{git.folder} is not among the files of a repository")
        raise Stop("failed", f"git rev-parse: {done.why}")
    if len(lines) - 1 not in (4, 4 + bool(ref)):
        raise Stop("skipped", "the path of the repository has a newline in it")
    repository = Repository(lines[3], lines[1], lines[2], lines[4] if ref else "")
    git.folder = repository.top
    return repository


class Entry:
    """What ``git status`` says of one path.

    Attributes:
        kind: ``1`` for a tracked path, ``?`` for an untracked one, ``u`` for an unmerged one.
        change: two letters, against HEAD and against the index; ``.`` for unchanged, empty for a path that
            is in neither.
        submodule: whether it is one.
        mode: its mode in HEAD, ``000000`` without one.
        head: its object in HEAD.
        staged: mode and object in the index, where that is not HEAD's; else an empty string.
    """

    __slots__ = ("change", "head", "kind", "mode", "staged", "submodule")

    def __init__(
        self, kind: str, change: str = "", sub: str = "N", mode: str = "", head: str = "", staged: str = ""
    ) -> None:
        self.kind = kind
        self.change = change
        self.submodule = sub.startswith("S")
        self.mode = mode
        self.head = head
        self.staged = staged


class Status:
    """The state of a working tree.

    Attributes:
        head: the commit, or an empty string before the first one.
        branch: the branch's name, or an empty string when HEAD is detached.
        entries: what differs, by path relative to the top.
        unmerged: the unmerged paths.
    """

    __slots__ = ("branch", "entries", "head", "unmerged")

    def __init__(self, data: bytes) -> None:
        self.head = self.branch = ""
        self.entries: dict[bytes, Entry] = {}
        self.unmerged: list[bytes] = []
        for line in data.split(b"\0"):
            kind = line[:2]
            if kind == b"# ":
                name, _, value = line[2:].decode("utf-8", "replace").partition(" ")
                if name == "branch.oid" and value != "(initial)":
                    self.head = value
                elif name == "branch.head" and value != "(detached)":
                    self.branch = value
            elif kind == b"1 ":
                change, sub, mode, index_mode, _, head, index, path = line[2:].split(b" ", 7)
                staged = b"" if change[:1] in b".D" else index_mode + b" " + index
                entry = Entry("1", *(part.decode() for part in (change, sub, mode, head, staged)))
                self.entries[path] = entry
            elif kind == b"u ":
                self.unmerged.append(line.split(b" ", 10)[10])
            elif kind == b"? ":
                path = line[2:]
                before = self.entries.get(path)
                if before is None:
                    self.entries[path] = Entry("?")
                else:  # in HEAD, but not in the index
                    before.kind = "?"


def status(git: Git) -> Status:
    """Look at the whole working tree; unmerged paths count wherever they are.

    Raises:
        Stop: when git cannot tell.
    """
    return Status(
        git.checked(
            "status", "--porcelain=v2", "-z", "--branch", "--no-ahead-behind", "--untracked-files=all",
            "--no-renames", "--ignore-submodules=dirty",
        )
    )  # fmt: skip


def paths_file(paths: Iterable[bytes]) -> bytes:
    """Return the content of a pathspec file."""
    return b"".join(path + b"\0" for path in paths)
