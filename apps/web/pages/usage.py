"""The token usage of one model call in words: short for a line, whole for its facts.

Cached and reasoning counts are named beside the totals and never added to them.
"""

from __future__ import annotations

from apps.engine.trace import Usage, UsageState
from apps.web.pages.receipt import USAGE_WORDS
from apps.web.words import number_in_words

NOT_RECORDED = "not recorded"
_SHORT = {
    UsageState.MISSING: "usage not reported",
    UsageState.ZERO_SUSPECT: "usage reported as zero: not trusted",
    UsageState.AGGREGATE_ONLY: "usage only as an aggregate, not for this call",
}


def usage_in_short(usage: Usage) -> str:
    """`1 240 tokens in (1 024 cached), 112 out (64 reasoning)`, or what is missing."""
    if usage.state in _SHORT:
        return _SHORT[usage.state]
    if usage.input_total is None and usage.output_total is None:
        return "input and output length not reported"
    words = ", ".join(word for word in (_in(usage), _out(usage)) if word)
    if usage.output_total is None:
        words += "; output length not reported"
    if usage.state is UsageState.VENDOR_ESTIMATE:
        words += "; an estimate, not used by checks"
    return words


def _in(usage: Usage) -> str:
    if usage.input_total is None:
        return ""
    cached = usage.input_cached
    more = f" ({number_in_words(cached)} cached)" if cached is not None else ""
    return f"{_tokens(usage.input_total)} in{more}"


def _out(usage: Usage) -> str:
    if usage.output_total is None:
        return ""
    count = usage.output_total
    words = _tokens(count) if usage.input_total is None else number_in_words(count)
    reasoning = usage.output_reasoning
    more = f" ({number_in_words(reasoning)} reasoning)" if reasoning is not None else ""
    return f"{words} out{more}"


def _tokens(count: int) -> str:
    return f"{number_in_words(count)} {'token' if count == 1 else 'tokens'}"


def usage_facts(usage: Usage) -> list[tuple[str, str]]:
    """Name and words of every count, of the state, and of the field it was read from."""
    state, meaning = USAGE_WORDS[usage.state]
    counts = (
        ("Input tokens", usage.input_total, True),
        ("Input tokens from a cache", usage.input_cached, False),
        ("Input tokens written to a cache", usage.input_cache_write, False),
        ("Output tokens", usage.output_total, True),
        ("Output tokens of reasoning", usage.output_reasoning, False),
        ("Total tokens", usage.total, False),
    )
    return [
        ("State", f"{state}: {meaning}"),
        *(
            (label, NOT_RECORDED if count is None else number_in_words(count))
            for label, count, is_always in counts
            if is_always or count is not None
        ),
        ("Read from", usage.source or NOT_RECORDED),
    ]
