"""The product's application with a clock that ticks each second, for beat alone.

Tests that wait for a tick would mostly wait: what every tick does is the product's own,
and only how long the clock lets a test wait for it is not.
"""

from __future__ import annotations

from evalsite.celery import app

TICK_SECONDS = 1.0

for entry in app.conf.beat_schedule.values():
    entry["schedule"] = min(entry["schedule"], TICK_SECONDS)
