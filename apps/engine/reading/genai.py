"""What the attributes of a span mean, under all names that instrumentations use.

Three generations of the GenAI conventions, Traceloop's older names, OpenInference,
the Vercel AI SDK and Pydantic AI. It reads one span at a time and claims nothing
about its place in the trace.
Names: https://opentelemetry.io/docs/specs/semconv/gen-ai/gen-ai-spans/ and
https://github.com/Arize-ai/openinference/blob/main/spec/semantic_conventions.md
"""

from __future__ import annotations

import re
from typing import Any, Final

from apps.engine.reading.spans import Facts, Span
from apps.engine.reading.token_counts import Counts, whole_number
from apps.engine.trace import StepKind

Attributes = dict[str, Any]

_OPENINFERENCE: Final = {
    "LLM": StepKind.MODEL_CALL,
    "TOOL": StepKind.TOOL_CALL,
    "AGENT": StepKind.AGENT,
    "RETRIEVER": StepKind.RETRIEVAL,
    "RERANKER": StepKind.RETRIEVAL,
    "GUARDRAIL": StepKind.GUARDRAIL,
}
_VERCEL: Final = {
    "doGenerate": StepKind.MODEL_CALL,
    "doStream": StepKind.MODEL_CALL,
    "toolCall": StepKind.TOOL_CALL,
    "generateText": StepKind.AGENT,
    "streamText": StepKind.AGENT,
    "generateObject": StepKind.AGENT,
    "streamObject": StepKind.AGENT,
}
_OPERATIONS: Final = {
    "chat": StepKind.MODEL_CALL,
    "generate_content": StepKind.MODEL_CALL,
    "text_completion": StepKind.MODEL_CALL,
    "call_llm": StepKind.MODEL_CALL,
    "execute_tool": StepKind.TOOL_CALL,
    "invoke_agent": StepKind.AGENT,
    "retrieval": StepKind.RETRIEVAL,
    "handoff": StepKind.HANDOFF,
}
_REQUESTS: Final = {"chat": StepKind.MODEL_CALL, "completion": StepKind.MODEL_CALL}
_TRACELOOP: Final = {"tool": StepKind.TOOL_CALL, "agent": StepKind.AGENT}
_HANDOFF_NAME: Final = re.compile(
    r"hand-?off\b(?:\s+to\s+(?P<target>.+))?", re.IGNORECASE
)

_INPUT: Final = (
    "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens",
    "llm.token_count.prompt", "llm.usage.prompt_tokens",
    "ai.usage.inputTokens", "ai.usage.promptTokens",
)  # fmt: skip
_OUTPUT: Final = (
    "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens",
    "llm.token_count.completion", "llm.usage.completion_tokens",
    "ai.usage.outputTokens", "ai.usage.completionTokens",
)  # fmt: skip
_TOTAL: Final = (
    "gen_ai.usage.total_tokens", "llm.token_count.total", "llm.usage.total_tokens",
    "ai.usage.totalTokens",
)  # fmt: skip
_CACHED: Final = (
    "gen_ai.usage.cache_read.input_tokens", "gen_ai.usage.cache_read_input_tokens",
    "gen_ai.usage.details.cache_read_tokens", "ai.usage.cachedInputTokens",
    "llm.token_count.prompt_details.cache_read",
)  # fmt: skip
_CACHE_WRITE: Final = (
    "gen_ai.usage.cache_creation.input_tokens",
    "gen_ai.usage.cache_creation_input_tokens",
    "gen_ai.usage.details.cache_write_tokens",
    "llm.token_count.prompt_details.cache_write",
)
_REASONING: Final = (
    "gen_ai.usage.reasoning_tokens", "gen_ai.usage.reasoning.output_tokens",
    "gen_ai.usage.details.reasoning_tokens", "ai.usage.reasoningTokens",
    "llm.token_count.completion_details.reasoning",
)  # fmt: skip
_MODEL: Final = (
    "gen_ai.response.model", "ai.response.model", "llm.model_name",
    "gen_ai.request.model", "ai.model.id",
)  # fmt: skip
_PROVIDER: Final = (
    "gen_ai.provider.name", "gen_ai.system", "llm.provider", "llm.system",
    "ai.model.provider",
)  # fmt: skip
_FINISH: Final = (
    "gen_ai.response.finish_reasons", "gen_ai.completion.0.finish_reason",
    "llm.finish_reason", "ai.response.finishReason", "llm.response.finish_reason",
)  # fmt: skip
_RESPONSE_ID: Final = ("gen_ai.response.id", "ai.response.id")
_CALL_ID: Final = (
    "gen_ai.tool.call.id", "tool_call.id", "ai.toolCall.id", "tool.id", "tool_call_id",
)  # fmt: skip
_TOOL_NAME: Final = (
    "gen_ai.tool.name", "tool.name", "ai.toolCall.name", "traceloop.entity.name",
    "tool_call.function.name",
)  # fmt: skip
_AGENT_NAME: Final = ("gen_ai.agent.name", "agent.name", "agent_name")
_AGENT_SPAN_NAME: Final = (
    *_AGENT_NAME, "graph.node.id", "traceloop.entity.name", "ai.telemetry.functionId",
)  # fmt: skip
_SESSION: Final = (
    "gen_ai.conversation.id", "session.id",
    "traceloop.association.properties.session_id", "ai.telemetry.metadata.sessionId",
    "langfuse.session.id",
)  # fmt: skip
_TASK: Final = (
    "evalsite.task", "metadata.task", "ai.telemetry.metadata.task",
    "traceloop.association.properties.task",
)  # fmt: skip
_TRIAL: Final = (
    "evalsite.trial", "metadata.trial", "ai.telemetry.metadata.trial",
    "traceloop.association.properties.trial",
)  # fmt: skip
_NATIVE_KINDS: Final = (
    "openinference.span.kind", "ai.operationId", "gen_ai.operation.name",
    "traceloop.span.kind", "llm.request.type",
)  # fmt: skip
_AGENT_PREFIXES: Final = ("invoke_agent ", "agent run ")
_TOOL_PREFIXES: Final = ("execute_tool ", "running tool: ")


def first(attributes: Attributes, keys: tuple[str, ...]) -> Any:
    """Return the first recorded value among `keys`, or `None`."""
    for key in keys:
        value = attributes.get(key)
        if value is not None and value != "":
            return value
    return None


def kind_of(span: Span) -> StepKind:
    """Return what a span is by its own attributes; OTHER when they do not say.

    A span of a model is MODEL_CALL even when it only wraps other calls: that shows
    in the tree, not here. A handoff is recognised by operation or by name.
    """
    if span.facts is not None:
        return span.facts.kind
    attributes = span.attributes
    kind = _declared_kind(attributes)
    if kind is None:
        kind = _implied_kind(attributes, span.name)
    if kind is StepKind.TOOL_CALL and _HANDOFF_NAME.match(span.name):
        return StepKind.HANDOFF
    return kind


def _declared_kind(attributes: Attributes) -> StepKind | None:
    """Return the kind that an attribute made for the purpose declares."""
    declared = attributes.get("openinference.span.kind")
    if isinstance(declared, str):
        return _OPENINFERENCE.get(declared.upper(), StepKind.OTHER)
    operation = attributes.get("ai.operationId")
    if isinstance(operation, str):
        return _VERCEL.get(operation.rsplit(".", 1)[-1], StepKind.OTHER)
    for key, kinds in (
        ("gen_ai.operation.name", _OPERATIONS),
        ("llm.request.type", _REQUESTS),
        ("traceloop.span.kind", _TRACELOOP),
    ):
        declared = attributes.get(key)
        if isinstance(declared, str):
            return kinds.get(declared.lower(), StepKind.OTHER)
    return None


def _implied_kind(attributes: Attributes, name: str) -> StepKind:
    """Return the kind that other attributes imply where none is declared."""
    if first(attributes, ("gen_ai.tool.name", "gen_ai.tool.call.id")) is not None:
        return StepKind.TOOL_CALL
    if name.startswith(_AGENT_PREFIXES) or "final_result" in attributes:
        return StepKind.AGENT
    if first(attributes, ("gen_ai.request.model", "gen_ai.response.model")) is not None:
        return StepKind.MODEL_CALL
    return StepKind.OTHER


def counts_of(span: Span) -> tuple[Counts, int]:
    """Return the token counts of a span and how many recorded ones are no counts.

    Sentinels such as -1 and NaN, fractions and numbers above 2^63-1 are not counts
    and are left out, not guessed.
    """
    if span.facts is not None:
        return span.facts.counts or Counts(), span.facts.bad_counts
    attributes = span.attributes
    bad = 0

    def read(keys: tuple[str, ...]) -> tuple[int | None, str | None]:
        nonlocal bad
        for key in keys:
            if key in attributes:
                count = whole_number(attributes[key])
                if count is not None:
                    return count, key
                bad += 1
        return None, None

    output, source = read(_OUTPUT)
    counts = Counts(
        input_total=read(_INPUT)[0],
        input_cached=read(_CACHED)[0],
        input_cache_write=read(_CACHE_WRITE)[0],
        output_total=output,
        output_reasoning=read(_REASONING)[0],
        total=read(_TOTAL)[0],
        source=source,
    )
    return counts, bad


def call_facts(span: Span) -> Facts:
    """Return what a model or tool span says of its call: model, finish, ids, tool.

    The fields that only agents and bodies need are not filled in.
    """
    if span.facts is not None:
        return span.facts
    attributes = span.attributes
    return Facts(
        kind=StepKind.OTHER,
        provider=first(attributes, _PROVIDER),
        model=first(attributes, _MODEL),
        finish=first(attributes, _FINISH),
        response_id=first(attributes, _RESPONSE_ID),
        conversation=attributes.get("gen_ai.conversation.id"),
        call_id=first(attributes, _CALL_ID),
    )


def native_kind(span: Span) -> Any:
    """Return the word with which the span says what it is."""
    if span.facts is not None:
        return span.facts.native_kind
    return first(span.attributes, _NATIVE_KINDS)


def session_of(attributes: Attributes) -> Any:
    """Return the session, conversation or thread that a span names."""
    return first(attributes, _SESSION)


def task_of(attributes: Attributes) -> Any:
    """Return the task key by convention (`evalsite.task`, `metadata.task`)."""
    return first(attributes, _TASK)


def trial_of(attributes: Attributes) -> int | None:
    """Return the trial number by convention (`evalsite.trial`, `metadata.trial`)."""
    return whole_number(first(attributes, _TRIAL))


def tool_name(span: Span) -> Any:
    """Return the name of the tool of a tool span, else the name of the span."""
    if span.facts is not None:
        return span.facts.tool or span.name
    named = first(span.attributes, _TOOL_NAME)
    return named if named is not None else _bare(span.name, _TOOL_PREFIXES, ".tool")


def agent_span_name(span: Span) -> Any:
    """Return the agent that an agent span runs, else the name of the span."""
    if span.facts is not None:
        return span.facts.agent or span.name
    named = first(span.attributes, _AGENT_SPAN_NAME)
    return named if named is not None else _bare(span.name, _AGENT_PREFIXES, ".agent")


def named_agent(span: Span) -> Any:
    """Return the agent that any span says it belongs to."""
    if span.facts is not None:
        return span.facts.agent
    return first(span.attributes, _AGENT_NAME)


def handoff_target(span: Span) -> str | None:
    """Return the name of the agent that a handoff span hands over to."""
    if span.facts is not None:
        return span.facts.handoff_target
    found = _HANDOFF_NAME.match(span.name)
    target = found.group("target") if found else None
    if not target:
        target = span.attributes.get("output.value")
    return target.strip() if isinstance(target, str) else None


def _bare(name: str, prefixes: tuple[str, ...], suffix: str) -> str:
    for prefix in prefixes:
        name = name.removeprefix(prefix)
    return name.removesuffix(suffix)
