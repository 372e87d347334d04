"""Runs one program to its end or to its time limit, whatever it does, and leaves nothing of it behind. POSIX only.

The program gets a session of its own. Its pipes are read and written in one
loop with bounded buffers, so that neither side can block the other. At the
limit: TERM to all that it started, a grace, then KILL, also to what left its
session. No ``communicate()``, which waits for whoever holds the pipes.
"""

from __future__ import annotations

import os
from time import monotonic, sleep

from ..platform import family, how_it_ended, pidfd
from .programs import SHELL, not_started, start_failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from typing import Any

RUNNING = "HOOKTURN_RUNNING"
"""Environment variable: a word ``<label>.<random>`` for each run that a process belongs to, the outermost first.
It stops hooks that start themselves, and finds processes that left their session."""

OUTPUT_CAP = 1_000_000
"""Bytes kept of each of the two outputs; the rest is read and thrown away."""

GRACE = 0.3
"""Seconds between TERM and KILL."""

LINGER = 0.25
"""Seconds that outputs are read which a child of an ended program keeps open."""

KILLING = 0.08
"""Seconds in which processes that fork while they are killed are killed again."""

NOBODY = -1
"""A number that no process has."""

_CHUNK = 65_536
_NO_PIDFD = 0.01  # seconds between looks at a process that has no pidfd


class ProcessResult:
    """How a program ended.

    Attributes:
        exit_code: its exit code, or None when a signal ended it or it never ran.
        signal: the number of the signal that ended it, or None.
        failed_to_start: why it did not really start, or "". The exit code of the shell or interpreter that
            said so may be there, too.
        timed_out: it was stopped at its time limit.
        cancelled: it was stopped because the caller asked for it.
        stdout, stderr: the first ``output_cap`` bytes of each.
        truncated: there was more of standard output.
        held: a child still held an output some time after the end, and was killed.
        elapsed: seconds in all.
    """

    __slots__ = (
        "cancelled", "elapsed", "exit_code", "failed_to_start", "held", "signal", "stderr", "stdout", "timed_out",
        "truncated",
    )  # fmt: skip

    def __init__(self, failed_to_start: str = "") -> None:
        self.exit_code: int | None = None
        self.signal: int | None = None
        self.failed_to_start = failed_to_start
        self.timed_out = False
        self.cancelled = False
        self.stdout = bytearray()
        self.stderr = bytearray()
        self.truncated = False
        self.held = False
        self.elapsed = 0.0

    @property
    def ended(self) -> str:
        """How it ended, in words."""
        if self.failed_to_start:
            return f"failed to start: {self.failed_to_start}"
        if self.timed_out:
            return f"was stopped at its time limit after {self.elapsed:.1f} s"
        if self.cancelled:
            return "was stopped"
        if self.signal is not None:
            from signal import Signals

            try:
                name = f" ({Signals(self.signal).name})"
            except ValueError:  # a real-time signal
                name = ""
            return f"was ended by signal {self.signal}{name}"
        if self.exit_code is None:
            return "ended, and somebody else took its exit code (SIGCHLD is ignored, or another wait() runs)"
        return f"ended with exit code {self.exit_code}"

    def __repr__(self) -> str:
        return f"<ProcessResult: {self.ended}>"


def labels(env: Mapping[str, str]) -> list[str]:
    """Return the labels of the runs that a process with this environment belongs to, the outermost first."""
    return [word.rpartition(".")[0] for word in env.get(RUNNING, "").split()]


def run_process(
    command: Sequence[str] | str,
    stdin: bytes = b"",
    *,
    cwd: str | None = None,
    env: Mapping[str, str] | None = None,
    timeout: float = 5.0,
    output_cap: int = OUTPUT_CAP,
    grace: float = GRACE,
    label: str = "",
    cancel: int | None = None,
) -> ProcessResult:
    """Run a program and return how it ended. Takes at most ``timeout + grace`` and some milliseconds.

    From any thread. A child that has left the program's session and keeps none of its outputs open may
    outlive a program that ends by itself; at the time limit everything goes.

    Parameters:
        command: a path with arguments, run without a shell; or one line for ``/bin/sh -c``.
        stdin: what it may read; that it does not is no error.
        cwd: the folder to run in.
        env: its environment; default: ours.
        timeout: seconds until TERM.
        output_cap: bytes kept of each output.
        grace: seconds between TERM and KILL.
        label: a word without blanks and dots for ``HOOKTURN_RUNNING``.
        cancel: a file descriptor; when it becomes readable, the program is stopped as at its time limit.

    Returns:
        the result; that the program cannot be started is one, too, and no exception.
    """
    start = monotonic()
    # The blank: a line that begins with a hyphen is no option of the shell.
    argv = [SHELL, "-c", f" {command}"] if isinstance(command, str) else list(command)
    environment = dict(os.environ if env is None else env)
    word = f"{label}.{os.urandom(8).hex()}"
    environment[RUNNING] = f"{environment.get(RUNNING, '')} {word}".strip()
    run = _Run(output_cap, word.encode())
    try:
        run.result.failed_to_start = run.start(argv, cwd, environment)
        if not run.result.failed_to_start:
            run.go(stdin, start + timeout, grace, cancel)
    finally:
        run.close()
    result = run.result
    result.elapsed = monotonic() - start
    if not (result.failed_to_start or result.timed_out or result.cancelled):
        result.failed_to_start = start_failure(result.exit_code, result.stderr, bytes(stdin or b""))
    return result


class _Run:
    """One running program: its pipes, its end, and how to be rid of it."""

    def __init__(self, output_cap: int, mark: bytes) -> None:
        from select import poll

        self.result = ProcessResult()
        self.cap = output_cap
        self.mark = mark
        self.process: Any = None
        self.pid = 0
        self.poller = poll()
        self.watch: int | None = None  # the pidfd
        self.ended_at = 0.0  # 0 while it runs
        self.known: dict[int, bytes] = {}  # what it started, as far as it was seen
        self.gone = False  # waited for: its number may be anybody's
        self.outputs: dict[int, bytearray] = {}
        self.input = -1
        self.rest = memoryview(b"")
        self.sigpipe = False
        self.cancel: int | None = None

    def start(self, argv: list[str], cwd: str | None, env: dict[str, str]) -> str:
        """Start the program; return why that failed, or an empty string."""
        import subprocess

        opened: list[int] = []
        try:
            for _ in range(3):
                opened += os.pipe()
            child_in, self.input, out, child_out, err, child_err = opened
            self.process = subprocess.Popen(  # noqa: S603  # a trusted configuration names the program
                argv, stdin=child_in, stdout=child_out, stderr=child_err, cwd=cwd, env=env, start_new_session=True
            )  # fmt: skip
        except (OSError, ValueError) as error:
            self.input = -1
            for fd in opened:
                os.close(fd)
            return not_started(error, argv[0], cwd)
        except BaseException:
            self.input = -1
            for fd in opened:
                os.close(fd)
            raise
        self.outputs = {out: self.result.stdout, err: self.result.stderr}
        for fd in (child_in, child_out, child_err):
            os.close(fd)
        self.pid = self.process.pid
        return ""

    def go(self, stdin: bytes, end: float, grace: float, cancel: int | None) -> None:
        """Move data until the program has ended or must be stopped."""
        from select import POLLIN, POLLOUT

        try:
            self.watch = pidfd(self.pid)
            if self.watch is not None:
                self.poller.register(self.watch, POLLIN)
            for fd in self.outputs:
                os.set_blocking(fd, False)
                self.poller.register(fd, POLLIN)
            os.set_blocking(self.input, False)
            self.rest = memoryview(stdin)
            self.poller.register(self.input, POLLOUT)
            if not stdin:
                self._close_input()
            else:
                from signal import SIG_DFL, SIGPIPE, getsignal

                self.sigpipe = getsignal(SIGPIPE) == SIG_DFL
            if cancel is not None:
                self.cancel = cancel
                self.poller.register(cancel, POLLIN)
            if not self._pump(end):
                if not self.result.cancelled:
                    self.result.timed_out = True
                self._stop(grace)
            elif self.outputs:
                self.result.held = True
                self._kill()
            self._reap()
        except BaseException:  # KeyboardInterrupt above all: nothing may be left behind
            self._kill()
            self._reap()
            raise

    def _pump(self, end: float) -> bool:
        """Move data until the program has ended and its outputs are read (or held by others): True, else False."""
        while True:
            if self.ended_at and not self.outputs:
                return True
            wait = (min(end, self.ended_at + LINGER) if self.ended_at else end) - monotonic()
            if wait <= 0:
                return self.ended_at > 0
            if self.watch is None and not self.ended_at:
                wait = min(wait, _NO_PIDFD)
            for fd, _ in self.poller.poll(wait * 1000 + 0.5):
                if fd in self.outputs:
                    self._read(fd)
                elif fd == self.input:
                    self._write()
                elif fd == self.cancel:
                    self.poller.unregister(fd)
                    self.cancel = None
                    self.result.cancelled = True
                    return False
                elif fd == self.watch and self._look():
                    self.poller.unregister(fd)
            if self.watch is None:
                self._look()

    def _read(self, fd: int) -> None:
        buffer = self.outputs[fd]
        try:
            data = os.read(fd, _CHUNK)
        except BlockingIOError:
            return
        if not data:
            self.poller.unregister(fd)
            del self.outputs[fd]
            os.close(fd)
            return
        room = self.cap - len(buffer)
        if room >= len(data):
            buffer += data
        else:
            buffer += data[:room]
            if buffer is self.result.stdout:
                self.result.truncated = True

    def _write(self) -> None:
        try:
            done = self._send(self.rest[:_CHUNK])
        except BlockingIOError:
            return
        except OSError:  # it does not read, or no longer: that is its own affair
            done = len(self.rest)
        self.rest = self.rest[done:]
        if not self.rest:
            self._close_input()

    def _send(self, data: memoryview) -> int:
        if not self.sigpipe:
            return os.write(self.input, data)
        # The host has SIGPIPE at its default, which would end it: the signal is blocked and taken back.
        from signal import SIG_BLOCK, SIG_SETMASK, SIGPIPE, pthread_sigmask, sigpending, sigwait

        old = pthread_sigmask(SIG_BLOCK, {SIGPIPE})
        try:
            return os.write(self.input, data)
        finally:
            if SIGPIPE not in old and SIGPIPE in sigpending():
                sigwait({SIGPIPE})
            pthread_sigmask(SIG_SETMASK, old)

    def _close_input(self) -> None:
        if self.input >= 0:
            self.poller.unregister(self.input)
            os.close(self.input)
            self.input = -1

    def _look(self) -> bool:
        """Note how the program ended, if it has. It is not waited for yet, so that its number stays its own."""
        if self.ended_at:
            return True
        how = how_it_ended(self.pid)
        if how is None:
            return False
        self.result.exit_code, self.result.signal, self.gone = how
        self.ended_at = monotonic()
        self._close_input()
        return True

    def _stop(self, grace: float) -> None:
        """End the program and all that it started: TERM, grace, KILL."""
        from signal import SIGCONT, SIGTERM

        self._signal(SIGTERM, self._family())
        self._signal(SIGCONT, ())  # a stopped one must wake up to end
        end = monotonic() + grace
        while (now := monotonic()) < end:
            self._pump(min(end, now + 0.02))
            if self.ended_at:
                if not self._family():
                    break
                sleep(0.005)
        self._kill()

    def _kill(self) -> None:
        """Kill all that is left, again while it forks."""
        from signal import SIGKILL

        end = monotonic() + KILLING
        while True:
            self._signal(SIGKILL, ())
            left = self._family()
            if not left:
                break
            self._signal(SIGKILL, left)
            if monotonic() > end:
                break
            sleep(0.002)
        for fd in list(self.outputs):
            self._drain(fd)

    def _drain(self, fd: int) -> None:
        """Read what still stands in a pipe, but not for ever."""
        for _ in range(1 + self.cap // _CHUNK):
            if fd not in self.outputs:
                return
            before = len(self.outputs[fd])
            self._read(fd)
            if fd in self.outputs and len(self.outputs[fd]) == before:
                return

    def _family(self) -> Iterable[int]:
        """What is left of it, as far as the system tells."""
        left = family(NOBODY if self.gone or self.pid <= 0 else self.pid, self.mark, self.known)
        if left is None:
            return ()
        self.known.update(left)
        return left

    def _signal(self, number: int, others: Iterable[int]) -> None:
        """Send a signal to the program's group, and to others."""
        # A group's number is nobody else's while one of the group lives; without any there is nothing to signal.
        if self.pid > 0:  # 0 would be our own group
            _ignoring_gone(os.killpg, self.pid, number)
        for pid in others:
            _ignoring_gone(os.kill, pid, number)

    def _reap(self) -> None:
        """Wait for the program, which has ended or is about to."""
        end = monotonic() + 0.05
        while not self._look() and monotonic() < end:
            sleep(0.001)
        if self.gone:
            self.process.returncode = 0  # else subprocess would look for it
        elif self.ended_at:
            self.process.wait()
        else:  # it hangs in the kernel; somebody must take it when it comes out
            from threading import Thread

            Thread(target=self.process.wait, daemon=True, name="hookturn-reaper").start()

    def close(self) -> None:
        """Let go of all descriptors."""
        self._close_input()
        for fd in self.outputs:
            os.close(fd)
        self.outputs = {}
        if self.watch is not None:
            os.close(self.watch)
            self.watch = None


def _ignoring_gone(send: Any, pid: int, number: int) -> None:
    """Send a signal; that the process is gone, or somebody else's, is fine."""
    from contextlib import suppress

    with suppress(ProcessLookupError, PermissionError):
        send(pid, number)
