"""Traces for sets, comparisons and baselines, and what the engine makes of them."""

from __future__ import annotations

import random
from statistics import median
from typing import Any

from apps.engine.comparison import TraceFigures
from apps.engine.sequences.recorded import Removal, recorded_calls
from apps.engine.trace import (
    AgentInvocation,
    ModelCall,
    OrderSource,
    Outcome,
    OutcomeKind,
    Step,
    StepKind,
    StepStatus,
    ToolCall,
    Trace,
    Usage,
    UsageState,
)
from apps.traces.models import Trace as TraceRow
from apps.traces.queries import engine_trace

SECOND = 1_000_000_000
START = 1_772_000_000 * SECOND
OUTCOMES = [OutcomeKind.PASS, OutcomeKind.FAIL, OutcomeKind.SCORE, OutcomeKind.UNKNOWN]
TOLD = {StepStatus.OK, StepStatus.ERROR}
_NO_CALL = {Removal.PLACEHOLDER, Removal.WRAPPER, Removal.DUPLICATE}


def usage_of(source: random.Random) -> Usage:
    if source.random() < 0.15:
        return Usage()
    return Usage(
        state=source.choice([UsageState.REPORTED, UsageState.PARTIAL]),
        input_total=source.choice([None, *[source.randint(1, 9_000)] * 9]),
        output_total=source.choice([None, *[source.randint(1, 900)] * 9]),
    )


def random_steps(source: random.Random, count: int) -> list[Step]:
    """Steps of every kind that calls are told apart by."""
    steps: list[Step] = []
    for seq in range(count):
        kind = source.choice(
            [StepKind.MODEL_CALL] * 4
            + [StepKind.TOOL_CALL] * 3
            + [StepKind.AGENT, StepKind.USER_MESSAGE]
        )
        call: ModelCall | ToolCall | None = None
        if kind is StepKind.MODEL_CALL:
            call = ModelCall(
                model=source.choice(["m1", "m2", None]),
                usage=usage_of(source),
                response_id=source.choice([None, None, "r1", "r2"]),
                is_placeholder=source.random() < 0.1,
            )
        elif kind is StepKind.TOOL_CALL:
            call = ToolCall(name=source.choice(["search", "refund", "<b>look</b>"]))
        start = START + seq * SECOND
        is_timed = source.random() < 0.9
        steps.append(
            Step(
                seq=seq,
                kind=kind,
                name=None if call else "step",
                invocation=source.choice([0, 1, None]),
                parent=source.choice([None, None, *range(seq)]),
                start_ns=start if is_timed else None,
                end_ns=start + source.randint(0, 5) * SECOND // 4 if is_timed else None,
                status=source.choice(list(StepStatus)),
                call=call,
            )
        )
    return steps


def random_trace(seed: int, *, count: int | None = None, **more: Any) -> Trace:
    source = random.Random(seed)
    fields: dict[str, Any] = {
        "name": f"run {seed}",
        "invocations": (
            AgentInvocation(number=0, agent="planner"),
            AgentInvocation(number=1, agent="worker"),
        ),
        "start_ns": START,
        "end_ns": source.choice([None, START + source.randint(1, 99) * SECOND]),
        "order": source.choice([OrderSource.TIME, OrderSource.FILE]),
        "outcome": Outcome(kind=source.choice(OUTCOMES)),
        "task": source.choice([None, f"task {seed % 5}"]),
    }
    length = source.randint(0, 25) if count is None else count
    steps = tuple(random_steps(source, length))
    return Trace(**{**fields, "steps": steps, **more})


def figures_of(row: TraceRow, trace: Trace | None = None) -> TraceFigures:
    """What the engine's own rules of calls make of a stored trace: the oracle."""
    content = engine_trace(row) if trace is None else trace
    entries = [
        entry
        for calls in recorded_calls(content).values()
        for entry in calls
        if entry.removed not in _NO_CALL
    ]
    lines = lines_of(content)
    failed = [
        any(one.status is StepStatus.ERROR for one in lines[entry.step.seq])
        for entry in entries
    ]
    spans = [span_of(lines[entry.step.seq]) for entry in entries]
    latencies = [
        span for span, bad in zip(spans, failed, strict=True) if span and not bad
    ]
    tools = [step for step in content.steps if isinstance(step.call, ToolCall)]
    counts: dict[str, int] = {}
    for step in sorted(tools, key=lambda step: step.call.name):
        counts[step.call.name] = counts.get(step.call.name, 0) + 1
    is_timed = content.start_ns is not None and content.end_ns is not None
    return TraceFigures(
        trace=row.pk,
        task=None if row.task_id is None else str(row.task_id),
        passed={"pass": True, "fail": False}.get(content.outcome.kind.value),
        duration_s=(content.end_ns - content.start_ns) / SECOND if is_timed else None,
        latency_s=median(latencies) / SECOND if latencies else None,
        calls=len(entries) + len(tools),
        told=sum(
            any(one.status in TOLD for one in lines[entry.step.seq])
            for entry in entries
        )
        + sum(s.status in TOLD for s in tools),
        failed=sum(failed) + sum(s.status is StepStatus.ERROR for s in tools),
        model_calls=len(entries),
        input_tokens=total([known(entry.usage).input_total for entry in entries]),
        output_tokens=total([known(entry.usage).output_total for entry in entries]),
        tools=counts,
    )


def known(usage: Usage) -> Usage:
    return (
        usage if usage.state in {UsageState.REPORTED, UsageState.PARTIAL} else Usage()
    )


def total(values: list[int | None]) -> int | None:
    kept = [value for value in values if value is not None]
    return sum(kept) if kept and len(kept) == len(values) else None


def lines_of(content: Trace) -> dict[int, list[Step]]:
    """The recorded lines of each call: those of one response stand together."""
    found: dict[int, list[Step]] = {}
    for calls in recorded_calls(content).values():
        responses: dict[str, list[Step]] = {}
        for entry in calls:
            if entry.removed in {Removal.PLACEHOLDER, Removal.WRAPPER}:
                continue
            response = entry.call.response_id
            group = [] if response is None else responses.setdefault(response, [])
            group.append(entry.step)
            found[entry.step.seq] = group
    return found


def span_of(lines: list[Step]) -> int | None:
    starts = [one.start_ns for one in lines if one.start_ns is not None]
    ends = [one.end_ns for one in lines if one.end_ns is not None]
    if not starts or not ends or max(ends) <= min(starts):
        return None
    return max(ends) - min(starts)
