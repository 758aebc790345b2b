"""Token usage of a Langfuse observation, in the three forms that Langfuse has had.

`usageDetails` holds buckets: "input" and "output" and what an integration told of
their parts. Parts named like input_cached were taken out of the input by Langfuse, so
they are added back; reasoning is kept apart from the output. Without any bucket
nothing was recorded, whatever the zeros beside it say.
Source: https://langfuse.com/docs/observability/features/token-and-cost-tracking
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.platform_rows import Row, opened_object
from apps.engine.reading.recorded import first_of
from apps.engine.reading.token_counts import Counts, whole_number, with_cache
from apps.engine.reading.usage_fields import usage_counts
from apps.engine.trace import UsageState

DETAILS: Final = ("usageDetails", "usage_details")
PROVIDED: Final = ("providedUsageDetails", "provided_usage_details")
_USAGE_WORDS: Final = ("usage", "token")
_OWN_SCOPES: Final = ("langfuse",)


def usage_in(row: Row) -> tuple[Counts, int]:
    """Return the counts of an observation and how many recorded ones are no counts."""
    key = next((key for key in DETAILS if row.get(key) is not None), None)
    if key is not None:
        details = opened_object(row[key])
        bad = sum(
            whole_number(value) is None
            for value in details.values()
            if value is not None
        )
        return _buckets(details, key), bad
    return _older(row), 0


def _buckets(details: Row, source: str) -> Counts:
    given, output = _count(details, "input"), _count(details, "output")
    cached = _named(details, ("cache_read", "cached", "cache_read_input_tokens"))
    written = _named(details, ("cache_creation", "cache_write"))
    reasoning = _named(details, ("reasoning", "thoughts", "thinking"))
    beside = [
        whole_number(value)
        for key, value in details.items()
        if key.startswith(("input_", "cache_"))
    ]
    given = with_cache(given, *beside)
    told = usage_counts(details, source)
    return Counts(
        input_total=told.input_total if given is None else given,
        input_cached=cached,
        input_cache_write=written,
        output_total=told.output_total if output is None else output,
        output_reasoning=reasoning,
        total=_count(details, "total"),
        source=told.source if output is None else f"{source}.output",
    )


def _count(details: Row, key: str) -> int | None:
    return whole_number(details.get(key))


def _named(details: Row, words: tuple[str, ...]) -> int | None:
    """Return the count of the first bucket whose name holds one of `words`."""
    for key, value in details.items():
        if any(word in key for word in words):
            count = whole_number(value)
            if count is not None:
                return count
    return None


def _older(row: Row) -> Counts:
    """Return the counts of `usage`, or of promptTokens and completionTokens."""
    usage = opened_object(row.get("usage"))
    given = first_of(usage, ("input", "promptTokens", "prompt_tokens"))
    output = first_of(usage, ("output", "completionTokens", "completion_tokens"))
    if given is None and output is None:
        usage = row
        given = first_of(row, ("promptTokens", "prompt_tokens", "inputUsage"))
        output = first_of(row, ("completionTokens", "completion_tokens", "outputUsage"))
    return Counts(
        input_total=whole_number(given),
        output_total=whole_number(output),
        total=whole_number(
            first_of(usage, ("total", "totalTokens", "total_tokens", "totalUsage"))
        ),
        source="usage.output" if usage is not row else "completionTokens",
    )


def state_of(row: Row, metadata: Row) -> UsageState | None:
    """Return that Langfuse counted the tokens itself, where the row lets one know.

    It does so when the SDK sent none: then the provided buckets are empty, or the
    span came over OpenTelemetry with attributes of which none speaks of tokens.
    """
    provided = next((row[key] for key in PROVIDED if row.get(key) is not None), None)
    if provided is not None:
        return None if opened_object(provided) else UsageState.VENDOR_ESTIMATE
    attributes = metadata.get("attributes")
    scope = opened_object(metadata.get("scope")).get("name")
    if not isinstance(attributes, dict) or not attributes or not _is_foreign(scope):
        return None
    if any(word in key for key in attributes for word in _USAGE_WORDS):
        return None
    return UsageState.VENDOR_ESTIMATE


def _is_foreign(scope: Any) -> bool:
    return isinstance(scope, str) and not scope.startswith(_OWN_SCOPES)
