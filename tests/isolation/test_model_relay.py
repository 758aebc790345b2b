"""Sandboxed code reaches its model and nothing else, without ever seeing the key."""

from __future__ import annotations

import json

import pytest

from apps.engine.replay.run import ErrorKind, Limits, Regime
from apps.engine.replay.turns import Api
from apps.engine.trace import UsageState
from apps.isolation.client import Reach
from apps.isolation.hooks import Hooks, OverBudget
from apps.isolation.masking import MARK
from apps.isolation.model_endpoint import EndpointOrder
from apps.isolation.model_relay import relay_of
from apps.isolation.sandbox import RelayRequest
from apps.isolation.wall import inner_hosts
from tests.isolation.endpoint_runs import CASE, KEY
from tests.model_server import MALFORMED, call, model_server


def asked(server, body, *, path="/v1/chat/completions", method="POST", **more):
    """What the code is answered, its JSON, and what the hooks were told."""
    settled = []
    before = more.pop("before_call", lambda _: None)
    hooks = Hooks(before_call=before, after_call=settled.append)
    order = EndpointOrder(
        case=CASE,
        base_url=server.url,
        secret=KEY,
        model="real-model",
        reach=Reach(inner=inner_hosts([server.host])),
        **more,
    )
    raw = body if isinstance(body, bytes) else json.dumps(body).encode()
    request = RelayRequest(
        method=method, path=path, headers={"Authorization": "Bearer fake"}, body=raw
    )
    response = relay_of(order, hooks=hooks)(request)
    assert settled == ([response.event] if response.event else [])
    return response


ASKING = {"model": "m", "messages": [{"role": "user", "content": "Hi."}]}


def test_a_request_goes_to_the_endpoint_with_its_key_model_and_limit():
    with model_server(answer=call("lookup", number=7)) as server:
        response = asked(server, ASKING | {"max_tokens": 99_999, "n": 5})
        (sent,), (headers,) = server.stats.bodies, server.stats.headers
    assert headers["Authorization"] == f"Bearer {KEY}"
    assert sent == ASKING | {
        "model": "real-model",
        "max_tokens": 4_096,
        "n": 1,
        "temperature": 0.0,
    }
    assert response.status == 200
    message = json.loads(response.body)["choices"][0]["message"]
    assert message["tool_calls"][0]["function"]["name"] == "lookup"
    assert response.event.request == sent
    assert response.event.call_ids == ("call_1",)
    assert response.event.usage.state is UsageState.REPORTED
    assert KEY not in repr(response)


@pytest.mark.parametrize("api", Api)
def test_a_stream_is_passed_on_as_it_is_and_recorded_whole(api):
    path = "/v1/chat/completions" if api is Api.CHAT_COMPLETIONS else "/responses"
    key = "messages" if api is Api.CHAT_COMPLETIONS else "input"
    body = {"model": "m", key: ASKING["messages"], "stream": True}
    with model_server(answer="All is well.") as server:
        response = asked(
            server,
            body | {"max_output_tokens": 7, "max_completion_tokens": 7},
            path=path,
            regime=Regime(temperature=None),
            limits=Limits(output_tokens=9),
        )
        (sent,) = server.stats.bodies
    assert response.headers["content-type"] == "text/event-stream"
    assert response.body.startswith((b"data: ", b"event: "))
    assert response.event.output == "All is well."
    name = "max_completion_tokens" if key == "messages" else "max_output_tokens"
    assert sent[name] == 7
    assert "temperature" not in sent


@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/v1/models", b"", 200),
        ("GET", "/v1/chat/completions", b"", 404),
        ("POST", "/v1/files", b"{}", 404),
        ("DELETE", "/v1/files/7", b"", 404),
        ("POST", "/v1/chat/completions/../files", b"{}", 404),
        ("POST", "http://127.0.0.1:1/v1/embeddings", b"{}", 404),
        ("POST", "/v1/chat/completions", b"[1]", 400),
        ("POST", "/v1/chat/completions", b"\xff", 400),
    ],
)
def test_nothing_else_is_sent(method, path, body, status):
    with model_server() as server:
        response = asked(server, body, path=path, method=method)
        assert server.stats.calls == 0
    assert (response.status, response.event) == (status, None)


def test_a_busy_endpoint_is_told_to_the_code_and_not_asked_again():
    with model_server("rate_limited", retry_after=7) as server:
        response = asked(server, ASKING)
        assert server.stats.calls == 1
    assert (response.status, response.headers["retry-after"]) == (429, "7")
    assert response.event.error.kind is ErrorKind.RATE_LIMITED


def test_the_key_never_comes_back():
    for mode, more in (
        ("echo_key", {}),
        ("deterministic", {"answer": f"It is {KEY}."}),
    ):
        with model_server(mode, **more) as server:
            response = asked(server, ASKING)
        assert MARK in response.body.decode()
        assert KEY not in repr(response)


def test_a_redirect_and_a_time_out_are_errors_of_the_endpoint():
    with model_server("redirect") as server:
        response = asked(server, ASKING)
    assert (response.status, response.event.error.kind) == (502, ErrorKind.REFUSED)
    with model_server("hanging") as server:
        response = asked(server, ASKING, limits=Limits(seconds=0.3))
    assert (response.status, response.event.error.kind) == (504, ErrorKind.TIMED_OUT)


def test_no_malformed_answer_is_an_answer_in_the_record():
    for variant in MALFORMED:
        with model_server("malformed", variant=variant) as server:
            response = asked(server, ASKING)
        assert (response.event.error is None) != (response.event.output is None)


def test_what_a_hook_raises_goes_on_and_nothing_is_sent():
    def refuse(_worst):
        raise OverBudget("No money is left.")

    with model_server() as server:
        with pytest.raises(OverBudget):
            asked(server, ASKING, before_call=refuse)
        assert server.stats.calls == 0


@pytest.mark.parametrize(
    "asks",
    [
        {"tools": [{"type": "web_search"}]},
        {"tools": [{"type": "function"}, {"type": "mcp", "server_url": "http://x.y"}]},
        {"tools": {"type": "code_interpreter"}},
        {"tools": ["function"]},
        {"web_search_options": {}},
    ],
)
def test_what_the_endpoint_would_do_by_itself_is_not_asked_for(asks):
    with model_server() as server:
        response = asked(
            server, {"model": "m", "input": "Hi."} | asks, path="/responses"
        )
        assert server.stats.calls == 0
    assert (response.status, response.event) == (400, None)
    assert b"would be real" in response.body


@pytest.mark.parametrize(
    ("path", "asks", "is_known"),
    [
        ("/responses", {"max_tokens": 1, "max_output_tokens": 9_999}, True),
        ("/responses", {"max_completion_tokens": "few"}, True),
        ("/responses", {"previous_response_id": "resp_1"}, False),
        ("/v1/chat/completions", {"max_output_tokens": 1, "n": 9.0}, True),
    ],
)
def test_what_is_reserved_is_what_may_be_used(path, asks, is_known):
    worst = []
    key = "input" if path == "/responses" else "messages"
    with model_server() as server:
        asked(
            server,
            {"model": "m", key: ASKING["messages"]} | asks,
            path=path,
            before_call=worst.append,
        )
        (sent,) = server.stats.bodies
    assert worst[0].output_tokens == Limits().output_tokens
    assert (worst[0].input_tokens is not None) == is_known
    limits = {name: value for name, value in sent.items() if name.startswith("max")}
    assert list(limits.values()) == [Limits().output_tokens]
    assert sent.get("n") in {None, 1}
