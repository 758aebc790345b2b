"""A run at work whose stubs are open, and the product itself served on loopback."""

from __future__ import annotations

import threading
from contextlib import contextmanager
from socketserver import ThreadingMixIn
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer, make_server

from django.core.wsgi import get_wsgi_application
from django.db import connections

from apps.engine.replay.case import Case, RecordedCall, ToolOffer
from apps.engine.replay.stub_plan import AS_RECORDED, StubPlan, encoded_plan
from apps.replays.cases import Origin, keep_cases
from apps.replays.models import CaseSource
from apps.replays.running import claim_run
from apps.replays.stub_calls import open_stubs
from tests.factories import NOW
from tests.replays.rows import make_agent, make_batch, make_target

NUMBER = {"properties": {"number": {"type": "integer"}}}
TOOLS = (
    ToolOffer(name="lookup", description="Look up an order.", parameters=NUMBER),
    ToolOffer(name="mail/send it", parameters={"type": "string"}),
    ToolOffer(name="notes"),
)
CALLS = (
    RecordedCall(tool="lookup", arguments={"number": 7}, result="open"),
    RecordedCall(tool="lookup", arguments={"number": 7}, result={"state": "paid"}),
    RecordedCall(tool="lookup", arguments={"number": 8}, error="No such order."),
    RecordedCall(tool="mail/send it", arguments={"to": "A"}, result=[1], writes=True),
    RecordedCall(
        tool="notes",
        arguments={},
        result=[{"type": "text", "text": "one"}, {"type": "text", "text": "two"}],
    ),
)


def opened(project, *, stubs: StubPlan = AS_RECORDED, name: str = "memory"):
    """The claim of a run that is at work, and the address of its stubs."""
    agent = make_agent(project, name)
    case = Case(agent=name, input="Is order 7 open?", tools=TOOLS, calls=CALLS)
    [kept] = keep_cases(
        agent=agent, cases=[case], origin=Origin(CaseSource.HAND), user_id=None, now=NOW
    )
    target = make_target(agent)
    make_batch(target, kept.case, repeats=1, stubs=encoded_plan(stubs))
    claim = claim_run(lease_seconds=600)
    return claim, f"/api/stubs/{open_stubs(claim)}"


class _Server(ThreadingMixIn, WSGIServer):
    daemon_threads = True


class _Quiet(WSGIRequestHandler):
    def log_message(self, *_: object) -> None:
        """Say nothing."""

    def handle(self) -> None:
        super().handle()
        connections.close_all()


@contextmanager
def serving():
    """The product itself on loopback; gives its address."""
    server = make_server(
        "127.0.0.1", 0, get_wsgi_application(), _Server, handler_class=_Quiet
    )
    thread = threading.Thread(
        target=server.serve_forever, kwargs={"poll_interval": 0.01}
    )
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
