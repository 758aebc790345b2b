"""One model call with its tries: asked for leave, sent, read, recorded, tried again."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

import msgspec

from apps.engine.reading.json_words import visible
from apps.engine.replay.answer_gate import AnswerGate, BadAnswer, text_of
from apps.engine.replay.retrying import (
    Patience,
    failure_of,
    gave_up,
    pause_before_retry,
)
from apps.engine.replay.run import ErrorKind, ModelCalled, RunError
from apps.engine.replay.streams import AnswerStream, CutOff
from apps.engine.replay.turns import Api, Dialect, ModelAnswer, NoAnswer, WireNames
from apps.isolation.client import Reach, Reply, Request, exchange
from apps.isolation.happened import Happened
from apps.isolation.hooks import WorstCase
from apps.isolation.masking import Mask
from apps.isolation.run_time import CallFailed, failed

KEPT_OF_BAD: Final = 2_000
LIMITS_OF_TOKENS: Final = ("max_tokens", "max_completion_tokens", "max_output_tokens")
_KEPT_THERE: Final = ("previous_response_id", "conversation", "prompt")
LEAKED: Final = "The answer held the target's key; it was masked."


class Endpoint(msgspec.Struct, frozen=True, kw_only=True):
    """Where and how calls are sent. Its text never shows the headers."""

    url: str
    api: Api
    dialect: Dialect
    headers: Mapping[str, str]
    reach: Reach
    patience: Patience
    answer_bytes: int

    def __repr__(self) -> str:
        return f"Endpoint({self.url!r}, {self.api.value})"


class ModelCalls:
    """Makes the calls of one run to one endpoint."""

    def __init__(
        self, endpoint: Endpoint, *, happened: Happened, names: WireNames, mask: Mask
    ) -> None:
        self._endpoint = endpoint
        self._happened = happened
        self._names = names
        self._mask = mask
        self.answered = 0

    def ask(self, body: dict[str, Any]) -> tuple[Any, ModelAnswer]:
        """The JSON of an answer and what it holds; raises `CallFailed`.

        Every try is an event, the failed ones with their error.
        """
        tries, first = 0, None
        while True:
            tries += 1
            place, outcome = self._try(body, first)
            if not isinstance(outcome, RunError):
                self.answered += 1
                return outcome
            first = place if first is None else first
            self._wait_or_give_up(outcome, tries)

    def _wait_or_give_up(self, error: RunError, tries: int) -> None:
        patience = self._endpoint.patience
        chance = self._happened.hooks.random
        seconds = pause_before_retry(
            error, tries=tries, patience=patience, chance=chance
        )
        if seconds is None:
            raise CallFailed(gave_up(error, tries=tries, patience=patience))
        self._happened.wait(seconds)

    def _try(
        self, body: dict[str, Any], first: int | None
    ) -> tuple[int, tuple[Any, ModelAnswer] | RunError]:
        happened, hooks = self._happened, self._happened.hooks
        sent = msgspec.json.encode(body)
        with happened.asking_leave():
            hooks.before_call(worst_case(sent, body))
        event = ModelCalled(
            request=body,
            model=str(body.get("model", "")),
            temperature=body.get("temperature"),
            start_ns=hooks.clock_ns(),
            retry_of=first,
        )
        seen = Seen(self._endpoint.api if body.get("stream") else None)
        outcome: tuple[Any, ModelAnswer] | RunError
        try:
            value = self._exchanged(sent, seen)
            answer = self._endpoint.dialect.answer(value, self._names)
            event = answered_event(event, value, answer)
            outcome = (value, answer)
        except CallFailed as failure:
            outcome = masked_error(failure.error, self._mask)
        except (BadAnswer, NoAnswer) as bad:
            outcome = RunError(kind=ErrorKind.BAD_ANSWER, sentence=str(bad))
        if isinstance(outcome, RunError):
            kept = seen.kept(self._mask)
            event = msgspec.structs.replace(event, error=outcome, response=kept)
        event = msgspec.structs.replace(event, end_ns=hooks.clock_ns())
        place = happened.add(event)
        with happened.asking_leave():
            hooks.after_call(event)
        return place, outcome

    def _exchanged(self, sent: bytes, seen: Seen) -> Any:
        """The JSON of a good answer, masked; raises for everything else."""
        endpoint = self._endpoint
        request = Request(
            url=endpoint.url,
            body=sent,
            headers={"Content-Type": "application/json"} | dict(endpoint.headers),
            answer_bytes=endpoint.answer_bytes,
        )
        seen.reply = reply = exchange(
            request,
            reach=endpoint.reach,
            time_left=self._happened.time_left,
            look=seen.look,
        )
        try:
            raw = seen.value()
        except BadAnswer:
            if reply.status < 300:
                raise
            raw = None
        except CutOff as cut:
            raise failed(ErrorKind.CONNECTION, str(cut)) from None
        value = self._mask.value(raw)
        if value != raw and reply.status < 300:
            self._happened.leak(LEAKED)
        error = failure_of(
            reply.status,
            reply.headers,
            value,
            now=self._happened.hooks.clock_ns() / 1e9,
            is_model=True,
        )
        if error is not None:
            raise CallFailed(error)
        return value


class Seen:
    """What has come of one answer, whole or as a stream."""

    def __init__(self, streamed: Api | None) -> None:
        self._api = streamed
        self._stream: AnswerStream | None = None
        self.reply: Reply | None = None

    def look(self, status: int, headers: Mapping[str, str], piece: bytes) -> bool:
        """Whether the stream has come to its end; other answers end by themselves."""
        kind = headers.get("content-type", "")
        if self._api is None or status >= 300 or "event-stream" not in kind:
            return False
        if self._stream is None:
            self._stream = AnswerStream(self._api)
        return self._stream.feed(piece)

    def value(self) -> Any:
        """The JSON of the answer; raises `BadAnswer` or `CutOff`."""
        if self._stream is not None:
            return self._stream.whole()
        body = b"" if self.reply is None else self.reply.body
        return AnswerGate().value(text_of(body))

    def kept(self, mask: Mask) -> dict[str, Any] | None:
        """Status and beginning of an answer that was not taken."""
        if self.reply is None:
            return None
        return beginning_of(self.reply, mask)


def beginning_of(reply: Reply, mask: Mask) -> dict[str, Any]:
    """Status and the first characters of an answer that was not taken, masked.

    A little more is masked than is kept, so that a key at the edge shows no half.
    """
    text = mask.text(reply.body[: 2 * KEPT_OF_BAD].decode("utf-8", "replace"))
    return {"status": reply.status, "body": visible(text[:KEPT_OF_BAD])}


def masked_error(error: RunError, mask: Mask) -> RunError:
    """The error with its sentence masked."""
    return msgspec.structs.replace(error, sentence=mask.text(error.sentence))


def worst_case(sent: bytes, body: dict[str, Any]) -> WorstCase:
    """The most tokens that a request can use, from its bytes and its own limit.

    What the endpoint is to take from its own side is no part of the request.
    """
    most = max([body[name] for name in LIMITS_OF_TOKENS if name in body], default=0)
    is_whole = not any(body.get(name) for name in _KEPT_THERE)
    return WorstCase(input_tokens=len(sent) if is_whole else None, output_tokens=most)


def answered_event(event: ModelCalled, value: Any, answer: ModelAnswer) -> ModelCalled:
    """The event of a call with what was answered."""
    return msgspec.structs.replace(
        event,
        response=value,
        output=answer.text,
        reasoning=answer.reasoning,
        model=answer.model or event.model,
        usage=answer.usage,
        finish=answer.finish,
        finish_raw=answer.finish_raw,
        response_id=answer.response_id,
        call_ids=tuple(one.call_id for one in answer.asked),
    )
