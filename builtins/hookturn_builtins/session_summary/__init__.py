"""The story of a session: what was asked, done, changed and denied, how long it took, what failed.

While the session runs, each event becomes a line of a journal; at its end the
journal becomes a Markdown, a JSON and an HTML file beside it. ``hookturn report``
makes them at any time, also of a session whose process was killed.
"""

from __future__ import annotations

import os
from threading import Lock
from typing import Literal

from hookturn import Warn, hookimpl

from ..places import TRIED, in_project, session_name

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from hookturn import Answer, Context
    from hookturn.events import OutcomeEvent

    from .journal import Journal

FOLDER = "sessions"
"""The folder below ``.hookturn`` that has a folder for each session."""

MAX_OPEN = 64
"""Journals that are open at once; the one that was opened first is closed, and opened again when needed."""


class Config:
    """Settings of session-summary.

    Attributes:
        formats: the files that are written at a session's end.
        texts: whether prompts, answers, arguments and error messages are kept (without secrets) or left out.
        max_chars: characters that are kept of a prompt, an answer or an error message.
        max_bytes: size at which a session's journal is full: what follows is not recorded.
    """

    formats: list[Literal["md", "json", "html"]] = ["md", "json", "html"]
    texts: bool = True
    max_chars: int = 4000
    max_bytes: int = 32 * 1024 * 1024

    def validate(self) -> None:
        """Refuse limits that leave nothing.

        Raises:
            ValueError: naming the setting.
        """
        if self.max_chars < 100:
            raise ValueError("max_chars must be at least 100")
        if self.max_bytes < 10_000:
            raise ValueError("max_bytes must be at least 10000")


class SessionSummary:
    """The plugin.

    Parameters:
        config: its settings.
    """

    hookturn_name = "session-summary"

    def __init__(self, config: Config) -> None:
        self.config = config
        self._lock = Lock()
        self._journals: dict[tuple[str, bool], Journal] = {}
        self._warned = False

    @hookimpl(trylast=True)
    def on_outcome(self, event: OutcomeEvent, ctx: Context) -> Answer | None:
        """Note what happened; write the report when the session has ended."""
        if event.before.host == TRIED:
            return None
        key = (event.session_id, event.dry_run)
        ended = event.of == "on_session_end"
        trouble: OSError | None = None
        with self._lock:
            journal = self._journals.get(key) or self._journal(key, ctx)
            try:
                journal.note(event)
            except OSError as error:
                trouble = error
            if ended:
                del self._journals[key]
                journal.close()
        if ended:
            try:
                self._report(journal)
            except OSError as error:
                trouble = trouble or error
        if trouble is None or self._warned:
            return None
        self._warned = True
        text = (
            f"The session's report cannot be written to {journal.folder} "
            f"({type(trouble).__name__}: {trouble}); the session goes on without it."
        )
        ctx.log.warning("{}", text)
        return Warn(text)

    @hookimpl
    def on_dispose(self) -> None:
        """Close the journals."""
        with self._lock:
            for journal in self._journals.values():
                journal.close()
            self._journals.clear()

    def _journal(self, key: tuple[str, bool], ctx: Context) -> Journal:
        from hookturn.paths import safe_component

        from .journal import Journal

        session_id, dry_run = key
        project = ctx.project_dir
        above = ctx.output_dir
        outside = not dry_run and not in_project(ctx)
        if len(self._journals) >= MAX_OPEN:
            self._journals.pop(next(iter(self._journals))).close()
        name = session_name(session_id)
        journal = self._journals[key] = Journal(
            os.path.join(above, FOLDER, safe_component(name)),
            above if dry_run else os.path.dirname(above) if outside else project,
            name,
            self.config,
            project="" if dry_run else project,
            ignored=not (dry_run or outside),
        )
        return journal

    def _report(self, journal: Journal) -> None:
        from .collect import collect
        from .write import write

        write(collect(journal.path), journal.folder, self.config.formats, base=journal.base)


def plugin(config: Config | None = None) -> Any:
    """Return the plugin; the entry point ``session-summary``.

    Parameters:
        config: its settings; default: all defaults.
    """
    return SessionSummary(config or Config())


plugin.Config = Config  # type: ignore[attr-defined]
