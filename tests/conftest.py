"""Fixtures that all tests share. No test may touch the user's own state or configuration."""

from __future__ import annotations

import os
import signal

import pytest
from hypothesis import HealthCheck, settings

# Background jobs of a shell ignore Ctrl-C, and their children with them; our tests send it.
if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Two slow cores and no timed tests: an example takes as long as it takes.
settings.register_profile("hookturn", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("hookturn")


@pytest.fixture(autouse=True)
def _isolated(monkeypatch, tmp_path_factory):
    """Put hookturn's folders of the user into a temporary one and forget its environment variables."""
    for name in list(os.environ):
        if name.startswith("HOOKTURN_"):
            monkeypatch.delenv(name)
    folder = tmp_path_factory.mktemp("user")
    monkeypatch.setenv("HOOKTURN_STATE_DIR", str(folder / "state"))
    monkeypatch.setenv("HOOKTURN_CONFIG_DIR", str(folder / "config"))
    # Agents keep hook files in the user's home.
    monkeypatch.setenv("HOME", str(folder))
    for name in ("ATOMCODE_HOME", "CLAUDE_CONFIG_DIR"):
        monkeypatch.delenv(name, raising=False)


class HookLog(list):
    """What hooks and the engine logged: loguru's record dicts in order."""

    def of(self, hook: str) -> list[str]:
        """Return the messages bound to ``hook:<name>``."""
        return [record["message"] for record in self if record["extra"].get("hook") == f"hook:{hook}"]


@pytest.fixture
def hook_log():
    """Capture loguru's records of this test."""
    from loguru import logger

    records = HookLog()
    handler = logger.add(lambda message: records.append(message.record), level=0, format="{message}")
    yield records
    logger.remove(handler)
