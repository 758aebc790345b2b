"""Between engine traces and rows: what a step row holds, what a body chunk holds."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Any

import msgspec
import zstandard

from apps.engine.trace import (
    AgentInvocation,
    Body,
    ModelCall,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
    Usage,
    Via,
)
from apps.traces.models import (
    FINISHES,
    FLAG_PLACEHOLDER,
    FLAG_RESETS_CONTEXT,
    KINDS,
    STATUSES,
    USAGE_STATES,
)

CHUNK_STEPS = 64
CHUNK_BYTES = 256 * 1024

_KIND = {kind: number for number, kind in enumerate(KINDS)}
_STATUS = {status: number for number, status in enumerate(STATUSES)}
_FINISH = {finish: number for number, finish in enumerate(FINISHES)}
_USAGE = {state: number for number, state in enumerate(USAGE_STATES)}

STEP_COLUMNS: tuple[tuple[str, str], ...] = (
    ("trace_id", "int8"),
    ("seq", "int4"),
    ("kind", "int2"),
    ("status", "int2"),
    ("invocation", "int4"),
    ("parent", "int4"),
    ("name", "text"),
    ("start_ns", "int8"),
    ("end_ns", "int8"),
    ("error_type", "text"),
    ("native_id", "text"),
    ("provider", "text"),
    ("model", "text"),
    ("finish", "int2"),
    ("response_id", "text"),
    ("conversation", "text"),
    ("usage_state", "int2"),
    ("input_total", "int8"),
    ("input_cached", "int8"),
    ("input_cache_write", "int8"),
    ("output_total", "int8"),
    ("output_reasoning", "int8"),
    ("total", "int8"),
    ("retry_of", "int4"),
    ("flags", "int2"),
    ("call_id", "text"),
    ("requested_by", "int4"),
)


class StoredBody(msgspec.Struct, frozen=True, omit_defaults=True):
    """What a chunk keeps of one step: its body and the facts that no list needs.

    `name` is there only for a tool call whose step is not called like its tool.
    """

    body: Body | None = None
    name: str | msgspec.UnsetType | None = msgspec.UNSET
    error_message: str | None = None
    native_kind: str | None = None
    finish_raw: str | None = None
    usage_source: str | None = None
    tool_call_ids: tuple[str, ...] = ()


_encoder = msgspec.json.Encoder()
_decoder = msgspec.json.Decoder(list[StoredBody])
_compress = zstandard.ZstdCompressor(level=3)
_MAX_CHUNK = 1024**3


def content_hash(trace: Trace) -> str:
    """SHA-256 over everything the reader found, independent of where it is stored."""
    return hashlib.sha256(_encoder.encode(trace)).hexdigest()


_NO_CALL: tuple[None, ...] = (None,) * 13
_NO_TOOL: tuple[None, ...] = (None, None)


def _model_columns(call: ModelCall) -> tuple[Any, ...]:
    usage = call.usage
    return (
        call.provider,
        call.model,
        _FINISH[call.finish],
        call.response_id,
        call.conversation,
        _USAGE[usage.state],
        usage.input_total,
        usage.input_cached,
        usage.input_cache_write,
        usage.output_total,
        usage.output_reasoning,
        usage.total,
        call.retry_of,
    )


def step_row(trace_id: int, step: Step) -> tuple[Any, ...]:
    """The values of `STEP_COLUMNS` for one step."""
    call = step.call
    flags = 0
    model: tuple[Any, ...] = _NO_CALL
    tool: tuple[Any, ...] = _NO_TOOL
    if isinstance(call, ModelCall):
        model = _model_columns(call)
        flags = FLAG_PLACEHOLDER * call.is_placeholder
        flags |= FLAG_RESETS_CONTEXT * call.resets_context
    elif isinstance(call, ToolCall):
        tool = (call.call_id, call.requested_by)
    return (
        trace_id,
        step.seq,
        _KIND[step.kind],
        _STATUS[step.status],
        step.invocation,
        step.parent,
        call.name if isinstance(call, ToolCall) else step.name,
        step.start_ns,
        step.end_ns,
        step.error_type,
        step.native_id,
        *model,
        flags,
        *tool,
    )


def _stored_body(step: Step) -> StoredBody:
    call = step.call
    if not isinstance(call, ModelCall):
        is_renamed = isinstance(call, ToolCall) and step.name != call.name
        return StoredBody(
            body=step.body,
            name=step.name if is_renamed else msgspec.UNSET,
            error_message=step.error_message,
            native_kind=step.native_kind,
        )
    return StoredBody(
        body=step.body,
        error_message=step.error_message,
        native_kind=step.native_kind,
        finish_raw=call.finish_raw,
        usage_source=call.usage.source,
        tool_call_ids=call.tool_call_ids,
    )


def body_chunks(steps: Iterable[Step]) -> Iterator[tuple[int, bytes]]:
    """`(first seq, compressed bytes)` of each chunk of neighbouring bodies.

    A chunk ends after 64 steps or 256 KiB, so opening one body reads little.
    """
    parts: list[bytes] = []
    size = 0
    first = 0
    for step in steps:
        encoded = _encoder.encode(_stored_body(step))
        if parts and (len(parts) >= CHUNK_STEPS or size + len(encoded) > CHUNK_BYTES):
            yield first, _compress.compress(b"[" + b",".join(parts) + b"]")
            parts, size = [], 0
        if not parts:
            first = step.seq
        parts.append(encoded)
        size += len(encoded)
    if parts:
        yield first, _compress.compress(b"[" + b",".join(parts) + b"]")


def bodies_of(first_seq: int, data: bytes) -> dict[int, StoredBody]:
    """The stored bodies of one chunk by `seq`."""
    raw = zstandard.ZstdDecompressor().decompress(data, max_output_size=_MAX_CHUNK)
    return dict(enumerate(_decoder.decode(raw), start=first_seq))


def _call_of(row: dict[str, Any], kept: StoredBody) -> ModelCall | ToolCall | None:
    if row["usage_state"] is not None:
        return ModelCall(
            provider=row["provider"],
            model=row["model"],
            finish=FINISHES[row["finish"]],
            finish_raw=kept.finish_raw,
            usage=Usage(
                state=USAGE_STATES[row["usage_state"]],
                input_total=row["input_total"],
                input_cached=row["input_cached"],
                input_cache_write=row["input_cache_write"],
                output_total=row["output_total"],
                output_reasoning=row["output_reasoning"],
                total=row["total"],
                source=kept.usage_source,
            ),
            response_id=row["response_id"],
            conversation=row["conversation"],
            retry_of=row["retry_of"],
            is_placeholder=bool(row["flags"] & FLAG_PLACEHOLDER),
            resets_context=bool(row["flags"] & FLAG_RESETS_CONTEXT),
            tool_call_ids=kept.tool_call_ids,
        )
    if KINDS[row["kind"]] == "tool_call":
        return ToolCall(
            name=row["name"] or "",
            call_id=row["call_id"],
            requested_by=row["requested_by"],
        )
    return None


def step_of(row: dict[str, Any], kept: StoredBody | None = None) -> Step:
    """The engine step of one row (a dict of `STEP_COLUMNS`) and its stored body."""
    kept = kept or StoredBody()
    return Step(
        seq=row["seq"],
        kind=KINDS[row["kind"]],
        invocation=row["invocation"],
        parent=row["parent"],
        name=row["name"] if kept.name is msgspec.UNSET else kept.name,
        start_ns=row["start_ns"],
        end_ns=row["end_ns"],
        status=STATUSES[row["status"]],
        error_type=row["error_type"],
        error_message=kept.error_message,
        native_id=row["native_id"],
        native_kind=kept.native_kind,
        call=_call_of(row, kept),
        body=kept.body,
    )


def invocation_row(trace_id: int, invocation: AgentInvocation) -> tuple[Any, ...]:
    """The values of one agent invocation's row, in `INVOCATION_COLUMNS` order."""
    return (
        trace_id,
        invocation.number,
        invocation.agent,
        invocation.parent,
        invocation.via.value,
        invocation.start_ns,
        invocation.end_ns,
        _STATUS[invocation.status],
        invocation.native_id,
    )


INVOCATION_COLUMNS: tuple[tuple[str, str], ...] = (
    ("trace_id", "int8"),
    ("number", "int4"),
    ("agent", "text"),
    ("parent", "int4"),
    ("via", "text"),
    ("start_ns", "int8"),
    ("end_ns", "int8"),
    ("status", "int2"),
    ("native_id", "text"),
)


def invocation_of(row: dict[str, Any]) -> AgentInvocation:
    """The engine invocation of one row (a dict of `INVOCATION_COLUMNS`)."""
    return AgentInvocation(
        number=row["number"],
        agent=row["agent"],
        parent=row["parent"],
        via=Via(row["via"]),
        start_ns=row["start_ns"],
        end_ns=row["end_ns"],
        status=STATUSES[row["status"]],
        native_id=row["native_id"],
    )


class Counts(msgspec.Struct, frozen=True):
    """What a trace's steps add up to, for lists and receipts."""

    steps: int
    model_calls: int
    tool_calls: int
    usage_known: int
    errors: int
    models: tuple[str, ...]
    agents: tuple[str, ...]
    usage_states: dict[str, int] = {}


def counts_of(trace: Trace) -> Counts:
    """Count steps, calls, known usage and errors; models and agents by name.

    A handoff counts as a tool call: the SDKs let the model make it by calling one. A
    placeholder counts as a model call, though no sequence holds it.
    """
    model_calls = tool_calls = known = errors = 0
    models: set[str] = set()
    states: Counter[str] = Counter()
    for step in trace.steps:
        call = step.call
        if isinstance(call, ModelCall):
            model_calls += 1
            known += call.usage.is_known
            states[call.usage.state.value] += 1
            if call.model:
                models.add(call.model)
        elif isinstance(call, ToolCall) or step.kind is StepKind.HANDOFF:
            tool_calls += 1
        errors += step.status is StepStatus.ERROR
    agents = {i.agent for i in trace.invocations if i.agent}
    return Counts(
        steps=len(trace.steps),
        model_calls=model_calls,
        tool_calls=tool_calls,
        usage_known=known,
        errors=errors,
        models=tuple(sorted(models)),
        agents=tuple(sorted(agents)),
        usage_states=dict(states),
    )
