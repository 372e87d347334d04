"""The audit trail: who decided what, chained, without secrets, shared by all processes of a project.

It records every timing in which a hook or a rule said something or failed, and
the end of every tool call. ``hookturn audit`` reads it.
"""

from __future__ import annotations

import os
from threading import Lock
from time import monotonic

from hookturn import Warn, hookimpl

from ..places import make_folder, project_key
from ..places import place as located

EVERY = 1000
"""Records after which the trail is anchored although no session ended."""

LATELY = 10.0
"""Seconds after an anchor in which the start of a session makes no other one: three times a file is brought to the
disk for each, and a session could cut off what is younger than the newest anchor anyway."""

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Literal

    from hookturn import Answer, Context
    from hookturn.events import OutcomeEvent

    from .record import Recorder
    from .trail import Trail


class Config:
    """Settings of audit-log.

    Attributes:
        path: the file, relative to the project's folder.
        durability: ``kernel`` (survives a killed process), ``interval`` (and a power cut, but for the last
            second) or ``always`` (each record is on the disk before the agent goes on).
        on_failure: what to do when a record cannot be written: ``degrade`` (write it to the user's state
            folder instead, and say so), ``deny`` (refuse what was to be recorded) or ``ignore``.
        max_bytes: size at which the file becomes a numbered older file and a new one is begun; 0 for never.
        payloads: ``full`` (without secrets), or ``hash`` for length and keyed hash of all payloads and of
            hooks' words about them.
        max_chars: characters of one text that are kept; of the rest, number and keyed hash.
    """

    path: str = ".hookturn/audit.jsonl"
    durability: Literal["kernel", "interval", "always"] = "kernel"
    on_failure: Literal["degrade", "deny", "ignore"] = "degrade"
    max_bytes: int = 64 * 1024 * 1024
    payloads: Literal["full", "hash"] = "full"
    max_chars: int = 20_000

    def validate(self) -> None:
        """Refuse values that no trail can have.

        Raises:
            ValueError: naming the setting.
        """
        if not self.path or "\0" in self.path:
            raise ValueError("path must name a file")
        if self.max_bytes < 0:
            raise ValueError("max_bytes must be 0 (never) or a number of bytes")
        if self.max_chars < 100:
            raise ValueError("max_chars must be at least 100")


class AuditLog:
    """The plugin.

    Parameters:
        config: its settings.
    """

    hookturn_name = "audit-log"

    def __init__(self, config: Config) -> None:
        self.config = config
        self._lock = Lock()
        self._places: dict[tuple[str, bool], _Place] = {}

    # Fails closed as far as the engine is concerned; what is caught here, by the policy, is no failure.
    @hookimpl(on_failure="deny", trylast=True)
    def on_outcome(self, event: OutcomeEvent, ctx: Context) -> Answer | None:
        """Record a decided timing."""
        out = event.outcome
        of = event.of
        speaks = out.hooks or out.decision is not None or of == "post_tool_execution"
        if not speaks and of not in ("on_session_start", "on_session_end"):
            return None
        key = (event.session_id, event.dry_run)
        place = self._places.get(key)
        if place is None:
            place = self._place(key, event, ctx)
        if of == "on_session_start":
            # Whatever a session that was killed left: before this one can touch it.
            anchored = place.anchor(ctx, first=True)
            return (place.record(event, ctx) if speaks else None) or anchored
        answer = place.record(event, ctx) if speaks else None
        if of == "on_session_end":
            return place.anchor(ctx) or answer
        return answer

    @hookimpl
    def on_dispose(self) -> None:
        """Close the files."""
        with self._lock:
            for place in self._places.values():
                place.close()

    def _place(self, key: tuple[str, bool], event: OutcomeEvent, ctx: Context) -> _Place:
        """Return where a session's records go; sessions of one project share it."""
        folder = ctx.project_dir
        path, base = located(self.config.path, event, ctx)
        with self._lock:
            place = next((known for known in self._places.values() if known.path == path), None)
            if place is None:
                place = _Place(self.config, path, base, folder, dry_run=event.dry_run)
            if len(self._places) > 10_000:
                self._places.clear()  # the files stay open in the sessions that use them
            self._places[key] = place
            return place


class _Place:
    """A trail, and what to do when it cannot be written.

    Parameters:
        config: the plugin's settings.
        path: the trail's file.
        base: the folder that is trusted as it is.
        project: the project's folder.
        dry_run: nothing outside ``base`` may be written.
    """

    def __init__(self, config: Config, path: str, base: str, project: str, *, dry_run: bool) -> None:
        self.config = config
        self.path = path
        self.base = base
        self.project = project
        self.dry_run = dry_run
        self._lock = Lock()
        self._trail: Trail | None = None
        self._second: Trail | None = None
        self._recorder: Recorder | None = None
        self._failing = False
        self._told = False  # what is wrong with the anchors
        self._anchored = float("-inf")  # when they were made last, by the monotonic clock
        self._elsewhere = 0  # records since the last one that the trail itself took
        self._lost = 0

    def record(self, event: OutcomeEvent, ctx: Context) -> Answer | None:
        """Write the record of an outcome, by the policy."""
        try:
            record = (self._recorder or self._start()).make(event)
            if self._failing:
                record["missed"] = {"elsewhere": self._elsewhere, "lost": self._lost}
            assert self._trail is not None
            self._trail.append(record)
            if self._trail.written % EVERY == 0:
                self.anchor(ctx)
        except Exception as error:
            if self.config.on_failure == "deny":
                raise
            with self._lock:
                return self._degrade(event, error, ctx)
        if self._failing:
            with self._lock:
                self._failing, self._elsewhere, self._lost = False, 0, 0
            if self.config.on_failure == "degrade":
                return Warn(f"The audit trail {self.path} is written again.")
        return None

    def anchor(self, ctx: Context, *, first: bool = False) -> Answer | None:
        """Keep the trail's head outside the checkout, so that ``verify`` finds it when its end is cut off.

        Parameters:
            ctx: for the log.
            first: the session begins; what hinders then shows again at its end, or with its records.
        """
        if self.dry_run or (first and monotonic() - self._anchored < LATELY):
            return None
        from .anchors import Anchors, DamagedAnchorsError

        try:
            anchors = Anchors(self.path)
            made = anchors.add()
        except (OSError, DamagedAnchorsError) as error:
            if first and isinstance(error, OSError):
                return None
            text = f"The audit trail {self.path} cannot be anchored ({type(error).__name__}: {error})."
        else:
            number = made.number if made is not None else 0
            if number >= anchors.highest:
                self._anchored = monotonic()
                return None
            text = (
                f"The audit trail {self.path} has {number:,} of the {anchors.highest:,} records that an anchor names; "
                "`hookturn audit verify` tells more."
            )
        if self._told or self.config.on_failure == "ignore":
            return None
        self._told = True
        ctx.log.warning("{}", text)
        return Warn(text)

    def _start(self) -> Recorder:
        from .record import Recorder
        from .trail import Trail

        self._trail = Trail(
            self.path,
            base=make_folder(self.path, self.base),
            durability=self.config.durability,
            max_bytes=self.config.max_bytes,
        )
        self._recorder = Recorder(
            project_key(self.project, dry_run=self.dry_run), self.config.payloads, self.config.max_chars
        )
        return self._recorder

    def _degrade(self, event: OutcomeEvent, error: Exception, ctx: Context) -> Answer | None:
        """Write the record to the state folder, or count it as lost; say so when it begins."""
        from .record import Recorder
        from .trail import Trail

        first, self._failing = not self._failing, True
        where = ""
        if self.config.on_failure == "degrade" and not self.dry_run:
            try:
                if self._second is None:
                    self._second = Trail(second_trail(self.project))
                if self._recorder is None:
                    self._recorder = Recorder(
                        project_key(self.project, dry_run=self.dry_run),
                        self.config.payloads,
                        self.config.max_chars,
                    )
                self._second.append({**self._recorder.make(event), "instead_of": self.path})
                where = self._second.path
            except Exception as second:
                error = second
        if where:
            self._elsewhere += 1
        else:
            self._lost += 1
        if self._trail is None:
            self._recorder = None  # begin anew next time, folder and all
        if not first or self.config.on_failure == "ignore":
            return None
        fate = f"its records go to {where}" if where else "its records are LOST"
        text = f"The audit trail {self.path} cannot be written ({type(error).__name__}: {error}); {fate}."
        ctx.log.error("{}", text)
        return Warn(text)

    def close(self) -> None:
        """Close the files."""
        for trail in (self._trail, self._second):
            if trail is not None:
                trail.close()


def second_trail(project: str) -> str:
    """Return where the records of a project go that its trail cannot take: in the user's state folder."""
    from hookturn.paths import project_state

    return os.path.join(project_state(project), "audit.jsonl")


def plugin(config: Config | None = None) -> Any:
    """Return the plugin; the entry point ``audit-log``.

    Parameters:
        config: its settings; default: all defaults.
    """
    return AuditLog(config or Config())


plugin.Config = Config  # type: ignore[attr-defined]
