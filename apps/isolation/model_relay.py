"""The way of sandboxed code to its model: each request is bound, sent and recorded.

The code knows neither the endpoint nor the key. It may ask for chat completions and
Responses and for nothing else. Nothing is tried again here: what the endpoint says,
also that it is busy, is said to the code, which has its own ways.
"""

from __future__ import annotations

import json
from typing import Any, Final

import msgspec

from apps.engine.replay.answer_gate import AnswerGate, BadAnswer, text_of
from apps.engine.replay.chat_completions import ChatCompletions
from apps.engine.replay.responses import Responses
from apps.engine.replay.retrying import failure_of
from apps.engine.replay.run import ErrorKind, ModelCalled, RunError
from apps.engine.replay.streams import CutOff
from apps.engine.replay.turns import Api, Dialect, NoAnswer, WireNames
from apps.isolation.client import Reply, Request, exchange, secret_headers
from apps.isolation.hooks import Hooks
from apps.isolation.masking import Mask
from apps.isolation.model_calls import (
    LIMITS_OF_TOKENS,
    Seen,
    answered_event,
    beginning_of,
    masked_error,
    worst_case,
)
from apps.isolation.model_endpoint import EndpointOrder, endpoint_url
from apps.isolation.run_time import CallFailed, RunTime
from apps.isolation.sandbox import Relay, RelayRequest, RelayResponse

_DIALECTS: Final[dict[Api, Dialect]] = {
    Api.CHAT_COMPLETIONS: ChatCompletions(),
    Api.RESPONSES: Responses(),
}
_PASSED_ON: Final = frozenset({"content-type", "retry-after", "retry-after-ms"})
_JSON: Final = {"Content-Type": "application/json"}
_LIMITS: Final[dict[Api, tuple[str, ...]]] = {
    Api.CHAT_COMPLETIONS: ("max_tokens", "max_completion_tokens"),
    Api.RESPONSES: ("max_output_tokens",),
}
_STATUS: Final = {ErrorKind.TIMED_OUT: 504, ErrorKind.CANCELLED: 503}


def relay_of(order: EndpointOrder, *, hooks: Hooks) -> Relay:
    """Answers the requests of sandboxed code out of the endpoint of `order`.

    Its model, where it names one, takes the place of the one asked for; the limit of
    output tokens is always sent. The case is not looked at. Called in several threads
    at once. Raises what the hooks raise.
    """
    return _ModelRelay(order, hooks).answer


class _ModelRelay:
    """The relay of one run."""

    def __init__(self, order: EndpointOrder, hooks: Hooks) -> None:
        self._order = order
        self._hooks = hooks
        self._mask = Mask([order.secret])
        self._headers = {"Content-Type": "application/json"} | order.headers
        if order.secret:
            self._headers |= secret_headers(
                order.secret, order.secret_header, order.secret_prefix
            )

    def answer(self, request: RelayRequest) -> RelayResponse:
        """What the code is answered to one request, with the event that it is."""
        path = request.path.partition("?")[0].rstrip("/")
        if request.method == "GET" and path.endswith("/models"):
            model = {"id": self._order.model, "object": "model"}
            return _said(200, {"object": "list", "data": [model]})
        api = next((a for a, one in _DIALECTS.items() if path.endswith(one.path)), None)
        if request.method != "POST" or api is None:
            return _refused(
                404, "Only chat completions and Responses can be asked for."
            )
        try:
            body = AnswerGate().value(text_of(request.body))
        except BadAnswer:
            body = None
        if not isinstance(body, dict):
            return _refused(400, "The request is no JSON object.")
        if _acts_there(body):
            return _refused(
                400,
                "Only functions can be tools here: what the endpoint does by itself "
                "would be real.",
            )
        return self._asked(api, self._bound(api, body), request)

    def _bound(self, api: Api, body: dict[str, Any]) -> dict[str, Any]:
        """The request with its model and within its limit."""
        is_chat = api is Api.CHAT_COMPLETIONS
        names = _LIMITS[api]
        most = self._order.limits.output_tokens
        name = next((one for one in names if body.get(one) is not None), names[0])
        wanted = body.get(name)
        is_less = type(wanted) is int and 0 < wanted < most
        bound = {k: value for k, value in body.items() if k not in LIMITS_OF_TOKENS}
        bound |= {name: wanted if is_less else most}
        if is_chat and "n" in bound:
            # Each of several answers may be as long as the limit.
            bound["n"] = 1
        if self._order.model:
            bound["model"] = self._order.model
        if (warmth := self._order.regime.temperature) is not None:
            bound.setdefault("temperature", warmth)
        return bound

    def _asked(
        self, api: Api, body: dict[str, Any], request: RelayRequest
    ) -> RelayResponse:
        hooks = self._hooks
        sent = msgspec.json.encode(body)
        with request.waiting():
            hooks.before_call(worst_case(sent, body))
        event = ModelCalled(
            request=body,
            model=str(body.get("model", "")),
            temperature=body.get("temperature"),
            start_ns=hooks.clock_ns(),
        )
        seen = Seen(api if body.get("stream") is True else None)
        try:
            self._exchange(api, sent, seen)
            event, reply = self._read(api, event, seen)
        except CallFailed as failure:
            error = masked_error(failure.error, self._mask)
            event = msgspec.structs.replace(event, error=error)
            reply = _refused(_STATUS.get(error.kind, 502), error.sentence)
        event = msgspec.structs.replace(event, end_ns=hooks.clock_ns())
        hooks.after_call(event)
        return msgspec.structs.replace(reply, event=event)

    def _exchange(self, api: Api, sent: bytes, seen: Seen) -> None:
        order = self._order
        request = Request(
            url=endpoint_url(order.base_url, _DIALECTS[api].path),
            body=sent,
            headers=self._headers,
            answer_bytes=order.limits.answer_bytes,
        )
        time_left = RunTime(order.limits.seconds, stop=self._hooks.stop)
        try:
            seen.reply = exchange(
                request, reach=order.reach, time_left=time_left, look=seen.look
            )
        except BadAnswer as bad:
            raise _bad(str(bad)) from None

    def _read(
        self, api: Api, event: ModelCalled, seen: Seen
    ) -> tuple[ModelCalled, RelayResponse]:
        """The event of an answer, and the answer as the code gets it."""
        reply = seen.reply
        assert reply is not None  # noqa: S101 # an exchange that fails raises
        error: RunError | None
        value: Any = None
        try:
            value = self._mask.value(seen.value())
            error = self._failure(reply, value)
            if error is None:
                answer = _DIALECTS[api].answer(value, WireNames([]))
                event = answered_event(event, value, answer)
        except (BadAnswer, NoAnswer, CutOff) as bad:
            error = self._failure(reply, None) or _bad(str(bad)).error
        if error is not None:
            kept = beginning_of(reply, self._mask)
            event = msgspec.structs.replace(event, error=error, response=kept)
        return event, self._passed_on(reply)

    def _failure(self, reply: Reply, value: Any) -> RunError | None:
        now = self._hooks.clock_ns() / 1e9
        return failure_of(reply.status, reply.headers, value, now=now, is_model=True)

    def _passed_on(self, reply: Reply) -> RelayResponse:
        """The answer without its other headers, its key masked, a redirect refused."""
        if 300 <= reply.status < 400:
            return _refused(
                502, "The endpoint answered with a redirect; it is refused."
            )
        headers = {
            name: value for name, value in reply.headers.items() if name in _PASSED_ON
        }
        text = reply.body.decode("utf-8", "surrogateescape")
        body = self._mask.text(text).encode("utf-8", "surrogateescape")
        return RelayResponse(status=reply.status, headers=headers, body=body)


def _acts_there(body: dict[str, Any]) -> bool:
    """Whether the endpoint is to do more than to answer: search, run code, call servers."""
    tools = body.get("tools") or []
    if not isinstance(tools, list) or "web_search_options" in body:
        return True
    kinds = {one.get("type") if isinstance(one, dict) else None for one in tools}
    return not kinds <= {"function", "custom"}


def _bad(sentence: str) -> CallFailed:
    return CallFailed(RunError(kind=ErrorKind.BAD_ANSWER, sentence=sentence))


def _refused(status: int, sentence: str) -> RelayResponse:
    return _said(status, {"error": {"message": sentence, "type": "replay"}})


def _said(status: int, value: Any) -> RelayResponse:
    body = json.dumps(value).encode()
    return RelayResponse(status=status, headers=_JSON, body=body)
