"""No timed tests: an example takes as long as it takes."""

from __future__ import annotations

from hypothesis import HealthCheck, settings

settings.register_profile("rate-limit", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("rate-limit")
