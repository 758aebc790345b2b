"""Making a trace set the baseline of its project: computed by a worker, switched at once.

What is wanted stands in the row of the set, so flushing the broker loses nothing: its
`baseline` holds `wanted` while a worker reads the traces, beside the figures of a
baseline that is in use already. A failure leaves the baseline as it was.
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Iterator, Sequence
from datetime import datetime, timedelta
from itertools import groupby
from typing import Any, Final
from uuid import uuid4

import msgspec
from django.db import connection, transaction
from django.db.models import Count, F, Sum

from apps.accounts.models import Project
from apps.engine.nulls import error_baseline, latency_baseline
from apps.engine.sequences.calls import durations_by_name, failures_by_name
from apps.engine.trace import ModelCall, OrderSource, Step, StepKind, ToolCall
from apps.engine.trace import Trace as EngineTrace
from apps.pipeline.alone import alone
from apps.pipeline.lineups import MOST_STEPS, wake_catch_up
from apps.pipeline.waking import wake_on_commit
from apps.traces.models import FLAG_PLACEHOLDER, KINDS, STATUSES, Trace, TraceSet
from apps.traces.models import Step as StepRow
from apps.traces.sets import delete_set, traces_in_set

Clock = Callable[[], datetime]

MOST_CALLS: Final = 2_000_000
MAX_TRIES: Final = 3
_SILENT: Final = timedelta(seconds=30)
_KEY_DIGITS: Final = 12

GAVE_UP: Final = (
    f"Reading its traces ended the worker {MAX_TRIES} times. The baseline is what it "
    "was before; choose fewer traces."
)


class CannotBeBaseline(Exception):
    """This set cannot become the baseline; the message is a sentence."""


class _Lost(Exception):
    """Somebody wants something else by now, or the set is gone."""


def choose_baseline(*, trace_set: TraceSet, now: datetime) -> None:
    """Let a worker make a set the baseline; until then the earlier one stays in use.

    Another set that was chosen and is not ready yet gives way. Raises
    `CannotBeBaseline` with a sentence.
    """
    total = _check_size(trace_set)
    wanted = {"id": uuid4().hex, "tries": 0, "done": 0, "total": total}
    with transaction.atomic():
        _lock_project(trace_set.project_id)
        rows = TraceSet.objects.select_for_update()
        for row in rows.filter(
            project_id=trace_set.project_id, baseline__has_key="wanted"
        ):
            _write(row, _without(row.baseline, "wanted"))
        held = rows.filter(pk=trace_set.pk).first()
        if held is None:
            raise CannotBeBaseline("This set has been deleted meanwhile.")
        kept = _without(held.baseline, "failure") or {}
        _write(held, kept | {"wanted": wanted | {"seen": now.timestamp()}})
        wake_on_commit("pipeline.make_baseline", trace_set_id=trace_set.pk)


def _check_size(trace_set: TraceSet) -> int:
    found = (
        traces_in_set(trace_set)
        .order_by()
        .aggregate(
            traces=Count("pk"),
            calls=Sum(F("model_call_count") + F("tool_call_count"), default=0),
        )
    )
    if not found["traces"]:
        raise CannotBeBaseline("All traces of this set have been removed.")
    if found["calls"] > MOST_CALLS:
        raise CannotBeBaseline(
            f"The traces of this set hold {found['calls']:,} model and tool calls; a "
            f"baseline takes at most {MOST_CALLS:,}. Choose fewer traces."
        )
    return int(found["traces"])


def _lock_project(project_id: int) -> None:
    Project.objects.select_for_update(no_key=True).get(pk=project_id)


def _without(kept: dict[str, Any] | None, name: str) -> dict[str, Any] | None:
    return {key: value for key, value in (kept or {}).items() if key != name} or None


def _write(row: TraceSet, kept: dict[str, Any] | None) -> None:
    row.baseline = kept
    row.save(update_fields=["baseline"])


def clear_baseline(*, trace_set: TraceSet) -> bool:
    """Let a set be the baseline no more, nor become it; whether it was the baseline."""
    with transaction.atomic():
        _lock_project(trace_set.project_id)
        rows = TraceSet.objects.filter(pk=trace_set.pk)
        was_baseline = rows.filter(is_baseline=True).exists()
        rows.update(is_baseline=False, baseline=None)
        if was_baseline:
            wake_catch_up(project_id=trace_set.project_id)
    return was_baseline


def forget_set(*, trace_set: TraceSet) -> None:
    """Delete a set; where it is the baseline, the project has none afterwards."""
    with transaction.atomic():
        _lock_project(trace_set.project_id)
        was_baseline = TraceSet.objects.filter(
            pk=trace_set.pk, is_baseline=True
        ).exists()
        delete_set(trace_set=trace_set)
        if was_baseline:
            wake_catch_up(project_id=trace_set.project_id)


def waiting_baselines(*, now: datetime) -> list[int]:
    """Ids of sets that are wanted as baselines and of which nobody was heard lately."""
    silent_since = (now - _SILENT).timestamp()
    rows = TraceSet.objects.filter(
        baseline__has_key="wanted", baseline__wanted__seen__lt=silent_since
    )
    return list(rows.order_by("pk").values_list("pk", flat=True))


def make_baseline(*, trace_set_id: int, clock: Clock) -> bool:
    """Compute what is wanted of a set and switch to it; whether that happened.

    Safe to run any number of times and in parallel: one at a time works on a set, and
    what nobody wants any more is dropped.
    """
    with alone("make_baseline", trace_set_id) as is_mine:
        token = _begin(trace_set_id, clock) if is_mine else None
        if token is None:
            return False
        try:
            kept = _computed(trace_set_id, token, clock)
            return _switch(trace_set_id, token, kept)
        except _Lost:
            return False


def _begin(trace_set_id: int, clock: Clock) -> str | None:
    """Count one more try; the token of what is wanted, `None` if nothing is."""
    with transaction.atomic():
        row = (
            TraceSet.objects.select_for_update()
            .filter(pk=trace_set_id, baseline__has_key="wanted")
            .first()
        )
        if row is None or row.baseline is None:
            return None
        wanted = row.baseline["wanted"]
        if wanted["tries"] >= MAX_TRIES:
            kept = _without(row.baseline, "wanted") or {}
            _write(row, kept | {"failure": GAVE_UP})
            return None
        wanted["tries"] += 1
        wanted["seen"] = clock().timestamp()
        _write(row, row.baseline)
    return str(wanted["id"])


def _computed(trace_set_id: int, token: str, clock: Clock) -> dict[str, Any]:
    durations: list[dict[str, tuple[float, ...]]] = []
    failures: list[dict[str, tuple[int, int]]] = []
    said = time.monotonic()
    for trace in _structures(trace_set_id):
        durations.append(durations_by_name(trace))
        failures.append(failures_by_name(trace))
        if time.monotonic() - said > 1:
            _say_progress(trace_set_id, token, len(durations), clock)
            said = time.monotonic()
    figures = {
        "latencies": msgspec.to_builtins(latency_baseline(durations)),
        "failures": msgspec.to_builtins(error_baseline(failures)),
    }
    encoded = msgspec.json.encode(figures, order="deterministic")
    key = hashlib.sha256(encoded).hexdigest()[:_KEY_DIGITS]
    made_at = clock().isoformat()
    return {"key": key, "made_at": made_at, "traces": len(durations), **figures}


_PROGRESS: Final = """
    UPDATE traces_traceset
    SET baseline = jsonb_set(jsonb_set(baseline, '{wanted,done}', to_jsonb(%s::int)),
                             '{wanted,seen}', to_jsonb(%s::float8))
    WHERE id = %s AND baseline #>> '{wanted,id}' = %s
"""


def _say_progress(trace_set_id: int, token: str, done: int, clock: Clock) -> None:
    with connection.cursor() as cursor:
        cursor.execute(_PROGRESS, [done, clock().timestamp(), trace_set_id, token])
        if cursor.rowcount != 1:
            raise _Lost


def _switch(trace_set_id: int, token: str, kept: dict[str, Any]) -> bool:
    project_id = (
        TraceSet.objects.filter(pk=trace_set_id)
        .values_list("project_id", flat=True)
        .first()
    )
    if project_id is None:
        return False
    with transaction.atomic():
        _lock_project(project_id)
        row = (
            TraceSet.objects.select_for_update()
            .filter(pk=trace_set_id, baseline__wanted__id=token)
            .first()
        )
        if row is None:
            return False
        TraceSet.objects.filter(project_id=project_id, is_baseline=True).exclude(
            pk=row.pk
        ).update(is_baseline=False, baseline=None)
        row.is_baseline, row.baseline = True, kept
        row.save(update_fields=["is_baseline", "baseline"])
        wake_catch_up(project_id=project_id)
    return True


# What the sequences of calls are made of; texts, tokens and names of spans are not.
_COLUMNS: Final = (
    "trace_id", "seq", "kind", "status", "invocation", "parent", "start_ns", "end_ns",
    "usage_state", "model", "response_id", "retry_of", "flags", "name",
)  # fmt: skip


def _structures(trace_set_id: int) -> Iterator[EngineTrace]:
    """The traces of a set with what calls need: some thousand steps at a time."""
    for some in _batches(trace_set_id):
        orders = dict(some)
        rows = (
            StepRow.objects.filter(trace_id__in=orders)
            .order_by("trace_id", "seq")
            .values_list(*_COLUMNS)
            .iterator(chunk_size=2_000)
        )
        seen: set[int] = set()
        for trace_id, group in groupby(rows, key=lambda row: row[0]):
            seen.add(trace_id)
            steps = tuple(map(_step, group))
            yield EngineTrace(name="", steps=steps, order=OrderSource(orders[trace_id]))
        for _ in orders.keys() - seen:
            yield EngineTrace(name="", steps=())


def _batches(trace_set_id: int) -> Iterator[Sequence[tuple[int, str]]]:
    """(id, order) of traces that have 10,000 steps together; a larger one alone."""
    rows = Trace.objects.filter(tracesetmember__trace_set_id=trace_set_id).order_by(
        "pk"
    )
    taken: list[tuple[int, str]] = []
    steps = 0
    for pk, order, count in rows.values_list("pk", "order", "step_count").iterator(
        chunk_size=2_000
    ):
        if taken and steps + count > MOST_STEPS:
            yield taken
            taken, steps = [], 0
        taken.append((pk, order))
        steps += count
    if taken:
        yield taken


def _step(row: tuple[Any, ...]) -> Step:
    _, seq, kind, status, invocation, parent, start_ns, end_ns = row[:8]
    return Step(
        seq=seq,
        kind=KINDS[kind],
        status=STATUSES[status],
        invocation=invocation,
        parent=parent,
        start_ns=start_ns,
        end_ns=end_ns,
        call=_call(KINDS[kind], row[8:]),
    )


def _call(kind: StepKind, row: tuple[Any, ...]) -> ModelCall | ToolCall | None:
    usage_state, model, response_id, retry_of, flags, name = row
    if usage_state is not None:
        return ModelCall(
            model=model,
            response_id=response_id,
            retry_of=retry_of,
            is_placeholder=bool(flags & FLAG_PLACEHOLDER),
        )
    return ToolCall(name=name or "") if kind is StepKind.TOOL_CALL else None
