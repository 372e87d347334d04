"""What commands print: JSON, tables and texts. Payloads are hostile: nothing of them reaches a terminal unescaped."""

from __future__ import annotations

import sys
from contextlib import contextmanager, suppress
from functools import cache
from io import TextIOBase

from ..spec.errors import HookturnError

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from typing import Any, Literal

    from ..project.problems import Problem

    Style = Literal["", "bold", "dim", "red", "green", "yellow", "cyan"]

LINE = 200
"""Characters of a text that human output shows in one line."""

CELL = 60
"""Characters of a text in a table that other columns follow."""

LINES = 20
"""Lines of a longer text that human output shows."""

_STYLES: Mapping[Style, str] = {
    "bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "cyan": "36",
}  # fmt: skip
DECISION_STYLES: Mapping[str, Style] = {"deny": "red", "block": "red", "ask": "yellow", "allow": "green"}
"""Colour of a decision."""


class CommandError(HookturnError):
    """A command cannot do what it was asked.

    Parameters:
        message: what is wrong, where, and what to do next.
        code: the exit code: 1 or, for wrong usage, 2.
        usage: the command's usage line, or "".
        report: what ``--json`` prints beside the error.
    """

    def __init__(
        self, message: str, code: int = 1, *, usage: str = "", report: dict[str, Any] | None = None
    ) -> None:
        super().__init__(message)
        self.code = code
        self.usage = usage
        self.report = report or {}


class UsageError(CommandError):
    """The command line, or the input given with it, is wrong."""

    def __init__(self, message: str, **more: Any) -> None:
        super().__init__(message, 2, **more)


def prepare() -> None:
    """Make standard output and error take any text: what their encoding lacks is escaped."""
    for stream in (sys.stdout, sys.stderr):
        reconfigure = getattr(stream, "reconfigure", None)
        if reconfigure is not None:
            reconfigure(errors="backslashreplace")


def say(text: str = "") -> None:
    """Print a line of human output. Foreign texts in it must have gone through ``clean`` or ``short``."""
    stream = _stdout()
    if stream is not None:
        stream.write(text + "\n")


def complain(text: str) -> None:
    """Print a message about a mistake or a problem on standard error."""
    lines = f"hookturn: {text}".split("\n")
    _tell("".join(f"{clean(line)}\n" for line in lines))


def opened(fd: int) -> tuple[int, int] | None:
    """Return what a descriptor is, to tell whether it still is: a hook may have closed it, and the next file that is
    opened, the audit trail's say, takes its number. None for a closed one.
    """
    import os

    try:
        found = os.fstat(fd)
    except OSError:
        return None
    return found.st_dev, found.st_ino


def hand_over(answer: bytes) -> None:
    """Write another program's answer to standard output, as it is.

    Raises:
        OSError: when that is closed, or is another file by now.
    """
    out = _stdout()
    if answer and out is not None:
        if out is _own_out and _own_file is not None and opened(out.fileno()) != _own_file:
            raise OSError("its descriptor is another file's")
        out.flush()
        out.buffer.write(answer)
        out.flush()


def diagnose(diagnostics: str) -> None:
    """Write another program's diagnostics to standard error, line by line printable."""
    _tell("".join(f"{clean(line)}\n" for line in diagnostics.splitlines()))


def _tell(text: str) -> None:
    """Write to standard error. Nobody may read it any more: that changes nothing but that nobody reads it."""
    stream = _stderr()
    if stream is not None:
        with suppress(OSError, ValueError):  # its reader went away, or a hook closed it
            stream.write(text)
            stream.flush()


def progress(text: str) -> None:
    """Show a passing line on a terminal at standard error; an empty text takes it away."""
    stream = _stderr()
    if stream is not None and stream.isatty():
        stream.write(f"\r\x1b[K{clean(text)}")
        stream.flush()


def emit(value: Any) -> None:
    """Print one JSON document: plain ASCII, so that lone surrogates stay valid whatever the encoding."""
    import json

    from ..spec.record import jsonable

    say(json.dumps(jsonable(value), indent=2, allow_nan=False))


def os_error(error: OSError) -> str:
    """Return the words of an operating system's error, with the file where it names one."""
    text = error.strerror or str(error) or type(error).__name__
    return f"{error.filename}: {text}" if isinstance(error.filename, str) else text


# -- texts ------------------------------------------------------------------------------------------


def clean(text: str) -> str:
    """Return a text as one printable line: control characters, escapes and invisible marks become ``\\x1b`` and such."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c in "\xa0\u3000" else _escaped(c) for c in text)


def _escaped(character: str) -> str:
    return character.encode("unicode_escape").decode("ascii")


def short(text: str, limit: int = LINE) -> str:
    """Return a text as one printable line, cut where it is longer than ``limit`` characters."""
    if len(text) <= limit:
        return clean(text)
    return f"{clean(text[:limit])}... (+{len(text) - limit:,} characters)"


def block(text: str, indent: str = "  ") -> str:
    """Return a text of several lines, each printable and indented; long ones are cut."""
    lines = text.split("\n", LINES)
    rest = ""
    if len(lines) > LINES:
        rest = f"\n{indent}... (+{lines.pop().count(chr(10)) + 1:,} lines)"
    return "\n".join(f"{indent}{short(line.removesuffix(chr(13)))}" for line in lines) + rest


def value_text(value: Any) -> str:
    """Return any value for human output: a text as it is, else its JSON."""
    if isinstance(value, str):
        return value
    import json

    from ..spec.record import jsonable

    return json.dumps(jsonable(value), ensure_ascii=False)


def count(number: int, thing: str) -> str:
    """Return ``1 problem``, ``2 problems``."""
    return f"{number:,} {thing}" if number == 1 else f"{number:,} {thing}s"


def paint(text: str, style: Style) -> str:
    """Return the text in a colour of ``_STYLES``, if standard output is a terminal that wants colours."""
    if not style or not coloured():
        return text
    return f"\x1b[{_STYLES[style]}m{text}\x1b[0m"


def severity(problem: Problem) -> str:
    """Return the word for how bad a problem is, in its colour."""
    return paint(problem.severity, "red" if problem.severity == "error" else "yellow")


def on_terminal() -> bool:
    """Whether standard output is a terminal."""
    stream = _stdout()
    return stream is not None and bool(stream.isatty())


def coloured() -> bool:
    """Whether standard output is a terminal that wants colours."""
    import os

    # https://no-color.org: any value that is not empty
    if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb":
        return False
    return on_terminal()


# -- layout -----------------------------------------------------------------------------------------


def pairs(rows: Iterable[tuple[str, str]], indent: str = "  ") -> None:
    """Print labels and their texts, aligned. Texts of several lines go below their label's column."""
    rows = [(label, text) for label, text in rows if text]
    wide = max((len(label) for label, _ in rows), default=0)
    for label, text in rows:
        body = block(text, " " * (len(indent) + wide + 2))
        say(f"{indent}{paint(label.ljust(wide), 'dim')}  {body.lstrip(' ')}")


def table(
    headers: Sequence[str],
    rows: Iterable[Sequence[str]],
    *,
    indent: str = "  ",
    right: Sequence[str] = (),
    styles: Mapping[str, Style] | None = None,
) -> None:
    """Print an aligned table; columns that are empty in all rows are left out.

    Parameters:
        headers: names of the columns.
        rows: the cells; long ones are cut.
        indent: what each line begins with.
        right: names of the columns that are aligned to the right.
        styles: what a cell begins with -> style of the cell.
    """
    last = len(headers) - 1
    cells = [[short(cell, LINE if place == last else CELL) for place, cell in enumerate(row)] for row in rows]
    kept = [place for place in range(len(headers)) if any(row[place] for row in cells)]
    widths = {place: max(width(row[place]) for row in [list(headers), *cells]) for place in kept}
    for number, row in enumerate([list(headers), *cells]):
        parts = []
        for place in kept:
            fill = " " * (widths[place] - width(row[place]))
            style = "dim" if number == 0 else (styles or {}).get(row[place].split(" ")[0].rstrip(":"), "")
            text = paint(row[place], style)
            parts.append(fill + text if headers[place] in right else text + fill)
        say((indent + "  ".join(parts)).rstrip())


def width(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from unicodedata import combining, east_asian_width

    return sum(0 if combining(c) else 2 if east_asian_width(c) in "WF" else 1 for c in text)


# -- hooks ------------------------------------------------------------------------------------------


class _Escaping(TextIOBase):
    """Standard error for hooks and their logs: control characters (but line ends and tabs) are escaped."""

    def __init__(self, stream: Any) -> None:
        self._stream = stream

    def write(self, text: str) -> int:
        if self._stream is not None:
            lines = ("\t".join(map(clean, line.split("\t"))) for line in text.split("\n"))
            with suppress(OSError, ValueError):  # a hook must not fail because nobody reads what it prints
                self._stream.write("\n".join(lines))
        return len(text)

    def flush(self) -> None:
        if self._stream is not None:
            with suppress(OSError, ValueError):
                self._stream.flush()

    def writable(self) -> bool:
        return True

    def fileno(self) -> int:
        if self._stream is None:
            raise OSError("standard error is closed")
        number: int = self._stream.fileno()
        return number

    @property
    def buffer(self) -> Any:
        """For hooks that write bytes."""
        return self._stream.buffer


_own_out: Any = None  # while hooks are at work: the real standard output, which only this module writes to
_own_err: Any = None  # and the real standard error
_moved = -1  # and the descriptor of the real standard output, where 1 is ours
_own_file: Any = None  # what the real standard output's descriptor is: see ``opened``


def _stdout() -> Any:
    return sys.stdout if _own_out is None else _own_out


def _stderr() -> Any:
    return sys.stderr if _own_err is None else _own_err


@contextmanager
def hooks_at_work() -> Iterator[None]:
    """While hooks run: what they print, and the programs they start, goes to standard error, escaped.

    Standard output belongs to the command's own result, which may be one JSON
    document; ``say``, ``emit``, ``complain`` and ``progress`` go where they always go.
    """
    import os

    global _own_out, _own_err, _own_file, _moved
    # Read when loguru is imported, at a hook's first message. Its tracebacks would show the values of variables.
    os.environ.setdefault("LOGURU_DIAGNOSE", "NO")
    os.environ.setdefault("LOGURU_BACKTRACE", "NO")
    before = sys.stdout, sys.stderr
    copy = _move_stdout()
    _watch_forks()
    _moved = -1 if copy is None else copy.fileno()
    _own_out, _own_err = copy or sys.stdout, sys.stderr
    _own_file = opened(copy.fileno()) if copy is not None else None
    sys.stdout = sys.stderr = theirs = _Escaping(sys.stderr)
    try:
        yield
    finally:
        theirs.flush()  # a hook may have put something else, or None, in its place
        sys.stdout, sys.stderr = before
        file, _own_out, _own_err, _own_file, _moved = _own_file, None, None, None, -1
        if copy is not None:
            with suppress(OSError, ValueError):  # a hook may have closed what it did not open
                before[0].flush()  # what hooks wrote to sys.__stdout__ goes to standard error, too
                if opened(copy.fileno()) == file:
                    os.dup2(copy.fileno(), 1)
                    copy.close()


@cache
def _watch_forks() -> None:
    """Have ``_not_for_children`` called, once for this process: nobody can take that back."""
    import os

    if hasattr(os, "register_at_fork"):
        os.register_at_fork(after_in_child=_not_for_children)


def _not_for_children() -> None:
    """In a process that a hook forked, let go of the real standard output: who reads it waits for its end."""
    import os

    if _moved >= 0:
        with suppress(OSError):  # a hook closed standard error
            os.dup2(2, _moved, inheritable=False)


def _move_stdout() -> Any:
    """Point file descriptor 1 at standard error; return a stream for the real standard output, or None."""
    import os

    stream = sys.stdout
    try:
        if stream is None or stream.fileno() != 1:
            return None
        stream.flush()
        copy = os.dup(1)
    except (OSError, ValueError):  # a stream without a descriptor
        return None
    try:
        os.dup2(2, 1)
    except OSError:  # standard error is closed
        os.close(copy)
        return None
    buffering = 1 if stream.isatty() else -1
    return open(copy, "w", encoding=stream.encoding, errors="backslashreplace", buffering=buffering)
