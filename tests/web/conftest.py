"""A signed-in owner, and a project with one trace and one open signal."""

from __future__ import annotations

import pytest

from tests.factories import decay_trace, upload_traces


@pytest.fixture
def web(client, owner):
    client.force_login(owner)
    return client


@pytest.fixture
def place(project):
    upload_traces(project, decay_trace(100, 90, 80, 70, 60))
    return project
