"""Opens a recorded session: reads its lines in bounded memory and finds the reader that knows its format.

The format is recognised from the content alone, never from the file's name.
"""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

from ..spec.errors import HookturnError, json_kind
from ..spec.record import MAX_DEPTH
from .recorded import Line, Skipped, deeper

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Sequence
    from typing import BinaryIO

    from .recorded import Step

LINE_LIMIT = 64 * 1024 * 1024
"""Bytes of one line; longer ones are skipped while they stream by."""

_CHUNK = 256 * 1024
_HEAD = 2000  # lines that are looked at to recognise a format


class TranscriptError(HookturnError):
    """A file is no recorded session that any reader knows."""


class Reader(Protocol):
    """A module that knows one agent's recorded sessions."""

    @property
    def NAME(self) -> str:
        """Name of the agent program, such as ``claude-code``."""
        ...

    @property
    def LOOKED_FOR(self) -> str:
        """What ``sniff`` looks for, in words."""
        ...

    def sniff(self, objects: Sequence[dict[str, Any]]) -> bool:
        """Return whether one of these objects can only come from this agent."""
        ...

    def read(self, lines: Iterable[Line], beside: Beside | None = None) -> Iterator[Step]:
        """Yield the steps of the session, in order, in constant memory."""
        ...


class Beside(Protocol):
    """The recordings of sub-agents that lie beside a session's file."""

    def knows(self, agent_id: str) -> bool:
        """Return whether there is a recording of this sub-agent."""
        ...

    def about(self, agent_id: str) -> dict[str, Any]:
        """Return what a file beside the recording says about the sub-agent."""
        ...

    def open(self, agent_id: str) -> Iterator[Line] | None:
        """Return the sub-agent's lines the first time it is asked for, else None."""
        ...

    def rest(self) -> list[str]:
        """Return the ids of the sub-agents that nobody asked for, sorted."""
        ...


class Transcript(NamedTuple):
    """A recorded session, recognised and ready to be read once.

    Parameters:
        reader: the module that knows the format.
        lines: its lines.
        beside: the recordings of its sub-agents, or None.
    """

    reader: Reader
    lines: Iterator[Line]
    beside: Beside | None = None

    def steps(self) -> Iterator[Step]:
        """Yield the session's steps, in order; lines that cannot be read are steps too (``Skipped``)."""
        return self.reader.read(self.lines, self.beside)


def readers() -> tuple[Reader, ...]:
    """Return the readers of all agents whose recorded sessions are known."""
    from .claude_code import transcript as claude_code
    from .codex import transcript as codex
    from .copilot import transcript as copilot
    from .gemini import transcript as gemini
    from .qwen import transcript as qwen

    return (claude_code, codex, gemini, copilot, qwen)


def open_transcript(
    path: str, among: Sequence[Reader] | None = None, *, limit: int = LINE_LIMIT
) -> Transcript:
    """Open a recorded session and recognise its format from its first lines.

    Parameters:
        path: the file, or ``-`` for standard input.
        among: the readers to choose from; all agents' when None.
        limit: bytes of one line; longer lines are skipped.

    Returns:
        the session; ``steps()`` reads it.

    Raises:
        TranscriptError: when no reader knows the content; says what was looked for and what was found.
        OSError: when the file cannot be opened.
    """
    choice = readers() if among is None else tuple(among)
    source = lines(path, limit)
    head: list[Line] = []
    for item in source:
        head.append(item)
        found = item[1]
        if isinstance(found, Skipped):
            if len(head) > _HEAD:
                break
            continue
        for reader in choice:
            if reader.sniff((found,)):
                locate: Callable[[str, int], Beside | None] | None = getattr(reader, "beside", None)
                beside = None if locate is None or path == "-" else locate(path, limit)
                return Transcript(reader, chain(head, source), beside)
        if len(head) > _HEAD:
            break
    raise TranscriptError(_unknown(path, choice, head))


def recognise(path: str, among: Sequence[Reader] | None = None) -> Reader:
    """Return the reader that knows the file's format (see ``open_transcript``)."""
    return open_transcript(path, among).reader


def _unknown(path: str, choice: Iterable[Reader], head: Sequence[Line]) -> str:
    objects = [item for _, item in head if not isinstance(item, Skipped)]
    if not head:
        found = "it is empty"
    elif not objects:
        bad = next(item for _, item in head if isinstance(item, Skipped))
        found = f"none of its first {len(head)} lines is a JSON object (line {bad.line}: {bad.cause})"
    else:
        keys = ", ".join(sorted(str(key)[:30] for key in objects[0])[:8])
        found = f"the first of its first {len(head)} lines has the keys {keys or '(none)'}"
    looked = "; ".join(f"{reader.NAME}: {reader.LOOKED_FOR}" for reader in choice)
    return f"{path} is no recorded session that is known here: {found}. Looked for {looked}"


def lines(path: str, limit: int = LINE_LIMIT, *, file: str = "") -> Iterator[Line]:
    """Yield each line's number and its JSON object, or a ``Skipped`` that says why it has none.

    Blank lines are passed over. One BOM, CRLF and raw control characters inside
    strings are tolerated. A file whose first line is a lone ``{`` or ``[`` is one
    JSON document and comes as line 1.

    Parameters:
        path: the file, or ``-`` for standard input.
        limit: bytes of one line (or of a whole document).
        file: name that the skipped lines carry.

    Raises:
        OSError: when the file cannot be opened or read.
    """
    if path == "-":
        from sys import stdin

        if stdin is None:
            raise OSError("standard input is closed")
        yield from _lines(stdin.buffer, limit, file)
        return
    with open(path, "rb", buffering=0) as stream:
        yield from _lines(stream, limit, file)


def _lines(stream: BinaryIO, limit: int, file: str) -> Iterator[Line]:
    parse = _parser(file)
    chunk = stream.read(_CHUNK)
    more = chunk
    while more and b"\n" not in chunk and len(chunk) < _CHUNK:  # a pipe gives what there is, be it one byte
        more = stream.read(_CHUNK)
        chunk += more
    if chunk.startswith(b"\xef\xbb\xbf"):
        chunk = chunk[3:]
    if chunk.split(b"\n", 1)[0].strip() in (b"{", b"["):
        yield _document(chunk, stream, limit, parse, file)
        return
    number = 0
    pieces: list[bytes] = []  # of the line that goes on in the next chunk
    held = 0
    over = 0  # bytes of a line that is too long and already let go
    while chunk:
        parts = chunk.split(b"\n")
        last = parts.pop()
        for part in parts:
            number += 1
            if over:
                yield number, _too_long(number, over + len(part), limit, file)
                over = 0
                continue
            if pieces:
                pieces.append(part)
                part = b"".join(pieces)
                pieces.clear()
                held = 0
            if len(part) > limit:
                yield number, _too_long(number, len(part), limit, file)
            elif part and not part.isspace():
                yield number, parse(number, part, False)
        if over:
            over += len(last)
        elif last:
            held += len(last)
            if held > limit:
                over = held
                held = 0
                pieces.clear()
            else:
                pieces.append(last)
        chunk = stream.read(_CHUNK)
    number += 1
    if over:
        yield number, _too_long(number, over, limit, file)
    elif pieces:
        part = b"".join(pieces)
        if not part.isspace():
            yield number, parse(number, part, True)


def _too_long(number: int, size: int, limit: int, file: str) -> Skipped:
    return Skipped(number, limit + 1, f"the line has {size:,} bytes, more than the limit of {limit:,}", file)


def _document(
    chunk: bytes,
    stream: BinaryIO,
    limit: int,
    parse: Callable[[int, bytes, bool], dict[str, Any] | Skipped],
    file: str,
) -> Line:
    pieces = []
    size = 0
    while chunk:
        size += len(chunk)
        if size <= limit:
            pieces.append(chunk)
        chunk = stream.read(_CHUNK)
    if size > limit:
        cause = f"the document has {size:,} bytes, more than the limit of {limit:,}"
        return 1, Skipped(1, limit + 1, cause, file)
    return 1, parse(1, b"".join(pieces), False)


def _parser(file: str) -> Callable[[int, bytes, bool], dict[str, Any] | Skipped]:
    from json import JSONDecodeError, JSONDecoder

    decode = JSONDecoder(strict=False).decode

    def parse(number: int, raw: bytes, last: bool) -> dict[str, Any] | Skipped:
        try:
            value = decode(raw.decode())
        except UnicodeDecodeError as error:
            cause = f"not UTF-8: byte 0x{raw[error.start]:02x}"
            return Skipped(number, error.start + 1, cause, file)
        except JSONDecodeError as error:
            cause = f"not JSON: {error.msg}"
            if last:
                cause += " (the last line is cut off)"
            return Skipped(number + error.lineno - 1, error.colno, cause, file)
        except RecursionError:
            return Skipped(number, 1, f"nested deeper than {MAX_DEPTH} levels", file)
        except ValueError as error:
            return Skipped(number, 1, f"not JSON: {error}", file)
        if value.__class__ is not dict:
            return Skipped(number, 1, f"a JSON object is needed, not {json_kind(value)}", file)
        if raw.count(b"{") + raw.count(b"[") > MAX_DEPTH and deeper(value, MAX_DEPTH):
            return Skipped(number, 1, f"nested deeper than {MAX_DEPTH} levels", file)
        parsed: dict[str, Any] = value
        return parsed

    return parse
