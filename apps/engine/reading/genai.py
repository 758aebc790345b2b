"""What the attributes of a span mean, under all names that instrumentations use.

The names are those of `genai_names`. It reads one span at a time and claims nothing
about its place in the trace.
"""

from __future__ import annotations

import re
from typing import Any, Final

from apps.engine.reading import genai_names as names
from apps.engine.reading.json_values import embedded
from apps.engine.reading.recorded import first_of
from apps.engine.reading.spans import Facts, Span
from apps.engine.reading.token_counts import Counts, whole_number
from apps.engine.trace import StepKind

Attributes = dict[str, Any]

_HANDOFF_NAME: Final = re.compile(
    r"hand-?off\b(?:\s+to\s+(?P<target>.+))?", re.IGNORECASE
)


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
    if kind is StepKind.TOOL_CALL:
        if attributes.get("gen_ai.tool.name") == names.MERGED_TOOLS:
            return StepKind.OTHER
        if _HANDOFF_NAME.match(span.name):
            return StepKind.HANDOFF
    return kind


def _declared_kind(attributes: Attributes) -> StepKind | None:
    """Return the kind that an attribute made for the purpose declares."""
    if attributes.get("logfire.span_type") in names.NO_SPANS_OF_THEIR_OWN:
        return StepKind.OTHER
    declared = attributes.get("openinference.span.kind")
    if isinstance(declared, str) and declared not in {"", "UNKNOWN"}:
        return names.OPENINFERENCE.get(declared.upper(), StepKind.OTHER)
    operation = attributes.get("ai.operationId")
    if isinstance(operation, str):
        return names.VERCEL.get(operation.rsplit(".", 1)[-1], StepKind.OTHER)
    for key, kinds in names.DECLARATIONS:
        declared = attributes.get(key)
        if isinstance(declared, str):
            return kinds.get(declared.lower(), StepKind.OTHER)
    return _weakly_declared_kind(attributes)


def _weakly_declared_kind(attributes: Attributes) -> StepKind | None:
    """Return the kind in the words of a platform that it puts on any span."""
    for key, kinds in names.WEAK_DECLARATIONS:
        declared = attributes.get(key)
        if isinstance(declared, str):
            return kinds.get(declared.strip('"'))
    return None


def _implied_kind(attributes: Attributes, name: str) -> StepKind:
    """Return the kind that other attributes imply where none is declared."""
    if first_of(attributes, ("gen_ai.tool.name", "gen_ai.tool.call.id")) is not None:
        return StepKind.TOOL_CALL
    if name.startswith(names.AGENT_PREFIXES) or "final_result" in attributes:
        return StepKind.AGENT
    if (
        first_of(attributes, ("gen_ai.request.model", "gen_ai.response.model"))
        is not None
    ):
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
            if key in attributes and attributes[key] is not None:
                count = whole_number(attributes[key])
                if count is not None:
                    return count, key
                bad += 1
        return None, None

    output, source = read(names.OUTPUT)
    given = read(names.INPUT)[0]
    if output is None and given is None and not bad:
        told = _counts_in_objects(attributes)
        if told is not None:
            return told, 0
    counts = Counts(
        input_total=given,
        input_cached=read(names.CACHED)[0],
        input_cache_write=read(names.CACHE_WRITE)[0],
        output_total=output,
        output_reasoning=read(names.REASONING)[0],
        total=read(names.TOTAL)[0],
        source=source,
    )
    return counts, bad


def told_output(span: Span) -> int | None:
    """Return the output tokens that a wrapper says its calls had together."""
    if span.facts is not None:
        return span.facts.counts.output_total if span.facts.counts else None
    attributes = span.attributes
    for key in names.OUTPUT:
        if key in attributes:
            count = whole_number(attributes[key])
            if count is not None:
                return count
    return None


def call_id_of(span: Span) -> Any:
    """Return the id with which a model asked for the call of a tool span."""
    if span.facts is not None:
        return span.facts.call_id
    return first_of(span.attributes, names.CALL_ID)


def _counts_in_objects(attributes: Attributes) -> Counts | None:
    """Return the counts of the first attribute that holds all of them in one object."""
    for key in names.USAGE_OBJECTS:
        usage = embedded(attributes.get(key))
        if isinstance(usage, dict) and usage:
            return _counts_in(usage, key)
    return None


def _counts_in(usage: Attributes, holder: str) -> Counts:
    def read(keys: tuple[str, ...]) -> tuple[int | None, str | None]:
        for key in keys:
            count = whole_number(usage.get(key))
            if count is not None:
                return count, f"{holder}.{key}"
        return None, None

    output, source = read(names.OBJECT_OUTPUT)
    return Counts(
        input_total=read(names.OBJECT_INPUT)[0],
        input_cached=read(names.OBJECT_CACHED)[0],
        input_cache_write=read(names.OBJECT_CACHE_WRITE)[0],
        output_total=output,
        output_reasoning=read(names.OBJECT_REASONING)[0],
        total=read(names.OBJECT_TOTAL)[0],
        source=source,
    )


def call_facts(span: Span) -> Facts:
    """Return what a model span says of its call: model, provider, finish and ids.

    The fields that only agents and bodies need are not filled in.
    """
    if span.facts is not None:
        return span.facts
    attributes = span.attributes
    return Facts(
        kind=StepKind.OTHER,
        provider=first_of(attributes, names.PROVIDER),
        model=first_of(attributes, names.MODEL),
        finish=_finish(span),
        response_id=first_of(attributes, names.RESPONSE_ID),
        conversation=attributes.get("gen_ai.conversation.id"),
        call_id=first_of(attributes, names.CALL_ID),
    )


def _finish(span: Span) -> Any:
    """Return why a model stopped, from the attributes or from the event of its answer."""
    told = first_of(span.attributes, names.FINISH)
    if told is None:
        for event in span.events:
            if event.name == "gen_ai.choice":
                told = event.attributes.get("finish_reason", told)
    return told


def native_kind(span: Span) -> Any:
    """Return the word with which the span says what it is."""
    if span.facts is not None:
        return span.facts.native_kind
    word = first_of(span.attributes, names.NATIVE_KINDS)
    return word.strip('"') if isinstance(word, str) else word


def session_of(attributes: Attributes) -> Any:
    """Return the session, conversation or thread that a span names."""
    return first_of(attributes, names.SESSION)


def labels_of(attributes: Attributes) -> Attributes:
    """Return the expected answers that a span carries, opened, by attribute."""
    if names.LABELS.isdisjoint(attributes):
        return {}
    return {
        key: embedded(item) for key, item in attributes.items() if key in names.LABELS
    }


def task_of(attributes: Attributes) -> Any:
    """Return the task key by convention (`evalsite.task`, `metadata.task`)."""
    told = first_of(attributes, names.TASK)
    return _in_metadata(attributes, "task") if told is None else told


def trial_of(attributes: Attributes) -> int | None:
    """Return the trial number by convention (`evalsite.trial`, `metadata.trial`)."""
    told = first_of(attributes, names.TRIAL)
    return whole_number(_in_metadata(attributes, "trial") if told is None else told)


def _in_metadata(attributes: Attributes, key: str) -> Any:
    """Return a value of OpenInference's `metadata`, an object or JSON in a text."""
    metadata = attributes.get("metadata")
    if isinstance(metadata, str) and f'"{key}"' in metadata:
        metadata = embedded(metadata)
    value = metadata.get(key) if isinstance(metadata, dict) else None
    return value if isinstance(value, str | int) else None


def tool_name(span: Span) -> Any:
    """Return the name of the tool of a tool span, else the name of the span."""
    if span.facts is not None:
        return span.facts.tool or span.name
    named = first_of(span.attributes, names.TOOL_NAME)
    return (
        named
        if named is not None
        else bare_name(span.name, names.TOOL_PREFIXES, ".tool")
    )


def agent_span_name(span: Span) -> Any:
    """Return the agent that an agent span runs, else the name of the span."""
    if span.facts is not None:
        return span.facts.agent or span.name
    named = first_of(span.attributes, names.AGENT_SPAN_NAME)
    return (
        named
        if named is not None
        else bare_name(span.name, names.AGENT_PREFIXES, ".agent")
    )


def named_agent(span: Span) -> Any:
    """Return the agent that any span says it belongs to."""
    if span.facts is not None:
        return span.facts.agent
    return first_of(span.attributes, names.AGENT_NAME)


def handoff_target(span: Span) -> str | None:
    """Return the name of the agent that a handoff span hands over to."""
    if span.facts is not None:
        return span.facts.handoff_target
    found = _HANDOFF_NAME.match(span.name)
    target = found.group("target") if found else None
    if not target:
        target = span.attributes.get("output.value")
    return target.strip() if isinstance(target, str) else None


def bare_name(name: str, prefixes: tuple[str, ...], suffix: str) -> str:
    """Return a name without what instrumentations put before and after it."""
    for prefix in prefixes:
        name = name.removeprefix(prefix)
    if name.startswith("[") and name.endswith("]"):
        name = name[1:-1]
    return name.removesuffix(suffix)
