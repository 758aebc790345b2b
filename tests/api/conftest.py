"""A client with a token that may upload and read."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.test import Client
from django.utils import timezone

from apps.accounts.models import Project
from apps.accounts.operations import create_token
from apps.accounts.permissions import Scope

MakeClient = Callable[..., Client]


@pytest.fixture
def client_with(owner) -> MakeClient:
    """Makes a client that sends a token of `project` with these scopes."""

    def made(project: Project, *scopes: Scope) -> Client:
        _, secret = create_token(
            project=project,
            name=f"ci {' '.join(scopes)}",
            scopes=scopes,
            user=owner,
            now=timezone.now(),
        )
        return Client(headers={"Authorization": f"Bearer {secret}"})

    return made


@pytest.fixture
def door(client_with, project) -> Client:
    return client_with(project, Scope.UPLOAD, Scope.READ)
