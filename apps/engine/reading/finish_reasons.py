"""Why a model stopped, from the words of all vendors into one vocabulary."""

from __future__ import annotations

import json
from typing import Any, Final

from apps.engine.trace import FinishReason

_WORDS: Final = {
    FinishReason.STOP: (
        "stop", "end_turn", "stop_sequence", "eos", "completed", "complete", "finished",
        "end", "eos_token",
    ),
    FinishReason.LENGTH: (
        "length", "max_tokens", "max_output_tokens", "token_limit", "incomplete",
        "model_context_window_exceeded", "model_length",
    ),
    FinishReason.TOOL_CALLS: (
        "tool_calls", "tool_call", "tool_use", "function_call", "function_calls",
    ),
    FinishReason.CONTENT_FILTER: (
        "content_filter", "refusal", "safety", "content_filtered", "guardrail_intervened",
        "recitation", "blocklist", "prohibited_content",
    ),
    FinishReason.ERROR: ("error", "failed", "cancelled", "malformed_function_call"),
}  # fmt: skip
_BY_WORD: Final = {word: reason for reason, words in _WORDS.items() for word in words}


def finish_of(value: Any) -> tuple[FinishReason, str | None]:
    """Return the reason and its recorded wording; a list counts by its first entry.

    Lists written as JSON text are opened. Unknown words give UNKNOWN with the wording.
    """
    if isinstance(value, str) and value.startswith("["):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return FinishReason.UNKNOWN, value
    if isinstance(value, list):
        value = value[0] if value else None
    if not isinstance(value, str) or not value:
        return FinishReason.UNKNOWN, None
    word = value.rsplit(".", 1)[-1].replace("-", "_").casefold()
    return _BY_WORD.get(word, FinishReason.UNKNOWN), value
