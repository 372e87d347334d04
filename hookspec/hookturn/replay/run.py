"""Runs a replay: opens the recording, plays it through one engine (or two, to compare), streams."""

from __future__ import annotations

from typing import NamedTuple

from ..agents import recorded as r
from .difference import Verdicts, difference
from .player import Player, Watcher

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Any

    from ..agents.transcripts import Reader, Transcript
    from ..engine.engine import Engine
    from ..spec.tools import Tool


class Recording(NamedTuple):
    """A recorded session, recognised.

    Parameters:
        name: the format's name, such as ``claude-code``.
        tools: what the agent's tools mean.
        transcript: the recording, to be read once.
    """

    name: str
    tools: Mapping[str, Tool] | None
    transcript: Transcript


def open_recording(path: str) -> Recording:
    """Open a recorded session; its format is recognised from its content.

    Parameters:
        path: the file, or ``-`` for standard input.

    Raises:
        TranscriptError: when no format fits.
        OSError: when the file cannot be opened.
    """
    from ..agents.transcripts import open_transcript, readers
    from . import own

    choice: tuple[Reader, ...] = (own, *readers())
    transcript = open_transcript(path, choice)
    name = transcript.reader.NAME
    return Recording(name, _tools_of(name), transcript)


def _tools_of(name: str) -> Mapping[str, Tool] | None:
    from importlib import import_module

    try:
        tools: Mapping[str, Tool] = import_module(
            f"..agents.{name.replace('-', '_')}.tools", __package__
        ).TOOLS
    except ModuleNotFoundError:
        return None  # hookturn's own events: their tools have the usual names
    return tools


def replay(
    recording: Recording,
    engine: Engine,
    watcher: Watcher,
    *,
    session_id: str = "replay",
    progress: Callable[[], None] | None = None,
) -> None:
    """Play a recording through an engine.

    Parameters:
        recording: the recording.
        engine: the engine, dry.
        watcher: is told about everything.
        session_id: id for a recording that names none.
        progress: called after each step.
    """
    player = Player(
        engine, tools=recording.tools, host=_host(recording), watcher=watcher, session_id=session_id
    )
    try:
        for step in recording.transcript.steps():
            player.play(step)
            if progress is not None:
                progress()
    except BaseException:
        player.finish("interrupted")
        raise
    player.finish()


def compare(
    recording: Recording,
    engine: Engine,
    other: Engine,
    watcher: Watcher,
    *,
    progress: Callable[[], None] | None = None,
) -> Iterator[dict[str, Any]]:
    """Play a recording through two engines and yield each call that they treat otherwise.

    Parameters:
        recording: the recording.
        engine: the engine of today.
        other: the engine of the configuration to compare with.
        watcher: is told about what the other engine does.
        progress: called after each step.
    """
    before, after = Verdicts(), Both(watcher)
    options: dict[str, Any] = {"tools": recording.tools, "host": _host(recording)}
    first = Player(engine, watcher=before, **options)
    second = Player(other, watcher=after, **options)
    for step in recording.transcript.steps():
        first.play(step)
        second.play(step)
        if isinstance(step, r.ToolBegin):
            changed = difference(step, before.last, after.verdicts.last)
            if changed is not None:
                yield changed
        if progress is not None:
            progress()
    first.finish()
    second.finish()


def _host(recording: Recording) -> str:
    return "" if recording.tools is None else recording.name


class Both(Watcher):
    """Keeps verdicts, and passes on what the summary needs."""

    def __init__(self, watcher: Watcher) -> None:
        self.verdicts = Verdicts()
        self._watcher = watcher

    def begun(self, step: r.ToolBegin, call: Any) -> None:
        self.verdicts.begun(step, call)

    def skipped(self, step: r.Skipped) -> None:
        self._watcher.skipped(step)

    def usage(self, usage: Mapping[str, int]) -> None:
        self._watcher.usage(usage)
