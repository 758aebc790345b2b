"""Model calls of Codex: items of one response put together, usage joined to them.

A response is the run of items that a model gave between two inputs: reasoning, a
message, requests for tools. Its usage comes on a line of its own, before or after the
results of the tools.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from apps.engine.reading.json_values import embedded
from apps.engine.reading.text_limits import IDENTIFIER, NAME, clip
from apps.engine.reading.token_counts import Counts, usage_of, whole_number
from apps.engine.reading.transcript import Draft, ToolResult, Transcript, with_call
from apps.engine.trace import MISSING, ModelCall, StepKind, StepStatus, Usage

_ALONE: Final = "Model calls of which only the usage is recorded: {n}."
_ESTIMATE: Final = (
    "Usage lines that only estimate the size of the context, not counted: {n}."
)


def codex_usage(value: Any, source: str) -> Usage:
    """Return the usage that Codex wrote: cached and reasoning are parts of the totals."""
    if not isinstance(value, dict):
        return MISSING
    return usage_of(
        Counts(
            input_total=whole_number(value.get("input_tokens")),
            input_cached=whole_number(value.get("cached_input_tokens")),
            input_cache_write=whole_number(value.get("cache_write_input_tokens")),
            output_total=whole_number(value.get("output_tokens")),
            output_reasoning=whole_number(value.get("reasoning_output_tokens")),
            total=whole_number(value.get("total_tokens")),
            source=f"{source}.output_tokens",
        )
    )


class Turn(msgspec.Struct):
    """What holds for the calls that follow: the model and who provides it."""

    model: Any = None
    provider: Any = None


class Calls:
    """Adds model calls and their tool calls to a transcript."""

    def __init__(self, made: Transcript) -> None:
        self.made = made
        self.turn = Turn()
        self.resets = False
        self._open: int | None = None
        self._unpaid: int | None = None
        self._said: list[Any] = []
        self._thought: list[Any] = []
        self._outcomes: dict[str, tuple[StepStatus, Any, int | None]] = {}

    def close(self) -> None:
        """End the response that is open: what follows was asked anew."""
        if self._open is not None:
            draft = self.made.drafts[self._open]
            draft.output = _joined(self._said)
            draft.reasoning = _joined(self._thought)
        self._open = None
        self._said, self._thought = [], []

    def item(self, at: int | None) -> Draft:
        """Return the draft of the open response, which a first item begins."""
        if self._open is None:
            self._open = self._unpaid = self._begin(at)
        draft = self.made.drafts[self._open]
        draft.end_ns = at if at is not None else draft.end_ns
        return draft

    def say(self, text: Any, at: int | None) -> None:
        """Add a text of the answer."""
        self.item(at)
        self._said.append(text)

    def think(self, text: Any, at: int | None) -> None:
        """Add readable reasoning; `None` is reasoning that is encrypted."""
        self.item(at)
        if text:
            self._thought.append(text)

    def ask(
        self, item: dict[str, Any], name: Any, arguments: Any, at: int | None
    ) -> Draft:
        """Add a tool call that the open response asks for."""
        self.item(at)
        draft = self.made.ask(
            name=name,
            call_id=item.get("call_id") or item.get("id"),
            arguments=embedded(arguments),
            by=self._open,
        )
        draft.native_kind = item.get("type")
        draft.start_ns = at if at is not None else draft.start_ns
        return draft

    def give(self, result: ToolResult) -> None:
        """Join a tool's result to its call; it ends the response that asked."""
        self.close()
        known = self._outcomes.pop(str(result.call_id), None)
        if known is not None:
            result.status, result.error_message, _ = known
        self.made.give(result)

    def ended(
        self, call_id: Any, status: StepStatus, message: Any, at: int | None
    ) -> None:
        """Take how a tool ended from an event, before or after its result."""
        draft = self.made.asked(call_id)
        if draft is None:
            return
        draft.status, draft.error_message = status, message
        self._outcomes[str(call_id)] = (status, message, at)

    def pay(self, usage: Usage, response_id: Any = None) -> None:
        """Give a usage to the latest response without one.

        A usage that no response waits for is a call of its own; one without input and
        output is an estimate and no call.
        """
        if usage == MISSING:
            return
        if not usage.input_total and not usage.output_total and usage.total:
            self.made.remarks.add(_ESTIMATE)
            return
        if self._unpaid is None:
            self._unpaid = self._begin(None)
            self.made.remarks.add(_ALONE)
        own_id = clip(response_id, IDENTIFIER, self.made.remarks)
        draft = self.made.drafts[self._unpaid]
        with_call(draft, usage=usage, response_id=own_id)
        draft.native_id = own_id
        self._unpaid = None
        self.close()

    def _begin(self, at: int | None) -> int:
        remarks = self.made.remarks
        model = clip(self.turn.model, NAME, remarks)
        number = self.made.add(
            Draft(
                kind=StepKind.MODEL_CALL,
                name=model,
                start_ns=at,
                end_ns=at,
                native_kind="response",
                call=ModelCall(
                    provider=clip(self.turn.provider, NAME, remarks),
                    model=model,
                    resets_context=self.resets,
                ),
            )
        )
        self.resets = False
        return number


def _joined(told: list[Any]) -> Any:
    """One text where all are texts, else the list; nothing where there is none."""
    texts = [one for one in told if isinstance(one, str)]
    if len(texts) < len(told):
        return told if len(told) > 1 else told[0]
    return "\n".join(texts) if texts else None
