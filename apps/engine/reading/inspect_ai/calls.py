"""The facts of one model event of Inspect: usage, finish, what it was sent."""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.finish_reasons import finish_of
from apps.engine.reading.recorded import mapping
from apps.engine.reading.text_limits import IDENTIFIER, NAME, Remarks, clip
from apps.engine.reading.token_counts import Counts, usage_of, whole_number, with_cache
from apps.engine.trace import ModelCall

_UNCLEAR: Final = (
    "Model calls with cached input and no total, read as if the cache stood beside the "
    "input: {n}."
)


def first_choice(output: Any) -> dict[str, Any]:
    """Return the first choice of a model's output; empty where there is none."""
    choices = mapping(output).get("choices")
    return mapping(choices[0]) if isinstance(choices, list) and choices else {}


def counts_of_usage(usage: Any, remarks: Remarks) -> Counts:
    """Return the counts of a usage.

    Whether `input_tokens` includes the cache depends on the version that wrote it, so
    the total decides: where it is the sum of all four counts, the cache is added.
    """
    usage = mapping(usage)
    given = whole_number(usage.get("input_tokens"))
    output = whole_number(usage.get("output_tokens"))
    cached = whole_number(usage.get("input_tokens_cache_read"))
    written = whole_number(usage.get("input_tokens_cache_write"))
    total = whole_number(usage.get("total_tokens"))
    whole = with_cache(given, cached, written)
    if given is not None and whole is not None and whole != given:
        if total is None:
            remarks.add(_UNCLEAR)
        if total is None or total == whole + (output or 0):
            given = whole
    return Counts(
        input_total=given,
        input_cached=cached,
        input_cache_write=written,
        output_total=output,
        output_reasoning=whole_number(usage.get("reasoning_tokens")),
        total=total,
        source="output.usage.output_tokens" if output is not None else None,
    )


def call_of_event(event: dict[str, Any], remarks: Remarks) -> ModelCall:
    """Return the model call of a model event; tool calls are joined elsewhere."""
    output = mapping(event.get("output"))
    choice = first_choice(output)
    finish, finish_raw = finish_of(choice.get("stop_reason"))
    told = clip(event.get("model") or output.get("model"), NAME, remarks)
    provider, slash, model = (told or "").partition("/")
    response = mapping(mapping(event.get("call")).get("response"))
    is_repeat = event.get("cache") == "read"
    return ModelCall(
        provider=provider if slash else None,
        model=(model if slash else told) or told,
        finish=finish,
        finish_raw=clip(finish_raw, IDENTIFIER, remarks),
        usage=usage_of(counts_of_usage(output.get("usage"), remarks)),
        # An answer out of the cache repeats the id of the one it was made with.
        response_id=(
            None if is_repeat else clip(response.get("id"), IDENTIFIER, remarks)
        ),
        is_placeholder=event.get("pending") is True and not choice,
        tool_call_ids=_requested(choice, remarks),
    )


def _requested(choice: dict[str, Any], remarks: Remarks) -> tuple[str, ...]:
    calls = mapping(choice.get("message")).get("tool_calls")
    ids = [
        clip(call.get("id"), IDENTIFIER, remarks)
        for call in (calls if isinstance(calls, list) else [])
        if isinstance(call, dict)
    ]
    return tuple(one for one in ids if one)


def answer_of(message: dict[str, Any]) -> tuple[Any, Any]:
    """Return what a message says and what it reasons, parted where it is a list."""
    content = message.get("content")
    if not isinstance(content, list):
        return content, None
    kinds = [mapping(part).get("type") for part in content]
    thoughts = [
        part.get("reasoning") or part.get("summary")
        for part, kind in zip(content, kinds, strict=True)
        if kind == "reasoning"
    ]
    said = [
        part for part, kind in zip(content, kinds, strict=True) if kind != "reasoning"
    ]
    if len(said) == 1 and kinds.count("text") == 1:
        said = mapping(said[0]).get("text", said)
    return said, [one for one in thoughts if one] or None
