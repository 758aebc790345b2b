"""Model calls of OpenHands: all events of one response are one call."""

from __future__ import annotations

from typing import Any

import msgspec

from apps.engine.reading.finish_reasons import finish_of
from apps.engine.reading.local_times import before_ns, told_ns
from apps.engine.reading.openhands.usage import Metrics
from apps.engine.reading.text_limits import IDENTIFIER, NAME, Remarks, clip
from apps.engine.reading.token_counts import usage_of
from apps.engine.reading.transcript import Draft, Transcript
from apps.engine.trace import ModelCall, StepKind


class Reply(msgspec.Struct, kw_only=True):
    """What one event says of the response that made it."""

    response: Any = None
    usage: Any = None
    model: Any = None
    finish: Any = None
    text: Any = None
    reasoning: Any = None
    timestamp: Any = None
    event_id: Any = None


class Calls:
    """Makes one model call for each response id and remembers its number."""

    def __init__(self, made: Transcript, metrics: Metrics, remarks: Remarks) -> None:
        self.made = made
        self.metrics = metrics
        self.remarks = remarks
        self.model: Any = None
        self._numbers: dict[tuple[int, str], int] = {}
        self._resets: set[int] = set()

    def reset(self, owner: int) -> None:
        """Let the next call of an invocation begin with a context that was cut."""
        self._resets.add(owner)

    def of(self, reply: Reply, owner: int) -> int:
        """Return the number of the call that a reply belongs to, made when it is new.

        A reply without a response id is a call of its own.
        """
        response = clip(reply.response, IDENTIFIER, self.remarks)
        key = (owner, response) if response else None
        if key is not None and key in self._numbers:
            draft = self.made.drafts[self._numbers[key]]
            draft.output = draft.output or reply.text
            draft.reasoning = draft.reasoning or reply.reasoning
            return self._numbers[key]
        counts = self.metrics.counts(reply.response, reply.usage)
        self.metrics.sums.add(counts, owner)
        finish, finish_raw = finish_of(reply.finish)
        # An event is stamped when the answer is there: that is the end of the call.
        end = told_ns(reply.timestamp, self.remarks)
        model = reply.model or self.metrics.model(reply.response) or self.model
        number = self.made.add(
            Draft(
                kind=StepKind.MODEL_CALL,
                invocation=owner,
                start_ns=before_ns(end, self.metrics.latency(reply.response)),
                end_ns=end,
                native_id=reply.event_id,
                native_kind="response" if response else "agent event",
                output=reply.text,
                reasoning=reply.reasoning,
                call=ModelCall(
                    model=clip(model, NAME, self.remarks),
                    finish=finish,
                    finish_raw=clip(finish_raw, IDENTIFIER, self.remarks),
                    usage=usage_of(counts),
                    response_id=response,
                    resets_context=owner in self._resets,
                ),
            )
        )
        self._resets.discard(owner)
        if key is not None:
            self._numbers[key] = number
        return number
