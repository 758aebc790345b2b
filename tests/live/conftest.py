"""A sender with a token, and a run of an agent as spans."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from django.http import HttpResponse
from django.test import Client
from django.utils import timezone

from apps.accounts.operations import create_token
from apps.accounts.permissions import Scope
from apps.pipeline.live import assemble_due
from apps.traces.models import Trace
from tests.factories import NOW
from tests.formats.otlp_files import agent, as_protobuf, call, span

PROTOBUF = "application/x-protobuf"
OUTPUTS = (112, 100, 86, 78, 70, 43)


def billing_run(*outputs: int) -> list[dict]:
    """A root, an agent in it, and its model calls one after another."""
    calls = [
        call(number, 2, output)
        for number, output in enumerate(outputs or OUTPUTS, start=3)
    ]
    return [span(1, name="run", lasts=60), agent(2, 1, "billing", lasts=50), *calls]


Send = Callable[..., HttpResponse]


@pytest.fixture
def token(project, owner) -> str:
    _, secret = create_token(
        project=project,
        name="exporter",
        scopes=[Scope.UPLOAD],
        user=owner,
        now=timezone.now(),
    )
    return secret


@pytest.fixture
def send(token) -> Send:
    """Sends one request to the door for live traces."""

    def sent(*spans: dict, body: bytes | None = None, **more) -> HttpResponse:
        content_type = more.pop("content_type", PROTOBUF)
        headers = {"Authorization": f"Bearer {token}", **more.pop("headers", {})}
        return Client(raise_request_exception=False).post(
            "/v1/traces",
            as_protobuf(*spans) if body is None else body,
            content_type=content_type,
            CONTENT_TYPE=content_type,  # an empty body has a type too
            headers={key: value for key, value in headers.items() if value},
            **more,
        )

    return sent


@pytest.fixture
def come(send) -> Callable[..., Trace]:
    """Spans come and become a trace."""

    def came(*spans: dict) -> Trace:
        assert send(*spans).status_code == 200
        assert assemble_due(clock=lambda: NOW) == 1
        return Trace.objects.get()

    return came


@pytest.fixture
def at_once(settings):
    """Live traces are complete with their last span."""
    settings.LIVE_SETTLE_SECONDS = 0
