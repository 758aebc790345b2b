"""Token usage as the APIs and SDKs of model providers write it, made into `Counts`.

OpenAI counts cached input inside its input and reasoning inside its output. Anthropic
and Bedrock count what was read from and written to the cache beside their input, so it
is added here. Gemini counts thoughts beside its output; they are kept apart.
Sources: https://platform.openai.com/docs/api-reference/chat/object,
https://docs.anthropic.com/en/api/messages, https://ai.google.dev/api/generate-content.
"""

from __future__ import annotations

from functools import cache
from typing import Any, Final

from apps.engine.reading.token_counts import Counts, as_whole, whole_number, with_cache

_INPUT: Final = (
    "prompt_tokens", "input_tokens", "inputTokens", "promptTokens", "request_tokens",
    "promptTokenCount", "prompt_token_count",
)  # fmt: skip
_OUTPUT: Final = (
    "completion_tokens", "output_tokens", "outputTokens", "completionTokens",
    "response_tokens", "candidatesTokenCount", "candidates_token_count",
)  # fmt: skip
_TOTAL: Final = (
    "total_tokens", "totalTokens", "totalTokenCount", "total_token_count", "total",
)  # fmt: skip
_CACHED: Final = (
    "cache_read_input_tokens", "cache_read_tokens", "cachedInputTokens",
    "cacheReadInputTokens", "cachedContentTokenCount", "cached_content_token_count",
    "prompt_tokens_details.cached_tokens", "input_tokens_details.cached_tokens",
    "input_token_details.cache_read", "inputTokenDetails.cacheReadTokens",
)  # fmt: skip
_CACHE_WRITE: Final = (
    "cache_creation_input_tokens", "cache_write_tokens", "cacheWriteInputTokens",
    "prompt_tokens_details.cache_write_tokens",
    "prompt_tokens_details.cache_creation_tokens",
    "input_tokens_details.cache_write_tokens", "input_token_details.cache_creation",
    "inputTokenDetails.cacheWriteTokens",
)  # fmt: skip
_REASONING: Final = (
    "output_reasoning_tokens", "reasoningTokens", "reasoning_tokens",
    "thoughtsTokenCount", "thoughts_token_count",
    "completion_tokens_details.reasoning_tokens",
    "output_tokens_details.reasoning_tokens", "output_token_details.reasoning",
    "outputTokenDetails.reasoningTokens", "details.reasoning_tokens",
)  # fmt: skip
_BESIDE_INPUT: Final = (
    ("input_tokens", ("cache_read_input_tokens", "cache_creation_input_tokens")),
    ("inputTokens", ("cacheReadInputTokens", "cacheWriteInputTokens")),
)


def usage_counts(usage: Any, source: str = "usage") -> Counts:
    """Return the counts of a usage object; everything `None` when it is none.

    `source` is the path of the object in its record; the path of the output count is
    put together with it. Counts that are no counts are read as not recorded.
    """
    if not isinstance(usage, dict):
        return Counts()
    output, key = _first(usage, _OUTPUT)
    given, name = _first(usage, _INPUT)
    for key_of_input, keys in _BESIDE_INPUT:
        if name == key_of_input:
            beside = [whole_number(usage.get(one)) for one in keys]
            given = with_cache(given, *beside)
    return Counts(
        input_total=given,
        input_cached=_first(usage, _CACHED)[0],
        input_cache_write=_first(usage, _CACHE_WRITE)[0],
        output_total=output,
        output_reasoning=_first(usage, _REASONING)[0],
        total=_first(usage, _TOTAL)[0],
        source=f"{source}.{key}" if key else None,
    )


def tells_output(usage: dict[str, Any]) -> bool:
    """Whether a usage has a number for the output, be it out of the range of counts."""
    return any(as_whole(usage.get(key)) is not None for key in _OUTPUT)


@cache
def _paths(keys: tuple[str, ...]) -> tuple[tuple[str, str, str], ...]:
    """The object that holds each key ("" for the usage itself), its name, the key."""
    parts = [(key.rpartition("."), key) for key in keys]
    return tuple((holder, name, key) for (holder, _, name), key in parts)


def _first(usage: dict[str, Any], keys: tuple[str, ...]) -> tuple[int | None, str]:
    for holder, name, key in _paths(keys):
        fields = usage.get(holder) if holder else usage
        value = fields.get(name) if isinstance(fields, dict) else None
        found = None if value is None else whole_number(value)
        if found is not None:
            return found, key
    return None, ""
