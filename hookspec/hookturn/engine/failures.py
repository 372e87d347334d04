"""What becomes of a hook that fails: an entry in the outcome, a line in the log, and a strike against its plugin."""

from __future__ import annotations

from threading import Lock

from ..spec.errors import AnswerError, HookturnError
from ..spec.record import safe_text
from .capabilities import logger
from .outcome import Failure, describe

TYPE_CHECKING = False
if TYPE_CHECKING:
    from .fold import Fold
    from .plan import Step

STRIKES = 5
"""Failures in a row after which a plugin is set aside for the session."""

MOST_COUNTED = 10_000
"""Plugins in sessions whose failures are counted; those that failed longest ago are forgotten."""


class Strikes:
    """Counts the failures in a row of each plugin in each session.

    Attributes:
        aside: the session and the name of plugins that are set aside.
        counts: session and plugin -> failures in a row.
    """

    def __init__(self) -> None:
        self.aside: set[tuple[str, str]] = set()
        self.counts: dict[tuple[str, str], int] = {}
        self._lock = Lock()

    def against(self, step: Step, session: str) -> bool:
        """Count a failure; returns whether its plugin is set aside now. What must not be missing never is."""
        key = (session, step.plugin)
        with self._lock:
            strikes = self.counts[key] = self.counts.get(key, 0) + 1
            if len(self.counts) > MOST_COUNTED:
                self.counts.pop(next(iter(self.counts)))
            if strikes < STRIKES or step.fails_closed or step.unfiltered or key in self.aside:
                return False
            self.aside.add(key)
            return True

    def forgive(self, called: list[Step], fold: Fold | None, session: str) -> None:
        """Forget the earlier failures of what was called and did not fail."""
        still = {failure.plugin for failure in fold.failures} if fold is not None else set()
        if fold is not None:  # not called, because the plan had ended
            still |= {record.plugin for record in fold.records if not record.matched}
        for step in called:
            if step.plugin not in still:
                self.counts.pop((session, step.plugin), None)

    def forget(self, session: str) -> bool:
        """Forget a session; returns whether something was set aside in it."""
        with self._lock:
            for key in list(self.counts):
                if key[0] == session:
                    self.counts.pop(key, None)
            gone = {key for key in self.aside if key[0] == session}
            self.aside -= gone
        return bool(gone)


def note_failure(fold: Fold, step: Step, error: BaseException, elapsed: float, micros: float) -> None:
    """Put a hook's failure into the fold and the log.

    Parameters:
        fold: the fire's.
        step: the hook.
        error: what it raised, or why it was not reached.
        elapsed: seconds that it took.
        micros: the same in microseconds for its record, or 0 where nothing is measured.
    """
    kind, text = type(error).__name__, describe(error)
    message = text.removeprefix(kind).removeprefix(": ")
    if isinstance(error, SystemExit):
        message = f"the hook called exit({safe_text(error.code)})"
    distribution = step.owner.distribution
    failure = Failure(fold.timing.name, step.name, step.plugin, distribution, kind, message, elapsed, error)
    fold.fail(step, failure, micros)
    who = f"{step.name} (from {distribution})" if distribution else step.name
    remedy = error.remedy if isinstance(error, HookturnError) else ""
    logger(step.name).warning(
        "hook {} failed in {} after {:.3f} s: {}",
        who,
        fold.timing.name,
        elapsed,
        _told(error, f"{text}. {remedy}" if remedy else text),
    )


def _told(error: BaseException, text: str) -> str:
    """Return a failure for the log: with its traceback, without secrets.

    loguru's own tracebacks show the values of variables (its ``diagnose`` is on unless the host turned it off).
    """
    from traceback import format_exception

    from ..redact import redact

    if not isinstance(error, (AnswerError, TimeoutError)):
        text += "\n" + "".join(format_exception(type(error), error, error.__traceback__)).rstrip()
    return redact(text)
