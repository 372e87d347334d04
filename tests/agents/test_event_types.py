"""An agent's event has one dotted type, whether its bridge tells of it or a hook file names it."""

from __future__ import annotations

import pytest

from hookturn.agents.claude_code.hooks import EVENTS
from hookturn.agents.claude_code.occasions import OCCASIONS

TOLD = sorted(name for name, row in EVENTS.items() if row.type and OCCASIONS[name].timing == "on_event")


def test_there_are_events_to_compare():
    assert len(TOLD) > 15


@pytest.mark.parametrize("name", TOLD)
def test_the_bridge_and_the_hook_files_of_claude_code_name_an_event_alike(name):
    assert EVENTS[name].type in OCCASIONS[name].types
