"""Messages as pi and what is built on it (OpenClaw) keep them, made into steps.

Content blocks are text, thinking, image and toolCall; a tool's result is a message of
its own. Input tokens stand beside what was read from and written to the cache.
Source: the session format document of pi-mono's coding agent.
"""

from __future__ import annotations

from typing import Any, Final

from apps.engine.reading.answer_parts import text_of_nothing
from apps.engine.reading.clock import any_time_ns
from apps.engine.reading.finish_reasons import finish_of
from apps.engine.reading.recorded import kind_of, plain_text, text_in
from apps.engine.reading.text_limits import IDENTIFIER, NAME, clip
from apps.engine.reading.token_counts import Counts, usage_of, whole_number, with_cache
from apps.engine.reading.transcript import Draft, ToolResult, Transcript, ending_of
from apps.engine.trace import ModelCall, StepKind, StepStatus, Usage

_ROLES: Final = frozenset({"user", "assistant", "toolResult"})
_FINISH: Final = {"toolUse": "tool_use", "aborted": "cancelled"}
_HIDDEN: Final = frozenset({"thinking", "toolCall"})


def is_pi_message(value: Any) -> bool:
    """Whether a value is a message of pi: a known role and some content."""
    return (
        isinstance(value, dict)
        and text_in(value, "role") in _ROLES
        and isinstance(value.get("content"), str | list)
    )


def beside_cache(usage: Any, *, read: str, write: str) -> Usage:
    """Return a usage whose input does not count the cache, which is added here."""
    if not isinstance(usage, dict):
        return usage_of(Counts())
    cached, written = (whole_number(usage.get(key)) for key in (read, write))
    return usage_of(
        Counts(
            input_total=with_cache(whole_number(usage.get("input")), cached, written),
            input_cached=cached,
            input_cache_write=written,
            output_total=whole_number(usage.get("output")),
            output_reasoning=whole_number(usage.get("reasoning")),
            total=whole_number(usage.get("totalTokens", usage.get("total"))),
            source="usage.output",
        )
    )


def add_pi_message(
    made: Transcript, message: dict[str, Any], *, at: Any, resets: bool = False
) -> None:
    """Add one message, for which `is_pi_message` holds; `at` is when it was written."""
    time = any_time_ns(message.get("timestamp")) or any_time_ns(at)
    role = message["role"]
    if role == "toolResult":
        _add_result(made, message, time)
    elif role == "assistant":
        _add_answer(made, message, time, resets=resets)
    else:
        made.add(
            Draft(
                kind=StepKind.USER_MESSAGE,
                start_ns=time,
                end_ns=time,
                native_kind=role,
                output=plain_text(message["content"]),
            )
        )


def _add_result(made: Transcript, message: dict[str, Any], time: int | None) -> None:
    failed = message.get("isError")
    status = ending_of(failed)
    text = plain_text(message["content"])
    made.give(
        ToolResult(
            output=text,
            call_id=message.get("toolCallId"),
            status=status,
            error_message=text if failed is True and isinstance(text, str) else None,
            end_ns=time,
            native_kind="toolResult",
        )
    )


def _asks(block: Any) -> bool:
    """Whether a block asks for a tool."""
    return kind_of(block) == "toolCall"


def _add_answer(
    made: Transcript, message: dict[str, Any], time: int | None, *, resets: bool
) -> None:
    blocks = message["content"]
    blocks = blocks if isinstance(blocks, list) else [{"type": "text", "text": blocks}]
    blocks = [one for one in blocks if isinstance(one, dict)]
    stop = text_in(message, "stopReason")
    finish, raw = finish_of(_FINISH.get(stop, stop) if stop else None)
    model = clip(message.get("model"), NAME, made.remarks)
    failed = stop == "error"
    usage = beside_cache(message.get("usage"), read="cacheRead", write="cacheWrite")
    thoughts = [one.get("thinking") for one in blocks if one.get("type") == "thinking"]
    shown = [one for one in blocks if kind_of(one) not in _HIDDEN]
    text = plain_text(shown)
    if text is None:
        text = text_of_nothing(stop, asks=any(map(_asks, blocks)))
    number = made.add(
        Draft(
            kind=StepKind.MODEL_CALL,
            name=model,
            start_ns=time,
            end_ns=time,
            status=StepStatus.ERROR if failed else StepStatus.UNSET,
            error_type="error" if failed else None,
            error_message=message.get("errorMessage"),
            native_id=message.get("responseId"),
            native_kind="assistant",
            output=text,
            reasoning="\n\n".join(t for t in thoughts if isinstance(t, str)) or None,
            call=ModelCall(
                provider=clip(message.get("provider"), NAME, made.remarks),
                model=model,
                finish=finish,
                finish_raw=clip(stop if raw else None, IDENTIFIER, made.remarks),
                usage=usage,
                resets_context=resets,
            ),
        )
    )
    for one in blocks:
        if _asks(one):
            made.ask(
                name=one.get("name"),
                call_id=one.get("id"),
                arguments=one.get("arguments"),
                by=number,
            )
