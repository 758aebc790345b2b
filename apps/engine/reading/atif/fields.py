"""Fields of an ATIF step that several decisions rest on."""

from __future__ import annotations

from typing import Any, Final

import msgspec

from apps.engine.reading.recorded import listed, mapping
from apps.engine.reading.token_counts import Counts, whole_number
from apps.engine.reading.transcript import ending_of
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.trace import StepStatus

_IDS_OF_CALLS: Final = ("api_call_id", "requestId", "response_id", "message_id")


def is_sidechain(step: dict[str, Any]) -> bool:
    """Whether a step is marked as a side chain, the way of a sub-agent."""
    return mapping(step.get("extra")).get("is_sidechain") is True


def id_of_call(step: dict[str, Any]) -> str | None:
    """Return the id of the model call that a step names, under whichever name."""
    extra = mapping(step.get("extra"))
    told = (extra.get(key) for key in _IDS_OF_CALLS)
    return next((one for one in told if isinstance(one, str) and one), None)


class OpenCall(msgspec.Struct):
    """The model call that following steps may still belong to."""

    number: int
    timestamp: Any
    model: Any
    reasoning: Any
    own_id: str | None
    sidechain: bool
    has_metrics: bool

    @classmethod
    def of(cls, step: dict[str, Any], number: int) -> OpenCall:
        """Return the call that began with a step and has this number."""
        return cls(
            number=number,
            timestamp=step.get("timestamp"),
            model=step.get("model_name"),
            reasoning=step.get("reasoning_content"),
            own_id=id_of_call(step),
            sidechain=is_sidechain(step),
            has_metrics=bool(step.get("metrics")),
        )


def continues(last: OpenCall, step: dict[str, Any]) -> bool:
    """Whether a step without metrics belongs to the call that is open.

    It must be stamped with the same moment, name the same model and think the same;
    without times only the words that a converter writes for a tool call say so. A step
    that counts as one call of its own is joined only for such words.
    """
    if step.get("metrics") or not last.has_metrics or _differ(last, step):
        return False
    is_tool = only_says_what_ran(step)
    if step.get("llm_call_count") == 1 and not is_tool:
        return False
    if step.get("timestamp") is None:
        return is_tool
    return bool(step["timestamp"] == last.timestamp)


def _differ(last: OpenCall, step: dict[str, Any]) -> bool:
    """Whether a step names another model, call or side chain, or thinks otherwise."""
    own_id, thought = id_of_call(step), step.get("reasoning_content")
    return (
        step.get("model_name") != last.model
        or is_sidechain(step) != last.sidechain
        or bool(own_id and last.own_id and own_id != last.own_id)
        or bool(thought and last.reasoning and thought != last.reasoning)
    )


def only_says_what_ran(step: dict[str, Any]) -> bool:
    """Whether the words of a step are those that a converter writes for a tool call."""
    calls = listed(step.get("tool_calls"))
    if len(calls) != 1 or not isinstance(calls[0], dict):
        return False
    name, own_id = calls[0].get("function_name"), calls[0].get("tool_call_id")
    return step.get("message") in (f"Executed {name}", f"Executed {name} {own_id}")


def tool_status(result: dict[str, Any], extra: dict[str, Any]) -> StepStatus:
    """Return whether a tool failed, where the result or its step records it."""
    of_result = mapping(result.get("extra"))
    told = [of_result.get("is_error"), of_result.get("tool_result_is_error"),
            extra.get("tool_result_is_error")]  # fmt: skip
    known = [one for one in told if isinstance(one, bool)]
    if extra.get("status") in ("failed", "error"):
        known.append(True)
    return ending_of(known[0] if known else None)


def counts_in(metrics: Any) -> Counts:
    """Return the counts of a step. ATIF counts cached input inside `prompt_tokens`."""
    metrics = mapping(metrics)
    counts = usage_counts(mapping(metrics.get("extra")), "metrics.extra")
    counts.input_total = whole_number(metrics.get("prompt_tokens"))
    counts.output_total = whole_number(metrics.get("completion_tokens"))
    cached = whole_number(metrics.get("cached_tokens"))
    counts.input_cached = counts.input_cached if cached is None else cached
    counts.total = None
    counts.source = None
    if counts.output_total is not None:
        counts.source = "metrics.completion_tokens"
    return counts
