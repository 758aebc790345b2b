"""The figures of many traces for a comparison: three queries, no bodies.

The rules are those of serial sequences: placeholders are no calls, a span around
another model call is left out, and lines that repeat one response are one call.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Final

import msgspec
from django.db import connection
from django.db.models import QuerySet

from apps.engine.comparison import TraceFigures
from apps.engine.trace import OutcomeKind, StepKind, StepStatus, UsageState
from apps.traces.models import FLAG_PLACEHOLDER, KINDS, STATUSES, USAGE_STATES, Trace

MOST_SAMPLED: Final = 5_000
NANOSECONDS: Final = 1_000_000_000

_VALUES: Final[dict[str, Any]] = {
    "model": KINDS.index(StepKind.MODEL_CALL),
    "tool": KINDS.index(StepKind.TOOL_CALL),
    "opaque": [
        KINDS.index(kind)
        for kind in (StepKind.TOOL_CALL, StepKind.AGENT, StepKind.HANDOFF)
    ],
    "error": STATUSES.index(StepStatus.ERROR),
    "told": [STATUSES.index(one) for one in (StepStatus.OK, StepStatus.ERROR)],
    "placeholder": FLAG_PLACEHOLDER,
    "known": [
        USAGE_STATES.index(one) for one in (UsageState.REPORTED, UsageState.PARTIAL)
    ],
    # A span around a call is looked for through so many steps in between.
    "deepest": 64,
}
_MODEL_CALLS: Final = """
    WITH RECURSIVE climb AS (
        SELECT trace_id, seq AS call, invocation, parent, 1 AS depth
        FROM traces_step
        WHERE trace_id = ANY(%(ids)s) AND kind = %(model)s AND parent IS NOT NULL
        UNION ALL
        SELECT climb.trace_id, climb.call, climb.invocation, above.parent, depth + 1
        FROM climb JOIN traces_step above
            ON above.trace_id = climb.trace_id AND above.seq = climb.parent
        WHERE above.kind <> %(model)s AND above.kind <> ALL(%(opaque)s)
            AND above.parent IS NOT NULL AND depth < %(deepest)s
    ), wrapper AS (
        SELECT DISTINCT above.trace_id, above.seq
        FROM climb JOIN traces_step above
            ON above.trace_id = climb.trace_id AND above.seq = climb.parent
        WHERE above.kind = %(model)s AND above.seq <> climb.call
            AND above.invocation IS NOT DISTINCT FROM climb.invocation
    ), kept AS (
        SELECT step.trace_id, step.seq, response_id, start_ns, end_ns,
               status = %(error)s AS failed, status = ANY(%(told)s) AS told, invocation,
               CASE WHEN invocation IS NULL THEN parent END AS owner,
               CASE WHEN usage_state = ANY(%(known)s) THEN input_total END AS input,
               CASE WHEN usage_state = ANY(%(known)s) THEN output_total END AS output
        FROM traces_step step
        LEFT JOIN wrapper
            ON wrapper.trace_id = step.trace_id AND wrapper.seq = step.seq
        WHERE step.trace_id = ANY(%(ids)s) AND kind = %(model)s
            AND flags & %(placeholder)s = 0 AND wrapper.seq IS NULL
    ), call AS (
        SELECT trace_id, min(start_ns) AS start_ns, max(end_ns) AS end_ns,
               bool_or(failed) AS failed, bool_or(told) AS told,
               (array_agg(input ORDER BY output IS NULL, COALESCE(output, 0) DESC,
                          COALESCE(input, 0) DESC, seq))[1] AS input,
               (array_agg(output ORDER BY output IS NULL, COALESCE(output, 0) DESC,
                          COALESCE(input, 0) DESC, seq))[1] AS output
        FROM kept
        GROUP BY trace_id, invocation, owner, response_id,
                 CASE WHEN response_id IS NULL THEN seq END
    )
    SELECT trace_id, count(*), count(*) FILTER (WHERE failed),
           count(*) FILTER (WHERE told),
           CASE WHEN count(*) = count(input) THEN sum(input)::bigint END,
           CASE WHEN count(*) = count(output) THEN sum(output)::bigint END,
           percentile_cont(0.5) WITHIN GROUP (ORDER BY end_ns - start_ns)
               FILTER (WHERE NOT failed AND end_ns > start_ns)
    FROM call GROUP BY trace_id
"""
_TOOL_CALLS: Final = """
    SELECT trace_id, COALESCE(name, ''), count(*),
           count(*) FILTER (WHERE status = %(error)s),
           count(*) FILTER (WHERE status = ANY(%(told)s))
    FROM traces_step
    WHERE trace_id = ANY(%(ids)s) AND kind = %(tool)s
    GROUP BY trace_id, COALESCE(name, '')
"""


class FiguresOfTraces(msgspec.Struct, frozen=True):
    """The figures of `figures` out of `traces` traces, by trace.

    `told` of their `calls` have a recorded end; the others cannot be known to have
    failed.
    """

    traces: int
    figures: list[TraceFigures]
    calls: int
    told: int

    @property
    def is_sampled(self) -> bool:
        """Whether only some of the traces are compared."""
        return len(self.figures) < self.traces

    def count(self, passed: bool | None) -> int:  # noqa: FBT001
        """How many of the compared traces passed (True), failed or say neither."""
        return sum(one.passed is passed for one in self.figures)


class _Calls(msgspec.Struct):
    model_calls: int = 0
    failed: int = 0
    told: int = 0
    input_tokens: int | None = None
    output_tokens: int | None = None
    latency_s: float | None = None
    tools: dict[str, int] = {}


def figures_of_traces(
    traces: QuerySet[Trace], *, most: int = MOST_SAMPLED
) -> FiguresOfTraces:
    """The figures of `traces`, in four queries however many there are.

    Beyond `most` those with the smallest hash of their content are taken: always the
    same, and as good as drawn by chance.
    """
    rows = traces.order_by("content_hash", "pk").values_list(
        "pk", "task_id", "outcome", "start_ns", "end_ns"
    )
    taken = list(rows[: most + 1])
    total = len(taken)
    if total > most:
        taken, total = taken[:most], traces.order_by().count()
    calls = _calls_of([row[0] for row in taken])
    return FiguresOfTraces(
        traces=total,
        figures=[_figures(row, calls.get(row[0], _Calls())) for row in taken],
        calls=sum(c.model_calls + sum(c.tools.values()) for c in calls.values()),
        told=sum(c.told for c in calls.values()),
    )


def _calls_of(ids: Sequence[int]) -> dict[int, _Calls]:
    values = _VALUES | {"ids": list(ids)}
    found: dict[int, _Calls] = {}
    with connection.cursor() as cursor:
        cursor.execute(_MODEL_CALLS, values)
        for pk, calls, failed, told, asked, said, median_ns in cursor.fetchall():
            found[pk] = _Calls(
                model_calls=calls,
                failed=failed,
                told=told,
                input_tokens=asked,
                output_tokens=said,
                latency_s=None if median_ns is None else median_ns / NANOSECONDS,
            )
        cursor.execute(_TOOL_CALLS, values)
        for pk, name, count, failed, told in cursor.fetchall():
            of_trace = found.setdefault(pk, _Calls())
            of_trace.tools[name] = count
            of_trace.failed += failed
            of_trace.told += told
    return found


_PASSED: Final = {OutcomeKind.PASS.value: True, OutcomeKind.FAIL.value: False}


def _figures(row: tuple[Any, ...], calls: _Calls) -> TraceFigures:
    pk, task, outcome, start_ns, end_ns = row
    is_timed = start_ns is not None and end_ns is not None and end_ns >= start_ns
    return TraceFigures(
        trace=pk,
        task=None if task is None else str(task),
        passed=_PASSED.get(outcome),
        duration_s=(end_ns - start_ns) / NANOSECONDS if is_timed else None,
        latency_s=calls.latency_s,
        calls=calls.model_calls + sum(calls.tools.values()),
        told=calls.told,
        failed=calls.failed,
        model_calls=calls.model_calls,
        input_tokens=calls.input_tokens,
        output_tokens=calls.output_tokens,
        tools=dict(sorted(calls.tools.items())),
    )
