"""The test of the test: hookturn with something broken in it must fail the kit, each time.

Kept because a kit that passes everything shows nothing. ``python mutants.py``
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from unittest.mock import patch

from agent_hooks.ctk import load_vectors, run_vectors
from harness import Harness

from hookturn.engine import approval, composed_fold, outcome
from hookturn.engine.engine import Engine
from hookturn.engine.fold import Fold
from hookturn.hosts.agent_hooks import Host, Interception
from hookturn.hosts.agent_hooks import records as records_module


class LiveContext(Interception):
    """All interceptors of an emission get the same context, so each sees what another does to it."""

    _live: dict[Any, Any] = {}

    def _context(self, event: Any) -> Any:
        key = (event.session_id, event.extra["sequence"])
        return self._live.setdefault(key, super()._context(event))


class ForgivingInterception(Interception):
    """An interceptor that raises counts as one that allows."""

    on_failure = "ignore"


@contextmanager
def interceptions(kind: type[Interception]) -> Iterator[None]:
    """Make the hosts of the harness register another kind of plugin."""
    with patch.object(Host, "plugin_class", kind):
        yield


def raise_again(self: Any, fold: Any, step: Any, error: BaseException, *_: Any) -> None:
    """An engine without isolation."""
    raise error


def usual_rewriting_lost(self: Any, by: str, answers: list[Any]) -> None:
    """A fold that forgets every rewrite."""


MUTANTS: dict[str, Callable[[], Any]] = {
    "a hook gets the live context": lambda: interceptions(LiveContext),
    "an exception counts as allow": lambda: interceptions(ForgivingInterception),
    "a hook's exception is not caught": lambda: patch.object(Engine, "_failed", raise_again),
    "the fold decides nothing": lambda: patch.object(
        composed_fold.ComposedFold, "outcome", lambda self: outcome.Outcome(self.came)
    ),
    "a no has no effect": lambda: patch.object(
        composed_fold.ComposedFold, "_winning_vote", lambda self, winner: None
    ),
    "rewrites are lost": lambda: patch.object(Fold, "_rewritten", usual_rewriting_lost),
    "the first no does not end the plan": lambda: patch.object(
        composed_fold.ComposedFold, "ended", property(lambda self: "", lambda self, value: None), create=True
    ),
    "an approval counts for anything": lambda: patch.object(
        approval.Approval, "identity", property(lambda self: _Anything(), lambda self, value: None)
    ),
    "no hook counts as allow": lambda: patch.object(
        records_module.ContractComposition, "requires", lambda self, event: False
    ),
    "a record keeps the payload": lambda: patch.object(records_module, "projected", lambda verdict: verdict),
}


class _Anything:
    """Equal to everything."""

    def __eq__(self, other: object) -> bool:
        return True

    __hash__ = None  # type: ignore[assignment]


def main() -> int:
    """Run the kit on every mutant; 0 only if each failed something."""
    vectors = load_vectors()
    survivors = 0
    for name, mutant in MUTANTS.items():
        LiveContext._live.clear()
        with mutant():
            failed = [result.id for result in run_vectors(Harness, vectors) if result.status == "fail"]
        if not failed:
            survivors += 1
        shown = ", ".join(item.removeprefix("AH-CTK-") for item in failed[:8])
        more = f" and {len(failed) - 8} more" if len(failed) > 8 else ""
        print(f"{name:36} {'fails ' + shown + more if failed else 'PASSES THE KIT'}")
    return 1 if survivors else 0


if __name__ == "__main__":
    sys.exit(main())
