"""The stubs of a run for an agent elsewhere: one address for each tool, and an MCP server.

The token in the address is all that is needed and opens nothing else; it ends with its
run. What is answered follows from the plan of the run; nothing real is behind it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Final

import msgspec
from django.contrib.auth.decorators import login_not_required
from django.db import InterfaceError, OperationalError
from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from django.utils import timezone
from django.views.decorators.csrf import csrf_exempt

from apps.engine.replay.case import ToolOffer
from apps.engine.replay.mcp_door import answered_mcp, mcp_failure
from apps.engine.replay.run import ToolAnswer
from apps.engine.replay.stub_door import LARGEST_REQUEST, Reply, answered_tool
from apps.engine.replay.stub_plan import BadPlan
from apps.pipeline.replay_orders import CannotRun
from apps.pipeline.replay_stubs import NoSuchStubs, answer_stub_call, offered_tools

_NOT_HERE: Final = (
    "There are no such stubs: the run has ended, or the address is not as it was given."
)
_AWAY: Final = (OperationalError, InterfaceError)
_NO_PLAN: Final = (CannotRun, BadPlan, msgspec.ValidationError)
_AWAY_SENTENCE: Final = "The database does not answer just now; call again in a second."


class _NoLength(Exception):
    """The server hands on no body whose length is not said."""


_Failure = Callable[[str], dict[str, Any]]


class _StubsOf:
    """The stubs that a token opens."""

    def __init__(self, token: str) -> None:
        self._token = token

    def offered(self) -> Sequence[ToolOffer]:
        return offered_tools(token=self._token)

    def answer(self, tool: str, arguments: Any) -> ToolAnswer:
        return answer_stub_call(
            token=self._token, tool=tool, arguments=arguments, now=timezone.now()
        )


@csrf_exempt
@login_not_required
def stub_tool(request: HttpRequest, token: str, name: str) -> HttpResponse:
    """Answer one call of a tool: POST its arguments as a JSON object."""

    def answered(body: bytes) -> Reply:
        return answered_tool(_StubsOf(token), name, body)

    return _answer(request, answered, lambda sentence: {"error": sentence})


@csrf_exempt
@login_not_required
def stub_mcp(request: HttpRequest, token: str) -> HttpResponse:
    """Answer one message, or a batch, of the Model Context Protocol."""
    headers = {name.lower(): value for name, value in request.headers.items()}

    def answered(body: bytes) -> Reply:
        stubs = _StubsOf(token)
        # Before anything is said: also a handshake is only for whoever has a run.
        stubs.offered()
        return answered_mcp(stubs, body, headers)

    return _answer(request, answered, mcp_failure)


def _answer(
    request: HttpRequest, answered: Callable[[bytes], Reply], failure: _Failure
) -> HttpResponse:
    if request.method != "POST":
        # Nothing is ever sent by itself, so there is no stream to open.
        response = _sent(Reply(405, failure("Send it with POST.")))
        response["Allow"] = "POST"
        return response
    if "Origin" in request.headers:
        return _sent(Reply(403, failure("Stubs are for agents and not for browsers.")))
    try:
        return _sent(answered(_body(request)))
    except (*_AWAY, *_NO_PLAN, NoSuchStubs, UnreadablePostError, _NoLength) as error:
        return _refused(error, failure)


def _refused(error: Exception, failure: _Failure) -> HttpResponse:
    if isinstance(error, NoSuchStubs):
        return _sent(Reply(404, failure(_NOT_HERE)))
    if isinstance(error, _NO_PLAN):
        return _sent(
            Reply(409, failure(f"The plan of this run cannot be used: {error}"))
        )
    if isinstance(error, _NoLength):
        return _sent(Reply(411, failure("Send the length of the body.")))
    if isinstance(error, UnreadablePostError):
        return _sent(Reply(400, failure("The request was cut off.")))
    response = _sent(Reply(503, failure(_AWAY_SENTENCE)))
    response["Retry-After"] = "1"
    return response


def _body(request: HttpRequest) -> bytes:
    """The body; one byte more than is taken shows that it is too large."""
    if "chunked" in request.headers.get("Transfer-Encoding", "").lower():
        # Its length is not declared, so that Django would see nothing of it.
        if not request.META.get("wsgi.input_terminated"):
            raise _NoLength
        return bytes(request.META["wsgi.input"].read(LARGEST_REQUEST + 1))
    return request.read(LARGEST_REQUEST + 1)


def _sent(reply: Reply) -> HttpResponse:
    body = msgspec.json.encode(reply.body) if reply.has_body else b""
    response = HttpResponse(body, status=reply.status, content_type="application/json")
    response["Cache-Control"] = "no-store"
    return response
