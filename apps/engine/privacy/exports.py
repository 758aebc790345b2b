"""Structure only for live OTLP: what is kept of one export request.

Kept are resource and scope names, the ids, names, kinds, times and status codes of
spans, and the attributes that say what a span is: operation, model, agent, tool,
token counts, finish reasons, and the keys of sessions, tasks and trials. All other
attributes, events' attributes, links and status messages are dropped before anything
is written. The list is of what stays, so that a new attribute is dropped until
someone has looked at it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING, Final

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import (
    ExportTraceServiceRequest,
)
from opentelemetry.proto.common.v1.common_pb2 import AnyValue, KeyValue
from opentelemetry.proto.trace.v1.trace_pb2 import ResourceSpans, ScopeSpans, Span

from apps.engine.privacy.structure import is_wording, mark_of

if TYPE_CHECKING:
    from google.protobuf.internal.containers import RepeatedCompositeFieldContainer

KEPT_ATTRIBUTES: Final = frozenset(
    [
        "service.name",
        "service.version",
        "service.namespace",
        "deployment.environment.name",
        "telemetry.sdk.name",
        "telemetry.sdk.language",
        "telemetry.sdk.version",
        "gen_ai.operation.name",
        "gen_ai.system",
        "gen_ai.provider.name",
        "gen_ai.request.model",
        "gen_ai.response.model",
        "gen_ai.response.id",
        "gen_ai.response.finish_reasons",
        "gen_ai.completion.0.finish_reason",
        "gen_ai.agent.name",
        "gen_ai.agent.id",
        "gen_ai.tool.name",
        "gen_ai.tool.type",
        "gen_ai.tool.call.id",
        "gen_ai.conversation.id",
        "gen_ai.request.max_tokens",
        "gen_ai.output.type",
        "gen_ai.workflow.name",
        "openinference.span.kind",
        "llm.model_name",
        "llm.provider",
        "llm.system",
        "llm.finish_reason",
        "llm.response.finish_reason",
        "llm.request.type",
        "tool.name",
        "tool.id",
        "tool_call.id",
        "tool_call_id",
        "tool_call.function.name",
        "agent.name",
        "agent_name",
        "graph.node.id",
        "graph.node.parent_id",
        "session.id",
        "traceloop.span.kind",
        "traceloop.entity.name",
        "traceloop.workflow.name",
        "traceloop.association.properties.session_id",
        "traceloop.association.properties.task",
        "traceloop.association.properties.trial",
        "ai.operationId",
        "ai.model.id",
        "ai.model.provider",
        "ai.response.model",
        "ai.response.id",
        "ai.response.finishReason",
        "ai.toolCall.id",
        "ai.toolCall.name",
        "ai.telemetry.functionId",
        "ai.telemetry.metadata.sessionId",
        "ai.telemetry.metadata.task",
        "ai.telemetry.metadata.trial",
        "operation.name",
        "langfuse.session.id",
        "langfuse.observation.type",
        "metadata.task",
        "metadata.trial",
        "evalsite.task",
        "evalsite.trial",
        "error.type",
        "exception.type",
        "logfire.span_type",
    ]
)
# Counts: kept only where the value is a number, or digits.
KEPT_PREFIXES: Final = (
    "gen_ai.usage.",
    "llm.token_count.",
    "llm.usage.",
    "ai.usage.",
)
_NUMBER: Final = re.compile(r"\d{1,15}")


def structure_of_export(
    request: ExportTraceServiceRequest,
) -> ExportTraceServiceRequest:
    """A new request with the structure of this one; `request` is left as it is."""
    kept = ExportTraceServiceRequest()
    for resource_spans in request.resource_spans:
        _keep_resource(resource_spans, kept.resource_spans.add())
    return kept


def _keep_resource(old: ResourceSpans, new: ResourceSpans) -> None:
    new.resource.attributes.extend(_attributes(old.resource.attributes))
    for scope_spans in old.scope_spans:
        _keep_scope(scope_spans, new.scope_spans.add())


def _keep_scope(old: ScopeSpans, new: ScopeSpans) -> None:
    new.scope.name = old.scope.name
    new.scope.version = old.scope.version
    for span in old.spans:
        _keep_span(span, new.spans.add())


def _keep_span(old: Span, new: Span) -> None:
    new.trace_id = old.trace_id
    new.span_id = old.span_id
    new.parent_span_id = old.parent_span_id
    new.name = mark_of(old.name) if is_wording(old.name) else old.name
    new.kind = old.kind
    new.flags = old.flags
    new.start_time_unix_nano = old.start_time_unix_nano
    new.end_time_unix_nano = old.end_time_unix_nano
    if old.HasField("status"):
        new.status.code = old.status.code
    new.attributes.extend(_attributes(old.attributes))
    _keep_events(old.events, new.events)


def _keep_events(
    old: Iterable[Span.Event], new: RepeatedCompositeFieldContainer[Span.Event]
) -> None:
    for event in old:
        kept = new.add()
        kept.name = mark_of(event.name) if is_wording(event.name) else event.name
        kept.time_unix_nano = event.time_unix_nano


def _attributes(old: Iterable[KeyValue]) -> list[KeyValue]:
    return [kept for one in old if (kept := _attribute(one)) is not None]


def _attribute(one: KeyValue) -> KeyValue | None:
    if one.key in KEPT_ATTRIBUTES:
        value = _short(one.value)
    elif one.key.startswith(KEPT_PREFIXES):
        value = _number(one.value)
    else:
        return None
    return None if value is None else KeyValue(key=one.key, value=value)


def _number(value: AnyValue) -> AnyValue | None:
    kind = value.WhichOneof("value")
    if kind in {"int_value", "double_value"}:
        return value
    is_digits = kind == "string_value" and _NUMBER.fullmatch(value.string_value)
    return value if is_digits else None


def _short(value: AnyValue) -> AnyValue | None:
    """A plain value or a list of them; wording becomes its mark."""
    kind = value.WhichOneof("value")
    if kind in {"int_value", "double_value", "bool_value"}:
        return value
    if kind == "string_value":
        text = value.string_value
        return AnyValue(string_value=mark_of(text) if is_wording(text) else text)
    if kind == "array_value":
        kept = AnyValue()
        items = (_short(item) for item in value.array_value.values[:100])
        kept.array_value.values.extend(item for item in items if item is not None)
        return kept
    return None
