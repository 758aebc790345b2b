"""What tests share that run batches in this process."""

from __future__ import annotations

import pytest

from tests.factories import make_project
from tests.replays.rows import make_agent


@pytest.fixture
def nobody_else(monkeypatch, settings):
    """No message goes out, and secrets can be kept."""
    monkeypatch.setattr("celery.current_app.send_task", lambda *_, **__: None)
    settings.REPLAY_KEYS = [b"k" * 32]


@pytest.fixture
def agent_alone(nobody_else, transactional_db):
    """An agent of a project in which several workers see what is committed."""
    return make_agent(make_project(name="Alone"))
